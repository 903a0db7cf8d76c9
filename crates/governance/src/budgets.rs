//! Budgets: what an organization, its people and its keys may use, as rules and as arithmetic.
//!
//! - [`BudgetRules`] is the value of the policy `budgets`: what is stored, and what is refused.
//! - [`caps`]: which limits bind a piece of work, how much of them is left, and which of them a
//!   refusal names.
//! - [`period`]: days, weeks and months in UTC.
//!
//! Nothing here reads a clock, a database or a setting, and no amount is a floating-point number:
//! money is whole micro-US-dollars (a millionth), with cents on the wire alone.

pub mod caps;
pub mod period;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tale_core::crypto::sha256;
use tale_core::problem::Issue;
use uuid::Uuid;

pub use caps::{Amounts, Cap, Holder, Kind, Refusal, Room, Subject};
pub use period::Period;

/// Most rules of one organization.
pub const MAX_RULES: usize = 500;

/// Largest limit of tokens and of requests: no sum of uses within it overflows.
pub const MAX_LIMIT: u64 = 1_000_000_000_000_000;

/// Micro-US-dollars in a cent.
pub const MICRO_USD_PER_CENT: u64 = 10_000;

/// The roles that a rule can name, from the least to the most. A disabled seat uses nothing.
pub const ROLES: [&str; 5] = ["member", "editor", "developer", "admin", "owner"];

/// The value of the policy `budgets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetRules {
    /// Whether the rules apply; they stay stored when they do not.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The rules, in the order in which they were written.
    #[serde(default)]
    pub rules: Vec<BudgetRule>,
}

impl Default for BudgetRules {
    fn default() -> Self {
        Self { enabled: true, rules: Vec::new() }
    }
}

fn yes() -> bool {
    true
}

/// Whom a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// One person.
    User,
    /// Everybody of a team, each of them and all together.
    Team,
    /// Everybody with a role, each of them.
    Role,
    /// Everybody, each of them.
    Default,
    /// The organization as a whole.
    Org,
    /// The requests of one API key.
    ApiKey,
    /// Everything done in one project.
    Project,
}

impl Scope {
    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Team => "team",
            Self::Role => "role",
            Self::Default => "default",
            Self::Org => "org",
            Self::ApiKey => "apiKey",
            Self::Project => "project",
        }
    }
}

/// One rule: at most so much within a period. A kind without a limit is not capped by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetRule {
    /// Whom it is about.
    pub scope: Scope,
    /// Which person, team, role or project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    /// Which key, for [`Scope::ApiKey`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_id: Option<String>,
    /// The period, which begins anew by the calendar in UTC.
    pub period: Period,
    /// Most tokens, those of requests and answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Most cost.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "maxCostCents")]
    pub max_cost: Option<Cost>,
    /// Most requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// From which part of a limit on to warn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning_threshold_percent: Option<u8>,
}

impl BudgetRule {
    /// Whom it is about: the id of the person, team, role, project or key.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        match self.scope {
            Scope::ApiKey => self.api_key_id.as_deref().or(self.scope_id.as_deref()),
            _ => self.scope_id.as_deref(),
        }
    }

    /// Its limit of one kind, in tokens, micro-US-dollars or requests.
    #[must_use]
    pub fn limit(&self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Tokens => self.max_tokens,
            Kind::Cost => self.max_cost.map(|cost| cost.0),
            Kind::Requests => self.max_requests,
        }
    }

    /// What tells it from every other rule and from itself as it was before a change, wherever it stands in the list:
    /// the SHA-256 of what it says.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        sha256(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// An amount of money in micro-US-dollars, written in cents. A part of a cent is kept to a hundredth
/// of a hundredth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(pub u64);

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(MICRO_USD_PER_CENT) {
            serializer.serialize_u64(self.0 / MICRO_USD_PER_CENT)
        } else {
            #[allow(clippy::cast_precision_loss, reason = "exact below 2^53 micro-US-dollars, nine billion dollars")]
            serializer.serialize_f64(self.0 as f64 / 10_000.0)
        }
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let cents = f64::deserialize(deserializer)?;
        let micro = (cents * 10_000.0).round();
        if !(0.0..=1e15).contains(&micro) || (cents > 0.0 && micro < 1.0) {
            return Err(serde::de::Error::custom("must be a number of cents greater than 0"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 to 1e15, as just checked")]
        Ok(Self(micro as u64))
    }
}

impl BudgetRules {
    /// What is wrong with the rules, with paths below the value. Empty = they can be saved.
    #[must_use]
    pub fn issues(&self) -> Vec<Issue> {
        if self.rules.len() > MAX_RULES {
            return vec![Issue::new("rules", format!("must have at most {MAX_RULES} entries"))];
        }
        let mut issues = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut refuse = |field: &str, why: String| issues.push(Issue::new(format!("rules.{index}.{field}"), why));
            if let Some((field, why)) = wrong_target(rule) {
                refuse(field, why.to_owned());
            }
            for (field, kind) in
                [("maxTokens", Kind::Tokens), ("maxCostCents", Kind::Cost), ("maxRequests", Kind::Requests)]
            {
                match rule.limit(kind) {
                    Some(0) => refuse(field, "must be greater than 0".to_owned()),
                    Some(limit) if limit > MAX_LIMIT => refuse(field, "is too large".to_owned()),
                    _ => {}
                }
            }
            if Kind::ALL.iter().all(|kind| rule.limit(*kind).is_none()) {
                refuse("maxTokens", "is needed unless maxCostCents or maxRequests is given".to_owned());
            }
            if rule.warning_threshold_percent.is_some_and(|percent| percent > 100) {
                refuse("warningThresholdPercent", "must be from 0 to 100".to_owned());
            }
        }
        issues
    }
}

