//! Competences: what owners and admins grant to members one by one, beside their roles (spec 95, section 8).
//!
//! A competence is a capability of the platform, whose name begins with `tale:`, or a qualification in the
//! organization's own words, which is kept and shown. What a person holds of the platform's is read with their membership,
//! at every request, so a grant, its end and its revocation count from the next one on, and only in its organization.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;
use uuid::Uuid;

use crate::caller::Caller;
use crate::fields;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// What names of the platform's capabilities begin with. Nothing else may.
const RESERVED: &str = "tale:";
/// Longest name of a competence.
const MAX_NAME_CHARS: usize = 120;
/// Longest evidence.
const MAX_EVIDENCE_CHARS: usize = 2_000;
/// Revoked grants that are listed.
const MAX_REVOKED: i64 = 1_000;

/// The competence to call models over the API.
pub const MODELS_API: &str = "tale:models.api";

/// The platform's capabilities, with the acts that each opens to whose role leaves them to a competence. Those without
/// an act have no door in this release.
const PLATFORM: [(&str, &[Capability]); 4] = [
    (MODELS_API, &[Capability::ModelsCall, Capability::ApiKeysOwn]),
    ("tale:notifications.export", &[]),
    ("tale:rest.act-as", &[]),
    ("tale:skills.publish", &[Capability::SkillsPublish]),
];

/// The platform's capabilities that a person holds by competence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Competences(u8);

impl Competences {
    /// Those of these names; others are none of the platform's.
    #[must_use]
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let place = |name: &str| PLATFORM.iter().position(|(known, _)| *known == name);
        Self(names.into_iter().filter_map(place).fold(0, |held, at| held | 1 << at))
    }

    /// Whether one of them opens `capability`.
    #[must_use]
    pub fn open(self, capability: Capability) -> bool {
        PLATFORM.iter().enumerate().any(|(at, (_, acts))| self.0 & 1 << at != 0 && acts.contains(&capability))
    }
}

/// What of somebody's competences is to be granted.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// The member.
    pub user: UserId,
    /// A capability of the platform, or a qualification of 1 to 120 characters.
    pub competence: String,
    /// What shows it, at most 2,000 characters; may be empty.
    pub evidence: String,
    /// When it ends; `None` is never.
    pub expires_at: Option<DateTime<Utc>>,
}

/// What a grant is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantStatus {
    /// It counts.
    Active,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

/// Why a grant does not count any more although its time is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokeReason {
    /// Somebody took it back.
    Revoked,
    /// It had expired, and the competence was granted anew.
    Replaced,
    /// The member was removed.
    MemberRemoved,
}

impl RevokeReason {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Replaced => "replaced",
            Self::MemberRemoved => "memberRemoved",
        }
    }
}

/// A line of the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Which one.
    pub id: Uuid,
    /// The person.
    pub user: UserId,
    /// Their name.
    pub name: String,
    /// Their address.
    pub email: String,
    /// Whether they are a member now.
    pub member: bool,
    /// What is granted.
    pub competence: String,
    /// What shows it.
    pub evidence: String,
    /// The name of who granted it, while they have an account.
    pub granted_by: Option<String>,
    /// When.
    pub granted_at: DateTime<Utc>,
    /// When it ends; `None` is never.
    pub expires_at: Option<DateTime<Utc>>,
    /// The name of who took it back, while they have an account.
    pub revoked_by: Option<String>,
    /// When.
    pub revoked_at: Option<DateTime<Utc>>,
    /// Why: a word of [`RevokeReason::text`].
    pub revoke_reason: Option<String>,
    /// What it is now.
    pub status: GrantStatus,
}

impl Identity {
    /// Grants a competence to a member. One that had expired is closed by it.
    ///
    /// # Errors
    /// `COMPETENCE_FORBIDDEN` without the right; `COMPETENCE_CAPABILITY_UNKNOWN` for a reserved name that is none of the
    /// platform's, which is recorded; `COMPETENCE_ALREADY_GRANTED`, `MEMBER_NOT_FOUND`, `INVALID_BODY`.
    pub async fn grant_competence(&self, caller: &Caller, new: &NewGrant) -> Result<Uuid, Problem> {
        caller.require(Capability::CompetencesManage)?;
        let competence = fields::short_text("competence", &new.competence, MAX_NAME_CHARS)?;
        let evidence = evidence(&new.evidence)?;
        let now = self.now();
        if new.expires_at.is_some_and(|end| end <= now) {
            return Err(Problem::invalid_field("expiresAt", "must be a time from now on, or absent for never"));
        }
        let known = PLATFORM.iter().any(|(name, _)| *name == competence);
        if !known && competence.to_lowercase().starts_with(RESERVED) {
            return self.refuse_unknown(caller, new.user, &competence).await;
        }
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::CompetencesManage).await?;
        let member = store::members::get(&mut tx, caller.org, new.user).await?;
        let member = member.ok_or_else(crate::members::not_a_member)?;
        if let Some(end) = store::competences::live(&mut tx, caller.org, new.user, &competence).await? {
            if end.is_none_or(|end| end > now) {
                return Err(Problem::new(
                    Code::CompetenceAlreadyGranted,
                    "This member holds the competence already. Revoke it first to grant it with another end.",
                ));
            }
            let replaced = RevokeReason::Replaced;
            self.end_grants(&mut tx, (caller.org, new.user), Some(&competence), caller.user, &caller.actor(), replaced)
                .await?;
        }
        let id = Uuid::now_v7();
        let row = store::competences::NewRow {
            id,
            org: caller.org,
            user: new.user,
            competence: &competence,
            evidence: &evidence,
            by: caller.user,
            at: now,
            expires_at: new.expires_at,
        };
        store::competences::insert(&mut tx, &row).await?;
        let change = about("competence_granted", id, new.user, &member.email, &competence)
            .with("expiresAt", new.expires_at.map(|end| end.timestamp_millis()));
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Takes a grant back, from the next request on.
    ///
    /// # Errors
    /// `COMPETENCE_FORBIDDEN` without the right; `COMPETENCE_NOT_FOUND` for one that is not there or was revoked.
    pub async fn revoke_competence(&self, caller: &Caller, id: Uuid) -> Result<(), Problem> {
        caller.require(Capability::CompetencesManage)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::CompetencesManage).await?;
        let now = self.now();
        let ended = store::competences::revoke(&mut tx, caller.org, id, caller.user, now).await?;
        let ended = ended.ok_or_else(|| {
            Problem::new(Code::CompetenceNotFound, "This grant does not exist, or it was revoked before.")
        })?;
        let change = about("competence_revoked", id, ended.user_id, &ended.email, &ended.competence)
            .with("reason", RevokeReason::Revoked.text());
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The register, or what of it is about one person: every grant that was not revoked, and the latest 1,000 that were,
    /// the newest first.
    ///
    /// # Errors
    /// `COMPETENCE_FORBIDDEN` without the right.
    pub async fn competences(&self, caller: &Caller, user: Option<UserId>) -> Result<Vec<Grant>, Problem> {
        caller.require(Capability::CompetencesManage)?;
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let rows = store::competences::list(&mut conn, caller.org, user, MAX_REVOKED).await?;
        Ok(rows.into_iter().map(|row| row.grant(now)).collect())
    }

