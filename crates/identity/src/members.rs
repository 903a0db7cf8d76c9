//! Members: who belongs to an organization and with which role (MEM-1…13). Changes of one
//! organization's members happen one after another, and the caller's own role is read again after
//! the others are done, so that two admins cannot demote each other.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;
use tale_notices::Kind;

use crate::caller::Caller;
use crate::fields;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::store::members::MemberRow;
use crate::trail::{self, Change};

/// A member of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The person.
    pub user: UserId,
    /// The display name.
    pub name: String,
    /// The sign-in address.
    pub email: String,
    /// The role here.
    pub role: Role,
    /// Whether the person made the organization, which fixes their role (MEM-5).
    pub is_creator: bool,
    /// Since when.
    pub joined_at: DateTime<Utc>,
}

impl From<MemberRow> for Member {
    fn from(row: MemberRow) -> Self {
        Self {
            user: row.user_id,
            name: row.name,
            email: row.email,
            role: row.role,
            is_creator: row.is_creator,
            joined_at: row.created_at,
        }
    }
}

/// Someone to add.
#[derive(Clone)]
pub struct NewMember {
    /// The address. An account that exists is reused.
    pub email: String,
    /// The name of a new account; absent = the address before the `@`.
    pub name: Option<String>,
    /// The role, not owner.
    pub role: Role,
    /// The password of a new account; ignored when the account exists.
    pub password: Option<String>,
    /// Whether the person has to replace it before anything else (PWD-8).
    pub must_change_password: bool,
}

/// Someone added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The person.
    pub user: UserId,
    /// Whether the account is new.
    pub created: bool,
}

/// What there is of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookedUp {
    /// Whether it has an account on this Tale.
    pub account: bool,
    /// Whether that belongs to the organization.
    pub member: bool,
}

/// What changes about a member; absent fields stay.
#[derive(Clone, Default)]
pub struct MemberChange {
    /// Another role.
    pub role: Option<Role>,
    /// Another display name.
    pub name: Option<String>,
    /// Another password; ends the member's sessions.
    pub password: Option<String>,
    /// Whether the person has to replace it before anything else.
    pub must_change_password: bool,
}

pub(crate) fn not_a_member() -> Problem {
    Problem::new(Code::MemberNotFound, "This person is not a member of the organization.")
}

/// Why a role change is refused, in the order in which the reasons are told (MEM-4…8).
fn judge_role_change(target: &MemberRow, new: Role, caller: UserId, other_admins: i64) -> Result<(), Problem> {
    let refuse = |code, sentence: &'static str| Err(Problem::new(code, sentence));
    if target.role == Role::Owner {
        return refuse(
            Code::MemberOwnerRoleImmutable,
            "The owner's role cannot be changed. Transfer the ownership instead.",
        );
    }
    if new == Role::Owner {
        return refuse(
            Code::MemberOwnerRoleAssignForbidden,
            "Nobody is made owner by a role change. Transfer the ownership instead.",
        );
    }
    if target.is_creator {
        return refuse(
            Code::MemberCreatorRoleImmutable,
            "The role of the person who created the organization cannot be changed.",
        );
    }
    if target.role == Role::Admin && new < Role::Admin && other_admins == 0 {
        return refuse(
            Code::MemberLastAdmin,
            "The organization needs an owner or admin. Make somebody else an admin first.",
        );
    }
    if target.user_id == caller {
        return refuse(Code::MemberSelfRoleForbidden, "You cannot change your own role. Ask another owner or admin.");
    }
    Ok(())
}

