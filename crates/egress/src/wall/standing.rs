//! Whether the wall still stands, told without any right: by a packet that it refuses.
//!
//! The rules cannot be read any more once the process has given up its rights, and whoever has them in this network
//! can take the rules away. A datagram to a port of loopback that no rule admits is refused where it is sent; without
//! the rules it goes, to nobody.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use super::Wall;

/// Ports where nothing of a container listens, of which one at least is neither the proxy's nor DNS's.
const CLOSED: [u16; 3] = [9, 11, 13];

/// Looks at the wall.
#[derive(Debug)]
pub(crate) struct Watch {
    socket: UdpSocket,
    to: u16,
}

impl Watch {
    /// Does not block, and keeps its socket, so that no lack of files is taken for a missing wall.
    pub(super) fn new(wall: &Wall) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let to = CLOSED.into_iter().find(|port| ![wall.proxy, wall.dns].contains(port)).unwrap_or_default();
        Ok(Self { socket, to })
    }

    /// Whether the packet filter refuses what it must. Whatever else happens to the datagram says that it does not.
    pub(crate) fn stands(&self) -> bool {
        let sent = self.socket.send_to(&[], (Ipv4Addr::LOCALHOST, self.to));
        sent.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }
}
