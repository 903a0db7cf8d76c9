//! The vendors' own client libraries, and a checker of SCIM servers, against the real program and scripted providers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tale_testkit::upstream::{FakeUpstream, ReceivedRequest, Reply, Step};

use crate::roles::{Browser, Deployment, Process};

/// What the scripted providers answer, by what the person says last.
fn reply(overloaded: &AtomicUsize, request: &ReceivedRequest) -> Reply {
    let call = |id: &str, city: &str| Step::ToolCall {
        id: id.to_owned(),
        name: "weather".to_owned(),
        arguments: json!({ "city": city }).to_string(),
        pieces: 99,
    };
    let usage = Step::Usage { input: 20, output: 10 };
    if request.ends_with_tool_results() {
        let whole = request.body["messages"].to_string();
        let heard = whole.contains("Zürich") && whole.contains("Genève") && whole.matches("7 degrees").count() == 2;
        return Reply::text(if heard { "7 degrees in Zürich and 7 degrees in Genève" } else { "I heard nothing" });
    }
    match request.last_user_text().as_str() {
        "tools" => Reply::steps(vec![call("call_a", "Zürich"), call("call_b", "Genève"), usage]).in_pieces_of(3),
        "image" => {
            let whole = request.body.to_string();
            Reply::text(if whole.contains("iVBORw0KGgo") { "I see an image" } else { "I see nothing" })
        }
        "overloaded once" => match overloaded.fetch_add(1, Ordering::SeqCst) % 2 {
            0 => Reply::refusal(503, "overloaded", "Overloaded").header("retry-after", "0"),
            _ => Reply::text("At last"),
        },
        "refuse" => Reply::refusal(400, "context_length_exceeded", "The prompt is too long."),
        "break off" => Reply::steps(vec![
            Step::Text("a".into()),
            Step::Error { code: "overloaded_error".into(), message: "Overloaded".into() },
        ]),
        _ => {
            let words = ["Grüße ", "🦀 ", "to you"].map(|word| Step::Text(word.to_owned()));
            Reply::steps(words.into_iter().chain([usage]).collect()).in_pieces_of(5)
        }
    }
}

/// Two providers, one for each wire, and the endpoints on.
async fn with_models(ada: &Browser, api: &Process, upstream: &FakeUpstream) {
    let overloaded = AtomicUsize::new(0);
    upstream.respond_with(move |request| Some(reply(&overloaded, request)));
    for (name, format, base) in
        [("open", "openai", upstream.openai_base()), ("claude", "anthropic", upstream.anthropic_base())]
    {
        let able = json!({ "tools": true, "vision": true, "reasoning": false });
        let model = json!({ "id": "able", "contextWindow": 32_000, "maxOutputTokens": 1_000, "purposes": ["chat"], "capabilities": able });
        let provider = json!({ "name": name, "displayName": name, "apiFormat": format, "baseUrl": base, "apiKey": "sk-0123456789", "models": [model] });
        ada.post(api, "/api/app/providers", provider).await;
    }
    let value = json!({ "value": { "modelApi": { "enabled": true } } });
    ada.put(api, "/api/app/governance/policies/model_access", value).await;
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache")
}

/// Runs a script of `tests/sdks` that ends with `ok`.
async fn run(program: PathBuf, script: &str, directory: PathBuf, api: &Process, key: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks").join(script);
    let (address, key) = (api.address(), key.to_owned());
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(program);
        command.arg(script).current_dir(directory).env("TALE", address).env("KEY", key);
        command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap()
    });
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.trim().ends_with("ok"),
        "{said}{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        api.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vendors_libraries_work_with_address_key_and_model_changed_only() {
    let libraries = cache().join("sdks");
    if !libraries.exists() {
        eprintln!("skipped: scripts/setup test has not fetched the client libraries");
        return;
    }
    let deployment = Deployment::new().await;
    let api = deployment.backend("api", "api", &[]);
    let ada = Browser::owner(&api).await;
    with_models(&ada, &api, &deployment.upstream).await;
    let python = libraries.join("python/bin/python");
    run(python.clone(), "openai_python.py", libraries.clone(), &api, &ada.key).await;
    run(python, "anthropic_python.py", libraries.clone(), &api, &ada.key).await;
    let node = cache().join("node/24.19.0/bin/node");
    run(node, "openai_node.mjs", libraries, &api, &ada.key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_of_scim_servers_finds_nothing() {
    let libraries = cache().join("sdks");
    let (python, site) = (libraries.join("python/bin/python"), libraries.join("python/lib"));
    let checker = std::fs::read_dir(site).ok().into_iter().flatten().flatten();
    if !checker.map(|version| version.path().join("site-packages/scim2_tester")).any(|folder| folder.exists()) {
        eprintln!("skipped: scripts/setup test has not fetched scim2-tester, which needs Python 3.11");
        return;
    }
    let deployment = Deployment::new().await;
    let api = deployment.backend("api", "api", &[]);
    let ada = Browser::owner(&api).await;
    ada.put(&api, "/api/app/provisioning", json!({ "enabled": true })).await;
    let token = ada.post(&api, "/api/app/provisioning/token", json!({})).await["token"].take();
    run(python, "scim_tester.py", libraries, &api, token.as_str().unwrap()).await;
}
