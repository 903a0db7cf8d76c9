//! What is stored with an old key moves to the present one, and nothing is lost on the way.

use tale_core::crypto::FieldCipher;
use tale_models::rotation::{self, Progress};

use crate::support::{KEY, Room, chat_model, new_provider};

/// The key of [`Room`].
const OLD: &str = "ab";
const NEW: &str = "cd";

fn cipher(current: &str, previous: &[&str]) -> FieldCipher {
    let previous: Vec<String> = previous.iter().map(|byte| byte.repeat(32)).collect();
    FieldCipher::from_hex(&current.repeat(32), previous.iter().map(String::as_str)).unwrap()
}

/// The stored key of each credential, opened with `cipher` alone.
async fn opened(room: &Room, cipher: &FieldCipher) -> Vec<Option<String>> {
    let rows: Vec<(uuid::Uuid, String)> =
        sqlx::query_as("SELECT id, secret FROM app.credentials WHERE secret IS NOT NULL ORDER BY id")
            .fetch_all(&room.db.app)
            .await
            .unwrap();
    rows.iter().map(|(id, sealed)| cipher.open(&format!("credential:{id}"), sealed).ok()).collect()
}

async fn providers(room: &Room, count: usize) {
    for at in 0..count {
        let provider = new_provider(&format!("p{at}"), "http://127.0.0.1:1/v1", vec![chat_model("m")]);
        room.models.create_provider(room.org, &room.actor, provider).await.unwrap();
    }
}

#[tokio::test]
async fn every_stored_key_opens_with_the_new_key_alone_and_a_second_run_changes_nothing() {
    let room = Room::new().await;
    providers(&room, 3).await;
    let mut told = Vec::new();
    let done =
        rotation::reencrypt(&room.db.app, &cipher(NEW, &[OLD]), |so_far| told.push(so_far.checked)).await.unwrap();
    assert_eq!((done.checked, done.rewritten, done.unreadable), (3, 3, 0));
    assert_eq!(told, [3]);
    assert_eq!(opened(&room, &cipher(NEW, &[])).await, vec![Some(KEY.to_owned()); 3]);
    let again = rotation::reencrypt(&room.db.app, &cipher(NEW, &[]), |_| {}).await.unwrap();
    assert_eq!(again, Progress { checked: 3, ..Progress::default() });
}

#[tokio::test]
async fn a_key_that_nothing_opens_is_named_and_stays_as_it_is() {
    let room = Room::new().await;
    providers(&room, 2).await;
    let done = rotation::reencrypt(&room.db.app, &cipher(NEW, &["ef"]), |_| {}).await.unwrap();
    assert_eq!((done.rewritten, done.unreadable, done.named.len()), (0, 2, 2));
    assert_eq!(opened(&room, &cipher(OLD, &[])).await, vec![Some(KEY.to_owned()); 2]);
}
