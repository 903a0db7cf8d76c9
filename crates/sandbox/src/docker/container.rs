//! What a session's container is made from: one pure function of checked values (SBD-10, SBD-11). Nothing of it is
//! a secret of a person, and nothing of it is code.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, ContainerSummary, ContainerSummaryStateEnum, EndpointSettings, HostConfig,
    HostConfigLogConfig, ResourcesUlimits,
};
use tale_sandbox_wire::exec::{PROXY_ENV, REDIRECTOR_USER, USER_ENV};
use tale_sandbox_wire::files::WORKSPACE_ROOT;
use tale_sandbox_wire::limits::DAEMON_PORT;
use tale_sandbox_wire::names::{Instance, OrganizationId, Profile, SessionId};
use url::Url;

use crate::backend::{Compute, ComputeState};
use crate::profile::Limits;
use crate::session::millis;

/// Marks every container of a session.
pub const SESSION_LABEL: &str = "tale.sandbox-session";
/// Names the deployment on an engine that several share.
pub const INSTANCE_LABEL: &str = "tale.sandbox-instance";
const NAME_LABEL: &str = "tale.session";
const ORG_LABEL: &str = "tale.org";
const PROFILE_LABEL: &str = "tale.profile";
const CREATED_LABEL: &str = "tale.created";
const DOCKER_LABEL: &str = "tale.docker";
const TTL_LABEL: &str = "tale.ttl-ms";
const IDLE_LABEL: &str = "tale.idle-ms";

/// Whom sessions reach without the proxy.
const DIRECT: &[&str] = &["127.0.0.1", "localhost", "sandbox-llm-gateway", "backend-api", "backend-relay"];

/// The package caches of an organization: volume, place, variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheMount {
    /// The volume.
    pub volume: String,
    /// Where it is mounted.
    pub place: &'static str,
    /// Variables that name the place.
    pub variables: &'static [&'static str],
}

/// Everything that a container follows from.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub org: OrganizationId,
    /// What it may use, by name.
    pub profile: Profile,
    /// What it may use.
    pub limits: Limits,
    /// Names the incarnation.
    pub created_at_ms: i64,
    /// Longest life.
    pub ttl: Duration,
    /// Idle time after which it is stopped.
    pub idle_timeout: Duration,
    /// Names the deployment.
    pub instance: Instance,
    /// The engine's runtime; its own when unset.
    pub runtime: Option<&'static str>,
    /// The image.
    pub image: String,
    /// The network that it joins.
    pub network: String,
    /// The only way out.
    pub proxy: Url,
    /// Whether programs that know nothing of a proxy are led to it. Its first process then is root until it has
    /// set that up.
    pub redirects: bool,
    /// Hosts that it reaches without the proxy besides the usual ones.
    pub direct_hosts: Vec<String>,
    /// Its workspace on the host.
    pub workspace: PathBuf,
    /// What the daemon asks its callers for.
    pub token: String,
    /// Silence after which a command counts as stalled; zero = never.
    pub stall: Duration,
    /// Package caches of the organization.
    pub caches: Vec<CacheMount>,
}

/// A value that must not reach the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be used for a container")]
pub struct BadPlan {
    what: &'static str,
}

