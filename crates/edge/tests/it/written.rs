//! Every configuration that we write is one that Caddy accepts.

use std::process::Command;

use tale_edge::Ports;

use crate::caddy::{program, settings};

#[test]
fn caddy_accepts_every_mode() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("chain \"of\" one.pem"), folder.path().join("key.pem"));
    // A certificate for the mode that brings its own; what is in it does not matter to the syntax.
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=tale.example.org", "-addext", "subjectAltName=DNS:tale.example.org", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let origins = [
        ("SITE_URL", "https://tale.example.org"),
        ("ADDITIONAL_SITE_URLS", "https://intern.example:8443 http://localhost:3000 http://[::1]:3000"),
    ];
    let modes: [&[(&str, &str)]; 6] = [
        &[("TLS_MODE", "selfsigned")],
        &[("TLS_MODE", "letsencrypt")],
        &[("TLS_MODE", "letsencrypt"), ("TLS_EMAIL", "ops@example.org")],
        &[("TLS_MODE", "external")],
        &[
            ("TLS_MODE", "external"),
            ("TRUSTED_PROXIES", "private_ranges 2001:db8::/32 192.0.2.7"),
            ("BASE_PATH", "/a/b"),
        ],
        &[("TLS_MODE", "file"), ("TLS_CERT_FILE", certificate), ("TLS_KEY_FILE", key)],
    ];
    for mode in modes {
        let pairs: Vec<_> = origins.iter().chain(mode).copied().collect();
        let text = tale_edge::caddyfile(&settings(&pairs), Ports::default());
        let file = folder.path().join("Caddyfile");
        std::fs::write(&file, &text).unwrap();
        let checked = Command::new(program)
            .args(["validate", "--adapter", "caddyfile", "--config"])
            .arg(&file)
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{mode:?}: {said}\n{text}");
    }
}

#[test]
fn no_secret_is_written() {
    let pairs = [
        ("SITE_URL", "https://tale.example.org"),
        ("METRICS_BEARER_TOKEN", "hidden-word"),
        ("OBJECT_STORE_SECRET_KEY", "hidden-word"),
    ];
    assert!(!tale_edge::caddyfile(&settings(&pairs), Ports::default()).contains("hidden-word"));
}
