//! The directory's door, `/scim/v2` (SCIM 2.0, RFC 7644): its own media type, its own errors, and a token of its own.
//! Its routes follow from the standard and stand in no contract of ours; what they know is published by themselves.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Map, Value, json};
use tale_core::crypto::sha256;
use tale_core::limits::MAX_JSON_BODY_BYTES;
use tale_core::{Code, Problem};
use tale_env::SiteSettings;
use tale_identity::scim::schema::{provider_config, resource_types, schemas};
use tale_identity::scim::{Directory, Page, Resource, ScimError, Search, View};

use crate::body::{parse, read_limited};
use crate::caller::client_address;
use crate::state::App;

const MEDIA_TYPE: &str = "application/scim+json";
const ERROR_URN: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
const LIST_URN: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// The address of the interface, always the canonical one (DCF-11).
pub(crate) fn base(site: &SiteSettings) -> String {
    format!("{}{}/scim/v2", site.url.as_str().trim_end_matches('/'), site.base_path)
}

/// A refusal in the form of the protocol.
struct Refused(ScimError);

impl From<ScimError> for Refused {
    fn from(error: ScimError) -> Self {
        Self(error)
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let detail = self.0.to_string();
        match self.0 {
            ScimError::Invalid { kind, .. } => refusal(StatusCode::BAD_REQUEST, Some(kind.text()), &detail),
            ScimError::Taken(_) => refusal(StatusCode::CONFLICT, Some("uniqueness"), &detail),
            ScimError::Protected(_) => refusal(StatusCode::FORBIDDEN, Some("mutability"), &detail),
            ScimError::Unknown => refusal(StatusCode::NOT_FOUND, None, &detail),
            ScimError::Stale => refusal(StatusCode::PRECONDITION_FAILED, None, &detail),
            ScimError::Other(problem) => of_problem(&problem),
        }
    }
}

fn of_problem(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status.is_server_error() {
        let cause = problem.source.as_deref().map(ToString::to_string).unwrap_or_default();
        tracing::error!(event = "scim.fault", code = problem.code.text(), cause, "{}", problem.message);
    }
    let kind = (problem.code == Code::InvalidBody).then_some("invalidSyntax");
    let mut response = refusal(status, kind, &problem.message);
    if let Some(wait) = problem.retry_after {
        let seconds = wait.as_millis().div_ceil(1_000).max(1);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(u64::try_from(seconds).unwrap_or(1)));
    }
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn refusal(status: StatusCode, kind: Option<&str>, detail: &str) -> Response {
    let mut body = json!({ "schemas": [ERROR_URN], "status": status.as_u16().to_string(), "detail": detail });
    if let Some(kind) = kind {
        body["scimType"] = json!(kind);
    }
    answer(status, &body)
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, body.to_string()).into_response()
}

fn of_resource(status: StatusCode, resource: Resource) -> Response {
    let mut response = answer(status, &Value::Object(resource.body));
    for (name, value) in [(header::ETAG, resource.etag), (header::LOCATION, resource.location)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn list(total: usize, start: usize, resources: Vec<Value>) -> Response {
    let body = json!({
        "schemas": [LIST_URN],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": resources.len(),
        "Resources": resources,
    });
    answer(StatusCode::OK, &body)
}

fn of_page(search: &Search, page: Page) -> Response {
    list(page.total, search.start_index(), page.resources.into_iter().map(Value::Object).collect())
}

/// The routes behind their token.
pub(crate) fn router(app: &App) -> Router<App> {
    let user = get(Kind::get).put(Kind::replace).patch(Kind::patch).delete(Kind::delete);
    Router::new()
        .route("/{kind}", get(Kind::list).post(Kind::create))
        .route("/{kind}/.search", post(Kind::search))
        .route("/{kind}/{id}", user)
        .route("/.search", post(search_all))
        .route("/ServiceProviderConfig", get(config))
        .route("/ResourceTypes", get(types))
        .route("/ResourceTypes/{id}", get(one_type))
        .route("/Schemas", get(all_schemas))
        .route("/Schemas/{id}", get(one_schema))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), authenticate))
}

async fn nothing() -> Refused {
    Refused(ScimError::Unknown)
}

async fn wrong_method() -> Response {
    refusal(StatusCode::METHOD_NOT_ALLOWED, None, "This resource does not take that method.")
}

/// The directory, put into the request by the door.
#[derive(Clone)]
struct Known(Directory);

async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match directory(&app, &mut request).await {
        Ok(known) => {
            tracing::Span::current().record("org", tracing::field::display(known.org));
            request.extensions_mut().insert(Known(known));
            next.run(request).await
        }
        Err(problem) => of_problem(&problem),
    }
}

