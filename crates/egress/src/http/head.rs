//! The head of a message: its first line and its fields.

use memchr::memchr2;

/// Largest head, in bytes.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// Most lines of fields.
const MAX_FIELDS: usize = 256;

/// Why a message cannot be read, or could be read in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a line does not end as HTTP lines do")]
    LineEnd,
    #[error("the first line is no request of HTTP/1")]
    RequestLine,
    #[error("the first line is no answer of HTTP/1")]
    StatusLine,
    #[error("a header has a name that is no name, or a line is folded")]
    FieldName,
    #[error("a header has a control character")]
    FieldValue,
    #[error("there are too many headers")]
    TooManyFields,
    #[error("the length of the body is told in contradictory ways")]
    Framing,
    #[error("the header Host is there more than once")]
    Host,
    #[error("a piece of the body does not say its length as it must")]
    Chunk,
    #[error("the target is no address of a web page")]
    Target,
    #[error("the scheme of the address is not http; open a tunnel with CONNECT for https")]
    Scheme,
    #[error("{0}")]
    BadHost(#[from] crate::host::BadHost),
    #[error("this proxy is asked with a whole address or with CONNECT")]
    OriginForm,
}

/// What a look at the bytes so far says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The head ends before this place.
    Complete(usize),
    /// More has to come; what is before this place need not be looked at again.
    Partial(usize),
}

/// Looks for the end of the head from `from` on, and refuses line ends that other readers see
/// differently as soon as they come.
pub(crate) fn scan(bytes: &[u8], from: usize) -> Result<Scan, Malformed> {
    let mut at = from;
    // Something that cannot begin a message, such as a TLS record or an empty line.
    if bytes.first().is_some_and(|byte| !is_token(*byte)) {
        return Err(Malformed::RequestLine);
    }
    while let Some(found) = memchr2(b'\r', b'\n', &bytes[at..]) {
        let place = at + found;
        if bytes[place] == b'\n' {
            return Err(Malformed::LineEnd);
        }
        match bytes.get(place + 1) {
            None => return Ok(Scan::Partial(place)),
            Some(b'\n') => {}
            Some(_) => return Err(Malformed::LineEnd),
        }
        match (bytes.get(place + 2), bytes.get(place + 3)) {
            (Some(b'\r'), Some(b'\n')) => return Ok(Scan::Complete(place + 4)),
            (None, _) | (Some(b'\r'), None) => return Ok(Scan::Partial(place)),
            _ => at = place + 2,
        }
    }
    Ok(Scan::Partial(bytes.len()))
}

/// Version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

impl Version {
    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"HTTP/1.0" => Some(Self::Http10),
            b"HTTP/1.1" => Some(Self::Http11),
            _ => None,
        }
    }
}

/// The fields of a head, in their order.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a [u8])>);

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// This many bytes.
    Exact(u64),
    /// It comes in pieces that say their lengths.
    Chunked,
    /// Nothing says so: a request has no body then, and an answer ends with its connection.
    Untold,
}

/// The head of a request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub method: &'a str,
    pub target: &'a str,
    pub version: Version,
    pub fields: Fields<'a>,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub code: u16,
    pub reason: &'a [u8],
    pub fields: Fields<'a>,
}

impl<'a> Request<'a> {
    /// Reads a complete head, the empty line at its end included.
    pub(crate) fn parse(head: &'a [u8]) -> Result<Self, Malformed> {
        let (line, rest) = first_line(head)?;
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Malformed::RequestLine);
        };
        let method = token(method).ok_or(Malformed::RequestLine)?;
        let visible = !target.is_empty() && target.iter().all(u8::is_ascii_graphic);
        let target = std::str::from_utf8(target).ok().filter(|_| visible).ok_or(Malformed::RequestLine)?;
        let version = Version::parse(version).ok_or(Malformed::RequestLine)?;
        let fields = Fields::parse(rest)?;
        if fields.all("host").count() > 1 {
            return Err(Malformed::Host);
        }
        Ok(Self { method, target, version, fields })
    }

    /// The length of the body. A request of HTTP/1.0 cannot come in pieces.
    pub(crate) fn length(&self) -> Result<Length, Malformed> {
        match self.fields.length()? {
            Length::Chunked if self.version == Version::Http10 => Err(Malformed::Framing),
            length => Ok(length),
        }
    }
}

