//! The attributes of users and groups (RFC 7643), as one table: what is read and written, found and published
//! follows from it.

use serde_json::{Map, Value, json};

use super::filter::{self, AttrPath};
use super::{Invalid, ScimError};

/// The schema of users.
pub const USER_URN: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
/// The schema of groups.
pub const GROUP_URN: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

/// Longest text of an attribute, in characters.
const MAX_TEXT: usize = 1_000;
/// Most values of an attribute of a user.
const MAX_VALUES: usize = 50;

/// What an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Boolean,
    /// The address of a resource.
    Reference,
    Complex,
}

/// An attribute, or a part of one.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether it has several values.
    pub(crate) many: bool,
    pub(crate) required: bool,
    pub(crate) read_only: bool,
    /// Whether its case counts.
    pub(crate) exact: bool,
    /// Whether no two resources have the same.
    pub(crate) unique: bool,
    pub(crate) sub: &'static [Attribute],
    /// Usual values.
    usual: &'static [&'static str],
    /// Kinds of resources that it leads to.
    leads_to: &'static [&'static str],
    description: &'static str,
}

const TEXT: Attribute = Attribute {
    name: "",
    kind: Kind::Text,
    many: false,
    required: false,
    read_only: false,
    exact: false,
    unique: false,
    sub: &[],
    usual: &[],
    leads_to: &[],
    description: "",
};

const ID: Attribute =
    Attribute { name: "id", exact: true, read_only: true, description: "The identifier here.", ..TEXT };
const EXTERNAL_ID: Attribute =
    Attribute { name: "externalId", exact: true, description: "The identifier in the directory.", ..TEXT };

/// How many attributes every resource has first, which are part of no schema.
const COMMON: usize = 2;

/// The attributes of users.
pub(crate) const USER: &[Attribute] = &[
    ID,
    EXTERNAL_ID,
    Attribute {
        name: "userName",
        required: true,
        unique: true,
        description: "The name in the directory; the sign-in address when it is one.",
        ..TEXT
    },
    Attribute {
        name: "name",
        kind: Kind::Complex,
        sub: &[
            Attribute { name: "formatted", description: "The whole name.", ..TEXT },
            Attribute { name: "familyName", description: "The family name.", ..TEXT },
            Attribute { name: "givenName", description: "The given name.", ..TEXT },
        ],
        description: "The parts of the name.",
        ..TEXT
    },
    Attribute { name: "displayName", description: "The name that others see.", ..TEXT },
    Attribute { name: "title", description: "The title, such as Vice President.", ..TEXT },
    Attribute {
        name: "active",
        kind: Kind::Boolean,
        required: true,
        description: "Whether the person may use the organization.",
        ..TEXT
    },
    Attribute {
        name: "emails",
        kind: Kind::Complex,
        many: true,
        required: true,
        sub: &[
            Attribute { name: "value", required: true, description: "The address.", ..TEXT },
            Attribute { name: "type", usual: &["work", "home", "other"], description: "What it is for.", ..TEXT },
            Attribute { name: "primary", kind: Kind::Boolean, description: "Whether it is preferred.", ..TEXT },
        ],
        description: "Addresses. Without any, the user name stands here.",
        ..TEXT
    },
    Attribute {
        name: "groups",
        kind: Kind::Complex,
        many: true,
        read_only: true,
        sub: &[
            Attribute { name: "value", exact: true, read_only: true, description: "The group.", ..TEXT },
            Attribute {
                name: "$ref",
                kind: Kind::Reference,
                exact: true,
                read_only: true,
                leads_to: &["Group"],
                description: "Its address.",
                ..TEXT
            },
            Attribute { name: "display", read_only: true, description: "Its name.", ..TEXT },
        ],
        description: "The groups of the user.",
        ..TEXT
    },
];

/// The attributes of groups.
pub(crate) const GROUP: &[Attribute] = &[
    ID,
    EXTERNAL_ID,
    Attribute {
        name: "displayName",
        required: true,
        unique: true,
        description: "The name of the team, which no other has.",
        ..TEXT
    },
    Attribute {
        name: "members",
        kind: Kind::Complex,
        many: true,
        sub: &[
            Attribute { name: "value", exact: true, description: "The user.", ..TEXT },
            Attribute {
                name: "$ref",
                kind: Kind::Reference,
                exact: true,
                leads_to: &["User"],
                description: "Its address.",
                ..TEXT
            },
            Attribute { name: "type", usual: &["User"], description: "Always `User`.", ..TEXT },
        ],
        description: "Who is in the team: users of the organization.",
        ..TEXT
    },
];

