//! The assistant's three read-only tools (spec 50, section 12). A tool never ends a turn: every
//! failure becomes a result that the model can read and correct.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tale_core::Problem;
use tale_core::ids::FileId;
use tale_core::page::CursorSigner;
use tale_identity::Caller;
use tale_knowledge::Knowledge;
use tale_knowledge::documents::DocumentQuery;
use tale_knowledge::order::Position;
use tale_knowledge::reach::Reach;
use tale_knowledge::search::{Corpus, SearchRequest};
use tale_models::wire::{ToolCall, ToolSpec};

use super::citations::Citations;
use super::web::WebReader;

/// Longest a single call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest text of a fetch, in characters (CHT-99).
const MAX_WINDOW: u64 = 20_000;

/// A passage is delivered whole up to this many characters (CHT-94).
const SNIPPET_CHARS: usize = 2_400;

/// Characters of all snippets of one response; later ones fall back to [`SHORT_SNIPPET_CHARS`].
const RESPONSE_CHARS: usize = 19_200;

/// A snippet after the response's budget is spent.
const SHORT_SNIPPET_CHARS: usize = 500;

/// What the tools of one turn work with.
pub(crate) struct Toolbox<'a> {
    pub knowledge: &'a Knowledge,
    pub web: &'a WebReader,
    pub cursors: &'a CursorSigner,
    pub caller: &'a Caller,
    pub reach: Reach,
    pub citations: &'a Mutex<Citations>,
}

/// What a call came to.
pub(crate) struct Outcome {
    pub output: Value,
    pub is_error: bool,
}

impl Outcome {
    fn done(output: Value) -> Self {
        Self { output, is_error: false }
    }

    fn refused(sentence: impl Into<String>) -> Self {
        Self { output: json!({ "error": sentence.into() }), is_error: true }
    }

    fn problem(problem: &Problem) -> Self {
        Self { output: json!({ "error": problem.message, "code": problem.code.text() }), is_error: true }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SearchArguments {
    action: SearchAction,
    query: Option<String>,
    kind: Option<Kind>,
    limit: Option<i64>,
    cursor: Option<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum SearchAction {
    Search,
    List,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Document,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FetchArguments {
    #[serde(rename = "ref")]
    reference: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebArguments {
    url: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

/// The tools as they are offered to a model.
pub(crate) fn specs() -> &'static [ToolSpec] {
    static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        let window = json!({ "type": "integer", "minimum": 1, "maximum": MAX_WINDOW, "description": "Characters to read, 20000 when left out." });
        let offset = json!({ "type": "integer", "minimum": 0, "description": "Character to start at, 0 when left out. Use nextOffset of the previous part." });
        vec![
            ToolSpec {
                name: "rag_search".into(),
                description: "Searches the organization's documents and this chat's files for passages, or lists documents. Each row has a `cite` number for citations and a `ref` for rag_fetch.".into(),
                parameters: Arc::new(json!({
                    "type": "object",
                    "properties": {
                        "action": { "type": "string", "enum": ["search", "list"], "description": "search: find passages for a query. list: name the documents there are." },
                        "query": { "type": "string", "description": "For search: the words that the wanted passage would contain, 1 to 2000 characters." },
                        "kind": { "type": "string", "enum": ["document"], "description": "What to find. Required for list." },
                        "limit": { "type": "integer", "minimum": 1, "maximum": 20, "description": "Most rows: 8 for search and 20 for list when left out." },
                        "cursor": { "type": "string", "description": "For list: continueCursor of the previous page." }
                    },
                    "required": ["action"],
                    "additionalProperties": false
                })),
            },
            ToolSpec {
                name: "rag_fetch".into(),
                description: "Reads the text of a document found by rag_search or attached to the chat.".into(),
                parameters: Arc::new(json!({
                    "type": "object",
                    "properties": { "ref": { "type": "string", "description": "The `ref` of a row or of an attached file." }, "offset": offset, "limit": window },
                    "required": ["ref"],
                    "additionalProperties": false
                })),
            },
            ToolSpec {
                name: "web_fetch".into(),
                description: "Reads a public web page as text.".into(),
                parameters: Arc::new(json!({
                    "type": "object",
                    "properties": { "url": { "type": "string", "description": "A public https address." }, "offset": offset, "limit": window },
                    "required": ["url"],
                    "additionalProperties": false
                })),
            },
        ]
    });
    &SPECS
}

/// The call's input as it is stored: parsed, or the raw text when it is no JSON object.
pub(crate) fn input_of(call: &ToolCall) -> Value {
    if call.arguments.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str::<Value>(&call.arguments)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::String(call.arguments.clone()))
}

impl Toolbox<'_> {
    /// Carries out one call.
    pub(crate) async fn run(&self, call: &ToolCall) -> Outcome {
        match tokio::time::timeout(CALL_TIMEOUT, self.dispatch(call)).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::refused("The tool took longer than 30 seconds and was stopped. Try a smaller request."),
        }
    }

