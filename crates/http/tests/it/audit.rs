//! The doors of the audit log.

use serde_json::{Value, json};
use tale_governance::audit::verify;
use tale_identity::Role;

use crate::stage::{PASSWORD, Stage};

fn actions(page: &Value) -> Vec<&str> {
    page["page"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn entries_are_listed_page_by_page_and_name_who_acted() {
    let mut stage = Stage::new().await;
    for name in ["One", "Two", "Three"] {
        let path = format!("/api/app/organizations/{}", stage.org);
        stage.owner.patch(&path, json!({ "name": name })).await.expect(200);
    }
    let first = stage.get("audit?category=admin&limit=2").await.expect(200);
    assert_eq!(actions(&first), ["organization.updated"; 2]);
    let entry = &first["page"][0];
    assert_eq!(
        ["actorEmail", "actorRole", "actorType", "status", "category"].map(|field| entry[field].as_str().unwrap()),
        ["ada@acme.test", "owner", "user", "success", "admin"]
    );
    let cursor = first["continueCursor"].as_str().unwrap().to_owned();
    let rest = stage.get(&format!("audit?category=admin&cursor={cursor}")).await.expect(200);
    assert_eq!((actions(&rest)[0], &rest["isDone"]), ("organization.updated", &json!(true)));
    assert_eq!(
        stage.get(&format!("audit?category=auth&cursor={cursor}")).await.refusal(),
        (400, "INVALID_CURSOR".into()),
        "a cursor belongs to its list"
    );
    assert_eq!(actions(&stage.get("audit?limit=0").await.expect(200)).len(), 1);
    for wrong in ["from=1.5", "from=0", "to=8640000000000001", "category=nonsense", "unsuccessful=perhaps", "other=1"] {
        assert_eq!(stage.get(&format!("audit?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(actions(&stage.get("audit?from=8640000000000000").await.expect(200)).len(), 0);
}

#[tokio::test]
async fn an_export_verifies_and_holds_nothing_of_another_organization() {
    let mut stage = Stage::new().await;
    let (_, other, _) = stage.outsider().await;
    let export = stage.get("audit/export?format=jsonl").await;
    assert!(export.header("content-disposition").ends_with(".jsonl\""));
    let proof = verify::file(export.bytes.as_slice(), &[]).unwrap();
    assert_eq!(proof.chain.organization.flatten().unwrap().to_string(), stage.org);
    assert!(!String::from_utf8_lossy(&export.bytes).contains(&other));
    let checked = stage.post("audit/verify", json!({})).await.expect(200);
    assert_eq!(
        (&checked["intact"], &checked["unsealed"], &checked["truncated"]),
        (&json!(true), &json!(0), &json!(false))
    );
    assert_eq!(checked["to"]["sequence"], proof.chain.to.sequence);
    assert_eq!(stage.post("audit/verify?after=99999", json!({})).await.refusal(), (400, "INVALID_QUERY".into()));
    assert_eq!(stage.get("audit/status").await.expect(200), json!({}));

    let table = stage.get("audit/export?format=csv&category=admin").await;
    let text = String::from_utf8(table.bytes).unwrap();
    assert!(
        text.starts_with("timestamp,action,category,actorEmail,")
            && text.lines().nth(1).unwrap().contains("audit.exported")
    );
    assert_eq!(stage.get("audit/export").await.status, 400);
}

#[tokio::test]
async fn failed_sign_ins_of_members_are_told_and_of_nobody_else() {
    let mut stage = Stage::new().await;
    stage.outsider().await;
    for email in ["ada@acme.test", "eve@other.test", "nobody@nowhere.test"] {
        for _ in 0..5 {
            let form = json!({ "email": email, "password": format!("{PASSWORD}!") });
            stage.world.browser().post("/api/auth/sign-in/email", form).await;
        }
    }
    let blocks = stage.get("audit/sign-in-blocks").await.expect(200)["blocks"].take();
    let told: Vec<(&str, bool, i64, bool)> = blocks
        .as_array()
        .unwrap()
        .iter()
        .map(|block| {
            let [network, blocked] = ["network", "blockedUntil"].map(|field| block[field].is_null());
            (block["email"].as_str().unwrap(), network, block["failures"].as_i64().unwrap(), blocked)
        })
        .collect();
    assert_eq!(told, [("ada@acme.test", true, 5, true), ("ada@acme.test", false, 5, false)]);
    let errors = stage.get("audit?unsuccessful=true").await.expect(200);
    let mut failed = actions(&errors);
    failed.sort_unstable();
    assert_eq!(failed, [&["auth.locked_out"][..], &["auth.sign_in_failed"; 5]].concat());
    let activity = stage.get("audit/activity?days=7").await.expect(200);
    assert_eq!(activity["failure"], 6);
    assert_eq!(stage.get("audit/activity?days=8").await.status, 400);
}

#[tokio::test]
async fn an_admin_ends_a_members_block_and_nobody_ends_their_own() {
    let mut stage = Stage::new().await;
    let mut ben = stage.member(Role::Admin).await;
    let log_in = async |stage: &Stage, password: &str| {
        let form = json!({ "email": "admin@acme.test", "password": password });
        stage.world.browser().post("/api/auth/sign-in/email", form).await.status.as_u16()
    };
    for _ in 0..5 {
        assert_eq!(log_in(&stage, "Wrong-Kettle-42").await, 401);
    }
    assert_eq!(log_in(&stage, PASSWORD).await, 429);
    let blocks = stage.get("audit/sign-in-blocks").await.expect(200)["blocks"].take();
    assert_eq!((&blocks[0]["email"], &blocks[0]["kind"]), (&json!("admin@acme.test"), &json!("password")));
    let id = blocks[0]["userId"].as_str().unwrap().to_owned();
    let door = stage.app(&format!("members/{id}/sign-in-blocks?kind=password"));
    assert_eq!(ben.delete(&door).await.refusal(), (403, "FORBIDDEN".into()));
    let other = stage.app(&format!("members/{id}/sign-in-blocks?kind=secondFactor"));
    stage.owner.delete(&other).await.expect(204);
    assert_eq!(log_in(&stage, PASSWORD).await, 429, "another kind");
    let nonsense = stage.app(&format!("members/{id}/sign-in-blocks?kind=x"));
    assert_eq!(stage.owner.delete(&nonsense).await.status, 400);
    for _ in 0..2 {
        stage.owner.delete(&door).await.expect(204);
    }
    assert_eq!(log_in(&stage, PASSWORD).await, 200);
    assert_eq!(stage.get("audit/sign-in-blocks").await.expect(200)["blocks"], json!([]));
    let entries = stage.get("audit?category=security").await.expect(200);
    assert_eq!(actions(&entries).iter().filter(|action| **action == "auth.block_cleared").count(), 1);
}
