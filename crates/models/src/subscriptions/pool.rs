//! Which accounts of a broker's answer can be used now (MOD-44 to MOD-46). Pure: no clock, no network.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde_json::Value;
use tale_core::crypto::sha256;

use super::document::{Broker, ResponseMapping};

/// Longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// Longest id of an account, in characters.
const MAX_ID: usize = 200;

/// Why an account is not used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excluded {
    /// Its token is missing or is no token.
    NoToken,
    /// Its status is another than the wanted one.
    Status,
    /// Its token expires too soon, or nobody can tell when.
    Expired,
    /// It belongs to another provider.
    OtherProvider,
    /// It lacks the vendor's account id, which the provider needs.
    NoAccountId,
    /// The broker holds it back.
    Unavailable,
    /// The vendor refused it a moment ago.
    Cooling,
    /// It is in the list a second time.
    Twice,
}

impl Excluded {
    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoToken => "noToken",
            Self::Status => "status",
            Self::Expired => "expired",
            Self::OtherProvider => "otherProvider",
            Self::NoAccountId => "noAccountId",
            Self::Unavailable => "unavailable",
            Self::Cooling => "cooling",
            Self::Twice => "twice",
        }
    }
}

/// An account that can be used.
#[derive(Debug, Clone)]
pub(super) struct Usable {
    /// Who it is over time: the broker's id, or a digest of the token (MOD-45).
    pub account: String,
    pub token: SecretString,
    /// The vendor's account id.
    pub vendor_account: Option<String>,
}

/// What a broker's answer comes to.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub items: usize,
    /// In the broker's order.
    pub usable: Vec<Usable>,
    pub excluded: BTreeMap<Excluded, usize>,
}

/// What an answer is judged by.
pub(super) struct Rules<'a> {
    pub broker: &'a Broker,
    pub provider: &'a str,
    /// Whether the vendor needs its account id.
    pub needs_account: bool,
    pub cooling: &'a HashSet<String>,
    pub now: DateTime<Utc>,
}

/// What keeps an account from being used, and how long the broker holds it back for a refresh.
enum Verdict {
    Usable(Usable),
    /// Held back only because its token is being refreshed, until then.
    Refreshing(Usable, Option<DateTime<Utc>>),
    No(Excluded),
}

impl Pool {
    /// Judges every account of a list.
    pub(super) fn of(items: &[&Value], rules: &Rules<'_>) -> Self {
        let mut pool = Self { items: items.len(), ..Self::default() };
        let mut refreshing: Option<(Usable, Option<DateTime<Utc>>)> = None;
        let mut seen = HashSet::new();
        let mut exclude = |why| *pool.excluded.entry(why).or_default() += 1;
        for item in items {
            match judged(item, rules) {
                Verdict::Usable(one) if !seen.insert(one.account.clone()) => exclude(Excluded::Twice),
                Verdict::Usable(one) => pool.usable.push(one),
                Verdict::Refreshing(one, until) => {
                    exclude(Excluded::Unavailable);
                    // Whose refresh is furthest away; one without a time is the last choice.
                    if refreshing.as_ref().is_none_or(|(_, best)| until > *best) {
                        refreshing = Some((one, until));
                    }
                }
                Verdict::No(why) => exclude(why),
            }
        }
        if pool.usable.is_empty()
            && let Some((one, _)) = refreshing
        {
            pool.usable.push(one);
            if let Some(held) = pool.excluded.get_mut(&Excluded::Unavailable) {
                *held -= 1;
            }
        }
        pool.excluded.retain(|_, count| *count > 0);
        pool
    }
}

/// Names the account of a token that nothing else names.
pub(super) fn digest_of(token: &str) -> String {
    format!("token:{}", hex(&sha256(token.as_bytes())))
}

