//! Files of a session: staged, listed, read, deleted. Paths are relative to the workspace root (`/agent`
//! in a session); an absolute path below that root means the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::exec::BadRequest;
use crate::limits::{MAX_PATH_BYTES, MAX_STAGED_FILES, MAX_STAGED_INLINE_BYTES};

/// Where the workspace is mounted in every session.
pub const WORKSPACE_ROOT: &str = "/agent";

/// A path below the workspace root without `.`, `..`, empty parts or NUL. Empty = the root itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Checks `text`.
    ///
    /// # Errors
    /// A sentence when it is none.
    pub fn new(text: &str) -> Result<Self, BadRequest> {
        let bad = |why: &str| Err(BadRequest::new(format!("the path {why}")));
        if text.len() > MAX_PATH_BYTES || text.contains('\0') {
            return bad("is too long or has a NUL byte");
        }
        let relative = match text.strip_prefix(WORKSPACE_ROOT) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
            _ if text.starts_with('/') => return bad("leads outside the workspace"),
            _ => text,
        };
        let mut parts = Vec::new();
        for part in relative.split('/') {
            match part {
                "" | "." => {}
                ".." => return bad("leads outside the workspace"),
                part if part.len() > 255 => return bad("has a part that is too long"),
                part => parts.push(part),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// The path, relative to the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the root itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory and the name in it; `None` for the root.
    #[must_use]
    pub fn split(&self) -> Option<(&str, &str)> {
        if self.is_root() {
            return None;
        }
        Some(self.0.rsplit_once('/').unwrap_or(("", &self.0)))
    }
}

/// One file to put into the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StageFile {
    /// Where it goes.
    pub path: String,
    /// Where it is fetched from. At most one of this and `content_base64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    /// What its bytes must hash to, in lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// A name for this content, in the older spelling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
    /// A name for this content. With neither `url` nor `content_base64`, a file that was staged under it
    /// before and still is the same counts as staged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
}

impl StageFile {
    /// The file's own bytes, if it carries any.
    ///
    /// # Errors
    /// When they are not base64.
    pub fn content(&self) -> Result<Option<Vec<u8>>, BadRequest> {
        let Some(text) = &self.content_base64 else { return Ok(None) };
        let content = STANDARD.decode(text).map_err(|_| BadRequest::new("contentBase64 is not base64"))?;
        Ok(Some(content))
    }

    /// The name of its content, in either spelling.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source_id.as_deref().or(self.cache_key.as_deref())
    }

    fn check(&self) -> Result<(), BadRequest> {
        if WorkspacePath::new(&self.path)?.is_root() {
            return Err(BadRequest::new("the path is the workspace itself"));
        }
        if self.url.is_some() && self.content_base64.is_some() {
            return Err(BadRequest::new("give either url or contentBase64, not both"));
        }
        let hex = |text: &str| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if self.sha256.as_deref().is_some_and(|text| !hex(text)) {
            return Err(BadRequest::new("sha256 is not 64 lower-case hexadecimal digits"));
        }
        if self.source().is_some_and(|text| text.is_empty() || text.len() > 512) {
            return Err(BadRequest::new("sourceId is empty or too long"));
        }
        Ok(())
    }
}

/// Puts files into the workspace, and afterwards removes what should not be there any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StageRequest {
    /// The files.
    pub files: Vec<StageFile>,
    /// Directories that hold nothing but what `keep_paths` names, once this request is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace_roots: Vec<String>,
    /// What stays in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_paths: Vec<String>,
}

impl StageRequest {
    /// Checks everything that can be checked without the disk.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), BadRequest> {
        for list in [self.files.len(), self.replace_roots.len(), self.keep_paths.len()] {
            if list > MAX_STAGED_FILES {
                return Err(BadRequest::new(format!("more than {MAX_STAGED_FILES} entries")));
            }
        }
        self.files.iter().try_for_each(StageFile::check)?;
        if !self.files.is_empty() && !self.replace_roots.is_empty() {
            return Err(BadRequest::new(
                "replaceRoots comes in a request without files, after all of them were staged",
            ));
        }
        if self.replace_roots.is_empty() && !self.keep_paths.is_empty() {
            return Err(BadRequest::new("keepPaths needs replaceRoots"));
        }
        for root in &self.replace_roots {
            if WorkspacePath::new(root)?.is_root() {
                return Err(BadRequest::new("the workspace itself cannot be reconciled"));
            }
        }
        self.keep_paths.iter().try_for_each(|path| WorkspacePath::new(path).map(drop))
    }
}

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// It is there, whole.
    Staged,
    /// It names a content without bytes, and no verified copy of it is there.
    NoSource,
    /// More than the limit.
    TooLarge,
    /// It could not be fetched.
    FetchFailed,
    /// Its bytes are not those that were announced.
    HashMismatch,
    /// Its place is not inside the workspace, or is a directory.
    BadPath,
    /// The disk did not take it.
    WriteFailed,
    /// The request's time was up.
    TimedOut,
}

