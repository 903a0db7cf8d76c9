//! Uploaded files: the slot, the bytes that a browser puts straight into the object store, and what
//! they turn out to be (spec 60, section 3).

use std::time::Duration;

use futures::StreamExt;
use sqlx::PgConnection;
use tale_blobs::{BlobKey, SignedRequest};
use tale_core::ids::{FileId, OrgId, ThreadId};
use tale_core::limits::MAX_UPLOAD_BYTES;
use tale_core::{Code, Problem};
use tale_extract::{Class, HEAD_BYTES};
use tale_governance::policies::Upload;
use tale_identity::{Caller, Capability};

use crate::Knowledge;
use crate::contents::{Content, ContentAbout, MAX_TEXT_CHARS, TextPart, assembled, part_of};
use crate::file_type;
use crate::indexing;
use crate::store::{documents, files as store};
use crate::transcriber::recording_type;

/// How long an upload URL stays valid.
const UPLOAD_VALID: Duration = Duration::from_secs(60 * 60);

/// What an upload is for. It never changes: a chat upload does not become a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Purpose {
    /// The library.
    Document,
    /// One chat.
    Chat,
}

/// How far a file is indexed (spec 60, 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum IndexStatus {
    /// Nobody queued it.
    Pending,
    /// Waits for a slot.
    Queued,
    /// In the pipeline.
    Running,
    /// Retrievable.
    Completed,
    /// Failed, with a reason.
    Failed,
    /// Cannot be indexed, with a reason; terminal.
    Unsupported,
    /// The uploader opted out.
    Skipped,
}

impl IndexStatus {
    /// Every status.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Queued, Self::Running, Self::Completed, Self::Failed, Self::Unsupported, Self::Skipped];

    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
        }
    }
}

/// A wish to upload.
#[derive(Debug, Clone)]
pub struct NewUpload {
    /// The file's name as the person has it.
    pub file_name: String,
    /// The media type as the browser has it; may be empty.
    pub content_type: String,
    /// Size in bytes; `None` when it was not given as a whole number.
    pub size: Option<i64>,
    /// What it is for.
    pub purpose: Purpose,
    /// The origin of the page that uploads.
    pub origin: Option<String>,
}

/// Where to put the bytes.
#[derive(Debug, Clone)]
pub struct UploadSlot {
    /// Names the upload when it is bound.
    pub file_id: FileId,
    /// The request that stores the bytes.
    pub request: SignedRequest,
}

/// How far a chat upload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentState {
    /// On its way, or being read.
    Processing,
    /// Can be used by a turn.
    Ready,
    /// Cannot be used, with a reason.
    Failed,
}

/// A chat upload.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// The file.
    pub file_id: FileId,
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub size: u64,
    /// How far it is.
    pub state: AttachmentState,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// Whether reading it again may help.
    pub can_retry: bool,
    /// Whether it is an image that a vision model can look at.
    pub image: bool,
    /// Whether it is a recording, whose text is a transcript.
    pub recording: bool,
    /// Length of its text in Unicode scalar values, once it is read.
    pub text_length: Option<u64>,
    /// The chat that holds it.
    pub thread: Option<ThreadId>,
}

pub(crate) fn file_not_found() -> Problem {
    Problem::new(Code::FileNotFound, "There is no such upload, or it was used already. Upload the file again.")
}

fn not_owned() -> Problem {
    Problem::new(
        Code::AttachmentNotOwned,
        "Only files you uploaded yourself for this chat can be attached. Upload the file again.",
    )
}

