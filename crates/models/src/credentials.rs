//! An organization's access to providers (spec 40, section 5).

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::problem::{Code, Issue, Problem};
use url::Url;

use crate::definition::{
    CatalogSource, EndpointMode, MAX_MODELS, Provider, ProviderKind, base_url, check_model_id, readable_name,
};
use crate::secret::{checked_env_name, checked_key, masked};
use crate::{Models, catalog, changed, store};

/// Where the key of a credential comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    /// A stored key.
    ApiKey,
    /// A variable of the process.
    Env,
    /// No key: a server of one's own that asks for none.
    None,
}

impl AuthMethod {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::Env => "env",
            Self::None => "none",
        }
    }

    /// Reads the transmitted word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::ApiKey, Self::Env, Self::None].into_iter().find(|method| method.text() == text)
    }
}

/// A credential without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its id.
    pub id: CredentialId,
    /// The provider it belongs to.
    pub provider_slug: String,
    /// Its name, unique in the organization.
    pub name: String,
    /// Where the key comes from.
    pub auth_method: AuthMethod,
    /// The excerpt of a stored key (MOD-24).
    pub masked: Option<String>,
    /// The variable of an `env` credential.
    pub secret_env: Option<String>,
    /// An address of its own.
    pub endpoint: Option<Url>,
    /// The models it may call; empty = all.
    pub model_allowlist: Vec<String>,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether it is used when a caller names none.
    pub is_default: bool,
    /// Grows with every change.
    pub version: i64,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

impl Credential {
    /// Whether it may call `model`.
    #[must_use]
    pub fn allows(&self, model: &str) -> bool {
        self.model_allowlist.is_empty() || self.model_allowlist.iter().any(|allowed| allowed == model)
    }
}

/// A credential to be made.
#[derive(Debug, Clone)]
pub struct NewCredential {
    /// Its name.
    pub name: String,
    /// Where the key comes from.
    pub auth_method: AuthMethod,
    /// The key, for [`AuthMethod::ApiKey`].
    pub api_key: Option<SecretString>,
    /// The variable, for [`AuthMethod::Env`].
    pub secret_env: Option<String>,
    /// An address of its own; required by per-credential providers.
    pub endpoint: Option<String>,
    /// The models it may call; empty = all.
    pub model_allowlist: Vec<String>,
    /// Whether it may be used.
    pub enabled: bool,
}

/// A change to a credential. Absent fields stay.
#[derive(Debug, Clone, Default)]
pub struct CredentialChange {
    /// The version that the change started from.
    pub version: i64,
    /// A new name.
    pub name: Option<String>,
    /// A new key (MOD-31).
    pub api_key: Option<SecretString>,
    /// A new address; `Some(None)` removes it.
    pub endpoint: Option<Option<String>>,
    /// A new allowlist.
    pub model_allowlist: Option<Vec<String>>,
    /// Whether it may be used.
    pub enabled: Option<bool>,
    /// Makes it the provider's default, or takes the mark away.
    pub is_default: Option<bool>,
}

impl Models {
    /// Makes a credential. The first one of a provider becomes its default (MOD-25). For a provider
    /// whose models are read from its endpoint, the list is read once afterwards; a failure to read
    /// it is kept and shown, and does not undo the save.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`, `CREDENTIAL_NAME_TAKEN`, `CREDENTIAL_SECRET_INVALID`,
    /// `CREDENTIAL_ENDPOINT_INVALID`, `INVALID_BODY`.
    pub async fn create_credential(
        &self,
        org: OrgId,
        actor: &Actor,
        provider_slug: &str,
        new: NewCredential,
    ) -> Result<Credential, Problem> {
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let provider = self.provider_in(&mut tx, org, provider_slug).await?;
        // The access without a key, which an own server started with, gives way to a real one.
        let held = store::credentials::list(&mut tx, org).await?;
        for keyless in
            held.iter().filter(|held| held.provider_slug == provider_slug && held.auth_method == AuthMethod::None)
        {
            self.delete_credential_in(&mut tx, org, actor, keyless).await?;
        }
        let credential = self.insert_credential(&mut tx, org, actor, &provider, new).await?;
        self.commit(tx, org).await?;
        if provider.catalog_source.is_live() && provider.models.is_empty() && credential.enabled {
            self.refresh_quietly(org, &provider, &credential).await;
        }
        Ok(credential)
    }

