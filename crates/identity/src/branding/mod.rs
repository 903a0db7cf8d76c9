//! How an organization looks to its members: accent colour, logo, favicons (BRD-1…9).
//!
//! - [`image`]: what an upload is, judged by its bytes.
//! - [`drawing`]: whether an SVG could do anything but be looked at.
//! - [`file`]: the copy of it that operators may edit.
//!
//! What is set here is readable by anybody ([`Identity::published_branding`]), because browsers load images without
//! saying who asks. The shades that keep text readable are derived in the browser.

mod drawing;
mod file;
mod image;

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sqlx::PgConnection;
use tale_core::crypto::{hex_of, sha256};
use tale_core::ids::OrgId;
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;

use crate::caller::Caller;
use crate::permissions::Capability;
use crate::service::Identity;
use crate::store;
use crate::store::branding::BrandingRow;
use crate::trail::{self, Change};

pub use file::SeenFiles;
pub(crate) use image::Image;
pub use image::{MAX_BYTES, MAX_PIXELS};

/// An image of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Shown in place of the organization's initial.
    Logo,
    /// The icon of tabs in browsers with light controls.
    FaviconLight,
    /// The same with dark ones.
    FaviconDark,
}

impl Slot {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Logo, Self::FaviconLight, Self::FaviconDark];

    /// The word in addresses and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Logo => "logo",
            Self::FaviconLight => "favicon-light",
            Self::FaviconDark => "favicon-dark",
        }
    }

    /// The slot of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slot| slot.text() == text)
    }
}

impl TryFrom<String> for Slot {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or(text)
    }
}

/// What an organization set, as those see it who may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branding {
    /// One more with every change; 0 = nothing was ever set. A save names the one that it began with.
    pub version: i64,
    /// `#` and six lower-case hexadecimal digits.
    pub accent_color: Option<String>,
    /// The images that there are.
    pub images: Vec<StoredImage>,
}

/// An image that was uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage {
    /// Which one.
    pub slot: Slot,
    /// Names its content.
    pub tag: String,
    /// What it is.
    pub media_type: String,
    /// Width and height; `None` for drawings and icons, which have no size of their own.
    pub pixels: Option<(i32, i32)>,
    /// Bytes.
    pub size: i32,
}

/// What anybody may know. Images by their tags, which change with their content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishedBranding {
    /// `#` and six lower-case hexadecimal digits.
    pub accent_color: Option<String>,
    /// The logo.
    pub logo: Option<String>,
    /// The favicon for light browsers: the uploaded one, else one made of the logo (BRD-5).
    pub favicon_light: Option<String>,
    /// The favicon for dark browsers: the uploaded one, else the light one.
    pub favicon_dark: Option<String>,
}

impl From<BrandingRow> for PublishedBranding {
    fn from(row: BrandingRow) -> Self {
        let light = row.favicon_light.or_else(|| row.logo.as_deref().map(derived_tag));
        Self {
            accent_color: row.accent_color,
            favicon_dark: row.favicon_dark.or_else(|| light.clone()),
            favicon_light: light,
            logo: row.logo,
        }
    }
}

impl PublishedBranding {
    /// Names the content of an image as it is shown.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none.
    pub fn tag(&self, slot: Slot) -> Result<&str, Problem> {
        let tag = match slot {
            Slot::Logo => &self.logo,
            Slot::FaviconLight => &self.favicon_light,
            Slot::FaviconDark => &self.favicon_dark,
        };
        tag.as_deref().ok_or_else(no_image)
    }
}

/// An image to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedImage {
    /// What it is.
    pub media_type: String,
    /// Names its content.
    pub tag: String,
    /// Its bytes.
    pub content: Vec<u8>,
}

