//! Every route of the contract as every role, as a stranger and as nobody: what the table of
//! capabilities says is what happens, and nothing is ever a fault.

use std::time::Duration;

use serde_json::json;
use tale_identity::{Capability, Role};

use crate::client::Client;
use crate::stage::{PASSWORD, Stage};

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Needs {
    /// Nothing.
    Nothing,
    /// A sign-in that waits for its second factor.
    HalfSignIn,
    /// A session, in whatever organization.
    Session,
    /// A membership that is not disabled or is: only the organization must be one's own.
    Membership,
    /// A right in the organization.
    Right(Capability),
    /// A right in the organization, or the part of it that is reading.
    Reading(Capability),
    /// Off for every key until it is switched on; see `model_endpoints`.
    Switched,
}

/// Where pages of identity providers post to, whose responses say by themselves who they are for.
fn by_providers(path: &str) -> bool {
    path == "/api/sso/saml/{organization}/acs"
}

/// The table. A new route must be entered here.
fn needs(method: &str, path: &str) -> Needs {
    use Capability::{
        ApiKeysOwn, AuditRead, ChatClear, ChatRate, ChatUse, CompetencesManage, GovernanceManage, KnowledgeRead,
        KnowledgeWrite, MembersManage, OrganizationManage, OrganizationOwn, ProvidersManage, SandboxesManage,
        SignInManage, TeamsManage, TeamsMembers, TeamsRead, UsageOwn, UsageRead, WorkspacesManage,
    };
    let read = method == "GET";
    let path = path.strip_prefix("/api/v1/").map_or_else(|| path.to_owned(), |rest| format!("v1/{rest}"));
    match path.strip_prefix("/api/app/").unwrap_or(&path) {
        "/ping"
        | "/ready"
        | "/api/health"
        | "/status.json"
        | "session"
        | "setup"
        | "/api/auth/sign-in/email"
        | "/api/trusted-headers/authenticate"
        | "/api/sso/connections"
        | "/api/sso/saml/{organization}/acs"
        | "/api/sso/saml/{organization}/metadata"
        | "/api/sso/start"
        | "/api/sso/callback"
        | "/api/sso/{organization}/callback"
        | "/api/auth/passkey"
        | "/api/auth/passkey/options"
        | "/api/auth/sign-up/email" => Needs::Nothing,
        rest if rest.starts_with("/api/auth/two-factor") => Needs::HalfSignIn,
        "/api/auth/sign-out" | "organizations" | "object-storage/origins" => Needs::Session,
        rest if rest.starts_with("branding/published/") => Needs::Nothing,
        rest if rest.starts_with("branding") => Needs::Right(OrganizationManage),
        rest if rest.starts_with("object-storage") || rest.starts_with("knowledge/connection") => {
            Needs::Right(OrganizationManage)
        }
        rest if rest.starts_with("account") => Needs::Session,
        "organizations/{id}" if method == "DELETE" => Needs::Right(OrganizationOwn),
        rest if rest.starts_with("organizations/{id}") => Needs::Right(OrganizationManage),
        rest if ["trusted-headers", "provisioning", "sso"].iter().any(|door| rest.starts_with(door)) => {
            Needs::Right(SignInManage)
        }
        "permissions" | "preferences" | "v1/me" => Needs::Membership,
        rest if rest.starts_with("notifications") => Needs::Membership,
        rest if rest.ends_with("/transfer-ownership") => Needs::Right(OrganizationOwn),
        rest if rest.starts_with("members") => Needs::Right(MembersManage),
        "teams" if read => Needs::Right(TeamsRead),
        "teams/{id}/members" if read => Needs::Right(TeamsMembers),
        rest if rest.starts_with("teams") => Needs::Right(TeamsManage),
        "api-keys" | "api-keys/{id}/rotate" if !read => Needs::Right(ApiKeysOwn),
        rest if rest.starts_with("api-keys") => Needs::Membership,
        rest if ["providers", "credentials", "subscriptions", "catalogs"].iter().any(|door| rest.starts_with(door)) => {
            Needs::Right(ProvidersManage)
        }
        rest if rest.starts_with("knowledge/embedding") => Needs::Right(OrganizationManage),
        rest if rest.starts_with("audit") => Needs::Right(AuditRead),
        "governance/my/budget-status" => Needs::Right(UsageOwn),
        "/events/file" => Needs::Right(GovernanceManage),
        "usage" | "usage/export" => Needs::Right(UsageRead),
        rest if rest.starts_with("governance/competences") => Needs::Right(CompetencesManage),
        rest if rest.starts_with("governance") => Needs::Right(GovernanceManage),
        rest if rest.starts_with("code/") || rest == "sandboxes" => Needs::Reading(SandboxesManage),
        rest if rest.starts_with("sandboxes/") => Needs::Right(WorkspacesManage),
        "model-endpoints" => Needs::Right(ApiKeysOwn),
        rest if rest.starts_with("v1/openai/") || rest.starts_with("v1/anthropic/") => Needs::Switched,
        "uploads" | "search" | "/events" => Needs::Right(ChatUse),
        rest if rest.starts_with("files/") => Needs::Right(ChatUse),
        rest if rest.ends_with("/feedback") => Needs::Right(ChatRate),
        "chat/threads/archive-all" | "chat/threads/delete-all" => Needs::Right(ChatClear),
        "chat/threads/{id}" | "v1/threads/{threadId}" if method == "DELETE" => Needs::Right(ChatClear),
        rest if rest.starts_with("chat/") || rest.starts_with("v1/threads") || rest == "v1/models" => {
            Needs::Right(ChatUse)
        }
        "v1/knowledge/search" => Needs::Right(KnowledgeRead),
        rest if rest.starts_with("documents") || rest.starts_with("v1/documents") => {
            Needs::Right(if read { KnowledgeRead } else { KnowledgeWrite })
        }
        other => panic!("{method} {other} is not in the table of rights"),
    }
}

