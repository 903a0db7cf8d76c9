//! Names a chat after its first exchange (CHT-178 … CHT-180).

use futures::StreamExt;
use tale_core::limits::MAX_TITLE_CHARS;
use tale_db::hints::{self, Hint, Topic};
use tale_models::ledger::source;
use tale_models::wire::{ChatMessage, ChatRequest, ModelError, StreamEvent, ToolChoice};

use super::charge::Meter;
use super::live::LiveTurn;
use super::run::TurnPlan;
use crate::service::Inner;
use crate::store::threads;

/// Characters of the question that the model sees.
const QUESTION_CHARS: usize = 2_000;

/// Characters of a title that is cut from the question itself.
const CUT_TITLE_CHARS: usize = 60;

/// Asks the turn's model for a title; when that fails twice, or the model is the demo, the
/// beginning of the question is the title. Never fails the turn.
pub(crate) async fn generate(chat: &Inner, turn: &LiveTurn, plan: &TurnPlan) {
    let question = match super::history::first_question(chat, turn.org, turn.thread).await {
        Ok(Some(question)) => question,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(thread = %turn.thread, %error, "no title: the question could not be read");
            return;
        }
    };
    let mut title = None;
    if !plan.model.demo {
        for _ in 0..2 {
            title = ask(chat, plan, &question).await;
            if title.is_some() || chat.titles.is_cancelled() {
                break;
            }
        }
    }
    let Some(title) = title.or_else(|| tidy(&question, CUT_TITLE_CHARS)) else { return };
    let stored: sqlx::Result<()> = async {
        let mut tx = chat.db.begin().await?;
        if threads::set_generated_title(&mut tx, turn.org, turn.thread, &title).await? {
            for topic in [Topic::Thread, Topic::Threads] {
                hints::notify(&mut tx, &Hint { org: turn.org, topic, id: Some(turn.thread.0), user: Some(plan.user) })
                    .await?;
            }
        }
        tx.commit().await
    }
    .await;
    if let Err(error) = stored {
        tracing::warn!(thread = %turn.thread, %error, "the title could not be stored");
    }
}

/// Text of a model after which its answer is cut.
const MAX_ANSWER_BYTES: usize = 4_096;

async fn ask(chat: &Inner, plan: &TurnPlan, question: &str) -> Option<String> {
    let meter = Meter::new(chat.models.ledger(), &plan.caller, plan.user, &plan.model, source::TITLE);
    let request = ChatRequest {
        system: "Name the conversation that begins with the following message, in its language, in at most six words. \
                 Answer with the name alone: no quotes, no full stop, no explanation. Do not answer the message."
            .to_owned(),
        messages: vec![ChatMessage::user(super::tools::clip(question, QUESTION_CHARS))],
        tools: Vec::new(),
        tool_choice: ToolChoice::None,
        // Room for a model that thinks before it answers.
        max_output_tokens: Some(if plan.model.capabilities.reasoning { 2_048 } else { 64 }),
        effort: None,
    };
    let mut round = meter.whole(&request).await?;
    let mut text = String::new();
    let mut cut = false;
    let answered = async {
        let mut stream = chat.models.stream(&plan.model, request, chat.titles.child_token()).await?;
        while let Some(event) = stream.next().await {
            match event? {
                StreamEvent::Text(piece) => {
                    round.delivered(&piece);
                    text.push_str(&piece);
                    // A model that does not stop has said enough; dropping the stream ends it.
                    if text.len() > MAX_ANSWER_BYTES {
                        cut = true;
                        break;
                    }
                }
                StreamEvent::Reasoning(piece) => round.delivered(&piece),
                StreamEvent::Usage(usage) => round.counted(usage),
                _ => {}
            }
        }
        Ok::<(), ModelError>(())
    }
    .await;
    let cancelled = chat.titles.is_cancelled();
    round.end(answered.as_ref().err(), cut || cancelled).await;
    match answered {
        Ok(()) => tidy(&text, MAX_TITLE_CHARS),
        Err(error) => {
            if !cancelled {
                tracing::warn!(code = error.code.text(), "a title could not be generated");
            }
            None
        }
    }
}

/// One line without quotes, cut at a word boundary; nothing when nothing is left.
pub(crate) fn tidy(text: &str, limit: usize) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line =
        line.trim_start_matches(['#', '>', '*', '-', ' ']).trim_matches(['"', '\'', '“', '”', '„', '«', '»', '*', ' ']);
    let words: Vec<&str> = line.split_whitespace().collect();
    let whole = words.join(" ");
    if whole.is_empty() {
        return None;
    }
    if whole.chars().count() <= limit {
        return Some(whole);
    }
    let mut cut = String::new();
    for word in words {
        if cut.chars().count() + word.chars().count() + 2 > limit {
            break;
        }
        if !cut.is_empty() {
            cut.push(' ');
        }
        cut.push_str(word);
    }
    if cut.is_empty() {
        cut = whole.chars().take(limit - 1).collect();
    }
    cut.push('…');
    Some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(tidy("\n# \"Travel  costs\"\nmore", 120).as_deref(), Some("Travel costs"));
        assert_eq!(tidy("one two three four", 10).as_deref(), Some("one two…"));
        assert_eq!(tidy(&"x".repeat(200), 10).map(|t| t.chars().count()), Some(10));
        assert_eq!(tidy("  \n ", 10), None);
    }
}
