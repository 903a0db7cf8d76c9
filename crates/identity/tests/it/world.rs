//! What the tests stand on: a database, a clock that moves when told to, and short ways to people.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tale_core::ids::{OrgId, UserId};
use tale_core::{Code, ManualClock, Problem};
use tale_governance::policies::{Key, Policies};
use tale_identity::accounts::{Setup, SignUp};
use tale_identity::members::NewMember;
use tale_identity::password::HashCost;
use tale_identity::sessions::SignedIn;
use tale_identity::sign_in::{Credentials, Entry};
use tale_identity::{Caller, ClientAddress, Device, Identity, IdentityConfig, Role, SessionPrincipal};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::TestDb;

/// A password that meets the policy.
pub const PASSWORD: &str = "Blue-Kettle-42";

pub struct World {
    pub identity: Identity,
    pub clock: Arc<ManualClock>,
    pub db: TestDb,
    pub policies: Policies,
    pub files: ConfigStore,
    pub folder: tempfile::TempDir,
}

/// Hashing that costs a test nothing.
pub fn cheap() -> HashCost {
    HashCost { memory_kib: 64, passes: 1, lanes: 1, concurrent: 4, waiting: 64 }
}

/// Counts the statements of the thread, those of connections that tell them.
pub struct Statements {
    count: Arc<AtomicUsize>,
    _subscriber: tracing::subscriber::DefaultGuard,
}

impl Statements {
    pub fn of_this_thread() -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        Self { count: count.clone(), _subscriber: tracing::subscriber::set_default(Count(count)) }
    }

    /// How many there were since the last time.
    pub fn since(&self) -> usize {
        self.count.swap(0, Ordering::Relaxed)
    }
}

struct Count(Arc<AtomicUsize>);

impl tracing::Subscriber for Count {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

impl World {
    pub async fn new() -> Self {
        Self::with(IdentityConfig::default()).await
    }

    pub async fn with(config: IdentityConfig) -> Self {
        let db = TestDb::new().await;
        let clock = Arc::new(ManualClock::new(start()));
        let folder = tempfile::tempdir().unwrap();
        let files = ConfigStore::new(folder.path(), AgeKeys::load(None, None).unwrap());
        let config = IdentityConfig { hash_cost: cheap(), files: Some(files.clone()), ..config };
        let identity = Identity::new(db.app.clone(), clock.clone(), config).unwrap();
        let policies = Policies::new(db.app.clone(), clock.clone(), files.clone());
        Self { identity, clock, db, policies, files, folder }
    }

    /// The same database behind another process with other settings.
    pub fn again(&self, config: IdentityConfig) -> Identity {
        Identity::new(self.db.app.clone(), self.clock.clone(), config).unwrap()
    }

    /// The same over one connection that tells its statements.
    pub async fn telling(&self, config: IdentityConfig) -> Identity {
        let options = PgConnectOptions::from_str(self.db.app.connect_options().to_url_lossy().as_str()).unwrap();
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
        Identity::new(pool, self.clock.clone(), config).unwrap()
    }

    /// Sets the window of idle sessions in the organization of `by`, or takes it away.
    pub async fn window(&self, by: &Person, minutes: Option<u16>) {
        let value = match minutes {
            Some(minutes) => json!({ "enabled": true, "idleTimeoutMinutes": minutes }),
            None => json!({ "enabled": false }),
        };
        self.policies.set(by.org, &by.caller.actor(), Key::SessionIdleTimeout, value, None).await.unwrap();
    }

    /// Sets whether people of the organization of `by` need a second factor.
    pub async fn factors(&self, by: &Person, enforced: bool, grace_days: u8) {
        let value = json!({ "enforced": enforced, "gracePeriodDays": grace_days });
        self.policies.set(by.org, &by.caller.actor(), Key::TwoFactor, value, None).await.unwrap();
    }

    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// The first owner of "Acme", signed in.
    pub async fn owner(&self) -> Person {
        let (signed_in, org) = self.identity.setup(&setup("owner@acme.test", "Acme"), &here()).await.unwrap();
        self.person(signed_in, org.id).await
    }

