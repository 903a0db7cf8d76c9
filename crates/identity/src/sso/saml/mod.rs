//! Sign-in by SAML 2.0 (SAML-1…6): the browser carries an `AuthnRequest` away and a signed response back.
//!
//! The modules below know no clock, database or network, except for `flow`. What a believed assertion leads to is that of
//! every provider: `sso::seat`.

mod c14n;
mod encryption;
mod flow;
mod metadata;
mod request;
mod response;
mod settings;
mod signature;
#[cfg(test)]
mod tests;
pub(crate) mod xml;

pub use flow::Posted;
pub use metadata::Imported;
pub(super) use settings::MAX_KEY;
pub use settings::SamlSettings;

use super::claims::{self, Person};
use super::config::Config;
use crate::fields;
use response::Assertion;

impl Person {
    /// The person of a believed assertion. The error says for the log what is missing.
    fn asserted(config: &Config, assertion: Assertion) -> Result<Self, &'static str> {
        let address = match assertion.format.as_deref() {
            // A name for one session: nobody could be known by it again.
            Some("transient" | "encrypted") => return Err("name-id-format"),
            // A name for good; the address is an attribute.
            Some("persistent") => None,
            _ => fields::email(&assertion.name_id).ok(),
        };
        let said = assertion.attributes;
        let text = |path: &str| claims::at(&said, path).and_then(serde_json::Value::as_str).map(str::to_owned);
        let groups = claims::at(&said, &config.claims.groups).map(claims::texts);
        Ok(Self {
            email: text(&config.claims.email).and_then(|text| fields::email(&text).ok()).or_else(|| address.clone()),
            email_verified: None,
            name: text(&config.claims.name).and_then(|text| fields::person_name(&text).ok()),
            // Addresses are the same however they are written.
            subject: address.unwrap_or(assertion.name_id),
            teams: groups.clone(),
            groups,
            said,
        })
    }
}
