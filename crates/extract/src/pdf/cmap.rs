//! Character maps: from the bytes of a string to character codes, and from codes to text.

use std::collections::HashMap;

use super::object::{Lexer, Object, Token};

/// Most single entries of a map.
const ENTRIES_MAX: usize = 200_000;

/// A parsed map.
#[derive(Debug, Default)]
pub(super) struct CMap {
    /// Length in bytes, first and last code.
    spaces: Vec<(usize, u32, u32)>,
    texts: HashMap<u32, String>,
    /// First code, last code, text of the first.
    ranges: Vec<(u32, u32, String)>,
    /// First code, last code, character id of the first.
    ids: Vec<(u32, u32, u32)>,
}

impl CMap {
    pub(super) fn parse(data: &[u8]) -> Self {
        let mut map = Self::default();
        let mut lexer = Lexer::new(data);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(token) = lexer.token() {
            match token {
                Token::Keyword(word) => {
                    map.section(word, &operands);
                    operands.clear();
                }
                token @ (Token::ArrayOpens | Token::DictOpens | Token::Object(_)) => {
                    if let Some(object) = lexer.object_from(token, 0)
                        && operands.len() < ENTRIES_MAX
                    {
                        operands.push(object);
                    }
                }
                Token::ArrayCloses | Token::DictCloses => {}
            }
        }
        map.ranges.sort_by_key(|(first, _, _)| *first);
        map.ids.sort_by_key(|(first, _, _)| *first);
        map
    }

    fn section(&mut self, word: &[u8], operands: &[Object]) {
        if self.texts.len() + self.ranges.len() + self.ids.len() > ENTRIES_MAX {
            return;
        }
        match word {
            b"endcodespacerange" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some((first, length)), Some((last, _))) = (code(&pair[0]), code(&pair[1])) {
                        self.spaces.push((length, first, last));
                    }
                }
            }
            b"endbfchar" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some((code, _)), Some(text)) = (code(&pair[0]), text(&pair[1])) {
                        self.texts.insert(code, text);
                    }
                }
            }
            b"endbfrange" => {
                for triple in operands.chunks_exact(3) {
                    let (Some((first, _)), Some((last, _))) = (code(&triple[0]), code(&triple[1])) else { continue };
                    match &triple[2] {
                        Object::Array(items) => {
                            for (offset, item) in items.iter().take(65_536).enumerate() {
                                if let Some(text) = text(item) {
                                    self.texts.insert(first.saturating_add(offset as u32), text);
                                }
                            }
                        }
                        single => self.ranges.extend(text(single).map(|text| (first, last, text))),
                    }
                }
            }
            b"endcidchar" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some((code, _)), Some(id)) = (code(&pair[0]), pair[1].as_int()) {
                        self.ids.push((code, code, id as u32));
                    }
                }
            }
            b"endcidrange" => {
                for triple in operands.chunks_exact(3) {
                    if let (Some((first, _)), Some((last, _)), Some(id)) =
                        (code(&triple[0]), code(&triple[1]), triple[2].as_int())
                    {
                        self.ids.push((first, last, id as u32));
                    }
                }
            }
            _ => {}
        }
    }

    /// The text a code stands for.
    pub(super) fn text(&self, code: u32, to: &mut String) -> bool {
        if let Some(text) = self.texts.get(&code) {
            to.push_str(text);
            return true;
        }
        let after = self.ranges.partition_point(|(first, _, _)| *first <= code);
        let Some((first, _, text)) = self.ranges[..after].last().filter(|(_, last, _)| code <= *last) else {
            return false;
        };
        // Only the last character counts up.
        let mut chars = text.chars();
        let Some(end) = chars.next_back() else { return true };
        to.push_str(chars.as_str());
        to.extend(char::from_u32(u32::from(end) + (code - first)));
        true
    }

    /// The character id of a code.
    pub(super) fn id(&self, code: u32) -> u32 {
        let after = self.ids.partition_point(|(first, _, _)| *first <= code);
        self.ids[..after].last().filter(|(_, last, _)| code <= *last).map_or(code, |(first, _, id)| id + (code - first))
    }

    /// Length in bytes of the code that `bytes` begins with; 0 when the map does not say.
    pub(super) fn code_length(&self, bytes: &[u8]) -> usize {
        let mut value = 0;
        for length in 1..=bytes.len().min(4) {
            value = (value << 8) | u32::from(bytes[length - 1]);
            if self.spaces.iter().any(|(l, first, last)| *l == length && in_space(value, *first, *last, length)) {
                return length;
            }
        }
        self.spaces.iter().map(|(length, _, _)| *length).min().unwrap_or(0)
    }
}

/// A code space is a box: every byte lies between the bytes of its corners.
fn in_space(value: u32, first: u32, last: u32, length: usize) -> bool {
    (0..length).all(|byte| {
        let at = |code: u32| (code >> (8 * byte)) & 0xFF;
        (at(first)..=at(last)).contains(&at(value))
    })
}

fn code(object: &Object) -> Option<(u32, usize)> {
    match object {
        Object::Text(bytes) if (1..=4).contains(&bytes.len()) => {
            Some((bytes.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte)), bytes.len()))
        }
        _ => None,
    }
}

fn text(object: &Object) -> Option<String> {
    match object {
        Object::Text(bytes) if bytes.len() == 1 => Some(char::from(bytes[0]).to_string()),
        Object::Text(bytes) if bytes.len() <= 512 => {
            let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            Some(char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect())
        }
        Object::Name(name) => super::glyphs::character(std::str::from_utf8(name).ok()?).map(String::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections() {
        let map = CMap::parse(
            b"/CIDInit begin 1 begincodespacerange <00> <7F> <8140> <FEFE> endcodespacerange\n\
              2 beginbfchar <01> <00660066> <0002> <D83DDE00> endbfchar\n\
              1 beginbfrange <10> <12> <0041> endbfrange 1 beginbfrange <20> <21> [<0061> <0062>] endbfrange\n\
              1 begincidrange <30> <40> 100 endcidrange",
        );
        let text = |code| {
            let mut text = String::new();
            map.text(code, &mut text).then_some(text)
        };
        assert_eq!(text(1).as_deref(), Some("ff"));
        assert_eq!(text(2).as_deref(), Some("😀"));
        assert_eq!(text(0x12).as_deref(), Some("C"));
        assert_eq!(text(0x21).as_deref(), Some("b"));
        assert_eq!(text(0x13), None);
        assert_eq!(map.id(0x31), 101);
        assert_eq!(map.code_length(&[0x41, 0x42]), 1);
        assert_eq!(map.code_length(&[0x81, 0x42]), 2);
    }
}
