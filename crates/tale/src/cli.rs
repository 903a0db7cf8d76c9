//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tale_env::{Lang, Section};

/// A self-hosted AI platform for organizations: chat with answers from your own documents.
#[derive(Parser)]
#[command(name = "tale", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run everything in one process on this machine, with a private database and file store
    ///
    /// The first start creates the data directory, a database and secrets in it. Open the address
    /// that is printed and create the owner's account. Set DATABASE_URL, KNOWLEDGE_DATABASE_URL or
    /// OBJECT_STORE_ENDPOINT to use services of your own instead of the private ones.
    Dev(DevOptions),
    /// Run a role against services of your own, configured by environment variables
    ///
    /// Everything is checked before anything starts; `tale env check --role ROLE` does the same
    /// without starting.
    Serve {
        /// What this process does; the variable ROLE, then TALE_ROLE, else all, when left out
        role: Option<Role>,
        /// Port to listen on; the variable PORT, else 3005 (platform: 3000, object-store: 9000), when
        /// left out; sandbox-egress: 3128, whatever PORT says. For backend-worker TALE_WORKER_PORT, else none;
        /// for llm-gateway LLM_GATEWAY_PORT, else 8080; for sandbox SANDBOX_PORT, else 8003
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
    },
    /// Ask the process of this container whether it lives, for a health check without other programs
    ///
    /// Exit codes: 0 it answers, 1 it does not, 2 the role has nothing that answers.
    Healthcheck {
        /// Which role; as `tale serve` when left out
        role: Option<HealthRole>,
        /// Port it listens on; as `tale serve` when left out
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
    },
    /// Work on the secrets that this deployment stores, configured like `tale serve`
    ///
    /// Exit codes: 0 everything is encrypted with the present keys, 1 something could not be done,
    /// 2 wrong usage, 78 the configuration cannot be used.
    #[command(arg_required_else_help = true)]
    Secrets {
        #[command(subcommand)]
        command: SecretsCommand,
    },
    /// Prove that the audit log was not changed
    ///
    /// Exit codes: 0 the chain holds, 1 it does not or nothing is proved, 2 wrong usage, 3 the file
    /// cannot be read, 78 the configuration cannot be used.
    #[command(arg_required_else_help = true)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Try the mail server that notifications are delivered through, or tell how delivery stands
    ///
    /// Exit codes: 0 the server took the mail, or the status was told; 1 it did not, or the database
    /// does not answer; 2 wrong usage; 78 no mail server is configured, or not in a way that can be used.
    #[command(arg_required_else_help = true)]
    Mail {
        #[command(subcommand)]
        command: MailCommand,
    },
    /// Configure the proxy in front, from the same environment variables
    ///
    /// Exit codes: 0 written, 2 wrong usage, 78 the configuration cannot be used.
    #[command(arg_required_else_help = true)]
    Edge {
        #[command(subcommand)]
        command: EdgeCommand,
    },
    /// Explain and check the environment variables that configure Tale
    ///
    /// Exit codes: 0 nothing is wrong (diff: nothing differs), 1 the files differ, 2 wrong usage,
    /// 3 a file cannot be read, 78 the configuration keeps the role from starting.
    #[command(arg_required_else_help = true)]
    Env {
        #[command(subcommand)]
        command: EnvCommand,
    },
}

/// What `tale edge` can do.
#[derive(Subcommand)]
pub(crate) enum EdgeCommand {
    /// Print a Caddyfile for the TLS mode, the origins and the upstreams of this environment
    Caddyfile {
        /// Port of plain HTTP: redirects and certificate challenges, or everything with TLS_MODE=external
        #[arg(long, default_value_t = 80, value_name = "PORT")]
        http_port: u16,
        /// Port of the proxy's own health, on its own machine only
        #[arg(long, default_value_t = crate::health::PROXY_PORT, value_name = "PORT")]
        health_port: u16,
    },
}

