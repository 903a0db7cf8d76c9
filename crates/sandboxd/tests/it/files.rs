//! Files: staged, listed, read, removed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::session::{Session, TOKEN};

async fn read(session: &Session, path: &str) -> (u16, Vec<u8>) {
    use http_body_util::BodyExt as _;
    let response = session.send(Method::GET, &format!("/fs/read?path={path}"), Some(TOKEN), bytes::Bytes::new()).await;
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

async fn stage(session: &Session, file: Value) -> String {
    let (status, answer) = session.post("/files/stage", json!({"files": [file]})).await;
    assert_eq!(status, 200, "{answer}");
    answer["files"][0]["status"].as_str().unwrap().to_owned()
}

fn inline(path: &str, text: &str) -> Value {
    json!({"path": path, "contentBase64": STANDARD.encode(text)})
}

/// Answers every request with these bytes.
async fn server(answer: Vec<u8>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(&answer).await;
            });
        }
    });
    format!("http://{address}/file")
}

fn http(length: usize, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes(), body].concat()
}

#[tokio::test]
async fn a_file_is_there_whole_or_the_one_before_is() {
    let session = Session::start();
    assert_eq!(stage(&session, inline("inputs/t/a.txt", "one")).await, "staged");
    assert_eq!(read(&session, "inputs/t/a.txt").await, (200, b"one".to_vec()));
    let at = |url: String| json!({"path": "inputs/t/a.txt", "url": url});
    assert_eq!(stage(&session, at(server(http(5, b"two")).await)).await, "fetch_failed", "cut off");
    assert_eq!(stage(&session, at(server(b"HTTP/1.1 404 No\r\n\r\n".to_vec()).await)).await, "fetch_failed");
    assert_eq!(stage(&session, at("https://127.0.0.1/".into())).await, "fetch_failed");
    assert_eq!(stage(&session, at("http://127.0.0.1:1/".into())).await, "fetch_failed");
    let mut wrong = at(server(http(3, b"two")).await);
    wrong["sha256"] = json!("0".repeat(64));
    assert_eq!(stage(&session, wrong).await, "hash_mismatch");
    let large = vec![0; (100 << 20) + 1];
    assert_eq!(stage(&session, at(server(http(large.len(), &large)).await)).await, "too_large");
    assert_eq!(stage(&session, inline("inputs/t/a.txt", &"x".repeat((1 << 20) + 1))).await, "too_large");
    assert_eq!(read(&session, "inputs/t/a.txt").await.1, b"one");
    std::fs::set_permissions(session.path("inputs/t/a.txt"), std::os::unix::fs::PermissionsExt::from_mode(0o4750))
        .unwrap();
    assert_eq!(stage(&session, at(server(http(3, b"two")).await)).await, "staged");
    assert_eq!(read(&session, "inputs/t/a.txt").await.1, b"two");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(session.path("inputs/t/a.txt")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o7777, 0o750, "the bits stay, set-user-id does not");
    let names: Vec<_> = std::fs::read_dir(session.path("inputs/t")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["a.txt"], "no part is left");
}

#[tokio::test]
async fn a_named_content_counts_only_while_the_bytes_are_the_same() {
    let session = Session::start();
    let named = |url: Option<String>| json!({"path": "a", "url": url, "sourceId": "v1"});
    assert_eq!(stage(&session, json!({"path": "a", "sourceId": "v1"})).await, "no_source");
    assert_eq!(stage(&session, named(Some(server(http(3, b"one")).await))).await, "staged");
    assert_eq!(stage(&session, json!({"path": "a", "sourceId": "v1"})).await, "staged");
    assert_eq!(stage(&session, json!({"path": "a", "sourceId": "v2"})).await, "no_source");
    session.write("a", "two");
    assert_eq!(stage(&session, json!({"path": "a", "sourceId": "v1"})).await, "no_source");
    assert_eq!(stage(&session, named(Some(server(http(3, b"one")).await))).await, "staged");
    assert_eq!(read(&session, "a").await.1, b"one");
}

#[tokio::test]
async fn reconciling_removes_exactly_what_is_not_named() {
    let session = Session::start();
    for path in ["r/keep", "r/drop", "r/d/keep", "r/d/drop", "r/gone/deep/x", "other/x"] {
        session.write(path, path);
    }
    std::os::unix::fs::symlink(session.path("other"), session.path("r/link")).unwrap();
    let body = json!({"files": [], "replaceRoots": ["r", "missing"], "keepPaths": ["r/keep", "r/d/keep", "r/absent"]});
    let (status, answer) = session.post("/files/stage", body).await;
    assert_eq!((status, &answer["reconciled"]), (200, &json!(true)));
    let list = async |path: &str| {
        let entries = session.get(&format!("/fs/list?path={path}")).await.1["entries"].clone();
        entries.as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list("r").await, ["d", "keep"]);
    assert_eq!(list("r/d").await, ["keep"]);
    assert_eq!(list("other").await, ["x"]);
    for root in [".", "/agent", "", "a/.."] {
        let body = json!({"files": [], "replaceRoots": [root], "keepPaths": []});
        assert_eq!(session.post("/files/stage", body).await.0, 400, "{root}");
    }
}

#[tokio::test]
async fn a_directory_is_listed_and_a_tree_of_any_depth_removed() {
    let session = Session::start();
    session.write("d/file", "12345");
    std::fs::create_dir(session.path("d/sub")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", session.path("d/link")).unwrap();
    let entries = session.get("/fs/list?path=/agent/d").await.1["entries"].clone();
    let kinds: Vec<_> =
        entries.as_array().unwrap().iter().map(|e| (e["name"].clone(), e["kind"].clone(), e["size"].clone())).collect();
    assert_eq!(json!(kinds), json!([["file", "file", 5], ["link", "symlink", 0], ["sub", "directory", 0]]));
    assert_eq!(session.get("/fs/list?path=d/file").await.0, 404);
    assert_eq!(session.get("/fs/list?path=nothing").await.0, 404);
    // Deeper than any path is long, unreadable in the middle, and with a link out.
    let script = "python3 -c 'import os\nfor _ in range(3000):\n  os.mkdir(\"d\" * 10); os.chdir(\"d\" * 10)\nos.symlink(\"/etc\", \"link\")'; \
        mkdir -p locked/in && chmod 0 locked";
    let (_, err, _) = session.exec(json!({"execId": "e", "shell": script, "cwd": "d"})).await.finish().await;
    assert_eq!(err, "");
    let (status, answer) = session.post("/files/delete", json!({"paths": ["d", "missing"]})).await;
    assert_eq!((status, answer), (200, json!({"deleted": 1})));
    assert!(!session.path("d").exists());
    assert!(std::path::Path::new("/etc/passwd").exists());
    let names: Vec<_> = std::fs::read_dir(session.root()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("removed")), "{names:?}");
}
