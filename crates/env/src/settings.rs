//! The typed settings, built once at start from an [`EnvSource`].

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use url::Url;

use crate::kind::Value;
use crate::mail::MailSettings;
use crate::reader::{EnvProblem, EnvProblems, EnvReader, EnvSource, Severity};
use crate::registry as var;
use crate::registry::Role;
use crate::site::SiteSettings;

/// Everything the roles are built from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Addresses.
    pub site: SiteSettings,
    /// Secrets of the instance.
    pub secrets: SecretSettings,
    /// Both databases.
    pub database: DatabaseSettings,
    /// The default object store.
    pub object_store: ObjectStoreSettings,
    /// The files that operators edit.
    pub config_files: ConfigFileSettings,
    /// Whether providers on private addresses are admitted (MOD-18).
    pub allow_private_provider_hosts: bool,
    /// Further hosts that keys of the environment may be sent to.
    pub env_key_hosts: Option<String>,
    /// Whether sign-up stays open after the first account (ACC-8).
    pub allow_open_sign_up: bool,
    /// Whether open tabs are told of changed configuration files.
    pub file_events: bool,
    /// Who may create organizations, lower-cased; `None` = everybody (ORG-1).
    pub organization_creators: Option<Vec<String>>,
    /// A preset one-time setup token (STP-5).
    pub setup_token: Option<SecretString>,
    /// Deployment-wide idle limit of a session (SES-3).
    pub session_idle_timeout: Option<Duration>,
    /// How long a request may reuse its session from a signed cookie; `None` = not at all (DCF-192).
    pub session_cookie_cache: Option<Duration>,
    /// Client name in the labels of authenticator entries, as it was written.
    pub totp_client_name: Option<String>,
    /// Environment in the same labels, as it was written.
    pub totp_environment: Option<String>,
    /// Names of the headers by which a reverse proxy signs people in (DCF-170).
    pub trusted_headers: TrustedHeaderNames,
    /// Pepper of audit pseudonyms (SIN-8).
    pub audit_pepper: Option<SecretString>,
    /// Whether nothing is deleted for its age (RET-8).
    pub retention_paused: bool,
    /// Jobs at the same time per process.
    pub worker_concurrency: usize,
    /// Longest drain after SIGTERM.
    pub shutdown_drain: Duration,
    /// Serves the web app from a directory instead of the program.
    pub web_dir: Option<PathBuf>,
    /// Where the keyword index and files in work are kept.
    pub data_dir: Option<PathBuf>,
    /// Port to listen on; a worker has [`Self::worker_port`] instead.
    pub port: u16,
    /// Port on which a worker answers about itself; without one it listens on nothing.
    pub worker_port: Option<u16>,
    /// Token of the public metrics routes; without it they answer nobody.
    pub metrics_token: Option<SecretString>,
    /// Bounds of calls to models through the model endpoints and the model gateway.
    pub model_calls: ModelCallSettings,
    /// The administration of the model gateway; without it no settings are handed on.
    pub gateway_link: Option<GatewayLink>,
    /// Where this process serves a model gateway besides everything else.
    pub gateway_ports: Option<GatewayPorts>,
    /// Aggregate analytics; off without.
    pub analytics: Option<AnalyticsSettings>,
    /// The spawner of sandboxes; without it there are none.
    pub sandbox: Option<SandboxLink>,
    /// The mail server; without it there is no mail.
    pub mail: Option<MailSettings>,
}

/// How the backend reaches the spawner of sandboxes.
#[derive(Debug, Clone)]
pub struct SandboxLink {
    /// Its address.
    pub url: Url,
    /// `SANDBOX_TOKEN`, the key of signatures.
    pub token: SecretString,
    /// Whether new workspaces get the profile without an engine inside (SBX-13).
    pub light: bool,
}

/// Where aggregate analytics go (DCF-135).
#[derive(Debug, Clone)]
pub struct AnalyticsSettings {
    /// Origin of the collector's gateway.
    pub collector: Url,
    /// Id of the site there.
    pub website: String,
    /// What the gateway asks for.
    pub token: SecretString,
}

/// Bounds of calls to models through the model endpoints (MOD-140, MOD-144).
#[derive(Debug, Clone, Copy)]
pub struct ModelCallSettings {
    /// Calls that a built-in provider gets at the same time.
    pub per_built_in_provider: usize,
    /// Calls that a model of an organization's own provider gets at the same time.
    pub per_custom_provider: usize,
    /// Longest silence of a model.
    pub idle: Duration,
    /// Days that the gateway keeps its request log.
    pub log_retention_days: u32,
}

/// How the backend reaches the administration of the model gateway (MOD-130).
#[derive(Debug, Clone)]
pub struct GatewayLink {
    /// Its address.
    pub url: Url,
    /// Who may.
    pub admin: GatewayAdmin,
}

/// Who may administrate the model gateway.
#[derive(Debug, Clone)]
pub struct GatewayAdmin {
    /// The name.
    pub username: String,
    /// The password.
    pub password: SecretString,
}

/// Where a model gateway listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayPorts {
    /// Its port.
    pub port: u16,
    /// The port of its administration, when it has one of its own.
    pub admin: Option<u16>,
}

/// Longest silence of a model that can be set: a day.
const MAX_MODEL_IDLE: u64 = 86_400;

