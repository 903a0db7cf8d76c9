//! Addresses that are not on the public internet, in every spelling, as literals and behind names; and the
//! second wall behind the first.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{connect, echo, host, say};
use crate::world::{OTHER_SITE, PROXY, RESOLVER, ROUTER, SITE, World};

/// How each literal is refused, with CONNECT and in a URL.
const LITERALS: &[(&str, &str)] = &[
    ("169.254.169.254", "private_address"),
    ("169.254.170.2", "private_address"),
    ("100.100.100.200", "private_address"),
    ("168.63.129.16", "private_address"),
    ("192.0.0.192", "private_address"),
    ("127.0.0.1", "private_address"),
    ("127.8.9.10", "private_address"),
    ("0.0.0.0", "private_address"),
    ("10.0.0.1", "private_address"),
    ("10.77.0.1", "private_address"),
    // The resolver, whom only questions of DNS may reach.
    ("10.77.0.53", "private_address"),
    ("10.88.0.2", "private_address"),
    ("172.31.255.255", "private_address"),
    ("192.168.1.1", "private_address"),
    ("224.0.0.1", "private_address"),
    ("255.255.255.255", "private_address"),
    ("169.254.169.254.", "private_address"),
    ("[::1]", "private_address"),
    ("[::]", "private_address"),
    ("[::ffff:169.254.169.254]", "private_address"),
    ("[::ffff:a9fe:a9fe]", "private_address"),
    ("[0:0:0:0:0:ffff:10.0.0.1]", "private_address"),
    ("[::ffff:0:127.0.0.1]", "private_address"),
    ("[::127.0.0.1]", "private_address"),
    ("[64:ff9b::169.254.169.254]", "private_address"),
    ("[64:ff9b:1::10.0.0.1]", "private_address"),
    ("[2002:a9fe:a9fe::1]", "private_address"),
    ("[fd00:ec2::254]", "private_address"),
    ("[fd20:ce::254]", "private_address"),
    ("[fe80::a9fe:a9fe]", "private_address"),
    ("[fec0::1]", "private_address"),
    ("[ff02::1]", "private_address"),
    ("localhost", "private_address"),
    ("LOCALHOST.", "private_address"),
    ("a.localhost", "private_address"),
    ("metadata.google.internal", "private_address"),
    ("printer.local", "private_address"),
    ("2852039166", "bad_request"),
    ("0xa9fea9fe", "bad_request"),
    ("0xa9.0xfe.0xa9.0xfe", "bad_request"),
    ("0251.0376.0251.0376", "bad_request"),
    ("169.254.43518", "bad_request"),
    ("127.1", "bad_request"),
    ("0", "bad_request"),
    ("010.0.0.1", "bad_request"),
    ("[fe80::1%25eth0]", "bad_request"),
    ("[::ffff:0x7f.1]", "bad_request"),
    ("169.254.169.254%00.example", "bad_request"),
    ("169。254。169。254", "bad_request"),
    ("user@10.0.0.1", "bad_request"),
];

