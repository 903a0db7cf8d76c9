//! An organization in a fresh database, and a service over it.

use std::sync::Arc;

use chrono::{TimeZone, Utc};
use secrecy::SecretString;
use sqlx::PgPool;
use tale_core::Actor;
use tale_core::crypto::FieldCipher;
use tale_core::ids::{OrgId, UserId};
use tale_core::net::HostPolicy;
use tale_env::MapEnv;
use tale_governance::policies::Policies;
use tale_models::{ApiFormat, KeyHosts, ModelSpec, Models, ModelsConfig, NewProvider, Purpose, WireLimits};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::{ManualClock, TestDb};
use url::Url;

pub const KEY: &str = "sk-test-0123456789";

pub struct Room {
    pub db: TestDb,
    pub models: Models,
    pub org: OrgId,
    pub actor: Actor,
    pub clock: Arc<ManualClock>,
    pub policies: Policies,
    pub files: ConfigStore,
    /// Where the files of policies and providers are.
    pub folder: tempfile::TempDir,
}

impl Room {
    pub async fn new() -> Self {
        Self::with(HostPolicy::PrivateAllowed, None).await
    }

    pub async fn with(host_policy: HostPolicy, demo_base: Option<String>) -> Self {
        let db = TestDb::new().await;
        let clock = Arc::new(ManualClock::new(Utc.timestamp_opt(1_700_000_000, 0).unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let files = ConfigStore::new(folder.path(), AgeKeys::load(None, None).unwrap());
        let policies = Policies::new(db.app.clone(), clock.clone(), files.clone());
        let demo_base = demo_base.map(|base| base.parse().unwrap());
        let models = service(&db.app, clock.clone(), (policies.clone(), files.clone()), (host_policy, demo_base));
        let org = organization(&db.app, "acme").await;
        Self { db, models, org, actor: Actor::User { id: UserId::new() }, clock, policies, files, folder }
    }

    /// The service of another process.
    pub fn again(&self) -> Models {
        service(
            &self.db.app,
            self.clock.clone(),
            (self.policies.clone(), self.files.clone()),
            (HostPolicy::PrivateAllowed, None),
        )
    }

    pub async fn audit(&self) -> Vec<(String, serde_json::Value)> {
        sqlx::query_as("SELECT action, details FROM app.audit_entries WHERE org_id = $1 ORDER BY id")
            .bind(self.org)
            .fetch_all(&self.db.app)
            .await
            .unwrap()
    }
}

fn service(
    pool: &PgPool,
    clock: Arc<ManualClock>,
    (policies, files): (Policies, ConfigStore),
    (host_policy, demo_base): (HostPolicy, Option<Url>),
) -> Models {
    Models::new(ModelsConfig {
        pool: pool.clone(),
        clock,
        cipher: FieldCipher::from_hex(&"ab".repeat(32), None).unwrap(),
        host_policy,
        key_hosts: KeyHosts::default(),
        env: Arc::new(MapEnv::of([("TALE_PROVIDER_KEY_SET", " sk-from-env \n")])),
        demo_base,
        limits: WireLimits::default(),
        policies,
        files,
    })
    .unwrap()
}

pub async fn organization(pool: &PgPool, slug: &str) -> OrgId {
    let org = OrgId::new();
    sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, $2, now())")
        .bind(org)
        .bind(slug)
        .execute(pool)
        .await
        .unwrap();
    org
}

pub fn chat_model(id: &str) -> ModelSpec {
    ModelSpec::unknown(id)
}

pub fn embedding_model(id: &str, dimensions: u32) -> ModelSpec {
    ModelSpec { purposes: vec![Purpose::Embedding], dimensions: Some(dimensions), ..ModelSpec::unknown(id) }
}

pub fn new_provider(slug: &str, base: &str, models: Vec<ModelSpec>) -> NewProvider {
    NewProvider {
        slug: slug.into(),
        display_name: format!("Provider {slug}"),
        api_format: ApiFormat::OpenAi,
        wire_dialect: Default::default(),
        base_url: base.into(),
        models,
        extra_body: Default::default(),
        api_key: Some(SecretString::from(KEY)),
        secret_env: None,
    }
}
