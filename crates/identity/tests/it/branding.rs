//! Branding: versions, what is written in the log, images, and other organizations.

use serde_json::{Value, json};
use tale_core::Code;
use tale_core::ids::OrgId;
use tale_identity::Role;
use tale_identity::branding::{PublishedBranding, SeenFiles, Slot};
use tale_orgfiles::{FilePath, Scope};

use crate::world::{Person, World, code};

const DRAWING: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 2 1'><path d='M0 0h2v1H0z'/></svg>";
const ACTIVE: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";

/// A picture of 64 × 64 pixels, with a byte that tells it from others.
fn picture(mark: u8) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x40\0\0\0\x40\x08\x06\0\0\0", &[mark][..]].concat()
}

/// Action and details of everything that the log says about branding, in its order.
async fn entries(world: &World, org: OrgId) -> Vec<(String, Value)> {
    sqlx::query_as(
        "SELECT action, details FROM app.audit_entries WHERE org_id = $1 AND action LIKE 'branding.%' ORDER BY id",
    )
    .bind(org)
    .fetch_all(&world.db.app)
    .await
    .unwrap()
}

async fn session_branding(world: &World, person: &Person) -> Option<PublishedBranding> {
    let device = crate::world::here();
    world.identity.session_overview(Some(&person.principal), &device).await.unwrap().branding.remove(&person.org)
}

#[tokio::test]
async fn a_save_is_based_on_a_version_and_written_once() {
    let world = World::new().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "admin@acme.test", Role::Admin).await;
    let identity = &world.identity;
    let fresh = identity.branding(&owner.caller).await.unwrap();
    assert_eq!((fresh.version, fresh.accent_color, fresh.images.len()), (0, None, 0));
    assert_eq!(session_branding(&world, &owner).await, None);

    let saved = identity.set_branding(&owner.caller, Some("#AB12CD"), 0).await.unwrap();
    assert_eq!((saved.version, saved.accent_color.as_deref()), (1, Some("#ab12cd")));
    assert_eq!(code(identity.set_branding(&admin.caller, Some("#000000"), 0).await), Code::ConfigVersionConflict);
    // Nothing changed: no version, no entry.
    assert_eq!(identity.set_branding(&admin.caller, Some("#ab12cd"), 1).await.unwrap().version, 1);
    assert_eq!(code(identity.set_branding(&admin.caller, Some("#ab12c"), 1).await), Code::InvalidBody);
    assert_eq!(identity.set_branding(&admin.caller, None, 1).await.unwrap().accent_color, None);
    let written = entries(&world, owner.org).await;
    assert_eq!(written.len(), 2, "{written:?}");
    assert_eq!(written[0].0, "branding.updated");
    assert_eq!(
        (&written[0].1["previous"], &written[0].1["new"]),
        (&json!({ "accentColor": null }), &json!({ "accentColor": "#ab12cd" }))
    );
}

#[tokio::test]
async fn of_saves_from_one_version_one_counts() {
    let world = World::new().await;
    let owner = world.owner().await;
    let save = |color| world.identity.set_branding(&owner.caller, Some(color), 0);
    let (first, second, third) = tokio::join!(save("#000001"), save("#000002"), save("#000003"));
    let saved: Vec<_> = [first, second, third].into_iter().filter_map(Result::ok).collect();
    assert_eq!(saved.len(), 1);
    assert_eq!(world.identity.branding(&owner.caller).await.unwrap(), saved[0]);
    assert_eq!(world.audited(owner.org, "branding.updated").await, 1);
}

