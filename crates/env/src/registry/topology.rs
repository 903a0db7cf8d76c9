//! Roles, ports, replicas, concurrency and draining.

use super::{BACKEND, Part, Reaction, Role, Section, Var, WORKER};
use crate::kind::{Kind, Unit};

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Topology, roles, kind)
}

const fn replicas(name: &'static str) -> Var {
    v(name, &[Role::Cli], Kind::Integer { min: 1, max: 16, unit: Unit::Plain })
        .value("1")
        .reaction(Reaction::Clamp)
        .not_yet(Part::Deploy)
}

const SLOTS: Kind = Kind::Integer { min: 1, max: 256, unit: Unit::Plain };

/// `ROLE`.
pub const ROLE: Var = v("ROLE", BACKEND, Kind::OneOf(&["all"])).value("all").help(
    "What `tale serve` without an argument runs. This release runs `all`: web tier, doors and jobs in one process.",
    "Was `tale serve` ohne Argument ausführt. Diese Version führt `all` aus: Weboberfläche, HTTP-Zugänge und Jobs in einem Prozess.",
    "Ce qu’exécute `tale serve` sans argument. Cette version exécute `all` : interface web, accès HTTP et tâches dans un seul processus.",
);

/// `PORT`.
pub const PORT: Var =
    v("PORT", &[Role::Platform, Role::BackendApi, Role::All], Kind::Port { zero: false }).value("3005").help(
        "Port that `tale serve` listens on; `--port` has priority.",
        "Port, auf dem `tale serve` lauscht; `--port` hat Vorrang.",
        "Port sur lequel `tale serve` écoute ; `--port` est prioritaire.",
    );

/// `WORKER_CONCURRENCY`.
pub const WORKER_CONCURRENCY: Var =
    v("WORKER_CONCURRENCY", WORKER, Kind::Integer { min: 1, max: 64, unit: Unit::Plain }).value("5").help(
        "Background jobs that one process runs at the same time. Raise KNOWLEDGE_DB_POOL_MAX with it.",
        "Hintergrundjobs, die ein Prozess gleichzeitig ausführt. Erhöhe KNOWLEDGE_DB_POOL_MAX mit.",
        "Tâches de fond qu’un processus exécute en même temps. Augmente aussi KNOWLEDGE_DB_POOL_MAX.",
    );

/// `SHUTDOWN_DRAIN_MS`.
pub const SHUTDOWN_DRAIN_MS: Var =
    v("SHUTDOWN_DRAIN_MS", BACKEND, Kind::Integer { min: 1_000, max: 600_000, unit: Unit::Millis })
        .value("15000")
        .help(
            "How long a stopping process waits for running work. A container's grace period must be at least 15 s longer.",
            "Wie lange ein endender Prozess auf laufende Arbeit wartet. Die Frist des Containers muss mindestens 15 s länger sein.",
            "Durée pendant laquelle un processus qui s’arrête attend le travail en cours. Le délai de grâce du conteneur doit être plus long d’au moins 15 s.",
        );

