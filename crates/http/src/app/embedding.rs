//! The organization's embedding model (spec 60, 7.1).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_identity::Capability;
use tale_models::{EmbeddingCandidate, EmbeddingConfig};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_embedding, choose_embedding, remove_embedding))
}

/// An embedding model.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EmbeddingChoice {
    provider_slug: String,
    model: String,
    /// Width of its vectors.
    dimensions: u32,
}

/// A provider that can make vectors.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EmbeddingProvider {
    provider_slug: String,
    display_name: String,
    /// Its known embedding models; others may be typed where the provider allows it.
    models: Vec<EmbeddingModelView>,
}

/// A known embedding model.
#[derive(Serialize, ToSchema)]
struct EmbeddingModelView {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dimensions: Option<u32>,
}

impl From<EmbeddingCandidate> for EmbeddingProvider {
    fn from(candidate: EmbeddingCandidate) -> Self {
        Self {
            provider_slug: candidate.provider_slug,
            display_name: candidate.display_name,
            models: candidate
                .models
                .into_iter()
                .map(|(id, dimensions)| EmbeddingModelView { id, dimensions })
                .collect(),
        }
    }
}

/// How far the organization's documents are embedded.
#[derive(Serialize, ToSchema)]
struct EmbeddingCorpus {
    documents: u64,
    embedded: u64,
    waiting: u64,
}

/// The embedding model, what could be chosen, and the state of the documents.
#[derive(Serialize, ToSchema)]
struct EmbeddingSettings {
    #[schema(required)]
    embedding: Option<EmbeddingChoice>,
    candidates: Vec<EmbeddingProvider>,
    corpus: EmbeddingCorpus,
}

/// How many documents are embedded anew.
#[derive(Serialize, ToSchema)]
struct EmbeddingChosen {
    requeued: u64,
}

/// The embedding model, what could be chosen, and how far the documents are.
#[utoipa::path(get, path = "/api/app/knowledge/embedding", tag = "app: embedding", params(("orgId" = Option<String>, Query)), responses((status = 200, body = EmbeddingSettings)))]
async fn read_embedding(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<EmbeddingSettings>, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let (config, candidates, counts) = futures::join!(
        app.models.embedding(caller.org),
        app.models.embedding_candidates(caller.org),
        app.knowledge.corpus_counts(caller.org)
    );
    let counts = counts?;
    Ok(Json(EmbeddingSettings {
        embedding: config?.map(|config| EmbeddingChoice {
            provider_slug: config.provider_slug,
            model: config.model,
            dimensions: config.dimensions,
        }),
        candidates: candidates?.into_iter().map(EmbeddingProvider::from).collect(),
        corpus: EmbeddingCorpus { documents: counts.documents, embedded: counts.embedded, waiting: counts.waiting },
    }))
}

/// Chooses the embedding model; documents without its vectors are queued.
#[utoipa::path(put, path = "/api/app/knowledge/embedding", tag = "app: embedding", params(("orgId" = Option<String>, Query)), request_body = EmbeddingChoice, responses((status = 200, body = EmbeddingChosen)))]
async fn choose_embedding(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<EmbeddingChoice>,
) -> Result<Json<EmbeddingChosen>, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let form = body.read()?;
    let config = EmbeddingConfig { provider_slug: form.provider_slug, model: form.model, dimensions: form.dimensions };
    let requeued = app.models.set_embedding(caller.org, &caller.actor(), config).await?;
    Ok(Json(EmbeddingChosen { requeued }))
}

/// Removes the embedding model; search goes on by words alone.
#[utoipa::path(delete, path = "/api/app/knowledge/embedding", tag = "app: embedding", params(("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn remove_embedding(State(app): State<App>, Member(caller): Member) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    app.models.clear_embedding(caller.org, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
