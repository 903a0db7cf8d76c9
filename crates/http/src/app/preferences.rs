//! What a person set for themselves.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tale_identity::preferences;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

/// Language, theme and custom instructions.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Preferences {
    /// The language; `null` follows the browser.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    locale: Option<Locale>,
    theme: Theme,
    custom_instructions: CustomInstructions,
}

/// A language of the interface.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Locale {
    /// English.
    En,
    /// German.
    De,
    /// French.
    Fr,
}

/// A theme of the interface.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Theme {
    /// Always light.
    Light,
    /// Always dark.
    Dark,
    /// As the machine says.
    System,
}

/// What the person wants the model to know or do in this organization.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CustomInstructions {
    /// Whether they are used; `null` follows the organization.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    enabled: Option<bool>,
    /// At most 3,200 characters, kept while they are off.
    text: String,
}

impl From<preferences::Preferences> for Preferences {
    fn from(stored: preferences::Preferences) -> Self {
        Self {
            locale: stored.locale.map(|locale| match locale {
                preferences::Locale::En => Locale::En,
                preferences::Locale::De => Locale::De,
                preferences::Locale::Fr => Locale::Fr,
            }),
            theme: match stored.theme {
                preferences::Theme::Light => Theme::Light,
                preferences::Theme::Dark => Theme::Dark,
                preferences::Theme::System => Theme::System,
            },
            custom_instructions: CustomInstructions { enabled: stored.instructions_enabled, text: stored.instructions },
        }
    }
}

impl From<Preferences> for preferences::Preferences {
    fn from(sent: Preferences) -> Self {
        Self {
            locale: sent.locale.map(|locale| match locale {
                Locale::En => preferences::Locale::En,
                Locale::De => preferences::Locale::De,
                Locale::Fr => preferences::Locale::Fr,
            }),
            theme: match sent.theme {
                Theme::Light => preferences::Theme::Light,
                Theme::Dark => preferences::Theme::Dark,
                Theme::System => preferences::Theme::System,
            },
            instructions_enabled: sent.custom_instructions.enabled,
            instructions: sent.custom_instructions.text,
        }
    }
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get, put))
}

/// The person's preferences.
#[utoipa::path(get, path = "/api/app/preferences", tag = "preferences", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Preferences)), operation_id = "read_preferences")]
async fn get(State(app): State<App>, Member(caller): Member) -> Result<Json<Preferences>, HttpProblem> {
    Ok(Json(app.identity.preferences(&caller).await?.into()))
}

/// Replaces the person's preferences.
#[utoipa::path(put, path = "/api/app/preferences", tag = "preferences", params(("orgId" = Option<String>, Query)), request_body = Preferences, responses((status = 200, body = Preferences)), operation_id = "replace_preferences")]
async fn put(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<Preferences>,
) -> Result<Json<Preferences>, HttpProblem> {
    let wanted = body.read()?.into();
    app.identity.set_preferences(&caller, &wanted).await?;
    Ok(Json(wanted.into()))
}
