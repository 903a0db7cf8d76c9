//! The three languages: which one a question is written in, its empty words, and what the demo says.

/// A language that the demo writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// German.
    German,
    /// French.
    French,
}

const ENGLISH: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "give", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "list", "long", "many", "may", "me", "much", "must", "my", "of", "on", "or", "our", "please", "say", "says",
    "shall", "should", "show", "so", "tell", "than", "that", "the", "their", "them", "there", "these", "they", "this",
    "those", "to", "us", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will",
    "with", "would", "you", "your",
];
const GERMAN: &[&str] = &[
    "aber", "alle", "allen", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "bitte", "da", "dann",
    "das", "dass", "dem", "den", "denn", "der", "des", "die", "dies", "diese", "diesem", "diesen", "dieser", "doch",
    "du", "durch", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es", "für", "gibt", "hat", "haben", "ich",
    "ihr", "ihre", "im", "in", "ins", "ist", "ja", "kann", "können", "kannst", "lang", "lange", "man", "mein", "meine",
    "mich", "mir", "mit", "muss", "müssen", "nach", "nicht", "noch", "nur", "ob", "oder", "sag", "sage", "sein",
    "seine", "sich", "sie", "sind", "so", "soll", "steht", "über", "um", "und", "uns", "unser", "unsere", "vom", "von",
    "vor", "wann", "war", "warum", "was", "welche", "welchem", "welchen", "welcher", "welches", "wenn", "wer",
    "werden", "wie", "viel", "viele", "wir", "wird", "wo", "worum", "zu", "zum", "zur",
];
const FRENCH: &[&str] = &[
    "à", "ai", "au", "aux", "avec", "avez", "c", "ce", "ces", "cet", "cette", "combien", "comment", "d", "dans", "de",
    "des", "donne", "dit", "du", "elle", "elles", "en", "est", "et", "être", "il", "ils", "j", "je", "l", "la", "le",
    "les", "leur", "leurs", "lui", "m", "ma", "mais", "me", "mes", "moi", "mon", "n", "ne", "nos", "notre", "nous",
    "on", "ont", "ou", "où", "par", "pas", "peut", "peux", "plus", "pour", "pourquoi", "qu", "quand", "que", "quel",
    "quelle", "quelles", "quels", "qui", "quoi", "s", "sa", "se", "ses", "si", "son", "sont", "sur", "ta", "te", "tes",
    "ton", "tu", "un", "une", "vos", "votre", "vous", "y",
];

impl Language {
    /// The language that `text` seems to be written in; `fallback` when nothing tells.
    #[must_use]
    pub fn of(text: &str, fallback: Self) -> Self {
        let words = words(text);
        let count = |list: &[&str]| words.iter().filter(|word| list.contains(&word.as_str())).count();
        let umlauts = text.chars().filter(|c| "äöüßÄÖÜ".contains(*c)).count();
        let accents = text.chars().filter(|c| "éèêàçùœÉÈÀÇ".contains(*c)).count();
        let scores = [
            (Self::English, count(ENGLISH)),
            (Self::German, count(GERMAN) + umlauts),
            (Self::French, count(FRENCH) + accents),
        ];
        let best = scores.iter().map(|(_, score)| *score).max().unwrap_or(0);
        let winners: Vec<Self> =
            scores.iter().filter(|(_, score)| *score == best).map(|(language, _)| *language).collect();
        match winners.as_slice() {
            [one] => *one,
            several if best > 0 && !several.contains(&fallback) => several[0],
            _ => fallback,
        }
    }

    /// The language that a system text asks for, if it names one.
    #[must_use]
    pub fn asked_for(system: &str) -> Option<Self> {
        let lower = system.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if has(&["in german", "auf deutsch", "language: de", "locale: de"]) {
            Some(Self::German)
        } else if has(&["in french", "en français", "language: fr", "locale: fr"]) {
            Some(Self::French)
        } else {
            None
        }
    }

