//! The deployment's object store, as the file says that follows the environment, and beside it the
//! buckets of organizations.

use std::path::Path;

use tale_blobs::connection::{Connection, Keys, Outcome, reconcile};
use tale_blobs::embedded::EmbeddedStore;
use tale_blobs::{Blobs, Organizations, StoreConfig};
use tale_core::clock::SharedClock;
use tale_core::net::HostPolicy;
use tale_env::Settings;
use tale_orgfiles::{AgeKeys, ConfigStore};

use crate::platform::StartError;

/// The configuration files of this process.
pub(crate) fn config_store(settings: &Settings, data_dir: &Path) -> Result<ConfigStore, StartError> {
    let files = &settings.config_files;
    let keys = AgeKeys::load(files.age_key.as_ref(), files.age_key_file.as_deref()).map_err(StartError::other)?;
    let directory = files.directory.clone().unwrap_or_else(|| data_dir.join("config"));
    Ok(ConfigStore::new(&directory, keys))
}

/// The stores to use. `private` is a store of this process: where it is changes with every start, so
/// no file names it.
pub(crate) async fn open(
    settings: &Settings,
    files: &ConfigStore,
    private: Option<&EmbeddedStore>,
    clock: SharedClock,
) -> Result<Blobs, StartError> {
    let chosen = if private.is_some() {
        from_environment(settings)
    } else {
        let (outcome, chosen) = reconcile(files, from_environment(settings)).await.map_err(StartError::other)?;
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Kept => tracing::info!(
                event = "object_store.kept",
                "object store (kept): its file names another store than the environment and nobody in `managedBy`"
            ),
            Outcome::Skipped if chosen.is_none() => {
                tracing::warn!(
                    event = "object_store.skipped",
                    "object store (skipped): OBJECT_STORE_ACCESS_KEY and OBJECT_STORE_SECRET_KEY are not set, so uploads are refused"
                );
            }
            outcome => tracing::info!(event = "object_store.reconciled", "object store ({outcome})"),
        }
        chosen
    };
    let organizations =
        Organizations::new(files.clone(), host_policy(settings), clock.clone()).map_err(StartError::other)?;
    let blobs = match chosen {
        Some((connection, keys)) => {
            let config = client(&connection, keys, settings)?;
            match private {
                Some(store) => Blobs::beside(config, clock, store),
                None => Blobs::new(config, clock),
            }
            .map_err(StartError::other)?
        }
        None => Blobs::unconfigured(),
    };
    Ok(blobs.with_organizations(organizations))
}

/// Which addresses that people name may be called.
pub(crate) fn host_policy(settings: &Settings) -> HostPolicy {
    if settings.allow_private_provider_hosts { HostPolicy::PrivateAllowed } else { HostPolicy::PublicOnly }
}

fn client(connection: &Connection, keys: Keys, settings: &Settings) -> Result<StoreConfig, StartError> {
    connection.store_config(keys, settings.site.origins().cloned().collect()).ok_or_else(|| {
        StartError::other(format!("`{}` is no region of AWS S3; set OBJECT_STORE_ENDPOINT", connection.region))
    })
}

fn from_environment(settings: &Settings) -> Option<(Connection, Keys)> {
    let store = &settings.object_store;
    let (access_key_id, secret_access_key) = store.keys.clone()?;
    let connection = Connection {
        region: store.region.clone(),
        endpoint: store.endpoint.clone(),
        force_path_style: store.path_style,
        bucket: store.bucket.clone(),
        prefix: store.prefix.clone(),
        public_endpoint: store.public_endpoint.clone(),
        managed_by: None,
    };
    Some((connection, Keys { access_key_id, secret_access_key }))
}
