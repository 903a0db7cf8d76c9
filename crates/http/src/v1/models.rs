//! The models that the key holder can call (CHT-187, RES-40).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tale_identity::Capability;
use tale_models::ModelEntry;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::KeyCaller;
use crate::problem::HttpProblem;
use crate::query::NoQuery;
use crate::state::App;
use crate::wire::providers::ModelPricing;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_models))
}

/// A model that can be called.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallableModel {
    id: String,
    provider_slug: String,
    display_name: String,
    /// In tokens.
    context_window: u32,
    /// In tokens, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_output_tokens: Option<u32>,
    capabilities: CallableCapabilities,
    /// US dollars per million tokens, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pricing: Option<ModelPricing>,
    /// `demo`, `fast`, `balanced`, `capable`; more may come.
    tags: Vec<&'static str>,
}

/// An agent runtime.
#[derive(Serialize, ToSchema)]
struct Harness {
    /// Its identifier.
    harness: String,
    /// Its readable name.
    label: String,
}

/// What a model can do.
#[derive(Serialize, ToSchema)]
struct CallableCapabilities {
    tools: bool,
    vision: bool,
    reasoning: bool,
}

impl From<ModelEntry> for CallableModel {
    fn from(entry: ModelEntry) -> Self {
        Self {
            id: entry.id,
            provider_slug: entry.provider_slug,
            display_name: entry.display_name,
            context_window: entry.context_window,
            max_output_tokens: entry.max_output_tokens,
            capabilities: CallableCapabilities {
                tools: entry.capabilities.tools,
                vision: entry.capabilities.vision,
                reasoning: entry.capabilities.reasoning,
            },
            pricing: entry.pricing.map(ModelPricing::from),
            tags: entry.tags,
        }
    }
}

/// The models that can be called.
#[derive(Serialize, ToSchema)]
struct CallableModels {
    models: Vec<CallableModel>,
    /// The agent runtimes that Tale knows.
    harnesses: Vec<Harness>,
}

/// The chat models that the holder of the key can use now.
#[utoipa::path(get, path = "/models", tag = "models", security(("key" = [])), responses((status = 200, body = CallableModels)))]
async fn list_models(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
) -> Result<Json<CallableModels>, HttpProblem> {
    caller.require(Capability::ChatUse)?;
    let rules = app.models.rules(caller.org, caller.person()).await?;
    let models = app.models.chat_models(caller.org, &rules).await?;
    Ok(Json(CallableModels { models: models.into_iter().map(CallableModel::from).collect(), harnesses: harnesses() }))
}

fn harnesses() -> Vec<Harness> {
    let mut known: Vec<Harness> = Vec::new();
    for runtime in tale_models::catalog::shipped().iter().filter_map(|provider| provider.subscription.as_ref()) {
        if !known.iter().any(|one| one.harness == runtime.harness) {
            known.push(Harness { harness: runtime.harness.clone(), label: runtime.label.clone() });
        }
    }
    known
}
