//! The words of notifications in the languages of the interface.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Kind;

/// A language of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// German.
    De,
    /// French.
    Fr,
}

impl Locale {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::En, Self::De, Self::Fr];

    /// The word on the wire and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
        }
    }

    /// The language of a stored word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|locale| locale.text() == text)
    }
}

/// What a notification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// What happened, in a few words.
    pub title: String,
    /// The rest, and what to do about it.
    pub body: String,
}

/// Longest value that is set into a text, in characters.
const MAX_VALUE: usize = 200;

impl Kind {
    /// What a notification of this kind with `details` says in `locale`.
    #[must_use]
    pub fn words(self, locale: Locale, details: &Value) -> Words {
        let (title, body) = self.texts(locale);
        Words { title: filled(title, locale, details), body: filled(body, locale, details) }
    }

    fn texts(self, locale: Locale) -> (&'static str, &'static str) {
        let [en, de, fr] = match self {
            Self::NewDevice => [
                (
                    "New sign-in",
                    "Your account was used from {device}, network {network}. If that was not you, change your password and end the session.",
                ),
                (
                    "Neue Anmeldung",
                    "Ihr Konto wurde benutzt: {device}, Netz {network}. Wenn Sie das nicht waren, ändern Sie Ihr Passwort und beenden Sie die Sitzung.",
                ),
                (
                    "Nouvelle connexion",
                    "Votre compte a été utilisé depuis {device}, réseau {network}. Si ce n’était pas vous, changez votre mot de passe et fermez la session.",
                ),
            ],
            Self::PasswordChanged => [
                (
                    "Password changed",
                    "The password of your account was changed and all sessions were ended. If that was not you, ask an admin of your organization at once.",
                ),
                (
                    "Passwort geändert",
                    "Das Passwort Ihres Kontos wurde geändert, alle Sitzungen wurden beendet. Wenn Sie das nicht waren, wenden Sie sich sofort an einen Admin Ihrer Organisation.",
                ),
                (
                    "Mot de passe changé",
                    "Le mot de passe de votre compte a été changé et toutes les sessions ont été fermées. Si ce n’était pas vous, prévenez immédiatement un administrateur de votre organisation.",
                ),
            ],
            Self::PasswordReset => [
                (
                    "Password set by an admin",
                    "An owner or admin set a new password for your account and all sessions were ended. Change it to one that only you know.",
                ),
                (
                    "Passwort von einem Admin gesetzt",
                    "Ein Eigentümer oder Admin hat ein neues Passwort für Ihr Konto gesetzt, alle Sitzungen wurden beendet. Ändern Sie es in eines, das nur Sie kennen.",
                ),
                (
                    "Mot de passe défini par un administrateur",
                    "Un propriétaire ou un administrateur a défini un nouveau mot de passe pour votre compte et toutes les sessions ont été fermées. Choisissez-en un que vous seul connaissez.",
                ),
            ],
            Self::FactorAdded => [
                (
                    "Second factor added",
                    "Added to your account: {method} {name}. If that was not you, remove it and change your password.",
                ),
                (
                    "Zweiter Faktor hinzugefügt",
                    "Zu Ihrem Konto hinzugefügt: {method} {name}. Wenn Sie das nicht waren, entfernen Sie ihn und ändern Sie Ihr Passwort.",
                ),
                (
                    "Second facteur ajouté",
                    "Ajouté à votre compte : {method} {name}. Si ce n’était pas vous, retirez-le et changez votre mot de passe.",
                ),
            ],
            Self::FactorRemoved => [
                (
                    "Second factor removed",
                    "Removed from your account: {method} {name}. If that was not you, change your password and add a factor again.",
                ),
                (
                    "Zweiter Faktor entfernt",
                    "Aus Ihrem Konto entfernt: {method} {name}. Wenn Sie das nicht waren, ändern Sie Ihr Passwort und fügen Sie wieder einen Faktor hinzu.",
                ),
                (
                    "Second facteur retiré",
                    "Retiré de votre compte : {method} {name}. Si ce n’était pas vous, changez votre mot de passe et ajoutez de nouveau un facteur.",
                ),
            ],
            Self::FactorReset => [
                (
                    "Second factor reset by an admin",
                    "An owner or admin took this away from your account: {method} {name}. All sessions were ended. Set up a second factor again.",
                ),
                (
                    "Zweiter Faktor von einem Admin zurückgesetzt",
                    "Ein Eigentümer oder Admin hat von Ihrem Konto entfernt: {method} {name}. Alle Sitzungen wurden beendet. Richten Sie wieder einen zweiten Faktor ein.",
                ),
                (
                    "Second facteur réinitialisé par un administrateur",
                    "Un propriétaire ou un administrateur a retiré de votre compte : {method} {name}. Toutes les sessions ont été fermées. Configurez de nouveau un second facteur.",
                ),
            ],
            Self::BackupCodesRenewed => [
                (
                    "New backup codes",
                    "New backup codes were made for your account; the old ones no longer work. If that was not you, change your password.",
                ),
                (
                    "Neue Backup-Codes",
                    "Für Ihr Konto wurden neue Backup-Codes erzeugt, die alten gelten nicht mehr. Wenn Sie das nicht waren, ändern Sie Ihr Passwort.",
                ),
                (
                    "Nouveaux codes de secours",
                    "De nouveaux codes de secours ont été créés pour votre compte ; les anciens ne fonctionnent plus. Si ce n’était pas vous, changez votre mot de passe.",
                ),
            ],
            Self::BackupCodeUsed => [
                (
                    "Backup code used",
                    "Somebody signed in to your account with a backup code. Codes left: {left}. If that was not you, change your password.",
                ),
                (
                    "Backup-Code benutzt",
                    "Bei Ihrem Konto hat sich jemand mit einem Backup-Code angemeldet. Übrige Codes: {left}. Wenn Sie das nicht waren, ändern Sie Ihr Passwort.",
                ),
                (
                    "Code de secours utilisé",
                    "Quelqu’un s’est connecté à votre compte avec un code de secours. Codes restants : {left}. Si ce n’était pas vous, changez votre mot de passe.",
                ),
            ],
            Self::KeyMade => [
                ("API key made", "The API key “{name}” was made for your account. If that was not you, revoke it."),
                (
                    "API-Schlüssel erzeugt",
                    "Für Ihr Konto wurde der API-Schlüssel „{name}“ erzeugt. Wenn Sie das nicht waren, widerrufen Sie ihn.",
                ),
                (
                    "Clé API créée",
                    "La clé API « {name} » a été créée pour votre compte. Si ce n’était pas vous, révoquez-la.",
                ),
            ],
            Self::RoleChanged => [
                ("Your role is now {role}", "An owner or admin changed your role in this organization."),
                (
                    "Ihre Rolle ist jetzt {role}",
                    "Ein Eigentümer oder Admin hat Ihre Rolle in dieser Organisation geändert.",
                ),
                (
                    "Votre rôle est désormais {role}",
                    "Un propriétaire ou un administrateur a changé votre rôle dans cette organisation.",
                ),
            ],
            Self::OwnershipTransferred => [
                ("You own this organization now", "Its owner handed it over to you and is an admin from now on."),
                (
                    "Diese Organisation gehört jetzt Ihnen",
                    "Der Eigentümer hat sie Ihnen übertragen und ist ab jetzt Admin.",
                ),
                (
                    "Cette organisation est désormais la vôtre",
                    "Son propriétaire vous l’a transférée et devient administrateur.",
                ),
            ],
            Self::SignInBlocked => [
                (
                    "Sign-in blocked",
                    "Too many sign-ins to your account failed, so it is blocked for a while for network {network}. If you did not try, somebody else did.",
                ),
                (
                    "Anmeldung gesperrt",
                    "Zu viele Anmeldungen bei Ihrem Konto sind gescheitert, deshalb ist es für das Netz {network} eine Weile gesperrt. Wenn Sie es nicht versucht haben, war es jemand anders.",
                ),
                (
                    "Connexion bloquée",
                    "Trop de connexions à votre compte ont échoué : il est bloqué un moment pour le réseau {network}. Si vous n’avez rien tenté, quelqu’un d’autre l’a fait.",
                ),
            ],
            Self::MemberBlocked => [
                ("Sign-in of a member blocked", "Too many sign-ins failed. Account: {email}. Network: {network}."),
                (
                    "Anmeldung eines Mitglieds gesperrt",
                    "Zu viele Anmeldungen sind gescheitert. Konto: {email}. Netz: {network}.",
                ),
                (
                    "Connexion d’un membre bloquée",
                    "Trop de connexions ont échoué. Compte : {email}. Réseau : {network}.",
                ),
            ],
            Self::AuditBroken => [
                (
                    "The audit log does not hold",
                    "The daily check found that the chain of audit entries breaks at entry {sequence}. Somebody may have changed the database.",
                ),
                (
                    "Das Audit-Protokoll hält nicht",
                    "Die tägliche Prüfung hat ergeben, dass die Kette der Einträge beim Eintrag {sequence} bricht. Möglicherweise hat jemand die Datenbank verändert.",
                ),
                (
                    "Le journal d’audit ne tient plus",
                    "Le contrôle quotidien montre que la chaîne des entrées se rompt à l’entrée {sequence}. Quelqu’un a peut-être modifié la base de données.",
                ),
            ],
            Self::LimitNear | Self::SharedLimitNear => [
                ("Usage limit {reached}", "{limit} is {percent}% used. It begins anew on {resetsOn} (UTC)."),
                (
                    "Nutzungslimit {reached}",
                    "{limit} ist zu {percent} % verbraucht. Es beginnt am {resetsOn} (UTC) neu.",
                ),
                (
                    "Limite d’utilisation {reached}",
                    "{limit} est utilisée à {percent} %. Elle repart de zéro le {resetsOn} (UTC).",
                ),
            ],
        };
        match locale {
            Locale::En => en,
            Locale::De => de,
            Locale::Fr => fr,
        }
    }
}

