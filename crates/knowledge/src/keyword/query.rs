//! From a question to clauses over the index, and the passages that match best.
//!
//! There is no query language: every text is a valid query. Words without content are left out
//! unless nothing else is there; passages with the quoted phrases come before all others; a word that
//! no passage contains is looked for as two words, as one word with its neighbour and as the
//! likeliest correctly spelled words. Everything is bounded: words, variants, fuzzy look-ups.

use std::collections::{BTreeMap, HashMap, HashSet};

use tantivy::collector::TopDocs;
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};
use uuid::Uuid;

use super::analysis::{Part, Word, words_of};
use super::entry::stem_of;
use super::language::{Language, Stems, is_stop_word};
use super::schema::{CHAT, LIBRARY, TextFields};
use super::view::View;

/// Distinct words of a query that are looked for; of a longer text, the rarest ones.
const MAX_WORDS: usize = 32;
/// Unknown words of one query for which similar ones are looked up.
const MAX_FUZZY_WORDS: usize = 3;
/// Similar words tried for an unknown one.
const MAX_SIMILAR: usize = 3;
/// Entries of the dictionary judged for one unknown word.
const MAX_JUDGED: usize = 2_000;
/// Repetitions of a word that count.
const MAX_TIMES: f32 = 3.0;
/// Languages whose stems a query is tried in, the most frequent of the index.
const MAX_LANGUAGES: usize = 5;

/// Weights of the clauses relative to a stem's.
const EXACT_WEIGHT: f32 = 0.1;
const HEAD_WEIGHT: f32 = 0.3;
const IDENTIFIER_WEIGHT: f32 = 2.0;
const IDENTIFIER_PART_WEIGHT: f32 = 0.5;
const COMPOUND_WEIGHT: f32 = 0.5;
const NEIGHBOUR_WEIGHT: f32 = 0.7;
const SIMILAR_WEIGHT: f32 = 0.6;

/// A passage found by its words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The passage.
    pub chunk: Uuid,
    /// Its file.
    pub file: Uuid,
    /// BM25 score, comparable within one answer.
    pub score: f32,
}

/// The `pool` best passages for `text` in the library and in the chat uploads `files`, best first,
/// equal scores by passage id.
pub(crate) fn run(view: &View, text: &str, files: &[Uuid], pool: usize) -> tantivy::Result<Vec<Found>> {
    let question = Question::parse(text, view.languages(MAX_LANGUAGES));
    if question.words.is_empty() || pool == 0 {
        return Ok(Vec::new());
    }
    let fields = view.fields();
    let mut found = search(view, &question, fields.library, LIBRARY, &[], pool)?;
    if !files.is_empty() {
        found.extend(search(view, &question, fields.chat, CHAT, files, pool)?);
    }
    found.sort_by(|(a_phrase, a), (b_phrase, b)| {
        b_phrase.cmp(a_phrase).then(b.score.total_cmp(&a.score)).then(a.chunk.cmp(&b.chunk))
    });
    Ok(found.into_iter().take(pool).map(|(_, found)| found).collect())
}

/// A word and how often the query says it.
struct Asked {
    word: Word,
    times: f32,
}

struct Question {
    words: Vec<Asked>,
    /// Words of each quoted phrase, folded.
    phrases: Vec<Vec<String>>,
    stems: Vec<Stems>,
}

impl Question {
    fn parse(text: &str, languages: Vec<Language>) -> Self {
        let mut words = Vec::new();
        let mut phrases = Vec::new();
        for (piece, quoted) in pieces(text) {
            let of_piece = words_of(piece);
            if quoted {
                let phrase: Vec<String> =
                    of_piece.iter().flat_map(|word| word.parts.iter().map(|part| part.folded.clone())).collect();
                if !phrase.is_empty() && phrase.len() <= MAX_WORDS {
                    phrases.push(phrase);
                }
            }
            words.extend(of_piece);
        }
        let words = without_stop_words(words, &languages);
        let stems = languages.into_iter().map(Stems::new).collect();
        Self { words, phrases, stems }
    }

