//! The roles, the capabilities and the one table that says which role holds which capability.
//!
//! Handlers, the "what may I do" read and the generated route tests all ask this table, so the
//! server and the page never disagree. It is section 10.1 of the identity specification, reduced
//! to the doors that exist.

use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};

/// What a person may be in an organization (ROLE-1). Ordered from the least to the most (ROLE-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Keeps the membership and grants nothing (ROLE-6).
    Disabled,
    /// Chats and reads.
    Member,
    /// Also writes the organization's knowledge.
    Editor,
    /// Also holds the technical settings.
    Developer,
    /// Everything except what belongs to the owner.
    Admin,
    /// Everything.
    Owner,
}

impl Role {
    /// Every role, from the least to the most.
    pub const ALL: [Self; 6] = [Self::Disabled, Self::Member, Self::Editor, Self::Developer, Self::Admin, Self::Owner];

    /// The word on the wire and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Member => "member",
            Self::Editor => "editor",
            Self::Developer => "developer",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Reads the word of [`Role::text`]; `None` for any other word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.text() == text)
    }

    /// Whether this role holds `capability`.
    #[must_use]
    pub fn can(self, capability: Capability) -> bool {
        self >= capability.lowest_role()
    }

    /// What this role may do, in the order of the table.
    #[must_use]
    pub fn capabilities(self) -> Vec<Capability> {
        Capability::ALL.iter().copied().filter(|capability| self.can(*capability)).collect()
    }
}

/// A word that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role")]
pub struct UnknownRole(pub String);

impl TryFrom<String> for Role {
    type Error = UnknownRole;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or(UnknownRole(text))
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

macro_rules! capabilities {
    ($($(#[$doc:meta])* $variant:ident = $text:literal from $lowest:ident else $code:ident $act:literal),+ $(,)?) => {
        /// One thing a role may or may not do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Capability { $($(#[$doc])* $variant),+ }

        impl Capability {
            /// Every capability, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The least role that holds it; every role above holds it too (ROLE-2).
            #[must_use]
            pub fn lowest_role(self) -> Role {
                match self { $(Self::$variant => Role::$lowest),+ }
            }

            /// The code of a refusal in the app (ROLE-5).
            fn refusal_code(self) -> Code {
                match self { $(Self::$variant => Code::$code),+ }
            }

            /// What is refused, as the object of "may not".
            fn act(self) -> &'static str {
                match self { $(Self::$variant => $act),+ }
            }
        }
    };
}

capabilities! {
    /// Create chats, send, read one's own chats, pick a model.
    ChatUse = "chat.use" from Member else OrgForbidden "use the chat",
    /// Read and search the organization's documents.
    KnowledgeRead = "knowledge.read" from Member else OrgForbidden "read documents",
    /// Upload, change and delete documents.
    KnowledgeWrite = "knowledge.write" from Editor else RbacForbidden "change documents",
    /// Model providers, their definitions and credentials.
    ProvidersManage = "providers.manage" from Developer else RoleForbidden "manage model providers",
    /// Choose the embedding model (EMB-1).
    EmbeddingManage = "embedding.manage" from Admin else OrgForbidden "choose the embedding model",
    /// Add members, change roles, remove members.
    MembersManage = "members.manage" from Admin else OrgForbidden "manage members",
    /// See who belongs to the organization.
    MembersRead = "members.read" from Member else OrgForbidden "see the members",
    /// Make API keys for oneself.
    ApiKeysOwn = "apiKeys.own" from Developer else ApiKeyCreateForbidden "create API keys",
    /// See what the organization uses and what it costs.
    UsageRead = "usage.read" from Admin else OrgForbidden "see the usage",
    /// Rename the organization and change its settings.
    OrganizationManage = "organization.manage" from Admin else OrgForbidden "change the organization",
    /// Write policies, and read all of them (POL-2).
    GovernanceManage = "governance.manage" from Admin else OrgForbidden "change the organization's policies",
    /// Delete the organization.
    OrganizationDelete = "organization.delete" from Owner else OrgForbidden "delete the organization",
    /// Hand the organization to another member.
    OwnershipTransfer = "ownership.transfer" from Owner else OrgForbidden "transfer the ownership",
}

impl Capability {
    /// The refusal of this capability to `role`, naming the capability (ROLE-5). `by_key`: the call
    /// came in with an API key, where refused settings read `ROLE_FORBIDDEN`.
    #[must_use]
    pub fn refusal(self, role: Role, by_key: bool) -> Problem {
        let code = match self.refusal_code() {
            Code::OrgForbidden if by_key && role != Role::Disabled => Code::RoleForbidden,
            code => code,
        };
        Problem::new(
            code,
            format!(
                "Your role `{role}` may not {} (`{}`). Ask an owner or admin of the organization.",
                self.act(),
                self.text()
            ),
        )
        .with_data(serde_json::json!({ "capability": self.text() }))
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 10.1 of the specification, written out by hand: disabled, member, editor,
    /// developer, admin, owner.
    const TRUTH: &[(&str, [bool; 6])] = &[
        ("chat.use", [false, true, true, true, true, true]),
        ("knowledge.read", [false, true, true, true, true, true]),
        ("knowledge.write", [false, false, true, true, true, true]),
        ("providers.manage", [false, false, false, true, true, true]),
        ("embedding.manage", [false, false, false, false, true, true]),
        ("members.manage", [false, false, false, false, true, true]),
        ("members.read", [false, true, true, true, true, true]),
        ("apiKeys.own", [false, false, false, true, true, true]),
        ("usage.read", [false, false, false, false, true, true]),
        ("organization.manage", [false, false, false, false, true, true]),
        ("governance.manage", [false, false, false, false, true, true]),
        ("organization.delete", [false, false, false, false, false, true]),
        ("ownership.transfer", [false, false, false, false, false, true]),
    ];

    #[test]
    fn the_table_is_the_matrix_of_the_specification() {
        let table: Vec<(&str, [bool; 6])> = Capability::ALL
            .iter()
            .map(|capability| (capability.text(), Role::ALL.map(|role| role.can(*capability))))
            .collect();
        assert_eq!(table, TRUTH);
    }

    #[test]
    fn policies_name_the_roles_that_somebody_can_act_with() {
        let acting: Vec<&str> = Role::ALL.into_iter().filter(|role| *role != Role::Disabled).map(Role::text).collect();
        assert_eq!(acting, tale_governance::budgets::ROLES);
    }

    #[test]
    fn role_words_read_back() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.text()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.text());
        }
        assert_eq!(Role::parse("Owner"), None);
    }

    #[test]
    fn a_refusal_names_the_capability_and_its_door() {
        let app = Capability::MembersManage.refusal(Role::Editor, false);
        assert_eq!(app.code, Code::OrgForbidden);
        assert!(app.message.contains("members.manage"));
        assert_eq!(Capability::MembersManage.refusal(Role::Editor, true).code, Code::RoleForbidden);
        assert_eq!(Capability::KnowledgeWrite.refusal(Role::Member, true).code, Code::RbacForbidden);
    }
}
