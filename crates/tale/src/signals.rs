//! SIGTERM and SIGINT: the first one drains, the second one ends the process at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels the returned token at the first signal.
pub(crate) fn stop_token() -> std::io::Result<CancellationToken> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!(event = "process.stopping", "stopping; a second signal stops at once");
        token.cancel();
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        #[expect(clippy::disallowed_methods, reason = "the person asked twice: drain and flush are what is skipped")]
        std::process::exit(130);
    });
    Ok(stop)
}
