//! Reading the rules back, in the kernel's words.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rules::Expected;

/// Compares what `nft -j list table` prints with what was installed.
pub(super) fn compare(found: &str, expected: &Expected) -> Result<(), String> {
    let found: Value = serde_json::from_str(found).map_err(|error| format!("its listing cannot be read: {error}"))?;
    let items = found["nftables"].as_array().ok_or("its listing is empty")?;
    let chain = |name: &str| items.iter().map(|item| &item["chain"]).find(|chain| chain["name"] == name);
    for (name, priority, policy) in [("forward", -300, "drop"), ("output", 0, "accept")] {
        let chain = chain(name).ok_or_else(|| format!("the chain {name} is missing"))?;
        if chain["hook"] != name || chain["prio"] != priority || chain["policy"] != policy || chain["type"] != "filter"
        {
            return Err(format!("the chain {name} is not hooked where it must be"));
        }
    }
    let rules = |name: &'static str| {
        items
            .iter()
            .map(|item| &item["rule"])
            .filter(move |rule| rule["chain"] == name)
            .map(|rule| words(&rule["expr"]))
    };
    if let Some(rule) = rules("forward").next() {
        return Err(format!("a rule comes before the guard against forwarding: {rule}"));
    }
    let output: Vec<String> = rules("output").collect();
    if output != expected.output {
        let place = output.iter().zip(&expected.output).take_while(|(found, wanted)| found == wanted).count();
        let found = output.get(place).map_or("nothing", String::as_str);
        let wanted = expected.output.get(place).map_or("nothing", String::as_str);
        return Err(format!("its rule {} is \"{found}\" and must be \"{wanted}\"", place + 1));
    }
    for (name, ranges) in &expected.sets {
        let set = items.iter().map(|item| &item["set"]).find(|set| set["name"] == *name);
        let set = set.ok_or_else(|| format!("the set {name} is missing"))?;
        let elements = set["elem"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found: BTreeSet<String> = elements.iter().map(value).collect();
        if found != *ranges {
            let other = found.symmetric_difference(ranges).next().cloned().unwrap_or_default();
            return Err(format!("the set {name} differs at {other}"));
        }
    }
    Ok(())
}

/// A rule: its conditions, then what happens.
fn words(expressions: &Value) -> String {
    let mut conditions = Vec::new();
    let mut verdict = String::from("nothing");
    for expression in expressions.as_array().map(Vec::as_slice).unwrap_or_default() {
        let Some((kind, what)) = expression.as_object().and_then(|object| object.iter().next()) else { continue };
        if kind == "match" {
            conditions.push(condition(what));
        } else {
            verdict.clone_from(kind);
        }
    }
    format!("{}: {verdict}", conditions.join(", "))
}

fn condition(what: &Value) -> String {
    let left = &what["left"];
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let subject = if let Some(meta) = left.get("meta") {
        text(&meta["key"])
    } else if let Some(ct) = left.get("ct") {
        match ct.get("dir") {
            Some(direction) => format!("ct {} {}", text(direction), text(&ct["key"])),
            None => format!("ct {}", text(&ct["key"])),
        }
    } else {
        format!("{} {}", text(&left["payload"]["protocol"]), text(&left["payload"]["field"]))
    };
    // `in` and `==` are two spellings of one thing.
    let not = if what["op"] == "!=" { "!= " } else { "" };
    let right = value(&what["right"]);
    // Where no file tells the names of protocols, as in small images, `nft` prints their numbers.
    let right = match (subject.as_str(), right.as_str()) {
        ("l4proto", "6") => "tcp",
        ("l4proto", "17") => "udp",
        _ => &right,
    };
    format!("{subject} {not}{right}")
}

fn value(of: &Value) -> String {
    let several = of.as_array().or_else(|| of["set"].as_array());
    if let Some(list) = several {
        let mut list: Vec<String> = list.iter().map(value).collect();
        list.sort();
        return list.join("+");
    }
    match (of, of.get("prefix")) {
        (_, Some(prefix)) => format!("{}/{}", value(&prefix["addr"]), value(&prefix["len"])),
        (Value::String(text), _) => text.clone(),
        (other, _) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Wall, rules};
    use super::*;

    fn wall() -> Wall {
        Wall { resolvers: vec!["10.96.0.10".parse().unwrap()], proxy: 3128, dns: 53 }
    }

    /// What the kernel tells of one rule and one set, beside the two chains.
    fn listing(rule: &Value, forward: &Value) -> String {
        json!({ "nftables": [
            { "metainfo": { "version": "1.0.6" } },
            { "set": { "name": "refused4", "elem": [{ "prefix": { "addr": "10.0.0.0", "len": 8 } }, "168.63.129.16"] } },
            forward,
            { "chain": { "name": "output", "type": "filter", "hook": "output", "prio": 0, "policy": "accept" } },
            { "rule": { "chain": "output", "handle": 5, "expr": rule } },
        ] })
        .to_string()
    }

    #[test]
    fn protocols_are_known_by_name_and_by_number() {
        for (number, name) in [(6, "tcp"), (17, "udp")] {
            let by = |right: Value| {
                condition(&json!({ "op": "==", "left": { "meta": { "key": "l4proto" } }, "right": right }))
            };
            assert_eq!(by(json!(number)), by(json!(name)));
        }
        let port = |right| {
            condition(
                &json!({ "op": "==", "left": { "payload": { "protocol": "tcp", "field": "dport" } }, "right": right }),
            )
        };
        assert_eq!(port(17), "tcp dport 17");
    }

    #[test]
    fn a_wall_that_differs_anywhere_is_no_wall() {
        let expected = Expected {
            output: vec!["ip daddr @refused4: reject".to_owned()],
            sets: vec![("refused4", BTreeSet::from(["10.0.0.0/8".to_owned(), "168.63.129.16".to_owned()]))],
        };
        let rule = json!([
            { "match": { "op": "==", "left": { "payload": { "protocol": "ip", "field": "daddr" } }, "right": "@refused4" } },
            { "reject": { "type": "icmp", "expr": "admin-prohibited" } },
        ]);
        let forward = json!({ "chain": { "name": "forward", "type": "filter", "hook": "forward", "prio": -300, "policy": "drop" } });
        let good = listing(&rule, &forward);
        assert_eq!(compare(&good, &expected), Ok(()));
        for (from, to) in [
            ("\"policy\":\"drop\"", "\"policy\":\"accept\""),
            ("\"prio\":-300", "\"prio\":10"),
            ("\"op\":\"==\"", "\"op\":\"!=\""),
            ("\"reject\"", "\"accept\""),
            ("10.0.0.0", "11.0.0.0"),
            ("{\"rule\":{\"chain\":\"output\"", "{\"rule\":{\"chain\":\"forward\""),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good, "{from}");
            assert!(compare(&bad, &expected).is_err(), "{to}");
        }
    }

    #[test]
    fn rules_name_each_resolver_exactly_and_no_range_twice() {
        let text = rules::ruleset(&wall(), true);
        assert_eq!(text.matches("10.96.0.10").count(), 2);
        assert!(
            text.contains("169.254.0.0/16") && text.contains("64:ff9b::a9fe:0/112") && text.contains("2002:a9fe::/32")
        );
        // Inside of a range that stands there, which the kernel would refuse.
        assert!(!text.contains("100.100.100.200") && !text.contains("192.0.0.192"));
        let v4 = rules::ruleset(&wall(), false);
        assert!(v4.starts_with("table ip ") && !v4.contains("ip6"));
    }
}
