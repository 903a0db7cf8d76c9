//! The lists of models that are read from providers themselves (MOD-13 to MOD-16).
//!
//! The last good list stays in `app.provider_catalogs` with its time, so a provider that is down
//! takes no model away; the reason of the last failure stands beside it. A list is read again on
//! demand, and in the background when it is used and older than [`MAX_AGE`], unless the policy `model_sync` is off.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt, stream};
use tale_core::ids::{CredentialId, OrgId};
use tale_core::problem::{Code, Problem};

use crate::credentials::Credential;
use crate::definition::{CatalogSource, ModelSpec, Provider, ProviderKind};
use crate::probe::upstream_problem;
use crate::store::providers::CatalogRow;
use crate::wire::{ListedKind, ListedModel, ModelError};
use crate::{Models, catalog, store};

/// Age from which a list in use is read again in the background.
const MAX_AGE: TimeDelta = TimeDelta::hours(24);
/// Wait between two attempts in the background.
const ATTEMPT_EVERY: TimeDelta = TimeDelta::hours(1);
/// Lists that are read at the same time for one request.
const AT_ONCE: usize = 4;
/// Longest wait for all lists of an organization.
const ALL_TIMEOUT: Duration = Duration::from_secs(50);
/// Attempts that are remembered.
const MAX_ATTEMPTS: usize = 4_096;
/// Missing models that are named by a check.
const MAX_MISSING: usize = 20;

/// What became of reading one provider's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRefresh {
    /// The provider.
    pub provider_slug: String,
    /// Its label.
    pub display_name: String,
    /// How many models it lists, or why the list could not be read.
    pub result: Result<usize, String>,
}

/// What a credential's endpoint lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogCheck {
    /// How many models it lists.
    pub count: usize,
    /// Models of the definition that it does not list, the first twenty.
    pub missing: Vec<String>,
}

/// When lists were last asked for in the background.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<(OrgId, String), DateTime<Utc>>>);

impl Attempts {
    /// Whether `key` may be tried now; if so, it may not again for [`ATTEMPT_EVERY`].
    fn admit(&self, key: (OrgId, String), now: DateTime<Utc>) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(&key).is_some_and(|last| now - *last < ATTEMPT_EVERY) {
            return false;
        }
        if held.len() >= MAX_ATTEMPTS {
            held.retain(|_, last| now - *last < ATTEMPT_EVERY);
        }
        held.len() < MAX_ATTEMPTS && {
            held.insert(key, now);
            true
        }
    }
}

/// Whether the provider's models are read from it.
fn is_read(provider: &Provider) -> bool {
    provider.catalog_source.is_live() && provider.models.is_empty()
}

impl Models {
    /// Reads a provider's live list again and returns how many models it holds. A failure keeps
    /// the list before it (MOD-15).
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`, `CREDENTIAL_NOT_FOUND` without an enabled credential, `INVALID_BODY` for
    /// providers without a live list, `PROVIDER_UPSTREAM_ERROR`.
    pub async fn refresh_catalog(&self, org: OrgId, slug: &str) -> Result<usize, Problem> {
        let (provider, credential) = {
            let mut conn = self.inner.pool.acquire().await?;
            let provider = self.provider_in(&mut conn, org, slug).await?;
            let held = store::credentials::list(&mut conn, org)
                .await?
                .into_iter()
                .find(|credential| credential.provider_slug == slug && credential.enabled);
            (provider, held)
        };
        if !is_read(&provider) {
            return Err(Problem::invalid_field("slug", "names a provider whose models are not read from its endpoint"));
        }
        let credential = credential.ok_or_else(|| {
            Problem::new(Code::CredentialNotFound, "The provider has no enabled credential. Add a key first.")
        })?;
        self.refresh(org, &provider, &credential).await
    }

    /// Reads every live list of the organization again, each with the first enabled credential of
    /// its provider, and says what became of each. A list that is not there after 50 s counts as
    /// failed; it is kept when it still comes within its own time.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn refresh_catalogs(&self, org: OrgId) -> Result<Vec<CatalogRefresh>, Problem> {
        let (own, credentials) = {
            let mut conn = self.inner.pool.acquire().await?;
            (store::providers::list(&mut conn, org).await?, store::credentials::list(&mut conn, org).await?)
        };
        let due = own.into_iter().chain(catalog::shipped().iter().cloned()).filter(is_read).filter_map(|provider| {
            let credential = credentials.iter().find(|held| held.provider_slug == provider.slug && held.enabled)?;
            Some((provider, credential.clone()))
        });
        let mut results = stream::iter(due.collect::<Vec<_>>())
            .map(|(provider, credential)| async move {
                let read = tokio::time::timeout(ALL_TIMEOUT, self.refresh(org, &provider, &credential)).await;
                CatalogRefresh {
                    result: match read {
                        Ok(Ok(count)) => Ok(count),
                        Ok(Err(problem)) => Err(problem.message.into_owned()),
                        Err(_) => Err(format!("The list was not there after {} seconds.", ALL_TIMEOUT.as_secs())),
                    },
                    provider_slug: provider.slug,
                    display_name: provider.display_name,
                }
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        results.sort_by_cached_key(|one| one.display_name.to_lowercase());
        Ok(results)
    }

    /// Reads the list of models with one credential's key (**Check models**). The list of a
    /// provider that is read from its endpoint is kept; a definition's own models stay as they are,
    /// and those that the endpoint does not list are named.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_FOUND`, `INVALID_BODY` for the demo, `CREDENTIAL_ENV_MISSING`,
    /// `PROVIDER_UPSTREAM_ERROR`.
    pub async fn check_models(&self, org: OrgId, id: CredentialId) -> Result<CatalogCheck, Problem> {
        let (provider, credential) = {
            let mut conn = self.inner.pool.acquire().await?;
            let credential = store::credentials::get(&mut conn, org, id).await?.ok_or_else(|| {
                Problem::new(
                    Code::CredentialNotFound,
                    "There is no such credential in this organization. Reload the page to see the current list.",
                )
            })?;
            (self.provider_in(&mut conn, org, &credential.provider_slug).await?, credential)
        };
        if provider.kind == ProviderKind::Demo {
            return Err(Problem::invalid_field("id", "belongs to the demo, which lists no models"));
        }
        if is_read(&provider) {
            let count = self.refresh(org, &provider, &credential).await?;
            return Ok(CatalogCheck { count, missing: Vec::new() });
        }
        let listed = self.read_list(org, &provider, &credential).await?.map_err(upstream_problem)?;
        let wanted: Vec<&str> = if provider.models.is_empty() {
            credential.model_allowlist.iter().map(String::as_str).collect()
        } else {
            provider.models.iter().map(|model| model.id.as_str()).filter(|id| credential.allows(id)).collect()
        };
        let missing = wanted.into_iter().filter(|id| !listed.iter().any(|model| model.id == *id));
        Ok(CatalogCheck { count: listed.len(), missing: missing.take(MAX_MISSING).map(str::to_owned).collect() })
    }

