//! Where keys of the environment may be sent.
//!
//! Whoever manages the providers of an organization enters addresses, and names the variables `TALE_PROVIDER_KEY_*` and
//! `TALE_TOKEN_SOURCE_*`. The keys in them are the operator's: sent to an address of somebody's choice they would be that
//! person's. So such a key goes to the vendors of the shipped catalogue, to private hosts where the operator admits
//! those, and to what the operator lists in `TALE_ENV_KEY_HOSTS`; a variable that stands in the list goes to its own
//! hosts alone.

use std::collections::HashSet;
use std::sync::LazyLock;

use tale_core::net::{HostPolicy, is_private_form};
use tale_core::problem::{Code, Problem};
use tale_env::registry::{PROVIDER_KEY_PREFIX, TALE_ENV_KEY_HOSTS, TOKEN_SOURCE_PREFIX};
use url::{Origin, Url};

use crate::catalog;

/// Most entries of the list.
const MAX_ENTRIES: usize = 1_000;

/// The operator's list. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyHosts(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// The only variable that it is about.
    variable: Option<String>,
    /// A host, or with `below` those beneath it.
    host: String,
    below: bool,
    /// Any port when none was written.
    port: Option<u16>,
}

/// Why the list cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKeyHosts {
    /// An entry that names no host.
    #[error(
        "entry {0} must be a host such as llm.example.com, *.example.com or TALE_PROVIDER_KEY_NAME=llm.example.com:8443"
    )]
    Entry(usize),
    /// More than anybody writes.
    #[error("there are more than {MAX_ENTRIES} entries")]
    TooMany,
}

/// Where the vendors of the catalogue answer.
static VENDORS: LazyLock<HashSet<Origin>> = LazyLock::new(|| {
    catalog::shipped().iter().filter_map(|provider| provider.base_url.as_ref()).map(Url::origin).collect()
});

