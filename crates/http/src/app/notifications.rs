//! What people are told.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::ids::{NoticeId, UserId};
use tale_identity::notices::{self, Kind, Locale, Position, Wishes};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::{Query, page_size};
use crate::state::App;

/// What a person is told.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Notification {
    id: NoticeId,
    /// What happened, as a stable word.
    kind: &'static str,
    /// What happened, in the language that was asked for.
    title: String,
    /// The rest, and what to do about it.
    body: String,
    /// The page that shows more, below `/dashboard/{orgId}/`.
    path: &'static str,
    /// When, in epoch milliseconds.
    created_at: i64,
    /// Whether the person has seen it.
    read: bool,
}

/// A page of notifications, the newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NotificationPage {
    page: Vec<Notification>,
    is_done: bool,
    /// Empty on the last page.
    continue_cursor: String,
}

/// Which notifications are listed.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NotificationQuery {
    /// Only unread ones.
    unread: Option<bool>,
    /// The language of the words: `en` (default), `de` or `fr`.
    locale: Option<String>,
    /// Where the page before ended.
    cursor: Option<String>,
    /// 1 to 100, 25 when absent.
    limit: Option<i64>,
}

/// How many notifications are unread.
#[derive(Serialize, ToSchema)]
struct UnreadNotifications {
    /// 100 stands for 100 and more.
    unread: u32,
}

/// Notifications that were seen.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SeenNotifications {
    /// At most 100; absent = all.
    ids: Option<Vec<NoticeId>>,
}

/// What a person wants to be told.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NotificationWishes {
    /// Kinds that are declined.
    muted: Vec<String>,
    /// Kinds that no mail is wanted about; absent = as before.
    unmailed: Option<Vec<String>>,
}

/// A kind of notification.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NotificationKind {
    /// The word that stands in notifications and in `muted`.
    kind: &'static str,
    /// Whether it cannot be declined.
    always: bool,
    /// Whether the person declined it.
    muted: bool,
    /// Whether mail is sent about it while it is not declined; absent where there is no mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailed: Option<bool>,
}

/// What a person is told of.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NotificationSettings {
    kinds: Vec<NotificationKind>,
}

impl NotificationSettings {
    fn new(wishes: &Wishes, mail: bool) -> Self {
        let kind = |kind: Kind| NotificationKind {
            kind: kind.text(),
            always: kind.always_told(),
            muted: wishes.muted.contains(&kind),
            mailed: mail.then(|| !wishes.unmailed.contains(&kind)),
        };
        Self { kinds: Kind::ALL.map(kind).into() }
    }
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_notifications))
        .routes(routes!(count_unread_notifications))
        .routes(routes!(mark_notifications_read))
        .routes(routes!(read_notification_settings, replace_notification_settings))
}

fn person(caller: &tale_identity::Caller) -> Result<UserId, Problem> {
    caller.user.ok_or_else(|| Problem::internal("a session without a person"))
}

fn kinds(field: &str, words: &[String]) -> Result<Vec<Kind>, Problem> {
    let kind = |text: &String| Kind::parse(text);
    let known: Option<Vec<Kind>> = words.iter().map(kind).collect();
    known.ok_or_else(|| Problem::invalid_field(field, "must name kinds of notifications"))
}

/// What the person is told about their account and the organization, the newest first.
#[utoipa::path(get, path = "/api/app/notifications", tag = "app: notifications", params(("orgId" = Option<String>, Query), NotificationQuery), responses((status = 200, body = NotificationPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 25, "max": 100 }))))]
async fn list_notifications(
    State(app): State<App>,
    Member(caller): Member,
    Query(query): Query<NotificationQuery>,
) -> Result<Json<NotificationPage>, HttpProblem> {
    let locale = match query.locale.as_deref() {
        None => Locale::default(),
        Some(text) => {
            Locale::parse(text).ok_or_else(|| Problem::invalid_query("locale", "must be one of en, de and fr"))?
        }
    };
    let (person, unread) = (person(&caller)?, query.unread.unwrap_or(false));
    let scope = format!("notifications:{}:{person}:{unread}", caller.org);
    let after: Option<Position> = query.cursor.as_deref().map(|cursor| app.cursors.open(&scope, cursor)).transpose()?;
    let limit = page_size(query.limit, 25, 100);
    let (notices, next) = app.identity.notices().list(caller.org, person, unread, after, limit).await?;
    let shown = |notice: notices::Notice| {
        let words = notice.kind.words(locale, &notice.details);
        Notification {
            id: notice.id,
            kind: notice.kind.text(),
            title: words.title,
            body: words.body,
            path: notice.kind.path(),
            created_at: notice.created_at.timestamp_millis(),
            read: notice.read,
        }
    };
    Ok(Json(NotificationPage {
        page: notices.into_iter().map(shown).collect(),
        is_done: next.is_none(),
        continue_cursor: next.map(|position| app.cursors.sign(&scope, &position)).unwrap_or_default(),
    }))
}

/// How many notifications the person has not seen.
#[utoipa::path(get, path = "/api/app/notifications/unread", tag = "app: notifications", params(("orgId" = Option<String>, Query)), responses((status = 200, body = UnreadNotifications)))]
async fn count_unread_notifications(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<UnreadNotifications>, HttpProblem> {
    let unread = app.identity.notices().unread(caller.org, person(&caller)?).await?;
    Ok(Json(UnreadNotifications { unread }))
}

/// Marks notifications as seen. Ids that are not the person's change nothing.
#[utoipa::path(post, path = "/api/app/notifications/read", tag = "app: notifications", params(("orgId" = Option<String>, Query)), request_body = SeenNotifications, responses((status = 204)))]
async fn mark_notifications_read(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<SeenNotifications>,
) -> Result<StatusCode, HttpProblem> {
    let seen = body.read()?;
    let now = app.clock.now();
    app.identity.notices().mark_read(caller.org, person(&caller)?, seen.ids.as_deref(), now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the person is told of.
#[utoipa::path(get, path = "/api/app/notifications/settings", tag = "app: notifications", params(("orgId" = Option<String>, Query)), responses((status = 200, body = NotificationSettings)))]
async fn read_notification_settings(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<NotificationSettings>, HttpProblem> {
    let notices = app.identity.notices();
    let wishes = notices.wishes(person(&caller)?).await?;
    Ok(Json(NotificationSettings::new(&wishes, notices.delivers_mail().await?)))
}

/// Replaces what the person is told of.
#[utoipa::path(put, path = "/api/app/notifications/settings", tag = "app: notifications", params(("orgId" = Option<String>, Query)), request_body = NotificationWishes, responses((status = 200, body = NotificationSettings)))]
async fn replace_notification_settings(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<NotificationWishes>,
) -> Result<Json<NotificationSettings>, HttpProblem> {
    let sent = body.read()?;
    let (notices, person) = (app.identity.notices(), person(&caller)?);
    let muted = kinds("muted", &sent.muted)?;
    let unmailed = match &sent.unmailed {
        Some(words) => kinds("unmailed", words)?,
        None => notices.wishes(person).await?.unmailed,
    };
    let wishes = Wishes { muted, unmailed };
    notices.set_wishes(person, &wishes).await?;
    Ok(Json(NotificationSettings::new(&wishes, notices.delivers_mail().await?)))
}
