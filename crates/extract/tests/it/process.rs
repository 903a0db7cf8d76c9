use tale_extract::{Chunk, ChunkStream, ExtractError, ExtractProcess, ExtractProgram, Kind, OutcomeCode};

use crate::Fixture;
use crate::pdf::{pages, pdf};

fn program() -> ExtractProgram {
    ExtractProgram::dedicated(env!("CARGO_BIN_EXE_tale-extract-file"))
}

async fn all(mut stream: ChunkStream) -> Result<Vec<Chunk>, ExtractError> {
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await? {
        chunks.push(chunk);
    }
    Ok(chunks)
}

fn long_pdf() -> Vec<u8> {
    let programs: Vec<String> = (0..300)
        .map(|page| {
            let lines: String = (0..40).map(|line| format!("(Page {page} line {line} of the document) '\n")).collect();
            format!("BT /F1 12 Tf 14 TL 72 750 Td\n{lines}ET")
        })
        .collect();
    pdf(&pages(&programs.iter().map(String::as_str).collect::<Vec<_>>()))
}

#[tokio::test]
async fn the_child_gives_the_same_chunks() {
    let fixture = Fixture::new("a.pdf", &long_pdf());
    let here = fixture.chunks("Titel").unwrap();
    let there = all(ChunkStream::open(&program(), &fixture.path(), Kind::Pdf, "Titel").unwrap()).await.unwrap();
    assert!(here.len() > 100);
    assert_eq!(here, there);
    assert_eq!(there.last().unwrap().page, Some(300));
}

#[tokio::test]
async fn plain_text_stays_in_this_process() {
    let fixture = Fixture::new("a.md", "# Titel\n\nwords and words. ".repeat(2_000).as_bytes());
    let stream =
        ChunkStream::open(&ExtractProgram::dedicated("/nowhere"), &fixture.path(), Kind::Markdown, "T").unwrap();
    assert_eq!(all(stream).await.unwrap(), fixture.chunks("T").unwrap());
}

#[tokio::test]
async fn refusals_travel() {
    let fixture = Fixture::new("a.pdf", b"%PDF-1.7 nothing");
    let error = all(ChunkStream::open(&program(), &fixture.path(), Kind::Pdf, "T").unwrap()).await.unwrap_err();
    assert_eq!(error, fixture.text().unwrap_err());
    let fixture = Fixture::new("a.txt", b"x\0y");
    let error = all(ChunkStream::open(&program(), &fixture.path(), Kind::Plain, "T").unwrap()).await.unwrap_err();
    assert_eq!(error.code, OutcomeCode::NotText);
}

#[tokio::test]
async fn a_program_that_is_no_reader_is_an_indexer_error() {
    let fixture = Fixture::new("a.pdf", &long_pdf());
    for program in ["/nowhere", "/bin/true", "/bin/echo"] {
        let outcome = match ChunkStream::open(&ExtractProgram::dedicated(program), &fixture.path(), Kind::Pdf, "T") {
            Ok(stream) => all(stream).await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert_eq!(outcome.unwrap_err().code, OutcomeCode::IndexerError, "{program}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_kills_the_child() {
    let fixture = Fixture::new("a.pdf", &long_pdf());
    let mut process = ExtractProcess::start(&program(), &fixture.path(), Kind::Pdf).unwrap();
    assert!(process.next().await.unwrap().is_some());
    let id = process.id().unwrap();
    drop(process);
    // The child is gone, or dead and waiting to be collected.
    let status = format!("/proc/{id}/stat");
    for _ in 0..10_000 {
        match std::fs::read_to_string(&status) {
            Ok(stat) if !stat.contains(") Z ") => tokio::task::yield_now().await,
            _ => return,
        }
    }
    panic!("the child still runs");
}

#[tokio::test]
async fn next_loses_nothing_when_it_is_cancelled() {
    let fixture = Fixture::new("a.pdf", &long_pdf());
    let expected = fixture.chunks("T").unwrap();
    let mut stream = ChunkStream::open(&program(), &fixture.path(), Kind::Pdf, "T").unwrap();
    let mut chunks = Vec::new();
    loop {
        tokio::select! {
            biased;
            chunk = stream.next() => match chunk.unwrap() {
                Some(chunk) => chunks.push(chunk),
                None => break,
            },
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(chunks, expected);
}
