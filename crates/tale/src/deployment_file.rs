//! The deployment file: what an administrator decided about sandboxes, which goes before the environment.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use tale_env::registry::TALE_PLATFORM_SHARED_CONFIG_DIR;
use tale_env::{EnvProblem, EnvProblems, Severity};

/// Other sections are for others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeploymentFile {
    sandbox_runtime: Option<SandboxRuntime>,
}

/// The section of sandboxes.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SandboxRuntime {
    /// How containers are isolated; as the environment has it when missing.
    pub tier: Option<Tier>,
    /// Whether sessions have an engine inside.
    docker_in_container: Option<bool>,
    /// Whether its builds share what they made.
    docker_build_cache: Option<bool>,
}

impl SandboxRuntime {
    /// Whether it asks for an engine inside of sessions, which there is none of.
    pub(crate) fn asks_for_docker(&self) -> bool {
        self.docker_in_container == Some(true) || self.docker_build_cache == Some(true)
    }
}

/// An isolation of session containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tier {
    Runc,
    Gvisor,
    Runsc,
    Sysbox,
    Kata,
}

impl Tier {
    /// The engine's runtime; its own for the usual one.
    pub(crate) fn runtime(self) -> Option<&'static str> {
        match self {
            Self::Runc => None,
            Self::Gvisor | Self::Runsc => Some("runsc"),
            Self::Sysbox => Some("sysbox-runc"),
            Self::Kata => Some("kata"),
        }
    }
}

/// Reads `deployment.yml`, else `deployment.json`, of `folder`. Without a file nothing is decided.
///
/// # Errors
/// When a file is there that cannot be read or says something else.
pub(crate) fn read(folder: &Path) -> Result<SandboxRuntime, EnvProblems> {
    for name in ["deployment.yml", "deployment.json"] {
        let bad = |error: &dyn std::fmt::Display| {
            let why = format!("is {folder:?}, whose {name} cannot be used: {error}");
            let fix = "Correct the file, or remove it to let the environment decide";
            EnvProblems(vec![EnvProblem::new(Severity::Error, TALE_PLATFORM_SHARED_CONFIG_DIR.name, why, fix)])
        };
        let text = match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(bad(&error)),
        };
        // JSON is YAML.
        let file: Option<DeploymentFile> = serde_saphyr::from_str(&text).map_err(|error| bad(&error))?;
        return Ok(file.and_then(|file| file.sandbox_runtime).unwrap_or_default());
    }
    Ok(SandboxRuntime::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_decides_or_keeps_the_spawner_from_starting() {
        let folder = tempfile::tempdir().unwrap();
        let tier = || read(folder.path()).map(|section| (section.tier, section.asks_for_docker()));
        assert_eq!(tier().unwrap(), (None, false));
        std::fs::write(folder.path().join("deployment.json"), r#"{"sandboxRuntime": {"tier": "kata"}, "other": 1}"#)
            .unwrap();
        assert_eq!(tier().unwrap(), (Some(Tier::Kata), false));
        let yaml = folder.path().join("deployment.yml");
        std::fs::write(&yaml, "sandboxRuntime:\n  tier: gvisor\n  dockerInContainer: true\n").unwrap();
        assert_eq!(tier().unwrap(), (Some(Tier::Gvisor), true), "the first of the two counts");
        std::fs::write(&yaml, "").unwrap();
        assert_eq!(tier().unwrap(), (None, false));
        for (text, said) in
            [("sandboxRuntime: {tier: chroot}", "sysbox"), ("sandboxRuntime: {teir: kata}", "teir"), ("a: [", "yml")]
        {
            std::fs::write(&yaml, text).unwrap();
            let problem = tier().unwrap_err().to_string();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
