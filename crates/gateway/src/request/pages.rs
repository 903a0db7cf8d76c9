//! What a document counts for. Providers charge documents by the page, as text and as a picture of it, whatever
//! their size in bytes: a page without pictures is a kilobyte or two when it is compressed.

use std::io::Read;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::ZlibDecoder;
use memchr::memmem;

/// Tokens of a dense page, its picture included.
const PAGE_TOKENS: u64 = 3_000;
/// The most pages that providers read.
const MOST_PAGES: u64 = 100;
/// A document whose pages cannot be counted.
pub(super) const UNKNOWN: u64 = MOST_PAGES * PAGE_TOKENS;
/// Bytes of text that count for a token.
const BYTES_PER_TOKEN: u64 = 3;
/// The most that is unpacked to count pages.
const MOST_UNPACKED: usize = 8 << 20;
/// How far a stream begins behind the word that names its kind.
const DICTIONARY: usize = 1_024;

/// Tokens of a document that came in base64, behind a `data:` head or not.
pub(super) fn tokens(data: &str) -> u64 {
    let encoded = if data.starts_with("data:") { data.split_once(',').map_or("", |(_, body)| body) } else { data };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::STANDARD, config.with_decode_allow_trailing_bits(true));
    let decoded = if encoded.bytes().any(|byte| byte.is_ascii_whitespace()) {
        engine.decode(encoded.split_ascii_whitespace().collect::<String>())
    } else {
        engine.decode(encoded)
    };
    let Ok(bytes) = decoded else { return UNKNOWN };
    let head = &bytes[..bytes.len().min(1_024)];
    if memmem::find(head, b"%PDF-").is_none() {
        // Another kind: text, or packed text, of which a byte can be more than a token.
        let size = bytes.len() as u64;
        return if std::str::from_utf8(&bytes).is_ok() { size / BYTES_PER_TOKEN } else { (size * 2).min(UNKNOWN) };
    }
    pages(&bytes).map_or(UNKNOWN, |pages| pages.clamp(1, MOST_PAGES) * PAGE_TOKENS)
}

/// The pages of a PDF, as its page objects and the counts in its tree say; `None` when neither is to be seen.
fn pages(pdf: &[u8]) -> Option<u64> {
    let mut most = seen(pdf);
    let mut room = MOST_UNPACKED;
    // Newer files pack their page objects, many into a stream.
    for at in memmem::find_iter(pdf, b"/ObjStm") {
        let rest = &pdf[at..];
        let start = memmem::find(&rest[..rest.len().min(DICTIONARY)], b"stream")? + b"stream".len();
        let body = &rest[start..];
        let body = body.strip_prefix(b"\r\n").or_else(|| body.strip_prefix(b"\n")).unwrap_or(body);
        let mut unpacked = Vec::new();
        ZlibDecoder::new(body).take(room as u64 + 1).read_to_end(&mut unpacked).ok()?;
        room = room.checked_sub(unpacked.len())?;
        let (objects, count) = seen(&unpacked);
        most = (most.0 + objects, most.1.max(count));
    }
    Some(most.0.max(most.1)).filter(|pages| *pages > 0)
}

/// Page objects, and the largest count of a node of the tree.
fn seen(text: &[u8]) -> (u64, u64) {
    let objects = memmem::find_iter(text, b"/Page").filter(|at| {
        let ends = !text.get(at + 5).is_some_and(u8::is_ascii_alphanumeric);
        ends && text[..*at].trim_ascii_end().ends_with(b"/Type")
    });
    let counts = memmem::find_iter(text, b"/Count").filter_map(|at| {
        let digits = text[at + 6..].trim_ascii_start();
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        std::str::from_utf8(&digits[..end.min(9)]).ok()?.parse().ok()
    });
    (objects.count() as u64, counts.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn page_objects(pages: usize) -> Vec<u8> {
        b"<< /Type /Page /Parent 2 0 R /Contents 9 0 R >>\n".repeat(pages)
    }

    fn packed(objects: &[u8]) -> Vec<u8> {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(objects).unwrap();
        let mut pdf = b"%PDF-1.7\n5 0 obj << /Type /ObjStm /N 9 /First 40 /Filter /FlateDecode >>\nstream\r\n".to_vec();
        pdf.extend(zlib.finish().unwrap());
        pdf.extend(b"\r\nendstream endobj\n%%EOF");
        pdf
    }

    fn counted(pdf: &[u8]) -> u64 {
        tokens(&STANDARD.encode(pdf))
    }

    #[test]
    fn a_document_counts_by_its_pages_however_small_it_is() {
        let mut plain = b"%PDF-1.4\n<< /Type/Pages /Kids [] /Count 7 >>\n".to_vec();
        plain.extend(page_objects(3));
        assert_eq!(counted(&plain), 7 * PAGE_TOKENS);
        assert_eq!(counted(&[b"%PDF-1.4\n".as_slice(), &page_objects(3)].concat()), 3 * PAGE_TOKENS);
        let many = packed(&page_objects(80));
        assert!(many.len() < 400, "{}", many.len());
        assert_eq!(counted(&many), 80 * PAGE_TOKENS);
        let url = format!("data:application/pdf;base64,{}", STANDARD.encode(&many));
        assert_eq!(tokens(&url), 80 * PAGE_TOKENS);
        assert_eq!(counted(&packed(&page_objects(5_000))), UNKNOWN);
    }

    #[test]
    fn what_cannot_be_counted_counts_for_the_most() {
        let locked = [b"%PDF-1.7\n<< /Type /ObjStm >> stream\n".as_slice(), &[7; 300]].concat();
        let bomb = packed(&vec![b' '; MOST_UNPACKED + 1]);
        for pdf in [locked, bomb, b"%PDF-1.4 nothing".to_vec()] {
            assert_eq!(counted(&pdf), UNKNOWN);
        }
        assert_eq!(tokens("not base64!"), UNKNOWN);
        assert_eq!(counted(&b"plain words ".repeat(100)), 400);
        assert_eq!(counted(&[0xff; 100]), 200);
        let broken = STANDARD.encode(packed(&page_objects(2)));
        assert_eq!(tokens(&format!("{}\r\n{}", &broken[..76], &broken[76..])), 2 * PAGE_TOKENS);
    }
}
