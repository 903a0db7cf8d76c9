//! Codes of authenticator apps (RFC 6238): SHA-1, six digits, a new one every 30 seconds.

use chrono::{DateTime, Utc};
use tale_core::crypto::{constant_time_eq, hmac_sha1};

/// Bytes of a secret: what RFC 4226 recommends, and 32 characters to type.
pub(crate) const SECRET_BYTES: usize = 20;
/// Seconds that a code lasts.
const STEP: i64 = 30;
/// Steps before and after the present one that count too, for clocks that are off.
const SKEW: i64 = 1;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The code of a step.
fn code_at(secret: &[u8], step: i64) -> String {
    let mac = hmac_sha1(secret, &step.to_be_bytes());
    let at = usize::from(mac[19] & 0x0f);
    let word = u32::from_be_bytes([mac[at] & 0x7f, mac[at + 1], mac[at + 2], mac[at + 3]]);
    format!("{:06}", word % 1_000_000)
}

/// The step whose code `typed` is, of those that count at `now` and are later than `last`: a code is accepted
/// once. Blanks in `typed` are skipped.
pub(crate) fn step_of(secret: &[u8], typed: &str, now: DateTime<Utc>, last: i64) -> Option<i64> {
    let typed: String = typed.chars().filter(|c| !c.is_whitespace()).take(7).collect();
    let present = now.timestamp().div_euclid(STEP);
    // Each of them is looked at, whichever fits.
    let fitting = (present - SKEW..=present + SKEW)
        .filter(|step| constant_time_eq(code_at(secret, *step).as_bytes(), typed.as_bytes()))
        .filter(|step| *step > last);
    fitting.max()
}

/// Base32 (RFC 4648) without padding, as authenticator apps take it.
pub(crate) fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut word = [0u8; 8];
        word[3..3 + chunk.len()].copy_from_slice(chunk);
        let word = u64::from_be_bytes(word);
        for at in 0..(chunk.len() * 8).div_ceil(5) {
            text.push(char::from(ALPHABET[(word >> (35 - at * 5)) as usize & 31]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: &[u8] = b"12345678901234567890";

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 6238, appendix B, to six digits.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
        ] {
            assert_eq!(step_of(RFC, code, at(seconds), 0), Some(seconds / 30), "{seconds}");
        }
    }

    #[test]
    fn a_clock_may_be_one_step_off_and_no_more() {
        let now = 1_111_111_111;
        let step = now / 30;
        for (off, counts) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] {
            let code = code_at(RFC, step + off);
            assert_eq!(step_of(RFC, &code, at(now), 0).is_some(), counts, "{off}");
        }
    }

    #[test]
    fn a_code_that_was_used_and_those_before_it_count_no_more() {
        let now = 1_111_111_111;
        let step = now / 30;
        assert_eq!(step_of(RFC, &code_at(RFC, step), at(now), step), None);
        assert_eq!(step_of(RFC, &code_at(RFC, step - 1), at(now), step), None);
        assert_eq!(step_of(RFC, &code_at(RFC, step + 1), at(now), step), Some(step + 1));
    }

    #[test]
    fn codes_may_be_typed_with_blanks_and_nothing_else() {
        for (typed, counts) in [
            ("050 471", true),
            (" 050471\n", true),
            ("50471", false),
            ("0504710", false),
            ("", false),
            ("٠٥٠٤٧١", false),
        ] {
            assert_eq!(step_of(RFC, typed, at(1_111_111_111), 0).is_some(), counts, "{typed:?}");
        }
    }

    #[test]
    fn secrets_are_written_as_the_standard_says() {
        for (plain, text) in [("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foobar", "MZXW6YTBOI")] {
            assert_eq!(base32(plain.as_bytes()), text);
        }
    }
}
