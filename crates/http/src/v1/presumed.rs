//! Who calls a model, presumed while the database is asked.
//!
//! Nearly every call of a key comes from who held it a moment ago. So the model endpoints ask the database two things
//! at the same time: who holds the key now, and whether a call of the one who held it fits the limits. Nothing
//! goes to a provider, and no refusal to the client, before the first answer is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::http::Method;
use tale_core::{Code, Problem};
use tale_identity::api_keys::KeyHolder;
use tale_identity::{Caller, ClientAddress};

use crate::state::App;

/// The routes that call a model.
const CALLS: [&str; 2] = ["/openai/chat/completions", "/anthropic/v1/messages"];

/// Most keys of a generation of [`Holders`]: two megabytes.
const MAX_HOLDERS: usize = 10_000;

/// A key, by its digest, and the organization that its request names.
type Shown = ([u8; 32], Option<String>);

/// What a request shows of its caller.
#[derive(Clone)]
pub(super) struct Credentials {
    pub key: String,
    pub slug: Option<String>,
    pub digest: [u8; 32],
    pub address: ClientAddress,
}

impl Credentials {
    /// Asks the database who it is. `own_words`: a disabled seat is found, for routes that refuse it themselves.
    ///
    /// # Errors
    /// `UNAUTHORIZED`, which counts against the network; what [`tale_identity`] refuses.
    pub(super) async fn prove(&self, app: &App, own_words: bool) -> Result<KeyHolder, Problem> {
        let slug = self.slug.as_deref();
        let found = if own_words {
            app.identity.key_holder(&self.key, slug).await
        } else {
            app.identity.authenticate_key(&self.key, slug).await
        };
        match found {
            Ok(found) => {
                app.limits.known_keys.remember(self.digest);
                if own_words {
                    app.limits.holders.remember(self.shown(), &found.caller);
                }
                Ok(found)
            }
            Err(problem) => {
                app.limits.holders.forget(&self.shown());
                if problem.code == Code::Unauthorized {
                    app.limits.failed_keys.take(self.address.network())?;
                }
                Err(problem)
            }
        }
    }

    fn shown(&self) -> Shown {
        (self.digest, self.slug.clone())
    }
}

/// A caller whom the route has to have proven before anything leaves Tale.
#[derive(Clone)]
pub(super) struct Presumed {
    pub credentials: Credentials,
    pub caller: Arc<Caller>,
}

/// Whom to presume, on routes that prove it: those that call a model.
pub(super) fn presume(app: &App, request: &Request, credentials: &Credentials) -> Option<Presumed> {
    let calls = *request.method() == Method::POST && CALLS.contains(&request.uri().path());
    let caller = calls.then(|| app.limits.holders.of(&credentials.shown())).flatten()?;
    Some(Presumed { credentials: credentials.clone(), caller })
}

/// Who held the keys that called models lately. It may be otherwise by now.
///
/// Two generations of at most [`MAX_HOLDERS`] each: when the younger is full, the older is forgotten.
#[derive(Default)]
pub struct Holders(Mutex<[HashMap<Shown, Arc<Caller>>; 2]>);

impl Holders {
    fn remember(&self, shown: Shown, caller: &Caller) {
        let [young, old] = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if young.get(&shown).is_some_and(|known| **known == *caller) {
            return;
        }
        if young.len() >= MAX_HOLDERS && !young.contains_key(&shown) {
            *old = std::mem::take(young);
        }
        old.remove(&shown);
        young.insert(shown, Arc::new(caller.clone()));
    }

    fn forget(&self, shown: &Shown) {
        for generation in &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            generation.remove(shown);
        }
    }

    fn of(&self, shown: &Shown) -> Option<Arc<Caller>> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.iter().find_map(|generation| generation.get(shown).cloned())
    }
}
