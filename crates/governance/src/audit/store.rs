//! The tables `app.audit_entries`, `app.audit_seals`, `app.audit_chains` and `app.audit_sealing`.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{PgConnection, Row, ValueRef};
use tale_core::Actor;
use tale_core::ids::{ApiKeyId, AuditId, OrgId, UserId};
use uuid::Uuid;

use super::chain::{self, Hash, Keeping, Record, Salt, Subject};
use super::verify::Head;
use super::watch::{Incident, LastCheck};
use super::{AuditEntry, Claimed, Outcome};

/// The chain of entries without an organization.
pub(super) fn place(org: Option<OrgId>) -> Uuid {
    org.map_or(Uuid::nil(), |org| org.0)
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    entry: &AuditEntry,
    outcome: Outcome<'_>,
) -> Result<(), sqlx::Error> {
    debug_assert!(super::CATEGORIES.contains(&entry.category), "`{}` is no category", entry.category);
    let (key, details) = match &entry.actor {
        Actor::Api { key, subject, .. } => (Some(*key), Cow::Owned(attributed(&entry.details, *key, *subject))),
        Actor::User { .. } | Actor::System => (None, Cow::Borrowed(&entry.details)),
    };
    let (status, [email, email_hash, network, network_hash]) = match outcome {
        Outcome::Done => ("success", [None; 4]),
        Outcome::Denied => ("denied", [None; 4]),
        Outcome::Failed(None) => ("failure", [None; 4]),
        Outcome::Failed(Some(Claimed::Plain { email, network })) => {
            ("failure", [email.as_deref(), None, Some(network.as_str()), None])
        }
        Outcome::Failed(Some(Claimed::Hashed { email, network })) => {
            ("failure", [None, email.as_deref(), None, Some(network.as_str())])
        }
    };
    sqlx::query(
        "INSERT INTO app.audit_entries
                (id, org_id, actor_kind, actor_user_id, actor_key_id, action, category, resource_type, resource_id,
                 details, at, status, actor_email, actor_email_hash, ip_address, ip_address_hash, actor_role)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                 CASE WHEN $12 <> 'failure' THEN (SELECT email FROM app.users WHERE id = $4) ELSE $13 END, $14, $15, $16,
                 (SELECT role FROM app.memberships WHERE org_id = $2 AND user_id = $4))",
    )
    .bind(AuditId::new())
    .bind(entry.org)
    .bind(entry.actor.kind())
    .bind(entry.actor.user())
    .bind(key)
    .bind(entry.action)
    .bind(entry.category)
    .bind(entry.resource_type)
    .bind(&entry.resource_id)
    .bind(details.as_ref())
    .bind(entry.at)
    .bind(status)
    .bind(email)
    .bind(email_hash)
    .bind(network)
    .bind(network_hash)
    .execute(conn)
    .await?;
    Ok(())
}

/// The details of an act with a key: also whom the key acts for, because the actor of the entry is its maker (KEY-11).
fn attributed(details: &Value, key: ApiKeyId, subject: Option<UserId>) -> Value {
    let mut details = details.clone();
    if let Value::Object(fields) = &mut details {
        let original = match subject {
            Some(person) => json!({ "type": "user", "id": person }),
            None => json!({ "type": "api", "id": key }),
        };
        let attribution = json!({ "apiKeyId": key, "subjectUserId": subject, "originalActor": original });
        fields.insert("keyAttribution".to_owned(), attribution);
    }
    details
}

/// The columns of an entry that are sealed, for [`record_of`].
macro_rules! sealed_columns {
    () => {
        "e.id, e.org_id, e.at, e.action, e.category, e.status, e.actor_kind, e.resource_type, e.actor_email,
         e.actor_email_hash, e.actor_user_id, e.ip_address, e.ip_address_hash, e.actor_key_id, e.actor_role,
         e.details::text, e.resource_id"
    };
}

type PgRow = sqlx::postgres::PgRow;

