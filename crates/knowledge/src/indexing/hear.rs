//! From a recording to the text that is indexed in its place (spec 60, section 18).

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use tale_jobs::JobError;
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;

use super::TEMP_PREFIX;
use super::read::{ReadError, Source};
use crate::Knowledge;
use crate::store::transcripts;
use crate::transcriber::{Heard, Recording, TranscribeFailure};

/// Pause between two proofs that the run goes on while a provider listens.
const LISTEN: Duration = Duration::from_secs(2);

impl Knowledge {
    /// The transcript of the recording at `path`, as a text file. What the same model heard in the
    /// same bytes before is used again (MOD-66).
    pub(super) async fn hear<F, K>(
        &self,
        source: &Source,
        path: &Path,
        (extension, media_type): (&str, &str),
        content_hash: &str,
        keep: &K,
    ) -> Result<NamedTempFile, ReadError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let org = source.org;
        let transcriber = self.transcriber().ok_or_else(|| ReadError::Unheard {
            code: "no_transcription_model",
            message: "Recordings are not transcribed here.".to_owned(),
        })?;
        let target = transcriber.target(org).await.map_err(unheard)?;
        let held = transcripts::get(&mut *self.app().acquire().await?, org, content_hash, &target).await?;
        let text = match held {
            Some(text) => text,
            None => {
                let size = u64::try_from(source.row.size).unwrap_or_default();
                let paid = Paid { source, heard: false };
                let payer = self.payer_of(org, source.file).await?;
                let recording = Recording { path, extension, media_type, size };
                let mut listening = transcriber.transcribe(org, &payer, recording);
                let Heard { target, text, seconds } = loop {
                    tokio::select! {
                        heard = &mut listening => break paid.heard(heard).map_err(unheard)?,
                        () = tokio::time::sleep(LISTEN) => match keep().await {
                            // What is paid for is heard to its end, as long as the drain has time.
                            Ok(()) | Err(JobError::Interrupted) => {}
                            Err(other) => return Err(ReadError::Stopped(other)),
                        },
                    }
                };
                let mut conn = self.app().acquire().await?;
                transcripts::put(&mut conn, org, content_hash, (&target, &text, seconds), self.clock().now()).await?;
                tracing::info!(org.id = %org, file.id = %source.file, target, seconds, "transcribed a recording");
                text
            }
        };
        if text.trim().is_empty() {
            return Err(ReadError::Unheard {
                code: "no_speech",
                message: "No speech was found in this recording.".to_owned(),
            });
        }
        let file = tempfile::Builder::new().prefix(TEMP_PREFIX).suffix(".txt").tempfile_in(self.temp_dir())?;
        let mut out = tokio::fs::File::create(file.path()).await?;
        out.write_all(text.as_bytes()).await?;
        out.flush().await?;
        Ok(file)
    }
}

/// A request for a transcript, which says when it is cut off: the next run makes it again.
struct Paid<'a> {
    source: &'a Source,
    heard: bool,
}

impl Paid<'_> {
    fn heard<T>(mut self, answer: T) -> T {
        self.heard = true;
        answer
    }
}

impl Drop for Paid<'_> {
    fn drop(&mut self) {
        if !self.heard {
            tracing::warn!(
                event = "transcription.cut", org.id = %self.source.org, file.id = %self.source.file,
                "a transcription was cut off; it is made again, and the provider may bill both"
            );
        }
    }
}

fn unheard(failure: TranscribeFailure) -> ReadError {
    let code = match &failure {
        TranscribeFailure::NoModel(_) => "no_transcription_model",
        TranscribeFailure::Unavailable(_) => "transcription_model_unavailable",
        TranscribeFailure::Refused(_) => "transcription_refused",
        TranscribeFailure::Limited(_) => "usage_limit",
        TranscribeFailure::Upstream(message) => return ReadError::Later(message.clone()),
    };
    ReadError::Unheard { code, message: failure.to_string() }
}
