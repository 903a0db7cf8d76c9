//! Sign-in at an organization's identity provider, against a real one that can be told to lie.

use std::time::Duration;

use serde_json::{Value, json};
use tale_core::crypto::hmac_sha256;
use tale_core::ids::OrgId;
use tale_core::net::HostPolicy;
use tale_core::{Clock, Code};
use tale_identity::api_keys::BelongsTo;
use tale_identity::members::{MemberChange, NewMember};
use tale_identity::sessions::SignedIn;
use tale_identity::sso::{ClaimPaths, Config, ConnectionForm, Places, Protocol, Refused, Returned, Rule, SsoEntry};
use tale_identity::teams::NewTeam;
use tale_identity::{Caller, IdentityConfig, Role};
use tale_testkit::identity_provider::{CLIENT, Forged, Given, IdentityProvider, SECRET, unsigned};

use crate::world::{Person, World, device, here};

pub fn places() -> Places {
    let here = "https://tale.example.org".to_owned();
    Places { all: vec![here.clone()], here }
}

/// Acme with a connection to an identity provider of its own.
pub struct Sso {
    pub world: World,
    pub owner: Person,
    pub provider: IdentityProvider,
}

pub fn form(issuer: &str) -> ConnectionForm {
    ConnectionForm {
        display_name: "Acme".into(),
        enabled: true,
        default_role: Role::Member,
        domains: Vec::new(),
        client_secret: Some(SECRET.into()),
        config: Config {
            protocol: Protocol::Oidc,
            issuer: issuer.into(),
            client_id: CLIENT.into(),
            scopes: ["openid", "email", "profile"].map(String::from).to_vec(),
            claims: ClaimPaths {
                email: "email".into(),
                name: "name".into(),
                groups: "groups".into(),
                roles: "realm_access.roles".into(),
            },
            auto_assign: false,
            rules: Vec::new(),
            team_sync: false,
            excluded_groups: Vec::new(),
            own_callback: false,
            saml: None,
            oauth2: None,
        },
    }
}

pub fn rule(claim: &str, value: &str, role: Role) -> Rule {
    Rule { claim: claim.into(), value: value.into(), role }
}

impl Sso {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Acme with a connection that `edit` changed.
    pub async fn with(edit: impl FnOnce(&mut ConnectionForm)) -> Self {
        let config = IdentityConfig { provider_hosts: HostPolicy::PrivateAllowed, ..IdentityConfig::default() };
        let world = World::with(config).await;
        let owner = world.owner().await;
        let provider = IdentityProvider::start().await;
        let mut form = form(&provider.issuer());
        edit(&mut form);
        world.identity.save_sso_connection(&owner.caller, form).await.unwrap();
        Self { world, owner, provider }
    }

    pub async fn edit(&self, edit: impl FnOnce(&mut ConnectionForm)) {
        let mut form = form(&self.provider.issuer());
        edit(&mut form);
        self.world.identity.save_sso_connection(&self.owner.caller, form).await.unwrap();
    }

    /// Claims of an honest token.
    pub fn claims(&self, subject: &str, email: &str) -> Value {
        let now = self.world.clock.now().timestamp();
        json!({
            "iss": self.provider.issuer(), "aud": CLIENT, "sub": subject, "email": email, "name": "Zoë",
            "iat": now, "exp": now + 300,
        })
    }

    /// As far as the provider sends the browser back: its cookie and the answer.
    pub async fn away(&self, claims: &Value) -> (String, Given) {
        let connection = self.world.identity.sso_connection(&self.owner.caller).await.unwrap().unwrap().id;
        let begun = self.world.identity.begin_sso(connection, &places(), Some("/dashboard/x")).await.unwrap().unwrap();
        let given = self.provider.log_in(begun.location.as_str(), claims);
        (begun.cookie, given)
    }

    pub async fn back(&self, cookie: &str, returned: &Returned) -> Result<SignedIn, Refused> {
        self.back_at(None, cookie, returned).await
    }

