//! The tables `app.notifications` and `app.known_devices`, and what people want to be told.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, QueryBuilder};
use tale_core::ids::{NoticeId, OrgId, UserId};
use tale_db::hints::{CHANNEL, Hint, Topic, payloads};

use crate::mail::MailNotices;
use crate::{Kind, News, Notice, Position, REPEATED_AFTER, Seen, Wishes};

/// Owners and admins of `org`.
pub(crate) async fn admins(
    conn: &mut PgConnection,
    org: OrgId,
    except: Option<UserId>,
) -> Result<Vec<UserId>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT user_id FROM app.memberships
          WHERE org_id = $1 AND role IN ('owner', 'admin') AND user_id IS DISTINCT FROM $2
          ORDER BY user_id",
    )
    .bind(org)
    .bind(except)
    .fetch_all(conn)
    .await
}

/// Writes `news` for everybody in `people` who did not decline its kind; tells their open browsers, and has mail sent to
/// those who want it.
pub(crate) async fn insert(conn: &mut PgConnection, people: &[UserId], news: &News) -> Result<(), sqlx::Error> {
    if people.is_empty() {
        return Ok(());
    }
    let ids: Vec<NoticeId> = people.iter().map(|_| NoticeId::new()).collect();
    let told: Vec<(UserId, bool)> = sqlx::query_as(
        "INSERT INTO app.notifications (id, org_id, user_id, kind, details, created_at, mail_due)
         SELECT n.id, $3, u.id, $4, $5, $6,
                EXISTS (SELECT FROM app.mail_delivery) AND ($7 OR NOT $4 = ANY(u.unmailed_notices))
           FROM unnest($1::uuid[], $2::uuid[]) AS n (id, user_id)
           JOIN app.users u ON u.id = n.user_id
          WHERE ($7 OR NOT $4 = ANY(u.muted_notices))
            AND NOT ($8 AND EXISTS (
                SELECT FROM app.notifications o
                 WHERE o.user_id = u.id AND o.read_at IS NULL AND o.created_at > $9 AND o.kind = $4
                   AND o.org_id IS NOT DISTINCT FROM $3 AND o.details = $5))
         RETURNING user_id, mail_due",
    )
    .bind(&ids)
    .bind(people)
    .bind(news.org)
    .bind(news.kind.text())
    .bind(&news.details)
    .bind(news.at)
    .bind(news.kind.always_told())
    .bind(news.kind.by_strangers())
    .bind(news.at - REPEATED_AFTER)
    .fetch_all(&mut *conn)
    .await?;
    for (person, _) in told.iter().filter(|(_, mail)| *mail) {
        MailNotices::enqueue(conn, news.org, *person, Duration::ZERO).await?;
    }
    let people: Vec<UserId> = told.into_iter().map(|(person, _)| person).collect();
    hint(conn, news.org, &people).await
}

/// Tells the browsers of `people`: in `org`, or in every organization of theirs.
async fn hint(conn: &mut PgConnection, org: Option<OrgId>, people: &[UserId]) -> Result<(), sqlx::Error> {
    let places: Vec<(OrgId, UserId)> = match org {
        Some(org) => people.iter().map(|person| (org, *person)).collect(),
        None => {
            sqlx::query_as("SELECT org_id, user_id FROM app.memberships WHERE user_id = ANY($1)")
                .bind(people)
                .fetch_all(&mut *conn)
                .await?
        }
    };
    if places.is_empty() {
        return Ok(());
    }
    let hints: Vec<Hint> =
        places.into_iter().map(|(org, person)| Hint::new(org, Topic::Notifications).user(person)).collect();
    sqlx::query("SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload")
        .bind(CHANNEL)
        .bind(payloads(&hints)?)
        .execute(conn)
        .await?;
    Ok(())
}

