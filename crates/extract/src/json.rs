//! JSON as text: long lines are broken between values and `\u` escapes become the characters they mean.
//!
//! Nothing is parsed into a tree, so nesting costs nothing and a broken file is still readable text.

use std::io::Read;

use crate::outcome::Halt;
use crate::sink::Out;
use crate::text::{TextReader, detect};

/// A line longer than this is broken after the next comma or bracket.
const LINE_CHARS: usize = 160;

pub(crate) fn extract(source: impl Read, head: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
    let mut reader = TextReader::new(source, detect(head)?);
    let mut state = State::default();
    let mut shown = String::new();
    while let Some(text) = reader.next()? {
        shown.clear();
        for c in text.chars() {
            state.push(c, &mut shown);
        }
        out.text(&shown)?;
    }
    shown.clear();
    state.end(&mut shown);
    out.text(&shown)
}

#[derive(Default)]
struct State {
    in_string: bool,
    /// An escape read so far, with its backslash.
    escape: String,
    high: Option<u16>,
    column: usize,
}

impl State {
    fn push(&mut self, c: char, to: &mut String) {
        if !self.escape.is_empty() {
            self.escape.push(c);
            return self.escaped(to);
        }
        if self.in_string {
            if c == '\\' {
                self.escape.push(c);
                return;
            }
            self.lone(to);
            self.in_string = c != '"';
        } else {
            self.in_string = c == '"';
        }
        to.push(c);
        self.column = if c == '\n' { 0 } else { self.column + 1 };
        if !self.in_string && self.column > LINE_CHARS && matches!(c, ',' | '{' | '[' | '}' | ']') {
            to.push('\n');
            self.column = 0;
        }
    }

    fn escaped(&mut self, to: &mut String) {
        let unicode = self.escape.starts_with("\\u");
        if unicode && self.escape.len() < 6 && self.escape[2..].bytes().all(|b| b.is_ascii_hexdigit()) {
            return;
        }
        let escape = std::mem::take(&mut self.escape);
        let unit = escape.strip_prefix("\\u").and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let Some(unit) = unit else {
            self.lone(to);
            self.column += escape.len();
            to.push_str(&escape);
            return;
        };
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
                to.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            (before, unit) => {
                if before.is_some() {
                    to.push('\u{fffd}');
                }
                match unit {
                    0xD800..=0xDBFF => self.high = Some(unit),
                    // Quotation marks, backslashes and controls stay escaped.
                    0x22 | 0x5C | 0..=0x1F => to.push_str(&escape),
                    unit => to.push(char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}')),
                }
            }
        }
        self.column += 1;
    }

    /// A first half of a pair without its second.
    fn lone(&mut self, to: &mut String) {
        if self.high.take().is_some() {
            to.push('\u{fffd}');
        }
    }

    fn end(&mut self, to: &mut String) {
        self.lone(to);
        to.push_str(&self.escape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let (mut state, mut to) = (State::default(), String::new());
        for c in text.chars() {
            state.push(c, &mut to);
        }
        state.end(&mut to);
        to
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(
            shown(r#"{"a":"Gr\u00fc\u00dfe \ud83d\ude00 \n \u0022 \\u00fc"}"#),
            r#"{"a":"Grüße 😀 \n \u0022 \\u00fc"}"#
        );
        assert_eq!(shown(r#""\ud83d x \ude00 \ud83d""#), "\"\u{fffd} x \u{fffd} \u{fffd}\"");
        assert_eq!(shown("\"\\u00"), "\"\\u00");
    }

    #[test]
    fn long_lines_are_broken_between_values() {
        let text = format!("[{}]", vec!["{\"key\":\"a,b\"}"; 200].join(","));
        let shown = shown(&text);
        assert!(shown.lines().all(|line| line.len() < 200));
        assert_eq!(shown.replace('\n', ""), text);
        assert!(!shown.contains("a,\nb"));
    }
}
