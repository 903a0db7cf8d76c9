//! A sign-in at an identity provider: away with a question, back with a code (SSO-10…14).
//!
//! What belongs to the question travels in an encrypted cookie, so that asking costs the database nothing and an
//! answer counts only in the browser that asked. Its `state` is spent with the answer: once, in whatever process.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tale_core::crypto::{constant_time_eq, random_token, sha256};
use tale_core::ids::{OrgId, SsoConnectionId};
use tale_core::{Actor, Problem};
use url::Url;

use super::Opened;
use super::claims::{Expected, Person, check};
use super::config::{Config, Protocol};
use super::oauth2::OAuth2Settings;
use super::places::Places;
use super::provider::{Discovery, Endpoints, Exchange, ProviderError, Tokens};
use crate::service::{Device, Identity};
use crate::sessions::SignedIn;
use crate::store;
use crate::trail::{self, Change};

/// How long a sign-in may take.
pub const FLOW_LIFETIME: Duration = Duration::from_secs(600);
/// What the cookie is encrypted for.
const CONTEXT: &str = "sso.flow";
/// Longest code of a provider.
const MAX_CODE: usize = 8_192;
/// Longest page to go on to; a longer one is forgotten.
pub(super) const MAX_NEXT: usize = 1_024;
/// What reading groups at Microsoft Graph needs (SSO-9).
const GRAPH_SCOPE: &str = "GroupMember.Read.All";

/// Why a sign-in leads back to the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// No sign-in is under way in this browser, or another one than the answer belongs to.
    OtherBrowser,
    /// It took too long, was answered before, or the connection changed meanwhile.
    Over,
    /// The organization does not sign in this way, any more or at all.
    SwitchedOff,
    /// The provider does not answer, or cannot be understood.
    Unreachable,
    /// The provider refuses, with its own code.
    ByProvider(String),
    /// What the provider says is not believed.
    NotBelieved,
    /// The provider names no address.
    NoEmail,
    /// The provider says that the address is not proven to be the person's.
    EmailUnverified,
    /// The address is of none of the connection's domains.
    OtherDomain,
    /// The address has an account here, without a seat in the organization (SSO-14).
    NoSeat,
    /// The seat is disabled.
    Disabled,
    /// The address or the identity is linked otherwise (SSO-17).
    LinkedOtherwise,
    /// What the provider says is encrypted in a way that can be broken.
    WeakEncryption,
}

impl Refused {
    /// The name of the sentence in the sign-in page.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::OtherBrowser => "browser_binding",
            Self::Over => "flow_over",
            Self::SwitchedOff => "switched_off",
            Self::Unreachable => "provider_unreachable",
            Self::ByProvider(_) => "provider_refused",
            Self::NotBelieved => "not_believed",
            Self::NoEmail => "no_email",
            Self::EmailUnverified => "email_unverified",
            Self::OtherDomain => "other_domain",
            Self::NoSeat => "no_seat",
            Self::Disabled => "seat_disabled",
            Self::LinkedOtherwise => "linked_otherwise",
            Self::WeakEncryption => "weak_encryption",
        }
    }

    /// The name of the sentence that says what to do.
    #[must_use]
    pub fn recovery(&self) -> &'static str {
        match self {
            Self::OtherBrowser | Self::Over | Self::NotBelieved | Self::ByProvider(_) => "again",
            Self::Unreachable => "later",
            Self::SwitchedOff => "other_way",
            Self::NoEmail
            | Self::EmailUnverified
            | Self::OtherDomain
            | Self::NoSeat
            | Self::Disabled
            | Self::LinkedOtherwise
            | Self::WeakEncryption => "ask_admin",
        }
    }
}

/// A question for the provider.
pub struct Begun {
    /// Where the browser goes.
    pub location: Url,
    /// What it keeps for [`FLOW_LIFETIME`].
    pub cookie: String,
}

/// What the browser brings back.
#[derive(Debug, Clone, Default)]
pub struct Returned {
    /// Which question it answers.
    pub state: Option<String>,
    /// The answer.
    pub code: Option<String>,
    /// Who answers (RFC 9207).
    pub iss: Option<String>,
    /// Why there is no answer.
    pub error: Option<String>,
    /// The same in the provider's words.
    pub error_description: Option<String>,
}

/// What a sign-in at the provider leads to.
#[derive(Debug, Clone)]
pub enum SsoEntry {
    /// A session.
    SignedIn {
        /// The session.
        session: SignedIn,
        /// The page that was asked for, as it was given to [`Identity::begin_sso`].
        next: Option<String>,
    },
    /// Back to the sign-in page.
    Refused(Refused),
}

/// What belongs to a question.
#[derive(Serialize, Deserialize)]
struct Flow {
    state: String,
    nonce: String,
    verifier: String,
    connection: SsoConnectionId,
    callback: String,
    /// Whose address the callback is; `None`: the shared one.
    #[serde(default)]
    own: Option<OrgId>,
    next: Option<String>,
    until: DateTime<Utc>,
}

