//! Recording, sealing and checking on a real Postgres.

use chrono::{DateTime, Duration, Utc};
use serde_json::json;
use sqlx::{Connection, PgPool};
use std::sync::Arc;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, ManualClock};
use tale_governance::audit::log::{AuditLog, Export, Filter, Format, Verification};
use tale_governance::audit::seal::{self, BATCH, Step};
use tale_governance::audit::verify::{self, BreakKind, FileError};
use tale_governance::audit::{AuditEntry, record};
use tale_testkit::TestDb;

fn entry(org: Option<OrgId>, action: &'static str) -> AuditEntry {
    AuditEntry {
        org,
        actor: Actor::User { id: UserId::new() },
        action,
        category: "data",
        resource_type: "document",
        resource_id: Some("7".into()),
        details: json!({ "title": "Plan", "pages": 12.50, "ü": [1, { "deep": "\u{1}\"" }] }),
        at: now(),
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_795_957_447_123_456).unwrap()
}

async fn write(pool: &PgPool, org: OrgId, count: usize) {
    let mut conn = pool.acquire().await.unwrap();
    for _ in 0..count {
        record(&mut conn, &entry(Some(org), "document.delete")).await.unwrap();
    }
}

fn log(pool: &PgPool) -> AuditLog {
    AuditLog::new(pool.clone(), Arc::new(ManualClock::new(now())))
}

async fn verified(pool: &PgPool, org: OrgId) -> Verification {
    log(pool).verify(org, None).await.unwrap()
}

async fn file(mut export: Export) -> Vec<u8> {
    let mut file = Vec::new();
    while let Some(piece) = export.next().await.unwrap() {
        file.extend(piece);
    }
    file
}

async fn exported(pool: &PgPool, org: OrgId, format: Format, filter: Filter) -> Vec<u8> {
    file(log(pool).export(org, Actor::System, format, filter).await.unwrap()).await
}

async fn run(pool: &PgPool, statement: &'static str) {
    sqlx::raw_sql(statement).execute(pool).await.unwrap();
}

#[tokio::test]
async fn what_commits_late_is_sealed_late_and_breaks_nothing() {
    let db = TestDb::new().await;
    let org = OrgId::new();
    let mut slow = db.app.acquire().await.unwrap();
    let mut early = slow.begin().await.unwrap();
    record(&mut early, &entry(Some(org), "first.written")).await.unwrap();
    write(&db.app, org, 2).await;
    assert_eq!(seal::step(&db.app).await.unwrap(), Step::Done);
    let before = verified(&db.app, org).await;
    assert_eq!((before.checked, before.unsealed, before.found), (2, 0, None));
    early.commit().await.unwrap();
    let after = verified(&db.app, org).await;
    assert_eq!((after.checked, after.head, after.found), (3, 3, None));
    let last: String = sqlx::query_scalar(
        "SELECT e.action FROM app.audit_seals s JOIN app.audit_entries e ON e.id = s.entry_id WHERE s.sequence = 3",
    )
    .fetch_one(&db.app)
    .await
    .unwrap();
    assert_eq!(last, "first.written");
}

#[tokio::test]
async fn chains_of_organizations_and_of_the_deployment_are_apart_and_many_sealers_make_one_chain() {
    let db = TestDb::new().await;
    let (one, two) = (OrgId::new(), OrgId::new());
    let mut conn = db.app.acquire().await.unwrap();
    record(&mut conn, &entry(None, "deployment.act")).await.unwrap();
    drop(conn);
    let (a, b) = tokio::join!(
        async {
            for _ in 0..10 {
                write(&db.app, one, 7).await;
                seal::catch_up(&db.app, std::time::Duration::MAX).await.unwrap();
            }
        },
        async {
            for _ in 0..10 {
                write(&db.app, two, 5).await;
                seal::catch_up(&db.app, std::time::Duration::MAX).await.unwrap();
            }
        }
    );
    let _: ((), ()) = (a, b);
    let (first, second) = (verified(&db.app, one).await, verified(&db.app, two).await);
    assert_eq!((first.checked, first.unsealed, first.found), (70, 0, None));
    assert_eq!((second.checked, second.unsealed, second.found), (50, 0, None));
    let ends: Vec<i64> =
        sqlx::query_scalar("SELECT sequence FROM app.audit_chains ORDER BY sequence").fetch_all(&db.app).await.unwrap();
    assert_eq!(ends, [1, 50, 70]);
}

