//! The Caddyfile.
//!
//! It is written for Caddy 2.6 and newer. Routes stand in a `route`, which keeps their order, and in
//! `handle`s, of which the first that matches answers. Caddy compares paths decoded and cleaned, so an
//! encoded letter or a doubled slash leads nowhere else.

use std::fmt::Write;

use tale_env::{ProxySettings, TlsMode};
use url::Url;

use crate::answers::{AWAY, NOT_FOUND, PAGES, RETRY_AFTER, page};

/// Ports that the settings do not name.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Plain HTTP: redirects and certificate challenges, or everything when TLS ends elsewhere.
    pub http: u16,
    /// Health of the proxy, on this machine only.
    pub health: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { http: 80, health: 2020 }
    }
}

/// Paths of the doors below the base path.
const BACKEND: &[&str] = &[
    "/api",
    "/api/*",
    "/events",
    "/events/*",
    "/openapi.json",
    "/docs",
    "/docs/*",
    "/dav",
    "/dav/*",
    "/scim/v2/*",
    "/http_api/*",
];
/// Paths of the web tier that would otherwise count among the doors, or that programs read.
const PLATFORM: &[&str] = &["/api/health", "/status", "/status.json", "/metrics/platform", "/metrics/sla-rules"];
/// Doors for other processes of the deployment.
const INTERNAL: &[&str] = &["/api/control", "/api/control/*", "/api/tools", "/api/tools/*"];
/// Paths that programs ask: they get JSON when an upstream is away.
const PROGRAMS: &[&str] = &[
    "/api",
    "/api/*",
    "/events",
    "/events/*",
    "/openapi.json",
    "/status.json",
    "/metrics/*",
    "/dav",
    "/dav/*",
    "/scim/v2/*",
    "/http_api/*",
];

/// Headers that Tale sets as well; the proxy adds what an answer lacks, so that none stands twice.
const SECURITY: &[(&str, &str)] = &[
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), payment=(), usb=()"),
    ("X-Permitted-Cross-Domain-Policies", "none"),
];

/// The whole configuration.
#[must_use]
pub fn caddyfile(settings: &ProxySettings, ports: Ports) -> String {
    let mut out = Lines::default();
    out.line("# Written by `tale edge caddyfile`. Change the environment and write it anew instead of editing it.");
    options(&mut out, settings, ports);
    out.open("(tale)");
    out.open("route");
    routes(&mut out, settings);
    out.close();
    errors(&mut out, settings);
    out.close();
    sites(&mut out, settings, ports);
    out.open(&format!("http://:{}", ports.health));
    out.line("bind 127.0.0.1");
    out.line("respond /health \"OK\" 200");
    out.line("respond 404");
    out.close();
    out.0
}

fn options(out: &mut Lines, settings: &ProxySettings, ports: Ports) {
    out.open("");
    // A changed environment makes a new process, so nobody needs to talk to this one.
    out.line("admin off");
    out.line("skip_install_trust");
    out.line(&format!("http_port {}", ports.http));
    // A stop does not wait for live streams: their readers come back.
    out.line("grace_period 10s");
    match &settings.tls {
        TlsMode::External => out.line("auto_https off"),
        // Its redirects would repeat any host that is asked for; ours names only our own.
        _ => out.line("auto_https disable_redirects"),
    }
    if let TlsMode::LetsEncrypt { email } = &settings.tls {
        if let Some(email) = email {
            out.line(&format!("email {}", quoted(email)));
        }
        out.line("cert_issuer acme");
    }
    out.open("servers");
    out.line("protocols h1 h2");
    out.line("max_header_size 64KiB");
    out.open("timeouts");
    for limit in ["read_header 60s", "read_body 15m", "idle 5m"] {
        out.line(limit);
    }
    out.close();
    out.close();
    out.close();
}

