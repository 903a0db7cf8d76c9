//! What pages tell outward through their own origin: aggregate statistics (`/_a`) and faults
//! (`/_reports`). Both belong to the web tier, need no database and no session, and are absent unless
//! they are configured. Neither may disturb a page: what cannot be passed on is dropped.

pub mod analytics;
pub mod reports;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::routing::{get, post};
use tale_env::SiteSettings;

use self::analytics::Analytics;
use self::reports::BrowserReports;
use crate::HttpProblem;
use crate::caller::check_origin;
use crate::state::Shell;

/// Where pages may tell something.
#[derive(Clone, Default)]
pub struct Outlets {
    /// Page statistics.
    pub analytics: Option<Arc<Analytics>>,
    /// Faults in browsers, and how long pages took.
    pub reports: Option<Arc<BrowserReports>>,
}

impl Outlets {
    /// What the page learns about both: the id of the site and the share of measured pages. Empty is off.
    pub(crate) fn marks(&self) -> [String; 2] {
        let website = self.analytics.as_ref().map(|analytics| analytics.website().to_owned());
        let share = self.reports.as_ref().map(|reports| reports.share().to_string());
        [website.unwrap_or_default(), share.unwrap_or_default()]
    }
}

/// The routes. They are for our own pages and stand in no contract.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S>
where
    Shell: FromRef<S>,
{
    Router::new()
        .route("/_a/script.js", get(analytics::script))
        .route("/_a/api/send", post(analytics::send))
        .route("/_reports", post(reports::receive))
}

/// Refuses what no page of ours sent.
fn from_our_page(site: &SiteSettings, parts: &Parts) -> Result<(), HttpProblem> {
    Ok(check_origin(site, parts)?)
}

/// A header as text; empty when it is absent or longer than `longest`.
fn text<'a>(headers: &'a HeaderMap, name: &str, longest: usize) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if value.len() > longest { "" } else { value }
}

/// The template of a page: a path of words and placeholders, without query and fragment.
fn is_template(page: &str) -> bool {
    page.len() <= 200
        && page.starts_with('/')
        && page.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_:*".contains(&b))
        // Ids are longer than any word of ours.
        && page.split('/').all(|word| word.len() <= 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_holds_no_id() {
        for good in ["/", "/log-in", "/dashboard/:org/chat/:threadId", "/dashboard/:org/*"] {
            assert!(is_template(good), "{good}");
        }
        for bad in [
            "",
            "log-in",
            "/log-in?next=/x",
            "/a#b",
            "/dashboard/01999b1e-7f9b-7d10-8000-0123456789ab/chat",
            "/dashboard/01999b1e7f9b7d1080000123456789ab",
            "https://tale.example.org/",
            "/a b",
        ] {
            assert!(!is_template(bad), "{bad}");
        }
    }
}
