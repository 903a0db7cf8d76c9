//! Reports of faults to a Sentry-compatible service (`SENTRY_DSN`), and shares of what requests and
//! jobs took (`BACKEND_SENTRY_TRACES_SAMPLE_RATE`). What pages report comes by the same way.
//!
//! A report is an error line of the log with the role, the release and the environment. Bodies,
//! cookies and headers are never part of it; addresses lose their query and fragment, and secrets are
//! taken out of the finished text. Reports wait in a short queue and are dropped when it is full: a
//! service that is away costs nothing but its reports.

mod desk;
mod dsn;
mod layer;
mod send;

use secrecy::ExposeSecret;
use tale_env::{EnvProblems, EnvSource, ReportSettings, report_settings};
use tokio::sync::mpsc;

use self::desk::Desk;
use self::dsn::Dsn;
pub(crate) use self::layer::{Interesting, Reports};
pub(crate) use self::send::Sender;

/// Reports that may wait.
const WAITING: usize = 64;

/// What collects reports and what sends them.
pub(crate) struct Prepared {
    /// Of this process.
    pub(crate) reports: Reports,
    /// Of the pages it serves.
    pub(crate) browsers: Browsers,
    pub(crate) sender: Sender,
}

/// What the web tier needs to take reports of pages.
pub(crate) struct Browsers {
    pub(crate) desk: Desk,
    /// Share of pages that are measured.
    pub(crate) share: f64,
}

/// Everything for reporting; nothing without a DSN.
///
/// # Errors
/// When a variable cannot be used.
pub(crate) fn prepare(env: &dyn EnvSource, role: &'static str) -> Result<Option<Prepared>, EnvProblems> {
    let settings = report_settings(env)?;
    let Some(dsn) = &settings.dsn else { return Ok(None) };
    let dsn = Dsn::parse(dsn.expose_secret()).ok_or_else(|| EnvProblems(vec![dsn::refused()]))?;
    Ok(Some(pair(dsn, settings, role)))
}

fn pair(dsn: Dsn, settings: ReportSettings, role: &'static str) -> Prepared {
    let (queue, waiting) = mpsc::channel(WAITING);
    let desk = Desk { queue, environment: settings.environment };
    let browsers = Browsers { desk: desk.clone(), share: settings.browser_traces };
    Prepared { reports: Reports::new(desk, role, settings.traces), browsers, sender: Sender::new(dsn, waiting) }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tale_testkit::recorder::Recorder;
    use tokio_util::sync::CancellationToken;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn reporting(recorder: &Recorder, share: f64) -> (Reports, Sender) {
        let dsn = Dsn::parse(&format!("http://publickey@{}/prefix/42", recorder.authority())).unwrap();
        let settings = ReportSettings { dsn: None, environment: "staging".into(), traces: share, browser_traces: 0.0 };
        let prepared = pair(dsn, settings, "all");
        // The queue ends with its last desk.
        (prepared.reports, prepared.sender)
    }

    /// Header and payload of an envelope.
    fn opened(body: &[u8]) -> (Value, Value) {
        let lines: Vec<&str> = std::str::from_utf8(body).unwrap().lines().collect();
        assert_eq!(lines.len(), 3);
        let header: Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(header["length"], lines[2].len());
        (header, serde_json::from_str(lines[2]).unwrap())
    }

    #[tokio::test]
    async fn a_fault_arrives_with_its_role_and_release_and_without_secrets() {
        let recorder = Recorder::start().await;
        let (reports, sender) = reporting(&recorder, 0.0);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(reports), || {
            let span = tracing::info_span!("request", request_id = "r-7", method = "GET", path = "/api/app/chat");
            let _entered = span.enter();
            tracing::warn!("only an error is a fault");
            tracing::error!(
                event = "http.fault",
                cause = "asking http://idp.test/callback?code=once#part failed: Bearer abc.def",
                "something broke"
            );
        });
        sender.run(CancellationToken::new()).await;
        let requests = recorder.requests();
        assert_eq!(requests.len(), 1);
        let request = &requests[0];
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/prefix/api/42/envelope/"));
        let auth = request.header("x-sentry-auth");
        assert!(auth.contains("sentry_version=7") && auth.contains("sentry_key=publickey"), "{auth}");
        let (header, event) = opened(&request.body);
        assert_eq!(header["type"], "event");
        assert_eq!(event["release"], concat!("tale@", env!("CARGO_PKG_VERSION")));
        assert_eq!((&event["environment"], &event["level"]), (&"staging".into(), &"error".into()));
        assert_eq!(event["tags"]["role"], "all");
        assert_eq!(event["tags"]["event"], "http.fault");
        assert_eq!(event["tags"]["request_id"], "r-7");
        assert_eq!(event["message"]["formatted"], "something broke");
        assert_eq!(event["extra"]["cause"], "asking http://idp.test/callback failed: Bearer [hidden]");
    }

    #[tokio::test]
    async fn shares_are_sent_of_requests_and_jobs_and_of_nothing_else() {
        let recorder = Recorder::start().await;
        let (reports, sender) = reporting(&recorder, 1.0);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(reports), || {
            drop(tracing::info_span!(
                "request",
                method = "GET",
                route = "/api/app/chat",
                path = "/api/app/chat/secret"
            ));
            drop(tracing::info_span!("job", job.name = "knowledge.index_file"));
            drop(tracing::info_span!("elsewhere"));
        });
        sender.run(CancellationToken::new()).await;
        let sent: Vec<Value> = recorder.requests().iter().map(|request| opened(&request.body).1).collect();
        let names: Vec<&str> = sent.iter().map(|span| span["transaction"].as_str().unwrap()).collect();
        assert_eq!(names, ["GET /api/app/chat", "knowledge.index_file"]);
        assert_eq!(sent[0]["contexts"]["trace"]["op"], "http.server");
        assert!(!sent[0].to_string().contains("secret"));
    }

    #[tokio::test]
    async fn a_service_that_is_away_holds_nobody_up() {
        let recorder = Recorder::start().await;
        recorder.answer(429, &[("retry-after", "60")]);
        let (reports, sender) = reporting(&recorder, 0.0);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(reports), || {
            for _ in 0..WAITING * 2 {
                tracing::error!("again");
            }
        });
        sender.run(CancellationToken::new()).await;
        assert_eq!(recorder.requests().len(), 1, "it asked for a pause");
    }
}
