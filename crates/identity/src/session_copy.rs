//! Copies of a session in a signed cookie, so that a request need not read the session (DCF-192).
//!
//! A copy stands for the session beside its token: it is signed together with the token, lives for
//! seconds, and whoever sends it alone has nothing. It is not believed when the request has something
//! to write (a use that is due to be noted, another organization), so the idle window stays as exact as
//! without it. The membership is read on every request.
//!
//! The database announces on the channel `tale_sessions` whose session ended, by whatever statement
//! (a trigger). A process that hears it stops believing the copies of that person for longer than any of
//! them lives; a process that does not hear the channel yet, or lost it in between, believes none from
//! before it could hear.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tale_core::crypto::{constant_time_eq, hmac_sha256, sha256};
use tale_core::ids::{OrgId, SessionId, UserId};
use tale_db::channels::{ChannelEvent, ChannelListener};

use crate::caller::SessionPrincipal;
use crate::config::IdentityConfig;
use crate::service::Identity;
use crate::sessions::note_every;

/// Where the database tells whose session ended.
pub const CHANNEL: &str = "tale_sessions";

/// Longest copy that is made or looked at, in bytes: browsers keep 4 KiB of a cookie.
const MAX_BYTES: usize = 3_072;

/// How far the clocks of two processes may be apart, and how long a copy may take from the read of its
/// session to the browser.
const SLACK: Duration = Duration::from_secs(60);

/// Most people whose copies are refused one by one; beyond that all copies made so far are.
const MAX_PEOPLE: usize = 50_000;

/// A copy for the browser.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionCopy {
    /// The cookie's value.
    pub value: String,
    /// How long it is believed.
    pub max_age: Duration,
}

/// What makes and judges copies in this process.
pub(crate) struct Copies {
    /// The signing key and the life of a copy; `None` = there are no copies.
    made: Option<([u8; 32], Duration)>,
    heard: Mutex<Heard>,
}

/// What the feed said. Growth: a person per session that ended within a copy's life.
#[derive(Default)]
struct Heard {
    /// Copies made before are not believed; `None` = the feed was never heard.
    since: Option<DateTime<Utc>>,
    /// Until when the copies of a person are not believed.
    ended: HashMap<UserId, DateTime<Utc>>,
}

/// Times in microseconds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    session: SessionId,
    user: UserId,
    name: String,
    email: String,
    org: Option<OrgId>,
    created: i64,
    used: i64,
    expires: i64,
    /// Seconds that the session may be idle.
    idle: Option<u64>,
    copied: i64,
}

/// The life of a copy, held to a quarter of the idle window.
fn held(life: Duration, window: Option<Duration>) -> Duration {
    window.map_or(life, |window| life.min(window / 4))
}

impl Copies {
    pub(crate) fn new(config: &IdentityConfig) -> Self {
        let life = config.session_cookie_cache.map(|life| held(life, config.session_idle_timeout));
        let made = life.zip(config.session_secret.as_ref()).map(|(life, secret)| {
            (hmac_sha256(secret.expose_secret().as_bytes(), b"tale: copies of sessions in cookies"), life)
        });
        Self { made, heard: Mutex::default() }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, event: ChannelEvent, now: DateTime<Utc>) {
        let Some((_, life)) = self.made else { return };
        let mut heard = self.heard();
        match event {
            ChannelEvent::Resync => heard.since = Some(now),
            ChannelEvent::Notification { payload, .. } => {
                let Ok(user) = payload.parse::<UserId>() else { return };
                if heard.ended.len() >= MAX_PEOPLE {
                    heard.ended.retain(|_, until| *until > now);
                }
                if heard.ended.len() >= MAX_PEOPLE {
                    heard.ended.clear();
                    heard.since = Some(now + SLACK);
                }
                heard.ended.insert(user, now + life + SLACK);
            }
        }
    }
}

fn signature(key: &[u8; 32], token: &str, content: &str) -> [u8; 32] {
    let mut message = sha256(token.as_bytes()).to_vec();
    message.extend_from_slice(content.as_bytes());
    hmac_sha256(key, &message)
}

impl Identity {
    /// Whether sessions are copied into cookies.
    #[must_use]
    pub fn copies_sessions(&self) -> bool {
        self.0.copies.made.is_some()
    }

