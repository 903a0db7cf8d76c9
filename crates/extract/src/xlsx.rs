//! Spreadsheets: per sheet a heading and its rows, the first row repeated at the head of every block.
//!
//! Sheets are read row by row. The table of shared strings goes to an unnamed temporary file once it is large.

use std::fs::File;
use std::io::{BufRead, BufWriter, Read, Seek, SeekFrom, Write};

use crate::office;
use crate::outcome::Halt;
use crate::sink::{Out, RowBlocks};
use crate::xml::{Node, Tag, Xml};
use crate::zip::Archive;

/// Longest text of a cell that is kept, in bytes.
const CELL_BYTES_MAX: usize = 64 * 1024;
/// A gap of empty columns shows as at most this many empty cells.
const GAP_MAX: usize = 16;
/// Shared strings up to this size stay in memory.
const STRINGS_IN_MEMORY: usize = 4 * 1024 * 1024;

pub(crate) fn extract(file: File, out: &mut Out<'_>) -> Result<(), Halt> {
    let archive = office::open(file)?;
    let main = office::main_part(&archive, "xl/workbook.xml")?;
    let relations = office::relations(&archive, &main)?;
    let related = |kind: &str| relations.iter().find(|r| r.kind == kind).map(|r| r.target.as_str());

    let (sheets, from_1904) = workbook(&archive, &main)?;
    let mut strings = match related("sharedStrings") {
        Some(name) => Strings::read(&archive, name, out)?,
        None => Strings::default(),
    };
    let dates = match related("styles") {
        Some(name) => date_styles(&archive, name)?,
        None => Vec::new(),
    };
    for (name, id) in sheets {
        let Some(target) = relations.iter().find(|r| r.id == id && r.kind == "worksheet").map(|r| &r.target) else {
            continue;
        };
        let Some(mut xml) = office::part(&archive, target)? else { continue };
        sheet(&mut xml, &name, &mut strings, &dates, from_1904, out)?;
    }
    Ok(())
}

/// Names and relationship ids of the sheets in order, and whether days count from 1904.
fn workbook(archive: &Archive, main: &str) -> Result<(Vec<(String, String)>, bool), Halt> {
    let mut xml = office::required(archive, main)?;
    let (mut sheets, mut from_1904) = (Vec::new(), false);
    while let Some(node) = xml.next()? {
        let Node::Start(tag) = node else { continue };
        match tag.name().as_bytes() {
            b"sheet" => {
                if let (Some(name), Some(id)) = (tag.attr("name"), tag.attr("id")) {
                    sheets.push((name, id));
                }
            }
            b"workbookPr" => from_1904 = matches!(tag.attr("date1904").as_deref(), Some("1" | "true")),
            _ => {}
        }
    }
    Ok((sheets, from_1904))
}

/// How a number in a cell is meant.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Format {
    #[default]
    Plain,
    Date,
    Time,
    DateTime,
}

/// For each cell style, how its numbers are meant.
fn date_styles(archive: &Archive, name: &str) -> Result<Vec<Format>, Halt> {
    let Some(mut xml) = office::part(archive, name)? else {
        return Ok(Vec::new());
    };
    let mut custom = std::collections::HashMap::new();
    let mut styles = Vec::new();
    let mut in_cell_styles = false;
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(tag) => match tag.name().as_bytes() {
                b"numFmt" => {
                    let id = tag.attr("numFmtId").and_then(|id| id.parse::<u32>().ok());
                    if let (Some(id), Some(code)) = (id, tag.attr("formatCode")) {
                        custom.insert(id, format_of_code(&code));
                    }
                }
                b"cellXfs" => in_cell_styles = true,
                b"xf" if in_cell_styles => {
                    let id = tag.attr("numFmtId").and_then(|id| id.parse::<u32>().ok()).unwrap_or(0);
                    styles.push(match (custom.get(&id), id) {
                        (Some(format), _) => *format,
                        (None, 14..=17 | 27..=31 | 50..=58) => Format::Date,
                        (None, 18..=21 | 45..=47) => Format::Time,
                        (None, 22) => Format::DateTime,
                        _ => Format::Plain,
                    });
                }
                _ => {}
            },
            Node::End(name) if name.as_bytes() == b"cellXfs" => in_cell_styles = false,
            _ => {}
        }
    }
    Ok(styles)
}

/// A format code with day or year is a date, with hour or second a time; quoted and bracketed text does not count.
fn format_of_code(code: &str) -> Format {
    let (mut date, mut time, mut quoted, mut bracketed, mut escaped) = (false, false, false, false, false);
    for c in code.chars().flat_map(char::to_lowercase) {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '[' => bracketed = true,
            ']' => bracketed = false,
            _ if quoted => {}
            'h' | 's' => time = true,
            _ if bracketed => {}
            'd' | 'y' => date = true,
            ';' => break,
            _ => {}
        }
    }
    match (date, time) {
        (true, true) => Format::DateTime,
        (true, false) => Format::Date,
        (false, true) => Format::Time,
        (false, false) => Format::Plain,
    }
}

