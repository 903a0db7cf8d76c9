//! Sign-in by SAML, against a provider that signs and encrypts and can be told to lie. What is done with XML itself is
//! tested beside it (`sso/saml/tests.rs`).

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use tale_core::crypto::FieldCipher;
use tale_core::{Clock, Code};
use tale_identity::sessions::SignedIn;
use tale_identity::sso::saml::{Posted, SamlSettings};
use tale_identity::sso::{ClaimPaths, Config, ConnectionForm, Places, Protocol, Refused, Rule, SsoEntry, rotation};
use tale_identity::{Identity, IdentityConfig, Role};
use tale_testkit::saml_provider::{CERTIFICATE, ENTITY, OWN_CERTIFICATE, OWN_KEY, SIGN_ON, Said, asked};

use crate::world::{Person, World, device};

struct Saml {
    world: World,
    owner: Person,
    seen: Mutex<HashSet<uuid::Uuid>>,
}

fn form() -> ConnectionForm {
    ConnectionForm {
        display_name: "Acme".into(),
        enabled: true,
        default_role: Role::Member,
        domains: Vec::new(),
        client_secret: None,
        config: Config {
            protocol: Protocol::Saml,
            issuer: ENTITY.into(),
            client_id: String::new(),
            scopes: Vec::new(),
            claims: ClaimPaths {
                email: "mail".into(),
                name: "http://schemas.example.org/claims/name".into(),
                groups: "groups".into(),
                roles: "roles".into(),
            },
            auto_assign: false,
            rules: Vec::new(),
            team_sync: false,
            excluded_groups: Vec::new(),
            own_callback: false,
            saml: Some(SamlSettings {
                sign_on_url: SIGN_ON.into(),
                certificates: vec![CERTIFICATE.into()],
                require_signed_assertions: true,
                require_encrypted_assertions: false,
                sp_certificate: None,
            }),
            oauth2: None,
        },
    }
}

fn saml(form: &mut ConnectionForm) -> &mut SamlSettings {
    form.config.saml.as_mut().unwrap()
}

fn encrypting(form: &mut ConnectionForm) {
    saml(form).require_encrypted_assertions = true;
    saml(form).sp_certificate = Some(OWN_CERTIFICATE.into());
    form.client_secret = Some(OWN_KEY.into());
}

fn places() -> Places {
    let places = ["https://tale.example.org/app", "https://b.example.org/app"].map(String::from);
    Places { here: places[0].clone(), all: places.to_vec() }
}

/// A question as it reaches the provider.
struct Question {
    cookie: String,
    id: String,
    document: String,
}

impl Saml {
    async fn with(edit: impl FnOnce(&mut ConnectionForm)) -> Self {
        let world = World::new().await;
        let owner = world.owner().await;
        let mut form = form();
        edit(&mut form);
        world.identity.save_sso_connection(&owner.caller, form).await.unwrap();
        Self { world, owner, seen: Mutex::default() }
    }

    async fn refused_form(&self, edit: impl FnOnce(&mut ConnectionForm)) -> (Code, String) {
        let mut form = form();
        edit(&mut form);
        let problem = self.world.identity.save_sso_connection(&self.owner.caller, form).await.unwrap_err();
        let path = problem.data.as_ref().map(|data| data["issues"][0]["path"].as_str().unwrap_or_default().to_owned());
        (problem.code, path.unwrap_or_default())
    }

    async fn ask(&self) -> Question {
        let connection = self.world.identity.sso_connection(&self.owner.caller).await.unwrap().unwrap().id;
        let begun =
            self.world.identity.begin_sso(connection, &places(), Some("/app/dashboard/x")).await.unwrap().unwrap();
        assert!(begun.location.as_str().starts_with(&format!("{SIGN_ON}&SAMLRequest=")), "{}", begun.location);
        let (id, document) = asked(begun.location.as_str());
        Question { cookie: begun.cookie, id, document }
    }

    /// An honest answer about somebody.
    fn said(&self, email: &str, question: Option<&str>) -> Said {
        let (org, places) = (self.owner.org, places());
        Said::about(email, &places.entity_id(org), &places.acs(org), question, self.world.clock.now().timestamp())
    }

