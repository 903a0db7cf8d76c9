//! Reading the log: lists, exports and the check of the chain.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_core::{Actor, Problem};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::chain::{Hash, Record, Sealed, Sealer};
use super::line;
use super::store::{self, Ends, Listed, Place, Selection};
use super::verify::{Break, BreakKind, Chain, Head, other_head};
use super::{AuditEntry, record, seal, watch};

/// Entries that one call of [`AuditLog::verify`] follows at most.
pub const MAX_CHECKED: u64 = 250_000;
/// Entries read at once while a chain is followed or exported.
pub const PAGE: i64 = 2_000;
/// Checks and exports that read at the same time in one process.
const READERS: usize = 2;
/// How long a check or an export waits until what was committed before it is sealed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which entries are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this area.
    pub category: Option<String>,
    /// Only failed and denied ones.
    pub unsuccessful: bool,
    /// Only those at this time and later.
    pub from: Option<DateTime<Utc>>,
    /// Only those at this time and earlier.
    pub to: Option<DateTime<Utc>>,
}

impl Filter {
    fn selection(&self, before: Option<Position>) -> Selection {
        let Self { category, unsuccessful, from, to } = self.clone();
        Selection { category, unsuccessful, from, to, before }
    }

    fn admits(&self, record: &Record<'_>) -> bool {
        self.category.as_ref().is_none_or(|category| *category == record.category)
            && (!self.unsuccessful || record.status != "success")
            && self.from.is_none_or(|from| record.timestamp >= from.timestamp_millis())
            && self.to.is_none_or(|to| record.timestamp <= to.timestamp_millis())
    }
}

/// Where a list goes on: after this time and entry.
pub type Position = (DateTime<Utc>, Uuid);

/// An entry for readers.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What is sealed of it.
    pub record: Record<'static>,
    /// Its details.
    pub details: Value,
    /// Its place in the chain and its hash, once it is sealed.
    pub seal: Option<(u64, Hash)>,
}

impl Entry {
    /// The name of what it was done to, when one was recorded.
    #[must_use]
    pub fn resource_name(&self) -> Option<&str> {
        ["name", "title", "key", "slug"].iter().find_map(|field| self.details[field].as_str())
    }

    /// Why it failed or was denied, when that was recorded.
    #[must_use]
    pub fn error_message(&self) -> Option<&str> {
        let why = || ["error", "reason"].iter().find_map(|field| self.details[field].as_str());
        (self.record.status != "success").then(why).flatten()
    }

    fn position(&self) -> Position {
        (DateTime::from_timestamp_millis(self.record.timestamp).unwrap_or_default(), self.record.id)
    }
}

impl From<Listed> for Entry {
    fn from(Listed { record, details, seal }: Listed) -> Self {
        Self { record, details, seal }
    }
}

/// How many entries ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// What was done.
    pub success: i64,
    /// What failed.
    pub failure: i64,
    /// What was refused.
    pub denied: i64,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The place after which it began.
    pub from: u64,
    /// The last place that holds.
    pub to: Head,
    /// The end of the chain when it began.
    pub head: u64,
    /// Entries that were followed.
    pub checked: u64,
    /// Those of them with erased values.
    pub erased: u64,
    /// Entries that are not sealed yet.
    pub unsealed: u64,
    /// Whether there is more to follow, after [`Verification::to`].
    pub truncated: bool,
    /// The first break.
    pub found: Option<Break>,
}

/// The log of every organization. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog {
    pub(super) pool: PgPool,
    pub(super) clock: SharedClock,
    readers: Arc<Semaphore>,
}

