//! What a hostile command, or a hostile file, tries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::json;
use tale_sandbox_wire::event::{Event, FailCode};

use crate::session::{How, Session, TOKEN, exit, gone};

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    let session = Session::start();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let root = session.root();
    std::os::unix::fs::symlink(outside.path(), root.join("out")).unwrap();
    std::os::unix::fs::symlink("../../../../../../../../etc", root.join("up")).unwrap();
    std::os::unix::fs::symlink(std::path::Path::new("/proc/self/root").join("etc"), root.join("magic")).unwrap();
    std::os::unix::fs::symlink(&secret, root.join("file")).unwrap();
    std::os::unix::fs::symlink("workspace", root.join("inside")).unwrap();
    session.write("workspace/ok", "ok");
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    std::fs::hard_link(&secret, root.join("hard")).ok();
    let paths = [
        "out/secret",
        "up/passwd",
        "magic/passwd",
        "file",
        "../etc/passwd",
        "/etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "out/../out/secret",
        "/proc/self/environ",
        "pipe",
        "/agent/../etc/passwd",
        "workspace",
        "",
        "a%00b",
    ];
    for path in paths {
        let response =
            session.send(Method::GET, &format!("/fs/read?path={path}"), Some(TOKEN), bytes::Bytes::new()).await;
        assert!(matches!(response.status().as_u16(), 400 | 404), "{path}");
    }
    for path in ["out", "up", "magic", "..", "/", "/proc"] {
        let status = session.get(&format!("/fs/list?path={path}")).await.0;
        assert!(matches!(status, 400 | 404), "{path}");
    }
    let content = STANDARD.encode("evil");
    for path in ["out/secret", "out/new", "up/new", "magic/new", "pipe/x", "file/x"] {
        let answer = session.post("/files/stage", json!({"files": [{"path": path, "contentBase64": content}]})).await.1;
        assert_eq!(answer["files"][0]["status"], "bad_path", "{path}: {answer}");
    }
    for path in ["../x", "/etc/x", ".", ""] {
        let status = session.post("/files/stage", json!({"files": [{"path": path, "contentBase64": content}]})).await.0;
        assert_eq!(status, 400, "{path}");
    }
    // A link or a second name at the place itself is replaced, not written through.
    for path in ["file", "hard", "pipe", "inside/through"] {
        let answer = session.post("/files/stage", json!({"files": [{"path": path, "contentBase64": content}]})).await.1;
        assert_eq!(answer["files"][0]["status"], "staged", "{path}: {answer}");
    }
    session.post("/files/delete", json!({"paths": ["out/secret", "up/passwd", "out"]})).await;
    assert_eq!(session.post("/files/delete", json!({"paths": ["../x"]})).await.0, 400);
    assert_eq!(session.post("/files/delete", json!({"paths": ["."]})).await.0, 400);
    let body = json!({"files": [], "replaceRoots": ["up"], "keepPaths": []});
    assert_ne!(session.post("/files/stage", body).await.1["reconciled"], true);
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(std::path::Path::new("/etc/passwd").exists());
}

#[tokio::test]
async fn a_runtime_directory_that_is_a_link_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".runtime")).unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join(".runtime/tmp")).unwrap();
    std::fs::write(outside.path().join("precious"), "").unwrap();
    let output = std::process::Command::new(crate::session::PROGRAM)
        .arg("daemon")
        .env_clear()
        .env("TALE_RUNNERD_TOKEN", TOKEN)
        .env("TALE_RUNNERD_LISTEN", "127.0.0.1:0")
        .env("TALE_RUNNERD_ROOT", dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(outside.path().join("precious").exists());
}

/// As another user, as in a container: there root would be allowed everything.
#[tokio::test]
async fn commands_cannot_look_into_the_daemon() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: no other user");
        return;
    }
    let session = Session::start_as(How {
        before: [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--no-new-privs",
        ]
        .map(str::to_owned)
        .to_vec(),
        env: Vec::new(),
    });
    let script = format!(
        "for pid in {} $(pgrep -P {}) $PPID; do cat /proc/$pid/environ /proc/$pid/maps /proc/$pid/fd/0; ls /proc/$pid/fd; done; \
         env; cat /proc/$$/environ; cat /proc/$PPID/cmdline; find / -maxdepth 1 >/dev/null; grep -r {TOKEN} /proc/[0-9]*/environ; true",
        session.init_pid(),
        session.init_pid()
    );
    let (out, err, end) = session.run("e", &script).await;
    assert_eq!(exit(&end).exit_code, 0);
    assert!(!out.contains(TOKEN) && !err.contains(TOKEN), "{out}{err}");
    assert!(err.matches("Permission denied").count() >= 12, "{err}");
    let (out, _, _) = session.run("status", "grep -h '^Cap\\|NoNewPrivs' /proc/self/status").await;
    assert_eq!(out.matches("0000000000000000").count(), 5, "{out}");
}

