//! Subscriptions: accounts of a provider's own plans, each a pasted token or handed out by a broker (spec 40, section 6).
//!
//! They act only in the agent runtime that they are bound to. They have a table of their own and no call of a model
//! looks there, so none can use one by mistake. What there is now: they are kept, their broker is asked, and an
//! account is selected as a run of the runtime will select it.

mod broker;
mod document;
mod path;
mod pool;

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::problem::{Code, Problem};

use crate::credentials::{checked_allowlist, name_exists, not_found, provider_unknown, version_conflict};
use crate::definition::{SubscriptionRuntime, readable_name};
use crate::secret::{checked_key, masked};
use crate::{Models, catalog, changed, store};

pub use broker::{BrokerTest, SelectedToken};
pub use document::{
    Broker, BrokerAuth, BrokerAuthMethod, BrokerMethod, PastedToken, ResponseMapping, Selection, TokenSource,
};
pub use pool::Excluded;

/// Most subscriptions of an organization.
const MAX_SUBSCRIPTIONS: usize = 100;

/// A subscription without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its id.
    pub id: CredentialId,
    /// The provider that it belongs to.
    pub provider_slug: String,
    /// Its name, unique in the organization, among credentials too.
    pub name: String,
    /// Where its tokens come from.
    pub source: TokenSource,
    /// The excerpt of the pasted token, or of the broker's stored secret.
    pub masked: Option<String>,
    /// The models that its plan serves; empty = all.
    pub model_allowlist: Vec<String>,
    /// Whether it may be used.
    pub enabled: bool,
    /// Grows with every change.
    pub version: i64,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

/// A subscription to be made.
#[derive(Debug, Clone)]
pub struct NewSubscription {
    /// Its name.
    pub name: String,
    /// Where its tokens come from.
    pub source: TokenSource,
    /// The token, or what signs in to the broker; kept encrypted, and instead of a variable.
    pub secret: Option<SecretString>,
    /// The models that its plan serves.
    pub model_allowlist: Vec<String>,
}

/// A change of a subscription. Absent fields stay.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionChange {
    /// The version that the change started from.
    pub version: i64,
    /// A new name.
    pub name: Option<String>,
    /// What replaces the present source whole (MOD-42). A broker does not become a token, nor the reverse.
    pub source: Option<TokenSource>,
    /// A new secret of the broker.
    pub secret: Option<SecretString>,
    /// A new token in the place of the pasted one.
    pub token: Option<SecretString>,
    /// A new list of models.
    pub model_allowlist: Option<Vec<String>>,
    /// Whether it may be used.
    pub enabled: Option<bool>,
}

impl Models {
    /// Makes a subscription.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`, `CREDENTIAL_NAME_TAKEN`, `CREDENTIAL_SECRET_INVALID`, `INVALID_BODY`, `INVALID_URL`,
    /// `PRIVATE_HOST_BLOCKED`.
    pub async fn create_subscription(
        &self,
        org: OrgId,
        actor: &Actor,
        provider_slug: &str,
        new: NewSubscription,
    ) -> Result<Subscription, Problem> {
        let runtime = runtime(provider_slug)?;
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        if store::subscriptions::list(&mut tx, org).await?.len() >= MAX_SUBSCRIPTIONS {
            return Err(Problem::invalid_field("name", "is one subscription too many: there may be 100"));
        }
        let id = CredentialId::new();
        let (mut source, key) = signed(new.source, new.secret, None)?;
        if let TokenSource::Pasted(pasted) = &mut source
            && pasted.target_env_var.is_empty()
        {
            pasted.target_env_var = runtime.target_env_vars.first().cloned().unwrap_or_default();
        }
        source.check(runtime, self.inner.wire.policy())?;
        let sealed = key.as_deref().map(|key| self.seal_secret(id, key)).transpose()?;
        let one = Subscription {
            id,
            provider_slug: provider_slug.to_owned(),
            name: free_name(&mut tx, org, &new.name).await?,
            source,
            masked: key.as_deref().map(masked),
            model_allowlist: plan_models(runtime, new.model_allowlist)?,
            enabled: true,
            version: 1,
            updated_at: self.inner.clock.now(),
        };
        store::subscriptions::insert(&mut tx, org, &one, sealed.as_deref()).await?;
        let method = one.source.method().text();
        let details = json!({ "provider": one.provider_slug, "name": one.name, "authMethod": method });
        self.record(&mut tx, org, actor, "credential.create", id, details).await?;
        tx.commit().await?;
        Ok(one)
    }

