//! Embedding (DCF-175): the origins whose pages may show an organization's Tale in a frame.
//!
//! The sign-in page belongs to the whole deployment, so it admits what any organization lists. That is
//! why the whole deployment lists [`MAX_IN_ALL`] different origins at most: they stand in one header.

use std::collections::BTreeSet;

use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_db::hints::Topic;
use url::{Host, Url};

use crate::caller::Caller;
use crate::permissions::Capability;
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// Most origins of an organization.
pub const MAX_ORIGINS: usize = 10;
/// Most different origins of the deployment.
pub const MAX_IN_ALL: usize = 50;
/// Longest origin, in bytes.
const MAX_BYTES: usize = 200;

/// The origins of one organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameOrigins {
    /// The organization.
    pub org: OrgId,
    /// Its origins, sorted.
    pub origins: Vec<String>,
}

/// `text` as an origin for a header: https, or http on this machine, and nothing that a policy would
/// read as more than a host.
fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text.trim()).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let (plain_host, local) = match url.host()? {
        Host::Domain(name) => (
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.'),
            name == "localhost" || name.ends_with(".localhost"),
        ),
        Host::Ipv4(v4) => (true, v4.is_loopback()),
        Host::Ipv6(v6) => (true, v6.is_loopback()),
    };
    let secure = url.scheme() == "https" || (url.scheme() == "http" && local);
    let origin = url.origin().ascii_serialization();
    (bare && url.password().is_none() && plain_host && secure && origin.len() <= MAX_BYTES).then_some(origin)
}

impl Identity {
    /// The origins that may frame the caller's organization.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn frame_origins(&self, caller: &Caller) -> Result<Vec<String>, Problem> {
        caller.require(Capability::SignInManage)?;
        let mut conn = self.0.db.acquire().await?;
        Ok(store::frames::of(&mut conn, caller.org).await?)
    }

    /// Sets them, all at once.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY` for what is no origin,
    /// `FRAME_ORIGIN_LIMIT` when the deployment lists too many.
    pub async fn set_frame_origins(&self, caller: &Caller, origins: &[String]) -> Result<Vec<String>, Problem> {
        caller.require(Capability::SignInManage)?;
        let mut wanted = BTreeSet::new();
        for (index, text) in origins.iter().enumerate() {
            let parsed = origin(text).ok_or_else(|| {
                Problem::invalid_field(
                    &format!("origins.{index}"),
                    "must be an origin such as https://portal.example.org",
                )
            })?;
            wanted.insert(parsed);
        }
        if wanted.len() > MAX_ORIGINS {
            return Err(Problem::invalid_field("origins", &format!("must have at most {MAX_ORIGINS} entries")));
        }
        let wanted: Vec<String> = wanted.into_iter().collect();
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        let before = store::frames::of(&mut tx, caller.org).await?;
        if before == wanted {
            return Ok(wanted);
        }
        let now = self.now();
        store::frames::set(&mut tx, caller.org, &wanted, now).await?;
        let added = wanted.iter().any(|origin| !before.contains(origin));
        if added && store::frames::in_all(&mut tx).await? > MAX_IN_ALL as i64 {
            return Err(Problem::new(
                Code::FrameOriginLimit,
                format!(
                    "The organizations of this Tale already list {MAX_IN_ALL} origins together. Remove one that is not used any more."
                ),
            ));
        }
        let change = Change::organization("embedding.updated")
            .on("organization", caller.org)
            .with("previous", before)
            .with("new", wanted.clone());
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(wanted)
    }

    /// The origins of every organization that lists any. For the headers of pages, whoever asks.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn all_frame_origins(&self) -> Result<Vec<FrameOrigins>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let rows = store::frames::all(&mut conn).await?;
        Ok(rows.into_iter().map(|(org, origins)| FrameOrigins { org, origins }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_secure_origin_gets_into_a_header() {
        for (text, kept) in [
            ("https://portal.example.org", "https://portal.example.org"),
            (" https://Portal.example.org:8443/ ", "https://portal.example.org:8443"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]"),
            ("http://localhost:5173", "http://localhost:5173"),
        ] {
            assert_eq!(origin(text).as_deref(), Some(kept));
        }
        for text in [
            "",
            "*",
            "https://*.example.org",
            "https://a;script-src",
            "https://a.example,https://b.example",
            "https://a.example/path",
            "https://a.example?x",
            "https://u:p@a.example",
            "http://portal.example.org",
            "javascript:alert(1)",
            "'self'",
            "data:text/html,x",
        ] {
            assert_eq!(origin(text), None, "{text}");
        }
    }
}
