//! Word documents: headings, lists, tables, footnotes.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufRead;

use crate::office;
use crate::outcome::Halt;
use crate::sink::{Out, RowBlocks};
use crate::xml::{Node, Tag, Xml};
use crate::zip::Archive;

/// Deepest chain of styles that are based on another.
const STYLE_CHAIN_MAX: usize = 16;

pub(crate) fn extract(file: File, out: &mut Out<'_>) -> Result<(), Halt> {
    let archive = office::open(file)?;
    let main = office::main_part(&archive, "word/document.xml")?;
    let relations = office::relations(&archive, &main)?;
    let related = |kind: &str| relations.iter().find(|r| r.kind == kind).map(|r| r.target.as_str());

    let styles = match related("styles") {
        Some(name) => Styles::read(&archive, name)?,
        None => Styles::default(),
    };
    let numbering = match related("numbering") {
        Some(name) => Numbering::read(&archive, name)?,
        None => Numbering::default(),
    };
    let mut body = Body { styles: &styles, numbering: &numbering, counters: HashMap::new(), in_list: false };
    body.read(&mut office::required(&archive, &main)?, out)?;
    for (kind, element, mark) in [("footnotes", "footnote", ""), ("endnotes", "endnote", "e")] {
        if let Some(mut xml) = related(kind).map(|name| office::part(&archive, name)).transpose()?.flatten() {
            notes(&mut xml, element, mark, out)?;
        }
    }
    Ok(())
}

/// What a style says about a paragraph.
#[derive(Default, Clone)]
struct Style {
    based_on: Option<String>,
    level: Option<u8>,
    numbered: Option<u32>,
}

#[derive(Default)]
struct Styles(HashMap<String, Style>);

impl Styles {
    fn read(archive: &Archive, name: &str) -> Result<Self, Halt> {
        let mut styles = HashMap::new();
        let Some(mut xml) = office::part(archive, name)? else {
            return Ok(Self(styles));
        };
        let (mut id, mut style) = (None, Style::default());
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) => match tag.name().as_bytes() {
                    b"style" => {
                        id = tag.attr("styleId").filter(|_| tag.attr("type").as_deref() == Some("paragraph"));
                        style = Style::default();
                    }
                    b"name" => {
                        let name = tag.attr("val").unwrap_or_default().to_lowercase();
                        style.level = match name.strip_prefix("heading ").map(str::parse) {
                            Some(Ok(level)) => Some(level),
                            _ if name == "title" => Some(1),
                            _ => style.level,
                        };
                    }
                    b"basedOn" => style.based_on = tag.attr("val"),
                    b"outlineLvl" => style.level = outline(&tag).or(style.level),
                    b"numId" => style.numbered = number(&tag),
                    _ => {}
                },
                Node::End(name) if name.as_bytes() == b"style" => {
                    if let Some(id) = id.take() {
                        styles.insert(id, std::mem::take(&mut style));
                    }
                }
                _ => {}
            }
        }
        Ok(Self(styles))
    }

    fn look_up<T>(&self, id: &str, pick: impl Fn(&Style) -> Option<T>) -> Option<T> {
        let mut style = self.0.get(id)?;
        for _ in 0..STYLE_CHAIN_MAX {
            if let Some(found) = pick(style) {
                return Some(found);
            }
            style = self.0.get(style.based_on.as_deref()?)?;
        }
        None
    }
}

/// An outline level counts from 0; 9 means body text.
fn outline(tag: &Tag<'_>) -> Option<u8> {
    tag.attr("val")?.parse::<u8>().ok().filter(|level| *level < 9).map(|level| level + 1)
}

fn number(tag: &Tag<'_>) -> Option<u32> {
    tag.attr("val")?.parse().ok()
}

/// Which lists and levels are numbered (the others have bullets).
#[derive(Default)]
struct Numbering {
    lists: HashMap<u32, u32>,
    bullets: HashMap<(u32, u32), bool>,
}

