//! Accounts: the first owner, sign-up, and what people change about their own account.

use std::collections::HashMap;

use secrecy::ExposeSecret;
use sqlx::PgConnection;
use tale_core::crypto::{constant_time_eq, sha256};
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_governance::policies::PasswordRules;
use tale_notices::Kind;

use crate::branding::PublishedBranding;
use crate::caller::SessionPrincipal;
use crate::fields;
use crate::organizations::OrganizationView;
use crate::password;
use crate::permissions::Role;
use crate::service::{Device, Identity};
use crate::sessions::{Method, SignedIn, SignedInPerson};
use crate::store;
use crate::trail::{self, Change};

/// What the setup wizard sends.
#[derive(Clone)]
pub struct Setup {
    /// The owner's name.
    pub name: String,
    /// The owner's address.
    pub email: String,
    /// The owner's password.
    pub password: String,
    /// The first organization's name.
    pub organization_name: String,
    /// The token from the server's log, needed from other machines.
    pub setup_token: Option<String>,
}

/// What a sign-up call sends.
#[derive(Clone)]
pub struct SignUp {
    /// The person's name.
    pub name: String,
    /// The person's address.
    pub email: String,
    /// The password.
    pub password: String,
    /// The token from the server's log, needed from other machines for the first account.
    pub setup_token: Option<String>,
}

/// A person's own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The person.
    pub id: UserId,
    /// The display name.
    pub name: String,
    /// The sign-in address.
    pub email: String,
    /// Whether a password is set.
    pub has_password: bool,
    /// What a new password must be.
    pub password_policy: PasswordRules,
}

/// What a browser learns before it shows anything.
#[derive(Debug, Clone)]
pub struct SessionOverview {
    /// The person's organizations with the role in each, disabled ones included.
    pub organizations: Vec<OrganizationView>,
    /// How those of them look that set anything.
    pub branding: HashMap<OrgId, PublishedBranding>,
    /// The organization to show.
    pub active_org: Option<OrgId>,
    /// Whether no account exists yet.
    pub setup_required: bool,
    /// Whether setup from this client needs the token.
    pub setup_token_required: bool,
    /// Whether the person may create organizations.
    pub can_create_organization: bool,
}

fn setup_done() -> Problem {
    Problem::new(Code::SetupAlreadyDone, "This Tale has been set up already. Sign in instead.")
}

fn sign_up_closed() -> Problem {
    Problem::new(
        Code::SignUpDisabled,
        "Accounts are made by an owner or admin of an organization. Ask one of them to add you.",
    )
}

