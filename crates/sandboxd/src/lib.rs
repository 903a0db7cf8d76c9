//! The program inside a sandbox, in three processes of one static binary.
//!
//! - [`init`] (`daemon`) is process 1: it reaps, starts the daemon, and starts it again when it dies. It
//!   holds nothing but a piece of memory without a name in which the daemon keeps what must outlive it
//!   ([`state`]).
//! - [`serve`] is the daemon: HTTP on port 8200 with a token, execs, output, files, environment,
//!   activity. One thread runs everything; a few more wait for the disk.
//! - [`supervisor`] runs once per command. It owns the command's pipes and writes the journal
//!   ([`journal`]), so that output goes on arriving while no daemon runs; it is a subreaper, so whatever
//!   the command leaves behind stays its descendant and can be ended with certainty.
//!
//! A session whose connections are led to the proxy ([`redirect`]) has two more, which keep out of everything
//! else: one that leads, and one that starts it again.
//!
//! Bytes flow: command → pipe → supervisor → journal on disk → daemon → reader. The disk is the only
//! buffer. A reader who is slow costs nobody anything; a command whose output nobody acknowledges is held
//! by its full pipe and then ended. Costs: one supervisor per command with a quarter of a MiB of its own,
//! one segment open; a reader holds one batch of 256 KiB and its encoding.
//!
//! All processes of a session share one user id, so the journal is as safe from the session's own
//! commands as their other files are: checksums tell damage, not malice. What must not leak into
//! commands (the token) lives in processes that cannot be inspected.

pub mod control;
pub mod execs;
pub mod fetch;
pub mod files;
pub mod follow;
pub mod gate;
pub mod http;
pub mod init;
pub mod journal;
pub mod log;
pub mod memory;
pub mod path;
pub mod procs;
pub mod redirect;
pub mod routes;
pub mod serve;
pub mod settings;
pub mod stage;
pub mod state;
pub mod supervisor;
pub mod watch;

use std::process::ExitCode;

/// Runs one of the three processes; everything else ends with 65.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["daemon"] => init::main(),
        ["daemon", redirect::WORD] => redirect::main(),
        [word, rest @ ..] if *word == serve::WORD => serve::main(rest.contains(&serve::FIRST)),
        [word] if *word == supervisor::WORD => supervisor::main(),
        [redirect::KEEPER] => redirect::keep(),
        [redirect::REDIRECTOR] => redirect::redirect(),
        _ => {
            log::line("the only command is: daemon");
            ExitCode::from(65)
        }
    }
}

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A text nobody can guess: 128 bits from the kernel, in hexadecimal.
///
/// # Errors
/// When the kernel gives none.
pub fn random_token() -> std::io::Result<String> {
    use std::fmt::Write as _;
    use std::io::Read as _;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A runtime for one thread. Threads for the disk are started ahead and never end, so that the processes
/// of a session cannot keep the daemon from having them.
///
/// # Errors
/// When the kernel refuses what it needs.
pub(crate) fn runtime(disk_threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(disk_threads.max(1))
        .thread_keep_alive(std::time::Duration::MAX)
        .thread_stack_size(256 << 10)
        .build()?;
    if disk_threads > 0 {
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(disk_threads + 1));
        for _ in 0..disk_threads {
            let barrier = std::sync::Arc::clone(&barrier);
            runtime.spawn_blocking(move || {
                barrier.wait();
            });
        }
        barrier.wait();
    }
    Ok(runtime)
}
