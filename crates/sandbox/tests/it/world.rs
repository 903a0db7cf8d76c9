//! A host that exists only here: a backend, daemons and a clock that fail, lose answers and jump as told.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tale_core::clock::Clock;
use tale_sandbox::Spawner;
use tale_sandbox::admission::{HostReading, Memory};
use tale_sandbox::backend::{
    Backend, BackendError, Compute, ComputeState, Deletion, ImageState, Inventory, Launch, LaunchError, Which,
    Workspace,
};
use tale_sandbox::daemon::{Claim, DaemonError, Daemons, Health, Target};
use tale_sandbox::profile::GIB;
use tale_sandbox::spawner::{Host, Order, Rules};
use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::names::{Generation, OrganizationId, SessionId};
use tokio::time::Instant;

/// Wall time that can jump; its pace is tokio's paused time.
#[derive(Debug)]
pub struct JumpClock {
    begun: Instant,
    offset_ms: AtomicI64,
}

impl JumpClock {
    pub fn jump(&self, ms: i64) {
        self.offset_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for JumpClock {
    fn now(&self) -> DateTime<Utc> {
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap();
        DateTime::from_timestamp_millis(1_800_000_000_000 + elapsed + self.offset_ms.load(Ordering::SeqCst)).unwrap()
    }
}

/// How often things go wrong, of a thousand calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub refused: u32,
    pub answer_lost: u32,
    pub late: u32,
}

#[derive(Debug)]
pub struct Guest {
    pub compute: Compute,
    pub generation: u64,
    pub released: bool,
    pub reclaiming: bool,
    pub pinned: bool,
    pub live_execs: u32,
    pub last_activity: Instant,
    pub frozen: bool,
    /// Someone asked for the end of the session, files included.
    pub condemned: bool,
    pub abandoned: bool,
}

#[derive(Debug)]
struct Ground {
    guests: BTreeMap<SessionId, Guest>,
    /// Sessions with a container that was made and never started.
    strays: BTreeMap<SessionId, Compute>,
    files: BTreeMap<SessionId, u64>,
    may_discard: HashSet<SessionId>,
    next: u64,
    rng: StdRng,
    faults: Faults,
    broken: Vec<String>,
    memory: Option<Memory>,
    pressure: Option<f64>,
    disk_short: bool,
    most: usize,
}

/// The host with everything on it. Processes come and go; this stays.
#[derive(Debug)]
pub struct World {
    ground: Mutex<Ground>,
    pub clock: Arc<JumpClock>,
    capacity: u32,
}

/// What one spawner process holds of the world; when the process is killed, nothing answers it any more.
pub struct Process {
    world: Arc<World>,
    dead: Arc<AtomicBool>,
}

impl World {
    pub fn new(seed: u64, capacity: u32) -> Arc<Self> {
        let ground = Ground {
            guests: BTreeMap::new(),
            strays: BTreeMap::new(),
            files: BTreeMap::new(),
            may_discard: HashSet::new(),
            next: 0,
            rng: StdRng::seed_from_u64(seed),
            faults: Faults::default(),
            broken: Vec::new(),
            memory: None,
            pressure: None,
            disk_short: false,
            most: 0,
        };
        let clock = Arc::new(JumpClock { begun: Instant::now(), offset_ms: AtomicI64::new(0) });
        Arc::new(Self { ground: Mutex::new(ground), clock, capacity })
    }

    fn ground(&self) -> MutexGuard<'_, Ground> {
        self.ground.lock().unwrap()
    }

    /// A spawner process, and the switch that kills it.
    pub fn spawner(self: &Arc<Self>) -> (Spawner, Arc<AtomicBool>) {
        let dead = Arc::new(AtomicBool::new(false));
        let part = || Arc::new(Process { world: Arc::clone(self), dead: Arc::clone(&dead) });
        let rules = Rules {
            max_lifetime: Duration::from_secs(86_400),
            max_idle: Duration::from_secs(1_800),
            released_idle: Duration::from_secs(300),
            create_timeout: Duration::from_secs(180),
            max_linger: Duration::from_secs(1_800),
            capacity: self.capacity,
            memory_reserve: GIB,
            pressure_limit: Some(60.0),
        };
        (Spawner::new(part(), part(), part(), Arc::clone(&self.clock) as Arc<dyn Clock>, rules), dead)
    }

    pub fn set_faults(&self, faults: Faults) {
        self.ground().faults = faults;
    }

    pub fn set_memory(&self, available: u64, total: u64) {
        self.ground().memory = Some(Memory { available, total });
    }

    pub fn set_pressure(&self, percent: f64) {
        self.ground().pressure = Some(percent);
    }

