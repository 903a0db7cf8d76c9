//! A knowledge room on real databases and a real object store, with a made-up embedding model.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tale_blobs::embedded::{self, Running};
use tale_blobs::{Blobs, Organizations, StoreConfig};
use tale_core::clock::{Clock, SystemClock};
use tale_core::ids::{DocumentId, FileId, OrgId, SessionId, UserId};
use tale_core::net::HostPolicy;
use tale_core::{Actor, ManualClock, Problem};
use tale_extract::ExtractProgram;
use tale_identity::{Caller, Role, Via};
use tale_knowledge::corpora::{Corpora, OwnDatabases};
use tale_knowledge::documents::{Document, NewContent};
use tale_knowledge::embedder::{Answer, EmbedFailure, Embedder, EmbeddingModel, Purpose as EmbedPurpose};
use tale_knowledge::files::{NewUpload, Purpose};
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_knowledge::{Knowledge, KnowledgeParts};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::TestDb;

/// An embedding model whose vectors count letters, and which fails on demand.
#[derive(Default)]
pub struct FakeEmbedder {
    pub models: Mutex<HashMap<OrgId, EmbeddingModel>>,
    /// Failures to answer with before vectors are made, first one first.
    pub failures: Mutex<Vec<EmbedFailure>>,
    /// Texts that were embedded.
    pub embedded: AtomicUsize,
    /// Width that is really answered, when it differs.
    pub width: Mutex<Option<usize>>,
}

impl FakeEmbedder {
    pub fn choose(&self, org: OrgId, model: &str, dimensions: u32) -> EmbeddingModel {
        let model = EmbeddingModel { provider_slug: "fake".into(), model: model.into(), dimensions };
        self.models.lock().unwrap().insert(org, model.clone());
        model
    }
}

impl Embedder for FakeEmbedder {
    fn model(&self, org: OrgId) -> Answer<'_, Result<Option<EmbeddingModel>, Problem>> {
        let model = self.models.lock().unwrap().get(&org).cloned();
        Box::pin(async move { Ok(model) })
    }

    fn embed<'a>(
        &'a self,
        org: OrgId,
        _payer: &'a Actor,
        texts: &'a [String],
        _purpose: EmbedPurpose,
    ) -> Answer<'a, Result<Vec<Vec<f32>>, EmbedFailure>> {
        Box::pin(async move {
            let failure = {
                let mut failures = self.failures.lock().unwrap();
                (!failures.is_empty()).then(|| failures.remove(0))
            };
            if let Some(failure) = failure {
                return Err(failure);
            }
            let dimensions = self.models.lock().unwrap().get(&org).map_or(0, |model| model.dimensions as usize);
            let width = self.width.lock().unwrap().unwrap_or(dimensions);
            self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
            Ok(texts
                .iter()
                .map(|text| {
                    (0..width)
                        .map(|n| 1.0 + text.bytes().filter(|b| usize::from(*b) % width == n).count() as f32)
                        .collect()
                })
                .collect())
        })
    }
}

pub struct World {
    pub db: TestDb,
    pub store: Running,
    pub knowledge: Knowledge,
    pub embedder: Arc<FakeEmbedder>,
    pub clock: Arc<ManualClock>,
    pub blobs: Blobs,
    pub keyword: Keyword,
    pub http: reqwest::Client,
    pub folder: tempfile::TempDir,
}

pub async fn world() -> World {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().unwrap();
    let store = Running::start(embedded::service(&folder.path().join("objects"), "tale", &"secret".into()).unwrap())
        .await
        .unwrap();
    let config = StoreConfig {
        endpoint: store.endpoint.clone(),
        public_endpoint: None,
        site_origins: vec![],
        region: "us-east-1".into(),
        bucket: "tale-blobs".into(),
        prefix: String::new(),
        path_style: true,
        access_key: "tale".into(),
        secret_key: "secret".into(),
    };
    let blobs = Blobs::new(config, Arc::new(SystemClock)).unwrap();
    blobs.ensure_bucket().await.unwrap();
    let files = ConfigStore::new(&folder.path().join("config"), AgeKeys::load(None, None).unwrap());
    let organizations = Organizations::new(files.clone(), HostPolicy::PrivateAllowed, Arc::new(SystemClock)).unwrap();
    let blobs = blobs.with_organizations(organizations);
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let embedder = Arc::new(FakeEmbedder::default());
    let corpora = corpora(&db, files, HostPolicy::PrivateAllowed);
    let keyword = Keyword::new(KeywordParts {
        app: db.app.clone(),
        corpora: corpora.clone(),
        data_dir: folder.path().to_owned(),
        clock: clock.clone(),
        repair: RepairPolicy::default(),
    });
    let knowledge = Knowledge::new(KnowledgeParts {
        app: db.app.clone(),
        corpora,
        blobs: blobs.clone(),
        embedder: embedder.clone(),
        keyword: keyword.clone(),
        clock: clock.clone(),
        temp_dir: folder.path().to_owned(),
        extract: ExtractProgram::this_binary().unwrap(),
    });
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    World { db, store, knowledge, embedder, clock, blobs, keyword, http, folder }
}

