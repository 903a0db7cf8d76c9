//! Answers by method, class of route and class of status (DCF-122). No label comes from a request:
//! each is a place in a table here, so the number of series is known when the program is built.

use std::time::Duration;

use axum::http::Method;
use tale_core::metrics::{Counter, Histogram, Kind, Page};

const METHODS: [&str; 17] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "OTHER",
];

const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Classes of the doors, longer ones before those they begin with.
const BACKEND: [&str; 55] = [
    "/api/app/account",
    "/api/app/api-keys",
    "/api/app/audit",
    "/api/app/branding",
    "/api/app/catalogs",
    "/api/app/chat",
    "/api/app/code",
    "/api/app/credentials",
    "/api/app/documents",
    "/api/app/files",
    "/api/app/governance",
    "/api/app/knowledge",
    "/api/app/members",
    "/api/app/model-endpoints",
    "/api/app/notifications",
    "/api/app/object-storage",
    "/api/app/organizations",
    "/api/app/permissions",
    "/api/app/preferences",
    "/api/app/providers",
    "/api/app/provisioning",
    "/api/app/sandboxes",
    "/api/app/search",
    "/api/app/session",
    "/api/app/setup",
    "/api/app/sso",
    "/api/app/subscriptions",
    "/api/app/teams",
    "/api/app/trusted-headers",
    "/api/app/uploads",
    "/api/app/usage",
    "/api/app",
    "/api/auth",
    "/api/trusted-headers",
    "/api/tools",
    "/api/v1/anthropic",
    "/api/v1/openai",
    "/api/v1",
    "/api/control",
    "/api/sso",
    "/scim/v2",
    "/api/automations/webhook",
    "/dav",
    "/events",
    "/api/image-proxy",
    "/ping",
    "/ready",
    "/metrics",
    "/health/stores",
    "/openai",
    "/anthropic",
    "/api/organizations",
    "/api/providers",
    "/api/settings",
    "other",
];

/// Classes of the web tier; `page` is every other address that is no door.
const WEB: [&str; 4] = ["asset", "docs", "health", "page"];

const BOUNDS: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

struct Cell {
    statuses: [Counter; STATUSES.len()],
    took: Histogram<10>,
}

impl Cell {
    const fn new() -> Self {
        Self { statuses: [const { Counter::new() }; STATUSES.len()], took: Histogram::new(&BOUNDS) }
    }

    fn count(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, STATUSES.len()) - 1;
        self.statuses[class].increment();
        self.took.observe(took);
    }
}

type Table<const R: usize> = [[Cell; METHODS.len()]; R];

static DOORS: Table<{ BACKEND.len() }> = [const { [const { Cell::new() }; METHODS.len()] }; BACKEND.len()];
static PAGES: Table<{ WEB.len() }> = [const { [const { Cell::new() }; METHODS.len()] }; WEB.len()];

/// Counts an answer. `path` is below the base path.
pub(crate) fn count(method: &Method, path: &str, status: u16, took: Duration) {
    let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
    let class = backend_class(path);
    DOORS[class][method].count(status, took);
    if let Some(class) = web_class(path, class) {
        PAGES[class][method].count(status, took);
    }
}

/// The class of a path, for logs and traces: it holds no id.
pub(crate) fn class(path: &str) -> &'static str {
    BACKEND[backend_class(path)]
}

fn within(path: &str, class: &str) -> bool {
    path.strip_prefix(class).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn backend_class(path: &str) -> usize {
    BACKEND.iter().position(|class| within(path, class)).unwrap_or(BACKEND.len() - 1)
}

fn web_class(path: &str, backend: usize) -> Option<usize> {
    if backend != BACKEND.len() - 1 {
        return None;
    }
    let class = match path {
        "/openapi.json" => "docs",
        "/api/health" | "/status.json" => "health",
        _ if within(path, "/_app") => "asset",
        _ if within(path, "/docs") || within(path, "/_docs") => "docs",
        _ if within(path, "/api") => return None,
        _ => "page",
    };
    WEB.iter().position(|known| *known == class)
}

/// Writes the series of the doors.
pub(super) fn write_backend(page: &mut Page) {
    write(page, &BACKEND, &DOORS, "tale_backend_http_requests_total", "tale_backend_http_request_duration_seconds");
}

/// Writes the series of the web tier.
pub(super) fn write_platform(page: &mut Page) {
    write(page, &WEB, &PAGES, "tale_platform_http_requests_total", "tale_platform_http_request_duration_seconds");
}

fn write<const R: usize>(page: &mut Page, routes: &[&str; R], table: &Table<R>, total: &str, seconds: &str) {
    let cells = || {
        let rows = routes.iter().zip(table);
        rows.flat_map(|(route, row)| METHODS.iter().zip(row).map(move |(method, cell)| (*method, *route, cell)))
    };
    page.family(Kind::Counter, total, "Answers by method, class of route and class of status.");
    for (method, route, cell) in cells() {
        for (status, count) in STATUSES.iter().zip(&cell.statuses).filter(|(_, count)| count.get() > 0) {
            page.sample(total, &[("method", method), ("route", route), ("status", status)], count.get());
        }
    }
    page.family(Kind::Histogram, seconds, "Time until the head of the answer, by method and class of route.");
    for (method, route, cell) in cells().filter(|(_, _, cell)| cell.took.count() > 0) {
        page.histogram(seconds, &[("method", method), ("route", route)], &cell.took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(path: &str) -> (&'static str, Option<&'static str>) {
        let class = backend_class(path);
        (BACKEND[class], web_class(path, class).map(|class| WEB[class]))
    }

    #[test]
    fn a_path_counts_as_its_class() {
        assert_eq!(classes("/api/app/chat/threads/0198/messages"), ("/api/app/chat", None));
        assert_eq!(classes("/api/app/unknown"), ("/api/app", None));
        assert_eq!(classes("/api/apple"), ("other", None));
        assert_eq!(classes("/health/stores"), ("/health/stores", None));
        assert_eq!(classes("/metrics/backend"), ("/metrics", None));
        assert_eq!(classes("/_app/immutable/a.js"), ("other", Some("asset")));
        assert_eq!(classes("/chat/0198"), ("other", Some("page")));
        assert_eq!(classes("/status.json"), ("other", Some("health")));
    }

    #[test]
    fn every_domain_of_the_contract_has_a_class() {
        let document = crate::contract::document();
        for path in document["paths"].as_object().unwrap().keys() {
            let Some(domain) = path.strip_prefix("/api/app/").and_then(|rest| rest.split('/').next()) else { continue };
            let class = format!("/api/app/{domain}");
            assert!(BACKEND.contains(&class.as_str()), "{class} is mounted; give it a line in BACKEND");
        }
    }

    #[test]
    fn a_full_table_has_a_bounded_number_of_lines() {
        for method in METHODS {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            for route in BACKEND {
                for status in [100, 200, 301, 404, 500] {
                    count(&method, route, status, Duration::from_millis(7));
                }
            }
        }
        for number in 0..10_000 {
            count(&Method::GET, &format!("/{number}/x"), 200, Duration::from_millis(7));
            count(&Method::from_bytes(format!("M{number}").as_bytes()).unwrap(), "/", 404, Duration::ZERO);
        }
        let mut page = Page::new(tale_core::metrics::Format::Prometheus);
        write_backend(&mut page);
        let lines = page.finish().lines().count();
        assert_eq!(lines, 4 + METHODS.len() * BACKEND.len() * (STATUSES.len() + BOUNDS.len() + 3));
    }
}
