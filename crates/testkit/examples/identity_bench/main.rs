//! Measures who-are-you: requests with keys and cookies, sign-ins one after the other and all at once: see
//! `bench/identity.md`.
//!
//! `cargo run --release -p tale-testkit --example identity_bench -- [--tale PROGRAM] [--postgres DIRECTORY]
//! [--people N] [--parts 'sign-in storm keys cookie']`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs, reason = "a measuring program")]

mod bare;
#[path = "../kit/connection.rs"]
mod connection;
#[path = "../kit/installation.rs"]
mod installation;
#[path = "../kit/process.rs"]
mod process;
mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use connection::Connection;
use site::{Request, Site};

/// Connections of the closed loops.
const CONNECTIONS: usize = 16;
/// Calls with the key of each person in one of two rounds. A key may make 200 at once and two a second.
const CALLS: usize = 80;
/// One call in so many goes before those that are measured.
const WARM_UP: usize = 20;
/// Calls of which processor time is read.
const CHECKS: usize = 20_000;
/// Sign-ins one after the other.
const SIGN_INS: usize = 100;
/// Requests a second beside the storm.
const BESIDE: u32 = 100;
/// Longest time that a storm is given to pass.
const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "bare") {
        return bare::serve().await;
    }
    let option = |name: &str| arguments.iter().position(|one| one == name).and_then(|at| arguments.get(at + 1));
    let binary = option("--tale").map_or("target/release/tale", String::as_str);
    let postgres = option("--postgres").map_or(".cache/postgres/18.6.3", String::as_str);
    // Of the organization, besides its owner.
    let people = option("--people").map_or(500, |text| text.parse().expect("a number of people"));
    let parts = option("--parts").map_or("sign-in storm keys cookie", String::as_str);
    let part = |name: &str| parts.split(' ').any(|one| one == name);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    println!("load {} at the start", process::load());

    let mut site = Site::start(binary, postgres, &data, 0).await;
    site.set_up(&data, people).await;
    if part("sign-in") {
        sign_ins(&site, people).await;
    }
    if part("storm") || part("keys") {
        let cookies = storm(&site, people).await;
        if part("keys") {
            keys(&site, &cookies).await;
        }
    }
    if part("cookie") {
        cookie(&site, "without a copy of the session").await;
        let (org, owner) = (site.org.clone(), site.owner.clone());
        drop(site);
        let mut site = Site::start(binary, postgres, &data, 300).await;
        (site.org, site.owner) = (org, owner);
        let copy = site.copied().await;
        site.owner = format!("{}; {copy}", site.owner);
        cookie(&site, "with one (SESSION_COOKIE_CACHE_SECONDS)").await;
    }
    println!("load {} at the end", process::load());
}

/// So many calls over kept connections, each asking again as soon as it is answered.
async fn closed_loop(port: u16, requests: &[Request], status: u16, calls: usize) -> Duration {
    let next = Arc::new(AtomicUsize::new(0));
    let requests: Arc<[Request]> = requests.into();
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(Connection::open(port).await);
    }
    let begun = Instant::now();
    let callers = open.into_iter().map(|mut connection| {
        let (next, requests) = (next.clone(), requests.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    break;
                }
                let answered = connection.send(&requests[number % requests.len()]).await;
                let body = connection.body().await;
                assert!(answered == status, "{answered}: {}", String::from_utf8_lossy(&body));
            }
        })
    });
    for ended in futures::future::join_all(callers).await {
        ended.unwrap();
    }
    begun.elapsed()
}

/// What a call cost: in the program, and more in its database.
struct Cost {
    rate: f64,
    own: f64,
    database: f64,
}

async fn cost(site: &Site, requests: &[Request], status: u16, calls: usize) -> Cost {
    let database = site.database();
    let spent = || [process::cpu_ms(&[site.pid()]), process::cpu_ms(&database)];
    closed_loop(site.port, requests, status, calls / WARM_UP).await;
    let before = spent();
    let took = closed_loop(site.port, requests, status, calls).await;
    let after = spent();
    let each = |at: usize| (after[at] - before[at]) / calls as f64;
    Cost { rate: calls as f64 / took.as_secs_f64(), own: each(0), database: each(1) }
}

/// `GET /api/v1/me` beside a bare handler that answers the same.
async fn keys(site: &Site, cookies: &[String]) {
    let requests = site.with_keys(cookies).await;
    let bare = bare::Bare::start().await;
    let calls = CALLS * requests.len();
    for _ in 0..2 {
        closed_loop(bare.port, &requests, 200, calls / WARM_UP).await;
        let before = process::cpu_ms(&[bare.pid()]);
        let took = closed_loop(bare.port, &requests, 200, calls).await;
        let own = (process::cpu_ms(&[bare.pid()]) - before) / calls as f64;
        println!("a bare handler: {:.0} requests/s, {own:.4} CPU-ms each", calls as f64 / took.as_secs_f64());
        let Cost { rate, own, database } = cost(site, &requests, 200, calls).await;
        println!("GET /api/v1/me: {rate:.0} requests/s, {own:.4} CPU-ms each, {database:.4} more in the database");
    }
}