    /// A copy of a session that was just read, for the cookie beside its `token`. `None` when
    /// sessions are not copied; a confined one never is, nor one whose person has to choose another password.
    #[must_use]
    pub fn copy_session(&self, principal: &SessionPrincipal, token: &str) -> Option<SessionCopy> {
        let (key, life) =
            self.0.copies.made.as_ref().filter(|_| !principal.confined && principal.password_due.is_none())?;
        let content = Content {
            session: principal.session,
            user: principal.user,
            name: principal.name.clone(),
            email: principal.email.clone(),
            org: principal.active_org,
            created: principal.created_at.timestamp_micros(),
            used: principal.last_used_at.timestamp_micros(),
            expires: principal.expires_at.timestamp_micros(),
            idle: principal.idle_window.map(|window| window.as_secs()),
            copied: self.now().timestamp_micros(),
        };
        let content = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&content).ok()?);
        let value = format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature(key, token, &content)));
        (value.len() <= MAX_BYTES).then_some(SessionCopy { value, max_age: held(*life, principal.idle_window) })
    }

    /// The session of a copy, when it can stand for the one of `token` in this request: `background` as
    /// in [`Identity::authenticate_session`], `org` the organization that the request names. `None`:
    /// read the session.
    #[must_use]
    pub fn session_of_copy(
        &self,
        token: &str,
        copy: &str,
        background: bool,
        org: Option<OrgId>,
    ) -> Option<SessionPrincipal> {
        let (key, life) = self.0.copies.made.as_ref()?;
        if copy.len() > MAX_BYTES {
            return None;
        }
        let (encoded, given) = copy.split_once('.')?;
        let given = URL_SAFE_NO_PAD.decode(given).ok()?;
        if !constant_time_eq(&given, &signature(key, token, encoded)) {
            return None;
        }
        let content: Content = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
        let time = DateTime::from_timestamp_micros;
        let principal = SessionPrincipal {
            session: content.session,
            user: content.user,
            name: content.name,
            email: content.email,
            active_org: content.org,
            created_at: time(content.created)?,
            last_used_at: time(content.used)?,
            expires_at: time(content.expires)?,
            background,
            idle_window: content.idle.map(Duration::from_secs),
            confined: false,
            password_due: None,
        };
        let (now, copied) = (self.now(), time(content.copied)?);
        let window = principal.idle_window;
        let over = now >= copied + held(*life, window)
            || copied > now + SLACK
            || now >= principal.expires_at
            || window.is_some_and(|window| now >= principal.last_used_at + window);
        let writes = !background
            && (now >= principal.last_used_at + note_every(window) || org.is_some_and(|org| content.org != Some(org)));
        let heard = self.0.copies.heard();
        let ended = heard.since.is_none_or(|since| copied < since)
            || heard.ended.get(&principal.user).is_some_and(|until| now < *until);
        (!over && !writes && !ended).then_some(principal)
    }

    /// Hears whose sessions end, for as long as it is awaited; nothing when sessions are not copied.
    /// Growth: one database connection.
    pub async fn follow_ended_sessions(&self) {
        if !self.copies_sessions() {
            return;
        }
        let mut feed = ChannelListener::new(&self.0.db, &[CHANNEL]);
        loop {
            let event = feed.next().await;
            self.0.copies.hear(event, self.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_copy_lives_a_quarter_of_the_idle_window_at_most() {
        let life = |cache: Option<u64>, idle: Option<u64>| {
            let config = IdentityConfig {
                session_cookie_cache: cache.map(Duration::from_secs),
                session_idle_timeout: idle.map(|minutes| Duration::from_secs(minutes * 60)),
                session_secret: Some("secret".into()),
                ..IdentityConfig::default()
            };
            Copies::new(&config).made.map(|(_, life)| life.as_secs())
        };
        assert_eq!(life(Some(300), Some(4)), Some(60));
        assert_eq!(life(Some(30), Some(4)), Some(30));
        assert_eq!((life(Some(300), None), life(None, Some(4))), (Some(300), None));
    }

    #[test]
    fn what_is_remembered_of_ended_sessions_is_bounded() {
        let config = IdentityConfig {
            session_cookie_cache: Some(Duration::from_secs(300)),
            session_secret: Some("secret".into()),
            ..IdentityConfig::default()
        };
        let copies = Copies::new(&config);
        let ended = || ChannelEvent::Notification { channel: CHANNEL.into(), payload: UserId::new().to_string() };
        for _ in 0..MAX_PEOPLE {
            copies.hear(ended(), at(0));
        }
        copies.hear(ended(), at(1));
        let seen = |heard: &Heard| (heard.ended.len(), heard.since);
        assert_eq!(seen(&copies.heard()), (1, Some(at(1) + SLACK)));
        for _ in 1..MAX_PEOPLE {
            copies.hear(ended(), at(2));
        }
        copies.hear(ended(), at(400));
        assert_eq!(copies.heard().ended.len(), 1, "what is over is forgotten");
    }
}
