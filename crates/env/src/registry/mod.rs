//! Every variable, declared once: name, roles, form, default, reaction, secrecy and help.
//!
//! One module per chapter of the reference. A variable is [`Use::Read`] only when code acts on it;
//! everything else that operators of such a deployment may have set is recognized and explained, so
//! that no value is silently without effect. To make a variable real, change its use and read it in
//! [`crate::settings`].

mod agent_turns;
mod cli;
mod connectors;
mod database;
mod development;
mod domain;
mod feature_flags;
mod knowledge;
mod mail;
mod object_store;
mod observability;
mod part;
mod sandbox;
mod sandbox_agents;
mod sandbox_devices;
mod sandbox_kubernetes;
mod secrets;
mod session;
mod sessions;
mod topology;
mod video;

use crate::kind::Kind;
use crate::words::{Words, words};

pub use agent_turns::{
    LLM_GATEWAY_ADMIN_PORT, LLM_GATEWAY_PORT, SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY,
    SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS, SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY,
    SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS, SANDBOX_LLM_GATEWAY_URL,
};
pub use cli::{DOCKER_HOST, FORCE_COLOR, NO_COLOR};
pub use database::{
    APP_DB_NAME, DATABASE_POOL_MAX, DATABASE_URL, DB_PASSWORD, DB_PORT, KNOWLEDGE_DATABASE_URL, KNOWLEDGE_DB_NAME,
    KNOWLEDGE_DB_POOL_MAX, KNOWLEDGE_INDEX_REPAIR_DISABLED, KNOWLEDGE_INDEX_REPAIR_INLINE_MAX_BYTES, POSTGRES_CA_FILE,
    POSTGRES_USER,
};
pub use development::{HOME, TALE_DATA_DIR, TALE_EMBEDDED_POSTGRES_DIR, TALE_SETUP_TOKEN, TALE_WEB_DIR, XDG_DATA_HOME};
pub use domain::{
    ADDITIONAL_SITE_URLS, BASE_PATH, HOST, SITE_URL, TLS_CERT_FILE, TLS_EMAIL, TLS_KEY_FILE, TLS_MODE,
    TOTP_CLIENT_NAME, TOTP_ENVIRONMENT, TRUSTED_PROXIES,
};
pub use feature_flags::{
    TALE_ALLOW_OPEN_SIGN_UP, TALE_ALLOW_PRIVATE_PROVIDER_HOSTS, TALE_CONFIG_DIR, TALE_FILE_EVENTS,
    TALE_ORGANIZATION_CREATORS, TALE_RETENTION_DISABLED, TALE_SKIP_SSRF_FIREWALL, TRUSTED_EMAIL_HEADER,
    TRUSTED_NAME_HEADER, TRUSTED_ROLE_HEADER, TRUSTED_SECRET_HEADER, TRUSTED_TEAMS_HEADER,
};
pub use mail::{SMTP_CA_FILE, SMTP_FROM, SMTP_HOST, SMTP_PASSWORD, SMTP_PORT, SMTP_TLS, SMTP_USERNAME};
pub use object_store::{
    MINIO_ROOT_PASSWORD, MINIO_ROOT_USER, OBJECT_STORE_ACCESS_KEY, OBJECT_STORE_BUCKET, OBJECT_STORE_ENDPOINT,
    OBJECT_STORE_FORCE_PATH_STYLE, OBJECT_STORE_PREFIX, OBJECT_STORE_PUBLIC_ENDPOINT, OBJECT_STORE_REGION,
    OBJECT_STORE_SECRET_KEY, OBJECT_STORE_UPSTREAM,
};
pub use observability::{
    BACKEND_SENTRY_TRACES_SAMPLE_RATE, METRICS_BEARER_TOKEN, SENTRY_DSN, SENTRY_ENVIRONMENT, SENTRY_TRACES_SAMPLE_RATE,
    TALE_LOG, TALE_LOG_FORMAT, UMAMI_PROXY_TOKEN, UMAMI_URL, UMAMI_WEBSITE_ID,
};
pub use part::Part;
pub use sandbox::{
    EXTERNAL_AGENT_GATEWAY_URL, SANDBOX_BACKEND, SANDBOX_CPU_PRESSURE_PERCENT, SANDBOX_CRITICAL_FREE_DISK,
    SANDBOX_DOCKER_DATA_PATH, SANDBOX_DOCKER_DATA_ROOT, SANDBOX_EGRESS_NETWORK, SANDBOX_EGRESS_PROXY,
    SANDBOX_HTTP_API_BASE_URL, SANDBOX_MAX_REQUEST_BODY_BYTES, SANDBOX_MAX_SESSIONS, SANDBOX_MIN_FREE_DISK,
    SANDBOX_MIN_FREE_MEMORY, SANDBOX_PACKAGE_CACHE_RETENTION, SANDBOX_PORT, SANDBOX_RUNTIME, SANDBOX_RUNTIME_IMAGE,
    SANDBOX_SKIP_IMAGE_WARMUP, SANDBOX_URL, TALE_PLATFORM_SHARED_CONFIG_DIR,
};
pub use sandbox_agents::{
    SANDBOX_AGENT_CPU_SHARES, SANDBOX_AGENT_CPUS, SANDBOX_AGENT_FSIZE_BYTES, SANDBOX_AGENT_MEMORY,
    SANDBOX_AGENT_NOFILE_HARD, SANDBOX_AGENT_NOFILE_SOFT, SANDBOX_AGENT_PIDS, SANDBOX_AGENT_PROFILE,
    SANDBOX_AGENT_SHM_SIZE, SANDBOX_AGENT_TMP_SIZE, SANDBOX_AGENT_USER, SANDBOX_BUN_CACHE_VOLUME_PREFIX,
    SANDBOX_EXEC_STALL_MINUTES, SANDBOX_HOST_SESSION_ROOT, SANDBOX_NPM_CACHE_VOLUME_PREFIX,
    SANDBOX_PIP_CACHE_VOLUME_PREFIX, SANDBOX_SESSION_CREATE_TIMEOUT_MS, SANDBOX_SESSION_EXEC_DEFAULT_TIMEOUT_MS,
    SANDBOX_SESSION_EXEC_MAX_TIMEOUT_MS, SANDBOX_SESSION_MAX_IDLE_MS, SANDBOX_SESSION_MAX_LIFETIME_MS,
    SANDBOX_SESSION_MAX_LINGER_MS, SANDBOX_SESSION_RELEASED_IDLE_MS, SANDBOX_STDERR_MAX_BYTES,
    SANDBOX_STDOUT_MAX_BYTES,
};
pub use sandbox_devices::{
    SANDBOX_EGRESS_ALLOWLIST, SANDBOX_EGRESS_CONNECT_PORTS, SANDBOX_EGRESS_IDLE_SECONDS, SANDBOX_EGRESS_MAX_CLIENTS,
    SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION, SANDBOX_INSTANCE, SANDBOX_TRANSPARENT_EGRESS,
};
pub use secrets::{
    BETTER_AUTH_SECRET, ENCRYPTION_SECRET, ENCRYPTION_SECRET_HEX, ENCRYPTION_SECRET_PREVIOUS_HEX, INSTANCE_SECRET,
    SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD, SANDBOX_LLM_GATEWAY_ADMIN_USERNAME, SANDBOX_TOKEN, SANDBOX_TOKEN_PREVIOUS,
    SOPS_AGE_KEY, SOPS_AGE_KEY_FILE, TALE_AUDIT_PEPPER, TALE_ENV_KEY_HOSTS,
};
pub use sessions::{SESSION_COOKIE_CACHE_SECONDS, SESSION_IDLE_TIMEOUT_MINUTES, TALE_CONTACT_SUPPORT_URL};
pub use topology::{
    BACKEND_UPSTREAM, PLATFORM_UPSTREAM, PORT, PROXY_HTTPS_PORT, ROLE, SHUTDOWN_DRAIN_MS, TALE_BACKEND_URL, TALE_ROLE,
    TALE_WORKER_PORT, WORKER_CONCURRENCY,
};

