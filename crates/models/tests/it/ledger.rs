//! Holds and bookings: nothing is over-spent, leaked or booked twice, whatever happens in between.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::PgPool;
use tale_core::Problem;
use tale_core::clock::Clock;
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};
use tale_governance::budgets::{Amounts, BudgetRules, Kind, Scope};
use tale_models::Pricing;
use tale_models::ledger::{
    Charge, Consumption, Estimate, Hold, HoldError, Ledger, Outcome, Price, RulesSource, source,
};
use tale_testkit::{ManualClock, TestDb};

/// The same rules for every organization, whose people are in the same teams.
struct Rules(Arc<BudgetRules>, Vec<TeamId>);

#[async_trait]
impl RulesSource for Rules {
    async fn budgets(&self, _org: OrgId) -> Result<Arc<BudgetRules>, Problem> {
        Ok(self.0.clone())
    }

    async fn teams(&self, _org: OrgId, _person: UserId) -> Result<Vec<TeamId>, Problem> {
        Ok(self.1.clone())
    }
}

pub fn rules(value: serde_json::Value) -> Arc<BudgetRules> {
    Arc::new(serde_json::from_value(serde_json::json!({ "rules": value })).unwrap())
}

pub struct Kit {
    pub db: TestDb,
    pub clock: Arc<ManualClock>,
    pub org: OrgId,
}

impl Kit {
    pub async fn new() -> Self {
        let db = TestDb::new().await;
        let clock = Arc::new(ManualClock::new("2026-11-29T12:00:00Z".parse::<DateTime<Utc>>().unwrap()));
        let org = organization(&db.app, clock.now()).await;
        Self { db, clock, org }
    }

    /// Another process.
    pub fn ledger(&self, rules: &Arc<BudgetRules>) -> Ledger {
        Ledger::new(self.db.app.clone(), self.clock.clone(), Arc::new(Rules(rules.clone(), Vec::new())))
    }

    pub fn charge(&self, person: Option<UserId>) -> Charge {
        Charge {
            org: self.org,
            person,
            role: Some("member"),
            api_key: None,
            source: source::CHAT.into(),
            provider: "demo".into(),
            model: "demo".into(),
        }
    }

    /// Used and held tokens, cost and requests of a holder.
    pub async fn counters(&self, holder: &str) -> ([i64; 3], [i64; 3]) {
        let row: (i64, i64, i64, i64, i64, i64) = sqlx::query_as(
            "SELECT coalesce(sum(used_tokens), 0)::bigint, coalesce(sum(used_cost_micro_usd), 0)::bigint, \
             coalesce(sum(used_requests), 0)::bigint, coalesce(sum(held_tokens), 0)::bigint, \
             coalesce(sum(held_cost_micro_usd), 0)::bigint, coalesce(sum(held_requests), 0)::bigint \
             FROM app.usage_counters WHERE org_id = $1 AND holder = $2",
        )
        .bind(self.org)
        .bind(holder)
        .fetch_one(&self.db.app)
        .await
        .unwrap();
        ([row.0, row.1, row.2], [row.3, row.4, row.5])
    }

    /// Outcome and tokens of every booking, in the order of admission.
    pub async fn bookings(&self) -> Vec<(String, i64)> {
        sqlx::query_as("SELECT outcome, input_tokens + output_tokens FROM app.usage_bookings WHERE org_id = $1 ORDER BY reservation_id")
            .bind(self.org)
            .fetch_all(&self.db.app)
            .await
            .unwrap()
    }

    async fn open(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM app.usage_holds").fetch_one(&self.db.app).await.unwrap()
    }

    /// Waits until the holds that were dropped are written off.
    async fn until_open(&self, expected: i64) {
        for _ in 0..2_000 {
            if self.open().await == expected {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} holds are open instead of {expected}", self.open().await);
    }
}

async fn organization(pool: &PgPool, now: DateTime<Utc>) -> OrgId {
    let org = OrgId::new();
    sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, 'Test', $3)")
        .bind(org)
        .bind(format!("o{}", org.0.simple()))
        .bind(now)
        .execute(pool)
        .await
        .unwrap();
    org
}