#[tokio::test]
async fn images_take_effect_at_once_and_a_bad_one_changes_nothing() {
    let world = World::new().await;
    let owner = world.owner().await;
    let identity = &world.identity;
    let first = identity.set_branding_image(&owner.caller, Slot::Logo, DRAWING).await.unwrap();
    assert_eq!(
        (first.version, first.images[0].media_type.as_str(), first.images[0].pixels),
        (1, "image/svg+xml", None)
    );
    // A save that began before does not undo it.
    assert_eq!(code(identity.set_branding(&owner.caller, Some("#000000"), 0).await), Code::ConfigVersionConflict);
    // The same again is no change.
    assert_eq!(identity.set_branding_image(&owner.caller, Slot::Logo, DRAWING).await.unwrap(), first);
    for (bad, refused) in [
        (ACTIVE, Code::ImageSvgActiveContent),
        (b"GIF89a", Code::UnsupportedFileType),
        (b"", Code::UnsupportedFileType),
    ] {
        assert_eq!(code(identity.set_branding_image(&owner.caller, Slot::Logo, bad).await), refused);
    }
    assert_eq!(identity.branding(&owner.caller).await.unwrap(), first);
    assert_eq!(identity.published_image(owner.org, Slot::Logo).await.unwrap().content, DRAWING);

    // Favicons come of the logo until there are others.
    let published = identity.published_branding(owner.org).await.unwrap();
    assert_eq!(session_branding(&world, &owner).await, Some(published.clone()));
    let icon = identity.published_image(owner.org, Slot::FaviconDark).await.unwrap();
    assert_eq!((Some(&icon.tag), icon.media_type.as_str()), (published.favicon_dark.as_ref(), "image/svg+xml"));
    assert!(icon.content.starts_with(b"<svg"));
    let light = picture(1);
    let second = identity.set_branding_image(&owner.caller, Slot::FaviconLight, &light).await.unwrap();
    assert_eq!((second.version, second.images[1].pixels), (2, Some((64, 64))));
    for slot in [Slot::FaviconLight, Slot::FaviconDark] {
        assert_eq!(identity.published_image(owner.org, slot).await.unwrap().content, light);
    }
    // The branding names each image as it is shown.
    let published = identity.published_branding(owner.org).await.unwrap();
    for slot in Slot::ALL {
        assert_eq!(published.tag(slot).unwrap(), identity.published_image(owner.org, slot).await.unwrap().tag);
    }

    identity.remove_branding_image(&owner.caller, Slot::Logo).await.unwrap();
    let gone = identity.remove_branding_image(&owner.caller, Slot::Logo).await.unwrap();
    assert_eq!((gone.version, gone.images.len()), (3, 1));
    assert_eq!(code(identity.published_image(owner.org, Slot::Logo).await), Code::NotFound);
    let actions: Vec<String> = entries(&world, owner.org).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["branding.image_uploaded", "branding.image_uploaded", "branding.image_deleted"]);
}

#[tokio::test]
async fn a_reset_takes_everything_and_is_written_once() {
    let world = World::new().await;
    let owner = world.owner().await;
    let identity = &world.identity;
    assert_eq!(identity.reset_branding(&owner.caller).await.unwrap().version, 0);
    identity.set_branding(&owner.caller, Some("#ab12cd"), 0).await.unwrap();
    for (slot, mark) in Slot::ALL.into_iter().zip(1..) {
        identity.set_branding_image(&owner.caller, slot, &picture(mark)).await.unwrap();
    }
    let reset = identity.reset_branding(&owner.caller).await.unwrap();
    assert_eq!((reset.version, reset.accent_color, reset.images.len()), (5, None, 0));
    assert_eq!(identity.reset_branding(&owner.caller).await.unwrap().version, 5);
    assert_eq!(code(identity.set_branding(&owner.caller, Some("#000000"), 4).await), Code::ConfigVersionConflict);
    assert_eq!(identity.published_branding(owner.org).await.unwrap(), PublishedBranding::default());
    assert_eq!(session_branding(&world, &owner).await, None);
    let (action, details) = entries(&world, owner.org).await.pop().unwrap();
    let fields: Vec<&String> = details["previous"].as_object().unwrap().keys().collect();
    assert_eq!((action.as_str(), &details["reset"]), ("branding.updated", &json!(true)));
    assert_eq!(fields, ["accentColor", "faviconDark", "faviconLight", "logo"]);
}

#[tokio::test]
async fn only_owners_and_admins_change_it_and_only_their_own() {
    let world = World::new().await;
    let owner = world.owner().await;
    let eve = world.stranger("eve@other.test", "Other").await;
    let identity = &world.identity;
    identity.set_branding_image(&owner.caller, Slot::Logo, DRAWING).await.unwrap();
    for (email, role) in
        [("d@acme.test", Role::Developer), ("e@acme.test", Role::Editor), ("m@acme.test", Role::Member)]
    {
        let member = world.member(&owner, email, role).await.caller;
        assert_eq!(code(identity.branding(&member).await), Code::OrgForbidden);
        assert_eq!(code(identity.set_branding(&member, None, 1).await), Code::OrgForbidden);
        // The right comes before what is wrong with the image.
        assert_eq!(code(identity.set_branding_image(&member, Slot::Logo, ACTIVE).await), Code::OrgForbidden);
        assert_eq!(code(identity.remove_branding_image(&member, Slot::Logo).await), Code::OrgForbidden);
        assert_eq!(code(identity.reset_branding(&member).await), Code::OrgForbidden);
    }
    identity.reset_branding(&eve.caller).await.unwrap();
    assert_eq!(identity.branding(&eve.caller).await.unwrap().version, 0);
    assert_eq!(code(identity.published_image(eve.org, Slot::Logo).await), Code::NotFound);
    assert_eq!(identity.published_image(owner.org, Slot::Logo).await.unwrap().content, DRAWING);
    // Nothing tells an organization without branding from one that does not exist.
    let nobody = OrgId::new();
    assert_eq!(identity.published_branding(nobody).await.unwrap(), identity.published_branding(eve.org).await.unwrap());
    assert_eq!(code(identity.published_image(nobody, Slot::Logo).await), Code::NotFound);
}

