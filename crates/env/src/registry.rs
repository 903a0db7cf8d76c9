//! One constant per variable, and the table of them all.

/// A variable as the operator meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Var {
    /// The name in the environment.
    pub name: &'static str,
    /// The chapter of the reference it stands in.
    pub section: &'static str,
    /// What holds when it is unset, in words.
    pub default: &'static str,
    /// The accepted form, completing "expected …".
    pub expects: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
    /// The first release that read it.
    pub since: &'static str,
    /// What it does.
    pub help: &'static str,
}

macro_rules! registry {
    ($($const:ident, $section:literal, $default:literal, $expects:literal, $secret:literal, $help:literal;)+) => {
        $(#[doc = $help]
        pub const $const: Var = Var {
            name: stringify!($const), section: $section, default: $default, expects: $expects,
            secret: $secret, since: "0.1.0", help: $help,
        };)+
        /// Every variable that Tale reads.
        pub const REGISTRY: &[Var] = &[$($const),+];
    };
}

registry! {
    SITE_URL, "domain", "http://localhost:<port>", "an absolute http or https URL without a path, such as https://tale.example.org", false,
        "The canonical public origin. Links, cookies and presigned uploads are made for it; https is required for hosts that are not loopback.";
    ADDITIONAL_SITE_URLS, "domain", "none", "bare origins (scheme://host[:port]) separated by commas or spaces", false,
        "Further origins that are full entry points to the same deployment.";
    BETTER_AUTH_SECRET, "secrets", "generated into the data directory by `tale dev`", "at least 16 characters", true,
        "Signs short-lived tokens of the sign-in flow.";
    ENCRYPTION_SECRET_HEX, "secrets", "generated into the data directory by `tale dev`", "exactly 64 hexadecimal digits", true,
        "Encrypts provider keys and other secrets at rest (AES-256-GCM).";
    ENCRYPTION_SECRET_PREVIOUS_HEX, "secrets", "unset", "exactly 64 hexadecimal digits", true,
        "The key before ENCRYPTION_SECRET_HEX; values encrypted with it still open.";
    INSTANCE_SECRET, "secrets", "generated into the data directory by `tale dev`", "exactly 64 hexadecimal digits", true,
        "The root from which signing keys of this instance are derived, page cursors among them.";
    DATABASE_URL, "database", "the private Postgres of `tale dev`", "postgres://USER:PASSWORD@HOST:PORT/NAME", true,
        "The operational database.";
    DATABASE_POOL_MAX, "database", "10", "a whole number from 2 to 100", false,
        "Most connections to the operational database per process.";
    KNOWLEDGE_DATABASE_URL, "database", "the private Postgres of `tale dev`", "postgres://USER:PASSWORD@HOST:PORT/NAME", true,
        "The database of passages and vectors. It needs the extension `vector`.";
    KNOWLEDGE_DB_POOL_MAX, "database", "10", "a whole number from 2 to 100", false,
        "Most connections to the knowledge database per process.";
    OBJECT_STORE_ENDPOINT, "object-store", "the embedded store of `tale dev`", "an absolute http or https URL", false,
        "An S3-compatible server for uploaded files.";
    OBJECT_STORE_ACCESS_KEY, "object-store", "generated into the data directory by `tale dev`", "an access key id", false,
        "Access key of the object store.";
    OBJECT_STORE_SECRET_KEY, "object-store", "generated into the data directory by `tale dev`", "a secret key", true,
        "Secret key of the object store.";
    OBJECT_STORE_BUCKET, "object-store", "tale-blobs", "a bucket name", false,
        "The bucket; the embedded store creates it.";
    OBJECT_STORE_REGION, "object-store", "us-east-1", "a region name", false,
        "Region that requests are signed for.";
    OBJECT_STORE_PREFIX, "object-store", "none (bucket root)", "a key prefix", false,
        "Prefix of every key in the bucket.";
    OBJECT_STORE_PUBLIC_ENDPOINT, "object-store", "SITE_URL with the embedded store, else the endpoint", "an absolute http or https URL", false,
        "The address under which browsers reach the object store.";
    TALE_AUDIT_PEPPER, "audit", "unset", "at least 16 characters", true,
        "Replaces e-mail addresses and networks of failed sign-ins by keyed hashes in the audit log.";
    TALE_ALLOW_PRIVATE_PROVIDER_HOSTS, "feature-flags", "unset (private hosts are refused)", "exactly 1", false,
        "Admits model providers on private and loopback addresses. Cloud metadata addresses stay refused.";
    TALE_ALLOW_OPEN_SIGN_UP, "feature-flags", "unset (only the first account)", "exactly true", false,
        "Keeps POST /api/auth/sign-up/email open after the first account. For throw-away test stacks only.";
    TALE_ORGANIZATION_CREATORS, "feature-flags", "unset (everybody)", "e-mail addresses separated by commas, semicolons or spaces; set to a comma for nobody", false,
        "Who may create organizations once one exists.";
    TALE_SETUP_TOKEN, "feature-flags", "a fresh token per start, printed to the log", "at least 8 characters", true,
        "Needed to create the first account from another machine than this one.";
    SESSION_IDLE_TIMEOUT_MINUTES, "sessions", "unset (7 days)", "a whole number from 1 to 1440", false,
        "Ends a session that was unused for so long.";
    WORKER_CONCURRENCY, "topology", "5", "a whole number from 1 to 64", false,
        "Background jobs that one process runs at the same time.";
    SHUTDOWN_DRAIN_MS, "topology", "15000", "a whole number from 1000 to 600000", false,
        "Longest time to finish running work after SIGTERM, in milliseconds.";
    TALE_DATA_DIR, "development", "~/.local/share/tale, or .tale in the working directory for `make run`", "a directory path", false,
        "Where `tale dev` keeps its database, files, secrets and search index.";
    TALE_EMBEDDED_POSTGRES_DIR, "development", "beside the program, else a system Postgres", "a directory with bin/postgres", false,
        "The Postgres 18 with pgvector that `tale dev` starts.";
    TALE_WEB_DIR, "development", "the web app inside the program", "a directory with index.html", false,
        "Serves the web app from a directory instead, for work on it.";
    TALE_LOG, "observability", "info", "a filter such as info or tale=debug,warn", false,
        "What is logged.";
    TALE_LOG_FORMAT, "observability", "text on a terminal, json otherwise", "text or json", false,
        "The form of log lines.";
}

/// Prefix of the variables that an `env` provider credential may name (MOD-34).
pub const PROVIDER_KEY_PREFIX: &str = "TALE_PROVIDER_KEY_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_stands_once_and_is_explained() {
        let mut names = std::collections::HashSet::new();
        for var in REGISTRY {
            assert!(names.insert(var.name), "{} stands twice", var.name);
            assert!(var.help.ends_with('.'), "{} needs a sentence", var.name);
            assert!(!var.expects.is_empty() && !var.default.is_empty());
        }
    }
}
