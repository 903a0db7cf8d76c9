//! Whether an SVG could do anything but be looked at (BRD-4). Whoever opens the image by its address, and not in a page,
//! has it as a document of our origin; so it is judged before it is stored, and served with a policy that admits nothing.

use roxmltree::{Document, Node, ParsingOptions};
use tale_core::{Code, Problem};

use crate::sso::saml::xml::bounded;

const NAMESPACE: &str = "http://www.w3.org/2000/svg";
const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// Deepest nesting of elements.
const MAX_DEPTH: usize = 64;
/// Most attributes of an element.
const MAX_ATTRIBUTES: usize = 64;
/// Most declarations of namespaces.
const MAX_NAMESPACES: usize = 64;
/// Most elements and texts.
const MAX_NODES: u32 = 50_000;

/// Elements that run something, or show what is not a part of the drawing.
const ACTIVE: [&str; 10] =
    ["script", "foreignobject", "iframe", "embed", "object", "audio", "video", "handler", "listener", "link"];
/// What the address of an embedded picture may begin with.
const PICTURES: [&str; 5] = [
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/jpg;base64,",
    "data:image/webp;base64,",
    "data:image/gif;base64,",
];

/// `content` as the text of an XML file, when it begins like one.
pub(super) fn text(content: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(content).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = text.trim_start();
    let head = start.get(..start.len().min(14)).unwrap_or_default().to_ascii_lowercase();
    (start.starts_with('<') && !head.starts_with("<!doctype html") && !head.starts_with("<html")).then_some(text)
}

/// Refuses a file that is no drawing or more than one.
///
/// # Errors
/// `UNSUPPORTED_FILE_TYPE`, `IMAGE_SVG_ACTIVE_CONTENT`.
pub(super) fn judge(text: &str) -> Result<(), Problem> {
    let unreadable = || {
        Problem::new(Code::UnsupportedFileType, "This SVG cannot be read. Save it again as a plain SVG, or use PNG.")
    };
    if text.matches("xmlns").count() > MAX_NAMESPACES {
        return Err(unreadable());
    }
    bounded(text, MAX_DEPTH, MAX_ATTRIBUTES).map_err(|unfit| match unfit {
        "xml-dtd" => active("a document type"),
        _ => unreadable(),
    })?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|_| unreadable())?;
    let root = document.root_element();
    if root.tag_name().namespace() != Some(NAMESPACE) || root.tag_name().name() != "svg" {
        return Err(unreadable());
    }
    match document.descendants().find_map(found) {
        None => Ok(()),
        Some(what) => Err(active(what)),
    }
}

fn active(what: &str) -> Problem {
    Problem::new(
        Code::ImageSvgActiveContent,
        format!(
            "This SVG contains {what}, which could run or load something where it is shown. Save it as a plain SVG without that, or use PNG."
        ),
    )
    .with_data(serde_json::json!({ "found": what }))
}

/// What of a node is more than a drawing.
fn found(node: Node<'_, '_>) -> Option<&'static str> {
    if node.is_pi() {
        return Some("a processing instruction");
    }
    if !node.is_element() {
        return None;
    }
    let name = node.tag_name().name().to_ascii_lowercase();
    match name.as_str() {
        "script" => return Some("a script"),
        "foreignobject" => return Some("a foreignObject element"),
        _ if ACTIVE.contains(&name.as_str()) || node.tag_name().namespace() == Some(XHTML) => {
            return Some("an element of a web page");
        }
        "style" => {
            // What a browser applies is the text between elements and comments, put together.
            if node.children().any(|inner| inner.is_element()) {
                return Some("an element in a style");
            }
            let texts = node.children().filter(Node::is_text);
            let sheet: String = texts.filter_map(|inner| inner.text()).collect();
            if loads(&sheet) || sheet.contains('\\') {
                return Some("a style that loads something");
            }
        }
        _ => {}
    }
    node.attributes().find_map(|attribute| {
        let name = attribute.name().to_ascii_lowercase();
        let value: String = attribute
            .value()
            .chars()
            .filter(|c| !c.is_whitespace() && !c.is_control())
            .collect::<String>()
            .to_lowercase();
        if name.starts_with("on") {
            return Some("an event handler");
        }
        if value.contains("javascript:") || value.contains("vbscript:") {
            return Some("a link that runs a script");
        }
        if name == "attributename" && (value.ends_with("href") || value.starts_with("on")) {
            return Some("an animation of a link");
        }
        let outside = match name.as_str() {
            "href" | "src" => !value.starts_with('#') && !PICTURES.iter().any(|picture| value.starts_with(picture)),
            "base" => true,
            _ => loads(&value) || (attribute.namespace().is_none() && value.contains('\\')),
        };
        outside.then_some("a reference to something outside of it")
    })
}

