//! A run from its order to its end, whatever happens on the way.

use tale_core::{Actor, Code};
use tale_workshop::runs::RunState;

use crate::world::{Followed, World, organization, start};

#[tokio::test]
async fn a_run_is_followed_to_its_end_metered_and_audited_and_gives_its_place_back() {
    let world = World::new(8).await;
    let (door, _process, ada) = (world.door(), world.process(), world.person().await);
    let id = start(&door, ada, "print one\nprint two\nexit 3").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    let ended = followed.end().await;
    assert_eq!(followed.text, "one\ntwo\n");
    assert_eq!((ended.state, ended.exit_code, ended.output_complete), (RunState::Failed, Some(3), Some(true)));
    world.spawner.all_released().await;
    assert_eq!(world.places().await, 0);

    // Whoever comes back later reads the rest, and nothing twice.
    let mut again = Followed::of(&door, ada, id, followed.seq).await;
    again.end().await;
    assert_eq!(again.text, "");

    let (runs, actions): (i64, Vec<String>) = sqlx::query_as(
        "SELECT (SELECT sum(runs)::bigint FROM app.sandbox_days WHERE org_id = $1 AND user_id = $2),
                (SELECT array_agg(action ORDER BY id) FROM app.audit_entries WHERE org_id = $1)",
    )
    .bind(ada.org)
    .bind(ada.user)
    .fetch_one(&world.db.app)
    .await
    .unwrap();
    assert_eq!(runs, 1);
    assert_eq!(actions, ["code_run.requested", "code_run.ended"]);
}

#[tokio::test]
async fn output_is_there_once_and_whole_though_processes_are_killed_and_streams_cut() {
    let world = World::new(8).await;
    let (door, ada) = (world.door(), world.person().await);
    let first = world.process();
    let script = "print 1\nwait a\nprint 2\nwait b\nprint 3\nwait c\nprint 4";
    let id = start(&door, ada, script).await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    followed.printed("1\n").await;

    drop(first);
    world.spawner.open("a");
    world.forget_leases().await;
    let second = world.process();
    followed.printed("2\n").await;
    world.spawner.cut();
    world.spawner.open("b");
    followed.printed("3\n").await;

    drop(second);
    world.forget_leases().await;
    let _third = world.process();
    world.spawner.open("c");
    let ended = followed.end().await;
    assert_eq!(followed.text, "1\n2\n3\n4\n");
    assert_eq!((ended.state, ended.output_complete), (RunState::Completed, Some(true)));
    assert_eq!(world.spawner.begun(), [1], "a command is started once");
    world.spawner.all_released().await;
    assert_eq!(world.places().await, 0);
}

#[tokio::test]
async fn a_run_is_stopped_wherever_it_is() {
    let world = World::new(8).await;
    world.limit(1).await;
    let (door, process) = (world.door(), world.process());
    let (ada, ben) = (world.person().await, world.person().await);
    let running = start(&door, ada, "print up\nwait never").await;
    let mut followed = Followed::of(&door, ada, running, 0).await;
    followed.printed("up").await;
    let waiting = start(&door, ben, "print no").await;

    // In line: it has ended at once.
    let stopped = door.stop_run(ben, &Actor::User { id: ben.user }, waiting).await.unwrap();
    assert_eq!((stopped.state, stopped.position), (RunState::Cancelled, None));
    // Running: with everything it started. Twice is fine.
    for _ in 0..2 {
        door.stop_run(ada, &Actor::User { id: ada.user }, running).await.unwrap();
    }
    let ended = followed.end().await;
    assert_eq!((ended.state, ended.exit_code, ended.output_complete), (RunState::Cancelled, Some(137), Some(true)));
    assert_eq!(world.places().await, 0);

    // Who lost the right while waiting gets no place.
    let busy = start(&door, ada, "print up\nwait never").await;
    let mut followed = Followed::of(&door, ada, busy, 0).await;
    followed.printed("up").await;
    let waiting = start(&door, ben, "print no").await;
    sqlx::query("UPDATE app.memberships SET role = 'member' WHERE user_id = $1")
        .bind(ben.user)
        .execute(&world.db.app)
        .await
        .unwrap();
    door.stop_run(ada, &Actor::User { id: ada.user }, busy).await.unwrap();
    assert_eq!(Followed::of(&door, ben, waiting, 0).await.end().await.state, RunState::Cancelled);
    followed.end().await;

    // While nobody attends to anything, too.
    drop(process);
    let orphan = start(&door, ada, "print no").await;
    let stopped = door.stop_run(ada, &Actor::User { id: ada.user }, orphan).await.unwrap();
    assert_eq!(stopped.state, RunState::Cancelled);
    assert_eq!(world.spawner.begun(), [1, 1], "nothing else was ever started");
}

#[tokio::test]
async fn nobody_else_has_anything_to_do_with_a_run() {
    let world = World::new(8).await;
    let door = world.door();
    let ada = world.person().await;
    let id = start(&door, ada, "print secret").await;
    let colleague = world.person().await;
    let same_person_elsewhere =
        tale_workshop::runs::Owner { org: organization(&world.db.app, "other").await, user: ada.user };
    for stranger in [colleague, same_person_elsewhere] {
        let actor = Actor::User { id: stranger.user };
        assert_eq!(door.code_run(stranger, id).await.unwrap_err().code, Code::CodeRunNotFound);
        assert_eq!(door.stop_run(stranger, &actor, id).await.unwrap_err().code, Code::CodeRunNotFound);
        assert_eq!(door.follow_run(stranger, id, 0).await.err().unwrap().code, Code::CodeRunNotFound);
    }
    assert_eq!(door.code_run(ada, id).await.unwrap().state, RunState::Waiting);
    let session: String =
        sqlx::query_scalar("SELECT id FROM app.sandbox_sessions").fetch_one(&world.db.app).await.unwrap();
    let theirs = door.stop_session(same_person_elsewhere.org, &Actor::System, &session).await;
    assert_eq!(theirs.unwrap_err().code, Code::SessionNotFound);
    let theirs = door.delete_session(same_person_elsewhere.org, &Actor::System, &session).await;
    assert_eq!(theirs.unwrap_err().code, Code::SessionNotFound);
}
