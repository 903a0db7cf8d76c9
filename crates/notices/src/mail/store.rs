//! The tables `app.notice_mails` and `app.mail_delivery`, and what is due by mail.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::ids::{NoticeId, OrgId, UserId};
use uuid::Uuid;

use super::Standing;
use crate::{Kind, Locale};

/// Longest reason that is stored, in characters.
const MAX_REASON: usize = 400;

/// Who reads a mail, as they are now.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) email: String,
    pub(super) locale: Locale,
    /// In the organization that the mail is about.
    pub(super) role: Option<String>,
    /// The name of that organization.
    pub(super) org_name: Option<String>,
    /// An organization that links about the account lead to.
    pub(super) home: Option<OrgId>,
}

/// A notification in a mail.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) details: Value,
    pub(super) at: DateTime<Utc>,
}

pub(super) async fn announce(conn: &mut PgConnection, on: bool, now: DateTime<Utc>) -> Result<(), sqlx::Error> {
    if on {
        sqlx::query("INSERT INTO app.mail_delivery (since) VALUES ($1) ON CONFLICT DO NOTHING").bind(now)
    } else {
        sqlx::query("DELETE FROM app.mail_delivery")
    }
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether the deployment delivers mail.
pub(super) async fn delivers(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM app.mail_delivery)").fetch_one(conn).await
}

/// How delivery stands. Looks across organizations. Reasons are cut to their code: what follows may name a person.
pub(super) async fn standing(conn: &mut PgConnection) -> Result<Standing, sqlx::Error> {
    type Row =
        (Option<DateTime<Utc>>, i64, Option<String>, Option<DateTime<Utc>>, Option<DateTime<Utc>>, Option<String>);
    let (since, waiting, waits_because, last_sent, failed_at, failed_because): Row = sqlx::query_as(
        "SELECT (SELECT since FROM app.mail_delivery),
                (SELECT count(*) FROM app.notice_mails WHERE state = 'open'),
                (SELECT split_part(reason, ':', 1) FROM app.notice_mails
                  WHERE state = 'open' AND reason IS NOT NULL ORDER BY created_at DESC LIMIT 1),
                (SELECT max(settled_at) FROM app.notice_mails WHERE state = 'sent'),
                failed.settled_at, split_part(failed.reason, ':', 1)
           FROM (SELECT 1) AS one
           LEFT JOIN LATERAL (
               SELECT settled_at, coalesce(reason, '') AS reason FROM app.notice_mails
                WHERE state = 'failed' ORDER BY settled_at DESC LIMIT 1) failed ON true",
    )
    .fetch_one(conn)
    .await?;
    Ok(Standing { since, waiting, waits_because, last_sent, last_failed: failed_at.zip(failed_because) })
}

type ReaderRow = (String, Option<String>, Option<String>, Option<String>, Option<OrgId>);

/// Whoever reads a mail about `org`, or about their account; none who may not.
pub(super) async fn reader(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    person: UserId,
) -> Result<Option<Reader>, sqlx::Error> {
    let row: Option<ReaderRow> = sqlx::query_as(
        "SELECT u.email, u.locale, m.role, o.name,
                (SELECT h.org_id FROM app.memberships h
                  WHERE h.user_id = u.id AND h.role <> 'disabled'
                  ORDER BY (h.org_id = u.last_org_id) IS TRUE DESC, h.org_id LIMIT 1)
           FROM app.users u
           LEFT JOIN app.memberships m ON m.org_id = $1 AND m.user_id = u.id AND m.role <> 'disabled'
           LEFT JOIN app.organizations o ON o.id = m.org_id
          WHERE u.id = $2 AND ($1 IS NULL OR m.org_id IS NOT NULL)",
    )
    .bind(org)
    .bind(person)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|(email, locale, role, org_name, home)| {
        let locale = locale.as_deref().and_then(Locale::parse).unwrap_or_default();
        Reader { email, locale, role, org_name, home }
    }))
}

/// Nothing is due any more, and an open mail is dropped.
pub(super) async fn withdraw(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    person: UserId,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.notifications SET mail_due = false
          WHERE user_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND mail_due",
    )
    .bind(person)
    .bind(org)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE app.notice_mails SET state = 'dropped', reason = $3, settled_at = $4
          WHERE user_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND state = 'open'",
    )
    .bind(person)
    .bind(org)
    .bind(reason)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets what is too old, and what is of none of `kinds`: the person may not read it any more.
pub(super) async fn drop_old(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    person: UserId,
    kinds: &[Kind],
    before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.notifications SET mail_due = false
          WHERE user_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND mail_due
            AND (created_at < $3 OR NOT kind = ANY($4))",
    )
    .bind(person)
    .bind(org)
    .bind(before)
    .bind(words(kinds))
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE app.notice_mails m SET state = 'dropped', reason = $5, settled_at = $6
          WHERE m.user_id = $1 AND m.org_id IS NOT DISTINCT FROM $2 AND m.state = 'open'
            AND NOT EXISTS (SELECT FROM app.notifications n
                             WHERE n.mail_id = m.id AND n.user_id = $1 AND n.org_id IS NOT DISTINCT FROM $2
                               AND n.created_at >= $3 AND n.kind = ANY($4))",
    )
    .bind(person)
    .bind(org)
    .bind(before)
    .bind(words(kinds))
    .bind("MAIL_TOO_OLD")
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// The mail that was begun and is not settled, and when it was written.
pub(super) async fn open(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    person: UserId,
) -> Result<Option<(Uuid, DateTime<Utc>)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, created_at FROM app.notice_mails
          WHERE user_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND state = 'open'",
    )
    .bind(person)
    .bind(org)
    .fetch_optional(conn)
    .await
}

