//! Faults of pages for a Sentry-compatible service (DCF-130 to DCF-132).
//!
//! A page sends what it caught, this module writes the event and a [`ReportSink`] sends it as it sends
//! those of the process: address and key of the service never reach a browser. Queries, fragments and
//! secrets are taken out; cookies, headers and bodies are not asked for.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tale_core::clock::SharedClock;
use tale_core::redact::without_queries;
use tale_core::{Code, Problem};

use super::{from_our_page, is_template, text};
use crate::HttpProblem;
use crate::body::{parse, read_limited};
use crate::caller::client_address;
use crate::rate::Lane;
use crate::state::Shell;

/// Largest report, in bytes.
const LARGEST: usize = 32 << 10;

/// Longest text of a report, in characters.
const LONGEST: usize = 4_000;

/// Most frames of a stack.
const FRAMES: usize = 50;

/// Longest measured time of a page, in milliseconds.
const SLOWEST: f64 = 600_000.0;

/// Where finished reports go.
pub trait ReportSink: Send + Sync {
    /// Sends an event or a transaction of a browser, or drops it.
    fn report(&self, kind: &'static str, payload: Value);
}

/// Reports of browsers.
pub struct BrowserReports {
    sink: Box<dyn ReportSink>,
    share: f64,
    clock: SharedClock,
    networks: Lane<String>,
    all: Lane<()>,
}

impl BrowserReports {
    /// Hands reports to `sink`; pages measure a `share` (0 to 1) of themselves.
    #[must_use]
    pub fn new(sink: Box<dyn ReportSink>, share: f64, clock: SharedClock) -> Self {
        let (networks, all) = (Lane::new(60, 60, clock.clone()), Lane::new(600, 300, clock.clone()));
        Self { sink, share, clock, networks, all }
    }

    /// The share of page loads and changes of page that is measured.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Report {
    Error {
        page: String,
        name: String,
        message: String,
        #[serde(default)]
        stack: String,
    },
    /// How long a page took, in milliseconds. The first one was loaded, later ones changed to.
    Page { page: String, first: bool, ms: f64 },
}

/// A page tells a fault, or how long it took.
pub(super) async fn receive(State(shell): State<Shell>, request: Request) -> Result<Response, HttpProblem> {
    let Some(reports) = &shell.outlets.reports else { return Ok(StatusCode::NOT_FOUND.into_response()) };
    let (parts, body) = request.into_parts();
    from_our_page(&shell.site, &parts)?;
    reports.networks.take(client_address(&parts).network())?;
    reports.all.take(())?;
    let agent = clean(text(&parts.headers, "user-agent", 1024));
    let body = read_limited(Request::from_parts(parts, body), LARGEST).await?;
    let report: Report = parse(&body)?;
    let now = reports.clock.now().timestamp_micros() as f64 / 1_000_000.0;
    let template = |page: String| match is_template(&page) {
        true => Ok(page),
        false => Err(Problem::new(Code::InvalidBody, "`page` is the template of a page, such as /log-in.")),
    };
    let request = json!({ "headers": { "User-Agent": agent } });
    match report {
        Report::Error { page, name, message, stack } => {
            let frames = frames(&clean(&stack));
            let exception =
                json!({ "type": clean(&name), "value": clean(&message), "stacktrace": { "frames": frames } });
            let event = json!({
                "timestamp": now, "level": "error", "logger": "browser", "transaction": template(page)?,
                "exception": { "values": [exception] }, "request": request,
            });
            reports.sink.report("event", event);
        }
        Report::Page { page, first, ms } => {
            if reports.share <= 0.0 || !(0.0..=SLOWEST).contains(&ms) {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
            let trace = uuid::Uuid::new_v4().simple().to_string();
            let op = if first { "pageload" } else { "navigation" };
            let event = json!({
                "type": "transaction", "transaction": template(page)?, "request": request, "spans": [],
                "start_timestamp": now - ms / 1_000.0, "timestamp": now,
                "contexts": { "trace": { "trace_id": trace, "span_id": trace[..16], "op": op } },
            });
            reports.sink.report("transaction", event);
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn clean(text: &str) -> String {
    without_queries(text).chars().take(LONGEST).collect()
}

/// The frames of a stack as browsers write it, the outermost first.
fn frames(stack: &str) -> Vec<Value> {
    let mut frames: Vec<Value> = stack.lines().filter_map(frame).take(FRAMES).collect();
    frames.reverse();
    frames
}

/// `    at name (address:line:column)`, `    at address:line:column` or `name@address:line:column`.
fn frame(line: &str) -> Option<Value> {
    let line = line.trim();
    let (function, place) = match line.strip_prefix("at ") {
        Some(rest) => rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")).unwrap_or(("", rest)),
        None => line.split_once('@')?,
    };
    let (rest, column) = place.rsplit_once(':')?;
    let (file, row) = rest.rsplit_once(':')?;
    let (row, column) = (row.parse::<u32>().ok()?, column.parse::<u32>().ok()?);
    let function = if function.is_empty() { "?" } else { function };
    Some(json!({ "filename": file, "function": function, "lineno": row, "colno": column, "in_app": true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_all_browsers_become_frames() {
        let chromium = "TypeError: x is undefined\n    at send (https://t.example/_app/a.js:1:20)\n    at https://t.example/_app/b.js:3:4\n    at async Promise.all (index 0)";
        let read: Vec<(String, u64)> = frames(chromium)
            .iter()
            .map(|frame| (format!("{} {}", frame["function"], frame["filename"]), frame["colno"].as_u64().unwrap()))
            .collect();
        assert_eq!(
            read,
            [
                (r#""?" "https://t.example/_app/b.js""#.to_owned(), 4),
                (r#""send" "https://t.example/_app/a.js""#.to_owned(), 20)
            ]
        );
        let firefox = frames("send@https://t.example/_app/a.js:1:20\n@https://t.example/_app/b.js:3:4\n");
        assert_eq!((firefox.len(), &firefox[0]["function"], &firefox[1]["lineno"]), (2, &"?".into(), &1.into()));
    }
}
