//! How an organization looks to its members (BRD-1…9).

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_identity::Capability;
use tale_identity::branding::{self, MAX_BYTES, Slot};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::{Body, read_limited};
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;
use crate::v1::matches_tag;

/// Whoever opens an image by its address has it as a document of ours, which may do nothing.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/// What the organization set.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Branding {
    /// One more with every change; 0 when nothing was ever set.
    version: i64,
    /// `#` and six lower-case hexadecimal digits; `null` is Tale's own.
    #[schema(required)]
    accent_color: Option<String>,
    /// The images that were uploaded.
    images: Vec<BrandingImage>,
}

/// An image of the organization.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BrandingImage {
    /// Which one.
    slot: ImageSlot,
    /// Where it is, below the base path. Changes with its content.
    url: String,
    /// What it is, judged by its bytes.
    media_type: String,
    /// Pixels in a row; `null` for SVG and ICO.
    #[schema(required)]
    width: Option<i32>,
    /// Rows of pixels; `null` for SVG and ICO.
    #[schema(required)]
    height: Option<i32>,
    /// Bytes.
    size: i32,
}

/// An image of an organization.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum ImageSlot {
    /// In place of the organization's initial.
    Logo,
    /// The icon of tabs in light browsers.
    FaviconLight,
    /// The icon of tabs in dark browsers.
    FaviconDark,
}

impl From<Slot> for ImageSlot {
    fn from(slot: Slot) -> Self {
        match slot {
            Slot::Logo => Self::Logo,
            Slot::FaviconLight => Self::FaviconLight,
            Slot::FaviconDark => Self::FaviconDark,
        }
    }
}

/// How an organization looks, for everybody. Addresses are below the base path.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PublishedBranding {
    /// `#` and six lower-case hexadecimal digits; `null` is Tale's own.
    #[schema(required)]
    accent_color: Option<String>,
    /// The logo.
    #[schema(required)]
    logo: Option<String>,
    /// The icon of tabs in light browsers: the uploaded one, else one made of the logo.
    #[schema(required)]
    favicon_light: Option<String>,
    /// The icon of tabs in dark browsers: the uploaded one, else the light one.
    #[schema(required)]
    favicon_dark: Option<String>,
}

impl PublishedBranding {
    /// What is known of `org`.
    pub(crate) fn of(org: OrgId, branding: branding::PublishedBranding) -> Self {
        let at = |slot, tag: Option<String>| tag.map(|tag| address(org, slot, &tag));
        Self {
            accent_color: branding.accent_color,
            logo: at(Slot::Logo, branding.logo),
            favicon_light: at(Slot::FaviconLight, branding.favicon_light),
            favicon_dark: at(Slot::FaviconDark, branding.favicon_dark),
        }
    }
}

/// A change of the branding.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BrandingForm {
    /// `#` and six hexadecimal digits; `null` is Tale's own.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    accent_color: Option<String>,
    /// The version that the change is based on.
    version: i64,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read, save, reset))
        .routes(routes!(upload, remove))
        .routes(routes!(published))
        .routes(routes!(image))
}

fn address(org: OrgId, slot: Slot, tag: &str) -> String {
    format!("/api/app/branding/published/{org}/{}?v={tag}", slot.text())
}

fn shown(org: OrgId, branding: branding::Branding) -> Branding {
    let images = branding.images.into_iter().map(|image| BrandingImage {
        slot: image.slot.into(),
        url: address(org, image.slot, &image.tag),
        media_type: image.media_type,
        width: image.pixels.map(|(width, _)| width),
        height: image.pixels.map(|(_, height)| height),
        size: image.size,
    });
    Branding { version: branding.version, accent_color: branding.accent_color, images: images.collect() }
}

fn slot_of(text: &str) -> Result<Slot, Problem> {
    Slot::parse(text).ok_or_else(|| {
        Problem::new(Code::NotFound, "There is no such image. There are `logo`, `favicon-light` and `favicon-dark`.")
    })
}

/// The branding, for those who may change it.
#[utoipa::path(get, path = "/api/app/branding", tag = "app: branding", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Branding)), operation_id = "read_branding")]
async fn read(State(app): State<App>, Member(caller): Member) -> Result<Json<Branding>, HttpProblem> {
    Ok(Json(shown(caller.org, app.identity.branding(&caller).await?)))
}

/// Sets the accent colour, unless somebody else changed the branding since `version`.
#[utoipa::path(put, path = "/api/app/branding", tag = "app: branding", params(("orgId" = Option<String>, Query)), request_body = BrandingForm, responses((status = 200, body = Branding)), operation_id = "save_branding")]
async fn save(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<BrandingForm>,
) -> Result<Json<Branding>, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let form = body.read()?;
    let saved = app.identity.set_branding(&caller, form.accent_color.as_deref(), form.version).await?;
    Ok(Json(shown(caller.org, saved)))
}

