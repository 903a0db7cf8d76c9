//! Measures the audit chain: sealing in a database, checking there, and checking an export without one (bench/audit.md).
//!
//! `audit-bench postgres://user@host/database [entries] [organizations]`; the database is migrated and filled.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement fails loudly and prints"
)]

use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tale_core::Actor;
use tale_core::clock::SystemClock;
use tale_core::ids::{AuditId, OrgId};
use tale_governance::audit::log::{AuditLog, Filter, Format};
use tale_governance::audit::{seal, verify};

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the address of a database");
    let entries: i64 = arguments.next().map_or(500_000, |text| text.parse().unwrap());
    let organizations: i64 = arguments.next().map_or(1, |text| text.parse().unwrap());
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    tale_db::migrate::app(&pool).await.unwrap();
    seal::catch_up(&pool, Duration::MAX).await.unwrap();

    let orgs: Vec<OrgId> = (0..organizations).map(|_| OrgId::new()).collect();
    let started = Instant::now();
    // In the order of their ids, as they are made when things happen.
    let ids: Vec<AuditId> = (0..entries).map(|_| AuditId::new()).collect();
    sqlx::query(
        "INSERT INTO app.audit_entries
                (id, org_id, actor_kind, actor_user_id, actor_email, actor_role, action, category, resource_type,
                 resource_id, details, at)
         SELECT id, ($1::uuid[])[1 + n % cardinality($1)], 'user', gen_random_uuid(),
                'person-' || n % 500 || '@example.org', 'editor', 'document.rename', 'data', 'document',
                gen_random_uuid()::text,
                jsonb_build_object('title', 'Maintenance plan ' || n, 'previous', jsonb_build_object('title', 'Plan ' || n)), now()
           FROM unnest($2::uuid[]) WITH ORDINALITY AS e(id, n)",
    )
    .bind(&orgs)
    .bind(&ids)
    .execute(&pool)
    .await
    .unwrap();
    println!("{entries} entries of {organizations} organizations written in {:.2} s", started.elapsed().as_secs_f64());

    let (started, cpu) = (Instant::now(), processor_time());
    seal::catch_up(&pool, Duration::MAX).await.unwrap();
    told("sealed", entries, started.elapsed(), processor_time() - cpu);

    let log = AuditLog::new(pool, Arc::new(SystemClock));
    let (started, cpu) = (Instant::now(), processor_time());
    let (mut checked, mut after) = (0, None);
    loop {
        let part = log.verify(orgs[0], after).await.unwrap();
        assert_eq!(part.found, None);
        checked += i64::try_from(part.checked).unwrap();
        if !part.truncated {
            break;
        }
        after = Some(part.to.sequence);
    }
    told("checked in the database", checked, started.elapsed(), processor_time() - cpu);

    let path = std::env::temp_dir().join(format!("audit-bench-{}.jsonl", std::process::id()));
    let (started, cpu) = (Instant::now(), processor_time());
    let mut export = log.export(orgs[0], Actor::System, Format::JsonLines, Filter::default()).await.unwrap();
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    while let Some(piece) = export.next().await.unwrap() {
        file.write_all(&piece).unwrap();
    }
    file.flush().unwrap();
    told("exported", checked, started.elapsed(), processor_time() - cpu);

    for _ in 0..3 {
        let (started, cpu) = (Instant::now(), processor_time());
        let proof = verify::file(std::fs::File::open(&path).unwrap(), &[]).unwrap();
        told(
            "verified without a server",
            i64::try_from(proof.chain.count).unwrap(),
            started.elapsed(),
            processor_time() - cpu,
        );
    }
    std::fs::remove_file(path).unwrap();
}

fn told(what: &str, entries: i64, took: Duration, cpu: Duration) {
    let rate = entries as f64 / took.as_secs_f64();
    let micros = cpu.as_secs_f64() * 1e6 / entries as f64;
    println!(
        "{what}: {entries} entries in {:.2} s, {rate:.0} a second, {micros:.2} µs of processor time here for each",
        took.as_secs_f64()
    );
}

/// User and system time of this process, from `/proc`.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
