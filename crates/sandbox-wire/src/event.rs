//! The daemon's stream: one JSON object per line ([`Event`]), written by [`write`] and read by
//! [`Reader`], which refuses whatever is not exactly the continuation of what came before.
//!
//! Sequence numbers start at 1 and have no holes. `start`, output and the end (`exit` or `fail`) carry
//! one; the marks of a replay do not.

use std::borrow::Cow;

use base64_simd::STANDARD;
use serde::{Deserialize, Serialize};

use crate::limits::{MAX_EVENT_BASE64, MAX_EVENT_LINE, MAX_MESSAGE_BYTES};
use crate::lines::{BadLine, Lines};
use crate::names::ExecId;

/// Largest number that survives a reader with floating point numbers only.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Which of the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Why an exec did not run, or its output cannot be given exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailCode {
    /// `cwd` is not a directory under the workspace.
    InvalidCwd,
    /// As many commands run as may.
    ExecLimit,
    /// The id was used before.
    DuplicateExec,
    /// The request cannot be carried out as it stands.
    BadRequest,
    /// The command could not be started.
    RuntimeError,
    /// Output that nobody acknowledged exceeded its budget.
    OutputLimit,
    /// The output is not there any more, or not to be trusted.
    ReplayUnavailable,
    /// Events are missing.
    OutputGap,
    /// The disk refused the journal.
    ReplayDiskFull,
}

/// Whether output was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// Of standard output.
    pub stdout: bool,
    /// Of standard error.
    pub stderr: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// 128 + the signal where a signal ended it.
    pub exit_code: i32,
    /// From just before the start to the exit with all output drained; 0 = not measured.
    pub duration_ms: u64,
    /// Output that is missing because a writer was ended.
    #[serde(default)]
    pub truncated: Truncated,
    /// The deadline ended it.
    #[serde(default)]
    pub timed_out: bool,
    /// A cancel ended it.
    #[serde(default)]
    pub cancelled: bool,
    /// What else ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The kernel killed it for memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oom_killed: bool,
    /// Most memory the session held until then, where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
}

/// What the daemon itself ended a command for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Failure {
    /// Silent and idle for the whole window.
    ExecStalled,
}

/// One line of the daemon's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The command was started.
    Start {
        /// Which.
        exec_id: ExecId,
        /// When.
        started_at_ms: u64,
    },
    /// Bytes it wrote.
    Output {
        /// To which of its outputs.
        stream: Stream,
        /// At most [`crate::limits::MAX_EVENT_OUTPUT`].
        bytes: Vec<u8>,
    },
    /// What follows happened before.
    ReplayStart,
    /// Everything up to here happened before.
    ReplayComplete {
        /// The last event of the history; 0 when there is none.
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
    Exit(Exit),
    /// It never ran, or how it ended is not known.
    Fail {
        /// Why.
        code: FailCode,
        /// For people.
        message: String,
    },
}

impl Event {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Exit(_) | Self::Fail { .. })
    }
}

/// An event with its sequence number, where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    /// Its place.
    pub seq: Option<u64>,
    /// What happened.
    pub event: Event,
}

/// Appends an event as one line.
pub fn write(out: &mut Vec<u8>, seq: Option<u64>, event: &Event) {
    match event {
        Event::Output { stream, bytes } => return write_output(out, seq, *stream, bytes),
        Event::Start { exec_id, started_at_ms } => {
            open(out, "start", seq);
            // An id has no character that JSON would escape.
            field(out, "execId", &serde_json::Value::from(exec_id.as_str()));
            field(out, "startedAtMs", &serde_json::Value::from(*started_at_ms));
        }
        Event::ReplayStart => open(out, "replay-start", seq),
        Event::ReplayComplete { through_seq } => {
            open(out, "replay-complete", seq);
            field(out, "throughSeq", &serde_json::Value::from(*through_seq));
        }
        Event::Gap { from_seq, to_seq } => {
            open(out, "gap", seq);
            field(out, "fromSeq", &serde_json::Value::from(*from_seq));
            field(out, "toSeq", &serde_json::Value::from(*to_seq));
        }
        Event::Exit(exit) => {
            open(out, "exit", seq);
            if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(exit) {
                fields.iter().for_each(|(name, value)| field(out, name, value));
            }
        }
        Event::Fail { code, message } => {
            open(out, "fail", seq);
            let message = cut(message, MAX_MESSAGE_BYTES);
            field(out, "code", &serde_json::to_value(code).unwrap_or_default());
            field(out, "message", &serde_json::Value::from(message));
        }
    }
    out.extend_from_slice(b"}\n");
}

