//! Which model answers when nobody picks one (spec 40, 7.3).

use serde::{Deserialize, Serialize};
use tale_core::ids::TeamId;
use tale_core::problem::Issue;

use super::scope::{Person, Scope};
use super::{Policy, too_long};

/// Most rules.
const MAX_RULES: usize = 200;

/// The policy `default_models`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DefaultModels {
    /// Whether the rules count.
    pub enabled: bool,
    /// For whom which model, in their order.
    pub rules: Vec<DefaultRule>,
}

/// A default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DefaultRule {
    /// Whom the rule is about; not one person.
    pub scope: Scope,
    /// The id of the team, or the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    /// The provider's slug.
    pub provider_name: String,
    /// The provider's name of the model.
    pub model_id: String,
}

impl Policy for DefaultModels {
    fn check(&self) -> Vec<Issue> {
        let mut issues = too_long("rules", self.rules.len(), MAX_RULES);
        for (at, rule) in self.rules.iter().enumerate() {
            let path = format!("rules.{at}");
            if rule.scope == Scope::User {
                issues.push(Issue::new(format!("{path}.scope"), "must be one of \"team\", \"role\", \"default\""));
            } else {
                issues.extend(rule.scope.issue(rule.scope_id.as_deref(), &path));
            }
            issues.extend(super::name_issue(&format!("{path}.providerName"), &rule.provider_name, 64));
            issues.extend(super::name_issue(&format!("{path}.modelId"), &rule.model_id, 200));
        }
        issues
    }
}

impl DefaultModels {
    /// Provider and model of the defaults that are meant for `who`, who is in `teams`, the one that counts first:
    /// those of teams, then of the role, then everybody's, each in their order.
    pub fn of<'a>(&'a self, who: &Person, teams: &'a [TeamId]) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let who = *who;
        let rules = if self.enabled { self.rules.as_slice() } else { &[] };
        [Scope::Team, Scope::Role, Scope::Default].into_iter().flat_map(move |scope| {
            rules
                .iter()
                .filter(move |rule| rule.scope == scope && scope.matches(rule.scope_id.as_deref(), &who, teams))
                .map(|rule| (rule.provider_name.as_str(), rule.model_id.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_role_comes_before_everybody_and_the_order_of_the_table_is_kept() {
        let policy: DefaultModels = serde_json::from_value(json!({ "enabled": true, "rules": [
            { "scope": "default", "providerName": "p", "modelId": "d" },
            { "scope": "role", "scopeId": "editor", "providerName": "p", "modelId": "e1" },
            { "scope": "role", "scopeId": "editor", "providerName": "p", "modelId": "e2" },
        ] }))
        .unwrap();
        let of = |policy: &DefaultModels, role| {
            policy
                .of(&Person { user: None, role, team: None }, &[])
                .map(|(_, model)| model.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&policy, "editor"), ["e1", "e2", "d"]);
        assert_eq!(of(&policy, "member"), ["d"]);
        let (sales, ops) = (TeamId::new(), TeamId::new());
        let teams: DefaultModels = serde_json::from_value(json!({ "enabled": true, "rules": [
            { "scope": "role", "scopeId": "editor", "providerName": "p", "modelId": "e" },
            { "scope": "team", "scopeId": ops, "providerName": "p", "modelId": "o" },
            { "scope": "team", "scopeId": sales, "providerName": "p", "modelId": "s" },
        ] }))
        .unwrap();
        let mine = [sales, ops];
        let of_teams: Vec<&str> =
            teams.of(&Person { user: None, role: "editor", team: None }, &mine).map(|(_, model)| model).collect();
        assert_eq!(of_teams, ["o", "s", "e"], "the first rule of the table counts, not the first team");
        assert!(of(&DefaultModels { enabled: false, ..policy }, "editor").is_empty());
    }
}
