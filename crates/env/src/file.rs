//! Environment files in the syntax that compose reads.
//!
//! `NAME=value`, `NAME: value` and `export NAME=value`, comments, single and double quotes that may
//! span lines, `$NAME` and `${NAME:-default}` with the operators of compose, Windows line ends and a
//! byte order mark. What is wrong is reported with its line, and reading goes on.

use crate::reader::{EnvProblem, Severity};

/// Longest value after interpolation, in bytes.
const VALUE_LIMIT: usize = 256 * 1024;
/// Most that all interpolations of one file may look up, in bytes: lines that double each other must
/// not fill the memory.
const TOTAL_LIMIT: usize = 4 * 1024 * 1024;
/// Deepest nesting of `${A:-${B}}`.
const DEPTH_LIMIT: usize = 16;

/// A parsed file.
#[derive(Debug, Clone, Default)]
pub struct EnvFile {
    /// The last value of each name, in the order of first appearance.
    pub entries: Vec<FileEntry>,
    /// What is wrong with it.
    pub problems: Vec<FileProblem>,
}

/// One variable of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The name.
    pub name: String,
    /// The value, without quotes and interpolated.
    pub value: String,
    /// The line it begins in, from 1.
    pub line: usize,
}

/// One mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The line, from 1.
    pub line: usize,
    /// An error loses a value; a warning does not.
    pub severity: Severity,
    /// The variable, or the word "line".
    pub subject: String,
    /// What is wrong, continuing the subject.
    pub why: String,
    /// What to do.
    pub fix: String,
}

impl FileProblem {
    /// As a finding about the file `path`.
    #[must_use]
    pub fn at(self, path: &str) -> EnvProblem {
        let place = Some(format!("{path}:{}", self.line));
        EnvProblem { place, ..EnvProblem::new(self.severity, self.subject, self.why, self.fix) }
    }
}

impl EnvFile {
    /// Reads `text`. `outer` is the environment around it: compose lets it win in interpolations, and
    /// a name without a value is taken from it.
    #[must_use]
    pub fn parse(text: &str, outer: &dyn Fn(&str) -> Option<String>) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let mut parser = Parser { rest: &text, line: 1, outer, file: Self::default(), looked_up: 0 };
        while !parser.rest.is_empty() {
            parser.statement();
        }
        parser.file
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value.as_str())
    }
}

/// `value` as it can stand after `NAME=`, so that reading gives the same value back.
#[must_use]
pub fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@,+=-".contains(c);
    if value.chars().all(plain) {
        return value.to_owned();
    }
    if !value.contains(['\'', '\\', '\n', '\r']) {
        return format!("'{value}'");
    }
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '$' => out.push_str("\\$"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

struct Parser<'a> {
    rest: &'a str,
    line: usize,
    outer: &'a dyn Fn(&str) -> Option<String>,
    file: EnvFile,
    /// Bytes that interpolations looked up so far.
    looked_up: usize,
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Parser<'a> {
    fn report(&mut self, line: usize, severity: Severity, subject: &str, why: &str, fix: &str) {
        let (subject, why, fix) = (subject.to_owned(), why.to_owned(), fix.to_owned());
        self.file.problems.push(FileProblem { line, severity, subject, why, fix });
    }

    /// Takes `count` bytes and counts the lines in them.
    fn take(&mut self, count: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(count);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
        taken
    }

    /// Takes what is left of the line, with its end.
    fn rest_of_line(&mut self) -> &'a str {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        self.take(end).trim_end_matches('\n')
    }

    fn blanks(&mut self) {
        let count = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\u{b}', '\u{c}', '\r']).len();
        self.take(count);
    }

    fn statement(&mut self) {
        self.blanks();
        if self.rest.starts_with(['\n', '#']) || self.rest.is_empty() {
            self.rest_of_line();
            return;
        }
        if let Some(after) = self.rest.strip_prefix("export")
            && after.starts_with([' ', '\t'])
        {
            self.take("export".len());
            self.blanks();
        }
        let line = self.line;
        let length = self.rest.find(|c| !is_name(c) && c != '.' && c != '-').unwrap_or(self.rest.len());
        let name = self.take(length);
        self.blanks();
        if !name.starts_with(is_name_start) {
            self.rest_of_line();
            self.report(
                line,
                Severity::Error,
                "The line",
                "is not NAME=value",
                "Write NAME=value, or # before a comment",
            );
            return;
        }
        if self.rest.is_empty() || self.rest.starts_with(['\n', '#']) {
            self.rest_of_line();
            // Without a value the name is handed through from the environment around.
            if let Some(value) = (self.outer)(name) {
                self.store(name, value, line);
            }
            return;
        }
        if !self.rest.starts_with(['=', ':']) {
            self.rest_of_line();
            self.report(line, Severity::Error, name, "is followed by something else than =", "Write NAME=value");
            return;
        }
        self.take(1);
        self.blanks();
        match self.value(name, line) {
            Some(value) if value.len() > VALUE_LIMIT => {
                self.report(line, Severity::Error, name, "is too long after interpolation", "Shorten it");
            }
            Some(value) => self.store(name, value, line),
            None => {}
        }
    }

    fn store(&mut self, name: &str, value: String, line: usize) {
        let name = name.to_owned();
        match self.file.entries.iter().position(|entry| entry.name == name) {
            Some(index) => {
                let why = format!("stands in line {} already; this line wins", self.file.entries[index].line);
                self.report(line, Severity::Warning, &name, &why, "Remove one of the two lines");
                self.file.entries[index] = FileEntry { name, value, line };
            }
            None => self.file.entries.push(FileEntry { name, value, line }),
        }
    }

    fn value(&mut self, name: &str, line: usize) -> Option<String> {
        match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let Some(end) = closing(&self.rest[1..], quote) else {
                    self.rest_of_line();
                    let why = format!("has an opening {quote} that is never closed");
                    self.report(line, Severity::Error, name, &why, "Close the quotes");
                    return None;
                };
                self.take(1);
                let inner = self.take(end);
                self.take(1);
                let tail = self.rest_of_line().trim();
                if !tail.is_empty() && !tail.starts_with('#') {
                    let why = "has text after its closing quotes, which is ignored";
                    self.report(line, Severity::Warning, name, why, "Remove it, or write # before it");
                }
                match quote {
                    '\'' => Some(inner.replace("\\'", "'")),
                    _ => self.expanded(inner, name, line, true),
                }
            }
            _ => {
                let text = self.rest_of_line();
                let bare = if text.starts_with('#') { "" } else { comment_start(text).map_or(text, |at| &text[..at]) };
                self.expanded(bare.trim_end(), name, line, false)
            }
        }
    }

    /// `text` with its variables filled in; in double quotes also with its escapes.
    fn expanded(&mut self, text: &str, name: &str, line: usize, escapes: bool) -> Option<String> {
        match (Expansion { parser: self, size: 0 }).run(text, escapes, 0) {
            Ok(value) => Some(value),
            Err(why) => {
                let fix = "Correct it, or put the value in single quotes when it is meant literally";
                self.report(line, Severity::Error, name, &why, fix);
                None
            }
        }
    }
}