/// Prefix of the variables that an `env` provider credential may name (MOD-34).
pub const PROVIDER_KEY_PREFIX: &str = "TALE_PROVIDER_KEY_";

/// How the variables begin that hold secrets of brokers.
pub const TOKEN_SOURCE_PREFIX: &str = "TALE_TOKEN_SOURCE_";

/// What a process of a deployment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The web tier.
    Platform,
    /// The HTTP doors.
    BackendApi,
    /// The job runner.
    BackendWorker,
    /// Web tier, doors and jobs in one process.
    All,
    /// The reverse proxy.
    Proxy,
    /// The bundled Postgres.
    Db,
    /// The bundled object store.
    ObjectStore,
    /// The sandbox spawner.
    Sandbox,
    /// The way out of sandboxes.
    SandboxEgress,
    /// The model gateway.
    LlmGateway,
    /// The command line.
    Cli,
    /// The documentation site.
    Docs,
    /// Build tooling.
    Build,
    /// Inside a sandbox session.
    Session,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::All,
        Self::Platform,
        Self::BackendApi,
        Self::BackendWorker,
        Self::Proxy,
        Self::Db,
        Self::ObjectStore,
        Self::Sandbox,
        Self::SandboxEgress,
        Self::LlmGateway,
        Self::Cli,
        Self::Docs,
        Self::Build,
        Self::Session,
    ];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::BackendApi => "backend-api",
            Self::BackendWorker => "backend-worker",
            Self::All => "all",
            Self::Proxy => "proxy",
            Self::Db => "db",
            Self::ObjectStore => "object-store",
            Self::Sandbox => "sandbox",
            Self::SandboxEgress => "sandbox-egress",
            Self::LlmGateway => "llm-gateway",
            Self::Cli => "cli",
            Self::Docs => "docs",
            Self::Build => "build",
            Self::Session => "session",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether a process of this role reads `var`. `all` is three roles in one process.
    #[must_use]
    pub fn reads(self, var: &Var) -> bool {
        let parts: &[Self] = match self {
            Self::All => &[Self::All, Self::Platform, Self::BackendApi, Self::BackendWorker],
            _ => &[self],
        };
        var.roles.iter().any(|role| parts.contains(role))
    }
}

