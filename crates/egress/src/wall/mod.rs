//! The second wall: a packet filter that is in place before anything listens.
//!
//! It knows nothing of names or requests. No packet is forwarded between the attached networks, and none
//! leaves for an address that is not on the public internet, apart from questions to the resolvers. The
//! rules are one transaction, and they are read back before they are believed.

mod alone;
mod apply;
pub mod ipv6;
mod rules;
mod standing;
mod verify;

use std::io;
use std::net::{IpAddr, SocketAddr};

pub use self::ipv6::Ipv6;
pub use self::rules::TABLE;
pub(crate) use self::standing::Watch;

/// What the rules depend on.
#[derive(Debug, Clone)]
pub struct Wall {
    /// The servers that may be asked for names.
    pub resolvers: Vec<IpAddr>,
    /// Port of the proxy, for health checks on its own machine.
    pub proxy: u16,
    /// Port of the DNS service, as [`Self::proxy`].
    pub dns: u16,
}

/// A wall that stands.
#[derive(Debug)]
pub struct Built {
    /// What protects IPv6.
    pub ipv6: Ipv6,
    /// Tells whether it still does.
    pub(crate) watch: Watch,
}

/// Why there is no wall.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// The process may not change its network.
    #[error(
        "the packet filter needs the capability NET_ADMIN, which this process does not have; add it to the container. \
         TALE_SKIP_SSRF_FIREWALL=1 starts without a filter, for development only"
    )]
    NotPermitted,
    /// The network is not this process's own.
    #[error(
        "another program listens on {0} in this network, and the packet filter would cut it off: give the way out of \
         sandboxes a network of its own, as in a container. TALE_SKIP_SSRF_FIREWALL=1 starts without a filter, for \
         development only"
    )]
    Shared(SocketAddr),
    /// The kernel does not tell who uses the network.
    #[error("who else uses this network cannot be read: {0}")]
    Unread(io::Error),
    /// The program is missing.
    #[error("the packet filter needs the program `nft`, which cannot be run ({0}); install nftables")]
    NoProgram(io::Error),
    /// The kernel does not take the rules.
    #[error(
        "the packet filter cannot be installed: {0}. The kernel must support nftables (nf_tables, nft_ct, nft_reject)"
    )]
    Refused(String),
    /// The kernel has other rules than it was given.
    #[error("the packet filter is not what was installed: {0}")]
    Differs(String),
    /// IPv6 is open.
    #[error(
        "IPv6 is on and can neither be filtered ({filter}) nor switched off ({off}). Start the container with the sysctls \
         net.ipv6.conf.all.disable_ipv6=1 and net.ipv6.conf.default.disable_ipv6=1, or give it a kernel with an IPv6 filter"
    )]
    Ipv6 {
        /// Why it cannot be filtered.
        filter: String,
        /// Why it cannot be switched off.
        off: String,
    },
}

/// Installs the rules, anew when they are there already, and reads them back.
///
/// # Errors
/// [`WallError`]; nothing may listen then.
pub fn build(wall: &Wall) -> Result<Built, WallError> {
    if !crate::privileges::has_net_admin() {
        return Err(WallError::NotPermitted);
    }
    if let Some(other) = alone::somebody_else().map_err(WallError::Unread)? {
        return Err(WallError::Shared(other));
    }
    let ipv6 = match install(wall, true) {
        Ok(()) if ipv6::is_off() => Ipv6::Off,
        Ok(()) => Ipv6::Filtered,
        Err(missing @ WallError::NoProgram(_)) => return Err(missing),
        Err(filter) => {
            // Perhaps only the part for IPv6 is missing, which nobody needs where IPv6 is off.
            install(wall, false)?;
            if wall.resolvers.iter().any(IpAddr::is_ipv6) {
                let off = "a resolver has an address of IPv6".to_owned();
                return Err(WallError::Ipv6 { filter: filter.to_string(), off });
            }
            ipv6::switch_off().map_err(|off| WallError::Ipv6 { filter: filter.to_string(), off })?;
            Ipv6::Off
        }
    };
    let watch = Watch::new(wall).map_err(WallError::Unread)?;
    if !watch.stands() {
        return Err(WallError::Differs("a packet that it must refuse is not refused".to_owned()));
    }
    Ok(Built { ipv6, watch })
}

fn install(wall: &Wall, v6: bool) -> Result<(), WallError> {
    apply::run(&["-f", "-"], &rules::ruleset(wall, v6))?;
    let found = apply::run(&["-j", "list", "table", rules::family(v6), TABLE], "")?;
    verify::compare(&found, &rules::expected(wall, v6)).map_err(WallError::Differs)
}
