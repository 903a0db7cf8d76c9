//! The status report: which parts of the deployment answer (DCF-220).
//!
//! A process with stores asks them; the web tier, which has none, asks the backend, where a status
//! code is the whole answer. All are asked at once with a limit each, one look serves everybody who
//! asks meanwhile, and its result is kept for [`KEPT`]: however many read the page, the stores are
//! asked once in that time.

mod page;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use serde::Serialize;
use sqlx::PgPool;
use tale_blobs::Blobs;
use tale_core::clock::SharedClock;
use tale_knowledge::Knowledge;
use url::Url;
use utoipa::ToSchema;

pub(crate) use page::{page, preferred};

/// How long one part may take to answer before it counts as out.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a report is kept.
const KEPT: TimeDelta = TimeDelta::seconds(5);

/// A part of the deployment. The order and the names never change (DCF-220).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// The operational database, and with it everything but search.
    Application,
    /// The knowledge database.
    Knowledge,
    /// The object store.
    Files,
}

impl Component {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Application, Self::Knowledge, Self::Files];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Knowledge => "knowledge",
            Self::Files => "files",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }
}

/// One component of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Component)]
pub struct ComponentView {
    /// `application`, `knowledge` or `files`.
    pub id: &'static str,
    /// `operational` or `outage`.
    pub status: &'static str,
}

/// The status report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// `operational`, `degraded` or `outage`.
    pub status: &'static str,
    /// When it was looked at (ISO 8601).
    pub checked_at: String,
    /// The components, always in this order.
    pub components: Vec<ComponentView>,
}

impl StatusReport {
    fn new(at: DateTime<Utc>, up: [bool; 3]) -> Self {
        let status = match up.iter().filter(|up| **up).count() {
            3 => "operational",
            0 => "outage",
            _ => "degraded",
        };
        let components = Component::ALL.into_iter().zip(up).map(|(component, up)| ComponentView {
            id: component.name(),
            status: if up { "operational" } else { "outage" },
        });
        Self { status, checked_at: at.to_rfc3339(), components: components.collect() }
    }
}

/// Who is asked.
enum Asked {
    Stores { database: PgPool, knowledge: Knowledge, blobs: Blobs },
    Backend { client: reqwest::Client, address: Url },
}

/// A look that is on its way or done, and when it was done.
struct Look {
    report: Shared<BoxFuture<'static, StatusReport>>,
    done: Arc<OnceLock<DateTime<Utc>>>,
}

struct Inner {
    clock: SharedClock,
    asked: Asked,
    last: Mutex<Option<Look>>,
}

/// The status report of this process. Cheap to clone.
#[derive(Clone)]
pub struct Status(Arc<Inner>);

impl Status {
    /// Of a process that uses the stores itself.
    #[must_use]
    pub fn of_stores(clock: SharedClock, database: PgPool, knowledge: Knowledge, blobs: Blobs) -> Self {
        Self::new(clock, Asked::Stores { database, knowledge, blobs })
    }

