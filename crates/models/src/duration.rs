//! How long a recording is, read from the heads of its file (MOD-65, MOD-87).
//!
//! Nothing is decoded and little is read: the length is the basis of an estimate, and the provider's own count takes
//! its place. What no reader understands is as long as its bytes would be at a bit rate at which nobody understands a
//! word any more.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Most that is read of the beginning and of the end of a file.
const WINDOW: u64 = 256 << 10;
/// Bytes of a second of the most economical speech.
const LEAST_RATE: u64 = 750;
/// Bytes of a second that a file without a readable length is taken to have.
const LIKELY_RATE: u64 = 2_000;
/// Most boxes or chunks of a file that are passed over.
const MAX_STEPS: usize = 1_000;

/// The length of a recording in seconds, as far as it can be told without hearing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Length {
    /// As the file says, or as its size makes likely.
    pub seconds: u64,
    /// The longest that so many bytes can be: no claim beyond it is believed.
    pub most: u64,
}

/// Measures the file at `path` of `size` bytes.
pub(crate) async fn length(path: &Path, size: u64) -> Length {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut file = std::fs::File::open(path).ok()?;
        seconds(&mut file, size)
    });
    let told = read.await.ok().flatten().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    let most = (size / LEAST_RATE).saturating_add(60);
    let seconds = told.map_or(size.div_ceil(LIKELY_RATE), whole);
    Length { seconds: seconds.min(most), most }
}

/// Seconds, rounded up.
pub(crate) fn whole(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
    let whole = seconds.ceil() as u64;
    whole
}

fn seconds(file: &mut (impl Read + Seek), size: u64) -> Option<f64> {
    let head = window(file, 0)?;
    match head.get(..12)? {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => wav(&head, size),
        [b'f', b'L', b'a', b'C', ..] => flac(&head),
        [b'O', b'g', b'g', b'S', ..] => ogg(&head, &window(file, size.saturating_sub(WINDOW))?),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => mp4(file, size),
        _ => mp3(file, &head, size),
    }
}

fn window(file: &mut (impl Read + Seek), from: u64) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(WINDOW).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn ratio(count: u64, rate: u64) -> Option<f64> {
    (rate > 0).then(|| count as f64 / rate as f64)
}

/// Bytes of sound by bytes of a second.
fn wav(head: &[u8], size: u64) -> Option<f64> {
    let (mut at, mut rate) = (12_usize, None);
    for _ in 0..MAX_STEPS {
        let length = le32(head, at + 4)? as usize;
        match head.get(at..at + 4)? {
            b"fmt " => rate = le32(head, at + 16),
            // A recorder that was cut off, or streamed, says nothing or everything.
            b"data" => {
                let there = size.saturating_sub(at as u64 + 8);
                let told = if matches!(length, 0 | 0xffff_ffff) { there } else { (length as u64).min(there) };
                return ratio(told, rate?.into());
            }
            _ => {}
        }
        at = at.checked_add(8)?.checked_add(length)?.checked_add(length % 2)?;
    }
    None
}

/// Samples and their rate, from the block that comes first.
fn flac(head: &[u8]) -> Option<f64> {
    let info = head.get(18..26)?;
    let rate = u64::from(be32(info, 0)? >> 12);
    let samples = u64::from(info[3] & 0x0f) << 32 | u64::from(be32(info, 4)?);
    (samples > 0).then(|| ratio(samples, rate))?
}

/// The position of the last page by the rate of the first.
fn ogg(head: &[u8], tail: &[u8]) -> Option<f64> {
    let at = |needle: &[u8]| head.windows(needle.len()).take(512).position(|some| some == needle);
    let rate = match (at(b"OpusHead"), at(b"\x01vorbis")) {
        (Some(_), _) => 48_000,
        (None, Some(at)) => le32(head, at + 12)?,
        (None, None) => return None,
    };
    let last = tail.windows(4).rposition(|some| some == b"OggS")?;
    let position = u64::from_le_bytes(tail.get(last + 6..last + 14)?.try_into().ok()?);
    (position != u64::MAX).then(|| ratio(position, rate.into()))?
}

