//! What pages tell outward: what goes on, what stays, and that nothing of it is needed.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tale_core::Clock;
use tale_core::{ManualClock, SystemClock};
use tale_env::AnalyticsSettings;
use tale_http::frames::Frames;
use tale_http::outlets::Outlets;
use tale_http::outlets::analytics::Analytics;
use tale_http::outlets::reports::{BrowserReports, ReportSink};
use tale_http::status::Status;
use tale_http::web::WebFiles;
use tale_http::{Shell, ShellParts, StoreOrigins, platform_router};
use tale_testkit::recorder::Recorder;

use crate::client::Client;
use crate::world::{SITE, site_at};

const WEBSITE: &str = "8f8b2f3e-1c1a-4d6e-9a55-3f3f8d8f0a11";
const TOKEN: &str = "collector-token-0123";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(SystemClock.now()))
}

/// A browser at a web tier of its own, under a base path.
fn browser(outlets: Outlets) -> Client {
    let shell = Shell::new(ShellParts {
        role: "platform",
        site: tale_env::SiteSettings { base_path: "/app".into(), ..site_at(SITE) },
        web: WebFiles::Embedded,
        stores: StoreOrigins::of_backend(String::new(), "http://127.0.0.1:1".parse().unwrap()).unwrap(),
        status: Status::of_backend(clock(), "http://127.0.0.1:1".parse().unwrap()).unwrap(),
        metrics_token: None,
        outlets,
        frames: Frames::of_backend(clock(), &"http://127.0.0.1:1".parse().unwrap()).unwrap(),
    });
    Client::browser(platform_router(shell))
}

fn counting(collector: &Recorder) -> Client {
    counting_at(&collector.authority())
}

fn counting_at(collector: &str) -> Client {
    let settings = AnalyticsSettings {
        collector: format!("http://{collector}").parse().unwrap(),
        website: WEBSITE.into(),
        token: TOKEN.into(),
    };
    browser(Outlets { analytics: Some(Arc::new(Analytics::new(settings, clock()).unwrap())), reports: None })
}

fn view() -> Value {
    json!({ "type": "event", "payload": { "website": "another", "url": "/dashboard/:org/documents", "title": "Secret plan", "screen": "1440x900", "language": "de" } })
}