/// Method, path of the contract.
fn routes() -> Vec<(String, String)> {
    let document = tale_http::contract::document();
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect()
}

#[test]
fn every_right_with_a_door_guards_a_route() {
    let mut acting: Vec<Capability> = Capability::ALL.iter().copied().filter(|right| right.door().is_some()).collect();
    for (method, path) in routes() {
        if let Needs::Right(right) | Needs::Reading(right) = needs(&method, &path) {
            assert!(right.door().is_some(), "{method} {path} asks for {right}, which has no door");
            acting.retain(|other| *other != right);
        }
    }
    // Those of some kinds of keys and some policies only, and those that are off until somebody switches them on.
    assert_eq!(acting, [Capability::ApiKeysOthers, Capability::ModelsCall, Capability::PoliciesRead]);
}

const NOBODY: &str = "01900000-0000-7000-8000-000000000000";

/// The path with ids that name nothing, in an organization.
fn filled(path: &str, org: &str) -> String {
    let ids: Vec<&str> = path
        .split('/')
        .map(|part| {
            if !part.starts_with('{') {
                part
            } else if path.starts_with("/api/app/organizations") {
                org
            } else {
                NOBODY
            }
        })
        .collect();
    let query = match path {
        "/api/app/search" => "q=a&",
        "/api/app/audit/export" => "format=csv&",
        "/api/app/providers/{slug}" | "/api/app/credentials/{id}" | "/api/app/subscriptions/{id}" => "version=1&",
        _ => "",
    };
    if path.starts_with("/api/app/") || path.starts_with("/events") {
        format!("{}?{query}orgId={org}", ids.join("/"))
    } else {
        ids.join("/")
    }
}

/// Routes that would end the session which the next routes need.
fn ends_the_session(path: &str) -> bool {
    path == "/api/auth/sign-out" || path.starts_with("/api/app/account/sessions")
}

async fn status(client: &Client, method: &str, path: &str) -> (u16, String) {
    // The stream of live updates has no end: its head is enough.
    let response = client.open(method, path, "{}".into()).await;
    let status = response.status().as_u16();
    if status < 400 {
        return (status, String::new());
    }
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    // The model endpoints have shapes of their own.
    let code = problem["code"].as_str().or(problem["error"]["code"].as_str());
    (status, code.unwrap().to_owned())
}

#[tokio::test]
async fn nobody_gets_in() {
    let stage = Stage::new().await;
    let nobody = stage.world.browser();
    for (method, path) in routes() {
        let (status, code) = status(&nobody, &method, &filled(&path, &stage.org)).await;
        match needs(&method, &path) {
            Needs::Nothing => assert!(status != 401 && status < 500, "{method} {path}: {status}"),
            Needs::HalfSignIn => {
                assert_eq!((status, code.as_str()), (401, "TWO_FACTOR_NOT_PENDING"), "{method} {path}");
            }
            _ => assert_eq!((status, code.as_str()), (401, "UNAUTHORIZED"), "{method} {path}"),
        }
    }
}

