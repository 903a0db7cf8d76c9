//! People in organizations, a clock that moves when told to, and a real mail server.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Clock, ManualClock};
use tale_env::{MailSettings, MailTls};
use tale_jobs::JobError;
use tale_mail::Mailer;
use tale_notices::mail::Post;
use tale_notices::{Kind, News, Notices};
use tale_testkit::TestDb;
use tale_testkit::mail::{MailServer, Received};

pub const SITE: &str = "https://tale.test/app";

pub struct World {
    pub db: TestDb,
    pub clock: Arc<ManualClock>,
    pub server: MailServer,
    pub post: Post,
}

impl World {
    /// With a mail server; none where it is not installed.
    pub async fn new() -> Option<Self> {
        let server = MailServer::start("starttls", None).await?;
        let db = TestDb::new().await;
        let clock = Arc::new(ManualClock::new(DateTime::<Utc>::from_timestamp(1_700_000_000, 0).unwrap()));
        let port = server.port;
        let post = Post::new(db.app.clone(), clock.clone(), Some(mailer(&server, port)), &format!("{SITE}/"));
        post.announce().await.unwrap();
        Some(Self { db, clock, server, post })
    }

    /// Another process, whose mail server is at another port, or which has none.
    pub fn process(&self, port: Option<u16>) -> Post {
        let mailer = port.map(|port| mailer(&self.server, port));
        Post::new(self.db.app.clone(), self.clock.clone(), mailer, SITE)
    }

    pub async fn org(&self, name: &str) -> OrgId {
        let org = OrgId::new();
        sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, $3, now())")
            .bind(org)
            .bind(org.to_string())
            .bind(name)
            .execute(&self.db.app)
            .await
            .unwrap();
        org
    }

    /// A person with this role in an organization.
    pub async fn person(&self, email: &str, locale: Option<&str>, org: OrgId, role: &str) -> UserId {
        let person = UserId::new();
        sqlx::query("INSERT INTO app.users (id, email, name, locale, created_at) VALUES ($1, $2, 'Ada', $3, now())")
            .bind(person)
            .bind(email)
            .bind(locale)
            .execute(&self.db.app)
            .await
            .unwrap();
        sqlx::query("INSERT INTO app.memberships (org_id, user_id, role, created_at) VALUES ($1, $2, $3, now())")
            .bind(org)
            .bind(person)
            .bind(role)
            .execute(&self.db.app)
            .await
            .unwrap();
        person
    }

    pub async fn role(&self, org: OrgId, person: UserId, role: &str) {
        sqlx::query("UPDATE app.memberships SET role = $3 WHERE org_id = $1 AND user_id = $2")
            .bind(org)
            .bind(person)
            .bind(role)
            .execute(&self.db.app)
            .await
            .unwrap();
    }

    pub async fn remove(&self, org: OrgId, person: UserId) {
        sqlx::query("DELETE FROM app.memberships WHERE org_id = $1 AND user_id = $2")
            .bind(org)
            .bind(person)
            .execute(&self.db.app)
            .await
            .unwrap();
    }

    pub fn notices(&self) -> Notices {
        Notices::new(self.db.app.clone())
    }

    pub async fn tell(&self, person: UserId, org: Option<OrgId>, kind: Kind, details: Value) {
        let mut tx = self.db.app.begin().await.unwrap();
        let news = News { org, kind, details, at: self.clock.now() };
        tale_notices::tell(&mut tx, person, &news).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// What a worker does with the job.
    pub async fn deliver(&self, org: Option<OrgId>, person: UserId) -> Result<(), JobError> {
        self.post.deliver(org, person).await
    }

    pub fn received(&self) -> Vec<Received> {
        self.server.received()
    }

    /// State and reason of every mail, the oldest first.
    pub async fn mails(&self) -> Vec<(String, Option<String>)> {
        let all = sqlx::query_as("SELECT state, reason FROM app.notice_mails ORDER BY id");
        all.fetch_all(&self.db.app).await.unwrap()
    }

    /// How many notifications wait for a mail.
    pub async fn due(&self) -> i64 {
        let due = sqlx::query_scalar("SELECT count(*) FROM app.notifications WHERE mail_due");
        due.fetch_one(&self.db.app).await.unwrap()
    }

    /// The states of the jobs that mail is delivered by.
    pub async fn jobs(&self) -> Vec<String> {
        let jobs = sqlx::query_scalar("SELECT state FROM app.jobs WHERE kind = 'notices.mail' ORDER BY seq");
        jobs.fetch_all(&self.db.app).await.unwrap()
    }
}

fn mailer(server: &MailServer, port: u16) -> Mailer {
    let settings = MailSettings {
        host: MailServer::HOST.to_owned(),
        port,
        tls: MailTls::Starttls,
        login: None,
        from: "tale@tale.test".to_owned(),
        ca_file: Some(server.roots()),
    };
    Mailer::new(&settings).unwrap()
}
