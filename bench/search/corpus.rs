//! A deterministic corpus: words with the frequencies of a natural language, topics that share
//! words and lie near each other as vectors.

use pgvector::Vector;
use sqlx::PgPool;
use tale_core::ids::{DocumentId, FileId, OrgId};
use uuid::Uuid;

/// Width of the vectors.
pub(crate) const DIMENSIONS: usize = 384;
/// Stamp of the vectors.
pub(crate) const MODEL: &str = "bench/synthetic/384";
/// Passages of one file.
const PASSAGES_PER_FILE: usize = 20;
/// Words of one passage, about 2,000 characters.
const WORDS: usize = 300;
/// Dimensions in which texts really differ; models spread them over all of theirs.
const LATENT: usize = 32;
const TOPICS: usize = 1_000;
const VOCABULARY: usize = 40_000;

const COMMON: [&str; 40] = [
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not", "he",
    "this", "are", "or", "his", "from", "at", "which", "but", "have", "an", "had", "they", "you", "were", "their",
    "one", "all", "we", "can", "her", "has", "there",
];

/// xorshift64*, seeded through splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((state ^ (state >> 27)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normally distributed: the sum of twelve uniform numbers less six.
    pub(crate) fn normal(&mut self) -> f32 {
        ((0..12).map(|_| self.unit()).sum::<f64>() - 6.0) as f32
    }
}

/// Words and topics, the same in every run.
pub(crate) struct Language {
    words: Vec<String>,
    /// Cumulative frequencies after Zipf.
    cumulative: Vec<f64>,
    /// Of the topics, in the latent space.
    centres: Vec<[f32; LATENT]>,
    /// From the latent space to the vectors, row by row.
    projection: Vec<[f32; LATENT]>,
}

impl Language {
    pub(crate) fn new() -> Self {
        const ONSETS: [&str; 20] =
            ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "st", "tr", "pl", "ch"];
        const RHYMES: [&str; 18] = [
            "a", "e", "i", "o", "u", "an", "er", "in", "on", "al", "ent", "ist", "or", "ure", "ate", "ick", "oom",
            "ain",
        ];
        let mut random = Random::new(1);
        let mut words: Vec<String> = COMMON.iter().map(|word| (*word).to_owned()).collect();
        let mut known: std::collections::HashSet<String> = words.iter().cloned().collect();
        while words.len() < VOCABULARY {
            let syllables = 2 + random.below(3);
            let word: String =
                (0..syllables).map(|_| format!("{}{}", ONSETS[random.below(20)], RHYMES[random.below(18)])).collect();
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut sum = 0.0;
        let cumulative = (0..VOCABULARY)
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7).powf(1.05);
                sum
            })
            .collect();
        let centres = (0..TOPICS).map(|_| std::array::from_fn(|_| random.normal())).collect();
        let projection = (0..DIMENSIONS).map(|_| std::array::from_fn(|_| random.normal())).collect();
        Self { words, cumulative, centres, projection }
    }

    fn word(&self, random: &mut Random) -> &str {
        let at = random.unit() * self.cumulative[VOCABULARY - 1];
        &self.words[self.cumulative.partition_point(|sum| *sum < at).min(VOCABULARY - 1)]
    }

    /// One of the 200 words that a topic prefers.
    fn topic_word(&self, topic: usize, random: &mut Random) -> &str {
        let mut of_topic = Random::new((topic * 200 + random.below(200)) as u64);
        &self.words[COMMON.len() + of_topic.below(VOCABULARY - COMMON.len())]
    }

    pub(crate) fn passage(&self, topic: usize, random: &mut Random) -> String {
        let mut text = String::with_capacity(WORDS * 7);
        for place in 0..WORDS {
            let word = if random.below(10) < 3 { self.topic_word(topic, random) } else { self.word(random) };
            match place % 14 {
                0 if place > 0 => text.push_str(". "),
                0 => {}
                _ => text.push(' '),
            }
            text.push_str(word);
        }
        text.push('.');
        text
    }

    /// A question of one to eight words about a topic, with the small words people write.
    pub(crate) fn question(&self, random: &mut Random) -> (usize, String) {
        let topic = random.below(TOPICS);
        let length = 1 + random.below(8);
        let words: Vec<&str> = (0..length)
            .map(
                |place| {
                    if place > 0 && random.below(10) < 4 { self.word(random) } else { self.topic_word(topic, random) }
                },
            )
            .collect();
        (topic, words.join(" "))
    }

    /// A unit vector near the centre of a topic; neighbouring topics overlap.
    pub(crate) fn vector(&self, topic: usize, random: &mut Random) -> Vec<f32> {
        let latent: [f32; LATENT] = std::array::from_fn(|at| self.centres[topic][at] + 0.7 * random.normal());
        let mut vector: Vec<f32> = self
            .projection
            .iter()
            .map(|row| row.iter().zip(&latent).map(|(a, b)| a * b).sum::<f32>() + 0.3 * random.normal())
            .collect();
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }

    pub(crate) fn topic(&self, random: &mut Random) -> usize {
        random.below(TOPICS)
    }
}

