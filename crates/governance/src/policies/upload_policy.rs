//! What may be uploaded (spec 95, section 4).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use tale_core::problem::Issue;
use tale_core::{Code, Problem};

use super::{Policy, too_long};

/// Most entries of a list.
const MAX_ENTRIES: usize = 200;
/// Longest entry, in bytes.
const MAX_ENTRY: usize = 127;

/// The policy `upload_policy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UploadPolicy {
    /// Whether anything of it counts.
    pub enabled: bool,
    /// The only endings of names that are accepted; none = all. Lower-case, without a dot.
    #[serde(deserialize_with = "endings")]
    pub allowed_extensions: Vec<String>,
    /// Endings that are refused even where they are allowed.
    #[serde(deserialize_with = "endings")]
    pub blocked_extensions: Vec<String>,
    /// The only media types that are accepted, `type/subtype` or `type/*`; none = all.
    #[serde(deserialize_with = "lower_case")]
    pub allowed_mime_types: Vec<String>,
    /// Largest file in bytes; 0 = what the platform allows.
    pub max_file_size_bytes: u64,
    /// Other sizes for some types. The longest prefix that fits decides, in place of `max_file_size_bytes`.
    pub max_file_size_limits: Vec<SizeLimit>,
    /// Most bytes of one person's stored files together, those in the trash included; 0 = no limit.
    pub max_total_volume_bytes_per_user: u64,
}

/// The largest file of some types.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SizeLimit {
    /// How the media types begin, such as `image/`.
    pub mime_type_prefix: String,
    /// Largest file in bytes.
    pub max_bytes: u64,
}

fn lower_case<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(|entry| entry.trim().to_ascii_lowercase()).collect())
}

fn endings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(lower_case(deserializer)?.into_iter().map(|entry| entry.trim_start_matches('.').to_owned()).collect())
}

fn is_ending(text: &str) -> bool {
    (1..=20).contains(&text.chars().count())
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '+'))
}

fn is_type_text(text: &str) -> bool {
    text.len() <= MAX_ENTRY && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-*/".contains(&byte))
}

fn is_type(text: &str) -> bool {
    is_type_text(text)
        && text.split_once('/').is_some_and(|(kind, sub)| {
            !kind.is_empty()
                && !kind.contains('*')
                && !sub.contains('/')
                && (sub == "*" || (!sub.is_empty() && !sub.contains('*')))
        })
}

impl Policy for UploadPolicy {
    fn check(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut list = |name: &str, entries: &[String], fits: fn(&str) -> bool, words: &str| {
            issues.extend(too_long(name, entries.len(), MAX_ENTRIES));
            let wrong = entries.iter().position(|entry| !fits(entry));
            issues.extend(wrong.map(|at| Issue::new(format!("{name}.{at}"), words)));
        };
        let ending = "must be the ending of a file name, such as `pdf`";
        list("allowedExtensions", &self.allowed_extensions, is_ending, ending);
        list("blockedExtensions", &self.blocked_extensions, is_ending, ending);
        list(
            "allowedMimeTypes",
            &self.allowed_mime_types,
            is_type,
            "must be a media type, such as `text/plain` or `image/*`",
        );
        issues.extend(too_long("maxFileSizeLimits", self.max_file_size_limits.len(), MAX_ENTRIES));
        let wrong = |limit: &SizeLimit| limit.mime_type_prefix.is_empty() || !is_type_text(&limit.mime_type_prefix);
        issues.extend(self.max_file_size_limits.iter().position(wrong).map(|at| {
            Issue::new(
                format!("maxFileSizeLimits.{at}.mimeTypePrefix"),
                "must be the beginning of a media type, such as `image/`",
            )
        }));
        issues
    }
}

/// A file that somebody uploads.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    /// The ending of its name, without a dot; empty when it has none.
    pub extension: &'a str,
    /// Its media type.
    pub content_type: &'a str,
    /// Its size in bytes.
    pub size: u64,
}

fn rejected(check: &str, limit: Option<u64>, sentence: String) -> Problem {
    let mut data = json!({ "check": check });
    if let Some(limit) = limit {
        data["limitBytes"] = limit.into();
    }
    Problem::new(Code::UploadPolicyRejected, format!("The organization's upload policy refuses this file: {sentence}"))
        .with_data(data)
}