/// The entry whose columns stand first in `row`, from which its text is borrowed.
fn record_of(row: &PgRow) -> Result<Record<'_>, sqlx::Error> {
    // What the columns are stands above; asking for each type in each row takes longer than reading it.
    let value = |at: usize| Ok::<_, sqlx::Error>(Some(row.try_get_raw(at)?).filter(|value| !value.is_null()));
    let optional = |at: usize| {
        let text = value(at)?.map(|value| value.as_str().map(Cow::Borrowed));
        text.transpose().map_err(sqlx::Error::Decode)
    };
    let text = |at: usize| optional(at)?.ok_or_else(|| sqlx::Error::Decode("a column of an entry is null".into()));
    let id = |at: usize| {
        let id = value(at)?.map(|value| Ok(Uuid::from_slice(value.as_bytes()?)?));
        id.transpose().map_err(sqlx::Error::Decode)
    };
    Ok(Record {
        id: row.try_get(0)?,
        organization: id(1)?,
        timestamp: row.try_get::<DateTime<Utc>, _>(2)?.timestamp_millis(),
        action: text(3)?,
        category: text(4)?,
        status: text(5)?,
        actor_type: text(6)?,
        resource_type: text(7)?,
        actor: chain::Actor {
            email: optional(8)?,
            email_hash: optional(9)?,
            id: id(10)?,
            ip: optional(11)?,
            ip_hash: optional(12)?,
            key_id: id(13)?,
            role: optional(14)?,
        },
        subject: Subject { details: text(15)?, id: optional(16)? },
    })
}

/// How far entries are sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// What this snapshot sees is sealed.
    seen: String,
    /// What this one sees besides is being sealed, and nothing else.
    next: Option<String>,
    after_xid: String,
    after_id: Uuid,
}

impl Position {
    /// Whether everything is looked through, what is sealed already as well.
    fn is_beginning(&self) -> bool {
        self.seen == "1:1:"
    }

    /// Whether a pass is under way.
    pub(super) fn under_way(&self) -> bool {
        self.next.is_some()
    }
}

/// The right to seal.
pub(super) struct Sealing {
    pub(super) position: Position,
    /// A snapshot of now.
    now: String,
    /// Whether transactions count from lower numbers than `seen` knows: the data came from another server.
    pub(super) moved_here: bool,
}

impl Sealing {
    /// Where reading goes on, and the snapshot that says what belongs to this pass.
    pub(super) fn from(&self) -> (Position, String) {
        (self.position.clone(), self.position.next.clone().unwrap_or_else(|| self.now.clone()))
    }

    /// The position after what was read up to `last`, or to the end of what there was.
    pub(super) fn after(&self, last: Option<(String, Uuid)>) -> Position {
        let (_, next) = self.from();
        match last {
            Some((after_xid, after_id)) => {
                Position { seen: self.position.seen.clone(), next: Some(next), after_xid, after_id }
            }
            None => Position { seen: next, next: None, after_xid: "0".to_owned(), after_id: Uuid::nil() },
        }
    }
}

/// Takes the right to seal; `None` when another process has it.
pub(super) async fn take_sealing(conn: &mut PgConnection) -> Result<Option<Sealing>, sqlx::Error> {
    let row: Option<(String, Option<String>, String, Uuid, String, bool)> = sqlx::query_as(
        "SELECT seen::text, next::text, after_xid::text, after_id, pg_current_snapshot()::text,
                pg_snapshot_xmax(coalesce(next, seen)) > pg_snapshot_xmax(pg_current_snapshot())
           FROM app.audit_sealing FOR UPDATE SKIP LOCKED",
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|(seen, next, after_xid, after_id, now, moved_here)| Sealing {
        position: Position { seen, next, after_xid, after_id },
        now,
        moved_here,
    }))
}

/// Begins anew on another server: what was written elsewhere counts as written long ago, and what is sealed is known
/// by its seals. Touches every entry that was written under a number this server has not reached.
pub(super) async fn begin_anew(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.audit_entries SET xid = '3' WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())")
        .execute(&mut *conn)
        .await?;
    sqlx::query("UPDATE app.audit_sealing SET seen = '1:1:', next = NULL, after_xid = '0', after_id = $1")
        .bind(Uuid::nil())
        .execute(conn)
        .await?;
    Ok(())
}

/// An entry that is to be sealed.
pub(super) struct Unsealed(PgRow);