impl Numbering {
    fn read(archive: &Archive, name: &str) -> Result<Self, Halt> {
        let mut numbering = Self::default();
        let Some(mut xml) = office::part(archive, name)? else {
            return Ok(numbering);
        };
        let (mut definition, mut level, mut list) = (None, None, None);
        while let Some(node) = xml.next()? {
            let Node::Start(tag) = node else { continue };
            match tag.name().as_bytes() {
                b"abstractNum" => definition = tag.attr("abstractNumId").and_then(|id| id.parse::<u32>().ok()),
                b"lvl" => level = tag.attr("ilvl").and_then(|level| level.parse::<u32>().ok()),
                b"numFmt" => {
                    if let (Some(definition), Some(level)) = (definition, level) {
                        let format = tag.attr("val").unwrap_or_default();
                        numbering.bullets.insert((definition, level), format == "bullet" || format == "none");
                    }
                }
                b"num" => list = tag.attr("numId").and_then(|id| id.parse::<u32>().ok()),
                b"abstractNumId" => {
                    if let (Some(list), Some(definition)) = (list, number(&tag)) {
                        numbering.lists.insert(list, definition);
                    }
                }
                _ => {}
            }
        }
        Ok(numbering)
    }

    fn is_bullet(&self, list: u32, level: u32) -> bool {
        self.lists.get(&list).and_then(|definition| self.bullets.get(&(*definition, level))).copied().unwrap_or(true)
    }
}

#[derive(Default)]
struct Paragraph {
    text: String,
    style: Option<String>,
    level: Option<u8>,
    list: Option<u32>,
    list_level: u32,
}

struct Table {
    rows: RowBlocks,
    cells: Vec<String>,
    /// Tables inside a cell become text of the cell.
    depth: usize,
}

struct Body<'a> {
    styles: &'a Styles,
    numbering: &'a Numbering,
    counters: HashMap<(u32, u32), u32>,
    in_list: bool,
}