    async fn dispatch(&self, call: &ToolCall) -> Outcome {
        let input = input_of(call);
        if let Value::String(raw) = &input {
            return Outcome::refused(format!("The arguments are not a JSON object. They were: {}", clip(raw, 500)));
        }
        match call.name.as_str() {
            "rag_search" => match serde_json::from_value::<SearchArguments>(input) {
                Ok(arguments) => self.rag_search(arguments).await,
                Err(error) => Outcome::refused(format!("The arguments of rag_search are not valid: {error}.")),
            },
            "rag_fetch" => match serde_json::from_value::<FetchArguments>(input) {
                Ok(arguments) => self.rag_fetch(arguments).await,
                Err(error) => Outcome::refused(format!("The arguments of rag_fetch are not valid: {error}.")),
            },
            "web_fetch" => match serde_json::from_value::<WebArguments>(input) {
                Ok(arguments) => self.web_fetch(arguments).await,
                Err(error) => Outcome::refused(format!("The arguments of web_fetch are not valid: {error}.")),
            },
            other => Outcome::refused(format!(
                "There is no tool `{}`. The tools are rag_search, rag_fetch and web_fetch.",
                clip(other, 64)
            )),
        }
    }

    async fn rag_search(&self, arguments: SearchArguments) -> Outcome {
        if arguments.action == SearchAction::List {
            return match arguments.kind {
                Some(Kind::Document) => self.list(arguments.limit, arguments.cursor).await,
                None => Outcome::refused("`kind` is required for `list`. It can be `document`."),
            };
        }
        let query = arguments.query.as_deref().map(str::trim).unwrap_or_default();
        if query.is_empty() {
            return Outcome::refused(
                "`query` is required for `search`. To see which documents there are, use `action: \"list\"` with `kind: \"document\"`.",
            );
        }
        let request = SearchRequest {
            limit: usize::try_from(arguments.limit.unwrap_or(8).clamp(1, 20)).unwrap_or(8),
            corpus: Corpus::All,
            allow_keyword_fallback: true,
            ..SearchRequest::new(clip(query, tale_core::limits::MAX_QUERY_CHARS))
        };
        let answer = match self.knowledge.search(&self.reach, request).await {
            Ok(answer) => answer,
            Err(problem) => return Outcome::problem(&problem),
        };
        let mut spent = 0;
        let mut citations = self.citations.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<Value> = answer
            .hits
            .iter()
            .map(|hit| {
                let room = if spent < RESPONSE_CHARS { SNIPPET_CHARS } else { SHORT_SNIPPET_CHARS };
                let snippet = clip(&hit.passage, room);
                spent += snippet.len();
                let mut row = json!({
                    "cite": citations.number(hit), "kind": "document", "title": hit.title, "ref": hit.file_id,
                    "chunkId": hit.chunk_id, "snippet": snippet, "score": hit.score,
                });
                for (name, value) in [
                    ("documentId", json!(hit.document_id)),
                    ("page", json!(hit.page)),
                    ("similarity", json!(hit.similarity)),
                ] {
                    if !value.is_null() {
                        row[name] = value;
                    }
                }
                row
            })
            .collect();
        let mut unavailable = Vec::new();
        if !answer.diagnostics.bm25 {
            unavailable.push(json!({ "what": "keyword search", "reason": "its index is being rebuilt" }));
        }
        if let Some(reason) = answer.diagnostics.limited {
            unavailable.push(json!({ "what": "search by meaning", "reason": reason }));
        }
        Outcome::done(
            json!({ "rows": rows, "searched": ["document"], "unavailable": unavailable, "dense": answer.diagnostics.dense }),
        )
    }

