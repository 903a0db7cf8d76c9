//! A call from an API key, with every check in the order of spec 40, 10.2, or with a key of the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::BoxStream;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};
use tale_governance::budgets::{Kind, MICRO_USD_PER_CENT, Room};
use tale_governance::policies::{ModelRules, Policies};
use tale_identity::{Caller, Capability, Via};
use tale_models::ledger::allowance::{Draw, DrawError};
use tale_models::ledger::{Charge, Estimate, Hold, HoldError, Ledger, Price, source};
use tale_models::{ModelEntry, Models, ProviderKind, ResolvedModel, ToolApi};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::answer::{Told, Translation};
use crate::keys::{KeyHolder, Keys, unauthorized};
use crate::lanes::{LaneKey, Lanes, Place};
use crate::log::Log;
use crate::meter::Meter;
use crate::refusal::Refusal;
use crate::relay::Relay;
use crate::request::{Request, Upstream};
use crate::wire::Wire;

/// Calls of a person, and of a key, in an organization at the same time (MOD-116).
const MAX_RUNNING: u64 = 8;
/// How long a client waits before it tries again when the provider's queue is full.
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

impl Default for Limits {
    /// Those of a gateway that nobody told others (spec 40, 11.3).
    fn default() -> Self {
        Self { built_in: 512, custom: 64, idle: Duration::from_secs(600) }
    }
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
    /// Where calls with gateway keys leave a row.
    pub log: Option<Log>,
}

