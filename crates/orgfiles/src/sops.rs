//! SOPS files in JSON, encrypted to age keys.
//!
//! Each value is encrypted by itself with one random data key, so names and structure stay readable
//! in a diff: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`. The data key is encrypted to every
//! recipient in the `sops` member, and a keyed digest over all values guards against values that
//! were exchanged or removed. The digest runs in the order of the file, so members keep theirs.

use std::io::{Read, Write};

use age::armor::{ArmoredReader, ArmoredWriter, Format};
use age::x25519::Recipient;
use age::{Decryptor, Encryptor};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tale_core::crypto::{self, RunningSha512, SopsSealed, constant_time_eq};

use crate::keys::AgeKeys;

/// Members whose name ends like this stay readable, as SOPS does by default.
const UNENCRYPTED_SUFFIX: &str = "_unencrypted";
/// The release of SOPS whose form this is.
const SOPS_VERSION: &str = "3.11.0";

/// Why a file cannot be opened or made. Never shows a value.
#[derive(Debug, thiserror::Error)]
pub enum SopsError {
    /// Not the JSON of a SOPS file.
    #[error("it is not a SOPS file in JSON: {0}")]
    Malformed(String),
    /// No age key is configured.
    #[error("it is encrypted and no age key is configured; set SOPS_AGE_KEY or SOPS_AGE_KEY_FILE")]
    NoKey,
    /// None of the configured keys is a recipient.
    #[error("none of the configured age keys opens it; it is encrypted to {}", if .recipients.is_empty() { "no age key".to_owned() } else { .recipients.join(", ") })]
    WrongKey {
        /// Public keys that the file names.
        recipients: Vec<String>,
    },
    /// A value was changed outside of SOPS.
    #[error("its value `{path}` was changed without its key or is damaged")]
    Damaged {
        /// Where in the file.
        path: String,
    },
    /// The digest over all values does not fit.
    #[error("its values do not fit their checksum: one was exchanged, removed or added without the key")]
    Checksum,
    /// The age library refused.
    #[error("the data key could not be encrypted: {0}")]
    Seal(String),
}

/// JSON whose objects keep the order of their members.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    Leaf(Leaf),
}

#[derive(Debug, Clone, PartialEq)]
enum Leaf {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
}

/// Whether `text` is a SOPS file, encrypted or broken.
#[must_use]
pub fn is_encrypted(text: &str) -> bool {
    serde_json::from_str::<Marker>(text).is_ok_and(|marker| marker.sops.is_some())
}

