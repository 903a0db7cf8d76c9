//! An organization's corpus written straight to the tables, as indexing leaves it.

use std::sync::Arc;

use pgvector::Vector;
use sqlx::PgConnection;
use tale_core::clock::SystemClock;
use tale_core::ids::{DocumentId, FileId, OrgId, ThreadId};
use tale_knowledge::corpora::Corpora;
use tale_knowledge::keyword::{Change, Keyword, KeywordParts, RepairPolicy, log_changes};
use tale_knowledge::reach::Reach;
use tale_knowledge::search::{SearchRequest, SearchResponse, Searcher};
use tale_testkit::TestDb;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const MODEL: &str = "test/vectors/4";

pub(crate) struct World {
    pub(crate) db: TestDb,
    pub(crate) folder: TempDir,
    pub(crate) searcher: Searcher,
}

/// A stored file: its id and the document that holds it, if one does.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) file: FileId,
    pub(crate) document: Option<DocumentId>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let db = TestDb::new().await;
        let folder = tempfile::tempdir().unwrap();
        let keyword = keyword(&db, &folder, RepairPolicy::default());
        let searcher = Searcher::new(db.app.clone(), Corpora::deployment_only(db.knowledge.clone()), keyword);
        Self { db, folder, searcher }
    }

    /// A second process on the same databases with a folder of its own.
    pub(crate) fn replica(&self, folder: &TempDir) -> Searcher {
        self.replica_with(folder, RepairPolicy::default())
    }

    /// As [`World::replica`], with another policy of repair.
    pub(crate) fn replica_with(&self, folder: &TempDir, repair: RepairPolicy) -> Searcher {
        let keyword = keyword(&self.db, folder, repair);
        Searcher::new(self.db.app.clone(), Corpora::deployment_only(self.db.knowledge.clone()), keyword)
    }

    pub(crate) async fn org(&self) -> OrgId {
        let org = OrgId::new();
        sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, 'Test', now())")
            .bind(org)
            .bind(format!("o-{}", org.0.simple()))
            .execute(&self.db.app)
            .await
            .unwrap();
        org
    }

    /// A searchable library document with `passages`.
    pub(crate) async fn document(&self, org: OrgId, title: &str, passages: &[&str]) -> Stored {
        let stored = Stored { file: self.file(org, title, "document", None).await, document: Some(DocumentId::new()) };
        sqlx::query(
            "INSERT INTO app.documents (id, org_id, title, file_id, mime_type, source_provider, created_at, updated_at)
             VALUES ($1, $2, $3, $4, 'text/plain', 'upload', now(), now())",
        )
        .bind(stored.document)
        .bind(org)
        .bind(title)
        .bind(stored.file)
        .execute(&self.db.app)
        .await
        .unwrap();
        self.store(org, stored.file, title, true, passages).await;
        stored
    }

    /// An upload of a chat with `passages`.
    pub(crate) async fn upload(&self, org: OrgId, thread: ThreadId, name: &str, passages: &[&str]) -> Stored {
        let file = self.file(org, name, "chat", Some(thread)).await;
        self.store(org, file, name, false, passages).await;
        Stored { file, document: None }
    }

    async fn file(&self, org: OrgId, name: &str, purpose: &str, thread: Option<ThreadId>) -> FileId {
        let file = FileId::new();
        sqlx::query(
            "INSERT INTO app.files (id, org_id, storage_key, file_name, content_type, size, purpose, thread_id, state,
                                    upload_deadline, index_status, searchable, status_changed_at, created_at)
             VALUES ($1, $2, $3, $4, 'text/plain', 1, $5, $6, 'stored', now(), 'completed', true, now(), now())",
        )
        .bind(file)
        .bind(org)
        .bind(file.to_string())
        .bind(name)
        .bind(purpose)
        .bind(thread)
        .execute(&self.db.app)
        .await
        .unwrap();
        file
    }

    async fn store(&self, org: OrgId, file: FileId, title: &str, library: bool, passages: &[&str]) {
        let mut transaction = self.db.knowledge.begin().await.unwrap();
        put(&mut transaction, org, file, title, library, 0, passages).await;
        transaction.commit().await.unwrap();
    }

    /// The library and what `chats` hold.
    pub(crate) async fn chats(&self, org: OrgId, chats: &[ThreadId]) -> Reach {
        Reach::chat(org, None, self.searcher.uploads_of(org, chats).await.unwrap())
    }

    /// Removes a file from the corpus as deletion does.
    pub(crate) async fn remove(&self, org: OrgId, file: FileId) {
        let mut transaction = self.db.knowledge.begin().await.unwrap();
        for sql in [
            "DELETE FROM private_knowledge.documents WHERE org_id = $1 AND file_id = $2",
            "DELETE FROM private_knowledge.chunks WHERE org_id = $1 AND file_id = $2",
        ] {
            sqlx::query(sql).bind(org).bind(file).execute(&mut *transaction).await.unwrap();
        }
        log_changes(&mut transaction, org, &[Change::File(file)]).await.unwrap();
        transaction.commit().await.unwrap();
    }

    /// Gives the passage `ordinal` of `file` a vector.
    pub(crate) async fn embed(&self, org: OrgId, file: FileId, ordinal: i32, vector: [f32; 4]) {
        sqlx::query(
            "UPDATE private_knowledge.chunks SET embedding = $4, embedding_model = $5
              WHERE org_id = $1 AND file_id = $2 AND ordinal = $3",
        )
        .bind(org)
        .bind(file)
        .bind(ordinal)
        .bind(Vector::from(vector.to_vec()))
        .bind(MODEL)
        .execute(&self.db.knowledge)
        .await
        .unwrap();
    }

    /// Searches the library by words, after the index has caught up.
    pub(crate) async fn find(&self, org: OrgId, query: &str) -> SearchResponse {
        self.searcher.keyword().catch_up(org).await.unwrap();
        self.searcher.search(&Reach::library(org, None), &SearchRequest::new(query), None).await.unwrap()
    }

    /// The passages that [`World::find`] finds.
    pub(crate) async fn passages(&self, org: OrgId, query: &str) -> Vec<String> {
        self.find(org, query).await.hits.into_iter().map(|hit| hit.passage).collect()
    }
}