/// The model endpoints. Cheap to clone; clones share their counts.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    parts: GatewayParts,
    lanes: Lanes,
    idle_ms: AtomicU64,
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
        let idle_ms = AtomicU64::new(millis(parts.limits.idle));
        Self(Arc::new(Inner { parts, lanes, idle_ms, settling: TaskTracker::new() }))
    }

    /// Other bounds from the next call on; calls that wait for a place go by them as well. Says how many
    /// lanes are open.
    pub fn set_limits(&self, limits: Limits) -> usize {
        self.0.idle_ms.store(millis(limits.idle), Ordering::Relaxed);
        self.0.lanes.resize(limits.built_in, limits.custom)
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
        let rules = policies.model_rules(caller.person()).ok().filter(|rules| rules.access.model_api.enabled);
        let rules = rules.ok_or_else(|| {
            Problem::new(
                Code::ModelApiDisabled,
                "The model endpoints are off in this organization. An administrator can switch them on under Settings > Governance.",
            )
        })?;
        if !caller.can(Capability::ModelsCall) {
            return Err(Problem::new(
                Code::ModelApiForbidden,
                "The model endpoints are for owners, administrators, developers and who holds the competence `tale:models.api` (Call models over the API). Ask an administrator to grant it under Settings > Governance > Competences.",
            )
            .with_data(serde_json::json!({ "competence": tale_identity::competences::MODELS_API })));
        }
        Ok(ModelRules { defaults: Arc::default(), ..rules })
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

    /// Admits a request of a caller who was found to meet [`Gateway::rules`]: everything that is asked before
    /// anything goes to a provider. What is dropped instead of relayed is given back.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub async fn admit(&self, caller: &Caller, rules: &ModelRules, request: Arc<Request>) -> Result<Admitted, Refusal> {
        let model = Arc::new(self.resolved(caller, rules, &request).await?);
        let body = body_for(&request, &model)?;
        let meter = self.held(caller, &request, &model).await?;
        Ok(Admitted { org: caller.org, key: None, request, model, body, meter })
    }

    /// Answers a request of whoever shows a gateway key: the key's list and its cap decide, in the one
    /// statement that holds the call.
    ///
    /// # Errors
    /// A [`Refusal`] of Tale's or of the provider.
    pub async fn call_with_key(
        &self,
        keys: &Keys,
        holder: &KeyHolder,
        request: Request,
        beta: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let (model, request) = (Arc::new(keys.resolve(holder, request.model()).await?), Arc::new(request));
        if model.facts.tool_api == ToolApi::Responses && request.wire() != Wire::Responses {
            let why = format!("{} answers through the Responses interface only.", request.model());
            return Err(Problem::new(Code::ModelApiModelUnknown, why).into());
        }
        let body = body_for(&request, &model)?;
        let meter = self.drawn(keys, holder, &request, &model).await?;
        self.relay(Admitted { org: holder.org, key: Some(holder.id), request, model, body, meter }, beta).await
    }

    /// Waits for a place at the provider and answers an admitted request. `beta` is the client's list of betas of
    /// the Anthropic format.
    ///
    /// # Errors
    /// A [`Refusal`] of Tale's or of the provider.
    pub async fn relay(&self, admitted: Admitted, beta: Option<&str>) -> Result<Answer, Refusal> {
        let Admitted { org, key, request, model, body, mut meter } = admitted;
        let place = self.place(org, &model).await?;
        let now = self.0.parts.clock.now();
        let record = self.0.parts.log.as_ref().zip(key);
        meter.sent(record.map(|(log, key)| log.begin(now, (org, key), (&model.provider_slug, &model.model_id))));
        let wire = Wire::of_model(model.target.format, &model.facts);
        let told = Told::new(&request, wire, now.timestamp());
        let relay = Relay {
            translation: Translation::new(told, wire, request.answers(), request.stream()),
            meter,
            wire: request.wire(),
            idle: Duration::from_millis(self.0.idle_ms.load(Ordering::Relaxed)),
            most_output: most_output(request.cap(&model.facts), request.answers()),
            model: model.clone(),
            _place: place,
        };
        let (models, idle, beta) = (self.0.parts.models.clone(), relay.idle, beta.map(str::to_owned));
        let started = async move { models.relay(&model, body, beta.as_deref(), idle).await }.boxed();
        if request.stream() {
            Ok(Answer::Stream(relay.stream(started).await?))
        } else {
            Ok(Answer::Whole(relay.whole(started).await?))
        }
    }

    /// Waits for a place at the model's provider.
    async fn place(&self, org: OrgId, model: &ResolvedModel) -> Result<Place, Problem> {
        self.0.lanes.place(lane_of(org, model), org).await.map_err(|_full| {
            let why = format!("{} has as many calls running and waiting as it may have.", model.provider_name);
            Problem::new(Code::ModelApiUnavailable, why).retry_after(QUEUE_RETRY)
        })
    }

    /// The tokens of a request's prompt: as its provider counts them where it can, else as calls are held.
    /// Costs nothing, but a place at the provider while it counts.
    ///
    /// # Errors
    /// A [`Refusal`] of Tale's or of the provider.
    pub async fn count_with_key(
        &self,
        keys: &Keys,
        holder: &KeyHolder,
        request: &Request,
        beta: Option<&str>,
    ) -> Result<u64, Refusal> {
        let model = keys.resolve(holder, request.model()).await?;
        if Wire::of_model(model.target.format, &model.facts) == Wire::Messages {
            let _place = self.place(holder.org, &model).await?;
            let body = Bytes::from(request.body_to_count(&model.facts));
            let counted = self.0.parts.models.count_tokens(&model, body, beta).await;
            let counted = counted.map_err(|error| Refusal::of_provider(&error, &model.provider_name))?;
            if let Some(tokens) = counted {
                return Ok(tokens);
            }
        }
        Ok(request.prompt_tokens())
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
                Refusal::no_credential(request.model(), problem)
            }
            _ => problem.into(),
        })?;
        if model.facts.tool_api == ToolApi::Responses && request.wire() != Wire::Responses {
            return Err(unknown().into());
        }
        Ok(model)
    }

    /// Holds the worst case of the call, whole or not at all (MOD-117), unless too many run already (MOD-116).
    async fn held(&self, caller: &Caller, request: &Request, model: &ResolvedModel) -> Result<Meter, Refusal> {
        let worst = Worst::of(request, model);
        let charge = Charge {
            org: caller.org,
            person: caller.user,
            role: Some(caller.role.text()),
            api_key: key_of(caller),
            source: source::DIRECT_API.into(),
            provider: model.provider_slug.as_str().into(),
            model: model.model_id.as_str().into(),
        };
        let ledger = self.0.parts.models.ledger();
        let hold = ledger.hold_among(MAX_RUNNING, &charge, worst.estimate).await.map_err(|error| match error {
            HoldError::Exceeded(refusal) => {
                let room = refusal.room;
                worst.refusal(request, (*refusal).into(), room)
            }
            other => Refusal::from(Problem::from(other)),
        })?;
        Ok(worst.meter(ledger, &self.0.settling, hold))
    }

    /// The same from the cap of a key (MOD-135, MOD-136).
    async fn drawn(
        &self,
        keys: &Keys,
        holder: &KeyHolder,
        request: &Request,
        model: &ResolvedModel,
    ) -> Result<Meter, Refusal> {
        let worst = Worst::of(request, model);
        let draw = Draw {
            allowance: holder.allowance(),
            provider: model.provider_slug.as_str().into(),
            model: model.model_id.as_str().into(),
        };
        let ledger = self.0.parts.models.ledger();
        let hold = ledger.draw(&draw, worst.estimate).await.map_err(|error| match error {
            DrawError::Full(room) => worst.refusal(request, over_the_cap(room), room),
            DrawError::Ended => {
                keys.forget(holder);
                unauthorized().into()
            }
            DrawError::Hold(error) => Refusal::from(Problem::from(error)),
        })?;
        Ok(worst.meter(ledger, &self.0.settling, hold))
    }
}

