//! Where the deployment is reached: its origins, its path, and where people find help.

use url::Url;

use crate::kind;

/// Addresses of the deployment.
#[derive(Debug, Clone)]
pub struct SiteSettings {
    /// The canonical origin.
    pub url: Url,
    /// Further full entry points.
    pub additional: Vec<Url>,
    /// The path under which everything is served, such as `/app`; empty at the root.
    pub base_path: String,
    /// Where error screens send people who need help.
    pub support_url: Url,
}

impl SiteSettings {
    /// All site origins, the canonical one first.
    pub fn origins(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.url).chain(&self.additional)
    }

    /// Whether `origin` (the value of an `Origin` header) is one of ours.
    #[must_use]
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.origins().any(|ours| ours.origin().ascii_serialization() == origin)
    }

    /// The site origin of a request to `host` (a `Host` header) by `scheme`: the listed one of that
    /// name, else the canonical one. What is not listed is never given back (DCF-12).
    #[must_use]
    pub fn entry(&self, scheme: &str, host: &str) -> &Url {
        let asked = kind::origin(&format!("{scheme}://{host}"));
        let listed = asked.and_then(|asked| self.origins().find(|ours| ours.origin() == asked.origin()));
        listed.unwrap_or(&self.url)
    }

    /// A path of ours as browsers ask for it: `/docs` as `/app/docs`.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base_path)
    }

    /// What is served at `path`, from the root of our routes; `None` outside the base path.
    #[must_use]
    pub fn without_base<'a>(&self, path: &'a str) -> Option<&'a str> {
        match path.strip_prefix(self.base_path.as_str())? {
            "" => Some("/"),
            rest if rest.starts_with('/') => Some(rest),
            _ => None,
        }
    }

    /// The address of the deployment at `origin`, one of the site origins, without a slash at its end.
    #[must_use]
    pub fn address_at(&self, origin: &Url) -> String {
        format!("{}{}", origin.as_str().trim_end_matches('/'), self.base_path)
    }

    /// The `Path` of cookies.
    #[must_use]
    pub fn cookie_path(&self) -> &str {
        if self.base_path.is_empty() { "/" } else { &self.base_path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(base_path: &str) -> SiteSettings {
        SiteSettings {
            url: "https://tale.example.org".parse().unwrap(),
            additional: vec![
                "https://intern.example:8443".parse().unwrap(),
                "http://localhost:3000".parse().unwrap(),
                "http://[::1]:3000".parse().unwrap(),
            ],
            base_path: base_path.to_owned(),
            support_url: "https://tale.dev/contact".parse().unwrap(),
        }
    }

    #[test]
    fn a_request_enters_at_a_listed_origin_or_at_the_canonical_one() {
        let site = site("");
        let entry = |scheme, host| site.entry(scheme, host).origin().ascii_serialization();
        for (scheme, host, origin) in [
            ("https", "intern.example:8443", "https://intern.example:8443"),
            ("HTTPS", "Intern.Example:8443", "https://intern.example:8443"),
            ("http", "localhost:3000", "http://localhost:3000"),
            ("http", "[::1]:3000", "http://[::1]:3000"),
            ("https", "tale.example.org:443", "https://tale.example.org"),
        ] {
            assert_eq!(entry(scheme, host), origin, "{scheme} {host}");
        }
        for (scheme, host) in [
            ("https", "evil.example"),
            ("http", "intern.example:8443"),
            ("https", "intern.example"),
            ("https", "intern.example:8443/x"),
            ("https", "intern.example:8443?x"),
            ("https", "x@intern.example:8443"),
            ("https", ""),
            ("https", " "),
            ("javascript", "intern.example:8443"),
            ("", "intern.example:8443"),
        ] {
            assert_eq!(entry(scheme, host), "https://tale.example.org", "{scheme} {host}");
        }
    }

    #[test]
    fn only_the_exact_origin_is_allowed() {
        let site = site("");
        assert!(site.allows_origin("https://tale.example.org") && site.allows_origin("http://localhost:3000"));
        for foreign in ["https://tale.example.org.evil.example", "http://tale.example.org", "null", ""] {
            assert!(!site.allows_origin(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_base_path_is_taken_off_whole() {
        let under = site("/app");
        for (path, rest) in [
            ("/app", Some("/")),
            ("/app/", Some("/")),
            ("/app/api/health", Some("/api/health")),
            ("/app/app", Some("/app")),
            ("/application", None),
            ("/", None),
            ("/api/health", None),
        ] {
            assert_eq!(under.without_base(path), rest, "{path}");
        }
        assert_eq!((under.path("/docs").as_str(), under.cookie_path()), ("/app/docs", "/app"));
        assert_eq!(under.address_at(&under.url), "https://tale.example.org/app");
        let root = site("");
        assert_eq!((root.without_base("/api/health"), root.without_base("/")), (Some("/api/health"), Some("/")));
        assert_eq!((root.path("/docs").as_str(), root.cookie_path()), ("/docs", "/"));
        assert_eq!(root.address_at(&root.url), "https://tale.example.org");
    }
}