impl Unsealed {
    /// Its chain.
    pub(super) fn place(&self) -> Result<Uuid, sqlx::Error> {
        self.0.try_get(1).map(place)
    }

    pub(super) fn record(&self) -> Result<Record<'_>, sqlx::Error> {
        record_of(&self.0)
    }

    /// Whether it is sealed after all.
    pub(super) fn sealed(&self) -> Result<bool, sqlx::Error> {
        self.0.try_get(17)
    }

    /// Where reading goes on behind it: the transaction that wrote it, and its id.
    pub(super) fn position(&self) -> Result<(String, Uuid), sqlx::Error> {
        let number = self.0.try_get_raw(18)?.as_bytes().and_then(|bytes| Ok(u64::from_be_bytes(bytes.try_into()?)));
        Ok((number.map_err(sqlx::Error::Decode)?.to_string(), self.0.try_get(0)?))
    }
}

/// At most `limit` entries behind `position` that the snapshot `seen_by` sees, in the order of their transactions. Runs
/// in a transaction.
pub(super) async fn unsealed(
    conn: &mut PgConnection,
    (position, seen_by): &(Position, String),
    limit: usize,
) -> Result<Vec<Unsealed>, sqlx::Error> {
    // The index gives the order. Without numbers about the newest entries the planner sorts all of them for each batch.
    sqlx::query("SET LOCAL enable_sort = off").execute(&mut *conn).await?;
    // The snapshot is parsed once, not for each row, and seals are looked for only where there can be any: one by one, where
    // EXISTS would have all seals there are read into a table for each batch.
    let rows = sqlx::query(concat!(
        "SELECT ",
        sealed_columns!(),
        ", CASE WHEN $5 THEN (SELECT true FROM app.audit_seals s WHERE s.entry_id = e.id LIMIT 1) IS NOT NULL ELSE false END,
                e.xid
           FROM app.audit_entries e
          WHERE e.xid >= (SELECT pg_snapshot_xmin($1::text::pg_snapshot))
            AND NOT pg_visible_in_snapshot(e.xid, (SELECT $1::text::pg_snapshot))
            AND pg_visible_in_snapshot(e.xid, (SELECT $6::text::pg_snapshot))
            AND (e.xid, e.id) > ((SELECT $2::text::xid8), $3)
          ORDER BY e.xid, e.id
          LIMIT $4"
    ))
    .bind(&position.seen)
    .bind(&position.after_xid)
    .bind(position.after_id)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .bind(position.is_beginning())
    .bind(seen_by)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Unsealed).collect())
}

/// Notes how far was read.
pub(super) async fn advance(conn: &mut PgConnection, to: &Position) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.audit_sealing
            SET seen = $1::text::pg_snapshot, next = $2::text::pg_snapshot, after_xid = $3::text::xid8, after_id = $4",
    )
    .bind(&to.seen)
    .bind(&to.next)
    .bind(&to.after_xid)
    .bind(to.after_id)
    .execute(conn)
    .await?;
    Ok(())
}

/// Where `places` go on, those that exist: at the noted end, or behind a place beyond it, so that one chain whose note was
/// changed does not keep the others from being sealed.
pub(super) async fn heads(conn: &mut PgConnection, places: &[Uuid]) -> Result<Vec<(Uuid, Head)>, sqlx::Error> {
    let rows: Vec<(Uuid, i64, Vec<u8>)> = sqlx::query_as(
        "SELECT c.org_id, coalesce(s.sequence, c.sequence), coalesce(s.hash, c.hash)
           FROM app.audit_chains c
           LEFT JOIN LATERAL (
               SELECT sequence, hash FROM app.audit_seals
                WHERE org_id = c.org_id AND sequence > c.sequence
                ORDER BY sequence DESC LIMIT 1) s ON true
          WHERE c.org_id = ANY($1)",
    )
    .bind(places)
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|(place, sequence, hash)| Ok((place, head_of(sequence, &hash)?))).collect()
}

/// The end of every chain: this is for the operator, so it has no organization condition.
pub(super) async fn all_heads(conn: &mut PgConnection) -> Result<Vec<(Uuid, Head)>, sqlx::Error> {
    let rows: Vec<(Uuid, i64, Vec<u8>)> =
        sqlx::query_as("SELECT org_id, sequence, hash FROM app.audit_chains ORDER BY org_id").fetch_all(conn).await?;
    rows.into_iter().map(|(place, sequence, hash)| Ok((place, head_of(sequence, &hash)?))).collect()
}

