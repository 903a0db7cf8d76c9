//! Sandboxes: limits of sessions and of their commands.

use super::sandbox::{SPAWNER, at_least, r, v};
use super::{BACKEND, Var};
use crate::kind::{Kind, Unit};

/// `SANDBOX_AGENT_PROFILE`.
pub const SANDBOX_AGENT_PROFILE: Var =
    r("SANDBOX_AGENT_PROFILE", BACKEND, Kind::OneOf(&["agent", "agent-light"])).value("agent").help(
        "Profile of new workspaces; those that are there keep theirs.",
        "Profil neuer Arbeitsbereiche; vorhandene behalten ihres.",
        "Profil des nouveaux espaces de travail ; ceux qui existent gardent le leur.",
    );

/// `SANDBOX_AGENT_CPUS`.
pub const SANDBOX_AGENT_CPUS: Var = r("SANDBOX_AGENT_CPUS", SPAWNER, Kind::Number { min: 0.1, max: f64::INFINITY })
    .value("2")
    .help("Processors of a session.", "Prozessoren einer Sitzung.", "Processeurs d’une session.");

/// `SANDBOX_AGENT_CPU_SHARES`.
pub const SANDBOX_AGENT_CPU_SHARES: Var =
    r("SANDBOX_AGENT_CPU_SHARES", SPAWNER, Kind::Integer { min: 2, max: 262_144, unit: Unit::Plain })
        .value("256")
        .help(
            "Processor weight of sessions beside the platform's 1024.",
            "Prozessorgewicht der Sitzungen neben den 1024 der Plattform.",
            "Poids processeur des sessions face aux 1024 de la plateforme.",
        );

/// `SANDBOX_AGENT_MEMORY`.
pub const SANDBOX_AGENT_MEMORY: Var = r("SANDBOX_AGENT_MEMORY", SPAWNER, Kind::Size { zero: false })
    .derived("4g, or 8g with an inner engine", "4g, mit innerer Engine 8g", "4g, ou 8g avec un moteur interne")
    .help(
        "Most memory of a session, its inner engine included.",
        "Größter Arbeitsspeicher einer Sitzung mitsamt innerer Engine.",
        "Mémoire maximale d’une session, moteur interne compris.",
    );

/// `SANDBOX_AGENT_USER`.
pub const SANDBOX_AGENT_USER: Var = r("SANDBOX_AGENT_USER", SPAWNER, Kind::UserGroup).value("10001:10001").help(
    "User and group of sessions.",
    "Benutzer und Gruppe der Sitzungen.",
    "Utilisateur et groupe des sessions.",
);

/// `SANDBOX_AGENT_PIDS`.
pub const SANDBOX_AGENT_PIDS: Var = r("SANDBOX_AGENT_PIDS", SPAWNER, at_least(64, Unit::Plain)).value("512").help(
    "Most processes of a session.",
    "Höchstzahl der Prozesse einer Sitzung.",
    "Nombre maximal de processus d’une session.",
);

/// `SANDBOX_AGENT_NOFILE_SOFT`.
pub const SANDBOX_AGENT_NOFILE_SOFT: Var =
    r("SANDBOX_AGENT_NOFILE_SOFT", SPAWNER, at_least(1, Unit::Plain)).value("4096").help(
        "Soft limit of open files of a session.",
        "Weiche Grenze offener Dateien einer Sitzung.",
        "Limite souple de fichiers ouverts d’une session.",
    );

/// `SANDBOX_AGENT_NOFILE_HARD`.
pub const SANDBOX_AGENT_NOFILE_HARD: Var =
    r("SANDBOX_AGENT_NOFILE_HARD", SPAWNER, at_least(1, Unit::Plain)).value("8192").help(
        "Hard limit of open files of a session.",
        "Harte Grenze offener Dateien einer Sitzung.",
        "Limite stricte de fichiers ouverts d’une session.",
    );

/// `SANDBOX_AGENT_FSIZE_BYTES`.
pub const SANDBOX_AGENT_FSIZE_BYTES: Var =
    r("SANDBOX_AGENT_FSIZE_BYTES", SPAWNER, at_least(1_048_576, Unit::Bytes)).value("536870912").help(
        "Largest file that a session may write.",
        "Größte Datei, die eine Sitzung schreiben darf.",
        "Plus grand fichier qu’une session peut écrire.",
    );

/// `SANDBOX_AGENT_TMP_SIZE`.
pub const SANDBOX_AGENT_TMP_SIZE: Var =
    r("SANDBOX_AGENT_TMP_SIZE", SPAWNER, Kind::Size { zero: false }).value("512m").help(
        "Temporary file system of a session.",
        "Temporäres Dateisystem einer Sitzung.",
        "Système de fichiers temporaire d’une session.",
    );

