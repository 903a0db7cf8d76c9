//! A chat as a Markdown file (CHT-164).

use tale_core::Problem;
use tale_core::ids::{MessageId, ThreadId};

use crate::message::Message;
use crate::parts::Part;
use crate::service::{Chat, Owner};

impl Chat {
    /// The chosen messages of the version on screen as Markdown; all when none are named.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn export_markdown(&self, owner: &Owner, id: ThreadId, only: &[MessageId]) -> Result<String, Problem> {
        let thread = self.thread(owner, id).await?;
        let messages = self.messages(owner, id).await?;
        let chosen = messages.iter().filter(|message| only.is_empty() || only.contains(&message.id));
        Ok(render(thread.title.as_deref().unwrap_or("Chat"), chosen))
    }
}

fn render<'a>(title: &str, messages: impl Iterator<Item = &'a Message>) -> String {
    let mut out = format!("# {}\n", title.replace('\n', " "));
    for message in messages {
        let speaker = if message.role == "user" { "You" } else { "Assistant" };
        out.push_str(&format!("\n## {speaker} · {}\n\n", message.created_at.format("%Y-%m-%d %H:%M UTC")));
        for part in &message.parts {
            match part {
                Part::Text { text } => {
                    out.push_str(text.trim_end());
                    out.push_str("\n\n");
                }
                Part::Attachment { name, .. } => out.push_str(&format!("*Attached: {}*\n\n", name.replace('*', "\\*"))),
                _ => {}
            }
        }
        let sources: Vec<String> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Citation { number, title, page, .. } => Some(match page {
                    Some(page) => format!("{number}. {title}, page {page}"),
                    None => format!("{number}. {title}"),
                }),
                _ => None,
            })
            .collect();
        if !sources.is_empty() {
            out.push_str("Sources:\n\n");
            out.push_str(&sources.join("\n"));
            out.push_str("\n\n");
        }
    }
    out.trim_end().to_owned() + "\n"
}
