//! Reads a public web page for the assistant (CHT-100): https only, judged addresses at every hop,
//! 15 seconds, 4 MiB.

use std::io::Read;
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use tale_core::net::{HostPolicy, check_destination, guarded_client};
use tale_extract::process::OwnedPiece;
use tale_extract::{ExtractProcess, ExtractProgram, Kind};
use url::Url;

/// Most bytes read of a page, before and after unpacking.
const MAX_BYTES: usize = 4 << 20;

/// Most redirects followed.
const MAX_REDIRECTS: usize = 5;

/// Which pages the assistant reads.
#[derive(Debug, Clone, Copy)]
pub struct WebAccess {
    /// Public addresses, by https. The other policy is for tests: it admits http and private addresses.
    pub hosts: HostPolicy,
    /// Longest whole request, redirects included.
    pub timeout: Duration,
}

impl Default for WebAccess {
    fn default() -> Self {
        Self { hosts: HostPolicy::PublicOnly, timeout: Duration::from_secs(15) }
    }
}

/// A page as text.
pub(crate) struct WebPage {
    pub url: String,
    pub title: String,
    pub text: String,
}

/// Fetches pages through the outbound guard.
#[derive(Debug, Clone)]
pub(crate) struct WebReader {
    client: reqwest::Client,
    program: ExtractProgram,
    access: WebAccess,
}

impl WebReader {
    pub(crate) fn new(program: ExtractProgram, access: WebAccess) -> Result<Self, reqwest::Error> {
        Ok(Self { client: guarded_client(access.hosts, Duration::from_secs(5))?, program, access })
    }

    /// The text of a page, or a sentence for the model.
    pub(crate) async fn read(&self, address: &str) -> Result<WebPage, String> {
        match tokio::time::timeout(self.access.timeout, self.fetch(address)).await {
            Ok(result) => result,
            Err(_) => Err(format!("The page did not answer within {} seconds.", self.access.timeout.as_secs())),
        }
    }

    async fn fetch(&self, address: &str) -> Result<WebPage, String> {
        let mut url = Url::parse(address).map_err(|_| "`url` must be a complete https address.".to_owned())?;
        for _ in 0..=MAX_REDIRECTS {
            judge(&url, self.access.hosts)?;
            let request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "gzip, identity;q=0.5");
            let response = request.send().await.map_err(|_| "The page could not be reached.".to_owned())?;
            let status = response.status();
            if status.is_redirection() {
                let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                url = target
                    .and_then(|target| url.join(target).ok())
                    .ok_or_else(|| "The page redirects to an unreadable address.".to_owned())?;
                continue;
            }
            if !status.is_success() {
                return Err(format!("The page answered with status {}.", status.as_u16()));
            }
            return read_page(&self.program, url, response).await;
        }
        Err("The page redirects too many times.".to_owned())
    }
}

fn judge(url: &Url, hosts: HostPolicy) -> Result<(), String> {
    let scheme = url.scheme() == "https" || hosts == HostPolicy::PrivateAllowed;
    if !scheme || !url.username().is_empty() || url.password().is_some() {
        return Err("Only public https addresses without a user name can be read.".to_owned());
    }
    check_destination(url, hosts).map_err(|refused| format!("This address cannot be read: {refused}."))
}

/// What a page holds and in which encoding, as its server says.
fn content(headers: &HeaderMap) -> Result<(Kind, Option<&'static encoding_rs::Encoding>), String> {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parameters = said.split(';');
    let media = parameters.next().unwrap_or_default().trim().to_ascii_lowercase();
    let kind = match media.as_str() {
        "text/html" | "application/xhtml+xml" | "" => Kind::Html,
        "text/markdown" => Kind::Markdown,
        "text/csv" => Kind::Csv,
        "application/pdf" => return Ok((Kind::Pdf, None)),
        "application/xml" => Kind::Code,
        media if media == "application/json" || media.ends_with("+json") => Kind::Json,
        media if media == "text/xml" || media.ends_with("+xml") => Kind::Code,
        media if media.starts_with("text/") => Kind::Plain,
        _ => return Err(format!("The address holds `{media}`, not a page of text.")),
    };
    let charset = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .and_then(|(_, label)| encoding_rs::Encoding::for_label(label.trim().trim_matches('"').as_bytes()));
    Ok((kind, charset))
}

async fn read_page(program: &ExtractProgram, url: Url, response: reqwest::Response) -> Result<WebPage, String> {
    let (kind, charset) = content(response.headers())?;
    let packed = match response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?")) {
        None | Some("" | "identity") => false,
        Some("gzip" | "x-gzip") => true,
        Some(_) => return Err("The page is packed in a way that cannot be read.".to_owned()),
    };
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| "The page broke off while it was read.".to_owned())?;
        if bytes.len() + piece.len() > MAX_BYTES {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    let prepared = tokio::task::spawn_blocking(move || prepared(bytes, packed, charset)).await;
    let file = prepared.map_err(|_| unreadable())??;
    let text = text_of(program, kind, file.path()).await?;
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).or(url.host_str()).unwrap_or_default().to_owned();
    Ok(WebPage { url: url.into(), title, text })
}

fn too_large() -> String {
    "The page is larger than 4 MiB.".to_owned()
}

fn unreadable() -> String {
    "The page could not be read as text.".to_owned()
}

/// A file of the unpacked bytes; as UTF-8 with its mark where the server named another encoding, since
/// what the server says outweighs what the page says of itself.
fn prepared(
    mut bytes: Vec<u8>,
    packed: bool,
    charset: Option<&'static encoding_rs::Encoding>,
) -> Result<tempfile::NamedTempFile, String> {
    if packed {
        let mut whole = Vec::new();
        let limit = MAX_BYTES as u64 + 1;
        flate2::read::MultiGzDecoder::new(bytes.as_slice())
            .take(limit)
            .read_to_end(&mut whole)
            .map_err(|_| "The page broke off while it was read.".to_owned())?;
        if whole.len() > MAX_BYTES {
            return Err(too_large());
        }
        bytes = whole;
    }
    if let Some(charset) = charset {
        bytes = format!("\u{feff}{}", charset.decode(&bytes).0).into_bytes();
    }
    let mut file = tempfile::NamedTempFile::new().map_err(|_| unreadable())?;
    std::io::Write::write_all(&mut file, &bytes).map_err(|_| unreadable())?;
    Ok(file)
}

/// The text of a fetched page, read by the same child process that reads uploads.
async fn text_of(program: &ExtractProgram, kind: Kind, path: &std::path::Path) -> Result<String, String> {
    let mut child = ExtractProcess::start(program, path, kind).map_err(|_| unreadable())?;
    let mut text = String::new();
    while let Some(piece) =
        child.next().await.map_err(|refusal| format!("The page could not be read as text: {refusal}"))?
    {
        if let OwnedPiece::Text(piece) = piece {
            text.push_str(&piece);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_https_is_read() {
        for address in [
            "http://example.com/",
            "https://127.0.0.1/",
            "https://localhost/",
            "https://u:p@example.com/",
            "https://169.254.169.254/latest",
            "ftp://example.com/",
        ] {
            assert!(judge(&Url::parse(address).unwrap(), HostPolicy::PublicOnly).is_err(), "{address}");
        }
        assert!(judge(&Url::parse("https://example.com/a?b=c").unwrap(), HostPolicy::PublicOnly).is_ok());
    }
}
