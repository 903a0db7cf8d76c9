//! Whether a provider's response is believed, and what it says (SAML-4…6). Nothing here reads a clock, a database or the
//! network.
//!
//! Everything that is taken from an assertion is read from the canonical bytes that its signature is over, parsed anew.
//! What moves elements around in the document can therefore not change what is read, only whether it is.

use chrono::{DateTime, TimeDelta, Utc};
use roxmltree::{Document, Node};
use serde_json::{Map, Value};
use tale_core::crypto::certificate::Certificate;
use tale_core::crypto::transport::DecryptionKey;

use super::xml::{self, DS, SAML, SAMLP, Unfit, child, children, is, text, the};
use super::{encryption, signature};

/// Largest response, in bytes.
pub(super) const MAX_RESPONSE: usize = 512 * 1024;
/// How far the clocks of the provider and of this server may be apart.
const SKEW: TimeDelta = TimeDelta::seconds(60);
/// Longest name of an assertion or of a person.
const MAX_NAME: usize = 255;
/// Most values of an attribute.
const MAX_VALUES: usize = 1_000;
/// Most attributes.
const MAX_ATTRIBUTES: usize = 200;
/// The status of a provider that signed somebody in.
const SUCCESS: &str = "urn:oasis:names:tc:SAML:2.0:status:Success";
/// The confirmation by whoever brings the assertion.
const BEARER: &str = "urn:oasis:names:tc:SAML:2.0:cm:bearer";

/// What a response is checked against.
pub(super) struct Expected<'a> {
    /// The provider's entity id.
    pub(super) issuer: &'a str,
    /// Our entity id.
    pub(super) audience: &'a str,
    /// The address that the browser brought it to.
    pub(super) acs: &'a str,
    /// The provider's certificates.
    pub(super) certificates: &'a [Certificate],
    /// Whether the assertion itself must be signed, and not only the response around it.
    pub(super) signed_assertions: bool,
    /// Whether it must be encrypted.
    pub(super) encrypted_assertions: bool,
    /// What it is encrypted for.
    pub(super) key: Option<&'a DecryptionKey>,
    /// When.
    pub(super) now: DateTime<Utc>,
}

/// Why a response leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The provider says that it signed nobody in, with its own code.
    Status(String),
    /// It is not believed; what is wrong, for the log.
    Unbelieved(Unfit),
}

impl From<Unfit> for Doubt {
    fn from(why: Unfit) -> Self {
        Self::Unbelieved(why)
    }
}

/// An assertion that is believed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assertion {
    /// Its name, which the provider uses once.
    pub(super) id: String,
    /// Until when it is remembered, which is longer than it would be believed again.
    pub(super) until: DateTime<Utc>,
    /// The question it answers; none: nobody asked.
    pub(super) in_response_to: Option<String>,
    /// Who the person is to the provider.
    pub(super) name_id: String,
    /// The format of that.
    pub(super) format: Option<String>,
    /// What else it says: a text, or a list when there is not just one.
    pub(super) attributes: Map<String, Value>,
}

/// The last word of a name with parts.
fn last_part(name: &str) -> &str {
    name.rsplit([':', '/', '#']).next().unwrap_or_default()
}

/// Judges a response.
pub(super) fn judge(response: &str, expected: &Expected<'_>) -> Result<Assertion, Doubt> {
    let document = xml::parse(response, MAX_RESPONSE)?;
    let root = document.root_element();
    succeeded(root)?;
    placed(root)?;
    let Some(signature) = signature::of(root)? else { return within(root, false, expected) };
    let bytes = signature::signed(root, signature, expected.certificates)?;
    let anew = xml::parse(&bytes, usize::MAX)?;
    within(anew.root_element(), true, expected)
}

/// Whether the provider signed anybody in.
fn succeeded(root: Node<'_, '_>) -> Result<(), Doubt> {
    if !is(root, SAMLP, "Response") {
        return Err(Doubt::Unbelieved("no-response"));
    }
    let code = the(the(root, SAMLP, "Status")?, SAMLP, "StatusCode")?;
    let value = |code: Node<'_, '_>| code.attribute("Value").unwrap_or_default().to_owned();
    if value(code) == SUCCESS {
        return Ok(());
    }
    // The first says whose fault it is, the second what happened.
    let detail = child(code, SAMLP, "StatusCode")?.map_or_else(|| value(code), value);
    let shown = last_part(&detail).chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    Err(Doubt::Status(shown.take(64).collect()))
}

