//! Log lines: text for a person at a terminal, JSON for everything else. Secrets are taken out of the
//! final line, whatever wrote it.

mod json;

use std::io::{self, IsTerminal, Write};

use tale_core::redact::redact;
use tale_env::settings::text_of;
use tale_env::{EnvProblem, EnvProblems, EnvSource, Role, Severity, registry};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use self::json::JsonLines;
use crate::reports::{Interesting, Reports};

/// What is logged unless TALE_LOG says otherwise. Notices of the server ("already exists, skipping")
/// and the pool's own words about lost connections add nothing to what is said where it matters.
const DEFAULT: &str =
    "info,sqlx=warn,sqlx::postgres::notice=error,sqlx::pool=error,sqlx_core::pool=error,hyper=warn,tantivy=warn";

/// Starts logging to standard error, and error reports if there are any to be sent.
pub(crate) fn start(env: &dyn EnvSource, role: &'static str, reports: Option<Reports>) -> Result<(), EnvProblems> {
    let mut wrong = Vec::new();
    let mut text = |var: &'static tale_env::Var| {
        text_of(env, var).unwrap_or_else(|problem| {
            wrong.push(problem);
            None
        })
    };
    // The declared default is what a person writes; ours keeps noisy libraries down besides.
    let level = text(&registry::TALE_LOG).filter(|level| level != "info").unwrap_or_else(|| DEFAULT.to_owned());
    let format = text(&registry::TALE_LOG_FORMAT);
    let filter = EnvFilter::try_new(&level).map_err(|error| {
        let fix = "Set it to a level such as info, or to levels by module such as tale=debug,warn";
        let why = format!("is {level:?}, which cannot be read ({error})");
        EnvProblem::new(Severity::Error, registry::TALE_LOG.name, why, fix)
    });
    let filter = match (filter, wrong.is_empty()) {
        (Ok(filter), true) => filter,
        (filter, _) => {
            wrong.extend(filter.err());
            return Err(EnvProblems(wrong));
        }
    };
    // The way out of sandboxes logs to standard output, as its guide says.
    let to_out = role == Role::SandboxEgress.name();
    let terminal = if to_out { io::stdout().is_terminal() } else { io::stderr().is_terminal() };
    let json = format.map_or(!terminal, |format| format == "json");
    let lines = tracing_subscriber::fmt::layer().with_writer(move || {
        Redacting::<Box<dyn Write>>(if to_out { Box::new(io::stdout()) } else { Box::new(io::stderr()) })
    });
    let lines = if json {
        lines.fmt_fields(JsonFields::new()).event_format(JsonLines { role }).boxed()
    } else {
        lines.with_target(false).with_ansi(terminal).boxed()
    };
    let reports = reports.map(|reports| reports.with_filter(Interesting));
    tracing_subscriber::registry().with(reports).with(lines.with_filter(filter)).init();
    Ok(())
}

/// Makes a panic a line of the log like any other fault.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let why = panic.payload_as_str().unwrap_or("no words");
        tracing::error!(
            event = "process.panic",
            location = location.as_deref(),
            "a part of the program panicked: {why}"
        );
    }));
}

/// Writes lines without their secrets. A line arrives in one piece.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) => self.0.write_all(redact(text).as_bytes())?,
            Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Held(Arc<Mutex<Vec<u8>>>);

    impl Write for Held {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_object_with_its_request_and_without_secrets() {
        let held = Held::default();
        let writer = held.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || Redacting(writer.clone()))
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines { role: "all" });
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let span = tracing::info_span!("request", request_id = "r-1", org = tracing::field::Empty, method = "GET");
            let _entered = span.enter();
            span.record("org", "o-1");
            tracing::warn!(event = "store.away", role = "forged", tries = 3, "refused: Bearer abc.def\n\"quoted\"");
            tracing::info!("plain");
        });
        let text = String::from_utf8(held.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        for (name, value) in [
            ("level", "warn"),
            ("role", "all"),
            ("version", env!("CARGO_PKG_VERSION")),
            ("event", "store.away"),
            ("msg", "refused: Bearer [hidden]\n\"quoted\""),
            ("request_id", "r-1"),
            ("org", "o-1"),
            ("method", "GET"),
        ] {
            assert_eq!(lines[0][name], value, "{name}");
        }
        assert_eq!(lines[0]["tries"], 3);
        assert!(lines[0]["ts"].as_str().unwrap().ends_with('Z'));
        assert_eq!(lines[1]["event"], "tale.logging.tests");
    }
}
