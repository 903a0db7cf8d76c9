//! Feature flags and retention.

use super::{API, BACKEND, Part, Role, Section, Var, WITH_GATEWAY};
use crate::kind::{Kind, Unit};

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::FeatureFlags, roles, kind)
}

const fn retention(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::Retention, BACKEND, kind).not_yet(Part::Retention)
}

const fn header(name: &'static str, default: &'static str) -> Var {
    v(name, API, Kind::HeaderName).value(default)
}

const BOUND: Kind = Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Plain };

/// `TALE_SKIP_SSRF_FIREWALL`.
pub const TALE_SKIP_SSRF_FIREWALL: Var = v(
    "TALE_SKIP_SSRF_FIREWALL",
    &[Role::SandboxEgress],
    Kind::Flag("1"),
)
.help(
    "Starts without the packet filter, for development. Addresses are judged inside the program at every connection all the same, as the backend roles do, which have no filter.",
    "Startet ohne den Paketfilter, für die Entwicklung. Adressen werden trotzdem im Programm bei jeder Verbindung beurteilt, wie in den Backend-Rollen, die keinen Filter haben.",
    "Démarre sans le filtre de paquets, pour le développement. Les adresses restent jugées dans le programme à chaque connexion, comme dans les rôles du backend, qui n’ont pas de filtre.",
);

/// `TALE_ALLOW_PRIVATE_PROVIDER_HOSTS`.
pub const TALE_ALLOW_PRIVATE_PROVIDER_HOSTS: Var = v(
    "TALE_ALLOW_PRIVATE_PROVIDER_HOSTS",
    WITH_GATEWAY,
    Kind::Flag("1"),
)
.help(
    "Admits model providers, and buckets and databases of organizations, on private and loopback addresses. Addresses of cloud metadata stay refused.",
    "Lässt Modellanbieter sowie Buckets und Datenbanken von Organisationen auf privaten und Loopback-Adressen zu. Adressen von Cloud-Metadaten bleiben abgelehnt.",
    "Admet des fournisseurs de modèles, des buckets et des bases d’organisations sur des adresses privées et de bouclage. Les adresses de métadonnées cloud restent refusées.",
);

/// `TALE_ALLOW_OPEN_SIGN_UP`.
pub const TALE_ALLOW_OPEN_SIGN_UP: Var = v("TALE_ALLOW_OPEN_SIGN_UP", API, Kind::Flag("true")).help(
    "Keeps public sign-up by e-mail open after the first account. For throw-away test stacks only.",
    "Hält die öffentliche Registrierung per E-Mail nach dem ersten Konto offen. Nur für Wegwerf-Testumgebungen.",
    "Laisse l’inscription publique par e-mail ouverte après le premier compte. Uniquement pour des environnements de test jetables.",
);

/// `TALE_FILE_EVENTS`.
pub const TALE_FILE_EVENTS: Var = v("TALE_FILE_EVENTS", API, Kind::Bool).value("false").help(
    "Streams changes of configuration files to open browser tabs.",
    "Überträgt Änderungen an Konfigurationsdateien an offene Browser-Tabs.",
    "Transmet les changements de fichiers de configuration aux onglets ouverts.",
);

/// `TALE_ORGANIZATION_CREATORS`.
pub const TALE_ORGANIZATION_CREATORS: Var = v("TALE_ORGANIZATION_CREATORS", API, Kind::Emails)
    .derived("unset (everybody)", "nicht gesetzt (alle)", "non définie (tout le monde)")
    .empty_counts()
    .help(
        "Who may create organizations once one exists. Set but empty means nobody.",
        "Wer Organisationen anlegen darf, sobald eine besteht. Gesetzt, aber leer heißt niemand.",
        "Qui peut créer des organisations dès qu’il en existe une. Définie mais vide signifie personne.",
    );

