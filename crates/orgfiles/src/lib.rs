//! Configuration files: what operators may edit by hand, per organization and for the deployment.
//!
//! ```text
//! $TALE_CONFIG_DIR/
//!   default/…           the deployment's own
//!   <organization>/…    one folder per organization, named by its slug
//!     object-storage/connection.json
//!     object-storage/connection.secrets.json
//!     knowledge/connection.json
//!     knowledge/connection.secrets.json
//!     branding/branding.yml
//!     governance/<policy>.yml
//!     providers/<name>.yml
//! ```
//!
//! - [`store`]: typed reading and atomic writing below that directory.
//! - [`folder`]: folders whose files share a form.
//! - [`copy`]: files that Tale keeps beside its database, and whether somebody has touched one.
//! - [`watch`]: what changes while somebody looks at it.
//! - [`keys`]: the age keys that secrets are encrypted to.
//! - [`sops`]: the form of an encrypted `*.secrets.json`, which the `sops` program reads and writes
//!   as well.
//! - [`remembered`]: what a pair of files said, read again only after they changed.
//!
//! The files are the source of truth. A file that is there but cannot be used is an error, never a
//! reason to fall back to another one. Nothing is kept in memory: a reader that is called often
//! compares a [`store::Stamp`], which costs one look at the directory entry.

pub mod copy;
pub mod folder;
pub mod keys;
pub mod remembered;
pub mod secret;
pub mod sops;
pub mod store;
pub mod watch;

pub use folder::{Folder, Listing};
pub use keys::{AgeKeys, KeyError};
pub use remembered::Remembered;
pub use store::{ConfigError, ConfigStore, FilePath, Scope, Stamp};
pub use watch::{ChangeKind, FileChange, FileChanges, FileWatch, Heard};
