//! Files that Tale keeps beside what its database holds, and that somebody may edit.
//!
//! Such a file begins with two lines that name its version and the digest of the rest. While the digest
//! holds, the file is a copy and says nothing that the database does not know. Any other file was
//! written by somebody and counts.

use sha2::{Digest, Sha256};

const HEAD: &str = "# Tale keeps this copy of ";
const FACTS: &str = "# version ";

/// A copy of `version` of `what`, such as `the policy budgets`; `hint` tells whoever opens it what an edit does.
#[must_use]
pub fn write(what: &str, hint: &str, version: i64, body: &str) -> String {
    format!("{HEAD}{what}. {hint}\n{FACTS}{version} sha256 {}\n{body}", digest(body))
}

/// Version and body of a copy that nobody has touched; `None` for everything else.
#[must_use]
pub fn read(text: &str) -> Option<(i64, &str)> {
    let (head, rest) = text.split_once('\n')?;
    let (facts, body) = rest.split_once('\n')?;
    let (version, written) = facts.strip_prefix(FACTS)?.split_once(" sha256 ")?;
    (head.starts_with(HEAD) && digest(body) == written).then_some((version.parse().ok()?, body))
}

fn digest(body: &str) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}