    /// Of the web tier, which asks the doors at `backend`.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn of_backend(clock: SharedClock, backend: Url) -> Result<Self, reqwest::Error> {
        // The operator names this address; the guard is for those that others can name.
        tale_core::net::install_tls_provider();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PROBE_TIMEOUT)
            .build()?;
        Ok(Self::new(clock, Asked::Backend { client, address: backend }))
    }

    fn new(clock: SharedClock, asked: Asked) -> Self {
        Self(Arc::new(Inner { clock, asked, last: Mutex::default() }))
    }

    /// The report, at most [`KEPT`] old.
    pub async fn report(&self) -> StatusReport {
        let look = {
            let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.0.clock.now();
            let fresh = |look: &&Look| look.done.get().is_none_or(|done| now >= *done && now < *done + KEPT);
            match last.as_ref().filter(fresh) {
                Some(look) => look.report.clone(),
                None => last.insert(self.look()).report.clone(),
            }
        };
        look.await
    }

    /// A look in a task of its own: it ends even when nobody waits for it any more.
    fn look(&self) -> Look {
        let (status, done) = (self.clone(), Arc::new(OnceLock::new()));
        let set = Arc::clone(&done);
        let task = tokio::spawn(async move {
            let up = futures::future::join_all(Component::ALL.map(|component| status.probe(component))).await;
            let now = status.0.clock.now();
            let _ = set.set(now);
            StatusReport::new(now, [up[0], up[1], up[2]])
        });
        let (clock, set) = (self.0.clock.clone(), Arc::clone(&done));
        let report = async move {
            task.await.unwrap_or_else(|_| {
                let now = clock.now();
                let _ = set.set(now);
                StatusReport::new(now, [false; 3])
            })
        };
        Look { report: report.boxed().shared(), done }
    }

    /// Whether a component answers in time, asked now.
    pub async fn probe(&self, component: Component) -> bool {
        let answer = async {
            match (&self.0.asked, component) {
                (Asked::Stores { database, .. }, Component::Application) => {
                    sqlx::query("SELECT 1").execute(database).await.is_ok()
                }
                (Asked::Stores { knowledge, .. }, Component::Knowledge) => knowledge.ping().await.is_ok(),
                (Asked::Stores { blobs, .. }, Component::Files) => blobs.ping().await.is_ok(),
                (Asked::Backend { client, address }, _) => {
                    let Ok(address) = address.join(&format!("health/stores/{}", component.name())) else {
                        return false;
                    };
                    client.get(address).send().await.is_ok_and(|answer| answer.status().is_success())
                }
            }
        };
        tokio::time::timeout(PROBE_TIMEOUT, answer).await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use tale_core::{Clock, ManualClock, SystemClock};

    use super::*;

    /// A backend whose knowledge database is out, and how often it was asked.
    async fn backend() -> (Url, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = move |axum::extract::Path(name): axum::extract::Path<String>| async move {
            count.fetch_add(1, Ordering::SeqCst);
            if name == "knowledge" { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/health/stores/{name}", get(answer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (address.parse().unwrap(), asked)
    }

    #[tokio::test]
    async fn the_web_tier_asks_the_backend_once_in_five_seconds() {
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let (address, asked) = backend().await;
        let status = Status::of_backend(clock.clone(), address).unwrap();
        let first = status.report().await;
        let states: Vec<_> = first.components.iter().map(|component| (component.id, component.status)).collect();
        assert_eq!(states, [("application", "operational"), ("knowledge", "outage"), ("files", "operational")]);
        assert_eq!(first.status, "degraded");
        clock.advance(Duration::from_millis(4_999));
        let again = futures::future::join_all((0..50).map(|_| status.report())).await;
        assert!(again.iter().all(|report| *report == first));
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        clock.advance(Duration::from_millis(1));
        assert_ne!(status.report().await.checked_at, first.checked_at);
        assert_eq!(asked.load(Ordering::SeqCst), 6);
    }

    #[tokio::test]
    async fn a_backend_that_is_away_is_an_outage_of_everything() {
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let status = Status::of_backend(Arc::new(SystemClock), format!("http://{gone}").parse().unwrap()).unwrap();
        let report = status.report().await;
        assert_eq!(report.status, "outage");
        assert!(report.components.iter().all(|component| component.status == "outage"));
    }

    #[tokio::test]
    async fn a_backend_that_accepts_and_says_nothing_is_out_after_two_seconds() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", silent.local_addr().unwrap());
        let status = Status::of_backend(Arc::new(SystemClock), address.parse().unwrap()).unwrap();
        let began = std::time::Instant::now();
        assert_eq!(status.report().await.status, "outage");
        // All three at once: their limits do not add up.
        assert!(began.elapsed() < PROBE_TIMEOUT * 2, "{:?}", began.elapsed());
    }
}
