//! Opens both databases and brings them to this release's schema before anything is built on them.

use secrecy::{ExposeSecret, SecretString};
use sqlx::PgPool;
use tale_db::migrate::{self, MigrateError};
use tale_db::pools::{self, PoolConfig, PoolError, START_PATIENCE};
use tale_env::DatabaseSettings;
use tale_knowledge::corpora::{FOREIGN_POOL_MAX, OPEN_MAX};

/// Connections besides the operational pool: live hints, the job queue's listener, changes of policies, those
/// of providers, and the migrator at the start or, after it, the feed of ended sessions.
const OPERATIONAL_EXTRA: u32 = 5;
/// Connections besides the knowledge pool: the keyword index that follows commits, and the migrator.
const KNOWLEDGE_EXTRA: u32 = 2;

/// Why the databases cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabasesError {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
}

/// The pools of the operational and the knowledge database, migrated.
///
/// A server that is not up yet is waited for, unless it is `private`: then we started it ourselves.
pub(crate) async fn open(settings: &DatabaseSettings, private: bool) -> Result<(PgPool, PgPool), DatabasesError> {
    let open = async |name, url: &SecretString, max_connections| {
        let config = PoolConfig {
            url: url.expose_secret().to_owned(),
            max_connections,
            ca_file: settings.ca_file.clone(),
            application_name: "tale",
        };
        let pool = pools::connect_when_up(name, &config, START_PATIENCE).await?;
        if !private {
            pools::refuse_transaction_pooler(name, &config).await?;
        }
        Ok::<_, PoolError>(pool)
    };
    let operational = open("operational", &settings.app_url, settings.app_pool_max).await?;
    let knowledge = open("knowledge", &settings.knowledge_url, settings.knowledge_pool_max).await?;
    migrate::app(&operational).await?;
    migrate::knowledge(&knowledge).await?;
    if !private {
        tracing::info!(
            operational = settings.app_pool_max + OPERATIONAL_EXTRA,
            knowledge = settings.knowledge_pool_max + KNOWLEDGE_EXTRA,
            organization = FOREIGN_POOL_MAX.min(settings.knowledge_pool_max) + 1,
            organizations = OPEN_MAX,
            "this process holds at most so many connections to each database, and to those of organizations, of which it opens so many at a time; count every replica, twice during a rollout"
        );
    }
    Ok((operational, knowledge))
}