    pub fn set_disk_short(&self, short: bool) {
        self.ground().disk_short = short;
    }

    pub fn guest<T>(&self, session: &SessionId, look: impl FnOnce(&mut Guest) -> T) -> Option<T> {
        self.ground().guests.get_mut(session).map(look)
    }

    pub fn running(&self) -> Vec<SessionId> {
        let mut running: Vec<_> = self.ground().guests.keys().cloned().collect();
        running.sort();
        running
    }

    pub fn most_running(&self) -> usize {
        self.ground().most
    }

    pub fn strays(&self) -> usize {
        self.ground().strays.len()
    }

    pub fn files(&self, session: &SessionId) -> Option<u64> {
        self.ground().files.get(session).copied()
    }

    pub fn all_files(&self) -> BTreeMap<SessionId, u64> {
        self.ground().files.clone()
    }

    /// A person asked for the end of the session with its files.
    pub fn condemn(&self, session: &SessionId) {
        let mut ground = self.ground();
        ground.may_discard.insert(session.clone());
        if let Some(guest) = ground.guests.get_mut(session) {
            guest.condemned = true;
        }
    }

    pub fn was_condemned(&self, session: &SessionId) -> bool {
        self.ground().may_discard.contains(session)
    }

    /// What was broken of the promises.
    pub fn broken(&self) -> Vec<String> {
        self.ground().broken.clone()
    }

    pub fn chance(&self, of_thousand: u32) -> bool {
        self.ground().rng.random_range(0..1_000) < of_thousand
    }

    pub fn pick(&self, below: usize) -> usize {
        self.ground().rng.random_range(0..below)
    }
}

pub fn session(number: usize) -> SessionId {
    SessionId::new(format!("s{number}")).unwrap()
}

pub fn order(number: usize) -> Order {
    Order {
        session: session(number),
        org: OrganizationId::new("acme").unwrap(),
        profile: Profile::Agent,
        ttl: None,
        idle_timeout: None,
        env: BTreeMap::new(),
    }
}

impl Process {
    /// Some time passes, something may go wrong before the effect, after it, or it comes later than its answer.
    async fn call<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&mut Ground) -> T + Send + 'static,
    ) -> Result<T, String> {
        self.call_or_late(effect, true).await
    }

    async fn call_or_late<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&mut Ground) -> T + Send + 'static,
        can_be_late: bool,
    ) -> Result<T, String> {
        let wait = Duration::from_millis(self.world.ground().rng.random_range(0..60));
        tokio::time::sleep(wait).await;
        self.breathe().await;
        let (refused, lost, late) = {
            let mut ground = self.world.ground();
            let faults = ground.faults;
            let mut roll = |share: u32| ground.rng.random_range(0..1_000) < share;
            (roll(faults.refused), roll(faults.answer_lost), roll(faults.late))
        };
        if refused {
            return Err("refused".to_owned());
        }
        if late && can_be_late {
            let world = Arc::clone(&self.world);
            // The request has been sent: that its sender dies changes nothing.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                effect(&mut world.ground());
            });
            tokio::time::sleep(Duration::from_secs(2)).await;
            return Err("no answer".to_owned());
        }
        let done = effect(&mut self.world.ground());
        if lost {
            tokio::time::sleep(Duration::from_secs(2)).await;
            return Err("no answer".to_owned());
        }
        self.breathe().await;
        Ok(done)
    }

    /// A dead process goes no further.
    async fn breathe(&self) {
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    async fn guest<T: Send + 'static>(
        &self,
        target: &Target,
        effect: impl FnOnce(&mut Guest) -> Result<T, DaemonError> + Send + 'static,
    ) -> Result<T, DaemonError> {
        let target = target.clone();
        let answer = self.call(move |ground| {
            let guest = ground.guests.get_mut(&target.session);
            let guest = guest.filter(|guest| guest.compute.created_at_ms == target.incarnation && !guest.frozen);
            guest.map_or_else(|| Err(DaemonError::Unreachable("connection refused".to_owned())), effect)
        });
        answer.await.unwrap_or_else(|why| Err(DaemonError::Unreachable(why)))
    }
}

impl Host for Process {
    fn reading(&self) -> HostReading {
        let ground = self.world.ground();
        let (memory, cpu_pressure, disk_short) = (ground.memory, ground.pressure, ground.disk_short);
        HostReading { memory, cpu_pressure, disk_short, disk_critical: false }
    }
}

fn lost(why: String) -> BackendError {
    BackendError::Unreachable(why)
}

