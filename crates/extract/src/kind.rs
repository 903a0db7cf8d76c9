//! What a file is: first by its name, then by its first bytes.

use crate::outcome::{ExtractError, OutcomeCode};

/// A format with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Running text: `txt`, `log` and files known by name (`README`).
    Plain,
    /// Markdown.
    Markdown,
    /// Source code, configuration, XML: text whose `#` lines are not headings.
    Code,
    /// HTML.
    Html,
    /// Rows of values separated by commas, semicolons, tabs or bars.
    Csv,
    /// JSON and JSON lines.
    Json,
    /// PDF.
    Pdf,
    /// Word document.
    Docx,
    /// Spreadsheet.
    Xlsx,
    /// Presentation.
    Pptx,
    /// OpenDocument text.
    Odt,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Plain,
        Self::Markdown,
        Self::Code,
        Self::Html,
        Self::Csv,
        Self::Json,
        Self::Pdf,
        Self::Docx,
        Self::Xlsx,
        Self::Pptx,
        Self::Odt,
    ];

    /// A short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Markdown => "markdown",
            Self::Code => "code",
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Xlsx => "xlsx",
            Self::Pptx => "pptx",
            Self::Odt => "odt",
        }
    }

    /// The kind with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True when lines starting with `#` in the extracted text are headings.
    #[must_use]
    pub const fn has_headings(self) -> bool {
        match self {
            Self::Plain | Self::Markdown | Self::Html | Self::Docx | Self::Xlsx | Self::Pptx | Self::Odt => true,
            Self::Code | Self::Csv | Self::Json | Self::Pdf => false,
        }
    }

    /// True when the reader runs in a process of its own (see [`crate::process`]).
    ///
    /// Readers of plain text are a few linear state machines; the others unpack, follow references and nest.
    #[must_use]
    pub const fn needs_process(self) -> bool {
        matches!(self, Self::Pdf | Self::Docx | Self::Xlsx | Self::Pptx | Self::Odt | Self::Html)
    }
}

/// What a file name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A reader exists.
    Indexable(Kind),
    /// An image: `image_no_vision`.
    Image,
    /// A type without a reader (also legacy office files): `unsupported_type`.
    Unsupported,
}

impl Class {
    /// The reader, or the refusal that the name alone decides.
    ///
    /// # Errors
    /// `image_no_vision` or `unsupported_type`.
    pub fn into_kind(self, file_name: &str) -> Result<Kind, ExtractError> {
        match self {
            Self::Indexable(kind) => Ok(kind),
            Self::Image => Err(ExtractError::new(
                OutcomeCode::ImageNoVision,
                "Images are stored but not searchable: there is no text in them to read.",
            )),
            Self::Unsupported => Err(ExtractError::new(
                OutcomeCode::UnsupportedType,
                match extension(file_name).as_deref() {
                    Some("doc" | "xls" | "ppt" | "dot" | "xlt" | "pps") => {
                        "Old office files are stored but not searchable. Save the file as DOCX, XLSX or PPTX and upload that."
                    }
                    _ => "Files of this type are stored but not searchable.",
                },
            )),
        }
    }
}

/// Classifies a file by its name alone; nothing is read.
///
/// ```
/// use tale_extract::{Class, Kind, classify};
/// assert_eq!(classify("Q3 report.PDF"), Class::Indexable(Kind::Pdf));
/// assert_eq!(classify("photo.jpg"), Class::Image);
/// assert_eq!(classify("notes.loop"), Class::Unsupported);
/// ```
#[must_use]
pub fn classify(file_name: &str) -> Class {
    let base = base_name(file_name).to_lowercase();
    if let Some(kind) = by_whole_name(&base) {
        return Class::Indexable(kind);
    }
    let Some(extension) = extension(file_name) else {
        return Class::Unsupported;
    };
    let kind = match extension.as_str() {
        "txt" | "text" | "log" | "rst" | "adoc" | "asciidoc" | "org" | "srt" | "vtt" => Kind::Plain,
        "md" | "markdown" | "mdx" | "mkd" | "mdown" | "qmd" | "rmd" => Kind::Markdown,
        "htm" | "html" | "xhtml" => Kind::Html,
        "csv" | "tsv" | "tab" => Kind::Csv,
        "json" | "jsonl" | "ndjson" | "geojson" | "jsonc" | "json5" | "webmanifest" | "ipynb" => Kind::Json,
        "pdf" => Kind::Pdf,
        "docx" | "docm" | "dotx" => Kind::Docx,
        "xlsx" | "xlsm" | "xltx" => Kind::Xlsx,
        "pptx" | "pptm" | "ppsx" => Kind::Pptx,
        "odt" | "ott" => Kind::Odt,
        "jpg" | "jpeg" | "png" | "gif" | "webp" | "bmp" | "tif" | "tiff" | "svg" | "heic" | "heif" | "avif" | "ico" => {
            return Class::Image;
        }
        other if CODE_EXTENSIONS.contains(&other) => Kind::Code,
        _ => return Class::Unsupported,
    };
    Class::Indexable(kind)
}

