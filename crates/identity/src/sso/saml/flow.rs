//! A sign-in by SAML: away with a question, back with a response, or with a response that nobody asked for.
//!
//! The question's name travels in an encrypted cookie and counts only in the browser that asked, once. A response is
//! taken once as well, whoever brings it to whatever process: its assertion's name is spent in the database.

use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tale_core::Problem;
use tale_core::crypto::certificate::Certificate;
use tale_core::crypto::transport::DecryptionKey;
use tale_core::crypto::{constant_time_eq, random_hex, sha256};
use tale_core::ids::{OrgId, SsoConnectionId};
use tale_core::net::{check_destination, entered, invalid_url};
use url::Url;

use super::metadata::{self, Imported};
use super::request::{Question, asked};
use super::response::{Assertion, Doubt, Expected, judge};
use super::{SamlSettings, encryption, xml};
use crate::caller::Caller;
use crate::permissions::Capability;
use crate::service::{Device, Identity};
use crate::sessions::SignedIn;
use crate::sso::claims::Person;
use crate::sso::flow::{Begun, FLOW_LIFETIME, MAX_NEXT, Refused, SsoEntry, Stop, settled, stop};
use crate::sso::{Opened, Places, Tested};
use crate::store;

/// What the cookie is encrypted for.
const CONTEXT: &str = "sso.saml";
/// Longest address that metadata are imported from.
const MAX_URL: usize = 1_000;

/// What belongs to a question.
#[derive(Serialize, Deserialize)]
struct Flow {
    request: String,
    connection: SsoConnectionId,
    acs: String,
    next: Option<String>,
    until: DateTime<Utc>,
}

/// What a browser brings to the address that takes responses.
#[derive(Debug, Clone, Default)]
pub struct Posted {
    /// The response, as base64.
    pub response: String,
    /// The page to go on to when nobody asked for the response.
    pub next: Option<String>,
}

fn spent(kind: &str, name: &str) -> [u8; 32] {
    sha256(format!("{CONTEXT}.{kind}:{name}").as_bytes())
}

impl Identity {
    /// A question for a provider that speaks SAML.
    pub(in crate::sso) fn asked_by_saml(
        &self,
        opened: &Opened,
        settings: &SamlSettings,
        places: &Places,
        next: Option<&str>,
    ) -> Result<Begun, Stop> {
        let now = self.now();
        let org = opened.row.org_id;
        let sign_on = Url::parse(&settings.sign_on_url).map_err(Problem::internal)?;
        // Judged again, because the operator may have changed what is admitted.
        if check_destination(&sign_on, self.0.providers.policy()).is_err() {
            return stop(Refused::Unreachable);
        }
        let flow = Flow {
            // A name of XML begins with no digit.
            request: format!("_{}", random_hex(20)),
            connection: opened.row.id,
            acs: places.acs(org),
            next: next.filter(|next| next.len() <= MAX_NEXT).map(str::to_owned),
            until: now + FLOW_LIFETIME,
        };
        let question = Question { id: &flow.request, entity_id: &places.entity_id(org), acs: &flow.acs, at: now };
        let location = asked(&sign_on, &question).map_err(Problem::internal)?;
        let text = serde_json::to_string(&flow).map_err(Problem::internal)?;
        let cookie = self.0.cipher.seal(CONTEXT, &text).map_err(Problem::internal)?;
        Ok(Begun { location, cookie })
    }

