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
use super::chain::{after_string, compact, hex, number, signed, text, uuid};

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
    number(out, VERSION);
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
    number(out, entry.sequence);
    name(out, "id");
    uuid(out, entry.record.id);
    name(out, "timestamp");
    signed(out, entry.record.timestamp);
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
        match &keeping {
            Keeping::Salted(bytes) => {
                name(out, salt);
                out.push(b'"');
                hex(out, bytes);
            }
            Keeping::Erased(bytes) => {
                name(out, commitment);
                out.push(b'"');
                hex(out, bytes);
            }
        }
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
struct Fields<'a> {
    found: [Option<&'a str>; NAMES.len()],
    /// Behind the member that was found last: where the next one stands in [`NAMES`] as long as a line is in order.
    expected: usize,
}

/// Declares the members of a line: their places in [`NAMES`], and how they are written.
macro_rules! members {
    ($($member:ident = $name:literal),* $(,)?) => {
        #[derive(Clone, Copy)]
        enum Member { $($member),* }

        /// Every member that a line may have, in the order of an export. Others are refused: nothing would prove them.
        const NAMES: [&str; [$($name),*].len()] = [$($name),*];
    };
}

members! {
    Version = "v",
    Export = "export",
    Organization = "organizationId",
    Sequence = "sequence",
    Id = "id",
    Timestamp = "timestamp",
    Action = "action",
    Category = "category",
    Status = "status",
    ActorType = "actorType",
    ActorEmail = "actorEmail",
    ActorEmailHash = "actorEmailHash",
    ActorRole = "actorRole",
    ActorIp = "actorIp",
    ActorIpHash = "actorIpHash",
    ResourceType = "resourceType",
    ResourceId = "resourceId",
    ActorId = "actorId",
    ApiKey = "apiKeyId",
    Details = "details",
    ActorSalt = "actorSalt",
    ActorCommitment = "actorCommitment",
    SubjectSalt = "subjectSalt",
    SubjectCommitment = "subjectCommitment",
    PreviousHash = "previousHash",
    IntegrityHash = "integrityHash",
}

impl Member {
    fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

impl<'a> Fields<'a> {
    fn set(&mut self, name: &str, raw: &'a str) -> Result<(), String> {
        let (before, behind) = NAMES.split_at(self.expected);
        let ahead = behind.iter().position(|known| *known == name).map(|at| at + before.len());
        let place = ahead.or_else(|| before.iter().position(|known| *known == name));
        let place = place.ok_or_else(|| format!("has an unknown member `{name}`"))?;
        self.expected = place + 1;
        if self.found[place].replace(raw).is_some() {
            return Err(format!("has the member `{name}` twice"));
        }
        Ok(())
    }

    /// The member, unless it is left out.
    fn given(&self, member: Member) -> Option<&'a str> {
        self.found[member as usize]
    }

