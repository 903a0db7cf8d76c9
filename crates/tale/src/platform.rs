//! The roles with databases: every HTTP door (`backend-api`), the background jobs
//! (`backend-worker`), or both with the web app in one process (`all`), built from settings.
//!
//! Chat turns run where the doors are. The doors hear of changes by other processes through Postgres,
//! and so do the jobs; nothing else connects the processes.
//!
//! Everything is built before anything runs; stopping goes the other way round: `/ready` turns
//! 503 and live streams end, requests and turns finish, jobs are handed back, pools close.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use tale_blobs::Blobs;
use tale_blobs::embedded::EmbeddedStore;
use tale_chat::{Chat, ChatConfig, WebAccess};
use tale_core::SystemClock;
use tale_core::clock::SharedClock;
use tale_core::crypto::FieldCipher;
use tale_core::page::CursorSigner;
use tale_db::hints::HintHub;
use tale_env::EnvProblems;
use tale_env::{EnvSource, Environment, Role, Settings, SiteSettings, role_of};
use tale_gateway::{Gateway, GatewayParts};
use tale_governance::audit::log::AuditLog;
use tale_governance::audit::{seal, watch};
use tale_governance::policies::Policies;
use tale_http::rate::Limits;
use tale_http::serve::Stop;
use tale_http::web::WebFiles;
use tale_http::{App, AppParts};
use tale_identity::notices::mail::MailNotices;
use tale_identity::{Identity, IdentityConfig};
use tale_jobs::Worker;
use tale_knowledge::corpora::{Corpora, OwnDatabases};
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_knowledge::{Knowledge, KnowledgeParts};
use tale_models::{Models, ModelsConfig, WireLimits};
use tale_orgfiles::FileWatch;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::plugs::{EmbeddingJobs, ModelEmbedder, ModelTranscriber};
use crate::reports::Browsers;
use crate::{
    configuration, databases, environment, gateway_tier, mail, object_store, sandbox, signals, store_tier, web_tier,
};

/// Pause between two rounds of forgetting what has expired.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Pause between two rounds of ending idle sessions (SES-6).
const IDLE_SWEEP: Duration = Duration::from_secs(300);

/// Pause between two looks at an object store that was away at the start.
const STORE_PAUSE: Duration = Duration::from_secs(10);

/// How long background tasks and connections may take to end after the drain.
pub(crate) const LAST_STEPS: Duration = Duration::from_secs(5);

/// Why nothing was started, in words that say what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("{0}")]
    Settings(EnvProblems),
    #[error("port {port} is in use. Stop the program that uses it, or choose another port with `{flag} {other}`")]
    PortInUse { port: u16, flag: &'static str, other: u16 },
    #[error(
        "port {port} is not for ordinary users. Choose one above 1023 with `{flag} 3000`, and let a proxy stand before it"
    )]
    PortForbidden { port: u16, flag: &'static str },
    #[error("{}", chain(.0.as_ref()))]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl StartError {
    /// What the program ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => environment::CONFIGURATION,
            Self::PortInUse { .. } | Self::PortForbidden { .. } => environment::PRECONDITION,
            Self::Other(_) => 1,
        }
    }

    pub(crate) fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

/// An error and its causes, once each.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    if tale_db::embedded::says_disk_full(&text) && !text.contains("Free some") {
        text.push_str(". The disk is full. Free some space, then start again; nothing is lost");
    }
    text
}

/// What the role gets besides its settings.
pub(crate) struct Parts {
    /// Which parts run.
    pub role: Role,
    /// Where credentials that name a variable find their key.
    pub env: Arc<dyn EnvSource>,
    /// For the doors; a worker answers about itself there, or has none.
    pub listener: Option<TcpListener>,
    /// Where the keyword index is kept, in a folder `search` of its own.
    pub data_dir: PathBuf,
    /// Where files are put while they are read.
    pub work_dir: PathBuf,
    /// A name that no other running worker has: leases of a predecessor of that name are free at once.
    pub worker_identity: Option<String>,
    /// Whether the databases are a server of this process, which is known to be direct and up.
    pub private_database: bool,
    /// The store that is served under `/<bucket>/` of the same port.
    pub embedded_store: Option<EmbeddedStore>,
    pub demo: bool,
    /// Where a model gateway is served besides, when one is.
    pub gateway: Option<gateway_tier::Listeners>,
    /// For reports of browsers, when there are any.
    pub browsers: Option<Browsers>,
}

