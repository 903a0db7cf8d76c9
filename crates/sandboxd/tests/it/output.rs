//! Output: complete, in order, or explicitly broken.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tale_sandbox_wire::event::{Event, FailCode, Stream};

use crate::session::{Session, command_line, exit, gone, is_alive};

fn line(value: &serde_json::Value) -> serde_json::Value {
    json!({"b64": STANDARD.encode(format!("{value}\n"))})
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_command_is_followed_and_can_be_read_again() {
    let session = Session::start();
    let (out, err, end) = session.run("e", "echo hi; echo no >&2; exit 3").await;
    assert_eq!((out.as_str(), err.as_str()), ("hi\n", "no\n"));
    assert_eq!(exit(&end).exit_code, 3);
    assert!(exit(&end).duration_ms > 0);
    let mut again = session.attach("e", 0).await;
    let mut events = Vec::new();
    while let Some(numbered) = again.next().await {
        events.push(numbered);
    }
    assert_eq!(events[0].event, Event::ReplayStart);
    assert_eq!(events[events.len() - 1].event, Event::ReplayComplete { through_seq: 4 });
    assert_eq!(events[1].seq, Some(1));
    assert_eq!(session.get("/execs/e").await.1["exitCode"], 3);
    assert_eq!(session.get("/execs/unknown").await, (404, json!({"state": "gone"})));
    for since in ["x", "-1", "5", "", "99999999999999999999999"] {
        assert_eq!(session.get(&format!("/execs/e/attach?sinceSeq={since}")).await.0, 400, "{since}");
    }
}

#[tokio::test]
async fn what_cannot_run_says_why() {
    let session = Session::start();
    let code = |event: Event| match event {
        Event::Fail { code, .. } => code,
        other => panic!("{other:?}"),
    };
    std::os::unix::fs::symlink("/etc", session.path("workspace/out")).unwrap();
    std::os::unix::fs::symlink("workspace", session.path("in")).unwrap();
    session.write("file", "");
    for cwd in ["workspace/out", "missing", "/etc", "..", "file", "/agent/../etc"] {
        let end = session.exec(json!({"execId": "cwd", "shell": "pwd", "cwd": cwd})).await.finish().await.2;
        assert_eq!(code(end), FailCode::InvalidCwd, "{cwd}");
    }
    let (out, _, _) = session.exec(json!({"execId": "cwd", "shell": "pwd", "cwd": "/agent/in"})).await.finish().await;
    assert_eq!(out.trim_end(), session.path("workspace").canonicalize().unwrap().to_str().unwrap());
    assert_eq!(code(session.run("cwd", "true").await.2), FailCode::DuplicateExec);
    let missing = session.exec(json!({"execId": "m", "command": ["no-such-program"]})).await.finish().await.2;
    assert_eq!(code(missing), FailCode::RuntimeError);
    let mut running = Vec::new();
    for number in 0..4 {
        let mut output = session.shell(&format!("r{number}"), "echo up; sleep 1000").await;
        output.until("up").await;
        running.push(output);
    }
    assert_eq!(code(session.run("fifth", "true").await.2), FailCode::ExecLimit);
    assert_eq!(session.post("/execs/r0/cancel", json!({})).await.1["killed"], true);
    let ended = running.remove(0).finish().await.2;
    assert_eq!((exit(&ended).cancelled, exit(&ended).exit_code), (true, 143));
    assert_eq!(session.post("/execs/r0/cancel", json!({})).await.1["killed"], false);
    assert_eq!(exit(&session.run("fifth", "true").await.2).exit_code, 0);
}

#[tokio::test]
async fn a_daemon_that_is_killed_loses_nothing() {
    let mut session = Session::start();
    session.post("/env", json!({"set": {"KEPT": "yes"}})).await;
    let generation = session.post("/acquire", json!({})).await.1["generation"].clone();
    let script = "echo up; while read line; do echo \"got $line\"; done; echo bye";
    let body = json!({"execId": "e", "shell": script, "stdinMode": "hold"});
    let mut before = session.exec(body).await;
    before.until("up").await;
    session.post("/execs/e/stdin", line(&json!(1))).await;
    let seen = before.until("got 1").await;
    for round in 2..5 {
        kill(session.daemon_pid());
        session.wait_for("listening on");
        let mut after = session.attach("e", seen).await;
        assert_eq!(session.post("/execs/e/stdin", line(&json!(round))).await.1, json!({"ok": true}));
        after.until(&format!("got {round}")).await;
    }
    assert_eq!(session.get("/release").await.1["generation"], generation);
    let (out, _, _) = session.run("env", "echo $KEPT").await;
    assert_eq!(out, "yes\n");
    session.post("/execs/e/stdin", json!({"eof": true})).await;
    let (out, _, end) = session.attach("e", 0).await.finish().await;
    assert_eq!(out, "up\ngot 1\ngot 2\ngot 3\ngot 4\nbye\n");
    assert_eq!(exit(&end).exit_code, 0);
    kill(session.daemon_pid());
    session.wait_for("listening on");
    let (out, _, _) = session.attach("e", 0).await.finish().await;
    assert!(out.ends_with("bye\n"), "finished commands can be read by the next daemon");
    assert_eq!(session.get("/execs/e").await.1["exitCode"], 0);
}

#[tokio::test]
async fn a_command_that_ends_while_no_daemon_runs_is_not_lost() {
    let mut session = Session::start();
    session.write("workspace/wait.sh", "echo up; while [ ! -e go ]; do sleep 0.01; done; seq 1 20000; exit 7");
    let mut before = session.shell("e", ". ./wait.sh").await;
    let seen = before.until("up").await;
    let daemon = session.daemon_pid();
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::STOP).unwrap();
    let supervisor = descendant(daemon, "internal-exec");
    session.write("workspace/go", "");
    gone(supervisor).await;
    kill(daemon);
    session.wait_for("listening on");
    let (out, _, end) = session.attach("e", seen).await.finish().await;
    assert_eq!(out.lines().count(), 20_000);
    assert!(out.ends_with("\n20000\n"));
    assert_eq!(exit(&end).exit_code, 7);
}