const CODE_EXTENSIONS: &[&str] = &[
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "config",
    "properties",
    "env",
    "xml",
    "xsd",
    "xsl",
    "xslt",
    "rss",
    "atom",
    "plist",
    "rs",
    "py",
    "pyi",
    "js",
    "mjs",
    "cjs",
    "jsx",
    "ts",
    "mts",
    "cts",
    "tsx",
    "svelte",
    "vue",
    "astro",
    "java",
    "kt",
    "kts",
    "scala",
    "groovy",
    "gradle",
    "clj",
    "cljs",
    "c",
    "h",
    "cc",
    "cpp",
    "cxx",
    "hpp",
    "hh",
    "hxx",
    "m",
    "mm",
    "cs",
    "fs",
    "fsx",
    "vb",
    "go",
    "rb",
    "erb",
    "php",
    "pl",
    "pm",
    "lua",
    "r",
    "jl",
    "swift",
    "dart",
    "ex",
    "exs",
    "erl",
    "hrl",
    "hs",
    "lhs",
    "ml",
    "mli",
    "nim",
    "zig",
    "v",
    "sv",
    "vhd",
    "vhdl",
    "asm",
    "s",
    "sql",
    "psql",
    "graphql",
    "gql",
    "proto",
    "thrift",
    "avsc",
    "sh",
    "bash",
    "zsh",
    "fish",
    "ps1",
    "psm1",
    "bat",
    "cmd",
    "awk",
    "sed",
    "css",
    "scss",
    "sass",
    "less",
    "styl",
    "tf",
    "tfvars",
    "hcl",
    "nix",
    "cmake",
    "mk",
    "make",
    "dockerfile",
    "diff",
    "patch",
    "tex",
    "bib",
    "sty",
    "cls",
    "typ",
    "po",
    "pot",
    "ics",
    "vcf",
    "lock",
    "gitignore",
    "editorconfig",
    "dot",
    "puml",
    "mmd",
    "http",
    "rest",
    "sol",
    "cob",
    "cbl",
    "f",
    "f90",
    "f95",
    "pas",
    "ada",
    "adb",
    "lisp",
    "el",
    "scm",
    "rkt",
    "tcl",
    "vim",
    "bicep",
    "cue",
    "rego",
    "jinja",
    "j2",
    "liquid",
    "hbs",
    "mustache",
    "ejs",
    "pug",
];

fn by_whole_name(base: &str) -> Option<Kind> {
    Some(match base {
        "readme" | "license" | "licence" | "copying" | "notice" | "authors" | "changelog" | "changes"
        | "contributing" | "todo" | "install" | "news" => Kind::Plain,
        "makefile" | "gnumakefile" | "dockerfile" | "containerfile" | "justfile" | "rakefile" | "gemfile"
        | "procfile" | "vagrantfile" | "jenkinsfile" | "brewfile" | "codeowners" | ".gitignore" | ".gitattributes"
        | ".dockerignore" | ".editorconfig" | ".npmrc" | ".env" | ".bashrc" | ".profile" | ".zshrc" | ".vimrc" => {
            Kind::Code
        }
        _ => return None,
    })
}

/// The part after the last separator of either flavour.
fn base_name(file_name: &str) -> &str {
    file_name.rsplit(['/', '\\']).next().unwrap_or(file_name).trim()
}

