//! What a process may pay from a lease without asking anybody: arithmetic, nothing else.

use std::time::Duration;

/// Tokens, cost and requests, in the order of [`tale_governance::budgets::Kind::ALL`].
pub(super) type Amount = [u64; 3];

/// Calls that a lease is made for at first, and at most.
const FIRST_CALLS: u64 = 64;
const MOST_CALLS: u64 = 65_536;
/// Calls that a lease must be good for, or each is held by itself.
const FEWEST_CALLS: u64 = 8;
/// A lease that lasts shorter than this is made larger the next time, one that lasts longer than that smaller.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(20);

/// What is left of a lease; `None` of a kind that nothing limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lease {
    left: [Option<u64>; 3],
    /// The last amount that was added: when less than half of it is left, it is time for more.
    added: Amount,
}

impl Lease {
    pub(super) fn new(granted: Amount, limited: [bool; 3]) -> Self {
        let left = std::array::from_fn(|kind| limited[kind].then_some(granted[kind]));
        Self { left, added: granted }
    }

    /// Takes what a call may use, whole or not at all.
    pub(super) fn take(&mut self, need: Amount) -> bool {
        let fits = |(left, need): (&Option<u64>, u64)| left.is_none_or(|left| left >= need);
        if !self.left.iter().zip(need).all(fits) {
            return false;
        }
        for (left, need) in self.left.iter_mut().zip(need) {
            *left = left.map(|left| left - need);
        }
        true
    }

    /// Gives back what a call did not use.
    pub(super) fn give_back(&mut self, unused: Amount) {
        for (left, unused) in self.left.iter_mut().zip(unused) {
            *left = left.map(|left| left.saturating_add(unused));
        }
    }

    /// Adds what was granted on top.
    pub(super) fn add(&mut self, granted: Amount) {
        self.give_back(granted);
        self.added = granted;
    }

    /// Whether more should be asked for.
    pub(super) fn is_low(&self) -> bool {
        self.left.iter().zip(self.added).any(|(left, added)| left.is_some_and(|left| left < added / 2))
    }
}

/// What a call that ended leaves of what it took. One that used more took no more from its lease: the rest
/// is booked on the allowance.
pub(super) fn unused(need: Amount, used: Option<Amount>) -> Amount {
    let used = used.unwrap_or_default();
    std::array::from_fn(|kind| need[kind].saturating_sub(used[kind]))
}

/// How much is asked for: more the faster it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appetite(u64);

impl Default for Appetite {
    fn default() -> Self {
        Self(FIRST_CALLS / 2)
    }
}

