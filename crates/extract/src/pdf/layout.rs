//! From pieces of text with places to text in reading order.
//!
//! Runs on one line become fragments, fragments on one height become rows. Rows with the same gap between fragments
//! over several lines are columns and are read one after the other when they hold running text; otherwise they are
//! the rows of a table. Lines that fill their column are joined to paragraphs, hyphens at their ends are undone.

use super::content::WORD_GAP;
use crate::sink::squeeze;

/// Runs closer than this share of the font size are one fragment. Justified lines have wider gaps between words, but
/// the space between columns can be as narrow as one font size.
const TOUCHING: f64 = 0.5;
/// Fragments of a line further apart than this share of the font size are cells, not words.
const CELL_GAP: f64 = 1.8;
/// The space between columns is at least this share of the font size.
const COLUMN_GAP: f64 = 0.7;

/// A piece of text: where its baseline begins and ends, and the size of its font.
pub(super) struct Run {
    pub(super) text: String,
    x0: f64,
    x1: f64,
    y: f64,
    size: f64,
    /// Quarter turns of the reading direction.
    turn: u8,
}

impl Run {
    pub(super) fn new(text: String, from: (f64, f64), to: (f64, f64), direction: (f64, f64), size: f64) -> Self {
        let (x, y) = direction;
        let turn = match (x.abs() >= y.abs(), x >= 0.0, y >= 0.0) {
            (true, true, _) => 0,
            (false, _, true) => 1,
            (true, false, _) => 2,
            (false, _, false) => 3,
        };
        // Turned so that reading goes to the right and lines go down.
        let rotate = |(x, y): (f64, f64)| match turn {
            0 => (x, y),
            1 => (y, -x),
            2 => (-x, -y),
            _ => (-y, x),
        };
        let ((x0, y), (x1, _)) = (rotate(from), rotate(to));
        Self { text, x0, x1: x1.max(x0), y, size, turn }
    }
}

/// Text that belongs together on one line.
struct Fragment {
    text: String,
    x0: f64,
    x1: f64,
    y: f64,
    size: f64,
}

/// A line of a column, ready for joining.
struct Line {
    text: String,
    x0: f64,
    x1: f64,
    y: f64,
    size: f64,
}

/// The paragraphs of a page in reading order.
pub(super) fn paragraphs(runs: Vec<Run>) -> Vec<String> {
    let mut by_turn: [Vec<Run>; 4] = Default::default();
    for run in runs {
        by_turn[usize::from(run.turn)].push(run);
    }
    by_turn.sort_by_key(|runs| std::cmp::Reverse(runs.len()));
    let mut paragraphs = Vec::new();
    for runs in by_turn {
        let rows = rows(fragments(runs));
        let mut at = 0;
        for Columns { from, end, gaps } in all_columns(&rows) {
            join(rows[at..from].iter().map(|row| row_line(row)).collect(), &mut paragraphs);
            for column in 0..=gaps.len() {
                let lines = rows[from..end]
                    .iter()
                    .filter_map(|row| {
                        let inside: Vec<&Fragment> = row.iter().filter(|f| column_of(f, &gaps) == column).collect();
                        (!inside.is_empty()).then(|| line_of(&inside, f64::INFINITY))
                    })
                    .collect();
                join(lines, &mut paragraphs);
            }
            at = end;
        }
        join(rows[at..].iter().map(|row| row_line(row)).collect(), &mut paragraphs);
    }
    paragraphs
}

/// Joins runs that continue each other.
fn fragments(runs: Vec<Run>) -> Vec<Fragment> {
    let mut fragments: Vec<Fragment> = Vec::new();
    for run in runs {
        if let Some(last) = fragments.last_mut() {
            let size = last.size.max(run.size);
            let gap = run.x0 - last.x1;
            let same_line = (run.y - last.y).abs() < 0.35 * size;
            // The same text drawn twice makes it bold.
            if same_line
                && (run.x0 - last.x0).abs() < 0.15 * size
                && (run.x1 - last.x1).abs() < 0.3 * size
                && run.text.trim() == last.text.trim()
            {
                continue;
            }
            let joined_before = last.text.ends_with(' ');
            if same_line && gap > -0.5 * size && gap < TOUCHING * size {
                if !joined_before
                    && !run.text.starts_with(' ')
                    && gap > WORD_GAP * size.min(run.size.max(last.size * 0.5))
                {
                    last.text.push(' ');
                }
                last.text.push_str(&run.text);
                last.x1 = last.x1.max(run.x1);
                if run.size > last.size {
                    (last.size, last.y) = (run.size, run.y);
                }
                continue;
            }
        }
        fragments.push(Fragment { text: run.text, x0: run.x0, x1: run.x1, y: run.y, size: run.size });
    }
    fragments
}