#[tokio::test]
async fn more_than_a_batch_is_sealed_in_steps() {
    let db = TestDb::new().await;
    let org = OrgId::new();
    write(&db.app, org, 1).await;
    sqlx::query(
        "INSERT INTO app.audit_entries (id, org_id, actor_kind, action, category, resource_type, at)
         SELECT gen_random_uuid(), $1, 'system', 'a.b', 'data', 'thing', now() FROM generate_series(1, $2)",
    )
    .bind(org)
    .bind(i32::try_from(BATCH).unwrap() + 10)
    .execute(&db.app)
    .await
    .unwrap();
    assert_eq!(seal::step(&db.app).await.unwrap(), Step::More(BATCH));
    // What comes in between belongs to the next pass.
    write(&db.app, org, 1).await;
    assert_eq!(seal::step(&db.app).await.unwrap(), Step::Done);
    let all = verified(&db.app, org).await;
    assert_eq!((all.checked, all.unsealed, all.found), (BATCH as u64 + 12, 0, None));
}

/// What is prepared while a batch is written continues it, whoever writes it in the end.
#[tokio::test]
async fn batches_that_are_prepared_ahead_make_one_chain() {
    let db = TestDb::new().await;
    let orgs = [OrgId::new(), OrgId::new()];
    let many = i32::try_from(2 * BATCH).unwrap() + 10;
    sqlx::query(
        "INSERT INTO app.audit_entries (id, org_id, actor_kind, action, category, resource_type, at)
         SELECT gen_random_uuid(), ($1::uuid[])[1 + n % 2], 'system', 'a.b', 'data', 'thing', now()
           FROM generate_series(1, $2) n",
    )
    .bind(orgs.map(|org| org.0))
    .bind(many)
    .execute(&db.app)
    .await
    .unwrap();
    let sealer = || seal::catch_up(&db.app, std::time::Duration::MAX);
    let (one, two) = tokio::join!(sealer(), sealer());
    one.and(two).unwrap();
    for org in orgs {
        let all = verified(&db.app, org).await;
        assert_eq!((all.checked, all.unsealed, all.found), (BATCH as u64 + 5, 0, None));
    }
}

#[tokio::test]
async fn tampering_with_the_database_is_found_and_located() {
    let db = TestDb::new().await;
    let org = OrgId::new();
    write(&db.app, org, 9).await;
    assert_eq!(verified(&db.app, org).await.found, None);
    let at = "(SELECT entry_id FROM app.audit_seals WHERE sequence = 5)";
    let cases: [(&str, String, BreakKind, u64); 10] = [
        ("an edit", format!("UPDATE app.audit_entries SET action = 'x.y' WHERE id = {at}"), BreakKind::Hash, 5),
        (
            "a detail",
            format!("UPDATE app.audit_entries SET details = '{{\"title\": \"Flan\"}}' WHERE id = {at}"),
            BreakKind::Hash,
            5,
        ),
        (
            "a person",
            format!("UPDATE app.audit_entries SET actor_user_id = gen_random_uuid() WHERE id = {at}"),
            BreakKind::Hash,
            5,
        ),
        (
            "another chain",
            format!("UPDATE app.audit_entries SET org_id = gen_random_uuid() WHERE id = {at}"),
            BreakKind::Foreign,
            5,
        ),
        ("a deleted entry", format!("DELETE FROM app.audit_entries WHERE id = {at}"), BreakKind::Missing, 5),
        ("a deleted place", "DELETE FROM app.audit_seals WHERE sequence = 5".into(), BreakKind::Missing, 5),
        ("the beginning", "DELETE FROM app.audit_seals WHERE sequence <= 2".into(), BreakKind::Missing, 1),
        ("the end", "DELETE FROM app.audit_seals WHERE sequence > 7".into(), BreakKind::Truncated, 8),
        (
            "a note of the end",
            "UPDATE app.audit_chains SET (sequence, hash) = (SELECT sequence, hash FROM app.audit_seals WHERE sequence = 6)".into(),
            BreakKind::Head,
            7,
        ),
        (
            "an exchange",
            "UPDATE app.audit_seals SET sequence = sequence + 100 WHERE sequence IN (4, 5);
             UPDATE app.audit_seals SET sequence = CASE sequence WHEN 104 THEN 5 ELSE 4 END WHERE sequence > 100"
                .into(),
            BreakKind::Hash,
            4,
        ),
    ];
    for (what, statement, kind, sequence) in cases {
        run(
            &db.app,
            "CREATE TABLE kept_entries AS TABLE app.audit_entries; CREATE TABLE kept_seals AS TABLE app.audit_seals",
        )
        .await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&db.app).await.unwrap();
        let found = verified(&db.app, org).await.found.unwrap_or_else(|| panic!("{what} passed"));
        assert_eq!((found.kind, found.sequence), (kind, Some(sequence)), "{what}: {found:?}");
        let export = exported(&db.app, org, Format::JsonLines, Filter::default()).await;
        assert!(
            // A file ends where its note says: only a head that was kept elsewhere tells that it went on.
            kind == BreakKind::Head || matches!(verify::file(export.as_slice(), &[]), Err(FileError::Broken(_))),
            "{what} passes in an export"
        );
        run(
            &db.app,
            "TRUNCATE app.audit_entries, app.audit_seals;
             INSERT INTO app.audit_entries SELECT * FROM kept_entries; INSERT INTO app.audit_seals SELECT * FROM kept_seals;
             DROP TABLE kept_entries, kept_seals;
             UPDATE app.audit_chains SET (sequence, hash) = (SELECT sequence, hash FROM app.audit_seals ORDER BY sequence DESC LIMIT 1)",
        )
        .await;
    }
    assert_eq!(verified(&db.app, org).await.found, None, "what was put back verifies");
}

