//! Answers for a person at a terminal.

use std::fmt::Write;

use tale_env::effective::{Effective, Shown};
use tale_env::reference::readers;
use tale_env::registry::{Default, Required, Section};
use tale_env::{EnvProblem, Environment, Lang, Origin, Role, Severity, Var};

use super::files::{Difference, Side, Subject};
use super::paper::{Ink, Paper, cut, padded};

/// Widest column of names; longer ones push their row.
const NAMES: usize = 36;
/// Widest column of values beside which a help text still has room.
const VALUES: usize = 22;

fn default_text(var: &Var) -> &'static str {
    match var.default {
        Default::Unset if var.secret => "secret",
        Default::Unset => "–",
        Default::Value(value) => value,
        Default::Derived(_) if var.secret => "secret",
        Default::Derived(words) => words.en,
    }
}

/// The table of `tale env list`, by section.
pub(super) fn list(paper: &Paper, vars: &[&Var], hidden: usize) -> String {
    let mut out = String::new();
    let names = vars.iter().map(|var| var.name.chars().count()).max().unwrap_or(0).min(NAMES);
    let narrow = paper.width < names + VALUES + 34;
    for &section in Section::ALL {
        let rows: Vec<&&Var> = vars.iter().filter(|var| var.section == section).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{} {}", paper.ink(Ink::Bold, section.title().en), paper.ink(Ink::Dim, section.name()));
        for var in rows {
            row(paper, &mut out, var, names, narrow);
        }
        out.push('\n');
    }
    let count = vars.len();
    let mut end = format!("{count} variable{}", if count == 1 { "" } else { "s" });
    if hidden > 0 {
        let _ = write!(end, "; {hidden} more are known but have no effect in this release (--all)");
    }
    let _ = writeln!(out, "{}. `tale env show NAME` explains one.", end);
    out
}

fn row(paper: &Paper, out: &mut String, var: &Var, names: usize, narrow: bool) {
    let ink = if var.is_read() { Ink::Cyan } else { Ink::Dim };
    let name = paper.ink(ink, &padded(var.name, names));
    let default = cut(default_text(var), VALUES);
    let mut help = var.help.en.to_owned();
    if !var.is_read() {
        let _ = write!(help, " ({})", var.usage.name());
    }
    if narrow || var.name.chars().count() > names {
        let _ = writeln!(out, "  {}  {}", name.trim_end(), paper.ink(Ink::Dim, &default));
        for line in paper.wrapped(&help, 6) {
            let _ = writeln!(out, "      {line}");
        }
        return;
    }
    let indent = 2 + names + 2 + VALUES + 2;
    for (index, line) in paper.wrapped(&help, indent).into_iter().enumerate() {
        let _ = match index {
            0 => writeln!(out, "  {name}  {}  {line}", paper.ink(Ink::Dim, &padded(&default, VALUES))),
            _ => writeln!(out, "{}{line}", " ".repeat(indent)),
        };
    }
}

/// Everything about one variable.
pub(super) fn show(paper: &Paper, env: &Environment, var: &'static Var, name: &str, lang: Lang) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}", paper.ink(Ink::Bold, name), paper.ink(Ink::Dim, var.section.title().get(lang)));
    for line in paper.wrapped(var.help.get(lang), 2) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
    let default = match var.default {
        Default::Unset => "–".to_owned(),
        Default::Value(value) => value.to_owned(),
        Default::Derived(words) => words.get(lang).to_owned(),
    };
    let required = match var.required {
        Required::No => "no".to_owned(),
        Required::Always => "yes".to_owned(),
        Required::Unless(others) => format!("unless {} is set", others.join(" or ")),
    };
    let effect = match var.usage.reason() {
        None => "read".to_owned(),
        Some(reason) => format!("no effect: {}", reason.get(lang)),
    };
    let secret = match var.secret {
        true => format!("yes; {name}_FILE may name a file that holds it"),
        false => "no".to_owned(),
    };
    let mut rows = vec![
        ("Form", var.kind.describe(lang)),
        ("Default", default),
        ("Read by", readers(var)),
        ("Required", required),
        ("Secret", secret),
        ("Unusable value", format!("Tale {}", var.reaction.words().get(Lang::En))),
        ("This release", effect),
        ("Since", var.since.to_owned()),
    ];
    if var.family().is_none() || var.name != name {
        rows.push(("Set here", now(env, var, name)));
    }
    for (label, text) in rows {
        for (index, line) in paper.wrapped(&text, 18).into_iter().enumerate() {
            let label = if index == 0 { padded(label, 14) } else { " ".repeat(14) };
            let _ = writeln!(out, "  {}  {line}", paper.ink(Ink::Dim, &label));
        }
    }
    out
}

/// The value in this environment, as it may be shown.
pub(super) fn now(env: &Environment, var: &Var, name: &str) -> String {
    match env.raw(name).filter(|raw| !raw.trim().is_empty()) {
        None => "no".to_owned(),
        Some(raw) => tale_env::reader::shown(var, raw).unwrap_or_else(|| "yes (a secret is not shown)".to_owned()),
    }
}

