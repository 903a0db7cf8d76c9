//! Share links of chats: their owner's doors and the reader's.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use tale_chat::{Share, SharedChat, SharedMessage, SharedPart};
use tale_core::ids::{ChunkId, DocumentId, ThreadId};
use tale_identity::Capability;
use utoipa::ToSchema;
use utoipa::openapi::schema::Object;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::chat::{owner_of, thread_id};
use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;
use crate::wire::one_of;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read_share_status))
        .routes(routes!(share_chat))
        .routes(routes!(unshare_chat))
        .routes(routes!(read_shared_chat))
}

/// The live link of a chat. Times are epoch milliseconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Share)]
pub struct ShareView {
    /// The last segment of `/dashboard/{org}/chat/shared/{shareToken}`.
    token: String,
    /// When the link was made.
    shared_at: i64,
    /// When its snapshot was taken, last.
    taken_at: i64,
    /// Whether the version on screen has other messages than the snapshot.
    newer: bool,
}

impl From<Share> for ShareView {
    fn from(share: Share) -> Self {
        Self {
            token: share.token,
            shared_at: share.shared_at.timestamp_millis(),
            taken_at: share.taken_at.timestamp_millis(),
            newer: share.newer,
        }
    }
}

/// Whether a chat is shared.
#[derive(Serialize, ToSchema)]
pub struct ShareStatus {
    /// `null` while the chat is private.
    #[schema(required)]
    share: Option<ShareView>,
}

/// Whether the chat is shared, and its link.
#[utoipa::path(get, path = "/api/app/chat/threads/{id}/share-status", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = ShareStatus)))]
async fn read_share_status(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<ShareStatus>, HttpProblem> {
    let share = app.chat.share(&owner_of(&member)?, thread_id(&id)?).await?;
    Ok(Json(ShareStatus { share: share.map(ShareView::from) }))
}

/// How to share.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ShareRequest)]
pub struct ShareBody {
    /// Takes the snapshot of a chat that is shared already anew; its link stays.
    #[serde(default)]
    include_newer: bool,
}

/// Publishes the version on screen for the organization. A chat that is shared keeps its snapshot
/// unless newer messages are asked for.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/share", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), request_body = ShareBody, responses((status = 200, body = ShareView)))]
async fn share_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    body: Body<ShareBody>,
) -> Result<Json<ShareView>, HttpProblem> {
    let owner = owner_of(&member)?;
    let (id, body) = (thread_id(&id)?, body.read()?);
    let share = if body.include_newer {
        app.chat.include_newer(&owner, id).await?
    } else {
        app.chat.publish(&owner, id).await?
    };
    Ok(Json(share.into()))
}

/// Whether a link was ended.
#[derive(Serialize, ToSchema)]
pub struct Unshared {
    /// `false` when the chat was private already.
    ok: bool,
}

/// Stops sharing the chat, also one in the trash. Its link stays dark for ever.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/unshare", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Unshared)))]
async fn unshare_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<Unshared>, HttpProblem> {
    Ok(Json(Unshared { ok: app.chat.unshare(&owner_of(&member)?, thread_id(&id)?).await? }))
}

fn role_words() -> Object {
    one_of(&["user", "assistant"])
}

fn status_words() -> Object {
    one_of(&["complete", "cancelled", "failed"])
}

/// A shared chat, read-only. Times are epoch milliseconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SharedChat)]
pub struct SharedChatView {
    /// Its title when the snapshot was taken; `null` when it had none.
    #[schema(required)]
    title: Option<String>,
    /// The name of the person who shares it.
    shared_by: String,
    /// When the snapshot was taken.
    taken_at: i64,
    messages: Vec<SharedMessageView>,
}

/// A message of a snapshot.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SharedMessage)]
pub struct SharedMessageView {
    #[schema(schema_with = role_words)]
    role: String,
    #[schema(schema_with = status_words)]
    status: String,
    parts: Vec<SharedPartView>,
    created_at: i64,
}

/// A piece of a shared message.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[schema(as = SharedPart)]
enum SharedPartView {
    /// Prose in GitHub-flavoured Markdown. Marks such as `[1]` point to citation parts.
    Text { text: String },
    /// The name of a file on a question. The file itself stays with its owner.
    Attachment { name: String },
    /// What a mark in the text points to.
    #[serde(rename_all = "camelCase")]
    Citation {
        /// The number of the mark.
        number: u32,
        title: String,
        /// The page the passage begins on, from 1, when the format has pages.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        page: Option<u32>,
        /// Absent when the reader may not open the source.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        source: Option<OpenSourceView>,
    },
}

/// A source the reader may open.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenSource)]
pub struct OpenSourceView {
    document_id: DocumentId,
    chunk_id: ChunkId,
    /// The cited passage, whole.
    passage: String,
}

impl From<SharedPart> for SharedPartView {
    fn from(part: SharedPart) -> Self {
        match part {
            SharedPart::Text { text } => Self::Text { text },
            SharedPart::Attachment { name } => Self::Attachment { name },
            SharedPart::Citation { number, title, page, source } => Self::Citation {
                number,
                title,
                page,
                source: source.map(|source| OpenSourceView {
                    document_id: source.document,
                    chunk_id: source.chunk,
                    passage: source.passage,
                }),
            },
        }
    }
}

impl From<SharedMessage> for SharedMessageView {
    fn from(message: SharedMessage) -> Self {
        Self {
            role: message.role,
            status: message.status,
            parts: message.parts.into_iter().map(SharedPartView::from).collect(),
            created_at: message.created_at.timestamp_millis(),
        }
    }
}

impl From<SharedChat> for SharedChatView {
    fn from(chat: SharedChat) -> Self {
        Self {
            title: chat.title,
            shared_by: chat.shared_by,
            taken_at: chat.taken_at.timestamp_millis(),
            messages: chat.messages.into_iter().map(SharedMessageView::from).collect(),
        }
    }
}

/// The chat behind a share link, for every member of its organization.
#[utoipa::path(get, path = "/api/app/chat/shared/{token}", tag = "app: chat", params(("token" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = SharedChatView)))]
async fn read_shared_chat(
    State(app): State<App>,
    member: Member,
    Path(token): Path<String>,
) -> Result<Json<SharedChatView>, HttpProblem> {
    member.0.require(Capability::ChatUse)?;
    Ok(Json(app.chat.shared(&member.0, &token).await?.into()))
}
