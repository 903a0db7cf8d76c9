//! Metadata: what we say about ourselves, and what providers say about themselves.

use roxmltree::Node;
use tale_core::crypto::certificate::Certificate;

use super::xml::{self, DS, METADATA, Unfit, children, escaped, is, text};

/// Largest document of a provider, in bytes.
pub(super) const MAX_METADATA: usize = 1 << 20;
/// The way questions go: in the address.
const REDIRECT: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
/// The way answers come: in a form.
pub(super) const POST: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST";
/// The only version of the protocol.
const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
/// How people are named.
pub(super) const EMAIL: &str = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress";

/// What a provider says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its entity id.
    pub entity_id: String,
    /// Where browsers are sent.
    pub sign_on_url: String,
    /// Its certificates for signatures, as PEM.
    pub certificates: Vec<String>,
}

/// Our own metadata: our entity id, the addresses that take responses, what assertions are encrypted for.
pub(super) fn ours(entity_id: &str, acs: &[String], certificate: Option<&Certificate>, signed: bool) -> String {
    let keys = certificate.map_or_else(String::new, |certificate| {
        format!(
            "<md:KeyDescriptor use=\"encryption\"><ds:KeyInfo xmlns:ds=\"{DS}\"><ds:X509Data><ds:X509Certificate>{}</ds:X509Certificate></ds:X509Data></ds:KeyInfo><md:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#aes256-gcm\"/><md:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#aes128-gcm\"/><md:EncryptionMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p\"/></md:KeyDescriptor>",
            certificate.base64()
        )
    });
    let services: String = acs
        .iter()
        .enumerate()
        .map(|(at, address)| {
            let default = if at == 0 { " isDefault=\"true\"" } else { "" };
            format!(
                "<md:AssertionConsumerService Binding=\"{POST}\" Location=\"{}\" index=\"{at}\"{default}/>",
                escaped(address)
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<md:EntityDescriptor xmlns:md=\"{METADATA}\" entityID=\"{}\"><md:SPSSODescriptor AuthnRequestsSigned=\"false\" WantAssertionsSigned=\"{signed}\" protocolSupportEnumeration=\"{PROTOCOL}\">{keys}<md:NameIDFormat>{EMAIL}</md:NameIDFormat>{services}</md:SPSSODescriptor></md:EntityDescriptor>\n",
        escaped(entity_id)
    )
}

/// What a provider's document says. The error is a part of a sentence about the document.
pub(super) fn theirs(document: &str) -> Result<Imported, &'static str> {
    let document =
        xml::parse(document.trim_start_matches('\u{feff}').trim_start(), MAX_METADATA).map_err(|why: Unfit| {
            if why == "xml-too-large" { "is larger than 1 MiB" } else { "is no XML that can be read" }
        })?;
    let root = document.root_element();
    let mut providers = root
        .descendants()
        .filter(|node| is(*node, METADATA, "EntityDescriptor"))
        .filter_map(|entity| Some((entity, children(entity, METADATA, "IDPSSODescriptor").next()?)));
    let (entity, provider) = providers.next().ok_or("describes no identity provider")?;
    if providers.next().is_some() {
        return Err("describes several identity providers; import the document of yours alone");
    }
    let entity_id = entity.attribute("entityID").ok_or("names no entity ID")?;
    let sign_on = children(provider, METADATA, "SingleSignOnService")
        .find(|service| service.attribute("Binding") == Some(REDIRECT))
        .and_then(|service| service.attribute("Location"))
        .ok_or("names no sign-on address for the HTTP-Redirect binding")?;
    let signing =
        children(provider, METADATA, "KeyDescriptor").filter(|key| key.attribute("use") != Some("encryption"));
    let mut certificates = Vec::new();
    for node in signing.flat_map(|key| key.descendants()).filter(|node: &Node<'_, '_>| is(*node, DS, "X509Certificate"))
    {
        // One of an old kind must not keep the others out.
        if let Some(certificate) = text(node).ok().and_then(|text| Certificate::parse(text).ok())
            && !certificates.contains(&certificate.pem())
        {
            certificates.push(certificate.pem());
        }
    }
    if certificates.is_empty() {
        return Err("has no signing certificate that can be used");
    }
    Ok(Imported { entity_id: entity_id.to_owned(), sign_on_url: sign_on.to_owned(), certificates })
}
