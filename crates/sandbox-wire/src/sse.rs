//! The spawner's stream: server-sent events ([`SpawnerEvent`]) and comments that keep the connection.

use base64_simd::STANDARD;
use serde::{Deserialize, Serialize};

use crate::event::{Stream, Truncated};
use crate::limits::MAX_EVENT_BASE64;
use crate::lines::{BadLine, Lines};

/// A comment line; says that the stream lives.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
/// How often a stream that is otherwise silent carries [`KEEP_ALIVE`].
pub const KEEP_ALIVE_EVERY: std::time::Duration = std::time::Duration::from_secs(15);

/// How a command ended, for the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultStatus {
    /// It ran to an exit code of 0.
    Completed,
    /// Anything else that no cancel caused.
    Failed,
    /// A cancel ended it.
    Cancelled,
}

/// Why a command did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// Nobody followed it for its whole deadline.
    Timeout,
    /// A cancel.
    Cancelled,
    /// The directory is none of the workspace's.
    InvalidCwd,
    /// It could not be started.
    RuntimeError,
    /// As many commands run as may.
    ExecLimit,
    /// Silent and idle for the whole window.
    ExecStalled,
    /// The kernel ended it for memory.
    OomKilled,
    /// The kernel ended the whole session for memory.
    SessionOom,
    /// The stream ended without an end of the command.
    SessionLost,
    /// Output that nobody acknowledged exceeded its budget.
    OutputLimit,
    /// The disk refused the journal or a checkpoint.
    ReplayDiskFull,
    /// The output is not there any more.
    ReplayUnavailable,
    /// Events are missing.
    OutputGap,
}

/// The end of an exec's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecResult {
    /// How it ended.
    pub status: ResultStatus,
    /// `None` when there is none to know.
    pub exit_code: Option<i32>,
    /// As measured in the session; 0 = not measured.
    pub duration_ms: u64,
    /// Collected standard output; empty when not asked for, and after an attach.
    pub stdout_base64: String,
    /// Collected standard error.
    pub stderr_base64: String,
    /// Whether the collected output is only the beginning.
    pub truncated: Truncated,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// Phase of an exec; there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The command was started.
    Running,
}

