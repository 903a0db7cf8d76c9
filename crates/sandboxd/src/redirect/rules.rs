//! The route and the rules. As `nft` would show them:
//!
//! ```text
//! table ip tale_redirect {
//!   chain lead {
//!     type nat hook output priority -150
//!     meta skuid REDIRECTOR return
//!     udp dport 53 redirect to :QUESTIONS
//!     tcp dport 53 redirect to :CONNECTIONS
//!     ip daddr & NETWORK's mask == NETWORK return       for each network that is not public
//!     oif lo fib daddr type unicast meta l4proto tcp redirect to :CONNECTIONS
//!   }
//!   chain refuse {
//!     type filter hook output priority 0
//!     oif lo fib daddr type unicast meta l4proto tcp reject with tcp reset
//!     oif lo fib daddr type unicast reject with icmp type admin-prohibited
//!   }
//! }
//! ```
//!
//! What the route leads to `lo` without being an address of the session itself is what is not on any of its
//! networks. To public addresses of those the redirector leads, the others are refused at once. The first chain stands before the engine's own, which leads questions to its resolver.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use tale_sandbox_wire::exec::REDIRECTOR_USER;

use super::netlink::{ACK, APPEND, Attributes, Batch, CREATE, EXCLUSIVE};

const TABLE: &str = "tale_redirect";

/// The ports of the redirector, on loopback.
#[derive(Debug, Clone, Copy)]
pub struct Doors {
    /// Of connections.
    pub connections: u16,
    /// Of questions of DNS over UDP.
    pub questions: u16,
}

/// What can never be reached through the proxy, as far as it is worth being refused before it is asked.
const PRIVATE: [([u8; 4], u32); 6] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
];

const IPV4: u8 = 2;
const LOOPBACK: u32 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS: u16 = 53;

// Messages of filters: their subsystem is 10.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = 0xa00;
const DELETE_TABLE: u16 = 0xa02;
const NEW_CHAIN: u16 = 0xa03;
const NEW_RULE: u16 = 0xa06;

/// Makes the route and the rules.
///
/// # Errors
/// When the kernel refuses, or the network has a way out already.
pub fn install(doors: Doors) -> io::Result<()> {
    filters(doors)
        .send(Some(NETFILTER))
        .map_err(|error| io::Error::other(format!("the rules are refused: {error}")))?;
    route().send(None).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::EXIST) => io::Error::other("the session's network has a way out of its own"),
        _ => io::Error::other(format!("the route is refused: {error}")),
    })
}

/// `ip route add default dev lo`.
fn route() -> Batch {
    const NEW_ROUTE: u16 = 24;
    const OUTGOING: u16 = 4;
    const MAIN: u8 = 254;
    const STATIC: u8 = 4;
    const LINK: u8 = 253;
    const UNICAST: u8 = 1;
    let fixed = [IPV4, 0, 0, 0, MAIN, STATIC, LINK, UNICAST, 0, 0, 0, 0];
    let mut batch = Batch::default();
    let attributes = Attributes::default().bytes(OUTGOING, &LOOPBACK.to_ne_bytes());
    batch.add(NEW_ROUTE, ACK | CREATE | EXCLUSIVE, &fixed, &attributes);
    batch
}

fn filters(doors: Doors) -> Batch {
    let (all, own) = ([0, 0, 0, 10], [IPV4, 0, 0, 0]);
    let mut batch = Batch::default();
    batch.add(BATCH_BEGIN, 0, &all, &Attributes::default());
    let table = Attributes::default().text(1, TABLE);
    // In a network that was kept, whatever the table held goes.
    batch.add(NEW_TABLE, ACK | CREATE, &own, &table);
    batch.add(DELETE_TABLE, ACK, &own, &table);
    batch.add(NEW_TABLE, ACK | CREATE, &own, &table);
    for (name, kind, priority) in [("lead", "nat", -150_i32), ("refuse", "filter", 0)] {
        const OUTPUT: u32 = 3;
        let hook = Attributes::default().number(1, OUTPUT).bytes(2, &priority.to_be_bytes());
        let chain = Attributes::default().text(1, TABLE).text(3, name).nested(4, &hook).text(7, kind);
        batch.add(NEW_CHAIN, ACK | CREATE, &own, &chain);
    }
    let (udp, tcp) = (|| is(Meta::Protocol, &[UDP]), || is(Meta::Protocol, &[TCP]));
    let elsewhere = || [is(Meta::Outgoing, &LOOPBACK.to_ne_bytes()), is_elsewhere()].concat();
    let private = PRIVATE.iter().map(|(network, prefix)| ("lead", [is_in(*network, *prefix), vec![leave()]].concat()));
    let before = [
        ("lead", [is(Meta::User, &REDIRECTOR_USER.to_ne_bytes()), vec![leave()]].concat()),
        ("lead", [udp(), is_to_port(DNS), redirect(doors.questions)].concat()),
        ("lead", [tcp(), is_to_port(DNS), redirect(doors.connections)].concat()),
    ];
    let after = [
        ("lead", [elsewhere(), tcp(), redirect(doors.connections)].concat()),
        // A client that waits for its first answer does not hear of a refusal in any other way.
        ("refuse", [elsewhere(), tcp(), vec![reject(Reject::Reset)]].concat()),
        ("refuse", [elsewhere(), vec![reject(Reject::Prohibited)]].concat()),
    ];
    for (chain, expressions) in before.into_iter().chain(private).chain(after) {
        let mut list = Attributes::default();
        for expression in expressions {
            list = list.nested(1, &expression);
        }
        let rule = Attributes::default().text(1, TABLE).text(2, chain).nested(4, &list);
        batch.add(NEW_RULE, ACK | CREATE | APPEND, &own, &rule);
    }
    batch.add(BATCH_END, 0, &all, &Attributes::default());
    batch
}

