//! What the organization uses, and how far one's own limits are used (spec 40, 8 and 9).

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Days, NaiveDate};
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::ids::{ApiKeyId, UserId};
use tale_governance::budgets::{Cost, Kind, Period, Scope as RuleScope};
use tale_identity::Capability;
use tale_models::ledger::LimitState;
use tale_models::ledger::report::{Group, GroupBy, MAX_GROUPS, Report, Scope, Used};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_usage)).routes(routes!(export_usage)).routes(routes!(read_budget_status))
}

/// Days of a report when the query names none.
const DEFAULT_DAYS: u64 = 30;
/// Most rows of a table for spreadsheets.
const MAX_ROWS: usize = 100_000;

/// Which use, and by what it is broken down.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct UsageParameters {
    /// The first day (UTC), as `2026-11-30` or as a time in milliseconds; absent: 29 days before `to`.
    from: Option<String>,
    /// The last day, likewise; absent: today.
    to: Option<String>,
    /// What the answer is broken down by; absent: `day`.
    group_by: Option<UsageGroupBy>,
    /// Only this assistant or kind of work.
    agent: Option<String>,
    /// Only this model, as `provider/model`.
    model: Option<String>,
    /// Only this person.
    #[param(value_type = Option<String>)]
    person: Option<UserId>,
    /// Only this API key.
    #[param(value_type = Option<String>)]
    key: Option<ApiKeyId>,
}

/// What a report is broken down by.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UsageGroupBy {
    /// By day.
    Day,
    /// By week, named by its Monday.
    Week,
    /// By month, named by its first day.
    Month,
    /// By `provider/model`.
    Model,
    /// By assistant or kind of work.
    Agent,
    /// By person.
    Person,
    /// By API key.
    Key,
}

impl UsageGroupBy {
    fn domain(self) -> GroupBy {
        match self {
            Self::Day => GroupBy::Day,
            Self::Week => GroupBy::Week,
            Self::Month => GroupBy::Month,
            Self::Model => GroupBy::Model,
            Self::Agent => GroupBy::Agent,
            Self::Person => GroupBy::Person,
            Self::Key => GroupBy::Key,
        }
    }
}

/// Amounts of use.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsageAmounts {
    requests: i64,
    /// Those of requests and answers together.
    tokens: i64,
    input_tokens: i64,
    output_tokens: i64,
    /// The part of `inputTokens` that came from caches of the providers.
    cached_tokens: i64,
    /// Seconds of recordings.
    units: i64,
    /// In cents, exact to a ten-thousandth. The application's own record, not an invoice.
    #[schema(value_type = f64)]
    cost_cents: Cost,
    /// People who used something.
    active_users: i64,
}

impl From<Used> for UsageAmounts {
    fn from(used: Used) -> Self {
        Self {
            requests: used.requests,
            tokens: used.input_tokens + used.output_tokens,
            input_tokens: used.input_tokens,
            output_tokens: used.output_tokens,
            cached_tokens: used.cached_tokens,
            units: used.units,
            cost_cents: Cost(u64::try_from(used.cost_micro_usd).unwrap_or(0)),
            active_users: used.active_users,
        }
    }
}

/// One group of a report.
#[derive(Serialize, ToSchema)]
struct UsageGroup {
    /// The day, the model, the assistant, or the id of the person or key; `null`: what belongs to none.
    #[schema(required)]
    key: Option<String>,
    /// The name of the person or key, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    #[serde(flatten)]
    used: UsageAmounts,
}

impl From<Group> for UsageGroup {
    fn from(group: Group) -> Self {
        Self { key: group.key, name: group.name, used: group.used.into() }
    }
}

/// What the organization used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsageReport {
    /// The first day.
    #[schema(value_type = String, format = Date)]
    from: NaiveDate,
    /// The last day.
    #[schema(value_type = String, format = Date)]
    to: NaiveDate,
    group_by: UsageGroupBy,
    totals: UsageAmounts,
    /// A course of time in its order, other groups the dearest first. What is empty is left out.
    groups: Vec<UsageGroup>,
    /// Whether there are more groups than these 500.
    truncated: bool,
}

/// What was asked for, in the words of the domain.
fn read(parameters: UsageParameters, today: NaiveDate) -> Result<(Scope, UsageGroupBy), Problem> {
    let day = |name: &str, text: &Option<String>| text.as_deref().map(|text| day_of(name, text)).transpose();
    let to = day("to", &parameters.to)?.unwrap_or(today);
    let from = day("from", &parameters.from)?
        .unwrap_or_else(|| to.checked_sub_days(Days::new(DEFAULT_DAYS - 1)).unwrap_or(to));
    let UsageParameters { group_by, agent, model, person, key, .. } = parameters;
    Ok((Scope { from, to, agent, model, person, key }, group_by.unwrap_or(UsageGroupBy::Day)))
}

