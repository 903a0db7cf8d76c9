//! Codes that are led to the wrong provider: the owner of one organization sends its people on to the provider of
//! another one, with the question of a sign-in of their own (RFC 9700, 4.4).

use serde_json::{Value, json};
use tale_core::ids::{OrgId, SsoConnectionId};
use tale_identity::sessions::SignedIn;
use tale_identity::sso::{Begun, ConnectionForm, Refused, Returned};
use tale_testkit::identity_provider::{Given, IdentityProvider};
use url::Url;

use crate::oauth2::{base_of, plain};
use crate::sso::{Sso, answer, form, places};
use crate::world::Person;

const ORIGIN: &str = "https://tale.example.org";

/// Acme, and somebody who owns another organization of the deployment with a provider of their own.
struct MixUp {
    acme: Sso,
    eve: Person,
    /// Eve's provider, which does not say that its answers name it.
    trap: IdentityProvider,
}

/// How one attack went.
struct Outcome {
    /// What the victim's browser got.
    victim: Refused,
    /// What Eve got with the code in the sign-in that she began at Acme's provider; `None`: her token endpoint saw no code.
    thief: Option<Result<SignedIn, Refused>>,
}

/// What a test makes of a form.
type Edit = fn(&mut ConnectionForm);

fn own_callback(form: &mut ConnectionForm) {
    form.config.own_callback = true;
}

fn oauth2(form: &mut ConnectionForm) {
    let base = base_of(form);
    plain(form, &base);
}

/// The same question with another value of `name`.
fn asking(question: &Url, name: &str, value: &str) -> Url {
    let mut changed = question.clone();
    let others: Vec<_> = question.query_pairs().into_owned().filter(|(key, _)| key != name).collect();
    changed.query_pairs_mut().clear().extend_pairs(others).append_pair(name, value);
    changed
}

fn of(question: &Url, name: &str) -> String {
    question.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned()
}

/// The organization whose address this is; none for the shared one.
fn taken_by(callback: &str) -> Option<OrgId> {
    let path = callback.strip_prefix(ORIGIN).unwrap().strip_prefix("/api/sso/").unwrap();
    path.strip_suffix("/callback").map(|org| org.parse().unwrap())
}

impl MixUp {
    async fn new(acme: impl FnOnce(&mut ConnectionForm), eves: impl FnOnce(&mut ConnectionForm)) -> Self {
        let acme = Sso::with(acme).await;
        let eve = acme.world.stranger("eve@other.test", "Other").await;
        let trap = IdentityProvider::start().await;
        let mut form = form(&trap.issuer());
        eves(&mut form);
        acme.world.identity.save_sso_connection(&eve.caller, form).await.unwrap();
        Self { acme, eve, trap }
    }

    async fn connection(&self, of: &Person) -> SsoConnectionId {
        self.acme.world.identity.sso_connection(&of.caller).await.unwrap().unwrap().id
    }

    async fn begin(&self, at: &Person) -> Begun {
        let connection = self.connection(at).await;
        self.acme.world.identity.begin_sso(connection, &places(), Some("/dashboard/x")).await.unwrap().unwrap()
    }

    fn zoe(&self) -> Value {
        let mut said = self.acme.claims("zoe-1", "zoe@acme.test");
        said["email_verified"] = json!(true);
        said
    }

    /// Zoë begins at Eve's connection and is sent on to Acme's provider with Eve's own question there, but the state of
    /// Zoë's. The provider sends her back to `redirect`, or to where Eve's question said. Eve then finishes with the code.
    async fn attack(&self, redirect: Option<&str>) -> Outcome {
        let (thief, victim) = (self.begin(&self.acme.owner).await, self.begin(&self.eve).await);
        let mut question = asking(&thief.location, "state", &of(&victim.location, "state"));
        if let Some(redirect) = redirect {
            question = asking(&question, "redirect_uri", redirect);
        }
        let given = self.acme.provider.log_in(question.as_str(), &self.zoe());
        let back = self.acme.back_at(taken_by(&given.callback), &victim.cookie, &answer(&given)).await;
        let victim = back.unwrap_err();
        if self.trap.asked("token") == 0 {
            return Outcome { victim, thief: None };
        }
        let stolen = Returned { state: Some(of(&thief.location, "state")), ..answer(&given) };
        let own = taken_by(&of(&thief.location, "redirect_uri"));
        Outcome { victim, thief: Some(self.acme.back_at(own, &thief.cookie, &stolen).await) }
    }
}

#[tokio::test]
async fn at_the_shared_address_a_code_can_be_led_to_another_organizations_provider() {
    // What the setting is for, as a measure of the attack below: it works when nothing stands against it.
    let there = MixUp::new(|_| {}, |_| {}).await;
    let outcome = there.attack(None).await;
    assert_eq!(outcome.thief.unwrap().unwrap().email, "zoe@acme.test");
    assert!(matches!(outcome.victim, Refused::ByProvider(_)));
}

