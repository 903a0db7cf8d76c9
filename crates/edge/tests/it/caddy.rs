//! A Caddy process, and servers behind it that say what arrived.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures::StreamExt;
use serde_json::{Value, json};
use tale_edge::Ports;
use tale_env::{MapEnv, ProxySettings};
use tokio::sync::Notify;

/// A bound on waiting, not a measure of speed.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A new Caddy tidies its storage while it makes its first certificates, and now and then sweeps the folder
/// of one away under its hands; it tries again after a minute.
const CERTIFICATE_PATIENCE: Duration = Duration::from_secs(180);

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Where Caddy is; a line and `None` where it is not.
pub fn program() -> Option<&'static str> {
    let found = ["/usr/bin/caddy", "/usr/local/bin/caddy"].into_iter().find(|path| Path::new(path).exists());
    if found.is_none() {
        eprintln!("skipped: caddy is not installed (Debian: apt-get install caddy)");
    }
    found
}

/// Settings of a proxy from the variables an operator would set.
pub fn settings(pairs: &[(&str, &str)]) -> ProxySettings {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ProxySettings::from_env(&MapEnv(pairs.collect())).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A running Caddy, ended with this value.
pub struct Caddy {
    process: Child,
    folder: tempfile::TempDir,
    pub http: u16,
    health: u16,
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Caddy {
    /// With our configuration; `None` where Caddy is not installed.
    pub async fn ours(pairs: &[(&str, &str)]) -> Option<Self> {
        let ports = Ports { http: free_port(), health: free_port() };
        Self::with(&tale_edge::caddyfile(&settings(pairs), ports), ports).await
    }

    /// With any configuration that has a health block.
    pub async fn with(text: &str, ports: Ports) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("Caddyfile");
        std::fs::write(&file, text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(program)
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&file)
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path().join("data"))
            .env("XDG_CONFIG_HOME", folder.path().join("config"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut caddy = Self { process, folder, http: ports.http, health: ports.health };
        let started = tokio::time::timeout(PATIENCE, async {
            while tokio::net::TcpStream::connect(("127.0.0.1", caddy.health)).await.is_err() {
                assert!(caddy.process.try_wait().unwrap().is_none(), "Caddy ended:\n{}", caddy.log());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        started.await.unwrap_or_else(|_| panic!("Caddy does not listen:\n{}", caddy.log()));
        Some(caddy)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub async fn health(&self) -> String {
        let address = format!("http://127.0.0.1:{}/health", self.health);
        plain().get(address).send().await.unwrap().text().await.unwrap()
    }

    /// A browser that trusts this Caddy's own authority and finds `hosts` here.
    pub async fn browser(&self, hosts: &[(&str, u16)]) -> reqwest::Client {
        let root = self.folder.path().join("data/caddy/pki/authorities/local/root.crt");
        let pem = tokio::time::timeout(PATIENCE, async {
            loop {
                match std::fs::read(&root) {
                    Ok(pem) if !pem.is_empty() => return pem,
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        let pem = pem.await.unwrap_or_else(|_| panic!("Caddy made no authority:\n{}", self.log()));
        tale_core::net::install_tls_provider();
        let mut client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .tls_certs_only([reqwest::Certificate::from_pem(&pem).unwrap()]);
        for (host, port) in hosts {
            client = client.resolve(host, SocketAddr::from(([127, 0, 0, 1], *port)));
        }
        let client = client.build().unwrap();
        // Certificates are made after the port is open.
        for (host, port) in hosts {
            let ready = tokio::time::timeout(CERTIFICATE_PATIENCE, async {
                while client.get(format!("https://{host}:{port}/health")).send().await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            });
            ready.await.unwrap_or_else(|_| panic!("no certificate for {host}:\n{}", self.log()));
        }
        client
    }
}

/// A client without TLS.
pub fn plain() -> reqwest::Client {
    tale_core::net::install_tls_provider();
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE).build().unwrap()
}

/// A server that answers with its name and what arrived, has a live stream at `…/events`, and can be
/// told to go on with it.
pub struct Behind {
    pub address: SocketAddr,
    pub go_on: Arc<Notify>,
    /// Told when the reader of a stream is gone.
    pub gone: Arc<Notify>,
}

struct Told(&'static str, Arc<Notify>, Arc<Notify>);

impl Behind {
    pub async fn start(name: &'static str) -> Self {
        let (go_on, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let state = Arc::new(Told(name, go_on.clone(), gone.clone()));
        let router = Router::new()
            .route("/events", get(stream))
            .route("/app/events", get(stream))
            .fallback(any(echo))
            .with_state(state);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, go_on, gone }
    }

    pub fn text(&self) -> String {
        self.address.to_string()
    }
}

async fn echo(State(told): State<Arc<Told>>, request: Request) -> Response {
    let headers: Value = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap_or_default())))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let address = request.uri().path_and_query().map(ToString::to_string);
    let body = json!({ "server": told.0, "method": request.method().as_str(), "address": address, "headers": headers });
    // As Tale does: one of the headers that the proxy adds where they are missing.
    ([(header::X_CONTENT_TYPE_OPTIONS, "nosniff")], body.to_string()).into_response()
}

/// Tells of its end when it is dropped.
struct Gone(Arc<Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn stream(State(told): State<Arc<Told>>) -> Response {
    let gone = Gone(told.2.clone());
    let events = futures::stream::unfold((0, told.1.clone(), gone), |(number, go_on, gone)| async move {
        if number > 0 {
            go_on.notified().await;
        }
        Some((Ok::<_, std::io::Error>(format!("data: {number}\n\n")), (number + 1, go_on, gone)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events.boxed())).into_response()
}

/// The body of an answer as JSON.
pub async fn seen(answer: reqwest::Response) -> Value {
    let text = answer.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}
