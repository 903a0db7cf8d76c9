//! Models: which ones an organization has, and how they are called.
//!
//! - [`catalog`]: the shipped providers, as data.
//! - [`definition`]: what a provider definition is.
//! - [`files`]: the file of each custom definition. **Decision**: the application database
//!   (`app.providers`) coordinates, so that a save is one transaction with its credential, its audit
//!   entry and its history row and every replica sees it at once; what somebody writes into a file is
//!   taken over from there.
//! - [`history`]: earlier states of definitions.
//! - [`providers`], [`credentials`]: changing them. Every change carries the version it started
//!   from, is audited without values, and tells open browsers.
//! - [`catalogs`]: the lists of models that are read from providers, and how they stay fresh.
//! - [`probe`]: reading an endpoint that is not saved yet, and the Test button.
//! - [`available`]: which chat models can be used now, and how one is called.
//! - [`named`]: models that somebody was given by name and credential.
//! - [`auto`]: the automatic choice of a model.
//! - [`embedding`]: the organization's embedding model and the vectors it makes.
//! - [`transcription`]: the organization's transcription model and the text of recordings.
//! - [`ledger`]: every call is held before it runs and booked once; what limits leave.
//! - [`wire`]: the two wire formats, streaming, limits, and the errors of spec 50, section 15.
//!
//! Rights are checked by the caller; functions here take the organization and the actor. Keys are
//! encrypted for their row and opened only for the request that needs them.
//!
//! Cost of the hot path: starting an answer of a named provider opens one key and reads nothing while the
//! provider was used within seconds ([`recent`]), else its definition and credentials (two indexed
//! statements at once); a running answer holds one connection and the buffers bounded by
//! [`wire::WireLimits`].

pub mod auto;
pub mod available;
pub mod catalog;
pub mod catalogs;
pub mod credentials;
pub mod definition;
mod duration;
pub mod embedding;
mod extra_body;
pub mod files;
pub mod history;
mod key_hosts;
pub mod ledger;
pub mod metrics;
pub mod named;
pub mod probe;
pub mod providers;
mod recent;
mod retention;
pub mod rotation;
mod secret;
mod store;
mod subscriptions;
pub mod transcription;
pub mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use sqlx::{PgConnection, PgPool};
use tale_core::Actor;
use tale_core::clock::SharedClock;
use tale_core::crypto::FieldCipher;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::net::HostPolicy;
use tale_core::problem::Problem;
use tale_env::EnvSource;
use tale_governance::audit::{self, AuditEntry};
use tale_governance::policies::Policies;
use tale_orgfiles::ConfigStore;
use url::Url;

pub use available::{ModelEntry, ResolvedModel};
pub use catalogs::{CatalogCheck, CatalogRefresh};
pub use credentials::{AuthMethod, Credential, CredentialChange, NewCredential};
pub use definition::{
    Capabilities, CatalogSource, EmbeddingSupport, ModelSpec, Pricing, Provider, ProviderKind, Purpose,
    SubscriptionMethod, SubscriptionRuntime, Tier,
};
pub use embedding::{EmbedError, EmbedPurpose, EmbeddingCandidate, EmbeddingChanged, EmbeddingConfig};
pub use extra_body::ExtraBody;
pub use files::{SeenFiles, UnusableFile};
pub use history::PastProvider;
pub use key_hosts::{BadKeyHosts, KeyHosts};
pub use named::ModelReference;
pub use probe::{DiscoverRequest, TestOutcome};
pub use providers::{CatalogState, NewProvider, ProviderChange, ProviderView};
pub use subscriptions::{
    Broker, BrokerAuth, BrokerAuthMethod, BrokerMethod, BrokerTest, Excluded, NewSubscription, PastedToken,
    ResponseMapping, SelectedToken, Selection, Subscription, SubscriptionChange, TokenSource,
};
pub use transcription::{TranscribeError, TranscriptionModel, TranscriptionPin, TranscriptionState};
pub use wire::{
    ApiFormat, ChatMessage, ChatRequest, Effort, FinishReason, ModelError, ModelErrorCode, ReasoningBlock, StreamEvent,
    ToolApi, ToolCall, ToolChoice, ToolSpec, Transcript, Usage, UserPart, WireLimits,
};

