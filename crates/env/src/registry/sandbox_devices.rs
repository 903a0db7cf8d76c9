//! The way out of sandboxes, and sandboxes on connected machines.

use super::{BACKEND, Part, Role, Section, Var};
use crate::kind::{Kind, Unit};

const fn egress(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::SandboxEgress, &[Role::SandboxEgress], kind)
}

const fn device(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::SandboxDevices, roles, kind).not_yet(Part::Sandboxes)
}

const SPAWNER: &[Role] = super::sandbox::SPAWNER;
/// Largest number of connections: what is above is a typing error that would mean no limit.
const MAX_COUNT: u64 = 4_294_967_295;

const HTTP: Kind = Kind::Url(&["http", "https"]);

/// `SANDBOX_EGRESS_ALLOWLIST`.
pub const SANDBOX_EGRESS_ALLOWLIST: Var = egress("SANDBOX_EGRESS_ALLOWLIST", Kind::Text)
    .derived("unset (all public hosts)", "nicht gesetzt (alle öffentlichen Hosts)", "non définie (tous les hôtes publics)")
    .help(
        "Hosts that sandboxes may reach; everything else is refused then. One per line or separated by `|`: `example.com`, `*.example.com` or a regular expression.",
        "Hosts, die Sandboxes erreichen dürfen; alles andere wird dann abgelehnt. Einer je Zeile oder durch `|` getrennt: `example.com`, `*.example.com` oder ein regulärer Ausdruck.",
        "Hôtes que les sandbox peuvent joindre ; tout le reste est alors refusé. Un par ligne ou séparés par `|` : `example.com`, `*.example.com` ou une expression régulière.",
    );

/// `SANDBOX_EGRESS_MAX_CLIENTS`.
pub const SANDBOX_EGRESS_MAX_CLIENTS: Var =
    egress("SANDBOX_EGRESS_MAX_CLIENTS", Kind::Integer { min: 1, max: MAX_COUNT, unit: Unit::Plain })
        .value("2000")
        .help(
            "Connections of all sessions at the same time.",
            "Gleichzeitige Verbindungen aller Sitzungen.",
            "Connexions simultanées de toutes les sessions.",
        );

/// `SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION`.
pub const SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION: Var =
    egress("SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION", Kind::Integer { min: 0, max: MAX_COUNT, unit: Unit::Plain })
        .value("256")
        .help(
            "Connections of one session at the same time; 0 means no limit.",
            "Gleichzeitige Verbindungen einer Sitzung; 0 heißt ohne Grenze.",
            "Connexions simultanées d’une session ; 0 signifie sans limite.",
        );

/// `SANDBOX_EGRESS_CONNECT_PORTS`.
pub const SANDBOX_EGRESS_CONNECT_PORTS: Var = egress("SANDBOX_EGRESS_CONNECT_PORTS", Kind::Ports).value("443").help(
    "Ports to which sessions may open tunnels. Plain HTTP may go to port 80 and to these.",
    "Ports, zu denen Sitzungen Tunnel öffnen dürfen. Einfaches HTTP darf zu Port 80 und zu diesen.",
    "Ports vers lesquels les sessions peuvent ouvrir des tunnels. Le HTTP simple peut aller vers le port 80 et vers ceux-ci.",
);

/// `SANDBOX_EGRESS_IDLE_SECONDS`.
pub const SANDBOX_EGRESS_IDLE_SECONDS: Var =
    egress("SANDBOX_EGRESS_IDLE_SECONDS", Kind::Integer { min: 1, max: 86_400, unit: Unit::Seconds })
        .value("600")
        .help(
            "After how long an idle connection is closed.",
            "Nach welcher Zeit eine untätige Verbindung geschlossen wird.",
            "Délai après lequel une connexion inactive est fermée.",
        );

/// `SANDBOX_TRANSPARENT_EGRESS`.
pub const SANDBOX_TRANSPARENT_EGRESS: Var =
    Var::new("SANDBOX_TRANSPARENT_EGRESS", Section::SandboxEgress, SPAWNER, Kind::Bool).value("true").help(
        "Leads every outgoing connection of a session through the proxy, also of programs that know of none.",
        "Führt jede ausgehende Verbindung einer Sitzung durch den Proxy, auch die von Programmen, die keinen kennen.",
        "Fait passer chaque connexion sortante d’une session par le proxy, même celles de programmes qui l’ignorent.",
    );

