use tale_extract::OutcomeCode;

use crate::{Fixture, code_of, text_of};

fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
    let mark = if big_endian { [0xFE, 0xFF] } else { [0xFF, 0xFE] };
    let units = text.encode_utf16().flat_map(|u| if big_endian { u.to_be_bytes() } else { u.to_le_bytes() });
    mark.into_iter().chain(units).collect()
}

#[test]
fn text_in_every_accepted_encoding() {
    let text = "Grüße, 世界 😀\nzweite Zeile\n";
    assert_eq!(text_of("a.txt", text.as_bytes()), text);
    assert_eq!(text_of("a.md", format!("\u{feff}{text}").as_bytes()), text);
    assert_eq!(text_of("a.log", &utf16(text, false)), text);
    assert_eq!(text_of("a.txt", &utf16(text, true)), text);
    assert_eq!(text_of("alt.csv", b"Stra\xdfe;Gr\xf6\xdfe\nM\xfchlweg;5\n"), "Straße | Größe\nMühlweg | 5\n");
}

#[test]
fn text_longer_than_any_buffer_arrives_whole() {
    let text: String = (0..60_000).map(|n| format!("Zeile {n} mit Umläuten äöü\r\n")).collect();
    assert_eq!(text_of("a.txt", text.as_bytes()), text.replace("\r\n", "\n"));
    assert_eq!(text_of("a.txt", &utf16(&text, false)), text.replace("\r\n", "\n"));
}

