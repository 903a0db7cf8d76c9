//! API keys. A personal key belongs to a person and works in every organization of theirs, so the
//! holder stands where tenant tables have the organization; every other key belongs to one organization.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};

use crate::keys::KeyKind;
use crate::permissions::Role;

/// A key as it is listed.
#[derive(Debug, FromRow)]
pub(crate) struct KeyRow {
    pub(crate) id: ApiKeyId,
    #[sqlx(try_from = "String")]
    pub(crate) kind: KeyKind,
    pub(crate) name: String,
    pub(crate) first_chars: String,
    pub(crate) last_chars: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
    pub(crate) replaced: bool,
    pub(crate) user_id: Option<UserId>,
    pub(crate) role: Option<String>,
    /// The name of the member or the team.
    pub(crate) holder: Option<String>,
    pub(crate) maker: Option<String>,
}

/// A new key.
pub(crate) struct NewKeyRow<'a> {
    pub(crate) id: ApiKeyId,
    pub(crate) kind: KeyKind,
    pub(crate) user: Option<UserId>,
    pub(crate) org: Option<OrgId>,
    pub(crate) team: Option<TeamId>,
    pub(crate) role: Option<Role>,
    pub(crate) maker: Option<UserId>,
    pub(crate) hash: &'a [u8; 32],
    pub(crate) first: &'a str,
    pub(crate) last: &'a str,
    pub(crate) name: &'a str,
    pub(crate) at: DateTime<Utc>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

/// A key, held until the transaction ends.
#[derive(Debug, FromRow)]
pub(crate) struct HeldKey {
    #[sqlx(try_from = "String")]
    pub(crate) kind: KeyKind,
    pub(crate) name: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) replaced: bool,
    pub(crate) user_id: Option<UserId>,
    pub(crate) team_id: Option<TeamId>,
    pub(crate) role: Option<String>,
}

/// A live key and one organization where it may work; without any there is one row of nothing.
#[derive(Debug, FromRow)]
pub(crate) struct ResolvedRow {
    pub(crate) id: ApiKeyId,
    #[sqlx(try_from = "String")]
    pub(crate) kind: KeyKind,
    pub(crate) user_id: Option<UserId>,
    pub(crate) user_name: Option<String>,
    pub(crate) user_email: Option<String>,
    pub(crate) team_id: Option<TeamId>,
    pub(crate) maker_id: Option<UserId>,
    pub(crate) name: String,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
    pub(crate) org_id: Option<OrgId>,
    pub(crate) org_slug: Option<String>,
    pub(crate) org_name: Option<String>,
    /// The holder's role in the organization, or that of the key.
    pub(crate) role: Option<String>,
    /// What the holder has of the platform's capabilities by competence there.
    pub(crate) competences: Option<Vec<String>>,
}

/// A key that ended by itself.
#[derive(Debug, FromRow)]
pub(crate) struct EndedKey {
    pub(crate) id: ApiKeyId,
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Whether a member's key `k` still has its ground: the holder `m` is a member, and the maker `b` owner or admin
/// and above them.
macro_rules! grounded {
    () => {
        "(m.user_id IS NOT NULL AND b.role IN ('owner', 'admin')
          AND array_position(ARRAY['disabled', 'member', 'editor', 'developer', 'admin', 'owner'], b.role)
            > array_position(ARRAY['disabled', 'member', 'editor', 'developer', 'admin', 'owner'], m.role))"
    };
}

/// Which keys somebody may see and end: their own, those made for them, and those of the organization when
/// they may (KEY-3, KEY-7). $1 the organization, $2 the person, $3 whether they may.
macro_rules! within_reach {
    () => {
        "((k.org_id IS NULL AND k.user_id = $2) OR (k.org_id = $1 AND (k.user_id = $2 OR $3)))"
    };
}

