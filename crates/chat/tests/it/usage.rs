//! What chats are charged: every call once, by who asked, and nothing beyond a limit.

use serde_json::json;
use tale_chat::{ModelChoice, SendTo};
use tale_core::Code;
use tale_governance::policies::Key;
use tale_testkit::upstream::{Reply, Step};

use crate::world::{World, code, request, within, world};

/// Source, outcome, requests, input and output tokens of a booking.
type Booking = (String, String, i64, i64, i64);

impl World {
    async fn limit(&self, rule: serde_json::Value) {
        let value = json!({ "rules": [rule] });
        self.policies.set(self.owner.org, &self.owner.actor, Key::Budgets, value, None).await.unwrap();
    }

    async fn booked(&self) -> Vec<Booking> {
        sqlx::query_as(
            "SELECT source, outcome, requests, input_tokens, output_tokens FROM app.usage_bookings \
             WHERE org_id = $1 AND user_id = $2 ORDER BY reservation_id",
        )
        .bind(self.owner.org)
        .bind(self.owner.user)
        .fetch_all(&self.db.app)
        .await
        .unwrap()
    }

    async fn held(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM app.usage_holds").fetch_one(&self.db.app).await.unwrap()
    }
}

fn booking(source: &str, outcome: &str, input: i64, output: i64) -> Booking {
    (source.to_owned(), outcome.to_owned(), 1, input, output)
}

#[tokio::test]
async fn every_round_and_the_title_are_booked_as_the_provider_counts() {
    let world = world().await;
    world
        .upstream
        .push(Reply::tool_call("c1", "search", &json!({ "query": "x" })).then(Step::Usage { input: 100, output: 9 }));
    world.upstream.push(Reply::text("Found nothing.").then(Step::Usage { input: 150, output: 5 }));
    world.upstream.push(Reply::text("A search").then(Step::Usage { input: 30, output: 2 }));
    let accepted = world.send(SendTo::New, "Search for x").await.unwrap();
    world.settled(&accepted).await;
    let booked = within(async {
        loop {
            let booked = world.booked().await;
            if booked.len() > 2 {
                return booked;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(booked[..2], [booking("chat", "reported", 100, 9), booking("chat", "reported", 150, 5)]);
    assert_eq!(booked[2..], [booking("thread-title", "reported", 30, 2)]);
    assert_eq!(world.held().await, 0);
}

#[tokio::test]
async fn a_broken_answer_is_booked_by_what_arrived_and_a_refused_one_not_at_all() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::steps(vec![Step::Text("x".repeat(300)), Step::Hang]));
    let accepted = world.send(SendTo::Thread(thread), "Go on").await.unwrap();
    world.streamed(thread, "xxx").await;
    world.chat.stop(&world.owner, thread).await.unwrap();
    world.settled(&accepted).await;
    let booked = world.booked().await;
    assert_eq!(booked.len(), 1);
    assert_eq!((booked[0].1.as_str(), booked[0].2), ("floor", 1));
    assert!(booked[0].3 > 10 && booked[0].4 >= 100, "{booked:?}");

    world.upstream.push(Reply::refusal(401, "invalid_api_key", "Wrong key"));
    assert_eq!(world.ask(thread, "Again").await.error_code.as_deref(), Some("auth_error"));
    assert_eq!(world.booked().await.len(), 1);
    assert_eq!(world.held().await, 0);
}

/// A provider that counts nothing, or one side only, is not believed to have used nothing.
#[tokio::test]
async fn an_answer_that_nobody_counted_is_booked_by_what_arrived() {
    let world = world().await;
    let thread = world.titled().await;
    let text = "x".repeat(300);
    for (input, output) in [(0, 0), (100, 0), (0, 5)] {
        world.upstream.push(Reply::text(&text).then(Step::Usage { input, output }));
        assert_eq!(world.ask(thread, "Go on").await.error_code, None);
    }
    let booked = world.booked().await;
    assert_eq!(booked.len(), 3);
    for (_, outcome, requests, input, output) in &booked {
        assert_eq!((outcome.as_str(), *requests), ("floor", 1));
        assert!(*input > 10 && *output >= 100, "{booked:?}");
    }
    assert_eq!(booked[1].3, 100, "the side that was counted counts");
    assert_eq!(world.held().await, 0);
}

#[tokio::test]
async fn a_reached_limit_refuses_before_anything_is_written() {
    let world = world().await;
    world.limit(json!({ "scope": "user", "scopeId": world.owner.user, "period": "monthly", "maxRequests": 1 })).await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("one"));
    let reply = world.ask(thread, "Hi").await;
    let problem = world.send(SendTo::Thread(thread), "More").await.unwrap_err();
    assert_eq!((problem.code, problem.status()), (Code::BudgetExceeded, 429));
    assert!(problem.retry_after.is_some());
    let data = problem.data.unwrap();
    assert_eq!(
        (&data["code"], &data["scope"], &data["period"], &data["used"], &data["limit"]),
        (&json!("REQUEST_LIMIT"), &json!("user"), &json!("monthly"), &json!(1), &json!(1))
    );
    let again = world.chat.retry(&world.owner, thread, reply.id, ModelChoice::Auto, None, None).await;
    assert_eq!(code(again), Code::BudgetExceeded);
    let question = world.chat.messages(&world.owner, thread).await.unwrap()[0].id;
    assert_eq!(
        code(world.chat.edit(&world.owner, thread, question, request("Other words")).await),
        Code::BudgetExceeded
    );
    assert_eq!(code(world.send(SendTo::New, "Elsewhere").await), Code::BudgetExceeded);
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap().len(), 2);
    assert_eq!((world.booked().await.len(), world.held().await), (1, 0));
}

