//! What a value may be. [`Kind::check`] is the one place that parses and explains.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use url::{Host, Url};

/// What a whole number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nothing in particular.
    Plain,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
    /// Hundredths.
    Percent,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Text without white space.
    Word,
    /// A secret of at least so many characters.
    Secret {
        /// Fewest characters.
        min: usize,
    },
    /// Letters, digits, `.`, `_`, `~` and `-`.
    Token {
        /// Fewest characters.
        min: usize,
        /// Most characters.
        max: usize,
    },
    /// 32 bytes as 64 hexadecimal digits.
    HexKey,
    /// Several of them, separated by commas.
    HexKeys,
    /// 32 bytes in base64.
    Base64Key,
    /// An age key.
    AgeKey,
    /// A whole number.
    Integer {
        /// Smallest.
        min: u64,
        /// Largest; `u64::MAX` for no bound.
        max: u64,
        /// What it counts.
        unit: Unit,
    },
    /// A decimal number.
    Number {
        /// Smallest.
        min: f64,
        /// Largest; `f64::INFINITY` for no bound.
        max: f64,
    },
    /// A TCP port. A service link of an orchestrator (`tcp://…`) counts as unset (DCF-231).
    Port {
        /// Whether 0 means off.
        zero: bool,
    },
    /// TCP ports separated by commas.
    Ports,
    /// True or false.
    Bool,
    /// On with exactly this word.
    Flag(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words, separated by commas, or `none`.
    SomeOf(&'static [&'static str]),
    /// The canonical origin: https, or http for a loopback host.
    SiteUrl,
    /// An origin.
    Origin,
    /// Origins separated by commas or white space.
    Origins,
    /// An absolute URL with one of these schemes.
    Url(&'static [&'static str]),
    /// A connection URL of a Postgres database.
    Postgres,
    /// A path prefix such as `/app`.
    BasePath,
    /// A host name without scheme and port.
    HostName,
    /// A host and a port.
    HostPort,
    /// Address ranges, or `private_ranges`.
    Ranges,
    /// A private IPv4 range of 65,536 addresses.
    Pool16,
    /// E-mail addresses separated by commas, semicolons or white space.
    Emails,
    /// An e-mail address.
    Email,
    /// The name of an HTTP header.
    HeaderName,
    /// A directory.
    Directory,
    /// A file.
    File,
    /// The name of a Postgres database or role.
    DatabaseName,
    /// The name of an S3 bucket.
    Bucket,
    /// A prefix of object keys.
    KeyPrefix,
    /// An amount such as `512m` or `2g`.
    Size {
        /// Whether 0 is an answer.
        zero: bool,
    },
    /// A Kubernetes quantity such as `4Gi` or `500m`.
    Quantity,
    /// Whole days or hours such as `14d` or `336h`; `off` or `0`.
    Age,
    /// A UUID.
    Uuid,
    /// A JSON object.
    JsonObject,
    /// A JSON array.
    JsonArray,
    /// `uid:gid`, both at least 1.
    UserGroup,
    /// A label of lower-case letters, digits and hyphens.
    Label,
    /// The client in authenticator labels.
    TotpClient,
    /// The environment in authenticator labels.
    TotpEnvironment,
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number; bytes for a size.
    Integer(u64),
    /// A decimal number.
    Number(f64),
    /// A switch.
    Switch(bool),
    /// A URL.
    Url(Url),
    /// Several URLs.
    Urls(Vec<Url>),
    /// Several words.
    List(Vec<String>),
}

/// Why a value cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What is wrong, continuing "the value …". It holds no part of the value.
    pub why: String,
    /// The nearest usable value, for what is clamped.
    pub nearest: Option<u64>,
    /// Whether the value is not meant for us at all: a service link in a port variable.
    pub foreign: bool,
}

impl Fault {
    fn of(why: impl Into<String>) -> Self {
        Self { why: why.into(), nearest: None, foreign: false }
    }
}