/// Binds a port, or says how to choose another.
pub(crate) async fn bind(address: SocketAddr, flag: &'static str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            StartError::PortInUse { port: address.port(), flag, other: address.port().saturating_add(1) }
        }
        io::ErrorKind::PermissionDenied => StartError::PortForbidden { port: address.port(), flag },
        _ => StartError::other(error),
    })
}

/// [`bind`] to an address that this machine may lack.
pub(crate) async fn bind_if_there(address: SocketAddr, flag: &'static str) -> Result<Option<TcpListener>, StartError> {
    match bind(address, flag).await {
        Ok(listener) => Ok(Some(listener)),
        Err(StartError::PortInUse { port, flag, other }) => Err(StartError::PortInUse { port, flag, other }),
        Err(_) => Ok(None),
    }
}

/// `tale serve`: a role against services of the operator's own.
pub(crate) async fn serve(
    env: Environment,
    role: Option<Role>,
    port: Option<u16>,
    browsers: Option<Browsers>,
) -> Result<(), StartError> {
    let stop = signals::stop_token().map_err(StartError::other)?;
    let role = match role {
        Some(role) => role,
        None => role_of(&env).map_err(|problem| StartError::Settings(EnvProblems(vec![problem])))?,
    };
    match role {
        Role::Platform => return web_tier::serve(&env, port, browsers, stop).await,
        Role::ObjectStore => return store_tier::serve(&env, port, stop).await,
        Role::LlmGateway => return gateway_tier::serve(env, port, stop).await,
        Role::Sandbox => return sandbox::serve(&env, port, stop).await,
        _ => {}
    }
    let settings = configuration::settle(&env, role).map_err(StartError::Settings)?;
    let set = if role == Role::BackendWorker { settings.worker_port } else { Some(settings.port) };
    let listener = match port.or(set) {
        Some(port) => Some(bind_all(port).await?),
        None => None,
    };
    let gateway = match settings.gateway_ports.filter(|_| role == Role::All) {
        Some(ports) => Some(gateway_tier::Listeners::bind(Ipv6Addr::UNSPECIFIED.into(), ports).await?),
        None => None,
    };
    let data_dir = data_dir(settings.data_dir.clone());
    let parts = Parts {
        role,
        env: Arc::new(env),
        listener,
        work_dir: data_dir.join("work"),
        data_dir,
        worker_identity: None,
        private_database: false,
        embedded_store: None,
        demo: false,
        gateway,
        browsers,
    };
    run(settings, parts, stop).await
}

/// Where a role keeps what it may lose, and configuration files unless they are elsewhere.
pub(crate) fn data_dir(set: Option<PathBuf>) -> PathBuf {
    set.unwrap_or_else(|| PathBuf::from("/var/lib/tale"))
}

/// Binds a port of `tale serve` on every address of the machine.
pub(crate) async fn bind_all(port: u16) -> Result<TcpListener, StartError> {
    bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), "tale serve --port").await
}

