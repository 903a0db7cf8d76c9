//! What handlers work with: the domain services and the settings of the doors.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use secrecy::SecretString;
use tale_blobs::Blobs;
use tale_chat::Chat;
use tale_core::clock::SharedClock;
use tale_core::page::CursorSigner;
use tale_core::{Code, Problem};
use tale_db::hints::{Hint, HintHub, Topic};
use tale_env::{SiteSettings, TrustedHeaderNames};
use tale_gateway::Gateway;
use tale_governance::audit::log::AuditLog;
use tale_governance::policies::Policies;
use tale_identity::Identity;
use tale_knowledge::Knowledge;
use tale_models::Models;
use tale_orgfiles::FileWatch;
use tale_workshop::Workshop;
use tokio_util::sync::CancellationToken;

use crate::frames::Frames;
use crate::listeners::Listeners;
use crate::metrics::{Metrics, MetricsParts};
use crate::outlets::Outlets;
use crate::rate::Limits;
use crate::status::Status;
use crate::store_origins::StoreOrigins;
use crate::web::WebFiles;

/// The services, shared by every handler. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    parts: AppParts,
    listeners: Listeners,
    metrics: Metrics,
    shell: Shell,
}

/// The content of an [`App`].
pub struct AppParts {
    /// Origins of the deployment.
    pub site: SiteSettings,
    /// Names of the headers by which a reverse proxy signs people in.
    pub trusted_headers: TrustedHeaderNames,
    /// The clock.
    pub clock: SharedClock,
    /// Accounts, sessions, organizations, keys.
    pub identity: Identity,
    /// Providers and models.
    pub models: Models,
    /// The model endpoints.
    pub gateway: Gateway,
    /// Documents and search.
    pub knowledge: Knowledge,
    /// Chats.
    pub chat: Chat,
    /// Sandboxes; `None` = the deployment has none.
    pub workshop: Option<Workshop>,
    /// What administrators laid down.
    pub policies: Policies,
    /// What happened.
    pub audit: AuditLog,
    /// Uploaded bytes.
    pub blobs: Blobs,
    /// Changes of configuration files for open tabs; `None` = not told (`TALE_FILE_EVENTS`).
    pub file_watch: Option<FileWatch>,
    /// Live-update hints.
    pub hints: HintHub,
    /// Signs page cursors.
    pub cursors: CursorSigner,
    /// Rate limits of the doors.
    pub limits: Limits,
    /// The web app's files.
    pub web: WebFiles,
    /// Address of the demo model when this process runs one.
    pub demo: Option<String>,
    /// Name of the process's role.
    pub role: &'static str,
    /// Token of the public metrics routes; without it they answer nobody.
    pub metrics_token: Option<SecretString>,
    /// What pages may tell outward.
    pub outlets: Outlets,
    /// The operational database, for health and metrics only.
    pub database: sqlx::PgPool,
    /// The knowledge database, for metrics only.
    pub corpus: sqlx::PgPool,
    /// Cancelled when the process begins to drain: `/ready` says 503 and live streams end.
    pub stopping: CancellationToken,
}

impl App {
    /// Wraps the services.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        let listeners = Listeners::default();
        let metrics = Metrics::new(MetricsParts {
            role: parts.role,
            clock: parts.clock.clone(),
            app_db: parts.database.clone(),
            knowledge_db: parts.corpus.clone(),
            blobs: parts.blobs.clone(),
            streams: listeners.clone(),
            draining: parts.stopping.clone(),
        });
        let shell = Shell::new(ShellParts {
            role: parts.role,
            site: parts.site.clone(),
            web: parts.web.clone(),
            stores: StoreOrigins::Of { blobs: parts.blobs.clone(), identity: parts.identity.clone() },
            status: Status::of_stores(
                parts.clock.clone(),
                parts.database.clone(),
                parts.knowledge.clone(),
                parts.blobs.clone(),
            ),
            metrics_token: parts.metrics_token.clone(),
            outlets: parts.outlets.clone(),
            frames: Frames::of_database(parts.clock.clone(), parts.identity.clone()),
        });
        Self(Arc::new(Inner { parts, listeners, metrics, shell }))
    }

    /// Delivers hints to open streams until `stop`. What a hint is about is forgotten first: a browser that follows it
    /// is faster than the announcements between processes, which come on connections of their own.
    pub async fn deliver_hints(self, stop: CancellationToken) {
        let parts = &self.0.parts;
        let forget = |hint: &Hint| match hint.topic {
            Topic::Policies => parts.policies.forget(hint.org),
            Topic::Providers => parts.models.forget(hint.org),
            _ => {}
        };
        parts.hints.clone().run(parts.database.clone(), stop, forget).await;
    }

    /// Sandboxes.
    ///
    /// # Errors
    /// `SANDBOX_NOT_CONFIGURED` on a deployment without.
    pub fn workshop(&self) -> Result<&Workshop, Problem> {
        self.0.parts.workshop.as_ref().ok_or_else(|| {
            Problem::new(
                Code::SandboxNotConfigured,
                "This deployment has no sandboxes. An operator switches them on: start `tale serve sandbox` beside a container engine and set SANDBOX_URL and SANDBOX_TOKEN for the backend (docs/sandboxes.md).",
            )
        })
    }

    /// The metrics of this process.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The web tier of this process.
    #[must_use]
    pub fn shell(&self) -> &Shell {
        &self.0.shell
    }

    /// The live streams of this process.
    #[must_use]
    pub fn listeners(&self) -> &Listeners {
        &self.0.listeners
    }
}

impl Deref for App {
    type Target = AppParts;
    fn deref(&self) -> &AppParts {
        &self.0.parts
    }
}

/// The web tier: what serves pages, files and the status report, with or without the doors in the
/// same process. Cheap to clone.
#[derive(Clone)]
pub struct Shell(Arc<ShellParts>);

/// The content of a [`Shell`].
pub struct ShellParts {
    /// Name of the process's role.
    pub role: &'static str,
    /// Origins of the deployment.
    pub site: SiteSettings,
    /// The web app's files.
    pub web: WebFiles,
    /// Where browsers exchange files.
    pub stores: StoreOrigins,
    /// The status report.
    pub status: Status,
    /// What the public pages of metrics ask for; nobody reads them without one.
    pub metrics_token: Option<SecretString>,
    /// What pages may tell outward.
    pub outlets: Outlets,
    /// Who may show pages in a frame.
    pub frames: Frames,
}

impl Shell {
    /// Wraps the parts.
    #[must_use]
    pub fn new(parts: ShellParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for Shell {
    type Target = ShellParts;
    fn deref(&self) -> &ShellParts {
        &self.0
    }
}

impl FromRef<App> for Shell {
    fn from_ref(app: &App) -> Self {
        app.shell().clone()
    }
}
