//! `TLS_MODE=selfsigned`: TLS by Caddy's own authority.

use reqwest::Method;

use crate::caddy::{Behind, Caddy, PATIENCE, free_port, plain, program, seen};

const HOST: &str = "tale.localhost";
const OTHER: &str = "intern.localhost";

/// A proxy with all three servers behind it.
struct Site {
    caddy: Caddy,
    browser: reqwest::Client,
    origin: String,
    other: String,
    backend: Behind,
}

impl Site {
    async fn new(base: &str) -> Option<Self> {
        program()?;
        let port = free_port();
        let (platform, backend, store) =
            (Behind::start("platform").await, Behind::start("backend").await, Behind::start("store").await);
        let (origin, other) = (format!("https://{HOST}:{port}"), format!("https://{OTHER}:{port}"));
        let caddy = Caddy::ours(&[
            ("SITE_URL", &origin),
            ("ADDITIONAL_SITE_URLS", &other),
            ("BASE_PATH", base),
            ("PLATFORM_UPSTREAM", &platform.text()),
            ("BACKEND_UPSTREAM", &backend.text()),
            ("OBJECT_STORE_UPSTREAM", &store.text()),
            // Ignored in this mode.
            ("TRUSTED_PROXIES", "127.0.0.0/8"),
        ])
        .await?;
        let browser = caddy.browser(&[(HOST, port), (OTHER, port)]).await;
        Some(Self { caddy, browser, origin, other, backend })
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        self.browser.get(format!("{}{path}", self.origin)).send().await.unwrap()
    }

    /// Who answers `path`, and the address it got.
    async fn served(&self, path: &str) -> (String, String) {
        let answer = seen(self.get(path).await).await;
        (answer["server"].as_str().unwrap().to_owned(), answer["address"].as_str().unwrap().to_owned())
    }
}

#[tokio::test]
async fn every_path_reaches_its_server_unchanged() {
    let Some(site) = Site::new("").await else { return };
    for (server, paths) in [
        (
            "backend",
            &[
                "/api/app/session?orgId=1&x=%2F",
                "/api/auth/sign-in/email",
                "/api/v1/threads/a%20b",
                "/api/v1/mcp",
                "/openapi.json",
                "/docs",
                "/docs/environment",
                "/docs/environment/de",
                "/.well-known/oauth-protected-resource/api/v1/mcp",
                "/dav/Files/%C3%A4.txt",
                "/scim/v2/Users",
                "/http_api/api/sso/callback",
                "/metrics/backend",
                "/api/nothing",
            ][..],
        ),
        (
            "platform",
            &[
                "/",
                "/api/health",
                "/status",
                "/status.json",
                "/chat/1?x=%41",
                "/_app/immutable/a.js",
                "/_docs/start.js",
                "/_a/script.js",
                "/_reports",
                "/metrics/platform",
                "/metrics/sla-rules",
                "/apix",
                "/health/stores",
            ],
        ),
        ("store", &["/tale-blobs/org/a%2Bb%20c/f.pdf?X-Amz-Signature=0a&X-Amz-Expires=60"]),
    ] {
        for path in paths {
            assert_eq!(site.served(path).await, (server.to_owned(), (*path).to_owned()), "{path}");
        }
    }
    for path in ["/api/control/x", "/api/tools/run", "/api/%63ontrol/x", "//api/control", "/API/CONTROL/x"] {
        let answer = site.get(path).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(seen(answer).await["code"], "NOT_FOUND", "{path}");
    }
    let propfind = Method::from_bytes(b"PROPFIND").unwrap();
    let answer = site.browser.request(propfind, format!("{}/dav/", site.origin)).send().await.unwrap();
    assert_eq!(seen(answer).await["method"], "PROPFIND");
}

