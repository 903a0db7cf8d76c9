//! Reading and changing provider definitions (spec 40, sections 2 and 3).

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Issue, Problem};
use uuid::Uuid;

use crate::credentials::{AuthMethod, Credential, CredentialChange, NewCredential, provider_unknown};
use crate::definition::{
    Capabilities, CatalogSource, EmbeddingSupport, MAX_NAME_CHARS, ModelSpec, Provider, ProviderKind, Purpose,
    base_url, check_models, direct_methods, is_slug, readable_name,
};
use crate::extra_body::ExtraBody;
use crate::subscriptions::Subscription;
use crate::wire::{ApiFormat, WireDialect};
use crate::{Models, catalog, changed, store};

/// The demo provider's identifier.
pub const DEMO_SLUG: &str = "tale-demo";
/// Words that stand where a slug stands in an address.
const RESERVED_SLUGS: [&str; 2] = ["demo", "discover"];
/// The demo provider's label. It says what the demo is wherever it is shown.
pub const DEMO_NAME: &str = "Tale demo (quotes your documents, not a language model)";
/// The demo model's id.
pub const DEMO_MODEL: &str = "tale-demo";

/// A provider as the settings page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderView {
    /// The definition. The models of a live list are filled in.
    pub provider: Provider,
    /// The organization's credentials, the default first.
    pub credentials: Vec<Credential>,
    /// Its subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// The state of a live list.
    pub catalog: Option<CatalogState>,
}

/// When a live list was read last (MOD-15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogState {
    /// The time of the list in use.
    pub fetched_at: Option<DateTime<Utc>>,
    /// Why the last attempt failed, if it did.
    pub error: Option<String>,
}

/// A custom provider to be made, with its first credential.
#[derive(Debug, Clone)]
pub struct NewProvider {
    /// The identifier.
    pub slug: String,
    /// The label.
    pub display_name: String,
    /// The wire format.
    pub api_format: ApiFormat,
    /// The dialect of the OpenAI format.
    pub wire_dialect: WireDialect,
    /// The API root.
    pub base_url: String,
    /// Its models. Empty = they are read from the endpoint.
    pub models: Vec<ModelSpec>,
    /// Fields added to the body of each request (MOD-76).
    pub extra_body: ExtraBody,
    /// The key of its first credential.
    pub api_key: Option<SecretString>,
    /// The variable of its first credential, instead of a key. Without either, the endpoint is
    /// called without a key.
    pub secret_env: Option<String>,
}

/// A change to a custom provider. Absent fields stay.
#[derive(Debug, Clone, Default)]
pub struct ProviderChange {
    /// The version that the change started from.
    pub version: i64,
    /// A new label.
    pub display_name: Option<String>,
    /// A new address.
    pub base_url: Option<String>,
    /// New models.
    pub models: Option<Vec<ModelSpec>>,
    /// New fields added to the body of each request.
    pub extra_body: Option<ExtraBody>,
    /// A new key for the default credential, which is made when there is none.
    pub api_key: Option<SecretString>,
}

