//! Earlier states of custom definitions, and going back to one (MOD-9).

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tale_core::Actor;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};
use uuid::Uuid;

use crate::credentials::provider_unknown;
use crate::definition::{Provider, ProviderKind};
use crate::files::{changed_fields, document, reread};
use crate::providers::{ProviderView, keys_stay_home, version_conflict};
use crate::{Models, changed, store};

/// States that are shown.
const MOST: i64 = 100;

/// A state of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct PastProvider {
    /// The state's id.
    pub id: Uuid,
    /// The version it had.
    pub version: i64,
    /// `created`, `changed` or `deleted`.
    pub change: String,
    /// When it was saved.
    pub at: DateTime<Utc>,
    /// The definition as its file held it; it contains no secret.
    pub definition: Value,
}

impl Models {
    /// The last hundred states of a custom definition, the newest first; also of a deleted one.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN` when there never was one.
    pub async fn provider_history(&self, org: OrgId, slug: &str) -> Result<Vec<PastProvider>, Problem> {
        let rows = store::providers::history(&mut *self.inner.pool.acquire().await?, org, slug, MOST).await?;
        let states: Vec<PastProvider> = rows
            .into_iter()
            .filter_map(|row| {
                let provider: Provider = serde_json::from_value(row.definition).ok()?;
                let custom = provider.kind == ProviderKind::Custom;
                custom.then(|| PastProvider {
                    id: row.id,
                    version: row.version,
                    change: row.change,
                    at: row.at,
                    definition: document(&provider),
                })
            })
            .collect();
        if states.is_empty() { Err(provider_unknown()) } else { Ok(states) }
    }

    /// Saves an earlier state anew. `version` is that of the present definition; absent for a deleted one, which comes
    /// back without credentials.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`, `PROVIDER_VERSION_CONFLICT`, `INVALID_BODY` when the state is not valid any more,
    /// `CREDENTIAL_SECRET_INVALID` when a stored key would follow to another server.
    pub async fn restore_provider(
        &self,
        org: OrgId,
        actor: &Actor,
        slug: &str,
        state: Uuid,
        version: Option<i64>,
    ) -> Result<ProviderView, Problem> {
        let folder = self.meet_file(org, slug).await?;
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let rows = store::providers::history(&mut tx, org, slug, MOST).await?;
        let newest = rows.first().map_or(0, |row| row.version);
        let row = rows.into_iter().find(|row| row.id == state).ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                "There is no such version of this provider any more. Reload the list and choose another.",
            )
        })?;
        let past: Provider = serde_json::from_value(row.definition).map_err(Problem::internal)?;
        let held = store::providers::get(&mut tx, org, slug).await?;
        if held.as_ref().map(|held| held.version) != version {
            return Err(version_conflict());
        }
        let next = held.as_ref().map_or(newest, |held| held.version) + 1;
        let after = reread(&past, next, self.inner.wire.policy())?;
        let (action, change, details) = match &held {
            Some(held) if held.kind == ProviderKind::Demo => return Err(provider_unknown()),
            Some(held) => {
                keys_stay_home(&store::credentials::of_provider(&mut tx, org, slug).await?, held, &after, false)?;
                store::providers::update(&mut tx, org, &after, held.version, self.inner.clock.now()).await?;
                ("provider.update", "changed", json!({ "fields": changed_fields(held, &after) }))
            }
            None => {
                self.free_of_files(&folder, slug).await?;
                store::providers::insert(&mut tx, org, Uuid::now_v7(), &after, self.inner.clock.now()).await?;
                ("provider.create", "created", json!({ "kind": "custom" }))
            }
        };
        self.remember(&mut tx, org, &folder, &after, change, actor).await?;
        let mut details = details;
        details["version"] = json!(after.version);
        details["restored"] = json!(row.version);
        changed(&mut tx, &self.inner.clock, org, actor, action, ("provider", slug.to_owned()), details).await?;
        if held.is_some() {
            self.file_away(&folder, &after).await?;
        }
        self.commit(tx, org).await?;
        if held.is_none() {
            self.file_away(&folder, &after).await?;
        }
        self.provider(org, slug).await
    }
}
