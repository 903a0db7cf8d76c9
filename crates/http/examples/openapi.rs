//! Prints the API contract: `cargo run -p tale-http --example openapi > crates/http/openapi.json`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(&tale_http::contract::document())?;
    text.push('\n');
    std::io::stdout().write_all(text.as_bytes())
}
