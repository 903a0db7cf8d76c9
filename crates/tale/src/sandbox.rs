//! The `sandbox` role: the spawner, which needs an engine and a directory and no database.

use std::sync::Arc;

use secrecy::ExposeSecret;
use tale_core::SystemClock;
use tale_core::clock::SharedClock;
use tale_env::{AgentLimits, EnvProblem, EnvProblems, Environment, Role, SandboxLink, Severity, SpawnerSettings};
use tale_governance::policies::Policies;
use tale_http::serve::Stop;
use tale_sandbox::api::ApiConfig;
use tale_sandbox::docker::{CacheNames, DockerConfig};
use tale_sandbox::host::{Floor, Floors};
use tale_sandbox::profile::Limits;
use tale_sandbox::role::{RoleConfig, SpawnerRole};
use tale_sandbox_wire::names::{Instance, Profile};
use tale_sandbox_wire::sign::Key;
use tale_workshop::Workshop;
use tokio_util::sync::CancellationToken;

use crate::platform::{self, StartError};
use crate::{configuration, deployment_file};

/// The platform's side of sandboxes.
pub(crate) fn workshop(
    link: SandboxLink,
    db: sqlx::PgPool,
    clock: SharedClock,
    policies: Policies,
) -> Result<Workshop, StartError> {
    let key = Key::new(link.token.expose_secret()).ok_or_else(|| StartError::other("SANDBOX_TOKEN is empty"))?;
    let profile = if link.light { Profile::AgentLight } else { Profile::Agent };
    let settings = tale_workshop::Settings { url: link.url, key, profile };
    Workshop::new(db, clock, policies, settings).map_err(StartError::other)
}

/// Serves until `stop`. The sessions run on.
pub(crate) async fn serve(env: &Environment, port: Option<u16>, stop: CancellationToken) -> Result<(), StartError> {
    configuration::judge(env, Role::Sandbox).map_err(StartError::Settings)?;
    let mut settings = SpawnerSettings::from_env(env).map_err(StartError::Settings)?;
    let decided = deployment_file::read(&settings.shared_config).map_err(StartError::Settings)?;
    if let Some(tier) = decided.tier {
        settings.runtime = tier.runtime();
    }
    if decided.asks_for_docker() {
        tracing::warn!(
            event = "sandbox.config",
            "the deployment file asks for Docker inside of sandboxes, which this release has not"
        );
    }
    let (port, budget) = (port.unwrap_or(settings.port), settings.shutdown_drain);
    let clock: SharedClock = Arc::new(SystemClock);
    let role = SpawnerRole::open(config(settings)?, clock).map_err(StartError::other)?;
    let listener = platform::bind_all(port).await?;
    let address = listener.local_addr().map_err(StartError::other)?;
    let server_stop = Stop { drain: stop.clone(), close: stop.clone(), budget };
    let server = tokio::spawn(tale_http::serve(listener, role.router(), server_stop));
    platform::announce(Role::Sandbox, None, Some(address));
    let ended = CancellationToken::new();
    let (served, ()) = tokio::join!(
        async {
            let served = server.await;
            ended.cancel();
            served
        },
        role.run(ended.clone()),
    );
    served.map_err(StartError::other)?;
    tracing::info!(event = "process.stopped", "stopped");
    Ok(())
}

fn config(settings: SpawnerSettings) -> Result<RoleConfig, StartError> {
    let bad = |variable: &str, why: &str, fix: &str| {
        StartError::Settings(EnvProblems(vec![EnvProblem::new(Severity::Error, variable, why, fix)]))
    };
    let redirects = redirects(&settings);
    let key = Key::new(settings.token.expose_secret());
    let key = key.ok_or_else(|| bad("SANDBOX_TOKEN", "is empty", "Set it to a secret of 32 random bytes"))?;
    let previous_key = settings.previous_token.as_ref().and_then(|token| Key::new(token.expose_secret()));
    let instance = Instance::new(&settings.instance);
    let instance = instance.ok_or_else(|| {
        bad("SANDBOX_INSTANCE", "is no label", "Set it to at most 32 lower-case letters, digits and dashes")
    })?;
    let floor = |set: Option<u64>| set.map_or(Floor::Sized, Floor::Fixed);
    let [pip, npm, bun] = settings.cache_prefixes;
    #[expect(clippy::cast_precision_loss, reason = "a percentage is at most 100")]
    let pressure = settings.cpu_pressure_percent as f64;
    Ok(RoleConfig {
        docker_host: settings.docker_host,
        image: settings.image,
        pulls_image: settings.pulls_image,
        session_root: settings.session_root,
        docker_data: settings.docker_data,
        floors: Floors { floor: floor(settings.min_free_disk), critical: floor(settings.critical_free_disk) },
        capacity: settings.max_sessions,
        memory_reserve: settings.min_free_memory,
        pressure_limit: (pressure > 0.0).then_some(pressure),
        max_lifetime: settings.max_lifetime,
        max_idle: settings.max_idle,
        released_idle: settings.released_idle,
        create_timeout: settings.create_timeout,
        max_linger: settings.max_linger,
        previous_key,
        docker: DockerConfig {
            instance,
            runtime: settings.runtime,
            network: settings.network,
            proxy: settings.proxy,
            redirects,
            direct_hosts: settings.direct.iter().filter_map(|url| url.host_str().map(str::to_owned)).collect(),
            agent_limits: limits(&settings.agent),
            stall: settings.stall,
            key,
            caches: CacheNames { pip, npm, bun },
            cache_retention: settings.cache_retention,
        },
        api: ApiConfig {
            max_body: settings.max_body,
            exec_timeout: settings.exec_timeout,
            max_exec_timeout: settings.max_exec_timeout,
            max_stdout: settings.max_stdout,
            max_stderr: settings.max_stderr,
        },
    })
}

/// Whether sessions lead programs that know nothing of a proxy to it. Where a runtime has a network of its own, the
/// kernel's rules mean nothing.
fn redirects(settings: &SpawnerSettings) -> bool {
    let can = settings.runtime != Some("runsc");
    if settings.redirects && !can {
        tracing::warn!(
            event = "sandbox.config",
            "under gVisor only programs that know the proxy reach the internet; SANDBOX_TRANSPARENT_EGRESS=false \
             says that this is meant"
        );
    }
    settings.redirects && can
}

fn limits(agent: &AgentLimits) -> Limits {
    Limits {
        user: agent.user,
        cpus: agent.cpus,
        cpu_shares: agent.cpu_shares,
        memory: agent.memory.unwrap_or(Limits::of_agent().memory),
        pids: agent.pids,
        open_files: agent.open_files,
        file_size: agent.file_size,
        tmp: agent.tmp,
        shm: agent.shm,
    }
}
