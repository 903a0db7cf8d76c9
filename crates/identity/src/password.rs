//! Passwords: what a new one must be (PWD-1…4), when one has to be replaced (PWD-7, 8), and how they are hashed and
//! checked (PWD-9).

mod common;
mod due;
mod hashing;

pub use due::Due;
pub use hashing::{Admission, HashCost, HashingError, InLine, PasswordHasher, Verdict};

use tale_core::{Code, Problem};
use tale_governance::policies::PasswordRules;

/// Longest accepted password, in Unicode scalar values (PWD-4).
pub const MAX_CHARS: usize = 256;
/// Longest accepted password, in bytes of UTF-8, which bounds what hashing costs (PWD-4).
pub const MAX_BYTES: usize = 1024;

/// One requirement that a password does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    /// Too short.
    Length,
    /// No upper-case letter.
    Upper,
    /// No lower-case letter.
    Lower,
    /// No digit.
    Digit,
    /// No special character.
    Special,
    /// Longer than we hash.
    MaxLength,
    /// One of the most common passwords, perhaps decorated.
    Common,
    /// The password so far.
    Same,
}

impl Unmet {
    /// The word in `data.failed`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Upper => "upper",
            Self::Lower => "lower",
            Self::Digit => "digit",
            Self::Special => "special",
            Self::MaxLength => "maxLength",
            Self::Common => "common",
            Self::Same => "same",
        }
    }
}

/// Every requirement of `rules` that `password` does not meet.
#[must_use]
pub fn unmet(rules: &PasswordRules, password: &str) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    let length = password.chars().count();
    if length > MAX_CHARS || password.len() > MAX_BYTES {
        return vec![Unmet::MaxLength];
    }
    let has = |test: fn(char) -> bool| password.chars().any(test);
    if length < usize::from(rules.min_length) {
        unmet.push(Unmet::Length);
    }
    if rules.require_upper && !has(char::is_uppercase) {
        unmet.push(Unmet::Upper);
    }
    if rules.require_lower && !has(char::is_lowercase) {
        unmet.push(Unmet::Lower);
    }
    if rules.require_digit && !has(char::is_numeric) {
        unmet.push(Unmet::Digit);
    }
    if rules.require_special && !has(|c| !c.is_alphanumeric() && !c.is_whitespace()) {
        unmet.push(Unmet::Special);
    }
    if common::is_common(password) {
        unmet.push(Unmet::Common);
    }
    unmet
}

/// Refuses a password that does not meet `rules`, naming every unmet requirement.
///
/// # Errors
/// `PASSWORD_POLICY` with `data.failed`.
pub fn check(rules: &PasswordRules, password: &str) -> Result<(), Problem> {
    refusal(rules, &unmet(rules, password)).map_or(Ok(()), Err)
}

/// Refuses a password that is the one so far, as [`check`] does.
///
/// # Errors
/// `PASSWORD_POLICY` with `data.failed`.
pub fn check_another(rules: &PasswordRules, current: &str, new: &str) -> Result<(), Problem> {
    let mut unmet = unmet(rules, new);
    if current == new {
        unmet.push(Unmet::Same);
    }
    refusal(rules, &unmet).map_or(Ok(()), Err)
}

fn refusal(rules: &PasswordRules, unmet: &[Unmet]) -> Option<Problem> {
    if unmet.is_empty() {
        return None;
    }
    let needs: Vec<String> = unmet
        .iter()
        .map(|unmet| match unmet {
            Unmet::Length => format!("at least {} characters", rules.min_length),
            Unmet::Upper => "an upper-case letter".to_owned(),
            Unmet::Lower => "a lower-case letter".to_owned(),
            Unmet::Digit => "a digit".to_owned(),
            Unmet::Special => "a special character".to_owned(),
            Unmet::MaxLength => format!("at most {MAX_CHARS} characters"),
            Unmet::Common => "to be less common".to_owned(),
            Unmet::Same => "to be another one than before".to_owned(),
        })
        .collect();
    let failed: Vec<&str> = unmet.iter().map(|unmet| unmet.text()).collect();
    let problem = Problem::new(Code::PasswordPolicy, format!("The password needs {}.", needs.join(", ")));
    Some(problem.with_data(serde_json::json!({ "failed": failed })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_unmet_requirement_is_named() {
        let policy = PasswordRules::default();
        let unmet = |password: &str| unmet(&policy, password);
        assert_eq!(unmet("abc"), [Unmet::Length, Unmet::Upper, Unmet::Digit, Unmet::Special]);
        assert_eq!(unmet("Zwölf-Boxkämpfer-7"), []);
        assert_eq!(unmet("ПАРОЛЬ ПАРОЛЬ 77"), [Unmet::Lower, Unmet::Special]);
        assert_eq!(unmet(&"aA1!".repeat(65)), [Unmet::MaxLength]);
        assert_eq!(unmet(&"𝕬a1!".repeat(64)), []);
        assert_eq!(unmet(&"𝕬𝕬𝕬𝕬".repeat(65)), [Unmet::MaxLength]);
        assert_eq!(unmet("Password1234!"), [Unmet::Common]);
        let problem = check(&policy, "abc").unwrap_err();
        assert_eq!(problem.code, Code::PasswordPolicy);
        assert_eq!(problem.data.unwrap()["failed"], serde_json::json!(["length", "upper", "digit", "special"]));
    }

    #[test]
    fn length_counts_characters_not_bytes() {
        let policy = PasswordRules {
            min_length: 12,
            require_upper: false,
            require_lower: false,
            require_digit: false,
            require_special: false,
            rotation_days: 0,
        };
        assert_eq!(unmet(&policy, "éèéèéèéèéèé"), [Unmet::Length]);
        assert_eq!(unmet(&policy, "éèéèéèéèéèéè"), []);
    }

    fn rules() -> impl Strategy<Value = PasswordRules> {
        (6u16..20, any::<[bool; 4]>(), 0u16..5).prop_map(
            |(min_length, [upper, lower, digit, special], rotation_days)| PasswordRules {
                rotation_days,
                min_length,
                require_upper: upper,
                require_lower: lower,
                require_digit: digit,
                require_special: special,
            },
        )
    }

    proptest! {
        /// A password is good enough for two organizations exactly when it is for each of them.
        #[test]
        fn two_organizations_are_satisfied_together(a in rules(), b in rules(), password in "[aA1! ]{0,24}") {
            let fits = |rules: PasswordRules| check(&rules, &password).is_ok();
            prop_assert_eq!(fits(a.and(b)), fits(a) && fits(b));
            prop_assert_eq!(a.and(b), b.and(a));
        }
        #[test]
        fn an_accepted_password_meets_every_requirement(password in "\\PC{0,40}") {
            if unmet(&PasswordRules::default(), &password).is_empty() {
                prop_assert!(password.chars().count() >= 12);
                prop_assert!(password.chars().any(char::is_uppercase) && password.chars().any(char::is_lowercase));
            }
        }
    }
}
