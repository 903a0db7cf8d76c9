//! Connections of programs that know nothing of a proxy (`SANDBOX_TRANSPARENT_EGRESS`).
//!
//! The session's network has no way out, so nothing leads to an address that is not on it. Before anything
//! of the session runs, process 1 of the container, which is root for that long, makes a route that leads
//! everything else back into the session ([`route`](rules::install)), and rules that hand what comes along it to the
//! redirector: TCP to its door, questions of DNS to its other one, whatever else is refused at once. Then it
//! becomes the session's user for good and goes on as [`crate::init`].
//!
//! The redirector ([`forward`]) has a user of its own, whom the rules pass over and whom the session's
//! programs cannot touch, and no rights. It asks the kernel where a connection wanted to go, reads the name
//! that a client says first ([`name`]), and opens a tunnel at the egress proxy. What may be reached is
//! decided there, by name and by address, as for everybody who asks it: a name that lies gains nothing,
//! because the proxy looks it up itself. When the redirector does not run, nothing gets out.
//!
//! Its sockets were bound by process 1 and are kept by [`keep`], which starts the redirector again when it
//! ends: connections made meanwhile wait.

mod forward;
mod name;
mod netlink;
mod rules;

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set};
use tale_sandbox_wire::exec::{PROXY_ENV, REDIRECT_ENV, REDIRECTOR_USER, USER_ENV};

use crate::settings::{Redirects, variable};
use crate::{init, log, procs};

/// Follows `daemon` when the session is to have the redirector. A program that does not know it ends,
/// instead of running the session as root.
pub const WORD: &str = "redirected";
/// The word that starts what keeps the redirector.
pub const KEEPER: &str = "internal-redirect-keeper";
/// The word that starts the redirector.
pub const REDIRECTOR: &str = "internal-redirect";

/// Pauses before a redirector that ended is started again, and the life after which they begin anew.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const GOOD_LIFE: Duration = Duration::from_secs(60);

/// Sets the redirector up, then becomes the session's user and [`crate::init`]. A session without a
/// redirector still has the proxy's variables.
#[must_use]
pub fn main() -> ExitCode {
    let Some((user, group)) = variable(USER_ENV).as_deref().and_then(user) else {
        log::line(&format!("{USER_ENV} is no user and group that a session may have"));
        return ExitCode::from(init::CANNOT_START);
    };
    let state = match set_up() {
        Ok(keeper) => Redirects::Kept(keeper),
        Err(error) => {
            log::line(&format!("only programs that know the proxy get out: {error}"));
            Redirects::Off
        }
    };
    if let Err(error) = give_up() {
        log::line(&format!("cannot start: rights cannot be given up: {error}"));
        return ExitCode::from(init::CANNOT_START);
    }
    let error = own_program("daemon").env(REDIRECT_ENV, state.to_string()).uid(user).gid(group).exec();
    log::line(&format!("cannot start: {error}"));
    ExitCode::from(init::CANNOT_START)
}

/// Sees to it that no program can be given a right here from now on. Those that are held go with the user.
fn give_up() -> io::Result<()> {
    for right in CapabilitySet::all() {
        // The kernel may know fewer.
        if capability_is_in_bounding_set(right).unwrap_or(false) {
            remove_capability_from_bounding_set(right)?;
        }
    }
    Ok(())
}

/// `uid:gid`: nobody with rights, and not the redirector.
fn user(text: &str) -> Option<(u32, u32)> {
    let (user, group) = text.split_once(':')?;
    let (user, group) = (user.parse().ok()?, group.parse().ok()?);
    (user != 0 && group != 0 && user != REDIRECTOR_USER).then_some((user, group))
}

fn own_program(word: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tale-sandboxd").arg(word);
    command
}

/// Says who keeps the redirector.
fn set_up() -> io::Result<Keeper> {
    let proxy = variable(PROXY_ENV).unwrap_or_default();
    forward::Proxy::parse(&proxy).ok_or_else(|| io::Error::other(format!("{PROXY_ENV} is no host with a port")))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let questions = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let doors = rules::Doors { connections: listener.local_addr()?.port(), questions: questions.local_addr()?.port() };
    let keeper = own_program(KEEPER)
        .env_clear()
        .env(PROXY_ENV, proxy)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::from(OwnedFd::from(questions)))
        .uid(REDIRECTOR_USER)
        .gid(REDIRECTOR_USER)
        .spawn()?;
    rules::install(doors)?;
    let pid = i32::try_from(keeper.id()).map_err(io::Error::other)?;
    let started = procs::started(pid).ok_or_else(|| io::Error::other("what keeps the redirector has ended"))?;
    Ok(Keeper { pid, started })
}

/// The process that keeps the redirector, by its number and when it was started, in ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeper {
    /// The number.
    pub pid: i32,
    /// The start.
    pub started: u64,
}

impl Keeper {
    /// Whether the redirector runs. One that ended is started again after a pause; one whose keeper ended is not, because
    /// nobody has the right to any more: nothing gets out then but by the proxy's variables.
    #[must_use]
    pub fn has_redirector(&self) -> bool {
        procs::started(self.pid) == Some(self.started) && !procs::below(self.pid).is_empty()
    }
}

/// Runs the redirector for as long as the session lives.
#[must_use]
pub fn keep() -> ExitCode {
    let mut pause = FIRST_PAUSE;
    loop {
        let born = Instant::now();
        // Nobody waits for it: its end is the session's.
        let ended = rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(io::Error::from)
            .and_then(|()| own_program(REDIRECTOR).status());
        match ended {
            Ok(status) => log::line(&format!("the redirector ended ({status}) and is started again")),
            Err(error) => log::line(&format!("the redirector cannot be started: {error}")),
        }
        if born.elapsed() >= GOOD_LIFE {
            pause = FIRST_PAUSE;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The redirector: its doors are its standard input and output.
#[must_use]
pub fn redirect() -> ExitCode {
    let run = || -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        let proxy = variable(PROXY_ENV).as_deref().and_then(forward::Proxy::parse);
        let proxy = proxy.ok_or_else(|| io::Error::other("the proxy is not known"))?;
        let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
        let questions = UdpSocket::from(io::stdout().as_fd().try_clone_to_owned()?);
        crate::runtime(0)?.block_on(forward::serve(listener, questions, proxy))
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(&format!("the redirector stops: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_never_root_and_never_its_own_redirector() {
        assert_eq!(user("10001:10001"), Some((10_001, 10_001)));
        for bad in ["", "0:0", "0:10001", "10001:0", "10001", "agent:agent", &format!("{REDIRECTOR_USER}:1")] {
            assert_eq!(user(bad), None, "{bad}");
        }
    }
}