impl<'a> Answer<'a> {
    /// Reads a complete head, the empty line at its end included.
    pub(crate) fn parse(head: &'a [u8]) -> Result<Self, Malformed> {
        let (line, rest) = first_line(head)?;
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let version = words.next().and_then(Version::parse);
        let code = words.next().filter(|code| code.len() == 3).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| code.parse().ok()).filter(|code| (100..=599).contains(code));
        let (Some(_), Some(code)) = (version, code) else { return Err(Malformed::StatusLine) };
        let reason = words.next().unwrap_or_default();
        if reason.iter().any(|byte| is_control(*byte)) {
            return Err(Malformed::StatusLine);
        }
        Ok(Self { code, reason, fields: Fields::parse(rest)? })
    }
}

/// The first line, and the rest behind its end.
fn first_line(head: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let end = memchr::memmem::find(head, b"\r\n").ok_or(Malformed::LineEnd)?;
    Ok((&head[..end], &head[end + 2..]))
}

impl<'a> Fields<'a> {
    fn parse(mut rest: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Vec::with_capacity(16);
        loop {
            let (line, after) = first_line(rest)?;
            rest = after;
            if line.is_empty() {
                return if rest.is_empty() { Ok(Self(fields)) } else { Err(Malformed::LineEnd) };
            }
            if fields.len() == MAX_FIELDS {
                return Err(Malformed::TooManyFields);
            }
            // A folded line begins with a space, which no name does.
            let colon = memchr::memchr(b':', line).ok_or(Malformed::FieldName)?;
            let name = token(&line[..colon]).ok_or(Malformed::FieldName)?;
            let value = line[colon + 1..].trim_ascii();
            if value.iter().any(|byte| is_control(*byte)) {
                return Err(Malformed::FieldValue);
            }
            fields.push((name, value));
        }
    }

    /// Every field.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.0.iter().copied()
    }

    /// The values of the field `name`.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The words of a list that may be spread over several fields.
    pub(crate) fn words(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name).flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
    }

    /// Whether the list `name` contains `word`.
    pub(crate) fn has_word(&self, name: &str, word: &str) -> bool {
        self.words(name).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// How long the body is, when there is exactly one way to read that.
    pub(crate) fn length(&self) -> Result<Length, Malformed> {
        let mut told = self.all("content-length");
        let exact = told.next();
        if told.any(|other| Some(other) != exact) {
            return Err(Malformed::Framing);
        }
        let mut codings = self.all("transfer-encoding");
        match (codings.next(), codings.next(), exact) {
            (None, _, None) => Ok(Length::Untold),
            (None, _, Some(digits)) => {
                let sound = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
                let number = std::str::from_utf8(digits).ok().filter(|_| sound).and_then(|digits| digits.parse().ok());
                number.map(Length::Exact).ok_or(Malformed::Framing)
            }
            (Some(coding), None, None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Length::Chunked),
            _ => Err(Malformed::Framing),
        }
    }

    /// The fields that are meant for the far end: without those of one connection, with those that
    /// `Connection` names among these, and without what the proxy writes itself.
    pub(crate) fn end_to_end(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let named: Vec<&[u8]> = self.words("connection").collect();
        self.iter().filter(move |(name, _)| {
            !HOP_BY_HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop))
                && !named.iter().any(|word| name.as_bytes().eq_ignore_ascii_case(word))
        })
    }
}

/// What ends at the proxy, in lower case.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "content-length",
    "upgrade",
    "host",
];