#[tokio::test]
async fn an_export_verifies_without_a_server_and_a_filtered_one_says_that_it_cannot() {
    let db = TestDb::new().await;
    let (org, other) = (OrgId::new(), OrgId::new());
    write(&db.app, org, 4).await;
    write(&db.app, other, 4).await;
    let proof =
        verify::file(exported(&db.app, org, Format::JsonLines, Filter::default()).await.as_slice(), &[]).unwrap();
    // The export is an entry itself.
    assert_eq!((proof.chain.organization, proof.chain.count), (Some(Some(org.0)), 5));
    let checked = verified(&db.app, org).await;
    assert_eq!(checked.to, proof.chain.to);
    let only = Filter { category: Some("data".into()), ..Filter::default() };
    let filtered = exported(&db.app, org, Format::JsonLines, only).await;
    assert_eq!(filtered.split(|byte| *byte == b'\n').count(), 5);
    assert!(matches!(verify::file(filtered.as_slice(), &[]), Err(FileError::Filtered)));
}

#[tokio::test]
async fn a_database_that_was_restored_elsewhere_goes_on_with_its_chain() {
    let db = TestDb::new().await;
    let org = OrgId::new();
    write(&db.app, org, 3).await;
    seal::step(&db.app).await.unwrap();
    write(&db.app, org, 2).await;
    // As if all of this had happened on a server that counts its transactions higher.
    run(
        &db.app,
        "UPDATE app.audit_entries SET xid = (xid::text::bigint + 1000000000)::text::xid8;
         UPDATE app.audit_sealing SET seen = '1000000900:1000000900:'",
    )
    .await;
    assert_eq!(seal::step(&db.app).await.unwrap(), Step::More(0));
    write(&db.app, org, 1).await;
    let all = verified(&db.app, org).await;
    assert_eq!((all.checked, all.unsealed, all.found), (6, 0, None));
}

