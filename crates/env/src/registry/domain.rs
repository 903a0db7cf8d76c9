//! Addresses of the deployment, and TLS.

use super::{API, Part, Role, Section, Var};
use crate::kind::Kind;

const fn domain(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Domain, roles, kind)
}

const fn tls(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Tls, roles, kind)
}

const EVERYONE: &[Role] = &[Role::Platform, Role::BackendApi, Role::BackendWorker, Role::All, Role::Proxy, Role::Cli];
const WITH_PROXY: &[Role] = &[Role::Platform, Role::BackendApi, Role::BackendWorker, Role::All, Role::Proxy];
const PROXY: &[Role] = &[Role::Proxy];

/// `HOST`.
pub const HOST: Var = domain("HOST", EVERYONE, Kind::HostName).help(
    "Public host name. When SITE_URL is unset, the site is https://HOST.",
    "Öffentlicher Hostname. Ist SITE_URL nicht gesetzt, ist die Adresse https://HOST.",
    "Nom d’hôte public. Si SITE_URL n’est pas définie, le site est https://HOST.",
);

/// `SITE_URL`.
pub const SITE_URL: Var = domain("SITE_URL", EVERYONE, Kind::SiteUrl)
    .derived(
        "https://HOST; with `tale dev` http://localhost and its port",
        "https://HOST; mit `tale dev` http://localhost und dessen Port",
        "https://HOST ; avec `tale dev`, http://localhost et son port",
    )
    .unless(&["HOST"])
    .example("https://localhost")
    .help(
        "Canonical public origin: links, cookies and uploads are made for it. Write it exactly as in the browser's address bar.",
        "Kanonische öffentliche Origin: Links, Cookies und Uploads gelten für sie. Schreibe sie genau wie in der Adresszeile des Browsers.",
        "Origine publique canonique : liens, cookies et téléversements sont faits pour elle. Écris-la exactement comme dans la barre d’adresse du navigateur.",
    );

/// `ADDITIONAL_SITE_URLS`.
pub const ADDITIONAL_SITE_URLS: Var = domain("ADDITIONAL_SITE_URLS", WITH_PROXY, Kind::Origins).help(
    "Further origins that are full entry points to the same deployment.",
    "Weitere Origins, die vollwertige Zugänge zum selben Deployment sind.",
    "Autres origines qui sont des points d’entrée complets du même déploiement.",
);

/// `BASE_PATH`.
pub const BASE_PATH: Var = domain("BASE_PATH", WITH_PROXY, Kind::BasePath).help(
    "Path prefix under which the whole deployment is served. A slash at its end does not matter.",
    "Pfadpräfix, unter dem das ganze Deployment ausgeliefert wird. Ein Schrägstrich am Ende ist ohne Bedeutung.",
    "Préfixe de chemin sous lequel tout le déploiement est servi. Une barre oblique finale est sans effet.",
);

/// `TOTP_CLIENT_NAME`.
pub const TOTP_CLIENT_NAME: Var = domain(
    "TOTP_CLIENT_NAME",
    &[Role::Platform, Role::BackendApi, Role::All],
    Kind::TotpClient,
)
.derived("unset (same as Tale)", "nicht gesetzt (wie Tale)", "non définie (comme Tale)")
.help(
    "Client name in the label of new authenticator entries and of backup-code files.",
    "Kundenname in der Bezeichnung neuer Authenticator-Einträge und der Dateien mit Backup-Codes.",
    "Nom du client dans le libellé des nouvelles entrées d’authentification et des fichiers de codes de secours.",
);

/// `TOTP_ENVIRONMENT`.
pub const TOTP_ENVIRONMENT: Var = domain("TOTP_ENVIRONMENT", API, Kind::TotpEnvironment).help(
    "Environment suffix in the same labels; `pr` counts as unset.",
    "Umgebungszusatz in denselben Bezeichnungen; `pr` gilt als nicht gesetzt.",
    "Suffixe d’environnement dans ces mêmes libellés ; `pr` compte comme non défini.",
);

