//! Strict query strings (API-13): unknown, repeated and blank parameters are refused by name.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use tale_core::problem::Issue;
use tale_core::{Code, Problem};

use crate::problem::HttpProblem;

/// The query of type `T`. Types declare `#[serde(deny_unknown_fields)]`; the app's `orgId` is
/// taken out before, because [`crate::caller::Member`] reads it.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let app_door = !parts.uri.path().starts_with("/api/v1");
        let pairs = pairs(parts.uri.query().unwrap_or_default())?
            .into_iter()
            .filter(|(name, _)| !(app_door && name == "orgId"))
            .collect::<Vec<_>>();
        parse(pairs).map(Self).map_err(HttpProblem)
    }
}

/// A request that accepts no query parameters.
pub struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        match pairs(parts.uri.query().unwrap_or_default())?.first() {
            None => Ok(Self),
            Some((name, _)) => Err(Problem::invalid_query(name, "is not accepted here").into()),
        }
    }
}

/// The decoded pairs, each name once and no value blank.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if found.iter().any(|(seen, _)| *seen == name) {
            return Err(Problem::invalid_query(&name, "must not be given twice"));
        }
        if value.trim().is_empty() {
            return Err(Problem::invalid_query(&name, "must not be blank"));
        }
        found.push((name.into_owned(), value.into_owned()));
    }
    Ok(found)
}

fn parse<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, Problem> {
    let encoded = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
    let mut track = serde_path_to_error::Track::new();
    let inner = serde_urlencoded::Deserializer::new(url::form_urlencoded::parse(encoded.as_bytes()));
    T::deserialize(serde_path_to_error::Deserializer::new(inner, &mut track)).map_err(|error| {
        let path = track.path().to_string();
        let Issue { path, message } =
            tale_core::strict::issue_of(if path == "." { "" } else { &path }, &error.to_string());
        if path == "limit" {
            return Problem::new(Code::InvalidLimit, "`limit` must be a whole number.");
        }
        Problem::invalid_query(&path, &message)
    })
}

/// A page size: absent = `default`, beyond the ends = clamped (API-13).
#[must_use]
pub fn page_size(limit: Option<i64>, default: u32, max: u32) -> u32 {
    limit.map_or(default, |limit| u32::try_from(limit.clamp(1, i64::from(max))).unwrap_or(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct List {
        limit: Option<i64>,
        #[expect(dead_code, reason = "accepted, not looked at")]
        cursor: Option<String>,
    }

    fn code(query: &str) -> Code {
        match pairs(query).and_then(parse::<List>) {
            Ok(_) => panic!("{query} was accepted"),
            Err(problem) => problem.code,
        }
    }

    #[test]
    fn queries_are_strict() {
        assert_eq!(pairs("limit=5").and_then(parse::<List>).unwrap().limit, Some(5));
        assert_eq!(code("limit=five"), Code::InvalidLimit);
        assert_eq!(code("other=1"), Code::InvalidQuery);
        assert_eq!(code("cursor="), Code::InvalidQuery);
        assert_eq!(code("cursor=a&cursor=b"), Code::InvalidQuery);
    }

    #[test]
    fn page_sizes_are_clamped() {
        assert_eq!(
            (page_size(None, 50, 100), page_size(Some(0), 50, 100), page_size(Some(1000), 50, 100)),
            (50, 1, 100)
        );
    }
}
