//! The program that hands rules to the kernel.

use std::io::Write;
use std::process::{Command, Stdio};

use super::WallError;

/// Where the program is in the images of distributions, whatever the search path says.
const PLACES: [&str; 3] = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"];

/// Longest complaint that is repeated, in characters.
const MAX_WORDS: usize = 300;

/// Runs `nft` with `input`; what it prints.
pub(super) fn run(arguments: &[&str], input: &str) -> Result<String, WallError> {
    let place = PLACES.into_iter().find(|place| std::path::Path::new(place).exists()).unwrap_or(PLACES[0]);
    let mut child = Command::new(place)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(WallError::NoProgram)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended early says why below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(WallError::NoProgram)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let words: String = words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_WORDS).collect();
    Err(WallError::Refused(words))
}