fn judged(item: &Value, rules: &Rules<'_>) -> Verdict {
    let ResponseMapping { token_field, status_field, active_value, expires_field, .. } = &rules.broker.response_mapping;
    let fits =
        |token: &&str| !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(|b| b.is_ascii_graphic());
    let Some(token) = item[token_field].as_str().map(str::trim).filter(fits) else {
        return Verdict::No(Excluded::NoToken);
    };
    if let (Some(field), Some(active)) = (status_field, active_value)
        && word(&item[field]).as_deref() != Some(active)
    {
        return Verdict::No(Excluded::Status);
    }
    if let Some(field) = expires_field {
        let skew = chrono::Duration::from_std(Duration::from_millis(rules.broker.expiry_skew_ms)).unwrap_or_default();
        if time(&item[field]).is_none_or(|expires| expires <= rules.now + skew) {
            return Verdict::No(Excluded::Expired);
        }
    }
    if item["provider"].as_str().is_some_and(|provider| provider != rules.provider) {
        return Verdict::No(Excluded::OtherProvider);
    }
    let vendor_account = word(&item["account_id"]).filter(|id| !id.is_empty());
    if rules.needs_account && vendor_account.is_none() {
        return Verdict::No(Excluded::NoAccountId);
    }
    let account = match word(&item["id"]).filter(|id| (1..=MAX_ID).contains(&id.chars().count())) {
        Some(id) => format!("id:{id}"),
        None => digest_of(token),
    };
    if rules.cooling.contains(&account) {
        return Verdict::No(Excluded::Cooling);
    }
    let usable = Usable { account, token: SecretString::from(token), vendor_account };
    let until = time(&item["available_at"]);
    match (&item["available"], until) {
        (Value::Bool(false), Some(until)) if until <= rules.now => Verdict::Usable(usable),
        (Value::Bool(false), until) if item["hold"] == "refresh" => Verdict::Refreshing(usable, until),
        (Value::Bool(false), _) => Verdict::No(Excluded::Unavailable),
        _ => Verdict::Usable(usable),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text, or what stands for one.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// An ISO time, or seconds or milliseconds since 1970; the larger ones are milliseconds.
fn time(value: &Value) -> Option<DateTime<Utc>> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match DateTime::parse_from_rfc3339(text.trim()) {
            Ok(at) => return Some(at.to_utc()),
            Err(_) => text.trim().parse().ok(),
        },
        _ => None,
    };
    let number = number.filter(|number| number.is_finite() && (0.0..1e15).contains(number))?;
    #[allow(clippy::cast_possible_truncation, reason = "below 1e15, as just checked")]
    let millis = if number < 1e11 { number * 1e3 } else { number } as i64;
    DateTime::from_timestamp_millis(millis)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broker(more: Value) -> Broker {
        let mut document = json!({
            "endpoint": "https://broker.example/tokens", "targetEnvVar": "CLAUDE_CODE_OAUTH_TOKEN",
            "responseMapping": { "tokensPath": "$.tokens", "tokenField": "token" },
        });
        document["responseMapping"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }

    fn now() -> DateTime<Utc> {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn pool(broker: &Broker, cooling: &[&str], items: Value) -> Pool {
        let cooling = cooling.iter().map(|one| (*one).to_owned()).collect();
        let rules = Rules { broker, provider: "anthropic", needs_account: false, cooling: &cooling, now: now() };
        Pool::of(&items.as_array().unwrap().iter().collect::<Vec<_>>(), &rules)
    }

    fn accounts(pool: &Pool) -> Vec<&str> {
        pool.usable.iter().map(|one| one.account.as_str()).collect()
    }

    #[test]
    fn an_account_is_used_only_when_nothing_speaks_against_it() {
        let mapped = broker(json!({ "statusField": "state", "activeValue": "ok", "expiresField": "expires" }));
        let later = "2026-11-30T12:05:01Z";
        let good = json!({ "id": "a", "token": "t", "state": "ok", "expires": later, "usage": { "limited": true } });
        let with = |change: Value| {
            let mut one = good.clone();
            one.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            one
        };
        let items = json!([
            good,
            good,
            with(json!({ "id": 7 })),
            with(json!({ "id": "s", "expires": 1_800_000_000 })),
            with(json!({ "id": "ms", "expires": 1_800_000_000_000_u64 })),
            with(json!({ "id": "back", "available": false, "available_at": "2026-11-30T11:59:00Z", "hold": "quota" })),
            with(json!({ "token": "" })),
            with(json!({ "token": 5 })),
            with(json!({ "token": "a\nb" })),
            3,
            with(json!({ "state": "paused" })),
            with(json!({ "state": null })),
            with(json!({ "expires": "2026-11-30T12:05:00Z" })),
            with(json!({ "expires": null })),
            with(json!({ "expires": "soon" })),
            with(json!({ "provider": "openai" })),
            with(json!({ "available": false })),
            with(json!({ "id": "q", "available": false, "hold": "refresh" })),
            with(json!({ "id": "c" })),
        ]);
        let pool = pool(&mapped, &["id:c"], items);
        assert_eq!(accounts(&pool), ["id:a", "id:7", "id:s", "id:ms", "id:back"]);
        let why: Vec<_> = pool.excluded.iter().map(|(why, count)| (why.text(), *count)).collect();
        assert_eq!(
            why,
            [
                ("noToken", 4),
                ("status", 2),
                ("expired", 3),
                ("otherProvider", 1),
                ("unavailable", 2),
                ("cooling", 1),
                ("twice", 1)
            ]
        );
        assert_eq!(pool.items, 19);
    }

    #[test]
    fn a_refresh_that_is_furthest_away_is_better_than_nothing() {
        let plain = broker(json!({}));
        let held = |id: &str, hold: Value, at: Value| json!({ "id": id, "token": id, "available": false, "hold": hold, "available_at": at });
        let all = json!([
            held("soon", json!("refresh"), json!("2026-11-30T12:01:00Z")),
            held("late", json!("refresh"), json!("2026-11-30T12:09:00Z")),
            held("open", json!("refresh"), json!(null)),
            held("quota", json!("quota"), json!("2026-11-30T13:00:00Z")),
        ]);
        assert_eq!(accounts(&pool(&plain, &[], all.clone())), ["id:late"]);
        assert_eq!(accounts(&pool(&plain, &["id:late"], all)), ["id:soon"]);
        let silent = json!([held("a", json!(null), json!("2026-11-30T12:09:00Z"))]);
        assert!(pool(&plain, &[], silent).usable.is_empty());
    }

    #[test]
    fn without_an_id_the_token_says_who_it_is() {
        let plain = broker(json!({}));
        let found = pool(&plain, &[], json!([{ "token": "one" }, { "token": "two" }, { "token": "one" }]));
        assert_eq!((found.usable.len(), found.excluded[&Excluded::Twice]), (2, 1));
        assert!(!found.usable[0].account.contains("one"));
        let (cooling, rules_of) = (HashSet::new(), |cooling| Rules {
            broker: &plain,
            provider: "openai",
            needs_account: true,
            cooling,
            now: now(),
        });
        let items = json!([{ "token": "a" }, { "token": "b", "account_id": "acc" }]);
        let found = Pool::of(&items.as_array().unwrap().iter().collect::<Vec<_>>(), &rules_of(&cooling));
        assert_eq!(found.usable[0].vendor_account.as_deref(), Some("acc"));
        assert_eq!(found.excluded[&Excluded::NoAccountId], 1);
    }
}