impl Models {
    /// Every provider: the organization's own, then the shipped ones.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn providers(&self, org: OrgId) -> Result<Vec<ProviderView>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let states = store::providers::catalogs(&mut conn, org).await?;
        let loaded = self.load(&mut conn, org).await?;
        let mut views: Vec<ProviderView> = Vec::with_capacity(loaded.len() + catalog::shipped().len());
        for one in loaded {
            let catalog = one.provider.catalog_source.is_live().then(|| {
                let state = states.iter().find(|state| state.slug == one.provider.slug);
                CatalogState {
                    fetched_at: state.and_then(|state| state.fetched_at),
                    error: state.and_then(|state| state.error.clone()),
                }
            });
            let models = match one.provider.unreadable {
                Some(_) => one.provider.models.clone(),
                None => one.models.as_ref().clone(),
            };
            views.push(ProviderView {
                provider: Provider { models, ..one.provider },
                credentials: one.credentials,
                subscriptions: Vec::new(),
                catalog,
            });
        }
        for provider in catalog::shipped() {
            if !views.iter().any(|view| view.provider.slug == provider.slug) {
                views.push(ProviderView {
                    provider: provider.clone(),
                    credentials: Vec::new(),
                    subscriptions: Vec::new(),
                    catalog: None,
                });
            }
        }
        for one in store::subscriptions::list(&mut conn, org).await? {
            if let Some(view) = views.iter_mut().find(|view| view.provider.slug == one.provider_slug) {
                view.subscriptions.push(one);
            }
        }
        views.sort_by_key(|view| match view.provider.kind {
            ProviderKind::Demo | ProviderKind::Custom => 0,
            ProviderKind::Shipped if !view.credentials.is_empty() || !view.subscriptions.is_empty() => 1,
            ProviderKind::Shipped => 2,
        });
        Ok(views)
    }

    /// One provider.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`.
    pub async fn provider(&self, org: OrgId, slug: &str) -> Result<ProviderView, Problem> {
        self.providers(org).await?.into_iter().find(|view| view.provider.slug == slug).ok_or_else(provider_unknown)
    }

    /// Makes a custom provider and its credential together (MOD-160).
    ///
    /// # Errors
    /// `INVALID_BODY`, `INVALID_URL`, `PRIVATE_HOST_BLOCKED`, `PROVIDER_NAME_TAKEN`,
    /// `EXTRA_BODY_KEY_FORBIDDEN`,
    /// `CREDENTIAL_SECRET_INVALID`.
    pub async fn create_provider(&self, org: OrgId, actor: &Actor, new: NewProvider) -> Result<ProviderView, Problem> {
        let mut issues = Vec::new();
        if new.slug != DEMO_SLUG && is_reserved(&new.slug) {
            return Err(Problem::new(
                Code::ProviderNameTaken,
                format!("The identifier \u{201c}{}\u{201d} is a word of Tale's own. Choose another name.", new.slug),
            ));
        }
        if !is_slug(&new.slug) {
            issues
                .push(Issue::new("name", "must be 1 to 64 lower-case letters, digits and single hyphens between them"));
        }
        let display_name =
            readable_name("displayName", &new.display_name).map_err(|issue| issues.push(issue)).unwrap_or_default();
        check_models("models", &new.models, &mut issues);
        if !issues.is_empty() {
            return Err(Problem::invalid_body(issues));
        }
        check_extra_bodies(&new.extra_body, &new.models)?;
        let url = base_url("baseUrl", &new.base_url, self.inner.wire.policy())?;
        let provider = Provider {
            embedding: embedding_of(new.api_format, &new.models),
            slug: new.slug,
            display_name,
            kind: ProviderKind::Custom,
            api_format: new.api_format,
            wire_dialect: new.wire_dialect,
            base_url: Some(url),
            endpoint_mode: None,
            subscription: None,
            catalog_source: if new.models.is_empty() { CatalogSource::ModelsEndpoint } else { CatalogSource::None },
            models: new.models,
            extra_body: new.extra_body,
            auth: direct_methods(),
            unreadable: None,
            version: 1,
        };
        let folder = self.meet_file(org, &provider.slug).await?;
        self.free_of_files(&folder, &provider.slug).await?;
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        self.insert_provider(&mut tx, org, &folder, actor, &provider).await?;
        let api_key = new.api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let credential = NewCredential {
            name: self.free_credential_name(&mut tx, org, &provider.display_name).await?,
            auth_method: match (&api_key, &new.secret_env) {
                (Some(_), _) => AuthMethod::ApiKey,
                (None, Some(_)) => AuthMethod::Env,
                (None, None) => AuthMethod::None,
            },
            api_key,
            secret_env: new.secret_env,
            endpoint: None,
            model_allowlist: Vec::new(),
            enabled: true,
        };
        let credential = self.insert_credential(&mut tx, org, actor, &provider, credential).await?;
        self.commit(tx, org).await?;
        // Last: what is not saved leaves no file that would be taken over.
        self.file_away(&folder, &provider).await?;
        if provider.catalog_source.is_live() {
            self.refresh_quietly(org, &provider, &credential).await;
        }
        self.provider(org, &provider.slug).await
    }

    /// Adds the demo model of this process as a provider. A second call changes nothing.
    ///
    /// # Errors
    /// `NOT_FOUND` when this process runs no demo model.
    pub async fn install_demo(&self, org: OrgId, actor: &Actor) -> Result<ProviderView, Problem> {
        if !self.demo_available() {
            return Err(Problem::new(
                Code::NotFound,
                "The demo model is not running. Start Tale with `tale dev --demo`.",
            ));
        }
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        if store::providers::get(&mut tx, org, DEMO_SLUG).await?.is_none_or(|held| held.kind != ProviderKind::Demo) {
            let provider = Provider {
                slug: DEMO_SLUG.to_owned(),
                display_name: DEMO_NAME.to_owned(),
                kind: ProviderKind::Demo,
                api_format: ApiFormat::OpenAi,
                wire_dialect: WireDialect::Classic,
                base_url: None,
                endpoint_mode: None,
                subscription: None,
                catalog_source: CatalogSource::None,
                embedding: EmbeddingSupport::Unsupported,
                models: vec![ModelSpec {
                    display_name: Some("Tale demo".to_owned()),
                    context_window: 32_000,
                    max_output_tokens: Some(2_000),
                    capabilities: Capabilities { tools: true, vision: false, reasoning: false },
                    ..ModelSpec::unknown(DEMO_MODEL)
                }],
                extra_body: ExtraBody::default(),
                auth: Vec::new(),
                unreadable: None,
                version: 1,
            };
            self.insert_provider(&mut tx, org, "", actor, &provider).await?;
        }
        self.commit(tx, org).await?;
        self.provider(org, DEMO_SLUG).await
    }

    async fn insert_provider(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        folder: &str,
        actor: &Actor,
        provider: &Provider,
    ) -> Result<(), Problem> {
        let taken = || {
            Problem::new(
                Code::ProviderNameTaken,
                format!(
                    "A provider with the identifier \u{201c}{}\u{201d} exists already. Choose another name.",
                    provider.slug
                ),
            )
        };
        if catalog::shipped_provider(&provider.slug).is_some()
            || (provider.slug == DEMO_SLUG && provider.kind != ProviderKind::Demo)
        {
            return Err(taken());
        }
        let now = self.inner.clock.now();
        store::providers::insert(conn, org, Uuid::now_v7(), provider, now)
            .await
            .map_err(|error| if store::violates(&error, "providers_slug_key") { taken() } else { error.into() })?;
        self.remember(conn, org, folder, provider, "created", actor).await?;
        let details = json!({ "kind": provider.kind.text(), "version": provider.version });
        changed(conn, &self.inner.clock, org, actor, "provider.create", ("provider", provider.slug.clone()), details)
            .await
    }

    /// The proposed name of a credential: the label, then `<label> 2`, … (spec 40, 5.1).
    async fn free_credential_name(&self, conn: &mut PgConnection, org: OrgId, label: &str) -> Result<String, Problem> {
        let held = store::credentials::list(conn, org).await?;
        let plans = store::subscriptions::list(conn, org).await?;
        let taken: HashSet<&str> =
            held.iter().map(|one| one.name.as_str()).chain(plans.iter().map(|one| one.name.as_str())).collect();
        let stem: String = label.chars().take(MAX_NAME_CHARS - 6).collect();
        let names = std::iter::once(label.to_owned()).chain((2..).map(|number| format!("{stem} {number}")));
        Ok(names.into_iter().find(|name| !taken.contains(name.as_str())).unwrap_or(stem))
    }

    /// Changes a custom provider and, with a key, its default credential, in one transaction
    /// (MOD-8, MOD-10).
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN` (also for shipped ones and the demo), `PROVIDER_VERSION_CONFLICT`,
    /// `INVALID_BODY`, `INVALID_URL`, `PRIVATE_HOST_BLOCKED`, `CREDENTIAL_SECRET_INVALID`,
    /// `EXTRA_BODY_KEY_FORBIDDEN`.
    pub async fn change_provider(
        &self,
        org: OrgId,
        actor: &Actor,
        slug: &str,
        change: ProviderChange,
    ) -> Result<ProviderView, Problem> {
        let folder = self.meet_file(org, slug).await?;
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let before = self.own_provider(&mut tx, org, slug, change.version).await?;
        let mut after = before.clone();
        let mut fields: Vec<&str> = Vec::new();
        let mut issues = Vec::new();
        if let Some(name) = &change.display_name {
            match readable_name("displayName", name) {
                Ok(name) => after.display_name = name,
                Err(issue) => issues.push(issue),
            }
            fields.push("displayName");
        }
        if let Some(models) = change.models {
            check_models("models", &models, &mut issues);
            after.catalog_source = if models.is_empty() { CatalogSource::ModelsEndpoint } else { CatalogSource::None };
            after.embedding = embedding_of(after.api_format, &models);
            after.models = models;
            fields.push("models");
        }
        if !issues.is_empty() {
            return Err(Problem::invalid_body(issues));
        }
        if let Some(extra) = change.extra_body {
            after.extra_body = extra;
            fields.push("extraBody");
        }
        check_extra_bodies(&after.extra_body, &after.models)?;
        if let Some(url) = &change.base_url {
            after.base_url = Some(base_url("baseUrl", url, self.inner.wire.policy())?);
            fields.push("baseUrl");
        }
        let key = change.api_key.filter(|key| !key.expose_secret().trim().is_empty());
        keys_stay_home(&store::credentials::of_provider(&mut tx, org, slug).await?, &before, &after, key.is_some())?;
        after.version += 1;
        after.unreadable = None;
        if !store::providers::update(&mut tx, org, &after, before.version, self.inner.clock.now()).await? {
            return Err(version_conflict());
        }
        self.remember(&mut tx, org, &folder, &after, "changed", actor).await?;
        if let Some(key) = key {
            fields.push("apiKey");
            self.replace_key(&mut tx, org, actor, &after, key).await?;
        }
        let details = json!({ "fields": fields, "version": after.version });
        changed(&mut tx, &self.inner.clock, org, actor, "provider.update", ("provider", slug.to_owned()), details)
            .await?;
        self.file_away(&folder, &after).await?;
        self.commit(tx, org).await?;
        self.provider(org, slug).await
    }

    async fn replace_key(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        provider: &Provider,
        key: SecretString,
    ) -> Result<(), Problem> {
        let held = store::credentials::list(conn, org)
            .await?
            .into_iter()
            .find(|credential| credential.provider_slug == provider.slug);
        match held {
            Some(credential) => {
                let change =
                    CredentialChange { version: credential.version, api_key: Some(key), ..CredentialChange::default() };
                self.change_credential_in(conn, org, actor, credential.id, change).await?;
            }
            None => {
                let credential = NewCredential {
                    name: self.free_credential_name(conn, org, &provider.display_name).await?,
                    auth_method: AuthMethod::ApiKey,
                    api_key: Some(key),
                    secret_env: None,
                    endpoint: None,
                    model_allowlist: Vec::new(),
                    enabled: true,
                };
                self.insert_credential(conn, org, actor, provider, credential).await?;
            }
        }
        Ok(())
    }

    /// Deletes a custom provider or the demo, together with its only credential.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`, `PROVIDER_VERSION_CONFLICT`, `PROVIDER_IN_USE` while the embedding model,
    /// a policy or more than one credential needs it (MOD-9).
    pub async fn delete_provider(&self, org: OrgId, actor: &Actor, slug: &str, version: i64) -> Result<(), Problem> {
        let folder = self.meet_file(org, slug).await?;
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let provider = self.deletable_provider(&mut tx, org, slug, version).await?;
        if let Some(config) = store::embedding::get(&mut tx, org).await?.filter(|config| config.provider_slug == slug) {
            return Err(Problem::new(
                Code::ProviderInUse,
                format!("The embedding model {} of the organization runs on this provider. Choose another embedding model first, then delete the provider.", config.model),
            )
            .with_data(json!({ "usedBy": ["embedding"] })));
        }
        self.free_of_policies(&mut tx, org, slug).await?;
        let credentials: Vec<Credential> = store::credentials::list(&mut tx, org)
            .await?
            .into_iter()
            .filter(|credential| credential.provider_slug == slug)
            .collect();
        if credentials.len() > 1 {
            return Err(Problem::new(
                Code::ProviderInUse,
                format!(
                    "The provider has {} credentials. Delete all but one of them first, then delete the provider.",
                    credentials.len()
                ),
            )
            .with_data(json!({ "usedBy": ["credentials"] })));
        }
        for credential in &credentials {
            self.delete_credential_in(&mut tx, org, actor, credential).await?;
        }
        if !store::providers::delete(&mut tx, org, slug, version).await? {
            return Err(version_conflict());
        }
        self.remember(&mut tx, org, &folder, &provider, "deleted", actor).await?;
        let details = json!({ "version": version });
        changed(&mut tx, &self.inner.clock, org, actor, "provider.delete", ("provider", slug.to_owned()), details)
            .await?;
        if provider.kind == ProviderKind::Custom {
            self.take_away(&folder, slug).await?;
        }
        self.commit(tx, org).await?;
        Ok(())
    }

    /// Deletes a custom provider that has lost its last credential (MOD-30). `false` for one that has others, and
    /// for shipped ones.
    ///
    /// # Errors
    /// As [`Models::delete_provider`].
    pub(crate) async fn retire_provider(&self, org: OrgId, actor: &Actor, slug: &str) -> Result<bool, Problem> {
        let own = {
            let mut conn = self.inner.pool.acquire().await?;
            let left = store::credentials::of_provider(&mut conn, org, slug).await?;
            let own = store::providers::get(&mut conn, org, slug).await?;
            own.filter(|provider| left.is_empty() && provider.kind == ProviderKind::Custom)
        };
        let Some(provider) = own else { return Ok(false) };
        self.delete_provider(org, actor, slug, provider.version).await?;
        Ok(true)
    }

    /// Refuses while a policy names the provider's models: as the one for recordings, or as a default. The
    /// organization's row is held, so no policy changes meanwhile.
    async fn free_of_policies(&self, conn: &mut PgConnection, org: OrgId, slug: &str) -> Result<(), Problem> {
        let policies = self.inner.policies.held(conn, org).await?;
        let pinned = policies.transcription_model.usable().ok().and_then(|policy| policy.pin());
        if let Some((_, model)) = pinned.filter(|(provider, _)| *provider == slug) {
            return Err(Problem::new(
                Code::ProviderInUse,
                format!("The transcription model {model} of the organization runs on this provider. Choose another transcription model first, then delete the provider."),
            )
            .with_data(json!({ "usedBy": ["transcription"] })));
        }
        let defaults = policies.default_models.usable().ok().map_or(&[][..], |policy| policy.rules.as_slice());
        if let Some(rule) = defaults.iter().find(|rule| rule.provider_name == slug) {
            return Err(Problem::new(
                Code::ProviderInUse,
                format!("The default model {} of the organization runs on this provider. Change that default under Settings > Governance > Content & Models first, then delete the provider.", rule.model_id),
            )
            .with_data(json!({ "usedBy": ["default_models"] })));
        }
        Ok(())
    }

    async fn own_provider(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        slug: &str,
        version: i64,
    ) -> Result<Provider, Problem> {
        let provider = self.deletable_provider(conn, org, slug, version).await?;
        if provider.kind == ProviderKind::Demo { Err(provider_unknown()) } else { Ok(provider) }
    }

    async fn deletable_provider(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        slug: &str,
        version: i64,
    ) -> Result<Provider, Problem> {
        let provider = store::providers::get(conn, org, slug).await?.ok_or_else(provider_unknown)?;
        if provider.version == version { Ok(provider) } else { Err(version_conflict()) }
    }
}