fn one_request(tokens: u64) -> Estimate {
    let amounts = Amounts { tokens, cost_micro_usd: tokens, requests: 1 };
    Estimate { needed: amounts, wanted: amounts, floor: used(1), ..Estimate::default() }
}

fn used(tokens: u64) -> Consumption {
    Consumption { input_tokens: tokens, cost_micro_usd: tokens, ..Consumption::default() }
}

/// A process that ends between the work and its settlement.
fn killed(hold: Hold) {
    std::mem::forget(hold);
}

fn refused(error: HoldError) -> (Kind, Scope, u64) {
    match error {
        HoldError::Exceeded(refusal) => (refusal.cap.kind, refusal.cap.scope, refusal.used),
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn ten_thousand_at_once_against_a_budget_for_ten_admit_ten() {
    let kit = Kit::new().await;
    let rules = rules(serde_json::json!([{ "scope": "org", "period": "monthly", "maxRequests": 10 }]));
    let processes = [kit.ledger(&rules), kit.ledger(&rules)];
    let charges: Vec<Charge> = (0..100).map(|_| kit.charge(Some(UserId::new()))).collect();
    let all = join_all((0..10_000).map(|n| processes[n % 2].hold(&charges[n % 100], one_request(7)))).await;
    let mut admitted: Vec<Hold> = all.into_iter().filter_map(Result::ok).collect();
    assert_eq!(admitted.len(), 10);
    assert_eq!(kit.counters("org").await, ([0; 3], [70, 70, 10]));
    // What is given back can be had again, and not one more.
    for hold in admitted.drain(..3) {
        processes[0].settle(hold, Outcome::Released).await;
    }
    for hold in admitted {
        processes[1].settle(hold, Outcome::Known(used(5))).await;
    }
    assert_eq!(kit.counters("org").await, ([35, 35, 7], [0; 3]));
    let again = join_all((0..10).map(|n| processes[n % 2].hold(&charges[n], one_request(7)))).await;
    assert_eq!(again.iter().filter(|one| one.is_ok()).count(), 3);
}

#[tokio::test]
async fn work_without_limits_is_booked_under_everybody_it_belongs_to() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&Arc::default());
    let (person, key) = (UserId::new(), ApiKeyId::new());
    let charge = Charge { api_key: Some(key), ..kit.charge(Some(person)) };
    let hold = ledger.hold(&charge, one_request(100)).await.unwrap();
    assert!(!hold.bounds_output());
    ledger.settle(hold, Outcome::Known(used(40))).await;
    for holder in ["org".to_owned(), format!("user:{person}"), format!("key:{key}")] {
        assert_eq!(kit.counters(&holder).await, ([40, 40, 1], [0; 3]), "{holder}");
    }
    assert_eq!(kit.bookings().await, [("reported".to_owned(), 40)]);
    let days: (i64, i64) = sqlx::query_as("SELECT sum(requests)::bigint, sum(input_tokens)::bigint FROM app.usage_days WHERE user_id = $1 AND api_key_id = $2")
        .bind(person).bind(key).fetch_one(&kit.db.app).await.unwrap();
    assert_eq!(days, (1, 40));
}

#[tokio::test]
async fn no_answer_of_a_provider_breaks_the_sums_or_eats_a_budget() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&Arc::default());
    let all = Consumption {
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        cost_micro_usd: u64::MAX,
        ..Consumption::default()
    };
    // A prompt of 1,000 tokens and an answer of at most 500: far more than can be is not believed.
    let amounts = Amounts { tokens: 1_500, cost_micro_usd: 3_000, requests: 1 };
    let call = Estimate { needed: amounts, wanted: amounts, floor: used(1_000), ..Estimate::default() };
    for outcome in [Outcome::Known(all), Outcome::Floor(all)] {
        let hold = ledger.hold(&kit.charge(None), call).await.unwrap();
        hold.progress(all, 0);
        ledger.settle(hold, outcome).await;
    }
    let honest = ledger.hold(&kit.charge(None), call).await.unwrap();
    let told = Consumption { input_tokens: 4_000, output_tokens: 900, cost_micro_usd: 7, ..Consumption::default() };
    ledger.settle(honest, Outcome::Known(told)).await;
    let absurd = 16 * 1_000 + 65_536 + 4 * 500 + 4_096;
    assert_eq!(kit.bookings().await.iter().map(|one| one.1).collect::<Vec<_>>(), [absurd, absurd, 4_900]);
    // Without a bound on the answer the columns have one.
    for _ in 0..20 {
        let hold = ledger.hold(&kit.charge(None), one_request(u64::MAX)).await.unwrap();
        ledger.settle(hold, Outcome::Known(all)).await;
    }
    let (used, held) = kit.counters("org").await;
    assert_eq!(held, [0; 3]);
    assert!(used.iter().all(|sum| *sum < i64::MAX / 1_000_000), "{used:?}");
}

