//! Takes a key out of a provider's words, in whatever form the provider wrote it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use url::Url;

/// What stands where the key was.
const MARK: &str = "•••";
/// Part of a key that gives enough of it away to be taken out by itself: a provider may cut its words short.
const PIECE: usize = 16;

/// `message` without `key`: as it is, with escapes of URLs or JSON, broken by white space, in hexadecimal or in
/// base64 (alone or behind a name, as in `Basic` credentials), whatever the case, and without long parts of it.
pub(super) fn without_key(message: &str, key: &str) -> String {
    let key = key.trim();
    if key.is_empty() {
        return message.to_owned();
    }
    let mut found = Vec::new();
    let heard = heard(message);
    let said: Vec<u8> = heard.iter().map(|heard| heard.byte).collect();
    let forms = std::iter::once(key.as_bytes().to_vec()).chain(encoded(key.as_bytes()));
    for form in forms {
        let form: Vec<u8> = form.iter().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| folded(*byte)).collect();
        let size = form.len().min(PIECE);
        let pieces: HashSet<&[u8]> = form.windows(size.max(1)).collect();
        for (at, window) in said.windows(size.max(1)).enumerate() {
            if pieces.contains(window) {
                let end = message.ceil_char_boundary(heard[at + size - 1].end);
                found.push((message.floor_char_boundary(heard[at].start), end));
            }
        }
    }
    found.sort_unstable();
    let (mut out, mut done) = (String::with_capacity(message.len()), 0);
    for (start, end) in found {
        if start > done || (start == done && !out.ends_with(MARK)) {
            out.push_str(&message[done..start]);
            out.push_str(MARK);
        }
        done = done.max(end);
    }
    out.push_str(&message[done..]);
    out
}

/// `message` without words that name the host of `base`: a provider that repeats where it was called would give an
/// address of the inside away.
pub(super) fn without_address(message: &str, base: &Url) -> String {
    let Some(host) = base.host_str() else { return message.to_owned() };
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let mut out = String::with_capacity(message.len());
    for word in
        message.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | ','))
    {
        let end =
            word.chars().next_back().filter(|c| c.is_whitespace() || "\"'<>(),".contains(*c)).map_or(0, char::len_utf8);
        let (text, end) = word.split_at(word.len() - end);
        out.push_str(if text.to_ascii_lowercase().contains(&host) { MARK } else { text });
        out.push_str(end);
    }
    out
}

/// A byte that was meant, and where its writing stands in the message.
struct Heard {
    byte: u8,
    start: usize,
    end: usize,
}

/// Without regard to case, and to which of the two alphabets of base64 was used.
fn folded(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => byte.to_ascii_lowercase(),
    }
}

/// What is meant by a message: escapes are read, white space and quoting are left out.
fn heard(message: &str) -> Vec<Heard> {
    let bytes = message.as_bytes();
    let hex = |from: usize, digits: usize| {
        let text = message.get(from..from + digits)?;
        u8::try_from(u32::from_str_radix(text, 16).ok()?).ok()
    };
    let mut heard = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied();
        let (byte, width) = match (bytes[at], next) {
            (b'%', _) if hex(at + 1, 2).is_some() => (hex(at + 1, 2), 3),
            (b'\\', Some(b'u')) if hex(at + 2, 4).is_some() => (hex(at + 2, 4), 6),
            (b'\\', Some(b'x')) if hex(at + 2, 2).is_some() => (hex(at + 2, 2), 4),
            (b'\\', _) => (None, 1),
            (byte, _) if byte.is_ascii_whitespace() || byte.is_ascii_control() => (None, 1),
            (byte, _) => (Some(byte), 1),
        };
        if let Some(byte) = byte {
            heard.push(Heard { byte: folded(byte), start: at, end: at + width });
        }
        at += width;
    }
    heard
}

/// The key in hexadecimal, and the part of its base64 that is the same whatever stands around it, for each of the
/// three places that it can begin at.
fn encoded(key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let base64 = (0..3).map(|before| {
        let mut text = vec![0; before];
        text.extend_from_slice(key);
        let bits = text.len() * 8;
        // The first and the last letter may hold bits of something else.
        let letters = STANDARD_NO_PAD.encode(&text).into_bytes();
        letters[(before * 8).div_ceil(6)..bits / 6].to_vec()
    });
    // A few letters are everywhere.
    std::iter::once(hex.into_bytes()).chain(base64.collect::<Vec<_>>()).filter(|form| form.len() >= 8)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::*;

    const KEY: &str = "sk-live/A1b2C3d4+E5f6G7h8==";

    fn clean(message: &str) -> String {
        without_key(message, KEY)
    }

    #[test]
    fn the_key_is_taken_out_however_it_is_written() {
        let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let partly = KEY.replace('/', "%2f").replace('+', "%2B").replace('=', "%3D");
        let unicode: String = KEY.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
        let split = format!("{}\\n {}", &KEY[..9], &KEY[9..]);
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        for written in [
            KEY.to_owned(),
            KEY.to_uppercase(),
            percent,
            partly,
            unicode,
            KEY.replace('/', "\\/"),
            KEY.replacen("live", "li\nve", 1),
            hex,
            STANDARD.encode(KEY),
            URL_SAFE.encode(KEY),
        ] {
            assert_eq!(clean(&format!("key <{written}>.")), "key <•••>.", "{written}");
        }
        assert!(!clean(&split).contains(&KEY[9..]), "{}", clean(&split));
        for before in ["u:", "me:", "api:"] {
            let said = clean(&STANDARD.encode(format!("{before}{KEY}")));
            assert!(said.contains(MARK) && said.len() < 20, "{said}");
        }
        assert_eq!(clean(&format!("cut short: {}", &KEY[..20])), "cut short: •••");
    }

    #[test]
    fn the_address_of_a_provider_is_taken_out() {
        let base = "http://LLM.inside.test:8000/v1".parse().unwrap();
        let clean = |message: &str| without_address(message, &base);
        assert_eq!(clean("no route at http://llm.inside.test:8000/v1/chat, sorry"), "no route at •••, sorry");
        assert_eq!(clean("{\"host\":\"LLM.INSIDE.TEST\"}"), "{\"host\":\"•••\"}");
        assert_eq!(clean("see https://docs.example/keys"), "see https://docs.example/keys");
        let numbered = "http://[::1]:9/v1".parse().unwrap();
        assert_eq!(without_address("called http://[::1]:9/v1", &numbered), "called •••");
    }

    #[test]
    fn words_and_masked_keys_stay() {
        let said = "Incorrect API key provided: sk-live/A1b2***8==. 100% of größe \\ %zz \\u12 stays…";
        assert_eq!(clean(said), said);
        assert_eq!(without_key("a key", ""), "a key");
        assert_eq!(without_key("not k1 but k2", "k1"), "not ••• but k2");
    }
}
