//! Parts of the platform that this release does not contain.

use crate::words::{Words, words};

/// A part that is not there. Its variables are recognized, and the check says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Agent turns in sandboxes.
    Agents,
    /// Automations.
    Automations,
    /// Organization configuration files.
    ConfigFiles,
    /// Connectors.
    Connectors,
    /// Import from cloud drives.
    CloudImport,
    /// The website crawler.
    Crawler,
    /// Deployment by the command line.
    Deploy,
    /// The MCP endpoint.
    Mcp,
    /// A documentation site.
    DocsSite,
    /// Re-ranking.
    Reranking,
    /// Retention.
    Retention,
    /// Sandboxes.
    Sandboxes,
    /// Video links.
    Video,
    /// WebDAV.
    WebDav,
}

impl Part {
    /// That it is not there, in a sentence.
    #[must_use]
    pub const fn words(self) -> Words {
        match self {
            Self::Agents => words(
                "This release runs no agents in sandboxes.",
                "Diese Version führt keine Agenten in Sandboxes aus.",
                "Cette version n’exécute pas d’agents dans des sandbox.",
            ),
            Self::Automations => words(
                "This release has no automations.",
                "Diese Version hat keine Automatisierungen.",
                "Cette version n’a pas d’automatisations.",
            ),
            Self::ConfigFiles => words(
                "This release has no configuration file of the deployment and no catalogue for new organizations.",
                "Diese Version hat keine Konfigurationsdatei der Installation und keinen Katalog für neue Organisationen.",
                "Cette version n’a ni fichier de configuration du déploiement ni catalogue pour les nouvelles organisations.",
            ),
            Self::Connectors => words(
                "This release has no connectors.",
                "Diese Version hat keine Konnektoren.",
                "Cette version n’a pas de connecteurs.",
            ),
            Self::CloudImport => words(
                "This release does not import from cloud drives.",
                "Diese Version importiert nicht aus Cloud-Laufwerken.",
                "Cette version n’importe pas depuis des espaces cloud.",
            ),
            Self::Crawler => words(
                "This release crawls no websites.",
                "Diese Version durchsucht keine Websites.",
                "Cette version n’explore pas de sites web.",
            ),
            Self::Deploy => words(
                "The command line of this release does not deploy.",
                "Die Kommandozeile dieser Version führt keine Deployments aus.",
                "La ligne de commande de cette version ne fait pas de déploiement.",
            ),
            Self::Mcp => words(
                "This release has no MCP endpoint.",
                "Diese Version hat keinen MCP-Endpunkt.",
                "Cette version n’a pas de point d’accès MCP.",
            ),
            Self::DocsSite => words(
                "This release has no documentation site.",
                "Diese Version hat keine Dokumentations-Website.",
                "Cette version n’a pas de site de documentation.",
            ),
            Self::Reranking => words(
                "This release does not re-rank search results.",
                "Diese Version ordnet Suchergebnisse nicht neu.",
                "Cette version ne reclasse pas les résultats de recherche.",
            ),
            Self::Retention => words(
                "This release has no retention policies.",
                "Diese Version hat keine Aufbewahrungsrichtlinien.",
                "Cette version n’a pas de politiques de conservation.",
            ),
            Self::Sandboxes => words(
                "This release has no such part of the sandboxes yet: containers inside of them, build caches, Kubernetes, connected devices.",
                "Diese Version hat diesen Teil der Sandboxes noch nicht: Container in ihnen, Build-Caches, Kubernetes, verbundene Geräte.",
                "Cette version n’a pas encore cette partie des sandbox : conteneurs internes, caches de build, Kubernetes, appareils connectés.",
            ),
            Self::Video => words(
                "This release reads no video links.",
                "Diese Version liest keine Videolinks.",
                "Cette version ne lit pas de liens vidéo.",
            ),
            Self::WebDav => words(
                "This release has no WebDAV.",
                "Diese Version hat kein WebDAV.",
                "Cette version n’a pas de WebDAV.",
            ),
        }
    }
}