/// A seal to be written.
pub(super) struct NewSeal {
    pub(super) place: Uuid,
    pub(super) sequence: u64,
    pub(super) entry: Uuid,
    pub(super) hash: Hash,
    pub(super) actor: Salt,
    pub(super) subject: Salt,
}

/// Seals in the binary form that Postgres copies in, which spares it the parsing of parameters.
pub(super) struct Seals(Vec<u8>);

impl Seals {
    const BEGINNING: &'static [u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
    const END: [u8; 2] = (-1_i16).to_be_bytes();

    pub(super) fn new() -> Self {
        Self(Self::BEGINNING.to_vec())
    }

    pub(super) fn push(&mut self, seal: &NewSeal) {
        let out = &mut self.0;
        let sequence = i64::try_from(seal.sequence).unwrap_or(i64::MAX).to_be_bytes();
        out.extend_from_slice(&6_i16.to_be_bytes());
        for field in
            [&seal.place.as_bytes()[..], &sequence, seal.entry.as_bytes(), &seal.hash, &seal.actor, &seal.subject]
        {
            out.extend_from_slice(&u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(field);
        }
    }
}

/// Writes `seals` and the new ends of their chains.
pub(super) async fn write_seals(
    conn: &mut PgConnection,
    mut seals: Seals,
    heads: impl Iterator<Item = (Uuid, Head)>,
) -> Result<(), sqlx::Error> {
    seals.0.extend_from_slice(&Seals::END);
    let mut copy = conn
        .copy_in_raw(
            "COPY app.audit_seals (org_id, sequence, entry_id, hash, actor_salt, subject_salt) FROM STDIN (FORMAT binary)",
        )
        .await?;
    copy.send(seals.0).await?;
    copy.finish().await?;
    let (mut places, mut sequences, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
    for (place, head) in heads {
        places.push(place);
        sequences.push(i64::try_from(head.sequence).unwrap_or(i64::MAX));
        hashes.push(head.hash.to_vec());
    }
    sqlx::query(
        "INSERT INTO app.audit_chains (org_id, sequence, hash)
         SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bytea[])
             ON CONFLICT (org_id) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash",
    )
    .bind(places)
    .bind(sequences)
    .bind(hashes)
    .execute(conn)
    .await?;
    Ok(())
}

/// Both ends of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// What the oldest kept entry continues.
    pub(super) base: Head,
    pub(super) head: Head,
    /// Whether there are places behind the head.
    pub(super) beyond: bool,
}

pub(super) async fn ends(conn: &mut PgConnection, org: Option<OrgId>) -> Result<Ends, sqlx::Error> {
    let row = sqlx::query(
        "SELECT c.base_sequence, c.base_hash, c.sequence, c.hash,
                EXISTS (SELECT FROM app.audit_seals s WHERE s.org_id = c.org_id AND s.sequence > c.sequence)
           FROM app.audit_chains c WHERE c.org_id = $1",
    )
    .bind(place(org))
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else {
        return Ok(Ends { base: Head::BEGINNING, head: Head::BEGINNING, beyond: false });
    };
    Ok(Ends {
        base: head_of(row.try_get(0)?, row.try_get(1)?)?,
        head: head_of(row.try_get(2)?, row.try_get(3)?)?,
        beyond: row.try_get(4)?,
    })
}

fn head_of(sequence: i64, hash: &[u8]) -> Result<Head, sqlx::Error> {
    Ok(Head { sequence: sequence.unsigned_abs(), hash: bytes(hash)? })
}

fn bytes<const N: usize>(bytes: &[u8]) -> Result<[u8; N], sqlx::Error> {
    bytes.try_into().map_err(|error: std::array::TryFromSliceError| sqlx::Error::Decode(error.into()))
}

