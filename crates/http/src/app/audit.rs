//! The audit log (spec 95, section 13).

use std::fmt::Write;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Days, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tale_core::Problem;
use tale_core::crypto::hex_of;
use tale_core::ids::OrgId;
use tale_governance::audit::CATEGORIES;
use tale_governance::audit::log::{Entry, Filter, Format, Position, Verification};
use tale_governance::audit::verify::Break;
use tale_identity::Capability;
use tale_identity::sign_in_blocks::BlockKind;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::{Query, page_size};
use crate::state::App;
use crate::v1::holder;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_audit_entries))
        .routes(routes!(export_audit_log))
        .routes(routes!(verify_audit_log))
        .routes(routes!(read_audit_status))
        .routes(routes!(read_audit_activity))
        .routes(routes!(list_sign_in_blocks))
}

/// Latest time that a date in a browser can be, in milliseconds (AUD-16).
const MAX_TIME: i64 = 8_640_000_000_000_000;

/// Which entries.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// Only those of this area: `auth`, `member`, `data`, `connector`, `automation`, `security`, `admin`, `ai`, `skill`,
    /// `agent` or `provider`.
    category: Option<String>,
    /// Only failed and denied ones.
    unsuccessful: Option<bool>,
    /// Only those at this time and later, in milliseconds since 1970.
    from: Option<i64>,
    /// Only those at this time and earlier, likewise.
    to: Option<i64>,
    /// Continues a list.
    cursor: Option<String>,
    /// Rows per page, 1–200 (50).
    limit: Option<i64>,
}

impl AuditQuery {
    fn filter(&self) -> Result<Filter, Problem> {
        filter(self.category.as_deref(), self.unsuccessful, self.from, self.to)
    }
}

fn filter(
    category: Option<&str>,
    unsuccessful: Option<bool>,
    from: Option<i64>,
    to: Option<i64>,
) -> Result<Filter, Problem> {
    if category.is_some_and(|category| !CATEGORIES.contains(&category)) {
        return Err(Problem::invalid_query("category", &format!("must be one of {}", CATEGORIES.join(", "))));
    }
    let time = |name: &str, ms: Option<i64>| match ms {
        None => Ok(None),
        Some(ms) if (1..=MAX_TIME).contains(&ms) => {
            Ok(Some(DateTime::from_timestamp_millis(ms).unwrap_or(DateTime::<Utc>::MAX_UTC)))
        }
        Some(_) => Err(Problem::invalid_query(name, "must be a time in whole milliseconds since 1970")),
    };
    Ok(Filter {
        category: category.map(str::to_owned),
        unsuccessful: unsuccessful.unwrap_or(false),
        from: time("from", from)?,
        to: time("to", to)?,
    })
}

/// An entry of the audit log. What it does not have is left out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditLogEntry {
    #[schema(format = Uuid)]
    id: Uuid,
    /// When, in milliseconds since 1970.
    timestamp: i64,
    /// What was done: a stable name such as `document.delete`.
    action: String,
    category: String,
    /// `success`, `failure` or `denied`.
    status: String,
    /// `user`, `api` or `system`.
    actor_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = Uuid)]
    actor_id: Option<Uuid>,
    /// The address of the account as it was then, or the one that a failed sign-in named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_email: Option<String>,
    /// The keyed hash of that address, in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_email_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_role: Option<String>,
    /// The network of a failed sign-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_ip: Option<String>,
    /// The keyed hash of that network, in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor_ip_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = Uuid)]
    api_key_id: Option<Uuid>,
    resource_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resource_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resource_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error_message: Option<String>,
    /// Everything that was recorded about it.
    #[schema(value_type = Object)]
    details: Value,
    /// Its place in the chain; absent until it is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sequence: Option<u64>,
    /// Its hash in the chain, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    integrity_hash: Option<String>,
}