impl KeyHosts {
    /// Reads a list whose entries are separated by commas or white space.
    ///
    /// # Errors
    /// [`BadKeyHosts`], which never repeats an entry: somebody may have pasted a key.
    pub fn parse(text: &str) -> Result<Self, BadKeyHosts> {
        let entries: Vec<&str> =
            text.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty()).collect();
        if entries.len() > MAX_ENTRIES {
            return Err(BadKeyHosts::TooMany);
        }
        let read = |(at, entry): (usize, &&str)| Entry::parse(entry).ok_or(BadKeyHosts::Entry(at + 1));
        Ok(Self(entries.iter().enumerate().map(read).collect::<Result<_, _>>()?))
    }

    /// Refuses to send the key in `variable` to `url` unless the operator meant it to go there.
    ///
    /// # Errors
    /// `CREDENTIAL_SECRET_INVALID`, which says what the operator can do.
    pub(crate) fn check(&self, variable: &str, url: &Url, policy: HostPolicy) -> Result<(), Problem> {
        if self.admit(variable, url, policy) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        Err(Problem::new(
            Code::CredentialSecretInvalid,
            format!(
                "The key in {variable} belongs to the operator of Tale, who does not let it go to {host}. Store a key of your own, or have the operator add {host} to {}.",
                TALE_ENV_KEY_HOSTS.name
            ),
        )
        .with_data(serde_json::json!({ "variable": variable, "host": host })))
    }

    fn admit(&self, variable: &str, url: &Url, policy: HostPolicy) -> bool {
        let mut own = self.0.iter().filter(|entry| entry.variable.as_deref() == Some(variable)).peekable();
        if own.peek().is_some() {
            return own.any(|entry| entry.matches(url));
        }
        let private = policy == HostPolicy::PrivateAllowed && is_private_form(url);
        private
            || VENDORS.contains(&url.origin())
            || self.0.iter().any(|entry| entry.variable.is_none() && entry.matches(url))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let (variable, place) = match text.split_once('=') {
            Some((name, place)) => {
                let known = [PROVIDER_KEY_PREFIX, TOKEN_SOURCE_PREFIX].iter().any(|prefix| name.starts_with(prefix));
                (Some(name.to_owned()).filter(|_| known)?.into(), place)
            }
            None => (None, text),
        };
        let (below, place) = match place.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, place),
        };
        if place.contains(['/', '@', '?', '#', '*', '\\']) {
            return None;
        }
        // As addresses write it: lower case, and in ASCII.
        let url = Url::parse(&format!("https://{place}/")).ok()?;
        let host = url.host_str()?.trim_end_matches('.').to_owned();
        let written = place.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port = written.and_then(|_| url.port_or_known_default());
        (!host.is_empty()).then_some(Self { variable, host, below, port })
    }

    fn matches(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let named = match host.strip_suffix(&self.host) {
            Some("") => !self.below,
            Some(rest) => self.below && rest.ends_with('.'),
            None => false,
        };
        named && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(list: &str, variable: &str, url: &str, policy: HostPolicy) -> bool {
        KeyHosts::parse(list).unwrap().check(variable, &Url::parse(url).unwrap(), policy).is_ok()
    }

    #[test]
    fn a_key_of_the_operator_goes_to_vendors_and_nowhere_that_somebody_else_chose() {
        let to = |url: &str| admitted("", "TALE_PROVIDER_KEY_A", url, HostPolicy::PublicOnly);
        for vendor in ["https://api.openai.com/v1", "https://api.anthropic.com"] {
            assert!(to(vendor), "{vendor}");
        }
        for other in [
            "https://collector.example.com/v1",
            "https://api.openai.com.example.com/v1",
            "https://api.openai.com:8443/v1",
            "http://192.168.1.20:8000/v1",
            "https://mine.openai.azure.com/openai/v1",
        ] {
            assert!(!to(other), "{other}");
        }
        let private = |url: &str| admitted("", "TALE_PROVIDER_KEY_A", url, HostPolicy::PrivateAllowed);
        assert!(private("http://192.168.1.20:8000/v1") && private("http://models.local/v1"));
        // A name that only resolves to a private address may resolve to another one a moment later.
        assert!(!private("https://collector.example.com/v1"));
    }

    #[test]
    fn the_operator_lists_hosts_for_all_keys_or_for_one() {
        let list = "LLM.example.com:8443, *.openai.azure.com\nTALE_PROVIDER_KEY_ACME=acme.example.com \
                    TALE_TOKEN_SOURCE_POOL=broker.example.com";
        let to = |variable: &str, url: &str| admitted(list, variable, url, HostPolicy::PrivateAllowed);
        let (any, acme) = ("TALE_PROVIDER_KEY_A", "TALE_PROVIDER_KEY_ACME");
        assert!(to(any, "https://llm.example.com:8443/v1") && to(any, "https://mine.openai.azure.com/openai/v1"));
        assert!(to(acme, "https://acme.example.com/v1"));
        assert!(to("TALE_TOKEN_SOURCE_POOL", "https://broker.example.com/tokens?for=codex"));
        for (variable, url) in [
            (any, "https://llm.example.com/v1"),
            (any, "https://openai.azure.com/v1"),
            (any, "https://evilopenai.azure.com/v1"),
            (any, "https://acme.example.com/v1"),
            // A key with hosts of its own goes nowhere else.
            (acme, "https://llm.example.com:8443/v1"),
            (acme, "https://api.openai.com/v1"),
            (acme, "http://127.0.0.1:8000/v1"),
        ] {
            assert!(!to(variable, url), "{variable} {url}");
        }
    }

    #[test]
    fn an_entry_that_is_no_host_is_named_by_its_place_and_not_repeated() {
        for (list, place) in [
            ("a.example.com https://b.example.com", 2),
            ("OTHER=a.example.com", 1),
            ("a.example.com/v1", 1),
            ("*", 1),
            ("sk-secret@a.example.com", 1),
            ("TALE_PROVIDER_KEY_A=", 1),
        ] {
            assert_eq!(KeyHosts::parse(list), Err(BadKeyHosts::Entry(place)), "{list}");
        }
        assert_eq!(KeyHosts::parse(" ,\n"), Ok(KeyHosts::default()));
        assert_eq!(KeyHosts::parse(&"a.example.com ".repeat(1_001)), Err(BadKeyHosts::TooMany));
    }
}
