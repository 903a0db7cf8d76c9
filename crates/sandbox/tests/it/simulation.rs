//! One host with 256 slots and more work than that: calls that fail, answers that are lost, requests that take effect
//! after nobody waits any more, callers that go away, spawners that are killed, clocks that jump. What is
//! promised holds at every moment, and when the trouble ends nothing is left over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tale_sandbox::Spawner;
use tale_sandbox::admission::Shortage;
use tale_sandbox::spawner::{CreateError, Destroy};
use tale_sandbox_wire::names::SessionId;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::world::{Faults, World, order, session};

const CAPACITY: u32 = 256;
const SESSIONS: usize = 420;

#[derive(Clone)]
struct Actor {
    world: Arc<World>,
    spawner: Spawner,
    admitted: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl Actor {
    async fn work(&self, number: usize) {
        let id = session(number);
        match self.world.pick(20) {
            0..=8 => self.start(number).await,
            9..=12 => self.turn(&id).await,
            13..=14 => {
                if let Ok(generation) = self.spawner.release_ticket(&id).await {
                    let _ = self.spawner.release(&id, &generation).await;
                }
            }
            15 => {
                let _ = self.spawner.pin(&id, self.world.chance(300)).await;
            }
            16 | 17 => {
                let _ = self.spawner.session(&id).await;
            }
            _ if self.world.chance(200) => {
                self.world.condemn(&id);
                let how = Destroy { await_deletion: self.world.chance(500), ..Destroy::default() };
                let _ = self.spawner.destroy(&id, how).await;
            }
            _ => {}
        }
    }

    async fn start(&self, number: usize) {
        let id = session(number);
        let asked = Instant::now();
        let line = self.spawner.waiting();
        let before = &line[..line.iter().position(|waiting| *waiting == id).unwrap_or(line.len())];
        let order = order(number);
        let create = self.spawner.create(&order);
        // Some callers lose patience.
        let patience = if self.world.chance(80) { Duration::from_millis(90) } else { Duration::from_secs(300) };
        match tokio::time::timeout(patience, create).await {
            Ok(Ok(_)) => {
                self.world.guest(&id, |guest| guest.abandoned = false);
                // Who got in left a slot to everyone who stood before it, and still does.
                let still = self.spawner.waiting();
                let before = before.iter().filter(|earlier| still.contains(earlier)).count();
                let taken = self.spawner.sessions(None).len();
                let is_fair = taken + before <= CAPACITY as usize || asked.elapsed() > Duration::from_secs(1);
                assert!(is_fair, "{id} overtook one of {before}: {taken} slots are taken");
                self.admitted.fetch_add(1, Ordering::SeqCst);
            }
            Ok(Err(CreateError::NoRoom(refusal))) => {
                assert_eq!(refusal.shortage, Shortage::Slot);
                self.refused.fetch_add(1, Ordering::SeqCst);
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }

    /// New work: a hold, a command, a release.
    async fn turn(&self, id: &SessionId) {
        let Ok(generation) = self.spawner.acquire(id).await else { return };
        let begun = self.world.guest(id, |guest| {
            let open = !guest.reclaiming;
            guest.live_execs += u32::from(open);
            open.then_some(guest.compute.created_at_ms)
        });
        let Some(Some(incarnation)) = begun else { return };
        tokio::time::sleep(Duration::from_secs(self.world.pick(1_500) as u64)).await;
        self.world.guest(id, |guest| {
            if guest.compute.created_at_ms == incarnation {
                guest.live_execs = guest.live_execs.saturating_sub(1);
                guest.last_activity = Instant::now();
            }
        });
        let _ = self.spawner.release(id, &generation).await;
    }
}

async fn simulate(seed: u64) {
    let world = World::new(seed, CAPACITY);
    let (spawner, mut dead) = world.spawner();
    let mut actor = Actor { world: world.clone(), spawner, admitted: Arc::default(), refused: Arc::default() };
    world.set_faults(Faults { refused: 15, answer_lost: 15, late: 10 });
    let mut actors = JoinSet::new();
    let mut files_before: BTreeMap<SessionId, u64> = BTreeMap::new();
    for round in 0..360_u32 {
        for _ in 0..40 {
            let actor = actor.clone();
            let number = world.pick(SESSIONS);
            actors.spawn(async move {
                // In its own task: a killed spawner answers nobody.
                let _ = tokio::time::timeout(Duration::from_secs(1_600), actor.work(number)).await;
            });
        }
        let _ = tokio::time::timeout(Duration::from_secs(120), actor.spawner.maintain()).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        match world.pick(120) {
            0 => {
                dead.store(true, Ordering::SeqCst);
                (actor.spawner, dead) = world.spawner();
            }
            1 => world.clock.jump(3_600_000),
            2 => world.clock.jump(-3_600_000),
            3 => {
                let id = session(world.pick(SESSIONS));
                world.guest(&id, |guest| guest.frozen = true);
            }
            _ => {}
        }
        assert_eq!(world.broken(), Vec::<String>::new(), "seed {seed}, round {round}");
        // Files stay what they are until somebody asks for their end.
        let files = world.all_files();
        for (id, number) in &files_before {
            assert!(files.get(id) == Some(number) || world.was_condemned(id), "the files of {id} changed, seed {seed}");
        }
        files_before = files;
        while actors.try_join_next().is_some_and(|ended| {
            ended.unwrap();
            true
        }) {}
    }
    world.set_faults(Faults::default());
    while let Some(ended) = actors.join_next().await {
        ended.unwrap();
    }
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        actor.spawner.maintain().await.unwrap();
    }
    assert_eq!(world.broken(), Vec::<String>::new(), "seed {seed}");
    let known: Vec<_> = actor.spawner.sessions(None).into_iter().map(|info| info.session).collect();
    assert_eq!(known, world.running(), "slots and compute are the same, seed {seed}");
    assert_eq!(world.strays(), 0, "seed {seed}");
    let (admitted, refused) = (actor.admitted.load(Ordering::SeqCst), actor.refused.load(Ordering::SeqCst));
    assert_eq!(world.most_running(), CAPACITY as usize, "the host was never full");
    assert!(admitted > 700 && refused > 200, "{admitted} admitted, {refused} refused");
}

#[tokio::test(start_paused = true)]
async fn promises_hold_in_all_kinds_of_trouble() {
    for seed in [1, 2, 3] {
        simulate(seed).await;
    }
}
