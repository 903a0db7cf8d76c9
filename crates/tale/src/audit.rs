//! `tale audit`: the chain of the audit log, with and without a server.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, SecondsFormat};
use secrecy::ExposeSecret;
use tale_core::crypto::hex_of;
use tale_db::pools::{self, PoolConfig};
use tale_env::Environment;
use tale_governance::audit::log;
use tale_governance::audit::verify::{self, Break, FileError, Head, Proof};
use uuid::Uuid;

use crate::configuration;
use crate::platform::StartError;

/// The file proves nothing, or the chain breaks.
pub(crate) const BROKEN: u8 = 1;
/// The file cannot be read.
pub(crate) const UNREADABLE: u8 = 3;

/// Why the file does not prove its chain.
pub(crate) struct Refused {
    /// What to print.
    pub text: String,
    /// The exit code of the command.
    pub code: u8,
}

/// Follows the chain in `file` and prints what it proves.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
pub(crate) fn verify(file: &Path, heads: &[Head]) -> Result<(), Refused> {
    let started = Instant::now();
    let opened = if file == Path::new("-") {
        verify::file(std::io::stdin(), heads)
    } else {
        File::open(file).map_err(FileError::Read).and_then(|opened| verify::file(opened, heads))
    };
    match opened {
        Ok(proof) => {
            println!("{}", proved(&proof, heads, started.elapsed().as_secs_f64()));
            Ok(())
        }
        Err(FileError::Broken(found)) => Err(Refused { text: located(&found), code: BROKEN }),
        Err(error) => {
            let code = if matches!(error, FileError::Read(_)) { UNREADABLE } else { BROKEN };
            Err(Refused { text: format!("{}: {error}", file.display()), code })
        }
    }
}

fn proved(proof: &Proof, heads: &[Head], seconds: f64) -> String {
    let chain = &proof.chain;
    let first = chain.from.sequence + 1;
    let mut text = format!("intact: entries {first} to {} of {}\n", chain.to.sequence, name(chain.organization));
    text += &format!("exported: {}\n", time(proof.exported_at));
    if first > 1 {
        text += &format!(
            "begins after: {} {} (earlier entries are not in the file)\n",
            first - 1,
            hex_of(&chain.from.hash)
        );
    }
    text += &format!("head: {} {}\n", chain.to.sequence, hex_of(&chain.to.hash));
    if chain.erased > 0 {
        text += &format!("erased: {} entries have personal data that was erased; they verify in full\n", chain.erased);
    }
    for head in heads {
        text += &format!("kept head: {} is in the chain\n", head.sequence);
    }
    if heads.is_empty() {
        text += "note: a chain that was written anew from some place on verifies too; a head kept elsewhere (--head) rules that out\n";
    }
    text += &format!("checked: {} entries in {seconds:.2} s", chain.count);
    text
}

fn located(found: &Break) -> String {
    let mut text = format!("broken: {}", found.message);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!("\n{name}: {value}");
        }
    };
    add("sequence", found.sequence.map(|sequence| sequence.to_string()));
    add("line", found.line.map(|line| line.to_string()));
    add("entry", found.entry.map(|entry| entry.to_string()));
    add("time", found.timestamp.map(time));
    add("expected hash", found.expected.map(|hash| hex_of(&hash)));
    add("found hash", found.found.map(|hash| hex_of(&hash)));
    text
}

fn name(organization: Option<Option<Uuid>>) -> String {
    match organization.flatten() {
        Some(id) => format!("organization {id}"),
        None => "the deployment".to_owned(),
    }
}

fn time(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms);
    time.map_or_else(|| ms.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// Prints the head of every chain.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
pub(crate) async fn heads(env: &Environment) -> Result<(), StartError> {
    let settings = configuration::settle(env, tale_env::Role::All).map_err(StartError::Settings)?;
    let config = PoolConfig {
        url: settings.database.app_url.expose_secret().to_owned(),
        max_connections: 1,
        ca_file: settings.database.ca_file.clone(),
        application_name: "tale audit",
    };
    let pool = pools::connect("operational", &config).await.map_err(StartError::other)?;
    for chain in log::heads(&pool).await.map_err(StartError::other)? {
        let place = chain.organization.map_or_else(|| "deployment".to_owned(), |id| id.to_string());
        println!("{place} {}:{}", chain.head.sequence, hex_of(&chain.head.hash));
    }
    Ok(())
}

/// `SEQUENCE:HASH`.
pub(crate) fn head(text: &str) -> Result<Head, String> {
    Head::parse(text).ok_or_else(|| "write it as SEQUENCE:HASH, as `tale audit heads` prints it".into())
}