/// What a mail is due about, the oldest first.
pub(super) async fn due(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    person: UserId,
    limit: i64,
) -> Result<Vec<(NoticeId, Kind)>, sqlx::Error> {
    let rows: Vec<(NoticeId, String)> = sqlx::query_as(
        "SELECT id, kind FROM app.notifications
          WHERE user_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND mail_due
          ORDER BY created_at, id LIMIT $3",
    )
    .bind(person)
    .bind(org)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().filter_map(|(id, kind)| Some((id, Kind::parse(&kind)?))).collect())
}

/// When mails to a person were sent after `since`, whatever they were about: the latest first, at most `most`.
pub(super) async fn sent_since(
    conn: &mut PgConnection,
    person: UserId,
    since: DateTime<Utc>,
    most: usize,
) -> Result<Vec<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT settled_at FROM app.notice_mails
          WHERE user_id = $1 AND state = 'sent' AND settled_at > $2 ORDER BY settled_at DESC LIMIT $3",
    )
    .bind(person)
    .bind(since)
    .bind(i64::try_from(most).unwrap_or(i64::MAX))
    .fetch_all(conn)
    .await
}

/// Writes down a mail about these notifications.
pub(super) async fn begin(
    conn: &mut PgConnection,
    id: Uuid,
    org: Option<OrgId>,
    person: UserId,
    notices: &[NoticeId],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.notice_mails (id, org_id, user_id, state, created_at) VALUES ($1, $2, $3, 'open', $4)",
    )
    .bind(id)
    .bind(org)
    .bind(person)
    .bind(now)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE app.notifications SET mail_due = false, mail_id = $1
          WHERE id = ANY($4) AND user_id = $2 AND org_id IS NOT DISTINCT FROM $3",
    )
    .bind(id)
    .bind(person)
    .bind(org)
    .bind(notices)
    .execute(conn)
    .await?;
    Ok(())
}

/// What a mail tells, out of `kinds`, the oldest first.
pub(super) async fn notices_of(
    conn: &mut PgConnection,
    mail: Uuid,
    org: Option<OrgId>,
    person: UserId,
    kinds: &[Kind],
) -> Result<Vec<Told>, sqlx::Error> {
    let rows: Vec<(String, Value, DateTime<Utc>)> = sqlx::query_as(
        "SELECT kind, details, created_at FROM app.notifications
          WHERE mail_id = $1 AND user_id = $2 AND org_id IS NOT DISTINCT FROM $3 AND kind = ANY($4)
          ORDER BY created_at, id",
    )
    .bind(mail)
    .bind(person)
    .bind(org)
    .bind(words(kinds))
    .fetch_all(conn)
    .await?;
    let told =
        |(kind, details, at): (String, Value, DateTime<Utc>)| Some(Told { kind: Kind::parse(&kind)?, details, at });
    Ok(rows.into_iter().filter_map(told).collect())
}

/// The end of a mail that was open.
pub(super) async fn settle(
    conn: &mut PgConnection,
    mail: Uuid,
    org: Option<OrgId>,
    person: UserId,
    state: &str,
    reason: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.notice_mails SET state = $4, reason = $5, settled_at = $6
          WHERE id = $1 AND user_id = $2 AND org_id IS NOT DISTINCT FROM $3 AND state = 'open'",
    )
    .bind(mail)
    .bind(person)
    .bind(org)
    .bind(state)
    .bind(reason.map(cut))
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Why an open mail is not delivered yet.
pub(super) async fn note(
    conn: &mut PgConnection,
    mail: Uuid,
    org: Option<OrgId>,
    person: UserId,
    reason: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.notice_mails SET reason = $4
          WHERE id = $1 AND user_id = $2 AND org_id IS NOT DISTINCT FROM $3 AND state = 'open'",
    )
    .bind(mail)
    .bind(person)
    .bind(org)
    .bind(cut(reason))
    .execute(conn)
    .await?;
    Ok(())
}

/// The job of an open mail was given up.
pub(super) async fn give_up(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    person: UserId,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.notice_mails SET state = 'failed', reason = coalesce(reason, $3), settled_at = $4
          WHERE user_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND state = 'open'",
    )
    .bind(person)
    .bind(org)
    .bind(cut(reason))
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes mails from before `before`.
pub(super) async fn sweep(conn: &mut PgConnection, before: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let gone = sqlx::query("DELETE FROM app.notice_mails WHERE created_at < $1").bind(before).execute(conn).await?;
    Ok(gone.rows_affected())
}

fn words(kinds: &[Kind]) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.text()).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}
