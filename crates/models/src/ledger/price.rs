//! What a call costs, in whole micro-US-dollars, and what it can cost at most.

use tale_governance::budgets::Amounts;

use super::{Consumption, Estimate};
use crate::definition::Pricing;

/// Output cap of a model whose largest answer is unknown (MOD-117).
pub const DEFAULT_OUTPUT_TOKENS: u32 = 4_096;

/// Prices per token in millionths of a micro-US-dollar, so that sums are exact. What has no price
/// costs nothing (MOD-99).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    input: u64,
    cached: u64,
    output: u64,
    /// Of a minute of a recording.
    minute: u64,
}

/// Millionths in one.
const MILLION: u128 = 1_000_000;

impl Price {
    /// The price list of a model, as it is now.
    #[must_use]
    pub fn of(pricing: Option<&Pricing>) -> Self {
        // A dollar per million tokens is a micro-dollar per token.
        let millionths = |price: Option<f64>| {
            let price = price.filter(|price| price.is_finite()).unwrap_or(0.0).clamp(0.0, 1e6);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped just above")]
            let exact = (price * 1e6).round() as u64;
            exact
        };
        let Some(pricing) = pricing else { return Self::default() };
        Self {
            input: millionths(pricing.input),
            cached: millionths(pricing.cached_input.or(pricing.input)),
            output: millionths(pricing.output),
            // A dollar is a million micro-dollars.
            minute: millionths(pricing.per_minute).saturating_mul(1_000_000),
        }
    }

    /// The cost of a call, rounded up. `input` includes the `cached` tokens.
    #[must_use]
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> u64 {
        let cached = cached.min(input);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let exact = of(input - cached, self.input) + of(cached, self.cached) + of(output, self.output);
        u64::try_from(exact.div_ceil(MILLION)).unwrap_or(u64::MAX)
    }

    /// A call of so many tokens with what it costs.
    #[must_use]
    pub fn consumption(&self, input: u64, cached: u64, output: u64) -> Consumption {
        Consumption {
            input_tokens: input,
            output_tokens: output,
            cached_tokens: cached.min(input),
            units: 0,
            cost_micro_usd: self.cost(input, cached, output),
        }
    }

    /// A recording of so many seconds with what it costs, rounded up.
    #[must_use]
    pub fn recording(&self, seconds: u64) -> Consumption {
        let exact = u128::from(seconds) * u128::from(self.minute);
        let cost = u64::try_from(exact.div_ceil(60 * MILLION)).unwrap_or(u64::MAX);
        Consumption { units: seconds, cost_micro_usd: cost, ..Consumption::default() }
    }

    /// The estimate of a recording of so many seconds, which is admitted whole or not at all (MOD-87).
    #[must_use]
    pub fn whole_recording(&self, seconds: u64) -> Estimate {
        let floor = self.recording(seconds);
        let needed = Amounts { tokens: 0, cost_micro_usd: floor.cost_micro_usd, requests: 1 };
        Estimate { needed, wanted: needed, floor, price: *self }
    }

    /// The most that a call can use: `prompt` tokens are sent and `answers` answers of at most
    /// `output` tokens come back. A prompt that is read from a cache may cost more where caches are
    /// dearer than input, so the dearer of the two prices counts.
    #[must_use]
    pub fn worst(&self, prompt: u64, output: u64, answers: u64) -> Amounts {
        let output = output.saturating_mul(answers.max(1));
        Amounts {
            tokens: prompt.saturating_add(output),
            cost_micro_usd: self.cost(prompt, 0, output).max(self.cost(prompt, prompt, output)),
            requests: 1,
        }
    }

    /// The estimate of a call that is admitted whole or not at all (MOD-88, MOD-117).
    #[must_use]
    pub fn whole(&self, prompt: u64, output: u64, answers: u64) -> Estimate {
        let worst = self.worst(prompt, output, answers);
        Estimate { needed: worst, wanted: worst, floor: self.consumption(prompt, 0, 0), price: *self }
    }

    /// The estimate of a call that does with less output than `most`, but not with less than `least`.
    #[must_use]
    pub fn between(&self, prompt: u64, least: u64, most: u64) -> Estimate {
        Estimate {
            needed: self.worst(prompt, least.min(most), 1),
            wanted: self.worst(prompt, most, 1),
            floor: self.consumption(prompt, 0, 0),
            price: *self,
        }
    }

    /// The largest output per answer that `room` pays for after `prompt` tokens; `None` when not a
    /// single token fits. `u64::MAX` stands for no limit of that kind.
    #[must_use]
    pub fn affordable_output(&self, prompt: u64, answers: u64, tokens: u64, cost_micro_usd: u64) -> Option<u64> {
        let answers = answers.max(1);
        let by_tokens = tokens.checked_sub(prompt)? / answers;
        let by_cost = if self.output == 0 {
            (self.worst(prompt, 0, 1).cost_micro_usd <= cost_micro_usd).then_some(u64::MAX)?
        } else {
            let prompt_cost = u128::from(prompt) * u128::from(self.input.max(self.cached));
            let left = (u128::from(cost_micro_usd) * MILLION).checked_sub(prompt_cost)?;
            u64::try_from(left / u128::from(self.output)).unwrap_or(u64::MAX) / answers
        };
        Some(by_tokens.min(by_cost)).filter(|output| *output > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(input: f64, output: f64) -> Price {
        let cached_input = Some(input / 10.0);
        Price::of(Some(&Pricing { input: Some(input), output: Some(output), cached_input, per_minute: None }))
    }

    #[test]
    fn costs_are_exact_and_round_up() {
        let price = price(3.0, 15.0);
        assert_eq!(price.cost(1_000, 0, 100), 4_500);
        assert_eq!(price.cost(1_000, 1_000, 0), 300);
        assert_eq!(Price::of(Some(&Pricing { input: Some(0.02), ..Pricing::default() })).cost(1, 0, 0), 1);
        assert_eq!(Price::of(None).cost(1_000_000, 0, 1_000_000), 0);
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(Price::of(Some(&Pricing { input: Some(odd), ..Pricing::default() })).cost(10, 0, 0), 0);
        }
    }

    #[test]
    fn a_recording_costs_its_minutes_and_counts_its_seconds() {
        let price = Price::of(Some(&Pricing { per_minute: Some(0.006), ..Pricing::default() }));
        let cost = |seconds| (price.recording(seconds).units, price.recording(seconds).cost_micro_usd);
        assert_eq!([cost(60), cost(90), cost(1), cost(0)], [(60, 6_000), (90, 9_000), (1, 100), (0, 0)]);
        assert_eq!(Price::default().recording(3_600).cost_micro_usd, 0);
        assert_eq!(price.whole_recording(60).needed, Amounts { tokens: 0, cost_micro_usd: 6_000, requests: 1 });
    }

    proptest! {
        #[test]
        fn the_affordable_output_is_the_largest_that_fits(
            (input, output) in (0_u32..50_000, 0_u32..100_000), prompt in 0_u64..200_000, answers in 1_u64..9,
            tokens in 0_u64..1_000_000, cost in 0_u64..10_000_000,
        ) {
            let price = price(f64::from(input) / 1_000.0, f64::from(output) / 1_000.0);
            let fits = |output: u64| {
                let worst = price.worst(prompt, output, answers);
                worst.tokens <= tokens && worst.cost_micro_usd <= cost
            };
            match price.affordable_output(prompt, answers, tokens, cost) {
                Some(output) => {
                    prop_assert!(fits(output));
                    prop_assert!(!fits(output + 1));
                }
                None => prop_assert!(!fits(1)),
            }
        }
    }
}