/// The routes, the first match first.
fn routes(out: &mut Lines, settings: &ProxySettings) {
    let base = settings.site.base_path.as_str();
    handle(out, "self", &under(base, &["/health"]), |out| {
        of_its_own(out, settings);
        out.line("header Cache-Control no-store");
        out.line("respond \"OK\" 200");
    });
    handle(out, "internal", &under(base, INTERNAL), |out| {
        of_its_own(out, settings);
        out.line("header Content-Type application/json");
        out.line(&format!("respond `{NOT_FOUND}` 404"));
    });
    handle(out, "platform", &under(base, PLATFORM), |out| upstream(out, settings, &settings.platform));
    let mut doors = under(base, BACKEND);
    doors.push(format!("{base}/metrics/backend"));
    // Fixed by standards to the root of the host.
    doors.push("/.well-known/*".to_owned());
    handle(out, "backend", &doors, |out| upstream(out, settings, &settings.backend));
    // At the root of the host, because a prefix would break signatures. What the store says of its
    // files stays, framing included: previews are files in a frame.
    handle(out, "bucket", &[format!("/{}/*", settings.bucket)], |out| {
        out.line("header -Server");
        out.line("header ?X-Content-Type-Options nosniff");
        proxy(out, settings, &settings.store);
    });
    // Page statistics name the client, whom nobody else may name. Behind another proxy the forwarded
    // headers do, which only that one is believed about.
    handle(out, "analytics", &under(base, &["/_a/*"]), |out| {
        match settings.tls {
            TlsMode::External => out.line("request_header -X-Analytics-Client-IP"),
            _ => out.line("request_header X-Analytics-Client-IP {http.request.remote.host}"),
        }
        upstream(out, settings, &settings.platform);
    });
    let everything = if base.is_empty() { vec!["/*".to_owned()] } else { vec![base.to_owned(), format!("{base}/*")] };
    handle(out, "app", &everything, |out| upstream(out, settings, &settings.platform));
    if !base.is_empty() {
        handle(out, "root", &["/".to_owned()], |out| {
            of_its_own(out, settings);
            out.line(&format!("redir * {base}/ 302"));
        });
        out.open("handle");
        of_its_own(out, settings);
        out.line("respond 404");
        out.close();
    }
}

/// What an upstream that does not answer looks like from outside (PRX-1).
fn errors(out: &mut Lines, settings: &ProxySettings) {
    let base = settings.site.base_path.as_str();
    out.open("handle_errors");
    of_its_own(out, settings);
    out.line("@away expression `{http.error.status_code} in [502, 503, 504]`");
    out.open("handle @away");
    out.open("header");
    out.line(&format!("Retry-After {RETRY_AFTER}"));
    out.line("Cache-Control no-store");
    out.line("X-Request-Id {http.request.uuid}");
    out.close();
    let mut programs = under(base, PROGRAMS);
    programs.extend(["/.well-known/*".to_owned(), format!("/{}/*", settings.bucket)]);
    out.open("@person");
    out.line("method GET HEAD");
    out.line("header Accept *text/html*");
    out.line(&format!("not path {}", programs.join(" ")));
    out.close();
    out.open("handle @person");
    out.line("header Content-Type \"text/html; charset=utf-8\"");
    out.line(
        "header Content-Security-Policy \"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\"",
    );
    out.open("route");
    for (lang, words) in PAGES {
        if lang == "en" {
            out.open("handle");
        } else {
            out.line(&format!("@{lang} header Accept-Language {lang}*"));
            out.open(&format!("handle @{lang}"));
        }
        out.line(&format!("respond `{}` {{http.error.status_code}}", page(lang, words)));
        out.close();
    }
    out.close();
    out.close();
    out.open("handle");
    out.line("header Content-Type application/json");
    out.line(&format!("respond `{AWAY}` {{http.error.status_code}}"));
    out.close();
    out.close();
    out.open("handle");
    out.line("respond {http.error.status_code}");
    out.close();
    out.close();
}

