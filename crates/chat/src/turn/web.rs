//! Reads a public web page for the assistant (CHT-100): https only, judged addresses at every hop,
//! 15 seconds, 4 MiB.

use std::time::Duration;

use futures::StreamExt;
use tale_core::net::{HostPolicy, check_destination, guarded_client};
use tale_extract::process::OwnedPiece;
use tale_extract::{ExtractProcess, ExtractProgram, Kind};
use url::Url;

/// Longest whole request, redirects included.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Most bytes read of a page.
const MAX_BYTES: usize = 4 << 20;

/// Most redirects followed.
const MAX_REDIRECTS: usize = 5;

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
}

impl WebReader {
    pub(crate) fn new(program: ExtractProgram) -> Result<Self, reqwest::Error> {
        Ok(Self { client: guarded_client(HostPolicy::PublicOnly, Duration::from_secs(5))?, program })
    }

    /// The text of a page, or a sentence for the model.
    pub(crate) async fn read(&self, address: &str) -> Result<WebPage, String> {
        match tokio::time::timeout(TIMEOUT, self.fetch(address)).await {
            Ok(result) => result,
            Err(_) => Err("The page did not answer within 15 seconds.".to_owned()),
        }
    }

    async fn fetch(&self, address: &str) -> Result<WebPage, String> {
        let mut url = Url::parse(address).map_err(|_| "`url` must be a complete https address.".to_owned())?;
        for _ in 0..=MAX_REDIRECTS {
            judge(&url)?;
            let response =
                self.client.get(url.clone()).send().await.map_err(|_| "The page could not be reached.".to_owned())?;
            let status = response.status();
            if status.is_redirection() {
                let target = response.headers().get(reqwest::header::LOCATION).and_then(|value| value.to_str().ok());
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

fn judge(url: &Url) -> Result<(), String> {
    if url.scheme() != "https" || !url.username().is_empty() || url.password().is_some() {
        return Err("Only public https addresses without a user name can be read.".to_owned());
    }
    check_destination(url, HostPolicy::PublicOnly).map_err(|refused| format!("This address cannot be read: {refused}."))
}

async fn read_page(program: &ExtractProgram, url: Url, response: reqwest::Response) -> Result<WebPage, String> {
    let kind = response
        .headers()
        .get(reqwest::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .unwrap_or_default();
    let kind = match kind.as_str() {
        "text/html" | "application/xhtml+xml" | "" => Kind::Html,
        "application/json" => Kind::Json,
        kind if kind.starts_with("text/") => Kind::Plain,
        _ => return Err(format!("The address holds `{kind}`, not a page of text.")),
    };
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| "The page broke off while it was read.".to_owned())?;
        if bytes.len() + piece.len() > MAX_BYTES {
            return Err("The page is larger than 4 MiB.".to_owned());
        }
        bytes.extend_from_slice(&piece);
    }
    let text = text_of(program, kind, bytes).await?;
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).or(url.host_str()).unwrap_or_default().to_owned();
    Ok(WebPage { url: url.into(), title, text })
}

/// The text of a fetched page, read by the same child process that reads uploads.
async fn text_of(program: &ExtractProgram, kind: Kind, bytes: Vec<u8>) -> Result<String, String> {
    let unreadable = || "The page could not be read as text.".to_owned();
    let file = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, &bytes)?;
        Ok::<_, std::io::Error>(file)
    });
    let file = file.await.map_err(|_| unreadable())?.map_err(|_| unreadable())?;
    let mut child = ExtractProcess::start(program, file.path(), kind).map_err(|_| unreadable())?;
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
            assert!(judge(&Url::parse(address).unwrap()).is_err(), "{address}");
        }
        assert!(judge(&Url::parse("https://example.com/a?b=c").unwrap()).is_ok());
    }
}
