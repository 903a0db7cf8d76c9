//! A call from an API key, with every check in the order of spec 40, 10.2.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::BoxStream;
use tale_core::clock::SharedClock;
use tale_core::problem::{Code, Problem};
use tale_governance::budgets::MICRO_USD_PER_CENT;
use tale_governance::policies::{ModelRules, Policies};
use tale_identity::{Caller, Role, Via};
use tale_models::ledger::{Charge, Estimate, HoldError, Price, source};
use tale_models::{ApiFormat, ModelEntry, Models, ProviderKind, ResolvedModel, ToolApi};
use tokio_util::task::TaskTracker;

use crate::answer::{Told, Translation};
use crate::lanes::{LaneKey, Lanes};
use crate::meter::Meter;
use crate::refusal::Refusal;
use crate::relay::Relay;
use crate::request::{Request, Upstream};
use crate::running::Running;

/// How long a client waits before it tries again when it has too many calls running.
const CONCURRENCY_RETRY: Duration = Duration::from_secs(2);
/// The same when the provider's queue is full.
const QUEUE_RETRY: Duration = Duration::from_secs(10);

/// Bounds of the calls of this process.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Calls that a built-in provider gets at the same time.
    pub built_in: usize,
    /// Calls that a model of an organization's own provider gets at the same time.
    pub custom: usize,
    /// Longest silence of a provider.
    pub idle: Duration,
}

/// What a [`Gateway`] is built from.
pub struct GatewayParts {
    /// Providers, credentials, the ledger.
    pub models: Models,
    /// The switch and the rules of access.
    pub policies: Policies,
    /// The time that answers name.
    pub clock: SharedClock,
    /// The bounds.
    pub limits: Limits,
}

/// The model endpoints. Cheap to clone; clones share their counts.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    parts: GatewayParts,
    lanes: Lanes,
    running: Running,
    settling: TaskTracker,
}

/// A model that a key may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callable {
    /// The provider.
    pub provider: String,
    /// `<provider>/<model>`.
    pub id: String,
}

/// Whether the endpoints answer somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// They are on in the organization.
    pub enabled: bool,
    /// And the caller may use them.
    pub allowed: bool,
}

/// What a client gets.
pub enum Answer {
    /// A JSON document.
    Whole(String),
    /// The event stream of the interface. Dropping it ends the call at the provider.
    Stream(BoxStream<'static, Bytes>),
}

impl Gateway {
    /// Model endpoints with nothing running.
    #[must_use]
    pub fn new(parts: GatewayParts) -> Self {
        let lanes = Lanes::new(parts.limits.built_in, parts.limits.custom);
        Self(Arc::new(Inner { parts, lanes, running: Running::default(), settling: TaskTracker::new() }))
    }

    /// Waits until the calls that ended are booked. For the end of the process.
    pub async fn settled(&self) {
        self.0.settling.close();
        self.0.settling.wait().await;
    }

    /// Whether the endpoints are on in the caller's organization, and whether the caller may use them.
    /// What cannot be found out is off.
    pub async fn open_to(&self, caller: &Caller) -> Open {
        match self.rules(caller).await {
            Ok(_) => Open { enabled: true, allowed: true },
            Err(problem) => Open { enabled: problem.code == Code::ModelApiForbidden, allowed: false },
        }
    }

    /// The rules of access of a caller who may use the endpoints.
    ///
    /// # Errors
    /// `MODEL_API_DISABLED`, which a policy that cannot be read means as well; `MODEL_API_FORBIDDEN`.
    pub async fn rules(&self, caller: &Caller) -> Result<ModelRules, Problem> {
        let policies = self.0.parts.policies.of(caller.org).await?;
        let access = policies.model_access.usable().ok().filter(|access| access.model_api.enabled);
        let access = access.ok_or_else(|| {
            Problem::new(
                Code::ModelApiDisabled,
                "The model endpoints are off in this organization. An administrator can switch them on under Settings > Governance.",
            )
        })?;
        if caller.role < Role::Developer {
            return Err(Problem::new(
                Code::ModelApiForbidden,
                "The model endpoints are for owners, administrators and developers. Ask an administrator for another role.",
            ));
        }
        Ok(ModelRules { who: caller.person(), access: access.clone(), defaults: Arc::default() })
    }

