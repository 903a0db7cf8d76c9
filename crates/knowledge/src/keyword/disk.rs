//! One organization's index on disk.
//!
//! ```text
//! <folder>/CURRENT          name of the generation that serves, replaced atomically
//! <folder>/lock             held by the process that builds a generation
//! <folder>/<generation>/    a tantivy index; its commit payload is the checkpoint
//! ```
//!
//! Entries and checkpoint are one commit, so a crash between the two cannot happen; what a crash
//! loses is applied again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::store::Compressor;
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Term};
use uuid::Uuid;

use super::KeywordError;
use super::entry::Analyst;
use super::files::{Files, State};
use super::schema::{self, Fields, Passage};
use super::view::View;

/// Memory of a writer before it flushes a segment, in bytes: a second's worth of changes.
const WRITER_BYTES: usize = 30_000_000;
/// The same while a whole index is built: fewer, larger segments to merge in the end.
const BUILDER_BYTES: usize = 48_000_000;
/// Segments of this many passages are left alone by merging while following.
const LARGEST_MERGE: usize = 500_000;

/// Where following resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Checkpoint {
    schema: u32,
    /// The database that the entries were read from.
    database: String,
    snapshot: String,
}

/// An open generation.
pub(crate) struct Generation {
    name: String,
    database: String,
    files: Files,
    index: Index,
    reader: IndexReader,
    fields: Fields,
}

impl Generation {
    /// Opens the generation `name`, with its checkpoint, after comparing all checksums if `verify`.
    /// `None` when it is one of another schema version or of another `database`.
    pub(crate) fn open(
        folder: &Path,
        name: String,
        database: &str,
        verify: bool,
    ) -> Result<Option<(Self, String)>, KeywordError> {
        let files = Files::open(&folder.join(&name))?;
        let mut index = Index::open(files.clone())?;
        let (expected, fields) = schema::schema();
        let checkpoint = checkpoint(&index)?;
        let ours = |found: &Checkpoint| {
            found.schema == schema::VERSION && found.database == database && index.schema() == expected
        };
        let Some(checkpoint) = checkpoint.filter(ours) else {
            return Ok(None);
        };
        if verify {
            files.verify(&index)?;
        }
        index.set_tokenizers(schema::tokenizers());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Some((Self { name, database: checkpoint.database, files, index, reader, fields }, checkpoint.snapshot)))
    }

    /// The name of its folder, unique.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the files are gone from the folder, which somebody emptied. What is mapped still serves.
    pub(crate) fn is_gone(&self, folder: &Path) -> bool {
        serving(folder).is_none() || !folder.join(&self.name).join("meta.json").exists()
    }

    /// Whether the files that are open are as they were opened.
    pub(crate) fn check(&self) -> State {
        self.files.check()
    }

    /// The last committed state. Fails when a file of it is missing.
    pub(crate) fn view(&self) -> Result<Arc<View>, KeywordError> {
        // what the last commit needs is opened again: of the rest, merges have removed the names
        let missing = self.files.missing();
        self.reader.reload()?;
        self.files.forget(&missing);
        Ok(Arc::new(View::new(self.name.clone(), self.reader.searcher(), self.fields, self.files.clone())?))
    }

    /// The checkpoint of the last commit.
    pub(crate) fn checkpoint(&self) -> Result<Option<String>, KeywordError> {
        Ok(checkpoint(&self.index)?.map(|found| found.snapshot))
    }

    /// Starts a round of changes. `None` when another process is writing.
    pub(crate) fn writer(&self) -> Result<Option<Writer>, KeywordError> {
        match Writer::new(&self.index, &self.database, self.fields, WRITER_BYTES) {
            Err(KeywordError::Index(tantivy::TantivyError::LockFailure(..))) => Ok(None),
            other => other.map(Some),
        }
    }
}

