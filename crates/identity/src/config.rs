//! What the deployment decides about identity.

use std::time::Duration;

use secrecy::SecretString;
use tale_core::crypto::FieldCipher;
use tale_core::net::HostPolicy;
use tale_env::Settings;
use tale_governance::policies::PasswordRules;
use tale_orgfiles::ConfigStore;

use crate::factors::{FactorLabels, RelyingParty};
use crate::lockout::LoginPolicy;
use crate::password::HashCost;

/// The settings of this room. `Default` is what an empty environment means.
#[derive(Debug, Clone, Default)]
pub struct IdentityConfig {
    /// Whether sign-up stays open after the first account (ACC-8).
    pub allow_open_sign_up: bool,
    /// Who may create organizations, lower-cased; `None` = everybody (ORG-1).
    pub organization_creators: Option<Vec<String>>,
    /// The preset setup token; `None` = a fresh one per start (STP-5).
    pub setup_token: Option<SecretString>,
    /// How long an unused session lives at most (SES-3).
    pub session_idle_timeout: Option<Duration>,
    /// How long a request may reuse the session from a signed cookie; `None` = not at all (DCF-192).
    pub session_cookie_cache: Option<Duration>,
    /// Key under which the tokens of sessions are stored: another key ends every session (DCF, 4).
    pub session_secret: Option<SecretString>,
    /// What the secrets of signed assertions are derived from; `None` = from something fresh per start.
    pub assertion_secret: Option<SecretString>,
    /// Key of the pseudonyms in failed sign-ins (SIN-8).
    pub audit_pepper: Option<SecretString>,
    /// What encrypts the secrets of authenticator apps and identity providers, and sign-ins under way there; `None` =
    /// something fresh per start.
    pub cipher: Option<FieldCipher>,
    /// What authenticator apps and files of backup codes are called.
    pub factor_labels: FactorLabels,
    /// For whom passkeys are; `None` = there are none.
    pub relying_party: Option<RelyingParty>,
    /// What new passwords must be where no organization says it.
    pub password_policy: PasswordRules,
    /// How wrong passwords are slowed down where no organization says it.
    pub login_policy: LoginPolicy,
    /// What hashing costs.
    pub hash_cost: HashCost,
    /// Which hosts identity providers may be on.
    pub provider_hosts: HostPolicy,
    /// Where operators may edit branding; `None` = nowhere.
    pub files: Option<ConfigStore>,
}

impl IdentityConfig {
    /// From the environment, without the cipher and the files, which its caller has.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            allow_open_sign_up: settings.allow_open_sign_up,
            organization_creators: settings.organization_creators.clone(),
            setup_token: settings.setup_token.clone(),
            session_idle_timeout: settings.session_idle_timeout,
            session_cookie_cache: settings.session_cookie_cache,
            session_secret: Some(settings.secrets.auth.clone()),
            assertion_secret: Some(settings.secrets.instance_hex.clone()),
            audit_pepper: settings.audit_pepper.clone(),
            factor_labels: FactorLabels::new(
                settings.totp_client_name.as_deref(),
                settings.totp_environment.as_deref(),
            ),
            relying_party: RelyingParty::of(&settings.site.url, &settings.site.additional),
            provider_hosts: match settings.allow_private_provider_hosts {
                true => HostPolicy::PrivateAllowed,
                false => HostPolicy::PublicOnly,
            },
            ..Self::default()
        }
    }
}