/// One event of the spawner's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnerEvent {
    /// The command was started.
    Phase(Phase),
    /// Bytes it wrote.
    Output {
        /// To which of its outputs.
        stream: Stream,
        /// Its place.
        seq: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// What follows happened before.
    ReplayStart,
    /// Everything up to here happened before.
    ReplayComplete {
        /// The last event of the history.
        through_seq: u64,
    },
    /// Events that a checkpoint covers and that are gone.
    Gap {
        /// The first.
        from_seq: u64,
        /// The last.
        to_seq: u64,
    },
    /// It ended.
    Result(Box<ExecResult>),
    /// The stream cannot go on.
    Error {
        /// For people.
        message: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PhaseData {
    phase: Phase,
}

#[derive(Serialize, Deserialize)]
struct OutputData {
    seq: u64,
    b64: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThroughData {
    through_seq: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GapData {
    from_seq: u64,
    to_seq: u64,
}

#[derive(Serialize, Deserialize)]
struct ErrorData {
    message: String,
}

fn data<T: Serialize>(out: &mut Vec<u8>, name: &str, value: &T) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    let at = out.len();
    // None of the values has anything that JSON cannot say.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(at);
        out.extend_from_slice(b"{}");
    }
    out.extend_from_slice(b"\n\n");
}

/// Appends an event.
pub fn write(out: &mut Vec<u8>, event: &SpawnerEvent) {
    match event {
        SpawnerEvent::Phase(phase) => data(out, "phase", &PhaseData { phase: *phase }),
        SpawnerEvent::Output { stream, seq, bytes } => write_output(out, *stream, *seq, bytes),
        SpawnerEvent::ReplayStart => out.extend_from_slice(b"event: replay-start\ndata: {}\n\n"),
        SpawnerEvent::ReplayComplete { through_seq } => {
            data(out, "replay-complete", &ThroughData { through_seq: *through_seq });
        }
        SpawnerEvent::Gap { from_seq, to_seq } => {
            data(out, "gap", &GapData { from_seq: *from_seq, to_seq: *to_seq });
        }
        SpawnerEvent::Result(result) => data(out, "result", result),
        SpawnerEvent::Error { message } => data(out, "error", &ErrorData { message: message.clone() }),
    }
}

/// Appends an output event; the path that bytes in bulk take.
pub fn write_output(out: &mut Vec<u8>, stream: Stream, seq: u64, bytes: &[u8]) {
    let name: &[u8] = match stream {
        Stream::Stdout => b"event: stdout\ndata: {\"seq\":",
        Stream::Stderr => b"event: stderr\ndata: {\"seq\":",
    };
    let encoded = bytes.len().div_ceil(3) * 4;
    out.reserve(encoded + 96);
    out.extend_from_slice(name);
    out.extend_from_slice(seq.to_string().as_bytes());
    out.extend_from_slice(b",\"b64\":\"");
    STANDARD.encode_append(bytes, out);
    out.extend_from_slice(b"\"}\n\n");
}

/// Why a stream of the spawner cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the spawner's stream cannot be read: {0}")]
pub struct BadSse(pub String);

impl From<BadLine> for BadSse {
    fn from(bad: BadLine) -> Self {
        Self(bad.to_string())
    }
}

/// Reads a spawner's stream from any split of its bytes.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    block: Block,
    failed: Option<BadSse>,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Block {
    name: String,
    data: Option<String>,
}

impl Reader {
    /// A reader whose lines are at most `limit` bytes. A result repeats up to two collected outputs, so the
    /// limit follows the spawner's setting for these.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { lines: Lines::new(limit), block: Block::default(), failed: None }
    }

    /// Takes the next bytes and hands each event they complete to `each`. Comments and events of kinds
    /// that this release does not know are passed over.
    ///
    /// # Errors
    /// [`BadSse`], now and at every later call.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(SpawnerEvent)) -> Result<(), BadSse> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let Self { lines, block, .. } = self;
        let answer = lines.push(bytes, |line| {
            if let Some(event) = block.line(line.strip_suffix(b"\r").unwrap_or(line))? {
                each(event);
            }
            Ok(())
        });
        self.failed = answer.as_ref().err().cloned();
        answer
    }
}

impl Block {
    fn line(&mut self, line: &[u8]) -> Result<Option<SpawnerEvent>, BadSse> {
        let line = std::str::from_utf8(line).map_err(|_| BadSse("not UTF-8".into()))?;
        if line.is_empty() {
            let Self { name, data } = std::mem::take(self);
            return data.map_or(Ok(None), |data| parse(&name, &data));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" if self.data.is_none() => self.data = Some(value.to_owned()),
            "data" => return Err(BadSse("an event with two lines of data".into())),
            _ => {}
        }
        Ok(None)
    }
}