impl Knowledge {
    /// Opens an upload slot and signs the request with which the browser stores exactly the
    /// declared bytes.
    ///
    /// # Errors
    /// The refusals of FILE-8, and the caller's missing right.
    pub async fn create_upload(&self, caller: &Caller, upload: NewUpload) -> Result<UploadSlot, Problem> {
        caller.require(match upload.purpose {
            Purpose::Document => Capability::KnowledgeWrite,
            Purpose::Chat => Capability::ChatUse,
        })?;
        let file_name = file_type::clean_name(&upload.file_name)?;
        let size = upload.size.and_then(|size| u64::try_from(size).ok()).ok_or_else(|| {
            Problem::new(Code::FileSizeInvalid, "The size of the file must be given in bytes, as a whole number.")
        })?;
        if size > MAX_UPLOAD_BYTES {
            return Err(Problem::new(
                Code::FileTooLarge,
                format!("The file is larger than 100 MiB ({MAX_UPLOAD_BYTES} bytes). Split it or compress it."),
            )
            .with_data(serde_json::json!({ "limit": MAX_UPLOAD_BYTES })));
        }
        file_type::check_admitted(&file_name)?;
        let content_type = file_type::clean_type(&upload.content_type, &file_name);
        let policy = self.upload_policy(caller.org).await?;
        policy.judge(&judged(&file_name, &content_type, size))?;
        let key = BlobKey::fresh(&caller.org_slug).map_err(Problem::internal)?;
        let request =
            self.blobs().presign_put(&key, &content_type, size, upload.origin.as_deref(), UPLOAD_VALID).await?;
        let now = self.clock().now();
        let file_id = FileId::new();
        let mut tx = self.app().begin().await?;
        if let (Some(user), Some(_)) = (caller.user, policy.volume()) {
            // One after the other, so that two uploads at once do not both take the last room.
            store::lock_volume(&mut tx, caller.org, user).await?;
            let stored = store::volume(&mut tx, caller.org, user).await?;
            policy.judge_volume(stored.saturating_add(size))?;
        }
        store::insert(
            &mut tx,
            caller.org,
            &store::NewFile {
                id: file_id,
                storage_key: key.as_str(),
                file_name: &file_name,
                content_type: &content_type,
                size: i64::try_from(size).map_err(Problem::internal)?,
                purpose: upload.purpose,
                uploaded_by: caller.user,
                upload_deadline: now + UPLOAD_VALID,
                now,
            },
        )
        .await?;
        tx.commit().await?;
        Ok(UploadSlot { file_id, request })
    }

    /// The caller's own upload, or the answer that there is none (FILE-3).
    pub(crate) async fn own_upload(&self, caller: &Caller, id: FileId) -> Result<store::FileRow, Problem> {
        let mut conn = self.app().acquire().await?;
        let row = store::get(&mut conn, caller.org, id).await?;
        row.filter(|row| row.uploaded_by.is_some() && row.uploaded_by == caller.user).ok_or_else(file_not_found)
    }

    /// Looks at the stored bytes of an upload: that they are there, how many, whether the organization accepts
    /// them, and whether their beginning is what the name promises. Nothing is written.
    pub(crate) async fn inspect(&self, org: OrgId, row: &store::FileRow) -> Result<Inspection, Problem> {
        let key = BlobKey::parse(&row.storage_key).map_err(Problem::internal)?;
        let meta = self.blobs().head(&key).await?.ok_or_else(|| {
            Problem::new(
                Code::FileNotFound,
                "The bytes of this upload have not arrived. Finish the upload, then try again.",
            )
        })?;
        if i64::try_from(meta.size).ok() != Some(row.size) {
            return Err(Problem::new(
                Code::FileSizeInvalid,
                format!("The upload has {} bytes, but {} were declared. Upload the file again.", meta.size, row.size),
            ));
        }
        let head = if meta.size == 0 {
            Vec::new()
        } else {
            let mut object = self.blobs().get(&key, Some(0..meta.size.min(HEAD_BYTES as u64))).await?;
            let mut head = Vec::with_capacity(HEAD_BYTES);
            while let Some(piece) = object.bytes.next().await {
                head.extend_from_slice(&piece?);
            }
            head
        };
        let policy = self.upload_policy(org).await?;
        let content_type = file_type::real_type(&row.content_type, &head);
        policy.judge(&judged(&row.file_name, content_type, meta.size))?;
        if let (Some(user), Some(_)) = (row.uploaded_by, policy.volume()) {
            policy.judge_volume(store::volume(&mut *self.app().acquire().await?, org, user).await?)?;
        }
        Ok(if is_recording(row) { Inspection::of_recording(&head) } else { Inspection::of(&row.file_name, &head) })
    }

    /// Turns a slot into a stored file with its first status, and queues it when it can be read.
    /// The caller's transaction holds the file's lock.
    pub(crate) async fn settle_upload(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        row: &store::FileRow,
        found: &Inspection,
    ) -> Result<(), Problem> {
        let now = self.clock().now();
        let (status, code, error) = match &found.refusal {
            None => (IndexStatus::Queued, None, None),
            Some((code, error)) => (IndexStatus::Unsupported, Some(*code), Some(error.as_str())),
        };
        let registration = store::Registration { status, error, error_code: code, image: found.image, now };
        if store::register(conn, org, row.id, &registration).await? && status == IndexStatus::Queued {
            indexing::enqueue_index(conn, org, row.id).await?;
        }
        Ok(())
    }

