//! Text files: finding the encoding and decoding in bounded memory.

use std::io::Read;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::kind::HEAD_BYTES;
use crate::outcome::{ExtractError, Halt, OutcomeCode};
use crate::sink::Out;

fn not_text() -> ExtractError {
    ExtractError::new(OutcomeCode::NotText, "The file has the name of a text file but its content is not text.")
}

/// Finds the encoding from the first bytes: a byte order mark, UTF-8, UTF-16 without a mark, or Windows-1252 for
/// text that is none of these yet has no control characters.
///
/// # Errors
/// `not_text` for binary content.
pub(crate) fn detect(head: &[u8]) -> Result<&'static Encoding, ExtractError> {
    let head = &head[..head.len().min(HEAD_BYTES)];
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        let (text, _, _) = encoding.decode(head);
        return if looks_like_text(text.chars()) { Ok(encoding) } else { Err(not_text()) };
    }
    const BINARY: [&[u8]; 8] =
        [b"%PDF-", b"PK\x03\x04", b"\x7fELF", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"\xca\xfe\xba\xbe"];
    if BINARY.iter().any(|magic| head.starts_with(magic)) {
        return Err(not_text());
    }
    let utf8 = match std::str::from_utf8(head) {
        Ok(text) => Some(text),
        // A character cut off by the end of the sample.
        Err(error) if error.error_len().is_none() && head.len() - error.valid_up_to() < 4 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    if let Some(text) = utf8.filter(|text| !text.is_empty())
        && looks_like_text(text.chars())
    {
        return Ok(UTF_8);
    }
    if head.contains(&0) {
        let whole_units = head.len() >= 8 && (head.len().is_multiple_of(2) || head.len() == HEAD_BYTES);
        for encoding in [UTF_16LE, UTF_16BE] {
            let even = &head[..head.len() & !1];
            let (text, errors) = encoding.decode_without_bom_handling(even);
            let plain = text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == ' ' || *c == '\n').count();
            if whole_units && !errors && plain * 2 > text.chars().count() && looks_like_text(text.chars()) {
                return Ok(encoding);
            }
        }
        return Err(not_text());
    }
    let high = head.iter().filter(|byte| **byte >= 0x80).count();
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(head);
    let c1 = text.chars().any(|c| ('\u{80}'..='\u{9f}').contains(&c));
    if utf8.is_none() && !c1 && high * 10 <= head.len() * 3 && looks_like_text(text.chars()) {
        return Ok(WINDOWS_1252);
    }
    Err(not_text())
}

/// No NUL and next to no other control characters.
fn looks_like_text(chars: impl Iterator<Item = char>) -> bool {
    let (mut total, mut controls) = (0_usize, 0_usize);
    for c in chars {
        total += 1;
        match c {
            '\0' => return false,
            '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}' => {}
            '\u{1}'..='\u{1f}' | '\u{7f}' => controls += 1,
            _ => {}
        }
    }
    controls * 200 <= total
}

/// A reader of decoded text, in pieces.
pub(crate) struct TextReader<R> {
    source: R,
    decoder: encoding_rs::Decoder,
    bytes: Vec<u8>,
    filled: usize,
    text: String,
    ended: bool,
    replaced: u64,
    decoded: u64,
}

const READ_BYTES: usize = 32 * 1024;

impl<R: Read> TextReader<R> {
    /// Reads `source` as `encoding`; a byte order mark is honoured and dropped.
    pub(crate) fn new(source: R, encoding: &'static Encoding) -> Self {
        Self {
            source,
            decoder: encoding.new_decoder(),
            bytes: vec![0; READ_BYTES],
            filled: 0,
            text: String::with_capacity(READ_BYTES * 3 + 16),
            ended: false,
            replaced: 0,
            decoded: 0,
        }
    }

    /// The next piece of text; `None` at the end. Bytes that are no characters become U+FFFD.
    ///
    /// # Errors
    /// `not_text` when too much of the file cannot be decoded.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, Halt> {
        loop {
            if self.ended {
                return Ok(None);
            }
            let read = self.source.read(&mut self.bytes[self.filled..])?;
            self.filled += read;
            let last = read == 0;
            self.text.clear();
            let (_, used, errors) = self.decoder.decode_to_string(&self.bytes[..self.filled], &mut self.text, last);
            self.bytes.copy_within(used..self.filled, 0);
            self.filled -= used;
            self.ended = last && self.filled == 0;
            self.decoded += used as u64;
            if errors {
                self.replaced += self.text.chars().filter(|c| *c == '\u{fffd}').count() as u64;
                if self.replaced > 64 && self.replaced * 50 > self.decoded {
                    return Err(not_text().into());
                }
            }
            if !self.text.is_empty() {
                return Ok(Some(&self.text));
            }
        }
    }
}

/// Text as it stands.
pub(crate) fn extract(source: impl Read, head: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
    let mut reader = TextReader::new(source, detect(head)?);
    let mut total = 0_u64;
    while let Some(text) = reader.next()? {
        total += text.len() as u64;
        out.text(text)?;
        if out.nul_bytes > 16 && out.nul_bytes * 1000 > total {
            return Err(not_text().into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found() {
        let utf16 = |text: &str, be: bool| -> Vec<u8> {
            text.encode_utf16().flat_map(|u| if be { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
        };
        assert_eq!(detect(b"plain").unwrap(), UTF_8);
        assert_eq!(detect("Grüße, 世界".as_bytes()).unwrap(), UTF_8);
        assert_eq!(detect(&"ü".as_bytes()[..1]).map_err(|e| e.code), Err(OutcomeCode::NotText));
        assert_eq!(detect(b"\xef\xbb\xbfa").unwrap(), UTF_8);
        assert_eq!(detect(&[b"\xff\xfe".as_slice(), &utf16("Hallo", false)].concat()).unwrap(), UTF_16LE);
        assert_eq!(detect(&[b"\xfe\xff".as_slice(), &utf16("Hallo", true)].concat()).unwrap(), UTF_16BE);
        assert_eq!(detect(&utf16("no mark here", false)).unwrap(), UTF_16LE);
        assert_eq!(detect(&utf16("no mark here", true)).unwrap(), UTF_16BE);
        assert_eq!(detect(b"Stra\xdfe und gr\xfc\xdfe Gr\xfc\xdfe").unwrap(), WINDOWS_1252);
    }

    #[test]
    fn binary_is_refused() {
        let noise: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for head in [&noise[..], b"MZ\x90\0\x03", b"text with \0 nul", b"%PDF-1.7\n", b"\x7fELF\x02\x01"] {
            assert_eq!(detect(head).map_err(|e| e.code), Err(OutcomeCode::NotText));
        }
    }
}
