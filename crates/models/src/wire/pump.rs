//! Drives one answer: bytes in, [`StreamEvent`]s out, within the limits and until cancelled.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use secrecy::SecretString;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::error::{ModelError, ModelErrorCode};
use super::sse::{SseEvent, SseParser, SseTooLarge};
use super::{ApiFormat, StreamEvent, ToolApi, WireLimits, anthropic, classify, openai, responses};

/// How long the end of a finished body is awaited so that the connection can be used again.
const TAIL: Duration = Duration::from_millis(250);

/// What is left of an answer's bounds.
#[derive(Debug)]
pub(super) struct Allowance {
    bytes: usize,
    limit: usize,
    calls: usize,
}

impl Allowance {
    pub(super) fn new(limits: &WireLimits) -> Self {
        Self { bytes: limits.answer_bytes, limit: limits.answer_bytes, calls: limits.tool_calls }
    }

    /// Takes `bytes` of text, reasoning or arguments.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| too_much(self.limit))?;
        Ok(())
    }

    /// Admits one more tool call beside `held` ones.
    pub(super) fn tool_call(&self, held: usize) -> Result<(), ModelError> {
        if held < self.calls {
            return Ok(());
        }
        Err(ModelError::new(
            ModelErrorCode::ProviderError,
            format!("The model made more than {} tool calls in one answer, so the answer was broken off.", self.calls),
        ))
    }
}

fn too_much(limit: usize) -> ModelError {
    ModelError::new(
        ModelErrorCode::ProviderError,
        format!("The provider sent more than {} KiB for one answer, so the answer was broken off.", limit / 1_024),
    )
}

#[derive(Debug)]
enum Decoder {
    OpenAi(openai::Decoder),
    Responses(responses::Decoder),
    Anthropic(anthropic::Decoder),
}

impl Decoder {
    fn new(format: ApiFormat) -> Self {
        match format {
            ApiFormat::OpenAi => Self::OpenAi(openai::Decoder::default()),
            ApiFormat::Anthropic => Self::Anthropic(anthropic::Decoder::default()),
        }
    }

    fn data(
        &mut self,
        data: &str,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        match self {
            Self::OpenAi(decoder) => decoder.data(data, allowance, out),
            Self::Responses(decoder) => decoder.data(data, allowance, out),
            Self::Anthropic(decoder) => decoder.data(data, allowance, out),
        }
    }

    fn end(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<(), ModelError> {
        match self {
            Self::OpenAi(decoder) => decoder.end(out),
            // Finished and done are one there, so this is never asked.
            Self::Responses(_) => Ok(()),
            Self::Anthropic(decoder) => decoder.end(out),
        }
    }

    fn finished(&self) -> bool {
        match self {
            Self::OpenAi(decoder) => decoder.finished(),
            Self::Responses(decoder) => decoder.done(),
            Self::Anthropic(decoder) => decoder.finished(),
        }
    }

    fn done(&self) -> bool {
        match self {
            Self::OpenAi(decoder) => decoder.done(),
            Self::Responses(decoder) => decoder.done(),
            Self::Anthropic(decoder) => decoder.done(),
        }
    }
}

/// How the body is framed.
#[derive(Debug)]
enum Framing {
    /// `text/event-stream`.
    Events(SseParser),
    /// One JSON document: a server that does not stream, or an error with status 200.
    Document(Vec<u8>),
}

/// What stays out of errors.
#[derive(Debug, Default)]
pub(super) struct Private {
    /// The key.
    pub secret: Option<SecretString>,
    /// The API root.
    pub base: Option<Url>,
}

impl Private {
    fn kept_from(&self, error: ModelError) -> ModelError {
        match &self.base {
            Some(base) => error.scrubbed(self.secret.as_ref(), base),
            None => error,
        }
    }
}

/// The state of one running answer.
pub(super) struct Pump {
    body: Option<BoxStream<'static, Result<Bytes, ModelError>>>,
    framing: Framing,
    decoder: Decoder,
    allowance: Allowance,
    ready: VecDeque<StreamEvent>,
    events: Vec<SseEvent>,
    received: usize,
    failed: Option<ModelError>,
    ended: bool,
    deadline: Instant,
    limits: WireLimits,
    cancel: CancellationToken,
    private: Private,
}

impl Pump {
    /// Reads `body`, an event stream unless `document` says that it is one JSON document.
    pub(super) fn new(
        format: ApiFormat,
        body: BoxStream<'static, Result<Bytes, ModelError>>,
        document: bool,
        limits: WireLimits,
        cancel: CancellationToken,
        private: Private,
    ) -> Self {
        Self {
            body: Some(body),
            framing: if document {
                Framing::Document(Vec::new())
            } else {
                Framing::Events(SseParser::new(limits.event_bytes))
            },
            decoder: Decoder::new(format),
            allowance: Allowance::new(&limits),
            ready: VecDeque::new(),
            events: Vec::new(),
            received: 0,
            failed: None,
            ended: false,
            deadline: Instant::now() + limits.total,
            limits,
            cancel,
            private,
        }
    }

