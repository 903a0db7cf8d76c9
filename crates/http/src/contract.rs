//! The contract: what the handlers' own annotations say, completed by what is true of every route
//! of a door (keys, cookies, refusals, limits), so that no handler repeats it.

use serde_json::{Map, Value, json};
use tale_core::Code;
use tale_core::limits::MAX_JSON_BODY_BYTES;
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::state::App;

/// Version of the `/api/v1` contract (API-23).
pub const CONTRACT_VERSION: &str = "3.7.0";

/// The contract as it is committed in `crates/http/openapi.json` and served on `/openapi.json`.
#[must_use]
pub fn document() -> Value {
    let routes: OpenApi = OpenApiRouter::<App>::with_openapi(frame())
        .merge(crate::app::router())
        .nest("/api/v1", crate::v1::router())
        .merge(crate::health::router())
        .into_openapi();
    let mut document = serde_json::to_value(routes).unwrap_or_default();
    document["components"]["schemas"]["Error"] = error_schema();
    document["components"]["responses"] = refusals();
    document["components"]["securitySchemes"] = json!({
        "key": { "type": "http", "scheme": "bearer", "description": "An API key, made in the app under Settings > API keys." },
        "session": { "type": "apiKey", "in": "cookie", "name": crate::caller::SESSION_COOKIE, "description": "The browser's session; on an https site the name is `__Host-tale_session`, or `__Secure-tale_session` under a base path. Changes also need an `Origin` of this Tale." },
    });
    document["components"]["headers"] = json!({
        "RequestId": { "description": "Names this request in the server's log. A well-formed one that the client sent is kept.", "schema": { "type": "string" } },
        "ApiVersion": { "description": "The version of this contract.", "schema": { "type": "string" } },
    });
    document["tags"] = tags();
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, operations) in paths {
            for (method, operation) in operations.as_object_mut().into_iter().flatten() {
                complete(path, method, operation);
            }
        }
    }
    document.sort_all_objects();
    document
}

fn frame() -> OpenApi {
    let about = "The REST API of this Tale. Call `/api/v1` with `Authorization: Bearer <key>`; make keys in the app under Settings > API keys. \
        Routes under `/api/app` and `/api/auth` are the browser's: they use its session cookie and may change with any release.";
    OpenApiBuilder::new()
        .info(InfoBuilder::new().title("Tale").version(CONTRACT_VERSION).description(Some(about)).build())
        .build()
}

/// The key holder's groups, in the order of the reference; the browser's follow by name.
fn tags() -> Value {
    let groups = [
        ("me", "Who the key is."),
        ("models", "What can answer."),
        (
            "model endpoints",
            "Models behind OpenAI's and Anthropic's own interfaces, off until an administrator switches them on.",
        ),
        ("chat", "Threads, messages and the replies being written."),
        ("documents", "The library."),
        ("knowledge", "Search in the library."),
        ("health", "Whether this Tale is well; no key."),
    ];
    groups.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect()
}

fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    json!({
        "type": "object",
        "description": "Every refusal and fault. Branch on `code`; the sentence is for people.",
        "required": ["error", "code"],
        "properties": {
            "error": { "type": "string", "description": "What is wrong and what to do, in English." },
            "code": { "type": "string", "enum": codes, "description": "Stable; the list only grows." },
            "data": { "type": "object", "description": "Details for some codes, such as `issues`: a list of `{path, message}`." },
            "requestId": { "type": "string", "description": "The request, for the people who read the log; with 413, 414, 429 and 5xx." },
        },
    })
}

/// Refusals by name: status, sentence, headers.
const REFUSALS: &[(&str, &str, &str)] = &[
    ("400", "BadRequest", "The request must be corrected; `data.issues` names what is wrong."),
    ("401", "Unauthorized", "No valid key or session."),
    ("403", "Forbidden", "The caller may not do this."),
    ("404", "NotFound", "There is no such thing, or it is not the caller's to see."),
    ("409", "Conflict", "The state of the thing does not allow it."),
    ("413", "TooLarge", "The body is larger than this route accepts."),
    ("429", "TooMany", "Too many requests. `Retry-After` says when to try again."),
    ("default", "Failed", "Every other refusal or fault, such as 500 or 503."),
];

