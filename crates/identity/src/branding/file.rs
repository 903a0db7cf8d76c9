//! The file beside an organization's branding: `TALE_CONFIG_DIR/<organization>/branding/branding.yml` (BRD-10).
//!
//! One that Tale wrote and nobody touched is a copy ([`tale_orgfiles::copy`]). Any other is a change by an operator, who can
//! set the colour and take images away: the images themselves are uploaded, and a file names them by their tags.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::ids::OrgId;
use tale_core::{Actor, Code, Problem, strict};
use tale_orgfiles::{ConfigError, ConfigStore, FilePath, Folder, Scope, Stamp, copy};

use super::color;
use crate::service::Identity;
use crate::store;
use crate::store::branding::BrandingRow;
use crate::trail::Change;

const FOLDER: Folder = Folder("branding");
const FILE: FilePath = FilePath("branding/branding.yml");
/// How often files are looked at.
const EVERY: Duration = Duration::from_secs(15);

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Form {
    accent_color: Option<String>,
    logo: Option<String>,
    favicon_light: Option<String>,
    favicon_dark: Option<String>,
}

impl Form {
    fn of(row: &BrandingRow) -> Self {
        let BrandingRow { version: _, accent_color, logo, favicon_light, favicon_dark } = row.clone();
        Self { accent_color, logo, favicon_light, favicon_dark }
    }

    /// The row that it makes of `before`; what is wrong with it otherwise.
    fn applied(self, before: &BrandingRow) -> Result<BrandingRow, String> {
        let accent_color = self.accent_color.as_deref().map(color).transpose();
        let accent_color = accent_color.map_err(|_| "`accentColor` must be # and six hexadecimal digits".to_owned())?;
        for (field, named, known) in [
            ("logo", &self.logo, &before.logo),
            ("faviconLight", &self.favicon_light, &before.favicon_light),
            ("faviconDark", &self.favicon_dark, &before.favicon_dark),
        ] {
            if named.is_some() && named != known {
                return Err(format!("`{field}` names an image that was not uploaded"));
            }
        }
        let Self { accent_color: _, logo, favicon_light, favicon_dark } = self;
        Ok(BrandingRow { version: before.version, accent_color, logo, favicon_light, favicon_dark })
    }
}

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
enum File {
    Absent,
    /// Written by Tale and untouched.
    Copy(i64),
    /// Written or changed by somebody.
    Written(Result<Form, String>),
}

fn judge(text: Result<Option<String>, ConfigError>) -> File {
    match text {
        Ok(None) => File::Absent,
        Err(error) => File::Written(Err(error.reason())),
        Ok(Some(text)) => match copy::read(&text) {
            Some((version, _)) => File::Copy(version),
            None => File::Written(parse(&text)),
        },
    }
}

fn parse(text: &str) -> Result<Form, String> {
    let value: Value = serde_saphyr::from_str(text).map_err(|_| "it is not YAML".to_owned())?;
    // A file that was cut short must not take away what it named.
    if value.is_null() {
        return Err("it is empty; write {} for Tale's own look".to_owned());
    }
    strict::read(value).map_err(|issue| match issue.path.as_str() {
        "" => format!("the document {}", issue.message),
        path => format!("`{path}` {}", issue.message),
    })
}

fn text(row: &BrandingRow) -> String {
    let body = serde_json::to_value(Form::of(row)).unwrap_or_default();
    let hint = "What you change below counts within half a minute; images are named as they were uploaded.";
    copy::write("the branding", hint, row.version, &format!("{body:#}\n"))
}

/// The states of the files when they were looked at, by the organizations' short names; `None` where that failed.
pub type SeenFiles = HashMap<String, Option<Stamp>>;

