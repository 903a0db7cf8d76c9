//! Following a chain: what holds, and where it breaks first.

use std::io::Read;
use std::num::NonZero;

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

/// Bytes that one thread follows at a time.
const PIECE: usize = 4 << 20;
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

/// Follows the lines of an export, on all cores, holding a few megabytes for each. `heads` were kept elsewhere:
/// the chain must go through each of them that lies in it, and reach the latest.
///
/// # Errors
/// Why the file proves nothing, with the first break when there is one.
pub fn file(mut from: impl Read, heads: &[Head]) -> Result<Proof, FileError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut reader = Pieces { rest: Vec::new(), ended: false };
    let mut whole: Option<(Chain, Export)> = None;
    let mut lines = 0;
    loop {
        let mut pieces = Vec::with_capacity(threads);
        while pieces.len() < threads
            && let Some(piece) = reader.next(&mut from)?
        {
            pieces.push(piece);
        }
        if pieces.is_empty() {
            break;
        }
        let followed: Vec<Piece> = std::thread::scope(|scope| {
            let running: Vec<_> = pieces.iter().map(|piece| scope.spawn(|| Piece::follow(piece, heads))).collect();
            running.into_iter().map(|thread| thread.join()).collect::<Result<_, _>>()
        })
        .map_err(|_| std::io::Error::other("a thread of the check ended early"))?;
        for piece in followed {
            let on_line = |mut found: Break, line: u64| {
                found.line.get_or_insert(lines + line);
                found
            };
            if let Some((first, part)) = &piece.chain {
                match &mut whole {
                    None => {
                        let Some(export) = piece.export.clone() else {
                            let message =
                                "The first line does not say how far the export goes: lines before it are missing.";
                            return Err(on_line(Break::at(BreakKind::Missing, first, message), 1).into());
                        };
                        if export.filtered {
                            return Err(FileError::Filtered);
                        }
                        if export.first_sequence != first.sequence {
                            let message = format!("The export begins with entry {}.", export.first_sequence);
                            return Err(on_line(Break::at(BreakKind::Missing, first, message), 1).into());
                        }
                        if first.sequence == 1 && first.previous != BEGINNING {
                            let message = "The first entry of the chain continues another one.";
                            return Err(on_line(Break::at(BreakKind::Link, first, message), 1).into());
                        }
                        whole = Some((part.clone(), export));
                    }
                    Some((chain, _)) => {
                        if piece.export.is_some() {
                            return Err(on_line(another_export(first), 1).into());
                        }
                        chain.join(first, part).map_err(|found| on_line(found, 1))?;
                    }
                }
            }
            if let Some((line, found)) = piece.found {
                return Err(on_line(found, line).into());
            }
            lines += piece.lines;
        }
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

/// Cuts a file behind ends of lines.
struct Pieces {
    rest: Vec<u8>,
    ended: bool,
}

impl Pieces {
    fn next(&mut self, from: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
        let mut piece = std::mem::take(&mut self.rest);
        while !self.ended {
            if piece.len() >= PIECE
                && let Some(end) = piece.iter().rposition(|byte| *byte == b'\n')
            {
                self.rest = piece.split_off(end + 1);
                return Ok(Some(piece));
            }
            if piece.len() > MAX_LINE {
                return Err(std::io::Error::other("it has a line of more than 16 MiB, so it is no export"));
            }
            self.ended = from.by_ref().take(PIECE as u64).read_to_end(&mut piece)? == 0;
        }
        Ok((!piece.is_empty()).then_some(piece))
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
        for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
            piece.lines += 1;
            if let Err(found) = piece.line(&mut sealer, bytes.trim_ascii_end(), heads) {
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
