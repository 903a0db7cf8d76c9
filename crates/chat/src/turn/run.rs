//! The tool loop of one turn (CHT-71 … CHT-79).

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tale_core::Problem;
use tale_core::ids::UserId;
use tale_identity::Caller;
use tale_models::ResolvedModel;
use tale_models::ledger::{Hold, source};
use tale_models::wire::{
    ChatRequest, Effort, FinishReason, ModelError, ModelErrorCode, StreamEvent, ToolCall, ToolChoice,
};

use super::charge::{Meter, Round};
use super::citations::Citations;
use super::context::{Block, assistant_messages, estimate_tokens, fit, fitting, tool_tokens};
use super::history;
use super::live::{DeltaKind, LiveTurn};
use super::prompt::{PromptFacts, system};
use super::settle::Ending;
use super::tools::{Outcome, Toolbox, input_of, specs};
use crate::parts::{Part, Status, TurnUsage};
use crate::service::Inner;
use crate::store::messages::MessageRow;

/// Model calls per turn; the last one runs without tools (CHT-74).
const MAX_ROUNDS: usize = 5;

/// Tokens kept free for the answer when the model's own ceiling is unknown.
const DEFAULT_OUTPUT_RESERVE: usize = 4_096;

/// Everything a turn needs to know.
pub(crate) struct TurnPlan {
    pub caller: Caller,
    pub user: UserId,
    pub model: ResolvedModel,
    pub effort: Option<Effort>,
    pub max_output_tokens: Option<u32>,
    pub locale: String,
    /// Asks for a title afterwards.
    pub untitled: bool,
}

/// What a turn needs to begin and drops once the model is asked.
pub(crate) struct Opening {
    /// The messages before the question, oldest first.
    pub before: Result<Vec<MessageRow>, Problem>,
    /// The question.
    pub question: Vec<Part>,
    /// The person's own instructions.
    pub personal: Option<String>,
    /// The room that was held when the turn was accepted, where something limits it.
    pub held: Option<Hold>,
}

/// Runs a turn to its end and stores it.
async fn run(chat: Arc<Inner>, turn: Arc<LiveTurn>, plan: TurnPlan, opening: Box<Opening>) {
    let started = std::time::Instant::now();
    let mut book = Book::default();
    let mut ending = match admitted(&chat, &turn).await {
        Some(_slot) => answer(&chat, &turn, &plan, opening, &mut book).await,
        None => Ending::cancelled(),
    };
    if ending.status == Status::Cancelled && chat.stop.is_cancelled() {
        ending = Ending::interrupted();
    }
    tracing::info!(
        event = "turn.ended", thread = %turn.thread, message = %turn.message, model = %plan.model.model_id, provider = %plan.model.provider_slug,
        rounds = book.rounds, status = ending.status.text(), finish = ending.finish_reason.unwrap_or_default(),
        ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX), "turn ended"
    );
    let answered = ending.status == Status::Complete;
    Box::pin(super::settle::settle(&chat, &turn, plan.user, ending, &book)).await;
    if answered && plan.untitled {
        Box::pin(super::title::generate(&chat, &turn, &plan)).await;
    }
}

/// [`run`], with a panic turned into a failed reply: nothing may leave a turn without an end.
pub(crate) async fn guarded(chat: Arc<Inner>, turn: Arc<LiveTurn>, plan: TurnPlan, opening: Box<Opening>) {
    let user = plan.user;
    let running = AssertUnwindSafe(run(chat.clone(), turn.clone(), plan, opening)).catch_unwind();
    if running.await.is_err() {
        tracing::error!(event = "turn.panicked", message = %turn.message, "a turn panicked");
        let ending = Ending::failed(
            ModelErrorCode::Generic,
            "The reply could not be finished because of a fault on our side.".to_owned(),
        );
        Box::pin(super::settle::settle(&chat, &turn, user, ending, &Book::default())).await;
    }
}

/// What a turn collects besides its parts.
#[derive(Default)]
pub(crate) struct Book {
    pub citations: Mutex<Citations>,
    pub usage: Option<TurnUsage>,
    pub dropped: usize,
    pub rounds: usize,
    /// Whether the model has said anything yet.
    pub heard: bool,
    pub tools: Vec<(String, Option<String>)>,
}

/// Waits for a slot; nothing when the person stopped the turn first.
async fn admitted<'a>(chat: &'a Inner, turn: &LiveTurn) -> Option<tokio::sync::SemaphorePermit<'a>> {
    tokio::select! {
        () = turn.cancel.cancelled() => None,
        slot = chat.slots.acquire() => slot.ok(),
    }
}

