//! The accepted forms in words, for messages and the reference.

use crate::kind::{Kind, Unit};
use crate::words::{Lang, Words, words};

/// A number with the thousands set apart, as the language does it.
fn grouped(number: u64, lang: Lang) -> String {
    let digits = number.to_string();
    let mark = match lang {
        Lang::En => ',',
        Lang::De => '.',
        Lang::Fr => '\u{202f}',
    };
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(mark);
        }
        out.push(digit);
    }
    out
}

fn unit(unit: Unit, lang: Lang) -> &'static str {
    match unit {
        Unit::Plain => "",
        Unit::Bytes => words(" bytes", " Byte", " octets").get(lang),
        Unit::Millis => " ms",
        Unit::Seconds => " s",
        Unit::Minutes => words(" minutes", " Minuten", " minutes").get(lang),
        Unit::Hours => words(" hours", " Stunden", " heures").get(lang),
        Unit::Days => words(" days", " Tage", " jours").get(lang),
        Unit::Percent => words("%", " %", " %").get(lang),
    }
}

impl Kind {
    /// The form, completing "expected …" in English and standing alone in a table.
    #[must_use]
    pub fn describe(&self, lang: Lang) -> String {
        let fixed = |all: Words| all.get(lang).to_owned();
        match *self {
            Self::Integer { min, max, unit: counted } => between(min, max, unit(counted, lang), lang),
            Self::Number { min, max } if max.is_infinite() => match lang {
                Lang::En => format!("a number, at least {min}"),
                Lang::De => format!("eine Zahl, mindestens {min}"),
                Lang::Fr => format!("un nombre, au moins {min}"),
            },
            Self::Number { min, max } => match lang {
                Lang::En => format!("a number from {min} to {max}"),
                Lang::De => format!("eine Zahl von {min} bis {max}"),
                Lang::Fr => format!("un nombre de {min} à {max}"),
            },
            Self::Secret { min: 0 | 1 } => fixed(words("a secret text", "ein geheimer Text", "un texte secret")),
            Self::Secret { min } => match lang {
                Lang::En => format!("at least {min} characters"),
                Lang::De => format!("mindestens {min} Zeichen"),
                Lang::Fr => format!("au moins {min} caractères"),
            },
            Self::Token { min, max } => match lang {
                Lang::En => format!("{min} to {max} characters out of A–Z a–z 0–9 . _ ~ -"),
                Lang::De => format!("{min} bis {max} Zeichen aus A–Z a–z 0–9 . _ ~ -"),
                Lang::Fr => format!("{min} à {max} caractères parmi A–Z a–z 0–9 . _ ~ -"),
            },
            Self::Flag(word) => match lang {
                Lang::En => format!("exactly {word}"),
                Lang::De => format!("genau {word}"),
                Lang::Fr => format!("exactement {word}"),
            },
            Self::OneOf(choices) => match lang {
                Lang::En => format!("one of {}", choices.join(", ")),
                Lang::De => format!("eines von {}", choices.join(", ")),
                Lang::Fr => format!("l’une des valeurs {}", choices.join(", ")),
            },
            Self::SomeOf(choices) => match lang {
                Lang::En => format!("a comma-separated list out of {}; or none", choices.join(", ")),
                Lang::De => format!("eine kommagetrennte Liste aus {}; oder none", choices.join(", ")),
                Lang::Fr => format!("une liste séparée par des virgules parmi {} ; ou none", choices.join(", ")),
            },
            Self::Url(schemes) => {
                let list = schemes.join(", ");
                match lang {
                    Lang::En => format!("an absolute URL ({list})"),
                    Lang::De => format!("eine absolute URL ({list})"),
                    Lang::Fr => format!("une URL absolue ({list})"),
                }
            }
            other => fixed(other.fixed_words()),
        }
    }