impl Appetite {
    /// What is wanted for calls like one that may use `need`, and what there must be; `since` it was asked last.
    pub(super) fn next(&mut self, need: Amount, since: Duration) -> (Amount, Amount) {
        if since < SHORT {
            self.0 = (self.0 * 2).min(MOST_CALLS);
        } else if since > LONG {
            self.0 = (self.0 / 2).max(FIRST_CALLS);
        }
        let times = |calls: u64| need.map(|amount| amount.saturating_mul(calls).min(1 << 52));
        (times(self.0.max(FIRST_CALLS)), times(FEWEST_CALLS))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An allowance as the database has it, which limits tokens and cost.
    #[derive(Debug, Default)]
    struct Book {
        cap: [i64; 3],
        spent: [i64; 3],
        held: [i64; 3],
        /// What each process's lease has, while there is one.
        leases: [Option<[i64; 3]>; 2],
        holds: Vec<(usize, u32, [i64; 3])>,
    }

    #[derive(Debug)]
    struct Call {
        process: usize,
        lease: u32,
        need: Amount,
        written: bool,
    }

    fn signed(amount: Amount) -> [i64; 3] {
        amount.map(|amount| i64::try_from(amount).unwrap())
    }

    fn add(to: &mut [i64; 3], amount: [i64; 3], sign: i64) {
        to.iter_mut().zip(amount).for_each(|(to, amount)| *to += sign * amount);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Ask {
            process: usize,
            need: Amount,
        },
        Pay {
            process: usize,
            need: Amount,
        },
        Write,
        End {
            pick: usize,
            used: Option<Amount>,
        },
        GiveBack {
            process: usize,
        },
        /// What the process knew is gone; its holds are settled by a floor and its lease ends, in either order.
        Die {
            process: usize,
            holds_first: bool,
        },
    }

    fn amount() -> impl Strategy<Value = Amount> {
        (1..200_u64, 1..200_u64, Just(1_u64)).prop_map(|(tokens, cost, requests)| [tokens, cost, requests])
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let process = || 0..2_usize;
        let step = prop_oneof![
            3 => (process(), amount()).prop_map(|(process, need)| Step::Ask { process, need }),
            8 => (process(), amount()).prop_map(|(process, need)| Step::Pay { process, need }),
            3 => Just(Step::Write),
            6 => (any::<usize>(), proptest::option::of(amount())).prop_map(|(pick, used)| Step::End { pick, used }),
            1 => process().prop_map(|process| Step::GiveBack { process }),
            1 => (process(), any::<bool>()).prop_map(|(process, holds_first)| Step::Die { process, holds_first }),
        ];
        proptest::collection::vec(step, 1..120)
    }

    impl Book {
        fn end_lease(&mut self, process: usize) {
            if let Some(left) = self.leases[process].take() {
                add(&mut self.held, left, -1);
            }
        }

        /// A hold ends, and what it does not use goes back to its lease while that is there.
        fn settle(&mut self, process: usize, generation: (u32, u32), need: Amount, used: Amount) {
            let back = signed(unused(need, Some(used)));
            add(&mut self.held, signed(need), -1);
            add(&mut self.spent, signed(used), 1);
            if generation.0 == generation.1
                && let Some(lease) = &mut self.leases[process]
            {
                add(lease, back, 1);
                add(&mut self.held, back, 1);
            }
        }
    }

    proptest! {
        #[test]
        fn leases_and_holds_are_all_that_is_held_and_nothing_is_paid_twice(steps in steps()) {
            let limited = [true, true, false];
            let mut book = Book { cap: [20_000, 20_000, i64::MAX / 2], ..Book::default() };
            let (mut known, mut appetites) = ([None::<Lease>, None], [Appetite::default(); 2]);
            let mut generations = [0_u32; 2];
            let mut calls: Vec<Call> = Vec::new();
            for step in steps {
                match step {
                    Step::Ask { process, need } => {
                        let (wanted, least) = appetites[process].next(need, Duration::ZERO);
                        let free: [i64; 3] = std::array::from_fn(|kind| book.cap[kind] - book.spent[kind] - book.held[kind]);
                        let give: [i64; 3] = std::array::from_fn(|kind| {
                            if limited[kind] { signed(wanted)[kind].min(free[kind] / 4) } else { 0 }
                        });
                        if (0..3).any(|kind| limited[kind] && give[kind] < signed(least)[kind]) {
                            continue;
                        }
                        let granted = give.map(|give| u64::try_from(give).unwrap());
                        add(&mut book.held, give, 1);
                        add(book.leases[process].get_or_insert_default(), give, 1);
                        match &mut known[process] {
                            Some(lease) => lease.add(granted),
                            none => {
                                generations[process] += 1;
                                *none = Some(Lease::new(granted, limited));
                            }
                        }
                    }
                    Step::Pay { process, need } => {
                        if known[process].as_mut().is_some_and(|lease| lease.take(need)) {
                            calls.push(Call { process, lease: generations[process], need, written: false });
                        }
                    }
                    Step::Write => {
                        for call in calls.iter_mut().filter(|call| !call.written) {
                            call.written = true;
                            let lease = book.leases[call.process].as_mut().filter(|_| call.lease == generations[call.process]);
                            let need = if lease.is_some() { signed(call.need) } else { [0; 3] };
                            if let Some(lease) = lease {
                                add(lease, need, -1);
                            }
                            book.holds.push((call.process, call.lease, need));
                        }
                    }
                    Step::End { pick, used } => {
                        if calls.is_empty() {
                            continue;
                        }
                        let call = calls.swap_remove(pick % calls.len());
                        // None uses more than it may here; one that does is booked beyond.
                        let used = used.map(|used| std::array::from_fn(|kind| used[kind].min(call.need[kind])));
                        let now = generations[call.process];
                        if call.lease == now && let Some(lease) = &mut known[call.process] {
                            lease.give_back(unused(call.need, used));
                        }
                        let used = used.unwrap_or_default();
                        if call.written {
                            let place = book.holds.iter().position(|hold| (hold.0, hold.1) == (call.process, call.lease) && (hold.2 == signed(call.need) || hold.2 == [0; 3]));
                            let hold = book.holds.swap_remove(place.unwrap());
                            let held = hold.2.map(|amount| u64::try_from(amount).unwrap());
                            book.settle(call.process, (call.lease, now), held, used);
                        } else {
                            add(&mut book.spent, signed(used), 1);
                            if call.lease == now && let Some(lease) = &mut book.leases[call.process] {
                                add(lease, signed(used), -1);
                                add(&mut book.held, signed(used), -1);
                            }
                        }
                    }
                    Step::GiveBack { process } => {
                        // What began is written first.
                        known[process] = None;
                        for call in calls.iter_mut().filter(|call| !call.written && call.process == process) {
                            call.written = true;
                            let lease = book.leases[process].as_mut().filter(|_| call.lease == generations[process]);
                            let need = if lease.is_some() { signed(call.need) } else { [0; 3] };
                            if let Some(lease) = lease {
                                add(lease, need, -1);
                            }
                            book.holds.push((process, call.lease, need));
                        }
                        book.end_lease(process);
                    }
                    Step::Die { process, holds_first } => {
                        known[process] = None;
                        calls.retain(|call| call.process != process);
                        if !holds_first {
                            book.end_lease(process);
                        }
                        let (its, others) = book.holds.drain(..).partition(|hold: &(usize, u32, [i64; 3])| hold.0 == process);
                        book.holds = others;
                        for (_, lease, held) in its {
                            let held = held.map(|amount| u64::try_from(amount).unwrap());
                            book.settle(process, (lease, generations[process]), held, held.map(|amount| amount / 4));
                        }
                        book.end_lease(process);
                    }
                }
                // What is held is what leases and holds have.
                let mut sum = [0; 3];
                book.leases.iter().flatten().for_each(|left| add(&mut sum, *left, 1));
                book.holds.iter().for_each(|hold| add(&mut sum, hold.2, 1));
                prop_assert_eq!(sum, book.held);
                // Everything that processes may still pay, and all that runs, fits what is free.
                for kind in [0, 1] {
                    let left: u64 = known.iter().flatten().filter_map(|lease| lease.left[kind]).sum();
                    let runs: u64 = calls.iter().map(|call| call.need[kind]).sum();
                    let most = book.spent[kind] + i64::try_from(left + runs).unwrap();
                    prop_assert!(most <= book.cap[kind] && book.spent[kind] + book.held[kind] <= book.cap[kind], "{book:?} {known:?} {calls:?}");
                }
            }
            book.end_lease(0);
            book.end_lease(1);
            let running = book.holds.iter().map(|hold| hold.2).fold([0; 3], |mut sum, hold| { add(&mut sum, hold, 1); sum });
            prop_assert_eq!(book.held, running);
        }
    }

    #[test]
    fn a_lease_grows_with_the_rate_of_calls_and_shrinks_with_it() {
        let mut appetite = Appetite::default();
        let asked = |appetite: &mut Appetite, since| appetite.next([10, 100, 1], Duration::from_secs(since)).0[2];
        assert_eq!(asked(&mut appetite, 600), FIRST_CALLS);
        let fast: Vec<u64> = (0..12).map(|_| asked(&mut appetite, 0)).collect();
        assert!(fast.is_sorted() && fast[11] == MOST_CALLS, "{fast:?}");
        let slow: Vec<u64> = (0..12).map(|_| asked(&mut appetite, 60)).collect();
        assert!(slow.is_sorted_by(|a, b| a >= b) && slow[11] == FIRST_CALLS, "{slow:?}");
    }
}