    /// Back at the address of an organization, or at the shared one.
    pub async fn back_at(&self, at: Option<OrgId>, cookie: &str, returned: &Returned) -> Result<SignedIn, Refused> {
        match self.world.identity.finish_sso(at, Some(cookie), returned, &device("203.0.113.9")).await.unwrap() {
            SsoEntry::SignedIn { session, next } => {
                assert_eq!(next.as_deref(), Some("/dashboard/x"));
                Ok(session)
            }
            SsoEntry::Refused(refused) => Err(refused),
        }
    }

    pub async fn log_in(&self, claims: &Value) -> Result<SignedIn, Refused> {
        let (cookie, given) = self.away(claims).await;
        self.back(&cookie, &answer(&given)).await
    }

    pub async fn role(&self, email: &str) -> Option<Role> {
        let members = self.world.identity.members(&self.owner.caller).await.unwrap();
        members.into_iter().find(|member| member.email == email).map(|member| member.role)
    }

    async fn count(&self, table: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM app.{table}")))
            .fetch_one(&self.world.db.app)
            .await
            .unwrap()
    }

    pub async fn rows(&self) -> Vec<i64> {
        let mut rows = Vec::new();
        for table in ["users", "memberships", "external_identities", "sessions", "teams", "team_members"] {
            rows.push(self.count(table).await);
        }
        rows
    }

    /// The names of the teams and who is in them.
    pub async fn teams(&self) -> Vec<(String, Vec<String>)> {
        let mut all = Vec::new();
        for team in self.world.identity.teams(&self.owner.caller).await.unwrap() {
            let members = self.world.identity.team_members(&self.owner.caller, team.id).await.unwrap();
            all.push((team.name, members.into_iter().map(|member| member.email).collect()));
        }
        all
    }
}

pub fn answer(given: &Given) -> Returned {
    Returned { state: Some(given.state.clone()), code: Some(given.code.clone()), ..Returned::default() }
}

#[tokio::test]
async fn somebody_new_gets_a_seat_and_the_same_person_comes_back_to_it() {
    let sso = Sso::new().await;
    let zoe = sso.claims("zoe-1", "Zoe@Acme.test");
    let first = sso.log_in(&zoe).await.unwrap();
    assert_eq!((first.email.as_str(), first.name.as_str()), ("zoe@acme.test", "Zoë"));
    assert_eq!(first.active_org, Some(sso.owner.org));
    assert_eq!(sso.role("zoe@acme.test").await, Some(Role::Member));
    let again = sso.log_in(&zoe).await.unwrap();
    assert_eq!(again.user, first.user);
    assert_eq!(sso.world.audited(sso.owner.org, "member.added").await, 1);
    assert_eq!(sso.world.audited(sso.owner.org, "auth.signed_in").await, 2 + 1, "the owner's own is there too");
    // The account is the provider's own, so its session is like any other.
    let principal = sso.world.identity.authenticate_session(&again.token, false).await.unwrap();
    assert!(!principal.confined);
    // What was read of the provider is not read at each sign-in.
    assert_eq!((sso.provider.asked("discovery"), sso.provider.asked("keys")), (1, 1));

    // Two first sign-ins at once are one person with one seat.
    let ada = sso.claims("ada-1", "ada@acme.test");
    let (left, right) = tokio::join!(sso.log_in(&ada), sso.log_in(&ada));
    assert_eq!(left.unwrap().user, right.unwrap().user);
    assert_eq!(sso.world.audited(sso.owner.org, "member.added").await, 2);
}