impl From<Entry> for AuditLogEntry {
    fn from(entry: Entry) -> Self {
        let (resource_name, error_message) =
            (entry.resource_name().map(str::to_owned), entry.error_message().map(str::to_owned));
        let (record, seal) = (entry.record, entry.seal);
        Self {
            id: record.id,
            timestamp: record.timestamp,
            action: record.action.into_owned(),
            category: record.category.into_owned(),
            status: record.status.into_owned(),
            actor_type: record.actor_type.into_owned(),
            actor_id: record.actor.id,
            actor_email: record.actor.email.map(Into::into),
            actor_email_hash: record.actor.email_hash.map(Into::into),
            actor_role: record.actor.role.map(Into::into),
            actor_ip: record.actor.ip.map(Into::into),
            actor_ip_hash: record.actor.ip_hash.map(Into::into),
            api_key_id: record.actor.key_id,
            resource_type: record.resource_type.into_owned(),
            resource_id: record.subject.id.map(Into::into),
            resource_name,
            error_message,
            details: entry.details,
            sequence: seal.map(|(sequence, _)| sequence),
            integrity_hash: seal.map(|(_, hash)| hex_of(&hash)),
        }
    }
}

/// A page of the audit log, the newest entry first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditPage {
    page: Vec<AuditLogEntry>,
    is_done: bool,
    /// Empty on the last page.
    continue_cursor: String,
}

/// Entries of the organization's audit log, the newest first.
#[utoipa::path(get, path = "/api/app/audit", tag = "app: audit", params(("orgId" = Option<String>, Query), AuditQuery), responses((status = 200, body = AuditPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 50, "max": 200 }))))]
async fn list_audit_entries(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<AuditQuery>, HttpProblem>,
) -> Result<Json<AuditPage>, HttpProblem> {
    caller.require(Capability::AuditRead)?;
    let Query(query) = query?;
    let filter = query.filter()?;
    let scope = scope(caller.org, &filter);
    let position: Option<Position> =
        query.cursor.as_deref().map(|cursor| app.cursors.open(&scope, cursor)).transpose()?;
    let (entries, next) = app.audit.list(caller.org, &filter, position, page_size(query.limit, 50, 200)).await?;
    Ok(Json(AuditPage {
        page: entries.into_iter().map(AuditLogEntry::from).collect(),
        is_done: next.is_none(),
        continue_cursor: next.map(|position| app.cursors.sign(&scope, &position)).unwrap_or_default(),
    }))
}

/// What a cursor belongs to.
fn scope(org: OrgId, filter: &Filter) -> String {
    format!("audit:{org}:{filter:?}")
}

/// Which entries in which form.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditExportQuery {
    /// The form of the file.
    #[param(inline)]
    format: AuditFormat,
    /// As for the list.
    category: Option<String>,
    /// As for the list.
    unsuccessful: Option<bool>,
    /// As for the list.
    from: Option<i64>,
    /// As for the list.
    to: Option<i64>,
}

/// The form of an export.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum AuditFormat {
    /// A table, the newest entry first.
    Csv,
    /// Sealed entries in the order of the chain, one JSON object a line: what `tale audit verify` reads.
    Jsonl,
}

