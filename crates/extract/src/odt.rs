//! OpenDocument text: headings, lists, tables, footnotes.

use std::fs::File;

use crate::office;
use crate::outcome::{Halt, malformed};
use crate::sink::{Out, RowBlocks};
use crate::xml::{Node, Tag};

/// Most blanks that one `text:s` element stands for.
const BLANKS_MAX: usize = 64;

#[derive(Default)]
struct Paragraph {
    text: String,
    level: Option<u8>,
}

#[derive(Default)]
struct Table {
    rows: RowBlocks,
    cells: Vec<String>,
    depth: usize,
}

pub(crate) fn extract(file: File, out: &mut Out<'_>) -> Result<(), Halt> {
    let archive = office::open(file)?;
    if let Some(mut manifest) = office::part(&archive, "META-INF/manifest.xml")? {
        while let Some(node) = manifest.next()? {
            if let Node::Start(tag) = node
                && tag.name().as_bytes() == b"encryption-data"
            {
                return malformed("The file is password protected. Save it without a password and upload it again.");
            }
        }
    }
    let mut xml = office::required(&archive, "content.xml")?;
    let mut open: Vec<Paragraph> = Vec::new();
    let mut table: Option<Table> = None;
    let (mut lists, mut item_is_new) = (0_usize, false);
    // Footnotes stand inside their paragraph and are written after the document.
    let mut note: Option<(usize, String)> = None;
    let mut notes: Vec<String> = Vec::new();
    while let Some(node) = xml.next()? {
        out.check()?;
        match node {
            Node::Start(tag) => match tag.name().as_bytes() {
                b"tracked-changes"
                | b"annotation"
                | b"annotation-end"
                | b"note-citation"
                | b"forms"
                | b"ruby-text"
                | b"automatic-styles"
                | b"font-face-decls"
                | b"scripts"
                | b"variable-decls"
                | b"sequence-decls"
                | b"index-title-template" => xml.skip()?,
                b"p" => open.push(Paragraph::default()),
                b"h" => open.push(Paragraph { text: String::new(), level: Some(level(&tag)) }),
                b"list" => {
                    if lists == 0 && table.is_none() && note.is_none() {
                        out.newlines(2);
                    }
                    lists += 1;
                }
                b"list-item" => item_is_new = true,
                b"table" => match &mut table {
                    Some(table) => table.depth += 1,
                    None => {
                        out.newlines(2);
                        table = Some(Table { depth: 1, ..Table::default() });
                    }
                },
                b"table-cell" | b"covered-table-cell" => {
                    if let Some(table) = table.as_mut().filter(|table| table.depth == 1) {
                        table.cells.push(String::new());
                    }
                }
                b"note" => {
                    let number = notes.len() + 1;
                    if let Some(paragraph) = open.last_mut() {
                        paragraph.text.push_str(&format!("[^{number}]"));
                    }
                    note = Some((open.len(), String::new()));
                }
                b"s" => {
                    let count = tag.attr("c").and_then(|c| c.parse().ok()).unwrap_or(1).min(BLANKS_MAX);
                    append(&mut open, &" ".repeat(count));
                }
                b"tab" => append(&mut open, "\t"),
                b"line-break" => append(&mut open, "\n"),
                _ => {}
            },
            Node::Text(text) => append(&mut open, &text),
            Node::End(name) => match name.as_bytes() {
                b"p" | b"h" => {
                    let Some(paragraph) = open.pop() else { continue };
                    if let Some((outside, text)) = &mut note
                        && open.len() >= *outside
                    {
                        text.push_str(paragraph.text.trim());
                        text.push(' ');
                    } else if let Some(cell) = table.as_mut().and_then(|table| table.cells.last_mut()) {
                        if !cell.is_empty() {
                            cell.push(' ');
                        }
                        cell.push_str(&paragraph.text);
                    } else if let Some(level) = paragraph.level {
                        out.heading(level, &paragraph.text)?;
                    } else if lists > 0 {
                        let indent = "  ".repeat(lists.min(8) - 1);
                        let mark = if std::mem::take(&mut item_is_new) { "- " } else { "  " };
                        let text = paragraph.text.trim();
                        if !text.is_empty() {
                            out.line(&format!("{indent}{mark}{text}"))?;
                        }
                    } else {
                        out.paragraph(&paragraph.text)?;
                    }
                }
                b"list" => {
                    lists = lists.saturating_sub(1);
                    if lists == 0 && table.is_none() && note.is_none() {
                        out.newlines(2);
                    }
                }
                b"note" => notes.extend(note.take().map(|(_, text)| text)),
                b"table-row" => {
                    if let Some(table) = table.as_mut().filter(|table| table.depth == 1) {
                        table.rows.row(out, &table.cells)?;
                        table.cells.clear();
                    }
                }
                b"table" => {
                    let closed = table.as_mut().is_some_and(|table| {
                        table.depth -= 1;
                        table.depth == 0
                    });
                    if closed {
                        table = None;
                        out.newlines(2);
                    }
                }
                _ => {}
            },
        }
    }
    out.newlines(2);
    for (index, note) in notes.iter().enumerate() {
        out.line(&format!("[^{}]: {}", index + 1, note.trim()))?;
    }
    Ok(())
}

fn level(tag: &Tag<'_>) -> u8 {
    tag.attr("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1)
}

fn append(open: &mut [Paragraph], text: &str) {
    if let Some(paragraph) = open.last_mut() {
        // Line ends in the XML are blanks; real ones are elements.
        if text == "\n" {
            paragraph.text.push('\n');
        } else {
            paragraph.text.extend(text.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
        }
    }
}
