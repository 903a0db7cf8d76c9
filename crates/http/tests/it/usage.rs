//! The doors of usage, and what a reached limit answers at the others.

use serde_json::{Value, json};
use tale_identity::Role;
use tale_testkit::upstream::{Reply, Step};

use crate::stage::Stage;

impl Stage {
    /// One question by key, answered and booked with 100 input and 20 output tokens.
    async fn ask(&mut self) -> String {
        let thread = self.key.post("/api/v1/threads", json!({ "title": "T" })).await.expect(201);
        let thread = thread["id"].as_str().unwrap().to_owned();
        self.upstream.push(Reply::text("Yes.").then(Step::Usage { input: 100, output: 20 }));
        let path = format!("/api/v1/threads/{thread}/messages");
        self.key.post(&path, json!({ "content": "Is it?", "model": "fake-chat" })).await.expect(202);
        self.settled(&thread).await;
        thread
    }

    async fn limit(&mut self, rule: Value) {
        let path = self.app("governance/policies/budgets");
        self.owner.put(&path, json!({ "value": { "enabled": true, "rules": [rule] } })).await.expect(200);
    }
}

#[tokio::test]
async fn an_admin_reads_what_was_used_by_whom_and_with_which_key() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let fresh = stage.get("usage").await.expect(200);
    assert_eq!((&fresh["totals"]["requests"], &fresh["groups"]), (&json!(0), &json!([])));
    stage.ask().await;
    stage.ask().await;

    let report = stage.get("usage?groupBy=day").await.expect(200);
    let totals = &report["totals"];
    assert_eq!(
        [
            &totals["requests"],
            &totals["inputTokens"],
            &totals["outputTokens"],
            &totals["tokens"],
            &totals["activeUsers"]
        ],
        [&json!(2), &json!(200), &json!(40), &json!(240), &json!(1)]
    );
    assert_eq!(totals["costCents"], 0, "a model without a price costs nothing");
    let today = report["to"].clone();
    assert_eq!((report["groups"][0]["key"].clone(), report["groups"].as_array().unwrap().len()), (today.clone(), 1));

    let first = |report: Value| (report["groups"][0]["key"].clone(), report["groups"][0]["name"].clone());
    assert_eq!(first(stage.get("usage?groupBy=agent").await.expect(200)).0, "chat");
    assert_eq!(first(stage.get("usage?groupBy=model").await.expect(200)).0, "local/fake-chat");
    let (person, name) = first(stage.get("usage?groupBy=person").await.expect(200));
    assert_eq!(name, "Ada");
    assert_eq!(first(stage.get("usage?groupBy=key").await.expect(200)).1, "test");
    let of_person = format!("usage?groupBy=month&person={}&model=local/fake-chat", person.as_str().unwrap());
    assert_eq!(stage.get(&of_person).await.expect(200)["totals"]["requests"], 2);
    assert_eq!(stage.get("usage?agent=thread-title").await.expect(200)["totals"]["requests"], 0);

    let sheet = stage.get("usage/export?groupBy=person").await;
    assert_eq!(sheet.header("content-type"), "text/csv; charset=utf-8");
    let text = String::from_utf8(sheet.bytes).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("person,name,requests,inputTokens,outputTokens,cachedTokens,units,costUsd,activeUsers")
    );
    assert!(lines.next().unwrap().ends_with(",Ada,2,200,40,0,0,0.000000,1"), "{text}");
}

#[tokio::test]
async fn usage_is_for_admins_of_the_organization_and_queries_are_strict() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    stage.ask().await;
    let mut developer = stage.member(Role::Developer).await;
    for path in ["usage", "usage/export"] {
        assert_eq!(developer.get(&stage.app(path)).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    }
    let (mut eve, other, _) = stage.outsider().await;
    assert_eq!(eve.get(&stage.app("usage")).await.status, 403);
    let of_other = format!("/api/app/usage?orgId={other}");
    assert_eq!(eve.get(&of_other).await.expect(200)["totals"]["requests"], 0);
    for (query, field) in [
        ("groupBy=hour", "groupBy"),
        ("from=yesterday", "from"),
        ("from=2026-11-30&to=2026-11-29", "to"),
        ("from=2020-01-01&to=2026-11-29", "from"),
        ("person=ada", "person"),
        ("nonsense=1", "nonsense"),
    ] {
        let answer = stage.get(&format!("usage?{query}")).await;
        assert_eq!(answer.json()["data"]["issues"][0]["path"], field, "{query}");
        assert_eq!(answer.refusal(), (400, "INVALID_QUERY".into()), "{query}");
    }
}

#[tokio::test]
async fn a_reached_limit_is_429_with_its_facts_and_members_see_it_coming() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let status = |answer: Value| answer["status"].clone();
    let path = stage.app("governance/my/budget-status");
    let none = stage.owner.get(&path).await.expect(200);
    assert_eq!(none, json!({ "status": { "exceeded": false, "warnings": [] }, "limits": [] }));

    let rule = json!({ "scope": "default", "period": "monthly", "maxRequests": 2, "warningThresholdPercent": 50 });
    stage.limit(rule).await;
    let thread = stage.ask().await;
    let near = stage.owner.get(&path).await.expect(200);
    assert_eq!((&near["status"]["exceeded"], &near["status"]["warnings"][0]["used"]), (&json!(false), &json!(1)));
    stage.ask().await;
    let reached = status(stage.owner.get(&path).await.expect(200));
    assert_eq!(
        [
            &reached["exceeded"],
            &reached["code"],
            &reached["scope"],
            &reached["period"],
            &reached["used"],
            &reached["limit"]
        ],
        [&json!(true), &json!("REQUEST_LIMIT"), &json!("default"), &json!("monthly"), &json!(2), &json!(2)]
    );
    // A limit for everybody is everybody's own.
    let mut member = stage.member(Role::Member).await;
    assert_eq!(status(member.get(&path).await.expect(200))["exceeded"], false);

    let messages = format!("/api/v1/threads/{thread}/messages");
    let before = stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200);
    let refused = stage.key.post(&messages, json!({ "content": "Once more?", "model": "fake-chat" })).await;
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    let data = &refused.json()["data"];
    assert_eq!(
        [&data["code"], &data["scope"], &data["period"], &data["used"], &data["limit"], &data["resetsAt"]],
        [&json!("REQUEST_LIMIT"), &json!("default"), &json!("monthly"), &json!(2), &json!(2), &reached["resetsAt"]]
    );
    assert_eq!(refused.refusal(), (429, "BUDGET_EXCEEDED".into()));
    assert_eq!(stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200), before);
    // Raised, it admits at once.
    stage.limit(json!({ "scope": "default", "period": "monthly", "maxRequests": 3 })).await;
    stage.ask().await;
}
