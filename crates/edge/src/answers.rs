//! What the proxy itself says: to programs and to people, when nobody behind it answers.

/// Seconds after which it is worth asking again.
pub(crate) const RETRY_AFTER: u32 = 5;

/// Body for programs (API-50) while an upstream is away.
pub(crate) const AWAY: &str = r#"{"error":"Tale cannot be reached right now. Try again in a few seconds.","code":"UPSTREAM_UNAVAILABLE","requestId":"{http.request.uuid}"}"#;

/// Body of an address that is nobody's business outside.
pub(crate) const NOT_FOUND: &str = r#"{"error":"There is nothing at this address.","code":"NOT_FOUND"}"#;

/// Pages for people, by the language their browser asks for first; English comes last and is for all.
pub(crate) const PAGES: [(&str, [&str; 3]); 3] = [
    (
        "de",
        [
            "Tale ist gleich wieder da",
            "Tale wird gerade gewartet oder neu gestartet. Deine Daten sind sicher.",
            "Erneut versuchen",
        ],
    ),
    (
        "fr",
        [
            "Tale revient tout de suite",
            "Tale est en maintenance ou redémarre. Tes données sont en sécurité.",
            "Réessayer",
        ],
    ),
    ("en", ["Tale will be back shortly", "Tale is being maintained or restarted. Your data is safe.", "Try again"]),
];

/// A page without a script. An empty address in the link is the page that was asked for.
pub(crate) fn page(lang: &str, [title, text, again]: [&str; 3]) -> String {
    format!(
        "<!doctype html><html lang=\"{lang}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title></head>\
         <body style=\"font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 20vh auto; padding: 0 1.25rem\">\
         <main><h1 style=\"font-size: 1.5rem\">{title}</h1><p>{text}</p><p><a href=\"\">{again}</a></p></main>\
         </body></html>"
    )
}
