//! Where finished reports wait to be sent.

use chrono::Utc;
use serde_json::{Value, json};
use tale_core::redact::redact;
use tale_http::outlets::reports::ReportSink;
use tokio::sync::mpsc;
use uuid::Uuid;

/// Adds what every report says, and hands it to the sender. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(super) queue: mpsc::Sender<String>,
    pub(super) environment: String,
}

impl Desk {
    /// Queues a report. Secrets are taken out of the finished text; a full queue loses it.
    pub(super) fn send(&self, kind: &str, platform: &str, role: &str, mut payload: Value) {
        let id = Uuid::new_v4().simple().to_string();
        payload["event_id"] = json!(id);
        payload["platform"] = json!(platform);
        payload["release"] = json!(concat!("tale@", env!("CARGO_PKG_VERSION")));
        payload["environment"] = json!(self.environment);
        payload["tags"]["role"] = json!(role);
        let payload = payload.to_string();
        let payload = redact(&payload);
        let head = json!({ "event_id": id, "sent_at": Utc::now().to_rfc3339() });
        let item = json!({ "type": kind, "length": payload.len() });
        let _ = self.queue.try_send(format!("{head}\n{item}\n{payload}\n"));
    }
}

impl ReportSink for Desk {
    fn report(&self, kind: &'static str, payload: Value) {
        self.send(kind, "javascript", "browser", payload);
    }
}
