//! The default object store.

use super::{BACKEND, KEEPERS, Role, Section, Var};
use crate::kind::Kind;

const fn v(name: &'static str, roles: &'static [Role], kind: Kind) -> Var {
    Var::new(name, Section::ObjectStore, roles, kind)
}

const HTTP: Kind = Kind::Url(&["https", "http"]);
const STORE: &[Role] = &[Role::ObjectStore];

/// `OBJECT_STORE_ENDPOINT`.
pub const OBJECT_STORE_ENDPOINT: Var = v("OBJECT_STORE_ENDPOINT", BACKEND, HTTP)
    .derived(
        "AWS S3 in OBJECT_STORE_REGION; with `tale dev` its own store",
        "AWS S3 in OBJECT_STORE_REGION; mit `tale dev` dessen eigener Speicher",
        "AWS S3 dans OBJECT_STORE_REGION ; avec `tale dev`, son propre stockage",
    )
    .example("http://object-store:9000")
    .help(
        "Address at which this process reaches the S3-compatible store. Leave it out for AWS S3.",
        "Adresse, unter der dieser Prozess den S3-kompatiblen Speicher erreicht. Für AWS S3 weglassen.",
        "Adresse à laquelle ce processus joint le stockage compatible S3. À omettre pour AWS S3.",
    );

/// `OBJECT_STORE_ACCESS_KEY`.
pub const OBJECT_STORE_ACCESS_KEY: Var =
    v("OBJECT_STORE_ACCESS_KEY", KEEPERS, Kind::Word).secret().example("tale").help(
        "Access key of the object store. Without both keys there is no store and uploads are refused.",
        "Zugriffsschlüssel des Objektspeichers. Ohne beide Schlüssel gibt es keinen Speicher, und Uploads werden abgelehnt.",
        "Clé d’accès du stockage d’objets. Sans les deux clés, il n’y a pas de stockage et les envois sont refusés.",
    );

/// `OBJECT_STORE_SECRET_KEY`.
pub const OBJECT_STORE_SECRET_KEY: Var = v("OBJECT_STORE_SECRET_KEY", KEEPERS, Kind::Secret { min: 1 })
    .secret()
    .example("tale_object_store_change_me")
    .placeholders(&["tale_object_store_change_me"])
    .help(
        "Secret key of the object store. A key that may read, write and delete objects is enough when the bucket exists.",
        "Geheimer Schlüssel des Objektspeichers. Darf er Objekte lesen, schreiben und löschen, genügt das, wenn der Bucket existiert.",
        "Clé secrète du stockage d’objets. Une clé qui peut lire, écrire et supprimer des objets suffit si le bucket existe.",
    );

/// `OBJECT_STORE_BUCKET`.
pub const OBJECT_STORE_BUCKET: Var = v(
    "OBJECT_STORE_BUCKET",
    &[Role::BackendApi, Role::BackendWorker, Role::All, Role::Proxy, Role::ObjectStore],
    Kind::Bucket,
)
.value("tale-blobs")
.help(
    "The bucket. It is created when it is missing and the key allows it.",
    "Der Bucket. Er wird angelegt, wenn er fehlt und der Schlüssel es erlaubt.",
    "Le bucket. Il est créé s’il manque et si la clé le permet.",
);

/// `OBJECT_STORE_REGION`.
pub const OBJECT_STORE_REGION: Var = v("OBJECT_STORE_REGION", BACKEND, Kind::Word).value("us-east-1").help(
    "Region that requests are signed for. On AWS it must be the bucket's.",
    "Region, für die Anfragen signiert werden. Bei AWS muss es die des Buckets sein.",
    "Région pour laquelle les requêtes sont signées. Chez AWS, ce doit être celle du bucket.",
);

/// `OBJECT_STORE_FORCE_PATH_STYLE`.
pub const OBJECT_STORE_FORCE_PATH_STYLE: Var = v("OBJECT_STORE_FORCE_PATH_STYLE", BACKEND, Kind::Bool)
    .derived(
        "true with OBJECT_STORE_ENDPOINT, false without",
        "true mit OBJECT_STORE_ENDPOINT, sonst false",
        "true avec OBJECT_STORE_ENDPOINT, false sans",
    )
    .help(
        "Whether objects are addressed as endpoint/bucket/key instead of bucket.endpoint/key.",
        "Ob Objekte als Endpunkt/Bucket/Schlüssel statt Bucket.Endpunkt/Schlüssel adressiert werden.",
        "Indique si les objets sont adressés endpoint/bucket/clé au lieu de bucket.endpoint/clé.",
    );

