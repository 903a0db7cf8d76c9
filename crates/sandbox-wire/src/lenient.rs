//! Fields whose wrong value means "not given" by contract, instead of a refusal.

use serde::{Deserialize, Deserializer};

/// A positive whole number of milliseconds; anything else counts as absent.
///
/// # Errors
/// Only when the input is not JSON.
pub fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_u64().or_else(|| whole(value.as_f64()?)).filter(|number| *number > 0))
}

/// JavaScript writes whole numbers as floats when they are large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded in the line before")]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (1.0..=9_007_199_254_740_991.0).contains(&number)).then_some(number as u64)
}
