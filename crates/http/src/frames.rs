//! Which origins may show pages of Tale in a frame (DCF-175).
//!
//! A process with the database asks it; the web tier, which has none, asks the backend. One look serves
//! every page for [`KEPT`], no page waits for it longer than [`PATIENCE`], and a result stays when the
//! next look fails: an outage changes no header.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_identity::Identity;
use url::Url;

use crate::HttpProblem;
use crate::state::App;

/// How long a result is taken for the present one.
const KEPT: TimeDelta = TimeDelta::seconds(5);

/// How long a look may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a page waits for a look before it takes the earlier result.
const PATIENCE: Duration = Duration::from_millis(500);

/// Largest answer of the backend, in bytes: every organization may list a few.
const LARGEST: usize = 4 << 20;

/// Where the doors tell the web tier, at their own address. No proxy passes it on.
pub(crate) const ADDRESS: &str = "/health/frames";

/// Pages that belong to no organization.
const OF_NO_ORGANIZATION: [&str; 6] =
    ["/", "/log-in", "/setup", "/dashboard", "/dashboard/create-organization", "/dashboard/switching"];

/// Origins by organization.
pub type FrameLists = HashMap<OrgId, Vec<String>>;

enum Asked {
    Database(Identity),
    Backend { client: reqwest::Client, address: Url },
}

type Look = Shared<BoxFuture<'static, Arc<FrameLists>>>;

#[derive(Default)]
struct Held {
    lists: Option<Arc<FrameLists>>,
    /// When they were read, or could not be.
    at: Option<DateTime<Utc>>,
    /// A look that is on its way.
    look: Option<Look>,
}

struct Inner {
    clock: SharedClock,
    asked: Asked,
    held: Mutex<Held>,
}

/// The lists, as far as this process knows. Cheap to clone.
#[derive(Clone)]
pub struct Frames(Arc<Inner>);

impl Frames {
    /// Of a process with the database.
    #[must_use]
    pub fn of_database(clock: SharedClock, identity: Identity) -> Self {
        Self::new(clock, Asked::Database(identity))
    }

    /// Of the web tier, which asks the doors at `backend`.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn of_backend(clock: SharedClock, backend: &Url) -> Result<Self, reqwest::Error> {
        // The operator names this address; the guard is for those that others can name.
        tale_core::net::install_tls_provider();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build()?;
        let mut address = backend.clone();
        address.set_path(ADDRESS);
        Ok(Self::new(clock, Asked::Backend { client, address }))
    }

    fn new(clock: SharedClock, asked: Asked) -> Self {
        Self(Arc::new(Inner { clock, asked, held: Mutex::default() }))
    }

    /// The origins that may frame the page at `path`: of its organization, or, for pages that belong to
    /// none, of all of them. The app's router reads addresses more generously (`/%64ashboard/…`); one
    /// that is written in another way than the app writes it admits nobody.
    pub async fn admitted(&self, path: &str) -> Vec<String> {
        let lists = self.lists().await;
        if OF_NO_ORGANIZATION.contains(&path) {
            let mut all: Vec<String> = lists.values().flatten().cloned().collect();
            all.sort_unstable();
            all.dedup();
            all.truncate(tale_identity::frames::MAX_IN_ALL);
            return all;
        }
        let org = path.strip_prefix("/dashboard/").and_then(|rest| rest.split('/').next()?.parse::<OrgId>().ok());
        org.and_then(|org| lists.get(&org).cloned()).unwrap_or_default()
    }

    async fn lists(&self) -> Arc<FrameLists> {
        let (earlier, look) = {
            let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.0.clock.now();
            let earlier = held.lists.clone().unwrap_or_default();
            if held.at.is_some_and(|at| now >= at && now < at + KEPT) {
                return earlier;
            }
            (earlier, held.look.get_or_insert_with(|| self.look()).clone())
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or(earlier)
    }

    /// A look in a task of its own: it ends even when nobody waits for it.
    fn look(&self) -> Look {
        let frames = self.clone();
        let task = tokio::spawn(async move {
            let read = tokio::time::timeout(TIMEOUT, frames.read()).await.ok().flatten();
            let mut held = frames.0.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.at = Some(frames.0.clock.now());
            held.look = None;
            if let Some(read) = read {
                held.lists = Some(Arc::new(read));
            }
            held.lists.clone().unwrap_or_default()
        });
        async move { task.await.unwrap_or_default() }.boxed().shared()
    }

    async fn read(&self) -> Option<FrameLists> {
        match &self.0.asked {
            Asked::Database(identity) => {
                let rows = identity.all_frame_origins().await.ok()?;
                Some(rows.into_iter().map(|row| (row.org, row.origins)).collect())
            }
            Asked::Backend { client, address } => {
                let mut answer = client.get(address.clone()).send().await.ok()?.error_for_status().ok()?;
                let mut body = Vec::new();
                while let Some(part) = answer.chunk().await.ok()? {
                    if body.len() + part.len() > LARGEST {
                        return None;
                    }
                    body.extend_from_slice(&part);
                }
                serde_json::from_slice(&body).ok()
            }
        }
    }
}

