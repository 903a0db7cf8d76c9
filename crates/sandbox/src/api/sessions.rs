//! Sessions: create, look, hold, pin, destroy.

use std::time::Duration;

use axum::response::Response;
use hyper::StatusCode;
use tale_sandbox_wire::daemon::{GenerationAnswer, PinRequest, ReleaseAnswer, ReleaseRequest};
use tale_sandbox_wire::exec::is_denied_env;
use tale_sandbox_wire::spawner::{
    BackendKind, CreateRequest, Deletion, DestroyAnswer, DrainAnswer, ErrorCode, PinAnswer, Placement, SessionAnswer,
    SessionInfo, SessionState, SessionsAnswer,
};

use super::Api;
use super::answer::{Refused, json, ok};
use super::route::Call;
use crate::backend;
use crate::spawner::{self, CreateError, Destroy, DestroyError, Destroyed, HoldError, Order, PinError};

impl Api {
    pub(super) async fn create(&self, call: &Call) -> Result<Response, Refused> {
        let request: CreateRequest = call.json()?;
        request.check().map_err(|error| Refused::bad(error.to_string()))?;
        if request.placement == Some(Placement::Device) {
            let sentence = "no device is connected to this deployment";
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::DeviceOffline, sentence));
        }
        let mut env = request.env;
        // Left out without a word, as agreed.
        env.retain(|name, _| !is_denied_env(name));
        let order = Order {
            session: request.session_id,
            org: request.organization_id,
            profile: request.profile,
            ttl: request.ttl_ms.map(Duration::from_millis),
            idle_timeout: request.idle_timeout_ms.map(Duration::from_millis),
            env,
        };
        let info = self.spawner.create(&order).await.map_err(refused_create)?;
        Ok(json(StatusCode::CREATED, &SessionAnswer { session: shown(info) }))
    }

    pub(super) fn list(&self, call: &Call) -> Result<Response, Refused> {
        let org = call.organization()?;
        let sessions = self.spawner.sessions(org.as_ref()).into_iter().map(shown).collect();
        Ok(ok(&SessionsAnswer { sessions }))
    }

    pub(super) async fn session(&self, call: &Call) -> Result<Response, Refused> {
        let info = self.spawner.session(&call.session()?).await?;
        Ok(ok(&SessionAnswer { session: shown(info) }))
    }

    pub(super) async fn destroy(&self, call: &Call) -> Result<Response, Refused> {
        let how = Destroy {
            if_idle: call.flag("if_idle"),
            if_stopped: call.flag("if_stopped"),
            await_deletion: call.flag("await_deletion"),
        };
        let destroyed = self.spawner.destroy(&call.session()?, how).await.map_err(|error| refused_destroy(&error))?;
        Ok(ok(&match destroyed {
            Destroyed::Busy => DestroyAnswer::BUSY,
            Destroyed::Done { destroyed, deletion } => {
                DestroyAnswer::Ended { destroyed, deletion: shown_deletion(deletion) }
            }
        }))
    }

    pub(super) async fn acquire(&self, call: &Call) -> Result<Response, Refused> {
        let generation = self.spawner.acquire(&call.session()?).await.map_err(refused_hold)?;
        Ok(ok(&GenerationAnswer { generation, incarnation: None }))
    }

    pub(super) async fn ticket(&self, call: &Call) -> Result<Response, Refused> {
        let generation = self.spawner.release_ticket(&call.session()?).await?;
        Ok(ok(&GenerationAnswer { generation, incarnation: None }))
    }

    pub(super) async fn release(&self, call: &Call) -> Result<Response, Refused> {
        let request: ReleaseRequest = call.json()?;
        let released = self.spawner.release(&call.session()?, &request.generation).await?;
        Ok(ok(&ReleaseAnswer { released, incarnation: None }))
    }

    pub(super) async fn pin(&self, call: &Call) -> Result<Response, Refused> {
        let (session, request): (_, PinRequest) = (call.session()?, call.json()?);
        match self.spawner.pin(&session, request.pinned).await {
            Ok(()) => Ok(ok(&PinAnswer { pinned: request.pinned, pin_synchronized: None })),
            Err(PinError::Lookup(error)) => Err(error.into()),
            Err(PinError::NotDelivered(problem)) => {
                tracing::warn!(event = "sandbox.pin", %session, problem, "a pin could not be delivered everywhere");
                let info = self.spawner.session(&session).await?;
                let answer = PinAnswer { pinned: info.pinned, pin_synchronized: Some(false) };
                Ok(json(StatusCode::SERVICE_UNAVAILABLE, &answer))
            }
        }
    }

    pub(super) fn drain(&self) -> Response {
        self.spawner.drain();
        self.drain_status()
    }

    pub(super) fn drain_status(&self) -> Response {
        let (draining, session_ids) = self.spawner.drain_status();
        ok(&DrainAnswer { draining, sessions: u32::try_from(session_ids.len()).unwrap_or(u32::MAX), session_ids })
    }
}