// Expressions. What is looked at goes to register 1, from where it is compared or used.
const REGISTER: u32 = 1;

#[derive(Clone, Copy)]
enum Meta {
    Outgoing = 5,
    User = 10,
    Protocol = 16,
}

fn expression(name: &str, data: &Attributes) -> Attributes {
    Attributes::default().text(1, name).nested(2, data)
}

fn equals(value: &[u8]) -> Attributes {
    const EQUAL: u32 = 0;
    let value = Attributes::default().bytes(1, value);
    expression("cmp", &Attributes::default().number(1, REGISTER).number(2, EQUAL).nested(3, &value))
}

fn is(key: Meta, value: &[u8]) -> Vec<Attributes> {
    let load = Attributes::default().number(1, REGISTER).number(2, key as u32);
    vec![expression("meta", &load), equals(value)]
}

fn is_to_port(port: u16) -> Vec<Attributes> {
    const TRANSPORT: u32 = 2;
    let load = Attributes::default().number(1, REGISTER).number(2, TRANSPORT).number(3, 2).number(4, 2);
    vec![expression("payload", &load), equals(&port.to_be_bytes())]
}

fn is_in(network: [u8; 4], prefix: u32) -> Vec<Attributes> {
    const HEADER: u32 = 1;
    const DESTINATION: u32 = 16;
    let value = |bytes: &[u8]| Attributes::default().bytes(1, bytes);
    let load = Attributes::default().number(1, REGISTER).number(2, HEADER).number(3, DESTINATION).number(4, 4);
    let mask = value(&(!(u32::MAX >> prefix)).to_be_bytes());
    let masked = Attributes::default().number(1, REGISTER).number(2, REGISTER).number(3, 4);
    let masked = masked.nested(4, &mask).nested(5, &value(&[0; 4]));
    vec![expression("payload", &load), expression("bitwise", &masked), equals(&network)]
}

/// The destination is no address of this machine, no broadcast and no multicast.
fn is_elsewhere() -> Vec<Attributes> {
    const KIND: u32 = 3;
    const DESTINATION: u32 = 2;
    const UNICAST: u32 = 1;
    let load = Attributes::default().number(1, REGISTER).number(2, KIND).number(3, DESTINATION);
    vec![expression("fib", &load), equals(&UNICAST.to_ne_bytes())]
}

fn redirect(port: u16) -> Vec<Attributes> {
    const WITH_PORT: u32 = 2;
    let port = Attributes::default().bytes(1, &port.to_be_bytes());
    let load = Attributes::default().number(1, REGISTER).nested(2, &port);
    let go = Attributes::default().number(1, REGISTER).number(3, WITH_PORT);
    vec![expression("immediate", &load), expression("redir", &go)]
}

fn leave() -> Attributes {
    const VERDICT: u32 = 0;
    const RETURN: i32 = -5;
    let verdict = Attributes::default().bytes(1, &RETURN.to_be_bytes());
    let verdict = Attributes::default().nested(2, &verdict);
    expression("immediate", &Attributes::default().number(1, VERDICT).nested(2, &verdict))
}

#[derive(Clone, Copy)]
enum Reject {
    Prohibited,
    Reset,
}

fn reject(how: Reject) -> Attributes {
    const PROHIBITED: u8 = 13;
    let (kind, code) = match how {
        Reject::Prohibited => (0, PROHIBITED),
        Reject::Reset => (1, 0),
    };
    expression("reject", &Attributes::default().number(1, kind).bytes(2, &[code]))
}
