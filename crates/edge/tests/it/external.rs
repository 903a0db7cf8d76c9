//! `TLS_MODE=external`: a second, real proxy ends TLS before ours.

use serde_json::Value;
use tale_edge::Ports;

use crate::caddy::{Behind, Caddy, free_port, plain, program, seen};

const HOST: &str = "tale.localhost";

/// What the backend sees of a request with forged headers that goes through a terminating proxy on
/// this machine and ours, which trusts `trusted`; then the same past the terminator.
async fn headers(trusted: &str) -> Option<(Value, Value)> {
    program()?;
    let (backend, port) = (Behind::start("backend").await, free_port());
    let origin = format!("https://{HOST}:{port}");
    let ours = Caddy::ours(&[
        ("SITE_URL", &origin),
        ("TLS_MODE", "external"),
        ("TRUSTED_PROXIES", trusted),
        ("BACKEND_UPSTREAM", &backend.text()),
        ("PLATFORM_UPSTREAM", &backend.text()),
    ])
    .await?;
    let health = free_port();
    let terminator = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}}\n{origin} {{\n\ttls internal\n\treverse_proxy 127.0.0.1:{}\n}}\n\
         http://:{health} {{\n\trespond OK\n}}\n",
        ours.http
    );
    let terminator = Caddy::with(&terminator, Ports { http: 0, health }).await?;
    let browser = terminator.browser(&[(HOST, port)]).await;
    let forged = |client: &reqwest::Client, address: String| {
        client
            .get(address)
            .header("host", format!("{HOST}:{port}"))
            .header("x-forwarded-for", "203.0.113.9")
            .header("x-forwarded-proto", "gopher")
            .header("x-real-ip", "203.0.113.9")
            .header("forwarded", "proto=gopher")
            .header("x-analytics-client-ip", "203.0.113.9")
            .send()
    };
    let counted = seen(forged(&browser, format!("{origin}/_a/script.js")).await.unwrap()).await;
    assert!(counted["headers"]["x-analytics-client-ip"].is_null(), "the forwarded headers say who it is: {counted}");
    let through = seen(forged(&browser, format!("{origin}/api/v1/me")).await.unwrap()).await;
    let past = seen(forged(&plain(), format!("http://127.0.0.1:{}/api/v1/me", ours.http)).await.unwrap()).await;
    assert_eq!((&through["server"], &past["server"]), (&"backend".into(), &"backend".into()));
    Some((through["headers"].clone(), past["headers"].clone()))
}

#[tokio::test]
async fn a_trusted_terminator_says_who_asked_and_how() {
    let Some((through, past)) = headers("127.0.0.0/8 10.0.0.0/8").await else { return };
    // The terminator put its own words in the place of the forged ones, and ours kept them.
    assert_eq!(through["x-forwarded-proto"], "https");
    assert_eq!(through["x-forwarded-for"], "127.0.0.1, 127.0.0.1");
    assert!(through["host"].as_str().unwrap().starts_with(HOST));
    // Whoever is trusted is believed: that is why the list must name proxies only.
    assert_eq!(past["x-forwarded-for"], "203.0.113.9, 127.0.0.1");
    for headers in [&through, &past] {
        assert!(headers["forwarded"].is_null() && headers["x-real-ip"].is_null(), "{headers}");
    }
}

#[tokio::test]
async fn the_word_private_ranges_covers_this_machine() {
    let Some((through, _)) = headers("private_ranges").await else { return };
    assert_eq!(through["x-forwarded-proto"], "https");
}

#[tokio::test]
async fn a_peer_outside_the_trusted_ranges_is_not_believed() {
    let Some((through, past)) = headers("192.0.2.0/24").await else { return };
    for headers in [through, past] {
        assert_eq!(headers["x-forwarded-proto"], "http", "what the proxy saw");
        assert_eq!(headers["x-forwarded-for"], "127.0.0.1");
        assert!(headers["forwarded"].is_null() && headers["x-real-ip"].is_null(), "{headers}");
    }
}
