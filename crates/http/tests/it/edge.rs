//! The bound port: what a client can do to a socket.

use std::time::Duration;

use serde_json::Value;
use tale_http::serve::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::stage::Stage;

struct Port {
    stage: Stage,
    address: std::net::SocketAddr,
    stop: Stop,
    serving: tokio::task::JoinHandle<()>,
}

impl Port {
    async fn open() -> Self {
        let stage = Stage::new().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Stop {
            drain: stage.world.stopping.clone(),
            close: CancellationToken::new(),
            budget: Duration::from_secs(20),
        };
        let serving = tokio::spawn(tale_http::serve(listener, stage.world.router.clone(), stop.clone()));
        Self { stage, address, stop, serving }
    }

    /// Sends bytes and reads until the server closes.
    async fn say(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // The server may close while a long request is still being written.
        let _ = socket.write_all(bytes.as_ref()).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the server kept the connection open: {}", String::from_utf8_lossy(&answer));
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn status(answer: &str) -> u16 {
    answer
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .unwrap_or_default()
}

fn problem(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn heads_are_bounded() {
    let port = Port::open().await;
    let fits =
        format!("GET /ping HTTP/1.1\r\nhost: t\r\nconnection: close\r\nx-filler: {}\r\n\r\n", "a".repeat(32_000));
    assert_eq!(status(&port.say(fits).await), 200);
    let large = format!("GET /ping HTTP/1.1\r\nhost: t\r\nx-filler: {}\r\n\r\n", "a".repeat(70_000));
    assert_eq!(status(&port.say(large).await), 431);
    let many = format!("GET /ping HTTP/1.1\r\nhost: t\r\n{}\r\n", "x: y\r\n".repeat(5_000));
    assert_eq!(status(&port.say(many).await), 431);
    let address = format!("GET /api/v1/me?q={} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n", "a".repeat(33_000));
    let answer = port.say(address).await;
    assert_eq!((status(&answer), problem(&answer)["code"].as_str()), (414, Some("URI_TOO_LONG")));
}

#[tokio::test]
async fn what_is_no_request_ends_the_connection() {
    let port = Port::open().await;
    for bad in [
        "GET /ping\r\n\r\n",
        "GET /ping HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01",
        "GET /ping HTTP/1.1\r\nhost : t\r\n\r\n",
        "GET /ping HTTP/1.1\r\nhost: t\r\n folded: x\r\n\r\n",
        "GET /pi\0ng HTTP/1.1\r\nhost: t\r\n\r\n",
        "GET /ping HTTP/1.1\r\nhost: t\r\nx: a\0b\r\n\r\n",
        "GET /ping HTTP/1.1\r\nhost: t\r\ncontent-length: -1\r\n\r\n",
        "POST /api/auth/sign-out HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        "POST /api/auth/sign-out HTTP/1.1\r\nhost: t\r\ntransfer-encoding: gzip\r\n\r\nabc",
    ] {
        let answer = port.say(bad).await;
        assert!(matches!(status(&answer), 0 | 400), "{bad:?}: {answer}");
        assert!(!answer.contains("HTTP/1.1 2"), "{bad:?}: {answer}");
    }
}

#[tokio::test]
async fn a_second_request_cannot_hide_in_a_first() {
    let port = Port::open().await;
    // Both lengths: the chunked one counts, or the connection ends. What follows is never a request.
    let smuggled = "POST /api/auth/sign-out HTTP/1.1\r\nhost: t\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /ping HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";
    let answer = port.say(smuggled).await;
    assert!(answer.matches("HTTP/1.1").count() <= 2 && !answer.contains("chunked\r\n\r\n0"), "{answer}");
    let broken = "POST /api/app/setup HTTP/1.1\r\nhost: localhost:3000\r\norigin: http://localhost:3000\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n";
    let answer = port.say(broken).await;
    assert_eq!((status(&answer), problem(&answer)["code"].as_str()), (400, Some("BODY_CHUNK_MALFORMED")), "{answer}");
    let split = "GET /api/v1/me HTTP/1.1\r\nhost: t\r\nconnection: close\r\nx-request-id: a\rset-cookie: tale_session=x\r\n\r\n";
    let answer = port.say(split).await;
    assert!(!answer.to_lowercase().contains("set-cookie"), "{answer}");
}

#[tokio::test]
async fn a_refused_body_is_not_waited_for() {
    let port = Port::open().await;
    let refused = "POST /api/app/setup HTTP/1.1\r\nhost: localhost:3000\r\norigin: http://localhost:3000\r\nconnection: close\r\ncontent-length: 100000000\r\n\r\n";
    let answer = port.say(refused).await;
    assert_eq!((status(&answer), problem(&answer)["code"].as_str()), (413, Some("BODY_TOO_LARGE")));
    let expected = "POST /api/app/setup HTTP/1.1\r\nhost: localhost:3000\r\norigin: http://localhost:3000\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: 100000000\r\n\r\n";
    let answer = port.say(expected).await;
    assert_eq!(status(&answer), 413, "no invitation to send it: {answer}");
}

#[tokio::test]
async fn draining_lets_requests_finish_and_then_closes_the_port() {
    let port = Port::open().await;
    let mut idle = TcpStream::connect(port.address).await.unwrap();
    idle.write_all(b"GET /ping HTTP/1.1\r\nhost: t\r\n\r\n").await.unwrap();
    let mut head = [0; 15];
    idle.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let mut slow = TcpStream::connect(port.address).await.unwrap();
    slow.write_all(b"POST /api/app/setup HTTP/1.1\r\nhost: localhost:3000\r\norigin: http://localhost:3000\r\ncontent-length: 2\r\n\r\n{").await.unwrap();
    // A round trip on another connection: the slow one has been accepted by then.
    assert_eq!(status(&port.say("GET /ping HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").await), 200);
    port.stop.drain.cancel();
    port.stop.close.cancel();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    let answer = port.say("GET /ready HTTP/1.1\r\nhost: t\r\n\r\n").await;
    assert_eq!(status(&answer), 503, "until then a probe is told what is going on");
    slow.write_all(b"}").await.unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert_eq!(status(&String::from_utf8_lossy(&answer)), 400, "the running request was answered");
    port.serving.await.unwrap();
    assert!(TcpStream::connect(port.address).await.is_err());
}

/// Reads until the text holds a word.
async fn until(socket: &mut TcpStream, word: &str) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&text).contains(word) {
        let read = tokio::time::timeout(Duration::from_secs(20), socket.read(&mut piece))
            .await
            .expect("bytes within 20 seconds")
            .unwrap();
        assert!(read > 0, "the stream ended before `{word}`: {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_live_stream_leaves_its_connection_and_ends_with_its_reader() {
    let mut port = Port::open().await;
    let listeners = port.stage.world.app.listeners().clone();
    let cookie = port.stage.owner.cookie().unwrap().to_owned();
    let org = port.stage.org.clone();
    let head = move |connection: &str| {
        format!(
            "GET /events?orgId={} HTTP/1.1\r\nhost: localhost:3000\r\n{connection}cookie: tale_session={cookie}\r\n\r\n",
            org
        )
    };
    // On a connection that was used before, as browsers do it.
    let mut socket = TcpStream::connect(port.address).await.unwrap();
    socket.write_all(b"GET /ping HTTP/1.1\r\nhost: t\r\n\r\n").await.unwrap();
    until(&mut socket, "pong").await;
    socket.write_all(head("").as_bytes()).await.unwrap();
    let answer = until(&mut socket, "event: hello\ndata: {}\n\n").await;
    assert!(
        answer.starts_with("HTTP/1.0 200 OK\r\n") && !answer.to_lowercase().contains("transfer-encoding"),
        "{answer}"
    );
    assert_eq!(listeners.count(), 1);
    port.stage.post("chat/threads", serde_json::json!({})).await.expect(201);
    assert!(until(&mut socket, "event: hint").await.ends_with("\n\n"));
    drop(socket);
    let mut second = TcpStream::connect(port.address).await.unwrap();
    second.write_all(head("connection: keep-alive\r\n").as_bytes()).await.unwrap();
    until(&mut second, "event: hello").await;
    // The first one's end is seen by then, or by the next thing that is told.
    while listeners.count() != 1 {
        port.stage.post("chat/threads", serde_json::json!({})).await.expect(201);
        tokio::task::yield_now().await;
    }
    port.stop.drain.cancel();
    port.stop.close.cancel();
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), second.read_to_end(&mut rest)).await.unwrap().unwrap();
    port.serving.await.unwrap();
    assert_eq!(listeners.count(), 0);
}

#[tokio::test]
async fn a_client_that_writes_before_it_reads_sees_why_it_was_refused() {
    let port = Port::open().await;
    let (address, size) = (port.address, 32 << 20);
    for (path, expected) in [("/api/app/setup", 413), ("/api/v1/documents", 401), ("/nowhere", 405)] {
        // as Python's `requests` does it: everything is written, then the answer is read
        let answer = tokio::task::spawn_blocking(move || {
            use std::io::{Read, Write};
            let mut socket = std::net::TcpStream::connect(address).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost:3000\r\norigin: http://localhost:3000\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n"
            );
            socket.write_all(head.as_bytes()).unwrap();
            let piece = vec![b'a'; 1 << 20];
            for _ in 0..size >> 20 {
                socket.write_all(&piece)?;
            }
            let mut answer = String::new();
            socket.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        });
        let answer = answer.await.unwrap().unwrap();
        assert_eq!(status(&answer), expected, "{path}: {answer}");
    }
}
