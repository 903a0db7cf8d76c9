//! Filters (RFC 7644, 3.4.2.2) and the paths of changes (3.5.2): read from text into a tree of bounded size and
//! depth, then asked of resources. Nothing of a filter ever becomes part of a statement.

use serde_json::Value;

use super::schema::{self, Attribute, Kind};
use super::{Invalid, ScimError};

/// Longest filter or path, in bytes.
const MAX_BYTES: usize = 4_096;
/// Deepest nesting of brackets.
const MAX_DEPTH: usize = 16;
/// Most comparisons.
const MAX_TERMS: usize = 64;

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filter {
    Compare(AttrPath, Operator, Value),
    Present(AttrPath),
    /// `attribute[filter]`: one value of the attribute matches as a whole.
    Within(String, Box<Filter>),
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// An attribute, or a part of one, without the name of its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttrPath {
    pub(crate) attribute: String,
    pub(crate) sub: Option<String>,
}

/// The target of a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) attribute: String,
    pub(crate) filter: Option<Filter>,
    pub(crate) sub: Option<String>,
}

fn wrong(detail: impl Into<String>) -> ScimError {
    ScimError::invalid(Invalid::Filter, detail)
}

/// Reads a filter.
pub(crate) fn parse(text: &str) -> Result<Filter, ScimError> {
    let mut reader = Reader::new(text)?;
    let filter = reader.any(0)?;
    reader.end()?;
    Ok(filter)
}

/// Reads the path of a change.
pub(crate) fn parse_target(text: &str) -> Result<Target, ScimError> {
    let path = |error: ScimError| match error {
        ScimError::Invalid { detail, .. } => ScimError::invalid(Invalid::Path, detail),
        other => other,
    };
    let mut reader = Reader::new(text).map_err(path)?;
    let AttrPath { attribute, mut sub } = reader.attribute().map_err(path)?;
    let mut filter = None;
    if reader.eat("[") {
        if sub.is_some() {
            return Err(ScimError::invalid(Invalid::Path, "a filter can follow an attribute, not a part of one"));
        }
        filter = Some(reader.any(1)?);
        if !reader.eat("]") {
            return Err(ScimError::invalid(Invalid::Path, "a closing bracket is missing"));
        }
        if reader.eat(".") {
            sub = Some(reader.name().map_err(path)?.to_owned());
        }
    }
    reader.end().map_err(path)?;
    Ok(Target { attribute, filter, sub })
}

/// Reads the name of an attribute, as lists of attributes have it.
pub(crate) fn parse_attribute(text: &str) -> Result<AttrPath, ScimError> {
    let mut reader = Reader::new(text)?;
    let path = reader.attribute()?;
    reader.end()?;
    Ok(path)
}