fn refusals() -> Value {
    let mut all = Map::new();
    for (_, name, about) in REFUSALS {
        let mut response = json!({
            "description": about,
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
            "headers": { "X-Request-Id": { "$ref": "#/components/headers/RequestId" } },
        });
        match *name {
            "TooMany" => {
                response["headers"]["Retry-After"] =
                    json!({ "description": "Seconds to wait.", "schema": { "type": "integer" } })
            }
            "Unauthorized" => {
                response["headers"]["WWW-Authenticate"] =
                    json!({ "description": "`Bearer`, for keys.", "schema": { "type": "string" } })
            }
            _ => {}
        }
        all.insert((*name).to_owned(), response);
    }
    Value::Object(all)
}

/// Adds to one operation what its door does for all.
fn complete(path: &str, method: &str, operation: &mut Value) {
    let by_key = path.starts_with("/api/v1");
    let browser = ["/api/app", "/api/auth", "/api/sso", "/api/trusted-headers", "/events"]
        .iter()
        .any(|door| path.starts_with(door));
    let name = camel(operation["operationId"].as_str().unwrap_or_default(), browser.then_some("app"));
    operation["operationId"] = json!(name);
    for tag in list(operation, "tags").iter_mut().filter(|_| browser) {
        let group = tag.as_str().unwrap_or_default();
        *tag = json!(format!("app: {}", group.strip_prefix("app: ").unwrap_or(group)));
    }
    if !by_key && !browser {
        return;
    }
    let signed_out = [
        "/api/app/branding/published/{organization}",
        "/api/app/branding/published/{organization}/{image}",
        "/api/app/session",
        "/api/app/setup",
        "/api/auth/sign-in/email",
        "/api/auth/sign-up/email",
        "/api/sso/callback",
        "/api/sso/connections",
        "/api/sso/saml/{organization}/acs",
        "/api/sso/saml/{organization}/metadata",
        "/api/sso/start",
        "/api/sso/{organization}/callback",
        "/api/trusted-headers/authenticate",
    ]
    .contains(&path);
    if by_key {
        operation["security"] = json!([{ "key": [] }]);
        let slug = json!({
            "name": "X-Organization-Slug", "in": "header", "required": false, "schema": { "type": "string" },
            "description": "The organization to act in; needed when the key's person belongs to several.",
        });
        match operation.get_mut("parameters").and_then(Value::as_array_mut) {
            Some(parameters) => parameters.push(slug),
            None => operation["parameters"] = json!([slug]),
        }
    } else if !signed_out {
        operation["security"] = json!([{ "session": [] }]);
    }
    // A parameter is absent, never null.
    for parameter in list(operation, "parameters") {
        if let Some([word, _]) = parameter["schema"]["type"].as_array().map(Vec::as_slice) {
            parameter["schema"]["type"] = word.clone();
        }
    }
    let (changes, has_body) = (method != "get", operation.get("requestBody").is_some());
    if has_body && operation.get("x-tale-body-cap").is_none() {
        operation["x-tale-body-cap"] = json!(MAX_JSON_BODY_BYTES);
    }
    for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        if status.starts_with('2') {
            response["headers"]["X-Request-Id"] = json!({ "$ref": "#/components/headers/RequestId" });
            if by_key {
                response["headers"]["X-Tale-Api-Version"] = json!({ "$ref": "#/components/headers/ApiVersion" });
            }
        }
    }
    // The model endpoints refuse in the shape of the interface that they are.
    let own_shape = crate::v1::model_endpoints::interface(Some(path)).is_some();
    for (status, name, about) in REFUSALS {
        let applies = match *status {
            "401" => !signed_out || changes,
            "403" => !signed_out || changes,
            // In the browser an unknown organization reads as one that is not yours (403).
            "404" => path.contains('{'),
            "409" => changes && !own_shape,
            "413" => has_body,
            _ => true,
        };
        if applies && operation["responses"].get(status).is_none() {
            operation["responses"][status] = if own_shape {
                json!({ "description": format!("{about} In the interface's own shape, with Tale's code in `error.code`.") })
            } else {
                json!({ "$ref": format!("#/components/responses/{name}") })
            };
        }
    }
}

/// A list of an operation; empty when it has none. (Indexing would leave a `null` behind.)
fn list<'a>(operation: &'a mut Value, name: &str) -> &'a mut [Value] {
    operation.get_mut(name).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// `list_members` as `listMembers`, or `appListMembers`.
fn camel(name: &str, prefix: Option<&str>) -> String {
    let mut text = prefix.unwrap_or_default().to_owned();
    for word in name.split('_') {
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if !text.is_empty() => text.extend(first.to_uppercase()),
            Some(first) => text.push(first),
            None => {}
        }
        text.push_str(letters.as_str());
    }
    text
}