/// A call that may begin.
pub struct Admitted {
    org: OrgId,
    /// The gateway key.
    key: Option<Uuid>,
    request: Arc<Request>,
    model: Arc<ResolvedModel>,
    body: Bytes,
    meter: Meter,
}

/// Judges the request for the model and writes it in the model's wire.
fn body_for(request: &Request, model: &ResolvedModel) -> Result<Bytes, Problem> {
    request.judge(model.capabilities)?;
    let wire = Wire::of_model(model.target.format, &model.facts);
    let upstream = Upstream { wire, dialect: model.target.dialect, facts: &model.facts };
    Ok(Bytes::from(request.body_for(&upstream)?))
}

/// The worst case of a call (MOD-117).
struct Worst {
    price: Price,
    prompt: u64,
    cap: u64,
    answers: u64,
    estimate: Estimate,
}

impl Worst {
    fn of(request: &Request, model: &ResolvedModel) -> Self {
        let price = Price::of(model.pricing.as_ref());
        let (prompt, cap, answers) = (request.prompt_tokens(), request.cap(&model.facts), request.answers());
        let mut estimate: Estimate = price.whole(prompt, cap, answers);
        for amounts in [&mut estimate.needed, &mut estimate.wanted] {
            let cents = amounts.cost_micro_usd.div_ceil(MICRO_USD_PER_CENT).max(1);
            amounts.cost_micro_usd = cents.saturating_mul(MICRO_USD_PER_CENT);
        }
        Self { price, prompt, cap, answers, estimate }
    }

    /// The refusal of a call that does not fit, with the largest one that does.
    fn refusal(&self, request: &Request, mut problem: Problem, room: Room) -> Refusal {
        let cents = room.cost_micro_usd.map_or(u64::MAX, |cost| cost / MICRO_USD_PER_CENT * MICRO_USD_PER_CENT);
        let fits = self
            .price
            .affordable_output(self.prompt, self.answers, room.tokens.unwrap_or(u64::MAX), cents)
            .filter(|output| room.requests != Some(0) && cents > 0 && *output < self.cap);
        let field = request.wire().cap_field();
        if let Some(output) = fits {
            problem.message = format!("{} A call with `{field}` of at most {output} fits.", problem.message).into();
        }
        Refusal::not_to_be_retried(problem)
    }

    fn meter(&self, ledger: &Ledger, settling: &TaskTracker, hold: Hold) -> Meter {
        Meter::new(ledger.clone(), settling.clone(), self.price, self.prompt, hold)
    }
}

/// The refusal of a key whose cap has no room.
fn over_the_cap(room: Room) -> Problem {
    let left = |kind: Kind, left: Option<u64>| left.map(|left| kind.words(left));
    let cost = room.cost_micro_usd.map(|cost| cost / MICRO_USD_PER_CENT * MICRO_USD_PER_CENT);
    let parts = [left(Kind::Cost, cost), left(Kind::Tokens, room.tokens), left(Kind::Requests, room.requests)];
    let left = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Problem::new(
        Code::BudgetExceeded,
        format!(
            "The cap of this key leaves no room for the call at its largest, running calls included. Left: {left}."
        ),
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

fn lane_of(org: OrgId, model: &ResolvedModel) -> LaneKey {
    match model.provider_kind {
        ProviderKind::Custom => LaneKey::Custom(org, model.provider_slug.clone(), model.model_id.clone()),
        ProviderKind::Shipped | ProviderKind::Demo => LaneKey::BuiltIn(model.provider_slug.clone()),
    }
}