/// The container.
///
/// # Errors
/// [`BadPlan`] when a value does not fit the pattern of its kind.
pub fn body(plan: &Plan) -> Result<ContainerCreateBody, BadPlan> {
    check(plan)?;
    let limits = &plan.limits;
    let (uid, gid) = limits.user;
    let limit = |name: &str, soft: u64, hard: u64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: i64::try_from(soft).ok(),
        hard: i64::try_from(hard).ok(),
    };
    let mut binds = vec![format!("{}:{WORKSPACE_ROOT}", plan.workspace.display())];
    binds.extend(plan.caches.iter().map(|cache| format!("{}:{}", cache.volume, cache.place)));
    let bytes = |bytes: u64| i64::try_from(bytes).ok();
    let host = HostConfig {
        binds: Some(binds),
        network_mode: Some(plan.network.clone()),
        runtime: plan.runtime.map(str::to_owned),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        // For the route and the rules, and to become the session's user, who can have none of them.
        cap_add: plan.redirects.then(|| ["NET_ADMIN", "SETGID", "SETPCAP", "SETUID"].map(str::to_owned).to_vec()),
        security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
        memory: bytes(limits.memory),
        // As much as memory: no swap.
        memory_swap: bytes(limits.memory),
        #[expect(clippy::cast_possible_truncation, reason = "a number of processors is small")]
        nano_cpus: Some((limits.cpus * 1e9) as i64),
        cpu_shares: Some(i64::from(limits.cpu_shares)),
        pids_limit: Some(i64::from(limits.pids)),
        ulimits: Some(vec![
            limit("nofile", limits.open_files.0, limits.open_files.1),
            limit("fsize", limits.file_size, limits.file_size),
            limit("core", 0, 0),
        ]),
        // Sessions die before the platform.
        oom_score_adj: Some(500),
        tmpfs: Some(map([("/tmp", format!("rw,exec,nosuid,nodev,mode=1777,size={}", limits.tmp))])),
        shm_size: bytes(limits.shm),
        sysctls: Some(map([
            ("net.ipv6.conf.all.disable_ipv6", "1".to_owned()),
            ("net.ipv6.conf.default.disable_ipv6", "1".to_owned()),
        ])),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            // Compression with one file, should the host ask for it, would keep the container from starting.
            config: Some(map([
                ("max-size", "10m".to_owned()),
                ("max-file", "1".to_owned()),
                ("compress", "false".to_owned()),
            ])),
        }),
        ..HostConfig::default()
    };
    Ok(ContainerCreateBody {
        image: Some(plan.image.clone()),
        cmd: Some(["daemon"].into_iter().chain(plan.redirects.then_some("redirected")).map(str::to_owned).collect()),
        user: Some(if plan.redirects { "0:0".to_owned() } else { format!("{uid}:{gid}") }),
        working_dir: Some(WORKSPACE_ROOT.to_owned()),
        env: Some(env(plan)),
        labels: Some(labels(plan)),
        stop_signal: Some("SIGTERM".to_owned()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    })
}

fn map<const N: usize>(pairs: [(&str, String); N]) -> HashMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn env(plan: &Plan) -> Vec<String> {
    let proxy = plan.proxy.as_str().trim_end_matches('/');
    let direct =
        DIRECT.iter().copied().chain(plan.direct_hosts.iter().map(String::as_str)).collect::<Vec<_>>().join(",");
    let mut env = vec![
        "HOME=/agent/.runtime/home".to_owned(),
        "TMPDIR=/agent/.runtime/tmp".to_owned(),
        format!("TALE_RUNNERD_TOKEN={}", plan.token),
        format!("TALE_RUNNERD_INCARNATION={}", plan.created_at_ms),
        format!("TALE_EXEC_STALL_MS={}", plan.stall.as_millis()),
        "TALE_EXEC_ADMISSION_MEMORY_PERCENT=90".to_owned(),
    ];
    if plan.redirects {
        let (uid, gid) = plan.limits.user;
        env.push(format!("{USER_ENV}={uid}:{gid}"));
        let (host, port) = (plan.proxy.host_str().unwrap_or_default(), plan.proxy.port_or_known_default());
        env.push(format!("{PROXY_ENV}={host}:{}", port.unwrap_or_default()));
    }
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        env.push(format!("{name}={proxy}"));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        env.push(format!("{name}={direct}"));
    }
    for cache in &plan.caches {
        env.extend(cache.variables.iter().map(|name| format!("{name}={}", cache.place)));
    }
    env
}

fn labels(plan: &Plan) -> HashMap<String, String> {
    let mut labels = map([
        (SESSION_LABEL, "1".to_owned()),
        (NAME_LABEL, plan.session.to_string()),
        (ORG_LABEL, plan.org.to_string()),
        (PROFILE_LABEL, plan.profile.as_str().to_owned()),
        (CREATED_LABEL, plan.created_at_ms.to_string()),
        (DOCKER_LABEL, "0".to_owned()),
        (TTL_LABEL, millis(plan.ttl).to_string()),
        (IDLE_LABEL, millis(plan.idle_timeout).to_string()),
    ]);
    if !plan.instance.as_str().is_empty() {
        labels.insert(INSTANCE_LABEL.to_owned(), plan.instance.as_str().to_owned());
    }
    labels
}

