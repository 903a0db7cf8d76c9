//! `POST <base>/audio/transcriptions`: the text of a recording (MOD-65).

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use uuid::Uuid;

use super::Target;
use super::client::WireClient;
use super::error::{ModelError, ModelErrorCode};

/// Longest wait for a transcript. A provider works through an hour of speech in a few minutes.
const TRANSCRIBE_TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// Largest answer: four hours of speech with the time of every sentence.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Most text that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Piece of the recording that is held in memory.
const PIECE: usize = 64 << 10;
/// A paragraph ends at the first sentence beyond this length, in bytes.
const PARAGRAPH: usize = 600;
/// Silence that ends a paragraph, in seconds.
const SILENCE: f64 = 2.0;

/// A recording on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recording<'a> {
    /// Where its bytes are.
    pub(crate) path: &'a Path,
    /// The ending of its name, by which providers tell formats apart.
    pub(crate) extension: &'a str,
    /// Its media type.
    pub(crate) media_type: &'a str,
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// What was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The words, in paragraphs; with the time of each where the provider tells it.
    pub text: String,
    /// Length of the recording in seconds, when told.
    pub seconds: Option<f64>,
}

impl WireClient {
    /// Sends a recording and reads its text. `verbose` asks for times, which some models refuse;
    /// they are asked again without.
    pub(crate) async fn transcribe(
        &self,
        target: &Target,
        model: &str,
        recording: Recording<'_>,
        verbose: bool,
    ) -> Result<Transcript, ModelError> {
        let send = async |format: &'static str| {
            let form = form(model, format, recording).await?;
            let response = self.post_body(target, &["audio", "transcriptions"], form, TRANSCRIBE_TIMEOUT).await?;
            self.json(response, MAX_ANSWER_BYTES).await
        };
        let answer = match send(if verbose { "verbose_json" } else { "json" }).await {
            Err(error)
                if verbose && matches!(error.status, Some(400 | 422)) && error.message.contains("response_format") =>
            {
                send("json").await
            }
            other => other,
        };
        answer.and_then(|value| read(&value)).map_err(|error| error.scrubbed(target.secret.as_ref(), &target.base))
    }
}

/// The multipart body: its content type, its length and its bytes, read from disk as they are sent.
async fn form(model: &str, format: &str, recording: Recording<'_>) -> Result<(String, u64, reqwest::Body), ModelError> {
    let unreadable =
        |_| ModelError::new(ModelErrorCode::Generic, "The recording could not be read again. Try again in a moment.");
    let file = tokio::fs::File::open(recording.path).await.map_err(unreadable)?;
    let boundary = format!("tale-{}", Uuid::now_v7().simple());
    let field = |name: &str, value: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    // The person's own file name stays here.
    let head = format!(
        "{}{}--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"recording.{}\"\r\nContent-Type: {}\r\n\r\n",
        field("model", model),
        field("response_format", format),
        recording.extension,
        recording.media_type,
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let length = head.len() as u64 + recording.size + tail.len() as u64;
    let body = stream::iter([Ok(Bytes::from(head))])
        .chain(pieces(file.take(recording.size)))
        .chain(stream::iter([Ok(Bytes::from(tail))]));
    Ok((format!("multipart/form-data; boundary={boundary}"), length, reqwest::Body::wrap_stream(body)))
}

fn pieces(file: tokio::io::Take<tokio::fs::File>) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0u8; PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(piece), file)))
    })
}

fn read(value: &Value) -> Result<Transcript, ModelError> {
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(super::classify::from_value(None, value));
    }
    let plain = value.get("text").and_then(Value::as_str).ok_or_else(|| {
        ModelError::new(ModelErrorCode::ProviderError, "The provider's answer holds no transcript. Check the model.")
    })?;
    let seconds = [value.get("duration"), value.pointer("/usage/seconds")]
        .into_iter()
        .flatten()
        .find_map(|number| number.as_f64().or_else(|| number.as_str().and_then(|text| text.parse().ok())))
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    let text = value
        .get("segments")
        .and_then(Value::as_array)
        .and_then(|segments| paragraphs(segments))
        .unwrap_or_else(|| plain.trim().to_owned());
    if text.len() > MAX_TEXT_BYTES {
        return Err(ModelError::new(
            ModelErrorCode::ProviderError,
            format!("The transcript is larger than {} MiB. Split the recording.", MAX_TEXT_BYTES >> 20),
        ));
    }
    Ok(Transcript { text, seconds })
}

/// Joins segments into paragraphs, each with the time at which it begins. `None` when the segments
/// do not say what they need to.
fn paragraphs(segments: &[Value]) -> Option<String> {
    let mut out: Vec<String> = Vec::new();
    let mut last_end: Option<f64> = None;
    for segment in segments {
        let text = segment.get("text").and_then(Value::as_str)?.trim();
        let start = segment.get("start").and_then(Value::as_f64)?;
        if text.is_empty() {
            continue;
        }
        let full = |held: &String| held.len() >= PARAGRAPH && held.ends_with(['.', '!', '?', '…', '。']);
        let fresh = out.last().is_none_or(full) || last_end.is_some_and(|end| start - end >= SILENCE);
        match out.last_mut().filter(|_| !fresh) {
            Some(held) => {
                held.push(' ');
                held.push_str(text);
            }
            None => out.push(format!("[{}] {text}", clock(start))),
        }
        last_end = segment.get("end").and_then(Value::as_f64);
    }
    (!out.is_empty()).then(|| out.join("\n\n"))
}

/// `1:02:03`, or `2:03` within the first hour.
fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{rest:02}") } else { format!("{minutes}:{rest:02}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn segments_become_paragraphs_with_their_times() {
        let long = format!("{}.", "word ".repeat(130));
        let transcript = read(&json!({ "text": "unused", "duration": 3_700.5, "segments": [
            { "start": 0.0, "end": 2.0, "text": " Hello" },
            { "start": 2.1, "end": 3.0, "text": "there." },
            { "start": 6.0, "end": 60.0, "text": long },
            { "start": 3_661.0, "end": 3_662.0, "text": "Bye." },
        ] }))
        .unwrap();
        let lines: Vec<&str> = transcript.text.split("\n\n").collect();
        assert_eq!(lines[0], "[0:00] Hello there.");
        assert!(lines[1].starts_with("[0:06] word") && lines[2] == "[1:01:01] Bye.");
        assert_eq!(transcript.seconds, Some(3_700.5));
    }

    #[test]
    fn the_length_is_read_where_it_is_valid_and_a_bare_text_is_enough() {
        let seconds = |value: Value| read(&value).unwrap().seconds;
        assert_eq!(seconds(json!({ "text": "x", "duration": "12.5" })), Some(12.5));
        assert_eq!(
            seconds(json!({ "text": "x", "duration": null, "usage": { "type": "duration", "seconds": 9 } })),
            Some(9.0)
        );
        assert_eq!(seconds(json!({ "text": "x", "duration": -1 })), None);
        assert_eq!(read(&json!({ "text": " Hi. " })).unwrap().text, "Hi.");
        assert_eq!(read(&json!({ "text": "", "segments": [] })).unwrap().text, "");
        assert!(read(&json!({ "ok": true })).is_err());
        assert!(read(&json!({ "error": { "message": "no" } })).is_err());
    }
}