/// `TALE_CONFIG_DIR`.
pub const TALE_CONFIG_DIR: Var = v("TALE_CONFIG_DIR", WITH_GATEWAY, Kind::Directory)
    .derived("`config` in TALE_DATA_DIR", "`config` in TALE_DATA_DIR", "`config` dans TALE_DATA_DIR")
    .example("/app/data")
    .help(
        "Root of the configuration files that operators may edit: one folder `default` for the deployment and one per organization. All backend processes share it.",
        "Wurzel der Konfigurationsdateien, die Betreiber bearbeiten dürfen: ein Ordner `default` für die Installation und einer je Organisation. Alle Backend-Prozesse teilen sie.",
        "Racine des fichiers de configuration que les exploitants peuvent modifier : un dossier `default` pour l’installation et un par organisation. Tous les processus backend la partagent.",
    );

/// `TRUSTED_SECRET_HEADER`.
pub const TRUSTED_SECRET_HEADER: Var = header("TRUSTED_SECRET_HEADER", "Remote-Internal-Secret").help(
    "Header that carries the organization's key when Authorization cannot be used.",
    "Header mit dem Schlüssel der Organisation, wenn Authorization nicht benutzbar ist.",
    "En-tête qui porte la clé de l’organisation lorsque Authorization n’est pas utilisable.",
);

/// `TRUSTED_EMAIL_HEADER`.
pub const TRUSTED_EMAIL_HEADER: Var = header("TRUSTED_EMAIL_HEADER", "Remote-Email").help(
    "Header with the e-mail address that is signed in.",
    "Header mit der E-Mail-Adresse, die angemeldet wird.",
    "En-tête avec l’adresse e-mail qui est connectée.",
);

/// `TRUSTED_NAME_HEADER`.
pub const TRUSTED_NAME_HEADER: Var = header("TRUSTED_NAME_HEADER", "Remote-Name").help(
    "Header with the display name.",
    "Header mit dem Anzeigenamen.",
    "En-tête avec le nom affiché.",
);

/// `TRUSTED_ROLE_HEADER`.
pub const TRUSTED_ROLE_HEADER: Var = header("TRUSTED_ROLE_HEADER", "Remote-Role").help(
    "Header with the asserted role; the organization's ceiling caps it.",
    "Header mit der behaupteten Rolle; die Obergrenze der Organisation deckelt sie.",
    "En-tête avec le rôle annoncé ; le plafond de l’organisation le limite.",
);

/// `TRUSTED_TEAMS_HEADER`.
pub const TRUSTED_TEAMS_HEADER: Var = header("TRUSTED_TEAMS_HEADER", "Remote-Teams").help(
    "Header with team names. This release has no teams and ignores it.",
    "Header mit Teamnamen. Diese Version hat keine Teams und beachtet ihn nicht.",
    "En-tête avec les noms d’équipes. Cette version n’a pas d’équipes et l’ignore.",
);

