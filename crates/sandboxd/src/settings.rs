//! The variables the spawner gives a session's container. This is the only place of the daemon that
//! reads its environment; commands start from a copy of it without what is the daemon's own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::redirect::Keeper;
use tale_sandbox_wire::exec::{DAEMON_ENV_PREFIX, Env, REDIRECT_ENV, SESSION_ENV};
use tale_sandbox_wire::files::WORKSPACE_ROOT;
use tale_sandbox_wire::limits::DAEMON_PORT;

/// A variable that cannot be used. Ends the start.
#[derive(Debug, thiserror::Error)]
#[error("{name} {problem}")]
pub struct BadSetting {
    name: &'static str,
    problem: &'static str,
}

/// What the daemon was told.
#[derive(Debug)]
pub struct Settings {
    /// What callers must show (`TALE_RUNNERD_TOKEN`).
    pub token: String,
    /// This life of the session (`TALE_RUNNERD_INCARNATION`).
    pub incarnation: Option<String>,
    /// Where it listens (`TALE_RUNNERD_LISTEN`, all addresses at port 8200).
    pub listen: SocketAddr,
    /// The workspace (`TALE_RUNNERD_ROOT`, `/agent`).
    pub root: PathBuf,
    /// Silence and idleness that end a command (`TALE_EXEC_STALL_MS`; 0 or absent = never).
    pub stall: Option<Duration>,
    /// Share of the memory limit from which no command is started
    /// (`TALE_EXEC_ADMISSION_MEMORY_PERCENT`, 90; 0 = always).
    pub memory_percent: u64,
    /// First environment of the session (`TALE_SESSION_ENV`, a JSON object of texts).
    pub session_env: Env,
    /// Whether programs that know of no proxy are led to it (`TALE_RUNNERD_REDIRECT`); `None` when nobody asked
    /// for that.
    pub redirects: Option<Redirects>,
    /// What every command starts from.
    pub base_env: BTreeMap<std::ffi::OsString, std::ffi::OsString>,
}

/// A variable of the process, for what runs before there are [`Settings`] or beside them.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Settings {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// The first variable that cannot be used.
    pub fn read() -> Result<Self, BadSetting> {
        Self::from(std::env::vars_os().collect())
    }

    fn from(mut all: BTreeMap<std::ffi::OsString, std::ffi::OsString>) -> Result<Self, BadSetting> {
        let text = |name: &'static str| match all.get(std::ffi::OsStr::new(name)) {
            None => Ok(None),
            Some(value) => match value.to_str().map(str::trim) {
                Some("") => Ok(None),
                Some(value) => Ok(Some(value.to_owned())),
                None => Err(BadSetting { name, problem: "is not UTF-8" }),
            },
        };
        let number = |name, default| match text(name)? {
            None => Ok(default),
            Some(value) => value.parse::<u64>().map_err(|_| BadSetting { name, problem: "is not a whole number" }),
        };
        let name = "TALE_RUNNERD_TOKEN";
        let token = text(name)?.ok_or(BadSetting { name, problem: "is required" })?;
        if token.len() < 16 {
            return Err(BadSetting { name, problem: "is too short" });
        }
        let name = "TALE_RUNNERD_LISTEN";
        let listen = match text(name)? {
            None => SocketAddr::from(([0, 0, 0, 0], DAEMON_PORT)),
            Some(value) => value.parse().map_err(|_| BadSetting { name, problem: "is not an address with a port" })?,
        };
        let session_env = match text(SESSION_ENV)? {
            None => Env::new(),
            Some(value) => serde_json::from_str(&value)
                .map_err(|_| BadSetting { name: SESSION_ENV, problem: "is not a JSON object of texts" })?,
        };
        let settings = Self {
            token,
            incarnation: text("TALE_RUNNERD_INCARNATION")?,
            listen,
            root: PathBuf::from(text("TALE_RUNNERD_ROOT")?.unwrap_or_else(|| WORKSPACE_ROOT.to_owned())),
            stall: Some(number("TALE_EXEC_STALL_MS", 0)?).filter(|ms| *ms > 0).map(Duration::from_millis),
            memory_percent: number("TALE_EXEC_ADMISSION_MEMORY_PERCENT", 90)?,
            session_env,
            redirects: text(REDIRECT_ENV)?.map(|state| Redirects::parse(&state)),
            base_env: BTreeMap::new(),
        };
        let own = |name: &std::ffi::OsString| {
            name.to_str().is_some_and(|name| name.starts_with(DAEMON_ENV_PREFIX) || name == SESSION_ENV)
        };
        all.retain(|name, _| !own(name));
        Ok(Self { base_env: all, ..settings })
    }
}

/// What became of leading programs that know of no proxy to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// It could not be set up.
    Off,
    /// It was.
    Kept(Keeper),
}

impl Redirects {
    fn parse(text: &str) -> Self {
        let kept = || {
            let (pid, started) = text.split_once(' ')?;
            Some(Keeper { pid: pid.parse().ok()?, started: started.parse().ok()? })
        };
        kept().map_or(Self::Off, Self::Kept)
    }

    /// Why nobody is led there at this moment.
    #[must_use]
    pub fn trouble(&self) -> Option<&'static str> {
        match self {
            Self::Off => Some("not_set_up"),
            Self::Kept(keeper) => (!keeper.has_redirector()).then_some("redirector_stopped"),
        }
    }
}

impl std::fmt::Display for Redirects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Kept(Keeper { pid, started }) => write!(f, "{pid} {started}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, BadSetting> {
        Settings::from(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn commands_never_start_from_what_is_the_daemons_own() {
        let token = ("TALE_RUNNERD_TOKEN", "0123456789abcdef");
        let settings =
            read(&[token, ("TALE_SESSION_ENV", r#"{"A":"1"}"#), ("TALE_RUNNERD_NEW", "x"), ("PATH", "/bin")]).unwrap();
        assert_eq!(settings.session_env["A"], "1");
        assert_eq!(settings.base_env.keys().collect::<Vec<_>>(), ["PATH"]);
        assert_eq!(settings.memory_percent, 90);
        assert_eq!(settings.stall, None);
        for bad in [
            &[][..],
            &[("TALE_RUNNERD_TOKEN", "  ")],
            &[("TALE_RUNNERD_TOKEN", "short")],
            &[token, ("TALE_EXEC_STALL_MS", "45m")],
            &[token, ("TALE_SESSION_ENV", "{")],
            &[token, ("TALE_RUNNERD_LISTEN", "8200")],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_became_of_the_redirector_is_handed_on() {
        for state in [Redirects::Off, Redirects::Kept(Keeper { pid: 7, started: 99 })] {
            assert_eq!(Redirects::parse(&state.to_string()), state);
        }
        assert_eq!(Redirects::parse("on").trouble(), Some("not_set_up"));
    }
}
