//! Targets of response times: one table for the gauges and for the rules of Prometheus (10.4).

use std::fmt::Write;

use tale_core::metrics::{Kind, Page};

/// A target for the mean of a histogram.
struct Target {
    name: &'static str,
    seconds: u32,
    window: &'static str,
    series: &'static str,
    record: &'static str,
    alert: &'static str,
    wait: &'static str,
    summary: &'static str,
}

const STATISTIC: &str = "mean";

const TARGETS: [Target; 2] = [
    Target {
        name: "dialog_ttft",
        seconds: 1,
        window: "30m",
        series: "tale_dialog_ttft_seconds",
        record: "tale_sla_dialog_ttft:mean30m",
        alert: "TaleSlaDialogTtftBreached",
        wait: "15m",
        summary: "The first token of an answer takes longer than the target",
    },
    Target {
        name: "long_operation",
        seconds: 40,
        window: "6h",
        series: "tale_long_operation_seconds",
        record: "tale_sla_long_operation:mean6h",
        alert: "TaleSlaLongOperationBreached",
        wait: "30m",
        summary: "Long operations take longer than the target",
    },
];

/// Writes the gauges.
pub(super) fn write(page: &mut Page) {
    page.family(Kind::Gauge, "tale_sla_target_seconds", "Targets of response times.");
    for target in &TARGETS {
        let labels = [("sla", target.name), ("statistic", STATISTIC)];
        page.sample("tale_sla_target_seconds", &labels, target.seconds);
    }
}

/// The recording and alerting rules, as YAML.
pub(super) fn rules() -> String {
    let mut text = String::from("groups:\n  - name: tale-sla-recording\n    rules:\n");
    for Target { series, window, record, .. } in &TARGETS {
        let _ = write!(
            text,
            "      - record: {record}\n        expr: sum(rate({series}_sum[{window}])) / sum(rate({series}_count[{window}]))\n"
        );
    }
    text.push_str("  - name: tale-sla-alerts\n    rules:\n");
    for Target { seconds, record, alert, wait, summary, .. } in &TARGETS {
        let _ = write!(
            text,
            "      - alert: {alert}\n        expr: {record} > {seconds}\n        for: {wait}\n        labels:\n          severity: warn\n        annotations:\n          summary: {summary} ({seconds} s)\n"
        );
    }
    text
}
