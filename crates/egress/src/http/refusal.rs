//! What a client is told instead of what it asked for.

use super::head::Malformed;

/// Why a request goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    HostNotAllowed,
    PortNotAllowed,
    PrivateAddress,
    BadRequest(Malformed),
    HeadTooLarge,
    HeadTooSlow,
    DnsFailed,
    ConnectFailed,
    ConnectTimeout,
    /// The far end said something that cannot be passed on safely.
    BadAnswer(Malformed),
}

impl Refusal {
    /// The word by which programs tell policy from outage. Words never change.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::HostNotAllowed => "host_not_allowed",
            Self::PortNotAllowed => "port_not_allowed",
            Self::PrivateAddress => "private_address",
            Self::BadRequest(_) | Self::HeadTooLarge | Self::HeadTooSlow => "bad_request",
            Self::DnsFailed => "dns_failed",
            Self::ConnectFailed | Self::BadAnswer(_) => "connect_failed",
            Self::ConnectTimeout => "connect_timeout",
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::HostNotAllowed | Self::PortNotAllowed | Self::PrivateAddress => "403 Forbidden",
            Self::BadRequest(_) => "400 Bad Request",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::HeadTooSlow => "408 Request Timeout",
            Self::DnsFailed | Self::ConnectFailed | Self::BadAnswer(_) => "502 Bad Gateway",
            Self::ConnectTimeout => "504 Gateway Timeout",
        }
    }

    /// One line for a person.
    fn sentence(self) -> String {
        let words = match self {
            Self::HostNotAllowed => "The operator's list of hosts does not admit this host.",
            Self::PortNotAllowed => "Sandboxes may not reach this port.",
            Self::PrivateAddress => "The host is, or stands for, an address that is not on the public internet.",
            Self::BadRequest(why) => return format!("The request is refused: {why}."),
            Self::HeadTooLarge => "The head of the request is larger than 64 KiB, or has more than 256 lines.",
            Self::HeadTooSlow => "The head of the request did not arrive in time.",
            Self::DnsFailed => "The host name does not exist, or cannot be resolved at present.",
            Self::ConnectFailed => "The host does not take the connection.",
            Self::ConnectTimeout => "The host does not answer.",
            Self::BadAnswer(why) => return format!("The answer of the host cannot be passed on: {why}."),
        };
        words.to_owned()
    }

    /// The whole answer. The connection ends behind it.
    pub(crate) fn answer(self) -> String {
        let (status, word, sentence) = (self.status(), self.word(), self.sentence());
        let length = sentence.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Tale-Egress: {word}\r\n\
             Content-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{sentence}\n"
        )
    }
}
