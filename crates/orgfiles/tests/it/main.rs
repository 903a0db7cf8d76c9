//! Configuration files on a real directory, and the real `sops` program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod sops;
mod store;
mod watch;

use age::x25519::Identity;
use secrecy::ExposeSecret;
use tale_orgfiles::AgeKeys;

/// A new key in the form an operator has it.
fn key() -> String {
    Identity::generate().to_string().expose_secret().to_owned()
}

fn inline(key: &str) -> AgeKeys {
    AgeKeys::load(Some(&key.to_owned().into()), None).unwrap()
}

/// Several keys, as `SOPS_AGE_KEY_FILE` names them.
fn from_file(keys: &[&str]) -> AgeKeys {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("# ours\n\n{}\n", keys.join("\n"))).unwrap();
    AgeKeys::load(None, Some(file.path())).unwrap()
}
