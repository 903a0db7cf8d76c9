//! An organization on a database of its own, and processes that can be killed.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tale_core::ids::{CodeRunId, OrgId, UserId};
use tale_core::{Actor, SystemClock};
use tale_governance::policies::Policies;
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::sign::Key;
use tale_testkit::TestDb;
use tale_workshop::runs::{Language, Owner, Run, RunEvent};
use tale_workshop::{Settings, Workshop};
use tokio_util::sync::CancellationToken;

use crate::spawner::{FakeSpawner, TOKEN};

pub struct World {
    pub db: TestDb,
    /// The scripted one.
    pub spawner: FakeSpawner,
    pub org: OrgId,
    /// Where the platform finds its spawner.
    address: SocketAddr,
    folder: tempfile::TempDir,
}

/// A process of the platform that gives out places. Killed when dropped: nothing it was doing goes on.
pub struct Process(Option<tokio::runtime::Runtime>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl World {
    pub async fn new(capacity: usize) -> Self {
        let (db, spawner) = (TestDb::new().await, FakeSpawner::start(capacity).await);
        let org = organization(&db.app, "acme").await;
        Self { db, org, address: spawner.address, spawner, folder: tempfile::tempdir().unwrap() }
    }

    /// With another spawner than the scripted one.
    pub async fn with_spawner(address: SocketAddr) -> Self {
        Self { address, ..Self::new(0).await }
    }

    fn policies_on(&self, pool: PgPool) -> Policies {
        let files = ConfigStore::new(self.folder.path(), AgeKeys::load(None, None).unwrap());
        Policies::new(pool, Arc::new(SystemClock), files)
    }

    /// The policies, without anything that is held of them.
    pub fn policies(&self) -> Policies {
        self.policies_on(self.db.app.clone())
    }

    fn workshop_on(&self, pool: PgPool, address: SocketAddr) -> Workshop {
        let policies = self.policies_on(pool.clone());
        let settings = Settings {
            url: format!("http://{address}").parse().unwrap(),
            key: Key::new(TOKEN).unwrap(),
            profile: Profile::Agent,
        };
        Workshop::new(pool, Arc::new(SystemClock), policies, settings).unwrap()
    }

    /// A door: it takes orders and lets people follow, and attends to nothing.
    pub fn door(&self) -> Workshop {
        self.door_to(self.address)
    }

    /// A door that looks for its spawner somewhere else.
    pub fn door_to(&self, address: SocketAddr) -> Workshop {
        self.workshop_on(self.db.app.clone(), address)
    }

    /// A process that attends to runs.
    pub fn process(&self) -> Process {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let _inside = runtime.enter();
        let pool = PgPoolOptions::new().max_connections(8).connect_lazy(&self.db.app_url()).unwrap();
        let workshop = self.workshop_on(pool, self.address);
        runtime.spawn(async move { workshop.work(false, CancellationToken::new()).await });
        Process(Some(runtime))
    }

    /// A developer of the organization.
    pub async fn person(&self) -> Owner {
        let user = UserId::new();
        sqlx::query(
            "INSERT INTO app.users (id, email, name, created_at) VALUES ($1, $1::text || '@acme.test', 'Ada', now())",
        )
        .bind(user)
        .execute(&self.db.app)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO app.memberships (org_id, user_id, role, created_at) VALUES ($1, $2, 'developer', now())",
        )
        .bind(self.org)
        .bind(user)
        .execute(&self.db.app)
        .await
        .unwrap();
        Owner { org: self.org, user }
    }

    pub async fn limit(&self, workspaces: u32) {
        let value = serde_json::json!({ "maxSessionsPerOrg": workspaces });
        self.door().set_limits(self.org, &Actor::System, value, None).await.unwrap();
    }

    /// Lets everybody believe that whoever attends to runs has been silent for too long.
    pub async fn forget_leases(&self) {
        sqlx::query("UPDATE app.code_runs SET held_until = now() WHERE held_until IS NOT NULL")
            .execute(&self.db.app)
            .await
            .unwrap();
    }

    /// Places that are held.
    pub async fn places(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM app.sandbox_sessions WHERE allocation IN ('creating', 'active')")
            .fetch_one(&self.db.app)
            .await
            .unwrap()
    }
}

pub async fn organization(db: &PgPool, slug: &str) -> OrgId {
    let org = OrgId::new();
    sqlx::query("INSERT INTO app.organizations (id, name, slug, created_at) VALUES ($1, $2, $2, now())")
        .bind(org)
        .bind(slug)
        .execute(db)
        .await
        .unwrap();
    org
}

pub async fn start(door: &Workshop, owner: Owner, script: &str) -> CodeRunId {
    start_in(door, owner, Language::Shell, script).await
}

pub async fn start_in(door: &Workshop, owner: Owner, language: Language, code: &str) -> CodeRunId {
    let actor = Actor::User { id: owner.user };
    door.run(owner, &actor, language, code).await.unwrap().id
}

/// A run that somebody follows.
pub struct Followed {
    events: Pin<Box<dyn Stream<Item = RunEvent> + Send>>,
    pub text: String,
    pub seq: u64,
}

impl Followed {
    pub async fn of(door: &Workshop, owner: Owner, id: CodeRunId, since: u64) -> Self {
        let events = Box::pin(door.follow_run(owner, id, since).await.unwrap());
        Self { events, text: String::new(), seq: since }
    }

    /// Reads until the run is in a state.
    pub async fn state(&mut self, wanted: impl Fn(&Run) -> bool) -> Run {
        loop {
            match self.next().await {
                RunEvent::State(run) | RunEvent::End(run) if wanted(&run) => return *run,
                RunEvent::End(run) => panic!("it ended: {run:?}"),
                _ => {}
            }
        }
    }

    /// Reads until something was printed.
    pub async fn printed(&mut self, text: &str) {
        while !self.text.contains(text) {
            self.next().await;
        }
    }

    pub async fn end(&mut self) -> Run {
        loop {
            if let RunEvent::End(run) = self.next().await {
                return *run;
            }
        }
    }

    async fn next(&mut self) -> RunEvent {
        let event = self.events.next().await.expect("the stream ends with the end of the run");
        if let RunEvent::Output { seq, bytes, .. } = &event {
            assert!(*seq > self.seq, "{seq} follows {}", self.seq);
            self.seq = *seq;
            self.text.push_str(std::str::from_utf8(bytes).unwrap());
        }
        event
    }
}
