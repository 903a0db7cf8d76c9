//! Loads the conversation that a turn continues: stored messages and what is attached to them.

use tale_core::Problem;
use tale_core::ids::{FileId, OrgId, ThreadId, UserId};
use tale_identity::Caller;
use tale_knowledge::files::AttachmentState;
use tale_knowledge::reach::Reach;
use tale_models::wire::{ChatMessage, UserPart};

use super::context::{Block, assistant_messages, is_reply};
use super::prompt::untrusted;
use crate::parts::Part;
use crate::service::Inner;
use crate::store::messages::MessageRow;
use crate::store::{deferred, messages, threads};

/// An attached text up to this many characters goes into the conversation whole; of a longer one
/// the model reads the name and fetches what it needs (FILE-10).
const INLINE_CHARS: u64 = 24_000;

/// Largest image handed to a vision model, in bytes.
const MAX_IMAGE_BYTES: u64 = 20 << 20;

/// For whom a conversation is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub caller: &'a Caller,
    pub user: UserId,
    /// Whether the model sees images.
    pub vision: bool,
    /// Whether they are read. Without their bytes a conversation can be measured, not sent.
    pub pixels: bool,
}

/// The conversation that the reply continues, oldest first, one block per message: those before the
/// question, and the question.
pub(crate) async fn load(
    chat: &Inner,
    reader: Reader<'_>,
    before: Vec<MessageRow>,
    question: &[Part],
) -> Result<Vec<Block>, Problem> {
    let attached = before.iter().flat_map(|row| &row.parts.0).chain(question).filter_map(|part| match part {
        Part::Attachment { file_id, .. } => Some(*file_id),
        _ => None,
    });
    let reach = Reach::chat(reader.caller.org, Some(reader.user), attached);
    let mut blocks = Vec::with_capacity(before.len() + 1);
    for row in &before {
        if is_reply(row) {
            let messages = assistant_messages(&row.parts.0, false);
            if !messages.is_empty() {
                blocks.push(Block::new(messages));
            }
        } else {
            blocks.push(Block::new(vec![ChatMessage::User(user_parts(chat, &reach, reader, &row.parts.0).await?)]));
        }
    }
    blocks.push(Block::new(vec![ChatMessage::User(user_parts(chat, &reach, reader, question).await?)]));
    Ok(blocks)
}

/// What a person said and attached.
async fn user_parts(chat: &Inner, reach: &Reach, reader: Reader<'_>, parts: &[Part]) -> Result<Vec<UserPart>, Problem> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => out.push(UserPart::Text(text.clone())),
            Part::Attachment { name, media_type, file_id, size_bytes } => {
                out.push(attachment(chat, reach, reader, name, media_type, *file_id, *size_bytes).await?);
            }
            _ => {}
        }
    }
    Ok(out)
}

async fn attachment(
    chat: &Inner,
    reach: &Reach,
    reader: Reader<'_>,
    name: &str,
    media_type: &str,
    file: FileId,
    size: u64,
) -> Result<UserPart, Problem> {
    if media_type.starts_with("image/") {
        if reader.vision && size <= MAX_IMAGE_BYTES {
            let bytes = if reader.pixels {
                chat.knowledge.file_bytes(reach.org(), file, MAX_IMAGE_BYTES).await?
            } else {
                Default::default()
            };
            return Ok(UserPart::Image { media_type: media_type.to_owned(), bytes });
        }
        return Ok(UserPart::Text(format!("[Attached image `{name}`: it cannot be shown to this model.]")));
    }
    // The message itself was not accepted before its files were read; those of older messages may be
    // read anew just now.
    let found = chat.knowledge.attachment(reader.caller, file).await?;
    let note = match (found.state, found.text_length) {
        (AttachmentState::Ready, Some(length)) if length <= INLINE_CHARS => {
            let fetched = chat.knowledge.fetch_text(reach, file, 0, INLINE_CHARS).await?;
            let what = if found.recording { "Transcript of the attached recording" } else { "Attached file" };
            return Ok(UserPart::Text(format!("[{what} `{name}`]\n{}", untrusted(name, &fetched.text))));
        }
        (AttachmentState::Ready, Some(length)) if found.recording => {
            format!(
                "[Attached recording `{name}`, ref {file}, a transcript of {length} characters. Read it with rag_fetch or search it with rag_search.]"
            )
        }
        (AttachmentState::Failed, _) if found.recording => {
            format!("[Attached recording `{name}`: it could not be transcribed. Say so if it matters.]")
        }
        (AttachmentState::Ready, Some(length)) => {
            format!(
                "[Attached file `{name}`, ref {file}, {length} characters. Read it with rag_fetch or search it with rag_search.]"
            )
        }
        (AttachmentState::Processing, _) => {
            format!("[Attached file `{name}`, ref {file}: it is still being read and cannot be searched yet.]")
        }
        (AttachmentState::Failed, _) | (AttachmentState::Ready, None) => {
            format!("[Attached file `{name}`: its text cannot be read. Say so if it matters.]")
        }
    };
    Ok(UserPart::Text(note))
}

/// The text of the first message of a chat.
pub(crate) async fn first_question(chat: &Inner, org: OrgId, thread: ThreadId) -> sqlx::Result<Option<String>> {
    let mut conn = chat.db.acquire().await?;
    let Some((first, _)) = messages::user_messages(&mut conn, org, thread).await?.into_iter().next() else {
        return Ok(None);
    };
    let row = messages::find(&mut conn, org, thread, first).await?;
    Ok(row.and_then(|row| {
        let words = row.parts.0.iter().find_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            _ => None,
        });
        // A message of files alone is named after them.
        words.or_else(|| Some(crate::parts::readable(&row.parts.0))).filter(|text| !text.trim().is_empty())
    }))
}

/// The chat and the chats it was forked from.
pub(crate) async fn lineage(chat: &Inner, org: OrgId, thread: ThreadId) -> Vec<ThreadId> {
    let found: sqlx::Result<Vec<ThreadId>> = async {
        let mut conn = chat.db.acquire().await?;
        threads::lineage(&mut conn, org, thread).await
    }
    .await;
    found.unwrap_or_else(|error| {
        tracing::warn!(%thread, %error, "the lineage of a chat could not be read");
        vec![thread]
    })
}

/// What a turn of this chat may search: the library and what was sent with messages of the chat and of
/// those it was forked from. Files of a message that waits are nobody's until it is sent (CHT-54).
pub(crate) async fn reach(chat: &Inner, org: OrgId, thread: ThreadId, user: UserId) -> Reach {
    let uploads = async {
        let lineage = lineage(chat, org, thread).await;
        // First what is held, then what of it waits: a message that is parked in between is in neither.
        let mut held = chat.knowledge.searcher().uploads_of(org, &lineage).await?;
        if !held.is_empty() {
            let mut conn = chat.db.acquire().await?;
            let parked = deferred::parked_files(&mut conn, org, &lineage).await?;
            held.retain(|file| !parked.contains(file));
        }
        Ok::<_, Problem>(held)
    };
    match uploads.await {
        Ok(uploads) => Reach::chat(org, Some(user), uploads),
        Err(error) => {
            tracing::warn!(%thread, %error, "the uploads of a chat could not be looked up");
            Reach::library(org, Some(user))
        }
    }
}
