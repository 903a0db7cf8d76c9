//! Teams: who may change them, who sees whom, and what two changes at once do.

use serde_json::json;
use tale_core::Code;
use tale_core::ids::{TeamId, UserId};
use tale_governance::policies::Key;
use tale_identity::Role;
use tale_identity::api_keys::BelongsTo;
use tale_identity::teams::{NewTeam, TeamChange, TeamDeletion};

use crate::world::{Person, World, code};

fn team(name: &str, members: &[&Person]) -> NewTeam {
    NewTeam { name: name.into(), members: members.iter().map(|person| person.id).collect(), ..NewTeam::default() }
}

async fn made(world: &World, by: &Person, name: &str, members: &[&Person]) -> TeamId {
    world.identity.create_team(&by.caller, &team(name, members)).await.unwrap().id
}

#[tokio::test]
async fn names_are_for_everybody_and_members_for_the_team_and_its_managers() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (ann, ben) = (
        world.member(&owner, "ann@acme.test", Role::Member).await,
        world.member(&owner, "ben@acme.test", Role::Developer).await,
    );
    let sales = made(&world, &owner, "Sales", &[&ann]).await;
    let seen = |teams: Vec<tale_identity::teams::Team>| {
        teams.into_iter().map(|team| (team.name, team.members, team.mine)).collect::<Vec<_>>()
    };
    assert_eq!(seen(world.identity.teams(&ann.caller).await.unwrap()), [("Sales".to_owned(), 1, true)]);
    assert_eq!(seen(world.identity.teams(&ben.caller).await.unwrap()), [("Sales".to_owned(), 1, false)]);
    for person in [&owner, &ann] {
        let members = world.identity.team_members(&person.caller, sales).await.unwrap();
        assert_eq!(members.iter().map(|member| member.user).collect::<Vec<_>>(), [ann.id]);
    }
    assert_eq!(code(world.identity.team_members(&ben.caller, sales).await), Code::TeamForbidden);
    for person in [&ann, &ben] {
        assert_eq!(code(world.identity.create_team(&person.caller, &team("Mine", &[])).await), Code::TeamForbidden);
        assert_eq!(code(world.identity.add_to_team(&person.caller, sales, &[person.id]).await), Code::TeamForbidden);
        assert_eq!(code(world.identity.delete_team(&person.caller, sales).await), Code::TeamForbidden);
    }
}

#[tokio::test]
async fn a_team_is_changed_whole_or_not_at_all() {
    let world = World::new().await;
    let owner = world.owner().await;
    let ann = world.member(&owner, "ann@acme.test", Role::Member).await;
    let stranger = world.stranger("eve@other.test", "Other").await;
    let sales = made(&world, &owner, "Sales Team", &[]).await;
    assert_eq!(code(world.identity.create_team(&owner.caller, &team(" sales  team ", &[])).await), Code::TeamNameTaken);
    assert_eq!(
        code(world.identity.add_to_team(&owner.caller, sales, &[ann.id, stranger.id]).await),
        Code::UserNotOrgMember
    );
    assert_eq!(
        code(world.identity.create_team(&owner.caller, &team("New", &[&stranger])).await),
        Code::UserNotOrgMember
    );
    assert_eq!(world.identity.teams(&owner.caller).await.unwrap().len(), 1, "nothing of a refused team stays");
    for _ in 0..2 {
        world.identity.add_to_team(&owner.caller, sales, &[ann.id, ann.id, owner.id]).await.unwrap();
    }
    assert_eq!(world.audited(owner.org, "team.member_added").await, 2, "the maker, and Ann once");
    let other = made(&world, &owner, "Support", &[]).await;
    let rename = |name: &str| TeamChange { name: Some(name.into()), description: Some("Who answers".into()) };
    assert_eq!(
        code(world.identity.update_team(&owner.caller, other, &rename("SALES TEAM")).await),
        Code::TeamNameTaken
    );
    world.identity.update_team(&owner.caller, other, &rename("Help")).await.unwrap();
    assert_eq!(world.audited(owner.org, "team.updated").await, 1);
    // What belongs to another organization does not exist.
    for foreign in [sales, TeamId::new()] {
        let by = &stranger.caller;
        assert_eq!(code(world.identity.team_members(by, foreign).await), Code::TeamNotFound);
        assert_eq!(code(world.identity.update_team(by, foreign, &rename("x")).await), Code::TeamNotFound);
        assert_eq!(code(world.identity.add_to_team(by, foreign, &[stranger.id]).await), Code::TeamNotFound);
        assert_eq!(code(world.identity.remove_from_team(by, foreign, ann.id).await), Code::TeamNotFound);
        assert_eq!(code(world.identity.delete_team(by, foreign).await), Code::TeamNotFound);
    }
    world.identity.delete_team(&owner.caller, sales).await.unwrap();
    assert_eq!(code(world.identity.delete_team(&owner.caller, sales).await), Code::TeamNotFound);
    assert_eq!(world.audited(owner.org, "team.deleted").await, 1);
}

