//! Second factors: authenticator apps, backup codes, sign-ins that wait for one. They belong to a person,
//! not to an organization, so nothing here has an organization condition.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgPool};
use tale_core::ids::{OrgId, UserId};
use uuid::Uuid;

/// Whether a policy keeps the person of user row `u` out of the organization of membership `m` at `$now`: it wants a
/// second factor, there is none, and the grace is over. NULL: it wants one, and the grace has not begun.
macro_rules! walled {
    ($now:literal) => {
        concat!(
            "(CASE WHEN EXISTS (
                SELECT 1 FROM app.policies p
                 WHERE p.org_id = m.org_id AND p.key = 'two_factor_policy' AND (p.value ->> 'enforced')::boolean
                   AND NOT (u.password_hash IS NULL AND (p.value ->> 'exemptSsoUsers')::boolean))
              AND NOT EXISTS (SELECT 1 FROM app.totp_secrets t WHERE t.user_id = u.id AND t.confirmed_at IS NOT NULL)
              AND NOT EXISTS (SELECT 1 FROM app.passkeys k WHERE k.user_id = u.id)
             THEN u.two_factor_grace_until <= ",
            $now,
            " ELSE false END)"
        )
    };
}
pub(crate) use walled;

/// A person's authenticator app.
#[derive(Debug, FromRow)]
pub(crate) struct TotpRow {
    pub(crate) secret: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) confirmed_at: Option<DateTime<Utc>>,
    pub(crate) last_step: i64,
}

/// The authenticator app of a person, set up or being set up.
pub(crate) async fn totp(conn: &mut PgConnection, user: UserId) -> Result<Option<TotpRow>, sqlx::Error> {
    sqlx::query_as("SELECT secret, created_at, confirmed_at, last_step FROM app.totp_secrets WHERE user_id = $1")
        .bind(user)
        .fetch_optional(conn)
        .await
}

/// Begins the set-up of an authenticator app in place of one that was begun before. `false`: there is one that works.
pub(crate) async fn begin_totp(
    conn: &mut PgConnection,
    user: UserId,
    secret: &str,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.totp_secrets AS t (user_id, secret, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (user_id) DO UPDATE SET secret = $2, created_at = $3, last_step = 0
          WHERE t.confirmed_at IS NULL",
    )
    .bind(user)
    .bind(secret)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Turns the app on that was begun with `secret`, by the code of `step`. `false`: it is on, or another was begun.
pub(crate) async fn confirm_totp(
    conn: &mut PgConnection,
    user: UserId,
    secret: &str,
    step: i64,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.totp_secrets SET confirmed_at = $4, last_step = $3
          WHERE user_id = $1 AND secret = $2 AND confirmed_at IS NULL",
    )
    .bind(user)
    .bind(secret)
    .bind(step)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that the code of `step` was used. `false`: it or a later one was used before.
pub(crate) async fn use_step(conn: &mut PgConnection, user: UserId, step: i64) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.totp_secrets SET last_step = $2 WHERE user_id = $1 AND last_step < $2 AND confirmed_at IS NOT NULL",
    )
    .bind(user)
    .bind(step)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes the authenticator app with the backup codes. Returns whether it was on.
pub(crate) async fn delete_totp(conn: &mut PgConnection, user: UserId) -> Result<bool, sqlx::Error> {
    let was: Option<Option<DateTime<Utc>>> =
        sqlx::query_scalar("DELETE FROM app.totp_secrets WHERE user_id = $1 RETURNING confirmed_at")
            .bind(user)
            .fetch_optional(conn)
            .await?;
    Ok(was.flatten().is_some())
}

/// Puts these backup codes in the place of all before.
pub(crate) async fn replace_codes(
    conn: &mut PgConnection,
    user: UserId,
    hashes: &[Vec<u8>],
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.backup_codes WHERE user_id = $1").bind(user).execute(&mut *conn).await?;
    sqlx::query("INSERT INTO app.backup_codes (user_id, code_hash) SELECT $1, unnest($2::bytea[])")
        .bind(user)
        .bind(hashes)
        .execute(conn)
        .await
        .map(drop)
}

/// Uses a backup code up. `false`: there is none such, or it was used.
pub(crate) async fn use_code(
    conn: &mut PgConnection,
    user: UserId,
    hash: &[u8; 32],
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.backup_codes SET used_at = $3 WHERE user_id = $1 AND code_hash = $2 AND used_at IS NULL",
    )
    .bind(user)
    .bind(hash.as_slice())
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many backup codes are left.
pub(crate) async fn codes_left(conn: &mut PgConnection, user: UserId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM app.backup_codes WHERE user_id = $1 AND used_at IS NULL")
        .bind(user)
        .fetch_one(conn)
        .await
}

/// Whether the person has an authenticator app that is on, and whether they have a passkey.
pub(crate) async fn held(conn: &mut PgConnection, user: UserId) -> Result<(bool, bool), sqlx::Error> {
    sqlx::query_as(
        "SELECT EXISTS (SELECT 1 FROM app.totp_secrets WHERE user_id = $1 AND confirmed_at IS NOT NULL),
                EXISTS (SELECT 1 FROM app.passkeys WHERE user_id = $1)",
    )
    .bind(user)
    .fetch_one(conn)
    .await
}