/// What it costs to know who sends a cookie: a request that is refused for its body, beside the same without a
/// cookie, which is refused before.
async fn cookie(site: &Site, how: &str) {
    let nobody = cost(site, &[site.refused(None)], 401, CHECKS).await;
    let signed = cost(site, &[site.refused(Some(&site.owner))], 400, CHECKS).await;
    println!(
        "a cookie's check, {how}: {:.4} CPU-ms ({:.4} of {:.4}), {:.4} more in the database",
        signed.own - nobody.own,
        signed.own,
        nobody.own,
        signed.database
    );
}

/// Sign-ins one after the other, and the hash of a password beside them.
async fn sign_ins(site: &Site, people: usize) {
    let database = site.database();
    let spent = || [process::cpu_ms(&[site.pid()]), process::cpu_ms(&database)];
    let mut connection = Connection::open(site.port).await;
    let mut hashes = 0.0;
    let mut whole = [0.0; 2];
    // In turns, so that a change of the machine meets both.
    for round in 0..SIGN_INS / 10 {
        hashes += site::hashes(10);
        let before = spent();
        for person in 0..10 {
            let status = connection.send(&site.sign_in((round * 10 + person) % people)).await;
            let body = connection.body().await;
            assert!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
        }
        let after = spent();
        (0..2).for_each(|at| whole[at] += after[at] - before[at]);
    }
    let each = |ms: f64| ms / SIGN_INS as f64;
    let hash = each(hashes);
    println!(
        "a sign-in: {:.2} CPU-ms, {:.2} more in the database; the hash alone {hash:.2}: {:.2} besides it",
        each(whole[0]),
        each(whole[1]),
        each(whole[0] + whole[1]) - hash
    );
}

/// Everybody signs in at once, and again when told to come back later, while others go on working. Returns the cookies.
async fn storm(site: &Site, people: usize) -> Vec<String> {
    let (resident, _) = process::memory(site.pid());
    let work = site.work().await;
    let over = Arc::new(AtomicBool::new(false));
    let beside = tokio::spawn({
        let (port, over) = (site.port, over.clone());
        async move {
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / BESIDE);
            let mut running = Vec::new();
            while !over.load(Ordering::Relaxed) {
                ticks.tick().await;
                let request = work[running.len() % work.len()].clone();
                running.push(tokio::spawn(async move {
                    let begun = Instant::now();
                    let mut connection = Connection::open(port).await;
                    let status = connection.send(&request).await;
                    let body = connection.body().await;
                    assert!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
                    begun.elapsed().as_nanos() as u64
                }));
            }
            let all = futures::future::join_all(running).await;
            all.into_iter().map(Result::unwrap).collect::<Vec<u64>>()
        }
    });
    // What it is like before.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begun = Instant::now();
    let busy = Arc::new(AtomicUsize::new(0));
    let everybody = (0..people).map(|person| {
        let (port, request, busy) = (site.port, site.sign_in(person), busy.clone());
        tokio::spawn(async move {
            let mut connection = Connection::open(port).await;
            loop {
                let status = connection.send(&request).await;
                let later = connection.header("retry-after").and_then(|text| text.parse().ok());
                let cookie = site::cookie(&connection);
                let body = connection.body().await;
                match (status, later) {
                    (200, _) => return (begun.elapsed(), cookie),
                    (503, Some(seconds)) if begun.elapsed() < PATIENCE => {
                        busy.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                    }
                    _ => panic!("{status}: {}", String::from_utf8_lossy(&body)),
                }
            }
        })
    });
    let signed_in = futures::future::join_all(everybody.collect::<Vec<_>>()).await;
    let (took, cookies): (Vec<Duration>, Vec<String>) = signed_in.into_iter().map(Result::unwrap).unzip();
    over.store(true, Ordering::Relaxed);
    let mut beside = beside.await.unwrap();
    println!(
        "{people} sign-ins at once: all in within {:.1} s, {} times told to come back later; {:.0} MiB resident before, {:.0} after",
        took.iter().max().unwrap().as_secs_f64(),
        busy.load(Ordering::Relaxed),
        resident,
        process::memory(site.pid()).0
    );
    report("  other requests meanwhile", &mut beside);
    cookies
}

fn report(name: &str, nanos: &mut [u64]) {
    nanos.sort_unstable();
    let at = |share: f64| nanos.get(((nanos.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default();
    let ms = |share| at(share) as f64 / 1e6;
    println!(
        "{name}: p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms, most {:.1} ms ({} of them)",
        ms(0.5),
        ms(0.95),
        ms(0.99),
        ms(1.0),
        nanos.len()
    );
}
