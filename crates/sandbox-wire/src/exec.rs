//! One command: how it is asked for and controlled. The same bodies travel from the platform to the
//! spawner and from the spawner to the daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::limits::{
    DEFAULT_EXEC_TIMEOUT, MAX_BODY_BYTES, MAX_ENV_ENTRIES, MAX_ENV_NAME_BYTES, MAX_ENV_VALUE_BYTES, MAX_EXEC_TIMEOUT,
    MAX_PATH_BYTES, MAX_STDIN_LINE,
};
use crate::names::ExecId;

/// An environment: names to values, in the order of the names.
pub type Env = BTreeMap<String, String>;

/// What is wrong with a request; a sentence for the one who made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRequest(pub String);

impl BadRequest {
    /// From a sentence.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// What becomes of a command's standard input after its first bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdinMode {
    /// It ends.
    #[default]
    Close,
    /// It stays open for lines that come later.
    Hold,
}

/// A request to run a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecRequest {
    /// The caller's name for this run; used once per session.
    pub exec_id: ExecId,
    /// Program and arguments. Exactly one of this and `shell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// A script for `/bin/sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// A directory under the workspace root; the root's `workspace` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables of this run only.
    #[serde(default, skip_serializing_if = "Env::is_empty")]
    pub env: Env,
    /// First bytes of the standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
    /// What follows them.
    #[serde(default)]
    pub stdin_mode: StdinMode,
    /// How long the command may go on while nobody follows its output.
    #[serde(default, deserialize_with = "crate::lenient::milliseconds", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the `result` event repeats the output. Only the spawner acts on it.
    #[serde(default = "yes")]
    pub collect_output: bool,
}

fn yes() -> bool {
    true
}

impl ExecRequest {
    /// A request for program and arguments, everything else at its default.
    #[must_use]
    pub fn command(exec_id: ExecId, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            exec_id,
            command: Some(command.into_iter().map(Into::into).collect()),
            shell: None,
            cwd: None,
            env: Env::new(),
            stdin_base64: None,
            stdin_mode: StdinMode::Close,
            timeout_ms: None,
            collect_output: true,
        }
    }

    /// Program and arguments, after every field was checked.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn argv(&self) -> Result<Vec<String>, BadRequest> {
        let argv = match (&self.command, &self.shell) {
            (Some(command), None) if command.first().is_some_and(|program| !program.is_empty()) => command.clone(),
            (None, Some(shell)) if !shell.is_empty() => vec!["/bin/sh".into(), "-c".into(), shell.clone()],
            (Some(_), Some(_)) => return Err(BadRequest::new("give either command or shell, not both")),
            (None, None) => return Err(BadRequest::new("give command or shell")),
            _ => return Err(BadRequest::new("the command is empty")),
        };
        if argv.iter().any(|argument| argument.contains('\0')) {
            return Err(BadRequest::new("an argument has a NUL byte"));
        }
        if self.cwd.as_ref().is_some_and(|cwd| cwd.is_empty() || cwd.len() > MAX_PATH_BYTES || cwd.contains('\0')) {
            return Err(BadRequest::new("cwd is not a path"));
        }
        check_env(&self.env)?;
        Ok(argv)
    }

    /// The first bytes of the standard input.
    ///
    /// # Errors
    /// When they are not base64.
    pub fn stdin(&self) -> Result<Vec<u8>, BadRequest> {
        let Some(text) = &self.stdin_base64 else { return Ok(Vec::new()) };
        if text.len() > MAX_BODY_BYTES {
            return Err(BadRequest::new("stdinBase64 is too long"));
        }
        STANDARD.decode(text).map_err(|_| BadRequest::new("stdinBase64 is not base64"))
    }

    /// The deadline, never above `ceiling`.
    #[must_use]
    pub fn timeout(&self, default: Duration, ceiling: Duration) -> Duration {
        self.timeout_ms.map_or(default, Duration::from_millis).min(ceiling)
    }

    /// The deadline as the daemon has it, with the limits of [`crate::limits`].
    #[must_use]
    pub fn daemon_timeout(&self) -> Duration {
        self.timeout(DEFAULT_EXEC_TIMEOUT, MAX_EXEC_TIMEOUT)
    }
}

/// Whether an environment can be given to a process at all.
///
/// # Errors
/// The first entry that cannot.
pub fn check_env(env: &Env) -> Result<(), BadRequest> {
    if env.len() > MAX_ENV_ENTRIES {
        return Err(BadRequest::new(format!("env has more than {MAX_ENV_ENTRIES} entries")));
    }
    for (name, value) in env {
        check_env_name(name)?;
        if value.len() > MAX_ENV_VALUE_BYTES || value.contains('\0') {
            return Err(BadRequest::new(format!("the value of {name} in env is too long or has a NUL byte")));
        }
    }
    Ok(())
}

