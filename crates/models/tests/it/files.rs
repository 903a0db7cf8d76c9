//! Definitions as files (spec 40, 2.1): written with every save, and taken over when somebody edits one.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tale_core::problem::Code;
use tale_governance::policies::ModelRules;
use tale_models::{ProviderChange, SeenFiles};

use crate::support::{KEY, Room, chat_model, new_provider, organization};

const BASE: &str = "http://127.0.0.1:9/v1";

fn place(room: &Room, name: &str) -> PathBuf {
    room.folder.path().join("acme/providers").join(name)
}

/// Writes a file as somebody did who has been through for a while.
fn by_hand(room: &Room, name: &str, text: &str) {
    let path = place(room, name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(10)).unwrap();
}

fn history(room: &Room, slug: &str) -> Vec<String> {
    let entries = fs::read_dir(place(room, ".history").join(slug)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.split_once("-v").unwrap().1.to_owned())
        .collect();
    names.sort();
    names
}

async fn usable(room: &Room) -> Vec<String> {
    let models = room.models.chat_models(room.org, &ModelRules::none()).await.unwrap();
    models.into_iter().map(|model| format!("{}/{}", model.provider_slug, model.id)).collect()
}

fn rename(version: i64, name: &str) -> ProviderChange {
    ProviderChange { version, display_name: Some(name.into()), ..ProviderChange::default() }
}

#[tokio::test]
async fn a_save_leaves_a_file_and_its_history_and_what_a_dead_process_left_is_mended() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    models.create_provider(org, actor, new_provider("p", BASE, vec![chat_model("m")])).await.unwrap();
    let first = fs::read_to_string(place(&room, "p.yml")).unwrap();
    models.change_provider(org, actor, "p", rename(1, "Second")).await.unwrap();
    let second = fs::read_to_string(place(&room, "p.yml")).unwrap();
    assert!(second.contains("\"displayName\": \"Second\"") && second.contains("# version 2 "));
    assert_eq!(history(&room, "p"), ["1.yml", "2.yml"]);
    // Killed before the file was written, and before the commit.
    for left in [None, Some(first.as_str()), Some(&*second.replace("# version 2 ", "# version 3 "))] {
        match left {
            None => fs::remove_file(place(&room, "p.yml")).unwrap(),
            Some(text) => fs::write(place(&room, "p.yml"), text).unwrap(),
        }
        room.again().look_at_files(&mut SeenFiles::default()).await.unwrap();
        assert_eq!(fs::read_to_string(place(&room, "p.yml")).unwrap(), second);
    }
    assert_eq!(models.provider(org, "p").await.unwrap().provider.version, 2);
    models.delete_provider(org, actor, "p", 2).await.unwrap();
    assert!(!place(&room, "p.yml").exists());
    assert_eq!(history(&room, "p"), ["1.yml", "2-deleted.yml", "2.yml"]);
    // Killed before the file was removed.
    fs::write(place(&room, "p.yml"), &second).unwrap();
    room.again().look_at_files(&mut SeenFiles::default()).await.unwrap();
    assert!(!place(&room, "p.yml").exists());
    assert_eq!(models.provider(org, "p").await.unwrap_err().code, Code::ProviderUnknown);

    let states = models.provider_history(org, "p").await.unwrap();
    let back = models.restore_provider(org, actor, "p", states[2].id, None).await.unwrap();
    assert_eq!((back.provider.display_name.as_str(), back.provider.version), ("Provider p", 3));
    let stale = models.restore_provider(org, actor, "p", states[0].id, Some(2)).await.unwrap_err();
    assert_eq!(stale.code, Code::ProviderVersionConflict);
    let back = models.restore_provider(org, actor, "p", states[0].id, Some(3)).await.unwrap();
    assert_eq!((back.provider.display_name.as_str(), back.provider.version), ("Second", 4));
    assert!(fs::read_to_string(place(&room, "p.yml")).unwrap().contains("# version 4 "));
    let other = organization(&room.db.app, "other").await;
    assert_eq!(models.provider_history(other, "p").await.unwrap_err().code, Code::ProviderUnknown);
    let foreign = models.restore_provider(other, actor, "p", states[0].id, None).await.unwrap_err();
    assert_eq!(foreign.code, Code::NotFound);
    for entry in fs::read_dir(place(&room, ".history/p")).unwrap() {
        assert!(!fs::read_to_string(entry.unwrap().path()).unwrap().contains(KEY));
    }
}