    /// The transaction's part of making a credential.
    pub(crate) async fn insert_credential(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        provider: &Provider,
        new: NewCredential,
    ) -> Result<Credential, Problem> {
        if provider.kind == ProviderKind::Demo {
            return Err(Problem::invalid_field("slug", "names the demo model, which takes no credential"));
        }
        let name = readable_name("name", &new.name).map_err(|issue| Problem::invalid_body(vec![issue]))?;
        if new.auth_method != AuthMethod::None && !provider.auth.contains(&new.auth_method) {
            let allowed: Vec<&str> = provider.auth.iter().map(|method| method.text()).collect();
            let why = format!("must be one of {} for this provider, says its definition", allowed.join(", "));
            return Err(Problem::invalid_field("authMethod", &why));
        }
        let id = CredentialId::new();
        let (sealed, masked, secret_env) = match new.auth_method {
            AuthMethod::ApiKey => {
                let key = checked_key(new.api_key.as_ref().unwrap_or(&SecretString::from("")))?;
                (Some(self.seal(id, &key)?), Some(masked(&key)), None)
            }
            AuthMethod::Env => {
                let name = new.secret_env.as_deref().unwrap_or_default();
                (None, None, Some(checked_env_name(name)?))
            }
            AuthMethod::None if provider.kind == ProviderKind::Shipped => {
                return Err(Problem::invalid_field("authMethod", "must be `api-key` or `env` for this provider"));
            }
            AuthMethod::None => (None, None, None),
        };
        let endpoint = self.checked_endpoint(provider, new.endpoint.as_deref())?;
        let model_allowlist = checked_allowlist(new.model_allowlist)?;
        let siblings: Vec<Credential> = store::credentials::list(conn, org)
            .await?
            .into_iter()
            .filter(|c| c.provider_slug == provider.slug)
            .collect();
        let now = self.inner.clock.now();
        let credential = Credential {
            id,
            provider_slug: provider.slug.clone(),
            name,
            auth_method: new.auth_method,
            masked,
            secret_env,
            endpoint,
            model_allowlist,
            enabled: new.enabled,
            is_default: new.enabled && siblings.is_empty(),
            version: 1,
            updated_at: now,
        };
        if store::subscriptions::name_taken(conn, org, &credential.name).await? {
            return Err(name_exists(&credential.name));
        }
        store::credentials::insert(conn, org, &credential, sealed.as_deref(), now)
            .await
            .map_err(|error| name_taken(error, &credential.name))?;
        let details =
            json!({ "provider": provider.slug, "name": credential.name, "authMethod": credential.auth_method.text() });
        changed(conn, &self.inner.clock, org, actor, "credential.create", ("credential", id.to_string()), details)
            .await?;
        Ok(credential)
    }

    /// Changes a credential.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_VERSION_CONFLICT`, `CREDENTIAL_NAME_TAKEN`,
    /// `CREDENTIAL_IN_USE` (MOD-29), `CREDENTIAL_SECRET_INVALID`, `CREDENTIAL_ENDPOINT_INVALID`.
    pub async fn change_credential(
        &self,
        org: OrgId,
        actor: &Actor,
        id: CredentialId,
        change: CredentialChange,
    ) -> Result<Credential, Problem> {
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let credential = self.change_credential_in(&mut tx, org, actor, id, change).await?;
        self.commit(tx, org).await?;
        Ok(credential)
    }