/// `text` with the values of `details` in the place of their names.
fn filled(text: &str, locale: Locale, details: &Value) -> String {
    let mut out = String::with_capacity(text.len() + 40);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(before);
        let value = value_of(name, locale, details);
        if value.is_empty() && out.ends_with(' ') {
            out.pop();
        }
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// `text` in one line of bounded length, without signs that turn the direction of what follows.
pub(crate) fn clean(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    text.chars().filter(|c| !c.is_control() && !turns(*c)).take(MAX_VALUE).collect()
}

fn value_of(name: &str, locale: Locale, details: &Value) -> String {
    let plain = match &details[name] {
        Value::String(text) => clean(text),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    match name {
        "limit" => return limit_words(locale, details),
        "resetsOn" if !plain.is_empty() => return day_words(locale, &plain),
        _ => {}
    }
    let [en, de, fr] = match (name, plain.as_str()) {
        ("reached", _) if details["percent"].as_u64().is_some_and(|percent| percent >= 100) => {
            ["reached", "erreicht", "atteinte"]
        }
        ("reached", _) => ["nearly reached", "fast erreicht", "presque atteinte"],
        ("percent" | "resetsOn", "") => ["?", "?", "?"],
        ("device", "") => ["an unknown device", "unbekanntes Gerät", "un appareil inconnu"],
        ("method", "passkey") => ["passkey", "Passkey", "clé d’accès"],
        ("method", _) => ["authenticator app", "Authenticator-App", "application d’authentification"],
        ("role", "owner") => ["Owner", "Eigentümer", "Propriétaire"],
        ("role", "admin") => ["Admin", "Admin", "Administrateur"],
        ("role", "developer") => ["Developer", "Entwickler", "Développeur"],
        ("role", "editor") => ["Editor", "Redakteur", "Éditeur"],
        ("role", "member") => ["Member", "Mitglied", "Membre"],
        ("role", "disabled") => ["Disabled", "Deaktiviert", "Désactivé"],
        ("sequence", "") => ["?", "?", "?"],
        _ => return plain,
    };
    match locale {
        Locale::En => en,
        Locale::De => de,
        Locale::Fr => fr,
    }
    .to_owned()
}

/// Whose limit `details` tell of, and how much it is: the beginning of a sentence.
fn limit_words(locale: Locale, details: &Value) -> String {
    let text = |name: &str| details[name].as_str().map(clean).unwrap_or_default();
    let amount = amount_words(locale, &text("counts"), &details["limit"]);
    let (holder, name) = (text("holder"), text("name"));
    let pick = |en: &str, de: &str, fr: &str| match locale {
        Locale::En => en.to_owned(),
        Locale::De => de.to_owned(),
        Locale::Fr => fr.to_owned(),
    };
    let period = match text("period").as_str() {
        "daily" => pick("daily limit", "Tageslimit", "limite quotidienne"),
        "weekly" => pick("weekly limit", "Wochenlimit", "limite hebdomadaire"),
        "monthly" => pick("monthly limit", "Monatslimit", "limite mensuelle"),
        _ => pick("limit", "Limit", "limite"),
    };
    match (locale, holder.as_str()) {
        (Locale::En, "organization") => format!("The organization’s {period} of {amount}"),
        (Locale::En, "team") => format!("The {period} of {amount} of the team “{name}”"),
        (Locale::En, "apiKey") => format!("The {period} of {amount} of the API key “{name}”"),
        (Locale::En, _) => format!("Your {period} of {amount}"),
        (Locale::De, "organization") => format!("Das {period} der Organisation von {amount}"),
        (Locale::De, "team") => format!("Das {period} des Teams „{name}“ von {amount}"),
        (Locale::De, "apiKey") => format!("Das {period} des API-Schlüssels „{name}“ von {amount}"),
        (Locale::De, _) => format!("Ihr {period} von {amount}"),
        (Locale::Fr, "organization") => format!("La {period} de {amount} de l’organisation"),
        (Locale::Fr, "team") => format!("La {period} de {amount} de l’équipe « {name} »"),
        (Locale::Fr, "apiKey") => format!("La {period} de {amount} de la clé d’API « {name} »"),
        (Locale::Fr, _) => format!("Votre {period} de {amount}"),
    }
}

/// An amount of what a limit counts, in tokens, requests or US cents.
fn amount_words(locale: Locale, counts: &str, amount: &Value) -> String {
    let whole = amount.as_u64().unwrap_or(0);
    match counts {
        "COST_LIMIT" => {
            // Whole cents, rounded up as in refusals.
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an amount of cents, checked when it was saved"
            )]
            let cents = amount.as_f64().unwrap_or(0.0).ceil().max(0.0) as u64;
            let dollars = grouped(locale, cents / 100);
            match locale {
                Locale::En => format!("${dollars}.{:02}", cents % 100),
                Locale::De | Locale::Fr => format!("{dollars},{:02} $", cents % 100),
            }
        }
        "REQUEST_LIMIT" => {
            let [one, many] = match locale {
                Locale::En => ["request", "requests"],
                Locale::De => ["Anfrage", "Anfragen"],
                Locale::Fr => ["requête", "requêtes"],
            };
            format!("{} {}", grouped(locale, whole), if whole == 1 { one } else { many })
        }
        _ => {
            let [one, many] = match locale {
                Locale::En | Locale::Fr => ["token", "tokens"],
                Locale::De => ["Token", "Tokens"],
            };
            format!("{} {}", grouped(locale, whole), if whole == 1 { one } else { many })
        }
    }
}