/// `OBJECT_STORE_PREFIX`.
pub const OBJECT_STORE_PREFIX: Var = v("OBJECT_STORE_PREFIX", BACKEND, Kind::KeyPrefix)
    .derived("none (bucket root)", "keines (Wurzel des Buckets)", "aucun (racine du bucket)")
    .help(
        "Prefix of every key, so that other data can share the bucket.",
        "Präfix jedes Schlüssels, damit andere Daten im selben Bucket liegen können.",
        "Préfixe de chaque clé, pour partager le bucket avec d’autres données.",
    );

/// `OBJECT_STORE_UPSTREAM`.
pub const OBJECT_STORE_UPSTREAM: Var =
    v("OBJECT_STORE_UPSTREAM", &[Role::Proxy], Kind::HostPort).value("object-store:9000").help(
        "Where the proxy sends the path of the bucket.",
        "Wohin der Proxy den Pfad des Buckets weiterleitet.",
        "Destination vers laquelle le proxy transmet le chemin du bucket.",
    );

/// `OBJECT_STORE_PUBLIC_ENDPOINT`.
pub const OBJECT_STORE_PUBLIC_ENDPOINT: Var = v("OBJECT_STORE_PUBLIC_ENDPOINT", super::WEB_AND_BACKEND, HTTP)
    .derived(
        "the endpoint itself; with `tale dev` SITE_URL",
        "der Endpunkt selbst; mit `tale dev` SITE_URL",
        "l’endpoint lui-même ; avec `tale dev`, SITE_URL",
    )
    .help(
        "Address under which browsers reach the store. If it is one of the site's origins, links are signed for the origin the browser is on.",
        "Adresse, unter der Browser den Speicher erreichen. Ist sie eine Origin der Site, werden Links für die Origin signiert, auf der der Browser ist.",
        "Adresse à laquelle les navigateurs joignent le stockage. Si c’est une origine du site, les liens sont signés pour l’origine où se trouve le navigateur.",
    );

/// `MINIO_ROOT_USER`.
pub const MINIO_ROOT_USER: Var = v("MINIO_ROOT_USER", STORE, Kind::Word)
    .secret()
    .derived("OBJECT_STORE_ACCESS_KEY", "OBJECT_STORE_ACCESS_KEY", "OBJECT_STORE_ACCESS_KEY")
    .help(
        "Access key that `tale serve object-store` accepts, when it is another one than the backend's.",
        "Zugriffsschlüssel, den `tale serve object-store` annimmt, wenn er ein anderer ist als der des Backends.",
        "Clé d’accès que `tale serve object-store` accepte, si elle diffère de celle du backend.",
    );

/// `MINIO_ROOT_PASSWORD`.
pub const MINIO_ROOT_PASSWORD: Var = v("MINIO_ROOT_PASSWORD", STORE, Kind::Secret { min: 1 })
    .secret()
    .derived("OBJECT_STORE_SECRET_KEY", "OBJECT_STORE_SECRET_KEY", "OBJECT_STORE_SECRET_KEY")
    .help(
        "Secret key that `tale serve object-store` accepts, when it is another one than the backend's.",
        "Geheimer Schlüssel, den `tale serve object-store` annimmt, wenn er ein anderer ist als der des Backends.",
        "Clé secrète que `tale serve object-store` accepte, si elle diffère de celle du backend.",
    );

pub(super) const OBJECT_STORE: &[Var] = &[
    OBJECT_STORE_ENDPOINT,
    OBJECT_STORE_ACCESS_KEY,
    OBJECT_STORE_SECRET_KEY,
    OBJECT_STORE_BUCKET,
    OBJECT_STORE_REGION,
    OBJECT_STORE_FORCE_PATH_STYLE,
    OBJECT_STORE_PREFIX,
    OBJECT_STORE_PUBLIC_ENDPOINT,
    OBJECT_STORE_UPSTREAM,
    MINIO_ROOT_USER,
    MINIO_ROOT_PASSWORD,
    v("MINIO_BROWSER", STORE, Kind::OneOf(&["on", "off"]))
        .value("off")
        .accepted(
            "The store of Tale has no console.",
            "Der Speicher von Tale hat keine Konsole.",
            "Le stockage de Tale n’a pas de console.",
        )
        .help("Console of the bundled store.", "Konsole des mitgelieferten Speichers.", "Console du stockage fourni."),
];
