//! A knowledge database of an organization's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use sqlx::PgPool;
use tale_core::clock::SystemClock;
use tale_core::ids::FileId;
use tale_core::net::HostPolicy;
use tale_core::{Code, Problem};
use tale_identity::{Caller, Role};
use tale_jobs::JobError;
use tale_knowledge::Reach;
use tale_knowledge::corpora::{Connection, FOREIGN_POOL_MAX, SslMode};
use tale_knowledge::indexing::ReadError;
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_knowledge::residency::DatabaseForm;
use tale_knowledge::search::{SearchRequest, Searcher};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::ForeignDb;
use tokio::net::{TcpListener, TcpStream};

use crate::world::{World, corpora, world};

/// Two organizations; `acme` is about to have a database of its own.
struct Place {
    world: World,
    acme: Caller,
    other: Caller,
    db: ForeignDb,
}

async fn place() -> Place {
    let world = world().await;
    let acme = world.person("acme", Role::Owner).await;
    let other = world.person("other", Role::Owner).await;
    Place { world, acme, other, db: ForeignDb::new().await }
}

fn form(db: &ForeignDb) -> DatabaseForm {
    DatabaseForm {
        host: db.host.clone(),
        port: db.port,
        database: db.database.clone(),
        user: db.user.clone(),
        password: Some(db.password.clone().into()),
        sslmode: SslMode::Disable,
    }
}

impl Place {
    fn path(&self, file: &str) -> std::path::PathBuf {
        self.world.folder.path().join("config/acme/knowledge").join(file)
    }

    /// Writes acme's files as a person with an editor does.
    fn edit(&self, connection: &Value, password: &str) {
        std::fs::create_dir_all(self.path("")).unwrap();
        std::fs::write(self.path("connection.json"), connection.to_string()).unwrap();
        std::fs::write(self.path("connection.secrets.json"), json!({ "password": password }).to_string()).unwrap();
    }

    fn settings(&self) -> Value {
        let db = &self.db;
        json!({ "host": db.host, "port": db.port, "database": db.database, "user": db.user, "sslmode": "disable" })
    }

    fn take_out(&self) {
        std::fs::remove_file(self.path("connection.json")).unwrap();
        std::fs::remove_file(self.path("connection.secrets.json")).unwrap();
    }

    /// Uploads a document and indexes it.
    async fn indexed(&self, caller: &Caller, name: &str, text: &str) -> FileId {
        let file = self.world.document(caller, name, text.to_owned()).await.file.unwrap();
        self.world.index(caller.org, file).await;
        file
    }

    async fn search(&self, caller: &Caller, word: &str) -> Result<Vec<String>, Problem> {
        hits(self.world.knowledge.searcher(), caller, word).await
    }

    async fn run(&self, caller: &Caller, file: FileId) -> Result<(), ReadError> {
        self.world.knowledge.index_file(caller.org, file, || async { Ok(()) }).await
    }
}

/// What a search by words finds once the index has followed.
async fn hits(searcher: &Searcher, caller: &Caller, word: &str) -> Result<Vec<String>, Problem> {
    // Building and following are the same to whoever waits for it; a failure shows in the search.
    let _ = searcher.keyword().catch_up(caller.org).await;
    let reach = Reach::library(caller.org, caller.user);
    let found = searcher.search(&reach, &SearchRequest::new(word), None).await?;
    Ok(found.hits.into_iter().map(|hit| hit.passage).collect())
}

async fn passages(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT body FROM private_knowledge.chunks ORDER BY body").fetch_all(pool).await.unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, Problem>) -> &'static str {
    result.unwrap_err().code.text()
}

