//! An authenticator app on an account: set up, confirmed with a code, switched off; and its backup codes (MFA-1…5).

use std::fmt::Write;
use std::time::Duration;

use chrono::{DateTime, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use qrcodegen::{QrCode, QrCodeEcc};
use rand::Rng;
use tale_core::crypto::{decode_hex, hex_of, hmac_sha256};
use tale_core::ids::UserId;
use tale_core::{Code, Problem};
use tale_notices::Kind;

use super::totp::{self, SECRET_BYTES};
use crate::caller::SessionPrincipal;
use crate::service::{Device, Identity};
use crate::store;
use crate::trail::{self, Change};

/// How long a set-up that was begun can be finished, and is shown again rather than begun anew.
const SET_UP_TIME: Duration = Duration::from_secs(30 * 60);
/// How many backup codes there are.
const CODES: usize = 10;
/// Characters of one.
const CODE_CHARS: usize = 10;
/// Characters that are not taken for one another.
const CODE_ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// What an authenticator app needs to know.
#[derive(Clone)]
pub struct TotpSetup {
    /// The secret to type, in Base32.
    pub secret: String,
    /// The same with its names, as apps read it.
    pub uri: String,
    /// Modules on each side of the QR code of `uri`.
    pub qr_size: u32,
    /// The dark modules as the path of an SVG image that is `qr_size` wide and high, without a margin.
    pub qr_path: String,
}

/// Backup codes, shown once.
#[derive(Clone)]
pub struct BackupCodes {
    /// The codes.
    pub codes: Vec<String>,
    /// The name of the file for them.
    pub file: String,
}

impl std::fmt::Debug for TotpSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSetup")
    }
}

impl std::fmt::Debug for BackupCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackupCodes")
    }
}

pub(super) fn wrong_code() -> Problem {
    Problem::new(
        Code::TwoFactorCodeInvalid,
        "This code is wrong or was used before. Wait for the next one, and check that the clock of your device is right.",
    )
}

fn not_on() -> Problem {
    Problem::new(Code::TotpNotEnabled, "No authenticator app is set up. Begin with the QR code.")
}

fn on_already() -> Problem {
    Problem::new(
        Code::TotpAlreadyEnabled,
        "An authenticator app is set up already. Switch it off first to use another.",
    )
}

/// Where an encrypted secret belongs.
pub(super) fn context(user: UserId) -> String {
    format!("totp_secrets.secret:{user}")
}

/// A backup code as it is compared: without what people type between its characters.
pub(super) fn plain(code: &str) -> String {
    code.chars().filter(|c| c.is_ascii_alphanumeric()).take(CODE_CHARS + 1).collect::<String>().to_ascii_lowercase()
}

/// What is stored of a backup code.
pub(super) fn code_hash(secret: &[u8], code: &str) -> [u8; 32] {
    hmac_sha256(&hmac_sha256(secret, b"tale: backup codes"), code.as_bytes())
}