    /// The models that a caller may call (MOD-108).
    ///
    /// # Errors
    /// As [`Gateway::rules`].
    pub async fn callable(&self, caller: &Caller) -> Result<Vec<Callable>, Problem> {
        let rules = self.rules(caller).await?;
        let models = self.0.parts.models.chat_models(caller.org, &rules).await?;
        let listed = models.into_iter().filter(|model| model.tool_api != ToolApi::Responses);
        Ok(listed.map(|model| Callable { id: reference(&model), provider: model.provider_slug }).collect())
    }

    /// Answers a request of a caller who was found to meet [`Gateway::rules`]. `beta` is the client's
    /// list of betas of the Anthropic format.
    ///
    /// # Errors
    /// A [`Refusal`] of Tale's or of the provider.
    pub async fn call(
        &self,
        caller: &Caller,
        rules: &ModelRules,
        request: Request,
        beta: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let model = self.resolved(caller, rules, &request).await?;
        request.judge(model.capabilities)?;
        let upstream = Upstream { format: model.target.format, dialect: model.target.dialect, facts: &model.facts };
        let body = Bytes::from(request.body_for(&upstream)?);
        let run = self.0.running.begin(holders(caller)).ok_or_else(|| {
            Problem::new(
                Code::ModelApiConcurrencyExceeded,
                "8 calls of this person or key are running already. Wait for one of them to end.",
            )
            .retry_after(CONCURRENCY_RETRY)
        })?;
        let mut meter = self.held(caller, &request, &model).await?;
        let place = self.0.lanes.place(lane_of(caller, &model), caller.org).await.map_err(|_full| {
            let why = format!("{} has as many calls running and waiting as it may have.", model.provider_name);
            Problem::new(Code::ModelApiUnavailable, why).retry_after(QUEUE_RETRY)
        })?;
        meter.sent();
        let told = Told {
            interface: request.interface(),
            model: request.model().to_owned(),
            created: self.0.parts.clock.now().timestamp(),
            usage_wanted: request.usage_wanted(),
            custom_tools: request.custom_tools(),
        };
        let relay = Relay {
            translation: Translation::new(told, model.target.format, request.answers(), request.stream()),
            meter,
            interface: request.interface(),
            idle: self.0.parts.limits.idle,
            most_output: most_output(request.cap(&model.facts), request.answers()),
            model: model.clone(),
            _place: place,
            _run: run,
        };
        let (models, idle, beta) = (self.0.parts.models.clone(), relay.idle, beta.map(str::to_owned));
        let started = async move { models.relay(&model, body, beta.as_deref(), idle).await }.boxed();
        if request.stream() {
            Ok(Answer::Stream(relay.stream(started).await?))
        } else {
            Ok(Answer::Whole(relay.whole(started).await?))
        }
    }

    /// The named model, ready to be called.
    async fn resolved(&self, caller: &Caller, rules: &ModelRules, request: &Request) -> Result<ResolvedModel, Refusal> {
        let unknown = || {
            Problem::new(
                Code::ModelApiModelUnknown,
                "There is no such model here. `GET /api/v1/openai/models` lists the models that can be called, as `<provider>/<model>`.",
            )
        };
        let (provider, id) = request.reference().ok_or_else(unknown)?;
        let resolved = self.0.parts.models.resolve_chat(caller.org, rules, id, Some(provider)).await;
        let model = resolved.map_err(|problem| match problem.code {
            Code::ChatProviderUnknown | Code::ChatModelNotOnProvider | Code::ChatModelUnknown => unknown().into(),
            Code::ChatModelForbidden => Problem::new(
                Code::ModelApiModelForbidden,
                format!("The policy `model_access` of your organization does not let you use {}.", request.model()),
            )
            .into(),
            Code::CredentialEnvMissing | Code::CredentialSecretInvalid | Code::ProviderUnknown => {
                Refusal::not_to_be_retried(
                    Problem::new(
                        Code::ModelApiUnavailable,
                        format!(
                            "{} cannot be called with its stored credential. Ask an administrator to enter it again.",
                            request.model()
                        ),
                    )
                    .because(problem),
                )
            }
            _ => problem.into(),
        })?;
        if model.facts.tool_api == ToolApi::Responses {
            return Err(unknown().into());
        }
        Ok(model)
    }

