//! The shapes of what people type: addresses, names, slugs.

use tale_core::{Code, Problem};

/// Longest address accepted (RFC 5321 allows no more in a path).
const MAX_EMAIL_BYTES: usize = 254;
/// Longest display name (ACC-7).
const MAX_NAME_CHARS: usize = 200;
/// Longest organization name (ORG-2).
const MAX_ORG_NAME_CHARS: usize = 100;

/// An address as it is stored and compared: trimmed and lower-cased (ACC-1).
#[must_use]
pub fn normalize_email(text: &str) -> String {
    text.trim().to_lowercase()
}

/// A well-formed address in its stored form.
///
/// # Errors
/// `INVALID_BODY` for `email`.
pub fn email(text: &str) -> Result<String, Problem> {
    let email = normalize_email(text);
    let well_formed = email.len() <= MAX_EMAIL_BYTES
        && !email.chars().any(|c| c.is_whitespace() || c.is_control())
        && email.rsplit_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && !local.contains('@')
                && !domain.is_empty()
                && !domain.starts_with(['.', '-'])
                && !domain.ends_with(['.', '-'])
                && !domain.contains("..")
        });
    if well_formed {
        Ok(email)
    } else {
        Err(Problem::invalid_field("email", "must be an e-mail address such as name@example.com"))
    }
}

/// A display name, trimmed.
///
/// # Errors
/// `INVALID_BODY` for `name`.
pub fn person_name(text: &str) -> Result<String, Problem> {
    short_text("name", text, MAX_NAME_CHARS)
}

/// A line of 1 to `max` characters without control characters, trimmed.
///
/// # Errors
/// `INVALID_BODY` for `path`.
pub fn short_text(path: &str, text: &str, max: usize) -> Result<String, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::invalid_field(path, "must not be blank"));
    }
    if text.chars().count() > max {
        return Err(Problem::invalid_field(path, &format!("must have at most {max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::invalid_field(path, "must not contain control characters"));
    }
    Ok(text.to_owned())
}

/// An organization's name, trimmed (ORG-2).
///
/// # Errors
/// `INVALID_BODY` for `path`.
pub fn organization_name(path: &str, text: &str) -> Result<String, Problem> {
    let name = short_text(path, text, MAX_ORG_NAME_CHARS)?;
    if !name.chars().all(|c| c.is_alphanumeric() || is_mark(c) || matches!(c, ' ' | '-' | '_')) {
        return Err(Problem::invalid_field(path, "must have only letters, digits, spaces, hyphens and underscores"));
    }
    if !name.chars().any(char::is_alphanumeric) {
        return Err(Problem::invalid_field(path, "must have a letter or a digit"));
    }
    Ok(name)
}

/// Combining marks that letters of decomposed text are followed by.
fn is_mark(c: char) -> bool {
    ('\u{0300}'..='\u{036f}').contains(&c)
}

/// The slug of an organization's name: ASCII, lower-case, separators as `-` (ORG-3). Letters
/// without an ASCII form are left out; `None` when nothing is left.
///
/// # Errors
/// `ORG_NAME_RESERVED` for the reserved slug.
pub fn slug_of(name: &str) -> Result<Option<String>, Problem> {
    let mut slug = String::with_capacity(name.len());
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if matches!(c, ' ' | '-' | '_') {
            if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        } else {
            slug.push_str(ascii_form(c));
        }
    }
    slug.truncate(MAX_ORG_NAME_CHARS);
    let slug = slug.trim_end_matches('-').to_owned();
    if slug == "default" {
        return Err(Problem::new(Code::OrgNameReserved, "The name `default` is reserved. Choose another name."));
    }
    Ok(Some(slug).filter(|slug| !slug.is_empty()))
}

/// Letters of European languages written with ASCII letters.
fn ascii_form(c: char) -> &'static str {
    match c {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' | 'ĉ' | 'ċ' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì' | 'í' | 'î' | 'ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ō' | 'ŏ' | 'ő' => "o",
        'ö' | 'ø' | 'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ț' => "t",
        'þ' => "th",
        'ù' | 'ú' | 'û' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ü' => "ue",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_normalized_and_judged() {
        assert_eq!(email("  Ada@Example.COM ").unwrap(), "ada@example.com");
        for good in ["a@b", "first.last+tag@sub.example.org", "ünal@exämple.de"] {
            assert!(email(good).is_ok(), "{good}");
        }
        for bad in ["", "ada", "@b", "a@", "a b@c", "a@b@c", "a@.b", "a@b..c", "a\n@b"] {
            assert!(email(bad).is_err(), "{bad:?}");
        }
        assert!(email(&format!("{}@example.com", "a".repeat(250))).is_err());
    }

    #[test]
    fn slugs_are_ascii_and_stable() {
        let slug = |name| slug_of(name).unwrap();
        assert_eq!(slug("Acme Widgets").as_deref(), Some("acme-widgets"));
        assert_eq!(slug("Zürich_Straße - 7").as_deref(), Some("zuerich-strasse-7"));
        assert_eq!(slug("_-Łódź-_").as_deref(), Some("lodz"));
        assert_eq!(slug("東京"), None);
        assert_eq!(slug_of("Default").unwrap_err().code, Code::OrgNameReserved);
        assert_eq!(slug_of(" default_").unwrap_err().code, Code::OrgNameReserved);
    }

    #[test]
    fn organization_names_keep_to_their_characters() {
        assert_eq!(organization_name("name", "  Acme 2 ").unwrap(), "Acme 2");
        for bad in ["", "  ", "Acme & Co", "a/b", "---", "a\tb", &"x".repeat(101)] {
            assert!(organization_name("name", bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_slug_fits_a_header_and_a_key(name in "\\PC{1,120}") {
            if let Ok(Some(slug)) = slug_of(&name) {
                prop_assert!(slug.len() <= 100 && !slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"));
                prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            }
        }
    }
}
