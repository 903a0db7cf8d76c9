//! Members, roles and what a change of them does at once.

use tale_core::Code;
use tale_core::ids::{OrgId, UserId};
use tale_identity::members::{MemberChange, NewMember};
use tale_identity::{Capability, Role};

use crate::world::{PASSWORD, World, code};

fn new(email: &str, role: Role) -> NewMember {
    NewMember {
        email: email.into(),
        name: Some("New".into()),
        role,
        password: Some(PASSWORD.into()),
        must_change_password: false,
    }
}

fn role(role: Role) -> MemberChange {
    MemberChange { role: Some(role), ..MemberChange::default() }
}

#[tokio::test]
async fn members_are_added_once_and_accounts_reused() {
    let world = World::new().await;
    let owner = world.owner().await;
    let added = world.identity.add_member(&owner.caller, &new("New@Acme.test", Role::Editor)).await.unwrap();
    assert!(added.created);
    assert_eq!(
        code(world.identity.add_member(&owner.caller, &new("new@acme.test", Role::Editor)).await),
        Code::AlreadyMember
    );
    assert_eq!(
        code(world.identity.add_member(&owner.caller, &new("x@acme.test", Role::Owner)).await),
        Code::MemberOwnerRoleAssignForbidden
    );
    assert_eq!(
        code(world.identity.add_member(&owner.caller, &new("x@acme.test", Role::Disabled)).await),
        Code::InvalidBody
    );
    let without = NewMember { password: None, ..new("x@acme.test", Role::Member) };
    assert_eq!(code(world.identity.add_member(&owner.caller, &without).await), Code::InvalidBody);
    let stranger = world.stranger("stranger@other.test", "Other").await;
    let reused = world
        .identity
        .add_member(&owner.caller, &NewMember { password: None, ..new("stranger@other.test", Role::Member) })
        .await
        .unwrap();
    assert_eq!((reused.user, reused.created), (stranger.id, false));
    let members = world.identity.members(&owner.caller).await.unwrap();
    let listed: Vec<_> = members.iter().map(|member| (member.email.as_str(), member.role, member.is_creator)).collect();
    assert_eq!(
        listed,
        [
            ("owner@acme.test", Role::Owner, true),
            ("new@acme.test", Role::Editor, false),
            ("stranger@other.test", Role::Member, false)
        ]
    );
    assert_eq!(world.audited(owner.org, "member.added").await, 2);
}

#[tokio::test]
async fn a_foreign_organization_is_out_of_reach() {
    let world = World::new().await;
    let owner = world.owner().await;
    let stranger = world.stranger("stranger@other.test", "Other").await;
    for org in [owner.org, OrgId::new()] {
        assert_eq!(code(world.identity.caller_for_session(&stranger.principal, Some(org)).await), Code::OrgForbidden);
    }
    for foreign in [owner.id, UserId::new()] {
        assert_eq!(
            code(world.identity.update_member(&stranger.caller, foreign, &role(Role::Member)).await),
            Code::MemberNotFound
        );
        assert_eq!(code(world.identity.remove_member(&stranger.caller, foreign).await), Code::MemberNotFound);
        assert_eq!(code(world.identity.transfer_ownership(&stranger.caller, foreign).await), Code::MemberNotFound);
    }
    assert_eq!(world.audited(owner.org, "member.removed").await, 0);
}

