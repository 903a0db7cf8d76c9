//! Coding agents as they come from npm, each for one turn with a tool call, through the model gateway and
//! scripted providers. They find nothing else on the network, and nothing of the person's on the disk.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tale_testkit::upstream::{ReceivedRequest, Reply, Step};
use uuid::Uuid;

use crate::llm_gateway::admin;
use crate::roles::{Browser, Deployment, Process};

/// What the model has the agent run, and what that says.
const COMMAND: &str = "printf 'made-%s' $((40 + 2)) > made.txt && cat made.txt";
const MADE: &str = "made-42";
/// The most that a turn may take.
const TURN: Duration = Duration::from_secs(180);

/// The shells of the three agents, and the name of the command in each. Codex gives models that it knows one
/// tool with free text in a namespace, in the middle of the conversation, and there it runs programs.
const SHELLS: [(&str, &str); 4] =
    [("exec_command", "cmd"), ("functions__exec", "input"), ("Bash", "command"), ("bash", "command")];

/// The model: it runs the command, and then tells what it heard.
fn reply(request: &ReceivedRequest) -> Reply {
    let usage = Step::Usage { input: 2_000, output: 50 };
    if request.ends_with_tool_results() {
        let heard = request.body.to_string().contains(MADE);
        let words = if heard { "The command printed made-42." } else { "I heard nothing." };
        return Reply::steps(vec![Step::Text(words.to_owned()), usage]).in_pieces_of(7);
    }
    let tools = request.tool_names();
    let Some((shell, argument)) = SHELLS.iter().find(|(shell, _)| tools.iter().any(|name| name == shell)) else {
        // Somebody asks for a title.
        return Reply::steps(vec![Step::Text("A title".to_owned()), usage]);
    };
    let command = match *argument {
        "input" => format!("text(JSON.stringify(await tools.exec_command({{ cmd: {} }})))", json!(COMMAND)),
        _ => COMMAND.to_owned(),
    };
    let call = Step::ToolCall {
        id: "call_1".to_owned(),
        name: (*shell).to_owned(),
        arguments: json!({ *argument: command, "description": "Makes a file" }).to_string(),
        pieces: 99,
    };
    Reply::steps(vec![Step::Reasoning("I should make it.".to_owned()), call, usage]).in_pieces_of(7)
}

/// An agent's program, when it is there.
fn program(within: &str) -> Option<PathBuf> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => ("x64", "x86_64"),
        _ => ("arm64", "aarch64"),
    };
    let within = within.replace("{cpu}", machine.0).replace("{machine}", machine.1);
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/agents/node_modules");
    Some(modules.join(within)).filter(|path| path.exists())
}

/// A home and a folder of work for one turn.
struct Desk {
    folder: tempfile::TempDir,
    gateway: String,
    key: String,
}

impl Desk {
    fn new(gateway: &Process, key: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("tale-agent").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, gateway: gateway.address(), key: key.to_owned() }
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs the agent until it ends by itself and checks what it did.
    async fn turn(self, what: &str, program: PathBuf, arguments: &[&str], variables: &[(&str, &str)]) {
        let home = self.folder.path().join("home");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("TALE_GATEWAY_KEY", &self.key)
            // Whatever is not the gateway meets a closed door.
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("HTTP_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        let mut command = tokio::process::Command::from(command);
        let output = tokio::time::timeout(TURN, command.kill_on_drop(true).output()).await;
        let output = output.unwrap_or_else(|_| panic!("{what}: the turn does not end")).unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what}: {said}\n{complained}");
        assert!(said.contains("The command printed made-42."), "{what}: {said}\n{complained}");
        let made = std::fs::read_to_string(self.folder.path().join("work/made.txt"));
        assert_eq!(made.ok().as_deref(), Some(MADE), "{what}: {said}\n{complained}");
    }
}

async fn codex(desk: Desk, program: PathBuf, model: &str) {
    let config = format!(
        "model = \"{model}\"\nmodel_provider = \"tale\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n\
         [model_providers.tale]\nname = \"Tale\"\nbase_url = \"{}/openai/v1\"\nenv_key = \"TALE_GATEWAY_KEY\"\nwire_api = \"responses\"\n",
        desk.gateway
    );
    desk.write("home/.codex/config.toml", &config);
    let arguments =
        ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Make the file made.txt"];
    desk.turn(&format!("codex with {model}"), program, &arguments, &[]).await;
}

