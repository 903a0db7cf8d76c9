//! What an upload is, judged by its bytes: what a browser or a file name says of it counts for nothing.

use tale_core::{Code, Problem};

use super::{Slot, drawing};

/// Largest image, in bytes (BRD-3).
pub const MAX_BYTES: usize = 1024 * 1024;
/// Most pixels in a row or a column: a small file can stand for a picture that fills a browser's memory.
pub const MAX_PIXELS: i32 = 4_096;

/// The media type of drawings.
pub(super) const SVG: &str = "image/svg+xml";

/// What an upload turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Image {
    /// As it is served.
    pub(crate) media_type: &'static str,
    /// Width and height; `None` for drawings and icons.
    pub(crate) pixels: Option<(i32, i32)>,
}

/// What `content` is, when it may stand in `slot`.
///
/// # Errors
/// `FILE_TOO_LARGE`, `UNSUPPORTED_FILE_TYPE`, `IMAGE_SVG_ACTIVE_CONTENT`.
pub(super) fn judge(slot: Slot, content: &[u8]) -> Result<Image, Problem> {
    if content.len() > MAX_BYTES {
        return Err(Problem::new(Code::FileTooLarge, "An image can have 1 MiB. Make it smaller and upload it again.")
            .with_data(serde_json::json!({ "maxBytes": MAX_BYTES })));
    }
    let icons = slot != Slot::Logo;
    let raster = |media_type, pixels: Option<(u32, u32)>| pixels.map(|pixels| (media_type, Some(pixels)));
    let found = if let Some(rest) = content.strip_prefix(b"\x89PNG\r\n\x1a\n") {
        raster("image/png", png(rest))
    } else if content.starts_with(b"\xff\xd8\xff") {
        raster("image/jpeg", jpeg(content))
    } else if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        raster("image/webp", webp(content))
    } else if icons && ico(content) {
        Some(("image/x-icon", None))
    } else if let Some(text) = drawing::text(content) {
        drawing::judge(text)?;
        Some((SVG, None))
    } else {
        None
    };
    let (media_type, pixels) = found.ok_or_else(|| unsupported(icons))?;
    let Some((width, height)) = pixels else { return Ok(Image { media_type, pixels: None }) };
    let side = |pixels: u32| i32::try_from(pixels).ok().filter(|pixels| (1..=MAX_PIXELS).contains(pixels));
    let pixels = side(width).zip(side(height)).ok_or_else(|| {
        Problem::new(
            Code::UnsupportedFileType,
            format!("An image can have {MAX_PIXELS} × {MAX_PIXELS} pixels. Make it smaller and upload it again."),
        )
    })?;
    Ok(Image { media_type, pixels: Some(pixels) })
}

fn unsupported(icons: bool) -> Problem {
    let (kinds, accepted): (_, &[&str]) = if icons {
        ("SVG, PNG, JPEG, WebP or ICO", &["svg", "png", "jpeg", "webp", "ico"])
    } else {
        ("SVG, PNG, JPEG or WebP", &["svg", "png", "jpeg", "webp"])
    };
    Problem::new(
        Code::UnsupportedFileType,
        format!("This file is not an image that can be shown here. Use {kinds}; the content counts, not the name."),
    )
    .with_data(serde_json::json!({ "accepted": accepted }))
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The size in the first chunk, which must be the header.
fn png(rest: &[u8]) -> Option<(u32, u32)> {
    (rest.get(..8)? == b"\0\0\0\x0dIHDR").then_some((big(rest, 8)?, big(rest, 12)?))
}

/// The size in the frame header, before which there are only segments with their lengths.
fn jpeg(content: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *content.get(at..at + 2)? else { return None };
        match marker {
            // Bytes that fill up.
            0xff => at += 1,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let [high, low, wide, narrow] = *content.get(at + 5..at + 9)? else { return None };
                let side = |high, low| u32::from(u16::from_be_bytes([high, low]));
                return Some((side(wide, narrow), side(high, low)));
            }
            // The picture begins, or the file ends, without having said its size.
            0xd8..=0xda | 0x00 => return None,
            0x01 | 0xd0..=0xd7 => at += 2,
            _ => {
                let length = u16::from_be_bytes(content.get(at + 2..at + 4)?.try_into().ok()?);
                at += 2 + usize::from(length.max(2));
            }
        }
    }
}

