//! Mail: the post of the workers, and `tale mail`.

use chrono::Utc;
use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_env::{EnvProblem, EnvProblems, Environment, MailSettings, MailTls, Role, Scope, Settings, Severity, check};
use tale_identity::notices::mail::Post;
use tale_mail::{Letter, Mailer, Unusable};
use uuid::Uuid;

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
