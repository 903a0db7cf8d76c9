//! Both databases.

use super::{API, BACKEND, Part, Reaction, Role, Section, Var, WITH_GATEWAY};
use crate::kind::{Kind, Unit};

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Database, roles, kind)
}

const WITH_DB: &[Role] = &[Role::Db, Role::BackendApi, Role::BackendWorker, Role::All, Role::LlmGateway, Role::Cli];
const WITH_DBS: &[Role] = &[Role::Db, Role::BackendApi, Role::BackendWorker, Role::All, Role::Cli];
const POOL: Kind = Kind::Integer { min: 2, max: 100, unit: Unit::Plain };

/// `DATABASE_URL`.
pub const DATABASE_URL: Var =
    v("DATABASE_URL", WITH_GATEWAY, Kind::Postgres)
        .secret()
        .derived(
            "made from DB_PASSWORD; with `tale dev` its private database",
            "aus DB_PASSWORD gebildet; mit `tale dev` dessen private Datenbank",
            "formée à partir de DB_PASSWORD ; avec `tale dev`, sa base privée",
        )
        .unless(&["DB_PASSWORD"])
        .help(
            "Connection of the application database. Its role must be allowed to create schemas. Use a direct connection or a proxy that keeps sessions.",
            "Verbindung der Anwendungsdatenbank. Ihre Rolle muss Schemas anlegen dürfen. Nimm eine direkte Verbindung oder einen Proxy, der Sitzungen erhält.",
            "Connexion de la base applicative. Son rôle doit pouvoir créer des schémas. Utilise une connexion directe ou un proxy qui conserve les sessions.",
        );

/// `KNOWLEDGE_DATABASE_URL`.
pub const KNOWLEDGE_DATABASE_URL: Var = v("KNOWLEDGE_DATABASE_URL", BACKEND, Kind::Postgres)
    .secret()
    .derived(
        "made from DB_PASSWORD; with `tale dev` its private database",
        "aus DB_PASSWORD gebildet; mit `tale dev` dessen private Datenbank",
        "formée à partir de DB_PASSWORD ; avec `tale dev`, sa base privée",
    )
    .unless(&["DB_PASSWORD"])
    .help(
        "Connection of the knowledge database, which holds passages and vectors. It needs the extension `vector`; another URL moves no data.",
        "Verbindung der Wissensdatenbank mit Textstellen und Vektoren. Sie braucht die Erweiterung `vector`; eine andere URL verschiebt keine Daten.",
        "Connexion de la base de connaissances, qui contient passages et vecteurs. Elle exige l’extension `vector` ; changer d’URL ne déplace aucune donnée.",
    );

/// `DB_PASSWORD`.
pub const DB_PASSWORD: Var =
    v("DB_PASSWORD", WITH_DB, Kind::Secret { min: 1 })
    .secret()
    .example("tale_password_change_me")
    .placeholders(&["tale_password_change_me"])
    .help(
        "Password from which the connection URLs are made that are not set: host `db` for the application database, `knowledge-db` for the knowledge database.",
        "Passwort, aus dem nicht gesetzte Verbindungs-URLs gebildet werden: Host `db` für die Anwendungsdatenbank, `knowledge-db` für die Wissensdatenbank.",
        "Mot de passe à partir duquel sont formées les URL de connexion non définies : hôte `db` pour la base applicative, `knowledge-db` pour la base de connaissances.",
    );

/// `POSTGRES_USER`.
pub const POSTGRES_USER: Var = v("POSTGRES_USER", WITH_DB, Kind::DatabaseName).value("tale").help(
    "User in the connection URLs that are made from DB_PASSWORD.",
    "Benutzer in den Verbindungs-URLs, die aus DB_PASSWORD gebildet werden.",
    "Utilisateur dans les URL de connexion formées à partir de DB_PASSWORD.",
);

/// `APP_DB_NAME`.
pub const APP_DB_NAME: Var = v("APP_DB_NAME", WITH_DB, Kind::DatabaseName).value("tale_app").help(
    "Name of the application database in the URL made from DB_PASSWORD.",
    "Name der Anwendungsdatenbank in der aus DB_PASSWORD gebildeten URL.",
    "Nom de la base applicative dans l’URL formée à partir de DB_PASSWORD.",
);

