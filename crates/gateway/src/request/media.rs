//! Images and documents of a request: what is refused, and what they count for.

use memchr::memmem;
use serde_json::Value;
use tale_core::problem::Problem;
use tale_models::wire::ApiFormat;

/// What a document counts for that the provider fetches itself: a hundred pages of 2,500 tokens, the most that
/// Anthropic reads.
const DOCUMENT_TOKENS: u64 = 250_000;
/// Tokens that an image counts for: about what the largest one costs.
const IMAGE_TOKENS: u64 = 1_600;
/// Encoded bytes of a document that count for one token: a page is about 50 kB and 2,500 tokens.
const DOCUMENT_BYTES_PER_TOKEN: u64 = 16;

/// The images and documents of a request.
#[derive(Debug, Default)]
pub(super) struct Media {
    /// Whether there are images.
    pub(super) images: bool,
    /// Bytes of encoded data, which are no text.
    pub(super) bytes: u64,
    /// What images and documents count for.
    pub(super) tokens: u64,
}

impl Media {
    /// Reads a list of messages. What holds none of the words that name such parts is not parsed.
    pub(super) fn of(interface: ApiFormat, messages: &str) -> Result<Self, Problem> {
        const WORDS: [&str; 7] =
            ["\"image", "\"file", "\"document", "\"input_audio", "\"audio_url", "\"video", "\\u00"];
        let mut media = Self::default();
        if !WORDS.iter().any(|word| memmem::find(messages.as_bytes(), word.as_bytes()).is_some()) {
            return Ok(media);
        }
        let list: Vec<Value> = serde_json::from_str(messages).map_err(|_| super::unreadable("messages"))?;
        for (at, message) in list.iter().enumerate() {
            media.parts(interface, &format!("messages.{at}.content"), &message["content"])?;
        }
        Ok(media)
    }

    fn parts(&mut self, interface: ApiFormat, path: &str, parts: &Value) -> Result<(), Problem> {
        for (at, part) in parts.as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{at}");
            match interface {
                ApiFormat::OpenAi => self.openai(&path, part)?,
                ApiFormat::Anthropic => self.anthropic(&path, part)?,
            }
        }
        Ok(())
    }

    fn openai(&mut self, path: &str, part: &Value) -> Result<(), Problem> {
        match part["type"].as_str() {
            Some("image_url") => {
                let url = part["image_url"]["url"].as_str().unwrap_or_default();
                self.image(&format!("{path}.image_url.url"), url)?;
            }
            Some("file") => {
                let file = &part["file"];
                if !file["file_id"].is_null() {
                    return Err(stored(&format!("{path}.file.file_id")));
                }
                let data = file["file_data"].as_str().unwrap_or_default();
                if data.contains("://") {
                    return Err(Problem::invalid_field(
                        &format!("{path}.file.file_data"),
                        "must be the document itself, as a `data:` address or base64",
                    ));
                }
                self.document(data.len());
            }
            Some("input_audio" | "audio_url" | "video_url" | "video") => {
                return Err(Problem::invalid_field(
                    path,
                    "must not be audio or video: text, images and documents are read here",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn anthropic(&mut self, path: &str, block: &Value) -> Result<(), Problem> {
        let source = &block["source"];
        match block["type"].as_str() {
            Some("image") => match source["type"].as_str() {
                Some("base64") => {
                    self.data(source["data"].as_str().unwrap_or_default().len());
                    self.count_image();
                }
                Some("url") => self.image(&format!("{path}.source.url"), source["url"].as_str().unwrap_or_default())?,
                Some("file") => return Err(stored(&format!("{path}.source"))),
                _ => {
                    return Err(Problem::invalid_field(
                        &format!("{path}.source.type"),
                        "must be one of \"base64\", \"url\"",
                    ));
                }
            },
            Some("document") => match source["type"].as_str() {
                Some("file") => return Err(stored(&format!("{path}.source"))),
                Some("content") => {
                    self.parts(ApiFormat::Anthropic, &format!("{path}.source.content"), &source["content"])?
                }
                Some("text") => {}
                Some("url") => {
                    let url = source["url"].as_str().unwrap_or_default();
                    if !url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
                        return Err(Problem::invalid_field(
                            &format!("{path}.source.url"),
                            "must be an `https:` address",
                        ));
                    }
                    self.tokens += DOCUMENT_TOKENS;
                }
                _ => self.document(source["data"].as_str().unwrap_or_default().len()),
            },
            Some("container_upload") => return Err(stored(path)),
            Some("tool_result") => self.parts(ApiFormat::Anthropic, &format!("{path}.content"), &block["content"])?,
            _ => {}
        }
        Ok(())
    }

    fn image(&mut self, path: &str, url: &str) -> Result<(), Problem> {
        let scheme = url.split(':').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("data") {
            self.data(url.len());
        } else if !scheme.eq_ignore_ascii_case("https") {
            return Err(Problem::invalid_field(path, "must be a `data:` or `https:` address"));
        }
        self.count_image();
        Ok(())
    }

    fn count_image(&mut self) {
        self.images = true;
        self.tokens += IMAGE_TOKENS;
    }

    fn document(&mut self, bytes: usize) {
        self.data(bytes);
        self.tokens += (bytes as u64 / DOCUMENT_BYTES_PER_TOKEN).max(IMAGE_TOKENS);
    }

    fn data(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

fn stored(path: &str) -> Problem {
    Problem::invalid_field(path, "must not name a file that is stored at the provider: send the file itself")
}
