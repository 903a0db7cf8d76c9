//! Decides what the demo does with a request.

use serde_json::{Value, json};

use crate::language::{Language, key_words, words};
use crate::quote::{Passage, quotes};

/// The tool that the demo knows.
const SEARCH_TOOL: &str = "rag_search";
/// Rows that a search asks for.
const SEARCH_LIMIT: u32 = 6;
/// A longer message holds more than a question.
const LONG_MESSAGE_CHARS: usize = 800;
/// Most words of a search.
const MAX_QUERY_WORDS: usize = 16;

/// What the demo answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Text.
    Text(String),
    /// A call of a tool.
    ToolCall {
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
}

/// The demo's answer to the body of a chat-completions request.
#[must_use]
pub fn answer(request: &Value) -> Answer {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let role = |message: &Value, wanted: &str| message.get("role").and_then(Value::as_str) == Some(wanted);
    let system: String = messages
        .iter()
        .filter(|message| role(message, "system") || role(message, "developer"))
        .map(text_of)
        .collect::<Vec<_>>()
        .join("\n");
    let last_user = messages.iter().rposition(|message| role(message, "user"));
    let said = last_user.map(|at| text_of(&messages[at])).unwrap_or_default();
    let (question, beside) = split_message(&said);
    let language = Language::of(&question, Language::asked_for(&system).unwrap_or(Language::English));
    let after = &messages[last_user.map_or(0, |at| at + 1)..];
    let results: Vec<&Value> = after.iter().filter(|message| role(message, "tool")).collect();
    if !results.is_empty() {
        let passages: Vec<Passage> = results.iter().flat_map(|message| passages(&text_of(message))).collect();
        return Answer::Text(quoted(&question, &passages, &beside, language));
    }
    let offered = request.get("tools").and_then(Value::as_array).is_some_and(|tools| {
        tools.iter().any(|tool| tool.pointer("/function/name").and_then(Value::as_str) == Some(SEARCH_TOOL))
    });
    if !offered {
        let wants_title = system.to_lowercase().contains("title");
        if wants_title {
            return Answer::Text(title(&question));
        }
        return Answer::Text(if beside.is_empty() {
            language.introduction().to_owned()
        } else {
            quoted(&question, &[], &beside, language)
        });
    }
    if is_small_talk(&question) {
        return Answer::Text(language.introduction().to_owned());
    }
    Answer::ToolCall {
        name: SEARCH_TOOL.to_owned(),
        arguments: json!({ "action": "search", "query": query(&question), "limit": SEARCH_LIMIT }),
    }
}

fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    }
}

/// A long message is a question with something pasted or attached: the last paragraph with a
/// question mark, else the last one, is the question; the rest may be quoted.
///
/// What stands in an `untrusted-content` wrapper, and the notes in square brackets about attached
/// files, are not the person's words.
fn split_message(text: &str) -> (String, String) {
    const END: &str = "</untrusted-content>";
    if let Some(end) = text.rfind(END) {
        let (question, _) = split_message(&text[end + END.len()..]);
        let inside = text[..end].split("<untrusted-content").skip(1);
        let beside: Vec<&str> =
            inside.filter_map(|rest| Some(rest.split_once('>')?.1.split(END).next()?.trim())).collect();
        return (question, beside.join("\n\n"));
    }
    let own = text.split("\n\n").filter(|paragraph| !paragraph.trim_start().starts_with("[Attached "));
    let text = &own.collect::<Vec<_>>().join("\n\n");
    if text.chars().count() <= LONG_MESSAGE_CHARS {
        return (text.trim().to_owned(), String::new());
    }
    let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()).collect();
    let short = |paragraph: &&&str| paragraph.chars().count() <= LONG_MESSAGE_CHARS;
    let question = paragraphs
        .iter()
        .rev()
        .filter(short)
        .find(|paragraph| paragraph.contains('?'))
        .or_else(|| paragraphs.iter().rev().find(short))
        .copied();
    let question = question.map_or_else(|| text.chars().take(LONG_MESSAGE_CHARS).collect(), str::to_owned);
    let rest: Vec<&str> = paragraphs.into_iter().filter(|paragraph| *paragraph != question).collect();
    (question, rest.join("\n\n"))
}