/// Names are right by their types; this looks at the rest.
fn check(plan: &Plan) -> Result<(), BadPlan> {
    let bad = |what| Err(BadPlan { what });
    let plain = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.len() <= 255
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    if !plain(&plan.network, "_.-") || ["host", "none", "bridge", "default"].contains(&plan.network.as_str()) {
        return bad("the network's name");
    }
    if !plain(&plan.image, "_.-/:@") {
        return bad("the image's name");
    }
    let path = plan.workspace.to_str().unwrap_or_default();
    let is_clean = plan.workspace.is_absolute() && !path.contains([':', '\0', '\n']) && !path.contains("/../");
    if !is_clean || !path.ends_with(&format!("/ses-{}", plan.session)) {
        return bad("the workspace's path");
    }
    let proxy = &plan.proxy;
    let is_door = proxy.scheme() == "http" && proxy.path() == "/" && proxy.query().is_none();
    if !is_door || proxy.host_str().is_none() || !proxy.username().is_empty() || proxy.password().is_some() {
        return bad("the proxy's address");
    }
    if !plan.direct_hosts.iter().all(|host| plain(host, ".-")) {
        return bad("a host that is reached directly");
    }
    if plan.token.len() != 64 || !plan.token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return bad("the daemon's token");
    }
    let (uid, gid) = plan.limits.user;
    if uid == 0 || gid == 0 || (plan.redirects && uid == REDIRECTOR_USER) || !plan.limits.cpus.is_finite() {
        return bad("the user");
    }
    let own = |cache: &CacheMount| cache.volume.ends_with(&format!("-{}", plan.org)) && plain(&cache.volume, "_.-");
    if !plan.caches.iter().all(own) {
        return bad("a cache of another organization");
    }
    Ok(())
}

/// What labels say about a container, if they say it soundly.
pub fn compute(
    handle: String,
    labels: &HashMap<String, String>,
    state: ComputeState,
    networks: Option<&HashMap<String, EndpointSettings>>,
    network: &str,
) -> Option<Compute> {
    let label = |name: &str| labels.get(name).map(String::as_str);
    let number = |name: &str| label(name).and_then(|text| text.parse::<u64>().ok());
    let address = networks.and_then(|all| all.get(network)).and_then(|end| end.ip_address.as_deref());
    let address = address.and_then(|text| text.parse::<IpAddr>().ok());
    Some(Compute {
        session: SessionId::new(label(NAME_LABEL)?).ok()?,
        org: OrganizationId::new(label(ORG_LABEL)?).ok()?,
        profile: Profile::from_name(label(PROFILE_LABEL)?)?,
        inner_docker: label(DOCKER_LABEL) == Some("1"),
        handle,
        created_at_ms: i64::try_from(number(CREATED_LABEL)?).ok()?,
        ttl: Duration::from_millis(number(TTL_LABEL)?),
        idle_timeout: Duration::from_millis(number(IDLE_LABEL)?),
        state,
        address: address.map(|ip| SocketAddr::new(ip, DAEMON_PORT)),
        pinned: false,
    })
}

/// Whether labels are of this deployment.
pub fn is_ours(labels: &HashMap<String, String>, instance: &Instance) -> bool {
    let marked = labels.get(SESSION_LABEL).is_some_and(|value| value == "1");
    marked && labels.get(INSTANCE_LABEL).map_or("", String::as_str) == instance.as_str()
}