#[tokio::test]
async fn a_deleted_organization_looks_like_none() {
    let world = World::new().await;
    let owner = world.owner().await;
    world.identity.set_branding(&owner.caller, Some("#ab12cd"), 0).await.unwrap();
    world.identity.set_branding_image(&owner.caller, Slot::Logo, DRAWING).await.unwrap();
    world.identity.delete_organization(&owner.caller, "Acme").await.unwrap();
    assert_eq!(world.identity.published_branding(owner.org).await.unwrap(), PublishedBranding::default());
    assert_eq!(code(world.identity.published_image(owner.org, Slot::Logo).await), Code::NotFound);
}

const FILE: FilePath = FilePath("branding/branding.yml");

async fn file(world: &World) -> String {
    let texts = world.files.read_texts(Scope::Organization("acme"), vec![FILE]).await;
    texts.into_iter().next().unwrap().unwrap().unwrap_or_default()
}

async fn edit(world: &World, text: &str) {
    world.files.write_text(Scope::Organization("acme"), FILE, text.to_owned()).await.unwrap();
}

#[tokio::test]
async fn an_operator_edits_the_copy_in_the_configuration_directory() {
    let world = World::new().await;
    let owner = world.owner().await;
    let identity = &world.identity;
    let mut seen = SeenFiles::new();
    identity.set_branding_image(&owner.caller, Slot::Logo, DRAWING).await.unwrap();
    identity.set_branding(&owner.caller, Some("#1e3a8a"), 1).await.unwrap();
    let copy = file(&world).await;
    let tag = identity.published_branding(owner.org).await.unwrap().logo.unwrap();
    assert!(copy.contains("#1e3a8a") && copy.contains(&tag), "{copy}");
    identity.look_at_branding_files(&mut seen).await.unwrap();
    assert_eq!(identity.branding(&owner.caller).await.unwrap().version, 2, "a copy says nothing new");

    edit(&world, &copy.replace("#1e3a8a", "#ffe600")).await;
    identity.look_at_branding_files(&mut seen).await.unwrap();
    let taken = identity.branding(&owner.caller).await.unwrap();
    assert_eq!((taken.version, taken.accent_color.as_deref(), taken.images.len()), (3, Some("#ffe600"), 1));
    assert_eq!(entries(&world, owner.org).await.pop().unwrap().1["source"], "file");

    // What cannot be used changes nothing.
    for bad in ["accentColor: blue", "accentColor: [", "", "logo: 0123", "logos: x"] {
        edit(&world, bad).await;
        identity.look_at_branding_files(&mut seen).await.unwrap();
        assert_eq!(identity.branding(&owner.caller).await.unwrap(), taken, "{bad}");
    }
    // An edit that nobody has looked at yet is not lost by a save, which is based on what was before.
    edit(&world, "accentColor: '#000000'\n").await;
    assert_eq!(code(identity.set_branding(&owner.caller, None, 3).await), Code::ConfigVersionConflict);
    let edited = identity.branding(&owner.caller).await.unwrap();
    assert_eq!((edited.version, edited.accent_color.as_deref(), edited.images.len()), (4, Some("#000000"), 0));
    assert_eq!(code(identity.published_image(owner.org, Slot::Logo).await), Code::NotFound);
    identity.set_branding(&owner.caller, None, 4).await.unwrap();
    assert!(!file(&world).await.contains("#000000"));
}

/// Makes an organization's file a link that leads to itself, which nobody can look at.
fn break_file(world: &World, slug: &str) {
    let path = world.folder.path().join(slug).join(FILE.0);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&path);
    std::os::unix::fs::symlink(&path, &path).unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_read_keeps_nobody_elses_from_being_taken_over() {
    let world = World::new().await;
    let people = [world.owner().await, world.stranger("eve@other.test", "Other").await];
    let mut seen = SeenFiles::new();
    // Each of the two in turn, so that the order in which they are looked at does not matter.
    for (broken, read) in [(0, 1), (1, 0)] {
        break_file(&world, &people[broken].caller.org_slug);
        let (slug, text) = (&people[read].caller.org_slug, "accentColor: '#ffe600'\n".to_owned());
        let path = world.folder.path().join(slug.as_str()).join(FILE.0);
        let _ = std::fs::remove_file(&path);
        world.files.write_text(Scope::Organization(slug), FILE, text).await.unwrap();
        assert_eq!(code(world.identity.look_at_branding_files(&mut seen).await), Code::InternalError);
        let taken = world.identity.branding(&people[read].caller).await.unwrap();
        assert_eq!(taken.accent_color.as_deref(), Some("#ffe600"), "{slug}");
    }
}
