//! What the system knows about a process.

/// A process and everything below it.
pub(crate) fn tree(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(one) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(parent) = stat(one).and_then(|fields| fields[1].parse::<u32>().ok()) {
            parents.push((parent, one));
        }
    }
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(of, _)| *of == parent).map(|(_, one)| *one));
        at += 1;
    }
    found
}

/// The fields of stat(5) from the third on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit(')').next()?.split_whitespace().map(str::to_owned).collect())
}

/// User and system time in milliseconds. Ticks are hundredths of a second.
pub(crate) fn cpu_ms(pids: &[u32]) -> f64 {
    let of = |pid: &u32| {
        let fields = stat(*pid)?;
        Some((fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?) * 10.0)
    };
    pids.iter().filter_map(of).sum()
}

/// Resident and private memory in MiB.
pub(crate) fn memory(pid: u32) -> (f64, f64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or_default() / 1024.0
    };
    (of("Rss:"), of("Private_Clean:") + of("Private_Dirty:"))
}

/// What is running besides: the load average of the last minute.
pub(crate) fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or_default().to_owned()
}
