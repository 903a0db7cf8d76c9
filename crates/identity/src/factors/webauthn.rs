//! What browsers and authenticators sign (Web Authentication, level 2), judged without a network or a clock.
//!
//! Who made an authenticator is neither asked nor looked at (attestation `none`), so a registration proves
//! nothing but that a browser of this site made it; a signature proves the possession of the key.

use serde::Deserialize;
use tale_core::crypto::{PublicKey, constant_time_eq, sha256};
use url::Url;
use uuid::Uuid;

use super::cbor::{Item, map};

/// Longest name of a credential that authenticators may choose.
pub(crate) const MAX_CREDENTIAL_ID: usize = 1_023;
/// Longest public key that is kept, in bytes: one of RSA with 8192 bits.
const MAX_KEY: usize = 1_200;

/// Somebody was there, was verified, and a new key is told: bits of the flags.
const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const HAS_KEY: u8 = 0x40;

/// The algorithms of passkeys, the preferred one first (COSE).
pub(crate) const ALGORITHMS: [i64; 3] = [-7, -8, -257];

/// For whom passkeys are: the site, by the host of its canonical address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    /// The host.
    pub id: String,
    /// The origins of the site where browsers offer its passkeys.
    origins: Vec<String>,
}

impl RelyingParty {
    /// Of a site at `canonical` and `additional`. `None`: it is named by a number, which passkeys cannot be made for.
    #[must_use]
    pub fn of<'a>(canonical: &'a Url, additional: impl IntoIterator<Item = &'a Url>) -> Option<Self> {
        let id = canonical.domain()?.to_owned();
        let below = format!(".{id}");
        let same = |url: &&Url| url.domain().is_some_and(|host| host == id || host.ends_with(&below));
        let origins = std::iter::once(canonical).chain(additional);
        let origins = origins.filter(same).map(|url| url.origin().ascii_serialization()).collect();
        Some(Self { id, origins })
    }

    /// Whether browsers offer the passkeys on pages of `origin`.
    #[must_use]
    pub fn serves(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known == origin)
    }
}

/// What a ceremony must hold besides its signature.
pub(crate) struct Ceremony<'a> {
    pub(crate) party: &'a RelyingParty,
    /// `webauthn.create` or `webauthn.get`.
    pub(crate) kind: &'static str,
}

/// What a browser says about a ceremony.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
}

/// A new passkey, as its authenticator described it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewCredential {
    pub(crate) id: Vec<u8>,
    pub(crate) public_key: Vec<u8>,
    pub(crate) sign_count: u32,
    pub(crate) aaguid: Uuid,
}

/// Why a ceremony does not count, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("the browser's words cannot be read")]
    ClientData,
    #[error("it is another ceremony")]
    Kind,
    #[error("it was made on another site")]
    Origin,
    #[error("the authenticator's words cannot be read")]
    AuthenticatorData,
    #[error("it was made for another site")]
    Party,
    #[error("the authenticator did not verify the person")]
    Unverified,
    #[error("the key is of no kind that was asked for")]
    Key,
    #[error("the signature is wrong")]
    Signature,
}

impl Ceremony<'_> {
    /// The challenge that the browser was given, when it is about this ceremony on a page of ours.
    pub(crate) fn challenge(&self, client_data: &[u8]) -> Result<String, Flaw> {
        let said: ClientData = serde_json::from_slice(client_data).map_err(|_| Flaw::ClientData)?;
        if said.kind != self.kind {
            return Err(Flaw::Kind);
        }
        if !self.party.serves(&said.origin) || said.cross_origin {
            return Err(Flaw::Origin);
        }
        Ok(said.challenge)
    }

    /// The flags and the counter, when the person was verified for this site; and what follows them.
    fn authenticated<'a>(&self, data: &'a [u8]) -> Result<(u8, u32, &'a [u8]), Flaw> {
        let (party, rest) = data.split_first_chunk::<32>().ok_or(Flaw::AuthenticatorData)?;
        let (&[flags, a, b, c, d], rest) = rest.split_first_chunk::<5>().ok_or(Flaw::AuthenticatorData)?;
        if !constant_time_eq(party, &sha256(self.party.id.as_bytes())) {
            return Err(Flaw::Party);
        }
        if flags & PRESENT == 0 || flags & VERIFIED == 0 {
            return Err(Flaw::Unverified);
        }
        Ok((flags, u32::from_be_bytes([a, b, c, d]), rest))
    }

    /// The passkey of a registration.
    pub(crate) fn registered(&self, attestation: &[u8]) -> Result<NewCredential, Flaw> {
        let mut data = None;
        map(attestation, |key, value| {
            if let (Item::Text("authData"), Item::Bytes(bytes)) = (key, value) {
                data = Some(bytes);
            }
        })
        .ok_or(Flaw::AuthenticatorData)?;
        let (flags, sign_count, rest) = self.authenticated(data.ok_or(Flaw::AuthenticatorData)?)?;
        if flags & HAS_KEY == 0 {
            return Err(Flaw::AuthenticatorData);
        }
        let (aaguid, rest) = rest.split_first_chunk::<16>().ok_or(Flaw::AuthenticatorData)?;
        let (length, rest) = rest.split_first_chunk::<2>().ok_or(Flaw::AuthenticatorData)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (id, rest) = rest.split_at_checked(length).ok_or(Flaw::AuthenticatorData)?;
        if id.is_empty() || id.len() > MAX_CREDENTIAL_ID {
            return Err(Flaw::AuthenticatorData);
        }
        let length = map(rest, |_, _| {}).filter(|length| *length <= MAX_KEY).ok_or(Flaw::Key)?;
        let public_key = rest[..length].to_vec();
        key_of(&public_key).ok_or(Flaw::Key)?;
        Ok(NewCredential { id: id.to_vec(), public_key, sign_count, aaguid: Uuid::from_bytes(*aaguid) })
    }

    /// The counter of a sign-in whose signature is that of `public_key`.
    pub(crate) fn asserted(
        &self,
        public_key: &[u8],
        data: &[u8],
        client_data: &[u8],
        signature: &[u8],
    ) -> Result<u32, Flaw> {
        let (_, sign_count, _) = self.authenticated(data)?;
        let key = key_of(public_key).ok_or(Flaw::Key)?;
        let message = [data, &sha256(client_data)].concat();
        if key.verifies(&message, signature) { Ok(sign_count) } else { Err(Flaw::Signature) }
    }
}

/// The key of a COSE key (RFC 9052) of one of [`ALGORITHMS`].
fn key_of(cose: &[u8]) -> Option<PublicKey> {
    let mut entries = Vec::new();
    map(cose, |key, value| {
        if let Item::Int(key) = key {
            entries.push((key, value));
        }
    })?;
    let value = |label| entries.iter().find(|(key, _)| *key == label).map(|(_, value)| *value);
    let bytes = |label| match value(label) {
        Some(Item::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    match (value(1)?, value(3)?) {
        (Item::Int(2), Item::Int(-7)) if value(-1) == Some(Item::Int(1)) => {
            Some(PublicKey::Es256 { x: bytes(-2)?.try_into().ok()?, y: bytes(-3)?.try_into().ok()? })
        }
        (Item::Int(1), Item::Int(-8)) if value(-1) == Some(Item::Int(6)) => {
            Some(PublicKey::EdDsa(bytes(-2)?.try_into().ok()?))
        }
        (Item::Int(3), Item::Int(-257)) => Some(PublicKey::Rs256 { n: bytes(-1)?.to_vec(), e: bytes(-2)?.to_vec() }),
        _ => None,
    }
}