    /// The forms under which passages may hold a part, the plain one last.
    fn forms(&self, part: &Part) -> Vec<String> {
        let mut forms: Vec<String> = Vec::with_capacity(self.stems.len() + 1);
        for form in self.stems.iter().map(|stems| stem_of(Some(stems), part)).chain([part.folded.clone()]) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
    }
}

/// Splits at quotation marks. An opening mark without its closing one is ignored.
fn pieces(text: &str) -> Vec<(&str, bool)> {
    let is_mark = |c: char| matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '‟');
    let mut marks = text.char_indices().filter(|(_, c)| is_mark(*c));
    let mut pieces = Vec::new();
    let mut from = 0;
    while let (Some((open, mark)), Some((close, end))) = (marks.next(), marks.next()) {
        pieces.push((&text[from..open], false));
        pieces.push((&text[open + mark.len_utf8()..close], true));
        from = close + end.len_utf8();
    }
    pieces.push((&text[from..], false));
    pieces
}

/// Drops the words without content, in the language of the index that knows most of them, unless
/// nothing would be left; counts repetitions.
fn without_stop_words(words: Vec<Word>, languages: &[Language]) -> Vec<Asked> {
    let stops = |language: Language| {
        words.iter().filter(|word| word.parts.len() == 1 && is_stop_word(language, &word.parts[0].folded)).count()
    };
    let mut best = None;
    for language in languages.iter().copied().chain([Language::English]) {
        let count = stops(language);
        if count > 0 && best.is_none_or(|(most, _)| count > most) {
            best = Some((count, language));
        }
    }
    let keeps = |word: &Word| {
        !best.is_some_and(|(_, language)| {
            word.parts.len() == 1 && word.whole.is_none() && is_stop_word(language, &word.parts[0].folded)
        })
    };
    let all_stop = !words.iter().any(keeps);
    let kept: Vec<bool> = words.iter().map(|word| all_stop || keeps(word)).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut list: Vec<Asked> = Vec::new();
    for (word, _) in words.into_iter().zip(kept).filter(|(_, kept)| *kept) {
        let key: String = word.parts.iter().flat_map(|part| [part.folded.as_str(), " "]).collect();
        match seen.get(&key) {
            Some(place) => list[*place].times = (list[*place].times + 1.0).min(MAX_TIMES),
            None => {
                seen.insert(key, list.len());
                list.push(Asked { word, times: 1.0 });
            }
        }
    }
    list
}

/// Clauses for one kind of passage.
struct Plan<'a> {
    view: &'a View,
    question: &'a Question,
    fields: TextFields,
    /// In a fixed order: sums of scores depend on it.
    clauses: BTreeMap<(Field, String), f32>,
    frequencies: HashMap<Term, u64>,
}