/// A sign-in whose second factor is open.
#[derive(Debug, FromRow)]
pub(crate) struct PendingRow {
    pub(crate) id: Uuid,
    pub(crate) user_id: UserId,
    pub(crate) persistent: bool,
}

/// Remembers that the password of `user` was right.
pub(crate) async fn insert_pending(
    conn: &mut PgConnection,
    pending: &PendingRow,
    token_hash: &[u8; 32],
    at: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.pending_sign_ins (id, token_hash, user_id, persistent, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(pending.id)
    .bind(token_hash.as_slice())
    .bind(pending.user_id)
    .bind(pending.persistent)
    .bind(at)
    .bind(until)
    .execute(conn)
    .await
    .map(drop)
}

/// The sign-in of a token that still waits.
pub(crate) async fn pending(
    conn: &mut PgConnection,
    token_hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Option<PendingRow>, sqlx::Error> {
    sqlx::query_as("SELECT id, user_id, persistent FROM app.pending_sign_ins WHERE token_hash = $1 AND expires_at > $2")
        .bind(token_hash.as_slice())
        .bind(now)
        .fetch_optional(conn)
        .await
}

/// Ends a sign-in that waited. `false`: it had ended.
pub(crate) async fn end_pending(conn: &mut PgConnection, id: Uuid) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.pending_sign_ins WHERE id = $1").bind(id).execute(conn).await?;
    Ok(done.rows_affected() == 1)
}

/// Ends every sign-in of the person that waits.
pub(crate) async fn end_all_pending(conn: &mut PgConnection, user: UserId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.pending_sign_ins WHERE user_id = $1").bind(user).execute(conn).await.map(drop)
}

/// Removes what ended before `now`: sign-ins that wait, challenges. Returns how many.
pub(crate) async fn sweep(conn: &mut PgConnection, now: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let waiting = sqlx::query("DELETE FROM app.pending_sign_ins WHERE expires_at <= $1");
    let waiting = waiting.bind(now).execute(&mut *conn).await?.rows_affected();
    let spent = sqlx::query("DELETE FROM app.spent_challenges WHERE expires_at <= $1").bind(now).execute(conn).await?;
    Ok(waiting + spent.rows_affected())
}

/// Spends a challenge. `false`: it was spent before.
pub(crate) async fn spend_challenge(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    until: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.spent_challenges (challenge_hash, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(hash.as_slice())
    .bind(until)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Begins the grace of a person who has none yet: the shortest that an organization of theirs gives. Returns its end.
pub(crate) async fn begin_grace(
    conn: &mut PgConnection,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar(
        "WITH begun AS (
             UPDATE app.users u
                SET two_factor_grace_until = (
                    SELECT $2 + min((p.value ->> 'gracePeriodDays')::integer) * interval '1 day'
                      FROM app.memberships m
                      JOIN app.policies p ON p.org_id = m.org_id AND p.key = 'two_factor_policy'
                     WHERE m.user_id = u.id AND m.role <> 'disabled' AND (p.value ->> 'enforced')::boolean)
              WHERE u.id = $1 AND u.two_factor_grace_until IS NULL
             RETURNING two_factor_grace_until)
         SELECT COALESCE((SELECT two_factor_grace_until FROM begun),
                         (SELECT two_factor_grace_until FROM app.users WHERE id = $1))",
    )
    .bind(user)
    .bind(now)
    .fetch_one(conn)
    .await
}

/// The organizations of a person whose policy wants a factor of somebody who has none.
pub(crate) async fn wanting(conn: &mut PgConnection, user: UserId) -> Result<Vec<OrgId>, sqlx::Error> {
    sqlx::query_scalar(concat!(
        "SELECT m.org_id
           FROM app.memberships m
           JOIN app.users u ON u.id = m.user_id
          WHERE m.user_id = $1 AND m.role <> 'disabled' AND ",
        walled!("'infinity'"),
        " IS NOT FALSE",
    ))
    .bind(user)
    .fetch_all(conn)
    .await
}

/// A stored secret for the change of keys.
#[derive(Debug, FromRow)]
pub(crate) struct SealedRow {
    pub(crate) user_id: UserId,
    pub(crate) secret: String,
}

/// The next stored secrets after `after`, for the change of keys. Looks across people.
pub(crate) async fn sealed_after(
    pool: &PgPool,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<SealedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT user_id, secret FROM app.totp_secrets WHERE $1::uuid IS NULL OR user_id > $1 ORDER BY user_id LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(pool)
    .await
}

/// Stores a secret encrypted anew, unless another took its place.
pub(crate) async fn reseal(pool: &PgPool, row: &SealedRow, sealed: &str) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("UPDATE app.totp_secrets SET secret = $3 WHERE user_id = $1 AND secret = $2")
        .bind(row.user_id)
        .bind(&row.secret)
        .bind(sealed)
        .execute(pool)
        .await?;
    Ok(done.rows_affected() == 1)
}
