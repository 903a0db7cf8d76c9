//! Bodies that say the length of each of their pieces.
//!
//! They are taken apart and put together anew, so that what goes on has one meaning only: extensions of
//! pieces and fields behind the last one are dropped.

use super::head::Malformed;

/// Longest line with the length of a piece.
const MAX_SIZE_LINE: usize = 256;

/// Most bytes of fields behind the last piece.
const MAX_TRAILERS: usize = 16 << 10;

/// Reads a body in pieces.
#[derive(Debug)]
pub(crate) struct Pieces {
    state: State,
    /// Bytes of the line, or of all trailing lines, so far.
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the digits of a length.
    Size {
        digits: u8,
        size: u64,
    },
    /// Behind the digits, in what is ignored.
    Extension(u64),
    /// Behind the carriage return of the line with the length.
    SizeEnd(u64),
    Data(u64),
    DataReturn,
    DataEnd,
    /// In a line behind the last piece, which is empty so far or not.
    Trailer {
        empty: bool,
    },
    TrailerEnd {
        empty: bool,
    },
    Done,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fed<'a> {
    /// How many bytes were used up, `data` included.
    pub used: usize,
    /// What of them is the body.
    pub data: &'a [u8],
}

impl Pieces {
    pub(crate) fn new() -> Self {
        Self { state: State::Size { digits: 0, size: 0 }, line: 0 }
    }

    /// Whether the body is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads up to the end of `bytes`, of a stretch of data, or of the body, whichever comes first.
    pub(crate) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Result<Fed<'a>, Malformed> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.state {
                State::Data(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                    let left = left - taken as u64;
                    self.state = if left == 0 { State::DataReturn } else { State::Data(left) };
                    return Ok(Fed { used: at + taken, data: &bytes[at..at + taken] });
                }
                State::Done => break,
                _ => self.step(byte)?,
            }
            at += 1;
        }
        Ok(Fed { used: at, data: &[] })
    }

    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        self.line += 1;
        let bound = if matches!(self.state, State::Trailer { .. } | State::TrailerEnd { .. }) {
            MAX_TRAILERS
        } else {
            MAX_SIZE_LINE
        };
        if self.line > bound {
            return Err(Malformed::Chunk);
        }
        self.state = match (self.state, byte) {
            (State::Size { digits: 1.., size }, b'\r') | (State::Extension(size), b'\r') => State::SizeEnd(size),
            (State::Size { digits: 1.., size }, b';') => State::Extension(size),
            (State::Size { digits: digits @ 0..15, size }, digit) => {
                let value = char::from(digit).to_digit(16).ok_or(Malformed::Chunk)?;
                State::Size { digits: digits + 1, size: size << 4 | u64::from(value) }
            }
            (State::Extension(size), other) if other != b'\n' && other != 0 => State::Extension(size),
            (State::SizeEnd(size), b'\n') => {
                self.line = 0;
                if size == 0 { State::Trailer { empty: true } } else { State::Data(size) }
            }
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => {
                self.line = 0;
                State::Size { digits: 0, size: 0 }
            }
            (State::Trailer { empty }, b'\r') => State::TrailerEnd { empty },
            (State::Trailer { .. }, other) if other != b'\n' && other != 0 => State::Trailer { empty: false },
            (State::TrailerEnd { empty: true }, b'\n') => State::Done,
            (State::TrailerEnd { empty: false }, b'\n') => State::Trailer { empty: true },
            _ => return Err(Malformed::Chunk),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The body of `bytes`, read `step` bytes at a time, and how much was used up.
    fn read(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), Malformed> {
        let (mut pieces, mut body, mut at) = (Pieces::new(), Vec::new(), 0);
        while at < bytes.len() && !pieces.is_done() {
            let fed = pieces.feed(&bytes[at..(at + step).min(bytes.len())])?;
            body.extend_from_slice(fed.data);
            at += fed.used;
        }
        if pieces.is_done() { Ok((body, at)) } else { Err(Malformed::LineEnd) }
    }

    #[test]
    fn a_length_that_could_be_read_differently_is_refused() {
        for bytes in [
            "5\nhello\r\n0\r\n\r\n",
            "5 \r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "\r\nhello\r\n0\r\n\r\n",
            ";a\r\nhello\r\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "fffffffffffffffff\r\nhello",
            "0\r\nX: a\n\r\n",
        ] {
            assert_eq!(read(bytes.as_bytes(), 3), Err(Malformed::Chunk), "{bytes:?}");
        }
        assert_eq!(read(format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(300)).as_bytes(), 9), Err(Malformed::Chunk));
        assert_eq!(read(format!("0\r\n{}\r\n", "X: a\r\n".repeat(5_000)).as_bytes(), 9), Err(Malformed::Chunk));
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_in_any_division(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6), step in 1_usize..50, tail in "[ -~]{0,9}") {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend_from_slice(format!("{:x};x=y\r\n", part.len()).as_bytes());
                bytes.extend_from_slice(part);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
            let length = bytes.len();
            bytes.extend_from_slice(tail.as_bytes());
            prop_assert_eq!(read(&bytes, step), Ok((parts.concat(), length)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1_usize..50) {
            let _ = read(&bytes, step);
        }
    }
}
