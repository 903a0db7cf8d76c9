//! Users of a directory: the members of its organization.

use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use sqlx::types::Json;
use tale_core::Actor;
use tale_core::ids::{OrgId, TeamId, UserId};
use tale_db::hints::Topic;
use tale_notices::Kind;

use super::schema::{self, USER, USER_URN, View};
use super::{Directory, Invalid, Page, Resource, SLICE, ScimError, Search, check_version, patch};
use crate::fields;
use crate::permissions::Role;
use crate::service::Identity;
use crate::store;
use crate::store::scim::{Said, UserRow};
use crate::trail::{self, Change};

/// What the log calls a directory.
pub(super) const SOURCE: &str = "scim";

const OWNER: &str =
    "An owner is not a directory's to deactivate, to remove or to give another address. Transfer the ownership first.";
const SHARED: &str = "This account belongs to another organization too, so its address is not a directory's to change.";

fn taken(address: &str) -> ScimError {
    ScimError::Taken(format!(
        "The user name or address `{address}` has an account here already. If the person is a member, change that user instead; if not, an owner or admin adds them first."
    ))
}

/// What a directory can write of a member, as it is now.
fn writable(row: &UserRow) -> Map<String, Value> {
    let mut body = match &row.attributes {
        Some(Json(attributes)) => attributes.clone(),
        None => Map::from_iter([("displayName".to_owned(), json!(row.name))]),
    };
    body.entry("emails").or_insert_with(|| json!([{ "value": row.email, "primary": true }]));
    body.insert("userName".to_owned(), json!(row.user_name.as_ref().unwrap_or(&row.email)));
    body.insert("active".to_owned(), json!(row.role != Role::Disabled));
    if let Some(id) = &row.external_id {
        body.insert("externalId".to_owned(), json!(id));
    }
    body
}

/// A member with everything but `meta`.
fn whole(row: &UserRow, groups: &[(UserId, TeamId, String)], base: &str) -> Map<String, Value> {
    let mut body = writable(row);
    let groups: Vec<Value> = groups
        .iter()
        .filter(|(user, ..)| *user == row.user_id)
        .map(|(_, team, name)| {
            json!({ "value": team.to_string(), "$ref": format!("{base}/Groups/{team}"), "display": name })
        })
        .collect();
    if !groups.is_empty() {
        body.insert("groups".to_owned(), Value::Array(groups));
    }
    body.insert("schemas".to_owned(), json!([USER_URN]));
    body.insert("id".to_owned(), json!(row.user_id.to_string()));
    body
}

fn location(base: &str, user: UserId) -> String {
    format!("{base}/Users/{user}")
}

fn text<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    body.get(name).and_then(Value::as_str)
}

/// The sign-in address: the user name when it is one, else the preferred or the first address.
fn address(body: &Map<String, Value>) -> Result<String, ScimError> {
    let user_name = text(body, "userName").unwrap_or_default();
    if let Ok(email) = fields::email(user_name) {
        return Ok(email);
    }
    let emails = body.get("emails").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let preferred = emails.iter().find(|email| email["primary"] == true).or(emails.first());
    let email = preferred.and_then(|email| email["value"].as_str()).and_then(|email| fields::email(email).ok());
    email.ok_or_else(|| {
        ScimError::invalid(
            Invalid::Value,
            "`userName` or the primary one of `emails` must be an e-mail address: people sign in with it",
        )
    })
}

/// The name that others see, as far as the directory says one.
fn display_name(body: &Map<String, Value>) -> Option<String> {
    let name = body.get("name").and_then(Value::as_object);
    let part = |part: &str| name.and_then(|name| text(name, part)).unwrap_or_default();
    let whole = format!("{} {}", part("givenName"), part("familyName"));
    [text(body, "displayName").unwrap_or_default(), part("formatted"), whole.as_str()]
        .into_iter()
        .find_map(|name| fields::person_name(name).ok())
}

