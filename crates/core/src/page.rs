//! Signed page cursors (API-40): opaque, bound to the list, its filters and the organization.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::crypto::{constant_time_eq, hmac_sha256};
use crate::problem::{Code, Problem};

/// A page of rows and where the next one starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows, in the list's order.
    pub rows: Vec<T>,
    /// Continues after the last row; `None` on the last page.
    pub next: Option<String>,
}

/// Signs and checks cursors with a key derived from the instance's secret.
#[derive(Clone)]
pub struct CursorSigner {
    key: [u8; 32],
}

impl std::fmt::Debug for CursorSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorSigner")
    }
}

impl CursorSigner {
    /// Derives the signing key from the instance's secret.
    #[must_use]
    pub fn new(instance_secret: &[u8]) -> Self {
        Self { key: hmac_sha256(instance_secret, b"tale:cursor:v1") }
    }

    /// A cursor at `position` of the list named by `scope` (list, filters, direction, organization).
    pub fn sign<T: Serialize>(&self, scope: &str, position: &T) -> String {
        let body = serde_json::to_vec(position).unwrap_or_default();
        let mut bytes = self.mac(scope, &body)[..16].to_vec();
        bytes.extend_from_slice(&body);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position that [`CursorSigner::sign`] put in, for the same `scope`.
    ///
    /// # Errors
    /// `INVALID_CURSOR` for a foreign or altered cursor.
    pub fn open<T: DeserializeOwned>(&self, scope: &str, cursor: &str) -> Result<T, Problem> {
        let refused = || {
            Problem::new(Code::InvalidCursor, "The cursor does not belong to this list. Start again without a cursor.")
        };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
        let (mac, body) = bytes.split_at_checked(16).ok_or_else(refused)?;
        if !constant_time_eq(mac, &self.mac(scope, body)[..16]) {
            return Err(refused());
        }
        serde_json::from_slice(body).map_err(|_| refused())
    }

    fn mac(&self, scope: &str, body: &[u8]) -> [u8; 32] {
        let mut message = scope.as_bytes().to_vec();
        message.push(0);
        message.extend_from_slice(body);
        hmac_sha256(&self.key, &message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_only_for_its_own_list() {
        let signer = CursorSigner::new(b"secret");
        let cursor = signer.sign("documents:org1", &(5i64, "x"));
        assert_eq!(signer.open::<(i64, String)>("documents:org1", &cursor).unwrap(), (5, "x".to_owned()));
        assert_eq!(signer.open::<(i64, String)>("documents:org2", &cursor).unwrap_err().code, Code::InvalidCursor);
        assert!(CursorSigner::new(b"other").open::<(i64, String)>("documents:org1", &cursor).is_err());
        assert!(signer.open::<(i64, String)>("documents:org1", "AAAA").is_err());
    }
}
