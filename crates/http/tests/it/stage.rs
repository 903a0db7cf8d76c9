//! Two organizations with people in them, a scripted model, and keys.

use serde_json::{Value, json};
use tale_identity::Role;
use tale_testkit::upstream::FakeUpstream;

use crate::client::{Answer, Client};
use crate::world::World;

pub const PASSWORD: &str = "Blue-Kettle-42";

/// The organization "Acme" with its owner Ada, and what belongs to it.
pub struct Stage {
    pub world: World,
    pub upstream: FakeUpstream,
    pub owner: Client,
    pub org: String,
    /// Ada's key.
    pub key: Client,
}

impl Stage {
    pub async fn new() -> Self {
        let world = World::new().await;
        let mut owner = world.browser();
        let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
        let org =
            owner.post("/api/app/setup", form).await.expect(200)["organization"]["id"].as_str().unwrap().to_owned();
        let key = key_of(&world, &mut owner, &org).await;
        Self { world, upstream: FakeUpstream::start().await, owner, org, key }
    }

    /// `/api/app/` + `path` in Acme.
    pub fn app(&self, path: &str) -> String {
        within(&self.org, path)
    }

    /// A new member of Acme, signed in.
    pub async fn member(&mut self, role: Role) -> Client {
        let email = format!("{role}@acme.test");
        if role == Role::Owner {
            return self.owner.clone();
        }
        let (members, form) =
            (self.app("members"), json!({ "email": email, "name": "Ben", "role": "member", "password": PASSWORD }));
        let user = self.owner.post(&members, form).await.expect(201)["id"].as_str().unwrap().to_owned();
        let mut browser = self.world.browser();
        browser.post("/api/auth/sign-in/email", json!({ "email": email, "password": PASSWORD })).await.expect(200);
        if role != Role::Member {
            let path = self.app(&format!("members/{user}"));
            self.owner.patch(&path, json!({ "role": role.text() })).await.expect(200);
        }
        browser
    }

    /// A person who is owner of another organization, with its id and a key there.
    pub async fn outsider(&mut self) -> (Client, String, Client) {
        let other = self.owner.post("/api/app/organizations", json!({ "name": "Other" })).await.expect(201)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let form = json!({ "email": "eve@other.test", "name": "Eve", "role": "admin", "password": PASSWORD });
        self.owner.post(&within(&other, "members"), form).await.expect(201);
        let mut eve = self.world.browser();
        eve.post("/api/auth/sign-in/email", json!({ "email": "eve@other.test", "password": PASSWORD }))
            .await
            .expect(200);
        let key = key_of(&self.world, &mut eve, &other).await;
        // Ada's active organization is the one she made last.
        let acme = self.key.clone().with("x-organization-slug", "acme");
        self.key = acme;
        (eve, other, key)
    }

    /// Connects the scripted model as `fake-chat`.
    pub async fn connect_model(&mut self) {
        let provider = json!({
            "name": "local", "displayName": "Local", "apiFormat": "openai", "baseUrl": self.upstream.openai_base(), "apiKey": "sk-local-0123456789",
            "models": [{ "id": "fake-chat", "contextWindow": 32000, "maxOutputTokens": 2000, "purposes": ["chat"], "capabilities": { "tools": false, "vision": true, "reasoning": true } }],
        });
        let path = self.app("providers");
        self.owner.post(&path, provider).await.expect(201);
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        let path = self.app(path);
        self.owner.post(&path, body).await
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let path = self.app(path);
        self.owner.get(&path).await
    }

    /// Waits until nothing runs in a chat: follows its generation to the end.
    pub async fn settled(&mut self, thread: &str) -> Value {
        let answer = self.key.get(&format!("/api/v1/threads/{thread}/generation?stream=1")).await;
        assert_eq!(answer.status, 200);
        self.get(&format!("chat/threads/{thread}/messages")).await.expect(200)
    }
}

/// `/api/app/` + `path` in the organization.
pub fn within(org: &str, path: &str) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("/api/app/{path}{sign}orgId={org}")
}

async fn key_of(world: &World, browser: &mut Client, org: &str) -> Client {
    let made = browser.post(&within(org, "api-keys"), json!({ "name": "test", "expiresInDays": 30 })).await.expect(201);
    world.key(made["key"].as_str().unwrap())
}