pub(super) const DOMAIN: &[Var] = &[
    SITE_URL,
    ADDITIONAL_SITE_URLS,
    HOST,
    BASE_PATH,
    domain("DOCS_URL", PROXY, Kind::Origin)
        .derived("https://docs.HOST", "https://docs.HOST", "https://docs.HOST")
        .not_yet(Part::DocsSite)
        .help(
            "Public origin of the prose documentation in the proxy.",
            "Öffentliche Origin der Textdokumentation im Proxy.",
            "Origine publique de la documentation rédigée dans le proxy.",
        ),
    domain("TALE_DOCS_URL", &[Role::Build], Kind::Origin).not_yet(Part::DocsSite).help(
        "Documentation origin that is written into search-engine files when they are built.",
        "Origin der Dokumentation, die beim Bauen in die Dateien für Suchmaschinen geschrieben wird.",
        "Origine de la documentation inscrite dans les fichiers pour moteurs de recherche lors de la compilation.",
    ),
    domain("DOCS_BASE_URL", &[Role::Docs], Kind::BasePath).not_yet(Part::DocsSite).help(
        "Path prefix of the documentation service.",
        "Pfadpräfix des Dokumentationsdienstes.",
        "Préfixe de chemin du service de documentation.",
    ),
    TOTP_CLIENT_NAME,
    TOTP_ENVIRONMENT,
];

/// `TLS_MODE`.
pub const TLS_MODE: Var =
    tls("TLS_MODE", PROXY, Kind::OneOf(&["selfsigned", "letsencrypt", "external", "file"])).value("selfsigned").help(
        "Which certificate the proxy serves: one of its own authority, one of Let's Encrypt, none because another proxy ends TLS, or TLS_CERT_FILE.",
        "Welches Zertifikat der Proxy ausliefert: eines seiner eigenen Zertifizierungsstelle, eines von Let's Encrypt, keines, weil ein anderer Proxy TLS beendet, oder TLS_CERT_FILE.",
        "Certificat que le proxy présente : celui de sa propre autorité, celui de Let's Encrypt, aucun car un autre proxy termine TLS, ou TLS_CERT_FILE.",
    );

/// `TLS_EMAIL`.
pub const TLS_EMAIL: Var = tls("TLS_EMAIL", PROXY, Kind::Email).help(
    "Contact for the certificate authority; recommended with TLS_MODE=letsencrypt.",
    "Kontakt für die Zertifizierungsstelle; mit TLS_MODE=letsencrypt empfohlen.",
    "Contact pour l’autorité de certification ; recommandé avec TLS_MODE=letsencrypt.",
);

/// `TRUSTED_PROXIES`.
pub const TRUSTED_PROXIES: Var = tls("TRUSTED_PROXIES", PROXY, Kind::Ranges).value("private_ranges").help(
    "Peers whose X-Forwarded-Proto and X-Forwarded-For are believed; used with TLS_MODE=external only.",
    "Gegenstellen, deren X-Forwarded-Proto und X-Forwarded-For geglaubt wird; nur mit TLS_MODE=external.",
    "Pairs dont X-Forwarded-Proto et X-Forwarded-For sont crus ; seulement avec TLS_MODE=external.",
);

/// `TLS_CERT_FILE`.
pub const TLS_CERT_FILE: Var = tls("TLS_CERT_FILE", PROXY, Kind::File).help(
    "Certificate chain (PEM) for TLS_MODE=file.",
    "Zertifikatskette (PEM) für TLS_MODE=file.",
    "Chaîne de certificats (PEM) pour TLS_MODE=file.",
);

/// `TLS_KEY_FILE`.
pub const TLS_KEY_FILE: Var = tls("TLS_KEY_FILE", PROXY, Kind::File).help(
    "Private key (PEM) that belongs to TLS_CERT_FILE.",
    "Privater Schlüssel (PEM) zu TLS_CERT_FILE.",
    "Clé privée (PEM) qui correspond à TLS_CERT_FILE.",
);

pub(super) const TLS: &[Var] = &[TLS_MODE, TLS_EMAIL, TRUSTED_PROXIES, TLS_CERT_FILE, TLS_KEY_FILE];