#[tokio::test]
async fn each_refusal_has_its_code() {
    let world = World::new().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "admin@acme.test", Role::Admin).await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let update = async |by: &crate::world::Person, target, change| {
        code(world.identity.update_member(&by.caller, target, &change).await)
    };
    assert_eq!(update(&member, admin.id, role(Role::Member)).await, Code::MemberRoleUpdateForbidden);
    assert_eq!(code(world.identity.remove_member(&member.caller, admin.id).await), Code::MemberRemoveForbidden);
    assert_eq!(update(&admin, owner.id, role(Role::Member)).await, Code::MemberOwnerRoleImmutable);
    assert_eq!(update(&admin, member.id, role(Role::Owner)).await, Code::MemberOwnerRoleAssignForbidden);
    assert_eq!(update(&admin, admin.id, role(Role::Member)).await, Code::MemberSelfRoleForbidden);
    assert_eq!(code(world.identity.remove_member(&admin.caller, owner.id).await), Code::MemberOwnerRemovalForbidden);
    assert_eq!(code(world.identity.remove_member(&admin.caller, admin.id).await), Code::MemberSelfRemovalForbidden);
    assert_eq!(code(world.identity.remove_member(&owner.caller, owner.id).await), Code::MemberSelfRemovalForbidden);
    assert_eq!(code(world.identity.transfer_ownership(&admin.caller, member.id).await), Code::OrgForbidden);
    assert_eq!(
        code(world.identity.add_member(&member.caller, &new("x@acme.test", Role::Member)).await),
        Code::OrgForbidden
    );
    let password = MemberChange { password: Some("Green-Kettle-43".into()), ..MemberChange::default() };
    assert_eq!(
        update(&admin, owner.id, password).await,
        Code::MemberRoleUpdateForbidden,
        "an admin does not take over the owner's account"
    );
}

#[tokio::test]
async fn ownership_moves_in_one_step_and_the_creator_stays_admin() {
    let world = World::new().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "admin@acme.test", Role::Admin).await;
    world.identity.transfer_ownership(&owner.caller, admin.id).await.unwrap();
    let roles: Vec<_> =
        world.identity.members(&owner.caller).await.unwrap().into_iter().map(|member| member.role).collect();
    assert_eq!(roles, [Role::Admin, Role::Owner]);
    // The old caller value still says owner; the transaction reads the role again.
    assert_eq!(code(world.identity.transfer_ownership(&owner.caller, admin.id).await), Code::OrgForbidden);
    let now_owner = world.identity.caller_for_session(&admin.principal, Some(owner.org)).await.unwrap();
    assert_eq!(
        code(world.identity.update_member(&now_owner, owner.id, &role(Role::Member)).await),
        Code::MemberCreatorRoleImmutable
    );
    assert_eq!(world.audited(owner.org, "ownership.transferred").await, 1);
}

#[tokio::test]
async fn ownership_does_not_go_to_the_disabled_or_to_oneself() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    world.identity.update_member(&owner.caller, member.id, &role(Role::Disabled)).await.unwrap();
    assert_eq!(code(world.identity.transfer_ownership(&owner.caller, member.id).await), Code::MemberNotFound);
    assert_eq!(code(world.identity.transfer_ownership(&owner.caller, owner.id).await), Code::MemberSelfRoleForbidden);
}

#[tokio::test]
async fn two_admins_cannot_demote_each_other() {
    let world = World::new().await;
    let owner = world.owner().await;
    let a = world.member(&owner, "a@acme.test", Role::Admin).await;
    let b = world.member(&owner, "b@acme.test", Role::Admin).await;
    let demote = role(Role::Member);
    let (first, second) = tokio::join!(
        world.identity.update_member(&a.caller, b.id, &demote),
        world.identity.update_member(&b.caller, a.id, &demote),
    );
    assert_eq!([first.is_ok(), second.is_ok()].iter().filter(|ok| **ok).count(), 1);
    assert!(
        [first, second]
            .into_iter()
            .filter_map(Result::err)
            .all(|problem| problem.code == Code::MemberRoleUpdateForbidden)
    );
}

#[tokio::test]
async fn two_admins_cannot_remove_each_other_nor_two_transfers_make_two_owners() {
    let world = World::new().await;
    let owner = world.owner().await;
    let a = world.member(&owner, "a@acme.test", Role::Admin).await;
    let b = world.member(&owner, "b@acme.test", Role::Admin).await;
    let (first, second) =
        tokio::join!(world.identity.remove_member(&a.caller, b.id), world.identity.remove_member(&b.caller, a.id));
    let refused: Vec<Code> = [first, second].into_iter().filter_map(Result::err).map(|problem| problem.code).collect();
    assert_eq!(refused, [Code::MemberRemoveForbidden]);
    let c = world.member(&owner, "c@acme.test", Role::Admin).await;
    let left = world.identity.members(&owner.caller).await.unwrap();
    let left = left.iter().find(|member| member.role == Role::Admin && member.user != c.id).unwrap().user;
    let (first, second) = tokio::join!(
        world.identity.transfer_ownership(&owner.caller, left),
        world.identity.transfer_ownership(&owner.caller, c.id),
    );
    assert!(first.is_ok() != second.is_ok());
    let by = if first.is_ok() { left } else { c.id };
    let owners = sqlx::query_scalar::<_, UserId>("SELECT user_id FROM app.memberships WHERE role = 'owner'");
    assert_eq!(owners.fetch_all(&world.db.app).await.unwrap(), [by]);
}

