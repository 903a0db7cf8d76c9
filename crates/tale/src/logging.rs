//! Log lines: text for a person at a terminal, JSON for everything else.

use std::io::IsTerminal;

use tale_env::{EnvSource, registry};
use tracing_subscriber::EnvFilter;

/// What is logged unless TALE_LOG says otherwise. Notices of the server ("already exists, skipping")
/// and the pool's own words about lost connections add nothing to what is said where it matters.
const DEFAULT: &str =
    "info,sqlx=warn,sqlx::postgres::notice=error,sqlx::pool=error,sqlx_core::pool=error,hyper=warn,tantivy=warn";

/// Starts logging to standard error.
pub(crate) fn start(env: &dyn EnvSource) -> Result<(), String> {
    let set =
        |var: &tale_env::Var| env.get(var.name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = set(&registry::TALE_LOG).unwrap_or_else(|| DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&filter)
        .map_err(|_| format!("TALE_LOG is {filter:?}; expected {}", registry::TALE_LOG.expects))?;
    let terminal = std::io::stderr().is_terminal();
    let json = match set(&registry::TALE_LOG_FORMAT).as_deref() {
        None => !terminal,
        Some("json") => true,
        Some("text") => false,
        Some(other) => {
            return Err(format!("TALE_LOG_FORMAT is {other:?}; expected {}", registry::TALE_LOG_FORMAT.expects));
        }
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if json {
        builder.json().flatten_event(true).with_span_list(false).init();
    } else {
        builder.with_target(false).with_ansi(terminal).init();
    }
    Ok(())
}