/// What became of one file, by its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageResult {
    /// As the request has it.
    pub path: String,
    /// What became of it.
    pub status: StageStatus,
    /// For people, when it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Answer to [`StageRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageAnswer {
    /// In the order of the request.
    pub files: Vec<StageResult>,
    /// Whether the roots hold nothing else now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconciled: bool,
}

/// Removes files and directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteRequest {
    /// Each with everything below it. What is not there is fine.
    pub paths: Vec<String>,
}

impl DeleteRequest {
    /// The paths, checked.
    ///
    /// # Errors
    /// The first that leads outside, or is the workspace itself.
    pub fn check(&self) -> Result<Vec<WorkspacePath>, BadRequest> {
        if self.paths.len() > MAX_STAGED_FILES {
            return Err(BadRequest::new(format!("more than {MAX_STAGED_FILES} paths")));
        }
        let check = |path: &String| {
            let path = WorkspacePath::new(path)?;
            if path.is_root() { Err(BadRequest::new("the path is the workspace itself")) } else { Ok(path) }
        };
        self.paths.iter().map(check).collect()
    }
}

/// Answer to [`DeleteRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteAnswer {
    /// How many of the paths were there and are gone.
    pub deleted: usize,
    /// Paths that are still there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which is never followed here.
    Symlink,
    /// A pipe, a socket or a device.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its name in the directory; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a regular file, else 0.
    pub size: u64,
    /// When it was last changed.
    pub modified_at_ms: u64,
}

/// Answer to a listing, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAnswer {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Whether there are more than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Most base64 a file may carry inside a request.
pub const MAX_INLINE_BASE64: usize = MAX_STAGED_INLINE_BYTES.div_ceil(3) * 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_root() {
        for (text, path) in [
            ("", ""),
            (".", ""),
            ("/agent", ""),
            ("/agent/", ""),
            ("a//b/./c/", "a/b/c"),
            ("/agent/workspace/x", "workspace/x"),
            ("agent/x", "agent/x"),
            ("...", "..."),
        ] {
            assert_eq!(WorkspacePath::new(text).unwrap().as_str(), path);
        }
        for bad in ["/", "/etc/passwd", "/agentx", "a/../../b", "..", "a/..", "/agent/..", "a\0b", &"x".repeat(256)] {
            assert!(WorkspacePath::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(WorkspacePath::new("a/b/c").unwrap().split(), Some(("a/b", "c")));
        assert_eq!(WorkspacePath::new("c").unwrap().split(), Some(("", "c")));
    }

    #[test]
    fn a_stage_request_is_checked_before_the_disk_is_touched() {
        let check = |body| {
            serde_json::from_value::<StageRequest>(body).map_err(|e| e.to_string())?.check().map_err(|bad| bad.0)
        };
        let ok = serde_json::json!({"files": [{"path": "a", "url": "http://x/"}, {"path": "b", "sourceId": "s"}]});
        assert_eq!(check(ok), Ok(()));
        let ok = serde_json::json!({"files": [], "replaceRoots": ["inputs/t"], "keepPaths": ["inputs/t/a"]});
        assert_eq!(check(ok), Ok(()));
        for bad in [
            serde_json::json!({"files": [{"path": "/etc/x", "url": "http://x/"}]}),
            serde_json::json!({"files": [{"path": ".", "url": "http://x/"}]}),
            serde_json::json!({"files": [{"path": "a", "url": "http://x/", "contentBase64": ""}]}),
            serde_json::json!({"files": [{"path": "a", "contentBase64": "", "sha256": "AB"}]}),
            serde_json::json!({"files": [{"path": "a", "mode": 511}]}),
            serde_json::json!({"files": [], "replaceRoots": ["."]}),
            serde_json::json!({"files": [], "replaceRoots": ["/agent/"]}),
            serde_json::json!({"files": [], "keepPaths": ["a"]}),
            serde_json::json!({"files": [{"path": "a", "contentBase64": ""}], "replaceRoots": ["b"]}),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
    }
}
