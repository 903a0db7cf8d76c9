//! Notifications by mail.
//!
//! Whoever tells somebody something enqueues [`MailNotices`] with it, in the same transaction, when the deployment has
//! a mail server and the person wants mail about it. The job gathers what is due into one mail, which is a row with
//! an id of its own before anything is sent: an attempt that is repeated sends the same mail under the same
//! `Message-ID`. Delivery is at least once. No transaction is open while the mail server is spoken to.
//!
//! **Limits.** A person gets at most [`MAX_PER_HOUR`] mails an hour, and [`MAX_BY_STRANGERS`] about what strangers can
//! cause, so that nobody can use them up and hide what they do; what comes above waits and is put into one mail. A mail
//! that cannot be delivered within [`MAX_AGE`] is given up, because it would only confuse.

mod letter;
pub mod metrics;
mod store;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool};
use tale_core::clock::SharedClock;
use tale_core::ids::{NoticeId, OrgId, UserId};
use tale_jobs::{Backoff, EnqueueOptions, Failure, Job, JobError, Lease, enqueue};
use tale_mail::{Letter, Mailer, SendError};
use uuid::Uuid;

use crate::Kind;
use letter::Address;

/// How old what a mail tells may be when it is sent.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Most mails that a person gets in [`WINDOW`].
pub const MAX_PER_HOUR: usize = 10;
/// Most of these that tell only what strangers can cause.
pub const MAX_BY_STRANGERS: usize = 3;
/// The time that both limits count over.
const WINDOW: Duration = Duration::from_secs(3600);
/// Most notifications that one mail is about.
const MAX_IN_ONE: i64 = 500;
/// How long the mail server is left alone after it was away.
const REST: Duration = Duration::from_secs(30);
/// How long the outcome of a mail is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The mail about what one person is told, in one organization or about their account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MailNotices {
    person: UserId,
    org: Option<OrgId>,
}

impl MailNotices {
    /// Enqueues it, once for what is due at the same time.
    pub(crate) async fn enqueue(
        conn: &mut PgConnection,
        org: Option<OrgId>,
        person: UserId,
        delay: Duration,
    ) -> Result<(), sqlx::Error> {
        let place = org.map_or_else(|| "account".to_owned(), |org| org.to_string());
        let options = EnqueueOptions::keyed(format!("{place}:{person}")).after(delay);
        enqueue(conn, org, &Self { person, org }, options).await?;
        Ok(())
    }
}

impl Job for MailNotices {
    const NAME: &'static str = "notices.mail";
    // The age of the mail ends it, long before these are used up.
    const MAX_ATTEMPTS: u32 = 400;
    const TIMEOUT: Duration = Duration::from_secs(3 * 60);
    // A slow mail server must not keep the jobs that people wait for from running.
    const PER_ORG: u32 = 1;
    const BACKOFF: Backoff = Backoff { first: Duration::from_secs(30), cap: Duration::from_secs(15 * 60) };
    type Context = Post;

    async fn run(&self, post: &Post, _lease: &Lease) -> Result<(), JobError> {
        post.deliver(self.org, self.person).await
    }

    async fn given_up(&self, post: &Post, _org: Option<OrgId>, failure: &Failure) {
        let now = post.clock.now();
        if let Ok(mut conn) = post.db.acquire().await {
            // What cannot be written now is dropped by its age.
            let _ = store::give_up(&mut conn, self.org, self.person, &failure.code, now).await;
        }
        metrics::FAILED.increment();
    }
}

/// Delivers mail about notifications.
pub struct Post {
    db: PgPool,
    clock: SharedClock,
    /// None without a mail server: what is due is dropped then.
    mailer: Option<Mailer>,
    /// The address of the site, without a slash at its end.
    site: String,
    /// The mail server cannot be used and is left alone until then.
    outage: Mutex<Option<DateTime<Utc>>>,
}

/// What is next for a person.
enum Next {
    /// Nothing, or not now.
    Nothing,
    /// This mail.
    Send(Letter),
}

impl Post {
    /// The post of the site at `site`, through `mailer`.
    #[must_use]
    pub fn new(db: PgPool, clock: SharedClock, mailer: Option<Mailer>, site: &str) -> Self {
        let site = site.trim_end_matches('/').to_owned();
        Self { db, clock, mailer, site, outage: Mutex::default() }
    }

    /// Lets everybody who writes notifications know whether mail about them is due from now on.
    ///
    /// # Errors
    /// The database's.
    pub async fn announce(&self) -> Result<(), sqlx::Error> {
        if let Some(mailer) = &self.mailer {
            tracing::info!(event = "mail.configured", server = mailer.server(), "notifications are delivered by mail");
        }
        store::announce(&mut *self.db.acquire().await?, self.mailer.is_some(), self.clock.now()).await
    }

    /// Delivers what is due to `person`, about `org` or about their account.
    ///
    /// # Errors
    /// When the mail server is away or puts the mail off, and the database's: the mail is tried again.
    pub async fn deliver(&self, org: Option<OrgId>, person: UserId) -> Result<(), JobError> {
        // Each round settles a mail or fails, and the limits end them.
        while let Next::Send(letter) = self.next(org, person).await? {
            self.hand_over(org, person, &letter).await?;
        }
        Ok(())
    }

