//! The host that carries the sessions: its memory, its processors, its disks (6.3, 6.4 and 21 §9 of the specification).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::statvfs;
use tokio::time::Instant;

use crate::admission::{HostReading, Memory};
use crate::profile::GIB;
use crate::spawner::Host;

/// How long a look at memory and pressure counts.
const FRESH: Duration = Duration::from_secs(1);

/// Pause between two looks at the disks.
const DISKS: Duration = Duration::from_secs(5);

/// Pause between two reports of a disk that is nearly full.
const REPORT: Duration = Duration::from_secs(600);

/// Free space that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// By the size of the disk.
    Sized,
    /// This many bytes; zero = none.
    Fixed(u64),
}

/// Free space under which nothing starts, and under which something must go (SBX-159, SBX-160).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floors {
    /// For starts.
    pub floor: Floor,
    /// The critical tier.
    pub critical: Floor,
}

impl Floors {
    /// Bytes of both for a disk of `total` bytes.
    #[must_use]
    pub fn of(self, total: u64) -> (u64, u64) {
        let floor = match self.floor {
            Floor::Sized => (total / 20).clamp(2 * GIB, 20 * GIB),
            Floor::Fixed(bytes) => bytes,
        };
        let critical = match self.critical {
            Floor::Sized => (floor / 4).max(GIB),
            Floor::Fixed(bytes) => bytes,
        };
        (floor, critical.min(floor))
    }
}

/// What is known of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskState {
    /// Its free space is read.
    Ready,
    /// It is not.
    Unavailable,
    /// Nobody said where it is.
    Unconfigured,
}

/// Where the engine keeps its data, as far as this process can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataDisk {
    /// It cannot be seen, and nobody asked for it.
    Unseen,
    /// Here.
    At(PathBuf),
    /// The operator named a place that is not the engine's: nothing may start (SBX-161).
    Refuted,
}

/// Looks at the machine that this process runs on.
#[derive(Debug)]
pub struct LinuxHost {
    /// Whether the sessions run on this machine; else nothing of it is looked at but the workspaces' disk.
    is_local: Mutex<bool>,
    /// Whether memory decides about starts.
    judges_memory: bool,
    workspaces: PathBuf,
    data: Mutex<DataDisk>,
    floors: Floors,
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    at: Option<Instant>,
    reading: HostReading,
    disks: [Option<Space>; 2],
    cpu: Option<(Instant, Cpu)>,
    reported: Option<Instant>,
}

/// Bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All.
    pub total: u64,
    /// Free ones.
    pub free: u64,
    /// Below so many nothing starts.
    pub floor: u64,
    critical: u64,
}

impl Space {
    fn is_short(self) -> bool {
        self.free < self.floor
    }
}

/// Jiffies since the start of the machine.
#[derive(Debug, Clone, Copy)]
struct Cpu {
    busy: u64,
    all: u64,
}

impl LinuxHost {
    /// Looks at this machine, and at the disk of `workspaces`.
    #[must_use]
    pub fn new(workspaces: &Path, floors: Floors, judges_memory: bool) -> Arc<Self> {
        Arc::new(Self {
            is_local: Mutex::new(false),
            judges_memory,
            workspaces: workspaces.to_owned(),
            data: Mutex::new(DataDisk::Unseen),
            floors,
            cached: Mutex::default(),
        })
    }

    /// Says that the sessions run on this machine, or do not.
    pub fn set_local(&self, is_local: bool) {
        *self.is_local.lock().unwrap_or_else(PoisonError::into_inner) = is_local;
    }

    /// Whether they do.
    #[must_use]
    pub fn is_local(&self) -> bool {
        *self.is_local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where the engine keeps its data.
    pub fn set_data_disk(&self, disk: DataDisk) {
        *self.data.lock().unwrap_or_else(PoisonError::into_inner) = disk;
    }

    /// What is known of the workspaces' disk and of the engine's.
    #[must_use]
    pub fn disks(&self) -> (DiskState, DiskState) {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let state = |space: Option<Space>| if space.is_some() { DiskState::Ready } else { DiskState::Unavailable };
        (state(cached.disks[0]), state(cached.disks[1]))
    }

    /// The workspaces' disk and the engine's, as they were looked at last.
    #[must_use]
    pub fn spaces(&self) -> [Option<Space>; 2] {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).disks
    }