pub(super) const TOPOLOGY: &[Var] = &[
    ROLE,
    PORT,
    WORKER_CONCURRENCY,
    SHUTDOWN_DRAIN_MS,
    v(
        "SSL_CERT_FILE",
        &[Role::BackendApi, Role::BackendWorker, Role::All, Role::LlmGateway, Role::Sandbox],
        Kind::File,
    )
    .derived("the system's roots", "die Wurzelzertifikate des Systems", "les racines du système")
    .help(
        "PEM file with the roots trusted for outgoing HTTPS (model providers, object store). It replaces those of the system.",
        "PEM-Datei mit den Wurzelzertifikaten für ausgehendes HTTPS (Modellanbieter, Objektspeicher). Sie ersetzt die des Systems.",
        "Fichier PEM avec les racines de confiance pour le HTTPS sortant (fournisseurs de modèles, stockage d’objets). Il remplace celles du système.",
    ),
    v("HTTP_PROXY", &[Role::BackendApi, Role::BackendWorker, Role::All, Role::Session], Kind::Url(&["http", "https"])).secret().help(
        "Proxy for requests to an object store over plain http (lower-case twin too). Requests to model providers never use one.",
        "Proxy für Anfragen an einen Objektspeicher über unverschlüsseltes http (auch klein geschrieben). Anfragen an Modellanbieter benutzen nie einen.",
        "Proxy pour les requêtes à un stockage d’objets en http simple (aussi en minuscules). Les requêtes aux fournisseurs de modèles n’en utilisent jamais.",
    ),
    v("HTTPS_PROXY", &[Role::BackendApi, Role::BackendWorker, Role::All, Role::Session], Kind::Url(&["http", "https"])).secret().help(
        "The same for an object store over https (lower-case twin too).",
        "Dasselbe für einen Objektspeicher über https (auch klein geschrieben).",
        "De même pour un stockage d’objets en https (aussi en minuscules).",
    ),
    v("NO_PROXY", &[Role::BackendApi, Role::BackendWorker, Role::All, Role::Session], Kind::Text).help(
        "Hosts that are reached without that proxy, separated by commas (lower-case twin too).",
        "Hosts, die ohne diesen Proxy erreicht werden, durch Kommas getrennt (auch klein geschrieben).",
        "Hôtes joints sans ce proxy, séparés par des virgules (aussi en minuscules).",
    ),
    v(
        "TALE_ROLE",
        &[Role::Platform, Role::BackendApi, Role::BackendWorker, Role::All],
        Kind::OneOf(&["api", "worker"]),
    )
    .not_yet(Part::SeparateRoles)
    .help(
        "Process that the shared image starts; unset means the web tier.",
        "Prozess, den das gemeinsame Image startet; nicht gesetzt heißt Weboberfläche.",
        "Processus que démarre l’image commune ; non définie signifie l’interface web.",
    ),
    replicas("TALE_PLATFORM_REPLICAS").help(
        "Replicas of the web tier in one colour of a deployment.",
        "Replikate der Weboberfläche in einer Farbe eines Deployments.",
        "Réplicas de l’interface web dans une couleur d’un déploiement.",
    ),
    replicas("TALE_BACKEND_API_REPLICAS").help(
        "Replicas of the HTTP doors in one colour of a deployment.",
        "Replikate der HTTP-Zugänge in einer Farbe eines Deployments.",
        "Réplicas des accès HTTP dans une couleur d’un déploiement.",
    ),
    replicas("TALE_BACKEND_WORKER_REPLICAS").help(
        "Replicas of the job runner in one colour of a deployment.",
        "Replikate der Jobausführung in einer Farbe eines Deployments.",
        "Réplicas de l’exécuteur de tâches dans une couleur d’un déploiement.",
    ),
    v("AGENT_START_SLOTS", WORKER, SLOTS)
        .derived("WORKER_CONCURRENCY, at least 8", "WORKER_CONCURRENCY, mindestens 8", "WORKER_CONCURRENCY, au moins 8")
        .not_yet(Part::Agents)
        .help(
            "Agent turns that one process starts at the same time.",
            "Agentenzüge, die ein Prozess gleichzeitig startet.",
            "Tours d’agent qu’un processus démarre en même temps.",
        ),
    v("AGENT_DRIVE_SLOTS", WORKER, SLOTS)
        .derived("WORKER_CONCURRENCY, at least 16", "WORKER_CONCURRENCY, mindestens 16", "WORKER_CONCURRENCY, au moins 16")
        .not_yet(Part::Agents)
        .help(
            "Live agent turns that one process drives at the same time.",
            "Laufende Agentenzüge, die ein Prozess gleichzeitig bedient.",
            "Tours d’agent en cours qu’un processus suit en même temps.",
        ),
    v("AUTOMATION_ORG_CONCURRENCY", WORKER, Kind::Integer { min: 0, max: 256, unit: Unit::Plain })
        .value("8")
        .not_yet(Part::Automations)
        .help(
            "Automation steps of one organization that run at the same time; 0 means no limit.",
            "Automatisierungsschritte einer Organisation, die gleichzeitig laufen; 0 heißt ohne Grenze.",
            "Étapes d’automatisation d’une organisation exécutées en même temps ; 0 signifie sans limite.",
        ),
    v("AUTOMATION_RUNNER_PROCESSES", BACKEND, Kind::Integer { min: 1, max: 16, unit: Unit::Plain })
        .not_yet(Part::Automations)
        .help(
            "Evaluators of automation code in one process.",
            "Auswerter von Automatisierungscode in einem Prozess.",
            "Évaluateurs de code d’automatisation dans un processus.",
        ),
    v("TALE_BACKEND_URL", &[Role::Platform], Kind::Url(&["http", "https"]))
        .value("http://backend-api:3005")
        .not_yet(Part::SeparateRoles)
        .help(
            "Where the web tier reaches the backend.",
            "Wo die Weboberfläche das Backend erreicht.",
            "Adresse à laquelle l’interface web joint le backend.",
        ),
    v("BACKEND_UPSTREAM", &[Role::Proxy], Kind::HostPort).value("backend-api:3005").not_yet(Part::Images).help(
        "Where the proxy sends application routes.",
        "Wohin der Proxy die Routen der Anwendung leitet.",
        "Destination vers laquelle le proxy envoie les routes de l’application.",
    ),
    v("NODE_EXTRA_CA_CERTS", &[Role::Sandbox], Kind::File).not_yet(Part::Sandboxes).help(
        "Further certificate roots of the spawner, normally those of the cluster.",
        "Weitere Wurzelzertifikate des Spawners, normalerweise die des Clusters.",
        "Autres racines de certificats du spawner, normalement celles du cluster.",
    ),
];
