//! Keys of the model gateway (spec 40, 11.2): each calls exactly the models that it was made for, up to a
//! cap that was set aside under the limits when it was made.
//!
//! A key never changes, so a process remembers those that were shown to it; whether one lives is asked in
//! the statement that holds each call ([`tale_models::ledger::allowance`]), so that revoking acts on the
//! next call of every process. A key's secret follows from its id and a secret of the deployment: it is
//! stored nowhere, and whoever makes the same key again gets the same answer.

mod store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_core::crypto::hmac_sha256;
use tale_core::ids::{ApiKeyId, OrgId, UserId};
use tale_core::problem::{Code, Issue, Problem};
use tale_governance::budgets::Cost;
use tale_governance::policies::Person;
use tale_identity::{Role, keys};
use tale_models::ledger::Charge;
use tale_models::ledger::allowance::{Allowance, AllowanceState, Wish};
use tale_models::{ModelReference, Models, ResolvedModel};
use uuid::Uuid;

use crate::call::Callable;
use crate::refusal::Refusal;

/// Keys that one process remembers.
const MAX_REMEMBERED: usize = 16_384;
/// Most models of one key.
const MAX_MODELS: usize = 500;
/// Largest cap, in micro-US-dollars: a million dollars.
const MAX_CAP: u64 = 1_000_000_000_000;
/// Most tokens or calls that a key may be given.
const MAX_COUNT: u64 = 100_000_000_000;
/// Longest life of a key, in seconds, and the usual one.
const MAX_LIFETIME: u64 = 7 * 86_400;
const LIFETIME: u64 = 86_400;
/// Longest name of what a key acts for.
const MAX_AGENT: usize = 200;

/// What [`Keys`] is built from.
pub struct KeysParts {
    /// The application database.
    pub pool: PgPool,
    /// Providers, credentials, the ledger.
    pub models: Models,
    /// The time.
    pub clock: SharedClock,
    /// A secret of the deployment, of which the secrets of keys are made.
    pub seed: [u8; 32],
}

/// The keys. Cheap to clone; clones share what they remember.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    parts: KeysParts,
    remembered: Mutex<HashMap<[u8; 32], Arc<KeyHolder>>>,
}

/// What a key shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyOrder {
    /// Exactly the models that it may call. Without a credential: with the provider's default one.
    pub models: Vec<ModelReference>,
    /// The most that it may cost, in cents.
    pub cap_cents: Cost,
    /// A smaller cap that will do where a limit leaves no more, in cents; the same when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_cap_cents: Option<Cost>,
    /// The most tokens; not limited when left out, unless a limit of tokens binds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_tokens: Option<u64>,
    /// The most calls; not limited when left out, unless a limit of requests binds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_requests: Option<u64>,
    /// The person whose work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<UserId>,
    /// The API key that asked for the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<ApiKeyId>,
    /// What its use is booked under: the stable id of an agent.
    pub agent: String,
    /// After how many seconds it ends by itself: a day when left out, a week at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<u64>,
}

/// A key as its maker gets it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Minted {
    /// The secret. It is in no other answer, and stored nowhere.
    pub key: String,
    /// The models with their credentials.
    pub models: Vec<ModelReference>,
    /// How it stands.
    #[serde(flatten)]
    pub state: KeyState,
}

/// How a key stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyState {
    /// Its id.
    pub id: Uuid,
    /// The organization.
    pub organization: OrgId,
    /// The most that it may cost, in cents.
    pub cap_cents: Cost,
    /// What its calls cost so far, in cents.
    pub spent_cents: Cost,
    /// What running calls hold of the cap, in cents.
    pub held_cents: Cost,
    /// The most tokens.
    pub cap_tokens: Option<i64>,
    /// Tokens of its calls so far.
    pub spent_tokens: i64,
    /// The most calls.
    pub cap_requests: Option<i64>,
    /// Its calls so far.
    pub spent_requests: i64,
    /// Calls that run.
    pub running: i64,
    /// When it ends by itself.
    pub expires_at: DateTime<Utc>,
    /// Since when it calls nothing any more.
    pub revoked_at: Option<DateTime<Utc>>,
    /// Since when everything is booked, so that `spentCents` stays.
    pub settled_at: Option<DateTime<Utc>>,
}