/// Why an answer is not taken: refused, or broken on our side.
pub(super) enum Stop {
    Refused(Refused),
    Broken(Problem),
}

impl<E: Into<Problem>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

pub(super) fn stop<T>(refused: Refused) -> Result<T, Stop> {
    Err(Stop::Refused(refused))
}

/// The code of a provider's refusal: that of Entra, which stands in the description, else that of the protocol.
fn provider_code(error: &str, description: &str) -> String {
    let entra = description.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| {
        word.strip_prefix("AADSTS")
            .is_some_and(|digits| (4..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()))
    });
    let shown = entra.unwrap_or(error);
    shown.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).take(64).collect()
}

fn asked_url(endpoints: &Endpoints, config: &Config, flow: &Flow) -> Url {
    let mut scopes = config.scopes.clone();
    if config.protocol == Protocol::Entra
        && config.team_sync
        && !scopes.iter().any(|scope| scope.ends_with(GRAPH_SCOPE))
    {
        scopes.push(GRAPH_SCOPE.to_owned());
    }
    let challenge = URL_SAFE_NO_PAD.encode(sha256(flow.verifier.as_bytes()));
    let mut url = endpoints.authorization.clone();
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &config.client_id)
        .append_pair("redirect_uri", &flow.callback)
        .append_pair("state", &flow.state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    if !scopes.is_empty() {
        query.append_pair("scope", &scopes.join(" "));
    }
    // It stands in signed tokens only.
    if config.oauth2.is_none() {
        query.append_pair("nonce", &flow.nonce);
    }
    drop(query);
    url
}

