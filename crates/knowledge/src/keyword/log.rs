//! The change log that keyword indexes follow.

use sqlx::PgConnection;
use tale_core::ids::{FileId, OrgId};

use crate::store::keyword as store;

/// Something a keyword index must look at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Passages of a file were added or rewritten in place, both ordinals included. Log it in the
    /// transaction that writes them, once per committed slice.
    Passages {
        /// The file.
        file: FileId,
        /// The first ordinal written.
        first: i32,
        /// The last ordinal written.
        last: i32,
    },
    /// Passages of a file were removed, or the file as a whole. Log it in the deleting transaction.
    /// The file's remaining passages, if any, are read again.
    File(FileId),
}

/// Records `changes` of `org` in the caller's transaction and wakes every follower when it commits.
/// Costs one row per change, whatever the number of passages.
///
/// # Errors
/// Those of the database.
pub async fn log_changes(conn: &mut PgConnection, org: OrgId, changes: &[Change]) -> Result<(), sqlx::Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut files = Vec::with_capacity(changes.len());
    let mut first = Vec::with_capacity(changes.len());
    let mut last = Vec::with_capacity(changes.len());
    for change in changes {
        match *change {
            Change::Passages { file, first: from, last: to } => {
                files.push(file.0);
                first.push(Some(from));
                last.push(Some(to));
            }
            Change::File(file) => {
                files.push(file.0);
                first.push(None);
                last.push(None);
            }
        }
    }
    store::append(conn, org, &files, &first, &last).await
}