impl Plan<'_> {
    fn frequency(&mut self, field: Field, text: &str) -> tantivy::Result<u64> {
        let term = Term::from_field_text(field, text);
        if let Some(known) = self.frequencies.get(&term) {
            return Ok(*known);
        }
        let frequency = self.view.searcher().doc_freq(&term)?;
        self.frequencies.insert(term, frequency);
        Ok(frequency)
    }

    /// Adds the clause when some passage has the term.
    fn clause(&mut self, field: Field, text: &str, weight: f32) -> tantivy::Result<u64> {
        let frequency = self.frequency(field, text)?;
        if frequency > 0 {
            let slot = self.clauses.entry((field, text.to_owned())).or_insert(0.0);
            *slot = slot.max(weight);
        }
        Ok(frequency)
    }

    /// Adds the clauses of a plain part; the number of passages that have it in some form.
    fn part(&mut self, part: &Part, weight: f32) -> tantivy::Result<u64> {
        let mut passages = self.clause(self.fields.exact, &part.folded, weight * EXACT_WEIGHT)?;
        for form in self.question.forms(part) {
            passages = passages.max(self.clause(self.fields.stem, &form, weight)?);
            self.clause(self.fields.head, &form, weight * HEAD_WEIGHT)?;
        }
        Ok(passages)
    }

    /// Adds the clauses of a word; the number of passages that have it in some form.
    fn word(&mut self, Asked { word, times }: &Asked) -> tantivy::Result<u64> {
        let mut passages = 0;
        let mut part_weight = *times;
        if let Some(whole) = &word.whole {
            let weight = if word.identifier { IDENTIFIER_WEIGHT } else { COMPOUND_WEIGHT };
            passages = self.clause(self.fields.exact, whole, weight * times)?;
            if word.identifier && passages > 0 {
                part_weight *= IDENTIFIER_PART_WEIGHT;
            }
        }
        for part in &word.parts {
            passages = passages.max(self.part(part, part_weight)?);
        }
        Ok(passages)
    }

    /// Two known words that an unknown one is made of: `datenschutzbericht`, `knowledgebase`.
    fn halves(&mut self, folded: &str) -> tantivy::Result<bool> {
        const SHORTEST: usize = 3;
        if folded.len() < 2 * SHORTEST || !folded.is_ascii() {
            return Ok(false);
        }
        let mut best: Option<(u64, &str, &str)> = None;
        for at in SHORTEST..=folded.len() - SHORTEST {
            let (left, right) = folded.split_at(at);
            let right_passages = self.frequency(self.fields.exact, right)?;
            if right_passages == 0 {
                continue;
            }
            // the German linking s
            for left in [Some(left), left.strip_suffix('s').filter(|left| left.len() >= SHORTEST)].into_iter().flatten()
            {
                let both = self.frequency(self.fields.exact, left)?.min(right_passages);
                if both > 0 && best.is_none_or(|(most, ..)| both > most) {
                    best = Some((both, left, right));
                }
            }
        }
        let Some((_, left, right)) = best else { return Ok(false) };
        for half in [left, right] {
            self.part(&Part { lower: half.to_owned(), folded: half.to_owned() }, SIMILAR_WEIGHT)?;
        }
        Ok(true)
    }

    /// The words of the dictionary nearest to an unknown one.
    fn similar(&mut self, folded: &str) -> tantivy::Result<()> {
        let distance: u8 = match folded.chars().count() {
            0..=3 => return Ok(()),
            4..=7 => 1,
            _ => 2,
        };
        let mut near: HashMap<String, u64> = HashMap::new();
        for distance in 1..=distance {
            let automaton =
                FuzzyTermQuery::new(Term::from_field_text(self.fields.exact, folded), distance, true).automaton()?;
            for segment in self.view.searcher().segment_readers() {
                let index = segment.inverted_index(self.fields.exact)?;
                let mut stream = index.terms().search(&automaton).into_stream()?;
                let mut judged = 0;
                while judged < MAX_JUDGED && stream.advance() {
                    judged += 1;
                    if let Ok(word) = std::str::from_utf8(stream.key()) {
                        *near.entry(word.to_owned()).or_insert(0) += u64::from(stream.value().doc_freq);
                    }
                }
            }
            if !near.is_empty() {
                break;
            }
        }
        let mut near: Vec<(String, u64)> = near.into_iter().collect();
        near.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        for (word, _) in near.into_iter().take(MAX_SIMILAR) {
            self.part(&Part { lower: word.clone(), folded: word }, SIMILAR_WEIGHT)?;
        }
        Ok(())
    }
}