#[tokio::test]
async fn another_site_changes_nothing() {
    let mut stage = Stage::new().await;
    stage.outsider().await;
    for foreign in ["http://evil.test", "null", "http://localhost:3000.evil.test", "http://localhost:30000", ""] {
        let page = stage.owner.clone().with("origin", foreign).with("sec-fetch-site", "cross-site");
        for (method, path) in routes() {
            if method != "GET" && !path.starts_with("/api/v1") && !by_providers(&path) {
                assert_eq!(
                    status(&page, &method, &filled(&path, &stage.org)).await,
                    (403, "ORIGIN_FORBIDDEN".into()),
                    "{foreign} {method} {path}"
                );
            }
        }
    }
    let silent = stage.owner.clone().without("origin");
    assert_eq!(status(&silent, "POST", &stage.app("chat/threads")).await.0, 403);
    assert_eq!(status(&silent.with("sec-fetch-site", "same-origin"), "POST", &stage.app("chat/threads")).await.0, 201);
}

#[tokio::test]
async fn a_stranger_sees_nothing_of_an_organization() {
    let mut stage = Stage::new().await;
    let (eve, _, key) = stage.outsider().await;
    let by_key = key.with("x-organization-slug", "acme");
    for (method, path) in routes().into_iter().filter(|(_, path)| !ends_the_session(path)) {
        let client = if path.starts_with("/api/v1") { &by_key } else { &eve };
        let (status, code) = status(client, &method, &filled(&path, &stage.org)).await;
        if !matches!(needs(&method, &path), Needs::Nothing | Needs::HalfSignIn | Needs::Session) {
            assert_eq!((status, code.as_str()), (403, "ORG_FORBIDDEN"), "{method} {path}");
        }
    }
}

/// What somebody may do who has to choose another password first.
fn before_release(method: &str, path: &str) -> bool {
    matches!((method, path), ("POST", "/api/app/account/password" | "/api/auth/sign-out") | ("GET", "/api/app/account"))
}

#[tokio::test]
async fn whoever_has_to_choose_another_password_does_that_or_leaves() {
    let mut stage = Stage::new().await;
    let form = json!({
        "email": "ben@acme.test", "name": "Ben", "role": "admin", "password": PASSWORD, "mustChangePassword": true,
    });
    let members = stage.app("members");
    stage.owner.post(&members, form).await.expect(201);
    let mut ben = stage.world.browser();
    ben.post("/api/auth/sign-in/email", json!({ "email": "ben@acme.test", "password": PASSWORD })).await.expect(200);
    for (method, path) in routes().into_iter().filter(|(_, path)| !path.starts_with("/api/v1")) {
        if matches!(needs(&method, &path), Needs::Nothing | Needs::HalfSignIn) || path == "/api/auth/sign-out" {
            continue;
        }
        let (status, code) = status(&ben, &method, &filled(&path, &stage.org)).await;
        let walled = (status, code.as_str()) == (403, "PASSWORD_CHANGE_REQUIRED");
        assert_eq!(walled, !before_release(&method, &path), "{method} {path}: {status} {code}");
    }
    let session = ben.get("/api/app/session").await.expect(200);
    assert_eq!(session["user"]["email"], "ben@acme.test");
    assert_eq!((&session["passwordChange"], &session["organizations"]), (&json!("temporary"), &json!([])));

    let change = |new: &str| json!({ "currentPassword": PASSWORD, "newPassword": new });
    let same = ben.post("/api/app/account/password", change(PASSWORD)).await.expect(400);
    assert_eq!((&same["code"], &same["data"]["failed"]), (&json!("PASSWORD_POLICY"), &json!(["same"])));
    let mut other = stage.world.browser();
    other.post("/api/auth/sign-in/email", json!({ "email": "ben@acme.test", "password": PASSWORD })).await.expect(200);
    ben.post("/api/app/account/password", change("Green-Kettle-43")).await.expect(204);
    let session = ben.get("/api/app/session").await.expect(200);
    assert_eq!(session["passwordChange"], json!(null), "this browser goes on");
    assert_eq!(session["activeOrganizationId"], json!(stage.org));
    ben.get(&members).await.expect(200);
    other.get("/api/app/account").await.expect(401);
    ben.post("/api/auth/sign-out", json!({})).await.expect(204);

    // An admin's replacement asks for another one again, and whoever leaves instead may.
    let list = stage.owner.get(&members).await.expect(200);
    let found = list["members"].as_array().unwrap().iter().find(|member| member["email"] == "ben@acme.test").unwrap();
    let id = found["userId"].as_str().unwrap().to_owned();
    let reset = json!({ "password": "Red-Kettle-44", "mustChangePassword": true });
    let member = stage.app(&format!("members/{id}"));
    stage.owner.patch(&member, reset).await.expect(200);
    ben.post("/api/auth/sign-in/email", json!({ "email": "ben@acme.test", "password": "Red-Kettle-44" }))
        .await
        .expect(200);
    assert_eq!(ben.get(&members).await.refusal(), (403, "PASSWORD_CHANGE_REQUIRED".into()));
    ben.post("/api/auth/sign-out", json!({})).await.expect(204);
    ben.get("/api/app/account").await.expect(401);
}

