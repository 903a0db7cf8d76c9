//! Sandboxes: how the backend and the spawner find each other, images, admission, build caches.

use super::{BACKEND, Part, Reaction, Role, Section, Var};
use crate::kind::{Kind, Unit};

pub(super) const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Sandbox, roles, kind).not_yet(Part::Sandboxes)
}

/// One that this release reads.
pub(super) const fn r(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Sandbox, roles, kind)
}

pub(super) const SPAWNER: &[Role] = &[Role::Sandbox];
const WITH_CLI: &[Role] = &[Role::Sandbox, Role::Cli];
const HTTP: Kind = Kind::Url(&["http", "https"]);

pub(super) const fn at_least(min: u64, unit: Unit) -> Kind {
    Kind::Integer { min, max: u64::MAX, unit }
}

/// `SANDBOX_URL`.
pub const SANDBOX_URL: Var = r("SANDBOX_URL", BACKEND, HTTP).value("http://localhost:8003").help(
    "Where the backend reaches the spawner. Sandboxes are switched on by SANDBOX_TOKEN.",
    "Wo das Backend den Spawner erreicht. Eingeschaltet werden Sandboxes durch SANDBOX_TOKEN.",
    "Adresse à laquelle le backend joint le spawner. Les sandbox sont activées par SANDBOX_TOKEN.",
);

/// `SANDBOX_HTTP_API_BASE_URL`.
pub const SANDBOX_HTTP_API_BASE_URL: Var =
    r("SANDBOX_HTTP_API_BASE_URL", SPAWNER, HTTP).value("http://backend-api:3005").help(
        "Where a session reaches the backend.",
        "Wo eine Sitzung das Backend erreicht.",
        "Adresse à laquelle une session joint le backend.",
    );

/// `EXTERNAL_AGENT_GATEWAY_URL`.
pub const EXTERNAL_AGENT_GATEWAY_URL: Var =
    r("EXTERNAL_AGENT_GATEWAY_URL", SPAWNER, HTTP).value("http://sandbox-llm-gateway:8080").help(
        "Where a session reaches the model gateway.",
        "Wo eine Sitzung das Modell-Gateway erreicht.",
        "Adresse à laquelle une session joint la passerelle de modèles.",
    );

/// `SANDBOX_PORT`.
pub const SANDBOX_PORT: Var = r("SANDBOX_PORT", SPAWNER, Kind::Port { zero: false }).value("8003").help(
    "Port of the spawner.",
    "Port des Spawners.",
    "Port d’écoute du spawner.",
);

/// `SANDBOX_BACKEND`.
pub const SANDBOX_BACKEND: Var =
    r("SANDBOX_BACKEND", SPAWNER, Kind::OneOf(&["docker", "kubernetes"])).value("docker").help(
        "What creates the containers of sessions.",
        "Was die Container der Sitzungen anlegt.",
        "Ce qui crée les conteneurs des sessions.",
    );

/// `TALE_PLATFORM_SHARED_CONFIG_DIR`.
pub const TALE_PLATFORM_SHARED_CONFIG_DIR: Var =
    r("TALE_PLATFORM_SHARED_CONFIG_DIR", SPAWNER, Kind::Text).value("/app/platform-config").help(
        "Directory of deployment.yml or deployment.json. What its section sandboxRuntime says goes before SANDBOX_RUNTIME.",
        "Verzeichnis von deployment.yml oder deployment.json. Was deren Abschnitt sandboxRuntime sagt, geht SANDBOX_RUNTIME vor.",
        "Répertoire de deployment.yml ou deployment.json. Ce que dit sa section sandboxRuntime l’emporte sur SANDBOX_RUNTIME.",
    );

/// `SANDBOX_RUNTIME`.
pub const SANDBOX_RUNTIME: Var =
    r("SANDBOX_RUNTIME", SPAWNER, Kind::OneOf(&["runc", "gvisor", "runsc", "sysbox", "kata"])).value("runc").help(
        "Isolation of session containers.",
        "Isolation der Sitzungscontainer.",
        "Isolation des conteneurs de session.",
    );