    async fn bring_to(
        &self,
        identity: &Identity,
        said: &Said,
        cookie: Option<&str>,
    ) -> Result<(SignedIn, Option<String>), Refused> {
        let posted = Posted { response: said.posted(), next: Some("/app/own".into()) };
        let device = device("203.0.113.9");
        match identity.finish_saml(self.owner.org, cookie, &posted, &places(), &device).await.unwrap() {
            SsoEntry::SignedIn { session, next } => Ok((session, next)),
            SsoEntry::Refused(refused) => Err(refused),
        }
    }

    async fn bring(&self, said: &Said, cookie: Option<&str>) -> Result<(SignedIn, Option<String>), Refused> {
        self.bring_to(&self.world.identity, said, cookie).await
    }

    /// What the log says about the refusals since it was asked last.
    async fn detail(&self) -> String {
        let rows: Vec<(uuid::Uuid, Option<String>)> =
            sqlx::query_as("SELECT id, details->>'detail' FROM app.audit_entries WHERE action = 'auth.sign_in_failed'")
                .fetch_all(&self.world.db.app)
                .await
                .unwrap();
        let mut seen = self.seen.lock().unwrap();
        let new = rows.into_iter().filter(|(id, _)| seen.insert(*id));
        new.filter_map(|(_, detail)| detail).collect::<Vec<_>>().join(" ")
    }
}

#[tokio::test]
async fn a_question_is_answered_once_and_in_the_browser_that_asked() {
    let saml = Saml::with(|_| {}).await;
    let question = saml.ask().await;
    let org = saml.owner.org;
    for part in [
        format!("AssertionConsumerServiceURL=\"https://tale.example.org/app/api/sso/saml/{org}/acs\""),
        format!("<saml:Issuer>https://tale.example.org/app/api/sso/saml/{org}/metadata</saml:Issuer>"),
        "Destination=\"https://idp.example.org/sign-on?tenant=1\"".to_owned(),
        "nameid-format:emailAddress".to_owned(),
    ] {
        assert!(question.document.contains(&part), "{part}: {}", question.document);
    }
    let said = saml.said("Zoe@Acme.test", Some(&question.id));
    // A browser without the cookie, or with that of another question, is not the one that asked.
    assert_eq!(saml.bring(&said, None).await.unwrap_err(), Refused::OtherBrowser);
    let other = saml.ask().await;
    assert_eq!(saml.bring(&said, Some(&other.cookie)).await.unwrap_err(), Refused::OtherBrowser);
    let (session, next) = saml.bring(&said, Some(&question.cookie)).await.unwrap();
    assert_eq!((session.email.as_str(), next.as_deref()), ("zoe@acme.test", Some("/app/dashboard/x")));
    assert_eq!(session.active_org, Some(org));
    // Once: neither the answer again, nor another answer to the same question.
    assert_eq!(saml.bring(&said, Some(&question.cookie)).await.unwrap_err(), Refused::Over);
    let more = saml.said("zoe@acme.test", Some(&question.id));
    assert_eq!(saml.bring(&more, Some(&question.cookie)).await.unwrap_err(), Refused::Over);
    // Ten minutes are the end of a question.
    let late = saml.ask().await;
    saml.world.pass(Duration::from_secs(600));
    let said = saml.said("zoe@acme.test", Some(&late.id));
    assert_eq!(saml.bring(&said, Some(&late.cookie)).await.unwrap_err(), Refused::Over);
    // Another provider did not ask what this one was asked.
    let question = saml.ask().await;
    let mut form = form();
    form.config.issuer = "https://other.example.org".into();
    saml.world.identity.save_sso_connection(&saml.owner.caller, form).await.unwrap();
    let said = saml.said("zoe@acme.test", Some(&question.id));
    assert_eq!(saml.bring(&said, Some(&question.cookie)).await.unwrap_err(), Refused::NotBelieved);
    assert_eq!(saml.detail().await, "issuer");
}