/// How the value of a cell is stored.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Stored {
    #[default]
    Number,
    Shared,
    Bool,
    Text,
}

#[derive(Default)]
struct Cell {
    column: usize,
    stored: Stored,
    style: usize,
    value: String,
}

impl Cell {
    /// Begins a cell from its tag; without a reference it stands in `next_column`.
    fn begin(&mut self, tag: &Tag<'_>, next_column: usize) {
        self.value.clear();
        (self.column, self.stored, self.style) = (next_column, Stored::Number, 0);
        tag.each_attr(|name, value| match name {
            b"r" => self.column = column_of(value).unwrap_or(next_column),
            b"s" => self.style = std::str::from_utf8(value).ok().and_then(|style| style.parse().ok()).unwrap_or(0),
            b"t" => {
                self.stored = match value {
                    b"s" => Stored::Shared,
                    b"b" => Stored::Bool,
                    b"n" => Stored::Number,
                    _ => Stored::Text,
                };
            }
            _ => {}
        });
    }
}

fn sheet<R: BufRead>(
    xml: &mut Xml<R>,
    name: &str,
    strings: &mut Strings,
    dates: &[Format],
    from_1904: bool,
    out: &mut Out<'_>,
) -> Result<(), Halt> {
    let mut titled = false;
    let mut rows = RowBlocks::default();
    let mut cells: Vec<String> = Vec::new();
    let mut used = 0;
    let mut next_column = 0;
    let mut cell = Cell::default();
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(tag) => match tag.name().as_bytes() {
                b"row" => (used, next_column) = (0, 0),
                b"c" => {
                    cell.begin(&tag, next_column);
                    next_column = cell.column + 1;
                }
                b"v" | b"t" => xml.text_into(&mut cell.value)?,
                b"f" | b"rPh" | b"extLst" | b"conditionalFormatting" | b"dataValidations" => xml.skip()?,
                _ => {}
            },
            Node::End(name_of) => match name_of.as_bytes() {
                b"c" => {
                    if cell.value.is_empty() {
                        continue;
                    }
                    let wanted = cell.column.min(used + GAP_MAX);
                    while used <= wanted {
                        match cells.get_mut(used) {
                            Some(old) => old.clear(),
                            None => cells.push(String::new()),
                        }
                        used += 1;
                    }
                    show(&cell, strings, dates, from_1904, &mut cells[wanted])?;
                }
                b"row" => {
                    if !titled && cells[..used].iter().any(|cell| !cell.is_empty()) {
                        out.heading(2, name)?;
                        titled = true;
                    }
                    rows.row(out, &cells[..used])?;
                }
                _ => {}
            },
            Node::Text(_) => {}
        }
    }
    out.newlines(2);
    Ok(())
}

fn show(cell: &Cell, strings: &mut Strings, dates: &[Format], from_1904: bool, to: &mut String) -> Result<(), Halt> {
    match cell.stored {
        Stored::Shared => {
            if let Ok(index) = cell.value.trim().parse() {
                strings.get(index, to)?;
            }
        }
        Stored::Bool => to.push_str(if cell.value.trim() == "1" { "TRUE" } else { "FALSE" }),
        Stored::Text => push_bounded(to, &cell.value),
        Stored::Number => {
            let format = dates.get(cell.style).copied().unwrap_or_default();
            match cell.value.trim().parse::<f64>() {
                Ok(number) if format != Format::Plain => to.push_str(&date(number, format, from_1904)),
                _ => push_bounded(to, cell.value.trim()),
            }
        }
    }
    Ok(())
}