    /// Asks the provider; the outer error is one of our own.
    async fn read_list(
        &self,
        org: OrgId,
        provider: &Provider,
        credential: &Credential,
    ) -> Result<Result<Vec<ListedModel>, ModelError>, Problem> {
        let target = {
            let mut conn = self.inner.pool.acquire().await?;
            self.target(&mut conn, org, provider, Some(credential)).await?
        };
        let listed = self.inner.wire.list_models(&target, None).await;
        if provider.catalog_source != CatalogSource::OpenrouterApi {
            return Ok(listed);
        }
        // The main list leaves transcription models out; they have one of their own.
        let recordings = self.inner.wire.list_models(&target, Some("output_modalities=transcription")).await;
        Ok(listed.map(|mut listed| {
            match recordings {
                Ok(more) => {
                    let new = more.into_iter().filter(|model| model.kind == ListedKind::Transcription);
                    listed.extend(new);
                    listed.sort_by(|a, b| a.id.cmp(&b.id));
                    listed.dedup_by(|a, b| a.id == b.id);
                }
                Err(error) => tracing::info!(provider = provider.slug, %error, "the list of transcription models could not be read"),
            }
            listed
        }))
    }

    async fn refresh(&self, org: OrgId, provider: &Provider, credential: &Credential) -> Result<usize, Problem> {
        // A key that is missing is a failure of the list as well: it is shown where the list is.
        let listed = match self.read_list(org, provider, credential).await {
            Ok(listed) => listed.map_err(|error| (error.message.clone(), upstream_problem(error))),
            Err(problem) => Err((problem.message.clone().into_owned(), problem)),
        };
        let mut conn = self.inner.pool.acquire().await?;
        let now = self.inner.clock.now();
        let counted = match listed {
            Ok(listed) => {
                let models: Vec<ModelSpec> = listed.into_iter().filter_map(ModelSpec::from_listed).collect();
                store::providers::keep_catalog(&mut conn, org, &provider.slug, &models, now).await?;
                Ok(models.len())
            }
            Err((message, problem)) => {
                store::providers::note_catalog_failure(&mut conn, org, &provider.slug, &message, now).await?;
                Err(problem)
            }
        };
        self.inner.recent.forget(org);
        crate::recent::announce(&mut conn, org).await?;
        counted
    }

    /// Reads a live list after a save; the save stands whatever comes of it.
    pub(crate) async fn refresh_quietly(&self, org: OrgId, provider: &Provider, credential: &Credential) {
        if let Err(problem) = self.refresh(org, provider, credential).await {
            tracing::info!(
                provider = provider.slug,
                code = problem.code.text(),
                "the list of models could not be read, so the one before it stays"
            );
        }
    }

    /// Called where lists are used: starts reading one that is older than a day. The caller goes on
    /// with the list it has. At most one attempt an hour and process.
    pub(crate) fn renew_in_background(
        &self,
        org: OrgId,
        provider: &Provider,
        credentials: &[Credential],
        state: Option<&CatalogRow>,
    ) {
        if !is_read(provider) {
            return;
        }
        let now = self.inner.clock.now();
        let fresh = |at: Option<DateTime<Utc>>, age: TimeDelta| at.is_some_and(|at| now - at < age);
        if state.is_some_and(|state| fresh(state.fetched_at, MAX_AGE) || fresh(state.error_at, ATTEMPT_EVERY)) {
            return;
        }
        let Some(credential) = credentials.iter().find(|held| held.enabled) else { return };
        if !self.inner.catalog_attempts.admit((org, provider.slug.clone()), now) {
            return;
        }
        let (models, provider, credential) = (self.clone(), provider.clone(), credential.clone());
        tokio::spawn(async move {
            let policies = models.inner.policies.of(org).await;
            let wanted = policies.is_ok_and(|of| of.model_sync.usable().is_ok_and(|sync| sync.auto_sync_enabled));
            if wanted {
                models.refresh_quietly(org, &provider, &credential).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    #[test]
    fn an_attempt_is_made_once_an_hour() {
        let attempts = Attempts::default();
        let key = || (OrgId::new(), "p".to_owned());
        let (one, other) = (key(), key());
        let start = Utc.timestamp_opt(1_700_000_000, 0).unwrap();
        assert!(attempts.admit(one.clone(), start));
        assert!(attempts.admit(other, start));
        assert!(!attempts.admit(one.clone(), start + TimeDelta::minutes(59)));
        assert!(attempts.admit(one, start + TimeDelta::minutes(60)));
    }
}
