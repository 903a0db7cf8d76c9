//! What is made from the registry stands in the repository as it would be made now.

use std::path::{Path, PathBuf};

use tale_env::Lang;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn same(name: &str, now: &str) {
    let stored = std::fs::read_to_string(root().join(name)).unwrap_or_default();
    assert!(stored == now, "{name} is not what the registry says; run `make env-reference`");
}

#[test]
fn the_example_file_follows_the_registry() {
    same(".env.example", &tale_env::example::example());
}

#[test]
fn the_reference_follows_the_registry() {
    same("docs/environment-reference.md", &tale_env::reference::reference(Lang::En));
    same("docs/environment-reference.de.md", &tale_env::reference::reference(Lang::De));
    same("docs/environment-reference.fr.md", &tale_env::reference::reference(Lang::Fr));
}
