//! What is judged about a message before anything is written (CHT-65), for a send and for a parked
//! one alike.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tale_core::ids::FileId;
use tale_core::limits::MAX_MESSAGE_CHARS;
use tale_core::{Code, Problem};
use tale_knowledge::files::Attachment;
use tale_models::ResolvedModel;
use tale_models::auto::AutoInput;
use tale_models::wire::Effort;

use crate::send::{MAX_BATCH_BYTES, MAX_WAITING_ATTACHMENTS, ModelChoice, SendRequest, SendTo};
use crate::service::{Chat, Inner, Owner};
use crate::store::threads;
use crate::thread::not_found;

/// A request whose content, files and model were judged.
pub(crate) struct Checked {
    pub content: String,
    pub files: Vec<Attachment>,
    pub model: ResolvedModel,
}

impl Chat {
    /// The checks of CHT-65 that need no lock. `most` is how many files may be attached.
    pub(crate) async fn check(
        &self,
        owner: &Owner,
        to: SendTo,
        request: &SendRequest,
        most: usize,
    ) -> Result<Checked, Problem> {
        let inner = &self.0;
        if inner.draining.load(Ordering::SeqCst) {
            return Err(Problem::new(Code::Draining, "The server is restarting. Send the message again in a moment.")
                .retry_after(Duration::from_secs(3)));
        }
        let open = open_thread(inner, owner, to);
        let judged = async {
            let content = checked_content(request)?;
            let files = checked_attachments(inner, owner, &request.attachments, most).await?;
            let model = choose(inner, owner, request, &content, &files).await?;
            checked_output(&model, request.max_output_tokens)?;
            Ok::<_, Problem>(Checked { content, files, model })
        };
        if request.attachments.is_empty() {
            // Nothing of this writes, so both are asked for at once and judged in their order.
            let (open, judged) = tokio::join!(open, judged);
            open?;
            judged
        } else {
            open.await?;
            judged.await
        }
    }
}

/// Whether the chat is there and can be written in.
async fn open_thread(inner: &Inner, owner: &Owner, to: SendTo) -> Result<(), Problem> {
    let SendTo::Thread(id) = to else { return Ok(()) };
    let mut conn = inner.db.acquire().await?;
    let thread = threads::find(&mut conn, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
    writable(thread.archived_at.is_some())
}

pub(crate) fn writable(archived: bool) -> Result<(), Problem> {
    if archived {
        return Err(Problem::new(
            Code::ChatThreadArchived,
            "This chat is archived. Bring it back before you write in it.",
        ));
    }
    Ok(())
}

/// The trimmed text. Whitespace and invisible format characters alone are blank (RES-31).
fn checked_content(request: &SendRequest) -> Result<String, Problem> {
    let invisible = |c: char| {
        c.is_whitespace()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
    };
    let content = request.content.trim();
    if content.chars().all(invisible) {
        if request.attachments.is_empty() {
            return Err(Problem::invalid_field("content", "must not be blank"));
        }
        return Ok(String::new());
    }
    if content.chars().count() > MAX_MESSAGE_CHARS {
        return Err(Problem::invalid_field("content", &format!("must be at most {MAX_MESSAGE_CHARS} characters")));
    }
    Ok(content.to_owned())
}

/// The attachments: not too many, the sender's own or already in this chat (CHT-52).
async fn checked_attachments(
    inner: &Inner,
    owner: &Owner,
    files: &[FileId],
    most: usize,
) -> Result<Vec<Attachment>, Problem> {
    if files.len() > most {
        return Err(Problem::invalid_field("attachments", &format!("must have at most {most} entries")));
    }
    let mut distinct = BTreeMap::new();
    for file in files {
        if distinct.insert(*file, ()).is_some() {
            return Err(Problem::invalid_field("attachments", "must not name a file twice"));
        }
    }
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let attachments = inner.knowledge.prepare_attachments(&owner.caller, files).await?;
    if attachments.iter().map(|file| file.size).sum::<u64>() > MAX_BATCH_BYTES {
        return Err(Problem::new(
            Code::FileTooLarge,
            "The attached files are larger than 200 MiB together. Send them in several messages.",
        ));
    }
    Ok(attachments)
}

/// The model that answers, bound to the turn from here on (CHT-37).
async fn choose(
    inner: &Inner,
    owner: &Owner,
    request: &SendRequest,
    content: &str,
    files: &[Attachment],
) -> Result<ResolvedModel, Problem> {
    let rules = inner.models.rules(owner.org, owner.caller.person()).await?;
    match &request.model {
        ModelChoice::Named { model, provider } => {
            inner.models.resolve_chat(owner.org, &rules, model, provider.as_deref()).await
        }
        ModelChoice::Auto => {
            let input =
                AutoInput::of(content, files.iter().any(|file| file.image), files.iter().any(|file| !file.image));
            inner.models.resolve_auto(owner.org, &rules, &input).await
        }
    }
}

/// More attachments than a parked message may carry.
pub(crate) fn too_many() -> Problem {
    Problem::new(
        Code::TooManyAttachments,
        format!(
            "A message that waits can carry at most {MAX_WAITING_ATTACHMENTS} files. Send them in several messages."
        ),
    )
    .with_data(serde_json::json!({ "limit": MAX_WAITING_ATTACHMENTS }))
}

fn checked_output(model: &ResolvedModel, wanted: Option<u32>) -> Result<(), Problem> {
    match (wanted, model.max_output_tokens) {
        (Some(0), _) => Err(Problem::invalid_field("maxOutputTokens", "must be at least 1")),
        (Some(wanted), Some(ceiling)) if wanted > ceiling => Err(Problem::invalid_field(
            "maxOutputTokens",
            &format!("must be at most {ceiling}, the ceiling of {}", model.model_id),
        )),
        _ => Ok(()),
    }
}

/// The stored word of an effort.
pub(crate) fn effort_text(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Extra => "extra",
        Effort::Max => "max",
    }
}

/// The effort of a stored word.
pub(crate) fn effort_of(word: &str) -> Result<Effort, Problem> {
    Ok(match word {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "extra" => Effort::Extra,
        "max" => Effort::Max,
        other => return Err(Problem::internal(format!("an effort named {other}"))),
    })
}
