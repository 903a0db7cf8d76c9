//! Messages to the kernel about routes and rules, and its answers.

use std::io;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// The message is a request.
pub const REQUEST: u16 = 0x1;
/// It is answered.
pub const ACK: u16 = 0x4;
/// The object must not exist yet.
pub const EXCLUSIVE: u16 = 0x200;
/// The object is made.
pub const CREATE: u16 = 0x400;
/// The object goes behind those that exist.
pub const APPEND: u16 = 0x800;

const ERROR: u16 = 2;
const NESTED: u16 = 0x8000;
const HEAD: usize = 16;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Messages that go to the kernel together.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    awaited: usize,
    sequence: u32,
}

/// Attributes of a message.
#[derive(Debug, Default, Clone)]
pub struct Attributes(Vec<u8>);

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn short(length: usize) -> [u8; 2] {
    // Nothing here comes near the bound; the kernel would refuse a message that is cut.
    u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes()
}

impl Attributes {
    /// Bytes.
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend_from_slice(&short(4 + value.len()));
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        pad(&mut self.0);
        self
    }

    /// A text.
    pub fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// A number, as filters want it.
    pub fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Attributes in an attribute.
    pub fn nested(self, kind: u16, value: &Self) -> Self {
        self.bytes(kind | NESTED, &value.0)
    }

    /// As they go on the wire.
    #[cfg(test)]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Batch {
    /// One more message: its kind, its flags, what is fixed of it, and attributes.
    pub fn add(&mut self, kind: u16, flags: u16, fixed: &[u8], attributes: &Attributes) {
        self.sequence += 1;
        self.awaited += usize::from(flags & ACK != 0);
        let length = u32::try_from(HEAD + fixed.len() + attributes.0.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(fixed);
        self.bytes.extend_from_slice(&attributes.0);
    }

    /// Sends everything, to routing when nothing else is said, and waits for every answer.
    ///
    /// # Errors
    /// The first refusal of the kernel.
    pub fn send(self, to: Option<Protocol>) -> io::Result<()> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, to)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        send(&socket, &self.bytes, SendFlags::empty())?;
        let mut awaited = self.awaited;
        let mut buffer = vec![0; 16 << 10];
        while awaited > 0 {
            let (_, length) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            awaited = awaited.saturating_sub(answers(buffer.get(..length).unwrap_or_default())?);
        }
        Ok(())
    }
}

/// How many messages these answers say yes to.
fn answers(mut bytes: &[u8]) -> io::Result<usize> {
    let mut count = 0;
    while let Some((head, _)) = bytes.split_first_chunk::<HEAD>() {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length < HEAD || length > bytes.len() {
            break;
        }
        if u16::from_ne_bytes([head[4], head[5]]) == ERROR {
            let code = bytes.get(HEAD..HEAD + 4).and_then(|code| code.try_into().ok()).map_or(0, i32::from_ne_bytes);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(-code));
            }
            count += 1;
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_lengths_are_not() {
        let inner = Attributes::default().text(1, "lo");
        let outer = Attributes::default().nested(4, &inner);
        assert_eq!(inner.as_bytes(), [&short(7)[..], &1_u16.to_ne_bytes(), b"lo\0\0"].concat());
        assert_eq!(outer.as_bytes()[..4], [short(12), 0x8004_u16.to_ne_bytes()].concat());
    }

    #[test]
    fn a_refusal_among_answers_is_an_error() {
        let answer = |code: i32| {
            let mut bytes = [20_u32.to_ne_bytes(), [0; 4], [0; 4], [0; 4], code.to_ne_bytes()].concat();
            bytes[4..6].copy_from_slice(&ERROR.to_ne_bytes());
            bytes
        };
        assert_eq!(answers(&[answer(0), answer(0)].concat()).unwrap(), 2);
        assert_eq!(answers(&[answer(0), answer(-1)].concat()).unwrap_err().raw_os_error(), Some(1));
        assert_eq!(answers(&answer(0)[..10]).unwrap(), 0);
    }
}
