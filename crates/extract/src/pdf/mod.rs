//! PDF: the text layer, page by page, in reading order.
//!
//! A reader of our own: it reads only the stretches of the file it needs, holds one page at a time, and neither
//! renders nor runs anything. Files that are locked are refused; files with a broken table of objects are searched.

mod cmap;
mod content;
mod file;
mod filter;
mod font;
mod glyphs;
mod layout;
mod object;
mod tables;
mod truetype;

use std::collections::HashSet;
use std::fs::File;

use content::{Content, Fonts};
use file::{DAMAGED, PdfFile};
use object::{Dict, Object};

use crate::limits::{NESTING_MAX, PAGES_MAX, PDF_STREAM_BYTES_MAX};
use crate::outcome::{Halt, malformed};
use crate::sink::Out;

/// Most nodes of the tree of pages.
const NODES_MAX: usize = 200_000;

pub(crate) fn extract(file: File, out: &mut Out<'_>) -> Result<(), Halt> {
    let mut pdf = PdfFile::open(file)?;
    let Some(root) = pdf.root()? else { return malformed(DAMAGED) };
    let mut fonts = Fonts::default();
    let mut seen = HashSet::new();
    let Some(pages) = root.get("Pages").cloned() else { return malformed(DAMAGED) };
    // The tree of pages, depth first: node, inherited resources, depth.
    let mut nodes: Vec<(Object, Option<Object>, usize)> = vec![(pages, None, 0)];
    let mut number = 0;
    while let Some((node, inherited, depth)) = nodes.pop() {
        out.check()?;
        if let Object::Ref(reference) = node
            && !seen.insert(reference)
        {
            continue;
        }
        if seen.len() > NODES_MAX || depth > NESTING_MAX {
            return malformed(DAMAGED);
        }
        let Some(dict) = pdf.resolve_dict(Some(&node))? else {
            if pdf.rebuilt {
                return malformed(DAMAGED);
            }
            continue;
        };
        let resources = dict.get("Resources").cloned().or(inherited);
        if let Object::Array(kids) = pdf.value(&dict, "Kids")? {
            if kids.len() > NODES_MAX {
                return malformed(DAMAGED);
            }
            nodes.extend(kids.into_iter().rev().map(|kid| (kid, resources.clone(), depth + 1)));
            continue;
        }
        number += 1;
        if number > PAGES_MAX {
            return malformed("The PDF has more than 10,000 pages.");
        }
        page(&mut pdf, &mut fonts, &dict, resources.as_ref(), number, out)?;
    }
    if number == 0 {
        return malformed(DAMAGED);
    }
    Ok(())
}

fn page(
    pdf: &mut PdfFile,
    fonts: &mut Fonts,
    page: &Dict,
    resources: Option<&Object>,
    number: u32,
    out: &mut Out<'_>,
) -> Result<(), Halt> {
    let resources = pdf.resolve_dict(resources)?.unwrap_or_default();
    let mut program = Vec::new();
    if let Some(contents) = page.get("Contents").cloned() {
        let parts = match pdf.resolve(&contents)? {
            Object::Array(parts) => parts,
            _ => vec![contents],
        };
        for part in parts {
            if let Some(stream) = pdf.stream(&part)? {
                program.extend_from_slice(&pdf.unpack(&stream)?);
                // The parts are one program, but no token crosses their border.
                program.push(b'\n');
            } else if pdf.rebuilt {
                return malformed(DAMAGED);
            }
            if program.len() > PDF_STREAM_BYTES_MAX {
                return malformed("A page of the PDF is larger than a document may have.");
            }
        }
    }
    let runs = Content::new(pdf, fonts, out).page(&program, &resources)?;
    out.page(number)?;
    for paragraph in layout::paragraphs(runs) {
        out.paragraph(&paragraph)?;
    }
    Ok(())
}
