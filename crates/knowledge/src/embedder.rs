//! What turns texts into vectors. In front of it stands a trait, because a test cannot have a paid
//! model.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tale_core::ids::OrgId;
use tale_core::{Actor, Problem};
use tale_governance::budgets::Refusal;

/// A boxed future, so that the trait can be an object.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The embedding model of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// The provider.
    pub provider_slug: String,
    /// The model.
    pub model: String,
    /// Width of its vectors.
    pub dimensions: u32,
}

impl EmbeddingModel {
    /// Names the model that made a vector: vectors of different stamps are different spaces (EMB-5).
    #[must_use]
    pub fn stamp(&self) -> String {
        format!("{}/{}/{}", self.provider_slug, self.model, self.dimensions)
    }
}

/// What the vectors are for; some models make different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Passages.
    Index,
    /// A question.
    Search,
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedFailure {
    /// The organization has no embedding model.
    #[error("no embedding model is chosen")]
    NotConfigured,
    /// The provider refuses the account: balance, plan, billing. Asking again cannot help.
    #[error("{0}")]
    CreditExhausted(String),
    /// The credential is rejected, missing, disabled or its variable unset.
    #[error("{0}")]
    CredentialRejected(String),
    /// The model or its settings are wrong: unknown model, another width.
    #[error("{0}")]
    Refused(String),
    /// A usage limit leaves no room for it. It can be had later.
    #[error(transparent)]
    Limited(Box<Refusal>),
    /// Too many requests; `after` when the provider said how long to wait.
    #[error("the embedding provider asks to wait")]
    RateLimited {
        /// How long.
        after: Option<Duration>,
    },
    /// An outage or a broken answer; asking again may help.
    #[error("{0}")]
    Upstream(String),
}

/// Makes vectors for organizations.
pub trait Embedder: Send + Sync + 'static {
    /// The organization's model, when one is chosen.
    fn model(&self, org: OrgId) -> Answer<'_, Result<Option<EmbeddingModel>, Problem>>;

    /// One vector per text, in order, each of the model's width, at the expense of `payer`.
    fn embed<'a>(
        &'a self,
        org: OrgId,
        payer: &'a Actor,
        texts: &'a [String],
        purpose: Purpose,
    ) -> Answer<'a, Result<Vec<Vec<f32>>, EmbedFailure>>;
}
