//! The typed settings, built once at start from an [`EnvSource`].

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use crate::reader::{EnvProblems, EnvReader, EnvSource};
use crate::registry as var;

/// Everything the roles are built from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Origins.
    pub site: SiteSettings,
    /// Secrets of the instance.
    pub secrets: SecretSettings,
    /// Both databases.
    pub database: DatabaseSettings,
    /// The default object store.
    pub object_store: ObjectStoreSettings,
    /// Whether providers on private addresses are admitted (MOD-18).
    pub allow_private_provider_hosts: bool,
    /// Whether sign-up stays open after the first account (ACC-8).
    pub allow_open_sign_up: bool,
    /// Who may create organizations, lower-cased; `None` = everybody (ORG-1).
    pub organization_creators: Option<Vec<String>>,
    /// A preset one-time setup token (STP-5).
    pub setup_token: Option<SecretString>,
    /// Deployment-wide idle limit of a session (SES-3).
    pub session_idle_timeout: Option<Duration>,
    /// Pepper of audit pseudonyms (SIN-8).
    pub audit_pepper: Option<SecretString>,
    /// Jobs at the same time per process.
    pub worker_concurrency: usize,
    /// Longest drain after SIGTERM.
    pub shutdown_drain: Duration,
    /// Serves the web app from a directory instead of the program.
    pub web_dir: Option<PathBuf>,
}

/// Origins of the deployment.
#[derive(Debug, Clone)]
pub struct SiteSettings {
    /// The canonical origin, without a trailing slash.
    pub url: Url,
    /// Further full entry points.
    pub additional: Vec<Url>,
}

impl SiteSettings {
    /// Whether `origin` (the value of an `Origin` header) is one of ours.
    #[must_use]
    pub fn allows_origin(&self, origin: &str) -> bool {
        std::iter::once(&self.url).chain(&self.additional).any(|ours| ours.origin().ascii_serialization() == origin)
    }

    /// Whether cookies carry `Secure`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }
}

/// Secrets of the instance.
#[derive(Debug, Clone)]
pub struct SecretSettings {
    /// `BETTER_AUTH_SECRET`.
    pub auth: SecretString,
    /// `ENCRYPTION_SECRET_HEX`.
    pub encryption_hex: SecretString,
    /// `ENCRYPTION_SECRET_PREVIOUS_HEX`.
    pub encryption_previous_hex: Option<SecretString>,
    /// `INSTANCE_SECRET`.
    pub instance_hex: SecretString,
}

/// Both databases.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `DATABASE_URL`.
    pub app_url: SecretString,
    /// `KNOWLEDGE_DATABASE_URL`.
    pub knowledge_url: SecretString,
    /// Most connections to the operational database.
    pub app_pool_max: u32,
    /// Most connections to the knowledge database.
    pub knowledge_pool_max: u32,
}

/// The default object store.
#[derive(Debug, Clone)]
pub struct ObjectStoreSettings {
    /// Where we reach it.
    pub endpoint: Url,
    /// Where browsers reach it.
    pub public_endpoint: Url,
    /// Access key id.
    pub access_key: String,
    /// Secret key.
    pub secret_key: SecretString,
    /// The bucket.
    pub bucket: String,
    /// Region of signatures.
    pub region: String,
    /// Prefix of every key, without slashes at its ends.
    pub prefix: Option<String>,
}