#[tokio::test]
async fn nobody_gets_a_seat_that_was_not_theirs_and_refusals_change_nothing() {
    let sso = Sso::with(|form| form.domains = vec!["acme.test".into(), "@Other.test".into()]).await;
    let eve = sso.world.stranger("eve@other.test", "Other").await;
    let bob = sso.world.member(&sso.owner, "bob@acme.test", Role::Editor).await;
    let dan = sso.world.member(&sso.owner, "dan@acme.test", Role::Editor).await;
    let change = MemberChange { role: Some(Role::Disabled), ..MemberChange::default() };
    sso.world.identity.update_member(&sso.owner.caller, dan.id, &change).await.unwrap();
    sso.log_in(&sso.claims("bob-1", "bob@acme.test")).await.unwrap();
    sso.log_in(&sso.claims("zoe-1", "zoe@acme.test")).await.unwrap();
    let before = sso.rows().await;
    let with = |subject: &str, email: &str, name: &str, value: Value| {
        let mut claims = sso.claims(subject, email);
        claims[name] = value;
        claims
    };
    for (claims, refused) in [
        (sso.claims("eve-1", "eve@other.test"), Refused::NoSeat),
        (sso.claims("dan-1", "dan@acme.test"), Refused::Disabled),
        (sso.claims("mallory", "bob@acme.test"), Refused::LinkedOtherwise),
        (sso.claims("zoe-1", "bob@acme.test"), Refused::LinkedOtherwise),
        (sso.claims("zoe-1", "zoe.new@acme.test"), Refused::LinkedOtherwise),
        (sso.claims("new", "new@elsewhere.test"), Refused::OtherDomain),
        (with("new", "owner@acme.test", "email_verified", json!(false)), Refused::EmailUnverified),
        (with("new", "x", "email", json!("not an address")), Refused::NoEmail),
        (with("new", "x", "email", json!(["owner@acme.test"])), Refused::NoEmail),
    ] {
        assert_eq!(sso.log_in(&claims).await.unwrap_err(), refused, "{claims}");
    }
    assert_eq!(sso.rows().await, before);
    assert_eq!(sso.world.audited(sso.owner.org, "auth.sign_in_failed").await, 9);
    assert_eq!(sso.world.audited(eve.org, "auth.sign_in_failed").await, 0, "another organization learns nothing");
    // Removing a member forgets who they were, so that the next one at this address starts clean.
    sso.world.identity.remove_member(&sso.owner.caller, bob.id).await.unwrap();
    assert_eq!(sso.log_in(&sso.claims("bob-1", "bob@acme.test")).await.unwrap_err(), Refused::NoSeat);
}

