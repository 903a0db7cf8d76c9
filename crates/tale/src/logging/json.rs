//! A log line as one JSON object: `ts`, `level`, `role`, `version`, `event`, `msg`, then `request_id`
//! and `org` when the line is about a request, then what the line says besides.
//!
//! `event` is the stable name of what happened, for alerts and searches; a line without a name of its
//! own has the path of the module that wrote it.

use std::fmt;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes lines.
pub(super) struct JsonLines {
    pub(super) role: &'static str,
}

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = Said::default();
        if let Some(scope) = ctx.event_scope() {
            for span in scope.from_root() {
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<JsonFields>>();
                if let Some(Ok(Value::Object(fields))) = fields.map(|fields| serde_json::from_str(fields.as_str())) {
                    said.fields.extend(fields);
                }
            }
        }
        event.record(&mut said);
        let mut fields = said.fields;
        let metadata = event.metadata();
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
        put("ts", Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true).into());
        put("level", metadata.level().as_str().to_ascii_lowercase().into());
        put("role", self.role.into());
        put("version", env!("CARGO_PKG_VERSION").into());
        put("event", fields.remove("event").unwrap_or_else(|| metadata.target().replace("::", ".").into()));
        put("msg", fields.remove("message").unwrap_or_default());
        if let Some(id) = fields.remove("request_id") {
            put("request_id", id);
        }
        if let Some(org) = fields.remove("org").or_else(|| fields.remove("org.id")) {
            put("org", org);
        }
        for (name, value) in fields {
            // What the frame says is never said twice.
            line.entry(name).or_insert(value);
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// The fields of a line.
#[derive(Default)]
struct Said {
    fields: Map<String, Value>,
}

impl Said {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Said {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}
