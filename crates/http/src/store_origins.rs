//! The origins that a page may exchange files with: the deployment's object store and the buckets of
//! the organizations of whoever is signed in. A page is told once, when it is loaded; a bucket that
//! is connected later needs another load.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::Deserialize;
use tale_blobs::Blobs;
use tale_core::Problem;
use tale_core::ids::UserId;
use tale_env::SiteSettings;
use tale_identity::Identity;
use url::Url;

use crate::caller::{session_cookie_name, session_token};
use crate::origin::request_origin;

/// How long a page waits for the doors to name its origins.
const PATIENCE: Duration = Duration::from_secs(2);
/// Path of the route that names them, below the base path.
pub(crate) const PATH: &str = "/api/app/object-storage/origins";

/// Who knows the origins.
#[derive(Clone)]
pub enum StoreOrigins {
    /// This process.
    Of {
        /// The stores.
        blobs: Blobs,
        /// Whose session a page belongs to.
        identity: Identity,
    },
    /// The doors, in another process.
    Asked {
        /// That of the deployment's store; empty for none.
        fixed: String,
        /// Asks them.
        client: reqwest::Client,
        /// Where they are.
        backend: Url,
    },
}

/// What the route answers.
#[derive(Deserialize)]
struct Answer {
    origins: Vec<Url>,
}

impl StoreOrigins {
    /// Of the doors at `backend`, which the operator names.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn of_backend(fixed: String, backend: Url) -> Result<Self, reqwest::Error> {
        tale_core::net::install_tls_provider();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build()?;
        Ok(Self::Asked { fixed, client, backend })
    }

    /// The origins for the page of a request. Whatever fails leaves the deployment's own: a page that
    /// is shown is worth more than one that can upload.
    pub(crate) async fn of_page(&self, site: &SiteSettings, parts: &Parts) -> Vec<String> {
        let origin = request_origin(site, &parts.headers, &parts.extensions);
        let token = session_token(&parts.headers, session_cookie_name(site, origin));
        match self {
            Self::Of { blobs, identity } => {
                let user = match token {
                    // Whoever must choose a password first is told nothing of organizations.
                    Some(token) => {
                        let session = identity.authenticate_session(token, true).await.ok();
                        session.filter(|session| session.password_due.is_none()).map(|session| session.user)
                    }
                    None => None,
                };
                of_user(blobs, identity, user).await.unwrap_or_else(|problem| {
                    tracing::debug!(%problem, "a page was not told the stores of its organizations");
                    vec![blobs.public_origin()]
                })
            }
            Self::Asked { fixed, client, backend } => {
                let mut origins = vec![fixed.clone()];
                if token.is_some() {
                    match ask(client, backend, site, &parts.headers, origin.scheme()).await {
                        Ok(named) => origins = named,
                        Err(error) => tracing::debug!(%error, "the doors did not name the stores of a page"),
                    }
                }
                origins
            }
        }
    }
}

async fn ask(
    client: &reqwest::Client,
    backend: &Url,
    site: &SiteSettings,
    headers: &HeaderMap,
    scheme: &str,
) -> Result<Vec<String>, reqwest::Error> {
    let mut address = backend.clone();
    address.set_path(&format!("{}{PATH}", site.base_path));
    let mut request = client.get(address).header("x-forwarded-proto", scheme).header("x-tale-background", "1");
    for name in [header::COOKIE, header::HOST] {
        for value in headers.get_all(&name) {
            request = request.header(name.clone(), value.clone());
        }
    }
    let answer: Answer = request.send().await?.error_for_status()?.json().await?;
    Ok(answer.origins.iter().map(|origin| origin.origin().ascii_serialization()).collect())
}

/// The deployment's origin and those of the organizations of `user`. A bucket that cannot be used
/// has none.
///
/// # Errors
/// The database's trouble.
pub(crate) async fn of_user(blobs: &Blobs, identity: &Identity, user: Option<UserId>) -> Result<Vec<String>, Problem> {
    let mut origins: Vec<String> = blobs.default_store().map(|store| store.public_origin()).into_iter().collect();
    let slugs = match user {
        Some(user) if blobs.organizations().is_some() => identity.organization_slugs(user).await?,
        _ => Vec::new(),
    };
    for slug in slugs {
        if let Ok(Some(own)) = blobs.own(&slug).await {
            let origin = own.public_origin();
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
    }
    Ok(origins)
}
