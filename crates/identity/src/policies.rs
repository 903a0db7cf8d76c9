//! What a person's organizations lay down about passwords and sign-ins: the strictest of all of them counts (PWD-2,
//! LCK-6). What nobody laid down, and what cannot be read, is what the deployment says (POL-5).

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::Problem;
use tale_core::ids::{OrgId, UserId};
use tale_governance::policies::{Key, LoginRules, PasswordRules};

use crate::lockout::LoginPolicy;
use crate::network::TrustedProxies;
use crate::service::{Device, Identity};
use crate::store;

fn read<P: DeserializeOwned>(stored: Option<Value>) -> Option<P> {
    stored.and_then(|value| serde_json::from_value(value).ok())
}

/// All of them together; `None`: the person is in no organization.
fn strictest<P: DeserializeOwned + Clone>(stored: Vec<Option<Value>>, default: &P, and: fn(P, P) -> P) -> Option<P> {
    stored.into_iter().map(|one| read(one).unwrap_or_else(|| default.clone())).reduce(and)
}

impl Identity {
    /// What a new password of a person must be.
    pub(crate) async fn password_rules(&self, conn: &mut PgConnection, user: UserId) -> Result<PasswordRules, Problem> {
        let default = self.0.config.password_policy;
        let stored = store::policies::of_person(conn, user, Key::PasswordPolicy.text()).await?;
        Ok(strictest(stored, &default, PasswordRules::and).unwrap_or(default))
    }

    /// What the password of a new account in an organization must be.
    pub(crate) async fn password_rules_of(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
    ) -> Result<PasswordRules, Problem> {
        let stored = store::policies::of_organization(conn, org, Key::PasswordPolicy.text()).await?;
        Ok(read(stored).unwrap_or(self.0.config.password_policy))
    }

    /// The device as the organizations of whoever an address belongs to see it: behind the proxies that all of them
    /// trust (LCK-7). Without an account, and without a proxy, it stays what it is.
    pub(crate) async fn placed(
        &self,
        conn: &mut PgConnection,
        email: &str,
        device: &Device,
    ) -> Result<Device, Problem> {
        let Some(hops) = &device.hops else { return Ok(device.clone()) };
        let stored = store::policies::of_address(conn, email, Key::LoginPolicy.text()).await?;
        if stored.iter().all(Option::is_none) {
            return Ok(device.clone());
        }
        let Some(rules) = strictest(stored, &LoginRules::default(), LoginRules::and) else { return Ok(device.clone()) };
        let trusted = TrustedProxies::parse(&rules.trusted_proxies).unwrap_or_default();
        Ok(Device { client: hops.client(&trusted), ..device.clone() })
    }

    /// How wrong passwords for an address are slowed down. One without an account is treated as the deployment says.
    pub(crate) async fn login_rules(&self, conn: &mut PgConnection, email: &str) -> Result<LoginPolicy, Problem> {
        let default = &self.0.config.login_policy;
        let rules = LoginRules {
            enabled: true,
            max_attempts_before_lockout: default.max_attempts,
            backoff_schedule: default
                .backoff
                .iter()
                .map(|block| u64::try_from(block.as_millis()).unwrap_or(u64::MAX))
                .collect(),
            ..LoginRules::default()
        };
        let stored = store::policies::of_address(conn, email, Key::LoginPolicy.text()).await?;
        let Some(rules) = strictest(stored, &rules, LoginRules::and) else { return Ok(default.clone()) };
        Ok(LoginPolicy {
            // No row of failures is as long as that: nothing is ever blocked.
            max_attempts: if rules.enabled { rules.max_attempts_before_lockout } else { u32::MAX },
            backoff: rules.backoff_schedule.into_iter().map(Duration::from_millis).collect(),
        })
    }
}
