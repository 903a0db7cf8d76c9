//! Agent turns and the model gateway.

use super::{BACKEND, Part, Reaction, Role, Section, Var};
use crate::kind::{Kind, Unit};

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::AgentTurns, roles, kind).reaction(Reaction::UseDefault).not_yet(Part::Gateway)
}

const fn read(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::AgentTurns, roles, kind).reaction(Reaction::UseDefault)
}

const GATEWAY: &[Role] = &[Role::LlmGateway];
const WORKERS: Kind = Kind::Integer { min: 1, max: 5_000, unit: Unit::Plain };

/// `SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS`.
pub const SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS: Var = read(
    "SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS",
    BACKEND,
    Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Seconds },
)
.value("600")
.help(
    "Silence of a model after which an answer through the model endpoints is broken off.",
    "Stille eines Modells, nach der eine Antwort über die Modell-Endpunkte abgebrochen wird.",
    "Silence d’un modèle après lequel une réponse par les endpoints de modèles est interrompue.",
);

/// `SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY`.
pub const SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY: Var =
    read("SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY", BACKEND, WORKERS).value("512").help(
        "Requests that a built-in provider gets at the same time through the model endpoints of one process; 16 times as many wait.",
        "Anfragen, die ein eingebauter Anbieter über die Modell-Endpunkte eines Prozesses gleichzeitig erhält; 16-mal so viele warten.",
        "Requêtes qu’un fournisseur intégré reçoit en même temps par les endpoints de modèles d’un processus ; 16 fois plus attendent.",
    );

/// `SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY`.
pub const SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY: Var =
    read("SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY", BACKEND, WORKERS).value("64").help(
        "The same for each model of an organization’s own provider.",
        "Dasselbe für jedes Modell eines eigenen Anbieters einer Organisation.",
        "De même pour chaque modèle d’un fournisseur propre à une organisation.",
    );

pub(super) const AGENT_TURNS: &[Var] = &[
    v("TALE_EXTERNAL_TURN_DEADLINE_MS", BACKEND, Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Millis })
        .value("1800000")
        .not_yet(Part::Agents)
        .help(
            "How long the output of an agent turn may stay unread before the turn is ended.",
            "Wie lange die Ausgabe eines Agentenzugs ungelesen bleiben darf, bevor er beendet wird.",
            "Durée pendant laquelle la sortie d’un tour d’agent peut rester non lue avant son arrêt.",
        ),
    v("SANDBOX_LLM_GATEWAY_URL", BACKEND, Kind::Url(&["http", "https"])).value("http://sandbox-llm-gateway:8080").help(
        "Address of the model gateway's administration.",
        "Adresse der Verwaltung des Modell-Gateways.",
        "Adresse d’administration de la passerelle de modèles.",
    ),
    SANDBOX_LLM_GATEWAY_STREAM_IDLE_TIMEOUT_SECONDS,
    SANDBOX_LLM_GATEWAY_PROVIDER_CONCURRENCY,
    SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY,
    v("SANDBOX_LLM_GATEWAY_LOG_RETENTION_DAYS", BACKEND, Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Days })
        .value("3")
        .help(
            "How long the gateway keeps its request log.",
            "Wie lange das Gateway sein Anfrageprotokoll behält.",
            "Durée de conservation du journal des requêtes de la passerelle.",
        ),
    v("LLM_GATEWAY_PORT", GATEWAY, Kind::Port { zero: false }).value("8080").help(
        "Port of the gateway for sessions and model endpoints.",
        "Port des Gateways für Sitzungen und Modell-Endpunkte.",
        "Port de la passerelle pour les sessions et les endpoints de modèles.",
    ),
    v("LLM_GATEWAY_ADMIN_PORT", GATEWAY, Kind::Port { zero: false }).value("8081").help(
        "Port of the gateway's administration, for the internal network only.",
        "Port der Gateway-Verwaltung, nur für das interne Netz.",
        "Port d’administration de la passerelle, réservé au réseau interne.",
    ),
];
