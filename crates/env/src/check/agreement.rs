//! Values that processes of one deployment have to share.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::environment::Environment;
use crate::reader::{EnvProblem, Severity};
use crate::registry::{self, Default, Role, Var};

/// What is wrong when two processes differ.
#[derive(Clone, Copy)]
enum Harm {
    /// What one of them writes or signs, another cannot read or does not believe.
    Broken,
    /// They act differently on the same thing.
    Uneven,
}

/// What has to be the same wherever it is read. Ports, pools, logs and folders are each process's own.
const SHARED: &[(&Var, Harm)] = &[
    (&registry::SITE_URL, Harm::Broken),
    (&registry::ADDITIONAL_SITE_URLS, Harm::Broken),
    (&registry::BASE_PATH, Harm::Broken),
    (&registry::BETTER_AUTH_SECRET, Harm::Broken),
    (&registry::ENCRYPTION_SECRET_HEX, Harm::Broken),
    (&registry::ENCRYPTION_SECRET_PREVIOUS_HEX, Harm::Uneven),
    (&registry::INSTANCE_SECRET, Harm::Broken),
    (&registry::TALE_AUDIT_PEPPER, Harm::Uneven),
    (&registry::DATABASE_URL, Harm::Uneven),
    (&registry::KNOWLEDGE_DATABASE_URL, Harm::Uneven),
    (&registry::DB_PASSWORD, Harm::Broken),
    (&registry::POSTGRES_USER, Harm::Broken),
    (&registry::APP_DB_NAME, Harm::Broken),
    (&registry::KNOWLEDGE_DB_NAME, Harm::Broken),
    (&registry::OBJECT_STORE_ENDPOINT, Harm::Uneven),
    (&registry::OBJECT_STORE_ACCESS_KEY, Harm::Uneven),
    (&registry::OBJECT_STORE_SECRET_KEY, Harm::Uneven),
    (&registry::OBJECT_STORE_BUCKET, Harm::Broken),
    (&registry::OBJECT_STORE_PREFIX, Harm::Broken),
    (&registry::OBJECT_STORE_REGION, Harm::Uneven),
    (&registry::OBJECT_STORE_PUBLIC_ENDPOINT, Harm::Broken),
    (&registry::SESSION_IDLE_TIMEOUT_MINUTES, Harm::Uneven),
    (&registry::SESSION_COOKIE_CACHE_SECONDS, Harm::Uneven),
    (&registry::TALE_ALLOW_PRIVATE_PROVIDER_HOSTS, Harm::Uneven),
    (&registry::TALE_ENV_KEY_HOSTS, Harm::Uneven),
    (&registry::TALE_ALLOW_OPEN_SIGN_UP, Harm::Uneven),
    (&registry::TALE_ORGANIZATION_CREATORS, Harm::Uneven),
    (&registry::METRICS_BEARER_TOKEN, Harm::Uneven),
    (&registry::TRUSTED_SECRET_HEADER, Harm::Uneven),
    (&registry::TRUSTED_EMAIL_HEADER, Harm::Uneven),
    (&registry::TRUSTED_NAME_HEADER, Harm::Uneven),
    (&registry::TRUSTED_ROLE_HEADER, Harm::Uneven),
    (&registry::TRUSTED_TEAMS_HEADER, Harm::Uneven),
];

/// The environment of one process, with the name under which findings tell of it.
pub struct Part<'a> {
    /// Its role.
    pub role: Role,
    /// Its variables.
    pub env: &'a Environment,
    /// Where they stand: a file.
    pub name: &'a str,
}

/// What the processes of one deployment do not agree on. Values are compared and never told.
#[must_use]
pub fn agreement(parts: &[Part<'_>]) -> Vec<EnvProblem> {
    let mut found = Vec::new();
    for &(var, harm) in SHARED {
        let mut readers = parts.iter().filter(|part| part.shares(var));
        let Some(first) = readers.next() else { continue };
        for other in readers {
            if first.value(var) != other.value(var) {
                let store = [first.role, other.role].contains(&Role::ObjectStore);
                found.push(differs(var.name, if store { Harm::Broken } else { harm }, first, other));
            }
        }
    }
    found.sort_by_key(|problem| problem.severity);
    found
}

impl Part<'_> {
    /// Whether it depends on the others for a variable. The store shares nothing but its keys.
    fn shares(&self, var: &Var) -> bool {
        // Parts of addresses that are made only where none is given.
        let addresses: &[&Var] = match var.name {
            "APP_DB_NAME" => &[&registry::DATABASE_URL],
            "KNOWLEDGE_DB_NAME" => &[&registry::KNOWLEDGE_DATABASE_URL],
            "DB_PASSWORD" | "POSTGRES_USER" => &[&registry::DATABASE_URL, &registry::KNOWLEDGE_DATABASE_URL],
            _ => &[],
        };
        let unused = !addresses.is_empty() && addresses.iter().all(|address| self.set(address).is_some());
        self.role.reads(var) && !unused && (self.role != Role::ObjectStore || own_name(var).is_some())
    }

    /// What holds: the value, or the default where that is one. The store knows its keys by names of its own as well.
    fn value(&self, var: &Var) -> Option<String> {
        if var.name == registry::ENCRYPTION_SECRET_HEX.name {
            return self.encryption_key();
        }
        let own = own_name(var).filter(|_| self.role == Role::ObjectStore).and_then(|own| self.set(own));
        let literal = if let Default::Value(value) = var.default { Some(value) } else { None };
        let value = match var.empty_counts {
            true => self.env.raw(var.name).map(str::trim),
            false => own.or_else(|| self.set(var)).or(literal),
        };
        value.map(str::to_owned)
    }

    /// The same key may be written in two ways.
    fn encryption_key(&self) -> Option<String> {
        let base64 = || {
            let text = self.set(&registry::ENCRYPTION_SECRET)?;
            let bytes = STANDARD.decode(text).ok()?;
            Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        };
        self.set(&registry::ENCRYPTION_SECRET_HEX).map(str::to_ascii_lowercase).or_else(base64)
    }

    fn set(&self, var: &Var) -> Option<&str> {
        self.env.raw(var.name).map(str::trim).filter(|text| !text.is_empty())
    }
}

fn own_name(var: &Var) -> Option<&'static Var> {
    if var.name == registry::OBJECT_STORE_ACCESS_KEY.name {
        Some(&registry::MINIO_ROOT_USER)
    } else if var.name == registry::OBJECT_STORE_SECRET_KEY.name {
        Some(&registry::MINIO_ROOT_PASSWORD)
    } else {
        None
    }
}

fn differs(name: &str, harm: Harm, one: &Part<'_>, other: &Part<'_>) -> EnvProblem {
    let severity = match harm {
        Harm::Broken => Severity::Error,
        Harm::Uneven => Severity::Warning,
    };
    let why = format!("differs between {} ({}) and {} ({})", one.role.name(), one.name, other.role.name(), other.name);
    EnvProblem::new(severity, name, why, "Give every process the same value")
}
