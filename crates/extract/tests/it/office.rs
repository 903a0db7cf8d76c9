use crate::{Fixture, Zip, text_of};

const W: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";

fn rels(entries: &[(&str, &str, &str)]) -> String {
    let entries: String = entries
        .iter()
        .map(|(id, kind, target)| {
            format!("<Relationship Id=\"{id}\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}\" Target=\"{target}\"/>")
        })
        .collect();
    format!("<?xml version=\"1.0\"?><Relationships>{entries}</Relationships>")
}

#[test]
fn word_headings_lists_tables_and_footnotes() {
    let paragraph = |style: &str, text: &str| {
        format!("<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
    };
    let item = |list: u32, level: u32, text: &str| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let cell = |text: &str| format!("<w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>");
    let body = [
        paragraph("Titel", "Handbuch"),
        paragraph("berschrift2", "Urlaub &amp; Reisen"),
        "<w:p><w:r><w:t xml:space=\"preserve\">Dreißig </w:t></w:r><w:del><w:r><w:delText>alte</w:delText></w:r></w:del>\
         <w:r><w:t>Tage</w:t><w:footnoteReference w:id=\"2\"/><w:tab/><w:t>Ende</w:t></w:r></w:p>"
            .to_owned(),
        item(1, 0, "Punkt"),
        item(1, 1, "Unterpunkt"),
        item(2, 0, "Erstens"),
        item(2, 0, "Zweitens"),
        format!("<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl>", cell("Art"), cell("Tage"), cell("Erholung"), cell("30")),
        "<mc:AlternateContent><mc:Choice><w:p><w:r><w:t>Kasten</w:t></w:r></w:p></mc:Choice>\
         <mc:Fallback><w:p><w:r><w:t>Kasten</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>"
            .to_owned(),
    ]
    .concat();
    let bytes = Zip::of(&[
        ("_rels/.rels", &rels(&[("r1", "officeDocument", "word/document.xml")])),
        (
            "word/_rels/document.xml.rels",
            &rels(&[
                ("r1", "styles", "styles.xml"),
                ("r2", "numbering", "numbering.xml"),
                ("r3", "footnotes", "footnotes.xml"),
            ]),
        ),
        ("word/document.xml", &format!("<?xml version=\"1.0\"?><w:document {W}><w:body>{body}</w:body></w:document>")),
        (
            "word/styles.xml",
            &format!(
                "<w:styles {W}><w:style w:type=\"paragraph\" w:styleId=\"Titel\"><w:name w:val=\"Title\"/></w:style>\
                 <w:style w:type=\"paragraph\" w:styleId=\"h2\"><w:name w:val=\"heading 2\"/></w:style>\
                 <w:style w:type=\"paragraph\" w:styleId=\"berschrift2\"><w:name w:val=\"eigene\"/><w:basedOn w:val=\"h2\"/></w:style></w:styles>"
            ),
        ),
        (
            "word/numbering.xml",
            &format!(
                "<w:numbering {W}><w:abstractNum w:abstractNumId=\"7\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"bullet\"/></w:lvl></w:abstractNum>\
                 <w:abstractNum w:abstractNumId=\"8\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"decimal\"/></w:lvl></w:abstractNum>\
                 <w:num w:numId=\"1\"><w:abstractNumId w:val=\"7\"/></w:num><w:num w:numId=\"2\"><w:abstractNumId w:val=\"8\"/></w:num></w:numbering>"
            ),
        ),
        (
            "word/footnotes.xml",
            &format!(
                "<w:footnotes {W}><w:footnote w:type=\"separator\" w:id=\"0\"><w:p/></w:footnote>\
                 <w:footnote w:id=\"2\"><w:p><w:r><w:t>laut Vertrag</w:t></w:r></w:p></w:footnote></w:footnotes>"
            ),
        ),
    ]);
    assert_eq!(
        text_of("a.docx", &bytes).trim_end(),
        "# Handbuch\n\n## Urlaub & Reisen\n\nDreißig Tage[^2]\tEnde\n\n- Punkt\n  - Unterpunkt\n1. Erstens\n2. Zweitens\n\n\
         Art | Tage\nErholung | 30\n\nKasten\n\n[^2]: laut Vertrag"
    );
    let chunks = Fixture::new("a.docx", &bytes).chunks("Datei").unwrap();
    assert_eq!(chunks[0].header, "Datei › Handbuch › Urlaub & Reisen");
}

#[test]
fn sheets_with_dates_gaps_and_repeated_headers() {
    let mut rows = String::from(
        "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\" t=\"inlineStr\"><is><t>Datum</t></is></c></row>",
    );
    for n in 2..300 {
        rows.push_str(&format!(
            "<row r=\"{n}\"><c r=\"A{n}\" t=\"s\"><v>1</v></c><c r=\"B{n}\"><v>{n}.5</v></c><c r=\"C{n}\" s=\"1\"><v>45292</v></c>\
             <c r=\"D{n}\" t=\"b\"><v>1</v></c><c r=\"E{n}\"><f>A1+1</f><v>7</v></c></row>"
        ));
    }
    let bytes = Zip::of(&[
        ("_rels/.rels", &rels(&[("r1", "officeDocument", "xl/workbook.xml")])),
        (
            "xl/workbook.xml",
            "<workbook xmlns:r=\"r\"><sheets><sheet name=\"Umsatz &amp; mehr\" sheetId=\"1\" r:id=\"rId1\"/>\
             <sheet name=\"Leer\" sheetId=\"2\" r:id=\"rId2\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            &rels(&[
                ("rId1", "worksheet", "worksheets/sheet1.xml"),
                ("rId2", "worksheet", "/xl/worksheets/sheet2.xml"),
                ("rId3", "sharedStrings", "sharedStrings.xml"),
                ("rId4", "styles", "styles.xml"),
            ]),
        ),
        ("xl/worksheets/sheet1.xml", &format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")),
        ("xl/worksheets/sheet2.xml", "<worksheet><sheetData/></worksheet>"),
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>Kunde</t></si><si><r><t>Müller </t></r><r><t>GmbH</t></r><rPh><t>ruby</t></rPh></si></sst>",
        ),
        (
            "xl/styles.xml",
            "<styleSheet><numFmts><numFmt numFmtId=\"170\" formatCode=\"dd/mm/yyyy\"/></numFmts>\
             <cellStyleXfs><xf numFmtId=\"14\"/></cellStyleXfs><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"170\"/></cellXfs></styleSheet>",
        ),
    ]);
    let text = text_of("a.xlsx", &bytes);
    assert!(text.starts_with(
        "## Umsatz & mehr\n\nKunde |  | Datum\nMüller GmbH | 2.5 | 2024-01-01 | TRUE | 7\nMüller GmbH | 3.5"
    ));
    assert!(text.matches("\n\nKunde |  | Datum\n").count() > 5);
    assert!(!text.contains("Leer") && !text.contains("A1+1") && !text.contains("ruby"));
}

