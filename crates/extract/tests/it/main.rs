//! Extraction from real files, made by the tests themselves.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on should panic")]

mod hostile;
mod office;
mod pdf;
mod plain;
mod process;

use std::io::Write;
use std::ops::ControlFlow;

use tale_extract::{Chunk, ExtractError, OutcomeCode, Piece, classify, extract, extract_to_chunks};
use tempfile::TempDir;

/// A file of the given name in a directory of its own.
pub struct Fixture {
    dir: TempDir,
    name: String,
}

impl Fixture {
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let fixture = Self::empty(name);
        std::fs::write(fixture.path(), bytes).unwrap();
        fixture
    }

    pub fn empty(name: &str) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), name: name.to_owned() }
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("file")
    }

    pub fn text(&self) -> Result<String, ExtractError> {
        Ok(self.pages()?.into_iter().map(|(_, text)| text).collect())
    }

    /// The text by page; page 0 before the first mark.
    pub fn pages(&self) -> Result<Vec<(u32, String)>, ExtractError> {
        let kind = classify(&self.name).into_kind(&self.name)?;
        let mut pages = vec![(0, String::new())];
        extract(&self.path(), kind, &|| true, &mut |piece| {
            match piece {
                Piece::Text(text) => pages.last_mut().unwrap().1.push_str(text),
                Piece::Page(number) => pages.push((number, String::new())),
            }
            ControlFlow::Continue(())
        })?;
        Ok(pages)
    }

    pub fn chunks(&self, title: &str) -> Result<Vec<Chunk>, ExtractError> {
        let kind = classify(&self.name).into_kind(&self.name)?;
        let mut chunks = Vec::new();
        extract_to_chunks(&self.path(), kind, title, &|| true, &mut |chunk| {
            chunks.push(chunk);
            ControlFlow::Continue(())
        })?;
        Ok(chunks)
    }
}

pub fn text_of(name: &str, bytes: &[u8]) -> String {
    Fixture::new(name, bytes).text().unwrap()
}

pub fn refusal_of(name: &str, bytes: &[u8]) -> ExtractError {
    Fixture::new(name, bytes).text().unwrap_err()
}

pub fn code_of(name: &str, bytes: &[u8]) -> OutcomeCode {
    refusal_of(name, bytes).code
}

/// Writes a packed file part by part.
pub struct Zip<W: Write> {
    to: W,
    at: u64,
    table: Vec<u8>,
    count: u16,
    pub level: flate2::Compression,
}

impl Zip<Vec<u8>> {
    pub fn of(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut zip = Zip::new(Vec::new());
        for (name, content) in parts {
            zip.part(name, |to| to.write_all(content.as_bytes()).unwrap());
        }
        zip.finish()
    }
}

impl<W: Write> Zip<W> {
    pub fn new(to: W) -> Self {
        Self { to, at: 0, table: Vec::new(), count: 0, level: flate2::Compression::fast() }
    }

    pub fn part(&mut self, name: &str, write: impl FnOnce(&mut dyn Write)) {
        let mut encoder = Counting {
            inner: flate2::write::DeflateEncoder::new(Vec::new(), self.level),
            bytes: 0,
            crc: crc32fast::Hasher::new(),
        };
        write(&mut encoder);
        let (bytes, crc) = (encoder.bytes, encoder.crc.finalize());
        let packed = encoder.inner.finish().unwrap();
        let mut fixed = Vec::new();
        fixed.extend_from_slice(&[20, 0, 0, 8, 8, 0, 0, 0, 0, 0]);
        fixed.extend_from_slice(&crc.to_le_bytes());
        fixed.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        fixed.extend_from_slice(&(bytes as u32).to_le_bytes());
        fixed.extend_from_slice(&(name.len() as u16).to_le_bytes());
        fixed.extend_from_slice(&[0, 0]);
        self.table.extend_from_slice(b"PK\x01\x02\x14\x00");
        self.table.extend_from_slice(&fixed);
        self.table.extend_from_slice(&[0; 10]);
        self.table.extend_from_slice(&(self.at as u32).to_le_bytes());
        self.table.extend_from_slice(name.as_bytes());
        self.count += 1;
        for bytes in [b"PK\x03\x04".as_slice(), &fixed, name.as_bytes(), &packed] {
            self.to.write_all(bytes).unwrap();
            self.at += bytes.len() as u64;
        }
    }

    pub fn finish(mut self) -> W {
        let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
        end.extend_from_slice(&self.count.to_le_bytes());
        end.extend_from_slice(&self.count.to_le_bytes());
        end.extend_from_slice(&(self.table.len() as u32).to_le_bytes());
        end.extend_from_slice(&(self.at as u32).to_le_bytes());
        end.extend_from_slice(&[0, 0]);
        self.to.write_all(&self.table).unwrap();
        self.to.write_all(&end).unwrap();
        self.to
    }
}

struct Counting {
    inner: flate2::write::DeflateEncoder<Vec<u8>>,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
