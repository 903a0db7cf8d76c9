//! What holds a session, what it tells, who may ask.

use hyper::Method;
use serde_json::json;

use crate::session::{Session, TOKEN, exit};

#[tokio::test]
async fn only_the_token_opens_and_nothing_is_told_without_it() {
    let session = Session::start();
    for path in ["/livez", "/readyz"] {
        let response = session.send(Method::GET, path, None, bytes::Bytes::new()).await;
        assert_eq!(response.status().as_u16(), 200, "{path}");
    }
    for token in [None, Some(""), Some(&TOKEN[1..]), Some("0123456789abcdef0123456789abcdee")] {
        for (method, path) in [
            (Method::GET, "/healthz"),
            (Method::POST, "/acquire"),
            (Method::POST, "/execs"),
            (Method::POST, "/execs/x/cancel"),
            (Method::GET, "/fs/read?path=workspace"),
            (Method::POST, "/env"),
        ] {
            let response = session.send(method, path, token, "{}".into()).await;
            assert_eq!(response.status().as_u16(), 401, "{path}");
        }
        assert_eq!(session.send(Method::GET, "/nothing", token, "".into()).await.status().as_u16(), 404);
    }
    assert_eq!(session.get("/acquire").await.0, 405);
    let large = vec![b' '; (8 << 20) + 1];
    assert_eq!(session.send(Method::POST, "/env", Some(TOKEN), large.into()).await.status().as_u16(), 413);
    for body in ["", "[]", "{", "{\"sets\":{}}", "null", "\"a\""] {
        let response = session.send(Method::POST, "/env", Some(TOKEN), body.into()).await;
        assert_eq!(response.status().as_u16(), 400, "{body}");
    }
}

#[tokio::test]
async fn a_claim_waits_for_the_work_and_stops_what_comes_after() {
    let session = Session::start();
    let generation = |answer: &serde_json::Value| answer["generation"].as_str().unwrap().to_owned();
    let first = generation(&session.post("/acquire", json!({})).await.1);
    let second = generation(&session.post("/acquire", json!({})).await.1);
    assert_ne!(first, second);
    assert_eq!(session.post("/release", json!({"generation": first})).await.1["released"], false);
    assert_eq!(session.post("/release", json!({"generation": second})).await.1["released"], true);
    let claim = json!({"claimId": "c", "generation": second});
    let mut running = session.exec(json!({"execId": "e", "shell": "echo up; cat", "stdinMode": "hold"})).await;
    running.until("up").await;
    assert_eq!(session.post("/reclaim", claim.clone()).await.1["claimed"], false, "a command runs");
    session.post("/execs/e/stdin", json!({"eof": true})).await;
    assert_eq!(exit(&running.finish().await.2).exit_code, 0);
    assert_eq!(session.post("/pin", json!({"pinned": true})).await.1["pinned"], true);
    assert_eq!(session.post("/reclaim", claim.clone()).await.1["claimed"], false, "it is pinned");
    session.post("/pin", json!({"pinned": false})).await;
    assert_eq!(session.post("/reclaim", claim.clone()).await.1["claimed"], true);
    assert_eq!(session.post("/reclaim", claim).await.1["claimed"], true, "a spawner may ask again");
    let (status, refusal) = session.post("/execs", json!({"execId": "late", "shell": "true"})).await;
    assert_eq!((status, &refusal["error"]), (503, &json!("reclaiming")));
    assert_eq!(session.post("/acquire", json!({})).await.0, 503);
    let (status, health) = session.get("/healthz").await;
    assert_eq!((status, &health["activity"]["reclaiming"]), (200, &json!(true)));
    assert_eq!(health["incarnation"], "life-1");
}

#[tokio::test]
async fn a_call_for_another_life_changes_nothing() {
    let session = Session::start();
    let before = session.get("/release").await.1;
    assert_eq!(before["incarnation"], "life-1");
    let stream = tokio::net::TcpStream::connect(session.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for path in ["/acquire", "/release", "/reclaim", "/pin"] {
        let request = hyper::Request::post(path)
            .header("host", "x")
            .header("x-tale-runnerd-token", TOKEN)
            .header("x-tale-runnerd-incarnation", "life-2")
            .body(http_body_util::Full::<bytes::Bytes>::default())
            .unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status().as_u16(), 409, "{path}");
    }
    assert_eq!(session.get("/release").await.1, before);
}

#[tokio::test]
async fn the_environment_of_a_command_is_exactly_what_was_given() {
    let session = Session::with(&[("TALE_SESSION_ENV", r#"{"SEED":"1"}"#), ("TALE_RUNNERD_OTHER", "secret")]);
    let patch =
        json!({"set": {"A": "session", "B": "session", "HOME": "/evil", "tale_runnerd_token": "x"}, "unset": ["SEED"]});
    let (status, answer) = session.post("/env", patch).await;
    assert_eq!((status, &answer["denied"]), (200, &json!(["HOME", "tale_runnerd_token"])));
    let body = json!({"execId": "one", "command": ["env"], "env": {"B": "own", "GITHUB_TOKEN": "ghp", "TALE_RUNNERD_TOKEN": "mine", "TALE_EXEC_ID": "forged"}});
    let (out, _, _) = session.exec(body).await.finish().await;
    let mut lines: Vec<&str> = out.lines().filter(|line| !line.starts_with("PATH=")).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=session", "B=own", "GITHUB_TOKEN=ghp", "TALE_EXEC_ID=one"]);
    let (out, _, _) = session.exec(json!({"execId": "two", "command": ["env"]})).await.finish().await;
    assert!(!out.contains("GITHUB_TOKEN") && out.contains("B=session"), "{out}");
}

#[tokio::test]
async fn a_start_without_a_token_says_so_and_ends() {
    let output = std::process::Command::new(crate::session::PROGRAM).arg("daemon").env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("TALE_RUNNERD_TOKEN"));
    let output = std::process::Command::new(crate::session::PROGRAM).arg("shell").output().unwrap();
    assert_eq!(output.status.code(), Some(65));
}
