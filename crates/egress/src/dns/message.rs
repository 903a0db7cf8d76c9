//! Messages of DNS, as far as a forwarder needs to understand them.
//!
//! Questions are written anew, so that nothing of a client's message but its name and type goes further.
//! Addresses are read out of answers and answers with addresses are written anew, too; what else is
//! answered is passed on up to the additional records.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `A`.
pub(crate) const A: u16 = 1;
/// `AAAA`.
pub(crate) const AAAA: u16 = 28;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const OPT: u16 = 41;
const CLASS_IN: u16 = 1;

/// What clients may ask for besides addresses: CNAME, MX, NS, PTR, SOA, TXT, SRV, NAPTR, CAA.
const ORDINARY: &[u16] = &[CNAME, 15, 2, 12, SOA, 16, 33, 35, 257];

/// SVCB and HTTPS: answered with nothing, because they offer what has no way out (QUIC) or hides the name
/// of a server from the redirector (encrypted client hellos).
const HINTS: &[u16] = &[64, 65];

const HEADER: usize = 12;
/// Largest message over UDP that is asked for and sent.
pub(crate) const MAX_UDP: usize = 1232;
/// What a client without an extension takes over UDP.
const PLAIN_UDP: usize = 512;
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// Longest that an answer is kept, in seconds.
const MAX_TTL: u32 = 86_400;
/// Longest that the absence of a name is kept, in seconds.
const MAX_NEGATIVE_TTL: u32 = 300;

/// Result codes.
pub(crate) mod code {
    pub(crate) const OK: u8 = 0;
    pub(crate) const FORMAT: u8 = 1;
    pub(crate) const FAILED: u8 = 2;
    pub(crate) const NO_NAME: u8 = 3;
    pub(crate) const UNKNOWN: u8 = 4;
    pub(crate) const REFUSED: u8 = 5;
}

/// A name in lower case without a dot at its end, and a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub name: Box<str>,
    pub kind: u16,
}

impl Question {
    /// Whether addresses are asked for.
    pub(crate) fn wants_addresses(&self) -> bool {
        matches!(self.kind, A | AAAA)
    }

    /// Whether the question may be asked upstream.
    pub(crate) fn is_ordinary(&self) -> bool {
        self.wants_addresses() || ORDINARY.contains(&self.kind)
    }

    /// Whether the question is answered with nothing.
    pub(crate) fn is_hint(&self) -> bool {
        HINTS.contains(&self.kind)
    }
}

/// A message that is no question we can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadQuery {
    /// Not even worth an answer.
    Ignore,
    /// Gets this result code.
    Code { id: u16, code: u8 },
}

