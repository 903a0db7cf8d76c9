//! What must outlive a daemon that dies: a piece of memory without a name, which process 1 holds and every
//! daemon gets as its descriptor 0. Other processes of the session cannot reach it, and it is gone with
//! the container.
//!
//! Two slots are written in turn, each with a number and a checksum, so that a daemon that dies while it
//! writes leaves the state before.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use tale_sandbox_wire::exec::Env;

use crate::gate::Held;

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What holds the session.
    pub held: Held,
    /// The environment of its commands.
    pub env: Env,
}

/// The memory.
#[derive(Debug)]
pub struct Store {
    file: File,
    turn: u64,
}

/// More than the largest environment takes with every byte escaped.
const SLOT: u64 = 64 << 20;
const HEAD: usize = 16;

impl Store {
    /// New memory, empty.
    ///
    /// # Errors
    /// When the kernel has none.
    pub fn create() -> io::Result<File> {
        Ok(File::from(rustix::fs::memfd_create("tale-sandboxd", MemfdFlags::CLOEXEC)?))
    }

    /// Takes the memory over with the last state that was written whole.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(file: File) -> io::Result<(Self, Option<State>)> {
        let mut newest: Option<(u64, State)> = None;
        for slot in 0..2 {
            if let Some((turn, state)) = read(&file, slot)?
                && newest.as_ref().is_none_or(|(other, _)| *other < turn)
            {
                newest = Some((turn, state));
            }
        }
        let turn = newest.as_ref().map_or(0, |(turn, _)| *turn);
        Ok((Self { file, turn }, newest.map(|(_, state)| state)))
    }

    /// Writes the state.
    ///
    /// # Errors
    /// When the memory is used up; the state before stays.
    pub fn write(&mut self, state: &State) -> io::Result<()> {
        let body = serde_json::to_vec(state)?;
        let turn = self.turn + 1;
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend_from_slice(&turn.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        self.file.write_all_at(&bytes, turn % 2 * SLOT)?;
        self.turn = turn;
        Ok(())
    }
}

fn read(file: &File, slot: u64) -> io::Result<Option<(u64, State)>> {
    let end = file.metadata()?.len();
    let at = slot * SLOT;
    let mut head = [0; HEAD];
    if end < at + HEAD as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut head, at)?;
    let number = |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    let turn = u64::from(number(0)) | u64::from(number(4)) << 32;
    let length = u64::from(number(8));
    if turn == 0 || length > SLOT || end < at + HEAD as u64 + length {
        return Ok(None);
    }
    let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut body, at + HEAD as u64)?;
    let whole = crc32fast::hash(&body) == number(12);
    Ok(whole.then(|| serde_json::from_slice(&body).ok()).flatten().map(|state| (turn, state)))
}

#[cfg(test)]
mod tests {
    use tale_sandbox_wire::names::Generation;

    use super::*;

    fn state(number: u64) -> State {
        let held = Held {
            generation: Generation::new(format!("g{number}")).unwrap(),
            released: false,
            pinned: true,
            claim: None,
            booted_at_ms: 1,
            last_activity_at_ms: number,
        };
        State { held, env: Env::from([("A".into(), "x".repeat(usize::try_from(number).unwrap()))]) }
    }

    #[test]
    fn a_torn_write_leaves_the_state_before() {
        let file = Store::create().unwrap();
        let (mut store, none) = Store::open(file.try_clone().unwrap()).unwrap();
        assert!(none.is_none());
        for number in [1, 2, 3] {
            store.write(&state(number)).unwrap();
            let (_, read) = Store::open(file.try_clone().unwrap()).unwrap();
            assert_eq!(read.unwrap(), state(number));
        }
        store.write(&state(400)).unwrap();
        file.write_all_at(b"!", HEAD as u64 + 50).unwrap();
        let (mut store, read) = Store::open(file.try_clone().unwrap()).unwrap();
        assert_eq!(read.unwrap(), state(3));
        store.write(&state(5)).unwrap();
        assert_eq!(Store::open(file).unwrap().1.unwrap(), state(5));
    }
}
