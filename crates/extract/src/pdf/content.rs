//! Running a page's drawing program, as far as it shows text.

use std::collections::HashMap;
use std::rc::Rc;

use super::file::PdfFile;
use super::font::Font;
use super::layout::Run;
use super::object::{Dict, Lexer, Object, Token};
use crate::outcome::Halt;
use crate::sink::Out;

/// Deepest nesting of forms inside forms.
const FORM_DEPTH_MAX: usize = 12;
/// Most forms drawn on one page.
const FORMS_MAX: usize = 5_000;
/// Most operands kept for an operator, and saved states.
const OPERANDS_MAX: usize = 1_024;
/// Most runs of text on one page.
const RUNS_MAX: usize = 200_000;
/// A gap wider than this share of the font size separates words.
pub(super) const WORD_GAP: f64 = 0.15;
/// Fonts kept ready across pages.
const FONTS_KEPT: usize = 256;

/// A transformation: `[a b c d e f]` as PDF writes it.
#[derive(Debug, Clone, Copy)]
struct Matrix([f64; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// First `self`, then `next`.
    fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [a2, b2, c2, d2, e2, f2]) = (self.0, next.0);
        Self([
            a * a2 + b * c2,
            a * b2 + b * d2,
            c * a2 + d * c2,
            c * b2 + d * d2,
            e * a2 + f * c2 + e2,
            e * b2 + f * d2 + f2,
        ])
    }

    fn moved(self, x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }

    fn from_operands(operands: &[Object]) -> Option<Self> {
        let mut matrix = [0.0; 6];
        let from = operands.len().checked_sub(6)?;
        for (place, operand) in matrix.iter_mut().zip(&operands[from..]) {
            *place = operand.as_number()?;
        }
        Some(Self(matrix))
    }
}

#[derive(Clone)]
struct State {
    matrix: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    scale: f64,
    leading: f64,
    rise: f64,
}

/// Fonts already loaded, by object number.
#[derive(Default)]
pub(super) struct Fonts(HashMap<u32, Rc<Font>>);

/// The interpreter of one page.
pub(super) struct Content<'a, 'o> {
    pdf: &'a mut PdfFile,
    fonts: &'a mut Fonts,
    out: &'a mut Out<'o>,
    runs: Vec<Run>,
    forms: usize,
    /// The forms being drawn, outermost first.
    drawing: Vec<u32>,
}

impl<'a, 'o> Content<'a, 'o> {
    pub(super) fn new(pdf: &'a mut PdfFile, fonts: &'a mut Fonts, out: &'a mut Out<'o>) -> Self {
        Self { pdf, fonts, out, runs: Vec::new(), forms: 0, drawing: Vec::new() }
    }

    /// Runs a page's program and returns its text.
    pub(super) fn page(mut self, data: &[u8], resources: &Dict) -> Result<Vec<Run>, Halt> {
        self.run(data, resources, Matrix::IDENTITY, 0)?;
        Ok(self.runs)
    }