#[tokio::test]
async fn what_is_believed_of_a_claim_costs_what_so_many_tokens_cost() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&Arc::default());
    let pricing = Pricing { input: Some(10.0), output: Some(100.0), cached_input: None, per_minute: None };
    let price = Price::of(Some(&pricing));
    let claim = |input, output| price.consumption(input, 0, output);
    let (most_input, most_output) = (16 * 100 + 65_536, 4 * 500 + 4_096);
    for (told, delivered, believed) in [
        (claim(1_000_000_000_000, 1), 0, claim(most_input, 1)),
        (claim(1_000_000, 1_000_000), 0, claim(most_input, most_output)),
        (claim(u64::MAX, u64::MAX), 0, claim(most_input, most_output)),
        // What has come by is no claim.
        (claim(100, 900_000), 900_000, claim(100, 900_000)),
    ] {
        let hold = ledger.hold(&kit.charge(None), price.whole(100, 500, 1)).await.unwrap();
        hold.progress(told, delivered);
        let id = hold.id();
        ledger.settle(hold, Outcome::Known(told)).await;
        let booked: (i64, i64) = sqlx::query_as(
            "SELECT input_tokens + output_tokens, cost_micro_usd FROM app.usage_bookings WHERE reservation_id = $1",
        )
        .bind(id)
        .fetch_one(&kit.db.app)
        .await
        .unwrap();
        let [input, output, cost] =
            [believed.input_tokens, believed.output_tokens, believed.cost_micro_usd].map(|n| i64::try_from(n).unwrap());
        assert_eq!(booked, (input + output, cost), "{told:?}");
    }
}

#[tokio::test]
async fn who_has_an_answer_is_not_refused_for_what_it_held() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&rules(serde_json::json!([{ "scope": "default", "period": "weekly", "maxTokens": 100 }])));
    let charge = kit.charge(Some(UserId::new()));
    let first = ledger.hold_among(8, &charge, one_request(60)).await.unwrap();
    // The answer is complete, and its booking on the way.
    let end = ledger.end(first, Outcome::Known(used(10)));
    let (second, ()) = tokio::join!(ledger.hold_among(8, &charge, one_request(60)), async {
        ledger.end_hold(end.hold.unwrap()).await;
    });
    second.unwrap();
}

#[tokio::test]
async fn a_limit_counts_what_runs_and_grants_what_is_left() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&rules(serde_json::json!([{ "scope": "default", "period": "weekly", "maxTokens": 100 }])));
    let charge = kit.charge(Some(UserId::new()));
    let first = ledger.hold(&charge, one_request(60)).await.unwrap();
    assert_eq!(refused(ledger.hold(&charge, one_request(41)).await.unwrap_err()), (Kind::Tokens, Scope::Default, 60));
    let some = Estimate { needed: Amounts { tokens: 10, ..Amounts::default() }, ..one_request(500) };
    let rest = ledger.hold(&charge, some).await.unwrap();
    assert_eq!(rest.granted().tokens, 40);
    // Measured anew, a hold gives back what it held before; refused, it keeps that.
    ledger.settle(first, Outcome::Known(used(60))).await;
    let rest = ledger.resize(rest, &charge, one_request(40)).await.unwrap();
    let (why, rest) = *ledger.resize(rest, &charge, one_request(41)).await.unwrap_err();
    assert_eq!(refused(why), (Kind::Tokens, Scope::Default, 60));
    assert_eq!((rest.granted().tokens, kit.open().await), (40, 1));
    ledger.settle(rest, Outcome::Released).await;
    assert_eq!(kit.open().await, 0);
    // Another person has a limit of their own, and after the week everybody has all of it again.
    drop(ledger.hold(&kit.charge(Some(UserId::new())), one_request(100)).await.unwrap());
    kit.clock.set("2026-11-30T00:00:00Z".parse().unwrap());
    drop(ledger.hold(&charge, one_request(100)).await.unwrap());
}

