//! A small S3-compatible store on a local folder: the role `object-store`, part of `tale dev`, and for tests.
//!
//! One object is one file, `{bucket}/{key}`: its bytes, then a footer with its type and digest. It
//! is written to `.tmp/`, flushed to the disk and renamed into place, so a reader sees the old
//! object or the new one and a crash or a full disk leaves nothing half-written. Requests are
//! authenticated by Signature Version 4, presigned or in headers. Only what Tale needs is answered:
//! objects can be put, read, checked and deleted, buckets created and checked.

use std::convert::Infallible;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::auth::SimpleAuth;
use s3s::dto::{
    CreateBucketInput, CreateBucketOutput, DeleteObjectInput, DeleteObjectOutput, ETag, GetObjectInput,
    GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput, PutObjectInput,
    PutObjectOutput, StreamingBlob, Timestamp,
};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tale_core::crypto::RunningSha256;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufWriter};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

/// Ends every object file, after the footer's JSON and its length (four bytes, little endian).
const FOOTER_MARK: &[u8; 8] = b"TALEOBJ1";
/// Longest footer that is read.
const FOOTER_LIMIT: u64 = 16 * 1024;
const WRITE_BUFFER: usize = 256 * 1024;
const READ_BUFFER: usize = 256 * 1024;
/// Where objects are written before they are complete.
const TEMPORARY: &str = ".tmp";

/// The store as a service: mount it under `/{bucket}/{*key}` without stripping the path, and serve
/// it on a loopback port for ourselves with [`serve`].
#[derive(Clone)]
pub struct EmbeddedStore {
    inner: S3Service,
    pub(crate) folder: Folder,
}

/// The store on `folder`, which is created when absent. What an earlier process left half-written
/// is removed.
///
/// # Errors
/// When the folder cannot be used.
pub fn service(folder: &Path, access_key: &str, secret_key: &SecretString) -> io::Result<EmbeddedStore> {
    let temporary = folder.join(TEMPORARY);
    match std::fs::remove_dir_all(&temporary) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    std::fs::create_dir_all(&temporary)?;
    let folder = Folder { root: folder.to_owned() };
    let mut builder = S3ServiceBuilder::new(folder.clone());
    builder.set_auth(SimpleAuth::from_single(access_key, secret_key.expose_secret()));
    Ok(EmbeddedStore { inner: builder.build(), folder })
}

/// Makes a bucket of the store on `folder`, unless it is there. The name must be one of S3's.
///
/// # Errors
/// When the folder cannot be used.
pub fn make_bucket(folder: &Path, name: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder.join(name))
}

/// Whether the store on `folder` can take objects: the disk is there, has space and may be written.
///
/// # Errors
/// What a new object would meet.
pub fn try_writing(folder: &Path) -> io::Result<()> {
    let path = folder.join(TEMPORARY).join(uuid::Uuid::new_v4().to_string());
    let unfinished = Unfinished(Some(path.clone()));
    std::fs::write(path, [0; 4096])?;
    drop(unfinished);
    Ok(())
}

/// Serves the store on `listener` until `stop`, then lets running requests finish.
pub async fn serve(listener: tokio::net::TcpListener, store: EmbeddedStore, stop: CancellationToken) {
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: waiting is all that helps.
                warn!(error = %error, "the object store could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = hyper_util::service::TowerToHyperService::new(store.clone());
        let stop = stop.clone();
        connections.spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                debug!(error = %error, "a connection to the object store broke off");
            }
        });
    }
    connections.close();
    connections.wait().await;
}

impl<B> tower::Service<Request<B>> for EmbeddedStore
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<s3s::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut inner = self.inner.clone();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        Box::pin(async move {
            let mut response = match tower::Service::call(&mut inner, request).await {
                Ok(response) => response,
                Err(error) => {
                    warn!(error = ?error, "the object store could not form an answer");
                    let mut response = Response::new(s3s::Body::empty());
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    response
                }
            };
            if response.status().is_server_error() {
                let status = response.status().as_u16();
                warn!(event = "object_store.fault", %method, path, status, "the object store could not do what it was asked");
            }
            // The store shares its origin with the app, so nothing stored may act as a page of it.
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            Ok(response)
        })
    }
}

