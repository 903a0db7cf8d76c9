//! Room for the sockets of as many connections as are allowed.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::RESERVE;
use crate::tunnel::MAX_PIPES;

/// Files besides connections: listeners, resolvers' sockets, the runtime's own.
const BESIDES: u64 = 64;

/// Raises the soft limit to what `max_clients` connections need, and says when even the hard limit is too low.
pub(crate) fn make_room(max_clients: usize) {
    let clients = u64::try_from(max_clients.saturating_add(RESERVE)).unwrap_or(u64::MAX);
    let needed = clients.saturating_mul(2).saturating_add(2 * MAX_PIPES as u64 + BESIDES);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|soft| soft >= needed) {
        return;
    }
    let reachable = maximum.map_or(needed, |hard| needed.min(hard));
    if reachable < needed {
        tracing::warn!(
            event = "egress.open_files",
            needed,
            limit = reachable,
            "the limit of open files is {reachable}, and SANDBOX_EGRESS_MAX_CLIENTS={max_clients} needs {needed}; \
             raise the container's limit, or connections beyond it wait"
        );
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum }) {
        Ok(()) => tracing::info!(
            event = "egress.open_files_raised",
            from = current,
            to = reachable,
            "raised the limit of open files"
        ),
        Err(error) => {
            tracing::warn!(event = "egress.open_files", %error, "the limit of open files could not be raised");
        }
    }
}