    /// Revokes everything that was granted to a member who is removed (CMP-5). Belongs into the transaction of it.
    pub(crate) async fn end_competences(
        &self,
        conn: &mut PgConnection,
        (org, user): (OrgId, UserId),
        by: Option<UserId>,
        actor: &Actor,
    ) -> Result<(), Problem> {
        self.end_grants(conn, (org, user), None, by, actor, RevokeReason::MemberRemoved).await
    }

    async fn end_grants(
        &self,
        conn: &mut PgConnection,
        (org, user): (OrgId, UserId),
        competence: Option<&str>,
        by: Option<UserId>,
        actor: &Actor,
        reason: RevokeReason,
    ) -> Result<(), Problem> {
        let now = self.now();
        for ended in store::competences::end(conn, (org, user), competence, by, reason.text(), now).await? {
            let change = about("competence_revoked", ended.id, user, &ended.email, &ended.competence)
                .with("reason", reason.text());
            trail::record(conn, now, org, actor, &change).await?;
        }
        Ok(())
    }

    /// Writes down that a reserved name was to be granted, and refuses it.
    async fn refuse_unknown(&self, caller: &Caller, user: UserId, competence: &str) -> Result<Uuid, Problem> {
        let mut tx = self.begin().await?;
        let change = Change::members("competence_granted")
            .on("member", user)
            .with("competence", competence)
            .with("error", "COMPETENCE_CAPABILITY_UNKNOWN")
            .denied();
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        tx.commit().await?;
        let names: Vec<&str> = PLATFORM.iter().map(|(name, _)| *name).collect();
        Err(Problem::new(
            Code::CompetenceCapabilityUnknown,
            format!(
                "Names that begin with `tale:` are capabilities of Tale, and this is none. There are: {}.",
                names.join(", ")
            ),
        ))
    }
}

fn about(action: &'static str, id: Uuid, user: UserId, email: &str, competence: &str) -> Change {
    Change::members(action)
        .on("competence_grant", id)
        .named(competence)
        .with("user", user.to_string())
        .with("email", email)
}

/// Text of several lines, trimmed.
fn evidence(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    if text.chars().count() > MAX_EVIDENCE_CHARS {
        return Err(Problem::invalid_field("evidence", "must have at most 2000 characters"));
    }
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\r' && c != '\t') {
        return Err(Problem::invalid_field("evidence", "must not contain control characters"));
    }
    Ok(text.to_owned())
}

/// What a person may do who has `role` and holds `competences`: the role's, and what it leaves to competences they hold.
pub(crate) fn may(role: Role, competences: Competences, capability: Capability) -> bool {
    use crate::permissions::Cell::{Competence, DependsOrCompetence};
    role.can(capability)
        || (matches!(role.cell(capability), Competence | DependsOrCompetence) && competences.open(capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_competence_opens_what_a_role_leaves_to_it_and_nothing_of_a_disabled_seat() {
        let held = Competences::named([MODELS_API, "First aid", "tale:unknown"]);
        for role in [Role::Member, Role::Editor] {
            assert!(may(role, held, Capability::ModelsCall) && may(role, held, Capability::ApiKeysOwn), "{role}");
            assert!(!may(role, Competences::default(), Capability::ModelsCall), "{role}");
            assert!(
                !may(role, held, Capability::SkillsPublish) && !may(role, held, Capability::ApiKeysOthers),
                "{role}"
            );
        }
        for capability in Capability::ALL {
            assert!(!may(Role::Disabled, Competences::named(PLATFORM.map(|(name, _)| name)), *capability));
            assert_eq!(may(Role::Developer, Competences::default(), *capability), Role::Developer.can(*capability));
        }
    }

    #[test]
    fn every_name_of_the_platform_is_reserved() {
        assert!(PLATFORM.iter().all(|(name, _)| name.starts_with(RESERVED) && name.len() <= MAX_NAME_CHARS));
    }
}
