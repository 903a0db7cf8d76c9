//! The checklist of `docs/asvs.md` names tests; each must be there.

use std::fs;
use std::path::Path;

use tale_testkit::workspace;

/// Whether a function of that name is a test somewhere below `folder`.
fn has_test(folder: &Path, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return has_test(&path, name);
        }
        path.extension().is_some_and(|ending| ending == "rs")
            && fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("fn {name}(")))
    })
}

#[test]
fn every_test_that_the_checklist_of_asvs_names_is_there() {
    let text = fs::read_to_string(workspace().join("docs/asvs.md")).unwrap();
    let named: Vec<(&str, &str)> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|quoted| quoted.split_once(": "))
        .filter(|(room, _)| workspace().join("crates").join(room).is_dir())
        .collect();
    assert!(named.len() > 50, "only {} tests are named", named.len());
    let missing: Vec<_> =
        named.iter().filter(|(room, test)| !has_test(&workspace().join("crates").join(room), test)).collect();
    assert!(missing.is_empty(), "docs/asvs.md names tests that are not there: {missing:#?}");
}