pub(super) const SANDBOX_EGRESS: &[Var] = &[
    SANDBOX_EGRESS_ALLOWLIST,
    SANDBOX_EGRESS_MAX_CLIENTS,
    SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION,
    SANDBOX_EGRESS_CONNECT_PORTS,
    SANDBOX_EGRESS_IDLE_SECONDS,
    SANDBOX_TRANSPARENT_EGRESS,
];

/// `SANDBOX_INSTANCE`.
pub const SANDBOX_INSTANCE: Var = Var::new("SANDBOX_INSTANCE", Section::SandboxDevices, SPAWNER, Kind::Label).help(
    "Label of the containers a spawner owns, so that several share one engine.",
    "Kennzeichen der Container eines Spawners, damit mehrere eine Engine teilen.",
    "Étiquette des conteneurs d’un spawner, pour que plusieurs partagent un moteur.",
);

pub(super) const SANDBOX_DEVICES: &[Var] = &[
    device("SANDBOX_HUB_PORT", SPAWNER, Kind::Port { zero: true }).value("8004").help(
        "Port of the device hub.",
        "Port der Gerätezentrale.",
        "Port du hub des appareils.",
    ),
    device("SANDBOX_HUB_UPSTREAM", &[Role::Proxy], Kind::HostPort).value("sandbox:8004").help(
        "Where the proxy sends the device tunnel.",
        "Wohin der Proxy den Gerätetunnel leitet.",
        "Destination vers laquelle le proxy transmet le tunnel des appareils.",
    ),
    device("SANDBOX_HUB_STATE_DIR", SPAWNER, Kind::Directory).value("/var/lib/tale-sandbox/hub").help(
        "Where the hub remembers which device has which session.",
        "Wo die Zentrale festhält, welches Gerät welche Sitzung hat.",
        "Où le hub retient quel appareil a quelle session.",
    ),
    device("SANDBOX_HUB_API_UPSTREAM", SPAWNER, HTTP)
        .derived("SANDBOX_HTTP_API_BASE_URL", "SANDBOX_HTTP_API_BASE_URL", "SANDBOX_HTTP_API_BASE_URL")
        .help(
            "Target of backend calls that a device relays.",
            "Ziel der Backend-Aufrufe, die ein Gerät weiterreicht.",
            "Cible des appels au backend qu’un appareil relaie.",
        ),
    device("SANDBOX_HUB_GATEWAY_UPSTREAM", SPAWNER, HTTP)
        .derived("EXTERNAL_AGENT_GATEWAY_URL", "EXTERNAL_AGENT_GATEWAY_URL", "EXTERNAL_AGENT_GATEWAY_URL")
        .help(
            "Target of model calls that a device relays.",
            "Ziel der Modellaufrufe, die ein Gerät weiterreicht.",
            "Cible des appels aux modèles qu’un appareil relaie.",
        ),
    device("SANDBOX_DEVICE_TUNNEL_URL", BACKEND, Kind::Url(&["wss", "https"]))
        .derived("SITE_URL with /sandbox/tunnel", "SITE_URL mit /sandbox/tunnel", "SITE_URL avec /sandbox/tunnel")
        .help(
            "Address that devices dial when another proxy publishes the hub.",
            "Adresse, die Geräte wählen, wenn ein anderer Proxy die Zentrale veröffentlicht.",
            "Adresse que composent les appareils lorsqu’un autre proxy publie le hub.",
        ),
    device("SANDBOX_DEVICE_IMAGE_REGISTRY", BACKEND, Kind::Word)
        .derived("GHCR_REGISTRY", "GHCR_REGISTRY", "GHCR_REGISTRY")
        .help(
            "Where devices pull their images.",
            "Woher Geräte ihre Images laden.",
            "D’où les appareils téléchargent leurs images.",
        ),
    device("SANDBOX_DEVICE_CONFIG", SPAWNER, Kind::File).help(
        "Configuration of a spawner on a connected machine.",
        "Konfiguration eines Spawners auf einem verbundenen Rechner.",
        "Configuration d’un spawner sur une machine connectée.",
    ),
    SANDBOX_INSTANCE,
    device("TALE_SANDBOX_HOME", &[Role::Cli], Kind::Directory).value("~/.tale/sandbox").help(
        "State directory of the `tale sandbox` commands on a device.",
        "Zustandsverzeichnis der Befehle `tale sandbox` auf einem Gerät.",
        "Répertoire d’état des commandes `tale sandbox` sur un appareil.",
    ),
];