/// Builds the role and runs it until `stop`.
pub(crate) async fn run(settings: Settings, parts: Parts, stop: CancellationToken) -> Result<(), StartError> {
    let clock: SharedClock = Arc::new(SystemClock);
    for folder in [&parts.data_dir, &parts.work_dir] {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| StartError::other(format!("{} cannot be used: {error}", folder.display())))?;
    }
    let (app_db, corpus) = tokio::select! {
        // A start that waits for its database ends like any other.
        () = stop.cancelled() => return Ok(()),
        opened = databases::open(&settings.database, parts.private_database) => opened.map_err(StartError::other)?,
    };

    let tasks = TaskTracker::new();
    let demo = if parts.demo { Some(start_demo(&tasks, &stop).await?) } else { None };
    let previous = settings.secrets.encryption_previous_hex.iter().map(ExposeSecret::expose_secret);
    let cipher =
        FieldCipher::from_hex(settings.secrets.encryption_hex.expose_secret(), previous).map_err(StartError::other)?;
    let files = object_store::config_store(&settings, &parts.data_dir)?;
    let policies = Policies::new(app_db.clone(), clock.clone(), files.clone());
    let models = Models::new(ModelsConfig {
        pool: app_db.clone(),
        clock: clock.clone(),
        cipher: cipher.clone(),
        host_policy: object_store::host_policy(&settings),
        key_hosts: gateway_tier::key_hosts(settings.env_key_hosts.as_deref())?,
        env: parts.env,
        demo_base: demo.clone(),
        limits: WireLimits::default(),
        policies: policies.clone(),
        files: files.clone(),
    })
    .map_err(StartError::other)?;
    let ledger = models.ledger().clone();
    let config =
        IdentityConfig { cipher: Some(cipher), files: Some(files.clone()), ..IdentityConfig::from_settings(&settings) };
    let identity = Identity::new(app_db.clone(), clock.clone(), config).map_err(StartError::other)?;
    let blobs = object_store::open(&settings, &files, parts.embedded_store.as_ref(), clock.clone()).await?;
    if blobs.is_configured()
        && let Err(error) = blobs.ensure_bucket().await
    {
        // The rest of Tale works without files; uploads say what is wrong.
        tracing::warn!(
            event = "object_store.unavailable", store = ?blobs, error = chain(&error),
            "the object store cannot be used; uploads fail until it can"
        );
        tasks.spawn(await_store(blobs.clone(), stop.clone()));
    }
    let extract = tale_extract::ExtractProgram::this_binary().map_err(StartError::other)?;
    let corpora = Corpora::new(
        corpus.clone(),
        OwnDatabases {
            app: app_db.clone(),
            files: files.clone(),
            policy: object_store::host_policy(&settings),
            ca_file: settings.database.ca_file.clone(),
            pool_max: settings.database.knowledge_pool_max,
        },
    );
    let keyword = Keyword::new(KeywordParts {
        app: app_db.clone(),
        corpora: corpora.clone(),
        data_dir: parts.data_dir.clone(),
        clock: clock.clone(),
        repair: RepairPolicy {
            enabled: !settings.database.index_repair_disabled,
            inline_max_bytes: settings.database.index_repair_inline_max_bytes,
        },
    });
    let knowledge = Knowledge::new(KnowledgeParts {
        app: app_db.clone(),
        corpora: corpora.clone(),
        blobs: blobs.clone(),
        embedder: Arc::new(ModelEmbedder(models.clone())),
        keyword: keyword.clone(),
        clock: clock.clone(),
        temp_dir: parts.work_dir,
        extract: extract.clone(),
    });
    models.on_embedding_changed(Arc::new(EmbeddingJobs(knowledge.clone())));
    knowledge.hear_with(Arc::new(ModelTranscriber(models.clone())));
    knowledge.govern_with(policies.clone());
    let cursors = CursorSigner::new(settings.secrets.instance_hex.expose_secret().as_bytes());
    let chat = Chat::new(ChatConfig {
        db: app_db.clone(),
        models: models.clone(),
        knowledge: knowledge.clone(),
        clock: clock.clone(),
        cursors: cursors.clone(),
        identity: identity.clone(),
        extract,
        web: WebAccess::default(),
    })
    .map_err(StartError::other)?;
    let log = parts.gateway.as_ref().map(|_| tale_gateway::Log::new(app_db.clone(), clock.clone()));
    let (log, log_writer) = log.unzip();
    let gateway = Gateway::new(GatewayParts {
        models: models.clone(),
        policies: policies.clone(),
        clock: clock.clone(),
        limits: tale_gateway::Limits {
            built_in: settings.model_calls.per_built_in_provider,
            custom: settings.model_calls.per_custom_provider,
            idle: settings.model_calls.idle,
        },
        log,
    });
    if parts.role != Role::BackendWorker {
        let calls = settings.model_calls;
        tracing::info!(
            event = "gateway.concurrency",
            "[llm-gateway] provider concurrency set to {} (built-in), {} (custom)",
            calls.per_built_in_provider,
            calls.per_custom_provider
        );
    }
    let workshop = settings
        .sandbox
        .clone()
        .map(|link| sandbox::workshop(link, app_db.clone(), clock.clone(), policies.clone()))
        .transpose()?;
    let (doors, works) = (parts.role != Role::BackendWorker, parts.role != Role::BackendApi);
    let sole = parts.worker_identity.is_some();
    let post = if works { Some(mail::post(&settings, app_db.clone(), clock.clone()).await?) } else { None };
    let worker = post.map(|post| {
        let worker = knowledge.register(Worker::builder()).register::<MailNotices>(Arc::new(post));
        let worker = models.register(worker, settings.retention_paused);
        let worker = match &workshop {
            Some(workshop) => workshop.register(worker),
            None => worker,
        };
        let worker = worker.concurrency(settings.worker_concurrency).drain(settings.shutdown_drain);
        match parts.worker_identity {
            Some(name) => worker.exclusive_identity(name),
            None => worker,
        }
        .build(app_db.clone())
    });

    let audit = AuditLog::new(app_db.clone(), clock.clone());
    let stopping = CancellationToken::new();
    let app = App::new(AppParts {
        site: settings.site.clone(),
        trusted_headers: settings.trusted_headers.clone(),
        clock: clock.clone(),
        identity: identity.clone(),
        models: models.clone(),
        gateway: gateway.clone(),
        knowledge,
        chat: chat.clone(),
        workshop: workshop.clone(),
        policies: policies.clone(),
        audit: audit.clone(),
        blobs,
        file_watch: settings.file_events.then(|| FileWatch::new(files)),
        hints: HintHub::new(),
        cursors,
        limits: Limits::new(clock.clone()),
        web: settings.web_dir.clone().map_or(WebFiles::Embedded, WebFiles::Directory),
        demo: demo.map(String::from),
        role: parts.role.name(),
        metrics_token: settings.metrics_token.clone(),
        outlets: web_tier::outlets(settings.analytics.clone(), parts.browsers, clock),
        database: app_db.clone(),
        corpus,
        stopping: stopping.clone(),
    });
    if doors && let Some(notice) = identity.setup_notice().await.map_err(StartError::other)? {
        tracing::info!("{notice}");
    }

    // Background parts stop after the requests that rely on them.
    let background = CancellationToken::new();
    tasks.spawn({
        let (ledger, background) = (ledger.clone(), background.clone());
        async move { ledger.run(background).await }
    });
    if sole {
        // No other process runs turns here: what an earlier one left is settled before anybody looks.
        if let Err(error) = ledger.close_abandoned().await {
            tracing::error!(%error, "what an earlier process held of the ledger could not be booked, the sweep will try again");
        }
        chat.settle_abandoned_turns().await.map_err(StartError::other)?;
    }
    tasks.spawn({
        let background = background.clone();
        async move { background.run_until_cancelled(policies.follow()).await }
    });
    tasks.spawn({
        let (models, background) = (models.clone(), background.clone());
        async move { background.run_until_cancelled(models.follow()).await }
    });
    tasks.spawn({
        let (models, background) = (models.clone(), background.clone());
        async move { background.run_until_cancelled(models.follow_files()).await }
    });
    if doors {
        tasks.spawn(app.clone().deliver_hints(background.clone()));
        tasks.spawn({
            let (keyword, background) = (keyword.clone(), background.clone());
            async move { keyword.run(background).await }
        });
        tasks.spawn({
            let (chat, background) = (chat.clone(), background.clone());
            async move { chat.run(background).await }
        });
        tasks.spawn({
            let (identity, background) = (identity.clone(), background.clone());
            async move { background.run_until_cancelled(identity.follow_ended_sessions()).await }
        });
    }
    if works {
        tasks.spawn({
            let (identity, background) = (identity.clone(), background.clone());
            async move { background.run_until_cancelled(identity.follow_branding_files()).await }
        });
        tasks.spawn(seal::run(app_db.clone(), background.clone()));
        tasks.spawn(watch::run(audit, background.clone()));
        tasks.spawn(sweep_idle(identity.clone(), background.clone()));
        tasks.spawn(sweep(identity, chat.clone(), background.clone()));
    }
    if works && let Some(workshop) = workshop {
        let stopping = stopping.clone();
        tasks.spawn(async move { workshop.work(sole, stopping).await });
    }
    let jobs = worker.map(|worker| tokio::spawn(worker.run(stopping.clone())));

    let close = CancellationToken::new();
    let server_stop = Stop { drain: stopping.clone(), close: close.clone(), budget: settings.shutdown_drain };
    let beside = gateway_tier::Beside {
        gateway: gateway.clone(),
        models: models.clone(),
        database: app_db.clone(),
        log: log_writer,
        listeners: parts.gateway,
    };
    let gateway_servers = beside.start(&settings, &tasks, &background, &server_stop).await?;
    let address = parts.listener.as_ref().map(TcpListener::local_addr).transpose().map_err(StartError::other)?;
    let server = parts.listener.map(|listener| {
        let routes = match parts.role {
            Role::BackendApi => tale_http::backend_router(app),
            Role::BackendWorker => tale_http::worker_router(app),
            _ => tale_http::router(app),
        };
        let mut router = axum::Router::new().fallback_service(routes);
        if let Some(store) = parts.embedded_store {
            router = router.route_service(&format!("/{}/{{*key}}", settings.object_store.bucket), store);
        }
        tokio::spawn(tale_http::serve(listener, router, server_stop))
    });
    announce(parts.role, Some(&settings.site), address);

    stop.cancelled().await;
    stopping.cancel();
    // Turns and jobs end while the doors are open, so that `/ready` says what goes on.
    let work = async {
        let ended = tokio::join!(chat.drain(settings.shutdown_drain), orderly(jobs));
        close.cancel();
        ended.1
    };
    let ended = tokio::join!(orderly(server), work, gateway_servers.wait());
    if !ended.0 || !ended.1 {
        tracing::error!(event = "process.part_panicked", "a part of the program had panicked");
    }
    background.cancel();
    tasks.close();
    let rest = async {
        gateway.settled().await;
        drop(gateway);
        tasks.wait().await;
        tokio::join!(app_db.close(), corpora.close());
    };
    if tokio::time::timeout(LAST_STEPS, rest).await.is_err() {
        tracing::warn!(
            event = "process.cut",
            seconds = LAST_STEPS.as_secs(),
            "something in the background did not end in time and is cut; it is made good at the next start"
        );
    }
    tracing::info!(event = "process.stopped", "stopped");
    Ok(())
}

