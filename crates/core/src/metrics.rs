//! Counting what happens, and writing it down for Prometheus.
//!
//! Counters and histograms are statics of the room that counts: bounded by how they are declared,
//! an atomic addition each, shared by every role of the process. Gauges have no place here: they are
//! written onto a [`Page`] from what is known at that moment, so a value that could not be had is
//! absent from the answer instead of old.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one more.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `more`.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations, counted by upper bounds in seconds.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: &'static [f64; N],
    buckets: [AtomicU64; N],
    /// Observations above the last bound.
    over: AtomicU64,
    sum_us: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    /// An empty histogram. `bounds` are seconds and grow.
    #[must_use]
    pub const fn new(bounds: &'static [f64; N]) -> Self {
        Self { bounds, buckets: [const { AtomicU64::new(0) }; N], over: AtomicU64::new(0), sum_us: AtomicU64::new(0) }
    }

    /// Counts a duration.
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let place = self.bounds.iter().position(|bound| seconds <= *bound);
        place.map_or(&self.over, |place| &self.buckets[place]).fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().chain([&self.over]).map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }
}

/// What a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations by upper bounds.
    Histogram,
}

/// The two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format for an `Accept` header: OpenMetrics only for who asks for it.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Value of the `Content-Type` header.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Labels of a sample: name and value.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

/// The answer to a scrape while it is written.
#[derive(Debug)]
pub struct Page {
    text: String,
    format: Format,
}

impl Page {
    /// An empty page.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { text: String::with_capacity(16 << 10), format }
    }

    /// Begins a series. `help` is one line.
    pub fn family(&mut self, kind: Kind, name: &str, help: &str) {
        let (word, name) = match (kind, self.format) {
            (Kind::Counter, Format::OpenMetrics) => ("counter", name.strip_suffix("_total").unwrap_or(name)),
            (Kind::Counter, Format::Prometheus) => ("counter", name),
            (Kind::Gauge, _) => ("gauge", name),
            (Kind::Histogram, _) => ("histogram", name),
        };
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {word}\n"));
    }

    /// Writes one value of the series that was begun last.
    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(name);
        self.labels(labels, None);
        self.put(format_args!(" {value}\n"));
    }

    /// A gauge without labels, when its value is known.
    pub fn gauge(&mut self, name: &str, help: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.family(Kind::Gauge, name, help);
            self.sample(name, &[], value);
        }
    }

    /// Writes the buckets, the sum and the number of a histogram.
    pub fn histogram<const N: usize>(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram<N>) {
        let mut below = 0;
        for (bound, bucket) in histogram.bounds.iter().zip(&histogram.buckets) {
            below += bucket.load(Ordering::Relaxed);
            self.put(format_args!("{name}_bucket"));
            self.labels(labels, Some(*bound));
            self.put(format_args!(" {below}\n"));
        }
        below += histogram.over.load(Ordering::Relaxed);
        self.put(format_args!("{name}_bucket"));
        self.labels(labels, Some(f64::INFINITY));
        self.put(format_args!(" {below}\n{name}_sum"));
        self.labels(labels, None);
        let sum = Duration::from_micros(histogram.sum_us.load(Ordering::Relaxed)).as_secs_f64();
        self.put(format_args!(" {sum}\n{name}_count"));
        self.labels(labels, None);
        self.put(format_args!(" {below}\n"));
    }

    /// The whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn labels(&mut self, labels: Labels<'_>, bound: Option<f64>) {
        if labels.is_empty() && bound.is_none() {
            return;
        }
        let mut before = '{';
        for (name, value) in labels {
            self.text.push(before);
            before = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if let Some(bound) = bound {
            self.text.push(before);
            match bound.is_finite() {
                true => self.put(format_args!("le=\"{bound}\"")),
                false => self.text.push_str("le=\"+Inf\""),
            }
        }
        self.text.push('}');
    }

    fn put(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TOOK: Histogram<2> = Histogram::new(&[0.5, 1.0]);

    #[test]
    fn a_page_is_what_prometheus_reads() {
        for ms in [100, 500, 700, 5_000] {
            TOOK.observe(Duration::from_millis(ms));
        }
        let mut page = Page::new(Format::Prometheus);
        page.family(Kind::Histogram, "took_seconds", "How long.");
        page.histogram("took_seconds", &[("kind", "a\"b\\c\nd")], &TOOK);
        page.gauge("unknown", "Not had.", None::<u8>);
        page.gauge("known", "Had.", Some(3));
        let kind = r#"kind="a\"b\\c\nd""#;
        assert_eq!(
            page.finish(),
            format!(
                "# HELP took_seconds How long.\n# TYPE took_seconds histogram\n\
                 took_seconds_bucket{{{kind},le=\"0.5\"}} 2\ntook_seconds_bucket{{{kind},le=\"1\"}} 3\n\
                 took_seconds_bucket{{{kind},le=\"+Inf\"}} 4\ntook_seconds_sum{{{kind}}} 6.3\n\
                 took_seconds_count{{{kind}}} 4\n# HELP known Had.\n# TYPE known gauge\nknown 3\n"
            )
        );
    }

    #[test]
    fn openmetrics_names_counters_without_their_ending_and_says_where_it_ends() {
        let mut page = Page::new(Format::accepted("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"));
        page.family(Kind::Counter, "hits_total", "Hits.");
        page.sample("hits_total", &[], 1);
        assert_eq!(page.finish(), "# HELP hits Hits.\n# TYPE hits counter\nhits_total 1\n# EOF\n");
        assert_eq!(Format::accepted("*/*"), Format::Prometheus);
    }
}
