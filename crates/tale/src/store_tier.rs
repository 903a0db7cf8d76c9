//! The `object-store` role: the S3-compatible store on a folder, as a process of its own.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tale_blobs::embedded;
use tale_env::{Environment, Role, StoreSettings};
use tale_http::serve::Stop;
use tokio_util::sync::CancellationToken;

use crate::configuration;
use crate::dev::data_dir;
use crate::platform::{self, StartError};

/// Serves until `stop`.
pub(crate) async fn serve(env: &Environment, port: Option<u16>, stop: CancellationToken) -> Result<(), StartError> {
    configuration::judge(env, Role::ObjectStore).map_err(StartError::Settings)?;
    let settings = StoreSettings::from_env(env).map_err(StartError::Settings)?;
    let listener = platform::bind_all(port.unwrap_or(settings.port)).await?;
    let address = listener.local_addr().map_err(StartError::other)?;
    let data_dir = platform::data_dir(settings.data_dir);
    let unusable = |error| StartError::other(format!("{} cannot be used: {error}", data_dir.display()));
    std::fs::create_dir_all(&data_dir).map_err(unusable)?;
    // Two stores on one folder would take each other's unfinished objects for leftovers.
    let _lock = data_dir::lock(&data_dir).map_err(StartError::other)?;
    // As `tale dev` lays it out, so that its files can be taken along.
    let objects = data_dir.join("objects");
    let store = embedded::service(&objects, &settings.access_key, &settings.secret_key).map_err(unusable)?;
    embedded::make_bucket(&objects, &settings.bucket).map_err(unusable)?;

    let objects: Arc<Path> = objects.into();
    let draining = stop.clone();
    // The names of S3 buckets would allow these two; nobody lists such a bucket without a signature.
    let router = Router::new()
        .route("/ping", get(async || "pong"))
        .route("/ready", get(move || ready(Arc::clone(&objects), draining.clone())))
        .fallback_service(store);
    let server_stop = Stop { drain: stop.clone(), close: stop, budget: settings.shutdown_drain };
    let server = tokio::spawn(tale_http::serve(listener, router, server_stop));
    platform::announce(Role::ObjectStore, None, Some(address));
    server.await.map_err(StartError::other)?;
    tracing::info!(event = "process.stopped", "stopped");
    Ok(())
}

/// Whether objects can be stored now.
async fn ready(objects: Arc<Path>, draining: CancellationToken) -> (StatusCode, &'static str) {
    if draining.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining");
    }
    match tokio::task::spawn_blocking(move || embedded::try_writing(&objects)).await {
        Ok(Ok(())) => (StatusCode::OK, "ready"),
        Ok(Err(error)) => {
            tracing::warn!(event = "object_store.unwritable", %error, "no object can be stored");
            (StatusCode::SERVICE_UNAVAILABLE, "not writable")
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "not writable"),
    }
}
