//! Plain HTTP, and those who try to divide messages differently.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use crate::client::{Answer, dial, host, read_all, read_head, say};
use crate::world::{SITE, World};

/// A host that answers each connection with `answer` when it has read a head, and remembers what it read.
fn scripted(world: &World, answer: &'static [u8]) -> Arc<Mutex<Vec<String>>> {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let ears = Arc::clone(&heard);
    host(world, SITE, 80, move |mut stream: TcpStream| {
        let mut head = read_head(&mut stream);
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        if head.contains("chunked") {
            while !body.ends_with(b"0\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                body.push(byte[0]);
            }
        }
        head.push_str(&String::from_utf8_lossy(&body));
        ears.lock().unwrap().push(head);
        stream.write_all(answer).unwrap();
    });
    world.resolver.set("site.example", &[SITE]);
    heard
}

#[test]
fn a_request_is_written_anew_for_the_host_that_was_judged() {
    let Some(world) = World::new() else { return };
    let heard = scripted(
        &world,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\nX-Kept: yes\r\n\r\nhi",
    );
    let _proxy = world.start(|_| {});
    let mut stream = dial(&world);
    // Two requests over one connection, the second one sent before the first is answered.
    stream
        .write_all(
            b"POST http://Site.example/a?b=c HTTP/1.1\r\nHost: inside\r\nProxy-Authorization: Basic c2VjcmV0\r\n\
              Connection: X-Named\r\nX-Named: 1\r\nAccept: x\r\nContent-Length: 5\r\n\r\nhello\
              GET http://site.example?q HTTP/1.1\r\nHost: site.example\r\nTE: trailers\r\n\r\n",
        )
        .unwrap();
    for _ in 0..2 {
        let head = read_head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("X-Kept: yes"), "{head}");
        assert!(!head.contains("X-Own") && !head.contains("Keep-Alive"), "{head}");
        let mut body = [0; 2];
        stream.read_exact(&mut body).unwrap();
        assert_eq!(&body, b"hi");
    }
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "POST /a?b=c HTTP/1.1\r\nHost: site.example\r\nAccept: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
            "GET /?q HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n",
        ]
    );
}

#[test]
fn bodies_in_pieces_are_put_together_anew() {
    let Some(world) = World::new() else { return };
    let heard = scripted(
        &world,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n",
    );
    let _proxy = world.start(|_| {});
    let request =
        b"PUT http://site.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
        5;ext\r\nhello\r\n1\r\n!\r\n0\r\nX: y\r\n\r\n";
    let answer = say(&world, request);
    assert_eq!((answer.status, answer.body.as_str()), (200, "3\r\nabc\r\n0\r\n\r\n"));
    let heard = heard.lock().unwrap();
    let (head, body) = heard[0].split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
    // Pieces may be joined or divided; extensions and trailers are gone.
    let said: String = body.split("\r\n").filter(|line| line.len() != 1 || *line == "!").collect();
    assert_eq!(said, "hello!", "{body:?}");
    drop(heard);

    // Without pieces for who cannot read them.
    let old = say(&world, b"GET http://site.example/ HTTP/1.0\r\n\r\n");
    assert_eq!((old.status, old.body.as_str()), (200, "abc"));
    assert!(!old.head.to_ascii_lowercase().contains("transfer-encoding"), "{}", old.head);
}

