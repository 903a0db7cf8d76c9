//! What a client reads is what the upstream said, whichever wires are between them, however the
//! bytes arrive, streamed or not.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tale_models::ModelError;
use tale_models::wire::{SseEvent, SseParser};

use super::{Tokens, Told, Translation};
use crate::request::PLAIN_REASONING;
use crate::request::{Tool, ToolKind};
use crate::wire::Wire;

mod responses;

const OPENAI: Wire = Wire::Chat;
const ANTHROPIC: Wire = Wire::Messages;
const RESPONSES: Wire = Wire::Responses;

/// What the model says, as both wires can.
#[derive(Debug, Clone, Default)]
struct Said {
    thought: String,
    text: String,
    calls: Vec<(String, Value)>,
    length: bool,
}

fn said() -> impl Strategy<Value = Said> {
    let arguments = prop::collection::btree_map("[a-z]{1,4}", "[ -~äß€🦀]{0,8}", 0..3);
    let calls = prop::collection::vec(("[a-z]{1,6}", arguments.prop_map(|map| json!(map))), 0..3);
    ("[ -~ä🦀]{0,12}", "[ -~äß€🦀\n]{0,24}", calls, any::<bool>()).prop_map(|(thought, text, calls, length)| {
        // Without anything there is no answer to compare.
        let text = if text.is_empty() && calls.is_empty() { "x".to_owned() } else { text };
        Said { thought, text, calls, length }
    })
}

fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

impl Said {
    fn finish(&self) -> (&'static str, &'static str) {
        match (self.length, self.calls.is_empty()) {
            (true, _) => ("length", "max_tokens"),
            (false, false) => ("tool_calls", "tool_use"),
            (false, true) => ("stop", "end_turn"),
        }
    }

