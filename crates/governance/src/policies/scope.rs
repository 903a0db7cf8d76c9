//! Whom a rule is about (POL-9, POL-11).

use serde::{Deserialize, Serialize};
use tale_core::ids::{TeamId, UserId};
use tale_core::problem::Issue;

use crate::budgets::ROLES;

/// Whom a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One person.
    User,
    /// Everybody in one team.
    Team,
    /// Everybody with one role.
    Role,
    /// Everybody for whom no other rule is meant.
    Default,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Person {
    /// The person, when the call belongs to one.
    pub user: Option<UserId>,
    /// The role that counts now, one of [`ROLES`].
    pub role: &'static str,
    /// The team that the call acts for, when its key belongs to one.
    pub team: Option<TeamId>,
}

impl Scope {
    /// Every scope, the most specific first: the first that has a rule for somebody decides (POL-9).
    pub(super) const ALL: [Self; 4] = [Self::User, Self::Team, Self::Role, Self::Default];

    /// Whether a rule of this scope and `target` is about `who`, who is in `teams`. A target that nobody has
    /// matches nobody.
    pub(super) fn matches(self, target: Option<&str>, who: &Person, teams: &[TeamId]) -> bool {
        match self {
            Self::Team => target.and_then(|id| id.parse().ok()).is_some_and(|team| teams.contains(&team)),
            Self::User => who.user.is_some_and(|user| target.and_then(|id| id.parse().ok()) == Some(user)),
            Self::Role => target == Some(who.role),
            Self::Default => true,
        }
    }

    /// What is wrong with the target of a rule at `path`: it would never apply (POL-11).
    pub(super) fn issue(self, target: Option<&str>, path: &str) -> Option<Issue> {
        let words = match (self, target) {
            (Self::User, Some(id)) if id.parse::<UserId>().is_ok() => return None,
            (Self::User, _) => "must be the id of a person, because the rule is for one",
            (Self::Team, Some(id)) if id.parse::<TeamId>().is_ok() => return None,
            (Self::Team, _) => "must be the id of a team, because the rule is for one",
            (Self::Role, Some(role)) if ROLES.contains(&role) => return None,
            (Self::Role, _) => "must be one of \"member\", \"editor\", \"developer\", \"admin\", \"owner\"",
            (Self::Default, None) => return None,
            (Self::Default, Some(_)) => "must be left out: the rule is for everybody",
        };
        Some(Issue::new(format!("{path}.scopeId"), words))
    }
}
