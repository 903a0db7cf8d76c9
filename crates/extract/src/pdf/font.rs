//! Fonts, as far as text needs them: what the bytes of a string mean and how wide they are.

use std::collections::HashMap;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, MACINTOSH, SHIFT_JIS, UTF_16BE, WINDOWS_1252};

use super::cmap::CMap;
use super::file::PdfFile;
use super::glyphs;
use super::object::{Dict, Object};
use super::truetype;
use crate::outcome::Halt;

/// A font ready for decoding.
pub(super) struct Font {
    to_unicode: Option<CMap>,
    kind: Kind,
}

enum Kind {
    Simple { chars: Box<[Option<char>; 256]>, widths: Box<[f32; 256]> },
    Composite { codes: Box<Codes>, ids: Ids, widths: HashMap<u32, f32>, default_width: f32 },
}

/// How strings are split into codes.
enum Codes {
    /// Two bytes each.
    Pairs,
    /// As a map in the file says.
    Mapped(CMap),
    /// An encoding known by name, which also says what the codes mean.
    Named(&'static Encoding),
    /// JIS X 0208 in two bytes.
    Jis,
}

/// What character ids mean when the font does not say.
enum Ids {
    Unknown,
    Glyphs(HashMap<u32, char>),
}

/// One decoded code.
pub(super) struct Glyph {
    /// Width in thousandths of the font size.
    pub(super) width: f32,
    /// The one-byte code 32, to which word spacing applies.
    pub(super) is_space_code: bool,
}

impl Font {
    pub(super) fn load(pdf: &mut PdfFile, dict: &Dict) -> Result<Self, Halt> {
        let to_unicode = match dict.get("ToUnicode").cloned().map(|object| pdf.stream(&object)).transpose()?.flatten() {
            Some(stream) => Some(CMap::parse(&pdf.unpack(&stream)?)),
            None => None,
        };
        let subtype = pdf.value(dict, "Subtype")?;
        let kind =
            if subtype.as_name() == Some(b"Type0") { composite(pdf, dict)? } else { simple(pdf, dict, &subtype)? };
        Ok(Self { to_unicode, kind })
    }

    /// Decodes a string, telling `on_glyph` each code's text and measures.
    pub(super) fn decode(&self, bytes: &[u8], mut on_glyph: impl FnMut(&str, Glyph)) {
        let mut text = String::new();
        match &self.kind {
            Kind::Simple { chars, widths } => {
                for byte in bytes {
                    text.clear();
                    let known = self.to_unicode.as_ref().is_some_and(|map| map.text(u32::from(*byte), &mut text));
                    if !known {
                        text.extend(chars[usize::from(*byte)]);
                    }
                    on_glyph(&text, Glyph { width: widths[usize::from(*byte)], is_space_code: *byte == 32 });
                }
            }
            Kind::Composite { codes, ids, widths, default_width } => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let length = codes.length(rest).clamp(1, rest.len());
                    let (code_bytes, after) = rest.split_at(length);
                    rest = after;
                    let code = code_bytes.iter().fold(0_u32, |code, byte| (code << 8) | u32::from(*byte));
                    let id = if let Codes::Mapped(map) = codes.as_ref() { map.id(code) } else { code };
                    text.clear();
                    let known = self.to_unicode.as_ref().is_some_and(|map| map.text(code, &mut text));
                    if !known {
                        match (codes.as_ref(), ids) {
                            (Codes::Named(encoding), _) => {
                                text.push_str(&encoding.decode_without_bom_handling(code_bytes).0);
                            }
                            (Codes::Jis, _) => {
                                let shifted: Vec<u8> = code_bytes.iter().map(|byte| byte | 0x80).collect();
                                text.push_str(&EUC_JP.decode_without_bom_handling(&shifted).0);
                            }
                            (_, Ids::Glyphs(glyphs)) => text.extend(glyphs.get(&id)),
                            _ => {}
                        }
                    }
                    let width = widths.get(&id).copied().unwrap_or(*default_width);
                    on_glyph(&text, Glyph { width, is_space_code: length == 1 && code == 32 });
                }
            }
        }
    }
}

