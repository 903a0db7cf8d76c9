//! The languages a passage can be written in: detection, stems and words without content.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use frostem::{Algorithm, Stemmer};
use whatlang::{Detector, Lang};

/// Words and bytes of a passage that detection looks at; more does not make it surer, only slower.
pub(crate) const DETECTION_WORDS: usize = 180;
const DETECTION_BYTES: usize = 1_024;

macro_rules! languages {
    ($($variant:ident $tag:literal $lang:ident $algorithm:ident;)+) => {
        /// A language with its own stems. Any other text is indexed by its plain words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are the documentation")]
        pub(crate) enum Language { $($variant),+ }

        impl Language {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The two-letter tag that stands for the language in the index.
            pub(crate) fn tag(self) -> &'static str {
                match self { $(Self::$variant => $tag),+ }
            }

            fn of(lang: Lang) -> Option<Self> {
                match lang { $(Lang::$lang => Some(Self::$variant),)+ _ => None }
            }

            fn algorithm(self) -> Algorithm {
                match self { $(Self::$variant => Algorithm::$algorithm),+ }
            }
        }
    };
}

languages! {
    English "en" Eng English;
    German "de" Deu German;
    French "fr" Fra French;
    Spanish "es" Spa Spanish;
    Italian "it" Ita Italian;
    Portuguese "pt" Por Portuguese;
    Dutch "nl" Nld Dutch;
    Danish "da" Dan Danish;
    Swedish "sv" Swe Swedish;
    Norwegian "nb" Nob Norwegian;
    Finnish "fi" Fin Finnish;
    Hungarian "hu" Hun Hungarian;
    Romanian "ro" Ron Romanian;
    Turkish "tr" Tur Turkish;
    Russian "ru" Rus Russian;
}

/// How the words of one text are stemmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detected {
    /// The likeliest language, if it is one we have stems for.
    pub(crate) language: Option<Language>,
    /// Short or mixed text: English stems are indexed beside those of the guess.
    pub(crate) unsure: bool,
}

/// The language of a passage, from the passage alone, so that a rebuilt index equals a followed one.
/// Words without content tell the languages that have a list of them apart, at little cost; what they
/// leave open is decided by the frequency of letter groups.
///
/// `words` are the first words of `text`, at most [`DETECTION_WORDS`], without those that are not plain.
pub(crate) fn detect<'a>(text: &str, words: impl Iterator<Item = Option<&'a str>>) -> Detected {
    // the languages without stems stay in the list so that Polish, say, is not taken for the
    // nearest language with stems
    static DETECTOR: LazyLock<Detector> = LazyLock::new(Detector::new);
    if let Some(language) = by_stop_words(words) {
        return Detected { language: Some(language), unsure: false };
    }
    let mut end = text.len().min(DETECTION_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match DETECTOR.detect(&text[..end]) {
        Some(info) => {
            let unsure = !info.is_reliable();
            let language = Language::of(info.lang());
            // an unsure guess that has no stems is as good as none
            Detected { language: language.or(unsure.then_some(Language::English)), unsure }
        }
        None => Detected { language: None, unsure: true },
    }
}

/// The language whose small words fill a good part of the text, if one stands out.
fn by_stop_words<'a>(words: impl Iterator<Item = Option<&'a str>>) -> Option<Language> {
    /// Fewer words than this say nothing.
    const FEWEST: u32 = 8;
    static LISTS: LazyLock<HashMap<&'static str, u16, RandomState>> = LazyLock::new(|| {
        let mut lists: HashMap<&'static str, u16, RandomState> = HashMap::default();
        for (bit, language) in Language::ALL.iter().enumerate() {
            for word in stop_words(*language) {
                *lists.entry(word).or_insert(0) |= 1 << bit;
            }
        }
        lists
    });
    let mut counts = [0_u32; Language::ALL.len()];
    let mut all = 0;
    for word in words {
        all += 1;
        let mut languages = word.and_then(|word| LISTS.get(word)).copied().unwrap_or_default();
        while languages != 0 {
            counts[languages.trailing_zeros() as usize] += 1;
            languages &= languages - 1;
        }
    }
    let (place, first) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let second =
        counts.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, count)| *count).max().unwrap_or(0);
    (*first >= FEWEST && *first >= 2 * second && *first * 5 >= all).then(|| Language::ALL[place])
}

