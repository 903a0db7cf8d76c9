//! Extraction in a child process, so that a hostile file meets its limits there and not in the server.
//!
//! The child is the same binary started with a hidden subcommand; the binary calls [`child_main`] before it does
//! anything else. It gets no environment, limits its own memory and processor time, and writes frames to standard
//! output: a tag byte, the length as a little-endian `u32`, and that many bytes.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};

use crate::extract::extract;
use crate::kind::Kind;
use crate::limits::{CHILD_ADDRESS_BYTES, CHILD_CPU_SECONDS, CHILD_DATA_BYTES, WALL_CLOCK};
use crate::outcome::{ExtractError, OutcomeCode};
use crate::sink::Piece;

/// The hidden subcommand: `tale extract-file KIND PATH`.
pub const SUBCOMMAND: &str = "extract-file";

const TAG_TEXT: u8 = b'T';
const TAG_PAGE: u8 = b'P';
const TAG_DONE: u8 = b'D';
const TAG_REFUSED: u8 = b'R';
/// No frame is longer than this; a longer one means that the stream is not ours.
const FRAME_BYTES_MAX: usize = 1024 * 1024;

/// The child's whole life. `args` are what follows the subcommand: the kind and the path.
///
/// Call it before any thread is started. Exit code 0 also for refusals, which travel as a frame; 64 for wrong
/// arguments; 74 when nobody reads.
pub fn child_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let kind = args.next().as_deref().and_then(OsStr::to_str).and_then(Kind::from_name);
    let (Some(kind), Some(path), None) = (kind, args.next(), args.next()) else {
        return ExitCode::from(64);
    };
    // The message of a panic could quote the document.
    std::panic::set_hook(Box::new(|_| {}));
    limit(Resource::Core, 0);
    limit(Resource::Data, CHILD_DATA_BYTES);
    limit(Resource::As, CHILD_ADDRESS_BYTES);
    limit(Resource::Cpu, CHILD_CPU_SECONDS);

    let mut stdout = io::stdout().lock();
    let mut broken = false;
    let outcome = extract(Path::new(&path), kind, &|| true, &mut |piece| {
        let written = match piece {
            Piece::Text(text) => frame(&mut stdout, TAG_TEXT, text.as_bytes()),
            Piece::Page(number) => frame(&mut stdout, TAG_PAGE, &number.to_le_bytes()),
        };
        broken |= written.is_err();
        if broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let written = match outcome {
        Ok(()) => frame(&mut stdout, TAG_DONE, &[]),
        Err(error) => frame(&mut stdout, TAG_REFUSED, format!("{}\n{}", error.code, error.message).as_bytes()),
    };
    if broken || written.and_then(|()| stdout.flush()).is_err() { ExitCode::from(74) } else { ExitCode::SUCCESS }
}

/// A limit that cannot be set (an even lower one is in force) is no reason to stop.
fn limit(resource: Resource, value: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
}

fn frame(to: &mut impl Write, tag: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    to.write_all(&[tag])?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(payload)
}

/// The program that becomes the child.
#[derive(Debug, Clone)]
pub struct ExtractProgram {
    program: PathBuf,
    subcommand: Option<&'static str>,
    scratch: Option<PathBuf>,
}

impl ExtractProgram {
    /// The running binary itself with [`SUBCOMMAND`].
    ///
    /// # Errors
    /// When the path of the running binary cannot be found.
    pub fn this_binary() -> io::Result<Self> {
        // On Linux this link stays right when the file on disk is replaced by a newer release.
        let link = Path::new("/proc/self/exe");
        let program = if link.exists() { link.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, subcommand: Some(SUBCOMMAND), scratch: None })
    }

    /// A program whose `main` is nothing but [`child_main`].
    #[must_use]
    pub fn dedicated(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), subcommand: None, scratch: None }
    }

    /// Where the child puts its unnamed temporary files (large spreadsheets); the system's place otherwise.
    #[must_use]
    pub fn with_scratch_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.scratch = Some(dir.into());
        self
    }
}

/// What the child sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedPiece {
    /// See [`Piece::Text`].
    Text(String),
    /// See [`Piece::Page`].
    Page(u32),
}

/// A running extraction in a child process. Dropping it kills the child.
#[derive(Debug)]
pub struct ExtractProcess {
    child: Child,
    stdout: ChildStdout,
    received: Vec<u8>,
    read_to: usize,
    waited: Duration,
    ended: bool,
}

