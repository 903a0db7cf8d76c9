//! The character table of an embedded TrueType font, read backwards: from glyph to character.

use std::collections::HashMap;

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// Glyph numbers and the character each shows. Empty when the font has no usable table.
pub(super) fn characters(font: &[u8]) -> HashMap<u32, char> {
    let mut glyphs = HashMap::new();
    let _ = read(font, &mut glyphs);
    glyphs
}

fn read(font: &[u8], glyphs: &mut HashMap<u32, char>) -> Option<()> {
    let tables = usize::from(u16_at(font, 4)?);
    let cmap = (0..tables).map(|n| 12 + n * 16).find(|at| font.get(*at..*at + 4) == Some(b"cmap"))?;
    let cmap = u32_at(font, cmap + 8)? as usize;
    for n in 0..usize::from(u16_at(font, cmap + 2)?).min(32) {
        let record = cmap + 4 + n * 8;
        let (platform, encoding) = (u16_at(font, record)?, u16_at(font, record + 2)?);
        // Unicode tables only.
        if !(platform == 0 || platform == 3 && matches!(encoding, 1 | 10)) {
            continue;
        }
        let table = cmap + u32_at(font, record + 4)? as usize;
        let _ = match u16_at(font, table)? {
            4 => segments(font, table, glyphs),
            12 => groups(font, table, glyphs),
            _ => None,
        };
    }
    Some(())
}

fn segments(font: &[u8], table: usize, glyphs: &mut HashMap<u32, char>) -> Option<()> {
    let count = usize::from(u16_at(font, table + 6)?) / 2;
    let (ends, starts) = (table + 14, table + 16 + count * 2);
    let (deltas, offsets) = (starts + count * 2, starts + count * 4);
    for n in 0..count {
        let (start, end) = (u16_at(font, starts + n * 2)?, u16_at(font, ends + n * 2)?);
        let (delta, offset) = (u16_at(font, deltas + n * 2)?, usize::from(u16_at(font, offsets + n * 2)?));
        if start > end || start == 0xFFFF {
            continue;
        }
        for code in start..=end {
            let glyph = if offset == 0 {
                code.wrapping_add(delta)
            } else {
                match u16_at(font, offsets + n * 2 + offset + usize::from(code - start) * 2) {
                    Some(0) | None => 0,
                    Some(glyph) => glyph.wrapping_add(delta),
                }
            };
            if glyph != 0
                && let Some(c) = char::from_u32(u32::from(code))
            {
                glyphs.entry(u32::from(glyph)).or_insert(c);
            }
        }
    }
    Some(())
}

fn groups(font: &[u8], table: usize, glyphs: &mut HashMap<u32, char>) -> Option<()> {
    let count = (u32_at(font, table + 12)? as usize).min(font.len() / 12);
    for n in 0..count {
        let group = table + 16 + n * 12;
        let (start, end, glyph) = (u32_at(font, group)?, u32_at(font, group + 4)?, u32_at(font, group + 8)?);
        for code in start..=end.min(start.saturating_add(0xFFFF)) {
            if let Some(c) = char::from_u32(code) {
                glyphs.entry(glyph.wrapping_add(code - start)).or_insert(c);
            }
        }
    }
    Some(())
}