/// Refuses assertions and signatures anywhere but where they belong: one assertion in the response, a signature in
/// either.
fn placed(root: Node<'_, '_>) -> Result<(), Unfit> {
    for node in root.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let assertion = matches!(name, "Assertion" | "EncryptedAssertion" | "Response") && node != root;
        if assertion && (node.parent() != Some(root) || name == "Response") {
            return Err("assertion-place");
        }
        let holder = node.parent().filter(|parent| *parent == root || is(*parent, SAML, "Assertion"));
        if is(node, DS, "Signature") && holder.is_none() {
            return Err("signature-place");
        }
    }
    let assertions =
        root.children().filter(|node| is(*node, SAML, "Assertion") || is(*node, SAML, "EncryptedAssertion"));
    if assertions.count() == 1 { Ok(()) } else { Err("assertion-count") }
}

/// Judges what is in a response: as it came, or as it was signed.
fn within(root: Node<'_, '_>, signed: bool, expected: &Expected<'_>) -> Result<Assertion, Doubt> {
    if signed {
        // What is signed says it again.
        succeeded(root)?;
        placed(root)?;
    }
    if root.attribute("Version") != Some("2.0") {
        return Err(Doubt::Unbelieved("version"));
    }
    match root.attribute("Destination") {
        Some(destination) if destination == expected.acs => {}
        None if !signed => {}
        _ => return Err(Doubt::Unbelieved("destination")),
    }
    if child(root, SAML, "Issuer")?.map(text).transpose()?.is_some_and(|issuer| issuer.trim() != expected.issuer) {
        return Err(Doubt::Unbelieved("issuer"));
    }
    let assertion = match child(root, SAML, "EncryptedAssertion")? {
        Some(outer) => {
            let key = expected.key.ok_or("no-private-key")?;
            let plain = encryption::opened(outer, key)?;
            let document = xml::parse(&plain, MAX_RESPONSE)?;
            alone(&document)?;
            believed(document.root_element(), signed, expected)?
        }
        None if expected.encrypted_assertions => return Err(Doubt::Unbelieved("not-encrypted")),
        None => believed(the(root, SAML, "Assertion")?, signed, expected)?,
    };
    // An answer says twice whom it answers, and an assertion alone is taken for one that nobody asked for.
    match root.attribute("InResponseTo") {
        Some(question) if assertion.in_response_to.as_deref() != Some(question) => {
            Err(Doubt::Unbelieved("in-response-to"))
        }
        _ => Ok(assertion),
    }
}

/// Refuses a decrypted text that is more than an assertion with a signature.
fn alone(document: &Document<'_>) -> Result<(), Unfit> {
    let root = document.root_element();
    let more = |node: Node<'_, '_>| {
        let name = node.tag_name().name();
        (node != root && matches!(name, "Assertion" | "EncryptedAssertion" | "Response"))
            || (is(node, DS, "Signature") && node.parent() != Some(root))
    };
    if !is(root, SAML, "Assertion") || root.descendants().any(|node| node.is_element() && more(node)) {
        return Err("assertion-place");
    }
    Ok(())
}

/// Reads an assertion that is signed, by itself or with what is around it.
fn believed(assertion: Node<'_, '_>, around: bool, expected: &Expected<'_>) -> Result<Assertion, Unfit> {
    match signature::of(assertion)? {
        Some(signature) => {
            let bytes = signature::signed(assertion, signature, expected.certificates)?;
            read(xml::parse(&bytes, usize::MAX)?.root_element(), expected)
        }
        None if expected.signed_assertions => Err("assertion-unsigned"),
        None if around => read(assertion, expected),
        None => Err("unsigned"),
    }
}

fn time(node: Node<'_, '_>, name: &str) -> Result<Option<DateTime<Utc>>, Unfit> {
    let read = |text: &str| DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).map_err(|_| "time");
    node.attribute(name).map(read).transpose()
}

