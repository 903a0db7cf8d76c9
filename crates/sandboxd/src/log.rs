//! Lines for the container's log. They name events and ids, never commands, values or bodies.

use std::io::Write as _;

/// Writes one line; a log that cannot be written changes nothing.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "[runnerd] {text}");
}
