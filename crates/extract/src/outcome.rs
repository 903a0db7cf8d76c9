//! How an extraction ends when it does not end well.

use std::fmt;
use std::io;

/// The stable code of a refused or failed extraction, as clients see it in `indexing.errorCode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeCode {
    /// The file has no text: no bytes, only white space, or a PDF without a text layer.
    Empty,
    /// A text-named file with binary content.
    NotText,
    /// The file's structure is broken, locked with a password, or beyond the limits.
    Malformed,
    /// No reader exists for this type (decided from the name).
    UnsupportedType,
    /// An image; there is nothing to read without a vision model (decided from the name).
    ImageNoVision,
    /// The extraction itself failed; the same file may succeed later.
    IndexerError,
    /// The text contains a credential.
    SecretDetected,
}

impl OutcomeCode {
    /// Every code, for tests and tables.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::NotText,
        Self::Malformed,
        Self::UnsupportedType,
        Self::ImageNoVision,
        Self::IndexerError,
        Self::SecretDetected,
    ];

    /// The wire spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NotText => "not_text",
            Self::Malformed => "malformed",
            Self::UnsupportedType => "unsupported_type",
            Self::ImageNoVision => "image_no_vision",
            Self::IndexerError => "indexer_error",
            Self::SecretDetected => "secret_detected",
        }
    }

    /// The code for a wire spelling.
    #[must_use]
    pub fn from_wire(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// True when the document becomes `unsupported` (terminal); false when it becomes `failed`.
    #[must_use]
    pub const fn is_unsupported(self) -> bool {
        matches!(self, Self::Empty | Self::NotText | Self::Malformed | Self::UnsupportedType | Self::ImageNoVision)
    }

    /// True when trying the same bytes again by itself makes sense.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::IndexerError)
    }
}

impl fmt::Display for OutcomeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refused or failed extraction: the code for machines and a sentence for people.
///
/// The sentence never quotes the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExtractError {
    /// The stable code.
    pub code: OutcomeCode,
    /// What happened and what helps, as one or two sentences.
    pub message: String,
}

impl ExtractError {
    /// An error with this code and sentence.
    pub fn new(code: OutcomeCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(OutcomeCode::Malformed, message)
    }

    pub(crate) fn indexer(message: impl Into<String>) -> Self {
        Self::new(OutcomeCode::IndexerError, message)
    }
}

/// Why an extractor unwinds. Only [`ExtractError`] leaves the crate.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The consumer wants no more.
    Stopped,
    /// The document is refused or the extraction failed.
    Refused(ExtractError),
}

impl From<ExtractError> for Halt {
    fn from(error: ExtractError) -> Self {
        Self::Refused(error)
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        // A reader deeper down may have packed our own refusal into an `io::Error`.
        if let Some(refusal) = error.get_ref().and_then(|inner| inner.downcast_ref::<ExtractError>()) {
            return Self::Refused(refusal.clone());
        }
        Self::Refused(match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                ExtractError::malformed("The file is damaged: its packed data cannot be read to the end.")
            }
            kind => ExtractError::indexer(format!("The stored file could not be read ({kind}).")),
        })
    }
}

/// Packs a refusal so that it can travel through a reader.
pub(crate) fn as_io(error: ExtractError) -> io::Error {
    io::Error::other(error)
}

pub(crate) fn malformed<T>(message: &str) -> Result<T, Halt> {
    Err(Halt::Refused(ExtractError::malformed(message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_classify() {
        for code in OutcomeCode::ALL {
            assert_eq!(OutcomeCode::from_wire(code.as_str()), Some(code));
        }
        assert!(OutcomeCode::Malformed.is_unsupported());
        assert!(!OutcomeCode::SecretDetected.is_unsupported());
        assert!(OutcomeCode::IndexerError.is_transient());
    }
}
