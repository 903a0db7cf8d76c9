//! The limits that keep one document from taking the machine down.

use std::time::Duration;

/// Most bytes all parts of one document may unpack to.
pub const UNPACKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Most pages (PDF) or slides (PPTX) of one document.
pub const PAGES_MAX: u32 = 10_000;
/// Most entries of a packed office file.
pub const ARCHIVE_ENTRIES_MAX: u64 = 100_000;
/// A packed part may be at most this many times larger unpacked, once past [`RATIO_FREE_BYTES`].
pub const UNPACK_RATIO_MAX: u64 = 400;
/// Unpacked bytes of one part for which the ratio is not looked at.
pub const RATIO_FREE_BYTES: u64 = 32 * 1024 * 1024;
/// Deepest nesting of elements in an XML part, of tags in HTML and of objects in a PDF.
pub const NESTING_MAX: usize = 512;
/// Largest single piece of markup or text between two tags of an XML part, in bytes.
pub const XML_EVENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Largest unpacked stream of a PDF that is looked into, in bytes.
pub const PDF_STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest run of white space kept, in characters.
pub const WHITESPACE_RUN_MAX: usize = 256;

/// Memory the extraction process may take for data.
pub const CHILD_DATA_BYTES: u64 = 512 * 1024 * 1024;
/// Address space of the extraction process.
pub const CHILD_ADDRESS_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Processor time of one extraction, in seconds.
pub const CHILD_CPU_SECONDS: u64 = 300;
/// Time from start to end of one extraction.
pub const WALL_CLOCK: Duration = Duration::from_secs(600);
