//! When a command is taken to hang: no output for the whole window, and under one per cent of a processor
//! used by everything below its supervisor over that same window.

use std::collections::VecDeque;
use std::time::Duration;

/// The processor time is looked at this often at most.
const LONGEST_STEP: Duration = Duration::from_secs(60);
/// Ticks of processor time in a second, as `/proc` counts.
const TICKS: u64 = 100;

/// Collects looks at the processor time of a silent command. Times are since any fixed moment.
#[derive(Debug)]
pub struct StallWatch {
    window: Duration,
    silent_since: Duration,
    looks: VecDeque<(Duration, u64)>,
}

impl StallWatch {
    /// Watches from `now` on.
    #[must_use]
    pub fn new(window: Duration, now: Duration) -> Self {
        Self { window, silent_since: now, looks: VecDeque::new() }
    }

    /// The command wrote.
    pub fn output(&mut self, now: Duration) {
        self.silent_since = now;
        self.looks.clear();
    }

    /// How long until the next look.
    #[must_use]
    pub fn step(&self) -> Duration {
        (self.window / 8).min(LONGEST_STEP).max(Duration::from_millis(10))
    }

    /// Takes a look at the processor time, `None` when it could not be read, and says whether the command
    /// hangs.
    pub fn look(&mut self, now: Duration, ticks: Option<u64>) -> bool {
        // What cannot be read judges nothing, and nothing before it either.
        let Some(ticks) = ticks else {
            self.looks.clear();
            return false;
        };
        self.looks.push_back((now, ticks));
        let Some(start) = now.checked_sub(self.window) else { return false };
        while self.looks.get(1).is_some_and(|(at, _)| *at <= start) {
            self.looks.pop_front();
        }
        let Some((at, before)) = self.looks.front().copied().filter(|(at, _)| *at <= start) else { return false };
        let used = ticks.saturating_sub(before);
        let percent = (now - at).as_millis() / 100;
        self.silent_since <= start && u128::from(used) * 1000 / u128::from(TICKS) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Looks every minute for `minutes`, with this many ticks used in each.
    fn stalls(minutes: u32, ticks: u64, output_at: Option<u32>) -> Option<u32> {
        let mut watch = StallWatch::new(45 * MINUTE, Duration::ZERO);
        for minute in 0..=minutes {
            if output_at == Some(minute) {
                watch.output(MINUTE * minute);
            }
            if watch.look(MINUTE * minute, Some(ticks * u64::from(minute))) {
                return Some(minute);
            }
        }
        None
    }

    #[test]
    fn silence_and_idleness_together_for_the_whole_window() {
        assert_eq!(stalls(60, 0, None), Some(45));
        assert_eq!(stalls(60, 59, None), Some(45), "just under one per cent of 6000 ticks a minute");
        assert_eq!(stalls(60, 60, None), None, "one per cent is work");
        assert_eq!(stalls(60, 0, Some(10)), Some(55), "output starts the window again");
        let mut watch = StallWatch::new(45 * MINUTE, Duration::ZERO);
        assert!(!watch.look(Duration::ZERO, Some(0)));
        assert!(!watch.look(45 * MINUTE, None), "what cannot be read judges nothing");
        assert!(!watch.look(46 * MINUTE, Some(0)), "nor does what came before it");
    }

    #[test]
    fn work_at_the_start_of_a_silence_does_not_excuse_the_rest() {
        let mut watch = StallWatch::new(45 * MINUTE, Duration::ZERO);
        let ticks = |minute: u32| if minute < 10 { u64::from(minute) * 6000 } else { 60_000 };
        let first = (0..=120).find(|minute| watch.look(MINUTE * *minute, Some(ticks(*minute))));
        // From minute 10 on the command is idle; 26 of its ticks may lie in a window of 45 minutes.
        assert_eq!(first, Some(55));
    }
}
