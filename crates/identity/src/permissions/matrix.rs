//! Section 10.1 of the identity specification as one table: who may do what. It is whole: what this
//! release has no door for yet stands here too, and reaches no page.

use super::Cell::{
    Assigned, Competence, Depends, DependsOrCompetence, NamesOnly, No, OwnTeams, ReadOnly, Reviewer, Yes,
};
use super::{Cell, Door};

macro_rules! matrix {
    ($($area:literal {
        $($variant:ident = $name:literal $action:literal [$member:ident $editor:ident $developer:ident $admin:ident $owner:ident]
            $(else $code:ident $act:literal)?;)+
    })+) => {
        /// One act of the matrix.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Capability { $($(#[doc = $action] $variant),+),+ }

        impl Capability {
            /// Every act, in the order of the matrix.
            pub const ALL: &'static [Self] = &[$($(Self::$variant),+),+];

            /// The name on the wire.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $($(Self::$variant => $name),+),+ }
            }

            /// The area of the matrix.
            #[must_use]
            pub fn area(self) -> &'static str {
                match self { $($(Self::$variant => $area),+),+ }
            }

            /// The act in the words of the matrix.
            #[must_use]
            pub fn action(self) -> &'static str {
                match self { $($(Self::$variant => $action),+),+ }
            }

            /// Its cells: member, editor, developer, admin, owner.
            #[must_use]
            pub fn cells(self) -> [Cell; 5] {
                match self { $($(Self::$variant => [$member, $editor, $developer, $admin, $owner]),+),+ }
            }

            /// How its door refuses; `None`: this release has no door for it.
            #[must_use]
            pub fn door(self) -> Option<Door> {
                match self { $($(Self::$variant => matrix!(@door $($code $act)?)),+),+ }
            }
        }
    };
    (@door) => { None };
    (@door $code:ident $act:literal) => { Some(Door { code: tale_core::Code::$code, act: $act }) };
}

