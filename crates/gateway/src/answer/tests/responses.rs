//! The same for clients of the Responses interface.

use std::collections::BTreeMap;

use super::*;

/// The response that a client puts together from a stream, which must be well-formed for that: events
/// numbered without gaps, every item begun and ended, its pieces its text, and all of it again at the end.
fn response(stream: &str) -> Value {
    let events = events(stream);
    let mut items: BTreeMap<u64, Value> = BTreeMap::new();
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    let mut last = Value::Null;
    for (at, event) in events.iter().enumerate() {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(event.name), &json!(at)), "{stream}");
        let index = data["output_index"].as_u64().unwrap_or_default();
        match event.name.as_str() {
            "response.created" => assert_eq!(at, 0),
            "response.in_progress" => assert_eq!((at, &data["response"]["model"]), (1, &json!("p/m"))),
            "response.output_item.added" => {
                assert_eq!((index, &data["item"]["id"].is_string()), (items.len() as u64, &true));
                items.insert(index, Value::Null);
            }
            "response.output_item.done" => {
                let item = &data["item"];
                let whole =
                    [&item["content"][0]["text"], &item["summary"][0]["text"], &item["arguments"], &item["input"]];
                let whole = whole.iter().find_map(|text| text.as_str()).unwrap_or_default();
                assert_eq!(texts.remove(&index).unwrap_or_default(), whole, "{item}");
                assert_eq!(items.insert(index, item.clone()), Some(Value::Null), "an item ends once");
            }
            name if name.ends_with(".delta") => {
                assert_eq!(items[&index], Value::Null, "pieces of an open item");
                texts.entry(index).or_default().push_str(data["delta"].as_str().unwrap());
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert_eq!(at, events.len() - 1);
                last = data["response"].clone();
                assert_eq!(event.name, format!("response.{}", last["status"].as_str().unwrap()));
            }
            _ => {}
        }
    }
    if last["status"] != "failed" {
        assert_eq!(last["output"], items.values().cloned().collect::<Value>());
    }
    last
}

fn item<'a>(response: &'a Value, kind: &str) -> Vec<&'a Value> {
    response["output"].as_array().unwrap().iter().filter(|item| item["type"] == kind).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_way_to_a_client_gives_the_same_response(said in said(), size in 1_usize..9, cut in 1_usize..40, odd: bool, anthropic: bool) {
        let upstream = if anthropic { ANTHROPIC } else { OPENAI };
        let (stream, document) = (said.stream(upstream, size, odd), said.document(upstream));
        let mut counts = Vec::new();
        let mut through = |streamed: bool, from_document: bool| {
            let mut translation = translation(RESPONSES, upstream, streamed, from_document);
            let out = run(&mut translation, if from_document { &document } else { &stream }, cut).unwrap();
            counts.push(translation.tokens());
            if streamed { response(&out) } else { serde_json::from_str(&out).unwrap() }
        };
        let all = [through(true, false), through(false, true), through(true, true), through(false, false)];
        for other in &all[1..] {
            prop_assert_eq!(&all[0], other);
        }
        prop_assert!(counts.windows(2).all(|two| two[0] == two[1]), "a call costs the same streamed and unstreamed");
        let whole = &all[0];
        let text: String = item(whole, "message").iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
        prop_assert_eq!(text, said.text.clone());
        let thought: String = item(whole, "reasoning").iter().map(|item| item["summary"][0]["text"].as_str().unwrap()).collect();
        prop_assert_eq!(thought, said.thought.clone());
        let calls: Vec<(String, Value)> = item(whole, "function_call").iter()
            .map(|item| (item["name"].as_str().unwrap().to_owned(), serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap()))
            .collect();
        prop_assert_eq!(calls, said.calls.clone());
        prop_assert_eq!(&whole["status"], &json!(if said.length { "incomplete" } else { "completed" }));
        prop_assert_eq!(&whole["usage"]["total_tokens"], 17);
        prop_assert_eq!(&whole["usage"]["input_tokens_details"]["cached_tokens"], 5);
        let reasoned = if anthropic { 0 } else { 3 };
        prop_assert_eq!(&whole["usage"]["output_tokens_details"]["reasoning_tokens"], reasoned);

        // A model of this same interface: what it says is handed on, whichever form it takes.
        let real = |text: &str| text.replace("\"model\":\"p/m\"", "\"model\":\"real\"");
        let ours = run(&mut translation(RESPONSES, upstream, true, false), &stream, cut).unwrap();
        let theirs = (real(&ours), real(&whole.to_string()));
        for (streamed, from_document) in [(true, false), (false, true), (false, false)] {
            let mut same = translation(RESPONSES, RESPONSES, streamed, from_document);
            let out = run(&mut same, if from_document { &theirs.1 } else { &theirs.0 }, cut).unwrap();
            let got = if streamed { response(&out) } else { serde_json::from_str(&out).unwrap() };
            prop_assert_eq!(&got, whole);
            let tokens = same.tokens().unwrap();
            prop_assert_eq!((tokens.input, tokens.cached, tokens.output), (10, 5, 7));
            prop_assert!(same.decoder().relayed_tokens() >= 7);
        }
        let replayed = run(&mut translation(RESPONSES, RESPONSES, true, true), &theirs.1, cut).unwrap();
        let last: Value = serde_json::from_str(&events(&replayed).last().unwrap().data).unwrap();
        prop_assert_eq!(&last["response"], whole);
    }
}

