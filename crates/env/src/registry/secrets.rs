//! Secrets of the instance, the audit pepper, and secrets of providers.

use super::{BACKEND, BACKEND_AND_SPAWNER, NOBODY, Part, Reaction, Role, Section, Var, WITH_GATEWAY};
use crate::kind::Kind;

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::Secrets, roles, kind).secret()
}

const fn provider(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::ProviderSecrets, roles, kind)
}

const fn made_by_dev(var: Var) -> Var {
    var.derived("none; `tale dev` makes one", "keiner; `tale dev` erzeugt einen", "aucune ; `tale dev` en crée une")
}

const WEB_AND_BACKEND: &[Role] = super::WEB_AND_BACKEND;

/// A key of the example file. It is public.
const EXAMPLE_KEY: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";
/// Another one, so that the two differ.
const EXAMPLE_ROOT: &str = "decade00decade00decade00decade00decade00decade00decade00decade00";

/// `BETTER_AUTH_SECRET`.
pub const BETTER_AUTH_SECRET: Var = made_by_dev(v("BETTER_AUTH_SECRET", BACKEND, Kind::Secret { min: 16 }))
    .required()
    .example("change-me-with-openssl-rand-base64-32")
    .placeholders(&["change-me-with-openssl-rand-base64-32"])
    .help(
        "Key under which sessions are stored. The same on every replica; a change ends every session. `openssl rand -base64 32` makes one.",
        "Schlüssel, unter dem Sitzungen gespeichert werden. Auf allen Replikaten gleich; ein Wechsel beendet alle Sitzungen. `openssl rand -base64 32` erzeugt einen.",
        "Clé sous laquelle les sessions sont stockées. Identique sur chaque réplica ; un changement met fin à toutes les sessions. `openssl rand -base64 32` en crée une.",
    );

/// `ENCRYPTION_SECRET_HEX`.
pub const ENCRYPTION_SECRET_HEX: Var = made_by_dev(v("ENCRYPTION_SECRET_HEX", WITH_GATEWAY, Kind::HexKey))
    .unless(&["ENCRYPTION_SECRET"])
    .example(EXAMPLE_KEY)
    .placeholders(&[EXAMPLE_KEY])
    .help(
        "Key that encrypts provider keys and other secrets in the database (AES-256-GCM). `openssl rand -hex 32` makes one; without it what is stored cannot be read.",
        "Schlüssel, mit dem Anbieterschlüssel und andere Geheimnisse in der Datenbank verschlüsselt sind (AES-256-GCM). `openssl rand -hex 32` erzeugt einen; ohne ihn ist das Gespeicherte nicht lesbar.",
        "Clé qui chiffre les clés des fournisseurs et d’autres secrets en base (AES-256-GCM). `openssl rand -hex 32` en crée une ; sans elle, ce qui est stocké est illisible.",
    );

/// `ENCRYPTION_SECRET`.
pub const ENCRYPTION_SECRET: Var = v("ENCRYPTION_SECRET", WITH_GATEWAY, Kind::Base64Key).help(
    "The same key in base64. It counts only while ENCRYPTION_SECRET_HEX is unset.",
    "Derselbe Schlüssel in Base64. Er gilt nur, solange ENCRYPTION_SECRET_HEX nicht gesetzt ist.",
    "La même clé en base64. Elle ne compte que si ENCRYPTION_SECRET_HEX n’est pas définie.",
);

/// `ENCRYPTION_SECRET_PREVIOUS_HEX`.
pub const ENCRYPTION_SECRET_PREVIOUS_HEX: Var = v("ENCRYPTION_SECRET_PREVIOUS_HEX", WITH_GATEWAY, Kind::HexKeys).help(
    "Earlier keys. What was encrypted with one of them still opens.",
    "Frühere Schlüssel. Was mit einem von ihnen verschlüsselt wurde, lässt sich weiter öffnen.",
    "Clés antérieures. Ce qui a été chiffré avec l’une d’elles s’ouvre encore.",
);

