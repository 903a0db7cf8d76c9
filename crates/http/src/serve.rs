//! Serves the router on a listener: bounded headers, a time limit for sending a request, and a
//! drain that lets running requests finish.
//!
//! A live stream leaves its HTTP connection behind. hyper keeps two buffers of 8 KiB for every
//! connection, which ten thousand idle streams do not need: such an answer is sent as one that ends
//! with the connection (an HTTP/1.0 head, no chunks), hyper is done once the head is out, and
//! [`deliver`] writes the rest to the bare socket.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, Version, header};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

use crate::door::MAX_HEAD_BYTES;
use crate::unread;

/// Longest time to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest time that the reader of a live stream may take none of it.
const READER_TIMEOUT: Duration = Duration::from_secs(60);

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
    S: Service<Request, Response = Response<Body>, Error = Infallible> + Clone + Send + Unpin + 'static,
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
                event = "http.drain_over",
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
                    tracing::warn!(event = "http.accept_failed", %error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        // Browsers open connections ahead of need; a drain does not wait for one that asked nothing.
        let asked = Arc::new(AtomicBool::new(stop.drain.is_cancelled()));
        let parked = Parked::default();
        let answering = answering(service.clone(), peer, Arc::clone(&asked), Arc::clone(&parked));
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            // Beyond it the answer is a bare 431 before the head is complete; the door judges what fits.
            .max_buf_size(MAX_HEAD_BYTES)
            .keep_alive(!stop.drain.is_cancelled())
            .serve_connection(TokioIo::new(stream), answering);
        let (drain, tracker) = (stop.drain.clone(), connections.clone());
        connections.spawn(async move {
            let ended = if drain.is_cancelled() {
                poll_fn(|cx| connection.poll_without_shutdown(cx)).await
            } else {
                tokio::select! {
                    ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => ended,
                    () = drain.cancelled() => {
                        if !asked.load(Ordering::Relaxed) {
                            return;
                        }
                        Pin::new(&mut connection).graceful_shutdown();
                        poll_fn(|cx| connection.poll_without_shutdown(cx)).await
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, %peer, "a connection ended early");
                return;
            }
            let mut stream = connection.into_parts().io.into_inner();
            let body = parked.lock().unwrap_or_else(PoisonError::into_inner).take();
            match body {
                // A task of its own, so that this one's memory goes back.
                Some(body) => drop(tracker.spawn(deliver(stream, body))),
                None => drop(stream.shutdown().await),
            }
        });
    }
}

/// The body of a live stream, between its head and its delivery.
type Parked = Arc<Mutex<Option<Body>>>;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The service of one connection: notes that something was asked, says from where, and parks the
/// body of a live stream.
fn answering<S>(
    service: S,
    peer: SocketAddr,
    asked: Arc<AtomicBool>,
    parked: Parked,
) -> impl hyper::service::Service<hyper::Request<Incoming>, Response = Response<Body>, Error = Infallible, Future = Answer>
+ Unpin
where
    S: Service<Request, Response = Response<Body>, Error = Infallible> + Clone + Send + Unpin + 'static,
    S::Future: Send,
{
    hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| -> Answer {
        asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
        let readable = request.method() == Method::GET;
        let (service, parked) = (service.clone(), Arc::clone(&parked));
        Box::pin(async move {
            let asks = request.headers().get(header::EXPECT).is_some();
            let (head, body) = request.into_parts();
            let (body, rest) = unread::keep(body);
            let response = service.oneshot(Request::from_parts(head, body)).await?;
            rest.discard(asks).await;
            let live = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
            if !(live && readable) {
                return Ok(response);
            }
            let (mut parts, body) = response.into_parts();
            *parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
            parts.version = Version::HTTP_10;
            // Of unknown length, and over at once.
            Ok(Response::from_parts(parts, Body::from_stream(futures::stream::empty::<Result<Bytes, Infallible>>())))
        })
    })
}

/// Writes a live stream to its reader until either is gone.
async fn deliver(mut stream: TcpStream, mut body: Body) {
    let mut said = [0; 64];
    loop {
        tokio::select! {
            frame = body.frame() => {
                let Some(Ok(frame)) = frame else { break };
                let Ok(data) = frame.into_data() else { continue };
                match tokio::time::timeout(READER_TIMEOUT, stream.write_all(&data)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
            }
            readable = stream.readable() => match readable.and_then(|()| stream.try_read(&mut said)) {
                Ok(0) => return,
                // Nothing that a reader says is of interest any more.
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
    let _ = stream.shutdown().await;
}