/// The audit log as a file. Making one is an entry itself.
#[utoipa::path(get, path = "/api/app/audit/export", tag = "app: audit", params(("orgId" = Option<String>, Query), AuditExportQuery), responses((status = 200, content_type = "text/csv", body = String)))]
async fn export_audit_log(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<AuditExportQuery>, HttpProblem>,
) -> Result<Response, HttpProblem> {
    caller.require(Capability::AuditRead)?;
    let Query(query) = query?;
    let filter = filter(query.category.as_deref(), query.unsuccessful, query.from, query.to)?;
    app.limits.audit_scans.take(holder(&caller))?;
    let (format, media, ending) = match query.format {
        AuditFormat::Csv => (Format::Csv, "text/csv; charset=utf-8", "csv"),
        AuditFormat::Jsonl => (Format::JsonLines, "application/jsonl; charset=utf-8", "jsonl"),
    };
    let export = app.audit.export(caller.org, caller.actor(), format, filter).await?;
    let name = app.clock.now().format("audit-logs-%Y%m%d-%H%M%S");
    let mut disposition = String::new();
    let _ = write!(disposition, "attachment; filename=\"{name}.{ending}\"");
    let pieces = futures::stream::try_unfold(export, |mut export| async move {
        let piece = export.next().await.inspect_err(|problem| tracing::warn!(event = "audit.export_cut", %problem, "an export of the audit log could not be finished"))?;
        Ok::<_, Problem>(piece.map(|piece| (piece, export)))
    });
    let headers = [
        (header::CONTENT_TYPE, media.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Where a check begins.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditVerifyQuery {
    /// Goes on after this place of the chain, as `to.sequence` of the answer before; absent: from the oldest entry on.
    after: Option<u64>,
}

/// A place in the chain.
#[derive(Serialize, ToSchema)]
struct AuditHead {
    /// 0 is the place before the first entry.
    sequence: u64,
    /// In hexadecimal.
    hash: String,
}

/// What a check found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditVerification {
    /// Whether everything that was checked holds.
    intact: bool,
    /// Entries that were checked.
    checked: u64,
    /// Those of them with personal data that was erased; they verify in full.
    scrubbed: u64,
    /// Entries that wait to be sealed, which takes about a second.
    unsealed: u64,
    /// Whether there is more to check: go on after `to.sequence`.
    truncated: bool,
    /// The place after which the check began.
    from_sequence: u64,
    /// The last place that holds. Kept elsewhere, it proves later that the chain was not written anew.
    to: AuditHead,
    /// The end of the chain.
    head_sequence: u64,
    /// The first place that does not hold.
    #[serde(rename = "break", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    found: Option<AuditBreak>,
}

/// A place at which the chain does not hold.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditBreak {
    /// `hash`, `link`, `missing`, `order`, `foreign`, `truncated` or `head`.
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = Uuid)]
    entry_id: Option<Uuid>,
    /// In milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expected_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stored_hash: Option<String>,
    /// What was seen, in English.
    message: String,
}

impl From<Break> for AuditBreak {
    fn from(found: Break) -> Self {
        let kind = serde_json::to_value(found.kind).ok();
        Self {
            kind: kind.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
            sequence: found.sequence,
            entry_id: found.entry,
            timestamp: found.timestamp,
            expected_hash: found.expected.map(|hash| hex_of(&hash)),
            stored_hash: found.found.map(|hash| hex_of(&hash)),
            message: found.message,
        }
    }
}

impl From<Verification> for AuditVerification {
    fn from(done: Verification) -> Self {
        Self {
            intact: done.found.is_none(),
            checked: done.checked,
            scrubbed: done.erased,
            unsealed: done.unsealed,
            truncated: done.truncated,
            from_sequence: done.from,
            to: AuditHead { sequence: done.to.sequence, hash: hex_of(&done.to.hash) },
            head_sequence: done.head,
            found: done.found.map(AuditBreak::from),
        }
    }
}

/// Checks the chain of the audit log: 250,000 entries at most, further ones by going on after `to.sequence`.
#[utoipa::path(post, path = "/api/app/audit/verify", tag = "app: audit", params(("orgId" = Option<String>, Query), AuditVerifyQuery), responses((status = 200, body = AuditVerification)))]
async fn verify_audit_log(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<AuditVerifyQuery>, HttpProblem>,
) -> Result<Json<AuditVerification>, HttpProblem> {
    caller.require(Capability::AuditRead)?;
    let Query(query) = query?;
    app.limits.audit_scans.take(holder(&caller))?;
    Ok(Json(app.audit.verify(caller.org, query.after).await?.into()))
}

/// What the platform's own daily check of the chain found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditStatus {
    /// When, in milliseconds since 1970; absent before the first check.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    checked_at: Option<i64>,
    /// The last place that held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sequence: Option<u64>,
    /// The first place that did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    incident: Option<AuditIncident>,
}

/// A break that the platform found by itself.
#[derive(Serialize, ToSchema)]
struct AuditIncident {
    /// As the kind of a break.
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sequence: Option<u64>,
}

