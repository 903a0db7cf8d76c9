//! Following a chain: what holds, and where it breaks first.

use std::collections::BTreeMap;
use std::io::Read;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use uuid::Uuid;

use super::chain::{BEGINNING, Hash, Keeping, Sealed, Sealer};
use super::line::{self, Export};

/// How a chain breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BreakKind {
    /// The entry is not what was sealed: something in it was changed.
    Hash,
    /// The entry does not continue the one before it: one of the two was replaced.
    Link,
    /// Entries before this one are gone.
    Missing,
    /// The entry stands where it does not belong: twice, or before its predecessor.
    Order,
    /// The entry belongs to another chain.
    Foreign,
    /// What stands there is no sealed entry.
    Unreadable,
    /// The chain ends before its head.
    Truncated,
    /// The chain does not go through a head that was kept elsewhere.
    Head,
}

/// The first place at which a chain does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// In which way.
    pub kind: BreakKind,
    /// The sequence at which it is seen.
    pub sequence: Option<u64>,
    /// The entry there.
    pub entry: Option<Uuid>,
    /// Its time, in milliseconds since 1970.
    pub timestamp: Option<i64>,
    /// The line of the file, from 1.
    pub line: Option<u64>,
    /// The hash that was to be there.
    pub expected: Option<Hash>,
    /// The hash that is there.
    pub found: Option<Hash>,
    /// What was seen, as a sentence.
    pub message: String,
}

impl Break {
    pub(super) fn new(kind: BreakKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            sequence: None,
            entry: None,
            timestamp: None,
            line: None,
            expected: None,
            found: None,
            message: message.into(),
        }
    }

    fn at(kind: BreakKind, link: &Link, message: impl Into<String>) -> Self {
        Self {
            sequence: Some(link.sequence),
            entry: Some(link.entry),
            timestamp: Some(link.timestamp),
            ..Self::new(kind, message)
        }
    }
}

/// A sealed entry as a link of its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    organization: Option<Uuid>,
    sequence: u64,
    entry: Uuid,
    timestamp: i64,
    previous: Hash,
    hash: Hash,
    erased: bool,
}

impl Link {
    pub(super) fn of(sealed: &Sealed<'_>) -> Self {
        Self {
            organization: sealed.record.organization,
            sequence: sealed.sequence,
            entry: sealed.record.id,
            timestamp: sealed.record.timestamp,
            previous: sealed.previous,
            hash: sealed.hash,
            erased: [sealed.actor, sealed.subject].iter().any(|keeping| matches!(keeping, Keeping::Erased(_))),
        }
    }

    /// Whether the entry is what was sealed.
    fn check(&self, sealer: &mut Sealer, sealed: &Sealed<'_>) -> Result<(), Break> {
        match sealer.hash(&sealed.previous, sealed.sequence, &sealed.record, sealed.actor, sealed.subject) {
            Some(hash) if hash == sealed.hash => Ok(()),
            Some(hash) => Err(Break {
                expected: Some(hash),
                found: Some(sealed.hash),
                ..Break::at(BreakKind::Hash, self, "The entry is not what was sealed: something in it was changed.")
            }),
            None => {
                let message = "The entry has values although they were erased: nothing proves them.";
                Err(Break::at(BreakKind::Hash, self, message))
            }
        }
    }
}

/// A place in a chain: a sequence and the hash there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The sequence; 0 is the place before the first entry.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Head {
    /// The place before the first entry.
    pub const BEGINNING: Self = Self { sequence: 0, hash: BEGINNING };

    /// Reads `SEQUENCE:HASH`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, hash) = text.split_once(':')?;
        Some(Self { sequence: sequence.parse().ok()?, hash: line::hash_of(hash)? })
    }
}

/// What was followed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The organization, as far as an entry told; `Some(None)` is the deployment.
    pub organization: Option<Option<Uuid>>,
    /// The place before the first entry that was followed.
    pub from: Head,
    /// The last place that holds.
    pub to: Head,
    /// Entries that were followed.
    pub count: u64,
    /// Those with erased values.
    pub erased: u64,
}