    fn fixed_words(&self) -> Words {
        match self {
            Self::Word => words("a text without spaces", "ein Text ohne Leerzeichen", "un texte sans espace"),
            Self::HexKey => words(
                "exactly 64 hexadecimal digits",
                "genau 64 Hexadezimalziffern",
                "exactement 64 chiffres hexadécimaux",
            ),
            Self::HexKeys => words(
                "keys of 64 hexadecimal digits, separated by commas",
                "Schlüssel aus je 64 Hexadezimalziffern, durch Kommas getrennt",
                "des clés de 64 chiffres hexadécimaux, séparées par des virgules",
            ),
            Self::Base64Key => words("32 bytes in base64", "32 Byte in Base64", "32 octets en base64"),
            Self::AgeKey => words("one AGE-SECRET-KEY-1…", "ein AGE-SECRET-KEY-1…", "une clé AGE-SECRET-KEY-1…"),
            Self::Port { zero: false } => {
                words("a TCP port, 1 to 65535", "ein TCP-Port, 1 bis 65535", "un port TCP, de 1 à 65535")
            }
            Self::Port { zero: true } => {
                words("a TCP port; 0 = off", "ein TCP-Port; 0 = aus", "un port TCP ; 0 = désactivé")
            }
            Self::Ports => words(
                "TCP ports separated by commas",
                "TCP-Ports, durch Kommas getrennt",
                "des ports TCP séparés par des virgules",
            ),
            Self::Bool => words("true or false", "true oder false", "true ou false"),
            Self::SiteUrl => words(
                "an absolute URL without a path, such as https://tale.example.org; http for loopback hosts only",
                "eine absolute URL ohne Pfad, etwa https://tale.example.org; http nur für Loopback-Hosts",
                "une URL absolue sans chemin, par exemple https://tale.example.org ; http seulement pour les hôtes de bouclage",
            ),
            Self::Origin => words(
                "a bare origin (scheme://host[:port])",
                "eine Origin ohne Pfad (schema://host[:port])",
                "une origine sans chemin (schéma://hôte[:port])",
            ),
            Self::Origins => words(
                "bare origins (scheme://host[:port]) separated by commas or spaces",
                "Origins ohne Pfad (schema://host[:port]), durch Kommas oder Leerzeichen getrennt",
                "des origines sans chemin (schéma://hôte[:port]) séparées par des virgules ou des espaces",
            ),
            Self::Postgres => words(
                "postgresql://USER:PASSWORD@HOST:PORT/NAME, sslmode accepted",
                "postgresql://USER:PASSWORT@HOST:PORT/NAME, sslmode möglich",
                "postgresql://UTILISATEUR:MOTDEPASSE@HÔTE:PORT/NOM, sslmode accepté",
            ),
            Self::BasePath => words(
                "a path prefix such as /app",
                "ein Pfadpräfix, etwa /app",
                "un préfixe de chemin, par exemple /app",
            ),
            Self::HostName => words(
                "a host name without scheme and port",
                "ein Hostname ohne Schema und Port",
                "un nom d’hôte sans schéma ni port",
            ),
            Self::HostPort => words("HOST:PORT", "HOST:PORT", "HÔTE:PORT"),
            Self::Ranges => words(
                "address ranges (CIDR) separated by spaces, or private_ranges",
                "Adressbereiche (CIDR), durch Leerzeichen getrennt, oder private_ranges",
                "des plages d’adresses (CIDR) séparées par des espaces, ou private_ranges",
            ),
            Self::Pool16 => words(
                "a private IPv4 range A.B.0.0/16",
                "ein privater IPv4-Bereich A.B.0.0/16",
                "une plage IPv4 privée A.B.0.0/16",
            ),
            Self::Emails => words(
                "e-mail addresses separated by commas, semicolons or spaces",
                "E-Mail-Adressen, durch Kommas, Semikolons oder Leerzeichen getrennt",
                "des adresses e-mail séparées par des virgules, des points-virgules ou des espaces",
            ),
            Self::Email => words("an e-mail address", "eine E-Mail-Adresse", "une adresse e-mail"),
            Self::HeaderName => {
                words("the name of an HTTP header", "der Name eines HTTP-Headers", "le nom d’un en-tête HTTP")
            }
            Self::Directory => words("a directory", "ein Verzeichnis", "un répertoire"),
            Self::File => words("a file", "eine Datei", "un fichier"),
            Self::DatabaseName => words(
                "a name of letters, digits, _ and -",
                "ein Name aus Buchstaben, Ziffern, _ und -",
                "un nom composé de lettres, de chiffres, de _ et de -",
            ),
            Self::Bucket => words(
                "a bucket name: 3 to 63 lower-case letters, digits, dots and hyphens",
                "ein Bucket-Name: 3 bis 63 Kleinbuchstaben, Ziffern, Punkte und Bindestriche",
                "un nom de bucket : 3 à 63 minuscules, chiffres, points et traits d’union",
            ),
            Self::KeyPrefix => words("a key prefix", "ein Schlüsselpräfix", "un préfixe de clé"),
            Self::Size { zero: false } => words(
                "an amount such as 512m or 2g",
                "eine Menge, etwa 512m oder 2g",
                "une quantité, par exemple 512m ou 2g",
            ),
            Self::Size { zero: true } => words(
                "an amount such as 512m or 2g; 0 = off",
                "eine Menge, etwa 512m oder 2g; 0 = aus",
                "une quantité, par exemple 512m ou 2g ; 0 = désactivé",
            ),
            Self::Quantity => words(
                "a Kubernetes quantity such as 4Gi or 500m",
                "eine Kubernetes-Menge, etwa 4Gi oder 500m",
                "une quantité Kubernetes, par exemple 4Gi ou 500m",
            ),
            Self::Age => words(
                "whole days or hours such as 14d or 336h; off or 0 keeps everything",
                "ganze Tage oder Stunden, etwa 14d oder 336h; off oder 0 behält alles",
                "des jours ou des heures entiers, par exemple 14d ou 336h ; off ou 0 conserve tout",
            ),
            Self::Uuid => words("a UUID", "eine UUID", "un UUID"),
            Self::JsonObject => words("a JSON object", "ein JSON-Objekt", "un objet JSON"),
            Self::JsonArray => words("a JSON array", "ein JSON-Array", "un tableau JSON"),
            Self::UserGroup => {
                words("uid:gid, both at least 1", "uid:gid, beide mindestens 1", "uid:gid, chacun au moins 1")
            }
            Self::Label => words(
                "up to 32 lower-case letters, digits and hyphens",
                "bis zu 32 Kleinbuchstaben, Ziffern und Bindestriche",
                "jusqu’à 32 minuscules, chiffres et traits d’union",
            ),
            Self::TotpClient => words(
                "1 to 40 characters: first a letter or digit, then also space & ' . + -",
                "1 bis 40 Zeichen: zuerst ein Buchstabe oder eine Ziffer, dann auch Leerzeichen & ' . + -",
                "1 à 40 caractères : d’abord une lettre ou un chiffre, puis aussi espace & ' . + -",
            ),
            Self::TotpEnvironment => words(
                "1 to 32 characters: first a letter or digit, then also _ and -",
                "1 bis 32 Zeichen: zuerst ein Buchstabe oder eine Ziffer, dann auch _ und -",
                "1 à 32 caractères : d’abord une lettre ou un chiffre, puis aussi _ et -",
            ),
            _ => words("a text", "ein Text", "un texte"),
        }
    }
}

fn between(min: u64, max: u64, unit: &str, lang: Lang) -> String {
    let low = grouped(min, lang);
    if max == u64::MAX {
        return match lang {
            Lang::En => format!("a whole number, at least {low}{unit}"),
            Lang::De => format!("eine ganze Zahl, mindestens {low}{unit}"),
            Lang::Fr => format!("un nombre entier, au moins {low}{unit}"),
        };
    }
    let high = grouped(max, lang);
    match lang {
        Lang::En => format!("a whole number from {low} to {high}{unit}"),
        Lang::De => format!("eine ganze Zahl von {low} bis {high}{unit}"),
        Lang::Fr => format!("un nombre entier de {low} à {high}{unit}"),
    }
}
