//! The administration, for the backend and for operators inside a backend's container (MOD-130, DCF-266).
//! A gateway key opens nothing here.

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, put};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use subtle::ConstantTimeEq;
use tale_core::crypto::sha256;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};
use tale_gateway::keys::{KeyOrder, KeyState, Minted};
use tale_gateway::log;
use tale_gateway::settings::{self, Settings};
use uuid::Uuid;

use super::GatewayDoor;
use crate::body::Body;
use crate::problem::HttpProblem;
use crate::query::Query;

pub(super) fn router(door: &GatewayDoor) -> Router<GatewayDoor> {
    let routes = Router::new()
        .route("/organizations/{org}/keys/{id}", put(mint).get(state).delete(revoke))
        .route("/providers/{name}", delete(forget_provider))
        .route("/settings", get(settings).put(lay_down))
        .route("/log", get(log_page))
        .fallback(crate::door::not_found)
        .method_not_allowed_fallback(crate::door::method_not_allowed)
        .layer(middleware::from_fn_with_state(door.clone(), authenticate));
    Router::new().nest("/api", routes)
}

/// What HTTP basic sends for a name and a password.
pub(super) fn basic(username: &str, password: &SecretString) -> Vec<u8> {
    format!("{username}:{}", password.expose_secret()).into_bytes()
}

/// Before the route is looked up. Compares digests, so that the time tells nothing.
async fn authenticate(State(door): State<GatewayDoor>, request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
        .and_then(|(_, encoded)| STANDARD.decode(encoded.trim()).ok());
    if given.is_some_and(|given| bool::from(sha256(&given).ct_eq(&door.0.credentials))) {
        return next.run(request).await;
    }
    let problem = Problem::new(Code::Unauthorized, "Send the name and the password of the gateway's administration.");
    let mut response = HttpProblem(problem).into_response();
    let realm = HeaderValue::from_static("Basic realm=\"model gateway\", charset=\"UTF-8\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
    response
}

/// The ids of an address.
fn ids(org: &str, id: &str) -> Result<(OrgId, Uuid), Problem> {
    let (org, id) = (org.parse().ok(), id.parse().ok());
    org.zip(id).ok_or_else(|| Problem::new(Code::NotFound, "The organization has no such gateway key."))
}

async fn mint(
    State(door): State<GatewayDoor>,
    Path((org, id)): Path<(String, String)>,
    order: Body<KeyOrder>,
) -> Result<(StatusCode, [(header::HeaderName, &'static str); 1], Json<Minted>), HttpProblem> {
    let (org, id) = ids(&org, &id)?;
    let minted = door.parts().keys.mint(org, id, order.read()?).await?;
    Ok((StatusCode::OK, [(header::CACHE_CONTROL, "no-store")], Json(minted)))
}

async fn state(
    State(door): State<GatewayDoor>,
    Path((org, id)): Path<(String, String)>,
) -> Result<Json<KeyState>, HttpProblem> {
    let (org, id) = ids(&org, &id)?;
    Ok(Json(door.parts().keys.state(org, id).await?))
}

async fn revoke(
    State(door): State<GatewayDoor>,
    Path((org, id)): Path<(String, String)>,
) -> Result<Json<KeyState>, HttpProblem> {
    let (org, id) = ids(&org, &id)?;
    Ok(Json(door.parts().keys.revoke(org, id).await?))
}

async fn settings(State(door): State<GatewayDoor>) -> Result<Json<Settings>, HttpProblem> {
    Ok(Json(settings::read(&door.parts().database).await?))
}

/// What the backend lays down. It is in force here when this is answered, and in every other process at its
/// next look, which it is told of.
async fn lay_down(State(door): State<GatewayDoor>, wanted: Body<Settings>) -> Result<Json<Resized>, HttpProblem> {
    let wanted = wanted.read()?;
    wanted.check()?;
    settings::write(&door.parts().database, &wanted, door.parts().clock.now()).await?;
    let resized = door.parts().gateway.set_limits(wanted.limits());
    Ok(Json(Resized { settings: wanted, resized, refused: 0, unconfirmed: 0 }))
}

/// Settings in force, with the providers that they were new for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resized {
    #[serde(flatten)]
    settings: Settings,
    /// Providers with calls under way, which go on under the new numbers.
    resized: usize,
    /// Providers that keep their old numbers: none, because no provider has to be asked.
    refused: usize,
    /// Providers of which that is not known: none either.
    unconfirmed: usize,
}

/// Which rows of the log are asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LogQuery {
    organization: OrgId,
    before: Option<i64>,
    limit: Option<i64>,
}

/// A page of the log, the last call first.
#[derive(Serialize)]
struct LogPage {
    calls: Vec<log::Entry>,
}

async fn log_page(
    State(door): State<GatewayDoor>,
    Query(query): Query<LogQuery>,
) -> Result<Json<LogPage>, HttpProblem> {
    let LogQuery { organization, before, limit } = query;
    let limit = limit.unwrap_or(100);
    if !(1..=log::MAX_PAGE).contains(&limit) {
        let range = format!("must be a whole number from 1 to {}", log::MAX_PAGE);
        return Err(Problem::invalid_query("limit", &range).into());
    }
    Ok(Json(LogPage { calls: log::page(&door.parts().database, organization, before, limit).await? }))
}

/// Forgets what is held of a provider. One that is in use is there again with its next call.
async fn forget_provider(State(door): State<GatewayDoor>, Path(name): Path<String>) -> Json<serde_json::Value> {
    door.parts().models.forget_provider(&name);
    tracing::info!(event = "gateway.provider_deleted", provider = ?name, "a provider was deleted from the gateway");
    Json(json!({ "name": name, "deleted": true }))
}
