//! Subscriptions, their tokens and their brokers on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::net::invalid_url;
use utoipa::ToSchema;

/// The agent runtime that uses a provider's subscriptions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscriptionRuntime {
    /// Its identifier.
    harness: String,
    /// Its name.
    label: String,
    /// The variables that it reads a token from, the usual one first.
    target_env_vars: Vec<String>,
    /// How tokens may be held.
    methods: Vec<SubscriptionMethod>,
    /// The vendor's id of the account is needed beside a pasted token.
    needs_account_id: bool,
    /// Plans serve only a part of the models, which must be listed.
    needs_models: bool,
}

impl From<tale_models::SubscriptionRuntime> for SubscriptionRuntime {
    fn from(runtime: tale_models::SubscriptionRuntime) -> Self {
        Self {
            harness: runtime.harness,
            label: runtime.label,
            target_env_vars: runtime.target_env_vars,
            methods: runtime.methods.into_iter().map(Into::into).collect(),
            needs_account_id: runtime.needs_account_id,
            needs_models: runtime.needs_models,
        }
    }
}

/// How the tokens of a plan are held.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SubscriptionMethod {
    /// One token that was pasted and that nothing renews.
    SubscriptionKey,
    /// A broker hands them out.
    SubscriptionBroker,
}

impl From<tale_models::SubscriptionMethod> for SubscriptionMethod {
    fn from(method: tale_models::SubscriptionMethod) -> Self {
        match method {
            tale_models::SubscriptionMethod::SubscriptionKey => Self::SubscriptionKey,
            tale_models::SubscriptionMethod::SubscriptionBroker => Self::SubscriptionBroker,
        }
    }
}

/// How a broker is asked.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum BrokerMethod {
    #[default]
    Get,
    Post,
}

/// How Tale signs in to a broker.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BrokerAuthMethod {
    #[default]
    None,
    Bearer,
    Header,
}

/// Which account of a pool is taken.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BrokerSelection {
    #[default]
    Random,
    First,
    RoundRobin,
}

/// How Tale signs in to a broker. The secret itself is never shown.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BrokerAuth {
    #[serde(default)]
    method: BrokerAuthMethod,
    /// For the method `header`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    header_name: Option<String>,
    /// A variable `TALE_TOKEN_SOURCE_…` that holds the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    secret_env: Option<String>,
}

/// Where the accounts stand in a broker's answer.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BrokerMapping {
    /// The list, such as `$.tokens`.
    tokens_path: String,
    token_field: String,
    /// Together with `activeValue`: only accounts with that status are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status_field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    active_value: Option<String>,
    /// An ISO time, or seconds or milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_field: Option<String>,
}

/// A service that hands out the tokens of a pool of accounts.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Broker {
    endpoint: String,
    #[serde(default)]
    http_method: BrokerMethod,
    #[serde(default)]
    auth: BrokerAuth,
    response_mapping: BrokerMapping,
    /// The variable that the agent runtime reads the token from.
    target_env_var: String,
    #[serde(default)]
    selection: BrokerSelection,
    /// 0 to 3,600,000; 300,000 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expiry_skew_ms: Option<u64>,
    /// 100 to 60,000; 10,000 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    timeout_ms: Option<u64>,
    /// 1,024 to 4,194,304; 262,144 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_response_bytes: Option<usize>,
}

impl TryFrom<Broker> for tale_models::Broker {
    type Error = Problem;

    fn try_from(broker: Broker) -> Result<Self, Problem> {
        let endpoint = broker.endpoint.trim().parse();
        Ok(Self {
            endpoint: endpoint.map_err(|_| invalid_url("broker.endpoint", "must be an http or https address"))?,
            http_method: match broker.http_method {
                BrokerMethod::Get => tale_models::BrokerMethod::Get,
                BrokerMethod::Post => tale_models::BrokerMethod::Post,
            },
            auth: tale_models::BrokerAuth {
                method: match broker.auth.method {
                    BrokerAuthMethod::None => tale_models::BrokerAuthMethod::None,
                    BrokerAuthMethod::Bearer => tale_models::BrokerAuthMethod::Bearer,
                    BrokerAuthMethod::Header => tale_models::BrokerAuthMethod::Header,
                },
                header_name: broker.auth.header_name,
                secret_env: broker.auth.secret_env,
            },
            response_mapping: tale_models::ResponseMapping {
                tokens_path: broker.response_mapping.tokens_path,
                token_field: broker.response_mapping.token_field,
                status_field: broker.response_mapping.status_field,
                active_value: broker.response_mapping.active_value,
                expires_field: broker.response_mapping.expires_field,
            },
            target_env_var: broker.target_env_var,
            selection: match broker.selection {
                BrokerSelection::Random => tale_models::Selection::Random,
                BrokerSelection::First => tale_models::Selection::First,
                BrokerSelection::RoundRobin => tale_models::Selection::RoundRobin,
            },
            expiry_skew_ms: broker.expiry_skew_ms.unwrap_or(300_000),
            timeout_ms: broker.timeout_ms.unwrap_or(10_000),
            max_response_bytes: broker.max_response_bytes.unwrap_or(262_144),
        })
    }
}

