//! Measures extraction and chunking of one file in this process.
//!
//! `bench_extract time FILE [RUNS]` prints one line of figures, `bench_extract text FILE` the extracted text.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use tale_extract::{ExtractError, Piece, classify, extract, extract_to_chunks};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(mode), Some(file)) = (arguments.first(), arguments.get(1)) else {
        return Err("usage: bench_extract time|text FILE [RUNS]".into());
    };
    let path = Path::new(file);
    let kind = classify(file).into_kind(file)?;
    if mode == "text" {
        let mut stdout = std::io::stdout().lock();
        extract(path, kind, &|| true, &mut |piece| match piece {
            Piece::Text(text) if stdout.write_all(text.as_bytes()).is_err() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })?;
        return Ok(());
    }
    let runs = arguments.get(2).and_then(|runs| runs.parse::<u32>().ok()).unwrap_or(1).max(1);
    let mut best = f64::MAX;
    let cpu_before = cpu_seconds();
    let (mut chunks, mut pages, mut chars) = (0_u64, 0, 0);
    for _ in 0..runs {
        (chunks, pages) = (0, 0);
        let begun = Instant::now();
        chars = extract_to_chunks(path, kind, "Title", &|| true, &mut |chunk| {
            chunks += 1;
            pages = chunk.page.unwrap_or(0);
            ControlFlow::Continue(())
        })
        .map_err(|error: ExtractError| format!("{}: {}", error.code, error.message))?;
        best = best.min(begun.elapsed().as_secs_f64());
    }
    let cpu = (cpu_seconds() - cpu_before) / f64::from(runs);
    println!(
        "seconds={best:.4} cpu_seconds={cpu:.4} chars={chars} chunks={chunks} last_page={pages} peak_rss_mib={:.1}",
        peak_rss_mib()
    );
    Ok(())
}

/// The highest resident memory of this process so far.
fn peak_rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).map_or(0.0, |kib| kib / 1024.0)
}

/// Processor time of this process so far, in hundredths as the kernel counts it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