/// Attributes of the standard that are taken and not kept, so that a directory can send what it has.
const NOT_KEPT: &[&str] = &[
    "schemas",
    "meta",
    "nickName",
    "profileUrl",
    "userType",
    "preferredLanguage",
    "locale",
    "timezone",
    "password",
    "phoneNumbers",
    "ims",
    "photos",
    "addresses",
    "entitlements",
    "roles",
    "x509Certificates",
];

/// What the names of attributes of extensions begin with.
const EXTENSIONS: &str = "urn:ietf:params:scim:schemas:extension:";

/// Whether an attribute of this name is left aside rather than refused.
pub(crate) fn is_not_kept(name: &str) -> bool {
    let extension = name.get(..EXTENSIONS.len()).is_some_and(|head| head.eq_ignore_ascii_case(EXTENSIONS));
    extension || NOT_KEPT.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// The attribute of this name, whatever its case.
pub(crate) fn find<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
}

/// What follows the name of one of our schemas and a colon.
pub(crate) fn without_urn(text: &str) -> Option<&str> {
    [USER_URN, GROUP_URN].into_iter().find_map(|urn| {
        let head = text.get(..urn.len())?;
        head.eq_ignore_ascii_case(urn).then(|| text[urn.len()..].strip_prefix(':'))?
    })
}

fn bad_value(path: &str, detail: &str) -> ScimError {
    ScimError::invalid(Invalid::Value, format!("`{path}` {detail}"))
}

/// What a client may have written of a resource, checked and under the names of the schema: unknown, read-only and
/// empty attributes are left out.
pub(crate) fn cleaned(attributes: &[Attribute], body: &Value) -> Result<Map<String, Value>, ScimError> {
    let Value::Object(body) = body else {
        return Err(ScimError::invalid(Invalid::Syntax, "the body must be a JSON object"));
    };
    let mut clean = Map::new();
    for (name, value) in body {
        let Some(attribute) = find(attributes, name).filter(|attribute| !attribute.read_only) else { continue };
        if let Some(value) = clean_value(attribute, attribute.name, value)? {
            clean.insert(attribute.name.to_owned(), value);
        }
    }
    for attribute in attributes.iter().filter(|attribute| attribute.required && !attribute.read_only) {
        // Addresses follow from the user name, and whoever is new is active: users always have both.
        if !clean.contains_key(attribute.name) && !["emails", "active"].contains(&attribute.name) {
            return Err(bad_value(attribute.name, "is required"));
        }
    }
    Ok(clean)
}

fn clean_value(attribute: &Attribute, path: &str, value: &Value) -> Result<Option<Value>, ScimError> {
    match (attribute.many, value) {
        (_, Value::Null) => Ok(None),
        (false, value) => clean_one(attribute, path, value),
        (true, Value::Array(values)) => {
            if values.len() > MAX_VALUES && attribute.name != "members" {
                return Err(bad_value(path, &format!("has at most {MAX_VALUES} values")));
            }
            let mut clean = Vec::with_capacity(values.len());
            for value in values {
                clean.extend(clean_one(attribute, path, value)?);
            }
            if clean.iter().filter(|value| value["primary"] == true).count() > 1 {
                return Err(bad_value(path, "has more than one primary value"));
            }
            Ok(Some(Value::Array(clean)).filter(|clean| *clean != json!([])))
        }
        (true, value @ Value::Object(_)) => Ok(clean_one(attribute, path, value)?.map(|value| json!([value]))),
        (true, _) => Err(bad_value(path, "must be a list")),
    }
}