/// The field that keeps a rule from ever applying to anybody, and why (POL-11).
fn wrong_target(rule: &BudgetRule) -> Option<(&'static str, &'static str)> {
    // as it is compared later: another spelling would never apply
    let uuid = |id: &str| Uuid::parse_str(id).is_ok_and(|parsed| parsed.to_string() == id);
    match rule.scope {
        Scope::Default | Scope::Org if rule.scope_id.is_some() => {
            Some(("scopeId", "must be absent: the rule is about everybody"))
        }
        Scope::Project => Some(("scope", "names what this release does not have yet")),
        scope if scope != Scope::ApiKey && rule.api_key_id.is_some() => {
            Some(("apiKeyId", "belongs to rules of the scope apiKey"))
        }
        Scope::ApiKey if rule.scope_id.is_some() && rule.api_key_id.is_some() => {
            Some(("scopeId", "must be absent beside apiKeyId"))
        }
        Scope::Default | Scope::Org => None,
        Scope::User => match rule.target() {
            Some(id) if uuid(id) => None,
            _ => Some(("scopeId", "must be the id of a person")),
        },
        Scope::Team => match rule.target() {
            Some(id) if uuid(id) => None,
            _ => Some(("scopeId", "must be the id of a team")),
        },
        Scope::Role => match rule.target() {
            Some(id) if ROLES.contains(&id) => None,
            _ => Some(("scopeId", "must be member, editor, developer, admin or owner")),
        },
        Scope::ApiKey => match rule.target() {
            Some(id) if uuid(id) => None,
            _ => Some(("apiKeyId", "must be the id of an API key")),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<BudgetRules, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn a_policy_reads_back_as_it_was_written() {
        let value = json!({ "enabled": true, "rules": [
            { "scope": "org", "period": "monthly", "maxCostCents": 5_000, "warningThresholdPercent": 80 },
            { "scope": "role", "scopeId": "member", "period": "daily", "maxTokens": 1, "maxCostCents": 0.5 },
            { "scope": "apiKey", "apiKeyId": Uuid::nil(), "period": "weekly", "maxRequests": 10 },
        ] });
        let rules = read(value.clone()).unwrap();
        assert_eq!(rules.issues(), []);
        assert_eq!(rules.rules[1].limit(Kind::Cost), Some(5_000));
        assert_eq!(serde_json::to_value(&rules).unwrap(), value);
        assert_eq!(read(json!({})).unwrap(), BudgetRules::default());
    }

    #[test]
    fn a_rule_is_known_again_until_it_says_something_else() {
        let rule = |limit: u64, percent: u64| json!({ "scope": "org", "period": "monthly", "maxTokens": limit, "warningThresholdPercent": percent });
        let of = |value: serde_json::Value| serde_json::from_value::<BudgetRule>(value).unwrap().fingerprint();
        assert_eq!(of(rule(100, 80)), of(rule(100, 80)));
        assert_ne!(of(rule(100, 80)), of(rule(200, 80)));
        assert_ne!(of(rule(100, 80)), of(rule(100, 90)));
    }

    #[test]
    fn a_rule_that_could_never_apply_is_refused() {
        let wrong = |rule: serde_json::Value| {
            read(json!({ "rules": [rule] })).unwrap().issues().into_iter().map(|issue| issue.path).collect::<Vec<_>>()
        };
        let of = |scope: &str, id: serde_json::Value| json!({ "scope": scope, "scopeId": id, "period": "daily", "maxRequests": 1 });
        for (scope, id) in
            [("user", json!(null)), ("user", json!("ada")), ("role", json!("disabled")), ("org", json!("x"))]
        {
            assert_eq!(wrong(of(scope, id)), ["rules.0.scopeId"], "{scope}");
        }
        assert_eq!(wrong(of("apiKey", json!(null))), ["rules.0.apiKeyId"]);
        assert_eq!(wrong(of("team", json!("t"))), ["rules.0.scopeId"]);
        assert_eq!(wrong(of("project", json!(Uuid::nil()))), ["rules.0.scope"]);
        assert_eq!(wrong(json!({ "scope": "org", "period": "daily" })), ["rules.0.maxTokens"]);
        assert_eq!(wrong(json!({ "scope": "org", "period": "daily", "maxRequests": 0 })), ["rules.0.maxRequests"]);
        assert_eq!(
            wrong(json!({ "scope": "org", "period": "daily", "maxTokens": 1, "warningThresholdPercent": 101 })),
            ["rules.0.warningThresholdPercent"]
        );
        for unreadable in [json!({ "maxCostCents": -1 }), json!({ "maxTokens": -1 }), json!({ "maxTokenz": 1 })] {
            let mut rule = json!({ "scope": "org", "period": "daily" });
            rule.as_object_mut().unwrap().extend(unreadable.as_object().unwrap().clone());
            assert!(read(json!({ "rules": [rule] })).is_err());
        }
    }
}