#[tokio::test]
async fn a_session_of_somebody_elses_account_opens_this_organization_only() {
    let sso = Sso::new().await;
    let eve = sso.world.stranger("eve@other.test", "Other").await;
    let known = NewMember {
        email: "eve@other.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    sso.world.identity.add_member(&sso.owner.caller, &known).await.unwrap();
    let session = sso.log_in(&sso.claims("eve-1", "eve@other.test")).await.unwrap();
    let principal = sso.world.identity.authenticate_session(&session.token, false).await.unwrap();
    assert_eq!(principal.active_org, Some(sso.owner.org), "whatever was used last");
    assert!(sso.world.identity.caller_for_session(&principal, None).await.is_ok());
    let other = sso.world.identity.caller_for_session(&principal, Some(eve.org)).await.unwrap_err();
    assert_eq!(other.code, Code::OrgForbidden);
    // Nor can it leave a passkey or a key behind, which would open both.
    let caller = sso.world.identity.caller_for_session(&principal, None).await.unwrap();
    let change = MemberChange { role: Some(Role::Developer), ..MemberChange::default() };
    sso.world.identity.update_member(&sso.owner.caller, session.user, &change).await.unwrap();
    let caller = Caller { role: Role::Developer, ..caller };
    let key = sso.world.identity.create_key(&caller, BelongsTo::Maker, "mine", None).await.map(|key| key.id);
    assert_eq!(key.unwrap_err().code, Code::ApiKeyCreateForbidden);
    assert!(sso.world.identity.factors(&principal).await.unwrap().password_needed);
    let zoe = sso.log_in(&sso.claims("zoe-1", "zoe@acme.test")).await.unwrap();
    let zoe = sso.world.identity.authenticate_session(&zoe.token, false).await.unwrap();
    assert!(!sso.world.identity.factors(&zoe).await.unwrap().password_needed);
}

#[tokio::test]
async fn an_answer_counts_once_in_its_browser_and_in_its_time() {
    let sso = Sso::new().await;
    let claims = sso.claims("zoe-1", "zoe@acme.test");
    let (cookie, given) = sso.away(&claims).await;
    let (other_cookie, other) = sso.away(&claims).await;
    let answered = answer(&given);
    let nobody = sso.world.identity.finish_sso(None, None, &answered, &here()).await.unwrap();
    assert!(matches!(nobody, SsoEntry::Refused(Refused::OtherBrowser)));
    for cookie in [other_cookie.as_str(), "", "v1.00000000.AAAA"] {
        assert_eq!(sso.back(cookie, &answered).await.unwrap_err(), Refused::OtherBrowser);
    }
    let stateless = Returned { state: None, ..answered.clone() };
    assert_eq!(sso.back(&cookie, &stateless).await.unwrap_err(), Refused::OtherBrowser);
    sso.back(&cookie, &answered).await.unwrap();
    assert_eq!(sso.back(&cookie, &answered).await.unwrap_err(), Refused::Over, "once");

    // A code of another sign-in does not fit: its proof is another one.
    let mixed = Returned { code: Some(answer(&sso.away(&claims).await.1).code.unwrap()), ..answer(&other) };
    assert!(
        matches!(sso.back(&other_cookie, &mixed).await.unwrap_err(), Refused::ByProvider(code) if code == "invalid_grant")
    );

    let (cookie, given) = sso.away(&claims).await;
    sso.world.pass(Duration::from_secs(600));
    assert_eq!(sso.back(&cookie, &answer(&given)).await.unwrap_err(), Refused::Over, "ten minutes");

    // Another client of the provider, or no connection at all, ends what is under way.
    let fresh = sso.claims("zoe-1", "zoe@acme.test");
    let (cookie, given) = sso.away(&fresh).await;
    sso.edit(|form| form.config.client_id = "another".into()).await;
    assert_eq!(sso.back(&cookie, &answer(&given)).await.unwrap_err(), Refused::SwitchedOff);
    sso.edit(|form| form.enabled = false).await;
    let connection = sso.world.identity.sso_connection(&sso.owner.caller).await.unwrap().unwrap().id;
    let begun = sso.world.identity.begin_sso(connection, &places(), None).await.unwrap();
    assert!(matches!(begun, Err(Refused::SwitchedOff)));
}

#[tokio::test]
async fn forged_tokens_are_not_believed() {
    let sso = Sso::new().await;
    let honest = sso.claims("zoe-1", "zoe@acme.test");
    let before = sso.rows().await;
    let now = sso.world.clock.now().timestamp();
    let claim = |name: &'static str, value: Value| {
        move |mut draft: tale_testkit::identity_provider::Draft| {
            draft.claims[name] = value.clone();
            Forged::Signed(draft.header, draft.claims)
        }
    };
    let doubted = async |what: &str| {
        assert_eq!(sso.log_in(&honest).await.unwrap_err(), Refused::NotBelieved, "{what}");
    };
    for (name, value) in [
        ("iss", json!("https://evil.example")),
        ("aud", json!("another-client")),
        ("aud", json!([CLIENT, "another-client"])),
        ("azp", json!("another-client")),
        ("exp", json!(now - 61)),
        ("exp", json!("tomorrow")),
        ("iat", json!(now + 61)),
        ("nbf", json!(now + 61)),
        ("nonce", json!("replayed")),
        ("nonce", Value::Null),
        ("sub", json!("")),
        ("sub", json!("x".repeat(256))),
    ] {
        sso.provider.forge(claim(name, value.clone()));
        doubted(&format!("{name}: {value}")).await;
    }
    sso.provider.forge(|draft| Forged::Raw(format!("{}.", unsigned(&json!({ "alg": "none" }), &draft.claims))));
    doubted("none").await;
    // The public key as a shared secret, in each of its spellings; and the secret that stands among the keys.
    for (kid, secret) in [("first", None), ("shared", Some("secret"))] {
        sso.provider.forge(move |draft| {
            let signed = unsigned(&json!({ "alg": "HS256", "kid": kid }), &draft.claims);
            let key = secret.map_or_else(|| draft.jwk.to_string(), str::to_owned);
            let mac = hmac_sha256(key.as_bytes(), signed.as_bytes());
            use base64::Engine;
            Forged::Raw(format!("{signed}.{}", base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(mac)))
        });
        doubted("a shared secret").await;
    }
    for header in [
        json!({ "alg": "RS256", "kid": "first" }),
        json!({ "alg": "ES256", "kid": "unknown" }),
        json!({ "alg": "ES256", "kid": "first", "crit": ["b64"], "b64": false }),
        json!({ "kid": "first" }),
    ] {
        sso.provider.forge(move |draft| Forged::Signed(header.clone(), draft.claims));
        doubted("another header").await;
    }
    for raw in ["", "a.b", "e30.e30.e30", &"x".repeat(200_000)] {
        let raw = raw.to_owned();
        sso.provider.forge(move |_| Forged::Raw(raw.clone()));
        doubted("nonsense").await;
    }
    assert_eq!(sso.rows().await, before);
    sso.provider.honest();
    sso.log_in(&honest).await.unwrap();
    // A clock that is a minute off is none of it, and neither is a list with one client.
    let mut late = honest.clone();
    (late["exp"], late["iat"], late["aud"]) = (json!(now - 59), json!(now + 59), json!([CLIENT]));
    sso.log_in(&late).await.unwrap();
}

