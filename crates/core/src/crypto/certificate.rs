//! Certificates as holders of a public key, and the signatures that XML documents carry. Who issued a certificate says
//! nothing here: it is trusted because somebody chose it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use ring::digest;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rsa::PublicKey;
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::traits::PublicKeyParts;
use x509_cert::der::Decode;
use x509_cert::der::asn1::ObjectIdentifier;

/// Longest certificate, in bytes.
const MAX_CERTIFICATE: usize = 16 * 1024;
/// The shortest RSA key.
const MIN_RSA_BITS: u32 = 2_048;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// Why a text is no certificate that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRefused {
    /// Not one X.509 certificate, as PEM or as base64.
    #[error("is no certificate in PEM form")]
    Malformed,
    /// A key of another kind, or a short one.
    #[error("must have an RSA key of 2048 bits or more, or an ECDSA key on P-256 or P-384")]
    Key,
}

/// How a document is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentSignature {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RsaSha256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    RsaSha384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    RsaSha512,
    /// ECDSA on P-256 with SHA-256; signatures are two numbers of 32 bytes.
    EcdsaSha256,
    /// ECDSA on P-384 with SHA-384; signatures are two numbers of 48 bytes.
    EcdsaSha384,
}

/// What a document's signature is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentDigest {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl DocumentDigest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    /// The `RSAPublicKey` of PKCS #1.
    Rsa(Vec<u8>),
    /// The uncompressed point.
    P256(Vec<u8>),
    /// The uncompressed point.
    P384(Vec<u8>),
}

/// A certificate with a key that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    key: Key,
    /// When it begins to be valid.
    pub not_before: DateTime<Utc>,
    /// When it ends.
    pub not_after: DateTime<Utc>,
}

impl Certificate {
    /// From a PEM text, or from the base64 in one, which is how metadata have it.
    ///
    /// # Errors
    /// [`CertificateRefused`].
    pub fn parse(text: &str) -> Result<Self, CertificateRefused> {
        let text = text.trim();
        let body = match text.strip_prefix("-----BEGIN CERTIFICATE-----") {
            Some(rest) => rest.strip_suffix("-----END CERTIFICATE-----").ok_or(CertificateRefused::Malformed)?,
            None => text,
        };
        if body.len() > 2 * MAX_CERTIFICATE {
            return Err(CertificateRefused::Malformed);
        }
        let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        Self::of(STANDARD.decode(body).map_err(|_| CertificateRefused::Malformed)?)
    }

    fn of(der: Vec<u8>) -> Result<Self, CertificateRefused> {
        let read = x509_cert::Certificate::from_der(&der).map_err(|_| CertificateRefused::Malformed)?;
        let body = read.tbs_certificate();
        let info = body.subject_public_key_info();
        let bits = info.subject_public_key.as_bytes().ok_or(CertificateRefused::Key)?.to_vec();
        let curve = || info.algorithm.parameters.as_ref().and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
        let key = match info.algorithm.oid {
            RSA => {
                let key = PublicKey::from_pkcs1_der(&bits).map_err(|_| CertificateRefused::Key)?;
                if key.n().bit_width_vartime() < MIN_RSA_BITS {
                    return Err(CertificateRefused::Key);
                }
                Key::Rsa(bits)
            }
            EC if curve() == Some(P256) && bits.len() == 65 => Key::P256(bits),
            EC if curve() == Some(P384) && bits.len() == 97 => Key::P384(bits),
            _ => return Err(CertificateRefused::Key),
        };
        let time = |time: x509_cert::time::Time| {
            let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok()?;
            DateTime::from_timestamp(seconds, 0)
        };
        let validity = body.validity();
        Ok(Self {
            key,
            not_before: time(validity.not_before).ok_or(CertificateRefused::Malformed)?,
            not_after: time(validity.not_after).ok_or(CertificateRefused::Malformed)?,
            der,
        })
    }

    /// As base64 without line ends.
    #[must_use]
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.der)
    }

    /// As PEM, with a line end at the end.
    #[must_use]
    pub fn pem(&self) -> String {
        let body = self.base64();
        let lines: Vec<&str> = body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// The public key when it is one of RSA.
    pub(super) fn rsa(&self) -> Option<PublicKey> {
        match &self.key {
            Key::Rsa(bits) => PublicKey::from_pkcs1_der(bits).ok(),
            _ => None,
        }
    }

    /// Whether the key can encrypt, which those of RSA can.
    #[must_use]
    pub fn encrypts(&self) -> bool {
        matches!(self.key, Key::Rsa(_))
    }

    /// Whether `signature` over `message` was made with the private key, by that algorithm.
    #[must_use]
    pub fn verifies(&self, algorithm: DocumentSignature, message: &[u8], signature: &[u8]) -> bool {
        let (algorithm, key): (&'static dyn VerificationAlgorithm, &[u8]) = match (algorithm, &self.key) {
            (DocumentSignature::RsaSha256, Key::Rsa(key)) => (&signature::RSA_PKCS1_2048_8192_SHA256, key),
            (DocumentSignature::RsaSha384, Key::Rsa(key)) => (&signature::RSA_PKCS1_2048_8192_SHA384, key),
            (DocumentSignature::RsaSha512, Key::Rsa(key)) => (&signature::RSA_PKCS1_2048_8192_SHA512, key),
            (DocumentSignature::EcdsaSha256, Key::P256(key)) => (&signature::ECDSA_P256_SHA256_FIXED, key),
            (DocumentSignature::EcdsaSha384, Key::P384(key)) => (&signature::ECDSA_P384_SHA384_FIXED, key),
            _ => return false,
        };
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
    }
}