impl Kind {
    /// Parses `text`, which is trimmed and not empty.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn check(&self, text: &str) -> Result<Value, Fault> {
        let kept = || Ok(Value::Text(text.to_owned()));
        let require = |sound: bool, why: &str| if sound { kept() } else { Err(Fault::of(why)) };
        match *self {
            Self::Text | Self::Directory | Self::File => require(!text.contains('\0'), "contains a NUL character"),
            Self::Word | Self::KeyPrefix => require(!text.chars().any(char::is_whitespace), "contains white space"),
            Self::Secret { min } => require(text.chars().count() >= min, "is too short"),
            Self::Token { min, max } => token(text, min, max),
            Self::HexKey => require(is_hex_key(text), "is not 64 hexadecimal digits"),
            Self::HexKeys => {
                let keys: Vec<String> = items(text, ",").map(str::to_owned).collect();
                match keys.iter().all(|key| is_hex_key(key)) {
                    true => Ok(Value::List(keys)),
                    false => Err(Fault::of("holds something else than keys of 64 hexadecimal digits")),
                }
            }
            Self::Base64Key => match STANDARD.decode(text) {
                Ok(bytes) if bytes.len() == 32 => kept(),
                _ => Err(Fault::of("is not 32 bytes in base64")),
            },
            Self::AgeKey => require(
                text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-1") && !text.contains(char::is_whitespace),
                "is not one age key",
            ),
            Self::Integer { min, max, .. } => integer(text, min, max),
            Self::Number { min, max } => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && (min..=max).contains(&number) => Ok(Value::Number(number)),
                Ok(number) if number.is_finite() => Err(Fault::of("is out of range")),
                _ => Err(Fault::of("is not a number")),
            },
            Self::Port { zero } => port(text, zero),
            Self::Ports => {
                let ports: Vec<String> = items(text, ",").map(str::to_owned).collect();
                match !ports.is_empty() && ports.iter().all(|entry| port(entry, false).is_ok()) {
                    true => Ok(Value::List(ports)),
                    false => Err(Fault::of("holds something else than ports")),
                }
            }
            Self::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(Value::Switch(true)),
                "false" | "0" | "no" | "off" => Ok(Value::Switch(false)),
                _ => Err(Fault::of("is neither true nor false")),
            },
            Self::Flag(word) => match text {
                _ if text == word => Ok(Value::Switch(true)),
                // Everybody's words for "off" leave it off without a complaint.
                "0" | "false" | "no" | "off" => Ok(Value::Switch(false)),
                _ => Err(Fault::of(format!("is not exactly {word}"))),
            },
            Self::OneOf(choices) => require(choices.contains(&text), "is none of the choices"),
            Self::SomeOf(choices) => {
                let chosen: Vec<String> = items(text, ",").map(str::to_owned).collect();
                let none = chosen.len() == 1 && chosen[0] == "none";
                match !chosen.is_empty() && (none || chosen.iter().all(|word| choices.contains(&word.as_str()))) {
                    true => Ok(Value::List(if none { Vec::new() } else { chosen })),
                    false => Err(Fault::of("holds something else than the choices")),
                }
            }
            Self::SiteUrl => site_url(text),
            Self::Origin => match origin(text) {
                Some(url) => Ok(Value::Url(url)),
                None => Err(Fault::of("is not a bare origin")),
            },
            Self::Origins => origins(text),
            Self::Url(schemes) => url(text, schemes),
            Self::Postgres => postgres(text),
            Self::BasePath => base_path(text),
            Self::HostName => require(is_host(text), "is not a host name"),
            Self::HostPort => require(is_host_port(text), "is not a host and a port"),
            Self::Ranges => ranges(text),
            Self::Pool16 => require(is_private_pool(text), "is not a private IPv4 /16"),
            Self::Emails => {
                let list: Vec<String> =
                    text.split(is_separator).filter(|entry| !entry.is_empty()).map(str::to_lowercase).collect();
                match list.iter().all(|entry| is_email(entry)) {
                    true => Ok(Value::List(list)),
                    false => Err(Fault::of("holds something else than e-mail addresses")),
                }
            }
            Self::Email => require(is_email(text), "is not an e-mail address"),
            Self::HeaderName => require(
                text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)),
                "is not the name of a header",
            ),
            Self::DatabaseName => require(
                text.len() <= 63
                    && !text.starts_with(|c: char| c.is_ascii_digit())
                    && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-$".contains(&b)),
                "is not a plain name",
            ),
            Self::Bucket => require(is_bucket(text), "is not a bucket name"),
            Self::Size { zero } => size(text, zero),
            Self::Quantity => require(is_quantity(text), "is not a quantity above zero"),
            Self::Age => require(is_age(text), "is not a number of days or hours"),
            Self::Uuid => require(is_uuid(text), "is not a UUID"),
            Self::JsonObject => require(
                serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object()),
                "is not a JSON object",
            ),
            Self::JsonArray => require(
                serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_array()),
                "is not a JSON array",
            ),
            Self::UserGroup => {
                let id = |part: &str| part.parse::<u32>().is_ok_and(|id| id >= 1);
                require(text.split_once(':').is_some_and(|(user, group)| id(user) && id(group)), "is not uid:gid")
            }
            Self::Label => require(
                text.len() <= 32 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "holds other characters or is too long",
            ),
            Self::TotpClient => require(is_totp_client(text), "holds other characters or is too long"),
            Self::TotpEnvironment => require(
                text.chars().count() <= 32
                    && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'),
                "holds other characters or is too long",
            ),
        }
    }
}

