//! The form in which an entry is sealed, byte by byte.
//!
//! **The hash** of an entry is `SHA-256(previous ‖ form)`. `previous` are the 32 bytes of the hash before it, zeros
//! for the first of a chain. `form` is the RFC 8785 (JCS) JSON text of one object, in UTF-8, with exactly these members:
//!
//! ```json
//! {"action":"document.delete","actor":"<64 hex>","actorType":"user","category":"data","id":"<uuid>",
//!  "organizationId":"<uuid>","resourceType":"document","sequence":7,"status":"success","subject":"<64 hex>",
//!  "timestamp":1795957447123,"v":1}
//! ```
//!
//! (one line without spaces; `organizationId` is `null` for entries of the deployment; `timestamp` in milliseconds
//! since 1970; ids and hashes in lower-case hexadecimal). `v` is [`VERSION`].
//!
//! **Personal values** are not in the form. `actor` and `subject` are commitments: `SHA-256(salt ‖ value)`, where `salt` is 16
//! random bytes of this entry and this commitment, and `value` is the JSON text of an object whose members stand in the order
//! of their names; members without a value are left out:
//!
//! - `actor`, who did it: `email`, `emailHash`, `id`, `ip`, `ipHash`, `keyId`, `role`;
//! - `subject`, what it was done to: `details` (always there; JSON without white space between tokens, otherwise as
//!   it is exported) and `id`.
//!
//! Whoever erases a value erases its salt too and keeps the commitment, so the chain goes on verifying in full, and
//! the commitment tells nothing about the value: without the salt it cannot be guessed.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The version of the form.
pub const VERSION: u64 = 1;

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;

/// A hash of the chain, or a commitment.
pub type Hash = [u8; 32];

/// The random bytes that hide a value in its commitment.
pub type Salt = [u8; SALT_BYTES];

/// What precedes the first entry of a chain.
pub const BEGINNING: Hash = [0; 32];

/// What keeps a group of values provable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// The values are there and hidden by this salt.
    Salted(Salt),
    /// The values and their salt were erased; this is their commitment.
    Erased(Hash),
}

/// An entry as the chain sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its organization; none for the deployment.
    pub organization: Option<Uuid>,
    /// Its id.
    pub id: Uuid,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// What was done.
    pub action: Cow<'a, str>,
    /// Its area.
    pub category: Cow<'a, str>,
    /// How it ended.
    pub status: Cow<'a, str>,
    /// The kind of actor.
    pub actor_type: Cow<'a, str>,
    /// The kind of thing it was done to.
    pub resource_type: Cow<'a, str>,
    /// Who did it.
    pub actor: Actor<'a>,
    /// What it was done to.
    pub subject: Subject<'a>,
}

impl Record<'_> {
    /// The same with text of its own.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let Self { actor, subject, .. } = self;
        Record {
            organization: self.organization,
            id: self.id,
            timestamp: self.timestamp,
            action: own(self.action),
            category: own(self.category),
            status: own(self.status),
            actor_type: own(self.actor_type),
            resource_type: own(self.resource_type),
            actor: Actor {
                email: actor.email.map(own),
                email_hash: actor.email_hash.map(own),
                id: actor.id,
                ip: actor.ip.map(own),
                ip_hash: actor.ip_hash.map(own),
                key_id: actor.key_id,
                role: actor.role.map(own),
            },
            subject: Subject { details: own(subject.details), id: subject.id.map(own) },
        }
    }
}

/// The values behind the commitment `actor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Address of the account.
    pub email: Option<Cow<'a, str>>,
    /// Its keyed hash.
    pub email_hash: Option<Cow<'a, str>>,
    /// The account.
    pub id: Option<Uuid>,
    /// The network.
    pub ip: Option<Cow<'a, str>>,
    /// Its keyed hash.
    pub ip_hash: Option<Cow<'a, str>>,
    /// The API key.
    pub key_id: Option<Uuid>,
    /// The role of the account.
    pub role: Option<Cow<'a, str>>,
}

/// The values behind the commitment `subject`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The details, as JSON.
    pub details: Cow<'a, str>,
    /// The thing.
    pub id: Option<Cow<'a, str>>,
}

/// What stands where in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The entry.
    pub record: Record<'a>,
    /// Its place.
    pub sequence: u64,
    /// The hash before it.
    pub previous: Hash,
    /// Its hash.
    pub hash: Hash,
    /// What keeps [`Record::actor`] provable.
    pub actor: Keeping,
    /// What keeps [`Record::subject`] provable.
    pub subject: Keeping,
}

/// The details that stay when a subject is erased.
pub const NO_DETAILS: &str = "{}";

impl Subject<'_> {
    /// Whether nothing is left of it.
    fn is_empty(&self) -> bool {
        self.id.is_none() && self.details == NO_DETAILS
    }
}

/// Computes hashes. Keeps its buffer between entries.
#[derive(Debug, Default)]
pub struct Sealer(Vec<u8>);