/// The lower-cased extension without its dot.
#[must_use]
pub fn extension(file_name: &str) -> Option<String> {
    let (stem, extension) = base_name(file_name).rsplit_once('.')?;
    let good = !extension.is_empty() && !stem.is_empty() && extension.chars().all(|c| c.is_ascii_alphanumeric());
    good.then(|| extension.to_ascii_lowercase())
}

/// How many first bytes [`check_head`] wants to see.
pub const HEAD_BYTES: usize = 64 * 1024;

const COMPOUND_FILE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// Compares a file's first bytes (up to [`HEAD_BYTES`]) with what its name promised.
///
/// # Errors
/// `empty` for no bytes, `malformed` when the content is something else, `not_text` for binary in a text format.
pub fn check_head(kind: Kind, head: &[u8]) -> Result<(), ExtractError> {
    if head.is_empty() {
        return Err(ExtractError::new(OutcomeCode::Empty, "The file is empty."));
    }
    match kind {
        Kind::Pdf => {
            let window = &head[..head.len().min(1024)];
            if !window.windows(5).any(|w| w == b"%PDF-") {
                return Err(ExtractError::malformed("The file is named .pdf but its content is not a PDF."));
            }
        }
        Kind::Docx | Kind::Xlsx | Kind::Pptx | Kind::Odt => {
            if head.starts_with(COMPOUND_FILE) {
                let mark: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
                let locked = head.windows(mark.len()).any(|w| w == mark.as_slice());
                return Err(ExtractError::malformed(if locked {
                    "The file is password protected. Save it without a password and upload it again."
                } else {
                    "The file has the name of a current office file but is an old office file or is password protected. Save it again in the current format, without a password."
                }));
            }
            if !head.starts_with(b"PK\x03\x04") && !head.starts_with(b"PK\x05\x06") {
                return Err(ExtractError::malformed(
                    "The file has the name of an office file but its content is something else.",
                ));
            }
        }
        Kind::Html => {
            crate::html::detect(head)?;
        }
        Kind::Plain | Kind::Markdown | Kind::Code | Kind::Csv | Kind::Json => {
            crate::text::detect(head)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        use Class::*;
        for (name, class) in [
            ("a.txt", Indexable(Kind::Plain)),
            ("A.TXT", Indexable(Kind::Plain)),
            ("архив 2024.docx", Indexable(Kind::Docx)),
            ("x.tar.gz", Unsupported),
            ("old.doc", Unsupported),
            ("pic.WebP", Image),
            ("Makefile", Indexable(Kind::Code)),
            ("dir/../README", Indexable(Kind::Plain)),
            ("C:\\temp\\report.pdf", Indexable(Kind::Pdf)),
            (".pdf", Unsupported),
            ("", Unsupported),
            ("name.", Unsupported),
            ("a.p\u{0}df", Unsupported),
            ("evil.pdf\u{202e}txt.exe", Unsupported),
            ("notes.loop", Unsupported),
        ] {
            assert_eq!(classify(name), class, "{name:?}");
        }
    }

    #[test]
    fn refusals_by_name() {
        let image = classify("a.png").into_kind("a.png").unwrap_err();
        assert_eq!(image.code, OutcomeCode::ImageNoVision);
        let legacy = classify("a.xls").into_kind("a.xls").unwrap_err();
        assert_eq!(legacy.code, OutcomeCode::UnsupportedType);
        assert!(legacy.message.contains("XLSX"));
    }

    #[test]
    fn content_against_name() {
        let exe = b"MZ\x90\x00\x03\x00\x00\x00";
        assert_eq!(check_head(Kind::Pdf, exe).unwrap_err().code, OutcomeCode::Malformed);
        assert_eq!(check_head(Kind::Docx, exe).unwrap_err().code, OutcomeCode::Malformed);
        assert_eq!(check_head(Kind::Plain, exe).unwrap_err().code, OutcomeCode::NotText);
        assert_eq!(check_head(Kind::Pdf, b"").unwrap_err().code, OutcomeCode::Empty);
        assert!(check_head(Kind::Pdf, b"junk\n%PDF-1.4\n").is_ok());
        let mut locked = COMPOUND_FILE.to_vec();
        locked.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
        assert!(check_head(Kind::Xlsx, &locked).unwrap_err().message.contains("password"));
    }
}
