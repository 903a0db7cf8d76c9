//! Text out of files, and passages out of text.
//!
//! [`extract`] reads a file of a known [`Kind`] and hands its text on in [`Piece`]s; a [`Chunker`] cuts text into
//! [`Chunk`]s; [`ChunkStream`] does both for callers, in a child process where the format asks for it.
//! Everything streams: memory stays flat whatever the size of the file.
//!
//! This room knows no database and no network. It never quotes a document in an error and never lets the panic of a
//! parser through. Limits are named in [`limits`].

mod chunk;
mod csv;
mod docx;
mod entities;
mod extract;
mod html;
mod json;
mod kind;
pub mod limits;
mod odt;
mod office;
mod outcome;
mod pdf;
mod pptx;
pub mod process;
mod secrets;
mod sink;
mod stream;
mod text;
mod xlsx;
mod xml;
mod zip;

pub use chunk::{
    CHUNKER_VERSION, Chunk, Chunker, HEADER_CHARS, HEADER_LEVELS, HEADER_SEPARATOR, OVERLAP_CHARS, TARGET_CHARS,
};
pub use extract::{extract, extract_to_chunks};
pub use kind::{Class, HEAD_BYTES, Kind, check_head, classify, extension};
pub use outcome::{ExtractError, OutcomeCode};
pub use process::{ExtractProcess, ExtractProgram};
pub use secrets::{SecretKind, find_secret};
pub use sink::Piece;
pub use stream::ChunkStream;
