//! The charge of one call, which ends exactly once whatever happens to the call.

use tale_models::ledger::{Consumption, Hold, Ledger, Outcome, Price};
use tokio_util::task::TaskTracker;

use crate::answer::Tokens;

/// What a call holds and what it will be booked for. Dropped before anything was sent, the hold is
/// given back; dropped later, the prompt and the output so far are booked (MOD-124).
pub(crate) struct Meter {
    ledger: Ledger,
    tasks: TaskTracker,
    price: Price,
    /// The prompt as estimated, for when nobody says better.
    prompt: u64,
    hold: Option<Hold>,
    /// What is booked when nothing better comes; `None` until the provider is asked.
    floor: Option<Consumption>,
}

impl Meter {
    pub(crate) fn new(ledger: Ledger, tasks: TaskTracker, price: Price, prompt: u64, hold: Hold) -> Self {
        Self { ledger, tasks, price, prompt, hold: Some(hold), floor: None }
    }

    /// The provider is asked from here on.
    pub(crate) fn sent(&mut self) {
        self.relayed(None, 0);
    }

    /// So much output came by now; `told` is what the provider said about tokens so far.
    pub(crate) fn relayed(&mut self, told: Option<Tokens>, output: u64) {
        let used = self.used(told, output);
        self.floor = Some(used);
        if let Some(hold) = &self.hold {
            hold.progress(used);
        }
    }

    fn used(&self, told: Option<Tokens>, output: u64) -> Consumption {
        let told = told.filter(|tokens| tokens.input > 0);
        let input = told.map_or(self.prompt, |tokens| tokens.input);
        self.price.consumption(input, told.map_or(0, |tokens| tokens.cached), output)
    }

    /// The provider refused: nothing is booked.
    pub(crate) fn refused(mut self) {
        self.settle(Outcome::Released);
    }

    /// The answer is complete. `output` stands in where the provider told no tokens.
    pub(crate) fn complete(&mut self, told: Option<Tokens>, output: u64) {
        let used = self.used(told, told.map_or(output, |tokens| tokens.output));
        if let Some(hold) = &self.hold {
            hold.progress(used);
        }
        self.settle(if told.is_some() { Outcome::Known(used) } else { Outcome::Floor(used) });
    }

    /// In the background: the answer does not wait for it.
    fn settle(&mut self, outcome: Outcome) {
        if let Some(hold) = self.hold.take() {
            let ledger = self.ledger.clone();
            self.tasks.spawn(async move { ledger.settle(hold, outcome).await });
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.settle(self.floor.map_or(Outcome::Released, Outcome::Floor));
    }
}