/// One block for each kind of address, and a redirect to our own names from plain HTTP.
fn sites(out: &mut Lines, settings: &ProxySettings, ports: Ports) {
    let site = &settings.site;
    let origins: Vec<&Url> = site.origins().collect();
    if settings.tls == TlsMode::External {
        // Whatever host is asked for: what is not ours counts as the canonical one behind.
        out.open(&format!("http://:{}", ports.http));
        out.line("import tale");
        out.close();
        return;
    }
    let (secure, plain): (Vec<&Url>, Vec<&Url>) = origins.iter().partition(|origin| origin.scheme() == "https");
    let mut addresses: Vec<String> = Vec::new();
    for origin in &secure {
        let address = address(origin);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    // A host that is none of ours on a connection to one that is.
    for origin in &secure {
        let any = format!("https://:{}", origin.port_or_known_default().unwrap_or(443));
        if !addresses.contains(&any) {
            addresses.push(any);
        }
    }
    if !addresses.is_empty() {
        out.open(&addresses.join(", "));
        match &settings.tls {
            TlsMode::SelfSigned => out.line("tls internal"),
            TlsMode::File { certificate, key } => {
                let (certificate, key) = (certificate.to_string_lossy(), key.to_string_lossy());
                out.line(&format!("tls {} {}", quoted(&certificate), quoted(&key)));
            }
            TlsMode::LetsEncrypt { .. } | TlsMode::External => {}
        }
        out.line("import tale");
        out.close();
        out.open(&format!("http://:{}", ports.http));
        for (number, origin) in secure.iter().enumerate().skip(1) {
            let Some(host) = origin.host_str() else { continue };
            out.line(&format!("@site{number} host {host}"));
            out.line(&format!("redir @site{number} {}{{uri}} 308", origin.as_str().trim_end_matches('/')));
        }
        let first = secure.first().map(|origin| origin.as_str().trim_end_matches('/')).unwrap_or_default();
        out.line(&format!("redir * {first}{{uri}} 308"));
        out.close();
    }
    if !plain.is_empty() {
        out.open(&plain.iter().map(|origin| address(origin)).collect::<Vec<_>>().join(", "));
        out.line("import tale");
        out.close();
    }
}

/// `scheme://host:port`.
fn address(origin: &Url) -> String {
    let host = origin.host_str().unwrap_or_default();
    format!("{}://{host}:{}", origin.scheme(), origin.port_or_known_default().unwrap_or(443))
}

fn under(base: &str, paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| format!("{base}{path}")).collect()
}

fn handle(out: &mut Lines, name: &str, paths: &[String], inner: impl FnOnce(&mut Lines)) {
    out.line(&format!("@{name} path {}", paths.join(" ")));
    out.open(&format!("handle @{name}"));
    inner(out);
    out.close();
}

fn upstream(out: &mut Lines, settings: &ProxySettings, to: &str) {
    security(out, settings);
    proxy(out, settings, to);
}

/// For what the proxy says itself. Tale may let its own pages be framed, so that nothing is added to those.
fn of_its_own(out: &mut Lines, settings: &ProxySettings) {
    security(out, settings);
    out.line("header X-Frame-Options DENY");
}

/// Each stands for itself: in one block, a header would be added only where all are missing.
fn security(out: &mut Lines, settings: &ProxySettings) {
    out.line("header -Server");
    for (name, value) in SECURITY {
        out.line(&format!("header ?{name} {}", quoted(value)));
    }
    if settings.site.url.scheme() == "https" {
        out.line("header ?Strict-Transport-Security max-age=31536000");
    }
}

/// Passes a request on as it came. Live streams need nothing: Caddy writes `text/event-stream` on at
/// once, and an interval of -1 would keep streams open whose readers are gone.
fn proxy(out: &mut Lines, settings: &ProxySettings, to: &str) {
    out.open(&format!("reverse_proxy {to}"));
    if !settings.trusted.is_empty() {
        out.line(&format!("trusted_proxies {}", settings.trusted.join(" ")));
    }
    // X-Forwarded-For, -Proto and -Host are overwritten, or continued for a trusted peer. These two
    // nobody behind may believe.
    out.line("header_up -Forwarded");
    out.line("header_up -X-Real-Ip");
    // A replica that was just replaced: the next attempt finds its successor.
    out.line("lb_try_duration 2s");
    out.line("lb_try_interval 250ms");
    out.open("transport http");
    out.line("dial_timeout 2s");
    // Or it would ask for gzip by itself, and the tags of answers would be those of other bytes.
    out.line("compression off");
    out.close();
    out.close();
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

/// Lines with the depth of the block they stand in.
#[derive(Default)]
struct Lines(String, usize);

impl Lines {
    fn line(&mut self, text: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{}{text}", "\t".repeat(self.1));
    }

    fn open(&mut self, head: &str) {
        let sign = if head.is_empty() { "{".to_owned() } else { format!("{head} {{") };
        self.line(&sign);
        self.1 += 1;
    }

    fn close(&mut self) {
        self.1 = self.1.saturating_sub(1);
        self.line("}");
    }
}
