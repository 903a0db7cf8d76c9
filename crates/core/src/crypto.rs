//! Cryptography in one place: field encryption, digests, random tokens, constant-time comparison.
//! Algorithms are those of DCF-264; no other room calls a cipher.

pub mod certificate;
pub mod transport;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Why a secret could not be sealed or opened. Never says anything about its content.
#[derive(Debug, thiserror::Error)]
pub enum CryptoError {
    /// The key text is not 64 hexadecimal digits.
    #[error("the encryption key must be 64 hexadecimal digits (32 bytes)")]
    BadKey,
    /// The sealed text is damaged, or was sealed with another key or for another purpose.
    #[error("the stored secret cannot be opened: it is damaged or was encrypted with another key")]
    CannotOpen,
    /// The cipher refused to seal.
    #[error("the secret could not be encrypted")]
    CannotSeal,
}

/// AES-256-GCM encryption of single database fields.
///
/// A sealed value is `v1.<key id>.<base64url(nonce ‖ ciphertext)>`; the key id is the first eight
/// hex digits of the key's SHA-256, so that a rotated key is recognized. `context` (table, column,
/// row id) is authenticated: a sealed value copied to another row does not open there.
#[derive(Clone)]
pub struct FieldCipher {
    current: (String, Aes256Gcm),
    previous: Vec<(String, Aes256Gcm)>,
}

impl std::fmt::Debug for FieldCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FieldCipher").field("key_id", &self.current.0).finish_non_exhaustive()
    }
}

impl FieldCipher {
    /// From `ENCRYPTION_SECRET_HEX`, and the keys before it while values are re-encrypted.
    ///
    /// # Errors
    /// [`CryptoError::BadKey`] when one of them is not 64 hexadecimal digits.
    pub fn from_hex<'a>(current: &str, previous: impl IntoIterator<Item = &'a str>) -> Result<Self, CryptoError> {
        let previous = previous.into_iter().map(keyed).collect::<Result<_, _>>()?;
        Ok(Self { current: keyed(current)?, previous })
    }

    /// Encrypts `plain` for `context`.
    ///
    /// # Errors
    /// [`CryptoError::CannotSeal`] when the cipher fails.
    pub fn seal(&self, context: &str, plain: &str) -> Result<String, CryptoError> {
        let nonce: [u8; 12] = rand::random();
        let sealed = self
            .current
            .1
            .encrypt(&Nonce::from(nonce), Payload { msg: plain.as_bytes(), aad: context.as_bytes() })
            .map_err(|_| CryptoError::CannotSeal)?;
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed);
        Ok(format!("v1.{}.{}", self.current.0, URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// What [`FieldCipher::seal`] made for `context`, encrypted anew with the present key; `None` when it is that already.
    ///
    /// # Errors
    /// Those of [`FieldCipher::open`].
    pub fn renew(&self, context: &str, sealed: &str) -> Result<Option<String>, CryptoError> {
        if sealed.split('.').nth(1) == Some(self.current.0.as_str()) {
            return Ok(None);
        }
        self.seal(context, &self.open(context, sealed)?).map(Some)
    }

    /// Decrypts what [`FieldCipher::seal`] made for the same `context`.
    ///
    /// # Errors
    /// [`CryptoError::CannotOpen`] for a damaged value, another key or another context.
    pub fn open(&self, context: &str, sealed: &str) -> Result<String, CryptoError> {
        let mut pieces = sealed.splitn(3, '.');
        let (Some("v1"), Some(key_id), Some(body)) = (pieces.next(), pieces.next(), pieces.next()) else {
            return Err(CryptoError::CannotOpen);
        };
        let cipher = std::iter::once(&self.current)
            .chain(&self.previous)
            .find(|(id, _)| id == key_id)
            .map(|(_, cipher)| cipher)
            .ok_or(CryptoError::CannotOpen)?;
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| CryptoError::CannotOpen)?;
        let (nonce, ciphertext) = bytes.split_at_checked(12).ok_or(CryptoError::CannotOpen)?;
        let nonce: [u8; 12] = nonce.try_into().map_err(|_| CryptoError::CannotOpen)?;
        let plain = cipher
            .decrypt(&Nonce::from(nonce), Payload { msg: ciphertext, aad: context.as_bytes() })
            .map_err(|_| CryptoError::CannotOpen)?;
        String::from_utf8(plain).map_err(|_| CryptoError::CannotOpen)
    }
}