async fn answer(chat: &Inner, turn: &Arc<LiveTurn>, plan: &TurnPlan, opening: Box<Opening>, book: &mut Book) -> Ending {
    let Opening { before, question, personal, mut held } = *opening;
    let meter = Meter::new(chat.models.ledger(), &plan.caller, plan.user, &plan.model, source::CHAT);
    // What is only needed for a moment lives in boxes: a turn keeps its largest state for as long as
    // it streams.
    let vision = plan.model.capabilities.vision;
    let reader = history::Reader { caller: &plan.caller, user: plan.user, vision, pixels: true };
    let read = Box::pin(async { history::load(chat, reader, before?, &question).await });
    let read = tokio::select! {
        () = turn.cancel.cancelled() => return Ending::cancelled(),
        read = read => read,
    };
    let mut history = match read {
        Ok(read) => read,
        Err(problem) => return Ending::failed(ModelErrorCode::Generic, problem.message.into_owned()),
    };
    let tools = plan.model.capabilities.tools;
    let system =
        system(&PromptFacts { personal: personal.as_deref(), locale: &plan.locale, now: chat.clock.now(), tools });
    let budget = window_for_history(&plan.model, plan.max_output_tokens, &system);
    turn.start(chat.clock.now());
    let mut remaining = plan.max_output_tokens;
    for round in 0..MAX_ROUNDS {
        book.rounds = round + 1;
        let last = round + 1 == MAX_ROUNDS;
        // Without tools this round is the only one.
        let mut blocks = if tools { history.clone() } else { std::mem::take(&mut history) };
        blocks.push(Block::new(assistant_messages(&turn.parts(), true)));
        let (messages, dropped) = fit(blocks, budget);
        book.dropped = dropped;
        let mut request = ChatRequest {
            system: system.clone(),
            messages,
            tools: if tools { specs().to_vec() } else { Vec::new() },
            tool_choice: if last { ToolChoice::None } else { ToolChoice::Auto },
            max_output_tokens: remaining,
            effort: plan.effort,
        };
        let room = tokio::select! {
            () = turn.cancel.cancelled() => return Ending::cancelled(),
            room = meter.round(held.take(), &mut request) => room,
        };
        let metered = match room {
            Ok(metered) => metered,
            Err(ending) => return ending,
        };
        let spoken = match speak(chat, turn, plan, request, metered, book).await {
            Ok(spoken) => spoken,
            Err(ending) => return ending,
        };
        if let (Some(left), Some(usage)) = (remaining, spoken.output_tokens) {
            remaining = Some(left.saturating_sub(u32::try_from(usage).unwrap_or(u32::MAX)).max(1));
        }
        if spoken.calls.is_empty() || last {
            let silent = !spoken.spoke;
            return Ending::complete(finish_text(spoken.finish), last && silent && round > 0);
        }
        if let Some(ending) = Box::pin(call_tools(chat, turn, plan, spoken, book)).await {
            return ending;
        }
    }
    Ending::complete("other", true)
}

/// Estimated tokens of the first prompt of a turn that would continue `before`; counted as the turn will count.
pub(crate) async fn first_prompt(
    chat: &Inner,
    reader: history::Reader<'_>,
    model: &ResolvedModel,
    max_output_tokens: Option<u32>,
    facts: &PromptFacts<'_>,
    before: Vec<MessageRow>,
    question: &[Part],
) -> Result<usize, Problem> {
    let system = system(facts);
    let blocks = history::load(chat, reader, before, question).await?;
    let tools = if model.capabilities.tools { tool_tokens(specs()) } else { 0 };
    let said = fitting(&blocks, window_for_history(model, max_output_tokens, &system));
    Ok(estimate_tokens(&system) + tools + said)
}

/// Tokens for the history: the window without the system text, the tools and the answer's reserve.
fn window_for_history(model: &ResolvedModel, max_output_tokens: Option<u32>, system: &str) -> usize {
    let window = usize::try_from(model.context_window).unwrap_or(usize::MAX);
    let reserve =
        max_output_tokens.or(model.max_output_tokens).map_or(DEFAULT_OUTPUT_RESERVE, |tokens| tokens as usize);
    // A ceiling as large as the window must not leave the history without room.
    let reserve = reserve.min(window / 2);
    let tools = if model.capabilities.tools { tool_tokens(specs()) } else { 0 };
    window.saturating_sub(reserve).saturating_sub(estimate_tokens(system)).saturating_sub(tools)
}

/// What one model call said.
struct Spoken {
    calls: Vec<ToolCall>,
    finish: FinishReason,
    spoke: bool,
    output_tokens: Option<u64>,
}

