//! Web pages: the title and the main text, without navigation, scripts and forms.
//!
//! A forgiving tokenizer over decoded text; memory is bounded by one tag or one paragraph.

mod tokens;

use std::fs::File;
use std::io::{Seek, SeekFrom};

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use tokens::{Token, Tokens, attribute};

use crate::outcome::{ExtractError, Halt};
use crate::sink::{Out, RowBlocks, squeeze};
use crate::text;

/// A paragraph or cell is handed on in stretches of at most this many bytes.
const PARAGRAPH_BYTES_MAX: usize = 64 * 1024;
/// Rows with more cells are continued on the next line.
const CELLS_MAX: usize = 1_000;

/// The encoding: as for any text, and a `charset` declared in the first bytes.
pub(crate) fn detect(head: &[u8]) -> Result<&'static Encoding, ExtractError> {
    let found = text::detect(head);
    if Encoding::for_bom(head).is_some() {
        return found;
    }
    match (found, declared(head)) {
        (Ok(encoding), Some(declared)) if encoding == WINDOWS_1252 || (encoding == UTF_8 && head.is_ascii()) => {
            Ok(declared)
        }
        (Err(error), Some(declared)) => {
            let sound =
                !head.contains(&0) && !declared.decode(head).0.chars().take(head.len() / 4).any(|c| c == '\u{fffd}');
            if sound { Ok(declared) } else { Err(error) }
        }
        (found, _) => found,
    }
}

fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&head[..head.len().min(2048)]).to_ascii_lowercase();
    let after = &head[head.find("charset=")? + 8..];
    let label = after.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(label.len());
    Encoding::for_label(&label.as_bytes()[..end]).filter(|encoding| encoding.is_ascii_compatible())
}

pub(crate) fn extract(mut file: File, head: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
    let encoding = detect(head)?;
    let has_main = has_main(&mut Tokens::new(&mut file, encoding), out)?;
    // Pages whose whole text stands where navigation should be are read again without the filter.
    for reach in [if has_main { Reach::Main } else { Reach::Body }, Reach::Everything] {
        file.seek(SeekFrom::Start(0))?;
        let mut page = Page { reach, ..Page::default() };
        let mut tokens = Tokens::new(&mut file, encoding);
        while let Some(token) = tokens.next()? {
            out.check()?;
            page.token(token, out)?;
        }
        page.flush(out)?;
        if page.wrote {
            break;
        }
        if reach == Reach::Everything {
            page.write_title(out)?;
        }
    }
    Ok(())
}

