//! Which host names may be reached.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::host::Host;

/// Most patterns of an allowlist.
const MAX_PATTERNS: usize = 10_000;

/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// The hosts that clients may reach, by name. What a name stands for is judged elsewhere.
#[derive(Debug, Clone)]
pub enum HostPolicy {
    /// Every host.
    Open,
    /// Only hosts that a pattern admits.
    Allowlist(Vec<Pattern>),
}

/// One entry of an allowlist.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// This host.
    Exact(Box<str>),
    /// Every host below this one, which stands here with the dot before it.
    Below(Box<str>),
    /// Every host in which the expression is found.
    Matching(Regex),
}

/// Why an allowlist cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAllowlist {
    /// A pattern is no regular expression.
    #[error("the pattern {pattern:?} cannot be read: {why}")]
    Pattern {
        /// As it was written.
        pattern: String,
        /// What is wrong, in one line.
        why: String,
    },
    /// More than anybody writes.
    #[error("there are more than {MAX_PATTERNS} patterns")]
    TooMany,
}

impl HostPolicy {
    /// Reads an allowlist: patterns on lines of their own or separated by `|`. No pattern means that every
    /// host is admitted.
    ///
    /// # Errors
    /// [`BadAllowlist`].
    pub fn parse(text: &str) -> Result<Self, BadAllowlist> {
        let entries: Vec<&str> = entries(text).collect();
        if entries.len() > MAX_PATTERNS {
            return Err(BadAllowlist::TooMany);
        }
        if entries.is_empty() {
            return Ok(Self::Open);
        }
        entries.into_iter().map(Pattern::parse).collect::<Result<_, _>>().map(Self::Allowlist)
    }

    /// Whether the policy admits `host`.
    #[must_use]
    pub fn admits(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Open, _) => true,
            (Self::Allowlist(patterns), Host::Name(name)) => patterns.iter().any(|pattern| pattern.admits(name)),
            (Self::Allowlist(patterns), Host::Address(address)) => {
                let text = address.to_string();
                patterns.iter().any(|pattern| pattern.admits(&text))
            }
        }
    }

    /// Whether there is an allowlist.
    #[must_use]
    pub fn is_allowlist(&self) -> bool {
        matches!(self, Self::Allowlist(_))
    }

    /// The patterns that also admit names which only begin with what was meant, such as
    /// `example.com.attacker.test`.
    pub fn unanchored(&self) -> impl Iterator<Item = &str> {
        let patterns = match self {
            Self::Open => &[][..],
            Self::Allowlist(patterns) => patterns,
        };
        patterns.iter().filter_map(|pattern| match pattern {
            Pattern::Matching(expression) if !ends_anchored(expression.as_str()) => Some(expression.as_str()),
            _ => None,
        })
    }
}

impl fmt::Display for HostPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("every public host"),
            Self::Allowlist(patterns) => {
                for (n, pattern) in patterns.iter().enumerate() {
                    write!(f, "{}{pattern}", if n == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

impl Pattern {
    fn parse(entry: &str) -> Result<Self, BadAllowlist> {
        let (below, name) = match entry.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, entry),
        };
        // An address in IPv6 form has colons, which no expression for names needs.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        if !name.is_empty() && name.bytes().all(plain) {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            return Ok(if below { Self::Below(format!(".{name}").into()) } else { Self::Exact(name.into()) });
        }
        let compiled = RegexBuilder::new(entry).case_insensitive(true).unicode(false).size_limit(MAX_COMPILED).build();
        compiled.map(Self::Matching).map_err(|error| {
            // The last line says what is wrong; those before it draw where.
            let words = error.to_string();
            let why = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            BadAllowlist::Pattern { pattern: entry.to_owned(), why }
        })
    }

    fn admits(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => name == &**exact,
            Self::Below(suffix) => name.len() > suffix.len() && name.ends_with(&**suffix),
            Self::Matching(expression) => expression.is_match(name),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(suffix) => write!(f, "*{suffix}"),
            Self::Matching(expression) => f.write_str(expression.as_str()),
        }
    }
}

fn ends_anchored(expression: &str) -> bool {
    expression.strip_suffix('$').is_some_and(|rest| {
        let escapes = rest.bytes().rev().take_while(|byte| *byte == b'\\').count();
        escapes % 2 == 0
    })
}

/// Splits at line ends and at every `|` that stands outside of brackets: inside, it belongs to the
/// expression.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut class, mut escaped) = (0_usize, false, false);
    text.split(move |letter: char| {
        let inside = std::mem::take(&mut escaped);
        match letter {
            '\n' | '\r' => {
                (depth, class) = (0, false);
                return true;
            }
            _ if inside => {}
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class => depth = depth.saturating_sub(1),
            '|' if !class && depth == 0 => return true,
            _ => {}
        }
        false
    })
    .map(str::trim)
    .filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admits(policy: &str, host: &str) -> bool {
        HostPolicy::parse(policy).unwrap().admits(&Host::parse(host).unwrap())
    }

    #[test]
    fn no_pattern_admits_every_host() {
        for text in ["", "  ", "\n\n", "|", " | \n |"] {
            assert!(!HostPolicy::parse(text).unwrap().is_allowlist(), "{text:?}");
            assert!(admits(text, "anything.example"), "{text:?}");
        }
    }

    #[test]
    fn a_list_admits_what_one_of_its_patterns_names() {
        let list = r"example\.com$|*.internal-docs.test|plain.example";
        for host in ["example.com", "www.EXAMPLE.com.", "a.b.internal-docs.test", "plain.example"] {
            assert!(admits(list, host), "{host}");
        }
        for host in ["example.com.attacker.test", "internal-docs.test", "www.plain.example", "plainxexample", "1.1.1.1"]
        {
            assert!(!admits(list, host), "{host}");
        }
        assert!(admits("1.1.1.1", "1.1.1.1") && admits("2606:4700::1111", "[2606:4700:0::1111]"));
        assert!(!admits("*.1.1.1", "[::ffff:9.9.9.9]"));
    }

    #[test]
    fn a_bar_inside_an_expression_separates_nothing() {
        let list = r"^(www|api)\.one\.example$|^[a|b]\.two\.example$".to_owned() + "\n^three\\|x$";
        for host in ["www.one.example", "api.one.example", "a.two.example"] {
            assert!(admits(&list, host), "{host}");
        }
        assert!(!admits(&list, "www") && !admits(&list, "three"));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_what_is_not_anchored_is_told() {
        let wrong = HostPolicy::parse("ok.example|a(b").unwrap_err();
        assert!(wrong.to_string().contains("a(b"), "{wrong}");
        let policy = HostPolicy::parse(r"example\.com|^a\.test$|plain.example|cost\$").unwrap();
        assert_eq!(policy.unanchored().collect::<Vec<_>>(), [r"example\.com", r"cost\$"]);
    }

    proptest! {
        #[test]
        fn plain_names_admit_themselves_and_nothing_else(name in "[a-z]{1,8}(\\.[a-z]{2,5}){1,3}", other in "[a-z]{1,8}(\\.[a-z]{2,5}){1,3}") {
            prop_assert!(admits(&name, &name));
            prop_assert_eq!(admits(&name, &other), name == other);
            let (below, inside, glued) = (format!("*.{name}"), format!("x.{name}"), format!("x{name}"));
            prop_assert!(admits(&below, &inside));
            prop_assert!(!admits(&below, &name) && !admits(&below, &glued));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            let _ = HostPolicy::parse(&text);
        }
    }
}
