//! Workspaces that nobody uses: which go, when, and that nothing else does.

use chrono::{DateTime, Days, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::json;
use tale_core::{Actor, Code};
use tale_governance::policies::{Key, SandboxWorkspaces, WorkspacesRule};
use tale_workshop::cleanup::{Use, due};
use tale_workshop::runs::{Language, Owner};

use crate::world::{World, start};

/// What happens to a workspace and to the rule about it.
#[derive(Debug, Clone)]
enum Step {
    Hours(u16),
    Used,
    Pinned(bool),
    Rule(bool, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u16..100).prop_map(Step::Hours),
        2 => Just(Step::Used),
        1 => any::<bool>().prop_map(Step::Pinned),
        2 => (any::<bool>(), 1_u32..4).prop_map(|(on, days)| Step::Rule(on, days)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A workspace is looked at every hour. It goes only when each hour of a whole window before was without use, without
    /// a pin, and under a rule that was on and no longer than the present one; and it goes at the latest when nothing at
    /// all has happened for a window.
    #[test]
    fn it_goes_after_a_whole_window_and_not_before(steps in prop::collection::vec(step(), 1..40)) {
        let start: DateTime<Utc> = "2030-01-01T00:00:00Z".parse().unwrap();
        let at = |hour: usize| start + TimeDelta::hours(i64::try_from(hour).unwrap());
        let mut rule = WorkspacesRule { policy: SandboxWorkspaces::default(), since: start, now: start };
        let mut of = Use { last: start, pinned_at: None, pinned: false, in_use: false };
        // By hour: whether it was used or pinned, and the rule.
        let mut history = vec![(true, rule.policy)];
        let mut happened = 0;
        for step in steps {
            let now = history.len() - 1;
            match step {
                Step::Used => {
                    of.last = at(now);
                    history[now].0 = true;
                }
                Step::Pinned(pinned) => {
                    if pinned || of.pinned {
                        of.pinned_at = Some(at(now));
                        history[now].0 = true;
                    }
                    of.pinned = pinned;
                }
                Step::Rule(enabled, unused_days) => {
                    let policy = SandboxWorkspaces { enabled, unused_days };
                    if policy.begins_anew(&rule.policy) {
                        rule.since = at(now);
                    }
                    rule.policy = policy;
                    history[now].1 = policy;
                }
                Step::Hours(hours) => {
                    for _ in 0..hours {
                        let now = history.len();
                        rule.now = at(now);
                        let window = usize::try_from(rule.policy.unused_days).unwrap() * 24;
                        let goes = due(&rule, &of).is_some_and(|at| at <= rule.now);
                        let deletes = rule.policy.enabled && !of.pinned;
                        let ruled = |policy: SandboxWorkspaces| {
                            policy.enabled && policy.unused_days <= rule.policy.unused_days
                        };
                        if goes {
                            prop_assert!(deletes && now >= window, "hour {now}");
                            // The window may begin with the last use, or with the change.
                            prop_assert!(ruled(history[now - window].1), "hour {now}");
                            let inside = &history[now - window + 1..];
                            prop_assert!(inside.iter().all(|(touched, policy)| !touched && ruled(*policy)), "hour {now}");
                        } else {
                            prop_assert!(!deletes || now < happened + window, "hour {now}");
                        }
                        if of.pinned {
                            of.pinned_at = Some(at(now));
                        }
                        history.push((of.pinned, rule.policy));
                    }
                    continue;
                }
            }
            happened = now;
        }
    }

    #[test]
    fn what_is_in_use_stays_for_ever(days in 1_u32..=3_650, unused in 0_i64..200_000) {
        let now = Utc::now();
        let policy = SandboxWorkspaces { enabled: true, unused_days: days };
        let last = now - TimeDelta::days(unused);
        let rule = WorkspacesRule { policy, since: last, now };
        let of = Use { last, pinned_at: None, pinned: false, in_use: false };
        prop_assert_eq!(due(&rule, &of), last.checked_add_days(Days::new(days.into())));
        prop_assert_eq!(due(&rule, &Use { in_use: true, ..of }), None);
        prop_assert_eq!(due(&rule, &Use { pinned: true, ..of }), None);
    }
}

/// A workspace as the tests look at it.
#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Row {
    allocation: String,
    /// Whole days since it was used.
    days: i64,
}

impl World {
    /// Somebody whose workspace was used so many days ago, and the name of it.
    async fn unused_for(&self, days: i64) -> (Owner, String) {
        let owner = self.person().await;
        let door = self.door();
        let id = start(&door, owner, "print x").await;
        door.stop_run(owner, &Actor::System, id).await.unwrap();
        let session = sqlx::query_scalar(
            "UPDATE app.sandbox_sessions SET used_at = now() - make_interval(days => $2::int) WHERE user_id = $1 RETURNING id",
        )
        .bind(owner.user)
        .bind(days)
        .fetch_one(&self.db.app)
        .await
        .unwrap();
        (owner, session)
    }

    /// Lets the rule count for so many days already.
    async fn rule_since(&self, days: i32) {
        let text = "INSERT INTO app.sandbox_workspace_retention (org_id, effective_since)
             SELECT id, now() - make_interval(days => $1) FROM app.organizations
             ON CONFLICT (org_id) DO UPDATE SET effective_since = EXCLUDED.effective_since";
        sqlx::query(text).bind(days).execute(&self.db.app).await.unwrap();
    }

    async fn rule(&self, value: serde_json::Value) {
        self.policies().set(self.org, &Actor::System, Key::SandboxWorkspaces, value, None).await.unwrap();
    }

    async fn row(&self, session: &str) -> Option<Row> {
        sqlx::query_as(
            "SELECT allocation, extract(day FROM now() - used_at)::bigint AS days FROM app.sandbox_sessions WHERE id = $1",
        )
        .bind(session)
        .fetch_optional(&self.db.app)
        .await
        .unwrap()
    }

    async fn gone(&self, session: &str) {
        while self.row(session).await.is_some() {
            tokio::task::yield_now().await;
        }
    }

    /// Status and details of what is recorded of deletions.
    async fn deletions(&self) -> Vec<(String, String, Option<String>)> {
        sqlx::query_as(
            "SELECT status, details ->> 'reason', details ->> 'error' FROM app.audit_entries
             WHERE action = 'sandbox.workspace_deleted' AND actor_kind = 'system' AND category = 'data' ORDER BY id",
        )
        .fetch_all(&self.db.app)
        .await
        .unwrap()
    }
}

fn released(days: i64) -> Option<Row> {
    Some(Row { allocation: "released".to_owned(), days })
}

#[tokio::test]
async fn an_unused_workspace_goes_and_those_in_use_pinned_or_waited_for_stay() {
    let world = World::new(8).await;
    world.rule_since(40).await;
    let door = world.door();
    let (_, old) = world.unused_for(31).await;
    let (_, recent) = world.unused_for(29).await;
    let (_, pinned) = world.unused_for(31).await;
    let (_, active) = world.unused_for(31).await;
    let (waiter, waited) = world.unused_for(31).await;
    start(&door, waiter, "print x").await;
    for table in ["code_runs SET queued_at", "sandbox_sessions SET used_at"] {
        let text = format!("UPDATE app.{table} = now() - interval '31 days' WHERE user_id = $1");
        sqlx::query(sqlx::AssertSqlSafe(text)).bind(waiter.user).execute(&world.db.app).await.unwrap();
    }
    world.spawner.keep(&pinned, None, false, true);
    world.spawner.keep(&active, None, true, false);

    world.rule(json!({ "enabled": false })).await;
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&old).await, released(31), "the rule is off");
    world.rule(json!({ "enabled": true })).await;
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&old).await, released(31), "it has just been switched on");
    world.rule_since(31).await;

    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&old).await.unwrap().allocation, "destroying");
    for (kept, days) in [(&recent, 29), (&pinned, 31), (&active, 31), (&waited, 31)] {
        assert_eq!(world.row(kept).await, released(days), "{kept}");
    }
    let _process = world.process();
    world.gone(&old).await;
    assert_eq!(world.spawner.destroyed(), [old]);
    assert_eq!(world.deletions().await, [("success".to_owned(), "unused".to_owned(), None)]);
}

