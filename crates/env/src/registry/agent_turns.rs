//! Agent turns and the model gateway.

use super::{BACKEND, Part, Reaction, Role, Section, Var};
use crate::kind::{Kind, Unit};

const fn read(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::AgentTurns, roles, kind).reaction(Reaction::UseDefault)
}

const GATEWAY: &[Role] = &[Role::LlmGateway, Role::All];
const WORKERS: Kind = Kind::Integer { min: 1, max: 5_000, unit: Unit::Plain };

/// `SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS`.
pub const SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS: Var = read(
    "SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS",
    BACKEND,
    Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Seconds },
)
.value("600")
.help(
    "Silence of a model after which an answer through the model endpoints or the model gateway is broken off.",
    "Stille eines Modells, nach der eine Antwort über die Modell-Endpunkte oder das Modell-Gateway abgebrochen wird.",
    "Silence d’un modèle après lequel une réponse par les endpoints ou la passerelle de modèles est interrompue.",
);

/// `SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY`.
pub const SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY: Var =
    read("SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY", BACKEND, WORKERS).value("512").help(
        "Requests that a built-in provider gets at the same time through the model endpoints and the model gateway, in each process; 16 times as many wait.",
        "Anfragen, die ein eingebauter Anbieter über die Modell-Endpunkte und das Modell-Gateway gleichzeitig erhält, je Prozess; 16-mal so viele warten.",
        "Requêtes qu’un fournisseur intégré reçoit en même temps par les endpoints et la passerelle de modèles, dans chaque processus ; 16 fois plus attendent.",
    );

/// `SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY`.
pub const SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY: Var =
    read("SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY", BACKEND, WORKERS).value("64").help(
        "The same for each model of an organization’s own provider.",
        "Dasselbe für jedes Modell eines eigenen Anbieters einer Organisation.",
        "De même pour chaque modèle d’un fournisseur propre à une organisation.",
    );

/// `SANDBOX_LLM_GATEWAY_URL`.
pub const SANDBOX_LLM_GATEWAY_URL: Var = read("SANDBOX_LLM_GATEWAY_URL", BACKEND, Kind::Url(&["http", "https"]))
    .value("http://sandbox-llm-gateway:8080")
    .help(
        "Address of the model gateway's administration, where the backend hands these settings on.",
        "Adresse der Verwaltung des Modell-Gateways, an die das Backend diese Einstellungen weitergibt.",
        "Adresse d’administration de la passerelle de modèles, à laquelle le backend transmet ces réglages.",
    );

/// `SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS`.
pub const SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS: Var =
    read("SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS", BACKEND, Kind::Integer { min: 1, max: 36_500, unit: Unit::Days })
        .value("3")
        .help(
            "How long the model gateway keeps its request log. A change counts at once.",
            "Wie lange das Modell-Gateway sein Anfrageprotokoll behält. Eine Änderung gilt sofort.",
            "Durée de conservation du journal des requêtes de la passerelle de modèles. Un changement compte aussitôt.",
        );

/// `LLM_GATEWAY_PORT`.
pub const LLM_GATEWAY_PORT: Var = read("LLM_GATEWAY_PORT", GATEWAY, Kind::Port { zero: true })
    .reaction(Reaction::Refuse)
    .derived(
        "8080; the role all serves a gateway only where it is set",
        "8080; die Rolle all bietet nur damit ein Gateway an",
        "8080 ; le rôle all ne sert une passerelle que si elle est définie",
    )
    .help("Port of the model gateway.", "Port des Modell-Gateways.", "Port de la passerelle de modèles.");

/// `LLM_GATEWAY_ADMIN_PORT`.
pub const LLM_GATEWAY_ADMIN_PORT: Var = read("LLM_GATEWAY_ADMIN_PORT", GATEWAY, Kind::Port { zero: true })
    .reaction(Reaction::Refuse)
    .derived("the port of the gateway", "der Port des Gateways", "le port de la passerelle")
    .help(
        "A port of its own for the gateway's administration; the port of the gateway has none then. Point SANDBOX_LLM_GATEWAY_URL there.",
        "Ein eigener Port für die Verwaltung des Gateways; dessen Port hat dann keine. Richte SANDBOX_LLM_GATEWAY_URL darauf.",
        "Un port distinct pour l’administration de la passerelle ; le port de celle-ci n’en a plus. Dirige SANDBOX_LLM_GATEWAY_URL dessus.",
    );

pub(super) const AGENT_TURNS: &[Var] = &[
    read("TALE_EXTERNAL_TURN_DEADLINE_MS", BACKEND, Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Millis })
        .value("1800000")
        .not_yet(Part::Agents)
        .help(
            "How long the output of an agent turn may stay unread before the turn is ended.",
            "Wie lange die Ausgabe eines Agentenzugs ungelesen bleiben darf, bevor er beendet wird.",
            "Durée pendant laquelle la sortie d’un tour d’agent peut rester non lue avant son arrêt.",
        ),
    SANDBOX_LLM_GATEWAY_URL,
    SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS,
    SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY,
    SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY,
    SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS,
    LLM_GATEWAY_PORT,
    LLM_GATEWAY_ADMIN_PORT,
];