    /// Looks at the disks for as long as it runs. `report` is called with the root of the workspaces when one is nearly
    /// full.
    pub async fn watch_disks(self: Arc<Self>, report: impl Fn(&Path)) {
        loop {
            let host = Arc::clone(&self);
            // A disk that does not answer must hold up nothing else.
            let looked = tokio::task::spawn_blocking(move || host.look_at_disks()).await;
            if matches!(looked, Ok(true)) {
                report(&self.workspaces);
            }
            tokio::time::sleep(DISKS).await;
        }
    }

    /// Answers whether a nearly full disk is to be reported.
    fn look_at_disks(&self) -> bool {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let workspace = self.space(&self.workspaces);
        let (engine, refuted) = match data {
            DataDisk::Unseen => (None, false),
            DataDisk::At(path) => (self.space(&path), false),
            DataDisk::Refuted => (None, true),
        };
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let disks = [workspace, engine];
        let is_short = |disks: &[Option<Space>; 2]| disks.iter().flatten().any(|space| space.is_short());
        if is_short(&cached.disks) != is_short(&disks) {
            let short = is_short(&disks);
            tracing::warn!(event = "sandbox.disk", short, "free disk space crossed the floor of SANDBOX_MIN_FREE_DISK");
        }
        cached.disks = disks;
        cached.reading.disk_short = is_short(&disks) || refuted;
        cached.reading.disk_critical = disks.iter().flatten().any(|space| space.free < space.critical);
        let now = Instant::now();
        let due = cached.reported.is_none_or(|at| now - at >= REPORT) && cached.reading.disk_critical;
        if due {
            cached.reported = Some(now);
        }
        due
    }

    fn space(&self, path: &Path) -> Option<Space> {
        let stat = statvfs(path).ok()?;
        let (total, free) = (stat.f_blocks.saturating_mul(stat.f_frsize), stat.f_bavail.saturating_mul(stat.f_frsize));
        let (floor, critical) = self.floors.of(total);
        Some(Space { total, free, floor, critical })
    }

    /// Memory of the machine, where the sessions run on it.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        if !self.is_local() {
            return None;
        }
        meminfo(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    /// Processors in use, as a fraction of all of them between two looks. A first look, or one after a long pause,
    /// waits a second for the second one.
    pub async fn cpu_share(&self) -> Option<f64> {
        if !self.is_local() {
            return None;
        }
        let last = self.cached.lock().unwrap_or_else(PoisonError::into_inner).cpu;
        let usable = last.filter(|(at, _)| (FRESH..Duration::from_secs(30)).contains(&at.elapsed()));
        let before = match usable {
            Some((_, before)) => before,
            None => {
                let before = cpu()?;
                tokio::time::sleep(FRESH).await;
                before
            }
        };
        let after = cpu()?;
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).cpu = Some((Instant::now(), after));
        let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
        Some(after.busy.saturating_sub(before.busy) as f64 / all as f64)
    }
}

impl Host for LinuxHost {
    fn reading(&self) -> HostReading {
        let is_local = self.is_local();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.at.is_none_or(|at| at.elapsed() >= FRESH) {
            cached.at = Some(Instant::now());
            let memory = if is_local && self.judges_memory { fs::read_to_string("/proc/meminfo").ok() } else { None };
            cached.reading.memory = memory.as_deref().and_then(meminfo);
            let pressure = if is_local { fs::read_to_string("/proc/pressure/cpu").ok() } else { None };
            cached.reading.cpu_pressure = pressure.as_deref().and_then(pressure_of);
        }
        cached.reading
    }

    fn fresh_reading(&self) -> HostReading {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).at = None;
        self.reading()
    }
}

/// Memory of this machine in bytes.
#[must_use]
pub fn total_memory() -> Option<u64> {
    meminfo(&fs::read_to_string("/proc/meminfo").ok()?).map(|memory| memory.total)
}

