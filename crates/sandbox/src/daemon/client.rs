//! Calls to the daemons of sessions over the network of sessions. Each request carries the session's token and the
//! incarnation that it is meant for.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tale_core::clock::SharedClock;
use tale_sandbox_wire::daemon as wire;
use tale_sandbox_wire::daemon::{
    EnvAnswer, EnvPatch, GenerationAnswer, INCARNATION_HEADER, PinAnswer, PinRequest, ReclaimAnswer, ReclaimRequest,
    ReleaseAnswer, ReleaseRequest, TOKEN_HEADER,
};
use tale_sandbox_wire::names::{ClaimId, Generation};
use tale_sandbox_wire::sign::Key;

use super::{Claim, DaemonError, Daemons, Health, Target};

/// Longest answer to a short call.
const PROBE: Duration = Duration::from_secs(2);

/// Longest wait for the head of an answer to a request that works on files or commands.
const WORK: Duration = Duration::from_secs(60);

/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(2);

/// Largest answer that is read into memory.
const LARGEST_ANSWER: usize = 8 << 20;

/// Speaks with daemons.
#[derive(Debug, Clone)]
pub struct DaemonClient {
    client: Client<HttpConnector, Full<Bytes>>,
    /// Sessions have tokens of one of them.
    keys: Arc<[Key]>,
    clock: SharedClock,
}

/// What a daemon answered, head first.
pub type Answer = Response<Incoming>;

fn unreachable(error: impl Display) -> DaemonError {
    DaemonError::Unreachable(error.to_string())
}

impl DaemonClient {
    /// A client whose tokens follow from one of `keys`, mostly the first.
    #[must_use]
    pub fn new(keys: Arc<[Key]>, clock: SharedClock) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(4)
            .build(connector);
        Self { client, keys, clock }
    }

    /// Sends a request and answers when the head of the answer is there. `path` has its query.
    ///
    /// # Errors
    /// [`DaemonError::Unreachable`] when there is no answer, or one of another session or incarnation.
    pub async fn send(
        &self,
        target: &Target,
        method: Method,
        path: &str,
        body: Bytes,
        patience: Duration,
    ) -> Result<Answer, DaemonError> {
        for key in self.keys.iter() {
            let request = Request::builder()
                .method(method.clone())
                .uri(format!("http://{}{path}", target.address))
                .header(TOKEN_HEADER, key.daemon_token(&target.session))
                .header(INCARNATION_HEADER, target.incarnation.to_string())
                .body(Full::new(body.clone()))
                .map_err(unreachable)?;
            let answer = tokio::time::timeout(patience, self.client.request(request)).await;
            let answer = answer.map_err(|_| unreachable("no answer in time"))?.map_err(unreachable)?;
            if answer.status() != StatusCode::UNAUTHORIZED {
                return Ok(answer);
            }
        }
        // An address can come to another session: its daemon knows neither these tokens nor this incarnation.
        Err(unreachable("another session has the address"))
    }

    /// Sends a request that works on files or commands.
    ///
    /// # Errors
    /// As [`DaemonClient::send`].
    pub async fn work(&self, target: &Target, method: Method, path: &str, body: Bytes) -> Result<Answer, DaemonError> {
        self.send(target, method, path, body, WORK).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        target: &Target,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<T, DaemonError> {
        let bytes = match body {
            Some(body) => serde_json::to_vec(body).map_err(unreachable)?,
            None => Vec::new(),
        };
        let called = async {
            let answer = self.send(target, method, path, bytes.into(), PROBE).await?;
            let status = answer.status();
            let body =
                Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await.map_err(unreachable)?.to_bytes();
            if status.is_success() {
                return serde_json::from_slice(&body).map_err(unreachable);
            }
            let refusal = serde_json::from_slice::<wire::Refusal>(&body).ok().map(|refusal| refusal.error);
            Err(match refusal {
                Some(wire::DaemonError::Reclaiming) => DaemonError::Reclaiming,
                Some(wire::DaemonError::IncarnationMismatch) => unreachable("another incarnation has the address"),
                _ => DaemonError::Refused(status.as_u16()),
            })
        };
        tokio::time::timeout(2 * PROBE, called).await.map_err(|_| unreachable("no answer in time"))?
    }
}