impl Chain {
    /// Follows a chain from `from` on.
    #[must_use]
    pub fn from(from: Head) -> Self {
        Self { organization: None, from, to: from, count: 0, erased: 0 }
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// The break, when it is not what comes next or not what was sealed.
    pub fn follow(&mut self, sealer: &mut Sealer, sealed: &Sealed<'_>) -> Result<(), Break> {
        let link = Link::of(sealed);
        self.placed(&link)?;
        link.check(sealer, sealed)?;
        self.linked(&link)?;
        self.take(&link);
        Ok(())
    }

    /// Whether the place of `link` is the next one.
    fn placed(&self, link: &Link) -> Result<(), Break> {
        if self.organization.is_some_and(|organization| organization != link.organization) {
            return Err(Break::at(BreakKind::Foreign, link, "The entry belongs to another organization's chain."));
        }
        let next = self.to.sequence + 1;
        if link.sequence < next {
            let message = format!("The entry stands after entry {}, where it does not belong.", self.to.sequence);
            return Err(Break::at(BreakKind::Order, link, message));
        }
        if link.sequence > next {
            let gone = if link.sequence == next + 1 {
                format!("Entry {next} is missing.")
            } else {
                format!("Entries {next} to {} are missing.", link.sequence - 1)
            };
            return Err(Break { sequence: Some(next), ..Break::at(BreakKind::Missing, link, gone) });
        }
        Ok(())
    }

    /// Whether `link` continues what was followed.
    fn linked(&self, link: &Link) -> Result<(), Break> {
        if link.previous == self.to.hash {
            return Ok(());
        }
        let message = "The entry does not continue the one before it: one of the two was replaced.";
        Err(Break {
            expected: Some(self.to.hash),
            found: Some(link.previous),
            ..Break::at(BreakKind::Link, link, message)
        })
    }

    fn take(&mut self, link: &Link) {
        self.organization = Some(link.organization);
        self.to = Head { sequence: link.sequence, hash: link.hash };
        self.count += 1;
        self.erased += u64::from(link.erased);
    }

    /// Appends a part that was followed by itself, beginning with `first`.
    fn join(&mut self, first: &Link, part: &Self) -> Result<(), Break> {
        self.placed(first)?;
        self.linked(first)?;
        self.organization = part.organization;
        self.to = part.to;
        self.count += part.count;
        self.erased += part.erased;
        Ok(())
    }
}

/// Bytes that one thread reads and follows at a time: few enough to stay in its cache from one to the other.
const PIECE: usize = 256 << 10;
/// Longest line, in bytes: details are small, so this is no export.
const MAX_LINE: usize = 16 << 20;

/// Why a file proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// It holds no entries.
    #[error("the file holds no entries, so there is nothing to prove")]
    Empty,
    /// A filter left entries out.
    #[error(
        "the file was exported with a filter, which leaves entries out: only an export without one can be verified"
    )]
    Filtered,
    /// The chain breaks.
    #[error("{}", .0.message)]
    Broken(Box<Break>),
}

impl From<Break> for FileError {
    fn from(found: Break) -> Self {
        Self::Broken(Box::new(found))
    }
}

/// What a file proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The chain of its lines.
    pub chain: Chain,
    /// When it was exported, in milliseconds since 1970.
    pub exported_at: i64,
}

/// Follows the lines of an export, on all cores, each of which holds [`PIECE`] bytes or its longest line. `heads` were
/// kept elsewhere: the chain must go through each of them that lies in it, and reach the latest.
///
/// # Errors
/// Why the file proves nothing, with the first break when there is one.
pub fn file(from: impl Read + Send, heads: &[Head]) -> Result<Proof, FileError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let reading = Mutex::new(Reading { from, rest: Vec::new(), ended: false, next: 0 });
    let followed = Mutex::new(Followed::default());
    let work = || {
        let mut bytes = Vec::new();
        loop {
            let read = locked(&reading).next(&mut bytes);
            let (number, piece) = match read {
                Ok(None) => break,
                Ok(Some(number)) => (number, Ok(Piece::follow(&bytes, heads))),
                Err((number, error)) => (number, Err(error)),
            };
            if locked(&followed).take(number, piece) {
                locked(&reading).ended = true;
            }
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| thread.join())
    })
    .map_err(|_| std::io::Error::other("a thread of the check ended early"))?;
    let Followed { whole, lines, found, .. } = followed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = found {
        return Err(found);
    }
    let (chain, export) = whole.ok_or(FileError::Empty)?;
    let last = Head {
        sequence: export.last_sequence,
        hash: line::hash_of(&export.last_hash).ok_or_else(|| Break {
            line: Some(1),
            ..Break::new(BreakKind::Unreadable, "The line names a head that is no hash.")
        })?,
    };
    for head in heads.iter().chain([&last]) {
        reached(&chain, *head, lines)?;
    }
    Ok(Proof { chain, exported_at: export.exported_at })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pieces that were followed, joined in the order of the file.
