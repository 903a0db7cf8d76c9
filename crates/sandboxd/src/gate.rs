//! What holds the session: one state machine, without a clock of its own.
//!
//! `held` —release→ `released` —acquire→ `held` (another generation). A claim on a session that is
//! released, or idle since before a given time, makes it `reclaiming`, which is final: only the stop
//! follows. Work under way, a command that runs and a pin each refuse the claim.

use serde::{Deserialize, Serialize};
use tale_sandbox_wire::names::{ClaimId, Generation};

/// The parts that outlive a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The present hold.
    pub generation: Generation,
    /// Whether it ended.
    pub released: bool,
    /// Whether the session is protected from clean-up.
    pub pinned: bool,
    /// Who may stop the session.
    pub claim: Option<ClaimId>,
    /// When this life of the session began.
    pub booted_at_ms: u64,
    /// When work last touched it.
    pub last_activity_at_ms: u64,
}

/// The session takes no work any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaiming;

/// The machine. What runs is counted here and does not outlive the daemon.
#[derive(Debug)]
pub struct Gate {
    held: Held,
    operations: usize,
}

impl Gate {
    /// Continues where a daemon before stood, or begins held.
    #[must_use]
    pub fn new(held: Held) -> Self {
        Self { held, operations: 0 }
    }

    /// The parts that outlive a daemon.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Requests under way.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// A request begins. Reading does not count as activity, but is not disturbed either.
    ///
    /// # Errors
    /// [`Reclaiming`], for work.
    pub fn begin(&mut self, work: bool, now_ms: u64) -> Result<(), Reclaiming> {
        if work {
            self.open()?;
            self.touch(now_ms);
        }
        self.operations += 1;
        Ok(())
    }

    /// A request ended.
    pub fn end(&mut self, work: bool, now_ms: u64) {
        self.operations = self.operations.saturating_sub(1);
        if work {
            self.touch(now_ms);
        }
    }

    /// Work touched the session.
    pub fn touch(&mut self, now_ms: u64) {
        self.held.last_activity_at_ms = self.held.last_activity_at_ms.max(now_ms);
    }

    /// New work holds the session under `generation`.
    ///
    /// # Errors
    /// [`Reclaiming`].
    pub fn acquire(&mut self, generation: Generation, now_ms: u64) -> Result<(), Reclaiming> {
        self.open()?;
        self.held.generation = generation;
        self.held.released = false;
        self.touch(now_ms);
        Ok(())
    }

    /// The hold `generation` ended. Another one is not touched.
    pub fn release(&mut self, generation: &Generation) -> bool {
        let present = self.held.generation == *generation && self.held.claim.is_none();
        self.held.released |= present;
        present
    }

    /// Protects the session, or stops doing so.
    ///
    /// # Errors
    /// [`Reclaiming`].
    pub fn pin(&mut self, pinned: bool) -> Result<(), Reclaiming> {
        self.open()?;
        self.held.pinned = pinned;
        Ok(())
    }

    /// Asks for the right to stop the session. `live` is the number of commands that run.
    pub fn claim(&mut self, claim: ClaimId, generation: &Generation, idle_before_ms: Option<u64>, live: usize) -> bool {
        if let Some(held) = &self.held.claim {
            return *held == claim;
        }
        let idle = idle_before_ms.is_none_or(|cutoff| self.held.last_activity_at_ms <= cutoff);
        let free = self.held.released || idle_before_ms.is_some();
        let quiet = self.operations == 0 && live == 0 && !self.held.pinned;
        if self.held.generation != *generation || !idle || !free || !quiet {
            return false;
        }
        self.held.claim = Some(claim);
        true
    }

    fn open(&self) -> Result<(), Reclaiming> {
        if self.held.claim.is_some() { Err(Reclaiming) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn generation(number: u64) -> Generation {
        Generation::new(format!("g{number}")).unwrap()
    }

    fn claim(name: &str) -> ClaimId {
        ClaimId::new(name).unwrap()
    }

    fn gate() -> Gate {
        Gate::new(Held {
            generation: generation(0),
            released: false,
            pinned: false,
            claim: None,
            booted_at_ms: 100,
            last_activity_at_ms: 100,
        })
    }

    #[test]
    fn only_the_present_hold_can_be_released() {
        let mut gate = gate();
        gate.acquire(generation(1), 200).unwrap();
        assert!(!gate.release(&generation(0)) && !gate.held().released);
        assert!(gate.release(&generation(1)) && gate.held().released);
        gate.acquire(generation(2), 300).unwrap();
        assert!(!gate.held().released);
        assert!(!gate.release(&generation(1)));
    }

    #[test]
    fn a_claim_needs_quiet_and_is_final() {
        let mut gate = gate();
        let all = [(None, "released only"), (Some(99), "touched since"), (Some(100), "idle long enough")];
        assert_eq!(
            all.map(|(cutoff, _)| gate.claim(claim("c"), &generation(0), cutoff, 1)),
            [false; 3],
            "a command runs"
        );
        gate.begin(false, 500).unwrap();
        assert!(!gate.claim(claim("c"), &generation(0), Some(100), 0), "a reader reads");
        gate.end(false, 500);
        gate.pin(true).unwrap();
        assert!(!gate.claim(claim("c"), &generation(0), Some(100), 0), "pinned");
        gate.pin(false).unwrap();
        assert!(!gate.claim(claim("c"), &generation(1), Some(100), 0), "another hold");
        assert!(!gate.claim(claim("c"), &generation(0), Some(99), 0), "touched since");
        assert!(!gate.claim(claim("c"), &generation(0), None, 0), "held");
        assert!(gate.claim(claim("c"), &generation(0), Some(100), 0));
        assert!(gate.claim(claim("c"), &generation(9), None, 5), "the same claim may ask again");
        assert!(!gate.claim(claim("d"), &generation(0), Some(100), 0));
        assert_eq!(gate.acquire(generation(1), 600), Err(Reclaiming));
        assert_eq!(gate.begin(true, 600), Err(Reclaiming));
        assert_eq!(gate.pin(true), Err(Reclaiming));
        assert!(!gate.release(&generation(0)));
        assert_eq!(gate.begin(false, 600), Ok(()), "what is there can still be read");
        assert_eq!(gate.held().last_activity_at_ms, 100, "and reading is no activity");
    }

    proptest! {
        /// Whatever happens before it, a claim is given only when nothing is lost by a stop.
        #[test]
        fn no_claim_on_a_session_in_use(steps in prop::collection::vec((0u8..7, 0u64..4, 0usize..2), 0..40)) {
            let mut gate = gate();
            let mut now = 1000;
            for (step, number, live) in steps {
                now += 10;
                let before = gate.held().clone();
                let operations = gate.operations();
                match step {
                    0 => drop(gate.begin(true, now)),
                    1 if operations > 0 => gate.end(true, now),
                    2 => drop(gate.acquire(generation(number), now)),
                    3 => drop(gate.release(&generation(number))),
                    4 => drop(gate.pin(number % 2 == 0)),
                    5 | 6 => {
                        let cutoff = (step == 6).then(|| now - 10 * (number + 1));
                        if gate.claim(claim("c"), &generation(number), cutoff, live) && before.claim.is_none() {
                            prop_assert!(operations == 0 && live == 0 && !before.pinned);
                            prop_assert_eq!(&before.generation, &generation(number));
                            prop_assert!(before.released || cutoff.is_some_and(|cutoff| before.last_activity_at_ms <= cutoff));
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