#[tokio::test]
async fn role_changes_disabling_and_removal_act_on_the_next_request() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Editor).await;
    let caller = async || world.identity.caller_for_session(&member.principal, Some(owner.org)).await;
    assert!(caller().await.unwrap().can(Capability::KnowledgeWrite));
    world.identity.update_member(&owner.caller, member.id, &role(Role::Member)).await.unwrap();
    assert_eq!(code(caller().await.unwrap().require(Capability::KnowledgeWrite)), Code::RbacForbidden);
    world.identity.update_member(&owner.caller, member.id, &role(Role::Disabled)).await.unwrap();
    assert_eq!(code(caller().await), Code::OrgForbidden);
    // The session lives, and the list of organizations says what happened.
    let principal = world.identity.authenticate_session(&member.token, false).await.unwrap();
    let overview = world.identity.session_overview(Some(&principal), &crate::world::here()).await.unwrap();
    assert_eq!(overview.organizations[0].role, Role::Disabled);
    let restored = world.identity.update_member(&owner.caller, member.id, &role(Role::Developer)).await.unwrap();
    assert_eq!(restored.role, Role::Developer);
    assert!(caller().await.unwrap().can(Capability::ProvidersManage));
    world.identity.remove_member(&owner.caller, member.id).await.unwrap();
    assert_eq!(code(caller().await), Code::OrgForbidden);
    assert_eq!(world.audited(owner.org, "member.role_changed").await, 3);
    assert_eq!(world.audited(owner.org, "member.removed").await, 1);
}

#[tokio::test]
async fn an_account_shared_with_another_organization_is_its_persons_alone() {
    let world = World::new().await;
    let owner = world.owner().await;
    let stranger = world.stranger("stranger@other.test", "Other").await;
    world.identity.add_member(&owner.caller, &new("stranger@other.test", Role::Member)).await.unwrap();
    for change in [
        MemberChange { password: Some("Green-Kettle-43".into()), ..MemberChange::default() },
        MemberChange { name: Some("Renamed".into()), ..MemberChange::default() },
    ] {
        assert_eq!(
            code(world.identity.update_member(&owner.caller, stranger.id, &change).await),
            Code::MemberAccountShared
        );
    }
    world.sign_in("stranger@other.test", PASSWORD).await.unwrap();
}

#[tokio::test]
async fn a_change_without_its_audit_entry_does_not_happen() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    sqlx::query("ALTER TABLE app.audit_entries ADD CHECK (action <> 'member.role_changed')")
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(
        code(world.identity.update_member(&owner.caller, member.id, &role(Role::Admin)).await),
        Code::InternalError
    );
    let members = world.identity.members(&owner.caller).await.unwrap();
    assert_eq!(members[1].role, Role::Member);
}

#[tokio::test]
async fn whether_an_address_has_an_account_is_told_to_admins_and_written_down() {
    let world = World::new().await;
    let owner = world.owner().await;
    let editor = world.member(&owner, "e@acme.test", Role::Editor).await;
    world.stranger("stranger@other.test", "Other").await;
    let ask = async |email: &str| {
        let found = world.identity.look_up_account(&owner.caller, email).await.unwrap();
        (found.account, found.member)
    };
    assert_eq!(ask(" E@acme.test ").await, (true, true));
    assert_eq!(ask("stranger@other.test").await, (true, false));
    assert_eq!(ask("nobody@other.test").await, (false, false));
    assert_eq!(code(world.identity.look_up_account(&editor.caller, "nobody@other.test").await), Code::OrgForbidden);
    assert_eq!(code(world.identity.look_up_account(&owner.caller, "no address").await), Code::InvalidBody);
    assert_eq!(world.audited(owner.org, "member.looked_up").await, 3);
}
