//! Tables in text form: comma, semicolon, tab or bar separated.

use std::io::Read;

use crate::outcome::Halt;
use crate::sink::{Out, RowBlocks};
use crate::text::{TextReader, detect};

/// A quoted field longer than this is taken for a stray quotation mark.
const FIELD_BYTES_MAX: usize = 64 * 1024;
/// Most fields of a row; what follows begins a new row.
const FIELDS_MAX: usize = 16_384;

pub(crate) fn extract(source: impl Read, head: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
    let encoding = detect(head)?;
    let (sample, _, _) = encoding.decode(head);
    let mut parser = Parser { separator: separator(&sample), ..Parser::default() };
    let mut reader = TextReader::new(source, encoding);
    let mut rows = RowBlocks::default();
    while let Some(text) = reader.next()? {
        for c in text.chars() {
            if parser.push(c) {
                rows.row(out, &parser.fields)?;
                parser.fields.clear();
            }
        }
    }
    parser.end_field();
    rows.row(out, &parser.fields)
}

/// The separator that gives the most columns, the same number on the first lines.
fn separator(sample: &str) -> char {
    let lines: Vec<&str> = sample.lines().filter(|line| !line.trim().is_empty()).take(10).collect();
    let score = |separator: char| {
        let counts: Vec<usize> = lines.iter().map(|line| count_outside_quotes(line, separator)).collect();
        let first = counts.first().copied().unwrap_or(0);
        let same = counts.iter().filter(|count| **count == first).count();
        if first == 0 { 0 } else { same * 100 + first.min(99) }
    };
    // The first of equals wins.
    [',', ';', '\t', '|'].into_iter().rev().max_by_key(|separator| score(*separator)).unwrap_or(',')
}

fn count_outside_quotes(line: &str, separator: char) -> usize {
    let mut quoted = false;
    line.chars()
        .filter(|c| {
            quoted ^= *c == '"';
            *c == separator && !quoted
        })
        .count()
}

struct Parser {
    separator: char,
    field: String,
    fields: Vec<String>,
    quoted: bool,
    /// A quotation mark inside a quoted field: its end or half of an escaped one.
    mark: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self { separator: ',', field: String::new(), fields: Vec::new(), quoted: false, mark: false }
    }
}

impl Parser {
    /// Takes a character; true when a row is complete.
    fn push(&mut self, c: char) -> bool {
        if self.quoted {
            if std::mem::take(&mut self.mark) {
                if c == '"' {
                    self.field.push('"');
                    return false;
                }
                self.quoted = false;
            } else if c == '"' {
                self.mark = true;
                return false;
            } else if self.field.len() < FIELD_BYTES_MAX {
                self.field.push(c);
                return false;
            } else {
                self.quoted = false;
            }
        }
        match c {
            '"' if self.field.trim().is_empty() => {
                self.field.clear();
                self.quoted = true;
            }
            '\n' | '\r' => {
                self.end_field();
                return self.fields.len() > 1 || self.fields.first().is_some_and(|field| !field.is_empty()) || {
                    self.fields.clear();
                    false
                };
            }
            c if c == self.separator => {
                self.end_field();
                return self.fields.len() >= FIELDS_MAX;
            }
            c => {
                self.field.push(c);
                if self.field.len() >= FIELD_BYTES_MAX {
                    self.end_field();
                    return true;
                }
            }
        }
        false
    }

    fn end_field(&mut self) {
        self.fields.push(std::mem::take(&mut self.field));
        (self.quoted, self.mark) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        let mut parser = Parser { separator: separator(text), ..Parser::default() };
        let mut rows = Vec::new();
        for c in text.chars() {
            if parser.push(c) {
                rows.push(std::mem::take(&mut parser.fields));
            }
        }
        parser.end_field();
        rows.push(parser.fields);
        rows
    }

    #[test]
    fn quotes_and_separators() {
        assert_eq!(rows("a,b\r\n\"x, \"\"y\"\"\nz\",2"), [vec!["a", "b"], vec!["x, \"y\"\nz", "2"]]);
        assert_eq!(rows("a;b\n1,5;2"), [vec!["a", "b"], vec!["1,5", "2"]]);
        assert_eq!(rows("a\tb\n1\t2"), [vec!["a", "b"], vec!["1", "2"]]);
    }

    #[test]
    fn a_stray_quotation_mark_does_not_swallow_the_file() {
        let text = format!("a,\"b\n{}", "line,1\n".repeat(40_000));
        assert!(rows(&text).len() > 20_000);
    }
}
