//! The reference as a page of its own, for the running program to serve.

use std::fmt::Write;

use crate::reference::{HEADS, INTRO, TITLE, default_cell, purpose};
use crate::registry::{self, Section};
use crate::words::{Lang, words};

const STYLE: &str = "\
:root { color-scheme: light dark }
body { margin: 0 auto; max-width: 90rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
ul { padding-left: 1.25rem }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem }
.table { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .875rem; overflow-wrap: normal }
th, td { border-bottom: 1px solid #8886; padding: .5rem; text-align: left; vertical-align: top }
td:first-child, th:first-child { white-space: nowrap }
td:last-child { min-width: 20rem }
code { font-family: ui-monospace, monospace; font-size: .9em }
";

/// Where the page of `lang` is served.
#[must_use]
pub fn path(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "/docs/environment",
        Lang::De => "/docs/environment/de",
        Lang::Fr => "/docs/environment/fr",
    }
}

/// The page in `lang`, with the style in it and nothing to load besides; its links begin with `base`,
/// the base path of the deployment.
#[must_use]
pub fn html(lang: Lang, base: &str) -> String {
    let title = TITLE.get(lang);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Tale · {title}</title>\n\
         <link rel=\"icon\" href=\"{base}/icon.svg\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<nav aria-label=\"{}\">",
        lang.code(),
        words("Language", "Sprache", "Langue").get(lang)
    );
    for other in Lang::ALL {
        let name = match other {
            Lang::En => "English",
            Lang::De => "Deutsch",
            Lang::Fr => "Français",
        };
        let here = if other == lang { " aria-current=\"page\"" } else { "" };
        let _ = write!(out, "<a href=\"{base}{}\" lang=\"{}\"{here}>{name}</a>", path(other), other.code());
    }
    let _ = write!(out, "<a href=\"{base}/docs\" lang=\"en\">API</a></nav>\n</header>\n<main>\n");
    prose(&mut out, INTRO.get(lang));
    let _ = write!(out, "<nav aria-label=\"{}\">", words("Sections", "Abschnitte", "Sections").get(lang));
    for &section in Section::ALL {
        let _ = write!(out, "<a href=\"#{}\">{}</a>", section.name(), escaped(section.title().get(lang)));
    }
    out.push_str("</nav>\n");
    for &section in Section::ALL {
        table(&mut out, section, lang);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn table(out: &mut String, section: Section, lang: Lang) {
    let title = escaped(section.title().get(lang));
    // A region that scrolls sideways must be reachable with the keyboard.
    let _ = write!(
        out,
        "<h2 id=\"{0}\">{title}</h2>\n<div class=\"table\" role=\"region\" aria-labelledby=\"{0}\" tabindex=\"0\">\n<table>\n<thead><tr>",
        section.name()
    );
    for head in HEADS {
        let _ = write!(out, "<th scope=\"col\">{}</th>", head.get(lang));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for var in registry::vars().filter(|var| var.section == section) {
        let roles: Vec<&str> = var.roles.iter().map(|role| role.name()).collect();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(var.name),
            inline(&default_cell(var, lang)),
            escaped(&var.kind.describe(lang)),
            roles.join(", "),
            inline(&purpose(var, lang))
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// Paragraphs and lists; links lead to files that are not served, so their words stay alone.
fn prose(out: &mut String, text: &str) {
    for block in text.split("\n\n") {
        match block.strip_prefix("- ") {
            Some(list) => {
                let items = list.split("\n- ").map(|item| format!("<li>{}</li>\n", inline(&unlinked(item))));
                let _ = write!(out, "<ul>\n{}</ul>\n", items.collect::<String>());
            }
            None => {
                let _ = writeln!(out, "<p>{}</p>", inline(&unlinked(block.trim())));
            }
        }
    }
}

fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (words, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        out.push_str(before);
        out.push_str(words);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// `code`, **strong** and *emphasis*.
fn inline(text: &str) -> String {
    let mut out = escaped(text);
    for (mark, tag) in [("`", "code"), ("**", "strong"), ("*", "em")] {
        // What has no partner stays as it is.
        let pairs = out.matches(mark).count() / 2;
        for _ in 0..pairs {
            out = out.replacen(mark, &format!("<{tag}>"), 1).replacen(mark, &format!("</{tag}>"), 1);
        }
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_stands_on_the_page_and_nothing_is_left_of_the_markup() {
        for lang in Lang::ALL {
            let page = html(lang, "/app");
            assert!(!page.contains("\"/docs") && page.contains("\"/app/docs\"") && page.contains("\"/app/icon.svg\""));
            for var in registry::vars() {
                assert!(page.contains(&format!("<code>{}</code>", escaped(var.name))), "{}", var.name);
            }
            assert!(!page.contains("**") && !page.contains('`') && !page.contains("]("), "{}", lang.code());
            for tag in ["code", "strong", "em", "table", "td", "li"] {
                let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
                let opened = page.matches(&format!("{open}>")).count() + page.matches(&format!("{open} ")).count();
                assert_eq!(opened, page.matches(&close).count(), "{tag} in {}", lang.code());
            }
        }
    }
}