pub(crate) async fn insert(conn: &mut PgConnection, new: &NewKeyRow<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.api_keys (id, kind, user_id, org_id, team_id, role, maker_id, hash, first_chars, last_chars, name,
                                   created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(new.id)
    .bind(new.kind.text())
    .bind(new.user)
    .bind(new.org)
    .bind(new.team)
    .bind(new.role.map(Role::text))
    .bind(new.maker)
    .bind(new.hash.as_slice())
    .bind(new.first)
    .bind(new.last)
    .bind(new.name)
    .bind(new.at)
    .bind(new.expires_at)
    .execute(conn)
    .await
    .map(drop)
}

/// How many keys that are not revoked there are: of the organization, or else of the person alone.
pub(crate) async fn count(conn: &mut PgConnection, org: Option<OrgId>, user: UserId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT count(*) FROM app.api_keys
          WHERE revoked_at IS NULL AND (org_id = $1 OR ($1 IS NULL AND org_id IS NULL AND user_id = $2))",
    )
    .bind(org)
    .bind(user)
    .fetch_one(conn)
    .await
}

/// The keys that are not revoked and that a person may see, newest first. `all`: those of the organization too.
pub(crate) async fn list(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    all: bool,
) -> Result<Vec<KeyRow>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT k.id, k.kind, k.name, k.first_chars, k.last_chars, k.created_at, k.expires_at, k.last_used_at,
                k.replaced_at IS NOT NULL AS replaced, k.user_id, k.role, coalesce(u.name, t.name) AS holder, b.name AS maker
           FROM app.api_keys k
           LEFT JOIN app.users u ON u.id = k.user_id
           LEFT JOIN app.teams t ON t.org_id = k.org_id AND t.id = k.team_id
           LEFT JOIN app.users b ON b.id = k.maker_id
          WHERE k.revoked_at IS NULL AND ",
        within_reach!(),
        " ORDER BY k.created_at DESC, k.id DESC",
    ))
    .bind(org)
    .bind(user)
    .bind(all)
    .fetch_all(conn)
    .await
}

/// Revokes a key within reach of a person; returns its name and kind. `None`: not within reach, or revoked before.
pub(crate) async fn revoke(
    conn: &mut PgConnection,
    (org, user, all): (OrgId, UserId, bool),
    id: ApiKeyId,
    at: DateTime<Utc>,
) -> Result<Option<(String, String)>, sqlx::Error> {
    sqlx::query_as(concat!(
        "UPDATE app.api_keys k
            SET revoked_at = $5, revoke_reason = 'holder'
          WHERE k.id = $4 AND k.revoked_at IS NULL AND ",
        within_reach!(),
        " RETURNING k.name, k.kind",
    ))
    .bind(org)
    .bind(user)
    .bind(all)
    .bind(id)
    .bind(at)
    .fetch_optional(conn)
    .await
}

/// A key within reach of a person that is live or was replaced.
pub(crate) async fn live(
    conn: &mut PgConnection,
    (org, user, all): (OrgId, UserId, bool),
    id: ApiKeyId,
    now: DateTime<Utc>,
) -> Result<Option<HeldKey>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT k.kind, k.name, k.created_at, k.expires_at, k.replaced_at IS NOT NULL AS replaced, k.user_id, k.team_id, k.role
           FROM app.api_keys k
          WHERE k.id = $4 AND k.revoked_at IS NULL
            AND (k.expires_at IS NULL OR k.expires_at > $5 OR k.replaced_at IS NOT NULL) AND ",
        within_reach!(),
        " FOR UPDATE",
    ))
    .bind(org)
    .bind(user)
    .bind(all)
    .bind(id)
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// Marks a key as replaced and lets it end at `until` at the latest. The key was found with [`live`].
pub(crate) async fn replace(
    conn: &mut PgConnection,
    id: ApiKeyId,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.api_keys SET replaced_at = $2, expires_at = least(coalesce(expires_at, $3), $3) WHERE id = $1",
    )
    .bind(id)
    .bind(now)
    .bind(until)
    .execute(conn)
    .await
    .map(drop)
}

/// Ends the keys of a team that goes.
pub(crate) async fn end_of_team(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    at: DateTime<Utc>,
) -> Result<Vec<EndedKey>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE app.api_keys SET revoked_at = $3, revoke_reason = 'team-deleted'
          WHERE org_id = $1 AND team_id = $2 AND revoked_at IS NULL
         RETURNING id, name, revoke_reason AS reason",
    )
    .bind(org)
    .bind(team)
    .bind(at)
    .fetch_all(conn)
    .await
}