/// Removes colour and images at once.
#[utoipa::path(delete, path = "/api/app/branding", tag = "app: branding", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Branding)), operation_id = "reset_branding")]
async fn reset(State(app): State<App>, Member(caller): Member) -> Result<Json<Branding>, HttpProblem> {
    Ok(Json(shown(caller.org, app.identity.reset_branding(&caller).await?)))
}

/// Uploads an image, at once: SVG, PNG, JPEG or WebP, favicons also ICO, of 1 MiB at most. What it is is read from its
/// bytes.
#[utoipa::path(put, path = "/api/app/branding/images/{slot}", tag = "app: branding", params(("slot" = String, Path), ("orgId" = Option<String>, Query)), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 200, body = Branding)), extensions(("x-tale-body-cap" = json!(MAX_BYTES))), operation_id = "upload_branding_image")]
async fn upload(
    State(app): State<App>,
    Member(caller): Member,
    Path(slot): Path<String>,
    request: Request,
) -> Result<Json<Branding>, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let slot = slot_of(&slot)?;
    let content = read_limited(request, MAX_BYTES).await?;
    Ok(Json(shown(caller.org, app.identity.set_branding_image(&caller, slot, &content).await?)))
}

/// Removes an image, at once. One that is not there is fine.
#[utoipa::path(delete, path = "/api/app/branding/images/{slot}", tag = "app: branding", params(("slot" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Branding)), operation_id = "remove_branding_image")]
async fn remove(
    State(app): State<App>,
    Member(caller): Member,
    Path(slot): Path<String>,
) -> Result<Json<Branding>, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    Ok(Json(shown(caller.org, app.identity.remove_branding_image(&caller, slot_of(&slot)?).await?)))
}

/// How an organization looks, for everybody; one that does not exist looks like one that set nothing.
#[utoipa::path(get, path = "/api/app/branding/published/{organization}", tag = "app: branding", params(("organization" = String, Path)), responses((status = 200, body = PublishedBranding)), operation_id = "read_published_branding")]
async fn published(State(app): State<App>, Path(organization): Path<String>) -> Result<Response, HttpProblem> {
    let branding = match organization.parse::<OrgId>() {
        Ok(org) => PublishedBranding::of(org, app.identity.published_branding(org).await?),
        Err(_) => PublishedBranding::of(OrgId::new(), branding::PublishedBranding::default()),
    };
    Ok(([(header::CACHE_CONTROL, "no-cache")], Json(branding)).into_response())
}

/// An image of an organization, for everybody. Under the address that names its content it never changes.
#[utoipa::path(get, path = "/api/app/branding/published/{organization}/{image}", tag = "app: branding", params(("organization" = String, Path), ("image" = String, Path), ("v" = Option<String>, Query, description = "Names the content.")), responses((status = 200, content_type = "image/*", body = Vec<u8>), (status = 304, description = "It is what `If-None-Match` names")), operation_id = "read_published_image")]
async fn image(
    State(app): State<App>,
    Path((organization, image)): Path<(String, String)>,
    headers: HeaderMap,
    uri: axum::http::Uri,
) -> Result<Response, HttpProblem> {
    let org = organization.parse().map_err(|_| Problem::new(Code::NotFound, "There is no such image."))?;
    let slot = slot_of(&image)?;
    let branding = app.identity.published_branding(org).await?;
    let tag = branding.tag(slot)?;
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    // The content is not even read for those who have it.
    let (tag, mut response) = if known.is_some_and(|list| matches_tag(list, tag)) {
        (tag.to_owned(), StatusCode::NOT_MODIFIED.into_response())
    } else {
        let found = app.identity.published_image(org, slot).await?;
        let mut response = axum::body::Body::from(found.content).into_response();
        // Drawings are judged and stored as UTF-8, whatever they say of themselves.
        let kind = match found.media_type.as_str() {
            "image/svg+xml" => HeaderValue::from_static("image/svg+xml; charset=utf-8"),
            other => HeaderValue::from_str(other).map_err(Problem::internal)?,
        };
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        (found.tag, response)
    };
    let lasts = uri.query() == Some(format!("v={tag}").as_str());
    let caching = if lasts { "public, max-age=31536000, immutable" } else { "no-cache" };
    let out = response.headers_mut();
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    out.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    out.insert(header::ETAG, HeaderValue::from_str(&format!("\"{tag}\"")).map_err(Problem::internal)?);
    Ok(response)
}