impl Identity {
    /// Takes over what operators write into the files of branding, for as long as it is polled.
    pub async fn follow_branding_files(&self) {
        let mut seen = SeenFiles::new();
        let mut failing = false;
        loop {
            match self.look_at_branding_files(&mut seen).await {
                Ok(()) => failing = false,
                Err(problem) if !std::mem::replace(&mut failing, true) => {
                    tracing::warn!(event = "branding.files_unseen", %problem, "the files of branding could not be looked at");
                }
                Err(_) => {}
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// One look at the files that changed since they were `seen`. What is wrong with one organization's file keeps nobody
    /// else's from being taken over.
    ///
    /// # Errors
    /// When the database or the configuration directory cannot be read, or one of the files: the first of these, once
    /// every organization was looked at.
    pub async fn look_at_branding_files(&self, seen: &mut SeenFiles) -> Result<(), Problem> {
        let Some(files) = &self.0.config.files else { return Ok(()) };
        let slugs = files.organizations_with(FOLDER).await.map_err(unreadable)?;
        seen.retain(|slug, _| slugs.contains(slug));
        let mut first = Ok(());
        for slug in slugs {
            let last = seen.get(&slug).copied();
            match self.look_at_branding_file(files, &slug, last.flatten()).await {
                Ok(Some(stamp)) => {
                    seen.insert(slug, Some(stamp));
                }
                Ok(None) => {
                    seen.remove(&slug);
                }
                Err(problem) => {
                    // Once, until it could be looked at again.
                    if last != Some(None) {
                        tracing::warn!(event = "branding.file_unseen", organization = slug, %problem, "the file of an organization's branding could not be looked at");
                    }
                    seen.insert(slug, None);
                    first = first.and(Err(problem));
                }
            }
        }
        first
    }

    /// One look at an organization's file, unless it is as it was at `last`; how it is now; `None` without one.
    async fn look_at_branding_file(
        &self,
        files: &ConfigStore,
        slug: &str,
        last: Option<Stamp>,
    ) -> Result<Option<Stamp>, Problem> {
        let stamp = files.stamp(Scope::Organization(slug), FILE).await.map_err(unreadable)?;
        if stamp.is_none() || stamp == last {
            return Ok(stamp);
        }
        let mut tx = self.begin().await?;
        if let Some(org) = store::organizations::by_slug(&mut tx, slug).await? {
            store::members::lock(&mut tx, org).await?;
            let before = store::branding::get(&mut tx, org).await?.unwrap_or_default();
            self.take_over(&mut tx, files, org, slug, before).await?;
            tx.commit().await?;
        }
        Ok(stamp)
    }

    /// The branding after what the organization's file says was taken over, and whether the file is somebody's. Behind the
    /// lock of the organization's members.
    pub(super) async fn with_file(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        slug: &str,
        before: BrandingRow,
    ) -> Result<(BrandingRow, bool), Problem> {
        match &self.0.config.files {
            Some(files) => self.take_over(conn, files, org, slug, before).await,
            None => Ok((before, false)),
        }
    }

    async fn take_over(
        &self,
        conn: &mut PgConnection,
        files: &ConfigStore,
        org: OrgId,
        slug: &str,
        before: BrandingRow,
    ) -> Result<(BrandingRow, bool), Problem> {
        let text = files.read_texts(Scope::Organization(slug), vec![FILE]).await.pop().unwrap_or(Ok(None));
        let (row, written) = match judge(text) {
            File::Absent => return Ok((before, false)),
            File::Copy(version) if version == before.version => return Ok((before, false)),
            File::Copy(_) => (before, false),
            File::Written(said) => match said.and_then(|form| form.applied(&before)) {
                Ok(next) if next == before => (before, true),
                Ok(next) => {
                    let change = Change::organization("branding.updated").with("source", "file");
                    (self.record_branding(conn, (org, &Actor::System), &before, next, change).await?, true)
                }
                Err(reason) => {
                    tracing::warn!(event = "branding.file_unusable", org.id = %org, reason, "the file of an organization's branding is passed over");
                    return Ok((before, true));
                }
            },
        };
        if let Err(error) = write(files, slug, &row).await {
            tracing::warn!(event = "branding.file_not_written", org.id = %org, reason = error.reason(), "the copy of an organization's branding could not be written");
        }
        Ok((row, written))
    }

    /// Writes the copy of `row`. A folder that cannot be written is passed over, unless somebody's file stands there, which
    /// would count again.
    pub(super) async fn mirror(&self, org: OrgId, slug: &str, row: &BrandingRow, written: bool) -> Result<(), Problem> {
        let Some(files) = &self.0.config.files else { return Ok(()) };
        match write(files, slug, row).await {
            Err(error) if written => Err(Problem::new(
                Code::ConfigNotWritable,
                "The operator's file branding/branding.yml stands for the branding and cannot be replaced. Change it there, or make the file writable for Tale.",
            )
            .because(error)),
            Err(error) => {
                tracing::warn!(event = "branding.file_not_written", org.id = %org, reason = error.reason(), "the copy of an organization's branding could not be written");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

fn unreadable(error: ConfigError) -> Problem {
    Problem::new(Code::InternalError, "The configuration directory cannot be read.").because(error)
}

async fn write(files: &ConfigStore, slug: &str, row: &BrandingRow) -> Result<(), ConfigError> {
    files.write_text(Scope::Organization(slug), FILE, text(row)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> BrandingRow {
        BrandingRow {
            version: 3,
            accent_color: Some("#1e3a8a".into()),
            logo: Some("a".into()),
            ..BrandingRow::default()
        }
    }

    #[test]
    fn a_copy_is_known_until_somebody_touches_it() {
        let copy = text(&row());
        assert_eq!(judge(Ok(Some(copy.clone()))), File::Copy(3));
        let touched = copy.replace("#1e3a8a", "#ffe600");
        let File::Written(Ok(form)) = judge(Ok(Some(touched))) else { panic!("it was not read") };
        let after = form.applied(&row()).unwrap();
        assert_eq!(after, BrandingRow { accent_color: Some("#ffe600".into()), ..row() });
        assert_eq!(judge(Ok(None)), File::Absent);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let why = |text: &str| parse(text).and_then(|form| form.applied(&row())).unwrap_err();
        assert_eq!(why("accentColor: ["), "it is not YAML");
        assert_eq!(why("accentColour: '#000000'"), "`accentColour` is not a known field");
        assert_eq!(why("accentColor: blue"), "`accentColor` must be # and six hexadecimal digits");
        assert_eq!(why("logo: b"), "`logo` names an image that was not uploaded");
        assert_eq!(why("faviconDark: a"), "`faviconDark` names an image that was not uploaded");
        for empty in ["", "# nothing yet\n", "null"] {
            assert!(parse(empty).is_err(), "{empty:?}");
        }
        assert_eq!(parse("{}").unwrap().applied(&row()).unwrap(), BrandingRow { version: 3, ..BrandingRow::default() });
    }
}
