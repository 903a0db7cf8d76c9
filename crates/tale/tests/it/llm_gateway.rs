//! The model gateway as a process of its own: keys, caps, the administration, what survives a kill.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tale_testkit::upstream::{Reply, Step};
use uuid::Uuid;

use crate::roles::{Browser, Deployment, PATIENCE, PAUSE, Process, client, healthcheck};

const PASSWORD: &str = "admin-password-of-the-gateway";

impl Deployment {
    /// A gateway, which gets neither the site's secrets nor the other database.
    pub(crate) fn gateway(&self, name: &str, more: &[(&str, String)]) -> Process {
        let mut pairs = vec![
            ("ROLE", "llm-gateway".to_owned()),
            ("DATABASE_URL", self.db.app_url()),
            ("ENCRYPTION_SECRET_HEX", "ab".repeat(32)),
            ("SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD", PASSWORD.to_owned()),
            ("TALE_ALLOW_PRIVATE_PROVIDER_HOSTS", "1".to_owned()),
        ];
        pairs.extend(more.iter().cloned());
        Process::start(&self.folder.path().join(format!("{name}.log")), &pairs)
    }
}

/// An organization with a model that costs a cent per thousand tokens of its answer.
struct Kit {
    deployment: Deployment,
    backend: Process,
    ada: Browser,
}

impl Kit {
    async fn new() -> Self {
        let deployment = Deployment::new().await;
        let backend = deployment.backend("backend-api", "backend", &[]);
        let ada = Browser::owner(&backend).await;
        let provider = json!({
            "name": "local", "displayName": "Local", "apiFormat": "openai", "baseUrl": deployment.upstream.openai_base(),
            "apiKey": "sk-local-0123456789",
            "models": [{
                "id": "fake-chat", "contextWindow": 32000, "maxOutputTokens": 1000, "purposes": ["chat"],
                "capabilities": { "tools": true, "vision": false, "reasoning": false },
                "pricing": { "input": 0, "output": 10 }
            }],
        });
        ada.post(&backend, "/api/app/providers", provider).await;
        Self { deployment, backend, ada }
    }

    fn keys(&self, id: Uuid) -> String {
        format!("organizations/{}/keys/{id}", self.ada.org)
    }

    async fn mint(&self, gateway: &Process, id: Uuid, cents: u64) -> String {
        let (status, minted) = admin(gateway, Method::PUT, &self.keys(id), Some(order(cents))).await;
        assert_eq!(status, 200, "{minted} {}", gateway.log());
        minted["key"].as_str().unwrap().to_owned()
    }

    /// Requests, cost in micro-US-dollars and outcomes of what is booked, and what is still held of any limit.
    async fn booked(&self) -> (i64, i64, Vec<String>, i64) {
        let (requests, cost, outcomes): (i64, i64, Vec<String>) = sqlx::query_as(
            "SELECT coalesce(sum(requests), 0)::bigint, coalesce(sum(cost_micro_usd), 0)::bigint, \
             coalesce(array_agg(DISTINCT outcome), '{}') FROM app.usage_bookings WHERE source = 'coder'",
        )
        .fetch_one(&self.deployment.db.app)
        .await
        .unwrap();
        let held = sqlx::query_scalar("SELECT coalesce(sum(held_cost_micro_usd), 0)::bigint FROM app.usage_counters")
            .fetch_one(&self.deployment.db.app)
            .await
            .unwrap();
        (requests, cost, outcomes, held)
    }

    /// Calls that are admitted and not booked.
    async fn held(&self) -> i64 {
        let held = "SELECT coalesce(sum(calls), 0)::bigint FROM app.usage_allowances";
        sqlx::query_scalar(held).fetch_one(&self.deployment.db.app).await.unwrap()
    }

    async fn until_booked(&self, calls: i64) {
        let booked = async {
            while self.booked().await.0 != calls {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, booked).await.expect("the calls are booked");
    }
}

fn order(cents: u64) -> Value {
    json!({ "models": [{ "provider": "local", "model": "fake-chat" }], "capCents": cents, "agent": "coder" })
}

pub(crate) async fn admin(gateway: &Process, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    admin_at(&gateway.address(), method, path, body).await
}

async fn admin_at(base: &str, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let request = client().request(method, format!("{base}/api/{path}")).basic_auth("admin", Some(PASSWORD));
    let request = if let Some(body) = body { request.json(&body) } else { request };
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

fn chat(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "Go" }] })
}

