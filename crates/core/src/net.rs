//! The one guard for outbound requests to addresses that a user can influence.
//!
//! A host is resolved, every address is judged, and the connection goes to a judged address: the
//! judgement happens inside the HTTP client's own resolver, so a name that changes its answer
//! between check and connection (DNS rebinding) gains nothing. Literal addresses never reach a
//! resolver, so [`check_url`] judges them and is called for each request. Redirects are not
//! followed. Proxy variables of the environment are ignored.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::problem::{Code, Problem};
use crate::reach::{Reach, reach};

/// Which destinations are admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// Public addresses only.
    #[default]
    PublicOnly,
    /// Private and loopback addresses too (`TALE_ALLOW_PRIVATE_PROVIDER_HOSTS=1`); the addresses
    /// of cloud metadata services stay refused.
    PrivateAllowed,
}

/// Why a destination is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRefused {
    /// Loopback, private, link-local or otherwise not on the public internet.
    #[error("{0} is a private or loopback address")]
    Private(String),
    /// A cloud metadata service, which hands out the machine's own credentials.
    #[error("{0} is a cloud metadata address")]
    Metadata(String),
    /// Neither `http` nor `https`, or without a host.
    #[error("the address must be an http or https URL with a host")]
    NotHttp,
    /// Plain `http` to a public host.
    #[error("{0} is a public host and needs https")]
    NeedsHttps(String),
    /// User name, password, query or fragment in the URL.
    #[error("the address must not carry a user name, a query or a fragment")]
    Decorated,
}

/// Judges one address under `policy`.
///
/// # Errors
/// [`HostRefused::Metadata`] always for metadata services, [`HostRefused::Private`] for private
/// addresses under [`HostPolicy::PublicOnly`].
pub fn judge_address(address: IpAddr, policy: HostPolicy) -> Result<(), HostRefused> {
    match (reach(address), policy) {
        (Reach::Metadata, _) => Err(HostRefused::Metadata(address.to_string())),
        (Reach::Private, HostPolicy::PublicOnly) => Err(HostRefused::Private(address.to_string())),
        _ => Ok(()),
    }
}

/// Judges an address; whether it is a local one.
fn judge_literal(address: IpAddr, policy: HostPolicy) -> Result<bool, HostRefused> {
    judge_address(address, policy)?;
    Ok(reach(address) != Reach::Public)
}

/// Names that stand for a metadata service whatever they resolve to.
const METADATA_NAMES: &[&str] =
    &["metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"];

/// Judges the literal form of a URL: scheme, decoration, literal addresses and known names.
/// A domain's addresses are judged when the request is made.
///
/// # Errors
/// One of [`HostRefused`]'s reasons.
pub fn check_url(url: &Url, policy: HostPolicy) -> Result<(), HostRefused> {
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(HostRefused::Decorated);
    }
    check_destination(url, policy)
}

/// Like [`check_url`] for a complete request URL, where a query is allowed.
///
/// # Errors
/// One of [`HostRefused`]'s reasons.
pub fn check_destination(url: &Url, policy: HostPolicy) -> Result<(), HostRefused> {
    let host = url.host().ok_or(HostRefused::NotHttp)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(HostRefused::NotHttp);
    }
    let local_form = match &host {
        Host::Ipv4(v4) => judge_literal(IpAddr::V4(*v4), policy)?,
        Host::Ipv6(v6) => judge_literal(IpAddr::V6(*v6), policy)?,
        Host::Domain(name) => judge_name(name, policy)?,
    };
    if url.scheme() == "http" && !local_form {
        return Err(HostRefused::NeedsHttps(host.to_string()));
    }
    Ok(())
}

/// Whether a URL's host is private by its form: a private address, or a name that only stands for one. What a public
/// name resolves to does not count, because the next answer may be another.
#[must_use]
pub fn is_private_form(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(v4)) => reach(IpAddr::V4(v4)) != Reach::Public,
        Some(Host::Ipv6(v6)) => reach(IpAddr::V6(v6)) != Reach::Public,
        Some(Host::Domain(name)) => judge_name(name, HostPolicy::PrivateAllowed) == Ok(true),
        None => false,
    }
}

/// Judges what can be told from a name alone; whether it is a local one.
fn judge_name(name: &str, policy: HostPolicy) -> Result<bool, HostRefused> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if METADATA_NAMES.contains(&name.as_str()) {
        return Err(HostRefused::Metadata(name));
    }
    let local = name == "localhost" || name.ends_with(".localhost") || name.ends_with(".local");
    if local && policy == HostPolicy::PublicOnly {
        return Err(HostRefused::Private(name));
    }
    Ok(local)
}

/// Judges a host outside any URL, a name or a literal address. The addresses behind a name are judged
/// by [`resolve_judged`].
///
/// # Errors
/// [`HostRefused::Private`], [`HostRefused::Metadata`].
pub fn judge_host(host: &str, policy: HostPolicy) -> Result<(), HostRefused> {
    match host.parse::<IpAddr>() {
        Ok(address) => judge_address(address, policy),
        Err(_) => judge_name(host, policy).map(drop),
    }
}

