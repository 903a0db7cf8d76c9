//! Removing files while their passages are being stored: nothing of them stays.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tale_core::Actor;
use tale_core::ids::{FileId, OrgId};
use tale_identity::{Caller, Role};
use tale_knowledge::Knowledge;
use tale_knowledge::documents::NewContent;
use tale_knowledge::embedder::Answer;
use tale_knowledge::files::Purpose;
use tale_knowledge::transcriber::{Heard, Recording, TranscribeFailure, Transcriber};

use crate::world::{World, long_text, world};

impl World {
    /// Rows that the corpus holds of a file: its own and its passages.
    async fn kept(&self, file: FileId) -> i64 {
        sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM private_knowledge.documents WHERE file_id = $1)
                  + (SELECT count(*) FROM private_knowledge.chunks WHERE file_id = $1)",
        )
        .bind(file)
        .fetch_one(&self.db.knowledge)
        .await
        .unwrap()
    }

    async fn chat_upload(&self, owner: &Caller, name: &str, text: &str) -> FileId {
        let file = self.upload(owner, name, text.to_owned(), Purpose::Chat).await;
        self.knowledge.attachment(owner, file).await.unwrap();
        file
    }
}

/// Ears that take so long that the file is removed meanwhile.
#[derive(Default)]
struct Removing(OnceLock<Knowledge>);

impl Transcriber for Removing {
    fn target(&self, _: OrgId) -> Answer<'_, Result<String, TranscribeFailure>> {
        Box::pin(async { Ok("own/ears".to_owned()) })
    }

    fn transcribe<'a>(
        &'a self,
        _: OrgId,
        _: &'a Actor,
        _: Recording<'a>,
    ) -> Answer<'a, Result<Heard, TranscribeFailure>> {
        Box::pin(async {
            let swept = self.0.get().unwrap().sweep().await.unwrap();
            assert_eq!(swept.uploads, 1);
            Ok(Heard { target: "own/ears".into(), text: "A secret heron.".into(), seconds: None })
        })
    }
}

#[tokio::test]
async fn a_file_that_is_removed_while_it_is_read_leaves_nothing() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let ears = Arc::new(Removing::default());
    ears.0.get_or_init(|| world.knowledge.clone());
    world.knowledge.hear_with(ears);
    let file = world.chat_upload(&owner, "call.m4a", "sound").await;
    // Long after its deadline: the sweep takes it, bytes, passages and row.
    world.later(Duration::from_secs(72 * 60 * 60));
    world.index(owner.org, file).await;
    assert_eq!(world.kept(file).await, 0);
}

#[tokio::test]
async fn what_a_killed_run_stored_of_a_removed_file_goes_with_its_repeat() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let file = world.chat_upload(&owner, "notes.txt", "A secret heron.").await;
    world.index(owner.org, file).await;
    assert_eq!(world.kept(file).await, 2);
    // As it stands when the passages were committed after the removal and the process died there.
    sqlx::query("DELETE FROM app.files WHERE id = $1").bind(file).execute(&world.db.app).await.unwrap();
    world.index(owner.org, file).await;
    assert_eq!(world.kept(file).await, 0);
}

#[tokio::test]
async fn many_removals_and_many_runs_at_once_leave_no_passage_behind() {
    let world = Arc::new(world().await);
    let owner = world.person("acme", Role::Owner).await;
    let text = long_text(60);
    for round in 0..4 {
        let mut files = Vec::new();
        for number in 0..6 {
            files.push(world.chat_upload(&owner, &format!("{round}-{number}.txt"), &text).await);
        }
        world.later(Duration::from_secs(72 * 60 * 60));
        let runs: Vec<_> = files
            .iter()
            .map(|file| {
                let (world, org, file) = (Arc::clone(&world), owner.org, *file);
                tokio::spawn(async move { world.knowledge.index_file(org, file, || async { Ok(()) }).await })
            })
            .collect();
        // A killed process is a run that ends where it is; its transaction is rolled back.
        runs[round].abort();
        while files_left(&world).await > 0 {
            world.knowledge.sweep().await.unwrap();
        }
        for run in runs {
            let _ = run.await;
        }
        for file in &files {
            // the job of a run that failed or was killed
            world.index(owner.org, *file).await;
            assert_eq!(world.kept(*file).await, 0);
        }
    }
    assert_eq!(world.found(&owner, "marker3").await, 0);
}

