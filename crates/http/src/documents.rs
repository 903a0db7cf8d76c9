//! What both doors share about documents: the wire type and the delivery of bytes.

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::ids::DocumentId;
use tale_core::{Code, Problem};
use tale_knowledge::contents::{Content, ContentAbout};
use tale_knowledge::documents;
use tale_knowledge::files::IndexStatus;
use utoipa::ToSchema;

/// How far a document is indexed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// Nobody queued it.
    Pending,
    /// Waits for a slot; `errorCode` says so when it waits for a database or a store to come back.
    Queued,
    /// Is being read.
    Running,
    /// Can be found.
    Completed,
    /// Failed; `errorCode` says why.
    Failed,
    /// Cannot be indexed; `errorCode` says why.
    Unsupported,
    /// The uploader opted out.
    Skipped,
}

impl From<IndexStatus> for Status {
    fn from(status: IndexStatus) -> Self {
        match status {
            IndexStatus::Pending => Self::Pending,
            IndexStatus::Queued => Self::Queued,
            IndexStatus::Running => Self::Running,
            IndexStatus::Completed => Self::Completed,
            IndexStatus::Failed => Self::Failed,
            IndexStatus::Unsupported => Self::Unsupported,
            IndexStatus::Skipped => Self::Skipped,
        }
    }
}

impl From<Status> for IndexStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Queued => Self::Queued,
            Status::Running => Self::Running,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Unsupported => Self::Unsupported,
            Status::Skipped => Self::Skipped,
        }
    }
}

/// The state of a document in the search index. Branch on `errorCode`, never on `error`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Indexing {
    status: Status,
    /// Whether the passages carry vectors; without them the document is found by its words alone.
    embedded: bool,
    /// When it became searchable, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    indexed_at: Option<i64>,
    /// What went wrong or is waited for, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// What clients branch on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    progress: Option<Progress>,
}

/// Passages done and expected.
#[derive(Serialize, ToSchema)]
pub(crate) struct Progress {
    done: u32,
    total: u32,
}

impl From<documents::Indexing> for Indexing {
    fn from(indexing: documents::Indexing) -> Self {
        Self {
            status: indexing.status.into(),
            embedded: indexing.embedded,
            indexed_at: indexing.indexed_at.map(|at| at.timestamp_millis()),
            error: indexing.error,
            error_code: indexing.error_code,
            progress: indexing.progress.map(|(done, total)| Progress { done, total }),
        }
    }
}

/// A person who made something.
#[derive(Serialize, ToSchema)]
pub(crate) struct Author {
    /// The person.
    #[schema(format = Uuid)]
    id: String,
    /// Display name.
    name: String,
}

impl From<documents::Author> for Author {
    fn from(author: documents::Author) -> Self {
        Self { id: author.id.to_string(), name: author.name }
    }
}

/// Reads a document's id from a path; anything else names no document.
pub(crate) fn document_id(text: &str) -> Result<DocumentId, Problem> {
    text.parse().map_err(|_| Problem::new(Code::DocumentNotFound, "There is no such document, or it was deleted."))
}

/// The range that a request for bytes asks for, or the answer that needs none.
pub(crate) fn judged(headers: &HeaderMap, about: &ContentAbout) -> Result<Option<Range<u64>>, Box<Response>> {
    match wanted(headers, &about.tag, about.modified.timestamp(), about.size) {
        Wanted::Whole => Ok(None),
        Wanted::Part(range) => Ok(Some(range)),
        Wanted::Nothing => Err(Box::new(without_bytes(StatusCode::NOT_MODIFIED, about))),
        Wanted::Unsatisfiable => Err(Box::new(without_bytes(StatusCode::RANGE_NOT_SATISFIABLE, about))),
    }
}

/// What a request for bytes asks for.
enum Wanted {
    /// The client's copy is current.
    Nothing,
    /// Everything.
    Whole,
    /// One stretch.
    Part(Range<u64>),
    /// A stretch beyond the end.
    Unsatisfiable,
}

/// Judges conditional and range headers (API-31, API-34). Several or unreadable ranges count as
/// none; `If-None-Match` decides alone when both conditions are sent.
fn wanted(headers: &HeaderMap, tag: &str, modified_seconds: i64, size: u64) -> Wanted {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(list) = text(header::IF_NONE_MATCH) {
        if super::v1::matches_tag(list, tag) {
            return Wanted::Nothing;
        }
    } else if let Some(since) = text(header::IF_MODIFIED_SINCE).and_then(parse_http_date)
        && modified_seconds <= since
    {
        return Wanted::Nothing;
    }
    let Some(range) = text(header::RANGE) else { return Wanted::Whole };
    let current = match text(header::IF_RANGE) {
        None => true,
        Some(condition) => condition == format!("\"{tag}\"") || parse_http_date(condition) == Some(modified_seconds),
    };
    match range.strip_prefix("bytes=").filter(|_| current).and_then(|spec| spec.trim().split_once('-')) {
        None => Wanted::Whole,
        Some(("", suffix)) => match suffix.parse::<u64>() {
            Ok(0) => Wanted::Unsatisfiable,
            Ok(_) if size == 0 => Wanted::Unsatisfiable,
            Ok(length) => Wanted::Part(size.saturating_sub(length)..size),
            Err(_) => Wanted::Whole,
        },
        Some((first, last)) => match (first.parse::<u64>(), last.is_empty(), last.parse::<u64>()) {
            (Ok(first), _, _) if first >= size => Wanted::Unsatisfiable,
            (Ok(first), true, _) => Wanted::Part(first..size),
            (Ok(first), false, Ok(last)) if last >= first => Wanted::Part(first..last.saturating_add(1).min(size)),
            _ => Wanted::Whole,
        },
    }
}

