//! Whoever uses a session tries to get out of it, and to harm its neighbour.

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tale_sandbox_wire::sse::ResultStatus;

use crate::place::{IMAGE, Place};

#[tokio::test]
async fn a_session_is_as_hard_as_agreed() {
    let Some(place) = Place::find("hard") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    caller.create("s1").await;
    let script = "id -u; id -g; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; \
        touch /usr/x 2>/dev/null && echo WRITABLE; ls /var/run/docker.sock 2>/dev/null && echo SOCKET; \
        cat /proc/sys/net/ipv6/conf/all/disable_ipv6; ulimit -c; mount | grep ' /tmp ' | grep -c nosuid; \
        [ $(cat /proc/self/oom_score_adj) -ge 500 ] && echo EXPENDABLE; touch /tmp/x /agent/workspace/y && echo OWN; ls /cache; touch /cache/pip/z && echo CACHE";
    let (result, text) = caller.run("s1", script).await;
    let lines: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let zero = "0000000000000000";
    let expected = [
        "10001",
        "10001",
        &format!("CapEff: {zero}"),
        &format!("CapBnd: {zero}"),
        "NoNewPrivs: 1",
        "1",
        "0",
        "1",
        "EXPENDABLE",
        "OWN",
        "bun",
        "npm",
        "pip",
        "CACHE",
    ];
    assert_eq!(lines, expected, "{result:?}");
    // Neither the daemon's token nor its other variables, and none of another command's.
    let (_, text) = caller.run("s1", "env; cat /proc/1/environ 2>/dev/null | tr '\\0' '\\n'").await;
    assert!(!text.contains("TALE_RUNNERD_"), "{text}");
    assert_eq!(place.said(&["inspect", "--format", "{{.Config.Image}}", &place.containers()[0]]), IMAGE);
}

#[tokio::test]
async fn a_bomb_stays_in_its_session() {
    let Some(place) = Place::find("bomb") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    caller.create("bad").await;
    caller.create("greedy").await;
    caller.create("good").await;
    // What it leaves takes every process, ends for no polite signal and hides in groups of its own.
    let bomb = "setsid python3 -c '\nimport os, signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True:\n try: os.fork(); os.setsid()\n \
        except OSError: pass\n' >/dev/null 2>&1 & sleep 2; echo still";
    let (_, text) = caller.run("bad", bomb).await;
    assert!(text.contains("still"), "{text}");
    let (result, text) = caller.run("bad", "echo works").await;
    assert_eq!(text, "works\n", "{result:?}");
    let begun = std::time::Instant::now();
    assert_eq!(caller.run("good", "echo fine").await.1, "fine\n");
    assert!(begun.elapsed().as_secs() < 10);
    // Memory ends with the session's, not with the host's.
    let (result, _) = caller.run("greedy", "python3 -c 'print(len(bytearray(1 << 29)))'").await;
    assert_eq!((result.status, result.exit_code), (ResultStatus::Failed, Some(137)), "{result:?}");
    assert_eq!(caller.run("good", "echo fine").await.1, "fine\n");
    let destroyed = caller.call(Method::DELETE, "/v1/sessions/bad?await_deletion=1", Value::Null).await;
    assert_eq!(destroyed.1["deletion"], "done", "{destroyed:?}");
}

#[tokio::test]
async fn links_and_neighbours_are_out_of_reach() {
    let Some(place) = Place::find("reach") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    caller.create("s1").await;
    caller.create("s2").await;
    caller.run("s1", "ln -s /etc etc; ln -s / whole; mkfifo pipe; echo secret > own").await;
    for path in ["workspace/etc/passwd", "workspace/whole/etc/passwd", "workspace/pipe"] {
        let read = caller.get(&format!("/v1/sessions/s1/files/content?path={path}")).await;
        assert!(read.0.is_client_error(), "{path}: {read:?}");
    }
    let staged = json!({"files": [{"path": "workspace/whole/tmp/evil", "contentBase64": "eA=="}]});
    let staged = caller.post("/v1/sessions/s1/files/stage", staged).await;
    assert_ne!(staged.1["results"][0]["status"], "staged", "{staged:?}");
    // The neighbour's daemon is there, and closed.
    let address = place.said(&[
        "inspect",
        "--format",
        "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}",
        &format!("tale-sbx-ses-{}", caller.id("s2")),
    ]);
    let knock = format!(
        "python3 - <<'X'\nimport urllib.request,urllib.error\n\
         for path in ('/healthz','/execs'):\n\
         \ttry:\n\t\tprint(urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open('http://{address}:8200'+path,timeout=3).status)\n\
         \texcept urllib.error.HTTPError as error: print(error.code)\nX"
    );
    assert_eq!(caller.run("s1", &knock).await.1, "401\n401\n");
    // Nothing but the network of sessions is there.
    let out = "python3 - <<'X'\nimport socket\n\
         for host in ('169.254.169.254','192.168.1.1'):\n\
         \ttry:\n\t\tsocket.create_connection((host,80),timeout=2); print('OUT')\n\
         \texcept OSError: print('closed')\n\
         way=socket.create_connection(('1.1.1.1',80)); way.send(b'GET / HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n')\n\
         print(way.recv(99).split(b'\\r')[0].decode())\nX";
    assert_eq!(caller.run("s1", out).await.1, "closed\nclosed\nHTTP/1.1 502 Bad Gateway\n");
    assert_eq!(caller.get("/v1/sessions/s2").await.0, StatusCode::OK);
}
