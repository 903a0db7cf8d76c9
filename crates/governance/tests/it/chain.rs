//! The chain as a file: whatever is done to an export is found and located, and what is lawfully erased is not.

use std::borrow::Cow;
use std::io::Read;

use proptest::prelude::*;
use tale_governance::audit::chain::{Actor, Hash, Keeping, NO_DETAILS, Record, Sealed, Sealer, Subject};
use tale_governance::audit::line::{self, Export};
use tale_governance::audit::verify::{self, BreakKind, FileError, Head, Proof};
use uuid::Uuid;

const ORG: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);

/// Text with everything that JSON escapes.
fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof!["[a-z ]", Just("\"".into()), Just("\\".into()), "[\u{1}-\u{1f}ä€😀]"], 0..12)
        .prop_map(|parts| parts.concat())
}

prop_compose! {
    fn record()(
        id: u128,
        timestamp in 0i64..4_000_000_000_000,
        action in "[a-z_.]{1,20}",
        status in prop_oneof![Just("success"), Just("failure")],
        person in prop::option::of((any::<u128>(), words())),
        network in prop::option::of("[0-9.]{7,12}/24"),
        resource in prop::option::of(words()),
        details in prop::collection::btree_map(words(), words(), 0..3),
    ) -> Record<'static> {
        Record {
            organization: Some(ORG),
            id: Uuid::from_u128(id),
            timestamp,
            action: action.into(),
            category: "data".into(),
            status: status.into(),
            actor_type: "user".into(),
            resource_type: "document".into(),
            actor: Actor {
                id: person.as_ref().map(|(id, _)| Uuid::from_u128(*id)),
                email: person.map(|(_, email)| email.into()),
                ip: network.map(Cow::Owned),
                ..Actor::default()
            },
            subject: Subject { details: serde_json::to_string(&details).unwrap().into(), id: resource.map(Cow::Owned) },
        }
    }
}

