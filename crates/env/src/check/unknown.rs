//! Names that look like ours and are not.

use crate::environment::Environment;
use crate::reader::{EnvProblem, Severity};
use crate::registry;

/// What names of ours begin with. Prefixes that other programs own as well (`MINIO_`, `SENTRY_`,
/// `POSTGRES_`) are left out.
const PREFIXES: &[&str] = &[
    "TALE_",
    "OBJECT_STORE_",
    "SANDBOX_",
    "KNOWLEDGE_",
    "DATABASE_",
    "ENCRYPTION_",
    "SESSION_",
    "TRUSTED_",
    "TLS_",
    "TOTP_",
    "UMAMI_",
    "SOPS_",
    "RAG_",
    "VIDEO_INGEST_",
    "CONNECTOR_",
    "CLOUD_IMPORT_",
    "LLM_GATEWAY_",
    "AUTOMATION_",
    "AGENT_",
    "WEBDAV_",
];

/// Longest name that is compared.
const LONGEST: usize = 64;

/// Shortest name that a slip of one letter is looked for in.
const SHORTEST: usize = 8;

/// Adds a warning per unknown name that begins like ours or is nearly one of ours.
pub(super) fn add(env: &Environment, found: &mut Vec<EnvProblem>) {
    for name in env.names() {
        if registry::find(name).is_some() || registry::secret_of_file(name).is_some() || is_service_link(env, name) {
            continue;
        }
        let prefixed = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !prefixed && name.len() < SHORTEST {
            continue;
        }
        let most = if prefixed { 3.min(name.len() / 4) } else { 1 };
        let nearest = nearest(name, most);
        if !prefixed && nearest.is_none() {
            continue;
        }
        let fix = match nearest {
            Some(near) => format!("Did you mean {near}?"),
            None => "See `tale env list` for the names there are".to_owned(),
        };
        found.push(EnvProblem::new(Severity::Warning, name, "is not a variable of Tale", fix));
    }
}

/// Variables that an orchestrator makes for every service it knows.
fn is_service_link(env: &Environment, name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.contains("_PORT_") && (name.contains("_TCP") || name.contains("_UDP")))
        || env.raw(name).is_some_and(|value| value.starts_with("tcp://") || value.starts_with("udp://"))
}

/// The known name that somebody who wrote `name` may have meant.
#[must_use]
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(&name.to_ascii_uppercase(), 3.min(name.len() / 3))
}

/// The known name that is at most `most` edits away and nearest.
fn nearest(name: &str, most: usize) -> Option<&'static str> {
    registry::vars()
        .filter(|var| var.family().is_none() && var.name.len().abs_diff(name.len()) <= most)
        .filter_map(|var| distance(name.as_bytes(), var.name.as_bytes(), most).map(|edits| (edits, var.name)))
        .min()
        .map(|(_, name)| name)
}

/// Fewest insertions, deletions, replacements and swaps of neighbours that make `a` into `b`, when
/// they are at most `most`. Pairs that cannot get there are given up after a few rows.
fn distance(a: &[u8], b: &[u8], most: usize) -> Option<usize> {
    if b.len() > LONGEST {
        return None;
    }
    let width = b.len() + 1;
    let mut before = [0; LONGEST + 1];
    let mut last = [0; LONGEST + 1];
    let mut row = [0; LONGEST + 1];
    for (j, cell) in last[..width].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..width {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        let least = |cells: &[usize; LONGEST + 1]| cells[..width].iter().copied().min().unwrap_or(0);
        // A swap reaches back two rows, so both have to be out of reach.
        if least(&row) > most && least(&last) > most {
            return None;
        }
        (before, last) = (last, row);
    }
    Some(last[b.len()]).filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::MapEnv;

    fn unknown(pairs: &[(&str, &str)]) -> Vec<String> {
        let map = MapEnv(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        let mut found = Vec::new();
        add(&Environment::of_map(&map), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn slips_are_named_with_what_was_meant() {
        let found = unknown(&[("OBJECT_STORE_BUKCET", "x"), ("WORKER_CONCURENCY", "5"), ("TALE_FROBNICATE", "1")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("Did you mean OBJECT_STORE_BUCKET?"), "{found:?}");
        assert!(found[1].contains("tale env list"), "{found:?}");
        assert!(found[2].contains("Did you mean WORKER_CONCURRENCY?"), "{found:?}");
    }

    #[test]
    fn foreign_names_and_service_links_are_left_alone() {
        let found = unknown(&[
            ("EDITOR", "vi"),
            ("LC_ALL", "C"),
            ("TALE_SERVICE_HOST", "10.0.0.1"),
            ("SANDBOX_PORT_8003_TCP_ADDR", "10.0.0.1"),
            ("TALE_PORT", "tcp://10.0.0.1:80"),
            ("INSTANCE_SECRET_FILE", ""),
            ("TALE_RETENTION_CHATS_MIN", "3"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
