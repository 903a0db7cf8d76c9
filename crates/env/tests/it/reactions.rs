//! Every row of the registry with every sort of value, and what happens then.

use std::fmt::Write;

use tale_env::kind::{Kind, Value};
use tale_env::reader::{Verdict, judge};
use tale_env::registry::{self, Default, Reaction, Required, Var};

/// A case and its value; `None` = unset.
type Case = (&'static str, Option<String>);

fn case(name: &'static str, value: impl Into<String>) -> Case {
    (name, Some(value.into()))
}

/// The values that each kind is tried with besides unset, empty, default and garbage.
fn samples(kind: Kind) -> Vec<Case> {
    let key = "ab".repeat(32);
    let bounds = |min: u64, max: u64| {
        let mut all = vec![case("minimum", min.to_string()), case("maximum", max.to_string())];
        if min > 0 {
            all.push(case("below", (min - 1).to_string()));
        }
        all.push(case("negative", "-1"));
        all.push(match max.checked_add(1) {
            Some(above) => case("above", above.to_string()),
            None => case("above", "18446744073709551616"),
        });
        all
    };
    let letters = |count: usize| "x".repeat(count);
    match kind {
        Kind::Text | Kind::Directory | Kind::File => vec![case("usual", "/some/where")],
        Kind::Word | Kind::KeyPrefix => vec![case("usual", "a/b:c")],
        Kind::Secret { min } => {
            let mut all = vec![case("minimum", letters(min.max(1)))];
            if min > 1 {
                all.push(case("below", letters(min - 1)));
            }
            all
        }
        Kind::Token { min, max } => vec![
            case("minimum", letters(min)),
            case("maximum", letters(max)),
            case("below", letters(min - 1)),
            case("above", letters(max + 1)),
        ],
        Kind::HexKey => vec![
            case("usual", key.clone()),
            case("below", &key[1..]),
            case("above", format!("{key}0")),
            case("other digits", "zz".repeat(32)),
        ],
        Kind::HexKeys => vec![case("usual", format!("{key}, {key}")), case("one bad", format!("{key},{}", &key[2..]))],
        Kind::Base64Key => vec![
            case("usual", "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="),
            case("below", "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urqw=="),
        ],
        Kind::AgeKey => vec![case("usual", "AGE-SECRET-KEY-1QQQ"), case("two", "AGE-SECRET-KEY-1Q AGE-SECRET-KEY-1Q")],
        Kind::Integer { min, max, .. } => bounds(min, max),
        Kind::Number { min, max } => {
            let mut all = vec![case("minimum", min.to_string()), case("below", (min - 1.0).to_string())];
            if max.is_finite() {
                all.extend([case("maximum", max.to_string()), case("above", (max + 0.5).to_string())]);
            }
            all
        }
        Kind::Port { zero } => {
            let mut all = bounds(u64::from(!zero), 65_535);
            all.push(case("service link", "tcp://10.0.0.1:80"));
            all
        }
        Kind::Ports => vec![case("usual", "443, 8443"), case("one bad", "443,0")],
        Kind::Bool => vec![case("usual", "true"), case("other word", "off"), case("bad", "maybe")],
        Kind::Flag(word) => vec![case("usual", word), case("off", "0"), case("other word", "yes")],
        Kind::OneOf(choices) => vec![case("first", choices[0]), case("last", choices[choices.len() - 1])],
        Kind::SomeOf(choices) => vec![case("all", choices.join(",")), case("none", "none"), case("one bad", "x")],
        Kind::SiteUrl => vec![
            case("usual", "https://tale.example.org"),
            case("loopback", "http://127.0.0.1:3000"),
            case("plain http", "http://tale.example.org"),
            case("path", "https://tale.example.org/app"),
        ],
        Kind::Origin => vec![case("usual", "https://a.example:8443"), case("path", "https://a.example/x")],
        Kind::Origins => vec![
            case("usual", "https://a.example http://b.example, https://c.example:8443"),
            case("one bad", "https://a.example,b.example"),
            case("credentials", "https://u:p@a.example"),
        ],
        Kind::Url(schemes) => vec![case("usual", format!("{}://host:1", schemes[0])), case("scheme", "gopher://host")],
        Kind::Postgres => vec![
            case("usual", "postgresql://u:p@db:5432/name?sslmode=verify-full"),
            case("scheme", "mysql://u:p@db/name"),
            case("no database", "postgres://u:p@db"),
            case("sslmode", "postgres://u:p@db/name?sslmode=maybe"),
        ],
        Kind::BasePath => vec![case("usual", "/app/"), case("no slash", "app"), case("dots", "/a/../b")],
        Kind::HostName => vec![case("usual", "tale.example.org"), case("port", "tale.example.org:443")],
        Kind::HostPort => vec![case("usual", "backend:3005"), case("no port", "backend"), case("port 0", "backend:0")],
        Kind::Ranges => {
            vec![case("usual", "10.0.0.0/8 fd00::/8"), case("words", "private_ranges"), case("bits", "10.0.0.0/33")]
        }
        Kind::Pool16 => {
            vec![case("usual", "172.30.0.0/16"), case("public", "8.8.0.0/16"), case("not canonical", "10.1.2.0/16")]
        }
        Kind::Emails => vec![case("usual", "a@b.example; C@d.example"), case("one bad", "a@b.example, nobody")],
        Kind::Email => vec![case("usual", "a@b.example"), case("bad", "a.b.example")],
        Kind::HeaderName => vec![case("usual", "X-Header"), case("bad", "X Header")],
        Kind::DatabaseName => vec![case("usual", "tale_app"), case("digit", "1tale"), case("quote", "ta'le")],
        Kind::Bucket => {
            vec![case("minimum", "abc"), case("below", "ab"), case("above", letters(64)), case("capitals", "Abc")]
        }
        Kind::Size { .. } => vec![case("usual", "1536m"), case("zero", "0"), case("unit", "5x"), case("sign", "-1g")],
        Kind::Quantity => vec![case("usual", "500m"), case("zero", "0Gi"), case("unit", "5gb")],
        Kind::Age => vec![case("usual", "14d"), case("off", "off"), case("unit", "2w"), case("fraction", "1.5d")],
        Kind::Uuid => vec![case("usual", "0193b6a0-0000-7000-8000-000000000000"), case("bad", "0193b6a0")],
        Kind::JsonObject => vec![case("usual", "{\"a\":\"b\"}"), case("array", "[]")],
        Kind::JsonArray => vec![case("usual", "[{}]"), case("object", "{}")],
        Kind::UserGroup => vec![case("usual", "10001:10001"), case("root", "0:0")],
        Kind::Label => vec![case("usual", "a-1"), case("above", letters(33)), case("capitals", "A")],
        Kind::TotpClient => vec![case("usual", "Ünal & Söhne"), case("above", letters(41)), case("first", "-a")],
        Kind::TotpEnvironment => vec![case("usual", "te"), case("space", "a b"), case("above", letters(33))],
    }
}

fn outcome(var: &Var, raw: Option<&str>) -> String {
    let missing = match var.required {
        Required::No => None,
        Required::Always => Some("refuse: missing".to_owned()),
        Required::Unless(others) => Some(format!("refuse: missing, unless {}", others.join(" or "))),
    };
    let found = match judge(var, raw) {
        Verdict::Unset => match (missing, var.default) {
            (Some(missing), _) => missing,
            (None, Default::Value(value)) => format!("default {value}"),
            (None, Default::Derived(words)) => format!("default: {}", words.en),
            (None, Default::Unset) => "unset".to_owned(),
        },
        Verdict::Fine(Value::Switch(on)) => format!("ok: {}", if on { "on" } else { "off" }),
        Verdict::Fine(Value::Integer(number)) => format!("ok: {number}"),
        Verdict::Fine(Value::List(list)) => format!("ok: {} entries", list.len()),
        Verdict::Fine(_) => "ok".to_owned(),
        Verdict::Bad(fault, reaction) => {
            let nearest = fault.nearest.filter(|_| reaction == Reaction::Clamp);
            let reaction = nearest.map_or_else(|| reaction.name().to_owned(), |nearest| format!("clamp to {nearest}"));
            format!("{reaction}: {}", fault.why)
        }
    };
    if var.is_read() { found } else { format!("({}) {found}", var.usage.name()) }
}

/// One line per variable and case: name, case, value, what happens. In parentheses what would happen
/// to a variable that this release does not read.
pub fn table() -> String {
    let mut out = String::from("variable\tcase\tvalue\treaction\n");
    for var in registry::vars() {
        let default = if let Default::Value(value) = var.default { Some(value) } else { None };
        let mut cases: Vec<Case> = vec![("unset", None), case("empty", ""), case("blank", "  ")];
        cases.extend(default.map(|value| case("default", value)));
        cases.extend(samples(var.kind));
        cases.push(case("garbage", "\u{1}?? {"));
        for (name, value) in cases {
            let shown = value.as_deref().map_or_else(|| "-".to_owned(), |value| format!("{value:?}"));
            let _ = writeln!(out, "{}\t{name}\t{shown}\t{}", var.name, outcome(var, value.as_deref()));
        }
    }
    out
}

#[test]
fn every_row_reacts_as_pinned() {
    let pinned = include_str!("../golden/reactions.tsv");
    let now = table();
    for (line, (was, is)) in pinned.lines().zip(now.lines()).enumerate() {
        assert_eq!(was, is, "line {} of reactions.tsv; `make env-reference` writes it anew", line + 1);
    }
    assert_eq!(pinned.lines().count(), now.lines().count(), "`make env-reference` writes reactions.tsv anew");
}

#[test]
fn no_value_is_both_unusable_and_used() {
    for var in registry::vars().filter(|var| var.is_read()) {
        for (name, value) in samples(var.kind) {
            if let Verdict::Bad(fault, _) = judge(var, value.as_deref()) {
                let value = value.unwrap_or_default();
                assert!(
                    value.len() < 4 || !fault.why.contains(&value),
                    "{} {name}: {} repeats the value",
                    var.name,
                    fault.why
                );
            }
        }
    }
}