/// Ends the keys for members of an organization that lost their ground.
pub(crate) async fn end_groundless(
    conn: &mut PgConnection,
    org: OrgId,
    at: DateTime<Utc>,
) -> Result<Vec<EndedKey>, sqlx::Error> {
    sqlx::query_as(concat!(
        "UPDATE app.api_keys k
            SET revoked_at = $2, revoke_reason = lost.reason
           FROM (SELECT k.id, CASE WHEN m.user_id IS NULL THEN 'holder-left'
                                   WHEN b.user_id IS NULL THEN 'maker-left'
                                   WHEN b.role NOT IN ('owner', 'admin') THEN 'maker-lost-role'
                                   ELSE 'maker-not-above-holder' END AS reason
                   FROM app.api_keys k
                   LEFT JOIN app.memberships m ON m.org_id = k.org_id AND m.user_id = k.user_id
                   LEFT JOIN app.memberships b ON b.org_id = k.org_id AND b.user_id = k.maker_id
                  WHERE k.org_id = $1 AND k.kind = 'member' AND k.revoked_at IS NULL
                    AND ",
        grounded!(),
        " IS NOT TRUE) lost
          WHERE k.org_id = $1 AND k.id = lost.id
         RETURNING k.id, k.name, k.revoke_reason AS reason",
    ))
    .bind(org)
    .bind(at)
    .fetch_all(conn)
    .await
}

/// The key of a digest with whose it is and every organization where it may work: one look-up by unique index.
pub(crate) async fn resolve(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Vec<ResolvedRow>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT k.id, k.kind, k.user_id, u.name AS user_name, u.email AS user_email, k.team_id, k.maker_id, k.name,
                k.expires_at, k.last_used_at, o.id AS org_id, o.slug AS org_slug, o.name AS org_name,
                coalesce(k.role, m.role) AS role, ",
        super::competences::held_competences!("$2"),
        " AS competences
           FROM app.api_keys k
           LEFT JOIN app.users u ON u.id = k.user_id
           LEFT JOIN app.memberships m ON m.user_id = k.user_id AND (k.org_id IS NULL OR m.org_id = k.org_id)
           LEFT JOIN app.memberships b ON b.org_id = k.org_id AND b.user_id = k.maker_id
           LEFT JOIN app.organizations o ON o.id = coalesce(k.org_id, m.org_id) AND o.deleted_at IS NULL
          WHERE k.hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
            AND (k.kind <> 'member' OR ",
        grounded!(),
        ")
            AND (k.kind <> 'team' OR k.team_id IS NOT NULL)
            AND (k.org_id IS NULL OR o.id IS NOT NULL)
          ORDER BY lower(o.name), o.id",
    ))
    .bind(hash.as_slice())
    .bind(now)
    .fetch_all(conn)
    .await
}

/// Notes a use. Of simultaneous requests one writes.
pub(crate) async fn touch(
    conn: &mut PgConnection,
    id: ApiKeyId,
    seen: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.api_keys SET last_used_at = $3 WHERE id = $1 AND last_used_at IS NOT DISTINCT FROM $2")
        .bind(id)
        .bind(seen)
        .bind(now)
        .execute(conn)
        .await
        .map(drop)
}

/// A key that rules can name, and whose it is.
#[derive(sqlx::FromRow)]
pub(crate) struct NamedKey {
    pub(crate) id: ApiKeyId,
    pub(crate) name: String,
    /// The member, the team or the organization.
    pub(crate) holder: String,
}

