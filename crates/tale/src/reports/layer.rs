//! What is reported.

use std::fmt;

use chrono::Utc;
use serde_json::{Map, Value, json};
use tale_core::redact::without_queries;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;

use super::desk::Desk;

/// Longest text of a field.
const LONGEST: usize = 4_000;

/// Hands error lines, and shares of requests and jobs, to the sender.
pub(crate) struct Reports {
    desk: Desk,
    role: &'static str,
    traces: f64,
}

/// What a span said.
struct Told {
    fields: Map<String, Value>,
    began: f64,
}

impl Reports {
    pub(super) fn new(desk: Desk, role: &'static str, traces: f64) -> Self {
        Self { desk, role, traces }
    }

    fn send(&self, kind: &str, payload: Value) {
        self.desk.send(kind, "other", self.role, payload);
    }
}

/// Only what may be reported, and the spans it stands in.
pub(crate) struct Interesting;

impl<S> Filter<S> for Interesting {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        if metadata.is_span() { metadata.target().starts_with("tale") } else { *metadata.level() == Level::ERROR }
    }
}

impl<S> Layer<S> for Reports
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(Told { fields: fields.0, began: now() });
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(told) = span.extensions_mut().get_mut::<Told>()
        {
            let mut fields = Fields::default();
            record.record(&mut fields);
            told.fields.extend(fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        if *event.metadata().level() != Level::ERROR {
            return;
        }
        let mut fields = Map::new();
        for span in ctx.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(told) = span.extensions().get::<Told>() {
                fields.extend(told.fields.clone());
            }
        }
        let mut own = Fields::default();
        event.record(&mut own);
        fields.extend(own.0);
        let message = fields.remove("message").unwrap_or_default();
        let mut tags = Map::new();
        for name in ["event", "request_id", "org", "route", "method", "job.name"] {
            if let Some(value) = fields.remove(name) {
                tags.insert(name.replace('.', "_"), value);
            }
        }
        let report = json!({
            "timestamp": now(), "level": "error", "logger": event.metadata().target(),
            "message": { "formatted": message }, "tags": tags, "extra": fields,
        });
        self.send("event", report);
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id).filter(|_| self.traces > 0.0) else { return };
        let op = match span.name() {
            "request" => "http.server",
            "job" => "queue.process",
            _ => return,
        };
        let trace = Uuid::new_v4();
        // The bits of a random id are as good as any other dice.
        if (trace.as_u128() as u32) as f64 >= self.traces * f64::from(u32::MAX) && self.traces < 1.0 {
            return;
        }
        let extensions = span.extensions();
        let Some(told) = extensions.get::<Told>() else { return };
        let text = |name: &str| told.fields.get(name).and_then(Value::as_str).unwrap_or_default();
        // Classes, never paths: those hold ids.
        let name = match op {
            "http.server" => format!("{} {}", text("method"), text("route")),
            _ => text("job.name").to_owned(),
        };
        let span_id = trace.simple().to_string()[..16].to_owned();
        let report = json!({
            "type": "transaction", "transaction": name, "start_timestamp": told.began, "timestamp": now(), "spans": [],
            "contexts": { "trace": { "trace_id": trace.simple().to_string(), "span_id": span_id, "op": op } },
            "tags": {},
        });
        self.send("transaction", report);
    }
}

fn now() -> f64 {
    Utc::now().timestamp_micros() as f64 / 1_000_000.0
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text: String = without_queries(value).chars().take(LONGEST).collect();
        self.0.insert(field.name().to_owned(), text.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
