//! The automatic choice of a model (CHT-35): a pure scoring function, without any extra call.
//!
//! The message gives a score: its length, code, words of hard topics and of sensitive ones, and
//! documents. The score asks for a tier; the usable model nearest to that tier wins, ties by
//! price, then by name, so the same message always gives the same model. Images leave only models
//! that read them, and a document excludes the lowest tier.

use crate::available::ModelEntry;
use crate::definition::Tier;

/// What is known about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AutoInput {
    /// Length of the text in characters.
    pub text_len: usize,
    /// The text holds code.
    pub has_code: bool,
    /// The text asks for analysis, comparison, proof, planning or the like.
    pub hard_topic: bool,
    /// The text is about law, health, money or people.
    pub sensitive: bool,
    /// Images are attached.
    pub has_images: bool,
    /// Documents are attached.
    pub has_documents: bool,
}

/// Words of hard topics in the three languages of the interface, as beginnings of words.
const HARD: &[&str] = &[
    "analys",
    "analyz",
    "compare",
    "vergleich",
    "comparer",
    "explain why",
    "begründe",
    "justifi",
    "prove",
    "beweis",
    "démontr",
    "derive",
    "optimi",
    "strateg",
    "architect",
    "architekt",
    "step by step",
    "schritt für schritt",
    "étape par étape",
    "evaluat",
    "bewert",
    "évalu",
    "refactor",
    "debug",
    "algorithm",
    "summari",
    "zusammenfass",
    "résum",
    "translate",
    "übersetz",
    "tradui",
];
/// Words of sensitive topics.
const SENSITIVE: &[&str] = &[
    "contract",
    "vertrag",
    "contrat",
    "legal",
    "rechtlich",
    "juridi",
    "lawsuit",
    "klage",
    "medical",
    "medizin",
    "médic",
    "diagnos",
    "salary",
    "gehalt",
    "salaire",
    "tax",
    "steuer",
    "impôt",
    "dismiss",
    "kündig",
    "licenci",
    "gdpr",
    "dsgvo",
    "rgpd",
];

impl AutoInput {
    /// Looks at a message.
    #[must_use]
    pub fn of(text: &str, has_images: bool, has_documents: bool) -> Self {
        let lower = text.to_lowercase();
        let has = |words: &[&str]| {
            words
                .iter()
                .any(|word| lower.match_indices(word).any(|(at, _)| !lower[..at].ends_with(char::is_alphanumeric)))
        };
        let code_lines = text.lines().filter(|line| line.trim_end().ends_with([';', '{', '}'])).count();
        Self {
            text_len: text.chars().count(),
            has_code: text.contains("```") || code_lines >= 3,
            hard_topic: has(HARD),
            sensitive: has(SENSITIVE),
            has_images,
            has_documents,
        }
    }

    fn score(&self) -> u32 {
        let length = match self.text_len {
            0..=200 => 0,
            201..=1_000 => 1,
            1_001..=5_000 => 2,
            _ => 3,
        };
        length
            + 2 * u32::from(self.has_code)
            + 2 * u32::from(self.hard_topic)
            + u32::from(self.sensitive)
            + u32::from(self.has_documents)
    }

    /// The tier that the message asks for.
    #[must_use]
    pub fn tier(&self) -> Tier {
        match self.score() {
            0 | 1 if !self.has_documents => Tier::Fast,
            0..=3 => Tier::Balanced,
            _ => Tier::Capable,
        }
    }
}

/// Why no model could be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPick {
    /// There is no usable model.
    #[error("no model is available")]
    NoModel,
    /// Images are attached and no usable model reads images.
    #[error("no available model can read images")]
    NoVision,
}

/// Picks a model for a message.
///
/// # Errors
/// [`NoPick`] when no model fits.
pub fn pick<'a>(models: &'a [ModelEntry], input: &AutoInput) -> Result<&'a ModelEntry, NoPick> {
    if models.is_empty() {
        return Err(NoPick::NoModel);
    }
    let wanted = input.tier();
    models
        .iter()
        .filter(|model| !input.has_images || model.capabilities.vision)
        .min_by(|a, b| rank(a, wanted, input).cmp(&rank(b, wanted, input)))
        .ok_or(NoPick::NoVision)
}