impl Ground {
    fn start(&mut self, launch: &Launch) -> Result<Compute, LaunchError> {
        if self.guests.contains_key(&launch.session) || self.strays.contains_key(&launch.session) {
            return Err(LaunchError::Exists);
        }
        self.next += 1;
        let number = self.next;
        self.files.entry(launch.session.clone()).or_insert(number);
        let compute = Compute {
            session: launch.session.clone(),
            org: launch.org.clone(),
            profile: launch.profile,
            inner_docker: false,
            handle: format!("c{number}"),
            created_at_ms: launch.created_at_ms,
            ttl: launch.ttl,
            idle_timeout: launch.idle_timeout,
            state: ComputeState::Running,
            address: Some(SocketAddr::from(([10, 0, 0, 1], 8_200))),
            pinned: false,
        };
        let guest = Guest {
            compute: compute.clone(),
            generation: 1,
            released: false,
            reclaiming: false,
            pinned: false,
            live_execs: 0,
            last_activity: Instant::now(),
            frozen: false,
            condemned: false,
            abandoned: false,
        };
        self.guests.insert(launch.session.clone(), guest);
        Ok(compute)
    }

    fn count_running(&mut self, capacity: u32) {
        self.most = self.most.max(self.guests.len());
        if self.guests.len() > capacity as usize {
            self.broken.push(format!("{} sessions run, {capacity} may", self.guests.len()));
        }
    }

    fn remove(&mut self, session: &SessionId, which: &Which, now_ms: i64) {
        let fits = |compute: &Compute| match which {
            Which::Handle(handle) => compute.handle == *handle,
            Which::Incarnation(created) => compute.created_at_ms == *created,
            Which::Any => true,
        };
        if self.strays.get(session).is_some_and(fits) {
            self.strays.remove(session);
        }
        if !self.guests.get(session).is_some_and(|guest| fits(&guest.compute)) {
            return;
        }
        if let Some(guest) = self.guests.remove(session) {
            let old = now_ms - guest.compute.created_at_ms >= 86_400_000;
            let allowed = guest.reclaiming || guest.condemned || guest.frozen || guest.abandoned || old;
            if !allowed {
                self.broken.push(format!("{session} was stopped though it had not agreed"));
            }
            if guest.reclaiming && guest.live_execs > 0 {
                self.broken.push(format!("{session} was stopped while a command ran"));
            }
        }
    }
}

#[async_trait]
impl Backend for Process {
    async fn list(&self) -> Result<Inventory, BackendError> {
        let listed = self.call(|ground| {
            let running = ground.guests.values().map(|guest| Compute { pinned: guest.pinned, ..guest.compute.clone() });
            Inventory { computes: running.chain(ground.strays.values().cloned()).collect(), unnamed: 0 }
        });
        listed.await.map_err(lost)
    }

    async fn find(&self, session: &SessionId) -> Result<Option<Compute>, BackendError> {
        let session = session.clone();
        let found = self.call(move |ground| {
            let running = ground.guests.get(&session);
            let running = running.map(|guest| Compute { pinned: guest.pinned, ..guest.compute.clone() });
            running.or_else(|| ground.strays.get(&session).cloned())
        });
        found.await.map_err(lost)
    }