matrix! {
    "Chat" {
        ChatUse = "chat.use" "create, send, read own threads, pick a model"
            [Yes Yes Yes Yes Yes] else OrgForbidden "use the chat";
        ChatRate = "chat.rate" "Rate a reply one can read; withdraw own rating"
            [Yes Yes Yes Yes Yes] else OrgForbidden "rate replies";
        ChatClear = "chat.clear" "Archive/delete own chats"
            [Yes Yes Yes Yes Yes] else OrgForbidden "archive or delete chats";
    }
    "Knowledge" {
        KnowledgeRead = "knowledge.read" "read shared items"
            [Yes Yes Yes Yes Yes] else OrgForbidden "read documents";
        KnowledgeWrite = "knowledge.write" "upload, edit, delete documents and folders"
            [No Yes Yes Yes Yes] else RbacForbidden "change documents";
        RecordsWrite = "records.write" "contacts, products, websites, entries: create, edit, delete"
            [No Yes Yes Yes Yes];
        CloudImport = "cloudImport.own" "cloud import with one's own account (Members browse only)"
            [No Yes Yes Yes Yes];
        KnowledgeOtherTeams = "knowledge.otherTeams" "documents restricted to teams one is not in"
            [No No No Yes Yes];
    }
    "Inbox" {
        InboxAssigned = "inbox.assigned" "read assigned conversations (own or team's)"
            [Assigned Assigned Assigned Yes Yes];
        InboxTriage = "inbox.triage" "unassigned conversations (triage)"
            [No No No Yes Yes];
        InboxReply = "inbox.reply" "reply, close, reopen, archive, spam"
            [No Assigned Assigned Yes Yes];
        InboxAssign = "inbox.assign" "assign a conversation"
            [No No No Yes Yes];
    }
    "Approvals" {
        ApprovalsRead = "approvals.read" "read pending (own scope)"
            [Assigned Assigned Assigned Yes Yes];
        ApprovalsDecide = "approvals.decide" "decide"
            [Reviewer Yes Yes Yes Yes];
    }
    "Projects" {
        ProjectsUse = "projects.use" "open, tasks, comments, start agents"
            [Depends Depends Depends Yes Yes];
        ProjectsCreate = "projects.create" "create a project"
            [No Yes Yes Yes Yes];
        ProjectsManage = "projects.manage" "archive, restore, delete a project, replace its teams; delete a task"
            [No No No Yes Yes];
        ProjectsSecrets = "projects.secrets" "project and agent secrets: change (names only for Developers)"
            [No No NamesOnly Yes Yes];
    }
    "Agents" {
        AgentsRead = "agents.read" "list"
            [Depends Yes Yes Yes Yes];
        AgentsWrite = "agents.write" "create, edit, delete"
            [No Yes Yes Yes Yes];
    }
    "Skills" {
        SkillsWrite = "skills.write" "create, share with own teams"
            [Yes Yes Yes Yes Yes];
        SkillsPublish = "skills.publish" "share with the whole organization"
            [DependsOrCompetence DependsOrCompetence DependsOrCompetence Yes Yes];
    }
    "Automations" {
        AutomationsRead = "automations.read" "read definitions and runs within project visibility (by link, REST, MCP)"
            [Yes Yes Yes Yes Yes];
        AutomationsMock = "automations.mock" "mock runs of the organization; validate, test and run on mocks over MCP"
            [Yes Yes Yes Yes Yes];
        AutomationsWrite = "automations.write" "navigation section, check a draft in the app, create, edit, deploy, set triggers, live start, delete"
            [No No Yes Yes Yes];
    }
    "Connectors" {
        ConnectorsRead = "connectors.read" "list"
            [No ReadOnly Yes Yes Yes];
        ConnectorsManage = "connectors.manage" "credentials: add, connect, change, delete; external MCP servers"
            [No No Yes Yes Yes];
        OauthAppsManage = "oauthApps.manage" "vendor OAuth apps (connectors and cloud import)"
            [No No No Yes Yes];
    }
    "Providers" {
        ProvidersManage = "providers.manage" "list, definitions, credentials, catalog refresh"
            [No No Yes Yes Yes] else RoleForbidden "manage model providers";
    }
    "API" {
        ApiKeysOwn = "apiKeys.own" "own keys"
            [Competence Competence Yes Yes Yes] else ApiKeyCreateForbidden "create API keys";
        ApiKeysOthers = "apiKeys.others" "keys for another member, team, project, organization"
            [No No No Yes Yes] else ApiKeyCreateForbidden "create API keys for others";
        ApiSetup = "api.setup" "MCP and WebDAV setup tabs"
            [No No Yes Yes Yes];
        ModelsCall = "models.call" "call models over the API (when switched on)"
            [Competence Competence Yes Yes Yes] else ModelApiForbidden "call models over the API";
        ActForOthers = "members.actFor" "export another member's notifications; act for another member"
            [Competence Competence Competence Yes Yes];
    }
    "Sandboxes" {
        SandboxesManage = "sandboxes.manage" "limits, use, devices (Developers read)"
            [No No ReadOnly Yes Yes] else RoleForbidden "see or use the sandboxes";
        WorkspacesManage = "workspaces.manage" "workspaces: list, stop, pin, destroy, clean-up rule"
            [No No No Yes Yes] else RoleForbidden "manage the sandboxes of others";
    }
    "Organization" {
        OrganizationManage = "organization.manage" "settings, name, branding, data residency"
            [No No No Yes Yes] else OrgForbidden "change the organization";
        MembersManage = "members.manage" "members: add, role, remove, reset factors"
            [No No No Yes Yes] else OrgForbidden "manage members";
        TeamsRead = "teams.read" "team names (list)"
            [Yes Yes Yes Yes Yes] else OrgForbidden "see the teams";
        TeamsMembers = "teams.members" "team member list"
            [OwnTeams OwnTeams OwnTeams Yes Yes] else TeamForbidden "see who is in a team that is not theirs";
        TeamsManage = "teams.manage" "team changes"
            [No No No Yes Yes] else TeamForbidden "change teams";
        SignInManage = "signIn.manage" "Enterprise SSO, SCIM, trusted headers, embedding"
            [No No No Yes Yes] else OrgForbidden "change how people sign in";
        PoliciesRead = "governance.read" "governance policies: read those meant for all members"
            [Yes Yes Yes Yes Yes] else OrgForbidden "read the organization's policies";
        GovernanceManage = "governance.manage" "governance policies: read all, write"
            [No No No Yes Yes] else OrgForbidden "change the organization's policies";
        CompetencesManage = "competences.manage" "grant/revoke competences"
            [No No No Yes Yes] else CompetenceForbidden "grant or revoke competences";
        AuditRead = "audit.read" "audit log read, export, verify"
            [No No No Yes Yes] else OrgForbidden "read the audit log";
        LegalHoldsSee = "legalHolds.see" "legal holds: see the mark on held items"
            [Yes Yes Yes Yes Yes];
        LegalHoldsManage = "legalHolds.manage" "legal holds: list, place, request/approve release"
            [No No No Yes Yes];
        ErasureManage = "erasure.manage" "erasure requests: file, approve, cancel, retry"
            [No No No Yes Yes];
        ErasurePolicy = "erasure.policy" "erasure governance policy: change"
            [No No No No Yes];
        TrashManage = "trash.manage" "trash: list, restore (REST contact restore: Editor and up, CTC-4)"
            [No No No Yes Yes];
        UsageRead = "usage.read" "metrics pages: usage, feedback, chat health, projects"
            [No No No Yes Yes] else OrgForbidden "see the usage";
        MetricsTechnical = "metrics.technical" "metrics pages: automations, agent runtime turns"
            [No No Yes Yes Yes];
        UsageOwn = "usage.own" "own usage limits (Settings > Usage)"
            [Yes Yes Yes Yes Yes] else OrgForbidden "see your usage limits";
        ApplicationsManage = "applications.manage" "applications registered for sign-in; revoke any agent sign-in of the organization"
            [No No No Yes Yes];
        OrganizationOwn = "organization.own" "transfer ownership, delete organization"
            [No No No No Yes] else OrgForbidden "transfer the ownership or delete the organization";
    }
}