#[tokio::test]
async fn at_most_so_many_calls_of_a_person_and_of_a_key_run_in_all_processes_together() {
    let kit = Kit::new().await;
    let rules = rules(serde_json::json!([{ "scope": "org", "period": "monthly", "maxRequests": 9 }]));
    let processes = [kit.ledger(&rules), kit.ledger(&rules)];
    let (person, key) = (UserId::new(), ApiKeyId::new());
    let charge =
        |person, key| Charge { api_key: Some(key), source: source::DIRECT_API.into(), ..kit.charge(Some(person)) };
    let mine = charge(person, key);
    let all = join_all((0..40).map(|n| processes[n % 2].hold_among(8, &mine, one_request(1)))).await;
    let mut held: Vec<Hold> = all.into_iter().filter_map(Result::ok).collect();
    assert_eq!((held.len(), kit.open().await), (8, 8));
    for (who, what) in [(charge(person, ApiKeyId::new()), "the person"), (charge(UserId::new(), key), "the key")] {
        let refused = processes[0].hold_among(8, &who, one_request(1)).await;
        assert!(matches!(refused, Err(HoldError::Crowded(8))), "{what} has eight");
    }
    // Their other work is not among them; nor does it hold up anybody else, whom the budget refuses by now.
    processes[0]
        .settle(processes[0].hold(&kit.charge(Some(person)), one_request(1)).await.unwrap(), Outcome::Released)
        .await;
    let other = charge(UserId::new(), ApiKeyId::new());
    let ninth = processes[1].hold_among(8, &other, one_request(1)).await.unwrap();
    let full = processes[1].hold_among(8, &other, one_request(1)).await.unwrap_err();
    assert_eq!(refused(full), (Kind::Requests, Scope::Org, 9));
    processes[1].settle(ninth, Outcome::Released).await;
    // A process that is gone does not keep its calls running for as long as its holds.
    held.drain(..).for_each(killed);
    kit.clock.advance(Duration::from_secs(151));
    assert_eq!(kit.open().await, 8);
    drop(processes[0].hold_among(8, &mine, one_request(1)).await.unwrap());
}

#[tokio::test]
async fn a_call_that_ended_makes_room_before_it_is_booked() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&Arc::default());
    let charge = Charge { source: source::DIRECT_API.into(), ..kit.charge(Some(UserId::new())) };
    let mut held = join_all((0..8).map(|_| ledger.hold_among(8, &charge, one_request(1)))).await;
    // Nothing can be booked meanwhile.
    let mut locked = kit.db.app.begin().await.unwrap();
    sqlx::query("LOCK TABLE app.usage_bookings IN EXCLUSIVE MODE").execute(&mut *locked).await.unwrap();
    let ended = held.pop().unwrap().unwrap();
    ended.progress(used(1), 0);
    drop(ended);
    held.push(ledger.hold_among(8, &charge, one_request(1)).await);
    assert!(held.iter().all(Result::is_ok));
    assert!(matches!(ledger.hold_among(8, &charge, one_request(1)).await, Err(HoldError::Crowded(8))));
    locked.rollback().await.unwrap();
}

#[tokio::test]
async fn a_hold_whose_process_died_is_booked_once_by_what_it_had_told() {
    let kit = Kit::new().await;
    let rules = rules(serde_json::json!([{ "scope": "org", "period": "daily", "maxTokens": 1_000 }]));
    let (lost, next) = (kit.ledger(&rules), kit.ledger(&rules));
    let charge = kit.charge(None);
    let told = lost.hold(&charge, one_request(400)).await.unwrap();
    let silent = lost.hold(&charge, one_request(400)).await.unwrap();
    told.progress(used(25), 0);
    kit.clock.advance(Duration::from_secs(60));
    lost.keep().await.unwrap();
    kit.clock.advance(Duration::from_secs(299));
    assert_eq!(next.sweep().await.unwrap(), 0);
    killed(told);
    kit.clock.advance(Duration::from_secs(2));
    assert_eq!(lost.sweep().await.unwrap(), 0, "a process does not give up its own work");
    let other = kit.ledger(&rules);
    let (one, two) = tokio::join!(next.sweep(), other.sweep());
    assert_eq!(one.unwrap() + two.unwrap(), 2);
    assert_eq!(kit.bookings().await, [("abandoned".to_owned(), 25), ("abandoned".to_owned(), 1)]);
    // A process that only seemed dead comes too late to book again.
    lost.settle(silent, Outcome::Known(used(300))).await;
    assert_eq!(kit.bookings().await.len(), 2);
    assert_eq!(kit.counters("org").await, ([26, 26, 2], [0; 3]));
}

