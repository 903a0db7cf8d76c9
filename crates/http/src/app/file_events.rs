//! `/events/file`: tells open tabs which configuration files of their organization changed, by whose
//! hand ever. Off unless the operator asks for it.

use std::convert::Infallible;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use serde_json::json;
use tale_identity::{Capability, Via};
use tale_orgfiles::{FileChanges, Heard};
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::events::{draining, event, ticks, unbuffered};
use crate::caller::Member;
use crate::listeners::Listener;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(follow_files))
}

/// Changes of the organization's configuration files, for whoever may open their settings: their names, not their
/// content.
#[utoipa::path(get, path = "/events/file", tag = "app: live updates", params(("orgId" = String, Query)),
    responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn follow_files(State(app): State<App>, member: Member) -> Result<Response, HttpProblem> {
    let Some(watch) = &app.file_watch else { return Err(crate::door::not_found().await) };
    member.0.require(Capability::GovernanceManage)?;
    if app.stopping.is_cancelled() {
        return Err(draining().into());
    }
    let Via::Session(session) = member.0.via else {
        return Err(tale_core::Problem::internal("a browser's call without a session").into());
    };
    let place = app.listeners().enter(&app.identity, session, member.0.org);
    let changes = watch.listen(&member.0.org_slug).await;
    let events = stream(changes, place, app.stopping.clone()).map(Ok::<_, Infallible>);
    Ok(unbuffered(Sse::new(events).into_response()))
}

fn stream(mut changes: FileChanges, place: Listener, stopping: CancellationToken) -> impl Stream<Item = Event> + Send {
    async_stream::stream! {
        let mut ticks = ticks();
        yield event("hello", &json!({}));
        loop {
            tokio::select! {
                heard = changes.next() => yield match heard {
                    Heard::Change(change) => event("file", &json!(change)),
                    Heard::Everything => event("resync", &json!({})),
                },
                () = stopping.cancelled() => return,
                () = place.ended() => return,
                _ = ticks.tick() => yield Event::default().comment("ping"),
            }
        }
    }
}