    fn run(&mut self, data: &[u8], resources: &Dict, matrix: Matrix, depth: usize) -> Result<(), Halt> {
        let mut state = State {
            matrix,
            font: None,
            size: 0.0,
            char_space: 0.0,
            word_space: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        let mut saved: Vec<State> = Vec::new();
        let (mut text, mut line) = (Matrix::IDENTITY, Matrix::IDENTITY);
        let font_names = self.pdf.resolve_dict(resources.get("Font"))?.unwrap_or_default();
        let mut named: HashMap<Vec<u8>, Option<Rc<Font>>> = HashMap::new();
        let mut operands: Vec<Object> = Vec::new();
        let mut lexer = Lexer::new(data);
        while let Some(token) = lexer.token() {
            let word = match token {
                Token::Keyword(word) => word,
                token => {
                    if let Some(object) = operand(&mut lexer, token)
                        && operands.len() < OPERANDS_MAX
                    {
                        operands.push(object);
                    }
                    continue;
                }
            };
            self.out.check()?;
            let number = |at: usize| operands.get(at).and_then(Object::as_number).unwrap_or(0.0);
            match word {
                b"q" if saved.len() < OPERANDS_MAX => saved.push(state.clone()),
                b"Q" => state = saved.pop().unwrap_or(state),
                b"cm" => {
                    if let Some(more) = Matrix::from_operands(&operands) {
                        state.matrix = more.then(state.matrix);
                    }
                }
                b"BT" => (text, line) = (Matrix::IDENTITY, Matrix::IDENTITY),
                b"Tf" => {
                    state.size = number(1);
                    if let Some(name) = operands.first().and_then(Object::as_name) {
                        state.font = match named.get(name) {
                            Some(font) => font.clone(),
                            None => {
                                let font = self.font(font_names.get(&String::from_utf8_lossy(name)))?;
                                named.insert(name.to_vec(), font.clone());
                                font
                            }
                        };
                    }
                }
                b"Tc" => state.char_space = number(0),
                b"Tw" => state.word_space = number(0),
                b"Tz" => state.scale = number(0) / 100.0,
                b"TL" => state.leading = number(0),
                b"Ts" => state.rise = number(0),
                b"Td" | b"TD" => {
                    if word == b"TD" {
                        state.leading = -number(1);
                    }
                    line = line.moved(number(0), number(1));
                    text = line;
                }
                b"Tm" => {
                    if let Some(matrix) = Matrix::from_operands(&operands) {
                        line = matrix;
                        text = line;
                    }
                }
                b"T*" => {
                    line = line.moved(0.0, -state.leading);
                    text = line;
                }
                b"Tj" => self.show(operands.last(), &state, &mut text),
                b"'" | b"\"" => {
                    if word == b"\"" {
                        state.word_space = number(0);
                        state.char_space = number(1);
                    }
                    line = line.moved(0.0, -state.leading);
                    text = line;
                    self.show(operands.last(), &state, &mut text);
                }
                b"TJ" => self.show(operands.last(), &state, &mut text),
                b"Do" => {
                    if depth < FORM_DEPTH_MAX
                        && let Some(name) = operands.first().and_then(Object::as_name)
                    {
                        self.form(&String::from_utf8_lossy(name), resources, state.matrix, depth)?;
                    }
                }
                b"BI" => skip_picture(&mut lexer),
                _ => {}
            }
            operands.clear();
        }
        Ok(())
    }

    fn font(&mut self, object: Option<&Object>) -> Result<Option<Rc<Font>>, Halt> {
        let Some(object) = object else { return Ok(None) };
        if let Object::Ref(number) = object
            && let Some(font) = self.fonts.0.get(number)
        {
            return Ok(Some(Rc::clone(font)));
        }
        let Some(dict) = self.pdf.resolve_dict(Some(object))? else { return Ok(None) };
        let font = Rc::new(Font::load(self.pdf, &dict)?);
        if let Object::Ref(number) = object {
            if self.fonts.0.len() >= FONTS_KEPT {
                self.fonts.0.clear();
            }
            self.fonts.0.insert(*number, Rc::clone(&font));
        }
        Ok(Some(font))
    }

    fn form(&mut self, name: &str, resources: &Dict, matrix: Matrix, depth: usize) -> Result<(), Halt> {
        let Some(object) = self.pdf.resolve_dict(resources.get("XObject"))?.and_then(|forms| forms.get(name).cloned())
        else {
            return Ok(());
        };
        let Object::Ref(reference) = object else { return Ok(()) };
        if self.drawing.contains(&reference) {
            return Ok(());
        }
        let Some(stream) = self.pdf.stream(&object)? else { return Ok(()) };
        self.forms += 1;
        if self.pdf.value(&stream.dict, "Subtype")?.as_name() != Some(b"Form") || self.forms > FORMS_MAX {
            return Ok(());
        }
        let own = match self.pdf.value(&stream.dict, "Matrix")? {
            Object::Array(items) => Matrix::from_operands(&items).unwrap_or(Matrix::IDENTITY),
            _ => Matrix::IDENTITY,
        };
        let own_resources = self.pdf.resolve_dict(stream.dict.get("Resources"))?;
        let data = self.pdf.unpack(&stream)?;
        self.drawing.push(reference);
        self.run(&data, own_resources.as_ref().unwrap_or(resources), own.then(matrix), depth + 1)?;
        self.drawing.pop();
        Ok(())
    }

    /// Shows a string, or strings with gaps between them, and moves on.
    fn show(&mut self, operand: Option<&Object>, state: &State, text: &mut Matrix) {
        let (Some(font), Some(operand)) = (&state.font, operand) else { return };
        if self.runs.len() >= RUNS_MAX {
            return;
        }
        let single = std::slice::from_ref(operand);
        let items = match operand {
            Object::Array(items) => items.as_slice(),
            _ => single,
        };
        // Along the line and across it, in the space of the page.
        let whole =
            Matrix([state.size * state.scale, 0.0, 0.0, state.size, 0.0, state.rise]).then(*text).then(state.matrix);
        let [ax, ay, bx, by, _, _] = whole.0;
        let (along, size) = (ax.hypot(ay), bx.hypot(by));
        if !along.is_finite() || !size.is_finite() || along < 1e-6 || size < 1e-6 {
            return;
        }
        let start = (whole.0[4], whole.0[5]);
        let (direction_x, direction_y) = (ax / along, ay / along);
        // Widths below are in units of the font size.
        let (char_space, word_space) = if state.size.abs() > 1e-9 {
            (state.char_space / state.size, state.word_space / state.size)
        } else {
            (0.0, 0.0)
        };
        let mut shown = String::new();
        let mut offset = 0.0;
        let mut begins = 0.0;
        let mut ends = 0.0;
        for item in items {
            match item {
                Object::Text(bytes) => font.decode(bytes, |glyph_text, glyph| {
                    if !glyph_text.is_empty() {
                        if shown.is_empty() {
                            begins = offset;
                        }
                        push_text(&mut shown, glyph_text);
                    }
                    offset += f64::from(glyph.width) / 1000.0;
                    if !glyph_text.trim().is_empty() {
                        ends = offset;
                    }
                    offset += char_space + if glyph.is_space_code { word_space } else { 0.0 };
                    if char_space > WORD_GAP * 3.0 && !shown.ends_with(' ') {
                        shown.push(' ');
                    }
                }),
                gap => {
                    let Some(gap) = gap.as_number() else { continue };
                    offset -= gap / 1000.0;
                    // Far apart: a column, not a word.
                    if offset - ends > 1.2 || offset < begins {
                        self.push_run(&mut shown, begins, ends, start, (direction_x, direction_y), along, size);
                        (begins, ends) = (offset, offset);
                    } else if offset - ends > WORD_GAP && !shown.is_empty() && !shown.ends_with(' ') {
                        shown.push(' ');
                    }
                }
            }
        }
        self.push_run(&mut shown, begins, ends, start, (direction_x, direction_y), along, size);
        let advance = offset * state.size * state.scale;
        *text = text.moved(advance, 0.0);
    }

    #[expect(clippy::too_many_arguments, reason = "the measures of one run, all needed")]
    fn push_run(
        &mut self,
        shown: &mut String,
        begins: f64,
        ends: f64,
        start: (f64, f64),
        direction: (f64, f64),
        along: f64,
        size: f64,
    ) {
        let text = std::mem::take(shown);
        if text.trim().is_empty() {
            // A blank between two runs separates their words even where it is narrow.
            if !text.is_empty()
                && let Some(last) = self.runs.last_mut()
                && !last.text.ends_with(' ')
            {
                last.text.push(' ');
            }
            return;
        }
        let place = |offset: f64| (start.0 + direction.0 * offset * along, start.1 + direction.1 * offset * along);
        self.runs.push(Run::new(text, place(begins), place(ends.max(begins)), direction, size));
    }
}

/// Appends text with ligatures taken apart and private characters dropped.
fn push_text(to: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            'ﬀ' => to.push_str("ff"),
            'ﬁ' => to.push_str("fi"),
            'ﬂ' => to.push_str("fl"),
            'ﬃ' => to.push_str("ffi"),
            'ﬄ' => to.push_str("ffl"),
            'ﬅ' | 'ﬆ' => to.push_str("st"),
            '\u{f0b7}' | '\u{f0a7}' | '\u{f076}' | '\u{f0d8}' | '\u{f06e}' => to.push('•'),
            '\u{e000}'..='\u{f8ff}' => {}
            '\u{a0}' | '\t' | '\n' | '\r' | '\u{2000}'..='\u{200a}' => to.push(' '),
            c if c.is_control() => {}
            c => to.push(c),
        }
    }
}

