//! The organization's transcription model (spec 40, 7.6).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_identity::Capability;
use tale_models::{TranscriptionModel, TranscriptionPin, TranscriptionState};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_transcription, choose_transcription, automatic_transcription))
}

/// A transcription model.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TranscriptionChoice {
    provider_slug: String,
    model: String,
}

impl From<TranscriptionPin> for TranscriptionChoice {
    fn from(pin: TranscriptionPin) -> Self {
        Self { provider_slug: pin.provider_slug, model: pin.model }
    }
}

/// A transcription model that can be used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TranscriptionModel)]
struct TranscriptionModelView {
    provider_slug: String,
    provider_name: String,
    model: String,
    display_name: String,
}

impl From<TranscriptionModel> for TranscriptionModelView {
    fn from(model: TranscriptionModel) -> Self {
        Self {
            provider_slug: model.provider_slug,
            provider_name: model.provider_name,
            model: model.model,
            display_name: model.display_name,
        }
    }
}

/// The transcription model and what could be chosen.
#[derive(Serialize, ToSchema)]
struct TranscriptionSettings {
    /// The chosen model; `null` = the first that can be used.
    #[schema(required)]
    pin: Option<TranscriptionChoice>,
    /// The model that transcribes now; `null` when none can, also when the chosen one cannot.
    #[schema(required)]
    current: Option<TranscriptionModelView>,
    models: Vec<TranscriptionModelView>,
}

/// The transcription model and what could be chosen.
#[utoipa::path(get, path = "/api/app/knowledge/transcription", tag = "app: transcription", params(("orgId" = Option<String>, Query)), responses((status = 200, body = TranscriptionSettings)))]
async fn read_transcription(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<TranscriptionSettings>, HttpProblem> {
    caller.require(Capability::EmbeddingManage)?;
    let (pin, state, models) = futures::join!(
        app.models.transcription_pin(caller.org),
        app.models.transcription_state(caller.org),
        app.models.transcription_models(caller.org),
    );
    let current = match state? {
        TranscriptionState::Usable(model) => Some(model.into()),
        TranscriptionState::Missing | TranscriptionState::PinUnavailable(_) => None,
    };
    Ok(Json(TranscriptionSettings {
        pin: pin?.map(TranscriptionChoice::from),
        current,
        models: models?.into_iter().map(TranscriptionModelView::from).collect(),
    }))
}

/// Chooses the transcription model; it serves new recordings.
#[utoipa::path(put, path = "/api/app/knowledge/transcription", tag = "app: transcription", params(("orgId" = Option<String>, Query)), request_body = TranscriptionChoice, responses((status = 204)))]
async fn choose_transcription(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<TranscriptionChoice>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::EmbeddingManage)?;
    let form = body.read()?;
    let pin = TranscriptionPin { provider_slug: form.provider_slug, model: form.model };
    app.models.set_transcription(caller.org, &caller.actor(), Some(pin)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Goes back to the automatic choice.
#[utoipa::path(delete, path = "/api/app/knowledge/transcription", tag = "app: transcription", params(("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn automatic_transcription(State(app): State<App>, Member(caller): Member) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::EmbeddingManage)?;
    app.models.set_transcription(caller.org, &caller.actor(), None).await?;
    Ok(StatusCode::NO_CONTENT)
}
