//! Teams: groups of an organization's members (TEAM-1…9). Changes of one organization's teams
//! happen one after another, behind the same lock as changes of its members.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, TeamId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;
use tale_governance::policies;

use crate::caller::Caller;
use crate::fields;
use crate::permissions::Capability;
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// Most teams of one organization.
pub const MAX_TEAMS: i64 = 500;
/// Most people that one request puts into a team.
pub const MAX_ADDED: usize = 500;
/// Longest name.
const MAX_NAME_CHARS: usize = 100;
/// Longest description.
const MAX_DESCRIPTION_CHARS: usize = 500;

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// The team.
    pub id: TeamId,
    /// Its name, unique in the organization.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// How many people are in it.
    pub members: u64,
    /// Whether the caller is one of them.
    pub mine: bool,
    /// Whether its name and its people are a directory's to change.
    pub managed: bool,
    /// Since when it exists.
    pub created_at: DateTime<Utc>,
}

impl From<store::teams::TeamRow> for Team {
    fn from(row: store::teams::TeamRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            description: row.description,
            members: row.members.unsigned_abs(),
            mine: row.mine,
            managed: row.managed,
            created_at: row.created_at,
        }
    }
}

/// Somebody in a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMember {
    /// The person.
    pub user: UserId,
    /// The display name.
    pub name: String,
    /// The sign-in address.
    pub email: String,
}

/// What the deletion of a team touches (TEAM-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct TeamDeletion {
    /// People who lose the team and stay in the organization.
    pub members: i64,
    /// Live API keys of the team, which end with it.
    pub api_keys: i64,
    /// Usage limits of the team or of each of its members, which no longer apply.
    pub limits: i64,
    /// Rules about models for the team, which no longer apply.
    pub model_rules: i64,
}

/// A team to make.
#[derive(Debug, Clone, Default)]
pub struct NewTeam {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Who is in it. Nobody: the person who makes it.
    pub members: Vec<UserId>,
}

/// What changes about a team; absent fields stay.
#[derive(Debug, Clone, Default)]
pub struct TeamChange {
    /// Another name.
    pub name: Option<String>,
    /// Another description.
    pub description: Option<String>,
}

fn not_found() -> Problem {
    Problem::new(Code::TeamNotFound, "This team does not exist.")
}

fn taken(name: &str) -> Problem {
    Problem::new(Code::TeamNameTaken, format!("There is a team called `{name}` already. Choose another name."))
}

/// A name as it is shown and as it is compared: spaces and case do not tell two teams apart.
pub(crate) fn names(text: &str) -> Result<(String, String), Problem> {
    let name = fields::short_text("name", text, MAX_NAME_CHARS)?;
    let key = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    Ok((name, key))
}

fn description(text: &str) -> Result<String, Problem> {
    match text.trim() {
        "" => Ok(String::new()),
        text => fields::short_text("description", text, MAX_DESCRIPTION_CHARS),
    }
}