/// Names of the headers by which a reverse proxy signs people in. `Default` is what an empty environment
/// means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedHeaderNames {
    /// Carries the organization's key when `Authorization` cannot be used.
    pub secret: String,
    /// Carries the address of the person.
    pub email: String,
    /// Carries the display name.
    pub name: String,
    /// Carries the role.
    pub role: String,
    /// Carries team names, which are ignored.
    pub teams: String,
}

impl Default for TrustedHeaderNames {
    fn default() -> Self {
        Self {
            secret: "Remote-Internal-Secret".to_owned(),
            email: "Remote-Email".to_owned(),
            name: "Remote-Name".to_owned(),
            role: "Remote-Role".to_owned(),
            teams: "Remote-Teams".to_owned(),
        }
    }
}

/// Secrets of the instance.
#[derive(Debug, Clone)]
pub struct SecretSettings {
    /// `BETTER_AUTH_SECRET`.
    pub auth: SecretString,
    /// `ENCRYPTION_SECRET_HEX`, or `ENCRYPTION_SECRET` as hexadecimal digits.
    pub encryption_hex: SecretString,
    /// `ENCRYPTION_SECRET_PREVIOUS_HEX`.
    pub encryption_previous_hex: Vec<SecretString>,
    /// `INSTANCE_SECRET`.
    pub instance_hex: SecretString,
}

/// Both databases.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `DATABASE_URL`, or made from `DB_PASSWORD`.
    pub app_url: SecretString,
    /// `KNOWLEDGE_DATABASE_URL`, or made from `DB_PASSWORD`.
    pub knowledge_url: SecretString,
    /// Most connections to the operational database.
    pub app_pool_max: u32,
    /// Most connections to the knowledge database.
    pub knowledge_pool_max: u32,
    /// Roots that servers are verified against.
    pub ca_file: Option<PathBuf>,
    /// Largest keyword index, in bytes, whose repair searches wait for.
    pub index_repair_inline_max_bytes: u64,
    /// Damaged keyword indexes are neither noticed nor repaired.
    pub index_repair_disabled: bool,
}

/// The default object store.
#[derive(Debug, Clone)]
pub struct ObjectStoreSettings {
    /// Where we reach it; AWS S3 in `region` when unset.
    pub endpoint: Option<Url>,
    /// Where browsers reach it; the endpoint when unset.
    pub public_endpoint: Option<Url>,
    /// Access key id and secret key. Without them the environment names no store (DCF-82).
    pub keys: Option<(String, SecretString)>,
    /// The bucket.
    pub bucket: String,
    /// Region of signatures.
    pub region: String,
    /// Prefix of every key, without slashes at its ends.
    pub prefix: Option<String>,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    pub path_style: bool,
}

/// The files that operators edit.
#[derive(Debug, Clone)]
pub struct ConfigFileSettings {
    /// Their directory; `config` in the data directory when unset.
    pub directory: Option<PathBuf>,
    /// `SOPS_AGE_KEY`: the one key of secret files.
    pub age_key: Option<SecretString>,
    /// `SOPS_AGE_KEY_FILE`: several of them.
    pub age_key_file: Option<PathBuf>,
}

impl Settings {
    /// [`Settings::for_role`] of the role `all`.
    ///
    /// # Errors
    /// As there.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        Self::for_role(source, Role::All)
    }

    /// Reads everything at once. [`crate::check()`] says more about the same source. The roles of the
    /// backend differ in a few defaults only.
    ///
    /// # Errors
    /// Every variable that keeps the role from starting, together.
    pub fn for_role(source: &dyn EnvSource, role: Role) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        let site = read_site(&mut env);
        let secrets = read_secrets(&mut env);
        let database = read_database(&mut env);
        let object_store = read_object_store(&mut env);
        let config_files = read_config_files(&mut env);
        let idle_minutes = env.integer(&var::SESSION_IDLE_TIMEOUT_MINUTES);
        let cache_seconds = env.integer(&var::SESSION_COOKIE_CACHE_SECONDS);
        let organization_creators = env.list(&var::TALE_ORGANIZATION_CREATORS);
        let setup_token = env.text(&var::TALE_SETUP_TOKEN).map(SecretString::from);
        let totp_client_name = env.text(&var::TOTP_CLIENT_NAME);
        let totp_environment = env.text(&var::TOTP_ENVIRONMENT);
        let audit_pepper = env.text(&var::TALE_AUDIT_PEPPER).map(SecretString::from);
        let retention_paused = env.switch(&var::TALE_RETENTION_DISABLED).unwrap_or(false);
        let worker_concurrency = env.integer(&var::WORKER_CONCURRENCY);
        let drain_ms = env.integer(&var::SHUTDOWN_DRAIN_MS).unwrap_or(drain_default(role));
        let port = env.integer(&var::PORT).unwrap_or(port_default(role));
        let worker_port = env.integer(&var::TALE_WORKER_PORT).and_then(|port| u16::try_from(port).ok());
        let allow_private_provider_hosts = env.switch(&var::TALE_ALLOW_PRIVATE_PROVIDER_HOSTS).unwrap_or(false);
        let env_key_hosts = env.text(&var::TALE_ENV_KEY_HOSTS);
        let allow_open_sign_up = env.switch(&var::TALE_ALLOW_OPEN_SIGN_UP).unwrap_or(false);
        let file_events = env.switch(&var::TALE_FILE_EVENTS).unwrap_or(false);
        let trusted_headers = read_trusted_headers(&mut env);
        let web_dir = env.text(&var::TALE_WEB_DIR).map(PathBuf::from);
        let data_dir = env.text(&var::TALE_DATA_DIR).map(PathBuf::from);
        let metrics_token = env.text(&var::METRICS_BEARER_TOKEN).map(SecretString::from);
        let analytics = read_analytics(&mut env);
        let model_idle = env.integer(&var::SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS);
        let per_built_in_provider = env.integer(&var::SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY);
        let per_custom_provider = env.integer(&var::SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY);
        let log_retention = env.integer(&var::SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS);
        let gateway_url = env.url(&var::SANDBOX_LLM_GATEWAY_URL);
        let gateway_admin = read_gateway_admin(&mut env);
        let gateway_ports = read_gateway_ports(&mut env);
        let sandbox = read_sandbox(&mut env);
        let mail = MailSettings::read(&mut env);
        let settings = (|| {
            Some(Self {
                site: site?,
                secrets: secrets?,
                database: database?,
                object_store: object_store?,
                config_files,
                allow_private_provider_hosts,
                env_key_hosts,
                allow_open_sign_up,
                file_events,
                organization_creators,
                setup_token,
                session_idle_timeout: idle_minutes.map(|minutes| Duration::from_secs(minutes * 60)),
                session_cookie_cache: cache_seconds.map(Duration::from_secs),
                totp_client_name,
                totp_environment,
                trusted_headers: trusted_headers?,
                audit_pepper,
                retention_paused,
                worker_concurrency: usize::try_from(worker_concurrency?).ok()?,
                shutdown_drain: Duration::from_millis(drain_ms),
                web_dir,
                data_dir,
                port: u16::try_from(port).ok()?,
                worker_port,
                metrics_token,
                model_calls: ModelCallSettings {
                    per_built_in_provider: usize::try_from(per_built_in_provider?).ok()?,
                    per_custom_provider: usize::try_from(per_custom_provider?).ok()?,
                    idle: Duration::from_secs(model_idle?.min(MAX_MODEL_IDLE)),
                    log_retention_days: u32::try_from(log_retention?).ok()?,
                },
                gateway_link: gateway_url.zip(gateway_admin).map(|(url, admin)| GatewayLink { url, admin }),
                gateway_ports,
                analytics,
                sandbox,
                mail,
            })
        })();
        env.finish(settings)
    }
}