#[test]
fn slides_with_titles_notes_and_tables() {
    let slide = |title: &str, body: &str| {
        format!(
            "<p:sld xmlns:p=\"p\" xmlns:a=\"a\"><p:cSld><p:spTree>\
             <p:sp><p:nvSpPr><p:nvPr><p:ph type=\"title\"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:txBody></p:sp>\
             <p:sp><p:nvSpPr><p:nvPr><p:ph idx=\"1\"/></p:nvPr></p:nvSpPr><p:txBody>{body}</p:txBody></p:sp>\
             <p:sp><p:nvSpPr><p:nvPr><p:ph type=\"sldNum\"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>99</a:t></a:r></a:p></p:txBody></p:sp>\
             <p:graphicFrame><a:graphic><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></a:txBody></a:tc>\
             <a:tc><a:txBody><a:p><a:r><a:t>y</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></a:graphic></p:graphicFrame>\
             </p:spTree></p:cSld></p:sld>"
        )
    };
    let notes = "<p:notes xmlns:p=\"p\" xmlns:a=\"a\"><p:sp><p:nvPr><p:ph type=\"sldImg\"/></p:nvPr></p:sp>\
         <p:sp><p:nvPr><p:ph type=\"body\"/></p:nvPr><p:txBody><a:p><a:r><a:t>Langsam sprechen</a:t></a:r></a:p></p:txBody></p:sp></p:notes>";
    let bytes = Zip::of(&[
        ("_rels/.rels", &rels(&[("r1", "officeDocument", "ppt/presentation.xml")])),
        (
            "ppt/presentation.xml",
            "<p:presentation xmlns:p=\"p\" xmlns:r=\"r\"><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId2\"/><p:sldId id=\"257\" r:id=\"rId1\"/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            &rels(&[("rId1", "slide", "slides/slide1.xml"), ("rId2", "slide", "slides/slide2.xml")]),
        ),
        ("ppt/slides/slide1.xml", &slide("Zweite", "<a:p><a:r><a:t>Text</a:t></a:r></a:p>")),
        (
            "ppt/slides/slide2.xml",
            &slide(
                "Erste",
                "<a:p><a:r><a:t>Eins</a:t></a:r></a:p><a:p><a:pPr lvl=\"1\"/><a:r><a:t>tiefer</a:t></a:r></a:p>",
            ),
        ),
        ("ppt/slides/_rels/slide2.xml.rels", &rels(&[("rId1", "notesSlide", "../notesSlides/notesSlide1.xml")])),
        ("ppt/notesSlides/notesSlide1.xml", notes),
    ]);
    let pages = Fixture::new("a.pptx", &bytes).pages().unwrap();
    assert_eq!(pages[1].0, 1);
    assert_eq!(
        pages[1].1.trim_matches(['\n', '\u{c}']),
        "## Slide 1: Erste\n\nEins\n- tiefer\n\nx | y\n\nNotes:\n\nLangsam sprechen"
    );
    assert_eq!((pages[2].0, pages[2].1.trim()), (2, "## Slide 2: Zweite\n\nText\n\nx | y"));
}