/// The best passages of one kind; the flag says whether they have the quoted phrases.
fn search(
    view: &View,
    question: &Question,
    fields: TextFields,
    kind: &str,
    files: &[Uuid],
    pool: usize,
) -> tantivy::Result<Vec<(bool, Found)>> {
    let all = view.fields();
    let passages = view.searcher().doc_freq(&Term::from_field_text(all.kind, kind))?;
    if passages == 0 {
        return Ok(Vec::new());
    }
    let mut plan = Plan { view, question, fields, clauses: BTreeMap::new(), frequencies: HashMap::new() };
    for word in rarest(&mut plan, question)? {
        plan.word(word)?;
    }
    let mut fuzzy = 0;
    for (index, Asked { word, .. }) in question.words.iter().enumerate() {
        let joined_with_next = match question.words.get(index + 1).map(|next| &next.word) {
            Some(next) if word.parts.len() == 1 && next.parts.len() == 1 && index < MAX_WORDS => {
                let joined = format!("{}{}", word.parts[0].folded, next.parts[0].folded);
                plan.part(&Part { lower: joined.clone(), folded: joined }, NEIGHBOUR_WEIGHT)? > 0
            }
            _ => false,
        };
        if joined_with_next || fuzzy >= MAX_FUZZY_WORDS || is_known(&mut plan, word)? {
            continue;
        }
        fuzzy += 1;
        let folded = word.whole.as_ref().unwrap_or(&word.parts[0].folded);
        if !plan.halves(folded)? {
            plan.similar(folded)?;
        }
    }
    if plan.clauses.is_empty() {
        return Ok(Vec::new());
    }

    let statistics = Statistics::new(view.searcher(), passages, &plan)?;
    let any: Vec<(Occur, Box<dyn Query>)> = plan
        .clauses
        .iter()
        .map(|((field, text), weight)| {
            let term = TermQuery::new(Term::from_field_text(*field, text), IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(BoostQuery::new(Box::new(term), *weight)) as Box<dyn Query>)
        })
        .collect();
    let mut required: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    if !files.is_empty() {
        let terms = files.iter().map(|file| Term::from_field_bytes(all.file, file.as_bytes()));
        required.push((Occur::Must, Box::new(BoostQuery::new(Box::new(TermSetQuery::new(terms)), 0.0))));
    }
    let any = BooleanQuery::new(any);
    let mut found = Vec::new();
    if !question.phrases.is_empty() {
        let mut strict = vec![(Occur::Must, Box::new(any.clone()) as Box<dyn Query>)];
        for phrase in &question.phrases {
            let mut terms: Vec<Term> = phrase.iter().map(|word| Term::from_field_text(fields.exact, word)).collect();
            let query: Box<dyn Query> = match terms.len() {
                1 => Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::WithFreqs)),
                _ => Box::new(PhraseQuery::new(terms)),
            };
            strict.push((Occur::Must, query));
        }
        strict.extend(required.iter().map(|(occur, query)| (*occur, query.box_clone())));
        found = collect(view, &BooleanQuery::new(strict), pool, &statistics)?;
    }
    let rest = if found.len() == pool {
        Vec::new()
    } else if required.is_empty() {
        collect(view, &any, pool, &statistics)?
    } else {
        required.push((Occur::Must, Box::new(any)));
        collect(view, &BooleanQuery::new(required), pool, &statistics)?
    };
    let known: HashSet<Uuid> = found.iter().map(|found| found.chunk).collect();
    let with_phrase = found.into_iter().map(|found| (true, found));
    Ok(with_phrase
        .chain(rest.into_iter().filter(|found| !known.contains(&found.chunk)).map(|found| (false, found)))
        .collect())
}

/// The words to look for: all of a question, the rarest of a long text.
fn rarest<'q>(plan: &mut Plan<'_>, question: &'q Question) -> tantivy::Result<Vec<&'q Asked>> {
    if question.words.len() <= MAX_WORDS {
        return Ok(question.words.iter().collect());
    }
    let mut ranked = Vec::with_capacity(question.words.len());
    for (index, word) in question.words.iter().enumerate() {
        let mut passages = 0;
        for form in question.forms(&word.word.parts[0]) {
            passages = passages.max(plan.frequency(plan.fields.stem, &form)?);
        }
        if passages > 0 {
            ranked.push((passages, index, word));
        }
    }
    ranked.sort_by_key(|(passages, index, _)| (*passages, *index));
    Ok(ranked.into_iter().take(MAX_WORDS).map(|(.., word)| word).collect())
}