impl Codes {
    fn length(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Pairs | Self::Jis => 2,
            Self::Mapped(map) => match map.code_length(bytes) {
                0 => 2,
                length => length,
            },
            Self::Named(encoding) if *encoding == UTF_16BE => {
                if matches!(bytes[0], 0xD8..=0xDB) {
                    4
                } else {
                    2
                }
            }
            Self::Named(encoding) if *encoding == SHIFT_JIS => {
                if matches!(bytes[0], 0x81..=0x9F | 0xE0..=0xFC) {
                    2
                } else {
                    1
                }
            }
            Self::Named(_) => {
                if bytes[0] >= 0x81 {
                    2
                } else {
                    1
                }
            }
        }
    }

    /// A map known by name.
    fn named(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name);
        let has = |part: &str| name.contains(part);
        if has("UTF16") || has("UCS2") {
            Self::Named(UTF_16BE)
        } else if has("RKSJ") {
            Self::Named(SHIFT_JIS)
        } else if has("GBK") || has("GB-EUC") || has("GBpc") {
            Self::Named(GBK)
        } else if has("B5") || has("HKscs") {
            Self::Named(BIG5)
        } else if has("KSC") {
            Self::Named(EUC_KR)
        } else if has("EUC") {
            Self::Named(EUC_JP)
        } else if name == "H" || name == "V" {
            Self::Jis
        } else {
            Self::Pairs
        }
    }
}

fn composite(pdf: &mut PdfFile, dict: &Dict) -> Result<Kind, Halt> {
    let embedded = dict.get("Encoding").cloned().map(|object| pdf.stream(&object)).transpose()?.flatten();
    let codes = match embedded {
        Some(stream) => Codes::Mapped(CMap::parse(&pdf.unpack(&stream)?)),
        None => Codes::named(pdf.value(dict, "Encoding")?.as_name().unwrap_or_default()),
    };
    let descendants = pdf.value(dict, "DescendantFonts")?;
    let first = descendants.as_array().and_then(<[Object]>::first).cloned();
    let mut widths = HashMap::new();
    let mut default_width = 1000.0;
    let mut ids = Ids::Unknown;
    if let Some(font) = pdf.resolve_dict(first.as_ref())? {
        default_width = pdf.value(&font, "DW")?.as_number().unwrap_or(1000.0) as f32;
        if let Object::Array(items) = pdf.value(&font, "W")? {
            widths = cid_widths(pdf, &items)?;
        }
        let has_map = dict.get("ToUnicode").is_some();
        let descriptor = pdf.resolve_dict(font.get("FontDescriptor"))?;
        if let Some(descriptor) = descriptor.filter(|_| !has_map)
            && let Some(program) = descriptor.get("FontFile2").cloned()
            && let Some(stream) = pdf.stream(&program)?
        {
            let mut glyphs = truetype::characters(&pdf.unpack(&stream)?);
            if let Some(map) = font.get("CIDToGIDMap").cloned()
                && let Some(stream) = pdf.stream(&map)?
            {
                let map = pdf.unpack(&stream)?;
                glyphs = map
                    .chunks_exact(2)
                    .enumerate()
                    .filter_map(|(id, gid)| {
                        let gid = u32::from(u16::from_be_bytes([gid[0], gid[1]]));
                        Some((id as u32, *glyphs.get(&gid)?))
                    })
                    .collect();
            }
            ids = Ids::Glyphs(glyphs);
        }
    }
    Ok(Kind::Composite { codes: Box::new(codes), ids, widths, default_width })
}

