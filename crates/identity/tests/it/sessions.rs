//! Sessions in simulated time, and what ends them.

use std::time::Duration;

use tale_core::Code;
use tale_core::ids::SessionId;
use tale_identity::members::{MemberChange, NewMember};
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, Person, World, code, device, here};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn a_session_slides_while_it_is_used_and_ends_after_seven_days() {
    let world = World::new().await;
    let owner = world.owner().await;
    for _ in 0..10 {
        world.pass(DAY);
        world.identity.authenticate_session(&owner.token, false).await.unwrap();
    }
    for _ in 0..6 {
        world.pass(DAY);
        world.identity.authenticate_session(&owner.token, true).await.unwrap();
    }
    world.pass(DAY);
    assert_eq!(
        code(world.identity.authenticate_session(&owner.token, false).await),
        Code::Unauthorized,
        "background use keeps nothing alive"
    );
    assert_eq!(code(world.identity.authenticate_session("no such token", false).await), Code::Unauthorized);
    assert_eq!(world.identity.sweep().await.unwrap(), 1);
}

#[tokio::test]
async fn an_idle_session_ends_exactly_and_is_audited_once() {
    let world = World::with(IdentityConfig {
        session_idle_timeout: Some(Duration::from_secs(60)),
        ..IdentityConfig::default()
    })
    .await;
    let owner = world.owner().await;
    for _ in 0..10 {
        world.pass(Duration::from_secs(59));
        world.identity.authenticate_session(&owner.token, false).await.unwrap();
    }
    world.pass(Duration::from_secs(61));
    assert!(world.identity.sessions(&owner.principal).await.unwrap().is_empty());
    for _ in 0..2 {
        assert_eq!(code(world.identity.authenticate_session(&owner.token, false).await), Code::Unauthorized);
    }
    assert_eq!(world.audited(owner.org, "session.idle_revoked").await, 1);
}

#[tokio::test]
async fn an_organization_shortens_the_window_of_its_people_and_never_lengthens_it() {
    const MINUTE: Duration = Duration::from_secs(60);
    let world =
        World::with(IdentityConfig { session_idle_timeout: Some(15 * MINUTE), ..IdentityConfig::default() }).await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let stranger = world.stranger("s@other.test", "Other").await;
    let alive = async |person: &Person| world.identity.authenticate_session(&person.token, true).await.is_ok();

    // Longer than the deployment allows: nothing changes.
    world.window(&owner, Some(60)).await;
    world.pass(14 * MINUTE);
    for person in [&owner, &member, &stranger] {
        world.identity.authenticate_session(&person.token, false).await.unwrap();
    }
    world.window(&owner, Some(5)).await;

    // Exactly, at the next request, at every place that asks.
    world.pass(5 * MINUTE - Duration::from_secs(1));
    let asked = [(owner.principal.session, owner.org), (stranger.principal.session, stranger.org)];
    assert_eq!(world.identity.standing(&asked).await.unwrap().len(), 2);
    assert!(alive(&owner).await);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.identity.standing(&asked).await.unwrap().into_iter().collect::<Vec<_>>(), asked[1..]);
    assert!(world.identity.sessions(&owner.principal).await.unwrap().is_empty());
    assert!(!alive(&owner).await && alive(&stranger).await, "people of other organizations keep their window");
    assert_eq!(world.identity.sweep_idle().await.unwrap(), 1, "the member's, who asked for nothing more");
    assert_eq!(world.audited(owner.org, "session.idle_revoked").await, 2);

    // The shortest of all organizations counts; of one that shut the person out, nothing does.
    let new = NewMember {
        email: "s@other.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    world.identity.add_member(&owner.caller, &new).await.unwrap();
    assert!(!alive(&stranger).await);
    let again = world.sign_in("s@other.test", PASSWORD).await.unwrap();
    world
        .identity
        .update_member(
            &owner.caller,
            stranger.id,
            &MemberChange { role: Some(Role::Disabled), ..MemberChange::default() },
        )
        .await
        .unwrap();
    world.pass(14 * MINUTE);
    world.identity.authenticate_session(&again.token, true).await.unwrap();
    world.window(&owner, None).await;
}

#[tokio::test]
async fn uses_are_written_at_most_once_a_minute() {
    let world = World::new().await;
    let owner = world.owner().await;
    let last_used = async || -> chrono::DateTime<chrono::Utc> {
        sqlx::query_scalar("SELECT last_used_at FROM app.sessions").fetch_one(&world.db.app).await.unwrap()
    };
    let made = last_used().await;
    world.pass(Duration::from_secs(59));
    world.identity.authenticate_session(&owner.token, false).await.unwrap();
    assert_eq!(last_used().await, made);
    world.pass(Duration::from_secs(1));
    world.identity.authenticate_session(&owner.token, true).await.unwrap();
    assert_eq!(last_used().await, made);
    world.identity.authenticate_session(&owner.token, false).await.unwrap();
    assert_eq!(last_used().await, made + Duration::from_secs(60));
}

