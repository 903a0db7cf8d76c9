//! Measures the audit chain: sealing in a database, checking there, and checking an export without one (bench/audit.md).
//!
//! `audit-bench postgres://user@host/database [entries] [organizations]`; the database is migrated and filled. When its
//! server runs on this machine, its processor time is told too. `bench/audit` brings a server.

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

    let server = Server::of(&pool).await;
    println!("load {}", load());
    let meter = Meter::start(&server);
    seal::catch_up(&pool, Duration::MAX).await.unwrap();
    meter.told("sealed", entries);

    let log = AuditLog::new(pool, Arc::new(SystemClock));
    let meter = Meter::start(&server);
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
    meter.told("checked in the database", checked);

    let path = std::env::temp_dir().join(format!("audit-bench-{}.jsonl", std::process::id()));
    let meter = Meter::start(&server);
    let mut export = log.export(orgs[0], Actor::System, Format::JsonLines, Filter::default()).await.unwrap();
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    while let Some(piece) = export.next().await.unwrap() {
        file.write_all(&piece).unwrap();
    }
    file.flush().unwrap();
    meter.told("exported", checked);

    for _ in 0..3 {
        let meter = Meter::start(&Server(None));
        let proof = verify::file(std::fs::File::open(&path).unwrap(), &[]).unwrap();
        meter.told("verified without a server", i64::try_from(proof.chain.count).unwrap());
    }
    std::fs::remove_file(path).unwrap();
    println!("load {}", load());
}

/// What something takes.
struct Meter<'a> {
    server: &'a Server,
    started: Instant,
    here: Duration,
    there: Option<Duration>,
}

impl<'a> Meter<'a> {
    fn start(server: &'a Server) -> Self {
        let here = used("self").unwrap_or_default()[0];
        Self { server, started: Instant::now(), here, there: server.used() }
    }

    fn told(&self, what: &str, entries: i64) {
        let took = self.started.elapsed().as_secs_f64();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / entries as f64;
        let here = each(used("self").unwrap_or_default()[0] - self.here);
        let there = self.server.used().zip(self.there).map(|(now, before)| each(now.saturating_sub(before)));
        let there = there.map(|micros| format!(" and {micros:.2} µs in Postgres")).unwrap_or_default();
        println!(
            "{what}: {entries} entries in {took:.2} s, {:.0} a second, {here:.2} µs of processor time here{there} for each",
            entries as f64 / took
        );
    }
}

/// The first process of the server, when it runs on this machine.
struct Server(Option<String>);

impl Server {
    async fn of(pool: &sqlx::PgPool) -> Self {
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(pool).await.unwrap();
        let is_ours = std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "postgres");
        Self(stat(&pid.to_string()).filter(|_| is_ours).map(|fields| fields[1].clone()))
    }

    /// The time of all its processes, those that ended as well.
    fn used(&self) -> Option<Duration> {
        let first = self.0.as_ref()?;
        let [own, ended] = used(first)?;
        let processes = std::fs::read_dir("/proc").ok()?.flatten();
        let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
        let children = names.filter(|name| stat(name).is_some_and(|fields| fields[1] == *first));
        Some(own + ended + children.filter_map(|name| used(&name)).map(|[own, _]| own).sum::<Duration>())
    }
}

/// The fields of stat(5) from the third on.
fn stat(process: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// User and system time of a process, and of those of its children that ended. Ticks are hundredths of a second.
fn used(process: &str) -> Option<[Duration; 2]> {
    let fields = stat(process)?;
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap_or_default();
    Some([ticks(11) + ticks(12), ticks(13) + ticks(14)].map(|ticks| Duration::from_millis(ticks * 10)))
}

/// What is running besides: the load average of the last minute.
fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or_default().to_owned()
}