/// `first [w w w]` or `first last w`.
fn cid_widths(pdf: &mut PdfFile, items: &[Object]) -> Result<HashMap<u32, f32>, Halt> {
    let mut widths = HashMap::new();
    let mut at = 0;
    while at + 1 < items.len() {
        let Some(first) = items[at].as_int().and_then(|n| u32::try_from(n).ok()) else {
            at += 1;
            continue;
        };
        match pdf.resolve(&items[at + 1])? {
            Object::Array(list) => {
                for (offset, width) in list.iter().take(65_536).enumerate() {
                    widths.insert(first.saturating_add(offset as u32), width.as_number().unwrap_or(0.0) as f32);
                }
                at += 2;
            }
            last => {
                let last = last.as_int().and_then(|n| u32::try_from(n).ok()).unwrap_or(first).min(65_535);
                let width = items.get(at + 2).and_then(Object::as_number).unwrap_or(0.0) as f32;
                for id in first..=last {
                    widths.insert(id, width);
                }
                at += 3;
            }
        }
    }
    Ok(widths)
}

fn simple(pdf: &mut PdfFile, dict: &Dict, subtype: &Object) -> Result<Kind, Halt> {
    let base_font = pdf.value(dict, "BaseFont")?;
    let base_font = String::from_utf8_lossy(base_font.as_name().unwrap_or_default()).into_owned();
    let family = base_font.rsplit('+').next().unwrap_or_default();
    let encoding = pdf.value(dict, "Encoding")?;
    let (base, differences) = match &encoding {
        Object::Name(name) => (Some(name.clone()), Vec::new()),
        Object::Dict(encoding) => {
            let base = pdf.value(encoding, "BaseEncoding")?.as_name().map(<[u8]>::to_vec);
            let differences = match pdf.value(encoding, "Differences")? {
                Object::Array(items) => items,
                _ => Vec::new(),
            };
            (base, differences)
        }
        _ => (None, Vec::new()),
    };
    let is_truetype = subtype.as_name() == Some(b"TrueType");
    let mut chars = Box::new([None; 256]);
    for code in 0..=255_u8 {
        chars[usize::from(code)] = match base.as_deref() {
            Some(b"WinAnsiEncoding") => single_byte(WINDOWS_1252, code),
            Some(b"MacRomanEncoding") => single_byte(MACINTOSH, code),
            None if family.starts_with("Symbol") => symbol(code),
            None if is_truetype => single_byte(WINDOWS_1252, code),
            _ => standard(code),
        };
    }
    let mut code = 0_usize;
    for item in &differences {
        match pdf.resolve(item)? {
            Object::Int(number) => code = usize::try_from(number).unwrap_or(256),
            Object::Name(name) => {
                if let Some(place) = chars.get_mut(code) {
                    let name = String::from_utf8_lossy(&name);
                    // Unknown names over a printable code are mostly subsets that kept the code.
                    *place = glyphs::character(&name).or(place.filter(|_| !name.starts_with(".notdef")));
                }
                code += 1;
            }
            _ => {}
        }
    }
    let widths = simple_widths(pdf, dict, family, subtype, &chars)?;
    Ok(Kind::Simple { chars, widths })
}

fn simple_widths(
    pdf: &mut PdfFile,
    dict: &Dict,
    family: &str,
    subtype: &Object,
    chars: &[Option<char>; 256],
) -> Result<Box<[f32; 256]>, Halt> {
    let mut widths = Box::new([0_f32; 256]);
    let given = pdf.value(dict, "Widths")?;
    let first = pdf.value(dict, "FirstChar")?.as_int().unwrap_or(0);
    let Some(given) = given.as_array() else {
        for (code, width) in widths.iter_mut().enumerate() {
            *width = builtin_width(family, chars[code].unwrap_or('n'));
        }
        return Ok(widths);
    };
    let descriptor = pdf.resolve_dict(dict.get("FontDescriptor"))?;
    let missing = match descriptor {
        Some(descriptor) => pdf.value(&descriptor, "MissingWidth")?.as_number().unwrap_or(0.0),
        None => 0.0,
    };
    widths.fill(missing as f32);
    // The widths of a Type 3 font are in its own units.
    let mut scale = 1.0;
    if subtype.as_name() == Some(b"Type3")
        && let Object::Array(matrix) = pdf.value(dict, "FontMatrix")?
    {
        scale = matrix.first().and_then(Object::as_number).unwrap_or(0.001) * 1000.0;
    }
    for (offset, width) in given.iter().take(256).enumerate() {
        let Some(place) = usize::try_from(first + offset as i64).ok().and_then(|code| widths.get_mut(code)) else {
            continue;
        };
        *place = (pdf.resolve(width)?.as_number().unwrap_or(0.0) * scale) as f32;
    }
    Ok(widths)
}