#[derive(Default)]
struct Followed {
    /// What is joined so far.
    whole: Option<(Chain, Export)>,
    lines: u64,
    /// The number of the piece that comes next, and those behind it that are there already.
    next: u64,
    waiting: BTreeMap<u64, std::io::Result<Piece>>,
    /// Why the file proves nothing; what lies behind this is of no interest.
    found: Option<FileError>,
}

impl Followed {
    /// Takes the piece with this number; whether nothing more is to be read.
    fn take(&mut self, number: u64, piece: std::io::Result<Piece>) -> bool {
        self.waiting.insert(number, piece);
        while self.found.is_none()
            && let Some(piece) = self.waiting.remove(&self.next)
        {
            self.next += 1;
            self.found = piece.map_err(FileError::from).and_then(|piece| self.join(piece)).err();
        }
        self.found.is_some()
    }

    fn join(&mut self, piece: Piece) -> Result<(), FileError> {
        let on_line = |mut found: Break, line: u64| {
            found.line.get_or_insert(self.lines + line);
            FileError::from(found)
        };
        if let Some((first, part)) = &piece.chain {
            match &mut self.whole {
                None => {
                    let Some(export) = piece.export else {
                        let message =
                            "The first line does not say how far the export goes: lines before it are missing.";
                        return Err(on_line(Break::at(BreakKind::Missing, first, message), 1));
                    };
                    if export.filtered {
                        return Err(FileError::Filtered);
                    }
                    if export.first_sequence != first.sequence {
                        let message = format!("The export begins with entry {}.", export.first_sequence);
                        return Err(on_line(Break::at(BreakKind::Missing, first, message), 1));
                    }
                    if first.sequence == 1 && first.previous != BEGINNING {
                        let message = "The first entry of the chain continues another one.";
                        return Err(on_line(Break::at(BreakKind::Link, first, message), 1));
                    }
                    self.whole = Some((part.clone(), export));
                }
                Some((chain, _)) => {
                    if piece.export.is_some() {
                        return Err(on_line(another_export(first), 1));
                    }
                    chain.join(first, part).map_err(|found| on_line(found, 1))?;
                }
            }
        }
        if let Some((line, found)) = piece.found {
            return Err(on_line(found, line));
        }
        self.lines += piece.lines;
        Ok(())
    }
}

/// Whether the end of `chain` is not before `head`, nor another one.
fn reached(chain: &Chain, head: Head, lines: u64) -> Result<(), Break> {
    if head.sequence < chain.from.sequence {
        let message = format!(
            "The file begins after entry {}: whether the chain goes through that head cannot be told from it.",
            head.sequence
        );
        return Err(Break { sequence: Some(head.sequence), ..Break::new(BreakKind::Head, message) });
    }
    if head.sequence == chain.from.sequence && head.hash != chain.from.hash {
        return Err(other_head(head, chain.from.hash, None));
    }
    let end =
        Break { sequence: Some(chain.to.sequence + 1), line: Some(lines + 1), ..Break::new(BreakKind::Truncated, "") };
    if head.sequence > chain.to.sequence {
        let message =
            format!("The chain ends with entry {}, but it went on to entry {}.", chain.to.sequence, head.sequence);
        return Err(Break { message, expected: Some(head.hash), ..end });
    }
    if head.sequence == chain.to.sequence && head.hash != chain.to.hash {
        return Err(other_head(head, chain.to.hash, None));
    }
    Ok(())
}

