//! Roles, ports, replicas, concurrency and draining.

use super::{BACKEND, DRAINING, EVERY_PROCESS, Part, Reaction, Role, Section, Var, WEB_AND_BACKEND, WORKER};
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
pub const ROLE: Var = v(
    "ROLE",
    EVERY_PROCESS,
    Kind::OneOf(&["platform", "backend-api", "backend-worker", "all", "object-store", "llm-gateway", "sandbox", "sandbox-egress", "api", "worker"]),
)
.derived("what TALE_ROLE says, else all", "was TALE_ROLE sagt, sonst all", "ce que dit TALE_ROLE, sinon all")
.help(
    "What `tale serve` without an argument runs: the web tier, the HTTP doors, the jobs, all of these in one process, an object store, the model gateway, the spawner of sandboxes, or their way out. api and worker are short for the two backend roles.",
    "Was `tale serve` ohne Argument ausführt: Weboberfläche, HTTP-Zugänge, Jobs, diese drei in einem Prozess, einen Objektspeicher, das Modell-Gateway, den Spawner der Sandboxes oder deren Ausgang. api und worker sind kurz für die beiden Backend-Rollen.",
    "Ce qu’exécute `tale serve` sans argument : l’interface web, les accès HTTP, les tâches, ces trois dans un seul processus, un stockage d’objets, la passerelle de modèles, le spawner des sandbox ou leur sortie réseau. api et worker abrègent les deux rôles du backend.",
);

/// `TALE_ROLE`.
pub const TALE_ROLE: Var = v("TALE_ROLE", WEB_AND_BACKEND, Kind::OneOf(&["api", "worker"])).help(
    "The same for containers whose role is chosen by this name; ROLE has priority.",
    "Dasselbe für Container, deren Rolle unter diesem Namen gewählt wird; ROLE hat Vorrang.",
    "De même pour les conteneurs dont le rôle est choisi sous ce nom ; ROLE est prioritaire.",
);

/// `PORT`.
pub const PORT: Var =
    v("PORT", &[Role::Platform, Role::BackendApi, Role::All, Role::ObjectStore], Kind::Port { zero: false })
        .derived(
            "3005; for the role platform 3000, for object-store 9000",
            "3005; für die Rolle platform 3000, für object-store 9000",
            "3005 ; pour le rôle platform, 3000, pour object-store, 9000",
        )
        .help(
            "Port that `tale serve` listens on; `--port` has priority.",
            "Port, auf dem `tale serve` lauscht; `--port` hat Vorrang.",
            "Port sur lequel `tale serve` écoute ; `--port` est prioritaire.",
        );

/// `TALE_WORKER_PORT`.
pub const TALE_WORKER_PORT: Var = v("TALE_WORKER_PORT", &[Role::BackendWorker], Kind::Port { zero: false }).help(
    "Port on which a process of the role backend-worker answers `/ping`, `/ready` and `/metrics`; `--port` has priority. Without it a worker listens on nothing.",
    "Port, auf dem ein Prozess der Rolle backend-worker `/ping`, `/ready` und `/metrics` beantwortet; `--port` hat Vorrang. Ohne ihn lauscht ein Worker nirgends.",
    "Port sur lequel un processus du rôle backend-worker répond à `/ping`, `/ready` et `/metrics` ; `--port` est prioritaire. Sans lui, un worker n’écoute nulle part.",
);

/// `TALE_BACKEND_URL`.
pub const TALE_BACKEND_URL: Var =
    v("TALE_BACKEND_URL", &[Role::Platform], Kind::Url(&["http", "https"])).value("http://backend-api:3005").help(
        "Where the web tier asks the backend for the status report.",
        "Wo die Weboberfläche das Backend nach dem Statusbericht fragt.",
        "Adresse à laquelle l’interface web demande au backend le rapport d’état.",
    );

/// `BACKEND_UPSTREAM`.
pub const BACKEND_UPSTREAM: Var = v("BACKEND_UPSTREAM", &[Role::Proxy], Kind::HostPort).value("backend-api:3005").help(
    "Where the proxy sends application routes.",
    "Wohin der Proxy die Routen der Anwendung leitet.",
    "Destination vers laquelle le proxy envoie les routes de l’application.",
);

/// `PLATFORM_UPSTREAM`.
pub const PLATFORM_UPSTREAM: Var = v("PLATFORM_UPSTREAM", &[Role::Proxy], Kind::HostPort).value("platform:3000").help(
    "Where the proxy sends everything else: pages and their files. With the role all it is the same as BACKEND_UPSTREAM.",
    "Wohin der Proxy alles Übrige leitet: Seiten und ihre Dateien. Mit der Rolle all dasselbe wie BACKEND_UPSTREAM.",
    "Destination vers laquelle le proxy envoie tout le reste : les pages et leurs fichiers. Avec le rôle all, identique à BACKEND_UPSTREAM.",
);

/// `PROXY_HTTPS_PORT`.
pub const PROXY_HTTPS_PORT: Var = v("PROXY_HTTPS_PORT", &[Role::Proxy], Kind::Port { zero: false }).value("443").help(
    "Port of the machine that deploy/compose.yml publishes for https. It must be the one in SITE_URL.",
    "Port der Maschine, den deploy/compose.yml für https veröffentlicht. Er muss der in SITE_URL sein.",
    "Port de la machine que deploy/compose.yml publie pour https. Ce doit être celui de SITE_URL.",
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
    v("SHUTDOWN_DRAIN_MS", DRAINING, Kind::Integer { min: 1_000, max: 600_000, unit: Unit::Millis })
        .derived(
            "15000; for the roles backend-worker and llm-gateway 90000",
            "15000; für die Rollen backend-worker und llm-gateway 90000",
            "15000 ; pour les rôles backend-worker et llm-gateway, 90000",
        )
        .help(
            "How long a stopping process waits for running work. A container's grace period must be at least 15 s longer.",
            "Wie lange ein endender Prozess auf laufende Arbeit wartet. Die Frist des Containers muss mindestens 15 s länger sein.",
            "Durée pendant laquelle un processus qui s’arrête attend le travail en cours. Le délai de grâce du conteneur doit être plus long d’au moins 15 s.",
        );

pub(super) const TOPOLOGY: &[Var] = &[
    ROLE,
    TALE_ROLE,
    PORT,
    TALE_WORKER_PORT,
    TALE_BACKEND_URL,
    BACKEND_UPSTREAM,
    PLATFORM_UPSTREAM,
    v("PROXY_HTTP_PORT", &[Role::Proxy], Kind::Port { zero: false }).value("80").help(
        "Port of the machine that deploy/compose.yml publishes for plain http: redirects and certificate challenges, or everything with TLS_MODE=external.",
        "Port der Maschine, den deploy/compose.yml für unverschlüsseltes http veröffentlicht: Weiterleitungen und Zertifikatsprüfungen, mit TLS_MODE=external alles.",
        "Port de la machine que deploy/compose.yml publie pour http simple : redirections et défis de certificat, ou tout avec TLS_MODE=external.",
    ),
    PROXY_HTTPS_PORT,
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
    v("NODE_EXTRA_CA_CERTS", &[Role::Sandbox], Kind::File).not_yet(Part::Sandboxes).help(
        "Further certificate roots of the spawner, normally those of the cluster.",
        "Weitere Wurzelzertifikate des Spawners, normalerweise die des Clusters.",
        "Autres racines de certificats du spawner, normalement celles du cluster.",
    ),
];
