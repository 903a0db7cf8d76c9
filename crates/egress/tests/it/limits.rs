//! How much there may be at once, how slow it may be, and how it ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Answer, connect, dial, dial_from, echo, host, read_all, read_head, say, tunnel};
use crate::world::{OTHER_SESSION, SESSION, SITE, World};

/// Whether the proxy ends the connection without a word.
fn is_reset(stream: &mut TcpStream) -> bool {
    let asked = stream.write_all(b"CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n");
    asked.is_err() || !matches!(stream.read(&mut [0]), Ok(1))
}

#[test]
fn a_session_at_its_limit_keeps_others_free() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let _proxy = world.start(|config| config.per_client = Some(2));
    let mut first = tunnel(&world, "93.184.216.34:443");
    let second = tunnel(&world, "93.184.216.34:443");
    assert!(is_reset(&mut dial_from(&world, SESSION)));
    let mut other = dial_from(&world, OTHER_SESSION);
    other.write_all(b"CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n").unwrap();
    assert!(read_head(&mut other).starts_with("HTTP/1.1 200 "));
    // What was open goes on, and a place that is given back can be had.
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    drop(second);
    let since = Instant::now();
    while is_reset(&mut dial_from(&world, SESSION)) {
        assert!(since.elapsed() < Duration::from_secs(20), "the place stays taken");
    }
}

#[test]
fn the_limit_of_everybody_leaves_a_place_to_a_newcomer() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let _proxy = world.start(|config| (config.max_clients, config.per_client) = (3, None));
    let _held: Vec<TcpStream> = (0..3).map(|_| tunnel(&world, "93.184.216.34:443")).collect();
    assert!(is_reset(&mut dial_from(&world, SESSION)));
    let mut newcomer = dial_from(&world, OTHER_SESSION);
    assert!(!is_reset(&mut newcomer));
    assert!(is_reset(&mut dial_from(&world, OTHER_SESSION)));
}

#[test]
fn whoever_takes_too_long_is_let_go() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let _proxy = world.start(|config| config.idle = Duration::from_secs(1));
    let mut idle = tunnel(&world, "93.184.216.34:443");
    assert_eq!(read_all(&mut idle), b"");
    // Half a head, a line at a time: the time for all of it is over before it is complete.
    let mut slow = dial(&world);
    let mut other = slow.try_clone().unwrap();
    let since = Instant::now();
    let dripping = std::thread::spawn(move || {
        while other.write_all(b"GET http://93.184.216.34/ HTTP/1.1\r\nX: y\r\n").is_ok()
            && since.elapsed() < Duration::from_secs(25)
        {
            std::thread::park_timeout(Duration::from_millis(250));
        }
    });
    let answer = Answer::of(&read_all(&mut slow));
    // The lines that were dripped are no head either way; what counts is that it ended, and soon.
    assert!([408, 431].contains(&answer.status), "{answer:?}");
    assert!(since.elapsed() < Duration::from_secs(20));
    drop(slow);
    dripping.join().unwrap();
}

#[test]
fn a_stop_lets_open_tunnels_finish() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let proxy = world.start(|_| {});
    let mut open = tunnel(&world, "93.184.216.34:443");
    proxy.stop.cancel();
    // No new connection is taken, which is when the drain has begun.
    let since = Instant::now();
    let refused = || world.session.run(|| TcpStream::connect((crate::world::PROXY, 3128)).is_err());
    while !refused() {
        assert!(since.elapsed() < Duration::from_secs(5), "still listening");
    }
    open.write_all(b"still here").unwrap();
    let mut back = [0; 10];
    open.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"still here");
    drop(open);
    proxy.thread.join().unwrap().unwrap();
    assert!(since.elapsed() < Duration::from_secs(8), "it ended with the last tunnel");
}

#[test]
fn health_and_counters_are_told_on_the_own_machine_only() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let _proxy = world.start(|_| {});
    let _open = tunnel(&world, "93.184.216.34:443");
    assert_eq!(connect(&world, "10.0.0.1:443").status, 403);
    let ask = |path: &'static str| {
        world.proxy.run(move || {
            let mut stream = TcpStream::connect("127.0.0.1:3128").unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
            Answer::of(&read_all(&mut stream))
        })
    };
    let health = ask("/health");
    assert_eq!(health.status, 200);
    let body: serde_json::Value = serde_json::from_str(&health.body).unwrap();
    assert_eq!(
        (&body["status"], &body["mode"], &body["maxConnections"]),
        (&"ok".into(), &"open".into(), &2_000.into())
    );
    assert!(body["connections"].as_u64().unwrap() >= 1);
    let metrics = ask("/metrics");
    assert!(metrics.body.contains("tale_egress_refused_total{reason=\"address\"} 1\n"), "{}", metrics.body);
    assert_eq!(say(&world, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 400);
}
