//! The policies of a person's organizations that act before one of them is chosen.

use serde_json::Value;
use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};

/// The policy `key` of each organization of a person; `None` where an organization has none. Looks across
/// organizations.
pub(crate) async fn of_person(
    conn: &mut PgConnection,
    user: UserId,
    key: &str,
) -> Result<Vec<Option<Value>>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT p.value
           FROM app.memberships m
           LEFT JOIN app.policies p ON p.org_id = m.org_id AND p.key = $2
          WHERE m.user_id = $1 AND m.role <> 'disabled'",
    )
    .bind(user)
    .bind(key)
    .fetch_all(conn)
    .await
}

/// [`of_person`] for the account of an address; nothing for an address without one.
pub(crate) async fn of_address(
    conn: &mut PgConnection,
    email: &str,
    key: &str,
) -> Result<Vec<Option<Value>>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT p.value
           FROM app.users u
           JOIN app.memberships m ON m.user_id = u.id AND m.role <> 'disabled'
           LEFT JOIN app.policies p ON p.org_id = m.org_id AND p.key = $2
          WHERE u.email = $1",
    )
    .bind(email)
    .bind(key)
    .fetch_all(conn)
    .await
}

/// The policy `key` of one organization.
pub(crate) async fn of_organization(
    conn: &mut PgConnection,
    org: OrgId,
    key: &str,
) -> Result<Option<Value>, sqlx::Error> {
    sqlx::query_scalar("SELECT value FROM app.policies WHERE org_id = $1 AND key = $2")
        .bind(org)
        .bind(key)
        .fetch_optional(conn)
        .await
}
