//! Picks the sentences of the found passages that share most with the question.

use crate::language::{key_words, words};

/// Most passages that are quoted.
const MAX_QUOTES: usize = 3;
/// Longest quote, in characters.
const MAX_QUOTE_CHARS: usize = 420;
/// A passage is quoted beside the best one when it reaches this share of its score.
const MIN_SHARE: f32 = 0.6;
/// Letters that must agree for two words to count as forms of one word.
const STEM_CHARS: usize = 5;

/// A found passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Passage {
    /// The number of its citation mark, when it has one.
    pub(crate) cite: Option<u64>,
    /// Its document's title.
    pub(crate) title: String,
    /// Its text.
    pub(crate) text: String,
}

/// A sentence to quote.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quote {
    pub(crate) cite: Option<u64>,
    pub(crate) title: String,
    pub(crate) text: String,
    /// Whether it shares words with the question.
    pub(crate) fits: bool,
}

/// The quotes for `question`, best first; empty only without passages.
pub(crate) fn quotes(question: &str, passages: &[Passage]) -> Vec<Quote> {
    let keys = key_words(question);
    let weights = weights(&keys, passages);
    let mut ranked: Vec<(f32, usize, Quote)> = Vec::new();
    for (place, passage) in passages.iter().enumerate() {
        let sentences = sentences(&passage.text);
        let scores: Vec<f32> = sentences.iter().map(|sentence| score(sentence, &keys, &weights)).collect();
        // The first of equally good sentences.
        let best = (0..sentences.len()).fold(None, |best: Option<usize>, at| match best {
            Some(held) if scores[held] >= scores[at] => Some(held),
            _ => Some(at),
        });
        if let Some(at) = best {
            let text = passage_around(&sentences, &scores, at);
            ranked.push((
                scores[at],
                place,
                Quote { cite: passage.cite, title: passage.title.clone(), text, fits: scores[at] > 0.0 },
            ));
        }
    }
    // The search's own order decides between equals.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let top = ranked.first().map_or(0.0, |(score, _, _)| *score);
    let mut chosen: Vec<Quote> = Vec::new();
    for (score, _, quote) in ranked {
        let enough = chosen.is_empty() || (quote.fits && score >= top * MIN_SHARE);
        if enough && chosen.len() < MAX_QUOTES && !chosen.iter().any(|held| held.text == quote.text) {
            chosen.push(quote);
        }
    }
    chosen
}

/// A word that stands in few passages tells more.
fn weights(keys: &[String], passages: &[Passage]) -> Vec<f32> {
    keys.iter()
        .map(|key| {
            let holding =
                passages.iter().filter(|passage| words(&passage.text).iter().any(|word| same_word(word, key))).count();
            1.0 + ((passages.len() as f32 + 1.0) / (holding as f32 + 1.0)).ln()
        })
        .collect()
}

fn score(sentence: &str, keys: &[String], weights: &[f32]) -> f32 {
    let words = words(sentence);
    let sum: f32 = keys
        .iter()
        .zip(weights)
        .filter(|(key, _)| words.iter().any(|word| same_word(word, key)))
        .map(|(_, weight)| weight)
        .sum();
    // Of two sentences with the same words, the shorter one says it more plainly.
    sum / (1.0 + words.len() as f32 / 200.0)
}

/// Equal words, forms of one word, and parts of a compound.
fn same_word(word: &str, key: &str) -> bool {
    if word == key {
        return true;
    }
    let shorter = word.chars().count().min(key.chars().count());
    if shorter < STEM_CHARS {
        return false;
    }
    let stem = |text: &str| text.chars().take(STEM_CHARS.max(shorter * 3 / 4)).collect::<String>();
    stem(word) == stem(key) || (shorter >= 6 && (word.contains(key) || key.contains(word)))
}

/// The sentence at `at`, with the next one while that fits the question, too.
fn passage_around(sentences: &[String], scores: &[f32], at: usize) -> String {
    let mut text = sentences[at].clone();
    if let (Some(next), Some(score)) = (sentences.get(at + 1), scores.get(at + 1))
        && *score > 0.0
        && text.chars().count() + next.chars().count() < MAX_QUOTE_CHARS
    {
        text = format!("{text} {next}");
    }
    shortened(&text)
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_QUOTE_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(MAX_QUOTE_CHARS).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{} …", &cut[..end])
}

