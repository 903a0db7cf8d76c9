//! Taking the token of a run: asking a broker for its accounts and choosing one (MOD-47 to MOD-49), or the pasted one.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use chrono::TimeDelta;
use reqwest::header::{ACCEPT, CONTENT_LENGTH};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::net::refusal_in;
use tale_core::problem::{Code, Problem};

use super::document::{Broker, BrokerAuthMethod, BrokerMethod, PastedToken, Selection, TokenSource};
use super::path::TokensPath;
use super::pool::{Excluded, Pool, Rules, Usable, digest_of};
use super::{Subscription, runtime, secret_context};
use crate::credentials::not_found;
use crate::secret::env_key;
use crate::{Models, store};

/// How long an account is left alone after the vendor refused it (MOD-49).
const COOLING: TimeDelta = TimeDelta::seconds(60);
/// Most accounts of one broker that are looked at.
const MAX_ITEMS: usize = 10_000;

/// A token for one run of the runtime.
#[derive(Debug, Clone)]
pub struct SelectedToken {
    /// Who it belongs to over time.
    pub account: String,
    /// The token.
    pub token: SecretString,
    /// The vendor's id of the account.
    pub vendor_account: Option<String>,
    /// The variable that the runtime reads it from.
    pub target_env_var: String,
}

/// What asking a broker gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrokerTest {
    /// Accounts in the answer.
    pub items: usize,
    /// Those that can be used now.
    pub usable: usize,
    /// Why the others cannot, with how many.
    pub excluded: BTreeMap<Excluded, usize>,
    /// The account that a run would have got. It counts as selected.
    pub account: Option<String>,
}

/// Why a broker gave no list. Never shows what it answered.
#[derive(Debug, thiserror::Error)]
enum BrokerFailure {
    #[error("its address is refused: it leads to a private or reserved place")]
    Refused,
    #[error("it cannot be reached")]
    Unreachable,
    #[error("it did not answer within {0} ms")]
    Silent(u64),
    #[error("it answered with HTTP {0}")]
    Status(u16),
    #[error("its answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("its answer is not JSON")]
    NotJson,
    #[error("its answer has no list at `{0}`")]
    NoList(String),
    #[error("its answer lists more than 10,000 accounts")]
    TooMany,
}

impl Models {
    /// The token of a subscription for one run: the pasted one, or of the accounts that its broker lists one that can be
    /// used now, one of those not in `tried` where there is one. Asked anew for each run; nothing is kept.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_FOUND` for one that is gone or disabled, `CREDENTIAL_ENV_MISSING`, `CREDENTIAL_SECRET_INVALID`,
    /// `PROVIDER_UPSTREAM_ERROR` when the broker gives no list, `SUBSCRIPTION_EXHAUSTED` when no account can be used.
    pub async fn select_token(
        &self,
        org: OrgId,
        id: CredentialId,
        tried: &HashSet<String>,
    ) -> Result<SelectedToken, Problem> {
        let one = self.subscription(org, id).await?;
        if !one.enabled {
            return Err(not_found());
        }
        let broker = match &one.source {
            TokenSource::Broker(broker) => broker,
            TokenSource::Pasted(pasted) => return self.pasted(org, &one, pasted).await,
        };
        let (pool, free_at) = self.pool_of(org, &one, broker).await?;
        let exhausted = pool.usable.is_empty();
        match self.taken(org, &one, broker.selection, pool, tried).await? {
            Some(taken) => Ok(SelectedToken {
                account: taken.account,
                token: taken.token,
                vendor_account: taken.vendor_account,
                target_env_var: broker.target_env_var.clone(),
            }),
            None if exhausted => Err(self.exhausted(&one, free_at)),
            None => Err(not_found()),
        }
    }

    fn exhausted(&self, one: &Subscription, free_at: Option<chrono::DateTime<chrono::Utc>>) -> Problem {
        let mut problem = Problem::new(
            Code::SubscriptionExhausted,
            format!("No account of the subscription \u{201c}{}\u{201d} can be used right now.", one.name),
        );
        problem.retry_after = free_at.and_then(|at| (at - self.inner.clock.now()).to_std().ok());
        problem
    }

