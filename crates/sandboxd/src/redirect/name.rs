//! The name that a client says first: in the head of a request of plain HTTP, or in the greeting of TLS.

/// What the first bytes of a connection tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A host.
    Name(String),
    /// No name comes.
    Nothing,
    /// It may still come.
    More,
}

/// The value of `Host` of a request.
pub fn http(bytes: &[u8]) -> Said {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    // The last piece is not a whole line.
    let whole = lines.clone().count() - 1;
    let Some(first) = lines.next() else { return Said::More };
    if !first.iter().all(|byte| (b' '..=b'~').contains(byte) || *byte == b'\r') {
        return Said::Nothing;
    }
    for line in lines.take(whole.saturating_sub(1)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Said::Nothing;
        }
        let Some((field, value)) = line.iter().position(|byte| *byte == b':').map(|at| line.split_at(at)) else {
            return Said::Nothing;
        };
        if field.eq_ignore_ascii_case(b"host") {
            let value = value[1..].trim_ascii();
            return host(value.split(|byte| *byte == b':').next().unwrap_or_default());
        }
    }
    Said::More
}

/// The server's name in a greeting of TLS.
pub fn tls(bytes: &[u8]) -> Said {
    const HANDSHAKE: u8 = 22;
    // The greeting may be divided among records.
    let (mut greeting, mut rest) = (Vec::new(), bytes);
    loop {
        let whole = greeting.first_chunk::<4>().map(|head| 4 + number(&head[1..]));
        if whole.is_some_and(|whole| greeting.len() >= whole) {
            break;
        }
        match rest {
            [HANDSHAKE, 3, _, high, low, after @ ..] => {
                let length = number(&[*high, *low]);
                greeting.extend_from_slice(&after[..length.min(after.len())]);
                let Some(after) = after.get(length..) else { return Said::More };
                rest = after;
            }
            [HANDSHAKE, 3, ..] | [HANDSHAKE] | [] => return Said::More,
            _ => return Said::Nothing,
        }
    }
    server_name(&greeting).map_or(Said::Nothing, host)
}

fn server_name(greeting: &[u8]) -> Option<&[u8]> {
    const CLIENT_HELLO: u8 = 1;
    const SERVER_NAME: &[u8] = &[0, 0];
    let mut greeting = Bytes(greeting);
    if greeting.take(1)? != [CLIENT_HELLO] {
        return None;
    }
    let mut hello = Bytes(greeting.counted(3)?);
    // Version and random bytes; the session, the ciphers, the compressions.
    hello.take(34)?;
    hello.counted(1)?;
    hello.counted(2)?;
    hello.counted(1)?;
    let mut extensions = Bytes(hello.counted(2)?);
    loop {
        let kind = extensions.take(2)?;
        let content = extensions.counted(2)?;
        if kind == SERVER_NAME {
            let mut names = Bytes(Bytes(content).counted(2)?);
            return if names.take(1)? == [0] { names.counted(2) } else { None };
        }
    }
}

/// Bytes that are read from their beginning.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes behind their number, which has `width` bytes itself.
    fn counted(&mut self, width: usize) -> Option<&'a [u8]> {
        let count = number(self.take(width)?);
        self.take(count)
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// A name that can stand in a request to the proxy. Whether it may be reached is the proxy's affair.
fn host(bytes: &[u8]) -> Said {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match std::str::from_utf8(bytes) {
        Ok(name) if (1..=253).contains(&name.len()) && bytes.iter().all(plain) => Said::Name(name.to_owned()),
        _ => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(width: usize, bytes: &[u8]) -> Vec<u8> {
        [&bytes.len().to_be_bytes()[8 - width..], bytes].concat()
    }

    fn greeting(name: &[u8]) -> Vec<u8> {
        let names = counted(2, &[&[0], &*counted(2, name)].concat());
        let extensions = [&[0, 43][..], &counted(2, &[2, 3, 4]), &[0, 0], &counted(2, &names)].concat();
        let body = [&[3, 3][..], &[7; 32], &[0], &counted(2, &[0x13, 1]), &[1, 0], &counted(2, &extensions)].concat();
        [&[1][..], &counted(3, &body)].concat()
    }

    fn records(greeting: &[u8], size: usize) -> Vec<u8> {
        greeting.chunks(size).flat_map(|piece| [&[22, 3, 1][..], &counted(2, piece)].concat()).collect()
    }

    #[test]
    fn the_server_of_a_greeting_is_known_as_soon_as_it_is_whole() {
        for size in [usize::from(u16::MAX), 40, 1] {
            let bytes = records(&greeting(b"example.com"), size);
            assert_eq!(tls(&bytes), Said::Name("example.com".to_owned()), "records of {size}");
            for cut in 0..bytes.len() {
                assert_eq!(tls(&bytes[..cut]), Said::More, "{cut} bytes in records of {size}");
            }
        }
        assert_eq!(tls(b"SSH-2.0-x\r\n"), Said::Nothing);
        assert_eq!(tls(&records(&greeting(b"evil\r\nx: y"), 999)), Said::Nothing);
        assert_eq!(tls(&records(&greeting(b""), 999)), Said::Nothing);
    }

    #[test]
    fn the_host_of_a_request_is_its_first_host_field() {
        let name = |text: &str| http(text.as_bytes());
        let example = Said::Name("example.com".to_owned());
        assert_eq!(name("GET / HTTP/1.1\r\nAccept: */*\r\nhOsT:  example.com:80 \r\nHost: other\r\n\r\n"), example);
        assert_eq!(name("GET / HTTP/1.1\r\nHost: example.c"), Said::More);
        assert_eq!(name("GE"), Said::More);
        for none in [
            "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost:\r\n\r\n",
            "GET / HTTP/1.1\r\nno field\r\n\r\n",
            "\u{16}\u{3}\u{1}",
        ] {
            assert_eq!(name(none), Said::Nothing, "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_a_name_never_breaks_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for said in [tls(&bytes), tls(&records(&bytes, 64)), http(&bytes)] {
                if let Said::Name(name) = said {
                    prop_assert!(!name.is_empty() && !name.contains(['\r', '\n', ' ', ':', '/']));
                }
            }
        }
    }
}
