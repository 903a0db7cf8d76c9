//! The process as the kernel sees it.

use std::io;

use rustix::process::{Resource, getrlimit};

/// What the kernel says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub cpu_seconds: f64,
    pub threads: u64,
    pub open_files: u64,
    pub most_files: Option<u64>,
    pub started: f64,
}

impl Process {
    pub(super) fn look() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        // The second field is the program's name in parentheses, whatever that is.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split_ascii_whitespace().collect();
        let field = |number: usize| {
            let text = fields.get(number - 3).ok_or(io::ErrorKind::InvalidData)?;
            text.parse::<u64>().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
        };
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let boot = std::fs::read_to_string("/proc/stat")?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")).and_then(|text| text.trim().parse().ok());
        let boot: f64 = boot.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            resident_bytes: field(24)? * rustix::param::page_size() as u64,
            virtual_bytes: field(23)?,
            cpu_seconds: (field(14)? + field(15)?) as f64 / ticks,
            threads: field(20)?,
            open_files: open_files()?,
            most_files: getrlimit(Resource::Nofile).current,
            started: boot + field(22)? as f64 / ticks,
        })
    }
}

/// Newer kernels say the number as the directory's size; in older ones it is counted.
fn open_files() -> io::Result<u64> {
    let told = std::fs::metadata("/proc/self/fd")?.len();
    Ok(if told > 0 { told } else { std::fs::read_dir("/proc/self/fd")?.count() as u64 })
}