/// What happens when the value cannot be used (DCF-5, DCF-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// The process does not start.
    Refuse,
    /// A warning, and the default holds.
    UseDefault,
    /// A warning, and what it would switch on stays off.
    Off,
    /// A warning, and the nearest value of the range holds.
    Clamp,
    /// Nothing.
    Ignore,
}

impl Reaction {
    /// As it is written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::UseDefault => "default",
            Self::Off => "off",
            Self::Clamp => "clamp",
            Self::Ignore => "ignore",
        }
    }

    /// In a table.
    #[must_use]
    pub fn words(self) -> Words {
        match self {
            Self::Refuse => words("does not start", "startet nicht", "ne démarre pas"),
            Self::UseDefault => words(
                "warns and uses the default",
                "warnt und nimmt den Standardwert",
                "avertit et prend la valeur par défaut",
            ),
            Self::Off => words("warns and stays off", "warnt und bleibt aus", "avertit et reste désactivé"),
            Self::Clamp => words(
                "warns and uses the nearest bound",
                "warnt und nimmt die nächste Grenze",
                "avertit et prend la borne la plus proche",
            ),
            Self::Ignore => words("nothing", "nichts", "rien"),
        }
    }
}

/// What this release does with a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Code acts on it.
    Read,
    /// What it steered was replaced; it is accepted, and this says by what.
    Accepted(Words),
    /// It belongs to a part that this release does not contain.
    NotYet(Part),
    /// Left over from older releases of the reference; ignored without a word (DCF-7).
    Obsolete,
    /// A name that exists only inside sandbox sessions; operators never set it (DCF-8).
    Session,
}

impl Use {
    /// As it is written in lists and JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Accepted(_) => "accepted",
            Self::NotYet(_) => "not-yet",
            Self::Obsolete => "obsolete",
            Self::Session => "session",
        }
    }

    /// Why a value has no effect; `None` for what is read.
    #[must_use]
    pub fn reason(&self) -> Option<Words> {
        match self {
            Self::Read => None,
            Self::Accepted(why) => Some(*why),
            Self::NotYet(part) => Some(part.words()),
            Self::Obsolete => Some(words(
                "A leftover of older releases; nothing reads it.",
                "Ein Überbleibsel älterer Versionen; nichts liest es.",
                "Un vestige d’anciennes versions ; rien ne la lit.",
            )),
            Self::Session => Some(words(
                "Set inside sandbox sessions only; operators never set it.",
                "Nur innerhalb von Sandbox-Sitzungen gesetzt; Betreiber setzen es nie.",
                "Définie uniquement dans les sessions sandbox ; un opérateur ne la définit jamais.",
            )),
        }
    }
}

/// What holds when a variable is unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// Nothing: the feature is off or the question does not arise.
    Unset,
    /// This value.
    Value(&'static str),
    /// Something that is derived, in words.
    Derived(Words),
}

