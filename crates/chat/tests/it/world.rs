//! A chat room with a person, a scripted model and real stores.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use secrecy::SecretString;
use tale_blobs::embedded::{self, Running};
use tale_blobs::{Blobs, StoreConfig};
use tale_chat::{
    Accepted, Chat, ChatConfig, Message, ModelChoice, Owner, Part, SendRequest, SendTo, TurnEvent, WebAccess,
};
use tale_core::clock::SystemClock;
use tale_core::crypto::FieldCipher;
use tale_core::ids::{DocumentId, FileId, OrgId, SessionId, ThreadId, UserId};
use tale_core::net::HostPolicy;
use tale_core::page::CursorSigner;
use tale_core::{Actor, Code, Problem};
use tale_extract::ExtractProgram;
use tale_governance::policies::Policies;
use tale_identity::{Caller, Identity, IdentityConfig, Role, Via};
use tale_knowledge::corpora::Corpora;
use tale_knowledge::documents::NewContent;
use tale_knowledge::embedder::{Answer, EmbedFailure, Embedder, EmbeddingModel, Purpose as EmbedPurpose};
use tale_knowledge::files::{NewUpload, Purpose};
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_knowledge::{Knowledge, KnowledgeParts};
use tale_models::{ApiFormat, Capabilities, KeyHosts, ModelSpec, Models, ModelsConfig, NewProvider, WireLimits};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::TestDb;
use tale_testkit::upstream::FakeUpstream;

/// No embedding model: search goes by words.
struct NoEmbedder;

impl Embedder for NoEmbedder {
    fn model(&self, _org: OrgId) -> Answer<'_, Result<Option<EmbeddingModel>, Problem>> {
        Box::pin(async { Ok(None) })
    }

    fn embed<'a>(
        &'a self,
        _org: OrgId,
        _payer: &'a Actor,
        _texts: &'a [String],
        _purpose: EmbedPurpose,
    ) -> Answer<'a, Result<Vec<Vec<f32>>, EmbedFailure>> {
        Box::pin(async { Err(EmbedFailure::NotConfigured) })
    }
}

pub struct World {
    pub db: TestDb,
    pub chat: Chat,
    pub models: Models,
    pub policies: Policies,
    pub knowledge: Knowledge,
    pub keyword: Keyword,
    pub identity: Identity,
    pub upstream: FakeUpstream,
    pub owner: Owner,
    _store: Running,
    _folder: tempfile::TempDir,
}

pub const MODEL: &str = "test-model";

pub async fn world() -> World {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let store = Running::start(embedded::service(&folder.path().join("objects"), "tale", &"secret".into()).unwrap())
        .await
        .unwrap();
    let clock = Arc::new(SystemClock);
    let blobs = Blobs::new(
        StoreConfig {
            endpoint: store.endpoint.clone(),
            public_endpoint: None,
            site_origins: vec![],
            region: "us-east-1".into(),
            bucket: "tale-blobs".into(),
            prefix: String::new(),
            path_style: true,
            access_key: "tale".into(),
            secret_key: "secret".into(),
        },
        clock.clone(),
    )
    .unwrap();
    blobs.ensure_bucket().await.unwrap();
    let files = ConfigStore::new(&folder.path().join("config"), AgeKeys::load(None, None).unwrap());
    let policies = Policies::new(db.app.clone(), clock.clone(), files.clone());
    let models = Models::new(ModelsConfig {
        pool: db.app.clone(),
        clock: clock.clone(),
        cipher: FieldCipher::from_hex(&"ab".repeat(32), None).unwrap(),
        host_policy: HostPolicy::PrivateAllowed,
        key_hosts: KeyHosts::default(),
        env: Arc::new(tale_env::MapEnv::default()),
        demo_base: None,
        limits: WireLimits::default(),
        policies: policies.clone(),
        files,
    })
    .unwrap();
    let keyword = Keyword::new(KeywordParts {
        app: db.app.clone(),
        corpora: Corpora::deployment_only(db.knowledge.clone()),
        data_dir: folder.path().to_owned(),
        clock: clock.clone(),
        repair: RepairPolicy::default(),
    });
    let knowledge = Knowledge::new(KnowledgeParts {
        app: db.app.clone(),
        corpora: Corpora::deployment_only(db.knowledge.clone()),
        blobs,
        embedder: Arc::new(NoEmbedder),
        keyword: keyword.clone(),
        clock: clock.clone(),
        temp_dir: folder.path().to_owned(),
        extract: extract_file(),
    });
    let identity = Identity::new(db.app.clone(), clock.clone(), IdentityConfig::default()).unwrap();
    let upstream = FakeUpstream::start().await;
    let owner = person(&db, "acme").await;
    let chat = chat_of(&db, &models, &knowledge, &identity);
    let world = World {
        db,
        chat,
        models,
        policies,
        knowledge,
        keyword,
        identity,
        upstream,
        owner,
        _store: store,
        _folder: folder,
    };
    world.provider("fake", true).await;
    world
}

/// The program that the package's tests are built with, beside this one.
fn extract_file() -> ExtractProgram {
    let here = std::env::current_exe().unwrap();
    ExtractProgram::dedicated(here.parent().unwrap().with_file_name("examples").join("extract-file"))
}

