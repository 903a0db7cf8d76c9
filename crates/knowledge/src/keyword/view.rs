//! One committed state of an index, prepared for queries.

use tantivy::columnar::Column;
use tantivy::{DocAddress, Searcher};
use uuid::Uuid;

use super::files::{Files, State};
use super::language::Language;
use super::schema::{Fields, ID_COLUMNS};

/// A searcher with what every query needs: the id columns and the languages.
pub(crate) struct View {
    generation: String,
    searcher: Searcher,
    fields: Fields,
    files: Files,
    /// Per segment, in the order of [`ID_COLUMNS`].
    ids: Vec<[Column<u64>; 4]>,
    /// Most frequent first.
    languages: Vec<Language>,
}

impl View {
    pub(crate) fn new(generation: String, searcher: Searcher, fields: Fields, files: Files) -> tantivy::Result<Self> {
        let mut ids = Vec::with_capacity(searcher.segment_readers().len());
        for segment in searcher.segment_readers() {
            let columns = segment.fast_fields();
            let [a, b, c, d] = ID_COLUMNS;
            ids.push([columns.u64(a)?, columns.u64(b)?, columns.u64(c)?, columns.u64(d)?]);
        }
        let mut counted = Vec::new();
        for language in Language::ALL {
            let passages = searcher.doc_freq(&tantivy::Term::from_field_text(fields.language, language.tag()))?;
            if passages > 0 {
                counted.push((passages, *language));
            }
        }
        counted.sort_by_key(|(passages, _)| std::cmp::Reverse(*passages));
        let languages = counted.into_iter().map(|(_, language)| language).collect();
        Ok(Self { generation, searcher, fields, files, ids, languages })
    }

    /// The name of the generation it reads.
    pub(crate) fn generation(&self) -> &str {
        &self.generation
    }

    /// Whether the files behind it are as they were opened.
    pub(crate) fn check(&self) -> State {
        self.files.check()
    }

    pub(crate) fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The most frequent languages of the index, at most `most`.
    pub(crate) fn languages(&self, most: usize) -> Vec<Language> {
        self.languages.iter().copied().take(most).collect()
    }

    /// Ids of passage and file at `address`.
    pub(crate) fn ids(&self, address: DocAddress) -> (Uuid, Uuid) {
        let columns = &self.ids[address.segment_ord as usize];
        let [a, b, c, d] = [0, 1, 2, 3].map(|column: usize| columns[column].first(address.doc_id).unwrap_or_default());
        (Uuid::from_u64_pair(a, b), Uuid::from_u64_pair(c, d))
    }
}
