//! Groups of a directory: the teams of its organization. A team that a directory makes or changes is the
//! directory's from then on.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::{OrgId, TeamId, UserId};

use super::schema::{self, GROUP, GROUP_URN, View};
use super::users::SOURCE;
use super::{Directory, Invalid, Page, Resource, ScimError, Search, check_version, patch};
use crate::service::Identity;
use crate::store;
use crate::store::scim::GroupRow;
use crate::teams;
use crate::trail::{self, Change};

fn taken(name: &str) -> ScimError {
    ScimError::Taken(format!("Another team of the organization is called `{name}`, whatever its case and spaces."))
}

fn outsider() -> ScimError {
    ScimError::invalid(
        Invalid::Value,
        "Only users of the organization can be members of a group; nothing was changed. Provision the user first.",
    )
}

/// A team with everything but `meta`.
fn whole(row: &GroupRow, members: &[(TeamId, UserId)], base: &str) -> Map<String, Value> {
    let members: Vec<Value> = members
        .iter()
        .filter(|(team, _)| *team == row.id)
        .map(|(_, user)| json!({ "value": user.to_string(), "$ref": format!("{base}/Users/{user}"), "type": "User" }))
        .collect();
    let mut body = Map::new();
    body.insert("schemas".to_owned(), json!([GROUP_URN]));
    body.insert("id".to_owned(), json!(row.id.to_string()));
    body.insert("displayName".to_owned(), json!(row.name));
    if let Some(id) = &row.external_id {
        body.insert("externalId".to_owned(), json!(id));
    }
    if !members.is_empty() {
        body.insert("members".to_owned(), Value::Array(members));
    }
    body
}

fn resource(body: Map<String, Value>, team: TeamId, base: &str, view: &View) -> Resource {
    Resource::new(body, "Group", format!("{base}/Groups/{team}"), view)
}

/// What a request makes of a group.
struct Wanted {
    name: (String, String),
    external_id: Option<String>,
    members: BTreeSet<UserId>,
}

impl Wanted {
    fn read(clean: &Map<String, Value>) -> Result<Self, ScimError> {
        let text = |name: &str| clean.get(name).and_then(Value::as_str);
        let name = teams::names(text("displayName").unwrap_or_default()).map_err(|_| {
            ScimError::invalid(Invalid::Value, "`displayName` must have 1 to 100 characters, in one line")
        })?;
        let members = clean.get("members").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let id = |member: &Value| {
            let kind = member["type"].as_str().unwrap_or("User");
            let id = member["value"].as_str().and_then(|id| id.parse().ok());
            id.filter(|_| kind.eq_ignore_ascii_case("User")).ok_or_else(outsider)
        };
        Ok(Self {
            name,
            external_id: text("externalId").map(str::to_owned),
            members: members.iter().map(id).collect::<Result<_, _>>()?,
        })
    }
}

