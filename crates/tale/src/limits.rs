//! What the system lets one process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process open as many files and sockets as the system allows it: every connection is
/// one, and the usual soft limit of 1,024 is fewer than the open tabs of a large organization.
pub(crate) fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(from = current, to = maximum, "raised the limit of open files"),
        Err(error) => tracing::warn!(%error, limit = current, "the limit of open files could not be raised"),
    }
}
