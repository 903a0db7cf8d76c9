//! Taking secrets out of what leaves the process for people to read: log lines and error reports.
//!
//! Two nets. Secrets of the deployment are known by their value ([`know`]); others are known by
//! what stands before them or what they begin with. What is taken for a secret without being one costs a
//! word of a log line; the other way round costs a key.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

/// What stands in the place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// Values shorter than this are not looked for: they stand in too many innocent words.
const SHORTEST: usize = 8;

/// Most values that are known.
const MOST: usize = 256;

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// What a secret stands behind.
const BEFORE: &[&str] = &[
    "bearer ",
    "authorization: basic ",
    "x-amz-signature=",
    "x-amz-security-token=",
    "password=",
    "passwd=",
    "secret=",
    "token=",
    "api_key=",
    "apikey=",
    "api-key: ",
    "cookie: ",
    "tale_session=",
    "chat/shared/",
];

/// What a secret begins with.
const BEGINNINGS: &[&str] =
    &["sk-", "tale_u_", "tale_g_", "eyj", "akia", "ghp_", "github_pat_", "xoxb-", "glpat-", "age-secret-key-"];

/// Shortest secret that is known by its beginning.
const SHORTEST_BEGUN: usize = 16;

/// Makes values known as secrets from now on.
pub fn know(values: impl IntoIterator<Item = String>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    for value in values {
        if value.len() >= SHORTEST && known.len() < MOST && !known.contains(&value) {
            known.push(value);
        }
    }
    // A secret that is part of another one must not leave the rest behind.
    known.sort_by_key(|value| std::cmp::Reverse(value.len()));
}

/// Addresses without what follows `?` or `#`: authorization codes travel there (DCF-132).
#[must_use]
pub fn without_queries(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        clean.push_str(before);
        let end = address.find(|c: char| c.is_whitespace() || "\"'<>()".contains(c)).unwrap_or(address.len());
        let (address, after) = address.split_at(end);
        clean.push_str(address.split(['?', '#']).next().unwrap_or_default());
        rest = after;
    }
    clean.push_str(rest);
    clean
}

/// The text without secrets.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for value in KNOWN.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if clean.contains(value.as_str()) {
            clean = Cow::Owned(clean.replace(value.as_str(), HIDDEN));
        }
    }
    match by_form(&clean) {
        Some(cleaner) => Cow::Owned(cleaner),
        None => clean,
    }
}

/// The text without what looks like a secret; nothing when there is none.
fn by_form(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut clean: Option<String> = None;
    let mut kept = 0;
    let mut at = 0;
    while at < bytes.len() {
        let Some((start, end)) = secret_at(bytes, at) else {
            at += 1;
            continue;
        };
        // Both ends stand beside ASCII, so they are borders of characters.
        let target = clean.get_or_insert_with(|| String::with_capacity(text.len()));
        target.push_str(text.get(kept..start).unwrap_or_default());
        target.push_str(HIDDEN);
        (kept, at) = (end, end);
    }
    clean.map(|mut clean| {
        clean.push_str(text.get(kept..).unwrap_or_default());
        clean
    })
}

/// The secret that is announced at `at` or begins there.
fn secret_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let begins = |word: &str| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word.as_bytes());
    // The cheap look first: most letters begin nothing.
    match rest[0].to_ascii_lowercase() {
        b':' => return password_of_url(bytes, at),
        b'a' | b'b' | b'c' | b'e' | b'g' | b'p' | b's' | b't' | b'x' => {}
        _ => return None,
    }
    if let Some(word) = BEFORE.iter().find(|word| begins(word)) {
        let start = at + word.len();
        let end = start + token_length(&bytes[start..]);
        let told = bytes[start..end].starts_with(HIDDEN.as_bytes());
        return (end > start && !told).then_some((start, end));
    }
    let fresh = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    if fresh && BEGINNINGS.iter().any(|word| begins(word)) {
        let length = token_length(rest);
        return (length >= SHORTEST_BEGUN).then_some((at, at + length));
    }
    None
}

/// The password in `scheme://user:password@host`, from the colon before it.
fn password_of_url(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let before = &bytes[..at];
    let slashes = before.iter().rposition(|byte| *byte == b'/')?;
    let user = &before[slashes + 1..];
    if slashes < 2 || &before[slashes - 2..=slashes] != b"://" || user.iter().any(|byte| ends_token(*byte)) {
        return None;
    }
    let rest = &bytes[at + 1..];
    let length = rest.iter().position(|byte| ends_token(*byte) || b"/?#".contains(byte)).unwrap_or(rest.len());
    let secret = rest[..length].iter().rposition(|byte| *byte == b'@')?;
    (secret > 0).then_some((at + 1, at + 1 + secret))
}

fn token_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| ends_token(*byte)).unwrap_or(bytes.len())
}

fn ends_token(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(byte, b'"' | b'\'' | b'\\' | b'&' | b',' | b';' | b'<' | b'>' | b'(' | b')' | b'{' | b'}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_hidden_and_its_surroundings_stay() {
        for (text, clean) in [
            ("sent Authorization: Bearer abc.def-123, refused", "sent Authorization: Bearer [hidden], refused"),
            ("key sk-live-0123456789abcdef!", "key [hidden]"),
            ("postgres://tale:p%40ss@db:5432/app is away", "postgres://tale:[hidden]@db:5432/app is away"),
            ("GET /o?X-Amz-Signature=abc123&x=1", "GET /o?X-Amz-Signature=[hidden]&x=1"),
            (r#"{"msg":"token=abc\"}"#, r#"{"msg":"token=[hidden]\"}"#),
            ("cookie: tale_session=zzz; a=b", "cookie: [hidden]; a=b"),
            ("the task-force of 12:30 http://localhost:3000/x@y", "the task-force of 12:30 http://localhost:3000/x@y"),
            ("ein Schlüssel sk-ab", "ein Schlüssel sk-ab"),
            ("ü password=geheimü ü", "ü password=[hidden] ü"),
        ] {
            assert_eq!(redact(text), clean);
        }
        assert!(matches!(redact("nothing to hide here: 12:30"), Cow::Borrowed(_)));
    }

    #[test]
    fn known_values_are_hidden_wherever_they_stand() {
        know(["correct-horse".to_owned(), "correct-horse-battery".to_owned(), "short".to_owned()]);
        assert_eq!(redact("a correct-horse-battery, a short correct-horse."), "a [hidden], a short [hidden].");
    }
}