impl ExtractProcess {
    /// Starts the child on the file at `path`. Needs a Tokio runtime.
    ///
    /// # Errors
    /// `indexer_error` when no process can be started.
    pub fn start(program: &ExtractProgram, path: &Path, kind: Kind) -> Result<Self, ExtractError> {
        if !path.is_absolute() {
            return Err(ExtractError::indexer("The stored file has no absolute path."));
        }
        let mut command = Command::new(&program.program);
        command.args(program.subcommand).arg(kind.name()).arg(path);
        command.env_clear().current_dir("/").kill_on_drop(true);
        // The program's allocator would claim a gigabyte ahead, beyond the child's limit.
        command.env("MIMALLOC_ARENA_RESERVE", "0");
        if let Some(dir) = &program.scratch {
            command.env("TMPDIR", dir);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let could_not =
            |error: io::Error| ExtractError::indexer(format!("The reader could not be started ({}).", error.kind()));
        let mut child = command.spawn().map_err(could_not)?;
        let stdout = child.stdout.take().ok_or_else(|| could_not(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { child, stdout, received: Vec::new(), read_to: 0, waited: Duration::ZERO, ended: false })
    }

    /// The child's process id while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The next piece; `None` at the good end. Cancel-safe.
    ///
    /// Only the time spent waiting for the child counts against [`WALL_CLOCK`].
    ///
    /// # Errors
    /// What the child reports; `malformed` when the file drove it over its limits; `indexer_error` when it took too
    /// long or vanished.
    pub async fn next(&mut self) -> Result<Option<OwnedPiece>, ExtractError> {
        loop {
            if self.ended {
                return Ok(None);
            }
            if let Some(frame) = self.take_frame()? {
                return Ok(frame);
            }
            let begun = Instant::now();
            let left = WALL_CLOCK.saturating_sub(self.waited);
            let waiting = Waiting { begun, waited: &mut self.waited };
            self.received.reserve(64 * 1024);
            let read = tokio::time::timeout(left, self.stdout.read_buf(&mut self.received)).await;
            drop(waiting);
            match read {
                Err(_) => {
                    self.ended = true;
                    let _ = self.child.start_kill();
                    return Err(ExtractError::indexer(
                        "Reading the file took longer than ten minutes and was stopped.",
                    ));
                }
                Ok(Ok(bytes)) if bytes > 0 => {}
                Ok(_) => {
                    let status = self.child.wait().await.ok();
                    self.ended = true;
                    return Err(died(status));
                }
            }
        }
    }

    fn take_frame(&mut self) -> Result<Option<Option<OwnedPiece>>, ExtractError> {
        let broken = || ExtractError::indexer("The reader sent something that is not an extraction.");
        let waiting = &self.received[self.read_to..];
        let Some((head, rest)) = waiting.split_first_chunk::<5>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(broken());
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = match head[0] {
            TAG_TEXT => Some(OwnedPiece::Text(String::from_utf8(payload.to_vec()).map_err(|_| broken())?)),
            TAG_PAGE => Some(OwnedPiece::Page(u32::from_le_bytes(payload.try_into().map_err(|_| broken())?))),
            TAG_DONE => {
                self.ended = true;
                None
            }
            TAG_REFUSED => {
                let text = std::str::from_utf8(payload).map_err(|_| broken())?;
                let (code, message) = text.split_once('\n').ok_or_else(broken)?;
                self.ended = true;
                return Err(ExtractError::new(OutcomeCode::from_wire(code).ok_or_else(broken)?, message));
            }
            _ => return Err(broken()),
        };
        self.read_to += 5 + length;
        if self.read_to == self.received.len() {
            self.received.clear();
            self.read_to = 0;
        } else if self.read_to > 256 * 1024 {
            self.received.drain(..self.read_to);
            self.read_to = 0;
        }
        Ok(Some(frame))
    }
}

/// Adds the time it lives to a sum, also when the waiting future is dropped.
struct Waiting<'a> {
    begun: Instant,
    waited: &'a mut Duration,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *self.waited += self.begun.elapsed();
    }
}

fn died(status: Option<ExitStatus>) -> ExtractError {
    #[cfg(unix)]
    let signal = status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status));
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    match signal {
        // SIGABRT: out of memory (or stack). SIGSEGV, SIGBUS: the stack ran over.
        Some(6 | 7 | 11) => ExtractError::malformed("The file needs more memory to read than a document may."),
        // SIGXCPU and what follows it.
        Some(24) => ExtractError::malformed("The file takes more time to read than a document may."),
        _ => ExtractError::indexer("The reader stopped before the end of the file."),
    }
}
