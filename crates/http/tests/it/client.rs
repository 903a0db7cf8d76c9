//! A browser or a key holder that talks to the router without a socket.

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

/// Who is talking: a cookie, a key or nobody, from one address.
#[derive(Clone)]
pub struct Client {
    router: Router,
    /// Name and token of the session cookie.
    cookie: Option<(String, String)>,
    copy: Option<String>,
    headers: Vec<(&'static str, String)>,
    peer: std::net::SocketAddr,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body as JSON; `null` when there is none.
    pub fn json(&self) -> Value {
        if self.bytes.is_empty() { Value::Null } else { serde_json::from_slice(&self.bytes).unwrap() }
    }

    /// The body's error code, with the status; also in the shapes of the model endpoints.
    pub fn refusal(&self) -> (u16, String) {
        let body = self.json();
        let code = body["code"].as_str().or(body["error"]["code"].as_str());
        (self.status.as_u16(), code.unwrap_or_default().to_owned())
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.bytes));
        self.json()
    }
}

impl Client {
    /// A browser on a page of ours, signed out.
    pub fn browser(router: Router) -> Self {
        Self {
            router,
            cookie: None,
            copy: None,
            headers: vec![("origin", "http://localhost:3000".into()), ("host", "localhost:3000".into())],
            peer: ([127, 0, 0, 1], 4711).into(),
        }
    }

    /// A program with an API key.
    pub fn key(router: Router, key: &str) -> Self {
        Self {
            router,
            cookie: None,
            copy: None,
            headers: vec![("authorization", format!("Bearer {key}"))],
            peer: ([127, 0, 0, 1], 4711).into(),
        }
    }

    /// The session's token.
    pub fn cookie(&self) -> Option<&str> {
        self.cookie.as_ref().map(|(_, token)| token.as_str())
    }

    /// The copy of the session beside it.
    pub fn copy(&self) -> Option<&str> {
        self.copy.as_deref()
    }

    /// The same with another or one more header.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(existing, _)| *existing != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The same with a header once more.
    pub fn and(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The same without a header.
    pub fn without(mut self, name: &'static str) -> Self {
        self.headers.retain(|(existing, _)| *existing != name);
        self
    }

    /// The same from another address.
    pub fn from(mut self, ip: &str) -> Self {
        self.peer = (ip.parse::<std::net::IpAddr>().unwrap(), 4711).into();
        self
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body)).await
    }

    pub async fn put(&mut self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body)).await
    }

    pub async fn patch(&mut self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, Some(body)).await
    }

    pub async fn delete(&mut self, path: &str) -> Answer {
        self.send("DELETE", path, None).await
    }

    /// Sends one request and keeps the session cookie of the answer, as a browser does.
    pub async fn send(&mut self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map_or_else(Body::empty, |json| Body::from(json.to_string()));
        self.kept(method, path, body).await
    }

    /// Posts a form, as [`Client::send`] does.
    pub async fn form(&mut self, path: &str, body: Vec<u8>) -> Answer {
        self.kept("POST", path, Body::from(body)).await
    }

    async fn kept(&mut self, method: &str, path: &str, body: Body) -> Answer {
        let response = self.open(method, path, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        for set in parts.headers.get_all(header::SET_COOKIE) {
            let (name, value) = set.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            let value = Some(value.to_owned()).filter(|value| !value.is_empty());
            match name {
                "tale_session" | "__Host-tale_session" | "__Secure-tale_session" => {
                    self.cookie = value.map(|value| (name.to_owned(), value));
                }
                "tale_session_copy" => self.copy = value,
                // Tests of sign-ins elsewhere, and of known devices, send them themselves.
                "tale_sso" | "tale_device" | "__Host-tale_device" | "__Secure-tale_device" => {}
                other => panic!("an unknown cookie {other}"),
            }
        }
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    /// Sends any bytes as a JSON body.
    pub async fn raw(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let (parts, body) = self.open(method, path, body.into()).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    /// Sends one request; the body of the answer is not read yet.
    pub async fn open(&self, method: &str, path: &str, body: Body) -> Response {
        let mut request = Request::builder().method(method).uri(path).extension(ConnectInfo(self.peer));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some((name, token)) = &self.cookie {
            let copy = self.copy.as_ref().map(|copy| format!("; tale_session_copy={copy}")).unwrap_or_default();
            request = request.header(header::COOKIE, format!("{name}={token}{copy}"));
        }
        self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap()
    }
}
