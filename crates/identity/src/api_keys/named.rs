//! The keys that rules name: those that work, and what became of those that do not (POL-11, KEY-3, KEY-15).

use tale_core::Problem;
use tale_core::ids::ApiKeyId;

use crate::caller::Caller;
use crate::permissions::Capability;
use crate::service::Identity;
use crate::store;

/// Most keys that are listed.
const MAX_NAMED: i64 = 1_000;

/// A key that rules can name, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName {
    /// The key.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// The name of the member, the team or the organization.
    pub holder: String,
}

/// What became of a key that does not work any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    /// Its time is over.
    Expired,
    /// The seat of its holder is disabled.
    Disabled,
    /// It was revoked, and this organization recorded that.
    Revoked,
    /// Its holder left.
    FormerMember,
    /// This organization knew it, and nothing of it is stored any more.
    Unavailable,
    /// This organization never knew it.
    Unknown,
}

impl KeyStatus {
    fn read(text: &str) -> Self {
        match text {
            "expired" => Self::Expired,
            "disabled" => Self::Disabled,
            "revoked" => Self::Revoked,
            "former-member" => Self::FormerMember,
            "unavailable" => Self::Unavailable,
            _ => Self::Unknown,
        }
    }
}

/// A key that a rule names and that does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneKey {
    /// The key.
    pub id: ApiKeyId,
    /// Its name, when this organization knew it and it is still stored.
    pub name: Option<String>,
    /// What became of it.
    pub status: KeyStatus,
}

impl Identity {
    /// The keys that work in the caller's organization, by holder and name (POL-11, KEY-3).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right to write policies.
    pub async fn working_keys(&self, caller: &Caller) -> Result<Vec<KeyName>, Problem> {
        caller.require(Capability::GovernanceManage)?;
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::working_in(&mut conn, caller.org, self.now(), MAX_NAMED).await?;
        Ok(rows.into_iter().map(|row| KeyName { id: row.id, name: row.name, holder: row.holder }).collect())
    }

    /// The keys that rules of the caller's organization name and that do not work (KEY-15).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right to write policies.
    pub async fn gone_keys(&self, caller: &Caller) -> Result<Vec<GoneKey>, Problem> {
        caller.require(Capability::GovernanceManage)?;
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::gone_in(&mut conn, caller.org, self.now(), MAX_NAMED).await?;
        let gone = |(id, name, status): (ApiKeyId, Option<String>, String)| GoneKey {
            id,
            name,
            status: KeyStatus::read(&status),
        };
        Ok(rows.into_iter().map(gone).collect())
    }
}
