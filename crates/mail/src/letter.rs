//! A letter, and the message it becomes.

use std::time::SystemTime;

use chrono::{DateTime, Utc};
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use uuid::Uuid;

use crate::SendError;

/// A letter to one person.
#[derive(Debug, Clone)]
pub struct Letter {
    /// The same whenever it is sent again, so that whoever gets it twice can tell.
    pub id: Uuid,
    /// The address of the reader.
    pub to: String,
    /// What it is about, in one line.
    pub subject: String,
    /// What it says, as text.
    pub text: String,
    /// The same as HTML. Whoever writes it escapes what it quotes.
    pub html: String,
    /// When it was written.
    pub date: DateTime<Utc>,
}

impl Letter {
    /// The message. What stands in headers is encoded there and holds no line ends, so that nothing can become a
    /// header or a recipient of its own.
    pub(crate) fn message(&self, from: &Mailbox, domain: &str) -> Result<Message, SendError> {
        let refused = || SendError::Refused("the address of the reader is none that mail can go to".to_owned());
        let to: lettre::Address = self.to.parse().map_err(|_| refused())?;
        let subject: String = self.subject.chars().filter(|c| !c.is_control()).collect();
        // Nobody answers these, machines least of all (RFC 3834).
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        Message::builder()
            .from(from.clone())
            .to(Mailbox::new(None, to))
            .subject(subject)
            .date(SystemTime::from(self.date))
            .message_id(Some(format!("<{}@{domain}>", self.id)))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .multipart(MultiPart::alternative_plain_html(self.text.clone(), self.html.clone()))
            .map_err(|error| SendError::Refused(format!("the letter cannot be written: {error}")))
    }
}