    /// Checks the caller's chat uploads and takes in those whose bytes have arrived, so that they
    /// are being read while the message is still written.
    ///
    /// # Errors
    /// `ATTACHMENT_NOT_OWNED` for anything but the caller's own chat upload; what
    /// [`Knowledge::create_upload`] promised and the bytes do not keep.
    pub async fn prepare_attachments(&self, caller: &Caller, ids: &[FileId]) -> Result<Vec<Attachment>, Problem> {
        caller.require(Capability::ChatUse)?;
        let mut attachments = Vec::with_capacity(ids.len());
        for id in ids {
            let row = self
                .own_upload(caller, *id)
                .await
                .map_err(|problem| if problem.code == Code::FileNotFound { not_owned() } else { problem })?;
            attachments.push(self.take_in(caller, row).await?);
        }
        Ok(attachments)
    }

    /// One of the caller's chat uploads. Looking at one whose bytes have arrived takes it in.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for anything but the caller's own chat upload.
    pub async fn attachment(&self, caller: &Caller, id: FileId) -> Result<Attachment, Problem> {
        let row = self.own_upload(caller, id).await?;
        if row.purpose != Purpose::Chat {
            return Err(file_not_found());
        }
        let waiting = row.clone();
        match self.take_in(caller, row).await {
            Ok(attachment) => Ok(attachment),
            Err(problem) if problem.code == Code::FileNotFound => Ok(attachment_of(&waiting)),
            Err(problem) => Err(problem),
        }
    }

    /// A stretch of the text of one of the caller's chat uploads; of a recording, its transcript
    /// (CHT-51).
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for anything but the caller's own chat upload with a text.
    pub async fn attachment_text(
        &self,
        caller: &Caller,
        id: FileId,
        offset: u64,
        limit: u64,
    ) -> Result<TextPart, Problem> {
        let row = self.own_upload(caller, id).await?;
        let total = row
            .text_length
            .and_then(|length| u64::try_from(length).ok())
            .filter(|_| row.purpose == Purpose::Chat && row.state == "stored" && row.searchable)
            .ok_or_else(file_not_found)?;
        let limit = limit.clamp(1, MAX_TEXT_CHARS);
        let mut conn = self.corpus_of(caller.org).await?.acquire().await?;
        let text =
            assembled(&mut conn, caller.org, id, offset.min(total), limit.min(total.saturating_sub(offset))).await?;
        Ok(part_of(text, offset, limit, total))
    }

    async fn take_in(&self, caller: &Caller, row: store::FileRow) -> Result<Attachment, Problem> {
        if row.purpose != Purpose::Chat {
            return Err(not_owned());
        }
        if row.state != "slot" {
            return Ok(attachment_of(&row));
        }
        let found = self.inspect(caller.org, &row).await?;
        let mut tx = self.app().begin().await?;
        let locked = store::lock(&mut tx, caller.org, row.id).await?.ok_or_else(file_not_found)?;
        if locked.state == "slot" {
            self.settle_upload(&mut tx, caller.org, &locked, &found).await?;
        }
        let row = store::get(&mut tx, caller.org, row.id).await?.ok_or_else(file_not_found)?;
        tx.commit().await?;
        Ok(attachment_of(&row))
    }

    /// Gives prepared uploads to a chat, in the transaction that stores its message (FILE-2).
    ///
    /// # Errors
    /// `ATTACHMENT_NOT_OWNED` when one is not the caller's or another chat holds it.
    pub async fn hold_attachments(
        conn: &mut PgConnection,
        caller: &Caller,
        thread: ThreadId,
        ids: &[FileId],
    ) -> Result<(), Problem> {
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let held = store::hold_by_thread(conn, caller.org, thread, caller.user, &distinct).await?;
        if usize::try_from(held).ok() == Some(distinct.len()) { Ok(()) } else { Err(not_owned()) }
    }

