//! What is measured: the provider itself, Tale's gateway role, its public endpoint, the LiteLLM proxy.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Way;
use crate::installation::{database, end, free_port, line, value};
use crate::process;

const PASSWORD: &str = "Blue-Kettle-42";

/// A way to the model, with the keys to take in turn.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    pub(crate) keys: Vec<String>,
    /// The process whose database it uses, when that is another one.
    database_of: Option<u32>,
    child: Child,
}

impl Drop for Place {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Place {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes of its database.
    pub(crate) fn database(&self) -> Vec<u32> {
        process::tree(self.database_of.unwrap_or(self.pid())).split_off(1)
    }

    /// The provider, in a process of its own.
    pub(crate) async fn direct() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("upstream")
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let port = line(&mut child, |line| line.parse().ok()).await;
        let way = Way { port, path: "/v1/chat/completions", model: "m" };
        Self { name: "direct", way, keys: vec!["none".into()], database_of: None, child }
    }

    /// `tale dev` with `people` people that hold a key each, and limits of the organization and of each person.
    /// Beside it the installation.
    pub(crate) async fn public(
        binary: &str,
        postgres: &str,
        data: &Path,
        upstream: u16,
        people: usize,
    ) -> (Self, Site) {
        let port = free_port();
        let mut child = Command::new(binary)
            .args(["dev", "--port", &port.to_string(), "--data-dir"])
            .arg(data)
            .env("TALE_EMBEDDED_POSTGRES_DIR", postgres)
            .env("TALE_ALLOW_PRIVATE_PROVIDER_HOSTS", "1")
            .env("SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY", "2000")
            .env("TALE_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        line(&mut child, |line| line.starts_with("ready ").then_some(())).await;
        let mut site = Site::new(port);
        let keys = site.people(upstream, people).await;
        let way = Way { port, path: "/api/v1/openai/chat/completions", model: "p/m" };
        (Self { name: "Tale, public endpoint", way, keys, database_of: None, child }, site)
    }

    /// `tale serve` as the role `llm-gateway` on the database of an installation, with keys of `org`.
    pub(crate) async fn role(binary: &str, data: &Path, beside: &Self, org: &str) -> Self {
        let port = free_port();
        let mut child = Command::new(binary)
            .arg("serve")
            .env_clear()
            .env("ROLE", "llm-gateway")
            .env("LLM_GATEWAY_PORT", port.to_string())
            .env("DATABASE_URL", database(data))
            .env("ENCRYPTION_SECRET_HEX", value(&data.join("secrets.env"), "ENCRYPTION_SECRET_HEX"))
            .env("SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD", PASSWORD)
            .env("TALE_ALLOW_PRIVATE_PROVIDER_HOSTS", "1")
            .env("TALE_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the gateway starts");
        line(&mut child, |line| line.starts_with("ready").then_some(())).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let put = async |path: String, body: Value| {
            let request = http.put(format!("http://127.0.0.1:{port}/api/{path}")).basic_auth("admin", Some(PASSWORD));
            let answer = request.json(&body).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert!(status.is_success(), "{status} {text}");
            serde_json::from_str::<Value>(&text).unwrap_or_default()
        };
        let bounds = json!({ "providerConcurrency": 2000, "customProviderConcurrency": 2000,
                             "streamIdleTimeoutSeconds": 600, "logRetentionDays": 3 });
        put("settings".to_owned(), bounds).await;
        let mut keys = Vec::new();
        for _ in 0..16 {
            let order =
                json!({ "models": [{ "provider": "p", "model": "m" }], "capCents": 1_000_000, "agent": "bench" });
            let minted = put(format!("organizations/{org}/keys/{}", uuid::Uuid::now_v7()), order).await;
            keys.push(minted["key"].as_str().unwrap().to_owned());
        }
        let way = Way { port, path: "/openai/v1/chat/completions", model: "p/m" };
        Self { name: "Tale, gateway role", way, keys, database_of: Some(beside.pid()), child }
    }

    /// The proxy of the package `litellm[proxy]`, without a database: one key, no spend, no limits.
    pub(crate) async fn litellm(binary: &str, folder: &Path, upstream: u16) -> Self {
        let config = folder.join("litellm.yaml");
        let text = format!(
            "model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n      api_base: http://127.0.0.1:{upstream}/v1\n      api_key: sk-none\ngeneral_settings:\n  master_key: sk-bench\n"
        );
        std::fs::write(&config, text).unwrap();
        let port = free_port();
        let child = Command::new(binary)
            .arg("--config")
            .arg(&config)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--telemetry", "False"])
            .env("LITELLM_LOG", "ERROR")
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("litellm starts");
        for _ in 0..240 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let alive = reqwest::get(format!("http://127.0.0.1:{port}/health/liveliness")).await;
            if alive.is_ok_and(|answer| answer.status().is_success()) {
                break;
            }
        }
        let way = Way { port, path: "/v1/chat/completions", model: "m" };
        Self { name: "LiteLLM proxy", way, keys: vec!["sk-bench".into()], database_of: None, child }
    }
}

