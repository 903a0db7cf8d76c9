//! One line for each tunnel and request: who, which host and port, how it ended, how much and how long.
//! No path, no query and no header is ever written, because they carry secrets.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::http::refusal::Refusal;
use crate::http::target::Destination;
use crate::metrics;

/// How long the same refusal stays one line.
const REPEAT: Duration = Duration::from_secs(60);

/// Refusals that are told apart. What is beyond is counted together.
const MAX_KINDS: usize = 4_096;

/// What a client did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub client: IpAddr,
    /// `CONNECT`, or `HTTP` for everything else.
    pub method: &'static str,
    pub to: Option<&'a Destination>,
    pub since: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    client: IpAddr,
    host: Option<String>,
    reason: &'static str,
}

#[derive(Debug)]
struct Repeated {
    since: Instant,
    more: u64,
}

/// Writes lines, and remembers refusals so that the same one is not written again and again.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    refusals: Mutex<Refusals>,
}

#[derive(Debug, Default)]
struct Refusals {
    kinds: HashMap<Kind, Repeated>,
    /// Refusals for which there was no room.
    others: u64,
}

impl Refusals {
    /// Whether the refusal gets a line of its own.
    fn note(&mut self, kind: Kind, now: Instant) -> bool {
        if let Some(repeated) = self.kinds.get_mut(&kind) {
            repeated.more += 1;
            return false;
        }
        if self.kinds.len() >= MAX_KINDS {
            self.others += 1;
            return false;
        }
        self.kinds.insert(kind, Repeated { since: now, more: 0 });
        true
    }

    /// What has been quiet, or one line, for long enough.
    fn take_due(&mut self, now: Instant) -> Vec<(Kind, u64)> {
        let due = |repeated: &Repeated| now.duration_since(repeated.since) >= REPEAT;
        self.kinds.extract_if(|_, repeated| due(repeated)).map(|(kind, repeated)| (kind, repeated.more)).collect()
    }
}

impl Journal {
    /// Something that went through.
    pub(crate) fn passed(&self, visit: &Visit<'_>, outcome: &str, up: u64, down: u64) {
        metrics::SERVED.increment();
        tracing::debug!(
            event = "egress.passed",
            client = %visit.client,
            method = visit.method,
            host = visit.to.map(|to| to.host.to_string()),
            port = visit.to.map(|to| to.port),
            outcome,
            up,
            down,
            ms = milliseconds(visit.since),
            "passed"
        );
    }

    /// Something that did not.
    pub(crate) fn refused(&self, visit: &Visit<'_>, refusal: Refusal) {
        let counter = match refusal {
            Refusal::HostNotAllowed => &metrics::REFUSED_BY_HOST,
            Refusal::PortNotAllowed => &metrics::REFUSED_BY_PORT,
            Refusal::PrivateAddress => &metrics::REFUSED_BY_ADDRESS,
            Refusal::BadRequest(_) | Refusal::HeadTooLarge | Refusal::HeadTooSlow => &metrics::REFUSED_MALFORMED,
            Refusal::DnsFailed | Refusal::ConnectFailed | Refusal::ConnectTimeout | Refusal::BadAnswer(_) => {
                &metrics::FAILED
            }
        };
        counter.increment();
        self.line(visit, refusal.word());
    }

    /// A connection beyond a limit.
    pub(crate) fn full(&self, client: IpAddr, reason: &'static str) {
        self.line(&Visit { client, method: "none", to: None, since: Instant::now() }, reason);
    }

    fn line(&self, visit: &Visit<'_>, outcome: &'static str) {
        let host = visit.to.map(|to| to.host.to_string());
        let kind = Kind { client: visit.client, host, reason: outcome };
        let host = kind.host.clone();
        if self.refusals.lock().unwrap_or_else(PoisonError::into_inner).note(kind, Instant::now()) {
            tracing::info!(
                event = "egress.refused",
                client = %visit.client,
                method = visit.method,
                host,
                port = visit.to.map(|to| to.port),
                outcome,
                ms = milliseconds(visit.since),
                "refused or failed"
            );
        }
    }

    /// Writes how often refusals were repeated, when their minute is over.
    pub(crate) fn settle(&self) {
        let (due, others) = {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            let due = refusals.take_due(Instant::now());
            (due, std::mem::take(&mut refusals.others))
        };
        for (Kind { client, host, reason }, more) in due {
            if more > 0 {
                tracing::info!(
                    event = "egress.refused_again",
                    %client, host, outcome = reason, count = more,
                    "refused or failed again within a minute"
                );
            }
        }
        if others > 0 {
            tracing::info!(
                event = "egress.refused_again",
                count = others,
                "refused or failed, in more different ways than are told apart"
            );
        }
    }
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(n: u32) -> Kind {
        let client = IpAddr::V4(std::net::Ipv4Addr::from_bits(n));
        Kind { client, host: Some("a.example".to_owned()), reason: "host_not_allowed" }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_refusal_is_one_line_a_minute() {
        let mut refusals = Refusals::default();
        let lines = (0..50).filter(|_| refusals.note(kind(1), Instant::now())).count();
        assert_eq!(lines, 1);
        assert!(refusals.note(kind(2), Instant::now()));
        assert!(refusals.take_due(Instant::now()).is_empty());
        tokio::time::advance(REPEAT).await;
        let mut due: Vec<u64> = refusals.take_due(Instant::now()).into_iter().map(|(_, more)| more).collect();
        due.sort_unstable();
        assert_eq!(due, [0, 49]);
        assert!(refusals.note(kind(1), Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_different_refusals_stays_bounded() {
        let mut refusals = Refusals::default();
        let lines = (0..10_000).filter(|n| refusals.note(kind(*n), Instant::now())).count();
        assert_eq!((lines, refusals.kinds.len()), (MAX_KINDS, MAX_KINDS));
        assert_eq!(refusals.others as usize, 10_000 - MAX_KINDS);
    }
}