/// What the last automatic check of the chain found.
#[utoipa::path(get, path = "/api/app/audit/status", tag = "app: audit", params(("orgId" = Option<String>, Query)), responses((status = 200, body = AuditStatus)))]
async fn read_audit_status(State(app): State<App>, Member(caller): Member) -> Result<Json<AuditStatus>, HttpProblem> {
    caller.require(Capability::AuditRead)?;
    let last = app.audit.last_check(caller.org).await?;
    Ok(Json(AuditStatus {
        checked_at: last.as_ref().map(|last| last.at.timestamp_millis()),
        sequence: last.as_ref().and_then(|last| last.sequence),
        incident: last
            .and_then(|last| last.incident)
            .map(|incident| AuditIncident { kind: incident.kind, sequence: incident.sequence }),
    }))
}

/// Over how long.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ActivityQuery {
    /// The last 7 (default), 30 or 90 days.
    days: Option<u64>,
}

/// How many entries ended how.
#[derive(Serialize, ToSchema)]
struct AuditActivity {
    days: u64,
    total: i64,
    success: i64,
    failure: i64,
    denied: i64,
}

/// How much was recorded lately.
#[utoipa::path(get, path = "/api/app/audit/activity", tag = "app: audit", params(("orgId" = Option<String>, Query), ActivityQuery), responses((status = 200, body = AuditActivity)))]
async fn read_audit_activity(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<ActivityQuery>, HttpProblem>,
) -> Result<Json<AuditActivity>, HttpProblem> {
    caller.require(Capability::AuditRead)?;
    let Query(query) = query?;
    let days = query.days.unwrap_or(7);
    if ![7, 30, 90].contains(&days) {
        return Err(Problem::invalid_query("days", "must be 7, 30 or 90").into());
    }
    let now = app.clock.now();
    let since = now.checked_sub_days(Days::new(days)).unwrap_or(now);
    let activity = app.audit.activity(caller.org, since).await?;
    let (success, failure, denied) = (activity.success, activity.failure, activity.denied);
    Ok(Json(AuditActivity { days, total: success + failure + denied, success, failure, denied }))
}

/// What was wrong: passwords, or codes of a second factor.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SignInBlockKind {
    Password,
    SecondFactor,
}

impl From<SignInBlockKind> for BlockKind {
    fn from(kind: SignInBlockKind) -> Self {
        match kind {
            SignInBlockKind::Password => Self::Password,
            SignInBlockKind::SecondFactor => Self::SecondFactor,
        }
    }
}

/// A counter of failed sign-ins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SignInBlock {
    /// The member.
    #[schema(format = Uuid)]
    user_id: String,
    kind: SignInBlockKind,
    /// The member's address.
    email: String,
    /// The network the attempts came from, or its keyed hash; absent: all networks together, or a known device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    network: Option<String>,
    /// Whether the attempts came from a device that the member signed in on before.
    known_device: bool,
    /// Failures since the last success.
    failures: u32,
    /// Until when attempts are refused, in milliseconds since 1970; absent when they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    blocked_until: Option<i64>,
    /// The last attempt, in milliseconds since 1970.
    last_at: i64,
}

/// Counters of failed sign-ins.
#[derive(Serialize, ToSchema)]
struct SignInBlocks {
    blocks: Vec<SignInBlock>,
}

/// Failed sign-ins to accounts of members, 200 counters at most, the latest first.
#[utoipa::path(get, path = "/api/app/audit/sign-in-blocks", tag = "app: audit", params(("orgId" = Option<String>, Query)), responses((status = 200, body = SignInBlocks)))]
async fn list_sign_in_blocks(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<SignInBlocks>, HttpProblem> {
    let counters = app.identity.sign_in_blocks(&caller).await?;
    let blocks = counters.into_iter().map(|counter| SignInBlock {
        user_id: counter.user.to_string(),
        kind: match counter.kind {
            BlockKind::Password => SignInBlockKind::Password,
            BlockKind::SecondFactor => SignInBlockKind::SecondFactor,
        },
        email: counter.email,
        network: counter.network,
        known_device: counter.known_device,
        failures: counter.failures,
        blocked_until: counter.blocked_until.map(|until| until.timestamp_millis()),
        last_at: counter.last_at.timestamp_millis(),
    });
    Ok(Json(SignInBlocks { blocks: blocks.collect() }))
}