impl Sealer {
    /// The hash of `entry` at `sequence` after `previous`. `None` when values stand beside a commitment that
    /// says they were erased: they prove nothing.
    pub fn hash(
        &mut self,
        previous: &Hash,
        sequence: u64,
        entry: &Record<'_>,
        actor: Keeping,
        subject: Keeping,
    ) -> Option<Hash> {
        let actor = match actor {
            Keeping::Salted(salt) => self.actor_commitment(&salt, &entry.actor),
            Keeping::Erased(commitment) => (entry.actor == Actor::default()).then_some(commitment)?,
        };
        let subject = match subject {
            Keeping::Salted(salt) => self.subject_commitment(&salt, &entry.subject),
            Keeping::Erased(commitment) => entry.subject.is_empty().then_some(commitment)?,
        };
        let out = &mut self.0;
        out.clear();
        out.extend_from_slice(previous);
        out.extend_from_slice(b"{\"action\":");
        text(out, &entry.action);
        out.extend_from_slice(b",\"actor\":\"");
        hex(out, &actor);
        out.extend_from_slice(b"\",\"actorType\":");
        text(out, &entry.actor_type);
        out.extend_from_slice(b",\"category\":");
        text(out, &entry.category);
        out.extend_from_slice(b",\"id\":");
        uuid(out, entry.id);
        out.extend_from_slice(b",\"organizationId\":");
        match entry.organization {
            Some(id) => uuid(out, id),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"resourceType\":");
        text(out, &entry.resource_type);
        out.extend_from_slice(b",\"sequence\":");
        number(out, sequence);
        out.extend_from_slice(b",\"status\":");
        text(out, &entry.status);
        out.extend_from_slice(b",\"subject\":\"");
        hex(out, &subject);
        out.extend_from_slice(b"\",\"timestamp\":");
        signed(out, entry.timestamp);
        out.extend_from_slice(b",\"v\":");
        number(out, VERSION);
        out.push(b'}');
        Some(Sha256::digest(out).into())
    }

    /// The commitment to who acted.
    pub fn actor_commitment(&mut self, salt: &Salt, actor: &Actor<'_>) -> Hash {
        let out = &mut self.0;
        out.clear();
        out.extend_from_slice(salt);
        let mut first = b'{';
        let mut member = |out: &mut Vec<u8>, name: &[u8]| {
            out.push(first);
            first = b',';
            out.push(b'"');
            out.extend_from_slice(name);
            out.extend_from_slice(b"\":");
        };
        if let Some(value) = &actor.email {
            member(out, b"email");
            text(out, value);
        }
        if let Some(value) = &actor.email_hash {
            member(out, b"emailHash");
            text(out, value);
        }
        if let Some(value) = actor.id {
            member(out, b"id");
            uuid(out, value);
        }
        if let Some(value) = &actor.ip {
            member(out, b"ip");
            text(out, value);
        }
        if let Some(value) = &actor.ip_hash {
            member(out, b"ipHash");
            text(out, value);
        }
        if let Some(value) = actor.key_id {
            member(out, b"keyId");
            uuid(out, value);
        }
        if let Some(value) = &actor.role {
            member(out, b"role");
            text(out, value);
        }
        if first == b'{' {
            out.push(b'{');
        }
        out.push(b'}');
        Sha256::digest(out).into()
    }

    /// The commitment to what was acted on.
    pub fn subject_commitment(&mut self, salt: &Salt, subject: &Subject<'_>) -> Hash {
        let out = &mut self.0;
        out.clear();
        out.extend_from_slice(salt);
        out.extend_from_slice(b"{\"details\":");
        compact(out, &subject.details);
        if let Some(value) = &subject.id {
            out.extend_from_slice(b",\"id\":");
            text(out, value);
        }
        out.push(b'}');
        Sha256::digest(out).into()
    }
}

/// JSON without the white space between its tokens; nothing else changes.
pub fn compact(out: &mut Vec<u8>, json: &str) {
    let bytes = json.as_bytes();
    let (mut from, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_string(bytes, at).unwrap_or(bytes.len()),
            b' ' | b'\n' | b'\r' | b'\t' => {
                out.extend_from_slice(&bytes[from..at]);
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    out.extend_from_slice(&bytes[from..]);
}

/// The place behind the JSON string that begins at `at`; `None` when it does not end.
pub(super) fn after_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A JSON string as RFC 8785 writes it.
pub(super) fn text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    let bytes = value.as_bytes();
    // Nearly every text stands for itself. Looking at all of it without a branch is quicker than stopping early.
    let plain = |plain: bool, byte: &u8| plain & (*byte >= 0x20) & (*byte != b'"') & (*byte != b'\\');
    if bytes.iter().fold(true, plain) {
        out.extend_from_slice(bytes);
    } else {
        escaped(out, bytes);
    }
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => b"",
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..at]);
        if escape.is_empty() {
            let [high, low] = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        } else {
            out.extend_from_slice(escape);
        }
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
}

/// An id as a JSON string.
pub(super) fn uuid(out: &mut Vec<u8>, id: Uuid) {
    let mut buffer = Uuid::encode_buffer();
    out.push(b'"');
    out.extend_from_slice(id.hyphenated().encode_lower(&mut buffer).as_bytes());
    out.push(b'"');
}

/// A whole number.
pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    let (mut digits, mut from, mut rest) = ([0; 20], 20, value);
    loop {
        from -= 1;
        digits[from] = DIGITS[(rest % 10) as usize];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

/// A whole number that may be below zero.
pub(super) fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    number(out, value.unsigned_abs());
}

/// Bytes in lower-case hexadecimal.
pub(super) fn hex<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N]) {
    let pairs = bytes.map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    out.extend_from_slice(pairs.as_flattened());
}