/// The directory of the token. Whoever guesses tokens is slowed down per network, like whoever guesses keys.
async fn directory(app: &App, request: &mut Request) -> Result<Directory, Problem> {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim().to_owned());
    let Some(token) = token else {
        let words = "Send the provisioning token as `Authorization: Bearer <token>`.";
        return Err(Problem::new(Code::Unauthorized, words));
    };
    let (parts, body) = std::mem::take(request).into_parts();
    let network = client_address(&parts).network();
    *request = Request::from_parts(parts, body);
    let digest = sha256(token.as_bytes());
    if !app.limits.known_keys.contains(&digest) {
        app.limits.failed_keys.check(&network)?;
    }
    match app.identity.directory(&token).await {
        Ok(directory) => {
            app.limits.known_keys.remember(digest);
            app.limits.directories.take(directory.org.0)?;
            Ok(directory)
        }
        Err(problem) => {
            if problem.code == Code::Unauthorized {
                app.limits.failed_keys.take(network)?;
            }
            Err(problem)
        }
    }
}

/// The parameters of a search, from a query or a body.
#[derive(Default)]
struct Asked {
    filter: Option<String>,
    start_index: Option<i64>,
    count: Option<i64>,
    attributes: Option<String>,
    excluded: Option<String>,
}

impl Asked {
    /// Names in any case; unknown ones are left aside, as directories send some of their own.
    fn of_query(request: &Request) -> Result<Self, ScimError> {
        let mut asked = Self::default();
        for (name, value) in url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
            let value = Value::from(value.into_owned());
            asked.set(&name, &value)?;
        }
        Ok(asked)
    }

    fn of_body(body: &Value) -> Result<Self, ScimError> {
        let mut asked = Self::default();
        for (name, value) in body.as_object().into_iter().flatten() {
            asked.set(name, value)?;
        }
        Ok(asked)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), ScimError> {
        let wrong = || ScimError::value(format!("`{name}` cannot be read"));
        let text = || match value {
            Value::String(text) => Ok(text.clone()),
            Value::Array(many) => {
                let names = many.iter().map(|one| one.as_str().ok_or_else(wrong)).collect::<Result<Vec<_>, _>>()?;
                Ok(names.join(","))
            }
            _ => Err(wrong()),
        };
        let number = || match value {
            Value::String(text) => text.trim().parse().map_err(|_| wrong()),
            value => value.as_i64().ok_or_else(wrong),
        };
        match name.to_ascii_lowercase().as_str() {
            "filter" => self.filter = Some(text()?),
            "startindex" => self.start_index = Some(number()?),
            "count" => self.count = Some(number()?),
            "attributes" => self.attributes = Some(text()?),
            "excludedattributes" => self.excluded = Some(text()?),
            _ => {}
        }
        Ok(())
    }

    fn view(&self) -> Result<View, ScimError> {
        View::read(self.attributes.as_deref(), self.excluded.as_deref())
    }

    fn search(&self) -> Result<Search, ScimError> {
        Search::new(self.filter.as_deref(), self.start_index, self.count, self.view()?)
    }
}

/// What every request about resources has.
struct Call {
    directory: Directory,
    base: String,
    view: View,
    version: Option<String>,
}

impl Call {
    fn new(app: &App, request: &Request) -> Result<Self, ScimError> {
        let Known(directory) = request
            .extensions()
            .get::<Known>()
            .cloned()
            .ok_or_else(|| ScimError::from(Problem::internal("a request of a directory without its token")))?;
        let view = Asked::of_query(request)?.view()?;
        Ok(Self { directory, base: base(&app.site), view, version: version(request.headers()) })
    }
}