/// Takes the chain that is due for longest, and the place up to which it held before.
pub(super) async fn take_due(
    conn: &mut PgConnection,
    now: DateTime<Utc>,
    due: DateTime<Utc>,
) -> Result<Option<(Uuid, Option<Head>)>, sqlx::Error> {
    let row: Option<(Uuid, Option<i64>, Option<Vec<u8>>)> = sqlx::query_as(
        "UPDATE app.audit_chains SET checked_at = $1
          WHERE org_id = (SELECT org_id FROM app.audit_chains
                           WHERE checked_at IS NULL OR checked_at <= $2
                           ORDER BY checked_at NULLS FIRST
                           LIMIT 1
                             FOR UPDATE SKIP LOCKED)
         RETURNING org_id, checked_sequence, checked_hash",
    )
    .bind(now)
    .bind(due)
    .fetch_optional(conn)
    .await?;
    let Some((place, sequence, hash)) = row else { return Ok(None) };
    let before = sequence.zip(hash).map(|(sequence, hash)| head_of(sequence, &hash)).transpose()?;
    Ok(Some((place, before)))
}

/// Notes what a check found, and the place up to which the chain held. Returns whether that is something else than before.
pub(super) async fn note_check(
    conn: &mut PgConnection,
    place: Uuid,
    to: Option<Head>,
    incident: Option<Value>,
) -> Result<bool, sqlx::Error> {
    let other: Option<bool> = sqlx::query_scalar(
        "UPDATE app.audit_chains c SET checked_sequence = $2, checked_hash = $3, incident = $4
           FROM (SELECT org_id, incident FROM app.audit_chains WHERE org_id = $1 FOR UPDATE) before
          WHERE c.org_id = before.org_id
         RETURNING before.incident IS DISTINCT FROM $4",
    )
    .bind(place)
    .bind(to.map(|to| i64::try_from(to.sequence).unwrap_or(i64::MAX)))
    .bind(to.map(|to| to.hash.to_vec()))
    .bind(incident)
    .fetch_optional(conn)
    .await?;
    Ok(other.unwrap_or(false))
}

/// What the last check of an organization's chain found.
pub(super) async fn last_check(conn: &mut PgConnection, org: OrgId) -> Result<Option<LastCheck>, sqlx::Error> {
    let row: Option<(DateTime<Utc>, Option<i64>, Option<Value>)> = sqlx::query_as(
        "SELECT checked_at, checked_sequence, incident FROM app.audit_chains WHERE org_id = $1 AND checked_at IS NOT NULL",
    )
    .bind(org)
    .fetch_optional(conn)
    .await?;
    let Some((at, sequence, incident)) = row else { return Ok(None) };
    let incident = incident.map(serde_json::from_value::<Incident>).transpose();
    let incident = incident.map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Some(LastCheck { at, sequence: sequence.map(i64::unsigned_abs), incident }))
}

/// A seal with its entry, if that is still there.
pub(super) struct Place {
    pub(super) sequence: u64,
    pub(super) entry: Uuid,
    pub(super) hash: Hash,
    pub(super) actor: Keeping,
    pub(super) subject: Keeping,
    pub(super) record: Option<Record<'static>>,
}

