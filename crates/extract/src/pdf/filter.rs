//! Unpacking the streams of a PDF.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, ZlibDecoder};

use super::object::{Dict, Object};
use crate::limits::PDF_STREAM_BYTES_MAX;
use crate::outcome::{Halt, malformed};

fn too_large<T>() -> Result<T, Halt> {
    malformed("A part of the PDF unpacks to more than a document may.")
}

/// Unpacks with one filter. `None` for filters of pictures and unknown ones.
pub(super) fn decode(name: &[u8], data: &[u8], parameters: Option<&Dict>) -> Result<Option<Vec<u8>>, Halt> {
    let data = match name {
        b"FlateDecode" | b"Fl" => predict(inflate(data)?, parameters),
        b"LZWDecode" | b"LZW" => {
            let early = number(parameters, "EarlyChange").unwrap_or(1) != 0;
            predict(lzw(data, early)?, parameters)
        }
        b"ASCII85Decode" | b"A85" => ascii85(data),
        b"ASCIIHexDecode" | b"AHx" => ascii_hex(data),
        b"RunLengthDecode" | b"RL" => run_length(data)?,
        _ => return Ok(None),
    };
    Ok(Some(data))
}

fn number(parameters: Option<&Dict>, key: &str) -> Option<usize> {
    parameters?.get(key).and_then(Object::as_int).and_then(|value| usize::try_from(value).ok())
}

/// What can be unpacked; a damaged end is cut off.
fn inflate(data: &[u8]) -> Result<Vec<u8>, Halt> {
    let limit = PDF_STREAM_BYTES_MAX as u64 + 1;
    let mut unpacked = Vec::new();
    let outcome = ZlibDecoder::new(data).take(limit).read_to_end(&mut unpacked);
    if outcome.is_err() && unpacked.is_empty() && data.len() > 2 {
        // A broken checksum header in front of sound data.
        let _ = DeflateDecoder::new(&data[2..]).take(limit).read_to_end(&mut unpacked);
    }
    if unpacked.len() > PDF_STREAM_BYTES_MAX { too_large() } else { Ok(unpacked) }
}

fn lzw(data: &[u8], early: bool) -> Result<Vec<u8>, Halt> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let mut unpacked: Vec<u8> = Vec::new();
    // Each entry: where in the output its bytes stand, and how many.
    let mut table: Vec<(usize, usize)> = Vec::with_capacity(4096);
    let (mut bits, mut have, mut width) = (0_u32, 0, 9);
    let mut previous: Option<(usize, usize)> = None;
    let mut input = data.iter();
    loop {
        while have < width {
            let Some(byte) = input.next() else { return Ok(unpacked) };
            bits = (bits << 8) | u32::from(*byte);
            have += 8;
        }
        let code = ((bits >> (have - width)) & ((1 << width) - 1)) as usize;
        have -= width;
        match code {
            CLEAR => {
                table.clear();
                (width, previous) = (9, None);
                continue;
            }
            END => return Ok(unpacked),
            _ => {}
        }
        let begins = unpacked.len();
        if code < 256 {
            unpacked.push(code as u8);
        } else if let Some((at, length)) = table.get(code - 258).copied() {
            unpacked.extend_from_within(at..at + length);
        } else if let Some((at, length)) = previous.filter(|_| code - 258 == table.len()) {
            unpacked.extend_from_within(at..at + length);
            unpacked.push(unpacked[at]);
        } else {
            return Ok(unpacked);
        }
        if let Some((at, length)) = previous
            && table.len() < 4096 - 258
        {
            // The previous bytes and the first new one stand next to each other.
            table.push((at, length + 1));
        }
        previous = Some((begins, unpacked.len() - begins));
        width = match table.len() + 258 + usize::from(early) {
            0..=511 => 9,
            512..=1023 => 10,
            1024..=2047 => 11,
            _ => 12,
        };
        if unpacked.len() > PDF_STREAM_BYTES_MAX {
            return too_large();
        }
    }
}