/// The folder behind the service.
#[derive(Clone)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// What stands behind the bytes of an object file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Footer {
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    pub(crate) sha256: String,
}

/// An object's file, which stands at its first byte.
pub(crate) struct Opened {
    pub(crate) file: std::fs::File,
    pub(crate) footer: Footer,
    metadata: std::fs::Metadata,
}

impl Footer {
    fn etag(&self) -> ETag {
        ETag::Strong(self.sha256.clone())
    }
}

/// Removes a file that did not become an object.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Folder {
    fn bucket(&self, bucket: &str) -> S3Result<PathBuf> {
        let path = self.root.join(bucket);
        // `s3s` admits only well-formed bucket names: they start with a letter or digit.
        if path.is_dir() { Ok(path) } else { Err(s3_error!(NoSuchBucket)) }
    }

    /// Where an object's file is.
    pub(crate) fn object(&self, bucket: &str, key: &str) -> S3Result<PathBuf> {
        let mut path = self.bucket(bucket)?;
        if key.len() > 1024 {
            return Err(s3_error!(KeyTooLongError));
        }
        for part in key.split('/') {
            if part.is_empty() || part.starts_with('.') || part.len() > 250 || part.contains(['\\', '\0', ':']) {
                return Err(s3_error!(InvalidArgument, "the key has a part that cannot be stored"));
            }
            path.push(part);
        }
        Ok(path)
    }

    /// [`open_object`] off the async threads.
    async fn open(&self, bucket: &str, key: &str) -> S3Result<Opened> {
        let path = self.object(bucket, key)?;
        tokio::task::spawn_blocking(move || open_object(&path)).await.map_err(S3Error::internal_error)?
    }

    async fn store(&self, path: &Path, input: PutObjectInput) -> S3Result<Footer> {
        let mut body = input.body.ok_or_else(|| s3_error!(IncompleteBody))?;
        let temporary = self.root.join(TEMPORARY).join(uuid::Uuid::new_v4().to_string());
        let mut unfinished = Unfinished(Some(temporary.clone()));
        let mut writer = BufWriter::with_capacity(WRITE_BUFFER, File::create(&temporary).await.map_err(failed)?);
        let (mut size, mut digest) = (0u64, RunningSha256::default());
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| S3Error::with_source(S3ErrorCode::IncompleteBody, error))?;
            size += piece.len() as u64;
            digest.update(&piece);
            writer.write_all(&piece).await.map_err(failed)?;
        }
        if input.content_length.is_some_and(|declared| u64::try_from(declared).ok() != Some(size)) {
            return Err(s3_error!(IncompleteBody));
        }
        let footer = Footer { size, content_type: input.content_type, sha256: digest.finish_hex() };
        let text = serde_json::to_vec(&footer).map_err(S3Error::internal_error)?;
        let length = u32::try_from(text.len()).map_err(S3Error::internal_error)?;
        writer.write_all(&text).await.map_err(failed)?;
        writer.write_all(&length.to_le_bytes()).await.map_err(failed)?;
        writer.write_all(FOOTER_MARK).await.map_err(failed)?;
        writer.flush().await.map_err(failed)?;
        writer.into_inner().sync_all().await.map_err(failed)?;
        let target = path.to_owned();
        tokio::task::spawn_blocking(move || {
            let folder = target.parent().unwrap_or(&target).to_owned();
            std::fs::create_dir_all(&folder)?;
            std::fs::rename(&temporary, &target)?;
            std::fs::File::open(&folder)?.sync_all()
        })
        .await
        .map_err(S3Error::internal_error)?
        .map_err(failed)?;
        unfinished.0 = None;
        Ok(footer)
    }
}

/// Opens an object and reads its footer.
pub(crate) fn open_object(path: &Path) -> S3Result<Opened> {
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(s3_error!(NoSuchKey));
        }
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(s3_error!(NoSuchKey));
    }
    let footer = read_footer(&mut file, metadata.len()).map_err(|error| {
        warn!(object = %path.display(), error = %error, "an object's file is damaged");
        s3_error!(InternalError, "the object is damaged")
    })?;
    file.rewind().map_err(failed)?;
    Ok(Opened { file, footer, metadata })
}