    async fn next(&self, org: Option<OrgId>, person: UserId) -> Result<Next, JobError> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let reader = store::reader(&mut tx, org, person).await?;
        let reason = if self.mailer.is_none() { "MAIL_NOT_CONFIGURED" } else { "MAIL_READER_GONE" };
        let Some(reader) = reader.filter(|_| self.mailer.is_some()) else {
            store::withdraw(&mut tx, org, person, reason, now).await?;
            tx.commit().await?;
            return Ok(Next::Nothing);
        };
        let admin = reader.role.as_deref().is_some_and(|role| matches!(role, "owner" | "admin"));
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| admin || !kind.for_admins()).collect();
        store::drop_old(&mut tx, org, person, &kinds, now - MAX_AGE, now).await?;
        let (id, written) = match store::open(&mut tx, org, person).await? {
            Some(open) => open,
            None => {
                let due = store::due(&mut tx, org, person, MAX_IN_ONE).await?;
                if due.is_empty() {
                    tx.commit().await?;
                    return Ok(Next::Nothing);
                }
                if let Some(wait) = over_limit(&mut tx, person, &due, now).await? {
                    MailNotices::enqueue(&mut tx, org, person, wait).await?;
                    tx.commit().await?;
                    return Ok(Next::Nothing);
                }
                let id = Uuid::now_v7();
                let ids: Vec<_> = due.into_iter().map(|(id, _)| id).collect();
                store::begin(&mut tx, id, org, person, &ids, now).await?;
                (id, now)
            }
        };
        let notices = store::notices_of(&mut tx, id, org, person, &kinds).await?;
        tx.commit().await?;
        let address = Address { site: &self.site, org: org.or(reader.home) };
        Ok(Next::Send(letter::write(id, written, &reader, &address, notices)))
    }

    async fn hand_over(&self, org: Option<OrgId>, person: UserId, letter: &Letter) -> Result<(), JobError> {
        let Some(mailer) = self.mailer.as_ref().filter(|_| !self.rests()) else {
            return Err(put_off("MAIL_SERVER_UNAVAILABLE"));
        };
        let sent = mailer.send(letter).await;
        let mut conn = self.db.acquire().await?;
        let now = self.clock.now();
        match sent {
            Ok(()) => {
                self.answered(mailer);
                metrics::SENT.increment();
                store::settle(&mut conn, letter.id, org, person, "sent", None, now).await?;
                Ok(())
            }
            Err(SendError::Refused(why)) => {
                self.answered(mailer);
                metrics::FAILED.increment();
                let reason = format!("MAIL_REFUSED: {why}");
                store::settle(&mut conn, letter.id, org, person, "failed", Some(&reason), now).await?;
                // What the server said may name the person; the row has it.
                tracing::warn!(event = "mail.refused", mail = %letter.id, "the mail server refused a mail for good");
                Ok(())
            }
            Err(error) => {
                metrics::DEFERRED.increment();
                match &error {
                    SendError::Server(why) => self.away(mailer, why),
                    _ => self.answered(mailer),
                }
                let reason = format!("{}: {error}", error.code());
                store::note(&mut conn, letter.id, org, person, &reason).await?;
                Err(put_off(error.code()))
            }
        }
    }

    /// Whether the mail server was away a moment ago.
    fn rests(&self) -> bool {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.is_some_and(|until| self.clock.now() < until)
    }

    fn away(&self, mailer: &Mailer, why: &str) {
        let until = self.clock.now() + REST;
        let before = self.outage.lock().unwrap_or_else(PoisonError::into_inner).replace(until);
        metrics::set_failing(true);
        if before.is_none() {
            tracing::warn!(
                event = "mail.undeliverable",
                server = mailer.server(),
                why,
                "mail cannot be delivered; it is tried again until it can. `tale mail test ADDRESS` says more"
            );
        }
    }

    fn answered(&self, mailer: &Mailer) {
        metrics::set_failing(false);
        if self.outage.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!(event = "mail.deliverable", server = mailer.server(), "mail can be delivered again");
        }
    }
}

/// How the delivery of mail stands. Names no person, and nothing that a mail server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Since when workers have a mail server; `None` = mail is not delivered.
    pub since: Option<DateTime<Utc>>,
    /// Mails that the mail server has not taken yet.
    pub waiting: i64,
    /// Why the last attempt of one of these failed: a stable code.
    pub waits_because: Option<String>,
    /// When the mail server took one last.
    pub last_sent: Option<DateTime<Utc>>,
    /// When one was given up last because it was refused or could not be delivered, and the stable code why.
    pub last_failed: Option<(DateTime<Utc>, String)>,
}

/// How delivery stands, of mails of the last 30 days, which are kept.
///
/// # Errors
/// The database's.
pub async fn standing(pool: &PgPool) -> Result<Standing, sqlx::Error> {
    store::standing(&mut *pool.acquire().await?).await
}

/// Whether the deployment delivers mail.
pub(crate) async fn delivers(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    store::delivers(conn).await
}

/// Forgets what became of mails long ago.
pub(crate) async fn sweep(conn: &mut PgConnection, now: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    store::sweep(conn, now - KEPT).await
}

fn put_off(code: &'static str) -> JobError {
    JobError::retry(code, "The mail could not be delivered yet; the row in app.notice_mails says why.")
}

/// How long a mail about `due` has to wait, when the person got enough.
async fn over_limit(
    conn: &mut PgConnection,
    person: UserId,
    due: &[(NoticeId, Kind)],
    now: DateTime<Utc>,
) -> Result<Option<Duration>, sqlx::Error> {
    let strangers = due.iter().all(|(_, kind)| kind.by_strangers());
    let most = if strangers { MAX_BY_STRANGERS } else { MAX_PER_HOUR };
    let sent = store::sent_since(conn, person, now - WINDOW, most).await?;
    let Some(first) = sent.last().filter(|_| sent.len() >= most) else { return Ok(None) };
    let wait = (*first + WINDOW - now).to_std().unwrap_or_default();
    Ok(Some(wait.max(Duration::from_secs(1))))
}
