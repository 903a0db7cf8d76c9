//! One answer on its way from an upstream to a client.

use serde_json::{Value, json};
use tale_models::wire::{SseEvent, SseParser};
use tale_models::{ModelError, ModelErrorCode};

use super::{Decoder, Piece, Tokens, Told, Writer, document, same, write_responses};
use crate::wire::Wire;

/// Largest event of a stream, in bytes. An upstream that sends no line feed ends here.
const MAX_EVENT_BYTES: usize = 2 << 20;
/// Largest answer in bytes, streamed or not.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// Reads what an upstream sends and writes what the client is to get. Holds at most an event of a
/// stream, and a whole answer where the client or the upstream does not stream.
#[derive(Debug)]
pub(crate) struct Translation {
    told: Told,
    upstream: Wire,
    streamed: bool,
    answers: u64,
    /// The upstream's body is a document and not a stream.
    from_document: bool,
    held: Vec<u8>,
    parser: SseParser,
    events: Vec<SseEvent>,
    decoder: Decoder,
    pieces: Vec<Piece>,
    writer: Option<Writer>,
    bytes: usize,
}

impl Translation {
    /// From `upstream` to what `told` says, for a client that wants a stream or not.
    pub(crate) fn new(told: Told, upstream: Wire, answers: u64, streamed: bool) -> Self {
        Self {
            upstream,
            streamed,
            answers,
            from_document: false,
            held: Vec::new(),
            parser: SseParser::new(MAX_EVENT_BYTES),
            events: Vec::new(),
            decoder: Decoder::new(upstream, answers),
            pieces: Vec::new(),
            writer: None,
            bytes: 0,
            told,
        }
    }

    /// Says in which form the upstream answers, once that is known.
    pub(crate) fn answered(&mut self, as_document: bool) {
        self.from_document = as_document;
        // What came in the form that was asked for, in the client's own wire, is handed on.
        if self.upstream == Wire::Responses {
            if !(self.streamed || as_document) {
                self.decoder.keep_response();
            }
        } else if !self.hands_on() && self.streamed {
            self.writer = Some(Writer::new(self.told.clone()));
        }
    }

    fn hands_on(&self) -> bool {
        self.upstream == self.told.wire && self.from_document != self.streamed
    }

    /// Takes the next bytes; what the client gets of them is appended to `out`.
    ///
    /// # Errors
    /// The upstream's own error, or why its answer cannot be used. Nothing follows.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) -> Result<(), ModelError> {
        self.bytes += bytes.len();
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(broken(format!(
                "The answer was broken off: it is larger than {} MiB.",
                MAX_ANSWER_BYTES >> 20
            )));
        }
        if self.from_document {
            self.held.extend_from_slice(bytes);
            return Ok(());
        }
        self.parser
            .push(bytes, &mut self.events)
            .map_err(|error| broken(format!("The answer was broken off: {error}.")))?;
        self.read_events(out)
    }

    fn read_events(&mut self, out: &mut String) -> Result<(), ModelError> {
        for event in std::mem::take(&mut self.events) {
            if event.name == "error" {
                let value = serde_json::from_str(&event.data).unwrap_or_else(|_| event.data.clone().into());
                return Err(ModelError::in_answer(&value));
            }
            // A few servers leave out the blank line between events.
            let (joined, one) = (event.data.contains('\n'), event.data.as_str());
            let split = joined && serde_json::from_str::<serde::de::IgnoredAny>(one).is_err();
            let lines = if split { one.split('\n').collect() } else { vec![one] };
            for data in lines.into_iter().filter(|data| !data.trim().is_empty()) {
                self.decoder.event(data, &mut self.pieces)?;
                if let Some(writer) = &mut self.writer {
                    self.pieces.drain(..).for_each(|piece| writer.piece(piece, out));
                } else if self.streamed {
                    self.pieces.clear();
                    out.push_str(&same::event(&self.told, &event.name, data).unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    /// The upstream's body is over: writes the rest.
    ///
    /// # Errors
    /// As [`Translation::push`], and when the answer is incomplete.
    pub(crate) fn finish(&mut self, out: &mut String) -> Result<(), ModelError> {
        if self.from_document {
            return self.finish_document(out);
        }
        self.parser.finish(&mut self.events).map_err(|error| broken(format!("The answer was broken off: {error}.")))?;
        self.read_events(out)?;
        if !self.decoder.finished() {
            return Err(broken("The connection to the provider ended before the answer was complete.".to_owned()));
        }
        self.close(out);
        Ok(())
    }

    fn finish_document(&mut self, out: &mut String) -> Result<(), ModelError> {
        let text = String::from_utf8(std::mem::take(&mut self.held))
            .map_err(|_| broken("The provider's answer is not text.".to_owned()))?;
        self.decoder.document(&text, &mut self.pieces)?;
        if self.hands_on() {
            out.push_str(&same::document(&self.told, &text));
            return Ok(());
        }
        if self.upstream == Wire::Responses {
            let response = serde_json::from_str(&same::document(&self.told, &text)).unwrap_or_default();
            out.push_str(&write_responses::replayed(&response));
            return Ok(());
        }
        if let Some(writer) = &mut self.writer {
            self.pieces.drain(..).for_each(|piece| writer.piece(piece, out));
        }
        self.close(out);
        Ok(())
    }

    /// Writes the end of a stream, or the whole answer of one that was collected.
    fn close(&mut self, out: &mut String) {
        let tokens = self.decoder.tokens();
        if let Some(writer) = &mut self.writer {
            writer.end(tokens, out);
        } else if let Some(response) = self.decoder.kept_response() {
            out.push_str(&same::document(&self.told, &response));
        } else if !self.streamed {
            let pieces = std::mem::take(&mut self.pieces);
            out.push_str(&document(&self.told, pieces, tokens).to_string());
        } else {
            out.push_str(match self.told.wire {
                Wire::Chat => "data: [DONE]\n\n",
                // The last event said it all.
                Wire::Responses => "",
                Wire::Messages => "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            });
        }
    }

    /// The event that tells of an error after the stream began; nothing follows it. `body` is the error
    /// in the interface's own shape.
    pub(crate) fn failed(&mut self, body: &Value) -> String {
        match self.told.wire {
            Wire::Chat => format!("data: {body}\n\n"),
            Wire::Messages => format!("event: error\ndata: {body}\n\n"),
            Wire::Responses => {
                let error = json!({ "code": body["error"]["code"], "message": body["error"]["message"] });
                let mut out = String::new();
                match &mut self.writer {
                    Some(Writer::Responses(writer)) => writer.failed(&error, &mut out),
                    _ => {
                        write_responses::Writer::failed_alone(&self.told, self.decoder.response_id(), &error, &mut out)
                    }
                }
                out
            }
        }
    }

    /// Whether more than one answer was asked for and the upstream answers in another form than was
    /// asked for, which only one answer survives.
    pub(crate) fn loses_answers(&self) -> bool {
        self.answers > 1 && !self.hands_on()
    }

    /// How far the upstream's answer is.
    pub(crate) fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The tokens as told at the end of the answer.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.decoder.tokens()
    }
}

fn broken(message: String) -> ModelError {
    ModelError::new(ModelErrorCode::ProviderError, message)
}
