//! The file: finding objects, following references, unpacking streams. Reads only the stretches it needs.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::rc::Rc;

use super::filter;
use super::object::{Dict, Lexer, Object, Token, is_white};
use crate::limits::{PDF_STREAM_BYTES_MAX, UNPACKED_BYTES_MAX};
use crate::outcome::{ExtractError, Halt, malformed};

pub(super) const DAMAGED: &str = "The PDF is damaged or incomplete.";
/// First stretch read for an object; doubled until the object is complete.
const WINDOW_BYTES: usize = 4 * 1024;
/// No single object (without its stream) and no table of objects is longer.
const OBJECT_BYTES_MAX: usize = 64 * 1024 * 1024;
const OBJECTS_MAX: usize = 4_000_000;
/// Longest chain of references to references.
const HOPS_MAX: usize = 16;
/// Unpacked object streams kept at hand.
const PACKS_KEPT: usize = 8;

#[derive(Debug, Clone, Copy)]
enum Place {
    At(u64),
    Packed { pack: u32, index: u32 },
}

/// An object that has a stream.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) dict: Dict,
    data_at: u64,
}

/// Objects that are packed together in one stream.
struct Pack {
    data: Vec<u8>,
    /// Number and place of each object.
    index: Vec<(u32, usize)>,
}

pub(super) struct PdfFile {
    file: File,
    length: u64,
    /// Bytes before the header; offsets may count from after them.
    shift: u64,
    places: HashMap<u32, Place>,
    trailer: Dict,
    packs: Vec<(u32, Rc<Pack>)>,
    unpacked: u64,
    /// The table of objects was unusable and the file was searched for objects.
    pub(super) rebuilt: bool,
}

impl PdfFile {
    pub(super) fn open(file: File) -> Result<Self, Halt> {
        let length = file.metadata()?.len();
        let mut pdf = Self {
            file,
            length,
            shift: 0,
            places: HashMap::new(),
            trailer: Dict::default(),
            packs: Vec::new(),
            unpacked: 0,
            rebuilt: false,
        };
        let head = pdf.bytes(0, 1024)?;
        pdf.shift = head.windows(5).position(|w| w == b"%PDF-").unwrap_or(0) as u64;
        if !pdf.read_tables()? || pdf.root()?.is_none() {
            pdf.rebuild()?;
        }
        if pdf.trailer.get("Encrypt").is_some_and(|value| *value != Object::Null) {
            return malformed(
                "The PDF is password protected or its use is restricted. Save it without protection and upload it again.",
            );
        }
        Ok(pdf)
    }

    /// The root of the document, when it has pages.
    pub(super) fn root(&mut self) -> Result<Option<Dict>, Halt> {
        let Some(root) = self.trailer.get("Root").cloned() else { return Ok(None) };
        let root = self.resolve(&root)?;
        Ok(match root {
            Object::Dict(dict) if dict.get("Pages").is_some() => Some(dict),
            _ => None,
        })
    }