/// `SANDBOX_RUNTIME_IMAGE`.
pub const SANDBOX_RUNTIME_IMAGE: Var =
    r("SANDBOX_RUNTIME_IMAGE", SPAWNER, Kind::Word).value("tale-sandbox-runtime:latest").help(
        "Image of every session container.",
        "Image jedes Sitzungscontainers.",
        "Image de chaque conteneur de session.",
    );

/// `SANDBOX_MAX_SESSIONS`.
pub const SANDBOX_MAX_SESSIONS: Var = r("SANDBOX_MAX_SESSIONS", SPAWNER, at_least(1, Unit::Plain))
        .derived("by memory and processors of the host", "nach Speicher und Prozessoren des Hosts", "selon la mémoire et les processeurs de l’hôte")
        .help(
            "Sessions of the whole deployment that run or start at the same time. A fixed value switches the memory check off.",
            "Sitzungen des ganzen Deployments, die gleichzeitig laufen oder starten. Ein fester Wert schaltet die Speicherprüfung ab.",
            "Sessions de tout le déploiement actives ou en démarrage en même temps. Une valeur fixe désactive le contrôle de la mémoire.",
        );

/// `SANDBOX_MIN_FREE_MEMORY`.
pub const SANDBOX_MIN_FREE_MEMORY: Var = r("SANDBOX_MIN_FREE_MEMORY", SPAWNER, Kind::Size { zero: false })
    .derived(
        "a tenth of the host's, at least 1g",
        "ein Zehntel des Hosts, mindestens 1g",
        "un dixième de celle de l’hôte, au moins 1g",
    )
    .help(
        "Memory that a starting session must leave free.",
        "Arbeitsspeicher, den eine startende Sitzung frei lassen muss.",
        "Mémoire qu’une session qui démarre doit laisser libre.",
    );

/// `SANDBOX_CPU_PRESSURE_PERCENT`.
pub const SANDBOX_CPU_PRESSURE_PERCENT: Var = r(
    "SANDBOX_CPU_PRESSURE_PERCENT",
    SPAWNER,
    Kind::Integer { min: 0, max: 100, unit: Unit::Percent },
)
.value("60")
.help(
    "Processor pressure from which sessions start one by one; 0 switches that off.",
    "Prozessordruck, ab dem Sitzungen einzeln starten; 0 schaltet das ab.",
    "Pression du processeur à partir de laquelle les sessions démarrent une à une ; 0 désactive ce comportement.",
);

/// `SANDBOX_MIN_FREE_DISK`.
pub const SANDBOX_MIN_FREE_DISK: Var = r("SANDBOX_MIN_FREE_DISK", SPAWNER, Kind::Size { zero: true })
    .derived(
        "a twentieth of each disk, 2g to 20g",
        "ein Zwanzigstel jeder Platte, 2g bis 20g",
        "un vingtième de chaque disque, de 2g à 20g",
    )
    .help(
        "Free disk space that new sessions need.",
        "Freier Plattenplatz, den neue Sitzungen brauchen.",
        "Espace disque libre nécessaire aux nouvelles sessions.",
    );

/// `SANDBOX_CRITICAL_FREE_DISK`.
pub const SANDBOX_CRITICAL_FREE_DISK: Var = r("SANDBOX_CRITICAL_FREE_DISK", SPAWNER, Kind::Size { zero: true })
    .derived(
        "a quarter of SANDBOX_MIN_FREE_DISK",
        "ein Viertel von SANDBOX_MIN_FREE_DISK",
        "un quart de SANDBOX_MIN_FREE_DISK",
    )
    .help(
        "Free disk space below which idle sessions with an inner engine are stopped at once.",
        "Freier Plattenplatz, unter dem untätige Sitzungen mit innerer Engine sofort beendet werden.",
        "Espace disque libre au-dessous duquel les sessions inactives avec moteur interne sont arrêtées aussitôt.",
    );