/// `INSTANCE_SECRET`.
pub const INSTANCE_SECRET: Var = made_by_dev(v("INSTANCE_SECRET", BACKEND, Kind::HexKey))
    .required()
    .example(EXAMPLE_ROOT)
    .placeholders(&[EXAMPLE_ROOT])
    .help(
        "Root from which signing keys of this instance are derived, those of page cursors among them. `openssl rand -hex 32` makes one.",
        "Wurzel, aus der Signaturschlüssel dieser Instanz abgeleitet werden, auch die der Seitenmarken. `openssl rand -hex 32` erzeugt eine.",
        "Racine dont sont dérivées les clés de signature de cette instance, dont celles des curseurs de page. `openssl rand -hex 32` en crée une.",
    );

/// `SANDBOX_TOKEN`.
pub const SANDBOX_TOKEN: Var = v("SANDBOX_TOKEN", BACKEND_AND_SPAWNER, Kind::Secret { min: 1 }).help(
    "Shared secret with which the backend signs every call to the spawner.",
    "Gemeinsames Geheimnis, mit dem das Backend jeden Aufruf des Spawners signiert.",
    "Secret partagé avec lequel le backend signe chaque appel au spawner.",
);

/// `SANDBOX_TOKEN_PREVIOUS`.
pub const SANDBOX_TOKEN_PREVIOUS: Var =
    v("SANDBOX_TOKEN_PREVIOUS", &[Role::Sandbox], Kind::Secret { min: 1 }).secret().help(
        "The SANDBOX_TOKEN before, while it is changed: the spawner also takes calls signed with it, and reaches sessions that were started with it.",
        "Das vorherige SANDBOX_TOKEN während eines Wechsels: Der Spawner nimmt auch damit signierte Aufrufe an und erreicht Sitzungen, die damit gestartet wurden.",
        "Le SANDBOX_TOKEN précédent, le temps d’un changement : le spawner accepte aussi les appels signés avec lui et joint les sessions démarrées avec lui.",
    );

pub(super) const SECRETS: &[Var] = &[
    BETTER_AUTH_SECRET,
    ENCRYPTION_SECRET_HEX,
    ENCRYPTION_SECRET,
    ENCRYPTION_SECRET_PREVIOUS_HEX,
    INSTANCE_SECRET,
    Var::new("<SECRET>_FILE", Section::Secrets, BACKEND, Kind::File).help(
        "File whose first line is the value of the secret variable in front, for secret mounts: INSTANCE_SECRET_FILE=/run/secrets/instance. Set only one of the two.",
        "Datei, deren erste Zeile der Wert der davor genannten geheimen Variable ist, für eingehängte Geheimnisse: INSTANCE_SECRET_FILE=/run/secrets/instance. Setze nur eine von beiden.",
        "Fichier dont la première ligne est la valeur de la variable secrète nommée devant, pour les secrets montés : INSTANCE_SECRET_FILE=/run/secrets/instance. Ne définis que l’une des deux.",
    ),
    v("WEBDAV_APP_PASSWORD_HMAC_KEY", WEB_AND_BACKEND, Kind::Secret { min: 1 })
        .derived("derived from INSTANCE_SECRET", "aus INSTANCE_SECRET abgeleitet", "dérivée de INSTANCE_SECRET")
        .not_yet(Part::WebDav)
        .help(
            "Key that WebDAV app passwords are hashed with, independent of INSTANCE_SECRET.",
            "Schlüssel, mit dem WebDAV-App-Passwörter gehasht werden, unabhängig von INSTANCE_SECRET.",
            "Clé avec laquelle les mots de passe d’application WebDAV sont hachés, indépendamment de INSTANCE_SECRET.",
        ),
    SANDBOX_TOKEN,
    SANDBOX_TOKEN_PREVIOUS,
    SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD,
    SANDBOX_LLM_GATEWAY_ADMIN_USERNAME,
    v("BIFROST_SETUP_TOKEN", &[Role::LlmGateway], Kind::Secret { min: 1 })
        .accepted(
            "The gateway's image always replaced it by SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.",
            "Das Image des Gateways ersetzte ihn immer durch SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.",
            "L’image de la passerelle le remplaçait toujours par SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD.",
        )
        .help(
            "Setup token of a gateway without an administrator; operators never set it.",
            "Einrichtungstoken eines Gateways ohne Administrator; Betreiber setzen ihn nie.",
            "Jeton d’initialisation d’une passerelle sans administrateur ; un opérateur ne le définit jamais.",
        ),
];

