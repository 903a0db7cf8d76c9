//! Identifiers with their grammar, and the names made from them. Whoever holds one of these types may
//! put it into a container name, a label, a path or an argument.

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// A text that does not follow the grammar of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be 1 to {max} letters, digits, dashes or underscores")]
pub struct BadName {
    kind: &'static str,
    max: usize,
}

macro_rules! name {
    ($(#[$meta:meta])* $type:ident, $kind:literal, $max:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Longest text of this kind, in characters.
            pub const MAX: usize = $max;

            /// Checks the grammar.
            ///
            /// # Errors
            /// [`BadName`] when the text is empty, too long or has another character.
            pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
                let text = text.into();
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                if (1..=$max).contains(&text.len()) && text.bytes().all(plain) {
                    return Ok(Self(text));
                }
                Err(BadName { kind: $kind, max: $max })
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $type {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// A session; stays the same over the stops and starts of its compute.
    SessionId, "a session id", 64
}
name! {
    /// One command in a session.
    ExecId, "an exec id", 64
}
name! {
    /// A connected device.
    DeviceId, "a device id", 64
}
name! {
    /// An organization.
    OrganizationId, "an organization id", 128
}
name! {
    /// The present hold on a session; another one after every acquire.
    Generation, "a generation", 128
}
name! {
    /// One attempt to reclaim a session.
    ClaimId, "a claim id", 128
}

/// Which deployment sessions on a shared engine belong to; empty where there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Instance(String);

impl Instance {
    /// Checks the grammar: at most 32 lower-case letters, digits and dashes.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (text.len() <= 32 && text.bytes().all(plain)).then(|| Self(text.to_owned()))
    }

    /// The text, which may be empty.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const COMPUTE_PREFIX: &str = "tale-sbx-ses-";
/// Longest label of a DNS name.
const MAX_LABEL: usize = 63;

impl SessionId {
    /// The first 16 hexadecimal digits of the SHA-1 of the id: a name where the id itself does not fit.
    #[must_use]
    pub fn short_hash(&self) -> String {
        crate::hex(&Sha1::digest(self.0.as_bytes())[..8])
    }

    /// Name of the session's container on Docker.
    #[must_use]
    pub fn container_name(&self) -> String {
        let name = format!("{COMPUTE_PREFIX}{}", self.0);
        if name.len() <= MAX_LABEL { name } else { self.pod_name() }
    }

    /// Name of the session's container where another deployment on the same engine has [`Self::container_name`].
    #[must_use]
    pub fn other_container_name(&self, instance: &Instance) -> String {
        let whole = format!("{}/{}", instance.as_str(), self.0);
        format!("{COMPUTE_PREFIX}{}", crate::hex(&Sha1::digest(whole.as_bytes())[..8]))
    }

    /// Name of the session's Pod on Kubernetes.
    #[must_use]
    pub fn pod_name(&self) -> String {
        format!("{COMPUTE_PREFIX}{}", self.short_hash())
    }

    /// Name of the Secret beside the Pod.
    #[must_use]
    pub fn secret_name(&self) -> String {
        format!("{}-spec", self.pod_name())
    }

    /// Name of the volume claim that holds the workspace.
    #[must_use]
    pub fn claim_name(&self) -> String {
        format!("{}-ws", self.pod_name())
    }
}

/// What a session's compute is shaped for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Page renders and code that gets the least: nobody's uid, one processor.
    #[default]
    Default,
    /// Coding agents and workflow steps; the only profile that may have an engine inside.
    Agent,
    /// The same without an engine.
    AgentLight,
}

impl Profile {
    /// The name on the wire and in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Agent => "agent",
            Self::AgentLight => "agent-light",
        }
    }

    /// The profile with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Default, Self::Agent, Self::AgentLight].into_iter().find(|profile| profile.as_str() == name)
    }

    /// Whether `docker` in the session is possible at all.
    #[must_use]
    pub const fn may_have_engine(self) -> bool {
        matches!(self, Self::Agent)
    }
}

/// Whose work a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// A project's agent.
    Project,
    /// One run of an automation.
    Workflow,
    /// One batch of a crawl.
    Render,
}

impl Workload {
    /// The name on the wire and in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Workflow => "workflow",
            Self::Render => "render",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_grammar() {
        for good in ["a", "A-z_09", &"x".repeat(64)] {
            assert!(SessionId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "ä", "a/b", "..", "a\n", "a\0", &"x".repeat(65)] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
            assert!(serde_json::from_value::<ExecId>(serde_json::json!(bad)).is_err(), "{bad:?}");
        }
        assert!(OrganizationId::new("x".repeat(128)).is_ok());
        assert!(Instance::new("").is_some() && Instance::new("device").is_some());
        assert!(Instance::new("Device").is_none() && Instance::new(&"x".repeat(33)).is_none());
    }

    #[test]
    fn a_long_id_gives_a_name_that_fits_a_label() {
        let short = SessionId::new("agent-1").unwrap();
        assert_eq!(short.container_name(), "tale-sbx-ses-agent-1");
        assert_eq!(short.pod_name(), "tale-sbx-ses-9304ba937a3dd277");
        assert_eq!(short.secret_name(), format!("{}-spec", short.pod_name()));
        assert_eq!(short.claim_name(), format!("{}-ws", short.pod_name()));
        assert_eq!(SessionId::new("x".repeat(50)).unwrap().container_name().len(), 63);
        let long = SessionId::new("x".repeat(51)).unwrap();
        assert_eq!(long.container_name(), long.pod_name());
        assert_eq!(long.container_name().len(), 29);
        let [one, two] = ["", "device"].map(|name| short.other_container_name(&Instance::new(name).unwrap()));
        assert!(one != two && one != short.container_name() && one.len() == 29, "{one} {two}");
    }

    #[test]
    fn profiles_have_the_names_of_the_contract() {
        for (profile, name) in
            [(Profile::Default, "default"), (Profile::Agent, "agent"), (Profile::AgentLight, "agent-light")]
        {
            assert_eq!(serde_json::to_value(profile).unwrap(), name);
            assert_eq!(Profile::from_name(name), Some(profile));
        }
        assert_eq!(Profile::from_name("Agent"), None);
    }
}
