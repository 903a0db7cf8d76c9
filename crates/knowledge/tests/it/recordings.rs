//! Recordings in chats: their transcript is their text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tale_core::ids::OrgId;
use tale_core::{Actor, Code};
use tale_identity::Role;
use tale_jobs::JobError;
use tale_knowledge::embedder::Answer;
use tale_knowledge::files::{AttachmentState, Purpose};
use tale_knowledge::indexing::ReadError;
use tale_knowledge::transcriber::{Heard, Recording, TranscribeFailure, Transcriber};

use crate::world::{World, world};

/// Hears what it is told to, and writes down what it was given.
struct Ears {
    target: Mutex<Result<String, TranscribeFailure>>,
    answers: Mutex<VecDeque<Result<String, TranscribeFailure>>>,
    given: Mutex<Vec<(Vec<u8>, String)>>,
    /// Whether it takes longer than a run goes without asking whether it goes on.
    slow: Mutex<bool>,
}

impl Transcriber for Ears {
    fn target(&self, _: OrgId) -> Answer<'_, Result<String, TranscribeFailure>> {
        let target = self.target.lock().unwrap().clone();
        Box::pin(async move { target })
    }

    fn transcribe<'a>(
        &'a self,
        _: OrgId,
        _: &'a Actor,
        recording: Recording<'a>,
    ) -> Answer<'a, Result<Heard, TranscribeFailure>> {
        let bytes = std::fs::read(recording.path).unwrap();
        assert_eq!(bytes.len() as u64, recording.size);
        self.given.lock().unwrap().push((bytes, recording.media_type.to_owned()));
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok("We agreed on Tuesday.".into()));
        let target = self.target.lock().unwrap().clone().unwrap();
        let pause = if *self.slow.lock().unwrap() { Duration::from_millis(2_500) } else { Duration::ZERO };
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            answer.map(|text| Heard { target, text, seconds: Some(2.0) })
        })
    }
}

async fn heard_world() -> (World, Arc<Ears>) {
    let world = world().await;
    let ears = Arc::new(Ears {
        target: Mutex::new(Ok("own/ears".into())),
        answers: Mutex::default(),
        given: Mutex::default(),
        slow: Mutex::default(),
    });
    world.knowledge.hear_with(ears.clone());
    (world, ears)
}

#[tokio::test]
async fn a_recording_becomes_its_transcript_and_equal_bytes_are_heard_once_per_model() {
    let (world, ears) = heard_world().await;
    let owner = world.person("acme", Role::Owner).await;
    let mut files = Vec::new();
    for name in ["Call.m4a", "The same call.m4a"] {
        let file = world.upload(&owner, name, "sound", Purpose::Chat).await;
        let before = world.knowledge.attachment(&owner, file).await.unwrap();
        assert_eq!((before.state, before.recording), (AttachmentState::Processing, true));
        world.index(owner.org, file).await;
        let after = world.knowledge.attachment(&owner, file).await.unwrap();
        assert_eq!((after.state, after.error), (AttachmentState::Ready, None));
        files.push(file);
    }
    let text = world.knowledge.attachment_text(&owner, files[1], 0, 1_000).await.unwrap();
    assert_eq!((text.text.as_str(), text.next_offset), ("We agreed on Tuesday.", None));
    assert_eq!(*ears.given.lock().unwrap(), [(b"sound".to_vec(), "audio/mp4".to_owned())]);
    let stranger = world.colleague(owner.org, "acme", Role::Member).await;
    let refused = world.knowledge.attachment_text(&stranger, files[0], 0, 10).await.unwrap_err();
    assert_eq!(refused.code, Code::FileNotFound);

    *ears.target.lock().unwrap() = Ok("own/better".into());
    let again = world.upload(&owner, "Again.m4a", "sound", Purpose::Chat).await;
    world.knowledge.attachment(&owner, again).await.unwrap();
    world.index(owner.org, again).await;
    assert_eq!(ears.given.lock().unwrap().len(), 2, "another model hears for itself");
}

