//! What people are told of what happens to their accounts.

use std::time::Duration;

use tale_core::{Clock, Code};
use tale_identity::api_keys::BelongsTo;
use tale_identity::members::MemberChange;
use tale_identity::notices::{Kind, Locale, Wishes};
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, Person, World, code, here};

impl World {
    /// What a person is told, the oldest first.
    async fn told(&self, person: &Person) -> Vec<Kind> {
        let notices = self.identity.notices();
        let (page, _) = notices.list(person.org, person.principal.user, false, None, 100).await.unwrap();
        page.iter().rev().map(|notice| notice.kind).collect()
    }
}

#[tokio::test]
async fn a_person_is_told_what_happens_to_their_account_and_nobody_else_is() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "ada@acme.test", Role::Member).await;
    let bob = world.member(&owner, "bob@acme.test", Role::Member).await;
    let stranger = world.stranger("eve@other.test", "Other").await;
    let identity = &world.identity;
    identity.create_key(&owner.caller, BelongsTo::Member(bob.id), "Bot", None).await.unwrap();
    assert_eq!(world.told(&bob).await, [Kind::KeyMade], "whoever it acts as");

    let change = MemberChange { role: Some(Role::Developer), ..MemberChange::default() };
    identity.update_member(&owner.caller, member.principal.user, &change).await.unwrap();
    let member = Person { caller: tale_identity::Caller { role: Role::Developer, ..member.caller }, ..member };
    identity.create_key(&member.caller, BelongsTo::Maker, "Backups", None).await.unwrap();
    world.app_of(&member).await;
    identity.disable_totp(&member.principal, PASSWORD, &here()).await.unwrap();
    identity.change_password(&member.principal, PASSWORD, "Green-Kettle-43", &here()).await.unwrap();
    let expected = [Kind::RoleChanged, Kind::KeyMade, Kind::FactorAdded, Kind::FactorRemoved, Kind::PasswordChanged];
    assert_eq!(world.told(&member).await, expected);
    assert_eq!(world.told(&owner).await, []);
    assert_eq!(world.told(&stranger).await, []);

    // What concerns the account is told in every organization, the rest only in its own.
    let notices = identity.notices();
    let (elsewhere, _) = notices.list(stranger.org, member.principal.user, false, None, 100).await.unwrap();
    assert!(elsewhere.iter().all(|notice| notice.kind != Kind::RoleChanged) && elsewhere.len() == 4);
    let (page, _) = notices.list(member.org, member.principal.user, true, None, 100).await.unwrap();
    let key = page.iter().find(|notice| notice.kind == Kind::KeyMade).unwrap();
    let words = key.kind.words(Locale::De, &key.details);
    assert!(words.body.contains("„Backups“"), "{}", words.body);
    let role = page.iter().find(|notice| notice.kind == Kind::RoleChanged).unwrap();
    assert_eq!(role.kind.words(Locale::En, &role.details).title, "Your role is now Developer");

    // Pages go on where the one before ended, and nobody marks what belongs to another.
    let (first, next) = notices.list(member.org, member.principal.user, true, None, 3).await.unwrap();
    let (rest, end) = notices.list(member.org, member.principal.user, true, next, 3).await.unwrap();
    assert_eq!((first.len(), rest.len(), end), (3, 2, None));
    let ids: Vec<_> = first.iter().map(|notice| notice.id).collect();
    let now = world.clock.now();
    notices.mark_read(member.org, owner.principal.user, Some(&ids), now).await.unwrap();
    assert_eq!(notices.unread(member.org, member.principal.user).await.unwrap(), 5);
    notices.mark_read(member.org, member.principal.user, Some(&ids), now).await.unwrap();
    assert_eq!(notices.unread(member.org, member.principal.user).await.unwrap(), 2);
    notices.mark_read(member.org, member.principal.user, None, now).await.unwrap();
    assert_eq!(notices.unread(member.org, member.principal.user).await.unwrap(), 0);
    world.pass(Duration::from_secs(366 * 24 * 3600));
    identity.sweep().await.unwrap();
    assert_eq!(world.told(&member).await, []);
}

#[tokio::test]
async fn only_a_sign_in_from_elsewhere_is_told() {
    let world = World::new().await;
    let owner = world.owner().await;
    let ada = world.member(&owner, "ada@acme.test", Role::Member).await;
    for client in ["203.0.113.9", "203.0.113.9", "203.0.113.77"] {
        world.sign_in_from("ada@acme.test", PASSWORD, client).await.unwrap();
    }
    assert_eq!(world.told(&ada).await, []);
    for client in ["198.51.100.7", "198.51.100.7"] {
        world.sign_in_from("ada@acme.test", PASSWORD, client).await.unwrap();
    }
    assert_eq!(world.told(&ada).await, [Kind::NewDevice]);
    let (page, _) = world.identity.notices().list(ada.org, ada.principal.user, true, None, 9).await.unwrap();
    let body = page[0].kind.words(Locale::En, &page[0].details).body;
    assert!(body.contains("network 198.51.100.0/24") && !body.contains("198.51.100.7"), "{body}");
}

#[tokio::test]
async fn a_block_is_told_its_owner_and_the_admins_once_and_without_the_plain_address_where_that_is_hidden() {
    let pepper = Some("pepper-of-sixteen-characters".to_owned().into());
    let world = World::with(IdentityConfig { audit_pepper: pepper, ..IdentityConfig::default() }).await;
    let owner = world.owner().await;
    let member = world.member(&owner, "ada@acme.test", Role::Member).await;
    let bystander = world.member(&owner, "bob@acme.test", Role::Member).await;
    let (mut blocked, mut tries) = (0, 0);
    while blocked < 3 && tries < 200 {
        tries += 1;
        match code(world.sign_in("ada@acme.test", "Wrong-Kettle-42").await) {
            Code::SignInLocked => {
                blocked += 1;
                world.pass(Duration::from_secs(600));
            }
            _ => continue,
        }
    }
    assert_eq!(blocked, 3, "blocked three times within an hour");
    assert_eq!(world.told(&member).await, [Kind::SignInBlocked]);
    assert_eq!(world.told(&owner).await, [Kind::MemberBlocked]);
    assert_eq!(world.told(&bystander).await, []);
    let (page, _) = world.identity.notices().list(owner.org, owner.principal.user, true, None, 9).await.unwrap();
    let body = page[0].kind.words(Locale::En, &page[0].details).body;
    assert!(!body.contains("ada@") && !body.contains("203.0.113"), "{body}");
}

#[tokio::test]
async fn what_a_person_declined_is_not_told_and_what_protects_them_cannot_be_declined() {
    let world = World::new().await;
    let owner = world.owner().await;
    let notices = world.identity.notices();
    let wishes = notices.wishes(owner.principal.user).await.unwrap();
    assert_eq!(wishes, Wishes::default());
    let all = Wishes { muted: vec![Kind::PasswordChanged], ..Wishes::default() };
    assert_eq!(code(notices.set_wishes(owner.principal.user, &all).await), Code::InvalidBody);
    let some = Wishes { muted: vec![Kind::KeyMade], ..Wishes::default() };
    notices.set_wishes(owner.principal.user, &some).await.unwrap();
    assert_eq!(notices.wishes(owner.principal.user).await.unwrap(), some);
    world.identity.create_key(&owner.caller, BelongsTo::Maker, "Backups", None).await.unwrap();
    world.identity.change_password(&owner.principal, PASSWORD, "Green-Kettle-43", &here()).await.unwrap();
    assert_eq!(world.told(&owner).await, [Kind::PasswordChanged]);
}
