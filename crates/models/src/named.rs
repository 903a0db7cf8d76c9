//! Models that a key was given by name, each with the credential that calls it (MOD-132, MOD-134).
//!
//! Whether somebody may use a model is asked when the key is made; what is asked at each call is whether
//! the organization still has it: provider, model and credential, enabled and allowed.

use serde::{Deserialize, Serialize};
use tale_core::ids::{CredentialId, OrgId};
use tale_core::problem::{Code, Problem};
use tale_governance::policies::ModelRules;

use crate::Models;
use crate::available::{Loaded, ResolvedModel};
use crate::definition::{ProviderKind, Purpose};

/// A model by name, with what calls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelReference {
    /// The provider's slug.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The credential; the demo model has none, and for a new key none means the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialId>,
}

impl ModelReference {
    /// `<provider>/<model>`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Whether `id` is `<provider>/<model>` of this model.
    #[must_use]
    pub fn is(&self, id: &str) -> bool {
        id.strip_prefix(self.provider.as_str()).and_then(|rest| rest.strip_prefix('/')) == Some(self.model.as_str())
    }
}

impl Models {
    /// The named models with the credentials that call them, for a new key. `rules` are those of the
    /// person that the key acts for; a key without a person has none.
    ///
    /// # Errors
    /// `MODEL_API_MODEL_UNKNOWN`, `MODEL_API_MODEL_FORBIDDEN`, `CREDENTIAL_NOT_FOUND`, each naming the model.
    pub async fn settle_references(
        &self,
        org: OrgId,
        rules: Option<&ModelRules>,
        wanted: &[ModelReference],
    ) -> Result<Vec<ModelReference>, Problem> {
        let loaded = self.load_at_once(org).await?;
        wanted
            .iter()
            .map(|reference| {
                let one = loaded.iter().find(|one| self.offers(one, reference)).ok_or_else(|| unknown(reference))?;
                if rules.is_some_and(|rules| !rules.permits(&reference.provider, &reference.model)) {
                    return Err(Problem::new(
                        Code::ModelApiModelForbidden,
                        format!("The policy `model_access` of the organization does not permit {}.", reference.id()),
                    ));
                }
                if one.provider.kind == ProviderKind::Demo {
                    return Ok(ModelReference { credential: None, ..reference.clone() });
                }
                let credential = match reference.credential {
                    Some(id) => one.usable(id, &reference.model),
                    None => one.serving(&reference.model),
                };
                let credential = credential.ok_or_else(|| no_credential(reference))?;
                Ok(ModelReference { credential: Some(credential.id), ..reference.clone() })
            })
            .collect()
    }

    /// A named model, ready to be called with its credential.
    ///
    /// # Errors
    /// `MODEL_API_MODEL_UNKNOWN` when the organization does not have it any more, `CREDENTIAL_NOT_FOUND`
    /// when the credential may not call it any more, `CREDENTIAL_ENV_MISSING`, `CREDENTIAL_SECRET_INVALID`.
    pub async fn resolve_named(&self, org: OrgId, reference: &ModelReference) -> Result<ResolvedModel, Problem> {
        let one = self.provider_now(org, &reference.provider).await?;
        let one = one.filter(|one| self.offers(one, reference)).ok_or_else(|| unknown(reference))?;
        let credential = match reference.credential {
            Some(id) => Some(one.usable(id, &reference.model).ok_or_else(|| no_credential(reference))?),
            None if one.provider.kind == ProviderKind::Demo => None,
            None => return Err(no_credential(reference)),
        };
        self.resolved_by(org, &one, &reference.model, credential).await
    }

    /// Whether a provider has the model.
    fn offers(&self, one: &Loaded, reference: &ModelReference) -> bool {
        let demo = one.provider.kind == ProviderKind::Demo;
        one.provider.slug == reference.provider
            && (!demo || self.demo_available())
            && one.models.iter().any(|spec| spec.id == reference.model && spec.serves(Purpose::Chat))
    }

    /// Forgets what this process holds of the providers of that name.
    pub fn forget_provider(&self, slug: &str) {
        self.inner.recent.forget_provider(slug);
    }
}

fn unknown(reference: &ModelReference) -> Problem {
    Problem::new(Code::ModelApiModelUnknown, format!("The organization has no model {}.", reference.id()))
}

impl Loaded {
    /// The credential `id`, when it may call `model`.
    fn usable(&self, id: CredentialId, model: &str) -> Option<&crate::Credential> {
        self.credentials.iter().find(|credential| credential.id == id && credential.enabled && credential.allows(model))
    }
}

fn no_credential(reference: &ModelReference) -> Problem {
    Problem::new(
        Code::CredentialNotFound,
        format!(
            "No enabled credential of this organization may call {}. Ask an administrator to look at Settings > AI providers.",
            reference.id()
        ),
    )
}
