//! `tale dev`: every role in one process on embedded defaults.
//!
//! What is set in the environment wins; what is not gets a private service of this process: a
//! Postgres with pgvector on a cluster in the data directory, and an S3-compatible store on a
//! folder in it. Secrets that are missing are made once and kept in the data directory.

pub(crate) mod data_dir;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tale_db::embedded::{self, EmbeddedPostgres};
use tale_env::{EnvSource, Environment, MapEnv, Role, registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::data_dir::DataDir;
use crate::cli::DevOptions;
use crate::configuration;
use crate::gateway_tier::Listeners;
use crate::platform::{self, Parts, StartError};
use crate::reports::Browsers;
use crate::signals;

/// Runs until a signal.
pub(crate) async fn run(env: Environment, options: DevOptions, browsers: Option<Browsers>) -> Result<(), StartError> {
    let stop = signals::stop_token().map_err(StartError::other)?;
    // The port first: it is the mistake that is made most often, and the quickest to tell.
    let listener = platform::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)), "tale dev --port").await?;
    let address = listener.local_addr().map_err(StartError::other)?;
    // Browsers may take localhost for ::1 first: another program there would get what is meant for us.
    drop(platform::bind_if_there(SocketAddr::from((Ipv6Addr::LOCALHOST, address.port())), "tale dev --port").await?);
    let data = DataDir::open(options.data_dir, &env).map_err(StartError::other)?;
    let mut defaults = data.secrets(&env).map_err(StartError::other)?;
    let site = format!("http://localhost:{}", address.port());
    defaults.0.insert(registry::SITE_URL.name.into(), site);
    let other = format!("http://127.0.0.1:{}", address.port());
    defaults.0.insert(registry::ADDITIONAL_SITE_URLS.name.into(), other);
    // A wrong setting is told before anything is started; only the addresses of the databases are to come.
    let stand_ins = [&registry::DATABASE_URL, &registry::KNOWLEDGE_DATABASE_URL]
        .map(|var| (var.name, "postgres://tale@localhost/tale"));
    let complete = env.clone().with_defaults(&defaults).with_defaults(&MapEnv::of(stand_ins));
    configuration::refuse(&complete, Role::All).map_err(StartError::Settings)?;
    let set = |name: &registry::Var| env.is_set(name.name);
    let own_database = !set(&registry::DATABASE_URL) || !set(&registry::KNOWLEDGE_DATABASE_URL);
    let postgres = if own_database { Some(start_postgres(&env, &data).await?) } else { None };
    if let Some(postgres) = &postgres {
        defaults.0.insert("DATABASE_URL".into(), postgres.app_url());
        defaults.0.insert("KNOWLEDGE_DATABASE_URL".into(), postgres.knowledge_url());
    }
    let extras = Extras { demo: options.demo, private_database: postgres.is_some(), browsers };
    let result = start(env, defaults, &data, listener, extras, &stop).await;
    if let Some(postgres) = postgres {
        postgres.stop().await;
    }
    result
}

/// What the process has besides its environment.
struct Extras {
    demo: bool,
    private_database: bool,
    browsers: Option<Browsers>,
}

async fn start(
    env: Environment,
    defaults: MapEnv,
    data: &DataDir,
    listener: TcpListener,
    extras: Extras,
    stop: &CancellationToken,
) -> Result<(), StartError> {
    let mut env = env.with_defaults(&defaults);
    // Files go through the same port, so also through whatever stands before it.
    let public = env.get(registry::SITE_URL.name).unwrap_or_default();
    let store = if !env.is_set(registry::OBJECT_STORE_ENDPOINT.name) {
        let secret = env.get(registry::OBJECT_STORE_SECRET_KEY.name).unwrap_or_default().into();
        let access = env.get(registry::OBJECT_STORE_ACCESS_KEY.name).unwrap_or_default();
        let store =
            tale_blobs::embedded::service(&data.join("objects"), &access, &secret).map_err(StartError::other)?;
        let running = tale_blobs::embedded::Running::start(store.clone()).await.map_err(StartError::other)?;
        env = env.with_defaults(&MapEnv::of([
            (registry::OBJECT_STORE_ENDPOINT.name, running.endpoint.as_str()),
            (registry::OBJECT_STORE_PUBLIC_ENDPOINT.name, &public),
        ]));
        Some((store, running))
    } else {
        None
    };
    let settings = configuration::settle(&env, Role::All).map_err(StartError::Settings)?;
    let gateway = match settings.gateway_ports {
        Some(ports) => Some(Listeners::bind(Ipv4Addr::LOCALHOST.into(), ports).await?),
        None => None,
    };
    let parts = Parts {
        role: Role::All,
        env: Arc::new(env),
        listener: Some(listener),
        data_dir: data.join(""),
        work_dir: data.join("work"),
        worker_identity: Some(format!("dev:{}", data.join("").display())),
        private_database: extras.private_database,
        embedded_store: store.as_ref().map(|(store, _)| store.clone()),
        demo: extras.demo,
        gateway,
        browsers: extras.browsers,
    };
    let result = platform::run(settings, parts, stop.clone()).await;
    if let Some((_, running)) = store {
        running.stop().await;
    }
    result
}

async fn start_postgres(env: &Environment, data: &DataDir) -> Result<EmbeddedPostgres, StartError> {
    let named = env.get(registry::TALE_EMBEDDED_POSTGRES_DIR.name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let installations = embedded::candidates(named.as_deref());
    EmbeddedPostgres::start(&data.join("postgres"), &installations).await.map_err(StartError::other)
}
