//! What the answer is written on: colours and width of the terminal.

use std::io::IsTerminal;

use tale_env::{EnvSource, registry};

/// Width where nothing is known about it.
const USUAL: usize = 100;
/// Widest line that is comfortable to read.
const WIDEST: usize = 120;
/// Narrowest width that is laid out for.
const NARROWEST: usize = 40;

/// Colours and width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    pub colour: bool,
    pub width: usize,
}

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ink {
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
    Cyan,
}

impl Paper {
    /// Of standard output. NO_COLOR and FORCE_COLOR decide before the terminal does.
    pub(super) fn new(env: &dyn EnvSource) -> Self {
        let set = |var: &registry::Var| env.get(var.name).filter(|text| !text.is_empty());
        let colour = match (set(&registry::NO_COLOR), set(&registry::FORCE_COLOR)) {
            (Some(_), _) => false,
            (None, Some(force)) => force != "0",
            (None, None) => std::io::stdout().is_terminal(),
        };
        let width = terminal_size::terminal_size().map_or(USUAL, |(width, _)| usize::from(width.0));
        Self { colour, width: width.clamp(NARROWEST, WIDEST) }
    }

    /// `text` in `ink`.
    pub(super) fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
            Ink::Yellow => 33,
            Ink::Green => 32,
            Ink::Cyan => 36,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// `text` in lines that end before the width, each after `indent` blanks.
    pub(super) fn wrapped(&self, text: &str, indent: usize) -> Vec<String> {
        let room = self.width.saturating_sub(indent).max(20);
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            let last = lines.len() - 1;
            let used = lines[last].chars().count();
            if used > 0 && used + 1 + word.chars().count() > room {
                lines.push(word.to_owned());
                continue;
            }
            if used > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
        lines
    }
}

/// `text` with blanks behind it up to `width`.
pub(super) fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// `text`, cut to `width` with an ellipsis.
pub(super) fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