/// The places of a chain after `after`, up to `through`.
pub(super) async fn places(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    after: u64,
    through: u64,
    limit: i64,
) -> Result<Vec<Place>, sqlx::Error> {
    let bound = |sequence: u64| i64::try_from(sequence).unwrap_or(i64::MAX);
    let rows = sqlx::query(concat!(
        "SELECT ",
        sealed_columns!(),
        ", s.sequence, s.entry_id, s.hash, s.actor_salt, s.actor_commitment, s.subject_salt, s.subject_commitment
           FROM app.audit_seals s
           LEFT JOIN app.audit_entries e ON e.id = s.entry_id
          WHERE s.org_id = $1 AND s.sequence > $2 AND s.sequence <= $3
          ORDER BY s.sequence
          LIMIT $4"
    ))
    .bind(place(org))
    .bind(bound(after))
    .bind(bound(through))
    .bind(limit)
    .fetch_all(conn)
    .await?;
    let keeping = |row: &PgRow, at: usize| -> Result<Keeping, sqlx::Error> {
        Ok(match row.try_get::<Option<&[u8]>, _>(at)? {
            Some(salt) => Keeping::Salted(bytes(salt)?),
            None => Keeping::Erased(bytes(row.try_get(at + 1)?)?),
        })
    };
    let read = |row: PgRow| -> Result<Place, sqlx::Error> {
        let there = row.try_get::<Option<Uuid>, _>(0)?.is_some();
        Ok(Place {
            sequence: row.try_get::<i64, _>(17)?.unsigned_abs(),
            entry: row.try_get(18)?,
            hash: bytes(row.try_get(19)?)?,
            actor: keeping(&row, 20)?,
            subject: keeping(&row, 22)?,
            record: there.then(|| record_of(&row).map(Record::into_owned)).transpose()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// The hash at `sequence`, if there is one.
pub(super) async fn hash_at(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    sequence: u64,
) -> Result<Option<Hash>, sqlx::Error> {
    let hash: Option<Vec<u8>> =
        sqlx::query_scalar("SELECT hash FROM app.audit_seals WHERE org_id = $1 AND sequence = $2")
            .bind(place(org))
            .bind(i64::try_from(sequence).unwrap_or(i64::MAX))
            .fetch_optional(conn)
            .await?;
    hash.map(|hash| bytes(&hash)).transpose()
}

/// Entries and sealed entries of an organization.
pub(super) async fn counts(conn: &mut PgConnection, org: OrgId) -> Result<(i64, i64), sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT count(*) FROM app.audit_entries WHERE org_id = $1),
                (SELECT count(*) FROM app.audit_seals WHERE org_id = $1)",
    )
    .bind(org)
    .fetch_one(conn)
    .await
}

/// Which entries are listed.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    pub(super) category: Option<String>,
    pub(super) unsuccessful: bool,
    pub(super) from: Option<DateTime<Utc>>,
    pub(super) to: Option<DateTime<Utc>>,
    pub(super) before: Option<(DateTime<Utc>, Uuid)>,
}

/// An entry for readers.
pub(super) struct Listed {
    pub(super) record: Record<'static>,
    pub(super) details: Value,
    pub(super) seal: Option<(u64, Hash)>,
}

/// Entries, the newest first.
pub(super) async fn list(
    conn: &mut PgConnection,
    org: OrgId,
    selection: &Selection,
    limit: i64,
) -> Result<Vec<Listed>, sqlx::Error> {
    let mut query = sqlx::QueryBuilder::new(concat!(
        "SELECT ",
        sealed_columns!(),
        ", e.details, s.sequence, s.hash
           FROM app.audit_entries e
           LEFT JOIN app.audit_seals s ON s.entry_id = e.id
          WHERE e.org_id = "
    ));
    query.push_bind(org);
    if let Some(category) = &selection.category {
        query.push(" AND e.category = ").push_bind(category);
    }
    if selection.unsuccessful {
        query.push(" AND e.status <> 'success'");
    }
    if let Some(from) = selection.from {
        query.push(" AND e.at >= ").push_bind(from);
    }
    if let Some(to) = selection.to {
        query.push(" AND e.at <= ").push_bind(to);
    }
    if let Some((at, id)) = selection.before {
        query.push(" AND (e.at, e.id) < (").push_bind(at).push(", ").push_bind(id).push(")");
    }
    query.push(" ORDER BY e.at DESC, e.id DESC LIMIT ").push_bind(limit);
    let rows = query.build().fetch_all(conn).await?;
    let read = |row: PgRow| -> Result<Listed, sqlx::Error> {
        let sequence: Option<i64> = row.try_get(18)?;
        let hash: Option<Vec<u8>> = row.try_get(19)?;
        let seal = match (sequence, hash) {
            (Some(sequence), Some(hash)) => Some((sequence.unsigned_abs(), bytes(&hash)?)),
            _ => None,
        };
        Ok(Listed { record: record_of(&row)?.into_owned(), details: row.try_get(17)?, seal })
    };
    rows.into_iter().map(read).collect()
}

/// Entries since `since` by how they ended.
pub(super) async fn activity(
    conn: &mut PgConnection,
    org: OrgId,
    since: DateTime<Utc>,
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    sqlx::query_as("SELECT status, count(*) FROM app.audit_entries WHERE org_id = $1 AND at >= $2 GROUP BY status")
        .bind(org)
        .bind(since)
        .fetch_all(conn)
        .await
}