#[tokio::test]
async fn both_origins_serve_and_what_clients_forward_is_not_believed() {
    let Some(site) = Site::new("").await else { return };
    for origin in [&site.origin, &site.other] {
        let answer = site
            .browser
            .get(format!("{origin}/api/v1/me"))
            .header("x-forwarded-for", "203.0.113.9")
            .header("x-forwarded-proto", "http")
            .header("x-forwarded-host", "evil.example")
            .header("x-real-ip", "203.0.113.9")
            .header("forwarded", "for=203.0.113.9;proto=http")
            .header("authorization", "Bearer key")
            .send()
            .await
            .unwrap();
        let headers = seen(answer).await["headers"].clone();
        let host = origin.strip_prefix("https://").unwrap();
        assert_eq!(headers["host"], host);
        assert_eq!(
            (&headers["x-forwarded-for"], &headers["x-forwarded-proto"]),
            (&"127.0.0.1".into(), &"https".into())
        );
        assert_eq!(headers["x-forwarded-host"], host);
        assert!(headers["x-real-ip"].is_null() && headers["forwarded"].is_null(), "{headers}");
        assert_eq!(headers["authorization"], "Bearer key");
        // Or a gzip of the proxy's own would make the tags of answers wrong.
        assert!(headers["accept-encoding"].is_null(), "{headers}");
    }
    let forged =
        site.browser.post(format!("{}/_a/api/send", site.origin)).header("x-analytics-client-ip", "203.0.113.9");
    assert_eq!(seen(forged.send().await.unwrap()).await["headers"]["x-analytics-client-ip"], "127.0.0.1");
    // A host that is not ours arrives; behind, it counts as the canonical one.
    let answer =
        site.browser.get(format!("{}/api/v1/me", site.origin)).header("host", "evil.example").send().await.unwrap();
    assert_eq!(seen(answer).await["server"], "backend");
}

#[tokio::test]
async fn plain_http_leads_to_our_own_https_and_to_no_other() {
    let Some(site) = Site::new("").await else { return };
    let other_host = OTHER.to_owned();
    for (host, target) in [(HOST, &site.origin), (&other_host, &site.other), ("evil.example", &site.origin)] {
        let address = format!("http://127.0.0.1:{}/chat?x=1", site.caddy.http);
        let answer = plain().get(address).header("host", host).send().await.unwrap();
        assert_eq!(answer.status(), 308, "{host}");
        assert_eq!(answer.headers()["location"].to_str().unwrap(), format!("{target}/chat?x=1"), "{host}");
    }
}

#[tokio::test]
async fn security_headers_stand_once_on_every_answer() {
    let Some(site) = Site::new("").await else { return };
    for path in ["/", "/api/v1/me", "/health", "/api/control/x"] {
        let answer = site.get(path).await;
        for name in ["x-content-type-options", "referrer-policy", "strict-transport-security"] {
            assert_eq!(answer.headers().get_all(name).iter().count(), 1, "{name} of {path}");
        }
        // Whether a page of Tale may be framed, Tale says.
        let own = ["/health", "/api/control/x"].contains(&path);
        assert_eq!(answer.headers().get_all("x-frame-options").iter().count(), usize::from(own), "{path}");
        assert!(answer.headers().get("server").is_none(), "{path}");
    }
    let file = site.get("/tale-blobs/a.pdf").await;
    assert!(file.headers().get("x-frame-options").is_none(), "previews of files are frames");
    assert_eq!(file.headers().get_all("x-content-type-options").iter().count(), 1);
}

#[tokio::test]
async fn a_live_stream_is_passed_on_at_once_and_ends_with_its_reader() {
    let Some(site) = Site::new("").await else { return };
    let mut stream = site.get("/events?orgId=1").await;
    for number in 0..3 {
        let chunk = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("the event arrives").unwrap().unwrap();
        assert_eq!(chunk, format!("data: {number}\n\n"));
        site.backend.go_on.notify_one();
    }
    drop(stream);
    tokio::time::timeout(PATIENCE, async {
        loop {
            // A write that fails at the latest tells the server.
            site.backend.go_on.notify_one();
            tokio::select! {
                () = site.backend.gone.notified() => return,
                () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
            }
        }
    })
    .await
    .expect("the server hears that the reader is gone");
}

