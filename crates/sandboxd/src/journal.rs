//! The journal of one exec: segments of records in the exec's directory, written by its supervisor and
//! read by the daemon. It is the only history of output.
//!
//! A segment is named by its first event. A record is 20 bytes of head (kind, length, sequence number,
//! checksum) and its payload: bytes of output as they came, or the line of another event. A reader never
//! looks past the reach the writer reported, so it never sees half a record; a writer that died leaves at
//! most one, which the checksum tells.
//!
//! Finding an event is a directory listing and a walk over the heads of one segment of at most
//! [`SEGMENT_BYTES`]; the page cache makes that a matter of microseconds, so there is no index to keep.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, Mode, OFlags};
use tale_sandbox_wire::event::{self, Event, Stream};
use tale_sandbox_wire::limits::MAX_EVENT_OUTPUT;

use crate::control::Reach;

/// From here on a new segment is begun.
pub const SEGMENT_BYTES: u64 = 4 << 20;
/// Bytes of a record before its payload.
pub const HEAD: usize = 20;
/// Longest payload: output, or the line of another event.
pub const MAX_PAYLOAD: usize = MAX_EVENT_OUTPUT;

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A line of the stream that is neither output nor an end.
    Line,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The line of an end.
    End,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Line, Self::Stdout, Self::Stderr, Self::End];

    fn of_output(stream: Stream) -> Self {
        match stream {
            Stream::Stdout => Self::Stdout,
            Stream::Stderr => Self::Stderr,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Line => 1,
            Self::Stdout => 2,
            Self::Stderr => 3,
            Self::End => 4,
        }
    }
}

/// One record of a segment.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it holds.
    pub kind: Kind,
    /// Its event.
    pub seq: u64,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// Name of the segment that begins with `first`.
#[must_use]
pub fn segment_name(first: u64) -> String {
    format!("seg-{first:020}")
}

fn put(out: &mut Vec<u8>, kind: Kind, seq: u64, payload: &[u8]) {
    let mut head = [0; HEAD];
    head[0] = kind.code();
    head[4..8].copy_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    head[8..16].copy_from_slice(&seq.to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head[..16]);
    sum.update(payload);
    head[16..].copy_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload);
}

/// Reads the record at the start of `bytes` and says how long it is. `Ok(None)` when it is not whole.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] when it is none.
pub fn take(bytes: &[u8]) -> io::Result<Option<(Record<'_>, usize)>> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(4) as usize;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "a damaged journal");
    let kind = Kind::ALL.into_iter().find(|kind| kind.code() == head[0]).ok_or_else(bad)?;
    if length > MAX_PAYLOAD {
        return Err(bad());
    }
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head[..16]);
    sum.update(payload);
    if sum.finalize() != number(16) {
        return Err(bad());
    }
    let seq = u64::from(number(8)) | u64::from(number(12)) << 32;
    Ok(Some((Record { kind, seq, payload }, HEAD + length)))
}

/// Writes a journal.
#[derive(Debug)]
pub struct Writer {
    dir: OwnedFd,
    file: File,
    reach: Reach,
    batch: Vec<u8>,
}

impl Writer {
    /// Begins the journal in the directory `dir`.
    ///
    /// # Errors
    /// What the file system says; a journal that is there already is one.
    pub fn create(dir: OwnedFd) -> io::Result<Self> {
        let file = create_segment(&dir, 1)?;
        Ok(Self { dir, file, reach: Reach { segment: 1, ..Reach::default() }, batch: Vec::new() })
    }

    /// How far it goes.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Appends output, cut into events between characters. Returns how many bytes at its end were held
    /// back because they are the beginning of a character; none are when `last`.
    ///
    /// # Errors
    /// What the file system says; the journal ends where it ended before then.
    pub fn output(&mut self, stream: Stream, bytes: &[u8], last: bool) -> io::Result<usize> {
        let held = if last { 0 } else { unfinished(bytes) };
        let mut rest = &bytes[..bytes.len() - held];
        let mut next = Reach { ..self.reach };
        while !rest.is_empty() {
            let mut size = rest.len().min(MAX_EVENT_OUTPUT);
            if size < rest.len() {
                size -= unfinished(&rest[..size]);
            }
            let (piece, after) = rest.split_at(size);
            rest = after;
            next.seq += 1;
            next.encoded += event::output_line_bytes(next.seq, stream, piece.len());
            put(&mut self.batch, Kind::of_output(stream), next.seq, piece);
        }
        self.commit(next)?;
        Ok(held)
    }

