//! The Tale binary.
fn main() {}
