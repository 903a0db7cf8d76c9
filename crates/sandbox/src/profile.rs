//! What a session may use, by its profile (1.3 of the specification).

use tale_sandbox_wire::names::Profile;

/// Bytes of a MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes of a GiB.
pub const GIB: u64 = 1 << 30;

/// Limits of one session. They are ceilings, not reservations (SBX-11).
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// User and group of everything that runs.
    pub user: (u32, u32),
    /// Processors.
    pub cpus: f64,
    /// Processor weight under contention; the platform's services have 1024.
    pub cpu_shares: u32,
    /// Memory in bytes; there is no swap beside it.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Open files, soft and hard.
    pub open_files: (u64, u64),
    /// Largest file in bytes.
    pub file_size: u64,
    /// Size of `/tmp` in bytes.
    pub tmp: u64,
    /// Size of `/dev/shm` in bytes.
    pub shm: u64,
}

impl Limits {
    /// Limits of a profile where the operator set nothing.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Default => Self::of_default(),
            Profile::Agent | Profile::AgentLight => Self::of_agent(),
        }
    }

    /// Limits of [`Profile::Default`].
    #[must_use]
    pub const fn of_default() -> Self {
        Self {
            user: (65_534, 65_534),
            cpus: 1.0,
            cpu_shares: 128,
            memory: 1_500 * MIB,
            pids: 512,
            open_files: (1_024, 4_096),
            file_size: 100 * MIB,
            tmp: 128 * MIB,
            shm: 64 * MIB,
        }
    }

    /// Limits of agents where the operator set nothing.
    #[must_use]
    pub const fn of_agent() -> Self {
        Self {
            user: (10_001, 10_001),
            cpus: 2.0,
            cpu_shares: 256,
            memory: 4 * GIB,
            pids: 512,
            open_files: (4_096, 8_192),
            file_size: 512 * MIB,
            tmp: 512 * MIB,
            shm: 512 * MIB,
        }
    }
}

/// Memory that admission plans for a session: what it usually uses soon after its start, not its limit.
#[must_use]
pub const fn planned_memory(inner_docker: bool) -> u64 {
    if inner_docker { 3 * GIB / 2 } else { 512 * MIB }
}
