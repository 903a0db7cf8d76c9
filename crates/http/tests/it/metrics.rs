//! What a scrape sees.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tale_blobs::embedded;
use tale_blobs::{Blobs, StoreConfig};
use tale_core::metrics::Format;
use tale_core::{Clock, SystemClock};
use tale_http::listeners::Listeners;
use tale_http::metrics::{Metrics, MetricsParts, Series};
use tale_testkit::upstream::Reply;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::stage::Stage;
use crate::world::{METRICS_TOKEN, World};

/// The value of a series with its labels.
fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn routes(page: &str) -> BTreeSet<String> {
    let label = |line: &str| Some(line.split_once("route=\"")?.1.split_once('"')?.0.to_owned());
    page.lines().filter_map(label).collect()
}

async fn scrape(world: &World, path: &str) -> String {
    let bearer = format!("Bearer {METRICS_TOKEN}");
    let answer = world.browser().with("authorization", &bearer).get(path).await;
    assert_eq!(answer.status, 200, "{path}");
    String::from_utf8(answer.bytes).unwrap()
}

fn parts(world: &World, blobs: Blobs) -> MetricsParts {
    MetricsParts {
        role: "all",
        clock: world.clock.clone(),
        app_db: world.app.database.clone(),
        knowledge_db: world.app.corpus.clone(),
        blobs,
        streams: Listeners::default(),
        draining: CancellationToken::new(),
    }
}

fn blobs_at(endpoint: &str) -> Blobs {
    let config = StoreConfig {
        endpoint: endpoint.parse().unwrap(),
        public_endpoint: None,
        site_origins: Vec::new(),
        region: "us-east-1".into(),
        bucket: "tale-blobs".into(),
        prefix: String::new(),
        path_style: true,
        access_key: "tale".into(),
        secret_key: "another".into(),
    };
    Blobs::new(config, Arc::new(SystemClock)).unwrap()
}

#[tokio::test]
async fn public_metrics_ask_for_the_token_and_tell_nothing_without_it() {
    let world = World::new().await;
    for path in ["/metrics/platform", "/metrics/backend", "/metrics/sla-rules"] {
        for authorization in [None, Some("Bearer wrong"), Some(METRICS_TOKEN), Some("Bearer "), Some("Basic eDp5")] {
            let mut client = world.browser();
            if let Some(text) = authorization {
                client = client.with("authorization", text);
            }
            let answer = client.get(path).await;
            assert_eq!((answer.status, answer.bytes.as_slice()), (StatusCode::UNAUTHORIZED, b"".as_slice()), "{path}");
        }
        assert!(!scrape(&world, path).await.is_empty());
    }
}

#[tokio::test]
async fn the_internal_page_is_for_neighbours_that_come_by_themselves() {
    let world = World::new().await;
    let answer = world.browser().get("/metrics").await;
    assert_eq!((answer.status, answer.header("content-type").split(';').next()), (StatusCode::OK, Some("text/plain")));
    let page = String::from_utf8(answer.bytes).unwrap();
    assert_eq!(
        value(&page, &format!("tale_config_info{{role=\"all\",version=\"{}\"}}", env!("CARGO_PKG_VERSION"))),
        Some(1.0)
    );
    assert!(page.contains("tale_platform_http_requests_total") && page.contains("tale_backend_http_requests_total"));
    let asked = world.browser().with("accept", "application/openmetrics-text;version=1.0.0").get("/metrics").await;
    assert!(asked.header("content-type").starts_with("application/openmetrics-text"));
    assert!(asked.bytes.ends_with(b"# EOF\n"));
    assert_eq!(world.browser().from("8.8.8.8").get("/metrics").await.status, 404);
    assert_eq!(world.browser().with("x-forwarded-for", "10.0.0.1").get("/metrics").await.status, 404);
}

#[tokio::test]
async fn ten_thousand_paths_are_no_new_label() {
    let world = World::new().await;
    let client = world.browser();
    for path in ["/x", "/api/x", "/api/app/x"] {
        client.open("GET", path, Body::empty()).await;
    }
    let before = routes(&scrape(&world, "/metrics/backend").await);
    for number in 0..10_000 {
        let path = match number % 3 {
            0 => format!("/{number}/x"),
            1 => format!("/api/{number}"),
            _ => format!("/api/app/{number}/x"),
        };
        client.open("GET", &path, Body::empty()).await;
    }
    let page = scrape(&world, "/metrics/backend").await;
    let after = routes(&page);
    assert_eq!(after.difference(&before).collect::<Vec<_>>(), ["/metrics"]);
    assert!(
        value(&page, "tale_backend_http_requests_total{method=\"GET\",route=\"/api/app\",status=\"4xx\"}")
            >= Some(3_333.0)
    );
    assert!(
        value(&page, "tale_backend_http_request_duration_seconds_count{method=\"GET\",route=\"other\"}")
            >= Some(6_666.0)
    );
}

