//! The statements of this room. One function per statement; no ids and no times are made here.

pub(crate) mod accounts;
pub(crate) mod attempts;
pub(crate) mod branding;
pub(crate) mod competences;
pub(crate) mod factors;
pub(crate) mod frames;
pub(crate) mod keys;
pub(crate) mod members;
pub(crate) mod organizations;
pub(crate) mod passkeys;
pub(crate) mod policies;
pub(crate) mod preferences;
pub(crate) mod scim;
pub(crate) mod sessions;
pub(crate) mod sso;
pub(crate) mod teams;
pub(crate) mod trusted_headers;
