//! The orders in which documents are listed, and where a page of such a list ended.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tale_core::ids::DocumentId;

use crate::store::documents::DocumentRow;

/// What documents are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortBy {
    /// When they were added.
    #[default]
    Added,
    /// The title, without regard to case and accents.
    Name,
    /// Their size in bytes.
    Size,
}

/// The order of a list of documents; rows that are equal in it are told apart by their ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DocumentOrder {
    /// What counts.
    pub by: SortBy,
    /// Whether the oldest, first or smallest comes first.
    pub ascending: bool,
}

/// Where a page of documents ended. It continues only a list of the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// What the last row was ordered by.
    pub key: Key,
    /// Its id.
    pub id: DocumentId,
}

/// What a row was ordered by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// When it was added.
    #[serde(rename = "a", with = "chrono::serde::ts_microseconds")]
    Added(DateTime<Utc>),
    /// Its title.
    #[serde(rename = "n")]
    Name(String),
    /// Its size in bytes.
    #[serde(rename = "s")]
    Size(i64),
}

impl Key {
    pub(crate) fn of(row: &DocumentRow, by: SortBy) -> Self {
        match by {
            SortBy::Added => Self::Added(row.created_at),
            SortBy::Name => Self::Name(row.title.clone()),
            SortBy::Size => Self::Size(row.size),
        }
    }

    pub(crate) fn added(&self) -> Option<DateTime<Utc>> {
        if let Self::Added(at) = self { Some(*at) } else { None }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        if let Self::Name(title) = self { Some(title) } else { None }
    }

    pub(crate) fn size(&self) -> Option<i64> {
        if let Self::Size(bytes) = self { Some(*bytes) } else { None }
    }
}