/// The name in `CURRENT`, if there is one.
pub(crate) fn current(folder: &Path) -> Result<Option<String>, KeywordError> {
    let name = match fs::read(folder.join("CURRENT")) {
        Ok(name) => name,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // a name we made, never a path
    match std::str::from_utf8(&name).ok().and_then(|name| Uuid::parse_str(name.trim()).ok()) {
        Some(name) => Ok(Some(name.to_string())),
        None => Err(KeywordError::Damaged),
    }
}

/// The name in `CURRENT`, if it can be read.
fn serving(folder: &Path) -> Option<String> {
    current(folder).ok().flatten()
}

/// The lock of whoever replaces the serving generation. `None` while another process holds it.
fn lock(folder: &Path) -> Result<Option<File>, KeywordError> {
    let lock = File::create(folder.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Makes the damaged generation `name` nobody's, or what stands in `CURRENT` and is no name: the next
/// to open the folder builds anew. A newer generation stays, and while somebody builds one it is
/// theirs to put in place.
pub(crate) fn disown(folder: &Path, name: Option<&str>) {
    let removed = lock(folder).and_then(|lock| {
        if lock.is_some() && serving(folder).as_deref() == name {
            fs::remove_file(folder.join("CURRENT"))?;
        }
        Ok(())
    });
    match removed {
        Err(KeywordError::Folder(error)) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, "a damaged keyword index could not be put aside"),
        Ok(()) => {}
    }
}

fn checkpoint(index: &Index) -> Result<Option<Checkpoint>, KeywordError> {
    let payload = index.load_metas()?.payload;
    Ok(payload.and_then(|payload| serde_json::from_str(&payload).ok()))
}

/// Changes on their way into an index. Dropping it discards what was not committed.
pub(crate) struct Writer {
    writer: IndexWriter,
    database: String,
    fields: Fields,
    analyst: Analyst,
}

impl Writer {
    fn new(index: &Index, database: &str, fields: Fields, bytes: usize) -> Result<Self, KeywordError> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(bytes)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter = index.writer_with_options(options)?;
        let mut policy = LogMergePolicy::default();
        policy.set_max_docs_before_merge(LARGEST_MERGE);
        policy.set_del_docs_ratio_before_merge(0.3);
        writer.set_merge_policy(Box::new(policy));
        Ok(Self { writer, database: database.to_owned(), fields, analyst: Analyst::default() })
    }

    /// Removes every passage of `file`.
    pub(crate) fn remove_file(&self, file: Uuid) {
        self.writer.delete_term(Term::from_field_bytes(self.fields.file, file.as_bytes()));
    }

    /// Adds a passage in the place of the one that stands there, if there is one.
    pub(crate) fn put(&mut self, passage: &Passage) -> Result<(), KeywordError> {
        self.writer.delete_term(Term::from_field_bytes(self.fields.place, &passage.place()));
        self.add(passage)
    }

    /// Adds a passage that is not there yet.
    pub(crate) fn add(&mut self, passage: &Passage) -> Result<(), KeywordError> {
        self.writer.add_document(self.analyst.entry(&self.fields, passage))?;
        Ok(())
    }

    /// Makes the changes and the checkpoint durable, in one step.
    pub(crate) fn commit(&mut self, snapshot: &str) -> Result<(), KeywordError> {
        let (database, snapshot) = (self.database.clone(), snapshot.to_owned());
        let checkpoint = Checkpoint { schema: schema::VERSION, database, snapshot };
        let payload = serde_json::to_string(&checkpoint).map_err(io::Error::from)?;
        let mut prepared = self.writer.prepare_commit()?;
        prepared.set_payload(&payload);
        prepared.commit()?;
        Ok(())
    }

    /// Waits for merges that the commits began, then gives the writer's memory back.
    pub(crate) fn finish(self) -> Result<(), KeywordError> {
        self.writer.wait_merging_threads()?;
        Ok(())
    }
}

/// A generation under construction. Dropping it before [`Build::publish`] removes it.
pub(crate) struct Build {
    folder: PathBuf,
    name: String,
    published: bool,
    index: Index,
    writer: Option<Writer>,
    _lock: File,
}

impl Build {
    /// Starts a generation of the passages in `database`. `None` when another process is building one.
    pub(crate) fn start(folder: &Path, database: &str) -> Result<Option<Self>, KeywordError> {
        fs::create_dir_all(folder)?;
        let Some(lock) = lock(folder)? else { return Ok(None) };
        sweep(folder, serving(folder).as_deref());
        let name = Uuid::now_v7().to_string();
        let path = folder.join(&name);
        fs::create_dir(&path)?;
        let (schema, fields) = schema::schema();
        let settings = IndexSettings {
            docstore_compression: Compressor::None,
            docstore_compress_dedicated_thread: false,
            ..IndexSettings::default()
        };
        let mut index = Index::create(Files::open(&path)?, schema, settings)?;
        index.set_tokenizers(schema::tokenizers());
        let writer = Some(Writer::new(&index, database, fields, BUILDER_BYTES)?);
        Ok(Some(Self { folder: folder.to_owned(), name, published: false, index, writer, _lock: lock }))
    }

    /// Adds passages.
    pub(crate) fn add(&mut self, passages: &[Passage]) -> Result<(), KeywordError> {
        let Some(writer) = &mut self.writer else { return Err(KeywordError::Stopped) };
        passages.iter().try_for_each(|passage| writer.add(passage))
    }

    /// Commits with the checkpoint, packs the segments and puts the generation in place of the
    /// serving one. Its name.
    pub(crate) fn publish(mut self, snapshot: &str) -> Result<String, KeywordError> {
        let Some(mut writer) = self.writer.take() else { return Err(KeywordError::Stopped) };
        writer.commit(snapshot)?;
        let database = writer.database.clone();
        writer.finish()?;
        self.pack(&database)?;
        let next = self.folder.join("CURRENT.next");
        let mut file = File::create(&next)?;
        file.write_all(self.name.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, self.folder.join("CURRENT"))?;
        if let Ok(folder) = File::open(&self.folder) {
            // the rename itself; where a folder cannot be synced, a crash costs one rebuild
            let _ = folder.sync_all();
        }
        self.published = true;
        sweep(&self.folder, Some(&self.name));
        Ok(self.name.clone())
    }

    /// Merges what is left in several segments: every word of a query is looked up in each.
    fn pack(&self, database: &str) -> Result<(), KeywordError> {
        let segments = self.index.searchable_segment_metas()?;
        let small: Vec<_> = segments
            .iter()
            .filter(|segment| (segment.max_doc() as usize) < LARGEST_MERGE)
            .map(tantivy::SegmentMeta::id)
            .collect();
        if small.len() > 1 {
            let (_, fields) = schema::schema();
            let mut writer = Writer::new(&self.index, database, fields, WRITER_BYTES)?;
            writer.writer.set_merge_policy(Box::new(NoMergePolicy));
            writer.writer.merge(&small).wait()?;
            writer.finish()?;
        }
        Ok(())
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        if !self.published {
            self.writer = None;
            let _ = fs::remove_dir_all(self.folder.join(&self.name));
        }
    }
}

/// Removes generations other than `keep`. Open readers of them go on: their files are mapped.
fn sweep(folder: &Path, keep: Option<&str>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if Uuid::parse_str(name).is_ok() && Some(name) != keep {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
