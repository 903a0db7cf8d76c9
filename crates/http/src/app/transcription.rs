//! What the policy `transcription_model` can choose from (spec 40, 7.6).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tale_identity::Capability;
use tale_models::{TranscriptionModel, TranscriptionPin, TranscriptionState};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_transcription))
}

/// A transcription model.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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

/// What transcribes, and what could.
#[derive(Serialize, ToSchema)]
struct TranscriptionSettings {
    /// The model that transcribes now; `null` when none can, also when the pinned one cannot.
    #[schema(required)]
    current: Option<TranscriptionModelView>,
    /// The model that the policy `transcription_model` pins, where it cannot be used any more.
    #[schema(required)]
    unavailable: Option<TranscriptionChoice>,
    models: Vec<TranscriptionModelView>,
}

/// What transcribes recordings now, and which models could be pinned.
#[utoipa::path(get, path = "/api/app/governance/transcription", tag = "app: governance", params(("orgId" = Option<String>, Query)), responses((status = 200, body = TranscriptionSettings)))]
async fn read_transcription(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<TranscriptionSettings>, HttpProblem> {
    caller.require(Capability::GovernanceManage)?;
    let (state, models) =
        futures::join!(app.models.transcription_state(caller.org), app.models.transcription_models(caller.org));
    let (current, unavailable) = match state? {
        TranscriptionState::Usable(model) => (Some(model.into()), None),
        TranscriptionState::Missing | TranscriptionState::Unreadable(_) => (None, None),
        TranscriptionState::PinUnavailable(pin) => (None, Some(pin.into())),
    };
    Ok(Json(TranscriptionSettings {
        current,
        unavailable,
        models: models?.into_iter().map(TranscriptionModelView::from).collect(),
    }))
}
