//! A signed-in person shows once more that it is them, before what guards their account changes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use tale_core::Problem;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Visitor;
use super::second_factor::{PasskeyAssertion, PasskeyRequestOptions, passkeys_here};
use crate::body::Body;
use crate::caller::Signed;
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::state::App;

/// What only the person knows or has: exactly one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProofRequest {
    /// The person's own password.
    #[schema(nullable = false)]
    password: Option<String>,
    /// A code of the person's authenticator app, which is used up.
    #[schema(nullable = false)]
    code: Option<String>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(prove)).routes(routes!(passkey_options)).routes(routes!(prove_with_passkey))
}

/// Shows by password or code that it is the person. That counts for 15 minutes in this session.
#[utoipa::path(post, path = "/api/app/account/proof", tag = "account", request_body = ProofRequest, responses((status = 204)), operation_id = "prove_account")]
async fn prove(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    body: Body<ProofRequest>,
) -> Result<StatusCode, HttpProblem> {
    let form = body.read()?;
    match (form.password, form.code) {
        (Some(password), None) => app.identity.prove_with_password(&principal, &password, &device).await?,
        (None, Some(code)) => app.identity.prove_with_totp(&principal, &code, &device).await?,
        (None, None) => return Err(Problem::invalid_field("password", "is required, or `code` in its place").into()),
        (Some(_), Some(_)) => return Err(Problem::invalid_field("code", "cannot stand beside `password`").into()),
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The question for a passkey of the person.
#[utoipa::path(post, path = "/api/app/account/proof/passkey/options", tag = "account", responses((status = 200, body = PasskeyRequestOptions)), operation_id = "ask_proof_passkey")]
async fn passkey_options(
    State(app): State<App>,
    Signed(principal): Signed,
    origin: RequestOrigin,
) -> Result<Json<PasskeyRequestOptions>, HttpProblem> {
    passkeys_here(&app, &origin.0)?;
    Ok(Json(app.identity.begin_proof(&principal).await?.into()))
}

/// Shows by a passkey that it is the person. That counts for 15 minutes in this session.
#[utoipa::path(post, path = "/api/app/account/proof/passkey", tag = "account", request_body = PasskeyAssertion, responses((status = 204)), operation_id = "prove_account_with_passkey")]
async fn prove_with_passkey(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    body: Body<PasskeyAssertion>,
) -> Result<StatusCode, HttpProblem> {
    let answer = body.read()?.answer()?;
    app.identity.prove_with_passkey(&principal, &answer, &device).await?;
    Ok(StatusCode::NO_CONTENT)
}
