//! The image of sessions: looked for in the background, fetched where that can be done (SBX-282). A start never
//! fetches anything.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;
use tale_core::clock::SharedClock;
use tokio::sync::Notify;

use super::engine::{Engine, Patience, refused, status};
use crate::backend::{BackendError, ImageState};
use crate::session::millis;

/// Pauses between attempts; the last one repeats.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
    Duration::from_secs(600),
];

/// Longest that one attempt to fetch may take.
const LONGEST_PULL: Duration = Duration::from_secs(1_800);

/// Pause before the engine is asked again when it did not answer.
const SOON: Duration = Duration::from_secs(2);

/// What is known about the image.
#[derive(Debug)]
pub struct Image {
    name: String,
    may_pull: bool,
    state: Mutex<ImageState>,
    missed: Notify,
}

impl Image {
    /// Nothing is known about `name` yet. Without `may_pull` it is only looked for.
    #[must_use]
    pub fn new(name: String, may_pull: bool) -> Arc<Self> {
        Arc::new(Self { name, may_pull, state: Mutex::new(ImageState::Unchecked), missed: Notify::new() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is known.
    #[must_use]
    pub fn state(&self) -> ImageState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: ImageState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// A start found it gone: it is looked for again at once.
    pub fn is_missed(&self) {
        self.set(ImageState::Pulling);
        self.missed.notify_one();
    }

    /// Looks for it until it is there, and again whenever it is missed.
    pub async fn keep(self: Arc<Self>, engine: Arc<Engine>, clock: SharedClock) {
        let mut attempt = 0;
        loop {
            match self.look(&engine).await {
                Ok(true) => {
                    self.set(ImageState::Ready);
                    attempt = 0;
                    self.missed.notified().await;
                    continue;
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(event = "sandbox.image", %error, "the engine cannot be asked for the image");
                    tokio::time::sleep(SOON).await;
                    continue;
                }
            }
            let problem = if self.may_pull {
                self.set(ImageState::Pulling);
                match self.pull(&engine).await {
                    Ok(()) => continue,
                    Err(error) => error.to_string(),
                }
            } else {
                format!("the image {} is not there, and images are not fetched (SANDBOX_SKIP_IMAGE_WARMUP)", self.name)
            };
            let pause = PAUSES[attempt.min(PAUSES.len() - 1)];
            attempt += 1;
            tracing::warn!(event = "sandbox.image", problem, seconds = pause.as_secs(), "the runtime image is missing");
            let next_attempt_at_ms = Some(clock.now_ms().saturating_add(millis(pause)));
            self.set(ImageState::Missing { last_error: problem, next_attempt_at_ms });
            // A create that misses it does not shorten the pause: everybody would fetch at once.
            tokio::time::sleep(pause).await;
        }
    }

    async fn look(&self, engine: &Engine) -> Result<bool, BackendError> {
        let name = self.name.clone();
        match engine.call(Patience::Short, |docker| async move { docker.inspect_image(&name).await }).await? {
            Ok(_) => Ok(true),
            Err(error) if status(&error) == Some(404) => Ok(false),
            Err(error) => Err(refused(&error)),
        }
    }

    async fn pull(&self, engine: &Engine) -> Result<(), BackendError> {
        let client = engine.client().await?;
        let options = CreateImageOptionsBuilder::new().from_image(&self.name).build();
        let fetching = async {
            let mut progress = client.create_image(Some(options), None, None);
            while let Some(step) = progress.next().await {
                step.map_err(|error| BackendError::Refused(error.to_string()))?;
            }
            Ok(())
        };
        let late = |_| BackendError::Unreachable("the image was not fetched in half an hour".to_owned());
        tokio::time::timeout(LONGEST_PULL, fetching).await.map_err(late)?
    }
}
