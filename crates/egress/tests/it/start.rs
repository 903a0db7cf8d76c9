//! A start that cannot protect anything does not happen.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tale_egress::wall::{Wall, WallError, build};
use tale_egress::{StartError, Stopped};

use crate::client::{Answer, connect, echo, host, read_all, tunnel};
use crate::world::{SITE, World};

fn nothing_listens(world: &World) -> bool {
    world.proxy.run(|| TcpStream::connect("127.0.0.1:3128").is_err())
}

/// Waits until the threads that served have ended, too: they do a moment after the call that ran them.
fn closed(world: &World) {
    while !nothing_listens(world) {
        std::thread::yield_now();
    }
}

#[test]
fn without_resolvers_that_can_be_trusted_nothing_listens() {
    let Some(world) = World::new() else { return };
    let file = world.folder.path().join("resolv.conf");
    let many: String = (0..65).map(|n| format!("nameserver 10.0.0.{n}\n")).collect();
    for text in ["nameserver dns.example\n", "nameserver 10.0.0.01\n", "", &many, &"#".repeat(65 << 10)] {
        std::fs::write(&file, text).unwrap();
        let Err(error) = world.try_start(|_| {}) else { panic!("started with {text:?}") };
        assert!(matches!(error, StartError::ResolvConf { .. }), "{error}");
        assert!(nothing_listens(&world));
    }
}

#[test]
fn without_the_right_to_filter_nothing_listens() {
    let Some(world) = World::new() else { return };
    let refused = world.proxy.run(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_ADMIN);
        sets.permitted.remove(CapabilitySet::NET_ADMIN);
        set_capabilities(None, sets).unwrap();
        build(&Wall { resolvers: Vec::new(), proxy: 3128, dns: 53 }).unwrap_err()
    });
    assert!(matches!(refused, WallError::NotPermitted) && refused.to_string().contains("NET_ADMIN"), "{refused}");
    // Asked not to filter, it starts, and judges addresses all the same.
    let _proxy = world.start(|config| config.skip_wall = true);
    assert_eq!(connect(&world, "169.254.169.254:443").reason(), Some("private_address"));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let Some(world) = World::new() else { return };
    let first = world.start(|_| {});
    let Err(error) = world.try_start(|config| config.skip_wall = true) else { panic!("two on one port") };
    assert!(error.to_string().contains(":3128 (proxy)"), "{error}");
    first.stop.cancel();
    let ended: Result<(), Stopped> = first.thread.join().unwrap();
    assert!(ended.is_ok());
    closed(&world);
}

#[test]
fn a_network_that_others_use_is_left_alone() {
    let Some(world) = World::new() else { return };
    let database = world.proxy.run(|| TcpListener::bind("127.0.0.1:5432").unwrap());
    let Err(error) = world.try_start(|_| {}) else { panic!("cut a database off") };
    assert!(error.to_string().contains("another program listens on 127.0.0.1:5432"), "{error}");
    assert!(world.proxy.run(|| TcpStream::connect("127.0.0.1:5432").is_ok()));
    drop(database);
    world.start(|_| {});
}

/// The answer of `/health`, unless nobody gives one any more.
fn health(world: &World) -> Option<Answer> {
    world.proxy.run(|| {
        let mut stream = TcpStream::connect("127.0.0.1:3128").ok()?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        (!answer.is_empty()).then(|| Answer::of(&answer))
    })
}

#[test]
fn a_wall_that_is_taken_away_closes_everything() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 443, echo);
    let proxy = world.start(|_| {});
    let mut open = tunnel(&world, "93.184.216.34:443");
    assert_eq!(health(&world).unwrap().status, 200);
    let gone = world.proxy.command("nft").args(["flush", "ruleset"]).status().unwrap();
    assert!(gone.success());
    // From this moment on it is said, for as long as there is somebody to say it.
    while let Some(answer) = health(&world) {
        assert!(answer.status == 503 && answer.body.contains("wall_gone"), "{answer:?}");
    }
    assert_eq!(read_all(&mut open), b"", "what was open is closed");
    let ended = proxy.thread.join().unwrap();
    assert!(matches!(ended, Err(Stopped::Wall)), "{ended:?}");
    closed(&world);
    // A new start puts it back.
    let _again = world.start(|_| {});
    assert_eq!(health(&world).unwrap().status, 200);
}

#[test]
#[ignore = "the next test runs it, in a network and with programs of its own"]
fn the_wall_of_this_network() {
    match build(&Wall { resolvers: Vec::new(), proxy: 3128, dns: 53 }) {
        Ok(built) => eprintln!("built, IPv6 is {}", built.ipv6.word()),
        Err(error) => eprintln!("refused: {error}"),
    }
}

#[test]
fn ipv6_is_filtered_or_switched_off_or_there_is_no_start() {
    let Some(world) = World::new() else { return };
    let has_v6 = world.proxy.run(|| std::fs::exists("/proc/thread-self/net/if_inet6").unwrap());
    if !has_v6 {
        eprintln!("skipped: this kernel has no IPv6");
        return;
    }
    // A kernel that filters IPv4 only: its `nft` takes no table of both.
    let (real, nft) = (world.folder.path().join("real"), world.folder.path().join("nft"));
    std::fs::copy("/usr/sbin/nft", &real).unwrap();
    let script = format!(
        "#!/bin/sh\nrules=$(cat)\ncase \"$rules $*\" in *inet*) echo 'Operation not supported' >&2; exit 1;; esac\n\
         printf '%s\\n' \"$rules\" | {} \"$@\"\n",
        real.display()
    );
    std::fs::write(&nft, script).unwrap();
    std::fs::set_permissions(&nft, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = std::env::current_exe().unwrap();
    let start = |before: &str| {
        let inside = format!(
            "mount --bind {} /usr/sbin/nft && {before} exec {} --exact start::the_wall_of_this_network --ignored --nocapture",
            nft.display(),
            program.display()
        );
        let output = world.proxy.command("unshare").args(["-m", "sh", "-c", &inside]).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let said = start("mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&");
    assert!(said.contains("refused: IPv6 is on and can neither be filtered"), "{said}");
    assert!(said.contains("net.ipv6.conf.all.disable_ipv6=1"), "what to do stands there: {said}");
    let said = start("");
    assert!(said.contains("built, IPv6 is off"), "{said}");
}