    /// Changes a subscription.
    ///
    /// # Errors
    /// As [`Models::create_subscription`], `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_VERSION_CONFLICT`.
    pub async fn change_subscription(
        &self,
        org: OrgId,
        actor: &Actor,
        id: CredentialId,
        change: SubscriptionChange,
    ) -> Result<Subscription, Problem> {
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let before = store::subscriptions::get(&mut tx, org, id).await?.ok_or_else(not_found)?;
        if before.version != change.version {
            return Err(version_conflict());
        }
        let runtime = runtime(&before.provider_slug)?;
        let mut after = before.clone();
        let mut fields = Vec::new();
        let mut sealed = None;
        if let Some(name) = change.name.filter(|name| *name != before.name) {
            after.name = free_name(&mut tx, org, &name).await?;
            fields.push("name");
        }
        let (secret, misplaced) = match &before.source {
            TokenSource::Broker(_) => (change.secret, change.token.is_some().then_some("token")),
            TokenSource::Pasted(_) => (change.token, change.secret.is_some().then_some("brokerSecret")),
        };
        if let Some(field) = misplaced {
            return Err(Problem::invalid_field(field, "belongs to the other kind of subscription"));
        }
        if change.source.is_some() || secret.is_some() {
            let wanted = change.source.unwrap_or_else(|| before.source.clone());
            if wanted.method() != before.source.method() {
                return Err(Problem::invalid_field("authMethod", "cannot change; make another subscription instead"));
            }
            let (source, key) = signed(wanted, secret, Some(&before))?;
            source.check(runtime, self.inner.wire.policy())?;
            after.masked = match (&key, source.broker().map(|broker| &broker.auth)) {
                (Some(key), _) => Some(masked(key)),
                (None, Some(auth)) if auth.method == BrokerAuthMethod::None || auth.secret_env.is_some() => None,
                (None, _) => before.masked.clone(),
            };
            sealed = key.as_deref().map(|key| self.seal_secret(id, key)).transpose()?;
            let (source_field, secret_field) = match &source {
                TokenSource::Broker(_) => ("broker", "brokerSecret"),
                TokenSource::Pasted(_) => ("targetEnvVar", "token"),
            };
            fields.extend((source != before.source).then_some(source_field));
            fields.extend((sealed.is_some() || after.masked != before.masked).then_some(secret_field));
            after.source = source;
        }
        if let Some(models) = change.model_allowlist {
            after.model_allowlist = plan_models(runtime, models)?;
            fields.push("modelAllowlist");
        }
        if let Some(enabled) = change.enabled {
            after.enabled = enabled;
            fields.push("enabled");
        }
        after.version += 1;
        after.updated_at = self.inner.clock.now();
        if !store::subscriptions::update(&mut tx, org, &after, before.version, sealed.as_deref()).await? {
            return Err(version_conflict());
        }
        let details = json!({ "provider": after.provider_slug, "fields": fields });
        self.record(&mut tx, org, actor, "credential.update", id, details).await?;
        tx.commit().await?;
        Ok(after)
    }

    /// Deletes a subscription with the history of its accounts.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_VERSION_CONFLICT`.
    pub async fn delete_subscription(
        &self,
        org: OrgId,
        actor: &Actor,
        id: CredentialId,
        version: i64,
    ) -> Result<(), Problem> {
        let mut tx = self.inner.pool.begin().await?;
        let one = store::subscriptions::get(&mut tx, org, id).await?.ok_or_else(not_found)?;
        if !store::subscriptions::delete(&mut tx, org, id, version).await? {
            return Err(version_conflict());
        }
        let details = json!({ "provider": one.provider_slug, "name": one.name });
        self.record(&mut tx, org, actor, "credential.delete", id, details).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The enabled subscriptions of an organization: what chats leave out (MOD-38).
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn subscriptions(&self, org: OrgId) -> Result<Vec<Subscription>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let mut all = store::subscriptions::list(&mut conn, org).await?;
        all.retain(|one| one.enabled);
        Ok(all)
    }