/// `SANDBOX_DOCKER_DATA_ROOT`.
pub const SANDBOX_DOCKER_DATA_ROOT: Var = r("SANDBOX_DOCKER_DATA_ROOT", WITH_CLI, Kind::Directory).help(
    "Docker's data directory on the host, for the check of free disk space.",
    "Dockers Datenverzeichnis auf dem Host, für die Prüfung des freien Platzes.",
    "Répertoire de données de Docker sur l’hôte, pour le contrôle de l’espace libre.",
);

/// `SANDBOX_DOCKER_DATA_PATH`.
pub const SANDBOX_DOCKER_DATA_PATH: Var =
    r("SANDBOX_DOCKER_DATA_PATH", SPAWNER, Kind::Directory).value("/var/lib/tale-sandbox/docker-data").help(
        "Where that directory lies inside the spawner.",
        "Wo dieses Verzeichnis im Spawner liegt.",
        "Emplacement de ce répertoire dans le spawner.",
    );

/// `SANDBOX_PACKAGE_CACHE_RETENTION`.
pub const SANDBOX_PACKAGE_CACHE_RETENTION: Var =
    r("SANDBOX_PACKAGE_CACHE_RETENTION", SPAWNER, Kind::Age).value("14d").help(
        "How long an organization's package caches outlive their last use.",
        "Wie lange die Paket-Caches einer Organisation ihre letzte Nutzung überdauern.",
        "Durée pendant laquelle les caches de paquets survivent à leur dernière utilisation.",
    );

/// `SANDBOX_EGRESS_NETWORK`.
pub const SANDBOX_EGRESS_NETWORK: Var =
    r("SANDBOX_EGRESS_NETWORK", SPAWNER, Kind::Word).value("tale-sandbox-net").help(
        "Isolated network that session containers join.",
        "Isoliertes Netz, dem Sitzungscontainer beitreten.",
        "Réseau isolé que rejoignent les conteneurs de session.",
    );

/// `SANDBOX_EGRESS_PROXY`.
pub const SANDBOX_EGRESS_PROXY: Var =
    r("SANDBOX_EGRESS_PROXY", SPAWNER, HTTP).value("http://sandbox-egress:3128").help(
        "Proxy that sessions get for HTTP and HTTPS.",
        "Proxy, den Sitzungen für HTTP und HTTPS erhalten.",
        "Proxy que les sessions reçoivent pour HTTP et HTTPS.",
    );

/// `SANDBOX_SKIP_IMAGE_WARMUP`.
pub const SANDBOX_SKIP_IMAGE_WARMUP: Var = r("SANDBOX_SKIP_IMAGE_WARMUP", SPAWNER, Kind::Flag("1")).help(
    "Skips pulling the session image at the start.",
    "Überspringt das Laden des Sitzungs-Images beim Start.",
    "Ignore le téléchargement de l’image de session au démarrage.",
);

/// `SANDBOX_MAX_REQUEST_BODY_BYTES`.
pub const SANDBOX_MAX_REQUEST_BODY_BYTES: Var =
    r("SANDBOX_MAX_REQUEST_BODY_BYTES", SPAWNER, Kind::Integer { min: 4_096, max: 8_388_608, unit: Unit::Bytes })
        .value("8388608")
        .reaction(Reaction::Clamp)
        .help(
            "Largest request that the spawner accepts.",
            "Größte Anfrage, die der Spawner annimmt.",
            "Plus grande requête que le spawner accepte.",
        );