fn has_main(tokens: &mut Tokens<&mut File>, out: &mut Out<'_>) -> Result<bool, Halt> {
    while let Some(token) = tokens.next()? {
        out.check()?;
        if let Token::Start { name, attributes } = token
            && is_main(&name, &attributes)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_main(name: &str, attributes: &str) -> bool {
    name == "main" || attribute(attributes, "role").is_some_and(|role| role == "main")
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Reach {
    Main,
    #[default]
    Body,
    Everything,
}

enum List {
    Bullets,
    Numbers(u32),
}

#[derive(Default)]
struct Page {
    reach: Reach,
    main: usize,
    /// The element being skipped and how often it is open.
    skipped: Option<(String, usize)>,
    in_title: bool,
    title: Option<String>,
    paragraph: String,
    heading: Option<u8>,
    lists: Vec<List>,
    item: Option<String>,
    preformatted: usize,
    tables: usize,
    rows: RowBlocks,
    cells: Vec<String>,
    wrote: bool,
}

impl Page {
    fn token(&mut self, token: Token, out: &mut Out<'_>) -> Result<(), Halt> {
        match token {
            Token::Text(text) => self.text(&text, out),
            Token::Start { name, attributes } => self.start(&name, &attributes, out),
            Token::End { name } => self.end(&name, out),
        }
    }

    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        if self.in_title {
            let title = squeeze(text);
            if self.title.is_none() && !title.is_empty() {
                self.title = Some(title);
            }
            return Ok(());
        }
        if self.skipped.is_some() || (self.reach == Reach::Main && self.main == 0) {
            return Ok(());
        }
        let target = match self.cells.last_mut() {
            Some(cell) if self.tables > 0 => cell,
            _ => &mut self.paragraph,
        };
        if self.preformatted > 0 {
            target.push_str(text);
        } else {
            for c in text.chars() {
                if !c.is_whitespace() || c == '\u{a0}' {
                    target.push(if c == '\u{a0}' { ' ' } else { c });
                } else if !target.is_empty() && !target.ends_with([' ', '\n']) {
                    target.push(' ');
                }
            }
        }
        if target.len() > PARAGRAPH_BYTES_MAX {
            if self.tables > 0 && !self.cells.is_empty() {
                return self.row(out);
            }
            return self.flush(out);
        }
        Ok(())
    }

    fn start(&mut self, name: &str, attributes: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth += 1;
            }
            return Ok(());
        }
        if name == "title" {
            self.in_title = self.title.is_none();
            if !self.in_title {
                self.skipped = Some((name.to_owned(), 1));
            }
            return Ok(());
        }
        if self.skips(name, attributes) {
            self.skipped = Some((name.to_owned(), 1));
            return Ok(());
        }
        if self.main > 0 && name == "main" || self.main == 0 && is_main(name, attributes) {
            self.main += 1;
        }
        match name {
            "br" => {
                let target = if self.tables > 0 { self.cells.last_mut() } else { None };
                match target {
                    Some(cell) => cell.push(' '),
                    None => self.paragraph.push('\n'),
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if self.tables == 0 => {
                self.flush(out)?;
                self.heading = name[1..].parse().ok();
            }
            "ul" | "menu" | "dl" => {
                self.flush(out)?;
                self.lists.push(List::Bullets);
            }
            "ol" => {
                self.flush(out)?;
                self.lists.push(List::Numbers(0));
            }
            "li" | "dt" | "dd" if self.tables == 0 => {
                self.flush(out)?;
                let indent = "  ".repeat(self.lists.len().clamp(1, 8) - 1);
                self.item = Some(match (name, self.lists.last_mut()) {
                    ("dd", _) => format!("{indent}  "),
                    (_, Some(List::Numbers(count))) => {
                        *count += 1;
                        format!("{indent}{count}. ")
                    }
                    _ => format!("{indent}- "),
                });
            }
            "pre" if self.tables == 0 => {
                self.flush(out)?;
                self.preformatted += 1;
            }
            "table" => {
                if self.tables == 0 {
                    self.flush(out)?;
                    out.newlines(2);
                    self.rows = RowBlocks::default();
                }
                self.tables += 1;
            }
            "tr" if self.tables == 1 => self.row(out)?,
            "td" | "th" if self.tables == 1 => {
                if self.cells.len() >= CELLS_MAX {
                    self.row(out)?;
                }
                self.cells.push(String::new());
            }
            _ if is_block(name) => self.block(out)?,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        if name == "title" {
            self.in_title = false;
        }
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return Ok(());
        }
        match name {
            "main" => {
                self.flush(out)?;
                self.main = self.main.saturating_sub(1);
            }
            "pre" if self.tables == 0 => {
                self.flush(out)?;
                self.preformatted = self.preformatted.saturating_sub(1);
            }
            "ul" | "ol" | "menu" | "dl" => {
                self.block(out)?;
                self.lists.pop();
                if self.lists.is_empty() && self.tables == 0 {
                    out.newlines(2);
                }
            }
            "tr" if self.tables == 1 => self.row(out)?,
            "table" if self.tables > 0 => {
                if self.tables == 1 {
                    self.row(out)?;
                    out.newlines(2);
                }
                self.tables -= 1;
            }
            "caption" => self.flush(out)?,
            _ if is_block(name) || name.len() == 2 && name.starts_with('h') => self.block(out)?,
            _ => {}
        }
        Ok(())
    }

    fn block(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        if self.tables > 0 {
            if let Some(cell) = self.cells.last_mut()
                && !cell.is_empty()
            {
                cell.push(' ');
            }
            return Ok(());
        }
        self.flush(out)
    }

    fn row(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        let cells = std::mem::take(&mut self.cells);
        if cells.iter().any(|cell| !cell.trim().is_empty()) {
            self.before_text(None, out)?;
            self.rows.row(out, &cells)?;
        }
        Ok(())
    }

    /// Writes the paragraph, heading or list item collected so far.
    fn flush(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        let heading = self.heading.take();
        if self.paragraph.trim().is_empty() {
            self.paragraph.clear();
            return Ok(());
        }
        let paragraph = std::mem::take(&mut self.paragraph);
        let item = self.item.take();
        self.before_text(heading.map(|level| (level, paragraph.as_str())), out)?;
        if let Some(level) = heading {
            out.heading(level, &paragraph)
        } else if self.preformatted > 0 {
            out.newlines(2);
            out.text("```\n")?;
            out.text(paragraph.trim_matches('\n'))?;
            out.newlines(1);
            out.text("```")?;
            out.newlines(2);
            Ok(())
        } else if let Some(item) = item {
            out.line(&format!("{item}{}", paragraph.trim()))
        } else {
            out.paragraph(&paragraph)
        }
    }

    /// The title goes first, unless the page opens with a heading that says the same.
    fn before_text(&mut self, heading: Option<(u8, &str)>, out: &mut Out<'_>) -> Result<(), Halt> {
        if std::mem::replace(&mut self.wrote, true) {
            return Ok(());
        }
        let same = heading.filter(|(level, _)| *level == 1).is_some_and(|(_, heading)| {
            let heading = squeeze(heading);
            self.title.as_deref().is_some_and(|title| title.contains(&heading) || heading.contains(title))
        });
        if same { Ok(()) } else { self.write_title(out) }
    }

    fn write_title(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        match self.title.as_deref() {
            Some(title) => out.heading(1, title),
            None => Ok(()),
        }
    }

    fn skips(&self, name: &str, attributes: &str) -> bool {
        // Elements without an end tag must never start a skip.
        if matches!(
            name,
            "br" | "hr"
                | "img"
                | "input"
                | "link"
                | "meta"
                | "source"
                | "wbr"
                | "area"
                | "base"
                | "col"
                | "embed"
                | "track"
        ) {
            return false;
        }
        if matches!(
            name,
            "script"
                | "style"
                | "noscript"
                | "template"
                | "svg"
                | "canvas"
                | "iframe"
                | "object"
                | "audio"
                | "video"
                | "select"
                | "textarea"
                | "button"
                | "dialog"
                | "noframes"
                | "math"
        ) {
            return true;
        }
        if self.reach == Reach::Everything {
            return false;
        }
        matches!(name, "nav" | "footer" | "aside")
            || attribute(attributes, "role").is_some_and(|role| {
                matches!(
                    role.as_str(),
                    "navigation" | "banner" | "contentinfo" | "search" | "complementary" | "menu" | "menubar"
                )
            })
            || attribute(attributes, "hidden").is_some()
            || attribute(attributes, "aria-hidden").is_some_and(|value| value == "true")
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "header"
            | "footer"
            | "main"
            | "aside"
            | "nav"
            | "blockquote"
            | "figure"
            | "figcaption"
            | "address"
            | "hr"
            | "form"
            | "fieldset"
            | "legend"
            | "details"
            | "summary"
            | "li"
            | "dt"
            | "dd"
            | "body"
            | "html"
            | "head"
            | "center"
            | "caption"
            | "tbody"
            | "thead"
            | "tfoot"
            | "td"
            | "th"
            | "option"
    )
}