    fn seal_secret(&self, id: CredentialId, secret: &str) -> Result<String, Problem> {
        self.inner.cipher.seal(&secret_context(id), secret).map_err(Problem::internal)
    }

    async fn record(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        action: &'static str,
        id: CredentialId,
        details: serde_json::Value,
    ) -> Result<(), Problem> {
        changed(conn, &self.inner.clock, org, actor, action, ("credential", id.to_string()), details).await
    }
}

/// What a sealed secret is bound to.
pub(crate) fn secret_context(id: CredentialId) -> String {
    format!("subscription:{id}")
}

/// The runtime that subscriptions of a provider are bound to.
fn runtime(provider_slug: &str) -> Result<&'static SubscriptionRuntime, Problem> {
    let provider = catalog::shipped_provider(provider_slug).ok_or_else(provider_unknown)?;
    provider
        .subscription
        .as_ref()
        .ok_or_else(|| Problem::invalid_field("slug", "names a provider whose subscriptions no agent runtime uses"))
}

/// A name that neither a subscription nor a credential has.
async fn free_name(conn: &mut PgConnection, org: OrgId, name: &str) -> Result<String, Problem> {
    let name = readable_name("name", name).map_err(|issue| Problem::invalid_body(vec![issue]))?;
    let credential = store::credentials::name_taken(conn, org, &name).await?;
    if credential || store::subscriptions::name_taken(conn, org, &name).await? {
        return Err(name_exists(&name));
    }
    Ok(name)
}

/// The models of a plan (MOD-41).
fn plan_models(runtime: &SubscriptionRuntime, models: Vec<String>) -> Result<Vec<String>, Problem> {
    let models = checked_allowlist(models)?;
    if models.is_empty() && runtime.needs_models {
        return Err(Problem::invalid_field("modelAllowlist", "must list the models that the plan serves"));
    }
    Ok(models)
}

/// The source as it is kept, and its new token or secret; a stored one stays when nothing else is said.
fn signed(
    source: TokenSource,
    secret: Option<SecretString>,
    before: Option<&Subscription>,
) -> Result<(TokenSource, Option<String>), Problem> {
    let secret = secret.filter(|secret| !secret.expose_secret().trim().is_empty());
    let key = secret.map(|secret| checked_key(&secret)).transpose()?;
    match source {
        TokenSource::Broker(broker) => {
            let (broker, key) = signed_broker(broker, key, before)?;
            Ok((TokenSource::Broker(broker), key))
        }
        TokenSource::Pasted(_) if key.is_none() && before.is_none() => Err(Problem::new(
            Code::CredentialSecretInvalid,
            "The token is missing. Paste the one that the vendor gave you for your plan.",
        )),
        TokenSource::Pasted(pasted) => Ok((TokenSource::Pasted(pasted), key)),
    }
}

/// The broker as it is kept, and its new secret. A stored one stays only for the same place: another one must not be
/// sent a secret that nobody entered for it.
fn signed_broker(
    mut broker: Broker,
    key: Option<String>,
    before: Option<&Subscription>,
) -> Result<(Broker, Option<String>), Problem> {
    if broker.auth.method == BrokerAuthMethod::None {
        if key.is_some() {
            return Err(Problem::invalid_field("brokerSecret", "must be absent without a method of signing in"));
        }
        return Ok((broker, None));
    }
    if key.is_some() {
        broker.auth.secret_env = None;
        return Ok((broker, key));
    }
    if broker.auth.secret_env.is_some() {
        return Ok((broker, None));
    }
    let kept = before.filter(|before| before.masked.is_some());
    match kept {
        None => Err(Problem::new(
            Code::CredentialSecretInvalid,
            "The broker's secret is missing. Enter it, or name a variable that holds it.",
        )),
        Some(before) if before.source.broker().map(|old| old.endpoint.origin()) != Some(broker.endpoint.origin()) => {
            Err(Problem::new(
                Code::CredentialSecretInvalid,
                "The stored secret belongs to another address. Enter the secret of this broker.",
            ))
        }
        Some(_) => Ok((broker, None)),
    }
}