    /// Finishes a sign-in by SAML: believes the response or not, finds or makes the person's seat, begins a session in
    /// the organization. `cookie` is what [`Identity::begin_sso`] gave this browser, if it did.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn finish_saml(
        &self,
        org: OrgId,
        cookie: Option<&str>,
        posted: &Posted,
        places: &Places,
        device: &Device,
    ) -> Result<SsoEntry, Problem> {
        let done = settled(self.finished_by_saml(org, cookie, posted, places, device).await)?;
        Ok(match done {
            Ok((session, next)) => SsoEntry::SignedIn { session, next },
            Err(refused) => SsoEntry::Refused(refused),
        })
    }

    async fn finished_by_saml(
        &self,
        org: OrgId,
        cookie: Option<&str>,
        posted: &Posted,
        places: &Places,
        device: &Device,
    ) -> Result<(SignedIn, Option<String>), Stop> {
        let now = self.now();
        let opened = {
            let mut conn = self.0.db.acquire().await?;
            let row = store::sso::of_org(&mut conn, org).await?.filter(|row| row.enabled);
            row.map(|row| self.open(row)).transpose()?
        };
        let Some((opened, settings)) = opened.and_then(|opened| {
            let settings = opened.config.saml.clone()?;
            Some((opened, settings))
        }) else {
            return stop(Refused::SwitchedOff);
        };
        let assertion = match believed(&opened, &settings, posted, places, now) {
            Ok(assertion) => assertion,
            Err(doubt) => {
                let (refused, why) = said(doubt);
                tracing::info!(connection = %opened.row.id, why, "a sign-in by SAML failed");
                self.note_sso_refusal(&opened, None, device, refused.key(), &why).await?;
                return stop(refused);
            }
        };
        let mut conn = self.0.db.acquire().await?;
        let next = match &assertion.in_response_to {
            Some(question) => self.spent_question(&mut conn, question, cookie, &opened, places, now).await?,
            None => posted.next.clone(),
        };
        let name = format!("{org}:{}:{}", opened.config.issuer, assertion.id);
        let first = store::factors::spend_challenge(&mut conn, &spent("assertion", &name), assertion.until).await?;
        drop(conn);
        if !first {
            self.note_sso_refusal(&opened, None, device, Refused::Over.key(), "replay").await?;
            return stop(Refused::Over);
        }
        let person = match Person::asserted(&opened.config, assertion) {
            Ok(person) => person,
            Err(why) => {
                self.note_sso_refusal(&opened, None, device, Refused::NotBelieved.key(), why).await?;
                return stop(Refused::NotBelieved);
            }
        };
        match self.take_seat(&opened, &person, device).await? {
            Ok(session) => Ok((session, next)),
            Err(refused) => {
                self.note_sso_refusal(&opened, person.email.as_deref(), device, refused.key(), "").await?;
                stop(refused)
            }
        }
    }

    /// Spends the question that is answered, when this browser asked it. Returns the page to go on to.
    async fn spent_question(
        &self,
        conn: &mut PgConnection,
        question: &str,
        cookie: Option<&str>,
        opened: &Opened,
        places: &Places,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, Stop> {
        let flow = cookie.and_then(|cookie| self.0.cipher.open(CONTEXT, cookie).ok());
        let flow: Option<Flow> = flow.and_then(|text| serde_json::from_str(&text).ok());
        let Some(flow) = flow.filter(|flow| constant_time_eq(flow.request.as_bytes(), question.as_bytes())) else {
            return stop(Refused::OtherBrowser);
        };
        if now >= flow.until || flow.connection != opened.row.id || flow.acs != places.acs(opened.row.org_id) {
            return stop(Refused::Over);
        }
        if !store::factors::spend_challenge(conn, &spent("request", &flow.request), flow.until).await? {
            return stop(Refused::Over);
        }
        Ok(flow.next)
    }

    /// Our metadata for an organization's provider. They say nothing of whether there is one: providers want them before.
    ///
    /// # Errors
    /// `sso_config_unreadable`.
    pub async fn saml_metadata(&self, org: OrgId, places: &Places) -> Result<String, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let settings = self.stored(&mut conn, org).await?.and_then(|opened| opened.config.saml);
        let certificate = settings.as_ref().and_then(|settings| settings.sp_certificate.as_deref());
        let certificate = certificate.and_then(|pem| Certificate::parse(pem).ok());
        let signed = settings.is_none_or(|settings| settings.require_signed_assertions);
        Ok(metadata::ours(&places.entity_id(org), &places.every_acs(org), certificate.as_ref(), signed))
    }

    /// Reads a provider's metadata, without saving anything.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY` when they cannot be used.
    pub fn read_saml_metadata(&self, caller: &Caller, document: &str) -> Result<Imported, Problem> {
        caller.require(Capability::SignInManage)?;
        metadata::theirs(document).map_err(|why| Problem::invalid_field("metadata", why))
    }

    /// Reads a provider's metadata from their address, through the guard, without saving anything.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_URL`, `PRIVATE_HOST_BLOCKED`, `INVALID_BODY` when there is nothing
    /// that can be used.
    pub async fn fetch_saml_metadata(&self, caller: &Caller, url: &str) -> Result<Imported, Problem> {
        caller.require(Capability::SignInManage)?;
        let url = crate::fields::short_text("metadataUrl", url, MAX_URL)?;
        let url = Url::parse(&url)
            .map_err(|_| invalid_url("metadataUrl", "must be an address such as https://login.example.org/metadata"))?;
        check_destination(&url, self.0.providers.policy()).map_err(|refused| entered("metadataUrl", &refused))?;
        let refuse = |why: &str| Problem::invalid_field("metadataUrl", why);
        let document = self.0.providers.document(&url).await.map_err(|error| refuse(&error.to_string()))?;
        metadata::theirs(&document).map_err(refuse)
    }

    /// Tries what can be tried without a person: whether the sign-on address answers, and whether a certificate is valid.
    pub(in crate::sso) async fn tested_by_saml(&self, settings: &SamlSettings) -> Tested {
        let now = self.now();
        let discovery = match Url::parse(&settings.sign_on_url) {
            Ok(url) => self.0.providers.answers("the sign-on address", &url).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let valid = |certificate: &Certificate| certificate.not_before <= now && now < certificate.not_after;
        let keys = if settings.trusted().iter().any(valid) {
            Ok(())
        } else {
            Err("no certificate is valid now; sign-ins work, because they are chosen here, but ask for new ones"
                .to_owned())
        };
        Tested { discovery, keys: Some(keys), credentials: None }
    }
}

/// Judges the response of a browser.
fn believed(
    opened: &Opened,
    settings: &SamlSettings,
    posted: &Posted,
    places: &Places,
    now: DateTime<Utc>,
) -> Result<Assertion, Doubt> {
    let bytes = xml::base64(&posted.response)?;
    let document = String::from_utf8(bytes).map_err(|_| "xml-not-utf8")?;
    let org = opened.row.org_id;
    let key = opened.secret.as_ref().and_then(|pem| DecryptionKey::from_pem(pem.expose_secret()));
    let expected = Expected {
        issuer: &opened.config.issuer,
        audience: &places.entity_id(org),
        acs: &places.acs(org),
        certificates: &settings.trusted(),
        signed_assertions: settings.require_signed_assertions,
        encrypted_assertions: settings.require_encrypted_assertions,
        key: key.as_ref(),
        now,
    };
    judge(&document, &expected)
}

/// What the person reads of a doubt, and what the log does.
fn said(doubt: Doubt) -> (Refused, String) {
    match doubt {
        Doubt::Status(code) => (Refused::ByProvider(code.clone()), code),
        Doubt::Unbelieved(why) if encryption::WEAK.contains(&why) => (Refused::WeakEncryption, why.to_owned()),
        Doubt::Unbelieved(why) => (Refused::NotBelieved, why.to_owned()),
    }
}
