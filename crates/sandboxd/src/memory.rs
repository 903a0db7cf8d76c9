//! The session's memory as its control group counts it, in either version of control groups.

use std::fs;
use std::path::{Path, PathBuf};

use tale_sandbox_wire::daemon::Memory;

/// Where the counters are. Found once: a session's group does not change.
#[derive(Debug, Clone)]
pub struct Counters {
    dir: PathBuf,
    names: Names,
}

#[derive(Debug, Clone, Copy)]
struct Names {
    current: &'static str,
    limit: &'static str,
    peak: &'static str,
    inactive: &'static str,
    kills: &'static str,
}

const V2: Names = Names {
    current: "memory.current",
    limit: "memory.max",
    peak: "memory.peak",
    inactive: "inactive_file",
    kills: "memory.events",
};
const V1: Names = Names {
    current: "memory.usage_in_bytes",
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
    inactive: "total_inactive_file",
    kills: "memory.oom_control",
};

/// An unlimited group of the first version has the largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

impl Counters {
    /// Finds them from `/proc/self/cgroup`. `None` where memory is not counted.
    #[must_use]
    pub fn find() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::find_in(Path::new("/sys/fs/cgroup"), &groups)
    }

    fn find_in(root: &Path, groups: &str) -> Option<Self> {
        let mut lines = groups.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?.trim_start_matches('/')))
        });
        let (names, base, path) =
            lines.clone().find(|(controllers, _)| controllers.split(',').any(|c| c == "memory")).map_or_else(
                || lines.find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| (V2, root.to_owned(), path)),
                |(_, path)| Some((V1, root.join("memory"), path)),
            )?;
        // Inside a container the path is often that of the host, and the mount shows the group itself.
        [base.join(path), base].into_iter().find(|dir| dir.join(names.current).is_file()).map(|dir| Self { dir, names })
    }

    fn number(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.dir.join(name)).ok()?.trim().parse().ok()
    }

    fn field(&self, file: &str, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.dir.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    /// All of it, as it is now.
    #[must_use]
    pub fn read(&self) -> Memory {
        let current = self.number(self.names.current);
        let inactive = self.field("memory.stat", self.names.inactive).unwrap_or(0);
        Memory {
            current_bytes: current,
            working_set_bytes: current.map(|bytes| bytes.saturating_sub(inactive)),
            limit_bytes: self.number(self.names.limit).filter(|bytes| *bytes < UNLIMITED),
            peak_bytes: self.peak(),
            oom_kills: self.kills(),
        }
    }

    /// Processes the kernel ended for memory so far.
    #[must_use]
    pub fn kills(&self) -> Option<u64> {
        self.field(self.names.kills, "oom_kill")
    }

    /// Most memory there ever was.
    #[must_use]
    pub fn peak(&self) -> Option<u64> {
        self.number(self.names.peak)
    }
}

/// Whether the working set has reached `percent` of the limit. What cannot be read is never too much.
#[must_use]
pub fn is_short(memory: &Memory, percent: u64) -> bool {
    match (memory.working_set_bytes, memory.limit_bytes) {
        (Some(used), Some(limit)) if percent > 0 => u128::from(used) * 100 >= u128::from(limit) * u128::from(percent),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(root: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(root).unwrap();
        for (name, text) in files {
            fs::write(root.join(name), text).unwrap();
        }
    }

    #[test]
    fn both_versions_are_read_and_the_path_of_the_host_is_survived() {
        let dir = tempfile::tempdir().unwrap();
        group(
            dir.path(),
            &[
                ("memory.current", "1000\n"),
                ("memory.max", "max\n"),
                ("memory.stat", "anon 1\ninactive_file 300\n"),
                ("memory.events", "low 0\noom 2\noom_kill 1\n"),
            ],
        );
        let memory = Counters::find_in(dir.path(), "0::/../../host/path\n").unwrap().read();
        assert_eq!(
            memory,
            Memory {
                current_bytes: Some(1000),
                working_set_bytes: Some(700),
                limit_bytes: None,
                peak_bytes: None,
                oom_kills: Some(1)
            }
        );
        let dir = tempfile::tempdir().unwrap();
        group(
            &dir.path().join("memory/a/b"),
            &[
                ("memory.usage_in_bytes", "1000\n"),
                ("memory.limit_in_bytes", "1100\n"),
                ("memory.max_usage_in_bytes", "1050\n"),
                ("memory.stat", "inactive_file 1\ntotal_inactive_file 10\n"),
                ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            ],
        );
        let memory = Counters::find_in(dir.path(), "9:cpu:/\n4:memory:/a/b\n0::/\n").unwrap().read();
        assert_eq!(memory.working_set_bytes, Some(990));
        assert_eq!((memory.limit_bytes, memory.oom_kills), (Some(1100), Some(3)));
        assert!(is_short(&memory, 90) && !is_short(&memory, 91) && !is_short(&memory, 0));
        assert!(!is_short(&Memory::default(), 90));
        assert!(Counters::find_in(&dir.path().join("none"), "0::/\n").is_none());
    }
}
