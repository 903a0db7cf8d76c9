//! Policies in their table, in the log and in the operator's files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Clock, Code, ManualClock, SystemClock};
use tale_governance::policies::{Key, MAX_AGE, Person, Policies};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::TestDb;

struct World {
    db: TestDb,
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    policies: Policies,
    org: OrgId,
    admin: Actor,
}

impl World {
    async fn new() -> Self {
        let (db, folder) = (TestDb::new().await, tempfile::tempdir().unwrap());
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let policies = process(&db, &folder, &clock);
        let org = organization(&db, "acme").await;
        Self { db, folder, clock, policies, org, admin: Actor::User { id: UserId::new() } }
    }

    async fn set(&self, change: Value, version: Option<i64>) -> Result<i64, Code> {
        let done = self.policies.set(self.org, &self.admin, Key::ModelAccess, change, version).await;
        done.map(|document| document.version).map_err(|problem| problem.code)
    }

    async fn permits(&self, policies: &Policies, model: &str) -> Result<bool, Code> {
        let who = Person { user: None, role: "member", team: None };
        policies.model_rules(self.org, who).await.map(|rules| rules.permits("p", model)).map_err(|problem| problem.code)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("acme/governance/model-access.yml")
    }

    fn wait(&self) {
        self.clock.advance(MAX_AGE);
    }

    async fn entries(&self) -> Vec<(String, String, Value)> {
        sqlx::query_as("SELECT action, actor_kind, details FROM app.audit_entries ORDER BY id")
            .fetch_all(&self.db.app)
            .await
            .unwrap()
    }
}

fn process(db: &TestDb, folder: &tempfile::TempDir, clock: &Arc<ManualClock>) -> Policies {
    let files = ConfigStore::new(folder.path(), AgeKeys::load(None, None).unwrap());
    Policies::new(db.app.clone(), clock.clone(), files)
}

async fn organization(db: &TestDb, slug: &str) -> OrgId {
    let org = OrgId::new();
    sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, $2, now())")
        .bind(org)
        .bind(slug)
        .execute(&db.app)
        .await
        .unwrap();
    org
}

fn blocks(model: &str) -> Value {
    json!({ "enabled": true, "rules": [{ "scope": "default", "blockedModels": [model] }] })
}

