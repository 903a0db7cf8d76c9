//! What commands leave behind, how they are ended, and process 1.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tale_sandbox_wire::event::Failure;

use crate::session::{Session, exit, gone, is_alive};

/// Starts a server that forked twice, has a clean environment and another session, and writes its number.
const SERVER: &str = "setsid env -i /bin/sh -c 'echo $$ > server; exec sleep 1000' >/dev/null 2>&1 & \
    while [ ! -s server ]; do sleep 0.01; done; cat server";

async fn server(session: &Session, id: &str, and: &str) -> (i32, crate::session::Output) {
    let mut output = session.shell(id, &format!("{SERVER}; {and}")).await;
    output.until("\n").await;
    let text = std::fs::read_to_string(session.path("workspace/server")).unwrap();
    (text.trim().parse().unwrap(), output)
}

#[tokio::test]
async fn leftovers_end_with_the_last_command() {
    let session = Session::start();
    let mut other = session.exec(json!({"execId": "other", "shell": "echo up; cat", "stdinMode": "hold"})).await;
    other.until("up").await;
    let (pid, output) = server(&session, "e", "exit 0").await;
    assert_eq!(exit(&output.finish().await.2).exit_code, 0);
    assert!(is_alive(pid), "another command runs");
    session.post("/execs/other/stdin", json!({"eof": true})).await;
    other.finish().await;
    gone(pid).await;
}

#[tokio::test]
async fn a_rotation_keeps_what_is_outside_the_group_for_the_next_command() {
    let session = Session::start();
    let (pid, output) = server(&session, "old", "sleep 1000").await;
    assert_eq!(session.post("/execs/old/cancel?leftovers=keep", json!({})).await.1["killed"], true);
    assert!(exit(&output.finish().await.2).cancelled);
    let (out, _, _) = session.run("new", &format!("kill -0 {pid} && echo lives")).await;
    assert_eq!(out, "lives\n");
    gone(pid).await;
    assert_eq!(session.post("/execs/old/cancel", json!({})).await.1["killed"], false);
}

#[tokio::test]
async fn a_cancel_ends_everything_even_what_refuses() {
    let session = Session::start();
    let script = "trap '' TERM; (trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 1; done') & \
        while [ ! -s deaf ]; do sleep 0.01; done; echo up; while :; do sleep 1; done";
    let mut output = session.shell("e", script).await;
    output.until("up").await;
    let deaf: i32 = std::fs::read_to_string(session.path("workspace/deaf")).unwrap().trim().parse().unwrap();
    session.post("/execs/e/cancel", json!({})).await;
    let end = output.finish().await.2;
    assert_eq!((exit(&end).exit_code, exit(&end).cancelled, exit(&end).oom_killed), (137, true, false));
    gone(deaf).await;
}

#[tokio::test]
async fn silence_and_idleness_end_a_command_work_does_not() {
    let session = Session::with(&[("TALE_EXEC_STALL_MS", "2000")]);
    // Works itself: processes that end within a tick have used no time that anybody could read.
    let work = "end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do \
                i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; done; echo done";
    let busy = session.shell("busy", work).await;
    let idle = session.shell("idle", "trap 'exit 0' TERM; while :; do sleep 0.2; done").await;
    let end = idle.finish().await.2;
    assert_eq!((exit(&end).failure, exit(&end).exit_code), (Some(Failure::ExecStalled), 0));
    let (out, _, end) = busy.finish().await;
    assert_eq!((out.as_str(), exit(&end).failure), ("done\n", None));
}

#[tokio::test]
async fn a_command_nobody_follows_ends_after_its_deadline_a_followed_one_does_not() {
    let session = Session::start();
    let mut output = session.exec(json!({"execId": "e", "shell": "echo up; sleep 1000", "timeoutMs": 300})).await;
    output.until("up").await;
    let mut long = session.exec(json!({"execId": "f", "shell": "sleep 1; echo done", "timeoutMs": 300})).await;
    drop(output);
    long.until("done").await;
    let mut status = session.get("/execs/e").await.1;
    while status["state"] == "running" {
        status = session.get("/execs/e").await.1;
    }
    let end = session.attach("e", 0).await.finish().await.2;
    assert!(exit(&end).timed_out && !exit(&end).cancelled);
}

#[tokio::test]
async fn a_stop_reaches_every_command_within_its_budget() {
    let mut session = Session::start();
    let mut output =
        session.shell("e", "trap 'echo bye > last; exit' TERM; echo up; while :; do sleep 0.05; done").await;
    output.until("up").await;
    let (deaf, _kept) = server(&session, "f", "trap '' TERM; sleep 1000").await;
    let pid = Pid::from_raw(session.init_pid().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let begun = std::time::Instant::now();
    assert!(session.init().wait().unwrap().success());
    assert!(begun.elapsed().as_secs() < 4);
    assert_eq!(std::fs::read_to_string(session.path("workspace/last")).unwrap(), "bye\n");
    gone(deaf).await;
}

#[tokio::test]
async fn process_1_reaps_what_is_left_to_it_and_cannot_be_killed_from_inside() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: no process namespace");
        return;
    }
    let session = Session::behind(&["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=TERM"]);
    let (out, _, _) = session.run("first", "kill -9 1; cat /proc/1/comm").await;
    assert_eq!(out, "tale-sandboxd\n");
    // Its supervisor is killed, so its children go to process 1 when they end.
    let mut output =
        session.shell("orphans", "for i in 1 2 3 4 5; do (sleep 0.1 &); done; echo up; kill -9 $PPID").await;
    while output.next().await.is_some() {}
    let check = "sleep 0.3; grep -l '^State:.Z' /proc/[0-9]*/status; ls -d /proc/[0-9]* | wc -l";
    let (out, _, _) = session.run("check", check).await;
    let count: u32 = out.trim().parse().unwrap_or_else(|_| panic!("zombies: {out}"));
    assert!(count < 12, "{count} processes");
}
