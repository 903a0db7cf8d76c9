//! The organization's transcription model, which the policy `transcription_model` may pin (MOD-64), and the
//! text of recordings.
//!
//! Without a pin the first transcription model that can be used is taken, in the order of the
//! providers and of their lists. A pinned model that cannot be used any more is reported and never
//! replaced (spec 40, 7.4).

use std::path::Path;

use tale_core::Actor;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};
use tale_governance::budgets::Refusal;

use crate::available::{Loaded, embeds};
use crate::definition::{CatalogSource, ProviderKind, Purpose};
use crate::ledger::{Charge, HoldError, Outcome, Price, source};
use crate::wire::{ModelError, ModelErrorCode, Recording, Transcript};
use crate::{Models, duration};

/// A pinned transcription model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptionPin {
    /// The provider.
    pub provider_slug: String,
    /// The provider's name of the model.
    pub model: String,
}

/// A transcription model that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptionModel {
    /// The provider.
    pub provider_slug: String,
    /// Its label.
    pub provider_name: String,
    /// The provider's name of the model.
    pub model: String,
    /// A readable name.
    pub display_name: String,
}

impl TranscriptionModel {
    /// Names the model that made a transcript (MOD-66).
    #[must_use]
    pub fn target(&self) -> String {
        format!("{}/{}", self.provider_slug, self.model)
    }
}

/// Whether recordings can be transcribed.
#[derive(Debug)]
pub enum TranscriptionState {
    /// With this model.
    Usable(TranscriptionModel),
    /// No, there is no transcription model.
    Missing,
    /// No, the pinned one cannot be used any more.
    PinUnavailable(TranscriptionPin),
    /// No, what administrators laid down cannot be read (MOD-64): why.
    Unreadable(Problem),
}

/// Why there is no transcript.
#[derive(Debug, thiserror::Error)]
pub enum TranscribeError {
    /// The organization has no transcription model.
    #[error("There is no transcription model, so recordings cannot be read. An administrator can add one.")]
    NoModel,
    /// The pinned model cannot be used any more; no other takes its place.
    #[error("The chosen transcription model {model} cannot be used any more. An administrator can choose another one.")]
    PinUnavailable {
        /// The pinned model.
        model: String,
    },
    /// The policy that names the model cannot be read, so none is called.
    #[error("{0}")]
    Unreadable(String),
    /// The provider refuses, or nothing can be called. No retry.
    #[error("{0}")]
    Refused(String),
    /// A usage limit leaves no room for it, so the provider was not asked.
    #[error("Usage limit reached. {0}")]
    Limited(Box<Refusal>),
    /// Outage or rate limit; trying again later helps.
    #[error("{0}")]
    Upstream(String),
    /// The database.
    #[error("the transcription settings cannot be read")]
    Store(#[source] Problem),
}

impl TranscribeError {
    fn of(error: ModelError) -> Self {
        match error.code {
            ModelErrorCode::RateLimited | ModelErrorCode::ProviderError | ModelErrorCode::ProviderUnreachable => {
                Self::Upstream(error.message)
            }
            _ => Self::Refused(error.message),
        }
    }
}

impl From<HoldError> for TranscribeError {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Exceeded(refusal) => Self::Limited(refusal),
            error => Self::Store(error.into()),
        }
    }
}

fn models_of(loaded: &[Loaded]) -> impl Iterator<Item = TranscriptionModel> + '_ {
    loaded.iter().filter(|one| one.provider.kind != ProviderKind::Demo && embeds(one.provider.api_format)).flat_map(
        |one| {
            let usable = one
                .models
                .iter()
                .filter(|model| model.serves(Purpose::Transcription) && one.serving(&model.id).is_some());
            usable.map(|model| TranscriptionModel {
                provider_slug: one.provider.slug.clone(),
                provider_name: one.provider.display_name.clone(),
                model: model.id.clone(),
                display_name: model.name().to_owned(),
            })
        },
    )
}