fn read_sandbox(env: &mut EnvReader<'_>) -> Option<SandboxLink> {
    let (url, token) = (env.url(&var::SANDBOX_URL), env.text(&var::SANDBOX_TOKEN));
    let light = env.text(&var::SANDBOX_AGENT_PROFILE).is_some_and(|profile| profile == "agent-light");
    Some(SandboxLink { url: url?, token: token?.into(), light })
}

fn read_gateway_admin(env: &mut EnvReader<'_>) -> Option<GatewayAdmin> {
    let username = env.text(&var::SANDBOX_LLM_GATEWAY_ADMIN_USERNAME);
    let password = env.text(&var::SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD);
    Some(GatewayAdmin { username: username?, password: password?.into() })
}

fn read_gateway_ports(env: &mut EnvReader<'_>) -> Option<GatewayPorts> {
    let port = |number: Option<u64>| number.and_then(|number| u16::try_from(number).ok());
    let admin = port(env.integer(&var::LLM_GATEWAY_ADMIN_PORT));
    Some(GatewayPorts { port: port(env.integer(&var::LLM_GATEWAY_PORT))?, admin })
}

/// What the model gateway is built from, when it is a process of its own.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// `DATABASE_URL`, or made from `DB_PASSWORD`.
    pub app_url: SecretString,
    /// Most connections to it.
    pub app_pool_max: u32,
    /// Roots that the server is verified against.
    pub ca_file: Option<PathBuf>,
    /// `ENCRYPTION_SECRET_HEX`, or `ENCRYPTION_SECRET` as hexadecimal digits.
    pub encryption_hex: SecretString,
    /// `ENCRYPTION_SECRET_PREVIOUS_HEX`.
    pub encryption_previous_hex: Vec<SecretString>,
    /// Whether providers on private addresses are admitted.
    pub allow_private_provider_hosts: bool,
    /// Further hosts that keys of the environment may be sent to.
    pub env_key_hosts: Option<String>,
    /// Who may administrate it.
    pub admin: GatewayAdmin,
    /// Where it listens.
    pub ports: GatewayPorts,
    /// Where policies that operators edit are, when it sees them.
    pub config_directory: Option<PathBuf>,
    /// Token of the public metrics routes; without it they answer nobody.
    pub metrics_token: Option<SecretString>,
    /// Longest drain after SIGTERM.
    pub shutdown_drain: Duration,
}

