//! Models for whoever has a key.

use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};
use tale_gateway::Wire;

use super::bodies::Room;
use super::{GatewayDoor, GatewayDoorParts};
use crate::problem::HttpProblem;
use crate::v1::model_endpoints::{Refused, answered, openai_list, read};

/// Largest request of a model, in bytes: 64 MiB (MOD-143).
const MAX_BODY_BYTES: usize = 64 << 20;

/// Longest time to send one.
const BODY_TIME: Duration = Duration::from_secs(120);

/// Clients of OpenAI's interface write its address with and without `v1`.
pub(super) fn router() -> Router<GatewayDoor> {
    Router::new()
        .route("/openai/v1/models", get(models))
        .route("/openai/models", get(models))
        .route("/openai/v1/chat/completions", post(chat_completion))
        .route("/openai/chat/completions", post(chat_completion))
        .route("/openai/v1/responses", post(response))
        .route("/openai/responses", post(response))
        .route("/anthropic/v1/models", get(anthropic_models))
        .route("/anthropic/v1/messages", post(message))
        .route("/anthropic/v1/messages/count_tokens", post(count_tokens))
}

async fn models(State(door): State<GatewayDoor>, headers: HeaderMap) -> Result<Response, HttpProblem> {
    let holder = door.parts().keys.living(key(&headers)).await?;
    Ok(openai_list(holder.callable()))
}

async fn anthropic_models(State(door): State<GatewayDoor>, headers: HeaderMap) -> Result<Response, HttpProblem> {
    let models = door.parts().keys.living(key(&headers)).await?.callable();
    let (first, last) = (models.first().map(|model| &model.id), models.last().map(|model| &model.id));
    let data: Vec<_> = models
        .iter()
        .map(|model| {
            json!({ "type": "model", "id": model.id, "display_name": model.id, "created_at": "1970-01-01T00:00:00Z" })
        })
        .collect();
    Ok(Json(json!({ "data": data, "has_more": false, "first_id": first, "last_id": last })).into_response())
}

/// Holds nothing of the key's cap, so that whether the key lives is asked beforehand.
async fn count_tokens(State(door): State<GatewayDoor>, request: Request) -> Result<Response, Refused> {
    let (gateway, keys) = (&door.parts().gateway, &door.parts().keys);
    let holder = keys.living(key(request.headers())).await?;
    let (_room, beta, body) = received(&door, holder.org(), request).await?;
    let request = tale_gateway::Request::read_to_count(Wire::Messages, body)?;
    let tokens = gateway.count_with_key(keys, &holder, &request, beta.as_deref()).await?;
    Ok(Json(json!({ "input_tokens": tokens })).into_response())
}

async fn chat_completion(State(door): State<GatewayDoor>, request: Request) -> Result<Response, Refused> {
    call(&door, Wire::Chat, request).await
}

async fn response(State(door): State<GatewayDoor>, request: Request) -> Result<Response, Refused> {
    call(&door, Wire::Responses, request).await
}

async fn message(State(door): State<GatewayDoor>, request: Request) -> Result<Response, Refused> {
    call(&door, Wire::Messages, request).await
}

async fn call(door: &GatewayDoor, wire: Wire, request: Request) -> Result<Response, Refused> {
    let GatewayDoorParts { gateway, keys, stopping, .. } = door.parts();
    if stopping.is_cancelled() {
        let problem = Problem::new(Code::Draining, "This process is stopping. Send the request again.");
        return Err(problem.retry_after(Duration::from_secs(1)).into());
    }
    let holder = keys.holder(key(request.headers())).await?;
    tracing::Span::current().record("key", tracing::field::display(holder.id()));
    // Held until the provider has the request.
    let (_room, beta, body) = received(door, holder.org(), request).await?;
    let request = tale_gateway::Request::read(wire, body)?;
    Ok(answered(gateway.call_with_key(keys, &holder, request, beta.as_deref()).await?))
}

/// The betas and the body of a request, with the room that the body takes.
async fn received(
    door: &GatewayDoor,
    org: OrgId,
    request: Request,
) -> Result<(Option<Room>, Option<String>, Vec<u8>), Problem> {
    let (room, most) = door.0.bodies.take(org, request.headers(), MAX_BODY_BYTES)?;
    let read = tokio::time::timeout(BODY_TIME, read(request, most)).await;
    let (beta, body) = read.map_err(|_| {
        Problem::new(Code::RequestTimeout, "The request body did not arrive within 2 minutes. Send it again.")
    })??;
    Ok((room, beta, body))
}

/// The key that a request shows, in one of the three ways of clients; empty when it shows none.
fn key(headers: &HeaderMap) -> &str {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim());
    bearer.or_else(|| text("x-api-key")).or_else(|| text("x-goog-api-key")).unwrap_or_default()
}
