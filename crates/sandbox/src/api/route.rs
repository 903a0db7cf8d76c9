//! Paths, and the parts of a request that handlers read.

use bytes::Bytes;
use hyper::Method;
use serde::de::DeserializeOwned;
use tale_sandbox_wire::names::{ExecId, OrganizationId, SessionId};

use super::answer::Refused;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Limits,
    Capacity,
    Workspaces,
    Devices,
    Disconnect,
    Organization,
    Drain,
    DrainStatus,
    Sessions,
    Session,
    Acquire,
    Release,
    Execs,
    Exec,
    Attach,
    Cancel,
    Stdin,
    Checkpoint,
    Env,
    Pin,
    Stage,
    Delete,
    Files,
    Content,
}

/// A route with the names in its path.
#[derive(Debug)]
pub(super) struct Found {
    pub route: Route,
    names: Vec<String>,
}

/// Which route a path is.
pub(super) fn find(path: &str) -> Result<Found, Refused> {
    let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    let (route, names): (Route, &[&str]) = match parts.as_slice() {
        ["health"] => (Route::Health, &[]),
        ["v1", rest @ ..] => match rest {
            ["limits"] => (Route::Limits, &[]),
            ["capacity"] => (Route::Capacity, &[]),
            ["workspaces"] => (Route::Workspaces, &[]),
            ["devices"] => (Route::Devices, &[]),
            ["devices", device, "disconnect"] => (Route::Disconnect, &[*device]),
            ["organizations", org] => (Route::Organization, &[*org]),
            ["drain"] => (Route::Drain, &[]),
            ["drain-status"] => (Route::DrainStatus, &[]),
            ["sessions"] => (Route::Sessions, &[]),
            ["sessions", session] => (Route::Session, &[*session]),
            ["sessions", session, rest @ ..] => match rest {
                ["acquire"] => (Route::Acquire, &[*session]),
                ["release"] => (Route::Release, &[*session]),
                ["exec"] => (Route::Execs, &[*session]),
                ["exec", exec] => (Route::Exec, &[*session, *exec]),
                ["exec", exec, "attach"] => (Route::Attach, &[*session, *exec]),
                ["exec", exec, "cancel"] => (Route::Cancel, &[*session, *exec]),
                ["exec", exec, "stdin"] => (Route::Stdin, &[*session, *exec]),
                ["exec", exec, "checkpoint"] => (Route::Checkpoint, &[*session, *exec]),
                ["env"] => (Route::Env, &[*session]),
                ["pin"] => (Route::Pin, &[*session]),
                ["files"] => (Route::Files, &[*session]),
                ["files", "stage"] => (Route::Stage, &[*session]),
                ["files", "delete"] => (Route::Delete, &[*session]),
                ["files", "content"] => (Route::Content, &[*session]),
                _ => return Err(Refused::no_route()),
            },
            _ => return Err(Refused::no_route()),
        },
        _ => return Err(Refused::no_route()),
    };
    Ok(Found { route, names: names.iter().map(|name| (*name).to_owned()).collect() })
}

/// A signed request.
#[derive(Debug)]
pub(super) struct Call {
    pub route: Route,
    pub method: Method,
    pub body: Bytes,
    pub query: String,
    names: Vec<String>,
}

impl Call {
    pub(super) fn new(found: Found, method: Method, query: &str, body: Bytes) -> Self {
        Self { route: found.route, method, body, query: query.to_owned(), names: found.names }
    }

    fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", String::as_str)
    }

    /// The session of the path.
    pub(super) fn session(&self) -> Result<SessionId, Refused> {
        SessionId::new(self.name(0)).map_err(|error| Refused::bad(error.to_string()))
    }

    /// The command of the path.
    pub(super) fn exec(&self) -> Result<ExecId, Refused> {
        ExecId::new(self.name(1)).map_err(|error| Refused::bad(error.to_string()))
    }

    /// The organization of the path.
    pub(super) fn path_organization(&self) -> Result<OrganizationId, Refused> {
        OrganizationId::new(self.name(0)).map_err(|error| Refused::bad(error.to_string()))
    }

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// Whether a parameter says yes.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.parameter(name).is_some_and(|value| value == "1" || value == "true")
    }

    /// The organization of the query.
    pub(super) fn organization(&self) -> Result<Option<OrganizationId>, Refused> {
        let named = self.parameter("organizationId").map(OrganizationId::new).transpose();
        named.map_err(|error| Refused::bad(error.to_string()))
    }

    /// The body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        serde_json::from_slice(&self.body).map_err(|error| Refused::bad(format!("the body is not as agreed: {error}")))
    }
}