/// Cuts a text into sentences. Line ends inside a paragraph count as spaces; headings and list
/// items are sentences of their own. Figures (`3.5`), short abbreviations (`z. B.`) and ordinals in
/// dates (`1. Mai`) do not end a sentence.
pub(crate) fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in blocks(text) {
        let characters: Vec<char> = block.chars().collect();
        let mut start = 0;
        for at in 0..characters.len() {
            if matches!(characters[at], '.' | '!' | '?') && ends_sentence(&characters, start, at) {
                push(&mut found, &characters[start..=at]);
                start = at + 1;
            }
        }
        push(&mut found, &characters[start..]);
    }
    found
}

fn push(found: &mut Vec<String>, characters: &[char]) {
    let sentence: String = characters.iter().collect();
    let sentence = sentence.trim();
    if sentence.chars().any(char::is_alphanumeric) {
        found.push(sentence.to_owned());
    }
}

fn ends_sentence(characters: &[char], start: usize, at: usize) -> bool {
    let Some(next) = characters.get(at + 1) else { return true };
    if !next.is_whitespace() {
        return false;
    }
    if characters[at] != '.' {
        return true;
    }
    let word: String = characters[start..at].iter().rev().take_while(|c| c.is_alphanumeric()).collect();
    let follows = characters[at + 1..].iter().find(|c| !c.is_whitespace());
    let short = word.chars().count() <= 2
        || matches!(
            word.chars().rev().collect::<String>().to_lowercase().as_str(),
            "bzw" | "etc" | "vgl" | "art" | "abs" | "evtl" | "inkl" | "max" | "min" | "mrs" | "prof"
        );
    !short && follows.is_none_or(|c| !c.is_lowercase())
}

/// Paragraphs, with list items and headings apart, and Markdown marks taken off.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let item = trimmed.starts_with(['-', '*', '•', '#', '|', '>']);
        let bare = trimmed.trim_start_matches(['-', '*', '•', '#', '>', ' ']).trim_matches('|').trim();
        if bare.is_empty() {
            open = false;
            continue;
        }
        match blocks.last_mut() {
            Some(block) if open && !item => {
                block.push(' ');
                block.push_str(bare);
            }
            _ => blocks.push(bare.to_owned()),
        }
        open = !trimmed.starts_with(['#', '|']);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(cite: u64, text: &str) -> Passage {
        Passage { cite: Some(cite), title: format!("Doc {cite}"), text: text.to_owned() }
    }

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(
            sentences("# Terms\nThe fee is 3.5 % of the price. It is due\non the 1. of May, e.g. by transfer! Thanks"),
            ["Terms", "The fee is 3.5 % of the price.", "It is due on the 1. of May, e.g. by transfer!", "Thanks"]
        );
        assert_eq!(sentences("- one thing\n- another thing"), ["one thing", "another thing"]);
    }

    #[test]
    fn the_sentence_that_answers_is_quoted_with_its_mark() {
        let passages = [
            passage(1, "Employees get a laptop. The kitchen is on the second floor."),
            passage(
                2,
                "This agreement starts in May. The notice period is three months to the end of a quarter. Overtime is paid.",
            ),
        ];
        let quotes = quotes("How long is the notice period?", &passages);
        assert_eq!(quotes.len(), 1);
        assert_eq!(
            (quotes[0].cite, quotes[0].text.as_str()),
            (Some(2), "The notice period is three months to the end of a quarter.")
        );
    }

    #[test]
    fn inflected_and_compound_words_count() {
        let passages = [passage(1, "Die Kündigungsfristen betragen drei Monate."), passage(2, "Der Hund bellt.")];
        assert_eq!(quotes("Wie lang ist die Kündigungsfrist?", &passages)[0].cite, Some(1));
    }

    #[test]
    fn without_common_words_the_first_passage_is_offered_as_the_closest() {
        let quotes = quotes("xyzzy", &[passage(4, "A. First sentence here. Second.")]);
        assert_eq!((quotes.len(), quotes[0].fits, quotes[0].cite), (1, false, Some(4)));
        assert!(super::quotes("x", &[]).is_empty());
    }
}
