//! The pages.

use tale_core::metrics::{Format, Kind, Page};

use super::collect::Found;
use super::process::Process;
use super::{Series, requests, sla};

/// Jobs that somebody waits for: dead ones wait for nobody.
const QUEUED: [&str; 2] = ["waiting", "ready"];

pub(super) fn page(role: &str, series: Series, found: Option<&Found>, format: Format) -> String {
    let mut page = Page::new(format);
    page.family(Kind::Gauge, "tale_config_info", "The role and the release of the process.");
    page.sample("tale_config_info", &[("role", role), ("version", env!("CARGO_PKG_VERSION"))], 1);
    if series != Series::Backend {
        requests::write_platform(&mut page);
    }
    if series != Series::Platform {
        requests::write_backend(&mut page);
        durations(&mut page);
        provider_errors(&mut page);
        usage(&mut page);
        mail(&mut page);
    }
    if let Some(found) = found {
        gauges(&mut page, found);
        jobs(&mut page, found);
        pools(&mut page, found);
    }
    sla::write(&mut page);
    process(&mut page);
    page.finish()
}

fn durations(page: &mut Page) {
    let name = "tale_dialog_ttft_seconds";
    page.family(Kind::Histogram, name, "Time from an accepted message to the first token of the model.");
    page.histogram(name, &[], &tale_chat::metrics::DIALOG_TTFT);
    let name = "tale_long_operation_seconds";
    page.family(Kind::Histogram, name, "Time that long operations took, by kind.");
    page.histogram(name, &[("kind", "ingestion")], &tale_knowledge::metrics::INGESTION);
}

fn provider_errors(page: &mut Page) {
    let name = "tale_provider_errors_total";
    page.family(Kind::Counter, name, "Calls that a model provider refused, failed or left unanswered, by class.");
    for (class, count) in tale_models::metrics::provider_errors() {
        page.sample(name, &[("class", class)], count);
    }
}

fn usage(page: &mut Page) {
    let name = "tale_budget_refusals_total";
    page.family(Kind::Counter, name, "Work that a usage limit refused, by kind of limit and scope of its rule.");
    for (kind, scope, count) in tale_models::metrics::refusals() {
        page.sample(name, &[("kind", kind.text()), ("scope", scope.text())], count);
    }
    let help = "Model calls of this process that are held and not booked yet.";
    page.gauge("tale_usage_holds_open", help, Some(tale_models::metrics::holds_open()));
    let help = "Calls through the model endpoints and the model gateway that providers of this process are at.";
    page.gauge("tale_gateway_calls_running", help, Some(tale_gateway::metrics::running()));
    let help = "The same that wait for a place at their provider.";
    page.gauge("tale_gateway_calls_waiting", help, Some(tale_gateway::metrics::waiting()));
    for (name, help, counter) in [
        (
            "tale_gateway_queue_full_total",
            "Calls that were refused because the queue of their provider was full.",
            &tale_gateway::metrics::QUEUE_FULL,
        ),
        (
            "tale_gateway_log_dropped_total",
            "Rows of the gateway's request log that could not be stored.",
            &tale_gateway::metrics::LOG_DROPPED,
        ),
    ] {
        page.family(Kind::Counter, name, help);
        page.sample(name, &[], counter.get());
    }
}

/// Mail about notifications. A worker sends it, so the figures of other processes stay at zero.
fn mail(page: &mut Page) {
    use tale_identity::notices::mail::metrics;
    for (name, help, counter) in [
        ("tale_mail_sent_total", "Mails that the mail server took.", &metrics::SENT),
        ("tale_mail_deferred_total", "Attempts to deliver a mail that are repeated later.", &metrics::DEFERRED),
        ("tale_mail_failed_total", "Mails that were refused for good or given up.", &metrics::FAILED),
    ] {
        page.family(Kind::Counter, name, help);
        page.sample(name, &[], counter.get());
    }
    let help = "1 while the mail server cannot be used.";
    page.gauge("tale_mail_failing", help, Some(u8::from(metrics::failing())));
}