/// A client's question.
#[derive(Debug)]
pub(crate) struct Query {
    pub id: u16,
    /// The client's wish for recursion, which answers repeat.
    pub recursion: bool,
    pub question: Question,
    /// Largest answer over UDP.
    pub room: usize,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A name that is written out, as the name of a question is.
    fn name(&mut self) -> Option<Box<str>> {
        let mut name = String::new();
        loop {
            let length = usize::from(self.u8()?);
            if length == 0 {
                return Some(name.into());
            }
            if length > MAX_LABEL {
                return None;
            }
            let label = self.take(length)?;
            if !label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
                return None;
            }
            if !name.is_empty() {
                name.push('.');
            }
            name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
            if name.len() > MAX_NAME {
                return None;
            }
        }
    }

    /// Passes a name, which may end in a pointer.
    fn skip_name(&mut self) -> Option<()> {
        loop {
            match self.u8()? {
                0 => return Some(()),
                length @ 1..=63 => {
                    self.take(usize::from(length))?;
                }
                192.. => {
                    self.u8()?;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn question(&mut self) -> Option<Question> {
        let name = self.name()?;
        let kind = self.u16()?;
        (self.u16()? == CLASS_IN).then_some(Question { name, kind })
    }

    fn record(&mut self) -> Option<Record<'a>> {
        self.skip_name()?;
        let kind = self.u16()?;
        let class = self.u16()?;
        let ttl_at = self.at;
        let ttl = self.u32()?;
        let length = usize::from(self.u16()?);
        Some(Record { kind, class, ttl_at, ttl, data: self.take(length)? })
    }
}

struct Record<'a> {
    kind: u16,
    class: u16,
    ttl_at: usize,
    ttl: u32,
    data: &'a [u8],
}

/// Reads a client's message.
pub(crate) fn read_query(bytes: &[u8]) -> Result<Query, BadQuery> {
    let mut reader = Reader { bytes, at: 0 };
    let id = reader.u16().ok_or(BadQuery::Ignore)?;
    let flags = reader.u16().ok_or(BadQuery::Ignore)?;
    if flags & 0x8000 != 0 {
        return Err(BadQuery::Ignore);
    }
    let refuse = |code| BadQuery::Code { id, code };
    if flags & 0x7800 != 0 {
        return Err(refuse(code::UNKNOWN));
    }
    let counts = (|| Some((reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?)))();
    let Some((1, 0, 0, additional @ 0..=1)) = counts else { return Err(refuse(code::FORMAT)) };
    let question = reader.question().ok_or(refuse(code::FORMAT))?;
    let mut room = PLAIN_UDP;
    if additional == 1 {
        let record = reader.record().ok_or(refuse(code::FORMAT))?;
        if record.kind != OPT {
            return Err(refuse(code::FORMAT));
        }
        room = usize::from(record.class).clamp(PLAIN_UDP, MAX_UDP);
    }
    if reader.at != bytes.len() {
        return Err(refuse(code::FORMAT));
    }
    Ok(Query { id, recursion: flags & 0x0100 != 0, question, room })
}

fn put_name(name: &str, into: &mut Vec<u8>) {
    for label in name.split('.').filter(|label| !label.is_empty()) {
        into.push(u8::try_from(label.len()).unwrap_or(0));
        into.extend_from_slice(label.as_bytes());
    }
    into.push(0);
}

fn put_question(question: &Question, into: &mut Vec<u8>) {
    put_name(&question.name, into);
    into.extend_from_slice(&question.kind.to_be_bytes());
    into.extend_from_slice(&CLASS_IN.to_be_bytes());
}

/// The question to a server.
pub(crate) fn write_query(id: u16, question: &Question) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + question.name.len() + 17);
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&[0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1]);
    put_question(question, &mut bytes);
    // An empty extension that says how large an answer may be.
    let [high, low] = u16::try_from(MAX_UDP).unwrap_or(512).to_be_bytes();
    bytes.extend_from_slice(&[0, 0, 41, high, low, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// An answer that can be kept and given to anybody.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub code: u8,
    /// Every address of the answer, judged by nobody.
    pub addresses: Vec<IpAddr>,
    /// Seconds for which the answer holds.
    pub ttl: u32,
    /// The sections behind the question, up to the additional records, with the number of records in each.
    body: Box<[u8]>,
    counts: [u16; 2],
    /// Where in `body` the lifetimes of records stand.
    ttls: Box<[u16]>,
}

/// What a server said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Reply(Reply),
    /// The answer is too large for UDP.
    Truncated,
}

impl Reply {
    /// A reply without records.
    pub(crate) fn empty(code: u8) -> Self {
        Self { code, addresses: Vec::new(), ttl: 0, body: Box::default(), counts: [0; 2], ttls: Box::default() }
    }

    /// A reply with these addresses for the name in the question.
    pub(crate) fn of_addresses(addresses: Vec<IpAddr>, shown: &[IpAddr], ttl: u32) -> Self {
        let (mut body, mut ttls) = (Vec::new(), Vec::new());
        for address in shown {
            let (kind, data) = match address {
                IpAddr::V4(v4) => (A, v4.octets().to_vec()),
                IpAddr::V6(v6) => (AAAA, v6.octets().to_vec()),
            };
            // The name is the one of the question.
            body.extend_from_slice(&[0xc0, 12]);
            body.extend_from_slice(&kind.to_be_bytes());
            body.extend_from_slice(&CLASS_IN.to_be_bytes());
            ttls.push(u16::try_from(body.len()).unwrap_or(0));
            body.extend_from_slice(&ttl.to_be_bytes());
            body.extend_from_slice(&u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
            body.extend_from_slice(&data);
        }
        let counts = [u16::try_from(shown.len()).unwrap_or(0), 0];
        Self { code: code::OK, addresses, ttl, body: body.into(), counts, ttls: ttls.into() }
    }

    /// The reply for one client, `age` seconds after it was made. One that is larger than `room` says so and
    /// has no records.
    pub(crate) fn write(&self, query: &Query, age: u32, room: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + query.question.name.len() + 6 + self.body.len());
        bytes.extend_from_slice(&query.id.to_be_bytes());
        bytes.extend_from_slice(&[0x80 | u8::from(query.recursion), 0x80 | self.code, 0, 1]);
        for count in self.counts {
            bytes.extend_from_slice(&count.to_be_bytes());
        }
        bytes.extend_from_slice(&[0, 0]);
        put_question(&query.question, &mut bytes);
        let start = bytes.len();
        bytes.extend_from_slice(&self.body);
        if bytes.len() > room {
            bytes.truncate(start);
            bytes[2] |= 0x02;
            bytes[6..10].fill(0);
            return bytes;
        }
        for place in &self.ttls {
            let at = start + usize::from(*place);
            if let Some(ttl) = bytes.get_mut(at..at + 4) {
                let left = u32::from_be_bytes([ttl[0], ttl[1], ttl[2], ttl[3]]).saturating_sub(age);
                ttl.copy_from_slice(&left.to_be_bytes());
            }
        }
        bytes
    }
}

