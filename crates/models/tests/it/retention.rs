//! Records of usage are kept for as long as the organization says, and no other organization's are touched.

use std::time::Duration;

use serde_json::{Value, json};
use tale_core::Code;
use tale_core::ids::{OrgId, UserId};
use tale_governance::policies::Key;
use tale_models::ledger::{Charge, Consumption, Outcome, Price, source};

use crate::support::{Room, organization};

const DAY: Duration = Duration::from_secs(86_400);

async fn keep_for(room: &Room, policy: Value) {
    room.policies.set(room.org, &room.actor, Key::Retention, policy, None).await.unwrap();
}

/// One call of an organization, booked now.
async fn call(room: &Room, org: OrgId) {
    let charge = Charge {
        org,
        person: Some(UserId::new()),
        role: Some("member"),
        api_key: None,
        source: source::CHAT.into(),
        provider: "p".into(),
        model: "m".into(),
    };
    let ledger = room.models.ledger();
    let hold = ledger.hold(&charge, Price::default().whole(1, 1, 1)).await.unwrap();
    let used = Consumption { input_tokens: 1, output_tokens: 1, ..Consumption::default() };
    ledger.settle(hold, Outcome::Known(used)).await;
}

/// Bookings, rows of sums and rows of limits of an organization.
async fn kept(room: &Room, org: OrgId) -> [i64; 3] {
    let counts: (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM app.usage_bookings WHERE org_id = $1), \
                (SELECT count(*) FROM app.usage_days WHERE org_id = $1), \
                (SELECT count(*) FROM app.usage_counters WHERE org_id = $1)",
    )
    .bind(org)
    .fetch_one(&room.db.app)
    .await
    .unwrap();
    [counts.0, counts.1, counts.2]
}

#[tokio::test]
async fn what_is_older_than_the_policy_says_goes_and_nothing_else() {
    let room = Room::new().await;
    let other = organization(&room.db.app, "other").await;
    call(&room, room.org).await;
    call(&room, other).await;
    room.clock.advance(DAY * 40);
    call(&room, room.org).await;
    room.clock.advance(DAY * 30);
    call(&room, room.org).await;
    assert_eq!(kept(&room, room.org).await, [3, 3, 6]);

    // Off is off, and a time beside it changes nothing.
    assert_eq!(room.models.forget_usage().await.unwrap(), 0);
    keep_for(&room, json!({ "usageLedgerDays": 30 })).await;
    assert_eq!(room.models.forget_usage().await.unwrap(), 0);

    // The grace counts on top: the call of thirty days ago stays, that of seventy days ago goes.
    keep_for(&room, json!({ "usageLedgerEnabled": true, "usageLedgerDays": 30, "deletionGraceDays": 5 })).await;
    assert_eq!(room.models.forget_usage().await.unwrap(), 1);
    assert_eq!(kept(&room, room.org).await, [2, 2, 4]);
    room.clock.advance(DAY * 6);
    assert_eq!(room.models.forget_usage().await.unwrap(), 1);
    // What limits are judged by stays as long as a period may last.
    assert_eq!(kept(&room, room.org).await, [1, 1, 4]);
    assert_eq!(kept(&room, other).await, [1, 1, 2], "another organization's");

    let told: Vec<(String, Value)> =
        room.audit().await.into_iter().filter(|(action, _)| action.starts_with("retention.")).collect();
    let actions: Vec<&str> = told.iter().map(|(action, _)| action.as_str()).collect();
    let run = ["retention.run_started", "retention.deleted", "retention.run_completed"];
    assert_eq!(actions, [run, run].concat());
    assert_eq!((&told[0].1["policy"]["usageLedgerDays"], &told[0].1["keptFrom"]), (&json!(30), &json!("2023-12-19")));
    assert_eq!(told[1].1, json!({ "category": "usageLedger", "deleted": 1 }));
    assert_eq!(told[5].1, json!({ "usageLedger": 1, "complete": true }));
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_deletes_nothing_and_a_time_out_of_bounds_is_refused() {
    let room = Room::new().await;
    call(&room, room.org).await;
    room.clock.advance(DAY * 400);
    let file = room.folder.path().join("acme/governance/retention-policy.yml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "usageLedgerEnabled: true\nusageLedgerDays: 3\n").unwrap();
    assert_eq!(room.models.forget_usage().await.unwrap(), 0);
    assert_eq!(kept(&room, room.org).await, [1, 1, 2]);
    for (field, value, code) in [
        ("usageLedgerDays", 29, Code::RetentionBelowFloor),
        ("usageLedgerDays", -1, Code::RetentionBelowFloor),
        ("usageLedgerDays", 3_651, Code::RetentionExceedsCeiling),
        ("deletionGraceDays", 91, Code::RetentionExceedsCeiling),
    ] {
        let save = room.policies.set(room.org, &room.actor, Key::Retention, json!({ field: value }), None);
        let refused = save.await.unwrap_err();
        assert_eq!((refused.code, &refused.data.unwrap()["field"]), (code, &json!(field)), "{value}");
    }
}