async fn ask(gateway: &Process, key: &str, model: &str) -> (StatusCode, Value) {
    let url = format!("{}/openai/v1/chat/completions", gateway.address());
    let answer = client().post(url).bearer_auth(key).json(&chat(model)).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_at_once_at_two_replicas_stay_within_the_cap_of_their_key() {
    let kit = Kit::new().await;
    let (one, two) = (kit.deployment.gateway("one", &[]), kit.deployment.gateway("two", &[]));
    let id = Uuid::now_v7();
    let key = kit.mint(&one, id, 10).await;
    // Whoever asks again, wherever, gets the same key; another order under its id is refused.
    assert_eq!(kit.mint(&two, id, 10).await, key);
    assert_eq!(admin(&two, Method::PUT, &kit.keys(id), Some(order(11))).await.0, 409);

    // Each can cost a cent. While they run, ten fit.
    kit.deployment.upstream.otherwise(Reply::steps(vec![Step::Text("Hm. ".to_owned()), Step::Hang]));
    let stream = |at: usize| {
        let gateway = if at.is_multiple_of(2) { &one } else { &two };
        let url = format!("{}/openai/chat/completions", gateway.address());
        let body =
            json!({ "model": "local/fake-chat", "stream": true, "messages": [{ "role": "user", "content": "Go" }] });
        client().post(url).header("x-api-key", &key).json(&body).send()
    };
    let answers: Vec<_> = join_all((0..100).map(stream)).await.into_iter().map(Result::unwrap).collect();
    let (running, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status() == 200);
    assert_eq!((running.len(), refused.len()), (10, 90));
    for answer in refused {
        assert_eq!((answer.status().as_u16(), answer.headers()["x-should-retry"].as_bytes()), (429, &b"false"[..]));
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["code"], "BUDGET_EXCEEDED", "{body}");
    }
    let (_, state) = admin(&two, Method::GET, &kit.keys(id), None).await;
    assert_eq!((&state["heldCents"], &state["running"]), (&json!(10), &json!(10)), "{state}");

    // Whoever hangs up pays for what had come, and makes room.
    drop(running);
    kit.until_booked(10).await;
    kit.deployment.upstream.otherwise(Reply::text("Hello."));
    assert_eq!(ask(&two, &key, "local/fake-chat").await.0, 200);
    kit.until_booked(11).await;
    let (_, cost, _, held) = kit.booked().await;
    let (status, ended) = admin(&one, Method::DELETE, &kit.keys(id), None).await;
    assert_eq!((status.as_u16(), &ended["running"]), (200, &json!(0)));
    assert_eq!(ended["spentCents"].as_f64().unwrap(), cost as f64 / 10_000.0);
    assert_eq!(held, 100_000 - cost, "what is not used stays held while the key lives");
    assert_eq!(kit.booked().await.3, 0, "and is given back when it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_its_models_and_nothing_else() {
    let kit = Kit::new().await;
    let admin_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let one = kit.deployment.gateway("one", &[]);
    let moved = kit.deployment.gateway("moved", &[("LLM_GATEWAY_ADMIN_PORT", admin_port.to_string())]);
    let (id, stranger) = (Uuid::now_v7(), Uuid::now_v7());
    let key = kit.mint(&one, id, 100).await;

    for (model, status, code) in [
        ("local/fake-chat", 200, Value::Null),
        ("local/other", 403, json!("MODEL_API_MODEL_FORBIDDEN")),
        ("openai/gpt-5", 403, json!("MODEL_API_MODEL_FORBIDDEN")),
    ] {
        let (got, body) = ask(&one, &key, model).await;
        assert_eq!((got.as_u16(), &body["error"]["code"]), (status, &code), "{model}");
    }
    // A model, an organization or a person that is not there makes no key.
    for (path, change, status) in [
        (kit.keys(stranger), json!({ "models": [{ "provider": "local", "model": "other" }] }), 404),
        (
            kit.keys(stranger),
            json!({ "models": [{ "provider": "local", "model": "fake-chat", "credential": Uuid::now_v7() }] }),
            404,
        ),
        (kit.keys(stranger), json!({ "person": Uuid::now_v7() }), 404),
        (kit.keys(stranger), json!({ "capCents": 0 }), 400),
        (kit.keys(stranger), json!({ "unknown": 1 }), 400),
        (format!("organizations/{}/keys/{stranger}", Uuid::now_v7()), json!({}), 404),
    ] {
        let mut order = order(1);
        order.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (got, body) = admin(&one, Method::PUT, &path, Some(order)).await;
        assert_eq!(got.as_u16(), status, "{change}: {body}");
    }
    let elsewhere = format!("organizations/{}/keys/{id}", Uuid::now_v7());
    assert_eq!(admin(&one, Method::GET, &elsewhere, None).await.0, 404);
    assert_eq!(admin(&one, Method::DELETE, &elsewhere, None).await.0, 404);

    // The administration is closed to keys, and on the first port only while it has none of its own.
    let get = |base: String, path: &str| client().get(format!("{base}{path}"));
    let state = format!("/api/{}", kit.keys(id));
    for request in [
        get(one.address(), &state),
        get(one.address(), &state).bearer_auth(&key),
        get(one.address(), &state).basic_auth("admin", Some(&key)),
        get(one.address(), "/api/unknown").header("x-api-key", &key),
        get(one.address(), "/openai/v1/models"),
        get(one.address(), "/openai/v1/models").basic_auth("admin", Some(PASSWORD)),
        get(one.address(), "/openai/v1/models").bearer_auth(kit.ada.key.as_str()),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401, "{}", answer.url());
    }
    let at_admin = format!("http://127.0.0.1:{admin_port}");
    assert_eq!(admin(&moved, Method::GET, &kit.keys(id), None).await.0, 404);
    assert_eq!(admin_at(&at_admin, Method::GET, &kit.keys(id), None).await.0, 200);
    assert_eq!(get(at_admin, "/openai/v1/models").bearer_auth(&key).send().await.unwrap().status(), 404);
    let tricks = ["/openai/../api/settings", "/openai/%2e%2e/api/settings", "//api/settings", "/openai/v1/embeddings"];
    for path in tricks {
        let mut url = url::Url::parse(&moved.address()).unwrap();
        url.set_path(path);
        assert_eq!(client().get(url).basic_auth("admin", Some(PASSWORD)).send().await.unwrap().status(), 404, "{path}");
    }

    // Revoking acts on the next call of every replica, also where the key is known.
    let models = get(moved.address(), "/openai/v1/models").header("x-goog-api-key", &key).send().await.unwrap();
    assert_eq!(models.json::<Value>().await.unwrap()["data"][0]["id"], "local/fake-chat");
    assert_eq!(ask(&moved, &key, "local/fake-chat").await.0, 200);
    assert_eq!(admin(&one, Method::DELETE, &kit.keys(id), None).await.0, 200);
    for gateway in [&one, &moved] {
        let (status, body) = ask(gateway, &key, "local/fake-chat").await;
        assert_eq!((status.as_u16(), &body["error"]["type"]), (401, &json!("authentication_error")), "{body}");
    }
    let logs = [&one, &moved].map(Process::log).concat();
    assert!(!logs.contains(&key) && !logs.contains(PASSWORD) && logs.contains("gateway key minted"), "{logs}");
    assert_eq!(healthcheck(&["llm-gateway", "--port", &one.port.to_string()]), Some(0));
    drop(kit.backend);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_gateway_was_relaying_is_booked_once_by_its_floor() {
    let kit = Kit::new().await;
    let killed = kit.deployment.gateway("killed", &[]);
    let id = Uuid::now_v7();
    let key = kit.mint(&killed, id, 10).await;
    kit.deployment.upstream.otherwise(Reply::steps(vec![Step::Text("So far. ".to_owned()), Step::Hang]));
    let body = json!({ "model": "local/fake-chat", "max_tokens": 5, "stream": true, "messages": [{ "role": "user", "content": "Go" }] });
    let url = format!("{}/anthropic/v1/messages", killed.address());
    let mut answer = client().post(url).header("x-api-key", &key).json(&body).send().await.unwrap();
    assert!(answer.chunk().await.unwrap().is_some());
    killed.kill();
    // As if five minutes had passed.
    let aged = "UPDATE app.usage_holds SET kept_at = kept_at - interval '10 minutes'";
    assert_eq!(sqlx::query(aged).execute(&kit.deployment.db.app).await.unwrap().rows_affected(), 1);
    let next = kit.deployment.gateway("next", &[]);
    kit.until_booked(1).await;
    assert_eq!(kit.booked().await.2, ["abandoned"]);
    let (_, state) = admin(&next, Method::DELETE, &kit.keys(id), None).await;
    assert_eq!((&state["running"], &state["heldCents"]), (&json!(0), &json!(0)), "{state}");
    assert_eq!((kit.booked().await.0, kit.booked().await.3), (1, 0), "nothing stays held");
    drop(kit.backend);
}

/// Waits until a process has logged `words`, `times` times.
async fn logged(process: &Process, words: &str, times: usize) {
    let wait = async {
        while process.log().matches(words).count() < times {
            tokio::time::sleep(PAUSE).await;
        }
    };
    let heard = tokio::time::timeout(PATIENCE, wait).await;
    heard.unwrap_or_else(|_| panic!("it never logs {words}:\n{}", process.log()));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_backend_reach_running_replicas_and_old_rows_of_the_log_go_at_once() {
    let kit = Kit::new().await;
    let (one, two) = (kit.deployment.gateway("one", &[]), kit.deployment.gateway("two", &[]));
    logged(&two, "provider concurrency set to 512 (built-in), 64 (custom)", 1).await;
    let key = kit.mint(&one, Uuid::now_v7(), 100).await;

    // A call leaves its row; a call of last week is still there.
    assert_eq!(ask(&one, &key, "local/fake-chat").await.0, 200);
    let path = format!("log?organization={}", kit.ada.org);
    let page = async |gateway: &Process| admin(gateway, Method::GET, &path, None).await.1["calls"].clone();
    let first = tokio::time::timeout(PATIENCE, async {
        loop {
            match page(&two).await.get(0) {
                Some(row) => return row.clone(),
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    });
    let first = first.await.expect("the call is in the log");
    assert_eq!(
        (&first["model"], &first["status"], &first["provider"]),
        (&json!("fake-chat"), &json!(200), &json!("local"))
    );
    assert!(first["firstByteMs"].is_number() && !first.to_string().contains("Go"), "{first}");
    let aged = "UPDATE app.gateway_log SET at = at - interval '2 days'";
    assert_eq!(sqlx::query(aged).execute(&kit.deployment.db.app).await.unwrap().rows_affected(), 1);
    assert_eq!(page(&one).await.as_array().map(Vec::len), Some(1));

    // The backend hands its settings on, and every replica goes by them: two calls at once, the rest wait.
    let address = one.address();
    let set = [
        ("SANDBOX_LLM_GATEWAY_URL", address.as_str()),
        ("SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD", PASSWORD),
        ("SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY", "2"),
        ("SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS", "1"),
    ];
    let backend = kit.deployment.backend("backend-api", "second", &set);
    logged(&backend, "[llm-gateway] provider worker resize finished", 1).await;
    logged(&two, "provider concurrency set to 512 (built-in), 2 (custom)", 1).await;
    let (_, settings) = admin(&two, Method::GET, "settings", None).await;
    assert_eq!((&settings["customProviderConcurrency"], &settings["logRetentionDays"]), (&json!(2), &json!(1)));
    let gone = async {
        while page(&two).await.as_array().is_some_and(|rows| !rows.is_empty()) {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the old row is deleted");

    kit.deployment.upstream.otherwise(Reply::steps(vec![Step::Text("Hm. ".to_owned()), Step::Hang]));
    let ask = || {
        let body =
            json!({ "model": "local/fake-chat", "stream": true, "messages": [{ "role": "user", "content": "Go" }] });
        client().post(format!("{}/openai/v1/chat/completions", two.address())).bearer_auth(&key).json(&body).send()
    };
    let (first, second) = (ask().await.unwrap(), ask().await.unwrap());
    let third = tokio::spawn(ask());
    let waiting = async {
        while kit.held().await < 3 {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the third call is admitted");
    assert_eq!(kit.deployment.upstream.open_answers(), 2, "and waits for a place");
    drop(first);
    assert_eq!(third.await.unwrap().unwrap().status(), 200);
    drop(second);

    // What nobody could mean is refused and changes nothing.
    for wrong in [json!({ "providerConcurrency": 0 }), json!({ "providerConcurrency": 5001 }), json!({ "more": 1 })] {
        let mut all = settings.clone();
        all.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        assert_eq!(admin(&one, Method::PUT, "settings", Some(all)).await.0, 400, "{wrong}");
    }
    assert_eq!(admin(&one, Method::DELETE, "providers/local", None).await.0, 200);
    drop(kit.backend);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_gateway_lets_answers_finish_and_takes_no_more() {
    let kit = Kit::new().await;
    let mut gateway = kit.deployment.gateway("one", &[]);
    let key = kit.mint(&gateway, Uuid::now_v7(), 100).await;
    kit.deployment.upstream.otherwise(Reply::steps(vec![Step::Text("one ".to_owned()); 40]).per_second(10));
    let body = json!({ "model": "local/fake-chat", "stream": true, "messages": [{ "role": "user", "content": "Go" }] });
    let url = format!("{}/openai/v1/chat/completions", gateway.address());
    let mut answer = client().post(url).bearer_auth(&key).json(&body).send().await.unwrap();
    let mut heard = String::from_utf8_lossy(&answer.chunk().await.unwrap().unwrap()).into_owned();
    gateway.signal();
    let draining = async {
        while gateway.status("/ready").await != Some(StatusCode::SERVICE_UNAVAILABLE) {
            tokio::time::sleep(PAUSE).await;
        }
        ask(&gateway, &key, "local/fake-chat").await
    };
    let (status, body) = tokio::time::timeout(PATIENCE, draining).await.expect("it says that it stops");
    assert_eq!((status.as_u16(), &body["error"]["code"]), (503, &json!("DRAINING")));
    while let Some(chunk) = answer.chunk().await.unwrap() {
        heard.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(heard.ends_with("data: [DONE]\n\n"), "{heard}");
    assert_eq!(gateway.code().await, Some(0), "{}", gateway.log());
    assert_eq!(kit.booked().await.0, 1, "and books them before it ends");
    drop(kit.backend);
}
