//! How many sessions a host carries (SBX-150).

use crate::profile::{GIB, MIB};

/// Capacity where nothing can be measured.
pub const UNMEASURED: u32 = 8;

/// Most sessions that a size is given to.
const MOST: u64 = 256;

/// Memory that stays free when the operator names none: a tenth of the host's, at least 1 GiB.
#[must_use]
pub fn default_reserve(total_memory: u64) -> u64 {
    (total_memory / 10).max(GIB)
}

/// Sessions for a host of `total_memory` bytes and `cpus` processors of which `reserve` bytes stay free:
/// one for each 768 MiB (1.5 GiB where sessions run an engine of their own), at most two a processor,
/// never under 8 nor over 256.
#[must_use]
pub fn sized(total_memory: u64, cpus: u32, reserve: u64, inner_docker: bool) -> u32 {
    let unit = if inner_docker { 3 * GIB / 2 } else { 768 * MIB };
    let by_memory = total_memory.saturating_sub(reserve) / unit;
    let sessions = by_memory.min(2 * u64::from(cpus)).clamp(u64::from(UNMEASURED), MOST);
    u32::try_from(sessions).unwrap_or(UNMEASURED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_reference_get_their_capacity() {
        let capacity = |gib: u64, cpus, docker| sized(gib * GIB, cpus, default_reserve(gib * GIB), docker);
        assert_eq!(capacity(16, 8, false), 16);
        assert_eq!(capacity(16, 4, false), 8);
        assert_eq!(capacity(16, 8, true), 9);
        assert_eq!(capacity(64, 16, false), 32);
        // By memory alone it had been 19.
        assert_eq!(capacity(16, 64, false), 19);
        assert_eq!(capacity(1, 1, false), 8);
        assert_eq!(capacity(1_024, 200, false), 256);
        assert_eq!(sized(0, 0, u64::MAX, true), 8);
    }
}
