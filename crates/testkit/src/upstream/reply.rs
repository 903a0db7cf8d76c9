//! What the fake provider answers, independent of the wire format.

use std::time::Duration;

use serde_json::{Value, json};

/// One piece of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A piece of visible text.
    Text(String),
    /// A piece of reasoning.
    Reasoning(String),
    /// What seals the reasoning before it: the signature of a thinking block (Anthropic format), the
    /// encrypted content of a reasoning item (Responses).
    Signature(String),
    /// A tool call whose arguments arrive in `pieces` parts. The arguments need not be valid JSON.
    ToolCall {
        /// The call's id; empty = none is sent.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as the model writes them.
        arguments: String,
        /// In how many parts they arrive.
        pieces: usize,
    },
    /// Token counts. Without this step an answer reports 11 input tokens and one output token a step.
    Usage {
        /// Input tokens.
        input: u64,
        /// Output tokens.
        output: u64,
    },
    /// The end, with the OpenAI format's word for the reason. Added by itself when missing.
    Finish(&'static str),
    /// An error inside the stream: its code and message.
    Error {
        /// The provider's code or type.
        code: String,
        /// The provider's words.
        message: String,
    },
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// A pause.
    Wait(Duration),
    /// Nothing more, with the connection open.
    Hang,
    /// The connection breaks.
    Drop,
    /// This text again and again without end.
    Forever(String),
}

#[derive(Debug, Clone)]
pub(super) enum Form {
    Stream { steps: Vec<Step>, pace: Option<Duration>, split: Option<usize> },
    Whole { status: u16, content_type: String, headers: Vec<(String, String)>, body: Vec<u8> },
    Hang,
}

/// One answer of the fake provider.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) form: Form,
}

impl Reply {
    /// Streams `text` word by word.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::steps(text.split_inclusive(' ').map(|word| Step::Text(word.to_owned())).collect())
    }

    /// Streams these steps. An ending is added unless a step decides it.
    #[must_use]
    pub fn steps(steps: Vec<Step>) -> Self {
        Self { form: Form::Stream { steps, pace: None, split: None } }
    }

    /// Streams one tool call.
    #[must_use]
    pub fn tool_call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::steps(vec![Step::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
            pieces: 3,
        }])
    }

    /// Answers with a status and a JSON body instead of a stream.
    #[must_use]
    pub fn status(status: u16, body: &Value) -> Self {
        Self::whole(status, "application/json", body.to_string())
    }

    /// Refuses in the OpenAI format's shape, which the Anthropic side of the client reads too.
    #[must_use]
    pub fn refusal(status: u16, code: &str, message: &str) -> Self {
        Self::status(status, &json!({ "error": { "message": message, "type": code, "code": code } }))
    }

    /// Answers with a web page.
    #[must_use]
    pub fn html(status: u16) -> Self {
        Self::whole(status, "text/html; charset=utf-8", "<!DOCTYPE html><html><body>Sign in</body></html>")
    }

    /// Answers with a whole body.
    #[must_use]
    pub fn whole(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            form: Form::Whole { status, content_type: content_type.to_owned(), headers: Vec::new(), body: body.into() },
        }
    }

    /// Accepts the request and never answers.
    #[must_use]
    pub fn hang() -> Self {
        Self { form: Form::Hang }
    }

    /// Streams `text` without end.
    #[must_use]
    pub fn never_stops(text: &str) -> Self {
        Self::steps(vec![Step::Forever(text.to_owned())])
    }

    /// Adds a header to a reply that is not streamed.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Form::Whole { headers, .. } = &mut self.form {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds a step to a streamed reply.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        if let Form::Stream { steps, .. } = &mut self.form {
            steps.push(step);
        }
        self
    }

    /// Streams this many text steps a second.
    #[must_use]
    pub fn per_second(mut self, steps: u32) -> Self {
        if let Form::Stream { pace, .. } = &mut self.form {
            *pace = Some(Duration::from_secs(1) / steps.max(1));
        }
        self
    }

    /// Cuts the stream into pieces of `bytes` bytes.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        if let Form::Stream { split, .. } = &mut self.form {
            *split = Some(bytes.max(1));
        }
        self
    }
}
