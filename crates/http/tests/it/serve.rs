//! The server itself, on a socket: what a drain does to connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tale_http::serve::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A bound on waiting, not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a door that answers at once and one that waits for `release`.
struct Server {
    address: SocketAddr,
    arrived: Arc<Notify>,
    release: Arc<Notify>,
    stop: Stop,
    task: tokio::task::JoinHandle<()>,
}

async fn server() -> Server {
    let (arrived, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, wait) = (arrived.clone(), release.clone());
    let slow = move || async move {
        told.notify_one();
        wait.notified().await;
        "slow"
    };
    let router = Router::new().route("/", get(|| async { "quick" })).route("/slow", get(slow));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Stop { drain: CancellationToken::new(), close: CancellationToken::new(), budget: PATIENCE };
    let task = tokio::spawn(tale_http::serve(listener, router, stop.clone()));
    Server { address, arrived, release, stop, task }
}

async fn send(server: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    stream
}

/// Everything until the server closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("the connection ends").unwrap();
    text
}

#[tokio::test]
async fn a_drain_answers_what_runs_and_what_comes_and_waits_for_nobody_who_is_silent() {
    let server = server().await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    // Accepted before the next one, which is answered.
    let running = send(&server, "/slow").await;
    server.arrived.notified().await;
    server.stop.drain.cancel();
    assert_eq!(rest(silent).await, "");
    let late = rest(send(&server, "/").await).await;
    assert!(
        late.starts_with("HTTP/1.1 200") && late.contains("connection: close") && late.ends_with("quick"),
        "{late}"
    );
    server.stop.close.cancel();
    assert!(!server.task.is_finished());
    server.release.notify_one();
    assert!(rest(running).await.ends_with("slow"));
    tokio::time::timeout(PATIENCE, server.task).await.expect("nothing is left").unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn what_hangs_is_cut_when_the_budget_is_used_up() {
    let mut server = server().await;
    server.task.abort();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    server.address = listener.local_addr().unwrap();
    let stop = Stop { budget: Duration::from_millis(1), ..server.stop.clone() };
    let never = Router::new().route("/slow", get(std::future::pending::<&str>));
    let task = tokio::spawn(tale_http::serve(listener, never, stop.clone()));
    let _hanging = send(&server, "/slow").await;
    stop.drain.cancel();
    stop.close.cancel();
    tokio::time::timeout(PATIENCE, task).await.expect("the budget ends it").unwrap();
}