/// The records as a chain that begins at `first`.
fn sealed(records: Vec<Record<'static>>, first: u64) -> Vec<Sealed<'static>> {
    let mut sealer = Sealer::default();
    let mut previous = if first == 1 { [0; 32] } else { [7; 32] };
    let seal = |(at, record): (usize, Record<'static>)| {
        let sequence = first + at as u64;
        let byte = u8::try_from(sequence % 251).unwrap();
        let (actor, subject) = (Keeping::Salted([byte; 16]), Keeping::Salted([byte + 1; 16]));
        let hash = sealer.hash(&previous, sequence, &record, actor, subject).unwrap();
        let sealed = Sealed { record, sequence, previous, hash, actor, subject };
        previous = hash;
        sealed
    };
    records.into_iter().enumerate().map(seal).collect()
}

fn export_of(entries: &[Sealed<'_>]) -> Export {
    let (first, last) = (entries.first().unwrap(), entries.last().unwrap());
    Export {
        exported_at: 1_795_957_447_123,
        first_sequence: first.sequence,
        last_sequence: last.sequence,
        last_hash: line::head_text(&last.hash),
        filtered: false,
    }
}

fn lines(entries: &[Sealed<'_>], export: &Export) -> Vec<Vec<u8>> {
    let write = |(at, entry): (usize, &Sealed<'_>)| {
        let mut out = Vec::new();
        line::write(&mut out, entry, (at == 0).then_some(export));
        out
    };
    entries.iter().enumerate().map(write).collect()
}

fn check(lines: &[Vec<u8>], heads: &[Head]) -> Result<Proof, FileError> {
    verify::file(lines.concat().as_slice(), heads)
}

fn found(lines: &[Vec<u8>]) -> verify::Break {
    match check(lines, &[]) {
        Err(FileError::Broken(found)) => *found,
        other => panic!("{other:?}"),
    }
}

fn chains() -> impl Strategy<Value = Vec<Sealed<'static>>> {
    (prop::collection::vec(record(), 2..14), prop_oneof![Just(1u64), 2u64..900])
        .prop_map(|(records, first)| sealed(records, first))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// What was sealed is what is read, and the whole range is proved.
    #[test]
    fn an_export_proves_its_range(entries in chains()) {
        let export = export_of(&entries);
        let lines = lines(&entries, &export);
        for (at, (line, entry)) in lines.iter().zip(&entries).enumerate() {
            let (read, said) = line::parse(std::str::from_utf8(line).unwrap().trim_end()).unwrap();
            prop_assert_eq!(&read, entry);
            prop_assert_eq!(said, (at == 0).then(|| export.clone()));
        }
        let kept: Vec<Head> = entries.iter().map(|entry| Head { sequence: entry.sequence, hash: entry.hash }).collect();
        let proof = check(&lines, &kept).unwrap();
        prop_assert_eq!(proof.chain.from.sequence + 1, entries[0].sequence);
        prop_assert_eq!(proof.chain.to, *kept.last().unwrap());
        prop_assert_eq!((proof.chain.count, proof.chain.erased), (entries.len() as u64, 0));
    }

    /// Any entry with any value changed does not verify, and it is the one that is named.
    #[test]
    fn an_edit_is_found_where_it_is(entries in chains(), at: prop::sample::Index, with in record(), what in 0..9usize) {
        let at = at.index(entries.len());
        let mut changed = entries.clone();
        let record = &mut changed[at].record;
        match what {
            0 => record.id = with.id,
            1 => record.timestamp = with.timestamp,
            2 => record.action = with.action,
            3 => record.status = with.status,
            4 => record.actor = with.actor,
            5 => record.subject.details = with.subject.details,
            6 => record.subject.id = with.subject.id,
            7 => record.actor_type = "system".into(),
            _ => record.category = "admin".into(),
        }
        prop_assume!(changed != entries);
        let found = found(&lines(&changed, &export_of(&entries)));
        prop_assert_eq!((found.kind, found.sequence, found.line), (BreakKind::Hash, Some(entries[at].sequence), Some(at as u64 + 1)));
    }

    /// An edit whose own hash was computed anew breaks the link to the next entry; at the end, the head.
    #[test]
    fn an_edit_with_a_new_hash_is_found_behind_it(entries in chains(), at: prop::sample::Index) {
        let at = at.index(entries.len());
        let mut changed = entries.clone();
        changed[at].record.action = "nothing.happened".into();
        let entry = &mut changed[at];
        entry.hash = Sealer::default().hash(&entry.previous, entry.sequence, &entry.record, entry.actor, entry.subject).unwrap();
        let found = found(&lines(&changed, &export_of(&entries)));
        let last = at + 1 == entries.len();
        let expected = if last { (BreakKind::Head, entries[at].sequence) } else { (BreakKind::Link, entries[at].sequence + 1) };
        prop_assert_eq!((found.kind, found.sequence), (expected.0, Some(expected.1)));
    }

    /// A line that is gone, doubled, moved or brought in from elsewhere is found where it is.
    #[test]
    fn lines_cannot_be_taken_added_or_moved(entries in chains(), at: prop::sample::Index, what in 0..5usize, other in record()) {
        let at = at.index(entries.len());
        let whole = lines(&entries, &export_of(&entries));
        let mut changed = whole.clone();
        let (line, sequence) = (at as u64 + 1, entries[at].sequence);
        let expected = match what {
            0 => {
                changed.remove(at);
                if at == 0 {
                    (BreakKind::Missing, Some(sequence + 1), 1)
                } else if at + 1 == entries.len() {
                    (BreakKind::Truncated, Some(sequence), line)
                } else {
                    (BreakKind::Missing, Some(sequence), line)
                }
            }
            1 => {
                changed.insert(at + 1, whole[at].clone());
                (BreakKind::Order, Some(sequence), line + 1)
            }
            2 => {
                prop_assume!(at + 2 < entries.len() && at > 0);
                changed.swap(at, at + 1);
                (BreakKind::Missing, Some(sequence), line)
            }
            3 => {
                prop_assume!(at > 0);
                changed.truncate(at);
                (BreakKind::Truncated, Some(sequence), line)
            }
            _ => {
                // Somebody else's entry, sealed by itself with the right number.
                prop_assume!(at > 0);
                let foreign = sealed(vec![other], sequence);
                let mut out = Vec::new();
                line::write(&mut out, &foreign[0], None);
                changed.insert(at, out);
                (BreakKind::Link, Some(sequence), line)
            }
        };
        let found = found(&changed);
        prop_assert_eq!((found.kind, found.sequence, found.line.unwrap()), expected);
    }

    /// Any flipped bit anywhere in the file is noticed, unless it only changes how the same JSON is written.
    #[test]
    fn no_byte_can_be_changed(entries in chains(), at: prop::sample::Index, bit in 0..7u32) {
        let whole = lines(&entries, &export_of(&entries)).concat();
        let mut changed = whole.clone();
        let at = at.index(changed.len());
        changed[at] ^= 1 << bit;
        if verify::file(changed.as_slice(), &[]).is_ok() {
            // When it was exported is a remark, not a part of the chain.
            let remark = String::from_utf8(whole).unwrap();
            let from = remark.find("\"exportedAt\":").unwrap();
            let digits = from + 13..from + 26;
            prop_assert!(digits.contains(&at) || changed[at].is_ascii_whitespace(), "byte {at}");
        }
    }

    /// The personal values of any entries are erased, and the chain still verifies in full; values that are put
    /// beside a commitment are refused.
    #[test]
    fn erasure_leaves_the_chain_whole(entries in chains(), who: prop::sample::Index, what: prop::sample::Index) {
        let (who, what) = (who.index(entries.len()), what.index(entries.len()));
        let mut erased = entries.clone();
        let mut sealer = Sealer::default();
        if let Keeping::Salted(salt) = erased[who].actor {
            erased[who].actor = Keeping::Erased(sealer.actor_commitment(&salt, &entries[who].record.actor));
            erased[who].record.actor = Actor::default();
        }
        if let Keeping::Salted(salt) = erased[what].subject {
            erased[what].subject = Keeping::Erased(sealer.subject_commitment(&salt, &entries[what].record.subject));
            erased[what].record.subject = Subject { details: NO_DETAILS.into(), id: None };
        }
        let proof = check(&lines(&erased, &export_of(&entries)), &[]).unwrap();
        prop_assert_eq!(proof.chain.count, entries.len() as u64);
        prop_assert_eq!(proof.chain.erased, if who == what { 1 } else { 2 });
        prop_assert_eq!(proof.chain.to.hash, entries.last().unwrap().hash);

        erased[who].record.actor.email = Some("somebody@else.test".into());
        let found = found(&lines(&erased, &export_of(&entries)));
        prop_assert_eq!((found.kind, found.sequence), (BreakKind::Hash, Some(entries[who].sequence)));
    }
}

fn numbered(n: u128) -> Record<'static> {
    Record {
        organization: Some(ORG),
        id: Uuid::from_u128(n),
        timestamp: 1_795_957_447_123,
        action: "document.delete".into(),
        category: "data".into(),
        status: "success".into(),
        actor_type: "user".into(),
        resource_type: "document".into(),
        actor: Actor { email: Some("ada@example.org".into()), role: Some("owner".into()), ..Actor::default() },
        subject: Subject { details: r#"{ "title": "Plan  \"A\"" }"#.into(), id: Some("7".into()) },
    }
}

fn three() -> Vec<Sealed<'static>> {
    sealed((1..=3).map(numbered).collect(), 1)
}

/// A file that comes in small portions and may end with an error.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let portion = buffer.len().min(1_013);
        match self.0.read(&mut buffer[..portion]) {
            Ok(0) if self.1 => Err(std::io::Error::other("the disk is gone")),
            read => read,
        }
    }
}

