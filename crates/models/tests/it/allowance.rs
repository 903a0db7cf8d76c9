//! Allowances: calls are paid from what was set aside, never more, whatever dies in between.

use std::sync::Arc;

use chrono::TimeDelta;
use futures::future::join_all;
use tale_core::clock::Clock;
use tale_governance::budgets::{Amounts, BudgetRules};
use tale_models::ledger::allowance::{Allowance, Draw, DrawError, Wish};
use tale_models::ledger::{Consumption, Estimate, HoldError, Ledger, Outcome};
use uuid::Uuid;

use crate::ledger::{Kit, rules};

fn dollar() -> Wish {
    Wish { cost_micro_usd: 1_000_000, least_cost_micro_usd: 1_000_000, tokens: None, requests: None }
}

fn call(cost: u64) -> Estimate {
    let needed = Amounts { tokens: 100, cost_micro_usd: cost, requests: 1 };
    let floor = Consumption { input_tokens: 40, cost_micro_usd: cost / 4, ..Consumption::default() };
    Estimate { needed, wanted: needed, floor, ..Estimate::default() }
}

fn used(cost: u64) -> Outcome {
    Outcome::Known(Consumption { input_tokens: 40, output_tokens: 10, cost_micro_usd: cost, ..Consumption::default() })
}

async fn set_aside(kit: &Kit, ledger: &Ledger, wish: Wish) -> Result<Draw, HoldError> {
    let aside = ledger.set_aside(&kit.charge(None), wish).await?;
    let (id, mut tx) = (Uuid::now_v7(), kit.db.app.begin().await.unwrap());
    aside.keep(&mut tx, id, kit.clock.now() + TimeDelta::hours(1)).await.unwrap();
    tx.commit().await.unwrap();
    aside.kept();
    Ok(Draw { allowance: Allowance { org: kit.org, id }, provider: "p".into(), model: "m".into() })
}

fn cap(cents: u64) -> Arc<BudgetRules> {
    rules(serde_json::json!([{ "scope": "org", "period": "daily", "maxCostCents": cents }]))
}

#[tokio::test]
async fn calls_at_once_in_two_processes_never_take_more_than_was_set_aside() {
    let kit = Kit::new().await;
    let free = Arc::new(BudgetRules::default());
    let (one, other) = (kit.ledger(&free), kit.ledger(&free));
    let draw = set_aside(&kit, &one, dollar()).await.unwrap();
    let drawn = join_all((0..100).map(|at| {
        let ledger = if at % 2 == 0 { &one } else { &other };
        ledger.draw(&draw, call(100_000))
    }))
    .await;
    let (held, refused): (Vec<_>, Vec<_>) = drawn.into_iter().partition(Result::is_ok);
    assert_eq!((held.len(), refused.len()), (10, 90));
    assert!(
        refused.iter().all(|refused| matches!(refused, Err(DrawError::Full(room)) if room.cost_micro_usd == Some(0)))
    );
    // Three are given back, seven cost a quarter of what they held.
    for (at, hold) in held.into_iter().enumerate() {
        one.settle(hold.unwrap(), if at < 3 { Outcome::Released } else { used(25_000) }).await;
    }
    let state = one.allowance(draw.allowance).await.unwrap().unwrap();
    assert_eq!((state.spent_cost, state.spent_requests, state.held_cost, state.calls), (175_000, 7, 0, 0));
    // What was not used is there again.
    let more = join_all((0..9).map(|_| other.draw(&draw, call(100_000)))).await;
    assert_eq!(more.iter().filter(|held| held.is_ok()).count(), 8);
}

