//! The files of a person's sandbox. They are read where they are, so only while it is awake; looking at them neither
//! wakes it nor keeps it awake.

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use serde_json::json;
use tale_core::{Actor, Code, Problem};
use tale_governance::audit::{self, AuditEntry};
use tale_sandbox_wire::files::{ListAnswer, WorkspacePath};
use tale_sandbox_wire::names::SessionId;
use tale_sandbox_wire::spawner::ErrorCode;

use crate::client::SpawnerError;
use crate::runs::Owner;
use crate::service::{Workshop, session_of};

/// The directory that people see; programs start in it.
pub const ROOT: &str = "workspace";

/// A file on its way out.
pub struct Content {
    /// Its name, without directories.
    pub name: String,
    /// Its size, when the sandbox says it.
    pub length: Option<u64>,
    /// Its bytes.
    pub bytes: std::pin::Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
}

impl Workshop {
    /// A directory of one's workspace, by names. `path` is below [`ROOT`].
    ///
    /// # Errors
    /// `INVALID_QUERY`, `FILE_NOT_FOUND`, `SANDBOX_ASLEEP`, `SANDBOX_UNAVAILABLE`.
    pub async fn list_files(&self, owner: Owner, path: &str) -> Result<ListAnswer, Problem> {
        let session = session_of(owner.org, owner.user)?;
        let path = below(path)?;
        match self.0.spawner.list(&session, &path).await {
            Ok(listed) => Ok(listed),
            Err(error) => Err(self.refused(&session, error).await),
        }
    }

    /// The bytes of a file of one's workspace.
    ///
    /// # Errors
    /// As [`Workshop::list_files`].
    pub async fn read_file(&self, owner: Owner, actor: &Actor, path: &str) -> Result<Content, Problem> {
        let session = session_of(owner.org, owner.user)?;
        let path = below(path)?;
        let answer = match self.0.spawner.read(&session, &path).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.refused(&session, error).await),
        };
        let entry = AuditEntry {
            org: Some(owner.org),
            actor: actor.clone(),
            action: "sandbox.file_downloaded",
            category: "data",
            resource_type: "sandbox",
            resource_id: Some(session.to_string()),
            details: json!({ "path": path }),
            at: self.0.clock.now(),
        };
        audit::record(&mut *self.0.db.acquire().await?, &entry).await?;
        Ok(Content {
            name: path.rsplit('/').next().unwrap_or_default().to_owned(),
            length: answer.content_length(),
            bytes: Box::pin(answer.bytes_stream().map_err(std::io::Error::other)),
        })
    }
}

fn below(path: &str) -> Result<String, Problem> {
    let path = WorkspacePath::new(path.trim_start_matches('/'))
        .map_err(|_| Problem::invalid_query("path", "must be a path inside the workspace"))?;
    Ok(format!("{ROOT}/{}", path.as_str()).trim_end_matches('/').to_owned())
}

impl Workshop {
    /// What a refusal of a path means: the session is asleep, or there is no such file in it.
    async fn refused(&self, session: &SessionId, error: SpawnerError) -> Problem {
        match error.code() {
            Some(ErrorCode::NotFound) => match self.0.spawner.ticket(session).await {
                Ok(_) => Problem::new(
                    Code::FileNotFound,
                    "There is no such file in your sandbox, or it is larger than 20 MiB, which is the most that can be downloaded.",
                ),
                Err(error) if error.code() == Some(ErrorCode::NotFound) => Problem::new(
                    Code::SandboxAsleep,
                    "Your sandbox is asleep. Its files are kept; run something to wake it, then look again.",
                ),
                Err(error) => error.into(),
            },
            Some(ErrorCode::BadRequest) => Problem::invalid_query("path", "must be a path inside the workspace"),
            _ => error.into(),
        }
    }
}
