//! The signature of the spawner's interface, and the token of the daemon's.
//!
//! A request is signed with HMAC-SHA-256 under the shared key over
//! `METHOD \n path-with-query \n timestamp \n nonce \n hex(SHA-256(body))`, in lower-case hexadecimal.
//! The verifier holds every signature it accepted for a little longer than the clock tolerance, so a
//! copied request is refused. Its clock is the caller's.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::{CLOCK_TOLERANCE, MAX_NONCE_BYTES, MAX_SEEN_SIGNATURES, REPLAY_WINDOW};
use crate::names::SessionId;

/// When the request was signed: milliseconds since 1970, decimal.
pub const TIMESTAMP_HEADER: &str = "x-tale-sandbox-timestamp";
/// Random, new for every request.
pub const NONCE_HEADER: &str = "x-tale-sandbox-nonce";
/// Lower-case hexadecimal.
pub const SIGNATURE_HEADER: &str = "x-tale-sandbox-signature";

/// The shared key. Its text is never shown.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// Takes the text of `SANDBOX_TOKEN` as it stands, without white space at its ends.
    /// `None` when nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.as_bytes().to_vec()))
    }

    /// The token of one session's daemon, which any spawner with the key can make.
    #[must_use]
    pub fn daemon_token(&self, session: &SessionId) -> String {
        self.derive("runnerd-v1", session.as_str())
    }

    /// A secret for `name` that does not tell the key: 64 hexadecimal digits, the same each time.
    #[must_use]
    pub fn derive(&self, purpose: &str, name: &str) -> String {
        crate::hex(&crate::hmac_sha256(&self.0, [purpose.as_bytes(), b":", name.as_bytes()]))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// What a signature covers.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// Path and query as they stand in the request line.
    pub path_and_query: &'a str,
    /// The text of [`TIMESTAMP_HEADER`].
    pub timestamp: &'a str,
    /// The text of [`NONCE_HEADER`].
    pub nonce: &'a str,
    /// The body's bytes.
    pub body: &'a [u8],
}

impl Signed<'_> {
    /// The signature under `key`, in lower-case hexadecimal.
    #[must_use]
    pub fn sign(&self, key: &Key) -> String {
        let body = crate::hex(&Sha256::digest(self.body));
        let text = [self.method, self.path_and_query, self.timestamp, self.nonce, &body].join("\n");
        crate::hex(&crate::hmac_sha256(&key.0, [text.as_bytes()]))
    }
}

/// Why a request was not accepted. The reason is part of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No signature.
    #[error("missing_signature")]
    MissingSignature,
    /// No timestamp.
    #[error("missing_timestamp")]
    MissingTimestamp,
    /// No nonce, or one that is longer than any random text needs to be.
    #[error("missing_nonce")]
    MissingNonce,
    /// Not a positive number of milliseconds.
    #[error("bad_timestamp")]
    BadTimestamp,
    /// Too far from the verifier's clock.
    #[error("timestamp_skew")]
    TimestampSkew,
    /// Another key, or another request.
    #[error("bad_signature")]
    BadSignature,
    /// Seen before.
    #[error("replay")]
    Replay,
    /// Too many requests in the window: the verifier cannot tell copies from originals. 503, not 401.
    #[error("replay_memory_full")]
    Full,
}

impl Refusal {
    /// The stable word of the answer.
    #[must_use]
    pub fn reason(self) -> String {
        self.to_string()
    }
}

/// The headers of a signed request, as found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// [`TIMESTAMP_HEADER`].
    pub timestamp: Option<&'a str>,
    /// [`NONCE_HEADER`].
    pub nonce: Option<&'a str>,
    /// [`SIGNATURE_HEADER`].
    pub signature: Option<&'a str>,
}

/// Checks signatures and remembers them.
#[derive(Debug)]
pub struct Verifier {
    keys: Vec<Key>,
    seen: HashSet<[u8; 32]>,
    /// In order of arrival, with the time from which each may be forgotten.
    order: VecDeque<(u64, [u8; 32])>,
    capacity: usize,
}

impl Verifier {
    /// Accepts signatures under `current` and, while keys are changed, under `previous`.
    #[must_use]
    pub fn new(current: Key, previous: Option<Key>) -> Self {
        let keys = std::iter::once(current).chain(previous).collect();
        Self { keys, seen: HashSet::new(), order: VecDeque::new(), capacity: MAX_SEEN_SIGNATURES }
    }