impl Identity {
    /// Every member, first come first.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn members(&self, caller: &Caller) -> Result<Vec<Member>, Problem> {
        caller.require(Capability::MembersManage)?;
        let mut conn = self.0.db.acquire().await?;
        Ok(store::members::list(&mut conn, caller.org).await?.into_iter().map(Member::from).collect())
    }

    /// Whether an address has an account (MEM-2). It tells of people of other organizations, so the question is written
    /// down; whoever asks is to be held to a rate.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY` for what is no address.
    pub async fn look_up_account(&self, caller: &Caller, email: &str) -> Result<LookedUp, Problem> {
        caller.require(Capability::MembersManage)?;
        let email = fields::email(email)?;
        let mut tx = self.begin().await?;
        let account = store::accounts::by_email(&mut tx, &email).await?;
        let member = match &account {
            Some(account) => store::members::get(&mut tx, caller.org, account.id).await?.is_some(),
            None => false,
        };
        let change = Change::members("member.looked_up").named(&email).with("account", account.is_some());
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        tx.commit().await?;
        Ok(LookedUp { account: account.is_some(), member })
    }

    /// Adds a member, with a new account when the address has none (MEM-1).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `MEMBER_OWNER_ROLE_ASSIGN_FORBIDDEN`, `ALREADY_MEMBER`,
    /// `PASSWORD_POLICY`, `INVALID_BODY`, `BUSY`.
    pub async fn add_member(&self, caller: &Caller, new: &NewMember) -> Result<Added, Problem> {
        caller.require(Capability::MembersManage)?;
        match new.role {
            Role::Owner => {
                return Err(Problem::new(
                    Code::MemberOwnerRoleAssignForbidden,
                    "Nobody is added as owner. Transfer the ownership instead.",
                ));
            }
            Role::Disabled => {
                return Err(Problem::invalid_field(
                    "role",
                    "must be one of \"admin\", \"developer\", \"editor\", \"member\"",
                ));
            }
            _ => {}
        }
        let email = fields::email(&new.email)?;
        let (known, rules) = {
            let mut conn = self.0.db.acquire().await?;
            let known = store::accounts::by_email(&mut conn, &email).await?.map(|account| account.id);
            (known, self.password_rules_of(&mut conn, caller.org).await?)
        };
        let fresh = match known {
            Some(_) => None,
            None => {
                let name = match new.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
                    Some(name) => fields::person_name(name)?,
                    None => email.split('@').next().unwrap_or(&email).to_owned(),
                };
                let password = new
                    .password
                    .as_deref()
                    .ok_or_else(|| Problem::invalid_field("password", "is required for a new account"))?;
                Some((name, self.new_hash(password, &rules).await?))
            }
        };
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::MembersManage).await?;
        let added = match (known, fresh) {
            (Some(user), _) => Added { user, created: false },
            (None, Some((name, hash))) => match self.insert_account(&mut tx, &email, &name, Some(&hash), true).await? {
                Some(user) => {
                    if new.must_change_password {
                        store::accounts::mark_temporary(&mut tx, user).await?;
                    }
                    Added { user, created: true }
                }
                // Somebody made the account while the password was hashed; that one is reused.
                None => Added {
                    user: store::accounts::by_email(&mut tx, &email).await?.ok_or_else(not_a_member)?.id,
                    created: false,
                },
            },
            (None, None) => return Err(Problem::internal("a new member without an account")),
        };
        let now = self.now();
        if !store::members::insert(&mut tx, caller.org, added.user, new.role, now).await? {
            return Err(Problem::new(Code::AlreadyMember, "This person is a member already."));
        }
        let change = Change::members("member.added")
            .on("member", added.user)
            .named(&email)
            .with("role", new.role.text())
            .with("accountCreated", added.created);
        let change = match added.created && new.must_change_password {
            true => change.with("mustChangePassword", true),
            false => change,
        };
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(added)
    }

    /// Changes a member's role, name or password (MEM-3…8, 12, PWD-6). A name or password of
    /// somebody who belongs to other organizations too is theirs alone to change.
    ///
    /// # Errors
    /// `MEMBER_ROLE_UPDATE_FORBIDDEN` and the other member codes, `MEMBER_ACCOUNT_SHARED`,
    /// `MEMBER_NOT_FOUND`, `PASSWORD_POLICY`, `INVALID_BODY`, `BUSY`.
    pub async fn update_member(&self, caller: &Caller, user: UserId, change: &MemberChange) -> Result<Member, Problem> {
        may_change(caller)?;
        let acting = caller.user.ok_or_else(role_update_forbidden)?;
        let name = change.name.as_deref().map(fields::person_name).transpose()?;
        let hash = match &change.password {
            Some(password) => {
                // Of people who belong elsewhere too, nobody else changes the password.
                let rules = self.password_rules_of(&mut *self.0.db.acquire().await?, caller.org).await?;
                Some(self.new_hash(password, &rules).await?)
            }
            None => None,
        };
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        let now_role = self.role_now(&mut tx, caller).await?;
        if !now_role.can(Capability::MembersManage) {
            return Err(role_update_forbidden());
        }
        let target = store::members::get(&mut tx, caller.org, user).await?.ok_or_else(not_a_member)?;
        if let Some(role) = change.role.filter(|role| *role != target.role) {
            let others = store::members::other_admins(&mut tx, caller.org, user).await?;
            judge_role_change(&target, role, acting, others)?;
            store::members::set_role(&mut tx, caller.org, user, role).await?;
            let entry = Change::members("member.role_changed").on("member", user).named(&target.email).changed(
                "role",
                target.role.text(),
                role.text(),
            );
            let entry = entry.with("role", role.text()).told(user, Kind::RoleChanged);
            trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &entry).await?;
            self.end_groundless_keys(&mut tx, caller.org, &caller.actor()).await?;
        }
        if name.is_some() || hash.is_some() {
            if target.role == Role::Owner && now_role != Role::Owner {
                return Err(Problem::new(
                    Code::MemberRoleUpdateForbidden,
                    "Only an owner changes the name or password of an owner.",
                ));
            }
            if user != acting && store::members::elsewhere(&mut tx, caller.org, user).await? {
                return Err(Problem::new(
                    Code::MemberAccountShared,
                    "This person belongs to another organization too, so only they change their name and password.",
                ));
            }
        }
        if let Some(name) = name.filter(|name| *name != target.name) {
            store::accounts::set_name(&mut tx, user, &name).await?;
            let entry = Change::members("member.renamed").on("member", user).named(&target.email).changed(
                "name",
                target.name.as_str(),
                name,
            );
            trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &entry).await?;
        }
        if let Some(hash) = hash {
            // Nobody has to replace what they chose for themselves.
            let temporary = change.must_change_password && user != acting;
            store::accounts::set_password(&mut tx, user, &hash, temporary, self.now()).await?;
            store::sessions::delete_all(&mut tx, user, None).await?;
            store::factors::end_all_pending(&mut tx, user).await?;
            let entry = Change::members("member.password_reset")
                .on("member", user)
                .named(&target.email)
                .with("mustChangePassword", temporary)
                .told(user, Kind::PasswordReset);
            trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &entry).await?;
        }
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        let member = store::members::get(&mut tx, caller.org, user).await?.ok_or_else(not_a_member)?;
        tx.commit().await?;
        Ok(member.into())
    }

    /// Removes a member. The account, its keys and what the person made stay; preferences here go.
    ///
    /// # Errors
    /// `MEMBER_REMOVE_FORBIDDEN`, `MEMBER_SELF_REMOVAL_FORBIDDEN`,
    /// `MEMBER_OWNER_REMOVAL_FORBIDDEN`, `MEMBER_NOT_FOUND`.
    pub async fn remove_member(&self, caller: &Caller, user: UserId) -> Result<(), Problem> {
        may_remove(caller)?;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        if !self.role_now(&mut tx, caller).await?.can(Capability::MembersManage) {
            return Err(remove_forbidden());
        }
        if caller.user == Some(user) {
            return Err(Problem::new(
                Code::MemberSelfRemovalForbidden,
                "You cannot remove yourself. Ask another owner or admin.",
            ));
        }
        let target = store::members::get(&mut tx, caller.org, user).await?.ok_or_else(not_a_member)?;
        if target.role == Role::Owner {
            return Err(Problem::new(
                Code::MemberOwnerRemovalForbidden,
                "An owner cannot be removed. Transfer the ownership first.",
            ));
        }
        store::members::delete(&mut tx, caller.org, user).await?;
        let change =
            Change::members("member.removed").on("member", user).named(&target.email).with("role", target.role.text());
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        self.end_groundless_keys(&mut tx, caller.org, &caller.actor()).await?;
        self.end_competences(&mut tx, (caller.org, user), caller.user, &caller.actor()).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes another active member the owner and the caller an admin (MEM-9).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` for callers who are not owner, `MEMBER_NOT_FOUND` for a target that is not
    /// an active member, `MEMBER_SELF_ROLE_FORBIDDEN` for oneself.
    pub async fn transfer_ownership(&self, caller: &Caller, to: UserId) -> Result<(), Problem> {
        caller.require(Capability::OrganizationOwn)?;
        let from = caller.user.ok_or_else(|| Capability::OrganizationOwn.refusal(caller.role, caller.by_key()))?;
        if from == to {
            return Err(Problem::new(
                Code::MemberSelfRoleForbidden,
                "You are the owner already. Choose another member.",
            ));
        }
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::OrganizationOwn).await?;
        let target = store::members::get(&mut tx, caller.org, to).await?.filter(|target| target.role != Role::Disabled);
        let target = target.ok_or_else(|| {
            Problem::new(Code::MemberNotFound, "The new owner must be an active member of the organization.")
        })?;
        store::members::set_role(&mut tx, caller.org, from, Role::Admin).await?;
        store::members::set_role(&mut tx, caller.org, to, Role::Owner).await?;
        let change = Change::members("ownership.transferred").on("member", to).named(&target.email).changed(
            "owner",
            from.to_string(),
            to.to_string(),
        );
        let change = change.told(to, Kind::OwnershipTransferred);
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        self.end_groundless_keys(&mut tx, caller.org, &caller.actor()).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Waits for earlier changes of the members and checks the caller's right again.
    pub(crate) async fn relock(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        capability: Capability,
    ) -> Result<(), Problem> {
        store::members::lock(conn, caller.org).await?;
        let role = self.role_now(conn, caller).await?;
        if role.can(capability) { Ok(()) } else { Err(capability.refusal(role, caller.by_key())) }
    }

    /// The caller's role as it is inside this transaction.
    pub(crate) async fn role_now(&self, conn: &mut PgConnection, caller: &Caller) -> Result<Role, Problem> {
        let Some(user) = caller.user else { return Ok(caller.role) };
        let membership = store::organizations::membership(conn, caller.org, user).await?;
        Ok(membership.map_or(Role::Disabled, |membership| membership.role))
    }

    /// Moves a member to the role that somebody outside gave them, inside the caller's transaction and behind the lock
    /// of the members; `false` when the person has no enabled seat. Owners, the creator and the last admin stay what
    /// they are. `change` is the entry so far.
    pub(crate) async fn move_member(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        user: UserId,
        role: Role,
        change: Change,
    ) -> Result<bool, Problem> {
        let Some(member) = store::members::get(conn, org, user).await? else { return Ok(false) };
        if member.role == Role::Disabled {
            return Ok(false);
        }
        let fixed = member.role == Role::Owner
            || member.is_creator
            || (member.role == Role::Admin
                && role < Role::Admin
                && store::members::other_admins(conn, org, user).await? == 0);
        if fixed || member.role == role {
            return Ok(true);
        }
        store::members::set_role(conn, org, user, role).await?;
        let change = change
            .on("member", user)
            .named(&member.email)
            .changed("role", member.role.text(), role.text())
            .with("role", role.text())
            .told(user, Kind::RoleChanged);
        trail::record(conn, self.now(), org, &Actor::System, &change).await?;
        self.end_groundless_keys(conn, org, &Actor::System).await?;
        trail::hint(conn, org, Topic::Members, None).await?;
        Ok(true)
    }
}

/// Refuses callers who may not change members (MEM-3). For doors, before they read a body.
///
/// # Errors
/// `MEMBER_ROLE_UPDATE_FORBIDDEN`.
pub fn may_change(caller: &Caller) -> Result<(), Problem> {
    if caller.can(Capability::MembersManage) { Ok(()) } else { Err(role_update_forbidden()) }
}

/// Refuses callers who may not remove members (MEM-3).
///
/// # Errors
/// `MEMBER_REMOVE_FORBIDDEN`.
pub fn may_remove(caller: &Caller) -> Result<(), Problem> {
    if caller.can(Capability::MembersManage) { Ok(()) } else { Err(remove_forbidden()) }
}

fn remove_forbidden() -> Problem {
    Problem::new(Code::MemberRemoveForbidden, "Only owners and admins remove members (`members.manage`).")
}

fn role_update_forbidden() -> Problem {
    Problem::new(Code::MemberRoleUpdateForbidden, "Only owners and admins change members (`members.manage`).")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(user: UserId, role: Role, is_creator: bool) -> MemberRow {
        MemberRow {
            user_id: user,
            name: "A".into(),
            email: "a@b".into(),
            role,
            is_creator,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn every_refusal_has_its_trigger() {
        let (me, other) = (UserId::new(), UserId::new());
        let code = |target: MemberRow, new, admins| {
            judge_role_change(&target, new, me, admins).map_err(|problem| problem.code)
        };
        assert_eq!(code(row(other, Role::Owner, true), Role::Member, 1), Err(Code::MemberOwnerRoleImmutable));
        assert_eq!(code(row(other, Role::Member, false), Role::Owner, 1), Err(Code::MemberOwnerRoleAssignForbidden));
        assert_eq!(code(row(other, Role::Admin, true), Role::Member, 1), Err(Code::MemberCreatorRoleImmutable));
        assert_eq!(code(row(other, Role::Admin, false), Role::Disabled, 0), Err(Code::MemberLastAdmin));
        assert_eq!(code(row(me, Role::Admin, false), Role::Member, 1), Err(Code::MemberSelfRoleForbidden));
        assert_eq!(code(row(other, Role::Admin, false), Role::Member, 1), Ok(()));
        assert_eq!(code(row(other, Role::Disabled, false), Role::Editor, 1), Ok(()));
    }
}
