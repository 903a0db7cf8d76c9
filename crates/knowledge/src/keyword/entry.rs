//! How a passage fills the fields of the index.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use tantivy::TantivyDocument;

use super::analysis::{Part, Seen, Word, fold, words};
use super::language::{DETECTION_WORDS, Detected, Language, Stems, detect};
use super::schema::{BESIDE, CHAT, Fields, LIBRARY, NEXT, Passage};

/// Stems that are remembered per language: a text repeats its words, and so does the next text.
const MOST_REMEMBERED: usize = 20_000;
/// Languages whose stems are remembered.
const MOST_LANGUAGES: usize = 4;

/// A word of the passage at hand.
enum Met {
    /// Its place in [`Analyst::plain`].
    Plain(usize, usize),
    /// Anything that is not [`Seen::Plain`].
    Other(Word),
}

/// Turns passages into entries of the index: each is read once for all its fields.
#[derive(Default)]
pub(crate) struct Analyst {
    /// Of the languages met last.
    languages: Vec<Remembering>,
    /// The words of the passage at hand, its header's first.
    met: Vec<Met>,
    /// The texts of the plain ones, one after the other.
    plain: String,
}

impl Analyst {
    /// The index entry of a passage.
    pub(crate) fn entry(&mut self, fields: &Fields, passage: &Passage) -> TantivyDocument {
        self.met.clear();
        self.plain.clear();
        self.read(&passage.header);
        let header = self.met.len();
        self.read(&passage.body);
        let first = self.met[header..].iter().take(DETECTION_WORDS).map(|met| match met {
            Met::Plain(start, end) => Some(&self.plain[*start..*end]),
            Met::Other(_) => None,
        });
        let detected = detect(&passage.body, first);
        let (head, stems) = self.stems(detected, header, passage);
        let (texts, kind) = if passage.library { (fields.library, LIBRARY) } else { (fields.chat, CHAT) };

        let mut entry = TantivyDocument::new();
        entry.add_bytes(fields.place, &passage.place());
        entry.add_bytes(fields.file, passage.file_id.as_bytes());
        entry.add_text(fields.kind, kind);
        entry.add_text(fields.language, detected.language.map_or("", Language::tag));
        let (chunk_hi, chunk_lo) = passage.id.as_u64_pair();
        let (file_hi, file_lo) = passage.file_id.as_u64_pair();
        for (field, value) in fields.ids.into_iter().zip([chunk_hi, chunk_lo, file_hi, file_lo]) {
            entry.add_u64(field, value);
        }
        if !head.is_empty() {
            entry.add_text(texts.head, head);
        }
        entry.add_text(texts.stem, stems);
        entry.add_text(texts.exact, self.exact(passage));
        entry
    }

    fn read(&mut self, text: &str) {
        let (met, plain) = (&mut self.met, &mut self.plain);
        words(text, |word| {
            met.push(match word {
                Seen::Plain(word) => {
                    let start = plain.len();
                    plain.push_str(word);
                    Met::Plain(start, plain.len())
                }
                Seen::Other(word) => Met::Other(word),
            });
        });
    }

    /// The folded words, and what joins their parts.
    fn exact(&self, passage: &Passage) -> String {
        let mut marked = Marked::of(passage);
        for met in &self.met {
            match met {
                Met::Plain(start, end) => {
                    marked.push(NEXT, &self.plain[*start..*end]);
                }
                Met::Other(word) => {
                    let mut whole = word.whole.as_ref();
                    for part in &word.parts {
                        marked.push(NEXT, &part.folded);
                        if let Some(whole) = whole.take() {
                            marked.push(BESIDE, whole);
                        }
                    }
                }
            }
        }
        marked.0
    }

    /// The stems of the header alone, and of the whole passage.
    fn stems(&mut self, detected: Detected, header: usize, passage: &Passage) -> (String, String) {
        // of an unsure guess, English stems stand beside its own
        let english = detected.unsure && detected.language != Some(Language::English);
        let mut place_of = |language: Option<Language>| language.map(|language| self.place(language));
        // both are looked up in the end, so that neither place moves the other
        let (_, second) = (place_of(detected.language), place_of(english.then_some(Language::English)));
        let first = place_of(detected.language);
        let mut marked = Marked::of(passage);
        let mut head = String::new();
        for (number, met) in self.met.iter().enumerate() {
            if number == header {
                head.clone_from(&marked.0);
            }
            match met {
                Met::Plain(start, end) => {
                    let word = &self.plain[*start..*end];
                    let from = marked.push(NEXT, first.map_or(word, |place| self.languages[place].stem(word)));
                    if let Some(place) = second {
                        marked.push_unless_same(from, self.languages[place].stem(word));
                    }
                }
                Met::Other(word) => {
                    for part in &word.parts {
                        let from = marked.push(NEXT, &stem_of(first.map(|place| &self.languages[place].stems), part));
                        if let Some(place) = second {
                            marked.push_unless_same(from, &stem_of(Some(&self.languages[place].stems), part));
                        }
                    }
                }
            }
        }
        if header == self.met.len() {
            head.clone_from(&marked.0);
        }
        (head, marked.0)
    }

    /// The place of `language` in the list.
    fn place(&mut self, language: Language) -> usize {
        if let Some(place) = self.languages.iter().position(|known| known.language == language) {
            return place;
        }
        if self.languages.len() >= MOST_LANGUAGES {
            self.languages.clear();
        }
        self.languages.push(Remembering::new(language));
        self.languages.len() - 1
    }
}

/// A text whose words are marked, as the index takes it.
struct Marked(String);

impl Marked {
    fn of(passage: &Passage) -> Self {
        let length = passage.header.len() + passage.body.len();
        Self(String::with_capacity(length + length / 8))
    }

    /// Appends a word; where it begins.
    fn push(&mut self, mark: char, word: &str) -> usize {
        self.0.push(mark);
        let from = self.0.len();
        self.0.push_str(word);
        from
    }

    /// Appends a word beside the one that begins at `from`, unless it is the same.
    fn push_unless_same(&mut self, from: usize, word: &str) {
        if self.0[from..] != *word {
            self.push(BESIDE, word);
        }
    }
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

/// Stems of one language with a memory.
struct Remembering {
    language: Language,
    stems: Stems,
    /// Words and where their stem is in `remembered`.
    known: HashMap<String, usize, RandomState>,
    remembered: Vec<String>,
}

impl Remembering {
    fn new(language: Language) -> Self {
        Self { language, stems: Stems::new(language), known: HashMap::default(), remembered: Vec::new() }
    }

    /// The stem of a plain word.
    fn stem(&mut self, word: &str) -> &str {
        let place = match self.known.get(word) {
            Some(place) => *place,
            None => {
                if self.known.len() >= MOST_REMEMBERED {
                    self.known.clear();
                    self.remembered.clear();
                }
                self.remembered.push(fold(&self.stems.stem(word)));
                self.known.insert(word.to_owned(), self.remembered.len() - 1);
                self.remembered.len() - 1
            }
        };
        &self.remembered[place]
    }
}