/// Where the closing quote stands.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            // In single quotes a backslash escapes only the quote itself.
            '\\' if quote == '"' || text[index + 1..].starts_with('\'') => escaped = true,
            _ if c == quote => return Some(index),
            _ => {}
        }
    }
    None
}

/// Where a comment begins that follows a blank.
fn comment_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len()).find(|&at| bytes[at] == b'#' && matches!(bytes[at - 1], b' ' | b'\t')).map(|at| at - 1)
}

struct Expansion<'p, 'a> {
    parser: &'p mut Parser<'a>,
    /// Bytes looked up for this value.
    size: usize,
}

impl Expansion<'_, '_> {
    fn run(&mut self, text: &str, escapes: bool, depth: usize) -> Result<String, String> {
        if depth > DEPTH_LIMIT {
            return Err("nests ${…} too deeply".to_owned());
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            rest = match c {
                '\\' if escapes => unescape(after, &mut out),
                '$' => self.variable(after, escapes, depth, &mut out)?,
                _ => {
                    out.push(c);
                    after
                }
            };
        }
        Ok(out)
    }

    /// What stands for the variable at the beginning of `text`, after its dollar sign.
    fn variable<'t>(
        &mut self,
        text: &'t str,
        escapes: bool,
        depth: usize,
        out: &mut String,
    ) -> Result<&'t str, String> {
        if let Some(after) = text.strip_prefix('$') {
            out.push('$');
            return Ok(after);
        }
        if let Some(inner) = text.strip_prefix('{') {
            let end = brace(inner).ok_or("has a ${ that is never closed")?;
            let value = self.braced(&inner[..end], escapes, depth)?;
            out.push_str(&value);
            return Ok(&inner[end + 1..]);
        }
        let length = text.find(|c| !is_name(c)).unwrap_or(text.len());
        if length == 0 || !text.starts_with(is_name_start) {
            out.push('$');
            return Ok(text);
        }
        let value = self.look_up(&text[..length])?.unwrap_or_default();
        out.push_str(&value);
        Ok(&text[length..])
    }

    fn braced(&mut self, inner: &str, escapes: bool, depth: usize) -> Result<String, String> {
        let length = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
        let (name, operator) = inner.split_at(length);
        if !name.starts_with(is_name_start) {
            return Err("has a ${…} without a name".to_owned());
        }
        let value = self.look_up(name)?;
        let filled = value.as_deref().is_some_and(|text| !text.is_empty());
        let (usable, operator) = match operator.strip_prefix(':') {
            Some(rest) => (filled, rest),
            None => (value.is_some(), operator),
        };
        let mut chars = operator.chars();
        let (sign, word) = (chars.next(), chars.as_str());
        match sign {
            None if operator.len() == inner.len() - length => Ok(value.unwrap_or_default()),
            Some('-') if usable => Ok(value.unwrap_or_default()),
            Some('-') => self.run(word, escapes, depth + 1),
            Some('+') if usable => self.run(word, escapes, depth + 1),
            Some('+') => Ok(String::new()),
            Some('?') if usable => Ok(value.unwrap_or_default()),
            Some('?') if word.is_empty() => Err(format!("needs {name}, which is not set")),
            Some('?') => Err(format!("needs {name}, which is not set: {word}")),
            _ => Err("has a ${…} with an unknown operator".to_owned()),
        }
    }

    fn look_up(&mut self, name: &str) -> Result<Option<String>, String> {
        let outer = (self.parser.outer)(name);
        let value = outer.or_else(|| self.parser.file.get(name).map(str::to_owned));
        let length = value.as_ref().map_or(0, String::len);
        self.size += length;
        self.parser.looked_up += length;
        if self.size > VALUE_LIMIT || self.parser.looked_up > TOTAL_LIMIT {
            return Err("is too long after interpolation".to_owned());
        }
        Ok(value)
    }
}

