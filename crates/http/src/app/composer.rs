//! What the composer needs: models, the person's pick, attachments; and the palette's search.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::ids::{DocumentId, FileId, MessageId, ThreadId};
use tale_core::{Code, Problem};
use tale_governance::policies::ModelRules;
use tale_identity::{Caller, Capability};
use tale_knowledge::contents::MAX_TEXT_CHARS;
use tale_knowledge::documents::DocumentQuery;
use tale_knowledge::files::{Attachment, AttachmentState};
use tale_models::{ModelEntry, TranscriptionState, catalog};
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::chat::owner_of;
use crate::app::deferred::file_id;
use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;
use crate::wire::one_of;

/// Rows per kind in the palette.
const FOUND: u32 = 8;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read_composer))
        .routes(routes!(set_chat_pick))
        .routes(routes!(read_attachment))
        .routes(routes!(retry_attachment))
        .routes(routes!(read_attachment_text))
        .routes(routes!(search_everything))
}

fn mode_words() -> Object {
    one_of(&["keywords", "hybrid"])
}

fn state_words() -> Object {
    one_of(&["processing", "ready", "failed"])
}

fn transcription_words() -> Object {
    one_of(&["ready", "missing", "pin-unavailable"])
}

fn scope_words() -> Object {
    one_of(&["all", "chats"])
}

/// What a model can do.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatModelCapabilities)]
pub struct CapabilitiesView {
    tools: bool,
    vision: bool,
    reasoning: bool,
}

/// A model that may be picked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChatModel)]
pub struct ModelView {
    id: String,
    provider_slug: String,
    provider_name: String,
    display_name: String,
    context_window: u64,
    #[schema(required)]
    max_output_tokens: Option<u32>,
    capabilities: CapabilitiesView,
    /// Whether it is the demo, which quotes documents and is no language model.
    demo: bool,
}

impl From<ModelEntry> for ModelView {
    fn from(entry: ModelEntry) -> Self {
        Self {
            display_name: entry.display_name.clone(),
            id: entry.id,
            provider_slug: entry.provider_slug,
            provider_name: entry.provider_name,
            context_window: u64::from(entry.context_window),
            max_output_tokens: entry.max_output_tokens,
            capabilities: CapabilitiesView {
                tools: entry.capabilities.tools,
                vision: entry.capabilities.vision,
                reasoning: entry.capabilities.reasoning,
            },
            demo: entry.demo,
        }
    }
}

/// A picked model.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChatPick)]
pub struct PickView {
    model: String,
    provider_slug: String,
}

/// What the composer needs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Composer)]
pub struct ComposerView {
    models: Vec<ModelView>,
    /// Whether there are models and the policy `model_access` leaves the person none of them.
    models_denied: bool,
    can_manage_providers: bool,
    /// `hybrid`, or `keywords` while no embedding model is set.
    #[schema(schema_with = mode_words)]
    search_mode: &'static str,
    documents_count: u64,
    /// Whether recordings can be transcribed: `ready`, `missing` without a transcription model, or
    /// `pin-unavailable` when the chosen one cannot be used any more or the choice cannot be read.
    #[schema(schema_with = transcription_words)]
    transcription: &'static str,
    /// Subscriptions of the organization, which chats do not use.
    subscriptions: Vec<LeftOut>,
    /// The model used last; `null` is Auto.
    #[schema(required)]
    pick: Option<PickView>,
}

/// A subscription that no chat uses: it acts in tasks and automations alone.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChatSubscription)]
pub struct LeftOut {
    name: String,
    provider_name: String,
}

