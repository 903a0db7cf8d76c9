//! Answers for programs: one JSON document, the same shape for every command.

use serde_json::{Value, json};
use tale_env::effective::{Effective, Shown};
use tale_env::registry::{Default, Required};
use tale_env::{EnvProblem, Environment, Lang, Origin, Role, Severity, Var};

use super::files::{Difference, Side, Subject};

fn document(value: Value) -> String {
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn answer(command: &str, data: Value) -> String {
    document(json!({ "ok": true, "command": command, "data": data }))
}

/// That there is no answer.
pub(super) fn refusal(command: &str, code: &str, message: &str) -> String {
    document(json!({ "ok": false, "command": command, "error": { "code": code, "message": message } }))
}

fn declared(var: &Var, lang: Lang) -> Value {
    let (default, described) = match var.default {
        Default::Unset => (None, None),
        Default::Value(value) => (Some(value), None),
        Default::Derived(words) => (None, Some(words.get(lang))),
    };
    let (required, unless): (bool, &[&str]) = match var.required {
        Required::No => (false, &[]),
        Required::Always => (true, &[]),
        Required::Unless(others) => (true, others),
    };
    json!({
        "name": var.name,
        "section": var.section.name(),
        "roles": var.roles.iter().map(|role| role.name()).collect::<Vec<_>>(),
        "form": var.kind.describe(lang),
        "default": default,
        "defaultDescription": described,
        "required": required,
        "requiredUnless": unless,
        "secret": var.secret,
        "reaction": var.reaction.name(),
        "use": var.usage.name(),
        "useReason": var.usage.reason().map(|reason| reason.get(lang)),
        "since": var.since,
        "help": var.help.get(lang),
    })
}

/// `tale env list --json`.
pub(super) fn list(vars: &[&Var]) -> String {
    answer("env list", json!({ "variables": vars.iter().map(|var| declared(var, Lang::En)).collect::<Vec<_>>() }))
}

/// `tale env show --json`.
pub(super) fn show(env: &Environment, var: &Var, name: &str, lang: Lang) -> String {
    let raw = env.raw(name).filter(|raw| !raw.trim().is_empty());
    let mut data = declared(var, lang);
    data["set"] = json!(raw.is_some());
    data["value"] = json!(raw.and_then(|raw| tale_env::reader::shown(var, raw)));
    answer("env show", data)
}

/// `tale env check --json`.
pub(super) fn check(found: &[EnvProblem], role: Role, read: &Subject) -> String {
    judged(count(found, Severity::Error), checked(found, role, read))
}

/// `tale env check --process … --json`.
pub(super) fn deployment(each: &[(Role, &Subject, Vec<EnvProblem>)], disagreements: &[EnvProblem]) -> String {
    let all = each.iter().map(|(_, _, found)| found.as_slice()).chain([disagreements]);
    let errors = all.map(|found| count(found, Severity::Error)).sum();
    let processes: Vec<Value> = each.iter().map(|(role, read, found)| checked(found, *role, read)).collect();
    judged(errors, json!({ "processes": processes, "disagreements": problems(disagreements) }))
}

fn count(found: &[EnvProblem], severity: Severity) -> usize {
    found.iter().filter(|problem| problem.severity == severity).count()
}

fn checked(found: &[EnvProblem], role: Role, read: &Subject) -> Value {
    json!({
        "role": role.name(),
        "file": read.file,
        "errors": count(found, Severity::Error),
        "warnings": count(found, Severity::Warning),
        "notes": count(found, Severity::Note),
        "problems": problems(found),
    })
}

fn problems(found: &[EnvProblem]) -> Vec<Value> {
    let problem = |problem: &EnvProblem| {
        json!({
            "severity": problem.severity.name(),
            "variable": problem.variable,
            "value": problem.value,
            "place": problem.place,
            "why": problem.why,
            "fix": problem.fix,
        })
    };
    found.iter().map(problem).collect()
}

fn judged(errors: usize, data: Value) -> String {
    if errors == 0 {
        return answer("env check", data);
    }
    let message = format!("{errors} setting{} wrong", if errors == 1 { " is" } else { "s are" });
    let error = json!({ "code": "CONFIGURATION_INVALID", "message": message });
    document(json!({ "ok": false, "command": "env check", "error": error, "data": data }))
}

/// `tale env effective --json`.
pub(super) fn effective(settings: &[Effective], role: Role) -> String {
    let settings: Vec<Value> = settings
        .iter()
        .map(|setting| {
            let value = if let Shown::Text(text) = &setting.value { Some(text) } else { None };
            let state = match setting.value {
                Shown::Text(_) => "value",
                Shown::Set => "set",
                Shown::Unset => "unset",
                Shown::Derived(_) => "derived",
                Shown::Unusable => "unusable",
            };
            let origin = match &setting.origin {
                None => json!({ "kind": "default" }),
                Some(Origin::Environment) => json!({ "kind": "environment" }),
                Some(Origin::SecretFile(path)) => json!({ "kind": "file", "path": path.display().to_string() }),
                Some(Origin::Line { file, line }) => json!({ "kind": "env-file", "path": file, "line": line }),
                Some(Origin::Dev) => json!({ "kind": "dev" }),
            };
            json!({
                "name": setting.name, "state": state, "value": value, "secret": setting.var.secret, "origin": origin,
            })
        })
        .collect();
    answer("env effective", json!({ "role": role.name(), "settings": settings }))
}

/// `tale env diff --json`.
pub(super) fn diff(differences: &[Difference], names: &[String; 2]) -> String {
    let side = |side: &Side| match side {
        Side::Absent => json!({ "set": false, "value": null }),
        Side::Hidden => json!({ "set": true, "value": null }),
        Side::Value(text) => json!({ "set": true, "value": text }),
    };
    let list: Vec<Value> = differences
        .iter()
        .map(|difference| json!({ "name": difference.name, "a": side(&difference.a), "b": side(&difference.b) }))
        .collect();
    answer("env diff", json!({ "a": names[0], "b": names[1], "differences": list }))
}