#[tokio::test]
async fn passages_are_in_the_database_that_the_files_name_now_and_nowhere_else() {
    let place = place().await;
    let (world, acme, other) = (&place.world, &place.acme, &place.other);
    let early = place.indexed(acme, "early.txt", "acme's heron before").await;
    let state = world.knowledge.connect_database(acme, form(&place.db)).await.unwrap();
    assert_eq!(state.trouble, None);
    assert!(state.found.unwrap().vector.is_some());

    place.indexed(acme, "own.txt", "acme's heron of its own").await;
    place.indexed(other, "other.txt", "the other's heron").await;
    assert_eq!(passages(&place.db.rows).await, ["acme's heron of its own"]);
    assert_eq!(passages(&world.db.knowledge).await, ["acme's heron before", "the other's heron"]);
    // What the index on disk held of the database before is not found any more.
    assert_eq!(place.search(acme, "heron").await.unwrap(), ["acme's heron of its own"]);
    assert_eq!(place.search(other, "heron").await.unwrap(), ["the other's heron"]);

    // No passages are moved, but all files can be read anew.
    assert_eq!(world.knowledge.index_everything(acme).await.unwrap(), 2);
    place.run(acme, early).await.unwrap();
    assert_eq!(passages(&place.db.rows).await, ["acme's heron before", "acme's heron of its own"]);
    assert_eq!(place.search(acme, "heron").await.unwrap().len(), 2);

    // Vectors have the width of their own database.
    let model = world.embedder.choose(other.org, "wide", 16);
    world.saved(other.org, &model).await;
    let model = world.embedder.choose(acme.org, "narrow", 8);
    world.saved(acme.org, &model).await;
    world.embed(acme.org, early).await;
    assert_eq!(world.knowledge.corpus_width(acme.org).await.unwrap(), Some(8));
    let vectors: i64 = sqlx::query_scalar("SELECT count(*) FROM private_knowledge.chunks WHERE embedding IS NOT NULL")
        .fetch_one(&place.db.rows)
        .await
        .unwrap();
    assert_eq!(vectors, 1);

    // A file that was removed by hand acts at once, and the old passages are where they were.
    place.take_out();
    assert_eq!(place.search(acme, "heron").await.unwrap(), ["acme's heron before"]);
    // What is purged is purged where the passages belong.
    place.edit(&place.settings(), &place.db.password);
    world.knowledge.delete_document(acme, document_of(&place, early).await).await.unwrap();
    world.later(tale_knowledge::purge::TRASH_KEEPS + std::time::Duration::from_secs(1));
    assert_eq!(world.knowledge.sweep().await.unwrap().documents, 1);
    assert_eq!(passages(&place.db.rows).await, ["acme's heron of its own"]);
}

async fn document_of(place: &Place, file: FileId) -> tale_core::ids::DocumentId {
    sqlx::query_scalar("SELECT id FROM app.documents WHERE file_id = $1")
        .bind(file)
        .fetch_one(&place.world.db.app)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_database_that_cannot_be_used_leaves_its_organization_without_a_corpus_and_nobody_else() {
    let mut place = place().await;
    place.db = ForeignDb::without_vector().await;
    let (acme, other) = (place.acme.clone(), place.other.clone());
    place.indexed(&acme, "early.txt", "acme's heron before").await;
    let waiting = place.world.document(&acme, "late.txt", "acme's heron later").await.file.unwrap();
    place.indexed(&other, "other.txt", "the other's heron").await;
    let good = place.settings();
    let with = |field: &str, value: Value| {
        let mut changed = good.clone();
        changed[field] = value;
        changed
    };
    let closed = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let cases = [
        (good.clone(), "its own", "KNOWLEDGE_MISCONFIGURED", "vector_missing"),
        (good.clone(), "wrong", "KNOWLEDGE_MISCONFIGURED", "login_refused"),
        (with("database", json!("nowhere")), "its own", "KNOWLEDGE_MISCONFIGURED", "database_missing"),
        (with("sslmode", json!("verify-full")), "its own", "KNOWLEDGE_MISCONFIGURED", "not_encrypted"),
        (with("sslmode", json!("prefer")), "its own", "KNOWLEDGE_MISCONFIGURED", "settings"),
        (with("passwort", json!("x")), "its own", "KNOWLEDGE_MISCONFIGURED", "settings"),
        (with("host", json!("169.254.169.254")), "its own", "KNOWLEDGE_MISCONFIGURED", "settings"),
        (with("host", json!("no such host")), "its own", "KNOWLEDGE_MISCONFIGURED", "settings"),
        (with("port", json!(closed)), "its own", "KNOWLEDGE_UNAVAILABLE", "unreachable"),
        (json!("not an object"), "its own", "KNOWLEDGE_MISCONFIGURED", "settings"),
    ];
    for (settings, password, expected, reason) in cases {
        place.edit(&settings, password);
        let case = format!("{settings} {password}");
        assert_eq!(code(place.search(&acme, "heron").await), expected, "{case}");
        let state = place.world.knowledge.knowledge_database(&acme).await.unwrap();
        assert_eq!(state.trouble.unwrap().reason, reason, "{case}");
        let ended = place.run(&acme, waiting).await.unwrap_err();
        let ReadError::Away(problem) = ended else { panic!("{case}: {ended:?}") };
        assert!(matches!(JobError::from(problem), JobError::Away { .. }), "{case}");
    }
    // The password's file is missing, is encrypted to nobody here, or is no JSON.
    place.edit(&good, "its own");
    for text in [None, Some(r#"{"password":"ENC[AES256_GCM,data:x]","sops":{}}"#), Some("{")] {
        match text {
            Some(text) => std::fs::write(place.path("connection.secrets.json"), text).unwrap(),
            None => std::fs::remove_file(place.path("connection.secrets.json")).unwrap(),
        }
        assert_eq!(code(place.search(&acme, "heron").await), "KNOWLEDGE_MISCONFIGURED", "{text:?}");
    }
    assert_eq!(passages(&place.world.db.knowledge).await, ["acme's heron before", "the other's heron"]);
    assert_eq!(place.search(&other, "heron").await.unwrap(), ["the other's heron"]);
    place.indexed(&other, "more.txt", "another heron of the other").await;

    // The statement was run that the sentence names; the settings are saved once more.
    let told = code_and_sentence(place.world.knowledge.connect_database(&acme, form(&place.db)).await);
    assert!(told.1.contains("CREATE EXTENSION vector"), "{told:?}");
    place.db.create_vector().await;
    place.world.knowledge.connect_database(&acme, form(&place.db)).await.unwrap();
    place.run(&acme, waiting).await.unwrap();
    assert_eq!(place.search(&acme, "heron").await.unwrap(), ["acme's heron later"]);
}

fn code_and_sentence<T: std::fmt::Debug>(result: Result<T, Problem>) -> (Code, String) {
    let problem = result.unwrap_err();
    (problem.code, problem.message.into_owned())
}

/// A way to `db` that can be closed and opened again.
struct Way {
    port: u16,
    open: Arc<AtomicBool>,
    cut: tokio::sync::watch::Sender<()>,
}

async fn way_to(db: &ForeignDb) -> Way {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let way = Way {
        port: listener.local_addr().unwrap().port(),
        open: Arc::new(AtomicBool::new(true)),
        cut: tokio::sync::watch::Sender::new(()),
    };
    let (target, open, cut) = ((db.host.clone(), db.port), Arc::clone(&way.open), way.cut.clone());
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            if !open.load(Ordering::SeqCst) {
                continue;
            }
            let (target, mut cut) = (target.clone(), cut.subscribe());
            tokio::spawn(async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = cut.changed() => {}
                }
            });
        }
    });
    way
}