#[tokio::test]
async fn a_process_that_is_alone_books_at_once_what_another_left() {
    let kit = Kit::new().await;
    killed(kit.ledger(&Arc::default()).hold(&kit.charge(None), one_request(9)).await.unwrap());
    let next = kit.ledger(&Arc::default());
    let own = next.hold(&kit.charge(None), one_request(9)).await.unwrap();
    assert_eq!(next.close_abandoned().await.unwrap(), 1);
    next.settle(own, Outcome::Known(used(9))).await;
    assert_eq!(kit.bookings().await, [("abandoned".to_owned(), 1), ("reported".to_owned(), 9)]);
}

#[tokio::test]
async fn dropped_work_is_booked_by_its_progress_or_given_back_when_it_never_began() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&Arc::default());
    let charge = kit.charge(None);
    let hold = ledger.hold(&charge, one_request(9)).await.unwrap();
    hold.progress(used(4), 0);
    drop(hold);
    kit.until_open(0).await;
    assert_eq!(kit.bookings().await, [("floor".to_owned(), 4)]);
    drop(ledger.hold(&charge, one_request(9)).await.unwrap());
    kit.until_open(0).await;
    assert_eq!(kit.bookings().await.len(), 1);
    // The caller leaves while it is admitted.
    for _ in 0..20 {
        let asking = ledger.hold(&charge, one_request(9));
        tokio::select! { biased; hold = asking => drop(hold), () = tokio::task::yield_now() => {} }
    }
    let last = ledger.hold(&charge, one_request(9)).await.unwrap();
    ledger.settle(last, Outcome::Released).await;
    kit.until_open(0).await;
    assert_eq!(kit.counters("org").await.1, [0; 3]);
}

#[tokio::test]
async fn work_of_an_organization_that_is_gone_is_refused_alone() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&Arc::default());
    let gone = Charge { org: OrgId::new(), ..kit.charge(None) };
    let here = kit.charge(None);
    let all = join_all((0..20).map(|n| ledger.hold(if n == 7 { &gone } else { &here }, one_request(1)))).await;
    let failed: Vec<usize> = all.iter().enumerate().filter(|(_, one)| one.is_err()).map(|(n, _)| n).collect();
    assert_eq!(failed, [7]);
}

/// What may happen to work.
#[derive(Debug, Clone)]
enum Step {
    Hold { process: usize, person: usize, needed: u64, wanted: u64 },
    Resize { pick: usize, needed: u64 },
    Settle { pick: usize, part: u64, outcome: u8 },
    Kill { pick: usize },
    Sweep { process: usize, minutes: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..2_usize, 0..3_usize, 1..60_u64, 1..120_u64).prop_map(|(process, person, needed, wanted)| Step::Hold {
            process, person, needed, wanted: wanted.max(needed)
        }),
        1 => (any::<usize>(), 1..90_u64).prop_map(|(pick, needed)| Step::Resize { pick, needed }),
        4 => (any::<usize>(), 0..=100_u64, 0..4_u8).prop_map(|(pick, part, outcome)| Step::Settle { pick, part, outcome }),
        1 => any::<usize>().prop_map(|pick| Step::Kill { pick }),
        1 => (0..2_usize, 0..9_i64).prop_map(|(process, minutes)| Step::Sweep { process, minutes }),
    ];
    proptest::collection::vec(step, 1..60)
}

const ORG_TOKENS: u64 = 300;
const PERSON_TOKENS: u64 = 150;

