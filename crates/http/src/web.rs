//! The web app's files: embedded in the program at build time, or a directory for work on them.
//!
//! Files under `_app/immutable` carry a content hash in their name and are cached for a year;
//! everything else is revalidated. Bodies compressed at build time are served as they are. An
//! address that is no file gets the app's page, whose router decides.

use std::borrow::Cow;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rust_embed::RustEmbed;
use tale_core::crypto::{hex_of, sha256};
use tale_env::SiteSettings;
use url::Url;

use crate::door::Framed;
use crate::origin::request_origin;
use crate::state::Shell;

#[derive(RustEmbed)]
#[folder = "../../web/build"]
#[allow_missing = true]
struct Embedded;

/// Where the files come from.
#[derive(Debug, Clone)]
pub enum WebFiles {
    /// Inside the program.
    Embedded,
    /// A directory.
    Directory(PathBuf),
}

impl WebFiles {
    /// A file's content; `path` has no leading slash and no dot segments.
    fn get(&self, path: &str) -> Option<Cow<'static, [u8]>> {
        match self {
            Self::Embedded => Embedded::get(path).map(|file| file.data),
            Self::Directory(root) => std::fs::read(root.join(path)).ok().map(Cow::Owned),
        }
    }

    /// A file's content and its digest, which the build has worked out for embedded files.
    fn with_digest(&self, path: &str) -> Option<(Cow<'static, [u8]>, [u8; 32])> {
        match self {
            Self::Embedded => Embedded::get(path).map(|file| {
                let digest = file.metadata.sha256_hash();
                (file.data, digest)
            }),
            Self::Directory(_) => self.get(path).map(|content| {
                let digest = sha256(&content);
                (content, digest)
            }),
        }
    }
}

/// Serves a file of the web app, or its page for every other address outside the API.
pub async fn serve(State(shell): State<Shell>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/api"
        || ["/api/", "/events", "/metrics", "/openapi.json", "/.well-known/"].iter().any(|door| path.starts_with(door))
    {
        return crate::door::not_found().await.into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let allow = [(header::ALLOW, HeaderValue::from_static("GET,HEAD"))];
        return (allow, crate::door::method_not_allowed().await).into_response();
    }
    let name = path.trim_start_matches('/');
    if let Some(response) = file(&shell.web, name, request.headers()) {
        return response;
    }
    // A hashed asset that is gone must not look like a page: the tab reloads itself (UI-84). Nor must
    // any other file; pages have no endings.
    if name.starts_with('_') || name.rsplit('/').next().is_some_and(|last| last.contains('.')) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let (parts, _) = request.into_parts();
    let stores = shell.stores.of_page(&shell.site, &parts).await.join(" ");
    let frames = shell.frames.admitted(parts.uri.path()).await;
    index(&shell, request_origin(&shell.site, &parts.headers, &parts.extensions), &stores, &frames)
}

fn file(web: &WebFiles, name: &str, headers: &HeaderMap) -> Option<Response> {
    if name.is_empty() || name == "index.html" || name.ends_with(".gz") || name.ends_with(".br") {
        return None;
    }
    let (content, digest) = web.with_digest(name)?;
    let immutable = name.starts_with("_app/immutable/");
    let etag = format!("\"{}\"", hex_of(&digest[..12]));
    let mut response = if headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body_of(web, name, content, headers)
    };
    let out = response.headers_mut();
    let caching = if immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(value) = HeaderValue::from_str(&etag) {
        out.insert(header::ETAG, value);
    }
    Some(response)
}