/// The duration that the movie's header tells, wherever in the file it stands.
fn mp4(file: &mut (impl Read + Seek), size: u64) -> Option<f64> {
    let (mut at, mut end) = (0_u64, size);
    for _ in 0..MAX_STEPS {
        if at.checked_add(8)? > end {
            return None;
        }
        let head = window_of(file, at, 48)?;
        let (length, own) = match be32(&head, 0)? {
            0 => (end - at, 8),
            1 => (u64::from_be_bytes(head.get(8..16)?.try_into().ok()?), 16),
            length => (u64::from(length), 8),
        };
        match head.get(4..8)? {
            b"moov" => (at, end) = (at.checked_add(own)?, at.checked_add(length)?.min(size)),
            b"mvhd" => {
                let head = head.get(usize::try_from(own).ok()?..)?;
                let (rate, count) = match head.first()? {
                    0 => (be32(head, 12)?, u64::from(be32(head, 16)?)),
                    _ => (be32(head, 20)?, u64::from_be_bytes(head.get(24..32)?.try_into().ok()?)),
                };
                let told = !matches!(count, 0 | 0xffff_ffff | u64::MAX);
                return told.then(|| ratio(count, rate.into()))?;
            }
            _ if length < own => return None,
            _ => at = at.checked_add(length)?,
        }
    }
    None
}