/// `SANDBOX_AGENT_SHM_SIZE`.
pub const SANDBOX_AGENT_SHM_SIZE: Var = r("SANDBOX_AGENT_SHM_SIZE", SPAWNER, Kind::Size { zero: false })
    .value("512m")
    .help("Shared memory of a session.", "Gemeinsamer Speicher einer Sitzung.", "Mémoire partagée d’une session.");

/// `SANDBOX_SESSION_CREATE_TIMEOUT_MS`.
pub const SANDBOX_SESSION_CREATE_TIMEOUT_MS: Var =
    r("SANDBOX_SESSION_CREATE_TIMEOUT_MS", SPAWNER, at_least(5_000, Unit::Millis)).value("180000").help(
        "How long the start of a session may take.",
        "Wie lange der Start einer Sitzung dauern darf.",
        "Durée maximale du démarrage d’une session.",
    );

/// `SANDBOX_SESSION_MAX_IDLE_MS`.
pub const SANDBOX_SESSION_MAX_IDLE_MS: Var =
    r("SANDBOX_SESSION_MAX_IDLE_MS", SPAWNER, at_least(60_000, Unit::Millis)).value("1800000").help(
        "After how long an idle session is stopped.",
        "Nach welcher Zeit eine untätige Sitzung beendet wird.",
        "Délai après lequel une session inactive est arrêtée.",
    );

/// `SANDBOX_SESSION_RELEASED_IDLE_MS`.
pub const SANDBOX_SESSION_RELEASED_IDLE_MS: Var =
    r("SANDBOX_SESSION_RELEASED_IDLE_MS", SPAWNER, at_least(60_000, Unit::Millis)).value("300000").help(
        "The same for a session that no work holds.",
        "Dasselbe für eine Sitzung, die keine Arbeit hält.",
        "De même pour une session qu’aucun travail ne retient.",
    );

/// `SANDBOX_SESSION_MAX_LIFETIME_MS`.
pub const SANDBOX_SESSION_MAX_LIFETIME_MS: Var =
    r("SANDBOX_SESSION_MAX_LIFETIME_MS", SPAWNER, at_least(60_000, Unit::Millis)).value("86400000").help(
        "Longest life of a session's container.",
        "Längste Lebensdauer des Containers einer Sitzung.",
        "Durée de vie maximale du conteneur d’une session.",
    );

/// `SANDBOX_SESSION_MAX_LINGER_MS`.
pub const SANDBOX_SESSION_MAX_LINGER_MS: Var =
    r("SANDBOX_SESSION_MAX_LINGER_MS", SPAWNER, at_least(60_000, Unit::Millis)).value("1800000").help(
        "How long a draining spawner keeps its sessions.",
        "Wie lange ein auslaufender Spawner seine Sitzungen behält.",
        "Durée pendant laquelle un spawner en drainage garde ses sessions.",
    );

/// `SANDBOX_SESSION_EXEC_DEFAULT_TIMEOUT_MS`.
pub const SANDBOX_SESSION_EXEC_DEFAULT_TIMEOUT_MS: Var =
    r("SANDBOX_SESSION_EXEC_DEFAULT_TIMEOUT_MS", SPAWNER, at_least(1_000, Unit::Millis)).value("600000").help(
        "Time limit of a command that names none.",
        "Zeitgrenze eines Befehls, der keine nennt.",
        "Délai d’une commande qui n’en indique pas.",
    );

/// `SANDBOX_SESSION_EXEC_MAX_TIMEOUT_MS`.
pub const SANDBOX_SESSION_EXEC_MAX_TIMEOUT_MS: Var =
    r("SANDBOX_SESSION_EXEC_MAX_TIMEOUT_MS", SPAWNER, at_least(1_000, Unit::Millis)).value("86400000").help(
        "Largest time limit that a command may ask for.",
        "Größte Zeitgrenze, die ein Befehl verlangen darf.",
        "Plus grand délai qu’une commande peut demander.",
    );

/// `SANDBOX_EXEC_STALL_MINUTES`.
pub const SANDBOX_EXEC_STALL_MINUTES: Var =
    r("SANDBOX_EXEC_STALL_MINUTES", SPAWNER, Kind::Integer { min: 0, max: 1_440, unit: Unit::Minutes })
        .value("45")
        .help(
            "After how long a silent, idle command is ended; 0 switches that off.",
            "Nach welcher Zeit ein stiller, untätiger Befehl beendet wird; 0 schaltet das ab.",
            "Délai après lequel une commande muette et inactive est arrêtée ; 0 désactive ce comportement.",
        );

