//! What a provider definition is, and the rules that a saved one meets.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tale_core::net::{HostPolicy, check_entered, invalid_url};
use tale_core::problem::{Issue, Problem};
use url::Url;

use crate::credentials::AuthMethod;
use crate::extra_body::ExtraBody;
use crate::wire::{ApiFormat, ListedKind, ListedModel, ThinkingStyle, ToolApi, WireDialect};

/// Context window of a model whose provider tells none (MOD-14).
pub const DEFAULT_CONTEXT_WINDOW: u32 = 128_000;
/// Most models of one custom definition.
pub const MAX_MODELS: usize = 2_000;
/// Longest name of a provider, credential or model, in characters.
pub const MAX_NAME_CHARS: usize = 100;
/// Longest model id, in characters.
pub const MAX_MODEL_ID_CHARS: usize = 200;
/// Widest vector that is accepted.
pub const MAX_DIMENSIONS: u32 = 16_000;

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Part of the program; read-only.
    Shipped,
    /// Made by the organization.
    Custom,
    /// The local demo model.
    Demo,
}

impl ProviderKind {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Custom => "custom",
            Self::Demo => "demo",
        }
    }
}

/// How the list of models is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatalogSource {
    /// Shipped with the program.
    Static,
    /// OpenRouter's own catalogue.
    OpenrouterApi,
    /// `GET <base>/models`.
    ModelsEndpoint,
    /// No list: the definition's models, else a credential's allowlist.
    None,
}

impl CatalogSource {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::OpenrouterApi => "openrouter-api",
            Self::ModelsEndpoint => "models-endpoint",
            Self::None => "none",
        }
    }

    /// Whether the list is read from the provider.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::OpenrouterApi | Self::ModelsEndpoint)
    }
}

/// Whether a provider offers embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingSupport {
    /// Yes, with curated widths.
    Supported,
    /// No.
    Unsupported,
    /// Not known: model and width are typed.
    Unknown,
}

impl EmbeddingSupport {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Unsupported => "unsupported",
            Self::Unknown => "unknown",
        }
    }
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Chat.
    Chat,
    /// Vectors.
    Embedding,
    /// Text from recordings.
    Transcription,
}

/// What a chat model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// It calls tools.
    pub tools: bool,
    /// It reads images.
    pub vision: bool,
    /// It has a reasoning knob.
    pub reasoning: bool,
}

/// US dollars per million tokens, and per minute of a recording. A missing price is unknown, not zero.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pricing {
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<f64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<f64>,
    /// Input tokens read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// A minute of a recording that is transcribed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
}

/// A rough class of models, for the automatic choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Cheap and quick.
    Fast,
    /// In between.
    Balanced,
    /// The most capable.
    Capable,
}

