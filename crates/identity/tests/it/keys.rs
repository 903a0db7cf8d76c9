//! API keys.

use std::time::Duration;

use serde_json::json;
use tale_core::ids::{ApiKeyId, UserId};
use tale_core::{Actor, Clock, Code};
use tale_governance::policies::Key;
use tale_identity::api_keys::{BelongsTo, CreatedKey, Expiry, KeyHolder, KeyStatus};
use tale_identity::members::MemberChange;
use tale_identity::teams::NewTeam;
use tale_identity::{IdentityConfig, Role, Via};

use crate::world::{Person, Statements, World, code};

#[tokio::test]
async fn a_key_acts_as_its_holder_with_the_role_of_now() {
    let world = World::new().await;
    let owner = world.owner().await;
    let dev = world.member(&owner, "dev@acme.test", Role::Developer).await;
    let key = world.identity.create_key(&dev.caller, BelongsTo::Maker, " CI ", Some(30)).await.unwrap();
    let KeyHolder { caller, me } = world.identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!((caller.org, caller.user, caller.role), (owner.org, Some(dev.id), Role::Developer));
    assert!(
        matches!(&caller.via, Via::ApiKey { id, name, expires_at, .. } if *id == key.id && name == "CI" && expires_at.is_some())
    );
    assert_eq!((me.person.unwrap().email.as_str(), me.organizations.len()), ("dev@acme.test", 1));
    let listed = world.identity.keys(&dev.caller).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].fragment.starts_with("tale_u_") && listed[0].fragment.len() < 25);
    assert!(world.identity.keys(&owner.caller).await.unwrap().is_empty(), "never the personal keys of others");

    world
        .identity
        .update_member(&owner.caller, dev.id, &MemberChange { role: Some(Role::Member), ..MemberChange::default() })
        .await
        .unwrap();
    assert_eq!(world.identity.authenticate_key(&key.secret, None).await.unwrap().caller.role, Role::Member);
    let member = world.identity.caller_for_session(&dev.principal, None).await.unwrap();
    assert_eq!(
        code(world.identity.create_key(&member, BelongsTo::Maker, "More", None).await.map(|key| key.id)),
        Code::ApiKeyCreateForbidden
    );
    assert_eq!(world.identity.keys(&member).await.unwrap().len(), 1, "existing keys stay listed");
    world
        .identity
        .update_member(&owner.caller, dev.id, &MemberChange { role: Some(Role::Disabled), ..MemberChange::default() })
        .await
        .unwrap();
    assert_eq!(code(world.identity.authenticate_key(&key.secret, None).await), Code::OrgForbidden);
    world.identity.remove_member(&owner.caller, dev.id).await.unwrap();
    assert_eq!(code(world.identity.authenticate_key(&key.secret, None).await), Code::OrgForbidden);
}

#[tokio::test]
async fn revoked_expired_and_invented_keys_are_refused_at_once() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (gone, short) = (
        world.identity.create_key(&owner.caller, BelongsTo::Maker, "gone", None).await.unwrap(),
        world.identity.create_key(&owner.caller, BelongsTo::Maker, "short", Some(7)).await.unwrap(),
    );
    world.identity.authenticate_key(&gone.secret, None).await.unwrap();
    world.identity.revoke_key(&owner.caller, gone.id).await.unwrap();
    assert_eq!(code(world.identity.authenticate_key(&gone.secret, None).await), Code::Unauthorized);
    assert_eq!(code(world.identity.revoke_key(&owner.caller, gone.id).await), Code::ApiKeyNotFound);
    world.identity.authenticate_key(&short.secret, None).await.unwrap();
    world.pass(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(code(world.identity.authenticate_key(&short.secret, None).await), Code::Unauthorized);
    assert_eq!(
        code(world.identity.authenticate_key(&tale_identity::keys::personal().secret, None).await),
        Code::Unauthorized
    );
    for days in [0, -1, 367] {
        assert_eq!(
            code(world.identity.create_key(&owner.caller, BelongsTo::Maker, "x", Some(days)).await.map(|key| key.id)),
            Code::InvalidBody
        );
    }
    let stranger = world.stranger("stranger@other.test", "Other").await;
    for foreign in [short.id, ApiKeyId::new()] {
        assert_eq!(code(world.identity.revoke_key(&stranger.caller, foreign).await), Code::ApiKeyNotFound);
    }
    assert_eq!(world.audited(owner.org, "api_key.created").await, 2);
    assert_eq!(world.audited(owner.org, "api_key.revoked").await, 1);
}

