//! The engine's interface, with bounds: a few calls at a time, each with a deadline that counts its wait, and some
//! places that only short calls may take, so that a slow engine can still be asked how it is (SBD-20).

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::backend::BackendError;

/// Calls at the same time.
const LONG_CALLS: usize = 12;

/// Further short calls.
const SHORT_CALLS: usize = 4;

/// Seconds that the client itself waits; our deadlines come first.
const CLIENT_SECONDS: u64 = 300;

/// How long a call may take, its wait for a place included.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// A question: which version, is it there. These have places of their own.
    Short,
    /// A list, a network, a volume.
    Usual,
    /// Making, starting and ending containers.
    Long,
}

impl Patience {
    const fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Short => 5,
            Self::Usual => 15,
            Self::Long => 60,
        })
    }
}

/// A Docker engine.
#[derive(Debug)]
pub struct Engine {
    host: String,
    client: OnceCell<Docker>,
    long: Semaphore,
    short: Semaphore,
}

/// An address that names no engine.
#[derive(Debug, Clone, thiserror::Error)]
#[error("DOCKER_HOST must begin with unix:// or tcp://; `{0}` does not")]
pub struct BadHost(pub String);

impl Engine {
    /// The engine at `host`, as in `DOCKER_HOST`. Nothing is connected yet.
    ///
    /// # Errors
    /// [`BadHost`] for another kind of address.
    pub fn new(host: &str) -> Result<Self, BadHost> {
        if !(host.starts_with("unix://") || host.starts_with("tcp://")) {
            return Err(BadHost(host.to_owned()));
        }
        let (long, short) = (Semaphore::new(LONG_CALLS), Semaphore::new(SHORT_CALLS));
        Ok(Self { host: host.to_owned(), client: OnceCell::new(), long, short })
    }

    /// Whether the engine is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.host.starts_with("unix://")
    }

    /// A client that speaks the engine's version.
    pub async fn client(&self) -> Result<Docker, BackendError> {
        let connect = async {
            let client = match self.host.strip_prefix("unix://") {
                Some(path) => Docker::connect_with_unix(path, CLIENT_SECONDS, API_DEFAULT_VERSION),
                None => Docker::connect_with_http(&self.host, CLIENT_SECONDS, API_DEFAULT_VERSION),
            };
            let client = client.map_err(unreachable)?;
            client.negotiate_version().await.map_err(unreachable)
        };
        self.client.get_or_try_init(|| connect).await.cloned()
    }

    /// Makes a call. The error of the engine itself is the inner one.
    ///
    /// # Errors
    /// [`BackendError::Unreachable`] when it did not come to an end in time.
    pub async fn call<T, F>(
        &self,
        patience: Patience,
        call: impl FnOnce(Docker) -> F,
    ) -> Result<Result<T, bollard::errors::Error>, BackendError>
    where
        F: Future<Output = Result<T, bollard::errors::Error>>,
    {
        let deadline = Instant::now() + patience.limit();
        let lane = match patience {
            Patience::Short => &self.short,
            Patience::Usual | Patience::Long => &self.long,
        };
        let called = async {
            let _place = lane.acquire().await.map_err(unreachable)?;
            let client = self.client().await?;
            Ok(call(client).await)
        };
        let answer = timeout_at(deadline, called).await.map_err(|_| unreachable("no answer in time"))??;
        match answer {
            Err(error) if status(&error).is_none() => Err(unreachable(error)),
            answer => Ok(answer),
        }
    }
}

/// The status that the engine answered with.
pub fn status(error: &bollard::errors::Error) -> Option<u16> {
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The engine's own words.
pub fn refused(error: &bollard::errors::Error) -> BackendError {
    match error {
        bollard::errors::Error::DockerResponseServerError { message, .. } => BackendError::Refused(message.clone()),
        other => unreachable(other),
    }
}

fn unreachable(error: impl Display) -> BackendError {
    BackendError::Unreachable(error.to_string())
}