fn body_of(web: &WebFiles, name: &str, content: Cow<'static, [u8]>, headers: &HeaderMap) -> Response {
    let offered = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let compressed = [("br", "br"), ("gzip", "gz")]
        .into_iter()
        .filter(|(coding, _)| offered.contains(coding))
        .find_map(|(coding, suffix)| web.get(&format!("{name}.{suffix}")).map(|bytes| (coding, bytes)));
    let (coding, bytes) = match compressed {
        Some((coding, bytes)) => (Some(coding), bytes),
        None => (None, content),
    };
    let body = match bytes {
        Cow::Borrowed(bytes) => Body::from(axum::body::Bytes::from_static(bytes)),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    let mut response = body.into_response();
    let kind = mime_guess::from_path(name).first_or_octet_stream();
    if let Ok(value) = HeaderValue::from_str(kind.as_ref()) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    if let Some(coding) = coding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

/// The app's page at one of the site's origins, with a content security policy that admits exactly
/// its own inline scripts, and pages of `frames` around it.
fn index(shell: &Shell, origin: &Url, stores: &str, frames: &[String]) -> Response {
    let Some(page) = shell.web.get("index.html") else {
        return (StatusCode::NOT_FOUND, "The web app is not part of this build. Build it with `make build`.\n")
            .into_response();
    };
    let page = filled(&String::from_utf8_lossy(&page), &shell.site, origin, stores, &shell.outlets.marks());
    let hashes: String = inline_scripts(&page)
        .map(|script| format!(" 'sha256-{}'", STANDARD.encode(sha256(script.as_bytes()))))
        .collect();
    let ancestors = if frames.is_empty() { "'none'".to_owned() } else { format!("'self' {}", frames.join(" ")) };
    // Uploads and downloads go to object stores, which may be at other origins.
    let policy = format!(
        "default-src 'self'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: {stores}; \
         connect-src 'self' {stores}; font-src 'self' data:; frame-src 'self' blob:; object-src 'none'; worker-src 'self' blob:; \
         base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
    );
    let mut response = Body::from(page).into_response();
    if !frames.is_empty() {
        // The policy says it all, and the header that is older cannot name an origin.
        response.extensions_mut().insert(Framed);
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(value) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, value);
    }
    response
}

/// The page with what only the server knows: the base path in its addresses, the address the browser
/// is on, the stores it may exchange files with, where people find help, and what it may tell outward. One
/// build of the app serves every base path.
fn filled(page: &str, site: &SiteSettings, origin: &Url, stores: &str, [website, share]: &[String; 2]) -> String {
    page.replace("%tale.base%", &site.base_path)
        .replace("%tale.address%", &quoted(&site.address_at(origin)))
        .replace("%tale.stores%", &quoted(stores))
        .replace("%tale.support%", &quoted(site.support_url.as_str()))
        .replace("%tale.analytics%", website)
        .replace("%tale.reports%", share)
}

/// Text inside a quoted attribute.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// The contents of `<script>` elements without a source.
fn inline_scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|rest| {
        let (attributes, rest) = rest.split_once('>')?;
        let (content, _) = rest.split_once("</script>")?;
        (!attributes.contains("src=")).then_some(content)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_scripts_are_found_and_files_are_not() {
        let page =
            "<head><script>one()</script><script src=\"/a.js\"></script><script type=\"module\">\n two() </script>";
        assert_eq!(inline_scripts(page).collect::<Vec<_>>(), ["one()", "\n two() "]);
    }

    #[test]
    fn the_page_is_filled_for_its_place() {
        let site = SiteSettings {
            url: "https://tale.example.org".parse().unwrap(),
            additional: vec!["https://a.example:8443".parse().unwrap()],
            base_path: "/app".into(),
            support_url: "https://help.example/?a=1&b=\"".parse().unwrap(),
        };
        let page = r#"<script src="%tale.base%/boot.js"></script><meta content="%tale.address%"><meta content="%tale.stores%"><meta content="%tale.support%"><meta content="%tale.analytics%"><meta content="%tale.reports%"><script>base: "%tale.base%"</script>"#;
        let filled = filled(
            page,
            &site,
            &site.additional[0],
            "https://s3.example https://b.example",
            &["site-1".into(), String::new()],
        );
        assert_eq!(
            filled,
            r#"<script src="/app/boot.js"></script><meta content="https://a.example:8443/app"><meta content="https://s3.example https://b.example"><meta content="https://help.example/?a=1&amp;b=%22"><meta content="site-1"><meta content=""><script>base: "/app"</script>"#
        );
        assert_eq!(inline_scripts(&filled).collect::<Vec<_>>(), [r#"base: "/app""#]);
    }

    fn answer(web: &WebFiles, name: &str, headers: &[(header::HeaderName, &'static str)]) -> Option<Response> {
        file(web, name, &headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect())
    }

    #[test]
    fn files_are_tagged_cached_and_served_as_the_build_compressed_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("_app/immutable")).unwrap();
        for (name, content) in [
            ("_app/immutable/a.js", "whole"),
            ("_app/immutable/a.js.br", "small"),
            ("boot.js", "boot"),
            ("index.html", "page"),
        ] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let web = WebFiles::Directory(folder.path().to_owned());
        let plain = answer(&web, "_app/immutable/a.js", &[]).unwrap();
        let header = |response: &Response, name| {
            response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header(&plain, header::CACHE_CONTROL).unwrap(), "public, max-age=31536000, immutable");
        assert_eq!(header(&plain, header::CONTENT_TYPE).unwrap(), "text/javascript");
        assert_eq!(
            (header(&plain, header::CONTENT_ENCODING), header(&plain, header::VARY).unwrap()),
            (None, "accept-encoding".into())
        );
        let small = answer(&web, "_app/immutable/a.js", &[(header::ACCEPT_ENCODING, "gzip, br")]).unwrap();
        assert_eq!(header(&small, header::CONTENT_ENCODING).unwrap(), "br");
        let boot = answer(&web, "boot.js", &[(header::ACCEPT_ENCODING, "br")]).unwrap();
        assert_eq!(
            (header(&boot, header::CACHE_CONTROL).unwrap(), header(&boot, header::CONTENT_ENCODING)),
            ("no-cache".into(), None)
        );
        let tag: &'static str = header(&boot, header::ETAG).unwrap().leak();
        assert_eq!(
            answer(&web, "boot.js", &[(header::IF_NONE_MATCH, tag)]).unwrap().status(),
            StatusCode::NOT_MODIFIED
        );
        for hidden in ["", "index.html", "_app/immutable/a.js.br", "nope.js", "_app"] {
            assert!(answer(&web, hidden, &[]).is_none(), "{hidden}");
        }
    }
}