impl Identity {
    /// The caller's organization's branding, for editing.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn branding(&self, caller: &Caller) -> Result<Branding, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let mut conn = self.0.db.acquire().await?;
        let row = store::branding::get(&mut conn, caller.org).await?.unwrap_or_default();
        view(&mut conn, caller.org, row).await
    }

    /// Sets the accent colour; `None` is Tale's own. `version` is that of the branding it is based on (BRD-6).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY` for what is no colour, `CONFIG_VERSION_CONFLICT` when somebody
    /// else was faster.
    pub async fn set_branding(
        &self,
        caller: &Caller,
        accent_color: Option<&str>,
        version: i64,
    ) -> Result<Branding, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let accent_color = accent_color.map(color).transpose()?;
        let mut tx = self.begin().await?;
        let (before, written) = self.held(&mut tx, caller).await?;
        if before.version != version {
            // What was taken over from the file stays.
            tx.commit().await?;
            return Err(Problem::new(
                Code::ConfigVersionConflict,
                "Somebody else changed the branding meanwhile. Load it again and repeat your change.",
            )
            .with_data(serde_json::json!({ "version": before.version })));
        }
        if before.accent_color == accent_color {
            let view = view(&mut tx, caller.org, before).await?;
            tx.commit().await?;
            return Ok(view);
        }
        let next = BrandingRow { accent_color, ..before.clone() };
        let change = Change::organization("branding.updated");
        let row = self.write(&mut tx, caller, (&before, written), next, change).await?;
        let view = view(&mut tx, caller.org, row).await?;
        tx.commit().await?;
        Ok(view)
    }

    /// Puts an image in its place, at once.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right; `FILE_TOO_LARGE`, `UNSUPPORTED_FILE_TYPE`, `IMAGE_SVG_ACTIVE_CONTENT` for what is
    /// no image of a kind that is shown. Nothing changes then.
    pub async fn set_branding_image(&self, caller: &Caller, slot: Slot, content: &[u8]) -> Result<Branding, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let image = image::judge(slot, content)?;
        let tag = tag_of(content);
        let mut tx = self.begin().await?;
        let (before, written) = self.held(&mut tx, caller).await?;
        let mut next = before.clone();
        if next.tag(slot).as_ref() == Some(&tag) {
            let view = view(&mut tx, caller.org, before).await?;
            tx.commit().await?;
            return Ok(view);
        }
        *next.tag(slot) = Some(tag);
        let change = Change::organization("branding.image_uploaded")
            .with("image", slot.text())
            .with("mediaType", image.media_type)
            .with("bytes", content.len());
        let row = self.write(&mut tx, caller, (&before, written), next, change).await?;
        store::branding::put_image(&mut tx, caller.org, slot, &image, content).await?;
        let view = view(&mut tx, caller.org, row).await?;
        tx.commit().await?;
        Ok(view)
    }

    /// Takes an image away, at once. One that is not there is fine.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn remove_branding_image(&self, caller: &Caller, slot: Slot) -> Result<Branding, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let mut tx = self.begin().await?;
        let (before, written) = self.held(&mut tx, caller).await?;
        let mut next = before.clone();
        if next.tag(slot).take().is_none() {
            let view = view(&mut tx, caller.org, before).await?;
            tx.commit().await?;
            return Ok(view);
        }
        let change = Change::organization("branding.image_deleted").with("image", slot.text());
        let row = self.write(&mut tx, caller, (&before, written), next, change).await?;
        let view = view(&mut tx, caller.org, row).await?;
        tx.commit().await?;
        Ok(view)
    }

    /// Back to how Tale looks by itself: no colour, no images. A save that began before conflicts (BRD-8).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn reset_branding(&self, caller: &Caller) -> Result<Branding, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let mut tx = self.begin().await?;
        let (before, written) = self.held(&mut tx, caller).await?;
        let next = BrandingRow { version: before.version, ..BrandingRow::default() };
        if before == next {
            let view = view(&mut tx, caller.org, before).await?;
            tx.commit().await?;
            return Ok(view);
        }
        let change = Change::organization("branding.updated").with("reset", true);
        let row = self.write(&mut tx, caller, (&before, written), next, change).await?;
        let view = view(&mut tx, caller.org, row).await?;
        tx.commit().await?;
        Ok(view)
    }

    /// What anybody may know of an organization's branding. One that does not exist looks like one that set nothing.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn published_branding(&self, org: OrgId) -> Result<PublishedBranding, Problem> {
        let mut conn = self.0.db.acquire().await?;
        Ok(store::branding::published(&mut conn, org).await?.unwrap_or_default().into())
    }

    /// An image as it is shown. Loads its content; [`PublishedBranding::tag`] says which it is without that.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none.
    pub async fn published_image(&self, org: OrgId, slot: Slot) -> Result<PublishedImage, Problem> {
        let sources: &[Slot] = match slot {
            Slot::Logo => &[Slot::Logo],
            Slot::FaviconLight => &[Slot::FaviconLight, Slot::Logo],
            Slot::FaviconDark => &[Slot::FaviconDark, Slot::FaviconLight, Slot::Logo],
        };
        let mut conn = self.0.db.acquire().await?;
        let found = store::branding::content(&mut conn, org, sources).await?.ok_or_else(no_image)?;
        // Of the bytes at hand: another image could have been uploaded since the branding was read.
        let tag = tag_of(&found.content);
        if found.slot == Slot::Logo && slot != Slot::Logo {
            let content = icon_of(&found.media_type, &found.content);
            return Ok(PublishedImage { media_type: image::SVG.to_owned(), tag: derived_tag(&tag), content });
        }
        Ok(PublishedImage { media_type: found.media_type, tag, content: found.content })
    }

    /// What the organizations set that set anything.
    pub(crate) async fn brandings(
        &self,
        conn: &mut PgConnection,
        orgs: &[OrgId],
    ) -> Result<HashMap<OrgId, PublishedBranding>, Problem> {
        let rows = store::branding::of_all(conn, orgs).await?;
        Ok(rows.into_iter().map(|(org, row)| (org, row.into())).collect())
    }

    /// The branding behind the organization's lock, once the caller's right was looked at again and its file taken over; and
    /// whether the file is somebody's.
    async fn held(&self, conn: &mut PgConnection, caller: &Caller) -> Result<(BrandingRow, bool), Problem> {
        self.relock(conn, caller, Capability::OrganizationManage).await?;
        let row = store::branding::get(conn, caller.org).await?.unwrap_or_default();
        self.with_file(conn, caller.org, &caller.org_slug, row).await
    }

    /// Stores `next` as the version after `before`, with its entry and its copy.
    async fn write(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        (before, written): (&BrandingRow, bool),
        next: BrandingRow,
        change: Change,
    ) -> Result<BrandingRow, Problem> {
        let next = self.record_branding(conn, (caller.org, &caller.actor()), before, next, change).await?;
        self.mirror(caller.org, &caller.org_slug, &next, written).await?;
        Ok(next)
    }

    /// Stores `next` as the version after `before`, with the entry that names what differs, and removes the images that it
    /// does not have any more.
    async fn record_branding(
        &self,
        conn: &mut PgConnection,
        (org, actor): (OrgId, &Actor),
        before: &BrandingRow,
        next: BrandingRow,
        change: Change,
    ) -> Result<BrandingRow, Problem> {
        let mut next = BrandingRow { version: before.version + 1, ..next };
        store::branding::set(conn, org, &next, self.now()).await?;
        let gone: Vec<Slot> = Slot::ALL.into_iter().filter(|slot| next.tag(*slot).is_none()).collect();
        store::branding::remove_images(conn, org, &gone).await?;
        let (mut was, mut is) = (Map::new(), Map::new());
        for (field, old, new) in [
            ("accentColor", &before.accent_color, &next.accent_color),
            ("logo", &before.logo, &next.logo),
            ("faviconLight", &before.favicon_light, &next.favicon_light),
            ("faviconDark", &before.favicon_dark, &next.favicon_dark),
        ] {
            if old != new {
                was.insert(field.to_owned(), old.clone().into());
                is.insert(field.to_owned(), new.clone().into());
            }
        }
        let change = change
            .on("branding", org)
            .with("version", next.version)
            .with("previous", Value::Object(was))
            .with("new", Value::Object(is));
        trail::record(conn, self.now(), org, actor, &change).await?;
        trail::hint(conn, org, Topic::Organization, None).await?;
        Ok(next)
    }
}

