//! Attacks on responses that libxmlsec signed and encrypted (`vectors/make.py`), and their honest forms.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tale_core::crypto::certificate::Certificate;
use tale_core::crypto::transport::DecryptionKey;

use super::response::{Assertion, Doubt, Expected, judge};
use super::xml::Unfit;
use super::{c14n, metadata};

macro_rules! vector {
    ($name:literal) => {
        include_str!(concat!("vectors/", $name))
    };
}

const OWN: &str = "https://tale.example.org/api/sso/saml/00000000-0000-7000-8000-000000000001";
const ISSUER: &str = "https://idp.example.org/entity";

fn now() -> DateTime<Utc> {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

/// What the vectors are for, with the given change.
fn judged_as(document: &str, change: impl FnOnce(&mut Expected<'_>)) -> Result<Assertion, Doubt> {
    let pems = [vector!("idp.pem"), vector!("idp-p256.pem"), vector!("idp-p384.pem")];
    let certificates = pems.map(|pem| Certificate::parse(pem).unwrap());
    let key = DecryptionKey::from_pem(vector!("sp-key.pem")).unwrap();
    let (audience, acs) = (format!("{OWN}/metadata"), format!("{OWN}/acs"));
    let mut expected = Expected {
        issuer: ISSUER,
        audience: &audience,
        acs: &acs,
        certificates: &certificates,
        signed_assertions: true,
        encrypted_assertions: false,
        key: Some(&key),
        now: now(),
    };
    change(&mut expected);
    judge(document, &expected)
}

fn judged(document: &str) -> Result<Assertion, Doubt> {
    judged_as(document, |_| {})
}

#[track_caller]
fn refused(document: &str, why: Unfit) {
    assert_eq!(judged(document).unwrap_err(), Doubt::Unbelieved(why));
}

#[track_caller]
fn refused_as(document: &str, why: Unfit, change: impl FnOnce(&mut Expected<'_>)) {
    assert_eq!(judged_as(document, change).unwrap_err(), Doubt::Unbelieved(why));
}

/// The document with `old`, which must be there once, replaced.
#[track_caller]
fn with(document: &str, old: &str, new: &str) -> String {
    assert_eq!(document.matches(old).count(), 1, "{old}");
    document.replace(old, new)
}

/// The text from the beginning of `from` to the end of `to`.
#[track_caller]
fn between<'a>(document: &'a str, from: &str, to: &str) -> &'a str {
    let start = document.find(from).unwrap();
    let end = start + document[start..].find(to).unwrap() + to.len();
    &document[start..end]
}

fn assertion_of(document: &str) -> &str {
    between(document, "<saml:Assertion", "</saml:Assertion>")
}

fn signature_of(document: &str) -> &str {
    between(document, "<ds:Signature ", "</ds:Signature>")
}

#[test]
fn what_others_signed_and_encrypted_is_read() {
    for document in [
        vector!("assertion.xml"),
        vector!("assertion-prefixes.xml"),
        vector!("assertion-sha512.xml"),
        vector!("both.xml"),
        vector!("p256.xml"),
        vector!("p384.xml"),
        vector!("encrypted.xml"),
    ] {
        let read = judged(document).unwrap();
        assert_eq!((read.id.as_str(), read.in_response_to.as_deref()), ("_a1", Some("_question")));
        assert_eq!((read.name_id.as_str(), read.format.as_deref()), ("Zoe@Acme.test", Some("emailAddress")));
        assert_eq!(read.until, now() + TimeDelta::seconds(420));
        assert_eq!(
            serde_json::Value::Object(read.attributes),
            json!({
                "name": "Zoë & <Co> 🦄", "urn:oid:1.3.6.1.4.1.5923.1.5.1.1": ["laboratory", "Optics & Light"],
                "groups": ["laboratory", "Optics & Light"], "none": [],
            })
        );
    }
    // A signature around the assertion is enough where the organization says so.
    for document in [vector!("response.xml"), vector!("encrypted-128.xml")] {
        refused(document, "assertion-unsigned");
        assert_eq!(judged_as(document, |expected| expected.signed_assertions = false).unwrap().id, "_a1");
    }
    refused_as(vector!("assertion.xml"), "not-encrypted", |expected| expected.encrypted_assertions = true);
    assert!(judged_as(vector!("encrypted.xml"), |expected| expected.encrypted_assertions = true).is_ok());
}

#[test]
fn nothing_unsigned_or_signed_by_somebody_else_is_believed() {
    let lax = |expected: &mut Expected<'_>| expected.signed_assertions = false;
    refused(vector!("unsigned.xml"), "assertion-unsigned");
    refused_as(vector!("unsigned.xml"), "unsigned", lax);
    refused_as(vector!("encrypted-unsigned.xml"), "unsigned", lax);
    refused(vector!("other-key.xml"), "signature");
    let other: &'static [Certificate] = Box::leak(Box::new([Certificate::parse(vector!("other.pem")).unwrap()]));
    // The key that the signature brings along counts for nothing, the chosen one does.
    assert!(judged_as(vector!("other-key.xml"), |expected| expected.certificates = other).is_ok());
    refused_as(vector!("assertion.xml"), "signature", |expected| expected.certificates = &[]);
    for (old, new) in
        [("Zoe@Acme.test", "owner@Acme.test"), ("laboratory", "owners"), ("_a1\" Iss", "_a1\" x=\"\" Iss")]
    {
        refused(&with(vector!("assertion.xml"), old, new), "digest");
    }
    // Without the signature, or with an empty one.
    let document = vector!("assertion.xml");
    refused(&document.replace(signature_of(document), ""), "assertion-unsigned");
    let value = between(document, "<ds:SignatureValue>", "</ds:SignatureValue>");
    refused(&document.replace(value, "<ds:SignatureValue></ds:SignatureValue>"), "signature");
    let changed = with(document, "<ds:DigestValue>", "<ds:DigestValue>AAAA");
    refused(&changed, "signature");
}

#[test]
fn weak_algorithms_and_other_canonical_forms_are_refused() {
    refused(vector!("sha1.xml"), "signature-digest-method");
    refused(vector!("sha1-digest.xml"), "signature-digest-method");
    refused(vector!("inclusive.xml"), "signature-canonicalization");
    let document = vector!("assertion.xml");
    let rsa = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
    for name in [
        "http://www.w3.org/2000/09/xmldsig#rsa-sha1",
        "http://www.w3.org/2000/09/xmldsig#hmac-sha1",
        "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256",
        "http://www.w3.org/2001/04/xmldsig-more#rsa-md5",
        "",
    ] {
        refused(&with(document, rsa, name), "signature-method");
    }
    // The key is not used for another algorithm than its own.
    refused(&with(document, rsa, "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"), "signature");
    let enveloped = "<ds:Transform Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"/>";
    for transform in [
        "",
        "<ds:Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xslt-19991116\"><x/></ds:Transform>",
        "<ds:Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xpath-19991116\"><ds:XPath>1</ds:XPath></ds:Transform>",
    ] {
        refused(&with(document, enveloped, transform), "signature-transforms");
    }
    refused(vector!("encrypted-cbc.xml"), "encryption-without-gcm");
    refused(vector!("encrypted-pkcs1.xml"), "key-transport-without-oaep");
    assert!(Certificate::parse(vector!("short.pem")).is_err());
}

#[test]
fn a_response_for_somebody_else_or_another_time_is_refused() {
    let document = vector!("assertion.xml");
    refused_as(document, "issuer", |expected| expected.issuer = "https://evil.example");
    refused_as(document, "audience", |expected| expected.audience = "https://other.example/metadata");
    refused_as(document, "destination", |expected| expected.acs = "https://other.example/acs");
    let undirected = with(document, &format!(" Destination=\"{OWN}/acs\""), "");
    refused_as(&undirected, "recipient", |expected| expected.acs = "https://other.example/acs");
    assert!(judged(&undirected).is_ok());
    // The skew is a minute, in both directions.
    for (seconds, why) in [(-121, Some("not-yet")), (-120, None), (359, None), (360, Some("expired"))] {
        let at = now() + TimeDelta::seconds(seconds);
        let found = judged_as(document, |expected| expected.now = at).err();
        assert_eq!(found, why.map(Doubt::Unbelieved), "{seconds}");
    }
    refused(&with(document, "InResponseTo=\"_question\">", "InResponseTo=\"_another\">"), "in-response-to");
    refused(
        &with(document, "Version=\"2.0\" IssueInstant=\"2026-06-01T12:00:00Z\" Dest", "Version=\"1.1\" Dest"),
        "version",
    );
    let issuer = format!("{ISSUER}</saml:Issuer>\n  <samlp:Status>");
    refused(&with(document, &issuer, "https://evil.example</saml:Issuer>\n  <samlp:Status>"), "issuer");
    let denied = with(
        document,
        "<samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"/>",
        "<samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Responder\"><samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:AuthnFailed&lt;b>\"/></samlp:StatusCode>",
    );
    assert_eq!(judged(&denied).unwrap_err(), Doubt::Status("AuthnFailedb".into()));
}

#[test]
fn nothing_is_read_beside_what_is_signed() {
    let document = vector!("assertion.xml");
    let signed = assertion_of(document);
    let signature = signature_of(document);
    let evil = signed.replace(signature, "").replace("Zoe@Acme.test", "owner@Acme.test").replace("_a1", "_evil");
    let bare = signed.replace(signature, "");
    let response = vector!("response.xml");
    let response_signature = signature_of(response);
    let whole = between(response, "<samlp:Response", "</samlp:Response>");
    let evil_response = whole
        .replace(response_signature, "")
        .replace("Zoe@Acme.test", "owner@Acme.test")
        .replace("ID=\"_r1\"", "ID=\"_evil\"");
    let bare_response = whole.replace(response_signature, "");
    let put = |into: &str, tag: &str, what: &str| into.replacen(tag, &format!("{what}{tag}"), 1);
    let in_object =
        |what: &str| signature.replace("</ds:Signature>", &format!("<ds:Object>{what}</ds:Object></ds:Signature>"));
    let shapes = [
        // XSW1: the signed response inside the signature of a changed one.
        (
            "1",
            put(
                &evil_response,
                "<samlp:Status>",
                &response_signature
                    .replace("</ds:Signature>", &format!("<ds:Object>{bare_response}</ds:Object></ds:Signature>")),
            ),
        ),
        // XSW2: the same beside it.
        ("2", put(&evil_response, "<samlp:Status>", &format!("{bare_response}{response_signature}"))),
        // XSW3: a changed assertion before the signed one, 4: around it, 5 and 6: with its signature, the original
        // beside or inside, 7: in extensions, 8: in an object.
        ("3", document.replace(signed, &format!("{evil}{signed}"))),
        ("3b", document.replace(signed, &format!("{signed}{evil}"))),
        ("4", document.replace(signed, &put(&evil, "</saml:Assertion>", signed))),
        ("5", document.replace(signed, &format!("{}{bare}", put(&evil, "<saml:Subject>", signature)))),
        ("5b", document.replace(signed, &put(&evil, "<saml:Subject>", signature))),
        ("6", document.replace(signed, &put(&evil, "<saml:Subject>", &in_object(&bare)))),
        ("7", document.replace(signed, &format!("<samlp:Extensions>{signed}</samlp:Extensions>{evil}"))),
        (
            "8",
            document.replace(
                signed,
                &put(
                    &evil,
                    "<saml:Subject>",
                    &signature.replace("<ds:SignedInfo>", &format!("<ds:Object>{bare}</ds:Object><ds:SignedInfo>")),
                ),
            ),
        ),
        // Two of one name, and a signature that is over nothing or over everything.
        ("same id", document.replace(signed, &format!("{}{signed}", evil.replace("_evil", "_a1")))),
        ("empty uri", document.replace("URI=\"#_a1\"", "URI=\"\"")),
        ("no uri", document.replace(" URI=\"#_a1\"", "")),
        ("pointer", document.replace("URI=\"#_a1\"", "URI=\"#xpointer(id('_a1'))\"")),
        ("two signatures", document.replace(signature, &format!("{signature}{signature}"))),
        (
            "in advice",
            document
                .replace(signed, &put(&evil, "<saml:AuthnStatement", &format!("<saml:Advice>{signed}</saml:Advice>"))),
        ),
        ("around", document.replace("<samlp:Status>", &format!("{signature}<samlp:Status>"))),
    ];
    for lax in [false, true] {
        for (name, attack) in &shapes {
            let read = judged_as(attack, |expected| expected.signed_assertions = !lax);
            let judged = matches!(read, Err(Doubt::Unbelieved(why)) if why != "xml-malformed");
            assert!(judged, "{name}: {read:?}");
        }
    }
    // Two references: the second one would be over something else.
    let reference = between(document, "<ds:Reference", "</ds:Reference>");
    refused(&document.replace(reference, &format!("{reference}{reference}")), "signature-shape");
    // A signed response does not vouch for what its digest left out.
    let lax = |expected: &mut Expected<'_>| expected.signed_assertions = false;
    let smuggled = response
        .replace(response_signature, &response_signature.replace("<ds:SignedInfo>", &format!("{evil}<ds:SignedInfo>")));
    assert!(judged_as(&smuggled, lax).is_err());
    assert_eq!(judged_as(response, lax).unwrap().name_id, "Zoe@Acme.test");
}

#[test]
fn comments_do_not_cut_what_is_read() {
    // Comments are no part of what is signed, so they may come in, and what is read is the text without them.
    let document = vector!("assertion.xml");
    let cut = with(document, "Zoe@Acme.test", "Zoe@Acme.te<!-- x -->st");
    assert_eq!(judged(&cut).unwrap().name_id, "Zoe@Acme.test");
    let cut = with(document, ">laboratory<", "><!-- -->lab<!-- -->oratory<");
    assert_eq!(judged(&cut).unwrap().attributes["groups"][0], "laboratory");
    let value = between(document, "<ds:DigestValue>", "</ds:DigestValue>");
    let digest = value.replace("<ds:DigestValue>", "<ds:DigestValue><!-- AAAA -->");
    refused(&document.replace(value, &digest), "xml-mixed-text");
    let issuer = format!("{ISSUER}</saml:Issuer>\n  <samlp:Status>");
    refused(
        &with(document, &issuer, &format!("{ISSUER}<!-- x -->.evil</saml:Issuer>\n  <samlp:Status>")),
        "xml-mixed-text",
    );
}

#[test]
fn what_is_no_response_is_refused() {
    for document in
        ["", "<a/>", "PHg+", "<Response/>", "<samlp:Response xmlns:samlp=\"urn:oasis:names:tc:SAML:1.0:protocol\"/>"]
    {
        assert!(matches!(judged(document), Err(Doubt::Unbelieved(_))), "{document}");
    }
    refused(
        &vector!("assertion.xml").replacen("<samlp:Response", "<!DOCTYPE r [<!ENTITY e \"x\">]><samlp:Response", 1),
        "xml-dtd",
    );
    refused(&vector!("assertion.xml").replace("Zoe@Acme.test", &"x".repeat(600_000)), "xml-too-large");
}

#[test]
fn what_is_encrypted_for_another_key_or_changed_does_not_open() {
    let document = vector!("encrypted.xml");
    let values: Vec<&str> = document
        .match_indices("<xenc:CipherValue>")
        .map(|(at, tag)| &document[at + tag.len()..at + tag.len() + 8])
        .collect();
    for value in values {
        refused(&with(document, value, "AAAAAAAA"), "cannot-decrypt");
    }
    refused_as(document, "no-private-key", |expected| expected.key = None);
    refused(&document.replace("aes256-gcm", "aes128-gcm"), "cannot-decrypt");
    let key = between(document, "<xenc:EncryptedKey>", "</xenc:EncryptedKey>");
    refused(&document.replace(key, &format!("{key}{key}")), "encrypted-keys");
    let own = DecryptionKey::from_pem(vector!("sp-key.pem")).unwrap();
    assert!(own.belongs_to(&Certificate::parse(vector!("sp.pem")).unwrap()));
    for other in [vector!("other.pem"), vector!("idp-p256.pem")] {
        assert!(!own.belongs_to(&Certificate::parse(other).unwrap()));
    }
}

#[test]
fn canonical_forms_are_those_of_libxml2() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(vector!("c14n.json")).unwrap();
    assert!(cases.len() >= 200);
    for case in cases {
        let source = case["source"].as_str().unwrap();
        let document = roxmltree::Document::parse(source).unwrap();
        let prefixes: Vec<&str> =
            case["prefixes"].as_array().unwrap().iter().filter_map(|text| text.as_str()).collect();
        let whole = c14n::exclusive(document.root_element(), &prefixes, None).unwrap();
        assert_eq!(whole, case["whole"], "{source} {prefixes:?}");
        let at = usize::try_from(case["at"].as_u64().unwrap()).unwrap();
        let element = document.descendants().filter(roxmltree::Node::is_element).nth(at).unwrap();
        assert_eq!(c14n::exclusive(element, &[], None).unwrap(), case["part"], "{source} from {at}");
        // The canonical form of a canonical form is itself.
        let again = roxmltree::Document::parse(&whole).unwrap();
        assert_eq!(c14n::exclusive(again.root_element(), &prefixes, None).unwrap(), whole);
    }
    // Inclusive prefixes stand where they are in scope, the default one under its own name.
    let document =
        roxmltree::Document::parse("<a xmlns=\"urn:d\" xmlns:p=\"urn:p\"><p:b><c p:x=\"1\"/></p:b></a>").unwrap();
    let inner = document.descendants().find(|node| node.tag_name().name() == "b").unwrap();
    assert_eq!(
        c14n::exclusive(inner, &["", "nowhere"], None).unwrap(),
        "<p:b xmlns=\"urn:d\" xmlns:p=\"urn:p\"><c p:x=\"1\"></c></p:b>"
    );
}