#[tokio::test]
async fn an_edit_by_hand_is_a_change_like_any_other() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    models.create_provider(org, actor, new_provider("p", BASE, vec![chat_model("m")])).await.unwrap();
    let mut seen = SeenFiles::default();
    models.look_at_files(&mut seen).await.unwrap();
    let edited = "# ours\nname: p\ndisplayName: By hand\napiFormat: openai\nbaseUrl: http://127.0.0.1:9/v2/\n\
                  catalog: { source: none }\nauth: [ { method: api-key } ]\nmodels:\n  - id: n\n";
    // A process that has not looked yet must not write over the edit.
    by_hand(&room, "p.yml", edited);
    let stale = models.change_provider(org, actor, "p", rename(1, "In the app")).await.unwrap_err();
    assert_eq!(stale.code, Code::ProviderVersionConflict);
    let view = models.provider(org, "p").await.unwrap();
    assert_eq!((view.provider.display_name.as_str(), view.provider.version), ("By hand", 2));
    assert_eq!(view.provider.base_url.as_ref().unwrap().path(), "/v2");
    assert_eq!(usable(&room).await, ["p/n"]);
    assert_eq!(fs::read_to_string(place(&room, "p.yml")).unwrap(), edited, "the comments stay");
    let last = room.audit().await.pop().unwrap();
    assert_eq!((last.0.as_str(), last.1["source"].as_str()), ("provider.update", Some("file")));

    // The loop sees the next one, and a new file.
    by_hand(&room, "p.yml", &edited.replace("By hand", "Again"));
    by_hand(&room, "q.yml", &edited.replace("name: p", "name: q").replace("- id: n", "- id: qq"));
    models.look_at_files(&mut seen).await.unwrap();
    assert_eq!(models.provider(org, "p").await.unwrap().provider.display_name, "Again");
    assert_eq!(models.provider(org, "q").await.unwrap().provider.version, 1);
    assert_eq!(history(&room, "p"), ["1.yml", "2.yml", "3.yml"]);
    // An editor takes a file away for a moment.
    fs::remove_file(place(&room, "q.yml")).unwrap();
    models.look_at_files(&mut seen).await.unwrap();
    assert!(!place(&room, "q.yml").exists());
    models.look_at_files(&mut seen).await.unwrap();
    assert!(fs::read_to_string(place(&room, "q.yml")).unwrap().contains("\"name\": \"q\""), "nothing is lost");
    let mine = models.change_provider(org, actor, "p", rename(3, "In the app")).await.unwrap();
    assert_eq!(mine.provider.version, 4);
    assert!(!fs::read_to_string(place(&room, "p.yml")).unwrap().contains("# ours"));
}

#[tokio::test]
async fn a_broken_file_takes_its_own_provider_out_and_no_other() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    for slug in ["p", "q"] {
        models.create_provider(org, actor, new_provider(slug, BASE, vec![chat_model("m")])).await.unwrap();
    }
    let mut seen = SeenFiles::default();
    models.look_at_files(&mut seen).await.unwrap();
    let good = fs::read_to_string(place(&room, "p.yml")).unwrap();
    let cases = [
        ("name: [", "it is not YAML"),
        ("", "it must be an object"),
        ("name: p", "`displayName` is required"),
        (&good.replace("\"embedding\"", "\"embeddingg\""), "`embeddingg` is not a known field"),
        (&good.replace("\"openai\"", "\"sk-pasted\""), "`apiFormat` must be one of"),
        (&good.replace("\"name\": \"p\"", "\"name\": \"q\""), "`name` must be the name of the file"),
        (&good.replace(BASE, "http://169.254.169.254/"), "`baseUrl`"),
        (&good.replace("\"contextWindow\"", "\"contextWindows\""), "`models.0.contextWindows` is not a known field"),
        (&good.replace("\"none\"", "\"static\""), "`catalog.source`"),
    ];
    for (text, why) in cases {
        by_hand(&room, "p.yml", text);
        models.look_at_files(&mut seen).await.unwrap();
        let reason = models.provider(org, "p").await.unwrap().provider.unreadable.unwrap_or_default();
        assert!(reason.contains(why) && !reason.contains("sk-pasted"), "{text}\n{reason}");
        assert_eq!(usable(&room).await, ["q/m"]);
    }
    by_hand(&room, "p.yml", &good);
    models.look_at_files(&mut seen).await.unwrap();
    assert_eq!(usable(&room).await, ["p/m", "q/m"]);
    assert_eq!(models.provider(org, "p").await.unwrap().provider.version, 1);
    // Saving over it mends it as well.
    by_hand(&room, "p.yml", "name: [");
    models.look_at_files(&mut seen).await.unwrap();
    models.change_provider(org, actor, "p", rename(1, "Again")).await.unwrap();
    assert_eq!(usable(&room).await, ["p/m", "q/m"]);

    by_hand(&room, "new.yml", "name: other");
    by_hand(&room, "openai.yml", &good.replace("\"name\": \"p\"", "\"name\": \"openai\""));
    models.look_at_files(&mut seen).await.unwrap();
    let named: Vec<String> = models.unusable_files(org).await.unwrap().into_iter().map(|file| file.file).collect();
    assert_eq!(named, ["new.yml", "openai.yml"]);
    let taken = models.create_provider(org, actor, new_provider("new", BASE, vec![chat_model("m")])).await.unwrap_err();
    assert_eq!(taken.code, Code::ProviderNameTaken);
    assert_eq!(fs::read_to_string(place(&room, "new.yml")).unwrap(), "name: other");
}