impl UploadPolicy {
    /// Judges a file by its ending, its type and its size, in this order (UPL-1).
    ///
    /// # Errors
    /// `UPLOAD_POLICY_REJECTED` naming the failed check.
    pub fn judge(&self, file: &Upload<'_>) -> Result<(), Problem> {
        if !self.enabled {
            return Ok(());
        }
        let ending = file.extension.to_ascii_lowercase();
        let has = |list: &[String]| list.contains(&ending);
        if has(&self.blocked_extensions) || !(self.allowed_extensions.is_empty() || has(&self.allowed_extensions)) {
            let what = if ending.is_empty() {
                "names without an ending".to_owned()
            } else {
                format!("files of type .{ending}")
            };
            return Err(rejected("extension", None, format!("{what} are not accepted.")));
        }
        let essence = file.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let fits = |entry: &String| match entry.strip_suffix('*') {
            Some(prefix) => essence.starts_with(prefix),
            None => *entry == essence,
        };
        if !(self.allowed_mime_types.is_empty() || self.allowed_mime_types.iter().any(fits)) {
            return Err(rejected("contentType", None, format!("content of type {essence} is not accepted.")));
        }
        if let Some(limit) = self.size_limit(&essence).filter(|limit| file.size > *limit) {
            return Err(rejected("size", Some(limit), format!("it is larger than {limit} bytes.")));
        }
        Ok(())
    }

    /// The largest file of a type, where the policy says one.
    fn size_limit(&self, essence: &str) -> Option<u64> {
        let fits = |limit: &&SizeLimit| essence.starts_with(&limit.mime_type_prefix.to_ascii_lowercase());
        let special = self.max_file_size_limits.iter().filter(fits).max_by_key(|limit| limit.mime_type_prefix.len());
        special.map(|limit| limit.max_bytes).or(Some(self.max_file_size_bytes).filter(|limit| *limit > 0))
    }

    /// The most bytes that one person may store, when there is a limit.
    #[must_use]
    pub fn volume(&self) -> Option<u64> {
        Some(self.max_total_volume_bytes_per_user).filter(|limit| self.enabled && *limit > 0)
    }

    /// Whether one person's files still fit, `stored` bytes with the new one (UPL-3).
    ///
    /// # Errors
    /// `UPLOAD_POLICY_REJECTED` for the check `quota`.
    pub fn judge_volume(&self, stored: u64) -> Result<(), Problem> {
        match self.volume().filter(|limit| stored > *limit) {
            None => Ok(()),
            Some(limit) => Err(rejected(
                "quota",
                Some(limit),
                format!(
                    "your files would be more than {limit} bytes together. Delete some for good, or ask an administrator."
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(value: serde_json::Value) -> UploadPolicy {
        let policy: UploadPolicy = serde_json::from_value(value).unwrap();
        assert_eq!(policy.check(), []);
        policy
    }

    fn verdict(policy: &UploadPolicy, extension: &str, content_type: &str, size: u64) -> serde_json::Value {
        match policy.judge(&Upload { extension, content_type, size }) {
            Ok(()) => json!("ok"),
            Err(problem) => problem.data.unwrap(),
        }
    }

    #[test]
    fn ending_type_and_size_are_three_checks() {
        let rules = policy(json!({
            "enabled": true, "allowedExtensions": [".PDF", "png", "exe"], "blockedExtensions": ["Exe"],
            "allowedMimeTypes": ["application/pdf", "Image/*"], "maxFileSizeBytes": 100,
            "maxFileSizeLimits": [{ "mimeTypePrefix": "image/", "maxBytes": 500 }, { "mimeTypePrefix": "image/png", "maxBytes": 50 }],
        }));
        assert_eq!(rules.allowed_extensions, ["pdf", "png", "exe"]);
        assert_eq!(verdict(&rules, "pdf", "application/pdf; x=y", 100), "ok");
        assert_eq!(verdict(&rules, "pdf", "application/pdf", 101), json!({ "check": "size", "limitBytes": 100 }));
        assert_eq!(verdict(&rules, "PNG", "image/jpeg", 500), "ok");
        assert_eq!(verdict(&rules, "png", "image/png", 51), json!({ "check": "size", "limitBytes": 50 }));
        assert_eq!(verdict(&rules, "exe", "application/pdf", 1), json!({ "check": "extension" }), "a block wins");
        assert_eq!(verdict(&rules, "", "application/pdf", 1), json!({ "check": "extension" }));
        assert_eq!(verdict(&rules, "png", "text/html", 1), json!({ "check": "contentType" }));
        assert_eq!(verdict(&UploadPolicy { enabled: false, ..rules }, "exe", "text/html", 1_000), "ok");
        assert_eq!(verdict(&UploadPolicy::default(), "exe", "text/html", u64::MAX), "ok");
    }

    #[test]
    fn what_could_never_match_is_refused_at_its_field() {
        let rules: UploadPolicy = serde_json::from_value(json!({
            "allowedExtensions": ["pdf", "a b"], "blockedExtensions": [""], "allowedMimeTypes": ["image/*", "pdf"],
            "maxFileSizeLimits": [{ "mimeTypePrefix": "", "maxBytes": 1 }],
        }))
        .unwrap();
        let paths: Vec<String> = rules.check().into_iter().map(|issue| issue.path).collect();
        assert_eq!(
            paths,
            ["allowedExtensions.1", "blockedExtensions.0", "allowedMimeTypes.1", "maxFileSizeLimits.0.mimeTypePrefix"]
        );
    }
}
