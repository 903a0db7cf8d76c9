//! API keys: made, replaced and revoked in the app (KEY-1…18), of a person, for a member, of a team or of the
//! organization. [`resolve`] turns one into a caller.

mod named;
mod resolve;

use chrono::{DateTime, Days, Utc};
use sqlx::PgConnection;
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;
use tale_notices::Kind;

pub use named::{GoneKey, KeyName, KeyStatus};
pub use resolve::{KeyHolder, Me, MePerson};

use crate::caller::{Caller, Via};
use crate::fields;
use crate::keys::{self, KeyKind};
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::store::keys::EndedKey;
use crate::trail::{self, Change};

/// Longest name of a key (KEY-1).
const MAX_NAME_CHARS: usize = 100;
/// Longest life of a key, in days: a year, leap day included.
const MAX_DAYS: i64 = 366;
/// How far ahead a chosen end may be, in days: the end of the day a year from now, wherever whoever chooses it is.
const MAX_DAYS_AHEAD: u64 = 367;
/// Longest time that a key works beside its successor, in hours: a week.
const MAX_OVERLAP_HOURS: i64 = 7 * 24;
/// Most keys that are not revoked: of a person, and of an organization.
pub const MAX_KEYS: i64 = 200;

/// A key as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyView {
    /// The key.
    pub id: ApiKeyId,
    /// To whom it belongs.
    pub kind: KeyKind,
    /// Its name.
    pub name: String,
    /// Its beginning and end.
    pub fragment: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it ends; `None` is never.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// The name of the member or the team it belongs to; `None` for one's own keys and the organization's.
    pub holder: Option<String>,
    /// The role it acts with, of a key without a person.
    pub role: Option<Role>,
    /// Who made it for others, while they have an account.
    pub maker: Option<String>,
    /// Whether the caller can replace it.
    pub replaceable: bool,
}

/// When a key ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    Never,
    /// So many days from now, 1 to 366.
    Days(i64),
    /// At a time that was chosen: from now on, and at most a year ahead.
    At(DateTime<Utc>),
}

impl From<Option<i64>> for Expiry {
    fn from(days: Option<i64>) -> Self {
        days.map_or(Self::Never, Self::Days)
    }
}

impl Expiry {
    /// The time, once it is known to be allowed.
    fn judged(self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Problem> {
        match self {
            Self::Never => Ok(None),
            Self::Days(days) if (1..=MAX_DAYS).contains(&days) => Ok(Some(now + Days::new(days.unsigned_abs()))),
            Self::Days(_) => {
                Err(Problem::invalid_field("expiresInDays", "must be a whole number from 1 to 366, or null for never"))
            }
            Self::At(end) if now < end && end <= now + Days::new(MAX_DAYS_AHEAD) => Ok(Some(end)),
            Self::At(_) => Err(Problem::invalid_field("expiresAt", "must be a time from now on, at most a year ahead")),
        }
    }
}

/// For whom a key is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BelongsTo {
    /// Whoever makes it.
    Maker,
    /// A member below the maker.
    Member(UserId),
    /// A team, as a member of it with this role.
    Team(TeamId, Role),
    /// The organization, with this role.
    Organization(Role),
}

impl BelongsTo {
    fn kind(self) -> KeyKind {
        match self {
            Self::Maker => KeyKind::Personal,
            Self::Member(_) => KeyKind::Member,
            Self::Team(..) => KeyKind::Team,
            Self::Organization(_) => KeyKind::Organization,
        }
    }

    /// What making and replacing such a key needs.
    fn needs(self) -> Capability {
        match self {
            Self::Maker => Capability::ApiKeysOwn,
            Self::Member(_) | Self::Team(..) | Self::Organization(_) => Capability::ApiKeysOthers,
        }
    }

    fn role(self) -> Option<Role> {
        match self {
            Self::Maker | Self::Member(_) => None,
            Self::Team(_, role) | Self::Organization(role) => Some(role),
        }
    }
}

