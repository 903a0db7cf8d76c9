//! Rebuilds this crate when the web app was built: the macro that embeds its files sees only
//! changes of files it has seen before.

fn main() {
    println!("cargo:rerun-if-changed=../../web/build");
}
