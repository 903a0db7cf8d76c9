//! Reading web pages, from a real server on a loopback port.

use std::io::Write;

use axum::Router;
use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tale_chat::Part;
use tale_testkit::upstream::{Reply, Step};

use crate::world::world;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn page(content_type: &str, bytes: impl Into<Vec<u8>>) -> Response<Body> {
    Response::builder().header(header::CONTENT_TYPE, content_type).body(Body::from(bytes.into())).unwrap()
}

fn gzipped(bytes: &[u8]) -> Response<Body> {
    let mut response = page("text/html", packed(bytes));
    response.headers_mut().insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
    response
}

fn moved(to: &str) -> Response<Body> {
    Response::builder().status(StatusCode::FOUND).header(header::LOCATION, to).body(Body::empty()).unwrap()
}

/// A PDF of one page that says `words`.
fn pdf(words: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 720 Td ({words}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n{object}\nendobj\n", number + 1).bytes());
    }
    let table = file.len();
    file.extend(b"xref\n0 6\n0000000000 65535 f \n");
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    file.extend(format!("trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF").bytes());
    file
}

async fn site() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pages = Router::new()
        .route("/plain", get(|| async { page("text/plain", "Plain words.") }))
        .route("/moved", get(|| async { moved("/further") }))
        .route("/further", get(|| async { moved("/plain") }))
        .route("/circle", get(|| async { moved("/circle") }))
        .route("/metadata", get(|| async { moved("http://169.254.169.254/latest/meta-data") }))
        .route("/gzip", get(|| async { gzipped(b"<html><body><h1>Packed</h1><p>Packed words.</p></body></html>") }))
        .route(
            "/latin",
            get(|| async { page("text/html; Charset=\"ISO-8859-1\"", b"<p>Caf\xe9 cr\xe8me</p>".as_slice()) }),
        )
        .route("/meta", get(|| async { page("text/html", b"<meta charset=windows-1252><p>Caf\xe9</p>".as_slice()) }))
        .route("/huge", get(|| async { page("text/html", vec![b'a'; 5 << 20]) }))
        .route("/bomb", get(|| async { gzipped(&vec![b' '; 64 << 20]) }))
        .route("/slow", get(|| async { std::future::pending::<Response<Body>>().await }))
        .route(
            "/stuck",
            get(|| async {
                Response::builder()
                    .header(header::CONTENT_TYPE, "text/html")
                    .body(Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>()))
                    .unwrap()
            }),
        )
        .route("/pdf", get(|| async { page("application/pdf", pdf("Printed words.")) }))
        .route("/broken-pdf", get(|| async { page("application/pdf", "%PDF-1.7 nothing") }))
        .route("/image", get(|| async { page("image/png", b"\x89PNG".as_slice()) }));
    tokio::spawn(async move { axum::serve(listener, pages).await });
    format!("http://{address}")
}

#[tokio::test]
async fn pages_are_read_as_they_come_and_refused_with_a_sentence() {
    let world = world().await;
    let thread = world.titled().await;
    let site = site().await;
    let asked = [
        ("/plain", Ok("Plain words.")),
        ("/moved", Ok("Plain words.")),
        ("/gzip", Ok("Packed words.")),
        ("/latin", Ok("Café crème")),
        ("/meta", Ok("Café")),
        ("/pdf", Ok("Printed words.")),
        ("/circle", Err("redirects too many times")),
        ("/metadata", Err("cannot be read: 169.254.169.254 is a cloud metadata address")),
        ("/huge", Err("larger than 4 MiB")),
        ("/bomb", Err("larger than 4 MiB")),
        ("/slow", Err("did not answer within")),
        ("/stuck", Err("did not answer within")),
        ("/broken-pdf", Err("could not be read as text")),
        ("/image", Err("holds `image/png`")),
        ("/none", Err("status 404")),
    ];
    world.upstream.push(Reply::steps(
        asked
            .iter()
            .map(|(path, _)| Step::ToolCall {
                id: (*path).into(),
                name: "web_fetch".into(),
                arguments: json!({ "url": format!("{site}{path}") }).to_string(),
                pieces: 1,
            })
            .collect(),
    ));
    world.upstream.push(Reply::text("Read."));
    let reply = world.ask(thread, "Read them").await;
    assert_eq!(reply.status, "complete");
    for (path, expected) in asked {
        let (failed, output) = reply
            .parts
            .iter()
            .find_map(|part| match part {
                Part::ToolResult { id, is_error, output, .. } if id == path => Some((*is_error, output)),
                _ => None,
            })
            .unwrap();
        let (field, words) = match expected {
            Ok(words) => ("text", words),
            Err(words) => ("error", words),
        };
        assert_eq!(failed, expected.is_err(), "{path}: {output}");
        assert!(output[field].as_str().unwrap_or_default().contains(words), "{path}: {output}");
    }
}