/// Appends an output event; the path that bytes in bulk take.
pub fn write_output(out: &mut Vec<u8>, seq: Option<u64>, stream: Stream, bytes: &[u8]) {
    let name = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    out.reserve(bytes.len().div_ceil(3) * 4 + 64);
    open(out, name, seq);
    out.extend_from_slice(b",\"b64\":\"");
    STANDARD.encode_append(bytes, out);
    out.extend_from_slice(b"\"}\n");
}

/// Bytes of the line that [`write_output`] would append.
#[must_use]
pub fn output_line_bytes(seq: u64, stream: Stream, bytes: usize) -> u64 {
    let _ = stream;
    let digits = seq.checked_ilog10().unwrap_or(0) as usize + 1;
    // {"t":"stdout","seq":,"b64":""} and the line feed.
    (31 + digits + bytes.div_ceil(3) * 4) as u64
}

fn open(out: &mut Vec<u8>, name: &str, seq: Option<u64>) {
    out.extend_from_slice(b"{\"t\":\"");
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
    if let Some(seq) = seq {
        field(out, "seq", &serde_json::Value::from(seq));
    }
}

fn field(out: &mut Vec<u8>, name: &str, value: &serde_json::Value) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value.to_string().as_bytes());
}

/// The start of `text` within `limit` bytes, cut between characters.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Why a stream cannot be trusted from here on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadStream {
    /// A record that is none: bad JSON, a bad payload, too long, cut off.
    #[error("the output cannot be read: {0}")]
    Unreadable(String),
    /// A record that does not follow the one before.
    #[error("the output has a hole: event {expected} was due, {found} came")]
    Gap {
        /// The number that was due.
        expected: u64,
        /// The number that came; 0 for none.
        found: u64,
    },
}

impl BadStream {
    /// The code of the contract.
    #[must_use]
    pub fn code(&self) -> FailCode {
        match self {
            Self::Unreadable(_) => FailCode::ReplayUnavailable,
            Self::Gap { .. } => FailCode::OutputGap,
        }
    }

    fn unreadable(why: impl std::fmt::Display) -> Self {
        Self::Unreadable(why.to_string())
    }
}

impl From<BadLine> for BadStream {
    fn from(bad: BadLine) -> Self {
        Self::unreadable(bad)
    }
}

/// Reads a daemon's stream from any split of its bytes.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    cursor: u64,
    failed: Option<BadStream>,
}

impl Reader {
    /// A reader that has seen everything up to `since_seq`; 0 for a new exec.
    #[must_use]
    pub fn new(since_seq: u64) -> Self {
        Self { lines: Lines::new(MAX_EVENT_LINE), cursor: since_seq, failed: None }
    }

    /// The last event that was read, from where an attach continues. Nothing invalid moves it.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Takes the next bytes and hands each event they complete to `each`.
    ///
    /// # Errors
    /// [`BadStream`], now and at every later call.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Numbered)) -> Result<(), BadStream> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let Self { lines, cursor, .. } = self;
        let answer = lines.push(bytes, |line| {
            let numbered = read(line)?;
            advance(cursor, &numbered)?;
            each(numbered);
            Ok(())
        });
        self.failed = answer.as_ref().err().cloned();
        answer
    }

    /// The stream ended.
    ///
    /// # Errors
    /// [`BadStream`] when it ended inside a record.
    pub fn finish(&self) -> Result<(), BadStream> {
        match &self.failed {
            Some(failed) => Err(failed.clone()),
            None => self.lines.finish().map_err(Into::into),
        }
    }
}