fn query(question: &str) -> String {
    let keys = key_words(question);
    if keys.is_empty() {
        let all: Vec<String> = words(question).into_iter().take(MAX_QUERY_WORDS).collect();
        return if all.is_empty() { question.chars().take(200).collect() } else { all.join(" ") };
    }
    keys.into_iter().take(MAX_QUERY_WORDS).collect::<Vec<_>>().join(" ")
}

fn is_small_talk(question: &str) -> bool {
    let words = words(question);
    let greeting = |word: &String| {
        [
            "hi", "hello", "hey", "hallo", "moin", "servus", "guten", "gute", "tag", "morgen", "abend", "morning",
            "evening", "good", "salut", "bonjour", "bonsoir", "coucou", "test", "danke", "merci", "thanks", "thank",
            "you", "ok", "there", "zusammen",
        ]
        .contains(&word.as_str())
    };
    if words.is_empty() || (words.len() <= 4 && words.iter().all(greeting)) {
        return true;
    }
    let lower = question.to_lowercase();
    [
        "who are you",
        "what are you",
        "what can you do",
        "how do you work",
        "wer bist du",
        "was bist du",
        "wer sind sie",
        "was kannst du",
        "was können sie",
        "wie funktionierst du",
        "qui es-tu",
        "qui êtes-vous",
        "que peux-tu faire",
        "que pouvez-vous faire",
    ]
    .iter()
    .any(|phrase| lower.contains(phrase))
}

/// The rows of a search result, which may stand inside a wrapper of text.
fn passages(content: &str) -> Vec<Passage> {
    let Some(value) = json_inside(content) else { return Vec::new() };
    let output = value.get("output").unwrap_or(&value);
    let rows = output.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    rows.iter()
        .filter_map(|row| {
            let text = ["snippet", "passage", "text"].iter().find_map(|key| row.get(*key).and_then(Value::as_str))?;
            Some(Passage {
                cite: row.get("cite").and_then(Value::as_u64),
                title: row.get("title").and_then(Value::as_str).unwrap_or_default().to_owned(),
                text: text.to_owned(),
            })
        })
        .collect()
}

fn json_inside(text: &str) -> Option<Value> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(start..=end)?).ok()
}

fn quoted(question: &str, found: &[Passage], beside: &str, language: Language) -> String {
    let mut chosen = quotes(question, found);
    let mut opening = language.documents_say(0);
    if chosen.first().is_none_or(|quote| !quote.fits) && !beside.is_empty() {
        let own = [Passage { cite: None, title: String::new(), text: beside.to_owned() }];
        let from_message = quotes(question, &own);
        if from_message.first().is_some_and(|quote| quote.fits) {
            chosen = from_message;
            opening = language.message_says();
        }
    }
    let Some(first) = chosen.first() else { return language.nothing().to_owned() };
    let documents: std::collections::HashSet<&str> = chosen.iter().map(|quote| quote.title.as_str()).collect();
    if !first.fits {
        opening = language.closest();
    } else if first.cite.is_some() || !first.title.is_empty() {
        opening = language.documents_say(documents.len());
    }
    let mut text = format!("{opening}\n\n");
    for quote in &chosen {
        let mark = quote.cite.map(|cite| format!(" [{cite}]")).unwrap_or_default();
        text.push_str(&format!("> {}{mark}\n\n", quote.text));
    }
    text.push_str(language.footer());
    text
}

