//! What is admitted as an upload: names, types and the extensions that are refused.

use tale_core::{Code, Problem};

/// Longest stored file name, in characters.
const MAX_NAME_CHARS: usize = 255;
/// Longest stored media type, in bytes.
const MAX_TYPE_BYTES: usize = 255;
/// The type of bytes nobody named.
pub(crate) const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Programs, installers and disk images: nothing to read in them, and a risk to whoever opens them.
const REFUSED_EXTENSIONS: &[&str] = &[
    "exe", "dll", "com", "scr", "msi", "msp", "msix", "cpl", "sys", "drv", "pif", "lnk", "app", "dmg", "pkg", "iso",
    "img", "vhd", "vhdx", "apk", "aab", "ipa", "jar", "war", "deb", "rpm", "snap", "appimage", "elf", "so", "dylib",
    "ko", "wasm", "class", "hta", "reg",
];

/// The name as it is stored: every character a person may have chosen is kept, control characters
/// become blanks, and an overlong name loses the end of its stem, not its extension.
///
/// # Errors
/// `INVALID_BODY` for a name without a visible character.
pub(crate) fn clean_name(name: &str) -> Result<String, Problem> {
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = plain.trim();
    if plain.chars().all(|c| c.is_whitespace() || is_invisible(c)) {
        return Err(Problem::invalid_field("fileName", "must not be blank"));
    }
    if plain.chars().count() <= MAX_NAME_CHARS {
        return Ok(plain.to_owned());
    }
    let ending = tale_extract::extension(plain)
        .filter(|ending| ending.len() < 20)
        .map_or_else(String::new, |ending| format!(".{ending}"));
    let stem: String = plain.chars().take(MAX_NAME_CHARS - ending.chars().count()).collect();
    Ok(format!("{stem}{ending}"))
}

/// Format characters that show nothing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The declared media type when it is well-formed, else one by the name, else "unknown bytes".
pub(crate) fn clean_type(declared: &str, file_name: &str) -> String {
    let declared = declared.trim();
    let token =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b));
    let well_formed = declared.len() <= MAX_TYPE_BYTES
        && declared.bytes().all(|b| (0x20..0x7f).contains(&b))
        && declared
            .split(';')
            .next()
            .and_then(|essence| essence.trim().split_once('/'))
            .is_some_and(|(kind, sub)| token(kind) && token(sub));
    if well_formed && !declared.eq_ignore_ascii_case(UNKNOWN_TYPE) {
        return declared.to_owned();
    }
    by_name(file_name).unwrap_or(UNKNOWN_TYPE).to_owned()
}

/// What the first bytes of a file show it to be, where they are unmistakable; `None` where they fit many types.
fn sniffed(head: &[u8]) -> Option<&'static str> {
    const SIGNS: &[(&[u8], &str)] = &[
        (b"%PDF-", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"OggS", "application/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\x1f\x8b", "application/gzip"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"Rar!", "application/vnd.rar"),
        (b"\x7fELF", "application/x-executable"),
        (b"MZ", "application/x-msdownload"),
        (b"PK\x03\x04", "application/zip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
        (b"\x1a\x45\xdf\xa3", "video/webm"),
    ];
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        _ => SIGNS.iter().find(|(sign, _)| head.starts_with(sign)).map(|(_, kind)| *kind),
    }
}

/// The media type of a file with these first bytes: the declared one, unless the bytes show another (UPL-1).
pub(crate) fn real_type<'a>(declared: &'a str, head: &[u8]) -> &'a str {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // These always show themselves.
    let shows = matches!(
        essence.as_str(),
        "application/pdf" | "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/zip"
    );
    let Some(seen) = sniffed(head) else { return if shows && !head.is_empty() { UNKNOWN_TYPE } else { declared } };
    if shows || essence == UNKNOWN_TYPE {
        return if essence == seen { declared } else { seen };
    }
    // Containers and envelopes of many types: which one it is, only the name says.
    let family = match seen {
        "application/zip" | "application/x-ole-storage" => essence.starts_with("application/"),
        "application/ogg" | "video/webm" | "video/mp4" => {
            essence.starts_with("audio/") || essence.starts_with("video/")
        }
        "audio/mpeg" | "audio/wav" => essence.starts_with("audio/"),
        // Two letters that texts begin with too.
        "application/x-msdownload" => essence.starts_with("text/") && head.is_ascii(),
        _ => essence == seen,
    };
    if family { declared } else { seen }
}