/// Whether `name` can be the name of a variable.
///
/// # Errors
/// When it is empty, too long, or has `=` or a control character.
pub fn check_env_name(name: &str) -> Result<(), BadRequest> {
    let plain = |character: char| character != '=' && !character.is_control();
    if name.is_empty() || name.len() > MAX_ENV_NAME_BYTES || !name.chars().all(plain) {
        return Err(BadRequest::new("a name in env is not a variable's name"));
    }
    Ok(())
}

/// Whether a session's environment may set this variable. What the session itself stands on may not be
/// changed; letter case does not matter.
#[must_use]
pub fn is_denied_env(name: &str) -> bool {
    const DENIED: &[&str] = &[
        "HOME",
        "PATH",
        "TMPDIR",
        "TALE_BUILDKIT_NETWORK_SUBNETS",
        "TALE_DIND_INNER_POOL",
        "TALE_DIND_INNER_BIP",
        "TALE_DIND_INNER_POOL_OVERRIDE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ];
    let name = name.to_ascii_uppercase();
    DENIED.contains(&name.as_str()) || name.starts_with(DAEMON_ENV_PREFIX)
}

/// Variables that are the daemon's own and never reach a command.
pub const DAEMON_ENV_PREFIX: &str = "TALE_RUNNERD_";
/// Whose a session becomes after the redirector was set up, `uid:gid`.
pub const USER_ENV: &str = "TALE_RUNNERD_USER";
/// The proxy that the redirector leads to, `host:port`.
pub const PROXY_ENV: &str = "TALE_RUNNERD_PROXY";
/// Whether the redirector was set up, `on` or `off`; set by the first process for the daemon.
pub const REDIRECT_ENV: &str = "TALE_RUNNERD_REDIRECT";
/// User and group of the redirector, which no session can have.
pub const REDIRECTOR_USER: u32 = 64_100;

/// The seed of the session's environment, where it comes with the container.
pub const SESSION_ENV: &str = "TALE_SESSION_ENV";
/// Names the exec in every process of it.
pub const EXEC_ID_ENV: &str = "TALE_EXEC_ID";

/// Appends to a held standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdinRequest {
    /// One line of JSON with its line feed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b64: Option<String>,
    /// Whether the standard input ends after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub eof: bool,
}

impl StdinRequest {
    /// The bytes to write, which are empty when only the end was asked for.
    ///
    /// # Errors
    /// [`StdinRefusal::BadLine`] when it is anything but one line of valid JSON within the limit.
    pub fn line(&self) -> Result<Vec<u8>, StdinRefusal> {
        let Some(text) = &self.b64 else {
            return if self.eof { Ok(Vec::new()) } else { Err(StdinRefusal::BadLine) };
        };
        if text.len() > MAX_STDIN_LINE.div_ceil(3) * 4 {
            return Err(StdinRefusal::BadLine);
        }
        let line = STANDARD.decode(text).map_err(|_| StdinRefusal::BadLine)?;
        let Some((b'\n', json)) = line.split_last() else { return Err(StdinRefusal::BadLine) };
        let whole = line.len() <= MAX_STDIN_LINE && !json.contains(&b'\n');
        let json = std::str::from_utf8(json).map_err(|_| StdinRefusal::BadLine)?;
        if !whole || serde_json::from_str::<serde::de::IgnoredAny>(json).is_err() {
            return Err(StdinRefusal::BadLine);
        }
        Ok(line)
    }
}

/// Why a line was not taken. The line was not written, not even in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StdinRefusal {
    /// No such exec, or it ended.
    NotFound,
    /// The standard input was not held, or ended.
    StdinClosed,
    /// Not one line of JSON within the limit.
    BadLine,
    /// The command closed it, or too much waits for the command already.
    WriteFailed,
}

/// Answer to [`StdinRequest`]; always 200.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdinAnswer {
    /// Whether it was taken.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StdinRefusal>,
}

impl From<Result<(), StdinRefusal>> for StdinAnswer {
    fn from(taken: Result<(), StdinRefusal>) -> Self {
        Self { ok: taken.is_ok(), reason: taken.err() }
    }
}

/// A consumer's state after everything up to `seq`. `PUT` needs both; `GET` gives both back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The last event the state covers.
    pub seq: u64,
    /// The consumer's own; nobody else looks into it.
    pub state: serde_json::Value,
}

/// Answer to reading a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointAnswer {
    /// The last one, if there is one.
    pub checkpoint: Option<Checkpoint>,
}

/// Answer to a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAnswer {
    /// Whether a running command was told to end.
    pub killed: bool,
}

