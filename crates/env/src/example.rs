//! `.env.example`, made from the registry.

use std::fmt::Write;

use crate::file::quoted;
use crate::registry::{self, Default, Role, Section};
use crate::words::Lang;

/// Widest comment line.
const WIDTH: usize = 96;

const HEAD: &str = "\
# Settings of a deployment. Copy this file to .env and replace every value that says so. For
# deploy/compose.yml put it beside that file; otherwise hand it to the processes: `docker run
# --env-file`, `EnvironmentFile=` in systemd. The program itself reads no file. Lines that begin
# with # show the default.
#
#   tale env check --env-file .env    names everything that is wrong, without starting anything
#   tale env show SITE_URL            explains one variable
#
# Every secret X can come from a file instead: X_FILE=/run/secrets/x.
";

/// Whose settings stand in the file.
const SHIPPED: [Role; 6] = [Role::All, Role::Proxy, Role::Db, Role::ObjectStore, Role::Sandbox, Role::SandboxEgress];

/// The text of the file: every variable that this release reads.
#[must_use]
pub fn example() -> String {
    let mut out = String::from(HEAD);
    for &section in Section::ALL {
        // What only the command line of one person reads is not part of a deployment.
        let shown = |var: &&registry::Var| {
            var.section == section
                && var.is_read()
                && SHIPPED.iter().any(|role| role.reads(var))
                && !var.name.starts_with('<')
        };
        if !registry::vars().any(|var| shown(&var)) {
            continue;
        }
        let _ = write!(out, "\n# --- {} {}\n", section.title().en, "-".repeat(WIDTH - 8 - section.title().en.len()));
        for var in registry::vars().filter(shown) {
            out.push('\n');
            comment(&mut out, var.help.get(Lang::En));
            let replace =
                if var.placeholders.is_empty() { "" } else { " Replace the value below: everybody knows it." };
            comment(&mut out, &format!("Form: {}.{replace}", var.kind.describe(Lang::En)));
            let name = var.name.replace("<NAME>", "OPENAI");
            let _ = match (var.example, var.default) {
                (Some(value), _) => writeln!(out, "{name}={}", quoted(value)),
                (None, Default::Value(value)) => writeln!(out, "#{name}={}", quoted(value)),
                (None, Default::Derived(words)) => writeln!(out, "# Default: {}.\n#{name}=", words.en),
                (None, Default::Unset) => writeln!(out, "#{name}="),
            };
        }
    }
    out
}

fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.len() > 1 {
            out.push_str(&line);
            out.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}