/// An operand: like any object, but without references.
fn operand<'a>(lexer: &mut Lexer<'a>, token: Token<'a>) -> Option<Object> {
    match token {
        Token::Object(object) => Some(object),
        Token::ArrayOpens => {
            let mut items = Vec::new();
            loop {
                match lexer.token()? {
                    Token::ArrayCloses => return Some(Object::Array(items)),
                    Token::Object(object) => items.push(object),
                    Token::Keyword(_) => return Some(Object::Array(items)),
                    _ => {}
                }
            }
        }
        Token::DictOpens => lexer.object_from(Token::DictOpens, 0),
        _ => None,
    }
}

/// Skips a picture inside the program: its dictionary, `ID`, its bytes, `EI`.
fn skip_picture(lexer: &mut Lexer<'_>) {
    let rest = &lexer.data[lexer.at..];
    let blank = |at: usize| rest.get(at).is_none_or(|byte| super::object::is_white(*byte));
    let Some(data) = (0..rest.len()).find(|at| rest[*at..].starts_with(b"ID") && blank(at + 2)) else {
        lexer.at = lexer.data.len();
        return;
    };
    let end = (data + 3..rest.len()).find(|at| rest[*at..].starts_with(b"EI") && blank(at - 1) && blank(at + 2));
    lexer.at += end.map_or(rest.len(), |end| end + 2);
}
