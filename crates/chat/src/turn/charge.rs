//! What a turn's model calls may use, and what they are booked with (MOD-86 … MOD-91).

use std::sync::Arc;

use tale_core::Problem;
use tale_core::ids::UserId;
use tale_identity::Caller;
use tale_models::ResolvedModel;
use tale_models::ledger::{
    Charge, Consumption, DEFAULT_OUTPUT_TOKENS, Estimate, Hold, HoldError, Ledger, Outcome, Price,
};
use tale_models::wire::{ChatRequest, ModelError, ModelErrorCode, Usage};

use super::context::{estimate_tokens, request_tokens, tool_tokens};
use super::settle::Ending;
use super::tools::specs;

/// An answer shorter than this is not worth asking for.
const LEAST_OUTPUT: u64 = 256;

/// Charges the calls of one model to one person.
#[derive(Clone)]
pub(crate) struct Meter {
    ledger: Ledger,
    charge: Charge,
    price: Price,
    /// The largest answer that the model is asked for when the request names none.
    most_output: u64,
    /// Tokens that every turn's first prompt has besides what was said.
    overhead: u64,
}

/// Estimated tokens of the system text, without what a person wants of every answer.
const SYSTEM_TOKENS: usize = 400;

impl Meter {
    pub(crate) fn new(ledger: &Ledger, caller: &Caller, user: UserId, model: &ResolvedModel, source: &str) -> Self {
        let charge = Charge {
            org: caller.org,
            person: Some(user),
            role: Some(caller.role.text()),
            api_key: caller.api_key(),
            source: Arc::from(source),
            provider: Arc::from(model.provider_slug.as_str()),
            model: Arc::from(model.model_id.as_str()),
        };
        Self {
            ledger: ledger.clone(),
            charge,
            price: Price::of(model.pricing.as_ref()),
            most_output: u64::from(model.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS)),
            overhead: (SYSTEM_TOKENS + if model.capabilities.tools { tool_tokens(specs()) } else { 0 }) as u64,
        }
    }

    /// Room for a turn that is about to be accepted, where anything limits it; its first round
    /// measures it anew. Nothing is written for whom nothing limits.
    ///
    /// # Errors
    /// `BUDGET_EXCEEDED`, or the database's trouble.
    pub(crate) async fn admit(&self, question: &str) -> Result<Option<Hold>, Problem> {
        if !self.ledger.limits(&self.charge).await? {
            return Ok(None);
        }
        let prompt = estimate_tokens(question) as u64 + self.overhead;
        let whole = self.price.whole(prompt, LEAST_OUTPUT.min(self.most_output), 1);
        Ok(Some(self.ledger.hold(&self.charge, whole).await?))
    }

    /// Room for one call of the model; where a limit leaves less than the largest answer, the
    /// request asks for what fits.
    ///
    /// # Errors
    /// How the turn ends when there is none.
    pub(crate) async fn round(&self, opened: Option<Hold>, request: &mut ChatRequest) -> Result<Round, Ending> {
        let prompt = request_tokens(request) as u64;
        let most = request.max_output_tokens.map_or(self.most_output, u64::from);
        let hold = self.held(opened, self.price.between(prompt, LEAST_OUTPUT, most)).await.map_err(ending)?;
        if hold.bounds_output() {
            let granted = hold.granted();
            let fits = self.price.affordable_output(prompt, 1, granted.tokens, granted.cost_micro_usd);
            request.max_output_tokens = Some(u32::try_from(fits.unwrap_or(1).min(most)).unwrap_or(u32::MAX));
        }
        Ok(self.begun(hold, prompt))
    }

    /// Room for a call that needs all it asks for; `None` when there is none.
    pub(crate) async fn whole(&self, request: &ChatRequest) -> Option<Round> {
        let prompt = request_tokens(request) as u64;
        let output = request.max_output_tokens.map_or(self.most_output, u64::from);
        match self.ledger.hold(&self.charge, self.price.whole(prompt, output, 1)).await {
            Ok(hold) => Some(self.begun(hold, prompt)),
            Err(HoldError::Exceeded(_)) => None,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a call was left out, because it could not be held"
                );
                None
            }
        }
    }

    async fn held(&self, opened: Option<Hold>, estimate: Estimate) -> Result<Hold, HoldError> {
        match opened {
            Some(opened) => self.ledger.resize(opened, &self.charge, estimate).await,
            None => self.ledger.hold(&self.charge, estimate).await,
        }
    }

    fn begun(&self, hold: Hold, prompt: u64) -> Round {
        hold.progress(self.price.consumption(prompt, 0, 0));
        Round { meter: self.clone(), hold, prompt, delivered: 0, usage: None }
    }
}

/// One held call of a model.
pub(crate) struct Round {
    meter: Meter,
    hold: Hold,
    prompt: u64,
    /// Bytes of text, reasoning and tool calls that arrived.
    delivered: usize,
    usage: Option<Usage>,
}

impl Round {
    /// More of the answer arrived.
    pub(crate) fn delivered(&mut self, text: &str) {
        self.delivered += text.len();
        self.hold.progress(self.floor());
    }

    /// The provider counted.
    pub(crate) fn counted(&mut self, usage: Usage) {
        self.usage = Some(usage);
        self.hold.progress(self.floor());
    }

    /// What was used at least: the prompt and what arrived, by the provider's count where it is higher.
    fn floor(&self) -> Consumption {
        let usage = self.usage.unwrap_or_default();
        let arrived = if self.delivered == 0 { 0 } else { super::context::tokens_in(self.delivered) as u64 };
        let prompt = if usage.input_tokens > 0 { usage.input_tokens } else { self.prompt };
        self.meter.price.consumption(prompt, usage.cached_input_tokens.unwrap_or(0), usage.output_tokens.max(arrived))
    }

    /// Books the call. `error`: it did not come to its end.
    pub(crate) async fn end(self, error: Option<&ModelError>, cancelled: bool) {
        let outcome = match (self.usage, error) {
            (Some(usage), None) if !cancelled => Outcome::Known(self.meter.price.consumption(
                usage.input_tokens,
                usage.cached_input_tokens.unwrap_or(0),
                usage.output_tokens,
            )),
            (None, Some(error)) if self.delivered == 0 && error.before_work() => Outcome::Released,
            _ => Outcome::Floor(self.floor()),
        };
        let Self { meter, hold, .. } = self;
        meter.ledger.settle(hold, outcome).await;
    }
}

fn ending(error: HoldError) -> Ending {
    let code = match &error {
        HoldError::Exceeded(_) => ModelErrorCode::UsageLimit,
        HoldError::Rules(_) | HoldError::Database(_) => ModelErrorCode::Generic,
    };
    Ending::failed(code, Problem::from(error).message.into_owned())
}
