//! One sealed entry as one line of JSON: what an export consists of and what is verified offline.
//!
//! Every line carries what its hash covers. The first line of an export carries a member `export` too, which says how far
//! the whole file goes, so that a file that was cut is known as such.

use std::borrow::Cow;
use std::num::NonZero;

use serde::{Deserialize, Serialize};
use tale_core::crypto::hex_of;
use uuid::Uuid;

use super::chain::{Actor, Hash, Keeping, Record, SALT_BYTES, Sealed, Subject, VERSION};
use super::chain::{compact, hex, number, text, uuid};

/// What an export holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Export {
    /// When it was made, in milliseconds since 1970.
    pub exported_at: i64,
    /// The sequence of the first line.
    pub first_sequence: u64,
    /// The head of the chain at that time, which is the last line.
    pub last_sequence: u64,
    /// Its hash.
    pub last_hash: String,
    /// Whether entries between the two were left out by a filter.
    pub filtered: bool,
}

/// Appends `entry` as a line.
pub fn write(out: &mut Vec<u8>, entry: &Sealed<'_>, export: Option<&Export>) {
    let Record { actor, subject, .. } = &entry.record;
    out.extend_from_slice(b"{\"v\":");
    number(out, VERSION.into());
    let name = |out: &mut Vec<u8>, name: &str| {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
    };
    if let Some(export) = export {
        name(out, "export");
        // An object of numbers and a string can be written.
        let _ = serde_json::to_writer(&mut *out, export);
    }
    name(out, "organizationId");
    match entry.record.organization {
        Some(id) => uuid(out, id),
        None => out.extend_from_slice(b"null"),
    }
    name(out, "sequence");
    number(out, entry.sequence.into());
    name(out, "id");
    uuid(out, entry.record.id);
    name(out, "timestamp");
    number(out, entry.record.timestamp.into());
    for (field, value) in [
        ("action", Some(&entry.record.action)),
        ("category", Some(&entry.record.category)),
        ("status", Some(&entry.record.status)),
        ("actorType", Some(&entry.record.actor_type)),
        ("actorEmail", actor.email.as_ref()),
        ("actorEmailHash", actor.email_hash.as_ref()),
        ("actorRole", actor.role.as_ref()),
        ("actorIp", actor.ip.as_ref()),
        ("actorIpHash", actor.ip_hash.as_ref()),
        ("resourceType", Some(&entry.record.resource_type)),
        ("resourceId", subject.id.as_ref()),
    ] {
        if let Some(value) = value {
            name(out, field);
            text(out, value);
        }
    }
    for (field, value) in [("actorId", actor.id), ("apiKeyId", actor.key_id)] {
        if let Some(value) = value {
            name(out, field);
            uuid(out, value);
        }
    }
    name(out, "details");
    compact(out, &subject.details);
    for (salt, commitment, keeping) in
        [("actorSalt", "actorCommitment", entry.actor), ("subjectSalt", "subjectCommitment", entry.subject)]
    {
        let (field, bytes): (_, &[u8]) = match &keeping {
            Keeping::Salted(bytes) => (salt, bytes),
            Keeping::Erased(bytes) => (commitment, bytes),
        };
        name(out, field);
        out.push(b'"');
        hex(out, bytes);
        out.push(b'"');
    }
    for (field, hash) in [("previousHash", &entry.previous), ("integrityHash", &entry.hash)] {
        name(out, field);
        out.push(b'"');
        hex(out, hash);
        out.push(b'"');
    }
    out.extend_from_slice(b"}\n");
}

/// The hash in `export`, when it is one.
pub(super) fn hash_of(text: &str) -> Option<Hash> {
    bytes_of::<32>(text)
}

/// The head that `export` names, as it is written there.
pub fn head_text(hash: &Hash) -> String {
    hex_of(hash)
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn parse(line: &str) -> Result<(Sealed<'_>, Option<Export>), String> {
    let mut fields = Fields::default();
    let mut scanner = Scanner { text: line, at: 0 };
    scanner.object(|name, raw| fields.set(name, raw))?;
    fields.sealed()
}

/// The members of a line as they stand there.
#[derive(Default)]
struct Fields<'a>([Option<&'a str>; NAMES.len()]);

/// Every member that a line may have. Others are refused: nothing would prove them.
const NAMES: [&str; 26] = [
    "v",
    "export",
    "organizationId",
    "sequence",
    "id",
    "timestamp",
    "action",
    "category",
    "status",
    "actorType",
    "actorEmail",
    "actorEmailHash",
    "actorRole",
    "actorIp",
    "actorIpHash",
    "resourceType",
    "resourceId",
    "actorId",
    "apiKeyId",
    "details",
    "actorSalt",
    "actorCommitment",
    "subjectSalt",
    "subjectCommitment",
    "previousHash",
    "integrityHash",
];

impl<'a> Fields<'a> {
    fn set(&mut self, name: &str, raw: &'a str) -> Result<(), String> {
        let place = NAMES.iter().position(|known| *known == name);
        let slot = place.and_then(|at| self.0.get_mut(at)).ok_or_else(|| format!("has an unknown member `{name}`"))?;
        if slot.replace(raw).is_some() {
            return Err(format!("has the member `{name}` twice"));
        }
        Ok(())
    }