fn window_of(file: &mut (impl Read + Seek), from: u64, length: u64) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Kilobits in a second of layer 3, of version 1 and of the versions after it.
const RATES: [[u64; 15]; 2] = [
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// Frames, where the first one counts them, else bytes by the first one's rate.
fn mp3(file: &mut (impl Read + Seek), head: &[u8], size: u64) -> Option<f64> {
    let start = match head.get(..10)? {
        [b'I', b'D', b'3', _, _, _, sizes @ ..] => {
            10 + sizes.iter().fold(0_u64, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
        }
        _ => 0,
    };
    let frames = window(file, start)?;
    let at = frames.windows(4).take(8_192).position(|some| {
        some[0] == 0xff && some[1] & 0xe6 == 0xe2 && some[2] >> 4 < 15 && some[2] >> 4 > 0 && some[2] >> 2 & 3 < 3
    })?;
    let frame = frames.get(at..)?;
    let version = frame[1] >> 3 & 3;
    let one = version == 3;
    let rate = [44_100, 48_000, 32_000][usize::from(frame[2] >> 2 & 3)]
        / if one {
            1
        } else if version == 2 {
            2
        } else {
            4
        };
    let mono = frame[3] >> 6 == 3;
    let side = 4 + match (one, mono) {
        (true, false) => 32,
        (true, true) | (false, false) => 17,
        (false, true) => 9,
    };
    let tag = frame.get(side..side + 4)?;
    if (tag == b"Xing" || tag == b"Info") && be32(frame, side + 4)? & 1 == 1 {
        let samples = u64::from(be32(frame, side + 8)?) * if one { 1_152 } else { 576 };
        return ratio(samples, rate);
    }
    let bytes = RATES[usize::from(!one)][usize::from(frame[2] >> 4)] * (1_000 / 8);
    ratio(size.saturating_sub(start + at as u64), bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn told(bytes: &[u8], size: u64) -> Option<u64> {
        seconds(&mut Cursor::new(bytes), size).map(whole)
    }

    fn chunk(name: &[u8], body: &[u8]) -> Vec<u8> {
        [name, &u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
    }

    fn boxed(name: &[u8], body: &[u8]) -> Vec<u8> {
        [&u32::try_from(body.len() + 8).unwrap().to_be_bytes(), name, body].concat()
    }

    #[test]
    fn each_container_tells_its_length() {
        let format = [&[1, 0, 1, 0][..], &16_000_u32.to_le_bytes(), &32_000_u32.to_le_bytes(), &[2, 0, 16, 0]].concat();
        let wave =
            |data: &[u8]| [b"RIFF\0\0\0\0WAVE", &chunk(b"LIST", b"x\0")[..], &chunk(b"fmt ", &format), data].concat();
        assert_eq!(told(&wave(&chunk(b"data", &vec![0; 96_000])), 1 << 20), Some(3));
        // Streamed: the length of what follows is unknown.
        let open = wave(b"data\xff\xff\xff\xff");
        assert_eq!(told(&open, open.len() as u64 + 64_000), Some(2));

        let mut info = [0; 34];
        info[10..18].copy_from_slice(&[0x0a, 0xc4, 0x42, 0xf0, 0, 0x0d, 0x79, 0x50]);
        let flac = [b"fLaC\0\0\0\x22", &info[..]].concat();
        assert_eq!(told(&flac, 5_000), Some(21), "883,024 samples at 44,100");

        let page = |position: u64, body: &[u8]| [b"OggS\0\0", &position.to_le_bytes()[..], &[0; 12], body].concat();
        let opus = [page(0, b"OpusHead\x01\x01"), page(48_000 * 9, b"x")].concat();
        assert_eq!(told(&opus, opus.len() as u64), Some(9));

        let header = [&[0; 12][..], &1_000_u32.to_be_bytes(), &61_500_u32.to_be_bytes(), &[0; 80]].concat();
        let movie = boxed(b"moov", &boxed(b"mvhd", &header));
        let late = [boxed(b"ftyp", b"M4A \0\0\0\0"), boxed(b"mdat", &[7; 4_000]), movie].concat();
        assert_eq!(told(&late, late.len() as u64), Some(62));

        let frame = [&[0xff, 0xfb, 0x90, 0x00][..], &[0; 60]].concat();
        assert_eq!(told(&[b"ID3\x04\0\0\0\0\0\x02xx", &frame[..]].concat(), 128_000 / 8 * 30), Some(30));
        let mut counted = frame;
        counted[36..40].copy_from_slice(b"Xing");
        counted[40..48].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0x03, 0xe8]);
        assert_eq!(told(&counted, 9), Some(27), "1,000 frames");
    }

    #[tokio::test]
    async fn a_file_that_says_nothing_is_as_long_as_its_bytes_make_likely() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.webm");
        std::fs::write(&path, vec![0; 60_000]).unwrap();
        assert_eq!(length(&path, 60_000).await, Length { seconds: 30, most: 140 });
        // A claim that its bytes cannot hold is not believed.
        let header = [&[0; 12][..], &1_u32.to_be_bytes(), &900_000_u32.to_be_bytes(), &[0; 80]].concat();
        let file = [boxed(b"ftyp", b"M4A \0\0\0\0"), boxed(b"moov", &boxed(b"mvhd", &header))].concat();
        std::fs::write(&path, &file).unwrap();
        assert_eq!(length(&path, file.len() as u64).await, Length { seconds: 60, most: 60 });
        assert_eq!(length(&folder.path().join("gone"), 2_000).await, Length { seconds: 1, most: 62 });
    }

    #[test]
    fn no_size_of_a_file_is_too_large_to_reckon_with() {
        let frame = [&[0xff, 0xfb, 0x90, 0x00][..], &[0; 60]].concat();
        assert_eq!(told(&frame, u64::MAX), Some(u64::MAX / 16_000 + 1));
        let far = [&1_u32.to_be_bytes()[..], b"free", &(u64::MAX - 10).to_be_bytes()].concat();
        assert_eq!(told(&[boxed(b"ftyp", b"M4A \0\0\0\0"), far].concat(), u64::MAX), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_a_reader(
            head in 0..7_usize,
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            size in prop_oneof![0..1_000_u64, any::<u64>(), u64::MAX - 64..=u64::MAX],
        ) {
            let start: &[u8] =
                [&b"RIFF\0\0\0\0WAVE"[..], b"fLaC", b"OggS", b"\0\0\0\x08ftyp", b"ID3", b"\xff\xfb\x90", b""][head];
            let _ = told(&[start, &bytes].concat(), size);
        }
    }
}
