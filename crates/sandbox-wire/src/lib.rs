//! What the parts of a sandbox say to each other: the platform to the spawner (signed HTTP, events
//! back), the spawner to the daemon inside a session (a token, lines of JSON back).
//!
//! Nothing here does I/O or reads a clock: the room holds names with their grammar ([`names`]), the
//! signature ([`sign`]), the bodies of both interfaces ([`spawner`], [`daemon`], [`exec`], [`files`]),
//! the two streams with their codecs ([`event`], [`sse`], on [`lines`]) and every limit both sides must
//! agree on ([`limits`]). It is small on purpose, because the daemon links it statically.
//!
//! Requests are read to the letter (an unknown field is refused); answers and events may carry more
//! than this release knows, so that a newer daemon can talk to an older spawner.

pub mod daemon;
pub mod event;
pub mod exec;
pub mod files;
pub mod lenient;
pub mod limits;
pub mod lines;
pub mod names;
pub mod sign;
pub mod spawner;
pub mod sse;

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// HMAC-SHA-256 of pieces that stand one after the other.
pub(crate) fn hmac_sha256<'a>(key: &[u8], pieces: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    use hmac::Mac as _;
    #[expect(clippy::expect_used, reason = "HMAC accepts keys of every length")]
    let mut mac = <hmac::Hmac<sha2::Sha256> as hmac::KeyInit>::new_from_slice(key).expect("any key length");
    for piece in pieces {
        mac.update(piece);
    }
    mac.finalize().into_bytes().into()
}