impl Identity {
    /// Begins the set-up of an authenticator app, or shows one again that was begun in another tab. It grants and asks
    /// nothing until [`Identity::confirm_totp`].
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`, `PASSWORD_NOT_SET`, `TOTP_ALREADY_ENABLED`, `BUSY`.
    pub async fn begin_totp(
        &self,
        principal: &SessionPrincipal,
        password: &str,
        device: &Device,
    ) -> Result<TotpSetup, Problem> {
        let (mut tx, account) = self.confirmed(principal, password, device).await?;
        let now = self.now();
        let begun = store::factors::totp(&mut tx, account.id).await?;
        let begun = begun.filter(|row| row.confirmed_at.is_some() || now < row.created_at + SET_UP_TIME);
        let secret = match begun {
            Some(row) if row.confirmed_at.is_some() => return Err(on_already()),
            Some(row) => self.open_secret(account.id, &row.secret)?,
            None => {
                let secret: [u8; SECRET_BYTES] = rand::random();
                let sealed = self.0.cipher.seal(&context(account.id), &hex_of(&secret)).map_err(Problem::internal)?;
                if !store::factors::begin_totp(&mut tx, account.id, &sealed, now).await? {
                    return Err(on_already());
                }
                secret.to_vec()
            }
        };
        tx.commit().await?;
        setup_of(&self.0.config.factor_labels.issuer, &account.email, &secret)
    }

    /// Switches the app on whose set-up was begun, by one of its codes, and makes its backup codes.
    ///
    /// # Errors
    /// `TWO_FACTOR_CODE_INVALID`, `SIGN_IN_LOCKED` after too many of those, `TOTP_NOT_ENABLED` when no set-up was begun
    /// or it took longer than half an hour, `TOTP_ALREADY_ENABLED`.
    pub async fn confirm_totp(
        &self,
        principal: &SessionPrincipal,
        code: &str,
        device: &Device,
    ) -> Result<BackupCodes, Problem> {
        let now = self.now();
        let attempt = self.charge_code(principal.user, device).await?;
        let mut tx = self.begin().await?;
        let row = store::factors::totp(&mut tx, principal.user).await?.ok_or_else(not_on)?;
        if row.confirmed_at.is_some() {
            return Err(on_already());
        }
        if now >= row.created_at + SET_UP_TIME {
            return Err(not_on());
        }
        let secret = self.open_secret(principal.user, &row.secret)?;
        let step = totp::step_of(&secret, code, now, 0).ok_or_else(wrong_code)?;
        if !store::factors::confirm_totp(&mut tx, principal.user, &row.secret, step, now).await? {
            return Err(on_already());
        }
        self.clear_attempt(&mut tx, &attempt).await?;
        let codes = new_codes(&mut tx, principal.user, &secret).await?;
        let change = Change::account("2fa_enrolled")
            .on("user", principal.user)
            .with("method", "totp")
            .told(principal.user, Kind::FactorAdded);
        trail::in_every_org(&mut tx, now, principal.user, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(BackupCodes { codes, file: self.0.config.factor_labels.file.clone() })
    }

    /// Switches the authenticator app off and forgets its backup codes.
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`, `PASSWORD_NOT_SET`, `TOTP_NOT_ENABLED`, `BUSY`.
    pub async fn disable_totp(
        &self,
        principal: &SessionPrincipal,
        password: &str,
        device: &Device,
    ) -> Result<(), Problem> {
        let (mut tx, account) = self.confirmed(principal, password, device).await?;
        if !store::factors::delete_totp(&mut tx, account.id).await? {
            return Err(not_on());
        }
        store::factors::end_all_pending(&mut tx, account.id).await?;
        let change = Change::account("2fa_disabled")
            .on("user", account.id)
            .with("method", "totp")
            .told(account.id, Kind::FactorRemoved);
        trail::in_every_org(&mut tx, self.now(), account.id, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes new backup codes in the place of all before.
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`, `PASSWORD_NOT_SET`, `TOTP_NOT_ENABLED`, `BUSY`.
    pub async fn renew_backup_codes(
        &self,
        principal: &SessionPrincipal,
        password: &str,
        device: &Device,
    ) -> Result<BackupCodes, Problem> {
        let (mut tx, account) = self.confirmed(principal, password, device).await?;
        let row = store::factors::totp(&mut tx, account.id).await?;
        let row = row.filter(|row| row.confirmed_at.is_some()).ok_or_else(not_on)?;
        let secret = self.open_secret(account.id, &row.secret)?;
        let codes = new_codes(&mut tx, account.id, &secret).await?;
        let change = Change::account("2fa_backup_codes_renewed")
            .on("user", account.id)
            .told(account.id, Kind::BackupCodesRenewed);
        trail::in_every_org(&mut tx, self.now(), account.id, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(BackupCodes { codes, file: self.0.config.factor_labels.file.clone() })
    }

    pub(super) fn open_secret(&self, user: UserId, sealed: &str) -> Result<Vec<u8>, Problem> {
        let hex = self.0.cipher.open(&context(user), sealed).map_err(Problem::internal)?;
        decode_hex(&hex).ok_or_else(|| Problem::internal("a stored secret of an authenticator app is not hexadecimal"))
    }

    /// The step of a typed code that counts now.
    pub(super) fn step_now(
        &self,
        user: UserId,
        row: &store::factors::TotpRow,
        code: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<i64>, Problem> {
        Ok(totp::step_of(&self.open_secret(user, &row.secret)?, code, now, row.last_step))
    }
}

async fn new_codes(conn: &mut sqlx::PgConnection, user: UserId, secret: &[u8]) -> Result<Vec<String>, Problem> {
    let codes: Vec<String> = (0..CODES).map(|_| random_code()).collect();
    let hashes: Vec<Vec<u8>> = codes.iter().map(|code| code_hash(secret, &plain(code)).to_vec()).collect();
    store::factors::replace_codes(conn, user, &hashes).await?;
    Ok(codes)
}

/// Ten characters, written in two halves.
fn random_code() -> String {
    let mut rng = rand::rng();
    let mut code: String =
        (0..CODE_CHARS).map(|_| char::from(CODE_ALPHABET[rng.random_range(0..CODE_ALPHABET.len())])).collect();
    code.insert(CODE_CHARS / 2, '-');
    code
}

fn setup_of(issuer: &str, email: &str, secret: &[u8]) -> Result<TotpSetup, Problem> {
    let secret = totp::base32(secret);
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let uri = format!(
        "otpauth://totp/{issuer}:{}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period=30",
        encoded(email),
        issuer = encoded(issuer),
    );
    let qr = QrCode::encode_text(&uri, QrCodeEcc::Medium).map_err(Problem::internal)?;
    Ok(TotpSetup { secret, uri, qr_size: qr.size().unsigned_abs(), qr_path: path_of(&qr) })
}

/// The dark modules, a bar for each run of them in a line.
fn path_of(qr: &QrCode) -> String {
    let mut path = String::new();
    for y in 0..qr.size() {
        let mut x = 0;
        while x < qr.size() {
            let run = (x..qr.size()).take_while(|at| qr.get_module(*at, y)).count();
            if run > 0 {
                let _ = write!(path, "M{x} {y}h{run}v1h-{run}z");
            }
            x += i32::try_from(run).unwrap_or(0) + 1;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_reads_the_names_and_the_secret_from_the_code() {
        let setup = setup_of("Zürich & Weiß Tale Platform", "a+b@acme.test", b"12345678901234567890").unwrap();
        assert_eq!(setup.secret, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let uri = url::Url::parse(&setup.uri).unwrap();
        assert_eq!(uri.host_str(), Some("totp"));
        let label = percent_encoding::percent_decode_str(uri.path()).decode_utf8().unwrap().into_owned();
        assert_eq!(label, "/Zürich & Weiß Tale Platform:a+b@acme.test");
        let query: Vec<_> = uri.query_pairs().collect();
        assert!(query.contains(&("issuer".into(), "Zürich & Weiß Tale Platform".into())), "{query:?}");
        assert!(query.contains(&("secret".into(), setup.secret.as_str().into())));
        assert!(!setup.uri.contains('+'), "apps do not read + as a blank");
    }

    #[test]
    fn the_picture_has_every_dark_module_once() {
        let qr = QrCode::encode_text("otpauth://totp/x", QrCodeEcc::Medium).unwrap();
        let dark =
            (0..qr.size()).flat_map(|y| (0..qr.size()).map(move |x| (x, y))).filter(|&(x, y)| qr.get_module(x, y));
        let drawn: usize = path_of(&qr)
            .split_terminator('z')
            .map(|bar| bar.rsplit_once("h-").unwrap().1.parse::<usize>().unwrap())
            .sum();
        assert_eq!(drawn, dark.count());
    }

    #[test]
    fn backup_codes_may_be_typed_in_any_way() {
        let code = random_code();
        assert_eq!(code.len(), CODE_CHARS + 1);
        assert_eq!(plain(&code), plain(&format!(" {} ", code.to_uppercase().replace('-', " "))));
        assert_eq!(plain(&code).len(), CODE_CHARS);
    }
}
