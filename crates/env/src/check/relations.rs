//! Values that are fine alone and wrong together.

use std::path::Path;

use url::Url;

use super::{Scope, site};
use crate::environment::{Environment, Origin};
use crate::kind::{Kind, Value, is_loopback};
use crate::reader::{EnvProblem, Severity};
use crate::registry::{self, Default, Role, Var};

/// Pairs of which one without the other does nothing.
const PAIRS: &[(&str, &str)] = &[
    ("CLOUD_IMPORT_MICROSOFT_CLIENT_ID", "CLOUD_IMPORT_MICROSOFT_CLIENT_SECRET"),
    ("CLOUD_IMPORT_GOOGLE_DRIVE_CLIENT_ID", "CLOUD_IMPORT_GOOGLE_DRIVE_CLIENT_SECRET"),
    ("AUTH_MICROSOFT_ENTRA_ID_ID", "AUTH_MICROSOFT_ENTRA_ID_SECRET"),
    ("UMAMI_URL", "UMAMI_WEBSITE_ID"),
    ("UMAMI_URL", "UMAMI_PROXY_TOKEN"),
    ("RAG_RERANKING_BASE_URL", "RAG_RERANKING_MODEL"),
];

/// Longest names in families that credentials refer to (DCF-155).
const LONGEST: &[(&str, usize)] = &[("TALE_PROVIDER_KEY_", 40), ("TALE_TOKEN_SOURCE_", 60)];

struct Relations<'a> {
    env: &'a Environment,
    found: &'a mut Vec<EnvProblem>,
}

/// Adds what does not fit together.
pub(super) fn add(env: &Environment, role: Role, scope: Scope, found: &mut Vec<EnvProblem>) {
    let mut relations = Relations { env, found };
    if role.reads(&registry::WORKER_CONCURRENCY) {
        relations.pools();
    }
    if role.reads(&registry::ENCRYPTION_SECRET_HEX) {
        relations.keys();
    }
    if role.reads(&registry::SITE_URL) {
        relations.origins();
    }
    if role.reads(&registry::OBJECT_STORE_ENDPOINT) {
        relations.store();
    }
    if role == Role::ObjectStore {
        relations.store_of_ours();
    }
    if role == Role::LlmGateway || (role == Role::All && relations.text(registry::LLM_GATEWAY_PORT.name).is_some()) {
        relations.gateway_of_ours();
    }
    if role.reads(&registry::TLS_MODE) {
        relations.certificates();
    }
    if role.reads(&registry::POSTGRES_CA_FILE) {
        relations.verification();
    }
    if role.reads(&registry::SMTP_HOST) {
        relations.mail();
    }
    if role == Role::SandboxEgress {
        relations.counts();
    }
    relations.parts(role);
    relations.names();
    if scope == Scope::Here {
        relations.files(role);
    }
}