impl AuditLog {
    /// The log in `pool`.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock) -> Self {
        Self { pool, clock, readers: Arc::new(Semaphore::new(READERS)) }
    }

    /// At most `limit` entries after `position`, the newest first, and whether there are more.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(
        &self,
        org: OrgId,
        filter: &Filter,
        position: Option<Position>,
        limit: u32,
    ) -> Result<(Vec<Entry>, Option<Position>), Problem> {
        let mut conn = self.pool.acquire().await?;
        let mut rows = store::list(&mut conn, org, &filter.selection(position), i64::from(limit) + 1).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let entries: Vec<Entry> = rows.into_iter().map(Entry::from).collect();
        let next = entries.last().filter(|_| more).map(Entry::position);
        Ok((entries, next))
    }

    /// What happened since `since`.
    ///
    /// # Errors
    /// The database's.
    pub async fn activity(&self, org: OrgId, since: DateTime<Utc>) -> Result<Activity, Problem> {
        let mut conn = self.pool.acquire().await?;
        let mut activity = Activity::default();
        for (status, count) in store::activity(&mut conn, org, since).await? {
            match status.as_str() {
                "failure" => activity.failure = count,
                "denied" => activity.denied = count,
                _ => activity.success = count,
            }
        }
        Ok(activity)
    }

    /// Follows the chain of `org` from its oldest entry, or on from the place `after`, over [`MAX_CHECKED`] entries at most.
    ///
    /// # Errors
    /// `INVALID_QUERY` when there is no place `after`; the database's.
    pub async fn verify(&self, org: OrgId, after: Option<u64>) -> Result<Verification, Problem> {
        let _reading = self.readers.acquire().await.map_err(Problem::internal)?;
        seal::catch_up(&self.pool, PATIENCE).await?;
        let mut conn = self.pool.acquire().await?;
        let ends = store::ends(&mut conn, Some(org)).await?;
        let Ends { base, head, .. } = ends;
        let start = match after {
            None => base,
            Some(sequence) if sequence == base.sequence => base,
            Some(sequence) => {
                let hash = store::hash_at(&mut conn, Some(org), sequence).await?;
                let hash = hash.ok_or_else(|| Problem::invalid_query("after", "must be a place in the chain"))?;
                Head { sequence, hash }
            }
        };
        drop(conn);
        let (chain, found) = self.follow(Some(org), start, ends, MAX_CHECKED, None).await?;
        let mut conn = self.pool.acquire().await?;
        let (entries, sealed) = store::counts(&mut conn, org).await?;
        Ok(Verification {
            from: start.sequence,
            to: chain.to,
            head: head.sequence,
            checked: chain.count,
            erased: chain.erased,
            unsealed: entries.saturating_sub(sealed).try_into().unwrap_or(0),
            truncated: found.is_none() && chain.to.sequence < head.sequence,
            found,
        })
    }

    /// Follows a chain from `start` to its end, over `most` entries at most, through `kept`.
    pub(super) async fn follow(
        &self,
        org: Option<OrgId>,
        start: Head,
        Ends { head, beyond, .. }: Ends,
        most: u64,
        kept: Option<Head>,
    ) -> Result<(Chain, Option<Break>), Problem> {
        let mut chain = Chain { organization: Some(org.map(|org| org.0)), ..Chain::from(start) };
        let last = head.sequence.min(start.sequence.saturating_add(most));
        while chain.to.sequence < last {
            let mut conn = self.pool.acquire().await?;
            let places = store::places(&mut conn, org, chain.to.sequence, last, PAGE).await?;
            drop(conn);
            if places.is_empty() {
                let found = cut(&chain, head);
                return Ok((chain, Some(found)));
            }
            let followed = tokio::task::spawn_blocking(move || follow(chain, places, kept)).await;
            let found;
            (chain, found) = followed.map_err(Problem::internal)?;
            if found.is_some() {
                return Ok((chain, found));
            }
        }
        if chain.to.sequence >= head.sequence && (beyond || chain.to.sequence > head.sequence) {
            let message = "Entries follow the end of the chain that was noted: the note was changed.";
            let found = Break { sequence: Some(head.sequence + 1), ..Break::new(BreakKind::Head, message) };
            return Ok((chain, Some(found)));
        }
        let end = [Some(head), kept.filter(|kept| kept.sequence > head.sequence)].into_iter().flatten();
        for end in end {
            if chain.to.sequence == head.sequence && chain.to != end {
                let found =
                    if end.sequence > head.sequence { cut(&chain, end) } else { other_head(end, chain.to.hash, None) };
                return Ok((chain, Some(found)));
            }
        }
        Ok((chain, None))
    }

    /// Begins an export, which is an entry itself.
    ///
    /// # Errors
    /// The database's.
    pub async fn export(&self, org: OrgId, actor: Actor, format: Format, filter: Filter) -> Result<Export, Problem> {
        let now = self.clock.now();
        let entry = AuditEntry {
            org: Some(org),
            actor,
            action: "audit.exported",
            category: "admin",
            resource_type: "audit_log",
            resource_id: None,
            details: serde_json::json!({
                "format": format.text(),
                "category": filter.category,
                "unsuccessful": filter.unsuccessful,
                "from": filter.from.map(|from| from.timestamp_millis()),
                "to": filter.to.map(|to| to.timestamp_millis()),
            }),
            at: now,
        };
        record(&mut *self.pool.acquire().await?, &entry).await?;
        let course = match format {
            Format::Csv => Course::Csv { begun: false, before: None },
            Format::JsonLines => {
                seal::catch_up(&self.pool, PATIENCE).await?;
                let ends = store::ends(&mut *self.pool.acquire().await?, Some(org)).await?;
                Course::Lines { to: ends.base, head: ends.head, begun: false }
            }
        };
        Ok(Export { log: self.clone(), org, filter, exported_at: now.timestamp_millis(), course: Some(course) })
    }
}

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// The organization; none for the deployment.
    pub organization: Option<Uuid>,
    /// Where its chain ends.
    pub head: Head,
}

/// The end of every chain of the deployment.
///
/// # Errors
/// The database's.
pub async fn heads(pool: &PgPool) -> Result<Vec<ChainHead>, sqlx::Error> {
    let heads = store::all_heads(&mut *pool.acquire().await?).await?;
    let named = |(place, head): (Uuid, Head)| ChainHead { organization: (!place.is_nil()).then_some(place), head };
    Ok(heads.into_iter().map(named).collect())
}