#[tokio::test]
async fn a_key_ends_on_a_chosen_day_that_is_neither_past_nor_far() {
    let world = World::new().await;
    let owner = world.owner().await;
    let now = world.clock.now();
    let day = chrono::Duration::days(1);
    let make = async |at| world.identity.create_key(&owner.caller, BelongsTo::Maker, "k", Expiry::At(at)).await;
    for wrong in [
        now,
        now - day,
        now + day * 367 + chrono::Duration::milliseconds(1),
        chrono::DateTime::UNIX_EPOCH,
        chrono::DateTime::<chrono::Utc>::MAX_UTC,
    ] {
        assert_eq!(code(make(wrong).await.map(|key| key.id)), Code::InvalidBody, "{wrong}");
    }
    let far = make(now + day * 367).await.unwrap();
    let near = make(now + day + chrono::Duration::hours(7)).await.unwrap();
    assert_eq!(
        (near.expires_at, far.expires_at),
        (Some(now + day + chrono::Duration::hours(7)), Some(now + day * 367))
    );
    world.pass(Duration::from_secs(31 * 3600 - 1));
    world.identity.authenticate_key(&near.secret, None).await.unwrap();
    world.pass(Duration::from_secs(1));
    assert_eq!(code(world.identity.authenticate_key(&near.secret, None).await), Code::Unauthorized);
    // Its successor lives as long from then on.
    let next = world.identity.rotate_key(&owner.caller, far.id, 1).await.unwrap();
    assert_eq!(next.expires_at, Some(world.clock.now() + day * 367));
}

#[tokio::test]
async fn a_malformed_key_costs_no_query() {
    let world = World::new().await;
    world.db.app.close().await;
    for malformed in ["", "tale_u_x", "sk-123"] {
        assert_eq!(code(world.identity.authenticate_key(malformed, None).await), Code::Unauthorized);
    }
    let well_formed = tale_identity::keys::personal().secret;
    let (head, last) = well_formed.split_at(well_formed.len() - 1);
    let wrong_checksum = format!("{head}{}", if last == "0" { "1" } else { "0" });
    assert_eq!(code(world.identity.authenticate_key(&wrong_checksum, None).await), Code::Unauthorized);
    assert_eq!(code(world.identity.authenticate_key(&well_formed, None).await), Code::DatabaseUnavailable);
}

#[tokio::test]
async fn a_key_and_whose_it_is_are_one_statement() {
    let world = World::new().await;
    let owner = world.owner().await;
    let key = world.identity.create_key(&owner.caller, BelongsTo::Maker, "k", None).await.unwrap();
    let identity = world.telling(IdentityConfig::default()).await;
    let statements = Statements::of_this_thread();
    identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!(statements.since(), 2, "the first use is noted");
    let holder = identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!((holder.me.person.unwrap().id, holder.me.organization.id), (owner.id, owner.org));
    assert_eq!(statements.since(), 1);
}

