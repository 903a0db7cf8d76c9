//! Cutting extracted text into passages, incrementally and without losing a character.

mod lines;

use std::collections::VecDeque;

use lines::{Context, Line, advance, heading};

/// The version of the rules in this module; stored with a document so that a change marks it "Needs reindex".
pub const CHUNKER_VERSION: i32 = 1;
/// Longest body of a chunk, in Unicode scalar values.
pub const TARGET_CHARS: usize = 2048;
/// Longest overlap with the text before, in Unicode scalar values.
pub const OVERLAP_CHARS: usize = 200;
/// Longest contextual header, in Unicode scalar values.
pub const HEADER_CHARS: usize = 200;
/// Most levels of the contextual header, the title included.
pub const HEADER_LEVELS: usize = 4;
/// Stands between the levels of the header.
pub const HEADER_SEPARATOR: &str = " › ";

/// Text beyond the longest core that is looked at before a cut, so that a boundary at the very end is seen.
const LOOKAHEAD_CHARS: usize = 256;

/// A passage.
///
/// All offsets count Unicode scalar values in the extracted text. The cores of a document's chunks are adjacent and
/// concatenated reproduce the extracted text exactly; bodies overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Position among the document's chunks, from 0.
    pub ordinal: u32,
    /// Title and enclosing headings joined with ` › `; empty when there are none.
    pub header: String,
    /// The headings in force where the chunk begins, outermost first, without the title.
    pub headings: Vec<String>,
    /// What a reader sees: the overlap and the core, trimmed.
    pub body: String,
    /// The chunk's own share of the text, exact.
    pub core: String,
    /// Where the core begins.
    pub start: u64,
    /// Where the core ends (exclusive).
    pub end: u64,
    /// Where the body begins; strictly increasing from chunk to chunk.
    pub body_start: u64,
    /// The page (or slide) on which the core's text begins.
    pub page: Option<u32>,
}

impl Chunk {
    /// The text to embed and to index by keyword: header, blank line, body; the body alone without a header.
    #[must_use]
    pub fn indexed_text(&self) -> String {
        if self.header.is_empty() { self.body.clone() } else { format!("{}\n\n{}", self.header, self.body) }
    }
}

/// The incremental chunker: [`push`](Self::push) text, [`page`](Self::page) marks, [`finish`](Self::finish), and
/// [`pop`](Self::pop) chunks in between. Holds a few thousand characters.
///
/// ```
/// use tale_extract::Chunker;
/// let mut chunker = Chunker::new("Handbook", true);
/// chunker.push("# Leave\n\nThirty days a year.\n");
/// chunker.finish();
/// let chunk = chunker.pop().unwrap();
/// assert_eq!(chunk.header, "Handbook › Leave");
/// assert!(chunker.pop().is_none());
/// ```
#[derive(Debug)]
pub struct Chunker {
    title: String,
    markdown: bool,
    /// Text from the start of the next core on; the first `taken` bytes are already part of earlier chunks.
    buffer: String,
    taken: usize,
    /// Characters in the buffer after `taken`.
    available: usize,
    /// The last characters before the next core.
    tail: String,
    position: u64,
    context: Context,
    pages: VecDeque<(u64, u32)>,
    page: Option<u32>,
    held: Option<Chunk>,
    ready: VecDeque<Chunk>,
    ordinal: u32,
}

impl Chunker {
    /// A chunker for a document with this title. `markdown`: lines starting with `#` are headings and fenced code is
    /// respected.
    #[must_use]
    pub fn new(title: &str, markdown: bool) -> Self {
        Self {
            title: crate::sink::squeeze(title),
            markdown,
            buffer: String::new(),
            taken: 0,
            available: 0,
            tail: String::new(),
            position: 0,
            context: Context::default(),
            pages: VecDeque::new(),
            page: None,
            held: None,
            ready: VecDeque::new(),
            ordinal: 0,
        }
    }

