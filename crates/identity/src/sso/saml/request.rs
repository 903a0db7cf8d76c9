//! The question that a browser carries to a provider: an `AuthnRequest` in the address (the HTTP-Redirect binding).

use std::io::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use url::Url;

use super::metadata::{EMAIL, POST};
use super::xml::{SAML, SAMLP, escaped};

/// A question.
pub(super) struct Question<'a> {
    /// Its name, which the answer repeats.
    pub(super) id: &'a str,
    /// Our entity id.
    pub(super) entity_id: &'a str,
    /// Where the answer goes.
    pub(super) acs: &'a str,
    /// When.
    pub(super) at: DateTime<Utc>,
}

/// The address of the provider with the question in it.
pub(super) fn asked(sign_on: &Url, question: &Question<'_>) -> std::io::Result<Url> {
    let document = format!(
        "<samlp:AuthnRequest xmlns:samlp=\"{SAMLP}\" xmlns:saml=\"{SAML}\" ID=\"{}\" Version=\"2.0\" IssueInstant=\"{}\" Destination=\"{}\" AssertionConsumerServiceURL=\"{}\" ProtocolBinding=\"{POST}\"><saml:Issuer>{}</saml:Issuer><samlp:NameIDPolicy Format=\"{EMAIL}\" AllowCreate=\"true\"/></samlp:AuthnRequest>",
        question.id,
        question.at.to_rfc3339_opts(SecondsFormat::Secs, true),
        escaped(sign_on.as_str()),
        escaped(question.acs),
        escaped(question.entity_id),
    );
    let mut deflater = DeflateEncoder::new(Vec::new(), Compression::default());
    deflater.write_all(document.as_bytes())?;
    let packed = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, deflater.finish()?);
    let mut url = sign_on.clone();
    url.query_pairs_mut().append_pair("SAMLRequest", &packed);
    Ok(url)
}
