//! The supervisor's connection to the daemon, and to the one after it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use subtle::ConstantTimeEq as _;
use tale_sandbox_wire::lines::{BadLine, Lines};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use crate::control::{self, End, KEY_BYTES, Launch, Order, Reach, Report, SOCKET};

/// How long the last words may take.
const FLUSH_PATIENCE: Duration = Duration::from_secs(5);

/// Connections without the key at a time, and how long each may take to show it.
const GUESTS: usize = 8;
const GUEST_PATIENCE: Duration = Duration::from_millis(200);

/// The connection. Reports never wait: of the journal's reach only the last one counts.
#[derive(Debug)]
pub struct Link {
    stream: Option<UnixStream>,
    /// Daemons that came later and showed the key.
    door: Option<mpsc::Receiver<UnixStream>>,
    lines: Lines,
    inbox: VecDeque<Order>,
    outbox: Vec<u8>,
    /// A reach that is newer than what stands in the outbox.
    newer: Option<Reach>,
    /// What a new daemon must hear first.
    reach: Reach,
    end: Option<End>,
}

/// Lets in whoever shows the key. Others hold one of a few places for a moment.
async fn attend(listener: UnixListener, key: Arc<str>, come: mpsc::Sender<UnixStream>) {
    let places = Arc::new(Semaphore::new(GUESTS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else { return };
        let (key, come) = (Arc::clone(&key), come.clone());
        tokio::spawn(async move {
            let shown = tokio::time::timeout(GUEST_PATIENCE, shown_key(&stream)).await;
            if matches!(shown, Ok(Ok(shown)) if bool::from(shown.ct_eq(key.as_bytes()))) {
                // The supervisor that is gone needs no daemon.
                let _ = come.send(stream).await;
            }
            drop(place);
        });
    }
}

async fn shown_key(stream: &UnixStream) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    let mut filled = 0;
    while filled < KEY_BYTES {
        stream.readable().await?;
        match stream.try_read(&mut key[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(key)
}

/// Opens the exec's directory.
///
/// # Errors
/// What the file system says.
pub fn open_dir(dir: &str) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(dir, how, Mode::empty())?)
}

impl Link {
    /// Takes the connection that is descriptor 0 and waits for the launch.
    ///
    /// # Errors
    /// When the daemon went away, or says something else first.
    pub async fn first() -> io::Result<(Self, Box<Launch>)> {
        let stream = std::os::unix::net::UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        stream.set_nonblocking(true)?;
        let mut link = Self {
            stream: Some(UnixStream::from_std(stream)?),
            door: None,
            lines: Lines::new(control::MAX_LINE),
            inbox: VecDeque::new(),
            outbox: Vec::new(),
            newer: None,
            reach: Reach::default(),
            end: None,
        };
        match link.next().await {
            Some(Order::Start(launch)) => Ok((link, launch)),
            _ => Err(io::Error::other("no command came")),
        }
    }

    /// From now on another daemon can connect.
    ///
    /// # Errors
    /// What the file system says.
    pub fn listen(&mut self, dir: &str, key: String) -> io::Result<()> {
        let dir = open_dir(dir)?;
        // The path of a socket is short, that of a workspace need not be.
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()))?;
        let (come, door) = mpsc::channel(1);
        tokio::spawn(attend(listener, key.into(), come));
        self.door = Some(door);
        Ok(())
    }

    /// Whether a daemon listens.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// The next order, while reports go out; `None` when the daemon went away. May be dropped at any time.
    pub async fn next(&mut self) -> Option<Order> {
        loop {
            if let Some(order) = self.inbox.pop_front() {
                return Some(order);
            }
            let accept = async {
                match &mut self.door {
                    Some(door) => door.recv().await,
                    None => std::future::pending().await,
                }
            };
            let ready = async {
                match &self.stream {
                    Some(stream) if self.outbox.is_empty() => stream.readable().await,
                    Some(stream) => tokio::select! {
                        ready = stream.readable() => ready,
                        ready = stream.writable() => ready,
                    },
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                accepted = accept => match accepted {
                    Some(stream) => self.welcome(stream),
                    None => self.door = None,
                },
                _ = ready => {
                    self.write();
                    if !self.read() {
                        self.stream = None;
                        return None;
                    }
                }
            }
        }
    }

    /// A daemon that was started anew replaces the one before.
    fn welcome(&mut self, stream: UnixStream) {
        self.stream = Some(stream);
        self.lines = Lines::new(control::MAX_LINE);
        self.newer = None;
        self.outbox = control::line(&Report::Reach(self.reach));
        if let Some(end) = &self.end {
            self.outbox.extend_from_slice(&control::line(&Report::Ended(end.clone())));
        }
        self.write();
    }

    /// Takes what came; says whether the daemon is still there.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 8192];
        while let Some(stream) = &self.stream {
            match stream.try_read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    let inbox = &mut self.inbox;
                    let taken = self.lines.push::<BadLine>(&buffer[..count], |line| {
                        if let Ok(order) = serde_json::from_slice(line) {
                            inbox.push_back(order);
                        }
                        Ok(())
                    });
                    if taken.is_err() {
                        return false;
                    }
                }
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        false
    }

    /// Tells the daemon, now or as soon as it listens.
    pub fn report(&mut self, report: &Report) {
        match report {
            Report::Reach(reach) => {
                self.reach = *reach;
                self.newer = Some(*reach);
            }
            Report::Ended(end) => {
                self.end = Some(end.clone());
                self.take_newer();
                self.outbox.extend_from_slice(&control::line(report));
            }
            Report::Stdin { .. } => self.outbox.extend_from_slice(&control::line(report)),
        }
        self.write();
    }

    /// Tells the daemon how it ended together with where the journal ends: whoever reads the end finds the command
    /// ended.
    pub fn end(&mut self, reach: Reach, end: End) {
        self.reach = reach;
        self.newer = Some(reach);
        self.report(&Report::Ended(end));
    }

    fn take_newer(&mut self) {
        if let Some(reach) = self.newer.take() {
            self.outbox.extend_from_slice(&control::line(&Report::Reach(reach)));
        }
    }

    fn write(&mut self) {
        loop {
            if self.outbox.is_empty() {
                self.take_newer();
            }
            let Some(stream) = &self.stream else {
                // The next daemon hears the state, not the history.
                self.outbox.clear();
                return;
            };
            if self.outbox.is_empty() {
                return;
            }
            match stream.try_write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The end of the connection shows at the next read.
                Err(_) => self.outbox.clear(),
            }
        }
    }

    /// Waits until the daemon has heard everything, or is gone.
    ///
    /// # Errors
    /// None; the signature suits its callers.
    pub async fn flush(&mut self) -> io::Result<()> {
        let flush = async {
            loop {
                self.write();
                let Some(stream) = self.stream.as_ref().filter(|_| !self.outbox.is_empty()) else { return };
                if stream.writable().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(FLUSH_PATIENCE, flush).await;
        Ok(())
    }
}
