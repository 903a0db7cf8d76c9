//! `tale edge`: what it prints and refuses. What Caddy makes of it is tested beside the writer.

use std::process::{Command, Output};

fn caddyfile(pairs: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tale"))
        .args(["edge", "caddyfile", "--http-port", "8080"])
        .env_clear()
        .envs(pairs.iter().copied())
        .output()
        .unwrap()
}

#[test]
fn the_environment_becomes_a_configuration() {
    let pairs = [
        ("SITE_URL", "https://tale.example.org"),
        ("METRICS_BEARER_TOKEN", "hidden-word"),
        ("BACKEND_UPSTREAM", "api:1"),
    ];
    let answer = caddyfile(&pairs);
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let text = String::from_utf8(answer.stdout).unwrap();
    assert!(
        text.contains("https://tale.example.org:443")
            && text.contains("reverse_proxy api:1")
            && text.contains("http_port 8080")
    );
    assert!(!text.contains("hidden-word"));
}

#[test]
fn what_keeps_the_proxy_from_starting_is_told_at_once() {
    let answer = caddyfile(&[
        ("SITE_URL", "https://tale.example.org/x"),
        ("TLS_MODE", "file"),
        ("TRUSTED_PROXIES", "everybody"),
    ]);
    assert_eq!(answer.status.code(), Some(78));
    let said = String::from_utf8(answer.stderr).unwrap();
    for name in ["SITE_URL", "TRUSTED_PROXIES", "TLS_CERT_FILE", "TLS_KEY_FILE"] {
        assert!(said.contains(name), "{name} missing in {said}");
    }
    assert!(answer.stdout.is_empty());
}