/// The row with what is known of its images.
async fn view(conn: &mut PgConnection, org: OrgId, mut row: BrandingRow) -> Result<Branding, Problem> {
    let rows = store::branding::images(conn, org).await?;
    let images = rows.into_iter().filter_map(|image| {
        Some(StoredImage {
            slot: image.slot,
            tag: row.tag(image.slot).clone()?,
            media_type: image.media_type,
            pixels: image.width.zip(image.height),
            size: image.size,
        })
    });
    let mut images: Vec<StoredImage> = images.collect();
    images.sort_by_key(|image| Slot::ALL.iter().position(|slot| *slot == image.slot));
    Ok(Branding { version: row.version, accent_color: row.accent_color, images })
}

fn no_image() -> Problem {
    Problem::new(Code::NotFound, "There is no such image.")
}

/// A colour as it is stored.
fn color(text: &str) -> Result<String, Problem> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.strip_prefix('#').unwrap_or_default();
    if digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        Ok(text)
    } else {
        Err(Problem::invalid_field("accentColor", "must be # and six hexadecimal digits, such as #056cff"))
    }
}

fn tag_of(content: &[u8]) -> String {
    hex_of(&sha256(content)[..16])
}

/// The tag of the icon that is made of the image with `tag`.
fn derived_tag(tag: &str) -> String {
    tag_of(format!("icon of {tag}").as_bytes())
}

/// A square icon that shows an image whole, whatever its proportions.
fn icon_of(media_type: &str, content: &[u8]) -> Vec<u8> {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\"><image width=\"64\" height=\"64\" href=\"data:{media_type};base64,{}\"/></svg>",
        STANDARD.encode(content)
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_six_digits() {
        assert_eq!(color(" #056CFF ").unwrap(), "#056cff");
        for text in
            ["", "#", "056cff", "#056cf", "#056cff0", "#fff", "blue", "#056cfg", "#05 cff", "##56cff", "#０56cff"]
        {
            assert_eq!(color(text).unwrap_err().code, Code::InvalidBody, "{text}");
        }
    }

    #[test]
    fn an_uploaded_favicon_wins_over_one_made_of_the_logo() {
        let logo = BrandingRow { logo: Some("a".into()), ..BrandingRow::default() };
        let derived = PublishedBranding::from(logo.clone());
        assert!(derived.favicon_light.is_some() && derived.favicon_light == derived.favicon_dark);
        assert_ne!(derived.favicon_light, derived.logo);
        let light = BrandingRow { favicon_light: Some("b".into()), ..logo.clone() };
        let shown = PublishedBranding::from(light);
        assert_eq!((shown.favicon_light.as_deref(), shown.favicon_dark.as_deref()), (Some("b"), Some("b")));
        let dark = BrandingRow { favicon_dark: Some("c".into()), ..logo };
        let shown = PublishedBranding::from(dark);
        assert_eq!((shown.favicon_light, shown.favicon_dark.as_deref()), (derived.favicon_light, Some("c")));
        assert_eq!(PublishedBranding::from(BrandingRow::default()), PublishedBranding::default());
    }
}
