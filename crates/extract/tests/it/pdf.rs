use std::io::Write;

use tale_extract::OutcomeCode;

use crate::{Fixture, code_of, refusal_of, text_of};

/// A PDF from the bodies of its objects (the first is the root), with a proper table.
pub fn pdf(objects: &[String]) -> Vec<u8> {
    pdf_with(objects, "")
}

pub fn pdf_with(objects: &[String], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(bytes.len());
        bytes.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", index + 1).as_bytes());
    }
    let table = bytes.len();
    bytes.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for place in places {
        bytes.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    let end = format!("trailer\n<</Size {}/Root 1 0 R{trailer}>>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

fn stream(dict: &str, data: &str) -> String {
    format!("<<{dict}/Length {}>>\nstream\n{data}\nendstream", data.len())
}

/// A document with one page per program.
pub fn pages(programs: &[&str]) -> Vec<String> {
    let kids: String = (0..programs.len()).map(|n| format!("{} 0 R ", 4 + 2 * n)).collect();
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!("<</Type/Pages/Kids[{kids}]/Count {}/Resources<</Font<</F1 3 0 R>>>>>>", programs.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
    ];
    for (n, program) in programs.iter().enumerate() {
        objects.push(format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {} 0 R>>", 5 + 2 * n));
        objects.push(stream("", program));
    }
    objects
}

fn one(program: &str) -> String {
    text_of("a.pdf", &pdf(&pages(&[program]))).trim_end().to_owned()
}

#[test]
fn pages_are_numbered_and_kept_apart() {
    let bytes =
        pdf(&pages(&["BT /F1 12 Tf 72 700 Td (First page) Tj ET", "", "BT /F1 12 Tf 72 700 Td (Third page) Tj ET"]));
    let pages = Fixture::new("a.pdf", &bytes).pages().unwrap();
    let pages: Vec<(u32, &str)> = pages.iter().map(|(n, text)| (*n, text.trim())).collect();
    assert_eq!(pages, [(0, ""), (1, "First page"), (2, ""), (3, "Third page")]);
    let chunks = Fixture::new("a.pdf", &bytes).chunks("T").unwrap();
    assert_eq!((chunks.len(), chunks[0].page), (1, Some(1)));
    assert!(chunks[0].body.contains('\u{c}'));
}

#[test]
fn operators_that_show_text() {
    assert_eq!(
        one("BT /F1 12 Tf 14 TL 72 700 Td (one) Tj T* (two) Tj (three) ' 2 1 (four) \" ET"),
        "one\ntwo\nthree\nfour"
    );
    assert_eq!(one("BT /F1 12 Tf 72 700 Td [(Wo) 20 (rd) -400 (next)] TJ ET"), "Word next");
    assert_eq!(one("BT /F1 12 Tf 1 0 0 1 72 700 Tm (Gr\\374\\337e \\200) Tj ET"), "Grüße €");
    assert_eq!(one("q 2 0 0 2 0 0 cm BT /F1 12 Tf 36 350 Td <48 69> Tj ET Q"), "Hi");
    assert_eq!(one("BI /W 2 /H 2 ID \x01EI\x02\x03 EI BT /F1 9 Tf 9 9 Td (after picture) Tj ET"), "after picture");
}

#[test]
fn order_follows_the_page_not_the_program() {
    assert_eq!(one("BT /F1 12 Tf 72 100 Td (bottom) Tj ET BT /F1 12 Tf 72 700 Td (top) Tj ET"), "top\n\nbottom");
}

#[test]
fn composite_fonts_with_a_character_map() {
    let mut objects = pages(&["BT /F2 12 Tf 72 700 Td <00010002> Tj ET"]);
    objects[1] = objects[1].replace("/F1 3 0 R", "/F2 6 0 R");
    objects.push(
        "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[7 0 R]/ToUnicode 8 0 R>>".to_owned(),
    );
    objects.push("<</Type/Font/Subtype/CIDFontType2/DW 500/W[1[600 700]]>>".to_owned());
    objects.push(stream(
        "",
        "begincodespacerange <0000> <FFFF> endcodespacerange 2 beginbfchar <0001> <4E16> <0002> <754C> endbfchar",
    ));
    assert_eq!(text_of("a.pdf", &pdf(&objects)).trim_end(), "世界");
}

#[test]
fn differences_and_ligatures() {
    let mut objects = pages(&["BT /F1 12 Tf 72 700 Td (\\001ce \\002) Tj ET"]);
    objects[2] =
        "<</Type/Font/Subtype/Type1/BaseFont/X/FirstChar 1/Widths[800 900]/Encoding<</Differences[1/uni006F/ffi]>>>>"
            .to_owned();
    assert_eq!(text_of("a.pdf", &pdf(&objects)).trim_end(), "oce ffi");
}

#[test]
fn forms_are_followed_but_not_in_circles() {
    let mut objects = pages(&["/X0 Do"]);
    objects[1] = objects[1].replace("/Font<<", "/XObject<</X0 6 0 R>>/Font<<");
    objects.push(stream("/Subtype/Form/Matrix[1 0 0 1 5 5]", "BT /F1 12 Tf 72 700 Td (in a form) Tj ET /X0 Do"));
    assert_eq!(text_of("a.pdf", &pdf(&objects)).trim_end(), "in a form");
}

#[test]
fn packed_streams() {
    let program = b"BT /F1 12 Tf 72 700 Td (packed) Tj ET";
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(program).unwrap();
    let packed = encoder.finish().unwrap();
    let hex: String = packed.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut objects = pages(&[""]);
    objects[4] = stream("/Filter[/ASCIIHexDecode/FlateDecode]", &format!("{hex}>"));
    assert_eq!(text_of("a.pdf", &pdf(&objects)).trim_end(), "packed");
}

#[test]
fn wrong_tables_lengths_and_junk_are_survived() {
    let sound = pdf(&pages(&["BT /F1 12 Tf 72 700 Td (still here) Tj ET"]));
    let text = String::from_utf8_lossy(&sound).into_owned();
    let broken_start = text.replace("startxref\n", "startxref\n9");
    let wrong_length = text.replace("/Length 41", "/Length 9");
    assert_ne!(text, wrong_length);
    let junk = format!("GET / HTTP\r\n\r\n{text}");
    for damaged in [broken_start, wrong_length, junk] {
        assert_eq!(text_of("a.pdf", damaged.as_bytes()).trim_end(), "still here");
    }
}

#[test]
fn no_text_layer_is_empty() {
    let error = refusal_of("scan.pdf", &pdf(&pages(&["q 1 0 0 1 0 0 cm Q"])));
    assert_eq!(error.code, OutcomeCode::Empty);
    assert!(error.message.contains("text layer"));
}

#[test]
fn locked_files_say_so() {
    let bytes = pdf_with(&pages(&["BT ET"]), "/Encrypt<</Filter/Standard/V 2>>");
    let error = refusal_of("a.pdf", &bytes);
    assert_eq!(error.code, OutcomeCode::Malformed);
    assert!(error.message.contains("password"));
}

#[test]
fn anything_else_is_malformed() {
    let sound = pdf(&pages(&["BT /F1 12 Tf 72 700 Td (text) Tj ET"]));
    assert_eq!(code_of("a.pdf", b"MZ\x90\0\x03 this is a program"), OutcomeCode::Malformed);
    assert_eq!(code_of("a.pdf", b"%PDF-1.7\n"), OutcomeCode::Malformed);
    // Cut off anywhere before the table of objects.
    for share in 1..8 {
        let cut = &sound[..sound.len() * share / 11];
        assert_eq!(code_of("a.pdf", cut), OutcomeCode::Malformed, "{share}");
    }
}

#[test]
fn random_damage_never_panics_or_hangs() {
    let mut objects = pages(&["BT /F1 12 Tf 72 700 Td [(te) 3 (xt)] TJ ET /X0 Do"]);
    objects[1] = objects[1].replace("/Font<<", "/XObject<</X0 6 0 R>>/Font<<");
    objects.push(stream("/Subtype/Form", "BT /F1 12 Tf 72 600 Td (form) Tj ET"));
    let sound = pdf(&objects);
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for _ in 0..1500 {
        let mut damaged = sound.clone();
        for _ in 0..1 + random(6) {
            let at = random(damaged.len());
            match random(3) {
                0 => damaged[at] = random(256) as u8,
                1 => {
                    damaged.remove(at);
                }
                _ => damaged.insert(at, b"<>[]()/0 9R"[random(11)]),
            }
        }
        if let Err(error) = Fixture::new("a.pdf", &damaged).text() {
            assert_ne!(error.message, "The file is damaged: its reader gave up on it.", "a reader panicked");
            assert_ne!(error.code, OutcomeCode::IndexerError);
        }
    }
}
