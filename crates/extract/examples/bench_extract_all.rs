//! Extraction alone of every file of a folder, as the indexer reads them, for comparison with indexing.
//!
//! `bench_extract_all FOLDER PARALLEL` reads that many files at once, drops their passages and prints one line.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tale_extract::process::{SUBCOMMAND, child_main};
use tale_extract::{ChunkStream, ExtractProgram, classify};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref().is_some_and(|word| word == SUBCOMMAND) {
        return child_main(arguments);
    }
    let parallel = arguments.next().and_then(|count| count.to_str()?.parse::<usize>().ok());
    let (Some(folder), Some(parallel)) = (first, parallel) else {
        println!("usage: bench_extract_all FOLDER PARALLEL");
        return ExitCode::FAILURE;
    };
    match run(&PathBuf::from(folder), parallel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(folder: &Path, parallel: usize) -> Result<(), Failure> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, Failure>>()?;
    files.sort();
    let (program, files, next) =
        (Arc::new(ExtractProgram::this_binary()?), Arc::new(files), Arc::new(AtomicUsize::new(0)));
    let begun = Instant::now();
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..parallel {
        let (program, files, next) = (Arc::clone(&program), Arc::clone(&files), Arc::clone(&next));
        readers.spawn(async move {
            let (mut passages, mut characters) = (0, 0);
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (more, length) = read(&program, file).await?;
                passages += more;
                characters += length;
            }
            Ok::<(u64, u64), Failure>((passages, characters))
        });
    }
    let (mut passages, mut characters) = (0, 0);
    while let Some(reader) = readers.join_next().await {
        let (more, length) = reader??;
        passages += more;
        characters += length;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("seconds={seconds:.4} files={} passages={passages} characters={characters}", files.len());
    Ok(())
}

async fn read(program: &ExtractProgram, file: &Path) -> Result<(u64, u64), Failure> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let kind = classify(name).into_kind(name)?;
    let mut stream = ChunkStream::open(program, &file.canonicalize()?, kind, name)?;
    let mut passages = 0;
    while stream.next().await.map_err(|error| format!("{name}: {error}"))?.is_some() {
        passages += 1;
    }
    Ok((passages, stream.chars()))
}
