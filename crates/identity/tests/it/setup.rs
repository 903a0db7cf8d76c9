//! The first owner, sign-up, organizations.

use tale_core::Code;
use tale_identity::accounts::{Setup, SignUp};
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, World, cheap, code, device, here, setup};

#[tokio::test]
async fn setup_makes_the_owner_once() {
    let world = World::new().await;
    assert!(world.identity.setup_required().await.unwrap());
    let owner = world.owner().await;
    assert_eq!(owner.caller.role, Role::Owner);
    assert_eq!(owner.caller.org_slug, "acme");
    assert!(!world.identity.setup_required().await.unwrap());
    assert!(world.identity.setup_notice().await.unwrap().is_none());
    assert_eq!(code(world.identity.setup(&setup("second@acme.test", "Other"), &here()).await), Code::SetupAlreadyDone);
    assert_eq!(world.audited(owner.org, "organization.created").await, 1);
    let overview = world.identity.session_overview(Some(&owner.principal), &here()).await.unwrap();
    assert_eq!(overview.active_org, Some(owner.org));
    assert_eq!(overview.organizations.len(), 1);
    assert!(!overview.setup_required && overview.can_create_organization);
}

#[tokio::test]
async fn of_simultaneous_setups_one_wins() {
    let world = World::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let identity = world.identity.clone();
        tasks.spawn(async move {
            identity.setup(&setup(&format!("owner{n}@acme.test"), &format!("Acme {n}")), &here()).await
        });
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert!(answers.into_iter().filter_map(Result::err).all(|problem| problem.code == Code::SetupAlreadyDone));
    let users: i64 = sqlx::query_scalar("SELECT count(*) FROM app.users").fetch_one(&world.db.app).await.unwrap();
    assert_eq!(users, 1);
}

#[tokio::test]
async fn setup_from_another_machine_needs_the_token() {
    let config = IdentityConfig { setup_token: Some("preset-token-1".to_owned().into()), ..IdentityConfig::default() };
    let world = World::with(config).await;
    let far = device("203.0.113.9");
    let with =
        |token: Option<&str>| Setup { setup_token: token.map(str::to_owned), ..setup("owner@acme.test", "Acme") };
    assert!(world.identity.session_overview(None, &far).await.unwrap().setup_token_required);
    assert!(!world.identity.session_overview(None, &here()).await.unwrap().setup_token_required);
    assert_eq!(code(world.identity.setup(&with(None), &far).await), Code::SetupTokenRequired);
    let sign_up =
        SignUp { name: "X".into(), email: "x@acme.test".into(), password: PASSWORD.into(), setup_token: None };
    assert_eq!(
        code(world.identity.sign_up(&sign_up, &far).await),
        Code::SetupTokenRequired,
        "sign-up is no way around it"
    );
    for _ in 0..5 {
        assert_eq!(code(world.identity.setup(&with(Some("wrong")), &far).await), Code::SetupTokenRequired);
    }
    assert_eq!(
        code(world.identity.setup(&with(Some("preset-token-1")), &far).await),
        Code::SignInLocked,
        "guesses are slowed down"
    );
    world.pass(std::time::Duration::from_secs(1));
    world.identity.setup(&with(Some("preset-token-1")), &far).await.unwrap();
}

#[tokio::test]
async fn a_fresh_token_stands_in_the_notice() {
    let world = World::new().await;
    let notice = world.identity.setup_notice().await.unwrap().unwrap();
    let token = notice.rsplit(' ').next().unwrap();
    let far = device("203.0.113.9");
    let setup = Setup { setup_token: Some(token.to_owned()), ..setup("owner@acme.test", "Acme") };
    world.identity.setup(&setup, &far).await.unwrap();
}