fn predict(data: Vec<u8>, parameters: Option<&Dict>) -> Vec<u8> {
    let predictor = number(parameters, "Predictor").unwrap_or(1);
    if predictor < 2 {
        return data;
    }
    let colors = number(parameters, "Colors").unwrap_or(1).clamp(1, 32);
    let bits = number(parameters, "BitsPerComponent").unwrap_or(8).clamp(1, 16);
    let columns = number(parameters, "Columns").unwrap_or(1).clamp(1, 1 << 20);
    let pixel = (colors * bits).div_ceil(8);
    let row = (colors * bits * columns).div_ceil(8);
    if predictor == 2 {
        let mut data = data;
        if bits == 8 {
            for line in data.chunks_mut(row) {
                for at in pixel..line.len() {
                    line[at] = line[at].wrapping_add(line[at - pixel]);
                }
            }
        }
        return data;
    }
    let mut out: Vec<u8> = Vec::with_capacity(data.len());
    let mut above = vec![0_u8; row];
    for line in data.chunks(row + 1) {
        let (kind, line) = (line[0], &line[1..]);
        let mut current = vec![0_u8; row];
        for (at, byte) in line.iter().enumerate() {
            let left = if at >= pixel { current[at - pixel] } else { 0 };
            let up = above[at];
            let corner = if at >= pixel { above[at - pixel] } else { 0 };
            current[at] = byte.wrapping_add(match kind {
                1 => left,
                2 => up,
                3 => ((u16::from(left) + u16::from(up)) / 2) as u8,
                4 => paeth(left, up, corner),
                _ => 0,
            });
        }
        out.extend_from_slice(&current[..line.len()]);
        above = current;
    }
    out
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(up), i16::from(corner));
    let estimate = a + b - c;
    let (da, db, dc) = ((estimate - a).abs(), (estimate - b).abs(), (estimate - c).abs());
    if da <= db && da <= dc {
        left
    } else if db <= dc {
        up
    } else {
        corner
    }
}

fn ascii85(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / 5 * 4);
    let mut group = [0_u8; 5];
    let mut filled = 0;
    let flush = |group: &[u8; 5], count: usize, out: &mut Vec<u8>| {
        let value = group.iter().fold(0_u32, |value, digit| value.wrapping_mul(85).wrapping_add(u32::from(*digit)));
        out.extend_from_slice(&value.to_be_bytes()[..count]);
    };
    for byte in data {
        match byte {
            b'!'..=b'u' => {
                group[filled] = byte - b'!';
                filled += 1;
                if filled == 5 {
                    flush(&group, 4, &mut out);
                    filled = 0;
                }
            }
            b'z' if filled == 0 => out.extend_from_slice(&[0; 4]),
            b'~' => break,
            _ => {}
        }
    }
    if filled > 1 {
        group[filled..].fill(84);
        flush(&group, filled - 1, &mut out);
    }
    out
}

fn ascii_hex(data: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = data
        .iter()
        .take_while(|byte| **byte != b'>')
        .filter_map(|byte| (*byte as char).to_digit(16).map(|digit| digit as u8))
        .collect();
    digits.chunks(2).map(|pair| (pair[0] << 4) | pair.get(1).copied().unwrap_or(0)).collect()
}

fn run_length(data: &[u8]) -> Result<Vec<u8>, Halt> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(length) = data.get(at).copied().filter(|length| *length != 128) {
        at += 1;
        if length < 128 {
            let end = (at + usize::from(length) + 1).min(data.len());
            out.extend_from_slice(&data[at..end]);
            at = end;
        } else if let Some(byte) = data.get(at) {
            out.resize(out.len() + 257 - usize::from(length), *byte);
            at += 1;
        }
        if out.len() > PDF_STREAM_BYTES_MAX {
            return too_large();
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_filters() {
        assert_eq!(ascii85(b"87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(ascii_hex(b"48 65 6C6c6F7>"), b"Hellop");
        assert_eq!(run_length(&[2, b'a', b'b', b'c', 254, b'x', 128]).unwrap(), b"abcxxx");
    }

    #[test]
    fn lzw_of_the_specification() {
        let packed = [0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01];
        assert_eq!(lzw(&packed, true).unwrap(), [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
    }
}
