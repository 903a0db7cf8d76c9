//! How the process gives memory back.

/// Allocations of this size and more get memory of their own, in bytes.
#[cfg(target_env = "gnu")]
const OWN_MEMORY: libc::c_int = 256 * 1024;

/// Makes large allocations go back to the system when they are freed.
///
/// The C library raises its threshold for that with every large allocation that is freed, so that
/// the 19 MiB of one password hash, or the buffers of one index writer, would stay with whichever
/// thread they were needed on: 250 MiB after ten sign-ins and a hundred documents, where 40 MiB
/// are in use (`bench/start.md`). Call it before other threads start.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the setting has no other door than this function of the C library")]
pub(crate) fn give_back() {
    // SAFETY: `mallopt` takes two numbers, keeps no pointer and is called before any thread starts.
    let _accepted = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MEMORY) };
}

/// Other C libraries do not keep large allocations.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[cfg(test)]
mod tests {
    use super::*;

    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn what_large_work_needed_is_given_back() {
        give_back();
        let hash = || drop(std::hint::black_box(vec![1u8; 19 << 20]));
        hash();
        let before = resident_kib();
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| (0..3).for_each(|_| hash()));
            }
        });
        let after = resident_kib();
        assert!(after < before + 19 * 1024, "{before} KiB before, {after} KiB after");
    }
}
