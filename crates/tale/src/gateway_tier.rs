//! The `llm-gateway` role: models for agents and scripts with keys of its own. It needs the application
//! database and the key of what is encrypted in it, and keeps nothing itself, so that any number of
//! replicas may run (MOD-131).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::PgPool;
use tale_core::SystemClock;
use tale_core::clock::SharedClock;
use tale_core::crypto::{FieldCipher, hmac_sha256};
use tale_core::net::HostPolicy;
use tale_db::pools::{self, PoolConfig, START_PATIENCE};
use tale_env::{
    EnvProblem, EnvProblems, Environment, GatewayAdmin, GatewayLink, GatewayPorts, GatewaySettings, Role, Settings,
    Severity,
};
use tale_gateway::log::Writer as LogWriter;
use tale_gateway::settings;
use tale_gateway::{Gateway, GatewayParts, Keys, KeysParts, Limits, Log};
use tale_governance::policies::Policies;
use tale_http::llm_gateway::{self, GatewayDoor, GatewayDoorParts};
use tale_http::serve::Stop;
use tale_models::{KeyHosts, Models, ModelsConfig, WireLimits};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::platform::{self, LAST_STEPS, StartError};
use crate::{configuration, gateway_link, memory};

/// How often it is looked whether anybody calls.
const LOOK: Duration = Duration::from_secs(10);
/// Looks between two times that an idle process gives its text back.
const LOOKS_BETWEEN: u32 = 6;

/// Serves until `stop`.
pub(crate) async fn serve(env: Environment, port: Option<u16>, stop: CancellationToken) -> Result<(), StartError> {
    configuration::judge(&env, Role::LlmGateway).map_err(StartError::Settings)?;
    let set = GatewaySettings::from_env(&env).map_err(StartError::Settings)?;
    let ports = GatewayPorts { port: port.unwrap_or(set.ports.port), ..set.ports };
    let listeners = Listeners::bind(Ipv6Addr::UNSPECIFIED.into(), ports).await?;
    let clock: SharedClock = Arc::new(SystemClock);
    let database = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        opened = open(&set) => opened?,
    };
    let previous = set.encryption_previous_hex.iter().map(ExposeSecret::expose_secret);
    let hex = set.encryption_hex.expose_secret();
    let cipher = FieldCipher::from_hex(hex, previous).map_err(StartError::other)?;
    let keys = AgeKeys::load(None, None).map_err(StartError::other)?;
    let directory = set.config_directory.clone().unwrap_or_else(|| platform::data_dir(None).join("config"));
    let files = ConfigStore::new(&directory, keys);
    let policies = Policies::new(database.clone(), clock.clone(), files.clone());
    let models = Models::new(ModelsConfig {
        pool: database.clone(),
        clock: clock.clone(),
        cipher,
        host_policy: host_policy(set.allow_private_provider_hosts),
        key_hosts: key_hosts(set.env_key_hosts.as_deref())?,
        env: Arc::new(env),
        demo_base: None,
        limits: WireLimits::default(),
        policies: policies.clone(),
        files,
    })
    .map_err(StartError::other)?;
    let (log, log_writer) = Log::new(database.clone(), clock.clone());
    let gateway = Gateway::new(GatewayParts {
        models: models.clone(),
        policies: policies.clone(),
        clock: clock.clone(),
        limits: Limits::default(),
        log: Some(log),
    });
    let stopping = CancellationToken::new();
    let part = Part {
        gateway: gateway.clone(),
        keys: keys_of(&database, &models, &clock, hex),
        models: models.clone(),
        admin: set.admin,
        role: Role::LlmGateway,
        metrics_token: set.metrics_token,
        database: database.clone(),
        clock: clock.clone(),
    };
    let (tasks, background) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn({
        let (ledger, background) = (models.ledger().clone(), background.clone());
        async move { ledger.run(background).await }
    });
    tasks.spawn({
        let background = background.clone();
        async move { background.run_until_cancelled(policies.follow()).await }
    });
    tasks.spawn({
        let background = background.clone();
        async move { background.run_until_cancelled(models.follow()).await }
    });
    part.follow(log_writer, &tasks, &background);
    tasks.spawn({
        let background = background.clone();
        async move { background.run_until_cancelled(rest()).await }
    });
    let address = listeners.main.local_addr().map_err(StartError::other)?;
    let server_stop = Stop { drain: stopping.clone(), close: stopping.clone(), budget: set.shutdown_drain };
    let servers = part.serve(listeners, &server_stop);
    platform::announce(Role::LlmGateway, None, Some(address));

    stop.cancelled().await;
    stopping.cancel();
    servers.wait().await;
    background.cancel();
    tasks.close();
    let rest = async {
        gateway.settled().await;
        // The last one that writes the log.
        drop(gateway);
        tasks.wait().await;
        database.close().await;
    };
    if tokio::time::timeout(LAST_STEPS, rest).await.is_err() {
        tracing::warn!(event = "process.cut", "something in the background did not end in time and is cut");
    }
    tracing::info!(event = "process.stopped", "stopped");
    Ok(())
}

