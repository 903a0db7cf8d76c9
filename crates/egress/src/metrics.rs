//! What the proxy counts.

use tale_core::metrics::{Counter, Format, Kind, Page};

use crate::limits::Held;

pub(crate) static REFUSED_BY_LIMIT: Counter = Counter::new();
pub(crate) static REFUSED_BY_CLIENT_LIMIT: Counter = Counter::new();
pub(crate) static REFUSED_BY_HOST: Counter = Counter::new();
pub(crate) static REFUSED_BY_PORT: Counter = Counter::new();
pub(crate) static REFUSED_BY_ADDRESS: Counter = Counter::new();
pub(crate) static REFUSED_MALFORMED: Counter = Counter::new();
pub(crate) static FAILED: Counter = Counter::new();
pub(crate) static SERVED: Counter = Counter::new();
pub(crate) static DNS_QUERIES: Counter = Counter::new();
pub(crate) static DNS_FAILURES: Counter = Counter::new();
pub(crate) static DNS_REFUSED: Counter = Counter::new();
pub(crate) static BYTES_UP: Counter = Counter::new();
pub(crate) static BYTES_DOWN: Counter = Counter::new();

/// The answer to a scrape.
pub(crate) fn page(held: Held) -> String {
    let mut page = Page::new(Format::Prometheus);
    page.gauge("tale_egress_connections", "Connections of clients that are open.", Some(held.connections));
    page.gauge("tale_egress_clients", "Addresses that have connections.", Some(held.clients));
    let name = "tale_egress_refused_total";
    page.family(Kind::Counter, name, "What was refused, by reason; the limits refuse connections, the rest requests.");
    for (reason, counter) in [
        ("limit", &REFUSED_BY_LIMIT),
        ("client_limit", &REFUSED_BY_CLIENT_LIMIT),
        ("host", &REFUSED_BY_HOST),
        ("port", &REFUSED_BY_PORT),
        ("address", &REFUSED_BY_ADDRESS),
        ("malformed", &REFUSED_MALFORMED),
    ] {
        page.sample(name, &[("reason", reason)], counter.get());
    }
    for (name, help, counter) in [
        ("tale_egress_served_total", "Tunnels and requests that reached their host.", &SERVED),
        ("tale_egress_failed_total", "Tunnels and requests that were admitted and did not reach their host.", &FAILED),
        ("tale_egress_dns_queries_total", "Questions that were sent to a resolver.", &DNS_QUERIES),
        ("tale_egress_dns_failures_total", "Questions without a usable answer.", &DNS_FAILURES),
        ("tale_egress_dns_refused_total", "Questions for names that the allowlist does not admit.", &DNS_REFUSED),
        ("tale_egress_sent_bytes_total", "Bytes from clients to hosts.", &BYTES_UP),
        ("tale_egress_received_bytes_total", "Bytes from hosts to clients.", &BYTES_DOWN),
    ] {
        page.family(Kind::Counter, name, help);
        page.sample(name, &[], counter.get());
    }
    page.finish()
}
