//! CONNECT.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::client::{connect, dial, echo, host, read_all, read_head, tunnel};
use crate::world::{SITE, World};

#[test]
fn a_tunnel_delivers_every_byte_and_each_end() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    world.resolver.set("site.example", &[SITE]);
    let _proxy = world.start(|_| {});

    // Bytes behind the head are the first of the tunnel, and the end of one direction is not that of both.
    let mut stream = dial(&world);
    stream.write_all(b"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example\r\n\r\nearly ").unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
    stream.write_all(b"and late").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut stream), b"early and late");

    // A few bytes at a time, back and forth.
    let mut stream = tunnel(&world, "site.example:443");
    for n in 0..200_u8 {
        stream.write_all(&[n; 100]).unwrap();
        let mut back = [0; 100];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, [n; 100]);
    }
}

/// Numbers that repeat late, so that a piece that is lost or twice is seen.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).take(length).collect()
}

#[test]
fn a_fast_stream_and_a_slow_reader_lose_nothing() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let _proxy = world.start(|_| {});
    let sent = pattern(48 << 20);
    let mut writer = tunnel(&world, "93.184.216.34:443");
    let mut reader: TcpStream = writer.try_clone().unwrap();
    let expected = sent.clone();
    let reading = std::thread::spawn(move || {
        let mut back = vec![0; expected.len()];
        // Slow at first: single bytes, while everything in between fills up.
        for byte in &mut back[..50_000] {
            reader.read_exact(std::slice::from_mut(byte)).unwrap();
        }
        reader.read_exact(&mut back[50_000..]).unwrap();
        assert!(back == expected, "bytes differ");
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    });
    writer.write_all(&sent).unwrap();
    writer.shutdown(Shutdown::Write).unwrap();
    reading.join().unwrap();
}

#[test]
fn ports_and_hosts_are_judged_before_anybody_is_asked() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    host(&world, SITE, 80, echo);
    world.resolver.set("site.example", &[SITE]);
    let policy = r"site\.example$|*.docs.example";
    let _proxy = world.start(|config| config.policy = tale_egress::HostPolicy::parse(policy).unwrap());
    for (to, reason) in [
        ("site.example:22", "port_not_allowed"),
        ("site.example:80", "port_not_allowed"),
        ("other.example:443", "host_not_allowed"),
        ("docs.example:443", "host_not_allowed"),
        ("93.184.216.34:443", "host_not_allowed"),
        ("site.example.attacker.test:443", "host_not_allowed"),
    ] {
        let answer = connect(&world, to);
        assert_eq!((answer.status, answer.reason()), (403, Some(reason)), "{to}");
    }
    assert_eq!(world.resolver.asked_anything(), 0);
    assert_eq!(connect(&world, "SITE.example.:443").status, 200);
    // What a session's redirector leads here from port 80 may go there.
    let mut stream = dial(&world);
    stream.write_all(b"CONNECT site.example:80 HTTP/1.1\r\nTale-Redirected: 1\r\n\r\n").unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
}
