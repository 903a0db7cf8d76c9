//! What `tale dev` and the program on one machine read.

use super::{API, KEEPERS, Role, Section, Var, WEB_AND_BACKEND};
use crate::kind::Kind;

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Development, roles, kind)
}

/// `TALE_DATA_DIR`.
pub const TALE_DATA_DIR: Var = v("TALE_DATA_DIR", KEEPERS, Kind::Directory)
    .derived(
        "/var/lib/tale; with `tale dev` ~/.local/share/tale",
        "/var/lib/tale; mit `tale dev` ~/.local/share/tale",
        "/var/lib/tale ; avec `tale dev`, ~/.local/share/tale",
    )
    .help(
        "Where the keyword index and files in work are kept, with the role object-store the objects; with `tale dev` also its database, files and secrets.",
        "Wo der Stichwortindex und Dateien in Arbeit liegen, mit der Rolle object-store die Objekte; mit `tale dev` auch Datenbank, Dateien und Geheimnisse.",
        "Où sont gardés l’index de mots-clés et les fichiers en cours, avec le rôle object-store les objets ; avec `tale dev`, aussi sa base, ses fichiers et ses secrets.",
    );

/// `TALE_EMBEDDED_POSTGRES_DIR`.
pub const TALE_EMBEDDED_POSTGRES_DIR: Var = v("TALE_EMBEDDED_POSTGRES_DIR", &[Role::All], Kind::Directory)
    .derived(
        "beside the program, else a system Postgres",
        "neben dem Programm, sonst ein Postgres des Systems",
        "à côté du programme, sinon un Postgres du système",
    )
    .help(
        "Directory with bin/postgres: the Postgres with pgvector that `tale dev` starts.",
        "Verzeichnis mit bin/postgres: das Postgres mit pgvector, das `tale dev` startet.",
        "Répertoire contenant bin/postgres : le Postgres avec pgvector que `tale dev` démarre.",
    );

/// `TALE_WEB_DIR`.
pub const TALE_WEB_DIR: Var = v("TALE_WEB_DIR", WEB_AND_BACKEND, Kind::Directory)
    .derived("the web app inside the program", "die Web-App im Programm", "l’application web incluse dans le programme")
    .help(
        "Directory with index.html from which the web app is served instead, for work on it.",
        "Verzeichnis mit index.html, aus dem die Web-App stattdessen kommt, für die Arbeit an ihr.",
        "Répertoire contenant index.html d’où l’application web est servie à la place, pour y travailler.",
    );

/// `TALE_SETUP_TOKEN`.
pub const TALE_SETUP_TOKEN: Var = v("TALE_SETUP_TOKEN", API, Kind::Secret { min: 8 })
    .secret()
    .derived(
        "a fresh one per start, printed to the log",
        "bei jedem Start ein neuer, im Log ausgegeben",
        "un nouveau à chaque démarrage, affiché dans le journal",
    )
    .help(
        "Needed to create the first account from another machine than this one.",
        "Wird gebraucht, um das erste Konto von einem anderen Rechner aus anzulegen.",
        "Nécessaire pour créer le premier compte depuis une autre machine que celle-ci.",
    );

/// `XDG_DATA_HOME`.
pub const XDG_DATA_HOME: Var = v("XDG_DATA_HOME", &[Role::Cli], Kind::Directory).help(
    "Base of the data directory of `tale dev` when TALE_DATA_DIR is unset: its folder `tale`.",
    "Basis des Datenverzeichnisses von `tale dev`, wenn TALE_DATA_DIR nicht gesetzt ist: der Ordner `tale` darin.",
    "Base du répertoire de données de `tale dev` si TALE_DATA_DIR n’est pas définie : son dossier `tale`.",
);

/// `HOME`.
pub const HOME: Var = v("HOME", &[Role::Cli, Role::Session], Kind::Directory)
    .derived("set by the system", "vom System gesetzt", "définie par le système")
    .help(
        "The same with .local/share/tale below the home directory. Inside a sandbox session it is the session's own.",
        "Dasselbe mit .local/share/tale im Heimatverzeichnis. In einer Sandbox-Sitzung ist es deren eigenes.",
        "De même avec .local/share/tale sous le répertoire personnel. Dans une session sandbox, c’est celui de la session.",
    );

pub(super) const DEVELOPMENT: &[Var] =
    &[TALE_DATA_DIR, TALE_EMBEDDED_POSTGRES_DIR, TALE_WEB_DIR, TALE_SETUP_TOKEN, XDG_DATA_HOME, HOME];
