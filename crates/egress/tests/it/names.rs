//! The DNS service of sandboxes.

use std::net::{IpAddr, Ipv4Addr};

use tale_egress::HostPolicy;

use crate::world::{ROUTER, SITE, World, answer_of, ask, query};

#[test]
fn sandboxes_learn_public_addresses_only() {
    let Some(world) = World::new() else { return };
    let _proxy = world.start(|_| {});
    world.resolver.set("site.example", &[SITE]);
    world.resolver.set("rebind.example", &[ROUTER, SITE, Ipv4Addr::LOCALHOST]);
    world.resolver.set("inside.example", &[ROUTER]);
    world.resolver.set("backend-api", &[ROUTER]);
    let addresses = |name: &str| answer_of(&ask(&world, query(name, 1)).unwrap());
    assert_eq!(addresses("site.example"), (0, vec![IpAddr::V4(SITE)]));
    assert_eq!(addresses("rebind.example"), (0, vec![IpAddr::V4(SITE)]));
    assert_eq!(addresses("inside.example"), (0, Vec::new()));
    assert_eq!(addresses("missing.example"), (3, Vec::new()));
    // A service of the deployment.
    assert_eq!(addresses("backend-api"), (0, vec![IpAddr::V4(ROUTER)]));
    let before = world.resolver.asked_anything();
    assert_eq!(addresses("sandbox-egress-health.invalid"), (0, vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    // What is no ordinary question is refused or answered with nothing, and asked of nobody: ANY, AXFR, NULL, HTTPS.
    for (kind, code) in [(255, 5), (252, 5), (10, 5), (65, 0)] {
        assert_eq!(answer_of(&ask(&world, query("site.example", kind)).unwrap()), (code, Vec::new()), "{kind}");
    }
    assert_eq!(world.resolver.asked_anything(), before);
}

#[test]
fn with_an_allowlist_names_carry_nothing_out() {
    let Some(world) = World::new() else { return };
    let _proxy = world.start(|config| config.policy = HostPolicy::parse("*.docs.example").unwrap());
    world.resolver.set("a.docs.example", &[SITE]);
    assert_eq!(answer_of(&ask(&world, query("a.docs.example", 1)).unwrap()).1, [IpAddr::V4(SITE)]);
    for secret in ["c2VjcmV0.attacker.example", "a.docs.example.attacker.example", "docs.example"] {
        for kind in [1, 28, 16, 15, 2] {
            assert_eq!(answer_of(&ask(&world, query(secret, kind)).unwrap()).0, 3, "{secret} {kind}");
        }
        assert_eq!(world.resolver.asked(secret), 0);
    }
    assert_eq!(answer_of(&ask(&world, query("c2VjcmV0", 16)).unwrap()).0, 3);
    assert_eq!(world.resolver.asked("c2VjcmV0"), 0);
}
