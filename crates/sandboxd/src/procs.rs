//! Processes below another one, as `/proc` shows them, and signals to them that cannot hit a stranger.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal};

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// As `/proc` has it: `R`, `S`, `Z`, ….
    pub state: u8,
    /// Ticks of processor time: its own and that of children it waited for.
    pub ticks: u64,
    /// When it was started, in ticks since boot. With the number it names the process for good.
    pub started: u64,
}

impl Process {
    fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        // The name is in parentheses and may have any byte in it.
        let after = stat.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(stat.get(after + 2..)?).ok()?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            state: *fields.first()?.as_bytes().first()?,
            ticks: number(11)? + number(12)? + number(13)? + number(14)?,
            started: number(19)?,
        })
    }

    /// Sends a signal, unless the process is not the same any more. Says whether it arrived: another user's
    /// takes none.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        // A process that ended in between leaves a descriptor of nobody, or of its successor.
        let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
            && rustix::process::pidfd_send_signal(held, signal).is_ok()
    }
}

/// When a living process was started, in ticks since boot. `None` when there is none of that number.
#[must_use]
pub fn started(pid: i32) -> Option<u64> {
    Process::read(pid).filter(|process| !process.is_over()).map(|process| process.started)
}

fn table() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}

/// All living processes below `root`. Empty when `/proc` cannot be read.
#[must_use]
pub fn below(root: i32) -> Vec<Process> {
    below_in(root, &table())
}

fn below_in(root: i32, table: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in table {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            if !child.is_over() {
                found.push(*child);
            }
        }
    }
    found
}

/// Ticks of processor time of `root`'s children that were waited for and of everything below it.
/// `None` when `/proc` cannot be read.
#[must_use]
pub fn ticks_below(root: i32) -> Option<u64> {
    let table = table();
    let own = table.iter().find(|process| process.pid == root)?;
    let waited = fs::read(format!("/proc/{root}/stat")).ok()?;
    let after = waited.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(waited.get(after + 2..)?).ok()?.split_ascii_whitespace().collect();
    let reaped: u64 = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    Some(below_in(own.pid, &table).iter().map(|process| process.ticks).sum::<u64>() + reaped)
}

/// Ends everything below `root` at once. Whoever starts processes faster than they can be ended is
/// stopped first: what is stopped starts nothing, and its number stays taken.
pub fn kill_below(root: i32, only: impl Fn(&Process) -> bool) {
    const PASSES: usize = 50;
    for _ in 0..PASSES {
        let running: Vec<Process> =
            below(root).into_iter().filter(|process| only(process) && !matches!(process.state, b'T' | b't')).collect();
        let stopped = running.iter().filter(|process| process.signal(Signal::STOP)).count();
        if stopped == 0 {
            break;
        }
    }
    for process in below(root).iter().filter(|process| only(process)) {
        process.signal(Signal::KILL);
    }
}

/// Processes below `root` that carry `exec_id` in their environment, for an exec without a supervisor.
#[must_use]
pub fn carrying(root: i32, exec_id: &str) -> Vec<Process> {
    let mark = format!("{}={exec_id}", tale_sandbox_wire::exec::EXEC_ID_ENV).into_bytes();
    let carries = |process: &Process| {
        fs::read(format!("/proc/{}/environ", process.pid))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
    };
    below(root).into_iter().filter(carries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pretend_to_be_fields() {
        let stat = b"7 (a) R 1 (x) S 3 4 5 0 -1 0 0 0 0 0 10 20 30 40 20 0 1 0 999 0 0";
        let process = Process::parse(7, stat).unwrap();
        assert_eq!((process.parent, process.group, process.state), (3, 4, b'S'));
        assert_eq!((process.ticks, process.started), (100, 999));
        assert!(Process::parse(7, b"7 (a) R").is_none());
    }

    #[test]
    fn what_is_below_is_found_over_generations() {
        let process = |pid, parent, state| Process { pid, parent, group: pid, state, ticks: 0, started: 0 };
        let table = [process(2, 1, b'S'), process(3, 2, b'Z'), process(4, 3, b'R'), process(5, 1, b'S')];
        let mut found: Vec<i32> = below_in(2, &table).iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [4], "the dead are passed over, their children are not");
    }
}
