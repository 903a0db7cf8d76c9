//! The rules that hold for every route of `/api/v1` (spec 91, section 1).

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use serde_json::{Value, json};
use tale_identity::Role;

use crate::client::Answer;
use crate::stage::Stage;

/// Every operation of the key holder's door: method, path with ids that name nothing, whether it takes a body.
fn operations() -> Vec<(String, String, bool)> {
    let document = tale_http::contract::document();
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/api/v1"))
    {
        let path = path
            .split('/')
            .map(|part| if part.starts_with('{') { "01900000-0000-7000-8000-000000000000" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        for (method, operation) in methods.as_object().unwrap() {
            all.push((method.to_uppercase(), path.clone(), operation.get("requestBody").is_some()));
        }
    }
    assert!(all.len() >= 19);
    all
}

fn issue(answer: &Answer) -> (String, String) {
    assert_eq!(answer.refusal(), (400, "INVALID_BODY".into()), "{}", String::from_utf8_lossy(&answer.bytes));
    let issue = &answer.json()["data"]["issues"][0];
    (issue["path"].as_str().unwrap().to_owned(), issue["message"].as_str().unwrap().to_owned())
}

/// The interfaces of vendors, whose clients send what they send and read errors of their own shape.
fn is_vendors(path: &str) -> bool {
    ["/api/v1/openai/", "/api/v1/anthropic/"].iter().any(|prefix| path.starts_with(prefix))
}

#[tokio::test]
async fn a_key_comes_before_everything() {
    let stage = Stage::new().await;
    let nobody = stage.key.clone().without("authorization");
    for (method, path, _) in operations() {
        let refused = nobody.raw(&method, &path, "not json").await;
        assert_eq!(refused.refusal(), (401, "UNAUTHORIZED".into()), "{method} {path}");
        assert_eq!(
            (refused.header("www-authenticate"), refused.header("x-tale-api-version")),
            ("Bearer", tale_http::contract::CONTRACT_VERSION)
        );
    }
    let mut key = stage.key.clone();
    let mut wrong = [
        nobody.clone(),
        nobody.clone().with("authorization", "Basic YTpi"),
        nobody.clone().with("authorization", "Bearer"),
        nobody.clone().with("authorization", "Bearer tale_u_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        nobody.clone().with("authorization", "Bearer \u{fc}"),
        key.clone().with("x-api-key", "anything"),
    ];
    for client in &mut wrong {
        for path in ["/api/v1/me", "/api/v1/nope", "/api/v1", "/api/v1/"] {
            assert_eq!(client.get(path).await.refusal(), (401, "UNAUTHORIZED".into()), "{path}");
        }
    }
    assert_eq!(key.get("/api/v1/nope").await.refusal(), (404, "NOT_FOUND".into()));
    assert_eq!(key.get("/api/v1").await.refusal(), (404, "NOT_FOUND".into()));
    assert_eq!(key.get("/api/nope").await.refusal(), (404, "NOT_FOUND".into()));
    stage.world.clock.advance(Duration::from_secs(31 * 24 * 3600));
    assert_eq!(key.get("/api/v1/me").await.refusal(), (401, "UNAUTHORIZED".into()));
}

#[tokio::test]
async fn the_organization_is_named_by_its_slug() {
    let mut stage = Stage::new().await;
    let mut key = stage.key.clone();
    assert_eq!(key.get("/api/v1/me").await.expect(200)["organization"]["slug"], "acme");
    let (_, _, mut eve) = stage.outsider().await;
    let unnamed = key.get("/api/v1/me").await;
    assert_eq!(unnamed.json()["data"]["organizations"].as_array().unwrap().len(), 2);
    assert_eq!(unnamed.refusal(), (400, "ORG_SLUG_REQUIRED".into()));
    for (slug, name) in [("acme", "Acme"), (" ACME ", "Acme"), ("other", "Other")] {
        assert_eq!(
            key.clone().with("x-organization-slug", slug).get("/api/v1/me").await.expect(200)["organization"]["name"],
            name
        );
    }
    assert_eq!(eve.get("/api/v1/me").await.expect(200)["organization"]["slug"], "other");
    assert_eq!(
        eve.clone().with("x-organization-slug", "  ").get("/api/v1/me").await.expect(200)["organization"]["slug"],
        "other"
    );
    assert_eq!(
        eve.clone().with("x-organization-slug", "acme").get("/api/v1/me").await.refusal(),
        (403, "ORG_FORBIDDEN".into())
    );
    assert_eq!(
        eve.clone().with("x-organization-slug", "nobody").get("/api/v1/me").await.refusal(),
        (404, "ORG_SLUG_INVALID".into())
    );
    let mut twice = eve.clone().with("x-organization-slug", "acme").and("x-organization-slug", "globex");
    assert_eq!(twice.get("/api/v1/me").await.refusal(), (400, "INVALID_HEADER".into()));
    assert_eq!(eve.with("x-organization-slug", "\u{fc}").get("/api/v1/me").await.refusal().0, 400);
}

#[tokio::test]
async fn a_change_of_role_acts_on_the_next_request() {
    let mut stage = Stage::new().await;
    let mut developer = stage.member(Role::Developer).await;
    let keys = stage.app("api-keys");
    let secret = developer.post(&keys, json!({ "name": "dev", "expiresInDays": 1 })).await.expect(201)["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut key = stage.world.key(&secret);
    let me = key.get("/api/v1/me").await.expect(200);
    assert_eq!(me["capabilities"]["developer"], true);
    let path = stage.app(&format!("members/{}", me["user"]["id"].as_str().unwrap()));
    stage.owner.patch(&path, json!({ "role": "member" })).await.expect(200);
    assert_eq!(key.get("/api/v1/me").await.expect(200)["capabilities"]["developer"], false);
    assert_eq!(
        key.post("/api/v1/documents", json!({ "title": "a", "content": "b" })).await.refusal(),
        (403, "RBAC_FORBIDDEN".into())
    );
    stage.owner.patch(&path, json!({ "role": "disabled" })).await.expect(200);
    assert_eq!(key.get("/api/v1/threads").await.status, 403);
    stage.owner.delete(&path).await.expect(204);
    assert!(matches!(key.get("/api/v1/me").await.status.as_u16(), 401 | 403));
}

#[tokio::test]
async fn bodies_are_strict() {
    let stage = Stage::new().await;
    let key = &stage.key;
    let search = |body: Vec<u8>| async move { key.raw("POST", "/api/v1/knowledge/search", body).await };
    for (body, path, message) in [
        (&b"{}"[..], "query", "is required"),
        (b"", "query", "is required"),
        (b" \n", "query", "is required"),
        (br#"{"query":7}"#, "query", "must be a string"),
        (br#"{"query":null}"#, "query", "must be a string"),
        (br#"{"query":"  "}"#, "query", "must not be blank"),
        (br#"{"query":"a","quary":1}"#, "quary", "is not a known field"),
        (br#"{"query":"a","corpus":"mail"}"#, "corpus", "must be one of \"documents\", \"web\", \"all\""),
        (br#"{"query":"a","limit":9007199254740992}"#, "limit", "must be a whole number of at most 2^53 \u{2212} 1"),
        (br#"{"query":"a","limit":-9007199254740992}"#, "limit", "must be a whole number of at most 2^53 \u{2212} 1"),
        (br#"{"query":"a","limit":9999}"#, "limit", "must be a whole number from 1 to 50"),
        (br#"{"query":"a\u0000b"}"#, "query", "must not contain the character NUL"),
        (br#"[]"#, "", "must be an object"),
        (br#""text""#, "", "must be an object"),
    ] {
        let answer = search(body.to_vec()).await;
        assert_eq!(issue(&answer), (path.to_owned(), message.to_owned()), "{}", String::from_utf8_lossy(body));
    }
    for body in [
        &b"{"[..],
        br#"{"query":"\ud800"}"#,
        br#"{"\udfff":1}"#,
        b"{\"query\":\"\xff\"}",
        br#"{"query":"a"} x"#,
        br#"{"query":1e999}"#,
        b"\xef\xbb\xbf{}",
        "[".repeat(100_000).as_bytes(),
    ] {
        let (path, message) = issue(&search(body.to_vec()).await);
        assert!(path.is_empty() && message.starts_with("is not valid JSON"), "{message}");
    }
    let twice = search(br#"{"query":7,"query":"hotels"}"#.to_vec()).await;
    assert_eq!(twice.status, 200, "the last of two equal keys wins");
    let typed = key.clone().with("content-type", "text/plain").with("accept", "image/png");
    assert_eq!(typed.raw("POST", "/api/v1/knowledge/search", r#"{"query":"a"}"#).await.status, 200);
}

#[tokio::test]
async fn queries_are_strict() {
    let mut stage = Stage::new().await;
    for (method, path, has_body) in operations().into_iter().filter(|(_, path, _)| !is_vendors(path)) {
        let body = if has_body { "{}" } else { "" };
        for query in ["foo=1", "foo=1&foo=2", "foo", "="] {
            let answer = stage.key.raw(&method, &format!("{path}?{query}"), body).await;
            assert_eq!(answer.refusal(), (400, "INVALID_QUERY".into()), "{method} {path}?{query}");
            stage.world.clock.advance(Duration::from_secs(1));
        }
    }
    for (query, code) in [
        ("limit=x", "INVALID_LIMIT"),
        ("limit=1.5", "INVALID_LIMIT"),
        ("limit=99999999999999999999", "INVALID_LIMIT"),
        ("limit=", "INVALID_QUERY"),
        ("limit=1&limit=2", "INVALID_QUERY"),
        ("cursor=", "INVALID_QUERY"),
        ("cursor=abc", "INVALID_CURSOR"),
    ] {
        for path in ["threads", "documents"] {
            assert_eq!(
                stage.key.get(&format!("/api/v1/{path}?{query}")).await.refusal(),
                (400, code.into()),
                "{path}?{query}"
            );
        }
    }
    let named = stage.key.get("/api/v1/threads?foo=1").await.json();
    assert_eq!(named["data"]["issues"][0]["path"], "foo");
    for limit in ["0", "-5", "9999"] {
        stage.key.get(&format!("/api/v1/threads?limit={limit}")).await.expect(200);
    }
}

#[tokio::test]
async fn addresses_are_judged_before_the_key() {
    let stage = Stage::new().await;
    let mut nobody = stage.key.clone().without("authorization");
    for path in ["/api/v1/me%00", "/api/v1/me?a=%00", "/%00", "/api/app/session?%00=1"] {
        assert_eq!(nobody.get(path).await.refusal(), (400, "INVALID_URL".into()), "{path}");
    }
    let long = nobody.get(&format!("/api/v1/me?q={}", "a".repeat(33_000))).await;
    assert_eq!(long.json()["requestId"], long.header("x-request-id"));
    assert_eq!(long.refusal(), (414, "URI_TOO_LONG".into()));
    for path in ["/api/v1/%2e%2e/app/session", "/api/v1/../app/session", "/api/app/./session", "/api/v1/%2E./me"] {
        assert_eq!(nobody.get(path).await.refusal(), (404, "NOT_FOUND".into()), "{path}");
    }
    let mut key = stage.key.clone();
    key.get("/api/v1/me/").await.expect(200);
    assert_eq!(key.get("/api/v1/me//").await.refusal(), (404, "NOT_FOUND".into()));
    assert_eq!(key.get("/api/v1//me").await.refusal(), (404, "NOT_FOUND".into()));
    assert_eq!(key.get("/api/v1/ME").await.refusal(), (404, "NOT_FOUND".into()));
}

/// A body that fails the test when it is read.
fn unread() -> Body {
    Body::from_stream(stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> {
        panic!("the body was read")
    }))
}

#[tokio::test]
async fn bodies_have_a_cap() {
    let stage = Stage::new().await;
    let declared = stage.key.clone().with("content-length", "2000000").with("x-request-id", "mine");
    for path in ["/api/v1/threads", "/api/v1/knowledge/search"] {
        let refused = declared.raw("POST", path, unread()).await;
        assert_eq!((refused.json()["requestId"].as_str(), refused.header("x-request-id")), (Some("mine"), "mine"));
        assert_eq!(refused.refusal(), (413, "BODY_TOO_LARGE".into()));
    }
    let chunks = |count: usize| {
        Body::from_stream(stream::iter((0..count).map(|at| {
            assert!(at <= 17, "reading went on beyond the cap");
            Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 64 * 1024]))
        })))
    };
    assert_eq!(stage.key.raw("POST", "/api/v1/threads", chunks(1000)).await.refusal(), (413, "BODY_TOO_LARGE".into()));
    assert_eq!(
        stage.key.raw("POST", "/api/v1/threads", chunks(16)).await.status,
        201,
        "exactly the cap, all white space"
    );
    let inline = json!({ "title": "long", "content": "a".repeat(2 << 20) }).to_string();
    assert_eq!(
        stage.key.raw("POST", "/api/v1/documents", inline).await.status,
        201,
        "inline text has a cap of its own"
    );
    let browser = stage.owner.clone().with("content-length", "2000000");
    assert_eq!(
        browser.raw("POST", &stage.app("chat/threads"), unread()).await.refusal(),
        (413, "BODY_TOO_LARGE".into())
    );
}

#[tokio::test]
async fn methods() {
    let stage = Stage::new().await;
    let nobody = stage.key.clone().without("authorization");
    let allow = |answer: &Answer| {
        let mut list: Vec<String> = answer.header("allow").split(',').map(|verb| verb.trim().to_owned()).collect();
        list.sort_unstable();
        list.join(" ")
    };
    for (path, expected) in [
        ("/api/v1/me", "GET HEAD OPTIONS"),
        ("/api/v1/threads", "GET HEAD OPTIONS POST"),
        ("/api/v1/threads/x", "DELETE GET HEAD OPTIONS PATCH"),
        ("/api/v1/knowledge/search", "OPTIONS POST"),
        ("/api/app/session", "GET HEAD OPTIONS"),
        ("/api/auth/sign-out", "OPTIONS POST"),
        ("/openapi.json", "GET HEAD OPTIONS"),
        ("/log-in", "GET HEAD OPTIONS"),
    ] {
        let options = nobody.raw("OPTIONS", path, "").await;
        assert_eq!(
            (options.status.as_u16(), allow(&options), options.bytes.len()),
            (204, expected.to_owned(), 0),
            "{path}"
        );
        assert!(options.headers.get("access-control-allow-origin").is_none());
        assert!(!options.header("x-request-id").is_empty());
    }
    assert_eq!(nobody.raw("OPTIONS", "/api/v1/nope", "").await.status, 404);
    let wrong = stage.key.raw("PUT", "/api/v1/threads", "").await;
    assert_eq!(allow(&wrong), "GET HEAD POST");
    assert_eq!(wrong.refusal(), (405, "METHOD_NOT_ALLOWED".into()));
    assert_eq!(nobody.raw("PUT", "/api/v1/threads", "").await.refusal(), (401, "UNAUTHORIZED".into()));
    for method in ["TRACE", "CONNECT", "PROPFIND", "get"] {
        assert_eq!(
            stage.key.raw(method, "/api/v1/threads", "").await.refusal(),
            (405, "METHOD_NOT_ALLOWED".into()),
            "{method}"
        );
    }
}

#[tokio::test]
async fn head_says_what_get_would() {
    let mut stage = Stage::new().await;
    let made = stage
        .key
        .post("/api/v1/documents", json!({ "title": "Text", "content": "hotels ".repeat(500) }))
        .await
        .expect(201);
    let document = format!("/api/v1/documents/{}", made["id"].as_str().unwrap());
    let mut paths = vec![
        document.clone(),
        format!("{document}/content"),
        "/openapi.json".into(),
        "/docs".into(),
        "/docs/environment".into(),
        "/api/health".into(),
        "/ping".into(),
    ];
    paths.extend(["me", "models", "threads", "documents", "nope"].map(|path| format!("/api/v1/{path}")));
    for path in paths {
        let get = stage.key.get(&path).await;
        let offered = stage.key.clone().with("accept-encoding", "gzip, zstd");
        for client in [stage.key.clone(), offered] {
            let head = client.raw("HEAD", &path, "").await;
            assert!(head.bytes.is_empty());
            assert_eq!(
                (head.status, head.header("content-length")),
                (get.status, get.bytes.len().to_string().as_str()),
                "{path}"
            );
            for name in
                ["etag", "content-type", "cache-control", "content-disposition", "accept-ranges", "x-tale-api-version"]
            {
                assert_eq!(head.header(name), get.header(name), "{name} of {path}");
            }
            assert_eq!(head.header("content-encoding"), "");
        }
    }
}

#[tokio::test]
async fn the_environment_reference_is_served_in_three_languages() {
    let mut stage = Stage::new().await;
    for (path, words) in [
        ("/docs/environment", "Canonical public origin"),
        ("/docs/environment/de", "Kanonische öffentliche Origin"),
        ("/docs/environment/fr", "Origine publique canonique"),
    ] {
        let page = stage.key.get(path).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
        assert!(String::from_utf8_lossy(&page.bytes).contains(words), "{path}");
    }
    let reference = stage.key.get("/docs").await;
    assert!(String::from_utf8_lossy(&reference.bytes).contains("href=\"/docs/environment\""));
}

#[tokio::test]
async fn request_ids_are_kept_or_made() {
    let stage = Stage::new().await;
    for kept in ["a", "AZaz09_=-", &"x".repeat(255)] {
        assert_eq!(stage.key.clone().with("x-request-id", kept).get("/api/v1/me").await.header("x-request-id"), kept);
    }
    for replaced in ["", "with space", "quote\"", "\u{fc}", &"x".repeat(256), "a.b"] {
        let id = stage.key.clone().with("x-request-id", replaced).get("/ping").await.header("x-request-id").to_owned();
        assert_eq!(id.len(), 36, "{replaced:?} became {id:?}");
    }
    let refused = stage.key.clone().get("/api/v1/nope").await;
    assert!(refused.json().get("requestId").is_none(), "only 413, 414, 429 and 5xx repeat it");
}

#[tokio::test]
async fn the_version_is_on_every_answer_of_the_door_and_on_no_other() {
    let stage = Stage::new().await;
    for (method, path, _) in operations() {
        let answer = stage.key.raw(&method, &path, "[").await;
        assert_eq!(answer.header("x-tale-api-version"), tale_http::contract::CONTRACT_VERSION, "{method} {path}");
        assert!(answer.status.as_u16() < 500, "{method} {path}");
        stage.world.clock.advance(Duration::from_secs(1));
    }
    let mut key = stage.key.clone();
    for path in ["/api/health", "/status.json", "/openapi.json", "/ping", "/api/app/session"] {
        assert_eq!(key.get(path).await.header("x-tale-api-version"), "", "{path}");
    }
    assert_eq!(key.get("/openapi.json").await.expect(200)["info"]["version"], tale_http::contract::CONTRACT_VERSION);
}

#[tokio::test]
async fn what_was_made_is_found_where_location_says() {
    let mut stage = Stage::new().await;
    for (path, body) in [("threads", json!({})), ("documents", json!({ "title": "a", "content": "b" }))] {
        let made = stage.key.post(&format!("/api/v1/{path}"), body).await;
        let location = made.header("location").to_owned();
        let id = made.expect(201)["id"].as_str().unwrap().to_owned();
        assert_eq!(location, format!("/api/v1/{path}/{id}"));
        assert_eq!(stage.key.get(&location).await.expect(200)["id"], id);
        stage.key.delete(&location).await.expect(204);
        assert_eq!(stage.key.delete(&location).await.status, 404, "deleting what is gone");
        assert_eq!(stage.key.get(&location).await.status, 404);
    }
}

#[tokio::test]
async fn reads_are_tagged_and_compressed() {
    let mut stage = Stage::new().await;
    for title in 0..8 {
        stage.key.post("/api/v1/threads", json!({ "title": format!("Chat {title}") })).await.expect(201);
    }
    for path in ["/api/v1/me", "/api/v1/models", "/api/v1/threads", "/api/v1/documents"] {
        let plain = stage.key.get(path).await;
        let tag = plain.header("etag").trim_matches('"').to_owned();
        assert!(plain.header("etag").starts_with('"') && tag.len() == 32, "{path}: {:?}", plain.headers);
        assert_eq!(plain.header("cache-control"), "private, no-cache");
        for sent in [
            format!("\"{tag}\""),
            format!("W/\"{tag}\""),
            format!("\"{tag}-gzip\""),
            format!("\"x\", W/\"{tag}-zstd\""),
            "*".into(),
        ] {
            let same = stage.key.clone().with("if-none-match", &sent).with("accept-encoding", "gzip").get(path).await;
            assert_eq!(
                (same.status.as_u16(), same.bytes.len(), same.header("etag")),
                (304, 0, plain.header("etag")),
                "{sent}"
            );
        }
        assert_eq!(stage.key.clone().with("if-none-match", "\"other\"").get(path).await.status, 200);
    }
    let path = "/api/v1/threads";
    let plain = stage.key.get(path).await;
    let tag = plain.header("etag").trim_matches('"').to_owned();
    for (offered, coding) in [("gzip", "gzip"), ("zstd", "zstd"), ("br", ""), ("gzip;q=0", ""), ("identity", "")] {
        let answer = stage.key.clone().with("accept-encoding", offered).get(path).await;
        assert_eq!(answer.header("content-encoding"), coding, "{offered}");
        let expected = if coding.is_empty() { format!("\"{tag}\"") } else { format!("\"{tag}-{coding}\"") };
        assert_eq!(answer.header("etag"), expected);
        assert!(coding.is_empty() || answer.bytes.len() < plain.bytes.len());
    }
    let small = stage.key.clone().with("accept-encoding", "gzip").get("/api/health").await;
    assert_eq!(small.header("content-encoding"), "", "small answers stay as they are");
}

#[tokio::test]
async fn pages_follow_each_other_and_cursors_belong_to_one_list() {
    let mut stage = Stage::new().await;
    let mut expected = Vec::new();
    for number in 0..7 {
        let id =
            stage.key.post("/api/v1/threads", json!({ "title": format!("{number}") })).await.expect(201)["id"].clone();
        expected.insert(0, id);
        stage.world.clock.advance(Duration::from_secs(1));
    }
    let (mut seen, mut cursors, mut query) = (Vec::new(), Vec::new(), "limit=3".to_owned());
    loop {
        let page = stage.key.get(&format!("/api/v1/threads?{query}")).await.expect(200);
        seen.extend(page["page"].as_array().unwrap().iter().map(|thread| thread["id"].clone()));
        let cursor = page["continueCursor"].as_str().unwrap().to_owned();
        if page["isDone"] == true {
            assert_eq!(cursor, "");
            break;
        }
        query = format!("limit=3&cursor={cursor}");
        cursors.push(cursor);
    }
    assert_eq!((seen, cursors.len()), (expected, 2));
    let cursor = &cursors[0];
    let mut altered = cursor.clone().into_bytes();
    altered[5] ^= 1;
    let altered = String::from_utf8(altered).unwrap();
    let (mut eve, _, mut eve_key) = stage.outsider().await;
    for path in [
        format!("threads?cursor={altered}"),
        format!("threads?archived=true&cursor={cursor}"),
        format!("documents?cursor={cursor}"),
    ] {
        assert_eq!(stage.key.get(&format!("/api/v1/{path}")).await.refusal(), (400, "INVALID_CURSOR".into()), "{path}");
    }
    assert_eq!(
        eve_key.get(&format!("/api/v1/threads?cursor={cursor}")).await.refusal(),
        (400, "INVALID_CURSOR".into())
    );
    assert_eq!(
        eve.get(&format!("/api/app/chat/threads?cursor={cursor}")).await.refusal(),
        (400, "INVALID_CURSOR".into())
    );
}

#[tokio::test]
async fn the_door_lets_through_a_burst_and_then_a_steady_rate() {
    let mut stage = Stage::new().await;
    let keys = stage.app("api-keys");
    let second = stage.owner.post(&keys, json!({ "name": "second", "expiresInDays": 1 })).await.expect(201);
    let mut second = stage.world.key(second["key"].as_str().unwrap());
    let mut nobody = stage.key.clone().without("authorization");
    for _ in 0..300 {
        assert_eq!(nobody.get("/api/v1/me").await.status, 401, "a request without any key costs nothing");
    }
    for _ in 0..200 {
        stage.key.get("/api/v1/me").await.expect(200);
    }
    let refused = stage.key.get("/api/v1/me").await;
    assert_eq!(refused.header("retry-after"), "1");
    let body = refused.json();
    assert_eq!(body["error"], "Too many requests \u{2014} retry after 500 ms");
    assert_eq!(
        (body["data"].clone(), body["requestId"].as_str().unwrap()),
        (json!({ "retryAfterMs": 500 }), refused.header("x-request-id"))
    );
    assert_eq!(refused.refusal(), (429, "RATE_LIMITED".into()));
    assert_eq!(second.get("/api/v1/me").await.status, 429, "all keys of a person draw from one bucket");
    stage.world.clock.advance(Duration::from_millis(500));
    second.get("/api/v1/me").await.expect(200);
    assert_eq!(stage.key.get("/api/v1/me").await.status, 429);
    let mut guesses = stage.key.clone().with("authorization", "Bearer tale_u_guess");
    for _ in 0..40 {
        assert_eq!(guesses.get("/api/v1/me").await.status, 401);
    }
    assert_eq!(guesses.get("/api/v1/me").await.status, 429);
    assert_eq!(
        guesses.from("198.51.100.7").get("/api/v1/me").await.status,
        401,
        "another address has a bucket of its own"
    );
}

#[tokio::test]
async fn a_send_is_repeated_safely_with_an_idempotency_key() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let thread = stage.key.post("/api/v1/threads", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/threads/{thread}/messages");
    let body = json!({ "content": "Hello", "model": "fake-chat" });
    for wrong in ["", "   ", &"k".repeat(256), "\u{e4}"] {
        let refused = stage.key.clone().with("idempotency-key", wrong).post(&path, body.clone()).await;
        assert_eq!(refused.refusal(), (400, "INVALID_HEADER".into()), "{wrong:?}");
    }
    let mut once = stage.key.clone().with("idempotency-key", " order 7 ");
    let first = once.post(&path, body.clone()).await.expect(202);
    assert!(first.get("duplicate").is_none());
    assert_eq!(first["poll"], format!("/api/v1/threads/{thread}/generation"));
    let again = once.raw("POST", &path, r#" {"model":"fake-chat", "content":"Hello"} "#).await.expect(202);
    assert_eq!((&again["messageId"], &again["duplicate"]), (&first["messageId"], &json!(true)));
    let other = once.post(&path, json!({ "content": "Other", "model": "fake-chat" })).await;
    assert_eq!(other.refusal(), (409, "IDEMPOTENCY_KEY_REUSED".into()));
    stage.settled(&thread).await;
    let messages = stage.key.get(&path).await.expect(200);
    assert_eq!(messages["page"].as_array().unwrap().len(), 2);
    stage.world.clock.advance(Duration::from_secs(24 * 3600 + 1));
    let later = once.post(&path, body).await.expect(202);
    assert_ne!(later["messageId"], first["messageId"], "remembered for 24 hours");
    stage.settled(&thread).await;
}

#[tokio::test]
async fn every_code_that_is_answered_is_in_the_contract() {
    let stage = Stage::new().await;
    let document = tale_http::contract::document();
    let codes = &document["components"]["schemas"]["Error"]["properties"]["code"]["enum"];
    for (method, path, _) in operations().into_iter().filter(|(_, path, _)| !is_vendors(path)) {
        for body in ["", "{}", "[1]", r#"{"content":"a","title":"b","model":"c","query":"d"}"#] {
            let answer = stage.key.raw(&method, &path, body).await;
            if answer.status.as_u16() >= 400 {
                let problem = answer.json();
                assert!(codes.as_array().unwrap().contains(&problem["code"]), "{problem}");
                let sentence = problem["error"].as_str().unwrap();
                assert!(sentence.len() > 10 && !sentence.contains("sqlx") && !sentence.contains("::"), "{sentence}");
                let keys: Vec<&str> = problem.as_object().unwrap().keys().map(String::as_str).collect();
                assert!(keys.iter().all(|key| ["error", "code", "data", "requestId"].contains(key)), "{keys:?}");
            }
            stage.world.clock.advance(Duration::from_secs(2));
        }
    }
    let _: Value = document;
}