#[tokio::test]
async fn a_limit_counts_what_is_set_aside_until_it_is_used_or_given_back() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&cap(150));
    let draw = set_aside(&kit, &ledger, dollar()).await.unwrap();
    assert_eq!(kit.counters("org").await, ([0, 0, 0], [0, 1_000_000, 0]));
    assert!(matches!(set_aside(&kit, &ledger, dollar()).await, Err(HoldError::Exceeded(_))));
    let smaller = Wish { least_cost_micro_usd: 10_000, ..dollar() };
    let rest = set_aside(&kit, &ledger, smaller).await.unwrap();
    assert_eq!(ledger.allowance(rest.allowance).await.unwrap().unwrap().cost_micro_usd, 500_000);
    assert_eq!(ledger.end_allowances(&[rest.allowance, rest.allowance]).await.unwrap(), 1);

    let hold = ledger.draw(&draw, call(400_000)).await.unwrap();
    // A running call is a part of what is set aside.
    assert_eq!(kit.counters("org").await, ([0, 0, 0], [0, 1_000_000, 0]));
    ledger.settle(hold, used(300_000)).await;
    assert_eq!(kit.counters("org").await, ([50, 300_000, 1], [0, 700_000, 0]));

    // Ended while a call runs: nothing new begins, and the rest is given back when the call ends.
    let running = ledger.draw(&draw, call(400_000)).await.unwrap();
    assert_eq!(ledger.end_allowances(&[draw.allowance]).await.unwrap(), 1);
    assert!(matches!(ledger.draw(&draw, call(1)).await, Err(DrawError::Ended)));
    assert_eq!(kit.counters("org").await.1, [0, 700_000, 0]);
    // It used more than it said: what is booked is what was used.
    ledger.settle(running, used(900_000)).await;
    assert_eq!(kit.counters("org").await, ([100, 1_200_000, 2], [0, 0, 0]));
    assert!(ledger.allowance(draw.allowance).await.unwrap().unwrap().settled_at.is_some());
    assert_eq!(ledger.end_allowances(&[draw.allowance]).await.unwrap(), 0);
    assert_eq!(kit.counters("org").await.1, [0, 0, 0]);
}

#[tokio::test]
async fn a_limit_of_requests_or_tokens_bounds_an_allowance_that_names_none() {
    let kit = Kit::new().await;
    let rules = rules(serde_json::json!([{ "scope": "org", "period": "daily", "maxRequests": 3, "maxTokens": 250 }]));
    let ledger = kit.ledger(&rules);
    let draw = set_aside(&kit, &ledger, dollar()).await.unwrap();
    let state = ledger.allowance(draw.allowance).await.unwrap().unwrap();
    assert_eq!((state.requests, state.tokens), (Some(3), Some(250)));
    let (first, second) = (ledger.draw(&draw, call(1)).await.unwrap(), ledger.draw(&draw, call(1)).await.unwrap());
    assert!(matches!(ledger.draw(&draw, call(1)).await, Err(DrawError::Full(room)) if room.tokens == Some(50)));
    ledger.settle(first, used(1)).await;
    ledger.settle(second, used(1)).await;
    ledger.end_allowances(&[draw.allowance]).await.unwrap();
    assert_eq!(kit.counters("org").await, ([100, 2, 2], [0, 0, 0]));
}

#[tokio::test]
async fn what_a_killed_process_held_is_booked_by_the_floor_once_and_nothing_stays_held() {
    let kit = Kit::new().await;
    let rules = cap(1_000);
    let (killed, other) = (kit.ledger(&rules), kit.ledger(&rules));
    let draw = set_aside(&kit, &killed, dollar()).await.unwrap();
    let hold = killed.draw(&draw, call(400_000)).await.unwrap();
    hold.progress(
        Consumption { input_tokens: 40, output_tokens: 3, cost_micro_usd: 120_000, ..Consumption::default() },
        0,
    );
    killed.keep().await.unwrap();
    std::mem::forget(hold);
    // What it had set aside for another one and not handed out is nobody's work.
    std::mem::forget(killed.set_aside(&kit.charge(None), dollar()).await.unwrap());
    assert_eq!(kit.counters("org").await.1, [0, 2_000_000, 0]);
    // The owner ends it, or it expires: the call is still to be booked.
    kit.clock.advance(std::time::Duration::from_secs(3_700));
    let swept = join_all([other.sweep(), kit.ledger(&rules).sweep()]).await;
    assert_eq!(swept.into_iter().map(Result::unwrap).sum::<u64>(), 2);
    assert_eq!(kit.bookings().await, [("abandoned".to_owned(), 43)]);
    assert_eq!(kit.counters("org").await, ([43, 120_000, 1], [0, 880_000, 0]));
    assert!(matches!(other.draw(&draw, call(1)).await, Err(DrawError::Ended)));
    other.sweep_allowances().await.unwrap();
    assert_eq!(kit.counters("org").await, ([43, 120_000, 1], [0, 0, 0]));
    kit.clock.advance(std::time::Duration::from_secs(8 * 86_400));
    other.sweep_allowances().await.unwrap();
    assert_eq!(other.allowance(draw.allowance).await.unwrap(), None);
    assert_eq!(kit.bookings().await.len(), 1);
}