#[tokio::test]
async fn of_two_removals_at_once_one_leaves_the_last_member() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (ann, ben) = (
        world.member(&owner, "ann@acme.test", Role::Member).await,
        world.member(&owner, "ben@acme.test", Role::Member).await,
    );
    let sales = made(&world, &owner, "Sales", &[&ann, &ben]).await;
    let (first, second) = tokio::join!(
        world.identity.remove_from_team(&owner.caller, sales, ann.id),
        world.identity.remove_from_team(&owner.caller, sales, ben.id),
    );
    let refused: Vec<Code> = [first, second].into_iter().filter_map(Result::err).map(|problem| problem.code).collect();
    assert_eq!(refused, [Code::TeamLastMember]);
    assert_eq!(code(world.identity.remove_from_team(&owner.caller, sales, UserId::new()).await), Code::MemberNotFound);
}

#[tokio::test]
async fn who_comes_back_to_the_organization_is_in_no_team() {
    let world = World::new().await;
    let owner = world.owner().await;
    let ann = world.member(&owner, "ann@acme.test", Role::Member).await;
    let sales = made(&world, &owner, "Sales", &[&owner, &ann]).await;
    world.identity.remove_member(&owner.caller, ann.id).await.unwrap();
    let again = world.member(&owner, "ann@acme.test", Role::Member).await;
    assert_eq!(again.id, ann.id);
    assert_eq!(world.identity.team_members(&owner.caller, sales).await.unwrap().len(), 1);
}

#[tokio::test]
async fn rules_about_models_follow_who_is_in_a_team() {
    let world = World::new().await;
    let owner = world.owner().await;
    let ann = world.member(&owner, "ann@acme.test", Role::Member).await;
    let sales = made(&world, &owner, "Sales", &[&owner]).await;
    let rule = json!({ "enabled": true, "mode": "allowlist", "rules": [
        { "scope": "team", "scopeId": sales, "allowedModels": ["p/a"] },
        { "scope": "default", "allowedModels": ["p/b"] },
    ] });
    let actor = owner.caller.actor();
    world.policies.set(owner.org, &actor, Key::ModelAccess, rule, None).await.unwrap();
    let seen = async |person: &Person| {
        let rules = world.policies.model_rules(person.org, person.caller.person()).await.unwrap();
        [rules.permits("p", "a"), rules.permits("p", "b")]
    };
    assert_eq!((seen(&owner).await, seen(&ann).await), ([true, false], [false, true]));
    world.identity.add_to_team(&owner.caller, sales, &[ann.id]).await.unwrap();
    // Every process hears of it; one that does not looks again by itself.
    world.pass(tale_governance::policies::MAX_AGE);
    assert_eq!(seen(&ann).await, [true, false]);
    world.identity.delete_team(&owner.caller, sales).await.unwrap();
    world.pass(tale_governance::policies::MAX_AGE);
    assert_eq!(seen(&ann).await, [false, true]);
}

#[tokio::test]
async fn before_a_team_is_deleted_it_is_said_what_hangs_on_it() {
    let world = World::new().await;
    let owner = world.owner().await;
    let ann = world.member(&owner, "ann@acme.test", Role::Member).await;
    let sales = made(&world, &owner, "Sales", &[&owner, &ann]).await;
    let support = made(&world, &owner, "Support", &[&owner]).await;
    let nothing = TeamDeletion { members: 1, api_keys: 0, limits: 0, model_rules: 0 };
    assert_eq!(world.identity.team_deletion(&owner.caller, support).await.unwrap(), nothing);

    let key = async |team, days: i64| {
        world.identity.create_key(&owner.caller, BelongsTo::Team(team, Role::Editor), "k", Some(days)).await.unwrap().id
    };
    let revoked = key(sales, 30).await;
    world.identity.revoke_key(&owner.caller, revoked).await.unwrap();
    key(sales, 1).await;
    key(sales, 30).await;
    world.pass(std::time::Duration::from_secs(2 * 24 * 3600));
    let owner_again = world.sign_in("owner@acme.test", crate::world::PASSWORD).await.unwrap();
    let principal = world.identity.authenticate_session(&owner_again.token, false).await.unwrap();
    let caller = world.identity.caller_for_session(&principal, Some(owner.org)).await.unwrap();
    let actor = caller.actor();
    let access = json!({ "enabled": false, "rules": [
        { "scope": "team", "scopeId": sales, "allowedModels": ["p/a"] },
        { "scope": "team", "scopeId": support, "allowedModels": ["p/a"] },
        { "scope": "default", "allowedModels": ["p/b"] },
    ] });
    world.policies.set(owner.org, &actor, Key::ModelAccess, access, None).await.unwrap();
    let limits = json!({ "enabled": true, "rules": [
        { "scope": "team", "scopeId": sales, "period": "daily", "maxRequests": 5 },
    ] });
    world.policies.set(owner.org, &actor, Key::Budgets, limits, None).await.unwrap();
    let told = world.identity.team_deletion(&caller, sales).await.unwrap();
    assert_eq!(told, TeamDeletion { members: 2, api_keys: 1, limits: 1, model_rules: 1 });

    assert_eq!(code(world.identity.team_deletion(&ann.caller, sales).await), Code::TeamForbidden);
    let eve = world.stranger("eve@other.test", "Other").await;
    assert_eq!(code(world.identity.team_deletion(&eve.caller, sales).await), Code::TeamNotFound);
    assert_eq!(code(world.identity.team_deletion(&caller, TeamId::new()).await), Code::TeamNotFound);
}