/// What is kept beside the columns.
fn kept(body: &Map<String, Value>) -> Map<String, Value> {
    let keep = |name: &&String| !matches!(name.as_str(), "userName" | "active" | "externalId");
    body.iter().filter(|(name, _)| keep(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Identity {
    /// The members that match, first come first. A filter that names a user name or an id of the directory is looked
    /// up; others are asked of each member, in slices.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn scim_users(&self, directory: &Directory, base: &str, search: &Search) -> Result<Page, ScimError> {
        let org = directory.org;
        let mut conn = self.0.db.acquire().await?;
        let Some(filter) = &search.filter else {
            let total = usize::try_from(store::scim::count_users(&mut conn, org).await?).unwrap_or(0);
            let skip = i64::try_from(search.skip).unwrap_or(i64::MAX);
            let limit = i64::try_from(search.count).unwrap_or(0);
            let rows = store::scim::users_page(&mut conn, org, skip, limit).await?;
            let resources = seen(&mut conn, org, &rows, base, &search.view).await?;
            return Ok(Page { total, resources });
        };
        let mut page = Page::default();
        let mut take = |rows: &[UserRow], groups: &[(UserId, TeamId, String)]| {
            for row in rows {
                let body = whole(row, groups, base);
                let body = Value::Object(body);
                if !filter.matches(USER, &body) {
                    continue;
                }
                if page.total >= search.skip && page.resources.len() < search.count {
                    let Value::Object(body) = body else { continue };
                    page.resources.push(Resource::new(body, "User", location(base, row.user_id), &search.view).body);
                }
                page.total += 1;
            }
        };
        let ids = match (filter.fixed("userName", None), filter.fixed("externalId", None), filter.fixed("id", None)) {
            (Some(name), ..) => Some(store::scim::ids_by_name(&mut conn, org, &name.to_lowercase()).await?),
            (_, Some(id), _) => Some(store::scim::ids_by_external_id(&mut conn, org, id).await?),
            (.., Some(id)) => Some(id.parse().into_iter().collect()),
            _ => None,
        };
        if let Some(ids) = ids {
            let rows = store::scim::users_among(&mut conn, org, &ids).await?;
            let groups = groups_of(&mut conn, org, &rows).await?;
            take(&rows, &groups);
            return Ok(page);
        }
        let mut after = None;
        loop {
            let rows = store::scim::users_after(&mut conn, org, after, SLICE).await?;
            let groups = groups_of(&mut conn, org, &rows).await?;
            take(&rows, &groups);
            let Some(last) = rows.last().filter(|_| rows.len() as i64 == SLICE) else { return Ok(page) };
            after = Some((last.created_at, last.user_id));
        }
    }

    /// One member.
    ///
    /// # Errors
    /// Unknown for whoever is no member of the organization.
    pub async fn scim_user(
        &self,
        directory: &Directory,
        base: &str,
        id: &str,
        view: &View,
    ) -> Result<Resource, ScimError> {
        let mut conn = self.0.db.acquire().await?;
        let row = user_of(&mut conn, directory.org, id).await?;
        answer(&mut conn, directory.org, &row, base, view).await
    }

    /// Adds a member with a new account (SCIM-3). An account that exists is never taken over.
    ///
    /// # Errors
    /// `invalidValue`; taken, when there is an account or a member of that name.
    pub async fn scim_create_user(
        &self,
        directory: &Directory,
        base: &str,
        body: &Value,
        view: &View,
    ) -> Result<Resource, ScimError> {
        let clean = schema::cleaned(USER, body)?;
        let email = address(&clean)?;
        let name = display_name(&clean).unwrap_or_else(|| email.split('@').next().unwrap_or(&email).to_owned());
        let org = directory.org;
        let now = self.now();
        let active = clean.get("active") != Some(&Value::Bool(false));
        let user = UserId::new();
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, org).await?;
        let account = store::accounts::NewAccount {
            id: user,
            email: &email,
            name: &name,
            email_verified: false,
            password_hash: None,
            at: now,
        };
        if !store::accounts::insert(&mut tx, &account).await? {
            return Err(taken(&email));
        }
        let role = if active { directory.default_role } else { Role::Disabled };
        store::members::insert(&mut tx, org, user, role, now).await?;
        let user_name = text(&clean, "userName").unwrap_or(&email);
        let said = Said {
            user,
            user_name,
            external_id: text(&clean, "externalId"),
            attributes: &kept(&clean),
            previous_role: (!active).then_some(directory.default_role),
        };
        if !store::scim::keep(&mut tx, org, &said, now).await? {
            return Err(taken(user_name));
        }
        let change = Change::members("member.added")
            .on("member", user)
            .named(&email)
            .with("role", role.text())
            .with("accountCreated", true)
            .with("source", SOURCE);
        trail::record(&mut tx, now, org, &Actor::System, &change).await?;
        trail::hint(&mut tx, org, Topic::Members, None).await?;
        let row = store::scim::user(&mut tx, org, user).await?.ok_or(ScimError::Unknown)?;
        let made = answer(&mut tx, org, &row, base, view).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Makes a member what the body says. Without `active` the member stays active or not.
    ///
    /// # Errors
    /// Those of [`Identity::scim_patch_user`].
    pub async fn scim_replace_user(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
        body: &Value,
        view: &View,
    ) -> Result<Resource, ScimError> {
        self.change_user(directory, base, (id, version), view, |_| schema::cleaned(USER, body)).await
    }

    /// Changes a member. `version`: the `If-Match` of the request.
    ///
    /// # Errors
    /// What is wrong with the request; protected, for owners and for the address of shared accounts; taken; stale;
    /// unknown.
    pub async fn scim_patch_user(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
        body: &Value,
        view: &View,
    ) -> Result<Resource, ScimError> {
        self.change_user(directory, base, (id, version), view, |mut now| {
            patch::apply(USER, &mut now, body)?;
            schema::cleaned(USER, &Value::Object(now))
        })
        .await
    }

    /// Takes a member out of the organization (SCIM-5). The account stays.
    ///
    /// # Errors
    /// Protected, for owners; stale; unknown.
    pub async fn scim_delete_user(
        &self,
        directory: &Directory,
        base: &str,
        (id, version): (&str, Option<&str>),
    ) -> Result<(), ScimError> {
        let org = directory.org;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, org).await?;
        let row = user_of(&mut tx, org, id).await?;
        let groups = groups_of(&mut tx, org, std::slice::from_ref(&row)).await?;
        check_version(version, &whole(&row, &groups, base))?;
        if row.role == Role::Owner {
            return Err(ScimError::Protected(OWNER));
        }
        not_the_last(&mut tx, org, &row).await?;
        self.end_access(&mut tx, org, row.user_id).await?;
        store::members::delete(&mut tx, org, row.user_id).await?;
        let change = Change::members("member.removed")
            .on("member", row.user_id)
            .named(&row.email)
            .with("role", row.role.text())
            .with("source", SOURCE);
        trail::record(&mut tx, self.now(), org, &Actor::System, &change).await?;
        self.end_groundless_keys(&mut tx, org, &Actor::System).await?;
        self.end_competences(&mut tx, (org, row.user_id), None, &Actor::System).await?;
        trail::hint(&mut tx, org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn change_user(
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
        let row = user_of(&mut tx, org, id).await?;
        let groups = groups_of(&mut tx, org, std::slice::from_ref(&row)).await?;
        check_version(version, &whole(&row, &groups, base))?;
        let before = writable(&row);
        let mut after = make(before.clone())?;
        let active = after.get("active").and_then(Value::as_bool).unwrap_or(row.role != Role::Disabled);
        after.insert("active".to_owned(), json!(active));
        // Until the directory names addresses, the account's stands in their place.
        if row.attributes.as_ref().is_none_or(|Json(said)| !said.contains_key("emails"))
            && after.get("emails") == before.get("emails")
        {
            after.remove("emails");
        }
        let same = before.iter().all(|(name, value)| name == "emails" || after.get(name) == Some(value))
            && after.iter().all(|(name, value)| before.get(name) == Some(value));
        if !same {
            self.write_user(&mut tx, directory, &row, &after, active).await?;
        }
        let row = user_of(&mut tx, org, id).await?;
        let changed = answer(&mut tx, org, &row, base, view).await?;
        tx.commit().await?;
        Ok(changed)
    }

    async fn write_user(
        &self,
        conn: &mut PgConnection,
        directory: &Directory,
        row: &UserRow,
        after: &Map<String, Value>,
        active: bool,
    ) -> Result<(), ScimError> {
        let (org, user, now) = (directory.org, row.user_id, self.now());
        let was_active = row.role != Role::Disabled;
        let user_name = text(after, "userName").unwrap_or(&row.email);
        let email = match address(after) {
            Ok(email) => email,
            // A name that is no address leaves the address alone while no other is named.
            Err(_) if !after.contains_key("emails") => row.email.clone(),
            Err(error) => return Err(error),
        };
        if row.role == Role::Owner && (!active || email != row.email) {
            return Err(ScimError::Protected(OWNER));
        }
        if was_active && !active {
            not_the_last(conn, org, row).await?;
        }
        let shared = store::members::elsewhere(conn, org, user).await?;
        if email != row.email {
            if shared {
                return Err(ScimError::Protected(SHARED));
            }
            if !store::scim::set_email(conn, user, &email).await? {
                return Err(taken(&email));
            }
        }
        if let Some(name) = display_name(after).filter(|name| !shared && *name != row.name) {
            store::accounts::set_name(conn, user, &name).await?;
        }
        let previous = row.previous_role.as_deref().and_then(Role::parse);
        let role = match (was_active, active) {
            (true, false) => Role::Disabled,
            (false, true) => previous.unwrap_or(directory.default_role),
            _ => row.role,
        };
        let said = Said {
            user,
            user_name,
            external_id: text(after, "externalId"),
            attributes: &kept(after),
            previous_role: match (was_active, active) {
                (true, false) => Some(row.role),
                (false, false) => previous,
                (_, true) => None,
            },
        };
        if !store::scim::keep(conn, org, &said, now).await? {
            return Err(taken(user_name));
        }
        let change = if role == row.role {
            let mut change = Change::members("member.updated").on("member", user).named(&email).with("source", SOURCE);
            if email != row.email {
                change = change.changed("email", row.email.as_str(), email.as_str());
            }
            change
        } else {
            store::members::set_role(conn, org, user, role).await?;
            Change::members("member.role_changed")
                .on("member", user)
                .named(&email)
                .changed("role", row.role.text(), role.text())
                .with("role", role.text())
                .with("source", SOURCE)
                .told(user, Kind::RoleChanged)
        };
        trail::record(conn, now, org, &Actor::System, &change).await?;
        if was_active && !active {
            self.end_access(conn, org, user).await?;
        }
        if role != row.role {
            self.end_groundless_keys(conn, org, &Actor::System).await?;
        }
        trail::hint(conn, org, Topic::Members, None).await?;
        Ok(())
    }

    /// Ends what somebody who loses the organization has of it: the sessions of an account that has no other
    /// organization to use, and the half-finished sign-ins; of other accounts the sessions leave this one.
    async fn end_access(&self, conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<(), ScimError> {
        if store::scim::usable_elsewhere(conn, org, user).await? {
            store::scim::leave(conn, org, user).await?;
            return Ok(());
        }
        let ended = store::sessions::delete_all(conn, user, None).await?;
        store::factors::end_all_pending(conn, user).await?;
        if ended > 0 {
            let change =
                Change::account("session.others_ended").on("user", user).with("count", ended).with("source", SOURCE);
            trail::record(conn, self.now(), org, &Actor::System, &change).await?;
        }
        Ok(())
    }
}

/// Refuses to leave an organization without anybody who manages it (MEM-6).
async fn not_the_last(conn: &mut PgConnection, org: OrgId, row: &UserRow) -> Result<(), ScimError> {
    if row.role == Role::Admin && store::members::other_admins(conn, org, row.user_id).await? == 0 {
        return Err(ScimError::Protected(
            "The organization needs an owner or admin. Make somebody else an admin first.",
        ));
    }
    Ok(())
}

async fn user_of(conn: &mut PgConnection, org: OrgId, id: &str) -> Result<UserRow, ScimError> {
    let id: UserId = id.parse().map_err(|_| ScimError::Unknown)?;
    store::scim::user(conn, org, id).await?.ok_or(ScimError::Unknown)
}

async fn groups_of(
    conn: &mut PgConnection,
    org: OrgId,
    rows: &[UserRow],
) -> Result<Vec<(UserId, TeamId, String)>, ScimError> {
    let users: Vec<UserId> = rows.iter().map(|row| row.user_id).collect();
    Ok(store::scim::teams_of(conn, org, &users).await?)
}

async fn seen(
    conn: &mut PgConnection,
    org: OrgId,
    rows: &[UserRow],
    base: &str,
    view: &View,
) -> Result<Vec<Map<String, Value>>, ScimError> {
    let groups = groups_of(conn, org, rows).await?;
    let body = |row: &UserRow| Resource::new(whole(row, &groups, base), "User", location(base, row.user_id), view).body;
    Ok(rows.iter().map(body).collect())
}

async fn answer(
    conn: &mut PgConnection,
    org: OrgId,
    row: &UserRow,
    base: &str,
    view: &View,
) -> Result<Resource, ScimError> {
    let groups = groups_of(conn, org, std::slice::from_ref(row)).await?;
    Ok(Resource::new(whole(row, &groups, base), "User", location(base, row.user_id), view))
}
