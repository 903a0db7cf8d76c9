//! `/events`: the one live stream of a tab (server-sent events).
//!
//! It carries hints ("this changed, read it again") of the organization and, when a chat is open,
//! the turn that runs in it. An idle stream holds a place in the organization's hint ring, one among
//! the listeners and a timer, nothing else; it joins a turn when a hint says that the chat changed.
//! [`crate::listeners`] ends it when its session or membership is gone.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tale_chat::{DeltaKind, TurnEvent};
use tale_core::ids::{OrgId, ThreadId, UserId};
use tale_core::{Code, Problem};
use tale_db::hints::{HintEvent, Topic};
use tale_identity::Via;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::chat::{owner_of, thread_id};
use crate::caller::Member;
use crate::listeners::Listener;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;
use crate::wire::chat::part_view;

/// Pause between two comments that keep proxies from closing an idle stream.
const PING: Duration = Duration::from_secs(15);

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(follow_events))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Parameters {
    thread_id: Option<String>,
}

/// The live stream of a tab: hints of the organization and the running turn of the open chat.
#[utoipa::path(get, path = "/events", tag = "app: live updates", params(("orgId" = String, Query), ("threadId" = Option<String>, Query)),
    responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn follow_events(
    State(app): State<App>,
    member: Member,
    Query(parameters): Query<Parameters>,
) -> Result<Response, HttpProblem> {
    if app.stopping.is_cancelled() {
        return Err(draining().into());
    }
    let owner = owner_of(&member)?;
    let thread = parameters.thread_id.as_deref().map(thread_id).transpose()?;
    if let Some(id) = thread {
        app.chat.thread(&owner, id).await?;
    }
    let Via::Session(session) = member.0.via else {
        return Err(Problem::internal("a browser's call without a session").into());
    };
    let (org, user) = (owner.org, owner.user);
    let place = app.listeners().enter(&app.identity, session, org);
    let events = stream(app, org, user, thread, place).map(Ok::<_, Infallible>);
    Ok(unbuffered(Sse::new(events).into_response()))
}

/// Another replica takes the stream; here it would end at once.
pub(super) fn draining() -> Problem {
    Problem::new(Code::Draining, "This server is stopping. Connect again.").retry_after(Duration::from_secs(1))
}

/// Tells proxies to pass events on as they come.
pub(super) fn unbuffered(mut response: Response) -> Response {
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

/// When comments are due.
pub(super) fn ticks() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(PING);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}

type Turn = Pin<Box<dyn Stream<Item = TurnEvent> + Send>>;

fn stream(
    app: App,
    org: OrgId,
    user: UserId,
    thread: Option<ThreadId>,
    place: Listener,
) -> impl Stream<Item = Event> + Send {
    async_stream::stream! {
        // Subscribed before anything is read, so nothing falls between.
        let mut hints = app.hints.subscribe(org);
        let mut ticks = ticks();
        yield event("hello", &json!({}));
        let mut turn: Option<Turn> = thread.map(|id| join(&app, org, id));
        loop {
            tokio::select! {
                biased;
                next = next_of(&mut turn) => match next {
                    Some(happened) => yield turn_event(thread, &happened),
                    None => turn = None,
                },
                heard = hints.next_for(user) => match heard {
                    HintEvent::Hint(hint) => {
                        if hint.topic == Topic::Members {
                            place.look_soon();
                        }
                        if turn.is_none() && hint.topic == Topic::Thread && thread.is_some_and(|id| hint.id == Some(id.0)) {
                            turn = thread.map(|id| join(&app, org, id));
                        }
                        yield event("hint", &json!({ "topic": hint.topic, "id": hint.id }));
                    }
                    HintEvent::Resync => {
                        place.look_soon();
                        if turn.is_none() {
                            turn = thread.map(|id| join(&app, org, id));
                        }
                        yield event("resync", &json!({}));
                    }
                },
                () = app.stopping.cancelled() => return,
                () = place.ended() => return,
                _ = ticks.tick() => yield Event::default().comment("ping"),
            }
        }
    }
}

fn join(app: &App, org: OrgId, id: ThreadId) -> Turn {
    Box::pin(app.chat.follow(org, id))
}

async fn next_of(turn: &mut Option<Turn>) -> Option<TurnEvent> {
    match turn {
        Some(turn) => turn.next().await,
        None => std::future::pending().await,
    }
}

pub(super) fn event(name: &'static str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

fn turn_event(thread: Option<ThreadId>, happened: &TurnEvent) -> Event {
    let (name, data) = turn_wire(thread, happened);
    event(name, &data)
}

/// Name and data of a turn's event.
pub(crate) fn turn_wire(thread: Option<ThreadId>, happened: &TurnEvent) -> (&'static str, Value) {
    match happened {
        TurnEvent::Snapshot { message, status, parts } => (
            "turn",
            json!({ "threadId": thread, "messageId": message, "status": status.text(), "parts": parts.iter().map(part_view).collect::<Vec<_>>() }),
        ),
        TurnEvent::Delta { message, kind, index, text } => {
            let kind = match kind {
                DeltaKind::Text => "text",
                DeltaKind::Reasoning => "reasoning",
            };
            (
                "delta",
                json!({ "threadId": thread, "messageId": message, "kind": kind, "index": index, "text": &**text }),
            )
        }
        TurnEvent::Part { message, index, part } => {
            ("part", json!({ "threadId": thread, "messageId": message, "index": index, "part": part_view(part) }))
        }
        TurnEvent::Settled { message, status } => {
            ("settled", json!({ "threadId": thread, "messageId": message, "status": status.text() }))
        }
    }
}