struct Reader<'a> {
    rest: &'a str,
    terms: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self, ScimError> {
        if text.len() > MAX_BYTES {
            return Err(wrong(format!("a filter or path has at most {MAX_BYTES} bytes")));
        }
        Ok(Self { rest: text.trim(), terms: 0 })
    }

    fn end(&self) -> Result<(), ScimError> {
        if self.rest.is_empty() { Ok(()) } else { Err(wrong("something stands where the filter should end")) }
    }

    fn space(&mut self) -> bool {
        let rest = self.rest.trim_start_matches(' ');
        let moved = rest.len() < self.rest.len();
        self.rest = rest;
        moved
    }

    fn eat(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A word of the language, whatever its case, that ends where a word ends.
    fn word(&mut self, word: &str) -> bool {
        let found = self.rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
            && !self.rest[word.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || "-_.:$".contains(c));
        if found {
            self.rest = &self.rest[word.len()..];
        }
        found
    }

    fn any(&mut self, depth: usize) -> Result<Filter, ScimError> {
        self.list(depth, "or", Filter::Any, Self::all)
    }

    fn all(&mut self, depth: usize) -> Result<Filter, ScimError> {
        self.list(depth, "and", Filter::All, Self::one)
    }

    fn list(
        &mut self,
        depth: usize,
        word: &str,
        make: fn(Vec<Filter>) -> Filter,
        part: fn(&mut Self, usize) -> Result<Filter, ScimError>,
    ) -> Result<Filter, ScimError> {
        let first = part(self, depth)?;
        let mut parts = vec![first];
        loop {
            let before = self.rest;
            if !(self.space() && self.word(word)) {
                self.rest = before;
                break;
            }
            self.space();
            parts.push(part(self, depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { make(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<Filter, ScimError> {
        if depth > MAX_DEPTH {
            return Err(wrong(format!("brackets are nested deeper than {MAX_DEPTH}")));
        }
        self.space();
        let before = self.rest;
        if self.word("not") {
            self.space();
            if self.eat("(") {
                return Ok(Filter::Not(Box::new(self.bracketed(depth)?)));
            }
            self.rest = before;
        }
        if self.eat("(") {
            return self.bracketed(depth);
        }
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(wrong(format!("a filter has at most {MAX_TERMS} comparisons")));
        }
        let path = self.attribute()?;
        if self.eat("[") {
            if path.sub.is_some() {
                return Err(wrong("a filter can follow an attribute, not a part of one"));
            }
            let inner = self.any(depth + 1)?;
            self.space();
            if !self.eat("]") {
                return Err(wrong("a closing bracket is missing"));
            }
            return Ok(Filter::Within(path.attribute, Box::new(inner)));
        }
        if !self.space() {
            return Err(wrong("an operator is missing"));
        }
        if self.word("pr") {
            return Ok(Filter::Present(path));
        }
        let operator = self.operator()?;
        if !self.space() {
            return Err(wrong("a value is missing"));
        }
        let value = self.value()?;
        Ok(Filter::Compare(path, operator, value))
    }

    fn bracketed(&mut self, depth: usize) -> Result<Filter, ScimError> {
        let inner = self.any(depth + 1)?;
        self.space();
        if self.eat(")") { Ok(inner) } else { Err(wrong("a closing parenthesis is missing")) }
    }

    fn operator(&mut self) -> Result<Operator, ScimError> {
        const WORDS: [(&str, Operator); 9] = [
            ("eq", Operator::Equal),
            ("ne", Operator::NotEqual),
            ("co", Operator::Contains),
            ("sw", Operator::StartsWith),
            ("ew", Operator::EndsWith),
            ("gt", Operator::Greater),
            ("ge", Operator::GreaterOrEqual),
            ("lt", Operator::Less),
            ("le", Operator::LessOrEqual),
        ];
        let found = WORDS.into_iter().find(|(word, _)| self.word(word));
        found
            .map(|(_, operator)| operator)
            .ok_or_else(|| wrong("the operator is none of eq, ne, co, sw, ew, gt, ge, lt, le and pr"))
    }

    fn name(&mut self) -> Result<&'a str, ScimError> {
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_$".contains(c))).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '$') {
            return Err(wrong("the name of an attribute is missing"));
        }
        self.rest = rest;
        Ok(name)
    }

    fn attribute(&mut self) -> Result<AttrPath, ScimError> {
        if self.rest.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("urn:")) {
            let end = self
                .rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.:$".contains(c)))
                .unwrap_or(self.rest.len());
            let (whole, rest) = self.rest.split_at(end);
            if let Some(inner) = schema::without_urn(whole) {
                let mut inner = Reader { rest: inner, terms: 0 };
                let path = inner.plain_attribute()?;
                inner.end()?;
                self.rest = rest;
                return Ok(path);
            }
            // Of a schema that is not ours: an attribute that nobody has.
            self.rest = rest;
            return Ok(AttrPath { attribute: whole.to_owned(), sub: None });
        }
        self.plain_attribute()
    }

    fn plain_attribute(&mut self) -> Result<AttrPath, ScimError> {
        let attribute = self.name()?.to_owned();
        let sub = if self.eat(".") { Some(self.name()?.to_owned()) } else { None };
        Ok(AttrPath { attribute, sub })
    }

    fn value(&mut self) -> Result<Value, ScimError> {
        let unreadable = || wrong("a value must be a text in quotes, a number, true, false or null");
        if self.rest.starts_with('"') {
            let mut escaped = false;
            let end = self.rest.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            });
            let (end, _) = end.ok_or_else(|| wrong("a closing quote is missing"))?;
            let (text, rest) = self.rest.split_at(end + 1);
            self.rest = rest;
            return serde_json::from_str(text).map_err(|_| unreadable());
        }
        let end = self.rest.find([' ', ')', ']']).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        let value = match text.to_ascii_lowercase().as_str() {
            // Some directories write them so.
            text @ ("true" | "false" | "null") => serde_json::from_str(text),
            _ => serde_json::from_str(text),
        };
        self.rest = rest;
        match value {
            Ok(value @ (Value::Bool(_) | Value::Number(_) | Value::Null)) => Ok(value),
            _ => Err(unreadable()),
        }
    }
}