/// Whether a role can start without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Required {
    /// It can.
    No,
    /// It cannot.
    Always,
    /// It cannot, unless one of these is set.
    Unless(&'static [&'static str]),
}

/// A variable as the operator meets it.
#[derive(Debug, Clone, Copy)]
pub struct Var {
    /// The name in the environment. `<…>` stands for capital letters, digits and underscores.
    pub name: &'static str,
    /// The chapter of the reference it stands in.
    pub section: Section,
    /// Who reads it.
    pub roles: &'static [Role],
    /// The accepted form.
    pub kind: Kind,
    /// What holds when it is unset.
    pub default: Default,
    /// Whether its readers need it.
    pub required: Required,
    /// Whether its value is never shown.
    pub secret: bool,
    /// What an unusable value does.
    pub reaction: Reaction,
    /// What this release does with it.
    pub usage: Use,
    /// Whether an empty value differs from an unset one (DCF-4).
    pub empty_counts: bool,
    /// The value in the shipped example file; its line is active there.
    pub example: Option<&'static str>,
    /// Values that are published somewhere and therefore protect nothing (DCF-53).
    pub placeholders: &'static [&'static str],
    /// The first release that knows it.
    pub since: &'static str,
    /// What it does.
    pub help: Words,
}

impl Var {
    const fn new(name: &'static str, section: Section, roles: &'static [Role], kind: Kind) -> Self {
        Self {
            name,
            section,
            roles,
            kind,
            default: Default::Unset,
            required: Required::No,
            secret: false,
            reaction: match kind {
                Kind::Flag(_) => Reaction::Off,
                _ => Reaction::Refuse,
            },
            usage: Use::Read,
            empty_counts: false,
            example: None,
            placeholders: &[],
            since: "0.1.0",
            help: words("", "", ""),
        }
    }

    const fn value(mut self, default: &'static str) -> Self {
        self.default = Default::Value(default);
        self
    }

    const fn derived(mut self, en: &'static str, de: &'static str, fr: &'static str) -> Self {
        self.default = Default::Derived(words(en, de, fr));
        self
    }

    const fn required(mut self) -> Self {
        self.required = Required::Always;
        self
    }

    const fn unless(mut self, others: &'static [&'static str]) -> Self {
        self.required = Required::Unless(others);
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    const fn reaction(mut self, reaction: Reaction) -> Self {
        self.reaction = reaction;
        self
    }

    const fn not_yet(mut self, part: Part) -> Self {
        self.usage = Use::NotYet(part);
        self
    }

    const fn accepted(mut self, en: &'static str, de: &'static str, fr: &'static str) -> Self {
        self.usage = Use::Accepted(words(en, de, fr));
        self
    }

    const fn obsolete(mut self) -> Self {
        self.usage = Use::Obsolete;
        self.reaction = Reaction::Ignore;
        self
    }

    const fn example(mut self, value: &'static str) -> Self {
        self.example = Some(value);
        self
    }

    const fn placeholders(mut self, values: &'static [&'static str]) -> Self {
        self.placeholders = values;
        self
    }

    const fn empty_counts(mut self) -> Self {
        self.empty_counts = true;
        self
    }

    const fn help(mut self, en: &'static str, de: &'static str, fr: &'static str) -> Self {
        self.help = words(en, de, fr);
        self
    }

    /// Whether code acts on it.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self.usage, Use::Read)
    }

    /// The fixed parts before and after the free one, for a family of names.
    #[must_use]
    pub fn family(&self) -> Option<(&'static str, &'static str)> {
        let (before, rest) = self.name.split_once('<')?;
        Some((before, rest.split_once('>')?.1))
    }

    /// Whether this declares `name`.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        let Some((before, after)) = self.family() else { return self.name == name };
        name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).is_some_and(|free| {
            !free.is_empty() && free.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        }) && !before.is_empty()
    }
}

macro_rules! sections {
    ($($variant:ident $name:literal $en:literal $de:literal $fr:literal;)+) => {
        /// A chapter of the reference.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Section {
            $(#[doc = $en] $variant,)+
        }

        impl Section {
            /// All of them, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// As it is written in filters.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The heading.
            #[must_use]
            pub fn title(self) -> Words {
                match self { $(Self::$variant => words($en, $de, $fr)),+ }
            }

            /// The section of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|section| section.name() == name)
            }
        }
    };
}

