//! The whole way on a real engine: the real spawner, a container, the daemon inside.
//!
//! `scripts/docker-engine` gives the engine and `scripts/sandbox-images` the image. Where one of them cannot be had the
//! test says so and passes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use tale_core::{Actor, Code, SystemClock};
use tale_sandbox::api::ApiConfig;
use tale_sandbox::docker::{CacheNames, DockerConfig};
use tale_sandbox::host::{Floor, Floors};
use tale_sandbox::profile::Limits;
use tale_sandbox::role::{RoleConfig, SpawnerRole};
use tale_sandbox_wire::names::Instance;
use tale_sandbox_wire::sign::Key;
use tale_workshop::runs::{Language, RunState};
use tokio_util::sync::CancellationToken;

use crate::spawner::TOKEN;
use crate::world::{Followed, World, start, start_in};

const IMAGE: &str = "tale-sandbox-runtime:latest";

/// An engine, and a name that nobody else uses on it.
struct Engine {
    host: String,
    docker: PathBuf,
    instance: String,
    root: tempfile::TempDir,
}

impl Engine {
    fn find() -> Option<Self> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let started = Command::new(workspace.join("scripts/docker-engine")).arg("start").output().unwrap();
        if !started.status.success() {
            eprintln!("skipped: no Docker engine. {}", String::from_utf8_lossy(&started.stderr).trim());
            return None;
        }
        let env = std::fs::read_to_string(workspace.join("target/docker-engine/env")).unwrap();
        let field = |name: &str| env.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let path = field("PATH=").unwrap_or_else(|| "/usr/bin:/usr/local/bin".to_owned());
        let docker = path.split(':').map(|folder| Path::new(folder).join("docker")).find(|file| file.exists()).unwrap();
        let engine = Self {
            host: field("DOCKER_HOST=").unwrap(),
            docker,
            instance: format!("w{}", std::process::id()),
            root: tempfile::tempdir().unwrap(),
        };
        if engine.said(&["image", "inspect", "--format", "{{.Id}}", IMAGE]).is_empty() {
            eprintln!("skipped: the engine has no {IMAGE}; `scripts/sandbox-images runtime` builds it");
            return None;
        }
        Some(engine)
    }

    fn said(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.docker).env("DOCKER_HOST", &self.host).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A spawner on it.
    async fn spawner(&self) -> std::net::SocketAddr {
        let names = |kind: &str| format!("{}-{kind}", self.instance);
        let config = RoleConfig {
            docker_host: self.host.clone(),
            image: IMAGE.to_owned(),
            pulls_image: false,
            session_root: self.root.path().join("sessions"),
            docker_data: None,
            floors: Floors { floor: Floor::Fixed(0), critical: Floor::Fixed(0) },
            capacity: Some(4),
            previous_key: None,
            memory_reserve: None,
            pressure_limit: None,
            max_lifetime: Duration::from_secs(86_400),
            max_idle: Duration::from_secs(1_800),
            released_idle: Duration::from_secs(300),
            create_timeout: Duration::from_secs(60),
            max_linger: Duration::from_secs(1_800),
            docker: DockerConfig {
                instance: Instance::new(&self.instance).unwrap(),
                runtime: None,
                network: self.instance.clone(),
                proxy: "http://sandbox-egress:3128".parse().unwrap(),
                redirects: true,
                direct_hosts: Vec::new(),
                agent_limits: Limits { memory: 256 << 20, pids: 128, ..Limits::of_agent() },
                stall: Duration::ZERO,
                key: Key::new(TOKEN).unwrap(),
                caches: CacheNames { pip: names("pip"), npm: names("npm"), bun: names("bun") },
                cache_retention: None,
            },
            api: ApiConfig {
                max_body: 8 << 20,
                exec_timeout: Duration::from_secs(60),
                max_exec_timeout: Duration::from_secs(900),
                max_stdout: 5 << 20,
                max_stderr: 5 << 20,
            },
        };
        let role = Arc::new(SpawnerRole::open(config, Arc::new(SystemClock)).unwrap());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = role.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        tokio::spawn(async move { role.run(CancellationToken::new()).await });
        address
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let filter = format!("label=tale.sandbox-instance={}", self.instance);
        for container in self.said(&["ps", "-a", "-q", "--filter", &filter]).lines() {
            self.said(&["rm", "-f", "-v", container]);
        }
        self.said(&["network", "rm", &self.instance]);
        for volume in self.said(&["volume", "ls", "-q", "--filter", &format!("name={}", self.instance)]).lines() {
            self.said(&["volume", "rm", volume]);
        }
    }
}

#[tokio::test]
async fn a_program_runs_in_a_container_and_its_files_stay() {
    let Some(engine) = Engine::find() else { return };
    let world = World::with_spawner(engine.spawner().await).await;
    let (door, _process, ada) = (world.door(), world.process(), world.person().await);
    let actor = Actor::User { id: ada.user };
    assert_eq!(door.list_files(ada, "").await.unwrap_err().code, Code::SandboxAsleep);

    let code = "import os, sys\nprint('from', os.getcwd())\nsys.stderr.write('careful\\n')\nos.makedirs('a', exist_ok=True)\nopen('a/out.txt', 'w').write('kept')\nsys.exit(3)";
    let id = start_in(&door, ada, Language::Python, code).await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    let ended = followed.end().await;
    assert_eq!((ended.state, ended.exit_code, ended.output_complete), (RunState::Failed, Some(3), Some(true)));
    assert!(followed.text.contains("from /agent/workspace\n"), "{}", followed.text);
    assert!(followed.text.contains("careful\n"), "{}", followed.text);

    // The next program finds what the one before left, and so does the person.
    let id = start(&door, ada, "cat a/out.txt").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    assert_eq!(followed.end().await.state, RunState::Completed);
    assert_eq!(followed.text, "kept");
    let listed = door.list_files(ada, "a").await.unwrap();
    assert_eq!(
        listed.entries.iter().map(|entry| (entry.name.as_str(), entry.size)).collect::<Vec<_>>(),
        [("out.txt", 4)]
    );
    let content = door.read_file(ada, &actor, "a/out.txt").await.unwrap();
    let bytes: Vec<bytes::Bytes> = content.bytes.try_collect().await.unwrap();
    assert_eq!((content.name.as_str(), bytes.concat().as_slice()), ("out.txt", b"kept".as_slice()));
    assert_eq!(door.read_file(ada, &actor, "a/none").await.err().unwrap().code, Code::FileNotFound);
    for outside in ["../../etc/passwd", "a/../../.runtime"] {
        assert_eq!(door.list_files(ada, outside).await.unwrap_err().code, Code::InvalidQuery);
    }
    // A colleague has a sandbox of their own, which is asleep.
    assert_eq!(door.list_files(world.person().await, "").await.unwrap_err().code, Code::SandboxAsleep);

    // One that ignores the request to end is ended, and one that prints too much.
    let id = start(&door, ada, "trap '' TERM; echo up; sleep 600").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    followed.printed("up").await;
    door.stop_run(ada, &actor, id).await.unwrap();
    let ended = followed.end().await;
    assert_eq!((ended.state, ended.exit_code), (RunState::Cancelled, Some(137)));
    let id = start(&door, ada, "yes").await;
    let mut followed = Followed::of(&door, ada, id, 0).await;
    let ended = followed.end().await;
    assert_eq!((ended.reason.as_deref(), ended.output_complete), (Some("OUTPUT_LIMIT"), Some(false)));
    assert_eq!(followed.text.len(), tale_workshop::runs::MAX_OUTPUT);
    assert_eq!(world.places().await, 0);
}