#[tokio::test]
async fn at_an_address_of_its_own_no_code_is_led_anywhere_else() {
    let kinds: [(Edit, Edit); 4] = [
        (own_callback, |_| {}),
        (own_callback, own_callback),
        (own_callback, oauth2),
        (
            |form| {
                oauth2(form);
                own_callback(form);
            },
            |_| {},
        ),
    ];
    for (acme, eves) in kinds {
        let there = MixUp::new(acme, eves).await;
        let before = there.acme.rows().await;
        // Acme's provider knows Acme's own address only.
        let outcome = there.attack(None).await;
        assert_eq!(outcome.victim, Refused::OtherBrowser);
        assert!(outcome.thief.is_none(), "the code stayed here");
        assert_eq!(there.acme.world.audited(there.eve.org, "auth.sign_in_failed").await, 1);
        assert_eq!(there.acme.rows().await, before);
    }
}

#[tokio::test]
async fn a_provider_that_still_knows_the_shared_address_gives_codes_that_fit_nowhere() {
    let there = MixUp::new(own_callback, |_| {}).await;
    let before = there.acme.rows().await;
    let outcome = there.attack(Some(&format!("{ORIGIN}/api/sso/callback"))).await;
    let refused = outcome.thief.expect("this code is led to Eve").unwrap_err();
    assert!(matches!(&refused, Refused::ByProvider(code) if code == "invalid_grant"), "{refused:?}");
    assert_eq!(there.acme.rows().await, before);
}

#[tokio::test]
async fn an_answer_counts_at_the_address_of_its_question_only() {
    for edit in [(|_| {}) as Edit, oauth2] {
        let sso = Sso::with(|form| {
            edit(form);
            own_callback(form);
        })
        .await;
        let (own, other) = (Some(sso.owner.org), Some(OrgId::new()));
        let mut zoe = sso.claims("zoe-1", "zoe@acme.test");
        zoe["email_verified"] = json!(true);
        let (cookie, given) = sso.away(&zoe).await;
        assert_eq!(given.callback, format!("{ORIGIN}/api/sso/{}/callback", sso.owner.org));
        sso.back_at(own, &cookie, &answer(&given)).await.unwrap();
        for at in [None, other] {
            let (cookie, given) = sso.away(&zoe).await;
            let exchanged = sso.provider.asked("token");
            assert_eq!(sso.back_at(at, &cookie, &answer(&given)).await.unwrap_err(), Refused::OtherBrowser);
            assert_eq!(sso.back_at(own, &cookie, &answer(&given)).await.unwrap_err(), Refused::Over, "spent");
            assert_eq!(sso.provider.asked("token"), exchanged, "the code stays here");
        }

        // Without the setting it is the other way about.
        let (cookie, under_way) = sso.away(&zoe).await;
        sso.edit(edit).await;
        let refused = sso.back_at(own, &cookie, &answer(&under_way)).await;
        assert_eq!(refused.unwrap_err(), Refused::Over, "what was under way ends");
        let shared = |given: &Given| assert_eq!(given.callback, format!("{ORIGIN}/api/sso/callback"));
        for at in [own, other] {
            let (cookie, given) = sso.away(&zoe).await;
            shared(&given);
            assert_eq!(sso.back_at(at, &cookie, &answer(&given)).await.unwrap_err(), Refused::OtherBrowser);
        }
        let (cookie, given) = sso.away(&zoe).await;
        shared(&given);
        sso.back(&cookie, &answer(&given)).await.unwrap();
        let (cookie, under_way) = sso.away(&zoe).await;
        sso.edit(|form| {
            edit(form);
            own_callback(form);
        })
        .await;
        assert_eq!(sso.back(&cookie, &answer(&under_way)).await.unwrap_err(), Refused::Over);
    }
}

#[tokio::test]
async fn what_was_stored_before_the_setting_has_it_off() {
    let sso = Sso::new().await;
    let stored = sqlx::query("UPDATE app.sso_connections SET config = config - 'own_callback'")
        .execute(&sso.world.db.app)
        .await
        .unwrap();
    assert_eq!(stored.rows_affected(), 1);
    let read = sso.world.identity.sso_connection(&sso.owner.caller).await.unwrap().unwrap();
    assert!(!read.config.unwrap().own_callback);
    sso.log_in(&sso.claims("zoe-1", "zoe@acme.test")).await.unwrap();

    sso.edit(own_callback).await;
    let fields: Value = sqlx::query_scalar(
        "SELECT details -> 'fields' FROM app.audit_entries WHERE action = 'sso.connection_updated' ORDER BY id DESC LIMIT 1",
    )
    .fetch_one(&sso.world.db.app)
    .await
    .unwrap();
    assert_eq!(fields, json!(["clientSecret", "ownCallback"]));
}
