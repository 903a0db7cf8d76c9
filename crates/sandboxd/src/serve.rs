//! The daemon: takes over what a daemon before left, listens, and stops within its budget.

use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::Arc;

use tale_sandbox_wire::limits::STOP_BUDGET;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::execs::Execs;
use crate::gate::Held;
use crate::http::{self, App};
use crate::path::Root;
use crate::settings::Settings;
use crate::state::{State, Store};
use crate::{init, log, now_ms, routes};

/// The word that starts it.
pub const WORD: &str = "internal-serve";
/// Says that no daemon ran before in this container.
pub const FIRST: &str = "first";

/// Threads that wait for the disk.
const DISK_THREADS: usize = 4;

/// Runs the daemon.
#[must_use]
pub fn main(first: bool) -> ExitCode {
    let settings = match Settings::read() {
        Ok(settings) => settings,
        Err(bad) => {
            log::line(&bad.to_string());
            return ExitCode::from(init::CANNOT_START);
        }
    };
    let run = || -> io::Result<()> {
        init::harden()?;
        let runtime = crate::runtime(DISK_THREADS)?;
        let stopped = runtime.block_on(run(settings, first));
        runtime.shutdown_background();
        stopped
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(&format!("cannot start: {error}"));
            // The first start must show what is wrong; later ones may find it mended.
            ExitCode::from(if first { init::CANNOT_START } else { 1 })
        }
    }
}

async fn run(settings: Settings, first: bool) -> io::Result<()> {
    let mut stop = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let memory = io::stdin().as_fd().try_clone_to_owned()?;
    let (store, before) = Store::open(memory.into())?;
    let root = Arc::new(Root::open(&settings.root)?);
    let execs = Arc::new(Execs::open(Arc::clone(&root), &settings, first)?);
    let listener = TcpListener::bind(settings.listen).await?;
    execs.recover()?;
    let state = match before {
        // Whatever ended the daemon before was no idleness.
        Some(mut state) => {
            state.held.last_activity_at_ms = now_ms();
            state
        }
        None => fresh(&settings)?,
    };
    log::line(&format!("listening on {}", listener.local_addr()?));
    let app = Arc::new(App::new(settings, Arc::clone(&execs), root, store, state));
    app.keep().map_err(|_| io::Error::other("the state cannot be kept"))?;
    tokio::select! {
        served = http::serve(app, listener) => return served,
        _ = stop.recv() => {}
        _ = interrupt.recv() => {}
    }
    log::line("stopping");
    if tokio::time::timeout(STOP_BUDGET, execs.stop()).await.is_err() {
        log::line("some commands did not end in time");
    }
    Ok(())
}

fn fresh(settings: &Settings) -> io::Result<State> {
    let now = now_ms();
    let generation = routes::new_generation().map_err(|_| io::Error::other("no random bytes"))?;
    let held =
        Held { generation, released: false, pinned: false, claim: None, booted_at_ms: now, last_activity_at_ms: now };
    Ok(State { held, env: settings.session_env.clone() })
}
