//! Which addresses are on the public internet.
//!
//! One table serves whoever judges an address inside the program and whoever writes rules for the
//! kernel, so that the two agree. Addresses of IPv6 that carry one of IPv4 are judged by what they carry.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How an address is judged, independent of any policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// On the public internet.
    Public,
    /// Loopback, private, link-local, multicast, reserved or set apart for documents.
    Private,
    /// A cloud metadata service, which hands out the machine's own credentials.
    Metadata,
}

/// A range: its first address and the length of its prefix in bits.
pub type Range4 = (Ipv4Addr, u8);
/// As [`Range4`].
pub type Range6 = (Ipv6Addr, u8);

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Range4 {
    (Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Range6 {
    (Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// Metadata services of clouds at addresses of IPv4.
pub const METADATA_V4: &[Range4] = &[
    // Link-local; the large clouds share 169.254.169.254.
    v4(169, 254, 0, 0, 16),
    // Alibaba Cloud.
    v4(100, 100, 100, 200, 32),
    // Oracle Cloud, first generation.
    v4(192, 0, 0, 192, 32),
    // Azure's host agent, which has a public address.
    v4(168, 63, 129, 16, 32),
];

/// What else of IPv4 is not on the public internet.
pub const PRIVATE_V4: &[Range4] = &[
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    // Carrier NAT, RFC 6598.
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    // Protocol assignments, RFC 6890.
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    // Relays of 6to4.
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    // Benchmarks, RFC 2544.
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Multicast, then reserved with the broadcast address.
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

const METADATA_V6: &[Range6] = &[
    // Amazon.
    (Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254), 128),
    // Google.
    (Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254), 128),
];

/// The one part of IPv6 that is routed on the public internet. Everything outside is private, apart from [`NAT64`].
pub const ROUTED_V6: Range6 = v6(0x2000, 0, 0, 3);

/// The well-known prefix of NAT64: the last 32 bits are an address of IPv4.
pub const NAT64: Range6 = v6(0x64, 0xff9b, 0, 96);

const SIX_TO_FOUR: Range6 = v6(0x2002, 0, 0, 16);

/// What of [`ROUTED_V6`] is not on the public internet: protocol assignments with Teredo, and documents.
pub const PRIVATE_V6: &[Range6] = &[v6(0x2001, 0, 0, 23), v6(0x2001, 0x0db8, 0, 32), v6(0x3fff, 0, 0, 20)];

/// The ranges of IPv6 that carry a private address of IPv4 in a form that may be routed.
#[must_use]
pub fn carrying_private_v4() -> Vec<Range6> {
    let carried = METADATA_V4.iter().chain(PRIVATE_V4);
    carried
        .flat_map(|&(network, prefix)| {
            let bits = u128::from(network.to_bits());
            let nat64 = Ipv6Addr::from_bits(NAT64.0.to_bits() | bits);
            let six_to_four = Ipv6Addr::from_bits(SIX_TO_FOUR.0.to_bits() | bits << 80);
            [(nat64, NAT64.1 + prefix), (six_to_four, SIX_TO_FOUR.1 + prefix)]
        })
        .collect()
}

/// Whether `range` contains `address`.
#[must_use]
pub fn contains_v4(range: Range4, address: Ipv4Addr) -> bool {
    let shift = 32 - u32::from(range.1.min(32));
    (range.0.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
}

/// Whether `range` contains `address`.
#[must_use]
pub fn contains_v6(range: Range6, address: Ipv6Addr) -> bool {
    let shift = 128 - u32::from(range.1.min(128));
    (range.0.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
}

/// Where an address is.
#[must_use]
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => reach_v6(v6),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let within = |ranges: &[Range4]| ranges.iter().any(|range| contains_v4(*range, address));
    if within(METADATA_V4) {
        Reach::Metadata
    } else if within(PRIVATE_V4) {
        Reach::Private
    } else {
        Reach::Public
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return reach_v4(mapped);
    }
    let within = |ranges: &[Range6]| ranges.iter().any(|range| contains_v6(*range, address));
    let carried = |shift: u32| {
        let [.., a, b, c, d] = (address.to_bits() >> shift).to_be_bytes();
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    if within(METADATA_V6) {
        Reach::Metadata
    } else if contains_v6(NAT64, address) {
        carried(0)
    } else if contains_v6(SIX_TO_FOUR, address) {
        carried(80)
    } else if !contains_v6(ROUTED_V6, address) || within(PRIVATE_V6) {
        Reach::Private
    } else {
        Reach::Public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Reach {
        reach(text.parse().unwrap())
    }

    #[test]
    fn the_first_and_the_last_address_of_each_range_are_judged_and_their_neighbours_are_not() {
        for (inside, outside) in [
            (["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
            (["172.16.0.0", "172.31.255.255"], ["172.15.255.255", "172.32.0.0"]),
            (["100.64.0.0", "100.127.255.255"], ["100.63.255.255", "100.128.0.0"]),
            (["192.168.0.0", "192.168.255.255"], ["192.167.255.255", "192.169.0.0"]),
            (["198.18.0.0", "198.19.255.255"], ["198.17.255.255", "198.20.0.0"]),
            (["224.0.0.0", "255.255.255.255"], ["223.255.255.255", "8.8.8.8"]),
            (["2001::", "2001:1ff:ffff::1"], ["2001:200::", "2001:4860::8888"]),
        ] {
            assert_eq!(inside.map(of), [Reach::Private; 2], "{inside:?}");
            assert_eq!(outside.map(of), [Reach::Public; 2], "{outside:?}");
        }
    }

    #[test]
    fn an_address_of_ipv4_is_judged_in_every_form_of_ipv6_that_carries_it() {
        for text in [
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "168.63.129.16",
        ] {
            assert_eq!(of(text), Reach::Metadata, "{text}");
        }
        for text in
            ["::", "::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::1", "64:ff9b::10.0.0.1", "2002:7f00:1::"]
        {
            assert_eq!(of(text), Reach::Private, "{text}");
        }
        for text in ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"] {
            assert_eq!(of(text), Reach::Public, "{text}");
        }
    }

    #[test]
    fn the_ranges_that_carry_private_addresses_are_those_that_are_judged_private() {
        for (network, prefix) in carrying_private_v4() {
            assert_ne!(reach(IpAddr::V6(network)), Reach::Public, "{network}/{prefix}");
        }
        let nat64 =
            carrying_private_v4().into_iter().any(|range| contains_v6(range, "64:ff9b::10.9.8.7".parse().unwrap()));
        assert!(nat64);
    }
}