/// A file of a megabyte, parts of which are followed at the same time: of several breaks the first in the file is
/// told, with its line.
#[test]
fn a_long_file_is_followed_to_its_first_break() {
    let entries = sealed((1..=1_500).map(numbered).collect(), 1);
    let whole = lines(&entries, &export_of(&entries));
    let bytes = whole.concat();
    assert!(bytes.len() > 800_000, "{}", bytes.len());
    for proof in [verify::file(bytes.as_slice(), &[]), verify::file(Trickle(&bytes, false), &[])] {
        let chain = proof.unwrap().chain;
        assert_eq!((chain.count, chain.to.hash), (1_500, entries[1_499].hash));
    }
    let mut changed = whole.clone();
    for at in [1_499, 1_000, 999, 4, 0] {
        changed[at] =
            String::from_utf8(whole[at].clone()).unwrap().replace("document.delete", "document.copied").into();
        let found = found(&changed);
        let place = at as u64 + 1;
        assert_eq!((found.kind, found.sequence, found.line), (BreakKind::Hash, Some(place), Some(place)));
    }
    // An entry that is gone is found wherever the file is cut into parts.
    for at in (150..1_450).step_by(127) {
        let shorter = [&whole[..at], &whole[at + 1..]].concat();
        let (found, place) = (found(&shorter), at as u64 + 1);
        assert_eq!((found.kind, found.sequence, found.line), (BreakKind::Missing, Some(place), Some(place)));
    }
    let gone = verify::file(Trickle(&bytes, true), &[]);
    assert!(matches!(gone, Err(FileError::Read(_))), "{gone:?}");
    let Err(FileError::Broken(found)) = verify::file(Trickle(&changed.concat(), true), &[]) else {
        panic!("what was read before the error is broken")
    };
    assert_eq!((found.kind, found.line), (BreakKind::Hash, Some(1)));
}