    /// The text pushed from here on is on page `number`.
    pub fn page(&mut self, number: u32) {
        self.pages.push_back((self.position + self.available as u64, number));
    }

    /// Appends text.
    pub fn push(&mut self, text: &str) {
        self.buffer.push_str(text);
        self.available += text.chars().count();
        while self.cut_one(false) {}
        self.buffer.drain(..self.taken);
        self.taken = 0;
    }

    /// No more text follows; what remains becomes chunks.
    pub fn finish(&mut self) {
        while self.cut_one(true) {}
        if let Some(mut last) = self.held.take() {
            // White space at the very end belongs to the last core.
            let rest = &self.buffer[self.taken..];
            last.core.push_str(rest);
            last.end += self.available as u64;
            self.ready.push_back(last);
        }
        self.buffer.clear();
        self.taken = 0;
        self.available = 0;
    }

    /// The next finished chunk.
    pub fn pop(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }

    /// Characters received so far: the length of the extracted text.
    #[must_use]
    pub fn chars(&self) -> u64 {
        self.position + self.available as u64
    }

    fn cut_one(&mut self, last: bool) -> bool {
        let text = &self.buffer[self.taken..];
        let blank_bytes = text.len() - text.trim_start().len();
        if blank_bytes == text.len() {
            return false;
        }
        let blank = text[..blank_bytes].chars().count();
        if blank > OVERLAP_CHARS {
            // What stands before so much white space is not worth repeating.
            self.tail.clear();
        }
        let overlap = self.tail.chars().count();
        // White space at the start of a body is trimmed, white space after an overlap is part of the body.
        let room = if overlap == 0 { TARGET_CHARS } else { TARGET_CHARS - overlap - blank };
        let (bytes, chars) = if self.available <= blank + room {
            if !last {
                return false;
            }
            (text.len(), self.available)
        } else {
            if !last && self.available < blank + room + LOOKAHEAD_CHARS {
                return false;
            }
            best_cut(text, blank + room / 2, blank + room, &self.context, self.markdown)
        };
        self.emit(bytes, chars, blank);
        true
    }

    fn emit(&mut self, bytes: usize, chars: usize, blank: usize) {
        let core = self.buffer[self.taken..self.taken + bytes].to_owned();
        let start = self.position;
        let end = start + chars as u64;

        let text_start = start + blank as u64;
        while self.pages.front().is_some_and(|(at, _)| *at <= text_start) {
            self.page = self.pages.pop_front().map(|(_, page)| page);
        }
        let opening = self.context.clone();
        let headings = opening_headings(opening, &core, self.markdown);

        let overlap = self.tail.chars().count() as u64;
        let mut body = std::mem::take(&mut self.tail);
        body.push_str(&core);
        let lead = body.chars().take_while(|c| c.is_whitespace()).count() as u64;
        let body_start = start - overlap + lead;
        let body = body.trim().to_owned();

        // The next chunk repeats at most 200 characters and at most half of this body's part.
        let own = usize::try_from(end - body_start).unwrap_or(usize::MAX);
        self.tail = overlap_of(&core, OVERLAP_CHARS.min(own / 2)).to_owned();

        if self.markdown {
            advance(&mut self.context, &core, |_| {});
        }
        let chunk = Chunk {
            ordinal: self.ordinal,
            header: header(&self.title, &headings),
            headings,
            body,
            core,
            start,
            end,
            body_start,
            page: self.page,
        };
        self.ordinal += 1;
        self.taken += bytes;
        self.available -= chars;
        self.position = end;
        self.ready.extend(self.held.replace(chunk));
    }
}

/// The headings in force for a core that begins in this context: headings at its very beginning count already.
fn opening_headings(mut context: Context, core: &str, markdown: bool) -> Vec<String> {
    if markdown {
        for line in core.split_inclusive('\n') {
            let opens = !context.mid_line && context.fence.is_none() && heading(line).is_some();
            if !opens && !line.trim().is_empty() {
                break;
            }
            advance(&mut context, line, |_| {});
        }
    }
    context.headings.into_iter().map(|(_, text)| text).collect()
}