/// Groups fragments by height, from the top; each row from left to right.
fn rows(mut fragments: Vec<Fragment>) -> Vec<Vec<Fragment>> {
    fragments.sort_by(|a, b| b.y.total_cmp(&a.y));
    let mut rows: Vec<Vec<Fragment>> = Vec::new();
    let mut height = 0.0;
    for fragment in fragments {
        match rows.last_mut() {
            Some(row) if (height - fragment.y).abs() < 0.4 * fragment.size.min(row[0].size.max(1.0)) => {
                row.push(fragment)
            }
            _ => {
                height = fragment.y;
                rows.push(vec![fragment]);
            }
        }
    }
    for row in &mut rows {
        row.sort_by(|a, b| a.x0.total_cmp(&b.x0));
        merge_neighbours(row);
    }
    rows
}

/// Fragments that touch are one, whatever the order in which they were drawn.
fn merge_neighbours(row: &mut Vec<Fragment>) {
    let mut merged: Vec<Fragment> = Vec::with_capacity(row.len());
    for fragment in row.drain(..) {
        if let Some(last) = merged.last_mut() {
            let size = last.size.max(fragment.size);
            let gap = fragment.x0 - last.x1;
            if gap < TOUCHING * size && gap > -0.5 * size {
                if gap > WORD_GAP * size && !last.text.ends_with(' ') && !fragment.text.starts_with(' ') {
                    last.text.push(' ');
                }
                last.text.push_str(&fragment.text);
                last.x1 = last.x1.max(fragment.x1);
                last.size = size;
                continue;
            }
        }
        merged.push(fragment);
    }
    *row = merged;
}

/// Fewest rows that make columns.
const COLUMN_ROWS_MIN: usize = 3;
/// Most rows looked at together.
const COLUMN_ROWS_MAX: usize = 400;
/// Fewest characters of an average fragment in a column of running text.
const COLUMN_CHARS_MIN: usize = 18;

/// Rows that are columns of running text, and the gaps between the columns.
struct Columns {
    from: usize,
    end: usize,
    gaps: Vec<(f64, f64)>,
}

fn all_columns(rows: &[Vec<Fragment>]) -> Vec<Columns> {
    let mut found: Vec<Columns> = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let Some(mut columns) = columns(rows, at) else {
            at += 1;
            continue;
        };
        // A column that begins a little higher than its neighbours.
        let floor = found.last().map_or(0, |before| before.end);
        while columns.from > floor && !distant(rows, columns.from) {
            let gaps = narrow(&columns.gaps, &rows[columns.from - 1]);
            if gaps.len() != columns.gaps.len() {
                break;
            }
            columns.gaps = gaps;
            columns.from -= 1;
        }
        at = columns.end;
        found.push(columns);
    }
    found
}

/// Whether a row stands apart from the row above it.
fn distant(rows: &[Vec<Fragment>], at: usize) -> bool {
    let (above, below) = (&rows[at - 1][0], &rows[at][0]);
    above.y - below.y > 1.8 * above.size.max(below.size)
}

/// The columns that begin at row `from`, if any do.
fn columns(rows: &[Vec<Fragment>], from: usize) -> Option<Columns> {
    let mut gaps = inner_gaps(&rows[from]);
    let mut end = from + 1;
    while !gaps.is_empty() && end < rows.len() && end - from < COLUMN_ROWS_MAX {
        let narrowed = narrow(&gaps, &rows[end]);
        if narrowed.is_empty() {
            break;
        }
        gaps = narrowed;
        end += 1;
    }
    if gaps.is_empty() || end - from < COLUMN_ROWS_MIN {
        return None;
    }
    let line_widths = |rows: &[Vec<Fragment>], column: usize| -> Vec<(f64, usize)> {
        let measure = |row: &Vec<Fragment>| {
            let inside: Vec<&Fragment> = row.iter().filter(|f| column_of(f, &gaps) == column).collect();
            let (first, last) = (inside.first()?, inside.last()?);
            Some((last.x1 - first.x0, inside.iter().map(|f| f.text.chars().count()).sum()))
        };
        rows.iter().filter_map(measure).collect()
    };
    let widest = |lines: &[(f64, usize)]| lines.iter().fold(0.0_f64, |widest, (width, _)| widest.max(*width));
    let first_distant = |start: usize| (start + 1..end).find(|at| distant(rows, *at)).unwrap_or(end);

    // What follows with some distance belongs to the columns when it fills those in which it stands.
    let mut sure = first_distant(from);
    let full: Vec<f64> = (0..=gaps.len()).map(|column| widest(&line_widths(&rows[from..sure], column))).collect();
    while sure < end {
        let next = first_distant(sure);
        let fills = (0..=gaps.len()).all(|column| {
            let lines = line_widths(&rows[sure..next], column);
            lines.is_empty() || widest(&lines) > 0.8 * full[column]
        });
        if !fills {
            break;
        }
        sure = next;
    }
    // Every column has lines of running text.
    let running = (0..=gaps.len()).all(|column| {
        let lines = line_widths(&rows[from..sure], column);
        let chars: usize = lines.iter().map(|(_, chars)| chars).sum();
        lines.len() >= COLUMN_ROWS_MIN && chars >= lines.len() * COLUMN_CHARS_MIN
    });
    running.then_some(Columns { from, end: sure, gaps })
}

