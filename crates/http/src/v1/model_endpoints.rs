//! The model endpoints: OpenAI's and Anthropic's own interfaces (spec 40, section 10). Everything
//! else below their two prefixes is not found, in the shape of the interface.

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde::Serialize;
use tale_core::{Code, Problem};
use tale_gateway::{Admitted, Answer, Callable, Refusal, Wire};
use tale_identity::Caller;
use tale_identity::api_keys::KeyHolder;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::read_limited;
use crate::caller::KeyCaller;
use crate::problem::HttpProblem;
use crate::state::App;
use crate::v1::presumed::Presumed;

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
async fn create_chat_completion(State(app): State<App>, request: Request) -> Result<Response, Refused> {
    call(&app, Wire::Chat, request).await
}

/// Anthropic's messages, for every model of the list. `model` is `<provider>/<model>`; the rest is
/// Anthropic's own request, and so is the answer, streamed or not.
#[utoipa::path(
    post, path = "/anthropic/v1/messages", tag = "model endpoints", operation_id = "create_message",
    security(("key" = [])), request_body = Value,
    responses((status = 200, description = "Anthropic's `message`, or its event stream.", body = Value)),
    extensions(("x-tale-body-cap" = json!(MAX_BODY_BYTES)))
)]
async fn create_message(State(app): State<App>, request: Request) -> Result<Response, Refused> {
    call(&app, Wire::Messages, request).await
}

async fn call(app: &App, wire: Wire, mut request: Request) -> Result<Response, Refused> {
    let extensions = request.extensions_mut();
    let (proven, presumed) = (extensions.remove::<KeyHolder>(), extensions.remove::<Presumed>());
    let mut asked = Asked::Unread(Box::new(request));
    let admitted = match (proven, presumed) {
        (Some(found), _) => admitted(app, &found.caller, wire, &mut asked).await,
        (None, Some(presumed)) => match admitted_presuming(app, &presumed, wire, &mut asked).await {
            Ok(admitted) => admitted,
            Err(problem) => return Ok(super::refused(problem)),
        },
        (None, None) => return Err(Problem::internal("nobody has asked who calls").into()),
    }?;
    let beta = match asked {
        Asked::Read(beta, _) => beta,
        Asked::Unread(_) | Asked::Unreadable => None,
    };
    Ok(answered(app.gateway.relay(admitted, beta.as_deref()).await?))
}

/// A request of a model, of which the body is read when it is asked for.
enum Asked {
    Unread(Box<Request>),
    /// With the betas that the client names.
    Read(Option<String>, Arc<tale_gateway::Request>),
    Unreadable,
}

impl Asked {
    async fn read(&mut self, wire: Wire) -> Result<Arc<tale_gateway::Request>, Problem> {
        match std::mem::replace(self, Self::Unreadable) {
            Self::Unread(request) => {
                let (beta, body) = read(*request, MAX_BODY_BYTES).await?;
                let request = Arc::new(tale_gateway::Request::read(wire, body)?);
                *self = Self::Read(beta, request.clone());
                Ok(request)
            }
            Self::Read(beta, request) => {
                *self = Self::Read(beta, request.clone());
                Ok(request)
            }
            Self::Unreadable => {
                Err(Problem::new(Code::InvalidBody, "The request body could not be read. Send it again."))
            }
        }
    }
}

/// The checks of spec 40, 10.2, from the fourth on, up to the hold.
async fn admitted(app: &App, caller: &Caller, wire: Wire, asked: &mut Asked) -> Result<Admitted, Refused> {
    let rules = app.gateway.rules(caller).await?;
    let request = asked.read(wire).await?;
    Ok(app.gateway.admit(caller, &rules, request).await?)
}

/// The same for somebody presumed, while the database is asked who it is. What it says decides: of a key that is
/// void nothing else is told, and for a caller who is somebody else now everything is asked again.
async fn admitted_presuming(
    app: &App,
    presumed: &Presumed,
    wire: Wire,
    asked: &mut Asked,
) -> Result<Result<Admitted, Refused>, Problem> {
    let (found, early) = {
        let mut proof = pin!(presumed.credentials.prove(app, true));
        let mut admission = pin!(admitted(app, &presumed.caller, wire, asked));
        let mut early = None;
        let found = loop {
            tokio::select! {
                biased;
                proven = &mut proof => break proven?.caller,
                admitted = &mut admission, if early.is_none() => early = Some(admitted),
            }
        };
        // Not dropped half-way: it may be reading the body.
        let early = match early {
            Some(admitted) => admitted,
            None => admission.await,
        };
        (found, early)
    };
    if found == *presumed.caller {
        return Ok(early);
    }
    tracing::Span::current().record("org", tracing::field::display(found.org));
    let unreadable = matches!(asked, Asked::Unreadable);
    match early {
        // The body cannot be read twice, but what comes before it is asked of the one who calls.
        Err(refused) if unreadable => Ok(app.gateway.rules(&found).await.map_err(Refused::from).and(Err(refused))),
        early => {
            // What was held for the other one is given back first.
            drop(early);
            Ok(admitted(app, &found, wire, asked).await)
        }
    }
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
