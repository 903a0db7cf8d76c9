//! Where the accounts stand in a broker's answer: a small part of JSONPath (MOD-43).

use serde_json::Value;

/// Longest path, in bytes.
const MAX_PATH: usize = 200;
/// Most steps of a path.
const MAX_STEPS: usize = 16;

/// A path such as `$.pools[0].tokens`: the root, members, places of a list, and `[*]` for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokensPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Place(usize),
    Every,
}

impl TokensPath {
    /// Reads a path; what is wrong with it otherwise.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_PATH {
            return Err("must have at most 200 bytes");
        }
        let mut rest = text.strip_prefix('$').ok_or("must begin with `$`, such as `$.tokens`")?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == MAX_STEPS {
                return Err("must have at most 16 steps");
            }
            let (step, after) = if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let name = &after[..end];
                let step = match name {
                    "*" => Step::Every,
                    "" => return Err("must name a member behind each dot"),
                    name if name.contains([']', '\'', '"', '*', '(', ' ']) => return Err(UNKNOWN),
                    name => Step::Member(name.to_owned()),
                };
                (step, &after[end..])
            } else {
                let (inside, after) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or(UNKNOWN)?;
                let quoted = ['\'', '"'].into_iter().find_map(|quote| inside.strip_prefix(quote)?.strip_suffix(quote));
                let step = match (inside, quoted) {
                    ("*", _) => Step::Every,
                    (_, Some(name)) if !name.is_empty() && !name.contains(['\'', '"', '\\']) => {
                        Step::Member(name.to_owned())
                    }
                    (place, None) if place.bytes().all(|byte| byte.is_ascii_digit()) => {
                        Step::Place(place.parse().map_err(|_| UNKNOWN)?)
                    }
                    _ => return Err(UNKNOWN),
                };
                (step, after)
            };
            steps.push(step);
            rest = after;
        }
        Ok(Self(steps))
    }

    /// The list that the path leads to; several lists become one. `None` when it leads to none.
    pub(super) fn list<'a>(&self, document: &'a Value) -> Option<Vec<&'a Value>> {
        let mut found = vec![document];
        for step in &self.0 {
            found = found
                .into_iter()
                .flat_map(|value| -> Vec<&Value> {
                    match (step, value) {
                        (Step::Member(name), Value::Object(object)) => object.get(name).into_iter().collect(),
                        (Step::Place(place), Value::Array(list)) => list.get(*place).into_iter().collect(),
                        (Step::Every, Value::Array(list)) => list.iter().collect(),
                        (Step::Every, Value::Object(object)) => object.values().collect(),
                        _ => Vec::new(),
                    }
                })
                .collect();
        }
        let lists: Option<Vec<&Vec<Value>>> = found.iter().map(|value| value.as_array()).collect();
        match lists {
            Some(lists) if !lists.is_empty() => Some(lists.into_iter().flatten().collect()),
            // `$.accounts[*]` names the entries themselves.
            None if self.0.last() == Some(&Step::Every) => Some(found),
            _ => None,
        }
    }
}

const UNKNOWN: &str = "may hold names behind dots, `['name']`, `[0]` and `[*]` only";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_a_list_or_nowhere() {
        let document = json!({
            "tokens": [1, 2], "a b": { "c": [3] }, "pools": [{ "tokens": [4] }, { "tokens": [5, 6] }], "by": { "x": 7, "y": 8 },
        });
        let list = |path: &str| {
            let found = TokensPath::parse(path).unwrap().list(&document)?;
            Some(found.into_iter().map(|value| value.as_i64().unwrap_or(-1)).collect::<Vec<_>>())
        };
        assert_eq!(list("$.tokens"), Some(vec![1, 2]));
        assert_eq!(list("$['a b'].c"), Some(vec![3]));
        assert_eq!(list("$.pools[1].tokens"), Some(vec![5, 6]));
        assert_eq!(list("$.pools[*].tokens"), Some(vec![4, 5, 6]));
        assert_eq!(list("$.tokens[*]"), Some(vec![1, 2]));
        assert_eq!(list("$.by.*"), Some(vec![7, 8]));
        for nowhere in ["$", "$.by", "$.absent", "$.tokens[0]", "$.pools[9].tokens", "$.by.x.*.y"] {
            assert_eq!(list(nowhere), None, "{nowhere}");
        }
        assert_eq!(TokensPath::parse("$").unwrap().list(&json!([1])).unwrap().len(), 1);
    }

    #[test]
    fn other_paths_are_refused() {
        for bad in [
            "",
            "tokens",
            "$.",
            "$..tokens",
            "$[-1]",
            "$[?(@.a)]",
            "$.a b",
            "$.a[",
            "$x",
            "$['a",
            "$[99999999999999999999999]",
        ] {
            assert!(TokensPath::parse(bad).is_err(), "{bad}");
        }
        assert!(TokensPath::parse(&format!("${}", ".a".repeat(17))).is_err());
        assert!(TokensPath::parse(&format!("$.{}", "a".repeat(200))).is_err());
    }
}