fn parse(name: &str, data: &str) -> Result<Option<SpawnerEvent>, BadSse> {
    fn json<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, BadSse> {
        serde_json::from_str(data).map_err(|error| BadSse(error.to_string()))
    }
    Ok(Some(match name {
        "phase" => SpawnerEvent::Phase(json::<PhaseData>(data)?.phase),
        "stdout" | "stderr" => {
            let OutputData { seq, b64 } = json(data)?;
            if b64.len() > MAX_EVENT_BASE64 {
                return Err(BadSse("too much output in one event".into()));
            }
            let bytes = STANDARD.decode_to_vec(&b64).map_err(|_| BadSse("output that is not base64".into()))?;
            let stream = if name == "stdout" { Stream::Stdout } else { Stream::Stderr };
            SpawnerEvent::Output { stream, seq, bytes }
        }
        "replay-start" => SpawnerEvent::ReplayStart,
        "replay-complete" => SpawnerEvent::ReplayComplete { through_seq: json::<ThroughData>(data)?.through_seq },
        "gap" => {
            let GapData { from_seq, to_seq } = json(data)?;
            SpawnerEvent::Gap { from_seq, to_seq }
        }
        "result" => SpawnerEvent::Result(json(data)?),
        "error" => SpawnerEvent::Error { message: json::<ErrorData>(data)?.message },
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_event() -> impl Strategy<Value = SpawnerEvent> {
        prop_oneof![
            Just(SpawnerEvent::Phase(Phase::Running)),
            (any::<u64>(), prop::collection::vec(any::<u8>(), 0..100)).prop_map(|(seq, bytes)| SpawnerEvent::Output {
                stream: Stream::Stderr,
                seq,
                bytes
            }),
            Just(SpawnerEvent::ReplayStart),
            any::<u64>().prop_map(|through_seq| SpawnerEvent::ReplayComplete { through_seq }),
            any::<(u64, u64)>().prop_map(|(from_seq, to_seq)| SpawnerEvent::Gap { from_seq, to_seq }),
            (any::<Option<i32>>(), ".{0,40}").prop_map(|(exit_code, message)| SpawnerEvent::Result(Box::new(
                ExecResult {
                    status: ResultStatus::Failed,
                    exit_code,
                    duration_ms: 4,
                    stdout_base64: STANDARD.encode_to_string(&message),
                    stderr_base64: String::new(),
                    truncated: Truncated { stdout: true, stderr: false },
                    error_code: Some(ErrorCode::SessionOom),
                    error_message: Some(message),
                }
            ))),
            "(?s).{0,40}".prop_map(|message| SpawnerEvent::Error { message }),
        ]
    }

    proptest! {
        #[test]
        fn any_split_of_a_stream_gives_the_same_events(
            events in prop::collection::vec(any_event(), 0..8),
            cuts in prop::collection::vec(0usize..3000, 0..12),
        ) {
            let mut stream = Vec::new();
            for event in &events {
                write(&mut stream, event);
                stream.extend_from_slice(KEEP_ALIVE);
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
            cuts.sort_unstable();
            let mut reader = Reader::new(1 << 20);
            let mut found = Vec::new();
            for pair in cuts.windows(2) {
                reader.push(&stream[pair[0]..pair[1]], |event| found.push(event)).unwrap();
            }
            prop_assert_eq!(found, events);
        }
    }

    #[test]
    fn events_look_as_the_contract_has_them() {
        let mut out = Vec::new();
        write(&mut out, &SpawnerEvent::Phase(Phase::Running));
        write(&mut out, &SpawnerEvent::Output { stream: Stream::Stdout, seq: 2, bytes: b"hi\n".to_vec() });
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "event: phase\ndata: {\"phase\":\"running\"}\n\nevent: stdout\ndata: {\"seq\":2,\"b64\":\"aGkK\"}\n\n"
        );
    }

    #[test]
    fn a_bad_stream_is_refused_for_good() {
        for bad in [
            "event: stdout\ndata: {\"seq\":1,\"b64\":\"a\"}\n\n",
            "event: result\ndata: {\n\n",
            "data: a\ndata: b\n",
            &"x".repeat(101),
        ] {
            let mut reader = Reader::new(100);
            assert!(reader.push(bad.as_bytes(), |_| ()).is_err(), "{bad}");
            assert!(reader.push(b"\n", |_| ()).is_err(), "{bad}");
        }
        let mut found = 0;
        let stream = b"event: later\r\ndata: {}\r\n\r\nid: 5\r\nevent: replay-start\r\ndata: {}\r\n\r\n";
        Reader::new(100).push(stream, |_| found += 1).unwrap();
        assert_eq!(found, 1);
    }
}