pub(super) const SANDBOX: &[Var] = &[
    SANDBOX_URL,
    SANDBOX_HTTP_API_BASE_URL,
    EXTERNAL_AGENT_GATEWAY_URL,
    SANDBOX_PORT,
    SANDBOX_BACKEND,
    SANDBOX_RUNTIME,
    v("SANDBOX_RUNTIME_CLASS", SPAWNER, Kind::Word)
        .derived("by SANDBOX_RUNTIME", "nach SANDBOX_RUNTIME", "selon SANDBOX_RUNTIME")
        .help(
            "Another name of the RuntimeClass of session Pods.",
            "Anderer Name der RuntimeClass der Sitzungs-Pods.",
            "Autre nom de la RuntimeClass des Pods de session.",
        ),
    SANDBOX_RUNTIME_IMAGE,
    v("SANDBOX_SPAWNER_IMAGE", SPAWNER, Kind::Word).help(
        "The spawner's own image, for helper containers of an older layout.",
        "Das eigene Image des Spawners, für Hilfscontainer eines älteren Aufbaus.",
        "Image du spawner lui-même, pour les conteneurs auxiliaires d’une disposition antérieure.",
    ),
    v("SANDBOX_DOCKER_IN_CONTAINER", SPAWNER, Kind::Bool)
        .derived("on for sysbox and kata", "an bei sysbox und kata", "activé pour sysbox et kata")
        .help(
            "Whether sessions may run a container engine inside.",
            "Ob Sitzungen innen eine Container-Engine betreiben dürfen.",
            "Indique si les sessions peuvent exécuter un moteur de conteneurs interne.",
        ),
    v("SANDBOX_DOCKER_WORKLOADS", SPAWNER, Kind::SomeOf(&["project", "workflow"])).value("project,workflow").help(
        "Workloads that may use the inner engine.",
        "Arbeitslasten, die die innere Engine benutzen dürfen.",
        "Charges qui peuvent utiliser le moteur interne.",
    ),
    v("SANDBOX_DOCKER_BUILD_CACHE", SPAWNER, Kind::Bool)
        .derived(
            "like SANDBOX_DOCKER_IN_CONTAINER",
            "wie SANDBOX_DOCKER_IN_CONTAINER",
            "comme SANDBOX_DOCKER_IN_CONTAINER",
        )
        .help(
            "Whether an organization's sessions share a build cache.",
            "Ob die Sitzungen einer Organisation einen Build-Cache teilen.",
            "Indique si les sessions d’une organisation partagent un cache de build.",
        ),
    v("SANDBOX_BUILDKITD_IMAGE", SPAWNER, Kind::Word).value("tale-sandbox-buildkitd:latest").help(
        "Image of an organization's builder.",
        "Image des Builders einer Organisation.",
        "Image du builder d’une organisation.",
    ),
    v("SANDBOX_BUILDKITD_MIRROR_IMAGE", SPAWNER, Kind::Word)
        .derived("a pinned registry image", "ein festgelegtes Registry-Image", "une image de registre fixée")
        .help("Image of the registry mirrors.", "Image der Registry-Spiegel.", "Image des miroirs de registre."),
    SANDBOX_MAX_SESSIONS,
    SANDBOX_MIN_FREE_MEMORY,
    SANDBOX_CPU_PRESSURE_PERCENT,
    SANDBOX_MIN_FREE_DISK,
    SANDBOX_CRITICAL_FREE_DISK,
    SANDBOX_DOCKER_DATA_ROOT,
    SANDBOX_DOCKER_DATA_PATH,
    v("SANDBOX_BUILDKITD_CPUS", SPAWNER, Kind::Number { min: 0.1, max: f64::INFINITY })
        .derived("SANDBOX_AGENT_CPUS", "SANDBOX_AGENT_CPUS", "SANDBOX_AGENT_CPUS")
        .help(
            "Processors of an organization's builder.",
            "Prozessoren des Builders einer Organisation.",
            "Processeurs du builder d’une organisation.",
        ),
    v("SANDBOX_BUILDKITD_MEMORY", SPAWNER, Kind::Size { zero: false })
        .derived(
            "twice SANDBOX_AGENT_MEMORY",
            "das Doppelte von SANDBOX_AGENT_MEMORY",
            "le double de SANDBOX_AGENT_MEMORY",
        )
        .help(
            "Memory of an organization's builder.",
            "Arbeitsspeicher des Builders einer Organisation.",
            "Mémoire du builder d’une organisation.",
        ),
    v("SANDBOX_BUILDKITD_IDLE_CACHE", SPAWNER, Kind::Size { zero: true }).value("5g").help(
        "Build cache that is kept when the builder stops.",
        "Build-Cache, der beim Anhalten des Builders bleibt.",
        "Cache de build conservé à l’arrêt du builder.",
    ),
    v("SANDBOX_BUILDKITD_MAX_CACHE", SPAWNER, Kind::Size { zero: false })
        .derived(
            "a tenth of the session disk, 1g to 20g",
            "ein Zehntel der Sitzungsplatte, 1g bis 20g",
            "un dixième du disque des sessions, de 1g à 20g",
        )
        .help(
            "Most build cache that a running builder keeps.",
            "Größter Build-Cache, den ein laufender Builder hält.",
            "Taille maximale du cache de build d’un builder en marche.",
        ),
    v("SANDBOX_BUILDKITD_PROVISION_TIMEOUT_MS", SPAWNER, Kind::Integer { min: 100, max: 60_000, unit: Unit::Millis })
        .value("5000")
        .help(
            "How long a starting session waits for the shared build cache.",
            "Wie lange eine startende Sitzung auf den gemeinsamen Build-Cache wartet.",
            "Durée pendant laquelle une session qui démarre attend le cache de build partagé.",
        ),
    v("SANDBOX_BUILDKITD_START_TIMEOUT_MS", SPAWNER, at_least(1_000, Unit::Millis)).value("30000").help(
        "How long the builder may take to start.",
        "Wie lange der Start des Builders dauern darf.",
        "Durée maximale de démarrage du builder.",
    ),
    v("SANDBOX_BUILDKITD_CACHE_RETENTION", SPAWNER, Kind::Age).value("14d").help(
        "How long the build caches of a stopped organization live.",
        "Wie lange die Build-Caches einer ruhenden Organisation leben.",
        "Durée de vie des caches de build d’une organisation arrêtée.",
    ),
    v("SANDBOX_BUILDKITD_IDLE_MS", SPAWNER, at_least(60_000, Unit::Millis)).value("600000").help(
        "How long build helpers run on without a session that may use them.",
        "Wie lange Build-Helfer ohne eine berechtigte Sitzung weiterlaufen.",
        "Durée pendant laquelle les auxiliaires de build tournent sans session qui puisse les utiliser.",
    ),
    SANDBOX_PACKAGE_CACHE_RETENTION,
    v("SANDBOX_DIND_INNER_POOL", SPAWNER, Kind::Pool16)
        .derived("chosen automatically", "automatisch gewählt", "choisie automatiquement")
        .help(
            "Addresses of the inner engine's networks.",
            "Adressen der Netze der inneren Engine.",
            "Adresses des réseaux du moteur interne.",
        ),
    SANDBOX_EGRESS_NETWORK,
    SANDBOX_EGRESS_PROXY,
    v("SANDBOX_MAX_CONCURRENT", SPAWNER, at_least(1, Unit::Plain)).help(
        "Executions at the same time in an older layout; SANDBOX_MAX_SESSIONS replaced it.",
        "Gleichzeitige Ausführungen in einem älteren Aufbau; SANDBOX_MAX_SESSIONS ersetzte es.",
        "Exécutions simultanées dans une disposition antérieure ; SANDBOX_MAX_SESSIONS l’a remplacée.",
    ),
    v("SANDBOX_CACHE", SPAWNER, Kind::OneOf(&["none", "pvc"])).value("none").help(
        "Dependency cache volumes of an older layout.",
        "Abhängigkeits-Cache-Volumes eines älteren Aufbaus.",
        "Volumes de cache de dépendances d’une disposition antérieure.",
    ),
    v("PLATFORM_SHARED_CONFIG", WITH_CLI, Kind::Text).value("config-data").help(
        "Volume of configuration files that the spawner reads.",
        "Volume der Konfigurationsdateien, das der Spawner liest.",
        "Volume des fichiers de configuration que lit le spawner.",
    ),
    TALE_PLATFORM_SHARED_CONFIG_DIR,
    SANDBOX_SKIP_IMAGE_WARMUP,
    SANDBOX_MAX_REQUEST_BODY_BYTES,
];
