//! The model endpoints: OpenAI's and Anthropic's own interfaces (spec 40, section 10). Everything
//! else below their two prefixes is not found, in the shape of the interface.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde::Serialize;
use tale_core::Problem;
use tale_gateway::{Answer, Callable, Refusal, Wire};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::read_limited;
use crate::caller::KeyCaller;
use crate::problem::HttpProblem;
use crate::state::App;

/// Largest request of a model, in bytes: 32 MiB (API-16).
const MAX_BODY_BYTES: usize = 32 << 20;

/// Longest list of betas that is passed on.
const MAX_BETA_BYTES: usize = 1_024;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The interface that a path without base belongs to.
pub(crate) fn interface(path: Option<&str>) -> Option<Wire> {
    interface_below(path?.strip_prefix("/api/v1")?)
}

/// The same for a path below `/api/v1`.
pub(crate) fn interface_below(path: &str) -> Option<Wire> {
    let first = path.strip_prefix('/')?.split('/').next().unwrap_or_default();
    match first {
        "openai" => Some(Wire::Chat),
        "anthropic" => Some(Wire::Messages),
        _ => None,
    }
}

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_openai_models))
        .routes(routes!(create_chat_completion))
        .routes(routes!(create_message))
}

/// The models of the list, in OpenAI's shape.
#[derive(Serialize, ToSchema)]
struct OpenAiModels {
    /// `list`.
    object: &'static str,
    data: Vec<OpenAiModel>,
}

/// A model, in OpenAI's shape.
#[derive(Serialize, ToSchema)]
struct OpenAiModel {
    /// `<provider>/<model>`, on both interfaces.
    id: String,
    /// `model`.
    object: &'static str,
    /// 0.
    created: u64,
    /// The provider.
    owned_by: String,
}

/// The models that the key may call, as OpenAI lists them.
#[utoipa::path(
    get, path = "/openai/models", tag = "model endpoints", operation_id = "list_open_ai_models", security(("key" = [])),
    responses((status = 200, body = OpenAiModels))
)]
async fn list_openai_models(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
) -> Result<axum::Json<OpenAiModels>, HttpProblem> {
    Ok(axum::Json(list(app.gateway.callable(&caller).await?)))
}

/// OpenAI's chat completions, for every model of the list. `model` is `<provider>/<model>`; the rest
/// is OpenAI's own request, and so is the answer, streamed or not.
#[utoipa::path(
    post, path = "/openai/chat/completions", tag = "model endpoints", operation_id = "create_chat_completion",
    security(("key" = [])), request_body = Value,
    responses((status = 200, description = "OpenAI's `chat.completion`, or its event stream.", body = Value)),
    extensions(("x-tale-body-cap" = json!(MAX_BODY_BYTES)))
)]
async fn create_chat_completion(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    request: Request,
) -> Result<Response, Refused> {
    call(&app, &caller, Wire::Chat, request).await
}

/// Anthropic's messages, for every model of the list. `model` is `<provider>/<model>`; the rest is
/// Anthropic's own request, and so is the answer, streamed or not.
#[utoipa::path(
    post, path = "/anthropic/v1/messages", tag = "model endpoints", operation_id = "create_message",
    security(("key" = [])), request_body = Value,
    responses((status = 200, description = "Anthropic's `message`, or its event stream.", body = Value)),
    extensions(("x-tale-body-cap" = json!(MAX_BODY_BYTES)))
)]
async fn create_message(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    request: Request,
) -> Result<Response, Refused> {
    call(&app, &caller, Wire::Messages, request).await
}

async fn call(app: &App, caller: &tale_identity::Caller, wire: Wire, request: Request) -> Result<Response, Refused> {
    let rules = app.gateway.rules(caller).await?;
    let (beta, body) = read(request, MAX_BODY_BYTES).await?;
    let request = tale_gateway::Request::read(wire, body)?;
    Ok(answered(app.gateway.call(caller, &rules, request, beta.as_deref()).await?))
}

/// What a client asks for: the betas of the Anthropic format that it names, and its body.
pub(crate) async fn read(request: Request, most: usize) -> Result<(Option<String>, Vec<u8>), Problem> {
    let beta = request
        .headers()
        .get("anthropic-beta")
        .and_then(|value| value.to_str().ok())
        .filter(|list| list.len() <= MAX_BETA_BYTES)
        .map(str::to_owned);
    let body = read_limited(request, most).await.map_err(|HttpProblem(problem)| problem)?;
    Ok((beta, body.into()))
}

/// The answer of a model on its way out.
pub(crate) fn answered(answer: Answer) -> Response {
    match answer {
        Answer::Whole(document) => ([(header::CONTENT_TYPE, "application/json")], document).into_response(),
        Answer::Stream(stream) => {
            let kind = [
                (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
                (header::CACHE_CONTROL, "no-cache"),
                // Proxies hand on each event as it comes.
                (HeaderName::from_static("x-accel-buffering"), "no"),
            ];
            (kind, Body::from_stream(stream.map(Ok::<_, std::convert::Infallible>))).into_response()
        }
    }
}

/// The models of a list, in OpenAI's shape.
pub(crate) fn openai_list(models: Vec<Callable>) -> Response {
    axum::Json(list(models)).into_response()
}

fn list(models: Vec<Callable>) -> OpenAiModels {
    let data = models
        .into_iter()
        .map(|model| OpenAiModel { id: model.id, object: "model", created: 0, owned_by: model.provider })
        .collect();
    OpenAiModels { object: "list", data }
}

/// A refusal on its way out.
pub(crate) struct Refused(pub(crate) Refusal);

impl<E: Into<Refusal>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, should_retry) = (self.0.status(), self.0.should_retry);
        let mut response = HttpProblem(self.0.problem).into_response();
        if let Ok(status) = StatusCode::from_u16(status) {
            *response.status_mut() = status;
        }
        if let Some(retry) = should_retry {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static(if retry { "true" } else { "false" }));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_errors_is_that_of_the_path() {
        let of = |path| interface(Some(path));
        assert_eq!(of("/api/v1/openai/embeddings"), Some(Wire::Chat));
        assert_eq!(of("/api/v1/anthropic/v1/messages/count_tokens"), Some(Wire::Messages));
        for other in ["/api/v1/chat/completions", "/api/v1/openais", "/api/app/openai", "/openai"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
