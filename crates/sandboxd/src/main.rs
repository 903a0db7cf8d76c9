//! `tale-sandboxd daemon`: what runs first inside a sandbox.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tale_sandboxd::run(&arguments)
}