/// Holds run in parallel with whatever follows them until the next step that needs one, so that
/// every interleaving of the writers' batches can happen.
async fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let kit = Kit::new().await;
    let rules = rules(serde_json::json!([
        { "scope": "org", "period": "monthly", "maxTokens": ORG_TOKENS },
        { "scope": "default", "period": "daily", "maxTokens": PERSON_TOKENS, "maxRequests": 12 },
    ]));
    let processes = [kit.ledger(&rules), kit.ledger(&rules)];
    let people = [UserId::new(), UserId::new(), UserId::new()];
    let mut running: Vec<(usize, Charge, Hold)> = Vec::new();
    let mut asking = Vec::new();
    let mut ended = Vec::new();
    for step in steps {
        if let Step::Hold { process, person, needed, wanted } = step {
            let (ledger, charge) = (processes[process].clone(), kit.charge(Some(people[person])));
            let amounts = |tokens| Amounts { tokens, cost_micro_usd: 0, requests: 1 };
            let estimate =
                Estimate { needed: amounts(needed), wanted: amounts(wanted), floor: used(1), ..Estimate::default() };
            asking.push(tokio::spawn(async move {
                let hold = ledger.hold(&charge, estimate).await;
                hold.ok().map(|hold| (process, charge, hold))
            }));
            continue;
        }
        for asked in asking.drain(..) {
            running.extend(asked.await.unwrap());
        }
        let mut take = |pick: usize| (!running.is_empty()).then(|| running.swap_remove(pick % running.len()));
        match step {
            Step::Hold { .. } => {}
            Step::Resize { pick, needed } => {
                if let Some((process, charge, hold)) = take(pick) {
                    let again = processes[process].resize(hold, &charge, one_request(needed)).await;
                    let hold = again.unwrap_or_else(|kept| kept.1);
                    running.push((process, charge, hold));
                }
            }
            Step::Settle { pick, part, outcome } => {
                if let Some((process, _, hold)) = take(pick) {
                    let tokens = hold.granted().tokens * part / 100;
                    let ledger = processes[process].clone();
                    match outcome {
                        3 => drop(hold),
                        outcome => ended.push(tokio::spawn(async move {
                            let outcome = match outcome {
                                0 => Outcome::Known(used(tokens)),
                                1 => Outcome::Floor(used(tokens)),
                                _ => Outcome::Released,
                            };
                            ledger.settle(hold, outcome).await;
                        })),
                    }
                }
            }
            Step::Kill { pick } => {
                if let Some((_, _, hold)) = take(pick) {
                    killed(hold);
                }
            }
            Step::Sweep { process, minutes } => {
                kit.clock.advance(Duration::from_secs(u64::try_from(minutes).unwrap() * 60));
                processes[process].keep().await.unwrap();
                processes[process].sweep().await.unwrap();
            }
        }
        // At no moment is more used and held than a limit admits.
        let (used, held) = kit.counters("org").await;
        prop_assert!(used[0] + held[0] <= i64::try_from(ORG_TOKENS).unwrap(), "{used:?} {held:?}");
        for person in people {
            let (used, held) = kit.counters(&format!("user:{person}")).await;
            prop_assert!(used[0] + held[0] <= i64::try_from(PERSON_TOKENS).unwrap() && used[2] + held[2] <= 12);
        }
    }
    for asked in asking {
        running.extend(asked.await.unwrap());
    }
    for ended in ended {
        ended.await.unwrap();
    }
    drop(running);
    // Whoever comes after a day finds nothing held, and the sums are those of the bookings.
    kit.clock.advance(Duration::from_secs(86_400));
    let mut last = kit.ledger(&rules);
    for _ in 0..100 {
        last.sweep().await.unwrap();
        if kit.open().await == 0 {
            break;
        }
        last = kit.ledger(&rules);
        tokio::task::yield_now().await;
    }
    prop_assert_eq!(kit.open().await, 0);
    let booked: i64 = kit.bookings().await.iter().map(|(_, tokens)| tokens).sum();
    let (used, held) = kit.counters("org").await;
    prop_assert_eq!((used[0], held), (booked, [0; 3]));
    let mut of_people = 0;
    for person in people {
        let (used, held) = kit.counters(&format!("user:{person}")).await;
        prop_assert_eq!(held, [0; 3]);
        of_people += used[0];
    }
    prop_assert_eq!(of_people, booked);
    Ok(())
}

