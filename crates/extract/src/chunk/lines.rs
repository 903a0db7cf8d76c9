//! The lines of Markdown, as far as cutting needs them: headings and fenced code.

use super::HEADER_CHARS;

/// What is in force at a place in the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub(super) headings: Vec<(usize, String)>,
    pub(super) fence: Option<(u8, usize)>,
    pub(super) mid_line: bool,
}

/// What a line means for cutting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Blank,
    Text,
    Heading,
    FenceOpens,
    FenceCloses,
    InFence,
}

/// Walks over the lines of `text`, updating the context and telling `on_line` what each line is.
pub(super) fn advance(context: &mut Context, text: &str, mut on_line: impl FnMut(Line)) {
    for line in text.split_inclusive('\n') {
        let continues = std::mem::replace(&mut context.mid_line, !line.ends_with('\n'));
        let kind = if continues {
            if context.fence.is_some() { Line::InFence } else { Line::Text }
        } else if let Some((mark, count)) = context.fence {
            if fence(line).is_some_and(|(m, c, bare)| m == mark && c >= count && bare) {
                context.fence = None;
                Line::FenceCloses
            } else {
                Line::InFence
            }
        } else if line.trim().is_empty() {
            Line::Blank
        } else if let Some((level, text)) = heading(line) {
            context.headings.retain(|(above, _)| *above < level);
            context.headings.push((level, text));
            Line::Heading
        } else if let Some((mark, count, _)) = fence(line) {
            context.fence = Some((mark, count));
            Line::FenceOpens
        } else {
            Line::Text
        };
        on_line(kind);
    }
}

/// Level and text of a Markdown heading line.
pub(super) fn heading(line: &str) -> Option<(usize, String)> {
    let trimmed = line.trim_start_matches(' ');
    if line.len() - trimmed.len() > 3 {
        return None;
    }
    let level = trimmed.bytes().take_while(|b| *b == b'#').count();
    if !(1..=6).contains(&level) {
        return None;
    }
    let rest = &trimmed[level..];
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    let text = rest.trim();
    let closing = text.trim_end_matches('#');
    let text = if closing.is_empty() || closing.ends_with([' ', '\t']) { closing.trim_end() } else { text };
    let text: String = crate::sink::squeeze(text).chars().take(HEADER_CHARS).collect();
    (!text.is_empty()).then_some((level, text))
}

/// Mark, length, and whether nothing follows, of a fence line.
fn fence(line: &str) -> Option<(u8, usize, bool)> {
    let trimmed = line.trim_start_matches(' ');
    let mark = *trimmed.as_bytes().first()?;
    if line.len() - trimmed.len() > 3 || (mark != b'`' && mark != b'~') {
        return None;
    }
    let count = trimmed.bytes().take_while(|b| *b == mark).count();
    let rest = &trimmed[count..];
    (count >= 3 && !(mark == b'`' && rest.contains('`'))).then(|| (mark, count, rest.trim().is_empty()))
}
