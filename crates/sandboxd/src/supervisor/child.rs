//! The command itself: its start, its pipes, what waits for its standard input.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::Pid;
use tale_sandbox_wire::event::Stream;
use tale_sandbox_wire::exec::StdinRefusal;
use tale_sandbox_wire::limits::MAX_STDIN_PENDING;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::control::Launch;

/// Bytes that are read at a time, and what the pipe of an output is made to hold.
pub const PIPE_BYTES: usize = 128 << 10;

/// What commands are nicer by than whoever watches them.
const NICENESS: i32 = 10;

/// The command and its pipes.
#[derive(Debug)]
pub struct Child {
    /// Its number, which is its process group's too.
    pub pid: Pid,
    /// Its standard input.
    pub stdin: Stdin,
    stdout: Pipe,
    stderr: Pipe,
}

/// What one read of an output gave.
#[derive(Debug)]
pub struct Output<'a> {
    /// What was held back before and what came.
    pub bytes: &'a [u8],
    /// How much of it came now.
    pub fresh: usize,
    /// Whether nothing follows.
    pub last: bool,
}

#[derive(Debug)]
struct Pipe {
    receiver: Option<Receiver>,
    buffer: Vec<u8>,
    filled: usize,
    held: usize,
}

impl Child {
    /// Starts the command.
    ///
    /// # Errors
    /// What the kernel says, such as that there is no such program.
    pub fn start(launch: &Launch) -> io::Result<Self> {
        let (program, arguments) = launch.argv.split_first().ok_or_else(|| io::Error::other("there is no program"))?;
        let (stdout, out) = output()?;
        let (stderr, err) = output()?;
        let first = STANDARD.decode(&launch.stdin_b64).map_err(io::Error::other)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&launch.cwd)
            .process_group(0)
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err));
        let sender = if first.is_empty() && !launch.hold {
            command.stdin(Stdio::null());
            None
        } else {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            command.stdin(Stdio::from(read));
            Some(Sender::from_owned_fd(write)?)
        };
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
        // However many there are of them, they do not keep daemon and supervisor from ending them.
        let _ = rustix::process::setpriority_pgrp(Some(pid), NICENESS);
        let stdin = Stdin { sender, pending: first.into(), eof: !launch.hold };
        Ok(Self { pid, stdin, stdout, stderr })
    }

    fn pipe(&mut self, stream: Stream) -> &mut Pipe {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// Waits for output. Never returns once both outputs ended.
    pub async fn readable(&self) -> Stream {
        async fn ready(pipe: &Pipe) {
            match &pipe.receiver {
                // An error shows at the read that follows.
                Some(receiver) => drop(receiver.readable().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = ready(&self.stdout) => Stream::Stdout,
            () = ready(&self.stderr) => Stream::Stderr,
        }
    }

    /// Reads after [`Child::readable`].
    pub fn read(&mut self, stream: Stream) -> Output<'_> {
        self.take(stream, |receiver, buffer| receiver.try_read(buffer))
    }

    /// Reads what is there now, whether the event loop has heard of it or not.
    pub fn read_now(&mut self, stream: Stream) -> Output<'_> {
        self.take(stream, |receiver, buffer| Ok(rustix::io::read(receiver, buffer)?))
    }

    fn take(&mut self, stream: Stream, read: impl Fn(&Receiver, &mut [u8]) -> io::Result<usize>) -> Output<'_> {
        let pipe = self.pipe(stream);
        let held = pipe.held;
        let got = pipe.receiver.as_ref().map(|receiver| read(receiver, &mut pipe.buffer[held..]));
        let (fresh, last) = match got {
            Some(Ok(fresh)) if fresh > 0 => (fresh, false),
            Some(Err(error)) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                (0, false)
            }
            _ => (0, true),
        };
        if last {
            pipe.receiver = None;
        }
        pipe.filled = held + fresh;
        Output { bytes: &pipe.buffer[..pipe.filled], fresh, last }
    }

    /// Keeps the last `count` bytes of what was read for the next read.
    pub fn hold(&mut self, stream: Stream, count: usize) {
        let pipe = self.pipe(stream);
        pipe.buffer.copy_within(pipe.filled - count..pipe.filled, 0);
        pipe.held = count;
    }
}

fn output() -> io::Result<(Pipe, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // The kernel bounds what one user's pipes hold; a smaller one works as well.
    let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
    let receiver = Some(Receiver::from_owned_fd(read)?);
    Ok((Pipe { receiver, buffer: vec![0; PIPE_BYTES + 4], filled: 0, held: 0 }, write))
}

/// The standard input and what waits for it.
#[derive(Debug)]
pub struct Stdin {
    sender: Option<Sender>,
    pending: VecDeque<u8>,
    /// Whether it ends after what waits.
    eof: bool,
}

impl Stdin {
    /// Waits until something that waits can be written. Never returns while nothing does.
    pub async fn writable(&self) {
        match &self.sender {
            Some(sender) if !self.pending.is_empty() || self.eof => drop(sender.writable().await),
            _ => std::future::pending().await,
        }
    }

    /// Writes as much as the pipe takes.
    pub fn write(&mut self) {
        while let Some(sender) = &self.sender {
            if self.pending.is_empty() {
                if self.eof {
                    self.sender = None;
                }
                return;
            }
            match sender.try_write(self.pending.as_slices().0) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.close(),
            }
        }
    }

    /// Adds a line, whole or not at all.
    ///
    /// # Errors
    /// [`StdinRefusal::StdinClosed`] or, when too much waits, [`StdinRefusal::WriteFailed`].
    pub fn append(&mut self, bytes: &[u8], eof: bool) -> Result<(), StdinRefusal> {
        if self.sender.is_none() || self.eof {
            return Err(StdinRefusal::StdinClosed);
        }
        if self.pending.len() + bytes.len() > MAX_STDIN_PENDING {
            return Err(StdinRefusal::WriteFailed);
        }
        self.pending.extend(bytes);
        self.eof = eof;
        Ok(())
    }

    /// Nothing more is written.
    pub fn close(&mut self) {
        self.sender = None;
        self.pending = VecDeque::new();
    }
}