impl Way {
    fn set(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
        if !open {
            self.cut.send_replace(());
        }
    }
}

#[tokio::test]
async fn a_database_that_goes_away_in_the_middle_is_waited_for() {
    let place = place().await;
    let (acme, other) = (&place.acme, &place.other);
    let way = way_to(&place.db).await;
    let through = DatabaseForm { port: way.port, ..form(&place.db) };
    place.world.knowledge.connect_database(acme, through).await.unwrap();
    place.indexed(acme, "first.txt", "the first heron").await;
    place.indexed(other, "other.txt", "the other's heron").await;
    let long = place.world.document(acme, "long.txt", crate::world::long_text(600)).await.file.unwrap();

    // Between two slices of a long file.
    let slices = std::sync::atomic::AtomicUsize::new(0);
    let ended = place.world.knowledge.index_file(acme.org, long, || {
        if slices.fetch_add(1, Ordering::SeqCst) == 1 {
            way.set(false);
        }
        async { Ok(()) }
    });
    let ended = ended.await.unwrap_err();
    let ReadError::Away(problem) = ended else { panic!("{ended:?}") };
    assert!(matches!(JobError::from(problem), JobError::Away { .. }));
    assert_eq!(code(place.search(acme, "heron").await), "KNOWLEDGE_UNAVAILABLE");
    assert_eq!(place.search(other, "heron").await.unwrap(), ["the other's heron"]);
    place.indexed(other, "more.txt", "another heron of the other").await;

    way.set(true);
    place.run(acme, long).await.unwrap();
    assert_eq!(place.search(acme, "heron").await.unwrap(), ["the first heron"]);

    // The server ends the sessions, and another password is set there: said as soon as it shows.
    place.db.cut().await;
    let back = async || {
        // Each connection that was open fails once.
        let mut tries = 0..=FOREIGN_POOL_MAX;
        loop {
            match place.search(acme, "heron").await {
                Err(problem) if problem.code == Code::KnowledgeUnavailable && tries.next().is_some() => {}
                ended => return ended,
            }
        }
    };
    assert_eq!(back().await.unwrap(), ["the first heron"]);
    place.db.change_password("another").await;
    place.db.cut().await;
    assert_eq!(code(back().await), "KNOWLEDGE_MISCONFIGURED");
    place
        .world
        .knowledge
        .connect_database(acme, DatabaseForm { port: way.port, password: Some("another".into()), ..form(&place.db) })
        .await
        .unwrap();
    assert_eq!(place.search(acme, "heron").await.unwrap(), ["the first heron"]);
}