    pub(crate) async fn change_credential_in(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        id: CredentialId,
        change: CredentialChange,
    ) -> Result<Credential, Problem> {
        let before = store::credentials::get(conn, org, id).await?.ok_or_else(not_found)?;
        if before.version != change.version {
            return Err(version_conflict());
        }
        let provider = self.provider_in(conn, org, &before.provider_slug).await?;
        let mut after = before.clone();
        let mut fields: Vec<&str> = Vec::new();
        let mut sealed = None;
        if let Some(name) = change.name {
            after.name = readable_name("name", &name).map_err(|issue| Problem::invalid_body(vec![issue]))?;
            if store::subscriptions::name_taken(conn, org, &after.name).await? {
                return Err(name_exists(&after.name));
            }
            fields.push("name");
        }
        if let Some(key) = change.api_key {
            if before.auth_method == AuthMethod::Env {
                return Err(Problem::new(
                    Code::CredentialSecretInvalid,
                    "This credential reads its key from an environment variable, so it has no stored key to replace. Make a new credential instead.",
                ));
            }
            let key = checked_key(&key)?;
            sealed = Some(self.seal(id, &key)?);
            after.auth_method = AuthMethod::ApiKey;
            after.masked = Some(masked(&key));
            fields.push("apiKey");
        }
        if let Some(endpoint) = change.endpoint {
            after.endpoint = self.checked_endpoint(&provider, endpoint.as_deref())?;
            fields.push("endpoint");
            let origin =
                |credential: &Credential| credential.endpoint.as_ref().or(provider.base_url.as_ref()).map(Url::origin);
            if sealed.is_none() && before.auth_method == AuthMethod::ApiKey && origin(&before) != origin(&after) {
                return Err(Problem::new(
                    Code::CredentialSecretInvalid,
                    "The stored key belongs to another address. Enter the key of the new one.",
                ));
            }
        }
        if let Some(allowlist) = change.model_allowlist {
            after.model_allowlist = checked_allowlist(allowlist)?;
            fields.push("modelAllowlist");
        }
        if let Some(enabled) = change.enabled {
            after.enabled = enabled;
            after.is_default &= enabled;
            fields.push("enabled");
        }
        match change.is_default {
            Some(true) if !after.enabled => {
                return Err(Problem::invalid_field(
                    "isDefault",
                    "cannot be set on a disabled credential; enable it first",
                ));
            }
            Some(is_default) => {
                after.is_default = is_default;
                fields.push("isDefault");
            }
            None => {}
        }
        self.still_embeds(conn, org, &before, Some(&after)).await?;
        let now = self.inner.clock.now();
        if after.is_default && !before.is_default {
            store::credentials::clear_default(conn, org, &after.provider_slug, now).await?;
        }
        after.version += 1;
        after.updated_at = now;
        let written = store::credentials::update(conn, org, &after, before.version, sealed.as_deref(), now)
            .await
            .map_err(|error| name_taken(error, &after.name))?;
        if !written {
            return Err(version_conflict());
        }
        let details = json!({ "provider": after.provider_slug, "fields": fields });
        changed(conn, &self.inner.clock, org, actor, "credential.update", ("credential", id.to_string()), details)
            .await?;
        Ok(after)
    }

    /// Deletes a credential and, when it was the last one of a custom provider, the provider as well (MOD-30). Whether
    /// that went is the inner result; the credential is gone either way.
    ///
    /// # Errors
    /// As [`Models::delete_credential`]; within, as [`Models::delete_provider`].
    pub async fn delete_credential_and_provider(
        &self,
        org: OrgId,
        actor: &Actor,
        id: CredentialId,
        version: i64,
    ) -> Result<Result<bool, Problem>, Problem> {
        let slug = self.delete_credential(org, actor, id, version).await?;
        Ok(self.retire_provider(org, actor, &slug).await)
    }

    /// Deletes a credential. Returns its provider.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_VERSION_CONFLICT`, `CREDENTIAL_IN_USE` (MOD-29).
    pub async fn delete_credential(
        &self,
        org: OrgId,
        actor: &Actor,
        id: CredentialId,
        version: i64,
    ) -> Result<String, Problem> {
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let credential = store::credentials::get(&mut tx, org, id).await?.ok_or_else(not_found)?;
        if credential.version != version {
            return Err(version_conflict());
        }
        self.still_embeds(&mut tx, org, &credential, None).await?;
        self.delete_credential_in(&mut tx, org, actor, &credential).await?;
        self.commit(tx, org).await?;
        Ok(credential.provider_slug)
    }

    pub(crate) async fn delete_credential_in(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        credential: &Credential,
    ) -> Result<(), Problem> {
        if !store::credentials::delete(conn, org, credential.id, credential.version).await? {
            return Err(version_conflict());
        }
        let details = json!({ "provider": credential.provider_slug, "name": credential.name });
        changed(
            conn,
            &self.inner.clock,
            org,
            actor,
            "credential.delete",
            ("credential", credential.id.to_string()),
            details,
        )
        .await
    }