/// One model of a provider (MOD-12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSpec {
    /// The provider's name of the model.
    pub id: String,
    /// A readable name; the id stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The context window in tokens.
    #[serde(default = "default_context_window")]
    pub context_window: u32,
    /// The largest answer in tokens, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// What it is for.
    #[serde(default = "chat_only")]
    pub purposes: Vec<Purpose>,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Curated width of its vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Prices, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Pricing>,
    /// Its class, where curated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// How it is asked to think (Anthropic format).
    #[serde(default, skip_serializing_if = "is_default")]
    pub thinking: ThinkingStyle,
    /// Whether it knows the effort above `high` (OpenAI format).
    #[serde(default, skip_serializing_if = "is_default")]
    pub xhigh: bool,
    /// Whether an embedding model makes shorter vectors on request.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shortens: bool,
    /// Over which interface it is called (OpenAI format, MOD-75).
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_api: ToolApi,
    /// Whether it takes tools only with reasoning off, and so offers no effort levels.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools_require_no_reasoning: bool,
    /// Fields added to the body of its requests, over those of the provider (MOD-76).
    #[serde(default, skip_serializing_if = "ExtraBody::is_empty")]
    pub extra_body: ExtraBody,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ModelSpec {
    /// A chat model of which nothing but the id is known (MOD-14).
    #[must_use]
    pub fn unknown(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            display_name: None,
            context_window: DEFAULT_CONTEXT_WINDOW,
            max_output_tokens: None,
            purposes: chat_only(),
            capabilities: Capabilities { tools: true, vision: false, reasoning: false },
            dimensions: None,
            pricing: None,
            tier: None,
            thinking: ThinkingStyle::Budget,
            xhigh: false,
            shortens: false,
            tool_api: ToolApi::ChatCompletions,
            tools_require_no_reasoning: false,
            extra_body: ExtraBody::default(),
        }
    }

    /// From a provider's own list; `None` for kinds that are not called yet. Tools are assumed
    /// where the list is silent, because nearly every current chat model calls them.
    #[must_use]
    pub fn from_listed(listed: ListedModel) -> Option<Self> {
        let purpose = match listed.kind {
            ListedKind::Chat => Purpose::Chat,
            ListedKind::Embedding => Purpose::Embedding,
            ListedKind::Transcription => Purpose::Transcription,
            ListedKind::Other => return None,
        };
        let chat = purpose == Purpose::Chat;
        let [input, output, cached_input] = listed.prices;
        let per_minute = listed.per_minute;
        let known = [input, output, cached_input, per_minute].iter().any(Option::is_some);
        Some(Self {
            display_name: listed.display_name,
            context_window: listed.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_output_tokens: listed.max_output_tokens,
            purposes: vec![purpose],
            capabilities: Capabilities {
                tools: chat && listed.tools.unwrap_or(true),
                vision: chat && listed.vision.unwrap_or(false),
                reasoning: chat && listed.reasoning.unwrap_or(false),
            },
            pricing: known.then_some(Pricing { input, output, cached_input, per_minute }),
            ..Self::unknown(&listed.id)
        })
    }

    /// Whether it serves `purpose`.
    #[must_use]
    pub fn serves(&self, purpose: Purpose) -> bool {
        self.purposes.contains(&purpose)
    }

    /// What a chat with it offers: chats send tools, so a model that takes them only with reasoning
    /// off has no effort levels to choose.
    #[must_use]
    pub fn offered(&self) -> Capabilities {
        let reasoning = self.capabilities.reasoning && !self.tools_require_no_reasoning;
        Capabilities { reasoning, ..self.capabilities }
    }

    /// The readable name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.id)
    }
}

/// A provider definition. It contains no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// The identifier within the organization.
    #[serde(rename = "name")]
    pub slug: String,
    /// The label.
    pub display_name: String,
    /// Where it comes from.
    #[serde(default = "shipped")]
    pub kind: ProviderKind,
    /// The wire format.
    pub api_format: ApiFormat,
    /// The dialect of the OpenAI format.
    #[serde(default)]
    pub wire_dialect: WireDialect,
    /// The API root. `None` when each credential has its own, and for the demo model.
    #[serde(default)]
    pub base_url: Option<Url>,
    /// `per-credential` when the address stands in each credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_mode: Option<EndpointMode>,
    /// How the models are found.
    pub catalog_source: CatalogSource,
    /// Whether it offers embeddings.
    pub embedding: EmbeddingSupport,
    /// Its models, as far as the definition holds them.
    #[serde(default)]
    pub models: Vec<ModelSpec>,
    /// Fields added to the body of each request (MOD-76).
    #[serde(default, skip_serializing_if = "ExtraBody::is_empty")]
    pub extra_body: ExtraBody,
    /// Which agent runtime uses subscriptions of its plans. Shipped definitions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<SubscriptionRuntime>,
    /// How credentials may hold their key. A custom provider may also be called without one.
    #[serde(default = "direct_methods")]
    pub auth: Vec<AuthMethod>,
    /// Why the file of a custom definition cannot be used, if it cannot; none of its models is called then (MOD-2).
    #[serde(skip)]
    pub unreadable: Option<String>,
    /// Grows with every change; 1 for shipped definitions.
    #[serde(default = "first_version")]
    pub version: i64,
}