/// Whether a style takes anything from elsewhere than the drawing itself.
fn loads(style: &str) -> bool {
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let elsewhere = |(at, _): (usize, &str)| {
        let target = style[at + "url(".len()..].trim_start_matches(['"', '\'']);
        !target.starts_with('#')
    };
    style.contains("@import")
        || style.contains("image-set(")
        || style.contains("src(")
        || style.contains("expression(")
        || style.match_indices("url(").any(elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(inside: &str) -> Result<(), Code> {
        let file = format!(
            "<?xml version=\"1.0\"?><!-- a --><svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 8 8\">{inside}</svg>"
        );
        judge(text(file.as_bytes()).unwrap()).map_err(|problem| problem.code)
    }

    #[test]
    fn drawings_are_kept() {
        for inside in [
            "",
            "<defs><linearGradient id=\"a\"/></defs><path d=\"M0 0\" fill=\"url(#a)\" style=\"stroke:url( '#a' )\"/>",
            "<use xlink:href=\"#a\"/><use href=\"#b\"/>",
            "<style>@media(prefers-color-scheme:dark){path{fill:#fff}}</style>",
            "<style><![CDATA[ path > a { fill: red } ]]></style>",
            "<style><!-- url(//a) --> path { fill: red }</style>",
            "<image href=\"data:image/png;base64,AAAA\"/>",
            "<title>Acme &amp; Söhne</title><text font-family=\"serif\">on</text>",
            "<metadata xmlns:i=\"urn:editor\"><i:view i:path=\"C:\\logo.svg\"/></metadata>",
            "<animate attributeName=\"opacity\" values=\"0;1\"/>",
        ] {
            assert_eq!(judged(inside), Ok(()), "{inside}");
        }
        assert!(judge(text("\u{feff}\n<svg xmlns='http://www.w3.org/2000/svg'/>".as_bytes()).unwrap()).is_ok());
    }

    #[test]
    fn whatever_runs_or_loads_is_refused() {
        for inside in [
            "<script>alert(1)</script>",
            "<SCRIPT>alert(1)</SCRIPT>",
            "<s:script xmlns:s=\"http://www.w3.org/2000/svg\" href=\"data:,alert(1)\"/>",
            "<h:script xmlns:h=\"http://www.w3.org/1999/xhtml\">alert(1)</h:script>",
            "<h:img xmlns:h=\"http://www.w3.org/1999/xhtml\"/>",
            "<g onload=\"alert(1)\"/>",
            "<g ONCLICK=\"alert(1)\"/>",
            "<a href=\"javascript:alert(1)\"><path/></a>",
            "<a xlink:href=\" java&#9;script:alert(1)\"><path/></a>",
            "<a href=\"https://evil.test\"><path/></a>",
            "<use href=\"https://evil.test/a.svg#a\"/>",
            "<use href=\"data:image/svg+xml;base64,AAAA\"/>",
            "<image href=\"//evil.test/a.png\"/>",
            "<image xlink:href=\"a.png\"/>",
            "<foreignObject/>",
            "<set attributeName=\"href\" to=\"#a\"/>",
            "<animate attributeName=\"xlink:href\" values=\"#a\"/>",
            "<set attributeName=\"onload\" to=\"a\"/>",
            "<style>@import 'https://evil.test';</style>",
            "<style>path{fill:url(https://evil.test)}</style>",
            "<style>path{fill:u\\72l(//evil.test)}</style>",
            "<style>path{fill:ur<!--x-->l(//evil.test)}</style>",
            "<style>@im<!--x-->port '//evil.test';</style>",
            "<style>path{fill:u<g>x</g>rl(//evil.test)}</style>",
            "<style><![CDATA[path{fill:url(//evil.test)}]]></style>",
            "<path style=\"fill:url(&quot;https://evil.test#a&quot;)\"/>",
            "<path fill=\"URL( //evil.test )\"/>",
            "<path fill=\"u\\72l(//evil.test)\"/>",
            "<path mask=\"url(data:image/svg+xml,a)\"/>",
            "<g xml:base=\"https://evil.test/\"/>",
            "<?xml-stylesheet href=\"a.css\"?>",
            "<iframe/>",
            "<handler/>",
        ] {
            assert_eq!(judged(inside), Err(Code::ImageSvgActiveContent), "{inside}");
        }
        let typed = "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg xmlns='http://www.w3.org/2000/svg'>&a;</svg>";
        assert_eq!(judge(text(typed.as_bytes()).unwrap()).unwrap_err().code, Code::ImageSvgActiveContent);
    }

    #[test]
    fn what_is_no_drawing_or_would_cost_too_much_is_refused() {
        let of = |file: &str| text(file.as_bytes()).map(|text| judge(text).map_err(|problem| problem.code));
        let unread = Some(Err(Code::UnsupportedFileType));
        assert_eq!(of("<svg/>"), unread);
        assert_eq!(of("<math xmlns='http://www.w3.org/1998/Math/MathML'/>"), unread);
        assert_eq!(of("<svg xmlns='http://www.w3.org/2000/svg'>"), unread);
        assert_eq!(of("<svg xmlns='http://www.w3.org/2000/svg'>&a;</svg>"), unread);
        assert_eq!(of(&format!("<svg xmlns='http://www.w3.org/2000/svg'>{}", "<g>".repeat(100_000))), unread);
        let wide: String = (0..100).map(|at| format!(" a{at}='1'")).collect();
        assert_eq!(of(&format!("<svg xmlns='http://www.w3.org/2000/svg'{wide}/>")), unread);
        let many = "<g/>".repeat(60_000);
        assert_eq!(of(&format!("<svg xmlns='http://www.w3.org/2000/svg'>{many}</svg>")), unread);
        assert_eq!(of("<!doctype html><svg/>"), None);
        assert_eq!(of("<HTML><svg/></HTML>"), None);
        assert_eq!(of("hello"), None);
        assert_eq!(text(&[0xff, 0xfe, b'<', 0]), None);
    }
}
