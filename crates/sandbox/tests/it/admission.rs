//! The decision and the line, by themselves.

use std::time::Duration;

use proptest::prelude::*;
use tale_sandbox::admission::{HostReading, Line, Memory, Need, Place, Reservation, Shortage, Snapshot, decide};
use tale_sandbox::profile::{GIB, MIB};
use tokio::time::Instant;

use crate::world::session;

const PLANNED: u64 = 512 * MIB;

fn need() -> Need {
    Need { slot: true, memory: PLANNED }
}

fn snapshot(line: &Line) -> Snapshot<'_> {
    Snapshot {
        capacity: 8,
        occupied: 0,
        host: HostReading::default(),
        reserve: GIB,
        reserved: 0,
        pressure_limit: Some(60.0),
        last_start: None,
        line,
    }
}

#[test]
fn memory_keeps_the_reserve_and_unknown_memory_refuses_nobody() {
    let line = Line::default();
    let now = Instant::now();
    let ask = |available: Option<u64>, reserved: u64| {
        let memory = available.map(|available| Memory { available, total: 8 * GIB });
        let host = HostReading { memory, ..HostReading::default() };
        decide(&Snapshot { host, reserved, ..snapshot(&line) }, &session(1), need(), now)
    };
    assert_eq!(ask(None, u64::MAX), Ok(()));
    assert_eq!(ask(Some(1_200 * MIB), 0), Err(Shortage::Memory));
    assert_eq!(ask(Some(1_536 * MIB), 0), Ok(()));
    assert_eq!(ask(Some(1_536 * MIB), 1), Err(Shortage::Memory), "a start that is not up yet counts");
}

#[test]
fn a_young_session_counts_less_and_less() {
    let start = Instant::now();
    let young = Reservation { bytes: 900, since: Some(start) };
    let after = |seconds| young.counted(start + Duration::from_secs(seconds));
    assert_eq!([after(0), after(30), after(45), after(90), after(9_000)], [900, 600, 450, 0, 0]);
    assert_eq!(Reservation { bytes: 900, since: None }.counted(start + Duration::from_secs(9_000)), 900);
}

#[test]
fn pressure_lets_one_start_every_ten_seconds_and_the_front_of_the_line_first() {
    let mut line = Line::default();
    let start = Instant::now();
    let host = HostReading { cpu_pressure: Some(70.0), ..HostReading::default() };
    let ask = |line: &Line, who, last_start, limit, now| {
        decide(&Snapshot { host, last_start, pressure_limit: limit, ..snapshot(line) }, &session(who), need(), now)
    };
    let limit = Some(60.0);
    assert_eq!(ask(&line, 1, None, limit, start), Ok(()));
    let soon = start + Duration::from_secs(9);
    assert_eq!(ask(&line, 2, Some(start), limit, soon), Err(Shortage::Cpu));
    assert_eq!(ask(&line, 2, Some(start), None, soon), Ok(()));
    line.enter(&session(2), need(), soon);
    line.refused(&session(2), soon);
    let later = start + Duration::from_secs(10);
    assert_eq!(ask(&line, 3, Some(start), limit, later), Err(Shortage::Cpu));
    assert_eq!(ask(&line, 2, Some(start), limit, later), Ok(()));
}

#[test]
fn the_disk_is_judged_first_and_a_warm_start_needs_no_slot() {
    let line = Line::default();
    let now = Instant::now();
    let host = HostReading { disk_short: true, ..HostReading::default() };
    let full = Snapshot { occupied: 8, ..snapshot(&line) };
    assert_eq!(decide(&Snapshot { host, ..full }, &session(1), need(), now), Err(Shortage::Disk));
    assert_eq!(decide(&full, &session(1), need(), now), Err(Shortage::Slot));
    assert_eq!(decide(&full, &session(1), Need { slot: false, ..need() }, now), Ok(()));
}

#[test]
fn who_could_never_start_holds_no_memory_back() {
    let mut line = Line::default();
    let now = Instant::now();
    let memory = Some(Memory { available: 3 * GIB, total: 4 * GIB });
    let host = HostReading { memory, ..HostReading::default() };
    line.enter(&session(1), Need { slot: true, memory: 4 * GIB }, now);
    assert_eq!(decide(&Snapshot { host, ..snapshot(&line) }, &session(2), need(), now), Ok(()));
    line.enter(&session(3), Need { slot: true, memory: 2 * GIB }, now);
    assert_eq!(decide(&Snapshot { host, ..snapshot(&line) }, &session(2), need(), now), Err(Shortage::Memory));
}

#[test]
fn silence_costs_the_place_and_asking_again_keeps_it() {
    let mut line = Line::default();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let ask = |line: &mut Line, who, seconds| {
        line.forget_silent(at(seconds));
        line.enter(&session(who), need(), at(seconds));
        line.refused(&session(who), at(seconds))
    };
    assert_eq!(ask(&mut line, 1, 0), Place { position: 1, waiting: 1 });
    assert_eq!(ask(&mut line, 2, 0), Place { position: 2, waiting: 2 });
    assert_eq!(ask(&mut line, 2, 0).retry_after(), Duration::from_secs(10));
    assert_eq!(ask(&mut line, 1, 5), Place { position: 1, waiting: 2 });
    // The first may stay silent for 2 × 5 + 15 s.
    assert_eq!(ask(&mut line, 2, 30), Place { position: 2, waiting: 2 });
    assert_eq!(ask(&mut line, 2, 31), Place { position: 1, waiting: 1 });
    let far = Place { position: 400, waiting: 400 };
    assert_eq!(far.retry_after(), Duration::from_secs(60));
}

proptest! {
    /// Whoever is let in takes nothing that someone before it in the line waits for, and the host keeps its reserve.
    #[test]
    fn nobody_overtakes(
        waiters in prop::collection::vec((any::<bool>(), 1u64..4), 0..12),
        asker in 0usize..16,
        occupied in 0u32..10,
        available in 0u64..12,
        own in 1u64..4,
    ) {
        let now = Instant::now();
        let mut line = Line::default();
        for (number, (slot, gib)) in waiters.iter().enumerate() {
            line.enter(&session(number), Need { slot: *slot, memory: gib * GIB }, now);
        }
        let memory = Some(Memory { available: available * GIB, total: 12 * GIB });
        let host = HostReading { memory, ..HostReading::default() };
        let snapshot = Snapshot { occupied, host, ..snapshot(&line) };
        let need = Need { slot: true, memory: own * GIB };
        if decide(&snapshot, &session(asker), need, now).is_ok() {
            let before = &waiters[..asker.min(waiters.len())];
            let slots = before.iter().filter(|(slot, _)| *slot).count() as u32;
            let gib: u64 = before.iter().map(|(_, gib)| gib).sum();
            prop_assert!(occupied + slots < 8);
            prop_assert!(available > gib + own);
        }
    }
}