/// Gives back what the program has touched of itself, once nobody has called for a while and then now and again.
async fn rest() {
    let (mut known, mut looks) = (None, 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let calls = Some(tale_gateway::metrics::calls());
        if std::mem::replace(&mut known, calls) != calls || tale_gateway::metrics::running() > 0 {
            looks = 0;
            continue;
        }
        if looks == 0 {
            memory::forget_text();
            looks = LOOKS_BETWEEN;
        }
        looks -= 1;
    }
}

/// The line by which operators know the numbers in force.
fn say_limits(settings: &settings::Settings) {
    tracing::info!(
        event = "gateway.concurrency",
        "[llm-gateway] provider concurrency set to {} (built-in), {} (custom)",
        settings.provider_concurrency,
        settings.custom_provider_concurrency
    );
}

/// Where a gateway listens.
pub(crate) struct Listeners {
    pub main: TcpListener,
    pub admin: Option<TcpListener>,
}

impl Listeners {
    /// Binds the ports on an address of this machine.
    pub(crate) async fn bind(address: IpAddr, ports: GatewayPorts) -> Result<Self, StartError> {
        let bind = async |port| platform::bind(SocketAddr::from((address, port)), "LLM_GATEWAY_PORT").await;
        let main = bind(ports.port).await?;
        let admin = match ports.admin.filter(|admin| *admin != ports.port || *admin == 0) {
            Some(port) => Some(bind(port).await?),
            None => None,
        };
        Ok(Self { main, admin })
    }
}

/// What a process of the backend does for the gateway: it hands the settings on, or serves one itself.
pub(crate) struct Beside {
    pub gateway: Gateway,
    pub models: Models,
    pub database: PgPool,
    pub log: Option<LogWriter>,
    pub listeners: Option<Listeners>,
}

impl Beside {
    /// Begins; the returned tracker is empty once nothing is served any more.
    pub(crate) async fn start(
        self,
        settings: &Settings,
        tasks: &TaskTracker,
        background: &CancellationToken,
        stop: &Stop,
    ) -> Result<TaskTracker, StartError> {
        let wanted = gateway_link::settings(&settings.model_calls);
        let link = settings.gateway_link.clone();
        let (Some(listeners), Some(log), Some(GatewayLink { admin, .. })) = (self.listeners, self.log, &link) else {
            if let Some(link) = link {
                tasks.spawn(gateway_link::hand_on(link, wanted, background.clone()));
            }
            let nothing = TaskTracker::new();
            nothing.close();
            return Ok(nothing);
        };
        let clock: SharedClock = Arc::new(SystemClock);
        settings::write(&self.database, &wanted, clock.now()).await.map_err(StartError::other)?;
        gateway_link::finished(&gateway_link::Counts::default());
        let part = Part {
            keys: keys_of(&self.database, &self.models, &clock, settings.secrets.encryption_hex.expose_secret()),
            models: self.models,
            gateway: self.gateway,
            admin: admin.clone(),
            role: Role::All,
            metrics_token: settings.metrics_token.clone(),
            database: self.database,
            clock,
        };
        part.follow(log, tasks, background);
        Ok(part.serve(listeners, stop))
    }
}

