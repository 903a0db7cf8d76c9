//! Enterprise SSO: people of an organization sign in at its identity provider (SSO-1…23), by OpenID Connect, OAuth 2.0
//! or SAML.
//!
//! An organization has one connection. Whoever runs its provider can sign in as any of its members, so such a session
//! opens that organization only, unless the account is the provider's own: it has no password and belongs nowhere else.

mod claims;
mod config;
mod flow;
mod jws;
mod oauth2;
mod places;
mod provider;
pub mod rotation;
pub mod saml;
mod seat;
mod teams;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, SsoConnectionId};
use tale_core::{Code, Problem};
use tale_db::hints::Topic;

pub use config::{ClaimPaths, Config, ConnectionForm, Protocol, Rule};
pub use flow::{Begun, FLOW_LIFETIME, Refused, Returned, SsoEntry};
pub use oauth2::OAuth2Settings;
pub use places::Places;
pub(crate) use provider::Providers;

use crate::caller::Caller;
use crate::fields;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::store::sso::ConnectionRow;
use crate::trail::{self, Change};
use provider::{Endpoints, Exchange, ProviderError};
use saml::SamlSettings;

/// Most connections that the sign-in page lists.
const MAX_OFFERED: i64 = 100;
/// The code of a test: none that a provider gave.
const TEST_CODE: &str = "tale-connection-test";

/// How token endpoints say that they do not take the client: the two words of the standard, and one that is spread.
const CLIENT_REFUSED: [&str; 3] = ["invalid_client", "unauthorized_client", "incorrect_client_credentials"];

/// An organization's connection, as its admins see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The connection.
    pub id: SsoConnectionId,
    /// Its name in the sign-in page.
    pub display_name: String,
    /// Whether people sign in with it.
    pub enabled: bool,
    /// What people are whom no rule matches.
    pub default_role: Role,
    /// Whose addresses sign in with it; none = all.
    pub domains: Vec<String>,
    /// The rest; `None`: what is stored cannot be read.
    pub config: Option<Config>,
    /// Whether a client secret is stored, or with SAML a private key.
    pub has_secret: bool,
    /// How many people get in with it and in no other way.
    pub only_way_of: u64,
}

/// A connection in the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The connection.
    pub id: SsoConnectionId,
    /// Its name.
    pub display_name: String,
}

/// The connections that somebody can choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// By name.
    pub connections: Vec<Offered>,
    /// Whether there are connections that are found by an address only.
    pub by_address: bool,
}

/// How far the test of a connection came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// What the issuer says about itself can be used; with SAML and OAuth 2.0: the address that browsers are sent to
    /// answers.
    pub discovery: Result<(), String>,
    /// Its keys can be used; not tried without the former. With SAML: a certificate is valid now. With OAuth 2.0: the
    /// userinfo address answers.
    pub keys: Option<Result<(), String>>,
    /// It takes the client's secret; not tried without the first, nor with SAML.
    pub credentials: Option<Result<(), String>>,
}

fn secret_context(org: OrgId) -> String {
    format!("sso_connections.secret:{org}")
}

fn unreadable() -> Problem {
    Problem::new(
        Code::SsoConfigUnreadable,
        "The stored connection cannot be read, and is not overwritten: it is damaged, or was encrypted with another key. Restore the key, or remove the connection and set it up again.",
    )
}

/// What is stored, opened.
struct Opened {
    row: ConnectionRow,
    config: Config,
    secret: Option<SecretString>,
}

impl Opened {
    /// The organization at whose own address answers come back; `None`: at the one that connections share.
    fn own_callback(&self) -> Option<OrgId> {
        self.config.own_callback.then_some(self.row.org_id)
    }
}

impl Identity {
    fn open(&self, row: ConnectionRow) -> Result<Opened, Problem> {
        let config = Config::deserialize(&row.config).map_err(|_| unreadable())?;
        let open = |sealed: &String| self.0.cipher.open(&secret_context(row.org_id), sealed);
        let secret = row.secret.as_ref().map(open).transpose().map_err(|_| unreadable())?;
        Ok(Opened { row, config, secret: secret.map(SecretString::from) })
    }