    /// Reads the answer in the words of `api`. Of no effect in the Anthropic format.
    pub(super) fn over(mut self, api: ToolApi) -> Self {
        if api == ToolApi::Responses && matches!(self.decoder, Decoder::OpenAi(_)) {
            self.decoder = Decoder::Responses(responses::Decoder::default());
        }
        self
    }

    /// The stream of events. Dropping it closes the connection.
    pub(super) fn into_stream(self) -> BoxStream<'static, Result<StreamEvent, ModelError>> {
        futures::stream::unfold(self, |mut pump| async move { pump.next().await.map(|item| (item, pump)) })
            .inspect(|item| _ = item.as_ref().inspect_err(|error| crate::metrics::count(error)))
            .boxed()
    }

    async fn next(&mut self) -> Option<Result<StreamEvent, ModelError>> {
        loop {
            if self.cancel.is_cancelled() {
                self.close();
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failed.take() {
                self.close();
                return Some(Err(self.private.kept_from(error)));
            }
            if self.ended {
                return None;
            }
            if self.decoder.done() {
                self.read_tail().await;
                return None;
            }
            if let Err(error) = self.read().await {
                // What was decoded before the failure is delivered first.
                self.body = None;
                self.failed = Some(error);
            }
        }
    }

    fn close(&mut self) {
        self.body = None;
        self.ready.clear();
        self.ended = true;
    }

    /// Reads the next piece of the body and decodes it.
    async fn read(&mut self) -> Result<(), ModelError> {
        let Some(body) = self.body.as_mut() else {
            self.ended = true;
            return Ok(());
        };
        let finished = self.decoder.finished();
        let wait = if finished { self.limits.after_finish } else { self.limits.idle };
        let until = (Instant::now() + wait).min(self.deadline);
        let piece = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Ok(()),
            piece = timeout_at(until, body.next()) => piece,
        };
        match piece {
            Ok(Some(Ok(bytes))) => self.take(&bytes),
            Ok(Some(Err(_))) | Err(_) if finished => self.finish(),
            Ok(Some(Err(error))) => Err(error),
            Ok(None) => self.finish(),
            Err(_) if until == self.deadline => Err(ModelError::new(
                ModelErrorCode::ProviderError,
                format!(
                    "The answer took longer than {} minutes, so it was broken off.",
                    self.limits.total.as_secs() / 60
                ),
            )),
            Err(_) => Err(idle(self.limits.idle)),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.received += bytes.len();
        if self.received > self.limits.stream_bytes {
            return Err(too_much(self.limits.stream_bytes));
        }
        match &mut self.framing {
            Framing::Events(parser) => {
                parser.push(bytes, &mut self.events).map_err(large_event)?;
                self.decode()
            }
            Framing::Document(held) => {
                if held.len() + bytes.len() > self.limits.answer_bytes {
                    return Err(too_much(self.limits.answer_bytes));
                }
                held.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn decode(&mut self) -> Result<(), ModelError> {
        for event in self.events.drain(..) {
            if self.decoder.done() {
                break;
            }
            match self.decoder.data(&event.data, &mut self.allowance, &mut self.ready) {
                // Some servers end events with a single line feed; each line is then a document.
                Err(_)
                    if event.data.contains('\n')
                        && event.data.lines().all(|line| {
                            serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok() || line == "[DONE]"
                        }) =>
                {
                    for line in event.data.lines() {
                        self.decoder.data(line, &mut self.allowance, &mut self.ready)?;
                    }
                }
                // Words instead of JSON in an event that is called an error.
                Err(_) if event.name == "error" => {
                    let value = serde_json::from_str(&event.data)
                        .unwrap_or_else(|_| serde_json::json!({ "error": event.data }));
                    return Err(classify::from_value(None, &value));
                }
                Err(error) => return Err(error),
                Ok(()) if event.name == "error" && !self.decoder.done() => {
                    let value = serde_json::from_str(&event.data).unwrap_or_default();
                    return Err(classify::from_value(None, &value));
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// The body has ended.
    fn finish(&mut self) -> Result<(), ModelError> {
        self.body = None;
        match &mut self.framing {
            Framing::Events(parser) => {
                parser.finish(&mut self.events).map_err(large_event)?;
                self.decode()?;
            }
            Framing::Document(held) => {
                let held = std::mem::take(held);
                let text = String::from_utf8_lossy(&held);
                if text.trim().is_empty() {
                    return Err(ModelError::new(ModelErrorCode::ProviderError, "The provider sent an empty answer."));
                }
                self.decoder.data(&text, &mut self.allowance, &mut self.ready)?;
            }
        }
        if self.decoder.done() {
            return Ok(());
        }
        if self.decoder.finished() {
            return self.decoder.end(&mut self.ready);
        }
        Err(broken_off())
    }

    /// After the last event: waits a moment for the end of the body, so that the connection goes
    /// back to the pool instead of being closed.
    async fn read_tail(&mut self) {
        self.ended = true;
        if let Some(mut body) = self.body.take() {
            let until = Instant::now() + TAIL;
            while let Ok(Some(Ok(_))) = timeout_at(until, body.next()).await {}
        }
    }
}

/// The connection ended before the answer did.
pub(super) fn broken_off() -> ModelError {
    ModelError::new(
        ModelErrorCode::ProviderError,
        "The connection to the provider ended before the answer was complete.",
    )
}

/// Nothing came for too long.
pub(super) fn idle(wait: Duration) -> ModelError {
    ModelError::new(
        ModelErrorCode::ProviderError,
        format!("The provider sent nothing for {} seconds, so the request was given up.", wait.as_secs()),
    )
}

fn large_event(error: SseTooLarge) -> ModelError {
    ModelError::new(ModelErrorCode::ProviderError, format!("The answer was broken off: {error}."))
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;
    use crate::wire::FinishReason;

    fn pump(pieces: Vec<Result<Bytes, ModelError>>, limits: WireLimits) -> Pump {
        Pump::new(
            ApiFormat::OpenAi,
            stream::iter(pieces).boxed(),
            false,
            limits,
            CancellationToken::new(),
            Private::default(),
        )
    }

    fn ok(text: &'static str) -> Result<Bytes, ModelError> {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    async fn collect(pump: Pump) -> (Vec<StreamEvent>, Option<ModelError>) {
        let mut events = Vec::new();
        let mut stream = pump.into_stream();
        while let Some(item) = stream.next().await {
            match item {
                Ok(event) => events.push(event),
                Err(error) => return (events, Some(error)),
            }
        }
        (events, None)
    }

    const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße 🦀\"}}]}\n\n";
    const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

    #[tokio::test]
    async fn one_byte_pieces_read_like_whole_ones() {
        let text = format!("{TEXT}{STOP}data: [DONE]");
        let pieces = text.bytes().map(|byte| Ok(Bytes::from(vec![byte]))).collect();
        let (events, error) = collect(pump(pieces, WireLimits::default())).await;
        assert_eq!(error, None);
        assert_eq!(events, [StreamEvent::Text("Grüße 🦀".into()), StreamEvent::Finish(FinishReason::Stop)]);
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_an_error_after_its_text() {
        let (events, error) = collect(pump(vec![ok(TEXT)], WireLimits::default())).await;
        assert_eq!(events.len(), 1);
        assert_eq!(error.unwrap().code, ModelErrorCode::ProviderError);
        // With a finish reason the answer is complete even without [DONE].
        let (events, error) = collect(pump(vec![ok(TEXT), ok(STOP)], WireLimits::default())).await;
        assert_eq!((events.len(), error), (2, None));
    }

    #[tokio::test]
    async fn silence_ends_the_call() {
        let body = stream::iter(vec![ok(TEXT)]).chain(stream::pending()).boxed();
        let limits = WireLimits { idle: Duration::from_millis(5), ..WireLimits::default() };
        let pump = Pump::new(ApiFormat::OpenAi, body, false, limits, CancellationToken::new(), Private::default());
        let (events, error) = collect(pump).await;
        assert_eq!(events.len(), 1);
        assert!(error.unwrap().message.contains("sent nothing"));
    }

    #[tokio::test]
    async fn silence_after_the_finish_reason_completes_the_answer() {
        let body = stream::iter(vec![ok(TEXT), ok(STOP)]).chain(stream::pending()).boxed();
        let limits = WireLimits { after_finish: Duration::from_millis(5), ..WireLimits::default() };
        let pump = Pump::new(ApiFormat::OpenAi, body, false, limits, CancellationToken::new(), Private::default());
        let (events, error) = collect(pump).await;
        assert_eq!((events.last(), error), (Some(&StreamEvent::Finish(FinishReason::Stop)), None));
    }

    #[tokio::test]
    async fn a_model_that_never_stops_is_stopped() {
        let forever = stream::repeat_with(|| ok(TEXT)).boxed();
        let limits = WireLimits { stream_bytes: 10_000, ..WireLimits::default() };
        let (_, error) =
            collect(Pump::new(ApiFormat::OpenAi, forever, false, limits, CancellationToken::new(), Private::default()))
                .await;
        assert!(error.unwrap().message.contains("broken off"));
        let forever = stream::repeat_with(|| ok(TEXT)).boxed();
        let limits = WireLimits { answer_bytes: 1_000, ..WireLimits::default() };
        let (events, error) =
            collect(Pump::new(ApiFormat::OpenAi, forever, false, limits, CancellationToken::new(), Private::default()))
                .await;
        assert!(error.is_some() && events.len() <= 1_000 / "Grüße 🦀".len());
    }

    #[tokio::test]
    async fn cancelling_ends_the_stream_without_an_error() {
        let cancel = CancellationToken::new();
        let body = stream::iter(vec![ok(TEXT)]).chain(stream::pending()).boxed();
        let mut stream =
            Pump::new(ApiFormat::OpenAi, body, false, WireLimits::default(), cancel.clone(), Private::default())
                .into_stream();
        assert!(stream.next().await.is_some());
        cancel.cancel();
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn single_line_feeds_between_events_are_forgiven() {
        let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\ndata: [DONE]\n";
        let (events, error) = collect(pump(vec![ok(text)], WireLimits::default())).await;
        assert_eq!(error, None);
        assert_eq!(events[..2], [StreamEvent::Text("a".into()), StreamEvent::Text("b".into())]);
    }

    #[tokio::test]
    async fn an_error_event_is_an_error_whatever_its_shape() {
        for text in [
            "event: error\ndata: {\"message\":\"credit balance is too low\"}\n\n",
            "event: error\ndata: credit balance is too low\n\n",
        ] {
            let (_, error) = collect(pump(vec![ok(TEXT), ok(text)], WireLimits::default())).await;
            assert_eq!(error.unwrap().code, ModelErrorCode::CreditExhausted);
        }
    }

    #[tokio::test]
    async fn a_json_document_with_status_200_is_an_answer_or_an_error() {
        let read = |text: &'static str| {
            Pump::new(
                ApiFormat::OpenAi,
                stream::iter(vec![ok(text)]).boxed(),
                true,
                WireLimits::default(),
                CancellationToken::new(),
                Private::default(),
            )
        };
        let (_, error) = collect(read("{\"error\":{\"message\":\"nope\",\"code\":\"invalid_api_key\"}}")).await;
        assert_eq!(error.unwrap().code, ModelErrorCode::AuthError);
        let (events, error) =
            collect(read("{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}")).await;
        assert_eq!((events.len(), error), (2, None));
    }
}