/// Whether some passage has the word in some form. Words without letters are never misspelled.
fn is_known(plan: &mut Plan<'_>, word: &Word) -> tantivy::Result<bool> {
    if let Some(whole) = &word.whole
        && plan.frequency(plan.fields.exact, whole)? > 0
    {
        return Ok(true);
    }
    if word.identifier && word.parts.iter().all(|part| part.folded.bytes().all(|byte| byte.is_ascii_digit())) {
        return Ok(true);
    }
    for part in &word.parts {
        let mut known = plan.frequency(plan.fields.exact, &part.folded)? > 0;
        for form in plan.question.forms(part) {
            known = known || plan.frequency(plan.fields.stem, &form)? > 0;
        }
        if !known {
            return Ok(false);
        }
    }
    Ok(true)
}

fn collect(view: &View, query: &dyn Query, pool: usize, statistics: &Statistics<'_>) -> tantivy::Result<Vec<Found>> {
    let best = view.searcher().search_with_statistics_provider(
        query,
        &TopDocs::with_limit(pool).order_by_score(),
        statistics,
    )?;
    Ok(best
        .into_iter()
        .map(|(score, address)| {
            let (chunk, file) = view.ids(address);
            Found { chunk, file, score }
        })
        .collect())
}

/// Collection statistics of one kind of passage: those of the other kind must not count.
struct Statistics<'a> {
    searcher: &'a Searcher,
    passages: u64,
    tokens: HashMap<Field, u64>,
    frequencies: &'a HashMap<Term, u64>,
}

impl<'a> Statistics<'a> {
    fn new(searcher: &'a Searcher, passages: u64, plan: &'a Plan<'_>) -> tantivy::Result<Self> {
        let mut tokens = HashMap::new();
        for field in [plan.fields.stem, plan.fields.exact, plan.fields.head] {
            tokens.insert(field, searcher.total_num_tokens(field)?);
        }
        Ok(Self { searcher, passages, tokens, frequencies: &plan.frequencies })
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        match self.tokens.get(&field) {
            Some(tokens) => Ok(*tokens),
            None => self.searcher.total_num_tokens(field),
        }
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.passages)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let frequency = match self.frequencies.get(term) {
            Some(frequency) => *frequency,
            None => self.searcher.doc_freq(term)?,
        };
        // the score asserts it
        Ok(frequency.min(self.passages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str, languages: &[Language]) -> Vec<String> {
        Question::parse(text, languages.to_vec())
            .words
            .iter()
            .map(|asked| asked.word.parts.iter().map(|part| part.folded.as_str()).collect::<Vec<_>>().join("+"))
            .collect()
    }

    #[test]
    fn words_without_content_are_left_out_unless_nothing_else_is_there() {
        let both = [Language::English, Language::German];
        assert_eq!(kept("What is the notice period?", &both), ["notice", "period"]);
        assert_eq!(kept("Wie lange ist die Kündigungsfrist?", &both), ["lange", "kuendigungsfrist"]);
        assert_eq!(kept("to be or not to be", &both), ["to", "be", "or", "not"]);
    }

    #[test]
    fn quotation_marks_make_phrases_and_never_errors() {
        let phrases = |text| Question::parse(text, vec![]).phrases;
        assert_eq!(phrases(r#"what does "Net 30" mean"#), [["net", "30"]]);
        assert_eq!(phrases("„höhere Gewalt“"), [["hoehere", "gewalt"]]);
        assert!(phrases(r#"5" pipe"#).is_empty());
        assert!(phrases(r#"" " "" AND OR NOT ( [ { ^ ~ \ : "#).is_empty());
    }
}
