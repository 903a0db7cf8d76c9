//! AWS Signature Version 4 for the few requests we make. Signed headers are chosen by the caller,
//! which is what lets an upload URL bind the size and type of the bytes it admits.

use chrono::{DateTime, Utc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use tale_core::crypto::{hex_of, hmac_sha256, sha256};
use url::Url;

/// Everything but the unreserved characters of RFC 3986 is escaped.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// As [`QUERY`], with the slash kept.
const PATH: &AsciiSet = &QUERY.remove(b'/');

pub(crate) const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// Escapes an object's path for a request line.
pub(crate) fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// A key pair and the region it signs for.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) access_key: String,
    pub(crate) secret_key: SecretString,
    pub(crate) region: String,
}

/// The headers that authorize a request sent by ourselves.
pub(crate) struct AuthHeaders {
    pub(crate) date: String,
    pub(crate) authorization: String,
}

impl Signer {
    /// Signs a request whose body is not part of the signature.
    pub(crate) fn authorize(&self, method: &str, url: &Url, now: DateTime<Utc>) -> AuthHeaders {
        let date = timestamp(now);
        let headers = [
            ("host", authority(url)),
            ("x-amz-content-sha256", UNSIGNED_PAYLOAD.to_owned()),
            ("x-amz-date", date.clone()),
        ];
        let (signature, names) = self.sign(method, url, &canonical_query(url), &headers, now);
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={names}, Signature={signature}",
            self.access_key,
            self.scope(now)
        );
        AuthHeaders { date, authorization }
    }

    /// A URL that anyone may use for `expires_seconds`, together with exactly `headers`, whose
    /// names are in lower case.
    pub(crate) fn presign(
        &self,
        method: &str,
        url: &Url,
        headers: &[(&'static str, String)],
        expires_seconds: u64,
        now: DateTime<Utc>,
    ) -> Url {
        let mut signed: Vec<(&'static str, String)> = headers.to_vec();
        signed.push(("host", authority(url)));
        signed.sort();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let mut url = url.clone();
        let query = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned()),
            ("X-Amz-Credential", format!("{}/{}", self.access_key, self.scope(now))),
            ("X-Amz-Date", timestamp(now)),
            ("X-Amz-Expires", expires_seconds.to_string()),
            ("X-Amz-SignedHeaders", names),
        ]
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)))
        .collect::<Vec<_>>()
        .join("&");
        let (signature, _) = self.sign(method, &url, &query, &signed, now);
        url.set_query(Some(&format!("{query}&X-Amz-Signature={signature}")));
        url
    }

    /// The signature and the list of signed header names. `headers` are sorted by name.
    fn sign(
        &self,
        method: &str,
        url: &Url,
        query: &str,
        headers: &[(&'static str, String)],
        now: DateTime<Utc>,
    ) -> (String, String) {
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!("{method}\n{}\n{query}\n{lines}\n{names}\n{UNSIGNED_PAYLOAD}", url.path());
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{}\n{}\n{}",
            timestamp(now),
            self.scope(now),
            hex_of(&sha256(request.as_bytes()))
        );
        let day = now.format("%Y%m%d").to_string();
        let secret = format!("AWS4{}", self.secret_key.expose_secret());
        let key = [day.as_str(), &self.region, "s3", "aws4_request"]
            .iter()
            .fold(secret.into_bytes(), |key, part| hmac_sha256(&key, part.as_bytes()).to_vec());
        (hex_of(&hmac_sha256(&key, to_sign.as_bytes())), names)
    }

    fn scope(&self, now: DateTime<Utc>) -> String {
        format!("{}/{}/s3/aws4_request", now.format("%Y%m%d"), self.region)
    }
}

fn timestamp(now: DateTime<Utc>) -> String {
    now.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Host and, when it is not the scheme's own, port: what a client sends as `Host`.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn canonical_query(url: &Url) -> String {
    let mut pairs: Vec<String> = url
        .query_pairs()
        .map(|(name, value)| format!("{}={}", utf8_percent_encode(&name, QUERY), utf8_percent_encode(&value, QUERY)))
        .collect();
    pairs.sort();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of the S3 API reference, "Authenticating Requests: Using Query Parameters".
    #[test]
    fn presigns_as_the_reference_does() {
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            region: "us-east-1".into(),
        };
        let now = DateTime::parse_from_rfc3339("2013-05-24T00:00:00Z").unwrap().to_utc();
        let url = signer.presign(
            "GET",
            &Url::parse("https://examplebucket.s3.amazonaws.com/test.txt").unwrap(),
            &[],
            86_400,
            now,
        );
        assert!(
            url.query()
                .unwrap()
                .ends_with("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
            "{url}"
        );
    }
}
