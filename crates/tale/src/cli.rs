//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    Serve {
        /// What this process does
        role: Role,
        /// Port to listen on
        #[arg(long, default_value_t = 3005, value_name = "PORT")]
        port: u16,
    },
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

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Web app, every HTTP door and background jobs
    All,
}
