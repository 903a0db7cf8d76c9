//! What the way out of sandboxes is built from.

use std::time::Duration;

use crate::reader::{EnvProblems, EnvReader, EnvSource};
use crate::registry as var;

/// Settings of the role `sandbox-egress`.
#[derive(Debug, Clone)]
pub struct EgressSettings {
    /// The patterns of hosts as they are written; empty admits every public host.
    pub allowlist: String,
    /// Connections of all sessions at the same time.
    pub max_clients: u32,
    /// Connections of one session at the same time; `None` = any number.
    pub per_session: Option<u32>,
    /// Ports of tunnels.
    pub connect_ports: Vec<u16>,
    /// How long a connection may be silent.
    pub idle: Duration,
    /// Whether there is no packet filter (development only).
    pub skip_firewall: bool,
}

impl EgressSettings {
    /// Reads everything at once.
    ///
    /// # Errors
    /// Every variable that keeps the role from starting, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        let allowlist = env.text(&var::SANDBOX_EGRESS_ALLOWLIST).unwrap_or_default();
        let max_clients = env.integer(&var::SANDBOX_EGRESS_MAX_CLIENTS);
        let per_session = env.integer(&var::SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION);
        let connect_ports = env.list(&var::SANDBOX_EGRESS_CONNECT_PORTS);
        let idle = env.integer(&var::SANDBOX_EGRESS_IDLE_SECONDS);
        let skip_firewall = env.switch(&var::TALE_SKIP_SSRF_FIREWALL).unwrap_or(false);
        let settings = (|| {
            let per_session = u32::try_from(per_session?).ok()?;
            Some(Self {
                allowlist,
                max_clients: u32::try_from(max_clients?).ok()?,
                per_session: (per_session != 0).then_some(per_session),
                connect_ports: connect_ports?.iter().filter_map(|port| port.parse().ok()).collect(),
                idle: Duration::from_secs(idle?),
                skip_firewall,
            })
        })();
        env.finish(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{MapEnv, Severity};
    use crate::registry::Role;
    use crate::{Environment, Scope, check};

    #[test]
    fn an_empty_environment_is_open_and_bounded() {
        let settings = EgressSettings::from_env(&MapEnv::default()).unwrap();
        assert_eq!((settings.max_clients, settings.per_session, settings.idle.as_secs()), (2_000, Some(256), 600));
        assert_eq!((settings.allowlist.as_str(), settings.connect_ports), ("", vec![443]));
        assert!(!settings.skip_firewall);
    }

    #[test]
    fn a_limit_that_is_mistyped_is_never_no_limit() {
        for (name, value) in [
            ("SANDBOX_EGRESS_MAX_CLIENTS", "0"),
            ("SANDBOX_EGRESS_MAX_CLIENTS", "abc"),
            ("SANDBOX_EGRESS_MAX_CLIENTS", "-1"),
            ("SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION", "4294967296"),
            ("SANDBOX_EGRESS_CONNECT_PORTS", "443,https"),
            ("SANDBOX_EGRESS_CONNECT_PORTS", "0"),
            ("SANDBOX_EGRESS_IDLE_SECONDS", "0"),
        ] {
            let problem = EgressSettings::from_env(&MapEnv::of([(name, value)])).unwrap_err().to_string();
            assert!(problem.contains(name) && problem.contains(value), "{problem}");
        }
        for (name, value) in
            [("SANDBOX_EGRESS_MAX_CLIENTS", "010"), ("SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION", "00")]
        {
            let env = Environment::of_map(&MapEnv::of([(name, value)]));
            let found = check(&env, Role::SandboxEgress, Scope::Here);
            assert!(found.iter().any(|one| one.severity == Severity::Error && one.variable == name), "{found:?}");
        }
        let off = EgressSettings::from_env(&MapEnv::of([("SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION", "0")])).unwrap();
        assert_eq!(off.per_session, None);
    }
}
