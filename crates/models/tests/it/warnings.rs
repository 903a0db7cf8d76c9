//! Who has passed the threshold of a limit is told of it once.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tale_core::ids::{ApiKeyId, TeamId, UserId};
use tale_governance::policies::Key;
use tale_jobs::Worker;
use tale_models::ledger::{Charge, Consumption, Outcome, Price, source};
use tokio_util::sync::CancellationToken;

use crate::support::Room;

const DAY: Duration = Duration::from_secs(86_400);
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

impl Room {
    async fn member(&self, role: &str) -> UserId {
        let person = UserId::new();
        sqlx::query(
            "INSERT INTO app.users (id, email, name, created_at) VALUES ($1, $1::text || '@acme.test', 'P', now())",
        )
        .bind(person)
        .execute(&self.db.app)
        .await
        .unwrap();
        sqlx::query("INSERT INTO app.memberships (org_id, user_id, role, created_at) VALUES ($1, $2, $3, now())")
            .bind(self.org)
            .bind(person)
            .bind(role)
            .execute(&self.db.app)
            .await
            .unwrap();
        person
    }

    /// A key of a person, or of the organization.
    async fn key(&self, name: &str, person: Option<UserId>) -> ApiKeyId {
        let key = ApiKeyId::new();
        sqlx::query(
            "INSERT INTO app.api_keys (id, kind, user_id, org_id, role, hash, first_chars, last_chars, name, created_at)
             VALUES ($1, CASE WHEN $2::uuid IS NULL THEN 'organization' ELSE 'personal' END, $2,
                     CASE WHEN $2::uuid IS NULL THEN $3::uuid END, CASE WHEN $2::uuid IS NULL THEN 'member' END,
                     sha256($1::text::bytea), 'tale', 'x', $4, now())",
        )
        .bind(key)
        .bind(person)
        .bind(self.org)
        .bind(name)
        .execute(&self.db.app)
        .await
        .unwrap();
        key
    }

    async fn team(&self, name: &str, people: &[UserId]) -> TeamId {
        let team = TeamId::new();
        sqlx::query("INSERT INTO app.teams (org_id, id, name, name_key, created_at) VALUES ($1, $2, $3, $3, now())")
            .bind(self.org)
            .bind(team)
            .bind(name)
            .execute(&self.db.app)
            .await
            .unwrap();
        for person in people {
            sqlx::query(
                "INSERT INTO app.team_members (org_id, user_id, team_id, created_at) VALUES ($1, $2, $3, now())",
            )
            .bind(self.org)
            .bind(person)
            .bind(team)
            .execute(&self.db.app)
            .await
            .unwrap();
        }
        team
    }

    async fn limits(&self, rules: Value) {
        self.limits_are(json!({ "rules": rules })).await;
    }

    async fn limits_are(&self, policy: Value) {
        self.policies.set(self.org, &self.actor, Key::Budgets, policy, None).await.unwrap();
    }

    /// A call that used so many tokens, booked now.
    async fn used(&self, person: Option<UserId>, api_key: Option<ApiKeyId>, tokens: u64) {
        let charge = Charge {
            org: self.org,
            person,
            role: None,
            api_key,
            source: source::CHAT.into(),
            provider: "p".into(),
            model: "m".into(),
        };
        let ledger = self.models.ledger();
        let hold = ledger.hold(&charge, Price::default().whole(1, 1, 1)).await.unwrap();
        let used = Consumption { input_tokens: tokens, ..Consumption::default() };
        ledger.settle(hold, Outcome::Known(used)).await;
    }

    async fn warned(&self) -> u64 {
        self.models.ledger().warn(self.org).await.unwrap()
    }

    /// Kind, whose limit, name and percentage of what a person was told, the oldest first, and of one time in this order.
    async fn told(&self, person: UserId) -> Vec<(String, String, String, i64)> {
        sqlx::query_as(
            "SELECT kind, details ->> 'holder', coalesce(details ->> 'name', ''), (details ->> 'percent')::bigint
               FROM app.notifications WHERE org_id = $1 AND user_id = $2 ORDER BY created_at, 1, 2, 3, 4",
        )
        .bind(self.org)
        .bind(person)
        .fetch_all(&self.db.app)
        .await
        .unwrap()
    }
}

