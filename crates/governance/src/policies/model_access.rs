//! Which models people may use (spec 40, 7.2), and whether API keys reach the model endpoints.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::scope::{Person, Scope};
use super::{DefaultModels, Policy, too_long};

/// Most rules.
const MAX_RULES: usize = 200;
/// Most models in one list of a rule.
const MAX_MODELS: usize = 500;
/// Longest name of a model: provider, slash, model.
const MAX_NAME: usize = 265;

/// The policy `model_access`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelAccess {
    /// Whether the rules count.
    pub enabled: bool,
    /// How lists are meant.
    pub mode: AccessMode,
    /// For whom which models.
    pub rules: Vec<AccessRule>,
    /// The endpoints for API keys; independent of `enabled`.
    pub model_api: ModelApi,
}

/// How the lists of rules are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessMode {
    /// Only the allowed models; a blocked one stays blocked.
    Allowlist,
    /// Every model but the blocked ones.
    #[default]
    Blocklist,
}

/// What somebody may use. Models are written `provider/model`; without a provider the name counts
/// at each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessRule {
    /// Whom the rule is about.
    pub scope: Scope,
    /// The person's id or the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    /// What may be used, where the mode is a list of allowed models.
    #[serde(default)]
    pub allowed_models: Vec<String>,
    /// What may not be used, in either mode.
    #[serde(default)]
    pub blocked_models: Vec<String>,
}

/// The endpoints for API keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelApi {
    /// Whether keys may call models.
    pub enabled: bool,
}

impl Policy for ModelAccess {
    fn check(&self) -> Vec<Issue> {
        let mut issues = too_long("rules", self.rules.len(), MAX_RULES);
        for (at, rule) in self.rules.iter().enumerate() {
            let path = format!("rules.{at}");
            issues.extend(rule.scope.issue(rule.scope_id.as_deref(), &path));
            for (name, models) in [("allowedModels", &rule.allowed_models), ("blockedModels", &rule.blocked_models)] {
                issues.extend(too_long(&format!("{path}.{name}"), models.len(), MAX_MODELS));
                let wrong = models.iter().position(|model| !is_name(model));
                issues.extend(wrong.map(|at| {
                    Issue::new(format!("{path}.{name}.{at}"), "must be a model, written as `provider/model`")
                }));
            }
        }
        issues
    }
}

fn is_name(text: &str) -> bool {
    let whole = text.split_once('/').is_none_or(|(provider, model)| !provider.is_empty() && !model.is_empty());
    whole && (1..=MAX_NAME).contains(&text.len()) && !text.contains(|c: char| c.is_control() || c.is_whitespace())
}

/// Whether `entry` of a list is about the model `model` of `provider`.
fn names(entry: &str, provider: &str, model: &str) -> bool {
    entry.split_once('/').map_or(entry == model, |(slug, id)| slug == provider && id == model)
}

impl ModelAccess {
    /// Whether `who` may use a model. Only the rules of the most specific scope that has one for them
    /// decide (POL-9); among several, what any allows is allowed and what any blocks is blocked
    /// (POL-10). Without a rule nothing is restricted.
    #[must_use]
    pub fn permits(&self, who: &Person, provider: &str, model: &str) -> bool {
        if !self.enabled {
            return true;
        }
        let of = |scope: Scope| {
            self.rules.iter().filter(move |rule| rule.scope == scope && scope.matches(rule.scope_id.as_deref(), who))
        };
        let Some(scope) =
            [Scope::User, Scope::Role, Scope::Default].into_iter().find(|scope| of(*scope).next().is_some())
        else {
            return true;
        };
        let lists = |list: &[String]| list.iter().any(|entry| names(entry, provider, model));
        let blocked = of(scope).any(|rule| lists(&rule.blocked_models));
        let listed = self.mode == AccessMode::Blocklist || of(scope).any(|rule| lists(&rule.allowed_models));
        listed && !blocked
    }
}

/// The rules about models as they are for one person now.
#[derive(Debug, Clone)]
pub struct ModelRules {
    /// Who asks.
    pub who: Person,
    /// What may be used.
    pub access: Arc<ModelAccess>,
    /// What is used when nothing is picked.
    pub defaults: Arc<DefaultModels>,
}

impl ModelRules {
    /// Rules that restrict nothing: for work that belongs to the organization as a whole, and for lists
    /// that administrators choose from.
    #[must_use]
    pub fn none() -> Self {
        let who = Person { user: None, role: "owner" };
        Self { who, access: Arc::default(), defaults: Arc::default() }
    }

    /// See [`ModelAccess::permits`].
    #[must_use]
    pub fn permits(&self, provider: &str, model: &str) -> bool {
        self.access.permits(&self.who, provider, model)
    }

    /// See [`DefaultModels::of`].
    pub fn defaults(&self) -> impl Iterator<Item = (&str, &str)> {
        self.defaults.of(&self.who)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tale_core::ids::UserId;

    use super::*;

    fn policy(mode: &str, rules: serde_json::Value) -> ModelAccess {
        serde_json::from_value(json!({ "enabled": true, "mode": mode, "rules": rules })).unwrap()
    }

    fn may(policy: &ModelAccess, who: &Person) -> String {
        ["A", "B", "C", "D"].into_iter().filter(|model| policy.permits(who, "p", model)).collect()
    }

    #[test]
    fn the_most_specific_scope_decides_alone() {
        let anna = Person { user: Some(UserId::new()), role: "member" };
        let (ben, chris) = (Person { user: Some(UserId::new()), ..anna }, Person { user: None, role: "admin" });
        let access = policy(
            "allowlist",
            json!([
                { "scope": "default", "allowedModels": ["p/A", "p/B"] },
                { "scope": "role", "scopeId": "member", "allowedModels": ["p/C", "D"], "blockedModels": ["p/D"] },
                { "scope": "user", "scopeId": anna.user, "allowedModels": ["D"] },
                { "scope": "user", "scopeId": anna.user, "allowedModels": ["p/A", "q/B", "p/C"], "blockedModels": ["C"] },
            ]),
        );
        assert_eq!([may(&access, &anna), may(&access, &ben), may(&access, &chris)], ["AD", "C", "AB"]);
        let off = ModelAccess { enabled: false, ..access };
        assert_eq!(may(&off, &ben), "ABCD");
    }

    #[test]
    fn a_list_of_blocked_models_leaves_the_others_and_no_rule_leaves_all() {
        let who = Person { user: None, role: "editor" };
        let access = policy(
            "blocklist",
            json!([{ "scope": "role", "scopeId": "editor", "allowedModels": ["p/A", "p/B"], "blockedModels": ["p/B"] }]),
        );
        assert_eq!(may(&access, &who), "ACD");
        assert_eq!(may(&access, &Person { role: "member", ..who }), "ABCD");
        assert_eq!(may(&policy("allowlist", json!([{ "scope": "default" }])), &who), "");
    }

    #[test]
    fn a_rule_that_would_never_apply_is_refused_at_its_field() {
        let access = policy(
            "allowlist",
            json!([
                { "scope": "user" },
                { "scope": "role", "scopeId": "boss" },
                { "scope": "default", "scopeId": "member" },
                { "scope": "default", "allowedModels": ["p/a", "p/"] },
            ]),
        );
        let paths: Vec<String> = access.check().into_iter().map(|issue| issue.path).collect();
        assert_eq!(paths, ["rules.0.scopeId", "rules.1.scopeId", "rules.2.scopeId", "rules.3.allowedModels.1"]);
    }
}