/// A whole number with its thousands apart.
fn grouped(locale: Locale, number: u64) -> String {
    let separator = match locale {
        Locale::En => ',',
        Locale::De => '.',
        Locale::Fr => '\u{202f}',
    };
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(separator);
        }
        out.push(digit);
    }
    out
}

/// A day such as `2026-12-01` as it is written in a language.
fn day_words(locale: Locale, day: &str) -> String {
    let Ok(date) = day.parse::<chrono::NaiveDate>() else { return day.to_owned() };
    let form = match locale {
        Locale::En => "%Y-%m-%d",
        Locale::De => "%d.%m.%Y",
        Locale::Fr => "%d/%m/%Y",
    };
    date.format(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_is_told_with_whose_it_is_how_much_and_until_when() {
        let details = json!({
            "holder": "team", "name": "Sales", "counts": "TOKEN_LIMIT", "period": "monthly", "limit": 1_500_000,
            "percent": 85, "resetsOn": "2026-12-01",
        });
        let words = |locale| Kind::SharedLimitNear.words(locale, &details);
        assert_eq!(words(Locale::En).title, "Usage limit nearly reached");
        assert_eq!(
            words(Locale::En).body,
            "The monthly limit of 1,500,000 tokens of the team “Sales” is 85% used. It begins anew on 2026-12-01 (UTC)."
        );
        assert_eq!(
            words(Locale::De).body,
            "Das Monatslimit des Teams „Sales“ von 1.500.000 Tokens ist zu 85 % verbraucht. Es beginnt am 01.12.2026 (UTC) neu."
        );
        let own = json!({ "holder": "person", "counts": "COST_LIMIT", "period": "daily", "limit": 150.5, "percent": 101, "resetsOn": "2026-12-01" });
        let words = Kind::LimitNear.words(Locale::Fr, &own);
        assert_eq!(words.title, "Limite d’utilisation atteinte");
        assert_eq!(
            words.body,
            "Votre limite quotidienne de 1,51 $ est utilisée à 101 %. Elle repart de zéro le 01/12/2026 (UTC)."
        );
    }

    #[test]
    fn every_kind_has_words_in_every_language_and_none_shows_a_name_of_a_value() {
        for kind in Kind::ALL {
            let words = Locale::ALL.map(|locale| kind.words(locale, &json!({})));
            assert!(words[0] != words[1] && words[1] != words[2], "{kind:?} is not translated");
            for text in words.iter().flat_map(|words| [&words.title, &words.body]) {
                assert!(!text.is_empty() && !text.contains(['{', '}']) && !text.contains("  "), "{kind:?}: {text}");
            }
        }
    }

    #[test]
    fn values_cannot_break_lines_or_grow_without_end() {
        let name = format!("a\r\nBcc: b\u{202e}{}", "x".repeat(900));
        let words = Kind::KeyMade.words(Locale::En, &json!({ "name": name }));
        assert!(words.body.starts_with("The API key “aBcc: bxx") && words.body.chars().count() < 300, "{}", words.body);
        let passkey = Kind::FactorAdded.words(Locale::De, &json!({ "method": "passkey", "name": "YubiKey" }));
        assert!(passkey.body.starts_with("Zu Ihrem Konto hinzugefügt: Passkey YubiKey."), "{}", passkey.body);
        let app = Kind::FactorAdded.words(Locale::Fr, &json!({ "method": "totp" }));
        assert!(app.body.starts_with("Ajouté à votre compte : application d’authentification."), "{}", app.body);
        assert_eq!(
            Kind::RoleChanged.words(Locale::Fr, &json!({ "role": "editor" })).title,
            "Votre rôle est désormais Éditeur"
        );
    }
}
