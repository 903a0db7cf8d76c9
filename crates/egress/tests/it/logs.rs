//! What the log says, and what it never does.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::client::{connect, echo, host, read_head, say, tunnel};
use crate::world::{SITE, World};

/// Everything that is logged, at every level.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<String>>);

impl Visit for Lines {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
        self.0.lock().unwrap().push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn hosts_are_named_and_paths_queries_and_headers_are_not() {
    let Some(world) = World::new() else { return };
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    host(&world, SITE, 443, echo);
    host(&world, SITE, 80, |mut stream| {
        read_head(&mut stream);
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: secret-back\r\n\r\nhi")
            .unwrap();
    });
    world.resolver.set("site.example", &[SITE]);
    let proxy = world.start(|_| {});
    let request = |to: &str| {
        format!(
            "POST http://{to}/secret-path?secret-query=1 HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer secret-token\r\n\
             Proxy-Authorization: Basic secret-basic\r\nCookie: secret-cookie\r\nConnection: close\r\n\
             Content-Length: 11\r\n\r\nsecret-body"
        )
    };
    assert_eq!(say(&world, request("site.example").as_bytes()).status, 200);
    assert_eq!(say(&world, request("10.9.8.7").as_bytes()).status, 403);
    assert_eq!(say(&world, request("user:secret-word@site.example").as_bytes()).status, 400);
    assert_eq!(say(&world, b"GET secret-nonsense HTTP/9.9\r\nsecret-line\r\n\r\n").status, 400);
    assert_eq!(connect(&world, "gone.example:443").status, 502);
    drop(tunnel(&world, "site.example:443"));
    proxy.stop.cancel();
    proxy.thread.join().unwrap().unwrap();
    let said = lines.0.lock().unwrap().clone();
    for word in
        ["site.example", "10.9.8.7", "private_address", "gone.example", "dns_failed", "bad_request", "egress.passed"]
    {
        assert!(said.contains(word), "{word} is missing:\n{said}");
    }
    assert!(!said.contains("secret"), "{said}");
}