#[tokio::test]
async fn processes_that_meet_in_an_empty_database_make_its_tables_once_and_see_the_same() {
    let place = place().await;
    place.edit(&place.settings(), &place.db.password);
    let files = || ConfigStore::new(&place.world.folder.path().join("config"), AgeKeys::load(None, None).unwrap());
    let process = |folder: &tempfile::TempDir| {
        let corpora = corpora(&place.world.db, files(), HostPolicy::PrivateAllowed);
        let keyword = Keyword::new(KeywordParts {
            app: place.world.db.app.clone(),
            corpora: corpora.clone(),
            data_dir: folder.path().to_owned(),
            clock: Arc::new(SystemClock),
            repair: RepairPolicy::default(),
        });
        Searcher::new(place.world.db.app.clone(), corpora, keyword)
    };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, two, three] = folders.each_ref().map(process);
    let (a, b, c) = tokio::join!(
        hits(&one, &place.acme, "heron"),
        hits(&two, &place.acme, "heron"),
        hits(&three, &place.acme, "heron")
    );
    assert_eq!([a.unwrap(), b.unwrap(), c.unwrap()], [[""; 0]; 3]);
    let applied: i64 = sqlx::query_scalar("SELECT count(*) FROM private_knowledge.schema_migrations")
        .fetch_one(&place.db.rows)
        .await
        .unwrap();
    assert_eq!(applied, i64::try_from(tale_db::migrate::knowledge_migrator().iter().count()).unwrap());

    // What one process writes, the index of another finds at the next search, without being told.
    place.indexed(&place.acme, "own.txt", "a heron").await;
    let reach = Reach::library(place.acme.org, None);
    let found = two.search(&reach, &SearchRequest::new("heron"), None).await.unwrap();
    assert!(found.diagnostics.bm25);
    // It was searched a moment ago, so this one may be a second behind, like any other.
    let found = hits(&two, &place.acme, "heron").await.unwrap();
    assert_eq!(found, ["a heron"]);

    // Where private hosts are not admitted, a file that names one is refused.
    let strict = corpora(&place.world.db, files(), HostPolicy::PublicOnly);
    assert_eq!(code(strict.of(place.acme.org).await), "KNOWLEDGE_MISCONFIGURED");
    assert!(strict.of(place.other.org).await.is_ok());
}

#[tokio::test]
async fn only_who_may_names_a_database_and_every_change_is_recorded_without_the_password() {
    let place = place().await;
    let (knowledge, acme) = (&place.world.knowledge, &place.acme);
    for role in [Role::Disabled, Role::Member, Role::Editor, Role::Developer] {
        let colleague = place.world.colleague(acme.org, "acme", role).await;
        assert!(knowledge.knowledge_database(&colleague).await.is_err(), "{role}");
        assert!(knowledge.connect_database(&colleague, form(&place.db)).await.is_err(), "{role}");
        assert!(knowledge.try_database(&colleague, form(&place.db)).await.is_err(), "{role}");
        assert!(knowledge.disconnect_database(&colleague).await.is_err(), "{role}");
        assert!(knowledge.index_everything(&colleague).await.is_err(), "{role}");
    }
    let without = DatabaseForm { password: None, ..form(&place.db) };
    assert_eq!(code(knowledge.connect_database(acme, without.clone()).await), "INVALID_BODY");
    let metadata = DatabaseForm { host: "169.254.169.254".into(), ..form(&place.db) };
    assert_eq!(code(knowledge.try_database(acme, metadata).await), "PRIVATE_HOST_BLOCKED");
    let wrong = DatabaseForm { password: Some("x".into()), ..form(&place.db) };
    let refused = knowledge.connect_database(acme, wrong).await.unwrap_err();
    assert_eq!(
        (refused.code.text(), &refused.data.unwrap()["reason"]),
        ("KNOWLEDGE_CHECK_FAILED", &json!("login_refused"))
    );
    let url = url::Url::parse(&place.world.db.knowledge_url()).unwrap();
    let same = DatabaseForm {
        host: "localhost".into(),
        database: url.path().trim_start_matches('/').into(),
        user: url.username().into(),
        password: url.password().map(Into::into),
        ..form(&place.db)
    };
    assert_eq!(code(knowledge.connect_database(acme, same).await), "KNOWLEDGE_SAME_DATABASE");
    assert!(!place.path("connection.json").exists());

    knowledge.connect_database(acme, form(&place.db)).await.unwrap();
    let written: Connection = serde_json::from_slice(&std::fs::read(place.path("connection.json")).unwrap()).unwrap();
    assert_eq!((written.host, written.database), (place.db.host.clone(), place.db.database.clone()));
    // The stored password stays when none is given.
    knowledge.connect_database(acme, without).await.unwrap();
    // A colleague of another organization has that one's settings, whatever they are.
    assert!(knowledge.knowledge_database(&place.other).await.unwrap().own.is_none());
    knowledge.disconnect_database(acme).await.unwrap();
    knowledge.disconnect_database(acme).await.unwrap();
    assert!(knowledge.knowledge_database(acme).await.unwrap().own.is_none());

    let entries: Vec<(String, Value)> = sqlx::query_as(
        "SELECT action, details FROM app.audit_entries WHERE org_id = $1 AND resource_type = 'knowledge_database' ORDER BY at, id",
    )
    .bind(acme.org)
    .fetch_all(&place.world.db.app)
    .await
    .unwrap();
    let actions: Vec<&str> = entries.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(actions, ["knowledge.connect", "knowledge.connect", "knowledge.disconnect"]);
    assert!(entries.iter().all(|(_, details)| !details.to_string().contains(&place.db.password)));
    assert_eq!(entries[0].1["host"], json!(place.db.host));
}