/// Whether the kernel tells its processor pressure.
#[must_use]
pub fn has_pressure() -> bool {
    fs::read_to_string("/proc/pressure/cpu").ok().as_deref().and_then(pressure_of).is_some()
}

fn meminfo(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1_024)
    };
    Some(Memory { available: field("MemAvailable:")?, total: field("MemTotal:")? })
}

fn pressure_of(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|part| part.strip_prefix("avg10="))?.parse().ok()
}

fn cpu() -> Option<Cpu> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let all: u64 = fields.iter().take(8).sum();
    let idle = fields.get(3)? + fields.get(4)?;
    Some(Cpu { busy: all.saturating_sub(idle), all })
}

/// Where a place of this process comes from on the host: `source` of its mount.
fn mount_of(mounts: &str, place: &str) -> Option<(String, bool)> {
    let line = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some(place))?;
    let fields: Vec<&str> = line.split(' ').collect();
    let read_only = fields.get(5)?.split(',').any(|option| option == "ro");
    Some(((*fields.get(3)?).to_owned(), read_only))
}

/// Where the engine's data are for this process: a place that the operator named, else the file `/etc/hostname` that
/// the engine puts into every container, else the directory itself for a process that is in none.
#[must_use]
pub fn find_data_disk(engine_root: &str, named: Option<(&str, &Path)>, is_local: bool) -> DataDisk {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some((root, place)) = named {
        let is_mounted = place.to_str().and_then(|place| mount_of(&mounts, place));
        let fits = root == engine_root && is_mounted.is_some_and(|(_, read_only)| read_only);
        return if fits { DataDisk::At(place.to_owned()) } else { DataDisk::Refuted };
    }
    if let Some((source, _)) = mount_of(&mounts, "/etc/hostname") {
        // The source is relative to its file system, of which the engine's root may be only a part.
        let containers = format!("{}/containers/", engine_root.trim_end_matches('/'));
        let last = engine_root.rsplit('/').next().unwrap_or_default();
        let is_engines = source.contains(&format!("{last}/containers/")) || source.starts_with(&containers);
        return if is_engines { DataDisk::At(PathBuf::from("/etc/hostname")) } else { DataDisk::Unseen };
    }
    let root = PathBuf::from(engine_root);
    if is_local && root.is_dir() { DataDisk::At(root) } else { DataDisk::Unseen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_follow_the_disk_and_the_critical_tier_the_floor() {
        let sized = Floors { floor: Floor::Sized, critical: Floor::Sized };
        assert_eq!(sized.of(10 * GIB), (2 * GIB, GIB));
        assert_eq!(sized.of(100 * GIB), (5 * GIB, 5 * GIB / 4));
        assert_eq!(sized.of(4_096 * GIB), (20 * GIB, 5 * GIB));
        assert_eq!(Floors { floor: Floor::Fixed(0), critical: Floor::Sized }.of(GIB), (0, 0));
        assert_eq!(Floors { floor: Floor::Fixed(GIB), critical: Floor::Fixed(9 * GIB) }.of(GIB), (GIB, GIB));
    }

    #[test]
    fn the_kernels_files_are_read() {
        let memory = meminfo("MemTotal:       16303856 kB\nMemFree: 1 kB\nMemAvailable:    8151928 kB\n").unwrap();
        assert_eq!((memory.total, memory.available), (16_303_856 * 1_024, 8_151_928 * 1_024));
        assert_eq!(pressure_of("some avg10=61.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00"), Some(61.5));
        assert_eq!(pressure_of(""), None);
        let mounts = "1 2 8:1 /var/lib/docker/containers/ab/hostname /etc/hostname rw,relatime - ext4 /dev/sda1 rw\n\
                      3 2 8:1 /data /d ro,relatime - ext4 /dev/sda1 rw\n";
        assert_eq!(mount_of(mounts, "/d"), Some(("/data".to_owned(), true)));
        assert!(!mount_of(mounts, "/etc/hostname").unwrap().1);
        assert_eq!(mount_of(mounts, "/none"), None);
    }
}