fn single_byte(encoding: &'static Encoding, code: u8) -> Option<char> {
    if code < 0x20 {
        return None;
    }
    let bytes = [code];
    encoding.decode_without_bom_handling(&bytes).0.chars().next().filter(|c| !c.is_control())
}

/// The standard encoding of PostScript fonts.
fn standard(code: u8) -> Option<char> {
    const HIGH: &str = "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ\0–†‡·\0¶•‚„”»…‰\0¿\0`´ˆ˜¯˘˙¨\0˚¸\0˝˛ˇ—";
    match code {
        0x27 => Some('’'),
        0x60 => Some('‘'),
        0x20..=0x7E => Some(char::from(code)),
        0xA1..=0xD0 => HIGH.chars().nth(usize::from(code - 0xA1)).filter(|c| *c != '\0'),
        0xE1 => Some('Æ'),
        0xE3 => Some('ª'),
        0xE8 => Some('Ł'),
        0xE9 => Some('Ø'),
        0xEA => Some('Œ'),
        0xEB => Some('º'),
        0xF1 => Some('æ'),
        0xF5 => Some('ı'),
        0xF8 => Some('ł'),
        0xF9 => Some('ø'),
        0xFA => Some('œ'),
        0xFB => Some('ß'),
        _ => None,
    }
}

/// The encoding of the Symbol font, letters and the most common signs.
fn symbol(code: u8) -> Option<char> {
    const UPPER: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
    const LOWER: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";
    match code {
        b'A'..=b'Z' => UPPER.chars().nth(usize::from(code - b'A')),
        b'a'..=b'z' => LOWER.chars().nth(usize::from(code - b'a')),
        0x2D => Some('−'),
        0xA3 => Some('≤'),
        0xA5 => Some('∞'),
        0xAE => Some('→'),
        0xB0 => Some('°'),
        0xB1 => Some('±'),
        0xB3 => Some('≥'),
        0xB4 => Some('×'),
        0xB7 => Some('•'),
        0xB8 => Some('÷'),
        0xB9 => Some('≠'),
        0xBB => Some('≈'),
        0x20..=0x7E => Some(char::from(code)),
        _ => None,
    }
}

/// Widths of the fonts that every reader has, for ASCII; other characters count as an average letter.
fn builtin_width(family: &str, c: char) -> f32 {
    const SANS: [u16; 95] = [
        278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556,
        556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667,
        556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556,
        556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722,
        500, 500, 500, 334, 260, 334, 584,
    ];
    const SERIF: [u16; 95] = [
        250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500,
        500, 500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722,
        611, 889, 722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444,
        500, 444, 500, 444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722,
        500, 500, 444, 480, 200, 480, 541,
    ];
    if family.starts_with("Courier") {
        return 600.0;
    }
    let table = if family.starts_with("Times") { &SERIF } else { &SANS };
    let width = (c as usize).checked_sub(32).and_then(|at| table.get(at)).map_or(500.0, |width| f32::from(*width));
    if family.contains("Bold") { width * 1.06 } else { width }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        assert_eq!(standard(0xA1), Some('¡'));
        assert_eq!(standard(0xAE), Some('ﬁ'));
        assert_eq!(standard(0xD0), Some('—'));
        assert_eq!(standard(0xB0), None);
        assert_eq!(symbol(b'p'), Some('π'));
        assert_eq!(single_byte(WINDOWS_1252, 0x80), Some('€'));
        assert_eq!(single_byte(MACINTOSH, 0x8A), Some('ä'));
        assert_eq!(builtin_width("Helvetica", 'A'), 667.0);
    }
}
