//! The reference page, made from the registry.

use std::fmt::Write;

use crate::registry::{self, Default, Reaction, Required, Role, Section, Use, Var};
use crate::words::{Lang, Words, words};

pub(crate) const TITLE: Words =
    words("Environment reference", "Referenz der Umgebungsvariablen", "Référence des variables d’environnement");

pub(crate) const HEADS: [Words; 5] = [
    words("Variable", "Variable", "Variable"),
    words("Default", "Standard", "Défaut"),
    words("Value", "Wert", "Valeur"),
    words("Read by", "Gelesen von", "Lue par"),
    words("Purpose", "Zweck", "Rôle"),
];

pub(crate) const INTRO: Words = words(
    "\
Tale is configured by the environment of its process. The program reads no `.env` file itself: a
container definition, `env_file:` in compose, `EnvironmentFile=` in systemd or a secret manager hands
the values over. [.env.example](../.env.example) is a file to start from.

- **A change needs a new process.** Recreate the container; restarting one keeps its old environment.
- **An empty value counts as unset.** Compose passes unset variables as empty ones. The one exception is
  `TALE_ORGANIZATION_CREATORS`, where empty means nobody.
- **Every secret can come from a file.** For a secret `X`, `X_FILE` names a file whose first line is the
  value. Setting both is refused. Names that end in `_FILE` by themselves keep their meaning.
- **Nothing wrong goes unsaid.** A role checks everything before it starts, lists all problems at once and
  exits with code 78. A value of a secret is never shown.
- **Nothing pretends to work.** Variables of parts that this release does not contain are recognized, and
  the check says that they have no effect.

`tale env` answers questions about one environment: `list`, `show NAME`, `check`, `effective`, `diff`
and `example`; see [Operating](operating.md#configuration).
",
    "\
Tale wird über die Umgebung seines Prozesses konfiguriert. Das Programm liest selbst keine `.env`-Datei:
Eine Container-Definition, `env_file:` in Compose, `EnvironmentFile=` in systemd oder eine
Geheimnisverwaltung übergibt die Werte. [.env.example](../.env.example) ist eine Datei für den Anfang.

- **Eine Änderung braucht einen neuen Prozess.** Erzeuge den Container neu; ein Neustart behält die alte
  Umgebung.
- **Ein leerer Wert gilt als nicht gesetzt.** Compose übergibt nicht gesetzte Variablen als leere. Die eine
  Ausnahme ist `TALE_ORGANIZATION_CREATORS`: Dort heißt leer niemand.
- **Jedes Geheimnis kann aus einer Datei kommen.** Für ein Geheimnis `X` nennt `X_FILE` eine Datei, deren
  erste Zeile der Wert ist. Beides zu setzen wird abgelehnt. Namen, die von sich aus auf `_FILE` enden,
  behalten ihre Bedeutung.
- **Kein Fehler bleibt verschwiegen.** Eine Rolle prüft alles, bevor sie startet, nennt alle Probleme auf
  einmal und endet mit dem Code 78. Der Wert eines Geheimnisses wird nie gezeigt.
- **Nichts gibt vor zu wirken.** Variablen von Teilen, die diese Version nicht enthält, werden erkannt, und
  die Prüfung sagt, dass sie keine Wirkung haben.

`tale env` beantwortet Fragen zu einer Umgebung: `list`, `show NAME`, `check`, `effective`, `diff` und
`example`; siehe [Operating](operating.md#configuration) (englisch).
",
    "\
Tale se configure par l’environnement de son processus. Le programme ne lit lui-même aucun fichier `.env` :
une définition de conteneur, `env_file:` dans compose, `EnvironmentFile=` dans systemd ou un gestionnaire de
secrets fournit les valeurs. [.env.example](../.env.example) sert de point de départ.

- **Un changement demande un nouveau processus.** Recrée le conteneur ; un redémarrage conserve l’ancien
  environnement.
- **Une valeur vide compte comme non définie.** Compose transmet les variables non définies comme vides. La
  seule exception est `TALE_ORGANIZATION_CREATORS`, où vide signifie personne.
- **Chaque secret peut venir d’un fichier.** Pour un secret `X`, `X_FILE` nomme un fichier dont la première
  ligne est la valeur. Définir les deux est refusé. Les noms qui finissent d’eux-mêmes par `_FILE` gardent
  leur sens.
- **Aucune erreur n’est passée sous silence.** Un rôle vérifie tout avant de démarrer, énumère tous les
  problèmes d’un coup et se termine avec le code 78. La valeur d’un secret n’est jamais affichée.
- **Rien ne fait semblant d’agir.** Les variables des parties absentes de cette version sont reconnues, et la
  vérification dit qu’elles sont sans effet.

`tale env` répond aux questions sur un environnement : `list`, `show NAME`, `check`, `effective`, `diff` et
`example` ; voir [Operating](operating.md#configuration) (en anglais).
",
);

/// The page in `lang`.
#[must_use]
pub fn reference(lang: Lang) -> String {
    let mut out = format!(
        "<!-- Made from crates/env/src/registry by `make env-reference`. Do not edit. -->\n\n# {}\n\n",
        TITLE.get(lang)
    );
    let others = Lang::ALL.into_iter().filter(|other| *other != lang).map(|other| {
        let (name, file) = match other {
            Lang::En => ("English", "environment-reference.md"),
            Lang::De => ("Deutsch", "environment-reference.de.md"),
            Lang::Fr => ("Français", "environment-reference.fr.md"),
        };
        format!("[{name}]({file})")
    });
    let _ = writeln!(out, "{}\n\n{}", others.collect::<Vec<_>>().join(" · "), INTRO.get(lang));
    for &section in Section::ALL {
        let _ = writeln!(out, "## {}\n", section.title().get(lang));
        let heads: Vec<&str> = HEADS.iter().map(|head| head.get(lang)).collect();
        let _ = writeln!(out, "| {} |\n|{}", heads.join(" | "), " --- |".repeat(heads.len()));
        for var in registry::vars().filter(|var| var.section == section) {
            let cells = [
                format!("`{}`", var.name),
                default_cell(var, lang),
                var.kind.describe(lang),
                var.roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", "),
                purpose(var, lang),
            ];
            let _ = writeln!(out, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

pub(crate) fn default_cell(var: &Var, lang: Lang) -> String {
    match var.default {
        Default::Unset => String::from("–"),
        Default::Value(value) => format!("`{value}`"),
        Default::Derived(words) => words.get(lang).to_owned(),
    }
}

/// The help with everything that holds besides.
#[must_use]
pub fn purpose(var: &Var, lang: Lang) -> String {
    let mut parts = vec![var.help.get(lang).to_owned()];
    parts.extend(remarks(var, lang));
    if let Some(reason) = var.usage.reason().filter(|_| !matches!(var.usage, Use::Obsolete | Use::Session)) {
        parts.push(format!("*{}*", reason.get(lang)));
    }
    parts.join(" ")
}

/// Required, secret, and what an unusable value does, where it is not the usual.
fn remarks(var: &Var, lang: Lang) -> Vec<String> {
    let mut parts = Vec::new();
    if var.is_read() {
        match var.required {
            Required::No => {}
            Required::Always => {
                parts.push(words("**Required.**", "**Erforderlich.**", "**Obligatoire.**").get(lang).to_owned())
            }
            Required::Unless(others) => {
                let list = others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", ");
                parts.push(match lang {
                    Lang::En => format!("**Required** unless {list} is set."),
                    Lang::De => format!("**Erforderlich**, wenn {list} nicht gesetzt ist."),
                    Lang::Fr => format!("**Obligatoire** si {list} n’est pas définie."),
                });
            }
        }
    }
    if var.secret {
        parts.push(words("Secret.", "Geheim.", "Secrète.").get(lang).to_owned());
    }
    if var.is_read() && !matches!(var.reaction, Reaction::Refuse | Reaction::Ignore) {
        let reaction = var.reaction.words().get(lang);
        parts.push(match lang {
            Lang::En => format!("With an unusable value, Tale {reaction}."),
            Lang::De => format!("Bei einem unbrauchbaren Wert: {reaction}."),
            Lang::Fr => format!("Valeur inutilisable : {reaction}."),
        });
    }
    parts
}

/// The roles that read `var`, in words.
#[must_use]
pub fn readers(var: &Var) -> String {
    match var.roles.is_empty() {
        true => "nobody".to_owned(),
        false => var.roles.iter().map(|role: &Role| role.name()).collect::<Vec<_>>().join(", "),
    }
}