/// The best place to cut `text` between `least` and `most` characters, as bytes and characters. Preferred: heading,
/// code fence, paragraph, line, sentence, word; the last place of the best rank wins.
fn best_cut(text: &str, least: usize, most: usize, context: &Context, markdown: bool) -> (usize, usize) {
    // What lies further ahead must not matter: the cuts are the same however the text arrives.
    let text = text.char_indices().nth(most + LOOKAHEAD_CHARS).map_or(text, |(byte, _)| &text[..byte]);
    let mut best: [Option<(usize, usize)>; 6] = [None; 6];

    // Line by line for the block-level places.
    let mut state = context.clone();
    let (mut at_byte, mut at_char) = (0, 0);
    let mut before = Line::Text;
    for line in text.split_inclusive('\n') {
        let mut kind = if line.trim().is_empty() { Line::Blank } else { Line::Text };
        if markdown {
            advance(&mut state, line, |k| kind = k);
        }
        if at_char >= least {
            let rank = match (before, kind) {
                (_, Line::Heading) => 0,
                (_, Line::FenceOpens) | (Line::FenceCloses, _) => 1,
                (Line::Blank, Line::Text) => 2,
                _ => 3,
            };
            best[rank] = Some((at_byte, at_char));
        }
        before = kind;
        at_byte += line.len();
        at_char += line.chars().count();
        if at_char > most {
            break;
        }
    }
    if let Some(place) = best.into_iter().flatten().next() {
        return place;
    }

    // Character by character for sentences, words and the hard limit.
    let mut hard = None;
    let mut limit = text.len();
    let (mut previous, mut before_previous) = (' ', ' ');
    for (count, (byte, c)) in text.char_indices().enumerate() {
        if count >= least {
            if previous.is_whitespace() && !c.is_whitespace() {
                let sentence = matches!(before_previous, '.' | '!' | '?' | '…' | ':' | ';');
                best[if sentence { 4 } else { 5 }] = Some((byte, count));
            } else if matches!(previous, '。' | '！' | '？') {
                best[4] = Some((byte, count));
            }
            if !joins(previous, c) {
                hard = Some((byte, count));
            }
        }
        if count == most {
            limit = byte;
            break;
        }
        (before_previous, previous) = (previous, c);
    }
    best.into_iter().flatten().next().or(hard).unwrap_or((limit, most))
}