#[tokio::test]
async fn lists_go_back_in_time_page_by_page_and_by_filter() {
    let db = TestDb::new().await;
    let (org, other) = (OrgId::new(), OrgId::new());
    let mut conn = db.app.acquire().await.unwrap();
    for minute in 0..5 {
        let at = now() + Duration::minutes(minute);
        let category = if minute == 3 { "admin" } else { "data" };
        record(&mut conn, &AuditEntry { at, category, ..entry(Some(org), "a.b") }).await.unwrap();
    }
    record(&mut conn, &entry(Some(other), "c.d")).await.unwrap();
    drop(conn);
    let log = log(&db.app);
    let minutes = |entries: &[tale_governance::audit::log::Entry]| -> Vec<i64> {
        entries.iter().map(|entry| (entry.record.timestamp - now().timestamp_millis()) / 60_000).collect()
    };
    let (page, next) = log.list(org, &Filter::default(), None, 3).await.unwrap();
    assert_eq!(minutes(&page), [4, 3, 2]);
    let (page, end) = log.list(org, &Filter::default(), next, 3).await.unwrap();
    assert_eq!((minutes(&page), end), (vec![1, 0], None));
    let only = Filter { category: Some("admin".into()), ..Filter::default() };
    assert_eq!(minutes(&log.list(org, &only, None, 9).await.unwrap().0), [3]);
    let between = Filter {
        from: Some(now() + Duration::minutes(1) - Duration::milliseconds(1)),
        to: Some(now() + Duration::minutes(2)),
        ..Filter::default()
    };
    assert_eq!(minutes(&log.list(org, &between, None, 9).await.unwrap().0), [2, 1]);
    assert_eq!(log.activity(org, now() + Duration::minutes(3) - Duration::milliseconds(1)).await.unwrap().success, 2);
    assert!(log.list(OrgId::new(), &Filter::default(), None, 9).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn a_table_is_no_formula() {
    let db = TestDb::new().await;
    let org = OrgId::new();
    let mut conn = db.app.acquire().await.unwrap();
    let hostile =
        AuditEntry { details: json!({ "title": "=HYPERLINK(\"x\")" }), ..entry(Some(org), "document.create") };
    record(&mut conn, &hostile).await.unwrap();
    drop(conn);
    let table = String::from_utf8(exported(&db.app, org, Format::Csv, Filter::default()).await).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(
        rows[0],
        "timestamp,action,category,actorEmail,actorId,actorType,actorRole,resourceType,resourceId,resourceName,status,errorMessage"
    );
    let row = rows.iter().find(|row| row.contains("document.create")).unwrap();
    assert!(row.starts_with("2026-11-29T") && row.contains(",\"'=HYPERLINK(\"\"x\"\")\",success,"), "{row}");
}

#[tokio::test]
async fn the_platform_checks_every_chain_daily_and_sees_one_that_was_written_anew() {
    let db = TestDb::new().await;
    let (org, clock) = (OrgId::new(), Arc::new(ManualClock::new(now())));
    let log = AuditLog::new(db.app.clone(), clock.clone());
    write(&db.app, org, 3).await;
    assert!(!log.check_next().await.unwrap(), "there is no chain yet");
    seal::step(&db.app).await.unwrap();
    assert_eq!(log.last_check(org).await.unwrap(), None);
    assert!(log.check_next().await.unwrap());
    assert!(!log.check_next().await.unwrap(), "once a day");
    let last = log.last_check(org).await.unwrap().unwrap();
    assert_eq!((last.sequence, last.incident), (Some(3), None));

    // Somebody with the database changes an entry and makes the whole chain anew.
    run(
        &db.app,
        "CREATE TABLE kept AS TABLE app.audit_seals; CREATE TABLE head AS TABLE app.audit_chains;
         UPDATE app.audit_entries SET action = 'x.y' WHERE id = (SELECT entry_id FROM app.audit_seals WHERE sequence = 2);
         DELETE FROM app.audit_seals; UPDATE app.audit_sealing SET seen = '1:1:'; UPDATE app.audit_chains
            SET sequence = 0, hash = base_hash",
    )
    .await;
    assert_eq!(verified(&db.app, org).await.found, None, "it is sound in itself");
    clock.advance(std::time::Duration::from_secs(24 * 3600));
    for _ in 0..2 {
        assert!(log.check_next().await.unwrap());
        let incident = log.last_check(org).await.unwrap().unwrap().incident.unwrap();
        assert_eq!((incident.kind.as_str(), incident.sequence), ("head", Some(3)));
        clock.advance(std::time::Duration::from_secs(24 * 3600));
    }
    run(
        &db.app,
        "UPDATE app.audit_entries SET action = 'document.delete'; DELETE FROM app.audit_seals;
         INSERT INTO app.audit_seals SELECT * FROM kept;
         UPDATE app.audit_chains c SET sequence = h.sequence, hash = h.hash FROM head h",
    )
    .await;
    assert!(log.check_next().await.unwrap());
    let last = log.last_check(org).await.unwrap().unwrap();
    assert_eq!((last.sequence, last.incident), (Some(3), None), "what was put back clears it");
}
