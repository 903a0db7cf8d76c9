//! Logs, metrics, error reports and analytics.

use super::{EVERY_PROCESS, Reaction, Role, Section, Var, WITH_GATEWAY};
use crate::kind::Kind;

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Observability, roles, kind)
}

const REPORTERS: &[Role] = &[
    Role::Platform,
    Role::BackendApi,
    Role::BackendWorker,
    Role::All,
    Role::ObjectStore,
    Role::LlmGateway,
    Role::Sandbox,
];
const WEB: &[Role] = &[Role::Platform, Role::All];
const SITES: &[Role] = &[Role::Platform, Role::All, Role::Docs];
const RATE: Kind = Kind::Number { min: 0.0, max: 1.0 };

/// `TALE_LOG`.
pub const TALE_LOG: Var = v("TALE_LOG", EVERY_PROCESS, Kind::Text).value("info").help(
    "What is logged: a level, or levels by module such as tale=debug,warn.",
    "Was protokolliert wird: eine Stufe oder Stufen je Modul, etwa tale=debug,warn.",
    "Ce qui est journalisé : un niveau, ou des niveaux par module, par exemple tale=debug,warn.",
);

/// `TALE_LOG_FORMAT`.
pub const TALE_LOG_FORMAT: Var = v("TALE_LOG_FORMAT", EVERY_PROCESS, Kind::OneOf(&["text", "json"]))
    .derived("text on a terminal, else json", "text am Terminal, sonst json", "text sur un terminal, sinon json")
    .help("Form of the log lines.", "Form der Protokollzeilen.", "Forme des lignes de journal.");

/// `METRICS_BEARER_TOKEN`.
pub const METRICS_BEARER_TOKEN: Var = v(
    "METRICS_BEARER_TOKEN",
    &[Role::Platform, Role::BackendApi, Role::All, Role::LlmGateway],
    Kind::Secret { min: 1 },
)
.secret()
.help(
    "Token of the public metrics routes; without it they answer 401.",
    "Token der öffentlichen Metrik-Routen; ohne ihn antworten sie mit 401.",
    "Jeton des routes de métriques publiques ; sans lui, elles répondent 401.",
);

/// `SENTRY_DSN`.
pub const SENTRY_DSN: Var = v("SENTRY_DSN", REPORTERS, Kind::Url(&["https", "http"])).secret().help(
    "Address of a Sentry-compatible service to which errors of every process and of browsers are reported.",
    "Adresse eines Sentry-kompatiblen Dienstes, dem Fehler jedes Prozesses und der Browser gemeldet werden.",
    "Adresse d’un service compatible Sentry auquel sont signalées les erreurs de chaque processus et des navigateurs.",
);

/// `SENTRY_ENVIRONMENT`.
pub const SENTRY_ENVIRONMENT: Var = v("SENTRY_ENVIRONMENT", REPORTERS, Kind::Text).value("production").help(
    "Environment label of reported errors.",
    "Umgebungsbezeichnung gemeldeter Fehler.",
    "Libellé d’environnement des erreurs signalées.",
);

/// `BACKEND_SENTRY_TRACES_SAMPLE_RATE`.
pub const BACKEND_SENTRY_TRACES_SAMPLE_RATE: Var =
    v("BACKEND_SENTRY_TRACES_SAMPLE_RATE", WITH_GATEWAY, RATE).value("0").help(
        "Share of requests and jobs whose duration is sent.",
        "Anteil der Anfragen und Aufträge, deren Dauer gesendet wird.",
        "Part des requêtes et des tâches dont la durée est envoyée.",
    );

/// `SENTRY_TRACES_SAMPLE_RATE`.
pub const SENTRY_TRACES_SAMPLE_RATE: Var = v("SENTRY_TRACES_SAMPLE_RATE", WEB, RATE).value("0").help(
    "Share of page loads and changes of page in browsers whose duration is sent; needs SENTRY_DSN.",
    "Anteil der Seitenaufrufe und Seitenwechsel in Browsern, deren Dauer gesendet wird; braucht SENTRY_DSN.",
    "Part des chargements et changements de page des navigateurs dont la durée est envoyée ; nécessite SENTRY_DSN.",
);

/// `UMAMI_URL`.
pub const UMAMI_URL: Var = v("UMAMI_URL", SITES, Kind::SiteUrl).reaction(Reaction::Off).help(
    "Gateway of an Umami collector for aggregate analytics. All three UMAMI values are needed.",
    "Gateway eines Umami-Sammlers für zusammengefasste Statistik. Alle drei UMAMI-Werte sind nötig.",
    "Passerelle d’un collecteur Umami pour des statistiques agrégées. Les trois valeurs UMAMI sont nécessaires.",
);

/// `UMAMI_WEBSITE_ID`.
pub const UMAMI_WEBSITE_ID: Var = v("UMAMI_WEBSITE_ID", SITES, Kind::Uuid).reaction(Reaction::Off).help(
    "Id of the site at the collector.",
    "Kennung der Site beim Sammler.",
    "Identifiant du site auprès du collecteur.",
);

/// `UMAMI_PROXY_TOKEN`.
pub const UMAMI_PROXY_TOKEN: Var =
    v("UMAMI_PROXY_TOKEN", SITES, Kind::Token { min: 16, max: 256 }).secret().reaction(Reaction::Off).help(
        "Token for the collector's gateway; it never reaches a browser.",
        "Token für das Gateway des Sammlers; er gelangt nie zu einem Browser.",
        "Jeton pour la passerelle du collecteur ; il n’atteint jamais un navigateur.",
    );

pub(super) const OBSERVABILITY: &[Var] = &[
    TALE_LOG,
    TALE_LOG_FORMAT,
    v(
        "TALE_VERSION",
        &[Role::Platform, Role::BackendApi, Role::BackendWorker, Role::All, Role::Sandbox, Role::Cli],
        Kind::Word,
    )
    .accepted(
        "The program knows its own release and names that one.",
        "Das Programm kennt seine eigene Version und nennt diese.",
        "Le programme connaît sa propre version et nomme celle-ci.",
    )
    .help(
        "Release that health answers and logs name.",
        "Version, die Zustandsantworten und Protokolle nennen.",
        "Version que nomment les réponses d’état et les journaux.",
    ),
    METRICS_BEARER_TOKEN,
    SENTRY_DSN,
    SENTRY_ENVIRONMENT,
    SENTRY_TRACES_SAMPLE_RATE,
    BACKEND_SENTRY_TRACES_SAMPLE_RATE,
    UMAMI_URL,
    UMAMI_WEBSITE_ID,
    UMAMI_PROXY_TOKEN,
];