impl Relations<'_> {
    fn say(&mut self, severity: Severity, variable: &str, why: impl Into<String>, fix: impl Into<String>) {
        self.found.push(EnvProblem::new(severity, variable, why, fix));
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.env.raw(name).map(str::trim).filter(|text| !text.is_empty())
    }

    fn number(&self, var: &Var) -> Option<u64> {
        let literal = if let Default::Value(value) = var.default { Some(value) } else { None };
        match var.kind.check(self.text(var.name).or(literal)?) {
            Ok(Value::Integer(number)) => Some(number),
            _ => None,
        }
    }

    fn url(&self, name: &str) -> Option<Url> {
        Url::parse(self.text(name)?).ok()
    }

    /// An indexing job holds a connection while it commits (DCF-66).
    fn pools(&mut self) {
        let jobs = self.number(&registry::WORKER_CONCURRENCY);
        let pool = self.number(&registry::KNOWLEDGE_DB_POOL_MAX);
        if let (Some(jobs), Some(pool)) = (jobs, pool)
            && pool < jobs
        {
            let why =
                format!("gives {pool} connections to {jobs} jobs of WORKER_CONCURRENCY, which then wait for them");
            self.say(Severity::Warning, "KNOWLEDGE_DB_POOL_MAX", why, format!("Set it to {jobs} or more"));
        }
    }

    fn keys(&mut self) {
        let hex = self.text("ENCRYPTION_SECRET_HEX");
        if hex.is_some() && self.text("ENCRYPTION_SECRET").is_some() {
            let why = "is ignored, because ENCRYPTION_SECRET_HEX is set";
            self.say(Severity::Warning, "ENCRYPTION_SECRET", why, "Leave it out");
        }
        let same = |a: Option<&str>, b: Option<&str>| a.is_some() && a == b;
        if same(self.text("ENCRYPTION_SECRET_HEX"), self.text("INSTANCE_SECRET")) {
            let why = "is the same as ENCRYPTION_SECRET_HEX, so that one leak opens both";
            self.say(Severity::Warning, "INSTANCE_SECRET", why, "Use two different keys");
        }
    }

    /// A limit that begins with a zero is more likely a mistyped one than a small one.
    fn counts(&mut self) {
        for var in [&registry::SANDBOX_EGRESS_MAX_CLIENTS, &registry::SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION] {
            let Some(text) = self.text(var.name) else { continue };
            if text.len() > 1 && text.starts_with('0') {
                let why = format!("is {text:?}, which begins with a zero");
                self.say(Severity::Error, var.name, why, "Write the number without it");
            }
        }
    }

    /// Mail needs a sender, an account needs its password, and a password needs an encrypted connection.
    fn mail(&mut self) {
        let (from, username, password) =
            (registry::SMTP_FROM.name, registry::SMTP_USERNAME.name, registry::SMTP_PASSWORD.name);
        if self.text(registry::SMTP_HOST.name).is_none() {
            for name in [from, username, password].into_iter().filter(|name| self.env.is_set(name)).collect::<Vec<_>>()
            {
                let why = "has no effect, because SMTP_HOST is not set";
                self.say(Severity::Warning, name, why, "Set SMTP_HOST, or leave it out");
            }
            return;
        }
        if self.text(from).is_none() {
            let why = "is not set, but SMTP_HOST is";
            self.say(Severity::Error, from, why, "Set it to the address that mails come from");
        }
        for (missing, other) in [(password, username), (username, password)] {
            if self.env.is_set(other) && !self.env.is_set(missing) {
                let why = format!("is not set, but {other} is");
                self.say(Severity::Error, missing, why, "Set both, or neither");
            }
        }
        if self.env.is_set(password) && self.env.is_set(username) && self.text(registry::SMTP_TLS.name) == Some("none")
        {
            let why = "would be sent in the clear with SMTP_TLS=none";
            self.say(Severity::Error, password, why, "Use SMTP_TLS=starttls or implicit, or a server without accounts");
        }
    }

    fn origins(&mut self) {
        let Some(site) = site(self.env) else { return };
        if let (Some(host), Some(named)) = (self.text("HOST"), site.host_str())
            && !host.eq_ignore_ascii_case(named)
        {
            let why = format!("is {host:?}, but SITE_URL names {named:?}, which counts");
            self.say(Severity::Note, "HOST", why, "Set both to the same host, or leave HOST out");
        }
        let list = self.text("ADDITIONAL_SITE_URLS").unwrap_or_default();
        if let Ok(Value::Urls(urls)) = Kind::Origins.check(list)
            && site.scheme() == "https"
            && let Some(plain) = urls.iter().find(|url| url.scheme() == "http" && !is_loopback(url))
        {
            let why = format!("holds {plain}, where browsers send no cookies of an https site");
            self.say(Severity::Warning, "ADDITIONAL_SITE_URLS", why, "Use https for it");
        }
    }

    fn store(&mut self) {
        for (missing, other) in [
            ("OBJECT_STORE_SECRET_KEY", "OBJECT_STORE_ACCESS_KEY"),
            ("OBJECT_STORE_ACCESS_KEY", "OBJECT_STORE_SECRET_KEY"),
        ] {
            if self.env.is_set(other) && !self.env.is_set(missing) {
                let why = format!("is not set, but {other} is");
                self.say(Severity::Error, missing, why, "Set both keys of the object store, or neither");
            }
        }
        self.base_path_and_bucket();
        let public = self.text("OBJECT_STORE_PUBLIC_ENDPOINT").is_some();
        let name = if public { "OBJECT_STORE_PUBLIC_ENDPOINT" } else { "OBJECT_STORE_ENDPOINT" };
        let Some(endpoint) = self.url(name) else { return };
        if site(self.env).is_some_and(|site| site.scheme() == "https" && !is_loopback(&site))
            && endpoint.scheme() == "http"
        {
            let why = "is where browsers fetch files, over plain http, which they refuse on an https site";
            let fix = "Set OBJECT_STORE_PUBLIC_ENDPOINT to an https address, such as SITE_URL with the bucket's path passed on";
            self.say(Severity::Warning, name, why, fix);
        }
        let address = matches!(endpoint.host(), Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)));
        let style = self.text("OBJECT_STORE_FORCE_PATH_STYLE").map(|text| Kind::Bool.check(text));
        if address && style == Some(Ok(Value::Switch(false))) {
            let why = "is false, but an endpoint given by address has no names below it";
            self.say(Severity::Warning, "OBJECT_STORE_FORCE_PATH_STYLE", why, "Leave it out");
        }
    }

    /// What the store accepts: its own pair of keys, or the backend's.
    fn store_of_ours(&mut self) {
        for (key, own) in
            [("OBJECT_STORE_ACCESS_KEY", "MINIO_ROOT_USER"), ("OBJECT_STORE_SECRET_KEY", "MINIO_ROOT_PASSWORD")]
        {
            if !self.env.is_set(key) && !self.env.is_set(own) {
                let fix = format!("Set it to the key that the backend uses, or set {own}");
                self.say(Severity::Error, key, "is not set", fix);
            }
        }
    }

    /// The gateway holds the keys of providers, so it starts only with a lock on its administration.
    fn gateway_of_ours(&mut self) {
        let password = registry::SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.name;
        if !self.env.is_set(password) {
            self.say(Severity::Error, password, "is not set", "Set it to the password that the backend uses");
        }
    }

    /// Public authorities certify names, and the proxy listens where the site is.
    fn certificates(&mut self) {
        let published = self.text("PROXY_HTTPS_PORT").and_then(|text| text.parse::<u16>().ok());
        if let (Some(published), Some(site)) = (published, site(self.env))
            && self.text("TLS_MODE") != Some("external")
            && site.scheme() == "https"
            && site.port_or_known_default() != Some(published)
        {
            let port = site.port_or_known_default().unwrap_or(443);
            let why = format!("is {published}, but browsers go to port {port} of SITE_URL");
            self.say(Severity::Warning, "PROXY_HTTPS_PORT", why, "Use the same port for both");
        }
        if self.text("TLS_MODE") != Some("letsencrypt") {
            return;
        }
        let further = match Kind::Origins.check(self.text("ADDITIONAL_SITE_URLS").unwrap_or_default()) {
            Ok(Value::Urls(urls)) => urls,
            _ => Vec::new(),
        };
        let origins = site(self.env).map(|site| ("SITE_URL", site)).into_iter();
        for (name, origin) in origins.chain(further.into_iter().map(|url| ("ADDITIONAL_SITE_URLS", url))) {
            let private = match origin.host() {
                Some(url::Host::Domain(domain)) => !domain.trim_end_matches('.').contains('.'),
                _ => true,
            };
            if private && origin.scheme() == "https" {
                let host = origin.host_str().unwrap_or_default();
                let why = format!("names the host {host:?}, for which Let's Encrypt gives no certificate");
                let fix = "Use a public host name, or TLS_MODE=selfsigned or file";
                self.say(Severity::Error, name, why, fix);
            }
        }
    }

    /// Both begin paths of the same host: what a browser sends there belongs to one of them.
    fn base_path_and_bucket(&mut self) {
        let literal =
            if let Default::Value(value) = registry::OBJECT_STORE_BUCKET.default { Some(value) } else { None };
        let first = self.text("BASE_PATH").and_then(|path| path.strip_prefix('/')?.split('/').next());
        let Some(bucket) = self.text("OBJECT_STORE_BUCKET").or(literal).filter(|bucket| first == Some(bucket)) else {
            return;
        };
        let why = format!("begins with /{bucket}, which is the path of files in the bucket of that name");
        self.say(Severity::Error, "BASE_PATH", why, "Choose another path, or another OBJECT_STORE_BUCKET");
    }

    fn verification(&mut self) {
        if self.text("POSTGRES_CA_FILE").is_none() {
            return;
        }
        for name in ["DATABASE_URL", "KNOWLEDGE_DATABASE_URL"] {
            let mode = self
                .url(name)
                .and_then(|url| url.query_pairs().find(|(key, _)| key == "sslmode").map(|(_, mode)| mode.into_owned()));
            let verifies = mode.as_deref().is_some_and(|mode| mode == "verify-full" || mode == "verify-ca");
            if self.text(name).is_some() && !verifies && !matches!(self.env.origin(name), Some(Origin::Dev)) {
                let why = "asks for no verification, so that POSTGRES_CA_FILE has no effect on it";
                self.say(Severity::Warning, name, why, "Add sslmode=verify-full to it, or leave POSTGRES_CA_FILE out");
            }
        }
    }

    /// Parts that come later: what would not work then.
    fn parts(&mut self, role: Role) {
        let read = |name: &str| registry::find(name).is_some_and(|var| role.reads(var));
        for &(one, other) in PAIRS {
            for (set, unset) in [(one, other), (other, one)] {
                if read(set) && self.text(set).is_some() && self.text(unset).is_none() {
                    let why = format!("is set without {unset}");
                    self.say(Severity::Note, set, why, "Set both or neither");
                }
            }
        }
        if read("TLS_MODE") && self.text("TLS_MODE") == Some("file") {
            for name in ["TLS_CERT_FILE", "TLS_KEY_FILE"] {
                if self.text(name).is_none() {
                    let fix = "Set it to the path of a PEM file";
                    self.say(Severity::Error, name, "is not set, which TLS_MODE=file needs", fix);
                }
            }
        }
        let idle = self.number(&registry::SESSION_IDLE_TIMEOUT_MINUTES).map(|minutes| minutes * 60 / 4);
        let cache = self.text("SESSION_COOKIE_CACHE_SECONDS").and_then(|text| text.parse::<u64>().ok());
        if read("SESSION_COOKIE_CACHE_SECONDS")
            && let (Some(quarter), Some(cache)) = (idle, cache)
            && cache > quarter
        {
            let why = format!("is more than a quarter of SESSION_IDLE_TIMEOUT_MINUTES, {quarter} s");
            let fix = format!("Set it to {quarter} or less");
            self.say(Severity::Note, "SESSION_COOKIE_CACHE_SECONDS", why, fix);
        }
    }

    fn names(&mut self) {
        for name in self.env.names() {
            let longest = LONGEST.iter().find(|(prefix, _)| name.starts_with(prefix));
            if let Some(&(_, longest)) = longest.filter(|(_, longest)| name.len() > *longest) {
                let why = format!("has a name of {} characters; no credential can refer to it", name.len());
                let fix = format!("Shorten the name to {longest} characters");
                self.found.push(EnvProblem::new(Severity::Warning, name, why, fix));
            }
        }
    }

    /// Files and directories that variables name must be here.
    fn files(&mut self, role: Role) {
        for var in registry::vars().filter(|var| var.is_read() && role.reads(var) && var.family().is_none()) {
            let Some(path) = self.text(var.name) else { continue };
            if !matches!(self.env.origin(var.name), Some(Origin::Environment)) {
                continue;
            }
            let problem = match var.kind {
                Kind::File => std::fs::File::open(path).err().map(|error| format!("cannot be read ({error})")),
                // The data directory is made when it is missing.
                Kind::Directory if var.name != registry::TALE_DATA_DIR.name && !Path::new(path).is_dir() => {
                    Some("is no directory".to_owned())
                }
                _ => None,
            };
            if let Some(problem) = problem {
                let why = format!("is {path:?}, which {problem}");
                let severity = if var.kind == Kind::File { Severity::Error } else { Severity::Warning };
                self.say(severity, var.name, why, "Correct the path, or let this user read it");
            }
        }
    }
}