#[tokio::test]
async fn a_pin_that_ends_begins_the_window_anew() {
    let world = World::new(8).await;
    world.rule_since(40).await;
    let (door, (_, session)) = (world.door(), world.unused_for(31).await);
    world.spawner.keep(&session, None, false, true);
    door.clean_workspaces().await.unwrap();
    world.spawner.forget();
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&session).await, released(31));
    let long_ago = "UPDATE app.sandbox_sessions SET pinned_at = now() - interval '31 days'";
    sqlx::query(long_ago).execute(&world.db.app).await.unwrap();
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&session).await.unwrap().allocation, "destroying");
}

#[tokio::test]
async fn a_shorter_rule_deletes_after_its_own_window_and_the_row_says_when() {
    let world = World::new(8).await;
    world.rule_since(40).await;
    let (door, (_, session)) = (world.door(), world.unused_for(20).await);
    let shown = async || {
        let (_, sessions) = door.overview(world.org, true).await.unwrap().people.unwrap();
        let at = sessions[0].deleted_at;
        at.map(|at| (at - Utc::now() + TimeDelta::minutes(10)).num_days())
    };
    assert_eq!(shown().await, Some(10));
    world.rule(json!({ "unusedDays": 5 })).await;
    assert_eq!(shown().await, Some(5));
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&session).await, released(20));
    world.rule_since(5).await;
    // A longer rule keeps it, and counts from where the shorter one began; back to that one is a wait again.
    world.rule(json!({ "unusedDays": 21 })).await;
    door.clean_workspaces().await.unwrap();
    assert_eq!((world.row(&session).await, shown().await), (released(20), Some(16)));
    world.rule(json!({ "unusedDays": 5 })).await;
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&session).await, released(20));
    world.rule_since(5).await;
    door.clean_workspaces().await.unwrap();
    assert_eq!(world.row(&session).await.unwrap().allocation, "destroying");
    assert_eq!(shown().await, None);
}