#[test]
fn lone_surrogates_become_replacement_characters() {
    let mut bytes = utf16("vor", false);
    bytes.extend_from_slice(&0xD83D_u16.to_le_bytes());
    bytes.extend("nach".encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(text_of("a.txt", &bytes), "vor\u{fffd}nach");
}

#[test]
fn nothing_and_blanks_are_empty() {
    for bytes in [b"".as_slice(), b"  \n\t\r\n ", b"\xef\xbb\xbf", "\u{feff} \n".as_bytes()] {
        assert_eq!(code_of("a.txt", bytes), OutcomeCode::Empty);
    }
    assert_eq!(code_of("a.csv", b"\n\n"), OutcomeCode::Empty);
    assert_eq!(code_of("a.html", b"<html><script>x()</script></html>"), OutcomeCode::Empty);
}

#[test]
fn binary_with_a_text_name_is_not_text() {
    let exe = [b"MZ\x90\0\x03\0\0\0\x04\0".as_slice(), &[0_u8; 512], &[0xCC; 512]].concat();
    for name in ["tool.txt", "tool.md", "tool.csv", "tool.json", "tool.html", "tool.py"] {
        assert_eq!(code_of(name, &exe), OutcomeCode::NotText, "{name}");
    }
    assert_eq!(code_of("a.txt", b"text with \0 inside"), OutcomeCode::NotText);
    // Binary further back than the first look.
    let late = ["text ".repeat(40_000).into_bytes(), vec![0; 100_000]].concat();
    assert_eq!(code_of("a.txt", &late), OutcomeCode::NotText);
    let late = ["text ".repeat(40_000).into_bytes(), vec![0xFE; 100_000]].concat();
    assert_eq!(code_of("a.txt", &late), OutcomeCode::NotText);
}

#[test]
fn names_decide_before_reading() {
    assert_eq!(code_of("a.png", b"whatever"), OutcomeCode::ImageNoVision);
    assert_eq!(code_of("a.doc", b"whatever"), OutcomeCode::UnsupportedType);
    assert_eq!(code_of("notes.loop", b"whatever"), OutcomeCode::UnsupportedType);
}

#[test]
fn credentials_refuse_the_file_without_naming_the_value() {
    let error = crate::refusal_of("a.txt", b"hello\napi_key = \"0f1e2d3c4b5a69788796a5b4c3d2e1f0\"\n");
    assert_eq!(error.code, OutcomeCode::SecretDetected);
    assert!(error.message.contains("password, key or token"));
    assert!(!error.message.contains("0f1e"));
}

#[test]
fn csv_repeats_its_header() {
    let mut csv = String::from("Name,Betrag\r\n");
    for n in 0..500 {
        csv.push_str(&format!("\"Firma, {n}\",{n}.50\r\n"));
    }
    let chunks = Fixture::new("a.csv", csv.as_bytes()).chunks("Rechnungen").unwrap();
    assert!(chunks.len() > 3);
    assert!(chunks.iter().all(|chunk| chunk.body.contains("Name | Betrag")));
    assert!(chunks[1].body.contains("Firma, 100 | 100.50"));
    assert_eq!(chunks[0].header, "Rechnungen");
}

#[test]
fn json_is_broken_into_lines_and_unescaped() {
    let text = text_of("a.json", br#"{"name":"Gr\u00fc\u00dfe","list":[1,2,3]}"#);
    assert_eq!(text, r#"{"name":"Grüße","list":[1,2,3]}"#);
    let deep = "[".repeat(200_000);
    assert!(text_of("deep.json", deep.as_bytes()).len() >= 200_000);
}

#[test]
fn html_keeps_the_main_text() {
    let page = r#"<!doctype html><html><head><title>Urlaub &amp; Reisen</title><style>p{color:red}</style></head>
      <body><header><nav><a href="/">Start</a><ul><li>Menü</li></ul></nav></header>
      <main><h1>Urlaub</h1><p>Dreißig&nbsp;Tage <b>im</b> Jahr.</p>
      <ul><li>Antrag <em>stellen</em></li><li>Warten<ol><li>lange</li></ol></li></ul>
      <table><tr><th>Art</th><th>Tage</th></tr><tr><td>Erholung</td><td>30</td></tr></table>
      <pre>code
  eingerückt</pre><script>var a = "<p>nein</p>";</script>
      <p>a &lt; b &#8364; &#x20AC; &unbekannt; 1 < 2</p></main>
      <footer>Impressum</footer><aside>Werbung</aside></body></html>"#;
    let text = text_of("a.html", page.as_bytes());
    assert_eq!(
        text.trim_end(),
        "# Urlaub\n\nDreißig Tage im Jahr.\n\n- Antrag stellen\n- Warten\n  1. lange\n\nArt | Tage\nErholung | 30\n\n\
         ```\ncode\n  eingerückt\n```\n\na < b € € &unbekannt; 1 < 2"
    );
}

#[test]
fn html_with_a_title_of_its_own_and_without_main() {
    let text = text_of("a.htm", b"<title>Title</title><nav>menu</nav><p>one<p>two<div>three</div>");
    assert_eq!(text.trim_end(), "# Title\n\none\n\ntwo\n\nthree");
    // All of the text is where navigation should be.
    assert_eq!(text_of("a.htm", b"<nav><p>only this</p></nav>").trim_end(), "only this");
    assert_eq!(text_of("a.html", b"<meta charset=shift_jis><p>\x93\xfa\x96\x7b</p>").trim_end(), "日本");
}

#[test]
fn broken_html_is_still_text() {
    let deep = format!("{}x{}", "<div>".repeat(50_000), "<b ".repeat(3));
    assert!(text_of("a.html", deep.as_bytes()).contains('x'));
    assert!(text_of("a.html", b"<p>a<!-- open comment").contains('a'));
    assert!(text_of("a.html", b"<p>a</p><script>never closed").contains('a'));
}

#[test]
fn markdown_chunks_carry_their_headings() {
    let text = format!("# Buch\n\n## Kapitel\n\n{}\n\n## Zweites\n\nEnde.\n", "Satz um Satz. ".repeat(300));
    let chunks = Fixture::new("a.md", text.as_bytes()).chunks("Titel").unwrap();
    assert_eq!(chunks[0].header, "Titel › Buch › Kapitel");
    let joined: String = chunks.iter().map(|chunk| chunk.core.as_str()).collect();
    assert_eq!(joined, text);
}
