//! Extraction and chunking for asynchronous callers.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::sync::mpsc;

use crate::chunk::{Chunk, Chunker};
use crate::extract::extract_to_chunks;
use crate::kind::Kind;
use crate::limits::WALL_CLOCK;
use crate::outcome::ExtractError;
use crate::process::{ExtractProcess, ExtractProgram, OwnedPiece};

/// Chunks that a reader thread hands over at once: waking the consumer costs more than a chunk.
const BATCH: usize = 16;
/// Batches on their way from a reader thread to the consumer.
const BATCHES_IN_FLIGHT: usize = 1;

/// The chunks of one document, one after the other, with a bounded number in memory.
///
/// Formats that unpack or nest run in a child process ([`Kind::needs_process`]), plain ones on a thread of the
/// blocking pool. Dropping the stream ends either.
///
/// A refusal can come after chunks were delivered (a credential on the last page): nothing delivered may become
/// searchable before [`next`](Self::next) has answered `Ok(None)`.
#[derive(Debug)]
pub struct ChunkStream {
    source: Source,
    chars: u64,
}

#[derive(Debug)]
enum Source {
    Process { process: Box<ExtractProcess>, chunker: Box<Chunker>, finished: bool },
    Thread { batches: mpsc::Receiver<Result<Vec<Chunk>, ExtractError>>, chunks: std::vec::IntoIter<Chunk> },
}

impl ChunkStream {
    /// Starts extracting the file at `path` (absolute). Needs a Tokio runtime.
    ///
    /// # Errors
    /// `indexer_error` when no process can be started.
    pub fn open(program: &ExtractProgram, path: &Path, kind: Kind, title: &str) -> Result<Self, ExtractError> {
        let source = if kind.needs_process() {
            Source::Process {
                process: Box::new(ExtractProcess::start(program, path, kind)?),
                chunker: Box::new(Chunker::new(title, kind.has_headings())),
                finished: false,
            }
        } else {
            let batches = on_thread(path.to_owned(), kind, title.to_owned());
            Source::Thread { batches, chunks: Vec::new().into_iter() }
        };
        Ok(Self { source, chars: 0 })
    }

    /// The next chunk; `Ok(None)` when the document was read to its end without a refusal. Cancel-safe.
    ///
    /// # Errors
    /// See [`crate::extract`] and [`ExtractProcess::next`].
    pub async fn next(&mut self) -> Result<Option<Chunk>, ExtractError> {
        let chunk = match &mut self.source {
            Source::Thread { batches, chunks } => {
                if chunks.len() == 0
                    && let Some(batch) = batches.recv().await
                {
                    *chunks = batch?.into_iter();
                }
                chunks.next()
            }
            Source::Process { process, chunker, finished } => loop {
                if let Some(chunk) = chunker.pop() {
                    break Some(chunk);
                }
                if *finished {
                    break None;
                }
                match process.next().await? {
                    Some(OwnedPiece::Text(text)) => chunker.push(&text),
                    Some(OwnedPiece::Page(number)) => chunker.page(number),
                    None => {
                        chunker.finish();
                        *finished = true;
                    }
                }
            },
        };
        if let Some(chunk) = &chunk {
            self.chars = chunk.end;
        }
        Ok(chunk)
    }

    /// The length of the extracted text delivered so far, in Unicode scalar values.
    #[must_use]
    pub fn chars(&self) -> u64 {
        self.chars
    }
}

fn on_thread(path: PathBuf, kind: Kind, title: String) -> mpsc::Receiver<Result<Vec<Chunk>, ExtractError>> {
    let (sender, receiver) = mpsc::channel(BATCHES_IN_FLIGHT);
    tokio::task::spawn_blocking(move || {
        // Time spent waiting for the consumer does not count.
        let begun = Instant::now();
        let waited = std::cell::Cell::new(std::time::Duration::ZERO);
        let keep_going = || begun.elapsed().saturating_sub(waited.get()) < WALL_CLOCK && !sender.is_closed();
        let mut batch = Vec::with_capacity(BATCH);
        let outcome = extract_to_chunks(&path, kind, &title, &keep_going, &mut |chunk| {
            batch.push(chunk);
            if batch.len() < BATCH {
                return ControlFlow::Continue(());
            }
            let sending = Instant::now();
            let sent = sender.blocking_send(Ok(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))));
            waited.set(waited.get() + sending.elapsed());
            if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let _ = sender.blocking_send(outcome.map(|_chars| batch));
    });
    receiver
}