/// The first words of a message as a title.
fn title(question: &str) -> String {
    let title: Vec<&str> = question.split_whitespace().take(7).collect();
    let title = title.join(" ");
    let title: String = title.trim_end_matches(['.', '?', '!', ',', ';', ':']).chars().take(60).collect();
    if title.is_empty() { "Chat".to_owned() } else { title }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Value, tools: bool) -> Value {
        let tools =
            if tools { json!([{ "type": "function", "function": { "name": "rag_search" } }]) } else { json!([]) };
        json!({ "model": "tale-demo", "messages": messages, "tools": tools })
    }

    fn text(answer: Answer) -> String {
        let Answer::Text(text) = answer else { panic!("{answer:?}") };
        text
    }

    #[test]
    fn a_question_is_first_looked_up() {
        let asked = answer(&request(
            json!([{ "role": "user", "content": "What is the notice period in the contract?" }]),
            true,
        ));
        assert_eq!(
            asked,
            Answer::ToolCall {
                name: "rag_search".into(),
                arguments: json!({ "action": "search", "query": "notice period contract", "limit": 6 })
            }
        );
    }

    #[test]
    fn results_are_quoted_with_their_marks_in_the_language_of_the_question() {
        let rows = json!({ "rows": [
            { "cite": 3, "title": "Vertrag.pdf", "snippet": "Die Kündigungsfrist beträgt drei Monate. Der Urlaub beträgt 30 Tage." },
            { "cite": 4, "title": "Küche.md", "snippet": "Der Kühlschrank wird freitags geputzt." },
        ], "searched": ["document"], "dense": false });
        let said = text(answer(&request(
            json!([
                { "role": "user", "content": "Wie lang ist die Kündigungsfrist?" },
                { "role": "assistant", "content": null, "tool_calls": [] },
                { "role": "tool", "tool_call_id": "c", "content": format!("<untrusted>\n{rows}\n</untrusted>") },
            ]),
            true,
        )));
        assert!(
            said.starts_with("In Ihrem Dokument steht:\n\n> Die Kündigungsfrist beträgt drei Monate. [3]\n\n"),
            "{said}"
        );
        assert!(!said.contains("[4]"));
        assert!(said.contains("kein Sprachmodell"));
    }

    #[test]
    fn nothing_found_is_said_as_such() {
        let messages = json!([{ "role": "user", "content": "Quel est le délai ?" }, { "role": "tool", "content": "{\"rows\":[]}" }]);
        assert_eq!(text(answer(&request(messages, true))), Language::French.nothing());
    }

    #[test]
    fn greetings_and_questions_about_itself_are_not_looked_up() {
        for said in ["Hello!", "Guten Morgen", "Was kannst du?", "", "bonjour"] {
            assert!(
                matches!(answer(&request(json!([{ "role": "user", "content": said }]), true)), Answer::Text(_)),
                "{said}"
            );
        }
    }

    #[test]
    fn attached_files_are_not_the_question() {
        let said = "[Attached file `a.md`]\n<untrusted-content source=\"a.md\">\nThe code is heron.\n</untrusted-content>\n\n[Attached image `x.png`: it cannot be shown to this model.]\n\nWhat is the code?";
        assert_eq!(split_message(said), ("What is the code?".to_owned(), "The code is heron.".to_owned()));
    }

    #[test]
    fn the_previous_question_s_results_are_not_reused() {
        let messages = json!([
            { "role": "user", "content": "What is the notice period?" },
            { "role": "tool", "content": "{\"rows\":[{\"cite\":1,\"snippet\":\"Three months notice period.\"}]}" },
            { "role": "assistant", "content": "Three months." },
            { "role": "user", "content": "And the holiday allowance?" },
        ]);
        assert!(matches!(answer(&request(messages, true)), Answer::ToolCall { .. }));
    }

    #[test]
    fn text_in_the_message_itself_is_quoted_when_the_documents_have_nothing() {
        let pasted = format!(
            "The warranty lasts two years. {}\n\nHow long does the warranty last?",
            "Filler sentence number one. ".repeat(60)
        );
        let messages = json!([{ "role": "user", "content": pasted }, { "role": "tool", "content": "{\"rows\":[]}" }]);
        let said = text(answer(&request(messages, true)));
        assert!(said.starts_with("Your message says:\n\n> The warranty lasts two years."), "{said}");
    }

    #[test]
    fn a_title_is_the_beginning_of_the_message() {
        let messages = json!([{ "role": "system", "content": "Write a short title." }, { "role": "user", "content": "What is the notice period in our contract with ACME?" }]);
        assert_eq!(text(answer(&request(messages, false))), "What is the notice period in our");
    }
}