/// Where the brace stands that closes `text`.
fn brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (index, c) in text.char_indices() {
        match c {
            '{' if previous == '$' => depth += 1,
            '}' if depth == 0 => return Some(index),
            '}' => depth -= 1,
            _ => {}
        }
        previous = c;
    }
    None
}

/// Puts the character that a backslash before `text` means, and returns what follows.
fn unescape<'t>(text: &'t str, out: &mut String) -> &'t str {
    let Some(c) = text.chars().next() else {
        out.push('\\');
        return text;
    };
    match c {
        'n' => out.push('\n'),
        'r' => out.push('\r'),
        't' => out.push('\t'),
        '\\' | '"' | '$' | '\'' => out.push(c),
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    &text[c.len_utf8()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> EnvFile {
        EnvFile::parse(text, &|name| (name == "OUTER").then(|| "around".to_owned()))
    }

    #[test]
    fn values_read_as_compose_reads_them() {
        let file = parse(
            "\u{feff}# comment\r\nA=plain # why\r\nexport B = spaced \nC: yaml\nD='single $A \\' it'\nE=\"double $A\\n\\$A\"\n\
             F=a#b\nG= # nothing\nH=\nI=\"two\nlines\" # ok\nJ=$A-${A}-${X:-default ${A}}-${H:-empty}-${H-kept}-${A:+alt}-${X+no}\nK=$$A 5$\nOUTER\nL=${OUTER}\nM=\"a\\\\\"\n",
        );
        assert_eq!(file.problems, []);
        let expected = [
            ("A", "plain"),
            ("B", "spaced"),
            ("C", "yaml"),
            ("D", "single $A ' it"),
            ("E", "double plain\n$A"),
            ("F", "a#b"),
            ("G", ""),
            ("H", ""),
            ("I", "two\nlines"),
            ("J", "plain-plain-default plain-empty--alt-"),
            ("K", "$A 5$"),
            ("OUTER", "around"),
            ("L", "around"),
            ("M", "a\\"),
        ];
        for (name, value) in expected {
            assert_eq!(file.get(name), Some(value), "{name}");
        }
        assert_eq!(file.entries.iter().find(|entry| entry.name == "J").unwrap().line, 12);
    }

    #[test]
    fn mistakes_are_named_with_their_line_and_reading_goes_on() {
        let file = parse("A=1\n=2\nB='open\nC=3\nA=4\nD=${X:?say why}\nE=${A\nF=\"x\" y\n1G=5\nH 6\nI=${A%%x}\n");
        let found: Vec<(usize, Severity, &str)> =
            file.problems.iter().map(|problem| (problem.line, problem.severity, problem.subject.as_str())).collect();
        use Severity::{Error, Warning};
        assert_eq!(
            found,
            [
                (2, Error, "The line"),
                (3, Error, "B"),
                (5, Warning, "A"),
                (6, Error, "D"),
                (7, Error, "E"),
                (8, Warning, "F"),
                (9, Error, "The line"),
                (10, Error, "H"),
                (11, Error, "I"),
            ]
        );
        assert_eq!((file.get("A"), file.get("C"), file.get("F")), (Some("4"), Some("3"), Some("x")));
        assert!(file.problems[3].why.contains("say why"));
    }

    #[test]
    fn lines_that_double_each_other_do_not_fill_the_memory() {
        let mut text = String::from("V0=xxxxxxxxxxxxxxxx\n");
        for step in 1..60 {
            text.push_str(&format!("V{step}=$V{before}$V{before}\n", before = step - 1));
        }
        let file = parse(&text);
        assert!(file.problems.iter().all(|problem| problem.why.contains("too long")) && !file.problems.is_empty());
        let nested = format!("A={}{}\n", "${X:-".repeat(40), "}".repeat(40));
        assert!(parse(&nested).problems[0].why.contains("too deeply"));
    }
}
