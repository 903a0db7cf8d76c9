//! OAuth apps of connectors and of the cloud import.

use super::{API, BACKEND, Part, Role, Section, Var};
use crate::kind::Kind;

const fn connector(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::ConnectorOauth, roles, kind).not_yet(Part::Connectors)
}

const fn cloud(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::CloudImport, BACKEND, kind).not_yet(Part::CloudImport)
}

const SECRET: Kind = Kind::Secret { min: 1 };

pub(super) const CONNECTOR_OAUTH: &[Var] = &[
    connector("CONNECTOR_OAUTH_<SLUG>_CLIENT_ID", BACKEND, Kind::Word).help(
        "OAuth client id of a connector for organizations without an app of their own. The slug is in capitals, - becomes _.",
        "OAuth-Client-ID eines Konnektors für Organisationen ohne eigene App. Der Slug steht in Großbuchstaben, - wird _.",
        "Identifiant client OAuth d’un connecteur pour les organisations sans application propre. Le slug est en majuscules, - devient _.",
    ),
    connector("CONNECTOR_OAUTH_<SLUG>_CLIENT_SECRET", BACKEND, SECRET).secret().help(
        "Client secret that belongs to the same app.",
        "Client-Geheimnis derselben App.",
        "Secret client de la même application.",
    ),
    connector("CONNECTOR_SLACK_SIGNING_SECRET", API, SECRET).secret().help(
        "Verifies every Slack event before it is read.",
        "Prüft jedes Slack-Ereignis, bevor es gelesen wird.",
        "Vérifie chaque événement Slack avant sa lecture.",
    ),
];

pub(super) const CLOUD_IMPORT: &[Var] = &[
    cloud("CLOUD_IMPORT_MICROSOFT_CLIENT_ID", Kind::Word).help(
        "Microsoft app for importing documents, first choice for OneDrive and SharePoint.",
        "Microsoft-App für den Dokumentenimport, erste Wahl für OneDrive und SharePoint.",
        "Application Microsoft pour l’import de documents, premier choix pour OneDrive et SharePoint.",
    ),
    cloud("CLOUD_IMPORT_MICROSOFT_CLIENT_SECRET", SECRET).secret().help(
        "Secret of that Microsoft app.",
        "Geheimnis dieser Microsoft-App.",
        "Secret de cette application Microsoft.",
    ),
    cloud("CLOUD_IMPORT_MICROSOFT_TENANT_ID", Kind::Word).help(
        "Tenant of the import app; needed for a single-tenant app.",
        "Mandant der Import-App; für eine Ein-Mandanten-App nötig.",
        "Tenant de l’application d’import ; nécessaire pour une application mono-tenant.",
    ),
    cloud("AUTH_MICROSOFT_ENTRA_ID_ID", Kind::Word).help(
        "Client id of the Microsoft sign-in app, second choice for OneDrive.",
        "Client-ID der Microsoft-Anmelde-App, zweite Wahl für OneDrive.",
        "Identifiant client de l’application de connexion Microsoft, second choix pour OneDrive.",
    ),
    cloud("AUTH_MICROSOFT_ENTRA_ID_SECRET", SECRET).secret().help(
        "Secret of the Microsoft sign-in app.",
        "Geheimnis der Microsoft-Anmelde-App.",
        "Secret de l’application de connexion Microsoft.",
    ),
    cloud("AUTH_MICROSOFT_ENTRA_ID_TENANT_ID", Kind::Word).help(
        "Tenant of the Microsoft sign-in app.",
        "Mandant der Microsoft-Anmelde-App.",
        "Tenant de l’application de connexion Microsoft.",
    ),
    cloud("CLOUD_IMPORT_GOOGLE_DRIVE_CLIENT_ID", Kind::Word).help(
        "Google app for importing documents from Google Drive.",
        "Google-App für den Dokumentenimport aus Google Drive.",
        "Application Google pour importer des documents depuis Google Drive.",
    ),
    cloud("CLOUD_IMPORT_GOOGLE_DRIVE_CLIENT_SECRET", SECRET).secret().help(
        "Secret of the Google app.",
        "Geheimnis der Google-App.",
        "Secret de l’application Google.",
    ),
];
