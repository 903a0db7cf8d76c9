//! Writes everything that is made from the registry: `.env.example`, the reference pages and the
//! pinned reactions. `make env-reference` runs it at the root of the workspace.

use std::path::Path;

use tale_env::Lang;

#[path = "../tests/it/reactions.rs"]
mod reactions;

fn main() -> std::io::Result<()> {
    std::fs::write(".env.example", tale_env::example::example())?;
    for lang in Lang::ALL {
        let name = match lang {
            Lang::En => "environment-reference.md".to_owned(),
            other => format!("environment-reference.{}.md", other.code()),
        };
        std::fs::write(Path::new("docs").join(name), tale_env::reference::reference(lang))?;
    }
    std::fs::write("crates/env/tests/golden/reactions.tsv", reactions::table())
}
