//! The short list of words that people build bad passwords from. A password counts as common when
//! such a word is all there is after the usual decoration (digits and signs at either end, letters
//! swapped for look-alikes) is taken off.

/// Words, lower-case, without decoration. Kept sorted for the search.
const WORDS: &[&str] = &[
    "abcabc",
    "abcd",
    "abcdef",
    "abcdefg",
    "abcdefgh",
    "access",
    "admin",
    "administrator",
    "adminadmin",
    "asdf",
    "asdfasdf",
    "asdfgh",
    "asdfghjkl",
    "azerty",
    "azertyuiop",
    "bailey",
    "baseball",
    "basketball",
    "batman",
    "berlin",
    "bonjour",
    "changeit",
    "changeme",
    "charlie",
    "chocolate",
    "computer",
    "december",
    "default",
    "donald",
    "dragon",
    "einstein",
    "england",
    "facebook",
    "flower",
    "football",
    "france",
    "freedom",
    "frankfurt",
    "geheim",
    "germany",
    "google",
    "hallo",
    "hallohallo",
    "hamburg",
    "hello",
    "hellohello",
    "helloworld",
    "hockey",
    "hunter",
    "iloveyou",
    "internet",
    "january",
    "jesus",
    "jordan",
    "joshua",
    "killer",
    "letmein",
    "letmeinnow",
    "liverpool",
    "login",
    "london",
    "loulou",
    "lovely",
    "loveme",
    "master",
    "matrix",
    "michael",
    "michelle",
    "monkey",
    "motdepasse",
    "mustang",
    "mypassword",
    "nicole",
    "ninja",
    "november",
    "october",
    "pass",
    "passwd",
    "password",
    "passwordpassword",
    "passwort",
    "passwortpasswort",
    "paris",
    "parola",
    "pokemon",
    "princess",
    "qazwsx",
    "qazwsxedc",
    "qwer",
    "qwerty",
    "qwertyuiop",
    "qwertz",
    "qwertzuiop",
    "ranger",
    "root",
    "rootroot",
    "samsung",
    "schalke",
    "schatz",
    "secret",
    "secretpassword",
    "september",
    "shadow",
    "sommer",
    "soleil",
    "spring",
    "starwars",
    "summer",
    "sunshine",
    "superman",
    "supersecret",
    "tale",
    "taletale",
    "test",
    "testing",
    "testtest",
    "thomas",
    "trustno",
    "user",
    "welcome",
    "welcometo",
    "whatever",
    "willkommen",
    "winter",
    "yellow",
    "zaqwsx",
    "zxcvbn",
    "zxcvbnm",
];

/// Whether `password` is a common word with nothing but decoration.
pub(super) fn is_common(password: &str) -> bool {
    let lower = password.to_lowercase();
    let sign = |c: char| !c.is_alphabetic();
    // The look-alikes at an end may be part of the word (`$ecret`) or decoration (`secret5`).
    let ends = [lower.trim_matches(sign), lower.trim_start_matches(sign), lower.trim_end_matches(sign), &lower];
    one_character(&lower)
        || ends.iter().any(|cut| {
            let plain: String = cut.chars().map(look_alike).collect();
            listed(cut) || listed(plain.trim_matches(sign))
        })
}

fn listed(word: &str) -> bool {
    WORDS.contains(&word)
}

fn one_character(password: &str) -> bool {
    let mut chars = password.chars();
    chars.next().is_some_and(|first| chars.all(|c| c == first))
}

fn look_alike(c: char) -> char {
    match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorated_common_words_are_seen_and_phrases_pass() {
        for common in [
            "Password123!",
            "P@ssw0rd2024!",
            "$ecret12345",
            "Qwertyuiop1!",
            "Welcome2025!!",
            "!!!!!!!!!!!!",
            "Pa$$word1234",
            "123Admin!!!",
        ] {
            assert!(is_common(common), "{common}");
        }
        for fine in ["correct horse battery staple", "Owner-Passphrase-1", "Tr0ub4dor&3x-quiet", "", "Blue-Kettle-42!"]
        {
            assert!(!is_common(fine), "{fine}");
        }
    }
}