pub(super) const FEATURE_FLAGS: &[Var] = &[
    TALE_ALLOW_PRIVATE_PROVIDER_HOSTS,
    TALE_ALLOW_OPEN_SIGN_UP,
    TALE_ORGANIZATION_CREATORS,
    TRUSTED_SECRET_HEADER,
    TRUSTED_EMAIL_HEADER,
    TRUSTED_NAME_HEADER,
    TRUSTED_ROLE_HEADER,
    TRUSTED_TEAMS_HEADER,
    TALE_FILE_EVENTS,
    TALE_CONFIG_DIR,
    v("TALE_CONFIG_BUILTIN_DIR", BACKEND, Kind::Directory).not_yet(Part::ConfigFiles).help(
        "Catalogue from which new organizations are set up.",
        "Katalog, aus dem neue Organisationen eingerichtet werden.",
        "Catalogue à partir duquel les nouvelles organisations sont créées.",
    ),
    v("TALE_DEPLOYMENT_CONFIG_ADMINS", API, Kind::Emails)
        .derived("unset (nobody)", "nicht gesetzt (niemand)", "non définie (personne)")
        .not_yet(Part::ConfigFiles)
        .help(
            "Operators who may write the deployment file through the API.",
            "Betreiber, die die Deployment-Datei über die API schreiben dürfen.",
            "Opérateurs qui peuvent écrire le fichier de déploiement par l’API.",
        ),
    v("TALE_ALLOW_PRIVATE_CRAWL_HOSTS", BACKEND, Kind::Flag("1")).not_yet(Part::Crawler).help(
        "Admits crawl targets on private addresses. Addresses of cloud metadata stay refused.",
        "Lässt Crawl-Ziele auf privaten Adressen zu. Adressen von Cloud-Metadaten bleiben abgelehnt.",
        "Admet des cibles d’exploration sur des adresses privées. Les adresses de métadonnées cloud restent refusées.",
    ),
    TALE_SKIP_SSRF_FIREWALL,
    v("TALE_DEBUG_LLM_WIRE", BACKEND, Kind::Flag("1"))
        .accepted(
            "Requests to models are never logged; TALE_LOG=tale=debug shows their course.",
            "Anfragen an Modelle werden nie protokolliert; TALE_LOG=tale=debug zeigt ihren Verlauf.",
            "Les requêtes aux modèles ne sont jamais journalisées ; TALE_LOG=tale=debug montre leur déroulement.",
        )
        .help(
            "Printed requests to models with their bodies redacted.",
            "Gab Anfragen an Modelle mit geschwärzten Inhalten aus.",
            "Affichait les requêtes aux modèles avec leur contenu masqué.",
        ),
    v("TALE_PROVISIONING_DISABLED", BACKEND, Kind::Flag("1"))
        .accepted(
            "New organizations get no default content, so there is nothing to stop.",
            "Neue Organisationen erhalten keine Standardinhalte, also ist nichts abzuschalten.",
            "Les nouvelles organisations ne reçoivent aucun contenu par défaut, il n’y a donc rien à désactiver.",
        )
        .help(
            "Kept default content out of new organizations, for tests.",
            "Hielt Standardinhalte aus neuen Organisationen heraus, für Tests.",
            "Évitait le contenu par défaut dans les nouvelles organisations, pour les tests.",
        ),
];

/// `TALE_RETENTION_DISABLED`.
pub const TALE_RETENTION_DISABLED: Var =
    Var::new("TALE_RETENTION_DISABLED", Section::Retention, BACKEND, Kind::Flag("true")).help(
        "Pauses the scheduled clean-up for a maintenance window. It restores nothing.",
        "Hält die geplante Bereinigung für ein Wartungsfenster an. Es stellt nichts wieder her.",
        "Suspend le nettoyage planifié pendant une maintenance. Elle ne restaure rien.",
    );

pub(super) const RETENTION: &[Var] = &[
    TALE_RETENTION_DISABLED,
    retention("TALE_RETENTION_<CATEGORY>_MIN", BOUND).help(
        "Raises the lower bound of a retention category. It can only tighten.",
        "Hebt die Untergrenze einer Aufbewahrungskategorie an. Sie kann nur verschärfen.",
        "Relève la borne inférieure d’une catégorie de conservation. Elle ne peut que durcir.",
    ),
    retention("TALE_RETENTION_<CATEGORY>_MAX", BOUND).help(
        "Lowers the upper bound of a retention category.",
        "Senkt die Obergrenze einer Aufbewahrungskategorie.",
        "Abaisse la borne supérieure d’une catégorie de conservation.",
    ),
    retention("TALE_RETENTION_<CATEGORY>_DEFAULT", BOUND).help(
        "Start value of a retention category.",
        "Startwert einer Aufbewahrungskategorie.",
        "Valeur initiale d’une catégorie de conservation.",
    ),
    retention("TALE_LEGAL_HOLD_RELEASE_COOLDOWN_HOURS", Kind::Integer { min: 0, max: u64::MAX, unit: Unit::Hours })
        .value("24")
        .help(
            "Wait between the approval of a legal hold's release and its effect.",
            "Wartezeit zwischen der Zustimmung zur Aufhebung einer rechtlichen Sperre und ihrer Wirkung.",
            "Délai entre l’approbation de la levée d’une conservation légale et son effet.",
        ),
    retention("TALE_LEGAL_HOLD_SINGLE_ADMIN_OK", Kind::Flag("true")).help(
        "Lets one administrator both request and approve a release.",
        "Lässt eine Verwaltungsperson eine Aufhebung sowohl beantragen als auch genehmigen.",
        "Permet au même administrateur de demander et d’approuver une levée.",
    ),
];
