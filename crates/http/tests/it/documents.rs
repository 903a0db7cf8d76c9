//! The doors of uploads and documents: exact shapes, bytes, tags, rights.

use serde_json::{Value, json};
use tale_core::ids::{FileId, OrgId};

use crate::client::{Answer, Client};
use crate::world::World;

const PASSWORD: &str = "Blue-Kettle-42";

struct Scene {
    world: World,
    browser: Client,
    org: String,
    key: Client,
}

async fn scene() -> Scene {
    let world = World::new().await;
    let mut browser = world.browser();
    let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
    let done = browser.post("/api/app/setup", form).await.expect(200);
    let org = done["organization"]["id"].as_str().unwrap().to_owned();
    let made = browser
        .post(&format!("/api/app/api-keys?orgId={org}"), json!({ "name": "test", "expiresInDays": null }))
        .await
        .expect(201);
    let key = world.key(made["key"].as_str().unwrap());
    Scene { world, browser, org, key }
}

impl Scene {
    fn app(&self, path: &str) -> String {
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("/api/app/{path}{sign}orgId={}", self.org)
    }

    async fn post(&mut self, path: &str, body: Value) -> Answer {
        let path = self.app(path);
        self.browser.post(&path, body).await
    }

    async fn get(&mut self, path: &str) -> Answer {
        let path = self.app(path);
        self.browser.get(&path).await
    }

    /// Opens a slot through the door and puts the bytes as it says.
    async fn upload(&mut self, name: &str, content: &str) -> String {
        let slot = self
            .post("uploads", json!({ "fileName": name, "contentType": "", "size": content.len() }))
            .await
            .expect(201);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        assert_eq!(slot["method"], "PUT");
        let mut request = http.put(slot["url"].as_str().unwrap()).body(content.to_owned());
        for (name, value) in slot["headers"].as_object().unwrap() {
            request = request.header(name, value.as_str().unwrap());
        }
        assert_eq!(request.send().await.unwrap().status(), 200);
        slot["fileId"].as_str().unwrap().to_owned()
    }

    async fn document(&mut self, name: &str, content: &str) -> (String, String) {
        let file = self.upload(name, content).await;
        let document = self.post("documents", json!({ "fileId": file })).await.expect(201);
        (document["id"].as_str().unwrap().to_owned(), file)
    }

