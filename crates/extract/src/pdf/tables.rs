//! Where the objects of a file are: its tables, or a search when they are unusable.

use std::collections::HashSet;

use super::file::{DAMAGED, OBJECTS_MAX, PdfFile, Place, Stream};
use super::object::{Dict, Lexer, Object, Token, is_white};
use crate::outcome::{Halt, malformed};

impl PdfFile {
    pub(super) fn read_tables(&mut self) -> Result<bool, Halt> {
        let tail_at = self.length.saturating_sub(4096);
        let tail = self.bytes(tail_at, 4096)?;
        let Some(at) = tail.windows(9).rposition(|w| w == b"startxref") else {
            return Ok(false);
        };
        let start = match Lexer::new(&tail[at + 9..]).object() {
            Some(Object::Int(start)) if start >= 0 => start as u64,
            _ => return Ok(false),
        };
        let mut seen = HashSet::new();
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            if !seen.insert(at) {
                continue;
            }
            let trailer = match self.read_table(at)? {
                Some(trailer) => trailer,
                None if self.shift > 0 => match self.read_table(at + self.shift)? {
                    Some(trailer) => trailer,
                    None => return Ok(false),
                },
                None => return Ok(false),
            };
            // The older table first on the stack, so that the hybrid one is read before it.
            for key in ["Prev", "XRefStm"] {
                if let Some(older) = trailer.get(key).and_then(Object::as_int).and_then(|at| u64::try_from(at).ok()) {
                    next.push(older);
                }
            }
            for (key, value) in trailer.iter() {
                self.trailer.insert_if_absent(key, value.clone());
            }
        }
        Ok(true)
    }

    /// Reads the table at this place and returns its trailer.
    fn read_table(&mut self, at: u64) -> Result<Option<Dict>, Halt> {
        if at >= self.length {
            return Ok(None);
        }
        let plain = self.with_window(at, |lexer| {
            if lexer.token()? != Token::Keyword(b"xref") {
                lexer.at = 0;
                return None;
            }
            let mut entries = Vec::new();
            loop {
                match lexer.token()? {
                    Token::Keyword(b"trailer") => break,
                    Token::Object(Object::Int(first)) => {
                        let Token::Object(Object::Int(count)) = lexer.token()? else { return None };
                        for index in 0..count {
                            let (
                                Token::Object(Object::Int(offset)),
                                Token::Object(Object::Int(_)),
                                Token::Keyword(kind),
                            ) = (lexer.token()?, lexer.token()?, lexer.token()?)
                            else {
                                return None;
                            };
                            if kind == b"n" && offset > 0 {
                                entries.push((u32::try_from(first + index).ok()?, offset as u64));
                            }
                            if entries.len() > OBJECTS_MAX {
                                return None;
                            }
                        }
                    }
                    _ => return None,
                }
            }
            let trailer = lexer.object()?.as_dict()?.clone();
            Some((entries, trailer))
        })?;
        if let Some((entries, trailer)) = plain {
            for (number, offset) in entries {
                self.places.entry(number).or_insert(Place::At(offset));
            }
            return Ok(Some(trailer));
        }
        let Some((_, Object::Dict(_), Some(stream))) = self.object_at(at)? else { return Ok(None) };
        if stream.dict.get("Type").and_then(Object::as_name) != Some(b"XRef") {
            return Ok(None);
        }
        self.read_table_stream(&stream)?;
        Ok(Some(stream.dict))
    }

    fn read_table_stream(&mut self, stream: &Stream) -> Result<(), Halt> {
        let data = self.unpack(stream)?;
        let numbers = |key: &str| -> Vec<usize> {
            let items = stream.dict.get(key).and_then(Object::as_array).unwrap_or_default();
            items.iter().filter_map(Object::as_int).filter_map(|n| usize::try_from(n).ok()).collect()
        };
        let widths = numbers("W");
        let &[kind_width, first_width, second_width] = widths.as_slice() else { return Ok(()) };
        let row = kind_width + first_width + second_width;
        if row == 0 || widths.iter().any(|width| *width > 8) {
            return Ok(());
        }
        let mut sections = numbers("Index");
        if sections.is_empty() {
            sections = vec![0, data.len() / row];
        }
        let mut rows = data.chunks_exact(row);
        for section in sections.chunks_exact(2) {
            for (index, entry) in (&mut rows).take(section[1]).enumerate() {
                let field = |from: usize, width: usize| {
                    entry[from..from + width].iter().fold(0_u64, |v, b| (v << 8) | u64::from(*b))
                };
                let kind = if kind_width == 0 { 1 } else { field(0, kind_width) };
                let first = field(kind_width, first_width);
                let second = field(kind_width + first_width, second_width);
                let Ok(number) = u32::try_from(section[0] + index) else { continue };
                let place = match kind {
                    1 => Place::At(first),
                    2 => Place::Packed { pack: first as u32, index: second as u32 },
                    _ => continue,
                };
                if self.places.len() > OBJECTS_MAX {
                    return malformed(DAMAGED);
                }
                self.places.entry(number).or_insert(place);
            }
        }
        Ok(())
    }

    /// Searches the whole file for objects.
    pub(super) fn rebuild(&mut self) -> Result<(), Halt> {
        const CHUNK: usize = 1024 * 1024;
        const OVERLAP: usize = 64;
        self.rebuilt = true;
        self.places.clear();
        self.packs.clear();
        let mut trailers = Vec::new();
        let mut packs = Vec::new();
        let mut root = None;
        let mut tables = Vec::new();
        let mut last = None;
        let mut at = 0_u64;
        while at < self.length {
            // The header of an object may lie across the border, so each chunk overlaps both neighbours.
            let start = at.saturating_sub(OVERLAP as u64);
            let chunk = self.bytes(start, CHUNK + 2 * OVERLAP)?;
            let mut from = (at - start) as usize;
            let end = chunk.len().min(from + CHUNK);
            while from < end {
                let rest = &chunk[from..];
                match rest[0] {
                    b'o' if rest.starts_with(b"obj") => {
                        if let Some((number, begins)) = object_header(&chunk[..from]) {
                            self.places.insert(number, Place::At(start + begins as u64));
                            last = Some(number);
                        }
                    }
                    b't' if rest.starts_with(b"trailer") => trailers.push(start + from as u64 + 7),
                    b'/' if rest.starts_with(b"/ObjStm") => packs.extend(last),
                    b'/' if rest.starts_with(b"/XRef") && !rest.starts_with(b"/XRefStm") => tables.extend(last),
                    b'/' if rest.starts_with(b"/Catalog") => root = last.or(root),
                    _ => {}
                }
                from += 1;
            }
            at += CHUNK as u64;
            if self.places.len() > OBJECTS_MAX {
                return malformed(DAMAGED);
            }
        }
        let mut trailer = Dict::default();
        for at in trailers.into_iter().rev().take(64) {
            if let Some(Object::Dict(dict)) = self.with_window(at, |lexer| lexer.object())? {
                for (key, value) in dict.iter() {
                    trailer.insert_if_absent(key, value.clone());
                }
            }
        }
        for number in tables.into_iter().rev().take(64) {
            if let Some(stream) = self.stream(&Object::Ref(number))? {
                for (key, value) in stream.dict.iter() {
                    trailer.insert_if_absent(key, value.clone());
                }
            }
        }
        self.trailer = trailer;
        if self.trailer.get("Encrypt").is_some() {
            return Ok(());
        }
        for number in packs {
            let Some(pack) = self.pack(number)? else { continue };
            for (index, (object, _)) in pack.index.iter().enumerate() {
                self.places.entry(*object).or_insert(Place::Packed { pack: number, index: index as u32 });
            }
        }
        if self.root()?.is_none()
            && let Some(root) = root
        {
            let mut trailer = Dict::default();
            trailer.insert_if_absent(b"Root", Object::Ref(root));
            self.trailer = trailer;
        }
        Ok(())
    }
}

/// `number generation` right before `obj`: the number and where it begins.
fn object_header(before: &[u8]) -> Option<(u32, usize)> {
    let back_over = |end: usize, accept: fn(&u8) -> bool| {
        let count = before[..end].iter().rev().take(20).take_while(|byte| accept(byte)).count();
        (end - count, count)
    };
    let (end, _) = back_over(before.len(), |b| is_white(*b));
    let (end, digits) = back_over(end, u8::is_ascii_digit);
    let (end, blanks) = back_over(end, |b| is_white(*b));
    let (begins, number_digits) = back_over(end, u8::is_ascii_digit);
    if digits == 0 || blanks == 0 || number_digits == 0 {
        return None;
    }
    let number = std::str::from_utf8(&before[begins..end]).ok()?.parse().ok()?;
    Some((number, begins))
}