sections! {
    Domain "domain" "Addresses" "Adressen" "Adresses";
    Tls "tls" "TLS" "TLS" "TLS";
    Secrets "secrets" "Secrets" "Geheimnisse" "Secrets";
    Database "database" "Databases" "Datenbanken" "Bases de données";
    ObjectStore "object-store" "Object store" "Objektspeicher" "Stockage d’objets";
    Audit "audit" "Audit log" "Audit-Log" "Journal d’audit";
    Observability "observability" "Observability" "Beobachtbarkeit" "Observabilité";
    ProviderSecrets "provider-secrets" "Provider secrets" "Geheimnisse der Anbieter" "Secrets des fournisseurs";
    ConnectorOauth "connector-oauth" "Connector OAuth apps" "OAuth-Apps der Konnektoren" "Applications OAuth des connecteurs";
    CloudImport "cloud-import" "Cloud import" "Cloud-Import" "Import depuis le cloud";
    FeatureFlags "feature-flags" "Feature flags" "Funktionsschalter" "Drapeaux de fonctionnalité";
    Retention "retention" "Retention" "Aufbewahrung" "Conservation";
    Topology "topology" "Topology and concurrency" "Topologie und Nebenläufigkeit" "Topologie et concurrence";
    Sessions "sessions" "Sessions" "Sitzungen" "Sessions";
    Mail "mail" "Mail" "E-Mail" "E-mail";
    Support "support" "Support link" "Support-Link" "Lien vers le support";
    Mcp "mcp" "MCP endpoint" "MCP-Endpunkt" "Point d’accès MCP";
    KnowledgeSearch "knowledge-search" "Knowledge search" "Wissenssuche" "Recherche de connaissances";
    Limits "limits" "Limits" "Grenzen" "Limites";
    AgentTurns "agent-turns" "Agent turns and model gateway" "Agenten und Modell-Gateway" "Agents et passerelle de modèles";
    Sandbox "sandbox" "Sandboxes" "Sandboxes" "Sandbox";
    SandboxKubernetes "sandbox-kubernetes" "Sandboxes on Kubernetes" "Sandboxes auf Kubernetes" "Sandbox sur Kubernetes";
    SandboxEgress "sandbox-egress" "Sandbox egress" "Ausgang der Sandboxes" "Sortie réseau des sandbox";
    SandboxDevices "sandbox-devices" "Sandbox devices" "Sandbox-Geräte" "Appareils de sandbox";
    VideoIngestion "video-ingestion" "Video ingestion" "Videoübernahme" "Ingestion de vidéos";
    Cli "cli" "Command line and deployment" "Kommandozeile und Deployment" "Ligne de commande et déploiement";
    Development "development" "One machine and development" "Einzelrechner und Entwicklung" "Machine unique et développement";
    Session "session" "Inside sandbox sessions" "In Sandbox-Sitzungen" "Dans les sessions sandbox";
    Obsolete "obsolete" "Obsolete" "Veraltet" "Obsolètes";
}

const CHAPTERS: &[&[Var]] = &[
    domain::DOMAIN,
    domain::TLS,
    secrets::SECRETS,
    database::DATABASE,
    object_store::OBJECT_STORE,
    secrets::AUDIT,
    observability::OBSERVABILITY,
    secrets::PROVIDER_SECRETS,
    connectors::CONNECTOR_OAUTH,
    connectors::CLOUD_IMPORT,
    feature_flags::FEATURE_FLAGS,
    feature_flags::RETENTION,
    topology::TOPOLOGY,
    sessions::SESSIONS,
    mail::MAIL,
    sessions::SUPPORT,
    sessions::MCP,
    knowledge::KNOWLEDGE_SEARCH,
    knowledge::LIMITS,
    agent_turns::AGENT_TURNS,
    sandbox::SANDBOX,
    sandbox_agents::SANDBOX,
    sandbox_kubernetes::SANDBOX_KUBERNETES,
    sandbox_devices::SANDBOX_EGRESS,
    sandbox_devices::SANDBOX_DEVICES,
    video::VIDEO_INGESTION,
    cli::CLI,
    development::DEVELOPMENT,
    session::SESSION,
    cli::OBSOLETE,
];

/// Every variable, in the order of the reference.
pub fn vars() -> impl Iterator<Item = &'static Var> {
    CHAPTERS.iter().copied().flatten()
}

/// The declaration of `name`: itself, or the family it belongs to.
#[must_use]
pub fn find(name: &str) -> Option<&'static Var> {
    let exact = vars().find(|var| var.name == name);
    exact.or_else(|| vars().find(|var| var.declares(name)))
}