impl Settings {
    /// Reads and checks everything at once.
    ///
    /// # Errors
    /// Every unusable variable, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        let site = read_site(&mut env);
        let secrets = read_secrets(&mut env);
        let database = read_database(&mut env);
        let object_store = read_object_store(&mut env, site.as_ref());
        let organization_creators = source
            .get(var::TALE_ORGANIZATION_CREATORS.name)
            .map(|list| split_list(&list).map(str::to_lowercase).collect());
        let session_idle_timeout = env
            .parsed::<u64>(&var::SESSION_IDLE_TIMEOUT_MINUTES, |minutes| (1..=1440).contains(minutes))
            .map(|minutes| Duration::from_secs(minutes * 60));
        let setup_token = long_secret(&mut env, &var::TALE_SETUP_TOKEN, 8);
        let audit_pepper = long_secret(&mut env, &var::TALE_AUDIT_PEPPER, 16);
        let worker_concurrency = env.parsed(&var::WORKER_CONCURRENCY, |n| (1..=64).contains(n)).unwrap_or(5);
        let drain_ms = env.parsed::<u64>(&var::SHUTDOWN_DRAIN_MS, |ms| (1000..=600_000).contains(ms)).unwrap_or(15_000);
        let settings = (|| {
            Some(Self {
                site: site?,
                secrets: secrets?,
                database: database?,
                object_store: object_store?,
                allow_private_provider_hosts: env.text(&var::TALE_ALLOW_PRIVATE_PROVIDER_HOSTS).as_deref() == Some("1"),
                allow_open_sign_up: env.text(&var::TALE_ALLOW_OPEN_SIGN_UP).as_deref() == Some("true"),
                organization_creators,
                setup_token,
                session_idle_timeout,
                audit_pepper,
                worker_concurrency,
                shutdown_drain: Duration::from_millis(drain_ms),
                web_dir: env.text(&var::TALE_WEB_DIR).map(PathBuf::from),
            })
        })();
        env.finish(settings)
    }
}

fn split_list(list: &str) -> impl Iterator<Item = &str> {
    list.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|entry| !entry.is_empty())
}

fn parse_origin(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let bare = matches!(url.scheme(), "http" | "https")
        && url.host().is_some()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    bare.then_some(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(v4)) => v4.is_loopback(),
        Some(url::Host::Ipv6(v6)) => v6.is_loopback(),
        None => false,
    }
}

fn read_site(env: &mut EnvReader<'_>) -> Option<SiteSettings> {
    let text = env.required(&var::SITE_URL)?;
    let url = parse_origin(&text).filter(|url| url.scheme() == "https" || is_loopback(url));
    if url.is_none() {
        env.refuse(&var::SITE_URL, &text);
    }
    let list = env.text(&var::ADDITIONAL_SITE_URLS).unwrap_or_default();
    let mut additional = Vec::new();
    for entry in split_list(&list) {
        match parse_origin(entry) {
            Some(origin) => additional.push(origin),
            None => env.refuse(&var::ADDITIONAL_SITE_URLS, entry),
        }
    }
    Some(SiteSettings { url: url?, additional })
}

fn long_secret(env: &mut EnvReader<'_>, var: &'static var::Var, min: usize) -> Option<SecretString> {
    let text = env.text(var)?;
    if text.chars().count() < min {
        env.refuse(var, &text);
        return None;
    }
    Some(text.into())
}

fn hex_secret(env: &mut EnvReader<'_>, var: &'static var::Var, text: String) -> Option<SecretString> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(text.into());
    }
    env.refuse(var, &text);
    None
}

fn read_secrets(env: &mut EnvReader<'_>) -> Option<SecretSettings> {
    let auth = env.required(&var::BETTER_AUTH_SECRET).and_then(|_| long_secret(env, &var::BETTER_AUTH_SECRET, 16));
    let encryption =
        env.required(&var::ENCRYPTION_SECRET_HEX).and_then(|text| hex_secret(env, &var::ENCRYPTION_SECRET_HEX, text));
    let previous = env
        .text(&var::ENCRYPTION_SECRET_PREVIOUS_HEX)
        .map(|text| hex_secret(env, &var::ENCRYPTION_SECRET_PREVIOUS_HEX, text));
    let instance = env.required(&var::INSTANCE_SECRET).and_then(|text| hex_secret(env, &var::INSTANCE_SECRET, text));
    Some(SecretSettings {
        auth: auth?,
        encryption_hex: encryption?,
        encryption_previous_hex: previous.flatten(),
        instance_hex: instance?,
    })
}

fn postgres_url(env: &mut EnvReader<'_>, var: &'static var::Var) -> Option<SecretString> {
    let text = env.required(var)?;
    let usable =
        Url::parse(&text).is_ok_and(|url| matches!(url.scheme(), "postgres" | "postgresql") && url.path().len() > 1);
    if !usable {
        env.refuse(var, &text);
        return None;
    }
    Some(text.into())
}