/// Whoever shows a key.
#[derive(Debug)]
pub struct KeyHolder {
    pub(crate) id: Uuid,
    pub(crate) org: OrgId,
    pub(crate) models: Vec<ModelReference>,
    digest: [u8; 32],
}

impl KeyHolder {
    pub(crate) fn allowance(&self) -> Allowance {
        Allowance { org: self.org, id: self.id }
    }

    /// The key's id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The organization that it belongs to.
    #[must_use]
    pub fn org(&self) -> OrgId {
        self.org
    }

    /// The models that it may call.
    #[must_use]
    pub fn callable(&self) -> Vec<Callable> {
        self.models.iter().map(|model| Callable { id: model.id(), provider: model.provider.clone() }).collect()
    }
}

/// The refusal of a key that is none, or lives no more.
pub(crate) fn unauthorized() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "Send a valid key of the model gateway as `Authorization: Bearer <key>`, `x-api-key` or `x-goog-api-key`. This one is missing, unknown, expired or revoked.",
    )
}

fn not_found() -> Problem {
    Problem::new(Code::NotFound, "The organization has no such gateway key.")
}

impl Keys {
    /// Keys in a database.
    #[must_use]
    pub fn new(parts: KeysParts) -> Self {
        Self(Arc::new(Inner { parts, remembered: Mutex::default() }))
    }

    /// Makes the key `id`, setting its cap aside under the limits; made again from the same order, it is
    /// the same key with the same secret.
    ///
    /// # Errors
    /// `INVALID_BODY`, `NOT_FOUND` for an unknown organization, `MEMBER_NOT_FOUND`, `MODEL_API_MODEL_UNKNOWN`,
    /// `MODEL_API_MODEL_FORBIDDEN`, `CREDENTIAL_NOT_FOUND`, `BUDGET_EXCEEDED`, `IDEMPOTENCY_KEY_REUSED` for the
    /// id of another key.
    pub async fn mint(&self, org: OrgId, id: Uuid, order: KeyOrder) -> Result<Minted, Problem> {
        order.check()?;
        let KeysParts { pool, models, clock, .. } = &self.0.parts;
        if let Some(minted) = self.minted(org, id, &order).await? {
            return Ok(minted);
        }
        let role = match order.person {
            Some(person) => Some(self.role_of(org, person).await?),
            None => None,
        };
        let rules = match (order.person, role) {
            (Some(user), Some(role)) => Some(models.rules(org, Person { user: Some(user), role, team: None }).await?),
            _ => None,
        };
        let references = models.settle_references(org, rules.as_ref(), &order.models).await?;
        let charge = Charge {
            org,
            person: order.person,
            role,
            api_key: order.api_key,
            source: order.agent.as_str().into(),
            provider: "".into(),
            model: "".into(),
        };
        let wish = Wish {
            cost_micro_usd: order.cap_cents.0,
            least_cost_micro_usd: order.least_cap_cents.unwrap_or(order.cap_cents).0,
            tokens: order.cap_tokens,
            requests: order.cap_requests,
        };
        let aside = models.ledger().set_aside(&charge, wish).await.map_err(|error| match store::no_org(&error) {
            true => Problem::new(Code::NotFound, "There is no such organization."),
            false => error.into(),
        })?;
        let now = clock.now();
        let lifetime = order.lifetime_seconds.unwrap_or(LIFETIME).min(MAX_LIFETIME);
        let expires_at = now + TimeDelta::seconds(i64::try_from(lifetime).unwrap_or(0));
        let secret = self.secret(id);
        let row = store::NewKey { id, org, digest: &secret.hash, models: &references, minted_from: &order, now };
        let mut tx = pool.begin().await?;
        let made = match aside.keep(&mut tx, id, expires_at).await {
            Ok(()) => store::insert(&mut tx, &row).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(()) => tx.commit().await?,
            Err(error) if store::is_taken(&error) => {
                drop(tx);
                // Somebody else was first; what was set aside is given back.
                return self.minted(org, id, &order).await?.ok_or_else(reused);
            }
            Err(error) => return Err(error.into()),
        }
        aside.kept();
        tracing::info!(event = "gateway.key_minted", %org, key = %id, cap_micro_usd = order.cap_cents.0, "gateway key minted");
        self.minted(org, id, &order).await?.ok_or_else(not_found)
    }

