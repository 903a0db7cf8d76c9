//! The extraction process on its own, as the tests of fetched pages start it.

fn main() -> std::process::ExitCode {
    tale_extract::process::child_main(std::env::args_os().skip(1))
}