impl Identity {
    /// Begins a sign-in at the provider of `connection`. `places` says where it comes back to, `next` is the page to go
    /// on to.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn begin_sso(
        &self,
        connection: SsoConnectionId,
        places: &Places,
        next: Option<&str>,
    ) -> Result<Result<Begun, Refused>, Problem> {
        settled(self.begun(connection, places, next).await)
    }

    async fn begun(&self, connection: SsoConnectionId, places: &Places, next: Option<&str>) -> Result<Begun, Stop> {
        let opened = self.live(connection).await?;
        let Some(opened) = opened else { return stop(Refused::SwitchedOff) };
        if let Some(settings) = &opened.config.saml {
            return self.asked_by_saml(&opened, settings, places, next);
        }
        let now = self.now();
        let endpoints = match &opened.config.oauth2 {
            Some(settings) => settings.endpoints(self.0.providers.policy()),
            None => self.0.providers.discover(&opened.config.issuer, now).await.map(|found| found.endpoints()),
        };
        let endpoints = match endpoints {
            Ok(endpoints) => endpoints,
            Err(error) => return stop(said(&error)),
        };
        let own = opened.own_callback();
        let flow = Flow {
            state: random_token(32),
            nonce: random_token(32),
            verifier: random_token(32),
            connection,
            callback: places.callback(own),
            own,
            next: next.filter(|next| next.len() <= MAX_NEXT).map(str::to_owned),
            until: now + FLOW_LIFETIME,
        };
        let text = serde_json::to_string(&flow).map_err(Problem::internal)?;
        let cookie = self.0.cipher.seal(CONTEXT, &text).map_err(Problem::internal)?;
        Ok(Begun { location: asked_url(&endpoints, &opened.config, &flow), cookie })
    }

    /// Finishes a sign-in: believes the provider or not, finds or makes the person's seat, begins a session in the
    /// connection's organization. `at` is the organization whose own address took the answer, `None` when the shared one
    /// did. `cookie` is what [`Identity::begin_sso`] gave this browser.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn finish_sso(
        &self,
        at: Option<OrgId>,
        cookie: Option<&str>,
        returned: &Returned,
        device: &Device,
    ) -> Result<SsoEntry, Problem> {
        let done = settled(self.finished(at, cookie, returned, device).await)?;
        Ok(match done {
            Ok((session, next)) => SsoEntry::SignedIn { session, next },
            Err(refused) => SsoEntry::Refused(refused),
        })
    }

    async fn finished(
        &self,
        at: Option<OrgId>,
        cookie: Option<&str>,
        returned: &Returned,
        device: &Device,
    ) -> Result<(SignedIn, Option<String>), Stop> {
        let flow = cookie.and_then(|cookie| self.0.cipher.open(CONTEXT, cookie).ok());
        let flow: Option<Flow> = flow.and_then(|text| serde_json::from_str(&text).ok());
        let state = returned.state.as_deref().unwrap_or_default();
        let Some(flow) = flow.filter(|flow| constant_time_eq(flow.state.as_bytes(), state.as_bytes())) else {
            return stop(Refused::OtherBrowser);
        };
        let now = self.now();
        if now >= flow.until {
            return stop(Refused::Over);
        }
        {
            let mut conn = self.0.db.acquire().await?;
            let spent = sha256(format!("{CONTEXT}:{}", flow.state).as_bytes());
            if !store::factors::spend_challenge(&mut conn, &spent, flow.until).await? {
                return stop(Refused::Over);
            }
        }
        let Some(opened) = self.live(flow.connection).await? else { return stop(Refused::SwitchedOff) };
        let person = match came_back(&opened, &flow, at) {
            Ok(()) => self.asked(&opened, &flow, returned, now).await,
            Err(led_astray) => Err(led_astray),
        };
        let person = match person {
            Ok(person) => person,
            Err((refused, why)) => {
                tracing::info!(connection = %opened.row.id, why, "a sign-in at an identity provider failed");
                self.note_sso_refusal(&opened, None, device, refused.key(), &why).await?;
                return stop(refused);
            }
        };
        match self.take_seat(&opened, &person, device).await? {
            Ok(session) => Ok((session, flow.next)),
            Err(refused) => {
                self.note_sso_refusal(&opened, person.email.as_deref(), device, refused.key(), "").await?;
                stop(refused)
            }
        }
    }

    /// The connection, if it signs people in.
    async fn live(&self, connection: SsoConnectionId) -> Result<Option<Opened>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let row = store::sso::by_id(&mut conn, connection).await?.filter(|row| row.enabled);
        row.map(|row| self.open(row)).transpose()
    }

    /// Who the provider says it is. The error is what the person reads, and what the log does.
    async fn asked(
        &self,
        opened: &Opened,
        flow: &Flow,
        returned: &Returned,
        now: DateTime<Utc>,
    ) -> Result<Person, (Refused, String)> {
        if let Some(settings) = &opened.config.oauth2 {
            return self.described(opened, settings, flow, returned).await;
        }
        let (config, providers) = (&opened.config, &self.0.providers);
        let found = providers.discover(&config.issuer, now).await.map_err(failed)?;
        // An answer of another provider than the one that was asked is not sent on to this one.
        match &returned.iss {
            Some(iss) if *iss != found.issuer => return Err(doubted("response-issuer")),
            None if found.authorization_response_iss_parameter_supported => {
                return Err(doubted("response-issuer-missing"));
            }
            _ => {}
        }
        let tokens = self.redeemed(opened, &found.endpoints(), flow, returned).await?;
        let token = tokens.id_token.as_deref().ok_or_else(|| doubted("no-id-token"))?;
        let claims = providers.verify(&found, token, now).await.map_err(failed)?;
        let expected = Expected { issuer: &found.issuer, client: &config.client_id, nonce: &flow.nonce, now };
        check(&claims, &expected).map_err(doubted)?;
        let person = Person::of(config, claims).map_err(doubted)?;
        self.completed(config, &found, &tokens, person).await.map_err(|why| doubted(&why))
    }

    /// What the provider gives for the code that the browser brings.
    async fn redeemed(
        &self,
        opened: &Opened,
        endpoints: &Endpoints,
        flow: &Flow,
        returned: &Returned,
    ) -> Result<Tokens, (Refused, String)> {
        if let Some(error) = &returned.error {
            let code = provider_code(error, returned.error_description.as_deref().unwrap_or_default());
            return Err((Refused::ByProvider(code.clone()), code));
        }
        let code = returned.code.as_deref().filter(|code| (1..=MAX_CODE).contains(&code.len()));
        let code = code.ok_or_else(|| doubted("no-code"))?;
        let exchange = Exchange { code, verifier: &flow.verifier, callback: &flow.callback };
        let secret = opened.secret.as_ref();
        self.0.providers.exchange(endpoints, &opened.config, secret, &exchange).await.map_err(failed)
    }

    /// Who the holder of the token is by OAuth 2.0 alone: the person whom the userinfo address describes. The code
    /// came with this browser's state and was exchanged with its proof, so the token is of this sign-in.
    async fn described(
        &self,
        opened: &Opened,
        settings: &OAuth2Settings,
        flow: &Flow,
        returned: &Returned,
    ) -> Result<Person, (Refused, String)> {
        if returned.iss.as_deref().is_some_and(|iss| !settings.may_call_itself(iss)) {
            return Err(doubted("response-issuer"));
        }
        let endpoints = settings.endpoints(self.0.providers.policy()).map_err(failed)?;
        let tokens = self.redeemed(opened, &endpoints, flow, returned).await?;
        let token = tokens.access_token.as_deref().ok_or_else(|| doubted("no-access-token"))?;
        let user_info = endpoints.user_info.as_ref().ok_or_else(|| doubted("no-userinfo"))?;
        let said = self.0.providers.holder(user_info, token).await.map_err(failed)?;
        Person::of(&opened.config, said).map_err(doubted)
    }

    /// The person with what the token left out: the userinfo endpoint's claims, and the groups that Graph knows.
    async fn completed(
        &self,
        config: &Config,
        found: &Discovery,
        tokens: &Tokens,
        mut person: Person,
    ) -> Result<Person, String> {
        let (Some(user_info), Some(token)) = (&found.userinfo_endpoint, tokens.access_token.as_deref()) else {
            return Ok(person);
        };
        if config.protocol == Protocol::Entra {
            self.graph(config, user_info, token, &mut person).await;
        }
        let wants = config.auto_assign || config.team_sync;
        if person.email.is_some() && person.name.is_some() && (person.groups.is_some() || !wants) {
            return Ok(person);
        }
        let subject = person.said.get("sub").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let more = self.0.providers.user_info(user_info, token, &subject).await.map_err(|error| error.to_string())?;
        let mut said = more;
        // What is signed counts before what is not.
        said.append(&mut person.said);
        let (groups, teams) = (person.groups, person.teams);
        let whole = Person::of(config, said).map_err(str::to_owned)?;
        Ok(Person { groups: groups.or(whole.groups), teams: teams.or(whole.teams), ..whole })
    }

    /// Adds what groups are called. Without an answer teams stay as they are, and rules see what the token says.
    async fn graph(&self, config: &Config, user_info: &Url, token: &str, person: &mut Person) {
        // Too many groups for a token: it says only where they can be read.
        let overage = person.said.get("_claim_names").and_then(|names| names.get("groups")).is_some()
            || person.said.get("hasgroups").is_some();
        let wanted = config.team_sync || (config.auto_assign && overage);
        if !wanted {
            return;
        }
        match self.0.providers.graph_groups(user_info, token).await {
            Ok(groups) => {
                let (ids, names): (Vec<String>, Vec<String>) = groups.into_iter().unzip();
                person.groups = Some(ids.into_iter().chain(names.iter().cloned()).collect());
                person.teams = Some(names);
            }
            Err(error) => tracing::warn!(%error, "the groups of somebody cannot be read; teams stay as they are"),
        }
    }

    /// Writes a refused sign-in into the log of the connection's organization.
    pub(super) async fn note_sso_refusal(
        &self,
        opened: &Opened,
        email: Option<&str>,
        device: &Device,
        reason: &'static str,
        why: &str,
    ) -> Result<(), Problem> {
        let mut change = Change::account("auth.sign_in_failed")
            .on("sso_connection", opened.row.id)
            .named(&opened.row.display_name)
            .with("method", "sso")
            .with("reason", reason)
            .failed(self.claimed(email, device));
        if !why.is_empty() {
            change = change.with("detail", why);
        }
        let mut conn = self.0.db.acquire().await?;
        trail::record(&mut conn, self.now(), opened.row.org_id, &Actor::System, &change).await
    }
}

