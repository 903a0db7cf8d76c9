//! The file: finding objects, following references, unpacking streams. Reads only the stretches it needs.

use std::collections::HashMap;
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
pub(super) const OBJECTS_MAX: usize = 4_000_000;
/// Longest chain of references to references.
const HOPS_MAX: usize = 16;
/// Unpacked object streams kept at hand.
const PACKS_KEPT: usize = 8;

#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
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
pub(super) struct Pack {
    data: Vec<u8>,
    /// Number and place of each object.
    pub(super) index: Vec<(u32, usize)>,
}

pub(super) struct PdfFile {
    file: File,
    pub(super) length: u64,
    /// Bytes before the header; offsets may count from after them.
    pub(super) shift: u64,
    pub(super) places: HashMap<u32, Place>,
    pub(super) trailer: Dict,
    pub(super) packs: Vec<(u32, Rc<Pack>)>,
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

    pub(super) fn bytes(&mut self, at: u64, length: usize) -> Result<Vec<u8>, Halt> {
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
    pub(super) fn with_window<T>(
        &mut self,
        at: u64,
        mut read: impl FnMut(&mut Lexer<'_>) -> Option<T>,
    ) -> Result<Option<T>, Halt> {
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

    /// Number, value and stream of the object at a place.
    pub(super) fn object_at(&mut self, at: u64) -> Result<Option<(u32, Object, Option<Stream>)>, Halt> {
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

    pub(super) fn pack(&mut self, number: u32) -> Result<Option<Rc<Pack>>, Halt> {
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
            let (Some(Token::Object(Object::Int(number))), Some(Token::Object(Object::Int(at)))) =
                (lexer.token(), lexer.token())
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
