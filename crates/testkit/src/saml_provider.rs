//! An identity provider that speaks SAML 2.0. It writes its documents in canonical form by hand, so that signing them
//! needs no canonicalization, and can be told to lie.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rsa::pkcs8::DecodePrivateKey;
use tale_core::crypto::{random_hex, sha256};

/// The provider's certificate.
pub const CERTIFICATE: &str = include_str!("saml_provider/provider.pem");
/// A certificate of a Tale, for encrypted assertions.
pub const OWN_CERTIFICATE: &str = include_str!("saml_provider/own.pem");
/// Its private key.
pub const OWN_KEY: &str = include_str!("saml_provider/own-key.pem");
/// The provider's name.
pub const ENTITY: &str = "https://idp.example.org/saml";
/// Where it takes questions.
pub const SIGN_ON: &str = "https://idp.example.org/sign-on?tenant=1";

const SAML: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
const SAMLP: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
const DS: &str = "http://www.w3.org/2000/09/xmldsig#";
const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// The question in an address that a browser is sent to: its id, and all of it.
#[must_use]
pub fn asked(location: &str) -> (String, String) {
    let url = url::Url::parse(location).unwrap();
    let (_, packed) = url.query_pairs().find(|(name, _)| name == "SAMLRequest").unwrap();
    let packed = STANDARD.decode(packed.as_bytes()).unwrap();
    let mut document = String::new();
    flate2::read::DeflateDecoder::new(&packed[..]).read_to_string(&mut document).unwrap();
    let id = document.split("ID=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    (id, document)
}

/// What a response says.
#[derive(Debug, Clone)]
pub struct Said {
    /// Our entity id.
    pub audience: String,
    /// The address that it is brought to.
    pub acs: String,
    /// The question it answers.
    pub in_response_to: Option<String>,
    /// The assertion's name.
    pub id: String,
    /// Who the person is.
    pub name_id: String,
    /// The last part of the format of that, such as `emailAddress`.
    pub format: &'static str,
    /// What else is said.
    pub attributes: Vec<(&'static str, Vec<String>)>,
    /// When, as seconds since 1970. It is valid for five minutes.
    pub at: i64,
    /// Whether the assertion is signed.
    pub sign_assertion: bool,
    /// Whether the response is signed.
    pub sign_response: bool,
    /// Whether the assertion is encrypted for [`OWN_CERTIFICATE`].
    pub encrypt: bool,
}

impl Said {
    /// An honest answer about `email`.
    #[must_use]
    pub fn about(email: &str, audience: &str, acs: &str, in_response_to: Option<&str>, at: i64) -> Self {
        Self {
            audience: audience.to_owned(),
            acs: acs.to_owned(),
            in_response_to: in_response_to.map(str::to_owned),
            id: format!("_{}", random_hex(16)),
            name_id: email.to_owned(),
            format: "emailAddress",
            attributes: Vec::new(),
            at,
            sign_assertion: true,
            sign_response: false,
            encrypt: false,
        }
    }

    /// The response as a browser posts it: base64.
    #[must_use]
    pub fn posted(&self) -> String {
        STANDARD.encode(self.document())
    }

    /// The response.
    #[must_use]
    pub fn document(&self) -> String {
        let (now, end) = (time(self.at), time(self.at + 300));
        let answers = self.in_response_to.as_ref().map_or_else(String::new, |id| format!(" InResponseTo=\"{id}\""));
        let assertion = signed_if(
            self.sign_assertion,
            &self.id,
            &format!(
                "<saml:Assertion xmlns:saml=\"{SAML}\" ID=\"{}\" IssueInstant=\"{now}\" Version=\"2.0\"><saml:Issuer>{ENTITY}</saml:Issuer>",
                self.id
            ),
            &format!("{}</saml:Assertion>", self.statements(&now, &end, &answers)),
        );
        let assertion = if self.encrypt { encrypted(&assertion) } else { assertion };
        let id = format!("_{}", random_hex(16));
        signed_if(
            self.sign_response,
            &id,
            &format!(
                "<samlp:Response xmlns:samlp=\"{SAMLP}\" Destination=\"{}\" ID=\"{id}\"{answers} IssueInstant=\"{now}\" Version=\"2.0\"><saml:Issuer xmlns:saml=\"{SAML}\">{ENTITY}</saml:Issuer>",
                self.acs
            ),
            &format!(
                "<samlp:Status><samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"></samlp:StatusCode></samlp:Status>{assertion}</samlp:Response>"
            ),
        )
    }

    fn statements(&self, now: &str, end: &str, answers: &str) -> String {
        let attributes: String = self
            .attributes
            .iter()
            .map(|(name, values)| {
                let values: String = values
                    .iter()
                    .map(|value| format!("<saml:AttributeValue>{}</saml:AttributeValue>", escaped(value)))
                    .collect();
                format!("<saml:Attribute Name=\"{name}\">{values}</saml:Attribute>")
            })
            .collect();
        format!(
            "<saml:Subject><saml:NameID Format=\"urn:oasis:names:tc:SAML:1.1:nameid-format:{}\">{}</saml:NameID><saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\"><saml:SubjectConfirmationData{answers} NotOnOrAfter=\"{end}\" Recipient=\"{}\"></saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore=\"{now}\" NotOnOrAfter=\"{end}\"><saml:AudienceRestriction><saml:Audience>{}</saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant=\"{now}\"></saml:AuthnStatement><saml:AttributeStatement>{attributes}</saml:AttributeStatement>",
            self.format,
            escaped(&self.name_id),
            self.acs,
            self.audience,
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn time(seconds: i64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.unsigned_abs());
    chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// `head` and `tail`, in canonical form, with a signature of the element between them.
fn signed_if(sign: bool, id: &str, head: &str, tail: &str) -> String {
    if !sign {
        return format!("{head}{tail}");
    }
    let digest = STANDARD.encode(sha256(format!("{head}{tail}").as_bytes()));
    let inside = format!(
        "<ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\"></ds:CanonicalizationMethod><ds:SignatureMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256\"></ds:SignatureMethod><ds:Reference URI=\"#{id}\"><ds:Transforms><ds:Transform Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"></ds:Transform><ds:Transform Algorithm=\"{EXCLUSIVE}\"></ds:Transform></ds:Transforms><ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"></ds:DigestMethod><ds:DigestValue>{digest}</ds:DigestValue></ds:Reference></ds:SignedInfo>"
    );
    let pair = RsaKeyPair::from_pkcs8(&der(include_str!("saml_provider/provider-key.pem"))).unwrap();
    let mut signature = vec![0; pair.public().modulus_len()];
    let info = format!("<ds:SignedInfo xmlns:ds=\"{DS}\">{inside}");
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), info.as_bytes(), &mut signature).unwrap();
    format!(
        "{head}<ds:Signature xmlns:ds=\"{DS}\"><ds:SignedInfo>{inside}<ds:SignatureValue>{}</ds:SignatureValue></ds:Signature>{tail}",
        STANDARD.encode(signature)
    )
}

fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(body).unwrap()
}

fn encrypted(assertion: &str) -> String {
    let secret: [u8; 32] = sha256(random_hex(32).as_bytes());
    let nonce: [u8; 12] = sha256(random_hex(32).as_bytes())[..12].try_into().unwrap();
    let mut bytes = assertion.as_bytes().to_vec();
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret).unwrap())
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes)
        .unwrap();
    let key = rsa::PrivateKey::from_pkcs8_pem(OWN_KEY).unwrap().to_public_key();
    let wrapped = key.oaep_encrypt::<sha1::Sha1>(&secret).unwrap();
    let value = |bytes: &[u8]| {
        format!("<xenc:CipherData><xenc:CipherValue>{}</xenc:CipherValue></xenc:CipherData>", STANDARD.encode(bytes))
    };
    format!(
        "<saml:EncryptedAssertion xmlns:saml=\"{SAML}\"><xenc:EncryptedData xmlns:xenc=\"http://www.w3.org/2001/04/xmlenc#\" Type=\"http://www.w3.org/2001/04/xmlenc#Element\"><xenc:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#aes256-gcm\"></xenc:EncryptionMethod><ds:KeyInfo xmlns:ds=\"{DS}\"><xenc:EncryptedKey><xenc:EncryptionMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p\"></xenc:EncryptionMethod>{}</xenc:EncryptedKey></ds:KeyInfo>{}</xenc:EncryptedData></saml:EncryptedAssertion>",
        value(&wrapped),
        value(&[&nonce[..], &bytes].concat())
    )
}