    async fn launch(&self, launch: &Launch) -> Result<Compute, LaunchError> {
        let (order, capacity) = (launch.clone(), self.world.capacity);
        let is_late = {
            let mut ground = self.world.ground();
            let share = ground.faults.late;
            ground.rng.random_range(0..1_000) < share
        };
        if is_late {
            // The engine makes the container after nobody waits for it any more, and nobody starts it.
            let world = Arc::clone(&self.world);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(40)).await;
                let mut ground = world.ground();
                if let Ok(compute) = ground.start(&order) {
                    ground.guests.remove(&order.session);
                    let compute = Compute { state: ComputeState::Starting, ..compute };
                    ground.strays.insert(order.session.clone(), compute);
                }
            });
            tokio::time::sleep(Duration::from_secs(30)).await;
            return Err(lost("no answer".to_owned()).into());
        }
        // A start that is given up half-way leaves compute that nobody holds.
        let start = move |ground: &mut Ground| {
            let started = ground.start(&order);
            ground.count_running(capacity);
            if let (Ok(_), Some(guest)) = (&started, ground.guests.get_mut(&order.session)) {
                guest.abandoned = true;
            }
            started
        };
        self.call_or_late(start, false).await.map_err(|why| LaunchError::Backend(lost(why)))?
    }

    async fn remove(&self, session: &SessionId, which: &Which) -> Result<(), BackendError> {
        let (session, now_ms) = (session.clone(), self.world.clock.now_ms());
        // As with an engine: what is removed is named by its own identity, however it was found.
        let which = {
            let ground = self.world.ground();
            let running = ground.guests.get(&session).map(|guest| &guest.compute);
            match running.or_else(|| ground.strays.get(&session)) {
                Some(found) if *which == Which::Any || *which == Which::Incarnation(found.created_at_ms) => {
                    Which::Handle(found.handle.clone())
                }
                _ => which.clone(),
            }
        };
        self.call(move |ground| ground.remove(&session, &which, now_ms)).await.map_err(lost)
    }

    async fn set_pin(&self, _: &SessionId, _: i64, _: bool) -> Result<(), BackendError> {
        self.call(|_| ()).await.map_err(lost)
    }

    async fn last_words(&self, _: &str) -> Option<String> {
        None
    }

    fn image(&self) -> ImageState {
        ImageState::Ready
    }

    async fn discard_workspace(&self, session: &SessionId) -> Result<bool, BackendError> {
        let session = session.clone();
        let discard = move |ground: &mut Ground| {
            if !ground.may_discard.contains(&session) {
                ground.broken.push(format!("the files of {session} were taken, and nobody had asked for that"));
            }
            if ground.guests.contains_key(&session) {
                ground.broken.push(format!("the files of {session} were taken while it ran"));
            }
            ground.files.remove(&session).is_some()
        };
        self.call_or_late(discard, false).await.map_err(lost)
    }

    async fn deletion(&self, _: &SessionId, _: bool) -> Result<Deletion, BackendError> {
        self.call(|_| Deletion::Done).await.map_err(lost)
    }

    async fn owner(&self, _: &SessionId) -> Result<Option<OrganizationId>, BackendError> {
        Ok(None)
    }

    async fn workspaces(&self) -> Result<Vec<Workspace>, BackendError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Daemons for Process {
    async fn health(&self, target: &Target) -> Result<Health, DaemonError> {
        let now_ms = self.world.clock.now_ms();
        let health = self.guest(target, move |guest| {
            let idle = guest.last_activity.elapsed();
            Ok(Health {
                idle,
                last_activity_at_ms: now_ms - i64::try_from(idle.as_millis()).unwrap(),
                live_execs: guest.live_execs,
                active_operations: 0,
                generation: Generation::new(guest.generation.to_string()).unwrap(),
                released: guest.released,
                pinned: guest.pinned,
                reclaiming: guest.reclaiming,
                can_be_claimed: true,
                inner_docker_used: false,
            })
        });
        health.await
    }

    async fn ready(&self, target: &Target) -> Result<(), DaemonError> {
        // From here on its start has succeeded, unless its creator gives it up.
        self.guest(target, |guest| {
            guest.last_activity = Instant::now();
            Ok(())
        })
        .await
    }

    async fn acquire(&self, target: &Target) -> Result<Generation, DaemonError> {
        let acquired = self.guest(target, |guest| {
            if guest.reclaiming {
                return Err(DaemonError::Reclaiming);
            }
            guest.generation += 1;
            guest.released = false;
            guest.last_activity = Instant::now();
            Ok(Generation::new(guest.generation.to_string()).unwrap())
        });
        acquired.await
    }

    async fn ticket(&self, target: &Target) -> Result<Generation, DaemonError> {
        self.guest(target, |guest| Ok(Generation::new(guest.generation.to_string()).unwrap())).await
    }

    async fn release(&self, target: &Target, generation: &Generation) -> Result<bool, DaemonError> {
        let generation = generation.as_str().to_owned();
        let released = self.guest(target, move |guest| {
            let same = generation == guest.generation.to_string() && !guest.reclaiming;
            guest.released |= same;
            Ok(same)
        });
        released.await
    }

    async fn reclaim(&self, target: &Target, claim: &Claim) -> Result<bool, DaemonError> {
        let (claim, now_ms) = (claim.clone(), self.world.clock.now_ms());
        let claimed = self.guest(target, move |guest| {
            let idle_since_ms = now_ms - i64::try_from(guest.last_activity.elapsed().as_millis()).unwrap();
            let idle = claim.idle_before_ms.is_some_and(|before| idle_since_ms <= before);
            let same = claim.generation.as_str() == guest.generation.to_string();
            let may = same && !guest.pinned && guest.live_execs == 0 && (guest.released || idle);
            guest.reclaiming |= may;
            Ok(may)
        });
        claimed.await
    }

    async fn pin(&self, target: &Target, pinned: bool) -> Result<(), DaemonError> {
        self.guest(target, move |guest| {
            if guest.reclaiming {
                return Err(DaemonError::Reclaiming);
            }
            guest.pinned = pinned;
            Ok(())
        })
        .await
    }

    async fn set_env(&self, target: &Target, _: &BTreeMap<String, String>) -> Result<(), DaemonError> {
        self.guest(target, |_| Ok(())).await
    }
}