/// The lists of every organization, for the web tier. They stand in the headers of pages anyway.
pub(crate) async fn tell(State(app): State<App>) -> Result<Json<FrameLists>, HttpProblem> {
    let rows = app.identity.all_frame_origins().await?;
    Ok(Json(rows.into_iter().map(|row| (row.org, row.origins)).collect()))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tale_core::{Clock, ManualClock, SystemClock};

    use super::*;

    #[tokio::test]
    async fn the_web_tier_asks_once_in_five_seconds_and_keeps_what_it_heard() {
        let (org, other) = (OrgId::new(), OrgId::new());
        let told = Arc::new(Mutex::new(Some(HashMap::from([
            (org, vec!["https://portal.example".to_owned()]),
            (other, vec!["https://a.example".to_owned(), "https://portal.example".to_owned()]),
        ]))));
        let answers = Arc::clone(&told);
        let answer = move || async move {
            let lists = answers.lock().unwrap().clone();
            lists.map(Json).ok_or(axum::http::StatusCode::SERVICE_UNAVAILABLE)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().route(ADDRESS, get(answer))).await });
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let frames = Frames::of_backend(clock.clone(), &backend).unwrap();
        let page = format!("/dashboard/{org}/chat");
        assert_eq!(frames.admitted(&page).await, ["https://portal.example"]);
        assert_eq!(frames.admitted("/log-in").await, ["https://a.example", "https://portal.example"]);
        assert!(frames.admitted(&format!("/dashboard/{}/chat", OrgId::new())).await.is_empty());
        let encoded: String = org.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
        for odd in [
            format!("/dashboard/{encoded}/chat"),
            format!("/%64ashboard/{org}/chat"),
            format!("/dashboard//{org}/chat"),
            format!("//dashboard/{org}/chat"),
            "/%6cog-in".to_owned(),
            "//log-in".to_owned(),
            "/dashboard/switching/x".to_owned(),
            "/elsewhere".to_owned(),
        ] {
            assert!(frames.admitted(&odd).await.is_empty(), "{odd}");
        }

        // Out: the list stays.
        *told.lock().unwrap() = None;
        clock.advance(Duration::from_secs(5));
        assert_eq!(frames.admitted(&page).await, ["https://portal.example"]);

        // Back, and changed: nothing for five seconds, then all at once.
        *told.lock().unwrap() = Some(HashMap::new());
        assert_eq!(frames.admitted(&page).await, ["https://portal.example"]);
        clock.advance(Duration::from_secs(5));
        assert!(frames.admitted("/log-in").await.is_empty());
    }

    #[tokio::test]
    async fn a_backend_that_is_away_admits_nobody() {
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let backend = format!("http://{gone}").parse().unwrap();
        let frames = Frames::of_backend(Arc::new(SystemClock), &backend).unwrap();
        assert!(frames.admitted("/log-in").await.is_empty());
    }
}