async fn claude(desk: Desk, program: PathBuf, model: &str) {
    let (base, key) = (format!("{}/anthropic", desk.gateway), desk.key.clone());
    let variables = [
        ("ANTHROPIC_BASE_URL", base.as_str()),
        ("ANTHROPIC_AUTH_TOKEN", &key),
        ("ANTHROPIC_MODEL", model),
        ("ANTHROPIC_SMALL_FAST_MODEL", model),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    let arguments = ["-p", "Make the file made.txt", "--allowedTools", "Bash"];
    desk.turn(&format!("claude with {model}"), program, &arguments, &variables).await;
}

async fn opencode(desk: Desk, program: PathBuf, model: &str) {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Tale",
        "options": { "baseURL": format!("{}/openai/v1", desk.gateway), "apiKey": "{env:TALE_GATEWAY_KEY}" },
        "models": { model: { "name": "able" } },
    });
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": format!("tale/{model}"), "provider": { "tale": provider },
    });
    desk.write("work/opencode.json", &config.to_string());
    let variables = [
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ];
    desk.turn(&format!("opencode with {model}"), program, &["run", "Make the file made.txt"], &variables).await;
}

/// A provider for each wire, which answers as `reply` says.
pub(crate) async fn with_models(
    ada: &Browser,
    api: &Process,
    deployment: &Deployment,
    reply: fn(&ReceivedRequest) -> Option<Reply>,
) {
    let upstream = &deployment.upstream;
    upstream.respond_with(reply);
    for (name, format, base, tool_api) in [
        ("open", "openai", upstream.openai_base(), None),
        ("items", "openai", upstream.openai_base(), Some("responses")),
        ("claude", "anthropic", upstream.anthropic_base(), None),
    ] {
        let able = json!({ "tools": true, "vision": true, "reasoning": true });
        let mut model = json!({
            "id": "able", "contextWindow": 200_000, "maxOutputTokens": 8_000, "purposes": ["chat"], "capabilities": able,
            "pricing": { "input": 1, "output": 10 },
        });
        if let Some(tool_api) = tool_api {
            model["toolApi"] = json!(tool_api);
        }
        let mut known = model.clone();
        known["id"] = json!("gpt-6-sol");
        let provider = json!({
            "name": name, "displayName": name, "apiFormat": format, "baseUrl": base, "apiKey": "sk-0123456789",
            "models": [model, known],
        });
        ada.post(api, "/api/app/providers", provider).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn coding_agents_work_through_the_gateway_with_a_key_of_their_turn() {
    let programs = (
        program("@openai/codex-linux-{cpu}/vendor/{machine}-unknown-linux-musl/bin/codex"),
        program("@anthropic-ai/claude-code-linux-{cpu}/claude"),
        program("opencode-linux-{cpu}/bin/opencode"),
    );
    let (Some(codex_program), Some(claude_program), Some(opencode_program)) = programs else {
        eprintln!("skipped: scripts/setup test has not fetched the coding agents");
        return;
    };
    let deployment = Deployment::new().await;
    let api = deployment.backend("api", "api", &[]);
    let ada = Browser::owner(&api).await;
    with_models(&ada, &api, &deployment, |request| Some(reply(request))).await;
    let gateway = deployment.gateway("gateway", &[]);
    let mut models: Vec<_> =
        ["open", "items", "claude"].map(|provider| json!({ "provider": provider, "model": "able" })).into();
    models.push(json!({ "provider": "open", "model": "gpt-6-sol" }));
    let path = format!("organizations/{}/keys/{}", ada.org, Uuid::now_v7());
    let order = json!({ "models": models, "capCents": 10_000, "agent": "coder" });
    let (status, minted) = admin(&gateway, Method::PUT, &path, Some(order)).await;
    assert_eq!(status, 200, "{minted} {}", gateway.log());
    let desk = || Desk::new(&gateway, minted["key"].as_str().unwrap());

    for model in ["open/able", "items/able", "claude/able", "open/gpt-6-sol"] {
        codex(desk(), codex_program.clone(), model).await;
    }
    for model in ["open/able", "claude/able"] {
        claude(desk(), claude_program.clone(), model).await;
    }
    opencode(desk(), opencode_program, "open/able").await;

    // Each provider was asked in its own words, with its own key.
    let asked = deployment.upstream.chat_requests();
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        assert!(asked.iter().filter(|request| request.path == path).count() >= 2, "{path}");
    }
    assert!(asked.iter().all(|request| request.key.as_deref().is_some_and(|key| key.ends_with("sk-0123456789"))));
}
