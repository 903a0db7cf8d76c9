//! The contract document, the page that explores it and the reference of environment variables,
//! served without a CDN.

use std::sync::OnceLock;

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use serde_json::json;
use tale_env::{Lang, reference_page};

use crate::state::App;

/// `/openapi.json`, `/docs` and `/docs/environment` in three languages.
pub fn router(app: &App) -> Router<App> {
    let mut document = crate::contract::document();
    document["servers"] = json!([{ "url": app.site.url.as_str().trim_end_matches('/') }]);
    let bytes: axum::body::Bytes = serde_json::to_vec(&document).unwrap_or_default().into();
    let tag = format!("\"{}\"", crate::v1::etag_of(&bytes));
    Router::new()
        .route(
            "/openapi.json",
            get(move || {
                let (bytes, tag) = (bytes.clone(), tag.clone());
                async move {
                    (
                        [
                            (header::CONTENT_TYPE, "application/json".to_owned()),
                            (header::ETAG, tag),
                            (header::CACHE_CONTROL, "no-cache".to_owned()),
                        ],
                        bytes,
                    )
                }
            }),
        )
        .route("/docs", get(page))
        .route(reference_page::path(Lang::En), get(|| environment(Lang::En)))
        .route(reference_page::path(Lang::De), get(|| environment(Lang::De)))
        .route(reference_page::path(Lang::Fr), get(|| environment(Lang::Fr)))
}

/// The reference of environment variables, made when somebody first asks for it.
async fn environment(lang: Lang) -> impl IntoResponse {
    static PAGES: [OnceLock<axum::body::Bytes>; 3] = [const { OnceLock::new() }; 3];
    let page = &PAGES[lang as usize];
    let bytes = page.get_or_init(|| reference_page::html(lang).into()).clone();
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(bytes))
}

/// The interactive reference. Its script and style come from the program's own files.
async fn page() -> impl IntoResponse {
    const PAGE: &str = r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Tale API reference</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/_docs/swagger-ui.css">
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
<nav class="more" aria-label="More references"><a href="/docs/environment">Environment variables</a></nav>
<noscript>This page needs JavaScript. The contract itself is at <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/_docs/swagger-ui-bundle.js"></script>
<script src="/_docs/start.js"></script>
</body>
</html>
"##;
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE))
}
