//! The cookie that carries a copy of the session beside the session's own (DCF-192).
//!
//! An extractor that read the session puts a copy into the request's [`Slot`]; the door sends it with
//! the answer. What a copy is worth is decided by [`tale_identity::session_copy`].

use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use tale_core::ids::OrgId;
use tale_identity::SessionPrincipal;
use url::Url;

use crate::app::auth::cookie_of;
use crate::caller::session_token;
use crate::origin::request_origin;
use crate::state::App;

/// Name of the cookie.
pub const COPY_COOKIE: &str = "tale_session_copy";

/// Where an extractor leaves the cookie with the copy for the answer.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<OnceLock<HeaderValue>>);

/// The session of the request's copy, when there is one that can stand for it.
pub(crate) fn read(
    app: &App,
    parts: &Parts,
    token: &str,
    background: bool,
    org: Option<OrgId>,
) -> Option<SessionPrincipal> {
    if !app.identity.copies_sessions() {
        return None;
    }
    app.identity.session_of_copy(token, session_token(&parts.headers, COPY_COOKIE)?, background, org)
}

/// Sends a copy of a session that was just read along with the answer.
pub(crate) fn keep(app: &App, parts: &Parts, principal: &SessionPrincipal, token: &str) {
    if let Some(slot) = parts.extensions.get::<Slot>()
        && let Some(copy) = app.identity.copy_session(principal, token)
        && let Ok(cookie) = cookie_of(
            &app.site,
            request_origin(&app.site, &parts.headers, &parts.extensions),
            COPY_COOKIE,
            &copy.value,
            Some(copy.max_age.as_secs().max(1)),
        )
    {
        let _already = slot.0.set(cookie);
    }
}

impl Slot {
    /// Writes the cookie. An answer that sets cookies itself begins or ends a session and gets none.
    pub(crate) fn settle(&self, response: &mut Response) {
        let Some(cookie) = self.0.get() else { return };
        let shared = response
            .headers()
            .get(header::CACHE_CONTROL)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|text| text.contains("public"));
        if shared || response.headers().contains_key(header::SET_COOKIE) {
            return;
        }
        response.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
}

/// The cookies of an answer that ends the session.
pub(crate) fn forgotten(app: &App, origin: &Url, session: HeaderValue) -> Vec<(axum::http::HeaderName, HeaderValue)> {
    let copy =
        app.identity.copies_sessions().then(|| cookie_of(&app.site, origin, COPY_COOKIE, "", Some(0)).ok()).flatten();
    std::iter::once(session).chain(copy).map(|value| (header::SET_COOKIE, value)).collect()
}
