//! One extraction, start to end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::chunk::{Chunk, Chunker};
use crate::kind::{HEAD_BYTES, Kind, check_head};
use crate::outcome::{ExtractError, Halt};
use crate::sink::{Out, Piece};
use crate::text;

/// Extracts the text of the file at `path`, handing it on piece by piece.
///
/// `keep_going` is asked between steps of work; when it answers no, the extraction ends with `indexer_error`.
/// `on_piece` ends the extraction early, and successfully, with [`ControlFlow::Break`].
/// A refusal can come after pieces were handed on (a credential at the very end): the caller discards them then.
///
/// # Errors
/// The codes of [`crate::OutcomeCode`] except those that the name alone decides. A panic of a reader is `malformed`.
pub fn extract(
    path: &Path,
    kind: Kind,
    keep_going: &dyn Fn() -> bool,
    on_piece: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Result<(), ExtractError> {
    let outcome = catch_unwind(AssertUnwindSafe(|| run(path, kind, keep_going, on_piece)));
    match outcome {
        Ok(Ok(()) | Err(Halt::Stopped)) => Ok(()),
        Ok(Err(Halt::Refused(error))) => Err(error),
        Err(_) => Err(ExtractError::malformed("The file is damaged: its reader gave up on it.")),
    }
}

fn run(
    path: &Path,
    kind: Kind,
    keep_going: &dyn Fn() -> bool,
    on_piece: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Result<(), Halt> {
    let mut file = File::open(path)?;
    let mut head = Vec::with_capacity(HEAD_BYTES);
    (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    check_head(kind, &head)?;
    file.seek(SeekFrom::Start(0))?;
    let mut out = Out::new(on_piece, keep_going);
    match kind {
        Kind::Plain | Kind::Markdown | Kind::Code => text::extract(file, &head, &mut out)?,
        Kind::Csv => crate::csv::extract(file, &head, &mut out)?,
        Kind::Json => crate::json::extract(file, &head, &mut out)?,
        Kind::Html => crate::html::extract(file, &head, &mut out)?,
        Kind::Pdf => crate::pdf::extract(file, &mut out)?,
        Kind::Docx => crate::docx::extract(file, &mut out)?,
        Kind::Xlsx => crate::xlsx::extract(file, &mut out)?,
        Kind::Pptx => crate::pptx::extract(file, &mut out)?,
        Kind::Odt => crate::odt::extract(file, &mut out)?,
    }
    out.finish(match kind {
        Kind::Pdf => "The PDF has no text layer: its pages are pictures.",
        _ => "There is no text in the file.",
    })
}

/// Extracts and chunks in one go, in this process and thread; returns the length of the extracted text in Unicode
/// scalar values. See [`extract`] for `keep_going`, early ends and errors.
///
/// # Errors
/// As [`extract`].
pub fn extract_to_chunks(
    path: &Path,
    kind: Kind,
    title: &str,
    keep_going: &dyn Fn() -> bool,
    on_chunk: &mut dyn FnMut(Chunk) -> ControlFlow<()>,
) -> Result<u64, ExtractError> {
    let mut chunker = Chunker::new(title, kind.has_headings());
    let mut stopped = false;
    extract(path, kind, keep_going, &mut |piece| {
        match piece {
            Piece::Text(text) => chunker.push(text),
            Piece::Page(number) => chunker.page(number),
        }
        while let Some(chunk) = chunker.pop() {
            if on_chunk(chunk).is_break() {
                stopped = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    if stopped {
        return Ok(chunker.chars());
    }
    chunker.finish();
    while let Some(chunk) = chunker.pop() {
        if on_chunk(chunk).is_break() {
            break;
        }
    }
    Ok(chunker.chars())
}
