//! Mail: the post of the workers, and `tale mail`.

use chrono::{DateTime, SecondsFormat, Utc};
use secrecy::ExposeSecret;
use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_db::pools::{self, PoolConfig};
use tale_env::{EnvProblem, EnvProblems, Environment, MailSettings, MailTls, Role, Scope, Settings, Severity, check};
use tale_identity::notices::mail::{self, Post, Standing};
use tale_mail::{Letter, Mailer, Unusable};
use uuid::Uuid;

use crate::configuration;
use crate::platform::StartError;

/// What delivers notifications, made known to everybody who writes them.
///
/// # Errors
/// When the mail server cannot be used as it is configured; the database's.
pub(crate) async fn post(settings: &Settings, pool: PgPool, clock: SharedClock) -> Result<Post, StartError> {
    let mailer = settings.mail.as_ref().map(Mailer::new).transpose().map_err(unusable)?;
    if settings.mail.as_ref().is_some_and(|mail| mail.tls == MailTls::None) {
        tracing::warn!(
            event = "mail.unencrypted",
            "[SECURITY] SMTP_TLS=none: mails travel to the mail server in the clear"
        );
    }
    let site = settings.site.address_at(&settings.site.url);
    let post = Post::new(pool, clock, mailer, &site);
    post.announce().await.map_err(StartError::other)?;
    Ok(post)
}

/// What the check of the environment cannot see.
fn unusable(error: Unusable) -> StartError {
    let variable = match &error {
        Unusable::From => "SMTP_FROM",
        Unusable::Roots(_) | Unusable::Tls(_) => "SMTP_CA_FILE",
    };
    let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    let why = format!("cannot be used: {error}{cause}");
    StartError::Settings(EnvProblems(vec![EnvProblem::new(Severity::Error, variable, why, "Correct it")]))
}

/// Sends one mail to `address`.
///
/// # Errors
/// When no mail server is configured or it does not take the mail.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
pub(crate) async fn test(env: &Environment, address: &str) -> Result<(), StartError> {
    // What else is missing here is not of interest.
    let wrong: Vec<EnvProblem> = check(env, Role::BackendWorker, Scope::Here)
        .into_iter()
        .filter(|problem| problem.severity == Severity::Error && problem.variable.starts_with("SMTP_"))
        .collect();
    if !wrong.is_empty() {
        return Err(StartError::Settings(EnvProblems(wrong)));
    }
    let Some(settings) = MailSettings::from_env(env).map_err(StartError::Settings)? else {
        let fix = "Set it, and SMTP_FROM, as the workers have them";
        let missing = EnvProblem::new(Severity::Error, "SMTP_HOST", "is not set", fix);
        return Err(StartError::Settings(EnvProblems(vec![missing])));
    };
    let mailer = Mailer::new(&settings).map_err(unusable)?;
    let letter = Letter {
        id: Uuid::now_v7(),
        to: address.to_owned(),
        subject: "Test of Tale’s mail".to_owned(),
        text: "Whoever operates Tale tried its mail server. It works.\n".to_owned(),
        html: "<!doctype html><p>Whoever operates Tale tried its mail server. It works.</p>\n".to_owned(),
        date: Utc::now(),
    };
    match mailer.send(&letter).await {
        Ok(()) => {
            println!("{} took the mail to {address} (Message-ID {})", mailer.server(), letter.id);
            Ok(())
        }
        Err(error) => Err(StartError::other(format!("{} did not take the mail: {error}", mailer.server()))),
    }
}

/// Prints how delivery stands, without a secret and without a name.
///
/// # Errors
/// When the configuration cannot be used or the database does not answer.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
pub(crate) async fn status(env: &Environment) -> Result<(), StartError> {
    let settings = configuration::settle(env, Role::All).map_err(StartError::Settings)?;
    let config = PoolConfig {
        url: settings.database.app_url.expose_secret().to_owned(),
        max_connections: 1,
        ca_file: settings.database.ca_file.clone(),
        application_name: "tale mail",
    };
    let pool = pools::connect("operational", &config).await.map_err(StartError::other)?;
    print!("{}", told(&mail::standing(&pool).await.map_err(StartError::other)?));
    Ok(())
}

fn told(standing: &Standing) -> String {
    let time = |at: &DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let or_never = |at: Option<String>| at.unwrap_or_else(|| "never in the last 30 days".to_owned());
    let delivery = match &standing.since {
        Some(since) => format!("on since {}", time(since)),
        None => "off: no worker has a mail server (SMTP_HOST)".to_owned(),
    };
    let because = standing.waits_because.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
    let failed = standing.last_failed.as_ref().map(|(at, code)| format!("{} ({code})", time(at)));
    format!(
        "delivery: {delivery}\nwaiting: {}{because}\nlast sent: {}\nlast given up: {}\n",
        standing.waiting,
        or_never(standing.last_sent.as_ref().map(time)),
        or_never(failed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_what_there_is() {
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let off = Standing { since: None, waiting: 0, waits_because: None, last_sent: None, last_failed: None };
        assert_eq!(
            told(&off),
            "delivery: off: no worker has a mail server (SMTP_HOST)\nwaiting: 0\nlast sent: never in the last 30 days\nlast given up: never in the last 30 days\n"
        );
        let ailing = Standing {
            since: Some(at),
            waiting: 2,
            waits_because: Some("MAIL_SERVER_UNAVAILABLE".to_owned()),
            last_sent: Some(at),
            last_failed: Some((at, "MAIL_REFUSED".to_owned())),
        };
        assert_eq!(
            told(&ailing),
            "delivery: on since 2023-11-14T22:13:20Z\nwaiting: 2 (MAIL_SERVER_UNAVAILABLE)\nlast sent: 2023-11-14T22:13:20Z\nlast given up: 2023-11-14T22:13:20Z (MAIL_REFUSED)\n"
        );
    }
}