/// A column narrower than this many characters holds lines, not paragraphs.
const LINE_CHARS_MIN: f64 = 20.0;

/// How many of the gaps lie to the left of a fragment.
fn column_of(fragment: &Fragment, gaps: &[(f64, f64)]) -> usize {
    gaps.iter().filter(|gap| fragment.x0 >= gap.1 - 0.01).count()
}

fn inner_gaps(row: &[Fragment]) -> Vec<(f64, f64)> {
    row.windows(2).map(|pair| (pair[0].x1, pair[1].x0)).filter(|(from, to)| to - from > 0.0).collect()
}

/// What a row leaves of the gaps: the parts that none of its fragments cover.
fn narrow(gaps: &[(f64, f64)], row: &[Fragment]) -> Vec<(f64, f64)> {
    let least = row.first().map_or(1.0, |f| f.size) * COLUMN_GAP;
    gaps.iter()
        .filter_map(|(from, to)| {
            let (mut from, mut to) = (*from, *to);
            for fragment in row {
                if fragment.x1 <= from || fragment.x0 >= to {
                    continue;
                }
                // It reaches in from one side; when from both, nothing is left.
                if fragment.x0 <= from {
                    from = fragment.x1;
                } else {
                    to = to.min(fragment.x0);
                }
            }
            (to - from >= least).then_some((from, to))
        })
        .collect()
}

/// A whole row as one line; far-apart fragments are cells.
fn row_line(row: &[Fragment]) -> Line {
    line_of(&row.iter().collect::<Vec<_>>(), CELL_GAP)
}

/// Fragments further apart than `cell_gap` times the font size are cells.
fn line_of(fragments: &[&Fragment], cell_gap: f64) -> Line {
    let mut text = String::new();
    let first = fragments[0];
    let mut ends = first.x1;
    for fragment in fragments {
        if !text.is_empty() {
            let far = fragment.x0 - ends > cell_gap * fragment.size.max(first.size);
            text.push_str(if far { " | " } else { " " });
        }
        text.push_str(&squeeze(&fragment.text));
        ends = fragment.x1;
    }
    Line {
        text,
        x0: first.x0,
        x1: fragments.iter().fold(first.x1, |x1, f| x1.max(f.x1)),
        y: first.y,
        size: fragments.iter().fold(first.size, |size, f| size.max(f.size)),
    }
}

/// Joins the lines of a column to paragraphs.
fn join(lines: Vec<Line>, paragraphs: &mut Vec<String>) {
    let right = lines.iter().fold(f64::MIN, |right, line| right.max(line.x1));
    let left = lines.iter().fold(f64::MAX, |left, line| left.min(line.x0));
    // Lines set wide apart throughout are still one paragraph.
    let mut pitches: Vec<f64> = lines.windows(2).map(|pair| pair[0].y - pair[1].y).collect();
    pitches.sort_by(f64::total_cmp);
    let usual = pitches.get(pitches.len() / 2).copied().unwrap_or(0.0);
    let mut paragraph = String::new();
    let mut previous: Option<&Line> = None;
    for line in &lines {
        if let Some(before) = previous {
            let size = before.size.max(line.size);
            let resized = (before.size - line.size).abs() > 0.15 * size;
            if before.y - line.y > (1.25 * usual).min(2.6 * size).max(1.65 * size) || resized {
                paragraphs.push(std::mem::take(&mut paragraph));
            } else {
                // A line is full when the next line's first word would not have fitted.
                let chars = line.text.chars().count().max(1) as f64;
                let per_char = (line.x1 - line.x0) / chars;
                let first_word = line.text.split(' ').next().unwrap_or_default().chars().count() as f64;
                let full = right - before.x1 < (first_word + 1.5) * per_char + 0.5 * size;
                let narrow = right - left < LINE_CHARS_MIN * per_char;
                let row = before.text.contains(" | ") || line.text.contains(" | ");
                let indented = line.x0 - left > 0.8 * size && line.x0 - before.x0 > 0.8 * size;
                if !full || narrow || row || begins_item(&line.text) || indented {
                    paragraph.push('\n');
                } else if !undo_hyphen(&mut paragraph, &line.text) {
                    paragraph.push(' ');
                }
            }
        }
        paragraph.push_str(&line.text);
        previous = Some(line);
    }
    if !paragraph.is_empty() {
        paragraphs.push(paragraph);
    }
}