#[test]
fn a_smuggled_request_reaches_nobody() {
    let Some(world) = World::new() else { return };
    let heard = scripted(&world, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let _proxy = world.start(|_| {});
    let inside = "GET http://10.77.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n";
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        "Content-Length: 6\r\nContent-Length: 5\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Content-Length: -6\r\n",
        "Host: b\r\n",
    ] {
        let request =
            format!("POST http://site.example/ HTTP/1.1\r\nHost: site.example\r\n{fields}\r\n0\r\n\r\n{inside}");
        let answer = say(&world, request.as_bytes());
        assert_eq!((answer.status, answer.reason()), (400, Some("bad_request")), "{fields:?}");
        assert!(answer.head.contains("Connection: close"));
        assert!(!answer.body.contains("HTTP/1.1"), "answered once: {answer:?}");
    }
    for request in [
        "CONNECT site.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "CONNECT http://site.example:443/ HTTP/1.1\r\n\r\n",
        "CONNECT site.example HTTP/1.1\r\n\r\n",
        "GET https://site.example/ HTTP/1.1\r\n\r\n",
        "GET ftp://site.example/ HTTP/1.1\r\n\r\n",
        "GET http://user:word@site.example/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: site.example\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: site.example\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: site.example\r\n\r\n",
        "GET http://site.example/ HTTP/1.1\n\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = say(&world, request.as_bytes());
        assert_eq!((answer.status, answer.reason()), (400, Some("bad_request")), "{request:?}");
    }
    // A piece that ends wrongly, when the beginning has gone out already.
    let cut = b"POST http://site.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n";
    assert_eq!(say(&world, cut).status, 400);
    assert_eq!(heard.lock().unwrap().len(), 0);
}

#[test]
fn an_answer_that_could_be_read_in_two_ways_is_not_passed_on() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"hello\r\n\r\n",
        b"",
    ] {
        let Some(world) = World::new() else { return };
        scripted(&world, answer);
        let _proxy = world.start(|_| {});
        let told = say(&world, b"GET http://site.example/ HTTP/1.1\r\n\r\n");
        assert_eq!((told.status, told.reason()), (502, Some("connect_failed")), "{answer:?}");
    }
}

#[test]
fn a_redirect_is_handed_on_and_judged_when_it_is_followed() {
    let Some(world) = World::new() else { return };
    let heard = scripted(
        &world,
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\n\r\n",
    );
    let _proxy = world.start(|_| {});
    let answer = say(&world, b"GET http://site.example/ HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(answer.status, 302);
    let to = answer.head.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    let followed = say(&world, format!("GET {to} HTTP/1.1\r\nHost: site.example\r\n\r\n").as_bytes());
    assert_eq!((followed.status, followed.reason()), (403, Some("private_address")));
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn heads_are_bounded() {
    let Some(world) = World::new() else { return };
    let heard = scripted(&world, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let _proxy = world.start(|_| {});
    let request = |fields: String| format!("GET http://site.example/ HTTP/1.1\r\nConnection: close\r\n{fields}\r\n");
    assert_eq!(say(&world, request(format!("X: {}\r\n", "a".repeat(60 << 10))).as_bytes()).status, 200);
    for fields in [format!("X: {}\r\n", "a".repeat(66 << 10)), "X: y\r\n".repeat(300), "X: y\r\n".repeat(20_000)] {
        let answer = say(&world, request(fields).as_bytes());
        assert_eq!((answer.status, answer.reason()), (431, Some("bad_request")));
    }
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn a_web_socket_becomes_a_tunnel_and_nothing_else_does() {
    let Some(world) = World::new() else { return };
    host(&world, SITE, 80, |mut stream: TcpStream| {
        let head = read_head(&mut stream);
        if head.contains("Upgrade: websocket") {
            stream
                .write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst",
                )
                .unwrap();
            let mut bytes = [0; 5];
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        } else {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain").unwrap();
        }
    });
    world.resolver.set("site.example", &[SITE]);
    let _proxy = world.start(|_| {});
    let ask = |upgrade: &str, more: &[u8]| {
        let head = format!(
            "GET http://site.example/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: {upgrade}\r\n\r\n"
        );
        let mut stream = dial(&world);
        stream.write_all(&[head.as_bytes(), more].concat()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        Answer::of(&read_all(&mut stream))
    };
    let socket = ask("websocket", b"hello");
    assert_eq!((socket.status, socket.body.as_str()), (101, "firsthello"));
    let other = ask("h2c", b"");
    assert_eq!((other.status, other.body.as_str()), (200, "plain"));
}
