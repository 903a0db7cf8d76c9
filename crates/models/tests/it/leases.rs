//! Leases: calls are paid from memory, and yet no process, crash or clock spends more than was set aside, and
//! nothing stays held.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tale_core::clock::Clock;
use tale_governance::budgets::{Amounts, BudgetRules};
use tale_models::ledger::allowance::{Allowance, Draw, DrawError, Wish};
use tale_models::ledger::{Consumption, Estimate, Hold, Ledger, Outcome};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ledger::{Kit, rules};

const DOLLAR: u64 = 1_000_000;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn call(cost: u64) -> Estimate {
    let needed = Amounts { tokens: 100, cost_micro_usd: cost, requests: 1 };
    let floor = Consumption { input_tokens: 40, cost_micro_usd: cost / 4, ..Consumption::default() };
    Estimate { needed, wanted: needed, floor, ..Estimate::default() }
}

fn used(cost: u64) -> Outcome {
    Outcome::Known(Consumption { input_tokens: 40, output_tokens: 10, cost_micro_usd: cost, ..Consumption::default() })
}

/// A process that leases.
struct Process {
    ledger: Ledger,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Process {
    fn start(kit: &Kit, rules: &Arc<BudgetRules>) -> Self {
        let (ledger, stop) = (kit.ledger(rules), CancellationToken::new());
        let running = tokio::spawn({
            let (ledger, stop) = (ledger.clone(), stop.clone());
            async move { ledger.run(stop).await }
        });
        Self { ledger, stop, running }
    }

    /// Calls until the process has leased something.
    async fn leases(&self, kit: &Kit, draw: &Draw) {
        let leased = async {
            while kit.leases(draw).await.0 == 0 {
                let hold = self.ledger.draw(draw, call(1)).await.unwrap();
                self.ledger.settle(hold, Outcome::Released).await;
            }
        };
        tokio::time::timeout(PATIENCE, leased).await.expect("it leases");
    }

    async fn ends(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }

    /// As if it had been killed: nothing that it knows is written any more.
    fn killed(self) -> Ledger {
        self.running.abort();
        self.ledger
    }
}

impl Kit {
    async fn allowance(&self, ledger: &Ledger, cost: u64) -> Draw {
        let wish = Wish { cost_micro_usd: cost, least_cost_micro_usd: cost, tokens: None, requests: None };
        let aside = ledger.set_aside(&self.charge(None), wish).await.unwrap();
        let (id, mut tx) = (Uuid::now_v7(), self.db.app.begin().await.unwrap());
        aside.keep(&mut tx, id, self.clock.now() + TimeDelta::hours(1)).await.unwrap();
        tx.commit().await.unwrap();
        aside.kept();
        Draw { allowance: Allowance { org: self.org, id }, provider: "p".into(), model: "m".into() }
    }

    /// Leases of an allowance, and what they have left.
    async fn leases(&self, draw: &Draw) -> (i64, i64) {
        sqlx::query_as(
            "SELECT count(*), coalesce(sum(cost_micro_usd), 0)::bigint FROM app.usage_leases WHERE allowance_id = $1",
        )
        .bind(draw.allowance.id)
        .fetch_one(&self.db.app)
        .await
        .unwrap()
    }

    /// What is spent and held of an allowance, leases included, and what they have.
    async fn stands(&self, draw: &Draw) -> (i64, i64) {
        sqlx::query_as("SELECT spent_cost, held_cost FROM app.usage_allowances WHERE id = $1")
            .bind(draw.allowance.id)
            .fetch_one(&self.db.app)
            .await
            .unwrap()
    }

