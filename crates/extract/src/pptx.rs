//! Presentations: per slide a heading, its text and its notes. The slide number is the page.

use std::fs::File;
use std::io::BufReader;

use crate::limits::PAGES_MAX;
use crate::office;
use crate::outcome::{Halt, malformed};
use crate::sink::{Out, RowBlocks, squeeze};
use crate::xml::{Node, Xml};
use crate::zip::{Archive, Part};

pub(crate) fn extract(file: File, out: &mut Out<'_>) -> Result<(), Halt> {
    let archive = office::open(file)?;
    let main = office::main_part(&archive, "ppt/presentation.xml")?;
    let relations = office::relations(&archive, &main)?;
    let mut order = Vec::new();
    let mut xml = office::required(&archive, &main)?;
    while let Some(node) = xml.next()? {
        if let Node::Start(tag) = node
            && tag.name().as_bytes() == b"sldId"
        {
            order.extend(tag.attr_exact("r:id").or_else(|| tag.attr("id")));
        }
    }
    let mut number = 0;
    for id in order {
        let Some(slide) = relations.iter().find(|r| r.id == id && r.kind == "slide") else { continue };
        number += 1;
        if number > PAGES_MAX {
            return malformed("The presentation has more than 10,000 slides.");
        }
        write_slide(&archive, &slide.target, number, out)?;
    }
    Ok(())
}

fn write_slide(archive: &Archive, name: &str, number: u32, out: &mut Out<'_>) -> Result<(), Halt> {
    let Some(mut xml) = office::part(archive, name)? else {
        return Ok(());
    };
    let slide = shapes(&mut xml, out)?;
    let notes_part = office::relations(archive, name)?.into_iter().find(|r| r.kind == "notesSlide");
    let notes = match notes_part.map(|r| office::part(archive, &r.target)).transpose()?.flatten() {
        Some(mut xml) => shapes(&mut xml, out)?.into_iter().filter(|shape| shape.role == Role::Body).collect(),
        None => Vec::new(),
    };
    let empty = |shapes: &[Shape]| shapes.iter().all(|s| s.lines.is_empty() && s.rows.is_empty());
    if empty(&slide) && empty(&notes) {
        return Ok(());
    }
    out.page(number)?;
    let title = slide.iter().find(|shape| shape.role == Role::Title).map(|shape| squeeze(&shape.lines.join(" ")));
    match title.filter(|title| !title.is_empty()) {
        Some(title) => out.heading(2, &format!("Slide {number}: {title}"))?,
        None => out.heading(2, &format!("Slide {number}"))?,
    }
    for shape in &slide {
        match shape.role {
            Role::Title | Role::Furniture => {}
            Role::Body | Role::Other => write_shape(shape, out)?,
        }
    }
    if !empty(&notes) {
        out.paragraph("Notes:")?;
        for shape in &notes {
            write_shape(shape, out)?;
        }
    }
    Ok(())
}

fn write_shape(shape: &Shape, out: &mut Out<'_>) -> Result<(), Halt> {
    out.newlines(2);
    for line in &shape.lines {
        out.line(line)?;
    }
    let mut rows = RowBlocks::default();
    for row in &shape.rows {
        rows.row(out, row)?;
    }
    out.newlines(2);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Title,
    Body,
    /// Slide number, date, footer, picture of the slide on a notes page.
    Furniture,
    Other,
}

struct Shape {
    role: Role,
    lines: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Shape {
    fn new() -> Self {
        Self { role: Role::Other, lines: Vec::new(), rows: Vec::new() }
    }
}

/// The shapes of a slide that can hold text, in the order of the file.
fn shapes(xml: &mut Xml<BufReader<Part>>, out: &mut Out<'_>) -> Result<Vec<Shape>, Halt> {
    let mut shapes: Vec<Shape> = Vec::new();
    let mut line: Option<(String, usize)> = None;
    let mut cell: Option<String> = None;
    while let Some(node) = xml.next()? {
        out.check()?;
        match node {
            Node::Start(tag) => match tag.name().as_bytes() {
                b"sp" | b"graphicFrame" => shapes.push(Shape::new()),
                b"ph" => {
                    if let Some(shape) = shapes.last_mut() {
                        shape.role = match tag.attr("type").as_deref() {
                            Some("title" | "ctrTitle") => Role::Title,
                            Some("sldNum" | "dt" | "ftr" | "hdr" | "sldImg") => Role::Furniture,
                            _ => Role::Body,
                        };
                    }
                }
                b"p" => line = Some((String::new(), 0)),
                b"pPr" => {
                    if let (Some((_, level)), Some(given)) = (&mut line, tag.attr("lvl")) {
                        *level = given.parse().unwrap_or(0);
                    }
                }
                b"t" => {
                    let text = xml.text()?;
                    if let Some((line, _)) = &mut line {
                        line.push_str(&text);
                    }
                }
                b"br" | b"tab" => {
                    if let Some((line, _)) = &mut line {
                        line.push(' ');
                    }
                }
                b"tr" => {
                    if let Some(shape) = shapes.last_mut() {
                        shape.rows.push(Vec::new());
                    }
                }
                b"tc" => cell = Some(String::new()),
                b"Fallback" => xml.skip()?,
                _ => {}
            },
            Node::End(name) => match name.as_bytes() {
                b"p" => {
                    let Some((text, level)) = line.take() else { continue };
                    if let Some(cell) = &mut cell {
                        if !cell.is_empty() {
                            cell.push(' ');
                        }
                        cell.push_str(&text);
                    } else if let Some(shape) = shapes.last_mut().filter(|_| !text.trim().is_empty()) {
                        let listed = level > 0 && shape.role == Role::Body;
                        shape.lines.push(if listed {
                            format!("{}- {}", "  ".repeat(level.min(8) - 1), text.trim())
                        } else {
                            text
                        });
                    }
                }
                b"tc" => {
                    if let (Some(cell), Some(row)) =
                        (cell.take(), shapes.last_mut().and_then(|shape| shape.rows.last_mut()))
                    {
                        row.push(cell);
                    }
                }
                _ => {}
            },
            Node::Text(_) => {}
        }
    }
    Ok(shapes)
}