    /// The member, unless it is left out or null.
    fn raw(&self, member: Member) -> Option<&'a str> {
        self.given(member).filter(|raw| *raw != "null")
    }

    fn optional_text(&self, member: Member) -> Result<Option<Cow<'a, str>>, String> {
        let Some(raw) = self.raw(member) else { return Ok(None) };
        let wrong = || format!("has a `{}` that is no text", member.name());
        let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(wrong)?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
            return Ok(Some(Cow::Owned(serde_json::from_str(raw).map_err(|_| wrong())?)));
        }
        Ok(Some(Cow::Borrowed(inner)))
    }

    fn text(&self, member: Member) -> Result<Cow<'a, str>, String> {
        self.optional_text(member)?.ok_or_else(|| format!("has no `{}`", member.name()))
    }

    fn number<T: std::str::FromStr>(&self, member: Member) -> Result<T, String> {
        let raw = self.raw(member).ok_or_else(|| format!("has no `{}`", member.name()))?;
        raw.parse().map_err(|_| format!("has a `{}` that is no whole number", member.name()))
    }

    fn optional_id(&self, member: Member) -> Result<Option<Uuid>, String> {
        let Some(text) = self.optional_text(member)? else { return Ok(None) };
        // One way to write an id, so that nothing in a line can be written differently.
        let plain = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let id = Uuid::try_parse(&text).ok().filter(|_| plain);
        id.map(Some).ok_or_else(|| format!("has a `{}` that is no id", member.name()))
    }

    fn bytes<const N: usize>(&self, member: Member) -> Result<Option<[u8; N]>, String> {
        let Some(text) = self.optional_text(member)? else { return Ok(None) };
        bytes_of(&text)
            .map(Some)
            .ok_or_else(|| format!("has a `{}` that is not {N} bytes in hexadecimal", member.name()))
    }

    fn hash(&self, member: Member) -> Result<Hash, String> {
        self.bytes(member)?.ok_or_else(|| format!("has no `{}`: it is not sealed", member.name()))
    }

    fn keeping(&self, salt: Member, commitment: Member) -> Result<Keeping, String> {
        match (self.bytes::<SALT_BYTES>(salt)?, self.bytes(commitment)?) {
            (Some(salt), None) => Ok(Keeping::Salted(salt)),
            (None, Some(commitment)) => Ok(Keeping::Erased(commitment)),
            _ => Err(format!("must have one of `{}` and `{}`", salt.name(), commitment.name())),
        }
    }

    fn sealed(&self) -> Result<(Sealed<'a>, Option<Export>), String> {
        let version: u64 = self.number(Member::Version)?;
        if version != VERSION {
            return Err(format!("has version {version}, which this release does not know"));
        }
        let record = Record {
            organization: self.optional_id(Member::Organization)?,
            id: self.optional_id(Member::Id)?.ok_or("has no `id`")?,
            timestamp: self.number(Member::Timestamp)?,
            action: self.text(Member::Action)?,
            category: self.text(Member::Category)?,
            status: self.text(Member::Status)?,
            actor_type: self.text(Member::ActorType)?,
            resource_type: self.text(Member::ResourceType)?,
            actor: Actor {
                email: self.optional_text(Member::ActorEmail)?,
                email_hash: self.optional_text(Member::ActorEmailHash)?,
                id: self.optional_id(Member::ActorId)?,
                ip: self.optional_text(Member::ActorIp)?,
                ip_hash: self.optional_text(Member::ActorIpHash)?,
                key_id: self.optional_id(Member::ApiKey)?,
                role: self.optional_text(Member::ActorRole)?,
            },
            subject: Subject {
                details: Cow::Borrowed(self.given(Member::Details).ok_or("has no `details`")?),
                id: self.optional_text(Member::ResourceId)?,
            },
        };
        let sealed = Sealed {
            record,
            sequence: self.number::<NonZero<u64>>(Member::Sequence)?.get(),
            previous: self.hash(Member::PreviousHash)?,
            hash: self.hash(Member::IntegrityHash)?,
            actor: self.keeping(Member::ActorSalt, Member::ActorCommitment)?,
            subject: self.keeping(Member::SubjectSalt, Member::SubjectCommitment)?,
        };
        let export = self.raw(Member::Export).map(serde_json::from_str);
        let export = export.transpose().map_err(|error| format!("has an `export` that cannot be read: {error}"))?;
        Ok((sealed, export))
    }
}

/// `N` bytes in lower-case hexadecimal.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    /// The value of each digit; [`NONE`] for what is none.
    const VALUES: [u8; 256] = {
        let (mut values, mut value) = ([NONE; 256], 0);
        while value < 16 {
            values[b"0123456789abcdef"[value] as usize] = value as u8;
            value += 1;
        }
        values
    };
    const NONE: u8 = 0xff;
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let pairs: &[[u8; 2]; N] = pairs.try_into().ok()?;
    let mut seen = 0;
    let bytes = pairs.map(|[high, low]| {
        let (high, low) = (VALUES[usize::from(high)], VALUES[usize::from(low)]);
        seen |= high | low;
        high << 4 | low & 15
    });
    (seen < 16).then_some(bytes)
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
        let (bytes, from, mut depth) = (self.text.as_bytes(), self.at, 0usize);
        loop {
            match bytes.get(self.at) {
                None => return Err("is cut off".into()),
                Some(b'"') => self.at = after_string(bytes, self.at).ok_or("is cut off")?,
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
            if depth > 0 {
                continue;
            }
            let follows = bytes.get(self.at);
            let bare = matches!(bytes[from], b'{' | b'[' | b'"');
            if bare || matches!(follows, Some(b',' | b'}' | b':' | b' ' | b'\t' | b'\r')) {
                return self.text.get(from..self.at).ok_or_else(|| "is not JSON".into());
            }
        }
    }
}
