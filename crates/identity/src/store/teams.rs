//! Teams and who is in them.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, TeamId, UserId};

use crate::teams::TeamDeletion;

/// A team.
#[derive(Debug, FromRow)]
pub(crate) struct TeamRow {
    pub(crate) id: TeamId,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) members: i64,
    /// Whether the person who asks is in it.
    pub(crate) mine: bool,
    /// Whether a directory manages it.
    pub(crate) managed: bool,
}

/// Somebody in a team.
#[derive(Debug, FromRow)]
pub(crate) struct TeamMemberRow {
    pub(crate) user_id: UserId,
    pub(crate) name: String,
    pub(crate) email: String,
}

/// Every team by name, at most `limit`; `me` asks.
pub(crate) async fn list(
    conn: &mut PgConnection,
    org: OrgId,
    me: Option<UserId>,
    limit: i64,
) -> Result<Vec<TeamRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT t.id, t.name, t.description, t.created_at, count(m.user_id) AS members,
                coalesce(bool_or(m.user_id = $2), false) AS mine,
                t.source = 'scim' AND EXISTS (SELECT 1 FROM app.scim_settings WHERE org_id = $1 AND enabled) AS managed
           FROM app.teams t
           LEFT JOIN app.team_members m ON m.org_id = t.org_id AND m.team_id = t.id
          WHERE t.org_id = $1
          GROUP BY t.org_id, t.id
          ORDER BY t.name_key, t.id
          LIMIT $3",
    )
    .bind(org)
    .bind(me)
    .bind(limit)
    .fetch_all(conn)
    .await
}

pub(crate) async fn count(conn: &mut PgConnection, org: OrgId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM app.teams WHERE org_id = $1").bind(org).fetch_one(conn).await
}

/// Name and description.
pub(crate) async fn get(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
) -> Result<Option<(String, String)>, sqlx::Error> {
    sqlx::query_as("SELECT name, description FROM app.teams WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(team)
        .fetch_optional(conn)
        .await
}

/// Adds a team. `false`: the name is taken.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    name: (&str, &str),
    description: &str,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.teams (org_id, id, name, name_key, description, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (org_id, name_key) DO NOTHING",
    )
    .bind(org)
    .bind(team)
    .bind(name.0)
    .bind(name.1)
    .bind(description)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Renames and describes. `false`: another team has the name.
pub(crate) async fn update(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    name: (&str, &str),
    description: &str,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.teams
            SET name = $3, name_key = $4, description = $5
          WHERE org_id = $1 AND id = $2
            AND NOT EXISTS (SELECT 1 FROM app.teams WHERE org_id = $1 AND name_key = $4 AND id <> $2)",
    )
    .bind(org)
    .bind(team)
    .bind(name.0)
    .bind(name.1)
    .bind(description)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId, team: TeamId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.teams WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(team)
        .execute(conn)
        .await
        .map(drop)
}

/// What hangs on a team; `None` when there is no such team. Rules are those that are stored, whether their policy is on
/// or not.
pub(crate) async fn deletion(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    now: DateTime<Utc>,
) -> Result<Option<TeamDeletion>, sqlx::Error> {
    sqlx::query_as(
        "WITH rules AS (
             SELECT p.key, count(*) AS count
               FROM app.policies p, jsonb_path_query(p.value, '$.rules[*]') AS rule
              WHERE p.org_id = $1 AND p.key IN ('budgets', 'model_access', 'default_models')
                AND rule ->> 'scope' = 'team' AND lower(rule ->> 'scopeId') = $2::uuid::text
              GROUP BY p.key)
         SELECT (SELECT count(*) FROM app.team_members m WHERE m.org_id = $1 AND m.team_id = $2) AS members,
                (SELECT count(*) FROM app.api_keys k
                  WHERE k.org_id = $1 AND k.team_id = $2 AND k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > $3)) AS api_keys,
                (SELECT coalesce(sum(count), 0)::bigint FROM rules WHERE key = 'budgets') AS limits,
                (SELECT coalesce(sum(count), 0)::bigint FROM rules WHERE key <> 'budgets') AS model_rules
           FROM app.teams t
          WHERE t.org_id = $1 AND t.id = $2",
    )
    .bind(org)
    .bind(team)
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// Who is in a team, by name.
pub(crate) async fn members(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
) -> Result<Vec<TeamMemberRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT m.user_id, u.name, u.email
           FROM app.team_members m
           JOIN app.users u ON u.id = m.user_id
          WHERE m.org_id = $1 AND m.team_id = $2
          ORDER BY lower(u.name), m.user_id",
    )
    .bind(org)
    .bind(team)
    .fetch_all(conn)
    .await
}

pub(crate) async fn has(conn: &mut PgConnection, org: OrgId, team: TeamId, user: UserId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM app.team_members WHERE org_id = $1 AND team_id = $2 AND user_id = $3)",
    )
    .bind(org)
    .bind(team)
    .bind(user)
    .fetch_one(conn)
    .await
}

/// Those of `people` who belong to the organization, with their addresses.
pub(crate) async fn of_organization(
    conn: &mut PgConnection,
    org: OrgId,
    people: &[UserId],
) -> Result<Vec<(UserId, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT m.user_id, u.email
           FROM app.memberships m
           JOIN app.users u ON u.id = m.user_id
          WHERE m.org_id = $1 AND m.user_id = ANY ($2)",
    )
    .bind(org)
    .bind(people)
    .fetch_all(conn)
    .await
}

/// Puts people into a team; returns those who were not in it.
pub(crate) async fn add(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    people: &[UserId],
    at: DateTime<Utc>,
) -> Result<Vec<UserId>, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO app.team_members (org_id, team_id, user_id, created_at)
         SELECT $1, $2, person, $4 FROM unnest($3::uuid[]) AS person
         ON CONFLICT DO NOTHING
         RETURNING user_id",
    )
    .bind(org)
    .bind(team)
    .bind(people)
    .bind(at)
    .fetch_all(conn)
    .await
}

/// Takes somebody out of a team.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId, team: TeamId, user: UserId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.team_members WHERE org_id = $1 AND team_id = $2 AND user_id = $3")
        .bind(org)
        .bind(team)
        .bind(user)
        .execute(conn)
        .await
        .map(drop)
}