fn gauges(page: &mut Page, found: &Found) {
    page.gauge("tale_backend_hint_streams_open", "Open live streams of this process.", Some(found.streams));
    let help = "Chat turns with a sign of life in the last 10 minutes, of all processes.";
    page.gauge("tale_backend_generations_inflight", help, found.generations);
    let help = "1 while new turns are refused because the process stops.";
    page.gauge("tale_backend_drain_active", help, Some(u8::from(found.draining)));
    let help = "End of the last scan of schedules; 0 when there was none in 10 minutes. This release has no schedules.";
    page.gauge("tale_backend_automation_trigger_scan_last_success_timestamp_seconds", help, Some(0));
    page.family(Kind::Gauge, "tale_backend_store_up", "Whether a default store answered in the last 30 seconds.");
    for (store, up) in &found.stores {
        page.sample("tale_backend_store_up", &[("store", store)], u8::from(*up));
    }
}

fn jobs(page: &mut Page, found: &Found) {
    let Some(depths) = &found.jobs else { return };
    page.family(Kind::Gauge, "tale_backend_jobs", "Jobs by state, of all processes.");
    for state in tale_jobs::STATES {
        let jobs: i64 = depths.iter().filter(|depth| depth.state == state).map(|depth| depth.jobs).sum();
        page.sample("tale_backend_jobs", &[("state", state)], jobs);
    }
    page.family(Kind::Gauge, "tale_backend_queue_jobs", "Jobs by queue and state, of all processes.");
    for depth in depths {
        page.sample("tale_backend_queue_jobs", &[("queue", &depth.kind), ("state", &depth.state)], depth.jobs);
    }
    let name = "tale_backend_queue_oldest_job_age_seconds";
    page.family(Kind::Gauge, name, "Age of the oldest job of a queue that has not begun.");
    let mut waiting = depths.iter().filter(|depth| QUEUED.contains(&depth.state.as_str())).peekable();
    while let Some(depth) = waiting.next() {
        // Ordered by queue: its states follow one another.
        let mut oldest = depth.oldest_seconds;
        while let Some(next) = waiting.next_if(|next| next.kind == depth.kind) {
            oldest = oldest.max(next.oldest_seconds);
        }
        page.sample(name, &[("queue", &depth.kind)], oldest);
    }
}

fn pools(page: &mut Page, found: &Found) {
    page.family(Kind::Gauge, "tale_backend_db_pool_connections_max", "Most connections of a pool.");
    for pool in &found.pools {
        page.sample("tale_backend_db_pool_connections_max", &[("pool", pool.name)], pool.most);
    }
    page.family(Kind::Gauge, "tale_backend_db_pool_connections_open", "Open connections of a pool.");
    for pool in &found.pools {
        page.sample("tale_backend_db_pool_connections_open", &[("pool", pool.name)], pool.open);
    }
    page.family(Kind::Gauge, "tale_backend_db_pool_connections_in_use", "Connections of a pool that are in use.");
    for pool in &found.pools {
        let used = u64::from(pool.open).saturating_sub(pool.idle as u64);
        page.sample("tale_backend_db_pool_connections_in_use", &[("pool", pool.name)], used);
    }
    let name = "tale_backend_db_pool_wait_seconds";
    page.family(Kind::Gauge, name, "How long this scrape waited for a connection of the pool.");
    for pool in &found.pools {
        if let Some(waited) = pool.waited {
            page.sample(name, &[("pool", pool.name)], waited.as_secs_f64());
        }
    }
}

fn process(page: &mut Page) {
    let process = match Process::look() {
        Ok(process) => process,
        Err(error) => {
            tracing::warn!(event = "metrics.collector_failed", collector = "process", %error, "a gauge could not be read");
            return;
        }
    };
    let name = "process_cpu_seconds_total";
    page.family(Kind::Counter, name, "Processor time, of users and of the system.");
    page.sample(name, &[], process.cpu_seconds);
    page.gauge("process_resident_memory_bytes", "Memory in use.", Some(process.resident_bytes));
    page.gauge("process_virtual_memory_bytes", "Reserved addresses.", Some(process.virtual_bytes));
    page.gauge("process_threads", "Threads.", Some(process.threads));
    page.gauge("process_open_fds", "Open files and connections.", Some(process.open_files));
    page.gauge("process_max_fds", "Most open files and connections.", process.most_files);
    page.gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", Some(process.started));
}
