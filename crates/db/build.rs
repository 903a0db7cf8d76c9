//! Rebuilds this crate when a migration file appears: the macro that embeds them sees only edits.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