#[tokio::test]
async fn a_save_counts_at_the_next_request_of_every_process() {
    let world = World::new().await;
    let other = process(&world.db, &world.folder, &world.clock);
    let follower = other.clone();
    let following = tokio::spawn(async move { follower.follow().await });
    assert_eq!(world.permits(&world.policies, "a").await, Ok(true));
    assert_eq!(world.permits(&other, "a").await, Ok(true));
    assert_eq!(world.set(blocks("p/a"), Some(0)).await, Ok(1));
    assert_eq!(world.permits(&world.policies, "a").await, Ok(false));
    // No clock moves: only the announcement tells the other process.
    tokio::time::timeout(Duration::from_secs(30), async {
        while world.permits(&other, "a").await == Ok(true) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the other process hears of it");
    following.abort();
    // Without hearing, it does not act on it for longer than the age.
    assert_eq!(world.set(json!({ "enabled": false }), None).await, Ok(2));
    world.wait();
    assert_eq!(world.permits(&other, "a").await, Ok(true));
}

#[tokio::test]
async fn a_stale_save_changes_nothing_and_a_switch_leaves_the_rest() {
    let world = World::new().await;
    assert_eq!(world.set(blocks("p/a"), None).await, Ok(1));
    assert_eq!(world.set(json!({ "modelApi": { "enabled": true } }), Some(1)).await, Ok(2));
    assert_eq!(world.set(blocks("p/b"), Some(1)).await, Err(Code::ConfigVersionConflict));
    assert_eq!(world.set(json!({ "enabled": true }), None).await, Ok(2), "nothing changed, so nothing is written");
    let document = world.policies.document(world.org, Key::ModelAccess).await.unwrap();
    assert_eq!(document.value["rules"][0]["blockedModels"], json!(["p/a"]));
    assert_eq!(document.value["modelApi"], json!({ "enabled": true }));

    let entries = world.entries().await;
    let acts: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
    assert_eq!(acts, ["governance_policy.created", "governance_policy.updated"]);
    let last = &entries[1].2;
    assert_eq!(last["changedFields"], json!(["modelApi"]));
    assert_eq!([&last["previous"]["modelApi"]["enabled"], &last["new"]["modelApi"]["enabled"]], [false, true]);
}

#[tokio::test]
async fn two_first_saves_at_once_are_two_versions_or_one_conflict() {
    let world = World::new().await;
    let (one, two) = tokio::join!(world.set(blocks("p/a"), Some(0)), world.set(blocks("p/b"), Some(0)));
    assert!(matches!(
        (one, two),
        (Ok(1), Err(Code::ConfigVersionConflict)) | (Err(Code::ConfigVersionConflict), Ok(1))
    ));
    let (one, two) = tokio::join!(
        world.set(json!({ "mode": "allowlist" }), None),
        world.set(json!({ "modelApi": { "enabled": true } }), None)
    );
    assert_eq!(one.unwrap() + two.unwrap(), 5);
    let value = world.policies.document(world.org, Key::ModelAccess).await.unwrap().value;
    assert_eq!([&value["mode"], &value["modelApi"]["enabled"]], [&json!("allowlist"), &json!(true)]);
}

#[tokio::test]
async fn a_file_that_somebody_wrote_counts_and_a_copy_does_not() {
    let world = World::new().await;
    assert_eq!(world.set(blocks("p/a"), None).await, Ok(1));
    let copy = std::fs::read_to_string(world.file()).unwrap();
    assert_eq!(world.set(blocks("p/b"), None).await, Ok(2));

    // An old copy comes back, as from a backup: the database decides, and the copy is written anew.
    std::fs::write(world.file(), &copy).unwrap();
    world.wait();
    assert_eq!(world.permits(&world.policies, "b").await, Ok(false));
    assert!(std::fs::read_to_string(world.file()).unwrap().contains("p/b"));

    // Somebody edits it: that is a change like any other, and stands in the log as one.
    std::fs::write(world.file(), copy.replace("p/a", "p/c")).unwrap();
    world.wait();
    assert_eq!(world.permits(&world.policies, "c").await, Ok(false));
    assert_eq!(world.permits(&world.policies, "b").await, Ok(true));
    let (action, actor, details) = world.entries().await.pop().unwrap();
    assert_eq!([action.as_str(), actor.as_str()], ["governance_policy.updated", "system"]);
    assert_eq!([&details["source"], &details["version"]], [&json!("file"), &json!(3)]);

    // A form that was open meanwhile does not undo it, and the next save replaces the file.
    std::fs::write(world.file(), "enabled: true\nrules:\n- scope: default\n  blockedModels: [p/d]\n").unwrap();
    assert_eq!(world.set(blocks("p/e"), Some(3)).await, Err(Code::ConfigVersionConflict));
    assert_eq!(world.permits(&world.policies, "d").await, Ok(false));
    assert_eq!(world.set(blocks("p/e"), Some(4)).await, Ok(5));
    assert!(std::fs::read_to_string(world.file()).unwrap().contains("p/e"));

    // A missing file changes nothing.
    std::fs::remove_file(world.file()).unwrap();
    world.wait();
    assert_eq!(world.permits(&world.policies, "e").await, Ok(false));
    assert_eq!(world.entries().await.len(), 5);
}

#[tokio::test]
async fn an_unreadable_file_is_never_on_and_a_save_mends_it() {
    let world = World::new().await;
    std::fs::create_dir_all(world.file().parent().unwrap()).unwrap();
    std::fs::write(world.file(), "modelApi: { enabled: true }\nenabledd: true\n").unwrap();
    assert_eq!(world.permits(&world.policies, "a").await, Err(Code::PolicyUnreadable));
    let policies = world.policies.of(world.org).await.unwrap();
    assert!(policies.model_access.usable().is_err());
    assert!(policies.default_models.usable().is_ok(), "the others are as they were");
    let document = world.policies.document(world.org, Key::ModelAccess).await.unwrap();
    assert_eq!(document.unreadable.as_deref(), Some("`enabledd` is not a known field"));
    assert_eq!(document.version, 0);

    assert_eq!(world.set(blocks("p/a"), Some(0)).await, Ok(1));
    assert_eq!(world.permits(&world.policies, "a").await, Ok(false));
    assert_eq!(world.policies.document(world.org, Key::ModelAccess).await.unwrap().unreadable, None);
}

#[tokio::test]
async fn a_save_that_cannot_replace_the_operators_file_is_refused_whole() {
    let world = World::new().await;
    // A folder in the file's place is nothing that can be replaced, even by root.
    std::fs::create_dir_all(world.file()).unwrap();
    assert_eq!(world.set(blocks("p/a"), None).await, Err(Code::ConfigNotWritable));
    assert!(world.entries().await.is_empty());
    assert_eq!(world.permits(&world.policies, "a").await, Err(Code::PolicyUnreadable));
}

#[tokio::test]
async fn organizations_do_not_see_each_other_and_bad_values_name_their_field() {
    let world = World::new().await;
    let other = organization(&world.db, "other").await;
    assert_eq!(world.set(blocks("p/a"), None).await, Ok(1));
    assert_eq!(world.policies.document(other, Key::ModelAccess).await.unwrap().version, 0);
    let gone = world.policies.document(OrgId::new(), Key::ModelAccess).await.unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
    let refused = |change: Value| async {
        let problem = world.policies.set(world.org, &world.admin, Key::ModelAccess, change, None).await.unwrap_err();
        assert_eq!(problem.code, Code::InvalidBody);
        problem.data.unwrap()["issues"][0]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(json!({ "rules": [{ "scope": "role" }] })).await, "value.rules.0.scopeId");
    assert_eq!(refused(json!({ "rules": [{ "scope": "team", "scopeId": "x" }] })).await, "value.rules.0.scopeId");
    assert_eq!(refused(json!({ "modelApi": { "on": true } })).await, "value.modelApi.on");
    assert_eq!(refused(json!([])).await, "value");
    assert_eq!(world.entries().await.len(), 1);
}

#[tokio::test]
async fn the_wait_of_unused_workspaces_begins_with_whatever_deletes_earlier() {
    let world = World::new().await;
    let policies = &world.policies;
    let since = async || {
        let mut conn = world.db.app.acquire().await.unwrap();
        let rule = policies.workspaces_rule(&mut conn, world.org).await.unwrap().unwrap();
        (rule.now - rule.since).num_days()
    };
    let age = async || {
        let text = "INSERT INTO app.sandbox_workspace_retention (org_id, effective_since)
             SELECT id, now() - interval '9 days' FROM app.organizations
             ON CONFLICT (org_id) DO UPDATE SET effective_since = EXCLUDED.effective_since";
        sqlx::query(text).execute(&world.db.app).await.unwrap();
    };
    let set = async |value: Value| {
        policies.set(world.org, &world.admin, Key::SandboxWorkspaces, value, None).await.map(drop).map_err(|no| no.code)
    };
    assert_eq!(since().await, 0, "the rule is as old as the organization");
    for (change, days) in [
        (json!({ "unusedDays": 31 }), 9),
        (json!({ "unusedDays": 30 }), 0),
        (json!({ "enabled": false }), 9),
        (json!({ "enabled": true }), 0),
        (json!({ "enabled": true, "unusedDays": 30 }), 9),
        // Back to 30 days, where it is.
        (json!({ "unusedDays": null }), 9),
    ] {
        age().await;
        set(change.clone()).await.unwrap();
        assert_eq!(since().await, days, "{change}");
    }
    for wrong in [json!({ "unusedDays": 0 }), json!({ "unusedDays": 3_651 }), json!({ "days": 1 })] {
        assert_eq!(set(wrong.clone()).await, Err(Code::InvalidBody), "{wrong}");
    }
    // What the operator writes counts in the same way; while it cannot be read there is no rule to delete by.
    age().await;
    let file = world.folder.path().join("acme/governance/sandbox-workspaces.yml");
    std::fs::write(&file, "unusedDays: 7").unwrap();
    world.wait();
    assert_eq!(policies.of(world.org).await.unwrap().sandbox_workspaces.usable().unwrap().unused_days, 7);
    assert_eq!(since().await, 0);
    std::fs::write(&file, "unusedDays: soon").unwrap();
    world.wait();
    assert!(policies.of(world.org).await.unwrap().sandbox_workspaces.usable().is_err());
}
