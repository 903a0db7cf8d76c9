//! Organizations: who may create one, their names and slugs (ORG-1…5).

use sqlx::PgConnection;
use tale_core::crypto::random_hex;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;

use crate::caller::{Caller, SessionPrincipal};
use crate::fields;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// An organization as one of its people sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationView {
    /// The organization.
    pub id: OrgId,
    /// Its name.
    pub name: String,
    /// Its slug, which never changes.
    pub slug: String,
    /// The person's role there.
    pub role: Role,
}

impl From<store::organizations::OrgOfUser> for OrganizationView {
    fn from(row: store::organizations::OrgOfUser) -> Self {
        Self { id: row.id, name: row.name, slug: row.slug, role: row.role }
    }
}

impl Identity {
    /// Makes an organization with the person as its owner and creator, and makes it the session's
    /// active one.
    ///
    /// # Errors
    /// `ORGANIZATION_CREATION_FORBIDDEN`, `INVALID_BODY`, `ORG_NAME_RESERVED`, `ORG_NAME_TAKEN`.
    pub async fn create_organization(
        &self,
        principal: &SessionPrincipal,
        name: &str,
    ) -> Result<OrganizationView, Problem> {
        let mut tx = self.begin().await?;
        if !self.may_create_organization(&mut tx, &principal.email).await? {
            return Err(Problem::new(
                Code::OrganizationCreationForbidden,
                "Only people named by the operator may create organizations on this Tale. Ask the operator to add you.",
            ));
        }
        let name = fields::organization_name("name", name)?;
        let org = self.insert_organization(&mut tx, &name, principal.user).await?;
        store::sessions::set_active_org(&mut tx, principal.session, org.id).await?;
        store::accounts::set_last_org(&mut tx, principal.user, org.id).await?;
        tx.commit().await?;
        Ok(org)
    }

    /// Renames the caller's organization. The slug stays (ORG-5).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY`.
    pub async fn rename_organization(&self, caller: &Caller, name: &str) -> Result<OrganizationView, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let name = fields::organization_name("name", name)?;
        let mut tx = self.begin().await?;
        let Some((slug, before)) = store::organizations::rename(&mut tx, caller.org, &name).await? else {
            return Err(Problem::new(Code::NotFound, "This organization does not exist any more."));
        };
        let change = Change::organization("organization.updated").on("organization", caller.org).changed(
            "name",
            before,
            name.as_str(),
        );
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(OrganizationView { id: caller.org, name, slug, role: caller.role })
    }

    /// Deletes the caller's organization (ORG-6). Nobody belongs to it from now on; its data is removed in the
    /// background. `typed` is its name, as a person wrote it to confirm.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` for callers who are not owner, `INVALID_BODY` for another name, `NOT_FOUND`.
    pub async fn delete_organization(&self, caller: &Caller, typed: &str) -> Result<(), Problem> {
        caller.require(Capability::OrganizationOwn)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::OrganizationOwn).await?;
        let (name, members) = store::organizations::name_and_size(&mut tx, caller.org)
            .await?
            .ok_or_else(|| Problem::new(Code::NotFound, "This organization does not exist any more."))?;
        if typed.trim() != name {
            return Err(Problem::invalid_field(
                "name",
                "must be the name of the organization, exactly as it is written",
            ));
        }
        let change = Change::organization("organization.deleted")
            .on("organization", caller.org)
            .named(&name)
            .with("slug", caller.org_slug.as_str())
            .with("members", members);
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        store::organizations::delete(&mut tx, caller.org, self.now()).await?;
        tx.commit().await?;
        tracing::warn!(
            event = "organization.deleted", org.id = %caller.org, org.slug = caller.org_slug, members,
            "an organization was deleted by its owner; its data is being removed"
        );
        Ok(())
    }

    /// Whether this address may create an organization now (ORG-1).
    pub(crate) async fn may_create_organization(&self, conn: &mut PgConnection, email: &str) -> Result<bool, Problem> {
        match &self.0.config.organization_creators {
            None => Ok(true),
            Some(listed) if listed.iter().any(|entry| entry == email) => Ok(true),
            Some(_) => Ok(!store::organizations::any(conn).await?),
        }
    }

    /// Adds an organization with its owner inside the caller's transaction.
    pub(crate) async fn insert_organization(
        &self,
        conn: &mut PgConnection,
        name: &str,
        owner: UserId,
    ) -> Result<OrganizationView, Problem> {
        let id = OrgId::new();
        let now = self.now();
        // A name without any ASCII letter or digit still needs a slug for keys and headers.
        let slug = fields::slug_of(name)?.unwrap_or_else(|| format!("org-{}", random_hex(4)));
        if !store::organizations::insert(conn, id, &slug, name, owner, now).await? {
            return Err(Problem::new(
                Code::OrgNameTaken,
                format!("An organization with the short name `{slug}` exists already. Choose another name."),
            ));
        }
        store::members::insert(conn, id, owner, Role::Owner, now).await?;
        let change =
            Change::organization("organization.created").on("organization", id).named(name).with("slug", slug.as_str());
        trail::record(conn, now, id, &Actor::User { id: owner }, &change).await?;
        Ok(OrganizationView { id, name: name.to_owned(), slug, role: Role::Owner })
    }
}
