//! Whether a directory provisions an organization, and the token it does that with (SCIM-1).

use std::time::Duration;

use chrono::{DateTime, Utc};
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_db::hints::Topic;

use crate::caller::Caller;
use crate::keys;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// How often a use of the token is noted at most.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// What an organization lets a directory do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provisioning {
    /// Whether its token works.
    pub enabled: bool,
    /// The beginning of the token, when there is one.
    pub token: Option<String>,
    /// When the token was made.
    pub token_made_at: Option<DateTime<Utc>>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A token just made, which is shown once.
#[derive(Clone)]
pub struct NewToken {
    /// The whole secret. Kept nowhere.
    pub secret: String,
}

/// The directory of an organization, which a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory {
    /// The organization.
    pub org: OrgId,
    /// The role of new members.
    pub default_role: Role,
}

impl Identity {
    /// The settings.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn provisioning(&self, caller: &Caller) -> Result<Provisioning, Problem> {
        caller.require(Capability::SignInManage)?;
        let mut conn = self.0.db.acquire().await?;
        let row = store::scim::settings(&mut conn, caller.org).await?;
        Ok(row.map_or(Provisioning { enabled: false, token: None, token_made_at: None, last_used_at: None }, |row| {
            Provisioning {
                enabled: row.enabled,
                token: row.first_chars.map(|first| format!("{first}…")),
                token_made_at: row.token_made_at,
                last_used_at: row.last_used_at,
            }
        }))
    }

    /// Switches provisioning on or off. Off refuses the token and keeps it.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn set_provisioning(&self, caller: &Caller, enabled: bool) -> Result<(), Problem> {
        caller.require(Capability::SignInManage)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::SignInManage).await?;
        if !store::scim::set_enabled(&mut tx, caller.org, enabled).await? {
            return Ok(());
        }
        let change =
            Change::organization("scim.updated").on("organization", caller.org).changed("enabled", !enabled, enabled);
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        // Whether teams of the directory can be changed here follows from it.
        trail::hint(&mut tx, caller.org, Topic::Teams, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes a token. It takes the place of the one before, which is over at once.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn make_provisioning_token(&self, caller: &Caller) -> Result<NewToken, Problem> {
        caller.require(Capability::SignInManage)?;
        let key = keys::provisioning();
        let now = self.now();
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::SignInManage).await?;
        let replaced = store::scim::set_token(&mut tx, caller.org, &key.hash, &key.first, now).await?;
        let change = Change::organization("scim.token_created")
            .on("organization", caller.org)
            .with("token", key.first.as_str())
            .with("replaced", replaced);
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(NewToken { secret: key.secret })
    }

    /// The directory of a token. One look-up by index; a malformed token costs none.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for a token that is none, `FORBIDDEN` while provisioning is off.
    pub async fn directory(&self, token: &str) -> Result<Directory, Problem> {
        let unknown =
            || Problem::new(Code::Unauthorized, "Send the provisioning token as `Authorization: Bearer <token>`.");
        let hash = keys::provisioning_digest(token).ok_or_else(unknown)?;
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let row = store::scim::by_token(&mut conn, &hash).await?.ok_or_else(unknown)?;
        if !row.enabled {
            return Err(Problem::new(
                Code::Forbidden,
                "Provisioning is switched off in the settings of the organization.",
            ));
        }
        if row.last_used_at.is_none_or(|seen| now >= seen + NOTE_EVERY) {
            store::scim::touch(&mut conn, row.org_id, row.last_used_at, now).await?;
        }
        Ok(Directory { org: row.org_id, default_role: row.default_role })
    }
}
