//! Sign-in at a provider that speaks OAuth 2.0 alone: no signed token, and an address that says who somebody is.

use std::time::Duration;

use serde_json::{Value, json};
use tale_core::Code;
use tale_identity::Role;
use tale_identity::sso::{ConnectionForm, OAuth2Settings, Protocol, Refused, Returned, SsoEntry};
use tale_testkit::identity_provider::{IdentityProvider, SECRET};

use crate::sso::{Sso, answer, form, places, rule};
use crate::world::here;

/// The form of a provider that is found at `base` and known by three addresses.
pub fn plain(form: &mut ConnectionForm, base: &str) {
    form.config.protocol = Protocol::OAuth2;
    form.config.issuer = String::new();
    form.config.scopes = vec!["read_user".into()];
    form.config.oauth2 = Some(OAuth2Settings {
        authorization_url: format!("{base}/authorize?prompt=login"),
        token_url: format!("{base}/token"),
        user_info_url: format!("{base}/me"),
        subject: String::new(),
        email_verified: "email_verified".into(),
        secret_in_body: false,
    });
}

fn settings(form: &mut ConnectionForm) -> &mut OAuth2Settings {
    form.config.oauth2.as_mut().unwrap()
}

pub fn base_of(form: &ConnectionForm) -> String {
    form.config.issuer.trim_end_matches("/tenant").to_owned()
}

/// Acme with such a provider, whose form `edit` changed.
async fn acme(edit: impl FnOnce(&mut ConnectionForm)) -> Sso {
    Sso::with(|form| {
        let base = base_of(form);
        plain(form, &base);
        edit(form);
    })
    .await
}

fn person(id: Value, email: &str) -> Value {
    json!({ "id": id, "email": email, "name": "Zoë", "email_verified": true })
}

#[tokio::test]
async fn who_somebody_is_stands_in_what_the_provider_says_of_the_token() {
    let sso = acme(|_| {}).await;
    let zoe = person(json!(4_711), "Zoe@Acme.test");
    let first = sso.log_in(&zoe).await.unwrap();
    assert_eq!((first.email.as_str(), first.name.as_str()), ("zoe@acme.test", "Zoë"));
    assert_eq!(first.active_org, Some(sso.owner.org));
    assert_eq!(sso.role("zoe@acme.test").await, Some(Role::Member));
    assert_eq!(sso.log_in(&zoe).await.unwrap().user, first.user);
    assert_eq!(sso.world.audited(sso.owner.org, "member.added").await, 1);
    let asked = ["discovery", "keys", "userinfo", "token", "me"].map(|what| sso.provider.asked(what));
    assert_eq!(asked, [0, 0, 0, 2, 2], "nothing but what was entered");

    // The question carries the proof and the state, what the address had, and no nonce: nothing would return it.
    let connection = sso.world.identity.sso_connection(&sso.owner.caller).await.unwrap().unwrap().id;
    let begun = sso.world.identity.begin_sso(connection, &places(), None).await.unwrap().unwrap();
    let names: Vec<String> = begun.location.query_pairs().map(|(name, _)| name.into_owned()).collect();
    for name in ["prompt", "state", "code_challenge"] {
        assert!(names.iter().any(|one| one == name), "{name}");
    }
    assert!(!names.iter().any(|one| one == "nonce"));
}