    /// Appends another event.
    ///
    /// # Errors
    /// As [`Writer::output`].
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let seq = self.reach.seq + 1;
        let mut line = Vec::new();
        event::write(&mut line, Some(seq), event);
        let kind = if event.is_end() { Kind::End } else { Kind::Line };
        put(&mut self.batch, kind, seq, &line);
        self.commit(Reach { seq, encoded: self.reach.encoded + line.len() as u64, ..self.reach })
    }

    fn commit(&mut self, mut next: Reach) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        if self.reach.offset >= SEGMENT_BYTES {
            let first = self.reach.seq + 1;
            self.file = create_segment(&self.dir, first)?;
            next.segment = first;
            next.offset = 0;
        }
        if let Err(error) = self.file.write_all(&batch) {
            // What was written of it must not stand before the next record.
            if next.segment != self.reach.segment {
                let _ = rustix::fs::unlinkat(&self.dir, segment_name(next.segment), AtFlags::empty());
                self.file = open_segment(&self.dir, self.reach.segment, OFlags::WRONLY | OFlags::APPEND)?;
            } else {
                self.file.set_len(self.reach.offset)?;
            }
            return Err(error);
        }
        next.offset += batch.len() as u64;
        next.stored += batch.len() as u64;
        self.reach = next;
        self.batch = batch;
        self.batch.clear();
        Ok(())
    }
}

fn create_segment(dir: &OwnedFd, first: u64) -> io::Result<File> {
    open_segment(dir, first, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)
}

fn open_segment(dir: &OwnedFd, first: u64, how: OFlags) -> io::Result<File> {
    let how = how | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(dir, segment_name(first), how, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(fd))
}

/// Bytes at the end of `bytes` that begin a character and do not finish it.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.len().min(3);
    for back in 1..=tail {
        let byte = bytes[bytes.len() - back];
        let needs = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return 0,
        };
        return if needs > back { back } else { 0 };
    }
    0
}

/// First events of the segments that are there, in order.
///
/// # Errors
/// What the file system says.
pub fn segments(dir: &OwnedFd) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let name = entry?;
        if let Some(first) = name.file_name().to_str().ok().and_then(|name| name.strip_prefix("seg-"))
            && let Ok(first) = first.parse()
        {
            found.push(first);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes the segment that begins with `first`.
///
/// # Errors
/// What the file system says.
pub fn remove_segment(dir: &OwnedFd, first: u64) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(dir, segment_name(first), AtFlags::empty())?)
}