/// A stored key never follows its provider to another origin: whoever may change an address could otherwise have every
/// key sent to a server of their own. A key that comes with the change replaces that of the first credential.
pub(crate) fn keys_stay_home(
    held: &[Credential],
    before: &Provider,
    after: &Provider,
    replaces_first: bool,
) -> Result<(), Problem> {
    let Some(old) = before.base_url.as_ref() else { return Ok(()) };
    if after.base_url.as_ref().is_some_and(|new| new.origin() == old.origin()) {
        return Ok(());
    }
    let follows =
        |credential: &&Credential| credential.auth_method == AuthMethod::ApiKey && credential.endpoint.is_none();
    let Some(stays) = held.iter().skip(usize::from(replaces_first)).find(follows) else { return Ok(()) };
    Err(Problem::new(
        Code::CredentialSecretInvalid,
        if replaces_first {
            format!(
                "The credential “{}” holds a key for {}, which never goes to another server. Delete that credential first.",
                stays.name,
                old.authority()
            )
        } else {
            format!(
                "The stored key is for {}, and never goes to another server. Enter the key of the new address.",
                old.authority()
            )
        },
    ))
}

/// Whether a custom provider must not have this identifier, because it means something else.
pub(crate) fn is_reserved(slug: &str) -> bool {
    slug == DEMO_SLUG || RESERVED_SLUGS.contains(&slug)
}

/// Judges the extra fields of a definition and of its models (MOD-76).
pub(crate) fn check_extra_bodies(own: &ExtraBody, models: &[ModelSpec]) -> Result<(), Problem> {
    own.check("extraBody")?;
    models.iter().enumerate().try_for_each(|(at, model)| model.extra_body.check(&format!("models.{at}.extraBody")))
}

/// Whether a custom provider offers embeddings, by what its definition lists.
fn embedding_of(format: ApiFormat, models: &[ModelSpec]) -> EmbeddingSupport {
    if format == ApiFormat::Anthropic {
        EmbeddingSupport::Unsupported
    } else if models.iter().any(|model| model.serves(Purpose::Embedding)) {
        EmbeddingSupport::Supported
    } else {
        EmbeddingSupport::Unknown
    }
}

pub(crate) fn version_conflict() -> Problem {
    Problem::new(
        Code::ProviderVersionConflict,
        "The provider was changed in the meantime, so nothing was saved. Reload it and try again.",
    )
}
