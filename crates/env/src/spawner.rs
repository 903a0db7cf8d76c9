//! The typed settings of the spawner.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use crate::kind::Value;
use crate::reader::{EnvProblem, EnvProblems, EnvReader, EnvSource, Severity};
use crate::registry as var;

/// What the spawner is built from (section 3 of the specification of sandboxes). Sizes are bytes.
#[derive(Debug, Clone)]
pub struct SpawnerSettings {
    /// Shared secret of the signed interface.
    pub token: SecretString,
    /// The one before, while it is changed.
    pub previous_token: Option<SecretString>,
    /// Port to listen on.
    pub port: u16,
    /// The engine.
    pub docker_host: String,
    /// Runtime of the engine that sessions run under; its own when unset.
    pub runtime: Option<&'static str>,
    /// Where the deployment file is, if there is one.
    pub shared_config: PathBuf,
    /// Image of sessions.
    pub image: String,
    /// Whether the image is fetched when it is not there.
    pub pulls_image: bool,
    /// Label of the containers.
    pub instance: String,
    /// Directory of workspaces.
    pub session_root: PathBuf,
    /// Where the engine's data are: its own name for the directory, and ours.
    pub docker_data: Option<(String, PathBuf)>,
    /// Network of sessions.
    pub network: String,
    /// The way out of it.
    pub proxy: Url,
    /// Whether programs of sessions that know nothing of a proxy are led to it.
    pub redirects: bool,
    /// Where sessions reach the backend and the model gateway.
    pub direct: Vec<Url>,
    /// A fixed number of sessions; by the host when unset.
    pub max_sessions: Option<u32>,
    /// Memory that a start leaves free; by the host when unset.
    pub min_free_memory: Option<u64>,
    /// Processor pressure from which sessions start one by one, in percent; zero = never.
    pub cpu_pressure_percent: u64,
    /// Free disk that a start needs; by the disk when unset, zero = none.
    pub min_free_disk: Option<u64>,
    /// Free disk under which something must go; by the floor when unset, zero = none.
    pub critical_free_disk: Option<u64>,
    /// Longest life of a session's container.
    pub max_lifetime: Duration,
    /// Longest idle time.
    pub max_idle: Duration,
    /// The same for a session that no work holds.
    pub released_idle: Duration,
    /// Longest linger of a draining spawner.
    pub max_linger: Duration,
    /// Longest start.
    pub create_timeout: Duration,
    /// Deadline of a command that names none.
    pub exec_timeout: Duration,
    /// Longest such deadline.
    pub max_exec_timeout: Duration,
    /// Silence after which an idle command is ended; zero = never.
    pub stall: Duration,
    /// Collected standard output.
    pub max_stdout: usize,
    /// Collected standard error.
    pub max_stderr: usize,
    /// Largest request.
    pub max_body: usize,
    /// Limits of agents.
    pub agent: AgentLimits,
    /// Beginnings of the names of package caches: Python, npm, bun.
    pub cache_prefixes: [String; 3],
    /// How long unused package caches stay; `None` = until the organization goes.
    pub cache_retention: Option<Duration>,
    /// Longest drain after SIGTERM.
    pub shutdown_drain: Duration,
}

/// Limits of an agent's session.
#[derive(Debug, Clone)]
pub struct AgentLimits {
    /// User and group.
    pub user: (u32, u32),
    /// Processors.
    pub cpus: f64,
    /// Processor weight.
    pub cpu_shares: u32,
    /// Memory; the profile's when unset.
    pub memory: Option<u64>,
    /// Processes.
    pub pids: u32,
    /// Open files, soft and hard.
    pub open_files: (u64, u64),
    /// Largest file.
    pub file_size: u64,
    /// `/tmp`.
    pub tmp: u64,
    /// `/dev/shm`.
    pub shm: u64,
}