#[tokio::test]
async fn a_sign_in_that_begins_at_the_provider_is_taken_once_by_whatever_process() {
    let saml = Saml::with(|_| {}).await;
    let said = saml.said("zoe@acme.test", None);
    let (session, next) = saml.bring(&said, None).await.unwrap();
    assert_eq!((session.email.as_str(), next.as_deref()), ("zoe@acme.test", Some("/app/own")));
    let replica = saml.world.again(IdentityConfig { hash_cost: crate::world::cheap(), ..IdentityConfig::default() });
    for identity in [&saml.world.identity, &replica] {
        assert_eq!(saml.bring_to(identity, &said, None).await.unwrap_err(), Refused::Over);
        assert_eq!(saml.detail().await, "replay");
    }
    // Two processes at once: one of them takes it.
    let said = saml.said("zoe@acme.test", None);
    let (left, right) = tokio::join!(saml.bring(&said, None), saml.bring_to(&replica, &said, None));
    assert_eq!(u8::from(left.is_ok()) + u8::from(right.is_ok()), 1);
    // Up to the last moment at which it would be believed, and then it is not.
    let said = saml.said("zoe@acme.test", None);
    saml.bring(&said, None).await.unwrap();
    saml.world.pass(Duration::from_secs(359));
    assert_eq!(saml.bring(&said, None).await.unwrap_err(), Refused::Over);
    saml.detail().await;
    saml.world.pass(Duration::from_secs(2));
    assert_eq!(saml.bring(&said, None).await.unwrap_err(), Refused::NotBelieved);
    assert_eq!(saml.detail().await, "expired");
}

#[tokio::test]
async fn what_is_for_another_organization_or_signed_by_nobody_is_refused_and_logged() {
    let saml = Saml::with(|_| {}).await;
    let eve = saml.world.stranger("eve@other.test", "Other").await;
    saml.world.identity.save_sso_connection(&eve.caller, form()).await.unwrap();
    let honest = || saml.said("zoe@acme.test", None);
    // The same provider, asked by another organization.
    let (audience, acs) = (places().entity_id(eve.org), places().acs(eve.org));
    let unsigned = Said { sign_assertion: false, ..honest() };
    let around = Said { sign_assertion: false, sign_response: true, ..honest() };
    for (said, why) in [
        (Said { audience, ..honest() }, "audience"),
        (Said { acs, ..honest() }, "destination"),
        (Said { at: honest().at - 400, ..honest() }, "expired"),
        (Said { at: honest().at + 90, ..honest() }, "not-yet"),
        (Said { format: "transient", ..honest() }, "name-id-format"),
        (Said { encrypt: true, ..honest() }, "no-private-key"),
        (unsigned.clone(), "assertion-unsigned"),
        (around.clone(), "assertion-unsigned"),
    ] {
        assert_eq!(saml.bring(&said, None).await.unwrap_err(), Refused::NotBelieved, "{why}");
        assert_eq!(saml.detail().await, why);
    }
    let posted = Posted { response: "not base64!".into(), next: None };
    let (places, browser) = (places(), device("203.0.113.9"));
    let entry = saml.world.identity.finish_saml(saml.owner.org, None, &posted, &places, &browser).await.unwrap();
    assert!(matches!(entry, SsoEntry::Refused(Refused::NotBelieved)));
    assert_eq!(saml.detail().await, "base64");
    // A response that is signed as a whole is enough where the organization says so.
    let mut lax = form();
    self::saml(&mut lax).require_signed_assertions = false;
    saml.world.identity.save_sso_connection(&saml.owner.caller, lax).await.unwrap();
    saml.bring(&around, None).await.unwrap();
    assert_eq!(saml.bring(&unsigned, None).await.unwrap_err(), Refused::NotBelieved);
    // And nothing is taken once sign-in is off.
    let mut off = form();
    off.enabled = false;
    saml.world.identity.save_sso_connection(&saml.owner.caller, off).await.unwrap();
    assert_eq!(saml.bring(&honest(), None).await.unwrap_err(), Refused::SwitchedOff);
}

