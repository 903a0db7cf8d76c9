//! What people are told.
//!
//! Whoever changes something tells of it with [`tell`] or [`tell_admins`], with the connection of the change: both
//! commit together or not at all. What is stored is a kind with details; the words are made when somebody reads, in
//! their language ([`Kind::words`]). Growth: a row per person and notification, gone after [`KEPT`]; one statement for
//! each telling, whatever the number of people, and one more for each of them who gets mail ([`mail`]).

mod device;
mod kind;
pub mod mail;
mod store;
mod words;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use tale_core::ids::{NoticeId, OrgId, UserId};
use tale_core::{Code, Problem};

pub use device::{Seen, device_name, see_device};
pub use kind::Kind;
pub use words::{Locale, Words};

/// How long notifications are kept.
pub const KEPT: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long the same unread notification is not repeated, for kinds that strangers can cause.
const REPEATED_AFTER: Duration = Duration::from_secs(3600);
/// Most notifications that are marked as read by one request.
pub const MAX_MARKED: usize = 100;

/// What is told.
#[derive(Debug, Clone)]
pub struct News {
    /// The organization it happened in; none when it is about the account.
    pub org: Option<OrgId>,
    /// What happened.
    pub kind: Kind,
    /// What the words need. Never a secret.
    pub details: Value,
    /// When.
    pub at: DateTime<Utc>,
}

/// Tells one person.
///
/// # Errors
/// The database's.
pub async fn tell(conn: &mut PgConnection, person: UserId, news: &News) -> Result<(), sqlx::Error> {
    store::insert(conn, &[person], news).await
}

/// Tells the owners and admins of an organization, all but `except`.
///
/// # Errors
/// The database's.
pub async fn tell_admins(
    conn: &mut PgConnection,
    org: OrgId,
    except: Option<UserId>,
    news: &News,
) -> Result<(), sqlx::Error> {
    let admins = store::admins(conn, org, except).await?;
    store::insert(conn, &admins, news).await
}

/// A notification.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Which one.
    pub id: NoticeId,
    /// What happened.
    pub kind: Kind,
    /// What the words need.
    pub details: Value,
    /// When.
    pub created_at: DateTime<Utc>,
    /// Whether the person has seen it.
    pub read: bool,
}

/// Where a list goes on: after this time and notification.
pub type Position = (DateTime<Utc>, NoticeId);

/// What a person wants to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Kinds that are declined.
    pub muted: Vec<Kind>,
    /// Kinds that no mail is wanted about.
    pub unmailed: Vec<Kind>,
}

/// The notifications of every person. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Notices {
    db: PgPool,
}

impl Notices {
    /// Those in `db`.
    #[must_use]
    pub fn new(db: PgPool) -> Self {
        Self { db }
    }

    /// At most `limit` notifications of a person about their account and about `org`, the newest first, and where the
    /// list goes on.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(
        &self,
        org: OrgId,
        person: UserId,
        unread: bool,
        after: Option<Position>,
        limit: u32,
    ) -> Result<(Vec<Notice>, Option<Position>), Problem> {
        let mut conn = self.db.acquire().await?;
        let mut page = store::list(&mut conn, org, person, unread, after, i64::from(limit) + 1).await?;
        let more = page.len() > limit as usize;
        page.truncate(limit as usize);
        let next = page.last().filter(|_| more).map(|last| (last.created_at, last.id));
        Ok((page, next))
    }

    /// How many are unread, at most 100.
    ///
    /// # Errors
    /// The database's.
    pub async fn unread(&self, org: OrgId, person: UserId) -> Result<u32, Problem> {
        Ok(store::unread(&mut *self.db.acquire().await?, org, person).await?)
    }

    /// Marks notifications of a person as read: those named, or all. Ids that are not theirs change nothing.
    ///
    /// # Errors
    /// `INVALID_BODY` for more than [`MAX_MARKED`] ids; the database's.
    pub async fn mark_read(
        &self,
        org: OrgId,
        person: UserId,
        ids: Option<&[NoticeId]>,
        at: DateTime<Utc>,
    ) -> Result<(), Problem> {
        if ids.is_some_and(|ids| ids.len() > MAX_MARKED) {
            return Err(Problem::invalid_field("ids", "must have at most 100 entries"));
        }
        let mut tx = self.db.begin().await?;
        store::mark_read(&mut tx, org, person, ids, at).await?;
        tx.commit().await?;
        Ok(())
    }

    /// What a person wants to be told.
    ///
    /// # Errors
    /// The database's.
    pub async fn wishes(&self, person: UserId) -> Result<Wishes, Problem> {
        Ok(store::wishes(&mut *self.db.acquire().await?, person).await?)
    }

    /// Replaces what a person wants to be told.
    ///
    /// # Errors
    /// `INVALID_BODY` for a kind that cannot be declined; the database's.
    pub async fn set_wishes(&self, person: UserId, wishes: &Wishes) -> Result<(), Problem> {
        if let Some(kind) = wishes.muted.iter().chain(&wishes.unmailed).find(|kind| kind.always_told()) {
            return Err(Problem::new(
                Code::InvalidBody,
                format!("`{}` is always told and cannot be muted.", kind.text()),
            ));
        }
        Ok(store::set_wishes(&mut *self.db.acquire().await?, person, wishes).await?)
    }

    /// Whether the deployment delivers notifications by mail.
    ///
    /// # Errors
    /// The database's.
    pub async fn delivers_mail(&self) -> Result<bool, Problem> {
        Ok(mail::delivers(&mut *self.db.acquire().await?).await?)
    }

    /// Removes what is older than [`KEPT`], devices that were not used for as long, and outcomes of mails after 30 days.
    ///
    /// # Errors
    /// The database's.
    pub async fn sweep(&self, now: DateTime<Utc>) -> Result<u64, Problem> {
        let mut conn = self.db.acquire().await?;
        let mails = mail::sweep(&mut conn, now).await?;
        Ok(mails + store::sweep(&mut conn, now - KEPT).await?)
    }
}
