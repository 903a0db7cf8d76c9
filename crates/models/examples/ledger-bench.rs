//! Measures the ledger against a database: `ledger-bench <database url> [calls] [at once]`. The database
//! is migrated first and gets an organization of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement stops when it cannot go on"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tale_core::Problem;
use tale_core::clock::SystemClock;
use tale_core::ids::{ApiKeyId, OrgId, UserId};
use tale_governance::budgets::{Amounts, BudgetRules};
use tale_models::ledger::report::{GroupBy, MAX_GROUPS, Scope};
use tale_models::ledger::{Charge, Consumption, Estimate, Ledger, Outcome, RulesSource, source};

struct Rules(Arc<BudgetRules>);

#[async_trait]
impl RulesSource for Rules {
    async fn budgets(&self, _org: OrgId) -> Result<Arc<BudgetRules>, Problem> {
        Ok(self.0.clone())
    }
}

fn ledger(pool: &PgPool, rules: serde_json::Value) -> Ledger {
    let rules = serde_json::from_value(serde_json::json!({ "rules": rules })).unwrap();
    Ledger::new(pool.clone(), Arc::new(SystemClock), Arc::new(Rules(Arc::new(rules))))
}

async fn organization(pool: &PgPool) -> OrgId {
    let org = OrgId::new();
    sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, 'Bench', now())")
        .bind(org)
        .bind(format!("bench-{}", org.0.simple()))
        .execute(pool)
        .await
        .unwrap();
    org
}

fn charges(org: OrgId) -> Vec<Charge> {
    (0..50)
        .map(|_| Charge {
            org,
            person: Some(UserId::new()),
            role: Some("member"),
            api_key: Some(ApiKeyId::new()),
            source: source::DIRECT_API.into(),
            provider: "bench".into(),
            model: "bench".into(),
        })
        .collect()
}

fn call() -> Estimate {
    let amounts = Amounts { tokens: 1_000, cost_micro_usd: 500, requests: 1 };
    Estimate { needed: amounts, wanted: amounts, floor: Consumption::default(), ..Estimate::default() }
}

const USED: Consumption =
    Consumption { input_tokens: 600, output_tokens: 100, cached_tokens: 0, units: 0, cost_micro_usd: 350 };

/// So many calls, each held and settled, at most `at_once` of them at the same time.
async fn run(ledgers: &[Ledger], charges: &[Charge], calls: usize, at_once: usize) -> (f64, Duration, Duration) {
    let began = Instant::now();
    let took: Vec<Duration> = stream::iter(0..calls)
        .map(|n| {
            let (ledger, charge) = (&ledgers[n % ledgers.len()], &charges[n % charges.len()]);
            async move {
                let began = Instant::now();
                let hold = ledger.hold(charge, call()).await.unwrap();
                ledger.settle(hold, Outcome::Known(USED)).await;
                began.elapsed()
            }
        })
        .buffer_unordered(at_once)
        .collect()
        .await;
    let whole = began.elapsed();
    let mut took = took;
    took.sort_unstable();
    (calls as f64 / whole.as_secs_f64(), took[took.len() / 2], took[took.len() * 99 / 100])
}

fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // User and system time in hundredths of a second.
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("usage: ledger-bench <database url> [calls] [at once]");
    let calls: usize = arguments.next().map_or(20_000, |text| text.parse().unwrap());
    let at_once: usize = arguments.next().map_or(256, |text| text.parse().unwrap());
    let pool = PgPoolOptions::new().max_connections(8).connect(&url).await.unwrap();
    tale_db::migrate::app(&pool).await.unwrap();
    let fsync: String = sqlx::query_scalar("SHOW fsync").fetch_one(&pool).await.unwrap();
    println!("{calls} calls, {at_once} at once, fsync {fsync}");

    let org_limit = serde_json::json!([{ "scope": "org", "period": "monthly", "maxRequests": 1_000_000_000 }]);
    for (name, rules, processes) in [
        ("no limits, one process", serde_json::json!([]), 1),
        ("no limits, two processes", serde_json::json!([]), 2),
        ("a limit of the organization, one process", org_limit.clone(), 1),
        ("a limit of the organization, two processes", org_limit, 2),
    ] {
        let charges = charges(organization(&pool).await);
        let ledgers: Vec<Ledger> = (0..processes).map(|_| ledger(&pool, rules.clone())).collect();
        run(&ledgers, &charges, calls / 10, at_once).await;
        let before = cpu_ms();
        let (per_second, p50, p99) = run(&ledgers, &charges, calls, at_once).await;
        let cpu = (cpu_ms() - before) as f64 / calls as f64;
        let (_, alone, _) = run(&ledgers, &charges, 200, 1).await;
        println!(
            "{name}: {per_second:.0} accounted calls/s, {p50:?} p50, {p99:?} p99, {cpu:.3} CPU-ms here per call; a lone call {alone:?}"
        );
    }

    let org = organization(&pool).await;
    let charges = charges(org);
    let ten = serde_json::json!([{ "scope": "org", "period": "monthly", "maxRequests": 10 }]);
    let ledgers = [ledger(&pool, ten.clone()), ledger(&pool, ten)];
    let began = Instant::now();
    let all = join_all((0..10_000).map(|n| ledgers[n % 2].hold(&charges[n % 50], call()))).await;
    let took = began.elapsed();
    let admitted: Vec<_> = all.into_iter().flatten().collect();
    println!("10,000 at once against a limit of ten requests: {} admitted, in {took:?}", admitted.len());
    for (n, hold) in admitted.into_iter().enumerate() {
        ledgers[n % 2].settle(hold, Outcome::Released).await;
    }
    let again = join_all((0..10).map(|n| ledgers[n % 2].hold(&charges[n % 50], call()))).await;
    println!("given back and asked for again: {} of 10 admitted", again.iter().filter(|one| one.is_ok()).count());

    // A page of ninety days over a million sums: 111 people, 10 models and 10 kinds of work a day.
    let org = organization(&pool).await;
    sqlx::query(
        "INSERT INTO app.usage_days SELECT $1, current_date - d, md5(u::text)::uuid, NULL, 'source-' || s, 'bench', 'model-' || m, 0, \
         7, 4000, 900, 0, 0, 12345 FROM generate_series(0, 89) d, generate_series(1, 111) u, generate_series(0, 9) s, generate_series(0, 9) m",
    )
    .bind(org)
    .execute(&pool)
    .await
    .unwrap();
    let ledger = ledger(&pool, serde_json::json!([]));
    let to = chrono::Utc::now().date_naive();
    let scope = Scope { from: to - chrono::TimeDelta::days(89), to, agent: None, model: None, person: None, key: None };
    for group_by in [GroupBy::Day, GroupBy::Agent, GroupBy::Model, GroupBy::Person, GroupBy::Key] {
        let began = Instant::now();
        let report = ledger.report(org, &scope, group_by, MAX_GROUPS).await.unwrap();
        println!("ninety days by {group_by:?}: {} groups in {:?}", report.groups.len(), began.elapsed());
    }
}