/// The agent runtime that a provider's subscriptions are bound to (MOD-38, MOD-39).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscriptionRuntime {
    /// The runtime.
    pub harness: String,
    /// Its readable name.
    pub label: String,
    /// The variables that it reads a token from, the usual one first.
    pub target_env_vars: Vec<String>,
    /// How its tokens may be held.
    pub methods: Vec<SubscriptionMethod>,
    /// Whether it needs the vendor's id of the account beside the token.
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs_account_id: bool,
    /// Whether plans serve only a part of the models, which must then be listed (MOD-41).
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs_models: bool,
}

/// How the tokens of a plan are held (MOD-39).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubscriptionMethod {
    /// One token, pasted by whoever has the plan. Nothing renews it (MOD-40).
    SubscriptionKey,
    /// A broker hands them out.
    SubscriptionBroker,
}

impl SubscriptionMethod {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::SubscriptionKey => "subscription-key",
            Self::SubscriptionBroker => "subscription-broker",
        }
    }
}

/// Where the address of a provider stands when not in the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointMode {
    /// In each credential.
    PerCredential,
}

fn shipped() -> ProviderKind {
    ProviderKind::Shipped
}

fn default_context_window() -> u32 {
    DEFAULT_CONTEXT_WINDOW
}

fn chat_only() -> Vec<Purpose> {
    vec![Purpose::Chat]
}

/// A stored key, or a variable.
pub(crate) fn direct_methods() -> Vec<AuthMethod> {
    vec![AuthMethod::ApiKey, AuthMethod::Env]
}

fn first_version() -> i64 {
    1
}

/// Whether `slug` may name a custom provider (MOD-1).
#[must_use]
pub fn is_slug(slug: &str) -> bool {
    (1..=64).contains(&slug.len())
        && slug
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
}

/// Checks a readable name and returns it trimmed.
pub(crate) fn readable_name(path: &str, text: &str) -> Result<String, Issue> {
    let name = text.trim();
    if name.is_empty() {
        return Err(Issue::new(path, "must not be blank"));
    }
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(Issue::new(path, format!("must have at most {MAX_NAME_CHARS} characters")));
    }
    if name.chars().any(char::is_control) {
        return Err(Issue::new(path, "must not contain control characters"));
    }
    Ok(name.to_owned())
}

/// Parses and judges a base URL (MOD-6, MOD-7, MOD-21): literal forms now, names at each call.
///
/// # Errors
/// `PRIVATE_HOST_BLOCKED` for a refused address, `INVALID_URL` for the rest. The
/// value is never repeated, because a key may have been pasted into the wrong field (MOD-5).
pub(crate) fn base_url(path: &str, text: &str, policy: HostPolicy) -> Result<Url, Problem> {
    if text.len() > 2_000 {
        return Err(invalid_url(path, "must have at most 2000 characters"));
    }
    let mut url = Url::parse(text.trim())
        .map_err(|_| invalid_url(path, "must be a complete address such as https://api.example.com/v1"))?;
    check_entered(path, &url, policy)?;
    let path_text = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path_text);
    Ok(url)
}