#[test]
fn open_document_text() {
    let content = "<office:document-content xmlns:office=\"o\" xmlns:text=\"t\" xmlns:table=\"b\">\
        <office:automatic-styles><style>nein</style></office:automatic-styles><office:body><office:text>\
        <text:tracked-changes><text:p>gelöscht</text:p></text:tracked-changes>\
        <text:h text:outline-level=\"2\">Kapitel</text:h>\
        <text:p>Ein<text:s text:c=\"2\"/>Satz<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Fußnote</text:p></text:note-body></text:note> hier.</text:p>\
        <text:list><text:list-item><text:p>eins</text:p><text:list><text:list-item><text:p>tief</text:p></text:list-item></text:list></text:list-item>\
        <text:list-item><text:p>zwei</text:p></text:list-item></text:list>\
        <table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>\
        </office:text></office:body></office:document-content>";
    let bytes = Zip::of(&[("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", content)]);
    assert_eq!(
        text_of("a.odt", &bytes).trim_end(),
        "## Kapitel\n\nEin  Satz[^1] hier.\n\n- eins\n  - tief\n- zwei\n\na | b\n\n[^1]: Fußnote"
    );
}

#[test]
fn a_locked_open_document_says_so() {
    let manifest = "<manifest:manifest xmlns:manifest=\"m\"><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    let bytes = Zip::of(&[("META-INF/manifest.xml", manifest), ("content.xml", "noise")]);
    let error = crate::refusal_of("a.odt", &bytes);
    assert_eq!(error.code, tale_extract::OutcomeCode::Malformed);
    assert!(error.message.contains("password"));
}