fn parse_http_date(text: &str) -> Option<i64> {
    chrono::NaiveDateTime::parse_from_str(text, "%a, %d %b %Y %H:%M:%S GMT").ok().map(|at| at.and_utc().timestamp())
}

/// A 304 or 416, which carry no bytes.
fn without_bytes(status: StatusCode, about: &ContentAbout) -> Response {
    let mut response = status.into_response();
    let headers = response.headers_mut();
    put(headers, header::ETAG, &format!("\"{}\"", about.tag));
    if status == StatusCode::RANGE_NOT_SATISFIABLE {
        put(headers, header::CONTENT_RANGE, &format!("bytes */{}", about.size));
    }
    response
}

/// The bytes as an answer: 200, or 206 when `range` is set.
pub(crate) fn with_bytes(content: Content, range: Option<Range<u64>>, attachment: bool) -> Response {
    let mut response = Response::new(Body::from_stream(content.bytes));
    let headers = response.headers_mut();
    let essence = content.mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // Of what people upload, only what cannot act is shown in place.
    let harmless = matches!(
        essence.as_str(),
        "application/pdf" | "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "text/plain"
    ) || essence.starts_with("audio/")
        || essence.starts_with("video/");
    let policy = if harmless {
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; object-src 'self'; frame-ancestors 'self'"
    } else {
        "sandbox; default-src 'none'; frame-ancestors 'self'"
    };
    put(headers, header::CONTENT_SECURITY_POLICY, policy);
    put(headers, header::X_FRAME_OPTIONS, "SAMEORIGIN");
    put(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(headers, header::CONTENT_TYPE, &content.mime_type);
    put(headers, header::CONTENT_LENGTH, &content.length.to_string());
    put(headers, header::ACCEPT_RANGES, "bytes");
    put(headers, header::CACHE_CONTROL, "private, no-cache");
    put(headers, header::ETAG, &format!("\"{}\"", content.tag));
    put(headers, header::LAST_MODIFIED, &content.modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
    put(headers, header::CONTENT_DISPOSITION, &disposition(&content.file_name, attachment || !harmless));
    if let Some(range) = range {
        put(
            headers,
            header::CONTENT_RANGE,
            &format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), content.size),
        );
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

fn put(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// `Content-Disposition` per RFC 6266: a plain name for old clients and the exact one in UTF-8.
pub(crate) fn disposition(file_name: &str, attachment: bool) -> String {
    let kind = if attachment { "attachment" } else { "inline" };
    let plain: String = file_name
        .chars()
        .map(|c| if c.is_ascii() && !c.is_ascii_control() && !matches!(c, '"' | '\\' | '%' | '/') { c } else { '_' })
        .collect();
    let exact: String = file_name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    });
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{exact}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(pairs: &[(&str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(header::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        match wanted(&headers, "abc", 784_111_777, 100) {
            Wanted::Nothing => "nothing".into(),
            Wanted::Whole => "whole".into(),
            Wanted::Part(range) => format!("{}..{}", range.start, range.end),
            Wanted::Unsatisfiable => "unsatisfiable".into(),
        }
    }

    #[test]
    fn ranges_and_conditions() {
        for (spec, expected) in [
            ("bytes=0-0", "0..1"),
            ("bytes=10-", "10..100"),
            ("bytes=90-900", "90..100"),
            ("bytes=-10", "90..100"),
            ("bytes=-900", "0..100"),
            ("bytes=100-", "unsatisfiable"),
            ("bytes=-0", "unsatisfiable"),
            ("bytes=5-2", "whole"),
            ("bytes=0-1,5-6", "whole"),
            ("items=0-1", "whole"),
            ("bytes=a-b", "whole"),
        ] {
            assert_eq!(judge(&[("range", spec)]), expected, "{spec}");
        }
        assert_eq!(judge(&[("if-none-match", "W/\"abc\"")]), "nothing");
        assert_eq!(
            judge(&[("if-none-match", "\"x\""), ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]),
            "whole"
        );
        assert_eq!(judge(&[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]), "nothing");
        assert_eq!(judge(&[("range", "bytes=0-0"), ("if-range", "\"x\"")]), "whole");
        assert_eq!(judge(&[("range", "bytes=0-0"), ("if-range", "\"abc\"")]), "0..1");
    }

    #[test]
    fn any_name_makes_a_header() {
        let text = disposition("Ünï \"x\"\\日本.pdf", true);
        assert!(HeaderValue::from_str(&text).is_ok());
        assert!(
            text.starts_with("attachment; filename=\"_n_ _x____.pdf\"; filename*=UTF-8''%C3%9Cn%C3%AF%20%22x%22%5C")
        );
    }
}