/// `SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD`.
pub const SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD: Var =
    v("SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD", WITH_GATEWAY, Kind::Secret { min: 1 }).help(
        "Password of the model gateway's administration, the same on the backend and on the gateway. A gateway does not start without it; a backend without it hands no settings on.",
        "Passwort der Verwaltung des Modell-Gateways, gleich beim Backend und beim Gateway. Ohne es startet kein Gateway; ein Backend ohne es gibt keine Einstellungen weiter.",
        "Mot de passe d’administration de la passerelle de modèles, identique pour le backend et la passerelle. Sans lui, une passerelle ne démarre pas ; un backend ne transmet aucun réglage.",
    );

/// `SANDBOX_LLM_GATEWAY_ADMIN_USERNAME`.
pub const SANDBOX_LLM_GATEWAY_ADMIN_USERNAME: Var =
    Var::new("SANDBOX_LLM_GATEWAY_ADMIN_USERNAME", Section::Secrets, WITH_GATEWAY, Kind::Word).value("admin").help(
        "User name that goes with the password of the gateway's administration.",
        "Benutzername zum Passwort der Gateway-Verwaltung.",
        "Nom d’utilisateur associé au mot de passe d’administration de la passerelle.",
    );

/// `TALE_AUDIT_PEPPER`.
pub const TALE_AUDIT_PEPPER: Var =
    Var::new("TALE_AUDIT_PEPPER", Section::Audit, BACKEND, Kind::Secret { min: 16 })
        .secret()
        .derived("unset; `tale dev` makes one", "nicht gesetzt; `tale dev` erzeugt einen", "non définie ; `tale dev` en crée une")
        .reaction(Reaction::Off)
        .help(
            "Replaces e-mail addresses and networks of failed sign-ins in the audit log by keyed hashes. Unset, they are stored as they are.",
            "Ersetzt E-Mail-Adressen und Netze fehlgeschlagener Anmeldungen im Audit-Log durch Hashes mit Schlüssel. Ohne ihn stehen sie dort im Klartext.",
            "Remplace dans le journal d’audit les adresses e-mail et les réseaux des connexions échouées par des empreintes à clé. Sans elle, ils y figurent en clair.",
        );

pub(super) const AUDIT: &[Var] = &[
    TALE_AUDIT_PEPPER,
    Var::new("TALE_AUDIT_SIGNING_KEY", Section::Audit, NOBODY, Kind::Secret { min: 1 }).secret().obsolete().help(
        "Was generated by older releases.",
        "Wurde von älteren Versionen erzeugt.",
        "Était générée par des versions antérieures.",
    ),
    Var::new("TALE_AUDIT_SIGNING_KEY_PREVIOUS", Section::Audit, NOBODY, Kind::Secret { min: 1 })
        .secret()
        .obsolete()
        .help(
            "Was generated by older releases, too.",
            "Wurde ebenfalls von älteren Versionen erzeugt.",
            "Était elle aussi générée par des versions antérieures.",
        ),
];

/// `SOPS_AGE_KEY`.
pub const SOPS_AGE_KEY: Var = provider("SOPS_AGE_KEY", BACKEND, Kind::AgeKey).secret().help(
    "The age key that secret files are encrypted to. It wins over SOPS_AGE_KEY_FILE.",
    "Der age-Schlüssel, mit dem Geheimnisdateien verschlüsselt werden. Er hat Vorrang vor SOPS_AGE_KEY_FILE.",
    "La clé age avec laquelle les fichiers de secrets sont chiffrés. Elle l’emporte sur SOPS_AGE_KEY_FILE.",
);

/// `SOPS_AGE_KEY_FILE`.
pub const SOPS_AGE_KEY_FILE: Var = provider("SOPS_AGE_KEY_FILE", BACKEND, Kind::File).help(
    "File with one age key per line, as it is needed for a rotation.",
    "Datei mit einem age-Schlüssel je Zeile, wie sie für einen Schlüsselwechsel gebraucht wird.",
    "Fichier avec une clé age par ligne, nécessaire pour une rotation.",
);