fn keyed(hex: &str) -> Result<(String, Aes256Gcm), CryptoError> {
    let bytes = decode_hex(hex.trim()).filter(|bytes| bytes.len() == 32).ok_or(CryptoError::BadKey)?;
    let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| CryptoError::BadKey)?;
    let id = hex_of(&sha256(&key)[..4]);
    Ok((id, Aes256Gcm::new(&Key::<Aes256Gcm>::from(key))))
}

/// AES-256-GCM with a nonce of 32 bytes, as SOPS files have it. Twelve bytes are usual; a longer
/// nonce is hashed first, so that random ones do not collide either.
type SopsCipher = aes_gcm::AesGcm<aes_gcm::aes::Aes256, aes_gcm::aead::consts::U32>;

/// Length of the authentication tag that ends a ciphertext.
const TAG_BYTES: usize = 16;

/// What became of one value of a SOPS file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SopsSealed {
    /// The encrypted bytes, as many as the plain ones.
    pub data: Vec<u8>,
    /// The nonce.
    pub iv: [u8; 32],
    /// The authentication tag.
    pub tag: Vec<u8>,
}

/// Encrypts one value of a SOPS file with its data key; `context` is authenticated.
///
/// # Errors
/// [`CryptoError::CannotSeal`] when the cipher fails.
pub fn sops_seal(key: &[u8; 32], context: &str, plain: &[u8]) -> Result<SopsSealed, CryptoError> {
    let iv: [u8; 32] = rand::random();
    let mut data = SopsCipher::new(&(*key).into())
        .encrypt(&iv.into(), Payload { msg: plain, aad: context.as_bytes() })
        .map_err(|_| CryptoError::CannotSeal)?;
    let tag = data.split_off(data.len() - TAG_BYTES);
    Ok(SopsSealed { data, iv, tag })
}

/// Decrypts what [`sops_seal`], or SOPS itself, made for the same `context`.
///
/// # Errors
/// [`CryptoError::CannotOpen`] for a damaged value, another key or another context.
pub fn sops_open(key: &[u8; 32], context: &str, sealed: &SopsSealed) -> Result<Vec<u8>, CryptoError> {
    let joined = [sealed.data.as_slice(), &sealed.tag].concat();
    SopsCipher::new(&(*key).into())
        .decrypt(&sealed.iv.into(), Payload { msg: &joined, aad: context.as_bytes() })
        .map_err(|_| CryptoError::CannotOpen)
}

/// SHA-512 of bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct RunningSha512(sha2::Sha512);

impl RunningSha512 {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of everything taken.
    #[must_use]
    pub fn finish(self) -> [u8; 64] {
        self.0.finalize().into()
    }
}

/// SHA-256 of `bytes`.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct RunningSha256(Sha256);

impl RunningSha256 {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of everything taken, in lower-case hexadecimal.
    #[must_use]
    pub fn finish_hex(self) -> String {
        hex_of(&self.0.finalize())
    }
}

