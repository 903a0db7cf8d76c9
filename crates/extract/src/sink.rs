//! Where extractors write: one normalising writer in front of the consumer.

use std::ops::ControlFlow;

use crate::limits::WHITESPACE_RUN_MAX;
use crate::outcome::{ExtractError, Halt, OutcomeCode};
use crate::secrets::SecretScanner;

/// What a consumer of an extraction receives, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next stretch of the extracted text. The pieces concatenated are the extracted text.
    Text(&'a str),
    /// The text that follows is on this page (PDF) or slide (PPTX), counted from 1.
    Page(u32),
}

/// Text is handed on in stretches of about this many bytes.
const FLUSH_BYTES: usize = 32 * 1024;
/// The deadline closure is asked once for this many steps of work.
const CHECK_EVERY: u32 = 64;

/// The writer that every extractor uses.
///
/// It normalises line ends, drops control characters, caps runs of white space, scans for credentials, keeps the
/// budget of unpacked bytes and asks whether to go on.
pub(crate) struct Out<'a> {
    on_piece: &'a mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    keep_going: &'a dyn Fn() -> bool,
    buffer: String,
    secrets: SecretScanner,
    newlines: usize,
    run: usize,
    after_cr: bool,
    any_text: bool,
    checks: u32,
    pub(crate) nul_bytes: u64,
}

impl<'a> Out<'a> {
    pub(crate) fn new(
        on_piece: &'a mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
        keep_going: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            on_piece,
            keep_going,
            buffer: String::with_capacity(FLUSH_BYTES + 4096),
            secrets: SecretScanner::default(),
            newlines: 2,
            run: 0,
            after_cr: false,
            any_text: false,
            checks: 0,
            nul_bytes: 0,
        }
    }

    /// Asks the deadline once in a while. Call it for every step of work that may repeat without end.
    pub(crate) fn check(&mut self) -> Result<(), Halt> {
        self.checks += 1;
        if self.checks >= CHECK_EVERY {
            self.checks = 0;
            self.check_now()?;
        }
        Ok(())
    }

    fn check_now(&mut self) -> Result<(), Halt> {
        if (self.keep_going)() {
            Ok(())
        } else {
            Err(ExtractError::indexer("Reading the file took too long and was stopped.").into())
        }
    }

    /// Appends text as it is (after normalising).
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Halt> {
        for c in text.chars() {
            self.push(c);
            if self.buffer.len() >= FLUSH_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn push(&mut self, c: char) {
        let after_cr = std::mem::replace(&mut self.after_cr, c == '\r');
        let c = match c {
            '\r' => '\n',
            '\n' if after_cr => return,
            '\n' | '\t' | '\u{c}' => c,
            '\u{0}' => {
                self.nul_bytes += 1;
                return;
            }
            '\u{1}'..='\u{1f}' | '\u{7f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => return,
            other => other,
        };
        if c.is_whitespace() {
            if self.run >= WHITESPACE_RUN_MAX {
                return;
            }
            self.run += 1;
        } else {
            self.run = 0;
            self.any_text = true;
        }
        match c {
            '\n' => self.newlines += 1,
            _ => self.newlines = 0,
        }
        self.buffer.push(c);
    }

    /// Makes the text end with at least `count` line ends (nothing at the very start).
    pub(crate) fn newlines(&mut self, count: usize) {
        while self.newlines < count && self.any_text {
            let before = self.buffer.len();
            self.push('\n');
            if self.buffer.len() == before {
                break; // the cap on white space holds
            }
        }
    }

    /// A heading on a line of its own, as Markdown.
    pub(crate) fn heading(&mut self, level: u8, text: &str) -> Result<(), Halt> {
        let text = squeeze(text);
        if text.is_empty() {
            return Ok(());
        }
        self.newlines(2);
        for _ in 0..level.clamp(1, 6) {
            self.push('#');
        }
        self.push(' ');
        self.text(&text)?;
        self.newlines(2);
        Ok(())
    }

    /// A block between blank lines.
    pub(crate) fn paragraph(&mut self, text: &str) -> Result<(), Halt> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        self.newlines(2);
        self.text(text)?;
        self.newlines(2);
        Ok(())
    }

    /// A line of a list or table.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Halt> {
        let text = text.trim_end();
        if text.trim_start().is_empty() {
            return Ok(());
        }
        self.newlines(1);
        self.text(text)?;
        self.newlines(1);
        Ok(())
    }

    /// Marks what follows as being on this page. From the second page on, a form feed stands between the pages.
    pub(crate) fn page(&mut self, number: u32) -> Result<(), Halt> {
        if self.any_text {
            self.newlines(2);
            self.push('\u{c}');
            self.newlines = 2;
        }
        self.flush()?;
        self.hand_on(Piece::Page(number))?;
        self.check_now()
    }

    fn flush(&mut self) -> Result<(), Halt> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.secrets.push(&buffer)?;
        self.hand_on(Piece::Text(&buffer))?;
        self.buffer = buffer;
        self.buffer.clear();
        self.check_now()
    }

    fn hand_on(&mut self, piece: Piece<'_>) -> Result<(), Halt> {
        match (self.on_piece)(piece) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Halt::Stopped),
        }
    }

    /// Hands on the rest and gives the final verdict.
    pub(crate) fn finish(mut self, empty_sentence: &str) -> Result<(), Halt> {
        self.flush()?;
        self.secrets.finish()?;
        if !self.any_text {
            return Err(ExtractError::new(OutcomeCode::Empty, empty_sentence).into());
        }
        Ok(())
    }
}

