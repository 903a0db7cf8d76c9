//! Reading objects of the embedded store in the process that runs it, without a request.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use s3s::{S3Error, S3ErrorCode};

use crate::embedded::{Folder, Footer, Opened, open_object};
use crate::error::BlobError;
use crate::store::{BlobMeta, BlobStream};

/// Bytes that are read in one step off the async threads: most files are smaller.
const STEP_BYTES: u64 = 1 << 20;

/// A stretch of an object that is being read.
struct Stretch {
    file: File,
    left: u64,
}

impl Stretch {
    fn step(&mut self) -> io::Result<Bytes> {
        let size = self.left.min(STEP_BYTES);
        let mut piece = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        self.file.read_exact(&mut piece)?;
        self.left -= size;
        Ok(piece.into())
    }
}

/// Opens an object, whole or only the bytes of `range`.
pub(crate) async fn get(
    folder: &Folder,
    bucket: &str,
    key: &str,
    range: Option<Range<u64>>,
) -> Result<BlobStream, BlobError> {
    let path = folder.object(bucket, key).map_err(of_store)?;
    let opened = blocking(move || {
        let Opened { mut file, footer, .. } = open_object(&path).map_err(of_store)?;
        let size = footer.size;
        let range = match range {
            // As the protocol has it: what lies behind the end is left out, a stretch behind it is refused.
            Some(range) if range.start >= range.end.min(size) => return Err(BlobError::RangeNotSatisfiable),
            Some(range) => range.start..range.end.min(size),
            None => 0..size,
        };
        file.seek(SeekFrom::Start(range.start)).map_err(broken)?;
        let mut stretch = Stretch { file, left: range.end - range.start };
        let length = stretch.left;
        let first = stretch.step().map_err(broken)?;
        Ok((meta(&footer), length, first, stretch))
    });
    let (meta, length, first, stretch) = opened.await?;
    let bytes = stream::iter((!first.is_empty()).then_some(Ok(first))).chain(rest(stretch)).boxed();
    Ok(BlobStream { meta, length, bytes })
}

/// About an object; `None` when it does not exist.
pub(crate) async fn head(folder: &Folder, bucket: &str, key: &str) -> Result<Option<BlobMeta>, BlobError> {
    let path = match folder.object(bucket, key).map_err(of_store) {
        Err(BlobError::NotFound) => return Ok(None),
        path => path?,
    };
    let opened = blocking(move || open_object(&path).map_err(of_store));
    match opened.await {
        Ok(opened) => Ok(Some(meta(&opened.footer))),
        Err(BlobError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn rest(stretch: Stretch) -> impl Stream<Item = Result<Bytes, BlobError>> + Send {
    stream::try_unfold(stretch, |mut stretch| async move {
        if stretch.left == 0 {
            return Ok(None);
        }
        blocking(move || stretch.step().map(|piece| Some((piece, stretch))).map_err(broken)).await
    })
}

fn meta(footer: &Footer) -> BlobMeta {
    BlobMeta {
        size: footer.size,
        content_type: footer.content_type.clone(),
        etag: Some(format!("\"{}\"", footer.sha256)),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| broken(io::Error::other(error)))?
}

fn broken(error: io::Error) -> BlobError {
    BlobError::Refused { status: 500, detail: error.to_string() }
}

fn of_store(error: S3Error) -> BlobError {
    match error.code() {
        S3ErrorCode::NoSuchBucket | S3ErrorCode::NoSuchKey => BlobError::NotFound,
        code => BlobError::Refused {
            status: error.status_code().map_or(500, |status| status.as_u16()),
            detail: format!("{} {}", code.as_str(), error.message().unwrap_or_default()).trim().to_owned(),
        },
    }
}
