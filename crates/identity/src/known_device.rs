//! Devices that a person signed in on before (LCK-11). Their wrong attempts have a counter of their own, and the counters of
//! networks and of all networks together do not stop them: a stranger who guesses at an account blocks whoever comes
//! from elsewhere, but not its owner. All known devices of an account together are counted too, because somebody who knows
//! the password can have many.
//!
//! What makes a device known is a cookie that is given with a sign-in by password or passkey, encrypted for one account and
//! the password it had. It opens nothing: it only says which counter counts. Sign-ins that somebody else vouches for
//! give none, or whoever runs an identity provider could guess at a password with as many devices as they like.

use std::time::Duration;

use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tale_core::crypto::random_token;
use tale_core::ids::UserId;

use crate::service::{Device, Identity};
use crate::sessions::Method;
use crate::store::accounts::AccountRow;
use crate::store::attempts::DEVICE;

/// How long a device is known after its last sign-in.
pub const KNOWN_FOR: Duration = Duration::from_secs(180 * 24 * 3600);
/// What the cookie is encrypted for.
const CONTEXT: &str = "known_device";
/// Longest cookie that is looked at.
const MAX_MARK: usize = 1_024;

/// What stands in the cookie.
#[derive(Serialize, Deserialize)]
struct Mark {
    user: UserId,
    device: String,
    until: DateTime<Utc>,
    /// When the password was set, in microseconds since 1970.
    password: Option<i64>,
}

impl Identity {
    fn mark(&self, user: UserId, password_set: Option<DateTime<Utc>>, device: &Device) -> Option<Mark> {
        let sealed = device.mark.as_ref().map(ExposeSecret::expose_secret).filter(|text| text.len() <= MAX_MARK)?;
        let mark: Mark = serde_json::from_str(&self.0.cipher.open(CONTEXT, sealed).ok()?).ok()?;
        let fits = mark.user == user
            && mark.password == password_set.map(|at| at.timestamp_micros())
            && self.now() < mark.until;
        fits.then_some(mark)
    }

    /// What the attempts of a device at an account are counted under.
    pub(crate) fn counted_under(&self, account: Option<&AccountRow>, device: &Device) -> String {
        match account.and_then(|account| self.mark(account.id, account.password_changed_at, device)) {
            Some(mark) => format!("{DEVICE}{}", mark.device),
            None => self.pseudonym(&device.client.network()),
        }
    }

    /// The cookie of a device on which a person just signed in; none for sign-ins that somebody else vouches for.
    pub(crate) fn mark_for(
        &self,
        user: UserId,
        password_set: Option<DateTime<Utc>>,
        method: Method,
        device: &Device,
    ) -> Option<String> {
        if !matches!(method, Method::Password | Method::Passkey) {
            return None;
        }
        let known = self.mark(user, password_set, device).map(|mark| mark.device);
        let mark = Mark {
            user,
            device: known.unwrap_or_else(|| random_token(12)),
            until: self.now() + KNOWN_FOR,
            password: password_set.map(|at| at.timestamp_micros()),
        };
        self.0.cipher.seal(CONTEXT, &serde_json::to_string(&mark).ok()?).ok()
    }
}
