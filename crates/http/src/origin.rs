//! Where a request entered: the site origin, and the base path.
//!
//! One deployment may have several origins. What an answer names (cookies, upload addresses, the
//! contract's server) follows the one the browser is on, worked out from `Host` and, when a proxy of
//! ours is at the other end of the connection, its `X-Forwarded-Proto`. A name that is not listed is
//! never given back: the canonical origin stands in for it (DCF-12).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Uri, header};
use tale_core::{Code, Problem};
use tale_env::SiteSettings;
use tale_identity::TrustedProxies;
use url::Url;

use crate::state::App;

/// The site origin that a request came in by.
pub struct RequestOrigin(pub Url);

impl FromRequestParts<App> for RequestOrigin {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        Ok(Self(request_origin(&app.site, &parts.headers, &parts.extensions).clone()))
    }
}

/// The site origin of a request with these headers.
#[must_use]
pub fn request_origin<'a>(site: &'a SiteSettings, headers: &HeaderMap, extensions: &Extensions) -> &'a Url {
    // This program speaks plain HTTP; only a proxy of ours knows better.
    let forwarded = headers.get_all("x-forwarded-proto").iter().next_back().and_then(|value| value.to_str().ok());
    let scheme = forwarded
        .filter(|_| TrustedProxies::default().contains(peer(extensions)))
        .and_then(|list| list.rsplit(',').next())
        .map_or("http", str::trim);
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => site.entry(scheme, host),
        _ => &site.url,
    }
}

/// The other end of the connection.
pub(crate) fn peer(extensions: &Extensions) -> IpAddr {
    extensions.get::<ConnectInfo<SocketAddr>>().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |info| info.0.ip())
}

/// What the network of the deployment asks the process itself for, wherever it is published.
const INTERNAL: [&str; 4] = ["/ping", "/ready", "/metrics", crate::frames::ADDRESS];
/// What the web tier asks the doors for, at their own address.
const STORES: &str = "/health/stores";

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether it answers at the root only, which a proxy of a base path does not pass on.
fn is_internal(path: &str) -> bool {
    INTERNAL.contains(&path) || is_below(path, STORES)
}

/// Takes the base path off an address: `None` when there is nothing to take off.
///
/// # Errors
/// `NOT_FOUND` for an address outside of it, and for one below it that answers at the root only.
pub(crate) fn below_base(site: &SiteSettings, uri: &Uri) -> Result<Option<Uri>, Problem> {
    if site.base_path.is_empty() || is_internal(uri.path()) {
        return Ok(None);
    }
    let Some(path) = site.without_base(uri.path()).filter(|path| !is_internal(path)) else {
        return Err(Problem::new(
            Code::NotFound,
            format!("There is nothing at this address. This Tale is at {}.", site.base_path),
        ));
    };
    let target = uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    Uri::builder().path_and_query(target).build().map(Some).map_err(Problem::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SiteSettings {
        SiteSettings {
            url: "https://tale.example.org".parse().unwrap(),
            additional: vec!["https://a.example".parse().unwrap(), "http://localhost:3000".parse().unwrap()],
            base_path: "/app".into(),
            support_url: "https://tale.dev/contact".parse().unwrap(),
        }
    }

    fn origin(peer: &str, lines: &[(&'static str, &'static str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let mut extensions = Extensions::new();
        extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 9)));
        request_origin(&site(), &headers, &extensions).origin().ascii_serialization()
    }

    #[test]
    fn the_scheme_is_believed_from_a_proxy_of_ours_only() {
        let by_tls = [("host", "a.example"), ("x-forwarded-proto", "https")];
        assert_eq!(origin("10.0.0.5", &by_tls), "https://a.example");
        assert_eq!(origin("::1", &by_tls), "https://a.example");
        assert_eq!(origin("203.0.113.9", &by_tls), "https://tale.example.org");
        // What a client wrote stands before what the proxy adds.
        let forged = [("host", "localhost:3000"), ("x-forwarded-proto", "https"), ("x-forwarded-proto", "http")];
        assert_eq!(origin("127.0.0.1", &forged), "http://localhost:3000");
        let listed = [("host", "a.example"), ("x-forwarded-proto", "http, https")];
        assert_eq!(origin("127.0.0.1", &listed), "https://a.example");
    }

    #[test]
    fn an_unlisted_or_doubtful_host_is_never_given_back() {
        for lines in [
            &[("host", "evil.example"), ("x-forwarded-proto", "https")][..],
            &[("host", "evil.example"), ("x-forwarded-host", "a.example"), ("x-forwarded-proto", "https")],
            &[("host", "a.example"), ("host", "localhost:3000"), ("x-forwarded-proto", "https")],
            &[("x-forwarded-host", "a.example"), ("x-forwarded-proto", "https")],
            &[("host", "a.example"), ("x-forwarded-proto", "gopher")],
            &[("host", "a.example")],
        ] {
            assert_eq!(origin("127.0.0.1", lines), "https://tale.example.org", "{lines:?}");
        }
    }

    #[test]
    fn addresses_lose_the_base_path_and_keep_their_query() {
        let below = |uri: &str| below_base(&site(), &uri.parse().unwrap()).map(|uri| uri.map(|uri| uri.to_string()));
        assert_eq!(below("/app").unwrap().unwrap(), "/");
        assert_eq!(below("/app/api/v1/me?a=%2Fapp").unwrap().unwrap(), "/api/v1/me?a=%2Fapp");
        for internal in ["/ping", "/ready", "/metrics", "/health/stores", "/health/stores/knowledge", "/health/frames"]
        {
            assert!(below(internal).unwrap().is_none(), "{internal}");
            assert_eq!(below(&format!("/app{internal}")).unwrap_err().code, Code::NotFound, "{internal}");
        }
        assert_eq!(below("/metrics/backend").unwrap_err().code, Code::NotFound);
        assert_eq!(below("/api/v1/me").unwrap_err().code, Code::NotFound);
        assert_eq!(below("/application").unwrap_err().code, Code::NotFound);
    }
}