#[tokio::test]
async fn each_role_may_do_what_the_table_says() {
    let mut stage = Stage::new().await;
    for role in Role::ALL {
        let browser = stage.member(role).await;
        for (method, path) in routes() {
            let half = needs(&method, &path) == Needs::HalfSignIn;
            if ends_the_session(&path) || path.starts_with("/api/v1") || half {
                continue;
            }
            let (status, code) = status(&browser, &method, &filled(&path, &stage.org)).await;
            let at = format!("{method} {path} as {role}: {status} {code}");
            assert!(status < 500, "{at}");
            // The demo is not part of this server, and a wrong password is a refusal of another kind.
            if path.ends_with("/providers/demo") && role.can(Capability::ProvidersManage) {
                assert!(status == 403 || status == 404, "{at}");
                continue;
            }
            let refused = status == 401 || status == 403;
            let expected = match needs(&method, &path) {
                Needs::Nothing | Needs::Session => false,
                Needs::Membership => role == Role::Disabled,
                Needs::Right(capability) => !role.can(capability),
                Needs::Reading(capability) => !role.can_read(capability),
                Needs::Switched | Needs::HalfSignIn => unreachable!("not a session's door"),
            };
            if matches!(needs(&method, &path), Needs::Membership) || !expected {
                assert!(status != 401, "{at}");
            }
            if !matches!(needs(&method, &path), Needs::Membership | Needs::Nothing) && path != "/api/app/organizations"
            {
                assert_eq!(refused, expected, "{at}");
            }
        }
    }
}

#[tokio::test]
async fn each_role_may_do_with_a_key_what_the_table_says() {
    let mut stage = Stage::new().await;
    for role in [Role::Disabled, Role::Member, Role::Editor, Role::Developer, Role::Admin, Role::Owner] {
        // Keys are made by developers; what they may do follows the person's role afterwards.
        let email = format!("{role}@keys.test");
        let (members, keys) = (stage.app("members"), stage.app("api-keys"));
        let key = if role == Role::Owner {
            stage.key.clone()
        } else {
            let form =
                json!({ "email": email, "name": "Ben", "role": "developer", "password": crate::stage::PASSWORD });
            let user = stage.owner.post(&members, form).await.expect(201)["id"].as_str().unwrap().to_owned();
            let mut browser = stage.world.browser();
            browser
                .post("/api/auth/sign-in/email", json!({ "email": email, "password": crate::stage::PASSWORD }))
                .await
                .expect(200);
            let secret = browser.post(&keys, json!({ "name": "k", "expiresInDays": 1 })).await.expect(201)["key"]
                .as_str()
                .unwrap()
                .to_owned();
            let member = stage.app(&format!("members/{user}"));
            stage.owner.patch(&member, json!({ "role": role.text() })).await.expect(200);
            stage.world.key(&secret)
        };
        for (method, path) in routes().into_iter().filter(|(_, path)| path.starts_with("/api/v1")) {
            let (status, code) = status(&key, &method, &filled(&path, &stage.org)).await;
            let at = format!("{method} {path} as {role}: {status} {code}");
            assert!(status < 500 && status != 401, "{at}");
            match needs(&method, &path) {
                Needs::Right(capability) => assert_eq!(status == 403, !role.can(capability), "{at}"),
                Needs::Switched => assert_eq!((status, code.as_str()), (403, "MODEL_API_DISABLED"), "{at}"),
                _ => {}
            }
            stage.world.clock.advance(Duration::from_secs(4));
        }
    }
}