/// The size in the first chunk of each of the three forms.
fn webp(content: &[u8]) -> Option<(u32, u32)> {
    let byte = |at: usize| content.get(at).map(|byte| u32::from(*byte));
    match content.get(12..16)? {
        b"VP8 " if content.get(23..26)? == b"\x9d\x01\x2a" => {
            let side = |at| Some((byte(at)? | byte(at + 1)? << 8) & 0x3fff);
            Some((side(26)?, side(28)?))
        }
        b"VP8L" if byte(20)? == 0x2f => {
            let bits = byte(21)? | byte(22)? << 8 | byte(23)? << 16 | byte(24)? << 24;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let side = |at| Some((byte(at)? | byte(at + 1)? << 8 | byte(at + 2)? << 16) + 1);
            Some((side(24)?, side(27)?))
        }
        _ => None,
    }
}

/// Whether it is a directory of icons whose entries lie inside the file.
fn ico(content: &[u8]) -> bool {
    let Some([0, 0, 1, 0, low, high]) = content.get(..6) else { return false };
    let entries = usize::from(u16::from_le_bytes([*low, *high]));
    let long = |at: usize| Some(u32::from_le_bytes(content.get(at..at + 4)?.try_into().ok()?) as usize);
    let inside = |entry: usize| {
        let at = 6 + 16 * entry;
        let (size, offset) = (long(at + 8)?, long(at + 12)?);
        Some(size > 0 && offset >= 6 + 16 * entries && offset.checked_add(size)? <= content.len())
    };
    (1..=64).contains(&entries) && (0..entries).all(|entry| inside(entry) == Some(true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png_of(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", &size[..], b"\x08\x06\0\0\0"].concat()
    }

    const SVG_FILE: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0h1'/></svg>";

    #[test]
    fn the_bytes_say_what_an_image_is() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xff\xc2\0\x11\x08\0\x20\x01\0\x03";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\0\x20\0";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc0\x07\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x3f\0\0\x1f\0\0";
        let ico = b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x04\0\0\0\x16\0\0\0abcd";
        for (content, media_type, pixels) in [
            (&png_of(64, 32)[..], "image/png", Some((64, 32))),
            (jpeg, "image/jpeg", Some((256, 32))),
            (lossy, "image/webp", Some((64, 32))),
            (lossless, "image/webp", Some((64, 32))),
            (extended, "image/webp", Some((64, 32))),
            (ico, "image/x-icon", None),
            (SVG_FILE, SVG, None),
        ] {
            assert_eq!(judge(Slot::FaviconDark, content).unwrap(), Image { media_type, pixels }, "{media_type}");
        }
        let refused = judge(Slot::Logo, ico).unwrap_err();
        assert_eq!((refused.code, refused.message.contains("WebP; the")), (Code::UnsupportedFileType, true));
    }

    #[test]
    fn what_is_no_image_or_a_giant_one_is_refused() {
        let html = b"<!doctype html><script>alert(1)</script>";
        let gif = b"GIF89a\x01\0\x01\0";
        for content in [
            &b""[..],
            b"\0",
            html,
            gif,
            b"%PDF-1.7",
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xd8\xff\xda",
            b"RIFF\0\0\0\0WEBPVP9 ",
            b"\0\0\x01\0\x01\0",
            b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\xff\xff\0\0\x16\0\0\0abcd",
            &png_of(MAX_PIXELS.unsigned_abs() + 1, 1),
            &png_of(0, 1),
            &png_of(u32::MAX, 1),
        ] {
            let refused = judge(Slot::FaviconLight, content).unwrap_err();
            assert!(matches!(refused.code, Code::UnsupportedFileType), "{content:?}: {refused:?}");
        }
        let large = vec![b' '; MAX_BYTES + 1];
        assert_eq!(judge(Slot::Logo, &large).unwrap_err().code, Code::FileTooLarge);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head in 0usize..7, rest in proptest::collection::vec(any::<u8>(), 0..200)) {
            let heads: [&[u8]; 7] = [b"", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8 ",
                b"RIFF\0\0\0\0WEBPVP8X", b"\0\0\x01\0", b"<svg xmlns='http://www.w3.org/2000/svg'>"];
            let _ = judge(Slot::FaviconLight, &[heads[head], &rest].concat());
        }
    }
}