#[tokio::test]
async fn a_failure_keeps_its_reason_until_it_is_tried_again() {
    let (world, ears) = heard_world().await;
    let owner = world.person("acme", Role::Owner).await;
    let file = world.upload(&owner, "Call.mp3", "sound", Purpose::Chat).await;
    world.knowledge.attachment(&owner, file).await.unwrap();

    ears.answers.lock().unwrap().push_back(Err(TranscribeFailure::Refused("The audio is too long.".into())));
    world.index(owner.org, file).await;
    let failed = world.knowledge.attachment(&owner, file).await.unwrap();
    assert_eq!((failed.state, failed.error.as_deref()), (AttachmentState::Failed, Some("The audio is too long.")));
    assert!(failed.can_retry);

    let waiting = world.knowledge.retry_attachment(&owner, file).await.unwrap();
    assert_eq!((waiting.state, waiting.error), (AttachmentState::Processing, None));
    ears.answers.lock().unwrap().push_back(Err(TranscribeFailure::Upstream("Slow down.".into())));
    let later = world.knowledge.index_file(owner.org, file, || async { Ok(()) }).await.unwrap_err();
    assert!(matches!(later, ReadError::Later(words) if words == "Slow down."));
    let still = world.knowledge.attachment(&owner, file).await.unwrap();
    assert_eq!(still.state, AttachmentState::Processing, "a bad moment of the provider is waited out");
    world.index(owner.org, file).await;
    assert_eq!(world.knowledge.attachment(&owner, file).await.unwrap().state, AttachmentState::Ready);
}

#[tokio::test]
async fn a_drain_does_not_cut_what_is_being_heard() {
    let (world, ears) = heard_world().await;
    let owner = world.person("acme", Role::Owner).await;
    let file = world.upload(&owner, "Call.m4a", "sound", Purpose::Chat).await;
    world.knowledge.attachment(&owner, file).await.unwrap();
    // From the provider's first word on, the run is asked to stop.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    *ears.slow.lock().unwrap() = true;
    let run = world.knowledge.index_file(owner.org, file, || async {
        asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if ears.given.lock().unwrap().is_empty() { Ok(()) } else { Err(JobError::Interrupted) }
    });
    assert!(matches!(run.await, Ok(()) | Err(ReadError::Stopped(JobError::Interrupted))));
    assert!(asked.load(std::sync::atomic::Ordering::SeqCst) > 0);
    world.index(owner.org, file).await;
    assert_eq!(ears.given.lock().unwrap().len(), 1, "the repeat finds the transcript");
    assert_eq!(world.knowledge.attachment(&owner, file).await.unwrap().state, AttachmentState::Ready);
}

#[tokio::test]
async fn without_a_model_or_without_speech_the_reason_says_so() {
    let (world, ears) = heard_world().await;
    let owner = world.person("acme", Role::Owner).await;
    *ears.target.lock().unwrap() = Err(TranscribeFailure::NoModel("There is no transcription model.".into()));
    let file = world.upload(&owner, "Call.wav", "sound", Purpose::Chat).await;
    world.knowledge.attachment(&owner, file).await.unwrap();
    world.index(owner.org, file).await;
    let failed = world.knowledge.attachment(&owner, file).await.unwrap();
    assert_eq!(failed.error.as_deref(), Some("There is no transcription model."));
    assert!(ears.given.lock().unwrap().is_empty());

    *ears.target.lock().unwrap() = Ok("own/ears".into());
    ears.answers.lock().unwrap().push_back(Ok("  \n".into()));
    world.knowledge.retry_attachment(&owner, file).await.unwrap();
    world.index(owner.org, file).await;
    let silent = world.knowledge.attachment(&owner, file).await.unwrap();
    assert_eq!(silent.error.as_deref(), Some("No speech was found in this recording."));
}

#[tokio::test]
async fn the_library_keeps_a_recording_without_hearing_it() {
    let (world, ears) = heard_world().await;
    let owner = world.person("acme", Role::Owner).await;
    world.document(&owner, "Call.mp3", "sound").await;
    assert!(ears.given.lock().unwrap().is_empty());
}