    pub(crate) fn introduction(self) -> &'static str {
        match self {
            Self::English => {
                "I am the Tale demo. I am not a language model: I look up your question in your documents and quote the passages that fit, with their sources. Upload a document and ask me something about it."
            }
            Self::German => {
                "Ich bin die Tale-Demo. Ich bin kein Sprachmodell: Ich suche Ihre Frage in Ihren Dokumenten und zitiere die passenden Stellen mit Quelle. Laden Sie ein Dokument hoch und fragen Sie mich etwas dazu."
            }
            Self::French => {
                "Je suis la démo de Tale. Je ne suis pas un modèle de langage : je cherche votre question dans vos documents et je cite les passages qui conviennent, avec leurs sources. Ajoutez un document et posez-moi une question à son sujet."
            }
        }
    }

    pub(crate) fn documents_say(self, documents: usize) -> &'static str {
        match (self, documents) {
            (Self::English, 1) => "Your document says:",
            (Self::English, _) => "Your documents say:",
            (Self::German, 1) => "In Ihrem Dokument steht:",
            (Self::German, _) => "In Ihren Dokumenten steht:",
            (Self::French, 1) => "Votre document dit :",
            (Self::French, _) => "Vos documents disent :",
        }
    }

    pub(crate) fn closest(self) -> &'static str {
        match self {
            Self::English => {
                "I found no sentence with the words of your question. The closest passage of your documents is:"
            }
            Self::German => {
                "Ich habe keinen Satz mit den Wörtern Ihrer Frage gefunden. Die ähnlichste Stelle in Ihren Dokumenten ist:"
            }
            Self::French => {
                "Je n’ai trouvé aucune phrase avec les mots de votre question. Le passage le plus proche de vos documents est :"
            }
        }
    }

    pub(crate) fn message_says(self) -> &'static str {
        match self {
            Self::English => "Your message says:",
            Self::German => "In Ihrer Nachricht steht:",
            Self::French => "Votre message dit :",
        }
    }

    pub(crate) fn nothing(self) -> &'static str {
        match self {
            Self::English => {
                "I found nothing about this in your documents. As a demo I can only quote what is there; try other words, or upload a document that covers it."
            }
            Self::German => {
                "Dazu habe ich in Ihren Dokumenten nichts gefunden. Als Demo kann ich nur zitieren, was dort steht; versuchen Sie andere Wörter oder laden Sie ein passendes Dokument hoch."
            }
            Self::French => {
                "Je n’ai rien trouvé à ce sujet dans vos documents. En tant que démo, je ne peux que citer ce qui s’y trouve ; essayez d’autres mots ou ajoutez un document qui en parle."
            }
        }
    }

    pub(crate) fn footer(self) -> &'static str {
        match self {
            Self::English => "*Quoted by the Tale demo, which is not a language model.*",
            Self::German => "*Zitiert von der Tale-Demo, die kein Sprachmodell ist.*",
            Self::French => "*Cité par la démo de Tale, qui n’est pas un modèle de langage.*",
        }
    }
}

/// The lower-case words of a text: letters and digits, with `-`, `_`, `.` and `/` inside kept, so
/// that identifiers such as `INV-2024.17` stay whole.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Whether a word carries no meaning of its own in any of the three languages.
pub(crate) fn is_empty_word(word: &str) -> bool {
    ENGLISH.contains(&word) || GERMAN.contains(&word) || FRENCH.contains(&word)
}

/// The words of a question that carry its meaning, each once.
pub(crate) fn key_words(question: &str) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for word in words(question) {
        if !is_empty_word(&word) && !kept.contains(&word) {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_question_is_recognized() {
        let of = |text: &str| Language::of(text, Language::English);
        assert_eq!(of("What is the notice period?"), Language::English);
        assert_eq!(of("Wie lang ist die Kündigungsfrist?"), Language::German);
        assert_eq!(of("Quel est le délai de préavis ?"), Language::French);
        assert_eq!(of("INV-2024-17"), Language::English);
        assert_eq!(Language::of("INV-2024-17", Language::German), Language::German);
    }

    #[test]
    fn key_words_leave_out_empty_words_and_keep_identifiers() {
        assert_eq!(
            key_words("What does the contract INV-2024.17 say about the notice period?"),
            ["contract", "inv-2024.17", "notice", "period"]
        );
        assert_eq!(key_words("Wie lange ist die Kündigungsfrist?"), ["kündigungsfrist"]);
    }
}