/// Whether a list is split here.
fn is_separator(c: char) -> bool {
    c == ',' || c == ';' || c.is_whitespace()
}

fn items<'a>(text: &'a str, at: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(at).map(str::trim).filter(|entry| !entry.is_empty())
}

fn is_hex_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn token(text: &str, min: usize, max: usize) -> Result<Value, Fault> {
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b)) {
        return Err(Fault::of("holds other characters"));
    }
    match text.len() {
        length if length < min => Err(Fault::of("is too short")),
        length if length > max => Err(Fault::of("is too long")),
        _ => Ok(Value::Text(text.to_owned())),
    }
}

fn integer(text: &str, min: u64, max: u64) -> Result<Value, Fault> {
    // A sign, a fraction or a unit is a misunderstanding, so `parse` alone is too friendly.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let negative = text.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        let nearest = (negative && text.len() > 1).then_some(min);
        return Err(Fault { why: "is not a whole number".to_owned(), nearest, foreign: false });
    }
    match text.parse::<u64>() {
        Ok(number) if number < min => Err(Fault { why: format!("is below {min}"), nearest: Some(min), foreign: false }),
        Ok(number) if number <= max => Ok(Value::Integer(number)),
        _ => Err(Fault { why: format!("is above {max}"), nearest: Some(max), foreign: false }),
    }
}

fn port(text: &str, zero: bool) -> Result<Value, Fault> {
    if text.starts_with("tcp://") || text.starts_with("udp://") {
        let why = "is a service link of the orchestrator and no port".to_owned();
        return Err(Fault { why, nearest: None, foreign: true });
    }
    integer(text, if zero { 0 } else { 1 }, 65_535)
}

/// The bare origin that `text` is.
pub(crate) fn origin(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let bare = matches!(url.scheme(), "http" | "https")
        && url.host().is_some()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    bare.then_some(url)
}

/// Whether the host of `url` is this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(v4)) => v4.is_loopback(),
        Some(Host::Ipv6(v6)) => v6.is_loopback(),
        None => false,
    }
}

