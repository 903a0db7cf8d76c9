//! What people set for themselves: language and theme on the account, custom instructions per
//! organization (PREF-3, PREF-4, PREF-7).

use tale_core::ids::UserId;
use tale_core::{Code, Problem};
use tale_db::hints::Topic;
pub use tale_notices::Locale;

use crate::caller::Caller;
use crate::service::Identity;
use crate::store;
use crate::trail;

/// Longest custom instructions, in characters (PREF-4).
pub const MAX_INSTRUCTION_CHARS: usize = 3_200;

/// A theme of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// Always light.
    Light,
    /// Always dark.
    Dark,
    /// As the machine says.
    #[default]
    System,
}

impl Theme {
    /// The word on the wire and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::System => "system",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Light, Self::Dark, Self::System].into_iter().find(|theme| theme.text() == text)
    }
}

/// A member's preferences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preferences {
    /// The language; `None` follows the browser.
    pub locale: Option<Locale>,
    /// The theme.
    pub theme: Theme,
    /// Whether custom instructions go to the model; `None` follows the organization, whose default
    /// is off.
    pub instructions_enabled: Option<bool>,
    /// The custom instructions, kept while they are off.
    pub instructions: String,
}

impl Identity {
    /// The caller's preferences.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn preferences(&self, caller: &Caller) -> Result<Preferences, Problem> {
        let user = person(caller)?;
        let mut conn = self.0.db.acquire().await?;
        let row = store::preferences::get(&mut conn, caller.org, user).await?;
        Ok(row.map_or_else(Preferences::default, |row| Preferences {
            locale: row.locale.as_deref().and_then(Locale::parse),
            theme: Theme::parse(&row.theme).unwrap_or_default(),
            instructions_enabled: row.custom_instructions_enabled,
            instructions: row.custom_instructions,
        }))
    }

    /// Replaces the caller's preferences.
    ///
    /// # Errors
    /// `INVALID_BODY` for instructions that are too long.
    pub async fn set_preferences(&self, caller: &Caller, preferences: &Preferences) -> Result<(), Problem> {
        let user = person(caller)?;
        if preferences.instructions.chars().count() > MAX_INSTRUCTION_CHARS {
            return Err(Problem::invalid_field("customInstructions.text", "must have at most 3200 characters"));
        }
        let mut tx = self.begin().await?;
        store::preferences::set_account(&mut tx, user, preferences.locale.map(Locale::text), preferences.theme.text())
            .await?;
        store::preferences::set_instructions(
            &mut tx,
            caller.org,
            user,
            preferences.instructions_enabled,
            &preferences.instructions,
            self.now(),
        )
        .await?;
        trail::hint(&mut tx, caller.org, Topic::Preferences, Some(user)).await?;
        tx.commit().await?;
        Ok(())
    }
}

fn person(caller: &Caller) -> Result<UserId, Problem> {
    caller.user.ok_or_else(|| Problem::new(Code::OrgForbidden, "This needs the credential of a person."))
}