fn read_database(env: &mut EnvReader<'_>) -> Option<DatabaseSettings> {
    let app_url = postgres_url(env, &var::DATABASE_URL);
    let knowledge_url = postgres_url(env, &var::KNOWLEDGE_DATABASE_URL);
    let pool = |env: &mut EnvReader<'_>, var| env.parsed(var, |n| (2..=100).contains(n)).unwrap_or(10);
    let app_pool_max = pool(env, &var::DATABASE_POOL_MAX);
    let knowledge_pool_max = pool(env, &var::KNOWLEDGE_DB_POOL_MAX);
    Some(DatabaseSettings { app_url: app_url?, knowledge_url: knowledge_url?, app_pool_max, knowledge_pool_max })
}

fn http_url(env: &mut EnvReader<'_>, var: &'static var::Var) -> Option<Url> {
    let text = env.text(var)?;
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
    if url.is_none() {
        env.refuse(var, &text);
    }
    url
}

fn read_object_store(env: &mut EnvReader<'_>, site: Option<&SiteSettings>) -> Option<ObjectStoreSettings> {
    let endpoint = env.required(&var::OBJECT_STORE_ENDPOINT).and_then(|_| http_url(env, &var::OBJECT_STORE_ENDPOINT));
    let public = http_url(env, &var::OBJECT_STORE_PUBLIC_ENDPOINT);
    let access_key = env.required(&var::OBJECT_STORE_ACCESS_KEY);
    let secret_key = env.required(&var::OBJECT_STORE_SECRET_KEY);
    let prefix = env
        .text(&var::OBJECT_STORE_PREFIX)
        .map(|text| text.trim_matches('/').to_owned())
        .filter(|text| !text.is_empty());
    let endpoint = endpoint?;
    let public_endpoint = public.or_else(|| site.map(|_| endpoint.clone()))?;
    Some(ObjectStoreSettings {
        endpoint,
        public_endpoint,
        access_key: access_key?,
        secret_key: secret_key?.into(),
        bucket: env.text(&var::OBJECT_STORE_BUCKET).unwrap_or_else(|| "tale-blobs".to_owned()),
        region: env.text(&var::OBJECT_STORE_REGION).unwrap_or_else(|| "us-east-1".to_owned()),
        prefix,
    })
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_complete_environment_gives_settings() {
        let settings = Settings::from_env(&complete()).unwrap();
        assert!(settings.site.allows_origin("https://tale.example.org"));
        assert!(!settings.site.allows_origin("https://tale.example.org.evil.example"));
        assert_eq!(settings.worker_concurrency, 5);
    }

    #[test]
    fn every_problem_is_reported_at_once_and_no_secret_is_shown() {
        let mut env = complete();
        env.0.insert("DATABASE_URL".into(), "mysql://root:secret-word@db/x".into());
        env.0.insert("WORKER_CONCURRENCY".into(), "0".into());
        env.0.insert("ADDITIONAL_SITE_URLS".into(), "https://a.example/path".into());
        env.0.insert("OBJECT_STORE_ACCESS_KEY".into(), " ".into());
        let text = Settings::from_env(&env).unwrap_err().to_string();
        assert!(text.starts_with("4 settings are wrong, nothing was started\n"), "{text}");
        for name in [
            "DATABASE_URL is set but unusable",
            "WORKER_CONCURRENCY is \"0\"",
            "ADDITIONAL_SITE_URLS",
            "OBJECT_STORE_ACCESS_KEY is not set",
        ] {
            assert!(text.contains(name), "{name} missing in {text}");
        }
        assert!(!text.contains("secret-word"));
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        let mut env = complete();
        env.0.insert("SITE_URL".into(), "http://localhost:3000".into());
        assert!(Settings::from_env(&env).is_ok());
        env.0.insert("SITE_URL".into(), "http://tale.example.org".into());
        assert!(Settings::from_env(&env).is_err());
    }
}
