//! Who did something, as the audit log records it.

use serde::{Deserialize, Serialize};

use crate::ids::{ApiKeyId, UserId};

/// The author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Actor {
    /// A signed-in person.
    User {
        /// The person.
        id: UserId,
    },
    /// A call made with an API key, which is its maker's act (KEY-11).
    Api {
        /// The key.
        key: ApiKeyId,
        /// Who made the key, while they have an account.
        user: Option<UserId>,
        /// The person whom the key acts for; `None` for a key of a team or an organization.
        subject: Option<UserId>,
    },
    /// The platform itself.
    System,
}

impl Actor {
    /// The person behind the act, when there is one.
    #[must_use]
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::User { id } => Some(*id),
            Self::Api { user, .. } => *user,
            Self::System => None,
        }
    }

    /// The stored word for the kind of actor.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Api { .. } => "api",
            Self::System => "system",
        }
    }
}
