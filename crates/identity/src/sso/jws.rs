//! Signed tokens of identity providers (RFC 7515, 7517): which key a token may be verified with, and nothing else.
//!
//! The algorithm is looked up in a list of three that need a public key each, so `none` and every algorithm with a
//! shared secret are unknown here, and a key is only ever used for its own algorithm.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use tale_core::crypto::PublicKey;

/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 100_000;
/// Most keys of a provider that are remembered.
const MAX_KEYS: usize = 64;

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsigned {
    /// Not three pieces of base64url with JSON in the first two, or too long.
    #[error("the token is malformed")]
    Malformed,
    /// An algorithm that is not in the list, or extensions that must be understood.
    #[error("the token is signed in a way that is not accepted")]
    Algorithm,
    /// None of the provider's keys has the name that the token gives.
    #[error("the provider has no such key")]
    UnknownKey,
    /// The signature is not of that key.
    #[error("the signature is wrong")]
    Signature,
}

/// The public keys of a provider.
#[derive(Debug, Clone, Default)]
pub(super) struct KeySet(Vec<(Option<String>, PublicKey)>);

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

impl Jwk {
    /// The key, when it is one for signatures of a kind that is accepted.
    fn public(&self) -> Option<PublicKey> {
        if self.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let key = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", None) => {
                let number = |text: &Option<String>| {
                    let bytes = decoded(text.as_deref()?)?;
                    Some(bytes[bytes.iter().position(|byte| *byte != 0)?..].to_vec())
                };
                PublicKey::Rs256 { n: number(&self.n)?, e: number(&self.e)? }
            }
            ("EC", Some("P-256")) => {
                let point = |text: &Option<String>| decoded(text.as_deref()?)?.try_into().ok();
                PublicKey::Es256 { x: point(&self.x)?, y: point(&self.y)? }
            }
            ("OKP", Some("Ed25519")) => PublicKey::EdDsa(decoded(self.x.as_deref()?)?.try_into().ok()?),
            _ => return None,
        };
        self.alg.as_deref().is_none_or(|alg| alg == algorithm(&key)).then_some(key)
    }
}

fn algorithm(key: &PublicKey) -> &'static str {
    match key {
        PublicKey::Rs256 { .. } => "RS256",
        PublicKey::Es256 { .. } => "ES256",
        PublicKey::EdDsa(_) => "EdDSA",
    }
}

impl KeySet {
    /// The keys of a JWK set that can verify tokens here; keys of other kinds are left out. `None`: it is no set.
    pub(super) fn parse(set: &Value) -> Option<Self> {
        let keys = set.get("keys")?.as_array()?;
        let usable = keys.iter().filter_map(|key| {
            let key = Jwk::deserialize(key).ok()?;
            Some((key.kid.clone(), key.public()?))
        });
        Some(Self(usable.take(MAX_KEYS).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a token says, once its signature is known to be the provider's.
    pub(super) fn verify(&self, token: &str) -> Result<Map<String, Value>, Unsigned> {
        if token.len() > MAX_TOKEN {
            return Err(Unsigned::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Unsigned::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Unsigned::Malformed)?;
        let header = decoded(header).ok_or(Unsigned::Malformed)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| Unsigned::Malformed)?;
        if header.crit.is_some() || !matches!(header.alg.as_str(), "RS256" | "ES256" | "EdDSA") {
            return Err(Unsigned::Algorithm);
        }
        let signature = decoded(signature).ok_or(Unsigned::Malformed)?;
        let fitting = || self.0.iter().filter(|(_, key)| algorithm(key) == header.alg);
        let key = match &header.kid {
            Some(wanted) => fitting().find(|(kid, _)| kid.as_ref() == Some(wanted)),
            // A token that names no key can only mean the one there is.
            None => fitting().next().filter(|_| fitting().count() == 1),
        };
        let (_, key) = key.ok_or(Unsigned::UnknownKey)?;
        if !key.verifies_token(signed.as_bytes(), &signature) {
            return Err(Unsigned::Signature);
        }
        let claims = decoded(claims).ok_or(Unsigned::Malformed)?;
        serde_json::from_slice(&claims).map_err(|_| Unsigned::Malformed)
    }
}