/// The keys that work in an organization now, by holder and name; at most `limit`.
pub(crate) async fn working_in(
    conn: &mut PgConnection,
    org: OrgId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<NamedKey>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, holder
           FROM (SELECT k.id, k.name, u.name AS holder
                   FROM app.memberships m
                   JOIN app.users u ON u.id = m.user_id
                   JOIN app.api_keys k ON k.user_id = m.user_id AND (k.org_id IS NULL OR k.org_id = m.org_id)
                  WHERE m.org_id = $1 AND m.role <> 'disabled' AND k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > $3)
                  UNION ALL
                 SELECT k.id, k.name, coalesce(t.name, o.name)
                   FROM app.api_keys k
                   JOIN app.organizations o ON o.id = k.org_id
                   LEFT JOIN app.teams t ON t.org_id = k.org_id AND t.id = k.team_id
                  WHERE k.org_id = $1 AND k.user_id IS NULL AND k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > $3)) named
          ORDER BY lower(holder), lower(name), id
          LIMIT $2",
    )
    .bind(org)
    .bind(limit)
    .bind(now)
    .fetch_all(conn)
    .await
}

/// The keys that rules of an organization name and that do not work there, with the name and what became of them. What
/// belongs to another organization is unknown here: a key counts as known when it is the organization's own or a member's,
/// or when the organization's log names it, which is read (by category) for those that are neither.
pub(crate) async fn gone_in(
    conn: &mut PgConnection,
    org: OrgId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(ApiKeyId, Option<String>, String)>, sqlx::Error> {
    sqlx::query_as(
        "WITH named AS (
             SELECT DISTINCT t.target::uuid AS id
               FROM app.policies p
              CROSS JOIN LATERAL jsonb_array_elements(
                        CASE jsonb_typeof(p.value -> 'rules') WHEN 'array' THEN p.value -> 'rules' ELSE '[]' END) AS r (rule)
              CROSS JOIN LATERAL (SELECT COALESCE(r.rule ->> 'apiKeyId', CASE r.rule ->> 'scope' WHEN 'apiKey'
                                                 THEN r.rule ->> 'scopeId' END)) AS t (target)
              WHERE p.org_id = $1 AND p.key IN ('budgets', 'model_access', 'default_models')
                AND t.target ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
              LIMIT $3),
         seen AS (
             SELECT n.id, k.name, k.revoked_at, k.revoke_reason, k.expires_at, k.id IS NOT NULL AS stored, k.user_id IS NULL AS nobodys,
                    m.role, k.org_id IS NOT DISTINCT FROM $1 OR m.user_id IS NOT NULL AS ours
               FROM named n
               LEFT JOIN app.api_keys k ON k.id = n.id
               LEFT JOIN app.memberships m ON m.org_id = $1 AND m.user_id = k.user_id
                                          AND (k.org_id IS NULL OR k.org_id = $1)),
         -- The log is read once, however many keys are asked for.
         recorded AS (
             SELECT a.resource_id AS id, max((a.action = 'api_key.revoked')::integer) AS recorded
               FROM app.audit_entries a
              WHERE a.org_id = $1 AND a.category = 'security' AND a.resource_type = 'api_key'
                AND a.resource_id = ANY (ARRAY(SELECT s.id::text FROM seen s WHERE NOT (s.stored AND s.ours)))
              GROUP BY a.resource_id),
         told AS (
             SELECT s.*, r.recorded FROM seen s LEFT JOIN recorded r ON r.id = s.id::text),
         judged AS (
             SELECT id, name, stored AND (ours OR recorded IS NOT NULL) AS known,
                    CASE WHEN NOT stored THEN CASE recorded WHEN 1 THEN 'revoked' WHEN 0 THEN 'unavailable' ELSE 'unknown' END
                         WHEN NOT ours AND recorded IS NULL THEN 'unknown'
                         WHEN revoke_reason = 'holder-left' THEN 'former-member'
                         WHEN revoked_at IS NOT NULL AND (ours OR recorded = 1) THEN 'revoked'
                         WHEN NOT nobodys AND role IS NULL THEN 'former-member'
                         WHEN role = 'disabled' THEN 'disabled'
                         WHEN expires_at <= $2 THEN 'expired' END AS status
               FROM told)
         SELECT id, CASE WHEN known THEN name END, status FROM judged WHERE status IS NOT NULL ORDER BY id",
    )
    .bind(org)
    .bind(now)
    .bind(limit)
    .fetch_all(conn)
    .await
}