/// `SANDBOX_STDOUT_MAX_BYTES`.
pub const SANDBOX_STDOUT_MAX_BYTES: Var =
    r("SANDBOX_STDOUT_MAX_BYTES", SPAWNER, at_least(1_024, Unit::Bytes)).value("5242880").help(
        "Standard output that a command's result keeps.",
        "Standardausgabe, die das Ergebnis eines Befehls behält.",
        "Sortie standard conservée dans le résultat d’une commande.",
    );

/// `SANDBOX_STDERR_MAX_BYTES`.
pub const SANDBOX_STDERR_MAX_BYTES: Var =
    r("SANDBOX_STDERR_MAX_BYTES", SPAWNER, at_least(1_024, Unit::Bytes)).value("5242880").help(
        "Standard error that a command's result keeps.",
        "Fehlerausgabe, die das Ergebnis eines Befehls behält.",
        "Sortie d’erreur conservée dans le résultat d’une commande.",
    );

/// `SANDBOX_HOST_SESSION_ROOT`.
pub const SANDBOX_HOST_SESSION_ROOT: Var =
    r("SANDBOX_HOST_SESSION_ROOT", SPAWNER, Kind::Directory).value("/var/lib/tale-sandbox/sessions").help(
        "Directory of session workspaces, the same on the host and in the spawner.",
        "Verzeichnis der Arbeitsbereiche, auf dem Host und im Spawner dasselbe.",
        "Répertoire des espaces de travail, identique sur l’hôte et dans le spawner.",
    );

/// `SANDBOX_PIP_CACHE_VOLUME_PREFIX`.
pub const SANDBOX_PIP_CACHE_VOLUME_PREFIX: Var =
    r("SANDBOX_PIP_CACHE_VOLUME_PREFIX", SPAWNER, Kind::Word).value("tale-sandbox-pip-cache").help(
        "Prefix of the volumes that cache Python packages.",
        "Präfix der Volumes mit Python-Paketen.",
        "Préfixe des volumes de cache des paquets Python.",
    );

/// `SANDBOX_NPM_CACHE_VOLUME_PREFIX`.
pub const SANDBOX_NPM_CACHE_VOLUME_PREFIX: Var =
    r("SANDBOX_NPM_CACHE_VOLUME_PREFIX", SPAWNER, Kind::Word).value("tale-sandbox-npm-cache").help(
        "Prefix of the volumes that cache npm packages.",
        "Präfix der Volumes mit npm-Paketen.",
        "Préfixe des volumes de cache des paquets npm.",
    );

/// `SANDBOX_BUN_CACHE_VOLUME_PREFIX`.
pub const SANDBOX_BUN_CACHE_VOLUME_PREFIX: Var =
    r("SANDBOX_BUN_CACHE_VOLUME_PREFIX", SPAWNER, Kind::Word).value("tale-sandbox-bun-cache").help(
        "Prefix of the volumes that cache bun packages.",
        "Präfix der Volumes mit bun-Paketen.",
        "Préfixe des volumes de cache des paquets bun.",
    );

pub(super) const SANDBOX: &[Var] = &[
    SANDBOX_AGENT_PROFILE,
    v("TALE_SANDBOX_CLAUDE_EFFORT", BACKEND, Kind::OneOf(&["low", "medium", "high", "max"])).help(
        "Reasoning effort of Claude Code turns.",
        "Denkaufwand der Claude-Code-Züge.",
        "Effort de raisonnement des tours Claude Code.",
    ),
    SANDBOX_AGENT_CPUS,
    SANDBOX_AGENT_CPU_SHARES,
    SANDBOX_AGENT_MEMORY,
    SANDBOX_AGENT_USER,
    SANDBOX_AGENT_PIDS,
    SANDBOX_AGENT_NOFILE_SOFT,
    SANDBOX_AGENT_NOFILE_HARD,
    SANDBOX_AGENT_FSIZE_BYTES,
    SANDBOX_AGENT_TMP_SIZE,
    SANDBOX_AGENT_SHM_SIZE,
    SANDBOX_SESSION_CREATE_TIMEOUT_MS,
    SANDBOX_SESSION_MAX_IDLE_MS,
    SANDBOX_SESSION_RELEASED_IDLE_MS,
    SANDBOX_SESSION_MAX_LIFETIME_MS,
    SANDBOX_SESSION_MAX_LINGER_MS,
    SANDBOX_SESSION_EXEC_DEFAULT_TIMEOUT_MS,
    SANDBOX_SESSION_EXEC_MAX_TIMEOUT_MS,
    SANDBOX_EXEC_STALL_MINUTES,
    SANDBOX_STDOUT_MAX_BYTES,
    SANDBOX_STDERR_MAX_BYTES,
    SANDBOX_HOST_SESSION_ROOT,
    SANDBOX_PIP_CACHE_VOLUME_PREFIX,
    SANDBOX_NPM_CACHE_VOLUME_PREFIX,
    SANDBOX_BUN_CACHE_VOLUME_PREFIX,
];
