//! The status report as a page: no script, no refresh, in the reader's language (DCF-221).

use std::fmt::Write;

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use tale_env::Lang;

use super::StatusReport;

/// What the page says in one language.
struct Words {
    title: &'static str,
    operational: &'static str,
    degraded: &'static str,
    outage: &'static str,
    component: &'static str,
    state: &'static str,
    /// In the order of the report.
    components: [&'static str; 3],
    up: &'static str,
    down: &'static str,
    checked: &'static str,
}

const EN: Words = Words {
    title: "Status",
    operational: "Everything works.",
    degraded: "Some parts are out of service.",
    outage: "Out of service.",
    component: "Part",
    state: "State",
    components: ["Application", "Search in documents", "Files"],
    up: "Operational",
    down: "Outage",
    checked: "Checked",
};
const DE: Words = Words {
    title: "Status",
    operational: "Alles funktioniert.",
    degraded: "Einige Teile sind ausgefallen.",
    outage: "Ausgefallen.",
    component: "Teil",
    state: "Zustand",
    components: ["Anwendung", "Suche in Dokumenten", "Dateien"],
    up: "In Betrieb",
    down: "Ausfall",
    checked: "Geprüft",
};
const FR: Words = Words {
    title: "État du service",
    operational: "Tout fonctionne.",
    degraded: "Certaines parties sont indisponibles.",
    outage: "Indisponible.",
    component: "Partie",
    state: "État",
    components: ["Application", "Recherche dans les documents", "Fichiers"],
    up: "En service",
    down: "Panne",
    checked: "Vérifié",
};

const STYLE: &str = "
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 0 auto; max-width: 36rem; padding: 3rem 1.25rem }
h1 { font-size: 1.5rem; margin: 0 0 .5rem }
table { border-collapse: collapse; width: 100%; margin: 1.5rem 0 }
th, td { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .6rem 0; text-align: left; font-weight: 400 }
thead th { font-size: .875rem }
td::before { content: '●'; margin-right: .5rem; color: light-dark(#15803d, #4ade80) }
tr.outage td::before { content: '▲'; color: light-dark(#b91c1c, #f87171) }
tr.outage td { font-weight: 600 }
p.checked { font-size: .875rem }
";

/// The page in the language that `wanted` (an `Accept-Language` header) prefers.
pub(crate) fn page(report: &StatusReport, wanted: &str) -> Response {
    let lang = preferred(wanted);
    let words = match lang {
        Lang::En => EN,
        Lang::De => DE,
        Lang::Fr => FR,
    };
    let summary = match report.status {
        "operational" => words.operational,
        "outage" => words.outage,
        _ => words.degraded,
    };
    let mut rows = String::new();
    for (component, name) in report.components.iter().zip(words.components) {
        let state = if component.status == "operational" { words.up } else { words.down };
        // Writing to a string does not fail.
        let _ = writeln!(rows, "<tr class=\"{}\"><th scope=\"row\">{name}</th><td>{state}</td></tr>", component.status);
    }
    let html = format!(
        "<!doctype html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} · Tale</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{summary}</p>\n<table>\n\
         <thead><tr><th scope=\"col\">{component}</th><th scope=\"col\">{state}</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n\
         <p class=\"checked\">{checked}: <time datetime=\"{at}\">{shown} UTC</time></p>\n</main>\n</body>\n</html>\n",
        code = lang.code(),
        title = words.title,
        component = words.component,
        state = words.state,
        checked = words.checked,
        at = report.checked_at,
        shown = report.checked_at.get(..19).unwrap_or(&report.checked_at).replace('T', " "),
    );
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CACHE_CONTROL, "public, max-age=5"),
        (header::VARY, "accept-language"),
        (header::CONTENT_LANGUAGE, lang.code()),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, Html(html)).into_response()
}

/// The language of ours with the highest weight; English when there is none.
pub(crate) fn preferred(wanted: &str) -> Lang {
    let mut best = (Lang::En, 0.0_f32);
    for entry in wanted.split(',').take(32) {
        let mut pieces = entry.split(';');
        let tag = pieces.next().unwrap_or_default().trim();
        let first = tag.split('-').next().unwrap_or_default();
        let weight = pieces.find_map(|piece| piece.trim().strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        let known = Lang::ALL.into_iter().find(|lang| lang.code().eq_ignore_ascii_case(first));
        if let Some(lang) = known.filter(|_| weight > best.1) {
            best = (lang, weight);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_gets_a_language_of_ours() {
        for (wanted, code) in [
            ("", "en"),
            ("de", "de"),
            ("de-CH", "de"),
            ("FR-fr, en;q=0.9", "fr"),
            ("it, fr;q=0.5, de;q=0.8", "de"),
            ("de;q=0", "en"),
            ("zh, *;q=0.1", "en"),
            ("fr;q=nonsense", "fr"),
        ] {
            assert_eq!(preferred(wanted).code(), code, "{wanted}");
        }
    }
}