#[derive(Deserialize)]
struct Marker {
    sops: Option<serde::de::IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    age: Vec<AgeEntry>,
    lastmodified: String,
    mac: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unencrypted_suffix: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    mac_only_encrypted: bool,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct AgeEntry {
    recipient: String,
    enc: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Encrypts the JSON object `plain` to every key of `keys`.
///
/// # Errors
/// [`SopsError::NoKey`] without keys, [`SopsError::Malformed`] when `plain` is not an object.
pub fn encrypt(plain: &str, keys: &AgeKeys) -> Result<String, SopsError> {
    if keys.is_empty() {
        return Err(SopsError::NoKey);
    }
    let mut members = object(plain)?;
    let data_key: [u8; 32] = tale_core::crypto::random_key();
    let mut mac = RunningSha512::default();
    for (name, node) in &mut members {
        seal(node, &data_key, &format!("{name}:"), name.ends_with(UNENCRYPTED_SUFFIX), &mut mac)?;
    }
    let lastmodified = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let mac = enclose(&data_key, &lastmodified, mac_text(mac).as_bytes(), "str")?;
    let age = keys
        .recipients()
        .map(|recipient| Ok(AgeEntry { enc: wrap_key(&recipient, &data_key)?, recipient: recipient.to_string() }))
        .collect::<Result<_, SopsError>>()?;
    let metadata = Metadata {
        age,
        lastmodified,
        mac,
        unencrypted_suffix: Some(UNENCRYPTED_SUFFIX.to_owned()),
        mac_only_encrypted: false,
        version: SOPS_VERSION.to_owned(),
    };
    let metadata = serde_json::to_string(&metadata)
        .and_then(|text| serde_json::from_str::<Node>(&text))
        .map_err(|error| SopsError::Malformed(error.to_string()))?;
    members.push(("sops".to_owned(), metadata));
    pretty(&Node::Object(members))
}

/// The JSON object that was encrypted, with its members in the order of the file.
///
/// # Errors
/// [`SopsError`], which says what to do about it.
pub fn decrypt(text: &str, keys: &AgeKeys) -> Result<String, SopsError> {
    let malformed = |error: serde_json::Error| SopsError::Malformed(error.to_string());
    let mut members = object(text)?;
    let at = members.iter().position(|(name, _)| name == "sops");
    let Some((_, metadata)) = at.map(|at| members.remove(at)) else {
        return Err(SopsError::Malformed("it has no member `sops`".to_owned()));
    };
    let metadata: Metadata =
        serde_json::to_string(&metadata).and_then(|text| serde_json::from_str(&text)).map_err(malformed)?;
    if keys.is_empty() {
        return Err(SopsError::NoKey);
    }
    let data_key = unwrap_key(&metadata.age, keys)?;
    let suffix = metadata.unencrypted_suffix.as_deref().filter(|suffix| !suffix.is_empty());
    let mut mac = RunningSha512::default();
    for (name, node) in &mut members {
        let plain = suffix.is_some_and(|suffix| name.ends_with(suffix));
        open(node, &data_key, &format!("{name}:"), suffix, plain, metadata.mac_only_encrypted, &mut mac)?;
    }
    let stored = disclose(&data_key, &metadata.lastmodified, &metadata.mac).map_err(|()| SopsError::Checksum)?;
    if !constant_time_eq(stored.1.as_slice(), mac_text(mac).as_bytes()) {
        return Err(SopsError::Checksum);
    }
    pretty(&Node::Object(members))
}

/// The public keys that a SOPS file names as its recipients.
///
/// # Errors
/// [`SopsError::Malformed`] when it is no SOPS file.
pub fn recipients(text: &str) -> Result<Vec<String>, SopsError> {
    #[derive(Deserialize)]
    struct File {
        sops: Metadata,
    }
    let file: File = serde_json::from_str(text).map_err(|error| SopsError::Malformed(error.to_string()))?;
    Ok(file.sops.age.into_iter().map(|entry| entry.recipient).collect())
}

fn object(text: &str) -> Result<Vec<(String, Node)>, SopsError> {
    match serde_json::from_str(text) {
        Ok(Node::Object(members)) => Ok(members),
        Ok(_) => Err(SopsError::Malformed("it is not an object".to_owned())),
        Err(error) => Err(SopsError::Malformed(error.to_string())),
    }
}

fn pretty(node: &Node) -> Result<String, SopsError> {
    let mut text = serde_json::to_string_pretty(node).map_err(|error| SopsError::Malformed(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// Encrypts every leaf below `node` in place. The path authenticates where a value stands; the
/// elements of an array share the path of the array.
fn seal(node: &mut Node, key: &[u8; 32], path: &str, plain: bool, mac: &mut RunningSha512) -> Result<(), SopsError> {
    match node {
        Node::Object(members) => members.iter_mut().try_for_each(|(name, member)| {
            seal(member, key, &format!("{path}{name}:"), plain || name.ends_with(UNENCRYPTED_SUFFIX), mac)
        }),
        Node::Array(elements) => elements.iter_mut().try_for_each(|element| seal(element, key, path, plain, mac)),
        Node::Leaf(leaf) => {
            let Some((bytes, kind)) = leaf.bytes() else { return Ok(()) };
            mac.update(&bytes);
            // SOPS leaves empty text as it is.
            if !plain && !bytes.is_empty() {
                *leaf = Leaf::Text(enclose(key, path, &bytes, kind)?);
            }
            Ok(())
        }
    }
}

fn open(
    node: &mut Node,
    key: &[u8; 32],
    path: &str,
    suffix: Option<&str>,
    plain: bool,
    mac_only_encrypted: bool,
    mac: &mut RunningSha512,
) -> Result<(), SopsError> {
    match node {
        Node::Object(members) => members.iter_mut().try_for_each(|(name, member)| {
            let plain = plain || suffix.is_some_and(|suffix| name.ends_with(suffix));
            open(member, key, &format!("{path}{name}:"), suffix, plain, mac_only_encrypted, mac)
        }),
        Node::Array(elements) => {
            elements.iter_mut().try_for_each(|element| open(element, key, path, suffix, plain, mac_only_encrypted, mac))
        }
        Node::Leaf(leaf) => {
            if let Leaf::Text(text) = &*leaf
                && !plain
                && !text.is_empty()
            {
                let damaged = || SopsError::Damaged { path: path.trim_end_matches(':').replace(':', ".") };
                let (kind, bytes) = disclose(key, path, text).map_err(|()| damaged())?;
                mac.update(&bytes);
                *leaf = Leaf::read(kind, bytes).ok_or_else(damaged)?;
            } else if let Some((bytes, _)) = leaf.bytes()
                && !mac_only_encrypted
            {
                mac.update(&bytes);
            }
            Ok(())
        }
    }
}

impl Leaf {
    /// The bytes that are encrypted and counted, and the name of their type. `null` has none.
    fn bytes(&self) -> Option<(Vec<u8>, &'static str)> {
        match self {
            Self::Null => None,
            Self::Bool(true) => Some((b"True".to_vec(), "bool")),
            Self::Bool(false) => Some((b"False".to_vec(), "bool")),
            Self::Number(number) if number.is_f64() => Some((number.to_string().into_bytes(), "float")),
            Self::Number(number) => Some((number.to_string().into_bytes(), "int")),
            Self::Text(text) => Some((text.clone().into_bytes(), "str")),
        }
    }

    fn read(kind: &str, bytes: Vec<u8>) -> Option<Self> {
        let text = String::from_utf8(bytes).ok()?;
        match kind {
            "str" | "bytes" => Some(Self::Text(text)),
            "int" | "float" => serde_json::from_str(&text).ok().map(Self::Number),
            "bool" => text.to_lowercase().parse().ok().map(Self::Bool),
            _ => None,
        }
    }
}

/// `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.
fn enclose(key: &[u8; 32], context: &str, plain: &[u8], kind: &str) -> Result<String, SopsError> {
    let sealed = crypto::sops_seal(key, context, plain).map_err(|error| SopsError::Seal(error.to_string()))?;
    let [data, iv, tag] = [sealed.data.as_slice(), &sealed.iv, &sealed.tag].map(|bytes| STANDARD.encode(bytes));
    Ok(format!("ENC[AES256_GCM,data:{data},iv:{iv},tag:{tag},type:{kind}]"))
}

/// The type and the bytes of an enclosed value.
fn disclose<'a>(key: &[u8; 32], context: &str, text: &'a str) -> Result<(&'a str, Vec<u8>), ()> {
    let inner = text.strip_prefix("ENC[AES256_GCM,").and_then(|rest| rest.strip_suffix(']')).ok_or(())?;
    let mut pieces = inner.splitn(4, ',');
    let mut piece = |name: &str| pieces.next().and_then(|piece| piece.strip_prefix(name)).ok_or(());
    let (data, iv, tag, kind) = (piece("data:")?, piece("iv:")?, piece("tag:")?, piece("type:")?);
    let decode = |text: &str| STANDARD.decode(text).map_err(drop);
    let sealed = SopsSealed { data: decode(data)?, iv: decode(iv)?.try_into().map_err(drop)?, tag: decode(tag)? };
    Ok((kind, crypto::sops_open(key, context, &sealed).map_err(drop)?))
}

fn mac_text(mac: RunningSha512) -> String {
    crypto::hex_of(&mac.finish()).to_uppercase()
}

fn wrap_key(recipient: &Recipient, key: &[u8; 32]) -> Result<String, SopsError> {
    let refused = |error: &dyn std::fmt::Display| SopsError::Seal(error.to_string());
    let mut text = Vec::new();
    let armor = ArmoredWriter::wrap_output(&mut text, Format::AsciiArmor).map_err(|error| refused(&error))?;
    let encryptor = Encryptor::with_recipients(std::iter::once(recipient as &dyn age::Recipient))
        .map_err(|error| refused(&error))?;
    encryptor
        .wrap_output(armor)
        .and_then(|mut writer| {
            writer.write_all(key)?;
            writer.finish()
        })
        .and_then(ArmoredWriter::finish)
        .map_err(|error| refused(&error))?;
    String::from_utf8(text).map_err(|error| refused(&error))
}

fn unwrap_key(entries: &[AgeEntry], keys: &AgeKeys) -> Result<[u8; 32], SopsError> {
    let identities = || keys.identities().iter().map(|identity| identity as &dyn age::Identity);
    entries
        .iter()
        .find_map(|entry| {
            let decryptor = Decryptor::new(ArmoredReader::new(entry.enc.as_bytes())).ok()?;
            let mut reader = decryptor.decrypt(identities()).ok()?;
            let mut key = [0u8; 32];
            reader.read_exact(&mut key).ok()?;
            Some(key)
        })
        .ok_or_else(|| SopsError::WrongKey {
            recipients: entries.iter().map(|entry| entry.recipient.clone()).collect(),
        })
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, member) in members {
                    map.serialize_entry(name, member)?;
                }
                map.end()
            }
            Self::Array(elements) => {
                let mut seq = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    seq.serialize_element(element)?;
                }
                seq.end()
            }
            Self::Leaf(Leaf::Null) => serializer.serialize_unit(),
            Self::Leaf(Leaf::Bool(value)) => serializer.serialize_bool(*value),
            Self::Leaf(Leaf::Number(value)) => value.serialize(serializer),
            Self::Leaf(Leaf::Text(value)) => serializer.serialize_str(value),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Number(value.into())))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        let number = serde_json::Number::from_f64(value).ok_or_else(|| E::custom("not a number"))?;
        Ok(Node::Leaf(Leaf::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Node::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}
