//! `POST /v1/audio/transcriptions`: a multipart form with a recording, answered with its text.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::{Shared, answer, receive, response, wire};

pub(super) async fn answer_recording(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(fields) =
        headers.get("content-type").and_then(|kind| kind.to_str().ok()).and_then(|kind| form(kind, &body))
    else {
        let refusal =
            json!({ "error": { "message": "Could not parse multipart form", "type": "invalid_request_error" } });
        return response(400, "application/json", Body::from(refusal.to_string()));
    };
    let read = Value::Object(fields);
    receive(&shared, &uri, headers, &Bytes::from(read.to_string()));
    let queued = shared.script().transcription_queue.pop_front();
    if let Some(reply) = queued {
        return answer(shared, reply, wire::Format::OpenAi).await;
    }
    let text = format!("I heard {} bytes.", read["fileSize"]);
    let heard = match read["response_format"].as_str() {
        Some("verbose_json") => json!({
            "task": "transcribe", "language": "english", "duration": 1.5, "text": text,
            "segments": [{ "id": 0, "start": 0.0, "end": 1.5, "text": text }],
        }),
        _ => json!({ "text": text, "usage": { "type": "duration", "seconds": 2 } }),
    };
    response(200, "application/json", Body::from(heard.to_string()))
}

/// The fields of a form; `None` when it is none.
fn form(content_type: &str, body: &[u8]) -> Option<Map<String, Value>> {
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=")?;
    let mut fields = Map::new();
    let mut rest = body.strip_prefix(format!("--{boundary}\r\n").as_bytes())?;
    let delimiter = format!("\r\n--{boundary}");
    loop {
        let head_end = find(rest, b"\r\n\r\n")?;
        let head = std::str::from_utf8(&rest[..head_end]).ok()?;
        let content = &rest[head_end + 4..];
        let end = find(content, delimiter.as_bytes())?;
        let (value, after) = (&content[..end], &content[end + delimiter.len()..]);
        let name = quoted(head, "name=\"")?;
        if name == "file" {
            let kind = head.split("\r\nContent-Type: ").nth(1).unwrap_or_default();
            fields.insert("fileName".to_owned(), json!(quoted(head, "filename=\"")?));
            fields.insert("fileType".to_owned(), json!(kind));
            fields.insert("fileSize".to_owned(), json!(value.len()));
            fields.insert("fileText".to_owned(), json!(String::from_utf8_lossy(value)));
        } else {
            fields.insert(name.to_owned(), json!(std::str::from_utf8(value).ok()?));
        }
        if after == b"--\r\n" {
            return Some(fields);
        }
        rest = after.strip_prefix(b"\r\n")?;
    }
}

fn quoted<'a>(head: &'a str, before: &str) -> Option<&'a str> {
    head.split(before).nth(1)?.split('"').next()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