impl Identity {
    /// Every team by name (TEAM-2).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn teams(&self, caller: &Caller) -> Result<Vec<Team>, Problem> {
        caller.require(Capability::TeamsRead)?;
        let mut conn = self.0.db.acquire().await?;
        Ok(store::teams::list(&mut conn, caller.org, caller.user, MAX_TEAMS)
            .await?
            .into_iter()
            .map(Team::from)
            .collect())
    }

    /// Who is in a team, for its members and for those who manage teams (TEAM-2).
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` for others, `TEAM_NOT_FOUND`.
    pub async fn team_members(&self, caller: &Caller, team: TeamId) -> Result<Vec<TeamMember>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        if !caller.can(Capability::TeamsMembers) {
            let inside = match caller.user {
                Some(user) => store::teams::has(&mut conn, caller.org, team, user).await?,
                None => false,
            };
            if !inside {
                return Err(Capability::TeamsMembers.refusal(caller.role, caller.by_key()));
            }
        }
        store::teams::get(&mut conn, caller.org, team).await?.ok_or_else(not_found)?;
        let rows = store::teams::members(&mut conn, caller.org, team).await?;
        let member =
            |row: store::teams::TeamMemberRow| TeamMember { user: row.user_id, name: row.name, email: row.email };
        Ok(rows.into_iter().map(member).collect())
    }

    /// Makes a team.
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` without the right, `INVALID_BODY`, `TEAM_NAME_TAKEN`, `TEAM_LIMIT`, `USER_NOT_ORG_MEMBER`.
    pub async fn create_team(&self, caller: &Caller, new: &NewTeam) -> Result<Team, Problem> {
        caller.require(Capability::TeamsManage)?;
        let (name, key) = names(&new.name)?;
        let description = description(&new.description)?;
        let people = match (new.members.is_empty(), caller.user) {
            (true, Some(maker)) => vec![maker],
            _ => new.members.clone(),
        };
        let (id, now) = (TeamId::new(), self.now());
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::TeamsManage).await?;
        if store::teams::count(&mut tx, caller.org).await? >= MAX_TEAMS {
            return Err(Problem::new(
                Code::TeamLimit,
                format!("An organization has at most {MAX_TEAMS} teams. Delete one that is not needed any more."),
            ));
        }
        if !store::teams::insert(&mut tx, caller.org, id, (&name, &key), &description, now).await? {
            return Err(taken(&name));
        }
        let change = Change::members("team.created").on("team", id).named(&name);
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        let added = self.put_in(&mut tx, caller, id, &name, &people).await?;
        changed(&mut tx, caller.org).await?;
        tx.commit().await?;
        let mine = caller.user.is_some_and(|user| added.contains(&user));
        Ok(Team { id, name, description, members: added.len() as u64, mine, managed: false, created_at: now })
    }

    /// Renames or describes a team.
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` without the right, `TEAM_NOT_FOUND`, `INVALID_BODY`, `TEAM_NAME_TAKEN`.
    pub async fn update_team(&self, caller: &Caller, team: TeamId, change: &TeamChange) -> Result<(), Problem> {
        caller.require(Capability::TeamsManage)?;
        let name = change.name.as_deref().map(names).transpose()?;
        let text = change.description.as_deref().map(description).transpose()?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::TeamsManage).await?;
        let (old_name, old_text) = store::teams::get(&mut tx, caller.org, team).await?.ok_or_else(not_found)?;
        let name = match name {
            Some(name) => name,
            None => names(&old_name)?,
        };
        let text = text.unwrap_or_else(|| old_text.clone());
        if name.0 == old_name && text == old_text {
            return Ok(());
        }
        if name.0 != old_name {
            not_managed(&mut tx, caller.org, team).await?;
        }
        if !store::teams::update(&mut tx, caller.org, team, (&name.0, &name.1), &text).await? {
            return Err(taken(&name.0));
        }
        let mut entry = Change::members("team.updated").on("team", team).named(&name.0);
        if name.0 != old_name {
            entry = entry.changed("name", old_name, name.0);
        }
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &entry).await?;
        trail::hint(&mut tx, caller.org, Topic::Teams, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// What the deletion of a team would touch now.
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` without the right, `TEAM_NOT_FOUND`.
    pub async fn team_deletion(&self, caller: &Caller, team: TeamId) -> Result<TeamDeletion, Problem> {
        caller.require(Capability::TeamsManage)?;
        let mut conn = self.0.db.acquire().await?;
        store::teams::deletion(&mut conn, caller.org, team, self.now()).await?.ok_or_else(not_found)
    }

    /// Deletes a team. Its people stay members of the organization (TEAM-9).
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` without the right, `TEAM_NOT_FOUND`.
    pub async fn delete_team(&self, caller: &Caller, team: TeamId) -> Result<(), Problem> {
        caller.require(Capability::TeamsManage)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::TeamsManage).await?;
        let (name, _) = store::teams::get(&mut tx, caller.org, team).await?.ok_or_else(not_found)?;
        self.drop_team(&mut tx, caller.org, &caller.actor(), (team, &name), None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Deletes a team with its keys inside the caller's transaction. `source`: what does so, when no person does.
    pub(crate) async fn drop_team(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        (team, name): (TeamId, &str),
        source: Option<&'static str>,
    ) -> Result<(), Problem> {
        let members = store::teams::members(conn, org, team).await?.len();
        let ended = store::keys::end_of_team(conn, org, team, self.now()).await?;
        store::teams::delete(conn, org, team).await?;
        let mut entry = Change::members("team.deleted")
            .on("team", team)
            .named(name)
            .with("members", members)
            .with("apiKeys", ended.len());
        if let Some(source) = source {
            entry = entry.with("source", source);
        }
        trail::record(conn, self.now(), org, actor, &entry).await?;
        self.tell_ended(conn, org, actor, &ended).await?;
        changed(conn, org).await
    }

    /// Puts people into a team, all or none. Those who are in it stay as they are (TEAM-4, TEAM-5).
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` without the right, `TEAM_NOT_FOUND`, `USER_NOT_ORG_MEMBER`, `INVALID_BODY`.
    pub async fn add_to_team(&self, caller: &Caller, team: TeamId, people: &[UserId]) -> Result<(), Problem> {
        caller.require(Capability::TeamsManage)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::TeamsManage).await?;
        let (name, _) = store::teams::get(&mut tx, caller.org, team).await?.ok_or_else(not_found)?;
        not_managed(&mut tx, caller.org, team).await?;
        self.put_in(&mut tx, caller, team, &name, people).await?;
        changed(&mut tx, caller.org).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes somebody out of a team, which keeps at least one member (TEAM-6).
    ///
    /// # Errors
    /// `TEAM_FORBIDDEN` without the right, `TEAM_NOT_FOUND`, `MEMBER_NOT_FOUND` for somebody who is not in it,
    /// `TEAM_LAST_MEMBER`.
    pub async fn remove_from_team(&self, caller: &Caller, team: TeamId, user: UserId) -> Result<(), Problem> {
        caller.require(Capability::TeamsManage)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::TeamsManage).await?;
        let (name, _) = store::teams::get(&mut tx, caller.org, team).await?.ok_or_else(not_found)?;
        not_managed(&mut tx, caller.org, team).await?;
        let members = store::teams::members(&mut tx, caller.org, team).await?;
        let Some(leaving) = members.iter().find(|member| member.user_id == user) else {
            return Err(Problem::new(Code::MemberNotFound, "This person is not in the team."));
        };
        if members.len() == 1 {
            return Err(Problem::new(
                Code::TeamLastMember,
                "A team keeps at least one member. Add somebody else first, or delete the team.",
            ));
        }
        store::teams::remove(&mut tx, caller.org, team, user).await?;
        let entry = Change::members("team.member_removed")
            .on("team", team)
            .named(&name)
            .with("user", user.to_string())
            .with("email", leaving.email.as_str());
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &entry).await?;
        changed(&mut tx, caller.org).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Puts people into a team inside the caller's transaction; returns those who were not in it.
    async fn put_in(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        team: TeamId,
        name: &str,
        people: &[UserId],
    ) -> Result<Vec<UserId>, Problem> {
        let people: Vec<UserId> = people.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        if people.len() > MAX_ADDED {
            return Err(Problem::invalid_field("userIds", &format!("must have at most {MAX_ADDED} entries")));
        }
        let known = store::teams::of_organization(conn, caller.org, &people).await?;
        if known.len() < people.len() {
            return Err(Problem::new(
                Code::UserNotOrgMember,
                "Only members of the organization can be in its teams. Add the person to the organization first.",
            ));
        }
        let now = self.now();
        let added = store::teams::add(conn, caller.org, team, &people, now).await?;
        for (user, email) in known.iter().filter(|(user, _)| added.contains(user)) {
            let entry = Change::members("team.member_added")
                .on("team", team)
                .named(name)
                .with("user", user.to_string())
                .with("email", email.as_str());
            trail::record(conn, now, caller.org, &caller.actor(), &entry).await?;
        }
        Ok(added)
    }
}

/// Refuses a change of what is a directory's, while it provisions the organization (SCIM-9).
async fn not_managed(conn: &mut PgConnection, org: OrgId, team: TeamId) -> Result<(), Problem> {
    if store::scim::manages(conn, org, team).await? {
        return Err(Problem::new(
            Code::TeamManaged,
            "The directory of the organization manages the name and the people of this team. Change them there.",
        ));
    }
    Ok(())
}

/// Tells open browsers, and the processes that hold policies, whose rules may name the team.
pub(crate) async fn changed(conn: &mut PgConnection, org: OrgId) -> Result<(), Problem> {
    policies::announce(conn, org).await?;
    trail::hint(conn, org, Topic::Teams, None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_spaces_tell_no_two_teams_apart() {
        let key = |text| names(text).unwrap().1;
        assert_eq!(key(" Sales  Team"), key("sales team"));
        assert_ne!(key("Sales"), key("Sale s"));
        assert_eq!(names(" Sales  Team ").unwrap().0, "Sales  Team");
        assert!(names("  ").is_err() && names(&"x".repeat(101)).is_err());
    }
}