#[tokio::test]
async fn a_store_that_is_away_reads_zero_until_it_is_back() {
    const FILES: &str = "tale_backend_store_up{store=\"object_store\"}";
    let mut world = World::new().await;
    assert_eq!(value(&scrape(&world, "/metrics/backend").await, FILES), Some(1.0));
    let store = world.store.take().unwrap();
    let port = store.endpoint.port().unwrap();
    store.stop().await;
    world.clock.advance(Duration::from_millis(29_999));
    assert_eq!(value(&scrape(&world, "/metrics/backend").await, FILES), Some(1.0), "the last look still counts");
    world.clock.advance(Duration::from_millis(1));
    let page = scrape(&world, "/metrics/backend").await;
    assert_eq!(value(&page, FILES), Some(0.0));
    assert_eq!(value(&page, "tale_backend_store_up{store=\"app_db\"}"), Some(1.0));
    assert_eq!(value(&page, "tale_backend_store_up{store=\"knowledge_db\"}"), Some(1.0));
    assert_eq!(world.browser().get("/ready").await.status, 200);

    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let service = embedded::service(&world.folder.path().join("objects"), "tale", &"secret".into()).unwrap();
    tokio::spawn(embedded::serve(listener, service, CancellationToken::new()));
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(value(&scrape(&world, "/metrics/backend").await, FILES), Some(1.0));
}

