//! Reading the parts of a packed office file, with guards against bombs.
//!
//! Only the table of contents is held in memory; parts stream. Sizes written in the file are never trusted.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use flate2::bufread::DeflateDecoder;

use crate::limits::{ARCHIVE_ENTRIES_MAX, RATIO_FREE_BYTES, UNPACK_RATIO_MAX, UNPACKED_BYTES_MAX};
use crate::outcome::{ExtractError, Halt, as_io, malformed};

const DAMAGED: &str = "The file is damaged: its packed parts cannot be found.";
const END_RECORD: &[u8; 4] = b"PK\x05\x06";
const END_RECORD_BYTES: u64 = 22;
const END64_RECORD: &[u8; 4] = b"PK\x06\x06";
const END64_LOCATOR: &[u8; 4] = b"PK\x06\x07";
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const NAME_BYTES_MAX: usize = 512;

struct Entry {
    header_at: u64,
    packed: u64,
    method: u16,
    encrypted: bool,
}

/// An opened archive.
pub(crate) struct Archive {
    file: Rc<File>,
    entries: HashMap<String, Entry>,
    unpacked: Rc<Cell<u64>>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | (u64::from(u32_at(bytes, at + 4)) << 32)
}

impl Archive {
    /// Reads the table of contents.
    pub(crate) fn open(file: File) -> Result<Self, Halt> {
        let length = file.metadata()?.len();
        let file = Rc::new(file);
        let tail_from = length.saturating_sub(END_RECORD_BYTES + 65_535);
        let mut tail = Vec::new();
        Section::new(&file, tail_from, length - tail_from).read_to_end(&mut tail)?;
        let Some(end) = tail.windows(4).rposition(|window| window == END_RECORD) else {
            return malformed(DAMAGED);
        };
        let record = &tail[end..];
        let (mut count, mut size, mut at) =
            (u64::from(u16_at(record, 10)), u64::from(u32_at(record, 12)), u64::from(u32_at(record, 16)));
        if count == 0xFFFF || size == 0xFFFF_FFFF || at == 0xFFFF_FFFF {
            let locator = end.checked_sub(20).map(|from| &tail[from..end]).filter(|l| l.starts_with(END64_LOCATOR));
            if let Some(locator) = locator {
                let mut record = [0; 56];
                Section::new(&file, u64_at(locator, 8), 56).read_exact(&mut record)?;
                if !record.starts_with(END64_RECORD) {
                    return malformed(DAMAGED);
                }
                (count, size, at) = (u64_at(&record, 32), u64_at(&record, 40), u64_at(&record, 48));
            }
        }
        if count > ARCHIVE_ENTRIES_MAX {
            return malformed("The file has more packed parts than a document may.");
        }
        if at.checked_add(size).is_none_or(|table_end| table_end > length) {
            return malformed(DAMAGED);
        }
        let mut table = BufReader::new(Section::new(&file, at, size));
        let mut entries = HashMap::new();
        for _ in 0..count {
            let mut fixed = [0; 46];
            table.read_exact(&mut fixed)?;
            if !fixed.starts_with(ENTRY) {
                return malformed(DAMAGED);
            }
            let mut variable = vec![0; usize::from(u16_at(&fixed, 28)) + usize::from(u16_at(&fixed, 30))];
            table.read_exact(&mut variable)?;
            io::copy(&mut (&mut table).take(u64::from(u16_at(&fixed, 32))), &mut io::sink())?;
            let (name, extra) = variable.split_at(usize::from(u16_at(&fixed, 28)));
            if name.len() > NAME_BYTES_MAX {
                continue;
            }
            let mut packed = u64::from(u32_at(&fixed, 20));
            let mut header_at = u64::from(u32_at(&fixed, 42));
            apply_zip64(extra, u32_at(&fixed, 24) == u32::MAX, &mut packed, &mut header_at);
            let name = String::from_utf8_lossy(name).replace('\\', "/");
            entries.insert(
                name.trim_start_matches('/').to_owned(),
                Entry { header_at, packed, method: u16_at(&fixed, 10), encrypted: u16_at(&fixed, 8) & 1 == 1 },
            );
        }
        Ok(Self { file, entries, unpacked: Rc::new(Cell::new(0)) })
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// A reader of the unpacked part; `None` when there is no such part.
    pub(crate) fn part(&self, name: &str) -> Result<Option<BufReader<Part>>, Halt> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(None);
        };
        if entry.encrypted {
            return malformed("The file is password protected. Save it without a password and upload it again.");
        }
        let mut local = [0; 30];
        Section::new(&self.file, entry.header_at, 30).read_exact(&mut local)?;
        if !local.starts_with(LOCAL) {
            return malformed(DAMAGED);
        }
        let data_at = entry.header_at + 30 + u64::from(u16_at(&local, 26)) + u64::from(u16_at(&local, 28));
        let packed = Section::new(&self.file, data_at, entry.packed);
        let data = match entry.method {
            0 => Data::Stored(packed),
            8 => Data::Deflated(Box::new(DeflateDecoder::new(BufReader::with_capacity(32 * 1024, packed)))),
            _ => return malformed("The file is packed in a way that office files are not."),
        };
        let part = Part { data, packed: entry.packed, own: 0, total: Rc::clone(&self.unpacked) };
        Ok(Some(BufReader::with_capacity(64 * 1024, part)))
    }
}

fn apply_zip64(mut extra: &[u8], long_unpacked: bool, packed: &mut u64, header_at: &mut u64) {
    while extra.len() >= 4 {
        let size = usize::from(u16_at(extra, 2));
        let Some(field) = extra.get(4..4 + size) else {
            return;
        };
        if u16_at(extra, 0) == 1 {
            let mut at = if long_unpacked { 8 } else { 0 };
            for value in [packed, header_at] {
                if *value == 0xFFFF_FFFF && field.len() >= at + 8 {
                    *value = u64_at(field, at);
                    at += 8;
                }
            }
            return;
        }
        extra = &extra[4 + size..];
    }
}

/// A stretch of the file.
struct Section {
    file: Rc<File>,
    at: u64,
    left: u64,
}

impl Section {
    fn new(file: &Rc<File>, at: u64, left: u64) -> Self {
        Self { file: Rc::clone(file), at, left }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(&mut buffer[..wanted])?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

enum Data {
    Stored(Section),
    Deflated(Box<DeflateDecoder<BufReader<Section>>>),
}

/// The unpacked bytes of a part. Reading fails once the file unpacks to too much.
pub(crate) struct Part {
    data: Data,
    packed: u64,
    own: u64,
    total: Rc<Cell<u64>>,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.data {
            Data::Stored(section) => section.read(buffer)?,
            Data::Deflated(decoder) => decoder.read(buffer)?,
        };
        self.own += read as u64;
        self.total.set(self.total.get() + read as u64);
        if self.total.get() > UNPACKED_BYTES_MAX {
            return Err(as_io(ExtractError::malformed("The file unpacks to more than 2 GiB.")));
        }
        if self.own > RATIO_FREE_BYTES && self.own / UNPACK_RATIO_MAX > self.packed {
            return Err(as_io(ExtractError::malformed(
                "The file is packed far tighter than a document can be (a so-called bomb).",
            )));
        }
        Ok(read)
    }
}