#[test]
fn no_interleaving_over_spends_or_leaks() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config { cases: 16, max_shrink_iters: 64, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&steps(), |steps| runtime.block_on(play(steps))).unwrap();
}

#[tokio::test]
async fn what_the_database_lost_of_a_hold_is_booked_all_the_same_and_once() {
    let kit = Kit::new().await;
    let rules = rules(serde_json::json!([{ "scope": "org", "period": "monthly", "maxRequests": 10 }]));
    let (ledger, other) = (kit.ledger(&rules), kit.ledger(&rules));
    let charge = kit.charge(Some(UserId::new()));
    // A hold does not wait for the disk: a database that is cut off may come back without its last ones.
    let cut_off = async || {
        sqlx::query("DELETE FROM app.usage_holds").execute(&kit.db.app).await.unwrap();
        sqlx::query("DELETE FROM app.usage_counters WHERE used_requests = 0").execute(&kit.db.app).await.unwrap();
    };
    let (booked, released) = (ledger.hold(&charge, one_request(7)).await, ledger.hold(&charge, one_request(7)).await);
    cut_off().await;
    ledger.settle(booked.unwrap(), Outcome::Known(used(5))).await;
    ledger.settle(released.unwrap(), Outcome::Released).await;
    assert_eq!(kit.bookings().await, [("reported".to_owned(), 5)]);
    assert_eq!((kit.counters("org").await, kit.open().await), (([5, 5, 1], [0; 3]), 0));

    // Not lost, but booked for its silence.
    let silent = ledger.hold(&charge, one_request(7)).await.unwrap();
    silent.progress(used(2), 0);
    ledger.keep().await.unwrap();
    kit.clock.advance(Duration::from_secs(600));
    assert_eq!(other.sweep().await.unwrap(), 1);
    ledger.settle(silent, Outcome::Known(used(300))).await;
    assert_eq!(kit.bookings().await[1..], [("abandoned".to_owned(), 2)]);
    assert_eq!(kit.counters("org").await, ([7, 7, 2], [0; 3]));
}

impl Kit {
    /// A team of the organization with these people.
    async fn team(&self, people: &[UserId]) -> TeamId {
        let team = TeamId::new();
        sqlx::query("INSERT INTO app.teams (org_id, id, name, name_key, created_at) VALUES ($1, $2, 'T', $3, now())")
            .bind(self.org)
            .bind(team)
            .bind(team.to_string())
            .execute(&self.db.app)
            .await
            .unwrap();
        for person in people {
            self.join(team, *person).await;
        }
        team
    }

    /// An API key of a team.
    async fn team_key(&self, team: TeamId) -> ApiKeyId {
        let key = ApiKeyId::new();
        sqlx::query(
            "INSERT INTO app.api_keys (id, kind, org_id, team_id, role, hash, first_chars, last_chars, name, created_at)
             VALUES ($1, 'team', $2, $3, 'member', sha256($1::text::bytea), 'tale', 'x', 'K', now())",
        )
        .bind(key)
        .bind(self.org)
        .bind(team)
        .execute(&self.db.app)
        .await
        .unwrap();
        key
    }

    async fn join(&self, team: TeamId, person: UserId) {
        let statements = [
            "INSERT INTO app.users (id, email, name, created_at) SELECT $2, $2::text || '@example.test', 'P', now() WHERE $1::uuid IS NOT NULL AND $3::uuid IS NOT NULL",
            "INSERT INTO app.memberships (org_id, user_id, role, created_at) SELECT $1, $2, 'member', now() WHERE $3::uuid IS NOT NULL",
            "INSERT INTO app.team_members (org_id, user_id, team_id, created_at) VALUES ($1, $2, $3, now())",
        ];
        for statement in statements {
            sqlx::query(statement).bind(self.org).bind(person).bind(team).execute(&self.db.app).await.unwrap();
        }
    }
}

