//! The organization's own knowledge database (DCF-103, DCF-108).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_identity::Capability;
use tale_knowledge::corpora::{Connection, SslMode};
use tale_knowledge::residency::{DatabaseForm, Found, KnowledgeDatabase, Trouble};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read_connection, connect, disconnect))
        .routes(routes!(test_connection))
        .routes(routes!(index_everything))
}

/// How a connection is encrypted, in the words of Postgres.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum KnowledgeSslMode {
    Disable,
    Require,
    VerifyCa,
    VerifyFull,
}

impl From<SslMode> for KnowledgeSslMode {
    fn from(mode: SslMode) -> Self {
        match mode {
            SslMode::Disable => Self::Disable,
            SslMode::Require => Self::Require,
            SslMode::VerifyCa => Self::VerifyCa,
            SslMode::VerifyFull => Self::VerifyFull,
        }
    }
}

impl From<KnowledgeSslMode> for SslMode {
    fn from(mode: KnowledgeSslMode) -> Self {
        match mode {
            KnowledgeSslMode::Disable => Self::Disable,
            KnowledgeSslMode::Require => Self::Require,
            KnowledgeSslMode::VerifyCa => Self::VerifyCa,
            KnowledgeSslMode::VerifyFull => Self::VerifyFull,
        }
    }
}

/// A database of the organization's own, without its password.
#[derive(Serialize, ToSchema)]
struct KnowledgeConnection {
    host: String,
    port: u16,
    database: String,
    user: String,
    sslmode: KnowledgeSslMode,
}

impl From<Connection> for KnowledgeConnection {
    fn from(connection: Connection) -> Self {
        let Connection { host, port, database, user, sslmode } = connection;
        Self { host, port, database, user, sslmode: sslmode.into() }
    }
}

/// What a look at a database found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct KnowledgeDatabaseFound {
    server_version: String,
    /// Version of the extension `vector`; `null` when it is not created there.
    #[schema(required)]
    vector: Option<String>,
    /// Version of the extension `pg_search`, which is not needed; `null` when it is not created there.
    #[schema(required)]
    pg_search: Option<String>,
}

impl From<Found> for KnowledgeDatabaseFound {
    fn from(found: Found) -> Self {
        Self { server_version: found.server_version, vector: found.vector, pg_search: found.pg_search }
    }
}

/// Why the database of its own cannot be used.
#[derive(Serialize, ToSchema)]
struct KnowledgeDatabaseTrouble {
    /// `settings`: its files cannot be used; `opening`: it is not ready yet; `host_refused`, `unresolved`,
    /// `unreachable`, `not_encrypted`, `login_refused`, `database_missing`, `server_refused`,
    /// `transaction_pooler`, `vector_missing`, `vector_too_old`, `not_allowed`, `not_prepared`.
    reason: &'static str,
    /// What the files, the network or the server said.
    #[schema(required)]
    detail: Option<String>,
}

impl From<Trouble> for KnowledgeDatabaseTrouble {
    fn from(trouble: Trouble) -> Self {
        Self { reason: trouble.reason, detail: trouble.detail }
    }
}

/// Where the organization's passages are.
#[derive(Serialize, ToSchema)]
struct KnowledgeDatabaseState {
    /// The database of its own; `null` when there is none, or when its file cannot be read.
    #[schema(required)]
    connection: Option<KnowledgeConnection>,
    /// What is there, when it can be used.
    #[schema(required)]
    found: Option<KnowledgeDatabaseFound>,
    /// Why it cannot be used.
    #[schema(required)]
    problem: Option<KnowledgeDatabaseTrouble>,
}

impl From<KnowledgeDatabase> for KnowledgeDatabaseState {
    fn from(state: KnowledgeDatabase) -> Self {
        Self {
            connection: state.own.map(Into::into),
            found: state.found.map(Into::into),
            problem: state.trouble.map(Into::into),
        }
    }
}

