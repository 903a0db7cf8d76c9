//! What the packed XML formats of office programs share: finding parts through relationships.

use std::fs::File;
use std::io::BufReader;

use crate::outcome::{ExtractError, Halt};
use crate::xml::{Node, Xml};
use crate::zip::{Archive, Part};

/// One relationship of a part.
pub(crate) struct Relation {
    pub(crate) id: String,
    /// The last segment of the type's address (`slide`, `styles`).
    pub(crate) kind: String,
    /// The part it leads to.
    pub(crate) target: String,
}

pub(crate) fn open(file: File) -> Result<Archive, Halt> {
    Archive::open(file)
}

/// The XML reader of a part; `None` when the part is absent.
pub(crate) fn part(archive: &Archive, name: &str) -> Result<Option<Xml<BufReader<Part>>>, Halt> {
    Ok(archive.part(name)?.map(Xml::new))
}

/// The XML reader of a part that must be there.
pub(crate) fn required(archive: &Archive, name: &str) -> Result<Xml<BufReader<Part>>, Halt> {
    part(archive, name)?.ok_or_else(|| {
        ExtractError::malformed("The file is packed like an office file but its main part is missing.").into()
    })
}

/// The main part of an Office Open XML file, or `fallback`.
pub(crate) fn main_part(archive: &Archive, fallback: &str) -> Result<String, Halt> {
    let relations = relations(archive, "")?;
    Ok(relations
        .into_iter()
        .find(|relation| relation.kind == "officeDocument" && archive.contains(&relation.target))
        .map_or_else(|| fallback.to_owned(), |relation| relation.target))
}

/// The relationships of `of` (the empty name: of the whole file).
pub(crate) fn relations(archive: &Archive, of: &str) -> Result<Vec<Relation>, Halt> {
    let (folder, file) = of.rsplit_once('/').unwrap_or(("", of));
    let name = if folder.is_empty() { format!("_rels/{file}.rels") } else { format!("{folder}/_rels/{file}.rels") };
    let mut relations = Vec::new();
    let Some(mut xml) = part(archive, &name)? else {
        return Ok(relations);
    };
    while let Some(node) = xml.next()? {
        let Node::Start(tag) = node else { continue };
        if tag.name().as_bytes() != b"Relationship" || tag.attr("TargetMode").as_deref() == Some("External") {
            continue;
        }
        if let (Some(id), Some(kind), Some(target)) = (tag.attr("Id"), tag.attr("Type"), tag.attr("Target")) {
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            relations.push(Relation { id, kind, target: resolve(folder, &target) });
        }
    }
    Ok(relations)
}

fn resolve(folder: &str, target: &str) -> String {
    let mut path: Vec<&str> = if target.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    path.retain(|segment| !segment.is_empty());
    path.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved() {
        assert_eq!(resolve("ppt/slides", "../notesSlides/n1.xml"), "ppt/notesSlides/n1.xml");
        assert_eq!(resolve("word", "styles.xml"), "word/styles.xml");
        assert_eq!(resolve("word", "/word/document.xml"), "word/document.xml");
        assert_eq!(resolve("", "../../../etc/passwd"), "etc/passwd");
    }
}