    /// Accepts the request once. `now_ms` is milliseconds since 1970.
    ///
    /// # Errors
    /// The [`Refusal`]; nothing is remembered then.
    pub fn verify(
        &mut self,
        headers: Headers<'_>,
        method: &str,
        path_and_query: &str,
        body: &[u8],
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let signature = headers.signature.filter(|text| !text.is_empty()).ok_or(Refusal::MissingSignature)?;
        let timestamp = headers.timestamp.filter(|text| !text.is_empty()).ok_or(Refusal::MissingTimestamp)?;
        let nonce = headers
            .nonce
            .filter(|text| !text.is_empty() && text.len() <= MAX_NONCE_BYTES)
            .ok_or(Refusal::MissingNonce)?;
        let signed_at = Some(timestamp)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse::<u64>().ok())
            .filter(|at| *at > 0)
            .ok_or(Refusal::BadTimestamp)?;
        if signed_at.abs_diff(now_ms) > millis(CLOCK_TOLERANCE) {
            return Err(Refusal::TimestampSkew);
        }
        let request = Signed { method, path_and_query, timestamp, nonce, body };
        let matches = |key: &Key| bool::from(request.sign(key).as_bytes().ct_eq(signature.as_bytes()));
        // Every key is tried, so that time does not tell which one it was.
        if !self.keys.iter().fold(false, |found, key| matches(key) | found) {
            return Err(Refusal::BadSignature);
        }
        self.forget(now_ms);
        let digest: [u8; 32] = Sha256::digest(signature.as_bytes()).into();
        if self.seen.contains(&digest) {
            return Err(Refusal::Replay);
        }
        if self.order.len() >= self.capacity {
            return Err(Refusal::Full);
        }
        self.seen.insert(digest);
        // A clock ahead of ours stays acceptable for longer: what counts is when it stops being so.
        let forget_at = signed_at.max(now_ms).saturating_add(millis(REPLAY_WINDOW));
        self.order.push_back((forget_at, digest));
        Ok(())
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some((forget_at, digest)) = self.order.front()
            && *forget_at < now_ms
        {
            self.seen.remove(digest);
            self.order.pop_front();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn verifier() -> Verifier {
        Verifier::new(key("current"), Some(key("previous")))
    }

    struct Call {
        timestamp: String,
        nonce: String,
        signature: String,
    }

    fn call(secret: &str, at: u64, nonce: &str, path: &str, body: &[u8]) -> Call {
        let timestamp = at.to_string();
        let signed = Signed { method: "POST", path_and_query: path, timestamp: &timestamp, nonce, body };
        Call { signature: signed.sign(&key(secret)), timestamp, nonce: nonce.to_owned() }
    }

    fn check(verifier: &mut Verifier, call: &Call, path: &str, body: &[u8], now: u64) -> Result<(), Refusal> {
        let headers =
            Headers { timestamp: Some(&call.timestamp), nonce: Some(&call.nonce), signature: Some(&call.signature) };
        verifier.verify(headers, "POST", path, body, now)
    }

    #[test]
    fn known_answers() {
        // Made with `printf … | openssl dgst -sha256 -hmac`.
        let signed = Signed {
            method: "POST",
            path_and_query: "/v1/sessions?x=1",
            timestamp: "1700000000000",
            nonce: "n-1",
            body: br#"{"sessionId":"s"}"#,
        };
        assert_eq!(
            signed.sign(&key("0123456789abcdef")),
            "39027ad789d15012b280e42a5e09b63b1a321103a979c6c4d8957f9fb15ee828"
        );
        let empty = Signed { method: "GET", path_and_query: "/v1/limits", timestamp: "1", nonce: "n", body: b"" };
        assert_eq!(empty.sign(&key(" k\n")), "bded910287e91262dcd42daa711b6f4b87f247600eaa77182a92b99db904a961");
        let session = SessionId::new("agent-1").unwrap();
        assert_eq!(
            key("0123456789abcdef").daemon_token(&session),
            "86545d59424b4adeae119fc55f2171aa233f53aa11962223020d9ad254205f06"
        );
        assert!(Key::new(" \t\n").is_none());
        assert_eq!(format!("{:?}", key("secret")), "Key(…)");
    }

    #[test]
    fn a_request_is_accepted_once_under_either_key() {
        let mut verifier = verifier();
        for secret in ["current", "previous"] {
            let good = call(secret, NOW, "a", "/v1/x", b"{}");
            assert_eq!(check(&mut verifier, &good, "/v1/x", b"{}", NOW), Ok(()));
            assert_eq!(check(&mut verifier, &good, "/v1/x", b"{}", NOW + 29_000), Err(Refusal::Replay));
        }
        let other = call("other", NOW, "a", "/v1/x", b"{}");
        assert_eq!(check(&mut verifier, &other, "/v1/x", b"{}", NOW), Err(Refusal::BadSignature));
    }

    #[test]
    fn whatever_is_covered_cannot_be_changed() {
        let good = call("current", NOW, "a", "/v1/x?a=1", b"{}");
        let mut verifier = verifier();
        assert_eq!(check(&mut verifier, &good, "/v1/x?a=2", b"{}", NOW), Err(Refusal::BadSignature));
        assert_eq!(check(&mut verifier, &good, "/v1/x?a=1", b"{ }", NOW), Err(Refusal::BadSignature));
        for (timestamp, nonce, signature) in [
            (good.timestamp.as_str(), "b", good.signature.as_str()),
            ("1700000000001", "a", good.signature.as_str()),
            (good.timestamp.as_str(), "a", &good.signature[1..]),
            (good.timestamp.as_str(), "a", &good.signature.to_uppercase()),
        ] {
            let headers = Headers { timestamp: Some(timestamp), nonce: Some(nonce), signature: Some(signature) };
            let answer = verifier.verify(headers, "POST", "/v1/x?a=1", b"{}", NOW);
            assert_eq!(answer, Err(Refusal::BadSignature));
        }
        assert_eq!(check(&mut verifier, &good, "/v1/x?a=1", b"{}", NOW), Ok(()), "a refusal remembers nothing");
    }

    #[test]
    fn each_missing_or_bad_part_has_its_reason() {
        let good = call("current", NOW, "a", "/", b"");
        let full =
            Headers { timestamp: Some(&good.timestamp), nonce: Some(&good.nonce), signature: Some(&good.signature) };
        let long = "n".repeat(MAX_NONCE_BYTES + 1);
        for (headers, reason) in [
            (Headers { signature: None, ..full }, "missing_signature"),
            (Headers { timestamp: None, ..full }, "missing_timestamp"),
            (Headers { nonce: None, ..full }, "missing_nonce"),
            (Headers { nonce: Some(&long), ..full }, "missing_nonce"),
            (Headers { timestamp: Some("0"), ..full }, "bad_timestamp"),
            (Headers { timestamp: Some("-5"), ..full }, "bad_timestamp"),
            (Headers { timestamp: Some("+1700000000000"), ..full }, "bad_timestamp"),
            (Headers { timestamp: Some("NaN"), ..full }, "bad_timestamp"),
            (Headers { timestamp: Some("99999999999999999999999"), ..full }, "bad_timestamp"),
        ] {
            let refusal = verifier().verify(headers, "POST", "/", b"", NOW).unwrap_err();
            assert_eq!(refusal.reason(), reason);
        }
        for (now, answer) in [
            (NOW + 30_000, Ok(())),
            (NOW - 30_000, Ok(())),
            (NOW + 30_001, Err(Refusal::TimestampSkew)),
            (NOW - 30_001, Err(Refusal::TimestampSkew)),
        ] {
            assert_eq!(check(&mut verifier(), &good, "/", b"", now), answer);
        }
    }

    #[test]
    fn the_memory_of_signatures_is_bounded_and_outlasts_the_tolerance() {
        let mut verifier = verifier();
        verifier.capacity = 2;
        // Signed by a clock 30 s ahead: acceptable until a minute from now.
        let ahead = call("current", NOW + 30_000, "a", "/", b"");
        assert_eq!(check(&mut verifier, &ahead, "/", b"", NOW), Ok(()));
        assert_eq!(check(&mut verifier, &ahead, "/", b"", NOW + 60_000), Err(Refusal::Replay));
        let second = call("current", NOW + 60_000, "b", "/", b"");
        assert_eq!(check(&mut verifier, &second, "/", b"", NOW + 60_000), Ok(()));
        let third = call("current", NOW + 60_000, "c", "/", b"");
        assert_eq!(check(&mut verifier, &third, "/", b"", NOW + 60_000), Err(Refusal::Full));
        let later = call("current", NOW + 70_000, "d", "/", b"");
        assert_eq!(check(&mut verifier, &later, "/", b"", NOW + 70_000), Ok(()), "the oldest was forgotten");
        assert_eq!(verifier.seen.len(), verifier.order.len());
    }
}
