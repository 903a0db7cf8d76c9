//! The rest of a request that was answered before it was read to its end.
//!
//! A server that answers early and closes throws away what is still on its way, which resets the
//! connection: most clients write a request to its end before they look at the answer, and see a broken
//! connection instead of "too large" or "no space left". So the rest is read and forgotten first, within
//! bounds. A client that asked whether it may send (`Expect: 100-continue`) needs none of this.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

/// Most bytes that are read for nothing: the largest upload and its frame, twice.
const MOST: usize = 256 << 20;
/// Longest time spent on them.
const LONGEST: Duration = Duration::from_secs(60);
/// Longest time in which nothing of them comes.
const IDLE: Duration = Duration::from_secs(3);

struct State {
    body: Incoming,
    begun: bool,
}

/// What is left of a request's body once its reader has dropped it.
pub(crate) struct Rest(Option<Arc<Mutex<State>>>);

struct Reader(Arc<Mutex<State>>);

/// Gives a body to a handler and keeps hold of its rest.
pub(crate) fn keep(body: Incoming) -> (Body, Rest) {
    if body.is_end_stream() {
        return (Body::empty(), Rest(None));
    }
    let state = Arc::new(Mutex::new(State { body, begun: false }));
    (Body::new(Reader(Arc::clone(&state))), Rest(Some(state)))
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.begun = true;
        Pin::new(&mut state.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).body.size_hint()
    }
}

impl Rest {
    /// Reads what is left and forgets it. `asks` says that the client waits for leave to send.
    pub(crate) async fn discard(self, asks: bool) {
        // whoever still reads goes on reading
        let Some(state) = self.0.and_then(Arc::into_inner) else { return };
        let State { mut body, begun } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if asks && !begun {
            return;
        }
        let mut left = MOST;
        let reading = async {
            while let Ok(Some(Ok(frame))) = tokio::time::timeout(IDLE, body.frame()).await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(rest) = left.checked_sub(length) else { return };
                left = rest;
            }
        };
        // whatever is left then, the answer goes out
        let _ = tokio::time::timeout(LONGEST, reading).await;
    }
}
