//! Keys: what may be stored, how they are shown, and which variables may be read.

use secrecy::{ExposeSecret, SecretString};
use tale_core::problem::{Code, Problem};
use tale_env::EnvSource;
use tale_env::registry::PROVIDER_KEY_PREFIX;

/// Longest name of a key variable (spec 40, 5.3).
const MAX_ENV_NAME: usize = 40;
/// A key shorter than this is shown as a placeholder (MOD-24).
const MIN_EXCERPT_CHARS: usize = 12;
/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 4_096;
/// What is shown instead of a short key.
const PLACEHOLDER: &str = "••••••••";

/// The excerpt of a key that is shown: its first four and last two characters.
#[must_use]
pub fn masked(key: &str) -> String {
    let characters: Vec<char> = key.trim().chars().collect();
    if characters.len() < MIN_EXCERPT_CHARS {
        return PLACEHOLDER.to_owned();
    }
    let (start, end) = (&characters[..4], &characters[characters.len() - 2..]);
    start.iter().chain(std::iter::once(&'…')).chain(end).collect()
}

/// Checks a key and returns it trimmed.
pub(crate) fn checked_key(key: &SecretString) -> Result<String, Problem> {
    let refused = |why: &'static str| Problem::new(Code::CredentialSecretInvalid, why);
    let key = key.expose_secret().trim();
    if key.is_empty() {
        return Err(refused("The API key is empty. Paste the key that the provider gave you."));
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(refused("The API key is longer than 4,096 bytes. Paste only the key."));
    }
    if key.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(refused("The API key contains a line break, a space or a control character. Paste only the key."));
    }
    if !key.is_ascii() {
        return Err(refused("The API key contains characters that no key has. Paste only the key."));
    }
    Ok(key.to_owned())
}

/// Checks the name of a key variable (MOD-35): only the own prefix can ever be read.
pub(crate) fn checked_env_name(name: &str) -> Result<String, Problem> {
    let rest = name.strip_prefix(PROVIDER_KEY_PREFIX);
    let valid = name.len() <= MAX_ENV_NAME
        && rest.is_some_and(|rest| {
            !rest.is_empty()
                && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        });
    if valid {
        return Ok(name.to_owned());
    }
    Err(Problem::invalid_field(
        "secretEnv",
        "must begin with TALE_PROVIDER_KEY_, continue with capital letters, digits or underscores, and have at most 40 characters",
    ))
}

/// The value of a key variable, read when it is needed (MOD-34).
pub(crate) fn env_key(env: &dyn EnvSource, name: &str) -> Option<SecretString> {
    let value = env.get(name)?;
    let value = value.trim();
    (!value.is_empty()).then(|| SecretString::from(value))
}

#[cfg(test)]
mod tests {
    use tale_env::MapEnv;

    use super::*;

    #[test]
    fn an_excerpt_is_never_the_whole_key() {
        assert_eq!(masked(" sk-or-v1-abcdef123456 \n"), "sk-o…56");
        assert_eq!(masked("abcdef"), PLACEHOLDER);
        assert_eq!(masked("abcdefghijk"), PLACEHOLDER);
        assert_eq!(masked("abcdefghijkl"), "abcd…kl");
    }

    #[test]
    fn only_names_with_the_own_prefix_are_accepted() {
        for good in ["TALE_PROVIDER_KEY_A", "TALE_PROVIDER_KEY_OPENAI_2"] {
            assert!(checked_env_name(good).is_ok(), "{good}");
        }
        let long = format!("TALE_PROVIDER_KEY_{}", "A".repeat(23));
        assert_eq!(long.len(), 41);
        for bad in [
            "BETTER_AUTH_SECRET",
            "TALE_PROVIDER_KEY_",
            "TALE_TOKEN_SOURCE_X",
            "TALE_PROVIDER_KEY_a",
            "tale_provider_key_A",
            long.as_str(),
        ] {
            assert!(checked_env_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_trimmed_and_checked() {
        assert_eq!(checked_key(&SecretString::from(" sk-1 ")).unwrap(), "sk-1");
        for bad in ["", "  ", "a\nb", "a\u{0}b", "schlüssel"] {
            assert_eq!(checked_key(&SecretString::from(bad)).unwrap_err().code, Code::CredentialSecretInvalid);
        }
    }

    #[test]
    fn a_variable_counts_only_with_a_value() {
        let env = MapEnv::of([("TALE_PROVIDER_KEY_A", " k \n"), ("TALE_PROVIDER_KEY_B", " ")]);
        assert_eq!(env_key(&env, "TALE_PROVIDER_KEY_A").unwrap().expose_secret(), "k");
        assert!(env_key(&env, "TALE_PROVIDER_KEY_B").is_none());
        assert!(env_key(&env, "TALE_PROVIDER_KEY_C").is_none());
    }
}
