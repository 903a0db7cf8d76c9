//! Whether IPv6 is on in the network of this process.

use std::path::Path;

/// Where the kernel keeps the switches of all interfaces.
const SWITCHES: &str = "/proc/sys/net/ipv6/conf";

/// What protects IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ipv6 {
    /// No interface has it.
    Off,
    /// The packet filter covers it.
    Filtered,
}

impl Ipv6 {
    /// For the log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Filtered => "filtered",
        }
    }
}

/// Whether no interface has IPv6, nor will one that is attached later. `all` alone proves nothing: an
/// interface can be switched on by itself.
pub(super) fn is_off() -> bool {
    first_on(Path::new(SWITCHES)).is_ok_and(|on| on.is_none())
}

/// The first switch that leaves IPv6 on.
fn first_on(switches: &Path) -> std::io::Result<Option<String>> {
    if !switches.exists() {
        // A kernel without IPv6.
        return Ok(None);
    }
    for entry in std::fs::read_dir(switches)? {
        let entry = entry?;
        let state = std::fs::read_to_string(entry.path().join("disable_ipv6"))?;
        if state.trim() != "1" {
            return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

/// Switches IPv6 off everywhere, and reads back that it is.
pub(super) fn switch_off() -> Result<(), String> {
    switch_off_under(Path::new(SWITCHES))
}

fn switch_off_under(switches: &Path) -> Result<(), String> {
    let describe = |error: std::io::Error| error.to_string();
    let Ok(entries) = std::fs::read_dir(switches) else { return Ok(()) };
    // What cannot be written may be off already; reading back tells.
    let mut failed = None;
    for entry in entries {
        let switch = entry.map_err(describe)?.path().join("disable_ipv6");
        if let Err(error) = std::fs::write(&switch, "1") {
            failed.get_or_insert(error);
        }
    }
    match (first_on(switches).map_err(describe)?, failed) {
        (None, _) => Ok(()),
        (Some(interface), Some(error)) => Err(format!("{interface} is on, and writing its setting failed: {error}")),
        (Some(interface), None) => Err(format!("{interface} is on again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_has_to_be_off() {
        let folder = tempfile::tempdir().unwrap();
        for (interface, state) in [("all", "1\n"), ("default", "1\n"), ("eth0", "1\n"), ("eth1", "0\n")] {
            std::fs::create_dir(folder.path().join(interface)).unwrap();
            std::fs::write(folder.path().join(interface).join("disable_ipv6"), state).unwrap();
        }
        assert_eq!(first_on(folder.path()).unwrap().as_deref(), Some("eth1"));
        switch_off_under(folder.path()).unwrap();
        assert_eq!(first_on(folder.path()).unwrap(), None);
        assert!(switch_off_under(&folder.path().join("none")).is_ok());
    }
}
