//! When a person must choose another password before anything else (PWD-7, 8). Nothing but that and signing out is
//! answered to a session meanwhile; keys go on.

use tale_core::{Code, Problem};

/// Why a password has to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// An admin chose it, and knows it.
    Temporary,
    /// It is older than an organization of the person allows.
    Expired,
}

impl Due {
    /// The word of the interface.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Temporary => "temporary",
            Self::Expired => "expired",
        }
    }

    /// As [`crate::store::accounts::password_due`] says it.
    pub(crate) fn read(text: Option<&str>) -> Option<Self> {
        match text? {
            "temporary" => Some(Self::Temporary),
            _ => Some(Self::Expired),
        }
    }

    /// What everything else answers.
    #[must_use]
    pub fn refusal(self) -> Problem {
        let why = match self {
            Self::Temporary => "Your password was set by an administrator.",
            Self::Expired => "Your password is older than your organization allows.",
        };
        Problem::new(Code::PasswordChangeRequired, format!("{why} Choose another one to go on."))
            .with_data(serde_json::json!({ "reason": self.text() }))
    }
}
