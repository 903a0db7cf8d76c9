//! Serves the router on a listener: bounded headers, a time limit for sending a request, and a
//! drain that lets running requests finish.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

use crate::door::MAX_HEAD_BYTES;

/// Longest time to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// When a server stops.
#[derive(Debug, Clone)]
pub struct Stop {
    /// The drain begins: connections end with the response they are at. New ones are still accepted
    /// for one request each, so that `/ready` says what is going on.
    pub drain: CancellationToken,
    /// The rest of the program is done: once nothing is open any more, nothing is accepted either.
    pub close: CancellationToken,
    /// Longest time from the drain to the end.
    pub budget: Duration,
}

/// Accepts connections until `stop` says so, and lets what runs finish within its budget.
pub async fn serve<S>(listener: TcpListener, service: S, stop: Stop)
where
    S: Service<Request, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let connections = TaskTracker::new();
    connections.close();
    let finished = async {
        stop.drain.cancelled().await;
        let all = async {
            stop.close.cancelled().await;
            connections.wait().await;
        };
        if tokio::time::timeout(stop.budget, all).await.is_err() && !connections.is_empty() {
            tracing::warn!(
                requests = connections.len(),
                seconds = stop.budget.as_secs(),
                "requests were still running when the time to drain was over"
            );
        }
    };
    tokio::pin!(finished);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut finished => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, mostly: a pause lets some be freed.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        // Browsers open connections ahead of need; a drain does not wait for one that asked nothing.
        let asked = Arc::new(AtomicBool::new(stop.drain.is_cancelled()));
        let asking = Arc::clone(&asked);
        let service = service.clone().map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
            asking.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
            request.map(Body::new)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            // Beyond it the answer is a bare 431 before the head is complete; the door judges what fits.
            .max_buf_size(MAX_HEAD_BYTES)
            .keep_alive(!stop.drain.is_cancelled())
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let drain = stop.drain.clone();
        connections.spawn(async move {
            tokio::pin!(connection);
            let ended = if drain.is_cancelled() {
                connection.await
            } else {
                tokio::select! {
                    ended = &mut connection => ended,
                    () = drain.cancelled() => {
                        if !asked.load(Ordering::Relaxed) {
                            return;
                        }
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, %peer, "a connection ended early");
            }
        });
    }
}