impl Identity {
    /// Whether no account exists.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn setup_required(&self) -> Result<bool, Problem> {
        let mut conn = self.0.db.acquire().await?;
        Ok(!store::accounts::any(&mut conn).await?)
    }

    /// The line for the log at start while no account exists: the one-time token that setup from
    /// another machine needs (STP-5).
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn setup_notice(&self) -> Result<Option<String>, Problem> {
        if !self.setup_required().await? {
            return Ok(None);
        }
        let line = if self.0.config.setup_token.is_some() {
            "[setup] no account exists yet; setup from another machine needs the token set in TALE_SETUP_TOKEN"
                .to_owned()
        } else {
            format!(
                "[setup] no account exists yet; setup from another machine needs this token {}",
                self.0.setup_token.expose_secret()
            )
        };
        Ok(Some(line))
    }

    /// Makes the first owner with the first organization and signs the owner in, in one
    /// transaction. Of simultaneous calls one wins (STP-2).
    ///
    /// # Errors
    /// `SETUP_ALREADY_DONE`, `SETUP_TOKEN_REQUIRED`, `PASSWORD_POLICY`, `INVALID_BODY`, `BUSY`.
    pub async fn setup(&self, setup: &Setup, device: &Device) -> Result<(SignedIn, OrganizationView), Problem> {
        if !self.setup_required().await? {
            return Err(setup_done());
        }
        self.check_setup_token(setup.setup_token.as_deref(), device).await?;
        let name = fields::person_name(&setup.name)?;
        let email = fields::email(&setup.email)?;
        let organization_name = fields::organization_name("organizationName", &setup.organization_name)?;
        let hash = self.new_hash(&setup.password, &self.0.config.password_policy).await?;
        let mut tx = self.begin().await?;
        store::accounts::lock_first_account(&mut tx).await?;
        if store::accounts::any(&mut tx).await? {
            return Err(setup_done());
        }
        let user = self.insert_account(&mut tx, &email, &name, Some(&hash), true).await?.ok_or_else(setup_done)?;
        let org = self.insert_organization(&mut tx, &organization_name, user).await?;
        store::accounts::set_last_org(&mut tx, user, org.id).await?;
        let person = SignedInPerson { id: user, name: &name, email: &email };
        let signed_in = self.make_session(&mut tx, person, Some(org.id), Method::Password, true, device).await?;
        let change = Change::account("auth.signed_in").on("user", user).with("setup", true);
        trail::in_every_org(&mut tx, self.now(), user, &Actor::User { id: user }, &change).await?;
        tx.commit().await?;
        Ok((signed_in, org))
    }

    /// Makes an account without organization and signs it in: the first account, and any account
    /// while sign-up is open (ACC-8).
    ///
    /// # Errors
    /// `SIGN_UP_DISABLED`, `SETUP_TOKEN_REQUIRED`, `EMAIL_TAKEN`, `PASSWORD_POLICY`,
    /// `INVALID_BODY`, `BUSY`.
    pub async fn sign_up(&self, sign_up: &SignUp, device: &Device) -> Result<SignedIn, Problem> {
        let open = self.0.config.allow_open_sign_up;
        if !open {
            if !self.setup_required().await? {
                return Err(sign_up_closed());
            }
            self.check_setup_token(sign_up.setup_token.as_deref(), device).await?;
        }
        let name = fields::person_name(&sign_up.name)?;
        let email = fields::email(&sign_up.email)?;
        let hash = self.new_hash(&sign_up.password, &self.0.config.password_policy).await?;
        let mut tx = self.begin().await?;
        store::accounts::lock_first_account(&mut tx).await?;
        if !open && store::accounts::any(&mut tx).await? {
            return Err(sign_up_closed());
        }
        let user = self.insert_account(&mut tx, &email, &name, Some(&hash), true).await?.ok_or_else(|| {
            Problem::new(Code::EmailTaken, "This e-mail address has an account already. Sign in instead.")
        })?;
        let person = SignedInPerson { id: user, name: &name, email: &email };
        let signed_in = self.make_session(&mut tx, person, None, Method::Password, true, device).await?;
        let change = Change::account("account.signed_up").on("user", user);
        trail::in_every_org(&mut tx, self.now(), user, &Actor::User { id: user }, &change).await?;
        tx.commit().await?;
        Ok(signed_in)
    }

    /// What a browser learns first, signed in or not.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn session_overview(
        &self,
        principal: Option<&SessionPrincipal>,
        device: &Device,
    ) -> Result<SessionOverview, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let Some(principal) = principal else {
            let setup_required = !store::accounts::any(&mut conn).await?;
            return Ok(SessionOverview {
                organizations: Vec::new(),
                branding: HashMap::new(),
                active_org: None,
                setup_required,
                setup_token_required: setup_required && !device.local,
                can_create_organization: false,
            });
        };
        if principal.password_due.is_some() {
            // Who they are, and nothing else.
            return Ok(SessionOverview {
                organizations: Vec::new(),
                branding: HashMap::new(),
                active_org: None,
                setup_required: false,
                setup_token_required: false,
                can_create_organization: false,
            });
        }
        let organizations: Vec<OrganizationView> = store::organizations::of_user(&mut conn, principal.user)
            .await?
            .into_iter()
            .map(OrganizationView::from)
            .collect();
        let active_org = organizations
            .iter()
            .find(|org| Some(org.id) == principal.active_org)
            .or_else(|| organizations.iter().find(|org| org.role != Role::Disabled))
            .or_else(|| organizations.first())
            .map(|org| org.id);
        let can_create_organization = self.may_create_organization(&mut conn, &principal.email).await?;
        let ids: Vec<OrgId> = organizations.iter().map(|org| org.id).collect();
        let branding = self.brandings(&mut conn, &ids).await?;
        Ok(SessionOverview {
            organizations,
            branding,
            active_org,
            setup_required: false,
            setup_token_required: false,
            can_create_organization,
        })
    }

    /// The short names of the organizations that a person may enter, at most a hundred.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn organization_slugs(&self, user: UserId) -> Result<Vec<String>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let all = store::organizations::of_user(&mut conn, user).await?;
        Ok(all.into_iter().filter(|org| org.role != Role::Disabled).map(|org| org.slug).take(100).collect())
    }

    /// The person's own account.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn account(&self, principal: &SessionPrincipal) -> Result<Account, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let row = store::accounts::by_id(&mut conn, principal.user).await?.ok_or_else(account_gone)?;
        let password_policy = self.password_rules(&mut conn, principal.user).await?;
        Ok(Account {
            id: row.id,
            name: row.name,
            email: row.email,
            has_password: row.password_hash.is_some(),
            password_policy,
        })
    }

    /// Changes the person's display name.
    ///
    /// # Errors
    /// `INVALID_BODY` for a blank or long name.
    pub async fn rename_account(&self, principal: &SessionPrincipal, name: &str) -> Result<Account, Problem> {
        let name = fields::person_name(name)?;
        let mut tx = self.begin().await?;
        store::accounts::set_name(&mut tx, principal.user, &name).await?;
        let change = Change::account("account.renamed").on("user", principal.user).changed(
            "name",
            principal.name.as_str(),
            name,
        );
        trail::in_every_org(&mut tx, self.now(), principal.user, &principal.actor(), &change).await?;
        tx.commit().await?;
        self.account(principal).await
    }

    /// Replaces the person's password and ends all sessions (PWD-5); one that had to be replaced before anything else
    /// (PWD-7) lets the session that asks go on. Returns whether it does. A wrong current password counts like a wrong
    /// sign-in.
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`, `PASSWORD_POLICY`, `BUSY`.
    pub async fn change_password(
        &self,
        principal: &SessionPrincipal,
        current: &str,
        new: &str,
        device: &Device,
    ) -> Result<bool, Problem> {
        let (account, rules, due) = {
            let mut conn = self.0.db.acquire().await?;
            let account = store::accounts::by_id(&mut conn, principal.user).await?.ok_or_else(account_gone)?;
            let rules = self.password_rules(&mut conn, principal.user).await?;
            (account, rules, store::accounts::password_due_of(&mut conn, principal.user, self.now()).await?)
        };
        password::check_another(&rules, current, new)?;
        let attempt = self.confirm_password(&account, current, device).await?;
        let hash = self.new_hash(new, &rules).await?;
        let mut tx = self.begin().await?;
        self.settle_confirmation(&mut tx, &account, &attempt).await?;
        store::accounts::set_password(&mut tx, account.id, &hash, false, self.now()).await?;
        store::sessions::delete_all(&mut tx, account.id, due.map(|_| principal.session)).await?;
        store::factors::end_all_pending(&mut tx, account.id).await?;
        let mut change =
            Change::account("account.password_changed").on("user", account.id).told(account.id, Kind::PasswordChanged);
        if let Some(due) = due {
            change = change.with("required", due.text());
        }
        trail::in_every_org(&mut tx, self.now(), account.id, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(due.is_some())
    }

    /// Gives an account that has no password its first one, and ends all sessions (PWD-5). The session must be fresh
    /// (SES-5), or the person has shown lately that it is them.
    ///
    /// # Errors
    /// `PASSWORD_ALREADY_SET`, `SESSION_NOT_FRESH`, `PASSWORD_POLICY`, `BUSY`.
    pub async fn set_first_password(&self, principal: &SessionPrincipal, new: &str) -> Result<(), Problem> {
        let rules = {
            let mut conn = self.0.db.acquire().await?;
            let account = store::accounts::by_id(&mut conn, principal.user).await?.ok_or_else(account_gone)?;
            if account.password_hash.is_some() {
                return Err(already_set());
            }
            if !self.is_fresh(&mut conn, principal).await? {
                return Err(Problem::new(
                    Code::SessionNotFresh,
                    "You logged in more than a day ago, or somebody else did it for you. Log in again to set a password.",
                ));
            }
            self.password_rules(&mut conn, principal.user).await?
        };
        let hash = self.new_hash(new, &rules).await?;
        let mut tx = self.begin().await?;
        // Of two tabs one is the first.
        if store::accounts::locked_hash(&mut tx, principal.user).await?.is_some() {
            return Err(already_set());
        }
        store::accounts::set_password(&mut tx, principal.user, &hash, false, self.now()).await?;
        store::sessions::delete_all(&mut tx, principal.user, None).await?;
        store::factors::end_all_pending(&mut tx, principal.user).await?;
        let change = Change::account("account.password_set")
            .on("user", principal.user)
            .told(principal.user, Kind::PasswordChanged);
        trail::in_every_org(&mut tx, self.now(), principal.user, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(())
    }

    /// A password checked against `rules` and hashed.
    pub(crate) async fn new_hash(&self, password: &str, rules: &PasswordRules) -> Result<String, Problem> {
        password::check(rules, password)?;
        let turn = self.0.hasher.admit().await?;
        self.0.hasher.hash(turn, password).await
    }

    /// Adds an account, without a password when there is no `hash`; `None` when the address has one. `email_verified`
    /// as whoever makes it says (ACC-5).
    pub(crate) async fn insert_account(
        &self,
        conn: &mut PgConnection,
        email: &str,
        name: &str,
        hash: Option<&str>,
        email_verified: bool,
    ) -> Result<Option<UserId>, Problem> {
        let id = UserId::new();
        let new = store::accounts::NewAccount { id, email, name, email_verified, password_hash: hash, at: self.now() };
        Ok(store::accounts::insert(conn, &new).await?.then_some(id))
    }

    /// Refuses setup from another machine without the token. Wrong tokens are slowed down like
    /// wrong passwords.
    async fn check_setup_token(&self, given: Option<&str>, device: &Device) -> Result<(), Problem> {
        if device.local {
            return Ok(());
        }
        let refused = || {
            Problem::new(
                Code::SetupTokenRequired,
                "Setup from another machine needs the setup token. It stands in the server's log, in the line that begins with `[setup]`.",
            )
        };
        let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) else { return Err(refused()) };
        let key = sha256(b"tale:setup-token");
        let network = self.pseudonym(&device.client.network());
        self.charge(&self.0.config.login_policy, &key, &network).await?;
        let expected = self.0.setup_token.expose_secret();
        if !constant_time_eq(&sha256(given.as_bytes()), &sha256(expected.as_bytes())) {
            return Err(refused());
        }
        let mut conn = self.0.db.acquire().await?;
        store::attempts::clear(&mut conn, &key, &network).await?;
        Ok(())
    }
}

fn already_set() -> Problem {
    Problem::new(Code::PasswordAlreadySet, "This account has a password. Enter it to choose another one.")
}

/// The account went away while its session was still being used.
fn account_gone() -> Problem {
    Problem::new(Code::Unauthorized, "This account does not exist any more.")
}
