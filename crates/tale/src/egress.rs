//! The `sandbox-egress` role: the way out of sandboxes. It has no database and reads nothing but its own
//! settings.

use std::path::PathBuf;

use tale_egress::{BadAllowlist, Config, HostPolicy};
use tale_env::{EgressSettings, EnvProblem, EnvProblems, Environment, Role, Severity, registry};

use crate::platform::StartError;
use crate::{configuration, platform, signals};

/// Where every system says which servers resolve names.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The port of DNS.
const DNS: u16 = 53;

/// Serves until a signal. The process has one thread until its rights are given up, so this comes before
/// any other event loop.
pub(crate) fn serve(env: &Environment, port: Option<u16>) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::other)?;
    runtime.block_on(async {
        // First of all: a signal that comes during the start ends it.
        let stop = signals::stop_token().map_err(StartError::other)?;
        let config = config(env, port)?;
        let prepared = tale_egress::prepare(config).map_err(StartError::other)?;
        platform::announce(Role::SandboxEgress, None, prepared.address());
        prepared.run(stop).await.map_err(StartError::other)?;
        tracing::info!(event = "process.stopped", "stopped");
        Ok(())
    })
}

fn config(env: &Environment, port: Option<u16>) -> Result<Config, StartError> {
    configuration::judge(env, Role::SandboxEgress).map_err(StartError::Settings)?;
    let settings = EgressSettings::from_env(env).map_err(StartError::Settings)?;
    let policy = HostPolicy::parse(&settings.allowlist).map_err(|why| StartError::Settings(unusable(&why)))?;
    Ok(Config {
        policy,
        max_clients: settings.max_clients as usize,
        per_client: settings.per_session,
        connect_ports: settings.connect_ports,
        idle: settings.idle,
        listen: Config::everywhere(port.unwrap_or(Config::PORT)),
        dns: Config::everywhere(DNS),
        skip_wall: settings.skip_firewall,
        resolv_conf: PathBuf::from(RESOLV_CONF),
    })
}

fn unusable(why: &BadAllowlist) -> EnvProblems {
    let fix = "Correct it: a host name, `*.` and a host name, or a regular expression";
    let variable = registry::SANDBOX_EGRESS_ALLOWLIST.name;
    EnvProblems(vec![EnvProblem::new(Severity::Error, variable, format!("cannot be used: {why}"), fix)])
}