/// What an assertion says, when it is for us and now.
fn read(assertion: Node<'_, '_>, expected: &Expected<'_>) -> Result<Assertion, Unfit> {
    let (earliest, latest) = (expected.now - SKEW, expected.now + SKEW);
    if !is(assertion, SAML, "Assertion") || assertion.attribute("Version") != Some("2.0") {
        return Err("version");
    }
    if text(the(assertion, SAML, "Issuer")?)?.trim() != expected.issuer {
        return Err("issuer");
    }
    let id = assertion.attribute("ID").filter(|id| (1..=MAX_NAME).contains(&id.len())).ok_or("assertion-id")?;
    let conditions = the(assertion, SAML, "Conditions")?;
    if time(conditions, "NotBefore")?.is_some_and(|begin| begin > latest) {
        return Err("not-yet");
    }
    if time(conditions, "NotOnOrAfter")?.is_some_and(|end| end <= earliest) {
        return Err("expired");
    }
    let mut restricted = false;
    for condition in conditions.children().filter(Node::is_element) {
        if is(condition, SAML, "AudienceRestriction") {
            let named = |node: Node<'_, '_>| text(node).is_ok_and(|audience| audience.trim() == expected.audience);
            if !children(condition, SAML, "Audience").any(named) {
                return Err("audience");
            }
            restricted = true;
        } else if !is(condition, SAML, "OneTimeUse") && !is(condition, SAML, "ProxyRestriction") {
            return Err("condition");
        }
    }
    if !restricted {
        return Err("audience");
    }
    let statements: Vec<_> = children(assertion, SAML, "AuthnStatement").collect();
    if statements.is_empty() {
        return Err("authentication");
    }
    for statement in statements {
        if time(statement, "SessionNotOnOrAfter")?.is_some_and(|end| end <= earliest) {
            return Err("expired");
        }
    }
    let subject = the(assertion, SAML, "Subject")?;
    let name = the(subject, SAML, "NameID")?;
    let name_id = text(name)?.trim();
    if !(1..=MAX_NAME).contains(&name_id.len()) {
        return Err("name-id");
    }
    let (until, in_response_to) = confirmed(subject, expected)?;
    Ok(Assertion {
        id: id.to_owned(),
        // Clocks of processes may be apart, too.
        until: until + SKEW + SKEW,
        in_response_to,
        name_id: name_id.to_owned(),
        format: name.attribute("Format").map(|format| last_part(format).to_owned()),
        attributes: attributes(assertion)?,
    })
}

/// Until when, and in answer to which question, the bearer may use the assertion.
fn confirmed(subject: Node<'_, '_>, expected: &Expected<'_>) -> Result<(DateTime<Utc>, Option<String>), Unfit> {
    let mut why = "confirmation";
    let bearers =
        children(subject, SAML, "SubjectConfirmation").filter(|node| node.attribute("Method") == Some(BEARER));
    for confirmation in bearers {
        let data = the(confirmation, SAML, "SubjectConfirmationData")?;
        let end = time(data, "NotOnOrAfter")?.ok_or("confirmation")?;
        if data.attribute("Recipient") != Some(expected.acs) {
            why = "recipient";
        } else if end <= expected.now - SKEW {
            why = "expired";
        } else if time(data, "NotBefore")?.is_some_and(|begin| begin > expected.now + SKEW) {
            why = "not-yet";
        } else {
            return Ok((end, data.attribute("InResponseTo").map(str::to_owned)));
        }
    }
    Err(why)
}

/// The attributes, by their names and where nothing else is called so by their friendly names.
fn attributes(assertion: Node<'_, '_>) -> Result<Map<String, Value>, Unfit> {
    let mut said: Vec<(&str, Option<&str>, Vec<Value>)> = Vec::new();
    let all =
        children(assertion, SAML, "AttributeStatement").flat_map(|statement| children(statement, SAML, "Attribute"));
    for attribute in all {
        let name = attribute.attribute("Name").ok_or("attribute-name")?;
        let mut values = Vec::new();
        for value in children(attribute, SAML, "AttributeValue").take(MAX_VALUES) {
            // A value may be an element of its own, such as a name of a person; its text is what counts.
            let words: String = value.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect();
            values.push(Value::String(words.trim().to_owned()));
        }
        let full = said.len() >= MAX_ATTRIBUTES;
        match said.iter_mut().find(|(known, _, _)| *known == name) {
            Some((_, _, known)) => known.append(&mut values),
            None if full => return Err("attributes"),
            None => said.push((name, attribute.attribute("FriendlyName"), values)),
        }
    }
    let mut found = Map::new();
    for (name, friendly, mut values) in said {
        values.truncate(MAX_VALUES);
        let value = match <[Value; 1]>::try_from(values) {
            Ok([only]) => only,
            Err(values) => Value::Array(values),
        };
        if let Some(friendly) = friendly {
            found.entry(friendly).or_insert_with(|| value.clone());
        }
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}