/// True when a cut between the two would tear a character apart as people see it.
fn joins(before: char, after: char) -> bool {
    let regional = |c: char| ('\u{1f1e6}'..='\u{1f1ff}').contains(&c);
    before == '\u{200d}'
        || matches!(after,
            '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
            | '\u{64b}'..='\u{65f}' | '\u{93a}'..='\u{94f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
            | '\u{1160}'..='\u{11ff}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}'
            | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{e0020}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
        || (regional(before) && regional(after))
}

/// The end of `core` to repeat: at most `limit` characters, from the start of a sentence or word where there is one.
fn overlap_of(core: &str, limit: usize) -> &str {
    if limit == 0 {
        return "";
    }
    let from = core.char_indices().rev().nth(limit - 1).map_or(0, |(byte, _)| byte);
    let window = &core[from..];
    let mut word = None;
    let mut previous = core[..from].chars().next_back().unwrap_or(' ');
    let mut before_previous = ' ';
    let half = window.len() / 2;
    for (byte, c) in window.char_indices() {
        if previous.is_whitespace() && !c.is_whitespace() {
            if byte <= half && matches!(before_previous, '.' | '!' | '?' | '…' | '\n') {
                return &window[byte..];
            }
            word = word.or(Some(byte));
        }
        (before_previous, previous) = (previous, c);
    }
    let start = word.unwrap_or_else(|| {
        let mut previous = '\0';
        window
            .char_indices()
            .find(|(byte, c)| {
                let torn = if *byte == 0 {
                    core[..from].chars().next_back().is_some_and(|p| joins(p, *c))
                } else {
                    joins(previous, *c)
                };
                previous = *c;
                !torn
            })
            .map_or(window.len(), |(byte, _)| byte)
    });
    &window[start..]
}

/// Title and headings as one line: at most four levels and 200 characters, repeated levels and the deepest dropped.
fn header(title: &str, headings: &[String]) -> String {
    let mut header = String::new();
    let mut length = 0;
    let mut levels = 0;
    let mut last: &str = "";
    for level in std::iter::once(title).chain(headings.iter().map(String::as_str)) {
        if level.is_empty() || level == last {
            continue;
        }
        let separator = if header.is_empty() { 0 } else { HEADER_SEPARATOR.chars().count() };
        let chars = level.chars().count();
        if levels == HEADER_LEVELS || length + separator + chars > HEADER_CHARS {
            if header.is_empty() {
                header = level.chars().take(HEADER_CHARS - 1).chain(['…']).collect();
            }
            break;
        }
        if separator > 0 {
            header.push_str(HEADER_SEPARATOR);
        }
        header.push_str(level);
        length += separator + chars;
        levels += 1;
        last = level;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunks(title: &str, pieces: &[&str]) -> Vec<Chunk> {
        let mut chunker = Chunker::new(title, true);
        let mut chunks = Vec::new();
        for piece in pieces {
            chunker.push(piece);
            chunks.extend(std::iter::from_fn(|| chunker.pop()));
        }
        chunker.finish();
        chunks.extend(std::iter::from_fn(|| chunker.pop()));
        chunks
    }

    fn assert_invariants(text: &str, chunks: &[Chunk]) {
        let joined: String = chunks.iter().map(|chunk| chunk.core.as_str()).collect();
        if text.trim().is_empty() {
            assert!(chunks.is_empty());
            return;
        }
        assert_eq!(joined, text);
        let all: Vec<char> = text.chars().collect();
        let mut end = 0;
        let mut body_start = None;
        for (index, chunk) in chunks.iter().enumerate() {
            assert_eq!(chunk.ordinal as usize, index);
            assert_eq!(chunk.start, end);
            assert_eq!(chunk.end, chunk.start + chunk.core.chars().count() as u64);
            end = chunk.end;
            assert!(body_start < Some(chunk.body_start), "starts increase");
            body_start = Some(chunk.body_start);
            let length = chunk.body.chars().count();
            assert!((1..=TARGET_CHARS).contains(&length), "{length}");
            assert_eq!(chunk.body.trim(), chunk.body);
            let at = chunk.body_start as usize;
            assert_eq!(all[at..at + length].iter().collect::<String>(), chunk.body);
            let overlap = chunk.start.saturating_sub(chunk.body_start) as usize;
            assert!(overlap <= OVERLAP_CHARS);
            assert!(chunk.header.chars().count() <= HEADER_CHARS);
        }
        assert_eq!(end as usize, all.len());
    }

    #[test]
    fn empty_and_blank_give_nothing() {
        assert!(chunks("T", &[]).is_empty());
        assert!(chunks("T", &["", " \n\t\n"]).is_empty());
    }

    #[test]
    fn a_short_text_is_one_chunk() {
        let all = chunks("Handbook", &["  # A\n\n", "text \n\n"]);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].core, "  # A\n\ntext \n\n");
        assert_eq!(all[0].body, "# A\n\ntext");
        assert_eq!(all[0].header, "Handbook › A");
        assert_eq!(all[0].indexed_text(), "Handbook › A\n\n# A\n\ntext");
    }

    #[test]
    fn cuts_prefer_headings_and_follow_them() {
        let section = |n: u32| format!("## Part {n}\n\n{}\n\n", "words and more words. ".repeat(60));
        let text = format!("# Book\n\n{}{}{}", section(1), section(2), section(3));
        let all = chunks("Title", &[&text]);
        assert_invariants(&text, &all);
        assert!(all[1].core.starts_with("## Part 2"));
        assert_eq!(all[1].header, "Title › Book › Part 2");
        assert_eq!(all[1].headings, ["Book", "Part 2"]);
        assert!(all[2].core.starts_with("## Part 3"));
    }

    #[test]
    fn headings_in_fenced_code_do_not_count() {
        let text =
            format!("# Real\n\n```sh\n# not a heading\n{}```\n\n{}", "echo x\n".repeat(100), "text. ".repeat(600));
        let all = chunks("T", &[&text]);
        assert_invariants(&text, &all);
        assert!(all.iter().all(|chunk| chunk.header == "T › Real"));
        assert!(all.len() > 1);
    }

    #[test]
    fn code_has_no_headings() {
        let mut chunker = Chunker::new("tool.py", false);
        chunker.push("# comment\nprint(1)\n");
        chunker.finish();
        assert_eq!(chunker.pop().unwrap().header, "tool.py");
    }

    #[test]
    fn the_header_is_bounded() {
        let long = "x".repeat(500);
        assert_eq!(header(&long, &[]).chars().count(), HEADER_CHARS);
        let deep: Vec<String> = (1..=6).map(|n| format!("level {n}")).collect();
        assert_eq!(header("T", &deep), "T › level 1 › level 2 › level 3");
        assert_eq!(header("Same", &["Same".to_owned(), "b".to_owned()]), "Same › b");
        assert_eq!(header("", &["a".to_owned()]), "a");
        assert_eq!(header("T", &["y".repeat(199), "b".to_owned()]), "T");
    }

    #[test]
    fn pages_follow_the_text() {
        let mut chunker = Chunker::new("", false);
        for page in 1..=5 {
            chunker.page(page);
            chunker.push(&"A sentence of a page. ".repeat(80));
            chunker.push("\n\n\u{c}");
        }
        chunker.finish();
        let all: Vec<Chunk> = std::iter::from_fn(|| chunker.pop()).collect();
        assert_eq!(all[0].page, Some(1));
        assert!(all.windows(2).all(|pair| pair[0].page <= pair[1].page));
        assert!(all.last().unwrap().page >= Some(4));
    }

    #[test]
    fn emoji_families_are_not_torn() {
        let family = "👩‍👩‍👧‍👦";
        let text = family.repeat(900);
        let all = chunks("", &[&text]);
        assert_invariants(&text, &all);
        assert!(all.iter().all(|chunk| chunk.core.starts_with('👩') && chunk.body.starts_with('👩')));
    }

    #[test]
    fn a_long_line_without_blanks_is_cut_hard() {
        let text = "x".repeat(10_000);
        let all = chunks("", &[&text]);
        assert_invariants(&text, &all);
        assert_eq!(all[0].core.len(), TARGET_CHARS);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn cores_reproduce_any_text(
            parts in prop::collection::vec(
                prop_oneof![
                    "[a-z]{1,12}( [a-z]{1,9}){0,40}\\.? ",
                    "\n{1,3}",
                    "[ \t]{1,300}",
                    Just("\n# Heading one\n".to_owned()),
                    Just("\n### Deep heading ##\n\n".to_owned()),
                    Just("\n```\n".to_owned()),
                    Just("\n~~~~ text\n".to_owned()),
                    "[äöü世界😀\u{300}\u{200d}👧]{1,400}",
                    "[^ ]{200,900}",
                    "\\PC{0,60}",
                ],
                0..60,
            ),
            step in 1_usize..4000,
        ) {
            let text: String = parts.concat();
            let whole = chunks("Some title", &[&text]);
            assert_invariants(&text, &whole);
            // The same chunks however the text arrives.
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let mut at = step.min(rest.len());
                while !rest.is_char_boundary(at) {
                    at += 1;
                }
                pieces.push(&rest[..at]);
                rest = &rest[at..];
            }
            prop_assert_eq!(whole, chunks("Some title", &pieces));
        }
    }
}