    /// The member, unless it is left out.
    fn given(&self, name: &str) -> Option<&'a str> {
        let at = NAMES.iter().position(|known| *known == name)?;
        self.0[at]
    }

    /// The member, unless it is left out or null.
    fn raw(&self, name: &str) -> Option<&'a str> {
        self.given(name).filter(|raw| *raw != "null")
    }

    fn optional_text(&self, name: &str) -> Result<Option<Cow<'a, str>>, String> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let inner = inner.ok_or_else(|| format!("has a `{name}` that is no text"))?;
        if inner.contains('\\') {
            let owned: String = serde_json::from_str(raw).map_err(|_| format!("has a `{name}` that is no text"))?;
            return Ok(Some(Cow::Owned(owned)));
        }
        Ok(Some(Cow::Borrowed(inner)))
    }

    fn text(&self, name: &str) -> Result<Cow<'a, str>, String> {
        self.optional_text(name)?.ok_or_else(|| format!("has no `{name}`"))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let raw = self.raw(name).ok_or_else(|| format!("has no `{name}`"))?;
        raw.parse().map_err(|_| format!("has a `{name}` that is no whole number"))
    }

    fn optional_id(&self, name: &str) -> Result<Option<Uuid>, String> {
        let Some(text) = self.optional_text(name)? else { return Ok(None) };
        // One way to write an id, so that nothing in a line can be written differently.
        let plain = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let id = Uuid::try_parse(&text).ok().filter(|_| plain);
        id.map(Some).ok_or_else(|| format!("has a `{name}` that is no id"))
    }

    fn bytes<const N: usize>(&self, name: &str) -> Result<Option<[u8; N]>, String> {
        let Some(text) = self.optional_text(name)? else { return Ok(None) };
        bytes_of(&text).map(Some).ok_or_else(|| format!("has a `{name}` that is not {N} bytes in hexadecimal"))
    }

    fn hash(&self, name: &str) -> Result<Hash, String> {
        self.bytes(name)?.ok_or_else(|| format!("has no `{name}`: it is not sealed"))
    }

    fn keeping(&self, salt: &str, commitment: &str) -> Result<Keeping, String> {
        match (self.bytes::<SALT_BYTES>(salt)?, self.bytes(commitment)?) {
            (Some(salt), None) => Ok(Keeping::Salted(salt)),
            (None, Some(commitment)) => Ok(Keeping::Erased(commitment)),
            _ => Err(format!("must have one of `{salt}` and `{commitment}`")),
        }
    }

    fn sealed(&self) -> Result<(Sealed<'a>, Option<Export>), String> {
        let version: u64 = self.number("v")?;
        if version != VERSION {
            return Err(format!("has version {version}, which this release does not know"));
        }
        let record = Record {
            organization: self.optional_id("organizationId")?,
            id: self.optional_id("id")?.ok_or("has no `id`")?,
            timestamp: self.number("timestamp")?,
            action: self.text("action")?,
            category: self.text("category")?,
            status: self.text("status")?,
            actor_type: self.text("actorType")?,
            resource_type: self.text("resourceType")?,
            actor: Actor {
                email: self.optional_text("actorEmail")?,
                email_hash: self.optional_text("actorEmailHash")?,
                id: self.optional_id("actorId")?,
                ip: self.optional_text("actorIp")?,
                ip_hash: self.optional_text("actorIpHash")?,
                key_id: self.optional_id("apiKeyId")?,
                role: self.optional_text("actorRole")?,
            },
            subject: Subject {
                details: Cow::Borrowed(self.given("details").ok_or("has no `details`")?),
                id: self.optional_text("resourceId")?,
            },
        };
        let sealed = Sealed {
            record,
            sequence: self.number::<NonZero<u64>>("sequence")?.get(),
            previous: self.hash("previousHash")?,
            hash: self.hash("integrityHash")?,
            actor: self.keeping("actorSalt", "actorCommitment")?,
            subject: self.keeping("subjectSalt", "subjectCommitment")?,
        };
        let export = self.raw("export").map(serde_json::from_str);
        let export = export.transpose().map_err(|error| format!("has an `export` that cannot be read: {error}"))?;
        Ok((sealed, export))
    }
}

/// `N` bytes in lower-case hexadecimal.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Finds the members of one object without decoding them.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn object(&mut self, mut member: impl FnMut(&str, &'a str) -> Result<(), String>) -> Result<(), String> {
        self.expect(b'{')?;
        loop {
            self.space();
            let name = self.value()?;
            let name = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let name = name.ok_or("is not an object of named members")?;
            self.expect(b':')?;
            self.space();
            member(name, self.value()?)?;
            self.space();
            match self.next() {
                Some(b',') => {}
                Some(b'}') => break,
                _ => return Err("is not JSON".into()),
            }
        }
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err("goes on after its object".into()) }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.text.as_bytes().get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        self.space();
        if self.next() == Some(byte) { Ok(()) } else { Err("is not JSON".into()) }
    }

    /// The text of the value that begins here.
    fn value(&mut self) -> Result<&'a str, String> {
        let (from, mut depth) = (self.at, 0usize);
        let cut = || Err("is cut off".to_owned());
        loop {
            match self.text.as_bytes().get(self.at) {
                None => return cut(),
                Some(b'"') => {
                    self.at += 1;
                    loop {
                        match self.next() {
                            None => return cut(),
                            Some(b'\\') => self.at += 1,
                            Some(b'"') => break,
                            Some(_) => {}
                        }
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b'}' | b']' | b':') if depth == 0 => return Err("is not JSON".into()),
                Some(_) => self.at += 1,
            }
            // A value ends with its last bracket or quote, and a bare word before what follows it.
            let follows = self.text.as_bytes().get(self.at);
            let bare = matches!(self.text.as_bytes()[from], b'{' | b'[' | b'"');
            if depth == 0 && (bare || matches!(follows, Some(b',' | b'}' | b':' | b' ' | b'\t' | b'\r'))) {
                return self.text.get(from..self.at).ok_or_else(|| "is not JSON".into());
            }
        }
    }
}