/// A control group of the first version for one test.
fn group_of(controller: &str) -> std::path::PathBuf {
    format!("/sys/fs/cgroup/{controller}/tale-sandboxd-test-{}", std::process::id()).into()
}

#[tokio::test]
async fn a_fork_bomb_is_held_by_the_limit_and_ended_by_a_cancel() {
    let group = &group_of("pids");
    if std::fs::create_dir(group).is_err() || std::fs::write(group.join("pids.max"), "120").is_err() {
        eprintln!("no group that limits processes can be made here");
        return;
    }
    let session = Session::start();
    for pid in [session.init_pid().cast_signed(), session.daemon_pid()] {
        // The group's file takes one thread of the first version's groups at a time, or the process.
        std::fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
    }
    let mut bomb = session
        .shell(
            "bomb",
            "python3 -uc '\nimport os\nprint(\"up\")\nwhile True:\n  try: os.fork()\n  except OSError: pass'",
        )
        .await;
    bomb.until("up").await;
    let events = std::fs::File::open(group.join("pids.events")).unwrap();
    while !std::io::read_to_string(&events).unwrap().contains("max 1") {
        std::io::Seek::rewind(&mut &events).unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(session.get("/healthz").await.0, 200, "the daemon answers meanwhile");
    session.write("workspace/x", "1");
    assert_eq!(session.get("/fs/list?path=workspace").await.0, 200);
    assert_eq!(session.post("/execs/bomb/cancel", json!({})).await.1["killed"], true);
    while bomb.try_next().await.unwrap().is_some() {}
    // The supervisor goes when nothing is below it.
    let below = tale_sandboxd::procs::below(session.daemon_pid());
    for process in below {
        gone(process.pid).await;
    }
    assert_eq!(session.run("after", "echo ok").await.0, "ok\n");
    let daemon = session.daemon_pid();
    drop(session);
    gone(daemon).await;
    let _ = std::fs::remove_dir(group);
}

#[tokio::test]
async fn memory_is_refused_before_it_is_used_up_and_a_kill_for_it_is_named() {
    let group = &group_of("memory");
    let limit = (64_u64 << 20).to_string();
    if std::fs::create_dir_all(group).is_err() || std::fs::write(group.join("memory.limit_in_bytes"), &limit).is_err() {
        eprintln!("no group that limits memory can be made here");
        return;
    }
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.display());
    let session = Session::behind(&["/bin/sh", "-c", &enter]);
    let memory = session.get("/healthz").await.1["memory"].clone();
    assert_eq!(memory["limitBytes"], 64 << 20);
    let hog = |megabytes: u32| {
        format!(
            "python3 -c 'x = bytearray({megabytes} << 20); print(\"up\", flush=True); import sys; sys.stdin.read()'"
        )
    };
    let sibling = session.exec(json!({"execId": "sibling", "shell": "read x; exit 1", "stdinMode": "hold"})).await;
    let (_, _, end) = session.run("hog", &hog(200)).await;
    assert!(matches!(&end, Event::Exit(exit) if exit.oom_killed && exit.exit_code == 137), "{end:?}");
    session.post("/execs/sibling/stdin", json!({"eof": true})).await;
    let end = sibling.finish().await.2;
    assert_eq!((exit(&end).oom_killed, exit(&end).exit_code), (false, 1), "an ordinary failure stays one");
    let mut full = session.exec(json!({"execId": "full", "shell": hog(45), "stdinMode": "hold"})).await;
    full.until("up").await;
    let memory = session.get("/healthz").await.1["memory"].clone();
    if memory["workingSetBytes"].as_u64().unwrap() * 10 >= (64 << 20) * 9 {
        let (status, refusal) = session.post("/execs", json!({"execId": "more", "shell": "true"})).await;
        assert_eq!((status, &refusal["code"]), (429, &json!("SESSION_MEMORY_BUSY")));
    }
    assert_eq!(session.get("/execs/full").await.1["state"], "running");
    session.post("/execs/full/stdin", json!({"eof": true})).await;
    assert_eq!(exit(&full.finish().await.2).exit_code, 0);
    drop(session);
    let _ = std::fs::remove_dir(group);
}

