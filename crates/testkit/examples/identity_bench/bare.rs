//! A bare handler in a process of its own: what a request costs that asks nothing of anybody.

use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::http::header;
use axum::routing::get;

use crate::installation::{end, line};

/// An answer of `GET /api/v1/me`.
const ANSWER: &str = r#"{"user":{"id":"019acd3c-5b1f-7e5a-9b1a-0a4c5f2f7c11","name":"P","email":"p17@acme.test"},"organization":{"id":"019acd3c-5b20-7d43-8c55-6d3a1a8d1f02","slug":"acme","name":"Acme","role":"member"},"organizations":[{"id":"019acd3c-5b20-7d43-8c55-6d3a1a8d1f02","slug":"acme","name":"Acme","role":"member"}],"capabilities":{"developer":false,"modelApi":false},"key":{"name":"bench","expiresAt":1795957447123}}"#;

/// Serves until the process is killed; says its port first.
pub(crate) async fn serve() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| stream.set_nodelay(true).unwrap());
    let me = get(|| async { ([(header::CONTENT_TYPE, "application/json")], ANSWER) });
    axum::serve(listener, Router::new().route("/api/v1/me", me)).await.unwrap();
}

/// The process.
pub(crate) struct Bare {
    pub(crate) port: u16,
    child: Child,
}

impl Drop for Bare {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Bare {
    pub(crate) async fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("bare")
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        Self { port: line(&mut child, |line| line.parse().ok()).await, child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}