impl GatewaySettings {
    /// Reads everything at once.
    ///
    /// # Errors
    /// Every variable that keeps the role from starting, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        env.require(&var::SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD, &[]);
        let admin = read_gateway_admin(&mut env);
        let app_url = database_url(&mut env, &var::DATABASE_URL, "db", &var::APP_DB_NAME);
        let app_pool_max = env.integer(&var::DATABASE_POOL_MAX).and_then(|number| u32::try_from(number).ok());
        let ca_file = env.text(&var::POSTGRES_CA_FILE).map(PathBuf::from);
        let encryption = read_encryption(&mut env);
        let allow_private_provider_hosts = env.switch(&var::TALE_ALLOW_PRIVATE_PROVIDER_HOSTS).unwrap_or(false);
        let env_key_hosts = env.text(&var::TALE_ENV_KEY_HOSTS);
        let ports = read_gateway_ports(&mut env);
        let admin_port = env.integer(&var::LLM_GATEWAY_ADMIN_PORT).and_then(|port| u16::try_from(port).ok());
        let config_directory = env.text(&var::TALE_CONFIG_DIR).map(PathBuf::from);
        let metrics_token = env.text(&var::METRICS_BEARER_TOKEN).map(SecretString::from);
        let drain_ms = env.integer(&var::SHUTDOWN_DRAIN_MS).unwrap_or(drain_default(Role::LlmGateway));
        let settings = (|| {
            let (encryption_hex, encryption_previous_hex) = encryption?;
            Some(Self {
                app_url: app_url?,
                app_pool_max: app_pool_max?,
                ca_file,
                encryption_hex,
                encryption_previous_hex,
                allow_private_provider_hosts,
                env_key_hosts,
                admin: admin?,
                ports: ports.unwrap_or(GatewayPorts { port: GATEWAY_PORT, admin: admin_port }),
                config_directory,
                metrics_token,
                shutdown_drain: Duration::from_millis(drain_ms),
            })
        })();
        env.finish(settings)
    }
}

/// Where a gateway listens that is told nothing.
pub const GATEWAY_PORT: u16 = 8080;

/// What is reported to a Sentry-compatible service.
#[derive(Debug, Clone)]
pub struct ReportSettings {
    /// `SENTRY_DSN`; nothing is reported without it.
    pub dsn: Option<SecretString>,
    /// `SENTRY_ENVIRONMENT`.
    pub environment: String,
    /// Share of requests and jobs whose duration is sent, 0 to 1.
    pub traces: f64,
    /// Share of page loads in browsers whose duration is sent, 0 to 1.
    pub browser_traces: f64,
}

/// Reads what error reports need, before anything else can go wrong.
///
/// # Errors
/// When a variable cannot be used.
pub fn report_settings(source: &dyn EnvSource) -> Result<ReportSettings, EnvProblems> {
    let mut env = EnvReader::new(source);
    let dsn = env.text(&var::SENTRY_DSN).map(SecretString::from);
    let environment = env.text(&var::SENTRY_ENVIRONMENT).unwrap_or_default();
    let mut share = |var| match env.value(var) {
        Some(Value::Number(share)) => share,
        _ => 0.0,
    };
    let traces = share(&var::BACKEND_SENTRY_TRACES_SAMPLE_RATE);
    let browser_traces = share(&var::SENTRY_TRACES_SAMPLE_RATE);
    env.finish(Some(ReportSettings { dsn, environment, traces, browser_traces }))
}

/// The values of all secrets that are set, for those who keep them out of logs.
pub fn secret_values(source: &dyn EnvSource) -> impl Iterator<Item = String> {
    let secrets = var::vars().filter(|var| var.secret).filter_map(|var| source.get(var.name));
    secrets.flat_map(|text| text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>())
}

/// Milliseconds that a stopping process of the role waits: people wait for doors, nobody for a job, and agents
/// for their models' answers.
fn drain_default(role: Role) -> u64 {
    if matches!(role, Role::BackendWorker | Role::LlmGateway) { 90_000 } else { 15_000 }
}

fn port_default(role: Role) -> u64 {
    match role {
        Role::Platform => 3000,
        Role::ObjectStore => 9000,
        _ => 3005,
    }
}

/// What the object store is built from, when Tale's own is a process.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The one access key it accepts.
    pub access_key: String,
    /// Its secret.
    pub secret_key: SecretString,
    /// The bucket that it has from the start.
    pub bucket: String,
    /// Where the objects are kept, in a folder of their own.
    pub data_dir: Option<PathBuf>,
    /// Port to listen on.
    pub port: u16,
    /// Longest drain after SIGTERM.
    pub shutdown_drain: Duration,
}

impl StoreSettings {
    /// Reads everything at once.
    ///
    /// # Errors
    /// Every variable that keeps the role from starting, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        env.require(&var::OBJECT_STORE_ACCESS_KEY, &[&var::MINIO_ROOT_USER]);
        env.require(&var::OBJECT_STORE_SECRET_KEY, &[&var::MINIO_ROOT_PASSWORD]);
        let access_key = env.text(&var::MINIO_ROOT_USER).or_else(|| env.text(&var::OBJECT_STORE_ACCESS_KEY));
        let secret_key = env.text(&var::MINIO_ROOT_PASSWORD).or_else(|| env.text(&var::OBJECT_STORE_SECRET_KEY));
        let bucket = env.text(&var::OBJECT_STORE_BUCKET);
        let data_dir = env.text(&var::TALE_DATA_DIR).map(PathBuf::from);
        let port = env.integer(&var::PORT).unwrap_or(port_default(Role::ObjectStore));
        let drain_ms = env.integer(&var::SHUTDOWN_DRAIN_MS).unwrap_or(drain_default(Role::ObjectStore));
        let settings = (|| {
            Some(Self {
                access_key: access_key?,
                secret_key: secret_key?.into(),
                bucket: bucket?,
                data_dir,
                port: u16::try_from(port).ok()?,
                shutdown_drain: Duration::from_millis(drain_ms),
            })
        })();
        env.finish(settings)
    }
}

/// What the web tier is built from, when it is a process of its own.
#[derive(Debug, Clone)]
pub struct PlatformSettings {
    /// Origins.
    pub site: SiteSettings,
    /// Where the backend answers.
    pub backend: Url,
    /// Where browsers reach the object store, when that is not the site.
    pub store: Option<Url>,
    /// Serves the web app from a directory instead of the program.
    pub web_dir: Option<PathBuf>,
    /// What the public pages of metrics ask for.
    pub metrics_token: Option<SecretString>,
    /// Aggregate analytics; off without.
    pub analytics: Option<AnalyticsSettings>,
    /// Port to listen on.
    pub port: u16,
}