impl Filter {
    /// Whether a resource with `attributes` matches.
    pub(crate) fn matches(&self, attributes: &[Attribute], resource: &Value) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(attributes, resource)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(attributes, resource)),
            Self::Not(inner) => !inner.matches(attributes, resource),
            Self::Present(path) => values(attributes, resource, path).1.iter().any(|value| is_there(value)),
            Self::Within(name, inner) => {
                let Some(attribute) = schema::find(attributes, name) else { return false };
                each(resource.get(attribute.name)).any(|value| inner.matches(attribute.sub, value))
            }
            Self::Compare(path, operator, wanted) => {
                let (exact, found) = values(attributes, resource, path);
                if found.is_empty() {
                    return match operator {
                        Operator::Equal => wanted.is_null(),
                        Operator::NotEqual => !wanted.is_null(),
                        _ => false,
                    };
                }
                match operator {
                    Operator::NotEqual => !found.iter().any(|value| compares(value, Operator::Equal, wanted, exact)),
                    _ => found.iter().any(|value| compares(value, *operator, wanted, exact)),
                }
            }
        }
    }

    /// The text that every match has as the named attribute, when the filter says so: what to look up by an index.
    pub(crate) fn fixed(&self, attribute: &str, sub: Option<&str>) -> Option<&str> {
        match self {
            Self::Compare(path, Operator::Equal, Value::String(text)) => path.names(attribute, sub).then_some(text),
            Self::Within(name, inner) if name.eq_ignore_ascii_case(attribute) => inner.fixed(sub?, None),
            Self::All(parts) => parts.iter().find_map(|part| part.fixed(attribute, sub)),
            _ => None,
        }
    }
}

impl AttrPath {
    pub(crate) fn names(&self, attribute: &str, sub: Option<&str>) -> bool {
        let same = |own: &Option<String>| match (own, sub) {
            (None, None) => true,
            (Some(own), Some(sub)) => own.eq_ignore_ascii_case(sub),
            // An attribute with several values stands for their `value`.
            (None, Some(sub)) => sub == "value",
            (Some(_), None) => false,
        };
        self.attribute.eq_ignore_ascii_case(attribute) && same(&self.sub)
    }
}

fn each(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (many, one) = match value {
        Some(Value::Array(many)) => (many.as_slice(), None),
        one => (&[][..], one),
    };
    many.iter().chain(one)
}

fn is_there(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(many) => !many.is_empty(),
        Value::Object(parts) => !parts.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// What a resource has at a path, and whether its case counts.
fn values<'a>(attributes: &[Attribute], resource: &'a Value, path: &AttrPath) -> (bool, Vec<&'a Value>) {
    let Some(attribute) = schema::find(attributes, &path.attribute) else { return (false, Vec::new()) };
    let found = each(resource.get(attribute.name));
    let sub = match (&path.sub, attribute.kind) {
        (Some(sub), _) => schema::find(attribute.sub, sub).map(Some),
        (None, Kind::Complex) if attribute.many => Some(schema::find(attribute.sub, "value")),
        (None, _) => Some(None),
    };
    match sub {
        None => (false, Vec::new()),
        Some(None) => (attribute.exact, found.collect()),
        Some(Some(sub)) => (sub.exact, found.filter_map(|value| value.get(sub.name)).collect()),
    }
}

