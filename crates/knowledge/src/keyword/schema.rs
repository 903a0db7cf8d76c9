//! The fields of the index and how a passage fills them.
//!
//! Library passages and chat uploads have fields of their own, so that one chat's uploads change
//! neither the speed nor the scores of a search that cannot see them.

use std::borrow::Cow;
use std::collections::HashMap;

use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};
use uuid::Uuid;

use super::analysis::{Part, Seen, fold, words};
use super::language::{Language, Stems, detect};

/// Changes whenever fields or analysis change: an index of another version is built anew.
pub(crate) const VERSION: u32 = 1;

const STEM: &str = "tale_stem";
const EXACT: &str = "tale_exact";
const RAW: &str = "raw";

/// Ends the language tag that precedes a text to be stemmed.
const TAG_END: char = '\u{1}';
const UNSURE: char = '?';

/// The searched fields of one kind of passage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextFields {
    /// Stems of header and body.
    pub(crate) stem: Field,
    /// Folded words and joined identifiers of header and body, with positions.
    pub(crate) exact: Field,
    /// Stems of the header alone.
    pub(crate) head: Field,
}

/// Every field of the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// File and ordinal, for replacing the passage that stands there, whatever its id.
    pub(crate) place: Field,
    /// Id of its file, for removing it and for reading one chat's uploads.
    pub(crate) file: Field,
    /// `library` or `chat`, counted for the scores.
    pub(crate) kind: Field,
    /// Tag of the detected language, counted for the query's stems.
    pub(crate) language: Field,
    /// Both ids again, as columns.
    pub(crate) ids: [Field; 4],
    /// Library passages.
    pub(crate) library: TextFields,
    /// Passages of chat uploads.
    pub(crate) chat: TextFields,
}

/// Names of the id columns: passage high and low, file high and low.
pub(crate) const ID_COLUMNS: [&str; 4] = ["chunk_hi", "chunk_lo", "file_hi", "file_lo"];
/// Value of `kind` for a library passage.
pub(crate) const LIBRARY: &str = "library";
/// Value of `kind` for a passage of a chat upload.
pub(crate) const CHAT: &str = "chat";

/// A passage as the corpus stores it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Passage {
    pub(crate) id: Uuid,
    pub(crate) file_id: Uuid,
    pub(crate) ordinal: i32,
    pub(crate) library: bool,
    pub(crate) header: String,
    pub(crate) body: String,
}

impl Passage {
    /// Where it stands: its file and its ordinal.
    pub(crate) fn place(&self) -> [u8; 20] {
        let mut place = [0; 20];
        place[..16].copy_from_slice(self.file_id.as_bytes());
        place[16..].copy_from_slice(&self.ordinal.to_be_bytes());
        place
    }
}

/// The schema and its fields.
pub(crate) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let key = |record| {
        TextOptions::default().set_indexing_options(
            TextFieldIndexing::default().set_tokenizer(RAW).set_index_option(record).set_fieldnorms(false),
        )
    };
    let text = |tokenizer, record| {
        TextOptions::default()
            .set_indexing_options(TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(record))
    };
    let place = builder.add_bytes_field("place", INDEXED);
    let file = builder.add_bytes_field("file", INDEXED);
    let kind = builder.add_text_field("kind", key(IndexRecordOption::Basic));
    let language = builder.add_text_field("language", key(IndexRecordOption::Basic));
    let ids = ID_COLUMNS.map(|name| builder.add_u64_field(name, NumericOptions::from(FAST)));
    let mut of = |prefix: &str| TextFields {
        stem: builder.add_text_field(&format!("{prefix}_stem"), text(STEM, IndexRecordOption::WithFreqs)),
        exact: builder
            .add_text_field(&format!("{prefix}_exact"), text(EXACT, IndexRecordOption::WithFreqsAndPositions)),
        head: builder.add_text_field(&format!("{prefix}_head"), text(STEM, IndexRecordOption::WithFreqs)),
    };
    let library = of(LIBRARY);
    let chat = of(CHAT);
    (builder.build(), Fields { place, file, kind, language, ids, library, chat })
}

/// The tokenizers that [`schema`] names.
pub(crate) fn tokenizers() -> TokenizerManager {
    // with the defaults: tantivy asks for one for every indexed field, bytes included
    let manager = TokenizerManager::default();
    manager.register(RAW, TextAnalyzer::from(tantivy::tokenizer::RawTokenizer::default()));
    manager.register(STEM, TextAnalyzer::from(StemTokenizer::default()));
    manager.register(EXACT, TextAnalyzer::from(ExactTokenizer));
    manager
}

/// The index entry of a passage.
pub(crate) fn entry(fields: &Fields, passage: &Passage) -> TantivyDocument {
    let detected = detect(&passage.body);
    let tag = detected.language.map_or("", Language::tag);
    let mark = if detected.unsure { "?" } else { "" };
    let (texts, kind) = if passage.library { (fields.library, LIBRARY) } else { (fields.chat, CHAT) };
    let mut text = String::with_capacity(passage.header.len() + passage.body.len() + 8);
    text.push_str(&passage.header);
    if !passage.header.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&passage.body);

    let mut entry = TantivyDocument::new();
    entry.add_bytes(fields.place, &passage.place());
    entry.add_bytes(fields.file, passage.file_id.as_bytes());
    entry.add_text(fields.kind, kind);
    entry.add_text(fields.language, tag);
    let (chunk_hi, chunk_lo) = passage.id.as_u64_pair();
    let (file_hi, file_lo) = passage.file_id.as_u64_pair();
    for (field, value) in fields.ids.into_iter().zip([chunk_hi, chunk_lo, file_hi, file_lo]) {
        entry.add_u64(field, value);
    }
    if !passage.header.is_empty() {
        entry.add_text(texts.head, format!("{tag}{mark}{TAG_END}{}", passage.header));
    }
    entry.add_text(texts.stem, format!("{tag}{mark}{TAG_END}{text}"));
    entry.add_text(texts.exact, text);
    entry
}

