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

use super::context::request_tokens;
use super::settle::Ending;

/// An answer shorter than this is not worth asking for.
const LEAST_OUTPUT: u64 = 256;
/// How much longer the first prompt may become than it is when its question is accepted, in tokens: a file of an
/// earlier message may be read anew meanwhile.
const SPARE: u64 = 64;

/// Charges the calls of one model to one person.
#[derive(Clone)]
pub(crate) struct Meter {
    ledger: Ledger,
    charge: Charge,
    price: Price,
    /// The largest answer that the model is asked for when the request names none.
    most_output: u64,
}

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
        }
    }

    /// Whether anything limits these calls. For whom nothing does, nothing is measured or written ahead of a turn.
    ///
    /// # Errors
    /// When the limits cannot be read.
    pub(crate) async fn limited(&self) -> Result<bool, Problem> {
        Ok(self.ledger.limits(&self.charge).await?)
    }

    /// Room for a turn that is about to be accepted, whose first prompt has so many tokens; its first round
    /// measures it anew.
    ///
    /// # Errors
    /// `BUDGET_EXCEEDED`, or the database's trouble.
    pub(crate) async fn admit(&self, prompt: usize) -> Result<Hold, Problem> {
        let whole = self.price.whole(prompt as u64 + SPARE, LEAST_OUTPUT.min(self.most_output), 1);
        Ok(self.ledger.hold(&self.charge, whole).await?)
    }

    /// Room for one call of the model; where a limit leaves less than the largest answer, the
    /// request asks for what fits.
    ///
    /// # Errors
    /// How the turn ends when there is none.
    pub(crate) async fn round(&self, opened: Option<Hold>, request: &mut ChatRequest) -> Result<Round, Ending> {
        let prompt = request_tokens(request) as u64;
        let most = request.max_output_tokens.map_or(self.most_output, u64::from);
        let hold = self.held(opened, prompt, self.price.between(prompt, LEAST_OUTPUT, most)).await.map_err(ending)?;
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

    /// What was accepted runs with what it was given then, should others have taken the rest meanwhile.
    async fn held(&self, opened: Option<Hold>, prompt: u64, estimate: Estimate) -> Result<Hold, HoldError> {
        let Some(opened) = opened else { return self.ledger.hold(&self.charge, estimate).await };
        let (error, opened) = match self.ledger.resize(opened, &self.charge, estimate).await {
            Ok(hold) => return Ok(hold),
            Err(refused) => *refused,
        };
        let granted = opened.granted();
        let fits = self.price.affordable_output(prompt, 1, granted.tokens, granted.cost_micro_usd);
        if matches!(error, HoldError::Exceeded(_)) && fits.is_some() {
            return Ok(opened);
        }
        self.ledger.settle(opened, Outcome::Released).await;
        Err(error)
    }

    fn begun(&self, hold: Hold, prompt: u64) -> Round {
        hold.progress(self.price.consumption(prompt, 0, 0), 0);
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
        self.hold.progress(self.floor(), self.arrived());
    }

    /// The provider counted.
    pub(crate) fn counted(&mut self, usage: Usage) {
        self.usage = Some(usage);
        self.hold.progress(self.floor(), self.arrived());
    }

    /// Tokens of the answer that arrived.
    fn arrived(&self) -> u64 {
        if self.delivered == 0 { 0 } else { super::context::tokens_in(self.delivered) as u64 }
    }

    /// What was used at least: the prompt and what arrived, by the provider's count where it is higher.
    fn floor(&self) -> Consumption {
        let usage = self.usage.unwrap_or_default();
        let prompt = if usage.input_tokens > 0 { usage.input_tokens } else { self.prompt };
        self.meter.price.consumption(
            prompt,
            usage.cached_input_tokens.unwrap_or(0),
            usage.output_tokens.max(self.arrived()),
        )
    }

    /// Whether the provider counted both sides: one that leaves a side out, or counts none of an answer that arrived, is
    /// not believed to have used nothing.
    fn is_whole(&self, usage: Usage) -> bool {
        usage.input_tokens > 0 && (usage.output_tokens > 0 || self.delivered == 0)
    }

    /// Books the call. `error`: it did not come to its end.
    pub(crate) async fn end(self, error: Option<&ModelError>, cancelled: bool) {
        let outcome = match (self.usage, error) {
            (Some(usage), None) if !cancelled && self.is_whole(usage) => Outcome::Known(self.meter.price.consumption(
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
        HoldError::Crowded(_) | HoldError::Rules(_) | HoldError::Database(_) => ModelErrorCode::Generic,
    };
    Ending::failed(code, Problem::from(error).message.into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::{TimeZone, Utc};
    use serde_json::json;
    use tale_core::ids::OrgId;
    use tale_governance::budgets::BudgetRules;
    use tale_models::ledger::RulesSource;
    use tale_models::wire::{ChatMessage, ToolChoice, UserPart};
    use tale_testkit::{ManualClock, TestDb};

    use super::*;

    /// A limit of tokens for everybody together.
    struct Limit(u64);

    #[async_trait::async_trait]
    impl RulesSource for Limit {
        async fn budgets(&self, _: OrgId) -> Result<Arc<BudgetRules>, Problem> {
            let rules = json!({ "rules": [{ "scope": "org", "period": "daily", "maxTokens": self.0 }] });
            Ok(Arc::new(serde_json::from_value(rules).unwrap()))
        }
    }

    /// Others take the rest, and the first prompt turns out longer than it was.
    #[tokio::test]
    async fn an_accepted_turn_runs_with_what_it_was_given() {
        let db = TestDb::new().await;
        let clock = Arc::new(ManualClock::new(Utc.timestamp_opt(1_700_000_000, 0).unwrap()));
        let charge = Charge {
            org: OrgId::new(),
            person: None,
            role: None,
            api_key: None,
            source: "chat".into(),
            provider: "p".into(),
            model: "m".into(),
        };
        sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, 'acme', 'Acme', now())")
            .bind(charge.org)
            .execute(&db.app)
            .await
            .unwrap();
        let ledger = Ledger::new(db.app.clone(), clock, Arc::new(Limit(1_000)));
        let meter = Meter { ledger, charge, price: Price::of(None), most_output: 4_000 };
        let opened = meter.admit(300).await.unwrap();
        let others = meter.price.whole(300, 1_000 - 300 - opened.granted().tokens, 1);
        let _others = meter.ledger.hold(&meter.charge, others).await.unwrap();
        let mut request = ChatRequest {
            system: String::new(),
            messages: vec![ChatMessage::User(vec![UserPart::Text("x".repeat(3 * 400))])],
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            effort: None,
        };
        let round = meter.round(Some(opened), &mut request).await;
        assert!(round.is_ok_and(|round| round.prompt > 400));
        let fits = u64::from(request.max_output_tokens.unwrap());
        assert!((1..LEAST_OUTPUT).contains(&fits), "the answer is as long as what is left: {fits}");
    }
}