fn site_url(text: &str) -> Result<Value, Fault> {
    match origin(text) {
        None => Err(Fault::of("is not an absolute URL without a path")),
        Some(url) if url.scheme() == "https" || is_loopback(&url) => Ok(Value::Url(url)),
        Some(_) => Err(Fault::of("is plain http, which is for loopback hosts only")),
    }
}

fn origins(text: &str) -> Result<Value, Fault> {
    let mut found = Vec::new();
    for (index, entry) in text.split(is_separator).filter(|entry| !entry.is_empty()).enumerate() {
        match origin(entry) {
            Some(url) => found.push(url),
            None => return Err(Fault::of(format!("is not a list of bare origins: look at entry {}", index + 1))),
        }
    }
    Ok(Value::Urls(found))
}

fn url(text: &str, schemes: &[&str]) -> Result<Value, Fault> {
    match Url::parse(text) {
        Ok(url) if !schemes.contains(&url.scheme()) => Err(Fault::of("has another scheme")),
        Ok(url) if url.host_str().is_some_and(|host| !host.is_empty()) => Ok(Value::Url(url)),
        _ => Err(Fault::of("is not an absolute URL")),
    }
}

fn postgres(text: &str) -> Result<Value, Fault> {
    let url = match url(text, &["postgres", "postgresql"])? {
        Value::Url(url) if url.path().len() > 1 => url,
        _ => return Err(Fault::of("names no database")),
    };
    let modes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
    match url.query_pairs().find(|(name, _)| name == "sslmode") {
        Some((_, mode)) if !modes.contains(&mode.as_ref()) => Err(Fault::of("asks for an unknown sslmode")),
        _ => Ok(Value::Text(text.to_owned())),
    }
}

fn base_path(text: &str) -> Result<Value, Fault> {
    let path = text.trim_end_matches('/');
    let sound = path.is_empty()
        || (path.starts_with('/')
            && !path.contains("//")
            && path.split('/').all(|part| part != "." && part != "..")
            && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~".contains(&b)));
    if sound { Ok(Value::Text(path.to_owned())) } else { Err(Fault::of("is not a plain path that begins with /")) }
}

fn is_host(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner.unwrap_or(text).parse::<IpAddr>().is_ok() {
        return true;
    }
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
}

fn is_host_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, number)| is_host(host) && port(number, false).is_ok())
}

fn ranges(text: &str) -> Result<Value, Fault> {
    let list: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match list.iter().all(|entry| entry == "private_ranges" || is_range(entry)) {
        true => Ok(Value::List(list)),
        false => Err(Fault::of("holds something else than address ranges")),
    }
}

fn is_range(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}

fn is_private_pool(text: &str) -> bool {
    let Some(Ok(address)) = text.strip_suffix("/16").map(str::parse::<Ipv4Addr>) else { return false };
    address.is_private() && address.octets()[2..] == [0, 0]
}

fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.rsplit_once('@') else { return false };
    !name.is_empty() && name.len() <= 64 && !text.contains(char::is_whitespace) && is_host(domain)
}

fn is_bucket(text: &str) -> bool {
    (3..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..")
}

fn size(text: &str, zero: bool) -> Result<Value, Fault> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: Option<u64> = match lower[digits.len()..].as_ref() {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => None,
    };
    let number = if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse::<u64>().ok() } else { None };
    match number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor)) {
        Some(0) if !zero => Err(Fault::of("is zero")),
        Some(bytes) => Ok(Value::Integer(bytes)),
        None => Err(Fault::of("is not an amount")),
    }
}

fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].contains(&unit)
        && digits.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0)
}

fn is_age(text: &str) -> bool {
    matches!(text, "off" | "0")
        || text
            .strip_suffix(['d', 'h'])
            .is_some_and(|number| number.parse::<u32>().is_ok() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len).collect::<Vec<_>>();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

fn is_totp_client(text: &str) -> bool {
    text.chars().count() <= 40
        && text.starts_with(char::is_alphanumeric)
        && text.chars().all(|c| c.is_alphanumeric() || " &'.+-".contains(c))
}
