//! Measures what a call of a model costs through Tale beside going to the provider, and beside the LiteLLM
//! proxy when it is given: see `bench/gateway.md`.
//!
//! `cargo run --release -p tale-testkit --example gateway_bench -- [--tale PROGRAM] [--postgres DIRECTORY]
//! [--litellm PROGRAM] [--people N] [--parts 'cpu paced saturated streams providers']`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs, reason = "a measuring program")]

mod client;
#[path = "../kit/connection.rs"]
mod connection;
#[path = "../kit/installation.rs"]
mod installation;
mod places;
#[path = "../kit/process.rs"]
mod process;
mod upstream;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::Caller;
use places::{Place, more_providers};
use tokio::sync::Mutex;

/// How long nobody calls before a process is idle.
const QUIET: Duration = Duration::from_secs(25);
/// Connections of the closed loops.
const CONNECTIONS: usize = 8;
/// Calls a second of the paced part.
const RATE: u64 = 200;
/// Calls of the paced part.
const PACED: u64 = 2_000;
/// Calls after which processor time is read.
const COUNTED: usize = 2_000;
/// Calls before those that are measured.
const WARM_UP: usize = 200;
/// Streams that are held at the same time.
const STREAMS: usize = 1_000;
/// Their tokens: a minute of them.
const TOKENS: u64 = 1_200;
/// Providers that are configured and not used.
const PROVIDERS: i32 = 10_000;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "upstream") {
        return upstream::serve().await;
    }
    tale_core::net::install_tls_provider();
    let option = |name: &str| arguments.iter().position(|one| one == name).and_then(|at| arguments.get(at + 1));
    let binary = option("--tale").map_or("target/release/tale", String::as_str);
    let postgres = option("--postgres").map_or(".cache/postgres/18.6.3", String::as_str);
    let people = option("--people").map_or(125, |text| text.parse().expect("a number of people"));
    let folder = tempfile::tempdir().unwrap();
    println!("load {} at the start", process::load());

    let direct = Place::direct().await;
    let data = folder.path().join("data");
    let (tale, site) = Place::public(binary, postgres, &data, direct.way.port, people).await;
    let role = Place::role(binary, &data, &tale, &site.org).await;
    tokio::time::sleep(QUIET).await;
    let (idle, own) = process::memory(role.pid());
    println!("{}: {idle:.1} MiB resident when idle, {own:.1} of it its own", role.name);
    let mut places = vec![&role, &tale];
    let litellm;
    if let Some(program) = option("--litellm") {
        litellm = Place::litellm(program, folder.path(), direct.way.port).await;
        places.push(&litellm);
    }

    let parts = option("--parts").map_or("cpu paced saturated streams providers", String::as_str);
    let part = |name: &str| parts.split(' ').any(|one| one == name);
    if part("cpu") {
        for place in &places {
            processor_time(place, "small", 0).await;
            processor_time(place, "64 KiB", 64 << 10).await;
        }
    }
    // The same thing before and after, so that a change of the machine shows.
    if part("paced") {
        for place in [&direct, &role, &tale, &direct] {
            paced(place).await;
        }
        for place in [&direct, &role, &tale] {
            first_token(place).await;
        }
    }
    if part("saturated") {
        for place in [&direct].into_iter().chain(places.iter().copied()).chain([&direct]) {
            saturated(place).await;
        }
    }
    if part("streams") {
        streams(&role).await;
        streams(&tale).await;
    }
    if part("providers") {
        providers(&data, &role, &tale).await;
    }
    println!("load {} at the end", process::load());
}

/// Takes keys in turn.
struct Keys<'a>(&'a [String], AtomicUsize);

impl<'a> Keys<'a> {
    fn of(place: &'a Place) -> Self {
        Self(&place.keys, AtomicUsize::new(0))
    }

    fn next(&self) -> &'a str {
        &self.0[self.1.fetch_add(1, Ordering::Relaxed) % self.0.len()]
    }
}

/// So many calls, each connection asking again as soon as it is answered.
async fn closed_loop(place: &Place, keys: &Keys<'_>, body: &str, calls: usize) -> Duration {
    let left = AtomicUsize::new(calls);
    let callers = futures::future::join_all((0..CONNECTIONS).map(|_| Caller::new(&place.way))).await;
    let begun = Instant::now();
    futures::future::join_all(callers.into_iter().map(|mut caller| {
        let left = &left;
        async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                caller.ask(keys.next(), body).await;
            }
        }
    }))
    .await;
    begun.elapsed()
}

/// Fewer calls of a place that needs seconds for a hundred.
fn calls_of(place: &Place, calls: usize) -> usize {
    if place.name.starts_with("LiteLLM") { calls / 5 } else { calls }
}

async fn processor_time(place: &Place, name: &str, padding: usize) {
    let (body, keys, calls) = (place.way.whole(padding), Keys::of(place), calls_of(place, COUNTED));
    closed_loop(place, &keys, &body, WARM_UP).await;
    let database = place.database();
    let before = (process::cpu_ms(&[place.pid()]), process::cpu_ms(&database));
    closed_loop(place, &keys, &body, calls).await;
    let own = (process::cpu_ms(&[place.pid()]) - before.0) / calls as f64;
    let database = (process::cpu_ms(&database) - before.1) / calls as f64;
    println!("{}, {name} body: {own:.3} CPU-ms a call, {database:.3} more in its database", place.name);
}

