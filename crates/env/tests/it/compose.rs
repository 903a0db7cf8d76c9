//! deploy/compose.yml gives each service the variables that its role reads, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tale_env::{Role, registry};

/// What the file decides itself, or leaves to the image.
const NOT_PASSED: &[&str] = &["PORT", "TALE_ROLE", "TALE_WEB_DIR"];

/// Whose stop Compose bounds by itself: a longer drain would be cut.
const FIXED_DRAIN: Role = Role::ObjectStore;

/// The names below `environment:` of each service, and of each block that services take over (`<<`).
/// This reads the one file, not YAML.
fn variables(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut service, mut into) = (String::new(), None);
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let (depth, line) = (line.len() - line.trim_start().len(), line.trim());
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        match depth {
            0 => {
                service.clear();
                into = value.trim().strip_prefix('&').map(|block| (2, block.to_owned()));
            }
            2 if into.as_ref().is_none_or(|(at, _)| *at != 2) => {
                service = key.to_owned();
                into = None;
            }
            4 => into = (key == "environment").then(|| (6, service.clone())),
            _ => {}
        }
        let Some((_, name)) = into.as_ref().filter(|(at, _)| *at == depth) else { continue };
        if key == "<<" {
            let blocks = value.trim().trim_matches(['[', ']']).split(',');
            let taken: Vec<String> =
                blocks.flat_map(|block| found[block.trim().trim_start_matches('*')].clone()).collect();
            found.entry(name.clone()).or_default().extend(taken);
        } else {
            found.entry(name.clone()).or_default().insert(key.to_owned());
        }
    }
    found
}

#[test]
fn every_service_gets_what_its_role_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/compose.yml");
    let found = variables(&std::fs::read_to_string(path).unwrap());
    let roles = [
        Role::Platform,
        Role::BackendApi,
        Role::BackendWorker,
        Role::Proxy,
        Role::Db,
        Role::ObjectStore,
        Role::LlmGateway,
        Role::Sandbox,
        Role::SandboxEgress,
    ];
    for role in roles {
        let wanted: BTreeSet<String> = registry::vars()
            .filter(|var| var.is_read() && role.reads(var) && var.family().is_none())
            .filter(|var| !NOT_PASSED.contains(&var.name))
            .filter(|var| role != FIXED_DRAIN || var.name != registry::SHUTDOWN_DRAIN_MS.name)
            .map(|var| var.name.to_owned())
            .collect();
        let service = if role == Role::LlmGateway { "sandbox-llm-gateway" } else { role.name() };
        assert_eq!(found[service], wanted, "{service}");
    }
}
