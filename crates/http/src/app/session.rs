//! What a browser reads before it shows anything.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use tale_identity::password::Due;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::{SessionUser, Visitor};
use super::organizations::OrganizationSummary;
use super::second_factor::passkeys_here;
use super::trusted_headers::names_somebody;
use crate::caller::MaybeSigned;
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::state::App;

/// Who is signed in, and what there is to show.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// The person; `null` when signed out.
    #[schema(required)]
    user: Option<SessionUser>,
    /// Why the person has to choose another password before anything else; nothing but that is told them until then.
    #[schema(required)]
    password_change: Option<PasswordChange>,
    /// The person's organizations, also those where their access is disabled.
    organizations: Vec<OrganizationSummary>,
    /// The organization to show.
    #[schema(required, format = Uuid)]
    active_organization_id: Option<String>,
    /// Whether no account exists yet.
    setup_required: bool,
    /// Whether setup from this client needs the token from the server's log.
    setup_token_required: bool,
    /// Whether the person may create organizations.
    can_create_organization: bool,
    /// Organizations that want a second factor, which the person does not have.
    second_factor_wanted: Vec<SecondFactorWanted>,
    /// Whether passkeys can be used on this page.
    passkeys: bool,
    /// Whether a reverse proxy names the visitor, who is signed out, and may sign people in.
    trusted_headers: bool,
    /// Whether the visitor, who is signed out, can choose an identity provider.
    sso: bool,
    /// The release.
    version: &'static str,
    /// Whether this server runs the demo model.
    demo_available: bool,
    /// Whether `/events/file` tells changes of configuration files.
    file_events: bool,
}

/// Why another password has to be chosen.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PasswordChange {
    /// An admin chose it.
    Temporary,
    /// It is older than an organization allows.
    Expired,
}

/// An organization that wants a second factor of somebody who has none.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SecondFactorWanted {
    /// The organization.
    #[schema(format = Uuid)]
    organization_id: String,
    /// Until when the person may go without, in epoch milliseconds.
    until: i64,
    /// Whether that is over: nothing of the organization is answered.
    over: bool,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(session))
}

/// Who is signed in; also answers when nobody is.
#[utoipa::path(get, path = "/api/app/session", tag = "session", responses((status = 200, body = Session)), operation_id = "read_session")]
async fn session(
    State(app): State<App>,
    MaybeSigned(principal): MaybeSigned,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    headers: HeaderMap,
) -> Result<Json<Session>, HttpProblem> {
    let overview = app.identity.session_overview(principal.as_ref(), &device).await?;
    let named = principal.is_none() && !overview.setup_required && names_somebody(&app, &headers);
    let trusted_headers = named && app.identity.trusts_headers().await?;
    let sso = principal.is_none() && !overview.setup_required && app.identity.offers_sso().await?;
    let mut branding = overview.branding;
    let wanted = match &principal {
        Some(principal) if principal.password_due.is_none() => app.identity.factor_wanted(principal).await?,
        _ => Vec::new(),
    };
    let password_change = principal.as_ref().and_then(|principal| principal.password_due).map(|due| match due {
        Due::Temporary => PasswordChange::Temporary,
        Due::Expired => PasswordChange::Expired,
    });
    Ok(Json(Session {
        password_change,
        second_factor_wanted: wanted
            .into_iter()
            .map(|wanted| SecondFactorWanted {
                organization_id: wanted.org.to_string(),
                until: wanted.until.timestamp_millis(),
                over: wanted.over,
            })
            .collect(),
        passkeys: passkeys_here(&app, &origin.0).is_ok(),
        user: principal.map(|principal| SessionUser {
            id: principal.user.to_string(),
            name: principal.name,
            email: principal.email,
        }),
        organizations: overview
            .organizations
            .into_iter()
            .map(|org| {
                let branding = branding.remove(&org.id);
                OrganizationSummary::of(org, branding)
            })
            .collect(),
        active_organization_id: overview.active_org.map(|org| org.to_string()),
        setup_required: overview.setup_required,
        setup_token_required: overview.setup_token_required,
        can_create_organization: overview.can_create_organization,
        trusted_headers,
        sso,
        version: env!("CARGO_PKG_VERSION"),
        demo_available: app.demo.is_some(),
        file_events: app.file_watch.is_some(),
    }))
}
