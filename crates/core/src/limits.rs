//! Limits that more than one room enforces. A limit of a single room lives in that room.

/// Largest library document or chat attachment, in bytes: 100 MiB exactly (FILE-9).
pub const MAX_UPLOAD_BYTES: u64 = 104_857_600;

/// Largest JSON body of an ordinary route, in bytes: 1 MiB (API-16).
pub const MAX_JSON_BODY_BYTES: usize = 1_048_576;

/// Longest chat title, in characters (CHT-179).
pub const MAX_TITLE_CHARS: usize = 120;

/// Longest message text, in characters (CHT-182).
pub const MAX_MESSAGE_CHARS: usize = 100_000;

/// Longest search query, in characters (spec 60, 8.3).
pub const MAX_QUERY_CHARS: usize = 2_000;
