//! Sessions, the support link and the MCP endpoint.

use super::{API, Part, Reaction, Role, Section, Var};
use crate::kind::{Kind, Unit};

const fn mcp(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::Mcp, API, kind).not_yet(Part::Mcp)
}

/// `SESSION_IDLE_TIMEOUT_MINUTES`.
pub const SESSION_IDLE_TIMEOUT_MINUTES: Var = Var::new(
    "SESSION_IDLE_TIMEOUT_MINUTES",
    Section::Sessions,
    API,
    Kind::Integer { min: 1, max: 1_440, unit: Unit::Minutes },
)
.derived("unset (7 days)", "nicht gesetzt (7 Tage)", "non définie (7 jours)")
.help(
    "Ends a session that was unused for so long. Organizations can only shorten it.",
    "Beendet eine Sitzung, die so lange ungenutzt war. Organisationen können die Zeit nur verkürzen.",
    "Termine une session restée inutilisée aussi longtemps. Les organisations ne peuvent que la raccourcir.",
);

/// `SESSION_COOKIE_CACHE_SECONDS`.
pub const SESSION_COOKIE_CACHE_SECONDS: Var = Var::new(
    "SESSION_COOKIE_CACHE_SECONDS",
    Section::Sessions,
    API,
    Kind::Integer { min: 1, max: 300, unit: Unit::Seconds },
)
.derived("unset (off)", "nicht gesetzt (aus)", "non définie (désactivé)")
.help(
    "Lets a request reuse its session from a signed cookie for so long. Held to a quarter of the idle window.",
    "Lässt eine Anfrage ihre Sitzung so lange aus einem signierten Cookie wiederverwenden. Höchstens ein Viertel des Inaktivitätsfensters.",
    "Permet à une requête de réutiliser sa session depuis un cookie signé aussi longtemps. Limité à un quart de la fenêtre d’inactivité.",
);

pub(super) const SESSIONS: &[Var] = &[SESSION_IDLE_TIMEOUT_MINUTES, SESSION_COOKIE_CACHE_SECONDS];

/// `TALE_CONTACT_SUPPORT_URL`.
pub const TALE_CONTACT_SUPPORT_URL: Var =
    Var::new("TALE_CONTACT_SUPPORT_URL", Section::Support, &[Role::Platform, Role::All], Kind::Url(&["https", "http"]))
        .value("https://tale.dev/contact")
        .reaction(Reaction::UseDefault)
        .help(
            "Target of the support link on error screens. It gets the organization as organizationId.",
            "Ziel des Support-Links auf Fehlerseiten. Es bekommt die Organisation als organizationId.",
            "Cible du lien vers le support sur les écrans d’erreur. Elle reçoit l’organisation comme organizationId.",
        );

pub(super) const SUPPORT: &[Var] = &[TALE_CONTACT_SUPPORT_URL];

pub(super) const MCP: &[Var] = &[
    mcp("TALE_MCP_ALLOWED_ORIGINS", Kind::Origins).help(
        "Browser origins besides the site's own from which the MCP endpoint accepts requests.",
        "Browser-Origins neben den eigenen, von denen der MCP-Endpunkt Anfragen annimmt.",
        "Origines de navigateur, outre celles du site, dont le point d’accès MCP accepte les requêtes.",
    ),
    mcp("TALE_MCP_ORIGIN_ENFORCE", Kind::Flag("true")).value("false").help(
        "Refuses requests from other origins instead of only logging them.",
        "Lehnt Anfragen von anderen Origins ab, statt sie nur zu protokollieren.",
        "Refuse les requêtes d’autres origines au lieu de seulement les journaliser.",
    ),
    mcp("TALE_MCP_CLIENT_METADATA", Kind::Bool).value("false").help(
        "Accepts coding agents whose id is the URL of a metadata document.",
        "Nimmt Coding-Agenten an, deren Kennung die URL eines Metadatendokuments ist.",
        "Accepte les agents de code dont l’identifiant est l’URL d’un document de métadonnées.",
    ),
    mcp("TALE_MCP_CLIENT_REGISTRATION", Kind::Bool).value("false").help(
        "Lets coding agents register themselves.",
        "Lässt Coding-Agenten sich selbst registrieren.",
        "Permet aux agents de code de s’enregistrer eux-mêmes.",
    ),
    mcp("TALE_MCP_REGISTRATION_PER_SOURCE", Kind::Integer { min: 1, max: 1_000, unit: Unit::Plain }).value("10").help(
        "Registrations per hour from one source address.",
        "Registrierungen je Stunde von einer Quelladresse.",
        "Enregistrements par heure depuis une adresse source.",
    ),
    mcp("TALE_MCP_REGISTRATION_PER_DEPLOYMENT", Kind::Integer { min: 1, max: 10_000, unit: Unit::Plain })
        .value("100")
        .help(
            "Registrations per hour in the whole deployment.",
            "Registrierungen je Stunde im ganzen Deployment.",
            "Enregistrements par heure dans tout le déploiement.",
        ),
];
