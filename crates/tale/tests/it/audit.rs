//! `tale audit verify`, without a server.

use std::process::Command;

use tale_governance::audit::chain::{Actor, Keeping, Record, Sealed, Sealer, Subject};
use tale_governance::audit::line::{self, Export};
use uuid::Uuid;

fn export(count: u64) -> (String, String) {
    let (mut previous, mut entries, mut sealer) = ([0; 32], Vec::new(), Sealer::default());
    for sequence in 1..=count {
        let record = Record {
            organization: Some(Uuid::from_u128(7)),
            id: Uuid::from_u128(sequence.into()),
            timestamp: 1_795_957_447_123,
            action: "document.delete".into(),
            category: "data".into(),
            status: "success".into(),
            actor_type: "system".into(),
            resource_type: "document".into(),
            actor: Actor::default(),
            subject: Subject { details: r#"{"title":"Plan"}"#.into(), id: None },
        };
        let (actor, subject) = (Keeping::Salted([1; 16]), Keeping::Salted([2; 16]));
        let hash = sealer.hash(&previous, sequence, &record, actor, subject).unwrap();
        entries.push(Sealed { record, sequence, previous, hash, actor, subject });
        previous = hash;
    }
    let last_hash = line::head_text(&previous);
    let head = Export {
        exported_at: 1_795_957_447_123,
        first_sequence: 1,
        last_sequence: count,
        last_hash: last_hash.clone(),
        filtered: false,
    };
    let mut file = Vec::new();
    for entry in &entries {
        line::write(&mut file, entry, (entry.sequence == 1).then_some(&head));
    }
    (String::from_utf8(file).unwrap(), format!("{count}:{last_hash}"))
}

#[test]
fn an_export_is_proved_or_its_first_break_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let verify = |text: &str, more: &[&str]| {
        std::fs::write(&path, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tale"))
            .args(["audit", "verify"])
            .arg(&path)
            .args(more)
            .env_clear()
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), said)
    };
    let (whole, head) = export(20_000);
    let (code, said) = verify(&whole, &["--head", &head]);
    assert!(code == 0 && said.contains("intact: entries 1 to 20000 of organization 0"), "{code} {said}");
    assert!(said.contains("kept head: 20000"), "{said}");

    let changed = whole.replacen("Plan", "Flan", 15_000).replacen("Flan", "Plan", 14_999);
    let (code, said) = verify(&changed, &[]);
    assert!(
        code == 1 && said.contains("sequence: 15000\nline: 15000\nentry: 00000000-0000-0000-0000-000000003a98"),
        "{code} {said}"
    );
    let cut = &whole[..whole.len() - 10];
    assert_eq!(verify(cut, &[]).0, 1);
    assert_eq!(verify("", &[]).0, 1);
    let other = format!("20000:{}", "0".repeat(64));
    assert_eq!(verify(&whole, &["--head", &other]).0, 1);
    assert_eq!(verify(&whole, &["--head", "20000"]).0, 2);
    let missing =
        Command::new(env!("CARGO_BIN_EXE_tale")).args(["audit", "verify", "/nowhere/log.jsonl"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(3));
}
