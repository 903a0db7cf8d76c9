//! Log lines: text for a person at a terminal, JSON for everything else.

use std::io::IsTerminal;

use tale_env::settings::text_of;
use tale_env::{EnvProblem, EnvProblems, EnvSource, Severity, registry};
use tracing_subscriber::EnvFilter;

/// What is logged unless TALE_LOG says otherwise. Notices of the server ("already exists, skipping")
/// and the pool's own words about lost connections add nothing to what is said where it matters.
const DEFAULT: &str =
    "info,sqlx=warn,sqlx::postgres::notice=error,sqlx::pool=error,sqlx_core::pool=error,hyper=warn,tantivy=warn";

/// Starts logging to standard error.
pub(crate) fn start(env: &dyn EnvSource) -> Result<(), EnvProblems> {
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
    let terminal = std::io::stderr().is_terminal();
    let json = format.map_or(!terminal, |format| format == "json");
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if json {
        builder.json().flatten_event(true).with_span_list(false).init();
    } else {
        builder.with_target(false).with_ansi(terminal).init();
    }
    Ok(())
}