impl Models {
    /// The transcription models that can be used now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn transcription_models(&self, org: OrgId) -> Result<Vec<TranscriptionModel>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let loaded = self.load(&mut conn, org).await?;
        Ok(models_of(&loaded).collect())
    }

    /// Whether recordings can be transcribed now, and with which model.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn transcription_state(&self, org: OrgId) -> Result<TranscriptionState, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let loaded = self.load(&mut conn, org).await?;
        self.state_of(org, &loaded).await
    }

    async fn state_of(&self, org: OrgId, loaded: &[Loaded]) -> Result<TranscriptionState, Problem> {
        let policies = self.inner.policies.of(org).await?;
        let pin = match policies.transcription_model.usable() {
            Ok(policy) => policy.pin().map(|(provider, model)| (provider.to_owned(), model.to_owned())),
            Err(problem) => return Ok(TranscriptionState::Unreadable(problem)),
        };
        let mut usable = models_of(loaded);
        Ok(match pin {
            Some((provider_slug, model)) => {
                usable.find(|usable| usable.provider_slug == provider_slug && usable.model == model).map_or_else(
                    || TranscriptionState::PinUnavailable(TranscriptionPin { provider_slug, model }),
                    TranscriptionState::Usable,
                )
            }
            None => usable.next().map_or(TranscriptionState::Missing, TranscriptionState::Usable),
        })
    }

    /// The model that transcribes now, named as in [`TranscriptionModel::target`].
    ///
    /// # Errors
    /// [`TranscribeError::NoModel`], [`TranscribeError::PinUnavailable`], [`TranscribeError::Unreadable`],
    /// [`TranscribeError::Store`].
    pub async fn transcription_target(&self, org: OrgId) -> Result<String, TranscribeError> {
        match self.transcription_state(org).await.map_err(TranscribeError::Store)? {
            TranscriptionState::Usable(model) => Ok(model.target()),
            TranscriptionState::Missing => Err(TranscribeError::NoModel),
            TranscriptionState::PinUnavailable(pin) => Err(TranscribeError::PinUnavailable { model: pin.model }),
            TranscriptionState::Unreadable(problem) => Err(TranscribeError::Unreadable(problem.message.into_owned())),
        }
    }

    /// The text of the recording at `path` of `size` bytes, and the model that heard it, at the expense
    /// of `payer`. The file is streamed, never held in memory as a whole.
    ///
    /// # Errors
    /// [`TranscribeError`].
    pub async fn transcribe(
        &self,
        org: OrgId,
        payer: &Actor,
        path: &Path,
        (extension, media_type, size): (&str, &str, u64),
    ) -> Result<(String, Transcript), TranscribeError> {
        let store_error = |error: sqlx::Error| TranscribeError::Store(error.into());
        let mut conn = self.inner.pool.acquire().await.map_err(store_error)?;
        let loaded = self.load(&mut conn, org).await.map_err(TranscribeError::Store)?;
        let model = match self.state_of(org, &loaded).await.map_err(TranscribeError::Store)? {
            TranscriptionState::Usable(model) => model,
            TranscriptionState::Missing => return Err(TranscribeError::NoModel),
            TranscriptionState::PinUnavailable(pin) => {
                return Err(TranscribeError::PinUnavailable { model: pin.model });
            }
            TranscriptionState::Unreadable(problem) => {
                return Err(TranscribeError::Unreadable(problem.message.into_owned()));
            }
        };
        let one = loaded.iter().find(|one| one.provider.slug == model.provider_slug).ok_or(TranscribeError::NoModel)?;
        let target = self.target(&mut conn, org, &one.provider, one.serving(&model.model)).await.map_err(
            |problem| match problem.code {
                Code::CredentialEnvMissing | Code::CredentialSecretInvalid | Code::ProviderUnknown => {
                    TranscribeError::Refused(problem.message.into_owned())
                }
                _ => TranscribeError::Store(problem),
            },
        )?;
        drop(conn);
        let recording = Recording { path, extension, media_type, size };
        // OpenRouter knows no times.
        let verbose = one.provider.catalog_source != CatalogSource::OpenrouterApi;
        let charge = Charge::of(org, payer, source::TRANSCRIPTION, &model.provider_slug, &model.model);
        let spec = one.models.iter().find(|spec| spec.id == model.model);
        let price = Price::of(spec.and_then(|spec| spec.pricing.as_ref()));
        let length = duration::length(path, size).await;
        let hold = self.inner.ledger.hold(&charge, price.whole_recording(length.seconds)).await?;
        let measured = price.recording(length.seconds);
        hold.progress(measured, 0);
        let heard = self.inner.wire.transcribe(&target, &model.model, recording, verbose).await;
        let outcome = match &heard {
            Ok(Transcript { seconds: Some(seconds), .. }) => {
                Outcome::Known(price.recording(duration::whole(*seconds).min(length.most)))
            }
            Err(error) if error.before_work() => Outcome::Released,
            Ok(_) | Err(_) => Outcome::Floor(measured),
        };
        self.inner.ledger.settle(hold, outcome).await;
        Ok((model.target(), heard.map_err(TranscribeError::of)?))
    }
}
