//! Branding and its images.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::OrgId;

use crate::branding::{Image, Slot};

/// What an organization set.
#[derive(Debug, Clone, PartialEq, Eq, Default, FromRow)]
pub(crate) struct BrandingRow {
    pub(crate) version: i64,
    pub(crate) accent_color: Option<String>,
    pub(crate) logo: Option<String>,
    pub(crate) favicon_light: Option<String>,
    pub(crate) favicon_dark: Option<String>,
}

impl BrandingRow {
    /// The tag of an image.
    pub(crate) fn tag(&mut self, slot: Slot) -> &mut Option<String> {
        match slot {
            Slot::Logo => &mut self.logo,
            Slot::FaviconLight => &mut self.favicon_light,
            Slot::FaviconDark => &mut self.favicon_dark,
        }
    }
}

/// What is known of a stored image beside its bytes.
#[derive(Debug, FromRow)]
pub(crate) struct ImageRow {
    #[sqlx(try_from = "String")]
    pub(crate) slot: Slot,
    pub(crate) media_type: String,
    pub(crate) width: Option<i32>,
    pub(crate) height: Option<i32>,
    pub(crate) size: i32,
}

/// An image with its bytes.
#[derive(Debug, FromRow)]
pub(crate) struct ContentRow {
    #[sqlx(try_from = "String")]
    pub(crate) slot: Slot,
    pub(crate) media_type: String,
    pub(crate) content: Vec<u8>,
}

pub(crate) async fn get(conn: &mut PgConnection, org: OrgId) -> Result<Option<BrandingRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT version, accent_color, logo, favicon_light, favicon_dark FROM app.branding WHERE org_id = $1",
    )
    .bind(org)
    .fetch_optional(conn)
    .await
}

/// The same of an organization that is not deleted.
pub(crate) async fn published(conn: &mut PgConnection, org: OrgId) -> Result<Option<BrandingRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT b.version, b.accent_color, b.logo, b.favicon_light, b.favicon_dark
           FROM app.branding b
           JOIN app.organizations o ON o.id = b.org_id AND o.deleted_at IS NULL
          WHERE b.org_id = $1",
    )
    .bind(org)
    .fetch_optional(conn)
    .await
}

/// What those of `orgs` set that set anything.
pub(crate) async fn of_all(conn: &mut PgConnection, orgs: &[OrgId]) -> Result<Vec<(OrgId, BrandingRow)>, sqlx::Error> {
    #[derive(FromRow)]
    struct Of {
        org_id: OrgId,
        #[sqlx(flatten)]
        row: BrandingRow,
    }
    let rows: Vec<Of> = sqlx::query_as(
        "SELECT org_id, version, accent_color, logo, favicon_light, favicon_dark
           FROM app.branding
          WHERE org_id = ANY($1)
            AND num_nonnulls(accent_color, logo, favicon_light, favicon_dark) > 0",
    )
    .bind(orgs)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|of| (of.org_id, of.row)).collect())
}

pub(crate) async fn set(
    conn: &mut PgConnection,
    org: OrgId,
    row: &BrandingRow,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.branding (org_id, version, accent_color, logo, favicon_light, favicon_dark, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (org_id) DO UPDATE
            SET version = $2, accent_color = $3, logo = $4, favicon_light = $5, favicon_dark = $6, updated_at = $7",
    )
    .bind(org)
    .bind(row.version)
    .bind(&row.accent_color)
    .bind(&row.logo)
    .bind(&row.favicon_light)
    .bind(&row.favicon_dark)
    .bind(at)
    .execute(conn)
    .await
    .map(drop)
}

pub(crate) async fn images(conn: &mut PgConnection, org: OrgId) -> Result<Vec<ImageRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT slot, media_type, width, height, octet_length(content) AS size
           FROM app.branding_images
          WHERE org_id = $1",
    )
    .bind(org)
    .fetch_all(conn)
    .await
}

/// The first of `slots` that there is, of an organization that is not deleted.
pub(crate) async fn content(
    conn: &mut PgConnection,
    org: OrgId,
    slots: &[Slot],
) -> Result<Option<ContentRow>, sqlx::Error> {
    let slots: Vec<&str> = slots.iter().map(|slot| slot.text()).collect();
    sqlx::query_as(
        "SELECT i.slot, i.media_type, i.content
           FROM app.branding_images i
           JOIN app.organizations o ON o.id = i.org_id AND o.deleted_at IS NULL
          WHERE i.org_id = $1 AND i.slot = ANY($2)
          ORDER BY array_position($2, i.slot)
          LIMIT 1",
    )
    .bind(org)
    .bind(slots)
    .fetch_optional(conn)
    .await
}

pub(crate) async fn put_image(
    conn: &mut PgConnection,
    org: OrgId,
    slot: Slot,
    image: &Image,
    content: &[u8],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.branding_images (org_id, slot, media_type, width, height, content)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (org_id, slot) DO UPDATE SET media_type = $3, width = $4, height = $5, content = $6",
    )
    .bind(org)
    .bind(slot.text())
    .bind(image.media_type)
    .bind(image.pixels.map(|(width, _)| width))
    .bind(image.pixels.map(|(_, height)| height))
    .bind(content)
    .execute(conn)
    .await
    .map(drop)
}

/// Removes the images in `slots`.
pub(crate) async fn remove_images(conn: &mut PgConnection, org: OrgId, slots: &[Slot]) -> Result<(), sqlx::Error> {
    let slots: Vec<&str> = slots.iter().map(|slot| slot.text()).collect();
    sqlx::query("DELETE FROM app.branding_images WHERE org_id = $1 AND slot = ANY($2)")
        .bind(org)
        .bind(slots)
        .execute(conn)
        .await
        .map(drop)
}