/// HMAC-SHA-256 of `message` under `key`.
#[must_use]
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    // HMAC takes a key of any length, so this constructor cannot fail.
    #[expect(clippy::expect_used, reason = "HMAC accepts keys of every length")]
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("any key length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// HMAC-SHA-1 of `message` under `key`: what authenticator apps compute, and for nothing else.
#[must_use]
pub fn hmac_sha1(key: &[u8], message: &[u8]) -> [u8; 20] {
    // HMAC takes a key of any length, so this constructor cannot fail.
    #[expect(clippy::expect_used, reason = "HMAC accepts keys of every length")]
    let mut mac = <Hmac<sha1::Sha1> as hmac::KeyInit>::new_from_slice(key).expect("any key length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// A public key of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// ECDSA over P-256 with SHA-256; signatures are ASN.1.
    Es256 {
        /// The point's first coordinate.
        x: [u8; 32],
        /// The point's second coordinate.
        y: [u8; 32],
    },
    /// RSASSA-PKCS1-v1_5 with SHA-256, 2048 to 8192 bits.
    Rs256 {
        /// The modulus, big-endian without leading zeros.
        n: Vec<u8>,
        /// The exponent, big-endian without leading zeros.
        e: Vec<u8>,
    },
    /// Ed25519.
    EdDsa([u8; 32]),
}

impl PublicKey {
    /// Whether `signature` over `message` was made with the private key.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.judges(message, signature, &ring::signature::ECDSA_P256_SHA256_ASN1)
    }

    /// [`PublicKey::verifies`] for the signatures of JSON Web Tokens, where those of ECDSA are two numbers.
    #[must_use]
    pub fn verifies_token(&self, message: &[u8], signature: &[u8]) -> bool {
        self.judges(message, signature, &ring::signature::ECDSA_P256_SHA256_FIXED)
    }

    fn judges(
        &self,
        message: &[u8],
        signature: &[u8],
        ecdsa: &'static ring::signature::EcdsaVerificationAlgorithm,
    ) -> bool {
        use ring::signature;
        match self {
            Self::Es256 { x, y } => {
                let point = [&[4u8][..], x, y].concat();
                signature::UnparsedPublicKey::new(ecdsa, point).verify(message, signature)
            }
            Self::Rs256 { n, e } => signature::RsaPublicKeyComponents { n, e }.verify(
                &signature::RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
            Self::EdDsa(key) => signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature),
        }
        .is_ok()
    }
}

/// Whether two secrets are equal, in time that does not depend on where they differ.
#[must_use]
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// A random key of 32 bytes.
#[must_use]
pub fn random_key() -> [u8; 32] {
    rand::random()
}

/// `bytes` random bytes as base64url without padding.
#[must_use]
pub fn random_token(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    rand::fill(&mut buffer[..]);
    URL_SAFE_NO_PAD.encode(buffer)
}

/// `bytes` random bytes as lower-case hexadecimal.
#[must_use]
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    rand::fill(&mut buffer[..]);
    hex_of(&buffer)
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Reads hexadecimal of either case; `None` for anything else.
#[must_use]
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_authenticators_rest_on_the_sums_of_the_standard() {
        // RFC 2202, test case 1.
        assert_eq!(hex_of(&hmac_sha1(&[0x0b; 20], b"Hi There")), "b617318655057264e28bc0b6fb378c8ef146be00");
    }

    #[test]
    fn only_the_owner_of_the_private_key_signs() {
        use ring::signature::{Ed25519KeyPair, KeyPair};
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let key = PublicKey::EdDsa(pair.public_key().as_ref().try_into().unwrap());
        let signature = pair.sign(b"words");
        assert!(key.verifies(b"words", signature.as_ref()));
        assert!(!key.verifies(b"other words", signature.as_ref()));
        assert!(!PublicKey::EdDsa([9; 32]).verifies(b"words", signature.as_ref()));
        assert!(!PublicKey::Rs256 { n: Vec::new(), e: Vec::new() }.verifies(b"words", signature.as_ref()));
        assert!(!PublicKey::Es256 { x: [0; 32], y: [0; 32] }.verifies(b"words", &[]));
    }

    fn cipher(byte: &str, previous: Option<&str>) -> FieldCipher {
        FieldCipher::from_hex(&byte.repeat(32), previous.map(|p| p.repeat(32)).as_deref()).unwrap()
    }

    #[test]
    fn a_sealed_value_opens_only_in_its_own_place() {
        let cipher = cipher("a1", None);
        let sealed = cipher.seal("credential:1", "sk-secret").unwrap();
        assert_eq!(cipher.open("credential:1", &sealed).unwrap(), "sk-secret");
        assert!(cipher.open("credential:2", &sealed).is_err());
        assert!(!sealed.contains("sk-secret"));
    }

    #[test]
    fn the_previous_key_still_opens() {
        let sealed = cipher("a1", None).seal("c", "x").unwrap();
        assert_eq!(cipher("b2", Some("a1")).open("c", &sealed).unwrap(), "x");
        let (third, second, first) = ("c3".repeat(32), "b2".repeat(32), "a1".repeat(32));
        let third = FieldCipher::from_hex(&third, [second.as_str(), first.as_str()]).unwrap();
        assert_eq!(third.open("c", &sealed).unwrap(), "x");
        assert!(cipher("b2", None).open("c", &sealed).is_err());
    }

    #[test]
    fn hex_survives_a_round_trip_and_refuses_the_rest() {
        assert_eq!(decode_hex("00ffA0").unwrap(), [0, 255, 160]);
        assert!(decode_hex("0").is_none());
        assert!(decode_hex("zz").is_none());
    }
}
