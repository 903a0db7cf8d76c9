//! What an organization says about a provider that speaks SAML, beside what every provider has.

use serde::{Deserialize, Serialize};
use tale_core::crypto::certificate::{Certificate, CertificateRefused};
use tale_core::crypto::transport::DecryptionKey;
use tale_core::net::{HostPolicy, check_destination, entered, invalid_url};
use tale_core::{Code, Problem};
use url::Url;

use crate::fields;

/// Longest address of a provider.
const MAX_URL: usize = 1_000;
/// Most certificates of a provider.
const MAX_CERTIFICATES: usize = 10;
/// Longest private key, in bytes.
pub(in crate::sso) const MAX_KEY: usize = 16 * 1024;

/// How a provider that speaks SAML is asked and believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamlSettings {
    /// Where browsers are sent.
    pub sign_on_url: String,
    /// What it signs with, as PEM.
    pub certificates: Vec<String>,
    /// Whether assertions must be signed themselves.
    pub require_signed_assertions: bool,
    /// Whether they must be encrypted.
    pub require_encrypted_assertions: bool,
    /// What they are encrypted for, as PEM; public in our metadata.
    pub sp_certificate: Option<String>,
}

fn certificate(path: &str, text: &str) -> Result<Certificate, Problem> {
    Certificate::parse(text).map_err(|refused: CertificateRefused| Problem::invalid_field(path, &refused.to_string()))
}

impl SamlSettings {
    /// The settings with everything in its stored form, once all of it is known to fit.
    pub(in crate::sso) fn judged(self, policy: HostPolicy) -> Result<Self, Problem> {
        let sign_on_url = fields::short_text("signOnUrl", &self.sign_on_url, MAX_URL)?;
        let url = Url::parse(&sign_on_url)
            .map_err(|_| invalid_url("signOnUrl", "must be an address such as https://login.example.org/saml"))?;
        check_destination(&url, policy).map_err(|refused| entered("signOnUrl", &refused))?;
        if self.certificates.len() > MAX_CERTIFICATES {
            return Err(Problem::invalid_field("certificates", "must have at most 10 entries"));
        }
        let mut certificates = Vec::new();
        for text in &self.certificates {
            let pem = certificate("certificates", text)?.pem();
            if !certificates.contains(&pem) {
                certificates.push(pem);
            }
        }
        if certificates.is_empty() {
            return Err(Problem::invalid_field("certificates", "must have at least one certificate"));
        }
        let given = self.sp_certificate.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let sp_certificate = given.map(|text| certificate("spCertificate", text)).transpose()?;
        if sp_certificate.as_ref().is_some_and(|certificate| !certificate.encrypts()) {
            return Err(Problem::invalid_field("spCertificate", "must have an RSA key, because others encrypt for it"));
        }
        Ok(Self {
            sign_on_url,
            certificates,
            sp_certificate: sp_certificate.map(|certificate| certificate.pem()),
            require_signed_assertions: self.require_signed_assertions,
            require_encrypted_assertions: self.require_encrypted_assertions,
        })
    }

    /// Judges the private key that is stored with them; `None` = there is none.
    pub(in crate::sso) fn fit(&self, key: Option<&str>) -> Result<(), Problem> {
        let Some(pem) = key else {
            if !self.require_encrypted_assertions {
                return Ok(());
            }
            return Err(Problem::new(
                Code::SsoSpKeyRequired,
                "Encrypted assertions need a private key, with which Tale opens them. Enter it in the same form, or do not require encryption.",
            ));
        };
        let key = DecryptionKey::from_pem(pem).ok_or_else(|| {
            Problem::invalid_field(
                "spPrivateKey",
                "must be an RSA key of 2048 bits or more in PEM form, without a passphrase",
            )
        })?;
        let own = self.sp_certificate.as_deref().map(|text| certificate("spCertificate", text)).transpose()?;
        if own.is_some_and(|certificate| !key.belongs_to(&certificate)) {
            return Err(Problem::invalid_field("spCertificate", "does not belong to the private key"));
        }
        Ok(())
    }

    /// The provider's certificates. One that cannot be read any more is left out.
    pub(super) fn trusted(&self) -> Vec<Certificate> {
        self.certificates.iter().filter_map(|pem| Certificate::parse(pem).ok()).collect()
    }
}
