//! The environment, declared once: every variable with its roles, form, default, reaction, secrecy
//! and help ([`registry`]), how values are parsed ([`kind`]), where they come from ([`environment`],
//! [`file`]), what is wrong with them ([`check()`]) and the typed settings that the roles are built
//! from ([`settings`]).
//!
//! Nothing else in the workspace reads the process environment; a test in `testkit` holds that. The
//! program takes one snapshot ([`Environment`]) at start and hands it around as an [`EnvSource`], so
//! tests pass a map and nobody changes the process. An empty value counts as unset. A bad value is
//! reported with all the others and never turns into a default unless that is its declared reaction.

pub mod check;
pub mod effective;
pub mod egress;
pub mod environment;
pub mod example;
pub mod file;
pub mod kind;
mod kind_words;
mod mail;
mod proxy;
pub mod reader;
pub mod reference;
pub mod reference_page;
pub mod registry;
pub mod settings;
pub mod site;
pub mod spawner;
pub mod words;

pub use check::{Scope, check};
pub use egress::EgressSettings;
pub use environment::{Environment, Origin};
pub use mail::{MailSettings, MailTls};
pub use proxy::{ProxySettings, TlsMode};
pub use reader::{EnvProblem, EnvProblems, EnvSource, MapEnv, Severity};
pub use registry::{Role, Section, Var};
pub use settings::{
    AnalyticsSettings, ConfigFileSettings, DatabaseSettings, GatewayAdmin, GatewayLink, GatewayPorts, GatewaySettings,
    ModelCallSettings, ObjectStoreSettings, PlatformSettings, ReportSettings, SandboxLink, SecretSettings, Settings,
    StoreSettings, TrustedHeaderNames, report_settings, role_of, secret_values,
};
pub use site::SiteSettings;
pub use spawner::{AgentLimits, SpawnerSettings};
pub use words::Lang;