/// Models, the person's pick and the state of search.
#[utoipa::path(get, path = "/api/app/chat/composer", tag = "app: chat", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ComposerView)))]
async fn read_composer(State(app): State<App>, member: Member) -> Result<Json<ComposerView>, HttpProblem> {
    let owner = owner_of(&member)?;
    let none = DocumentQuery::default();
    let (models, pick, count, embedding, transcription, subscriptions) = futures::join!(
        permitted(&app, &member.0),
        app.chat.pick(&owner),
        app.knowledge.count_documents(&member.0, &none),
        app.models.embedding(owner.org),
        app.models.transcription_state(owner.org),
        app.models.subscriptions(owner.org),
    );
    let pick = match pick? {
        Some((Some(model), Some(provider_slug))) => Some(PickView { model, provider_slug }),
        _ => None,
    };
    let (models, models_denied) = models?;
    Ok(Json(ComposerView {
        models: models.into_iter().map(ModelView::from).collect(),
        models_denied,
        can_manage_providers: member.0.can(Capability::ProvidersManage),
        search_mode: if embedding?.is_some() { "hybrid" } else { "keywords" },
        documents_count: count?,
        transcription: match transcription? {
            TranscriptionState::Usable(_) => "ready",
            TranscriptionState::Missing => "missing",
            TranscriptionState::PinUnavailable(_) | TranscriptionState::Unreadable(_) => "pin-unavailable",
        },
        subscriptions: subscriptions?
            .into_iter()
            .map(|one| LeftOut {
                provider_name: catalog::shipped_provider(&one.provider_slug)
                    .map_or(one.provider_slug, |provider| provider.display_name.clone()),
                name: one.name,
            })
            .collect(),
        pick,
    }))
}

/// The models that the caller may use, and whether it is the policy that leaves none. While it cannot be read
/// it leaves none: chats stay readable, and a message is refused with the reason.
async fn permitted(app: &App, caller: &Caller) -> Result<(Vec<ModelEntry>, bool), Problem> {
    let rules = match app.models.rules(caller.org, caller.person()).await {
        Ok(rules) => rules,
        Err(problem) if problem.code == Code::PolicyUnreadable => return Ok((Vec::new(), true)),
        Err(problem) => return Err(problem),
    };
    let models = app.models.chat_models(caller.org, &rules).await?;
    let denied = models.is_empty() && !app.models.chat_models(caller.org, &ModelRules::none()).await?.is_empty();
    Ok((models, denied))
}

/// A pick; `auto` lets Tale choose per message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = ChatPickRequest)]
pub struct PickBody {
    model: String,
    provider_slug: Option<String>,
}

