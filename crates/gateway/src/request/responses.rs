//! Requests of OpenAI's Responses interface: what is judged, and which tools there are.

use serde_json::Value;
use tale_core::problem::Problem;

use super::vendor_tool;

/// Longest name of a tool on every wire.
const MAX_NAME: usize = 64;

/// Most tools of one request for a model of another wire.
const MAX_TOOLS: usize = 2_048;

/// How a client wants to be told of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// A function with JSON arguments.
    Function,
    /// A tool whose input is free text.
    Custom,
    /// The shell of the client's machine.
    LocalShell,
}

/// A tool that the client runs, under the name that the model knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    /// The name on the model's wire, which has no namespaces.
    pub(crate) flat: String,
    /// The client's name.
    pub(crate) name: String,
    /// The namespace that the client keeps it in.
    pub(crate) namespace: Option<String>,
    /// What it takes.
    pub(crate) kind: ToolKind,
}

/// A tool and its declaration.
pub(super) struct Declared<'a> {
    pub(super) tool: Tool,
    pub(super) about: &'a Value,
}

/// What a tool of a list is.
enum Class {
    /// One that this gateway knows to translate.
    Known,
    /// One that the client runs, and that only models of this same wire know.
    OnlyHere,
    /// One that agents offer by themselves and that the provider would run: it is left out, so that the
    /// model does without it.
    LeftOut,
    /// One that the provider would run.
    Hosted,
}

fn class(tool: &Value) -> Class {
    match tool["type"].as_str().unwrap_or_default() {
        "function" | "custom" | "local_shell" | "namespace" => Class::Known,
        "apply_patch" => Class::OnlyHere,
        "shell" if tool["environment"]["type"] == "local" => Class::OnlyHere,
        "tool_search" if tool["execution"] == "client" => Class::OnlyHere,
        "image_generation" => Class::LeftOut,
        kind if kind.starts_with("web_search") => Class::LeftOut,
        _ => Class::Hosted,
    }
}

/// Whether a tool is passed over, because agents offer it by themselves and the provider would run it.
pub(super) fn left_out(tool: &Value) -> bool {
    matches!(class(tool), Class::LeftOut)
}

/// The lists of tools of a request, each with its path: the field of that name and what the
/// conversation adds.
pub(super) fn lists<'a>(tools: &'a Value, input: &'a Value) -> Vec<(String, &'a Value)> {
    let mut lists = vec![("tools".to_owned(), tools)];
    for (at, item) in input.as_array().into_iter().flatten().enumerate() {
        if item["type"] == "additional_tools" {
            lists.push((format!("input.{at}.tools"), &item["tools"]));
        }
    }
    lists
}

/// Refuses tools that the provider would run; whether there are tools at all. Only from the list of the
/// request itself can a tool be left out.
pub(super) fn judge(path: &str, tools: &Value) -> Result<bool, Problem> {
    let inner = path != "tools";
    let list = match tools {
        Value::Null => return Ok(false),
        Value::Array(list) => list,
        _ => return Err(Problem::invalid_field(path, "must be a list")),
    };
    for (at, tool) in list.iter().enumerate() {
        let class = class(tool);
        if matches!(class, Class::Hosted) || inner && matches!(class, Class::LeftOut) {
            return Err(vendor_tool(&format!(
                "`{path}.{at}` is a tool that the provider runs. Only tools that you run yourself are offered here: `function`, `custom`, `namespace` and `local_shell`."
            )));
        }
        if tool["type"] == "namespace" {
            judge(&format!("{path}.{at}.tools"), &tool["tools"])?;
        }
    }
    Ok(list.iter().any(|tool| !left_out(tool)))
}

/// The tools of a request by the names that models of the other wires know them by.
pub(super) fn declared<'a>(tools: &'a Value, input: &'a Value) -> Result<Vec<Declared<'a>>, Problem> {
    let mut found = Vec::new();
    for (path, list) in lists(tools, input) {
        collect(&path, list, None, &mut found)?;
    }
    Ok(found)
}

fn collect<'a>(
    path: &str,
    list: &'a Value,
    namespace: Option<&str>,
    found: &mut Vec<Declared<'a>>,
) -> Result<(), Problem> {
    for (at, about) in list.as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.{at}");
        let named = || {
            let name = about["name"].as_str().filter(|name| !name.is_empty());
            name.ok_or_else(|| Problem::invalid_field(&format!("{path}.name"), "is required"))
        };
        let (name, kind) = match (about["type"].as_str(), class(about)) {
            (Some("namespace"), _) if namespace.is_none() => {
                collect(&format!("{path}.tools"), &about["tools"], Some(named()?), found)?;
                continue;
            }
            (Some("function"), _) => (named()?, ToolKind::Function),
            (Some("custom"), _) => (named()?, ToolKind::Custom),
            (Some("local_shell"), _) => ("local_shell", ToolKind::LocalShell),
            (_, Class::LeftOut) => continue,
            _ => return Err(vendor_tool(&format!("`{path}` is a kind of tool that this model does not know."))),
        };
        if found.len() == MAX_TOOLS {
            return Err(Problem::invalid_field(&path, "is one tool too many: this model takes at most 2,048"));
        }
        let mut flat = flat_name(namespace, name);
        if found.iter().any(|other| other.tool.flat == flat) {
            flat.truncate(MAX_NAME - 4);
            flat = format!("{flat}_{}", found.len());
        }
        let tool = Tool { flat, name: name.to_owned(), namespace: namespace.map(str::to_owned), kind };
        found.push(Declared { tool, about });
    }
    Ok(())
}

/// The name of a tool on a wire without namespaces.
pub(super) fn flat_name(namespace: Option<&str>, name: &str) -> String {
    let joined = match namespace {
        Some(space) => format!("{}__{name}", space.trim_end_matches('_')),
        None => name.to_owned(),
    };
    let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    joined.chars().map(|letter| if known(letter) { letter } else { '_' }).take(MAX_NAME).collect()
}