/// Bytes of the segment that begins with `first`.
///
/// # Errors
/// What the file system says.
pub fn segment_bytes(dir: &OwnedFd, first: u64) -> io::Result<u64> {
    let stat = rustix::fs::statat(dir, segment_name(first), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// A place in a journal.
#[derive(Debug)]
pub struct Cursor {
    file: File,
    segment: u64,
    offset: u64,
    /// The next event.
    next: u64,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The events up to here are gone; reading goes on after them.
    #[error("the events up to {0} are not kept any more")]
    Pruned(u64),
    /// The journal is damaged or cannot be read.
    #[error("the journal cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl Cursor {
    /// The place of event `next`.
    ///
    /// # Errors
    /// [`ReadError::Pruned`] when it is gone.
    pub fn seek(dir: &OwnedFd, next: u64) -> Result<Self, ReadError> {
        let all = segments(dir)?;
        let Some(&first) = all.first() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no segment is there").into());
        };
        if first > next {
            return Err(ReadError::Pruned(first - 1));
        }
        let segment = all[all.partition_point(|candidate| *candidate <= next) - 1];
        let file = open_segment(dir, segment, OFlags::RDONLY)?;
        Ok(Self { file, segment, offset: 0, next })
    }

    /// The next event.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Hands the events that follow to `each`, up to about `budget` bytes and never past `reach`.
    ///
    /// # Errors
    /// [`ReadError`]; what was handed over before it counts.
    pub fn read(
        &mut self,
        dir: &OwnedFd,
        reach: &Reach,
        buffer: &mut [u8],
        mut each: impl FnMut(&Record<'_>),
    ) -> Result<(), ReadError> {
        let bad = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
        while self.next <= reach.seq {
            let room = if self.segment == reach.segment { reach.offset.saturating_sub(self.offset) } else { u64::MAX };
            let want = usize::try_from(room).unwrap_or(usize::MAX).min(buffer.len());
            let got = self.file.read_at(&mut buffer[..want], self.offset)?;
            if got == 0 {
                if self.segment == reach.segment {
                    return Err(bad("the journal is shorter than it was").into());
                }
                match open_segment(dir, self.next, OFlags::RDONLY) {
                    Ok(file) => {
                        *self = Self { file, segment: self.next, offset: 0, next: self.next };
                        continue;
                    }
                    // Nobody waits so long that the segment ahead goes, unless a checkpoint covers it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        *self = Self::seek(dir, self.next)?;
                        if self.offset == 0 && self.segment < self.next {
                            return Err(bad("a segment of the journal is missing").into());
                        }
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let mut at = 0;
            let mut handed = false;
            while let Some((record, length)) = take(&buffer[at..got])? {
                if record.seq > self.next {
                    return Err(bad("an event of the journal is missing").into());
                }
                // Before the place that was sought, events are passed over.
                if record.seq == self.next {
                    each(&record);
                    handed = true;
                    self.next += 1;
                }
                at += length;
            }
            if at == 0 {
                return Err(bad("a record of the journal is cut off").into());
            }
            self.offset += at as u64;
            if handed {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Where a journal ends whose writer is gone, and whether its last event is an end.
///
/// # Errors
/// When no event is left to read.
pub fn recover(dir: &OwnedFd) -> io::Result<(Reach, Option<Vec<u8>>)> {
    let all = segments(dir)?;
    let mut reach = Reach::default();
    for first in &all {
        reach.stored += segment_bytes(dir, *first)?;
    }
    let Some(&segment) = all.last() else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no segment is there"));
    };
    let file = open_segment(dir, segment, OFlags::RDONLY)?;
    reach.seq = segment - 1;
    reach.segment = segment;
    let mut buffer = vec![0; MAX_PAYLOAD + HEAD];
    let mut end = None;
    loop {
        let got = file.read_at(&mut buffer, reach.offset)?;
        // Whatever is not a whole record was never reported.
        let Ok(Some((record, length))) = take(&buffer[..got]) else { break };
        if record.seq != reach.seq + 1 {
            break;
        }
        reach.seq = record.seq;
        reach.offset += length as u64;
        end = (record.kind == Kind::End).then(|| record.payload.to_vec());
    }
    reach.encoded = reach.stored / 3 * 4;
    Ok((reach, end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn journal() -> (tempfile::TempDir, OwnedFd, Writer) {
        let dir = tempfile::tempdir().unwrap();
        let open = || OwnedFd::from(File::open(dir.path()).unwrap());
        let (fd, writer) = (open(), Writer::create(open()).unwrap());
        (dir, fd, writer)
    }

    fn read_all(dir: &OwnedFd, from: u64, reach: &Reach, buffer: usize) -> Result<Vec<(u64, Vec<u8>)>, ReadError> {
        let mut cursor = Cursor::seek(dir, from)?;
        let mut buffer = vec![0; buffer];
        let mut found = Vec::new();
        while cursor.next() <= reach.seq {
            cursor.read(dir, reach, &mut buffer, |record| found.push((record.seq, record.payload.to_vec())))?;
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_from_any_event_on(
            pieces in prop::collection::vec((any::<u8>(), 0usize..200_000), 1..12),
            from in 1u64..40,
        ) {
            let (_kept, dir, mut writer) = journal();
            let mut written = Vec::new();
            for (byte, size) in pieces {
                let bytes = vec![byte; size];
                let held = writer.output(Stream::Stdout, &bytes, false).unwrap();
                prop_assert!(held <= 3);
                written.extend_from_slice(&bytes[..size - held]);
            }
            let reach = writer.reach();
            let all = read_all(&dir, 1, &reach, MAX_PAYLOAD + HEAD).unwrap();
            prop_assert!(all.iter().zip(1..).all(|((seq, _), number)| *seq == number));
            prop_assert!(all.iter().all(|(_, bytes)| bytes.len() <= MAX_PAYLOAD));
            prop_assert_eq!(all.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>(), written);
            if from <= reach.seq {
                let rest = read_all(&dir, from, &reach, 256 << 10).unwrap();
                prop_assert_eq!(&rest, &all[usize::try_from(from - 1).unwrap()..]);
            }
            let encoded: u64 = all.iter().map(|(seq, bytes)| event::output_line_bytes(*seq, Stream::Stdout, bytes.len())).sum();
            prop_assert_eq!(encoded, reach.encoded);
        }

        #[test]
        fn text_is_never_cut_inside_a_character(text in "\\PC{0,60}", cut in 0usize..200) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let held = unfinished(&bytes[..cut]);
            prop_assert!(std::str::from_utf8(&bytes[..cut - held]).is_ok());
            prop_assert!(held <= 3);
        }

        #[test]
        fn a_torn_end_is_found(cut in 1u64..100) {
            let (_kept, dir, mut writer) = journal();
            writer.output(Stream::Stdout, b"first", true).unwrap();
            let before = writer.reach();
            writer.output(Stream::Stderr, &[7; 80], true).unwrap();
            let file = open_segment(&dir, 1, OFlags::WRONLY).unwrap();
            file.set_len(writer.reach().offset - cut).unwrap();
            let (reach, end) = recover(&dir).unwrap();
            prop_assert_eq!((reach.seq, reach.offset, end), (before.seq, before.offset, None));
        }
    }

    #[test]
    fn damage_is_told_and_pruned_events_are_named() {
        let (_kept, dir, mut writer) = journal();
        for _ in 0..3 {
            writer.output(Stream::Stdout, &vec![b'x'; usize::try_from(SEGMENT_BYTES).unwrap()], true).unwrap();
        }
        let reach = writer.reach();
        let all = segments(&dir).unwrap();
        assert_eq!(all.len(), 3);
        remove_segment(&dir, all[0]).unwrap();
        assert!(matches!(read_all(&dir, 1, &reach, 1 << 20), Err(ReadError::Pruned(through)) if through == all[1] - 1));
        assert_eq!(read_all(&dir, all[1], &reach, 1 << 20).unwrap().len() as u64, reach.seq - all[1] + 1);
        let file = open_segment(&dir, all[2], OFlags::WRONLY).unwrap();
        file.write_all_at(b"?", 5000).unwrap();
        assert!(matches!(read_all(&dir, all[2], &reach, 1 << 20), Err(ReadError::Io(_))));
        remove_segment(&dir, all[2]).unwrap();
        assert!(
            matches!(read_all(&dir, all[1], &reach, 1 << 20), Err(ReadError::Io(_))),
            "a missing segment is a break"
        );
        assert!(matches!(segments(&dir), Ok(left) if left == [all[1]]));
    }

    #[test]
    fn an_end_is_recovered() {
        let (_kept, dir, mut writer) = journal();
        writer.output(Stream::Stdout, b"x", true).unwrap();
        writer.event(&Event::Exit(event::Exit::default())).unwrap();
        let (reach, end) = recover(&dir).unwrap();
        assert_eq!((reach.seq, reach.offset), (2, writer.reach().offset));
        assert!(end.unwrap().starts_with(b"{\"t\":\"exit\",\"seq\":2"));
    }
}
