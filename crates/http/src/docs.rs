//! The contract document, the page that explores it and the reference of environment variables,
//! served without a CDN.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::{MethodRouter, get};
use serde_json::json;
use tale_env::{Lang, reference_page};

use crate::origin::RequestOrigin;
use crate::state::App;

/// Stands where the address of the server comes. No URL holds a space.
const SERVER: &str = "the server";

/// The contract around the address of its server, which is the one the reader is on.
struct Contract {
    before: String,
    after: String,
}

impl Contract {
    fn new() -> Self {
        let mut document = crate::contract::document();
        document["servers"] = json!([{ "url": SERVER }]);
        for probe in ["/ping", "/ready"] {
            // At the root, whatever the base path.
            document["paths"][probe]["servers"] = json!([{ "url": "/" }]);
        }
        let text = document.to_string();
        let (before, after) = text.split_once(&format!("\"{SERVER}\"")).unwrap_or((&text, ""));
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    fn at(&self, server: &str) -> String {
        format!("{}{}{}", self.before, json!(server), self.after)
    }
}

/// `/openapi.json`, `/docs` and `/docs/environment` in three languages.
pub fn router() -> Router<App> {
    let contract = Arc::new(Contract::new());
    let pages = Pages::default();
    Router::new()
        .route(
            "/openapi.json",
            get(move |State(app): State<App>, RequestOrigin(origin): RequestOrigin| async move {
                let text = contract.at(&app.site.address_at(&origin));
                let head = [
                    (header::CONTENT_TYPE, "application/json".to_owned()),
                    (header::ETAG, format!("\"{}\"", crate::v1::etag_of(text.as_bytes()))),
                    (header::CACHE_CONTROL, "no-cache".to_owned()),
                ];
                (head, text)
            }),
        )
        .route("/docs", get(page))
        .route(reference_page::path(Lang::En), environment(&pages, Lang::En))
        .route(reference_page::path(Lang::De), environment(&pages, Lang::De))
        .route(reference_page::path(Lang::Fr), environment(&pages, Lang::Fr))
}

/// The pages of the reference of environment variables, made when somebody first asks for them.
type Pages = Arc<[OnceLock<Bytes>; 3]>;

fn environment(pages: &Pages, lang: Lang) -> MethodRouter<App> {
    let pages = Arc::clone(pages);
    get(move |State(app): State<App>| async move {
        let made = || reference_page::html(lang, &app.site.base_path).into();
        let bytes = pages[lang as usize].get_or_init(made).clone();
        let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
        ([(header::CONTENT_SECURITY_POLICY, policy)], Html(bytes))
    })
}

/// The interactive reference. Its script and style come from the program's own files.
async fn page(State(app): State<App>) -> impl IntoResponse {
    const PAGE: &str = r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Tale API reference</title>
<link rel="icon" href="%base%/icon.svg">
<link rel="stylesheet" href="%base%/_docs/swagger-ui.css">
<style>
body { margin: 0 }
.skip { position: absolute; left: -100vw; padding: 8px; background: #fff; color: #1b1b1b; font-family: sans-serif }
.more { margin: 0; padding: 8px 20px; font: 14px sans-serif }
.skip:focus { left: 8px; top: 8px; z-index: 1 }
</style>
</head>
<body>
<a href="#reference" class="skip">Skip to main content</a>
<div id="reference" tabindex="-1"></div>
<nav class="more" aria-label="More references"><a href="%base%/docs/environment">Environment variables</a></nav>
<noscript>This page needs JavaScript. The contract itself is at <a href="%base%/openapi.json">%base%/openapi.json</a>.</noscript>
<script src="%base%/_docs/swagger-ui-bundle.js"></script>
<script src="%base%/_docs/start.js"></script>
</body>
</html>
"##;
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE.replace("%base%", &app.site.base_path)))
}