fn another_export(link: &Link) -> Break {
    Break::at(BreakKind::Order, link, "Another export begins here.")
}

pub(super) fn other_head(head: Head, found: Hash, link: Option<&Link>) -> Break {
    let message = format!("Entry {} does not have the hash that was kept: the chain was written anew.", head.sequence);
    Break {
        sequence: Some(head.sequence),
        entry: link.map(|link| link.entry),
        timestamp: link.map(|link| link.timestamp),
        expected: Some(head.hash),
        found: Some(found),
        ..Break::new(BreakKind::Head, message)
    }
}

/// A file that is cut into pieces behind ends of lines.
struct Reading<R> {
    from: R,
    /// What was read behind the last piece.
    rest: Vec<u8>,
    ended: bool,
    /// The number of the next piece.
    next: u64,
}

impl<R: Read> Reading<R> {
    /// Reads the next piece into `piece` and tells its number; `None` at the end. A file that cannot be read ends.
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<Option<u64>, (u64, std::io::Error)> {
        piece.clear();
        if self.ended {
            return Ok(None);
        }
        let number = self.next;
        self.next += 1;
        let filled = self.fill(piece);
        self.ended |= filled.is_err();
        filled.map_err(|error| (number, error))?;
        Ok((!piece.is_empty()).then_some(number))
    }

    fn fill(&mut self, piece: &mut Vec<u8>) -> std::io::Result<()> {
        piece.append(&mut self.rest);
        loop {
            if piece.len() >= PIECE
                && let Some(end) = memchr::memrchr(b'\n', piece)
            {
                self.rest.extend_from_slice(&piece[end + 1..]);
                piece.truncate(end + 1);
                return Ok(());
            }
            if piece.len() > MAX_LINE {
                return Err(std::io::Error::other("it has a line of more than 16 MiB, so it is no export"));
            }
            if self.from.by_ref().take(PIECE as u64).read_to_end(piece)? == 0 {
                self.ended = true;
                return Ok(());
            }
        }
    }
}

/// Some lines that were followed by themselves.
struct Piece {
    lines: u64,
    /// The first link and all of them.
    chain: Option<(Link, Chain)>,
    /// What its first line says about the file.
    export: Option<Export>,
    /// The first break and its line in this piece.
    found: Option<(u64, Break)>,
}

impl Piece {
    fn follow(bytes: &[u8], heads: &[Head]) -> Self {
        let mut piece = Self { lines: 0, chain: None, export: None, found: None };
        let mut sealer = Sealer::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let line;
            (line, rest) = rest.split_at(memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1));
            piece.lines += 1;
            if let Err(found) = piece.line(&mut sealer, line.trim_ascii_end(), heads) {
                piece.found = Some((piece.lines, found));
                break;
            }
        }
        piece
    }

    fn line(&mut self, sealer: &mut Sealer, bytes: &[u8], heads: &[Head]) -> Result<(), Break> {
        let unreadable = |what: String| Break::new(BreakKind::Unreadable, format!("The line {what}."));
        let text = std::str::from_utf8(bytes).map_err(|_| unreadable("is not text in UTF-8".into()))?;
        let (sealed, export) = line::parse(text).map_err(unreadable)?;
        let link = Link::of(&sealed);
        if let Some(export) = export {
            if self.lines != 1 {
                return Err(another_export(&link));
            }
            self.export = Some(export);
        }
        match &mut self.chain {
            Some((_, chain)) => chain.follow(sealer, &sealed)?,
            None => {
                link.check(sealer, &sealed)?;
                let before = Head { sequence: link.sequence.saturating_sub(1), hash: link.previous };
                let mut chain = Chain::from(before);
                chain.take(&link);
                self.chain = Some((link, chain));
            }
        }
        if let Some(head) = heads.iter().find(|head| head.sequence == link.sequence && head.hash != link.hash) {
            return Err(other_head(*head, link.hash, Some(&link)));
        }
        Ok(())
    }
}