fn clean_one(attribute: &Attribute, path: &str, value: &Value) -> Result<Option<Value>, ScimError> {
    match (attribute.kind, value) {
        (_, Value::Null) => Ok(None),
        (Kind::Text | Kind::Reference, Value::String(text)) => {
            if text.chars().count() > MAX_TEXT {
                return Err(bad_value(path, &format!("has at most {MAX_TEXT} characters")));
            }
            if text.contains('\0') {
                return Err(bad_value(path, "must not contain NUL"));
            }
            Ok(Some(value.clone()).filter(|_| !text.is_empty()))
        }
        (Kind::Text | Kind::Reference, _) => Err(bad_value(path, "must be a text")),
        (Kind::Boolean, Value::Bool(_)) => Ok(Some(value.clone())),
        // Some directories put truth into quotes.
        (Kind::Boolean, Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(Value::Bool(true))),
        (Kind::Boolean, Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(Value::Bool(false))),
        (Kind::Boolean, _) => Err(bad_value(path, "must be true or false")),
        (Kind::Complex, Value::Object(parts)) => {
            let mut clean = Map::new();
            for (name, value) in parts {
                let Some(sub) = find(attribute.sub, name) else { continue };
                if let Some(value) = clean_value(sub, &format!("{path}.{}", sub.name), value)? {
                    clean.insert(sub.name.to_owned(), value);
                }
            }
            if let Some(missing) = attribute.sub.iter().find(|sub| sub.required && !clean.contains_key(sub.name)) {
                return Err(bad_value(&format!("{path}.{}", missing.name), "is required"));
            }
            Ok(Some(Value::Object(clean)).filter(|clean| *clean != json!({})))
        }
        (Kind::Complex, _) => Err(bad_value(path, "must be an object")),
    }
}

/// Which attributes of a resource an answer has (RFC 7644, 3.9).
#[derive(Debug, Clone, Default)]
pub struct View {
    wanted: Vec<AttrPath>,
    unwanted: Vec<AttrPath>,
}

impl View {
    /// From the two lists of a request, whose names are separated by commas.
    ///
    /// # Errors
    /// `invalidValue` when both are given or one names no attribute.
    pub fn read(attributes: Option<&str>, excluded: Option<&str>) -> Result<Self, ScimError> {
        let list = |text: Option<&str>| {
            let names =
                text.into_iter().flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty());
            names.map(filter::parse_attribute).collect::<Result<Vec<_>, _>>()
        };
        let bad = |_| {
            ScimError::invalid(Invalid::Value, "`attributes` and `excludedAttributes` are names separated by commas")
        };
        let view = Self { wanted: list(attributes).map_err(bad)?, unwanted: list(excluded).map_err(bad)? };
        if !view.wanted.is_empty() && !view.unwanted.is_empty() {
            return Err(ScimError::invalid(Invalid::Value, "`attributes` and `excludedAttributes` exclude each other"));
        }
        Ok(view)
    }

    /// Whether an answer has the attribute.
    pub(crate) fn has(&self, name: &str) -> bool {
        let names = |path: &AttrPath| path.attribute.eq_ignore_ascii_case(name);
        match name {
            "id" | "schemas" => true,
            _ if !self.wanted.is_empty() => self.wanted.iter().any(names),
            _ => !self.unwanted.iter().any(|path| names(path) && path.sub.is_none()),
        }
    }

    /// Leaves out what an answer does not have.
    pub(crate) fn apply(&self, resource: &mut Map<String, Value>) {
        resource.retain(|name, _| self.has(name));
        for (name, value) in resource.iter_mut() {
            let parts = |paths: &[AttrPath]| -> Vec<String> {
                paths
                    .iter()
                    .filter(|path| path.attribute.eq_ignore_ascii_case(name))
                    .filter_map(|path| path.sub.clone())
                    .collect()
            };
            let (wanted, unwanted) = (parts(&self.wanted), parts(&self.unwanted));
            let whole = self.wanted.iter().any(|path| path.names(name, None));
            let keep = |part: &str| {
                let among = |list: &[String]| list.iter().any(|other| other.eq_ignore_ascii_case(part));
                (wanted.is_empty() || whole || among(&wanted)) && !among(&unwanted)
            };
            let values: Vec<&mut Value> = match value {
                Value::Array(values) => values.iter_mut().collect(),
                value => vec![value],
            };
            for value in values {
                if let Value::Object(value) = value {
                    value.retain(|part, _| keep(part));
                }
            }
        }
    }
}

fn described(attribute: &Attribute) -> Value {
    let kind = match attribute.kind {
        Kind::Text => "string",
        Kind::Boolean => "boolean",
        Kind::Reference => "reference",
        Kind::Complex => "complex",
    };
    let mut value = json!({
        "name": attribute.name,
        "type": kind,
        "multiValued": attribute.many,
        "description": attribute.description,
        "required": attribute.required,
        "mutability": if attribute.read_only { "readOnly" } else { "readWrite" },
        "returned": "default",
        "uniqueness": if attribute.unique { "server" } else { "none" },
        "caseExact": attribute.exact,
    });
    if !attribute.sub.is_empty() {
        value["subAttributes"] = attribute.sub.iter().map(described).collect();
    }
    if !attribute.usual.is_empty() {
        value["canonicalValues"] = json!(attribute.usual);
    }
    if !attribute.leads_to.is_empty() {
        value["referenceTypes"] = json!(attribute.leads_to);
    }
    value
}

