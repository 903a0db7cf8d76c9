//! The fields of the index.
//!
//! Library passages and chat uploads have fields of their own, so that one chat's uploads change
//! neither the speed nor the scores of a search that cannot see them.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};
use uuid::Uuid;

/// Changes whenever fields or analysis change: an index of another version is built anew.
pub(crate) const VERSION: u32 = 2;

const MARKED: &str = "tale_marked";
const RAW: &str = "raw";

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
    let text = |record| {
        TextOptions::default()
            .set_indexing_options(TextFieldIndexing::default().set_tokenizer(MARKED).set_index_option(record))
    };
    let place = builder.add_bytes_field("place", INDEXED);
    let file = builder.add_bytes_field("file", INDEXED);
    let kind = builder.add_text_field("kind", key(IndexRecordOption::Basic));
    let language = builder.add_text_field("language", key(IndexRecordOption::Basic));
    let ids = ID_COLUMNS.map(|name| builder.add_u64_field(name, NumericOptions::from(FAST)));
    let mut of = |prefix: &str| TextFields {
        stem: builder.add_text_field(&format!("{prefix}_stem"), text(IndexRecordOption::WithFreqs)),
        exact: builder.add_text_field(&format!("{prefix}_exact"), text(IndexRecordOption::WithFreqsAndPositions)),
        head: builder.add_text_field(&format!("{prefix}_head"), text(IndexRecordOption::WithFreqs)),
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
    manager.register(MARKED, TextAnalyzer::from(MarkedTokenizer));
    manager
}

/// Before a word that stands one position after the word before it.
pub(crate) const NEXT: char = '\u{1}';
/// Before a word at the position of the word before it.
pub(crate) const BESIDE: char = '\u{2}';

/// Takes a text apart whose words are marked with [`NEXT`] and [`BESIDE`]: passages are analyzed once
/// for all fields, before they get here. No word holds a control character.
#[derive(Clone)]
struct MarkedTokenizer;

impl Tokenizer for MarkedTokenizer {
    type TokenStream<'a> = Marked<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Marked<'a> {
        Marked { text, at: 0, current: Token { position_length: 1, ..Token::default() } }
    }
}

struct Marked<'a> {
    text: &'a str,
    /// Where the next mark is.
    at: usize,
    current: Token,
}

impl TokenStream for Marked<'_> {
    fn advance(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let Some(mark) = bytes.get(self.at) else { return false };
        if char::from(*mark) == NEXT {
            // before the first one it is the largest number
            self.current.position = self.current.position.wrapping_add(1);
        }
        let start = self.at + 1;
        self.at =
            bytes[start..].iter().position(|byte| *byte <= BESIDE as u8).map_or(bytes.len(), |length| start + length);
        self.current.text.clear();
        self.current.text.push_str(&self.text[start..self.at]);
        true
    }

    fn token(&self) -> &Token {
        &self.current
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.current
    }
}