async fn paced(place: &Place) {
    let (body, keys) = (place.way.whole(0), Arc::new(Keys::of(place)));
    closed_loop(place, &keys, &body, WARM_UP / 2).await;
    let idle = Mutex::new(Vec::new());
    for _ in 0..CONNECTIONS {
        idle.lock().await.push(Caller::new(&place.way).await);
    }
    let begun = tokio::time::Instant::now() + Duration::from_millis(50);
    let mut took = futures::future::join_all((0..PACED).map(|number| {
        let (body, keys, idle) = (&body, &keys, &idle);
        async move {
            tokio::time::sleep_until(begun + Duration::from_secs(1) * u32::try_from(number).unwrap() / RATE as u32)
                .await;
            let free = idle.lock().await.pop();
            let mut caller = match free {
                Some(caller) => caller,
                None => Caller::new(&place.way).await,
            };
            let begun = Instant::now();
            caller.ask(keys.next(), body).await;
            let took = begun.elapsed().as_nanos() as u64;
            idle.lock().await.push(caller);
            took
        }
    }))
    .await;
    report(&format!("{}, {RATE} calls/s", place.name), &mut took);
}

async fn saturated(place: &Place) {
    let (body, keys) = (place.way.whole(0), Keys::of(place));
    let calls = if place.name == "direct" { 40_000 } else { calls_of(place, 8_000) };
    closed_loop(place, &keys, &body, WARM_UP / 2).await;
    let took = closed_loop(place, &keys, &body, calls).await;
    println!("{}, {CONNECTIONS} connections: {:.0} calls/s", place.name, calls as f64 / took.as_secs_f64());
}

async fn first_token(place: &Place) {
    let keys = Keys::of(place);
    let mut caller = Caller::new(&place.way).await;
    let mut delays = Vec::new();
    for _ in 0..300 {
        caller.follow(keys.next(), 1, |delay| delays.push(delay)).await;
    }
    report(&format!("{}, first token after it was written", place.name), &mut delays);
}

async fn streams(place: &Place) {
    let (idle, own) = process::memory(place.pid());
    println!("{}: {idle:.1} MiB resident before the streams, {own:.1} of it its own", place.name);
    let (open, delays) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    // Eight for each key, opened over ten seconds.
    let tasks: Vec<_> = (0..STREAMS)
        .map(|number| {
            let (way, key) = (place.way.clone(), place.keys[number / 8 % place.keys.len()].clone());
            let (open, delays) = (open.clone(), delays.clone());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(10) * u32::try_from(number).unwrap()).await;
                let mut first = true;
                let mut caller = Caller::new(&way).await;
                caller
                    .follow(&key, TOKENS, |delay| {
                        if std::mem::take(&mut first) {
                            open.fetch_add(1, Ordering::SeqCst);
                        }
                        if open.load(Ordering::SeqCst) == STREAMS {
                            delays.lock().unwrap().push(delay);
                        }
                    })
                    .await;
            })
        })
        .collect();
    while open.load(Ordering::SeqCst) < STREAMS {
        assert!(!tasks.iter().any(tokio::task::JoinHandle::is_finished), "a stream was refused");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let database = place.database();
    let (before, theirs, begun) = (process::cpu_ms(&[place.pid()]), process::cpu_ms(&database), Instant::now());
    tokio::time::sleep(Duration::from_secs(15)).await;
    let seconds = begun.elapsed().as_secs_f64();
    let (used, theirs) = (process::cpu_ms(&[place.pid()]) - before, process::cpu_ms(&database) - theirs);
    let (full, full_own) = process::memory(place.pid());
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let mut delays = std::mem::take(&mut *delays.lock().unwrap());
    println!(
        "{STREAMS} streams of 20 tokens/s: {full:.0} MiB resident, {full_own:.0} of it its own, {:.1} KiB more a stream; {:.0} % of a core, {:.0} % more in its database",
        (full - idle) * 1024.0 / STREAMS as f64,
        used / seconds / 10.0,
        theirs / seconds / 10.0
    );
    report("  delay of a token", &mut delays);
}

/// What providers cost that are configured and not used, in a gateway and in `tale dev`: after a call of the
/// one that is.
async fn providers(data: &Path, role: &Place, tale: &Place) {
    let mut resident = Vec::new();
    for round in 0..2 {
        for place in [role, tale] {
            Caller::new(&place.way).await.ask(&place.keys[0], &place.way.whole(0)).await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        resident.push([role, tale].map(|place| process::memory(place.pid()).0));
        if round == 0 {
            more_providers(data, PROVIDERS).await;
            // What was read before is forgotten.
            tokio::time::sleep(Duration::from_secs(11)).await;
        }
    }
    let [role, tale] = [0, 1].map(|at| resident[1][at] - resident[0][at]);
    println!("{PROVIDERS} more providers: {role:+.1} MiB in the gateway role, {tale:+.1} MiB in `tale dev`");
}

fn report(name: &str, nanos: &mut [u64]) {
    nanos.sort_unstable();
    let at = |share: f64| nanos.get(((nanos.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default();
    let ms = |share| at(share) as f64 / 1e6;
    println!("{name}: p50 {:.3} ms, p99 {:.3} ms, most {:.2} ms ({} of them)", ms(0.5), ms(0.99), ms(1.0), nanos.len());
}