    /// A member of the organization of `by`, signed in.
    pub async fn member(&self, by: &Person, email: &str, role: Role) -> Person {
        let new = NewMember {
            email: email.into(),
            name: None,
            role,
            password: Some(PASSWORD.into()),
            must_change_password: false,
        };
        self.identity.add_member(&by.caller, &new).await.unwrap();
        let signed_in = self.sign_in(email, PASSWORD).await.unwrap();
        self.person(signed_in, by.org).await
    }

    /// A session of a new member that never asked for anything of the organization.
    pub async fn member_without_session(&self, by: &Person, email: &str) -> SessionPrincipal {
        let new = NewMember {
            email: email.into(),
            name: None,
            role: Role::Member,
            password: Some(PASSWORD.into()),
            must_change_password: false,
        };
        self.identity.add_member(&by.caller, &new).await.unwrap();
        let signed_in = self.sign_in(email, PASSWORD).await.unwrap();
        self.identity.authenticate_session(&signed_in.token, false).await.unwrap()
    }

    /// A person with an organization of their own.
    pub async fn stranger(&self, email: &str, organization: &str) -> Person {
        let open =
            self.again(IdentityConfig { allow_open_sign_up: true, hash_cost: cheap(), ..IdentityConfig::default() });
        let sign_up =
            SignUp { name: "Stranger".into(), email: email.into(), password: PASSWORD.into(), setup_token: None };
        let signed_in = open.sign_up(&sign_up, &here()).await.unwrap();
        let principal = self.identity.authenticate_session(&signed_in.token, false).await.unwrap();
        let org = self.identity.create_organization(&principal, organization).await.unwrap();
        self.person(signed_in, org.id).await
    }

    pub async fn sign_in(&self, email: &str, password: &str) -> Result<SignedIn, Problem> {
        self.sign_in_from(email, password, "203.0.113.9").await
    }

    pub async fn sign_in_from(&self, email: &str, password: &str, client: &str) -> Result<SignedIn, Problem> {
        let credentials = Credentials { email: email.into(), password: password.into(), remember: true };
        match self.identity.sign_in(&credentials, &device(client)).await? {
            Entry::SignedIn(signed_in) => Ok(signed_in),
            Entry::SecondFactor(_) => panic!("a second factor is asked for"),
        }
    }

    /// The token of a sign-in whose password was right and whose second factor is open.
    pub async fn half(&self, email: &str) -> String {
        let credentials = Credentials { email: email.into(), password: PASSWORD.into(), remember: true };
        match self.identity.sign_in(&credentials, &device("192.0.2.55")).await.unwrap() {
            Entry::SecondFactor(waiting) => waiting.token,
            Entry::SignedIn(_) => panic!("no second factor is asked for"),
        }
    }

    async fn person(&self, signed_in: SignedIn, org: OrgId) -> Person {
        let principal = self.identity.authenticate_session(&signed_in.token, false).await.unwrap();
        let caller = self.identity.caller_for_session(&principal, Some(org)).await.unwrap();
        Person { id: signed_in.user, org, token: signed_in.token, principal, caller }
    }

    /// How often an action stands in the audit log of an organization.
    pub async fn audited(&self, org: OrgId, action: &str) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM app.audit_entries WHERE org_id = $1 AND action = $2")
            .bind(org)
            .bind(action)
            .fetch_one(&self.db.app)
            .await
            .unwrap()
    }
}

/// A signed-in person in one organization.
pub struct Person {
    pub id: UserId,
    pub org: OrgId,
    pub token: String,
    pub principal: SessionPrincipal,
    pub caller: Caller,
}

/// Some moment; nothing depends on which.
fn start() -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_800_000_000_000).unwrap()
}

pub fn device(client: &str) -> Device {
    Device::new(ClientAddress(client.parse().unwrap()), Some("Test browser"))
}

/// This machine.
pub fn here() -> Device {
    device("127.0.0.1")
}

pub fn setup(email: &str, organization: &str) -> Setup {
    Setup {
        name: "Owner".into(),
        email: email.into(),
        password: PASSWORD.into(),
        organization_name: organization.into(),
        setup_token: None,
    }
}

/// The code of a refusal.
pub fn code<T: std::fmt::Debug>(answer: Result<T, Problem>) -> Code {
    answer.unwrap_err().code
}
