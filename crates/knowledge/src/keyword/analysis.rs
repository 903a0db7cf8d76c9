//! From text to words: the same for passages and for queries.
//!
//! A word is a run of letters and digits; connectors (`-`, `_`, `.`, `/`, `:`, `@`) may stand inside.
//! What looks like an identifier or a compound (`AB-1234`, `camelCase`, `user@example.com`, `1.234,56`)
//! yields its parts and, joined without the connectors, the whole, so that it is found however it is
//! spelled. Folding takes case, accents and typographic variants away (`ä` and `ae`, `ß` and `ss`,
//! ligatures). Scripts without spaces yield overlapping pairs of characters.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Longest token in bytes; a longer one is cut the same way on both sides.
const MAX_TOKEN_BYTES: usize = 64;
/// More parts than this and the run is data (a path, a hash), not a name: no whole.
const MAX_PARTS_OF_A_WHOLE: usize = 8;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its parts in order; a plain word has one.
    pub(crate) parts: Vec<Part>,
    /// All parts joined and folded, when there are several.
    pub(crate) whole: Option<String>,
    /// Whether it looks like an identifier (digits, underscores, dots, inner capitals) and not like
    /// hyphenated prose.
    pub(crate) identifier: bool,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Lower case with its accents, for stemming.
    pub(crate) lower: String,
    /// Without case, accents and typographic variants.
    pub(crate) folded: String,
}

/// A word on its way by. Most words of most texts are plain, and those cost no allocation.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// Lower-case ASCII letters: its own folded form, without parts.
    Plain(&'a str),
    /// Anything else.
    Other(Word),
}

/// Calls `each` with the words of `text` in order.
pub(crate) fn words(text: &str, mut each: impl FnMut(Seen<'_>)) {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        scan(text, &mut each);
    } else {
        let normal: String = text.nfkc().collect();
        scan(&normal, &mut each);
    }
}

/// The words of `text` as a list.
pub(crate) fn words_of(text: &str) -> Vec<Word> {
    let mut list = Vec::new();
    words(text, |word| {
        list.push(match word {
            Seen::Plain(word) => Word {
                parts: vec![Part { lower: word.to_owned(), folded: word.to_owned() }],
                whole: None,
                identifier: false,
            },
            Seen::Other(word) => word,
        });
    });
    list
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    /// Written without spaces between words.
    Dense,
    Connector,
    Other,
}

#[inline]
fn kind(c: char) -> Kind {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Kind::Letter,
            '0'..='9' => Kind::Digit,
            '-' | '_' | '.' | '/' | ':' | '@' | ',' | '\'' | '&' => Kind::Connector,
            _ => Kind::Other,
        };
    }
    match c {
        '\u{2010}' | '\u{2011}' | '\u{2019}' => Kind::Connector,
        '\u{00ad}' => Kind::Letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
            if c.is_alphanumeric() || is_combining_mark(c) =>
        {
            Kind::Dense
        }
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Dense,
        c if c.is_numeric() => Kind::Digit,
        c if c.is_alphabetic() || is_combining_mark(c) => Kind::Letter,
        _ => Kind::Other,
    }
}

/// The word of lower-case ASCII letters, perhaps with a capital first, that begins at `start`, by its
/// end; `None` when it may go on in another way.
fn plain_end(bytes: &[u8], start: usize) -> Option<usize> {
    if !bytes[start].is_ascii_alphabetic() {
        return None;
    }
    let length = bytes[start + 1..].iter().position(|byte| !byte.is_ascii_lowercase());
    let end = length.map_or(bytes.len(), |length| start + 1 + length);
    let is_end = |at: usize| {
        bytes
            .get(at)
            .is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'#'))
    };
    let connected = bytes.get(end).is_some_and(|byte| kind(char::from(*byte)) == Kind::Connector);
    // a connector ends the word unless a letter or digit follows it
    (end - start <= MAX_TOKEN_BYTES && is_end(end) && (!connected || is_end(end + 1))).then_some(end)
}

fn scan(text: &str, each: &mut impl FnMut(Seen<'_>)) {
    let mut lower = String::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
            at += 1;
        } else if let Some(end) = plain_end(bytes, at) {
            plain(&text[at..end], &mut lower, each);
            at = end;
        } else {
            at += scan_one(&text[at..], &mut lower, each);
        }
    }
}

