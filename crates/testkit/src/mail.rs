//! A real mail server on a loopback port, which keeps what it gets (`crates/testkit/smtp/server.py`).

use std::path::PathBuf;
use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::workspace;

/// A letter that the server got.
#[derive(Debug, Clone, Deserialize)]
pub struct Received {
    /// The sender of the envelope.
    pub from: String,
    /// The recipients of the envelope.
    pub to: Vec<String>,
    /// The account that the client signed in with.
    pub user: Option<String>,
    /// Whether the connection was encrypted.
    pub encrypted: bool,
    headers: Vec<(String, String)>,
    /// The part that is text.
    pub text: String,
    /// The part that is HTML.
    pub html: String,
}

impl Received {
    /// Every value of a header.
    #[must_use]
    pub fn headers(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The one value of a header.
    ///
    /// # Panics
    /// When there is none, or several.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let [value] = self.headers(name)[..] else { panic!("{name}: {:?}", self.headers) };
        value
    }
}

/// The running server. It ends when dropped.
#[derive(Debug)]
pub struct MailServer {
    _process: Child,
    folder: TempDir,
    /// Its port.
    pub port: u16,
}

impl MailServer {
    /// The host that its certificate names.
    pub const HOST: &'static str = "localhost";

    /// Starts one: `starttls`, `implicit`, `none` or `inject`, with an account when it asks for one. `None`, with a
    /// line that says so, where it is not installed.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(tls: &str, account: Option<(&str, &str)>) -> Option<Self> {
        let python = workspace().join(".cache/smtp/bin/python");
        if !python.exists() {
            #[expect(clippy::print_stderr, reason = "a skipped test says so")]
            {
                eprintln!("skipped: scripts/setup test has not fetched the mail server");
            }
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::new();
        for (name, text) in
            [("roots.pem", &authority.roots), ("server.pem", &authority.certificate), ("key.pem", &authority.key)]
        {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let mut command = Command::new(python);
        command.arg(workspace().join("crates/testkit/smtp/server.py")).arg(tls);
        command.args(["kept.jsonl", "server.pem", "key.pem"].map(|name| folder.path().join(name)));
        if let Some((name, password)) = account {
            command.args([name, password]);
        }
        command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("the mail server");
        let said = process.stdout.take().expect("its output");
        let port = BufReader::new(said).lines().next_line().await.expect("its output").expect("a port");
        Some(Self { _process: process, folder, port: port.parse().expect("a port") })
    }

    /// PEM file with the authority that signed its certificate.
    #[must_use]
    pub fn roots(&self) -> PathBuf {
        self.folder.path().join("roots.pem")
    }

    /// What it got so far.
    ///
    /// # Panics
    /// When a line is not what the server writes.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        let text = std::fs::read_to_string(self.folder.path().join("kept.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a letter")).collect()
    }
}

/// A private authority, and a certificate of it for the server.
struct Authority {
    roots: String,
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = KeyPair::generate().expect("a key");
        let roots = params.self_signed(&own).expect("a certificate").pem();
        let issuer = Issuer::new(params, own);
        let key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new(vec![MailServer::HOST.to_owned()]).expect("parameters");
        let certificate = server.signed_by(&key, &issuer).expect("a certificate").pem();
        Self { roots, certificate, key: key.serialize_pem() }
    }
}
