//! The client of one S3-compatible object store.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use reqwest::{Method, StatusCode};
use secrecy::SecretString;
use tale_core::clock::SharedClock;
use tale_core::net::{HostPolicy, check_destination, guarded_builder, refusal_in};
use url::Url;

use crate::embedded::{EmbeddedStore, Folder};
use crate::error::BlobError;
use crate::key::BlobKey;
use crate::local;
use crate::sigv4::{Signer, UNSIGNED_PAYLOAD, encode_path};

/// A store that does not answer for this long is unavailable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest silence in the middle of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests without a body are tried this often before the store counts as unavailable.
const ATTEMPTS: u32 = 3;
/// How much of an error answer is read to find its code.
const ERROR_BODY_LIMIT: usize = 8 * 1024;

/// Where the objects live and how to reach them (spec 10, section 7).
#[derive(Clone)]
pub struct StoreConfig {
    /// The store's address for ourselves.
    pub endpoint: Url,
    /// The address that URLs for browsers are signed for; the endpoint when unset (DCF-90).
    pub public_endpoint: Option<Url>,
    /// Origins of this site. When the public endpoint is one of them, a URL for a browser on
    /// another of them is signed for that one (DCF-91).
    pub site_origins: Vec<Url>,
    /// The region that signatures name.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// Put before every object name; empty for the bucket's root.
    pub prefix: String,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    pub path_style: bool,
    /// The access key's id.
    pub access_key: String,
    /// The access key's secret.
    pub secret_key: SecretString,
}

/// What the store knows about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobMeta {
    /// Size of the whole object in bytes.
    pub size: u64,
    /// The type it was stored with.
    pub content_type: Option<String>,
    /// The store's entity tag, with its quotes.
    pub etag: Option<String>,
}

/// The bytes of an object as they arrive.
pub struct BlobStream {
    /// About the object as a whole.
    pub meta: BlobMeta,
    /// How many bytes this stream yields.
    pub length: u64,
    /// The bytes. An error ends the stream.
    pub bytes: Pin<Box<dyn Stream<Item = Result<Bytes, BlobError>> + Send>>,
}

impl BlobStream {
    /// Everything that arrives, in memory.
    pub(crate) async fn collect(mut self, limit: u64) -> Result<Bytes, BlobError> {
        if self.length > limit {
            return Err(BlobError::TooLarge { limit });
        }
        let mut all = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
        while let Some(piece) = self.bytes.next().await {
            all.extend_from_slice(&piece?);
            if all.len() as u64 > limit {
                return Err(BlobError::TooLarge { limit });
            }
        }
        Ok(all.into())
    }
}

/// A request that a browser sends to the store by itself.
#[derive(Debug, Clone)]
pub struct SignedRequest {
    /// Where to send it.
    pub url: Url,
    /// The HTTP method.
    pub method: &'static str,
    /// Headers that must be sent exactly as given.
    pub headers: Vec<(&'static str, String)>,
}

struct Inner {
    config: StoreConfig,
    signer: Signer,
    http: reqwest::Client,
    clock: SharedClock,
    /// Judges literal addresses at each request; the operator's own store is not judged.
    policy: Option<HostPolicy>,
    /// The store's folder, when this process runs the store.
    folder: Option<Folder>,
}

/// One bucket, or the part of it below a prefix. Cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.0.config.bucket).finish()
    }
}

/// The client with which stores at addresses that users can name are called.
pub(crate) fn guarded_http(policy: HostPolicy) -> Result<reqwest::Client, reqwest::Error> {
    guarded_builder(policy, CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).pool_max_idle_per_host(8).build()
}