fn begins_item(text: &str) -> bool {
    text.starts_with(['•', '–', '▪', '◦', '●', '■', '-', '*']) && text.chars().nth(1) == Some(' ')
}

/// `infor-` + `mation`: the hyphen goes. True when the two lines are one word.
fn undo_hyphen(so_far: &mut String, next: &str) -> bool {
    let Some(hyphen) = so_far.chars().next_back().filter(|c| matches!(c, '-' | '\u{ad}' | '‐')) else { return false };
    let word = so_far.strip_suffix(hyphen).unwrap_or_default();
    if !word.ends_with(char::is_alphabetic) || !next.starts_with(char::is_alphabetic) {
        return hyphen == '-' && word.ends_with(char::is_alphanumeric) && next.starts_with(char::is_alphanumeric);
    }
    if next.starts_with(char::is_lowercase) {
        so_far.truncate(word.len());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, x: f64, y: f64) -> Run {
        Run::new(text.to_owned(), (x, y), (x + text.chars().count() as f64 * 5.0, y), (1.0, 0.0), 10.0)
    }

    #[test]
    fn two_columns_are_read_one_after_the_other() {
        let mut runs = vec![run("A title over both of the columns, quite long indeed to span them all", 50.0, 750.0)];
        for n in 0..6 {
            let y = 700.0 - f64::from(n) * 12.0;
            runs.push(run(&format!("right side, line number {n} of it"), 310.0, y));
            runs.push(run(&format!("left side, line number {n} of the text"), 50.0, y));
        }
        let text = paragraphs(runs).join("\n\n");
        let left = text.find("left side, line number 5").unwrap();
        let right = text.find("right side, line number 0").unwrap();
        assert!(text.starts_with("A title"));
        assert!(left < right, "{text}");
    }

    #[test]
    fn a_table_is_read_by_rows() {
        let mut runs = Vec::new();
        for n in 0..6 {
            let y = 700.0 - f64::from(n) * 12.0;
            runs.push(run(&format!("item {n}"), 50.0, y));
            runs.push(run(&format!("{n}.00"), 300.0, y));
        }
        assert!(paragraphs(runs).join("\n").contains("item 2 | 2.00\nitem 3 | 3.00"));
    }

    #[test]
    fn hyphens_are_undone_and_words_separated() {
        let runs = vec![
            run("This line of a paragraph holds some infor-", 50.0, 700.0),
            run("mation that goes on in the following line.", 50.0, 688.0),
            run("Two", 50.0, 640.0),
            run("words", 68.0, 640.0),
        ];
        assert_eq!(
            paragraphs(runs),
            ["This line of a paragraph holds some information that goes on in the following line.", "Two words"]
        );
    }

    #[test]
    fn order_of_drawing_does_not_matter_for_lines() {
        let runs = vec![run("last line", 50.0, 100.0), run("first line", 50.0, 700.0), run("middle", 50.0, 400.0)];
        assert_eq!(paragraphs(runs), ["first line", "middle", "last line"]);
    }

    #[test]
    fn text_drawn_twice_is_read_once() {
        assert_eq!(paragraphs(vec![run("Bold", 50.0, 100.0), run("Bold", 50.4, 100.0)]), ["Bold"]);
    }

    #[test]
    fn wide_line_spacing_and_doubled_blanks_are_one_paragraph() {
        let line = |n: u32, y: f64| run(&format!("Line  {n} of a  text set wide apart in one column"), 50.0, y);
        let read = paragraphs(vec![line(1, 700.0), line(2, 679.0), line(3, 658.0)]);
        assert_eq!(read.len(), 1);
        assert!(read[0].starts_with("Line 1 of a text set wide apart in one column Line 2"), "{read:?}");
    }

    #[test]
    fn turned_text_is_read() {
        let up = Run::new("upwards".into(), (100.0, 100.0), (100.0, 140.0), (0.0, 1.0), 10.0);
        assert_eq!(paragraphs(vec![up]), ["upwards"]);
    }
}
