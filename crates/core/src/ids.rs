//! One id type per kind of thing, so that a thread's id never travels where a document's is meant.
//!
//! All ids are UUID version 7: unguessable enough for a URL and ordered by creation, which keeps
//! B-tree inserts at the right edge. On the wire they are hyphenated strings.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        #[schema(value_type = String, format = Uuid)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh id, ordered after every id made before it on this machine.
            #[must_use]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )+};
}

id_types! {
    /// An organization.
    OrgId,
    /// A person's account on this deployment.
    UserId,
    /// A team of an organization.
    TeamId,
    /// A signed-in browser session.
    SessionId,
    /// A person's passkey.
    PasskeyId,
    /// An API key.
    ApiKeyId,
    /// A key with which a reverse proxy signs people in.
    TrustedKeyId,
    /// An organization's connection with its identity provider.
    SsoConnectionId,
    /// A chat.
    ThreadId,
    /// A message of a chat.
    MessageId,
    /// A message that waits for its attachments.
    DeferredSendId,
    /// A library document.
    DocumentId,
    /// Uploaded bytes.
    FileId,
    /// A passage of an indexed file.
    ChunkId,
    /// An organization's access to a model provider.
    CredentialId,
    /// A background job.
    JobId,
    /// A program that a person ran in a sandbox.
    CodeRunId,
    /// An entry of the audit log.
    AuditId,
    /// Something that a person is told.
    NoticeId,
}
