//! Names of objects: `[prefix/]{orgSlug}/{uuid}` (FILE-1).

use std::fmt;

use uuid::Uuid;

/// The name of an object inside the bucket, as stored in a row: `{orgSlug}/{uuid}`. The bucket's
/// prefix is added by the client and never stored, so that moving a prefix touches no row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlobKey(String);

/// A stored name that is not `{orgSlug}/{uuid}`.
#[derive(Debug, thiserror::Error)]
#[error("an object name must be an organization's slug, a slash and an id")]
pub struct InvalidKey;

impl BlobKey {
    /// A fresh name in the namespace of the organization with `org_slug`.
    ///
    /// # Errors
    /// [`InvalidKey`] when the slug is not lower-case letters, digits and dashes.
    pub fn fresh(org_slug: &str) -> Result<Self, InvalidKey> {
        Self::parse(&format!("{org_slug}/{}", Uuid::new_v4()))
    }

    /// Reads a stored name.
    ///
    /// # Errors
    /// [`InvalidKey`] for anything but a slug, a slash and a UUID.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let (slug, id) = text.split_once('/').ok_or(InvalidKey)?;
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if slug.is_empty() || slug.len() > 128 || !slug.bytes().all(plain) || Uuid::parse_str(id).is_err() {
            return Err(InvalidKey);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The slug of the organization it belongs to.
    #[must_use]
    pub fn organization(&self) -> &str {
        self.0.split_once('/').map_or("", |(slug, _)| slug)
    }

    /// Whether the name lies in the namespace of the organization with `org_slug`.
    #[must_use]
    pub fn belongs_to(&self, org_slug: &str) -> bool {
        self.organization() == org_slug
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slug_and_an_id_make_a_name() {
        let key = BlobKey::fresh("acme-labs").unwrap();
        assert!(key.belongs_to("acme-labs") && !key.belongs_to("acme"));
        for bad in [
            "",
            "acme",
            "acme/",
            "/x",
            "acme/../x",
            "../3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "Acme/3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        ] {
            assert!(BlobKey::parse(bad).is_err(), "{bad}");
        }
    }
}