/// Why there is no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The host may not be called.
    #[error(transparent)]
    Refused(#[from] HostRefused),
    /// The name has no address, or the resolver does not answer.
    #[error("the name cannot be resolved")]
    Unknown(#[source] std::io::Error),
}

/// The addresses of `host`, all of them judged: whoever connects to one of these, and to nothing else,
/// is safe from a name that changes its answer in between.
///
/// # Errors
/// [`ResolveError`]. A name is refused when any of its addresses is.
pub async fn resolve_judged(host: &str, port: u16, policy: HostPolicy) -> Result<Vec<SocketAddr>, ResolveError> {
    judge_host(host, policy)?;
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await.map_err(ResolveError::Unknown)?.collect();
    for address in &found {
        judge_address(address.ip(), policy)?;
    }
    Ok(found)
}

/// Resolves with the system's resolver and hands on only judged addresses. A name counts as
/// private when any of its addresses is.
#[derive(Debug, Clone)]
struct JudgingResolver {
    policy: HostPolicy,
}

impl Resolve for JudgingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                judge_address(address.ip(), policy)?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The base of an HTTP client behind the guard. It follows no redirect and ignores proxy variables.
/// Callers still call [`check_destination`] for each URL, which judges literal addresses.
pub fn guarded_builder(policy: HostPolicy, connect_timeout: Duration) -> reqwest::ClientBuilder {
    install_tls_provider();
    reqwest::Client::builder()
        .dns_resolver(Arc::new(JudgingResolver { policy }))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("tale/", env!("CARGO_PKG_VERSION")))
}

/// [`guarded_builder`] as it is.
///
/// # Errors
/// When the TLS backend cannot start.
pub fn guarded_client(policy: HostPolicy, connect_timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    guarded_builder(policy, connect_timeout).build()
}

/// The guard's refusal, when it is why a request of a guarded client failed.
#[must_use]
pub fn refusal_in(error: &reqwest::Error) -> Option<&HostRefused> {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref() {
            return Some(refused);
        }
        cause = inner.source();
    }
    None
}

/// Judges a URL that a person entered in the field `path`, as a refusal for a client. The value is
/// never repeated, because a secret may have been pasted into the wrong field.
///
/// # Errors
/// `PRIVATE_HOST_BLOCKED` for a refused address, `INVALID_URL` for the rest.
pub fn check_entered(path: &str, url: &Url, policy: HostPolicy) -> Result<(), Problem> {
    check_url(url, policy).map_err(|refused| entered(path, &refused))
}

/// The refusal of an address that a person entered in the field `path`.
#[must_use]
pub fn entered(path: &str, refused: &HostRefused) -> Problem {
    let blocked = |text: String| Problem::new(Code::PrivateHostBlocked, text);
    match refused {
        HostRefused::Private(_) => blocked(format!(
            "`{path}` is a private or loopback address. An administrator of the deployment can admit those with TALE_ALLOW_PRIVATE_PROVIDER_HOSTS=1."
        )),
        HostRefused::Metadata(_) => {
            blocked(format!("`{path}` is the address of a cloud metadata service, which is never called."))
        }
        HostRefused::NotHttp => invalid_url(path, "must be an http or https address with a host"),
        HostRefused::NeedsHttps(_) => invalid_url(path, "must use https, because its host is public"),
        HostRefused::Decorated => invalid_url(path, "must not carry a user name, a query or a fragment"),
    }
}

/// The refusal of a text in the field `path` that is no address of the wanted kind.
#[must_use]
pub fn invalid_url(path: &str, why: &str) -> Problem {
    Problem::new(Code::InvalidUrl, format!("`{path}` {why}."))
        .with_data(serde_json::json!({ "issues": [{ "path": path, "message": why }] }))
}

/// Makes *ring* the process's TLS backend; later calls change nothing.
pub fn install_tls_provider() {
    // An error only says that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(url: &str, policy: HostPolicy) -> Result<(), HostRefused> {
        check_url(&Url::parse(url).unwrap(), policy)
    }

    #[test]
    fn metadata_services_are_refused_even_when_private_hosts_are_allowed() {
        for url in [
            "http://169.254.169.254/latest",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://100.100.100.200/",
            "http://metadata.google.internal/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
        ] {
            assert!(matches!(judged(url, HostPolicy::PrivateAllowed), Err(HostRefused::Metadata(_))), "{url}");
        }
    }

    #[test]
    fn private_forms_need_the_flag() {
        for url in [
            "http://127.0.0.1:8000/v1",
            "http://localhost:8000",
            "http://10.1.2.3",
            "http://192.168.1.20:8000/v1",
            "http://[::1]/",
            "http://100.64.0.1",
            "http://[fe80::1]/",
            "http://0.0.0.0",
            "http://model.local/v1",
        ] {
            assert!(matches!(judged(url, HostPolicy::PublicOnly), Err(HostRefused::Private(_))), "{url}");
            assert_eq!(judged(url, HostPolicy::PrivateAllowed), Ok(()), "{url}");
        }
    }

    #[test]
    fn public_hosts_need_https_and_a_plain_url() {
        assert_eq!(judged("https://api.example.com/v1", HostPolicy::PublicOnly), Ok(()));
        assert!(matches!(
            judged("http://api.example.com/v1", HostPolicy::PrivateAllowed),
            Err(HostRefused::NeedsHttps(_))
        ));
        assert_eq!(judged("https://u:p@api.example.com", HostPolicy::PublicOnly), Err(HostRefused::Decorated));
        assert_eq!(judged("https://api.example.com/?key=1", HostPolicy::PublicOnly), Err(HostRefused::Decorated));
        assert_eq!(judged("ftp://api.example.com/", HostPolicy::PublicOnly), Err(HostRefused::NotHttp));
    }
}