/// The corpora of a process.
pub fn corpora(db: &TestDb, files: ConfigStore, policy: HostPolicy) -> Corpora {
    let own = OwnDatabases { app: db.app.clone(), files, policy, ca_file: None, pool_max: 10 };
    Corpora::new(db.knowledge.clone(), own)
}

impl World {
    /// A person in a fresh organization.
    pub async fn person(&self, slug: &str, role: Role) -> Caller {
        let org = OrgId::new();
        sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, $2, now())")
            .bind(org)
            .bind(slug)
            .execute(&self.db.app)
            .await
            .unwrap();
        self.colleague(org, slug, role).await
    }

    /// Another person in an organization.
    pub async fn colleague(&self, org: OrgId, slug: &str, role: Role) -> Caller {
        let user = UserId::new();
        sqlx::query("INSERT INTO app.users (id, email, name, created_at) VALUES ($1, $2, 'Ada', now())")
            .bind(user)
            .bind(format!("{user}@example.com"))
            .execute(&self.db.app)
            .await
            .unwrap();
        let via = Via::Session(SessionId::new());
        Caller { org, org_slug: slug.to_owned(), user: Some(user), role, competences: Default::default(), via }
    }

    /// Opens a slot and puts the bytes, as a browser does.
    pub async fn upload(&self, caller: &Caller, name: &str, content: impl Into<Bytes>, purpose: Purpose) -> FileId {
        let content: Bytes = content.into();
        let upload = NewUpload {
            file_name: name.to_owned(),
            content_type: String::new(),
            size: Some(content.len() as i64),
            purpose,
            origin: None,
        };
        let slot = self.knowledge.create_upload(caller, upload).await.unwrap();
        // Said in full, as browsers do for an empty body too.
        let mut request = self.http.put(slot.request.url).header("content-length", content.len()).body(content);
        for (name, value) in slot.request.headers {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().status(), 200);
        slot.file_id
    }

    /// Uploads and binds a document.
    pub async fn document(&self, caller: &Caller, name: &str, content: impl Into<Bytes>) -> Document {
        let file = self.upload(caller, name, content, Purpose::Document).await;
        self.knowledge.create_document(caller, NewContent::File(file), None).await.unwrap().0
    }

    /// Runs the indexing job of a file to its end.
    pub async fn index(&self, org: OrgId, file: FileId) {
        self.knowledge.index_file(org, file, || async { Ok(()) }).await.unwrap();
    }

    /// Runs the embedding job of a file to its end.
    pub async fn embed(&self, org: OrgId, file: FileId) {
        self.knowledge.embed_file(org, file, || async { Ok(()) }).await.unwrap();
    }

    /// Tells the room that a model was saved; how many files are queued for it.
    pub async fn saved(&self, org: OrgId, model: &EmbeddingModel) -> usize {
        let mut tx = self.db.app.begin().await.unwrap();
        let queued = self.knowledge.embedding_saved(&mut tx, org, model).await.unwrap();
        tx.commit().await.unwrap();
        queued
    }

    pub async fn read(&self, caller: &Caller, id: DocumentId) -> Document {
        self.knowledge.document(caller, id).await.unwrap()
    }

    /// Ids and bodies of a file's passages, in order.
    pub async fn passages(&self, file: FileId) -> Vec<(uuid::Uuid, String)> {
        sqlx::query_as("SELECT id, body FROM private_knowledge.chunks WHERE file_id = $1 ORDER BY ordinal")
            .bind(file)
            .fetch_all(&self.db.knowledge)
            .await
            .unwrap()
    }

    /// Jobs of a kind that are queued.
    pub async fn queued(&self, kind: &str) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM app.jobs WHERE kind = $1 AND state IN ('ready', 'waiting')")
            .bind(kind)
            .fetch_one(&self.db.app)
            .await
            .unwrap()
    }

    /// Passages with `word` that the keyword leg finds for it, as it stands after every commit so far.
    pub async fn found(&self, caller: &Caller, word: &str) -> usize {
        self.keyword.catch_up(caller.org).await.unwrap();
        let reach = tale_knowledge::reach::Reach::library(caller.org, caller.user);
        let request = tale_knowledge::search::SearchRequest::new(word);
        self.knowledge
            .searcher()
            .search(&reach, &request, None)
            .await
            .unwrap()
            .hits
            .iter()
            .filter(|hit| format!("{} {}", hit.header, hit.passage).to_lowercase().contains(word))
            .count()
    }

    pub fn later(&self, time: Duration) {
        self.clock.advance(time);
    }
}

/// Text of about `paragraphs` passages.
pub fn long_text(paragraphs: usize) -> String {
    (0..paragraphs)
        .map(|n| {
            let words: Vec<String> = (0..250).map(|w| format!("word{}", (n * 7 + w * 13) % 997)).collect();
            format!("# Section {n}\n\n{} marker{n}.\n\n", words.join(" "))
        })
        .collect()
}