#[tokio::test]
async fn a_command_cannot_speak_for_the_daemon() {
    let mut session = Session::start();
    let mut victim = session.exec(json!({"execId": "victim", "shell": "echo up; cat", "stdinMode": "hold"})).await;
    victim.until("up").await;
    let script = "python3 -uc '
import glob, socket
held = []
for attempt in range(30):
  s = socket.socket(socket.AF_UNIX)
  s.connect(\"../.runtime/tmp/.tale-execs/victim/ctl\")
  s.sendall((b\"0\" * 64 if attempt % 2 else b\"\") + b\"{\\\"cancel\\\":{\\\"keep\\\":false}}\\n\")
  held.append(s)
print(\"sent\")
import sys; sys.stdin.read()'";
    let mut attacker = session.exec(json!({"execId": "attacker", "shell": script, "stdinMode": "hold"})).await;
    attacker.until("sent").await;
    let daemon = rustix::process::Pid::from_raw(session.daemon_pid()).unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
    session.wait_for("listening on");
    let mut again = session.attach("victim", 0).await;
    assert_eq!(session.post("/execs/victim/stdin", json!({"b64": STANDARD.encode("1\n")})).await.1["ok"], true);
    again.until("1\n").await;
    session.post("/execs/victim/stdin", json!({"eof": true})).await;
    assert_eq!(exit(&again.finish().await.2).exit_code, 0);
    session.post("/execs/attacker/cancel", json!({})).await;
}

#[tokio::test]
async fn a_full_disk_ends_the_command_that_writes_and_not_the_session() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: no disk of its own");
        return;
    }
    let mount = "mount -t tmpfs -o size=24m none \"$TALE_RUNNERD_ROOT\" && exec \"$0\" \"$@\"";
    let session = Session::behind(&["unshare", "--mount", "/bin/sh", "-c", mount]);
    let (out, _, end) = session.run("e", "echo first; yes").await;
    assert!(matches!(end, Event::Fail { code: FailCode::ReplayDiskFull, .. }), "{end:?}");
    assert!(out.starts_with("first\n") && out.len() > 16 << 20);
    assert_eq!(session.run("next", "echo ok").await.0, "ok\n", "finished output makes room");
    let fill = "head -c 40m /dev/zero > filler 2>/dev/null; yes | head -c 200000; read x";
    let mut full = session.exec(json!({"execId": "full", "shell": fill, "stdinMode": "hold"})).await;
    let end = loop {
        match full.next().await {
            Some(event) if event.event.is_end() => break event.event,
            Some(_) => {}
            None => panic!("the stream ended without an end"),
        }
    };
    assert!(matches!(end, Event::Fail { code: FailCode::ReplayDiskFull, .. }), "{end:?}");
    assert_eq!(session.post("/files/delete", json!({"paths": ["workspace/filler"]})).await.1["deleted"], 1);
    assert_eq!(session.run("after", "echo ok").await.0, "ok\n");
    let (status, _) = session.put("/execs/after/checkpoint", json!({"seq": 1, "state": {}})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_is_ended_all_the_same() {
    let session = Session::start();
    let script = "echo up; read x; kill -STOP $PPID; sleep 1000";
    let mut output = session.exec(json!({"execId": "e", "shell": script, "stdinMode": "hold"})).await;
    output.until("up").await;
    session.post("/execs/e/stdin", json!({"b64": STANDARD.encode("1\n")})).await;
    let supervisor = tale_sandboxd::procs::below(session.daemon_pid())[0];
    while !std::fs::read_to_string(format!("/proc/{}/stat", supervisor.pid)).unwrap().contains(") T ") {
        tokio::task::yield_now().await;
    }
    assert_eq!(session.post("/execs/e/cancel", json!({})).await.1["killed"], true);
    assert!(exit(&output.finish().await.2).cancelled);
}