#[tokio::test]
async fn the_base_path_is_kept_and_the_store_stays_at_the_root() {
    let Some(site) = Site::new("/app/").await else { return };
    for (server, path) in [
        ("platform", "/app"),
        ("platform", "/app/"),
        ("platform", "/app/api/health"),
        ("platform", "/app/chat"),
        ("backend", "/app/api/v1/me"),
        ("backend", "/app/docs"),
        ("backend", "/app/docs/environment/fr"),
        ("backend", "/.well-known/oauth-authorization-server/app"),
        ("store", "/tale-blobs/a"),
    ] {
        assert_eq!(site.served(path).await, (server.to_owned(), path.to_owned()), "{path}");
    }
    assert_eq!(site.get("/app/health").await.text().await.unwrap(), "OK");
    assert_eq!(site.get("/").await.headers()["location"], "/app/");
    for path in ["/application", "/api/v1/me", "/health", "/app/api/control/x"] {
        assert_eq!(site.get(path).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn what_is_away_is_told_to_programs_and_to_people() {
    if program().is_none() {
        return;
    }
    // A port that no other test can be given meanwhile.
    let (port, gone) = (free_port(), "127.0.0.1:1".to_owned());
    let origin = format!("https://{HOST}:{port}");
    let pairs = [
        ("SITE_URL", origin.as_str()),
        ("PLATFORM_UPSTREAM", &gone),
        ("BACKEND_UPSTREAM", &gone),
        ("OBJECT_STORE_UPSTREAM", &gone),
    ];
    let Some(caddy) = Caddy::ours(&pairs).await else { return };
    let browser = caddy.browser(&[(HOST, port)]).await;
    let ask = |path: &str, accept: &str, lang: &str| {
        browser.get(format!("{origin}{path}")).header("accept", accept).header("accept-language", lang).send()
    };
    assert_eq!(ask("/health", "*/*", "").await.unwrap().text().await.unwrap(), "OK", "the proxy answers for itself");
    assert_eq!(caddy.health().await, "OK");
    for (path, accept) in [
        ("/api/v1/me", "text/html"),
        ("/tale-blobs/a", "text/html"),
        ("/", "application/json"),
        ("/status.json", "*/*"),
    ] {
        let answer = ask(path, accept, "de").await.unwrap();
        assert_eq!(answer.status(), 502, "{path}");
        assert!(answer.headers()["retry-after"].to_str().unwrap().parse::<u32>().is_ok());
        assert_eq!(answer.headers()["content-type"], "application/json");
        let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        let body = seen(answer).await;
        assert_eq!(body["code"], "UPSTREAM_UNAVAILABLE", "{path}");
        assert_eq!(body["requestId"], id.as_str());
        assert!(body["error"].as_str().unwrap().ends_with('.'));
    }
    for (lang, words) in
        [("de-CH,de;q=0.9", "gleich wieder da"), ("fr", "revient tout de suite"), ("it", "back shortly")]
    {
        let answer = ask("/chat/1", "text/html,application/xhtml+xml", lang).await.unwrap();
        assert_eq!(answer.status(), 502);
        assert!(answer.headers().contains_key("retry-after"));
        for name in ["x-content-type-options", "x-frame-options", "content-security-policy"] {
            assert_eq!(answer.headers().get_all(name).iter().count(), 1, "{name}");
        }
        let page = answer.text().await.unwrap();
        assert!(page.contains(words) && !page.contains("<script"), "{page}");
    }
    let posted = browser.post(format!("{origin}/chat")).header("accept", "text/html").send().await.unwrap();
    assert_eq!(seen(posted).await["code"], "UPSTREAM_UNAVAILABLE", "only a navigation gets a page");
}