fn keyword(db: &TestDb, folder: &TempDir, repair: RepairPolicy) -> Keyword {
    Keyword::new(KeywordParts {
        app: db.app.clone(),
        corpora: Corpora::deployment_only(db.knowledge.clone()),
        data_dir: folder.path().to_owned(),
        clock: Arc::new(SystemClock),
        repair,
    })
}

/// Writes passages of a file from ordinal `first` and logs them, in the caller's transaction.
pub(crate) async fn put(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    title: &str,
    library: bool,
    first: i32,
    passages: &[&str],
) {
    sqlx::query(
        "INSERT INTO private_knowledge.documents (org_id, file_id, title, library, status, chunker_version)
         VALUES ($1, $2, $3, $4, 'completed', 1) ON CONFLICT DO NOTHING",
    )
    .bind(org)
    .bind(file)
    .bind(title)
    .bind(library)
    .execute(&mut *conn)
    .await
    .unwrap();
    let mut ordinal = first;
    for passage in passages {
        sqlx::query(
            "INSERT INTO private_knowledge.chunks
                    (id, org_id, file_id, ordinal, library, header, body, body_start, body_end, core_start, core_end, chunker_version)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $8, $9, 1)
             ON CONFLICT (org_id, file_id, ordinal) DO UPDATE SET id = excluded.id, body = excluded.body",
        )
        .bind(Uuid::now_v7())
        .bind(org)
        .bind(file)
        .bind(ordinal)
        .bind(library)
        .bind(title)
        .bind(passage)
        .bind(i64::from(ordinal) * 1_000)
        .bind(i64::from(ordinal) * 1_000 + 1_000)
        .execute(&mut *conn)
        .await
        .unwrap();
        ordinal += 1;
    }
    log_changes(conn, org, &[Change::Passages { file, first, last: ordinal - 1 }]).await.unwrap();
}
