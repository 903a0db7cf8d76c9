//! Preferences: language and theme follow the person, instructions the organization.

use tale_core::Code;
use tale_identity::Role;
use tale_identity::preferences::{Locale, Preferences, Theme};

use crate::world::{World, code};

#[tokio::test]
async fn preferences_are_kept_per_person_and_organization() {
    let world = World::new().await;
    let owner = world.owner().await;
    assert_eq!(world.identity.preferences(&owner.caller).await.unwrap(), Preferences::default());
    let wanted = Preferences {
        locale: Some(Locale::De),
        theme: Theme::Dark,
        instructions_enabled: Some(false),
        instructions: "Answer briefly.".into(),
    };
    world.identity.set_preferences(&owner.caller, &wanted).await.unwrap();
    assert_eq!(world.identity.preferences(&owner.caller).await.unwrap(), wanted);
    let second = world.identity.create_organization(&owner.principal, "Second").await.unwrap();
    let there = world.identity.caller_for_session(&owner.principal, Some(second.id)).await.unwrap();
    let elsewhere = world.identity.preferences(&there).await.unwrap();
    assert_eq!((elsewhere.locale, elsewhere.theme), (Some(Locale::De), Theme::Dark));
    assert_eq!((elsewhere.instructions_enabled, elsewhere.instructions.as_str()), (None, ""));
    let long = Preferences { instructions: "ä".repeat(3_201), ..wanted.clone() };
    assert_eq!(code(world.identity.set_preferences(&owner.caller, &long).await), Code::InvalidBody);
    world
        .identity
        .set_preferences(&owner.caller, &Preferences { instructions: "ä".repeat(3_200), ..wanted })
        .await
        .unwrap();
}

#[tokio::test]
async fn they_go_with_the_membership() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let wanted = Preferences { instructions: "Mine.".into(), ..Preferences::default() };
    world.identity.set_preferences(&member.caller, &wanted).await.unwrap();
    world.identity.remove_member(&owner.caller, member.id).await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM app.preferences").fetch_one(&world.db.app).await.unwrap();
    assert_eq!(left, 0);
}