/// The form is a promise to whoever verifies with other tools: these hashes were computed from the documented bytes.
#[test]
fn the_form_is_the_documented_one() {
    use tale_core::crypto::{hex_of, sha256};
    let entry = &three()[0];
    let commitment = |salt: u8, value: &str| hex_of(&sha256(&[&[salt; 16], value.as_bytes()].concat()));
    let actor = commitment(1, r#"{"email":"ada@example.org","role":"owner"}"#);
    let subject = commitment(2, r#"{"details":{"title":"Plan  \"A\""},"id":"7"}"#);
    let form = format!(
        r#"{{"action":"document.delete","actor":"{actor}","actorType":"user","category":"data","id":"00000000-0000-0000-0000-000000000001","organizationId":"{ORG}","resourceType":"document","sequence":1,"status":"success","subject":"{subject}","timestamp":1795957447123,"v":1}}"#
    );
    let expected: Hash = sha256(&[&[0; 32], form.as_bytes()].concat());
    assert_eq!(hex_of(&entry.hash), hex_of(&expected));
}

#[test]
fn a_chain_that_was_written_anew_is_found_by_a_head_that_was_kept() {
    let entries = three();
    let kept = Head { sequence: 2, hash: entries[1].hash };
    let mut records: Vec<Record<'static>> = entries.into_iter().map(|entry| entry.record).collect();
    records[0].action = "document.read".into();
    let forged = sealed(records, 1);
    let lines = lines(&forged, &export_of(&forged));
    check(&lines, &[]).unwrap();
    let Err(FileError::Broken(found)) = check(&lines, &[kept]) else { panic!("a forged chain passed") };
    assert_eq!((found.kind, found.sequence, found.line), (BreakKind::Head, Some(2), Some(2)));
    let beyond = Head { sequence: 4, hash: [1; 32] };
    let Err(FileError::Broken(found)) = check(&lines, &[beyond]) else { panic!("a short chain passed") };
    assert_eq!((found.kind, found.sequence), (BreakKind::Truncated, Some(4)));
}

#[test]
fn what_is_no_export_proves_nothing() {
    assert!(matches!(verify::file(&b""[..], &[]), Err(FileError::Empty)));
    let entries = three();
    let filtered = Export { filtered: true, ..export_of(&entries) };
    assert!(matches!(check(&lines(&entries, &filtered), &[]), Err(FileError::Filtered)));
    let twice = [lines(&entries, &export_of(&entries)), lines(&entries, &export_of(&entries))].concat();
    let found = found(&twice);
    assert_eq!((found.kind, found.line), (BreakKind::Order, Some(4)));
    for junk in ["{}\n", "[1]\n", "\u{0}", "timestamp,action\r\n", "{\"v\":1,\"v\":1}\n", "{\"v\":2}\n", "{\"x\":\"\n"]
    {
        let Err(FileError::Broken(found)) = verify::file(junk.as_bytes(), &[]) else { panic!("{junk} passed") };
        assert_eq!((found.kind, found.line), (BreakKind::Unreadable, Some(1)), "{junk}");
    }
}