    /// The pasted token, unless the vendor refused it within the last minute.
    async fn pasted(&self, org: OrgId, one: &Subscription, pasted: &PastedToken) -> Result<SelectedToken, Problem> {
        let token = self.stored_secret(org, one).await?.ok_or_else(not_found)?;
        let account = digest_of(token.expose_secret());
        let (cooling, free_at) = {
            let mut conn = self.inner.pool.acquire().await?;
            store::subscriptions::cooling(&mut conn, org, one.id, self.inner.clock.now()).await?
        };
        if cooling.contains(&account) {
            return Err(self.exhausted(one, free_at));
        }
        let (vendor_account, target_env_var) = (pasted.account_id.clone(), pasted.target_env_var.clone());
        Ok(SelectedToken { account, token, vendor_account, target_env_var })
    }

    /// The stored token, or secret of the broker.
    async fn stored_secret(&self, org: OrgId, one: &Subscription) -> Result<Option<SecretString>, Problem> {
        let sealed = {
            let mut conn = self.inner.pool.acquire().await?;
            store::subscriptions::sealed_secret(&mut conn, org, one.id).await?
        };
        let Some(sealed) = sealed else { return Ok(None) };
        let plain = self.inner.cipher.open(&secret_context(one.id), &sealed).map_err(|error| {
            Problem::new(
                Code::CredentialSecretInvalid,
                "What is stored of the subscription can no longer be decrypted, because ENCRYPTION_SECRET_HEX has changed. Enter it again on the providers page.",
            )
            .because(error)
        })?;
        Ok(Some(SecretString::from(plain)))
    }

    /// Asks the broker as a run would, and says what it gave.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_ENV_MISSING`, `PROVIDER_UPSTREAM_ERROR` with the reason, `INVALID_BODY` for a
    /// pasted token, which only a run can try.
    pub async fn test_subscription(&self, org: OrgId, id: CredentialId) -> Result<BrokerTest, Problem> {
        let one = self.subscription(org, id).await?;
        let Some(broker) = one.source.broker() else {
            return Err(Problem::invalid_field("id", "names a pasted token, which only a task of its runtime can try"));
        };
        let (pool, _) = self.pool_of(org, &one, broker).await?;
        let (items, usable, excluded) = (pool.items, pool.usable.len(), pool.excluded.clone());
        let taken = self.taken(org, &one, broker.selection, pool, &HashSet::new()).await?;
        Ok(BrokerTest { items, usable, excluded, account: taken.map(|taken| taken.account) })
    }

