//! An incremental parser of `text/event-stream`.
//!
//! It works on bytes and decodes only whole lines, so a character split between two network reads
//! is never damaged, and any way of cutting the input gives the same events. Line ends may be LF,
//! CRLF or CR. A last event without its blank line still counts: several providers end that way.

/// One event of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The `event:` field, empty when absent.
    pub name: String,
    /// The `data:` fields, joined with line feeds.
    pub data: String,
}

/// One event or line is larger than the parser may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("one event of the stream is larger than {limit} bytes")]
pub struct SseTooLarge {
    /// The bound in bytes.
    pub limit: usize,
}

/// Cuts a byte stream into events. Holds at most `limit` bytes.
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

impl SseParser {
    /// A parser that refuses events larger than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { line: Vec::new(), event: SseEvent::default(), has_data: false, after_cr: false, at_start: true, limit }
    }

    /// Takes the next bytes and appends every event that they complete to `out`.
    ///
    /// # Errors
    /// [`SseTooLarge`] when a line or event outgrows the limit; the parser is of no use after that.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        while !bytes.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            match bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(end) => {
                    self.hold(&bytes[..end])?;
                    self.after_cr = bytes[end] == b'\r';
                    self.end_line(out)?;
                    bytes = &bytes[end + 1..];
                }
                None => {
                    self.hold(bytes)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Says that the input has ended, and appends what is left as a last event.
    ///
    /// # Errors
    /// [`SseTooLarge`] as for [`SseParser::push`].
    pub fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        self.dispatch(out);
        Ok(())
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), SseTooLarge> {
        if self.line.len() + self.event.data.len() + bytes.len() > self.limit {
            return Err(SseTooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        let mut line = self.line.as_slice();
        if self.at_start {
            self.at_start = false;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.line.clear();
            self.dispatch(out);
            return Ok(());
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(&String::from_utf8_lossy(value));
                if self.event.data.len() > self.limit {
                    return Err(SseTooLarge { limit: self.limit });
                }
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            // Comments (an empty field name), `id`, `retry` and unknown fields carry nothing for us.
            _ => {}
        }
        self.line.clear();
        Ok(())
    }

    fn dispatch(&mut self, out: &mut Vec<SseEvent>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            out.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::new(1 << 16);
        let mut out = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut out).unwrap();
        }
        parser.finish(&mut out).unwrap();
        out
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn every_line_ending_ends_a_line() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(parse(&[text.as_bytes()]), [event("", "a"), event("", "b")], "{text:?}");
        }
    }

    #[test]
    fn comments_ids_and_unknown_fields_are_passed_over() {
        let text = ": OPENROUTER PROCESSING\n\nid: 4\nretry: 10\nfoo\ndata:{\"x\": 1}\n\n:\n\n";
        assert_eq!(parse(&[text.as_bytes()]), [event("", "{\"x\": 1}")]);
    }

    #[test]
    fn several_data_lines_join_and_the_event_name_is_kept() {
        assert_eq!(parse(&[b"event: delta\ndata: one\ndata: two\n\n"]), [event("delta", "one\ntwo")]);
    }

    #[test]
    fn a_missing_final_newline_loses_nothing() {
        assert_eq!(parse(&[b"data: [DONE]"]), [event("", "[DONE]")]);
        assert_eq!(parse(&[b"\xef\xbb\xbfdata: a\n"]), [event("", "a")]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused() {
        let mut parser = SseParser::new(16);
        let mut out = Vec::new();
        assert!(parser.push(b"data: 0123456789abcdef", &mut out).is_err());
        let mut parser = SseParser::new(16);
        assert!((0..10).any(|_| parser.push(b"data: 01234\n", &mut out).is_err()));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in prop::collection::vec("(data: ?|event: |: |id: |)[ -~äß€🦀]{0,12}(\n|\r\n|\r|\n\n|\r\n\r\n)", 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text: String = lines.concat();
            let bytes = text.as_bytes();
            let whole = parse(&[bytes]);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.push(0);
            at.push(bytes.len());
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(parse(&pieces), whole.clone());
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(parse(&single), whole);
        }
    }
}
