use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;

use tale_extract::{Kind, OutcomeCode, extract, extract_to_chunks};

use crate::{Fixture, Zip, code_of, refusal_of};

fn document(body: &str) -> Vec<u8> {
    Zip::of(&[("word/document.xml", body)])
}

#[test]
fn a_zip_bomb_is_refused() {
    let mut zip = Zip::new(Vec::new());
    zip.level = flate2::Compression::best();
    zip.part("word/document.xml", |to| {
        to.write_all(b"<d><p><t>").unwrap();
        let blanks = vec![b' '; 1024 * 1024];
        for _ in 0..48 {
            to.write_all(&blanks).unwrap();
            to.write_all(b"</t></p><p><t>").unwrap();
        }
        to.write_all(b"</t></p></d>").unwrap();
    });
    let bytes = zip.finish();
    assert!(bytes.len() < 100 * 1024);
    let error = refusal_of("a.docx", &bytes);
    assert_eq!(error.code, OutcomeCode::Malformed);
    assert!(error.message.contains("bomb"), "{}", error.message);
}

#[test]
fn one_endless_text_is_refused() {
    let mut zip = Zip::new(Vec::new());
    zip.part("word/document.xml", |to| {
        to.write_all(b"<d><p><t>").unwrap();
        // Barely packable, so that only the length of the piece speaks against it.
        let mut seed = 1_u32;
        for _ in 0..40 * 64 {
            let noise: Vec<u8> = (0..16 * 1024)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b'a' + (seed >> 24) as u8 % 26
                })
                .collect();
            to.write_all(&noise).unwrap();
        }
    });
    let error = refusal_of("a.docx", &zip.finish());
    assert_eq!(error.code, OutcomeCode::Malformed);
    assert!(error.message.contains("single piece"), "{}", error.message);
}

#[test]
fn entity_expansion_is_refused() {
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE d [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;\">]>\
                <d><p><r><t>&c;</t></r></p></d>";
    let error = refusal_of("a.docx", &document(bomb));
    assert_eq!(error.code, OutcomeCode::Malformed);
    assert!(error.message.contains("entities"));
    // As a text file the same bytes are just text.
    assert!(crate::text_of("a.xml", bomb.as_bytes()).contains("&c;"));
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("<d>{}", "<p>".repeat(100_000));
    assert_eq!(code_of("a.docx", &document(&deep)), OutcomeCode::Malformed);
}

#[test]
fn broken_packages_are_malformed() {
    let sound = document("<d><p><r><t>text</t></r></p></d>");
    assert!(Fixture::new("a.docx", &sound).text().is_ok());
    for cut in [4, 30, sound.len() / 2, sound.len() - 5] {
        assert_eq!(code_of("a.docx", &sound[..cut]), OutcomeCode::Malformed, "{cut}");
    }
    assert_eq!(code_of("a.docx", &document("<d><p><r><t>text</t>")), OutcomeCode::Malformed);
    assert_eq!(code_of("a.docx", &document("<d><p></wrong></d>")), OutcomeCode::Malformed);
    assert_eq!(code_of("a.docx", &document("no xml at all")), OutcomeCode::Empty);
    assert_eq!(code_of("a.docx", &Zip::of(&[("other.txt", "x")])), OutcomeCode::Malformed);
    assert_eq!(code_of("a.xlsx", &Zip::of(&[])), OutcomeCode::Malformed);
    assert_eq!(code_of("a.pptx", b"%PDF-1.4 not a presentation"), OutcomeCode::Malformed);
    assert_eq!(code_of("a.odt", b""), OutcomeCode::Empty);
    // A flipped bit in the packed data.
    for at in 45..80 {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x55;
        if let Err(error) = Fixture::new("a.docx", &damaged).text() {
            assert_eq!(error.code, OutcomeCode::Malformed);
        }
    }
}

#[test]
fn a_sheet_with_a_million_cells_streams() {
    let fixture = Fixture::empty("big.xlsx");
    let mut zip = Zip::new(BufWriter::new(File::create(fixture.path()).unwrap()));
    zip.part("xl/workbook.xml", |to| {
        to.write_all(b"<workbook xmlns:r=\"r\"><sheets><sheet name=\"S\" r:id=\"r1\"/></sheets></workbook>").unwrap();
    });
    zip.part("xl/_rels/workbook.xml.rels", |to| {
        to.write_all(b"<R><Relationship Id=\"r1\" Type=\"x/worksheet\" Target=\"s.xml\"/></R>").unwrap();
    });
    zip.part("xl/s.xml", |to| {
        to.write_all(b"<worksheet><sheetData>").unwrap();
        for row in 1..=50_000 {
            write!(to, "<row r=\"{row}\">").unwrap();
            for column in b'A'..=b'T' {
                write!(to, "<c r=\"{}{row}\"><v>{}</v></c>", column as char, row * u32::from(column) % 9_973).unwrap();
            }
            to.write_all(b"</row>").unwrap();
        }
        to.write_all(b"</sheetData></worksheet>").unwrap();
    });
    zip.finish().flush().unwrap();
    let mut cells = 0;
    let length = extract_to_chunks(&fixture.path(), Kind::Xlsx, "T", &|| true, &mut |chunk| {
        cells += chunk.core.matches(" | ").count();
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(cells >= 50_000 * 19);
    assert!(length > 3_000_000);
}

#[test]
fn the_deadline_ends_it() {
    let fixture = Fixture::new("a.txt", "many words ".repeat(500_000).as_bytes());
    let asked = Cell::new(0);
    let error = extract(
        &fixture.path(),
        Kind::Plain,
        &|| {
            asked.set(asked.get() + 1);
            asked.get() < 5
        },
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap_err();
    assert_eq!(error.code, OutcomeCode::IndexerError);
    assert!(error.code.is_transient());
}

#[test]
fn the_consumer_ends_it() {
    let fixture = Fixture::new("a.txt", "many words ".repeat(500_000).as_bytes());
    let mut pieces = 0;
    let outcome = extract(&fixture.path(), Kind::Plain, &|| true, &mut |_| {
        pieces += 1;
        ControlFlow::Break(())
    });
    assert_eq!((outcome, pieces), (Ok(()), 1));
    let mut chunks = 0;
    let outcome = extract_to_chunks(&fixture.path(), Kind::Plain, "T", &|| true, &mut |_| {
        chunks += 1;
        ControlFlow::Break(())
    });
    assert!(outcome.is_ok());
    assert_eq!(chunks, 1);
}

#[test]
fn a_missing_file_is_transient() {
    let outcome =
        extract(std::path::Path::new("/nowhere/at/all"), Kind::Pdf, &|| true, &mut |_| ControlFlow::Continue(()));
    assert_eq!(outcome.unwrap_err().code, OutcomeCode::IndexerError);
}