impl PlatformSettings {
    /// Reads everything at once.
    ///
    /// # Errors
    /// Every variable that keeps the role from starting, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        let site = read_site(&mut env);
        let backend = env.url(&var::TALE_BACKEND_URL);
        let store = env.url(&var::OBJECT_STORE_PUBLIC_ENDPOINT);
        let web_dir = env.text(&var::TALE_WEB_DIR).map(PathBuf::from);
        let metrics_token = env.text(&var::METRICS_BEARER_TOKEN).map(SecretString::from);
        let analytics = read_analytics(&mut env);
        let port = env.integer(&var::PORT).unwrap_or(port_default(Role::Platform));
        let settings = (|| {
            Some(Self {
                site: site?,
                backend: backend?,
                store,
                web_dir,
                metrics_token,
                analytics,
                port: u16::try_from(port).ok()?,
            })
        })();
        env.finish(settings)
    }
}

/// The role that the environment names, for a command that was given none.
///
/// # Errors
/// When the variable that decides cannot be used.
pub fn role_of(source: &dyn EnvSource) -> Result<Role, EnvProblem> {
    let named = match text_of(source, &var::ROLE)? {
        Some(name) => Some(name),
        None => text_of(source, &var::TALE_ROLE)?,
    };
    Ok(match named.as_deref() {
        Some("platform") => Role::Platform,
        Some("api" | "backend-api") => Role::BackendApi,
        Some("worker" | "backend-worker") => Role::BackendWorker,
        Some("object-store") => Role::ObjectStore,
        Some("llm-gateway") => Role::LlmGateway,
        Some("sandbox-egress") => Role::SandboxEgress,
        Some("sandbox") => Role::Sandbox,
        _ => Role::All,
    })
}

/// Reads the one variable that a command needs before it builds anything.
///
/// # Errors
/// When the variable cannot be used.
pub fn text_of(source: &dyn EnvSource, var: &'static var::Var) -> Result<Option<String>, EnvProblem> {
    let mut env = EnvReader::new(source);
    let text = env.text(var);
    match env.finish(Some(text)) {
        Ok(text) => Ok(text),
        Err(EnvProblems(mut problems)) => Err(problems
            .pop()
            .unwrap_or_else(|| EnvProblem::new(Severity::Error, var.name, "cannot be used", "Leave it out"))),
    }
}

pub(crate) fn read_site(env: &mut EnvReader<'_>) -> Option<SiteSettings> {
    env.require(&var::SITE_URL, &[&var::HOST]);
    let additional = env.urls(&var::ADDITIONAL_SITE_URLS);
    let url = if env.is_set(&var::SITE_URL) {
        env.url(&var::SITE_URL)
    } else {
        env.text(&var::HOST).and_then(|host| Url::parse(&format!("https://{host}")).ok())
    };
    let base_path = env.text(&var::BASE_PATH).unwrap_or_default();
    let support_url = env.url(&var::TALE_CONTACT_SUPPORT_URL);
    Some(SiteSettings { url: url?, additional, base_path, support_url: support_url? })
}

/// All three, or none: what is unusable was said by the check.
fn read_analytics(env: &mut EnvReader<'_>) -> Option<AnalyticsSettings> {
    let (collector, website) = (env.url(&var::UMAMI_URL), env.text(&var::UMAMI_WEBSITE_ID));
    let token = env.text(&var::UMAMI_PROXY_TOKEN).map(SecretString::from);
    Some(AnalyticsSettings { collector: collector?, website: website?, token: token? })
}

fn read_trusted_headers(env: &mut EnvReader<'_>) -> Option<TrustedHeaderNames> {
    let (secret, email) = (env.text(&var::TRUSTED_SECRET_HEADER), env.text(&var::TRUSTED_EMAIL_HEADER));
    let (name, role) = (env.text(&var::TRUSTED_NAME_HEADER), env.text(&var::TRUSTED_ROLE_HEADER));
    let teams = env.text(&var::TRUSTED_TEAMS_HEADER);
    Some(TrustedHeaderNames { secret: secret?, email: email?, name: name?, role: role?, teams: teams? })
}

fn read_secrets(env: &mut EnvReader<'_>) -> Option<SecretSettings> {
    env.require(&var::BETTER_AUTH_SECRET, &[]);
    let encryption = read_encryption(env);
    env.require(&var::INSTANCE_SECRET, &[]);
    let auth = env.text(&var::BETTER_AUTH_SECRET);
    let instance = env.text(&var::INSTANCE_SECRET);
    let (encryption_hex, encryption_previous_hex) = encryption?;
    Some(SecretSettings { auth: auth?.into(), encryption_hex, encryption_previous_hex, instance_hex: instance?.into() })
}

