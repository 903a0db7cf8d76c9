//! What new passwords must be (spec 30, 3.2).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// The policy `password_policy`. Its requirements count when a password is made or changed, never for those that exist;
/// `rotation_days` counts for those that exist. The identity room reads it, for all organizations of a person together.
#[allow(clippy::struct_excessive_bools, reason = "four independent requirements, as they are stored")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PasswordRules {
    /// Fewest characters, 6 to 128.
    pub min_length: u16,
    /// An upper-case letter.
    pub require_upper: bool,
    /// A lower-case letter.
    pub require_lower: bool,
    /// A digit.
    pub require_digit: bool,
    /// A character that is neither letter, digit nor white space.
    pub require_special: bool,
    /// After how many days a password has to be replaced, up to 3,650; 0 = never, which is not written: releases that do
    /// not know it would refuse the whole policy.
    #[serde(skip_serializing_if = "is_zero")]
    pub rotation_days: u16,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(days: &u16) -> bool {
    *days == 0
}

impl Default for PasswordRules {
    fn default() -> Self {
        Self {
            min_length: 12,
            require_upper: true,
            require_lower: true,
            require_digit: true,
            require_special: true,
            rotation_days: 0,
        }
    }
}

impl Policy for PasswordRules {
    fn check(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        if !(6..=128).contains(&self.min_length) {
            issues.push(Issue::new("minLength", "must be a whole number from 6 to 128"));
        }
        if self.rotation_days > 3_650 {
            issues.push(Issue::new("rotationDays", "must be a whole number from 0 to 3650"));
        }
        issues
    }
}

impl PasswordRules {
    /// What satisfies both (PWD-2).
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            min_length: self.min_length.max(other.min_length),
            require_upper: self.require_upper || other.require_upper,
            require_lower: self.require_lower || other.require_lower,
            require_digit: self.require_digit || other.require_digit,
            require_special: self.require_special || other.require_special,
            rotation_days: match (self.rotation_days, other.rotation_days) {
                (0, days) | (days, 0) => days,
                (one, another) => one.min(another),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_that_never_comes_is_not_written_and_reads_as_it_was() {
        let never = serde_json::to_value(PasswordRules::default()).unwrap();
        assert!(never.get("rotationDays").is_none(), "the release before knows no such field");
        assert_eq!(serde_json::from_value::<PasswordRules>(never).unwrap(), PasswordRules::default());
        let monthly = PasswordRules { rotation_days: 30, ..PasswordRules::default() };
        assert_eq!(serde_json::to_value(monthly).unwrap()["rotationDays"], 30);
    }
}
