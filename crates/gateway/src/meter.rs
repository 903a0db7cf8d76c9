//! The charge of one call, which ends exactly once whatever happens to the call.

use tale_models::ledger::{Consumption, End, Hold, Ledger, Outcome, Price};
use tokio_util::task::TaskTracker;

use crate::answer::Tokens;
use crate::log::Record;

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
    /// Its row of the request log, where there is one.
    record: Option<Record>,
    /// Tokens of output that have come by.
    delivered: u64,
    /// What its answer should wait for.
    round: Option<u64>,
}

impl Meter {
    pub(crate) fn new(ledger: Ledger, tasks: TaskTracker, price: Price, prompt: u64, hold: Hold) -> Self {
        Self { ledger, tasks, price, prompt, hold: Some(hold), floor: None, record: None, delivered: 0, round: None }
    }

    /// The provider is asked from here on.
    pub(crate) fn sent(&mut self, record: Option<Record>) {
        self.record = record;
        self.know(None, 0);
    }

    /// So much output came by now; `told` is what the provider said about tokens so far.
    pub(crate) fn relayed(&mut self, told: Option<Tokens>, output: u64, delivered: u64) {
        if let Some(record) = &mut self.record {
            record.heard();
        }
        self.delivered = delivered;
        self.know(told, output);
    }

    /// What the client is told.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(record) = &mut self.record {
            record.answered(status);
        }
    }

    fn know(&mut self, told: Option<Tokens>, output: u64) {
        let used = self.used(told, output);
        self.floor = Some(used);
        if let Some(hold) = &self.hold {
            hold.progress(used, self.delivered);
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

    /// The answer is complete. `output` stands in where the provider told no tokens, or none of the answer
    /// although there was one.
    pub(crate) fn complete(&mut self, told: Option<Tokens>, output: u64) {
        let counted = told.map(|tokens| tokens.output).filter(|told| *told > 0 || output == 0);
        let used = self.used(told, counted.unwrap_or(output));
        if let Some(hold) = &self.hold {
            hold.progress(used, self.delivered);
        }
        self.answered(200);
        self.settle(if counted.is_some() { Outcome::Known(used) } else { Outcome::Floor(used) });
    }

    /// Waits before the end of the answer when so much has ended within a moment, and is not booked, that it would be
    /// noticed if it were lost.
    pub(crate) async fn booked(&mut self) {
        if let Some(round) = self.round.take() {
            self.ledger.unbooked(round).await;
        }
    }

    /// In the background: the answer does not wait for it.
    fn settle(&mut self, outcome: Outcome) {
        if let Some(hold) = self.hold.take() {
            if let (Some(mut record), Outcome::Known(used) | Outcome::Floor(used)) = (self.record.take(), outcome) {
                record.used(&used);
            }
            let End { round, hold } = self.ledger.end(hold, outcome);
            self.round = round;
            if let Some(hold) = hold {
                let ledger = self.ledger.clone();
                self.tasks.spawn(async move { ledger.end_hold(hold).await });
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.settle(self.floor.map_or(Outcome::Released, Outcome::Floor));
    }
}