/// The media type that a file's extension stands for.
fn by_name(file_name: &str) -> Option<&'static str> {
    Some(match tale_extract::extension(file_name)?.as_str() {
        "txt" | "text" | "log" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "odt" => "application/vnd.oasis.opendocument.text",
        "doc" => "application/msword",
        "xls" => "application/vnd.ms-excel",
        "ppt" => "application/vnd.ms-powerpoint",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => return None,
    })
}

/// Refuses programs by their name.
///
/// # Errors
/// `UNSUPPORTED_FILE_TYPE` naming the extension.
pub(crate) fn check_admitted(file_name: &str) -> Result<(), Problem> {
    match tale_extract::extension(file_name) {
        Some(ending) if REFUSED_EXTENSIONS.contains(&ending.as_str()) => Err(Problem::new(
            Code::UnsupportedFileType,
            format!(
                "Files of type .{ending} are not accepted. Upload the document itself, for example as PDF, DOCX, XLSX or TXT."
            ),
        )),
        _ => Ok(()),
    }
}

/// Width and height of an image by its first bytes.
pub(crate) fn image_size(head: &[u8]) -> Option<(i32, i32)> {
    let size = imagesize::blob_size(head).ok()?;
    Some((i32::try_from(size.width).ok()?, i32::try_from(size.height).ok()?))
}

/// Whether the first bytes are those of an image that a model can look at.
pub(crate) fn is_viewable_image(head: &[u8]) -> bool {
    head.starts_with(b"\x89PNG\r\n\x1a\n")
        || head.starts_with(b"\xff\xd8\xff")
        || head.starts_with(b"GIF8")
        || (head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_the_bytes_contradict_is_not_believed() {
        const OOXML: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        let cases: &[(&str, &[u8], &str)] = &[
            ("application/pdf", b"%PDF-1.7", "application/pdf"),
            ("Image/PNG; a=b", b"%PDF-1.7", "application/pdf"),
            ("image/png", b"<html>", UNKNOWN_TYPE),
            ("application/pdf", b"PK\x03\x04", "application/zip"),
            (OOXML, b"PK\x03\x04", OOXML),
            (UNKNOWN_TYPE, b"PK\x03\x04", "application/zip"),
            ("text/plain", b"PK\x03\x04", "application/zip"),
            ("text/plain", b"MZ\x90\x00\x03", "application/x-msdownload"),
            ("text/plain", b"MZ is a town in Germany", "text/plain"),
            ("text/html", b"\x89PNG\r\n\x1a\n", "image/png"),
            ("audio/webm", b"\x1a\x45\xdf\xa3", "audio/webm"),
            ("text/csv", b"a,b", "text/csv"),
            ("image/png", b"", "image/png"),
        ];
        for (declared, head, expected) in cases {
            assert_eq!(real_type(declared, head), *expected, "{declared}");
        }
    }

    #[test]
    fn names_keep_what_people_write() {
        for name in [
            "Bericht 2024 (final) [v2].pdf",
            "naïve – “quotes” & <tags>.txt",
            "日本語.docx",
            "a/b\\c:d*?.md",
            "👩‍👩‍👧.txt",
            "\u{202e}txt.exe.pdf",
        ] {
            assert_eq!(clean_name(name).unwrap(), name.trim());
        }
        assert_eq!(clean_name(" a\nb\u{0}c.txt ").unwrap(), "a b c.txt");
        for blank in ["", "  ", "\u{200b}\u{feff}", "\n\t"] {
            assert!(clean_name(blank).is_err(), "{blank:?}");
        }
        let long = clean_name(&format!("{}.docx", "ü".repeat(400))).unwrap();
        assert_eq!(long.chars().count(), MAX_NAME_CHARS);
        assert!(long.ends_with("ü.docx"));
    }

    #[test]
    fn types_are_declared_or_guessed() {
        assert_eq!(clean_type("text/plain; charset=utf-8", "a.pdf"), "text/plain; charset=utf-8");
        assert_eq!(clean_type("", "a.PDF"), "application/pdf");
        assert_eq!(clean_type("nonsense", "a.bin"), UNKNOWN_TYPE);
        assert_eq!(clean_type("text/html\r\nX: y", "a.md"), "text/markdown");
    }

    #[test]
    fn programs_are_refused() {
        assert_eq!(check_admitted("setup.EXE").unwrap_err().code, Code::UnsupportedFileType);
        assert!(check_admitted("notes.loop").is_ok() && check_admitted("run.sh").is_ok());
    }
}
