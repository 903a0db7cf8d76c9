//! What a search may read. A [`Reach`] is made once from who is asking and is the only source of
//! the organization in every query below it: a request can narrow it, never widen it (SRCH-1, SRCH-3).

use tale_core::Actor;
use tale_core::ids::{ApiKeyId, FileId, OrgId, UserId};

/// The content one reader may find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    org: OrgId,
    user: Option<UserId>,
    api_key: Option<ApiKeyId>,
    uploads: Vec<FileId>,
}

impl Reach {
    /// The library of `org`: what every member and every API key may find. Chat uploads stay out.
    #[must_use]
    pub fn library(org: OrgId, user: Option<UserId>) -> Self {
        Self { org, user, api_key: None, uploads: Vec::new() }
    }

    /// The library and `uploads` of chats which the reader must already be allowed to read.
    #[must_use]
    pub fn chat(org: OrgId, user: Option<UserId>, uploads: impl IntoIterator<Item = FileId>) -> Self {
        Self { org, user, api_key: None, uploads: uploads.into_iter().collect() }
    }

    /// The organization that is read.
    #[must_use]
    pub fn org(&self) -> OrgId {
        self.org
    }

    /// The same, asked with an API key, if there is one.
    #[must_use]
    pub fn asked_with(self, api_key: Option<ApiKeyId>) -> Self {
        Self { api_key, ..self }
    }

    /// Who asks, for the bill (SRCH-12).
    #[must_use]
    pub fn payer(&self) -> Actor {
        match (self.api_key, self.user) {
            (Some(key), user) => Actor::Api { key, user, subject: user },
            (None, Some(id)) => Actor::User { id },
            (None, None) => Actor::System,
        }
    }

    /// The chat uploads within reach as plain ids, for binding to a statement.
    pub(crate) fn upload_ids(&self) -> Vec<uuid::Uuid> {
        self.uploads.iter().map(|file| file.0).collect()
    }
}