    /// The key as it was made from `order`, when it was.
    async fn minted(&self, org: OrgId, id: Uuid, order: &KeyOrder) -> Result<Option<Minted>, Problem> {
        let Some(row) = store::get(&self.0.parts.pool, org, id).await? else { return Ok(None) };
        let secret = self.secret(id);
        if row.minted_from.0 != *order || row.secret_sha256 != secret.hash {
            return Err(reused());
        }
        let state = self.state(org, id).await?;
        Ok(Some(Minted { key: secret.secret, models: row.models.0, state }))
    }

    /// How a key stands.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn state(&self, org: OrgId, id: Uuid) -> Result<KeyState, Problem> {
        let state = self.0.parts.models.ledger().allowance(Allowance { org, id }).await?.ok_or_else(not_found)?;
        Ok(KeyState::of(org, id, &state))
    }

    /// Ends a key: it begins no call any more, those that run end by themselves. Ending it again changes
    /// nothing.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn revoke(&self, org: OrgId, id: Uuid) -> Result<KeyState, Problem> {
        let ended = self.0.parts.models.ledger().end_allowances(&[Allowance { org, id }]).await?;
        let state = self.state(org, id).await?;
        if ended > 0 {
            let spent = state.spent_cents.0;
            tracing::info!(event = "gateway.key_revoked", %org, key = %id, spent_micro_usd = spent, running = state.running, "gateway key revoked");
        }
        Ok(state)
    }

    /// Who shows `secret`. That the key was not revoked is known from the last time that it was asked for.
    ///
    /// # Errors
    /// `UNAUTHORIZED`.
    pub async fn holder(&self, secret: &str) -> Result<Arc<KeyHolder>, Problem> {
        let digest = keys::gateway_digest(secret).ok_or_else(unauthorized)?;
        if let Some(holder) = self.remembered().get(&digest) {
            return Ok(holder.clone());
        }
        let found = store::by_digest(&self.0.parts.pool, &digest, self.0.parts.clock.now()).await?;
        let (id, org, models) = found.ok_or_else(unauthorized)?;
        let holder = Arc::new(KeyHolder { id, org, models: models.0, digest });
        let mut remembered = self.remembered();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(digest, holder.clone());
        Ok(holder)
    }

    /// [`Keys::holder`], asking whether the key lives now: for what holds nothing of its cap.
    ///
    /// # Errors
    /// `UNAUTHORIZED`.
    pub async fn living(&self, secret: &str) -> Result<Arc<KeyHolder>, Problem> {
        let holder = self.holder(secret).await?;
        let state = self.0.parts.models.ledger().allowance(holder.allowance()).await?;
        if state.is_some_and(|state| state.is_open(self.0.parts.clock.now())) {
            return Ok(holder);
        }
        self.forget(&holder);
        Err(unauthorized())
    }

    /// The model that `id` names among those of the key, ready to be called.
    pub(crate) async fn resolve(&self, holder: &KeyHolder, id: &str) -> Result<ResolvedModel, Refusal> {
        let reference = holder.models.iter().find(|model| model.is(id)).ok_or_else(|| {
            Problem::new(
                Code::ModelApiModelForbidden,
                "This key does not call that model. The list of models names those that it calls, as `<provider>/<model>`.",
            )
        })?;
        let model = self.0.parts.models.resolve_named(holder.org, reference).await;
        model.map_err(|problem| match problem.code {
            Code::CredentialNotFound
            | Code::CredentialEnvMissing
            | Code::CredentialSecretInvalid
            | Code::ProviderUnknown => Refusal::no_credential(id, problem),
            _ => problem.into(),
        })
    }

    /// A key that was found to live no more.
    pub(crate) fn forget(&self, holder: &KeyHolder) {
        self.remembered().remove(&holder.digest);
    }

    async fn role_of(&self, org: OrgId, person: UserId) -> Result<&'static str, Problem> {
        let role = store::role(&self.0.parts.pool, org, person).await?;
        role.as_deref()
            .and_then(Role::parse)
            .map(Role::text)
            .ok_or_else(|| Problem::new(Code::MemberNotFound, "`person` is no member of the organization."))
    }

    fn secret(&self, id: Uuid) -> keys::NewKey {
        keys::gateway(&hmac_sha256(&self.0.parts.seed, id.as_bytes()))
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<KeyHolder>>> {
        self.0.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reused() -> Problem {
    Problem::new(
        Code::IdempotencyKeyReused,
        "There is a key of this id that was made from another order or under another ENCRYPTION_SECRET_HEX. Choose another id.",
    )
}

impl KeyOrder {
    fn check(&self) -> Result<(), Problem> {
        let mut issues = Vec::new();
        let mut issue = |wrong: bool, path: &str, message: String| {
            if wrong {
                issues.push(Issue::new(path, message));
            }
        };
        issue(
            !(1..=MAX_MODELS).contains(&self.models.len()),
            "models",
            format!("must name at least one model and at most {MAX_MODELS}"),
        );
        let cap = |cost: Cost| (1..=MAX_CAP).contains(&cost.0);
        issue(!cap(self.cap_cents), "capCents", format!("must be above 0 and at most {}", MAX_CAP / 10_000));
        issue(
            self.least_cap_cents.is_some_and(|least| !cap(least) || least > self.cap_cents),
            "leastCapCents",
            "must be above 0 and at most `capCents`".to_owned(),
        );
        for (count, path) in [(self.cap_tokens, "capTokens"), (self.cap_requests, "capRequests")] {
            issue(
                count.is_some_and(|count| !(1..=MAX_COUNT).contains(&count)),
                path,
                format!("must be a whole number from 1 to {MAX_COUNT}"),
            );
        }
        issue(
            !(1..=MAX_AGENT).contains(&self.agent.chars().count()),
            "agent",
            format!("must have from 1 to {MAX_AGENT} characters"),
        );
        issue(
            self.lifetime_seconds.is_some_and(|seconds| !(1..=MAX_LIFETIME).contains(&seconds)),
            "lifetimeSeconds",
            format!("must be a whole number from 1 to {MAX_LIFETIME}"),
        );
        if issues.is_empty() { Ok(()) } else { Err(Problem::invalid_body(issues)) }
    }
}

impl KeyState {
    fn of(org: OrgId, id: Uuid, state: &AllowanceState) -> Self {
        let cost = |amount: i64| Cost(u64::try_from(amount).unwrap_or(0));
        Self {
            id,
            organization: org,
            cap_cents: cost(state.cost_micro_usd),
            spent_cents: cost(state.spent_cost),
            held_cents: cost(state.held_cost),
            cap_tokens: state.tokens,
            spent_tokens: state.spent_tokens,
            cap_requests: state.requests,
            spent_requests: state.spent_requests,
            running: state.calls,
            expires_at: state.expires_at,
            revoked_at: state.ended_at,
            settled_at: state.settled_at,
        }
    }
}