fn own(percent: i64) -> (String, String, String, i64) {
    ("limitNear".into(), "person".into(), String::new(), percent)
}

fn shared(holder: &str, name: &str, percent: i64) -> (String, String, String, i64) {
    ("sharedLimitNear".into(), holder.into(), name.into(), percent)
}

#[tokio::test]
async fn whoever_passed_a_threshold_is_told_once_in_a_period_and_again_in_the_next() {
    let room = Room::new().await;
    let (ada, ben) = (room.member("member").await, room.member("member").await);
    room.limits(json!([
        { "scope": "default", "period": "daily", "maxTokens": 1_000, "maxRequests": 100, "warningThresholdPercent": 80 },
        { "scope": "default", "period": "monthly", "maxTokens": 1_500 },
    ]))
    .await;
    room.used(Some(ada), None, 790).await;
    room.used(Some(ben), None, 100).await;
    assert_eq!(room.warned().await, 0);
    room.used(Some(ada), None, 10).await;
    assert_eq!((room.warned().await, room.warned().await), (1, 0), "exactly at the threshold, and once");
    assert_eq!(room.told(ada).await, [own(80)]);
    room.used(Some(ada), None, 300).await;
    assert_eq!(room.warned().await, 0, "a limit that is reached afterwards is the same warning");
    assert_eq!(room.told(ben).await, []);

    room.clock.advance(DAY);
    assert_eq!(room.warned().await, 0, "a new day begins with nothing used");
    // What passes threshold and limit between two looks is told as well; a rule without a threshold says nothing.
    room.used(Some(ada), None, 200).await;
    sqlx::query("UPDATE app.usage_counters SET used_tokens = 1200 WHERE holder = 'user:' || $1::text AND day = (SELECT max(day) FROM app.usage_counters)")
        .bind(ada.to_string())
        .execute(&room.db.app)
        .await
        .unwrap();
    assert_eq!(room.warned().await, 1);
    assert_eq!(room.told(ada).await, [own(80), own(120)]);
}

#[tokio::test]
async fn each_limit_is_told_to_whom_it_is_about() {
    let room = Room::new().await;
    let (owner, admin) = (room.member("owner").await, room.member("admin").await);
    let (ada, ben) = (room.member("editor").await, room.member("member").await);
    let gone = room.member("disabled").await;
    let sales = room.team("Sales", &[ada, ben]).await;
    let (of_ada, of_all) = (room.key("CI", Some(ada)).await, room.key("Nightly", None).await);
    room.limits(json!([
        { "scope": "org", "period": "monthly", "maxTokens": 1_000, "warningThresholdPercent": 90 },
        { "scope": "team", "scopeId": sales, "period": "monthly", "maxTokens": 800, "warningThresholdPercent": 75 },
        { "scope": "apiKey", "apiKeyId": of_ada, "period": "weekly", "maxTokens": 400, "warningThresholdPercent": 50 },
        { "scope": "apiKey", "apiKeyId": of_all, "period": "daily", "maxRequests": 2, "warningThresholdPercent": 50 },
        { "scope": "user", "scopeId": gone, "period": "daily", "maxTokens": 10_000, "warningThresholdPercent": 0 },
    ]))
    .await;
    room.used(Some(ada), None, 300).await;
    room.used(Some(ada), Some(of_ada), 200).await;
    assert_eq!(room.warned().await, 1);
    assert_eq!(room.told(ada).await, [("limitNear".into(), "apiKey".into(), "CI".into(), 50)]);

    room.used(Some(ben), None, 100).await;
    assert_eq!(room.warned().await, 1);
    room.used(None, Some(of_all), 300).await;
    room.used(Some(gone), None, 1).await;
    assert_eq!(room.warned().await, 2, "the organization's and the key's; nobody with a disabled seat is told");
    let expected = [shared("apiKey", "Nightly", 50), shared("organization", "", 90), shared("team", "Sales", 75)];
    for person in [owner, admin] {
        assert_eq!(room.told(person).await, expected);
    }
    // A team's limit is a limit of each of its members as well.
    assert_eq!((room.told(ada).await.len(), room.told(ben).await, room.told(gone).await), (1, vec![], vec![]));
    room.used(Some(ada), None, 100).await;
    assert_eq!(room.warned().await, 1);
    assert_eq!(room.told(ada).await.last(), Some(&own(75)));

    // A key that works no longer has nobody to be told.
    sqlx::query("UPDATE app.api_keys SET revoked_at = now() WHERE id = $1")
        .bind(of_ada)
        .execute(&room.db.app)
        .await
        .unwrap();
    room.clock.advance(DAY * 7);
    room.limits(json!([{ "scope": "apiKey", "apiKeyId": of_ada, "period": "daily", "maxTokens": 400, "warningThresholdPercent": 1 }]))
        .await;
    room.used(Some(ada), Some(of_ada), 300).await;
    assert_eq!(room.warned().await, 0);
}