#[tokio::test]
async fn wrong_setup_input_names_the_field() {
    let world = World::new().await;
    let path = async |setup: Setup| {
        let problem = world.identity.setup(&setup, &here()).await.unwrap_err();
        (problem.code, problem.data.map(|data| data["issues"][0]["path"].as_str().unwrap_or_default().to_owned()))
    };
    let good = || setup("owner@acme.test", "Acme");
    assert_eq!(path(Setup { email: "nobody".into(), ..good() }).await, (Code::InvalidBody, Some("email".into())));
    assert_eq!(path(Setup { name: "  ".into(), ..good() }).await, (Code::InvalidBody, Some("name".into())));
    assert_eq!(
        path(Setup { organization_name: "A & B".into(), ..good() }).await,
        (Code::InvalidBody, Some("organizationName".into()))
    );
    assert_eq!(path(Setup { password: "short".into(), ..good() }).await.0, Code::PasswordPolicy);
    assert_eq!(path(Setup { organization_name: "Default".into(), ..good() }).await.0, Code::OrgNameReserved);
    assert!(world.identity.setup_required().await.unwrap(), "nothing was made");
}

#[tokio::test]
async fn sign_up_closes_after_the_first_account_unless_left_open() {
    let world = World::new().await;
    let sign_up =
        |email: &str| SignUp { name: "Ada".into(), email: email.into(), password: PASSWORD.into(), setup_token: None };
    let first = world.identity.sign_up(&sign_up("Ada@Acme.test"), &here()).await.unwrap();
    assert_eq!((first.email.as_str(), first.active_org), ("ada@acme.test", None));
    assert_eq!(code(world.identity.sign_up(&sign_up("bob@acme.test"), &here()).await), Code::SignUpDisabled);
    let open =
        world.again(IdentityConfig { allow_open_sign_up: true, hash_cost: cheap(), ..IdentityConfig::default() });
    open.sign_up(&sign_up("bob@acme.test"), &device("203.0.113.9")).await.unwrap();
    assert_eq!(code(open.sign_up(&sign_up("BOB@acme.test"), &here()).await), Code::EmailTaken);
    // An account without organization makes its first one.
    let principal = world.identity.authenticate_session(&first.token, false).await.unwrap();
    assert_eq!(code(world.identity.caller_for_session(&principal, None).await), Code::OrgForbidden);
    world.identity.create_organization(&principal, "Acme").await.unwrap();
    let principal = world.identity.authenticate_session(&first.token, false).await.unwrap();
    assert_eq!(world.identity.caller_for_session(&principal, None).await.unwrap().org_slug, "acme");
}

#[tokio::test]
async fn organizations_have_unique_slugs_and_listed_creators() {
    let world = World::new().await;
    let owner = world.owner().await;
    assert_eq!(code(world.identity.create_organization(&owner.principal, "ACME").await), Code::OrgNameTaken);
    let second = world.identity.create_organization(&owner.principal, "東京").await.unwrap();
    assert!(second.slug.starts_with("org-"));
    let renamed = world.identity.rename_organization(&owner.caller, "Acme Two").await.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.slug.as_str()), ("Acme Two", "acme"));
    assert_eq!(world.audited(owner.org, "organization.updated").await, 1);

    let listed = world.again(IdentityConfig {
        organization_creators: Some(vec!["boss@acme.test".into()]),
        hash_cost: cheap(),
        ..IdentityConfig::default()
    });
    assert_eq!(code(listed.create_organization(&owner.principal, "Third").await), Code::OrganizationCreationForbidden);
    assert!(!listed.session_overview(Some(&owner.principal), &here()).await.unwrap().can_create_organization);
    let member = world.member(&owner, "boss@acme.test", Role::Member).await;
    listed.create_organization(&member.principal, "Third").await.unwrap();
}

#[tokio::test]
async fn while_no_organization_exists_anyone_creates_the_first() {
    let world =
        World::with(IdentityConfig { organization_creators: Some(Vec::new()), ..IdentityConfig::default() }).await;
    let sign_up =
        SignUp { name: "Ada".into(), email: "ada@acme.test".into(), password: PASSWORD.into(), setup_token: None };
    let first = world.identity.sign_up(&sign_up, &here()).await.unwrap();
    let principal = world.identity.authenticate_session(&first.token, false).await.unwrap();
    world.identity.create_organization(&principal, "First").await.unwrap();
    assert_eq!(
        code(world.identity.create_organization(&principal, "Second").await),
        Code::OrganizationCreationForbidden
    );
}
