//! The program's allocator, and how it gives memory back.
//!
//! The system's allocator leaves holes between what ten thousand streams keep and the buffers their
//! connections gave back: 13 KiB for a stream that uses 3. mimalloc keeps sizes apart and gives the
//! pages of what was freed back (`bench/events.md`, `bench/start.md`).

/// Allocates for the whole program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_arena_purge_mult`: how much longer than small pages a large block waits before it goes
/// back, as a factor. Its number is fixed in `mimalloc.h`; the binding names only some options.
const ARENA_PURGE_MULT: libmimalloc_sys::mi_option_t = 24;

/// Makes large blocks go back to the system as they are freed.
///
/// They would wait for a later allocation of that size to look after them, which an idle program
/// does not make: the 19 MiB of a password hash would stay with the threads it was needed on. Call
/// it before other threads start.
#[expect(unsafe_code, reason = "the setting has no other door than this function of the C library")]
pub(crate) fn give_back() {
    // SAFETY: takes two numbers, keeps no pointer and is called before any thread starts.
    unsafe { libmimalloc_sys::mi_option_set(ARENA_PURGE_MULT, 0) };
}

#[cfg(target_os = "linux")]
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
