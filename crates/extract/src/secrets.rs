//! The credential scan: documents that contain a key must not become searchable.
//!
//! Recognized: AWS access key ids, PEM private-key blocks, JSON web tokens, and a long random-looking value assigned
//! to a name such as `api_key` or `password`. Placeholders, masked values and prose are not matches.

use crate::outcome::{ExtractError, OutcomeCode};

/// The kind of a credential found. The value itself is never kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// An AWS access key id.
    AwsAccessKeyId,
    /// A private key in PEM form.
    PrivateKey,
    /// A JSON web token.
    JsonWebToken,
    /// A random-looking value assigned to a telling name.
    AssignedSecret,
}

impl SecretKind {
    /// How the kind is called in a sentence.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::AwsAccessKeyId => "an AWS access key id",
            Self::PrivateKey => "a private key",
            Self::JsonWebToken => "a JSON web token",
            Self::AssignedSecret => "a password, key or token",
        }
    }

    pub(crate) fn refusal(self) -> ExtractError {
        ExtractError::new(
            OutcomeCode::SecretDetected,
            format!("The file seems to contain {}. Remove it from the file, then upload the file again.", self.label()),
        )
    }
}

/// Finds the first credential in a text.
#[must_use]
pub fn find_secret(text: &str) -> Option<SecretKind> {
    scan(text.as_bytes(), text.len())
}

/// Text is scanned in windows of this size ...
const WINDOW: usize = 64 * 1024;
/// ... and a match may reach this far beyond the place where it starts.
const REACH: usize = 4 * 1024;

/// The scan over text that arrives in pieces.
#[derive(Default)]
pub(crate) struct SecretScanner {
    buffer: Vec<u8>,
}

impl SecretScanner {
    pub(crate) fn push(&mut self, text: &str) -> Result<(), ExtractError> {
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() < WINDOW + REACH {
            return Ok(());
        }
        let starts_before = self.buffer.len() - REACH;
        if let Some(kind) = scan(&self.buffer, starts_before) {
            return Err(kind.refusal());
        }
        // Keep a little of what was scanned, so that "is this the start of a word" can be answered.
        self.buffer.drain(..starts_before - 64);
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), ExtractError> {
        scan(&self.buffer, self.buffer.len()).map_or(Ok(()), |kind| Err(kind.refusal()))
    }
}

/// Looks for matches that start before `limit`.
fn scan(text: &[u8], limit: usize) -> Option<SecretKind> {
    let mut at = 0;
    while at < limit {
        match text[at] {
            b'A' if aws_key(text, at) => return Some(SecretKind::AwsAccessKeyId),
            b'-' if private_key(text, at) => return Some(SecretKind::PrivateKey),
            b'e' if web_token(text, at) => return Some(SecretKind::JsonWebToken),
            b'=' | b':' if assigned(text, at) => return Some(SecretKind::AssignedSecret),
            _ => {}
        }
        at += 1;
    }
    None
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn starts_word(text: &[u8], at: usize) -> bool {
    at == 0 || !word_byte(text[at - 1])
}

fn run(text: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> usize {
    text[from.min(text.len())..].iter().take(REACH).take_while(|byte| accept(**byte)).count()
}

fn aws_key(text: &[u8], at: usize) -> bool {
    if !(text[at..].starts_with(b"AKIA") || text[at..].starts_with(b"ASIA")) || !starts_word(text, at) {
        return false;
    }
    let length = run(text, at, |b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b));
    let ends = text.get(at + length).is_none_or(|b| !word_byte(*b));
    length == 20 && ends && !text[at..at + length].ends_with(b"EXAMPLE") && distinct(&text[at + 4..at + 20]) >= 6
}

fn private_key(text: &[u8], at: usize) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let Some(rest) = text[at..].strip_prefix(BEGIN) else {
        return false;
    };
    let label = run(rest, 0, |b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ');
    if label > 40 || !rest[..label].ends_with(b"PRIVATE KEY") || !rest[label..].starts_with(b"-----") {
        return false;
    }
    // A real block goes on with Base64; documentation goes on with dots.
    let body = &rest[label + 5..];
    let mut base64 = 0;
    for (index, byte) in body.iter().take(400).enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=' => base64 += 1,
            b'\n' | b'\r' | b' ' | b'\t' | b'"' | b'\\' | b'|' | b',' => {}
            // Header lines of an encrypted key (`Proc-Type: 4,ENCRYPTED`).
            b':' | b'-' if index < 160 => {}
            _ => break,
        }
    }
    base64 >= 64 && distinct(&body[..body.len().min(200)]) >= 16
}