/// So many more providers like the one that is there, each with a credential.
pub(crate) async fn more_providers(data: &Path, count: i32) {
    let pool = sqlx::PgPool::connect(&database(data)).await.unwrap();
    for statement in [
        "INSERT INTO app.providers SELECT (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(), 'slug', 'p' || n))).* \
         FROM app.providers p, generate_series(1, $1) n WHERE p.slug = 'p'",
        "INSERT INTO app.credentials SELECT (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(), \
         'provider_slug', 'p' || n, 'name', 'P' || n))).* FROM app.credentials c, generate_series(1, $1) n WHERE c.provider_slug = 'p'",
    ] {
        sqlx::query(statement).bind(count).execute(&pool).await.unwrap();
    }
}

/// An installation as its administrator sees it.
pub(crate) struct Site {
    http: reqwest::Client,
    base: String,
    /// The organization.
    pub(crate) org: String,
}

impl Site {
    fn new(port: u16) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, base: format!("http://localhost:{port}"), org: String::new() }
    }

    async fn people(&mut self, upstream: u16, people: usize) -> Vec<String> {
        let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
        let (answer, cookie) = self.send(reqwest::Method::POST, "/api/app/setup", "", &form).await;
        self.org = answer["organization"]["id"].as_str().unwrap().to_owned();
        let at = |path: &str| format!("/api/app/{path}?orgId={}", self.org);
        let model = json!({ "id": "m", "contextWindow": 128_000, "maxOutputTokens": 4_096, "purposes": ["chat"],
                            "pricing": { "input": 1.0, "output": 2.0 } });
        let provider = json!({ "name": "p", "displayName": "P", "apiFormat": "openai", "models": [model],
                               "baseUrl": format!("http://127.0.0.1:{upstream}/v1"), "apiKey": "sk-0123456789ab" });
        self.send(reqwest::Method::POST, &at("providers"), &cookie, &provider).await;
        let access = json!({ "value": { "modelApi": { "enabled": true } } });
        self.send(reqwest::Method::PUT, &at("governance/policies/model_access"), &cookie, &access).await;
        let rules = json!([{ "scope": "org", "period": "monthly", "maxTokens": 1_000_000_000_000_u64 },
                           { "scope": "default", "period": "daily", "maxCostCents": 1_000_000_000 }]);
        let budgets = json!({ "value": { "rules": rules } });
        self.send(reqwest::Method::PUT, &at("governance/policies/budgets"), &cookie, &budgets).await;
        let new_key = json!({ "name": "bench", "expiresInDays": 1 });
        let key = async |cookie: &str| {
            let (made, _) = self.send(reqwest::Method::POST, &at("api-keys"), cookie, &new_key).await;
            made["key"].as_str().unwrap().to_owned()
        };
        let mut keys = vec![key(&cookie).await];
        for number in 1..people {
            let email = format!("p{number}@acme.test");
            let member = json!({ "email": email, "name": "P", "role": "developer", "password": PASSWORD });
            self.send(reqwest::Method::POST, &at("members"), &cookie, &member).await;
            let form = json!({ "email": email, "password": PASSWORD });
            let (_, own) = self.send(reqwest::Method::POST, "/api/auth/sign-in/email", "", &form).await;
            keys.push(key(&own).await);
        }
        keys
    }

    /// The answer and the cookie that it sets.
    async fn send(&self, method: reqwest::Method, path: &str, cookie: &str, body: &Value) -> (Value, String) {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header("origin", &self.base)
            .header("content-type", "application/json")
            .header("cookie", cookie)
            .body(body.to_string());
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let cookie = answer.headers().get("set-cookie").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        (serde_json::from_str(&text).unwrap_or_default(), cookie)
    }
}