/// What a person is told. Of an organization that is what happened since they are a member: whoever was removed and is
/// added again does not see what was told before.
pub(crate) async fn list(
    conn: &mut PgConnection,
    org: OrgId,
    person: UserId,
    unread: bool,
    after: Option<Position>,
    limit: i64,
) -> Result<Vec<Notice>, sqlx::Error> {
    let mut query = QueryBuilder::new(
        "SELECT id, kind, details, created_at, read_at IS NOT NULL
           FROM app.notifications
          WHERE (org_id IS NULL OR org_id = ",
    );
    query.push_bind(org).push(" AND created_at >= ");
    query.push("(SELECT m.created_at FROM app.memberships m WHERE m.org_id = ").push_bind(org);
    query.push(" AND m.user_id = ").push_bind(person).push(")) AND user_id = ").push_bind(person);
    let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.text()).collect();
    query.push(" AND kind = ANY(").push_bind(known).push(")");
    if unread {
        query.push(" AND read_at IS NULL");
    }
    if let Some((at, id)) = after {
        query.push(" AND (created_at, id) < (").push_bind(at).push(", ").push_bind(id).push(")");
    }
    query.push(" ORDER BY created_at DESC, id DESC LIMIT ").push_bind(limit);
    let rows: Vec<(NoticeId, String, Value, DateTime<Utc>, bool)> = query.build_query_as().fetch_all(conn).await?;
    let read = |(id, kind, details, created_at, read): (NoticeId, String, Value, DateTime<Utc>, bool)| {
        Some(Notice { id, kind: Kind::parse(&kind)?, details, created_at, read })
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

pub(crate) async fn unread(conn: &mut PgConnection, org: OrgId, person: UserId) -> Result<u32, sqlx::Error> {
    let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.text()).collect();
    let count: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (
             SELECT FROM app.notifications
              WHERE (org_id IS NULL OR org_id = $1 AND created_at >=
                     (SELECT m.created_at FROM app.memberships m WHERE m.org_id = $1 AND m.user_id = $2))
                AND user_id = $2 AND read_at IS NULL AND kind = ANY($3)
              LIMIT 100) AS unread",
    )
    .bind(org)
    .bind(person)
    .bind(known)
    .fetch_one(conn)
    .await?;
    Ok(u32::try_from(count).unwrap_or(0))
}

pub(crate) async fn mark_read(
    conn: &mut PgConnection,
    org: OrgId,
    person: UserId,
    ids: Option<&[NoticeId]>,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let of_account: Vec<bool> = sqlx::query_scalar(
        "UPDATE app.notifications SET read_at = $4
          WHERE (org_id = $1 OR org_id IS NULL) AND user_id = $2 AND read_at IS NULL AND ($3::uuid[] IS NULL OR id = ANY($3))
         RETURNING org_id IS NULL",
    )
    .bind(org)
    .bind(person)
    .bind(ids)
    .bind(at)
    .fetch_all(&mut *conn)
    .await?;
    if of_account.is_empty() {
        return Ok(());
    }
    let everywhere = of_account.contains(&true);
    hint(conn, (!everywhere).then_some(org), &[person]).await
}

pub(crate) async fn wishes(conn: &mut PgConnection, person: UserId) -> Result<Wishes, sqlx::Error> {
    let (muted, unmailed): (Vec<String>, Vec<String>) =
        sqlx::query_as("SELECT muted_notices, unmailed_notices FROM app.users WHERE id = $1")
            .bind(person)
            .fetch_one(conn)
            .await?;
    let kinds = |words: Vec<String>| words.iter().filter_map(|kind| Kind::parse(kind)).collect();
    Ok(Wishes { muted: kinds(muted), unmailed: kinds(unmailed) })
}

/// Replaces what a person wants. No mail is due any more about what they do not want mail about.
pub(crate) async fn set_wishes(conn: &mut PgConnection, person: UserId, wishes: &Wishes) -> Result<(), sqlx::Error> {
    let words = |kinds: &[Kind]| {
        let mut words: Vec<&str> = kinds.iter().map(|kind| kind.text()).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    sqlx::query(
        "WITH changed AS (UPDATE app.users SET muted_notices = $2, unmailed_notices = $3 WHERE id = $1)
         UPDATE app.notifications SET mail_due = false
          WHERE user_id = $1 AND mail_due AND kind = ANY($2::text[] || $3::text[])",
    )
    .bind(person)
    .bind(words(&wishes.muted))
    .bind(words(&wishes.unmailed))
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes a device.
pub(crate) async fn see_device(
    conn: &mut PgConnection,
    person: UserId,
    device: &[u8; 32],
    at: DateTime<Utc>,
) -> Result<Seen, sqlx::Error> {
    let (others, known): (bool, bool) = sqlx::query_as(
        "WITH before AS (SELECT device FROM app.known_devices WHERE user_id = $1),
              noted AS (
             INSERT INTO app.known_devices (user_id, device, used_at) VALUES ($1, $2, $3)
                 ON CONFLICT (user_id, device) DO UPDATE SET used_at = excluded.used_at)
         SELECT EXISTS (SELECT FROM before), EXISTS (SELECT FROM before WHERE device = $2)",
    )
    .bind(person)
    .bind(&device[..])
    .bind(at)
    .fetch_one(conn)
    .await?;
    Ok(if others && !known { Seen::New } else { Seen::Known })
}

pub(crate) async fn sweep(conn: &mut PgConnection, before: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let notices = sqlx::query("DELETE FROM app.notifications WHERE created_at < $1").bind(before).execute(&mut *conn);
    let gone = notices.await?.rows_affected();
    let devices = sqlx::query("DELETE FROM app.known_devices WHERE used_at < $1").bind(before).execute(conn);
    Ok(gone + devices.await?.rows_affected())
}
