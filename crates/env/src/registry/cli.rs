//! The command line, and obsolete names.

use super::{BACKEND, NOBODY, Part, Role, Section, Var};
use crate::kind::{Kind, Unit};

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Cli, roles, kind).not_yet(Part::Deploy)
}

const fn old(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Obsolete, roles, kind).obsolete()
}

const fn colour(name: &'static str) -> Var {
    Var::new(name, Section::Cli, CLI_ROLE, Kind::Text)
}

const CLI_ROLE: &[Role] = &[Role::Cli];
const IMAGES: &[Role] = &[Role::Cli, Role::BackendApi, Role::BackendWorker, Role::All];

const fn count(unit: Unit) -> Kind {
    Kind::Integer { min: 0, max: u64::MAX, unit }
}

/// `NO_COLOR`.
pub const NO_COLOR: Var = colour("NO_COLOR").help(
    "Any value turns colours of the command line off.",
    "Jeder Wert schaltet Farben der Kommandozeile ab.",
    "Toute valeur désactive les couleurs de la ligne de commande.",
);

/// `FORCE_COLOR`.
pub const FORCE_COLOR: Var = colour("FORCE_COLOR").help(
    "Any value but 0 turns colours on even where the output is no terminal. NO_COLOR has priority.",
    "Jeder Wert außer 0 schaltet Farben auch dort ein, wo die Ausgabe kein Terminal ist. NO_COLOR hat Vorrang.",
    "Toute valeur sauf 0 active les couleurs même si la sortie n’est pas un terminal. NO_COLOR est prioritaire.",
);

/// `DOCKER_HOST`.
pub const DOCKER_HOST: Var =
    Var::new("DOCKER_HOST", Section::Cli, &[Role::Sandbox], Kind::Text).value("unix:///var/run/docker.sock").help(
        "Container engine that the spawner talks to: unix:// or tcp://.",
        "Container-Engine, mit der der Spawner spricht: unix:// oder tcp://.",
        "Moteur de conteneurs auquel s’adresse le spawner : unix:// ou tcp://.",
    );

pub(super) const CLI: &[Var] = &[
    NO_COLOR,
    FORCE_COLOR,
    v("GHCR_REGISTRY", IMAGES, Kind::Word)
        .derived(
            "the project's public registry",
            "die öffentliche Registry des Projekts",
            "le registre public du projet",
        )
        .help(
            "Registry prefix of all release images.",
            "Registry-Präfix aller Release-Images.",
            "Préfixe de registre de toutes les images.",
        ),
    v("VERSION", CLI_ROLE, Kind::Word)
        .derived("the deployed release", "die eingesetzte Version", "la version déployée")
        .help(
            "Tag that pins all release images.",
            "Tag, der alle Release-Images festlegt.",
            "Tag qui fixe toutes les images.",
        ),
    v("PULL_POLICY", CLI_ROLE, Kind::OneOf(&["build", "always", "missing"])).value("build").help(
        "When the compose file pulls images.",
        "Wann die Compose-Datei Images lädt.",
        "Quand le fichier compose télécharge les images.",
    ),
    v("BGUTIL_PULL_POLICY", CLI_ROLE, Kind::Word).value("missing").help(
        "When the image of the video token service is pulled.",
        "Wann das Image des Video-Token-Dienstes geladen wird.",
        "Quand l’image du service de jetons vidéo est téléchargée.",
    ),
    v("COMPOSE_PROJECT_NAME", CLI_ROLE, Kind::Word)
        .derived("the directory's name", "der Name des Verzeichnisses", "le nom du répertoire")
        .help(
            "Prefix of containers and volumes in a compose stack.",
            "Präfix der Container und Volumes in einem Compose-Stack.",
            "Préfixe des conteneurs et volumes dans une pile compose.",
        ),
    DOCKER_HOST,
    v("HEALTH_CHECK_TIMEOUT", CLI_ROLE, count(Unit::Seconds)).value("300").help(
        "How long a deployment waits for the new colour to become healthy.",
        "Wie lange ein Deployment auf die neue Farbe wartet.",
        "Durée pendant laquelle un déploiement attend que la nouvelle couleur soit saine.",
    ),
    v("DRAIN_TIMEOUT", CLI_ROLE, count(Unit::Seconds)).value("30").help(
        "How long a deployment lets the old web tier drain.",
        "Wie lange ein Deployment die alte Weboberfläche auslaufen lässt.",
        "Durée pendant laquelle un déploiement laisse l’ancienne interface web se vider.",
    ),
    v("BACKUP_KEEP_COUNT", CLI_ROLE, count(Unit::Plain)).value("5").help(
        "Newest snapshots that are kept at any age.",
        "Neueste Sicherungen, die unabhängig vom Alter bleiben.",
        "Derniers instantanés conservés quel que soit leur âge.",
    ),
    v("BACKUP_KEEP_DAYS", CLI_ROLE, count(Unit::Days)).value("14").help(
        "Age below which a snapshot is kept at any count.",
        "Alter, unter dem eine Sicherung unabhängig von der Zahl bleibt.",
        "Âge au-dessous duquel un instantané est conservé quel que soit leur nombre.",
    ),
    v("INSTALL_DIR", CLI_ROLE, Kind::Directory)
        .derived("a directory on PATH", "ein Verzeichnis im PATH", "un répertoire du PATH")
        .help(
            "Where the installer puts the program.",
            "Wohin der Installer das Programm legt.",
            "Où l’installateur place le programme.",
        ),
    v("GITHUB_TOKEN", &[Role::Cli, Role::Session], Kind::Secret { min: 1 }).secret().help(
        "Authenticates the installer's look-up of releases; inside a session, git.",
        "Authentifiziert die Versionssuche des Installers; in einer Sitzung git.",
        "Authentifie la recherche de versions de l’installateur ; dans une session, git.",
    ),
    v("LOCALAPPDATA", CLI_ROLE, Kind::Text)
        .derived("set by Windows", "von Windows gesetzt", "définie par Windows")
        .help(
            "Where the installer for Windows puts the program.",
            "Wohin der Installer für Windows das Programm legt.",
            "Où l’installateur pour Windows place le programme.",
        ),
    v("TALE_DAEMON_HOME", CLI_ROLE, Kind::Directory).value("~/.tale-daemon").help(
        "Directory of the former `tale daemon`, to remove what is left of it.",
        "Verzeichnis des früheren `tale daemon`, um dessen Reste zu entfernen.",
        "Répertoire de l’ancien `tale daemon`, pour en supprimer les restes.",
    ),
    v("TALE_CONFIG_COOKIE", CLI_ROLE, Kind::Secret { min: 1 }).secret().help(
        "Session cookie of an operator for releases of configuration.",
        "Sitzungscookie eines Betreibers für Konfigurationsfreigaben.",
        "Cookie de session d’un opérateur pour les publications de configuration.",
    ),
    v("TALE_SOURCE_SSH_KEY", CLI_ROLE, Kind::Secret { min: 1 }).secret().help(
        "Read-only key for fetching private sources.",
        "Lesender Schlüssel zum Holen privater Quellen.",
        "Clé en lecture seule pour récupérer des sources privées.",
    ),
];