/// `TALE_ENV_KEY_HOSTS`.
pub const TALE_ENV_KEY_HOSTS: Var = provider("TALE_ENV_KEY_HOSTS", WITH_GATEWAY, Kind::Text)
    .derived(
        "unset (the vendors of the catalogue, and private hosts where those are admitted)",
        "nicht gesetzt (die Anbieter des Katalogs, und private Hosts, wo diese zugelassen sind)",
        "non définie (les fournisseurs du catalogue, et les hôtes privés là où ils sont admis)",
    )
    .example("llm.example.com,TALE_PROVIDER_KEY_ACME=acme.example.com")
    .help(
        "Further hosts that keys from TALE_PROVIDER_KEY_* and TALE_TOKEN_SOURCE_* may be sent to, because people who manage providers choose addresses: entries separated by commas or white space, as `llm.example.com`, `*.openai.azure.com` or `llm.example.com:8443`. An entry `TALE_PROVIDER_KEY_ACME=acme.example.com` is about that key alone, which then goes nowhere else.",
        "Weitere Hosts, an die Schlüssel aus TALE_PROVIDER_KEY_* und TALE_TOKEN_SOURCE_* gesendet werden dürfen, denn Adressen wählt, wer Anbieter verwaltet: Einträge, durch Kommas oder Leerraum getrennt, wie `llm.example.com`, `*.openai.azure.com` oder `llm.example.com:8443`. Ein Eintrag `TALE_PROVIDER_KEY_ACME=acme.example.com` gilt nur für diesen Schlüssel, der dann nirgendwo sonst hingeht.",
        "Autres hôtes auxquels les clés de TALE_PROVIDER_KEY_* et TALE_TOKEN_SOURCE_* peuvent être envoyées, car ceux qui gèrent les fournisseurs choisissent les adresses : entrées séparées par des virgules ou des espaces, comme `llm.example.com`, `*.openai.azure.com` ou `llm.example.com:8443`. Une entrée `TALE_PROVIDER_KEY_ACME=acme.example.com` ne vaut que pour cette clé, qui ne va alors nulle part ailleurs.",
    );

pub(super) const PROVIDER_SECRETS: &[Var] = &[
    provider("TALE_PROVIDER_KEY_<NAME>", WITH_GATEWAY, Kind::Secret { min: 1 }).secret().help(
        "API key of a model provider whose credential names this variable instead of storing the key. The whole name has at most 40 characters.",
        "API-Schlüssel eines Modellanbieters, dessen Zugang diese Variable nennt, statt den Schlüssel zu speichern. Der ganze Name hat höchstens 40 Zeichen.",
        "Clé d’API d’un fournisseur de modèles dont l’identifiant nomme cette variable au lieu de stocker la clé. Le nom entier compte au plus 40 caractères.",
    ),
    provider("TALE_PROVIDER_KEY_LOCAL_INFERENCE", WITH_GATEWAY, Kind::Token { min: 32, max: 256 }).secret().help(
        "Key of a private inference service that was deployed together with Tale.",
        "Schlüssel eines privaten Inferenzdienstes, der zusammen mit Tale eingerichtet wurde.",
        "Clé d’un service d’inférence privé déployé avec Tale.",
    ),
    provider("TALE_TOKEN_SOURCE_<NAME>", BACKEND, Kind::Secret { min: 1 }).secret().help(
        "Secret with which a subscription credential signs in to its broker. The whole name has at most 60 characters.",
        "Geheimnis, mit dem sich ein Abonnement-Zugang bei seinem Vermittler anmeldet. Der ganze Name hat höchstens 60 Zeichen.",
        "Secret avec lequel un identifiant d’abonnement s’authentifie auprès de son courtier. Le nom entier compte au plus 60 caractères.",
    ),
    TALE_ENV_KEY_HOSTS,
    SOPS_AGE_KEY,
    SOPS_AGE_KEY_FILE,
];
