//! What the process may do besides serving: nothing, once its ports are bound and its filter is in place.

use rustix::process::{Gid, Uid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// The user that nothing belongs to.
const NOBODY: u32 = 65_534;

/// Whether the process may change the network it lives in.
#[must_use]
pub fn has_net_admin() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN))
}

/// Gives up everything, for good. The process must have one thread only: these calls change one, and
/// later threads are like the one that starts them.
///
/// # Errors
/// When the process still may more than it should.
pub fn give_up() -> std::io::Result<()> {
    if getuid().is_root() && capabilities(None)?.effective.contains(CapabilitySet::SETUID | CapabilitySet::SETGID) {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    if capabilities(None)?.permitted.is_empty() { Ok(()) } else { Err(std::io::ErrorKind::PermissionDenied.into()) }
}
