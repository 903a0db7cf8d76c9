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

/// Gives the program's own text back to the system: what is needed of it again is mapped again from the file's
/// pages, which the system keeps, in less than a microsecond a page. An idle process needs a tenth of what its start
/// and its last work have touched.
///
/// Only mappings that nobody has written: the code, and the constants before the first relocation.
#[cfg(target_os = "linux")]
pub(crate) fn forget_text() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    for (address, length) in clean_text(&maps, &program.to_string_lossy()) {
        forget(address, length);
    }
}

/// Addresses and lengths of the mappings of `program` that hold nothing but what its file holds.
#[cfg(target_os = "linux")]
fn clean_text<'a>(maps: &'a str, program: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    maps.lines().filter_map(move |line| {
        let (fields, name) = line.split_once('/')?;
        if program.strip_prefix('/') != Some(name) {
            return None;
        }
        let mut fields = fields.split_whitespace();
        let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let first = u64::from_str_radix(offset, 16).ok()? == 0;
        if !(rights == "r-xp" || rights == "r--p" && first) {
            return None;
        }
        let (from, to) = range.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        Some((from, to.checked_sub(from)?))
    })
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the advice has no other door than this function of the C library")]
fn forget(address: usize, length: usize) {
    // SAFETY: the range is a private mapping of the program's file without the right to write, and its pages have
    // never been written: text has no relocations, nor has what stands before the first segment that does. So the
    // file holds what is dropped, byte for byte, and each page comes back from there when it is touched.
    unsafe { libc::madvise(address as *mut libc::c_void, length, libc::MADV_DONTNEED) };
}

/// There is no such advice here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forget_text() {}

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
    fn only_what_the_file_holds_is_forgotten_and_the_program_goes_on() {
        let maps = "\
5500-5600 r--p 00000000 fe:01 1 /opt/tale
5600-5900 r-xp 00100000 fe:01 1 /opt/tale
5900-5a00 r--p 00400000 fe:01 1 /opt/tale
5a00-5b00 rw-p 00500000 fe:01 1 /opt/tale
7000-7100 r-xp 00000000 fe:01 2 /lib/libc.so.6
7200-7300 rw-p 00000000 00:00 0 [heap]
";
        let found: Vec<_> = clean_text(maps, "/opt/tale").collect();
        assert_eq!(found, [(0x5500, 0x100), (0x5600, 0x300)]);
        forget_text();
        assert_eq!(clean_text(maps, "/opt/other").count(), 0);
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