#[tokio::test]
async fn the_organization_comes_from_the_slug_when_there_are_several() {
    let world = World::new().await;
    let owner = world.owner().await;
    let key = world.identity.create_key(&owner.caller, BelongsTo::Maker, "k", None).await.unwrap();
    world.stranger("stranger@other.test", "Foreign").await;
    let by = async |slug| world.identity.authenticate_key(&key.secret, slug).await.map(|holder| holder.caller);
    assert_eq!(by(None).await.unwrap().org, owner.org);
    assert_eq!(by(Some("  ")).await.unwrap().org, owner.org);
    let second = world.identity.create_organization(&owner.principal, "Second").await.unwrap();
    let several = by(None).await.unwrap_err();
    assert_eq!(several.code, Code::OrgSlugRequired);
    assert_eq!(several.data.unwrap()["organizations"][1]["slug"], "second");
    assert_eq!(by(Some("SECOND")).await.unwrap().org, second.id);
    assert_eq!(by(Some("acme")).await.unwrap().org, owner.org);
    assert_eq!(code(by(Some("foreign")).await), Code::OrgForbidden);
    assert_eq!(code(by(Some("nowhere")).await), Code::OrgSlugInvalid);
}

#[tokio::test]
async fn only_the_hash_is_stored_and_uses_are_noted_once_a_minute() {
    let world = World::new().await;
    let owner = world.owner().await;
    let key = world.identity.create_key(&owner.caller, BelongsTo::Maker, "k", None).await.unwrap();
    let dump: String = sqlx::query_scalar("SELECT k::text FROM app.api_keys k").fetch_one(&world.db.app).await.unwrap();
    assert!(!dump.contains(&key.secret[..20]));
    let last_used = async || world.identity.keys(&owner.caller).await.unwrap()[0].last_used_at;
    assert_eq!(last_used().await, None);
    world.identity.authenticate_key(&key.secret, None).await.unwrap();
    let first = last_used().await.unwrap();
    world.pass(Duration::from_secs(59));
    world.identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!(last_used().await, Some(first));
    world.pass(Duration::from_secs(1));
    world.identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!(last_used().await, Some(first + Duration::from_secs(60)));
}

#[tokio::test]
async fn a_replaced_key_works_beside_its_successor_for_a_while() {
    let world = World::new().await;
    let owner = world.owner().await;
    let old = world.identity.create_key(&owner.caller, BelongsTo::Maker, "CI", Some(30)).await.unwrap();
    world.pass(Duration::from_secs(10 * 24 * 3_600));
    let rotate = async |id, hours| world.identity.rotate_key(&owner.caller, id, hours).await;
    for hours in [-1, 169, i64::MAX] {
        assert_eq!(code(rotate(old.id, hours).await.map(|key| key.id)), Code::InvalidBody);
    }
    assert_eq!(code(rotate(ApiKeyId::new(), 1).await.map(|key| key.id)), Code::ApiKeyNotFound);
    let new = rotate(old.id, 24).await.unwrap();
    assert_eq!((new.name.as_str(), new.expires_at > old.expires_at), ("CI", true), "as long a life as the first had");
    let works = async |secret: &str| world.identity.authenticate_key(secret, None).await.is_ok();
    world.pass(Duration::from_secs(24 * 3_600 - 1));
    assert_eq!([works(&old.secret).await, works(&new.secret).await], [true, true]);
    world.pass(Duration::from_secs(1));
    assert_eq!([works(&old.secret).await, works(&new.secret).await], [false, true]);
    assert_eq!(code(rotate(old.id, 24).await.map(|key| key.id)), Code::ApiKeyReplaced);
    // Without an overlap the old one is over at once, and replacing never lengthens a life.
    let third = rotate(new.id, 0).await.unwrap();
    assert_eq!([works(&new.secret).await, works(&third.secret).await], [false, true]);
    let short = world.identity.create_key(&owner.caller, BelongsTo::Maker, "short", Some(1)).await.unwrap();
    rotate(short.id, 168).await.unwrap();
    world.pass(Duration::from_secs(24 * 3_600));
    assert!(!works(&short.secret).await);
    let stranger = world.stranger("eve@other.test", "Other").await;
    assert_eq!(
        code(world.identity.rotate_key(&stranger.caller, third.id, 1).await.map(|key| key.id)),
        Code::ApiKeyNotFound
    );
    assert_eq!(world.audited(owner.org, "api_key.rotated").await, 3);
}

