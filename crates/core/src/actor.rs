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
    /// A call made with an API key; `user` is the key's maker.
    Api {
        /// The key.
        key: ApiKeyId,
        /// The person the key belongs to, when it belongs to one.
        user: Option<UserId>,
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