/// The first process below `root` with `word` in its command line.
fn descendant(root: i32, word: &str) -> i32 {
    let found = tale_sandboxd::procs::below(root).into_iter().find(|process| command_line(process.pid).contains(word));
    found.unwrap_or_else(|| panic!("no {word} below {root}")).pid
}

#[tokio::test]
async fn a_supervisor_that_is_killed_is_an_explicit_break() {
    let session = Session::start();
    let mut output = session.shell("e", "echo up $$; sleep 1000").await;
    output.until("up").await;
    let supervisor = descendant(session.daemon_pid(), "internal-exec");
    let command = descendant(supervisor, "sleep");
    kill(supervisor);
    let end = output.finish().await.2;
    assert!(matches!(end, Event::Fail { code: FailCode::ReplayUnavailable, .. }), "{end:?}");
    gone(command).await;
    assert_eq!(session.get("/execs/e").await.1["exitCode"], json!(null));
}

#[tokio::test]
async fn more_than_the_budget_passes_with_checkpoints() {
    let session = Session::start();
    // 200 MiB with a character of two bytes across every boundary.
    let mut output = session.shell("e", "yes äöü | head -c 209715197").await;
    let (mut total, mut last) = (0, 0);
    let mut text = Vec::new();
    while let Some(numbered) = output.next().await {
        match numbered.event {
            Event::Output { bytes, .. } => {
                std::str::from_utf8(&bytes).unwrap();
                total += bytes.len();
                text = bytes;
                if total - last > 16 << 20 {
                    last = total;
                    let saved = session
                        .put("/execs/e/checkpoint", json!({"seq": numbered.seq, "state": {"total": total}}))
                        .await;
                    assert_eq!(saved.0, 200);
                }
            }
            Event::Exit(exit) => assert_eq!(exit.exit_code, 0),
            Event::Start { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(total, 209_715_197);
    assert!(!text.is_empty());
    let stored = session.get("/execs/e/checkpoint").await.1["checkpoint"].clone();
    let seq = stored["seq"].as_u64().unwrap();
    assert_eq!(stored["state"]["total"], last);
    // What a checkpoint covers is a gap for whoever comes without it, and the rest is there.
    let mut again = session.attach("e", 0).await;
    assert_eq!(again.next().await.unwrap().event, Event::ReplayStart);
    let Event::Gap { from_seq: 1, to_seq } = again.next().await.unwrap().event else { panic!("no gap") };
    assert!(to_seq <= seq && to_seq > 0);
    again.finish().await;
    assert_eq!(session.put("/execs/e/checkpoint", json!({"seq": seq - 1, "state": 1})).await.0, 409);
    assert_eq!(session.put("/execs/e/checkpoint", json!({"seq": 1_u64 << 40, "state": 1})).await.0, 400);
    assert_eq!(session.put("/execs/e/checkpoint", json!({"seq": "1", "state": 1})).await.0, 400);
    let large = json!({"seq": seq, "state": "x".repeat(1 << 20)});
    assert_eq!(session.put("/execs/e/checkpoint", large).await.0, 413);
    let files = std::fs::read_dir(session.path(".runtime/tmp/.tale-execs/e")).unwrap().flatten();
    let bytes: u64 = files.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(bytes < 64 << 20, "{bytes} bytes are still on disk");
}

#[tokio::test]
async fn a_flood_that_nobody_acknowledges_is_ended_and_says_so() {
    let session = Session::start();
    let (_, _, end) = session.run("e", "yes").await;
    assert!(matches!(end, Event::Fail { code: FailCode::OutputLimit, .. }), "{end:?}");
    let (again, _, _) = session.attach("e", 0).await.finish().await;
    assert!(again.len() > 40 << 20, "what was written before can be read");
    assert_eq!(session.run("next", "echo ok").await.0, "ok\n");
}

#[tokio::test]
async fn a_reader_that_stops_reading_disturbs_nobody() {
    let mut session = Session::start();
    let stuck_starter = session
        .exec(json!({"execId": "e", "shell": "read x; yes | head -c 30000000; read x", "stdinMode": "hold"}))
        .await;
    let stuck = session.attach("e", 0).await;
    let mut second = session.attach("e", 0).await;
    session.post("/execs/e/stdin", line(&json!(1))).await;
    let mut total = 0;
    while total < 30_000_000 {
        if let Event::Output { bytes, .. } = second.next().await.unwrap().event {
            total += bytes.len();
        }
    }
    session.wait_for("left or was disconnected");
    session.wait_for("left or was disconnected");
    assert_eq!(session.get("/execs/e").await.1["state"], "running");
    session.post("/execs/e/stdin", json!({"eof": true})).await;
    assert_eq!(exit(&second.finish().await.2).exit_code, 1);
    drop((stuck_starter, stuck));
}

#[tokio::test]
async fn readers_have_eight_places() {
    let session = Session::start();
    let mut readers = vec![session.shell("e", "echo up; sleep 1000").await];
    readers[0].until("up").await;
    for _ in 1..8 {
        readers.push(session.attach("e", 0).await);
    }
    assert_eq!(session.get("/execs/e/attach").await.0, 503);
    assert_eq!(session.post("/execs", json!({"execId": "f", "shell": "true"})).await.0, 503);
    session.post("/execs/e/cancel", json!({})).await;
    for reader in readers {
        assert!(exit(&reader.finish().await.2).cancelled);
    }
    assert_eq!(session.run("f", "echo ok").await.0, "ok\n");
}

#[tokio::test]
async fn lines_of_stdin_arrive_whole_or_not_at_all() {
    let session = Session::start();
    let body =
        json!({"execId": "e", "command": ["cat"], "stdinMode": "hold", "stdinBase64": STANDARD.encode("first\n")});
    let mut output = session.exec(body).await;
    output.until("first").await;
    let post = async |body| session.post("/execs/e/stdin", body).await.1;
    assert_eq!(post(line(&json!({"a": [1]}))).await, json!({"ok": true}));
    output.until("{\"a\":[1]}\n").await;
    let bad = json!({"ok": false, "reason": "BAD_LINE"});
    for text in ["no line feed", "not json\n", "{}\n{}\n"] {
        assert_eq!(post(json!({"b64": STANDARD.encode(text)})).await, bad);
    }
    assert_eq!(post(json!({})).await, bad);
    assert_eq!(post(json!({"b64": STANDARD.encode("2\n"), "eof": true})).await, json!({"ok": true}));
    assert_eq!(output.finish().await.0, "2\n");
    assert_eq!(post(line(&json!(1))).await, json!({"ok": false, "reason": "NOT_FOUND"}));
    let mut closed = session.shell("c", "echo up; sleep 1000").await;
    closed.until("up").await;
    let answer = session.post("/execs/c/stdin", line(&json!(1))).await.1;
    assert_eq!(answer, json!({"ok": false, "reason": "STDIN_CLOSED"}));
    // A command that does not read holds 8 MiB and the pipe, then lines are refused.
    let mut idle = session.exec(json!({"execId": "i", "shell": "echo up; sleep 1000", "stdinMode": "hold"})).await;
    idle.until("up").await;
    let long = line(&json!("x".repeat(60_000)));
    let mut taken = 0;
    loop {
        let answer = session.post("/execs/i/stdin", long.clone()).await.1;
        if answer["ok"] == false {
            assert_eq!(answer["reason"], "WRITE_FAILED");
            break;
        }
        taken += 60_003;
    }
    assert!((8 << 20..9 << 20).contains(&(taken + 60_003)), "{taken}");
}

#[tokio::test]
async fn finished_commands_are_kept_up_to_a_number() {
    let session = Session::start();
    for number in 0..20 {
        assert_eq!(session.run(&format!("e{number}"), "echo ok").await.0, "ok\n");
    }
    assert_eq!(session.get("/execs/e0").await.0, 404);
    assert_eq!(session.get("/execs/e19").await.0, 200);
    let kept = std::fs::read_dir(session.path(".runtime/tmp/.tale-execs")).unwrap().count();
    assert!((16..=17).contains(&kept), "{kept}");
}

#[tokio::test]
async fn both_outputs_are_split_between_characters() {
    let session = Session::start();
    let mut output = session.shell("e", "printf '\\303'; sleep 0.05; printf '\\244'; printf '\\377\\303' >&2").await;
    let mut pieces = Vec::new();
    while let Some(numbered) = output.next().await {
        if let Event::Output { stream, bytes } = numbered.event {
            pieces.push((stream, bytes));
        }
    }
    assert!(pieces.contains(&(Stream::Stdout, "ä".into())), "{pieces:?}");
    let errors: Vec<u8> = pieces.iter().filter(|(s, _)| *s == Stream::Stderr).flat_map(|(_, b)| b.clone()).collect();
    assert_eq!(errors, [0xff, 0xc3], "bytes that are no text pass as they are");
    assert!(!is_alive(i32::MAX));
}

#[tokio::test]
async fn a_command_that_removes_the_journals_breaks_only_itself() {
    let session = Session::start();
    let mut output = session.exec(json!({"execId": "e", "shell": "echo up; read x; rm -rf ../.runtime; yes | head -c 9000000; exit 3", "stdinMode": "hold"})).await;
    output.until("up").await;
    session.post("/execs/e/stdin", line(&json!(1))).await;
    let end = output.finish().await.2;
    assert!(matches!(end, Event::Fail { code: FailCode::ReplayUnavailable, .. }), "{end:?}");
    assert_eq!(session.run("next", "echo ok").await.0, "ok\n");
}