/// One model call, streamed into the live turn.
async fn speak(
    chat: &Inner,
    turn: &LiveTurn,
    plan: &TurnPlan,
    request: ChatRequest,
    mut metered: Round,
    book: &mut Book,
) -> Result<Spoken, Ending> {
    turn.begin_round();
    let mut spoken = Spoken { calls: Vec::new(), finish: FinishReason::Other, spoke: false, output_tokens: None };
    let mut usage = None;
    let result = async {
        let mut stream = Box::pin(chat.models.stream(&plan.model, request, turn.cancel.clone()).await?);
        while let Some(event) = stream.next().await {
            let event = event?;
            let token =
                !matches!(event, StreamEvent::Usage(_) | StreamEvent::Finish(_) | StreamEvent::ReasoningBlock(_));
            if token && !std::mem::replace(&mut book.heard, true) {
                crate::metrics::DIALOG_TTFT.observe(turn.accepted.elapsed());
            }
            match event {
                StreamEvent::Text(text) => {
                    spoken.spoke = true;
                    metered.delivered(&text);
                    turn.append(DeltaKind::Text, &text, chat.clock.now());
                }
                StreamEvent::Reasoning(text) => {
                    metered.delivered(&text);
                    turn.append(DeltaKind::Reasoning, &text, chat.clock.now());
                }
                StreamEvent::ReasoningBlock(block) => turn.keep_reasoning(block),
                StreamEvent::ToolCallStarted { id, name } => {
                    turn.push(Part::ToolCall { id, name, input: Value::Null, vendor: None })
                }
                StreamEvent::ToolCall(call) => {
                    metered.delivered(&call.arguments);
                    turn.complete_call(&call, input_of(&call));
                    spoken.calls.push(call);
                }
                StreamEvent::Usage(counted) => {
                    metered.counted(counted);
                    usage = Some(counted);
                }
                StreamEvent::Finish(reason) => spoken.finish = reason,
            }
        }
        Ok::<(), ModelError>(())
    }
    .await;
    Box::pin(metered.end(result.as_ref().err(), turn.cancel.is_cancelled())).await;
    if let Some(counted) = usage {
        spoken.output_tokens = Some(counted.output_tokens);
        book.usage.get_or_insert_default().add(&counted);
    }
    if turn.cancel.is_cancelled() {
        return Err(Ending::cancelled());
    }
    match result {
        Ok(()) => Ok(spoken),
        Err(error) => Err(Ending::failed(error.code, error.message)),
    }
}

/// Carries out the calls of a round at the same time; results stay in call order. An ending only
/// when the person stopped meanwhile.
async fn call_tools(
    chat: &Inner,
    turn: &Arc<LiveTurn>,
    plan: &TurnPlan,
    spoken: Spoken,
    book: &mut Book,
) -> Option<Ending> {
    let reach = history::reach(chat, turn.org, turn.thread, plan.user).await.asked_with(plan.caller.api_key());
    let toolbox = Toolbox {
        knowledge: &chat.knowledge,
        web: &chat.web,
        cursors: &chat.cursors,
        caller: &plan.caller,
        reach,
        citations: &book.citations,
    };
    let cut = spoken.finish == FinishReason::Length;
    let results = join_all(spoken.calls.iter().map(|call| async {
        // Arguments of a round that ended at the length cap may be cut off in the middle (RES-35).
        if cut && matches!(input_of(call), Value::String(_)) {
            return Outcome { output: json!({ "status": "invalid_args", "error": "The answer ended at its length limit before the call was complete." }), is_error: true };
        }
        toolbox.run(call).await
    }));
    let outcomes = tokio::select! {
        () = turn.cancel.cancelled() => return Some(Ending::cancelled()),
        outcomes = results => outcomes,
    };
    for (call, outcome) in spoken.calls.into_iter().zip(outcomes) {
        book.tools.push((call.name.clone(), subject_of(&call)));
        turn.push(Part::ToolResult {
            id: call.id,
            name: call.name,
            output: outcome.output,
            is_error: outcome.is_error,
        });
    }
    None
}

/// What a call was about, for the audit log: an id or an address, never the person's words.
fn subject_of(call: &ToolCall) -> Option<String> {
    let input = input_of(call);
    let subject = input.get("ref").or_else(|| input.get("url"))?.as_str()?;
    Some(super::tools::clip(subject, 200))
}

fn finish_text(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool-calls",
        FinishReason::ContentFilter => "content-filter",
        FinishReason::Other => "other",
    }
}
