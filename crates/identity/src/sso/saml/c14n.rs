//! Exclusive XML Canonicalization 1.0 without comments (<https://www.w3.org/TR/xml-exc-c14n/>): the bytes of an element
//! that a signature is over, whatever document it stands in.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Node, NodeId};

use super::xml::{MAX_DEPTH, Unfit};

/// The name of the algorithm.
pub(super) const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// The canonical form of `element` without the subtree `without`. Prefixes in `inclusive` are declared wherever they are
/// in scope, as in inclusive canonicalization; the empty one is the default namespace.
pub(super) fn exclusive(element: Node<'_, '_>, inclusive: &[&str], without: Option<NodeId>) -> Result<String, Unfit> {
    let mut writer = Writer { inclusive, without, out: String::new() };
    writer.element(element, &BTreeMap::new(), 0)?;
    Ok(writer.out)
}

struct Writer<'p> {
    inclusive: &'p [&'p str],
    without: Option<NodeId>,
    out: String,
}

/// The prefix of a qualified name; the empty one when it has none.
fn prefix(name: &str) -> &str {
    name.split_once(':').map_or("", |(prefix, _)| prefix)
}

/// The name of an element as it is written, which the tree leaves out.
fn written<'i>(element: Node<'_, 'i>) -> &'i str {
    let source = &element.document().input_text()[element.range()];
    let name = source.strip_prefix('<').unwrap_or_default();
    name.split([' ', '\t', '\r', '\n', '/', '>']).next().unwrap_or_default()
}

impl Writer<'_> {
    /// `declared` is what the elements written around this one declare.
    fn element<'a>(
        &mut self,
        element: Node<'a, '_>,
        declared: &BTreeMap<&'a str, &'a str>,
        depth: usize,
    ) -> Result<(), Unfit> {
        if depth > MAX_DEPTH {
            return Err("xml-depth");
        }
        let source = element.document().input_text();
        let name = written(element);
        let mut attributes: Vec<_> = element
            .attributes()
            .map(|attribute| {
                (
                    attribute.namespace().unwrap_or_default(),
                    attribute.name(),
                    &source[attribute.range_qname()],
                    attribute,
                )
            })
            .collect();
        attributes.sort_by(|left, right| (left.0, left.1).cmp(&(right.0, right.1)));
        let in_scope: BTreeMap<&str, &str> =
            element.namespaces().map(|declared| (declared.name().unwrap_or_default(), declared.uri())).collect();
        let mut wanted: BTreeSet<&str> = BTreeSet::from([prefix(name)]);
        wanted.extend(attributes.iter().map(|attribute| prefix(attribute.2)).filter(|prefix| !prefix.is_empty()));
        wanted.extend(self.inclusive.iter().filter_map(|prefix| Some(*in_scope.get_key_value(prefix)?.0)));
        wanted.remove("xml");
        let mut inside = declared.clone();
        self.out.push('<');
        self.out.push_str(name);
        for prefix in wanted {
            // A prefix without a declaration can only be the empty one: the parser refuses the others.
            let uri = in_scope.get(prefix).copied().unwrap_or_default();
            if declared.get(prefix).copied().unwrap_or_default() == uri {
                continue;
            }
            // The names live in the document, not in the name that asked for them.
            let kept = in_scope.get_key_value(prefix).map_or("", |(prefix, _)| *prefix);
            inside.insert(kept, uri);
            self.out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
            self.out.push_str(prefix);
            self.out.push_str("=\"");
            self.value(uri);
            self.out.push('"');
        }
        for (_, _, written, attribute) in attributes {
            self.out.push(' ');
            self.out.push_str(written);
            self.out.push_str("=\"");
            self.value(attribute.value());
            self.out.push('"');
        }
        self.out.push('>');
        for child in element.children() {
            if child.is_element() {
                if Some(child.id()) != self.without {
                    self.element(child, &inside, depth + 1)?;
                }
            } else if child.is_text() {
                self.text(child.text().unwrap_or_default());
            }
        }
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
        Ok(())
    }

    fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\r' => self.out.push_str("&#xD;"),
                c => self.out.push(c),
            }
        }
    }

    fn value(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '"' => self.out.push_str("&quot;"),
                '\t' => self.out.push_str("&#x9;"),
                '\n' => self.out.push_str("&#xA;"),
                '\r' => self.out.push_str("&#xD;"),
                c => self.out.push(c),
            }
        }
    }
}
