//! Reading an XML part event by event: no entity expansion, bounded nesting, bounded pieces.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::limits::{NESTING_MAX, XML_EVENT_BYTES_MAX};
use crate::outcome::{ExtractError, Halt, as_io, malformed};

/// What stands in the part. Empty elements appear as start and end. Names are without prefix.
pub(crate) enum Node<'a> {
    Start(Tag<'a>),
    End(Name),
    Text(Cow<'a, str>),
}

/// A short element name, by value. Names longer than this are no names we know; they are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    bytes: [u8; 31],
    length: u8,
}

impl Name {
    fn new(name: &[u8]) -> Self {
        let length = name.len().min(31);
        let mut bytes = [0; 31];
        bytes[..length].copy_from_slice(&name[..length]);
        Self { bytes, length: length as u8 }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A start tag.
pub(crate) struct Tag<'a>(BytesStart<'a>);

impl Tag<'_> {
    pub(crate) fn name(&self) -> Name {
        Name::new(self.0.local_name().into_inner())
    }

    /// The unescaped value of the attribute with this name, whatever its prefix.
    pub(crate) fn attr(&self, name: &str) -> Option<String> {
        self.0.attributes().with_checks(false).flatten().find(|a| a.key.local_name().as_ref() == name.as_bytes()).map(
            |a| {
                let raw = String::from_utf8_lossy(&a.value);
                match quick_xml::escape::unescape(&raw) {
                    Ok(value) => value.into_owned(),
                    Err(_) => raw.into_owned(),
                }
            },
        )
    }

    /// Tells `on_attribute` every attribute: its name without prefix and its value as it is written.
    pub(crate) fn each_attr(&self, mut on_attribute: impl FnMut(&[u8], &[u8])) {
        for attribute in self.0.attributes().with_checks(false).flatten() {
            on_attribute(attribute.key.local_name().as_ref(), &attribute.value);
        }
    }

    /// The value of the attribute with exactly this name, prefix included.
    pub(crate) fn attr_exact(&self, name: &str) -> Option<String> {
        self.0
            .attributes()
            .with_checks(false)
            .flatten()
            .find(|a| a.key.as_ref() == name.as_bytes())
            .map(|a| String::from_utf8_lossy(&a.value).into_owned())
    }
}

/// The reader of one part.
pub(crate) struct Xml<R: BufRead> {
    reader: Reader<Guard<R>>,
    buffer: Vec<u8>,
    spent: Rc<Cell<u64>>,
    depth: usize,
}

impl<R: BufRead> Xml<R> {
    pub(crate) fn new(source: R) -> Self {
        let spent = Rc::new(Cell::new(0));
        let mut reader = Reader::from_reader(Guard { source, spent: Rc::clone(&spent) });
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        Self { reader, buffer: Vec::new(), spent, depth: 0 }
    }

    /// The next node; `None` at the end of the part.
    pub(crate) fn next(&mut self) -> Result<Option<Node<'_>>, Halt> {
        self.buffer.clear();
        self.spent.set(0);
        let event = self.reader.read_event_into(&mut self.buffer).map_err(damaged)?;
        let node = match event {
            Event::Start(tag) | Event::Empty(tag) => {
                self.depth += 1;
                Node::Start(Tag(tag))
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                Node::End(Name::new(tag.local_name().into_inner()))
            }
            Event::Text(text) => Node::Text(lossy(text.into_inner())),
            Event::CData(text) => Node::Text(lossy(text.into_inner())),
            Event::GeneralRef(reference) => Node::Text(resolve(&reference)),
            Event::DocType(_) => {
                return malformed("The file declares its own XML entities, which documents may not.");
            }
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => Node::Text(Cow::Borrowed("")),
            Event::Eof if self.depth > 0 => {
                return malformed("The file is damaged: one of its parts ends too early.");
            }
            Event::Eof => return Ok(None),
        };
        if self.depth > NESTING_MAX {
            return malformed("The file is nested deeper than a document may be.");
        }
        Ok(Some(node))
    }

    /// Skips to the end of the element whose start was just read.
    pub(crate) fn skip(&mut self) -> Result<(), Halt> {
        let outside = self.depth - 1;
        while self.depth > outside {
            if self.next()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The text inside the element whose start was just read, read to its end.
    pub(crate) fn text(&mut self) -> Result<String, Halt> {
        let mut text = String::new();
        self.text_into(&mut text)?;
        Ok(text)
    }

    /// Appends the text inside the element whose start was just read, read to its end.
    pub(crate) fn text_into(&mut self, text: &mut String) -> Result<(), Halt> {
        let outside = self.depth - 1;
        while self.depth > outside {
            match self.next()? {
                Some(Node::Text(more)) => text.push_str(&more),
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }
}

fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn resolve<'a>(reference: &quick_xml::events::BytesRef<'a>) -> Cow<'a, str> {
    if let Ok(Some(c)) = reference.resolve_char_ref() {
        return Cow::Owned(c.to_string());
    }
    let name = String::from_utf8_lossy(reference).into_owned();
    match quick_xml::escape::resolve_xml_entity(&name) {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(format!("&{name};")),
    }
}

fn damaged(error: quick_xml::Error) -> Halt {
    if let quick_xml::Error::Io(inner) = &error {
        if let Some(refusal) = inner.get_ref().and_then(|inner| inner.downcast_ref::<ExtractError>()) {
            return refusal.clone().into();
        }
        return Halt::from(io::Error::from(inner.kind()));
    }
    ExtractError::malformed("The file is damaged: one of its parts is not proper XML.").into()
}

/// Counts the bytes read since the last event, so that one endless piece of text cannot fill the memory.
struct Guard<R> {
    source: R,
    spent: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer)
    }
}

impl<R: BufRead> BufRead for Guard<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.spent.get() > XML_EVENT_BYTES_MAX {
            return Err(as_io(ExtractError::malformed(
                "The file has a single piece of text larger than a document may.",
            )));
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.spent.set(self.spent.get() + amount as u64);
        self.source.consume(amount);
    }
}
