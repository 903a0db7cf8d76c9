//! The file beside a policy: `TALE_CONFIG_DIR/<organization>/governance/<key>.yml`.
//!
//! One that Tale wrote and nobody touched is a copy ([`tale_orgfiles::copy`]). Any other counts.

use serde_json::Value;
use tale_orgfiles::copy;

use super::{Key, problem_words};

/// What a file is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum File {
    /// There is none.
    Absent,
    /// Written by Tale and untouched.
    Copy {
        /// The version of the policy that it shows.
        version: i64,
        /// What it says; why it cannot be used otherwise.
        value: Result<Value, String>,
    },
    /// Written or changed by somebody.
    Written(Result<Value, String>),
}

/// Tells what the text of `key`'s file is; `Err` = it could not be read.
pub(super) fn judge(key: Key, text: Result<Option<String>, String>) -> File {
    let text = match text {
        Ok(None) => return File::Absent,
        Ok(Some(text)) => text,
        Err(reason) => return File::Written(Err(reason)),
    };
    match copy::read(&text) {
        Some((version, body)) => File::Copy { version, value: parse(key, body) },
        None => File::Written(parse(key, &text)),
    }
}

/// The file of a policy.
pub(super) fn text(key: Key, value: &Value, version: i64) -> String {
    let what = format!("the policy {}", key.text());
    copy::write(&what, "What you change below counts within half a minute.", version, &format!("{value:#}\n"))
}

/// A document in YAML, which JSON is as well, with its defaults filled in.
fn parse(key: Key, text: &str) -> Result<Value, String> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map(|at| format!(" (line {}, column {})", at.line(), at.column()));
        format!("it is not YAML{}", place.unwrap_or_default())
    })?;
    // A file that was cut short, or is being written, must not open what it closed (POL-5).
    if value.is_null() {
        return Err("it is empty; write {} for the defaults".to_owned());
    }
    key.normal(value).map_err(|issues| problem_words(&issues))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(text: &str) -> File {
        judge(Key::ModelAccess, Ok(Some(text.to_owned())))
    }

    #[test]
    fn a_copy_is_known_until_somebody_touches_it() {
        let value = Key::ModelAccess.normal(json!({ "enabled": true })).unwrap();
        let copy = text(Key::ModelAccess, &value, 7);
        assert_eq!(judged(&copy), File::Copy { version: 7, value: Ok(value.clone()) });
        let off = Key::ModelAccess.normal(json!({ "enabled": false })).unwrap();
        assert_eq!(judged(&copy.replace("\"enabled\": true", "\"enabled\": false")), File::Written(Ok(off)));
        // The head alone changes nothing.
        assert_eq!(judged(&copy.replace("sha256 ", "sha256 0")), File::Written(Ok(value)));
    }

    #[test]
    fn what_cannot_be_read_says_why_and_is_never_a_policy() {
        let why = |text: &str| match judged(text) {
            File::Written(Err(why)) => why,
            other => panic!("{text:?} was read as {other:?}"),
        };
        assert!(why("enabled: [").starts_with("it is not YAML"));
        assert_eq!(why("enabled: yes please"), "`enabled` must be true or false");
        assert_eq!(why("enabled: true\nrule: []"), "`rule` is not a known field");
        assert_eq!(why("- enabled"), "the document must be an object");
        assert_eq!(
            why("rules:\n  - scope: role"),
            "`rules.0.scopeId` must be one of \"member\", \"editor\", \"developer\", \"admin\", \"owner\""
        );
        let yaml = "# ours\nenabled: true\nmode: allowlist\nrules:\n  - scope: default\n    allowedModels: [p/a]\n";
        assert!(matches!(judged(yaml), File::Written(Ok(_))));
        for empty in ["", "# nothing yet\n", "null", "\t"] {
            assert!(matches!(judged(empty), File::Written(Err(_))), "{empty:?}");
        }
        assert!(matches!(judged("{}"), File::Written(Ok(_))));
    }
}