/// No body.
const NONE: Option<&()> = None;

#[async_trait]
impl Daemons for DaemonClient {
    async fn health(&self, target: &Target) -> Result<Health, DaemonError> {
        let health: wire::Health = self.call(target, Method::GET, "/healthz", NONE).await?;
        if health.incarnation.as_deref().is_some_and(|named| named != target.incarnation.to_string()) {
            return Err(unreachable("another incarnation has the address"));
        }
        let egress = health.dependencies.as_ref().map(|dependencies| &dependencies["egress"]);
        if egress.is_some_and(|egress| egress["reason"] == "redirector_stopped") {
            tracing::warn!(event = "sandbox.egress_stopped", session = %target.session, "programs in this session that know of no proxy reach nothing any more; a new start of the session mends that");
        }
        let last = i64::try_from(health.last_activity_at_ms).unwrap_or(i64::MAX);
        let idle = u64::try_from(self.clock.now_ms().saturating_sub(last)).unwrap_or(0);
        Ok(Health {
            idle: Duration::from_millis(idle),
            last_activity_at_ms: last,
            live_execs: u32::try_from(health.live_execs).unwrap_or(u32::MAX),
            active_operations: u32::try_from(health.activity.active_operations).unwrap_or(u32::MAX),
            generation: health.activity.generation,
            released: health.activity.released,
            pinned: health.activity.pinned,
            reclaiming: health.activity.reclaiming,
            can_be_claimed: health.activity.idle_reclaim,
            inner_docker_used: health.docker.is_some_and(|engine| engine.used),
        })
    }

    async fn ready(&self, target: &Target) -> Result<(), DaemonError> {
        self.call::<serde_json::Value>(target, Method::GET, "/readyz", NONE).await.map(|_| ())
    }

    async fn acquire(&self, target: &Target) -> Result<Generation, DaemonError> {
        let answer: GenerationAnswer = self.call(target, Method::POST, "/acquire", NONE).await?;
        Ok(answer.generation)
    }

    async fn ticket(&self, target: &Target) -> Result<Generation, DaemonError> {
        let answer: GenerationAnswer = self.call(target, Method::GET, "/release", NONE).await?;
        Ok(answer.generation)
    }

    async fn release(&self, target: &Target, generation: &Generation) -> Result<bool, DaemonError> {
        let request = ReleaseRequest { generation: generation.clone() };
        let answer: ReleaseAnswer = self.call(target, Method::POST, "/release", Some(&request)).await?;
        Ok(answer.released)
    }

    async fn reclaim(&self, target: &Target, claim: &Claim) -> Result<bool, DaemonError> {
        let request = ReclaimRequest {
            claim_id: ClaimId::new(claim.id.as_str()).map_err(unreachable)?,
            generation: claim.generation.clone(),
            idle_before_ms: claim.idle_before_ms.and_then(|ms| u64::try_from(ms).ok()),
        };
        let answer: ReclaimAnswer = self.call(target, Method::POST, "/reclaim", Some(&request)).await?;
        Ok(answer.claimed)
    }

    async fn pin(&self, target: &Target, pinned: bool) -> Result<(), DaemonError> {
        let answer: PinAnswer = self.call(target, Method::POST, "/pin", Some(&PinRequest { pinned })).await?;
        if answer.pinned == pinned { Ok(()) } else { Err(DaemonError::Refused(200)) }
    }

    async fn set_env(&self, target: &Target, env: &BTreeMap<String, String>) -> Result<(), DaemonError> {
        let patch = EnvPatch { set: env.clone(), unset: Vec::new() };
        self.call::<EnvAnswer>(target, Method::POST, "/env", Some(&patch)).await.map(|_| ())
    }
}