fn web_token(text: &[u8], at: usize) -> bool {
    if !text[at..].starts_with(b"eyJ") || !starts_word(text, at) {
        return false;
    }
    let part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let header = run(text, at, part);
    let payload_at = at + header + 1;
    if header < 12 || text.get(at + header) != Some(&b'.') || !text[payload_at.min(text.len())..].starts_with(b"eyJ") {
        return false;
    }
    let payload = run(text, payload_at, part);
    let signature_at = payload_at + payload + 1;
    payload >= 12 && text.get(payload_at + payload) == Some(&b'.') && {
        let signature = run(text, signature_at, part);
        signature >= 20 && distinct(&text[signature_at..signature_at + signature]) >= 10
    }
}

/// `name = "value"`, `name: value`, `"name": "value"`, `name := value`, with the sign at `at`.
fn assigned(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(96)..at];
    let trimmed =
        trim_end(before, |b| b == b' ' || b == b'\t' || b == b'"' || b == b'\'' || b == b'`' || b == b':' || b == b']');
    let name_length = trimmed.iter().rev().take_while(|b| word_byte(**b) || **b == b'-').count();
    let name = &trimmed[trimmed.len() - name_length..];
    if !telling(name) {
        return false;
    }
    let mut value_at = at + 1;
    value_at += run(text, value_at, |b| matches!(b, b'=' | b'>' | b':'));
    value_at += run(text, value_at, |b| b == b' ' || b == b'\t');
    value_at += run(text, value_at, |b| matches!(b, b'"' | b'\'' | b'`'));
    let length = run(text, value_at, |b| b.is_ascii_alphanumeric() || b"+/_-.~=!#$%^&*@".contains(&b));
    let value = &text[value_at.min(text.len())..(value_at + length).min(text.len())];
    let next = text.get(value_at + length).copied();
    !matches!(next, Some(b'(' | b'[' | b'{' | b'<')) && random_looking(trim_end(value, |b| b == b'.' || b == b'='))
}

fn trim_end(text: &[u8], accept: impl Fn(u8) -> bool) -> &[u8] {
    let keep = text.iter().rposition(|byte| !accept(*byte)).map_or(0, |last| last + 1);
    &text[..keep]
}

fn telling(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > 64 {
        return false;
    }
    let plain: String =
        name.iter().filter(|b| b.is_ascii_alphanumeric()).map(|b| b.to_ascii_lowercase() as char).collect();
    const TELLING: [&str; 12] = [
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "pwd",
        "authkey",
        "credential",
    ];
    const HARMLESS: [&str; 10] = [
        "hash",
        "sha256",
        "sha512",
        "digest",
        "checksum",
        "fingerprint",
        "public",
        "tokenizer",
        "tokenid",
        "secretname",
    ];
    TELLING.iter().any(|word| plain.contains(word)) && !HARMLESS.iter().any(|word| plain.contains(word))
}

