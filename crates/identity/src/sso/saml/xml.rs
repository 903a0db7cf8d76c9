//! XML as SAML needs it: bounded before it is parsed, without document types, entities of its own and processing
//! instructions, and with names that stand for one element each.

use std::collections::HashSet;

use roxmltree::{Document, Node, ParsingOptions};

/// The protocol's messages.
pub(super) const SAMLP: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
/// What they say.
pub(super) const SAML: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
/// What providers say about themselves.
pub(super) const METADATA: &str = "urn:oasis:names:tc:SAML:2.0:metadata";
/// Signatures.
pub(super) const DS: &str = "http://www.w3.org/2000/09/xmldsig#";
/// Encryption.
pub(super) const XENC: &str = "http://www.w3.org/2001/04/xmlenc#";
/// More of encryption.
pub(super) const XENC11: &str = "http://www.w3.org/2009/xmlenc11#";

/// Deepest nesting of elements.
pub(super) const MAX_DEPTH: usize = 32;
/// Most attributes of an element, with its declarations of namespaces.
const MAX_ATTRIBUTES: usize = 32;
/// The attributes that give an element a name for references.
const ID_NAMES: [&str; 4] = ["ID", "Id", "id", "AssertionID"];

/// Why a text is not read. It is for the log.
pub(crate) type Unfit = &'static str;

/// A document of at most `max` bytes.
pub(super) fn parse(text: &str, max: usize) -> Result<Document<'_>, Unfit> {
    if text.len() > max {
        return Err("xml-too-large");
    }
    bounded(text, MAX_DEPTH, MAX_ATTRIBUTES)?;
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::DtdDetected => "xml-dtd",
        _ => "xml-malformed",
    })?;
    if document.descendants().any(|node| node.is_pi()) {
        return Err("xml-processing-instruction");
    }
    let mut names = HashSet::new();
    for attribute in document.descendants().flat_map(|node| node.attributes()) {
        if ID_NAMES.contains(&attribute.name()) && !names.insert(attribute.value()) {
            return Err("xml-duplicate-id");
        }
    }
    Ok(document)
}

/// Holds depth and attributes within their bounds before anything is built of the text: what declares namespaces copies
/// those of its parents. Refuses document types. Reads over whatever is not well-formed, which the parser refuses.
pub(crate) fn bounded(text: &str, max_depth: usize, max_attributes: usize) -> Result<(), Unfit> {
    let after = |rest: &'_ str, end: &str| rest.find(end).map(|at| at + end.len());
    let (mut rest, mut depth) = (text, 0usize);
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let skipped = if let Some(comment) = rest.strip_prefix("<!--") {
            after(comment, "-->").map(|end| end + 4)
        } else if rest.starts_with("<![CDATA[") {
            after(rest, "]]>")
        } else if rest.starts_with("<!") {
            return Err("xml-dtd");
        } else if rest.starts_with("<?") {
            after(rest, "?>")
        } else if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            after(rest, ">")
        } else {
            let (length, attributes, open) = tag(rest);
            if attributes > max_attributes {
                return Err("xml-attributes");
            }
            depth += usize::from(open);
            Some(length)
        };
        if depth > max_depth {
            return Err("xml-depth");
        }
        rest = &rest[skipped.ok_or("xml-malformed")?..];
    }
    Ok(())
}

/// The length of the start tag at the beginning of `text`, how many attributes it has, whether it opens an element.
fn tag(text: &str) -> (usize, usize, bool) {
    let (mut quote, mut attributes, mut last) = (None, 0, b' ');
    for (at, byte) in text.bytes().enumerate() {
        match quote {
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => {
                quote = Some(byte);
                attributes += 1;
            }
            None if byte == b'>' => return (at + 1, attributes, last != b'/'),
            None => {}
        }
        last = byte;
    }
    (text.len(), attributes, true)
}

/// Whether it is the element of that name.
pub(super) fn is(node: Node<'_, '_>, namespace: &str, name: &str) -> bool {
    node.is_element() && node.tag_name().namespace() == Some(namespace) && node.tag_name().name() == name
}

/// The children of that name.
pub(super) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    namespace: &'static str,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| is(*child, namespace, name))
}