fn token(text: &[u8]) -> Option<&str> {
    let sound = !text.is_empty() && text.iter().all(|byte| is_token(*byte));
    std::str::from_utf8(text).ok().filter(|_| sound)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(head: &str) -> Result<Length, Malformed> {
        Request::parse(head.as_bytes()).and_then(|request| request.length())
    }

    #[test]
    fn a_message_that_two_readers_could_divide_differently_is_refused() {
        for (fields, why) in [
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", Malformed::Framing),
            ("Content-Length: 3\r\nContent-Length: 4\r\n", Malformed::Framing),
            ("Content-Length: 3, 3\r\n", Malformed::Framing),
            ("Content-Length: +3\r\n", Malformed::Framing),
            ("Content-Length: 0x3\r\n", Malformed::Framing),
            ("Content-Length: \r\n", Malformed::Framing),
            ("Content-Length: 99999999999999999999\r\n", Malformed::Framing),
            ("Transfer-Encoding: gzip, chunked\r\n", Malformed::Framing),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Malformed::Framing),
            ("Transfer-Encoding: xchunked\r\n", Malformed::Framing),
            ("Transfer-Encoding : chunked\r\n", Malformed::FieldName),
            ("X: a\r\n b\r\n", Malformed::FieldName),
            ("\u{b}Transfer-Encoding: chunked\r\n", Malformed::FieldName),
            (": x\r\n", Malformed::FieldName),
            ("no colon\r\n", Malformed::FieldName),
            ("X: a\0b\r\n", Malformed::FieldValue),
            ("X: a\rb\r\n", Malformed::FieldValue),
            ("Host: a\r\nHost: b\r\n", Malformed::Host),
        ] {
            assert_eq!(request(&format!("POST http://a/ HTTP/1.1\r\n{fields}\r\n")), Err(why), "{fields:?}");
        }
        assert_eq!(request("POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Malformed::Framing));
        assert_eq!(
            request("POST http://a/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"),
            Ok(Length::Exact(3))
        );
        assert_eq!(request("POST http://a/ HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n"), Ok(Length::Chunked));
    }

    #[test]
    fn a_first_line_has_three_words_and_a_known_version() {
        for line in [
            "GET  http://a/ HTTP/1.1",
            " GET http://a/ HTTP/1.1",
            "GET http://a/ HTTP/1.1 ",
            "GET http://a/",
            "GET http://a/ HTTP/2.0",
            "GET http://a/ http/1.1",
            "G\tT http://a/ HTTP/1.1",
            "GET http://a/\u{7f} HTTP/1.1",
            "GET http://ä/ HTTP/1.1",
        ] {
            assert_eq!(request(&format!("{line}\r\n\r\n")), Err(Malformed::RequestLine), "{line:?}");
        }
    }

    #[test]
    fn line_ends_that_others_read_differently_are_refused_as_soon_as_they_come() {
        for bytes in ["GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nX: a\n", "GET / HTTP/1.1\rX", "GET /\r\r\n"] {
            assert_eq!(scan(bytes.as_bytes(), 0), Err(Malformed::LineEnd), "{bytes:?}");
        }
        for bytes in ["\r\n", "\n", "\x16\x03\x01", " GET"] {
            assert_eq!(scan(bytes.as_bytes(), 0), Err(Malformed::RequestLine), "{bytes:?}");
        }
    }

    #[test]
    fn what_belongs_to_one_connection_goes_no_further() {
        let head = b"GET http://a/ HTTP/1.1\r\nHost: b\r\nConnection: keep-alive, X-Secret\r\nx-secret: 1\r\nKeep-Alive: 5\r\n\
            Proxy-Authorization: Basic eA==\r\nProxy-Connection: close\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nAccept: a\r\n\r\n";
        let request = Request::parse(head).unwrap();
        assert_eq!(request.fields.end_to_end().collect::<Vec<_>>(), [("Accept", &b"a"[..])]);
    }

    #[test]
    fn more_lines_than_anybody_needs_are_refused() {
        let head = |lines: usize| format!("GET http://a/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(lines));
        assert!(request(&head(256)).is_ok());
        assert_eq!(request(&head(257)), Err(Malformed::TooManyFields));
    }

    proptest! {
        /// However the bytes arrive, the end of the head is the same place.
        #[test]
        fn the_end_is_found_in_any_division(head in "[A-Z]{1,4} [!-~]{1,8} HTTP/1\\.1\r\n([a-z]{1,5}: [ -~]{0,9}\r\n){0,4}\r\n", rest in "[ -~\r\n]{0,12}", step in 1_usize..7) {
            let bytes = format!("{head}{rest}").into_bytes();
            let (mut seen, mut from) = (0, 0);
            let end = loop {
                seen = (seen + step).min(bytes.len());
                match scan(&bytes[..seen], from) {
                    Ok(Scan::Complete(end)) => break end,
                    Ok(Scan::Partial(next)) => from = next,
                    Err(why) => panic!("{why}"),
                }
            };
            prop_assert_eq!(end, head.len());
            prop_assert!(Request::parse(&bytes[..end]).is_ok() || head.contains("Host") || head.contains("content-length"));
        }

        /// Nothing that is read holds a character that ends a line or a field.
        #[test]
        fn what_is_read_has_no_line_end_in_it(bytes in proptest::collection::vec(any::<u8>(), 0..200), ascii in "[ -~\r\n\t]{0,200}") {
            for bytes in [bytes, format!("GET http://a/ HTTP/1.1\r\n{ascii}\r\n\r\n").into_bytes()] {
                let Ok(Scan::Complete(end)) = scan(&bytes, 0) else { continue };
                let Ok(request) = Request::parse(&bytes[..end]) else { continue };
                for (name, value) in request.fields.iter() {
                    prop_assert!(name.bytes().all(is_token));
                    prop_assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
                }
            }
        }
    }
}