/// Remembers the person's model for the next fresh chat.
#[utoipa::path(put, path = "/api/app/chat/pick", tag = "app: chat", params(("orgId" = Option<String>, Query)), request_body = PickBody, responses((status = 204)))]
async fn set_chat_pick(
    State(app): State<App>,
    member: Member,
    body: Body<PickBody>,
) -> Result<StatusCode, HttpProblem> {
    let owner = owner_of(&member)?;
    let body = body.read()?;
    match body.provider_slug {
        None if body.model == "auto" => app.chat.set_pick(&owner, None).await?,
        provider => {
            let rules = app.models.rules(owner.org, member.0.person()).await?;
            let model = app.models.resolve_chat(owner.org, &rules, &body.model, provider.as_deref()).await?;
            app.chat.set_pick(&owner, Some((&model.model_id, &model.provider_slug))).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// A file on its way into a message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AttachmentStatus)]
pub struct AttachmentView {
    file_id: FileId,
    name: String,
    media_type: String,
    size_bytes: u64,
    /// `processing`, `ready` or `failed`.
    #[schema(schema_with = state_words)]
    state: &'static str,
    /// Whether it is a recording, whose text is a transcript.
    recording: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Present when reading a failed file again may help.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    can_retry: bool,
}

impl From<Attachment> for AttachmentView {
    fn from(file: Attachment) -> Self {
        Self {
            file_id: file.file_id,
            name: file.name,
            media_type: file.media_type,
            size_bytes: file.size,
            state: match file.state {
                AttachmentState::Processing => "processing",
                AttachmentState::Ready => "ready",
                AttachmentState::Failed => "failed",
            },
            recording: file.recording,
            error: file.error,
            can_retry: file.can_retry,
        }
    }
}

/// How far an attachment is.
#[utoipa::path(get, path = "/api/app/chat/attachments/{fileId}", tag = "app: chat", params(("fileId" = FileId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = AttachmentView)))]
async fn read_attachment(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<AttachmentView>, HttpProblem> {
    member.0.require(Capability::ChatUse)?;
    Ok(Json(app.knowledge.attachment(&member.0, file_id(&id)?).await?.into()))
}

/// Has an attachment read again that could not be read.
#[utoipa::path(post, path = "/api/app/chat/attachments/{fileId}/retry", tag = "app: chat", params(("fileId" = FileId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = AttachmentView)))]
async fn retry_attachment(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<AttachmentView>, HttpProblem> {
    member.0.require(Capability::ChatUse)?;
    Ok(Json(app.knowledge.retry_attachment(&member.0, file_id(&id)?).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct TextParameters {
    /// Where the stretch begins, in Unicode scalar values; 0 when absent.
    offset: Option<u64>,
}

/// A stretch of an attachment's text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AttachmentText)]
pub struct AttachmentTextView {
    text: String,
    /// In Unicode scalar values.
    total_length: u64,
    /// Where the next stretch begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_offset: Option<u64>,
}

/// The text of an attachment; of a recording, its transcript.
#[utoipa::path(get, path = "/api/app/chat/attachments/{fileId}/text", tag = "app: chat", params(("fileId" = FileId, Path), ("orgId" = Option<String>, Query), TextParameters), responses((status = 200, body = AttachmentTextView)))]
async fn read_attachment_text(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    Query(query): Query<TextParameters>,
) -> Result<Json<AttachmentTextView>, HttpProblem> {
    member.0.require(Capability::ChatUse)?;
    let id = file_id(&id)?;
    let part = app.knowledge.attachment_text(&member.0, id, query.offset.unwrap_or(0), MAX_TEXT_CHARS).await?;
    Ok(Json(AttachmentTextView { text: part.text, total_length: part.total_length, next_offset: part.next_offset }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SearchParameters {
    /// What is looked for, at most 200 characters.
    q: String,
    /// `all` (the default) or `chats`.
    #[param(schema_with = scope_words)]
    scope: Option<String>,
}

/// A chat in the palette.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FoundThread)]
pub struct FoundThreadView {
    id: ThreadId,
    #[schema(required)]
    title: Option<String>,
    /// Words around the match, the match between « and ».
    #[schema(required)]
    snippet: Option<String>,
    /// The message that matches, when it is not the title.
    #[schema(required)]
    message_id: Option<MessageId>,
    archived: bool,
    updated_at: i64,
}

/// A document in the palette.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FoundDocument)]
pub struct FoundDocumentView {
    id: DocumentId,
    title: String,
    extension: String,
}

/// What the palette shows.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchResults)]
pub struct FoundView {
    threads: Vec<FoundThreadView>,
    documents: Vec<FoundDocumentView>,
}

/// Finds chats by their words and documents by their title.
#[utoipa::path(get, path = "/api/app/search", tag = "app: search", params(("orgId" = Option<String>, Query), SearchParameters), responses((status = 200, body = FoundView)))]
async fn search_everything(
    State(app): State<App>,
    member: Member,
    Query(query): Query<SearchParameters>,
) -> Result<Json<FoundView>, HttpProblem> {
    let owner = owner_of(&member)?;
    if query.q.chars().count() > 200 {
        return Err(Problem::invalid_query("q", "must be at most 200 characters").into());
    }
    let everything = match query.scope.as_deref() {
        None | Some("all") => true,
        Some("chats") => false,
        Some(_) => return Err(Problem::invalid_query("scope", "must be one of \"all\", \"chats\"").into()),
    };
    let threads = app.chat.search(&owner, &query.q, FOUND * 2).await?;
    let documents = if everything {
        let filter = DocumentQuery { search: Some(query.q.trim().to_owned()), ..DocumentQuery::default() };
        app.knowledge.list_documents(&member.0, &filter, None, FOUND).await?.rows
    } else {
        Vec::new()
    };
    Ok(Json(FoundView {
        threads: threads
            .into_iter()
            .map(|found| FoundThreadView {
                id: found.id,
                title: found.title,
                snippet: found.snippet,
                message_id: found.message,
                archived: found.archived,
                updated_at: found.updated_at.timestamp_millis(),
            })
            .collect(),
        documents: documents
            .into_iter()
            .map(|document| FoundDocumentView { id: document.id, title: document.title, extension: document.extension })
            .collect(),
    }))
}
