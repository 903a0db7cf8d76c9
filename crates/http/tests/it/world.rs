//! The whole router on a fresh pair of databases and an object store of its own, in simulated time.

use std::sync::Arc;
use std::time::Duration;

use tale_blobs::embedded::{self, Running};
use tale_blobs::{Blobs, Organizations, StoreConfig};
use tale_chat::{Chat, ChatConfig, WebAccess};
use tale_core::clock::SystemClock;
use tale_core::crypto::FieldCipher;
use tale_core::ids::OrgId;
use tale_core::net::HostPolicy;
use tale_core::page::CursorSigner;
use tale_core::{Actor, Clock, ManualClock, Problem};
use tale_db::hints::HintHub;
use tale_env::{MapEnv, SiteSettings, TrustedHeaderNames};
use tale_extract::ExtractProgram;
use tale_gateway::{Gateway, GatewayParts};
use tale_governance::audit::log::AuditLog;
use tale_governance::policies::Policies;
use tale_http::outlets::Outlets;
use tale_http::rate::Limits;
use tale_http::web::WebFiles;
use tale_http::{App, AppParts};
use tale_identity::factors::RelyingParty;
use tale_identity::password::HashCost;
use tale_identity::{Identity, IdentityConfig};
use tale_knowledge::corpora::{Corpora, OwnDatabases};
use tale_knowledge::embedder::{Answer, EmbedFailure, Embedder, EmbeddingModel, Purpose};
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_knowledge::{Knowledge, KnowledgeParts};
use tale_models::{KeyHosts, Models, ModelsConfig};
use tale_orgfiles::{AgeKeys, ConfigStore, FileWatch};
use tale_testkit::TestDb;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::client::Client;

/// The site of [`World::new`].
pub const SITE: &str = "http://localhost:3000";

/// What opens the public metrics.
pub const METRICS_TOKEN: &str = "scrape-me-0123456789";

/// Everything behind the doors.
pub struct World {
    pub router: axum::Router,
    pub app: App,
    pub clock: Arc<ManualClock>,
    pub knowledge: Knowledge,
    /// Cancelled: the process drains.
    pub stopping: CancellationToken,
    _db: TestDb,
    /// The object store, until a test takes it away.
    pub store: Option<Running>,
    pub folder: tempfile::TempDir,
}

/// A site at the root of one origin.
pub fn site_at(url: &str) -> SiteSettings {
    SiteSettings {
        url: url.parse().unwrap(),
        additional: Vec::new(),
        base_path: String::new(),
        support_url: "https://tale.dev/contact".parse().unwrap(),
    }
}

/// No embedding model is chosen.
struct NoEmbedding;