impl From<tale_models::Broker> for Broker {
    fn from(broker: tale_models::Broker) -> Self {
        Self {
            endpoint: broker.endpoint.into(),
            http_method: match broker.http_method {
                tale_models::BrokerMethod::Get => BrokerMethod::Get,
                tale_models::BrokerMethod::Post => BrokerMethod::Post,
            },
            auth: BrokerAuth {
                method: match broker.auth.method {
                    tale_models::BrokerAuthMethod::None => BrokerAuthMethod::None,
                    tale_models::BrokerAuthMethod::Bearer => BrokerAuthMethod::Bearer,
                    tale_models::BrokerAuthMethod::Header => BrokerAuthMethod::Header,
                },
                header_name: broker.auth.header_name,
                secret_env: broker.auth.secret_env,
            },
            response_mapping: BrokerMapping {
                tokens_path: broker.response_mapping.tokens_path,
                token_field: broker.response_mapping.token_field,
                status_field: broker.response_mapping.status_field,
                active_value: broker.response_mapping.active_value,
                expires_field: broker.response_mapping.expires_field,
            },
            target_env_var: broker.target_env_var,
            selection: match broker.selection {
                tale_models::Selection::Random => BrokerSelection::Random,
                tale_models::Selection::First => BrokerSelection::First,
                tale_models::Selection::RoundRobin => BrokerSelection::RoundRobin,
            },
            expiry_skew_ms: Some(broker.expiry_skew_ms),
            timeout_ms: Some(broker.timeout_ms),
            max_response_bytes: Some(broker.max_response_bytes),
        }
    }
}

/// A subscription, without its secret. It acts in its agent runtime alone.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subscription {
    #[schema(format = Uuid)]
    id: String,
    /// Unique in the organization, among credentials too.
    name: String,
    auth_method: SubscriptionMethod,
    /// For `subscription-broker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    broker: Option<Broker>,
    /// The variable that the agent runtime reads the token from.
    target_env_var: String,
    /// The vendor's id of the account of a pasted token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    account_id: Option<String>,
    /// First four and last two characters of the pasted token, or of the broker's stored secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    masked: Option<String>,
    /// The variable that holds the broker's secret, while it is not set in the process that answers: the broker cannot be
    /// asked until it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    unset_variable: Option<String>,
    /// The models of the plan; empty = all.
    model_allowlist: Vec<String>,
    enabled: bool,
    version: i64,
    /// In epoch milliseconds.
    updated_at: i64,
}

impl Subscription {
    /// A subscription as this process sees it.
    pub(crate) fn shown(one: tale_models::Subscription, models: &tale_models::Models) -> Self {
        let variable = one.source.broker().and_then(|broker| broker.auth.secret_env.as_deref());
        let unset_variable = models.unset_variable(variable);
        let auth_method = one.source.method().into();
        let (broker, target_env_var, account_id) = match one.source {
            tale_models::TokenSource::Broker(broker) => {
                let target = broker.target_env_var.clone();
                (Some(broker.into()), target, None)
            }
            tale_models::TokenSource::Pasted(pasted) => (None, pasted.target_env_var, pasted.account_id),
        };
        Self {
            id: one.id.to_string(),
            name: one.name,
            auth_method,
            broker,
            target_env_var,
            account_id,
            masked: one.masked,
            unset_variable,
            model_allowlist: one.model_allowlist,
            enabled: one.enabled,
            version: one.version,
            updated_at: one.updated_at.timestamp_millis(),
        }
    }
}