#[tokio::test]
async fn a_changed_rule_warns_anew_and_one_that_was_off_for_a_while_does_not() {
    let room = Room::new().await;
    let ada = room.member("member").await;
    let rule = |limit: u64, percent: u64| json!([{ "scope": "user", "scopeId": ada, "period": "monthly", "maxTokens": limit, "warningThresholdPercent": percent }]);
    room.limits(rule(1_000, 80)).await;
    room.used(Some(ada), None, 850).await;
    assert_eq!(room.warned().await, 1);
    room.limits_are(json!({ "enabled": false })).await;
    room.limits_are(json!({ "enabled": true })).await;
    assert_eq!(room.warned().await, 0);
    room.limits(rule(2_000, 80)).await;
    assert_eq!(room.warned().await, 0, "less than half of the new limit is used");
    room.used(Some(ada), None, 800).await;
    assert_eq!(room.warned().await, 1);
    room.limits(rule(3_000, 50)).await;
    assert_eq!(room.warned().await, 1, "the threshold of the new rule is passed already");
    room.limits(rule(1_000, 80)).await;
    assert_eq!(room.warned().await, 0, "this very rule warned before");
    assert_eq!(room.told(ada).await, [own(55), own(82), own(85)]);

    // Whoever does not want to know is not told, now or later.
    let wishes = tale_notices::Wishes { muted: vec![tale_notices::Kind::LimitNear], unmailed: vec![] };
    tale_notices::Notices::new(room.db.app.clone()).set_wishes(ada, &wishes).await.unwrap();
    room.limits(rule(1_700, 70)).await;
    assert_eq!((room.warned().await, room.told(ada).await.len()), (1, 3));
}

#[tokio::test]
async fn many_processes_that_look_at_once_tell_once() {
    let room = Room::new().await;
    let (owner, ada) = (room.member("owner").await, room.member("member").await);
    room.limits(json!([
        { "scope": "default", "period": "monthly", "maxTokens": 100, "warningThresholdPercent": 10 },
        { "scope": "org", "period": "monthly", "maxTokens": 100, "warningThresholdPercent": 10 },
    ]))
    .await;
    room.used(Some(ada), None, 50).await;
    let processes: Vec<_> = (0..8).map(|_| room.again()).collect();
    let counts = join_all(processes.iter().map(|process| process.ledger().warn(room.org))).await;
    assert_eq!(counts.into_iter().map(Result::unwrap).sum::<u64>(), 2);
    assert_eq!((room.told(ada).await, room.told(owner).await), (vec![own(50)], vec![shared("organization", "", 50)]));
}

/// The worker looks by itself, and an organization whose rules cannot be read holds up no other.
#[tokio::test]
async fn a_worker_looks_by_itself() {
    let room = Room::new().await;
    let ada = room.member("member").await;
    let other = crate::support::organization(&room.db.app, "other").await;
    let rule =
        json!({ "rules": [{ "scope": "org", "period": "monthly", "maxTokens": 1, "warningThresholdPercent": 10 }] });
    room.policies.set(other, &room.actor, Key::Budgets, rule, None).await.unwrap();
    std::fs::write(room.folder.path().join("other/governance/budgets.yml"), "rules: 7\n").unwrap();
    room.limits(json!([{ "scope": "user", "scopeId": ada, "period": "daily", "maxTokens": 100, "warningThresholdPercent": 50 }]))
        .await;
    room.used(Some(ada), None, 60).await;
    let worker = room.again().register(Worker::builder(), false).build(room.db.app.clone());
    let stop = CancellationToken::new();
    let running = tokio::spawn(worker.run(stop.clone()));
    let told = async {
        while room.told(ada).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    stop.cancel();
    running.await.unwrap();
    assert_eq!(room.told(ada).await, [own(60)]);
}