/// Smaller is better. The demo comes last: it is no language model.
fn rank<'a>(model: &'a ModelEntry, wanted: Tier, input: &AutoInput) -> (bool, bool, u8, bool, u64, &'a str, &'a str) {
    let tier = tier_of(model);
    let excluded = input.has_documents && tier == Tier::Fast;
    let distance = (tier as i8 - wanted as i8).unsigned_abs();
    // Thousandths of a dollar per million tokens; unknown prices come after known ones.
    let price = model.pricing.and_then(|pricing| Some(pricing.input? + pricing.output?));
    let price = price.map_or(u64::MAX, |dollars| (dollars * 1_000.0) as u64);
    (model.demo, excluded, distance, !model.capabilities.tools, price, &model.provider_slug, &model.id)
}

/// The curated tier, else a guess by price, else by the words of the id.
fn tier_of(model: &ModelEntry) -> Tier {
    if let Some(tier) = model.tier {
        return tier;
    }
    if let Some(output) = model.pricing.and_then(|pricing| pricing.output) {
        return match output {
            price if price < 1.0 => Tier::Fast,
            price if price < 8.0 => Tier::Balanced,
            _ => Tier::Capable,
        };
    }
    let id = model.id.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| id.contains(word));
    if has(&[
        "nano", "mini", "lite", "flash", "haiku", "small", "-1b", "-3b", "-4b", "-7b", "-8b", ":1b", ":3b", ":4b",
        ":7b", ":8b",
    ]) {
        Tier::Fast
    } else if has(&["opus", "-pro", "max", "large", "reasoner", "thinking", "70b", "120b", "405b"]) {
        Tier::Capable
    } else {
        Tier::Balanced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Capabilities;

    fn entry(id: &str, tier: Option<Tier>, vision: bool) -> ModelEntry {
        ModelEntry {
            provider_slug: "p".into(),
            provider_name: "P".into(),
            id: id.into(),
            display_name: id.into(),
            context_window: 128_000,
            max_output_tokens: None,
            capabilities: Capabilities { tools: true, vision, reasoning: false },
            demo: false,
            pricing: None,
            tier,
            tags: Vec::new(),
            tool_api: crate::ToolApi::default(),
        }
    }

    fn models() -> Vec<ModelEntry> {
        vec![
            entry("big", Some(Tier::Capable), false),
            entry("small", Some(Tier::Fast), false),
            entry("mid", Some(Tier::Balanced), true),
        ]
    }

    fn picked(text: &str, images: bool, documents: bool) -> String {
        pick(&models(), &AutoInput::of(text, images, documents)).unwrap().id.clone()
    }

    #[test]
    fn easy_messages_go_to_the_fast_model_and_hard_ones_to_the_capable_one() {
        assert_eq!(picked("Hi!", false, false), "small");
        assert_eq!(picked("Vergleiche die beiden Verträge Schritt für Schritt.", false, false), "mid");
        assert_eq!(
            picked(
                &format!("Please analyze this contract:\n```rust\n{}\n```", "let a = 1;\n".repeat(200)),
                false,
                false
            ),
            "big"
        );
    }

    #[test]
    fn a_document_excludes_the_lowest_tier() {
        assert_eq!(picked("Hi!", false, true), "mid");
        let only_small = [entry("small", Some(Tier::Fast), false), entry("big", Some(Tier::Capable), false)];
        assert_eq!(pick(&only_small, &AutoInput::of("Hi", false, true)).unwrap().id, "big");
    }

    #[test]
    fn images_leave_only_models_that_see() {
        assert_eq!(picked("What is this?", true, false), "mid");
        let blind = [entry("small", None, false)];
        assert_eq!(pick(&blind, &AutoInput::of("?", true, false)), Err(NoPick::NoVision));
        assert_eq!(pick(&[], &AutoInput::default()), Err(NoPick::NoModel));
    }

    #[test]
    fn the_order_of_the_list_does_not_matter_and_the_demo_comes_last() {
        let mut list = models();
        list.reverse();
        let input = AutoInput::of("Hi!", false, false);
        assert_eq!(pick(&list, &input).unwrap().id, "small");
        let demo = ModelEntry { demo: true, ..entry("a-demo", Some(Tier::Fast), false) };
        assert_eq!(pick(&[demo.clone(), entry("big", Some(Tier::Capable), false)], &input).unwrap().id, "big");
        assert_eq!(pick(std::slice::from_ref(&demo), &input).unwrap().id, "a-demo");
    }
}
