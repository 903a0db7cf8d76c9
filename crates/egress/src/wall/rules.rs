//! The rules, and what is left of them when they are read back.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;

use tale_core::reach::{
    METADATA_V4, NAT64, PRIVATE_V4, PRIVATE_V6, ROUTED_V6, Range4, Range6, carrying_private_v4, contains_v4,
    contains_v6,
};

use super::Wall;

/// The table that holds the rules, and nothing else.
pub const TABLE: &str = "tale_egress";

/// The family of tables, with IPv6 or without.
pub(super) fn family(v6: bool) -> &'static str {
    if v6 { "inet" } else { "ip" }
}

/// What the kernel must tell when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    /// The rules of the chain of outgoing packets, in their order, each in words.
    pub output: Vec<String>,
    /// The ranges of each set.
    pub sets: Vec<(&'static str, BTreeSet<String>)>,
}

fn refused_v4() -> Vec<Range4> {
    let all: Vec<Range4> = METADATA_V4.iter().chain(PRIVATE_V4).copied().collect();
    // Sets do not take a range that another one contains.
    let inside =
        |range: &Range4| all.iter().any(|other| other != range && other.1 <= range.1 && contains_v4(*other, range.0));
    all.iter().filter(|range| !inside(range)).copied().collect()
}

fn refused_v6() -> Vec<Range6> {
    let all: Vec<Range6> = carrying_private_v4().into_iter().chain(PRIVATE_V6.iter().copied()).collect();
    let inside =
        |range: &Range6| all.iter().any(|other| other != range && other.1 <= range.1 && contains_v6(*other, range.0));
    all.iter().filter(|range| !inside(range)).copied().collect()
}

fn ranges(of: impl Iterator<Item = (IpAddr, u8)>) -> BTreeSet<String> {
    let single = |address: &IpAddr, prefix: u8| prefix == if address.is_ipv4() { 32 } else { 128 };
    of.map(
        |(network, prefix)| {
            if single(&network, prefix) { network.to_string() } else { format!("{network}/{prefix}") }
        },
    )
    .collect()
}

fn sets(v6: bool) -> Vec<(&'static str, BTreeSet<String>)> {
    let four = |list: Vec<Range4>| ranges(list.into_iter().map(|(network, prefix)| (network.into(), prefix)));
    let six = |list: Vec<Range6>| ranges(list.into_iter().map(|(network, prefix)| (network.into(), prefix)));
    let mut sets = vec![("refused4", four(refused_v4()))];
    if v6 {
        sets.push(("refused6", six(refused_v6())));
        sets.push(("routed6", six(vec![ROUTED_V6, NAT64])));
    }
    sets
}

/// The rules of outgoing packets: as they are written for `nft`, and in the words of [`super::verify`].
fn output(wall: &Wall, v6: bool) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    // By the address that was asked for: an engine's own resolver answers somewhere else, behind a
    // translation that has happened by now.
    for resolver in &wall.resolvers {
        let word = if resolver.is_ipv4() { "ip" } else { "ip6" };
        if resolver.is_ipv6() && !v6 {
            continue;
        }
        for protocol in ["udp", "tcp"] {
            rules.push((
                format!("meta l4proto {protocol} ct original {word} daddr {resolver} ct original proto-dst 53 accept"),
                format!("l4proto {protocol}, ct original {word} daddr {resolver}, ct original proto-dst 53: accept"),
            ));
        }
    }
    rules.push(("ct state established,related accept".to_owned(), "ct state established+related: accept".to_owned()));
    // The health checks of this container.
    for (protocol, port) in [("tcp", wall.proxy), ("udp", wall.dns), ("tcp", wall.dns)] {
        rules.push((
            format!("ip daddr 127.0.0.1 {protocol} dport {port} accept"),
            format!("ip daddr 127.0.0.1, {protocol} dport {port}: accept"),
        ));
    }
    rules.push((
        "ip daddr @refused4 reject with icmp type admin-prohibited".to_owned(),
        "ip daddr @refused4: reject".to_owned(),
    ));
    if v6 {
        // Without these no neighbour is found.
        rules.push((
            "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert, mld2-listener-report } accept"
                .to_owned(),
            "icmpv6 type mld2-listener-report+nd-neighbor-advert+nd-neighbor-solicit+nd-router-solicit: accept"
                .to_owned(),
        ));
        for (condition, words) in [("@refused6", "ip6 daddr @refused6"), ("!= @routed6", "ip6 daddr != @routed6")] {
            rules.push((
                format!("ip6 daddr {condition} reject with icmpv6 type admin-prohibited"),
                format!("{words}: reject"),
            ));
        }
    }
    rules
}

/// One transaction that replaces whatever the table held.
pub(super) fn ruleset(wall: &Wall, v6: bool) -> String {
    let family = family(v6);
    let mut text = format!("table {family} {TABLE}\ndelete table {family} {TABLE}\ntable {family} {TABLE} {{\n");
    for (name, ranges) in sets(v6) {
        let kind = if name.ends_with('4') { "ipv4_addr" } else { "ipv6_addr" };
        let list = ranges.into_iter().collect::<Vec<_>>().join(", ");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "set {name} {{ type {kind}; flags interval; elements = {{ {list} }} }}");
    }
    text.push_str("chain forward { type filter hook forward priority -300; policy drop; }\n");
    text.push_str("chain output { type filter hook output priority 0; policy accept;\n");
    for (rule, _) in output(wall, v6) {
        let _ = writeln!(text, "{rule}");
    }
    text.push_str("}\n}\n");
    text
}

pub(super) fn expected(wall: &Wall, v6: bool) -> Expected {
    Expected { output: output(wall, v6).into_iter().map(|(_, words)| words).collect(), sets: sets(v6) }
}