#[tokio::test]
async fn the_collector_gets_a_view_and_nothing_of_the_session() {
    let collector = Recorder::start().await;
    collector.answer_with(
        200,
        &[("content-type", "application/json"), ("set-cookie", "a=b")],
        r#"{"cache":"visit-1"}"#,
    );
    let mut page = counting(&collector)
        .with("user-agent", "Browser/1")
        .with("cookie", "tale_session=secret")
        .with("authorization", "Bearer own")
        .with("referer", "http://localhost:3000/app/dashboard/x")
        .with("x-umami-cache", "visit-0")
        .with("x-forwarded-for", "192.0.2.1")
        .with("x-analytics-client-ip", "198.51.100.7");
    let answer = page.post("/app/_a/api/send", view()).await;
    assert_eq!((answer.status.as_u16(), answer.json()["cache"].as_str()), (200, Some("visit-1")));
    assert!(answer.headers.get("set-cookie").is_none());
    let sent = &collector.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/_collect/api/send"));
    assert_eq!(sent.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!((sent.header("user-agent"), sent.header("x-umami-cache")), ("Browser/1", "visit-0"));
    assert_eq!(
        (sent.header("x-analytics-client-ip"), sent.header("x-forwarded-for")),
        ("198.51.100.7", "198.51.100.7")
    );
    assert_eq!((sent.header("cookie"), sent.header("referer"), sent.header("origin")), ("", "", ""));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!((&body["payload"]["website"], &body["payload"]["title"]), (&WEBSITE.into(), &Value::Null));

    // Nobody but a proxy of ours names another client.
    page.clone().from("203.0.113.9").post("/app/_a/api/send", view()).await;
    assert_eq!(collector.requests()[1].header("x-analytics-client-ip"), "203.0.113.9");
    page.without("x-analytics-client-ip").post("/app/_a/api/send", view()).await;
    assert_eq!(collector.requests()[2].header("x-analytics-client-ip"), "192.0.2.1");
}

#[tokio::test]
async fn who_declines_and_who_is_no_page_of_ours_is_not_counted() {
    let collector = Recorder::start().await;
    let page = counting(&collector);
    for wish in ["dnt", "sec-gpc"] {
        page.clone().with(wish, "1").post("/app/_a/api/send", view()).await.expect(204);
    }
    let foreign = page.clone().with("origin", "https://evil.example").post("/app/_a/api/send", view()).await;
    assert_eq!(foreign.refusal(), (403, "ORIGIN_FORBIDDEN".into()));
    for body in [
        json!({ "type": "identify", "payload": { "url": "/log-in" } }),
        json!({ "type": "event", "payload": { "url": "/log-in?next=/x" } }),
        json!({ "type": "event", "payload": { "url": "/dashboard/01999b1e-7f9b-7d10-8000-0123456789ab" } }),
        json!([]),
    ] {
        assert_eq!(page.clone().post("/app/_a/api/send", body).await.refusal().1, "INVALID_BODY");
    }
    let large = json!({ "type": "event", "payload": { "url": "/", "title": "x".repeat(9_000) } });
    assert_eq!(page.clone().post("/app/_a/api/send", large).await.refusal().1, "BODY_TOO_LARGE");
    assert!(collector.requests().is_empty());
    for _ in 0..700 {
        page.clone().post("/app/_a/api/send", json!([])).await;
    }
    assert_eq!(page.clone().post("/app/_a/api/send", view()).await.refusal().1, "RATE_LIMITED");
}

#[tokio::test]
async fn the_script_comes_from_the_collector_or_not_at_all() {
    let collector = Recorder::start().await;
    let mut page = counting(&collector).with("cookie", "tale_session=secret");
    collector.answer_with(200, &[("content-type", "text/html"), ("cache-control", "no-store")], "window.umami = {}");
    let script = page.get("/app/_a/script.js").await;
    assert_eq!((script.status.as_u16(), script.header("content-type")), (200, "text/javascript; charset=utf-8"));
    assert_eq!(script.bytes, b"window.umami = {}");
    let asked = &collector.requests()[0];
    assert_eq!((asked.path.as_str(), asked.header("cookie")), ("/_collect/script.js", ""));
    for (status, headers, body) in [
        (500, &[][..], "broken".to_owned()),
        (302, &[("location", "https://elsewhere.example/")], String::new()),
        (200, &[], "x".repeat(300 << 10)),
    ] {
        collector.answer_with(status, headers, &body);
        let script = page.get("/app/_a/script.js").await;
        assert_eq!((script.status.as_u16(), script.bytes.len()), (502, 0), "{status}");
    }
    let mut away = counting_at("127.0.0.1:1");
    away.get("/app/_a/script.js").await.expect(502);
    away.post("/app/_a/api/send", view()).await.expect(502);
    let mut off = browser(Outlets::default());
    for path in ["/app/_a/script.js", "/app/_a/other"] {
        off.get(path).await.expect(404);
    }
    off.post("/app/_a/api/send", view()).await.expect(404);
    off.post("/app/_reports", json!({})).await.expect(404);
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<(&'static str, Value)>>>);

impl ReportSink for Sink {
    fn report(&self, kind: &'static str, payload: Value) {
        self.0.lock().unwrap().push((kind, payload));
    }
}

fn reporting(share: f64) -> (Client, Sink) {
    let sink = Sink::default();
    let reports = BrowserReports::new(Box::new(sink.clone()), share, clock());
    (browser(Outlets { analytics: None, reports: Some(Arc::new(reports)) }), sink)
}

#[tokio::test]
async fn a_fault_of_a_page_is_reported_without_queries() {
    let (page, sink) = reporting(0.0);
    let fault = json!({
        "kind": "error", "page": "/dashboard/:org/chat/:threadId", "name": "TypeError",
        "message": "cannot load https://t.example/callback?code=once#part",
        "stack": "TypeError: x\n    at send (https://t.example/_app/a.js?v=secret:1:20)\n    at f (https://t.example/_app/b.js:7:2)",
    });
    page.clone().with("user-agent", "Browser/1").post("/app/_reports", fault.clone()).await.expect(204);
    let (kind, event) = sink.0.lock().unwrap()[0].clone();
    assert_eq!((kind, &event["transaction"]), ("event", &"/dashboard/:org/chat/:threadId".into()));
    let exception = &event["exception"]["values"][0];
    assert_eq!(
        (&exception["type"], &exception["value"]),
        (&"TypeError".into(), &"cannot load https://t.example/callback".into())
    );
    assert_eq!(exception["stacktrace"]["frames"][0]["filename"], "https://t.example/_app/b.js");
    assert_eq!(event["request"]["headers"]["User-Agent"], "Browser/1");
    assert!(!event.to_string().contains("secret") && !event.to_string().contains("once"));

    let mut with_extra = fault.clone();
    with_extra["cookie"] = "tale_session=x".into();
    let mut elsewhere = fault.clone();
    elsewhere["page"] = "/dashboard/01999b1e-7f9b-7d10-8000-0123456789ab/chat".into();
    for wrong in [with_extra, elsewhere, json!({ "kind": "error" }), json!([])] {
        assert_eq!(page.clone().post("/app/_reports", wrong).await.refusal().1, "INVALID_BODY");
    }
    let foreign = page.clone().with("origin", "https://evil.example").post("/app/_reports", fault.clone()).await;
    assert_eq!(foreign.refusal().1, "ORIGIN_FORBIDDEN");
    // A share of zero measures nothing.
    page.clone()
        .post("/app/_reports", json!({ "kind": "page", "page": "/", "first": true, "ms": 5 }))
        .await
        .expect(204);
    assert_eq!(sink.0.lock().unwrap().len(), 1);
    // One network cannot fill the service.
    let mut last = 0;
    for _ in 0..60 {
        last = page.clone().post("/app/_reports", fault.clone()).await.status.as_u16();
    }
    assert_eq!(last, 429);
    assert!(sink.0.lock().unwrap().len() <= 60);
    page.clone().from("203.0.113.9").post("/app/_reports", fault).await.expect(204);
}

#[tokio::test]
async fn measured_pages_are_transactions() {
    let (mut page, sink) = reporting(1.0);
    for (first, ms) in [(true, 1500.0), (false, -1.0), (false, 1e300), (false, 20.0)] {
        page.post("/app/_reports", json!({ "kind": "page", "page": "/log-in", "first": first, "ms": ms }))
            .await
            .expect(204);
    }
    let sent = sink.0.lock().unwrap().clone();
    let said: Vec<(&str, f64)> = sent
        .iter()
        .map(|(kind, event)| {
            assert_eq!(*kind, "transaction");
            let took = event["timestamp"].as_f64().unwrap() - event["start_timestamp"].as_f64().unwrap();
            (event["contexts"]["trace"]["op"].as_str().unwrap(), (took * 1000.0).round())
        })
        .collect();
    assert_eq!(said, [("pageload", 1500.0), ("navigation", 20.0)]);
}
