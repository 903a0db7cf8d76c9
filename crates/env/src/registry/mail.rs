//! The mail server that notifications go through.

use super::{Section, Var, WORKER};
use crate::kind::Kind;

const fn v(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::Mail, WORKER, kind)
}

/// `SMTP_HOST`.
pub const SMTP_HOST: Var = v("SMTP_HOST", Kind::HostName).help(
    "Mail server through which notifications are delivered. Without it there is no mail. It may be on a private network.",
    "Mailserver, über den Benachrichtigungen zugestellt werden. Ohne ihn gibt es keine E-Mails. Er darf in einem privaten Netz stehen.",
    "Serveur de messagerie par lequel les notifications sont distribuées. Sans lui, il n’y a pas d’e-mails. Il peut être sur un réseau privé.",
);

/// `SMTP_PORT`.
pub const SMTP_PORT: Var = v("SMTP_PORT", Kind::Port { zero: false })
    .derived(
        "587; with SMTP_TLS=implicit 465, with none 25",
        "587; mit SMTP_TLS=implicit 465, mit none 25",
        "587 ; avec SMTP_TLS=implicit 465, avec none 25",
    )
    .help("Port of the mail server.", "Port des Mailservers.", "Port du serveur de messagerie.");

/// `SMTP_TLS`.
pub const SMTP_TLS: Var = v("SMTP_TLS", Kind::OneOf(&["starttls", "implicit", "none"])).value("starttls").help(
    "How the connection is encrypted: starttls insists on it and sends nothing where the server does not offer it, implicit encrypts from the first byte, none never does.",
    "Wie die Verbindung verschlüsselt wird: starttls besteht darauf und sendet nichts, wo der Server es nicht anbietet, implicit verschlüsselt vom ersten Byte an, none nie.",
    "Chiffrement de la connexion : starttls l’exige et n’envoie rien si le serveur ne le propose pas, implicit chiffre dès le premier octet, none jamais.",
);

/// `SMTP_USERNAME`.
pub const SMTP_USERNAME: Var = v("SMTP_USERNAME", Kind::Text).help(
    "Account at the mail server, when it asks for one. It needs SMTP_PASSWORD.",
    "Konto beim Mailserver, wenn dieser eines verlangt. Es braucht SMTP_PASSWORD.",
    "Compte auprès du serveur de messagerie, s’il en demande un. Il nécessite SMTP_PASSWORD.",
);

/// `SMTP_PASSWORD`.
pub const SMTP_PASSWORD: Var = v("SMTP_PASSWORD", Kind::Secret { min: 1 }).secret().help(
    "Password of that account. It is refused with SMTP_TLS=none, which would send it in the clear.",
    "Passwort dieses Kontos. Mit SMTP_TLS=none wird es abgelehnt, weil es dann im Klartext gesendet würde.",
    "Mot de passe de ce compte. Il est refusé avec SMTP_TLS=none, qui l’enverrait en clair.",
);

/// `SMTP_FROM`.
pub const SMTP_FROM: Var = v("SMTP_FROM", Kind::Email).help(
    "Sender of the mails; SMTP_HOST needs it. Its domain names Tale to the mail server and stands in the Message-ID.",
    "Absender der E-Mails; SMTP_HOST braucht ihn. Seine Domain nennt Tale dem Mailserver und steht in der Message-ID.",
    "Expéditeur des e-mails ; SMTP_HOST en a besoin. Son domaine désigne Tale auprès du serveur et figure dans le Message-ID.",
);

/// `SMTP_CA_FILE`.
pub const SMTP_CA_FILE: Var = v("SMTP_CA_FILE", Kind::File)
    .derived(
        "the system's roots, or those of SSL_CERT_FILE",
        "die Wurzelzertifikate des Systems oder die aus SSL_CERT_FILE",
        "les racines du système, ou celles de SSL_CERT_FILE",
    )
    .help(
        "PEM file with the roots that the mail server's certificate is verified against. It is always verified.",
        "PEM-Datei mit den Wurzelzertifikaten, gegen die das Zertifikat des Mailservers geprüft wird. Es wird immer geprüft.",
        "Fichier PEM avec les racines servant à vérifier le certificat du serveur de messagerie. Il est toujours vérifié.",
    );

pub(super) const MAIL: &[Var] =
    &[SMTP_HOST, SMTP_PORT, SMTP_TLS, SMTP_USERNAME, SMTP_PASSWORD, SMTP_FROM, SMTP_CA_FILE];