#[tokio::test]
async fn keys_are_read_again_for_a_new_one_and_not_for_each_unknown_one() {
    let sso = Sso::new().await;
    let claims = sso.claims("zoe-1", "zoe@acme.test");
    sso.log_in(&claims).await.unwrap();
    sso.provider.rotate();
    assert_eq!(sso.log_in(&claims).await.unwrap_err(), Refused::NotBelieved, "they were read just now");
    assert_eq!(sso.provider.asked("keys"), 1);
    sso.world.pass(Duration::from_secs(31));
    sso.log_in(&claims).await.unwrap();
    assert_eq!(sso.provider.asked("keys"), 2);
    sso.provider.forge(|draft| Forged::Signed(json!({ "alg": "ES256", "kid": "none of them" }), draft.claims));
    for _ in 0..5 {
        assert_eq!(sso.log_in(&claims).await.unwrap_err(), Refused::NotBelieved);
    }
    assert_eq!(sso.provider.asked("keys"), 2);
}

#[tokio::test]
async fn an_answer_of_another_provider_is_not_sent_on() {
    let sso = Sso::new().await;
    let claims = sso.claims("zoe-1", "zoe@acme.test");
    let (cookie, given) = sso.away(&claims).await;
    let elsewhere = Returned { iss: Some("https://evil.example".into()), ..answer(&given) };
    assert_eq!(sso.back(&cookie, &elsewhere).await.unwrap_err(), Refused::NotBelieved);
    assert_eq!(sso.provider.asked("token"), 0, "the code stays here");
    let (cookie, given) = sso.away(&claims).await;
    let named = Returned { iss: Some(sso.provider.issuer()), ..answer(&given) };
    sso.back(&cookie, &named).await.unwrap();

    // A provider that names itself in its answers is not believed without it.
    let other = Sso::new().await;
    other.provider.promise_iss();
    let (cookie, given) = other.away(&other.claims("zoe-1", "zoe@acme.test")).await;
    assert_eq!(other.back(&cookie, &answer(&given)).await.unwrap_err(), Refused::NotBelieved);
    assert_eq!(other.provider.asked("token"), 0);

    let impostor = Sso::new().await;
    impostor.provider.call_itself("https://login.example.org");
    let connection = impostor.world.identity.sso_connection(&impostor.owner.caller).await.unwrap().unwrap().id;
    let begun = impostor.world.identity.begin_sso(connection, &places(), None).await.unwrap();
    assert!(matches!(begun, Err(Refused::Unreachable)));
}