#[tokio::test]
async fn things_of_another_organization_do_not_exist() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let (eve, other, key) = stage.outsider().await;
    let mut acme = stage.key.clone();
    let thread = acme.post("/api/v1/threads", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let sent = acme
        .post(&format!("/api/v1/threads/{thread}/messages"), json!({ "content": "Hi", "model": "fake-chat" }))
        .await
        .expect(202);
    acme.get(&format!("/api/v1/threads/{thread}/generation?stream=1")).await;
    let message = sent["messageId"].as_str().unwrap().to_owned();
    let document = acme.post("/api/v1/documents", json!({ "title": "t", "content": "c" })).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let upload =
        stage.post("uploads", json!({ "fileName": "a.txt", "contentType": "text/plain", "size": 3 })).await.expect(201)
            ["fileId"]
            .as_str()
            .unwrap()
            .to_owned();
    let providers = stage.get("providers").await.expect(200);
    let local = providers["providers"].as_array().unwrap().iter().find(|p| p["slug"] == "local").unwrap().clone();
    let ids = |path: &str, name: &str| -> String {
        match name {
            "{slug}" => "local".into(),
            "{mid}" | "{messageId}" => message.clone(),
            "{threadId}" => thread.clone(),
            "{fileId}" => upload.clone(),
            "{userId}" | "{chunkId}" => NOBODY.into(),
            _ if path.contains("threads") => thread.clone(),
            _ if path.contains("documents") => document.clone(),
            _ if path.contains("credentials") => local["credentials"][0]["id"].as_str().unwrap().into(),
            _ => NOBODY.into(),
        }
    };
    let bodies = [
        ("/edit", json!({ "content": "a", "model": "fake-chat" })),
        ("/deferred-sends", json!({ "content": "a", "model": "fake-chat" })),
        ("/messages", json!({ "content": "a", "model": "fake-chat" })),
        ("/versions", json!({ "messageId": message })),
        ("/fork", json!({ "messageId": message })),
        ("/feedback", json!({ "rating": "up" })),
        ("/providers/{slug}", json!({ "version": 1 })),
        ("/providers/{slug}/restore", json!({ "state": NOBODY })),
        ("/credentials/{id}", json!({ "version": 1 })),
        ("/subscriptions/{id}", json!({ "version": 1 })),
        (
            "/providers/{slug}/subscriptions",
            json!({ "name": "a", "broker": {
                "endpoint": "https://broker.test/", "targetEnvVar": "TOKEN",
                "responseMapping": { "tokensPath": "$", "tokenField": "token" },
            } }),
        ),
        ("/providers/{slug}/credentials", json!({ "name": "a", "authMethod": "api-key", "apiKey": "sk-0123456789" })),
        ("/documents/{id}", json!({ "title": "mine" })),
        ("/trusted-headers/keys/{id}", json!({ "signedOnly": true })),
        ("/members/{userId}", json!({ "name": "x" })),
        ("/teams/{id}/members", json!({ "userIds": [] })),
        ("/threads/{id}", json!({ "title": "mine" })),
        ("/threads/{threadId}", json!({ "title": "mine" })),
    ];
    let mut asked = 0;
    for (method, path) in routes() {
        if !path.contains('{')
            || path.starts_with("/api/app/organizations")
            || path.starts_with("/api/app/account")
            || path.ends_with("/transfer-ownership")
            // Providers and their pages have no session.
            || path.starts_with("/api/sso/")
            // Anybody may look.
            || path.starts_with("/api/app/branding/published/")
        {
            continue;
        }
        let real: Vec<String> = path
            .split('/')
            .map(|part| if part.starts_with('{') { ids(&path, part) } else { part.to_owned() })
            .collect();
        let mut address = real.join("/");
        let by_key = path.starts_with("/api/v1");
        if !by_key {
            let versioned = ["providers", "credentials", "subscriptions"].iter().any(|word| path.contains(word));
            let version = if method == "DELETE" && versioned { "version=1&" } else { "" };
            address = format!("{address}?{version}orgId={other}");
        }
        let body =
            bodies.iter().find(|(end, _)| path.ends_with(end)).map_or_else(|| json!({}), |(_, body)| body.clone());
        let client = if by_key { &key } else { &eve };
        let answer = client
            .raw(
                &method,
                &address,
                if method == "GET" || method == "DELETE" { String::new() } else { body.to_string() },
            )
            .await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", String::from_utf8_lossy(&answer.bytes));
        asked += 1;
    }
    assert!(asked > 35, "{asked}");
    assert_eq!(acme.get(&format!("/api/v1/threads/{thread}")).await.expect(200)["id"], thread);
    assert_eq!(acme.get(&format!("/api/v1/documents/{document}")).await.expect(200)["title"], "t");
    let refused = acme.clone().with("x-organization-slug", "other").get(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!(refused.refusal(), (404, "THREAD_NOT_FOUND".into()), "not even by the same person");
}