#[tokio::test]
async fn whoever_uses_it_at_the_last_moment_keeps_it() {
    let world = World::new(8).await;
    world.rule_since(40).await;
    let (door, (owner, session)) = (world.door(), world.unused_for(31).await);
    // Places are being given out while the job looks.
    let mut lock = world.db.app.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('tale.sandbox/' || $1::text, 0))")
        .bind(world.org)
        .execute(&mut *lock)
        .await
        .unwrap();
    let cleaner = door.clone();
    let cleaning = tokio::spawn(async move { cleaner.clean_workspaces().await });
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&world.db.app).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    sqlx::query("UPDATE app.sandbox_sessions SET used_at = now()").execute(&mut *lock).await.unwrap();
    lock.commit().await.unwrap();
    cleaning.await.unwrap().unwrap();
    assert_eq!(world.row(&session).await, released(0));
    start(&door, owner, "print x").await;
}

#[tokio::test]
async fn what_the_spawner_finds_in_use_or_cannot_delete_is_kept_and_said() {
    let world = World::new(8).await;
    world.rule_since(40).await;
    let (door, (owner, session)) = (world.door(), world.unused_for(31).await);
    let condemn = async || {
        door.clean_workspaces().await.unwrap();
        assert_eq!(world.row(&session).await.unwrap().allocation, "destroying");
        let refused = door.run(owner, &Actor::System, Language::Shell, "print x").await.unwrap_err();
        assert_eq!(refused.code, Code::Busy);
        let _process = world.process();
        while world.row(&session).await.is_some_and(|row| row.allocation == "destroying") {
            tokio::task::yield_now().await;
        }
    };
    world.spawner.run_by_itself(&session);
    condemn().await;
    assert_eq!((world.row(&session).await, world.deletions().await), (released(31), vec![]));

    world.spawner.set_stuck(true);
    condemn().await;
    assert_eq!(world.row(&session).await, released(31));
    let deletions = world.deletions().await;
    assert_eq!((deletions.len(), &*deletions[0].0, &*deletions[0].1), (1, "failure", "unused"));
    assert!(deletions[0].2.as_ref().unwrap().contains("destroy_failed"), "{deletions:?}");
    assert_eq!(world.spawner.destroyed(), Vec::<String>::new());
    start(&door, owner, "print x").await;
}

#[tokio::test]
async fn of_what_nothing_names_only_that_of_this_deployment_goes() {
    let world = World::new(8).await;
    let (door, (_, named)) = (world.door(), world.unused_for(1).await);
    let (ours, theirs) = (world.org.to_string(), tale_core::ids::OrgId::new().to_string());
    world.spawner.keep(&named, Some(&ours), false, false);
    world.spawner.keep("orphan", Some(&ours), false, true);
    world.spawner.keep("running", Some(&ours), true, false);
    world.spawner.keep("of-another-deployment", Some(&theirs), false, false);
    world.spawner.keep("of-no-uuid", Some("somebody"), false, false);
    world.spawner.keep("of-nobody", None, false, false);
    door.clean_workspaces().await.unwrap();
    let process = world.process();
    world.spawner.one_destroyed().await;
    world.gone("orphan").await;
    drop(process);
    assert_eq!(world.spawner.destroyed(), ["orphan"]);
    assert_eq!(world.deletions().await, [("success".to_owned(), "orphaned".to_owned(), None)]);
    assert_eq!(world.row(&named).await, released(1));
    door.clean_workspaces().await.unwrap();
    assert!(world.row("orphan").await.is_none());
}

#[tokio::test]
async fn without_an_inventory_nothing_is_decided() {
    let world = World::new(8).await;
    world.rule_since(40).await;
    let (_, session) = world.unused_for(31).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failed = world.door_to(nobody).clean_workspaces().await.unwrap_err();
    assert!(matches!(failed, tale_jobs::JobError::Away { .. }), "{failed:?}");
    assert_eq!(world.row(&session).await, released(31));
}