/// A subscription to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AddSubscriptionRequest {
    pub(crate) name: String,
    /// Who hands out tokens; or else `token`.
    #[serde(default)]
    pub(crate) broker: Option<Broker>,
    /// A token of the plan; kept encrypted, and never renewed.
    #[serde(default)]
    pub(crate) token: Option<String>,
    /// The variable that the agent runtime reads `token` from; the usual one when left out.
    #[serde(default)]
    pub(crate) target_env_var: Option<String>,
    /// The vendor's id of the account of `token`.
    #[serde(default)]
    pub(crate) account_id: Option<String>,
    /// What signs in to the broker; kept encrypted, instead of a variable.
    #[serde(default)]
    pub(crate) broker_secret: Option<String>,
    /// The models of the plan; empty = all.
    #[serde(default)]
    pub(crate) model_allowlist: Vec<String>,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangeSubscriptionRequest {
    /// The version that the change started from.
    pub(crate) version: i64,
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Takes the place of the present one. Without `secretEnv` and `brokerSecret` the stored secret stays, for the
    /// same address; the method `none` removes it.
    #[serde(default)]
    pub(crate) broker: Option<Broker>,
    #[serde(default)]
    pub(crate) broker_secret: Option<String>,
    /// Takes the place of the pasted token.
    #[serde(default)]
    pub(crate) token: Option<String>,
    /// Of a pasted token, together with `accountId`.
    #[serde(default)]
    pub(crate) target_env_var: Option<String>,
    /// Of a pasted token, together with `targetEnvVar`.
    #[serde(default)]
    pub(crate) account_id: Option<String>,
    #[serde(default)]
    pub(crate) model_allowlist: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) enabled: Option<bool>,
}

impl AddSubscriptionRequest {
    /// Where its tokens come from, and the secret beside it.
    ///
    /// # Errors
    /// `INVALID_BODY` unless it names a broker or a token, and not both.
    pub(crate) fn source(
        broker: Option<Broker>,
        broker_secret: Option<String>,
        token: Option<String>,
        pasted: (Option<String>, Option<String>),
    ) -> Result<(tale_models::TokenSource, Option<String>), Problem> {
        let absent = |field: &str, beside: &str| Problem::invalid_field(field, &format!("must be absent {beside}"));
        match (broker, pasted) {
            (Some(_), (None, None)) if token.is_some() => Err(absent("token", "beside a broker")),
            (Some(broker), (None, None)) => Ok((tale_models::TokenSource::Broker(broker.try_into()?), broker_secret)),
            (Some(_), _) => Err(absent("targetEnvVar", "beside a broker, which names it")),
            (None, _) if broker_secret.is_some() => Err(absent("brokerSecret", "without a broker")),
            (None, (target_env_var, account_id)) => {
                let target_env_var = target_env_var.unwrap_or_default();
                let pasted = tale_models::PastedToken { target_env_var, account_id };
                Ok((tale_models::TokenSource::Pasted(pasted), token))
            }
        }
    }
}

impl ChangeSubscriptionRequest {
    /// What replaces where tokens come from, if anything does.
    ///
    /// # Errors
    /// `INVALID_BODY` for a broker beside what belongs to a pasted token.
    pub(crate) fn source(
        broker: Option<Broker>,
        pasted: (Option<String>, Option<String>),
    ) -> Result<Option<tale_models::TokenSource>, Problem> {
        match (broker, pasted) {
            (None, (None, None)) => Ok(None),
            (broker, pasted) => {
                AddSubscriptionRequest::source(broker, None, None, pasted).map(|(source, _)| Some(source))
            }
        }
    }
}

/// What asking a broker gave.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BrokerTest {
    /// Accounts in the answer.
    items: usize,
    /// Those that can be used now.
    usable: usize,
    /// Why the others cannot, with how many: `noToken`, `status`, `expired`, `otherProvider`, `noAccountId`,
    /// `unavailable`, `cooling`, `twice`.
    excluded: BTreeMap<&'static str, usize>,
    /// The account that would be used now: `id:` and the broker's id, or `token:` and a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    account: Option<String>,
}

impl From<tale_models::BrokerTest> for BrokerTest {
    fn from(test: tale_models::BrokerTest) -> Self {
        Self {
            items: test.items,
            usable: test.usable,
            excluded: test.excluded.into_iter().map(|(why, count)| (why.text(), count)).collect(),
            account: test.account,
        }
    }
}