    async fn stored(&self, conn: &mut PgConnection, org: OrgId) -> Result<Option<Opened>, Problem> {
        store::sso::of_org(conn, org).await?.map(|row| self.open(row)).transpose()
    }

    /// The organization's connection.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn sso_connection(&self, caller: &Caller) -> Result<Option<Connection>, Problem> {
        caller.require(Capability::SignInManage)?;
        let mut conn = self.0.db.acquire().await?;
        let Some(row) = store::sso::of_org(&mut conn, caller.org).await? else { return Ok(None) };
        let config = self.open(row.clone()).ok().map(|opened| opened.config);
        let shut_out = store::members::ways_in(&mut conn, caller.org).await?.shut_out;
        Ok(Some(Connection {
            id: row.id,
            display_name: row.display_name,
            enabled: row.enabled,
            default_role: row.default_role,
            domains: row.domains,
            has_secret: row.secret.is_some(),
            only_way_of: shut_out.unsigned_abs(),
            config,
        }))
    }

    /// Saves the organization's connection. Sign-ins under way end when it is another provider or client.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY`, `INVALID_URL`, `PRIVATE_HOST_BLOCKED`,
    /// `sso_config_unreadable` when what is stored cannot be read, `SSO_LAST_WAY_IN` when no owner or admin gets in
    /// without the provider that goes, `sso_sp_key_required` when assertions must be encrypted and there is no private key.
    pub async fn save_sso_connection(&self, caller: &Caller, form: ConnectionForm) -> Result<(), Problem> {
        caller.require(Capability::SignInManage)?;
        let form = form.judged(self.0.providers.policy())?;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        let before = self.stored(&mut tx, caller.org).await?;
        let shuts = |before: &Opened| !form.enabled || !same_provider(&before.config, &form.config);
        if before.as_ref().is_some_and(|before| before.row.enabled && shuts(before)) {
            self.keep_a_way_in(&mut tx, caller.org).await?;
        }
        let secret = secret_of(&form, before.as_ref())?;
        if let Some(settings) = &form.config.saml {
            settings.fit(secret.as_ref().map(ExposeSecret::expose_secret))?;
        }
        let sealed = match (&form.client_secret, &before) {
            // What is kept stays as it is sealed.
            (None, Some(before)) if secret.is_some() => before.row.secret.clone(),
            _ => secret
                .map(|secret| self.0.cipher.seal(&secret_context(caller.org), secret.expose_secret()))
                .transpose()
                .map_err(Problem::internal)?,
        };
        let same = before.as_ref().filter(|before| same_provider(&before.config, &form.config));
        let config = serde_json::to_value(&form.config).map_err(Problem::internal)?;
        let new = store::sso::NewConnection {
            id: same.map_or_else(SsoConnectionId::new, |before| before.row.id),
            protocol: form.config.protocol.text(),
            display_name: &form.display_name,
            enabled: form.enabled,
            default_role: form.default_role,
            domains: &form.domains,
            config: &config,
            secret: sealed.as_deref(),
            at: self.now(),
        };
        store::sso::put(&mut tx, caller.org, &new).await?;
        let action = if before.is_some() { "sso.connection_updated" } else { "sso.connection_created" };
        let change = Change::organization(action)
            .on("sso_connection", new.id)
            .named(&form.display_name)
            .with("enabled", form.enabled)
            .with("issuer", form.config.issuer.as_str());
        let change = match &before {
            Some(before) => change.with("fields", changed_fields(before, &form)),
            None => change,
        };
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Removes the connection with its secret. Sessions that began with it go on (SSO-7).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `SSO_NOT_CONFIGURED`, `SSO_LAST_WAY_IN`.
    pub async fn remove_sso_connection(&self, caller: &Caller) -> Result<(), Problem> {
        caller.require(Capability::SignInManage)?;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        if store::sso::of_org(&mut tx, caller.org).await?.is_some_and(|row| row.enabled) {
            self.keep_a_way_in(&mut tx, caller.org).await?;
        }
        let name = store::sso::delete(&mut tx, caller.org).await?;
        let name = name.ok_or_else(|| {
            Problem::new(Code::SsoNotConfigured, "This organization has no connection with an identity provider.")
        })?;
        let change = Change::organization("sso.connection_removed").on("organization", caller.org).named(&name);
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Tries what a form says, without saving it: what the issuer says about itself, its keys, and whether it takes
    /// the client's secret (SSO-5). `places` says which address is registered with the provider.
    ///
    /// # Errors
    /// As [`Identity::save_sso_connection`].
    pub async fn test_sso_connection(
        &self,
        caller: &Caller,
        form: ConnectionForm,
        places: &Places,
    ) -> Result<Tested, Problem> {
        caller.require(Capability::SignInManage)?;
        let form = form.judged(self.0.providers.policy())?;
        let before = match form.client_secret {
            Some(_) => None,
            None => {
                let mut conn = self.0.db.acquire().await?;
                self.stored(&mut conn, caller.org).await?
            }
        };
        let secret = secret_of(&form, before.as_ref())?;
        if let Some(settings) = &form.config.saml {
            settings.fit(secret.as_ref().map(ExposeSecret::expose_secret))?;
            return Ok(self.tested_by_saml(settings).await);
        }
        let callback = places.callback(form.config.own_callback.then_some(caller.org));
        if let Some(settings) = &form.config.oauth2 {
            return Ok(self.tested_by_oauth2(&form.config, settings, secret.as_ref(), &callback).await);
        }
        let found = match self.0.providers.discover_anew(&form.config.issuer).await {
            Ok(found) => found,
            Err(error) => {
                return Ok(Tested { discovery: Err(error.to_string()), keys: None, credentials: None });
            }
        };
        let keys = self.0.providers.keys_anew(&found.jwks_uri).await.map(drop).map_err(|error| error.to_string());
        let credentials = self.try_client(&found.endpoints(), &form.config, secret.as_ref(), &callback).await;
        Ok(Tested { discovery: Ok(()), keys: Some(keys), credentials: Some(credentials) })
    }

    /// A code that nobody gave is refused, but only after the client was believed.
    async fn try_client(
        &self,
        endpoints: &Endpoints,
        config: &Config,
        secret: Option<&SecretString>,
        callback: &str,
    ) -> Result<(), String> {
        // As long as the standard wants it.
        let verifier = tale_core::crypto::random_token(32);
        let exchange = Exchange { code: TEST_CODE, verifier: &verifier, callback };
        match self.0.providers.exchange(endpoints, config, secret, &exchange).await {
            Ok(_) => Ok(()),
            Err(ProviderError::Token(denial)) if !CLIENT_REFUSED.contains(&denial.error.as_str()) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The connections that the sign-in page offers: those for the domain of `email`, or without one those for any
    /// address. Nothing is said about accounts.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sso_offer(&self, email: Option<&str>) -> Result<Offer, Problem> {
        let domain = email.and_then(|text| fields::email(text).ok());
        let domain = domain.as_deref().and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
        if email.is_some() && domain.is_none() {
            return Ok(Offer::default());
        }
        let mut conn = self.0.db.acquire().await?;
        let (any, by_address) = store::sso::any_enabled(&mut conn).await?;
        if !any {
            return Ok(Offer::default());
        }
        let rows = store::sso::offered(&mut conn, domain, MAX_OFFERED).await?;
        let connections = rows.into_iter().map(|row| Offered { id: row.id, display_name: row.display_name }).collect();
        Ok(Offer { connections, by_address })
    }

    /// Whether anybody signs in with an identity provider.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn offers_sso(&self) -> Result<bool, Problem> {
        let mut conn = self.0.db.acquire().await?;
        Ok(store::sso::any_enabled(&mut conn).await?.0)
    }
}

/// Whether both mean the same client of the same provider, to which a secret may go.
fn same_client(before: &Config, after: &Config) -> bool {
    fn party(config: &Config) -> (Protocol, &str, Result<[&str; 3], &str>) {
        let provider = config.oauth2.as_ref().map(OAuth2Settings::addresses).ok_or(config.issuer.as_str());
        (config.protocol, config.client_id.as_str(), provider)
    }
    party(before) == party(after)
}

/// Whether both mean the same client and know people there by the same names.
fn same_provider(before: &Config, after: &Config) -> bool {
    same_client(before, after) && before.issuer == after.issuer
}

/// The secret of a form: what was entered, else what is stored and may stay.
fn secret_of(form: &ConnectionForm, before: Option<&Opened>) -> Result<Option<SecretString>, Problem> {
    if let Some(secret) = &form.client_secret {
        return Ok(Some(secret.clone()).filter(|secret| !secret.is_empty()).map(SecretString::from));
    }
    let Some(before) = before else { return Ok(None) };
    let by_saml = |config: &Config| config.protocol == Protocol::Saml;
    if by_saml(&before.config) || by_saml(&form.config) {
        // A private key is not sent to anybody, and is no client's secret.
        return Ok(before.secret.clone().filter(|_| by_saml(&before.config) && by_saml(&form.config)));
    }
    kept_for(&before.config, &form.config, before.secret.is_some())?;
    Ok(before.secret.clone())
}

/// A stored secret is sent only to the provider that it was entered for.
fn kept_for(before: &Config, after: &Config, has_secret: bool) -> Result<(), Problem> {
    if has_secret && !same_client(before, after) {
        return Err(Problem::invalid_field(
            "clientSecret",
            "must be entered again, because the provider or the client is another one",
        ));
    }
    Ok(())
}

/// Whether a save changes something that only SAML has.
fn of_saml<T: PartialEq>(old: &Config, new: &Config, part: impl Fn(&SamlSettings) -> &T) -> bool {
    old.saml.as_ref().map(&part) != new.saml.as_ref().map(&part)
}

/// Whether a save changes something that only OAuth 2.0 has.
fn of_oauth2<T: PartialEq>(old: &Config, new: &Config, part: impl Fn(&OAuth2Settings) -> &T) -> bool {
    old.oauth2.as_ref().map(&part) != new.oauth2.as_ref().map(&part)
}

/// The names of the fields that a save changes.
fn changed_fields(before: &Opened, after: &ConnectionForm) -> Value {
    let (old, new) = (&before.config, &after.config);
    let fields = [
        ("displayName", before.row.display_name != after.display_name),
        ("enabled", before.row.enabled != after.enabled),
        ("defaultRole", before.row.default_role != after.default_role),
        ("domains", before.row.domains != after.domains),
        ("protocol", old.protocol != new.protocol),
        ("issuer", old.issuer != new.issuer),
        ("clientId", old.client_id != new.client_id),
        (if new.saml.is_some() { "spPrivateKey" } else { "clientSecret" }, after.client_secret.is_some()),
        ("signOnUrl", of_saml(old, new, |saml| &saml.sign_on_url)),
        ("certificates", of_saml(old, new, |saml| &saml.certificates)),
        ("requireSignedAssertions", of_saml(old, new, |saml| &saml.require_signed_assertions)),
        ("requireEncryptedAssertions", of_saml(old, new, |saml| &saml.require_encrypted_assertions)),
        ("spCertificate", of_saml(old, new, |saml| &saml.sp_certificate)),
        ("authorizationUrl", of_oauth2(old, new, |oauth2| &oauth2.authorization_url)),
        ("tokenUrl", of_oauth2(old, new, |oauth2| &oauth2.token_url)),
        ("userInfoUrl", of_oauth2(old, new, |oauth2| &oauth2.user_info_url)),
        ("subject", of_oauth2(old, new, |oauth2| &oauth2.subject)),
        ("emailVerified", of_oauth2(old, new, |oauth2| &oauth2.email_verified)),
        ("secretInBody", of_oauth2(old, new, |oauth2| &oauth2.secret_in_body)),
        ("scopes", old.scopes != new.scopes),
        ("claims", old.claims != new.claims),
        ("autoAssign", old.auto_assign != new.auto_assign),
        ("rules", old.rules != new.rules),
        ("teamSync", old.team_sync != new.team_sync),
        ("excludedGroups", old.excluded_groups != new.excluded_groups),
        ("ownCallback", old.own_callback != new.own_callback),
    ];
    json!(fields.iter().filter(|(_, changed)| *changed).map(|(name, _)| *name).collect::<Vec<_>>())
}
