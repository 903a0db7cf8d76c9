//! Lives of single sessions, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tale_sandbox::Spawner;
use tale_sandbox::admission::Shortage;
use tale_sandbox::backend::Deletion;
use tale_sandbox::profile::{GIB, MIB};
use tale_sandbox::spawner::{CreateError, Destroy, Destroyed, HoldError, LookupError, PinError, SessionInfo};
use tale_sandbox_wire::names::Generation;

use crate::world::{Faults, World, order, session};

async fn create(world: &World, spawner: &Spawner, number: usize) -> Result<SessionInfo, CreateError> {
    let created = spawner.create(&order(number)).await;
    world.guest(&session(number), |guest| guest.abandoned = false);
    created
}

async fn release(spawner: &Spawner, number: usize) {
    let generation = spawner.release_ticket(&session(number)).await.unwrap();
    assert!(spawner.release(&session(number), &generation).await.unwrap());
}

fn refusal(outcome: Result<SessionInfo, CreateError>) -> (Shortage, usize, u64) {
    match outcome {
        Err(CreateError::NoRoom(refusal)) => {
            (refusal.shortage, refusal.place.position, refusal.place.retry_after().as_secs())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_who_waits_gets_the_released_session() {
    let world = World::new(1, 2);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    create(&world, &spawner, 2).await.unwrap();
    assert_eq!(refusal(create(&world, &spawner, 3).await), (Shortage::Slot, 1, 5));
    assert_eq!(refusal(create(&world, &spawner, 4).await), (Shortage::Slot, 2, 10));
    let files = world.files(&session(1));

    release(&spawner, 1).await;
    assert_eq!(refusal(create(&world, &spawner, 4).await), (Shortage::Slot, 2, 10), "it is not its turn");
    create(&world, &spawner, 3).await.unwrap();
    assert_eq!(world.running(), [session(2), session(3)]);
    assert_eq!(world.files(&session(1)), files, "a stop keeps the files");

    // The released one comes back to the same files, when there is room.
    assert_eq!(refusal(create(&world, &spawner, 1).await).1, 2);
    release(&spawner, 2).await;
    create(&world, &spawner, 4).await.unwrap();
    release(&spawner, 4).await;
    create(&world, &spawner, 1).await.unwrap();
    assert_eq!(world.files(&session(1)), files);
    assert!(world.broken().is_empty(), "{:?}", world.broken());
}

#[tokio::test(start_paused = true)]
async fn a_burst_over_idle_sessions_is_admitted_at_once() {
    let world = World::new(2, 6);
    let (spawner, _) = world.spawner();
    for number in 0..6 {
        create(&world, &spawner, number).await.unwrap();
        release(&spawner, number).await;
    }
    let wanted: Vec<_> = (10..16).map(order).collect();
    let burst = futures::future::join_all(wanted.iter().map(|order| spawner.create(order))).await;
    assert!(burst.iter().all(Result::is_ok), "{burst:?}");
    assert_eq!(world.running(), (10..16).map(session).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn of_two_who_fit_alone_one_starts() {
    let world = World::new(3, 8);
    world.set_memory(GIB + 700 * MIB, 8 * GIB);
    let (spawner, _) = world.spawner();
    let (a, b) = (order(1), order(2));
    let both = tokio::join!(spawner.create(&a), spawner.create(&b));
    let refused = [both.0, both.1].into_iter().filter(Result::is_err).map(refusal).collect::<Vec<_>>();
    assert_eq!(refused, [(Shortage::Memory, 1, 5)]);
}

#[tokio::test(start_paused = true)]
async fn a_short_disk_stops_nobody() {
    let world = World::new(4, 1);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    release(&spawner, 1).await;
    world.set_disk_short(true);
    assert_eq!(refusal(create(&world, &spawner, 2).await).0, Shortage::Disk);
    let acquired = spawner.acquire(&session(1)).await;
    assert!(matches!(&acquired, Err(HoldError::NoRoom(no)) if no.shortage == Shortage::Disk), "{acquired:?}");
    assert_eq!(world.running(), [session(1)]);
}

#[tokio::test(start_paused = true)]
async fn under_pressure_starts_and_resumed_work_take_turns() {
    let world = World::new(15, 8);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    release(&spawner, 1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.set_pressure(70.0);
    create(&world, &spawner, 2).await.unwrap();
    let acquired = spawner.acquire(&session(1)).await;
    assert!(matches!(&acquired, Err(HoldError::NoRoom(no)) if no.shortage == Shortage::Cpu), "{acquired:?}");
    // Work that goes on is not asked.
    spawner.acquire(&session(2)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(refusal(create(&world, &spawner, 3).await), (Shortage::Cpu, 2, 10), "the first in the line goes first");
    spawner.acquire(&session(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_old_generation_releases_nothing() {
    let world = World::new(5, 2);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    let old = spawner.release_ticket(&session(1)).await.unwrap();
    let new = spawner.acquire(&session(1)).await.unwrap();
    assert!(!spawner.release(&session(1), &old).await.unwrap());
    assert!(!world.guest(&session(1), |guest| guest.released).unwrap());
    assert!(spawner.release(&session(1), &new).await.unwrap());
    assert!(!spawner.release(&session(1), &Generation::new("none").unwrap()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn acquires_at_the_same_time_share_a_hold() {
    let world = World::new(6, 2);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    release(&spawner, 1).await;
    let one = session(1);
    let (a, b) = tokio::join!(spawner.acquire(&one), spawner.acquire(&one));
    assert_eq!(a.unwrap(), b.unwrap());
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_end_by_their_windows_and_pinned_ones_stay() {
    let world = World::new(7, 8);
    let (spawner, _) = world.spawner();
    for number in [1, 2, 3] {
        create(&world, &spawner, number).await.unwrap();
    }
    release(&spawner, 1).await;
    spawner.pin(&session(3), true).await.unwrap();
    let left_after = async |minutes: u64| {
        for _ in 0..minutes {
            tokio::time::sleep(Duration::from_secs(60)).await;
            spawner.maintain().await.unwrap();
        }
        world.running()
    };
    assert_eq!(left_after(4).await.len(), 3);
    assert_eq!(left_after(2).await, [session(2), session(3)], "released for five minutes");
    assert_eq!(left_after(26).await, [session(3)], "idle for thirty");
    world.clock.jump(3 * 86_400_000);
    assert_eq!(left_after(2).await, [session(3)], "a pin outlives the lifetime");
    spawner.pin(&session(3), false).await.unwrap();
    let info = spawner.session(&session(3)).await.unwrap();
    assert!(info.expires_at_ms > info.created_at_ms + 3 * 86_400_000, "the unpin renews the lifetime");
    assert_eq!(left_after(2).await, [session(3)].to_vec().split_off(1), "but not the idle window");
    assert!(world.broken().is_empty(), "{:?}", world.broken());
    assert_eq!(world.all_files().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_daemon_is_stopped_after_five_passes_unless_pinned() {
    let world = World::new(8, 8);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    create(&world, &spawner, 2).await.unwrap();
    spawner.pin(&session(2), true).await.unwrap();
    for number in [1, 2] {
        world.guest(&session(number), |guest| guest.frozen = true);
    }
    for _ in 0..4 {
        spawner.maintain().await.unwrap();
    }
    assert_eq!(world.running().len(), 2);
    spawner.maintain().await.unwrap();
    assert_eq!(world.running(), [session(2)]);
    assert_eq!(world.all_files().len(), 2);
    let pin = spawner.pin(&session(2), false).await;
    assert!(matches!(pin, Err(PinError::NotDelivered(_))), "{pin:?}");
    let info = spawner.session(&session(2)).await.unwrap();
    assert!(info.pinned && !info.pin_synchronized);
}

#[tokio::test(start_paused = true)]
async fn a_killed_spawner_loses_no_session() {
    let world = World::new(9, 2);
    let (first, dead) = world.spawner();
    create(&world, &first, 1).await.unwrap();
    create(&world, &first, 2).await.unwrap();
    dead.store(true, Ordering::SeqCst);
    let (second, _) = world.spawner();
    // Before anybody looked after anything, the slots are known to be taken.
    assert_eq!(refusal(create(&world, &second, 3).await).0, Shortage::Slot);
    assert!(matches!(create(&world, &second, 1).await, Err(CreateError::Duplicate)));
    let generation = second.acquire(&session(1)).await.unwrap();
    assert!(second.release(&session(1), &generation).await.unwrap());
    create(&world, &second, 3).await.unwrap();
    assert_eq!(world.running(), [session(2), session(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_given_up_leaves_its_files_and_no_slot() {
    let world = World::new(10, 1);
    let (spawner, _) = world.spawner();
    for pause in [10, 40, 90, 130] {
        let given_up = tokio::time::timeout(Duration::from_millis(pause), spawner.create(&order(1))).await;
        if given_up.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(world.running().is_empty() && spawner.sessions(None).is_empty(), "after {pause} ms");
    }
    assert!(world.files(&session(1)).is_some());
    create(&world, &spawner, 2).await.ok();
    assert!(world.broken().is_empty(), "{:?}", world.broken());
}

#[tokio::test(start_paused = true)]
async fn a_destroy_takes_everything_and_disturbs_nothing_it_may_not() {
    let world = World::new(11, 4);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    world.guest(&session(1), |guest| guest.live_execs = 1);
    let destroy = async |if_idle, if_stopped| {
        let how = Destroy { if_idle, if_stopped, await_deletion: false };
        spawner.destroy(&session(1), how).await.unwrap()
    };
    assert_eq!(destroy(true, false).await, Destroyed::Busy);
    assert_eq!(destroy(false, true).await, Destroyed::Busy);
    world.guest(&session(1), |guest| guest.live_execs = 0);
    assert_eq!(destroy(false, true).await, Destroyed::Busy, "its compute runs");
    world.condemn(&session(1));
    assert_eq!(destroy(true, false).await, Destroyed::Done { destroyed: true, deletion: Deletion::Done });
    assert_eq!(destroy(false, false).await, Destroyed::Done { destroyed: false, deletion: Deletion::Done });
    assert!(world.running().is_empty() && world.all_files().is_empty() && spawner.sessions(None).is_empty());
    assert!(matches!(spawner.session(&session(1)).await, Err(LookupError::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn a_destroy_ends_a_start_and_the_next_create_waits_for_it() {
    let world = World::new(12, 4);
    let (spawner, _) = world.spawner();
    world.condemn(&session(1));
    let (one, wanted) = (session(1), order(1));
    let destroy = async {
        tokio::time::sleep(Duration::from_millis(70)).await;
        spawner.destroy(&one, Destroy::default()).await
    };
    let again = async {
        tokio::time::sleep(Duration::from_millis(71)).await;
        create(&world, &spawner, 1).await
    };
    let (first, destroyed, again) = tokio::join!(spawner.create(&wanted), destroy, again);
    destroyed.unwrap();
    assert!(matches!(first, Err(CreateError::Failed(_))), "{first:?}");
    again.unwrap();
    assert_eq!(world.running(), [session(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_draining_spawner_creates_and_adopts_nothing_and_ends_what_lingers() {
    let world = World::new(13, 4);
    let (spawner, _) = world.spawner();
    let (other, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    spawner.drain();
    assert!(matches!(create(&world, &spawner, 2).await, Err(CreateError::Draining)));
    create(&world, &other, 3).await.unwrap();
    assert!(matches!(spawner.acquire(&session(3)).await, Err(HoldError::Lookup(LookupError::NotFound))));
    spawner.maintain().await.unwrap();
    assert_eq!(spawner.drain_status(), (true, vec![session(1)]));
    world.guest(&session(1), |guest| guest.condemned = true);
    tokio::time::sleep(Duration::from_secs(1_801)).await;
    spawner.maintain().await.unwrap();
    assert_eq!(world.running(), [session(3)]);
    assert!(world.files(&session(1)).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_stop_whose_answer_is_lost_keeps_the_slot_until_it_is_certain() {
    let world = World::new(14, 1);
    let (spawner, _) = world.spawner();
    create(&world, &spawner, 1).await.unwrap();
    release(&spawner, 1).await;
    let spawner = Arc::new(spawner);
    let waiting = tokio::spawn({
        let spawner = Arc::clone(&spawner);
        async move { spawner.create(&order(2)).await }
    });
    // Once the gate is closed, the engine stops answering.
    while !world.guest(&session(1), |guest| guest.reclaiming).unwrap_or(true) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.set_faults(Faults { refused: 1_000, ..Faults::default() });
    assert_eq!(refusal(waiting.await.unwrap()).0, Shortage::Slot);
    world.set_faults(Faults::default());
    assert!(matches!(spawner.target(&session(1)).await, Err(LookupError::Unavailable)));
    spawner.maintain().await.unwrap();
    assert!(world.running().is_empty());
    assert_eq!(world.broken(), Vec::<String>::new());
}
