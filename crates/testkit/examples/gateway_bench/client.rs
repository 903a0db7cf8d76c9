//! The client: one kept connection that writes a request in one piece and reads its answer. It spends next
//! to nothing itself, so that what is measured is the other side.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

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
    stream: BufReader<TcpStream>,
    line: String,
}

/// The head of an answer.
struct Head {
    status: u16,
    length: Option<usize>,
}

impl Caller {
    pub(crate) async fn new(way: &Way) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", way.port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        // a buffer that a thousand streams can afford
        Self { way: way.clone(), stream: BufReader::with_capacity(2 << 10, stream), line: String::new() }
    }

    async fn send(&mut self, key: &str, body: &str) -> Head {
        let path = self.way.path;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await.unwrap();
        let mut head = Head { status: 0, length: None };
        while self.read_line().await {
            let line = self.line.trim_end();
            if line.is_empty() {
                break;
            }
            if head.status == 0 {
                head.status = line.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap();
            } else if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                head.length = Some(value.parse().unwrap());
            }
        }
        head
    }

    async fn read_line(&mut self) -> bool {
        self.line.clear();
        self.stream.read_line(&mut self.line).await.unwrap() > 0
    }

    /// A whole answer.
    pub(crate) async fn ask(&mut self, key: &str, body: &str) {
        let head = self.send(key, body).await;
        let mut answer = Vec::new();
        match head.length {
            Some(length) => {
                answer.resize(length, 0);
                self.stream.read_exact(&mut answer).await.unwrap();
            }
            None => loop {
                assert!(self.read_line().await, "the answer ends early");
                let size = usize::from_str_radix(self.line.trim_end(), 16).unwrap();
                let from = answer.len();
                answer.resize(from + size + 2, 0);
                self.stream.read_exact(&mut answer[from..]).await.unwrap();
                if size == 0 {
                    break;
                }
            },
        }
        assert!(head.status == 200, "{}: {}", head.status, String::from_utf8_lossy(&answer));
    }

    /// Reads a stream to its end and tells the delay of each token since it was written, in nanoseconds.
    pub(crate) async fn follow(&mut self, key: &str, tokens: u64, mut heard: impl FnMut(u64)) {
        let body = self.way.stream(tokens);
        let head = self.send(key, &body).await;
        assert!(head.status == 200, "a stream was refused with {}", head.status);
        loop {
            assert!(self.read_line().await, "the stream ends early");
            if let Some((_, rest)) = self.line.split_once(r#""t1"#) {
                let sent: u64 = format!("1{}", rest.split_once(' ').unwrap().0).parse().unwrap();
                heard(now().saturating_sub(sent));
            } else if self.line.starts_with("data: [DONE]") {
                break;
            }
        }
        // The end of the chunked body, so that the connection can be used again.
        while self.read_line().await && self.line.trim_end() != "0" {}
        self.read_line().await;
    }
}