/// Follows `places` as far as they hold.
fn follow(mut chain: Chain, places: Vec<Place>, kept: Option<Head>) -> (Chain, Option<Break>) {
    let mut sealer = Sealer::default();
    for mut place in places {
        let taken = match place.record.take() {
            Some(record) => chain.follow(&mut sealer, &sealed(record, chain.to.hash, &place)),
            None => Err(Break {
                sequence: Some(place.sequence),
                entry: Some(place.entry),
                ..Break::new(BreakKind::Missing, format!("Entry {} is missing.", place.sequence))
            }),
        };
        if let Err(found) = taken.and_then(|()| watch::passed(kept, chain.to)) {
            return (chain, Some(found));
        }
    }
    (chain, None)
}

fn sealed<'a>(record: Record<'a>, previous: Hash, place: &Place) -> Sealed<'a> {
    let Place { sequence, hash, actor, subject, .. } = *place;
    Sealed { record, sequence, previous, hash, actor, subject }
}

/// The chain ends although its head was further on.
fn cut(chain: &Chain, head: Head) -> Break {
    let message =
        format!("The chain ends with entry {}, but it went on to entry {}.", chain.to.sequence, head.sequence);
    Break { sequence: Some(chain.to.sequence + 1), ..Break::new(BreakKind::Truncated, message) }
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table, the newest entry first.
    Csv,
    /// The sealed entries in the order of the chain, one JSON object a line, with everything that their hashes cover.
    JsonLines,
}

impl Format {
    fn text(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }
}

/// A running export. Between two pieces it holds nothing: whoever reads slowly keeps nobody waiting.
pub struct Export {
    log: AuditLog,
    org: OrgId,
    filter: Filter,
    exported_at: i64,
    /// None at the end.
    course: Option<Course>,
}

enum Course {
    Csv { begun: bool, before: Option<Position> },
    Lines { to: Head, head: Head, begun: bool },
}

impl Export {
    /// The next piece of the file; `None` at its end.
    ///
    /// # Errors
    /// The database's.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let log = self.log.clone();
        while let Some(course) = self.course.take() {
            let _reading = log.readers.acquire().await.map_err(Problem::internal)?;
            let mut piece = Vec::new();
            match course {
                Course::Csv { begun, before } => {
                    if !begun {
                        piece.extend_from_slice(CSV_HEADER.as_bytes());
                    }
                    let mut conn = log.pool.acquire().await?;
                    let rows = store::list(&mut conn, self.org, &self.filter.selection(before), PAGE).await?;
                    let entries: Vec<Entry> = rows.into_iter().map(Entry::from).collect();
                    entries.iter().for_each(|entry| csv_row(&mut piece, entry));
                    if let Some(last) = entries.last() {
                        self.course = Some(Course::Csv { begun: true, before: Some(last.position()) });
                    }
                }
                Course::Lines { to, head, begun } if to.sequence < head.sequence => {
                    let mut conn = log.pool.acquire().await?;
                    let places = store::places(&mut conn, Some(self.org), to.sequence, head.sequence, PAGE).await?;
                    self.lines(&mut piece, places, to, head, begun);
                }
                Course::Lines { .. } => {}
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    fn lines(&mut self, piece: &mut Vec<u8>, places: Vec<Place>, mut to: Head, head: Head, mut begun: bool) {
        let first = to.sequence + 1;
        let (filtered, ended) = (self.filter != Filter::default(), places.is_empty());
        for mut place in places {
            let previous = to.hash;
            to = Head { sequence: place.sequence, hash: place.hash };
            // An entry that is gone leaves a gap, which is what there is to see.
            let Some(record) = place.record.take().filter(|record| self.filter.admits(record)) else { continue };
            let export = (!begun).then(|| line::Export {
                exported_at: self.exported_at,
                first_sequence: if filtered { place.sequence } else { first },
                last_sequence: head.sequence,
                last_hash: line::head_text(&head.hash),
                filtered,
            });
            begun = true;
            line::write(piece, &sealed(record, previous, &place), export.as_ref());
        }
        if !ended {
            self.course = Some(Course::Lines { to, head, begun });
        }
    }
}

/// The first line of a table (AUD-19).
const CSV_HEADER: &str = "timestamp,action,category,actorEmail,actorId,actorType,actorRole,resourceType,resourceId,resourceName,status,errorMessage\r\n";

fn csv_row(out: &mut Vec<u8>, entry: &Entry) {
    let record = &entry.record;
    let time = entry.position().0.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let actor_id = record.actor.id.map(|id| id.to_string());
    let fields = [
        Some(time.as_str()),
        Some(&*record.action),
        Some(&*record.category),
        record.actor.email.as_deref().or(record.actor.email_hash.as_deref()),
        actor_id.as_deref(),
        Some(&*record.actor_type),
        record.actor.role.as_deref(),
        Some(&*record.resource_type),
        record.subject.id.as_deref(),
        entry.resource_name(),
        Some(&*record.status),
        entry.error_message(),
    ];
    for (at, field) in fields.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(csv_field(field.unwrap_or_default()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// A field that no spreadsheet takes for a formula or for two (AUD-20).
#[must_use]
pub fn csv_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