#[test]
fn metadata_go_both_ways() {
    let certificate = Certificate::parse(vector!("sp.pem")).unwrap();
    let acs = [format!("{OWN}/acs"), "https://b.example/acs?a=1&b=2".to_owned()];
    let ours = metadata::ours(&format!("{OWN}/metadata"), &acs, Some(&certificate), true);
    let read = roxmltree::Document::parse(&ours).unwrap();
    let services: Vec<_> =
        read.descendants().filter(|node| node.tag_name().name() == "AssertionConsumerService").collect();
    assert_eq!(services.iter().map(|node| node.attribute("Location").unwrap()).collect::<Vec<_>>(), acs);
    assert!(ours.contains(&certificate.base64()) && ours.contains("nameid-format:emailAddress"));

    let idp = Certificate::parse(vector!("idp.pem")).unwrap();
    let provider = |services: &str, keys: &str| {
        format!(
            "<?xml version=\"1.0\"?><md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\" xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\" entityID=\"{ISSUER}\"><md:IDPSSODescriptor>{keys}{services}</md:IDPSSODescriptor></md:EntityDescriptor>"
        )
    };
    let key = |uses: &str, text: &str| {
        format!(
            "<md:KeyDescriptor{uses}><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{text}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
        )
    };
    let service = |binding: &str| {
        format!(
            "<md:SingleSignOnService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:{binding}\" Location=\"https://idp.example.org/{binding}\"/>"
        )
    };
    let keys = [
        key(" use=\"encryption\"", &certificate.base64()),
        key(" use=\"signing\"", &idp.pem()[28..idp.pem().len() - 27]),
        key("", &idp.base64()),
        key("", "AAAA"),
    ]
    .concat();
    let both = service("HTTP-POST") + &service("HTTP-Redirect");
    let read = metadata::theirs(&provider(&both, &keys)).unwrap();
    assert_eq!((read.entity_id.as_str(), read.sign_on_url.as_str()), (ISSUER, "https://idp.example.org/HTTP-Redirect"));
    assert_eq!(read.certificates, [idp.pem()]);
    for (document, why) in [
        (provider(&service("HTTP-POST"), &keys), "names no sign-on address for the HTTP-Redirect binding"),
        (provider(&both, &key("", "AAAA")), "has no signing certificate that can be used"),
        (ours.clone(), "describes no identity provider"),
        ("<!DOCTYPE a><a/>".to_owned(), "is no XML that can be read"),
        ("x".repeat((1 << 20) + 1), "is larger than 1 MiB"),
    ] {
        assert_eq!(metadata::theirs(&document).unwrap_err(), why);
    }
}
