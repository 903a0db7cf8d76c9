//! The `platform` role: the web app's pages and files and the status report, without a database.

use std::sync::Arc;
use std::time::Duration;

use tale_core::SystemClock;
use tale_core::clock::SharedClock;
use tale_env::{AnalyticsSettings, Environment, PlatformSettings, Role};
use tale_http::frames::Frames;
use tale_http::outlets::Outlets;
use tale_http::outlets::analytics::Analytics;
use tale_http::outlets::reports::BrowserReports;
use tale_http::serve::Stop;
use tale_http::status::Status;
use tale_http::web::WebFiles;
use tale_http::{Shell, ShellParts, StoreOrigins};
use tokio_util::sync::CancellationToken;

use crate::configuration;
use crate::platform::{self, StartError};
use crate::reports::Browsers;

/// How long answers may take to end after a signal. Pages and files are short.
const DRAIN: Duration = Duration::from_secs(30);

/// Serves until `stop`.
pub(crate) async fn serve(
    env: &Environment,
    port: Option<u16>,
    browsers: Option<Browsers>,
    stop: CancellationToken,
) -> Result<(), StartError> {
    configuration::judge(env, Role::Platform).map_err(StartError::Settings)?;
    let settings = PlatformSettings::from_env(env).map_err(StartError::Settings)?;
    let listener = platform::bind_all(port.unwrap_or(settings.port)).await?;
    let address = listener.local_addr().map_err(StartError::other)?;
    let backend = settings.backend.clone();
    let clock: SharedClock = Arc::new(SystemClock);
    let frames = Frames::of_backend(clock.clone(), &settings.backend).map_err(StartError::other)?;
    let status = Status::of_backend(clock.clone(), settings.backend).map_err(StartError::other)?;
    let store = settings.store.map(|store| store.origin().ascii_serialization()).unwrap_or_default();
    let shell = Shell::new(ShellParts {
        role: Role::Platform.name(),
        site: settings.site.clone(),
        web: settings.web_dir.map_or(WebFiles::Embedded, WebFiles::Directory),
        stores: StoreOrigins::of_backend(store, backend).map_err(StartError::other)?,
        status,
        metrics_token: settings.metrics_token,
        outlets: outlets(settings.analytics, browsers, clock),
        frames,
    });
    let stop = Stop { drain: stop.clone(), close: stop, budget: DRAIN };
    let server = tokio::spawn(tale_http::serve(listener, tale_http::platform_router(shell), stop));
    platform::announce(Role::Platform, Some(&settings.site), Some(address));
    server.await.map_err(StartError::other)?;
    tracing::info!("stopped");
    Ok(())
}

/// What pages may tell outward with these settings.
pub(crate) fn outlets(analytics: Option<AnalyticsSettings>, browsers: Option<Browsers>, clock: SharedClock) -> Outlets {
    let analytics = analytics.and_then(|settings| {
        let opened = Analytics::new(settings, clock.clone());
        opened.inspect_err(|error| tracing::warn!(%error, "page statistics stay off")).ok()
    });
    let reports = browsers.map(|browsers| BrowserReports::new(Box::new(browsers.desk), browsers.share, clock));
    Outlets { analytics: analytics.map(Arc::new), reports: reports.map(Arc::new) }
}