#[tokio::test]
async fn rules_move_members_and_never_owners() {
    let sso = Sso::with(|form| {
        form.config.auto_assign = true;
        form.config.rules = vec![
            rule("groups", "admins", Role::Admin),
            rule("roles", "writer", Role::Editor),
            rule("department.name", "R&D", Role::Developer),
        ];
    })
    .await;
    let said = |email: &str, groups: Value, roles: Value| {
        let mut claims = sso.claims(email, email);
        (claims["groups"], claims["realm_access"], claims["department"]) =
            (groups, json!({ "roles": roles }), json!({ "name": "Sales" }));
        claims
    };
    let zoe = "zoe@acme.test";
    sso.log_in(&said(zoe, json!(["admins"]), json!(["writer"]))).await.unwrap();
    assert_eq!(sso.role(zoe).await, Some(Role::Admin), "the first that matches");
    sso.log_in(&said(zoe, json!([]), json!("writer"))).await.unwrap();
    assert_eq!(sso.role(zoe).await, Some(Role::Editor), "down as well");
    let mut unsaid = sso.claims(zoe, zoe);
    unsaid["department"] = json!({ "name": "Sales" });
    sso.log_in(&unsaid).await.unwrap();
    assert_eq!(sso.role(zoe).await, Some(Role::Editor), "what is not said moves nobody");
    sso.log_in(&said(zoe, json!([]), json!([]))).await.unwrap();
    assert_eq!(sso.role(zoe).await, Some(Role::Member));
    assert_eq!(sso.world.audited(sso.owner.org, "member.role_changed").await, 2);
    sso.log_in(&said("owner@acme.test", json!([]), json!([]))).await.unwrap();
    assert_eq!(sso.role("owner@acme.test").await, Some(Role::Owner));

    let refused =
        |form: ConnectionForm| async { sso.world.identity.save_sso_connection(&sso.owner.caller, form).await };
    let mut owners = form(&sso.provider.issuer());
    owners.config.rules = vec![rule("groups", "bosses", Role::Owner)];
    assert_eq!(refused(owners).await.unwrap_err().code, Code::InvalidBody);
    // Without the switch the rules say nothing.
    sso.edit(|form| form.config.rules = vec![rule("groups", "admins", Role::Admin)]).await;
    sso.log_in(&said(zoe, json!(["admins"]), json!([]))).await.unwrap();
    assert_eq!(sso.role(zoe).await, Some(Role::Member));
}

#[tokio::test]
async fn teams_follow_groups_and_what_people_did_by_hand_stays() {
    let sso = Sso::with(|form| {
        form.config.team_sync = true;
        form.config.excluded_groups = vec!["Everyone".into()];
    })
    .await;
    for name in ["Finance ", "Legal", "everyone"] {
        let team = NewTeam { name: name.into(), ..NewTeam::default() };
        sso.world.identity.create_team(&sso.owner.caller, &team).await.unwrap();
    }
    let (zoe, owner) = ("zoe@acme.test", "owner@acme.test");
    let groups = |groups: Value| {
        let mut claims = sso.claims("zoe-1", zoe);
        claims["groups"] = groups;
        claims
    };
    let teams = |all: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
        all.iter().map(|(name, who)| ((*name).into(), who.iter().map(|who| (*who).into()).collect())).collect()
    };
    let session = sso.log_in(&groups(json!(["finance", "Night  shift", "EVERYONE", "x".repeat(300)]))).await.unwrap();
    let after =
        teams(&[("everyone", &[owner]), ("Finance", &[owner, zoe]), ("Legal", &[owner]), ("Night  shift", &[zoe])]);
    assert_eq!(sorted(sso.teams().await), sorted(after.clone()));
    let legal = sso.world.identity.teams(&sso.owner.caller).await.unwrap();
    let legal = legal.iter().find(|team| team.name == "Legal").unwrap().id;
    sso.world.identity.add_to_team(&sso.owner.caller, legal, &[session.user]).await.unwrap();
    let entries = sso.count("audit_entries").await;
    sso.log_in(&groups(json!(["finance", "night shift"]))).await.unwrap();
    assert_eq!(sso.count("audit_entries").await, entries + 1, "the sign-in alone");
    sso.log_in(&sso.claims("zoe-1", zoe)).await.unwrap();
    assert_eq!(sso.world.audited(sso.owner.org, "team.member_removed").await, 0, "nothing said, nothing taken");
    sso.log_in(&groups(json!([]))).await.unwrap();
    let left = teams(&[("everyone", &[owner]), ("Finance", &[owner]), ("Legal", &[owner, zoe])]);
    assert_eq!(sorted(sso.teams().await), sorted(left));
    for (action, count) in [("team.created", 4), ("team.deleted", 1), ("team.member_removed", 2)] {
        assert_eq!(sso.world.audited(sso.owner.org, action).await, count, "{action}");
    }
}

