//! The encryption that XML documents carry: a key wrapped for us by RSA-OAEP, and AES-GCM under that key.

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rsa::oaep::Oaep;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::traits::PublicKeyParts;
use sha1::Sha1;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::CryptoError;
use super::certificate::Certificate;

/// Length of a nonce, in bytes.
const NONCE_BYTES: usize = 12;
/// The shortest key.
const MIN_BITS: u32 = 2_048;

/// A hash inside OAEP. SHA-1 is not weak there: nothing rests on collisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OaepHash {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

/// A private RSA key that others encrypt for.
#[derive(Clone)]
pub struct DecryptionKey(rsa::PrivateKey);

impl std::fmt::Debug for DecryptionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DecryptionKey")
    }
}

impl DecryptionKey {
    /// From a PEM text of PKCS #8 or PKCS #1 without a passphrase; `None` for anything else, and for fewer than 2048 bits.
    #[must_use]
    pub fn from_pem(pem: &str) -> Option<Self> {
        let pem = pem.trim();
        let key = rsa::PrivateKey::from_pkcs8_pem(pem).ok().or_else(|| rsa::PrivateKey::from_pkcs1_pem(pem).ok())?;
        (key.n().bit_width_vartime() >= MIN_BITS).then_some(Self(key))
    }

    /// Whether it is the private half of the certificate's key.
    #[must_use]
    pub fn belongs_to(&self, certificate: &Certificate) -> bool {
        certificate.rsa().is_some_and(|key| key == self.0.to_public_key())
    }

    /// The key that was wrapped for this one, with a hash for the label and one for the mask.
    ///
    /// # Errors
    /// [`CryptoError::CannotOpen`], whatever is wrong.
    pub fn unwrap(&self, digest: OaepHash, mask: OaepHash, wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        let opened = match (digest, mask) {
            (OaepHash::Sha1, OaepHash::Sha1) => self.0.decrypt(Oaep::<Sha1, Sha1>::new_with_mgf_hash(), wrapped),
            (OaepHash::Sha1, OaepHash::Sha256) => self.0.decrypt(Oaep::<Sha1, Sha256>::new_with_mgf_hash(), wrapped),
            (OaepHash::Sha256, OaepHash::Sha1) => self.0.decrypt(Oaep::<Sha256, Sha1>::new_with_mgf_hash(), wrapped),
            (OaepHash::Sha256, OaepHash::Sha256) => {
                self.0.decrypt(Oaep::<Sha256, Sha256>::new_with_mgf_hash(), wrapped)
            }
        };
        opened.map(Zeroizing::new).map_err(|_| CryptoError::CannotOpen)
    }
}

/// Opens `nonce ‖ ciphertext ‖ tag` with a key of 16 or 32 bytes.
///
/// # Errors
/// [`CryptoError::CannotOpen`], whatever is wrong.
pub fn open_gcm(key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        32 => &AES_256_GCM,
        _ => return Err(CryptoError::CannotOpen),
    };
    let key = UnboundKey::new(algorithm, key).map_err(|_| CryptoError::CannotOpen)?;
    let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES).ok_or(CryptoError::CannotOpen)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CryptoError::CannotOpen)?;
    let mut bytes = sealed.to_vec();
    let opened = LessSafeKey::new(key).open_in_place(nonce, Aad::empty(), &mut bytes);
    let length = opened.map_err(|_| CryptoError::CannotOpen)?.len();
    bytes.truncate(length);
    Ok(bytes)
}
