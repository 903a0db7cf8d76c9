//! The `tale` program: the command line and the wiring of the roles, nothing else.

mod audit;
mod cli;
mod configuration;
mod databases;
mod deployment_file;
mod dev;
mod edge;
mod egress;
mod environment;
mod gateway_link;
mod gateway_tier;
mod health;
mod limits;
mod logging;
mod mail;
mod memory;
mod object_store;
mod platform;
mod plugs;
mod reports;
mod sandbox;
mod secrets;
mod signals;
mod store_tier;
mod web_tier;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use tale_env::{Environment, Role, role_of};
use tokio_util::sync::CancellationToken;

use crate::cli::{AuditCommand, Cli, Command, EdgeCommand, MailCommand, SecretsCommand};
use crate::platform::StartError;

/// How long reports may be sent when the rest has ended.
const LAST_REPORTS: Duration = Duration::from_secs(2);

/// A failure that no other exit code names.
const FAILURE: u8 = 1;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The extractor's child process: nothing else of the program may start in it.
    if arguments.next().is_some_and(|first| first == tale_extract::process::SUBCOMMAND) {
        return tale_extract::process::child_main(arguments);
    }
    memory::give_back();
    let cli = Cli::parse();
    // The one look at the environment of the process.
    let env = Environment::of_process();
    let command = match cli.command {
        Command::Env { command } => return environment::run(command, env),
        Command::Edge { command: EdgeCommand::Caddyfile { http_port, health_port } } => {
            let ports = tale_edge::Ports { http: http_port, health: health_port };
            return match edge::print_caddyfile(&env, ports) {
                Ok(()) => ExitCode::SUCCESS,
                Err(problems) => fail(&problems, environment::CONFIGURATION),
            };
        }
        Command::Audit { command: AuditCommand::Verify { file, head } } => {
            return match audit::verify(&file, &head) {
                Ok(()) => ExitCode::SUCCESS,
                Err(refused) => fail(&refused.text, refused.code),
            };
        }
        Command::Healthcheck { role, port } => {
            return match health::check(&env, role.map(Into::into), port) {
                Ok(()) => ExitCode::SUCCESS,
                Err(problem) => fail(&problem, problem.exit_code()),
            };
        }
        other => other,
    };
    let role = role_name(&command, &env);
    if let Command::Serve { port, .. } = &command
        && role == Role::SandboxEgress.name()
    {
        // Before anything has a thread: see there.
        let served = logging::start(&env, role, None).map_err(StartError::Settings).and_then(|()| {
            logging::log_panics();
            egress::serve(&env, *port)
        });
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => fail(&problem, problem.exit_code()),
        };
    }
    let (reports, browsers, sender) = match reports::prepare(&env, role) {
        Ok(Some(prepared)) => (Some(prepared.reports), Some(prepared.browsers), Some(prepared.sender)),
        Ok(None) => (None, None, None),
        Err(problem) => return fail(&problem, environment::CONFIGURATION),
    };
    if let Err(problem) = logging::start(&env, role, reports) {
        return fail(&problem, environment::CONFIGURATION);
    }
    logging::log_panics();
    limits::raise_open_files();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(64).build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime could not start: {error}"), FAILURE),
    };
    let result = runtime.block_on(async {
        let quiet = CancellationToken::new();
        let reporting = sender.map(|sender| tokio::spawn(sender.run(quiet.clone())));
        let result = match command {
            Command::Dev(options) => dev::run(env, options, browsers).await,
            Command::Serve { role, port } => platform::serve(env, role.map(Into::into), port, browsers).await,
            Command::Secrets { command: SecretsCommand::Rotate } => secrets::rotate(&env).await,
            Command::Audit { command: AuditCommand::Heads } => audit::heads(&env).await,
            Command::Mail { command: MailCommand::Status } => mail::status(&env).await,
            Command::Mail { command: MailCommand::Test { address } } => mail::test(&env, &address).await,
            Command::Audit { command: AuditCommand::Verify { .. } }
            | Command::Env { .. }
            | Command::Edge { .. }
            | Command::Healthcheck { .. } => Ok(()),
        };
        if let Some(reporting) = reporting {
            quiet.cancel();
            let _ = tokio::time::timeout(LAST_REPORTS, reporting).await;
        }
        result
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(&problem, problem.exit_code()),
    }
}

/// The role that logs and reports name. One that cannot be told is refused later, with the reason.
fn role_name(command: &Command, env: &Environment) -> &'static str {
    let role = match command {
        Command::Serve { role: Some(role), .. } => (*role).into(),
        Command::Serve { role: None, .. } => role_of(env).unwrap_or(Role::All),
        _ => Role::All,
    };
    role.name()
}

#[expect(
    clippy::print_stderr,
    reason = "the last words of the command line go to the terminal, whatever the log is set to"
)]
fn fail(problem: &dyn std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("tale: {}", problem.to_string().trim_end());
    ExitCode::from(code)
}