impl Embedder for NoEmbedding {
    fn model(&self, _org: OrgId) -> Answer<'_, Result<Option<EmbeddingModel>, Problem>> {
        Box::pin(async { Ok(None) })
    }

    fn embed<'a>(
        &'a self,
        _org: OrgId,
        _payer: &'a Actor,
        texts: &'a [String],
        _purpose: Purpose,
    ) -> Answer<'a, Result<Vec<Vec<f32>>, EmbedFailure>> {
        Box::pin(async move { panic!("{} texts were to be embedded without a model", texts.len()) })
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with(IdentityConfig::default(), SITE).await
    }

    pub async fn with(config: IdentityConfig, site: &str) -> Self {
        Self::at(config, site_at(site), None).await
    }

    /// On a site of one's own; browsers reach the object store at `store_address`.
    pub async fn at(config: IdentityConfig, site: SiteSettings, store_address: Option<Url>) -> Self {
        let db = TestDb::new().await;
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let folder = tempfile::tempdir().unwrap();
        let store =
            Running::start(embedded::service(&folder.path().join("objects"), "tale", &"secret".into()).unwrap())
                .await
                .unwrap();
        let blobs = Blobs::new(
            StoreConfig {
                endpoint: store.endpoint.clone(),
                public_endpoint: store_address,
                site_origins: site.origins().cloned().collect(),
                region: "us-east-1".into(),
                bucket: "tale-blobs".into(),
                prefix: String::new(),
                path_style: true,
                access_key: "tale".into(),
                secret_key: "secret".into(),
            },
            Arc::new(SystemClock),
        )
        .unwrap();
        blobs.ensure_bucket().await.unwrap();
        let files = ConfigStore::new(&folder.path().join("config"), AgeKeys::load(None, None).unwrap());
        let policies = Policies::new(db.app.clone(), clock.clone(), files.clone());
        let organizations =
            Organizations::new(files.clone(), HostPolicy::PrivateAllowed, Arc::new(SystemClock)).unwrap();
        let blobs = blobs.with_organizations(organizations);
        let cost = HashCost { memory_kib: 64, passes: 1, lanes: 1, concurrent: 4, waiting: 64 };
        let relying_party = RelyingParty::of(&site.url, &site.additional);
        let provider_hosts = HostPolicy::PrivateAllowed;
        let config = IdentityConfig { hash_cost: cost, relying_party, provider_hosts, ..config };
        let identity = Identity::new(db.app.clone(), clock.clone(), config).unwrap();
        let models = Models::new(ModelsConfig {
            pool: db.app.clone(),
            clock: clock.clone(),
            cipher: FieldCipher::from_hex(&"a1".repeat(32), None).unwrap(),
            host_policy: HostPolicy::PrivateAllowed,
            key_hosts: KeyHosts::default(),
            env: Arc::new(MapEnv::of([
                ("TALE_PROVIDER_KEY_SET", "sk-from-env"),
                ("TALE_TOKEN_SOURCE_SET", "broker-secret"),
            ])),
            demo_base: None,
            limits: Default::default(),
            policies: policies.clone(),
            files: files.clone(),
        })
        .unwrap();
        // The child that opens files is the program itself; no test of the doors opens one.
        let extract = ExtractProgram::this_binary().unwrap();
        let own = OwnDatabases {
            app: db.app.clone(),
            files: files.clone(),
            policy: HostPolicy::PrivateAllowed,
            ca_file: None,
            pool_max: 10,
        };
        let corpora = Corpora::new(db.knowledge.clone(), own);
        let knowledge = Knowledge::new(KnowledgeParts {
            app: db.app.clone(),
            corpora: corpora.clone(),
            blobs: blobs.clone(),
            embedder: Arc::new(NoEmbedding),
            keyword: Keyword::new(KeywordParts {
                app: db.app.clone(),
                corpora,
                data_dir: folder.path().to_owned(),
                clock: clock.clone(),
                repair: RepairPolicy::default(),
            }),
            clock: clock.clone(),
            temp_dir: folder.path().to_owned(),
            extract: extract.clone(),
        });
        knowledge.govern_with(policies.clone());
        let cursors = CursorSigner::new(b"secret");
        let chat = Chat::new(ChatConfig {
            db: db.app.clone(),
            models: models.clone(),
            knowledge: knowledge.clone(),
            clock: clock.clone(),
            cursors: cursors.clone(),
            identity: identity.clone(),
            extract,
            web: WebAccess::default(),
        })
        .unwrap();
        let web = folder.path().join("web");
        std::fs::create_dir(&web).unwrap();
        std::fs::write(web.join("index.html"), "<!doctype html><title>Tale</title><script>start()</script>").unwrap();
        let stopping = CancellationToken::new();
        let app = App::new(AppParts {
            site,
            trusted_headers: TrustedHeaderNames::default(),
            clock: clock.clone(),
            identity,
            gateway: Gateway::new(GatewayParts {
                models: models.clone(),
                policies: policies.clone(),
                clock: clock.clone(),
                limits: tale_gateway::Limits::default(),
                log: None,
            }),
            models,
            knowledge: knowledge.clone(),
            chat,
            workshop: None,
            policies,
            audit: AuditLog::new(db.app.clone(), clock.clone()),
            blobs,
            file_watch: Some(FileWatch::new(files).every(Duration::from_millis(5))),
            hints: HintHub::new(),
            cursors,
            limits: Limits::new(clock.clone()),
            web: WebFiles::Directory(web),
            demo: None,
            role: "all",
            metrics_token: Some(METRICS_TOKEN.into()),
            outlets: Outlets::default(),
            database: db.app.clone(),
            corpus: db.knowledge.clone(),
            stopping: stopping.clone(),
        });
        tokio::spawn(app.clone().deliver_hints(stopping.clone()));
        Self {
            router: tale_http::router(app.clone()),
            app,
            clock,
            knowledge,
            stopping,
            _db: db,
            store: Some(store),
            folder,
        }
    }

    /// A signed-out browser on a page of the site, on this machine.
    pub fn browser(&self) -> Client {
        Client::browser(self.router.clone())
    }

    /// A program with an API key.
    pub fn key(&self, key: &str) -> Client {
        Client::key(self.router.clone(), key)
    }
}