fn push_bounded(to: &mut String, text: &str) {
    let mut end = text.len().min(CELL_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    to.push_str(&text[..end]);
}

/// The column of a reference like `BC12`, from 0.
fn column_of(reference: &[u8]) -> Option<usize> {
    let letters = reference.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let column = letters
        .take(4)
        .fold(0_usize, |column, letter| column * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    column.checked_sub(1)
}

/// A serial number of days as date and time of day.
fn date(serial: f64, format: Format, from_1904: bool) -> String {
    if !(0.0..3_000_000.0).contains(&serial) {
        return serial.to_string();
    }
    let mut days = serial.floor() as i64;
    let mut seconds = ((serial - serial.floor()) * 86_400.0).round() as i64;
    if seconds == 86_400 {
        (days, seconds) = (days + 1, 0);
    }
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Day 60 is 29 February 1900, which never was; days before it are one off in the other direction.
    let since_1970 = if from_1904 {
        days - 24_107
    } else if days < 60 {
        days - 25_568
    } else {
        days - 25_569
    };
    let (year, month, day) = civil(since_1970);
    let date = format!("{year:04}-{month:02}-{day:02}");
    match format {
        Format::Time if days == 0 => time,
        Format::Date if seconds == 0 => date,
        Format::DateTime if seconds == 0 => date,
        _ => format!("{date} {time}"),
    }
}

/// Year, month and day of a day counted from 1 January 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The shared strings of a workbook, in memory or in a temporary file.
#[derive(Default)]
struct Strings {
    memory: Vec<u8>,
    spilled: Option<File>,
    /// Where every [`STRIDE`]-th string begins.
    index: Vec<u64>,
    count: usize,
    window: Vec<u8>,
    window_at: u64,
}

/// Each string is stored as its length and its bytes; the place of every 8th is remembered.
const STRIDE: usize = 8;
const WINDOW_BYTES: usize = 256 * 1024;

impl Strings {
    fn read(archive: &Archive, name: &str, out: &mut Out<'_>) -> Result<Self, Halt> {
        let mut strings = Self::default();
        let Some(mut xml) = office::part(archive, name)? else {
            return Ok(strings);
        };
        let mut spill: Option<BufWriter<File>> = None;
        let mut at = 0_u64;
        let mut text = String::new();
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) => match tag.name().as_bytes() {
                    b"si" => text.clear(),
                    b"t" => {
                        xml.text_into(&mut text)?;
                    }
                    b"rPh" => xml.skip()?,
                    _ => {}
                },
                Node::End(name) if name.as_bytes() == b"si" => {
                    out.check()?;
                    let mut bounded = String::new();
                    push_bounded(&mut bounded, &text);
                    if strings.count.is_multiple_of(STRIDE) {
                        strings.index.push(at);
                    }
                    strings.count += 1;
                    at += 4 + bounded.len() as u64;
                    let length = (bounded.len() as u32).to_le_bytes();
                    match &mut spill {
                        Some(file) => {
                            file.write_all(&length)?;
                            file.write_all(bounded.as_bytes())?;
                        }
                        None => {
                            strings.memory.extend_from_slice(&length);
                            strings.memory.extend_from_slice(bounded.as_bytes());
                            if strings.memory.len() > STRINGS_IN_MEMORY {
                                let mut file = BufWriter::new(tempfile::tempfile()?);
                                file.write_all(&strings.memory)?;
                                strings.memory = Vec::new();
                                spill = Some(file);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(file) = spill {
            strings.spilled = Some(file.into_inner().map_err(std::io::IntoInnerError::into_error)?);
        }
        Ok(strings)
    }

    /// Appends the string with this index; nothing when there is none.
    fn get(&mut self, index: usize, to: &mut String) -> Result<(), Halt> {
        if index >= self.count {
            return Ok(());
        }
        let mut at = self.index[index / STRIDE];
        for _ in 0..index % STRIDE {
            at += 4 + u64::from(self.length_at(at)?);
        }
        let length = self.length_at(at)? as usize;
        let bytes = self.bytes(at + 4, length)?;
        to.push_str(&String::from_utf8_lossy(bytes));
        Ok(())
    }

    fn length_at(&mut self, at: u64) -> Result<u32, Halt> {
        let bytes = self.bytes(at, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn bytes(&mut self, at: u64, length: usize) -> Result<&[u8], Halt> {
        let Some(file) = &mut self.spilled else {
            let at = at as usize;
            return Ok(&self.memory[at..at + length]);
        };
        let inside = at >= self.window_at && at + length as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            file.seek(SeekFrom::Start(at))?;
            self.window.clear();
            self.window_at = at;
            file.take(WINDOW_BYTES.max(length) as u64).read_to_end(&mut self.window)?;
        }
        let from = (at - self.window_at) as usize;
        self.window
            .get(from..from + length)
            .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns() {
        assert_eq!(column_of(b"A1"), Some(0));
        assert_eq!(column_of(b"Z9"), Some(25));
        assert_eq!(column_of(b"AA1"), Some(26));
        assert_eq!(column_of(b"XFD1"), Some(16_383));
        assert_eq!(column_of(b"7"), None);
    }

    #[test]
    fn serial_dates() {
        assert_eq!(date(1.0, Format::Date, false), "1900-01-01");
        assert_eq!(date(61.0, Format::Date, false), "1900-03-01");
        assert_eq!(date(45_292.0, Format::Date, false), "2024-01-01");
        assert_eq!(date(45_292.75, Format::DateTime, false), "2024-01-01 18:00:00");
        assert_eq!(date(0.5, Format::Time, false), "12:00:00");
        assert_eq!(date(0.0, Format::Date, true), "1904-01-01");
    }

    #[test]
    fn format_codes() {
        assert!(format_of_code("dd.mm.yyyy") == Format::Date);
        assert!(format_of_code("[h]:mm") == Format::Time);
        assert!(format_of_code("yyyy-mm-dd hh:mm") == Format::DateTime);
        assert!(format_of_code("#,##0.00 \"days\"") == Format::Plain);
        assert!(format_of_code("[Red]0.0%") == Format::Plain);
    }
}
