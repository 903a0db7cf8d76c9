//! A forgiving tokenizer for HTML.

use std::io::Read;

use encoding_rs::Encoding;

use crate::entities;
use crate::outcome::Halt;
use crate::text::TextReader;

/// A longer tag is not a tag.
const TAG_BYTES_MAX: usize = 64 * 1024;

/// What a page is made of.
pub(super) enum Token {
    Text(String),
    Start { name: String, attributes: String },
    End { name: String },
}

/// The value of an attribute; empty when it has none.
pub(super) fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '=' || c == '/').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end.max(rest.chars().next().map_or(0, char::len_utf8)));
        let after_blank = after.trim_start();
        let (value, next) = match after_blank.strip_prefix('=').map(str::trim_start) {
            Some(quoted) if quoted.starts_with(['"', '\'']) => {
                let (mark, inner) = quoted.split_at(1);
                let end = inner.find(mark).unwrap_or(inner.len());
                (&inner[..end], inner.get(end + 1..).unwrap_or(""))
            }
            Some(bare) => bare.split_at(bare.find(char::is_whitespace).unwrap_or(bare.len())),
            None => ("", after),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(decode_entities(value).trim().to_lowercase());
        }
        rest = next;
    }
}

fn decode_entities(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '#').map_or(rest.len(), |end| end + 1);
        let name = &rest[1..end];
        let character = match name.strip_prefix('#') {
            Some(number) => {
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                code.ok().and_then(char::from_u32).filter(|c| *c != '\0')
            }
            None => entities::character(name),
        };
        match character {
            Some(c) => {
                decoded.push(c);
                rest = rest[end..].strip_prefix(';').unwrap_or(&rest[end..]);
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

/// The tokens of a page, one after the other.
pub(super) struct Tokens<R> {
    reader: TextReader<R>,
    buffer: String,
    at: usize,
    ended: bool,
    /// Inside an element whose content is not markup.
    raw: Option<String>,
}

impl<R: Read> Tokens<R> {
    pub(super) fn new(source: R, encoding: &'static Encoding) -> Self {
        Self { reader: TextReader::new(source, encoding), buffer: String::new(), at: 0, ended: false, raw: None }
    }

    fn refill(&mut self) -> Result<bool, Halt> {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        match self.reader.next()? {
            Some(text) => {
                self.buffer.push_str(text);
                Ok(true)
            }
            None => {
                self.ended = true;
                Ok(false)
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Token>, Halt> {
        loop {
            if let Some(name) = self.raw.take() {
                return self.raw_text(name).map(Some);
            }
            if self.at == self.buffer.len() && !self.refill()? {
                return Ok(None);
            }
            let rest = &self.buffer[self.at..];
            match rest.find('<') {
                Some(0) => {
                    if let Some(token) = self.markup()? {
                        return Ok(Some(token));
                    }
                }
                found => {
                    // An entity may be cut off by the end of the buffer.
                    let end = found.unwrap_or(rest.len());
                    let mut tail = rest.len().saturating_sub(16);
                    while !rest.is_char_boundary(tail) {
                        tail += 1;
                    }
                    let cut_entity = found.is_none() && !self.ended && rest[tail..].contains('&');
                    if cut_entity && rest.len() < TAG_BYTES_MAX && self.refill()? {
                        continue;
                    }
                    let rest = &self.buffer[self.at..];
                    let end = if cut_entity { rest.find('<').unwrap_or(rest.len()) } else { end };
                    let text = decode_entities(&rest[..end]);
                    self.at += end;
                    return Ok(Some(Token::Text(text)));
                }
            }
        }
    }

    /// The markup at the current `<`; `None` for comments and declarations.
    fn markup(&mut self) -> Result<Option<Token>, Halt> {
        while self.buffer.len() - self.at < 4 && !self.ended {
            self.refill()?;
        }
        let rest = &self.buffer[self.at..];
        if rest.starts_with("<!--") {
            self.at += 4;
            self.skip_past("-->")?;
            return Ok(None);
        }
        if rest.starts_with("<!") || rest.starts_with("<?") {
            self.skip_past(">")?;
            return Ok(None);
        }
        let closing = rest.starts_with("</");
        let from = if closing { 2 } else { 1 };
        if !rest[from..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.at += 1;
            return Ok(Some(Token::Text("<".to_owned())));
        }
        let end = loop {
            if let Some(end) = tag_end(&self.buffer[self.at..]) {
                break end;
            }
            if self.ended || self.buffer.len() - self.at > TAG_BYTES_MAX {
                self.at += 1;
                return Ok(Some(Token::Text("<".to_owned())));
            }
            self.refill()?;
        };
        let tag = &self.buffer[self.at + from..self.at + end];
        let name_end = tag.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(tag.len());
        let name = tag[..name_end].to_ascii_lowercase();
        let attributes = tag[name_end..].to_owned();
        self.at += end + 1;
        if closing {
            return Ok(Some(Token::End { name }));
        }
        if matches!(name.as_str(), "script" | "style" | "title" | "textarea" | "noframes" | "xmp") {
            self.raw = Some(name.clone());
        }
        Ok(Some(Token::Start { name, attributes }))
    }

    fn skip_past(&mut self, mark: &str) -> Result<(), Halt> {
        loop {
            if let Some(found) = self.buffer[self.at..].find(mark) {
                self.at += found + mark.len();
                return Ok(());
            }
            // The mark may be cut in two.
            let mut keep = self.buffer.len().saturating_sub(mark.len() - 1).max(self.at);
            while !self.buffer.is_char_boundary(keep) {
                keep += 1;
            }
            self.at = keep;
            if !self.refill()? {
                self.at = self.buffer.len();
                return Ok(());
            }
        }
    }

    /// The text up to the end tag of a raw element. Only titles are kept.
    fn raw_text(&mut self, name: String) -> Result<Token, Halt> {
        let keep = name == "title";
        let mark = format!("</{name}");
        let mut text = String::new();
        loop {
            let rest = &self.buffer[self.at..];
            let found = rest.match_indices("</").map(|(at, _)| at).find(|at| {
                rest.as_bytes().get(*at..*at + mark.len()).is_some_and(|b| b.eq_ignore_ascii_case(mark.as_bytes()))
            });
            let mut end = found.unwrap_or_else(|| rest.len().saturating_sub(mark.len()));
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            if keep && text.len() < 4096 {
                text.push_str(&rest[..end]);
            }
            self.at += end;
            if found.is_some() || self.ended || !self.refill()? {
                if found.is_none() {
                    self.at = self.buffer.len();
                }
                return Ok(Token::Text(if keep { decode_entities(&text) } else { String::new() }));
            }
        }
    }
}

/// The place of the `>` that ends the tag, quotes respected.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (Some(mark), _) if byte == mark => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if after_equals => quote = Some(byte),
            (None, b'>') => return Some(at),
            (None, _) => {}
        }
        after_equals = byte == b'=' || (after_equals && byte.is_ascii_whitespace());
    }
    None
}
