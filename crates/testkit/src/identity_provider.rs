//! An identity provider that speaks OpenID Connect: discovery, keys, the token endpoint with PKCE and client secret,
//! userinfo, and the part of Microsoft Graph that says groups. Asked without `openid` it speaks OAuth 2.0 alone: no
//! token is signed, and `/me` says who somebody is. It can be told to lie.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tale_core::crypto::{random_token, sha256};

/// Who a Tale under test is.
pub const CLIENT: &str = "tale-client";
/// What proves it.
pub const SECRET: &str = "provider secret: 100%+";

/// What the provider sends back with the browser.
#[derive(Debug, Clone)]
pub struct Given {
    /// The code.
    pub code: String,
    /// The question's state.
    pub state: String,
    /// The question's nonce; empty without `openid`.
    pub nonce: String,
    /// Where the browser goes.
    pub callback: String,
}

/// A token before it is signed, for those who want to forge one.
pub struct Draft {
    /// The header.
    pub header: Value,
    /// The claims.
    pub claims: Value,
    /// The public key, as the provider publishes it.
    pub jwk: Value,
}

type Forger = Box<dyn Fn(Draft) -> Forged + Send>;

/// What becomes of a draft.
pub enum Forged {
    /// Signed by the provider's key.
    Signed(Value, Value),
    /// Sent as it is.
    Raw(String),
}

struct Grant {
    challenge: String,
    callback: String,
    claims: Value,
    /// Whether an ID token is wanted.
    signed: bool,
}

struct Inner {
    key: EcdsaKeyPair,
    kid: String,
    grants: HashMap<String, Grant>,
    /// By access token.
    people: HashMap<String, Value>,
    user_info: Value,
    groups: Option<Vec<(String, String)>>,
    issuer: Option<String>,
    promises_iss: bool,
    forger: Option<Forger>,
    polite: bool,
    sends_on: Option<String>,
    asked: HashMap<&'static str, usize>,
}

/// The provider.
#[derive(Clone)]
pub struct IdentityProvider {
    base: String,
    inner: Arc<Mutex<Inner>>,
}

fn fresh_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap()
}

/// `header.claims`, as it is signed.
#[must_use]
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()))
}

impl Inner {
    fn jwk(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn count(&mut self, what: &'static str) {
        *self.asked.entry(what).or_default() += 1;
    }
}

impl IdentityProvider {
    /// A provider on a port of its own.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let inner = Inner {
            key: fresh_key(),
            kid: "first".to_owned(),
            grants: HashMap::new(),
            people: HashMap::new(),
            user_info: json!({}),
            groups: None,
            issuer: None,
            promises_iss: false,
            forger: None,
            polite: false,
            sends_on: None,
            asked: HashMap::new(),
        };
        let this = Self { base, inner: Arc::new(Mutex::new(inner)) };
        let routes =
            Router::new().route("/{*path}", get(documents)).route("/token", post(token)).with_state(this.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        this
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Its issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("{}/tenant", self.base)
    }

    /// Somebody with these claims logs in, as the address of the question `location` wants it.
    ///
    /// # Panics
    /// When the question lacks what the protocol wants.
    #[must_use]
    pub fn log_in(&self, location: &str, claims: &Value) -> Given {
        let query = location.split_once('?').unwrap().1;
        let asked = pairs(query);
        let of = |name: &str| asked.get(name).unwrap_or_else(|| panic!("no {name}")).clone();
        assert_eq!(
            (of("response_type").as_str(), of("client_id").as_str(), of("code_challenge_method").as_str()),
            ("code", CLIENT, "S256")
        );
        let code = random_token(16);
        let mut claims = claims.clone();
        let signed = asked.get("scope").is_some_and(|scope| scope.split(' ').any(|one| one == "openid"));
        let nonce = if signed { of("nonce") } else { String::new() };
        if signed {
            claims["nonce"] = json!(nonce);
        }
        let grant = Grant { challenge: of("code_challenge"), callback: of("redirect_uri"), claims, signed };
        self.inner().grants.insert(code.clone(), grant);
        Given { code, state: of("state"), nonce, callback: of("redirect_uri") }
    }

    /// From now on tokens are signed with another key.
    pub fn rotate(&self) {
        let mut inner = self.inner();
        inner.key = fresh_key();
        inner.kid = random_token(6);
    }

    /// From now on every token is what `forger` makes of it.
    pub fn forge(&self, forger: impl Fn(Draft) -> Forged + Send + 'static) {
        self.inner().forger = Some(Box::new(forger));
    }

    /// From now on tokens are honest.
    pub fn honest(&self) {
        self.inner().forger = None;
    }

    /// What userinfo says beside `sub`.
    pub fn say(&self, user_info: Value) {
        self.inner().user_info = user_info;
    }

    /// What Graph says, as pairs of id and name; before, it refuses.
    pub fn groups(&self, groups: &[(&str, &str)]) {
        let owned = groups.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect();
        self.inner().groups = Some(owned);
    }

    /// What its discovery document calls it.
    pub fn call_itself(&self, issuer: &str) {
        self.inner().issuer = Some(issuer.to_owned());
    }

    /// Says that its answers name it.
    pub fn promise_iss(&self) {
        self.inner().promises_iss = true;
    }

    /// The address of `path`, such as `/authorize`, `/token` or `/me`.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// From now on refusals of the token endpoint have the status of a success.
    pub fn refuse_politely(&self) {
        self.inner().polite = true;
    }

