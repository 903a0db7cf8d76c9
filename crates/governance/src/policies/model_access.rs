//! Which models people may use (spec 40, 7.2), and whether API keys reach the model endpoints.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tale_core::ids::TeamId;
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
    /// The id of the person or the team, or the role.
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
    /// Whether `who`, who is in `teams`, may use a model. Only the rules of the most specific scope that has one for them
    /// decide (POL-9); among several, what any allows is allowed and what any blocks is blocked
    /// (POL-10). Without a rule nothing is restricted.
    #[must_use]
    pub fn permits(&self, who: &Person, teams: &[TeamId], provider: &str, model: &str) -> bool {
        if !self.enabled {
            return true;
        }
        let of = |scope: Scope| {
            let about =
                move |rule: &&AccessRule| rule.scope == scope && scope.matches(rule.scope_id.as_deref(), who, teams);
            self.rules.iter().filter(about)
        };
        let Some(scope) = Scope::ALL.into_iter().find(|scope| of(*scope).next().is_some()) else {
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
    /// The teams of whoever asks that a rule names.
    pub teams: Vec<TeamId>,
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
        let who = Person { user: None, role: "owner", team: None };
        Self { who, teams: Vec::new(), access: Arc::default(), defaults: Arc::default() }
    }

    /// See [`ModelAccess::permits`].
    #[must_use]
    pub fn permits(&self, provider: &str, model: &str) -> bool {
        self.access.permits(&self.who, &self.teams, provider, model)
    }

    /// See [`DefaultModels::of`].
    pub fn defaults(&self) -> impl Iterator<Item = (&str, &str)> {
        self.defaults.of(&self.who, &self.teams)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tale_core::ids::UserId;

    use super::*;

    fn policy(mode: &str, rules: serde_json::Value) -> ModelAccess {
        serde_json::from_value(json!({ "enabled": true, "mode": mode, "rules": rules })).unwrap()
    }

    fn may(policy: &ModelAccess, who: &Person) -> String {
        in_teams(policy, who, &[])
    }

    fn in_teams(policy: &ModelAccess, who: &Person, teams: &[TeamId]) -> String {
        ["A", "B", "C", "D"].into_iter().filter(|model| policy.permits(who, teams, "p", model)).collect()
    }

    #[test]
    fn teams_come_between_the_person_and_the_role_and_add_up() {
        let (sales, ops, other) = (TeamId::new(), TeamId::new(), TeamId::new());
        let who = Person { user: Some(UserId::new()), role: "member", team: None };
        let mut rules = vec![
            json!({ "scope": "role", "scopeId": "member", "allowedModels": ["p/D"] }),
            json!({ "scope": "team", "scopeId": sales, "allowedModels": ["p/A", "p/B"] }),
            json!({ "scope": "team", "scopeId": ops, "allowedModels": ["p/C"], "blockedModels": ["p/B"] }),
        ];
        let access = policy("allowlist", json!(rules));
        let seen = |access: &ModelAccess, teams: &[TeamId]| in_teams(access, &who, teams);
        assert_eq!(seen(&access, &[]), "D", "the role decides for somebody who is in no team");
        assert_eq!(seen(&access, &[other]), "D", "nor does a team without a rule change that");
        assert_eq!(seen(&access, &[sales]), "AB");
        assert_eq!(seen(&access, &[sales, ops]), "AC", "what any allows is allowed, what any blocks is blocked");
        rules.push(json!({ "scope": "user", "scopeId": who.user, "allowedModels": ["p/B"] }));
        assert_eq!(seen(&policy("allowlist", json!(rules)), &[sales, ops]), "B", "a rule for the person decides alone");
    }

    proptest! {
        /// Whatever the rules: their order changes nothing, only those of the most specific scope with a rule for
        /// the person count, and a model that one of these blocks is blocked.
        #[test]
        fn the_most_specific_scope_decides_whatever_the_rules(
            drawn in prop::collection::vec((0usize..4, 0usize..2, prop::collection::vec(0usize..3, 0..3), prop::collection::vec(0usize..3, 0..2)), 0..8),
            allowlist in any::<bool>(),
            turn in 0usize..8,
        ) {
            let me = Person { user: Some(UserId::new()), role: "member", team: None };
            let (mine, others) = ([TeamId::new(), TeamId::new()], [TeamId::new(), TeamId::new()]);
            let names = |list: &[usize]| list.iter().map(|at| format!("p/{}", ["A", "B", "C"][*at])).collect::<Vec<_>>();
            let mut rules: Vec<AccessRule> = drawn
                .iter()
                .map(|(scope, hit, allowed, blocked)| AccessRule {
                    scope: Scope::ALL[*scope],
                    scope_id: match scope {
                        0 => Some(if *hit == 0 { me.user.unwrap() } else { UserId::new() }.to_string()),
                        1 => Some(if *hit == 0 { mine[allowed.len() % 2] } else { others[0] }.to_string()),
                        2 => Some(if *hit == 0 { "member" } else { "admin" }.to_owned()),
                        _ => None,
                    },
                    allowed_models: names(allowed),
                    blocked_models: names(blocked),
                })
                .collect();
            let mode = if allowlist { AccessMode::Allowlist } else { AccessMode::Blocklist };
            let access = ModelAccess { enabled: true, mode, rules: rules.clone(), ..ModelAccess::default() };
            let applies = |at: &usize| *at == 3 || drawn.iter().any(|(scope, hit, ..)| scope == at && *hit == 0);
            let deciding: Vec<&(usize, usize, Vec<usize>, Vec<usize>)> = match (0..4).find(|at| applies(at)) {
                Some(at) => drawn.iter().filter(|(scope, hit, ..)| *scope == at && (at == 3 || *hit == 0)).collect(),
                None => Vec::new(),
            };
            for (at, model) in ["A", "B", "C"].into_iter().enumerate() {
                let listed = deciding.iter().any(|(_, _, allowed, _)| allowed.contains(&at));
                let blocked = deciding.iter().any(|(_, _, _, blocked)| blocked.contains(&at));
                let expected = deciding.is_empty() || (!blocked && (!allowlist || listed));
                prop_assert_eq!(access.permits(&me, &mine, "p", model), expected, "{}", model);
            }
            let by = turn % rules.len().max(1);
            rules.rotate_left(by);
            let turned = ModelAccess { rules, ..access.clone() };
            for model in ["A", "B", "C"] {
                prop_assert_eq!(turned.permits(&me, &mine, "p", model), access.permits(&me, &mine, "p", model));
            }
        }
    }

    #[test]
    fn the_most_specific_scope_decides_alone() {
        let anna = Person { user: Some(UserId::new()), role: "member", team: None };
        let (ben, chris) =
            (Person { user: Some(UserId::new()), ..anna }, Person { user: None, role: "admin", team: None });
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
        let who = Person { user: None, role: "editor", team: None };
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
