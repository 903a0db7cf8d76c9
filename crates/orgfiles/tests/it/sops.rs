//! What we write, `sops` reads; what `sops` writes or edits, we read.

use std::path::{Path, PathBuf};
use std::process::Command;

use tale_orgfiles::AgeKeys;
use tale_orgfiles::sops::{SopsError, decrypt, encrypt, is_encrypted};

use crate::{from_file, inline, key};

/// Every kind of value, nested, with names that are not in order.
const PLAIN: &str = r#"{
  "secretAccessKey": "gr\u00fc\u00dfe \"und\" \n Zeilen \u2603",
  "accessKeyId": "AKIA",
  "empty": "",
  "on": true,
  "off": false,
  "count": 42,
  "share": 0.25,
  "label_unencrypted": "shown",
  "nested": { "z": "last", "a": ["one", "two", { "deep": "three" }] }
}
"#;

/// `None` where the program is not installed.
fn sops() -> Option<PathBuf> {
    let ours = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/tools/sops/bin/sops"));
    let found = if ours.exists() {
        Some(ours.to_owned())
    } else {
        Command::new("sops").arg("--version").output().is_ok().then(|| PathBuf::from("sops"))
    };
    if found.is_none() {
        eprintln!("skipped: the program `sops` is not there (scripts/setup test fetches it)");
    }
    found
}

fn run(sops: &Path, key: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(sops).args(arguments).env("SOPS_AGE_KEY", key).env_remove("SOPS_AGE_KEY_FILE").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn sops_opens_what_we_encrypt_and_we_open_what_sops_encrypts_and_edits() {
    let Some(sops) = sops() else { return };
    let key = key();
    let keys = inline(&key);
    let recipient = keys.recipients().next().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("connection.secrets.json");
    let file = path.to_str().unwrap();

    std::fs::write(&path, encrypt(PLAIN, &keys).unwrap()).unwrap();
    assert_eq!(json(&run(&sops, &key, &["decrypt", file])), json(PLAIN));
    run(&sops, &key, &["set", file, "[\"accessKeyId\"]", "\"changed\""]);
    let edited = json(&decrypt(&std::fs::read_to_string(&path).unwrap(), &keys).unwrap());
    assert_eq!(edited["accessKeyId"], "changed");
    assert_eq!(edited["nested"], json(PLAIN)["nested"]);

    std::fs::write(&path, PLAIN).unwrap();
    run(&sops, &key, &["encrypt", "--in-place", "--age", &recipient, file]);
    let theirs = std::fs::read_to_string(&path).unwrap();
    assert!(is_encrypted(&theirs));
    assert_eq!(json(&decrypt(&theirs, &keys).unwrap()), json(PLAIN));
}

#[test]
fn any_of_several_keys_opens_a_file_here_and_there() {
    let Some(sops) = sops() else { return };
    let (old, new) = (key(), key());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.secrets.json");
    std::fs::write(&path, encrypt(PLAIN, &from_file(&[&old, &new])).unwrap()).unwrap();
    for one in [&old, &new] {
        assert_eq!(json(&run(&sops, one, &["decrypt", path.to_str().unwrap()])), json(PLAIN));
        assert_eq!(json(&decrypt(&std::fs::read_to_string(&path).unwrap(), &inline(one)).unwrap()), json(PLAIN));
    }
}

#[test]
fn values_are_hidden_names_are_not_and_nothing_repeats() {
    let keys = inline(&key());
    let (one, two) = (encrypt(PLAIN, &keys).unwrap(), encrypt(PLAIN, &keys).unwrap());
    assert!(one.contains("\"accessKeyId\": \"ENC[AES256_GCM,") && one.contains("\"shown\""));
    assert!(!one.contains("AKIA") && !one.contains("deep\": \"three"));
    assert_ne!(one, two);
}

#[test]
fn a_file_that_was_tampered_with_does_not_open() {
    let keys = inline(&key());
    let text = encrypt(r#"{"a":"one","b":"two"}"#, &keys).unwrap();
    let mut file = json(&text);
    // Values of the same file exchanged: each is bound to its name.
    let (a, b) = (file["a"].clone(), file["b"].clone());
    (file["a"], file["b"]) = (b, a);
    assert!(matches!(decrypt(&file.to_string(), &keys), Err(SopsError::Damaged { path }) if path == "a"));
    // A value left out: the checksum is over all of them.
    let mut file = json(&text);
    file.as_object_mut().unwrap().remove("b");
    assert!(matches!(decrypt(&file.to_string(), &keys), Err(SopsError::Checksum)));
    // A plain value smuggled in.
    let mut file = json(&text);
    file["a"] = "plain".into();
    assert!(matches!(decrypt(&file.to_string(), &keys), Err(SopsError::Damaged { .. })));
}

#[test]
fn a_missing_or_foreign_key_is_named_as_such() {
    let owner = inline(&key());
    let text = encrypt(PLAIN, &owner).unwrap();
    assert!(matches!(decrypt(&text, &AgeKeys::default()), Err(SopsError::NoKey)));
    let error = decrypt(&text, &inline(&key())).unwrap_err().to_string();
    assert!(error.contains(&owner.recipients().next().unwrap().to_string()), "{error}");
    assert!(matches!(encrypt(PLAIN, &AgeKeys::default()), Err(SopsError::NoKey)));
    for broken in ["[]", "{\"sops\":{}}", "{", ""] {
        assert!(decrypt(broken, &owner).is_err(), "{broken}");
    }
}