/// Makes an organization with `files` documents of 20 passages each.
pub(crate) async fn organization(app: &PgPool, corpus: &PgPool, language: &Language, files: usize, seed: u64) -> OrgId {
    let org = OrgId::new();
    sqlx::query("INSERT INTO app.organizations (id, slug, name, created_at) VALUES ($1, $2, 'Bench', now())")
        .bind(org)
        .bind(format!("bench-{}", org.0.simple()))
        .execute(app)
        .await
        .expect("insert an organization");
    for file in 0..files {
        let mut random = Random::new(seed * 1_000_003 + file as u64);
        let topic = language.topic(&mut random);
        let passages: Vec<String> = (0..PASSAGES_PER_FILE).map(|_| language.passage(topic, &mut random)).collect();
        let vectors: Vec<Vector> =
            (0..PASSAGES_PER_FILE).map(|_| Vector::from(language.vector(topic, &mut random))).collect();
        document(app, corpus, org, &format!("Document {file}"), &passages, Some(&vectors)).await;
    }
    org
}

/// Stores one searchable document, as indexing leaves it.
pub(crate) async fn document(
    app: &PgPool,
    corpus: &PgPool,
    org: OrgId,
    title: &str,
    passages: &[String],
    vectors: Option<&[Vector]>,
) -> FileId {
    let (file, ids) = (FileId::new(), (0..passages.len()).map(|_| Uuid::now_v7()).collect::<Vec<_>>());
    sqlx::query(
        "INSERT INTO app.files (id, org_id, storage_key, file_name, content_type, size, purpose, state, upload_deadline,
                                index_status, searchable, status_changed_at, created_at)
         VALUES ($1, $2, $3, $4, 'text/plain', 1, 'document', 'stored', now(), 'completed', true, now(), now())",
    )
    .bind(file)
    .bind(org)
    .bind(file.to_string())
    .bind(title)
    .execute(app)
    .await
    .expect("insert a file");
    sqlx::query(
        "INSERT INTO app.documents (id, org_id, title, file_id, mime_type, source_provider, created_at, updated_at)
         VALUES ($1, $2, $3, $4, 'text/plain', 'upload', now(), now())",
    )
    .bind(DocumentId::new())
    .bind(org)
    .bind(title)
    .bind(file)
    .execute(app)
    .await
    .expect("insert a document");
    let mut transaction = corpus.begin().await.expect("begin");
    sqlx::query(
        "INSERT INTO private_knowledge.documents (org_id, file_id, title, library, status, chunker_version)
         VALUES ($1, $2, $3, true, 'completed', 1)",
    )
    .bind(org)
    .bind(file)
    .bind(title)
    .execute(&mut *transaction)
    .await
    .expect("insert a corpus document");
    let empty: Vec<Option<Vector>> = vec![None; passages.len()];
    let vectors: Vec<Option<Vector>> = vectors.map_or(empty, |vectors| vectors.iter().cloned().map(Some).collect());
    sqlx::query(
        "INSERT INTO private_knowledge.chunks
                (id, org_id, file_id, ordinal, library, header, body, body_start, body_end, core_start, core_end, chunker_version,
                 embedding, embedding_model)
         SELECT part.id, $1, $2, part.place, true, $3, part.body, part.place, part.place + 1, part.place, part.place + 1, 1,
                part.embedding, CASE WHEN part.embedding IS NOT NULL THEN $7 END
           FROM unnest($4::uuid[], $5::text[], $6::vector[]) WITH ORDINALITY AS part (id, body, embedding, place)",
    )
    .bind(org)
    .bind(file)
    .bind(title)
    .bind(&ids)
    .bind(passages)
    .bind(&vectors)
    .bind(MODEL)
    .execute(&mut *transaction)
    .await
    .expect("insert passages");
    tale_knowledge::keyword::log_changes(&mut transaction, org, &[tale_knowledge::keyword::Change::File(file)])
        .await
        .expect("log");
    transaction.commit().await.expect("commit");
    file
}