#[tokio::test]
async fn a_bucket_that_may_not_be_looked_at_counts_as_up_and_scrapes_share_a_look() {
    let world = World::new().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let forbidden = Router::new().fallback(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async { StatusCode::FORBIDDEN }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum_serve(listener, forbidden).await });
    let metrics = Metrics::new(parts(&world, blobs_at(&endpoint)));
    let pages = (0..20).map(|_| metrics.page(Series::Backend, Format::Prometheus));
    for page in futures::future::join_all(pages).await {
        assert_eq!(value(&page, "tale_backend_store_up{store=\"object_store\"}"), Some(1.0));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Serves a router with the product's own server.
async fn axum_serve(listener: TcpListener, router: Router) {
    let stop = tale_http::serve::Stop {
        drain: CancellationToken::new(),
        close: CancellationToken::new(),
        budget: Duration::from_secs(1),
    };
    tale_http::serve(listener, router, stop).await;
}

#[tokio::test]
async fn a_queue_that_ran_dry_leaves_no_old_number() {
    let world = World::new().await;
    let queued = "INSERT INTO app.jobs (id, kind, payload, state, run_at, created_at)
        VALUES (gen_random_uuid(), 'test.kind', '{}', 'ready', now(), now() - interval '90 seconds')";
    for _ in 0..2 {
        sqlx::query(queued).execute(&world.app.database).await.unwrap();
    }
    let page = scrape(&world, "/metrics/backend").await;
    assert_eq!(value(&page, "tale_backend_jobs{state=\"ready\"}"), Some(2.0));
    assert_eq!(value(&page, "tale_backend_queue_jobs{queue=\"test.kind\",state=\"ready\"}"), Some(2.0));
    assert!(value(&page, "tale_backend_queue_oldest_job_age_seconds{queue=\"test.kind\"}") >= Some(90.0));
    sqlx::query("DELETE FROM app.jobs").execute(&world.app.database).await.unwrap();
    let page = scrape(&world, "/metrics/backend").await;
    for state in ["waiting", "ready", "running", "dead"] {
        assert_eq!(value(&page, &format!("tale_backend_jobs{{state=\"{state}\"}}")), Some(0.0));
    }
    assert!(!page.contains("test.kind"));
}

#[tokio::test]
async fn a_gauge_that_cannot_be_read_is_absent_and_the_rest_is_there() {
    let world = World::new().await;
    let metrics = Metrics::new(parts(&world, Blobs::unconfigured()));
    world.app.database.close().await;
    let page = metrics.page(Series::All, Format::Prometheus).await;
    for absent in [
        "tale_backend_jobs{",
        "tale_backend_generations_inflight ",
        "wait_seconds{pool=\"app_db\"}",
        "store=\"object_store\"",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert_eq!(value(&page, "tale_backend_store_up{store=\"app_db\"}"), Some(0.0));
    assert_eq!(value(&page, "tale_backend_store_up{store=\"knowledge_db\"}"), Some(1.0));
    assert!(value(&page, "process_resident_memory_bytes") > Some(1_000_000.0));
    assert!(value(&page, "process_open_fds") > Some(3.0));
    assert!(value(&page, "process_cpu_seconds_total") >= Some(0.0));
    let started = value(&page, "process_start_time_seconds").unwrap();
    let now = SystemClock.now_ms() as f64 / 1_000.0;
    assert!((now - 600.0..=now + 1.0).contains(&started), "{started} is not a moment ago");
}

#[tokio::test]
async fn a_turn_is_counted_by_its_first_token_and_a_refusal_by_its_class() {
    const TURNS: &str = "tale_dialog_ttft_seconds_count";
    const REFUSED: &str = "tale_provider_errors_total{class=\"auth_error\"}";
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let before = scrape(&stage.world, "/metrics/backend").await;
    stage.upstream.push(Reply::text("Hello"));
    say(&mut stage).await;
    let answered = scrape(&stage.world, "/metrics/backend").await;
    assert_eq!(value(&answered, TURNS).unwrap() - value(&before, TURNS).unwrap(), 1.0);
    assert_eq!(value(&answered, "tale_backend_generations_inflight"), Some(0.0));
    // the turn; the first chat may still be asking for its title
    stage.upstream.respond_with(|request| {
        let title = request.body.to_string().contains("Name the conversation");
        (!title).then(|| Reply::refusal(401, "invalid_api_key", "bad key"))
    });
    say(&mut stage).await;
    let refused = scrape(&stage.world, "/metrics/backend").await;
    assert_eq!(value(&refused, TURNS), value(&answered, TURNS), "nothing was said");
    assert!(value(&refused, REFUSED) > value(&answered, REFUSED));
}

async fn say(stage: &mut Stage) {
    let question = json!({ "content": "Hi", "model": "fake-chat" });
    let sent = stage.post("chat/threads/new/messages", question).await.expect(202);
    stage.settled(sent["threadId"].as_str().unwrap()).await;
}

#[tokio::test]
async fn targets_and_rules_come_from_one_table() {
    let world = World::new().await;
    for page in [scrape(&world, "/metrics/platform").await, scrape(&world, "/metrics/backend").await] {
        assert_eq!(value(&page, "tale_sla_target_seconds{sla=\"dialog_ttft\",statistic=\"mean\"}"), Some(1.0));
        assert_eq!(value(&page, "tale_sla_target_seconds{sla=\"long_operation\",statistic=\"mean\"}"), Some(40.0));
    }
    let rules = scrape(&world, "/metrics/sla-rules").await;
    let expected = "groups:
  - name: tale-sla-recording
    rules:
      - record: tale_sla_dialog_ttft:mean30m
        expr: sum(rate(tale_dialog_ttft_seconds_sum[30m])) / sum(rate(tale_dialog_ttft_seconds_count[30m]))
      - record: tale_sla_long_operation:mean6h
        expr: sum(rate(tale_long_operation_seconds_sum[6h])) / sum(rate(tale_long_operation_seconds_count[6h]))
  - name: tale-sla-alerts
    rules:
      - alert: TaleSlaDialogTtftBreached
        expr: tale_sla_dialog_ttft:mean30m > 1
        for: 15m
        labels:
          severity: warn
        annotations:
          summary: The first token of an answer takes longer than the target (1 s)
      - alert: TaleSlaLongOperationBreached
        expr: tale_sla_long_operation:mean6h > 40
        for: 30m
        labels:
          severity: warn
        annotations:
          summary: Long operations take longer than the target (40 s)
";
    assert_eq!(rules, expected);
}

#[tokio::test]
async fn a_drain_and_open_streams_show() {
    let stage = Stage::new().await;
    let stream = stage.owner.open("GET", &format!("/events?orgId={}", stage.org), Body::empty()).await;
    let page = scrape(&stage.world, "/metrics/backend").await;
    assert_eq!(value(&page, "tale_backend_hint_streams_open"), Some(1.0));
    assert_eq!(value(&page, "tale_backend_drain_active"), Some(0.0));
    drop(stream);
    stage.world.stopping.cancel();
    let page = scrape(&stage.world, "/metrics/backend").await;
    assert_eq!(value(&page, "tale_backend_hint_streams_open"), Some(0.0));
    assert_eq!(value(&page, "tale_backend_drain_active"), Some(1.0));
}

/// Every series that a scrape can hold: the names of its families.
#[tokio::test]
async fn the_documented_series_are_the_emitted_ones() {
    let world = World::new().await;
    world.browser().get("/ping").await;
    let page = String::from_utf8(world.browser().get("/metrics").await.bytes).unwrap();
    let emitted: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md")).unwrap();
    let missing: Vec<_> = emitted.iter().filter(|name| !docs.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/operating.md: {missing:?}");
}

#[tokio::test]
async fn every_panel_of_the_dashboard_shows_a_series_that_is_emitted() {
    let world = World::new().await;
    world.browser().get("/ping").await;
    world.browser().get("/chat").await;
    sqlx::query(
        "INSERT INTO app.jobs (id, kind, payload, state, run_at) VALUES (gen_random_uuid(), 'k', '{}', 'ready', now())",
    )
    .execute(&world.app.database)
    .await
    .unwrap();
    let page = String::from_utf8(world.browser().get("/metrics").await.bytes).unwrap();
    let rules = scrape(&world, "/metrics/sla-rules").await;
    let mut known: BTreeSet<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    known.extend(page.lines().filter_map(|line| line.split(['{', ' ']).next()));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/tale.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut asked = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array();
        assert_eq!(panel["type"] == "row", targets.is_none(), "{}", panel["title"]);
        for target in targets.into_iter().flatten() {
            let words =
                target["expr"].as_str().unwrap().split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
            let names: Vec<&str> =
                words.filter(|word| word.starts_with("tale_") || word.starts_with("process_")).collect();
            assert!(!names.is_empty(), "{target} asks for nothing");
            asked.extend(names);
        }
    }
    let unknown: Vec<_> = asked.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not emitted");
}