    /// Keeps an account out of the organization's selections for a minute: the vendor refused it with 429.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn cool_account(&self, org: OrgId, id: CredentialId, account: &str) -> Result<(), Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        Ok(store::subscriptions::cool(&mut conn, org, id, account, self.inner.clock.now() + COOLING).await?)
    }

    async fn subscription(&self, org: OrgId, id: CredentialId) -> Result<Subscription, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        store::subscriptions::get(&mut conn, org, id).await?.ok_or_else(not_found)
    }

    /// The accounts of a broker now, and when the first that the vendor refused is free again.
    async fn pool_of(
        &self,
        org: OrgId,
        one: &Subscription,
        broker: &Broker,
    ) -> Result<(Pool, Option<chrono::DateTime<chrono::Utc>>), Problem> {
        let runtime = runtime(&one.provider_slug)?;
        let secret = self.broker_secret(org, one, broker).await?;
        let answer = self.ask(broker, secret.as_ref()).await.and_then(|answer| {
            let path = &broker.response_mapping.tokens_path;
            let found = TokensPath::parse(path).ok().and_then(|path| Some(path.list(&answer)?.len()));
            match found {
                None => Err(BrokerFailure::NoList(path.clone())),
                Some(count) if count > MAX_ITEMS => Err(BrokerFailure::TooMany),
                Some(_) => Ok(answer),
            }
        });
        let answer = answer.map_err(|failure| {
            tracing::warn!(event = "broker.failed", credential = %one.id, %failure, "a broker gave no list of accounts");
            Problem::new(Code::ProviderUpstreamError, format!("The broker gave no accounts: {failure}."))
        })?;
        let now = self.inner.clock.now();
        let (cooling, free_at) = {
            let mut conn = self.inner.pool.acquire().await?;
            store::subscriptions::cooling(&mut conn, org, one.id, now).await?
        };
        let rules = Rules {
            broker,
            provider: &one.provider_slug,
            needs_account: runtime.needs_account_id,
            cooling: &cooling,
            now,
        };
        let items = TokensPath::parse(&broker.response_mapping.tokens_path).ok();
        let items = items.as_ref().and_then(|path| path.list(&answer)).unwrap_or_default();
        Ok((Pool::of(&items, &rules), free_at))
    }

    /// The secret that signs in: the stored one, else the variable's.
    async fn broker_secret(
        &self,
        org: OrgId,
        one: &Subscription,
        broker: &Broker,
    ) -> Result<Option<SecretString>, Problem> {
        if broker.auth.method == BrokerAuthMethod::None {
            return Ok(None);
        }
        if let Some(stored) = self.stored_secret(org, one).await? {
            return Ok(Some(stored));
        }
        let name = broker.auth.secret_env.as_deref().unwrap_or_default();
        self.inner.key_hosts.check(name, &broker.endpoint, self.inner.wire.policy())?;
        let missing = || {
            Problem::new(
                Code::CredentialEnvMissing,
                format!("The variable {name} is not set where Tale runs, so the broker cannot be asked."),
            )
        };
        env_key(self.inner.env.as_ref(), name).map(Some).ok_or_else(missing)
    }

    async fn ask(&self, broker: &Broker, secret: Option<&SecretString>) -> Result<Value, BrokerFailure> {
        let wait = Duration::from_millis(broker.timeout_ms);
        tokio::time::timeout(wait, self.asked(broker, secret))
            .await
            .unwrap_or(Err(BrokerFailure::Silent(broker.timeout_ms)))
    }

    async fn asked(&self, broker: &Broker, secret: Option<&SecretString>) -> Result<Value, BrokerFailure> {
        let client = self.inner.wire.guarded();
        let request = match broker.http_method {
            BrokerMethod::Get => client.get(broker.endpoint.clone()),
            BrokerMethod::Post => client.post(broker.endpoint.clone()).header(CONTENT_LENGTH, 0),
        };
        let mut request = request.header(ACCEPT, "application/json");
        if let Some((name, value)) = secret.and_then(|secret| broker.sign_in(secret.expose_secret().trim())) {
            request = request.header(name, value);
        }
        let failed = |error: reqwest::Error| {
            if refusal_in(&error).is_some() { BrokerFailure::Refused } else { BrokerFailure::Unreachable }
        };
        let bare = {
            let mut bare = broker.endpoint.clone();
            bare.set_query(None);
            bare
        };
        tale_core::net::check_destination(&bare, self.inner.wire.policy()).map_err(|_| BrokerFailure::Refused)?;
        let mut response = request.send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(BrokerFailure::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > broker.max_response_bytes {
                return Err(BrokerFailure::TooLarge(broker.max_response_bytes));
            }
            body.extend_from_slice(&piece);
        }
        serde_json::from_slice(&body).map_err(|_| BrokerFailure::NotJson)
    }

    /// Takes one of the accounts that can be used; `None` when there is none.
    async fn taken(
        &self,
        org: OrgId,
        one: &Subscription,
        selection: Selection,
        pool: Pool,
        tried: &HashSet<String>,
    ) -> Result<Option<Usable>, Problem> {
        let mut left = pool.usable;
        if left.iter().any(|account| !tried.contains(&account.account)) {
            left.retain(|account| !tried.contains(&account.account));
        }
        let place = match selection {
            _ if left.is_empty() => return Ok(None),
            Selection::First => Some(0),
            Selection::Random => {
                #[allow(clippy::cast_possible_truncation, reason = "smaller than the length of a list")]
                let place = (uuid::Uuid::new_v4().as_u128() % left.len() as u128) as usize;
                Some(place)
            }
            Selection::RoundRobin => {
                let accounts: Vec<&str> = left.iter().map(|account| account.account.as_str()).collect();
                let mut conn = self.inner.pool.acquire().await?;
                let chosen = store::subscriptions::turn(&mut conn, org, one.id, &accounts).await?;
                chosen.and_then(|chosen| left.iter().position(|account| account.account == chosen))
            }
        };
        Ok(place.map(|place| left.swap_remove(place)))
    }
}