/// The secret whose value the variable `name` (`X_FILE`) names a file of.
#[must_use]
pub fn secret_of_file(name: &str) -> Option<&'static Var> {
    if vars().any(|var| var.name == name) {
        return None;
    }
    name.strip_suffix("_FILE").and_then(find).filter(|var| var.secret)
}

/// Readers of backend settings.
const BACKEND: &[Role] = &[Role::BackendApi, Role::BackendWorker, Role::All];
/// Readers of what the backend and the model gateway share: the database and what is encrypted in it.
const WITH_GATEWAY: &[Role] = &[Role::BackendApi, Role::BackendWorker, Role::All, Role::LlmGateway];
/// The backend and the spawner, which share a key.
const BACKEND_AND_SPAWNER: &[Role] = &[Role::BackendApi, Role::BackendWorker, Role::All, Role::Sandbox];
/// Readers of settings of the HTTP doors.
const API: &[Role] = &[Role::BackendApi, Role::All];
/// Readers of settings of the job runner.
const WORKER: &[Role] = &[Role::BackendWorker, Role::All];
/// The web tier and the backend.
const WEB_AND_BACKEND: &[Role] = &[Role::Platform, Role::BackendApi, Role::BackendWorker, Role::All];
/// Processes that keep something on their disk.
const KEEPERS: &[Role] = &[Role::BackendApi, Role::BackendWorker, Role::All, Role::ObjectStore];
/// Processes that let running work end before they do.
const DRAINING: &[Role] =
    &[Role::BackendApi, Role::BackendWorker, Role::All, Role::ObjectStore, Role::LlmGateway, Role::Sandbox];
/// Every process that `tale serve` starts.
const EVERY_PROCESS: &[Role] = &[
    Role::Platform,
    Role::BackendApi,
    Role::BackendWorker,
    Role::All,
    Role::ObjectStore,
    Role::LlmGateway,
    Role::Sandbox,
    Role::SandboxEgress,
];
/// Nobody.
const NOBODY: &[Role] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Lang;

    #[test]
    fn every_variable_stands_once_and_is_explained_in_three_languages() {
        let mut names = std::collections::HashSet::new();
        for var in vars() {
            assert!(names.insert(var.name), "{} stands twice", var.name);
            for lang in Lang::ALL {
                let help = var.help.get(lang);
                assert!(help.ends_with('.') && help.len() > 15, "{} needs a sentence in {}", var.name, lang.code());
            }
            assert!(var.help.en != var.help.de && var.help.de != var.help.fr, "{} is not translated", var.name);
            assert!(var.name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_<>".contains(&b)));
        }
    }

    #[test]
    fn every_default_and_example_is_a_value_of_its_kind() {
        for var in vars() {
            let literal = if let Default::Value(value) = var.default { Some(value) } else { None };
            for value in literal.into_iter().chain(var.example).chain(var.placeholders.iter().copied()) {
                if !value.is_empty() && value != "none" {
                    assert!(var.kind.check(value).is_ok(), "{}={value}: {:?}", var.name, var.kind.check(value));
                }
            }
        }
    }

    #[test]
    fn only_secrets_have_placeholders_and_files() {
        for var in vars() {
            assert!(var.placeholders.is_empty() || var.secret, "{}", var.name);
        }
        assert_eq!(secret_of_file("INSTANCE_SECRET_FILE").map(|var| var.name), Some("INSTANCE_SECRET"));
        assert_eq!(secret_of_file("TALE_PROVIDER_KEY_X_FILE").map(|var| var.name), Some("TALE_PROVIDER_KEY_<NAME>"));
        assert!(secret_of_file("POSTGRES_CA_FILE").is_none() && secret_of_file("SOPS_AGE_KEY_FILE").is_none());
        assert!(secret_of_file("SITE_URL_FILE").is_none());
    }

    #[test]
    fn families_know_their_members() {
        assert_eq!(find("CONNECTOR_OAUTH_GMAIL_CLIENT_ID").unwrap().name, "CONNECTOR_OAUTH_<SLUG>_CLIENT_ID");
        assert_eq!(find("TALE_PROVIDER_KEY_LOCAL_INFERENCE").unwrap().name, "TALE_PROVIDER_KEY_LOCAL_INFERENCE");
        assert!(find("TALE_PROVIDER_KEY_").is_none() && find("TALE_PROVIDER_KEY_a").is_none());
    }
}
