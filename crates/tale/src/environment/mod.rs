//! `tale env`: explains and checks the variables that configure Tale, and starts nothing.

mod files;
mod json;
mod paper;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use tale_env::check::{Part, agreement, nearest_name};
use tale_env::effective::effective;
use tale_env::registry;
use tale_env::{Environment, Role, Scope, Severity, check};

use self::files::{FileError, Subject as Read};
use self::paper::Paper;
use crate::cli::{EnvCommand, Subject};

/// The files differ.
const DIFFERENT: u8 = 1;
/// Wrong usage.
pub(crate) const USAGE: u8 = 2;
/// Something that has to be there is not: a file, a free port.
pub(crate) const PRECONDITION: u8 = 3;
/// The configuration keeps a role from starting.
pub(crate) const CONFIGURATION: u8 = 78;

/// Runs the command against the environment of this process.
pub(crate) fn run(command: EnvCommand, env: Environment) -> ExitCode {
    let paper = Paper::new(&env);
    let code = match command {
        EnvCommand::List { role, section, all, json } => {
            let chosen: Vec<_> = registry::vars()
                .filter(|var| role.is_none_or(|role| role.reads(var)))
                .filter(|var| section.is_none_or(|section| var.section == section))
                .collect();
            // A section that is wholly to come would be an empty list.
            let all = all || !chosen.iter().any(|var| var.is_read());
            let hidden = chosen.iter().filter(|var| !all && !var.is_read()).count();
            let listed: Vec<_> = chosen.into_iter().filter(|var| all || var.is_read()).collect();
            put(&if json { json::list(&listed) } else { text::list(&paper, &listed, hidden) });
            0
        }
        EnvCommand::Show { name, lang, json } => {
            match registry::find(&name).or_else(|| registry::secret_of_file(&name)) {
                Some(var) => {
                    put(&if json {
                        json::show(&env, var, &name, lang)
                    } else {
                        text::show(&paper, &env, var, &name, lang)
                    });
                    0
                }
                None => {
                    let near = nearest_name(&name).map_or_else(
                        || "`tale env list --all` names all there are.".to_owned(),
                        |near| format!("Did you mean {near}?"),
                    );
                    refuse(json, "env show", "UNKNOWN_VARIABLE", &format!("{name} is not a variable of Tale. {near}"));
                    USAGE
                }
            }
        }
        EnvCommand::Check { process, json, .. } if !process.is_empty() => deployment(&paper, &process, &env, json),
        EnvCommand::Check { subject, json, .. } => with(subject, env, json, "env check", |read, role| {
            let scope = if read.file.is_some() { Scope::Elsewhere } else { Scope::Here };
            let found = check(&read.env, role, scope);
            let wrong = found.iter().any(|problem| problem.severity == Severity::Error);
            put(&if json { json::check(&found, role, read) } else { text::check(&paper, &found, role, read) });
            if wrong { CONFIGURATION } else { 0 }
        }),
        EnvCommand::Effective { subject, json } => with(subject, env, json, "env effective", |read, role| {
            let settings = effective(&read.env, role);
            put(&if json { json::effective(&settings, role) } else { text::effective(&paper, &settings) });
            0
        }),
        EnvCommand::Diff { file_a, file_b, json } => {
            // Compared as written: what is set around this command does not belong to either.
            match (files::read(&file_a, &|_| None), files::read(&file_b, &|_| None)) {
                (Ok(a), Ok(b)) => {
                    let differences = files::differences(&a, &b);
                    let names = [file_a.display().to_string(), file_b.display().to_string()];
                    put(&if json {
                        json::diff(&differences, &names)
                    } else {
                        text::diff(&paper, &differences, &names)
                    });
                    if differences.is_empty() { 0 } else { DIFFERENT }
                }
                (Err(error), _) | (_, Err(error)) => unreadable(json, "env diff", &error),
            }
        }
        EnvCommand::Example => {
            put(&tale_env::example::example());
            0
        }
        EnvCommand::Reference { lang } => {
            put(&tale_env::reference::reference(lang));
            0
        }
    };
    ExitCode::from(code)
}

/// The check of several processes: each for itself, then all together.
fn deployment(paper: &Paper, processes: &[(Role, PathBuf)], env: &Environment, json: bool) -> u8 {
    let mut parts = Vec::new();
    for (role, file) in processes {
        match Read::of(Some(file), env.clone()) {
            Ok(read) => parts.push((*role, read)),
            Err(error) => return unreadable(json, "env check", &error),
        }
    }
    let shared: Vec<_> = parts
        .iter()
        .map(|(role, read)| Part { role: *role, env: &read.env, name: read.file.as_deref().unwrap_or_default() })
        .collect();
    let disagreements = agreement(&shared);
    let each: Vec<_> =
        parts.iter().map(|(role, read)| (*role, read, check(&read.env, *role, Scope::Elsewhere))).collect();
    let wrong = each
        .iter()
        .flat_map(|(_, _, found)| found)
        .chain(&disagreements)
        .any(|problem| problem.severity == Severity::Error);
    if json {
        put(&json::deployment(&each, &disagreements));
    } else {
        for (role, read, found) in &each {
            put(&text::check(paper, found, *role, read));
        }
        put(&text::agreement(paper, &disagreements));
    }
    if wrong { CONFIGURATION } else { 0 }
}

fn with(
    subject: Subject,
    env: Environment,
    json: bool,
    command: &str,
    ask: impl FnOnce(&Read, tale_env::Role) -> u8,
) -> u8 {
    match Read::of(subject.env_file.as_deref(), env) {
        Ok(read) => ask(&read, subject.role),
        Err(error) => unreadable(json, command, &error),
    }
}

fn unreadable(json: bool, command: &str, error: &FileError) -> u8 {
    refuse(json, command, "FILE_UNREADABLE", &error.to_string());
    PRECONDITION
}

/// Says why there is no answer: to standard error, or as the JSON document.
#[expect(clippy::print_stderr, reason = "the answer of a command line")]
fn refuse(json: bool, command: &str, code: &str, message: &str) {
    if json {
        put(&json::refusal(command, code, message));
    } else {
        eprintln!("tale: {message}");
    }
}

/// Writes an answer. Whoever closed the pipe has read enough.
fn put(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