#[tokio::test]
async fn who_is_accepted_is_answered_however_many_ask_at_once() {
    let world = world().await;
    world.limit(json!({ "scope": "org", "period": "daily", "maxTokens": 8_000 })).await;
    let mut threads = Vec::new();
    for _ in 0..8 {
        threads.push(world.titled().await);
        world.upstream.push(Reply::text("Yes.").then(Step::Usage { input: 900, output: 3 }));
    }
    let sends = threads.into_iter().map(|thread| world.send(SendTo::Thread(thread), "Is it so?"));
    let sends = futures::future::join_all(sends).await;
    let accepted: Vec<_> = sends.into_iter().flatten().collect();
    assert!((1..8).contains(&accepted.len()), "{}", accepted.len());
    for one in &accepted {
        let reply = world.settled(one).await;
        assert_eq!(reply.status, "complete", "{:?}", reply.error);
    }
}

#[tokio::test]
async fn a_limit_reached_between_rounds_ends_the_reply_with_a_sentence() {
    let world = world().await;
    world.limit(json!({ "scope": "org", "period": "daily", "maxRequests": 1 })).await;
    let thread = world.titled().await;
    world.upstream.push(Reply::tool_call("c1", "search", &json!({ "query": "x" })));
    let reply = world.ask(thread, "Search").await;
    assert_eq!((reply.status.as_str(), reply.error_code.as_deref()), ("failed", Some("usage_limit")));
    assert!(reply.error.unwrap().starts_with("The organization's daily limit of 1 request "));
    assert_eq!(world.booked().await.len(), 1);
}

#[tokio::test]
async fn a_refused_title_is_the_beginning_of_the_question() {
    let world = world().await;
    world.limit(json!({ "scope": "default", "period": "weekly", "maxRequests": 1 })).await;
    world.upstream.push(Reply::text("Paris."));
    let accepted = world.send(SendTo::New, "What is the capital of France?").await.unwrap();
    world.settled(&accepted).await;
    let titled = async {
        loop {
            let thread = world.chat.thread(&world.owner, accepted.thread_id).await.unwrap();
            if let Some(title) = thread.title {
                return title;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(within(titled).await, "What is the capital of France?");
    assert_eq!(world.upstream.chat_requests().len(), 1);
}

#[tokio::test]
async fn an_answer_is_asked_to_fit_what_a_limit_leaves() {
    let world = world().await;
    world.limit(json!({ "scope": "default", "period": "daily", "maxTokens": 8_000 })).await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("short").then(Step::Usage { input: 5_000, output: 10 }));
    world.ask(thread, "One").await;
    let most = |at: usize| {
        let body = &world.upstream.chat_requests()[at].body;
        ["max_tokens", "max_completion_tokens"].iter().find_map(|field| body[*field].as_u64()).unwrap()
    };
    assert!(most(0) <= 4_096);
    world.upstream.push(Reply::text("short"));
    world.ask(thread, "Two").await;
    assert!(most(1) < 2_990, "{} tokens are left for prompt and answer, {} were asked for", 2_990, most(1));
}

#[tokio::test]
async fn simultaneous_sends_cannot_overrun_a_limit_together() {
    let world = world().await;
    world.limit(json!({ "scope": "org", "period": "monthly", "maxRequests": 3 })).await;
    world.upstream.otherwise(Reply::text("yes"));
    let mut threads = Vec::new();
    for _ in 0..20 {
        threads.push(world.titled().await);
    }
    let sends = threads.iter().map(|thread| world.send(SendTo::Thread(*thread), "Hi"));
    let all = futures::future::join_all(sends).await;
    let accepted: Vec<_> = all.iter().flatten().collect();
    assert_eq!(accepted.len(), 3);
    assert!(all.iter().filter_map(|one| one.as_ref().err()).all(|problem| problem.code == Code::BudgetExceeded));
    for one in accepted {
        assert_eq!(world.settled(one).await.status.as_str(), "complete");
    }
    assert_eq!(world.booked().await.len(), 3);
}
