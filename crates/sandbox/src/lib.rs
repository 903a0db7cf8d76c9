//! Sandboxes: who may start one, what lives and for how long, and who waits.
//!
//! A *session* is an isolated environment that survives many commands; its *workspace* outlives its *compute*.
//! [`Spawner`] keeps the registry and takes every decision; [`admission`] decides who may start, as a pure
//! function; [`session`] what a pass does with one session, likewise. What runs sessions is behind [`Backend`],
//! the daemon inside each of them behind [`Daemons`], the host behind [`spawner::Host`], so all of it
//! is driven in simulated time.
//!
//! Growth: the registry holds one entry a session (at most a few hundred), a decision walks it and the waiting
//! line once; a pass asks each idle session's daemon once a minute, eight at a time.

pub mod admission;
pub mod api;
pub mod backend;
pub mod capacity;
pub mod daemon;
pub mod docker;
pub mod host;
pub mod profile;
pub mod role;
pub mod session;
pub mod spawner;
pub mod workspaces;

pub use backend::Backend;
pub use daemon::Daemons;
pub use spawner::Spawner;