#[tokio::test]
async fn only_the_hash_of_a_token_is_stored() {
    let world = World::new().await;
    let owner = world.owner().await;
    let dump: String = sqlx::query_scalar("SELECT string_agg(s::text, '') FROM app.sessions s")
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    assert!(!dump.contains(&owner.token));
    assert!(dump.contains("127.0.0.0/24") && !dump.contains("127.0.0.1"));
}

#[tokio::test]
async fn people_see_and_end_their_own_sessions_only() {
    let world = World::new().await;
    let owner = world.owner().await;
    let other = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    let third = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let listed = world.identity.sessions(&owner.principal).await.unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(
        listed.iter().filter(|session| session.current).map(|session| session.id).collect::<Vec<_>>(),
        [owner.principal.session]
    );
    for foreign in [member.principal.session, SessionId::new()] {
        assert_eq!(code(world.identity.end_session(&owner.principal, foreign).await), Code::SessionNotFound);
    }
    let other_id = world.identity.authenticate_session(&other.token, false).await.unwrap().session;
    world.identity.end_session(&owner.principal, other_id).await.unwrap();
    assert_eq!(code(world.identity.authenticate_session(&other.token, false).await), Code::Unauthorized);
    world.identity.end_other_sessions(&owner.principal).await.unwrap();
    assert_eq!(code(world.identity.authenticate_session(&third.token, false).await), Code::Unauthorized);
    world.identity.authenticate_session(&owner.token, false).await.unwrap();
    world.identity.authenticate_session(&member.token, false).await.unwrap();
    world.identity.sign_out(&owner.principal).await.unwrap();
    assert_eq!(code(world.identity.authenticate_session(&owner.token, false).await), Code::Unauthorized);
}

#[tokio::test]
async fn a_password_change_ends_every_session() {
    let world = World::new().await;
    let owner = world.owner().await;
    let change =
        async |current: &str, new: &str| world.identity.change_password(&owner.principal, current, new, &here()).await;
    assert_eq!(code(change(PASSWORD, "short").await), Code::PasswordPolicy);
    assert_eq!(code(change("Wrong-Kettle-42", "Green-Kettle-43").await), Code::InvalidCredentials);
    change(PASSWORD, "Green-Kettle-43").await.unwrap();
    assert_eq!(code(world.identity.authenticate_session(&owner.token, false).await), Code::Unauthorized);
    assert_eq!(code(world.sign_in("owner@acme.test", PASSWORD).await), Code::InvalidCredentials);
    world.sign_in("owner@acme.test", "Green-Kettle-43").await.unwrap();
}

#[tokio::test]
async fn wrong_current_passwords_are_slowed_down_like_sign_ins() {
    let world = World::new().await;
    let owner = world.owner().await;
    let far = device("203.0.113.9");
    for _ in 0..5 {
        let answer = world.identity.change_password(&owner.principal, "Wrong-Kettle-42", "Green-Kettle-43", &far).await;
        assert_eq!(code(answer), Code::InvalidCredentials);
    }
    assert_eq!(
        code(world.identity.change_password(&owner.principal, PASSWORD, "Green-Kettle-43", &far).await),
        Code::SignInLocked
    );
    assert_eq!(code(world.sign_in("owner@acme.test", PASSWORD).await), Code::SignInLocked);
}

#[tokio::test]
async fn a_reset_by_an_admin_ends_the_members_sessions() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let change = MemberChange { password: Some("Green-Kettle-43".into()), ..MemberChange::default() };
    world.identity.update_member(&owner.caller, member.id, &change).await.unwrap();
    assert_eq!(code(world.identity.authenticate_session(&member.token, false).await), Code::Unauthorized);
    world.sign_in("m@acme.test", "Green-Kettle-43").await.unwrap();
    assert_eq!(world.audited(owner.org, "member.password_reset").await, 1);
}

#[tokio::test]
async fn an_account_is_renamed_by_its_owner() {
    let world = World::new().await;
    let owner = world.owner().await;
    let account = world.identity.rename_account(&owner.principal, "  Ada Lovelace ").await.unwrap();
    assert_eq!(account.name, "Ada Lovelace");
    assert!(account.has_password);
    assert_eq!(code(world.identity.rename_account(&owner.principal, "\n").await), Code::InvalidBody);
}

#[tokio::test]
async fn another_session_secret_ends_every_session() {
    let with = |secret: &str| IdentityConfig { session_secret: Some(secret.into()), ..IdentityConfig::default() };
    let world = World::with(with("the secret of this deployment")).await;
    let owner = world.owner().await;
    let replica = world.again(with("the secret of this deployment"));
    replica.authenticate_session(&owner.token, false).await.unwrap();
    let rotated = world.again(with("the secret after a rotation"));
    assert_eq!(code(rotated.authenticate_session(&owner.token, false).await), Code::Unauthorized);
    assert_eq!(
        code(world.again(IdentityConfig::default()).authenticate_session(&owner.token, false).await),
        Code::Unauthorized
    );
}
