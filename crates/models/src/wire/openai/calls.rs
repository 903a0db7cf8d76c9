//! Puts tool calls together from the pieces in which they are streamed.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::wire::error::ModelError;
use crate::wire::lenient::text_of;
use crate::wire::pump::Allowance;
use crate::wire::{StreamEvent, ToolCall};

/// A piece of a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct ToolDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, deserialize_with = "text_of")]
    id: Option<String>,
    #[serde(default)]
    function: FunctionDelta,
    #[serde(default)]
    extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    #[serde(deserialize_with = "text_of")]
    name: Option<String>,
    #[serde(deserialize_with = "text_of")]
    arguments: Option<String>,
}

/// A tool call while its pieces arrive.
#[derive(Debug)]
struct Slot {
    index: Option<u64>,
    given_id: Option<String>,
    call: ToolCall,
    announced: bool,
}

/// The tool calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

impl Calls {
    /// Takes the next piece.
    pub(super) fn piece(
        &mut self,
        piece: ToolDelta,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        let id = piece.id.filter(|id| !id.is_empty());
        let name = piece.function.name.filter(|name| !name.is_empty());
        let arguments = piece.function.arguments.unwrap_or_default();
        allowance.take(arguments.len() + name.as_ref().map_or(0, String::len))?;
        let at = match self.slot_of(id.as_deref(), piece.index, name.is_some()) {
            Some(at) => at,
            None => {
                allowance.tool_call(self.slots.len())?;
                let made_up = || format!("call_{}", Uuid::now_v7().simple());
                self.slots.push(Slot {
                    index: piece.index,
                    given_id: id.clone(),
                    call: ToolCall::new(id.clone().unwrap_or_else(made_up), "", ""),
                    announced: false,
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[at];
        if let Some(id) = id.filter(|_| slot.given_id.is_none() && !slot.announced) {
            slot.call.id.clone_from(&id);
            slot.given_id = Some(id);
        }
        match name {
            Some(name) if slot.call.name.is_empty() => slot.call.name = name,
            // Some servers repeat the whole name with every piece; others cut it in pieces.
            Some(name) if slot.call.name != name && slot.call.arguments.is_empty() => slot.call.name.push_str(&name),
            _ => {}
        }
        slot.call.arguments.push_str(&arguments);
        if piece.extra_content.is_some() {
            slot.call.vendor = piece.extra_content;
        }
        if !slot.announced && !slot.call.name.is_empty() && !slot.call.arguments.is_empty() {
            slot.announced = true;
            out.push_back(started(&slot.call));
        }
        Ok(())
    }

    /// The call that a piece continues; `None` starts a new one.
    ///
    /// The id decides first, then the index. Servers exist that number all parallel calls 0, that
    /// give a fresh id to every piece, and that give neither id nor index.
    fn slot_of(&self, id: Option<&str>, index: Option<u64>, has_name: bool) -> Option<usize> {
        if let Some(id) = id {
            if let Some(known) = self.slots.iter().rposition(|slot| slot.given_id.as_deref() == Some(id)) {
                return Some(known);
            }
            let same_index = index.and_then(|_| self.slots.iter().rposition(|slot| slot.index == index))?;
            let continues = !has_name || self.slots[same_index].call.name.is_empty();
            return continues.then_some(same_index);
        }
        let candidate = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == index)?,
            None => self.slots.len().checked_sub(1)?,
        };
        let slot = &self.slots[candidate];
        let complete = || serde_json::from_str::<Value>(&slot.call.arguments).is_ok();
        let starts_anew = has_name && !slot.call.name.is_empty() && complete();
        (!starts_anew).then_some(candidate)
    }

    /// The complete calls, in the order in which they were begun.
    pub(super) fn take(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        for mut slot in std::mem::take(&mut self.slots) {
            if !slot.announced {
                events.push(started(&slot.call));
            }
            if slot.call.arguments.trim().is_empty() {
                slot.call.arguments = "{}".to_owned();
            }
            events.push(StreamEvent::ToolCall(slot.call));
        }
        events
    }
}

fn started(call: &ToolCall) -> StreamEvent {
    StreamEvent::ToolCallStarted { id: call.id.clone(), name: call.name.clone() }
}