#[tokio::test]
async fn keys_of_a_team_and_of_the_organization_act_with_their_role_and_outlive_their_maker() {
    let world = World::new().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "admin@acme.test", Role::Admin).await;
    let team = NewTeam { name: "Sales".into(), members: vec![owner.id], ..NewTeam::default() };
    let team = world.identity.create_team(&owner.caller, &team).await.unwrap().id;
    let make = async |belongs| world.identity.create_key(&admin.caller, belongs, "k", Some(30)).await;
    let of_team = make(BelongsTo::Team(team, Role::Editor)).await.unwrap();
    let of_org = make(BelongsTo::Organization(Role::Admin)).await.unwrap();
    for refused in [
        BelongsTo::Team(team, Role::Admin),
        BelongsTo::Team(team, Role::Disabled),
        BelongsTo::Organization(Role::Owner),
        BelongsTo::Organization(Role::Disabled),
    ] {
        assert_eq!(code(make(refused).await.map(|key| key.id)), Code::InvalidBody, "{refused:?}");
    }
    let stranger = world.stranger("eve@other.test", "Other").await;
    let foreign = world.identity.create_key(&stranger.caller, BelongsTo::Team(team, Role::Member), "k", None).await;
    assert_eq!(code(foreign.map(|key| key.id)), Code::TeamNotFound);

    world.identity.remove_member(&owner.caller, admin.id).await.unwrap();
    let by = async |key: &CreatedKey, slug| world.identity.authenticate_key(&key.secret, slug).await;
    let KeyHolder { caller, me } = by(&of_team, None).await.unwrap();
    assert_eq!((caller.org, caller.user, caller.role), (owner.org, None, Role::Editor));
    assert_eq!(caller.person().team, Some(team));
    assert_eq!(by(&of_org, Some("ACME")).await.unwrap().caller.role, Role::Admin);
    for elsewhere in ["other", "nowhere"] {
        assert_eq!(code(by(&of_org, Some(elsewhere)).await), Code::OrgForbidden, "{elsewhere}");
    }
    assert!(me.person.is_none() && me.organizations.len() == 1);
    assert_eq!((me.organization.slug.as_str(), me.organization.role), ("acme", Role::Editor));
    // A key cannot manage keys, not even the organization's.
    let org_caller = by(&of_org, None).await.unwrap().caller;
    assert_eq!(code(world.identity.keys(&org_caller).await), Code::OrgForbidden);

    world.identity.delete_team(&owner.caller, team).await.unwrap();
    assert_eq!(code(by(&of_team, None).await), Code::Unauthorized);
    assert_eq!(world.audited(owner.org, "api_key.revoked").await, 1);
    world.identity.delete_organization(&owner.caller, "Acme").await.unwrap();
    assert_eq!(code(by(&of_org, None).await), Code::Unauthorized);
}

