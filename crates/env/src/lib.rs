//! The environment, declared once: every variable that Tale reads, with its meaning, range and
//! secrecy ([`registry`]), how values are read ([`reader`]) and the typed settings that the roles
//! are built from ([`settings`]).
//!
//! Nothing else in the workspace reads the process environment; a test in `testkit` holds that.
//! Reading goes through [`EnvSource`], so tests pass a map and nobody changes the process.
//! An empty value counts as unset. A bad value is reported with all the others and stops the
//! start; it never turns into a default.

pub mod reader;
pub mod registry;
pub mod settings;

pub use reader::{EnvProblem, EnvProblems, EnvSource, MapEnv, ProcessEnv};
pub use registry::{REGISTRY, Var};
pub use settings::{DatabaseSettings, ObjectStoreSettings, SecretSettings, Settings, SiteSettings};
