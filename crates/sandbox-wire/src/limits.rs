//! Every bound that both sides of an interface count on.

use std::time::Duration;

/// Port of the daemon inside a session.
pub const DAEMON_PORT: u16 = 8200;

/// How far the clock of a signed request may be from the spawner's.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// How long a signature that was seen is refused again.
pub const REPLAY_WINDOW: Duration = Duration::from_secs(35);
/// Signatures remembered at once; a full memory refuses rather than forgets.
pub const MAX_SEEN_SIGNATURES: usize = 100_000;
/// Longest nonce of a signed request, in bytes.
pub const MAX_NONCE_BYTES: usize = 128;

/// Largest request body of the daemon, and the ceiling of the spawner's own setting.
pub const MAX_BODY_BYTES: usize = 8 << 20;
/// Receipt of a request's head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Receipt of a whole request.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Live execs of one session.
pub const MAX_LIVE_EXECS: usize = 4;
/// Finished execs whose record and output are kept.
pub const KEPT_EXECS: usize = 16;
/// Readers of output (exec and attach) of one session.
pub const MAX_CONSUMERS: usize = 8;
/// What a reader that makes no progress may be behind before it is disconnected.
pub const MAX_PENDING_BYTES: u64 = 8 << 20;
/// How long an attached reader may take nothing.
pub const READER_PATIENCE: Duration = Duration::from_secs(2);

/// Encoded output of one exec that no checkpoint covers.
pub const MAX_UNACKNOWLEDGED_BYTES: u64 = 64 << 20;
/// Bytes of journals and checkpoints of one session on disk.
pub const MAX_JOURNAL_BYTES: u64 = 256 << 20;
/// Most base64 in one output event.
pub const MAX_EVENT_BASE64: usize = 64 << 10;
/// Most output in one event, before its encoding.
pub const MAX_EVENT_OUTPUT: usize = MAX_EVENT_BASE64 / 4 * 3;
/// Longest line of the daemon's stream: one output event and its envelope.
pub const MAX_EVENT_LINE: usize = MAX_EVENT_BASE64 + (16 << 10);
/// Longest message of an event, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 2000;
/// Largest state of a checkpoint.
pub const MAX_CHECKPOINT_BYTES: usize = 1 << 20;
/// Longest record of an agent runtime's own protocol (a line on its standard output), whole or not.
pub const MAX_PROTOCOL_RECORD: usize = 8 << 20;

/// Longest line that may be appended to a held standard input.
pub const MAX_STDIN_LINE: usize = 64 << 10;
/// Bytes that wait for a command to read its standard input.
pub const MAX_STDIN_PENDING: usize = 8 << 20;

/// Deadline of an exec nobody follows, when the request names none.
pub const DEFAULT_EXEC_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest such deadline.
pub const MAX_EXEC_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// From SIGTERM to SIGKILL.
pub const KILL_GRACE: Duration = Duration::from_secs(5);
/// How long processes that a rotation kept wait for the next exec.
pub const LEFTOVER_HOLD: Duration = Duration::from_secs(600);
/// How long a daemon takes to stop.
pub const STOP_BUDGET: Duration = Duration::from_secs(2);

/// Entries of an environment.
pub const MAX_ENV_ENTRIES: usize = 128;
/// Bytes of one value of an environment.
pub const MAX_ENV_VALUE_BYTES: usize = 32 << 10;
/// Bytes of one name of an environment.
pub const MAX_ENV_NAME_BYTES: usize = 256;

/// Largest file fetched from an address.
pub const MAX_STAGED_URL_BYTES: u64 = 100 << 20;
/// Largest file that travels inside the request.
pub const MAX_STAGED_INLINE_BYTES: usize = 1 << 20;
/// Files of one stage request; entries of one list.
pub const MAX_STAGED_FILES: usize = 4096;
/// A whole stage request, fetching included.
pub const STAGE_BUDGET: Duration = Duration::from_secs(25);
/// Stage requests at a time.
pub const MAX_STAGE_REQUESTS: usize = 2;
/// Fetches at a time.
pub const MAX_STAGE_FETCHES: usize = 2;
/// Largest file that can be read.
pub const MAX_READ_BYTES: u64 = 20 << 20;
/// Longest path, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;
/// Entries of a directory listing; the rest is said to be left out.
pub const MAX_LIST_ENTRIES: usize = 10_000;