impl Body<'_> {
    fn read<R: BufRead>(&mut self, xml: &mut Xml<R>, out: &mut Out<'_>) -> Result<(), Halt> {
        // A paragraph can hold a text box, which holds paragraphs.
        let mut open: Vec<Paragraph> = Vec::new();
        let mut table: Option<Table> = None;
        while let Some(node) = xml.next()? {
            out.check()?;
            match node {
                Node::Start(tag) => {
                    let paragraph = open.last_mut();
                    match tag.name().as_bytes() {
                        b"p" => open.push(Paragraph::default()),
                        b"Fallback" | b"moveFrom" | b"del" | b"instrText" | b"pPrChange" | b"rPrChange" | b"sectPr" => {
                            xml.skip()?;
                        }
                        b"t" => {
                            let text = xml.text()?;
                            if let Some(paragraph) = open.last_mut() {
                                paragraph.text.push_str(&text);
                            }
                        }
                        b"tbl" => match &mut table {
                            Some(table) => table.depth += 1,
                            None => {
                                self.in_list = false;
                                out.newlines(2);
                                table = Some(Table { rows: RowBlocks::default(), cells: Vec::new(), depth: 1 });
                            }
                        },
                        b"tc" => {
                            if let Some(table) = table.as_mut().filter(|table| table.depth == 1) {
                                table.cells.push(String::new());
                            }
                        }
                        other => {
                            if let Some(paragraph) = paragraph {
                                inside(paragraph, other, &tag);
                            }
                        }
                    }
                }
                Node::End(name) => match name.as_bytes() {
                    b"p" => {
                        if let Some(paragraph) = open.pop() {
                            match table.as_mut().and_then(|table| table.cells.last_mut()) {
                                Some(cell) => {
                                    if !cell.is_empty() {
                                        cell.push(' ');
                                    }
                                    cell.push_str(&paragraph.text);
                                }
                                None => self.write(paragraph, out)?,
                            }
                        }
                    }
                    b"tr" => {
                        if let Some(table) = table.as_mut().filter(|table| table.depth == 1) {
                            table.rows.row(out, &table.cells)?;
                            table.cells.clear();
                        }
                    }
                    b"tbl" => {
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
                Node::Text(_) => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, paragraph: Paragraph, out: &mut Out<'_>) -> Result<(), Halt> {
        let Paragraph { text, style, level, list, list_level } = paragraph;
        if text.trim().is_empty() {
            return Ok(());
        }
        let style = style.as_deref().unwrap_or_default();
        if let Some(level) = level.or_else(|| self.styles.look_up(style, |style| style.level)) {
            self.in_list = false;
            return out.heading(level, &text);
        }
        // Number 0 takes a paragraph out of its style's list.
        let list = list.or_else(|| self.styles.look_up(style, |style| style.numbered)).filter(|list| *list != 0);
        let Some(list) = list else {
            self.in_list = false;
            return out.paragraph(&text);
        };
        if !std::mem::replace(&mut self.in_list, true) {
            out.newlines(2);
        }
        let indent = "  ".repeat(list_level.min(8) as usize);
        let text = text.trim();
        if self.numbering.is_bullet(list, list_level) {
            out.line(&format!("{indent}- {text}"))
        } else {
            self.counters.retain(|(of, level), _| *of != list || *level <= list_level);
            let count = self.counters.entry((list, list_level)).or_insert(0);
            *count += 1;
            out.line(&format!("{indent}{count}. {text}"))
        }
    }
}

/// Elements that matter inside a paragraph.
fn inside(paragraph: &mut Paragraph, name: &[u8], tag: &Tag<'_>) {
    match name {
        b"pStyle" => paragraph.style = tag.attr("val"),
        b"outlineLvl" => paragraph.level = outline(tag),
        b"numId" => paragraph.list = number(tag),
        b"ilvl" => paragraph.list_level = number(tag).unwrap_or(0),
        b"tab" if tag.attr("pos").is_none() => paragraph.text.push('\t'),
        b"br" | b"cr" => paragraph.text.push('\n'),
        b"noBreakHyphen" => paragraph.text.push('-'),
        b"sym" => paragraph.text.push('•'),
        b"footnoteReference" | b"endnoteReference" => {
            if let Some(id) = tag.attr("id") {
                let mark = if name == b"endnoteReference" { "e" } else { "" };
                paragraph.text.push_str(&format!("[^{mark}{id}]"));
            }
        }
        _ => {}
    }
}

fn notes<R: BufRead>(xml: &mut Xml<R>, element: &str, mark: &str, out: &mut Out<'_>) -> Result<(), Halt> {
    let mut note: Option<(String, String)> = None;
    out.newlines(2);
    while let Some(node) = xml.next()? {
        out.check()?;
        match node {
            Node::Start(tag) => match tag.name().as_bytes() {
                name if name == element.as_bytes() => {
                    note = tag
                        .attr("id")
                        .filter(|_| tag.attr("type").is_none_or(|t| t == "normal"))
                        .map(|id| (id, String::new()));
                }
                b"t" => {
                    let text = xml.text()?;
                    if let Some((_, so_far)) = &mut note {
                        so_far.push_str(&text);
                    }
                }
                b"del" | b"moveFrom" | b"instrText" => xml.skip()?,
                b"p" | b"tab" | b"br" => {
                    if let Some((_, so_far)) = note.as_mut().filter(|(_, text)| !text.is_empty()) {
                        so_far.push(' ');
                    }
                }
                _ => {}
            },
            Node::End(name) if name.as_bytes() == element.as_bytes() => {
                if let Some((id, text)) = note.take().filter(|(_, text)| !text.trim().is_empty()) {
                    out.line(&format!("[^{mark}{id}]: {}", text.trim()))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