    /// Holds the worst case of the call, whole or not at all (MOD-117).
    async fn held(&self, caller: &Caller, request: &Request, model: &ResolvedModel) -> Result<Meter, Refusal> {
        let price = Price::of(model.pricing.as_ref());
        let (prompt, cap, answers) = (request.prompt_tokens(), request.cap(&model.facts), request.answers());
        let charge = Charge {
            org: caller.org,
            person: caller.user,
            role: Some(caller.role.text()),
            api_key: key_of(caller),
            source: source::DIRECT_API.into(),
            provider: model.provider_slug.as_str().into(),
            model: model.model_id.as_str().into(),
        };
        let mut estimate: Estimate = price.whole(prompt, cap, answers);
        for amounts in [&mut estimate.needed, &mut estimate.wanted] {
            let cents = amounts.cost_micro_usd.div_ceil(MICRO_USD_PER_CENT).max(1);
            amounts.cost_micro_usd = cents.saturating_mul(MICRO_USD_PER_CENT);
        }
        let ledger = self.0.parts.models.ledger();
        let hold = ledger.hold(&charge, estimate).await.map_err(|error| match error {
            HoldError::Exceeded(refusal) => {
                let room = &refusal.room;
                let cents = room.cost_micro_usd.map_or(u64::MAX, |cost| cost / MICRO_USD_PER_CENT * MICRO_USD_PER_CENT);
                let fits = price
                    .affordable_output(prompt, answers, room.tokens.unwrap_or(u64::MAX), cents)
                    .filter(|output| room.requests != Some(0) && cents > 0 && *output < cap);
                let field = match request.interface() {
                    ApiFormat::OpenAi => "max_completion_tokens",
                    ApiFormat::Anthropic => "max_tokens",
                };
                let mut problem = Problem::from(*refusal);
                if let Some(output) = fits {
                    problem.message =
                        format!("{} A call with `{field}` of at most {output} fits.", problem.message).into();
                }
                Refusal::not_to_be_retried(problem)
            }
            other => Refusal::from(Problem::from(other)),
        })?;
        Ok(Meter::new(ledger.clone(), self.0.settling.clone(), price, prompt, hold))
    }
}

/// How much more than the limit an answer may seem to be: its tokens are estimated while it comes, and
/// providers count differently.
const BENEFIT_OF_DOUBT: u64 = 4;

fn most_output(cap: u64, answers: u64) -> u64 {
    cap.saturating_mul(answers).saturating_mul(BENEFIT_OF_DOUBT).saturating_add(256)
}

fn reference(model: &ModelEntry) -> String {
    format!("{}/{}", model.provider_slug, model.id)
}

fn key_of(caller: &Caller) -> Option<tale_core::ids::ApiKeyId> {
    match &caller.via {
        Via::ApiKey { id, .. } => Some(*id),
        Via::Session(_) | Via::Earlier => None,
    }
}

/// Whose running calls are counted.
fn holders(caller: &Caller) -> Vec<(tale_core::ids::OrgId, uuid::Uuid)> {
    let ids = [caller.user.map(|user| user.0), key_of(caller).map(|key| key.0)];
    ids.into_iter().flatten().map(|id| (caller.org, id)).collect()
}

fn lane_of(caller: &Caller, model: &ResolvedModel) -> LaneKey {
    match model.provider_kind {
        ProviderKind::Custom => LaneKey::Custom(caller.org, model.provider_slug.clone(), model.model_id.clone()),
        ProviderKind::Shipped | ProviderKind::Demo => LaneKey::BuiltIn(model.provider_slug.clone()),
    }
}