/// A day, as a date or as the time of something in it.
fn day_of(name: &str, text: &str) -> Result<NaiveDate, Problem> {
    let date = text.parse::<NaiveDate>().ok();
    let in_ms = || text.parse::<i64>().ok().and_then(DateTime::from_timestamp_millis).map(|time| time.date_naive());
    let in_words = || DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc().date_naive());
    let sensible = |day: &NaiveDate| (1970..=9999).contains(&chrono::Datelike::year(day));
    date.or_else(in_ms)
        .or_else(in_words)
        .filter(sensible)
        .ok_or_else(|| Problem::invalid_query(name, "must be a day such as 2026-11-30"))
}

/// What the organization used between two days.
#[utoipa::path(get, path = "/api/app/usage", tag = "app: usage", params(("orgId" = Option<String>, Query), UsageParameters), responses((status = 200, body = UsageReport)))]
async fn read_usage(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<UsageParameters>, HttpProblem>,
) -> Result<Json<UsageReport>, HttpProblem> {
    caller.require(Capability::UsageRead)?;
    let Query(parameters) = query?;
    let (scope, group_by) = read(parameters, app.clock.now().date_naive())?;
    let Report { totals, groups, truncated } =
        app.models.ledger().report(caller.org, &scope, group_by.domain(), MAX_GROUPS).await?;
    Ok(Json(UsageReport {
        from: scope.from,
        to: scope.to,
        group_by,
        totals: totals.into(),
        groups: groups.into_iter().map(UsageGroup::from).collect(),
        truncated,
    }))
}

/// The groups of a report as a table for spreadsheets.
#[utoipa::path(get, path = "/api/app/usage/export", tag = "app: usage", params(("orgId" = Option<String>, Query), UsageParameters), responses((status = 200, content_type = "text/csv", body = String)))]
async fn export_usage(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<UsageParameters>, HttpProblem>,
) -> Result<Response, HttpProblem> {
    caller.require(Capability::UsageRead)?;
    let Query(parameters) = query?;
    let (scope, group_by) = read(parameters, app.clock.now().date_naive())?;
    let report = app.models.ledger().report(caller.org, &scope, group_by.domain(), MAX_ROWS).await?;
    let disposition = format!("attachment; filename=\"usage-{}-{}.csv\"", scope.from, scope.to);
    let headers =
        [(header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, disposition)];
    Ok((headers, csv(group_by, &report)).into_response())
}

/// The table: one line per group, RFC 4180.
fn csv(group_by: UsageGroupBy, report: &Report) -> String {
    use std::fmt::Write;
    let first = serde_json::to_value(group_by).ok();
    let first = first.as_ref().and_then(serde_json::Value::as_str).unwrap_or("key");
    let mut text = format!("{first},name,requests,inputTokens,outputTokens,cachedTokens,units,costUsd,activeUsers\r\n");
    for Group { key, name, used } in &report.groups {
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{}.{:06},{}\r\n",
            field(key.as_deref().unwrap_or_default()),
            field(name.as_deref().unwrap_or_default()),
            used.requests,
            used.input_tokens,
            used.output_tokens,
            used.cached_tokens,
            used.units,
            used.cost_micro_usd / 1_000_000,
            used.cost_micro_usd % 1_000_000,
            used.active_users
        );
    }
    text
}

/// A field that no spreadsheet takes for a formula or for two.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// What a limit counts.
#[derive(Serialize, ToSchema)]
enum LimitKind {
    #[serde(rename = "TOKEN_LIMIT")]
    Tokens,
    #[serde(rename = "COST_LIMIT")]
    Cost,
    #[serde(rename = "REQUEST_LIMIT")]
    Requests,
}

/// How often a limit begins anew, by the calendar in UTC.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum LimitPeriod {
    Daily,
    /// From Monday.
    Weekly,
    Monthly,
}

/// Whose limit it is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum LimitScope {
    /// Set for this person.
    User,
    /// Set for everybody of the person's role.
    Role,
    /// Set for the person's team: for each member, or for all together.
    Team,
    /// Set for everybody.
    Default,
    /// The organization's as a whole.
    Org,
}

