//! Reading the gauges.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use sqlx::PgPool;
use sqlx::pool::PoolConnection;
use tale_jobs::Depth;

use super::MetricsParts;

/// How long the state of the stores is believed (DCF-123).
const PROBED_EVERY_MS: i64 = 30_000;

/// How long a store may take to answer before it counts as down.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a database may take for a gauge.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// What a scrape found. What could not be had is absent.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub streams: usize,
    pub draining: bool,
    pub generations: Option<i64>,
    pub jobs: Option<Vec<Depth>>,
    pub pools: [Pool; 2],
    /// The store's name and whether it answered; without an object store there is nothing to ask.
    pub stores: Vec<(&'static str, bool)>,
}

/// A pool of connections.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub name: &'static str,
    pub most: u32,
    pub open: u32,
    pub idle: usize,
    /// How long this scrape waited for a connection.
    pub waited: Option<Duration>,
}

type Running = Shared<BoxFuture<'static, Arc<Found>>>;

/// Reads the gauges, once for all who ask at the same time.
pub(super) struct Collector {
    parts: MetricsParts,
    running: Mutex<Option<Running>>,
    probed: Mutex<Option<(i64, [bool; 3])>>,
}

impl Collector {
    pub(super) fn new(parts: MetricsParts) -> Self {
        Self { parts, running: Mutex::default(), probed: Mutex::default() }
    }

    pub(super) fn role(&self) -> &'static str {
        self.parts.role
    }

    /// What there is to see now.
    pub(super) async fn collect(self: &Arc<Self>) -> Arc<Found> {
        let running = {
            let mut running = lock(&self.running);
            match &*running {
                // Finished ones answer nobody who asks later.
                Some(shared) if shared.peek().is_none() => shared.clone(),
                _ => {
                    let collector = Arc::clone(self);
                    let shared = async move { Arc::new(collector.look().await) }.boxed().shared();
                    *running = Some(shared.clone());
                    shared
                }
            }
        };
        running.await
    }

    async fn look(&self) -> Found {
        // Before the scrape itself takes connections.
        let (app_pool, knowledge_pool) = (&self.parts.app_db, &self.parts.knowledge_db);
        let mut pools = [pool("app_db", app_pool), pool("knowledge_db", knowledge_pool)];
        let ((generations, jobs, app_wait), knowledge_wait, stores) =
            futures::join!(self.shared_state(), self.wait_of_knowledge(), self.stores());
        [pools[0].waited, pools[1].waited] = [app_wait, knowledge_wait];
        let [app_up, knowledge_up, files_up] = stores;
        let mut stores = vec![("app_db", app_up), ("knowledge_db", knowledge_up)];
        stores.extend(self.parts.blobs.is_configured().then_some(("object_store", files_up)));
        Found {
            streams: self.parts.streams.count(),
            draining: self.parts.draining.is_cancelled(),
            generations,
            jobs,
            pools,
            stores,
        }
    }

    /// What all replicas see alike: turns in flight and jobs.
    async fn shared_state(&self) -> (Option<i64>, Option<Vec<Depth>>, Option<Duration>) {
        let Some((mut conn, waited)) = acquire("app_db", &self.parts.app_db).await else { return (None, None, None) };
        let generations = within(QUERY_TIMEOUT, tale_chat::metrics::generations_in_flight(&mut conn)).await;
        let jobs = within(QUERY_TIMEOUT, tale_jobs::depths(&mut conn)).await;
        (said("generations", generations), said("jobs", jobs), Some(waited))
    }

    async fn wait_of_knowledge(&self) -> Option<Duration> {
        acquire("knowledge_db", &self.parts.knowledge_db).await.map(|(_, waited)| waited)
    }

    async fn stores(&self) -> [bool; 3] {
        let now = self.parts.clock.now_ms();
        if let Some((at, up)) = *lock(&self.probed)
            && (0..PROBED_EVERY_MS).contains(&(now - at))
        {
            return up;
        }
        let app = async { sqlx::query("SELECT 1").execute(&self.parts.app_db).await };
        let knowledge = async { sqlx::query("SELECT 1").execute(&self.parts.knowledge_db).await };
        let files = async { if self.parts.blobs.is_configured() { self.parts.blobs.ping().await } else { Ok(()) } };
        let (app, knowledge, files) =
            futures::join!(within(PROBE_TIMEOUT, app), within(PROBE_TIMEOUT, knowledge), within(PROBE_TIMEOUT, files));
        let up = [
            said("app_db", app).is_some(),
            said("knowledge_db", knowledge).is_some(),
            said("object_store", files).is_some(),
        ];
        *lock(&self.probed) = Some((now, up));
        up
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool(name: &'static str, pool: &PgPool) -> Pool {
    Pool { name, most: pool.options().get_max_connections(), open: pool.size(), idle: pool.num_idle(), waited: None }
}

async fn acquire(name: &'static str, pool: &PgPool) -> Option<(PoolConnection<sqlx::Postgres>, Duration)> {
    let started = Instant::now();
    let conn = said(name, within(PROBE_TIMEOUT, pool.acquire()).await)?;
    Some((conn, started.elapsed()))
}

async fn within<T, E: Display>(time: Duration, work: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(time, work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", time.as_secs())),
    }
}

/// The value, or a line in the log.
fn said<T>(collector: &'static str, outcome: Result<T, String>) -> Option<T> {
    outcome
        .inspect_err(|error| {
            tracing::warn!(event = "metrics.collector_failed", collector, error, "a gauge could not be read")
        })
        .ok()
}