/// A key just made, with the secret that is shown once.
#[derive(Clone)]
pub struct CreatedKey {
    /// The key.
    pub id: ApiKeyId,
    /// The whole secret. Kept nowhere.
    pub secret: String,
    /// Its name.
    pub name: String,
    /// When it ends; `None` is never.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Identity {
    /// Makes a key.
    ///
    /// # Errors
    /// `API_KEY_CREATE_FORBIDDEN` without the right, for a member who is not below the maker and for a role above the
    /// maker's; `INVALID_BODY`, `MEMBER_NOT_FOUND`, `TEAM_NOT_FOUND`, `API_KEY_LIMIT`.
    pub async fn create_key(
        &self,
        caller: &Caller,
        belongs: BelongsTo,
        name: &str,
        expiry: impl Into<Expiry>,
    ) -> Result<CreatedKey, Problem> {
        caller.require(belongs.needs())?;
        let user = person(caller)?;
        let name = fields::short_text("name", name, MAX_NAME_CHARS)?;
        let expires_at = expiry.into().judged(self.now())?;
        let mut tx = self.begin().await?;
        let holder = self.judge_maker(&mut tx, caller, belongs).await?;
        let made = self.insert_key(&mut tx, (caller.org, user), belongs, &name, expires_at).await?;
        let change = about("api_key.created", (made.id, &name), user, belongs, holder.as_deref())
            .with("expiresAt", expires_at.map(|at| at.timestamp_millis()));
        self.tell(&mut tx, caller, user, belongs.kind(), &change).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Makes a successor of a key, with its name, its holder, its role and as long a life from now on. The old key
    /// works for `overlap_hours` more, 0 to 168, so that it can be replaced where it is used (KEY-9). Whoever replaces
    /// a key for others is the maker of its successor.
    ///
    /// # Errors
    /// Those of [`Identity::create_key`]; `API_KEY_NOT_FOUND` for a key out of reach, not there or over;
    /// `API_KEY_REPLACED` for one that has a successor.
    pub async fn rotate_key(&self, caller: &Caller, id: ApiKeyId, overlap_hours: i64) -> Result<CreatedKey, Problem> {
        let user = person(caller)?;
        if !(0..=MAX_OVERLAP_HOURS).contains(&overlap_hours) {
            return Err(Problem::invalid_field("overlapHours", "must be a whole number from 0 to 168"));
        }
        let now = self.now();
        let mut tx = self.begin().await?;
        // Before the key: whoever changes members holds the organization first, too.
        store::members::lock(&mut tx, caller.org).await?;
        let reach = (caller.org, user, caller.can(Capability::ApiKeysOthers));
        let old = store::keys::live(&mut tx, reach, id, now).await?.ok_or_else(not_found)?;
        let role = old.role.as_deref().and_then(Role::parse);
        let belongs = match (old.kind, old.user_id, old.team_id, role) {
            (KeyKind::Personal, ..) => BelongsTo::Maker,
            (KeyKind::Member, Some(member), ..) => BelongsTo::Member(member),
            (KeyKind::Team, _, Some(team), Some(role)) => BelongsTo::Team(team, role),
            (KeyKind::Organization, .., Some(role)) => BelongsTo::Organization(role),
            _ => return Err(not_found()),
        };
        caller.require(belongs.needs())?;
        if old.replaced {
            return Err(Problem::new(
                Code::ApiKeyReplaced,
                "This API key has a successor already. Replace the successor instead.",
            ));
        }
        let holder = self.judge_maker(&mut tx, caller, belongs).await?;
        let until = now + chrono::Duration::hours(overlap_hours);
        store::keys::replace(&mut tx, id, now, until).await?;
        let life = old.expires_at.map(|end| now + (end - old.created_at));
        let made = self.insert_key(&mut tx, (caller.org, user), belongs, &old.name, life).await?;
        let change = about("api_key.rotated", (id, &old.name), user, belongs, holder.as_deref())
            .with("successor", made.id.to_string())
            .with("worksUntil", old.expires_at.map_or(until, |end| end.min(until)).timestamp_millis());
        self.tell(&mut tx, caller, user, belongs.kind(), &change).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Refuses a key that its maker may not make, as the members and teams are now; returns its holder's name.
    async fn judge_maker(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        belongs: BelongsTo,
    ) -> Result<Option<String>, Problem> {
        if belongs == BelongsTo::Maker {
            // Such a key works in every organization of its maker, which this session does not.
            if let Via::Session(session) = caller.via
                && store::sessions::confined(conn, session).await?
            {
                return Err(Problem::new(
                    Code::ApiKeyCreateForbidden,
                    "You were signed in by your organization, and a key of your own works in all of yours. Log in with your password or a passkey to make one.",
                ));
            }
            return Ok(None);
        }
        self.relock(conn, caller, Capability::ApiKeysOthers).await?;
        let maker = self.role_now(conn, caller).await?;
        if let Some(role) = belongs.role() {
            let most = if belongs.kind() == KeyKind::Team { Role::Developer } else { Role::Admin };
            if !(Role::Member..=most).contains(&role) {
                let words = match most {
                    Role::Developer => "must be one of \"member\", \"editor\", \"developer\"",
                    _ => "must be one of \"member\", \"editor\", \"developer\", \"admin\"",
                };
                return Err(Problem::invalid_field("role", words));
            }
        }
        match belongs {
            BelongsTo::Maker | BelongsTo::Organization(_) => Ok(None),
            BelongsTo::Team(team, _) => {
                let team = store::teams::get(conn, caller.org, team).await?;
                let (name, _) = team.ok_or_else(|| Problem::new(Code::TeamNotFound, "This team does not exist."))?;
                Ok(Some(name))
            }
            BelongsTo::Member(member) => {
                let member = store::members::get(conn, caller.org, member).await?;
                let member = member.ok_or_else(crate::members::not_a_member)?;
                if member.role >= maker {
                    return Err(Problem::new(
                        Code::ApiKeyCreateForbidden,
                        "You make keys only for members whose role is below yours.",
                    ));
                }
                Ok(Some(member.email))
            }
        }
    }

    /// Writes a key inside the caller's transaction.
    async fn insert_key(
        &self,
        conn: &mut PgConnection,
        (org, maker): (OrgId, UserId),
        belongs: BelongsTo,
        name: &str,
        expires_at: Option<DateTime<Utc>>,
    ) -> Result<CreatedKey, Problem> {
        let own = belongs == BelongsTo::Maker;
        let org = (!own).then_some(org);
        if store::keys::count(conn, org, maker).await? >= MAX_KEYS {
            return Err(Problem::new(
                Code::ApiKeyLimit,
                format!("There are at most {MAX_KEYS} API keys. Revoke one that is not used any more."),
            ));
        }
        let (key, id) = (keys::api(belongs.kind()), ApiKeyId::new());
        let (user, team) = match belongs {
            BelongsTo::Maker => (Some(maker), None),
            BelongsTo::Member(user) => (Some(user), None),
            BelongsTo::Team(team, _) => (None, Some(team)),
            BelongsTo::Organization(_) => (None, None),
        };
        let row = store::keys::NewKeyRow {
            id,
            kind: belongs.kind(),
            user,
            org,
            team,
            role: belongs.role(),
            maker: Some(maker),
            hash: &key.hash,
            first: &key.first,
            last: &key.last,
            name,
            at: self.now(),
            expires_at,
        };
        store::keys::insert(conn, &row).await?;
        Ok(CreatedKey { id, secret: key.secret, name: name.to_owned(), expires_at })
    }

    /// Writes a change of a key into the logs that it concerns (KEY-10), and tells open browsers.
    async fn tell(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        user: UserId,
        kind: KeyKind,
        change: &Change,
    ) -> Result<(), Problem> {
        let only = if kind == KeyKind::Personal {
            trail::in_every_org(conn, self.now(), user, &caller.actor(), change).await?;
            Some(user)
        } else {
            trail::record(conn, self.now(), caller.org, &caller.actor(), change).await?;
            None
        };
        trail::hint(conn, caller.org, Topic::ApiKeys, only).await
    }

    /// Ends the keys for members of `org` whose ground is gone: the holder left, or the maker did or is not above them
    /// any more. Belongs into the transaction of every change of members and roles.
    pub(crate) async fn end_groundless_keys(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
    ) -> Result<(), Problem> {
        let ended = store::keys::end_groundless(conn, org, self.now()).await?;
        self.tell_ended(conn, org, actor, &ended).await
    }

    /// Writes that keys ended by themselves, and why (KEY-10).
    pub(crate) async fn tell_ended(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        ended: &[EndedKey],
    ) -> Result<(), Problem> {
        for key in ended {
            let change = Change::key("api_key.revoked")
                .on("api_key", key.id)
                .named(&key.name)
                .with("reason", key.reason.as_str());
            trail::record(conn, self.now(), org, actor, &change).await?;
        }
        if ended.is_empty() { Ok(()) } else { trail::hint(conn, org, Topic::ApiKeys, None).await }
    }

    /// The keys that are not revoked, newest first: the caller's own, those made for them here and, for owners and
    /// admins, all that were made here for others (KEY-3).
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn keys(&self, caller: &Caller) -> Result<Vec<KeyView>, Problem> {
        let user = person(caller)?;
        let (own, others) = (caller.can(Capability::ApiKeysOwn), caller.can(Capability::ApiKeysOthers));
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::list(&mut conn, caller.org, user, others).await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let live = row.expires_at.is_none_or(|end| end > now);
                let may = if row.kind == KeyKind::Personal { own } else { others && row.user_id != Some(user) };
                KeyView {
                    id: row.id,
                    kind: row.kind,
                    name: row.name,
                    fragment: format!("{}…{}", row.first_chars, row.last_chars),
                    created_at: row.created_at,
                    expires_at: row.expires_at,
                    last_used_at: row.last_used_at,
                    holder: row.holder.filter(|_| row.kind != KeyKind::Personal),
                    role: row.role.as_deref().and_then(Role::parse),
                    maker: row.maker.filter(|_| row.kind != KeyKind::Personal),
                    replaceable: live && may && !row.replaced,
                }
            })
            .collect())
    }

    /// Revokes a key for good and from the next request on: one's own, one made for oneself, and, as owner or admin,
    /// any that was made here for others (KEY-7).
    ///
    /// # Errors
    /// `API_KEY_NOT_FOUND` for a key out of reach, not there or revoked before.
    pub async fn revoke_key(&self, caller: &Caller, id: ApiKeyId) -> Result<(), Problem> {
        let user = person(caller)?;
        let mut tx = self.begin().await?;
        let reach = (caller.org, user, caller.can(Capability::ApiKeysOthers));
        let revoked = store::keys::revoke(&mut tx, reach, id, self.now()).await?;
        let (name, kind) = revoked.ok_or_else(not_found)?;
        let kind = KeyKind::try_from(kind).map_err(Problem::internal)?;
        let change = Change::key("api_key.revoked").on("api_key", id).named(&name).with("kind", kind.text());
        self.tell(&mut tx, caller, user, kind, &change).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// What is written about a key that was made, and told whoever it acts as (KEY-12).
fn about(
    action: &'static str,
    (id, name): (ApiKeyId, &str),
    maker: UserId,
    belongs: BelongsTo,
    holder: Option<&str>,
) -> Change {
    let change = Change::key(action).on("api_key", id).named(name).with("kind", belongs.kind().text());
    let change = match belongs {
        BelongsTo::Maker => change.told(maker, Kind::KeyMade),
        BelongsTo::Member(user) => change.with("user", user.to_string()).told(user, Kind::KeyMade),
        BelongsTo::Team(team, _) => change.with("team", team.to_string()),
        BelongsTo::Organization(_) => change,
    };
    let change = match holder {
        Some(holder) => change.with("holder", holder),
        None => change,
    };
    match belongs.role() {
        Some(role) => change.with("role", role.text()),
        None => change,
    }
}

fn not_found() -> Problem {
    Problem::new(Code::ApiKeyNotFound, "This API key does not exist, or it was revoked before.")
}

fn person(caller: &Caller) -> Result<UserId, Problem> {
    caller.user.ok_or_else(|| Problem::new(Code::OrgForbidden, "This needs the credential of a person."))
}