#[tokio::test]
async fn a_key_for_a_member_works_while_its_maker_stands_above_them() {
    let world = World::new().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "admin@acme.test", Role::Admin).await;
    let dev = world.member(&owner, "dev@acme.test", Role::Developer).await;
    let for_dev = async |by: &Person| world.identity.create_key(&by.caller, BelongsTo::Member(dev.id), "k", None).await;
    let role = async |user, role| {
        let change = MemberChange { role: Some(role), ..MemberChange::default() };
        world.identity.update_member(&owner.caller, user, &change).await.unwrap();
    };
    assert_eq!(code(for_dev(&dev).await.map(|key| key.id)), Code::ApiKeyCreateForbidden);
    let up = world.identity.create_key(&admin.caller, BelongsTo::Member(owner.id), "k", None).await;
    assert_eq!(code(up.map(|key| key.id)), Code::ApiKeyCreateForbidden);
    let nobody = world.identity.create_key(&admin.caller, BelongsTo::Member(UserId::new()), "k", None).await;
    assert_eq!(code(nobody.map(|key| key.id)), Code::MemberNotFound);

    let by =
        async |key: &CreatedKey| world.identity.authenticate_key(&key.secret, None).await.map(|holder| holder.caller);
    let key = for_dev(&admin).await.unwrap();
    let caller = by(&key).await.unwrap();
    assert_eq!((caller.user, caller.role), (Some(dev.id), Role::Developer));
    let actor = Actor::Api { key: key.id, user: Some(admin.id), subject: Some(dev.id) };
    assert_eq!(caller.actor(), actor, "a write is its maker's, for whom the key was made");
    assert_eq!(caller.person().user, Some(dev.id), "what it uses is the member's");
    let seen = world.identity.keys(&dev.caller).await.unwrap();
    assert_eq!((seen.len(), seen[0].maker.as_deref(), seen[0].replaceable), (1, Some("admin"), false));
    assert_eq!(world.identity.keys(&owner.caller).await.unwrap().len(), 1);

    // A restored seat restores the key; a promotion ends it for good, and so does the maker's demotion.
    role(dev.id, Role::Disabled).await;
    assert_eq!(code(by(&key).await), Code::OrgForbidden);
    role(dev.id, Role::Editor).await;
    assert_eq!(by(&key).await.unwrap().role, Role::Editor);
    role(dev.id, Role::Admin).await;
    assert_eq!(code(by(&key).await), Code::Unauthorized);
    role(dev.id, Role::Member).await;
    assert_eq!(code(by(&key).await), Code::Unauthorized, "what ended does not come back");
    let (second, of_owner) = (for_dev(&admin).await.unwrap(), for_dev(&owner).await.unwrap());
    role(admin.id, Role::Developer).await;
    assert_eq!(code(by(&second).await), Code::Unauthorized);
    assert!(by(&of_owner).await.is_ok());
    world.identity.remove_member(&owner.caller, dev.id).await.unwrap();
    assert_eq!(code(by(&of_owner).await), Code::Unauthorized);
    assert_eq!(world.audited(owner.org, "api_key.revoked").await, 3);
}

#[tokio::test]
async fn of_two_replacements_at_once_one_is_refused() {
    let world = World::new().await;
    let owner = world.owner().await;
    for belongs in [BelongsTo::Maker, BelongsTo::Organization(Role::Editor)] {
        for hours in [0, 24] {
            let key = world.identity.create_key(&owner.caller, belongs, "k", None).await.unwrap();
            let rotate = || world.identity.rotate_key(&owner.caller, key.id, hours);
            let (first, second) = tokio::join!(rotate(), rotate());
            let (made, refused) = if first.is_ok() { (first, second) } else { (second, first) };
            assert_eq!(code(refused.map(|key| key.id)), Code::ApiKeyReplaced);
            let caller = world.identity.authenticate_key(&made.unwrap().secret, None).await.unwrap().caller;
            assert_eq!(caller.user.is_some(), belongs == BelongsTo::Maker);
        }
    }
}

#[tokio::test]
async fn who_may_revoke_what() {
    let world = World::new().await;
    let owner = world.owner().await;
    let dev = world.member(&owner, "dev@acme.test", Role::Developer).await;
    let other = world.member(&owner, "other@acme.test", Role::Developer).await;
    let stranger = world.stranger("eve@other.test", "Other").await;
    let make = async |by: &Person, belongs| world.identity.create_key(&by.caller, belongs, "k", None).await.unwrap().id;
    let revoke =
        async |by: &Person, id| world.identity.revoke_key(&by.caller, id).await.map_err(|problem| problem.code);
    let for_dev = make(&owner, BelongsTo::Member(dev.id)).await;
    let of_org = make(&owner, BelongsTo::Organization(Role::Member)).await;
    let own = make(&dev, BelongsTo::Maker).await;
    for (by, id) in
        [(&other, for_dev), (&other, of_org), (&dev, of_org), (&owner, own), (&stranger, of_org), (&stranger, own)]
    {
        assert_eq!(revoke(by, id).await, Err(Code::ApiKeyNotFound));
        let replaced = world.identity.rotate_key(&by.caller, id, 1).await.map(|key| key.id);
        assert_eq!(code(replaced), Code::ApiKeyNotFound);
    }
    let replaced = world.identity.rotate_key(&dev.caller, for_dev, 1).await.map(|key| key.id);
    assert_eq!(code(replaced), Code::ApiKeyCreateForbidden);
    for (by, id) in [(&dev, for_dev), (&owner, of_org), (&dev, own)] {
        assert_eq!(revoke(by, id).await, Ok(()));
    }
}

