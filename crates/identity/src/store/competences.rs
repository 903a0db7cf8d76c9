//! Grants of competences.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, UserId};
use uuid::Uuid;

use crate::competences::{Grant, GrantStatus};

/// The platform's capabilities that the member `m` holds by competence at `$now`; NULL where there are none, and for
/// roles that leave nothing to competences. Reads a row per grant, by index, and only of the others.
macro_rules! held_competences {
    ($now:literal) => {
        concat!(
            "(SELECT array_agg(g.competence) FROM app.competence_grants g
               WHERE m.role IN ('member', 'editor', 'developer') AND g.org_id = m.org_id AND g.user_id = m.user_id
                 AND g.revoked_at IS NULL AND g.competence LIKE 'tale:%' AND (g.expires_at IS NULL OR g.expires_at > ",
            $now,
            "))"
        )
    };
}
pub(crate) use held_competences;

/// A new grant.
pub(crate) struct NewRow<'a> {
    pub(crate) id: Uuid,
    pub(crate) org: OrgId,
    pub(crate) user: UserId,
    pub(crate) competence: &'a str,
    pub(crate) evidence: &'a str,
    pub(crate) by: Option<UserId>,
    pub(crate) at: DateTime<Utc>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

/// A grant that ended.
#[derive(Debug, FromRow)]
pub(crate) struct EndedRow {
    pub(crate) id: Uuid,
    pub(crate) user_id: UserId,
    pub(crate) email: String,
    pub(crate) competence: String,
}

/// A grant as it is listed.
#[derive(Debug, FromRow)]
pub(crate) struct GrantRow {
    id: Uuid,
    user_id: UserId,
    name: String,
    email: String,
    member: bool,
    competence: String,
    evidence: String,
    granted_by: Option<String>,
    granted_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_by: Option<String>,
    revoked_at: Option<DateTime<Utc>>,
    revoke_reason: Option<String>,
}

impl GrantRow {
    pub(crate) fn grant(self, now: DateTime<Utc>) -> Grant {
        let status = match (self.revoked_at, self.expires_at) {
            (Some(_), _) => GrantStatus::Revoked,
            (None, Some(end)) if end <= now => GrantStatus::Expired,
            (None, _) => GrantStatus::Active,
        };
        Grant {
            id: self.id,
            user: self.user_id,
            name: self.name,
            email: self.email,
            member: self.member,
            competence: self.competence,
            evidence: self.evidence,
            granted_by: self.granted_by,
            granted_at: self.granted_at,
            expires_at: self.expires_at,
            revoked_by: self.revoked_by,
            revoked_at: self.revoked_at,
            revoke_reason: self.revoke_reason,
            status,
        }
    }
}

/// When the grant of a competence that was not revoked ends; `None`: there is none.
pub(crate) async fn live(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    competence: &str,
) -> Result<Option<Option<DateTime<Utc>>>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT expires_at FROM app.competence_grants
          WHERE org_id = $1 AND user_id = $2 AND competence = $3 AND revoked_at IS NULL",
    )
    .bind(org)
    .bind(user)
    .bind(competence)
    .fetch_optional(conn)
    .await
}

pub(crate) async fn insert(conn: &mut PgConnection, new: &NewRow<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.competence_grants (id, org_id, user_id, competence, evidence, granted_by, granted_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(new.id)
    .bind(new.org)
    .bind(new.user)
    .bind(new.competence)
    .bind(new.evidence)
    .bind(new.by)
    .bind(new.at)
    .bind(new.expires_at)
    .execute(conn)
    .await
    .map(drop)
}

/// Revokes one grant; `None`: not there, or revoked before.
pub(crate) async fn revoke(
    conn: &mut PgConnection,
    org: OrgId,
    id: Uuid,
    by: Option<UserId>,
    at: DateTime<Utc>,
) -> Result<Option<EndedRow>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE app.competence_grants g SET revoked_at = $4, revoked_by = $3, revoke_reason = 'revoked'
           FROM app.users u
          WHERE g.org_id = $1 AND g.id = $2 AND g.revoked_at IS NULL AND u.id = g.user_id
         RETURNING g.id, g.user_id, u.email, g.competence",
    )
    .bind(org)
    .bind(id)
    .bind(by)
    .bind(at)
    .fetch_optional(conn)
    .await
}

/// Ends what is granted to a person: one competence, or all.
pub(crate) async fn end(
    conn: &mut PgConnection,
    (org, user): (OrgId, UserId),
    competence: Option<&str>,
    by: Option<UserId>,
    reason: &str,
    at: DateTime<Utc>,
) -> Result<Vec<EndedRow>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE app.competence_grants g SET revoked_at = $6, revoked_by = $4, revoke_reason = $5
           FROM app.users u
          WHERE g.org_id = $1 AND g.user_id = $2 AND g.revoked_at IS NULL AND ($3::text IS NULL OR g.competence = $3)
            AND u.id = g.user_id
         RETURNING g.id, g.user_id, u.email, g.competence",
    )
    .bind(org)
    .bind(user)
    .bind(competence)
    .bind(by)
    .bind(reason)
    .bind(at)
    .fetch_all(conn)
    .await
}

/// Every grant that was not revoked, and at most `revoked` that were, the newest first.
pub(crate) async fn list(
    conn: &mut PgConnection,
    org: OrgId,
    user: Option<UserId>,
    revoked: i64,
) -> Result<Vec<GrantRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT g.id, g.user_id, u.name, u.email, m.user_id IS NOT NULL AS member, g.competence, g.evidence,
                b.name AS granted_by, g.granted_at, g.expires_at, r.name AS revoked_by, g.revoked_at, g.revoke_reason
           FROM (SELECT * FROM app.competence_grants
                  WHERE org_id = $1 AND revoked_at IS NULL AND ($2::uuid IS NULL OR user_id = $2)
                  UNION ALL
                 (SELECT * FROM app.competence_grants
                   WHERE org_id = $1 AND revoked_at IS NOT NULL AND ($2::uuid IS NULL OR user_id = $2)
                   ORDER BY revoked_at DESC, id DESC LIMIT $3)) g
           JOIN app.users u ON u.id = g.user_id
           LEFT JOIN app.memberships m ON m.org_id = g.org_id AND m.user_id = g.user_id
           LEFT JOIN app.users b ON b.id = g.granted_by
           LEFT JOIN app.users r ON r.id = g.revoked_by
          ORDER BY g.granted_at DESC, g.id DESC",
    )
    .bind(org)
    .bind(user)
    .bind(revoked)
    .fetch_all(conn)
    .await
}
