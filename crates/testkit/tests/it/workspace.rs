//! What holds for the whole workspace: which room may import which, who reads the environment,
//! how migrations are numbered.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tale_testkit::workspace;

/// A crate may import only crates of earlier rows. A new edge is a decision: change this table and
/// write it down in ARCHITECTURE.md.
const ROWS: &[&[&str]] = &[
    &["core", "sandbox-wire"],
    &["env"],
    &["db", "orgfiles", "extract", "edge", "egress", "sandbox", "mail"],
    &["blobs", "jobs"],
    &["notices"],
    &["governance"],
    &["identity"],
    &["models", "workshop"],
    &["gateway", "knowledge"],
    &["chat"],
    &["http"],
    &["tale"],
];
/// Crates beside the rows: of ours they may import exactly this.
const FENCED: &[(&str, &[&str])] =
    &[("demo", &["core"]), ("sandboxd", &["sandbox-wire"]), ("testkit", &["core", "db"])];
/// Only ever a development dependency.
const TEST_ONLY: &str = "testkit";

/// Every crate of ours with what it imports, development dependencies apart.
fn rooms() -> Vec<(String, BTreeSet<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let room = |name: &str| name.strip_prefix("tale-").unwrap_or(name).to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let imports = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev") && dependency["path"].is_string())
                .map(|dependency| room(dependency["name"].as_str().unwrap()))
                .collect();
            (room(package["name"].as_str().unwrap()), imports)
        })
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let row_of = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let mut wrong = Vec::new();
    for (name, imports) in rooms() {
        let fence = FENCED.iter().find(|(fenced, _)| *fenced == name).map(|(_, allowed)| *allowed);
        for import in imports {
            let allowed = match (fence, row_of(&name), row_of(&import)) {
                (Some(allowed), ..) => allowed.contains(&import.as_str()),
                // The program wires everything together, the demo model included.
                (None, Some(_), None) => name == "tale" && import != TEST_ONLY,
                (None, Some(own), Some(other)) => other < own,
                (None, None, _) => false,
            };
            if !allowed {
                wrong.push(format!("{name} imports {import}"));
            }
        }
        if fence.is_none() && row_of(&name).is_none() {
            wrong.push(format!("{name} stands in no row of the table"));
        }
    }
    assert!(wrong.is_empty(), "against the order of the rooms (see ROWS in this file):\n  {}", wrong.join("\n  "));
}

/// Every way to a variable of the process, or of the build, past the registry.
const WAYS_TO_THE_ENVIRONMENT: &[&str] = &[
    "env::var(",
    "env::var_os(",
    "env::vars(",
    "env::vars_os(",
    "env::set_var(",
    "env::remove_var(",
    "env::{var",
    "env::var;",
    "env::vars",
    "option_env!(",
    "libc::getenv",
    "arg(env",
    ", env =",
    ", env)",
];

#[test]
fn only_the_environment_room_reads_the_environment() {
    let mut wrong = Vec::new();
    for crate_dir in entries(&workspace().join("crates")) {
        let name = crate_dir.file_name().unwrap().to_string_lossy().into_owned();
        if name == TEST_ONLY {
            continue;
        }
        for file in rust_files(&crate_dir.join("src")) {
            // The snapshot is taken here, and nowhere else in the room either.
            // The program inside sandboxes has an environment of its own, which the spawner makes.
            if file.ends_with("env/src/environment.rs") || file.ends_with("sandboxd/src/settings.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            // Tests at the end of a file may talk to a child process.
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in shipped.lines().enumerate() {
                // clap's attributes stand in `#[arg(…)]`; elsewhere `env` is an ordinary name.
                let attribute = line.contains("#[arg(") || line.contains("#[command(");
                let hit = |way: &&&str| {
                    line.contains(**way) && (attribute || !way.contains("env =") && !way.contains(", env)"))
                };
                if WAYS_TO_THE_ENVIRONMENT.iter().any(|way| hit(&way)) {
                    wrong.push(format!("{}:{}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "declare the variable in crates/env and read it from Settings:\n  {}",
        wrong.join("\n  ")
    );
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let clap = manifest.lines().find(|line| line.starts_with("clap = ")).unwrap();
    assert!(!clap.contains("\"env\""), "clap must not read variables: {clap}");
}

#[test]
fn migrations_are_numbered_without_gaps_or_twins() {
    for database in ["app", "knowledge"] {
        let mut numbers: Vec<u32> = entries(&workspace().join("migrations").join(database))
            .iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
            .map(|path| path.file_name().unwrap().to_string_lossy()[..4].parse().unwrap())
            .collect();
        numbers.sort_unstable();
        let expected: Vec<u32> = (1..=u32::try_from(numbers.len()).unwrap()).collect();
        assert_eq!(numbers, expected, "migrations/{database}");
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
