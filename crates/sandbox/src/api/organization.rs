//! The end of an organization (4.8 of the specification).

use std::collections::BTreeSet;

use axum::response::Response;
use hyper::StatusCode;
use tale_sandbox_wire::names::{OrganizationId, SessionId};
use tale_sandbox_wire::spawner::{Deletion, ErrorCode, TeardownAnswer};

use super::Api;
use super::answer::{Refused, ok};
use super::route::Call;
use super::sessions::refused_destroy;
use crate::backend::{self, Backend, BackendError};
use crate::spawner::{Destroy, Destroyed, SessionState};

impl Api {
    /// Destroys every session and every workspace of the organization, then its caches. Whoever asks again goes on.
    pub(super) async fn tear_down(&self, call: &Call) -> Result<Response, Refused> {
        let org = call.path_organization()?;
        let mine = self.spawner.sessions(Some(&org));
        if mine.iter().any(|info| info.state == SessionState::Creating) {
            let sentence = "a session of the organization is being created";
            return Err(Refused::new(StatusCode::CONFLICT, ErrorCode::Busy, sentence).retry(10));
        }
        let all = self.sessions_of(&org).await.map_err(|error| {
            tracing::warn!(event = "sandbox.teardown", %org, %error, "what an organization has could not be listed");
            let sentence = "what the organization has cannot be listed now";
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InventoryUnavailable, sentence).retry(5)
        })?;
        let (mut sessions, mut deletion) = (0_u32, Deletion::Done);
        for session in all {
            let destroyed = self.spawner.destroy(&session, Destroy::default()).await;
            let refused = |error| refused_destroy(&error).with(|body| body.session_id = Some(session.clone()));
            if let Destroyed::Done { destroyed, deletion: one } = destroyed.map_err(refused)? {
                sessions += u32::from(destroyed);
                deletion = worse(deletion, one);
            }
        }
        let package_caches = self.docker.remove_caches(&org).await.map_err(|error| {
            tracing::error!(event = "sandbox.teardown", %org, %error, "the caches of an organization could not be removed");
            Refused::new(StatusCode::BAD_GATEWAY, ErrorCode::TeardownFailed, error.to_string())
        })?;
        Ok(ok(&TeardownAnswer { sessions, deletion, package_caches }))
    }

    async fn sessions_of(&self, org: &OrganizationId) -> Result<BTreeSet<SessionId>, BackendError> {
        let running = self.docker.list().await?;
        let mut all: BTreeSet<SessionId> =
            self.spawner.sessions(Some(org)).into_iter().map(|info| info.session).collect();
        all.extend(running.computes.into_iter().filter(|compute| compute.org == *org).map(|compute| compute.session));
        let workspaces = self.docker.workspaces().await?;
        all.extend(workspaces.into_iter().filter(|one| one.org.as_ref() == Some(org)).map(|one| one.session));
        Ok(all)
    }
}

fn worse(all: Deletion, one: backend::Deletion) -> Deletion {
    match (all, one) {
        (Deletion::Failed, _) | (_, backend::Deletion::Failed) => Deletion::Failed,
        (_, backend::Deletion::Pending) => Deletion::Pending,
        (all, backend::Deletion::Done) => all,
    }
}