/// What a container of the list does (SBX-81).
pub fn state_of(summary: &ContainerSummary) -> ComputeState {
    match summary.state {
        Some(
            ContainerSummaryStateEnum::EXITED | ContainerSummaryStateEnum::DEAD | ContainerSummaryStateEnum::REMOVING,
        ) => ComputeState::Ended { out_of_memory: false },
        Some(ContainerSummaryStateEnum::CREATED | ContainerSummaryStateEnum::RESTARTING) => ComputeState::Starting,
        _ => ComputeState::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(profile: Profile) -> Plan {
        let session = SessionId::new("agent-1").unwrap();
        Plan {
            workspace: PathBuf::from("/var/lib/tale-sandbox/sessions/ses-agent-1"),
            session,
            org: OrganizationId::new("acme").unwrap(),
            profile,
            limits: Limits::of(profile),
            created_at_ms: 1_800_000_000_000,
            ttl: Duration::from_secs(86_400),
            idle_timeout: Duration::from_secs(1_800),
            instance: Instance::new("test").unwrap(),
            runtime: None,
            image: "tale-sandbox-runtime:latest".to_owned(),
            network: "tale-sandbox-net".to_owned(),
            proxy: Url::parse("http://sandbox-egress:3128").unwrap(),
            redirects: true,
            direct_hosts: vec!["tale.internal".to_owned()],
            token: "ab".repeat(32),
            stall: Duration::from_secs(2_700),
            caches: vec![CacheMount {
                volume: "tale-sandbox-pip-cache-acme".to_owned(),
                place: "/cache/pip",
                variables: &["PIP_CACHE_DIR", "UV_CACHE_DIR"],
            }],
        }
    }

    /// In one order, whatever the maps have.
    fn shown(plan: &Plan) -> serde_json::Value {
        serde_json::to_value(body(plan).unwrap()).unwrap()
    }

    #[test]
    fn a_container_is_hardened_as_agreed() {
        insta::assert_json_snapshot!("agent", shown(&plan(Profile::Agent)));
        insta::assert_json_snapshot!("default", shown(&plan(Profile::Default)));
        insta::assert_json_snapshot!("without_redirect", shown(&Plan { redirects: false, ..plan(Profile::Agent) }));
    }

    #[test]
    fn nothing_that_could_mean_something_else_reaches_the_engine() {
        let bad: Vec<fn(&mut Plan)> = vec![
            |plan| plan.network = "host".to_owned(),
            |plan| plan.network = "container:x".to_owned(),
            |plan| plan.image = "--privileged".to_owned(),
            |plan| plan.workspace = PathBuf::from("/etc"),
            |plan| plan.workspace = PathBuf::from("/x:/host/ses-agent-1"),
            |plan| plan.workspace = PathBuf::from("/x/../ses-agent-1"),
            |plan| plan.proxy = Url::parse("http://user:secret@sandbox-egress:3128").unwrap(),
            |plan| plan.proxy = Url::parse("https://sandbox-egress:3128").unwrap(),
            |plan| plan.token = "x".repeat(64),
            |plan| plan.limits.user = (0, 10),
            |plan| plan.limits.user = (REDIRECTOR_USER, 10),
            |plan| plan.direct_hosts = vec!["*".to_owned()],
            |plan| plan.caches[0].volume = "tale-sandbox-pip-cache-other".to_owned(),
        ];
        for (number, change) in bad.iter().enumerate() {
            let mut plan = plan(Profile::Agent);
            change(&mut plan);
            assert!(body(&plan).is_err(), "case {number}");
        }
    }

    #[test]
    fn labels_bring_a_session_back() {
        let plan = plan(Profile::AgentLight);
        let labels = labels(&plan);
        let found = compute("c1".to_owned(), &labels, ComputeState::Running, None, "net").unwrap();
        assert_eq!((&found.session, &found.org, found.profile), (&plan.session, &plan.org, plan.profile));
        assert_eq!((found.created_at_ms, found.ttl), (plan.created_at_ms, plan.ttl));
        assert!(is_ours(&labels, &plan.instance) && !is_ours(&labels, &Instance::default()));
        let mut broken = labels.clone();
        broken.insert(NAME_LABEL.to_owned(), "../x".to_owned());
        assert!(compute("c1".to_owned(), &broken, ComputeState::Running, None, "net").is_none());
    }
}