#[tokio::test]
async fn a_call_alone_gets_what_is_left_and_is_paid_though_the_database_lost_its_hold() {
    let kit = Kit::new().await;
    let ledger = kit.ledger(&cap(100));
    let wish = Wish { tokens: Some(1_000), requests: Some(3), ..dollar() };
    let draw = set_aside(&kit, &ledger, wish).await.unwrap();
    let hold = ledger.draw(&draw, call(400_000)).await.unwrap();
    // As a database that was cut off comes back.
    sqlx::query("DELETE FROM app.usage_holds").execute(&kit.db.app).await.unwrap();
    sqlx::query("UPDATE app.usage_allowances SET calls = 0, held_cost = 0, held_tokens = 0, held_requests = 0")
        .execute(&kit.db.app)
        .await
        .unwrap();
    ledger.settle(hold, used(300_000)).await;
    let state = ledger.allowance(draw.allowance).await.unwrap().unwrap();
    assert_eq!((state.spent_cost, state.spent_requests, state.held_cost, state.calls), (300_000, 1, 0, 0));
    assert_eq!(kit.counters("org").await, ([50, 300_000, 1], [950, 700_000, 2]));

    // Each is alone in its statement: it fits to the last unit, or is refused with what is left.
    let full = ledger.draw(&draw, call(700_001)).await.unwrap_err();
    assert!(
        matches!(&full, DrawError::Full(room) if (room.tokens, room.cost_micro_usd, room.requests) == (Some(950), Some(700_000), Some(2))),
        "{full:?}"
    );
    let last = ledger.draw(&draw, call(700_000)).await.unwrap();
    assert!(matches!(ledger.draw(&draw, call(1)).await, Err(DrawError::Full(room)) if room.cost_micro_usd == Some(0)));
    ledger.settle(last, Outcome::Released).await;
    kit.clock.advance(std::time::Duration::from_secs(3_600));
    assert!(matches!(ledger.draw(&draw, call(1)).await, Err(DrawError::Ended)));
}

#[tokio::test]
async fn what_a_deleted_organization_set_aside_ends_everywhere_and_nobody_elses_does() {
    let kit = Kit::new().await;
    let free = Arc::new(BudgetRules::default());
    let (one, other) = (kit.ledger(&free), kit.ledger(&free));
    let draw = set_aside(&kit, &one, dollar()).await.unwrap();
    let running = one.draw(&draw, call(1_000)).await.unwrap();
    other.sweep_allowances().await.unwrap();
    drop(other.draw(&draw, call(1_000)).await.unwrap());
    sqlx::query("UPDATE app.organizations SET deleted_at = $2 WHERE id = $1")
        .bind(kit.org)
        .bind(kit.clock.now())
        .execute(&kit.db.app)
        .await
        .unwrap();
    other.sweep_allowances().await.unwrap();
    for ledger in [&one, &other] {
        assert!(matches!(ledger.draw(&draw, call(1)).await, Err(DrawError::Ended)));
    }
    // What ran is booked as ever, and doing it again changes nothing.
    one.settle(running, used(500)).await;
    other.sweep_allowances().await.unwrap();
    let state = one.allowance(draw.allowance).await.unwrap().unwrap();
    assert_eq!((state.spent_requests, state.is_open(kit.clock.now())), (1, false));
}