fn shown(info: spawner::SessionInfo) -> SessionInfo {
    let ms = |at: i64| u64::try_from(at).unwrap_or(0);
    SessionInfo {
        session_id: info.session,
        organization_id: info.org,
        profile: info.profile,
        state: match info.state {
            spawner::SessionState::Creating => SessionState::Creating,
            spawner::SessionState::Ready => SessionState::Ready,
            spawner::SessionState::Degraded => SessionState::Degraded,
            spawner::SessionState::Terminating => SessionState::Terminating,
        },
        backend: BackendKind::Docker,
        created_at_ms: ms(info.created_at_ms),
        expires_at_ms: ms(info.expires_at_ms),
        idle_timeout_ms: u64::try_from(info.idle_timeout.as_millis()).unwrap_or(u64::MAX),
        pinned: info.pinned,
        pin_synchronized: (!info.pin_synchronized).then_some(false),
    }
}

pub(super) fn shown_deletion(deletion: backend::Deletion) -> Deletion {
    match deletion {
        backend::Deletion::Done => Deletion::Done,
        backend::Deletion::Pending => Deletion::Pending,
        backend::Deletion::Failed => Deletion::Failed,
    }
}

fn refused_create(error: CreateError) -> Refused {
    let sentence = error.to_string();
    let refuse = |status, code| Refused::new(status, code, sentence.clone());
    match error {
        CreateError::Draining => refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Draining),
        CreateError::ImagePulling => refuse(StatusCode::TOO_MANY_REQUESTS, ErrorCode::RuntimeImage).retry(5),
        CreateError::ImageMissing { detail, retry_after } => {
            refuse(StatusCode::TOO_MANY_REQUESTS, ErrorCode::RuntimeImage)
                .with(|body| body.detail = Some(detail))
                .retry_in(retry_after)
        }
        CreateError::Foreign => refuse(StatusCode::FORBIDDEN, ErrorCode::PlacementConflict),
        CreateError::Duplicate => refuse(StatusCode::CONFLICT, ErrorCode::Duplicate),
        CreateError::Busy { retry_after } => {
            refuse(StatusCode::TOO_MANY_REQUESTS, ErrorCode::Busy).retry_in(retry_after)
        }
        CreateError::NoRoom(refusal) => refusal.into(),
        CreateError::Failed(problem) => {
            tracing::error!(event = "sandbox.create_failed", problem, "a session could not be started");
            refuse(StatusCode::BAD_GATEWAY, ErrorCode::CreateFailed)
        }
    }
}

pub(super) fn refused_hold(error: HoldError) -> Refused {
    match error {
        HoldError::Lookup(error) => error.into(),
        HoldError::NoRoom(refusal) => refusal.into(),
    }
}

pub(super) fn refused_destroy(error: &DestroyError) -> Refused {
    tracing::error!(event = "sandbox.destroy_failed", %error, "a session could not be destroyed");
    Refused::new(StatusCode::BAD_GATEWAY, ErrorCode::DestroyFailed, error.to_string())
}