/// The answer to a message that is no question.
pub(crate) fn refuse(id: u16, code: u8) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    bytes[2] = 0x80;
    bytes[3] = 0x80 | code;
    bytes
}

/// Reads what a server said to `question`; nothing when it is no answer to that. `shows` says which
/// addresses clients may be told.
pub(crate) fn read_answer(bytes: &[u8], id: u16, question: &Question, shows: impl Fn(IpAddr) -> bool) -> Option<Said> {
    let mut reader = Reader { bytes, at: 0 };
    let ours = reader.u16()? == id;
    let flags = reader.u16()?;
    let [questions, answers, authorities, _additional] = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
    if !ours || flags & 0xf800 != 0x8000 || questions != 1 || reader.question()? != *question {
        return None;
    }
    if flags & 0x0200 != 0 {
        return Some(Said::Truncated);
    }
    let start = reader.at;
    let code = u8::try_from(flags & 0x000f).ok()?;
    let (mut addresses, mut ttls) = (Vec::new(), Vec::new());
    let (mut ttl, mut negative_ttl) = (MAX_TTL, None);
    for _ in 0..answers {
        let record = reader.record()?;
        ttl = ttl.min(record.ttl);
        ttls.push(u16::try_from(record.ttl_at - start).ok()?);
        match (record.kind, record.data.len()) {
            (A, 4) => addresses.push(<[u8; 4]>::try_from(record.data).map(Ipv4Addr::from).ok()?.into()),
            (AAAA, 16) => addresses.push(<[u8; 16]>::try_from(record.data).map(Ipv6Addr::from).ok()?.into()),
            (A | AAAA, _) => return None,
            _ => {}
        }
        let asked = record.class == CLASS_IN && (record.kind == question.kind || record.kind == CNAME);
        if !asked {
            return None;
        }
    }
    for _ in 0..authorities {
        let record = reader.record()?;
        ttls.push(u16::try_from(record.ttl_at - start).ok()?);
        if record.kind == SOA {
            let minimum = record.data.last_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))?;
            negative_ttl = Some(record.ttl.min(minimum).min(MAX_NEGATIVE_TTL));
        }
    }
    let ttl = if answers == 0 { negative_ttl.unwrap_or(0) } else { ttl };
    let reply = if question.wants_addresses() && !addresses.is_empty() {
        let shown: Vec<IpAddr> = addresses.iter().copied().filter(|address| shows(*address)).collect();
        Reply::of_addresses(addresses, &shown, ttl)
    } else {
        let body = bytes.get(start..reader.at)?.into();
        Reply { code, addresses, ttl, body, counts: [answers, authorities], ttls: ttls.into() }
    };
    Some(Said::Reply(reply))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question(name: &str, kind: u16) -> Question {
        Question { name: name.into(), kind }
    }

    fn record(kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xc0, 12];
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&CLASS_IN.to_be_bytes());
        bytes.extend_from_slice(&ttl.to_be_bytes());
        bytes.extend_from_slice(&u16::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn answer(id: u16, question: &Question, records: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = id.to_be_bytes().to_vec();
        bytes.extend_from_slice(&[0x81, 0x80, 0, 1, 0, u8::try_from(records.len()).unwrap(), 0, 0, 0, 0]);
        put_question(question, &mut bytes);
        bytes.extend(records.concat());
        bytes
    }

    #[test]
    fn a_question_reads_as_it_was_written() {
        let asked = question("www.example.com", A);
        let query = read_query(&write_query(7, &asked)).unwrap();
        assert_eq!((query.id, query.recursion, query.room), (7, true, MAX_UDP));
        assert_eq!(query.question, asked);
    }

    #[test]
    fn what_is_no_ordinary_question_is_refused() {
        let mut update = write_query(7, &question("a.example", A));
        update[2] = 0x28;
        assert_eq!(read_query(&update).unwrap_err(), BadQuery::Code { id: 7, code: code::UNKNOWN });
        let mut reply = write_query(7, &question("a.example", A));
        reply[2] |= 0x80;
        assert_eq!(read_query(&reply).unwrap_err(), BadQuery::Ignore);
        let mut padded = write_query(7, &question("a.example", A));
        padded.extend_from_slice(b"more");
        assert_eq!(read_query(&padded).unwrap_err(), BadQuery::Code { id: 7, code: code::FORMAT });
        // ANY, AXFR, IXFR, NULL.
        for kind in [255, 252, 251, 10] {
            assert!(!question("a.example", kind).is_ordinary());
        }
        let long = [&"a".repeat(60)[..]; 5].join(".");
        assert!(read_query(&write_query(7, &question(&long, A))).is_err());
    }

    #[test]
    fn addresses_that_clients_may_not_see_are_taken_out() {
        let asked = question("rebind.example", A);
        let alias = record(CNAME, 5, &[0xc0, 12]);
        let bytes = answer(9, &asked, &[alias, record(A, 60, &[10, 0, 0, 5]), record(A, 60, &[93, 184, 216, 34])]);
        let shows = |address: IpAddr| address != IpAddr::from([10, 0, 0, 5]);
        let Some(Said::Reply(reply)) = read_answer(&bytes, 9, &asked, shows) else { panic!("no answer") };
        assert_eq!((reply.addresses.len(), reply.ttl), (2, 5));
        let query = read_query(&write_query(1, &asked)).unwrap();
        let written = reply.write(&query, 2, MAX_UDP);
        assert_eq!(&written[6..8], [0, 1]);
        let end = [0, 0, 0, 3, 0, 4, 93, 184, 216, 34];
        assert!(written.ends_with(&end), "{written:?}");
        // Too large for the client: the question and the sign alone.
        let cut = reply.write(&query, 0, 40);
        assert_eq!((cut[2] & 0x02, cut[7]), (2, 0));
    }

    #[test]
    fn an_answer_to_something_else_is_none() {
        let asked = question("a.example", A);
        let good = answer(9, &asked, &[record(A, 60, &[1, 1, 1, 1])]);
        let read = |bytes: &[u8], id| read_answer(bytes, id, &asked, |_| true);
        assert!(read(&good, 9).is_some());
        assert!(read(&good, 8).is_none());
        assert!(read(&answer(9, &question("b.example", A), &[]), 9).is_none());
        assert!(read(&answer(9, &asked, &[record(16, 60, b"\x01x")]), 9).is_none());
        assert!(read(&good[..good.len() - 1], 9).is_none());
        // An address smuggled into an answer about something else.
        let text = question("a.example", 16);
        let smuggled = answer(9, &text, &[record(16, 60, b"\x01x"), record(A, 60, &[10, 0, 0, 1])]);
        assert!(read_answer(&smuggled, 9, &text, |_| true).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = read_query(&bytes);
            let asked = question("a.example", A);
            let mut whole = answer(9, &asked, &[]);
            whole[7] = 3;
            whole[9] = 2;
            whole.extend_from_slice(&bytes);
            if let Some(Said::Reply(reply)) = read_answer(&whole, 9, &asked, |_| true) {
                let query = read_query(&write_query(1, &asked)).unwrap();
                let _ = reply.write(&query, 1, MAX_UDP);
            }
        }

        #[test]
        fn names_read_as_they_were_written(name in "[a-z0-9_-]{1,20}(\\.[a-z0-9_-]{1,20}){0,5}") {
            let asked = question(&name, AAAA);
            prop_assert_eq!(read_query(&write_query(3, &asked)).unwrap().question, asked);
        }
    }
}