/// What `tale mail` can do.
#[derive(Subcommand)]
pub(crate) enum MailCommand {
    /// Send one mail, with the variables SMTP_… of this environment, and say what the server said
    ///
    /// Needs no database and no running Tale.
    Test {
        /// Whom to send it to
        address: String,
    },
    /// Say whether the workers deliver mail, how much waits, and when a delivery failed last
    ///
    /// Asks the database of this environment. Names no person.
    Status,
}

/// What `tale audit` can do.
#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Follow the chain of an export in JSON Lines; needs neither a server nor a configuration
    ///
    /// Prints the range that is proved, or the first entry that breaks the chain. An export with a
    /// filter leaves entries out and cannot be verified.
    Verify {
        /// The export; `-` reads standard input
        file: PathBuf,
        /// A head that was kept elsewhere: the chain must go through it; may be given several times
        #[arg(long, value_name = "SEQUENCE:HASH", value_parser = crate::audit::head)]
        head: Vec<tale_governance::audit::verify::Head>,
    },
    /// Print the end of every organization's chain, to be kept elsewhere
    ///
    /// One line for each: the organization, then SEQUENCE:HASH. Configured like `tale serve`.
    Heads,
}

/// What `tale secrets` can do.
#[derive(Subcommand)]
pub(crate) enum SecretsCommand {
    /// Encrypt everything that is stored with the present keys, after a key was changed
    ///
    /// Put the new key into ENCRYPTION_SECRET_HEX and the old one into
    /// ENCRYPTION_SECRET_PREVIOUS_HEX (for secret files: both into the file of SOPS_AGE_KEY_FILE),
    /// restart every process, then run this. When it ends with exit code 0, nothing needs the old
    /// key any more. It works beside a running deployment and may be repeated.
    Rotate,
}

