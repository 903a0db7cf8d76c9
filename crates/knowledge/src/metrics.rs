//! What the library counts.

use tale_core::metrics::Histogram;

/// Time that reading a file to its last passage took, of runs that came to an end.
pub static INGESTION: Histogram<10> = Histogram::new(&[1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1800.0]);
