//! Where a lower room asks for something of a higher one: the small traits and what fills them.

use sqlx::PgConnection;
use tale_core::ids::OrgId;
use tale_core::{Actor, Problem};
use tale_knowledge::Knowledge;
use tale_knowledge::embedder::{Answer, EmbedFailure, Embedder, EmbeddingModel, Purpose};
use tale_knowledge::transcriber::{Heard, Recording, TranscribeFailure, Transcriber};
use tale_models::{EmbedError, EmbedPurpose, EmbeddingChanged, EmbeddingConfig, Models, TranscribeError};

/// Vectors for the knowledge room, from the organization's embedding model.
pub(crate) struct ModelEmbedder(pub Models);

impl Embedder for ModelEmbedder {
    fn model(&self, org: OrgId) -> Answer<'_, Result<Option<EmbeddingModel>, Problem>> {
        Box::pin(async move { Ok(self.0.embedding(org).await?.map(|config| model_of(&config))) })
    }

    fn embed<'a>(
        &'a self,
        org: OrgId,
        payer: &'a Actor,
        texts: &'a [String],
        purpose: Purpose,
    ) -> Answer<'a, Result<Vec<Vec<f32>>, EmbedFailure>> {
        let purpose = match purpose {
            Purpose::Index => EmbedPurpose::Index,
            Purpose::Search => EmbedPurpose::Search,
        };
        Box::pin(async move { self.0.embed(org, payer, texts, purpose).await.map_err(failure_of) })
    }
}

fn model_of(config: &EmbeddingConfig) -> EmbeddingModel {
    EmbeddingModel {
        provider_slug: config.provider_slug.clone(),
        model: config.model.clone(),
        dimensions: config.dimensions,
    }
}

fn failure_of(error: EmbedError) -> EmbedFailure {
    let sentence = error.to_string();
    match error {
        EmbedError::NotConfigured => EmbedFailure::NotConfigured,
        EmbedError::CreditExhausted(_) => EmbedFailure::CreditExhausted(sentence),
        EmbedError::CredentialRejected(_) => EmbedFailure::CredentialRejected(sentence),
        EmbedError::Width { .. } | EmbedError::Refused(_) => EmbedFailure::Refused(sentence),
        EmbedError::Limited(refusal) => EmbedFailure::Limited(refusal),
        EmbedError::Upstream { .. } | EmbedError::Store(_) => EmbedFailure::Upstream(sentence),
    }
}

/// Queues documents again when the embedding model changes, in the transaction of the change.
pub(crate) struct EmbeddingJobs(pub Knowledge);

#[async_trait::async_trait]
impl EmbeddingChanged for EmbeddingJobs {
    async fn embedding_changed(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        config: Option<&EmbeddingConfig>,
    ) -> Result<u64, Problem> {
        match config {
            Some(config) => Ok(self.0.embedding_saved(conn, org, &model_of(config)).await? as u64),
            None => {
                self.0.embedding_removed(conn, org).await?;
                Ok(0)
            }
        }
    }
}

/// Text of recordings for the knowledge room, from the organization's transcription model.
pub(crate) struct ModelTranscriber(pub Models);

impl Transcriber for ModelTranscriber {
    fn target(&self, org: OrgId) -> Answer<'_, Result<String, TranscribeFailure>> {
        Box::pin(async move { self.0.transcription_target(org).await.map_err(unheard) })
    }

    fn transcribe<'a>(
        &'a self,
        org: OrgId,
        payer: &'a Actor,
        recording: Recording<'a>,
    ) -> Answer<'a, Result<Heard, TranscribeFailure>> {
        Box::pin(async move {
            let about = (recording.extension, recording.media_type, recording.size);
            let (target, transcript) = self.0.transcribe(org, payer, recording.path, about).await.map_err(unheard)?;
            Ok(Heard { target, text: transcript.text, seconds: transcript.seconds })
        })
    }
}

fn unheard(error: TranscribeError) -> TranscribeFailure {
    let sentence = error.to_string();
    match error {
        TranscribeError::NoModel => TranscribeFailure::NoModel(sentence),
        TranscribeError::PinUnavailable { .. } | TranscribeError::Unreadable(_) => {
            TranscribeFailure::Unavailable(sentence)
        }
        TranscribeError::Refused(_) => TranscribeFailure::Refused(sentence),
        TranscribeError::Limited(_) => TranscribeFailure::Limited(sentence),
        TranscribeError::Upstream(_) | TranscribeError::Store(_) => TranscribeFailure::Upstream(sentence),
    }
}