fn random_looking(value: &[u8]) -> bool {
    if !(20..=REACH - 1).contains(&value.len()) {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    const PLACEHOLDERS: [&str; 19] = [
        "example",
        "your",
        "xxxx",
        "changeme",
        "change-me",
        "change_me",
        "placeholder",
        "****",
        "....",
        "redacted",
        "dummy",
        "sample",
        "insert",
        "replace",
        "0000000",
        "1234567890",
        "process.env",
        "os.environ",
        "abcdefgh",
    ];
    if PLACEHOLDERS.iter().any(|word| contains(&lower, word.as_bytes()))
        || value.starts_with(b"$")
        || value.starts_with(b"%")
    {
        return false;
    }
    // Paths and dotted names: long only because they have many short parts.
    let longest = value.split(|b| matches!(b, b'.' | b'/' | b'-' | b'_')).map(<[u8]>::len).max().unwrap_or(0);
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    if digits < 3 || letters < 3 || (longest < 12 && !is_uuid(value)) {
        return false;
    }
    let hex = value.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    entropy(value) >= if hex { 3.0 } else { 3.5 }
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value
            .iter()
            .enumerate()
            .all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn counts(text: &[u8]) -> [u32; 256] {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    counts
}

fn distinct(text: &[u8]) -> usize {
    counts(text).iter().filter(|count| **count > 0).count()
}

/// Shannon entropy in bits per byte.
fn entropy(text: &[u8]) -> f64 {
    let total = text.len() as f64;
    counts(text)
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values are put together here so that scanners of source code do not trip over this file.
    fn aws() -> String {
        format!("AK{}{}", "IA", "Q3EGRZ7YTLM5HWPK")
    }

    #[test]
    fn credentials_are_found() {
        let pem = format!(
            "-----BEGIN RSA PRIVATE {}-----\nMIIEowIBAAKCAQEAvd7Kq2pX9s0LmN4Bz8Yc1WfTgHjUoR5e\nQiVxZ6aDkEnF3hJtMwSbPyCrGuLlOq7I9z2X\n",
            "KEY"
        );
        let jwt = format!(
            "ey{}.ey{}.{}",
            "JhbGciOiJIUzI1NiJ9", "JzdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
        );
        for (text, kind) in [
            (format!("key {} here", aws()), SecretKind::AwsAccessKeyId),
            (pem.clone(), SecretKind::PrivateKey),
            (pem.replace('\n', " "), SecretKind::PrivateKey),
            (pem.replace('\n', "\\n"), SecretKind::PrivateKey),
            (format!("Bearer {jwt}"), SecretKind::JsonWebToken),
            (r#"api_key = "0f1e2d3c4b5a69788796a5b4c3d2e1f0""#.to_owned(), SecretKind::AssignedSecret),
            (r#"{"client_secret":"Zx8Qk2_vN4mPq7RtYw3LbHs9"}"#.to_owned(), SecretKind::AssignedSecret),
            ("DB_PASSWORD=9fK2mQz7Lw4Xc8Vb1Ns6Td3R".to_owned(), SecretKind::AssignedSecret),
            ("auth token: 7b1d2c0e-93aa-4f64-8a51-2c77e0d9b6f1".to_owned(), SecretKind::AssignedSecret),
            ("APIKey := 'k3J9x7Qp2Vn5Zt8Rb4Ls6Wm1'".to_owned(), SecretKind::AssignedSecret),
        ] {
            assert_eq!(find_secret(&text), Some(kind), "{text}");
        }
    }

    #[test]
    fn placeholders_masks_and_prose_pass() {
        for text in [
            "api_key = \"YOUR_API_KEY_GOES_HERE_123\"",
            "api_key = sk-xxxxxxxxxxxxxxxxxxxxxxxx1234",
            "password: ************************",
            "password: correct-horse-battery-staple",
            "The token: authentication is described in chapter 12 of the handbook",
            "secret = process.env.MY_APPLICATION_SECRET_V2_KEY",
            "token = generate_random_token_v2_64bytes(12)",
            "password_hash = 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "AKIAIOSFODNN7EXAMPLE",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
            "secret: ${SECRETS_MANAGER_VALUE_12345}",
            "max_tokens: 12345678901234567890",
            "commit 0f1e2d3c4b5a69788796a5b4c3d2e1f0aabbccdd",
            "token: /usr/share/app/v2/config/3/name",
            "eyJhbGciOi without the rest",
            "Das Passwort: bitte beim Empfang erfragen (Zimmer 204)",
        ] {
            assert_eq!(find_secret(text), None, "{text}");
        }
    }

    #[test]
    fn a_match_across_pieces_is_found() {
        let mut text = "lorem ipsum ".repeat(11_000);
        text.push_str("api_key = \"0f1e2d3c4b5a6978");
        let mut scanner = SecretScanner::default();
        assert!(scanner.push(&text).is_ok());
        assert!(scanner.push("8796a5b4c3d2e1f0\"").is_ok());
        let error = scanner.finish().unwrap_err();
        assert_eq!(error.code, OutcomeCode::SecretDetected);
        assert!(!error.message.contains("0f1e"));
    }
}
