//! The transcription model and the text of recordings (MOD-64 to MOD-66).

use std::io::Write;

use serde_json::json;
use tale_core::Actor;
use tale_core::problem::Code;
use tale_governance::policies::{Key, MAX_AGE, ModelRules};
use tale_models::{CredentialChange, ModelSpec, Pricing, Purpose, TranscribeError, TranscriptionState};
use tale_testkit::upstream::{FakeUpstream, Reply};

use crate::support::{KEY, Room, chat_model, new_provider};

fn hearing(id: &str) -> ModelSpec {
    ModelSpec { purposes: vec![Purpose::Transcription], ..ModelSpec::unknown(id) }
}

fn recording() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"RIFF pretend sound").unwrap();
    file
}

async fn hear(room: &Room) -> Result<(String, tale_models::Transcript), TranscribeError> {
    let file = recording();
    room.models.transcribe(room.org, &Actor::System, file.path(), ("wav", "audio/wav", 18)).await
}

async fn room_with(upstream: &FakeUpstream, ids: &[&str]) -> Room {
    let room = Room::new().await;
    let mut models: Vec<ModelSpec> = ids.iter().map(|id| hearing(id)).collect();
    models.push(chat_model("talks"));
    room.models
        .create_provider(room.org, &room.actor, new_provider("own", &upstream.openai_base(), models))
        .await
        .unwrap();
    room
}

#[tokio::test]
async fn the_real_form_travels_and_its_text_comes_back() {
    let upstream = FakeUpstream::start().await;
    let room = room_with(&upstream, &["ears"]).await;
    let (target, transcript) = hear(&room).await.unwrap();
    assert_eq!((target.as_str(), transcript.text.as_str()), ("own/ears", "[0:00] I heard 18 bytes."));
    assert_eq!(transcript.seconds, Some(1.5));
    let sent = upstream.requests().pop().unwrap();
    assert_eq!(sent.path, "/v1/audio/transcriptions");
    assert_eq!(sent.key.as_deref(), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        sent.body,
        json!({ "model": "ears", "response_format": "verbose_json", "fileName": "recording.wav", "fileType": "audio/wav", "fileSize": 18, "fileText": "RIFF pretend sound" })
    );
    assert!(sent.headers.contains_key("content-length"), "strict servers refuse chunks");
    assert!(
        room.models.chat_models(room.org, &ModelRules::none()).await.unwrap().iter().all(|model| model.id == "talks")
    );
}

#[tokio::test]
async fn a_model_without_times_is_asked_again_and_refusals_keep_their_words() {
    let upstream = FakeUpstream::start().await;
    let room = room_with(&upstream, &["ears"]).await;
    upstream.push_transcription(Reply::refusal(
        400,
        "unsupported_value",
        "response_format 'verbose_json' is not compatible with this model.",
    ));
    assert_eq!(hear(&room).await.unwrap().1.text, "I heard 18 bytes.");
    upstream.push_transcription(Reply::refusal(
        413,
        "request_too_large",
        "Maximum content size limit (26214400) exceeded",
    ));
    assert!(matches!(hear(&room).await, Err(TranscribeError::Refused(words)) if words.contains("26214400")));
    upstream.push_transcription(Reply::refusal(429, "rate_limit_exceeded", "Slow down"));
    assert!(matches!(hear(&room).await, Err(TranscribeError::Upstream(_))));
}

/// MOD-65, MOD-87: the provider's length where it tells one, else the file's own; never more than its bytes can be.
#[tokio::test]
async fn a_recording_costs_its_minutes_whoever_measures_them() {
    let upstream = FakeUpstream::start().await;
    let room = Room::new().await;
    let pricing = Some(Pricing { per_minute: Some(0.6), ..Pricing::default() });
    let specs = vec![ModelSpec { pricing, ..hearing("ears") }];
    let new = new_provider("own", &upstream.openai_base(), specs);
    room.models.create_provider(room.org, &room.actor, new).await.unwrap();
    for answer in [
        json!({ "text": "x", "duration": 30.0 }),
        json!({ "text": "x" }),
        json!({ "text": "x", "usage": { "type": "duration", "seconds": 1e12 } }),
    ] {
        upstream.push_transcription(Reply::status(200, &answer));
        hear(&room).await.unwrap();
    }
    let booked: Vec<(i64, i64, String)> =
        sqlx::query_as("SELECT units, cost_micro_usd, outcome FROM app.usage_bookings ORDER BY reservation_id")
            .fetch_all(&room.db.app)
            .await
            .unwrap();
    assert_eq!(booked[0], (30, 300_000, "reported".to_owned()));
    let (measured, bound) = (&booked[1], &booked[2]);
    assert!((1..=60).contains(&measured.0) && measured.1 == measured.0 * 10_000 && measured.2 == "floor");
    assert!((60..=120).contains(&bound.0) && bound.1 == bound.0 * 10_000);
}

#[tokio::test]
async fn automatic_takes_the_first_and_a_lost_pin_is_reported_not_replaced() {
    let upstream = FakeUpstream::start().await;
    let room = room_with(&upstream, &["first", "second"]).await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    assert_eq!(models.transcription_target(org).await.unwrap(), "own/first");
    let pin = |value| room.policies.set(org, actor, Key::TranscriptionModel, value, None);
    pin(json!({ "providerSlug": "own", "modelId": "second" })).await.unwrap();
    assert_eq!(hear(&room).await.unwrap().0, "own/second");
    let used = models.delete_provider(org, actor, "own", 1).await.unwrap_err();
    assert_eq!(used.code, Code::ProviderInUse);

    let credential = models.provider(org, "own").await.unwrap().credentials.remove(0);
    let narrow = CredentialChange {
        version: credential.version,
        model_allowlist: Some(vec!["first".into()]),
        ..CredentialChange::default()
    };
    models.change_credential(org, actor, credential.id, narrow).await.unwrap();
    let lost = models.transcription_state(org).await.unwrap();
    assert!(matches!(lost, TranscriptionState::PinUnavailable(pin) if pin.model == "second"));
    assert!(matches!(hear(&room).await, Err(TranscribeError::PinUnavailable { model }) if model == "second"));
    pin(json!({ "providerSlug": null, "modelId": null })).await.unwrap();
    assert_eq!(hear(&room).await.unwrap().0, "own/first");
}

#[tokio::test]
async fn an_operators_file_pins_a_model_and_half_a_pin_stops_transcription() {
    let upstream = FakeUpstream::start().await;
    let room = room_with(&upstream, &["first", "second"]).await;
    let file = room.folder.path().join("acme/governance/transcription-model.yml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "providerSlug: own\nmodelId: second\n").unwrap();
    assert_eq!(room.models.transcription_target(room.org).await.unwrap(), "own/second");
    std::fs::write(&file, "modelId: second\n").unwrap();
    room.clock.advance(MAX_AGE);
    assert!(
        matches!(hear(&room).await, Err(TranscribeError::Unreadable(words)) if words.contains("`transcription_model`"))
    );
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn without_a_model_nothing_is_called() {
    let upstream = FakeUpstream::start().await;
    let room = room_with(&upstream, &[]).await;
    assert!(matches!(room.models.transcription_state(room.org).await.unwrap(), TranscriptionState::Missing));
    assert!(matches!(hear(&room).await, Err(TranscribeError::NoModel)));
    assert!(upstream.requests().is_empty());
}