/// What `tale env` can be asked.
#[derive(Subcommand)]
pub(crate) enum EnvCommand {
    /// List variables: those this release reads, or with --all every one it knows
    List {
        /// Only those that a process of this role reads
        #[arg(long, value_name = "ROLE", value_parser = role_parser())]
        role: Option<tale_env::Role>,
        /// Only those of this section
        #[arg(long, value_name = "SECTION", value_parser = section_parser())]
        section: Option<Section>,
        /// Also those that have no effect in this release
        #[arg(long)]
        all: bool,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Explain one variable, with its value in this environment unless it is a secret
    Show {
        /// Name of the variable
        name: String,
        /// Language of the explanation
        #[arg(long, default_value = "en", value_parser = lang_parser())]
        lang: Lang,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Name everything that is wrong, without starting anything
    ///
    /// Checks the environment of this command, or a file in the syntax of compose. Errors keep the
    /// role from starting; warnings do not; notes name values without effect. With --process, also
    /// what the processes of one deployment do not agree on.
    Check {
        #[command(flatten)]
        subject: Subject,
        /// Check a file for a role instead, and compare it with the other files given like this
        #[arg(long, value_name = "ROLE=FILE", value_parser = role_file, conflicts_with_all = ["role", "env_file"])]
        process: Vec<(tale_env::Role, PathBuf)>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show what a role would run with, and where each value comes from
    Effective {
        #[command(flatten)]
        subject: Subject,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Compare two environment files; secrets are compared but not shown
    Diff {
        /// The one file
        file_a: PathBuf,
        /// The other file
        file_b: PathBuf,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print a commented file to start from, as .env.example
    Example,
    /// Print the reference of all variables as Markdown
    Reference {
        /// Language of the page
        #[arg(long, default_value = "en", value_parser = lang_parser())]
        lang: Lang,
    },
}

/// Whose environment is looked at.
#[derive(Args)]
pub(crate) struct Subject {
    /// The role that would start
    #[arg(long, value_name = "ROLE", default_value = "all", value_parser = role_parser())]
    pub role: tale_env::Role,
    /// A file instead of the environment of this command
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
}

fn role_parser() -> impl TypedValueParser<Value = tale_env::Role> {
    let names = tale_env::Role::ALL.map(tale_env::Role::name);
    PossibleValuesParser::new(names)
        .try_map(|name| tale_env::Role::named(&name).ok_or_else(|| format!("{name} is no role")))
}

/// `ROLE=FILE`.
fn role_file(text: &str) -> Result<(tale_env::Role, PathBuf), String> {
    let (role, file) = text.split_once('=').ok_or("write it as ROLE=FILE, such as backend-api=api.env")?;
    let role = tale_env::Role::named(role).ok_or_else(|| {
        let names = tale_env::Role::ALL.map(tale_env::Role::name);
        format!("{role} is no role; there are {}", names.join(", "))
    })?;
    Ok((role, PathBuf::from(file)))
}

fn section_parser() -> impl TypedValueParser<Value = Section> {
    PossibleValuesParser::new(Section::ALL.iter().map(|section| section.name()))
        .try_map(|name| Section::named(&name).ok_or_else(|| format!("{name} is no section")))
}

fn lang_parser() -> impl TypedValueParser<Value = Lang> {
    PossibleValuesParser::new(Lang::ALL.map(Lang::code)).try_map(|code| {
        Lang::ALL.into_iter().find(|lang| lang.code() == code).ok_or_else(|| format!("{code} is no language"))
    })
}

/// Options of `tale dev`.
#[derive(Args)]
pub(crate) struct DevOptions {
    /// Port of the web app on this machine
    #[arg(long, default_value_t = 3000, value_name = "PORT")]
    pub port: u16,
    /// Where everything is kept; ~/.local/share/tale when left out
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Offer the demo model, which quotes your documents and needs no key
    ///
    /// It is not a language model: it searches and answers by quoting the best passages, so that
    /// every part of Tale can be tried before a provider is connected.
    #[arg(long)]
    pub demo: bool,
}

/// What `tale serve` runs.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// The web tier: the app's pages and files and the status report; needs no database
    Platform,
    /// Every HTTP door, chat turns included, and no background jobs
    BackendApi,
    /// Background jobs and sweeps; says how it does on TALE_WORKER_PORT, when that is set
    BackendWorker,
    /// All three in one process
    All,
    /// An S3-compatible store on a local folder, for deployments without one
    ObjectStore,
    /// Models for agents and scripts with keys of its own; needs the application database only
    LlmGateway,
    /// The only way out of sandboxes: a proxy for HTTP and CONNECT, and their DNS
    SandboxEgress,
    /// The spawner of sandboxes on a Docker engine; needs SANDBOX_TOKEN and no database
    Sandbox,
}

impl From<Role> for tale_env::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Platform => Self::Platform,
            Role::BackendApi => Self::BackendApi,
            Role::BackendWorker => Self::BackendWorker,
            Role::All => Self::All,
            Role::ObjectStore => Self::ObjectStore,
            Role::LlmGateway => Self::LlmGateway,
            Role::SandboxEgress => Self::SandboxEgress,
            Role::Sandbox => Self::Sandbox,
        }
    }
}

/// What `tale healthcheck` asks.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum HealthRole {
    /// The web tier
    Platform,
    /// The HTTP doors
    BackendApi,
    /// The background jobs, when TALE_WORKER_PORT is set
    BackendWorker,
    /// All in one process
    All,
    /// The store of files: whether it can take one
    ObjectStore,
    /// The model gateway
    LlmGateway,
    /// The spawner of sandboxes: whether its engine answers
    Sandbox,
    /// The proxy in front
    Proxy,
    /// The way out of sandboxes, its DNS included
    SandboxEgress,
}

impl From<HealthRole> for tale_env::Role {
    fn from(role: HealthRole) -> Self {
        match role {
            HealthRole::Platform => Self::Platform,
            HealthRole::BackendApi => Self::BackendApi,
            HealthRole::BackendWorker => Self::BackendWorker,
            HealthRole::All => Self::All,
            HealthRole::ObjectStore => Self::ObjectStore,
            HealthRole::LlmGateway => Self::LlmGateway,
            HealthRole::Sandbox => Self::Sandbox,
            HealthRole::Proxy => Self::Proxy,
            HealthRole::SandboxEgress => Self::SandboxEgress,
        }
    }
}