/// The only child of that name; `None`: there is none. Two are an error.
pub(super) fn child<'a, 'i>(
    node: Node<'a, 'i>,
    namespace: &'static str,
    name: &'static str,
) -> Result<Option<Node<'a, 'i>>, Unfit> {
    let mut found = children(node, namespace, name);
    let first = found.next();
    if found.next().is_some() { Err("xml-repeated") } else { Ok(first) }
}

/// The only child of that name, which must be there.
pub(super) fn the<'a, 'i>(
    node: Node<'a, 'i>,
    namespace: &'static str,
    name: &'static str,
) -> Result<Node<'a, 'i>, Unfit> {
    child(node, namespace, name)?.ok_or("xml-incomplete")
}

/// All text of an element that has nothing but text. A comment inside would cut it in two, so it is refused.
pub(super) fn text<'a>(node: Node<'a, '_>) -> Result<&'a str, Unfit> {
    let mut inside = node.children();
    match (inside.next(), inside.next()) {
        (None, _) => Ok(""),
        (Some(only), None) if only.is_text() => Ok(only.text().unwrap_or_default()),
        _ => Err("xml-mixed-text"),
    }
}

/// The bytes of base64 that may be broken into lines.
pub(super) fn base64(text: &str) -> Result<Vec<u8>, Unfit> {
    use base64::Engine;
    let packed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    base64::engine::general_purpose::STANDARD.decode(packed).map_err(|_| "base64")
}

/// `text` for an attribute or an element.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Unfit {
        parse(text, 100_000).err().unwrap_or("taken")
    }

    #[test]
    fn what_could_expand_or_reach_out_is_not_parsed() {
        let laughs = r#"<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><a>&c;</a>"#;
        assert_eq!(refused(laughs), "xml-dtd");
        assert_eq!(refused(r#"<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>"#), "xml-dtd");
        assert_eq!(refused(r#"<?xml version="1.0"?><!-- x --><!doctype a><a/>"#), "xml-dtd");
        assert_eq!(refused("<a>&b;</a>"), "xml-malformed");
        assert_eq!(refused("<a><?php x ?></a>"), "xml-processing-instruction");
        assert_eq!(refused(&"<a>".repeat(20)), "xml-malformed");
        assert_eq!(refused("<a"), "xml-malformed");
        assert_eq!(refused("<a><!-- "), "xml-malformed");
        assert_eq!(refused(&" ".repeat(100_001)), "xml-too-large");
        assert_eq!(refused(r#"<?xml version="1.0"?><a b="&lt;&#x41;"/>"#), "taken");
    }

    #[test]
    fn depth_and_attributes_are_bounded_before_anything_is_built() {
        let nested = |depth: usize| format!("{}{}", r#"<a x="">"#.repeat(depth), "</a>".repeat(depth));
        assert_eq!(refused(&nested(MAX_DEPTH)), "taken");
        assert_eq!(refused(&nested(MAX_DEPTH + 1)), "xml-depth");
        assert_eq!(refused(&r#"<a xmlns:b="c">"#.repeat(6_000)), "xml-depth");
        let wide =
            |count: usize| format!("<a{}/>", (0..count).map(|at| format!(" xmlns:n{at}='x{at}>'")).collect::<String>());
        assert_eq!(refused(&wide(MAX_ATTRIBUTES)), "taken");
        assert_eq!(refused(&wide(MAX_ATTRIBUTES + 1)), "xml-attributes");
        // What only looks like markup does not count.
        assert_eq!(refused(&format!("<a><!-- {} --><![CDATA[{}]]></a>", "<b>".repeat(50), "<b>".repeat(50))), "taken");
    }

    #[test]
    fn a_name_stands_for_one_element() {
        assert_eq!(refused(r#"<a ID="x"><b ID="x"/></a>"#), "xml-duplicate-id");
        assert_eq!(refused(r#"<a ID="x"><b Id="x"/></a>"#), "xml-duplicate-id");
        assert_eq!(refused(r#"<a ID="x"><b xml:id="x"/></a>"#), "xml-duplicate-id");
        assert_eq!(refused(r#"<a ID="x"><b ID="y"/></a>"#), "taken");
    }
}
