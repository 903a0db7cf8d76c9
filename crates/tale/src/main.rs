//! The `tale` program: the command line and the wiring of the roles, nothing else.

mod cli;
mod databases;
mod dev;
mod limits;
mod logging;
mod memory;
mod platform;
mod plugs;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, Role};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The extractor's child process: nothing else of the program may start in it.
    if arguments.next().is_some_and(|first| first == tale_extract::process::SUBCOMMAND) {
        return tale_extract::process::child_main(arguments);
    }
    memory::give_back();
    let cli = Cli::parse();
    let env = tale_env::ProcessEnv;
    if let Err(problem) = logging::start(&env) {
        return fail(&problem);
    }
    limits::raise_open_files();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(64).build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime could not start: {error}")),
    };
    let result = runtime.block_on(async {
        match cli.command {
            Command::Dev(options) => dev::run(&env, options).await,
            Command::Serve { role: Role::All, port } => platform::serve_all(&env, port).await,
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(&problem),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the last words of the command line go to the terminal, whatever the log is set to"
)]
fn fail(problem: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("tale: {}", problem.to_string().trim_end());
    ExitCode::FAILURE
}