/// Waits for a part of the program, if there is one; `false` when it had panicked.
async fn orderly(part: Option<JoinHandle<()>>) -> bool {
    match part {
        Some(task) => task.await.is_ok(),
        None => true,
    }
}

/// The one line for the person at the terminal. The port accepts requests by now.
#[expect(clippy::print_stdout, reason = "the promised line on standard output")]
pub(crate) fn announce(role: Role, site: Option<&SiteSettings>, address: Option<SocketAddr>) {
    let site = site.filter(|_| role != Role::BackendWorker).map(|site| site.address_at(&site.url));
    match address {
        Some(address) => tracing::info!(event = "process.ready", role = role.name(), %address, site, "serving"),
        None => tracing::info!(event = "process.ready", role = role.name(), "working"),
    }
    println!("ready {}", site.as_deref().unwrap_or(role.name()));
}

async fn start_demo(tasks: &TaskTracker, stop: &CancellationToken) -> Result<Url, StartError> {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.map_err(StartError::other)?;
    let address = listener.local_addr().map_err(StartError::other)?;
    let stop = stop.clone();
    tasks.spawn(async move {
        if let Err(error) = tale_demo::serve(listener, stop).await {
            tracing::error!(%error, "the demo model stopped");
        }
    });
    Url::parse(&format!("http://{address}/v1")).map_err(StartError::other)
}

/// Tries the store until it can be used, because its bucket may be ours to create.
async fn await_store(blobs: Blobs, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(STORE_PAUSE)).await.is_some() {
        if blobs.ensure_bucket().await.is_ok() {
            tracing::info!(event = "object_store.available", "the object store can be used now");
            return;
        }
    }
}

/// Ends sessions that are idle, every five minutes.
async fn sweep_idle(identity: Identity, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(IDLE_SWEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if let Err(problem) = identity.sweep_idle().await {
            tracing::warn!(%problem, "idle sessions could not be ended");
        }
    }
}

/// Forgets what has expired, once an hour.
async fn sweep(identity: Identity, chat: Chat, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if let Err(problem) = identity.sweep().await {
            tracing::warn!(%problem, "expired sessions could not be removed");
        }
        if let Err(problem) = chat.sweep().await {
            tracing::warn!(%problem, "expired chat records could not be removed");
        }
    }
}