#[tokio::test]
async fn the_stored_password_goes_nowhere_but_where_it_belongs() {
    let place = place().await;
    let (knowledge, acme) = (&place.world.knowledge, &place.acme);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut settings = place.settings();
    settings["sslmode"] = json!("require");
    place.edit(&settings, &place.db.password);
    let same = DatabaseForm { password: None, sslmode: SslMode::Require, ..form(&place.db) };
    for elsewhere in [
        DatabaseForm { host: "db.example.com".into(), ..same.clone() },
        DatabaseForm { host: "127.0.0.1".into(), port, ..same.clone() },
        DatabaseForm { database: "another".into(), ..same.clone() },
        DatabaseForm { user: "another".into(), ..same.clone() },
        DatabaseForm { sslmode: SslMode::Disable, ..same.clone() },
        DatabaseForm { port, password: Some(String::new().into()), ..same.clone() },
    ] {
        for refused in [
            knowledge.try_database(acme, elsewhere.clone()).await.map(|_| ()),
            knowledge.connect_database(acme, elsewhere.clone()).await.map(|_| ()),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code.text(), "INVALID_BODY", "{elsewhere:?}");
            assert_eq!(refused.data.unwrap()["issues"][0]["path"], "password", "{elsewhere:?}");
        }
    }
    tokio::select! {
        biased;
        _ = listener.accept() => panic!("something was sent"),
        () = std::future::ready(()) => {}
    }
    // The same place, and better protected: looked at, without being asked for the password.
    place.edit(&place.settings(), &place.db.password);
    knowledge.try_database(acme, DatabaseForm { sslmode: SslMode::Disable, ..same.clone() }).await.unwrap();
    assert_eq!(code(knowledge.try_database(acme, same).await), "KNOWLEDGE_CHECK_FAILED");
}

#[tokio::test]
async fn only_few_databases_are_looked_at_at_once_and_the_next_person_is_told_to_wait() {
    let place = place().await;
    let (knowledge, acme) = (&place.world.knowledge, &place.acme);
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let form = DatabaseForm { host: "127.0.0.1".into(), port, ..form(&place.db) };
    let looks = futures::future::join_all((0..4).map(|_| knowledge.try_database(acme, form.clone())));
    let next = async {
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(silent.accept().await.unwrap());
        }
        knowledge.try_database(acme, form.clone()).await.unwrap_err()
    };
    tokio::select! {
        ended = looks => panic!("the silent server answered: {ended:?}"),
        busy = next => {
            assert_eq!(busy.code.text(), "RATE_LIMITED");
            assert!(busy.retry_after.is_some());
        }
    }
    // Whoever goes away gives up the turn.
    drop(silent);
    assert_eq!(code(knowledge.try_database(acme, form).await), "KNOWLEDGE_CHECK_FAILED");
}
