//! The organization's own bucket, and moving its files there (DCF-108).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};
use tale_identity::Capability;
use tale_knowledge::storage::{BucketForm, Move, Storage};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::Body;
use crate::caller::{Member, Signed};
use crate::problem::HttpProblem;
use crate::state::App;
use crate::store_origins;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read_connection, connect, disconnect))
        .routes(routes!(test_connection))
        .routes(routes!(begin_browser_test))
        .routes(routes!(end_browser_test))
        .routes(routes!(start_migration, read_migration))
        .routes(routes!(origins))
}

/// A bucket of the organization's own, without the secret of its key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ObjectStorageBucket {
    region: String,
    /// The store's address; absent for AWS S3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    endpoint: Option<String>,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    force_path_style: bool,
    bucket: String,
    /// Put before every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    prefix: Option<String>,
    access_key_id: String,
}

/// Where the organization's files are.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ObjectStorage {
    /// The bucket of its own; `null` when there is none, or when its files cannot be read.
    #[schema(required)]
    connection: Option<ObjectStorageBucket>,
    /// Why the bucket of its own cannot be used.
    #[schema(required)]
    problem: Option<String>,
    /// The origin that browsers exchange files with, when the bucket can be used.
    #[schema(required)]
    origin: Option<String>,
    /// Whether the deployment has a store, which holds the files of organizations without a bucket.
    deployment_store: bool,
}

impl From<Storage> for ObjectStorage {
    fn from(storage: Storage) -> Self {
        Self {
            connection: storage.own.map(|(bucket, access_key_id)| ObjectStorageBucket {
                region: bucket.region,
                endpoint: bucket.endpoint.map(String::from),
                force_path_style: bucket.force_path_style,
                bucket: bucket.bucket,
                prefix: bucket.prefix,
                access_key_id,
            }),
            problem: storage.problem,
            origin: storage.origin,
            deployment_store: storage.deployment,
        }
    }
}

/// A bucket to use.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ObjectStorageForm {
    region: String,
    /// The store's address; empty or absent for AWS S3.
    #[serde(default)]
    #[schema(nullable = false)]
    endpoint: Option<String>,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    force_path_style: bool,
    bucket: String,
    /// Put before every key.
    #[serde(default)]
    #[schema(nullable = false)]
    prefix: Option<String>,
    access_key_id: String,
    /// The stored one when absent or empty.
    #[serde(default)]
    #[schema(nullable = false, format = Password)]
    secret_access_key: Option<String>,
}

impl From<ObjectStorageForm> for BucketForm {
    fn from(form: ObjectStorageForm) -> Self {
        Self {
            region: form.region,
            endpoint: form.endpoint,
            force_path_style: form.force_path_style,
            bucket: form.bucket,
            prefix: form.prefix,
            access_key_id: form.access_key_id,
            secret_access_key: form.secret_access_key.map(Into::into),
        }
    }
}

/// A request that the browser sends to the bucket by itself, with one byte of text.
#[derive(Serialize, ToSchema)]
struct BrowserTest {
    /// For the end of the test.
    #[schema(format = Uuid)]
    id: String,
    url: String,
    /// `PUT`.
    method: &'static str,
    /// Headers to send exactly as given.
    headers: BTreeMap<&'static str, String>,
}

/// The latest move of the organization's files to its own bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ObjectStorageMove {
    /// `running`, `completed` or `failed`.
    state: &'static str,
    /// The bucket it moves to.
    target: String,
    /// Files of the organization when it began.
    total: i64,
    /// Files moved.
    moved: i64,
    /// Files with nothing to do.
    skipped: i64,
    /// Files not moved; they are where they were.
    failed: i64,
    /// Bytes moved.
    bytes: i64,
    /// Milliseconds since 1970.
    started_at: i64,
    /// Milliseconds since 1970; `null` while it goes on.
    #[schema(required)]
    ended_at: Option<i64>,
    /// Why it ended early: a code.
    #[schema(required)]
    error_code: Option<String>,
    /// The same as a sentence.
    #[schema(required)]
    error: Option<String>,
}

impl From<Move> for ObjectStorageMove {
    fn from(run: Move) -> Self {
        Self {
            state: run.state.text(),
            target: run.target,
            total: run.total,
            moved: run.moved,
            skipped: run.skipped,
            failed: run.failed,
            bytes: run.bytes,
            started_at: run.started_at.timestamp_millis(),
            ended_at: run.ended_at.map(|at| at.timestamp_millis()),
            error_code: run.error_code,
            error: run.error,
        }
    }
}

/// The latest move, if there ever was one.
#[derive(Serialize, ToSchema)]
struct ObjectStorageMigration {
    #[schema(required)]
    migration: Option<ObjectStorageMove>,
}