    /// From now on `/me` sends on to another address.
    pub fn send_on(&self, to: &str) {
        self.inner().sends_on = Some(to.to_owned());
    }

    /// How often a document was asked for: `discovery`, `keys`, `token`, `userinfo`, `graph`, `me`; and how
    /// often the client's secret came in a body: `secret in a body`.
    #[must_use]
    pub fn asked(&self, what: &str) -> usize {
        self.inner().asked.get(what).copied().unwrap_or(0)
    }
}

fn pairs(query: &str) -> HashMap<String, String> {
    let uri: axum::http::Uri = format!("/?{query}").parse().unwrap();
    axum::extract::Query::<HashMap<String, String>>::try_from_uri(&uri).unwrap().0
}

fn bearer(headers: &HeaderMap) -> String {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.trim_start_matches("Bearer ").to_owned()
}

async fn documents(
    State(provider): State<IdentityProvider>,
    axum::extract::Path(path): axum::extract::Path<String>,
    headers: HeaderMap,
) -> Response {
    let base = &provider.base;
    let mut inner = provider.inner();
    match path.as_str() {
        "tenant/.well-known/openid-configuration" => {
            inner.count("discovery");
            let issuer = inner.issuer.clone().unwrap_or_else(|| provider.issuer());
            Json(json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "jwks_uri": format!("{base}/keys"),
                "userinfo_endpoint": format!("{base}/userinfo"),
                "authorization_response_iss_parameter_supported": inner.promises_iss,
            }))
            .into_response()
        }
        "keys" => {
            inner.count("keys");
            // A key that must never verify anything stands beside the real one.
            let shared = json!({ "kty": "oct", "kid": "shared", "k": URL_SAFE_NO_PAD.encode("secret") });
            Json(json!({ "keys": [shared, inner.jwk()] })).into_response()
        }
        "userinfo" => {
            inner.count("userinfo");
            match inner.people.get(&bearer(&headers)) {
                Some(claims) => {
                    let mut said = inner.user_info.clone();
                    if said.get("sub").is_none() {
                        said["sub"] = claims["sub"].clone();
                    }
                    Json(said).into_response()
                }
                None => StatusCode::UNAUTHORIZED.into_response(),
            }
        }
        "me" => {
            inner.count("me");
            match (&inner.sends_on, inner.people.get(&bearer(&headers))) {
                (Some(to), _) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to.clone())]).into_response(),
                (None, Some(claims)) => Json(claims.clone()).into_response(),
                (None, None) => StatusCode::UNAUTHORIZED.into_response(),
            }
        }
        "authorize" => StatusCode::BAD_REQUEST.into_response(),
        "v1.0/me/transitiveMemberOf/microsoft.graph.group" => {
            inner.count("graph");
            match &inner.groups {
                Some(groups) if inner.people.contains_key(&bearer(&headers)) => {
                    let groups: Vec<Value> =
                        groups.iter().map(|(id, name)| json!({ "id": id, "displayName": name })).collect();
                    Json(json!({ "value": groups })).into_response()
                }
                _ => StatusCode::FORBIDDEN.into_response(),
            }
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn denied(polite: bool, status: StatusCode, error: &str) -> Response {
    let status = if polite { StatusCode::OK } else { status };
    (status, Json(json!({ "error": error }))).into_response()
}

async fn token(State(provider): State<IdentityProvider>, headers: HeaderMap, body: String) -> Response {
    let form = pairs(&body);
    let encoded = |text: &str| text.replace('%', "%25").replace('+', "%2B").replace(':', "%3A").replace(' ', "+");
    let pair = STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET)));
    let of = |name: &str| form.get(name).map_or("", String::as_str);
    let mut inner = provider.inner();
    inner.count("token");
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let in_body = given.is_none() && (of("client_id"), of("client_secret")) == (CLIENT, SECRET);
    if in_body {
        inner.count("secret in a body");
    }
    let polite = inner.polite;
    if given != Some(&format!("Basic {pair}")) && !in_body {
        return denied(polite, StatusCode::UNAUTHORIZED, "invalid_client");
    }
    // A code is used up, whatever comes of it.
    let Some(grant) = inner.grants.remove(of("code")) else {
        return denied(polite, StatusCode::BAD_REQUEST, "invalid_grant");
    };
    let challenge = URL_SAFE_NO_PAD.encode(sha256(of("code_verifier").as_bytes()));
    if challenge != grant.challenge || of("redirect_uri") != grant.callback || of("grant_type") != "authorization_code"
    {
        return denied(polite, StatusCode::BAD_REQUEST, "invalid_grant");
    }
    let access = random_token(16);
    if !grant.signed {
        inner.people.insert(access.clone(), grant.claims);
        return Json(json!({ "access_token": access, "token_type": "bearer" })).into_response();
    }
    let header = json!({ "alg": "ES256", "kid": inner.kid });
    let draft = Draft { header: header.clone(), claims: grant.claims.clone(), jwk: inner.jwk() };
    let token = match inner.forger.as_ref().map(|forger| forger(draft)) {
        None => inner.sign(&header, &grant.claims),
        Some(Forged::Signed(header, claims)) => inner.sign(&header, &claims),
        Some(Forged::Raw(token)) => token,
    };
    inner.people.insert(access.clone(), grant.claims);
    Json(json!({ "access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": token })).into_response()
}
