//! Mail, handed to the operator's mail server by SMTP.
//!
//! Which server that is stands in the environment and nowhere else, so it is no address that a user can influence: it
//! may be on a private network, and the guard of outbound requests does not judge it. Its certificate is always
//! verified. With STARTTLS nothing is sent before the connection is encrypted, and what came in the clear counts for
//! nothing afterwards. One connection for each letter: mail is rare.

mod letter;
mod lockstep;

use std::time::Duration;

use lettre::Message;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use secrecy::ExposeSecret;
use tale_env::{MailSettings, MailTls};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use letter::Letter;
use lockstep::Lockstep;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a letter may take, from the connection to the server's word that it has it.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// How long the server may take to say goodbye, when it has the letter.
const GOODBYE: Duration = Duration::from_secs(2);
/// Longest reason that is handed on, in characters.
const MAX_REASON: usize = 300;

/// Replies that are about the account at the server, whatever the letter: an operator has to act.
const ACCOUNT: [u16; 4] = [530, 534, 535, 538];

/// Why there can be no mail.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The sender is no address that mail can come from.
    #[error("SMTP_FROM is no address that mail can come from")]
    From,
    /// The roots cannot be read.
    #[error("SMTP_CA_FILE cannot be read")]
    Roots(#[source] std::io::Error),
    /// The roots are none, or TLS cannot start.
    #[error("the certificate of the mail server could not be verified with these roots")]
    Tls(#[source] Error),
}

/// Why a letter was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The server cannot be reached, trusted or signed in at: no letter can be delivered until an operator or time mends that.
    #[error("{0}")]
    Server(String),
    /// Not now: the server may take this letter later.
    #[error("{0}")]
    Later(String),
    /// Never: the server refuses this letter, or the address is none.
    #[error("{0}")]
    Refused(String),
}

impl SendError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Server(_) => "MAIL_SERVER_UNAVAILABLE",
            Self::Later(_) => "MAIL_DEFERRED",
            Self::Refused(_) => "MAIL_REFUSED",
        }
    }
}

/// Hands letters to the mail server.
pub struct Mailer {
    host: String,
    port: u16,
    tls: MailTls,
    trust: TlsParameters,
    login: Option<Credentials>,
    from: Mailbox,
    /// Names Tale to the server, and stands in ids of messages.
    domain: String,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.server())
    }
}

impl Mailer {
    /// One for the server of `settings`. Nothing is connected.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn new(settings: &MailSettings) -> Result<Self, Unusable> {
        let address: lettre::Address = settings.from.parse().map_err(|_| Unusable::From)?;
        let mut trust = TlsParameters::builder(settings.host.clone());
        if let Some(file) = &settings.ca_file {
            let roots = std::fs::read_to_string(file).map_err(Unusable::Roots)?;
            if !roots.contains("BEGIN CERTIFICATE") {
                return Err(Unusable::Roots(std::io::Error::other("it holds no certificate")));
            }
            let roots = Certificate::from_pem(roots.as_bytes()).map_err(Unusable::Tls)?;
            trust = trust.certificate_store(CertificateStore::None).add_root_certificate(roots);
        }
        let login = settings.login.as_ref();
        Ok(Self {
            host: settings.host.clone(),
            port: settings.port,
            tls: settings.tls,
            trust: trust.build_rustls().map_err(Unusable::Tls)?,
            login: login.map(|(name, word)| Credentials::new(name.clone(), word.expose_secret().to_owned())),
            domain: address.domain().to_owned(),
            from: Mailbox::new(Some("Tale".to_owned()), address),
        })
    }

    /// Which server, for log lines: host, port and how it is spoken to.
    #[must_use]
    pub fn server(&self) -> String {
        format!("{}:{} ({})", self.host, self.port, self.tls.text())
    }

    /// Hands a letter over. Sending one again after a lost answer may deliver it twice, with the same `Message-ID`.
    ///
    /// # Errors
    /// [`SendError`]; none holds the password.
    pub async fn send(&self, letter: &Letter) -> Result<(), SendError> {
        let message = letter.message(&self.from, &self.domain)?;
        let handed = timeout(DEADLINE, self.hand_over(&message)).await;
        let mut connection =
            handed.map_err(|_| SendError::Server(format!("it did not answer within {} s", DEADLINE.as_secs())))??;
        // It has the letter, whatever becomes of the connection.
        let _ = timeout(GOODBYE, connection.quit()).await;
        Ok(())
    }

    async fn hand_over(&self, message: &Message) -> Result<AsyncSmtpConnection, SendError> {
        let mut connection = self.connect().await?;
        if let Some(login) = &self.login
            && let Err(error) = connection.auth(DEFAULT_MECHANISMS, login).await
        {
            let _ = timeout(GOODBYE, connection.abort()).await;
            return Err(SendError::Server(format!("it does not accept the account: {}", reason(&error))));
        }
        match connection.send(message.envelope(), &message.formatted()).await {
            Ok(_) => Ok(connection),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// A connection that is as safe as it was asked to be.
    async fn connect(&self) -> Result<AsyncSmtpConnection, SendError> {
        let away = |error: Error| SendError::Server(reason(&error));
        let hello = ClientId::Domain(self.domain.clone());
        let address = (self.host.as_str(), self.port);
        let trust = match self.tls {
            MailTls::Implicit => Some(self.trust.clone()),
            MailTls::None => None,
            MailTls::Starttls => {
                let stream = match timeout(CONNECT, TcpStream::connect(address)).await {
                    Ok(Ok(stream)) => Box::new(Lockstep::new(stream)),
                    Ok(Err(error)) => return Err(SendError::Server(format!("it cannot be reached: {error}"))),
                    Err(_) => return Err(SendError::Server("it cannot be reached: timed out".to_owned())),
                };
                let mut connection = AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(away)?;
                // Fails where the server does not offer it.
                connection.starttls(self.trust.clone(), &hello).await.map_err(away)?;
                return Ok(connection);
            }
        };
        AsyncSmtpConnection::connect_tokio1(address, Some(CONNECT), &hello, trust, None).await.map_err(away)
    }
}

/// What a failure after the sign-in means for the letter.
fn refusal(error: &Error) -> SendError {
    let text = reason(error);
    match error.status().map(u16::from) {
        Some(code) if ACCOUNT.contains(&code) => SendError::Server(text),
        Some(500..) => SendError::Refused(text),
        Some(_) => SendError::Later(text),
        // Such as a letter that needs what the server does not offer.
        None if error.is_client() => SendError::Refused(text),
        None => SendError::Server(text),
    }
}

/// An error and its causes in one line.
fn reason(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error).and_then(std::error::Error::source);
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_REASON).collect()
}
