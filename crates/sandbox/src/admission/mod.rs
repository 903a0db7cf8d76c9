//! Who may start (section 6 of the specification): one pure function over one snapshot.
//!
//! The caller takes the snapshot and acts on the verdict under one lock, so two starts never see the same
//! free place. A verdict reads nothing but its arguments. It costs one walk over the waiting line, which has at most
//! 10,000 places, and one over the sessions, of which there are at most 256.

mod line;
mod reclaim;

use std::time::Duration;

use tokio::time::Instant;

pub use line::{Ahead, Line, Need, Place};
pub use reclaim::{Candidate, MOST_ASKED, NOTHING_FOUND, UNANSWERED, UNWILLING, order};

use tale_sandbox_wire::names::SessionId;

/// How long a started session counts beside what it already uses.
pub const YOUNG: Duration = Duration::from_secs(90);

/// Pause between two starts under processor pressure.
const PRESSED_PAUSE: Duration = Duration::from_secs(10);

/// Memory of the host in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// What programs can still take.
    pub available: u64,
    /// All of it.
    pub total: u64,
}

/// What a look at the host said. What could not be read is `None` and refuses nothing, except for disks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostReading {
    /// Memory; `None` also where the check is off.
    pub memory: Option<Memory>,
    /// `some avg10` of the kernel's processor pressure, in percent.
    pub cpu_pressure: Option<f64>,
    /// Whether a disk is under its floor, or one that must be watched cannot be.
    pub disk_short: bool,
    /// Whether a disk is under its critical tier.
    pub disk_critical: bool,
}

/// Memory set aside for a session that does not use it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Bytes.
    pub bytes: u64,
    /// When it came up or got new work; `None` while it starts.
    pub since: Option<Instant>,
}

impl Reservation {
    /// What still counts of it: all while it starts, then less and less over [`YOUNG`].
    #[must_use]
    pub fn counted(self, now: Instant) -> u64 {
        let Some(since) = self.since else { return self.bytes };
        let left = YOUNG.saturating_sub(now.saturating_duration_since(since));
        let share = u128::from(self.bytes) * left.as_millis() / YOUNG.as_millis();
        u64::try_from(share).unwrap_or(self.bytes)
    }
}

/// What the decision rests on.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Sessions that may run or start at the same time.
    pub capacity: u32,
    /// Sessions that do.
    pub occupied: u32,
    /// The host.
    pub host: HostReading,
    /// Memory that must stay free, in bytes.
    pub reserve: u64,
    /// What reservations count for now, in bytes.
    pub reserved: u64,
    /// Pressure from which starts go one by one, in percent; `None` = never.
    pub pressure_limit: Option<f64>,
    /// When a session last started or got new work.
    pub last_start: Option<Instant>,
    /// Who waits.
    pub line: &'a Line,
}

/// What is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shortage {
    /// Space on a disk. No session is stopped for it: its files would stay.
    Disk,
    /// A slot of the capacity.
    Slot,
    /// Memory of the host.
    Memory,
    /// Processor time: the next start waits its ten seconds.
    Cpu,
}

impl Shortage {
    /// Whether the end of an idle session would help.
    #[must_use]
    pub fn is_helped_by_stopping(self) -> bool {
        matches!(self, Self::Slot | Self::Memory)
    }
}

/// Whether `session` may start now: disk, slot, memory, processor, in this order. Whoever stands before it in the
/// line keeps the slots and the memory that it waits for.
///
/// # Errors
/// The first [`Shortage`].
pub fn decide(snapshot: &Snapshot<'_>, session: &SessionId, need: Need, now: Instant) -> Result<(), Shortage> {
    let host = &snapshot.host;
    if host.disk_short {
        return Err(Shortage::Disk);
    }
    let fits = host.memory.map_or(u64::MAX, |memory| memory.total.saturating_sub(snapshot.reserve));
    let ahead = snapshot.line.ahead(session, fits);
    if need.slot {
        let wanted = snapshot.occupied.saturating_add(ahead.slots).saturating_add(1);
        if wanted > snapshot.capacity {
            return Err(Shortage::Slot);
        }
    }
    if let Some(memory) = host.memory {
        let spoken_for = [snapshot.reserved, ahead.memory, need.memory, snapshot.reserve];
        let spoken_for = spoken_for.into_iter().fold(0, u64::saturating_add);
        if memory.available < spoken_for {
            return Err(Shortage::Memory);
        }
    }
    if let (Some(pressure), Some(limit)) = (host.cpu_pressure, snapshot.pressure_limit)
        && pressure >= limit
    {
        let just_now = snapshot.last_start.is_some_and(|last| now.saturating_duration_since(last) < PRESSED_PAUSE);
        if just_now || ahead.waiters > 0 {
            return Err(Shortage::Cpu);
        }
    }
    Ok(())
}