    /// The answer as a stream of the OpenAI format. `odd` = parallel calls interleaved, usage beside
    /// the last choice, no `[DONE]`.
    fn openai_stream(&self, size: usize, odd: bool) -> String {
        let mut out = String::from(": comment\n\n");
        let mut chunk = |choices: Value, usage: Value| {
            let data = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "real", "choices": choices, "usage": usage });
            out.push_str(&format!("data: {data}\r\n\r\n"));
        };
        let delta = |delta: Value| json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
        chunk(delta(json!({ "role": "assistant", "content": "" })), Value::Null);
        pieces(&self.thought, size)
            .iter()
            .for_each(|text| chunk(delta(json!({ "reasoning_content": text })), Value::Null));
        pieces(&self.text, size).iter().for_each(|text| chunk(delta(json!({ "content": text })), Value::Null));
        let start = |at: usize| json!({ "index": at, "id": format!("call_{at}"), "type": "function", "function": { "name": self.calls[at].0, "arguments": "" } });
        let arguments: Vec<Vec<String>> =
            self.calls.iter().map(|(_, arguments)| pieces(&arguments.to_string(), size)).collect();
        let more = |at: usize, text: &str| {
            delta(json!({ "tool_calls": [{ "index": at, "function": { "arguments": text } }] }))
        };
        if odd {
            (0..self.calls.len()).for_each(|at| chunk(delta(json!({ "tool_calls": [start(at)] })), Value::Null));
            for round in 0..arguments.iter().map(Vec::len).max().unwrap_or(0) {
                for (at, texts) in arguments.iter().enumerate() {
                    if let Some(text) = texts.get(round) {
                        chunk(more(at, text), Value::Null);
                    }
                }
            }
        } else {
            for (at, texts) in arguments.iter().enumerate() {
                chunk(delta(json!({ "tool_calls": [start(at)] })), Value::Null);
                texts.iter().for_each(|text| chunk(more(at, text), Value::Null));
            }
        }
        let end = json!([{ "index": 0, "delta": {}, "finish_reason": self.finish().0 }]);
        if odd {
            chunk(end, openai_usage());
        } else {
            chunk(end, Value::Null);
            chunk(json!([]), openai_usage());
            out.push_str("data: [DONE]\n\n");
        }
        out
    }

    fn openai_document(&self) -> String {
        let mut message = json!({ "role": "assistant", "content": self.text });
        if !self.thought.is_empty() {
            message["reasoning_content"] = json!(self.thought);
        }
        if !self.calls.is_empty() {
            let calls = self.calls.iter().enumerate().map(|(at, (name, arguments))| {
                json!({ "id": format!("call_{at}"), "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })
            });
            message["tool_calls"] = calls.collect();
        }
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "real",
            "choices": [{ "index": 0, "message": message, "finish_reason": self.finish().0 }], "usage": openai_usage(),
        })
        .to_string()
    }

    fn blocks(&self) -> Vec<Value> {
        let mut blocks = Vec::new();
        if !self.thought.is_empty() {
            blocks.push(json!({ "type": "thinking", "thinking": self.thought, "signature": "sig" }));
        }
        if !self.text.is_empty() {
            blocks.push(json!({ "type": "text", "text": self.text }));
        }
        for (at, (name, input)) in self.calls.iter().enumerate() {
            blocks.push(json!({ "type": "tool_use", "id": format!("call_{at}"), "name": name, "input": input }));
        }
        blocks
    }

    fn anthropic_stream(&self, size: usize) -> String {
        let mut out = String::new();
        let mut event =
            |data: Value| out.push_str(&format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
        let usage = json!({ "input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1 });
        event(
            json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant", "model": "real", "content": [], "usage": usage } }),
        );
        event(json!({ "type": "ping" }));
        for (at, block) in self.blocks().into_iter().enumerate() {
            let (empty, deltas): (Value, Vec<Value>) = match block["type"].as_str().unwrap() {
                "thinking" => {
                    let mut deltas: Vec<Value> = pieces(&self.thought, size)
                        .iter()
                        .map(|text| json!({ "type": "thinking_delta", "thinking": text }))
                        .collect();
                    deltas.push(json!({ "type": "signature_delta", "signature": "sig" }));
                    (json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas)
                }
                "text" => (
                    json!({ "type": "text", "text": "" }),
                    pieces(&self.text, size).iter().map(|text| json!({ "type": "text_delta", "text": text })).collect(),
                ),
                _ => {
                    let input = block["input"].to_string();
                    let deltas = if input == "{}" { Vec::new() } else { pieces(&input, size) };
                    let mut empty = block.clone();
                    empty["input"] = json!({});
                    (
                        empty,
                        deltas.iter().map(|text| json!({ "type": "input_json_delta", "partial_json": text })).collect(),
                    )
                }
            };
            event(json!({ "type": "content_block_start", "index": at, "content_block": empty }));
            for delta in deltas {
                event(json!({ "type": "content_block_delta", "index": at, "delta": delta }));
            }
            event(json!({ "type": "content_block_stop", "index": at }));
        }
        event(
            json!({ "type": "message_delta", "delta": { "stop_reason": self.finish().1, "stop_sequence": null }, "usage": { "output_tokens": 7 } }),
        );
        event(json!({ "type": "message_stop" }));
        out
    }

    fn anthropic_document(&self) -> String {
        let usage = json!({ "input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 7 });
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "real", "content": self.blocks(),
            "stop_reason": self.finish().1, "stop_sequence": null, "usage": usage,
        })
        .to_string()
    }

    fn stream(&self, wire: Wire, size: usize, odd: bool) -> String {
        if wire == OPENAI { self.openai_stream(size, odd) } else { self.anthropic_stream(size) }
    }

    fn document(&self, wire: Wire) -> String {
        if wire == OPENAI { self.openai_document() } else { self.anthropic_document() }
    }
}

fn openai_usage() -> Value {
    json!({ "prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, "prompt_tokens_details": { "cached_tokens": 5 }, "completion_tokens_details": { "reasoning_tokens": 3 } })
}

fn told(wire: Wire, usage_wanted: bool) -> Told {
    let custom = Tool { flat: "custom".into(), name: "custom".into(), namespace: None, kind: ToolKind::Custom };
    Told { wire, model: "p/m".into(), created: 1, usage_wanted, tools: vec![custom], echoed: Map::new() }
}

fn translation(client: Wire, upstream: Wire, streamed: bool, document: bool) -> Translation {
    let mut translation = Translation::new(told(client, true), upstream, 1, streamed);
    translation.answered(document);
    translation
}

fn run(translation: &mut Translation, body: &str, cut: usize) -> Result<String, ModelError> {
    let mut out = String::new();
    for piece in body.as_bytes().chunks(cut.max(1)) {
        translation.push(piece, &mut out)?;
    }
    translation.finish(&mut out)?;
    Ok(out)
}

fn events(stream: &str) -> Vec<SseEvent> {
    let (mut parser, mut events) = (SseParser::new(1 << 20), Vec::new());
    parser.push(stream.as_bytes(), &mut events).unwrap();
    parser.finish(&mut events).unwrap();
    events
}

/// The message that a client of `interface` puts together from a stream; the streams of both
/// interfaces must be well-formed for that.
fn gathered(interface: Wire, stream: &str) -> Value {
    if interface == OPENAI { gathered_openai(stream) } else { gathered_anthropic(stream) }
}

fn gathered_openai(stream: &str) -> Value {
    let events = events(stream);
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let (mut message, mut calls, mut finish, mut usage) = (Map::new(), Vec::<Value>::new(), Value::Null, Value::Null);
    let append = |message: &mut Map<String, Value>, name: &str, text: &Value| {
        if let Some(text) = text.as_str() {
            let held = message.entry(name).or_insert(json!("")).as_str().unwrap().to_owned();
            message.insert(name.to_owned(), json!(held + text));
        }
    };
    for event in &events[..events.len() - 1] {
        let chunk: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(chunk["model"], "p/m");
        if chunk["usage"].is_object() {
            usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        for name in ["content", "reasoning_content"] {
            append(&mut message, name, &choice["delta"][name]);
        }
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = call["index"].as_u64().unwrap() as usize;
            if at == calls.len() {
                calls.push(json!({ "id": call["id"], "name": call["function"]["name"], "arguments": "" }));
            }
            let held = calls[at]["arguments"].as_str().unwrap().to_owned();
            calls[at]["arguments"] = json!(held + call["function"]["arguments"].as_str().unwrap_or_default());
        }
        if choice["finish_reason"].is_string() {
            finish = choice["finish_reason"].clone();
        }
    }
    json!({ "text": message.get("content").cloned().unwrap_or_default(), "thought": message.get("reasoning_content"), "calls": calls, "finish": finish, "usage": usage })
}

fn gathered_anthropic(stream: &str) -> Value {
    let events = events(stream);
    assert_eq!((events[0].name.as_str(), events.last().unwrap().name.as_str()), ("message_start", "message_stop"));
    let (mut blocks, mut open, mut reason, mut usage) = (Vec::<Value>::new(), false, Value::Null, Value::Null);
    let mut json_text = String::new();
    for event in &events {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(data["type"], event.name);
        match event.name.as_str() {
            "message_start" => {
                assert_eq!(data["message"]["model"], "p/m");
                usage = data["message"]["usage"].clone();
            }
            "content_block_start" => {
                assert!(!open, "blocks do not overlap");
                assert_eq!(data["index"], blocks.len());
                open = true;
                json_text.clear();
                blocks.push(data["content_block"].clone());
            }
            "content_block_delta" => {
                assert!(open && data["index"] == blocks.len() - 1);
                let (block, delta) = (blocks.last_mut().unwrap(), &data["delta"]);
                for name in ["text", "thinking", "signature"] {
                    if let Some(text) = delta[name].as_str() {
                        block[name] = json!(block[name].as_str().unwrap().to_owned() + text);
                    }
                }
                json_text.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            "content_block_stop" => {
                open = false;
                if blocks.last().unwrap()["type"] == "tool_use" && !json_text.is_empty() {
                    blocks.last_mut().unwrap()["input"] = serde_json::from_str(&json_text).unwrap();
                }
            }
            "message_delta" => {
                reason = data["delta"]["stop_reason"].clone();
                usage.as_object_mut().unwrap().extend(data["usage"].as_object().unwrap().clone());
            }
            "message_stop" | "ping" => {}
            other => panic!("{other}"),
        }
    }
    assert!(!open);
    json!({ "blocks": blocks, "finish": reason, "usage": usage })
}

/// The same of a whole answer.
fn read(interface: Wire, document: &str) -> Value {
    let whole: Value = serde_json::from_str(document).unwrap();
    assert_eq!(whole["model"], "p/m");
    if interface == ANTHROPIC {
        return json!({ "blocks": whole["content"], "finish": whole["stop_reason"], "usage": whole["usage"] });
    }
    let message = &whole["choices"][0]["message"];
    let calls: Vec<Value> = message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| json!({ "id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"] }))
        .collect();
    json!({
        "text": message["content"].as_str().unwrap_or_default(), "thought": message["reasoning_content"], "calls": calls,
        "finish": whole["choices"][0]["finish_reason"], "usage": whole["usage"],
    })
}

proptest! {
    #[test]
    fn streamed_and_whole_answers_say_the_same_on_every_pair_of_wires(
        said in said(), size in 1_usize..6, cut in 1_usize..40, odd: bool,
    ) {
        for (client, upstream) in [(OPENAI, OPENAI), (OPENAI, ANTHROPIC), (ANTHROPIC, OPENAI), (ANTHROPIC, ANTHROPIC)] {
            let (stream, document) = (said.stream(upstream, size, odd), said.document(upstream));
            let mut counts = Vec::new();
            let mut through = |streamed: bool, from_document: bool| {
                let mut translation = translation(client, upstream, streamed, from_document);
                let out = run(&mut translation, if from_document { &document } else { &stream }, cut).unwrap();
                counts.push(translation.tokens());
                if streamed { gathered(client, &out) } else { read(client, &out) }
            };
            // The last two are upstreams that answer in another form than was asked for.
            let all = [through(true, false), through(false, true), through(true, true), through(false, false)];
            for other in &all[1..] {
                prop_assert_eq!(&all[0], other, "{:?} from {:?}", client, upstream);
            }
            let expected = match client {
                Wire::Chat | Wire::Responses => json!({ "text": said.text, "finish": said.finish().0 }),
                Wire::Messages => {
                    let mut blocks = said.blocks();
                    if upstream == OPENAI && !said.thought.is_empty() {
                        blocks[0]["signature"] = json!(PLAIN_REASONING);
                    }
                    json!({ "blocks": blocks, "finish": said.finish().1 })
                }
            };
            for (name, value) in expected.as_object().unwrap() {
                prop_assert_eq!(&all[0][name], value);
            }
            // A call costs the same streamed and unstreamed.
            let tokens = Tokens { input: 10, cached: 5, cache_written: if upstream == ANTHROPIC { 2 } else { 0 }, output: 7, reasoning: if upstream == OPENAI { 3 } else { 0 } };
            prop_assert_eq!(counts, vec![Some(tokens); 4]);
        }
    }

    #[test]
    fn no_bytes_make_it_fail_badly(body in prop::collection::vec(any::<u8>(), 0..200), lines in "(data: |event: |\\{|\\}|\\[|\\]|\"choices\"|\"delta\"|:|,|null|1|\n){0,40}") {
        for (client, upstream) in [(OPENAI, ANTHROPIC), (ANTHROPIC, OPENAI), (OPENAI, OPENAI), (ANTHROPIC, ANTHROPIC), (RESPONSES, OPENAI), (RESPONSES, ANTHROPIC), (RESPONSES, RESPONSES)] {
            for document in [true, false] {
                let mut one = translation(client, upstream, true, document);
                let mut out = String::new();
                let _ = one.push(&body, &mut out).and_then(|()| one.push(lines.as_bytes(), &mut out)).and_then(|()| one.finish(&mut out));
            }
        }
    }
}

/// Events of the OpenAI format through to a client.
fn stream_of(client: Wire, usage_wanted: bool, chunks: &[Value]) -> Result<String, ModelError> {
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut translation = Translation::new(told(client, usage_wanted), OPENAI, 1, true);
    translation.answered(false);
    run(&mut translation, &body, usize::MAX)
}

fn choice(delta: Value, finish: Option<&str>) -> Value {
    json!([{ "index": 0, "delta": delta, "finish_reason": finish }])
}

#[test]
fn usage_reaches_only_who_asked_for_it() {
    let beside = [
        json!({ "id": "1", "model": "real", "choices": choice(json!({ "content": "a" }), None), "usage": null, "extra": 1.50 }),
        json!({ "id": "1", "model": "real", "choices": choice(json!({}), Some("stop")), "usage": openai_usage() }),
    ];
    let alone = [
        json!({ "id": "1", "model": "real", "choices": choice(json!({ "content": "a" }), Some("stop")) }),
        json!({ "id": "1", "model": "real", "choices": [], "usage": openai_usage() }),
    ];
    for chunks in [beside, alone] {
        assert_eq!(gathered(OPENAI, &stream_of(OPENAI, true, &chunks).unwrap())["usage"], openai_usage());
        let without = stream_of(OPENAI, false, &chunks).unwrap();
        assert!(!without.contains("prompt_tokens"), "{without}");
        assert_eq!(gathered(OPENAI, &without)["finish"], "stop");
    }
}

#[test]
fn free_text_tools_and_vendor_fields_survive_the_other_wire() {
    let block = |at: usize, name: &str, input: &str| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{at},\"content_block\":{{\"type\":\"tool_use\",\"id\":\"t{at}\",\"name\":\"{name}\",\"input\":{{}}}}}}\n\n\
            data: {}\n\ndata: {{\"type\":\"content_block_stop\",\"index\":{at}}}\n\n",
            json!({ "type": "content_block_delta", "index": at, "delta": { "type": "input_json_delta", "partial_json": input } })
        )
    };
    let stream = format!(
        "data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"m\",\"usage\":{{\"input_tokens\":1}}}}}}\n\n{}{}data: {}\n\n",
        block(0, "custom", "{\"input\":\"SELECT 1\"}"),
        block(1, "f", "{}"),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 2 } }),
    );
    let out = run(&mut translation(OPENAI, ANTHROPIC, true, false), &stream, 7).unwrap();
    assert!(
        out.contains("\"custom\":{\"input\":\"SELECT 1\",\"name\":\"custom\"}") && out.contains("\"type\":\"custom\""),
        "{out}"
    );
    let call = json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "f", "arguments": "{}" }, "extra_content": { "google": { "thought_signature": "s" } } }] });
    let out = stream_of(
        ANTHROPIC,
        false,
        &[json!({ "choices": choice(call, Some("stop")) }), json!({ "choices": [], "usage": openai_usage() })],
    )
    .unwrap();
    let message = gathered(ANTHROPIC, &out);
    assert_eq!(message["blocks"][0]["data"], "tale-vendor:{\"google\":{\"thought_signature\":\"s\"}}");
    // "stop" beside a call means that the call is to be made.
    assert_eq!((&message["blocks"][1]["name"], &message["finish"]), (&json!("f"), &json!("tool_use")));
}

