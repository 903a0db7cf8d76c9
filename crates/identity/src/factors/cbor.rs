//! The little of CBOR (RFC 8949) that passkeys are written in: what is read is bounded, and nothing is built.

/// How deep lists and maps may lie inside each other.
const DEPTH: u8 = 8;

/// What stands at the front of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A whole number.
    Int(i64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// Anything else, which was skipped.
    Other,
}

/// Reads a map of items from the front of `bytes` and calls `entry` for each of its entries; answers how long the map is.
/// `None`: it is no such map. Lengths that are told at the end, which authenticators do not use, are no such map.
pub(crate) fn map<'a>(bytes: &'a [u8], mut entry: impl FnMut(Item<'a>, Item<'a>)) -> Option<usize> {
    let mut reader = Reader { rest: bytes };
    let (5, count) = reader.head()? else { return None };
    for _ in 0..count {
        let key = reader.item(DEPTH)?;
        let value = reader.item(DEPTH)?;
        entry(key, value);
    }
    Some(bytes.len() - reader.rest.len())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// The major type and its number.
    fn head(&mut self) -> Option<(u8, u64)> {
        let first = *self.take(1)?.first()?;
        let number = match first & 0x1f {
            small @ 0..=23 => u64::from(small),
            wide @ 24..=27 => {
                self.take(1 << (wide - 24))?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
            _ => return None,
        };
        Some((first >> 5, number))
    }

    fn item(&mut self, depth: u8) -> Option<Item<'a>> {
        let (major, number) = self.head()?;
        Some(match major {
            0 => Item::Int(i64::try_from(number).ok()?),
            1 => Item::Int(-1 - i64::try_from(number).ok()?),
            2 => Item::Bytes(self.take(number)?),
            3 => Item::Text(std::str::from_utf8(self.take(number)?).ok()?),
            4 | 5 => {
                let depth = depth.checked_sub(1)?;
                // Each entry takes a byte at least, so what is read bounds the rounds.
                for _ in 0..number.checked_mul(u64::from(major - 3))? {
                    self.item(depth)?;
                }
                Item::Other
            }
            6 => {
                self.item(depth.checked_sub(1)?)?;
                Item::Other
            }
            _ => Item::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(bytes: &[u8]) -> Option<(usize, Vec<(Item<'_>, Item<'_>)>)> {
        let mut found = Vec::new();
        let length = map(bytes, |key, value| found.push((key, value)))?;
        Some((length, found))
    }

    #[test]
    fn a_map_is_read_and_what_follows_it_is_left() {
        // {"a": h'0102', -2: 500, 3: [1, {}], "t": true} and two bytes more
        let bytes = b"\xa4\x61a\x42\x01\x02\x21\x19\x01\xf4\x03\x82\x01\xa0\x61t\xf5\x99\x99";
        let (length, found) = entries(bytes).unwrap();
        assert_eq!(length, bytes.len() - 2);
        assert_eq!(
            found,
            [
                (Item::Text("a"), Item::Bytes(&[1, 2])),
                (Item::Int(-2), Item::Int(500)),
                (Item::Int(3), Item::Other),
                (Item::Text("t"), Item::Other),
            ]
        );
    }

    #[test]
    fn what_promises_more_than_it_has_is_no_map() {
        for bytes in [
            &b""[..],
            b"\x80",
            b"\xa1\x01",
            b"\xbf\xff",
            b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xa1\x01\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xa1\x01\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xa1\x01\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(entries(bytes), None, "{bytes:02x?}");
        }
        let deep = [&[0xa1, 0x01][..], &[0x81; 100_000], &[0x01]].concat();
        assert_eq!(entries(&deep), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some((length, found)) = entries(&bytes) {
                prop_assert!(length <= bytes.len());
                prop_assert!(found.len() <= bytes.len());
            }
        }
    }
}
