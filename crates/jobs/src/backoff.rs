//! The pause before another attempt, as a value.

use std::time::Duration;

/// Exponential pauses with jitter and a cap.
///
/// After failed attempt `n` the pause lies between half and all of `first × 2ⁿ⁻¹`, capped at
/// `cap`. The random half spreads jobs that failed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest pause after the first failed attempt.
    pub first: Duration,
    /// The longest pause of all.
    pub cap: Duration,
}

impl Backoff {
    /// Two seconds at first, ten minutes at most.
    pub const DEFAULT: Self = Self { first: Duration::from_secs(2), cap: Duration::from_secs(600) };

    /// The pause after failed attempt `attempt` (counted from 1); `chance` lies in `0.0..1.0`.
    #[must_use]
    pub fn pause(&self, attempt: u32, chance: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let longest = self.first.saturating_mul(1 << doublings).min(self.cap);
        longest / 2 + (longest / 2).mul_f64(chance.clamp(0.0, 1.0))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_pause_stays_under_the_cap_and_never_shrinks_below_half_its_step(
            first_ms in 1u64..100_000, cap_ms in 1u64..10_000_000, attempt in 1u32..=u32::MAX, chance in 0.0f64..1.0,
        ) {
            let backoff = Backoff { first: Duration::from_millis(first_ms), cap: Duration::from_millis(cap_ms) };
            let pause = backoff.pause(attempt, chance);
            prop_assert!(pause <= backoff.cap);
            prop_assert!(pause >= backoff.first.min(backoff.cap) / 2);
            // The shortest pause of a step is no shorter than the shortest of the step before.
            prop_assert!(backoff.pause(attempt.saturating_add(1), 0.0) >= backoff.pause(attempt, 0.0));
        }

        #[test]
        fn jitter_only_ever_spreads_between_half_and_all(attempt in 1u32..20, chance in 0.0f64..1.0) {
            let (low, high) = (Backoff::DEFAULT.pause(attempt, 0.0), Backoff::DEFAULT.pause(attempt, 1.0));
            let pause = Backoff::DEFAULT.pause(attempt, chance);
            prop_assert!(low <= pause && pause <= high);
            prop_assert!(high <= low * 2 + Duration::from_nanos(1));
        }
    }
}
