//! What an organization says about its identity provider: its form, its bounds, how it is stored.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::net::{HostPolicy, check_entered, invalid_url};
use url::Url;

use super::oauth2::OAuth2Settings;
use super::saml::{MAX_KEY, SamlSettings};
use crate::fields;
use crate::permissions::Role;

/// Longest name in the sign-in page.
const MAX_DISPLAY_NAME: usize = 100;
/// Longest address of an issuer.
const MAX_ISSUER: usize = 500;
/// Longest client id, path of a claim or value of a rule.
const MAX_TEXT: usize = 255;
/// Longest client secret.
const MAX_SECRET: usize = 1_000;
/// Most scopes.
const MAX_SCOPES: usize = 30;
/// Most rules.
const MAX_RULES: usize = 100;
/// Most domains.
const MAX_DOMAINS: usize = 50;
/// Most excluded groups.
const MAX_EXCLUDED: usize = 200;
/// Tenants of Entra that stand for everybody's.
const EVERY_TENANT: [&str; 3] = ["common", "organizations", "consumers"];
/// Beginnings of scopes that open files, which have a consent of their own (SSO-9).
const FILE_SCOPES: [&str; 4] =
    ["files.", "sites.", "https://graph.microsoft.com/files.", "https://www.googleapis.com/auth/drive"];

/// How the provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenID Connect.
    Oidc,
    /// OpenID Connect as Microsoft Entra ID speaks it.
    Entra,
    /// SAML 2.0.
    Saml,
    /// OAuth 2.0 without OpenID Connect.
    OAuth2,
}

impl Protocol {
    /// As it is stored.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Oidc => "oidc",
            Self::Entra => "entra",
            Self::Saml => "saml",
            Self::OAuth2 => "oauth2",
        }
    }
}

/// Where the provider says what: paths of claims, with dots into nested ones, or the names of attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimPaths {
    /// The address.
    pub email: String,
    /// The display name.
    pub name: String,
    /// The groups.
    pub groups: String,
    /// The roles.
    pub roles: String,
}

/// People in whose claim `claim` the text `value` stands have this role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// `groups`, `roles`, or the path of any claim.
    pub claim: String,
    /// What must stand there.
    pub value: String,
    /// Never owner.
    pub role: Role,
}

/// What the provider is and what is made of its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// How it speaks.
    pub protocol: Protocol,
    /// Its issuer; with SAML its entity id; with OAuth 2.0 what [`OAuth2Settings`] make of the userinfo address, whatever
    /// a form says.
    pub issuer: String,
    /// Who this Tale is to it; empty with SAML.
    pub client_id: String,
    /// What is asked for; nothing with SAML.
    pub scopes: Vec<String>,
    /// Where it says what.
    pub claims: ClaimPaths,
    /// Whether the rules decide about roles, at each sign-in.
    pub auto_assign: bool,
    /// The first that matches counts.
    pub rules: Vec<Rule>,
    /// Whether people are put into the teams that their groups are called.
    pub team_sync: bool,
    /// Groups that have nothing to do with teams.
    pub excluded_groups: Vec<String>,
    /// Whether answers come back to an address of the organization and not to the one that connections share; never
    /// with SAML, whose addresses always are the organization's.
    #[serde(default)]
    pub own_callback: bool,
    /// What SAML needs beside that; `None` with everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml: Option<SamlSettings>,
    /// What OAuth 2.0 needs beside that; `None` with everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2Settings>,
}

/// A connection to save.
#[derive(Clone)]
pub struct ConnectionForm {
    /// Its name in the sign-in page, which everybody reads.
    pub display_name: String,
    /// Whether people sign in with it.
    pub enabled: bool,
    /// What people are whom no rule matches.
    pub default_role: Role,
    /// Whose addresses sign in with it; none = all.
    pub domains: Vec<String>,
    /// The rest.
    pub config: Config,
    /// What proves that this Tale is the client, and with SAML the private key (PEM) that assertions are encrypted for;
    /// `None` = what is stored, empty = it has none.
    pub client_secret: Option<String>,
}

pub(super) fn line(path: &str, text: &str) -> Result<String, Problem> {
    fields::short_text(path, text, MAX_TEXT)
}

fn at_most<T>(path: &str, list: &[T], most: usize) -> Result<(), Problem> {
    if list.len() > most {
        return Err(Problem::invalid_field(path, &format!("must have at most {most} entries")));
    }
    Ok(())
}

fn given_role(path: &str, role: Role) -> Result<Role, Problem> {
    if matches!(role, Role::Owner | Role::Disabled) {
        return Err(Problem::invalid_field(path, "must be one of \"member\", \"editor\", \"developer\", \"admin\""));
    }
    Ok(role)
}

fn issuer(text: &str, protocol: Protocol, policy: HostPolicy) -> Result<String, Problem> {
    let text = fields::short_text("issuer", text, MAX_ISSUER)?;
    let url =
        Url::parse(&text).map_err(|_| invalid_url("issuer", "must be an address such as https://login.example.org"))?;
    check_entered("issuer", &url, policy)?;
    let tenant = url.path_segments().and_then(|mut parts| parts.next().map(str::to_lowercase)).unwrap_or_default();
    if protocol == Protocol::Entra && (tenant.is_empty() || EVERY_TENANT.contains(&tenant.as_str())) {
        return Err(invalid_url(
            "issuer",
            "must name your tenant, such as https://login.microsoftonline.com/<tenant id>/v2.0",
        ));
    }
    Ok(text)
}