#[test]
fn tools_come_back_in_the_form_that_the_client_gave_them() {
    let tool = |flat: &str, name: &str, namespace: Option<&str>, kind| Tool {
        flat: flat.into(),
        name: name.into(),
        namespace: namespace.map(str::to_owned),
        kind,
    };
    let mut told = told(RESPONSES, false);
    told.tools = vec![
        tool("apply_patch", "apply_patch", None, ToolKind::Custom),
        tool("local_shell", "local_shell", None, ToolKind::LocalShell),
        tool("agents__close", "close", Some("agents"), ToolKind::Function),
    ];
    let call = |index: usize, name: &str, arguments: &str| json!({ "index": index, "id": format!("c{index}"), "function": { "name": name, "arguments": arguments } });
    let calls = json!([
        call(0, "apply_patch", r#"{"input":"*** Begin"}"#),
        call(1, "local_shell", r#"{"command":["ls","-l"],"timeout_ms":9}"#),
        call(2, "agents__close", "{}"),
        call(3, "plain", "{}"),
    ]);
    let chunks = [
        json!({ "id": "1", "choices": [{ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" }] }),
        json!({ "id": "1", "choices": [], "usage": openai_usage() }),
    ];
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut translation = Translation::new(told, OPENAI, 1, true);
    translation.answered(false);
    let whole = response(&run(&mut translation, &body, 5).unwrap());
    let bare = |mut item: Value| {
        item.as_object_mut().unwrap().remove("id");
        item
    };
    let items: Vec<Value> = whole["output"].as_array().unwrap().iter().cloned().map(bare).collect();
    assert_eq!(
        items,
        [
            json!({ "type": "custom_tool_call", "status": "completed", "call_id": "c0", "name": "apply_patch", "input": "*** Begin" }),
            json!({ "type": "local_shell_call", "status": "completed", "call_id": "c1", "action": {
                "type": "exec", "command": ["ls", "-l"], "env": {}, "working_directory": null, "timeout_ms": 9 } }),
            json!({ "type": "function_call", "status": "completed", "call_id": "c2", "name": "close", "namespace": "agents", "arguments": "{}" }),
            json!({ "type": "function_call", "status": "completed", "call_id": "c3", "name": "plain", "arguments": "{}" }),
        ]
    );
}

#[test]
fn a_response_that_breaks_off_ends_with_its_failure() {
    let said = Said { thought: String::new(), text: "abcdef".into(), calls: vec![], length: false };
    let error =
        json!({ "error": { "message": "Overloaded", "type": "server_error", "code": "MODEL_API_UPSTREAM_ERROR" } });
    for upstream in [OPENAI, ANTHROPIC] {
        let stream = said.stream(upstream, 2, false);
        let mut one = translation(RESPONSES, upstream, true, false);
        let mut out = String::new();
        one.push(&stream.as_bytes()[..stream.find("cd").unwrap()], &mut out).unwrap();
        assert!(one.finish(&mut out).is_err());
        out.push_str(&one.failed(&error));
        let last = response(&out);
        assert_eq!((&last["status"], &last["error"]["message"]), (&json!("failed"), &json!("Overloaded")));
        assert!(!out.contains("response.completed"));
    }
    // Of a model of the same interface, whether or not anything came.
    let whole = run(&mut translation(RESPONSES, OPENAI, true, false), &said.stream(OPENAI, 2, false), 9).unwrap();
    for start in [0, whole.find("\"cd\"").unwrap()] {
        let mut one = translation(RESPONSES, RESPONSES, true, false);
        let mut out = String::new();
        one.push(&whole.as_bytes()[..start], &mut out).unwrap();
        assert!(one.finish(&mut out).is_err());
        out.push_str(&one.failed(&error));
        let last: Value = serde_json::from_str(&events(&out).last().unwrap().data).unwrap();
        assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
        assert_eq!(out.matches("response.created").count(), 2, "once as name and once as type");
    }
    let failed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}}}\n\n";
    let mut one = translation(RESPONSES, RESPONSES, true, false);
    let mut out = String::new();
    assert!(one.push(failed.as_bytes(), &mut out).unwrap_err().message.contains("slow down"));
    assert!(out.is_empty());
    let chunk = "data: {\"choices\":[]}\n\n";
    assert!(translation(RESPONSES, RESPONSES, true, false).push(chunk.as_bytes(), &mut out).is_err(), "another wire");
}

#[test]
fn a_body_that_ends_anywhere_is_complete_or_an_error_and_never_both() {
    let said = Said {
        thought: "hm".into(),
        text: "abc".into(),
        calls: vec![("f".into(), json!({ "q": "ä" }))],
        length: false,
    };
    let items = run(&mut translation(RESPONSES, OPENAI, true, false), &said.stream(OPENAI, 2, false), 64).unwrap();
    for (upstream, stream) in
        [(OPENAI, said.stream(OPENAI, 2, false)), (ANTHROPIC, said.stream(ANTHROPIC, 2, false)), (RESPONSES, items)]
    {
        for cut in (0..stream.len()).filter(|cut| stream.is_char_boundary(*cut)) {
            let mut one = translation(RESPONSES, upstream, true, false);
            let mut out = String::new();
            let read = one.push(&stream.as_bytes()[..cut], &mut out).and_then(|()| one.finish(&mut out));
            assert_eq!(read.is_ok(), out.contains("event: response.completed"), "{upstream:?} {cut}");
            if read.is_ok() {
                assert_eq!(response(&out)["status"], "completed");
            }
        }
    }
}

#[test]
fn an_answer_of_nothing_but_calls_ends() {
    let call = |index: usize| json!({ "choices": choice(json!({ "tool_calls": [{ "index": index, "id": format!("c{index}"), "function": { "name": "f" } }] }), None) });
    let body: String = (0..5_000).map(|index| format!("data: {}\n\n", call(index))).collect();
    for client in [RESPONSES, OPENAI, ANTHROPIC] {
        let mut one = translation(client, OPENAI, true, false);
        assert!(one.push(body.as_bytes(), &mut String::new()).unwrap_err().message.contains("more than 1024 tools"));
    }
}
