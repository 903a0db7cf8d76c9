//! A start that cannot protect anything does not happen.

use std::net::{TcpListener, TcpStream};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tale_egress::wall::{Wall, WallError, build};
use tale_egress::{StartError, Stopped};

use crate::client::connect;
use crate::world::World;

fn nothing_listens(world: &World) -> bool {
    world.proxy.run(|| TcpStream::connect("127.0.0.1:3128").is_err())
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
    assert!(nothing_listens(&world));
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
