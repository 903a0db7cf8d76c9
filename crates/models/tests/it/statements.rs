//! How much a call of a model asks of the database. Counted, so that the costs do not grow unseen.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tale_core::ids::{ApiKeyId, UserId};
use tale_governance::policies::{Key, ModelRules};
use tale_models::ledger::{Charge, Consumption, Outcome, Price, source};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Room, chat_model, new_provider};

/// Counts statements by what sqlx says of them, but for those with which a connection begins: whether one more of them is
/// opened is up to the pool.
#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

impl Subscriber for Statements {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut begins = Begins(false);
        event.record(&mut begins);
        if !begins.0 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Whether a statement is one with which a connection begins.
struct Begins(bool);

impl Visit for Begins {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 |= field.name() == "summary" && value.starts_with("SET ");
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Statements {
    /// How many statements `work` makes. Everything runs on this test's thread.
    async fn of<T>(&self, work: impl Future<Output = T>) -> (T, usize) {
        let before = self.0.load(Ordering::SeqCst);
        let done = work.await;
        (done, self.0.load(Ordering::SeqCst) - before)
    }
}

#[tokio::test]
async fn a_call_costs_two_statements_and_calls_at_once_share_them() {
    let statements = Statements::default();
    let _counting = tracing::subscriber::set_default(statements.clone());
    let room = Room::new().await;
    let limits = json!({ "rules": [{ "scope": "org", "period": "monthly", "maxTokens": 1_000_000 },
                                   { "scope": "default", "period": "daily", "maxCostCents": 1_000 }] });
    room.policies.set(room.org, &room.actor, Key::Budgets, limits, None).await.unwrap();
    let charge = |person: UserId| Charge {
        org: room.org,
        person: Some(person),
        role: Some("developer"),
        api_key: Some(ApiKeyId::new()),
        source: source::DIRECT_API.into(),
        provider: "p".into(),
        model: "m".into(),
    };
    let (ledger, person) = (room.models.ledger(), UserId::new());
    let hold = async |charge: Charge| ledger.hold_among(8, &charge, Price::default().whole(10, 10, 1)).await.unwrap();
    let used = Outcome::Known(Consumption { input_tokens: 9, output_tokens: 3, ..Consumption::default() });
    // Rules are read once.
    ledger.settle(hold(charge(person)).await, used).await;

    let (held, count) = statements.of(hold(charge(person))).await;
    assert_eq!(count, 1, "statements that hold a call");
    let ((), count) = statements.of(ledger.settle(held, used)).await;
    assert_eq!(count, 1, "statements that book it");

    let (held, count) = statements.of(join_all((0..200).map(|_| hold(charge(UserId::new()))))).await;
    assert!(count <= 2, "{count} statements that hold 200 calls");
    let (_, count) = statements.of(join_all(held.into_iter().map(|hold| ledger.settle(hold, used)))).await;
    assert!(count <= 2, "{count} statements that book 200 calls");
}

#[tokio::test]
async fn a_model_that_was_used_a_moment_ago_is_found_without_a_statement() {
    let statements = Statements::default();
    let _counting = tracing::subscriber::set_default(statements.clone());
    let room = Room::new().await;
    let (models, org) = (room.models.clone(), room.org);
    let new = new_provider("p", "https://p.test/v1", vec![chat_model("m")]);
    models.create_provider(org, &room.actor, new).await.unwrap();
    let rules = ModelRules::none();
    let resolve = || models.resolve_chat(org, &rules, "m", Some("p"));
    assert!(statements.of(resolve()).await.1 > 0, "nothing is kept yet");
    let follower = models.clone();
    let following = tokio::spawn(async move { follower.follow().await });
    let kept = async { while statements.of(resolve()).await.1 > 0 {} };
    tokio::time::timeout(Duration::from_secs(20), kept).await.expect("what was read is kept by who listens");
    following.abort();
}