/// The name of a provider that speaks SAML, which need not be an address.
fn entity_id(text: &str) -> Result<String, Problem> {
    let text = fields::short_text("issuer", text, MAX_ISSUER)?;
    if text.contains(char::is_whitespace) {
        return Err(Problem::invalid_field("issuer", "must not contain spaces"));
    }
    Ok(text)
}

fn scope(text: &str) -> Result<String, Problem> {
    let scope = line("scopes", text)?;
    if !scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\') {
        return Err(Problem::invalid_field("scopes", "must be words without spaces"));
    }
    let lower = scope.to_lowercase();
    if FILE_SCOPES.iter().any(|files| lower.starts_with(files)) {
        return Err(Problem::invalid_field("scopes", "must not open files; importing them has a consent of its own"));
    }
    Ok(scope)
}

fn domain(text: &str) -> Result<String, Problem> {
    let typed = text.trim().trim_start_matches('@').to_lowercase();
    fields::email(&format!("x@{typed}"))
        .ok()
        .and_then(|email| Some(email.split_once('@')?.1.to_owned()))
        .filter(|domain| domain.contains('.'))
        .ok_or_else(|| Problem::invalid_field("domains", "must be domains such as example.org"))
}

impl ConnectionForm {
    /// The form with everything trimmed, once all of it is known to fit.
    pub(super) fn judged(self, policy: HostPolicy) -> Result<Self, Problem> {
        let config = self.config;
        at_most("domains", &self.domains, MAX_DOMAINS)?;
        at_most("scopes", &config.scopes, MAX_SCOPES)?;
        at_most("rules", &config.rules, MAX_RULES)?;
        at_most("excludedGroups", &config.excluded_groups, MAX_EXCLUDED)?;
        let by_saml = config.protocol == Protocol::Saml;
        let by_oauth2 = config.protocol == Protocol::OAuth2;
        let mut scopes = match by_saml {
            true => Vec::new(),
            false => config.scopes.iter().map(|text| scope(text)).collect::<Result<Vec<_>, _>>()?,
        };
        if !by_saml && !by_oauth2 && !scopes.iter().any(|scope| scope == "openid") {
            scopes.insert(0, "openid".to_owned());
        }
        let rules = config.rules.iter().map(|rule| {
            Ok(Rule {
                claim: line("rules", &rule.claim)?,
                value: line("rules", &rule.value)?,
                role: given_role("rules", rule.role)?,
            })
        });
        let (secret, longest) = if by_saml { ("spPrivateKey", MAX_KEY) } else { ("clientSecret", MAX_SECRET) };
        if self.client_secret.as_ref().is_some_and(|text| text.len() > longest) {
            return Err(Problem::invalid_field(secret, &format!("must have at most {longest} bytes")));
        }
        let saml = match (by_saml, config.saml) {
            (true, Some(settings)) => Some(settings.judged(policy)?),
            (true, None) => return Err(Problem::invalid_field("saml", "is required")),
            (false, _) => None,
        };
        let oauth2 = match (by_oauth2, config.oauth2) {
            (true, Some(settings)) => Some(settings.judged(policy)?),
            (true, None) => return Err(Problem::invalid_field("oauth2", "is required")),
            (false, _) => None,
        };
        let unique: BTreeSet<String> = self.domains.iter().map(|text| domain(text)).collect::<Result<_, Problem>>()?;
        Ok(Self {
            display_name: fields::short_text("displayName", &self.display_name, MAX_DISPLAY_NAME)?,
            enabled: self.enabled,
            default_role: given_role("defaultRole", self.default_role)?,
            domains: unique.into_iter().collect(),
            client_secret: self.client_secret.map(|secret| secret.trim().to_owned()),
            config: Config {
                protocol: config.protocol,
                issuer: match &oauth2 {
                    Some(settings) => settings.issuer(),
                    None if by_saml => entity_id(&config.issuer)?,
                    None => issuer(&config.issuer, config.protocol, policy)?,
                },
                client_id: if by_saml { String::new() } else { line("clientId", &config.client_id)? },
                claims: ClaimPaths {
                    email: line("claims.email", &config.claims.email)?,
                    name: line("claims.name", &config.claims.name)?,
                    groups: line("claims.groups", &config.claims.groups)?,
                    roles: line("claims.roles", &config.claims.roles)?,
                },
                rules: rules.collect::<Result<_, Problem>>()?,
                excluded_groups: config
                    .excluded_groups
                    .iter()
                    .map(|text| line("excludedGroups", text))
                    .collect::<Result<_, _>>()?,
                scopes,
                auto_assign: config.auto_assign,
                team_sync: config.team_sync,
                own_callback: config.own_callback && !by_saml,
                saml,
                oauth2,
            },
        })
    }
}