impl Store {
    /// A client for the store that the operator names in `config`.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn new(config: StoreConfig, clock: SharedClock) -> Result<Self, reqwest::Error> {
        Self::operators(config, clock, None)
    }

    /// A client for `store`, which this process serves where `config` says. It reads objects from
    /// their files.
    ///
    /// # Errors
    /// As [`Store::new`].
    pub fn beside(config: StoreConfig, clock: SharedClock, store: &EmbeddedStore) -> Result<Self, reqwest::Error> {
        Self::operators(config, clock, Some(store.folder.clone()))
    }

    fn operators(config: StoreConfig, clock: SharedClock, folder: Option<Folder>) -> Result<Self, reqwest::Error> {
        tale_core::net::install_tls_provider();
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(8);
        let loopback = match config.endpoint.host() {
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if loopback {
            http = http.no_proxy();
        }
        Ok(Self::with(config, http.build()?, clock, None, folder))
    }

    /// A client for a store that a user names: `http` is [`guarded_http`] of `policy`.
    pub(crate) fn guarded(config: StoreConfig, http: reqwest::Client, clock: SharedClock, policy: HostPolicy) -> Self {
        Self::with(config, http, clock, Some(policy), None)
    }

    fn with(
        config: StoreConfig,
        http: reqwest::Client,
        clock: SharedClock,
        policy: Option<HostPolicy>,
        folder: Option<Folder>,
    ) -> Self {
        let signer = Signer {
            access_key: config.access_key.clone(),
            secret_key: config.secret_key.clone(),
            region: config.region.clone(),
        };
        Self(Arc::new(Inner { signer, http, clock, policy, folder, config }))
    }

    /// Asks the store for its bucket. A refusal counts as an answer: a key that may use objects
    /// need not see the bucket.
    ///
    /// # Errors
    /// When the store cannot be reached or the bucket is absent.
    pub async fn ping(&self) -> Result<(), BlobError> {
        let store = &self.0;
        match store.send(Method::HEAD, &store.bucket_url(), &[]).await {
            Ok(_) | Err(BlobError::Refused { status: 403, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The origin that browsers exchange files with.
    #[must_use]
    pub fn public_origin(&self) -> String {
        let config = &self.0.config;
        let public = config.public_endpoint.as_ref().unwrap_or(&config.endpoint);
        config.url_at(public, "").origin().ascii_serialization()
    }

    /// Whether both name the same bucket at the same address. One that is spelled differently is
    /// found by [`Store::check`] only.
    #[must_use]
    pub fn is_named_like(&self, other: &Self) -> bool {
        let (one, other) = (&self.0.config, &other.0.config);
        one.bucket == other.bucket
            && one.url_at(&one.endpoint, "").origin() == other.url_at(&other.endpoint, "").origin()
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.0.config.bucket
    }

    /// Where objects are put: the bucket's address and the prefix. Tells two places apart.
    #[must_use]
    pub fn address(&self) -> String {
        let config = &self.0.config;
        config.url_at(&config.endpoint, config.prefix.trim_matches('/')).to_string()
    }

    /// The whole name of an object in the bucket.
    pub(crate) fn object_path(&self, key: &BlobKey) -> String {
        self.0.config.object_path(key)
    }

    /// Makes sure the bucket exists: asks first and creates it only when it is absent (DCF-84).
    ///
    /// # Errors
    /// When the store cannot be reached, or refuses to create a bucket that is absent.
    pub async fn ensure_bucket(&self) -> Result<(), BlobError> {
        let store = &self.0;
        let url = store.bucket_url();
        match store.send(Method::HEAD, &url, &[]).await {
            Err(BlobError::NotFound) => store.send(Method::PUT, &url, &[]).await.map(|_| ()),
            // A key that may use objects but not look at the bucket works with one that exists.
            Ok(_) | Err(BlobError::Refused { status: 403, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Stores `size` bytes from `body` under `key`. A body of another length is refused by the
    /// store and leaves nothing behind.
    ///
    /// # Errors
    /// When the store cannot be reached or refuses, or `body` yields an error.
    pub async fn put<S>(&self, key: &BlobKey, content_type: &str, size: u64, body: S) -> Result<(), BlobError>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        let store = &self.0;
        let url = store.object_url(key);
        let request = store
            .request(Method::PUT, &url)
            .header("content-type", content_type)
            .header("content-length", size)
            .body(reqwest::Body::wrap_stream(body));
        store.admit(&url)?;
        let answer = request.send().await.map_err(unreachable)?;
        checked(answer).await.map(|_| ())
    }

    /// Stores bytes that are in memory already.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub async fn put_bytes(&self, key: &BlobKey, content_type: &str, bytes: Bytes) -> Result<(), BlobError> {
        let size = bytes.len() as u64;
        self.put(key, content_type, size, futures::stream::iter([Ok(bytes)])).await
    }

    /// Opens an object for reading, whole or only the bytes of `range`.
    ///
    /// # Errors
    /// [`BlobError::NotFound`], [`BlobError::RangeNotSatisfiable`], or the store's trouble.
    pub async fn get(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
        let store = &self.0;
        if let Some(folder) = &store.folder {
            return local::get(folder, &store.config.bucket, &store.config.object_path(key), range).await;
        }
        let url = store.object_url(key);
        let header =
            range.as_ref().map(|range| ("range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1))));
        let answer = store.send(Method::GET, &url, header.as_slice()).await?;
        let length = content_length(&answer);
        let total = answer
            .headers()
            .get("content-range")
            .and_then(|value| value.to_str().ok()?.rsplit_once('/')?.1.parse().ok())
            .or(length);
        let meta = meta_of(&answer, total.unwrap_or_default());
        let bytes = answer.bytes_stream().map_err(unreachable).boxed();
        Ok(BlobStream { length: length.unwrap_or(meta.size), meta, bytes })
    }

    /// The whole object in memory.
    ///
    /// # Errors
    /// [`BlobError::TooLarge`] above `limit` bytes, else as [`Store::get`].
    pub async fn get_bytes(&self, key: &BlobKey, limit: u64) -> Result<Bytes, BlobError> {
        self.get(key, None).await?.collect(limit).await
    }

    /// What the store knows about an object; `None` when it does not exist.
    ///
    /// # Errors
    /// When the store cannot be reached or refuses.
    pub async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        self.head_at(&self.0.config.object_path(key)).await
    }

    /// Whether the bucket holds an object of that name, whatever the prefix.
    pub(crate) async fn head_at(&self, path: &str) -> Result<Option<BlobMeta>, BlobError> {
        let store = &self.0;
        if let Some(folder) = &store.folder {
            return local::head(folder, &store.config.bucket, path).await;
        }
        match store.send(Method::HEAD, &store.config.url_at(&store.config.endpoint, path), &[]).await {
            Ok(answer) => {
                let size = content_length(&answer).unwrap_or_default();
                Ok(Some(meta_of(&answer, size)))
            }
            Err(BlobError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes an object. Removing one that does not exist succeeds.
    ///
    /// # Errors
    /// When the store cannot be reached or refuses.
    pub async fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        let store = &self.0;
        match store.send(Method::DELETE, &store.object_url(key), &[]).await {
            Ok(_) | Err(BlobError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A request with which a browser on `origin` stores exactly `size` bytes of `content_type`
    /// under `key` within `valid`. Size and type are part of the signature.
    #[must_use]
    pub fn presign_put(
        &self,
        key: &BlobKey,
        content_type: &str,
        size: u64,
        origin: Option<&str>,
        valid: Duration,
    ) -> SignedRequest {
        let store = &self.0;
        let url = store.browser_url(key, origin);
        let signed = [("content-length", size.to_string()), ("content-type", content_type.to_owned())];
        let url = store.signer.presign("PUT", &url, &signed, valid.as_secs(), store.clock.now());
        SignedRequest { url, method: "PUT", headers: vec![("Content-Type", content_type.to_owned())] }
    }

    /// A URL with which a browser on `origin` reads the object within `valid`.
    #[must_use]
    pub fn presign_get(&self, key: &BlobKey, origin: Option<&str>, valid: Duration) -> Url {
        let store = &self.0;
        store.signer.presign("GET", &store.browser_url(key, origin), &[], valid.as_secs(), store.clock.now())
    }
}

impl Inner {
    fn bucket_url(&self) -> Url {
        self.config.url_at(&self.config.endpoint, "")
    }

    fn object_url(&self, key: &BlobKey) -> Url {
        self.config.url_at(&self.config.endpoint, &self.config.object_path(key))
    }

    /// Judges a literal address; names are judged as they are resolved.
    fn admit(&self, url: &Url) -> Result<(), BlobError> {
        self.policy.map_or(Ok(()), |policy| check_destination(url, policy)).map_err(BlobError::Forbidden)
    }

    fn browser_url(&self, key: &BlobKey, origin: Option<&str>) -> Url {
        let config = &self.config;
        let public = config.public_endpoint.as_ref().unwrap_or(&config.endpoint);
        let is_site = config.site_origins.iter().any(|site| site.origin() == public.origin());
        let asked = origin
            .and_then(|origin| Url::parse(origin).ok())
            .and_then(|origin| config.site_origins.iter().find(|site| is_site && site.origin() == origin.origin()));
        config.url_at(asked.unwrap_or(public), &config.object_path(key))
    }

    fn request(&self, method: Method, url: &Url) -> reqwest::RequestBuilder {
        let auth = self.signer.authorize(method.as_str(), url, self.clock.now());
        self.http
            .request(method, url.clone())
            .header("x-amz-content-sha256", UNSIGNED_PAYLOAD)
            .header("x-amz-date", auth.date)
            .header("authorization", auth.authorization)
    }

    /// Sends a request without a body, again when the store was busy or the connection broke.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &[(&'static str, String)],
    ) -> Result<reqwest::Response, BlobError> {
        self.admit(url)?;
        let mut attempt = 1;
        loop {
            let mut request = self.request(method.clone(), url);
            if method == Method::PUT {
                request = request.header("content-length", 0);
            }
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let result = match request.send().await {
                Ok(answer) => checked(answer).await,
                Err(error) => Err(unreachable(error)),
            };
            match result {
                Err(BlobError::Unreachable(_) | BlobError::Refused { status: 500 | 502..=504 | 429, .. })
                    if attempt < ATTEMPTS =>
                {
                    tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }
}

impl StoreConfig {
    fn object_path(&self, key: &BlobKey) -> String {
        let prefix = self.prefix.trim_matches('/');
        if prefix.is_empty() { key.as_str().to_owned() } else { format!("{prefix}/{key}") }
    }

    fn url_at(&self, base: &Url, path: &str) -> Url {
        let mut url = base.clone();
        url.set_query(None);
        url.set_fragment(None);
        if self.path_style {
            let base_path = base.path().trim_end_matches('/');
            let tail = if path.is_empty() { String::new() } else { format!("/{}", encode_path(path)) };
            url.set_path(&format!("{base_path}/{}{tail}", self.bucket));
        } else {
            let host = format!("{}.{}", self.bucket, base.host_str().unwrap_or_default());
            // An endpoint given by address has no names below it; it stays as it is.
            let _ = url.set_host(Some(&host));
            url.set_path(&format!("/{}", encode_path(path)));
        }
        url
    }
}

fn unreachable(error: reqwest::Error) -> BlobError {
    match refusal_in(&error) {
        Some(refused) => BlobError::Forbidden(refused.clone()),
        None => BlobError::Unreachable(error),
    }
}

fn content_length(answer: &reqwest::Response) -> Option<u64> {
    // `Response::content_length` knows the body, which a HEAD answer does not have.
    answer.headers().get("content-length")?.to_str().ok()?.parse().ok()
}

fn meta_of(answer: &reqwest::Response, size: u64) -> BlobMeta {
    let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    BlobMeta { size, content_type: text("content-type"), etag: text("etag") }
}

/// Turns an error status into the error it means.
async fn checked(answer: reqwest::Response) -> Result<reqwest::Response, BlobError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    match status {
        StatusCode::NOT_FOUND => Err(BlobError::NotFound),
        StatusCode::RANGE_NOT_SATISFIABLE => Err(BlobError::RangeNotSatisfiable),
        _ => {
            let mut body = Vec::new();
            let mut stream = answer.bytes_stream();
            while let Some(Ok(piece)) = stream.next().await {
                body.extend_from_slice(&piece);
                if body.len() >= ERROR_BODY_LIMIT {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&body);
            let between = |tag: &str| {
                let start = text.find(&format!("<{tag}>"))? + tag.len() + 2;
                let end = text[start..].find(&format!("</{tag}>"))? + start;
                Some(text[start..end].to_owned())
            };
            let detail = format!("{} {}", between("Code").unwrap_or_default(), between("Message").unwrap_or_default());
            Err(BlobError::Refused { status: status.as_u16(), detail: detail.trim().to_owned() })
        }
    }
}
