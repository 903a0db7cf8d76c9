//! The shape of an API key (KEY-16): `tale_` + kind letter + `_` + 43 characters base64url (32
//! random bytes) + 6 characters base62 of a CRC-32 over everything before them. A key with a wrong
//! checksum is refused without asking the database.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tale_core::crypto::{random_token, sha256};

const PREFIX: &str = "tale_";
/// Kind letter of a key of a reverse proxy.
const TRUSTED_HEADERS: char = 'h';
/// Kind letter of the token of a directory.
const PROVISIONING: char = 's';
/// Kind letter of a key of the model gateway.
const GATEWAY: char = 'g';
const BODY: usize = 43;
const CHECK: usize = 6;
/// Length of a whole key.
pub const KEY_LENGTH: usize = PREFIX.len() + 2 + BODY + CHECK;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A new key: the secret for its maker, and what is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The whole key, shown once.
    pub secret: String,
    /// SHA-256 of the whole.
    pub hash: [u8; 32],
    /// The first twelve characters.
    pub first: String,
    /// The last four characters.
    pub last: String,
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewKey").field("first", &self.first).finish_non_exhaustive()
    }
}

/// To whom an API key belongs (spec 13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// To the person who made it, in every organization of theirs.
    Personal,
    /// To a member, made by somebody above them.
    Member,
    /// To a team.
    Team,
    /// To the organization.
    Organization,
}

impl KeyKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Personal, Self::Member, Self::Team, Self::Organization];

    /// The word on the wire and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Personal => "personal",
            Self::Member => "member",
            Self::Team => "team",
            Self::Organization => "organization",
        }
    }

    /// Reads the word of [`KeyKind::text`]; `None` for any other word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.text() == text)
    }

    fn letter(self) -> char {
        match self {
            Self::Personal => 'u',
            Self::Member => 'm',
            Self::Team => 't',
            Self::Organization => 'o',
        }
    }
}

impl TryFrom<String> for KeyKind {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a kind of key"))
    }
}

/// Makes an API key.
#[must_use]
pub fn api(kind: KeyKind) -> NewKey {
    make(kind.letter())
}

/// Makes a personal key.
#[must_use]
pub fn personal() -> NewKey {
    api(KeyKind::Personal)
}

/// Makes a key with which a reverse proxy signs people in.
#[must_use]
pub fn trusted_headers() -> NewKey {
    make(TRUSTED_HEADERS)
}

/// Makes the token with which a directory provisions an organization.
#[must_use]
pub fn provisioning() -> NewKey {
    make(PROVISIONING)
}

/// The key of the model gateway that `random` stands for.
#[must_use]
pub fn gateway(random: &[u8; 32]) -> NewKey {
    write(GATEWAY, &URL_SAFE_NO_PAD.encode(random))
}

fn make(kind: char) -> NewKey {
    write(kind, &random_token(32))
}

fn write(kind: char, body: &str) -> NewKey {
    let head = format!("{PREFIX}{kind}_{body}");
    let secret = format!("{head}{}", checksum(&head));
    NewKey {
        hash: sha256(secret.as_bytes()),
        first: secret[..12].to_owned(),
        last: secret[secret.len() - 4..].to_owned(),
        secret,
    }
}

/// The stored digest of an API key of any kind as a client sent it; `None` when it cannot be one of ours.
#[must_use]
pub fn digest(secret: &str) -> Option<[u8; 32]> {
    KeyKind::ALL.into_iter().find_map(|kind| digest_of(kind.letter(), secret))
}

/// The same of a key of a reverse proxy.
#[must_use]
pub fn trusted_headers_digest(secret: &str) -> Option<[u8; 32]> {
    digest_of(TRUSTED_HEADERS, secret)
}

/// The same of the token of a directory.
#[must_use]
pub fn provisioning_digest(secret: &str) -> Option<[u8; 32]> {
    digest_of(PROVISIONING, secret)
}

/// The same of a key of the model gateway.
#[must_use]
pub fn gateway_digest(secret: &str) -> Option<[u8; 32]> {
    digest_of(GATEWAY, secret)
}

fn digest_of(kind: char, secret: &str) -> Option<[u8; 32]> {
    if secret.len() != KEY_LENGTH || !secret.is_ascii() {
        return None;
    }
    let (head, check) = secret.split_at(KEY_LENGTH - CHECK);
    let rest = head.strip_prefix(PREFIX)?.strip_prefix(kind)?.strip_prefix('_')?;
    let urlsafe = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    (urlsafe && check == checksum(head)).then(|| sha256(secret.as_bytes()))
}

fn checksum(head: &str) -> String {
    let mut value = crc32fast::hash(head.as_bytes());
    let mut digits = [b'0'; CHECK];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(value % 62) as usize];
        value /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_new_key_has_the_specified_shape() {
        let key = personal();
        assert_eq!(key.secret.len(), 56);
        assert!(key.secret.starts_with("tale_u_"));
        assert_eq!(digest(&key.secret), Some(key.hash));
        assert_eq!((key.first.len(), key.last.len()), (12, 4));
        assert!(!format!("{key:?}").contains(&key.secret[12..]));
        assert_ne!(personal().secret, key.secret);
        assert_eq!(trusted_headers_digest(&key.secret), None, "each kind opens its own door only");
        assert_eq!(digest(&trusted_headers().secret), None);
        for kind in KeyKind::ALL {
            let key = api(kind);
            assert_eq!(digest(&key.secret), Some(key.hash), "{kind:?}");
            assert_eq!(KeyKind::parse(kind.text()), Some(kind));
        }
    }

    #[test]
    fn the_checksum_is_pinned() {
        // A change here would refuse every key that was ever handed out.
        assert_eq!(checksum("tale_u_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), "0uE78M");
        assert_eq!(checksum(""), "000000");
    }

    proptest! {
        #[test]
        fn any_single_change_is_refused(at in 0usize..56, to in proptest::char::range('!', '~')) {
            let key = personal();
            let mut bytes: Vec<char> = key.secret.chars().collect();
            if bytes[at] != to {
                bytes[at] = to;
                prop_assert_eq!(digest(&bytes.iter().collect::<String>()), None);
            }
        }

        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,80}") {
            prop_assert_eq!(digest(&text), None);
        }
    }
}