/// A limit that binds the caller.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LimitView {
    code: LimitKind,
    scope: LimitScope,
    /// Whether the use of others counts toward it as well: all of the organization's, or of the team's members.
    shared: bool,
    period: LimitPeriod,
    /// Tokens, cents or requests.
    #[schema(value_type = f64)]
    used: serde_json::Value,
    #[schema(value_type = f64)]
    limit: serde_json::Value,
    /// When it begins anew.
    #[schema(value_type = i64)]
    resets_at: i64,
    /// From which percentage on there is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warning_threshold_percent: Option<u8>,
    /// Whether the warning's threshold is passed and something is left.
    warning: bool,
    /// Whether nothing is left.
    exceeded: bool,
}

impl LimitView {
    /// `None` for limits that bind no person.
    fn of(state: &LimitState) -> Option<Self> {
        let cap = &state.cap;
        Some(Self {
            code: match cap.kind {
                Kind::Tokens => LimitKind::Tokens,
                Kind::Cost => LimitKind::Cost,
                Kind::Requests => LimitKind::Requests,
            },
            scope: match cap.scope {
                RuleScope::User => LimitScope::User,
                RuleScope::Role => LimitScope::Role,
                RuleScope::Default => LimitScope::Default,
                RuleScope::Org => LimitScope::Org,
                RuleScope::Team => LimitScope::Team,
                RuleScope::ApiKey | RuleScope::Project => return None,
            },
            shared: cap.holder.is_shared(),
            period: match cap.period {
                Period::Daily => LimitPeriod::Daily,
                Period::Weekly => LimitPeriod::Weekly,
                Period::Monthly => LimitPeriod::Monthly,
            },
            used: cap.kind.on_the_wire(state.used),
            limit: cap.kind.on_the_wire(cap.limit),
            resets_at: state.resets_at.timestamp_millis(),
            warning_threshold_percent: cap.warn_percent,
            warning: state.warns(),
            exceeded: state.exceeded(),
        })
    }
}

/// Whether something stops or nears its end. What describes the reached limit is absent while none is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BudgetState {
    /// Whether a limit is reached.
    exceeded: bool,
    /// What the reached limit counts: tokens before cost before requests, and of those the one that lasts longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    code: Option<LimitKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    scope: Option<LimitScope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    period: Option<LimitPeriod>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    used: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    limit: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resets_at: Option<i64>,
    /// Why, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    /// Limits whose warning threshold is passed.
    warnings: Vec<LimitView>,
}

impl BudgetState {
    fn of(states: &[LimitState]) -> Self {
        let reached = states
            .iter()
            .filter(|state| state.exceeded())
            .min_by_key(|state| (state.cap.kind, std::cmp::Reverse(state.cap.period)));
        let warnings = states.iter().filter(|state| state.warns()).filter_map(LimitView::of).collect();
        let reason = reached.map(LimitState::sentence);
        let view = reached.and_then(LimitView::of);
        let exceeded = view.is_some();
        let (mut code, mut scope, mut period, mut used, mut limit, mut resets_at) = Default::default();
        if let Some(view) = view {
            (code, scope, period) = (Some(view.code), Some(view.scope), Some(view.period));
            (used, limit, resets_at) = (Some(view.used), Some(view.limit), Some(view.resets_at));
        }
        Self { exceeded, code, scope, period, used, limit, resets_at, reason, warnings }
    }
}

/// The caller's limits.
#[derive(Serialize, ToSchema)]
struct BudgetStatus {
    status: BudgetState,
    limits: Vec<LimitView>,
}

/// How far the limits that bind the caller are used: their own and the organization's.
#[utoipa::path(get, path = "/api/app/governance/my/budget-status", tag = "app: usage", params(("orgId" = Option<String>, Query)), responses((status = 200, body = BudgetStatus)))]
async fn read_budget_status(State(app): State<App>, Member(caller): Member) -> Result<Json<BudgetStatus>, HttpProblem> {
    caller.require(Capability::UsageOwn)?;
    let states = match caller.user {
        Some(user) => app.models.ledger().limits_of(caller.org, user, caller.role.text()).await?,
        None => Vec::new(),
    };
    Ok(Json(BudgetStatus {
        status: BudgetState::of(&states),
        limits: states.iter().filter_map(LimitView::of).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_however_they_are_written() {
        let day = "2026-11-30".parse::<NaiveDate>().unwrap();
        for text in ["2026-11-30", "1796083199000", "2026-11-30T23:59:59Z", "2026-12-01T01:00:00+02:00"] {
            assert_eq!(day_of("from", text).unwrap(), day, "{text}");
        }
        for text in ["yesterday", "2026-13-01", "99999999999999999999", "-62135596800000"] {
            assert!(day_of("from", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_neither_a_formula_nor_two_fields() {
        assert_eq!(field("=1+1"), "'=1+1");
        assert_eq!(field("Ada, \"Countess\""), "\"Ada, \"\"Countess\"\"\"");
    }
}
