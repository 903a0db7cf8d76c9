//! Where a deployment is, as providers and browsers know it.

use tale_core::ids::OrgId;

/// The addresses of a deployment at which sign-ins elsewhere come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The origin that the browser is on, with the base path and without a slash at the end.
    pub here: String,
    /// The same of every origin, the canonical one first.
    pub all: Vec<String>,
}

impl Places {
    /// Where providers that speak OpenID Connect or OAuth 2.0 send the browser back: the address that all connections
    /// share, or the one of the organization `own`.
    #[must_use]
    pub fn callback(&self, own: Option<OrgId>) -> String {
        callback(&self.here, own)
    }

    /// The same of every origin.
    #[must_use]
    pub fn every_callback(&self, own: Option<OrgId>) -> Vec<String> {
        self.all.iter().map(|place| callback(place, own)).collect()
    }

    /// Our SAML entity id for an organization, which is the address of our metadata too. It names the organization, so
    /// that what a provider says to one is not for another, and is the same wherever the browser is.
    #[must_use]
    pub fn entity_id(&self, org: OrgId) -> String {
        let canonical = self.all.first().unwrap_or(&self.here);
        format!("{canonical}/api/sso/saml/{org}/metadata")
    }

    /// The address that takes SAML responses for an organization.
    #[must_use]
    pub fn acs(&self, org: OrgId) -> String {
        acs(&self.here, org)
    }

    /// The same of every origin.
    #[must_use]
    pub fn every_acs(&self, org: OrgId) -> Vec<String> {
        self.all.iter().map(|place| acs(place, org)).collect()
    }
}

fn callback(place: &str, own: Option<OrgId>) -> String {
    match own {
        Some(org) => format!("{place}/api/sso/{org}/callback"),
        None => format!("{place}/api/sso/callback"),
    }
}

fn acs(place: &str, org: OrgId) -> String {
    format!("{place}/api/sso/saml/{org}/acs")
}