fn chat_of(db: &TestDb, models: &Models, knowledge: &Knowledge, identity: &Identity) -> Chat {
    Chat::new(ChatConfig {
        db: db.app.clone(),
        models: models.clone(),
        knowledge: knowledge.clone(),
        clock: Arc::new(SystemClock),
        cursors: CursorSigner::new(b"test"),
        identity: identity.clone(),
        extract: extract_file(),
        web: WebAccess { hosts: HostPolicy::PrivateAllowed, timeout: Duration::from_secs(5) },
    })
    .unwrap()
}

/// A person in an organization of their own.
pub async fn person(db: &TestDb, slug: &str) -> Owner {
    let (org, user) = (OrgId::new(), UserId::new());
    sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, $2, now())")
        .bind(org)
        .bind(slug)
        .execute(&db.app)
        .await
        .unwrap();
    sqlx::query("INSERT INTO app.users (id, email, name, created_at) VALUES ($1, $2, 'Ada', now())")
        .bind(user)
        .bind(format!("{user}@example.com"))
        .execute(&db.app)
        .await
        .unwrap();
    sqlx::query("INSERT INTO app.memberships (org_id, user_id, role, created_at) VALUES ($1, $2, 'owner', now())")
        .bind(org)
        .bind(user)
        .execute(&db.app)
        .await
        .unwrap();
    let caller = Caller {
        org,
        org_slug: slug.to_owned(),
        user: Some(user),
        role: Role::Owner,
        competences: Default::default(),
        via: Via::Session(SessionId::new()),
    };
    Owner::of(&caller).unwrap()
}

impl World {
    pub async fn provider(&self, slug: &str, vision: bool) {
        let mut spec = ModelSpec::unknown(MODEL);
        spec.capabilities = Capabilities { tools: true, vision, reasoning: false };
        let new = NewProvider {
            slug: slug.into(),
            display_name: slug.into(),
            api_format: ApiFormat::OpenAi,
            wire_dialect: Default::default(),
            base_url: self.upstream.openai_base(),
            models: vec![spec],
            api_key: Some(SecretString::from("sk-test-0123456789")),
            secret_env: None,
            extra_body: Default::default(),
        };
        self.models.create_provider(self.owner.org, &Actor::System, new).await.unwrap();
    }

    /// Another process on the same database.
    pub fn other_process(&self) -> Chat {
        chat_of(&self.db, &self.models, &self.knowledge, &self.identity)
    }

    pub async fn send(&self, to: SendTo, content: &str) -> Result<Accepted, Problem> {
        self.chat.send(&self.owner, to, request(content)).await
    }

    /// A chat with a title, so that no title is asked for.
    pub async fn titled(&self) -> ThreadId {
        self.chat.create_thread(&self.owner, Some("Test")).await.unwrap().id
    }

    /// Sends and waits for the end.
    pub async fn ask(&self, thread: ThreadId, content: &str) -> Message {
        let accepted = self.send(SendTo::Thread(thread), content).await.unwrap();
        self.settled(&accepted).await
    }

    /// The reply once its turn is over.
    pub async fn settled(&self, accepted: &Accepted) -> Message {
        within(async {
            let mut turn = Box::pin(self.chat.follow(self.owner.org, accepted.thread_id));
            while turn.next().await.is_some() {}
        })
        .await;
        self.chat.message(&self.owner, accepted.thread_id, accepted.message_id).await.unwrap()
    }

    /// Waits until the running turn has streamed `text`.
    pub async fn streamed(&self, thread: ThreadId, wanted: &str) {
        within(async {
            let mut turn = Box::pin(self.chat.follow(self.owner.org, thread));
            let mut text = String::new();
            while let Some(event) = turn.next().await {
                match event {
                    TurnEvent::Snapshot { parts, .. } => text = text_of(&parts),
                    TurnEvent::Delta { text: more, .. } => text.push_str(&more),
                    _ => {}
                }
                if text.contains(wanted) {
                    return;
                }
            }
            panic!("the turn ended with {text:?}");
        })
        .await;
    }

    /// A document that search finds.
    pub async fn document(&self, name: &str, content: &str) -> DocumentId {
        let file = self.upload(name, content.as_bytes(), Purpose::Document).await;
        let document =
            self.knowledge.create_document(&self.owner.caller, NewContent::File(file), None).await.unwrap().0;
        self.knowledge.index_file(self.owner.org, file, || async { Ok(()) }).await.unwrap();
        self.keyword.catch_up(self.owner.org).await.unwrap();
        document.id
    }

    pub async fn upload(&self, name: &str, content: &[u8], purpose: Purpose) -> FileId {
        let upload = NewUpload {
            file_name: name.to_owned(),
            content_type: String::new(),
            size: Some(content.len() as i64),
            purpose,
            origin: None,
        };
        let slot = self.knowledge.create_upload(&self.owner.caller, upload).await.unwrap();
        let mut request =
            reqwest::Client::builder().no_proxy().build().unwrap().put(slot.request.url).body(content.to_vec());
        for (name, value) in slot.request.headers {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().status(), 200);
        slot.file_id
    }
}

pub fn request(content: &str) -> SendRequest {
    SendRequest {
        content: content.to_owned(),
        model: ModelChoice::Named { model: MODEL.to_owned(), provider: Some("fake".to_owned()) },
        effort: None,
        max_output_tokens: None,
        attachments: Vec::new(),
        locale: None,
    }
}

pub fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Runs a wait that must come to an end.
pub async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("this should have happened by now")
}

pub fn code<T: std::fmt::Debug>(result: Result<T, Problem>) -> Code {
    result.unwrap_err().code
}
