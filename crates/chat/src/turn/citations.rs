//! Numbers for cited passages: each passage that a turn has shown to the model gets one number,
//! and the marks in the finished text are resolved to citation parts.

use std::collections::{BTreeSet, HashMap};

use tale_core::ids::ChunkId;
use tale_knowledge::search::Hit;

use crate::parts::Part;

/// The passages of one turn by their number.
#[derive(Debug, Default)]
pub(crate) struct Citations {
    numbers: HashMap<ChunkId, u32>,
    passages: Vec<Part>,
}

impl Citations {
    /// The passage's number: the one it has, or the next.
    pub(crate) fn number(&mut self, hit: &Hit) -> u32 {
        if let Some(number) = self.numbers.get(&hit.chunk_id) {
            return *number;
        }
        let number = u32::try_from(self.passages.len() + 1).unwrap_or(u32::MAX);
        self.numbers.insert(hit.chunk_id, number);
        self.passages.push(Part::Citation {
            number,
            document_id: hit.document_id,
            file_id: hit.file_id,
            title: hit.title.clone(),
            passage: hit.passage.clone(),
            chunk_id: hit.chunk_id,
            page: hit.page,
        });
        number
    }

    /// Citation parts for the marks of the text parts, in order of their numbers. A mark that
    /// names no passage of this turn stays plain text.
    pub(crate) fn resolve(&self, parts: &[Part]) -> Vec<Part> {
        let mut used = BTreeSet::new();
        for part in parts {
            if let Part::Text { text } = part {
                used.extend(marks(text));
            }
        }
        used.into_iter().filter_map(|number| self.passages.get((number as usize).checked_sub(1)?).cloned()).collect()
    }
}

/// The numbers in marks such as `[3]` and `[1, 2]`.
fn marks(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for piece in text.split('[').skip(1) {
        let Some((inside, _)) = piece.split_once(']') else { continue };
        if inside.is_empty()
            || inside.len() > 64
            || !inside.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b' ')
        {
            continue;
        }
        found.extend(inside.split(',').filter_map(|number| number.trim().parse::<u32>().ok()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_alone_and_together() {
        assert_eq!(marks("a [1], b [2, 3] and [x] [12a] [4][5] ["), [1, 2, 3, 4, 5]);
        assert_eq!(marks("[]"), Vec::<u32>::new());
    }
}