/// The stem of one part as the index stores it.
pub(crate) fn stem_of(stems: Option<&Stems>, part: &Part) -> String {
    match stems {
        Some(stems) if !part.folded.bytes().any(|byte| byte.is_ascii_digit()) => match stems.stem(&part.lower) {
            Cow::Borrowed(stem) => fold(stem),
            Cow::Owned(stem) => fold(&stem),
        },
        _ => part.folded.clone(),
    }
}

/// Stems that are remembered per language: a text repeats its words, and so does the next text.
const MOST_REMEMBERED: usize = 20_000;

/// Stems of one language with a memory.
#[derive(Clone)]
struct Remembering {
    language: Language,
    stems: Stems,
    known: HashMap<String, String>,
}

impl Remembering {
    fn new(language: Language) -> Self {
        Self { language, stems: Stems::new(language), known: HashMap::new() }
    }

    /// The stem of a plain word.
    fn stem(&mut self, word: &str) -> &str {
        if !self.known.contains_key(word) {
            if self.known.len() >= MOST_REMEMBERED {
                self.known.clear();
            }
            let stem = fold(&self.stems.stem(word));
            self.known.insert(word.to_owned(), stem);
        }
        self.known.get(word).map_or("", String::as_str)
    }
}

#[derive(Clone, Default)]
struct StemTokenizer {
    /// Of the languages met last, the latest last.
    languages: Vec<Remembering>,
}

impl StemTokenizer {
    /// The place of `language` in the list.
    fn place(&mut self, language: Language) -> usize {
        const MOST: usize = 4;
        if let Some(place) = self.languages.iter().position(|known| known.language == language) {
            return place;
        }
        if self.languages.len() >= MOST {
            self.languages.clear();
        }
        self.languages.push(Remembering::new(language));
        self.languages.len() - 1
    }
}

impl Tokenizer for StemTokenizer {
    type TokenStream<'a> = Tokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens {
        let (tag, text) = text.split_once(TAG_END).unwrap_or(("", text));
        let unsure = tag.ends_with(UNSURE);
        let language = Language::from_tag(tag.trim_end_matches(UNSURE));
        // with two languages both are looked up in the end, so that neither place moves the other
        let beside = (unsure && language != Some(Language::English)).then_some(Language::English);
        let mut place_of = |language: Option<Language>| language.map(|language| self.place(language));
        let (_, second) = (place_of(language), place_of(beside));
        let first = place_of(language);
        let languages = &mut self.languages;
        let mut tokens = Tokens::of_text(text.len());
        words(text, |word| match word {
            Seen::Plain(word) => {
                tokens.push(first.map_or(word, |place| languages[place].stem(word)));
                let other = second.map(|place| languages[place].stem(word));
                if let Some(other) = other.filter(|other| *other != tokens.last()) {
                    tokens.push_beside(other);
                }
            }
            Seen::Other(word) => {
                for part in &word.parts {
                    let stem = stem_of(first.map(|place| &languages[place].stems), part);
                    let other =
                        second.map(|place| stem_of(Some(&languages[place].stems), part)).filter(|other| *other != stem);
                    tokens.push(&stem);
                    if let Some(other) = other {
                        tokens.push_beside(&other);
                    }
                }
            }
        });
        tokens
    }
}

#[derive(Clone)]
struct ExactTokenizer;

impl Tokenizer for ExactTokenizer {
    type TokenStream<'a> = Tokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens {
        let mut tokens = Tokens::of_text(text.len());
        words(text, |word| match word {
            Seen::Plain(word) => tokens.push(word),
            Seen::Other(word) => {
                let mut whole = word.whole;
                for part in word.parts {
                    tokens.push(&part.folded);
                    if let Some(whole) = whole.take() {
                        tokens.push_beside(&whole);
                    }
                }
            }
        });
        tokens
    }
}

/// Tokens made in advance, their texts one after the other.
struct Tokens {
    texts: String,
    /// Where each text ends, and the token's position.
    list: Vec<(usize, usize)>,
    /// One past the current token.
    next: usize,
    position: usize,
    current: Token,
}

impl Tokens {
    /// For a text of `length` bytes.
    fn of_text(length: usize) -> Self {
        Self {
            texts: String::with_capacity(length),
            list: Vec::with_capacity(length / 6),
            next: 0,
            position: 0,
            current: Token { position_length: 1, ..Token::default() },
        }
    }

    /// Appends a token at the next position.
    fn push(&mut self, text: &str) {
        self.texts.push_str(text);
        self.list.push((self.texts.len(), self.position));
        self.position += 1;
    }

    /// Appends a token at the position of the one before it.
    fn push_beside(&mut self, text: &str) {
        self.texts.push_str(text);
        self.list.push((self.texts.len(), self.position.saturating_sub(1)));
    }

    /// The text of the token pushed last.
    fn last(&self) -> &str {
        let start = self.list.len().checked_sub(2).map_or(0, |before| self.list[before].0);
        &self.texts[start..]
    }
}

impl TokenStream for Tokens {
    fn advance(&mut self) -> bool {
        let Some(&(end, position)) = self.list.get(self.next) else { return false };
        let start = self.next.checked_sub(1).map_or(0, |before| self.list[before].0);
        self.current.text.clear();
        self.current.text.push_str(&self.texts[start..end]);
        self.current.position = position;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.current
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.current
    }
}
