//! Transcripts of video links.

use super::{Part, Section, Var, WORKER};
use crate::kind::Kind;

const fn v(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::VideoIngestion, WORKER, kind).not_yet(Part::Video)
}

pub(super) const VIDEO_INGESTION: &[Var] = &[
    v("VIDEO_INGEST_PROXY_URL", Kind::Url(&["http", "https", "socks4", "socks4a", "socks5", "socks5h"])).secret().help(
        "Proxy for requests to video sites.",
        "Proxy für Anfragen an Videoseiten.",
        "Proxy pour les requêtes aux sites de vidéos.",
    ),
    v("VIDEO_INGEST_POT_PROVIDER_URL", Kind::Url(&["http", "https"])).value("http://bgutil-provider:4416").help(
        "Service that provides proof-of-origin tokens.",
        "Dienst, der Herkunftsnachweise liefert.",
        "Service qui fournit des preuves d’origine.",
    ),
    v("VIDEO_INGEST_FETCH_POT", Kind::OneOf(&["never", "auto", "always"])).value("always").help(
        "When such tokens are asked for.",
        "Wann solche Nachweise verlangt werden.",
        "Quand ces preuves sont demandées.",
    ),
    v("VIDEO_INGEST_YTDLP_PLUGIN_DIRS", Kind::Directory).value("/opt/yt-dlp/plugins").help(
        "Directory of the downloader's plugins.",
        "Verzeichnis der Plugins des Downloaders.",
        "Répertoire des extensions du téléchargeur.",
    ),
    v("VIDEO_INGEST_COOKIES_FILE", Kind::File).help(
        "Cookies of a session that may see the videos. The file is as sensitive as a password.",
        "Cookies einer Sitzung, die die Videos sehen darf. Die Datei ist so schützenswert wie ein Passwort.",
        "Cookies d’une session autorisée à voir les vidéos. Le fichier est aussi sensible qu’un mot de passe.",
    ),
    v("VIDEO_INGEST_PLAYER_CLIENT", Kind::Word).value("default,tv_simply").help(
        "Player clients, tried in this order.",
        "Player-Clients, in dieser Reihenfolge versucht.",
        "Clients de lecture, essayés dans cet ordre.",
    ),
    v("VIDEO_INGEST_PO_TOKEN", Kind::Secret { min: 1 }).secret().help(
        "A fixed token, for tests.",
        "Ein fester Nachweis, für Tests.",
        "Une preuve fixe, pour les tests.",
    ),
    v("VIDEO_INGEST_IMPERSONATE", Kind::Word).help(
        "Browser whose TLS fingerprint is imitated.",
        "Browser, dessen TLS-Fingerabdruck nachgeahmt wird.",
        "Navigateur dont l’empreinte TLS est imitée.",
    ),
    v("VIDEO_INGEST_BIN_DIR", Kind::Directory).help(
        "Directory that comes first in the downloader's PATH.",
        "Verzeichnis, das im PATH des Downloaders zuerst kommt.",
        "Répertoire placé en tête du PATH du téléchargeur.",
    ),
    v("VIDEO_INGEST_FFMPEG_LOCATION", Kind::File).value("/usr/bin/ffmpeg").help(
        "The ffmpeg that reads subtitles and sound.",
        "Das ffmpeg, das Untertitel und Ton liest.",
        "Le ffmpeg qui lit les sous-titres et le son.",
    ),
];
