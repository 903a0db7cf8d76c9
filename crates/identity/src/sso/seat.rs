//! The seat of a person whom the provider names: found, or made for somebody new (SSO-14…18).

use tale_core::{Actor, Problem};
use tale_db::hints::Topic;

use super::claims::Person;
use super::config::Config;
use super::{Opened, Refused};
use crate::permissions::Role;
use crate::service::{Device, Identity};
use crate::sessions::{Method, SignedIn, SignedInPerson};
use crate::store;
use crate::trail::{self, Change};

/// How these sign-ins are named in the log.
pub(super) const SOURCE: &str = "sso";

/// The role that the rules give; `None`: they say nothing about this person, because the provider left out what they
/// ask for.
fn mapped(config: &Config, person: &Person, default: Role) -> Option<Role> {
    let mut unsaid = false;
    for rule in &config.rules {
        match person.values(config, &rule.claim) {
            Some(values) if values.iter().any(|value| value.trim() == rule.value) => return Some(rule.role),
            Some(_) => {}
            None => unsaid = true,
        }
    }
    (!unsaid).then_some(default)
}

impl Identity {
    /// Gives the person a session in the connection's organization. Everything is decided behind the lock of its
    /// members, before anything is written.
    pub(super) async fn take_seat(
        &self,
        opened: &Opened,
        person: &Person,
        device: &Device,
    ) -> Result<Result<SignedIn, Refused>, Problem> {
        let (org, config) = (opened.row.org_id, &opened.config);
        let Some(email) = person.email.as_deref() else { return Ok(Err(Refused::NoEmail)) };
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        if !opened.row.domains.is_empty() && !opened.row.domains.iter().any(|listed| listed == domain) {
            return Ok(Err(Refused::OtherDomain));
        }
        let now = self.now();
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, org).await?;
        // It may have been switched off, or become another one, while the provider was asked.
        let current = store::sso::of_org(&mut tx, org).await?;
        if !current.is_some_and(|row| row.enabled && row.id == opened.row.id) {
            return Ok(Err(Refused::SwitchedOff));
        }
        let role = if config.auto_assign && !config.rules.is_empty() {
            mapped(config, person, opened.row.default_role)
        } else {
            None
        };
        let holder = store::sso::holder(&mut tx, org, &config.issuer, &person.subject).await?;
        let (user, name) = match store::accounts::by_email(&mut tx, email).await? {
            Some(account) => {
                match store::members::get(&mut tx, org, account.id).await? {
                    None => return Ok(Err(Refused::NoSeat)),
                    Some(member) if member.role == Role::Disabled => return Ok(Err(Refused::Disabled)),
                    Some(_) => {}
                }
                match holder {
                    Some(holder) if holder == account.id => {}
                    Some(_) => return Ok(Err(Refused::LinkedOtherwise)),
                    None if person.email_verified == Some(false) => return Ok(Err(Refused::EmailUnverified)),
                    None => {
                        if !store::sso::link(&mut tx, org, &config.issuer, &person.subject, account.id, now).await? {
                            return Ok(Err(Refused::LinkedOtherwise));
                        }
                        let change = Change::account("auth.identity_linked")
                            .on("user", account.id)
                            .named(email)
                            .with("method", SOURCE)
                            .with("issuer", config.issuer.as_str());
                        trail::record(&mut tx, now, org, &Actor::System, &change).await?;
                    }
                }
                if let Some(role) = role {
                    let base = Change::members("member.role_changed").with("source", SOURCE);
                    self.move_member(&mut tx, org, account.id, role, base).await?;
                }
                (account.id, account.name)
            }
            // The identity is somebody's whose address is another one.
            None if holder.is_some() => return Ok(Err(Refused::LinkedOtherwise)),
            None => {
                let name = person.name.clone().unwrap_or_else(|| email.split('@').next().unwrap_or(email).to_owned());
                let verified = person.email_verified == Some(true);
                // Somebody who made the account at this moment has no seat here.
                let Some(user) = self.insert_account(&mut tx, email, &name, None, verified).await? else {
                    return Ok(Err(Refused::NoSeat));
                };
                let role = role.unwrap_or(opened.row.default_role);
                store::members::insert(&mut tx, org, user, role, now).await?;
                store::sso::link(&mut tx, org, &config.issuer, &person.subject, user, now).await?;
                let change = Change::members("member.added")
                    .on("member", user)
                    .named(email)
                    .with("role", role.text())
                    .with("accountCreated", true)
                    .with("source", SOURCE);
                trail::record(&mut tx, now, org, &Actor::System, &change).await?;
                trail::hint(&mut tx, org, Topic::Members, None).await?;
                (user, name)
            }
        };
        if let Some(groups) = person.teams.as_deref().filter(|_| config.team_sync) {
            self.sync_teams(&mut tx, org, config, user, email, groups).await?;
        }
        let signed_in = SignedInPerson { id: user, name: &name, email };
        let session = self.make_session(&mut tx, signed_in, Some(org), Method::Sso, false, device).await?;
        store::accounts::set_last_org(&mut tx, user, org).await?;
        let change = Change::account("auth.signed_in").on("user", user).with("method", SOURCE);
        trail::in_every_org(&mut tx, now, user, &Actor::User { id: user }, &change).await?;
        tx.commit().await?;
        Ok(Ok(session))
    }
}
