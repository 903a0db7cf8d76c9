//! The words of a mail: text and simple HTML, in the language of its reader.

use chrono::{DateTime, Utc};
use tale_core::ids::OrgId;
use tale_mail::Letter;
use uuid::Uuid;

use super::store::{Reader, Told};
use crate::Locale;
use crate::words::clean;

/// Most notifications that are told in full; the rest is counted.
const LISTED: usize = 10;

/// Where links lead.
pub(super) struct Address<'a> {
    /// The site, without a slash at its end.
    pub(super) site: &'a str,
    /// The organization whose pages they show; without one they show the site.
    pub(super) org: Option<OrgId>,
}

impl Address<'_> {
    fn of(&self, path: &str) -> String {
        match self.org {
            Some(org) => format!("{}/dashboard/{org}/{path}", self.site),
            None => format!("{}/", self.site),
        }
    }
}

/// What stands around the notifications.
struct Frame {
    organization: &'static str,
    more: &'static str,
    settings: &'static str,
}

impl Locale {
    fn frame(self) -> Frame {
        match self {
            Self::En => Frame {
                organization: "Organization",
                more: "Show in Tale",
                settings: "Choose what you are told by email",
            },
            Self::De => Frame {
                organization: "Organisation",
                more: "In Tale anzeigen",
                settings: "Wählen, worüber Sie per E-Mail informiert werden",
            },
            Self::Fr => Frame {
                organization: "Organisation",
                more: "Afficher dans Tale",
                settings: "Choisir ce dont vous êtes informé par e-mail",
            },
        }
    }

    fn several(self, count: usize) -> String {
        match self {
            Self::En => format!("{count} notifications from Tale"),
            Self::De => format!("{count} Benachrichtigungen von Tale"),
            Self::Fr => format!("{count} notifications de Tale"),
        }
    }

    fn rest(self, count: usize) -> String {
        match self {
            Self::En => format!("and {count} more, which stand in Tale"),
            Self::De => format!("und {count} weitere, die in Tale stehen"),
            Self::Fr => format!("et {count} autres, visibles dans Tale"),
        }
    }
}

/// The mail about `notices`. What strangers can cause stands last, so that it pushes nothing out.
pub(super) fn write(
    id: Uuid,
    written: DateTime<Utc>,
    reader: &Reader,
    address: &Address<'_>,
    mut notices: Vec<Told>,
) -> Letter {
    notices.sort_by_key(|told| (told.kind.by_strangers(), told.at));
    let locale = reader.locale;
    let frame = locale.frame();
    let (mut subject, mut text, mut html) = (locale.several(notices.len()), String::new(), String::new());
    for told in notices.iter().take(LISTED) {
        let words = told.kind.words(locale, &told.details);
        let (when, link) = (told.at.format("%Y-%m-%d %H:%M UTC"), address.of(told.kind.path()));
        text += &format!("{}\n\n{}\n\n{when}\n{}: {link}\n\n\n", words.title, words.body, frame.more);
        html += &format!(
            "<h2 style=\"font-size:18px;margin:0 0 8px\">{}</h2><p style=\"margin:0 0 8px\">{}</p><p style=\"margin:0 0 28px;color:#595959\">{when}<br><a href=\"{}\">{}</a></p>",
            escaped(&words.title),
            escaped(&words.body),
            escaped(&link),
            frame.more
        );
        if notices.len() == 1 {
            subject = words.title;
        }
    }
    if notices.len() > LISTED {
        let rest = locale.rest(notices.len() - LISTED);
        text += &format!("{rest}\n\n\n");
        html += &format!("<p style=\"margin:0 0 28px\">{rest}</p>");
    }
    text += "-- \n";
    html += "<p style=\"margin:0;border-top:1px solid #d9d9d9;padding-top:12px;color:#595959\">";
    if let Some(name) = reader.org_name.as_deref().map(clean) {
        text += &format!("{}: {name}\n", frame.organization);
        html += &format!("{}: {}<br>", frame.organization, escaped(&name));
    }
    let settings = address.of("settings/notifications");
    text += &format!("{}: {settings}\n", frame.settings);
    html += &format!("<a href=\"{}\">{}</a></p>", escaped(&settings), frame.settings);
    let language = locale.text();
    let html = format!(
        "<!doctype html><html lang=\"{language}\"><head><meta charset=\"utf-8\"><title>{}</title></head><body style=\"margin:24px;font:16px/1.5 sans-serif\">{html}</body></html>\n",
        escaped(&subject)
    );
    Letter { id, to: reader.email.clone(), subject, text, html, date: written }
}

/// `text` as it may stand in HTML, in an attribute too.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
