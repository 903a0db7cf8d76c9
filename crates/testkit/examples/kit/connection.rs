//! One kept connection that writes a request in one piece and reads its answer. It spends next to nothing itself,
//! so that what is measured is the other side.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// The head of the last answer, line by line.
    head: String,
    /// The last line of its body.
    pub(crate) line: String,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        // A buffer that a thousand streams can afford.
        let stream = BufReader::with_capacity(2 << 10, stream);
        Self { stream, head: String::new(), line: String::new() }
    }

    /// Sends a whole request and reads the head of its answer. Tells the status.
    pub(crate) async fn send(&mut self, request: &[u8]) -> u16 {
        self.stream.get_mut().write_all(request).await.unwrap();
        self.head.clear();
        while self.stream.read_line(&mut self.head).await.unwrap() > 2 {}
        self.head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("the head of an answer")
    }

    /// What the head says under a name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find_map(|(one, value)| one.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The body that follows the head.
    pub(crate) async fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(length) = self.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body).await.unwrap();
            return body;
        }
        loop {
            assert!(self.read_line().await, "the answer ends early");
            let size = usize::from_str_radix(self.line.trim_end(), 16).unwrap();
            let from = body.len();
            body.resize(from + size + 2, 0);
            self.stream.read_exact(&mut body[from..]).await.unwrap();
            body.truncate(from + size);
            if size == 0 {
                return body;
            }
        }
    }

    /// Reads a line of the body into [`Self::line`]; whether there was one.
    pub(crate) async fn read_line(&mut self) -> bool {
        self.line.clear();
        self.stream.read_line(&mut self.line).await.unwrap() > 0
    }
}