#[tokio::test]
async fn what_does_not_name_one_person_for_good_is_refused_and_changes_nothing() {
    let sso = acme(|form| settings(form).email_verified = "flags.confirmed".into()).await;
    let bob = sso.world.member(&sso.owner, "bob@acme.test", Role::Editor).await;
    let eve = sso.world.stranger("eve@other.test", "Other").await;
    sso.log_in(&person(json!("zoe-1"), "zoe@acme.test")).await.unwrap();
    sso.log_in(&person(json!("bob-1"), "bob@acme.test")).await.unwrap();
    let before = sso.rows().await;
    // Whatever is said and is no yes is no.
    let unverified = [json!(false), json!("no"), json!(0), json!(null), json!([])].map(|no| {
        let mut said = person(json!("new"), "owner@acme.test");
        said["flags"] = json!({ "confirmed": no });
        (said, Refused::EmailUnverified)
    });
    let refusals = [
        (json!({ "email": "new@acme.test" }), Refused::NotBelieved),
        (json!({ "id": "", "email": "new@acme.test" }), Refused::NotBelieved),
        (json!({ "id": 1.5, "email": "new@acme.test" }), Refused::NotBelieved),
        (person(json!(null), "new@acme.test"), Refused::NotBelieved),
        (json!([{ "id": "new", "email": "new@acme.test" }]), Refused::Unreachable),
        (person(json!("new"), "no address"), Refused::NoEmail),
        (json!({ "id": "new" }), Refused::NoEmail),
        (person(json!("zoe-1"), "zoe.new@acme.test"), Refused::LinkedOtherwise),
        (person(json!("zoe-1"), "bob@acme.test"), Refused::LinkedOtherwise),
        (person(json!("mallory"), "bob@acme.test"), Refused::LinkedOtherwise),
        (person(json!("eve-1"), "eve@other.test"), Refused::NoSeat),
    ];
    for (said, refused) in refusals.into_iter().chain(unverified) {
        assert_eq!(sso.log_in(&said).await.unwrap_err(), refused, "{said}");
    }
    assert_eq!(sso.rows().await, before);
    assert_eq!(sso.world.audited(sso.owner.org, "auth.sign_in_failed").await, 16);
    assert_eq!(sso.world.audited(eve.org, "auth.sign_in_failed").await, 0);
    assert_eq!(sso.role("bob@acme.test").await, Some(bob.caller.role));

    // A token is not carried to where the provider sends it on to.
    let thief = IdentityProvider::start().await;
    sso.provider.send_on(&thief.at("/me"));
    let zoe = sso.log_in(&person(json!("zoe-1"), "zoe@acme.test")).await;
    assert_eq!(zoe.unwrap_err(), Refused::Unreachable);
    assert_eq!(thief.asked("me"), 0);
}

#[tokio::test]
async fn an_answer_counts_once_in_the_browser_that_asked() {
    let sso = acme(|_| {}).await;
    let zoe = person(json!("zoe-1"), "zoe@acme.test");
    let (cookie, given) = sso.away(&zoe).await;
    let (other_cookie, other) = sso.away(&zoe).await;
    let answered = answer(&given);
    let nobody = sso.world.identity.finish_sso(None, None, &answered, &here()).await.unwrap();
    assert!(matches!(nobody, SsoEntry::Refused(Refused::OtherBrowser)));
    assert_eq!(sso.back(&other_cookie, &answered).await.unwrap_err(), Refused::OtherBrowser);
    assert_eq!(sso.provider.asked("token"), 0, "a code of another browser stays here");
    sso.back(&cookie, &answered).await.unwrap();
    assert_eq!(sso.back(&cookie, &answered).await.unwrap_err(), Refused::Over, "once");

    // A code that somebody put into another sign-in: its proof does not fit.
    let stolen = answer(&sso.away(&zoe).await.1).code;
    let mixed = Returned { code: stolen, ..answer(&other) };
    let refused = sso.back(&other_cookie, &mixed).await.unwrap_err();
    assert!(matches!(&refused, Refused::ByProvider(code) if code == "invalid_grant"), "{refused:?}");

    let (cookie, given) = sso.away(&zoe).await;
    sso.world.pass(Duration::from_secs(600));
    assert_eq!(sso.back(&cookie, &answer(&given)).await.unwrap_err(), Refused::Over, "ten minutes");
    let (cookie, given) = sso.away(&zoe).await;
    let exchanged = sso.provider.asked("token");
    let elsewhere = Returned { iss: Some("https://evil.example".into()), ..answer(&given) };
    assert_eq!(sso.back(&cookie, &elsewhere).await.unwrap_err(), Refused::NotBelieved);
    assert_eq!(sso.provider.asked("token"), exchanged, "an answer of another provider is not sent on");
    let (cookie, given) = sso.away(&zoe).await;
    let named = Returned { iss: Some(sso.provider.issuer()), ..answer(&given) };
    sso.back(&cookie, &named).await.unwrap();
}