/// Where an exec stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ExecStatus {
    /// The command runs.
    Running {
        /// Which.
        exec_id: ExecId,
        /// When it was started.
        started_at_ms: u64,
    },
    /// It ended, one way or another.
    Exited {
        /// Which.
        exec_id: ExecId,
        /// When it was started.
        started_at_ms: u64,
        /// 128 + the signal where a signal ended it; `None` when it never ran or its end was lost.
        exit_code: Option<i32>,
    },
    /// Unknown here. Comes with 404.
    Gone,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(body: serde_json::Value) -> Result<ExecRequest, serde_json::Error> {
        serde_json::from_value(body)
    }

    #[test]
    fn a_request_names_exactly_one_command() {
        let argv = |body| request(body).map_err(|e| e.to_string())?.argv().map_err(|bad| bad.0);
        assert_eq!(argv(json!({"execId": "e", "shell": "echo hi"})).unwrap(), ["/bin/sh", "-c", "echo hi"]);
        assert_eq!(argv(json!({"execId": "e", "command": ["ls", ""]})).unwrap(), ["ls", ""]);
        for bad in [
            json!({"execId": "e"}),
            json!({"execId": "e", "shell": "a", "command": ["a"]}),
            json!({"execId": "e", "shell": ""}),
            json!({"execId": "e", "command": []}),
            json!({"execId": "e", "command": [""]}),
            json!({"execId": "e", "command": ["a", 1]}),
            json!({"execId": "e", "command": "a"}),
            json!({"execId": "e", "command": ["a\u{0}"]}),
            json!({"execId": "../e", "shell": "a"}),
            json!({"execId": "e", "shell": "a", "cwd": ""}),
            json!({"execId": "e", "shell": "a", "cwd": 5}),
            json!({"execId": "e", "shell": "a", "env": {"A=B": "c"}}),
            json!({"execId": "e", "shell": "a", "env": {"": "c"}}),
            json!({"execId": "e", "shell": "a", "env": {"A": 1}}),
            json!({"execId": "e", "shell": "a", "env": {"A": "\u{0}"}}),
            json!({"execId": "e", "shell": "a", "stdinMode": "keep"}),
            json!({"execId": "e", "shell": "a", "user": "root"}),
            json!(["e", "a"]),
        ] {
            assert!(argv(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bad_deadline_is_the_default_and_a_long_one_the_ceiling() {
        let timeout = |value| {
            let request = request(json!({"execId": "e", "shell": "a", "timeoutMs": value})).unwrap();
            request.daemon_timeout().as_millis()
        };
        for absent in [json!(null), json!("5"), json!(-1), json!(0), json!(1.5), json!({}), json!([])] {
            assert_eq!(timeout(absent), 600_000);
        }
        assert_eq!(timeout(json!(1500)), 1500);
        assert_eq!(timeout(json!(1500.0)), 1500);
        assert_eq!(timeout(json!(u64::MAX)), 86_400_000);
    }

    #[test]
    fn a_line_of_stdin_is_one_line_of_json() {
        let line = |text: &[u8]| StdinRequest { b64: Some(STANDARD.encode(text)), eof: false }.line();
        assert_eq!(line(b"{\"a\":1}\n").unwrap(), b"{\"a\":1}\n");
        let longest = [b"\"".as_slice(), &vec![b'x'; MAX_STDIN_LINE - 3], b"\"\n"].concat();
        assert_eq!(line(&longest).unwrap().len(), MAX_STDIN_LINE);
        let longer = [b"\"".as_slice(), &vec![b'x'; MAX_STDIN_LINE - 2], b"\"\n"].concat();
        for bad in [b"{}".as_slice(), b"{}\n{}\n", b"{\n}\n", b"\n", b"x\n", b"", b"{}\n\n", b"\"\xff\"\n", &longer] {
            assert_eq!(line(bad), Err(StdinRefusal::BadLine));
        }
        assert_eq!(StdinRequest { b64: None, eof: true }.line(), Ok(Vec::new()));
        assert_eq!(StdinRequest::default().line(), Err(StdinRefusal::BadLine));
        let answer = serde_json::to_value(StdinAnswer::from(Err(StdinRefusal::StdinClosed))).unwrap();
        assert_eq!(answer, json!({"ok": false, "reason": "STDIN_CLOSED"}));
    }

    #[test]
    fn what_a_session_stands_on_cannot_be_set() {
        for denied in ["HOME", "path", "TmpDir", "TALE_RUNNERD_TOKEN", "tale_runnerd_x", "http_proxy", "No_Proxy"] {
            assert!(is_denied_env(denied), "{denied}");
        }
        for free in ["PYTHONPATH", "GITHUB_TOKEN", "TALE_GATEWAY_URL", "HOMEPAGE"] {
            assert!(!is_denied_env(free), "{free}");
        }
    }

    #[test]
    fn a_status_has_the_fields_of_the_contract() {
        let id = ExecId::new("e").unwrap();
        let running = ExecStatus::Running { exec_id: id.clone(), started_at_ms: 5 };
        assert_eq!(
            serde_json::to_value(running).unwrap(),
            json!({"execId": "e", "state": "running", "startedAtMs": 5})
        );
        let exited = ExecStatus::Exited { exec_id: id, started_at_ms: 5, exit_code: Some(137) };
        assert_eq!(
            serde_json::to_value(exited).unwrap(),
            json!({"execId": "e", "state": "exited", "startedAtMs": 5, "exitCode": 137})
        );
        assert_eq!(serde_json::to_value(ExecStatus::Gone).unwrap(), json!({"state": "gone"}));
    }
}
