//! The shape of an API key (KEY-16): `tale_` + kind letter + `_` + 43 characters base64url (32
//! random bytes) + 6 characters base62 of a CRC-32 over everything before them. A key with a wrong
//! checksum is refused without asking the database.

use tale_core::crypto::{random_token, sha256};

const PREFIX: &str = "tale_";
/// Kind letter of a personal key.
const PERSONAL: char = 'u';
/// Kind letter of a key of a reverse proxy.
const TRUSTED_HEADERS: char = 'h';
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

/// Makes a personal key.
#[must_use]
pub fn personal() -> NewKey {
    make(PERSONAL)
}

/// Makes a key with which a reverse proxy signs people in.
#[must_use]
pub fn trusted_headers() -> NewKey {
    make(TRUSTED_HEADERS)
}

fn make(kind: char) -> NewKey {
    let head = format!("{PREFIX}{kind}_{}", random_token(32));
    let secret = format!("{head}{}", checksum(&head));
    NewKey {
        hash: sha256(secret.as_bytes()),
        first: secret[..12].to_owned(),
        last: secret[secret.len() - 4..].to_owned(),
        secret,
    }
}

/// The stored digest of a personal key as a client sent it; `None` when it cannot be one of ours.
#[must_use]
pub fn digest(secret: &str) -> Option<[u8; 32]> {
    digest_of(PERSONAL, secret)
}

/// The same of a key of a reverse proxy.
#[must_use]
pub fn trusted_headers_digest(secret: &str) -> Option<[u8; 32]> {
    digest_of(TRUSTED_HEADERS, secret)
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
