//! What mail is delivered with.

use std::path::PathBuf;

use secrecy::SecretString;

use crate::reader::{EnvProblems, EnvReader, EnvSource};
use crate::registry as var;

/// How the connection to the mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// After the greeting, by STARTTLS; nothing is sent where that is not offered.
    Starttls,
    /// From the first byte.
    Implicit,
    /// Not at all.
    None,
}

impl MailTls {
    /// The word in the environment.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Starttls => "starttls",
            Self::Implicit => "implicit",
            Self::None => "none",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Starttls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}

/// The mail server, and who writes.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: MailTls,
    /// Account and password, when it asks for them.
    pub login: Option<(String, SecretString)>,
    /// The address of the sender.
    pub from: String,
    /// Roots that its certificate is verified against; those of the system when unset.
    pub ca_file: Option<PathBuf>,
}

impl MailSettings {
    /// Reads them; `None` without a mail server. [`crate::check()`] says more about the same source.
    ///
    /// # Errors
    /// Every variable that cannot be used, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Option<Self>, EnvProblems> {
        let mut env = EnvReader::new(source);
        let settings = Self::read(&mut env);
        env.finish(Some(settings))
    }

    pub(crate) fn read(env: &mut EnvReader<'_>) -> Option<Self> {
        let tls = match env.text(&var::SMTP_TLS).as_deref() {
            Some("implicit") => MailTls::Implicit,
            Some("none") => MailTls::None,
            _ => MailTls::Starttls,
        };
        let port = env.integer(&var::SMTP_PORT).and_then(|port| u16::try_from(port).ok()).unwrap_or(tls.port());
        let (username, password) = (env.text(&var::SMTP_USERNAME), env.text(&var::SMTP_PASSWORD));
        let from = env.text(&var::SMTP_FROM);
        let ca_file = env.text(&var::SMTP_CA_FILE).map(PathBuf::from);
        let host = env.text(&var::SMTP_HOST)?;
        env.require(&var::SMTP_FROM, &[]);
        Some(Self { host, port, tls, login: username.zip(password.map(SecretString::from)), from: from?, ca_file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{MapEnv, Severity};
    use crate::registry::Role;
    use crate::{Environment, Scope, check};

    const SERVER: [(&str, &str); 2] = [("SMTP_HOST", "mail.example.org"), ("SMTP_FROM", "tale@example.org")];

    fn env(pairs: &[(&str, &str)]) -> MapEnv {
        let pairs = SERVER.iter().chain(pairs).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        MapEnv(pairs.collect())
    }

    #[test]
    fn without_a_host_there_is_no_mail_and_the_safe_way_is_the_default() {
        assert!(MailSettings::from_env(&MapEnv::default()).unwrap().is_none());
        let mail = MailSettings::from_env(&env(&[])).unwrap().unwrap();
        assert_eq!((mail.tls, mail.port, mail.login.is_none()), (MailTls::Starttls, 587, true));
        for (word, port) in [("implicit", 465), ("none", 25)] {
            let mail = MailSettings::from_env(&env(&[("SMTP_TLS", word)])).unwrap().unwrap();
            assert_eq!((mail.tls.text(), mail.port), (word, port));
        }
        let own = MailSettings::from_env(&env(&[("SMTP_PORT", "2525")])).unwrap().unwrap();
        assert_eq!(own.port, 2525);
        for wrong in [("SMTP_TLS", "opportunistic"), ("SMTP_FROM", "nobody"), ("SMTP_FROM", "")] {
            let refused = MailSettings::from_env(&env(&[wrong])).unwrap_err().to_string();
            assert!(refused.contains(wrong.0), "{refused}");
        }
    }

    #[test]
    fn what_cannot_work_together_keeps_the_worker_from_starting() {
        let found = |pairs: &[(&str, &str)]| {
            let found = check(&Environment::of_map(&env(pairs)), Role::BackendWorker, Scope::Elsewhere);
            let ours = found.into_iter().filter(|problem| problem.variable.starts_with("SMTP_"));
            ours.map(|problem| (problem.variable, problem.severity)).collect::<Vec<_>>()
        };
        let error = |name: &str| vec![(name.to_owned(), Severity::Error)];
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[("SMTP_FROM", "")]), error("SMTP_FROM"));
        assert_eq!(found(&[("SMTP_USERNAME", "tale")]), error("SMTP_PASSWORD"));
        assert_eq!(found(&[("SMTP_PASSWORD", "p")]), error("SMTP_USERNAME"));
        let login = [("SMTP_USERNAME", "tale"), ("SMTP_PASSWORD", "p")];
        assert_eq!(found(&login), []);
        assert_eq!(found(&[login[0], login[1], ("SMTP_TLS", "none")]), error("SMTP_PASSWORD"));
        let useless = vec![("SMTP_FROM".to_owned(), Severity::Warning)];
        assert_eq!(found(&[("SMTP_HOST", "")]), useless, "an address without a server");
    }
}