    async fn until_leases(&self, draw: &Draw, count: i64) {
        let wait = async {
            while self.leases(draw).await.0 != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("leases come and go");
    }
}

fn cap() -> Arc<BudgetRules> {
    rules(serde_json::json!([{ "scope": "org", "period": "daily", "maxCostCents": 1_000 }]))
}

#[tokio::test]
async fn calls_paid_from_a_lease_are_booked_like_others_and_what_is_left_comes_back() {
    let kit = Kit::new().await;
    let process = Process::start(&kit, &cap());
    let draw = kit.allowance(&process.ledger, DOLLAR).await;
    process.leases(&kit, &draw).await;
    // Too short to ever have a hold, long enough for one, and given back.
    for at in 0..30 {
        let hold = process.ledger.draw(&draw, call(1_000)).await.unwrap();
        process.ledger.settle(hold, if at % 3 == 0 { Outcome::Released } else { used(600) }).await;
    }
    let running = process.ledger.draw(&draw, call(1_000)).await.unwrap();
    let state = process.ledger.allowance(draw.allowance).await.unwrap().unwrap();
    // What is leased and not spent is neither spent nor held by calls.
    assert_eq!((state.spent_cost, state.spent_requests, state.held_cost, state.calls), (12_000, 20, 1_000, 1));
    assert_eq!(kit.counters("org").await, ([1_000, 12_000, 20], [0, 988_000, 0]));
    process.ledger.settle(running, used(700)).await;
    let state = process.ledger.allowance(draw.allowance).await.unwrap().unwrap();
    assert_eq!((state.spent_cost, state.held_cost, state.calls), (12_700, 0, 0));
    process.ends().await;
    assert_eq!((kit.leases(&draw).await.0, kit.stands(&draw).await), (0, (12_700, 0)));
    assert_eq!(kit.bookings().await.len(), 21);
}

#[tokio::test]
async fn a_call_that_a_lease_has_no_room_for_makes_it_larger() {
    let kit = Kit::new().await;
    let process = Process::start(&kit, &cap());
    let draw = kit.allowance(&process.ledger, DOLLAR).await;
    process.leases(&kit, &draw).await;
    let large = 10_000;
    assert!(kit.leases(&draw).await.1 < large, "what was leased for small calls has no room for a large one");
    let leased = async {
        while kit.leases(&draw).await.1 < large {
            let hold = process.ledger.draw(&draw, call(large.unsigned_abs())).await.unwrap();
            process.ledger.settle(hold, Outcome::Released).await;
        }
    };
    tokio::time::timeout(PATIENCE, leased).await.expect("it leases for large calls");
    process.ends().await;
    assert_eq!((kit.leases(&draw).await.0, kit.stands(&draw).await), (0, (0, 0)));
}

#[tokio::test]
async fn an_idle_key_gives_back_what_it_leased() {
    let kit = Kit::new().await;
    let process = Process::start(&kit, &cap());
    let draw = kit.allowance(&process.ledger, DOLLAR).await;
    process.leases(&kit, &draw).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
    kit.until_leases(&draw, 0).await;
    assert_eq!(kit.stands(&draw).await, (0, 0));
    process.ends().await;
}

#[tokio::test]
async fn whoever_finds_no_room_gets_what_another_process_leased_and_does_not_need() {
    let kit = Kit::new().await;
    let (one, other) = (Process::start(&kit, &cap()), Process::start(&kit, &cap()));
    let draw = kit.allowance(&one.ledger, DOLLAR).await;
    // A large call makes a large lease.
    let large = one.ledger.draw(&draw, call(20_000)).await.unwrap();
    one.ledger.settle(large, Outcome::Released).await;
    let leased = async {
        while kit.leases(&draw).await.1 < 200_000 {
            let hold = one.ledger.draw(&draw, call(20_000)).await.unwrap();
            one.ledger.settle(hold, Outcome::Released).await;
        }
    };
    tokio::time::timeout(PATIENCE, leased).await.unwrap();
    // All of it at once, by a hundred who want a hundredth each, elsewhere.
    let drawn = join_all((0..110).map(|_| other.ledger.draw(&draw, call(10_000)))).await;
    assert_eq!(drawn.iter().filter(|held| held.is_ok()).count(), 100);
    assert!(drawn.iter().filter_map(|held| held.as_ref().err()).all(|error| matches!(error, DrawError::Full(_))));
    assert_eq!((kit.leases(&draw).await.0, kit.stands(&draw).await), (0, (0, 1_000_000)));
    for hold in drawn.into_iter().flatten() {
        other.ledger.settle(hold, used(10_000)).await;
    }
    assert!(matches!(one.ledger.draw(&draw, call(1)).await, Err(DrawError::Full(_))));
    one.ends().await;
    other.ends().await;
}

#[tokio::test]
async fn once_a_revocation_is_answered_nobody_pays_from_a_lease() {
    let kit = Kit::new().await;
    let (one, other) = (Process::start(&kit, &cap()), Process::start(&kit, &cap()));
    let draw = kit.allowance(&one.ledger, DOLLAR).await;
    one.leases(&kit, &draw).await;
    let running = one.ledger.draw(&draw, call(5_000)).await.unwrap();
    assert_eq!(other.ledger.end_allowances(&[draw.allowance]).await.unwrap(), 1);
    assert!(matches!(one.ledger.draw(&draw, call(1)).await, Err(DrawError::Ended)));
    assert_eq!((kit.leases(&draw).await.0, kit.stands(&draw).await), (0, (0, 5_000)));
    one.ledger.settle(running, used(4_000)).await;
    let state = other.ledger.allowance(draw.allowance).await.unwrap().unwrap();
    assert!(state.settled_at.is_some() && state.spent_cost == 4_000, "{state:?}");
    assert_eq!(kit.counters("org").await, ([50, 4_000, 1], [0, 0, 0]));
    one.ends().await;
    other.ends().await;
}

#[tokio::test]
async fn a_killed_process_keeps_nothing_and_no_jump_of_a_clock_takes_a_lease_from_one_that_lives() {
    let kit = Kit::new().await;
    let killed = Process::start(&kit, &cap());
    let other = kit.ledger(&cap());
    let draw = kit.allowance(&other, DOLLAR).await;
    killed.leases(&kit, &draw).await;
    let hold = killed.ledger.draw(&draw, call(9_000)).await.unwrap();
    hold.progress(
        Consumption { input_tokens: 40, output_tokens: 3, cost_micro_usd: 3_000, ..Consumption::default() },
        0,
    );
    // It asks for its state, so what it has begun is written.
    assert_eq!(killed.ledger.allowance(draw.allowance).await.unwrap().unwrap().calls, 1);
    killed.ledger.keep().await.unwrap();

    // A clock that jumps by a day: the owner believes its lease no more, and nobody takes it.
    other.sweep_leases().await.unwrap();
    let before = kit.clock.now();
    kit.clock.set(before + TimeDelta::minutes(30));
    other.sweep_leases().await.unwrap();
    assert_eq!(kit.leases(&draw).await.0, 1);
    kit.clock.set(before);

    std::mem::forget(hold);
    let dead = killed.killed();
    kit.clock.advance(Duration::from_secs(400));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(400)).await;
    tokio::time::resume();
    let swept = [other.sweep().await.unwrap(), kit.ledger(&cap()).sweep().await.unwrap()];
    assert_eq!(swept, [1, 0]);
    other.sweep_leases().await.unwrap();
    assert_eq!(kit.bookings().await, [("abandoned".to_owned(), 43)]);
    assert_eq!((kit.leases(&draw).await.0, kit.stands(&draw).await), (0, (3_000, 0)));
    drop(dead);
}

#[tokio::test]
async fn a_process_that_loses_its_lease_pays_nothing_from_it_and_books_what_ran() {
    let kit = Kit::new().await;
    let process = Process::start(&kit, &cap());
    let draw = kit.allowance(&process.ledger, DOLLAR).await;
    process.leases(&kit, &draw).await;
    let (short, long) = (
        process.ledger.draw(&draw, call(5_000)).await.unwrap(),
        process.ledger.draw(&draw, call(5_000)).await.unwrap(),
    );
    // As if it had been frozen for minutes.
    let taken = "SELECT app.usage_lease_end($1, ARRAY(SELECT id FROM app.usage_leases), ARRAY(SELECT beat FROM app.usage_leases))";
    let taken: i64 = sqlx::query_scalar(taken).bind(kit.clock.now()).fetch_one(&kit.db.app).await.unwrap();
    assert_eq!(taken, 1);
    process.ledger.settle(short, used(4_000)).await;
    let state = process.ledger.allowance(draw.allowance).await.unwrap().unwrap();
    assert_eq!((state.spent_cost, state.calls), (4_000, 1));
    process.ledger.settle(long, used(3_000)).await;
    assert_eq!(process.ledger.allowance(draw.allowance).await.unwrap().unwrap().spent_cost, 7_000);
    process.ends().await;
    assert_eq!((kit.leases(&draw).await.0, kit.stands(&draw).await), (0, (7_000, 0)));
    assert_eq!(kit.counters("org").await, ([100, 7_000, 2], [0, 993_000, 0]));
}

#[derive(Debug, Clone)]
enum Step {
    Draw {
        process: usize,
        cost: u64,
        times: u8,
    },
    Settle {
        pick: usize,
        part: u64,
        outcome: u8,
    },
    /// Lets what is under way go on for a moment.
    Wait,
    Kill {
        process: usize,
    },
    Jump {
        minutes: i64,
    },
    Sweep {
        process: usize,
    },
    Revoke {
        process: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let process = || 0..3_usize;
    let step = prop_oneof![
        8 => (process(), 1..1_500_u64, 1..12_u8).prop_map(|(process, cost, times)| Step::Draw { process, cost, times }),
        6 => (any::<usize>(), 0..=100_u64, 0..4_u8).prop_map(|(pick, part, outcome)| Step::Settle { pick, part, outcome }),
        3 => Just(Step::Wait),
        1 => process().prop_map(|process| Step::Kill { process }),
        1 => (-20..20_i64).prop_map(|minutes| Step::Jump { minutes }),
        1 => process().prop_map(|process| Step::Sweep { process }),
        1 => process().prop_map(|process| Step::Revoke { process }),
    ];
    proptest::collection::vec(step, 1..60)
}

const CAP: u64 = 60_000;

async fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let kit = Kit::new().await;
    let rules = cap();
    let mut processes: Vec<Process> = (0..3).map(|_| Process::start(&kit, &rules)).collect();
    let mut draw = kit.allowance(&processes[0].ledger, CAP).await;
    let mut draws = vec![draw.clone()];
    let mut running: Vec<(usize, u64, Allowance, Hold)> = Vec::new();
    let mut killed = Vec::new();
    for step in steps {
        match step {
            Step::Draw { process, cost, times } => {
                let ledger = &processes[process].ledger;
                for held in join_all((0..times).map(|_| ledger.draw(&draw, call(cost)))).await {
                    match held {
                        Ok(hold) => running.push((process, cost, draw.allowance, hold)),
                        Err(error) => prop_assert!(!matches!(error, DrawError::Hold(_)), "{error}"),
                    }
                }
                // However it is paid, all that runs and all that is booked is no more than there was.
                let runs: u64 = running.iter().filter(|call| call.2 == draw.allowance).map(|call| call.1).sum();
                let (spent, held) = kit.stands(&draw).await;
                prop_assert!(spent + i64::try_from(runs).unwrap() <= i64::try_from(CAP).unwrap(), "{spent} {runs}");
                prop_assert!(spent + held <= i64::try_from(CAP).unwrap(), "{spent} {held}");
            }
            Step::Settle { pick, part, outcome } => {
                for _ in 0..4 {
                    if running.is_empty() {
                        break;
                    }
                    let (process, cost, _, hold) = running.swap_remove(pick % running.len());
                    let tokens =
                        Consumption { input_tokens: 50, cost_micro_usd: cost * part / 100, ..Consumption::default() };
                    match outcome {
                        0 => drop(hold),
                        1 => processes[process].ledger.settle(hold, Outcome::Released).await,
                        2 => processes[process].ledger.settle(hold, Outcome::Floor(tokens)).await,
                        _ => processes[process].ledger.settle(hold, Outcome::Known(tokens)).await,
                    }
                }
            }
            Step::Wait => tokio::time::sleep(Duration::from_millis(25)).await,
            Step::Kill { process } => {
                let dead = std::mem::replace(&mut processes[process], Process::start(&kit, &rules));
                let (its, others) =
                    running.into_iter().partition(|call: &(usize, u64, Allowance, Hold)| call.0 == process);
                running = others;
                its.into_iter().for_each(|call: (usize, u64, Allowance, Hold)| std::mem::forget(call.3));
                killed.push(dead.killed());
            }
            Step::Jump { minutes } => {
                kit.clock.set(kit.clock.now() + TimeDelta::minutes(minutes));
            }
            Step::Sweep { process } => {
                for process in &processes {
                    process.ledger.keep().await.unwrap();
                }
                processes[process].ledger.sweep().await.unwrap();
                processes[process].ledger.sweep_leases().await.unwrap();
            }
            Step::Revoke { process } => {
                processes[process].ledger.end_allowances(&[draw.allowance]).await.unwrap();
                for process in &processes {
                    let refused = process.ledger.draw(&draw, call(1)).await;
                    prop_assert!(matches!(refused, Err(DrawError::Ended)), "{refused:?}");
                }
                draw = kit.allowance(&processes[process].ledger, CAP).await;
                draws.push(draw.clone());
            }
        }
    }
    drop(running);
    for process in processes {
        process.ends().await;
    }
    // Whoever comes next, alone, finds out what the killed ones left; then nothing is held by anybody.
    let last = kit.ledger(&rules);
    let clean = async {
        loop {
            last.close_abandoned().await.unwrap();
            let open: i64 =
                sqlx::query_scalar("SELECT count(*) FROM app.usage_holds").fetch_one(&kit.db.app).await.unwrap();
            if open == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, clean).await.expect("every hold ends");
    for draw in &draws {
        let (_, held) = kit.stands(draw).await;
        prop_assert_eq!((held, kit.leases(draw).await.0), (0, 0));
        last.end_allowances(&[draw.allowance]).await.unwrap();
        let state = last.allowance(draw.allowance).await.unwrap().unwrap();
        prop_assert!(state.settled_at.is_some() && state.calls == 0, "{state:?}");
    }
    let booked: i64 = kit.bookings().await.iter().map(|(_, tokens)| tokens).sum();
    let (used, held) = kit.counters("org").await;
    prop_assert_eq!((used[0], held), (booked, [0; 3]));
    Ok(())
}

#[test]
fn no_interleaving_of_leases_over_spends_or_leaks() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config { cases: 12, max_shrink_iters: 32, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&steps(), |steps| runtime.block_on(play(steps))).unwrap();
}