/// Stems words of one language.
#[derive(Clone, Copy)]
pub(crate) struct Stems {
    stemmer: Stemmer,
}

impl Stems {
    pub(crate) fn new(language: Language) -> Self {
        Self { stemmer: Stemmer::new(language.algorithm()) }
    }

    /// The stem of a lower-case word. `word` keeps its accents, which the rules of many languages need.
    pub(crate) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        self.stemmer.stem(word)
    }
}

/// Whether `word` (folded) carries no content in `language`. A question loses nothing without it.
pub(crate) fn is_stop_word(language: Language, word: &str) -> bool {
    stop_words(language).binary_search(&word).is_ok()
}

/// Sorted, folded.
fn stop_words(language: Language) -> &'static [&'static str] {
    match language {
        Language::English => &[
            "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
            "because", "been", "before", "being", "between", "both", "but", "by", "can", "could", "did", "do", "does",
            "doing", "during", "each", "few", "for", "from", "further", "get", "give", "had", "has", "have", "having",
            "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just",
            "may", "me", "might", "more", "most", "must", "my", "no", "nor", "not", "of", "off", "on", "once", "only",
            "or", "other", "our", "ours", "out", "over", "own", "please", "same", "shall", "she", "should", "so",
            "some", "such", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
            "those", "through", "to", "too", "under", "until", "up", "us", "very", "was", "we", "were", "what", "when",
            "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
        ],
        Language::German => &[
            "ab", "aber", "alle", "allem", "allen", "aller", "alles", "als", "also", "am", "an", "auch", "auf", "aus",
            "bei", "beim", "bin", "bis", "bitte", "da", "damit", "dann", "das", "dass", "dein", "dem", "den", "denn",
            "der", "des", "die", "dies", "diese", "diesem", "diesen", "dieser", "dieses", "doch", "du", "durch", "ein",
            "eine", "einem", "einen", "einer", "eines", "er", "es", "etwa", "euch", "euer", "fuer", "gegen", "gibt",
            "habe", "haben", "hat", "hatte", "hier", "ich", "ihm", "ihn", "ihr", "ihre", "ihrem", "ihren", "ihrer",
            "im", "in", "ins", "ist", "ja", "jede", "jedem", "jeden", "jeder", "kann", "kein", "keine", "koennen",
            "mal", "man", "mein", "meine", "mich", "mir", "mit", "muss", "nach", "nein", "nicht", "noch", "nun", "nur",
            "ob", "oder", "ohne", "sein", "seine", "sich", "sie", "sind", "so", "soll", "sollte", "sowie", "um", "und",
            "uns", "unser", "unsere", "unter", "viel", "vom", "von", "vor", "wann", "war", "waren", "warum", "was",
            "weil", "welche", "welchem", "welchen", "welcher", "welches", "wem", "wen", "wenn", "wer", "werden", "wie",
            "wieviel", "wir", "wird", "wo", "wurde", "zu", "zum", "zur",
        ],
        Language::French => &[
            "a", "afin", "ai", "alors", "au", "aucun", "aussi", "autre", "aux", "avant", "avec", "avoir", "ce", "cela",
            "ces", "cet", "cette", "chaque", "combien", "comme", "comment", "dans", "de", "des", "doit", "donc", "du",
            "elle", "elles", "en", "entre", "est", "et", "etaient", "etait", "ete", "etre", "eux", "faut", "ici", "il",
            "ils", "je", "la", "le", "les", "leur", "leurs", "lors", "lui", "mais", "me", "mes", "moi", "moins", "mon",
            "ne", "non", "nos", "notre", "nous", "on", "ou", "par", "pas", "peut", "plus", "pour", "pourquoi", "puis",
            "quand", "que", "quel", "quelle", "quelles", "quels", "qui", "quoi", "sa", "sans", "se", "sera", "ses",
            "si", "son", "sont", "sous", "sur", "ta", "te", "tes", "toi", "ton", "tous", "tout", "toute", "toutes",
            "tres", "tu", "un", "une", "vers", "vos", "votre", "vous", "y",
        ],
        Language::Spanish => &[
            "a", "al", "ante", "como", "con", "cual", "cuando", "de", "del", "desde", "donde", "e", "el", "ella", "en",
            "entre", "era", "es", "esta", "este", "esto", "fue", "ha", "han", "hasta", "hay", "la", "las", "le", "les",
            "lo", "los", "mas", "me", "mi", "muy", "no", "nos", "o", "para", "pero", "por", "porque", "que", "quien",
            "se", "ser", "si", "sin", "sobre", "son", "su", "sus", "tambien", "te", "tiene", "tu", "un", "una", "uno",
            "y", "ya", "yo",
        ],
        Language::Italian => &[
            "a", "ad", "al", "alla", "alle", "anche", "che", "chi", "ci", "come", "con", "cosa", "cui", "da", "dal",
            "dalla", "dei", "del", "della", "delle", "di", "dove", "e", "ed", "gli", "ha", "hanno", "i", "il", "in",
            "io", "la", "le", "lo", "ma", "mi", "ne", "nel", "nella", "non", "o", "per", "perche", "piu", "quale",
            "quando", "quanto", "questa", "questo", "se", "si", "sia", "sono", "su", "sul", "sulla", "ti", "tra", "un",
            "una", "uno", "vi",
        ],
        Language::Portuguese => &[
            "a", "ao", "aos", "as", "com", "como", "da", "das", "de", "do", "dos", "e", "ela", "ele", "em", "entre",
            "era", "essa", "esse", "esta", "este", "eu", "foi", "ha", "isso", "ja", "mais", "mas", "me", "muito", "na",
            "nao", "nas", "no", "nos", "o", "onde", "os", "ou", "para", "pela", "pelo", "por", "qual", "quando", "que",
            "quem", "se", "sem", "ser", "seu", "sua", "tambem", "tem", "um", "uma",
        ],
        Language::Dutch => &[
            "aan", "al", "als", "bij", "dan", "dat", "de", "der", "deze", "die", "dit", "door", "een", "en", "er",
            "geen", "had", "heb", "heeft", "het", "hij", "hoe", "hun", "ik", "in", "is", "je", "kan", "maar", "me",
            "met", "mijn", "naar", "niet", "nog", "nu", "of", "om", "onder", "ons", "ook", "op", "over", "te", "tot",
            "uit", "van", "veel", "voor", "waar", "waarom", "wanneer", "was", "wat", "we", "welke", "werd", "wie",
            "wij", "worden", "wordt", "ze", "zich", "zij", "zijn", "zo", "zou",
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::analysis::words_of;

    fn detect(text: &str) -> Detected {
        let words = words_of(text);
        super::detect(text, words.iter().map(|word| Some(word.parts[0].folded.as_str())))
    }

    #[test]
    fn stop_words_are_sorted_and_folded() {
        for language in Language::ALL {
            let words = stop_words(*language);
            assert!(
                words.windows(2).all(|pair| pair[0] < pair[1]),
                "{language:?}: {:?}",
                words.windows(2).find(|pair| pair[0] >= pair[1])
            );
            assert!(words.iter().all(|word| word.is_ascii()), "{language:?}");
        }
    }

    #[test]
    fn languages_are_told_apart() {
        let cases = [
            ("The parties may terminate this agreement with thirty days of written notice to each other.", "en"),
            ("Die Kündigungsfrist beträgt drei Monate zum Quartalsende und muss schriftlich eingehalten werden.", "de"),
            ("Le contrat peut être résilié par chacune des parties moyennant un préavis écrit de trois mois.", "fr"),
            ("El contrato podrá resolverse por cualquiera de las partes con un preaviso escrito de tres meses.", "es"),
        ];
        for (text, tag) in cases {
            assert_eq!(detect(text).language.map(Language::tag), Some(tag), "{text}");
        }
        assert_eq!(detect("本协议任何一方均可提前三十天书面通知另一方终止。").language, None);
    }

    #[test]
    fn german_spellings_share_a_stem() {
        let stems = Stems::new(Language::German);
        assert_eq!(stems.stem("verträge"), stems.stem("vertraege"));
        assert_eq!(stems.stem("verträge"), stems.stem("vertrag"));
        assert_eq!(stems.stem("maßnahmen"), stems.stem("massnahme"));
        assert_eq!(stems.stem("neue"), stems.stem("neuen"));
    }
}
