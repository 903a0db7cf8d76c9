//! The address of a Sentry-compatible service: `https://PUBLIC_KEY@HOST/PROJECT`.

use tale_env::{EnvProblem, Severity, registry};
use url::Url;

/// Where reports go.
#[derive(Debug, Clone)]
pub(super) struct Dsn {
    pub(super) envelope: Url,
    pub(super) key: String,
}

impl Dsn {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let key = Some(url.username()).filter(|key| !key.is_empty())?.to_owned();
        let (prefix, project) = url.path().trim_end_matches('/').rsplit_once('/')?;
        if project.is_empty() || !project.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let path = format!("{prefix}/api/{project}/envelope/");
        let mut envelope = url.clone();
        envelope.set_username("").ok()?;
        envelope.set_password(None).ok()?;
        envelope.set_path(&path);
        envelope.set_query(None);
        envelope.set_fragment(None);
        Some(Self { envelope, key })
    }
}

pub(super) fn refused() -> EnvProblem {
    EnvProblem::new(
        Severity::Error,
        registry::SENTRY_DSN.name,
        "is no address of a project of a Sentry-compatible service",
        "Copy it from the project's settings: https://PUBLIC_KEY@HOST/PROJECT",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_a_key_and_a_project() {
        let dsn = Dsn::parse("https://abc:old@sentry.example.com:9000/behind/7").unwrap();
        assert_eq!(dsn.envelope.as_str(), "https://sentry.example.com:9000/behind/api/7/envelope/");
        assert_eq!(dsn.key, "abc");
        for wrong in ["https://sentry.example.com/7", "https://abc@sentry.example.com/", "abc"] {
            assert!(Dsn::parse(wrong).is_none(), "{wrong}");
        }
    }
}