#[tokio::test]
async fn rules_say_what_became_of_the_keys_that_they_name() {
    let world = World::new().await;
    let owner = world.owner().await;
    let eve = world.stranger("eve@other.test", "Other").await;
    let identity = &world.identity;
    let mut people = Vec::new();
    for email in ["live@acme.test", "disabled@acme.test", "left@acme.test", "deleted@acme.test"] {
        people.push(world.member(&owner, email, Role::Developer).await);
    }
    let make = async |by: &Person, name: &str, days: Option<i64>| {
        identity.create_key(&by.caller, BelongsTo::Maker, name, days).await.unwrap().id
    };
    let live = make(&people[0], "live", Some(90)).await;
    let expired = make(&people[0], "expired", Some(7)).await;
    let disabled = make(&people[1], "disabled", None).await;
    let revoked = make(&people[0], "revoked", None).await;
    let left = make(&people[2], "left", None).await;
    let unavailable = make(&people[3], "unavailable", None).await;
    let others = make(&eve, "others", None).await;
    let nothing = ApiKeyId::new();
    let all = [live, expired, disabled, revoked, left, unavailable, others, nothing];
    let rules: Vec<_> = all
        .iter()
        .map(|id| json!({ "scope": "apiKey", "apiKeyId": id.to_string(), "period": "daily", "maxRequests": 5 }))
        .collect();
    world.policies.set(owner.org, &owner.caller.actor(), Key::Budgets, json!({ "rules": rules }), None).await.unwrap();
    let told = async || {
        let gone = identity.gone_keys(&owner.caller).await.unwrap();
        all.map(|id| gone.iter().find(|key| key.id == id).map(|key| (key.name.clone(), key.status)))
    };
    let unknown = Some((None, KeyStatus::Unknown));
    assert_eq!(told().await, [None, None, None, None, None, None, unknown.clone(), unknown.clone()]);

    identity.revoke_key(&people[0].caller, revoked).await.unwrap();
    let change = MemberChange { role: Some(Role::Disabled), ..MemberChange::default() };
    identity.update_member(&owner.caller, people[1].id, &change).await.unwrap();
    for gone in [people[2].id, people[3].id] {
        identity.remove_member(&owner.caller, gone).await.unwrap();
    }
    sqlx::query("DELETE FROM app.users WHERE id = $1").bind(people[3].id).execute(&world.db.app).await.unwrap();
    world.pass(Duration::from_secs(8 * 24 * 3600));
    let named = |name: &str, status| Some((Some(name.to_owned()), status));
    let expected = [
        None,
        named("expired", KeyStatus::Expired),
        named("disabled", KeyStatus::Disabled),
        named("revoked", KeyStatus::Revoked),
        named("left", KeyStatus::FormerMember),
        Some((None, KeyStatus::Unavailable)),
        unknown.clone(),
        unknown,
    ];
    assert_eq!(told().await, expected);
    let working: Vec<_> = identity.working_keys(&owner.caller).await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(working, [live], "an expired key is none that a rule can begin to name");
    assert_eq!(code(identity.gone_keys(&people[0].caller).await), Code::OrgForbidden);
}