impl Identity {
    /// The teams that match, first come first.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn scim_groups(&self, directory: &Directory, base: &str, search: &Search) -> Result<Page, ScimError> {
        let org = directory.org;
        let mut conn = self.0.db.acquire().await?;
        let mut rows = store::scim::groups(&mut conn, org).await?;
        // Who is in them is the largest part; directories that ask for it have a name or leave it out.
        if let Some(filter) = &search.filter {
            if let Some(user) = filter.fixed("members", Some("value")) {
                let teams = match user.parse() {
                    Ok(user) => store::scim::teams_with(&mut conn, org, user).await?,
                    Err(_) => Vec::new(),
                };
                rows.retain(|row| teams.contains(&row.id));
            }
            if let Some(name) = filter.fixed("displayName", None) {
                rows.retain(|row| row.name.to_lowercase() == name.to_lowercase());
            }
            let ids: Vec<TeamId> = rows.iter().map(|row| row.id).collect();
            let members = store::scim::members_of(&mut conn, org, &ids).await?;
            rows.retain(|row| filter.matches(GROUP, &Value::Object(whole(row, &members, base))));
        }
        let total = rows.len();
        let rows: Vec<GroupRow> = rows.into_iter().skip(search.skip).take(search.count).collect();
        let ids: Vec<TeamId> = rows.iter().map(|row| row.id).collect();
        let members =
            if search.view.has("members") { store::scim::members_of(&mut conn, org, &ids).await? } else { Vec::new() };
        let resources =
            rows.iter().map(|row| resource(whole(row, &members, base), row.id, base, &search.view).body).collect();
        Ok(Page { total, resources })
    }

    /// One team.
    ///
    /// # Errors
    /// Unknown for a team of another organization.
    pub async fn scim_group(
        &self,
        directory: &Directory,
        base: &str,
        id: &str,
        view: &View,
    ) -> Result<Resource, ScimError> {
        let mut conn = self.0.db.acquire().await?;
        let (row, body) = group_of(&mut conn, directory.org, id, base).await?;
        Ok(resource(body, row.id, base, view))
    }

    /// Makes a team.
    ///
    /// # Errors
    /// `invalidValue`, also for members from outside, with nothing made; taken.
    pub async fn scim_create_group(
        &self,
        directory: &Directory,
        base: &str,
        body: &Value,
        view: &View,
    ) -> Result<Resource, ScimError> {
        let wanted = Wanted::read(&schema::cleaned(GROUP, body)?)?;
        let (org, now, id) = (directory.org, self.now(), TeamId::new());
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, org).await?;
        if store::teams::count(&mut tx, org).await? >= teams::MAX_TEAMS {
            return Err(ScimError::invalid(
                Invalid::Value,
                format!("An organization has at most {} teams.", teams::MAX_TEAMS),
            ));
        }
        let names = (wanted.name.0.as_str(), wanted.name.1.as_str());
        if !store::teams::insert(&mut tx, org, id, names, "", now).await? {
            return Err(taken(names.0));
        }
        let change = Change::members("team.created").on("team", id).named(names.0).with("source", SOURCE);
        trail::record(&mut tx, now, org, &Actor::System, &change).await?;
        store::scim::adopt(&mut tx, org, id, wanted.external_id.as_deref()).await?;
        self.set_members(&mut tx, org, (id, names.0), &wanted.members).await?;
        teams::changed(&mut tx, org).await?;
        let (row, body) = group_of(&mut tx, org, &id.to_string(), base).await?;
        tx.commit().await?;
        Ok(resource(body, row.id, base, view))
    }

    /// Makes a team what the body says.
    ///
    /// # Errors
    /// Those of [`Identity::scim_patch_group`].
    pub async fn scim_replace_group(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
        body: &Value,
        view: &View,
    ) -> Result<Resource, ScimError> {
        self.change_group(directory, base, (id, version), view, |_| schema::cleaned(GROUP, body)).await
    }

    /// Changes a team. `version`: the `If-Match` of the request.
    ///
    /// # Errors
    /// What is wrong with the request; members from outside, with nothing changed; taken; stale; unknown.
    pub async fn scim_patch_group(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
        body: &Value,
        view: &View,
    ) -> Result<Resource, ScimError> {
        self.change_group(directory, base, (id, version), view, |mut now| {
            patch::apply(GROUP, &mut now, body)?;
            schema::cleaned(GROUP, &Value::Object(now))
        })
        .await
    }

    /// Deletes a team with everything that goes with it (SCIM-7).
    ///
    /// # Errors
    /// Stale; unknown.
    pub async fn scim_delete_group(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
    ) -> Result<(), ScimError> {
        let org = directory.org;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, org).await?;
        let (row, body) = group_of(&mut tx, org, id, base).await?;
        check_version(version, &body)?;
        self.drop_team(&mut tx, org, &Actor::System, (row.id, &row.name), Some(SOURCE)).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn change_group(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
        view: &View,
        make: impl FnOnce(Map<String, Value>) -> Result<Map<String, Value>, ScimError> + Send,
    ) -> Result<Resource, ScimError> {
        let org = directory.org;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, org).await?;
        let (row, body) = group_of(&mut tx, org, id, base).await?;
        check_version(version, &body)?;
        let wanted = Wanted::read(&make(body)?)?;
        let names = (wanted.name.0.as_str(), wanted.name.1.as_str());
        let mut touched = wanted.external_id != row.external_id;
        if names.0 != row.name {
            let (_, description) = store::teams::get(&mut tx, org, row.id).await?.ok_or(ScimError::Unknown)?;
            if !store::teams::update(&mut tx, org, row.id, names, &description).await? {
                return Err(taken(names.0));
            }
            let change = Change::members("team.updated")
                .on("team", row.id)
                .named(names.0)
                .changed("name", row.name.as_str(), names.0)
                .with("source", SOURCE);
            trail::record(&mut tx, self.now(), org, &Actor::System, &change).await?;
            touched = true;
        }
        touched |= self.set_members(&mut tx, org, (row.id, names.0), &wanted.members).await?;
        if touched {
            if row.source != SOURCE {
                let change = Change::members("team.adopted").on("team", row.id).named(names.0).with("source", SOURCE);
                trail::record(&mut tx, self.now(), org, &Actor::System, &change).await?;
            }
            store::scim::adopt(&mut tx, org, row.id, wanted.external_id.as_deref()).await?;
            teams::changed(&mut tx, org).await?;
        }
        let (row, body) = group_of(&mut tx, org, id, base).await?;
        tx.commit().await?;
        Ok(resource(body, row.id, base, view))
    }

    /// Makes these people the members of a team, all or none. Returns whether that changed anything.
    async fn set_members(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        (team, name): (TeamId, &str),
        wanted: &BTreeSet<UserId>,
    ) -> Result<bool, ScimError> {
        let now = self.now();
        let held = store::teams::members(conn, org, team).await?;
        let gone: Vec<_> = held.iter().filter(|member| !wanted.contains(&member.user_id)).collect();
        let new: Vec<UserId> =
            wanted.iter().copied().filter(|user| !held.iter().any(|member| member.user_id == *user)).collect();
        let known = store::teams::of_organization(conn, org, &new).await?;
        if known.len() < new.len() {
            return Err(outsider());
        }
        store::scim::put_in(conn, org, team, &new, now).await?;
        let gone_ids: Vec<UserId> = gone.iter().map(|member| member.user_id).collect();
        store::scim::take_out(conn, org, team, &gone_ids).await?;
        let added = known.iter().map(|(user, email)| ("team.member_added", *user, email));
        let removed = gone.iter().map(|member| ("team.member_removed", member.user_id, &member.email));
        for (action, user, email) in added.chain(removed) {
            let change = Change::members(action)
                .on("team", team)
                .named(name)
                .with("user", user.to_string())
                .with("email", email.as_str())
                .with("source", SOURCE);
            trail::record(conn, now, org, &Actor::System, &change).await?;
        }
        Ok(!new.is_empty() || !gone.is_empty())
    }
}

/// A team as it is now, with everything but `meta`.
async fn group_of(
    conn: &mut PgConnection,
    org: OrgId,
    id: &str,
    base: &str,
) -> Result<(GroupRow, Map<String, Value>), ScimError> {
    let id: TeamId = id.parse().map_err(|_| ScimError::Unknown)?;
    let row = store::scim::group(conn, org, id).await?.ok_or(ScimError::Unknown)?;
    let members = store::scim::members_of(conn, org, &[id]).await?;
    let body = whole(&row, &members, base);
    Ok((row, body))
}