#[test]
fn no_spelling_of_a_private_address_is_connected_to() {
    let Some(world) = World::new() else { return };
    let _proxy = world.start(|config| config.connect_ports = vec![443, 80]);
    for (literal, reason) in LITERALS {
        let status = if *reason == "bad_request" { 400 } else { 403 };
        let tunnel = connect(&world, &format!("{literal}:443"));
        assert_eq!((tunnel.status, tunnel.reason()), (status, Some(*reason)), "CONNECT {literal}");
        let page = say(&world, format!("GET http://{literal}/latest HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!((page.status, page.reason()), (status, Some(*reason)), "GET {literal}");
        assert!(page.body.ends_with(".\n") && page.head.contains("text/plain; charset=utf-8"), "{page:?}");
    }
    // None of these was a question for anybody.
    assert_eq!(world.resolver.asked_anything(), 0);
}

#[test]
fn a_name_is_what_it_stands_for_at_the_moment_of_the_connection() {
    let Some(world) = World::new() else { return };
    let private = Arc::new(AtomicUsize::new(0));
    for address in [ROUTER, RESOLVER] {
        let reached = Arc::clone(&private);
        host(&world, address, 443, move |_| {
            reached.fetch_add(1, Ordering::SeqCst);
        });
    }
    host(&world, SITE, 443, echo);
    let _proxy = world.start(|_| {});
    let metadata = Ipv4Addr::new(169, 254, 169, 254);
    world.resolver.set("inside.example", &[ROUTER]);
    world.resolver.set("metadata.example", &[metadata]);
    world.resolver.set("own.example", &[PROXY]);
    world.resolver.set("here.example", &[Ipv4Addr::LOCALHOST]);
    for name in ["inside.example", "metadata.example", "own.example", "here.example", "INSIDE.example."] {
        let answer = connect(&world, &format!("{name}:443"));
        assert_eq!((answer.status, answer.reason()), (403, Some("private_address")), "{name}");
    }
    // Of several addresses the public ones are used.
    world.resolver.set("mixed.example", &[ROUTER, SITE, metadata]);
    assert_eq!(connect(&world, "mixed.example:443").status, 200);
    // One that changes its answer each time is judged each time.
    world.resolver.alternate("rebind.example", &[&[SITE], &[ROUTER], &[ROUTER, metadata]]);
    for _ in 0..3 {
        assert_eq!(connect(&world, "rebind.example:443").status, 200);
        for _ in 0..2 {
            assert_eq!(connect(&world, "rebind.example:443").reason(), Some("private_address"));
        }
    }
    assert_eq!(private.load(Ordering::SeqCst), 0);
    let missing = connect(&world, "missing.example:443");
    assert_eq!((missing.status, missing.reason()), (502, Some("dns_failed")));
    world.resolver.set("closed.example", &[OTHER_SITE]);
    let closed = connect(&world, "closed.example:443");
    assert_eq!((closed.status, closed.reason()), (502, Some("connect_failed")));
}

/// Tries a connection from the proxy's own network, past the proxy.
fn past_the_proxy(world: &World, to: (Ipv4Addr, u16)) -> std::io::Result<()> {
    world.proxy.run(move || TcpStream::connect_timeout(&SocketAddr::from(to), Duration::from_secs(5)).map(drop))
}

#[test]
fn the_packet_filter_holds_without_the_proxy() {
    let Some(world) = World::new() else { return };
    host(&world, ROUTER, 443, echo);
    host(&world, RESOLVER, 443, echo);
    host(&world, RESOLVER, 53, echo);
    host(&world, SITE, 443, echo);
    assert!(past_the_proxy(&world, (ROUTER, 443)).is_ok(), "open before the start");
    let proxy = world.start(|_| {});
    for private in [(ROUTER, 443), (RESOLVER, 443), (Ipv4Addr::new(169, 254, 169, 254), 80), (Ipv4Addr::LOCALHOST, 22)]
    {
        let since = Instant::now();
        let error = past_the_proxy(&world, private).unwrap_err();
        // Refused at once, not left waiting.
        assert!(
            error.kind() != ErrorKind::TimedOut && since.elapsed() < Duration::from_secs(4),
            "{private:?}: {error}"
        );
    }
    assert!(past_the_proxy(&world, (RESOLVER, 53)).is_ok());
    assert!(past_the_proxy(&world, (SITE, 443)).is_ok());
    assert!(past_the_proxy(&world, (Ipv4Addr::LOCALHOST, 3128)).is_ok());

    // A second start finds the rules there, and does not add them again.
    proxy.stop.cancel();
    proxy.thread.join().unwrap().unwrap();
    let rules = || {
        let list = world.proxy.command("nft").args(["list", "ruleset"]).output().unwrap();
        String::from_utf8(list.stdout).unwrap()
    };
    let before = rules();
    let _again = world.start(|_| {});
    assert_eq!(rules(), before);
    assert!(past_the_proxy(&world, (ROUTER, 443)).is_err());
}

#[test]
fn nothing_is_forwarded_between_networks() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, |mut stream| drop(stream.read(&mut [0])));
    for line in ["sysctl -q -w net.ipv4.ip_forward=1", "ip route add default via 10.77.0.2"] {
        let network = if line.starts_with("ip ") { &world.outside } else { &world.proxy };
        let mut words = line.split(' ');
        assert!(network.command(words.next().unwrap()).args(words).status().unwrap().success());
    }
    let routed = world.session.command("ip").args(["route", "add", "default", "via", "10.88.0.2"]).status().unwrap();
    assert!(routed.success());
    let past = |patience| {
        world.session.run(move || TcpStream::connect_timeout(&SocketAddr::from((SITE, 443)), patience).is_ok())
    };
    assert!(past(Duration::from_secs(20)), "a router before the start");
    let _proxy = world.start(|_| {});
    assert!(!past(Duration::from_secs(1)));
}