/// Two at once through two processes; what a newcomer used counts from then on, and what a leaver used does not (BUD-3).
#[tokio::test]
async fn the_members_of_a_team_together_stay_within_its_limit() {
    let kit = Kit::new().await;
    let [ada, ben, eve] = [UserId::new(), UserId::new(), UserId::new()];
    let team = kit.team(&[ada, ben]).await;
    let rules = rules(serde_json::json!([
        { "scope": "team", "scopeId": team, "period": "monthly", "maxTokens": 100 },
    ]));
    let process = || Ledger::new(kit.db.app.clone(), kit.clock.clone(), Arc::new(Rules(rules.clone(), vec![team])));
    let (first, second) = (process(), process());
    let (of_ada, of_ben) = (kit.charge(Some(ada)), kit.charge(Some(ben)));
    let wanted = (0..20).map(|n| {
        let (ledger, charge) = if n % 2 == 0 { (&first, &of_ada) } else { (&second, &of_ben) };
        ledger.hold(charge, one_request(30))
    });
    let held: Vec<Hold> = join_all(wanted).await.into_iter().filter_map(Result::ok).collect();
    assert_eq!(held.len(), 3);
    for hold in held {
        first.settle(hold, Outcome::Known(used(30))).await;
    }
    let error = first.hold(&of_ben, one_request(11)).await.err().unwrap();
    assert_eq!(refused(error), (Kind::Tokens, Scope::Team, 90));
    let shown = first.limits_of(kit.org, ada, "member").await.unwrap();
    assert_eq!(shown.iter().map(|limit| limit.used).max(), Some(90), "all of the team");

    // Who used 8 elsewhere joins, then somebody leaves.
    let elsewhere = kit.ledger(&Arc::default());
    let hold = elsewhere.hold(&kit.charge(Some(eve)), one_request(8)).await.unwrap();
    elsewhere.settle(hold, Outcome::Known(used(8))).await;
    kit.join(team, eve).await;
    assert_eq!(refused(first.hold(&of_ada, one_request(3)).await.err().unwrap()).2, 98);
    sqlx::query("DELETE FROM app.team_members WHERE org_id = $1 AND user_id = $2")
        .bind(kit.org)
        .bind(eve)
        .execute(&kit.db.app)
        .await
        .unwrap();
    first.hold(&of_ada, one_request(3)).await.unwrap();
}

/// A key of a team has no person; it and the members share the team's limit, also after it was revoked (KEY-14).
#[tokio::test]
async fn the_keys_of_a_team_use_up_its_limit_and_no_other_s() {
    let kit = Kit::new().await;
    let ada = UserId::new();
    let [team, other] = [kit.team(&[ada]).await, kit.team(&[]).await];
    let rules = rules(serde_json::json!([
        { "scope": "team", "scopeId": team, "period": "monthly", "maxTokens": 100 },
        { "scope": "team", "scopeId": other, "period": "monthly", "maxTokens": 5 },
        { "scope": "default", "period": "monthly", "maxTokens": 1 },
    ]));
    let ledger = Ledger::new(kit.db.app.clone(), kit.clock.clone(), Arc::new(Rules(rules, vec![team])));
    let (key, of_other) = (kit.team_key(team).await, kit.team_key(other).await);
    let by = |key| Charge { api_key: Some(key), role: None, ..kit.charge(None) };
    let of_team = by(key);
    let wanted = (0..10).map(|_| ledger.hold(&of_team, one_request(30)));
    let held: Vec<Hold> = join_all(wanted).await.into_iter().filter_map(Result::ok).collect();
    assert_eq!(held.len(), 3, "all of them at once");
    let error = ledger.hold(&by(key), one_request(11)).await.err().unwrap();
    assert_eq!(refused(error), (Kind::Tokens, Scope::Team, 90));
    for hold in held {
        ledger.settle(hold, Outcome::Known(used(30))).await;
    }
    sqlx::query("UPDATE app.api_keys SET revoked_at = now() WHERE id = $1")
        .bind(key)
        .execute(&kit.db.app)
        .await
        .unwrap();
    let error = ledger.hold(&kit.charge(Some(ada)), one_request(11)).await.err().unwrap();
    assert_eq!(refused(error), (Kind::Tokens, Scope::Team, 90), "what the key used is the members' too");
    let shown = ledger.limits_of(kit.org, ada, "member").await.unwrap();
    assert_eq!(shown.iter().map(|limit| limit.used).max(), Some(90));

    assert_eq!(
        refused(ledger.hold(&by(of_other), one_request(6)).await.err().unwrap()),
        (Kind::Tokens, Scope::Team, 0)
    );
    ledger.hold(&by(of_other), one_request(5)).await.unwrap();
}
