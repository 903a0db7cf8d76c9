//! Places: how many run at once, who waits, and that none is lost.

use serde_json::json;
use tale_core::{Actor, Code};
use tale_workshop::runs::RunState;

use crate::world::{Followed, World, start};

#[tokio::test]
async fn first_come_first_served_within_the_limit_over_several_processes() {
    let world = World::new(8).await;
    world.limit(2).await;
    let door = world.door();
    let people = [
        world.person().await,
        world.person().await,
        world.person().await,
        world.person().await,
        world.person().await,
        world.person().await,
    ];
    let mut runs = Vec::new();
    for (number, person) in people.iter().enumerate() {
        runs.push(start(&door, *person, &format!("print up\nwait {number}")).await);
    }
    let _processes = [world.process(), world.process(), world.process()];
    for at in 0..6 {
        let mut followed = Followed::of(&door, people[at], runs[at], 0).await;
        followed.printed("up").await;
        if at == 1 {
            let places: Vec<_> = futures::future::join_all((2..6).map(|next| door.code_run(people[next], runs[next])))
                .await
                .into_iter()
                .map(|run| run.unwrap())
                .map(|run| (run.state, run.position))
                .collect();
            assert_eq!(places, [1, 2, 3, 4].map(|place| (RunState::Waiting, Some(place))));
        }
        if at >= 1 {
            assert_eq!(world.places().await, 2.min(6 - at as i64 + 1));
            world.spawner.open(&(at - 1).to_string());
            Followed::of(&door, people[at - 1], runs[at - 1], 0).await.end().await;
        }
    }
    world.spawner.open("5");
    Followed::of(&door, people[5], runs[5], 0).await.end().await;
    assert_eq!(world.places().await, 0);
    world.spawner.all_released().await;
    assert!(world.spawner.most_held() <= 3, "one that ended may be released a moment later");
}

#[tokio::test]
async fn who_finds_the_host_full_waits_without_a_place_and_starts_when_there_is_room() {
    let world = World::new(6).await;
    world.limit(2).await;
    world.spawner.set_capacity(0);
    let (door, _process, ada) = (world.door(), world.process(), world.person().await);
    let id = start(&door, ada, "print up").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    let waiting = followed.state(|run| run.reason.as_deref() == Some("session_quota")).await;
    assert_eq!((waiting.state, waiting.position, waiting.host_position), (RunState::Waiting, Some(1), Some(1)));
    assert_eq!(world.places().await, 0);
    world.spawner.set_capacity(1);
    let ended = followed.end().await;
    assert_eq!((ended.state, followed.text.as_str()), (RunState::Completed, "up\n"));
}

#[tokio::test]
async fn limits_fit_the_deployment_unless_they_are_only_lowered() {
    let world = World::new(8).await;
    let door = world.door();
    let set = async |value| door.set_limits(world.org, &Actor::System, value, None).await.map(|saved| saved.version);
    let too_many = set(json!({ "maxSessionsPerOrg": 5 })).await.unwrap_err();
    assert_eq!(
        (too_many.code, too_many.data),
        (Code::SandboxCapacityExceeded, Some(json!({ "total": 9, "capacity": 8 })))
    );
    assert_eq!(set(json!({ "maxSessionsPerOrg": 4 })).await.unwrap(), 1);
    // The operator made the deployment smaller.
    world.spawner.set_capacity(3);
    assert_eq!(set(json!({ "maxSessionsPerOrg": 3 })).await.unwrap(), 2, "lowering is always accepted");
    assert_eq!(set(json!({ "maxRenderSessionsPerOrg": 3 })).await.unwrap_err().code, Code::SandboxCapacityExceeded);
    for (field, value) in [("maxSessionsPerOrg", json!(0)), ("maxSessionsPerOrg", json!(501)), ("max", json!(1))] {
        assert_eq!(set(json!({ field: value })).await.unwrap_err().code, Code::InvalidBody, "{field} {value}");
    }
}