/// A database to use.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KnowledgeDatabaseForm {
    /// A name or an address.
    host: String,
    port: u16,
    database: String,
    user: String,
    /// The stored one when absent or empty, which is used only for the place that it was stored for.
    #[serde(default)]
    #[schema(nullable = false, format = Password)]
    password: Option<String>,
    /// `require` when absent.
    #[serde(default)]
    #[schema(nullable = false)]
    sslmode: Option<KnowledgeSslMode>,
}

impl From<KnowledgeDatabaseForm> for DatabaseForm {
    fn from(form: KnowledgeDatabaseForm) -> Self {
        Self {
            host: form.host,
            port: form.port,
            database: form.database,
            user: form.user,
            password: form.password.map(Into::into),
            sslmode: form.sslmode.map(Into::into).unwrap_or_default(),
        }
    }
}

/// How many files are indexed anew.
#[derive(Serialize, ToSchema)]
struct FilesQueued {
    queued: u64,
}

/// Where the organization's passages are.
#[utoipa::path(get, path = "/api/app/knowledge/connection", tag = "app: knowledge database", params(("orgId" = Option<String>, Query)), responses((status = 200, body = KnowledgeDatabaseState)), operation_id = "read_knowledge_database")]
async fn read_connection(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<KnowledgeDatabaseState>, HttpProblem> {
    Ok(Json(app.knowledge.knowledge_database(&caller).await?.into()))
}

/// Names a database as the organization's own, after a look at it. Passages are not moved: files must be
/// indexed anew.
#[utoipa::path(put, path = "/api/app/knowledge/connection", tag = "app: knowledge database", params(("orgId" = Option<String>, Query)), request_body = KnowledgeDatabaseForm, responses((status = 200, body = KnowledgeDatabaseState)), operation_id = "connect_knowledge_database")]
async fn connect(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<KnowledgeDatabaseForm>,
) -> Result<Json<KnowledgeDatabaseState>, HttpProblem> {
    let form = allowed(&caller, body)?;
    Ok(Json(app.knowledge.connect_database(&caller, form).await?.into()))
}

/// Lets the organization's passages belong into the deployment's database again. What is in its own stays there,
/// out of reach.
#[utoipa::path(delete, path = "/api/app/knowledge/connection", tag = "app: knowledge database", params(("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "disconnect_knowledge_database")]
async fn disconnect(State(app): State<App>, Member(caller): Member) -> Result<StatusCode, HttpProblem> {
    app.knowledge.disconnect_database(&caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Looks whether a database can be used; changes nothing.
#[utoipa::path(post, path = "/api/app/knowledge/connection/test", tag = "app: knowledge database", params(("orgId" = Option<String>, Query)), request_body = KnowledgeDatabaseForm, responses((status = 200, body = KnowledgeDatabaseFound)), operation_id = "test_knowledge_database")]
async fn test_connection(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<KnowledgeDatabaseForm>,
) -> Result<Json<KnowledgeDatabaseFound>, HttpProblem> {
    let form = allowed(&caller, body)?;
    Ok(Json(app.knowledge.try_database(&caller, form).await?.into()))
}

/// Reads all files of the organization anew into its present database, in the background.
#[utoipa::path(post, path = "/api/app/knowledge/connection/reindex", tag = "app: knowledge database", params(("orgId" = Option<String>, Query)), responses((status = 202, body = FilesQueued)), operation_id = "index_everything")]
async fn index_everything(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<(StatusCode, Json<FilesQueued>), HttpProblem> {
    let queued = app.knowledge.index_everything(&caller).await?;
    Ok((StatusCode::ACCEPTED, Json(FilesQueued { queued })))
}

/// The form, for whoever may send one.
fn allowed(caller: &tale_identity::Caller, body: Body<KnowledgeDatabaseForm>) -> Result<DatabaseForm, Problem> {
    caller.require(Capability::OrganizationManage)?;
    Ok(body.read()?.into())
}