fn sorted(mut teams: Vec<(String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
    for (_, who) in &mut teams {
        who.sort();
    }
    teams.sort();
    teams
}

#[tokio::test]
async fn people_of_entra_are_known_by_tenant_and_object_and_graph_knows_their_groups() {
    let sso = Sso::with(|form| {
        form.config.protocol = Protocol::Entra;
        form.config.auto_assign = true;
        form.config.team_sync = true;
        form.config.rules = vec![rule("groups", "g-2", Role::Editor)];
    })
    .await;
    let mut claims = sso.claims("pairwise", "x");
    claims.as_object_mut().unwrap().remove("email");
    (claims["oid"], claims["tid"], claims["preferred_username"]) =
        (json!("object-1"), json!("tenant"), json!("zoe@acme.test"));
    // More groups than a token holds: it says only where they are.
    claims["_claim_names"] = json!({ "groups": "src1" });
    sso.log_in(&claims).await.unwrap();
    assert_eq!(sso.role("zoe@acme.test").await, Some(Role::Member));
    assert_eq!(sso.teams().await, [], "Graph did not answer, so nothing is known");
    sso.provider.groups(&[("g-1", "Sales"), ("g-2", "Writers")]);
    sso.log_in(&claims).await.unwrap();
    assert_eq!(sso.role("zoe@acme.test").await, Some(Role::Editor));
    let names: Vec<String> = sso.teams().await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Sales", "Writers"]);
    // The same person under another pairwise name is the same person; another tenant's is nobody.
    claims["sub"] = json!("another");
    sso.log_in(&claims).await.unwrap();
    claims["tid"] = json!("other-tenant");
    assert_eq!(sso.log_in(&claims).await.unwrap_err(), Refused::NotBelieved);
    let mut everybody = form("https://login.microsoftonline.com/common/v2.0");
    everybody.config.protocol = Protocol::Entra;
    let refused = sso.world.identity.save_sso_connection(&sso.owner.caller, everybody).await;
    assert_eq!(refused.unwrap_err().code, Code::InvalidUrl);
}

#[tokio::test]
async fn userinfo_adds_what_the_token_leaves_out_about_the_same_person() {
    let sso = Sso::new().await;
    let mut claims = sso.claims("zoe-1", "x");
    claims.as_object_mut().unwrap().remove("email");
    sso.provider.say(json!({ "email": "zoe@acme.test", "name": "Another", "iss": "https://evil.example" }));
    let session = sso.log_in(&claims).await.unwrap();
    assert_eq!(
        (session.email.as_str(), session.name.as_str()),
        ("zoe@acme.test", "Zoë"),
        "what is signed counts first"
    );
    sso.provider.say(json!({ "sub": "bob-1", "email": "bob@acme.test" }));
    assert_eq!(sso.log_in(&claims).await.unwrap_err(), Refused::NotBelieved);
}

#[tokio::test]
async fn settings_keep_secrets_where_they_were_entered_and_damage_where_it_is() {
    let sso = Sso::new().await;
    let identity = &sso.world.identity;
    let bob = sso.world.member(&sso.owner, "bob@acme.test", Role::Developer).await;
    assert_eq!(identity.sso_connection(&bob.caller).await.unwrap_err().code, Code::OrgForbidden);
    assert_eq!(identity.remove_sso_connection(&bob.caller).await.unwrap_err().code, Code::OrgForbidden);

    let kept = || ConnectionForm { client_secret: None, ..form(&sso.provider.issuer()) };
    let tested = identity.test_sso_connection(&sso.owner.caller, kept(), &places()).await.unwrap();
    assert_eq!((tested.discovery, tested.keys, tested.credentials), (Ok(()), Some(Ok(())), Some(Ok(()))));
    let wrong = ConnectionForm { client_secret: Some("wrong".into()), ..kept() };
    let tested = identity.test_sso_connection(&sso.owner.caller, wrong, &places()).await.unwrap();
    assert!(tested.credentials.unwrap().unwrap_err().contains("invalid_client"));
    // The stored secret does not travel to another provider, neither by a test nor by a save.
    let thief = IdentityProvider::start().await;
    let stolen = || ConnectionForm { client_secret: None, ..form(&thief.issuer()) };
    let test = identity.test_sso_connection(&sso.owner.caller, stolen(), &places()).await;
    assert_eq!(test.unwrap_err().code, Code::InvalidBody);
    assert_eq!(identity.save_sso_connection(&sso.owner.caller, stolen()).await.unwrap_err().code, Code::InvalidBody);
    assert_eq!((thief.asked("discovery"), thief.asked("token")), (0, 0));

    let stored: String =
        sqlx::query_scalar("SELECT secret FROM app.sso_connections").fetch_one(&sso.world.db.app).await.unwrap();
    assert!(!stored.contains(SECRET) && stored.starts_with("v1."));
    sqlx::query("UPDATE app.sso_connections SET secret = 'v1.dead.beef'").execute(&sso.world.db.app).await.unwrap();
    let save = identity.save_sso_connection(&sso.owner.caller, form(&sso.provider.issuer())).await;
    assert_eq!(save.unwrap_err().code, Code::SsoConfigUnreadable);
    assert!(identity.sso_connection(&sso.owner.caller).await.unwrap().unwrap().config.is_none());
    identity.remove_sso_connection(&sso.owner.caller).await.unwrap();
    assert_eq!(identity.remove_sso_connection(&sso.owner.caller).await.unwrap_err().code, Code::SsoNotConfigured);

    // Without the operator's leave no private host is called.
    let public = sso.world.again(IdentityConfig::default());
    let save = public.save_sso_connection(&sso.owner.caller, form("http://127.0.0.1:9/tenant")).await;
    assert_eq!(save.unwrap_err().code, Code::PrivateHostBlocked);
}

#[tokio::test]
async fn the_sign_in_page_learns_names_and_nothing_about_accounts() {
    let sso = Sso::new().await;
    let identity = &sso.world.identity;
    let names = async |email: Option<&str>| {
        let offer = identity.sso_offer(email).await.unwrap();
        (offer.connections.into_iter().map(|one| one.display_name).collect::<Vec<_>>(), offer.by_address)
    };
    assert_eq!(names(None).await, (vec!["Acme".to_owned()], false));
    sso.edit(|form| form.domains = vec!["acme.test".into()]).await;
    assert_eq!(names(None).await, (vec![], true), "found by an address only");
    assert_eq!(names(Some("nobody@ACME.test")).await.0, ["Acme"]);
    assert_eq!(names(Some("owner@other.test")).await.0, [""; 0]);
    sso.edit(|form| form.enabled = false).await;
    assert_eq!(names(None).await, (vec![], false));
}