impl SpawnerSettings {
    /// Reads everything at once.
    ///
    /// # Errors
    /// Every variable that keeps the spawner from starting, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        env.require(&var::SANDBOX_TOKEN, &[]);
        let token = env.text(&var::SANDBOX_TOKEN).map(SecretString::from);
        let previous_token = env.text(&var::SANDBOX_TOKEN_PREVIOUS).map(SecretString::from);
        let backend = env.text(&var::SANDBOX_BACKEND);
        let runtime = match env.text(&var::SANDBOX_RUNTIME).as_deref() {
            Some("gvisor" | "runsc") => Some("runsc"),
            Some("sysbox") => Some("sysbox-runc"),
            Some("kata") => Some("kata"),
            _ => None,
        };
        let shared_config = env.text(&var::TALE_PLATFORM_SHARED_CONFIG_DIR).map(PathBuf::from);
        let docker_root = env.text(&var::SANDBOX_DOCKER_DATA_ROOT);
        let docker_path = env.text(&var::SANDBOX_DOCKER_DATA_PATH).map(PathBuf::from);
        let direct = [env.url(&var::SANDBOX_HTTP_API_BASE_URL), env.url(&var::EXTERNAL_AGENT_GATEWAY_URL)];
        let (proxy, network) = (env.url(&var::SANDBOX_EGRESS_PROXY), env.text(&var::SANDBOX_EGRESS_NETWORK));
        let redirects = env.switch(&var::SANDBOX_TRANSPARENT_EGRESS);
        let (image, docker_host) = (env.text(&var::SANDBOX_RUNTIME_IMAGE), env.text(&var::DOCKER_HOST));
        let session_root = env.text(&var::SANDBOX_HOST_SESSION_ROOT).map(PathBuf::from);
        let instance = env.text(&var::SANDBOX_INSTANCE).unwrap_or_default();
        let pulls_image = !env.is_set(&var::SANDBOX_SKIP_IMAGE_WARMUP);
        let max_sessions = env.integer(&var::SANDBOX_MAX_SESSIONS);
        let min_free_memory = env.integer(&var::SANDBOX_MIN_FREE_MEMORY);
        let min_free_disk = env.integer(&var::SANDBOX_MIN_FREE_DISK);
        let critical_free_disk = env.integer(&var::SANDBOX_CRITICAL_FREE_DISK);
        let mut number = |name| env.integer(name);
        let port = number(&var::SANDBOX_PORT);
        let cpu_pressure_percent = number(&var::SANDBOX_CPU_PRESSURE_PERCENT);
        let mut millis = |name| number(name).map(Duration::from_millis);
        let max_lifetime = millis(&var::SANDBOX_SESSION_MAX_LIFETIME_MS);
        let max_idle = millis(&var::SANDBOX_SESSION_MAX_IDLE_MS);
        let released_idle = millis(&var::SANDBOX_SESSION_RELEASED_IDLE_MS);
        let max_linger = millis(&var::SANDBOX_SESSION_MAX_LINGER_MS);
        let create_timeout = millis(&var::SANDBOX_SESSION_CREATE_TIMEOUT_MS);
        let exec_timeout = millis(&var::SANDBOX_SESSION_EXEC_DEFAULT_TIMEOUT_MS);
        let max_exec_timeout = millis(&var::SANDBOX_SESSION_EXEC_MAX_TIMEOUT_MS);
        let shutdown_drain = millis(&var::SHUTDOWN_DRAIN_MS).unwrap_or(Duration::from_secs(15));
        let stall = number(&var::SANDBOX_EXEC_STALL_MINUTES).map(|minutes| Duration::from_secs(minutes * 60));
        let mut bytes = |name| number(name).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let max_stdout = bytes(&var::SANDBOX_STDOUT_MAX_BYTES);
        let max_stderr = bytes(&var::SANDBOX_STDERR_MAX_BYTES);
        let max_body = bytes(&var::SANDBOX_MAX_REQUEST_BODY_BYTES);
        let agent = read_agent(&mut env);
        let prefixes = [
            &var::SANDBOX_PIP_CACHE_VOLUME_PREFIX,
            &var::SANDBOX_NPM_CACHE_VOLUME_PREFIX,
            &var::SANDBOX_BUN_CACHE_VOLUME_PREFIX,
        ]
        .map(|prefix| env.text(prefix).unwrap_or_default());
        let retention = env.text(&var::SANDBOX_PACKAGE_CACHE_RETENTION);
        if backend.as_deref() == Some("kubernetes") {
            let (why, fix) = ("is kubernetes, which this release cannot do", "Set it to docker, or leave it out");
            let problem = EnvProblem::new(Severity::Error, var::SANDBOX_BACKEND.name, why, fix);
            return Err(EnvProblems(vec![problem]));
        }
        let settings = (|| {
            Some(Self {
                token: token?,
                previous_token,
                port: u16::try_from(port?).ok()?,
                docker_host: docker_host?,
                runtime,
                shared_config: shared_config?,
                image: image?,
                pulls_image,
                instance,
                session_root: session_root?,
                docker_data: docker_root.zip(docker_path),
                network: network?,
                proxy: proxy?,
                redirects: redirects?,
                direct: direct.into_iter().flatten().collect(),
                max_sessions: max_sessions.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
                min_free_memory,
                cpu_pressure_percent: cpu_pressure_percent?,
                min_free_disk,
                critical_free_disk,
                max_lifetime: max_lifetime?,
                max_idle: max_idle?,
                released_idle: released_idle?,
                max_linger: max_linger?,
                create_timeout: create_timeout?,
                exec_timeout: exec_timeout?,
                max_exec_timeout: max_exec_timeout?,
                stall: stall?,
                max_stdout: max_stdout?,
                max_stderr: max_stderr?,
                max_body: max_body?,
                agent: agent?,
                cache_prefixes: prefixes,
                cache_retention: retention.as_deref().and_then(age),
                shutdown_drain,
            })
        })();
        env.finish(settings)
    }
}

