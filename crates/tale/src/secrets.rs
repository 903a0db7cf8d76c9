//! `tale secrets`: the operator's work on what is stored encrypted.

use std::path::Path;

use secrecy::ExposeSecret;
use tale_core::crypto::FieldCipher;
use tale_db::pools::{self, PoolConfig};
use tale_env::Environment;
use tale_identity::{factors, sso};
use tale_models::rotation;

use crate::platform::{StartError, data_dir};
use crate::{configuration, object_store};

/// Connections of this command: it does one thing after the other.
const CONNECTIONS: u32 = 1;

/// Encrypts database fields and secret files with the present keys.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
pub(crate) async fn rotate(env: &Environment) -> Result<(), StartError> {
    let settings = configuration::settle(env, tale_env::Role::All).map_err(StartError::Settings)?;
    let previous = settings.secrets.encryption_previous_hex.iter().map(ExposeSecret::expose_secret);
    let cipher =
        FieldCipher::from_hex(settings.secrets.encryption_hex.expose_secret(), previous).map_err(StartError::other)?;
    let config = PoolConfig {
        url: settings.database.app_url.expose_secret().to_owned(),
        max_connections: CONNECTIONS,
        ca_file: settings.database.ca_file.clone(),
        application_name: "tale secrets",
    };
    let pool = pools::connect("operational", &config).await.map_err(StartError::other)?;
    let done = rotation::reencrypt(&pool, &cipher, |so_far| {
        println!("provider keys: {} checked, {} encrypted anew", so_far.checked, so_far.rewritten);
    })
    .await
    .map_err(StartError::other)?;
    if done.checked == 0 {
        println!("provider keys: none are stored");
    }
    for id in &done.named {
        println!("provider keys: credential {id} cannot be opened with any configured key; enter its key again");
    }
    let apps = factors::rotation::reencrypt(&pool, &cipher).await.map_err(StartError::other)?;
    println!(
        "authenticator apps: {} checked, {} encrypted anew, {} cannot be opened with any configured key",
        apps.checked, apps.rewritten, apps.unreadable
    );
    let clients = sso::rotation::reencrypt(&pool, &cipher).await.map_err(StartError::other)?;
    println!(
        "identity providers: {} checked, {} encrypted anew, {} cannot be opened with any configured key",
        clients.checked, clients.rewritten, clients.unreadable
    );

    let failed = rotate_files(&settings, &data_dir(settings.data_dir.clone())).await?;
    match done.unreadable + apps.unreadable + clients.unreadable + failed {
        0 => Ok(()),
        count => Err(StartError::other(format!("{count} secrets could not be encrypted with the present keys"))),
    }
}

/// How many files stay as they are because they cannot be opened.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
async fn rotate_files(settings: &tale_env::Settings, data_dir: &Path) -> Result<u64, StartError> {
    if settings.config_files.age_key.is_none() && settings.config_files.age_key_file.is_none() {
        println!("secret files: no age key is configured (SOPS_AGE_KEY), so they are left as they are");
        return Ok(0);
    }
    let done = object_store::config_store(settings, data_dir)?.rotate().await.map_err(StartError::other)?;
    println!(
        "secret files: {} checked, {} encrypted anew",
        done.current.len() + done.rewritten.len() + done.failed.len(),
        done.rewritten.len()
    );
    for (path, error) in &done.failed {
        let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        println!("secret files: {} stays as it is: {reason}", path.display());
    }
    Ok(done.failed.len() as u64)
}
