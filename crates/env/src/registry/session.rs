//! Names that exist only inside sandbox sessions: documented, never read here.

use super::{Reaction, Role, Section, Use, Var};
use crate::kind::Kind;

const fn v(name: &'static str, kind: Kind) -> Var {
    let mut var = Var::new(name, Section::Session, &[Role::Session], kind).reaction(Reaction::Ignore);
    var.usage = Use::Session;
    var
}

const SECRET: Kind = Kind::Secret { min: 1 };

pub(super) const SESSION: &[Var] = &[
    v("TALE_RUNNERD_TOKEN", SECRET).secret().help(
        "Token of the session daemon's interface.",
        "Token der Schnittstelle des Sitzungsdienstes.",
        "Jeton de l’interface du service de session.",
    ),
    v("TALE_RUNNERD_INCARNATION", Kind::Text).help(
        "Which start of the session this is.",
        "Der wievielte Start der Sitzung dies ist.",
        "De quel démarrage de la session il s’agit.",
    ),
    v("TALE_SESSION_ENV", Kind::JsonObject).secret().help(
        "First environment of a session.",
        "Anfängliche Umgebung einer Sitzung.",
        "Environnement initial d’une session.",
    ),
    v("TALE_EXEC_STALL_MS", Kind::Text).help(
        "Silence after which a command counts as stalled.",
        "Stille, nach der ein Befehl als hängend gilt.",
        "Silence après lequel une commande est jugée bloquée.",
    ),
    v("TALE_EXEC_ADMISSION_MEMORY_PERCENT", Kind::Text).help(
        "Memory use from which new commands are refused.",
        "Speicherbelegung, ab der neue Befehle abgelehnt werden.",
        "Occupation de la mémoire à partir de laquelle les nouvelles commandes sont refusées.",
    ),
    v("TALE_EXEC_ID", Kind::Text).help(
        "Marks the processes of one command.",
        "Kennzeichnet die Prozesse eines Befehls.",
        "Marque les processus d’une commande.",
    ),
    v("TALE_DIND", Kind::Text).help(
        "Says that the session may run a container engine inside.",
        "Sagt, dass die Sitzung innen eine Container-Engine betreiben darf.",
        "Indique que la session peut exécuter un moteur de conteneurs interne.",
    ),
    v("TALE_RUNTIME_TIER", Kind::Text).help(
        "Isolation that the session runs under.",
        "Isolation, unter der die Sitzung läuft.",
        "Isolation sous laquelle la session s’exécute.",
    ),
    v("TALE_BUILDKITD_ENDPOINT", Kind::Text).help(
        "Builder that the session may use.",
        "Builder, den die Sitzung benutzen darf.",
        "Builder que la session peut utiliser.",
    ),
    v("TALE_BUILDKIT_NETWORK_SUBNETS", Kind::JsonArray).help(
        "Networks that the inner engine must avoid.",
        "Netze, die die innere Engine meiden muss.",
        "Réseaux que le moteur interne doit éviter.",
    ),
    v("TALE_DIND_INNER_POOL", Kind::Text).help(
        "Addresses that the inner engine uses.",
        "Adressen, die die innere Engine benutzt.",
        "Adresses utilisées par le moteur interne.",
    ),
    v("TALE_DIND_INNER_BIP", Kind::Text).help(
        "Address of the inner engine's bridge.",
        "Adresse der Bridge der inneren Engine.",
        "Adresse du pont du moteur interne.",
    ),
    v("TALE_DIND_INNER_POOL_OVERRIDE", Kind::Text).help(
        "Addresses that the operator fixed for it.",
        "Adressen, die der Betreiber dafür festgelegt hat.",
        "Adresses que l’opérateur lui a fixées.",
    ),
    v("TALE_GATEWAY_URL", Kind::Text).help(
        "Address of the model gateway for a turn.",
        "Adresse des Modell-Gateways für einen Zug.",
        "Adresse de la passerelle de modèles pour un tour.",
    ),
    v("TALE_GATEWAY_TOKEN", SECRET).secret().help(
        "Key of the model gateway for a turn.",
        "Schlüssel des Modell-Gateways für einen Zug.",
        "Clé de la passerelle de modèles pour un tour.",
    ),
    v("TALE_VISION_MODEL", Kind::Text).help(
        "Model that reads images for a turn.",
        "Modell, das für einen Zug Bilder liest.",
        "Modèle qui lit les images pour un tour.",
    ),
    v("TALE_VISION_READ_POLYFILL", Kind::Text).help(
        "Has images read by that model when the turn's own cannot.",
        "Lässt Bilder von diesem Modell lesen, wenn das eigene es nicht kann.",
        "Fait lire les images par ce modèle quand celui du tour ne le peut pas.",
    ),
    v("TALE_PLAYWRIGHT_MCP_EAGER", Kind::Text).help(
        "Starts the browser tool at once instead of at its first use.",
        "Startet das Browser-Werkzeug sofort statt beim ersten Gebrauch.",
        "Démarre l’outil de navigateur aussitôt au lieu de sa première utilisation.",
    ),
    v("PLAYWRIGHT_MCP_<NAME>", Kind::Text).help(
        "Settings of the browser tool; any of them starts it at once.",
        "Einstellungen des Browser-Werkzeugs; jede startet es sofort.",
        "Réglages de l’outil de navigateur ; chacun le démarre aussitôt.",
    ),
    v("TALE_SUBSCRIPTION_TOKEN", SECRET).secret().help(
        "Subscription token of a Codex turn.",
        "Abonnement-Token eines Codex-Zugs.",
        "Jeton d’abonnement d’un tour Codex.",
    ),
    v("TALE_SUBSCRIPTION_ACCOUNT_ID", Kind::Text).help(
        "Account that this token belongs to.",
        "Konto, zu dem dieser Token gehört.",
        "Compte auquel ce jeton appartient.",
    ),
    v("CLAUDE_CODE_OAUTH_TOKEN", SECRET).secret().help(
        "Subscription token of a Claude Code turn.",
        "Abonnement-Token eines Claude-Code-Zugs.",
        "Jeton d’abonnement d’un tour Claude Code.",
    ),
    v("ANTHROPIC_AUTH_TOKEN", SECRET).secret().help(
        "Older place of such a token, used when it is configured explicitly.",
        "Älterer Ort eines solchen Tokens, nur bei ausdrücklicher Konfiguration benutzt.",
        "Emplacement antérieur d’un tel jeton, utilisé sur configuration explicite.",
    ),
    v("CODEX_ACCESS_TOKEN", SECRET).secret().help(
        "Removed from a session; TALE_SUBSCRIPTION_TOKEN takes its place.",
        "Aus einer Sitzung entfernt; TALE_SUBSCRIPTION_TOKEN tritt an seine Stelle.",
        "Retirée d’une session ; TALE_SUBSCRIPTION_TOKEN la remplace.",
    ),
    v("PATH", Kind::Text).help(
        "Programs of the session's image.",
        "Programme des Sitzungs-Images.",
        "Programmes de l’image de session.",
    ),
    v("TMPDIR", Kind::Text).help(
        "Temporary directory of the session, on disk.",
        "Temporäres Verzeichnis der Sitzung, auf der Platte.",
        "Répertoire temporaire de la session, sur disque.",
    ),
    v("NODE_PATH", Kind::Text).help(
        "Where Node programs of the session find libraries.",
        "Wo Node-Programme der Sitzung Bibliotheken finden.",
        "Où les programmes Node de la session trouvent leurs bibliothèques.",
    ),
    v("PIP_CACHE_DIR", Kind::Text).help(
        "Package cache of the organization for pip.",
        "Paket-Cache der Organisation für pip.",
        "Cache de paquets de l’organisation pour pip.",
    ),
    v("UV_CACHE_DIR", Kind::Text).help(
        "Package cache of the organization for uv.",
        "Paket-Cache der Organisation für uv.",
        "Cache de paquets de l’organisation pour uv.",
    ),
    v("NPM_CONFIG_CACHE", Kind::Text).help(
        "Package cache of the organization for npm.",
        "Paket-Cache der Organisation für npm.",
        "Cache de paquets de l’organisation pour npm.",
    ),
    v("BUN_INSTALL_CACHE_DIR", Kind::Text).help(
        "Package cache of the organization for bun.",
        "Paket-Cache der Organisation für bun.",
        "Cache de paquets de l’organisation pour bun.",
    ),
    v("GIT_SSH_COMMAND", Kind::Text).help(
        "The ssh command that git uses, with the tunnel through the proxy.",
        "Der ssh-Befehl, den git benutzt, mit dem Tunnel durch den Proxy.",
        "Commande ssh utilisée par git, avec le tunnel à travers le proxy.",
    ),
    v("GIT_CONFIG_<NAME>", Kind::Text).help(
        "Name and e-mail address of the workspace's owner for git.",
        "Name und E-Mail-Adresse der Person, der der Arbeitsbereich gehört, für git.",
        "Nom et adresse e-mail du propriétaire de l’espace de travail pour git.",
    ),
];
