//! What people are told about.

use serde::{Deserialize, Serialize};

/// A kind of notification. Its text is stored and stands on the wire: it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Somebody signed in from a device or a network that was not seen before.
    NewDevice,
    /// The password was changed by its owner, or in their name.
    PasswordChanged,
    /// An owner or admin set a new password.
    PasswordReset,
    /// An authenticator app or a passkey was added.
    FactorAdded,
    /// One was removed.
    FactorRemoved,
    /// An owner or admin took one away.
    FactorReset,
    /// New backup codes took the place of the old ones.
    BackupCodesRenewed,
    /// Somebody signed in with a backup code.
    BackupCodeUsed,
    /// An API key was made, or a successor of one.
    KeyMade,
    /// The role in an organization is another one.
    RoleChanged,
    /// The ownership of an organization was handed over.
    OwnershipTransferred,
    /// Sign-ins to the account are refused for a while, because too many failed.
    SignInBlocked,
    /// The same, of a member, for owners and admins.
    MemberBlocked,
    /// The chain of audit entries does not hold, for owners and admins.
    AuditBroken,
    /// A large part of a usage limit of the person, or of their API key, is used.
    LimitNear,
    /// The same of a limit of many, for owners and admins.
    SharedLimitNear,
}

impl Kind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 16] = [
        Self::NewDevice,
        Self::SignInBlocked,
        Self::KeyMade,
        Self::BackupCodeUsed,
        Self::LimitNear,
        Self::MemberBlocked,
        Self::SharedLimitNear,
        Self::PasswordChanged,
        Self::PasswordReset,
        Self::FactorAdded,
        Self::FactorRemoved,
        Self::FactorReset,
        Self::BackupCodesRenewed,
        Self::RoleChanged,
        Self::OwnershipTransferred,
        Self::AuditBroken,
    ];

    /// The word on the wire and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NewDevice => "newDevice",
            Self::PasswordChanged => "passwordChanged",
            Self::PasswordReset => "passwordReset",
            Self::FactorAdded => "factorAdded",
            Self::FactorRemoved => "factorRemoved",
            Self::FactorReset => "factorReset",
            Self::BackupCodesRenewed => "backupCodesRenewed",
            Self::BackupCodeUsed => "backupCodeUsed",
            Self::KeyMade => "keyMade",
            Self::RoleChanged => "roleChanged",
            Self::OwnershipTransferred => "ownershipTransferred",
            Self::SignInBlocked => "signInBlocked",
            Self::MemberBlocked => "memberBlocked",
            Self::AuditBroken => "auditBroken",
            Self::LimitNear => "limitNear",
            Self::SharedLimitNear => "sharedLimitNear",
        }
    }

    /// The kind of a stored word; a later release may have written others.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.text() == text)
    }

    /// Whether nobody can decline it: whoever takes an account over must not be able to hush up what they do next.
    #[must_use]
    pub fn always_told(self) -> bool {
        !matches!(
            self,
            Self::NewDevice
                | Self::SignInBlocked
                | Self::KeyMade
                | Self::BackupCodeUsed
                | Self::MemberBlocked
                | Self::LimitNear
                | Self::SharedLimitNear
        )
    }

    /// Whether strangers can cause it as often as they like.
    pub(crate) fn by_strangers(self) -> bool {
        matches!(self, Self::SignInBlocked | Self::MemberBlocked)
    }

    /// Whether only owners and admins are told.
    pub(crate) fn for_admins(self) -> bool {
        matches!(self, Self::MemberBlocked | Self::AuditBroken | Self::SharedLimitNear)
    }

    /// The page that shows more, below the organization's own.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::KeyMade => "settings/api/rest",
            Self::RoleChanged | Self::OwnershipTransferred => "settings/organization",
            Self::MemberBlocked => "settings/governance/logs?tab=blocks",
            Self::AuditBroken => "settings/governance/logs",
            Self::LimitNear => "settings/usage",
            Self::SharedLimitNear => "settings/governance/policies-limits",
            _ => "settings/account",
        }
    }
}