async fn files_left(world: &World) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM app.files").fetch_one(&world.db.app).await.unwrap()
}

#[tokio::test]
async fn a_deleted_organization_leaves_nothing_behind() {
    let world = world().await;
    let (owner, other) = (world.person("acme", Role::Owner).await, world.person("other", Role::Owner).await);
    let mut keys = Vec::new();
    for caller in [&owner, &other] {
        let file = world.document(caller, "a.txt", long_text(3)).await.file.unwrap();
        world.index(caller.org, file).await;
        let inline = NewContent::Inline { text: "Kept in the row.".into(), mime_type: None, extension: None };
        world.knowledge.create_document(caller, inline, Some("Inline")).await.unwrap();
        keys.push((file, world.chat_upload(caller, "b.txt", "A heron.").await));
    }
    assert!(world.kept(keys[0].0).await > 0);
    sqlx::query("UPDATE app.organizations SET deleted_at = now() WHERE id = $1")
        .bind(owner.org)
        .execute(&world.db.app)
        .await
        .unwrap();
    world.knowledge.sweep().await.unwrap();
    let left: Vec<OrgId> =
        sqlx::query_scalar("SELECT id FROM app.organizations ORDER BY id").fetch_all(&world.db.app).await.unwrap();
    assert!(!left.contains(&owner.org) && left.contains(&other.org));
    assert_eq!([world.kept(keys[0].0).await, world.kept(keys[0].1).await], [0, 0]);
    assert!(world.kept(keys[1].0).await > 0, "the other organization keeps what it has");
}

#[tokio::test]
async fn a_deleted_organizations_configuration_goes_last_and_nobody_elses_does() {
    let world = world().await;
    let (owner, other) = (world.person("acme", Role::Owner).await, world.person("acme-two", Role::Owner).await);
    let config = world.folder.path().join("config");
    let write = |path: &str| {
        let path = config.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "{}").unwrap();
    };
    for path in [
        "default/deployment.yml",
        "acme/governance/login-policy.yml",
        "acme/providers/.history/local/1.yml",
        "acme/notes by hand.txt",
        "acme-two/governance/login-policy.yml",
        "acme.old/kept.yml",
    ] {
        write(path);
    }
    std::os::unix::fs::symlink(config.join("acme-two"), config.join("acme/friends")).unwrap();
    world.document(&owner, "a.txt", long_text(3)).await;
    sqlx::query("UPDATE app.organizations SET deleted_at = now() WHERE id = $1")
        .bind(owner.org)
        .execute(&world.db.app)
        .await
        .unwrap();

    // A sweep that ends between the files and the rows is done again, whatever it left of the files.
    let stop = "CREATE FUNCTION app.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stopped'; END $$";
    sqlx::query(stop).execute(&world.db.app).await.unwrap();
    sqlx::query("CREATE TRIGGER stop BEFORE DELETE ON app.organizations FOR EACH ROW EXECUTE FUNCTION app.stop()")
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(world.knowledge.sweep().await.unwrap().kept, 1);
    let there = async || {
        let ids: Vec<OrgId> =
            sqlx::query_scalar("SELECT id FROM app.organizations").fetch_all(&world.db.app).await.unwrap();
        ids.contains(&owner.org)
    };
    assert!(there().await && !config.join("acme").exists());
    write("acme/half/removed.yml");
    sqlx::query("DROP TRIGGER stop ON app.organizations").execute(&world.db.app).await.unwrap();
    assert_eq!(world.knowledge.sweep().await.unwrap().kept, 0);
    assert!(!there().await && !config.join("acme").exists());
    for kept in ["default/deployment.yml", "acme-two/governance/login-policy.yml", "acme.old/kept.yml"] {
        assert!(config.join(kept).is_file(), "{kept}");
    }
    // Whoever takes the name next begins with nothing, and a sweep does not touch it.
    let next = world.person("acme", Role::Owner).await;
    write("acme/governance/login-policy.yml");
    world.knowledge.sweep().await.unwrap();
    assert!(config.join("acme/governance/login-policy.yml").is_file() && next.org != owner.org);
    let _ = other;
}
