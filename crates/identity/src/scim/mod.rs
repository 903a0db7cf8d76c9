//! Provisioning by a directory (SCIM 2.0, RFC 7643 and 7644; SCIM-1…10): users are members of the organization
//! whose token came with the request, groups are its teams.
//!
//! A resource is JSON under one table of attributes ([`schema`]). Every change is the same whatever its form: the
//! resource as it is, what the request makes of it ([`patch`]), checked, compared, written. Whatever a directory
//! says, it neither takes over an account that has no seat here nor an owner's.

mod filter;
mod groups;
mod patch;
pub mod schema;
mod settings;
mod users;

use serde_json::{Map, Value};
use tale_core::Problem;
use tale_core::crypto::{hex_of, sha256};

pub use schema::View;
pub use settings::{Directory, NewToken, Provisioning};

use filter::Filter;

/// Most resources of one page.
pub const MAX_COUNT: usize = 200;
/// Resources of a page when the request does not say.
const USUAL_COUNT: usize = 100;
/// Resources that a search looks at in one go.
const SLICE: i64 = 500;

/// What is wrong with a request, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// The filter.
    Filter,
    /// The path of a change.
    Path,
    /// A value.
    Value,
    /// The form of the body.
    Syntax,
    /// A change is about something that is not there.
    NoTarget,
    /// What is to be changed cannot be.
    Mutability,
}

impl Invalid {
    /// The `scimType` of the answer.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Filter => "invalidFilter",
            Self::Path => "invalidPath",
            Self::Value => "invalidValue",
            Self::Syntax => "invalidSyntax",
            Self::NoTarget => "noTarget",
            Self::Mutability => "mutability",
        }
    }
}

/// Why a directory's request is refused.
#[derive(Debug, thiserror::Error)]
pub enum ScimError {
    /// The request cannot be carried out as it is.
    #[error("{detail}")]
    Invalid {
        /// What is wrong.
        kind: Invalid,
        /// The reason, for a person.
        detail: String,
    },
    /// A name or an address is taken.
    #[error("{0}")]
    Taken(String),
    /// It is not for a directory to change.
    #[error("{0}")]
    Protected(&'static str),
    /// There is no such resource in the organization.
    #[error("There is no such resource.")]
    Unknown,
    /// Somebody changed the resource since the directory read it.
    #[error("The resource has changed since it was read. Read it again.")]
    Stale,
    /// Everything that is not about SCIM.
    #[error("{}", .0.message)]
    Other(Box<Problem>),
}

impl ScimError {
    fn invalid(kind: Invalid, detail: impl Into<String>) -> Self {
        Self::Invalid { kind, detail: detail.into() }
    }

    /// A value that cannot be taken.
    pub fn value(detail: impl Into<String>) -> Self {
        Self::invalid(Invalid::Value, detail)
    }
}

impl PartialEq for ScimError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl From<Problem> for ScimError {
    fn from(problem: Problem) -> Self {
        Self::Other(Box::new(problem))
    }
}

impl From<sqlx::Error> for ScimError {
    fn from(error: sqlx::Error) -> Self {
        Problem::from(error).into()
    }
}

/// A resource as it is answered.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The JSON.
    pub body: Map<String, Value>,
    /// The version of the whole resource, a weak entity tag.
    pub etag: String,
    /// Its address.
    pub location: String,
}

impl Resource {
    /// Of a whole resource without its `meta`.
    fn new(mut body: Map<String, Value>, kind: &'static str, location: String, view: &View) -> Self {
        let etag = etag_of(&body);
        let meta = serde_json::json!({ "resourceType": kind, "location": location, "version": etag });
        body.insert("meta".to_owned(), meta);
        view.apply(&mut body);
        Self { body, etag, location }
    }
}

fn etag_of(body: &Map<String, Value>) -> String {
    let text = Value::Object(body.clone()).to_string();
    format!("W/\"{}\"", hex_of(&sha256(text.as_bytes())[..12]))
}

/// Refuses a change of another version than the one that the request names; `*` is any.
fn check_version(wanted: Option<&str>, body: &Map<String, Value>) -> Result<(), ScimError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let etag = etag_of(body);
    let named = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    if wanted.split(',').any(|text| text.trim() == "*" || named(text) == named(&etag)) {
        Ok(())
    } else {
        Err(ScimError::Stale)
    }
}

/// Which resources are asked for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    filter: Option<Filter>,
    skip: usize,
    count: usize,
    view: View,
}

impl Search {
    /// From the parameters of a request. What is out of range is brought into it, as the standard says.
    ///
    /// # Errors
    /// `invalidFilter`.
    pub fn new(
        filter: Option<&str>,
        start_index: Option<i64>,
        count: Option<i64>,
        view: View,
    ) -> Result<Self, ScimError> {
        let filter = filter.map(str::trim).filter(|text| !text.is_empty()).map(filter::parse).transpose()?;
        let bounded = |number: i64| usize::try_from(number.max(0)).unwrap_or(usize::MAX);
        let count = count.map_or(USUAL_COUNT, bounded).min(MAX_COUNT);
        Ok(Self { filter, skip: bounded(start_index.unwrap_or(1) - 1), count, view })
    }

    /// The same search for what comes behind `passed` resources of another kind, of which `taken` fill the page.
    #[must_use]
    pub fn behind(&self, passed: usize, taken: usize) -> Self {
        Self { skip: self.skip.saturating_sub(passed), count: self.count - taken.min(self.count), ..self.clone() }
    }

    /// The first of the answered resources, counted from 1.
    #[must_use]
    pub fn start_index(&self) -> usize {
        self.skip + 1
    }
}

/// A page of resources.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// How many match in all.
    pub total: usize,
    /// Those of the page.
    pub resources: Vec<Map<String, Value>>,
}