/// White space collapsed to single blanks, ends trimmed.
pub(crate) fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}

/// One line of a table from its cells; empty cells at the end are left out.
pub(crate) fn row_line<S: AsRef<str>>(cells: &[S]) -> String {
    let used = cells.iter().rposition(|cell| !cell.as_ref().trim().is_empty()).map_or(0, |last| last + 1);
    let mut line = String::new();
    for (index, cell) in cells[..used].iter().enumerate() {
        if index > 0 {
            line.push_str(" | ");
        }
        line.push_str(&squeeze(cell.as_ref()));
    }
    line
}

/// Writes the rows of a table; the first row is repeated at the head of every block of rows.
#[derive(Default)]
pub(crate) struct RowBlocks {
    header: Option<String>,
    in_block: usize,
}

/// Rows are grouped into blocks of about this many bytes, so that a block fits one passage.
const BLOCK_BYTES: usize = 1600;
/// A first row longer than this is not repeated.
const HEADER_BYTES_MAX: usize = 400;

impl RowBlocks {
    pub(crate) fn row<S: AsRef<str>>(&mut self, out: &mut Out<'_>, cells: &[S]) -> Result<(), Halt> {
        let line = row_line(cells);
        if line.is_empty() {
            return out.check();
        }
        let first = self.header.is_none();
        if !first && self.in_block > 0 && self.in_block + line.len() > BLOCK_BYTES {
            out.newlines(2);
            self.in_block = 0;
            if let Some(header) = self.header.as_deref().filter(|header| !header.is_empty()) {
                out.line(header)?;
                self.in_block = header.len();
            }
        }
        out.line(&line)?;
        self.in_block += line.len() + 1;
        if first {
            self.header = Some(if line.len() <= HEADER_BYTES_MAX { line } else { String::new() });
        }
        out.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Out<'_>) -> Result<(), Halt>) -> String {
        let mut text = String::new();
        let mut on_piece = |piece: Piece<'_>| {
            if let Piece::Text(piece) = piece {
                text.push_str(piece);
            }
            ControlFlow::Continue(())
        };
        let mut out = Out::new(&mut on_piece, &|| true);
        write(&mut out).unwrap();
        out.finish("nothing").unwrap();
        text
    }

    #[test]
    fn line_ends_and_controls_are_normalised() {
        assert_eq!(written(|out| out.text("a\r\nb\rc\u{0}\u{1}d\u{feff}\n\r\ne")), "a\nb\ncd\n\ne");
    }

    #[test]
    fn white_space_runs_are_capped() {
        let text = written(|out| out.text(&format!("a{}b", " ".repeat(10_000))));
        assert_eq!(text.len(), WHITESPACE_RUN_MAX + 2);
    }

    #[test]
    fn blocks_are_separated() {
        let text = written(|out| {
            out.heading(2, " A\n title ")?;
            out.paragraph("one")?;
            out.line("- x")?;
            out.line("- y")?;
            out.paragraph("two")
        });
        assert_eq!(text, "## A title\n\none\n\n- x\n- y\n\ntwo\n\n");
    }

    #[test]
    fn the_header_row_is_repeated() {
        let text = written(|out| {
            let mut rows = RowBlocks::default();
            rows.row(out, &["Name", "Value", ""])?;
            for n in 0..400 {
                rows.row(out, &[format!("item {n}"), "v".repeat(20)])?;
            }
            Ok(())
        });
        let blocks: Vec<&str> = text.trim().split("\n\n").collect();
        assert!(blocks.len() > 5);
        assert!(blocks.iter().all(|block| block.starts_with("Name | Value\nitem ") && block.len() <= 1700));
    }
}