/// The schemas, with `base` as the address of the interface.
#[must_use]
pub fn schemas(base: &str) -> Vec<Value> {
    let all = [(USER_URN, "User", "A person of the organization.", USER), (GROUP_URN, "Group", "A team.", GROUP)];
    let schema = |(urn, name, description, attributes): (&str, &str, &str, &[Attribute])| {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Schema"],
            "id": urn,
            "name": name,
            "description": description,
            "attributes": attributes.iter().skip(COMMON).map(described).collect::<Vec<_>>(),
            "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{urn}") },
        })
    };
    all.into_iter().map(schema).collect()
}

/// The kinds of resources.
#[must_use]
pub fn resource_types(base: &str) -> Vec<Value> {
    let all =
        [("User", "/Users", USER_URN, "A person of the organization."), ("Group", "/Groups", GROUP_URN, "A team.")];
    let kind = |(name, endpoint, urn, description): (&str, &str, &str, &str)| {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
            "id": name,
            "name": name,
            "endpoint": endpoint,
            "description": description,
            "schema": urn,
            "meta": { "resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/{name}") },
        })
    };
    all.into_iter().map(kind).collect()
}

/// What the interface can do.
#[must_use]
pub fn provider_config(base: &str) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": { "supported": true },
        "bulk": { "supported": false, "maxOperations": 0, "maxPayloadSize": 0 },
        "filter": { "supported": true, "maxResults": super::MAX_COUNT },
        "changePassword": { "supported": false },
        "sort": { "supported": false },
        "etag": { "supported": true },
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "Bearer token",
            "description": "The token that an owner or admin makes under Settings > Provisioning.",
            "primary": true,
        }],
        "meta": { "resourceType": "ServiceProviderConfig", "location": format!("{base}/ServiceProviderConfig") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_checked_and_brought_under_the_names_of_the_schema() {
        let body = json!({
            "schemas": [USER_URN], "USERNAME": "a@b.test", "id": "mine", "groups": [{ "value": "x" }], "shoeSize": 44,
            "Active": "False", "title": "", "nickName": null,
            "name": { "GivenName": "Ann", "x": 1 }, "emails": [{ "value": "a@b.test", "Primary": true }],
        });
        let expected = json!({
            "userName": "a@b.test", "active": false, "name": { "givenName": "Ann" },
            "emails": [{ "value": "a@b.test", "primary": true }],
        });
        assert_eq!(Value::Object(cleaned(USER, &body).unwrap()), expected);
        let two = json!([{ "value": "a@b.test", "primary": true }, { "value": "c@b.test", "primary": true }]);
        for wrong in [
            json!([]),
            json!({}),
            json!({ "userName": 1 }),
            json!({ "userName": "x\0" }),
            json!({ "userName": "x".repeat(1_001) }),
            json!({ "userName": "x", "active": 1 }),
            json!({ "userName": "x", "name": "y" }),
            json!({ "userName": "x", "emails": two }),
            json!({ "userName": "x", "emails": [{ "type": "work" }] }),
            json!({ "userName": "x", "emails": "a" }),
        ] {
            assert!(cleaned(USER, &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_has_what_was_asked_for() {
        let seen = |wanted, unwanted| {
            let Value::Object(mut resource) = json!({
                "schemas": [], "id": "1", "title": "t", "name": { "givenName": "A", "familyName": "B" },
                "emails": [{ "value": "a", "type": "work" }],
            }) else {
                panic!()
            };
            View::read(wanted, unwanted).unwrap().apply(&mut resource);
            Value::Object(resource)
        };
        assert_eq!(
            seen(Some("NAME.givenName"), None),
            json!({ "schemas": [], "id": "1", "name": { "givenName": "A" } })
        );
        assert_eq!(
            seen(None, Some("id,title,emails.type,name")),
            json!({ "schemas": [], "id": "1", "emails": [{ "value": "a" }] })
        );
        assert!(View::read(Some("a"), Some("b")).is_err() && View::read(Some("a b"), None).is_err());
    }
}