/// `KNOWLEDGE_DB_NAME`.
pub const KNOWLEDGE_DB_NAME: Var = v("KNOWLEDGE_DB_NAME", WITH_DBS, Kind::DatabaseName).value("tale_knowledge").help(
    "Name of the knowledge database in the URL made from DB_PASSWORD.",
    "Name der Wissensdatenbank in der aus DB_PASSWORD gebildeten URL.",
    "Nom de la base de connaissances dans l’URL formée à partir de DB_PASSWORD.",
);

/// `DB_PORT`.
pub const DB_PORT: Var = v("DB_PORT", WITH_GATEWAY, Kind::Port { zero: false }).value("5432").help(
    "Port in the connection URLs that are made from DB_PASSWORD.",
    "Port in den Verbindungs-URLs, die aus DB_PASSWORD gebildet werden.",
    "Port dans les URL de connexion formées à partir de DB_PASSWORD.",
);

/// `DATABASE_POOL_MAX`.
pub const DATABASE_POOL_MAX: Var = v("DATABASE_POOL_MAX", WITH_GATEWAY, POOL).value("10").help(
    "Most connections of one process to the application database; three more serve notifications, jobs and migrations.",
    "Höchstzahl der Verbindungen eines Prozesses zur Anwendungsdatenbank; drei weitere dienen Benachrichtigungen, Jobs und Migrationen.",
    "Nombre maximal de connexions d’un processus à la base applicative ; trois de plus servent aux notifications, aux tâches et aux migrations.",
);

/// `KNOWLEDGE_DB_POOL_MAX`.
pub const KNOWLEDGE_DB_POOL_MAX: Var = v("KNOWLEDGE_DB_POOL_MAX", BACKEND, POOL).value("10").help(
    "Most connections of one process to the knowledge database. Keep it at or above WORKER_CONCURRENCY. To a database that an organization names for itself five at most, and sixteen such databases at a time.",
    "Höchstzahl der Verbindungen eines Prozesses zur Wissensdatenbank. Mindestens so groß wie WORKER_CONCURRENCY. Zu einer Datenbank, die eine Organisation selbst nennt, höchstens fünf, und zu sechzehn solchen gleichzeitig.",
    "Nombre maximal de connexions d’un processus à la base de connaissances. Au moins égal à WORKER_CONCURRENCY. À une base qu’une organisation désigne elle-même, cinq au plus, et seize de ces bases à la fois.",
);

/// `POSTGRES_CA_FILE`.
pub const POSTGRES_CA_FILE: Var = v("POSTGRES_CA_FILE", WITH_GATEWAY, Kind::File).help(
    "PEM bundle of roots that Postgres servers are verified against besides the public ones, when their URL or the settings of an organization’s own database say sslmode=verify-ca or verify-full.",
    "PEM-Bündel mit Wurzelzertifikaten, gegen die Postgres-Server neben den öffentlichen geprüft werden, wenn ihre URL oder die Einstellungen der eigenen Datenbank einer Organisation sslmode=verify-ca oder verify-full nennen.",
    "Fichier PEM de racines avec lesquelles les serveurs Postgres sont vérifiés, en plus des racines publiques, si leur URL, ou les paramètres de la base propre à une organisation, indiquent sslmode=verify-ca ou verify-full.",
);

/// `KNOWLEDGE_INDEX_REPAIR_INLINE_MAX_BYTES`.
pub const KNOWLEDGE_INDEX_REPAIR_INLINE_MAX_BYTES: Var =
    v("KNOWLEDGE_INDEX_REPAIR_INLINE_MAX_BYTES", BACKEND, Kind::Integer { min: 0, max: u64::MAX, unit: Unit::Bytes })
        .value("1073741824")
        .reaction(Reaction::UseDefault)
        .help(
            "Largest damaged keyword index whose repair searches wait for. While a larger one is built anew in the background, they answer without keywords and say so. 0 repairs every index in the background.",
            "Größter beschädigter Stichwortindex, auf dessen Reparatur Suchen warten. Während ein größerer im Hintergrund neu erstellt wird, antworten sie ohne Stichwörter und sagen es. 0 repariert jeden Index im Hintergrund.",
            "Plus grand index de mots-clés endommagé dont les recherches attendent la réparation. Pendant qu’un plus grand est refait en arrière-plan, elles répondent sans mots-clés et le disent. 0 répare tout index en arrière-plan.",
        );

