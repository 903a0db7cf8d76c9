//! Encrypted assertions (<https://www.w3.org/TR/xmlenc-core1/>): AES-GCM under a key that RSA-OAEP wraps, and nothing else.
//! AES-CBC and PKCS #1 v1.5 tell an attacker who may ask often enough what is inside.

use roxmltree::Node;
use tale_core::crypto::transport::{DecryptionKey, OaepHash, open_gcm};

use super::xml::{DS, Unfit, XENC, XENC11, base64, child, is, text, the};

/// The refusal of an encryption that can be broken.
pub(super) const WEAK: [Unfit; 2] = ["encryption-without-gcm", "key-transport-without-oaep"];

fn bytes(node: Node<'_, '_>) -> Result<Vec<u8>, Unfit> {
    base64(text(the(the(node, XENC, "CipherData")?, XENC, "CipherValue")?)?)
}

/// The assertion's text inside an `EncryptedAssertion`.
pub(super) fn opened(outer: Node<'_, '_>, key: &DecryptionKey) -> Result<String, Unfit> {
    let data = the(outer, XENC, "EncryptedData")?;
    let cipher = the(data, XENC, "EncryptionMethod")?.attribute("Algorithm").unwrap_or_default();
    let length = match cipher.strip_prefix(XENC11) {
        Some("aes128-gcm") => 16,
        Some("aes256-gcm") => 32,
        _ => return Err(WEAK[0]),
    };
    let mut keys = outer.descendants().filter(|node| is(*node, XENC, "EncryptedKey"));
    let (Some(wrapped), None) = (keys.next(), keys.next()) else { return Err("encrypted-keys") };
    let method = the(wrapped, XENC, "EncryptionMethod")?;
    let digest = match child(method, DS, "DigestMethod")?.and_then(|node| node.attribute("Algorithm")) {
        None | Some("http://www.w3.org/2000/09/xmldsig#sha1") => OaepHash::Sha1,
        Some("http://www.w3.org/2001/04/xmlenc#sha256") => OaepHash::Sha256,
        Some(_) => return Err("oaep-digest"),
    };
    let mask = child(method, XENC11, "MGF")?.and_then(|node| node.attribute("Algorithm"));
    let mask = match (method.attribute("Algorithm").unwrap_or_default(), mask) {
        ("http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p", None) => OaepHash::Sha1,
        ("http://www.w3.org/2009/xmlenc11#rsa-oaep", None | Some("http://www.w3.org/2009/xmlenc11#mgf1sha1")) => {
            OaepHash::Sha1
        }
        ("http://www.w3.org/2009/xmlenc11#rsa-oaep", Some("http://www.w3.org/2009/xmlenc11#mgf1sha256")) => {
            OaepHash::Sha256
        }
        ("http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p" | "http://www.w3.org/2009/xmlenc11#rsa-oaep", _) => {
            return Err("oaep-mask");
        }
        _ => return Err(WEAK[1]),
    };
    if child(method, XENC, "OAEPparams")?.is_some() {
        return Err("oaep-label");
    }
    // One answer for whatever does not open.
    let closed = |_| "cannot-decrypt";
    let secret = key.unwrap(digest, mask, &bytes(wrapped)?).map_err(closed)?;
    if secret.len() != length {
        return Err("cannot-decrypt");
    }
    let plain = open_gcm(&secret, &bytes(data)?).map_err(closed)?;
    String::from_utf8(plain).map_err(|_| "cannot-decrypt")
}