    async fn list(&self, limit: Option<i64>, cursor: Option<String>) -> Outcome {
        let scope = format!("tool-documents:{}", self.caller.org);
        let after = match cursor.map(|cursor| self.cursors.open::<Position>(&scope, &cursor)).transpose() {
            Ok(after) => after,
            Err(problem) => return Outcome::problem(&problem),
        };
        let limit = u32::try_from(limit.unwrap_or(20).clamp(1, 20)).unwrap_or(20);
        match self.knowledge.list_documents(self.caller, &DocumentQuery::default(), after, limit).await {
            Ok(page) => {
                let rows: Vec<Value> = page
                    .rows
                    .iter()
                    .map(|document| json!({ "kind": "document", "title": document.title, "ref": document.file, "documentId": document.id, "status": document.indexing.status.text() }))
                    .collect();
                let mut output = json!({ "rows": rows, "searched": ["document"], "unavailable": [] });
                if let Some(next) = page.next {
                    output["continueCursor"] = json!(self.cursors.sign(&scope, &next));
                }
                Outcome::done(output)
            }
            Err(problem) => Outcome::problem(&problem),
        }
    }

    async fn rag_fetch(&self, arguments: FetchArguments) -> Outcome {
        let Ok(file) = arguments.reference.parse::<FileId>() else {
            return Outcome::refused("`ref` must be the `ref` of a search row or of an attached file.");
        };
        let limit = arguments.limit.unwrap_or(MAX_WINDOW).clamp(1, MAX_WINDOW);
        match self.knowledge.fetch_text(&self.reach, file, arguments.offset.unwrap_or(0), limit).await {
            Ok(fetched) => {
                let mut output = json!({ "title": fetched.title, "ref": file, "text": fetched.text, "totalLength": fetched.total_length });
                if let Some(document) = fetched.document_id {
                    output["documentId"] = json!(document);
                }
                if let Some(next) = fetched.next_offset {
                    output["nextOffset"] = json!(next);
                }
                Outcome::done(output)
            }
            Err(problem) => Outcome::problem(&problem),
        }
    }

    async fn web_fetch(&self, arguments: WebArguments) -> Outcome {
        let limit = arguments.limit.unwrap_or(MAX_WINDOW).clamp(1, MAX_WINDOW);
        match self.web.read(&arguments.url).await {
            Ok(page) => {
                let total = page.text.chars().count() as u64;
                let offset = arguments.offset.unwrap_or(0);
                let text: String = page
                    .text
                    .chars()
                    .skip(usize::try_from(offset).unwrap_or(usize::MAX))
                    .take(usize::try_from(limit).unwrap_or(usize::MAX))
                    .collect();
                let end = offset.saturating_add(limit);
                let mut output = json!({ "title": page.title, "url": page.url, "text": text, "totalLength": total });
                if end < total {
                    output["nextOffset"] = json!(end);
                }
                Outcome::done(output)
            }
            Err(sentence) => Outcome::refused(sentence),
        }
    }
}

/// At most `limit` characters, with an ellipsis when something was cut.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
