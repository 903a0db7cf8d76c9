//! Accounts. They belong to the deployment, not to an organization (ACC-1), so nothing here has an
//! organization condition.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, UserId};

use crate::password::Due;

/// Why the person `u` has to choose another password now: `temporary`, `expired`, or NULL. Their organizations' policies
/// `password_policy` say how old one may be; the shortest counts. Reads a row per membership, by index.
macro_rules! password_due {
    ($now:literal) => {
        concat!(
            "(CASE WHEN u.password_hash IS NULL THEN NULL
                   WHEN u.must_change_password THEN 'temporary'
                   WHEN u.password_changed_at < ",
            $now,
            "::timestamptz - make_interval(days => (
                       SELECT min((r.value ->> 'rotationDays')::integer)
                         FROM app.memberships d
                         JOIN app.policies r ON r.org_id = d.org_id AND r.key = 'password_policy'
                        WHERE d.user_id = u.id AND d.role <> 'disabled' AND (r.value ->> 'rotationDays')::integer > 0))
                   THEN 'expired' END)"
        )
    };
}
pub(crate) use password_due;

/// An account as sign-in needs it.
#[derive(Debug, FromRow)]
pub(crate) struct AccountRow {
    pub(crate) id: UserId,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) password_hash: Option<String>,
    pub(crate) password_changed_at: Option<DateTime<Utc>>,
    pub(crate) last_org_id: Option<OrgId>,
}

/// A new account.
pub(crate) struct NewAccount<'a> {
    pub(crate) id: UserId,
    pub(crate) email: &'a str,
    pub(crate) name: &'a str,
    pub(crate) email_verified: bool,
    pub(crate) password_hash: Option<&'a str>,
    pub(crate) at: DateTime<Utc>,
}

/// Whether any account exists.
pub(crate) async fn any(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM app.users)").fetch_one(conn).await
}

/// Serializes what decides who is first, until the end of the transaction.
pub(crate) async fn lock_first_account(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    // A number of our own for this decision; the other advisory locks use other numbers.
    sqlx::query("SELECT pg_advisory_xact_lock(7421001)").execute(conn).await.map(drop)
}

/// Adds an account. `false`: the address has one already.
pub(crate) async fn insert(conn: &mut PgConnection, new: &NewAccount<'_>) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.users (id, email, name, email_verified, password_hash, password_changed_at, created_at)
         VALUES ($1, $2, $3, $4, $5, CASE WHEN $5::text IS NULL THEN NULL ELSE $6 END, $6)
         ON CONFLICT (email) DO NOTHING",
    )
    .bind(new.id)
    .bind(new.email)
    .bind(new.name)
    .bind(new.email_verified)
    .bind(new.password_hash)
    .bind(new.at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn by_email(conn: &mut PgConnection, email: &str) -> Result<Option<AccountRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, email, password_hash, password_changed_at, last_org_id FROM app.users WHERE email = $1",
    )
    .bind(email)
    .fetch_optional(conn)
    .await
}

pub(crate) async fn by_id(conn: &mut PgConnection, id: UserId) -> Result<Option<AccountRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, email, password_hash, password_changed_at, last_org_id FROM app.users WHERE id = $1",
    )
    .bind(id)
    .fetch_optional(conn)
    .await
}

/// The stored hash, locked against a change until the end of the transaction.
pub(crate) async fn locked_hash(conn: &mut PgConnection, id: UserId) -> Result<Option<String>, sqlx::Error> {
    let row: Option<(Option<String>,)> =
        sqlx::query_as("SELECT password_hash FROM app.users WHERE id = $1 FOR NO KEY UPDATE")
            .bind(id)
            .fetch_optional(conn)
            .await?;
    Ok(row.and_then(|(hash,)| hash))
}

/// Replaces the hash of the same password by a stronger one.
pub(crate) async fn set_rehash(conn: &mut PgConnection, id: UserId, hash: &str) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.users SET password_hash = $2 WHERE id = $1")
        .bind(id)
        .bind(hash)
        .execute(conn)
        .await
        .map(drop)
}

/// Stores the hash of another password. `temporary`: its owner has to replace it.
pub(crate) async fn set_password(
    conn: &mut PgConnection,
    id: UserId,
    hash: &str,
    temporary: bool,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.users SET password_hash = $2, password_changed_at = $3, must_change_password = $4 WHERE id = $1",
    )
    .bind(id)
    .bind(hash)
    .bind(at)
    .bind(temporary)
    .execute(conn)
    .await
    .map(drop)
}

/// Why a person has to choose another password now, if they have to.
pub(crate) async fn password_due_of(
    conn: &mut PgConnection,
    id: UserId,
    now: DateTime<Utc>,
) -> Result<Option<Due>, sqlx::Error> {
    let found: Option<Option<String>> =
        sqlx::query_scalar(concat!("SELECT ", password_due!("$2"), " FROM app.users u WHERE u.id = $1"))
            .bind(id)
            .bind(now)
            .fetch_optional(conn)
            .await?;
    Ok(Due::read(found.flatten().as_deref()))
}

/// Marks the password of an account as one that its owner has to replace.
pub(crate) async fn mark_temporary(conn: &mut PgConnection, id: UserId) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.users SET must_change_password = true WHERE id = $1").bind(id).execute(conn).await.map(drop)
}

pub(crate) async fn set_name(conn: &mut PgConnection, id: UserId, name: &str) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.users SET name = $2 WHERE id = $1").bind(id).bind(name).execute(conn).await.map(drop)
}

/// Remembers the organization used last, where the next sign-in lands.
pub(crate) async fn set_last_org(conn: &mut PgConnection, id: UserId, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.users SET last_org_id = $2 WHERE id = $1").bind(id).bind(org).execute(conn).await.map(drop)
}
