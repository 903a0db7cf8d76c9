//! Sentences in the three languages of the reference.

/// A language of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lang {
    /// English.
    En,
    /// German.
    De,
    /// French.
    Fr,
}

impl Lang {
    /// All of them, English first.
    pub const ALL: [Self; 3] = [Self::En, Self::De, Self::Fr];

    /// The code of the language: `en`, `de` or `fr`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
        }
    }
}

/// The same words in every language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// English.
    pub en: &'static str,
    /// German.
    pub de: &'static str,
    /// French.
    pub fr: &'static str,
}

impl Words {
    /// In `lang`.
    #[must_use]
    pub fn get(&self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::De => self.de,
            Lang::Fr => self.fr,
        }
    }
}

/// The same words in English, German and French.
#[must_use]
pub const fn words(en: &'static str, de: &'static str, fr: &'static str) -> Words {
    Words { en, de, fr }
}