/// Whether an answer came to the address that its question named, and the connection still has that one. A code that
/// came to another address was given for another question: sent on, it would be in the hands of the wrong provider
/// (the mix-up attack of RFC 9700, 4.4).
fn came_back(opened: &Opened, flow: &Flow, at: Option<OrgId>) -> Result<(), (Refused, String)> {
    let why = |refused| Err((refused, "callback-address".to_owned()));
    if at != flow.own {
        return why(Refused::OtherBrowser);
    }
    if flow.own != opened.own_callback() {
        return why(Refused::Over);
    }
    Ok(())
}

/// A failure of the provider, for the person and for the log.
fn failed(error: ProviderError) -> (Refused, String) {
    (said(&error), error.to_string())
}

/// Something that is not believed, with why for the log.
fn doubted(why: &str) -> (Refused, String) {
    (Refused::NotBelieved, why.to_owned())
}

/// What a person reads of a provider's failure.
fn said(error: &ProviderError) -> Refused {
    match error {
        ProviderError::Token(denial) => Refused::ByProvider(provider_code(&denial.error, &denial.error_description)),
        ProviderError::Unsigned(_) => Refused::NotBelieved,
        _ => Refused::Unreachable,
    }
}

pub(super) fn settled<T>(done: Result<T, Stop>) -> Result<Result<T, Refused>, Problem> {
    match done {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Refused(refused)) => Ok(Err(refused)),
        Err(Stop::Broken(problem)) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_the_code_of_entra_and_nothing_of_the_providers_markup() {
        let entra = "AADSTS50105: The signed in user is not assigned to a role for the application.";
        assert_eq!(provider_code("access_denied", entra), "AADSTS50105");
        assert_eq!(provider_code("access_denied", "no AADSTS here, AADSTSxyz neither"), "access_denied");
        assert_eq!(provider_code("<img onerror=x>", ""), "imgonerrorx");
    }
}