fn read_agent(env: &mut EnvReader<'_>) -> Option<AgentLimits> {
    let user = env.text(&var::SANDBOX_AGENT_USER);
    let cpus = match env.value(&var::SANDBOX_AGENT_CPUS) {
        Some(Value::Number(cpus)) => Some(cpus),
        _ => None,
    };
    let memory = env.integer(&var::SANDBOX_AGENT_MEMORY);
    let mut number = |name| env.integer(name);
    let cpu_shares = number(&var::SANDBOX_AGENT_CPU_SHARES);
    let pids = number(&var::SANDBOX_AGENT_PIDS);
    let open_files = number(&var::SANDBOX_AGENT_NOFILE_SOFT).zip(number(&var::SANDBOX_AGENT_NOFILE_HARD));
    let file_size = number(&var::SANDBOX_AGENT_FSIZE_BYTES);
    let (tmp, shm) = (number(&var::SANDBOX_AGENT_TMP_SIZE), number(&var::SANDBOX_AGENT_SHM_SIZE));
    let (uid, gid) = user.as_deref().and_then(|user| user.split_once(':'))?;
    let (soft, hard) = open_files?;
    Some(AgentLimits {
        user: (uid.parse().ok()?, gid.parse().ok()?),
        cpus: cpus?,
        cpu_shares: u32::try_from(cpu_shares?).ok()?,
        memory,
        pids: u32::try_from(pids?).unwrap_or(u32::MAX),
        open_files: (soft.min(hard), hard),
        file_size: file_size?,
        tmp: tmp?,
        shm: shm?,
    })
}

/// Days or hours; `None` for `off` and `0`.
fn age(text: &str) -> Option<Duration> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => (days, 86_400),
        (_, Some(hours)) => (hours, 3_600),
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()
        .filter(|number| *number > 0)
        .map(|number| Duration::from_secs(number.saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::MapEnv;

    #[test]
    fn an_empty_environment_lacks_only_the_token() {
        for blank in [MapEnv::of([]), MapEnv::of([("SANDBOX_TOKEN", "  ")])] {
            let problems = SpawnerSettings::from_env(&blank).unwrap_err();
            assert_eq!(problems.0.len(), 1);
            assert_eq!(problems.0[0].variable, "SANDBOX_TOKEN");
        }
        let settings = SpawnerSettings::from_env(&MapEnv::of([("SANDBOX_TOKEN", "secret")])).unwrap();
        assert_eq!((settings.port, settings.max_sessions, settings.runtime), (8003, None, None));
        assert_eq!((settings.agent.user, settings.agent.memory), ((10_001, 10_001), None));
        assert_eq!(settings.cache_retention, Some(Duration::from_secs(14 * 86_400)));
    }

    #[test]
    fn what_this_release_cannot_do_is_refused() {
        let env = MapEnv::of([("SANDBOX_TOKEN", "secret"), ("SANDBOX_BACKEND", "kubernetes")]);
        assert_eq!(SpawnerSettings::from_env(&env).unwrap_err().0[0].variable, "SANDBOX_BACKEND");
        assert_eq!([age("336h"), age("off"), age("0")], [Some(Duration::from_secs(336 * 3_600)), None, None]);
    }
}