/// The findings of a check.
pub(super) fn check(paper: &Paper, found: &[EnvProblem], role: Role, read: &Subject) -> String {
    let mut out = findings(paper, found);
    let count = |severity, word: &str| {
        let number = found.iter().filter(|problem| problem.severity == severity).count();
        format!("{number} {word}{}", if number == 1 { "" } else { "s" })
    };
    let subject = read.file.as_deref().unwrap_or("this environment");
    let wrong = found.iter().any(|problem| problem.severity == Severity::Error);
    let verdict = match (wrong, role) {
        (true, _) => paper.ink(Ink::Red, &format!("the role {} would not start with {subject}", role.name())),
        (false, Role::All) => paper.ink(Ink::Green, &format!("the role {} can start with {subject}", role.name())),
        (false, _) => paper.ink(Ink::Green, &format!("nothing in {subject} is wrong for {}", role.name())),
    };
    let _ = writeln!(
        out,
        "{}, {}, {}: {verdict}.",
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
        count(Severity::Note, "note")
    );
    out
}

/// What several processes do not agree on.
pub(super) fn agreement(paper: &Paper, found: &[EnvProblem]) -> String {
    let verdict = match found.first().map(|problem| problem.severity) {
        None => paper.ink(Ink::Green, "The processes agree on what they share."),
        Some(Severity::Error) => paper.ink(Ink::Red, "These processes would not work together."),
        Some(_) => paper.ink(Ink::Yellow, "These processes would not act alike."),
    };
    format!("\n{}{verdict}\n", findings(paper, found))
}

/// The findings one after the other, with an empty line after the last.
fn findings(paper: &Paper, found: &[EnvProblem]) -> String {
    let mut out = String::new();
    for problem in found {
        let (ink, mark) = match problem.severity {
            Severity::Error => (Ink::Red, "✗"),
            Severity::Warning => (Ink::Yellow, "!"),
            Severity::Note => (Ink::Dim, "·"),
        };
        let head = format!("{mark} {}", padded(problem.severity.name(), 8));
        let place = problem.place.as_deref().map_or_else(String::new, |place| format!("  {place}"));
        let _ = writeln!(
            out,
            "{}{}{}",
            paper.ink(ink, &head),
            paper.ink(Ink::Bold, &problem.variable),
            paper.ink(Ink::Dim, &place)
        );
        for line in paper.wrapped(&problem.why, 10) {
            let _ = writeln!(out, "          {line}");
        }
        for (index, line) in paper.wrapped(&problem.fix, 12).into_iter().enumerate() {
            let _ = writeln!(out, "          {} {line}", if index == 0 { "→" } else { " " });
        }
    }
    if !found.is_empty() {
        out.push('\n');
    }
    out
}

/// A value in words.
pub(super) fn value_text(value: &Shown) -> String {
    match value {
        Shown::Text(text) => text.clone(),
        Shown::Set => "(set)".to_owned(),
        Shown::Unset => "–".to_owned(),
        Shown::Derived(words) => format!("({words})"),
        Shown::Unusable => "(unusable)".to_owned(),
    }
}

/// Where a value came from, in words.
pub(super) fn origin_text(origin: Option<&Origin>) -> String {
    match origin {
        None => "default".to_owned(),
        Some(Origin::Environment) => "environment".to_owned(),
        Some(Origin::SecretFile(path)) => format!("file {}", path.display()),
        Some(Origin::Line { file, line }) => format!("{file}:{line}"),
        Some(Origin::Dev) => "tale dev".to_owned(),
    }
}

/// What a role would run with.
pub(super) fn effective(paper: &Paper, settings: &[Effective]) -> String {
    let mut out = String::new();
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let names = widest(&mut settings.iter().map(|setting| setting.name.chars().count()));
    let origin = |setting: &Effective| match (&setting.value, &setting.origin) {
        (Shown::Unset, None) => String::new(),
        (_, origin) => origin_text(origin.as_ref()),
    };
    let origins = widest(&mut settings.iter().map(|setting| origin(setting).chars().count()));
    // The value gets what is left; where that is too little, lines are longer than the terminal.
    let room = paper.width.saturating_sub(names + origins + 4).max(24);
    for setting in settings {
        let value = cut(&value_text(&setting.value), room);
        let ink = match (&setting.value, &setting.origin) {
            (Shown::Unusable, _) => Ink::Red,
            (_, Some(_)) => Ink::Bold,
            (_, None) => Ink::Dim,
        };
        let line = format!(
            "{}  {}  {}",
            paper.ink(Ink::Cyan, &padded(&setting.name, names)),
            paper.ink(ink, &padded(&value, room)),
            paper.ink(Ink::Dim, &origin(setting))
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Where two files differ.
pub(super) fn diff(paper: &Paper, differences: &[Difference], names: &[String; 2]) -> String {
    let mut out = String::new();
    if differences.is_empty() {
        let _ = writeln!(out, "{} and {} say the same.", names[0], names[1]);
        return out;
    }
    let side = |side: &Side| match side {
        Side::Absent => "(not set)".to_owned(),
        Side::Hidden => "(a value that is not shown)".to_owned(),
        Side::Value(text) if text.is_empty() => "(empty)".to_owned(),
        Side::Value(text) => text.clone(),
    };
    let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for difference in differences {
        let _ = writeln!(out, "{}", paper.ink(Ink::Bold, &difference.name));
        for (mark, ink, name, value) in
            [("-", Ink::Red, &names[0], &difference.a), ("+", Ink::Green, &names[1], &difference.b)]
        {
            let _ = writeln!(out, "  {} {}  {}", paper.ink(ink, mark), padded(name, label), side(value));
        }
    }
    let count = differences.len();
    let _ = writeln!(
        out,
        "\n{count} variable{} differ{}.",
        if count == 1 { "" } else { "s" },
        if count == 1 { "s" } else { "" }
    );
    out
}
