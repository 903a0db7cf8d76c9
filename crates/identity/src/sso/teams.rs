//! Keeps somebody's teams like their groups at the provider (SSO-19…22).

use std::collections::BTreeMap;

use sqlx::PgConnection;
use tale_core::ids::{OrgId, TeamId, UserId};
use tale_core::{Actor, Problem};

use super::config::Config;
use super::seat::SOURCE;
use crate::service::Identity;
use crate::store;
use crate::teams::{self, MAX_TEAMS};
use crate::trail::{self, Change};

impl Identity {
    /// Puts the person into the teams that `groups` are called, making those that are missing, and takes them out of
    /// those that an earlier sign-in gave and that are no group any more.
    pub(super) async fn sync_teams(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        config: &Config,
        user: UserId,
        email: &str,
        groups: &[String],
    ) -> Result<(), Problem> {
        let key = |name: &String| teams::names(name).ok().map(|(_, key)| key);
        let excluded: Vec<String> = config.excluded_groups.iter().filter_map(key).collect();
        // What is no name of a team, because it is too long, is no team.
        let mut wanted: BTreeMap<String, String> = groups
            .iter()
            .filter_map(|group| teams::names(group).ok())
            .filter(|(_, key)| !excluded.contains(key))
            .map(|(name, key)| (key, name))
            .collect();
        let keys: Vec<String> = wanted.keys().cloned().collect();
        let now = self.now();
        let mut changed = false;
        let entry = |action: &'static str, team: TeamId, name: &str| {
            Change::members(action).on("team", team).named(name).with("source", SOURCE)
        };
        let about = |change: Change| change.with("user", user.to_string()).with("email", email);
        for team in store::sso::teams(conn, org, user, &keys).await? {
            let granted = team.member_source.as_deref() == Some(SOURCE);
            if wanted.remove(&team.name_key).is_some() {
                if team.member_source.is_none() {
                    self.grant(conn, org, team.id, user).await?;
                    let change = about(entry("team.member_added", team.id, &team.name));
                    trail::record(conn, now, org, &Actor::System, &change).await?;
                    changed = true;
                }
            } else if granted && !excluded.contains(&team.name_key) {
                store::teams::remove(conn, org, team.id, user).await?;
                let change = about(entry("team.member_removed", team.id, &team.name));
                trail::record(conn, now, org, &Actor::System, &change).await?;
                if team.ours && store::sso::is_empty(conn, org, team.id).await? {
                    store::teams::delete(conn, org, team.id).await?;
                    let change = entry("team.deleted", team.id, &team.name).with("members", 0);
                    trail::record(conn, now, org, &Actor::System, &change).await?;
                }
                changed = true;
            }
        }
        let mut room = MAX_TEAMS - store::teams::count(conn, org).await?;
        for (key, name) in wanted {
            if room <= 0 {
                tracing::warn!(%org, "an organization has no room for more teams; groups of somebody were left out");
                break;
            }
            let team = TeamId::new();
            store::teams::insert(conn, org, team, (&name, &key), "", now).await?;
            store::sso::mark_team(conn, org, team).await?;
            trail::record(conn, now, org, &Actor::System, &entry("team.created", team, &name)).await?;
            self.grant(conn, org, team, user).await?;
            let change = about(entry("team.member_added", team, &name));
            trail::record(conn, now, org, &Actor::System, &change).await?;
            room -= 1;
            changed = true;
        }
        if changed {
            teams::changed(conn, org).await?;
        }
        Ok(())
    }

    async fn grant(&self, conn: &mut PgConnection, org: OrgId, team: TeamId, user: UserId) -> Result<(), Problem> {
        store::teams::add(conn, org, team, &[user], self.now()).await?;
        store::sso::mark_place(conn, org, team, user).await?;
        Ok(())
    }
}