/// A gateway of this process.
pub(crate) struct Part {
    pub gateway: Gateway,
    pub keys: Keys,
    pub models: Models,
    pub admin: GatewayAdmin,
    pub role: Role,
    pub metrics_token: Option<secrecy::SecretString>,
    pub database: PgPool,
    pub clock: SharedClock,
}

impl Part {
    /// Keeps it to what others change.
    fn follow(&self, log: LogWriter, tasks: &TaskTracker, background: &CancellationToken) {
        let (retention, heard) = watch::channel(settings::Settings::default().log_retention_days);
        tasks.spawn(log.run(heard));
        let (gateway, database, stop) = (self.gateway.clone(), self.database.clone(), background.clone());
        tasks.spawn(async move {
            let hear = |settings: &settings::Settings| {
                say_limits(settings);
                retention.send_replace(settings.log_retention_days);
            };
            stop.run_until_cancelled(settings::follow(&database, &gateway, hear)).await;
        });
    }

    /// Serves it until `stop`; the returned tracker is empty then.
    pub(crate) fn serve(self, listeners: Listeners, stop: &Stop) -> TaskTracker {
        let door = GatewayDoor::new(GatewayDoorParts {
            gateway: self.gateway,
            keys: self.keys,
            models: self.models,
            admin: (self.admin.username, self.admin.password),
            role: self.role.name(),
            metrics_token: self.metrics_token,
            database: self.database,
            clock: self.clock,
            stopping: stop.drain.clone(),
        });
        let servers = TaskTracker::new();
        let main = llm_gateway::router(door.clone(), listeners.admin.is_none());
        servers.spawn(tale_http::serve(listeners.main, main, stop.clone()));
        if let Some(listener) = listeners.admin {
            servers.spawn(tale_http::serve(listener, llm_gateway::admin_router(door), stop.clone()));
        }
        servers.close();
        servers
    }
}

/// The keys of a deployment, whose secrets follow from its encryption key.
pub(crate) fn keys_of(database: &PgPool, models: &Models, clock: &SharedClock, encryption_hex: &str) -> Keys {
    let seed = hmac_sha256(encryption_hex.to_ascii_lowercase().as_bytes(), b"keys of the model gateway");
    Keys::new(KeysParts { pool: database.clone(), models: models.clone(), clock: clock.clone(), seed })
}

/// Where keys of the environment may go.
pub(crate) fn key_hosts(list: Option<&str>) -> Result<KeyHosts, StartError> {
    let variable = tale_env::registry::TALE_ENV_KEY_HOSTS.name;
    KeyHosts::parse(list.unwrap_or_default()).map_err(|bad| {
        let fix = "Correct it: hosts, separated by commas or white space";
        let problem = EnvProblem::new(Severity::Error, variable, format!("cannot be used: {bad}"), fix);
        StartError::Settings(EnvProblems(vec![problem]))
    })
}

fn host_policy(private: bool) -> HostPolicy {
    if private { HostPolicy::PrivateAllowed } else { HostPolicy::PublicOnly }
}

/// The application database, migrated.
async fn open(settings: &GatewaySettings) -> Result<PgPool, StartError> {
    let config = PoolConfig {
        url: settings.app_url.expose_secret().to_owned(),
        max_connections: settings.app_pool_max,
        ca_file: settings.ca_file.clone(),
        application_name: "tale-llm-gateway",
    };
    let pool = pools::connect_when_up("operational", &config, START_PATIENCE).await.map_err(StartError::other)?;
    pools::refuse_transaction_pooler("operational", &config).await.map_err(StartError::other)?;
    tale_db::migrate::app(&pool).await.map_err(StartError::other)?;
    Ok(pool)
}