#[tokio::test]
async fn while_the_capacity_cannot_be_asked_limits_can_only_be_lowered() {
    let world = World::new(8).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let door = world.door_to(nobody);
    let set =
        async |value| door.set_limits(world.org, &Actor::System, value, None).await.map_err(|problem| problem.code);
    assert_eq!(set(json!({ "maxSessionsPerOrg": 3 })).await.unwrap_err(), Code::SandboxUnavailable);
    assert_eq!(
        set(json!({ "maxSessionsPerOrg": 1, "maxRenderSessionsPerOrg": 3 })).await.unwrap_err(),
        Code::SandboxUnavailable
    );
    let lowered = set(json!({ "maxSessionsPerOrg": 1 })).await.unwrap();
    assert_eq!(lowered.value["maxSessionsPerOrg"], 1);
}

#[tokio::test]
async fn a_deleted_sandbox_takes_nothing_new_until_it_is_gone() {
    let world = World::new(8).await;
    let (door, ada) = (world.door(), world.person().await);
    let process = world.process();
    let id = start(&door, ada, "print up\nwait never").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    followed.printed("up").await;
    let session: String =
        sqlx::query_scalar("SELECT id FROM app.sandbox_sessions").fetch_one(&world.db.app).await.unwrap();
    drop(process);

    door.delete_session(world.org, &Actor::System, &session).await.unwrap();
    let refused = door.run(ada, &Actor::System, tale_workshop::runs::Language::Shell, "print no").await.unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    assert_eq!(world.spawner.destroyed(), Vec::<String>::new(), "not while something runs in it");

    world.forget_leases().await;
    let _process = world.process();
    assert_eq!(followed.end().await.state, RunState::Cancelled);
    world.spawner.one_destroyed().await;
    // As soon as it is gone there is a new one.
    let id = loop {
        match door.run(ada, &Actor::System, tale_workshop::runs::Language::Shell, "print new").await {
            Ok(run) => break run.id,
            Err(problem) => assert_eq!(problem.code, Code::Busy),
        }
        tokio::task::yield_now().await;
    };
    let mut followed = Followed::of(&door, ada, id, 0).await;
    followed.end().await;
    assert_eq!((followed.text.as_str(), world.spawner.destroyed()), ("new\n", vec![session]));
}

#[tokio::test]
async fn a_deleted_organization_is_gone_from_the_spawner_before_it_is_gone() {
    let world = World::new(8).await;
    let (door, ada) = (world.door(), world.person().await);
    let process = world.process();
    let id = start(&door, ada, "print up\nwait never").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    followed.printed("up").await;
    for deleted in ["UPDATE app.organizations SET deleted_at = now()", "DELETE FROM app.memberships"] {
        sqlx::query(deleted).execute(&world.db.app).await.unwrap();
    }
    drop(process);

    // What runs is ended, though the spawner cannot say what there is; then its files take a while.
    world.forget_leases().await;
    let process = world.process();
    assert_eq!(followed.end().await.state, RunState::Cancelled);
    world.spawner.torn_down(1).await;
    drop(process);
    let process = world.process();
    world.spawner.torn_down(2).await;
    drop(process);
    let count = "SELECT count(*) FROM app.sandbox_sessions";
    let sessions = async || sqlx::query_scalar::<_, i64>(count).fetch_one(&world.db.app).await.unwrap();
    assert_eq!(sessions().await, 1, "nothing is forgotten before the spawner has confirmed");
    let _process = world.process();
    world.spawner.torn_down(3).await;
    while sessions().await > 0 {
        tokio::task::yield_now().await;
    }
    let reasons: Vec<String> = sqlx::query_scalar(
        "SELECT details ->> 'reason' FROM app.audit_entries WHERE action = 'sandbox.workspace_deleted'",
    )
    .fetch_all(&world.db.app)
    .await
    .unwrap();
    assert_eq!(reasons, ["organization_deleted"]);
}

#[tokio::test]
async fn a_person_follows_so_many_runs_and_leaves_room_again() {
    let world = World::new(8).await;
    let (door, ada) = (world.door(), world.person().await);
    let id = start(&door, ada, "wait never").await;
    let follow = async || door.follow_run(ada, id, 0).await;
    let mut followers = Vec::new();
    for _ in 0..tale_workshop::follow::MAX_FOLLOWERS {
        followers.push(follow().await.unwrap());
    }
    assert_eq!(follow().await.err().unwrap().code, Code::RateLimited);
    followers.pop();
    assert!(follow().await.is_ok());
}