/// The key that encrypts what is stored, and earlier ones.
fn read_encryption(env: &mut EnvReader<'_>) -> Option<(SecretString, Vec<SecretString>)> {
    env.require(&var::ENCRYPTION_SECRET_HEX, &[&var::ENCRYPTION_SECRET]);
    let encryption = if env.is_set(&var::ENCRYPTION_SECRET_HEX) {
        env.text(&var::ENCRYPTION_SECRET_HEX)
    } else {
        let bytes = env.text(&var::ENCRYPTION_SECRET).and_then(|text| STANDARD.decode(text).ok());
        bytes.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    let previous = env.list(&var::ENCRYPTION_SECRET_PREVIOUS_HEX).unwrap_or_default();
    Some((encryption?.into(), previous.into_iter().map(SecretString::from).collect()))
}

/// The URL of a database of the bundled Postgres.
fn bundled_url(env: &mut EnvReader<'_>, host: &str, name: &'static var::Var) -> Option<SecretString> {
    let mut url = Url::parse(&format!("postgresql://{host}")).ok()?;
    url.set_username(&env.text(&var::POSTGRES_USER)?).ok()?;
    // A percent sign is the one character that `Url` takes for encoded already.
    url.set_password(Some(&env.text(&var::DB_PASSWORD)?.replace('%', "%25"))).ok()?;
    url.set_port(Some(u16::try_from(env.integer(&var::DB_PORT)?).ok()?)).ok()?;
    url.set_path(&env.text(name)?);
    Some(String::from(url).into())
}

fn database_url(
    env: &mut EnvReader<'_>,
    var: &'static var::Var,
    host: &str,
    name: &'static var::Var,
) -> Option<SecretString> {
    env.require(var, &[&var::DB_PASSWORD]);
    if env.is_set(var) { env.text(var).map(SecretString::from) } else { bundled_url(env, host, name) }
}

fn read_database(env: &mut EnvReader<'_>) -> Option<DatabaseSettings> {
    let app_url = database_url(env, &var::DATABASE_URL, "db", &var::APP_DB_NAME);
    let knowledge_url = database_url(env, &var::KNOWLEDGE_DATABASE_URL, "knowledge-db", &var::KNOWLEDGE_DB_NAME);
    let pool = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let app_pool_max = pool(env.integer(&var::DATABASE_POOL_MAX));
    let knowledge_pool_max = pool(env.integer(&var::KNOWLEDGE_DB_POOL_MAX));
    let ca_file = env.text(&var::POSTGRES_CA_FILE).map(PathBuf::from);
    Some(DatabaseSettings {
        app_url: app_url?,
        knowledge_url: knowledge_url?,
        index_repair_inline_max_bytes: env.integer(&var::KNOWLEDGE_INDEX_REPAIR_INLINE_MAX_BYTES)?,
        index_repair_disabled: env.switch(&var::KNOWLEDGE_INDEX_REPAIR_DISABLED).unwrap_or(false),
        app_pool_max: app_pool_max?,
        knowledge_pool_max: knowledge_pool_max?,
        ca_file,
    })
}

fn read_object_store(env: &mut EnvReader<'_>) -> Option<ObjectStoreSettings> {
    // One of the two alone is a mistake, none of them a deployment without a store.
    if env.is_set(&var::OBJECT_STORE_ACCESS_KEY) {
        env.require(&var::OBJECT_STORE_SECRET_KEY, &[]);
    }
    if env.is_set(&var::OBJECT_STORE_SECRET_KEY) {
        env.require(&var::OBJECT_STORE_ACCESS_KEY, &[]);
    }
    let own = env.is_set(&var::OBJECT_STORE_ENDPOINT);
    let region = env.text(&var::OBJECT_STORE_REGION);
    let endpoint = env.url(&var::OBJECT_STORE_ENDPOINT);
    let public_endpoint = env.url(&var::OBJECT_STORE_PUBLIC_ENDPOINT);
    let access_key = env.text(&var::OBJECT_STORE_ACCESS_KEY);
    let secret_key = env.text(&var::OBJECT_STORE_SECRET_KEY);
    let bucket = env.text(&var::OBJECT_STORE_BUCKET);
    let prefix = env.text(&var::OBJECT_STORE_PREFIX).map(|text| text.trim_matches('/').to_owned());
    let path_style = env.switch(&var::OBJECT_STORE_FORCE_PATH_STYLE).unwrap_or(own);
    Some(ObjectStoreSettings {
        endpoint,
        public_endpoint,
        keys: access_key.zip(secret_key.map(SecretString::from)),
        bucket: bucket?,
        region: region?,
        prefix: prefix.filter(|text| !text.is_empty()),
        path_style,
    })
}

fn read_config_files(env: &mut EnvReader<'_>) -> ConfigFileSettings {
    ConfigFileSettings {
        directory: env.text(&var::TALE_CONFIG_DIR).map(PathBuf::from),
        age_key: env.text(&var::SOPS_AGE_KEY).map(SecretString::from),
        age_key_file: env.text(&var::SOPS_AGE_KEY_FILE).map(PathBuf::from),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::reader::MapEnv;

    fn complete() -> MapEnv {
        let key = "ab".repeat(32);
        MapEnv::of([
            ("SITE_URL", "https://tale.example.org"),
            ("BETTER_AUTH_SECRET", "0123456789abcdef"),
            ("ENCRYPTION_SECRET_HEX", &key),
            ("INSTANCE_SECRET", &key),
            ("DATABASE_URL", "postgres://tale:secret-word@db:5432/tale_app"),
            ("KNOWLEDGE_DATABASE_URL", "postgres://tale:secret-word@db:5432/tale_knowledge"),
            ("OBJECT_STORE_ENDPOINT", "http://store:9000"),
            ("OBJECT_STORE_ACCESS_KEY", "tale"),
            ("OBJECT_STORE_SECRET_KEY", "k"),
        ])
    }

    fn with(pairs: &[(&str, &str)]) -> Result<Settings, EnvProblems> {
        let mut env = complete();
        for (name, value) in pairs {
            env.0.insert((*name).to_owned(), (*value).to_owned());
        }
        Settings::from_env(&env)
    }

    #[test]
    fn a_complete_environment_gives_settings() {
        let settings = with(&[]).unwrap();
        assert_eq!((settings.site.url.as_str(), settings.site.base_path.as_str()), ("https://tale.example.org/", ""));
        assert_eq!((settings.worker_concurrency, settings.port), (5, 3005));
        assert_eq!(settings.database.app_pool_max, 10);
        assert!(settings.object_store.path_style && settings.organization_creators.is_none());
        assert_eq!(settings.trusted_headers, TrustedHeaderNames::default());
    }

    #[test]
    fn every_problem_is_reported_at_once_and_no_secret_is_shown() {
        let wrong = with(&[
            ("DATABASE_URL", "mysql://root:secret-word@db/x"),
            ("WORKER_CONCURRENCY", "0"),
            ("ADDITIONAL_SITE_URLS", "https://a.example/path"),
            ("OBJECT_STORE_ACCESS_KEY", " "),
        ]);
        let text = wrong.unwrap_err().to_string();
        assert!(text.starts_with("4 settings are wrong, nothing was started\n"), "{text}");
        for words in [
            "DATABASE_URL is set but unusable",
            "WORKER_CONCURRENCY is \"0\"",
            "a whole number from 1 to 64",
            "ADDITIONAL_SITE_URLS",
            "OBJECT_STORE_ACCESS_KEY is not set",
        ] {
            assert!(text.contains(words), "{words} missing in {text}");
        }
        assert!(!text.contains("secret-word"));
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        assert!(with(&[("SITE_URL", "http://localhost:3000")]).is_ok());
        assert!(with(&[("SITE_URL", "http://tale.example.org")]).is_err());
    }

    #[test]
    fn a_slash_at_the_end_of_the_base_path_does_not_matter() {
        let base = |text| with(&[("BASE_PATH", text)]).unwrap().site.base_path;
        assert_eq!([base("/app"), base("/app/"), base("/a/b/")], ["/app", "/app", "/a/b"]);
        assert_eq!([base(""), base("/")], ["", ""]);
        for bad in ["app", "/a/../b", "/a b", "/\"><script>"] {
            assert!(with(&[("BASE_PATH", bad)]).unwrap_err().to_string().contains("BASE_PATH"), "{bad}");
        }
    }

    #[test]
    fn support_is_where_a_browser_can_go() {
        let support = |text| with(&[("TALE_CONTACT_SUPPORT_URL", text)]).unwrap().site.support_url.to_string();
        assert_eq!(support("https://help.example/?a=1"), "https://help.example/?a=1");
        for other in ["", "mailto:help@example.org", "help.example"] {
            assert_eq!(support(other), "https://tale.dev/contact", "{other}");
        }
    }

    #[test]
    fn an_additional_origin_with_a_path_is_named() {
        let refused = with(&[("ADDITIONAL_SITE_URLS", "https://a.example/path")]).unwrap_err().to_string();
        assert!(refused.contains("ADDITIONAL_SITE_URLS") && refused.contains("https://a.example/path"), "{refused}");
        assert!(with(&[("ADDITIONAL_SITE_URLS", "https://a.example")]).is_ok());
    }

    #[test]
    fn unset_urls_are_made_from_host_and_password() {
        let made =
            with(&[("SITE_URL", ""), ("HOST", "tale.example.org"), ("DATABASE_URL", ""), ("DB_PASSWORD", "p@ss/w%rd")]);
        let settings = made.unwrap();
        assert_eq!(settings.site.url.as_str(), "https://tale.example.org/");
        let url = Url::parse(settings.database.app_url.expose_secret()).unwrap();
        assert_eq!((url.host_str(), url.port(), url.path()), (Some("db"), Some(5432), "/tale_app"));
        assert_eq!((url.username(), url.password()), ("tale", Some("p%40ss%2Fw%25rd")));
        assert!(settings.database.knowledge_url.expose_secret().contains("secret-word"), "a set URL wins");
        let missing = with(&[("DATABASE_URL", "")]).unwrap_err().to_string();
        assert!(missing.contains("or set DB_PASSWORD"), "{missing}");
    }

    #[test]
    fn without_an_endpoint_the_store_is_aws() {
        let settings = with(&[("OBJECT_STORE_ENDPOINT", ""), ("OBJECT_STORE_REGION", "eu-central-1")]).unwrap();
        assert!(settings.object_store.endpoint.is_none());
        assert!(!settings.object_store.path_style);
        let forced = with(&[("OBJECT_STORE_FORCE_PATH_STYLE", "false")]).unwrap();
        assert!(!forced.object_store.path_style);
    }

    #[test]
    fn the_key_may_come_in_base64_and_earlier_keys_as_a_list() {
        let key = STANDARD.encode([0xab; 32]);
        let (one, two) = ("cd".repeat(32), "ef".repeat(32));
        let previous = format!("{one}, {two}");
        let pairs = [
            ("ENCRYPTION_SECRET_HEX", ""),
            ("ENCRYPTION_SECRET", key.as_str()),
            ("ENCRYPTION_SECRET_PREVIOUS_HEX", &previous),
        ];
        let secrets = with(&pairs).unwrap().secrets;
        assert_eq!(secrets.encryption_hex.expose_secret(), "ab".repeat(32));
        assert_eq!(secrets.encryption_previous_hex.len(), 2);
    }

    #[test]
    fn the_role_comes_from_either_name_and_sets_defaults() {
        let role = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            role_of(&MapEnv(pairs.collect()))
        };
        assert_eq!(role(&[]), Ok(Role::All));
        assert_eq!(role(&[("TALE_ROLE", "api")]), Ok(Role::BackendApi));
        assert_eq!(role(&[("TALE_ROLE", "worker"), ("ROLE", "")]), Ok(Role::BackendWorker));
        assert_eq!(role(&[("TALE_ROLE", "worker"), ("ROLE", "platform")]), Ok(Role::Platform));
        assert_eq!(role(&[("ROLE", "backend-worker")]), Ok(Role::BackendWorker));
        assert!(role(&[("ROLE", "web")]).is_err() && role(&[("TALE_ROLE", "all")]).is_err());

        let worker = Settings::for_role(&complete(), Role::BackendWorker).unwrap();
        let api = Settings::for_role(&complete(), Role::BackendApi).unwrap();
        assert_eq!((worker.shutdown_drain.as_secs(), api.shutdown_drain.as_secs(), api.port), (90, 15, 3005));
        let mut given = complete();
        given.0.insert("SHUTDOWN_DRAIN_MS".into(), "5000".into());
        assert_eq!(Settings::for_role(&given, Role::BackendWorker).unwrap().shutdown_drain.as_secs(), 5);
    }

    #[test]
    fn the_store_takes_the_backends_keys_unless_it_has_its_own() {
        let pairs = [("OBJECT_STORE_ACCESS_KEY", "tale"), ("OBJECT_STORE_SECRET_KEY", "k"), ("ROLE", "object-store")];
        let mut env = MapEnv::of(pairs);
        assert_eq!(role_of(&env), Ok(Role::ObjectStore));
        let store = StoreSettings::from_env(&env).unwrap();
        assert_eq!((store.access_key.as_str(), store.port, store.bucket.as_str()), ("tale", 9000, "tale-blobs"));
        env.0.insert("MINIO_ROOT_USER".into(), "root".into());
        env.0.insert("MINIO_ROOT_PASSWORD".into(), "r".into());
        let store = StoreSettings::from_env(&env).unwrap();
        assert_eq!((store.access_key.as_str(), store.secret_key.expose_secret()), ("root", "r"));
        let missing = StoreSettings::from_env(&MapEnv::default()).unwrap_err().to_string();
        assert!(missing.contains("OBJECT_STORE_ACCESS_KEY is not set") && missing.contains("or set MINIO_ROOT_USER"));
    }

    #[test]
    fn the_web_tier_needs_its_address_and_nothing_secret() {
        let web = PlatformSettings::from_env(&MapEnv::of([("SITE_URL", "https://tale.example.org")])).unwrap();
        assert_eq!((web.backend.as_str(), web.port), ("http://backend-api:3005/", 3000));
        let missing = PlatformSettings::from_env(&MapEnv::of([("TALE_BACKEND_URL", "backend-api")])).unwrap_err();
        assert_eq!(missing.0.len(), 2, "{missing}");
    }

    #[test]
    fn an_empty_list_of_creators_means_nobody() {
        assert_eq!(with(&[("TALE_ORGANIZATION_CREATORS", "")]).unwrap().organization_creators, Some(Vec::new()));
        let some = with(&[("TALE_ORGANIZATION_CREATORS", "A@b.example; c@d.example")]).unwrap();
        assert_eq!(some.organization_creators.unwrap(), ["a@b.example", "c@d.example"]);
    }

    #[test]
    fn sign_up_stays_open_for_exactly_one_word() {
        let open = |word| with(&[("TALE_ALLOW_OPEN_SIGN_UP", word)]).unwrap().allow_open_sign_up;
        assert!(open("true"));
        for word in ["", "1", "yes", "TRUE", "on"] {
            assert!(!open(word), "{word}");
        }
    }

    #[test]
    fn analytics_need_all_three_values() {
        const SOUND: [(&str, &str); 3] = [
            ("UMAMI_URL", "https://stats.example.org"),
            ("UMAMI_WEBSITE_ID", "8f8b2f3e-1c1a-4d6e-9a55-3f3f8d8f0a11"),
            ("UMAMI_PROXY_TOKEN", "0123456789abcdef"),
        ];
        assert!(with(&SOUND).unwrap().analytics.is_some());
        for (n, wrong) in [
            (0, "https://stats.example.org/path"),
            (0, "http://stats.example.org"),
            (1, "site-1"),
            (2, "short"),
            (2, ""),
        ] {
            let mut pairs = SOUND;
            pairs[n].1 = wrong;
            assert!(with(&pairs).unwrap().analytics.is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_short_pepper_is_none() {
        let pepper = |text| with(&[("TALE_AUDIT_PEPPER", text)]).unwrap().audit_pepper.is_some();
        assert!(pepper("0123456789abcdef") && !pepper("0123456789abcde") && !pepper(""));
    }

    #[test]
    fn header_names_are_the_operators() {
        let names = with(&[("TRUSTED_EMAIL_HEADER", "X-Forwarded-Email")]).unwrap().trusted_headers;
        assert_eq!((names.email.as_str(), names.role.as_str()), ("X-Forwarded-Email", "Remote-Role"));
    }

    #[test]
    fn a_service_link_is_no_port() {
        assert_eq!(with(&[("PORT", "tcp://10.0.0.1:80")]).unwrap().port, 3005);
        assert!(with(&[("PORT", "70000")]).is_err());
    }
}
