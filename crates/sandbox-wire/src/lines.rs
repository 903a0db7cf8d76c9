//! Lines of a byte stream, whatever pieces it arrives in, with a bound on each line.
//!
//! Both streams of this room stand on it, and so do the protocols that agent runtimes speak on their
//! standard output: their records are lines too, bounded by [`crate::limits::MAX_PROTOCOL_RECORD`].

/// What ends the reading of lines. Nothing after it is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// Longer than the bound, whether its end has come or not.
    #[error("a record of the stream is longer than {limit} bytes")]
    TooLong {
        /// The bound in bytes.
        limit: usize,
    },
    /// The stream ended inside a record.
    #[error("the stream ended inside a record")]
    Incomplete,
}

/// Cuts a stream at line feeds. Holds at most one unfinished line.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    part: Vec<u8>,
    failed: Option<BadLine>,
}

impl Lines {
    /// Lines of at most `limit` bytes, the line feed not counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, part: Vec::new(), failed: None }
    }

    /// Takes the next bytes and hands every line they complete to `each`, without its line feed.
    /// `each` may end the reading with an error of its own.
    ///
    /// # Errors
    /// [`BadLine::TooLong`], now and at every later call.
    pub fn push<E: From<BadLine>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.part.len() + line.len() > self.limit {
                return Err(self.too_long().into());
            }
            if self.part.is_empty() {
                each(line)?;
            } else {
                self.part.extend_from_slice(line);
                let whole = std::mem::take(&mut self.part);
                each(&whole)?;
                self.part = whole;
                self.part.clear();
            }
        }
        if self.part.len() + bytes.len() > self.limit {
            return Err(self.too_long().into());
        }
        self.part.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream ended.
    ///
    /// # Errors
    /// [`BadLine::Incomplete`] when it ended inside a line, and the error of an earlier call.
    pub fn finish(&self) -> Result<(), BadLine> {
        match self.failed {
            Some(failed) => Err(failed),
            None if self.part.is_empty() => Ok(()),
            None => Err(BadLine::Incomplete),
        }
    }

    /// What has come of a line that has not ended.
    #[must_use]
    pub fn unfinished(&self) -> &[u8] {
        &self.part
    }

    fn too_long(&mut self) -> BadLine {
        let failed = BadLine::TooLong { limit: self.limit };
        self.failed = Some(failed);
        self.part = Vec::new();
        failed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(lines: &mut Lines, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), BadLine>) {
        let mut found = Vec::new();
        for piece in pieces {
            let answer = lines.push::<BadLine>(piece, |line| {
                found.push(line.to_vec());
                Ok(())
            });
            if answer.is_err() {
                return (found, answer);
            }
        }
        (found, lines.finish())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            lines in prop::collection::vec(prop::collection::vec(prop::num::u8::ANY.prop_filter("no line feed", |b| *b != b'\n'), 0..20), 0..8),
            cuts in prop::collection::vec(0usize..160, 0..8),
        ) {
            let stream: Vec<u8> = lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let (found, end) = collect(&mut Lines::new(20), &pieces);
            prop_assert_eq!(found, lines);
            prop_assert_eq!(end, Ok(()));
        }
    }

    #[test]
    fn a_line_is_bounded_whether_it_ends_or_not() {
        for pieces in [&[b"abc\nabcdef\n".as_slice()][..], &[b"abc\nabcd".as_slice(), b"ef"][..]] {
            let mut lines = Lines::new(5);
            let (found, end) = collect(&mut lines, pieces);
            assert_eq!(found, [b"abc"]);
            assert_eq!(end, Err(BadLine::TooLong { limit: 5 }));
            assert_eq!(collect(&mut lines, &[b"a\n"]).1, Err(BadLine::TooLong { limit: 5 }), "it stays failed");
        }
        let (found, end) = collect(&mut Lines::new(5), &[b"abc\nab"]);
        assert_eq!((found.len(), end), (1, Err(BadLine::Incomplete)));
    }
}