#[tokio::test]
async fn what_a_believed_answer_leads_to_is_that_of_every_provider() {
    let saml = Saml::with(|form| {
        form.config.auto_assign = true;
        form.config.team_sync = true;
        form.config.rules = vec![Rule { claim: "groups".into(), value: "laboratory".into(), role: Role::Developer }];
    })
    .await;
    let groups = |names: &[&str]| ("groups", names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let name = ("http://schemas.example.org/claims/name", vec!["Zoë & Co".to_owned()]);
    let mut said = saml.said("zoe@acme.test", None);
    said.attributes = vec![groups(&["laboratory", "Optics"]), name];
    let (first, _) = saml.bring(&said, None).await.unwrap();
    assert_eq!(first.name, "Zoë & Co");
    let members = saml.world.identity.members(&saml.owner.caller).await.unwrap();
    let zoe = members.iter().find(|member| member.email == "zoe@acme.test").unwrap();
    assert_eq!(zoe.role, Role::Developer);
    let teams: Vec<String> =
        saml.world.identity.teams(&saml.owner.caller).await.unwrap().into_iter().map(|team| team.name).collect();
    assert_eq!(teams, ["laboratory", "Optics"]);
    // An empty list leaves teams, none at all changes nothing.
    saml.bring(&saml.said("zoe@acme.test", None), None).await.unwrap();
    assert_eq!(saml.world.identity.teams(&saml.owner.caller).await.unwrap().len(), 2);
    let mut said = saml.said("zoe@acme.test", None);
    said.attributes = vec![groups(&[])];
    saml.bring(&said, None).await.unwrap();
    assert_eq!(saml.world.identity.teams(&saml.owner.caller).await.unwrap().len(), 0);
    // The address is the person, however it is written; an attribute may say another address than the name does.
    let (again, _) = saml.bring(&saml.said("ZOE@acme.TEST", None), None).await.unwrap();
    assert_eq!(again.user, first.user);
    let mut said = saml.said("u-4711", None);
    said.format = "persistent";
    assert_eq!(saml.bring(&said, None).await.unwrap_err(), Refused::NoEmail);
    said.id = "_another".into();
    said.attributes = vec![("mail", vec!["zoe@acme.test".into()])];
    assert_eq!(saml.bring(&said, None).await.unwrap_err(), Refused::LinkedOtherwise);
    let eve = saml.world.stranger("eve@other.test", "Other").await;
    assert_eq!(saml.bring(&saml.said("eve@other.test", None), None).await.unwrap_err(), Refused::NoSeat);
    drop(eve);
}

#[tokio::test]
async fn encrypted_assertions_need_a_key_that_is_never_shown() {
    let saml = Saml::with(|_| {}).await;
    let required = saml.refused_form(|form| self::saml(form).require_encrypted_assertions = true).await;
    assert_eq!((required.0, required.0.text()), (Code::SsoSpKeyRequired, "sso_sp_key_required"));
    let field = |path: &str| (Code::InvalidBody, path.to_owned());
    for (key, certificate, path) in [
        ("nonsense", OWN_CERTIFICATE, "spPrivateKey"),
        (OWN_CERTIFICATE, OWN_CERTIFICATE, "spPrivateKey"),
        (OWN_KEY, CERTIFICATE, "spCertificate"),
        (OWN_KEY, "nonsense", "spCertificate"),
    ] {
        let refused = saml
            .refused_form(|form| {
                encrypting(form);
                form.client_secret = Some(key.into());
                self::saml(form).sp_certificate = Some(certificate.into());
            })
            .await;
        assert_eq!(refused, field(path));
    }
    let save = |edit: fn(&mut ConnectionForm)| {
        let mut form = form();
        edit(&mut form);
        saml.world.identity.save_sso_connection(&saml.owner.caller, form)
    };
    save(encrypting).await.unwrap();
    // A save without the key keeps it, also for another provider: it is our own.
    let keep: fn(&mut ConnectionForm) = |form| {
        encrypting(form);
        form.client_secret = None;
        form.config.issuer = "https://other.example.org".into();
    };
    save(keep).await.unwrap();
    let back: fn(&mut ConnectionForm) = |form| {
        encrypting(form);
        form.client_secret = None;
    };
    save(back).await.unwrap();
    let connection = saml.world.identity.sso_connection(&saml.owner.caller).await.unwrap().unwrap();
    assert!(connection.has_secret && !format!("{connection:?}").contains("PRIVATE"));
    let stored: String = sqlx::query_scalar("SELECT concat(secret, config) FROM app.sso_connections")
        .fetch_one(&saml.world.db.app)
        .await
        .unwrap();
    assert!(!stored.contains("PRIVATE"));
    let logged: i64 = sqlx::query_scalar("SELECT count(*) FROM app.audit_entries WHERE details::text LIKE '%PRIVATE%'")
        .fetch_one(&saml.world.db.app)
        .await
        .unwrap();
    assert_eq!(logged, 0);

    let plain = saml.said("zoe@acme.test", None);
    assert_eq!(saml.bring(&plain, None).await.unwrap_err(), Refused::NotBelieved);
    assert_eq!(saml.detail().await, "not-encrypted");
    let sealed = Said { encrypt: true, ..saml.said("zoe@acme.test", None) };
    assert!(!sealed.document().contains("zoe@acme.test"));
    saml.bring(&sealed, None).await.unwrap();
    assert_eq!(saml.bring(&sealed, None).await.unwrap_err(), Refused::Over);

    // The certificate is public, and the key goes along when the operator changes the deployment's.
    let metadata = saml.world.identity.saml_metadata(saml.owner.org, &places()).await.unwrap();
    let line = OWN_CERTIFICATE.lines().nth(1).unwrap();
    assert!(metadata.contains(line) && metadata.contains("https://b.example.org/app/api/sso/saml/"), "{metadata}");
    let other = FieldCipher::from_hex(&"ab".repeat(32), []).unwrap();
    assert_eq!(rotation::reencrypt(&saml.world.db.app, &other).await.unwrap().unreadable, 1);
    // A client's secret is no private key: none of them becomes the other.
    let plain: fn(&mut ConnectionForm) = |form| form.client_secret = Some(String::new());
    save(plain).await.unwrap();
    assert!(!saml.world.identity.sso_connection(&saml.owner.caller).await.unwrap().unwrap().has_secret);
    assert_eq!(
        saml.refused_form(|form| self::saml(form).require_encrypted_assertions = true).await.0,
        Code::SsoSpKeyRequired
    );
}

#[tokio::test]
async fn settings_that_could_not_work_are_refused() {
    let saml = Saml::with(|_| {}).await;
    let invalid = |path: &str| (Code::InvalidBody, path.to_owned());
    assert_eq!(saml.refused_form(|form| form.config.saml = None).await, invalid("saml"));
    assert_eq!(saml.refused_form(|form| form.config.issuer = "a b".into()).await, invalid("issuer"));
    assert_eq!(saml.refused_form(|form| self::saml(form).certificates = Vec::new()).await, invalid("certificates"));
    assert_eq!(
        saml.refused_form(|form| self::saml(form).certificates = vec!["x".into()]).await,
        invalid("certificates")
    );
    let address = saml.refused_form(|form| self::saml(form).sign_on_url = "http://idp.example.org/".into()).await;
    assert_eq!(address, (Code::InvalidUrl, "signOnUrl".into()));
    let inside = saml.refused_form(|form| self::saml(form).sign_on_url = "https://10.0.0.1/".into()).await;
    assert_eq!(inside.0, Code::PrivateHostBlocked);
    // Importing goes through the same guard.
    let identity = &saml.world.identity;
    let import = identity.fetch_saml_metadata(&saml.owner.caller, "https://10.0.0.1/metadata").await;
    assert_eq!(import.unwrap_err().code, Code::PrivateHostBlocked);
    let read = identity.read_saml_metadata(&saml.owner.caller, "<a/>");
    assert_eq!(read.unwrap_err().code, Code::InvalidBody);
    let member = saml.world.member(&saml.owner, "bob@acme.test", Role::Developer).await;
    assert_eq!(identity.read_saml_metadata(&member.caller, "<a/>").unwrap_err().code, Code::OrgForbidden);
}
