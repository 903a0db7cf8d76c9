//! Re-ranking, and limits.

use super::{API, BACKEND, Part, Reaction, Role, Section, Var};
use crate::kind::{Kind, Unit};

const fn rerank(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::KnowledgeSearch, BACKEND, kind).not_yet(Part::Reranking)
}

const fn limit(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Limits, roles, kind).reaction(Reaction::UseDefault)
}

const COUNT: Kind = Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Plain };

pub(super) const KNOWLEDGE_SEARCH: &[Var] = &[
    rerank("RAG_RERANKING_ENABLED", Kind::Bool).value("false").help(
        "Has search results ordered anew by an outside service.",
        "Lässt Suchergebnisse von einem externen Dienst neu ordnen.",
        "Fait reclasser les résultats de recherche par un service externe.",
    ),
    rerank("RAG_RERANKING_PROVIDER", Kind::OneOf(&["api"])).value("api").help(
        "Kind of re-ranking service.",
        "Art des Dienstes, der neu ordnet.",
        "Type de service de reclassement.",
    ),
    rerank("RAG_RERANKING_BASE_URL", Kind::Url(&["https", "http"])).help(
        "Address to which /rerank is appended.",
        "Adresse, an die /rerank angehängt wird.",
        "Adresse à laquelle /rerank est ajouté.",
    ),
    rerank("RAG_RERANKING_MODEL", Kind::Word).help(
        "Model that orders the results.",
        "Modell, das die Ergebnisse ordnet.",
        "Modèle qui classe les résultats.",
    ),
    rerank("RAG_RERANKING_API_KEY", Kind::Secret { min: 1 }).secret().help(
        "Key of the re-ranking service.",
        "Schlüssel des Dienstes, der neu ordnet.",
        "Clé du service de reclassement.",
    ),
    rerank("RAG_RERANKING_TOP_K", COUNT).value("10").help(
        "Results that are kept after re-ranking.",
        "Ergebnisse, die nach dem Neuordnen bleiben.",
        "Résultats conservés après le reclassement.",
    ),
    rerank("RAG_RERANKING_CANDIDATES", COUNT).value("30").help(
        "Results that are handed to the re-ranking service.",
        "Ergebnisse, die dem Dienst übergeben werden.",
        "Résultats transmis au service de reclassement.",
    ),
];

pub(super) const LIMITS: &[Var] = &[
    limit("WEBDAV_MAX_PUT_BYTES", API, Kind::Integer { min: 0, max: u64::MAX, unit: Unit::Bytes })
        .value("5368709120")
        .not_yet(Part::WebDav)
        .help(
            "Largest file that a WebDAV PUT accepts.",
            "Größte Datei, die ein WebDAV-PUT annimmt.",
            "Plus grand fichier qu’un PUT WebDAV accepte.",
        ),
    limit("TALE_AUTOMATION_AGENT_BUDGET_CENTS", BACKEND, Kind::Number { min: 0.01, max: f64::INFINITY })
        .value("500")
        .not_yet(Part::Automations)
        .help(
            "What one agent turn may cost, in cents.",
            "Was ein Agentenzug kosten darf, in Cent.",
            "Coût autorisé d’un tour d’agent, en centimes.",
        ),
];
