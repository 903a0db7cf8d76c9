//! Secrets as text in files of secrets, for `#[serde(with = "tale_orgfiles::secret")]`.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serializer};

/// Writes the secret itself.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

/// Reads one.
///
/// # Errors
/// When it is no text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}