    /// Refuses a change that would take the key away from the embedding model (MOD-29): the
    /// credential it resolves is deleted, disabled, loses its default mark, or no longer allows it.
    async fn still_embeds(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        before: &Credential,
        after: Option<&Credential>,
    ) -> Result<(), Problem> {
        let Some(config) = store::embedding::get(conn, org).await? else { return Ok(()) };
        if config.provider_slug != before.provider_slug || !before.is_default || !before.enabled {
            return Ok(());
        }
        if after.is_some_and(|after| after.enabled && after.is_default && after.allows(&config.model)) {
            return Ok(());
        }
        Err(Problem::new(
            Code::CredentialInUse,
            format!(
                "The embedding model {} of the organization uses this credential. Choose another embedding model, or make another credential of the provider the default, and try again.",
                config.model
            ),
        )
        .with_data(json!({ "embedding": { "providerSlug": config.provider_slug, "model": config.model } })))
    }

    /// Encrypts a key for its row.
    pub(crate) fn seal(&self, id: CredentialId, key: &str) -> Result<String, Problem> {
        self.inner.cipher.seal(&secret_context(id), key).map_err(Problem::internal)
    }

    fn checked_endpoint(&self, provider: &Provider, endpoint: Option<&str>) -> Result<Option<Url>, Problem> {
        let invalid = |message: String| {
            Problem::new(Code::CredentialEndpointInvalid, message)
                .with_data(json!({ "issues": [{ "path": "endpoint", "message": "is not usable" }] }))
        };
        match endpoint.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => base_url("endpoint", text, self.inner.wire.policy())
                .map(Some)
                .map_err(|problem| invalid(problem.message.into_owned())),
            None if provider.endpoint_mode == Some(EndpointMode::PerCredential) => Err(invalid(format!(
                "`endpoint` is required: {} has an address of its own for each customer, such as https://RESOURCE.openai.azure.com/openai/v1.",
                provider.display_name
            ))),
            None => Ok(None),
        }
    }

    /// A shipped provider, or one of the organization.
    pub(crate) async fn provider_in(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        slug: &str,
    ) -> Result<Provider, Problem> {
        if let Some(provider) = catalog::shipped_provider(slug) {
            return Ok(provider.clone());
        }
        store::providers::get(conn, org, slug).await?.ok_or_else(provider_unknown)
    }
}

/// What a sealed key is bound to.
pub(crate) fn secret_context(id: CredentialId) -> String {
    format!("credential:{id}")
}

pub(crate) fn provider_unknown() -> Problem {
    Problem::new(
        Code::ProviderUnknown,
        "There is no such provider in this organization. Reload the page to see the current list.",
    )
}

pub(crate) fn not_found() -> Problem {
    Problem::new(
        Code::CredentialNotFound,
        "There is no such credential in this organization. Reload the page to see the current list.",
    )
}

pub(crate) fn version_conflict() -> Problem {
    Problem::new(
        Code::CredentialVersionConflict,
        "The credential was changed in the meantime, so nothing was saved. Reload it and try again.",
    )
}

fn name_taken(error: sqlx::Error, name: &str) -> Problem {
    if store::violates(&error, "credentials_name_key") { name_exists(name) } else { error.into() }
}

pub(crate) fn name_exists(name: &str) -> Problem {
    Problem::new(
        Code::CredentialNameTaken,
        format!("A credential named \u{201c}{name}\u{201d} exists already. Choose another name."),
    )
}

pub(crate) fn checked_allowlist(list: Vec<String>) -> Result<Vec<String>, Problem> {
    if list.len() > MAX_MODELS {
        return Err(Problem::invalid_field("modelAllowlist", "must list at most 2000 models"));
    }
    let mut checked: Vec<String> = Vec::with_capacity(list.len());
    let mut issues = Vec::new();
    for (at, id) in list.into_iter().enumerate() {
        let id = id.trim().to_owned();
        if let Err(why) = check_model_id(&id) {
            issues.push(Issue::new(format!("modelAllowlist.{at}"), why));
        } else if !checked.contains(&id) {
            checked.push(id);
        }
    }
    if issues.is_empty() { Ok(checked) } else { Err(Problem::invalid_body(issues)) }
}

/// Whether the provider's models are exactly its credentials' allowlists.
pub(crate) fn allowlist_is_the_list(provider: &Provider) -> bool {
    provider.catalog_source == CatalogSource::None && provider.models.is_empty()
}
