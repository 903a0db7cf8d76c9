//! The contract document and the page that explores it, served without a CDN.

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use tale_core::Code;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Required};

use crate::state::App;

/// Version of the `/api/v1` contract (API-23).
pub const CONTRACT_VERSION: &str = "3.7.0";

/// The frame of the contract: its title, the key scheme and the error envelope with every code.
#[must_use]
pub fn contract() -> OpenApi {
    let text = || ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    let error = ObjectBuilder::new()
        .description(Some("Every refusal and fault. Branch on `code`; the sentence is for people."))
        .property("error", text())
        .required("error")
        .property("code", text().enum_values(Some(codes)))
        .required("code")
        .property("data", ObjectBuilder::new())
        .property("requestId", text())
        .build();
    let _ = Required::True;
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Tale")
                .version(CONTRACT_VERSION)
                .description(Some(
                    "The REST API of this Tale. Call `/api/v1` with `Authorization: Bearer <key>`; make keys in the app under Settings > API keys. \
                     Routes under `/api/app` and `/api/auth` are the browser's and use its session cookie.",
                ))
                .build(),
        )
        .components(Some(
            ComponentsBuilder::new()
                .schema("Error", RefOr::T(Schema::Object(error)))
                .security_scheme("key", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)))
                .build(),
        ))
        .build()
}

/// `/openapi.json` and `/docs`.
pub fn router(contract: OpenApi) -> Router<App> {
    let json: axum::body::Bytes = serde_json::to_vec(&contract).unwrap_or_default().into();
    Router::new()
        .route("/openapi.json", get(move || async move { ([(header::CONTENT_TYPE, "application/json")], json) }))
        .route("/docs", get(page))
}

/// The interactive reference. Its script and style come from the program's own files.
async fn page() -> impl IntoResponse {
    const PAGE: &str = r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Tale API reference</title>
<link rel="stylesheet" href="/_docs/swagger-ui.css">
</head>
<body>
<a href="#reference" class="skip">Skip to main content</a>
<main id="reference"></main>
<script src="/_docs/swagger-ui-bundle.js"></script>
<script src="/_docs/start.js"></script>
</body>
</html>
"##;
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE))
}