    /// Dooms the uploads of a chat that is purged, in the transaction that purges it. The next
    /// sweep removes their passages, bytes and rows.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn release_thread(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> Result<(), Problem> {
        store::doom_of_thread(conn, org, thread).await?;
        Ok(())
    }

    /// A file that the caller may read: their own upload, or one that a document of the library
    /// holds (FILE-2).
    pub(crate) async fn readable(&self, caller: &Caller, id: FileId) -> Result<store::FileRow, Problem> {
        let mut conn = self.app().acquire().await?;
        let row = store::get(&mut conn, caller.org, id)
            .await?
            .filter(|row| row.state == "stored")
            .ok_or_else(file_not_found)?;
        let own = row.uploaded_by.is_some() && row.uploaded_by == caller.user;
        let readable = own
            || (caller.can(Capability::KnowledgeRead)
                && documents::holding(&mut conn, caller.org, id).await?.is_some_and(|(_, active, _)| active));
        let inside = BlobKey::parse(&row.storage_key).is_ok_and(|key| key.belongs_to(&caller.org_slug));
        if readable && inside { Ok(row) } else { Err(file_not_found()) }
    }

    /// What is known about a file's bytes without reading them.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for a file the caller may not read.
    pub async fn file_about(&self, caller: &Caller, id: FileId) -> Result<ContentAbout, Problem> {
        let row = self.readable(caller, id).await?;
        Ok(ContentAbout {
            size: u64::try_from(row.size).unwrap_or_default(),
            tag: row.id.to_string(),
            modified: row.created_at,
        })
    }

    /// The bytes of a file, or a stretch of them.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for a file the caller may not read; the object store's trouble.
    pub async fn open_file(
        &self,
        caller: &Caller,
        id: FileId,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<Content, Problem> {
        let row = self.readable(caller, id).await?;
        let size = u64::try_from(row.size).unwrap_or_default();
        let range = range.unwrap_or(0..size);
        let length = range.end.saturating_sub(range.start);
        let key = BlobKey::parse(&row.storage_key).map_err(Problem::internal)?;
        let bytes = if length == 0 {
            futures::stream::empty().boxed()
        } else {
            self.blobs().get(&key, Some(range)).await?.bytes
        };
        Ok(Content {
            file_name: row.file_name,
            mime_type: row.content_type,
            size,
            tag: row.id.to_string(),
            modified: row.created_at,
            length,
            bytes,
        })
    }

    /// The whole bytes of a file of `org`, for a turn that shows an image to a model. The caller
    /// has checked that the turn may see it.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND`; `FILE_TOO_LARGE` above `limit` bytes; the object store's trouble.
    pub async fn file_bytes(&self, org: OrgId, id: FileId, limit: u64) -> Result<bytes::Bytes, Problem> {
        let mut conn = self.app().acquire().await?;
        let row = store::get(&mut conn, org, id).await?.ok_or_else(file_not_found)?;
        drop(conn);
        let key = BlobKey::parse(&row.storage_key).map_err(Problem::internal)?;
        match self.blobs().get_bytes(&key, limit).await {
            Err(tale_blobs::BlobError::TooLarge { limit }) => Err(Problem::new(
                Code::FileTooLarge,
                format!("The file is larger than the {limit} bytes that can be shown to a model."),
            )),
            other => Ok(other?),
        }
    }
}

/// What the beginning of the stored bytes says.
pub(crate) struct Inspection {
    /// Code and sentence when the file cannot be indexed.
    pub(crate) refusal: Option<(&'static str, String)>,
    pub(crate) image: Option<(i32, i32)>,
}

impl Inspection {
    /// Only the transcription model can say what is wrong with a recording.
    fn of_recording(head: &[u8]) -> Self {
        let refusal = head.is_empty().then(|| ("empty", "This recording is empty.".to_owned()));
        Self { refusal, image: None }
    }

    fn of(file_name: &str, head: &[u8]) -> Self {
        let class = tale_extract::classify(file_name);
        let image = matches!(class, Class::Image)
            .then(|| file_type::image_size(head))
            .flatten()
            .filter(|_| file_type::is_viewable_image(head));
        let judged = class.into_kind(file_name).and_then(|kind| tale_extract::check_head(kind, head));
        Self { refusal: judged.err().map(|error| (error.code.as_str(), error.message)), image }
    }
}

/// A file as a policy judges it.
fn judged<'a>(file_name: &'a str, content_type: &'a str, size: u64) -> Upload<'a> {
    let extension = file_name.rsplit_once('.').map_or("", |(_, ending)| ending);
    Upload { extension, content_type, size }
}

/// Whether a file is a recording whose text is a transcript: in chats only.
fn is_recording(row: &store::FileRow) -> bool {
    row.purpose == Purpose::Chat && recording_type(&row.file_name).is_some()
}

pub(crate) fn attachment_of(row: &store::FileRow) -> Attachment {
    let image = row.image_width.is_some() && row.image_height.is_some();
    let state = match (row.state.as_str(), row.index_status) {
        ("slot", _) => AttachmentState::Processing,
        _ if image || row.searchable => AttachmentState::Ready,
        (_, IndexStatus::Failed | IndexStatus::Unsupported) => AttachmentState::Failed,
        (_, IndexStatus::Completed) => AttachmentState::Ready,
        _ => AttachmentState::Processing,
    };
    Attachment {
        file_id: row.id,
        name: row.file_name.clone(),
        media_type: row.content_type.clone(),
        size: u64::try_from(row.size).unwrap_or_default(),
        state,
        error: row.index_error.clone().filter(|_| state == AttachmentState::Failed),
        can_retry: state == AttachmentState::Failed && row.index_status == IndexStatus::Failed,
        image,
        recording: is_recording(row),
        text_length: row.text_length.and_then(|length| u64::try_from(length).ok()),
        thread: row.thread_id,
    }
}