#[tokio::test]
async fn the_secret_goes_where_and_how_it_was_entered() {
    let sso = acme(|_| {}).await;
    let identity = &sso.world.identity;
    let base = base_of(&form(&sso.provider.issuer()));
    let with = |edit: &dyn Fn(&mut ConnectionForm)| {
        let mut form = form(&sso.provider.issuer());
        plain(&mut form, &base);
        form.client_secret = None;
        edit(&mut form);
        form
    };
    let test = async |form| identity.test_sso_connection(&sso.owner.caller, form, &places()).await;
    let save = async |form| identity.save_sso_connection(&sso.owner.caller, form).await;
    let fine = |tested: &tale_identity::sso::Tested| {
        [Some(&tested.discovery), tested.keys.as_ref(), tested.credentials.as_ref()].map(|step| step.map(Result::is_ok))
    };
    let all = [Some(true), Some(true), Some(true)];
    assert_eq!(fine(&test(with(&|_| {})).await.unwrap()), all);
    let wrong = test(with(&|form| form.client_secret = Some("wrong".into()))).await.unwrap();
    assert_eq!(fine(&wrong), [Some(true), Some(true), Some(false)]);
    let missing = test(with(&|form| {
        settings(form).user_info_url = format!("{base}/nowhere");
        form.client_secret = Some(SECRET.into());
    }));
    assert_eq!(fine(&missing.await.unwrap()), [Some(true), Some(false), Some(true)]);

    // In the body where the provider wants that, and refusals that look like a success are refusals.
    assert_eq!(sso.provider.asked("secret in a body"), 0);
    save(with(&|form| settings(form).secret_in_body = true)).await.unwrap();
    sso.provider.refuse_politely();
    sso.log_in(&person(json!("zoe-1"), "zoe@acme.test")).await.unwrap();
    assert!(sso.provider.asked("secret in a body") > 0);
    let (cookie, given) = sso.away(&person(json!("zoe-1"), "zoe@acme.test")).await;
    let unknown = Returned { code: Some("unknown".into()), ..answer(&given) };
    assert!(
        matches!(sso.back(&cookie, &unknown).await.unwrap_err(), Refused::ByProvider(code) if code == "invalid_grant")
    );

    // The stored secret does not travel to another provider, whichever address is another one.
    let thief = IdentityProvider::start().await;
    for edit in [
        (|form, to| settings(form).token_url = to) as fn(&mut ConnectionForm, String),
        |form, to| settings(form).authorization_url = to,
        |form, to| settings(form).user_info_url = to,
        |form, _| form.config.client_id = "another".into(),
    ] {
        let stolen = || with(&|form| edit(form, thief.at("/token")));
        assert_eq!(test(stolen()).await.unwrap_err().code, Code::InvalidBody);
        assert_eq!(save(stolen()).await.unwrap_err().code, Code::InvalidBody);
    }
    assert_eq!(thief.asked("token"), 0);

    // The same client under other names of its people: the secret stays, a sign-in under way does not.
    let (cookie, given) = sso.away(&person(json!("zoe-1"), "zoe@acme.test")).await;
    save(with(&|form| settings(form).subject = "account.number".into())).await.unwrap();
    assert_eq!(sso.back(&cookie, &answer(&given)).await.unwrap_err(), Refused::SwitchedOff);
    let mut numbered = person(json!("zoe-1"), "zoe@acme.test");
    numbered["account"] = json!({ "number": 7 });
    sso.log_in(&numbered).await.unwrap();
    let read = identity.sso_connection(&sso.owner.caller).await.unwrap().unwrap();
    assert_eq!(read.config.unwrap().oauth2.unwrap().subject, "account.number");
    let fields: Value = sqlx::query_scalar(
        "SELECT details -> 'fields' FROM app.audit_entries WHERE action = 'sso.connection_updated' ORDER BY id DESC LIMIT 1",
    )
    .fetch_one(&sso.world.db.app)
    .await
    .unwrap();
    assert_eq!(fields, json!(["issuer", "subject", "secretInBody"]));
    let stored: String =
        sqlx::query_scalar("SELECT secret FROM app.sso_connections").fetch_one(&sso.world.db.app).await.unwrap();
    assert!(!stored.contains(SECRET) && stored.starts_with("v1."));
    let nothing = with(&|form| form.config.oauth2 = None);
    assert_eq!(save(nothing).await.unwrap_err().code, Code::InvalidBody);
}

#[tokio::test]
async fn roles_and_teams_follow_what_the_userinfo_address_says() {
    let sso = acme(|form| {
        form.config.auto_assign = true;
        form.config.team_sync = true;
        form.config.claims.groups = "org.groups".into();
        form.config.rules = vec![rule("groups", "writers", Role::Editor)];
    })
    .await;
    let mut zoe = person(json!("zoe-1"), "zoe@acme.test");
    zoe["org"] = json!({ "groups": ["writers"] });
    sso.log_in(&zoe).await.unwrap();
    assert_eq!(sso.role("zoe@acme.test").await, Some(Role::Editor));
    assert_eq!(sso.teams().await, [("writers".to_owned(), vec!["zoe@acme.test".to_owned()])]);
    sso.log_in(&person(json!("zoe-1"), "zoe@acme.test")).await.unwrap();
    assert_eq!(sso.role("zoe@acme.test").await, Some(Role::Editor), "what is not said moves nobody");
    zoe["org"] = json!({ "groups": [] });
    sso.log_in(&zoe).await.unwrap();
    assert_eq!((sso.role("zoe@acme.test").await, sso.teams().await), (Some(Role::Member), Vec::new()));
}