/// What [`Models`] is built from.
pub struct ModelsConfig {
    /// The application database.
    pub pool: PgPool,
    /// Time of changes.
    pub clock: SharedClock,
    /// Encrypts stored keys.
    pub cipher: FieldCipher,
    /// Whether private addresses are admitted (`TALE_ALLOW_PRIVATE_PROVIDER_HOSTS`).
    pub host_policy: HostPolicy,
    /// Where keys of the environment may be sent beside the vendors (`TALE_ENV_KEY_HOSTS`).
    pub key_hosts: KeyHosts,
    /// Where `TALE_PROVIDER_KEY_*` variables are read, at each request.
    pub env: Arc<dyn EnvSource>,
    /// The address of the demo model that this process runs (`http://127.0.0.1:PORT/v1`), when it
    /// runs one. It is no stored value, because the port changes with every start.
    pub demo_base: Option<Url>,
    /// Bounds of each call.
    pub limits: WireLimits,
    /// What administrators laid down about models.
    pub policies: Policies,
    /// Where the files of custom definitions are.
    pub files: ConfigStore,
}

/// The models room's service. Cheap to clone; clones share their connections and caches.
#[derive(Clone)]
pub struct Models {
    inner: Arc<Inner>,
}

struct Inner {
    pool: PgPool,
    clock: SharedClock,
    cipher: FieldCipher,
    env: Arc<dyn EnvSource>,
    key_hosts: KeyHosts,
    wire: wire::WireClient,
    ledger: ledger::Ledger,
    embedding_changed: OnceLock<Arc<dyn EmbeddingChanged>>,
    embedding_state: embedding::State,
    live_catalogs: Mutex<HashMap<(OrgId, String), available::CachedCatalog>>,
    catalog_attempts: catalogs::Attempts,
    sealed_keys: Mutex<HashMap<CredentialId, available::SealedKey>>,
    recent: recent::Recent,
    policies: Policies,
    files: ConfigStore,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models").finish_non_exhaustive()
    }
}

impl Models {
    /// Builds the service. One per process; it opens no connection yet.
    ///
    /// # Errors
    /// When the TLS backend cannot start.
    pub fn new(config: ModelsConfig) -> Result<Self, reqwest::Error> {
        Ok(Self {
            inner: Arc::new(Inner {
                wire: wire::WireClient::new(config.host_policy, config.demo_base, config.limits)?,
                ledger: ledger::Ledger::new(
                    config.pool.clone(),
                    config.clock.clone(),
                    Arc::new(config.policies.clone()),
                ),
                pool: config.pool,
                clock: config.clock,
                cipher: config.cipher,
                env: config.env,
                key_hosts: config.key_hosts,
                embedding_changed: OnceLock::new(),
                embedding_state: embedding::State::default(),
                live_catalogs: Mutex::new(HashMap::new()),
                catalog_attempts: catalogs::Attempts::default(),
                sealed_keys: Mutex::new(HashMap::new()),
                recent: recent::Recent::default(),
                policies: config.policies,
                files: config.files,
            }),
        })
    }

    /// Plugs in who must hear, within the same transaction, that an organization's embedding model
    /// changed (the knowledge room). Later calls change nothing.
    pub fn on_embedding_changed(&self, listener: Arc<dyn EmbeddingChanged>) {
        let _ = self.inner.embedding_changed.set(listener);
    }

    /// Where the use of models is held and booked.
    #[must_use]
    pub fn ledger(&self) -> &ledger::Ledger {
        &self.inner.ledger
    }

    /// The variable of the environment that is to hold a key, while it is not set in this process (MOD-36). Its value is
    /// never told.
    #[must_use]
    pub fn unset_variable(&self, variable: Option<&str>) -> Option<String> {
        variable.filter(|name| secret::env_key(self.inner.env.as_ref(), name).is_none()).map(str::to_owned)
    }

    /// Whether this process runs the demo model.
    #[must_use]
    pub fn demo_available(&self) -> bool {
        self.inner.wire.demo_base().is_some()
    }
}

/// Writes the audit entry of a change to models and tells open browsers, in its transaction.
async fn changed(
    conn: &mut PgConnection,
    clock: &SharedClock,
    org: OrgId,
    actor: &Actor,
    action: &'static str,
    resource: (&'static str, String),
    details: serde_json::Value,
) -> Result<(), Problem> {
    let (resource_type, resource_id) = resource;
    let entry = AuditEntry {
        org: Some(org),
        actor: actor.clone(),
        action,
        category: "provider",
        resource_type,
        resource_id: Some(resource_id),
        details,
        at: clock.now(),
    };
    audit::record(conn, &entry).await?;
    recent::announce(conn, org).await
}