/// Where pages exchange files.
#[derive(Serialize, ToSchema)]
struct StoreOriginList {
    origins: Vec<String>,
}

/// Where the organization's files are.
#[utoipa::path(get, path = "/api/app/object-storage/connection", tag = "app: object storage", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ObjectStorage)), operation_id = "read_object_storage")]
async fn read_connection(State(app): State<App>, Member(caller): Member) -> Result<Json<ObjectStorage>, HttpProblem> {
    Ok(Json(app.knowledge.storage(&caller).await?.into()))
}

/// Names a bucket as the organization's own, after a real put, get and delete in it. New files go there
/// from now on.
#[utoipa::path(put, path = "/api/app/object-storage/connection", tag = "app: object storage", params(("orgId" = Option<String>, Query)), request_body = ObjectStorageForm, responses((status = 200, body = ObjectStorage)), operation_id = "connect_object_storage")]
async fn connect(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<ObjectStorageForm>,
) -> Result<Json<ObjectStorage>, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let form = body.read()?;
    Ok(Json(app.knowledge.connect_storage(&caller, form.into()).await?.into()))
}

/// Lets new files go to the deployment's store again. What is in the bucket stays there, out of reach.
#[utoipa::path(delete, path = "/api/app/object-storage/connection", tag = "app: object storage", params(("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "disconnect_object_storage")]
async fn disconnect(State(app): State<App>, Member(caller): Member) -> Result<StatusCode, HttpProblem> {
    app.knowledge.disconnect_storage(&caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tries a bucket out with a real put, get and delete; changes nothing.
#[utoipa::path(post, path = "/api/app/object-storage/connection/test", tag = "app: object storage", params(("orgId" = Option<String>, Query)), request_body = ObjectStorageForm, responses((status = 204)), operation_id = "test_object_storage")]
async fn test_connection(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<ObjectStorageForm>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let form = body.read()?;
    app.knowledge.try_storage(&caller, form.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Signs a request with which the browser stores one byte in the bucket: only a browser can tell whether
/// the bucket admits the pages of this site.
#[utoipa::path(post, path = "/api/app/object-storage/connection/browser-test", tag = "app: object storage", params(("orgId" = Option<String>, Query)), responses((status = 200, body = BrowserTest)), operation_id = "begin_object_storage_browser_test")]
async fn begin_browser_test(State(app): State<App>, Member(caller): Member) -> Result<Json<BrowserTest>, HttpProblem> {
    let (id, request) = app.knowledge.begin_browser_try(&caller).await?;
    Ok(Json(BrowserTest {
        id: id.to_string(),
        url: request.url.to_string(),
        method: request.method,
        headers: request.headers.into_iter().collect(),
    }))
}

/// Removes the byte that the browser stored.
#[utoipa::path(delete, path = "/api/app/object-storage/connection/browser-test/{id}", tag = "app: object storage", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "end_object_storage_browser_test")]
async fn end_browser_test(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::OrganizationManage)?;
    let id: Uuid =
        id.parse().map_err(|_| Problem::new(Code::NotFound, "There is no test with this id. Start another one."))?;
    app.knowledge.end_browser_try(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Moves the files that are in the deployment's store to the organization's own bucket, in the background.
#[utoipa::path(post, path = "/api/app/object-storage/migration", tag = "app: object storage", params(("orgId" = Option<String>, Query)), responses((status = 202, body = ObjectStorageMigration)), operation_id = "start_object_storage_migration")]
async fn start_migration(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<(StatusCode, Json<ObjectStorageMigration>), HttpProblem> {
    let migration = Some(app.knowledge.start_move(&caller).await?.into());
    Ok((StatusCode::ACCEPTED, Json(ObjectStorageMigration { migration })))
}

/// The latest move of files, as far as it is.
#[utoipa::path(get, path = "/api/app/object-storage/migration", tag = "app: object storage", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ObjectStorageMigration)), operation_id = "read_object_storage_migration")]
async fn read_migration(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<ObjectStorageMigration>, HttpProblem> {
    let migration = app.knowledge.latest_move(&caller).await?.map(ObjectStorageMove::from);
    Ok(Json(ObjectStorageMigration { migration }))
}

/// The origins that pages of the signed-in person exchange files with.
#[utoipa::path(get, path = "/api/app/object-storage/origins", tag = "app: object storage", responses((status = 200, body = StoreOriginList)), operation_id = "read_store_origins")]
async fn origins(State(app): State<App>, Signed(principal): Signed) -> Result<Json<StoreOriginList>, HttpProblem> {
    let origins = store_origins::of_user(&app.blobs, &app.identity, Some(principal.user)).await?;
    Ok(Json(StoreOriginList { origins }))
}
