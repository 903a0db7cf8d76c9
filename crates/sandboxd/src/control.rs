//! What daemon and supervisor say to each other, one JSON object per line over a Unix socket. The first
//! connection is the supervisor's descriptor 0; a daemon that was started anew connects to the socket
//! [`SOCKET`] in the exec's directory.

use serde::{Deserialize, Serialize};
use tale_sandbox_wire::event::FailCode;
use tale_sandbox_wire::exec::StdinRefusal;

/// Name of the supervisor's socket in the exec's directory.
pub const SOCKET: &str = "ctl";

/// Length of the key that a later daemon sends first, without a line feed. Other processes of the session
/// can open the socket too.
pub const KEY_BYTES: usize = 64;

/// Longest line: a launch carries a request of up to 8 MiB with its text escaped.
pub const MAX_LINE: usize = 64 << 20;

/// A command to run. Travels over the socket, never as an argument.
#[derive(Debug, Serialize, Deserialize)]
pub struct Launch {
    /// The exec's directory, an absolute path.
    pub dir: String,
    /// The request's name for it.
    pub exec_id: String,
    /// What a daemon that comes later must know: [`KEY_BYTES`] characters.
    pub key: String,
    /// When it was accepted, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it starts, an absolute path that was checked.
    pub cwd: String,
    /// All its variables.
    pub env: Vec<(String, String)>,
    /// First bytes of its standard input.
    pub stdin_b64: String,
    /// Whether more may follow.
    pub hold: bool,
    /// How long it may go on while nobody follows.
    pub timeout_ms: u64,
    /// Silence and idleness that end it; 0 = never.
    pub stall_ms: u64,
}

/// From the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The first line, once.
    Start(Box<Launch>),
    /// Appends to the standard input.
    Stdin {
        /// Names the answer.
        id: u64,
        /// The bytes.
        b64: String,
        /// Whether the standard input ends after them.
        eof: bool,
    },
    /// Ends the command: with everything below it, or only its own process group.
    Cancel {
        /// Whether what is outside the group stays.
        keep: bool,
    },
    /// Whether anybody follows the output; the deadline runs while nobody does.
    Followed(bool),
    /// A checkpoint covers everything up to here.
    Acknowledged(u64),
    /// Ends what the command left behind.
    Sweep {
        /// Whether it is killed at once.
        now: bool,
    },
    /// The session stops: ends everything at once.
    Stop,
}

/// How far the journal goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The last event.
    pub seq: u64,
    /// First event of the segment it stands in.
    pub segment: u64,
    /// Where the event ends in that segment.
    pub offset: u64,
    /// Bytes of all events so far, encoded.
    pub encoded: u64,
    /// Bytes of all events so far, on disk.
    pub stored: u64,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// `None` when it never ran, or its end is not known.
    pub exit_code: Option<i32>,
    /// An end the journal could not take.
    pub unwritten: Option<(FailCode, String)>,
}

/// From the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The journal has grown.
    Reach(Reach),
    /// Nothing follows in the journal; leftovers may still run.
    Ended(End),
    /// Answer to a line of standard input.
    Stdin {
        /// Names the question.
        id: u64,
        /// Why it was not taken.
        refusal: Option<StdinRefusal>,
    },
}

/// One message as a line.
#[must_use]
pub fn line<T: Serialize>(message: &T) -> Vec<u8> {
    // The messages have no value that JSON cannot say.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