/// Checks the models of a definition; `path` is the field's name in messages.
pub(crate) fn check_models(path: &str, models: &[ModelSpec], issues: &mut Vec<Issue>) {
    if models.len() > MAX_MODELS {
        issues.push(Issue::new(path, format!("must list at most {MAX_MODELS} models")));
        return;
    }
    let mut seen = HashSet::new();
    for (at, model) in models.iter().enumerate() {
        let field = |name: &str| format!("{path}.{at}.{name}");
        if let Err(why) = check_model_id(&model.id) {
            issues.push(Issue::new(field("id"), why));
        } else if !seen.insert(model.id.as_str()) {
            issues.push(Issue::new(field("id"), "stands twice in the list"));
        }
        if let Some(Err(issue)) = model.display_name.as_ref().map(|name| readable_name(&field("displayName"), name)) {
            issues.push(issue);
        }
        if !(1..=100_000_000).contains(&model.context_window) {
            issues.push(Issue::new(field("contextWindow"), "must be a number of tokens from 1 to 100000000"));
        }
        if model.max_output_tokens.is_some_and(|tokens| tokens == 0 || tokens > model.context_window) {
            issues.push(Issue::new(field("maxOutputTokens"), "must be at least 1 and at most the context window"));
        }
        if model.purposes.is_empty() {
            issues.push(Issue::new(field("purposes"), "must name at least one purpose"));
        }
        if model.dimensions.is_some_and(|width| !(1..=MAX_DIMENSIONS).contains(&width)) {
            issues.push(Issue::new(field("dimensions"), format!("must be from 1 to {MAX_DIMENSIONS}")));
        }
        let prices = model
            .pricing
            .map(|pricing| [pricing.input, pricing.output, pricing.cached_input, pricing.per_minute])
            .unwrap_or_default();
        if prices.iter().flatten().any(|price| !price.is_finite() || !(0.0..=1e6).contains(price)) {
            issues.push(Issue::new(field("pricing"), "must hold prices from 0 to 1000000"));
        }
    }
}

/// Why `id` cannot be a model id, if it cannot.
pub(crate) fn check_model_id(id: &str) -> Result<(), &'static str> {
    if id.trim().is_empty() || id.trim() != id {
        Err("must not be blank or begin or end with a space")
    } else if id.chars().count() > MAX_MODEL_ID_CHARS {
        Err("must have at most 200 characters")
    } else if id.chars().any(char::is_control) {
        Err("must not contain control characters")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tale_core::Code;

    use super::*;

    #[test]
    fn slugs_are_lower_case_words_with_single_hyphens() {
        for good in ["a", "local-models", "x1", &"a".repeat(64)] {
            assert!(is_slug(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "ä", "a_b", "a b", &"a".repeat(65)] {
            assert!(!is_slug(bad), "{bad}");
        }
    }

    #[test]
    fn addresses_are_judged_without_being_repeated() {
        assert_eq!(
            base_url("baseUrl", "https://api.example.com/v1/", HostPolicy::PublicOnly).unwrap().as_str(),
            "https://api.example.com/v1"
        );
        let code = |text: &str, policy| base_url("baseUrl", text, policy).unwrap_err();
        let private = code("http://192.168.1.20:8000/v1", HostPolicy::PublicOnly);
        assert_eq!(private.code, Code::PrivateHostBlocked);
        assert!(!private.message.contains("192.168"));
        assert_eq!(code("http://169.254.169.254/", HostPolicy::PrivateAllowed).code, Code::PrivateHostBlocked);
        for text in ["http://api.example.com", "sk-oops", "https://api.example.com/?key=sk-oops", "ftp://x/"] {
            let problem = code(text, HostPolicy::PrivateAllowed);
            assert_eq!(problem.code, Code::InvalidUrl, "{text}");
            assert!(!problem.message.contains("oops"), "{text}");
        }
    }

    #[test]
    fn each_wrong_field_of_a_model_is_named() {
        let mut model = ModelSpec::unknown("m");
        model.max_output_tokens = Some(0);
        model.dimensions = Some(0);
        model.purposes.clear();
        let mut issues = Vec::new();
        check_models("models", &[ModelSpec::unknown("m"), model], &mut issues);
        let paths: Vec<&str> = issues.iter().map(|issue| issue.path.as_str()).collect();
        assert_eq!(paths, ["models.1.id", "models.1.maxOutputTokens", "models.1.purposes", "models.1.dimensions"]);
    }
}
