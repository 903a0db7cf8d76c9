//! The roles, the capabilities and the one table that says which role holds which capability.
//!
//! Handlers, the "what may I do" read and the generated route tests all ask this table, so the
//! server and the page never disagree.

mod matrix;

pub use matrix::Capability;

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

    /// What this role has of `capability`.
    #[must_use]
    pub fn cell(self, capability: Capability) -> Cell {
        let [member, editor, developer, admin, owner] = capability.cells();
        match self {
            Self::Disabled => Cell::No,
            Self::Member => member,
            Self::Editor => editor,
            Self::Developer => developer,
            Self::Admin => admin,
            Self::Owner => owner,
        }
    }

    /// Whether this role holds `capability` without further conditions.
    #[must_use]
    pub fn can(self, capability: Capability) -> bool {
        self.cell(capability) == Cell::Yes
    }

    /// Whether this role holds `capability`, or what of it is reading.
    #[must_use]
    pub fn can_read(self, capability: Capability) -> bool {
        matches!(self.cell(capability), Cell::Yes | Cell::ReadOnly)
    }

    /// What this role may do, in the order of the table: acts that have a door.
    #[must_use]
    pub fn capabilities(self) -> Vec<Capability> {
        let holds = |capability: &Capability| capability.door().is_some() && self.can(*capability);
        Capability::ALL.iter().copied().filter(holds).collect()
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

/// What one role has of one act: a cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Held.
    Yes,
    /// Not held.
    No,
    /// Held for what is assigned to or shared with the person.
    Assigned,
    /// Held as a policy or a role in the project says.
    Depends,
    /// Held by the reviewer that the request names, as a policy says.
    Reviewer,
    /// Held with a competence.
    Competence,
    /// Held as a policy says, or with a competence.
    DependsOrCompetence,
    /// Held for reading.
    ReadOnly,
    /// Held for reading names.
    NamesOnly,
    /// Held for the teams of the person.
    OwnTeams,
}

impl Cell {
    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Yes => "allowed",
            Self::No => "refused",
            Self::Assigned => "assigned",
            Self::Depends => "policy",
            Self::Reviewer => "namedReviewer",
            Self::Competence => "competence",
            Self::DependsOrCompetence => "policyOrCompetence",
            Self::ReadOnly => "read",
            Self::NamesOnly => "names",
            Self::OwnTeams => "ownTeams",
        }
    }
}

/// How the door of an act refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Door {
    /// The code in the app (ROLE-5).
    code: Code,
    /// What is refused, as the object of "may not".
    act: &'static str,
}

impl Capability {
    /// The refusal of this capability to `role`, naming the capability (ROLE-5). `by_key`: the call
    /// came in with an API key, where refused settings read `ROLE_FORBIDDEN`.
    #[must_use]
    pub fn refusal(self, role: Role, by_key: bool) -> Problem {
        let door = self.door().unwrap_or(Door { code: Code::OrgForbidden, act: "do this" });
        let code = match door.code {
            Code::OrgForbidden if by_key && role != Role::Disabled => Code::RoleForbidden,
            code => code,
        };
        Problem::new(
            code,
            format!(
                "Your role `{role}` may not {} (`{}`). Ask an owner or admin of the organization.",
                door.act,
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

    /// Each cell of the matrix as the specification prints it.
    #[test]
    fn every_cell_is_that_of_the_specification() {
        let sign = |cell: Cell| match cell {
            Cell::Yes => "✓",
            Cell::No => "—",
            Cell::Assigned => "A",
            Cell::Depends => "P",
            Cell::Reviewer => "— (P: named reviewer)",
            Cell::Competence => "C",
            Cell::DependsOrCompetence => "P/C",
            Cell::ReadOnly => "read",
            Cell::NamesOnly => "names",
            Cell::OwnTeams => "own teams",
        };
        let printed: Vec<&str> = include_str!("permissions/matrix.md").lines().collect();
        assert_eq!(printed.len(), Capability::ALL.len());
        let mut area = "";
        for (line, capability) in printed.into_iter().zip(Capability::ALL) {
            let mut cells = line.trim_matches(['|', ' ']).split(" | ").map(str::trim);
            let mut action = cells.next().unwrap();
            if let Some((bold, rest)) = action.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
                area = bold;
                action = rest.trim_matches([':', ' ']);
            }
            assert_eq!((capability.area(), capability.action()), (area, action));
            for role in [Role::Member, Role::Editor, Role::Developer, Role::Admin, Role::Owner] {
                // an inbox that is read as a whole is marked twice
                let cell = cells.next().unwrap().trim_end_matches(" all");
                assert_eq!(sign(role.cell(*capability)), cell, "{capability} as {role}");
            }
            assert_eq!(cells.next(), None);
            assert_eq!(Role::Disabled.cell(*capability), Cell::No, "{capability}");
        }
    }

    #[test]
    fn an_owner_may_whatever_an_admin_may() {
        for capability in Capability::ALL {
            assert!(Role::Owner.can(*capability) || !Role::Admin.can(*capability), "{capability}");
        }
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
