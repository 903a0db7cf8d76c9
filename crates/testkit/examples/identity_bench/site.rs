//! The installation under measurement, and the requests that are sent to it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use argon2::{Algorithm, Argon2, Params, Version};
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::installation::{database, end, free_port, line};
use crate::process;

const PASSWORD: &str = "Blue-Kettle-42";

/// A whole request.
pub(crate) type Request = Arc<[u8]>;

/// `tale dev`, its organization and its owner's cookie.
pub(crate) struct Site {
    pub(crate) port: u16,
    pub(crate) org: String,
    pub(crate) owner: String,
    child: Child,
}

impl Drop for Site {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Site {
    /// Starts it on `data`, with copies of sessions in cookies for so many seconds, if any.
    pub(crate) async fn start(binary: &str, postgres: &str, data: &Path, copies: u32) -> Self {
        let port = free_port();
        let copies = (copies > 0).then(|| ("SESSION_COOKIE_CACHE_SECONDS", copies.to_string()));
        let mut child = Command::new(binary)
            .args(["dev", "--port", &port.to_string(), "--data-dir"])
            .arg(data)
            .env("TALE_EMBEDDED_POSTGRES_DIR", postgres)
            .envs(copies)
            .env("TALE_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        line(&mut child, |line| line.starts_with("ready ").then_some(())).await;
        Self { port, org: String::new(), owner: String::new(), child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes of its database, those that it has now.
    pub(crate) fn database(&self) -> Vec<u32> {
        process::tree(self.pid()).split_off(1)
    }

    /// An owner with an organization, and so many members with the owner's password.
    pub(crate) async fn set_up(&mut self, data: &Path, people: usize) {
        let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
        let mut connection = Connection::open(self.port).await;
        let status = connection.send(&self.post("/api/app/setup", "", &form)).await;
        self.owner = cookie(&connection);
        let body = connection.body().await;
        assert!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
        let made: Value = serde_json::from_slice(&body).unwrap();
        self.org = made["organization"]["id"].as_str().unwrap().to_owned();
        let pool = sqlx::PgPool::connect(&database(data)).await.unwrap();
        for statement in [
            "INSERT INTO app.users SELECT (jsonb_populate_record(u, jsonb_build_object('id', uuidv7(), \
             'email', 'p' || n || '@acme.test'))).* FROM app.users u, generate_series(0, $1 - 1) n WHERE u.email = 'ada@acme.test'",
            "INSERT INTO app.memberships SELECT (jsonb_populate_record(m, jsonb_build_object('user_id', u.id, 'role', 'developer'))).* \
             FROM app.memberships m, app.users u WHERE u.email <> 'ada@acme.test' AND m.role = 'owner' AND $1 > 0",
        ] {
            sqlx::query(statement).bind(i32::try_from(people).unwrap()).execute(&pool).await.unwrap();
        }
        sqlx::query("ANALYZE").execute(&pool).await.unwrap();
    }

    fn post(&self, path: &str, cookie: &str, body: &Value) -> Request {
        let body = body.to_string();
        let cookie = if cookie.is_empty() { String::new() } else { format!("cookie: {cookie}\r\n") };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost:{port}\r\norigin: http://localhost:{port}\r\n{cookie}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len(),
            port = self.port
        );
        (head + &body).into_bytes().into()
    }

    fn get(&self, path: &str, name: &str, value: &str) -> Request {
        format!("GET {path} HTTP/1.1\r\nhost: localhost:{}\r\n{name}: {value}\r\n\r\n", self.port).into_bytes().into()
    }

    /// A member signs in.
    pub(crate) fn sign_in(&self, person: usize) -> Request {
        let form = json!({ "email": format!("p{person}@acme.test"), "password": PASSWORD });
        self.post("/api/auth/sign-in/email", "", &form)
    }

    /// What is refused: without a cookie for that, else for its body.
    pub(crate) fn refused(&self, cookie: Option<&str>) -> Request {
        self.post("/api/app/organizations", cookie.unwrap_or_default(), &json!({}))
    }

    /// Asks for a key with a cookie.
    async fn key(&self, connection: &mut Connection, cookie: &str) -> String {
        let path = format!("/api/app/api-keys?orgId={}", self.org);
        let order = json!({ "name": "bench", "expiresInDays": 1 });
        let status = connection.send(&self.post(&path, cookie, &order)).await;
        let body = connection.body().await;
        assert!(status == 201, "{status}: {}", String::from_utf8_lossy(&body));
        let made: Value = serde_json::from_slice(&body).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// What people at work ask for.
    pub(crate) async fn work(&self) -> Vec<Request> {
        let key = self.key(&mut Connection::open(self.port).await, &self.owner).await;
        let paths = ["session", "permissions", "members", "chat/threads"];
        let pages = paths.map(|path| self.get(&format!("/api/app/{path}?orgId={}", self.org), "cookie", &self.owner));
        let mut work = pages.to_vec();
        // A key may be used twice a second.
        for _ in 0..12 {
            work.extend(pages.iter().cloned());
        }
        work.push(self.get("/api/v1/me", "authorization", &format!("Bearer {key}")));
        work
    }

    /// `GET /api/v1/me` with a key of everybody who signed in.
    pub(crate) async fn with_keys(&self, cookies: &[String]) -> Vec<Request> {
        let mut connection = Connection::open(self.port).await;
        let mut requests = Vec::new();
        for cookie in cookies {
            let key = self.key(&mut connection, cookie).await;
            requests.push(self.get("/api/v1/me", "authorization", &format!("Bearer {key}")));
        }
        requests
    }

    /// The cookie with a copy of the owner's session.
    pub(crate) async fn copied(&self) -> String {
        let mut connection = Connection::open(self.port).await;
        let path = format!("/api/app/permissions?orgId={}", self.org);
        let status = connection.send(&self.get(&path, "cookie", &self.owner)).await;
        let copy = cookie(&connection);
        connection.body().await;
        assert!(status == 200 && copy.starts_with("tale_session_copy="), "{status} {copy}");
        copy
    }
}

/// The cookie that an answer sets.
pub(crate) fn cookie(connection: &Connection) -> String {
    let set = connection.header("set-cookie").unwrap_or_default();
    set.split(';').next().unwrap_or_default().to_owned()
}

/// What so many hashes like those of passwords cost this process, in milliseconds.
pub(crate) fn hashes(count: usize) -> f64 {
    let params = Params::new(19 * 1024, 2, 1, None).unwrap();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let before = process::cpu_ms(&[std::process::id()]);
    let mut hash = [0; 32];
    for _ in 0..count {
        let salt = hash;
        argon.hash_password_into(PASSWORD.as_bytes(), &salt[..16], &mut hash).unwrap();
    }
    std::hint::black_box(hash);
    process::cpu_ms(&[std::process::id()]) - before
}