    fn bytes(&mut self, at: u64, length: usize) -> Result<Vec<u8>, Halt> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(at))?;
        (&mut self.file).take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Halt> {
        self.unpacked += bytes as u64;
        if self.unpacked > UNPACKED_BYTES_MAX {
            return Err(ExtractError::malformed("The PDF unpacks to more than 2 GiB.").into());
        }
        Ok(())
    }

    /// Reads at a place with a window that grows until `read` no longer runs into its end.
    fn with_window<T>(&mut self, at: u64, mut read: impl FnMut(&mut Lexer<'_>) -> Option<T>) -> Result<Option<T>, Halt> {
        let mut size = WINDOW_BYTES;
        loop {
            let window = self.bytes(at, size)?;
            let mut lexer = Lexer::new(&window);
            let found = read(&mut lexer);
            let at_end = lexer.at + 16 >= window.len();
            if !at_end || window.len() < size || size >= OBJECT_BYTES_MAX {
                return Ok(found);
            }
            size *= 4;
        }
    }

    // ---- the tables of objects

    fn read_tables(&mut self) -> Result<bool, Halt> {
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
                            let (Token::Object(Object::Int(offset)), Token::Object(Object::Int(_)), Token::Keyword(kind)) =
                                (lexer.token()?, lexer.token()?, lexer.token()?)
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
                let field = |from: usize, width: usize| entry[from..from + width].iter().fold(0_u64, |v, b| (v << 8) | u64::from(*b));
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
    fn rebuild(&mut self) -> Result<(), Halt> {
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

    // ---- objects

    /// Number, value and stream of the object at a place.
    fn object_at(&mut self, at: u64) -> Result<Option<(u32, Object, Option<Stream>)>, Halt> {
        let found = self.with_window(at, |lexer| {
            let Token::Object(Object::Int(number)) = lexer.token()? else { return None };
            let Token::Object(Object::Int(_)) = lexer.token()? else { return None };
            if lexer.token()? != Token::Keyword(b"obj") {
                return None;
            }
            let object = lexer.object().unwrap_or(Object::Null);
            let after_object = lexer.at;
            let data = match (&object, lexer.token()) {
                (Object::Dict(_), Some(Token::Keyword(b"stream"))) => {
                    if lexer.data.get(lexer.at) == Some(&b'\r') {
                        lexer.at += 1;
                    }
                    if lexer.data.get(lexer.at) == Some(&b'\n') {
                        lexer.at += 1;
                    }
                    Some(lexer.at)
                }
                _ => {
                    lexer.at = after_object.max(lexer.at);
                    None
                }
            };
            Some((u32::try_from(number).ok()?, object, data))
        })?;
        Ok(found.map(|(number, object, data)| {
            let stream = match (&object, data) {
                (Object::Dict(dict), Some(data)) => Some(Stream { dict: dict.clone(), data_at: at + data as u64 }),
                _ => None,
            };
            (number, object, stream)
        }))
    }

    fn load(&mut self, number: u32) -> Result<(Object, Option<Stream>), Halt> {
        match self.places.get(&number).copied() {
            None => Ok((Object::Null, None)),
            Some(Place::At(at)) => {
                let mut tries = vec![at];
                if self.shift > 0 && !self.rebuilt {
                    tries.push(at + self.shift);
                }
                for at in tries {
                    if let Some((found, object, stream)) = self.object_at(at)?
                        && found == number
                    {
                        return Ok((object, stream));
                    }
                }
                if self.rebuilt {
                    return Ok((Object::Null, None));
                }
                // The table lies: look for the objects themselves, once.
                self.rebuild()?;
                self.load(number)
            }
            Some(Place::Packed { pack, index }) => {
                let Some(pack) = self.pack(pack)? else { return Ok((Object::Null, None)) };
                let by_index = pack.index.get(index as usize).filter(|(found, _)| *found == number);
                let at = by_index.or_else(|| pack.index.iter().find(|(found, _)| *found == number)).map(|(_, at)| *at);
                let object = at.and_then(|at| Lexer::new(pack.data.get(at..)?).object());
                Ok((object.unwrap_or(Object::Null), None))
            }
        }
    }

    fn pack(&mut self, number: u32) -> Result<Option<Rc<Pack>>, Halt> {
        if let Some((_, pack)) = self.packs.iter().find(|(known, _)| *known == number) {
            return Ok(Some(Rc::clone(pack)));
        }
        // A pack is never packed itself; this also ends circles.
        if !matches!(self.places.get(&number), Some(Place::At(_))) {
            return Ok(None);
        }
        let (_, Some(stream)) = self.load(number)? else { return Ok(None) };
        let (Some(count), Some(first)) =
            (stream.dict.get("N").and_then(Object::as_int), stream.dict.get("First").and_then(Object::as_int))
        else {
            return Ok(None);
        };
        let data = self.unpack(&stream)?;
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let mut index = Vec::new();
        let mut lexer = Lexer::new(&data);
        for _ in 0..count.clamp(0, OBJECTS_MAX as i64) {
            let (Some(Token::Object(Object::Int(number))), Some(Token::Object(Object::Int(at)))) = (lexer.token(), lexer.token())
            else {
                break;
            };
            if let (Ok(number), Ok(at)) = (u32::try_from(number), usize::try_from(at)) {
                index.push((number, first.saturating_add(at)));
            }
        }
        let pack = Rc::new(Pack { data, index });
        if self.packs.len() >= PACKS_KEPT {
            self.packs.remove(0);
        }
        self.packs.push((number, Rc::clone(&pack)));
        Ok(Some(pack))
    }

    /// Follows references to a value.
    pub(super) fn resolve(&mut self, object: &Object) -> Result<Object, Halt> {
        let mut object = object.clone();
        for _ in 0..HOPS_MAX {
            let Object::Ref(number) = object else { return Ok(object) };
            object = self.load(number)?.0;
        }
        Ok(Object::Null)
    }

    pub(super) fn resolve_dict(&mut self, object: Option<&Object>) -> Result<Option<Dict>, Halt> {
        match object {
            None => Ok(None),
            Some(object) => Ok(match self.resolve(object)? {
                Object::Dict(dict) => Some(dict),
                _ => None,
            }),
        }
    }

    /// The value of a key, references followed.
    pub(super) fn value(&mut self, dict: &Dict, key: &str) -> Result<Object, Halt> {
        match dict.get(key) {
            Some(object) => {
                let object = object.clone();
                self.resolve(&object)
            }
            None => Ok(Object::Null),
        }
    }

    /// The stream a reference leads to.
    pub(super) fn stream(&mut self, object: &Object) -> Result<Option<Stream>, Halt> {
        let mut object = object.clone();
        for _ in 0..HOPS_MAX {
            let Object::Ref(number) = object else { return Ok(None) };
            let (next, stream) = self.load(number)?;
            if stream.is_some() {
                return Ok(stream);
            }
            object = next;
        }
        Ok(None)
    }

    // ---- streams

    /// The unpacked bytes of a stream; empty when it is packed as a picture.
    pub(super) fn unpack(&mut self, stream: &Stream) -> Result<Vec<u8>, Halt> {
        let mut data = self.raw(stream)?;
        let filters = match self.value(&stream.dict, "Filter")? {
            Object::Null => self.value(&stream.dict, "F")?,
            filter => filter,
        };
        let filters = match filters {
            Object::Array(items) => items,
            Object::Name(name) => vec![Object::Name(name)],
            _ => Vec::new(),
        };
        let parameters = match self.value(&stream.dict, "DecodeParms")? {
            Object::Array(items) => items,
            Object::Null => Vec::new(),
            single => vec![single],
        };
        for (index, filter) in filters.iter().take(8).enumerate() {
            let filter = self.resolve(filter)?;
            let parameters = self.resolve_dict(parameters.get(index))?;
            let Some(name) = filter.as_name() else { continue };
            match filter::decode(name, &data, parameters.as_ref())? {
                Some(unpacked) => data = unpacked,
                None => return Ok(Vec::new()),
            }
            self.spend(data.len())?;
        }
        Ok(data)
    }

    fn raw(&mut self, stream: &Stream) -> Result<Vec<u8>, Halt> {
        let length = self.value(&stream.dict, "Length")?.as_int().and_then(|length| u64::try_from(length).ok());
        if let Some(length) = length.filter(|length| stream.data_at.saturating_add(*length) <= self.length) {
            if length > PDF_STREAM_BYTES_MAX as u64 {
                return malformed("A part of the PDF is larger than a document may have.");
            }
            let mut data = self.bytes(stream.data_at, length as usize + 32)?;
            let after = data.get(length as usize..).unwrap_or_default();
            let gap = after.iter().take_while(|byte| is_white(**byte)).count();
            if after[gap..].starts_with(b"endstream") || after[gap..].starts_with(b"endobj") {
                data.truncate(length as usize);
                return Ok(data);
            }
        }
        // The length is wrong: the stream goes on to its end mark.
        let mut data = Vec::new();
        loop {
            let more = self.bytes(stream.data_at + data.len() as u64, 64 * 1024)?;
            let searched = data.len().saturating_sub(16);
            let done = more.is_empty();
            data.extend_from_slice(&more);
            if let Some(end) = data[searched..].windows(9).position(|w| w == b"endstream") {
                data.truncate(searched + end);
                return Ok(data);
            }
            if done || data.len() > PDF_STREAM_BYTES_MAX {
                return malformed(DAMAGED);
            }
        }
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
