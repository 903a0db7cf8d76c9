//! What every change of a document leaves behind in its transaction: an audit entry and hints.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::{DocumentId, FileId, OrgId};
use tale_db::hints::{Hint, Topic, notify, notify_all};
use tale_governance::audit::{self, AuditEntry};
use tale_identity::Caller;

use crate::store::documents;

/// What was done to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Created,
    Renamed,
    Trashed,
    Restored,
    Purged,
}

impl Act {
    fn action(self) -> &'static str {
        match self {
            Self::Created => "document.create",
            Self::Renamed => "document.rename",
            Self::Trashed => "document.delete",
            Self::Restored => "document.restore",
            Self::Purged => "document.purge",
        }
    }
}

/// Records an act of `caller` and tells open document lists.
pub(crate) async fn record(
    conn: &mut PgConnection,
    caller: &Caller,
    act: Act,
    id: DocumentId,
    title: &str,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    record_as(conn, caller.org, caller.actor(), act, id, title, at).await
}

/// As [`record`], for acts of the platform itself.
pub(crate) async fn record_as(
    conn: &mut PgConnection,
    org: OrgId,
    actor: Actor,
    act: Act,
    id: DocumentId,
    title: &str,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let entry = AuditEntry {
        org: Some(org),
        actor,
        action: act.action(),
        category: "data",
        resource_type: "document",
        resource_id: Some(id.to_string()),
        details: serde_json::json!({ "title": title }),
        at,
    };
    audit::record(conn, &entry).await?;
    notify_all(conn, &[Hint::new(org, Topic::Documents), Hint::new(org, Topic::Document).id(id.0)]).await
}

/// Tells whoever looks at the document.
pub(crate) async fn hint_document(conn: &mut PgConnection, org: OrgId, id: DocumentId) -> Result<(), sqlx::Error> {
    notify(conn, &Hint::new(org, Topic::Document).id(id.0)).await
}

/// Tells whoever looks at the document that holds the file, or at the file as a chat's upload
/// (IDX-16).
pub(crate) async fn hint_file(conn: &mut PgConnection, org: OrgId, file: FileId) -> Result<(), sqlx::Error> {
    let held = documents::holding(conn, org, file).await?;
    hint_held(conn, org, file, held.map(|(id, active, _)| (id, active))).await
}

/// As [`hint_file`], when it is known which document holds the file and whether that is active.
pub(crate) async fn hint_held(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    holder: Option<(DocumentId, bool)>,
) -> Result<(), sqlx::Error> {
    match holder {
        Some((id, true)) => hint_document(conn, org, id).await,
        Some((_, false)) => Ok(()),
        None => notify(conn, &Hint::new(org, Topic::Document).id(file.0)).await,
    }
}
