//! The signed form of a hand-off (DCF-174): beside its key, a proxy sends a short-lived JSON Web Token
//! (RFC 7519, HS256) that names the person. Holding the key alone, or a copy of an assertion, names
//! nobody.
//!
//! The secret of the signatures is derived from a secret of the deployment and the id of the key, so
//! that no copy of the database holds it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tale_core::crypto::{constant_time_eq, hex_of, hmac_sha256, sha256};
use tale_core::ids::TrustedKeyId;

/// Longest life of an assertion.
const LIFE: TimeDelta = TimeDelta::seconds(60);
/// How far the clock of a proxy may be ahead of ours.
const AHEAD: TimeDelta = TimeDelta::seconds(30);
/// Largest assertion, in bytes.
const MAX_BYTES: usize = 4_096;
/// Length of an assertion's id, in characters.
const NONCE_CHARS: std::ops::RangeInclusive<usize> = 16..=128;

/// Whom an assertion names.
pub(crate) struct Named {
    pub(crate) email: String,
    pub(crate) name: Option<String>,
    pub(crate) role: Option<String>,
    /// Digest of its id.
    pub(crate) nonce: [u8; 32],
    pub(crate) expires_at: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    email: String,
    name: Option<String>,
    role: Option<String>,
    iat: i64,
    exp: i64,
    jti: String,
}

/// The secret that a proxy signs with, as text.
pub(crate) fn secret_of(deployment: &SecretString, key: TrustedKeyId) -> String {
    let message = format!("tale: assertions of {key}");
    hex_of(&hmac_sha256(deployment.expose_secret().as_bytes(), message.as_bytes()))
}

/// Judges an assertion at `now`.
///
/// # Errors
/// The reason for the log.
pub(crate) fn read(token: &str, secret: &str, now: DateTime<Utc>) -> Result<Named, &'static str> {
    let malformed = "assertion-malformed";
    if token.len() > MAX_BYTES {
        return Err(malformed);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(malformed)?;
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| malformed);
    if !constant_time_eq(&bytes(signature)?, &hmac_sha256(secret.as_bytes(), signed.as_bytes())) {
        return Err("assertion-signature");
    }
    let header: Header = serde_json::from_slice(&bytes(header)?).map_err(|_| malformed)?;
    if header.alg != "HS256" || header.crit.is_some() {
        return Err(malformed);
    }
    let claims: Claims = serde_json::from_slice(&bytes(claims)?).map_err(|_| malformed)?;
    let time = |seconds| DateTime::from_timestamp(seconds, 0).ok_or(malformed);
    let (issued_at, expires_at) = (time(claims.iat)?, time(claims.exp)?);
    if now >= expires_at || issued_at > now + AHEAD || expires_at - issued_at > LIFE {
        return Err("assertion-time");
    }
    if !NONCE_CHARS.contains(&claims.jti.chars().count()) {
        return Err(malformed);
    }
    let nonce = sha256(claims.jti.as_bytes());
    Ok(Named { email: claims.email, name: claims.name, role: claims.role, nonce, expires_at })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn sign(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(SECRET.as_bytes(), signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn claims() -> Value {
        json!({ "email": "zoe@acme.test", "role": "editor", "iat": at(0).timestamp(), "exp": at(60).timestamp(), "jti": "0123456789abcdef" })
    }

    fn judged(changes: &[(&str, Value)], now: i64) -> Result<String, &'static str> {
        let mut claims = claims();
        for (name, value) in changes {
            claims[*name] = value.clone();
        }
        read(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims), SECRET, at(now)).map(|named| named.email)
    }

    #[test]
    fn it_lives_for_a_minute_at_most() {
        assert_eq!(judged(&[], 0).unwrap(), "zoe@acme.test");
        assert!(judged(&[], -30).is_ok() && judged(&[], 59).is_ok());
        let wrong_time = [
            judged(&[], -31),
            judged(&[], 60),
            judged(&[("exp", json!(at(61).timestamp()))], 0),
            judged(&[("iat", json!(at(-3_600).timestamp()))], 0),
        ];
        assert!(wrong_time.iter().all(|judged| *judged == Err("assertion-time")), "{wrong_time:?}");
    }

    #[test]
    fn only_our_form_signed_by_our_secret_counts() {
        for changes in [
            &[("jti", json!("short"))][..],
            &[("jti", Value::Null)],
            &[("aud", json!("x"))],
            &[("exp", json!("soon"))],
            &[("exp", json!(i64::MAX))],
        ] {
            assert_eq!(judged(changes, 0), Err("assertion-malformed"), "{changes:?}");
        }
        for header in [json!({ "alg": "none" }), json!({ "alg": "HS512" }), json!({ "alg": "HS256", "crit": ["b64"] })]
        {
            assert_eq!(read(&sign(&header, &claims()), SECRET, at(0)).err(), Some("assertion-malformed"), "{header}");
        }
        let good = sign(&json!({ "alg": "HS256" }), &claims());
        let (signed, _) = good.rsplit_once('.').unwrap();
        for (token, secret) in
            [(good.as_str(), "another"), (&format!("{signed}."), SECRET), (&format!("{signed}.AAAA"), SECRET)]
        {
            assert_eq!(read(token, secret, at(0)).err(), Some("assertion-signature"), "{token}");
        }
        for token in ["", ".", "..", "a.b", &"x".repeat(5_000)] {
            assert!(read(token, SECRET, at(0)).is_err(), "{token}");
        }
        let secret = |deployment: &str, key| secret_of(&deployment.to_owned().into(), key);
        let (one, two) = (TrustedKeyId::new(), TrustedKeyId::new());
        assert_ne!(secret("a", one), secret("a", two));
        assert_ne!(secret("a", one), secret("b", one));
    }
}