fn read_footer(file: &mut std::fs::File, length: u64) -> io::Result<Footer> {
    let damaged = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mark = FOOTER_MARK.len() as u64 + 4;
    let at = length.checked_sub(mark).ok_or_else(|| damaged("too short"))?;
    file.seek(SeekFrom::Start(at))?;
    let mut size = [0u8; 4];
    file.read_exact(&mut size)?;
    let size = u64::from(u32::from_le_bytes(size));
    let mut found = [0u8; 8];
    file.read_exact(&mut found)?;
    let start = at
        .checked_sub(size)
        .filter(|_| size <= FOOTER_LIMIT && &found == FOOTER_MARK)
        .ok_or_else(|| damaged("no footer"))?;
    file.seek(SeekFrom::Start(start))?;
    let mut text = vec![0u8; usize::try_from(size).map_err(|_| damaged("footer too long"))?];
    file.read_exact(&mut text)?;
    let footer: Footer = serde_json::from_slice(&text)?;
    if footer.size == start { Ok(footer) } else { Err(damaged("the size does not match")) }
}

/// Maps a disk's trouble to an answer; a full disk is named as such.
fn failed(error: io::Error) -> S3Error {
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        let mut full = S3Error::with_message(S3ErrorCode::Custom("StorageFull".into()), "no space left for objects");
        full.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
        return full;
    }
    S3Error::internal_error(error)
}

fn as_i64(size: u64) -> Option<i64> {
    i64::try_from(size).ok()
}

#[async_trait::async_trait]
impl S3 for Folder {
    async fn create_bucket(&self, request: S3Request<CreateBucketInput>) -> S3Result<S3Response<CreateBucketOutput>> {
        let path = self.root.join(&request.input.bucket);
        match tokio::fs::create_dir(&path).await {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(s3_error!(BucketAlreadyOwnedByYou)),
            Err(error) => Err(failed(error)),
            Ok(()) => Ok(S3Response::new(CreateBucketOutput::default())),
        }
    }

    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.bucket(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let path = self.object(&request.input.bucket, &request.input.key)?;
        let footer = self.store(&path, request.input).await?;
        Ok(S3Response::new(PutObjectOutput { e_tag: Some(footer.etag()), ..PutObjectOutput::default() }))
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let Opened { footer, metadata, .. } = self.open(&request.input.bucket, &request.input.key).await?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: as_i64(footer.size),
            e_tag: Some(footer.etag()),
            content_type: footer.content_type,
            last_modified: metadata.modified().ok().map(Timestamp::from),
            accept_ranges: Some("bytes".to_owned()),
            ..HeadObjectOutput::default()
        }))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let Opened { file, footer, metadata } = self.open(&request.input.bucket, &request.input.key).await?;
        let mut file = File::from_std(file);
        let (range, content_range) = match request.input.range {
            None => (0..footer.size, None),
            Some(range) => {
                let range = range.check(footer.size)?;
                let header = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), footer.size);
                (range, Some(header))
            }
        };
        file.seek(SeekFrom::Start(range.start)).await.map_err(failed)?;
        let length = range.end - range.start;
        let stream = ReaderStream::with_capacity(file.take(length), READ_BUFFER);
        Ok(S3Response::new(GetObjectOutput {
            body: Some(StreamingBlob::wrap(stream)),
            content_length: as_i64(length),
            content_range,
            e_tag: Some(footer.etag()),
            content_type: footer.content_type,
            last_modified: metadata.modified().ok().map(Timestamp::from),
            accept_ranges: Some("bytes".to_owned()),
            ..GetObjectOutput::default()
        }))
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        let path = self.object(&request.input.bucket, &request.input.key)?;
        match tokio::fs::remove_file(&path).await {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
                ) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }
}

/// A store that is served on a loopback port of its own, for tests and for `tale dev`.
pub struct Running {
    /// Its address.
    pub endpoint: url::Url,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Serves `store` on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(store: EmbeddedStore) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let endpoint = url::Url::parse(&format!("http://{address}")).map_err(io::Error::other)?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, store, stop.clone()));
        Ok(Self { endpoint, stop, task })
    }

    /// Stops accepting, lets running requests finish and ends.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}