/// Hands over the word, or the run of dense characters, with which `text` begins; by how many bytes
/// the text is read.
fn scan_one(text: &str, lower: &mut String, each: &mut impl FnMut(Seen<'_>)) -> usize {
    let mut chars = text.char_indices().peekable();
    if let Some(&(start, c)) = chars.peek() {
        match kind(c) {
            Kind::Dense => {
                let mut run = Vec::new();
                while let Some(&(_, c)) = chars.peek() {
                    if kind(c) != Kind::Dense {
                        break;
                    }
                    run.push(c);
                    chars.next();
                }
                pairs(&run, each);
            }
            Kind::Letter | Kind::Digit => {
                let mut end = start;
                let mut last = Kind::Other;
                while let Some(&(at, c)) = chars.peek() {
                    let now = kind(c);
                    match now {
                        Kind::Letter | Kind::Digit => {}
                        // one connector, and only between two letters or digits
                        Kind::Connector if last != Kind::Connector => {}
                        _ => break,
                    }
                    if now != Kind::Connector {
                        end = at + c.len_utf8();
                    }
                    last = now;
                    chars.next();
                }
                // C++, C#, F#
                let suffix = if text[end..].starts_with("++") {
                    "++"
                } else if text[end..].starts_with('#') {
                    "#"
                } else {
                    ""
                };
                emit(&text[start..end], suffix, lower, each);
            }
            Kind::Connector | Kind::Other => {
                chars.next();
            }
        }
    }
    chars.peek().map_or(text.len(), |(at, _)| *at)
}

/// Hands over a word of ASCII letters of which only the first may be a capital.
fn plain(word: &str, lower: &mut String, each: &mut impl FnMut(Seen<'_>)) {
    if word.as_bytes()[0].is_ascii_lowercase() {
        each(Seen::Plain(word));
    } else {
        lower.clear();
        lower.push_str(word);
        lower.make_ascii_lowercase();
        each(Seen::Plain(lower));
    }
}

fn pairs(run: &[char], each: &mut impl FnMut(Seen<'_>)) {
    let mut one = |chars: &[char]| {
        let text: String = chars.iter().collect();
        each(Seen::Other(Word {
            parts: vec![Part { lower: text.clone(), folded: text }],
            whole: None,
            identifier: false,
        }));
    };
    if run.len() < 2 {
        one(run);
    } else {
        run.windows(2).for_each(&mut one);
    }
}

fn emit(run: &str, suffix: &str, lower: &mut String, each: &mut impl FnMut(Seen<'_>)) {
    // the usual word: lower-case ASCII letters, perhaps with a capital first
    let bytes = run.as_bytes();
    let usual = suffix.is_empty() && bytes[0].is_ascii_alphabetic() && bytes[1..].iter().all(u8::is_ascii_lowercase);
    if usual && run.len() <= MAX_TOKEN_BYTES {
        return plain(run, lower, each);
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut identifier = !suffix.is_empty();
    identifier |= run.contains(['_', '.', '/', ':', '@']);
    for piece in run.split(|c| kind(c) == Kind::Connector) {
        split_humps(piece, |part, hump| {
            identifier |= hump;
            push_part(&mut parts, part);
        });
    }
    // elided articles and possessives: l'accord, company's
    if parts.len() == 2 && run.contains(['\'', '\u{2019}']) {
        if parts[1].folded.len() <= 2 {
            parts.truncate(1);
        } else if parts[0].folded.len() <= 2 {
            parts.remove(0);
        }
    }
    if parts.is_empty() {
        return;
    }
    let plain_number = parts.iter().all(|part| part.folded.bytes().all(|byte| byte.is_ascii_digit()));
    identifier |= parts.iter().any(|part| part.folded.bytes().any(|byte| byte.is_ascii_digit()));
    let mut whole = (parts.len() > 1 && parts.len() <= MAX_PARTS_OF_A_WHOLE || !suffix.is_empty()).then(|| {
        let mut whole = String::new();
        for part in &parts {
            whole.push_str(&part.folded);
        }
        whole.push_str(suffix);
        whole
    });
    if whole.as_ref().is_some_and(|whole| whole.len() > MAX_TOKEN_BYTES) {
        whole = None;
    }
    if plain_number && parts.len() == 1 {
        identifier = true;
    }
    each(Seen::Other(Word { parts, whole, identifier }));
}

/// Splits at inner capitals and at borders of letters and digits. The flag says that the border is
/// one of an identifier.
fn split_humps(piece: &str, mut each: impl FnMut(&str, bool)) {
    let mut start = 0;
    let mut before = None::<char>;
    let mut chars = piece.char_indices().peekable();
    let mut humps = 0;
    while let Some((at, c)) = chars.next() {
        if let Some(prev) = before {
            let next_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let border = (kind(prev) == Kind::Digit) != (kind(c) == Kind::Digit)
                || (prev.is_lowercase() && c.is_uppercase())
                || (prev.is_uppercase() && c.is_uppercase() && next_lower);
            if border && !is_combining_mark(c) {
                each(&piece[start..at], true);
                start = at;
                humps += 1;
            }
        }
        before = Some(c);
    }
    each(&piece[start..], humps > 0);
}

fn push_part(parts: &mut Vec<Part>, piece: &str) {
    let mut lower = piece.to_lowercase();
    if lower.contains('\u{00ad}') {
        lower.retain(|c| c != '\u{00ad}');
    }
    cut(&mut lower);
    let mut folded = fold(&lower);
    cut(&mut folded);
    if !folded.is_empty() {
        parts.push(Part { lower, folded });
    }
}

fn cut(token: &mut String) {
    if token.len() > MAX_TOKEN_BYTES {
        let mut end = MAX_TOKEN_BYTES;
        while !token.is_char_boundary(end) {
            end -= 1;
        }
        token.truncate(end);
    }
}

/// Takes accents and typographic variants from a lower-case word.
pub(crate) fn fold(lower: &str) -> String {
    let mut out = String::with_capacity(lower.len() + 2);
    for c in lower.chars() {
        match c {
            '\0'..='\u{7f}' => out.push(c),
            'ä' | 'æ' => out.push_str("ae"),
            'ö' | 'œ' | 'ø' => out.push_str("oe"),
            'ü' => out.push_str("ue"),
            'ß' => out.push_str("ss"),
            'þ' => out.push_str("th"),
            'ð' | 'đ' => out.push('d'),
            'ł' => out.push('l'),
            'ı' => out.push('i'),
            // Latin and Greek letters with marks; other scripts mean different letters by them
            '\u{80}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => decompose_canonical(c, |part| {
                if !is_combining_mark(part) {
                    out.push(part);
                }
            }),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Vec<String> {
        words_of(text)
            .into_iter()
            .map(|word| {
                let parts = word.parts.iter().map(|part| part.folded.as_str()).collect::<Vec<_>>().join("+");
                match word.whole {
                    Some(whole) => format!("{parts}={whole}"),
                    None => parts,
                }
            })
            .collect()
    }

    #[test]
    fn plain_words_are_folded() {
        assert_eq!(shape("Über die Straße, naïve Ärzte!"), ["ueber", "die", "strasse", "naive", "aerzte"]);
        assert_eq!(shape("Ueber die Strasse"), ["ueber", "die", "strasse"]);
        assert_eq!(shape("ﬁnance ofﬁce"), ["finance", "office"]);
        assert_eq!(shape("Ver\u{ad}trag"), ["vertrag"]);
        assert_eq!(shape("U\u{308}ber"), ["ueber"]);
    }

    #[test]
    fn identifiers_yield_parts_and_the_whole() {
        assert_eq!(shape("AB-1234"), ["ab+1234=ab1234"]);
        assert_eq!(shape("AB1234"), ["ab+1234=ab1234"]);
        assert_eq!(shape("getUserName"), ["get+user+name=getusername"]);
        assert_eq!(shape("HTTPServer"), ["http+server=httpserver"]);
        assert_eq!(shape("max_retry_count"), ["max+retry+count=maxretrycount"]);
        assert_eq!(shape("ada@example.com."), ["ada+example+com=adaexamplecom"]);
        assert_eq!(shape("1.234,56 EUR"), ["1+234+56=123456", "eur"]);
        assert_eq!(shape("C++ and C#"), ["c=c++", "and", "c=c#"]);
        assert_eq!(shape("E-Mail"), ["e+mail=email"]);
    }

    #[test]
    fn apostrophes_do_not_make_words() {
        assert_eq!(shape("l'accord company’s"), ["accord", "company"]);
        assert_eq!(shape("the end. Next - one"), ["the", "end", "next", "one"]);
    }

    #[test]
    fn scripts_without_spaces_yield_pairs() {
        assert_eq!(shape("終止契約"), ["終止", "止契", "契約"]);
        assert_eq!(shape("税"), ["税"]);
    }

    #[test]
    fn hostile_text_yields_bounded_tokens() {
        let long = "x".repeat(100_000);
        assert_eq!(words_of(&long)[0].parts[0].folded.len(), MAX_TOKEN_BYTES);
        assert!(words_of("\u{0}\u{feff}… --- '' \u{301}").iter().all(|word| !word.parts.is_empty()));
        assert!(words_of("").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn the_short_way_to_plain_words_leads_where_the_long_one_does(text in "[a-cA-C0-2 .,'#+@äß\u{301}漢-]{0,40}") {
            let mut slowly = Vec::new();
            let (mut at, mut lower) = (0, String::new());
            while at < text.len() {
                at += scan_one(&text[at..], &mut lower, &mut |word| slowly.push(format!("{word:?}")));
            }
            let mut quickly = Vec::new();
            scan(&text, &mut |word| quickly.push(format!("{word:?}")));
            assert_eq!(quickly, slowly);
        }

        #[test]
        fn any_text_is_split_without_empty_or_long_tokens(text in "\\PC{0,200}") {
            for word in words_of(&text) {
                assert!(!word.parts.is_empty());
                for part in &word.parts {
                    assert!(!part.folded.is_empty() && part.folded.len() <= MAX_TOKEN_BYTES);
                }
            }
        }
    }
}