#[test]
fn calls_without_numbers_or_ids_are_told_apart() {
    let call = |call: Value| json!({ "choices": choice(json!({ "tool_calls": [call] }), None) });
    let end = json!({ "choices": choice(json!({}), Some("tool_calls")), "usage": openai_usage() });
    for calls in [
        [
            json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{}" } }),
            json!({ "index": 0, "id": "b", "function": { "name": "g", "arguments": { "x": 1 } } }),
        ],
        [
            json!({ "function": { "name": "f", "arguments": "{}" } }),
            json!({ "function": { "name": "g", "arguments": "{\"x\":1}" } }),
        ],
    ] {
        let [first, second] = calls;
        let out = stream_of(ANTHROPIC, false, &[call(first), call(second), end.clone()]).unwrap();
        let blocks = &gathered(ANTHROPIC, &out)["blocks"];
        assert_eq!(
            (&blocks[0]["name"], &blocks[1]["name"], &blocks[1]["input"]),
            (&json!("f"), &json!("g"), &json!({ "x": 1 }))
        );
        assert_ne!(blocks[0]["id"], blocks[1]["id"]);
    }
}

#[test]
fn what_breaks_off_or_is_foreign_is_an_error() {
    let text = json!({ "choices": choice(json!({ "content": "a" }), None) });
    assert!(
        stream_of(ANTHROPIC, false, std::slice::from_ref(&text))
            .unwrap_err()
            .message
            .contains("before the answer was complete")
    );
    assert!(
        stream_of(OPENAI, false, &[text.clone(), json!({ "error": { "message": "overloaded" } })])
            .unwrap_err()
            .message
            .contains("overloaded")
    );
    assert!(stream_of(OPENAI, false, &[json!({ "type": "message_start" })]).is_err());
    assert!(run(&mut translation(OPENAI, OPENAI, false, true), "{\"detail\":\"not found\"}", 9).is_err());
    assert!(run(&mut translation(OPENAI, ANTHROPIC, true, false), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", 9).is_err());
    let mut endless = translation(OPENAI, OPENAI, true, false);
    let line = [b'x'; 1 << 16];
    let mut out = String::new();
    let refused = (0..1 << 14).find_map(|_| endless.push(&line, &mut out).err());
    assert!(refused.unwrap().message.contains("broken off") && out.is_empty());
}

#[test]
fn a_body_that_ends_anywhere_is_complete_or_an_error_and_never_both() {
    let said = Said {
        thought: "hm".into(),
        text: "abc".into(),
        calls: vec![("f".into(), json!({ "q": "ä" }))],
        length: false,
    };
    for (client, upstream) in [(OPENAI, OPENAI), (OPENAI, ANTHROPIC), (ANTHROPIC, OPENAI), (ANTHROPIC, ANTHROPIC)] {
        let stream = said.stream(upstream, 2, false);
        let whole = gathered(client, &run(&mut translation(client, upstream, true, false), &stream, 64).unwrap());
        let ends = ["data: [DONE]\n\n", "data: {\"type\":\"message_stop\"}\n\n"];
        for cut in (0..stream.len()).filter(|cut| stream.is_char_boundary(*cut)) {
            let mut one = translation(client, upstream, true, false);
            let mut out = String::new();
            let read = one.push(&stream.as_bytes()[..cut], &mut out).and_then(|()| one.finish(&mut out));
            assert_eq!(read.is_ok(), ends.iter().any(|end| out.ends_with(end)), "{client:?} {upstream:?} {cut}");
            if read.is_ok() {
                assert_eq!(gathered(client, &out)["finish"], whole["finish"]);
            }
        }
    }
}

#[test]
fn other_answers_to_the_same_request_are_handed_on_and_counted() {
    let chunk = |index: u64, text: &str, finish: Option<&str>| json!({ "model": "real", "choices": [{ "index": index, "delta": { "content": text }, "finish_reason": finish }] });
    let body: String = [chunk(0, "abcdefgh", Some("stop")), chunk(1, "ijklmnop", None), chunk(1, "", Some("stop"))]
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    let mut two = Translation::new(told(OPENAI, false), OPENAI, 2, true);
    two.answered(false);
    let mut out = String::new();
    two.push(body.as_bytes(), &mut out).unwrap();
    assert!(two.decoder().finished());
    assert_eq!(two.decoder().relayed_tokens(), 4);
    assert_eq!(out.matches("\"model\":\"p/m\"").count(), 3);
}

#[test]
fn one_answer_where_two_were_asked_for_is_complete_with_the_stream() {
    let chunk =
        json!({ "model": "real", "choices": [{ "index": 0, "delta": { "content": "abc" }, "finish_reason": "stop" }] });
    for client in [OPENAI, ANTHROPIC] {
        let mut one = Translation::new(told(client, false), OPENAI, 2, true);
        one.answered(false);
        let mut out = String::new();
        one.push(format!("data: {chunk}\n\n").as_bytes(), &mut out).unwrap();
        assert!(!one.decoder().finished(), "the other one may come");
        one.push(b"data: [DONE]\n\n", &mut out).unwrap();
        one.finish(&mut out).unwrap();
    }
}

#[test]
fn a_whole_answer_of_the_other_format_is_no_answer() {
    let said = Said { text: "abc".into(), ..Said::default() };
    for (upstream, other) in [(OPENAI, ANTHROPIC), (ANTHROPIC, OPENAI)] {
        for client in [OPENAI, ANTHROPIC] {
            let mut one = translation(client, upstream, false, true);
            let mut out = String::new();
            let body = said.document(other);
            let read = one.push(body.as_bytes(), &mut out).and_then(|()| one.finish(&mut out));
            assert!(read.unwrap_err().message.contains("format"), "{client:?} {upstream:?}");
            assert!(out.is_empty(), "{out}");
        }
    }
}
