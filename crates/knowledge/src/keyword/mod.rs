//! The keyword leg: a BM25 index of our own, derived from the corpus (SRCH-5).

mod log;

pub use log::{Change, log_changes};
