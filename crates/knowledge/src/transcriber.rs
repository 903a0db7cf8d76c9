//! What turns recordings into text. In front of it stands a trait, because a test cannot have a
//! paid model, and because models live in a room of their own.

use std::path::Path;

use tale_core::Actor;
use tale_core::ids::OrgId;

use crate::embedder::Answer;

/// A recording on disk.
#[derive(Debug, Clone, Copy)]
pub struct Recording<'a> {
    /// Where its bytes are.
    pub path: &'a Path,
    /// The ending of its name, in small letters.
    pub extension: &'a str,
    /// Its media type.
    pub media_type: &'a str,
    /// Its size in bytes.
    pub size: u64,
}

/// What was said in a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The model that heard it, as `provider/model`.
    pub target: String,
    /// The words.
    pub text: String,
    /// Length of the recording in seconds, when told.
    pub seconds: Option<f64>,
}

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscribeFailure {
    /// There is no transcription model.
    #[error("{0}")]
    NoModel(String),
    /// The chosen model cannot be used any more; no other takes its place.
    #[error("{0}")]
    Unavailable(String),
    /// The provider refuses; asking again cannot help.
    #[error("{0}")]
    Refused(String),
    /// A usage limit leaves no room for it. It can be had later, when somebody asks again.
    #[error("{0}")]
    Limited(String),
    /// An outage or a rate limit; asking again may help.
    #[error("{0}")]
    Upstream(String),
}

/// Transcribes recordings for organizations.
pub trait Transcriber: Send + Sync + 'static {
    /// The model that transcribes now, as `provider/model`.
    fn target(&self, org: OrgId) -> Answer<'_, Result<String, TranscribeFailure>>;

    /// The text of a recording, at the expense of `payer`.
    fn transcribe<'a>(
        &'a self,
        org: OrgId,
        payer: &'a Actor,
        recording: Recording<'a>,
    ) -> Answer<'a, Result<Heard, TranscribeFailure>>;
}

/// The media type of a recording by its name, when the name is one of a recording (spec 50, 6.1).
#[must_use]
pub fn recording_type(file_name: &str) -> Option<(String, &'static str)> {
    let extension = tale_extract::extension(file_name)?;
    let kind = match extension.as_str() {
        "mp3" | "mpga" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "wav" => "audio/wav",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "mp4" | "m4v" => "video/mp4",
        "mov" => "video/quicktime",
        "mkv" => "video/x-matroska",
        "webm" => "video/webm",
        "avi" => "video/x-msvideo",
        "mpeg" | "mpg" => "video/mpeg",
        "3gp" => "video/3gpp",
        _ => return None,
    };
    Some((extension, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_told_by_their_names() {
        assert_eq!(recording_type("Interview Müller.M4A"), Some(("m4a".into(), "audio/mp4")));
        assert_eq!(recording_type("screen.webm").map(|(_, kind)| kind), Some("video/webm"));
        assert!(recording_type("notes.md").is_none() && recording_type("mp3").is_none());
    }
}
