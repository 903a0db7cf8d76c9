//! Signatures of elements (<https://www.w3.org/TR/xmldsig-core1/>), in the one shape that SAML allows: inside the element
//! that they are over, with one reference to it, exclusive canonicalization, SHA-256 or better, and a key that the
//! organization's admins chose. What the signature says about its key is not looked at.

use roxmltree::Node;
use tale_core::crypto::certificate::{Certificate, DocumentDigest, DocumentSignature};
use tale_core::crypto::constant_time_eq;

use super::c14n::{EXCLUSIVE, exclusive};
use super::xml::{DS, Unfit, base64, child, is, text, the};

/// The transform that leaves the signature out.
const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";

fn signature_method(name: &str) -> Option<DocumentSignature> {
    Some(match name {
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256" => DocumentSignature::RsaSha256,
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384" => DocumentSignature::RsaSha384,
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512" => DocumentSignature::RsaSha512,
        "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256" => DocumentSignature::EcdsaSha256,
        "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384" => DocumentSignature::EcdsaSha384,
        _ => return None,
    })
}

fn digest_method(name: &str) -> Option<DocumentDigest> {
    Some(match name {
        "http://www.w3.org/2001/04/xmlenc#sha256" => DocumentDigest::Sha256,
        "http://www.w3.org/2001/04/xmldsig-more#sha384" => DocumentDigest::Sha384,
        "http://www.w3.org/2001/04/xmlenc#sha512" => DocumentDigest::Sha512,
        _ => return None,
    })
}

/// Whether an element has these children and no others, in this order.
fn consists_of(node: Node<'_, '_>, names: &[&str]) -> bool {
    let mut children = node.children().filter(Node::is_element);
    let fits = |name: &&str| children.next().is_some_and(|child| is(child, DS, name));
    names.iter().all(fits) && children.next().is_none()
}

/// The prefixes that a canonicalization declares wherever they are in scope.
fn prefixes<'a>(method: Node<'a, '_>) -> Result<Vec<&'a str>, Unfit> {
    if method.attribute("Algorithm") != Some(EXCLUSIVE) {
        return Err("signature-canonicalization");
    }
    let mut inside = method.children().filter(Node::is_element);
    let Some(list) = inside.next() else { return Ok(Vec::new()) };
    if inside.next().is_some() || !is(list, EXCLUSIVE, "InclusiveNamespaces") {
        return Err("signature-canonicalization");
    }
    let list = list.attribute("PrefixList").unwrap_or_default();
    Ok(list.split_ascii_whitespace().map(|prefix| if prefix == "#default" { "" } else { prefix }).collect())
}

/// The canonical bytes of `element` that one of the keys signed. They, and not the element, are what may be read: nothing
/// that the digest left out is in them.
pub(super) fn signed(element: Node<'_, '_>, signature: Node<'_, '_>, trusted: &[Certificate]) -> Result<String, Unfit> {
    if signature.parent() != Some(element) {
        return Err("signature-place");
    }
    let whole = consists_of(signature, &["SignedInfo", "SignatureValue"])
        || consists_of(signature, &["SignedInfo", "SignatureValue", "KeyInfo"]);
    if !whole {
        return Err("signature-shape");
    }
    let info = the(signature, DS, "SignedInfo")?;
    if !consists_of(info, &["CanonicalizationMethod", "SignatureMethod", "Reference"]) {
        return Err("signature-shape");
    }
    let reference = the(info, DS, "Reference")?;
    if !consists_of(reference, &["Transforms", "DigestMethod", "DigestValue"]) {
        return Err("signature-shape");
    }
    let id = element.attribute("ID").filter(|id| !id.is_empty()).ok_or("signature-reference")?;
    if reference.attribute("URI").and_then(|uri| uri.strip_prefix('#')) != Some(id) {
        return Err("signature-reference");
    }
    let transforms = the(reference, DS, "Transforms")?;
    if !consists_of(transforms, &["Transform", "Transform"]) {
        return Err("signature-transforms");
    }
    let mut transforms = transforms.children().filter(Node::is_element);
    let (Some(first), Some(second)) = (transforms.next(), transforms.next()) else {
        return Err("signature-transforms");
    };
    if first.attribute("Algorithm") != Some(ENVELOPED) || first.children().any(|child| child.is_element()) {
        return Err("signature-transforms");
    }
    let element_prefixes = prefixes(second)?;

    let digest = the(reference, DS, "DigestMethod")?;
    let digest = digest.attribute("Algorithm").and_then(digest_method).ok_or("signature-digest-method")?;
    let method = the(info, DS, "SignatureMethod")?;
    if method.children().any(|child| child.is_element()) {
        return Err("signature-method");
    }
    let method = method.attribute("Algorithm").and_then(signature_method).ok_or("signature-method")?;

    let info_prefixes = prefixes(the(info, DS, "CanonicalizationMethod")?)?;
    let said = exclusive(info, &info_prefixes, None)?;
    let value = base64(text(the(signature, DS, "SignatureValue")?)?)?;
    if !trusted.iter().any(|certificate| certificate.verifies(method, said.as_bytes(), &value)) {
        return Err("signature");
    }
    let bytes = exclusive(element, &element_prefixes, Some(signature.id()))?;
    let wanted = base64(text(the(reference, DS, "DigestValue")?)?)?;
    if !constant_time_eq(&digest.of(bytes.as_bytes()), &wanted) {
        return Err("digest");
    }
    Ok(bytes)
}

/// The signature of an element, if it has one.
pub(super) fn of<'a, 'i>(element: Node<'a, 'i>) -> Result<Option<Node<'a, 'i>>, Unfit> {
    child(element, DS, "Signature").map_err(|_| "signature-repeated")
}