pub(super) const OBSOLETE: &[Var] = &[
    old("TALE_DAEMON_API_KEY", NOBODY, Kind::Secret { min: 1 }).secret().help(
        "Key of the former `tale daemon`.",
        "Schlüssel des früheren `tale daemon`.",
        "Clé de l’ancien `tale daemon`.",
    ),
    old("LLM_GATEWAY_ADMIN_USERNAME", BACKEND, Kind::Text).help(
        "Former name of SANDBOX_LLM_GATEWAY_ADMIN_USERNAME.",
        "Früherer Name von SANDBOX_LLM_GATEWAY_ADMIN_USERNAME.",
        "Ancien nom de SANDBOX_LLM_GATEWAY_ADMIN_USERNAME.",
    ),
    old("LLM_GATEWAY_ADMIN_PASSWORD", BACKEND, Kind::Secret { min: 1 }).secret().help(
        "Former name of SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.",
        "Früherer Name von SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.",
        "Ancien nom de SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.",
    ),
    old("LLM_GATEWAY_URL", BACKEND, Kind::Text).help(
        "Former name of SANDBOX_LLM_GATEWAY_URL.",
        "Früherer Name von SANDBOX_LLM_GATEWAY_URL.",
        "Ancien nom de SANDBOX_LLM_GATEWAY_URL.",
    ),
    old("TRUSTED_HEADERS_ENABLED", NOBODY, Kind::Text).help(
        "Switch of an older trusted-header mode for the whole deployment.",
        "Schalter eines älteren Modus vertrauenswürdiger Header für das ganze Deployment.",
        "Interrupteur d’un ancien mode d’en-têtes de confiance pour tout le déploiement.",
    ),
    old("CONTROLLER_TOKEN", NOBODY, Kind::Secret { min: 1 }).secret().help(
        "Secret of a retired restart helper.",
        "Geheimnis eines ausgemusterten Neustarthelfers.",
        "Secret d’un auxiliaire de redémarrage retiré.",
    ),
    old("CONTROLLER_URL", NOBODY, Kind::Text).help(
        "Address of a retired restart helper.",
        "Adresse eines ausgemusterten Neustarthelfers.",
        "Adresse d’un auxiliaire de redémarrage retiré.",
    ),
];