    async fn index(&self, file: &str) {
        let (org, file): (OrgId, FileId) = (self.org.parse().unwrap(), file.parse().unwrap());
        self.world.knowledge.index_file(org, file, || async { Ok(()) }).await.unwrap();
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn an_upload_slot_says_all_a_browser_needs() {
    let mut scene = scene().await;
    let slot = scene
        .post("uploads", json!({ "fileName": "a.txt", "contentType": "text/plain", "size": 3, "purpose": "document" }))
        .await
        .expect(201);
    assert_eq!(keys(&slot), ["fileId", "headers", "method", "url"]);
    assert_eq!(slot["headers"], json!({ "Content-Type": "text/plain" }));
    for (body, code) in [
        (json!({ "fileName": "a.txt", "contentType": "" }), "FILE_SIZE_INVALID"),
        (json!({ "fileName": "a.txt", "contentType": "", "size": -1 }), "FILE_SIZE_INVALID"),
        (json!({ "fileName": "a.txt", "contentType": "", "size": 1.5 }), "FILE_SIZE_INVALID"),
        (json!({ "fileName": "a.txt", "contentType": "", "size": "3" }), "FILE_SIZE_INVALID"),
        (json!({ "fileName": "a.txt", "contentType": "", "size": 104_857_601 }), "FILE_TOO_LARGE"),
        (json!({ "fileName": "a.exe", "contentType": "", "size": 3 }), "UNSUPPORTED_FILE_TYPE"),
        (json!({ "fileName": " ", "contentType": "", "size": 3 }), "INVALID_BODY"),
        (json!({ "fileName": "a.txt", "contentType": "", "size": 3, "projectId": "x" }), "INVALID_BODY"),
        (json!({ "fileName": "a.txt", "contentType": "", "size": 3, "purpose": "mail" }), "INVALID_BODY"),
        (json!({ "fileName": "a\u{0}.txt", "contentType": "", "size": 3 }), "INVALID_BODY"),
    ] {
        assert_eq!(scene.post("uploads", body.clone()).await.refusal(), (400, code.to_owned()), "{body}");
    }
    let path = scene.app("uploads");
    let body = json!({ "fileName": "a.txt", "contentType": "", "size": 3 });
    assert_eq!(scene.world.browser().post(&path, body.clone()).await.refusal().0, 401);
    let elsewhere = scene.browser.clone().with("origin", "https://evil.example").post(&path, body).await;
    assert_eq!(elsewhere.refusal(), (403, "ORIGIN_FORBIDDEN".into()));
}

#[tokio::test]
async fn the_app_lists_reads_renames_deletes_and_restores() {
    let mut scene = scene().await;
    let (id, file) = scene.document("Handbook.md", "# Leave\n\nThirty days of holiday.").await;
    scene.index(&file).await;
    let document = scene.get(&format!("documents/{id}")).await.expect(200);
    assert_eq!(
        keys(&document),
        [
            "contentHash",
            "createdAt",
            "createdBy",
            "extension",
            "fileName",
            "id",
            "indexing",
            "mimeType",
            "size",
            "title",
            "updatedAt"
        ]
    );
    assert_eq!(
        (&document["title"], &document["fileName"], &document["size"]),
        (&json!("Handbook"), &json!("Handbook.md"), &json!(32))
    );
    assert_eq!(document["createdBy"]["name"], "Ada");
    assert_eq!(document["indexing"]["status"], "completed");
    assert_eq!(document["indexing"]["embedded"], false);
    assert_eq!(document["indexing"]["errorCode"], "embedding_not_configured");
    assert!(document["indexing"]["indexedAt"].is_i64());

    let list = scene.get("documents?search=hand&status=completed&limit=1").await.expect(200);
    assert_eq!(keys(&list), ["continueCursor", "isDone", "page", "searchMode", "total"]);
    assert_eq!(
        (&list["total"], &list["isDone"], &list["continueCursor"], &list["searchMode"]),
        (&json!(1), &json!(true), &json!(""), &json!("keywords"))
    );
    assert_eq!(list["page"], json!([document]));
    scene.document("b.txt", "x").await;
    let first = scene.get("documents?limit=1").await.expect(200);
    assert_eq!(first["isDone"], false);
    let cursor = first["continueCursor"].as_str().unwrap();
    let second = scene.get(&format!("documents?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!(second["page"][0]["id"].as_str(), Some(id.as_str()));
    assert_eq!(
        scene.get(&format!("documents?limit=1&search=x&cursor={cursor}")).await.refusal(),
        (400, "INVALID_CURSOR".into())
    );
    for query in ["status=lost", "sort=colour", "order=up", "sort=name&sort=size", "sort="] {
        assert_eq!(scene.get(&format!("documents?{query}")).await.refusal(), (400, "INVALID_QUERY".into()), "{query}");
    }
    for (query, expected) in [
        ("sort=name", ["b", "Handbook"]),
        ("sort=name&order=desc", ["Handbook", "b"]),
        ("sort=size", ["Handbook", "b"]),
        ("sort=size&order=asc", ["b", "Handbook"]),
        ("sort=added&order=asc", ["Handbook", "b"]),
    ] {
        let first = scene.get(&format!("documents?limit=1&{query}")).await.expect(200);
        let cursor = first["continueCursor"].as_str().unwrap();
        let second = scene.get(&format!("documents?limit=1&{query}&cursor={cursor}")).await.expect(200);
        assert_eq!([&first, &second].map(|page| page["page"][0]["title"].as_str().unwrap()), expected, "{query}");
        assert_eq!(
            scene.get(&format!("documents?limit=1&cursor={cursor}")).await.refusal(),
            (400, "INVALID_CURSOR".into()),
            "{query}"
        );
    }

    let path = scene.app(&format!("documents/{id}"));
    let renamed = scene.browser.patch(&path, json!({ "title": "Rules" })).await.expect(200);
    assert_eq!(renamed["title"], "Rules");
    assert_eq!(scene.browser.patch(&path, json!({ "title": "" })).await.refusal(), (400, "INVALID_BODY".into()));
    scene.browser.delete(&path).await.expect(204);
    assert_eq!(scene.get(&format!("documents/{id}")).await.refusal(), (404, "DOCUMENT_NOT_FOUND".into()));
    assert_eq!(scene.post(&format!("documents/{id}/restore"), json!({})).await.expect(200)["title"], "Rules");
    assert_eq!(scene.get("documents/not-an-id").await.refusal(), (404, "DOCUMENT_NOT_FOUND".into()));
    scene.index(&file).await;
    assert_eq!(
        scene.post(&format!("documents/{id}/retry-indexing"), json!({})).await.expect(200),
        json!({ "status": "indexing" })
    );
    let busy = scene.post(&format!("documents/{id}/retry-indexing"), json!({})).await.expect(200);
    assert_eq!(busy, json!({ "status": "skipped", "reason": "in-progress" }));
}

#[tokio::test]
async fn text_and_passages_open_where_a_citation_points() {
    let mut scene = scene().await;
    let content = "# Größe\n\nDer Murmeltierbau ist tief.";
    let (id, file) = scene.document("bau.md", content).await;
    scene.index(&file).await;
    let text = scene.get(&format!("documents/{id}/text?offset=2&limit=5")).await.expect(200);
    assert_eq!(text, json!({ "text": "Größe", "totalLength": content.chars().count(), "nextOffset": 7 }));
    let search = scene.key.post("/api/v1/knowledge/search", json!({ "query": "Murmeltierbau" })).await.expect(200);
    let chunk = search["hits"][0]["id"].as_str().or_else(|| search["hits"][0]["chunkId"].as_str()).unwrap().to_owned();
    let passage = scene.get(&format!("documents/{id}/passages/{chunk}")).await.expect(200);
    assert_eq!(keys(&passage), ["chunkId", "end", "header", "page", "passage", "start"]);
    assert_eq!(
        (&passage["start"], &passage["end"], &passage["page"]),
        (&json!(0), &json!(content.chars().count()), &Value::Null)
    );
    assert_eq!(passage["passage"], content);
    let random = uuid::Uuid::new_v4();
    assert_eq!(
        scene.get(&format!("documents/{id}/passages/{random}")).await.refusal(),
        (404, "PASSAGE_NOT_FOUND".into())
    );
}

#[tokio::test]
async fn bytes_come_whole_in_ranges_and_never_as_a_page_of_the_site() {
    let mut scene = scene().await;
    let (id, _) = scene.document("Ünï \"x\".html", "<script>1</script>").await;
    let path = scene.app(&format!("documents/{id}/content"));
    let whole = scene.browser.get(&path).await;
    assert_eq!(whole.status, 200);
    assert_eq!(whole.bytes, b"<script>1</script>");
    assert!(whole.header("content-security-policy").contains("sandbox"));
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    assert!(whole.header("content-disposition").starts_with("attachment;"), "it could act");
    let tag = whole.header("etag").to_owned();

    let part = scene.browser.clone().with("range", "bytes=1-6").get(&path).await;
    assert_eq!((part.status.as_u16(), part.header("content-range")), (206, "bytes 1-6/18"));
    assert_eq!(part.bytes, b"script");
    let beyond = scene.browser.clone().with("range", "bytes=18-").get(&path).await;
    assert_eq!((beyond.status.as_u16(), beyond.header("content-range"), beyond.bytes.len()), (416, "bytes */18", 0));
    let fresh = scene.browser.clone().with("if-none-match", &tag).get(&path).await;
    assert_eq!((fresh.status.as_u16(), fresh.bytes.len()), (304, 0));
    let head = scene.browser.send("HEAD", &path, None).await;
    assert_eq!((head.status.as_u16(), head.header("content-length"), head.bytes.len()), (200, "18", 0));

    let (id, file) = scene.document("a.txt", "plain").await;
    assert_eq!(scene.get(&format!("files/{file}/content")).await.bytes, b"plain");
    let unknown = uuid::Uuid::new_v4();
    assert_eq!(scene.get(&format!("files/{unknown}/content")).await.refusal(), (404, "FILE_NOT_FOUND".into()));
    let shown = scene.get(&format!("documents/{id}/content")).await;
    assert!(shown.header("content-disposition").starts_with("inline;"));
    let saved = scene.get(&format!("documents/{id}/content?download=1")).await;
    assert!(saved.header("content-disposition").starts_with("attachment;"));
}

#[tokio::test]
async fn key_holders_create_read_guard_and_delete() {
    let mut scene = scene().await;
    let file = scene.upload("a.txt", "hello").await;
    let created = scene.key.post("/api/v1/documents", json!({ "fileId": file, "title": "Greeting" })).await;
    let location = created.header("location").to_owned();
    let tag = created.header("etag").to_owned();
    let document = created.expect(201);
    assert_eq!(
        keys(&document),
        [
            "content",
            "contentHash",
            "createdAt",
            "createdBy",
            "extension",
            "fileName",
            "id",
            "indexing",
            "mimeType",
            "size",
            "title",
            "updatedAt"
        ]
    );
    assert_eq!(
        (&document["content"], &document["contentHash"], &document["indexing"]["status"]),
        (&Value::Null, &Value::Null, &json!("queued"))
    );
    let read = scene.key.get(&location).await;
    assert_eq!(read.header("etag"), tag);
    assert_eq!(read.json(), document);
    let again = scene.key.post("/api/v1/documents", json!({ "fileId": file })).await.expect(200);
    assert_eq!(again["id"], document["id"]);

    for (body, answer) in [
        (json!({ "fileId": uuid::Uuid::new_v4() }), (404, "FILE_NOT_FOUND")),
        (json!({ "fileId": "nonsense" }), (404, "FILE_NOT_FOUND")),
        (json!({ "fileId": file, "projectId": "x" }), (400, "INVALID_BODY")),
        (json!({ "fileId": file, "content": "x" }), (400, "INVALID_BODY")),
        (json!({ "title": "x" }), (400, "INVALID_BODY")),
        (json!({ "content": "x" }), (400, "INVALID_BODY")),
    ] {
        let (status, code) = scene.key.post("/api/v1/documents", body.clone()).await.refusal();
        assert_eq!((status, code.as_str()), answer, "{body}");
    }

    // Indexing changes the representation, so the first tag no longer holds.
    scene.index(&file).await;
    let stale = scene.key.clone().with("if-match", &tag).patch(&location, json!({ "title": "Greeting" })).await;
    let current = stale.json()["data"]["etag"].as_str().unwrap().to_owned();
    assert_eq!(stale.refusal(), (412, "PRECONDITION_FAILED".into()));
    let weak =
        scene.key.clone().with("if-match", &format!("W/{current}")).patch(&location, json!({ "title": "Hi" })).await;
    assert_eq!(weak.refusal().0, 412);
    let stale = scene.key.patch(&location, json!({ "title": "Hi", "expectedUpdatedAt": 5 })).await;
    assert_eq!(stale.refusal(), (409, "DOCUMENT_STALE".into()));
    let noop = scene.key.clone().with("if-match", &current).patch(&location, json!({ "title": "Greeting" })).await;
    assert_eq!(noop.header("etag"), current);
    noop.expect(200);
    let changed = scene.key.clone().with("if-match", "\"x\", *").patch(&location, json!({ "title": "Hi" })).await;
    assert_ne!(changed.header("etag"), current);
    assert_eq!(changed.header("etag"), scene.key.get(&location).await.header("etag"));
    assert_eq!(changed.expect(200)["title"], "Hi");

    let content = scene.key.get(&format!("{location}/content")).await;
    assert_eq!((content.status.as_u16(), content.bytes.as_slice()), (200, b"hello".as_slice()));
    let list = scene.key.get("/api/v1/documents?limit=1000").await.expect(200);
    assert_eq!(keys(&list), ["continueCursor", "isDone", "page"]);
    assert_eq!(list["page"][0]["id"], document["id"]);
    assert_eq!(scene.key.get("/api/v1/documents?limit=x").await.refusal(), (400, "INVALID_LIMIT".into()));
    scene.key.delete(&location).await.expect(204);
    assert_eq!(scene.key.delete(&location).await.refusal(), (404, "DOCUMENT_NOT_FOUND".into()));
    assert_eq!(
        scene.key.post("/api/v1/documents", json!({ "fileId": file })).await.refusal(),
        (404, "FILE_NOT_FOUND".into())
    );
}

#[tokio::test]
async fn inline_text_is_read_back_and_never_indexed() {
    let mut scene = scene().await;
    let text = "line\n".repeat(400_000);
    let body = json!({ "title": "Notes", "content": text, "mimeType": "text/markdown", "extension": "md" });
    let document = scene.key.post("/api/v1/documents", body).await.expect(201);
    assert_eq!(document["content"].as_str().map(str::len), Some(2_000_000), "beyond the ordinary cap of a body");
    assert_eq!((&document["mimeType"], &document["indexing"]["status"]), (&json!("text/markdown"), &json!("pending")));
    let path = format!("/api/v1/documents/{}", document["id"].as_str().unwrap());
    let retried = scene.key.post(&format!("{path}/retry-indexing"), json!({})).await.expect(200);
    assert_eq!(retried, json!({ "status": "skipped", "reason": "content-only" }));
    assert_eq!(
        scene.key.get("/api/v1/documents").await.expect(200)["page"][0]["content"],
        Value::Null,
        "lists carry no text"
    );
    let part = scene.key.clone().with("range", "bytes=0-3").get(&format!("{path}/content")).await;
    assert_eq!((part.status.as_u16(), part.bytes.as_slice()), (206, b"line".as_slice()));
    for _ in 0..9 {
        scene.key.post(&format!("{path}/retry-indexing"), json!({})).await.expect(200);
    }
    let limited = scene.key.post(&format!("{path}/retry-indexing"), json!({})).await;
    assert!(!limited.header("retry-after").is_empty());
    assert_eq!(limited.refusal(), (429, "RATE_LIMITED".into()));
}

#[tokio::test]
async fn members_read_and_strangers_find_nothing() {
    let mut scene = scene().await;
    let (id, _) = scene.document("a.txt", "x").await;
    let invite = json!({ "email": "bob@acme.test", "role": "member", "password": PASSWORD });
    scene.post("members", invite).await.expect(201);
    let mut member = scene.world.browser();
    member.post("/api/auth/sign-in/email", json!({ "email": "bob@acme.test", "password": PASSWORD })).await.expect(200);
    let path = scene.app(&format!("documents/{id}"));
    member.get(&path).await.expect(200);
    for refused in [
        member.delete(&path).await,
        member.patch(&path, json!({ "nonsense": 1 })).await,
        member.post(&scene.app("documents"), json!({})).await,
        member.post(&scene.app(&format!("documents/{id}/retry-indexing")), json!({})).await,
    ] {
        assert_eq!(refused.refusal(), (403, "RBAC_FORBIDDEN".into()), "the right is judged before the body");
    }
    let other = member.post("/api/app/organizations", json!({ "name": "Other" })).await;
    if other.status == 201 {
        let other = other.json()["id"].as_str().unwrap().to_owned();
        for path in ["", "/content", "/text"] {
            let answer = member.get(&format!("/api/app/documents/{id}{path}?orgId={other}")).await;
            assert_eq!(answer.refusal(), (404, "DOCUMENT_NOT_FOUND".into()));
        }
        assert_eq!(
            member.delete(&format!("/api/app/documents/{id}?orgId={other}")).await.refusal(),
            (404, "DOCUMENT_NOT_FOUND".into())
        );
    }
}

#[tokio::test]
async fn an_upload_policy_counts_when_a_file_is_announced_and_when_it_is_used() {
    let mut scene = scene().await;
    let before = scene.upload("a.html", "<p>Early</p>").await;
    let lay = async |scene: &mut Scene, value: Value| {
        scene.browser.put(&scene.app("governance/policies/upload_policy"), json!({ "value": value })).await.expect(200)
    };
    let rules = json!({
        "enabled": true, "blockedExtensions": [".HTML"], "allowedMimeTypes": ["text/*", "image/png"],
        "maxFileSizeBytes": 40, "maxTotalVolumeBytesPerUser": 100,
    });
    assert_eq!(lay(&mut scene, rules).await["value"]["blockedExtensions"], json!(["html"]));
    let refused = |answer: Answer| {
        assert_eq!(answer.refusal(), (400, "UPLOAD_POLICY_REJECTED".into()));
        answer.json()["data"].clone()
    };
    for purpose in ["document", "chat"] {
        let ask = |name: &str, kind: &str, size: u64| json!({ "fileName": name, "contentType": kind, "size": size, "purpose": purpose });
        for (body, data) in [
            (ask("x.Html", "text/plain", 1), json!({ "check": "extension" })),
            (ask("x.pdf", "", 1), json!({ "check": "contentType" })),
            (ask("x.txt", "", 41), json!({ "check": "size", "limitBytes": 40 })),
        ] {
            assert_eq!(refused(scene.post("uploads", body).await), data, "{purpose}");
        }
    }
    // What was announced before the policy is judged when it is used, at every door.
    assert_eq!(refused(scene.post("documents", json!({ "fileId": before })).await), json!({ "check": "extension" }));
    let by_key = scene.key.post("/api/v1/documents", json!({ "fileId": before })).await;
    assert_eq!(refused(by_key), json!({ "check": "extension" }));
    let inline = json!({ "title": "x", "content": "y", "extension": "html" });
    assert_eq!(refused(scene.key.post("/api/v1/documents", inline).await), json!({ "check": "extension" }));
    // A page that is called a picture is judged by its bytes.
    let lie = scene.upload("a.png", "<script>no picture</script>").await;
    let bound = scene.post("documents", json!({ "fileId": lie })).await;
    assert_eq!(refused(bound), json!({ "check": "contentType" }));
    // 12 + 27 + 40 bytes are stored or on their way.
    let kept = scene.upload("b.txt", &"b".repeat(40)).await;
    let body = json!({ "fileName": "c.txt", "contentType": "", "size": 22 });
    assert_eq!(refused(scene.post("uploads", body).await), json!({ "check": "quota", "limitBytes": 100 }));
    scene.post("documents", json!({ "fileId": kept })).await.expect(201);
    lay(&mut scene, json!({ "enabled": false })).await;
    scene.post("documents", json!({ "fileId": before })).await.expect(201);
}
