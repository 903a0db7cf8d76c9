//! The client: calls of a model over one kept connection.

use crate::connection::Connection;
use crate::upstream::now;

/// Where calls go, and as whom.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) port: u16,
    pub(crate) path: &'static str,
    pub(crate) model: &'static str,
}

impl Way {
    /// A body that is not streamed, `padding` bytes longer than the shortest.
    pub(crate) fn whole(&self, padding: usize) -> String {
        let text = "x".repeat(padding.max(2));
        format!(r#"{{"model":"{}","max_tokens":50,"messages":[{{"role":"user","content":"{text}"}}]}}"#, self.model)
    }

    /// A body that asks for a stream of so many tokens.
    pub(crate) fn stream(&self, tokens: u64) -> String {
        format!(
            r#"{{"model":"{}","max_tokens":4000,"stream":true,"messages":[{{"role":"user","content":"tokens={tokens};"}}]}}"#,
            self.model
        )
    }
}

/// One connection.
pub(crate) struct Caller {
    way: Way,
    connection: Connection,
}

impl Caller {
    pub(crate) async fn new(way: &Way) -> Self {
        Self { way: way.clone(), connection: Connection::open(way.port).await }
    }

    async fn send(&mut self, key: &str, body: &str) -> u16 {
        let path = self.way.path;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.connection.send(request.as_bytes()).await
    }

    /// A whole answer.
    pub(crate) async fn ask(&mut self, key: &str, body: &str) {
        let status = self.send(key, body).await;
        let answer = self.connection.body().await;
        assert!(status == 200, "{status}: {}", String::from_utf8_lossy(&answer));
    }

    /// Reads a stream to its end and tells the delay of each token since it was written, in nanoseconds.
    pub(crate) async fn follow(&mut self, key: &str, tokens: u64, mut heard: impl FnMut(u64)) {
        let body = self.way.stream(tokens);
        let status = self.send(key, &body).await;
        assert!(status == 200, "a stream was refused with {status}");
        let connection = &mut self.connection;
        loop {
            assert!(connection.read_line().await, "the stream ends early");
            if let Some((_, rest)) = connection.line.split_once(r#""t1"#) {
                let sent: u64 = format!("1{}", rest.split_once(' ').unwrap().0).parse().unwrap();
                heard(now().saturating_sub(sent));
            } else if connection.line.starts_with("data: [DONE]") {
                break;
            }
        }
        // The end of the chunked body, so that the connection can be used again.
        while connection.read_line().await && connection.line.trim_end() != "0" {}
        connection.read_line().await;
    }
}