/// Moves the cursor over an event that may stand there.
fn advance(cursor: &mut u64, numbered: &Numbered) -> Result<(), BadStream> {
    let expected = *cursor + 1;
    let due = |found: u64| if found == expected { Ok(()) } else { Err(BadStream::Gap { expected, found }) };
    match (&numbered.event, numbered.seq) {
        (Event::ReplayStart, None) => {}
        (Event::ReplayComplete { through_seq }, None) => due(through_seq + 1)?,
        (Event::Gap { from_seq, to_seq }, None) => {
            due(*from_seq)?;
            if to_seq < from_seq {
                return Err(BadStream::unreadable("a gap that ends before it starts"));
            }
            *cursor = *to_seq;
        }
        // A refusal comes before there is anything to number.
        (Event::Fail { .. }, None) => {}
        (_, seq) => {
            due(seq.unwrap_or(0))?;
            *cursor = expected;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    seq: Option<u64>,
    #[serde(borrow)]
    b64: Option<Cow<'a, str>>,
    exec_id: Option<ExecId>,
    started_at_ms: Option<u64>,
    through_seq: Option<u64>,
    from_seq: Option<u64>,
    to_seq: Option<u64>,
    code: Option<FailCode>,
    message: Option<String>,
}

/// Reads one line.
///
/// # Errors
/// [`BadStream::Unreadable`].
pub fn read(line: &[u8]) -> Result<Numbered, BadStream> {
    let text = std::str::from_utf8(line).map_err(|_| BadStream::unreadable("not UTF-8"))?;
    let raw: Raw<'_> = serde_json::from_str(text).map_err(BadStream::unreadable)?;
    let safe = |number: Option<u64>, name: &str| match number {
        Some(number) if number <= MAX_SAFE_INTEGER => Ok(number),
        _ => Err(BadStream::Unreadable(format!("{name} is missing or too large"))),
    };
    if let Some(seq) = raw.seq
        && (seq == 0 || seq > MAX_SAFE_INTEGER)
    {
        return Err(BadStream::unreadable("a sequence number out of range"));
    }
    let event = match &*raw.t {
        "stdout" | "stderr" => {
            let b64 = raw.b64.as_deref().ok_or_else(|| BadStream::unreadable("output without b64"))?;
            if b64.len() > MAX_EVENT_BASE64 {
                return Err(BadStream::unreadable("too much output in one event"));
            }
            let bytes = STANDARD.decode_to_vec(b64).map_err(|_| BadStream::unreadable("output that is not base64"))?;
            Event::Output { stream: if raw.t == "stdout" { Stream::Stdout } else { Stream::Stderr }, bytes }
        }
        "start" => Event::Start {
            exec_id: raw.exec_id.ok_or_else(|| BadStream::unreadable("a start without execId"))?,
            started_at_ms: safe(raw.started_at_ms, "startedAtMs")?,
        },
        "replay-start" => Event::ReplayStart,
        "replay-complete" => Event::ReplayComplete { through_seq: safe(raw.through_seq, "throughSeq")? },
        "gap" => Event::Gap { from_seq: safe(raw.from_seq, "fromSeq")?, to_seq: safe(raw.to_seq, "toSeq")? },
        "exit" => Event::Exit(serde_json::from_str(text).map_err(BadStream::unreadable)?),
        "fail" => Event::Fail {
            code: raw.code.ok_or_else(|| BadStream::unreadable("a fail without code"))?,
            message: raw.message.map(|text| cut(&text, MAX_MESSAGE_BYTES).to_owned()).unwrap_or_default(),
        },
        _ => return Err(BadStream::unreadable("an event of an unknown kind")),
    };
    Ok(Numbered { seq: raw.seq, event })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn output(bytes: &[u8]) -> Event {
        Event::Output { stream: Stream::Stdout, bytes: bytes.to_vec() }
    }

    fn line(seq: Option<u64>, event: &Event) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, seq, event);
        out
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let number = || 0..=MAX_SAFE_INTEGER;
        prop_oneof![
            ("[a-zA-Z0-9_-]{1,64}", number())
                .prop_map(|(id, at)| Event::Start { exec_id: ExecId::new(id).unwrap(), started_at_ms: at }),
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(out, bytes)| Event::Output {
                stream: if out { Stream::Stdout } else { Stream::Stderr },
                bytes
            }),
            Just(Event::ReplayStart),
            number().prop_map(|through_seq| Event::ReplayComplete { through_seq }),
            (number(), number()).prop_map(|(from_seq, to_seq)| Event::Gap { from_seq, to_seq }),
            (any::<i32>(), number(), any::<[bool; 5]>(), prop::option::of(number())).prop_map(
                |(exit_code, duration_ms, flags, memory_peak_bytes)| {
                    Event::Exit(Exit {
                        exit_code,
                        duration_ms,
                        truncated: Truncated { stdout: flags[0], stderr: flags[1] },
                        timed_out: flags[2],
                        cancelled: flags[3],
                        failure: flags[4].then_some(Failure::ExecStalled),
                        oom_killed: flags[0],
                        memory_peak_bytes,
                    })
                }
            ),
            ".{0,80}".prop_map(|message| Event::Fail { code: FailCode::OutputLimit, message }),
        ]
    }

    proptest! {
        #[test]
        fn an_event_is_read_as_it_was_written(event in any_event(), seq in prop::option::of(1..=MAX_SAFE_INTEGER)) {
            let written = line(seq, &event);
            prop_assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1);
            prop_assert_eq!(read(&written[..written.len() - 1]).unwrap(), Numbered { seq, event });
        }

        #[test]
        fn any_split_of_a_stream_gives_the_same_events(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..8),
            since in 0u64..1000,
            cuts in prop::collection::vec(0usize..4000, 0..12),
        ) {
            let mut stream = line(None, &Event::ReplayStart);
            for (number, chunk) in chunks.iter().enumerate() {
                write(&mut stream, Some(since + 1 + number as u64), &output(chunk));
            }
            let last = since + chunks.len() as u64;
            write(&mut stream, None, &Event::ReplayComplete { through_seq: last });
            write(&mut stream, Some(last + 1), &Event::Exit(Exit::default()));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
            cuts.sort_unstable();
            let mut reader = Reader::new(since);
            let mut bytes = Vec::new();
            for pair in cuts.windows(2) {
                reader.push(&stream[pair[0]..pair[1]], |numbered| {
                    if let Event::Output { bytes: more, .. } = numbered.event { bytes.push(more); }
                }).unwrap();
            }
            prop_assert_eq!(bytes, chunks);
            prop_assert_eq!(reader.cursor(), last + 1);
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        #[test]
        fn noise_never_panics_and_never_moves_the_cursor_past_an_error(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(7);
            let mut last = 7;
            let answer = reader.push(&noise, |numbered| last = numbered.seq.unwrap_or(last));
            if answer.is_err() {
                prop_assert_eq!(reader.push(&line(Some(reader.cursor() + 1), &output(b"x")), |_| ()), answer);
            }
        }
    }

    #[test]
    fn lines_look_as_the_contract_has_them() {
        assert_eq!(line(Some(2), &output(b"hi\n")), b"{\"t\":\"stdout\",\"seq\":2,\"b64\":\"aGkK\"}\n");
        assert_eq!(line(None, &Event::ReplayStart), b"{\"t\":\"replay-start\"}\n");
        assert_eq!(line(None, &Event::Gap { from_seq: 1, to_seq: 3 }), b"{\"t\":\"gap\",\"fromSeq\":1,\"toSeq\":3}\n");
        let exit: serde_json::Value =
            serde_json::from_slice(&line(Some(9), &Event::Exit(Exit { exit_code: 3, ..Exit::default() }))).unwrap();
        assert_eq!(
            exit,
            serde_json::json!({"t": "exit", "seq": 9, "exitCode": 3, "durationMs": 0, "timedOut": false,
                "cancelled": false, "truncated": {"stdout": false, "stderr": false}})
        );
        for (seq, size) in [(1, 0), (9, 1), (10, 2), (12_345, 3), (99_999, 49_152)] {
            let written = line(Some(seq), &output(&vec![7; size]));
            assert_eq!(written.len() as u64, output_line_bytes(seq, Stream::Stdout, size));
        }
        let longest = line(Some(MAX_SAFE_INTEGER), &output(&vec![255; crate::limits::MAX_EVENT_OUTPUT]));
        assert!(longest.len() <= MAX_EVENT_LINE);
    }

    #[test]
    fn what_is_not_exactly_the_continuation_is_refused() {
        let gap = |found| BadStream::Gap { expected: 6, found };
        for (text, expected) in [
            (r#"{"t":"stdout","seq":7,"b64":""}"#, Some(gap(7))),
            (r#"{"t":"stdout","seq":5,"b64":""}"#, Some(gap(5))),
            (r#"{"t":"stdout","b64":""}"#, Some(gap(0))),
            (r#"{"t":"exit","exitCode":0,"durationMs":1}"#, Some(gap(0))),
            (r#"{"t":"replay-complete","throughSeq":4}"#, Some(gap(5))),
            (r#"{"t":"gap","fromSeq":7,"toSeq":9}"#, Some(gap(7))),
            (r#"{"t":"gap","fromSeq":6,"toSeq":5}"#, None),
            (r#"{"t":"stdout","seq":6,"b64":"aGkK="}"#, None),
            (r#"{"t":"stdout","seq":6,"b64":"aGk"}"#, None),
            (r#"{"t":"stdout","seq":6,"b64":"a-_="}"#, None),
            (r#"{"t":"stdout","seq":6}"#, None),
            (r#"{"t":"stdout","seq":6.5,"b64":""}"#, None),
            (r#"{"t":"stdout","seq":-6,"b64":""}"#, None),
            (r#"{"t":"stdout","seq":0,"b64":""}"#, None),
            (r#"{"t":"stdout","seq":9007199254740992,"b64":""}"#, None),
            (r#"{"t":"started","seq":6}"#, None),
            (r#"{"t":"fail","seq":6,"code":"WHAT","message":""}"#, None),
            (r#"{"t":"exit","seq":6,"exitCode":"0","durationMs":1}"#, None),
            ("{", None),
            ("", None),
            ("[]", None),
        ] {
            let mut reader = Reader::new(5);
            let answer = reader.push(format!("{text}\n").as_bytes(), |_| ()).unwrap_err();
            match expected {
                Some(expected) => assert_eq!(answer, expected, "{text}"),
                None => assert_eq!(answer.code(), FailCode::ReplayUnavailable, "{text}"),
            }
            assert_eq!(reader.cursor(), 5, "{text}");
        }
        let mut reader = Reader::new(5);
        reader.push(b"{\"t\":\"stdout\",\"seq\":6,\"b64\":\"\",\"new\":[1]}\n", |_| ()).unwrap();
        assert_eq!(reader.cursor(), 6, "unknown fields are allowed");
        assert_eq!(
            Reader::new(0).push(&vec![b'x'; MAX_EVENT_LINE + 1], |_| ()).unwrap_err().code(),
            FailCode::ReplayUnavailable
        );
        reader.push(b"{\"t\"", |_| ()).unwrap();
        assert_eq!(reader.finish().unwrap_err().code(), FailCode::ReplayUnavailable);
    }
}