fn compares(value: &Value, operator: Operator, wanted: &Value, exact: bool) -> bool {
    use std::cmp::Ordering;
    let order = match (value, wanted) {
        (Value::String(value), Value::String(wanted)) => {
            let fold = |text: &str| if exact { text.to_owned() } else { text.to_lowercase() };
            let (value, wanted) = (fold(value), fold(wanted));
            match operator {
                Operator::Contains => return value.contains(&wanted),
                Operator::StartsWith => return value.starts_with(&wanted),
                Operator::EndsWith => return value.ends_with(&wanted),
                _ => value.cmp(&wanted),
            }
        }
        (Value::Bool(value), Value::Bool(wanted)) => {
            return operator == Operator::Equal && value == wanted;
        }
        // Some directories put truth into quotes.
        (Value::Bool(value), Value::String(wanted)) => {
            return operator == Operator::Equal && wanted.eq_ignore_ascii_case(if *value { "true" } else { "false" });
        }
        _ => return false,
    };
    match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::Greater => order == Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::NotEqual | Operator::Contains | Operator::StartsWith | Operator::EndsWith => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn ann() -> Value {
        json!({
            "id": "1", "userName": "Ann@Acme.test", "externalId": "X1", "active": true, "title": "a \"b\" c",
            "name": { "familyName": "Lee" },
            "emails": [{ "value": "ann@acme.test", "type": "work", "primary": true }, { "value": "a@home.test", "type": "home" }],
        })
    }

    fn holds(filter: &str) -> bool {
        parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}")).matches(schema::USER, &ann())
    }

    #[test]
    fn filters_mean_what_the_standard_says() {
        for yes in [
            r#"userName eq "ann@acme.TEST""#,
            r#"USERNAME EQ "ann@acme.test" and active eq true"#,
            r#"urn:ietf:params:scim:schemas:core:2.0:User:userName sw "ANN""#,
            r#"urn:ietf:params:scim:schemas:core:2.0:User:name.familyName eq "lee""#,
            r#"externalId eq "X1""#,
            r#"emails eq "a@home.test""#,
            r#"emails[type eq "work" and value co "@acme"]"#,
            r#"emails.type eq "home" and not (emails.value ew "example.test")"#,
            r#"title eq "a \"b\" c""#,
            r#"title pr and name.familyName gt "Ka" and name.familyName le "lee""#,
            r#"nickName eq "x" or (displayName pr or active eq True)"#,
            r#"title ne "boss""#,
            r#"displayName eq null"#,
            r#"active eq "True""#,
            "notes pr or active eq true",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            r#"externalId eq "x1""#,
            r#"emails[type eq "work" and value co "home"]"#,
            r#"userName eq "ann@acme.test" and active eq false or title eq "x""#,
            r#"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq "x""#,
            r#"userName eq 1"#,
            r#"displayName pr"#,
            r#"userName eq "' OR 1=1 --""#,
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let deep = format!("{}active pr{}", "(".repeat(40), ")".repeat(40));
        let long = vec!["active pr"; 65].join(" or ");
        let huge = format!("userName eq \"{}\"", "x".repeat(5_000));
        for text in [
            "",
            "userName",
            "userName eq",
            "userName eq x",
            r#"userName eq "x"#,
            r#"userName eq "x" and"#,
            "(active pr",
            "active pr)",
            r#"emails[type eq "x""#,
            r#"emails.type[value pr]"#,
            r#"userName like "x""#,
            "1 eq 1",
            "userName eq {}",
            r#"userName eq "\x""#,
            "userName  pr pr",
            &deep,
            &long,
            &huge,
        ] {
            assert!(matches!(parse(text), Err(ScimError::Invalid { kind: Invalid::Filter, .. })), "{text}");
        }
    }

    #[test]
    fn targets_of_changes_are_read() {
        let target = parse_target(r#"emails[type eq "work"].value"#).unwrap();
        assert_eq!(
            (target.attribute.as_str(), target.sub.as_deref(), target.filter.is_some()),
            ("emails", Some("value"), true)
        );
        let target = parse_target("urn:ietf:params:scim:schemas:core:2.0:User:name.givenName").unwrap();
        assert_eq!((target.attribute.as_str(), target.sub.as_deref()), ("name", Some("givenName")));
        for text in ["", "emails[", "emails[type eq \"a\"]x", "a.b.c", "a.b[c pr]", "members value"] {
            assert!(parse_target(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_can_be_looked_up_is_found() {
        let fixed = |text: &str| parse(text).unwrap().fixed("userName", None).map(str::to_owned);
        assert_eq!(fixed(r#"active eq true and userName eq "a""#).as_deref(), Some("a"));
        assert_eq!(fixed(r#"active eq true or userName eq "a""#), None);
        assert_eq!(fixed(r#"not (userName eq "a")"#), None);
        let member = parse(r#"members[value eq "7"]"#).unwrap();
        assert_eq!(member.fixed("members", Some("value")), Some("7"));
        assert_eq!(parse(r#"members eq "7""#).unwrap().fixed("members", Some("value")), Some("7"));
    }

    /// Writes a filter so that it reads back as itself.
    fn written(filter: &Filter) -> String {
        let path = |path: &AttrPath| match &path.sub {
            Some(sub) => format!("{}.{sub}", path.attribute),
            None => path.attribute.clone(),
        };
        let list = |parts: &[Filter], word: &str| {
            parts.iter().map(|part| format!("({})", written(part))).collect::<Vec<_>>().join(word)
        };
        match filter {
            Filter::Present(at) => format!("{} pr", path(at)),
            Filter::Compare(at, operator, value) => {
                let word = match operator {
                    Operator::Equal => "eq",
                    Operator::NotEqual => "ne",
                    Operator::Contains => "co",
                    Operator::StartsWith => "sw",
                    Operator::EndsWith => "ew",
                    Operator::Greater => "gt",
                    Operator::GreaterOrEqual => "ge",
                    Operator::Less => "lt",
                    Operator::LessOrEqual => "le",
                };
                format!("{} {word} {value}", path(at))
            }
            Filter::Within(name, inner) => format!("{name}[{}]", written(inner)),
            Filter::All(parts) => list(parts, " and "),
            Filter::Any(parts) => list(parts, " or "),
            Filter::Not(inner) => format!("not ({})", written(inner)),
        }
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let path = ("[a-zA-Z][a-zA-Z0-9_-]{0,8}", proptest::option::of("[a-zA-Z]{1,8}"))
            .prop_map(|(attribute, sub)| AttrPath { attribute, sub });
        let operator = proptest::sample::select(vec![
            Operator::Equal,
            Operator::NotEqual,
            Operator::Contains,
            Operator::StartsWith,
            Operator::EndsWith,
            Operator::Greater,
            Operator::GreaterOrEqual,
            Operator::Less,
            Operator::LessOrEqual,
        ]);
        let value = prop_oneof![
            "\\PC{0,12}".prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
        ];
        let leaf = prop_oneof![
            path.clone().prop_map(Filter::Present),
            (path, operator, value).prop_map(|(path, operator, value)| Filter::Compare(path, operator, value)),
        ];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 2..4).prop_map(Filter::All),
                proptest::collection::vec(inner.clone(), 2..4).prop_map(Filter::Any),
                inner.clone().prop_map(|inner| Filter::Not(Box::new(inner))),
                ("[a-zA-Z]{1,8}", inner).prop_map(|(name, inner)| Filter::Within(name, Box::new(inner))),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_filter_reads_back(filter in filters()) {
            prop_assert_eq!(parse(&written(&filter)), Ok(filter));
        }

        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,200}") {
            let _ = parse(&text).map(|filter| filter.matches(schema::USER, &ann()));
            let _ = parse_target(&text);
        }

        #[test]
        fn nearly_filters_do_not_break_it_either(text in "[()\\[\\]\"\\\\. a-e:]{0,60}|(userName|emails|and|or|not|eq|pr|\"x\"|[()\\[\\] .]){0,40}") {
            let _ = parse(&text).map(|filter| filter.matches(schema::USER, &ann()));
            let _ = parse_target(&text);
        }

        #[test]
        fn a_value_finds_itself_whatever_it_is(title in "\\PC{1,40}") {
            let resource = json!({ "title": title });
            let filter = parse(&format!("title eq {}", Value::from(title))).unwrap();
            prop_assert!(filter.matches(schema::USER, &resource));
        }
    }
}