fn version(headers: &HeaderMap) -> Option<String> {
    headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn json_body(request: Request) -> Result<Value, Refused> {
    let bytes = read_limited(request, MAX_JSON_BODY_BYTES).await.map_err(|problem| Refused(problem.0.into()))?;
    Ok(Value::Object(parse::<Map<String, Value>>(&bytes)?))
}

/// Which resources a path is about.
#[derive(Clone, Copy)]
enum Kind {
    Users,
    Groups,
}

impl Kind {
    fn of(text: &str) -> Result<Self, Refused> {
        match text {
            "Users" => Ok(Self::Users),
            "Groups" => Ok(Self::Groups),
            _ => Err(Refused(ScimError::Unknown)),
        }
    }

    async fn found(self, app: &App, call: &Call, search: &Search) -> Result<Page, ScimError> {
        match self {
            Self::Users => app.identity.scim_users(&call.directory, &call.base, search).await,
            Self::Groups => app.identity.scim_groups(&call.directory, &call.base, search).await,
        }
    }

    async fn list(State(app): State<App>, Path(kind): Path<String>, request: Request) -> Result<Response, Refused> {
        let kind = Self::of(&kind)?;
        let call = Call::new(&app, &request)?;
        let search = Asked::of_query(&request)?.search()?;
        let page = kind.found(&app, &call, &search).await?;
        Ok(of_page(&search, page))
    }

    async fn search(State(app): State<App>, Path(kind): Path<String>, request: Request) -> Result<Response, Refused> {
        let kind = Self::of(&kind)?;
        let call = Call::new(&app, &request)?;
        let search = Asked::of_body(&json_body(request).await?)?.search()?;
        let page = kind.found(&app, &call, &search).await?;
        Ok(of_page(&search, page))
    }

    async fn create(State(app): State<App>, Path(kind): Path<String>, request: Request) -> Result<Response, Refused> {
        let kind = Self::of(&kind)?;
        let Call { directory, base, view, .. } = Call::new(&app, &request)?;
        let body = json_body(request).await?;
        let made = match kind {
            Self::Users => app.identity.scim_create_user(&directory, &base, &body, &view).await?,
            Self::Groups => app.identity.scim_create_group(&directory, &base, &body, &view).await?,
        };
        Ok(of_resource(StatusCode::CREATED, made))
    }

    async fn get(
        State(app): State<App>,
        Path((kind, id)): Path<(String, String)>,
        request: Request,
    ) -> Result<Response, Refused> {
        let kind = Self::of(&kind)?;
        let Call { directory, base, view, .. } = Call::new(&app, &request)?;
        let found = match kind {
            Self::Users => app.identity.scim_user(&directory, &base, &id, &view).await?,
            Self::Groups => app.identity.scim_group(&directory, &base, &id, &view).await?,
        };
        let known = request.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        if known.is_some_and(|known| known.split(',').any(|tag| tag.trim() == found.etag)) {
            return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, found.etag)]).into_response());
        }
        Ok(of_resource(StatusCode::OK, found))
    }

    async fn replace(state: State<App>, path: Path<(String, String)>, request: Request) -> Result<Response, Refused> {
        Self::change(state, path, request).await
    }

    async fn patch(state: State<App>, path: Path<(String, String)>, request: Request) -> Result<Response, Refused> {
        Self::change(state, path, request).await
    }

    async fn change(
        State(app): State<App>,
        Path((kind, id)): Path<(String, String)>,
        request: Request,
    ) -> Result<Response, Refused> {
        let kind = Self::of(&kind)?;
        let Call { directory, base, view, version } = Call::new(&app, &request)?;
        let whole = request.method() == Method::PUT;
        let body = json_body(request).await?;
        let at = (id.as_str(), version.as_deref());
        let changed = match (kind, whole) {
            (Self::Users, true) => app.identity.scim_replace_user(&directory, &base, at, &body, &view).await?,
            (Self::Users, false) => app.identity.scim_patch_user(&directory, &base, at, &body, &view).await?,
            (Self::Groups, true) => app.identity.scim_replace_group(&directory, &base, at, &body, &view).await?,
            (Self::Groups, false) => app.identity.scim_patch_group(&directory, &base, at, &body, &view).await?,
        };
        Ok(of_resource(StatusCode::OK, changed))
    }

    async fn delete(
        State(app): State<App>,
        Path((kind, id)): Path<(String, String)>,
        request: Request,
    ) -> Result<Response, Refused> {
        let kind = Self::of(&kind)?;
        let Call { directory, base, version, .. } = Call::new(&app, &request)?;
        let at = (id.as_str(), version.as_deref());
        match kind {
            Self::Users => app.identity.scim_delete_user(&directory, &base, at).await?,
            Self::Groups => app.identity.scim_delete_group(&directory, &base, at).await?,
        }
        Ok((StatusCode::NO_CONTENT, Body::empty()).into_response())
    }
}

/// Users and groups together, users first.
async fn search_all(State(app): State<App>, request: Request) -> Result<Response, Refused> {
    let call = Call::new(&app, &request)?;
    let search = Asked::of_body(&json_body(request).await?)?.search()?;
    let mut page = Kind::Users.found(&app, &call, &search).await?;
    let rest = search.behind(page.total, page.resources.len());
    let groups = Kind::Groups.found(&app, &call, &rest).await?;
    page.total += groups.total;
    page.resources.extend(groups.resources);
    Ok(of_page(&search, page))
}

async fn config(State(app): State<App>) -> Response {
    answer(StatusCode::OK, &provider_config(&base(&app.site)))
}

async fn types(State(app): State<App>) -> Response {
    let all = resource_types(&base(&app.site));
    list(all.len(), 1, all)
}

async fn one_type(State(app): State<App>, Path(id): Path<String>) -> Result<Response, Refused> {
    one_of(resource_types(&base(&app.site)), &id)
}

async fn all_schemas(State(app): State<App>) -> Response {
    let all = schemas(&base(&app.site));
    list(all.len(), 1, all)
}

async fn one_schema(State(app): State<App>, Path(id): Path<String>) -> Result<Response, Refused> {
    one_of(schemas(&base(&app.site)), &id)
}

fn one_of(all: Vec<Value>, id: &str) -> Result<Response, Refused> {
    let one = all.into_iter().find(|one| one["id"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(id)));
    Ok(answer(StatusCode::OK, &one.ok_or(ScimError::Unknown)?))
}