/// `KNOWLEDGE_INDEX_REPAIR_DISABLED`.
pub const KNOWLEDGE_INDEX_REPAIR_DISABLED: Var = v("KNOWLEDGE_INDEX_REPAIR_DISABLED", BACKEND, Kind::Bool)
    .reaction(Reaction::Off)
    .help(
        "Turns off the verification and the repair of the keyword indexes. It repairs nothing: searches may miss passages or answer without keywords.",
        "Schaltet Prüfung und Reparatur der Stichwortindizes ab. Es repariert nichts: Suchen können Passagen übersehen oder ohne Stichwörter antworten.",
        "Désactive la vérification et la réparation des index de mots-clés. Cela ne répare rien : les recherches peuvent manquer des passages ou répondre sans mots-clés.",
    );

pub(super) const DATABASE: &[Var] = &[
    DATABASE_URL,
    KNOWLEDGE_DATABASE_URL,
    DB_PASSWORD,
    POSTGRES_USER,
    APP_DB_NAME,
    KNOWLEDGE_DB_NAME,
    DB_PORT,
    DATABASE_POOL_MAX,
    KNOWLEDGE_DB_POOL_MAX,
    POSTGRES_CA_FILE,
    v("AUTH_DATABASE_POOL_MAX", API, Kind::Integer { min: 1, max: u64::MAX, unit: Unit::Plain })
        .value("5")
        .accepted(
            "Sessions are read through the one pool of DATABASE_POOL_MAX; there is no second one to size.",
            "Sitzungen werden über den einen Pool von DATABASE_POOL_MAX gelesen; ein zweiter ist nicht zu bemessen.",
            "Les sessions sont lues par l’unique pool de DATABASE_POOL_MAX ; il n’y en a pas de second à dimensionner.",
        )
        .help(
            "Size of a separate pool for reading sessions.",
            "Größe eines eigenen Pools zum Lesen der Sitzungen.",
            "Taille d’un pool distinct pour lire les sessions.",
        ),
    KNOWLEDGE_INDEX_REPAIR_INLINE_MAX_BYTES,
    KNOWLEDGE_INDEX_REPAIR_DISABLED,
    v("KNOWLEDGE_CRAWL_DOCUMENT_MAX_BYTES", BACKEND, Kind::Integer { min: 1_048_576, max: u64::MAX, unit: Unit::Bytes })
        .value("104857600")
        .reaction(Reaction::UseDefault)
        .not_yet(Part::Crawler)
        .help(
            "Largest document that the website crawler downloads.",
            "Größtes Dokument, das der Website-Crawler herunterlädt.",
            "Plus grand document que le robot d’exploration télécharge.",
        ),
    v("POSTGRES_DB", &[Role::Db], Kind::DatabaseName).value("tale")
        .accepted(
            "The image of Tale makes the two databases and no other; its probe needs none of that name.",
            "Das Image von Tale legt die beiden Datenbanken an und keine weitere; seine Prüfung braucht keine dieses Namens.",
            "L’image de Tale crée les deux bases et aucune autre ; sa sonde n’en exige aucune de ce nom.",
        )
        .help(
        "First database of the bundled Postgres, used by its health probe.",
        "Erste Datenbank des mitgelieferten Postgres, von dessen Zustandsprüfung benutzt.",
        "Première base du Postgres fourni, utilisée par sa sonde d’état.",
    ),
    v("TALE_DB_ROLE", &[Role::Db], Kind::OneOf(&["platform", "knowledge"])).help(
        "Which databases the image of Postgres creates; unset means both.",
        "Welche Datenbanken das Image von Postgres anlegt; nicht gesetzt heißt beide.",
        "Bases que l’image de Postgres crée ; non définie signifie les deux.",
    ),
];
